/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --usermap, --groupmap and --chown of a local run. Ids from a peer have been mapped when they come (flist/ids.c). */
#include <pthread.h>
#include <stdlib.h>

#include "dest/decide.h"
#include "dest/owner.h"
#include "lib/alloc.h"
#include "lib/log.h"
#include "options.h"
#include "options/owners.h"

struct owner_maps {
	bool has_names;        /* without --numeric-ids */
	struct id_rules *users, *groups;
	struct fs_ids *ids;
	pthread_mutex_t lock;  /* of `ids` */
};

static const char *name_of(struct owner_maps *maps, bool group, uint32_t id)
{
	const char *name = NULL;

	pthread_mutex_lock(&maps->lock);
	if (maps->has_names)
		name = group ? fs_group_name(maps->ids, id) : fs_user_name(maps->ids, id);
	pthread_mutex_unlock(&maps->lock);
	return name ? name : "";
}

static uint32_t map_id(void *maps_void, bool group, uint32_t id)
{
	struct owner_maps *maps = maps_void;
	const struct id_rules *rules = group ? maps->groups : maps->users;
	uint32_t mapped;

	return rules && id_rules_apply(rules, id, name_of(maps, group, id), &mapped) ? mapped : id;
}

struct owner_maps *dest_owner_maps_new(const struct options *options, struct decide_rules *rules)
{
	const char *role = log_role();
	struct owner_maps *maps;

	if (!options->usermap && !options->groupmap)
		return NULL;
	maps = xcalloc(1, sizeof *maps);
	maps->has_names = !options->numeric_ids;
	maps->ids = fs_ids_new(NULL, NULL);
	pthread_mutex_init(&maps->lock, NULL);
	log_set_role("Receiver");
	maps->users = id_rules_new(false, options->usermap, maps->ids);
	maps->groups = id_rules_new(true, options->groupmap, maps->ids);
	log_set_role(role);
	rules->map_id = map_id;
	rules->map_context = maps;
	return maps;
}

void dest_owner_maps_free(struct owner_maps *maps)
{
	if (!maps)
		return;
	id_rules_free(maps->users);
	id_rules_free(maps->groups);
	fs_ids_free(maps->ids);
	pthread_mutex_destroy(&maps->lock);
	free(maps);
}
