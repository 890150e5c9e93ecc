/* SPDX-License-Identifier: GPL-3.0-or-later */
/* User and group ids of a list and their names (doc/protocol/02-file-list.md section 4). */
#ifndef FLIST_IDS_H
#define FLIST_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/hashmap.h"
#include "lib/vec.h"
#include "options.h"
#include "wire/session.h"

struct fs_ids;
struct id_rules;
struct wire;

/* --- sending --- */

struct id_mentions {
	struct hashmap known;
	VEC(uint32_t) order;
};

struct id_names {
	struct session *session;
	struct fs_ids *ids;
	bool is_numeric;      /* neither names with the first mention (incremental recursion) nor lists at the end */
	bool no_names;        /* a daemon's "numeric ids": lists and flags as usual, but no names */
	struct id_mentions users, groups;
};

void id_names_free(struct id_names *names);
/* The name to send with this mention of an id, or NULL; notes the id for the trailing lists. */
const char *id_names_mention(struct id_names *names, bool is_group, uint32_t id);
/* One of the lists at the end (doc/protocol/02-file-list.md section 4.3). */
void id_names_write_list(struct id_names *names, bool is_group);
/* A name with its length byte, cut at 255. */
void id_names_write_name(struct session *session, const char *name);

/* --- receiving --- */

struct id_map {
	bool is_group;
	struct id_rules *rules; /* --usermap, --groupmap; NULL: none. They come first */
	struct fs_ids *ids;     /* NULL: names themselves say nothing */
	const char *root_name;  /* of id 0, which the peer does not name */
	uint32_t own;           /* for the id that no file can have */
	uint32_t last, last_local; /* most entries have the id of the one before */
	bool has_last;
	bool heard;             /* the peer sends ids: without that the entries' 0 is nobody's */
	const char *debug_name; /* --debug=own2: "uid" or "gid"; NULL: nobody wants to know */
	size_t mentions;
	struct hashmap local;   /* (id, with its name or without): what differs, and what rules have said */
};

/* Before the first id. Takes up the rules of the options, and says what is wrong with them. */
void id_maps_init(struct id_map *users, struct id_map *groups, const struct options *options, const struct session *session,
		  struct fs_ids *ids);
void id_map_free(struct id_map *map);
/* Read the name that follows the mention of an id. */
void id_map_read_name(struct id_map *map, struct wire *wire, uint32_t id);
/* A list of names at the end (doc/protocol/02-file-list.md section 4.3). */
void id_map_read_list(struct id_map *map, const struct session *session);
uint32_t id_map_local(struct id_map *map, uint32_t id);

#endif
