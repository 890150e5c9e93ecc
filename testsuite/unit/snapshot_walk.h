/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Everything that can be reached through an open attr snapshot, looked at: abort() if anything is not as attrs/snapshot.h
 * promises. The promises are checked with other means than those of the reader.
 */
#ifndef SNAPSHOT_WALK_H
#define SNAPSHOT_WALK_H

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attrs/entry.h"
#include "attrs/snapshot.h"

static inline void snapshot_require(bool good)
{
	if (!good)
		abort();
}

/* Reads every byte, so that a sanitizer sees each. */
static inline unsigned snapshot_read(const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	unsigned sum = 0;

	while (length--)
		sum += *at++;
	return sum;
}

struct snapshot_walk {
	const struct attr_snapshot *snapshot;
	uint64_t entries, bytes;
	uint32_t dirs;       /* directories that entries lead to */
	unsigned read;       /* what was read, so that it counts as used */
};

static inline void snapshot_walk_name(const char *name, size_t length)
{
	snapshot_require(length >= 1 && length <= 255 && strlen(name) == length);
	snapshot_require(!strchr(name, '/') && strcmp(name, ".") && strcmp(name, ".."));
}

static inline void snapshot_walk_side(struct snapshot_walk *walk, const struct entries *view, const struct entry *entry)
{
	struct entry_side expanded;
	const struct entry_side *side = entry_any_side(view, entry, &expanded);
	bool has_one = entry_is_symlink(entry) || entry_is_device(entry) || entry->flags & ENTRY_HARD_LINKED;

	snapshot_require(side || (!has_one && !attr_snapshot_facts(walk->snapshot)->has_atimes));
	snapshot_require(!entry->side == !has_one);
	if (side)
		walk->read += snapshot_read(side, sizeof *side);
	if (!entry_is_symlink(entry))
		return;
	snapshot_require(side->target_length >= 1 && side->target_length < PATH_MAX);
	snapshot_require(strlen(entry_target(view, entry)) == side->target_length);
	snapshot_require((uint64_t)side->target + side->target_length < view->pool_used);
}

static inline void snapshot_walk_digests(struct snapshot_walk *walk, const struct entries *view, const struct entry *entry)
{
	const uint8_t *digests[] = { attr_snapshot_digest(view, entry, ATTR_DIGEST_XXH128),
				     attr_snapshot_digest(view, entry, ATTR_DIGEST_MD5) };
	struct entry_side expanded;
	const struct entry_side *origin = digests[0] || digests[1] ? entry_any_side(view, entry, &expanded) : NULL;

	snapshot_require((origin != NULL) == (digests[0] || digests[1]));
	snapshot_require(!origin || (entry_is_regular(entry) && origin->ctime_nsec < 1000000000));
	for (int i = 0; i < 2; i++)
		if (digests[i])
			walk->read += snapshot_read(digests[i], 16);
}

static inline void snapshot_walk_entry(struct snapshot_walk *walk, const struct entries *view, const struct entry *entry)
{
	bool is_plain = entry_is_regular(entry) || entry_is_symlink(entry) || entry_is_dir(entry);
	const char *user = attr_snapshot_owner(walk->snapshot, false, entry->uid);
	const char *group = attr_snapshot_owner(walk->snapshot, true, entry->gid);

	snapshot_require(is_plain || entry_is_device(entry) || entry_is_special(entry));
	snapshot_require(is_plain ? entry->size <= INT64_MAX : !entry->size);
	snapshot_require(entry->mtime_nsec < 1000000000 && !entry_root(view, entry));
	snapshot_require(!(entry->flags & ~(ENTRY_HARD_LINKED | ENTRY_MOUNT)));
	snapshot_require(!(entry->flags & ENTRY_MOUNT) || entry_is_dir(entry));
	snapshot_require(!user || (*user && strlen(user) <= 255));
	snapshot_require(!group || (*group && strlen(group) <= 255));
	snapshot_walk_side(walk, view, entry);
	snapshot_walk_digests(walk, view, entry);
	if (entry_is_regular(entry))
		walk->bytes += entry->size;
	walk->entries++;
}

/* A directory's entry and its record know each other, and it lies in its parent. */
static inline void snapshot_walk_child(struct snapshot_walk *walk, uint32_t dir, uint32_t i, const struct entry *entry)
{
	struct snapshot_dir_facts child, parent;

	snapshot_require(entry->dir > dir && entry->dir < attr_snapshot_facts(walk->snapshot)->dir_count);
	child = attr_snapshot_dir(walk->snapshot, entry->dir);
	parent = attr_snapshot_dir(walk->snapshot, dir);
	snapshot_require(child.parent == dir && child.parent_entry == i);
	snapshot_require(child.subtree_end > entry->dir && child.subtree_end <= parent.subtree_end);
	walk->dirs++;
}

static inline void snapshot_walk_dir(struct snapshot_walk *walk, uint32_t dir, struct strbuf *path)
{
	struct snapshot_dir_facts facts;
	struct entries view;

	facts = attr_snapshot_dir(walk->snapshot, dir);
	view = attr_snapshot_view(walk->snapshot, dir);
	attr_snapshot_dir_path(walk->snapshot, dir, path);
	walk->read += snapshot_read(&facts, sizeof facts) + snapshot_read(view.pool, view.pool_used);
	if (dir) {
		const char *slash = strrchr(strbuf_text(path), '/');

		snapshot_require(!strcmp(attr_snapshot_dir_name(walk->snapshot, dir), slash ? slash + 1 : strbuf_text(path)));
	}
	snapshot_require(!dir == !path->length && path->length < PATH_MAX && strlen(strbuf_text(path)) == path->length);
	snapshot_require(facts.leading <= view.count && facts.ctime_nsec < 1000000000);
	for (uint32_t i = 0; i < view.count; i++) {
		const struct entry *entry = &view.items[i];
		const char *name = entry_name(&view, entry);

		snapshot_walk_name(name, entry->name_length);
		snapshot_walk_entry(walk, &view, entry);
		snapshot_require(path->length + 1 + entry->name_length <= PATH_MAX);
		snapshot_require(entry_is_dir(entry) == (i >= facts.leading));
		snapshot_require(entries_find(&view, name, entry_is_dir(entry)) == (int32_t)i);
		snapshot_require(entries_find(&view, name, !entry_is_dir(entry)) == -1);
		if (entry_is_dir(entry))
			snapshot_walk_child(walk, dir, i, entry);
	}
}

static inline void snapshot_walk_all(const struct attr_snapshot *snapshot)
{
	struct snapshot_walk walk = { .snapshot = snapshot };
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);
	struct strbuf path = STRBUF_INIT;
	struct entries root;

	walk.read += (unsigned)(strlen(facts->root_path) + strlen(facts->version) + strlen(facts->options));
	root = attr_snapshot_root(snapshot);
	snapshot_require(root.count == 1 && !strcmp(entry_name(&root, root.items), ".") && entry_is_dir(root.items));
	snapshot_walk_entry(&walk, &root, root.items);
	for (uint32_t dir = 0; dir < facts->dir_count; dir++)
		snapshot_walk_dir(&walk, dir, &path);
	snapshot_require(walk.entries == facts->entry_count && walk.dirs + 1 == facts->dir_count);
	snapshot_require(walk.bytes == facts->content_bytes);
	strbuf_free(&path);
	__asm__ volatile("" : : "r"(walk.read)); /* all of it was needed */
}

#endif
