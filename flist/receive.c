/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists that arrive: the first one, those that follow it, and the end. */
#include "flist/receive.h"

#include <stdlib.h>

#include "flist/paths.h"
#include "flist/receive_private.h"
#include "flist/receive_split.h"
#include "flist/received.h"
#include "lib/exit.h"

/* --- lists --- */

/* The I/O errors of the list's sender, or of its names here, travel with it to the working thread. */
static void receive_list(struct flist_receiver *receiver)
{
	flist_staged_clear(receiver);
	receiver->io_error = 0;
	int mask = flist_receive_entries(receiver);

	receiver->io_error |= receiver->options->ignore_errors ? 0 : mask;
}

static void receive_node(struct flist_receiver *receiver, int32_t node)
{
	flist_dir_path(receiver->list, node, &receiver->node_path);
	receiver->list_first = receiver->list->next_ndx + 1;
	receive_list(receiver);
	if (receiver->options->acls)
		received_acls_localize(receiver);
	struct entries *entries = xcalloc(1, sizeof *entries);

	entries_sort_into(receiver->staged.items[0].entries, entries);
	flist_unstage(receiver);
	flist_publish(receiver, node, entries);
	receiver->last_node = node;
}

/* What follows the only list. */
static void receive_trailer(struct flist_receiver *receiver)
{
	const struct options *options = receiver->options;
	struct session *session = receiver->session;

	if (!options->numeric_ids) {
		if (options->owner || options->acls)
			id_map_read_list(&receiver->users, session);
		if (options->group || options->acls)
			id_map_read_list(&receiver->groups, session);
	}
	if (!session->caps.io_error_message) {
		int32_t mask = wire_read_int(session->wire) & (IOERR_GENERAL | IOERR_VANISHED | IOERR_DEL_LIMIT);

		receiver->io_error |= options->ignore_errors ? 0 : mask;
	}
}

static void receive_whole_list(struct flist_receiver *receiver)
{
	struct flist *list = receiver->list;

	receive_list(receiver);
	receive_trailer(receiver);
	if (receiver->options->acls)
		received_acls_localize(receiver);
	flist_split(receiver);
	if (list->received->is_permuted)
		flist_received_number(list);
	flist_staged_clear(receiver);
	flist_received_end(list);
}

void flist_receive_first(struct flist_receiver *receiver)
{
	struct flist_received *received = receiver->list->received;

	id_maps_set_rules(receiver);
	wire_only_listen(receiver->session->wire, true);
	if (receiver->session->inc_recurse)
		receive_node(receiver, 0);
	else
		receive_whole_list(receiver);
	wire_only_listen(receiver->session->wire, false);
	receiver->session->io_error |= received->io_error;
	received->shown = receiver->list->totals;
}

/* The walk goes depth first: a directory is announced while its parent is the last one or above that. */
static void check_walk(const struct flist_receiver *receiver, int32_t node)
{
	const struct flist_dir *dirs = receiver->list->dirs.items;
	int32_t above = receiver->last_node;

	while (above >= 0 && above != dirs[node].parent)
		above = dirs[above].parent;
	if (above < 0)
		die(EXIT_PROTOCOL, "rsync: the list of directory %d comes out of order", dirs[node].number);
}

void flist_receive_next(struct flist_receiver *receiver, int32_t ndx)
{
	int64_t number = (int64_t)NDX_FLIST_OFFSET - ndx, count = (int64_t)receiver->list->received->node_by_number.count;

	if (!receiver->session->inc_recurse || receiver->is_over || (ndx != NDX_FLIST_EOF && number < 0))
		die(EXIT_PROTOCOL, "Invalid file index: %d (%d - %d)", ndx, NDX_DONE, receiver->list->next_ndx - 1);
	if (ndx == NDX_FLIST_EOF) {
		receiver->is_over = true;
		flist_received_end(receiver->list);
		return;
	}
	if (number >= count)
		die(EXIT_PROTOCOL, "Invalid directory index: %lld (0 - %lld)", (long long)number, (long long)count - 1);
	int32_t node = receiver->list->received->node_by_number.items[number];

	if (node < 0)
		die(EXIT_PROTOCOL, "rsync: refusing the list of cleared directory index %lld", (long long)number);
	if (receiver->list->dirs.items[node].loaded)
		die(EXIT_PROTOCOL, "rsync: refusing a second list of directory index %lld", (long long)number);
	check_walk(receiver, node);
	receive_node(receiver, node);
}

/* --- a receiver --- */

static void check_options(const struct options *options, const struct session *session)
{
	if (options->atimes && !session->caps.extended_flags)
		die(EXIT_PROTOCOL, "--atimes requires protocol 28 or higher (negotiated %d).", session->protocol);
}

struct flist_receiver *flist_receiver_new(struct flist *list, struct session *session, const struct options *options,
					  const struct flist_receive_setup *setup)
{
	struct flist_receiver *receiver = xcalloc(1, sizeof *receiver);
	bool doubtful = !setup->trust_sender && !session->is_server;

	check_options(options, session);
	receiver->list = list;
	receiver->session = session;
	receiver->options = options;
	receiver->setup = *setup;
	receiver->xattr_policy = setup->xattr_policy ? *setup->xattr_policy : (struct xattr_policy){
		.level = options_super_level(options), .verbatim = options->xattrs > 1,
	};
	if (doubtful && setup->asked && !options->old_args && !options->files_from_remote)
		receiver->asked = asked_names_new(options, setup->asked);
	if (doubtful && setup->rules && !filter_is_empty(setup->rules) && !filter_has_merges(setup->rules))
		receiver->rules = setup->rules;
	id_map_init_users(&receiver->users, options, setup->ids);
	id_map_init_groups(&receiver->groups, options, setup->ids);
	return receiver;
}

void flist_receiver_free(struct flist_receiver *receiver)
{
	if (!receiver)
		return;
	flist_staged_free(receiver);
	asked_names_free(receiver->asked);
	id_map_free(&receiver->users);
	id_map_free(&receiver->groups);
	strbuf_free(&receiver->state.name);
	strbuf_free(&receiver->incoming.name);
	strbuf_free(&receiver->incoming.target);
	strbuf_free(&receiver->wire_target);
	strbuf_free(&receiver->node_path);
	strbuf_free(&receiver->hierarchy);
	hashmap_free(&receiver->link_keys);
	vec_free(&receiver->links);
	free(receiver);
}
