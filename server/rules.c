/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The filter rules of a server's own command line (--remote-option), and the files that it names. */
#include "server/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "fs/operator.h"
#include "fs/root.h"
#include "lib/alloc.h"

static bool is_hidden(const struct module_session *module, const char *path)
{
	return module && module->hidden && filter_hides_path(module->hidden, path, false);
}

/* Of a module's client: nothing that is hidden, and nothing outside, wherever links lead. */
static int open_in_module(const struct module_session *module, const char *path, int flags)
{
	char *clean = xmalloc(strlen(path) + 2);
	int fd = -1, error = ENOENT;

	fs_clean_path(clean, path + strspn(path, "/"));
	if (!is_hidden(module, clean)) {
		fd = fs_open_follow(attr_source_real_root(module->source), clean, flags, 0);
		error = errno;
	}
	free(clean);
	errno = error;
	return fd;
}

int server_open_named(const struct server *server, const char *path, int flags)
{
	flags |= O_RDONLY;
	if (server->module)
		return open_in_module(server->module, path, flags);
	return options_confine(server->options, fs_operator_open(path, flags | options_link_flag(server->options), 0));
}

static int open_rules(void *server_void, enum filter_place place, const char *path)
{
	const struct server *server = server_void;

	(void)place;
	if (is_hidden(server->module, path)) {
		errno = ENOENT;
		return FILTER_HIDDEN;
	}
	return server_open_named(server, path, O_NONBLOCK);
}

void server_read_rules(struct server *server)
{
	const struct options *options = server->options;
	const struct filter_setup setup = {
		.side = options->sender ? FILTER_SENDER : FILTER_RECEIVER, .server_words = true, .from0 = options->from0,
		.of_peer = server->module != NULL, .budget = wire_budget(server->session.wire),
		.protocol = options->max_protocol, .open_file = open_rules, .context = server,
	};

	server->rules = filter_new(&setup);
	options_add_filters(options, server->rules, false);
}
