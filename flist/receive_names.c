/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ids of the peer and ids of this machine (doc/protocol/02-file-list.md section 4). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flist/decode.h"
#include "lib/exit.h"
#include "lib/log.h"

enum { NAME_LENGTH_MAX = 255, MENTIONS_MAX = 1 << 20, LOOKUP_STEPS = 1000 };
/* Of what has been found out for an id: with a name that has come for it, without. */
enum { NAMED, NAMELESS };

static void init(struct id_map *map, bool maps, struct fs_ids *ids, uint32_t own)
{
	memset(map, 0, sizeof *map);
	map->ids = maps ? ids : NULL;
	map->root_name = "";
	map->own = own;
}

void id_map_init_users(struct id_map *map, const struct options *options, struct fs_ids *ids)
{
	init(map, (options_act_as_root(options) || options->acls) && !options->numeric_ids, ids, geteuid());
	map->find = fs_user_id;
}

void id_map_init_groups(struct id_map *map, const struct options *options, struct fs_ids *ids)
{
	init(map, !options->numeric_ids, ids, getegid());
	map->find = fs_group_id;
}

void id_map_free(struct id_map *map)
{
	hashmap_free(&map->local);
	id_rules_free(map->rules);
}

/* Only newer peers name id 0. */
void id_maps_set_rules(struct flist_receiver *receiver)
{
	const struct options *options = receiver->options;
	struct fs_ids *ids = receiver->setup.ids;
	const char *role = log_role();

	log_set_role("Receiver");
	if (options->levels.debug[DEBUG_OWN] > 1) {
		receiver->users.told_as = "uid";
		receiver->groups.told_as = "gid";
	}
	receiver->users.rules = id_rules_new(false, options->usermap, ids);
	receiver->groups.rules = id_rules_new(true, options->groupmap, ids);
	if (!options_act_as_root(options)) {
		id_rules_free(receiver->users.rules);
		receiver->users.rules = NULL;
	}
	log_set_role(role);
	if (receiver->session->id0_names || options->numeric_ids)
		return;
	receiver->users.root_name = receiver->groups.root_name = "root";
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
	if (!id_rules_apply(map->rules, id, name, &local) &&
	    (!map->ids || !id || !length || !map->find(map->ids, name, &local)))
		local = id;
	if (map->told_as)
		log_info("%s %u(%s) maps to %u", map->told_as, id, name, local);
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
