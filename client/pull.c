/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The client as receiver: set-up of the session, then the engine with a peer as its source. */
#include "client/pull.h"

#include <stdlib.h>
#include <string.h>

#include "contents/contents.h"
#include "fs/ids.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/setup.h"

/* What a daemon calls "module/path" is "path" to the list. */
static void asked_paths(const struct remote *remote, const struct args *paths, struct args *asked)
{
	for (size_t i = 0; i < paths->count; i++) {
		const char *path = paths->items[i];
		const char *slash = remote->kind == REMOTE_SHELL ? NULL : strchr(path, '/');

		args_append(asked, remote->kind == REMOTE_SHELL ? path : slash ? slash + 1 : "");
	}
}

static void set_up(struct session *session, const struct connection *connection, const struct options *options)
{
	struct setup_request request;

	*session = (struct session){
		.wire = connection->wire, .peer_version = connection->peer_version, .max_alloc = options->max_alloc,
	};
	session_set_protocol(session, connection->protocol);
	session_limit_memory(session);
	options_setup_request(options, &request);
	if (!connection->is_daemon)
		setup_exchange_versions(session, &request);
	setup_client(session, &request);
	client_tell_choices(options, session);
	setup_start_mux(session, options->remove_source_files);
}

int client_pull_session(struct options *options, struct connection *connection, const struct pull_terms *terms,
			const char *destination)
{
	struct charset *charset = client_charset(options);
	struct session session;
	int code;

	set_up(&session, connection, options);
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

/* --attr-snapshot=FILE SRC/: the operand is a directory, and its list is to say everything of it. */
static void ask_for_all_attributes(struct options *options, const struct args *paths, struct args *whole)
{
	const char *path = paths->items[0];
	size_t length = strlen(path);
	char *directory = xasprintf("%s%s", length ? path : ".", length && path[length - 1] == '/' ? "" : "/");

	args_append(whole, directory);
	free(directory);
	options->perms = options->owner = options->group = options->times = options->links = true;
	options->devices = options->specials = true;
	if (!options->hard_links)
		options->hard_links = 1;
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
		ask_for_all_attributes(options, paths, &whole);
		paths = &whole;
	}
	asked_paths(remote, paths, &asked);
	terms.batch = batch_create(options);
	client_connect(&connection, options, remote, paths, false);
	code = client_pull_session(options, &connection, &terms, destination);
	args_free(&asked);
	args_free(&whole);
	return code;
}
