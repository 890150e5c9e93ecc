/* SPDX-License-Identifier: GPL-3.0-or-later */
/* User and group ids of a list and their names (doc/protocol/02-file-list.md section 4): as they are sent and as they come. */
#include "flist/ids.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/ids.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options/owners.h"
#include "wire/wire.h"

enum { NAME_LENGTH_MAX = 255, MENTIONS_MAX = 1 << 20, LOOKUP_STEPS = 1000 };
/* Of what has been found out for an id: with a name that has come for it, without. */
enum { NAMED, NAMELESS };

/* --- names of ids that are sent --- */

void id_names_free(struct id_names *names)
{
	hashmap_free(&names->users.known);
	hashmap_free(&names->groups.known);
	vec_free(&names->users.order);
	vec_free(&names->groups.order);
}

const char *id_names_mention(struct id_names *names, bool is_group, uint32_t id)
{
	struct id_mentions *mentions = is_group ? &names->groups : &names->users;
	bool inserted;

	if (names->is_numeric)
		return NULL;
	hashmap_put(&mentions->known, id, 0, 1, &inserted);
	if (!inserted)
		return NULL;
	vec_push(&mentions->order, id);
	return names->session->inc_recurse && !names->no_names ? fs_id_name(names->ids, is_group, id) : NULL;
}

void id_names_write_name(struct session *session, const char *name)
{
	size_t length = name ? strlen(name) : 0;

	if (length > 255)
		length = 255;
	wire_write_byte(session->wire, (uint8_t)length);
	wire_write(session->wire, name ? name : "", length);
}

void id_names_write_list(struct id_names *names, bool is_group)
{
	const struct id_mentions *mentions = is_group ? &names->groups : &names->users;
	struct session *session = names->session;

	if (names->is_numeric)
		return;
	for (size_t i = 0; i < mentions->order.count && !names->no_names; i++) {
		uint32_t id = mentions->order.items[i];
		const char *name = id ? fs_id_name(names->ids, is_group, id) : NULL;

		if (!name)
			continue;
		wire_write_vint30(session->wire, (int32_t)id);
		id_names_write_name(session, name);
	}
	wire_write_vint30(session->wire, 0);
	if (session->id0_names)
		id_names_write_name(session, fs_id_name(names->ids, is_group, 0));
}

/* --- ids of the peer and ids of this machine --- */

void id_maps_init(struct id_map *users, struct id_map *groups, const struct options *options, const struct session *session,
		  struct fs_ids *ids)
{
	struct fs_ids *known = options->numeric_ids ? NULL : ids;
	bool acts_as_root = options_act_as_root(options), is_shown = options->levels.debug[DEBUG_OWN] > 1;
	/* Only newer peers name id 0. */
	const char *root_name = session->id0_names || options->numeric_ids ? "" : "root", *role = log_role();

	log_set_role("Receiver");
	*users = (struct id_map){
		.ids = acts_as_root || options->acls ? known : NULL, .root_name = root_name,
		.own = geteuid(), .debug_name = is_shown ? "uid" : NULL,
		.rules = id_rules_new(false, options->usermap, ids),
	};
	*groups = (struct id_map){
		.is_group = true, .ids = known, .root_name = root_name,
		.own = getegid(), .debug_name = is_shown ? "gid" : NULL,
		.rules = id_rules_new(true, options->groupmap, ids),
	};
	if (!acts_as_root) {
		id_rules_free(users->rules);
		users->rules = NULL;
	}
	log_set_role(role);
}

void id_map_free(struct id_map *map)
{
	hashmap_free(&map->local);
	id_rules_free(map->rules);
}

void id_map_read_name(struct id_map *map, struct wire *wire, uint32_t id)
{
	char name[NAME_LENGTH_MAX + 1];
	size_t length = wire_read_byte(wire);
	uint32_t local;
	bool inserted;

	wire_read(wire, name, length);
	name[length] = '\0';
	if (memchr(name, '\0', length))
		die(EXIT_PROTOCOL, "NUL byte inside the name of id %u received", id);
	if (++map->mentions > MENTIONS_MAX)
		die(EXIT_MALLOC, "rsync: too many user and group names");
	budget_take(wire_budget(wire), BUDGET_OF_TEXT(length) + 4 * sizeof(struct hashmap_slot), "names of users and groups");
	budget_work(wire_budget(wire), map->ids ? LOOKUP_STEPS : 1);
	if (!id_rules_apply(map->rules, id, name, &local)
	    && (!map->ids || !id || !length || !fs_id_find(map->ids, map->is_group, name, &local)))
		local = id;
	if (map->debug_name)
		log_info("%s %u(%s) maps to %u", map->debug_name, id, name, local);
	if (local == id && !map->rules)
		return;
	hashmap_put(&map->local, id, NAMED, local, &inserted);
	map->has_last = false;
}

void id_map_read_list(struct id_map *map, const struct session *session)
{
	uint32_t id;

	while ((id = (uint32_t)wire_read_vint30(session->wire)) != 0)
		id_map_read_name(map, session->wire, id);
	if (session->id0_names)
		id_map_read_name(map, session->wire, 0);
}

uint32_t id_map_local(struct id_map *map, uint32_t id)
{
	if (map->has_last && map->last == id)
		return map->last_local;
	const uint64_t *found = hashmap_get(&map->local, id, NAMED);
	uint32_t local;
	bool inserted;

	if (!found && map->rules)
		found = hashmap_get(&map->local, id, NAMELESS);
	if (found)
		local = (uint32_t)*found;
	else if (!id_rules_apply(map->rules, id, id ? "" : map->root_name, &local))
		/* To chown(2), the last id means "leave alone". */
		local = id == UINT32_MAX ? map->own : id;
	/* Rules are gone through once for each id. */
	if (!found && map->rules)
		hashmap_put(&map->local, id, NAMELESS, local, &inserted);
	map->has_last = true;
	map->last = id;
	map->last_local = local;
	return local;
}
