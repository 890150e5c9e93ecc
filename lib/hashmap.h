/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Open-addressing map from a pair of 64-bit numbers (device and inode, uid, ...) to a 64-bit value.
 *
 * Keys may come from a peer: each map hashes them with a random key of its own (SipHash-1-3), so that nobody can choose
 * numbers or names that meet in it, and the time of a call does not depend on them.
 */
#ifndef LIB_HASHMAP_H
#define LIB_HASHMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hashmap_slot {
	uint64_t key1, key2, value;
	bool used;
};

struct hashmap {
	struct hashmap_slot *slots; /* power of two, NULL while empty */
	size_t capacity, count;
	uint64_t key[2];
	bool has_key;
};

#define HASHMAP_INIT { .slots = NULL }

void hashmap_free(struct hashmap *map);
/* Pointer to the value, or NULL. Valid until the next hashmap_put. */
uint64_t *hashmap_get(const struct hashmap *map, uint64_t key1, uint64_t key2);
/* The value of the key, inserted as `value` if absent; *inserted says which. Valid until the next hashmap_put. */
uint64_t *hashmap_put(struct hashmap *map, uint64_t key1, uint64_t key2, uint64_t value, bool *inserted);
/* Take the key out, if it is there. Pointers to values are not valid any more. */
void hashmap_remove(struct hashmap *map, uint64_t key1, uint64_t key2);
/*
 * The hash of a name that is to be found in the map, for callers that keep the names themselves: the keys (hash, 0), (hash, 1),
 * ... lead to those that share it, in practice one. It counts until hashmap_free. EXIT_IPC without random bytes.
 */
uint64_t hashmap_hash(struct hashmap *map, const void *bytes, size_t length);

#endif
