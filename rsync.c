/* SPDX-License-Identifier: GPL-3.0-or-later */
/* main(): read the command line and become one role. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>

#include "client.h"
#include "client/pull.h"
#include "client/push.h"
#include "client/words.h"
#include "contents/contents.h"
#include "daemon.h"
#include "daemon/refresh.h"
#include "daemon/status.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options.h"
#include "options/remote.h"
#include "server.h"
#include "snapshot.h"
#include "snapshot/make.h"
#include "ui/log_file.h"

/* The sink of a run on a terminal. Bytes that are not printable are shown as \#ooo; but carriage returns at the ends are a
 * progress line's (doc/protocol/06-command-line.md sections 8.1, 8.13). */
static void emit_to_user(void *options_void, enum log_kind kind, const char *text, size_t length)
{
	const struct options *options = options_void;
	bool informs = kind == L_INFO || kind == L_CLIENT;
	FILE *out = informs && options->stderr_mode != STDERR_ALL ? stdout : stderr;
	size_t start = length && text[0] == '\r', end = length, escaped_length;
	char *line;

	if (kind == L_LOG || (informs && options->quiet))
		return;
	while (end > start && strchr("\r\n", text[end - 1]))
		end--;
	escaped_length = log_escape(NULL, 0, text + start, end - start, options->eight_bit_output);
	line = xmalloc(length + escaped_length + 1);
	memcpy(line, text, start);
	log_escape(line + start, escaped_length + 1, text + start, end - start, options->eight_bit_output);
	memcpy(line + start + escaped_length, text + end, length - end);
	if (out == stderr)
		fflush(stdout);
	/* At once: others write to the same standard error. */
	fwrite(line, 1, start + escaped_length + (length - end), out);
	if (out == stderr || (length && text[length - 1] != '\n'))
		fflush(out);
	free(line);
}

static int run(struct options *options)
{
	if (options->daemon && options->server)
		return daemon_main(options);
	if (options->refresh_attrs)
		return daemon_refresh_main(options);
	if (options->status)
		return daemon_status_main(options);
	if (options->daemon || options->config_check)
		return daemon_main(options);
	if (options->server)
		server_main(options);
	struct remote remote;
	struct args paths;
	bool we_send;

	log_set_sink((struct log_sink){ emit_to_user, options });
	if (options->attr_mode != ATTR_MODE_NONE) {
		/* Runs an operation on existing attr snapshots; the operands have been counted. */
		static int (*const mains[])(struct options *) = {
			[ATTR_MODE_LIST] = receiver_list_snapshot,       [ATTR_MODE_VERIFY] = snapshot_verify_main,
			[ATTR_MODE_DIFF] = snapshot_diff_main,           [ATTR_MODE_FROM_TREE] = snapshot_make_main,
			[ATTR_MODE_TO_TREE] = receiver_snapshot_to_tree,
		};

		return mains[options->attr_mode](options);
	}
	if (options->read_batch)
		return client_replay(options);
	if (remote_operands(options, &remote, &paths, &we_send))
		return we_send ? client_push(options, &remote, &paths) : client_pull(options, &remote, &paths);
	if (options->attr_snapshot && options->operands.count == 1)
		return snapshot_make_main(options);
	remote_check_no_daemon(options);
	const char *destination = options->operands.count > 1 ? options->operands.items[options->operands.count - 1] : ".";
	struct args words = { NULL, 0 };

	args_append(&words, ".");
	args_append(&words, destination);
	client_log_command(options, NULL, NULL, destination, &words);
	args_free(&words);
	/* A listing is one in any way, but for a batch. */
	if (options->by_protocol && (!options->list_only || options->write_batch))
		return client_local(options);
	return receiver_main(options, NULL);
}

int main(int argc, char **argv)
{
	struct options options;
	struct log_file log;
	enum options_result result;
	char *error = NULL;
	int code = EXIT_OK;

	setlocale(LC_CTYPE, "");
	log_set_role("client");
	result = options_parse(&options, argc, argv, NULL, &error, &code);
	if (options.server)
		log_set_role("server");
	else if (options.log_file && result != OPTIONS_EXIT && !options.daemon && !options.config_check) {
		/* Every message from here on goes to the client's log as well; until the process ends. */
		log_set_sink((struct log_sink){ emit_to_user, &options });
		log_file_copy(&log, options.log_file, options_link_flag(&options));
	}
	if (result == OPTIONS_ERROR) {
		/* The error of options_parse, line by line, and the end. */
		const char *prefix = options.error_is_bare ? "" : "rsync: ";
		char *save = NULL;

		for (char *line = strtok_r(error, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
			log_error("%s%s", prefix, line);
			prefix = "";
		}
		free(error);
		exit_with(code);
	}
	exit_set_debug(options.levels.debug[DEBUG_EXIT], options_kind_of_end(&options));
	if (result == OPTIONS_OK)
		code = run(&options);
	/* The options live on: the sink that words the last line looks at them. */
	exit_with(code);
}
