/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parsing host specifications. */
#include "options/remote.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/alloc.h"

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

static bool parse_port(const char *digits, const char *end, int *port)
{
	size_t length = (size_t)(end - digits);

	*port = 0;
	if (length > PORT_DIGITS_MAX || strspn(digits, "0123456789") < length)
		return false;
	for (; digits < end; digits++)
		*port = *port * 10 + (*digits - '0');
	return *port <= PORT_MAX;
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
	if (*parts->rest == ':' && !parse_port(parts->rest + 1, end, port))
		return false;
	if (*parts->rest != ':' && parts->rest != end)
		return false;
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
