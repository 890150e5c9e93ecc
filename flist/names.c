/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * User and group names of the list: with the first mention of an id, or in lists at the end (doc/protocol/02-file-list.md
 * section 4).
 */
#include <stdlib.h>
#include <string.h>

#include "flist/send_private.h"
#include "fs/ids.h"

void id_names_init(struct id_names *names, struct session *session, const struct options *options,
		   const struct flist_send_setup *setup)
{
	memset(names, 0, sizeof *names);
	names->session = session;
	names->ids = setup->ids;
	names->no_names = setup->no_names;
	names->inline_names = session->inc_recurse && !options->numeric_ids;
	names->trailing_names = !session->inc_recurse && !options->numeric_ids;
}

void id_names_free(struct id_names *names)
{
	hashmap_free(&names->users);
	hashmap_free(&names->groups);
	vec_free(&names->user_order);
	vec_free(&names->group_order);
}

/* Is this the first mention of the id? */
static bool is_new(struct hashmap *known, uint32_t id)
{
	bool inserted;

	hashmap_put(known, id, 0, 1, &inserted);
	return inserted;
}

const char *id_names_mention_user(struct id_names *names, uint32_t uid)
{
	if ((!names->inline_names && !names->trailing_names) || !is_new(&names->users, uid))
		return NULL;
	vec_push(&names->user_order, uid);
	return names->inline_names && !names->no_names ? fs_user_name(names->ids, uid) : NULL;
}

const char *id_names_mention_group(struct id_names *names, uint32_t gid)
{
	if ((!names->inline_names && !names->trailing_names) || !is_new(&names->groups, gid))
		return NULL;
	vec_push(&names->group_order, gid);
	return names->inline_names && !names->no_names ? fs_group_name(names->ids, gid) : NULL;
}

void id_names_write_name(struct session *session, const char *name)
{
	size_t length = name ? strlen(name) : 0;

	if (length > 255)
		length = 255;
	wire_write_byte(session->wire, (uint8_t)length);
	wire_write(session->wire, name ? name : "", length);
}

static void write_list(struct id_names *names, const uint32_t *ids, size_t count,
		       const char *(*name_of)(struct fs_ids *, uint32_t))
{
	struct session *session = names->session;

	for (size_t i = 0; i < count && !names->no_names; i++) {
		const char *name = ids[i] ? name_of(names->ids, ids[i]) : NULL;
		if (!name)
			continue;
		wire_write_vint30(session->wire, (int32_t)ids[i]);
		id_names_write_name(session, name);
	}
	wire_write_vint30(session->wire, 0);
	if (session->id0_names)
		id_names_write_name(session, name_of(names->ids, 0));
}

void id_names_write_lists(struct id_names *names, bool users, bool groups)
{
	if (!names->trailing_names)
		return;
	if (users)
		write_list(names, names->user_order.items, names->user_order.count, fs_user_name);
	if (groups)
		write_list(names, names->group_order.items, names->group_order.count, fs_group_name);
}
