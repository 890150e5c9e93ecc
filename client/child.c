/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A local run by the protocol: the other end is a child of this process. */
#include "client/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "client/pull.h"
#include "client/shell.h"
#include "client/words.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "server.h"

static noreturn void failed(const char *what)
{
	log_errno(L_ERROR, errno, "%s", what);
	exit_with(EXIT_IPC);
}

static void add_debug_word(struct args *words, const char *name, int level)
{
	char *word = xasprintf("--debug=%s%d", name, level);

	args_append(words, word);
	free(word);
}

static void add_value(struct args *words, const char *name, const char *value)
{
	if (!value)
		return;
	char *word = xasprintf("--%s=%s", name, value);

	args_append(words, word);
	free(word);
}

/* What a server would be told, had it to be reached. */
static void make_words(const struct options *options, struct args *words)
{
	static const struct { enum debug_word word; const char *name; } told[] = {
		{ DEBUG_DELTASUM, "deltasum" }, { DEBUG_SEND, "send" }, { DEBUG_FLIST, "flist" }, { DEBUG_FILTER, "filter" },
	};
	size_t operands = options->operands.count, sources = operands > 1 ? operands - 1 : 1;
	struct args all = { NULL, 0 };

	args_append(words, "rsync");
	options_server_words(options, false, options->max_protocol, &all);
	/* --fake-super is for both halves of a local run, what -M says of it for the receiving one. */
	for (size_t i = 0; i < all.count; i++) {
		const char *word = all.items[i];

		if (strcmp(word, "--fake-super") != 0 && strcmp(word, "--super") != 0 && strcmp(word, "--no-super") != 0)
			args_append(words, word);
	}
	args_free(&all);
	if (options->super == SUPER_FAKE)
		args_append(words, "--fake-super");
	if (options->munge_links)
		args_append(words, "--munge-links");
	if (options->insecure_links)
		args_append(words, "--insecure-links");
	add_value(words, "confine-root", options->confine_root);
	add_value(words, "copy-as", options->copy_as);
	/* What only a client that sends would tell. */
	for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
		int level = options->levels.debug[told[i].word];

		if (level)
			add_debug_word(words, told[i].name, level);
	}
	args_append(words, ".");
	for (size_t i = 0; i < sources; i++)
		args_append(words, options->operands.items[i]);
}

/* Exit hook: nobody is to hear from the other end that this one has failed. */
static void end_other_end(void *connection_void, int code)
{
	struct connection *connection = connection_void;

	if (!connection->shell_pid || shell_has_finished(code) || code == EXIT_STREAMIO)
		return;
	kill(connection->shell_pid, SIGTERM);
	connection->ignores_shell = true;
}

/* In the child: words and all, it is a server like any other. */
static noreturn void serve(const struct args *words, const char *destination, int in, int out)
{
	struct options options;
	char *error = NULL;
	int code = EXIT_OK;

	log_set_role("sender");
	/* What this end tells the other goes from there to the log. */
	log_copy_errors_only();
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		failed("cannot set up the other end of a local run");
	close(in);
	close(out);
	if (options_parse(&options, (int)words->count, words->items, NULL, &error, &code) != OPTIONS_OK)
		die(code, "rsync: %s", error);
	options.destination = destination;
	server_main(&options);
}

static void start(struct connection *connection, const struct options *options, const char *destination)
{
	struct args words = { NULL, 0 };
	int to[2], from[2];
	pid_t child;

	make_words(options, &words);
	if (pipe(to) < 0 || pipe(from) < 0)
		failed("cannot make a connection to the other end of a local run");
	fflush(NULL);
	child = fork();
	if (child < 0)
		failed("fork");
	if (child == 0) {
		close(to[1]);
		close(from[0]);
		serve(&words, destination, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	args_free(&words);
	*connection = (struct connection){ .in_fd = from[0], .out_fd = to[1], .shell_pid = child };
}

/* The first half of --iconv is that of the side that sends, which people take for this process. */
static char *swap_charsets(struct options *options)
{
	const char *comma = options->iconv ? strchr(options->iconv, ',') : NULL;
	char *swapped;

	if (!comma)
		return NULL;
	swapped = xasprintf("%s,%.*s", comma + 1, (int)(comma - options->iconv), options->iconv);
	options->iconv = swapped;
	return swapped;
}

int client_local(struct options *options)
{
	size_t count = options->operands.count;
	const char *destination = options->list_only ? NULL : options->operands.items[count - 1];
	struct pull_terms terms = { .is_ourselves = true };
	struct connection connection;
	char *swapped;
	int code;

	log_set_role("Receiver");
	terms.batch = batch_create(options);
	/* No network is worth saving: blocks are looked for only where that was asked, or for another place. */
	if (options->whole_file < 0 && !options->append)
		options->whole_file = !options->write_batch;
	/* Secrets of the command line are none between the two. */
	options->secluded_args = false;
	swapped = swap_charsets(options);
	if (options_lack_list_digest(options)) {
		log_set_role("sender");
		die(EXIT_UNSUPPORTED, OPTIONS_NO_LIST_DIGEST);
	}
	start(&connection, options, destination);
	/* That was for the side that sends. */
	options->munge_links = false;
	client_adopt(&connection, options);
	exit_push_hook(end_other_end, &connection);
	code = client_pull_session(options, &connection, &terms, destination);
	exit_remove_hook(end_other_end, &connection);
	options->iconv = NULL;
	free(swapped);
	return code;
}
