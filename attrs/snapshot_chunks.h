/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chunks of a snapshot, one after the other, from a layout. Only the writer includes this. */
#ifndef ATTRS_SNAPSHOT_CHUNKS_H
#define ATTRS_SNAPSHOT_CHUNKS_H

#include "attrs/snapshot_layout.h"
#include "attrs/snapshot_output.h"

/* What stands at the start of the file, once everything else is known. */
struct snapshot_front {
	struct snapshot_header header;
	struct snapshot_chunk chunks[CHUNK_IDS]; /* as many as the header says */
	enum snapshot_chunk_id ids[CHUNK_IDS];   /* of these; no part of the file */
};

static inline size_t snapshot_front_length(const struct snapshot_front *front)
{
	return sizeof front->header + front->header.chunk_count * sizeof *front->chunks;
}

/* Places and sizes, as yet without sums and without the owners, which will come after all that is planned. */
void snapshot_front_plan(struct snapshot_front *front, const struct snapshot_layout *layout);
/* Write every chunk to its place; where that is worth it, another thread counts what the layout has not yet counted, and sums
 * up. Then the front is complete. What lies between the chunks is left as it is: zeros. 0, or -1 with errno. */
int snapshot_chunks_write(struct snapshot_front *front, struct snapshot_layout *layout, const struct snapshot_target *target);

#endif
