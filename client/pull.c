/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The client as receiver: set-up of the session with a server, with the other end of a local run or with a batch, then the
 * receiver's run.
 */
#include "client/pull.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "client/shell.h"
#include "client/words.h"
#include "contents/contents.h"
#include "fs/ids.h"
#include "lib/alloc.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options/batch.h"
#include "options/remote.h"
#include "server.h"
#include "wire/setup.h"

/* How one session with a server that sends differs from others. */
struct pull_terms {
	const struct args *asked; /* paths of the source arguments, as the list has them; NULL: whatever comes */
	bool is_ourselves;        /* the other end of a local run */
	struct batch *batch;      /* to be written; NULL: none */
};

/* The session behind the connection, and its end. destination NULL: list. Returns the exit code. */
static int run_session(struct options *options, struct connection *connection, const struct pull_terms *terms,
		       const char *destination)
{
	struct charset *charset = client_charset(options);
	struct session session = { .wire = connection->wire };
	int code;

	client_set_up(&session, connection, options);
	const struct receiver_peer peer = {
		.session = &session,
		.ids = fs_ids_new(NULL, NULL),
		.asked = terms->asked,
		.trusted = options->trust_sender || terms->is_ourselves,
		.is_ourselves = terms->is_ourselves,
		.munge_symlinks = options->munge_links,
		.charset = charset,
		.batch = terms->batch,
	};

	code = receiver_pull_main(options, &peer, destination);
	code = client_disconnect(connection, code);
	fs_ids_free(peer.ids);
	charset_free(charset);
	return code;
}

int client_pull(struct options *options, const struct remote *remote, const struct args *paths)
{
	size_t operands = options->operands.count;
	const char *destination = operands > paths->count ? options->operands.items[operands - 1] : NULL;
	struct args asked = { NULL, 0 }, whole = { NULL, 0 };
	struct pull_terms terms = { .asked = &asked };
	struct connection connection;
	int code;

	if (options->list_only)
		destination = NULL;
	if (options->attr_snapshot && !destination) {
		/* --attr-snapshot=FILE SRC/: the operand is a directory, and its list is to say everything of it. */
		const char *directory = paths->items[0];
		size_t length = strlen(directory);

		args_take(&whole,
			  xasprintf("%s%s", length ? directory : ".", length && directory[length - 1] == '/' ? "" : "/"));
		options->perms = options->owner = options->group = options->times = options->links = true;
		options->devices = options->specials = true;
		if (!options->hard_links)
			options->hard_links = 1;
		paths = &whole;
	}
	/* The list has "path" for a daemon's "module/path". */
	for (size_t i = 0; i < paths->count; i++) {
		const char *path = paths->items[i];
		const char *slash = remote->kind == REMOTE_SHELL ? NULL : strchr(path, '/');

		args_append(&asked, remote->kind == REMOTE_SHELL ? path : slash ? slash + 1 : "");
	}
	terms.batch = batch_create(options);
	client_connect(&connection, options, remote, paths, false);
	code = run_session(options, &connection, &terms, destination);
	args_free(&asked);
	args_free(&whole);
	return code;
}

/* --- a local run by the protocol: the other end is a child of this process --- */

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
	/* Messages of this end go through the other one to the log. */
	log_copy_errors_only();
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		die_errno(EXIT_IPC, errno, "cannot set up the other end of a local run");
	close(in);
	close(out);
	if (options_parse(&options, (int)words->count, words->items, NULL, &error, &code) != OPTIONS_OK)
		die(code, "rsync: %s", error);
	options.destination = destination;
	server_main(&options);
}

static void start(struct connection *connection, const struct options *options, const char *destination)
{
	static const struct { enum debug_word word; const char *name; } shared[] = {
		{ DEBUG_DELTASUM, "deltasum" }, { DEBUG_SEND, "send" }, { DEBUG_FLIST, "flist" }, { DEBUG_FILTER, "filter" },
	};
	size_t operands = options->operands.count, sources = operands > 1 ? operands - 1 : 1;
	struct args all = { NULL, 0 }, words = { NULL, 0 };
	int to[2], from[2];
	pid_t child;

	/* The words of a server that would have to be reached. */
	args_append(&words, "rsync");
	options_server_words(options, false, options->max_protocol, &all);
	/* --fake-super is for both halves of a local run, what -M says of it for the receiving one. */
	for (size_t i = 0; i < all.count; i++) {
		const char *word = all.items[i];

		if (strcmp(word, "--fake-super") != 0 && strcmp(word, "--super") != 0 && strcmp(word, "--no-super") != 0)
			args_append(&words, word);
	}
	args_free(&all);
	if (options->super == SUPER_FAKE)
		args_append(&words, "--fake-super");
	if (options->munge_links)
		args_append(&words, "--munge-links");
	if (options->insecure_links)
		args_append(&words, "--insecure-links");
	if (options->confine_root)
		args_take(&words, xasprintf("--confine-root=%s", options->confine_root));
	if (options->copy_as)
		args_take(&words, xasprintf("--copy-as=%s", options->copy_as));
	/* Only a client that sends would pass these on. */
	for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
		int level = options->levels.debug[shared[i].word];

		if (level)
			args_take(&words, xasprintf("--debug=%s%d", shared[i].name, level));
	}
	args_append(&words, ".");
	for (size_t i = 0; i < sources; i++)
		args_append(&words, options->operands.items[i]);
	if (pipe(to) < 0 || pipe(from) < 0)
		die_errno(EXIT_IPC, errno, "cannot make a connection to the other end of a local run");
	fflush(NULL);
	child = fork();
	if (child < 0)
		die_errno(EXIT_IPC, errno, "fork");
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

int client_local(struct options *options)
{
	size_t count = options->operands.count;
	const char *destination = options->list_only ? NULL : options->operands.items[count - 1];
	struct pull_terms terms = { .is_ourselves = true };
	struct connection connection;
	const char *iconv = options->iconv, *comma = iconv ? strchr(iconv, ',') : NULL;
	char *swapped = NULL;
	int code;

	log_set_role("Receiver");
	terms.batch = batch_create(options);
	/* No network is worth saving: blocks are looked for only where that was asked, or for another place. */
	if (options->whole_file < 0 && !options->append)
		options->whole_file = !options->write_batch;
	/* Secrets of the command line are none between the two. */
	options->secluded_args = false;
	/* The first half of --iconv is that of the side that sends, which users take for this process. */
	if (comma)
		options->iconv = swapped = xasprintf("%s,%.*s", comma + 1, (int)(comma - iconv), iconv);
	if (options_lack_list_digest(options)) {
		log_set_role("sender");
		die(EXIT_UNSUPPORTED, OPTIONS_NO_LIST_DIGEST);
	}
	start(&connection, options, destination);
	/* That was for the side that sends. */
	options->munge_links = false;
	client_adopt(&connection, options);
	exit_push_hook(end_other_end, &connection);
	code = run_session(options, &connection, &terms, destination);
	exit_remove_hook(end_other_end, &connection);
	options->iconv = NULL;
	free(swapped);
	return code;
}

/* --- the replay of a batch --- */

int client_replay(struct options *options)
{
	const char *destination = options->list_only ? NULL : options->operands.items[options->operands.count - 1];
	struct session session;
	int code;

	log_set_role("Receiver");
	struct setup_request request;
	struct wire *wire = wire_new_file(batch_open(options));
	uint32_t flags;
	int protocol;

	remote_check_no_daemon(options);
	if (argument_is_remote(options->operands.items[options->operands.count - 1]))
		die(EXIT_SYNTAX, "remote destination is not allowed with --read-batch");
	flags = (uint32_t)wire_read_int(wire);
	session = (struct session){ .wire = wire, .max_alloc = options->max_alloc };
	protocol = wire_read_int(wire);
	if (protocol > PROTOCOL_MAX)
		die(EXIT_PROTOCOL, "The protocol version in the batch file is too new (%d > %d).", protocol, PROTOCOL_MAX);
	if (protocol < PROTOCOL_MIN)
		setup_refuse_version();
	session_set_protocol(&session, protocol);
	session_limit_memory(&session);
	batch_match(options, flags, session.caps.batch_bits);
	options_setup_request(options, &request);
	setup_client(&session, &request);
	const struct receiver_peer peer = {
		.session = &session,
		.ids = fs_ids_new(NULL, NULL),
		.trusted = true,
		.is_batch = true,
	};

	code = receiver_pull_main(options, &peer, destination);
	wire_free(session.wire);
	fs_ids_free(peer.ids);
	return code;
}
