/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The check of a snapshot's tree: its directories, their entries, names and side records. */
#include "attrs/snapshot_check_tree.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

enum { NSEC_PER_SEC = 1000000000, NAME_LENGTH_MAX = 255 };

static bool bad(const struct snapshot_part *part, const char *text)
{
	strbuf_add_string(part->why, text);
	return false;
}

static bool bad_entry(const struct snapshot_part *part, enum snapshot_chunk_id id, uint32_t dir, uint32_t i,
		      const char *problem)
{
	strbuf_addf(part->why, "chunk %s: entry %" PRIu32 " of directory %" PRIu32 " %s", snapshot_chunk_kinds[id].tag, i, dir,
		    problem);
	return false;
}

static bool bad_dir(const struct snapshot_part *part, uint32_t dir, const char *problem)
{
	strbuf_addf(part->why, "chunk dirs: directory %" PRIu32 " %s", dir, problem);
	return false;
}

/* --- entries --- */

/* What is wrong with an entry's own fields, or NULL. */
static const char *entry_problem(const struct entry *entry)
{
	bool is_dir = entry_is_dir(entry), is_listed_empty = entry_is_device(entry) || entry_is_special(entry);

	if (!is_dir && !is_listed_empty && !entry_is_regular(entry) && !entry_is_symlink(entry))
		return "has a mode without a file type";
	if (entry->flags & ~(ENTRY_HARD_LINKED | ENTRY_MOUNT))
		return "has flags that are not for files";
	if (is_dir ? entry->flags & ENTRY_HARD_LINKED : entry->flags & ENTRY_MOUNT)
		return is_dir ? "is a directory with hard links" : "is a mount point and no directory";
	if (entry->root)
		return "belongs to another source argument";
	if (entry->mtime_nsec >= NSEC_PER_SEC)
		return "has more than 999999999 nanoseconds";
	if (entry->size > INT64_MAX)
		return "has a size of 2^63 or more";
	if (is_listed_empty && entry->size)
		return "is a device or special file with a size";
	if (is_dir && !entry->dir)
		return "is a directory without a record in chunk dirs";
	if (!is_dir && entry->dir)
		return "has a record in chunk dirs and is no directory";
	return NULL;
}

/* What is wrong with its name, which has to begin at names[at], or NULL. */
static const char *name_problem(const struct attr_snapshot *snapshot, uint64_t at, uint16_t length)
{
	const char *name = snapshot->names + at;

	if (!length)
		return "has an empty name";
	if (length > NAME_LENGTH_MAX)
		return "has a name of more than 255 bytes";
	if (length >= snapshot->names_length - at)
		return "has a name that goes beyond the end of the chunk";
	if (name[length])
		return "has a name that does not end where it should";
	if (name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')))
		return "is named . or ..";
	return NULL;
}

/* Is an entry in order after the one before it? Their names have been looked at. */
static bool is_after(const struct entries *view, const struct entry *before, const struct entry *entry)
{
	size_t shorter = before->name_length < entry->name_length ? before->name_length : entry->name_length;

	if (entry_is_dir(before) || entry_is_dir(entry))
		return entry_compare(view, before, view, entry) < 0;
	return memcmp(entry_name(view, before), entry_name(view, entry), shorter + 1) < 0;
}

static bool check_entry(struct snapshot_part *part, uint32_t dir, const struct entries *view, uint32_t i)
{
	const struct attr_snapshot *snapshot = part->snapshot;
	const struct entry *entry = &view->items[i];
	/* Most entries: regular files about which there is nothing to be said. */
	bool plain = entry_is_regular(entry) && !entry->flags && !entry->root && entry->mtime_nsec < NSEC_PER_SEC
		     && entry->size <= INT64_MAX && !entry->dir;
	const char *problem = plain ? NULL : entry_problem(entry);

	part->has_sides |= !plain || entry->side;
	if (problem)
		return bad_entry(part, CHUNK_ENTRIES, dir, i, problem);
	if (snapshot->dirs[dir].names + entry->name != part->next_name)
		return bad_entry(part, CHUNK_NAMES, dir, i, "has a name that is not where it should be");
	problem = name_problem(snapshot, part->next_name, entry->name_length);
	if (problem)
		return bad_entry(part, CHUNK_NAMES, dir, i, problem);
	part->next_name += entry->name_length + 1u;
	if (entry_is_dir(entry) != (i >= snapshot->dirs[dir].leading))
		return bad_dir(part, dir, "has its first directory not where it says");
	if (i > 0 && !is_after(view, entry - 1, entry))
		return bad_entry(part, CHUNK_ENTRIES, dir, i, "is not in order");
	if (entry_is_regular(entry))
		part->content_bytes += entry->size;
	return true;
}

/* How many of the bytes are zero? A count of its own for each byte of a vector is what makes this fast. */
static uint64_t count_zeros(const char *bytes, uint64_t length)
{
	typedef int8_t vector __attribute__((vector_size(16)));
	uint64_t count = 0, i = 0;

	while (length - i >= sizeof(vector)) {
		vector counts = { 0 }, some;

		for (int turn = 0; turn < INT8_MAX && length - i >= sizeof some; turn++, i += sizeof some) {
			memcpy(&some, bytes + i, sizeof some);
			counts -= some == 0;
		}
		for (size_t j = 0; j < sizeof counts; j++)
			count += (uint64_t)counts[j];
	}
	for (; i < length; i++)
		count += !bytes[i];
	return count;
}

/* What the names, one after the other, hold besides the NULs where they should be. */
static bool check_bytes(const struct snapshot_part *part, uint32_t dir, const struct entries *view)
{
	uint64_t length = part->next_name - part->snapshot->dirs[dir].names;
	const char *slash = memchr(view->pool, '/', length);

	if (!slash && count_zeros(view->pool, length) == view->count)
		return true;
	for (uint32_t i = 0; i < view->count; i++) {
		const struct entry *entry = &view->items[i];

		if (memchr(entry_name(view, entry), '\0', entry->name_length))
			return bad_entry(part, CHUNK_NAMES, dir, i, "has a name that does not end where it should");
		if (memchr(entry_name(view, entry), '/', entry->name_length))
			return bad_entry(part, CHUNK_NAMES, dir, i, "has a slash in its name");
	}
	return true;
}

static bool check_entries(struct snapshot_part *part, uint32_t dir, const struct entries *view)
{
	uint16_t longest = 0;

	part->has_sides = false;
	for (uint32_t i = 0; i < view->count; i++) {
		if (!check_entry(part, dir, view, i))
			return false;
		if (view->items[i].name_length > longest)
			longest = view->items[i].name_length;
	}
	part->lengths[dir].longest = (uint8_t)longest;
	if (!check_bytes(part, dir, view))
		return false;
	/* No name stands for a directory and for something else. */
	struct entries others = *view;

	others.count = part->snapshot->dirs[dir].leading;
	for (uint32_t i = others.count; others.count && i < view->count; i++)
		if (entries_find(&others, entry_name(view, &view->items[i]), false) >= 0)
			return bad_entry(part, CHUNK_NAMES, dir, i, "has the name of another entry");
	return true;
}

/* --- side records --- */

static bool check_target(struct snapshot_part *part, uint32_t dir, uint32_t i, const struct snapshot_side *side)
{
	const struct attr_snapshot *snapshot = part->snapshot;
	const char *target = snapshot->names + part->next_name, *problem = NULL;

	if (!side->b)
		problem = "has an empty target";
	else if (side->b >= PATH_MAX)
		problem = "has a target of more than 4095 bytes";
	else if (snapshot->dirs[dir].names + side->a != part->next_name)
		problem = "has a target that is not where it should be";
	else if (side->b >= snapshot->names_length - part->next_name)
		problem = "has a target that goes beyond the end of the chunk";
	else if (memchr(target, '\0', (size_t)side->b + 1) != target + side->b)
		problem = "has a target that does not end where it should";
	if (problem)
		return bad_entry(part, CHUNK_NAMES, dir, i, problem);
	part->next_name += side->b + 1u;
	return true;
}

static bool check_side(struct snapshot_part *part, uint32_t dir, const struct entry *entry, uint32_t i)
{
	const struct attr_snapshot *snapshot = part->snapshot;
	const struct snapshot_side *side = snapshot->sides + part->next_side;
	uint64_t number = part->next_side - snapshot->dirs[dir].first_side + 1;

	if (!entry_is_symlink(entry) && !entry_is_device(entry) && !(entry->flags & ENTRY_HARD_LINKED))
		return !entry->side || bad_entry(part, CHUNK_ENTRIES, dir, i, "has a side record without need");
	if (entry->side != number || part->next_side >= snapshot->side_count)
		return bad_entry(part, CHUNK_SIDES, dir, i, "has a record that is not where it should be");
	if (!(entry->flags & ENTRY_HARD_LINKED) && side->ino)
		return bad_entry(part, CHUNK_SIDES, dir, i, "has an inode without hard links");
	if (!entry_is_symlink(entry) && !entry_is_device(entry) && (side->a || side->b))
		return bad_entry(part, CHUNK_SIDES, dir, i, "has numbers without need");
	part->next_side++;
	return !entry_is_symlink(entry) || check_target(part, dir, i, side);
}

/* --- the shape of the tree --- */

/*
 * The directories among the entries are the ones below `dir`, one after the other up to its subtree_end. Seen from the root
 * on, this leaves no directory out and gives each one parent.
 */
static bool check_children(struct snapshot_part *part, uint32_t dir, const struct entries *view)
{
	const struct snapshot_dir *dirs = part->snapshot->dirs;
	uint32_t end = dirs[dir].subtree_end, child = dir + 1;

	for (uint32_t i = dirs[dir].leading; i < view->count; i++) {
		const struct entry *entry = &view->items[i];

		if (entry->dir != child || child >= end)
			return bad_entry(part, CHUNK_ENTRIES, dir, i, "does not lead to the next directory");
		if (dirs[child].parent != dir || dirs[child].parent_entry != i)
			return bad_dir(part, child, "does not lead back to its entry");
		if (dirs[child].subtree_end <= child || dirs[child].subtree_end > end)
			return bad_dir(part, child, "has a subtree that ends in the wrong place");
		part->lengths[child].name = (uint8_t)entry->name_length;
		child = dirs[child].subtree_end;
	}
	if (child != end)
		return bad_dir(part, dir, "has a subtree that ends in the wrong place");
	return true;
}

static const char *dir_problem(const struct snapshot_part *part, uint32_t number)
{
	const struct attr_snapshot *snapshot = part->snapshot;
	const struct snapshot_dir *dir = &snapshot->dirs[number];

	if (dir->first_entry != part->next_entry)
		return "does not begin with the entry after those of the directory before";
	if (dir->count > snapshot->facts.entry_count - part->next_entry || dir->count > INT32_MAX)
		return "has more entries than there are";
	if (dir->leading > dir->count)
		return "has more entries before its first directory than it has at all";
	if (dir->names != part->next_name)
		return "does not begin with the name after those of the directory before";
	if (dir->first_side != part->next_side)
		return "does not begin with the side record after those of the directory before";
	if (dir->device >= snapshot->device_count)
		return "is on a device that is not in chunk devices";
	if (dir->ctime < 0)
		return "was changed before 1970";
	if (dir->subtree_end <= number || dir->subtree_end > snapshot->facts.dir_count)
		return "has a subtree that ends in the wrong place";
	return NULL;
}

static bool check_dir(struct snapshot_part *part, uint32_t number)
{
	const struct attr_snapshot *snapshot = part->snapshot;
	const struct snapshot_dir *dir = &snapshot->dirs[number];
	const char *problem = dir_problem(part, number);

	if (problem)
		return bad_dir(part, number, problem);
	struct entries view = {
		.items = (struct entry *)(snapshot->entries + dir->first_entry), .count = dir->count,
		.pool = (char *)(snapshot->names + dir->names),
	};

	if (!check_entries(part, number, &view) || !check_children(part, number, &view))
		return false;
	for (uint32_t i = 0; part->has_sides && i < view.count; i++)
		if (!check_side(part, number, &view.items[i], i))
			return false;
	if (part->next_name - dir->names > UINT32_MAX)
		return bad_dir(part, number, "has 4 GiB of names or more");
	part->next_entry += dir->count;
	return true;
}

/* Entry 0, ".", and the record of the directory that it stands for. */
static bool check_root(struct snapshot_part *part)
{
	const struct attr_snapshot *snapshot = part->snapshot;
	const struct entry *root = snapshot->entries;
	struct entry same = *root;

	same.dir = entry_is_dir(root); /* as any other directory's */
	const char *problem = entry_problem(&same);

	if (problem) {
		strbuf_addf(part->why, "chunk entries: the root's entry %s", problem);
		return false;
	}
	if (!entry_is_dir(root) || root->dir || root->side)
		return bad(part, "chunk entries: the root's entry is not that of directory 0");
	if (root->name || root->name_length != 1 || snapshot->names_length < 2 || memcmp(snapshot->names, ".", 2))
		return bad(part, "chunk names: the root's name is not \".\"");
	if (snapshot->dirs[0].parent || snapshot->dirs[0].parent_entry)
		return bad_dir(part, 0, "has a parent");
	if (snapshot->dirs[0].subtree_end != snapshot->facts.dir_count)
		return bad_dir(part, 0, "has a subtree that ends in the wrong place");
	part->next_entry = 1;
	part->next_name = 2;
	return true;
}

/* A part that does not begin with the root begins where its directory says, as long as that is in the file. */
static bool begin(struct snapshot_part *part)
{
	const struct attr_snapshot *snapshot = part->snapshot;
	const struct snapshot_dir *dir = &snapshot->dirs[part->first];

	if (dir->first_entry > snapshot->facts.entry_count || dir->names > snapshot->names_length ||
	    dir->first_side > snapshot->side_count)
		return bad_dir(part, part->first, "begins beyond the end of a chunk");
	part->next_entry = dir->first_entry;
	part->next_name = dir->names;
	part->next_side = dir->first_side;
	return true;
}

/* It ends where the next one begins; the last one has used up all of the three chunks that the directories share. */
static bool ends_well(const struct snapshot_part *part)
{
	const struct attr_snapshot *snapshot = part->snapshot;

	if (part->end < snapshot->facts.dir_count) {
		const char *problem = dir_problem(part, part->end);
		return !problem || bad_dir(part, part->end, problem);
	}
	if (part->next_entry != snapshot->facts.entry_count)
		return bad(part, "chunk entries: has entries that belong to no directory");
	if (part->next_name != snapshot->names_length)
		return bad(part, "chunk names: has bytes that belong to no entry");
	if (part->next_side != snapshot->side_count)
		return bad(part, "chunk sides: has records that belong to no entry");
	return true;
}

bool snapshot_check_part(struct snapshot_part *part)
{
	bool good = part->first ? begin(part) : check_root(part);

	for (uint32_t dir = part->first; good && dir < part->end; dir++)
		good = check_dir(part, dir);
	return good && ends_well(part);
}

bool snapshot_check_paths(const struct attr_snapshot *snapshot, struct snapshot_dir_lengths *lengths, struct strbuf *why)
{
	for (uint32_t i = 0; i < snapshot->facts.dir_count; i++) {
		struct snapshot_dir_lengths *dir = &lengths[i];
		size_t above = lengths[snapshot->dirs[i].parent].path;

		dir->path = (uint16_t)(i ? above + (above > 0) + dir->name : 0);
		if (dir->path + (dir->path > 0) + dir->longest < PATH_MAX)
			continue;
		strbuf_addf(why, "chunk names: directory %" PRIu32 " has a path of %d bytes or more in it", i, PATH_MAX);
		return false;
	}
	return true;
}
