/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ids of the peer and ids of this machine (protocol/02 section 4). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flist_receive_private.h"
#include "lib/exit.h"

enum { NAME_LENGTH_MAX = 255, MENTIONS_MAX = 1 << 20 };

static void init(struct id_map *map, bool maps, struct fs_ids *ids, uint32_t own)
{
	memset(map, 0, sizeof *map);
	map->ids = maps ? ids : NULL;
	map->own = own;
}

void id_map_init_users(struct id_map *map, const struct options *options, struct fs_ids *ids)
{
	init(map, geteuid() == 0 && !options->numeric_ids, ids, geteuid());
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
	if (!map->ids || !id || !length || !map->find(map->ids, name, &local) || local == id)
		return;
	hashmap_put(&map->local, id, 0, local, &inserted);
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
	const uint64_t *found = hashmap_get(&map->local, id, 0);

	map->has_last = true;
	map->last = id;
	/* To chown(2), the last id means "leave alone". */
	map->last_local = found ? (uint32_t)*found : id == UINT32_MAX ? map->own : id;
	return map->last_local;
}
