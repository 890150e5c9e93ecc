/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An open attr snapshot, and its check, which fills it in. Only attrs/ includes this. */
#ifndef ATTRS_SNAPSHOT_CHECK_H
#define ATTRS_SNAPSHOT_CHECK_H

#include "attrs/entry.h"
#include "attrs/snapshot.h"
#include "attrs/snapshot_format.h"
#include "lib/hashmap.h"

struct attr_snapshot {
	const unsigned char *bytes;  /* the whole file, aligned to SNAPSHOT_ALIGNMENT */
	size_t length;
	bool is_mapped;              /* to be unmapped at the end; tests have one in memory of their own */
	struct attr_snapshot_facts facts;
	struct hashmap owners;       /* (is_group, id): offset of the name in the file */

	/* The chunks, in place. NULL: not in the file. */
	const void *chunks[CHUNK_IDS];
	const struct snapshot_dir *dirs;
	const struct entry *entries;
	const struct snapshot_side *sides;
	uint64_t side_count;
	const char *names;
	uint64_t names_length;
	const uint64_t *devices;
	uint64_t device_count;
	const int64_t *atimes;
	const struct snapshot_origin *origins;
};

/* Check everything of `bytes` and `length`, and fill in the rest. false: *why says what is wrong. */
bool attr_snapshot_check(struct attr_snapshot *snapshot, struct strbuf *why);

#endif
