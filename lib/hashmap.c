/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Open addressing with linear probing, at most three quarters full. */
#include "lib/hashmap.h"

#include <stdlib.h>

#include "lib/alloc.h"

enum { FIRST_SLOTS = 64 };

void hashmap_free(struct hashmap *map)
{
	free(map->slots);
	*map = (struct hashmap)HASHMAP_INIT;
}

/* Inode numbers come in runs: spread them over all bits (the finaliser of splitmix64). */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* The slot that holds the key, or the empty one where it belongs. */
static struct hashmap_slot *find_slot(const struct hashmap *map, uint64_t key1, uint64_t key2)
{
	size_t mask = map->capacity - 1;
	size_t i = (size_t)mix(key2 ^ mix(key1)) & mask;

	while (map->slots[i].used && (map->slots[i].key1 != key1 || map->slots[i].key2 != key2))
		i = (i + 1) & mask;
	return &map->slots[i];
}

static void grow(struct hashmap *map)
{
	struct hashmap old = *map;

	map->capacity = old.capacity ? old.capacity * 2 : FIRST_SLOTS;
	map->slots = xcalloc(map->capacity, sizeof *map->slots);
	for (size_t i = 0; i < old.capacity; i++)
		if (old.slots[i].used)
			*find_slot(map, old.slots[i].key1, old.slots[i].key2) = old.slots[i];
	free(old.slots);
}

uint64_t *hashmap_get(const struct hashmap *map, uint64_t key1, uint64_t key2)
{
	struct hashmap_slot *slot;

	if (!map->capacity)
		return NULL;
	slot = find_slot(map, key1, key2);
	return slot->used ? &slot->value : NULL;
}

uint64_t *hashmap_put(struct hashmap *map, uint64_t key1, uint64_t key2, uint64_t value, bool *inserted)
{
	struct hashmap_slot *slot;

	if (map->count >= map->capacity - map->capacity / 4)
		grow(map);
	slot = find_slot(map, key1, key2);
	if (inserted)
		*inserted = !slot->used;
	if (!slot->used) {
		*slot = (struct hashmap_slot){ key1, key2, value, true };
		map->count++;
	}
	return &slot->value;
}
