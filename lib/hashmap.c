/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Open addressing with linear probing, at most three quarters full. */
#include "lib/hashmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/alloc.h"
#include "lib/bytes.h"
#include "lib/exit.h"

enum { FIRST_SLOTS = 64 };

void hashmap_free(struct hashmap *map)
{
	free(map->slots);
	*map = (struct hashmap)HASHMAP_INIT;
}

/* --- SipHash-1-3 (Aumasson and Bernstein, 2012): whoever does not know the key finds no keys that meet --- */

struct sip {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = rotate(s->v1, 13) ^ s->v0;
	s->v3 = rotate(s->v3, 16) ^ s->v2;
	s->v0 = rotate(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = rotate(s->v1, 17) ^ s->v2;
	s->v3 = rotate(s->v3, 21) ^ s->v0;
	s->v2 = rotate(s->v2, 32);
}

static inline struct sip sip_start(const uint64_t key[2])
{
	return (struct sip){
		key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
		key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u,
	};
}

static inline void sip_add(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

static inline uint64_t sip_end(struct sip *s)
{
	s->v2 ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* The same as hashmap_hash of the sixteen bytes of two numbers. */
static uint64_t hash_pair(const struct hashmap *map, uint64_t key1, uint64_t key2)
{
	struct sip s = sip_start(map->key);

	sip_add(&s, key1);
	sip_add(&s, key2);
	sip_add(&s, (uint64_t)16 << 56);
	return sip_end(&s);
}

static void choose_key(struct hashmap *map)
{
	if (map->has_key)
		return;
	if (getrandom(map->key, sizeof map->key, 0) != (ssize_t)sizeof map->key)
		die(EXIT_IPC, "cannot get random bytes: %s", strerror(errno));
	map->has_key = true;
}

uint64_t hashmap_hash(struct hashmap *map, const void *start, size_t length)
{
	const uint8_t *bytes = start;

	choose_key(map);
	struct sip s = sip_start(map->key);

	for (size_t at = 0; length - at >= 8; at += 8)
		sip_add(&s, bytes_number(bytes + at, 8));
	sip_add(&s, bytes_number(bytes + length / 8 * 8, length % 8) | (uint64_t)length << 56);
	return sip_end(&s);
}

/* --- the table --- */

/* The slot that holds the key, or the empty one where it belongs. */
static struct hashmap_slot *find_slot(const struct hashmap *map, uint64_t key1, uint64_t key2)
{
	size_t mask = map->capacity - 1;
	size_t i = (size_t)hash_pair(map, key1, key2) & mask;

	while (map->slots[i].used && (map->slots[i].key1 != key1 || map->slots[i].key2 != key2))
		i = (i + 1) & mask;
	return &map->slots[i];
}

uint64_t *hashmap_get(const struct hashmap *map, uint64_t key1, uint64_t key2)
{
	struct hashmap_slot *slot = map->capacity ? find_slot(map, key1, key2) : NULL;

	return slot && slot->used ? &slot->value : NULL;
}

uint64_t *hashmap_put(struct hashmap *map, uint64_t key1, uint64_t key2, uint64_t value, bool *inserted)
{
	struct hashmap_slot *slot;

	if (map->count >= map->capacity - map->capacity / 4) {
		choose_key(map);
		const struct hashmap old = *map;

		map->capacity = old.capacity ? old.capacity * 2 : FIRST_SLOTS;
		map->slots = xcalloc(map->capacity, sizeof *map->slots);
		for (size_t i = 0; i < old.capacity; i++)
			if (old.slots[i].used)
				*find_slot(map, old.slots[i].key1, old.slots[i].key2) = old.slots[i];
		free(old.slots);
	}
	slot = find_slot(map, key1, key2);
	if (inserted)
		*inserted = !slot->used;
	if (!slot->used) {
		*slot = (struct hashmap_slot){ key1, key2, value, true };
		map->count++;
	}
	return &slot->value;
}

void hashmap_remove(struct hashmap *map, uint64_t key1, uint64_t key2)
{
	struct hashmap_slot *slot = map->capacity ? find_slot(map, key1, key2) : NULL;
	size_t mask = map->capacity - 1, hole, i;

	if (!slot || !slot->used)
		return;
	map->count--;
	hole = i = (size_t)(slot - map->slots);
	map->slots[hole].used = false;
	/* What lies behind it, and could have lain in it, moves up. */
	while (map->slots[i = (i + 1) & mask].used) {
		size_t home = (size_t)hash_pair(map, map->slots[i].key1, map->slots[i].key2) & mask;

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		map->slots[hole] = map->slots[i];
		map->slots[i].used = false;
		hole = i;
	}
}
