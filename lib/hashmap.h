/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Open-addressing map from a pair of 64-bit numbers (device and inode, uid, ...) to a 64-bit value. */
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
};

#define HASHMAP_INIT { NULL, 0, 0 }

void hashmap_free(struct hashmap *map);
/* Pointer to the value, or NULL. Valid until the next hashmap_put. */
uint64_t *hashmap_get(const struct hashmap *map, uint64_t key1, uint64_t key2);
/* The value of the key, inserted as `value` if absent; *inserted says which. Valid until the next hashmap_put. */
uint64_t *hashmap_put(struct hashmap *map, uint64_t key1, uint64_t key2, uint64_t value, bool *inserted);

#endif
