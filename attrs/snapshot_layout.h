/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where everything of an image will stand in its snapshot, before the first byte is written. Only the writer includes this.
 */
#ifndef ATTRS_SNAPSHOT_LAYOUT_H
#define ATTRS_SNAPSHOT_LAYOUT_H

#include "attrs/image.h"
#include "attrs/snapshot_check.h"

struct snapshot_layout {
	const struct image *image;
	struct fs_ids *ids;             /* NULL: owners have no names */
	const struct image_dir **order; /* the image's directories in the order of the file */
	struct snapshot_dir *dirs;      /* their records, complete */
	uint32_t dir_count;
	uint64_t entry_count;           /* "." included */
	uint64_t side_count, name_bytes;
	VEC(uint64_t) devices;
	struct strbuf facts, owners;    /* content of these chunks; complete after snapshot_layout_count */
};

/* 0; -1 with EFBIG if the format cannot hold it, `why` says what. To be freed in both cases. The image must stay as it is. */
int snapshot_layout_make(struct snapshot_layout *layout, const struct image *image, uint64_t generation, struct fs_ids *ids,
			 struct strbuf *why);
/* Look at every entry for what the facts and the owners say of all together. */
void snapshot_layout_count(struct snapshot_layout *layout);
void snapshot_layout_free(struct snapshot_layout *layout);

/* Those flags of an entry that the file keeps. */
static inline uint16_t snapshot_kept_flags(const struct entry *entry)
{
	return entry->flags & (entry_is_dir(entry) ? ENTRY_MOUNT : ENTRY_HARD_LINKED);
}

/* Does this entry have a side record in the file? */
static inline bool snapshot_has_side(const struct entry *entry)
{
	return entry_is_symlink(entry) || entry_is_device(entry) || snapshot_kept_flags(entry) & ENTRY_HARD_LINKED;
}

/* The side records of a view, in its snapshot. */
struct snapshot_old_sides {
	const struct snapshot_side *first;
	uint64_t count;
};
static inline struct snapshot_old_sides snapshot_old_sides(const struct entries *view)
{
	const struct attr_snapshot *old = view->snapshot;
	uint32_t next = view->snapshot_dir + 1;
	uint64_t first = old->dirs[view->snapshot_dir].first_side;
	uint64_t end = next < old->facts.dir_count ? old->dirs[next].first_side : old->side_count;

	return (struct snapshot_old_sides){ old->sides + first, end - first };
}

#endif
