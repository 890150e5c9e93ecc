/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which operands are remote, and whether they go together (doc/protocol/06-command-line.md section 6). */
#include "client/remote.h"

#include <string.h>

#include "lib/exit.h"
#include "lib/log.h"

static bool is_local(const char *operand)
{
	return !argument_is_remote(operand);
}

/* A further source of a pull: the same machine, reached in the same way. */
static void add_source(const struct remote *first, const char *operand, struct args *paths)
{
	struct remote source;

	if (!remote_parse(&source, operand)) {
		log_error("Unexpected local arg: %s", operand);
		die(EXIT_SYNTAX, "If arg is a remote file/dir, prefix it with a colon (:).");
	}
	/* Without a host it is the first one's. */
	if (*source.host && strcmp(source.host, first->host) != 0)
		die(EXIT_SYNTAX, "All source args must come from the same machine.");
	if (source.kind != first->kind)
		die(EXIT_SYNTAX, "All source args must use the same hostspec format.");
	if (*source.host && source.port != first->port)
		die(EXIT_SYNTAX, "All source args must use the same port number.");
	args_append(paths, source.path);
	remote_free(&source);
}

static void refuse_empty(const char *operand)
{
	if (!*operand)
		die(EXIT_SYNTAX, "Empty source arg specified.");
}

static void take_sources(const struct options *options, const struct remote *first, struct args *paths)
{
	size_t count = options->operands.count;

	if (count > 1 && !is_local(options->operands.items[count - 1]))
		die(EXIT_SYNTAX, "The source and destination cannot both be remote.");
	args_append(paths, first->path);
	for (size_t i = 1; i + 1 < count; i++) {
		refuse_empty(options->operands.items[i]);
		add_source(first, options->operands.items[i], paths);
	}
}

static void check_local_sources(const struct options *options)
{
	for (size_t i = 0; i + 1 < options->operands.count; i++) {
		const char *operand = options->operands.items[i];

		refuse_empty(operand);
		if (is_local(operand))
			continue;
		log_set_role("sender");
		die(EXIT_SYNTAX, "Unexpected remote arg: %s", operand);
	}
}

/* A list of names at the other end is at the end that the transfer goes to or comes from. */
static void check_files_from(const struct options *options, const struct remote *remote)
{
	struct remote list;

	if (!options->files_from_remote)
		return;
	if (!remote_parse(&list, options->files_from))
		return;
	if (*list.host && strcmp(list.host, remote->host) != 0)
		die(EXIT_SYNTAX, "--files-from hostname is not the same as the transfer hostname");
	remote_free(&list);
}

void remote_check_no_daemon(const struct options *options)
{
	if (options->password_file)
		die(EXIT_SYNTAX, "The --password-file option may only be used when accessing an rsync daemon.");
	if (options->contimeout)
		die(EXIT_SYNTAX, "The --contimeout option may only be used when connecting to an rsync daemon.");
}

static void check_kind(const struct options *options, const struct remote *remote)
{
	if (remote->kind == REMOTE_SHELL)
		remote_check_no_daemon(options);
	/* Over the network such a host is one that does not resolve, and a user is none of a command's words. */
	bool in_command = remote->kind != REMOTE_DAEMON;

	if (in_command && remote->host[0] == '-')
		die(EXIT_SYNTAX, "Invalid remote host: hostnames may not start with '-'.");
	/* To another remote shell than ssh, the word behind -l might be an option all the same. */
	if (in_command && remote->user && remote->user[0] == '-')
		die(EXIT_SYNTAX, "Invalid remote user: names may not start with '-'.");
	if (remote->kind != REMOTE_SHELL && remote->path[0] == '/')
		die(EXIT_STARTCLIENT, "ERROR: The remote path must start with a module name not a /");
}

bool remote_operands(const struct options *options, struct remote *remote, struct args *paths, bool *we_send)
{
	const struct args *operands = &options->operands;

	*paths = (struct args){ NULL, 0 };
	*we_send = !remote_parse(remote, operands->items[0]);
	if (*we_send) {
		if (operands->count > 1)
			check_local_sources(options);
		if (operands->count < 2 || !remote_parse(remote, operands->items[operands->count - 1]))
			return false;
		args_append(paths, remote->path);
	}
	log_set_role(*we_send ? "sender" : "Receiver");
	if (!*we_send)
		take_sources(options, remote, paths);
	if (remote->kind == REMOTE_DAEMON && options->rsh)
		remote->kind = REMOTE_DAEMON_OVER_SHELL;
	check_files_from(options, remote);
	check_kind(options, remote);
	return true;
}
