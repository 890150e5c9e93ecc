/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The check of an attr snapshot, once, when it is opened: from the header inwards, each step on what the steps before have
 * established. Nothing of the file is used before it has been looked at, and nothing is looked at twice.
 *
 * What does not depend on each other is shared among threads: the sums of the chunks, and parts of the tree.
 */
#include "attrs/snapshot_check.h"

#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "attrs/snapshot_sum.h"
#include "lib/alloc.h"
#include "lib/threads.h"
#include "wire/session.h"

enum { NSEC_PER_SEC = 1000000000, NAME_LENGTH_MAX = 255 };

#define PART_ENTRIES (64 << 10)  /* of the tree are worth being looked at apart */
#define SHARED_LENGTH (1 << 20)  /* a file so long is worth further threads */
enum { PARTS_MAX = 32, THREADS_MOST = 4 };

struct check {
	struct attr_snapshot *snapshot;
	struct strbuf *why;
	const struct snapshot_chunk *toc;
	uint32_t chunk_count;
	const struct snapshot_chunk *chunks[CHUNK_IDS]; /* NULL: not in the file */
	struct dir_lengths *lengths; /* of all directories, zeroed; the parts of the tree fill them in */
};

/* Of each directory, known when it and its parent have been looked at. */
struct dir_lengths {
	uint8_t name, longest;   /* its own name, the longest of its entries' */
	uint16_t path;           /* filled by check_paths */
};

struct job {
	struct check check;      /* with a `why` of its own */
	bool (*run)(struct job *job);
	struct strbuf why;
	bool failed;
	uint32_t chunk;          /* whose sum it is */
	/* A part of the tree. It believes what its first directory says of its place, as long as that is in the file; the part
	 * before it has to end there. */
	uint32_t first, end;     /* directories first..end - 1, at least one */
	uint64_t content_bytes;  /* of its entries */
	/* Where the next directory's share of each chunk has to begin. */
	uint64_t next_entry, next_name, next_side;
	bool has_sides;          /* may the entries of the directory have side records? */
};

/* The message, and false. */
static bool bad(const struct check *check, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool bad(const struct check *check, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	strbuf_vaddf(check->why, fmt, args);
	va_end(args);
	return false;
}

static const void *content_of(const struct check *check, enum snapshot_chunk_id id)
{
	return check->chunks[id] ? check->snapshot->bytes + check->chunks[id]->offset : NULL;
}

static uint64_t count_of(const struct check *check, enum snapshot_chunk_id id)
{
	return check->chunks[id] ? check->chunks[id]->length / snapshot_chunk_kinds[id].record : 0;
}

/* --- header, table of contents, sums --- */

static bool check_header(struct check *check)
{
	const struct snapshot_header *header = (const void *)check->snapshot->bytes;
	unsigned char copy[sizeof *header + SNAPSHOT_CHUNKS_MAX * sizeof(struct snapshot_chunk)];
	size_t length = check->snapshot->length;

	if (length < sizeof *header)
		return bad(check, "header: the file is too short to have one");
	if ((uintptr_t)header % SNAPSHOT_ALIGNMENT)
		return bad(check, "header: not aligned in memory");
	if (memcmp(header->magic, SNAPSHOT_MAGIC, sizeof header->magic))
		return bad(check, "header: this is not an attr snapshot");
	if (header->version == __builtin_bswap32(SNAPSHOT_VERSION))
		return bad(check, "header: it was made on a machine with another byte order");
	if (header->version != SNAPSHOT_VERSION)
		return bad(check, "header: format version %" PRIu32 ", this program reads version %d", header->version,
			   SNAPSHOT_VERSION);
	if (header->file_size != length)
		return bad(check, "header: the file should have %" PRIu64 " bytes and has %zu", header->file_size, length);
	if (header->chunk_count < 1 || header->chunk_count > SNAPSHOT_CHUNKS_MAX)
		return bad(check, "header: %" PRIu32 " chunks, a snapshot has 1 to %d", header->chunk_count,
			   SNAPSHOT_CHUNKS_MAX);
	if (header->chunk_count > (length - sizeof *header) / sizeof(struct snapshot_chunk))
		return bad(check, "header: the table of contents goes beyond the end of the file");
	check->toc = (const void *)(header + 1);
	check->chunk_count = header->chunk_count;
	size_t front = sizeof *header + header->chunk_count * sizeof(struct snapshot_chunk);

	memcpy(copy, header, front);
	memset(copy + offsetof(struct snapshot_header, sum), 0, sizeof header->sum);
	if (XXH3_64bits(copy, front) != header->sum)
		return bad(check, "header: the sum of header and table of contents is wrong");
	return true;
}

/* The tag as text, for messages: what is not a letter or digit becomes a "?". */
static const char *tag_text(const struct snapshot_chunk *chunk, char text[9])
{
	size_t length = strnlen(chunk->tag, sizeof chunk->tag);

	for (size_t i = 0; i < length; i++) {
		char c = chunk->tag[i];
		bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		text[i] = is_plain ? c : '?';
	}
	text[length] = '\0';
	return text;
}

static bool is_zero(const unsigned char *bytes, uint64_t from, uint64_t to)
{
	while (from < to && !bytes[from])
		from++;
	return from == to;
}

/* One record of the table of contents; end: where the chunk before it ended. */
static bool check_chunk(struct check *check, const struct snapshot_chunk *chunk, uint64_t end)
{
	uint64_t size = check->snapshot->length;
	int id = 0;
	char tag[9];

	while (id < CHUNK_IDS && memcmp(snapshot_chunk_kinds[id].tag, chunk->tag, sizeof chunk->tag))
		id++;
	tag_text(chunk, tag);
	for (const struct snapshot_chunk *other = check->toc; other < chunk; other++)
		if (!memcmp(other->tag, chunk->tag, sizeof chunk->tag))
			return bad(check, "chunk %s: is there twice", tag);
	if (chunk->reserved || (chunk->flags & ~(uint32_t)SNAPSHOT_REQUIRED))
		return bad(check, "chunk %s: has flags that this program does not know", tag);
	if (id == CHUNK_IDS && (chunk->flags & SNAPSHOT_REQUIRED))
		return bad(check, "chunk %s: is required, and this program does not know it", tag);
	if (id < CHUNK_IDS && chunk->length % snapshot_chunk_kinds[id].record)
		return bad(check, "chunk %s: %" PRIu64 " bytes are not a multiple of %" PRIu32, tag, chunk->length,
			   snapshot_chunk_kinds[id].record);
	if (id < CHUNK_IDS)
		check->chunks[id] = chunk;
	if (chunk->offset % SNAPSHOT_ALIGNMENT)
		return bad(check, "chunk %s: does not begin at a multiple of %d", tag, SNAPSHOT_ALIGNMENT);
	if (chunk->offset > size || chunk->length > size - chunk->offset)
		return bad(check, "chunk %s: goes beyond the end of the file", tag);
	if (chunk->offset < end)
		return bad(check, "chunk %s: overlaps with what is before it", tag);
	if (!is_zero(check->snapshot->bytes, end, chunk->offset))
		return bad(check, "chunk %s: the bytes before it are not zero", tag);
	return true;
}

static bool check_sum(const struct check *check, const struct snapshot_chunk *chunk)
{
	char tag[9];

	if (XXH3_64bits(check->snapshot->bytes + chunk->offset, chunk->length) != chunk->sum)
		return bad(check, "chunk %s: the sum of its content is wrong", tag_text(chunk, tag));
	return true;
}

/* --- facts, devices, owners --- */

/* One text of the facts: where the next one begins, or NULL. */
static const char *take_text(const char *at, uint16_t length, const char **text)
{
	*text = at;
	return strnlen(at, (size_t)length + 1) == length ? at + length + 1 : NULL;
}

static bool check_facts(struct check *check)
{
	const struct snapshot_facts *facts = content_of(check, CHUNK_FACTS);
	struct attr_snapshot_facts *out = &check->snapshot->facts;
	const uint32_t errors = IOERR_GENERAL | IOERR_VANISHED | IOERR_DEL_LIMIT;

	if (check->chunks[CHUNK_FACTS]->length < sizeof *facts)
		return bad(check, "chunk facts: is too short");
	if ((facts->flags & ~(uint32_t)SNAPSHOT_FOLLOWED_LINKS) || (facts->io_error & ~errors) || facts->reserved)
		return bad(check, "chunk facts: has flags that this program does not know");
	if (facts->made_nsec >= NSEC_PER_SEC)
		return bad(check, "chunk facts: the time has %" PRIu32 " nanoseconds", facts->made_nsec);
	out->generation = facts->generation;
	out->made = facts->made;
	out->made_nsec = facts->made_nsec;
	out->root_dev = facts->root_dev;
	out->root_ino = facts->root_ino;
	out->entry_count = facts->entry_count;
	out->content_bytes = facts->content_bytes;
	out->file_size = check->snapshot->length;
	out->dir_count = facts->dir_count;
	out->io_error = (int)facts->io_error;
	out->followed_links = facts->flags & SNAPSHOT_FOLLOWED_LINKS;
	out->has_atimes = check->chunks[CHUNK_ATIMES];
	out->digests = (check->chunks[CHUNK_XXH128] ? ATTR_DIGEST_XXH128 : 0)
		       | (check->chunks[CHUNK_MD5] ? ATTR_DIGEST_MD5 : 0);
	size_t length = (size_t)facts->root_length + facts->version_length + facts->options_length + 3;
	const char *at = (const char *)(facts + 1);

	if (check->chunks[CHUNK_FACTS]->length != sizeof *facts + length)
		return bad(check, "chunk facts: has not the length that its texts need");
	at = take_text(at, facts->root_length, &out->root_path);
	if (at)
		at = take_text(at, facts->version_length, &out->version);
	if (at)
		at = take_text(at, facts->options_length, &out->options);
	if (!at)
		return bad(check, "chunk facts: a text is not as long as said");
	uint64_t entries = count_of(check, CHUNK_ENTRIES), dirs = count_of(check, CHUNK_DIRS);

	if (facts->entry_count != entries || entries < 1)
		return bad(check, "chunk facts: %" PRIu64 " entries, chunk entries has %" PRIu64, facts->entry_count, entries);
	if (facts->dir_count != dirs || dirs < 1)
		return bad(check, "chunk facts: %" PRIu32 " directories, chunk dirs has %" PRIu64, facts->dir_count, dirs);
	for (int id = CHUNK_ATIMES; id <= CHUNK_MD5; id++)
		if (check->chunks[id] && count_of(check, (enum snapshot_chunk_id)id) != entries)
			return bad(check, "chunk %s: %" PRIu64 " records for %" PRIu64 " entries", snapshot_chunk_kinds[id].tag,
				   count_of(check, (enum snapshot_chunk_id)id), entries);
	if ((check->chunks[CHUNK_XXH128] || check->chunks[CHUNK_MD5]) && !check->chunks[CHUNK_ORIGINS])
		return bad(check, "chunk origins: is missing, and there are digests");
	return true;
}

static bool check_owners(struct job *job)
{
	const struct check *check = &job->check;
	const struct snapshot_chunk *chunk = check->chunks[CHUNK_OWNERS];
	const unsigned char *bytes = check->snapshot->bytes;
	uint64_t number = 0, next, end = chunk ? chunk->offset + chunk->length : 0;
	bool is_new;

	for (uint64_t at = chunk ? chunk->offset : 0; at < end; at = next, number++) {
		const struct snapshot_owner *owner = (const void *)(bytes + at);
		uint64_t name = at + sizeof *owner;

		if (end - at < sizeof *owner)
			return bad(check, "chunk owners: ends in the middle of owner %" PRIu64, number);
		if (owner->is_group > 1)
			return bad(check, "chunk owners: owner %" PRIu64 " is neither a user nor a group", number);
		if (owner->length < 1 || owner->length > NAME_LENGTH_MAX)
			return bad(check, "chunk owners: owner %" PRIu64 " has a name of %u bytes", number, owner->length);
		next = (name + owner->length + 1 + 3) & ~(uint64_t)3;
		if (next > end)
			return bad(check, "chunk owners: ends in the middle of owner %" PRIu64, number);
		if (memchr(bytes + name, '\0', owner->length) || !is_zero(bytes, name + owner->length, next))
			return bad(check, "chunk owners: the name of owner %" PRIu64 " does not end where it should", number);
		hashmap_put(&check->snapshot->owners, owner->is_group, owner->id, name, &is_new);
		if (!is_new)
			return bad(check, "chunk owners: owner %" PRIu64 " is there twice", number);
	}
	return true;
}

/* --- what goes with every entry --- */

static bool check_atimes(struct job *job)
{
	const struct check *check = &job->check;
	const struct attr_snapshot *snapshot = check->snapshot;

	for (uint64_t i = 0; snapshot->atimes && i < snapshot->facts.entry_count; i++)
		if (snapshot->atimes[i] && entry_is_dir(&snapshot->entries[i]))
			return bad(check, "chunk atimes: record %" PRIu64 " is a directory's and not 0", i);
	return true;
}

static bool check_origins(struct job *job)
{
	const struct check *check = &job->check;
	const struct attr_snapshot *snapshot = check->snapshot;

	for (uint64_t i = 0; snapshot->origins && i < snapshot->facts.entry_count; i++) {
		const struct snapshot_origin *origin = &snapshot->origins[i];

		if (origin->digests & ~snapshot->facts.digests)
			return bad(check, "chunk origins: record %" PRIu64 " names digests that are not in the file", i);
		if (origin->digests && !entry_is_regular(&snapshot->entries[i]))
			return bad(check, "chunk origins: record %" PRIu64 " has digests and is not a regular file's", i);
		if (origin->ctime_nsec >= NSEC_PER_SEC)
			return bad(check, "chunk origins: record %" PRIu64 " has more than 999999999 nanoseconds", i);
	}
	return true;
}

static bool bad_entry(const struct job *part, enum snapshot_chunk_id id, uint32_t dir, uint32_t i, const char *problem)
{
	return bad(&part->check, "chunk %s: entry %" PRIu32 " of directory %" PRIu32 " %s", snapshot_chunk_kinds[id].tag, i,
		   dir, problem);
}

static bool bad_dir(const struct job *part, uint32_t dir, const char *problem)
{
	return bad(&part->check, "chunk dirs: directory %" PRIu32 " %s", dir, problem);
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

/* Is an entry in order after the one before it? Their names have been looked at. */
static bool is_after(const struct entries *view, const struct entry *before, const struct entry *entry)
{
	size_t shorter = before->name_length < entry->name_length ? before->name_length : entry->name_length;

	if (entry_is_dir(before) || entry_is_dir(entry))
		return entry_compare(view, before, view, entry) < 0;
	return memcmp(entry_name(view, before), entry_name(view, entry), shorter + 1) < 0;
}

static bool check_entry(struct job *part, uint32_t dir, const struct entries *view, uint32_t i)
{
	const struct attr_snapshot *snapshot = part->check.snapshot;
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
	const char *name = snapshot->names + part->next_name;
	size_t length = entry->name_length;

	if (!length)
		problem = "has an empty name";
	else if (length > NAME_LENGTH_MAX)
		problem = "has a name of more than 255 bytes";
	else if (length >= snapshot->names_length - part->next_name)
		problem = "has a name that goes beyond the end of the chunk";
	else if (name[length])
		problem = "has a name that does not end where it should";
	else if (name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')))
		problem = "is named . or ..";
	if (problem)
		return bad_entry(part, CHUNK_NAMES, dir, i, problem);
	part->next_name += length + 1;
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

static bool check_entries(struct job *part, uint32_t dir, const struct entries *view)
{
	uint16_t longest = 0;

	part->has_sides = false;
	for (uint32_t i = 0; i < view->count; i++) {
		if (!check_entry(part, dir, view, i))
			return false;
		if (view->items[i].name_length > longest)
			longest = view->items[i].name_length;
	}
	part->check.lengths[dir].longest = (uint8_t)longest;
	/* What the names, one after the other, hold besides the NULs where they should be. */
	uint64_t length = part->next_name - part->check.snapshot->dirs[dir].names;
	bool is_plain = !memchr(view->pool, '/', length) && count_zeros(view->pool, length) == view->count;

	for (uint32_t i = 0; !is_plain && i < view->count; i++) {
		const struct entry *entry = &view->items[i];

		if (memchr(entry_name(view, entry), '\0', entry->name_length))
			return bad_entry(part, CHUNK_NAMES, dir, i, "has a name that does not end where it should");
		if (memchr(entry_name(view, entry), '/', entry->name_length))
			return bad_entry(part, CHUNK_NAMES, dir, i, "has a slash in its name");
	}
	/* No name stands for a directory and for something else. */
	struct entries others = *view;

	others.count = part->check.snapshot->dirs[dir].leading;
	for (uint32_t i = others.count; others.count && i < view->count; i++)
		if (entries_find(&others, entry_name(view, &view->items[i]), false) >= 0)
			return bad_entry(part, CHUNK_NAMES, dir, i, "has the name of another entry");
	return true;
}

/* --- side records --- */

static bool check_side(struct job *part, uint32_t dir, const struct entry *entry, uint32_t i)
{
	const struct attr_snapshot *snapshot = part->check.snapshot;
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
	if (!entry_is_symlink(entry))
		return true;
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

/* --- the shape of the tree --- */

static const char *dir_problem(const struct job *part, uint32_t number)
{
	const struct attr_snapshot *snapshot = part->check.snapshot;
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

static bool check_dir(struct job *part, uint32_t number)
{
	const struct attr_snapshot *snapshot = part->check.snapshot;
	const struct snapshot_dir *dir = &snapshot->dirs[number];
	const char *problem = dir_problem(part, number);
	uint32_t below = number + 1;

	if (problem)
		return bad_dir(part, number, problem);
	struct entries view = {
		.items = (struct entry *)(snapshot->entries + dir->first_entry), .count = dir->count,
		.pool = (char *)(snapshot->names + dir->names),
	};

	if (!check_entries(part, number, &view))
		return false;
	/* The directories among the entries are the ones below this one, one after the other up to its subtree_end. Seen from
	 * the root on, this leaves no directory out and gives each one parent. */
	for (uint32_t i = dir->leading; i < view.count; i++) {
		const struct snapshot_dir *child = &snapshot->dirs[below];

		if (view.items[i].dir != below || below >= dir->subtree_end)
			return bad_entry(part, CHUNK_ENTRIES, number, i, "does not lead to the next directory");
		if (child->parent != number || child->parent_entry != i)
			return bad_dir(part, below, "does not lead back to its entry");
		if (child->subtree_end <= below || child->subtree_end > dir->subtree_end)
			return bad_dir(part, below, "has a subtree that ends in the wrong place");
		part->check.lengths[below].name = (uint8_t)view.items[i].name_length;
		below = child->subtree_end;
	}
	if (below != dir->subtree_end)
		return bad_dir(part, number, "has a subtree that ends in the wrong place");
	for (uint32_t i = 0; part->has_sides && i < view.count; i++)
		if (!check_side(part, number, &view.items[i], i))
			return false;
	if (part->next_name - dir->names > UINT32_MAX)
		return bad_dir(part, number, "has 4 GiB of names or more");
	part->next_entry += dir->count;
	return true;
}

/* Entry 0, ".", and the record of the directory that it stands for. */
static bool check_root(struct job *part)
{
	const struct attr_snapshot *snapshot = part->check.snapshot;
	const struct entry *root = snapshot->entries;
	struct entry same = *root;

	same.dir = entry_is_dir(root); /* as any other directory's */
	const char *problem = entry_problem(&same);

	if (problem)
		return bad(&part->check, "chunk entries: the root's entry %s", problem);
	if (!entry_is_dir(root) || root->dir || root->side)
		return bad(&part->check, "chunk entries: the root's entry is not that of directory 0");
	if (root->name || root->name_length != 1 || snapshot->names_length < 2 || memcmp(snapshot->names, ".", 2))
		return bad(&part->check, "chunk names: the root's name is not \".\"");
	if (snapshot->dirs[0].parent || snapshot->dirs[0].parent_entry)
		return bad_dir(part, 0, "has a parent");
	if (snapshot->dirs[0].subtree_end != snapshot->facts.dir_count)
		return bad_dir(part, 0, "has a subtree that ends in the wrong place");
	part->next_entry = 1;
	part->next_name = 2;
	return true;
}

static bool check_part(struct job *part)
{
	const struct attr_snapshot *snapshot = part->check.snapshot;
	const struct snapshot_dir *dir = &snapshot->dirs[part->first];

	/* A part that does not begin with the root begins where its directory says, as long as that is in the file. */
	if (part->first) {
		if (dir->first_entry > snapshot->facts.entry_count || dir->names > snapshot->names_length
		    || dir->first_side > snapshot->side_count)
			return bad_dir(part, part->first, "begins beyond the end of a chunk");
		part->next_entry = dir->first_entry;
		part->next_name = dir->names;
		part->next_side = dir->first_side;
	} else if (!check_root(part)) {
		return false;
	}
	for (uint32_t number = part->first; number < part->end; number++)
		if (!check_dir(part, number))
			return false;
	/* It ends where the next one begins; the last one has used up all of the three chunks that the directories share. */
	if (part->end < snapshot->facts.dir_count) {
		const char *problem = dir_problem(part, part->end);
		return !problem || bad_dir(part, part->end, problem);
	}
	if (part->next_entry != snapshot->facts.entry_count)
		return bad(&part->check, "chunk entries: has entries that belong to no directory");
	if (part->next_name != snapshot->names_length)
		return bad(&part->check, "chunk names: has bytes that belong to no entry");
	if (part->next_side != snapshot->side_count)
		return bad(&part->check, "chunk sides: has records that belong to no entry");
	return true;
}

/* With all parts done: no path is too long for the system. */
static bool check_paths(const struct check *check)
{
	const struct attr_snapshot *snapshot = check->snapshot;

	for (uint32_t i = 0; i < snapshot->facts.dir_count; i++) {
		struct dir_lengths *dir = &check->lengths[i];
		size_t above = check->lengths[snapshot->dirs[i].parent].path;

		dir->path = (uint16_t)(i ? above + (above > 0) + dir->name : 0);
		if (dir->path + (dir->path > 0) + dir->longest >= PATH_MAX)
			return bad(check, "chunk names: directory %" PRIu32 " has a path of %d bytes or more in it", i,
				   PATH_MAX);
	}
	return true;
}

/* --- sharing the work --- */

struct jobs {
	struct job list[SNAPSHOT_CHUNKS_MAX + PARTS_MAX + 3];
	int count;
	atomic_bool failed;
};

static bool sum_job(struct job *job)
{
	return check_sum(&job->check, &job->check.toc[job->chunk]);
}

static struct job *add_job(struct jobs *jobs, const struct check *check, bool (*run)(struct job *job))
{
	struct job *job = &jobs->list[jobs->count++];

	job->check = *check;
	job->check.why = &job->why;
	job->run = run;
	return job;
}

/* Jobs begin in order, so every one before the first that fails is done. */
static void do_job(void *jobs_void, int number)
{
	struct jobs *jobs = jobs_void;
	struct job *job = &jobs->list[number];

	if (atomic_load(&jobs->failed))
		return;
	job->failed = !job->run(job);
	if (job->failed)
		atomic_store(&jobs->failed, true);
}

static bool check_contents(struct check *check)
{
	const struct attr_snapshot *snapshot = check->snapshot;
	int threads = snapshot->length < SHARED_LENGTH ? 1 : threads_useful(THREADS_MOST);
	struct jobs *jobs = xcalloc(1, sizeof *jobs);
	uint64_t parts = snapshot->facts.entry_count / PART_ENTRIES + 1, dirs = snapshot->facts.dir_count;
	uint64_t content_bytes = 0;
	bool good = true;

	if (parts > PARTS_MAX)
		parts = PARTS_MAX;
	if (parts > dirs)
		parts = dirs;
	check->lengths = xcalloc(snapshot->facts.dir_count, sizeof *check->lengths);
	/* In the order in which problems are reported. */
	for (uint32_t i = 0; i < check->chunk_count; i++)
		add_job(jobs, check, sum_job)->chunk = i;
	add_job(jobs, check, check_owners);
	for (uint64_t i = 0; i < parts; i++) {
		struct job *job = add_job(jobs, check, check_part);

		job->first = (uint32_t)(dirs * i / parts);
		job->end = (uint32_t)(dirs * (i + 1) / parts);
	}
	add_job(jobs, check, check_atimes);
	add_job(jobs, check, check_origins);
	threads_share(threads, jobs->count, do_job, jobs);
	/* The first problem, or none; and what the parts have counted. */
	for (int i = 0; i < jobs->count; i++) {
		struct job *job = &jobs->list[i];

		if (good && job->failed)
			good = bad(check, "%s", strbuf_text(&job->why));
		content_bytes += job->content_bytes;
		strbuf_free(&job->why);
	}
	if (good && content_bytes != snapshot->facts.content_bytes)
		good = bad(check, "chunk facts: %" PRIu64 " bytes of content, the entries have %" PRIu64,
			   snapshot->facts.content_bytes, content_bytes);
	good = good && check_paths(check);
	free(check->lengths);
	free(jobs);
	return good;
}

bool attr_snapshot_check(struct attr_snapshot *snapshot, struct strbuf *why)
{
	struct check check = { .snapshot = snapshot, .why = why };

	if (!check_header(&check))
		return false;
	uint64_t end = sizeof(struct snapshot_header) + check.chunk_count * sizeof(struct snapshot_chunk);

	for (uint32_t i = 0; i < check.chunk_count; i++) {
		if (!check_chunk(&check, &check.toc[i], end))
			return false;
		end = check.toc[i].offset + check.toc[i].length;
	}
	if (!is_zero(snapshot->bytes, end, snapshot->length))
		return bad(&check, "header: the bytes after the last chunk are not zero");
	for (int id = 0; id < CHUNK_IDS; id++)
		if (snapshot_chunk_is_required((enum snapshot_chunk_id)id) && !check.chunks[id])
			return bad(&check, "chunk %s: is missing", snapshot_chunk_kinds[id].tag);
	if (!check_sum(&check, check.chunks[CHUNK_FACTS]) || !check_facts(&check))
		return false;
	for (int id = 0; id < CHUNK_IDS; id++)
		snapshot->chunks[id] = content_of(&check, (enum snapshot_chunk_id)id);
	snapshot->dirs = snapshot->chunks[CHUNK_DIRS];
	snapshot->entries = snapshot->chunks[CHUNK_ENTRIES];
	snapshot->sides = snapshot->chunks[CHUNK_SIDES];
	snapshot->side_count = count_of(&check, CHUNK_SIDES);
	snapshot->names = snapshot->chunks[CHUNK_NAMES];
	snapshot->names_length = count_of(&check, CHUNK_NAMES);
	snapshot->devices = snapshot->chunks[CHUNK_DEVICES];
	snapshot->device_count = count_of(&check, CHUNK_DEVICES);
	snapshot->atimes = snapshot->chunks[CHUNK_ATIMES];
	snapshot->origins = snapshot->chunks[CHUNK_ORIGINS];
	return check_contents(&check);
}
