/* SPDX-License-Identifier: GPL-3.0-or-later */
/* main(): read the command line and become one role. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>

#include "client.h"
#include "daemon.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "local.h"
#include "options.h"
#include "server.h"
#include "snapshot_make.h"
#include "snapshot_tools.h"

/* The error of options_parse, line by line, and the end. */
static void refuse_command_line(const struct options *options, char *error, int code)
{
	const char *prefix = options->error_is_bare ? "" : "rsync: ";
	char *save = NULL;

	for (char *line = strtok_r(error, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		log_error("%s%s", prefix, line);
		prefix = "";
	}
	free(error);
	exit_with(code);
}

/*
 * The sink of a run on a terminal: messages hold names, and names can hold anything, so what is not printable is shown as
 * \#ooo; but carriage returns at the ends of a message are the progress line's (protocol/06 8.1 and 8.13).
 */
static void emit_to_user(void *context, enum log_kind kind, const char *text, size_t length)
{
	const struct options *options = context;
	bool informs = kind == L_INFO || kind == L_CLIENT;
	FILE *out = informs && options->stderr_mode != STDERR_ALL ? stdout : stderr;
	size_t start = length && text[0] == '\r', end = length, escaped_length;
	char *escaped;

	if (kind == L_LOG || (informs && options->quiet))
		return;
	while (end > start && strchr("\r\n", text[end - 1]))
		end--;
	escaped_length = log_escape(NULL, 0, text + start, end - start, options->eight_bit_output);
	escaped = xmalloc(escaped_length + 1);
	log_escape(escaped, escaped_length + 1, text + start, end - start, options->eight_bit_output);
	if (out == stderr)
		fflush(stdout);
	fwrite(text, 1, start, out);
	fwrite(escaped, 1, escaped_length, out);
	fwrite(text + end, 1, length - end, out);
	if (out == stderr || (length && text[length - 1] != '\n'))
		fflush(out);
	free(escaped);
}

static noreturn void run_server(struct options *options)
{
	log_set_role(options->sender ? "sender" : "Receiver");
	if (!options->sender)
		die(EXIT_UNSUPPORTED, "rsync: on remote machine: the receiving side is not built yet, only the sending one");
	server_main(options);
}

/* As far as it goes: a daemon's modules are listed by the connection itself. */
static noreturn void run_remote(struct options *options, const struct remote *remote, const struct args *paths, bool we_send)
{
	struct connection connection;

	client_connect(&connection, options, remote, paths, we_send);
	die(EXIT_UNSUPPORTED, "rsync: the client of a remote server is not built yet, only local runs are");
}

static int run_client(struct options *options)
{
	struct remote remote;
	struct args paths;
	bool we_send;

	log_set_sink((struct log_sink){ emit_to_user, options });
	if (options->attr_mode != ATTR_MODE_NONE)
		return snapshot_tool_main(options);
	if (remote_operands(options, &remote, &paths, &we_send))
		run_remote(options, &remote, &paths, we_send);
	if (options->attr_snapshot && options->operands.count == 1)
		return snapshot_make_main(options);
	return local_main(options);
}

static int run(struct options *options)
{
	if (options->daemon && options->server)
		return daemon_over_shell(options);
	if (options->daemon || options->config_check)
		return daemon_main(options);
	if (options->server)
		run_server(options);
	return run_client(options);
}

int main(int argc, char **argv)
{
	struct options options;
	enum options_result result;
	char *error = NULL;
	int code = EXIT_OK;

	setlocale(LC_CTYPE, "");
	log_set_role("client");
	result = options_parse(&options, argc, argv, NULL, &error, &code);
	if (options.server)
		log_set_role("server");
	if (result == OPTIONS_ERROR)
		refuse_command_line(&options, error, code);
	if (result == OPTIONS_OK)
		code = run(&options);
	/* The options live on: the sink that words the last line looks at them. */
	exit_with(code);
}
