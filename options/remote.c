/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parsing host specifications. */
#include "options/remote.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

enum { PORT_DIGITS_MAX = 5, PORT_MAX = 65535 };

/* The parts of an operand, as pointers into it. */
struct parts {
	const char *user, *user_end; /* user NULL: none */
	const char *host, *host_end;
	const char *rest;            /* behind the host and its brackets */
};

/* "[...]" at `host`: false if it is no bracketed host. */
static bool take_brackets(struct parts *parts, const char *host)
{
	size_t length = strcspn(host + 1, "]/");

	if (!length || host[1 + length] != ']')
		return false;
	parts->host = host + 1;
	parts->host_end = host + 1 + length;
	parts->rest = parts->host_end + 1;
	return true;
}

/* Behind "rsync://": [USER@]HOST[:PORT][/PATH]. */
static bool split_url(struct parts *parts, int *port, const char *text)
{
	const char *end = text + strcspn(text, "/");
	const char *at = memrchr(text, '@', (size_t)(end - text));
	const char *host = at ? at + 1 : text;

	parts->user = at ? text : NULL;
	parts->user_end = at;
	if (at && memchr(text, ':', (size_t)(at - text)))
		return false;
	if (*host == '[') {
		if (!take_brackets(parts, host))
			return false;
	} else {
		parts->host = host;
		parts->rest = parts->host_end = host + strcspn(host, ":/");
	}
	*port = 0;
	if (*parts->rest == ':') {
		const char *digits = parts->rest + 1;

		if (end - digits > PORT_DIGITS_MAX || strspn(digits, "0123456789") < (size_t)(end - digits))
			return false;
		for (; digits < end; digits++)
			*port = *port * 10 + (*digits - '0');
		if (*port > PORT_MAX)
			return false;
	} else if (parts->rest != end) {
		return false;
	}
	parts->rest = end + (*end == '/');
	return true;
}

/* [USER@]HOST before the first colon; parts->rest is that colon. A bracketed host hides its own colons, user names hold
 * '@'s. */
static bool split_colon(struct parts *parts, const char *text)
{
	const char *host = text, *at;

	while ((at = host + strcspn(host, "@:/")) && *at == '@')
		host = at + 1;
	parts->user = host > text ? text : NULL;
	parts->user_end = host - 1;
	if (*host == '[')
		return take_brackets(parts, host) && *parts->rest == ':';
	parts->host = host;
	parts->rest = parts->host_end = host + strcspn(host, ":/[");
	return *parts->rest == ':';
}

bool remote_parse(struct remote *remote, const char *operand)
{
	static const char scheme[] = "rsync://";
	bool is_url = strncasecmp(operand, scheme, sizeof scheme - 1) == 0, is_daemon;
	struct parts parts;
	int port = 0;

	is_url = is_url && split_url(&parts, &port, operand + sizeof scheme - 1);
	if (!is_url && !split_colon(&parts, operand))
		return false;
	is_daemon = is_url || parts.rest[1] == ':';
	if (!is_url)
		parts.rest += is_daemon ? 2 : 1;
	*remote = (struct remote){
		.kind = is_daemon ? REMOTE_DAEMON : REMOTE_SHELL,
		.user = parts.user ? xstrndup(parts.user, (size_t)(parts.user_end - parts.user)) : NULL,
		.host = xstrndup(parts.host, (size_t)(parts.host_end - parts.host)),
		.port = is_url ? port : 0,
		.path = xstrdup(parts.rest),
	};
	return true;
}

void remote_free(struct remote *remote)
{
	free(remote->user);
	free(remote->host);
	free(remote->path);
	*remote = (struct remote){ .kind = REMOTE_SHELL };
}

bool argument_is_remote(const char *argument)
{
	struct remote remote;

	if (!remote_parse(&remote, argument))
		return false;
	remote_free(&remote);
	return true;
}

/* --- the operands of a client --- */

static void refuse_empty(const char *operand)
{
	if (!*operand)
		die(EXIT_SYNTAX, "Empty source arg specified.");
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

bool remote_operands(const struct options *options, struct remote *remote, struct args *paths, bool *we_send)
{
	const struct args *operands = &options->operands;

	*paths = (struct args){ NULL, 0 };
	*we_send = !remote_parse(remote, operands->items[0]);
	if (*we_send) {
		for (size_t i = 0; i + 1 < operands->count; i++) {
			refuse_empty(operands->items[i]);
			if (!argument_is_remote(operands->items[i]))
				continue;
			log_set_role("sender");
			die(EXIT_SYNTAX, "Unexpected remote arg: %s", operands->items[i]);
		}
		if (operands->count < 2 || !remote_parse(remote, operands->items[operands->count - 1]))
			return false;
		args_append(paths, remote->path);
	}
	log_set_role(*we_send ? "sender" : "Receiver");
	if (!*we_send) {
		size_t count = options->operands.count;

		if (count > 1 && argument_is_remote(options->operands.items[count - 1]))
			die(EXIT_SYNTAX, "The source and destination cannot both be remote.");
		args_append(paths, remote->path);
		for (size_t i = 1; i + 1 < count; i++) {
			refuse_empty(options->operands.items[i]);
			/* A further source of a pull: the same machine, reached in the same way. */
			struct remote source;

			if (!remote_parse(&source, options->operands.items[i])) {
				log_error("Unexpected local arg: %s", options->operands.items[i]);
				die(EXIT_SYNTAX, "If arg is a remote file/dir, prefix it with a colon (:).");
			}
			/* Without a host it is the first one's. */
			if (*source.host && strcmp(source.host, remote->host) != 0)
				die(EXIT_SYNTAX, "All source args must come from the same machine.");
			if (source.kind != remote->kind)
				die(EXIT_SYNTAX, "All source args must use the same hostspec format.");
			if (*source.host && source.port != remote->port)
				die(EXIT_SYNTAX, "All source args must use the same port number.");
			args_append(paths, source.path);
			remote_free(&source);
		}
	}
	if (remote->kind == REMOTE_DAEMON && options->rsh)
		remote->kind = REMOTE_DAEMON_OVER_SHELL;
	check_files_from(options, remote);
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
	return true;
}
