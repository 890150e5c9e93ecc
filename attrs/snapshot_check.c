/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The check of an attr snapshot, once, when it is opened: from the header inwards, each step on what the steps before have
 * established. Nothing of the file is used before it has been looked at, and nothing is looked at twice.
 */
#include "attrs/snapshot_private.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "lib/alloc.h"
#include "wire/session.h"

enum chunk_id { FACTS, DIRS, ENTRIES, SIDES, NAMES, DEVICES, OWNERS, ATIMES, ORIGINS, XXH128, MD5, CHUNK_IDS };

/* The chunks that this version knows, and the size of their records; 1: bytes. */
static const struct known_chunk {
	char tag[8];
	uint32_t record;
	bool is_required;
} known[CHUNK_IDS] = {
	[FACTS] = { SNAPSHOT_TAG_FACTS, 1, true },
	[DIRS] = { SNAPSHOT_TAG_DIRS, sizeof(struct snapshot_dir), true },
	[ENTRIES] = { SNAPSHOT_TAG_ENTRIES, sizeof(struct entry), true },
	[SIDES] = { SNAPSHOT_TAG_SIDES, sizeof(struct snapshot_side), true },
	[NAMES] = { SNAPSHOT_TAG_NAMES, 1, true },
	[DEVICES] = { SNAPSHOT_TAG_DEVICES, sizeof(uint64_t), true },
	[OWNERS] = { SNAPSHOT_TAG_OWNERS, 1, false },
	[ATIMES] = { SNAPSHOT_TAG_ATIMES, sizeof(int64_t), false },
	[ORIGINS] = { SNAPSHOT_TAG_ORIGINS, sizeof(struct snapshot_origin), false },
	[XXH128] = { SNAPSHOT_TAG_XXH128, 16, false },
	[MD5] = { SNAPSHOT_TAG_MD5, 16, false },
};

enum { NSEC_PER_SEC = 1000000000, NAME_LENGTH_MAX = 255 };

struct check {
	struct attr_snapshot *snapshot;
	struct strbuf *why;
	const struct snapshot_chunk *toc;
	uint32_t chunk_count;
	const struct snapshot_chunk *chunks[CHUNK_IDS]; /* NULL: not in the file */
	/* Where the next directory's share of each chunk has to begin. */
	uint64_t next_entry, next_name, next_side;
	uint64_t content_bytes;
	uint16_t *path_lengths;  /* of every directory that an entry has led to so far */
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

static bool bad_entry(const struct check *check, enum chunk_id chunk, uint32_t dir, uint32_t i, const char *problem)
{
	return bad(check, "chunk %s: entry %" PRIu32 " of directory %" PRIu32 " %s", known[chunk].tag, i, dir, problem);
}

static bool bad_dir(const struct check *check, uint32_t dir, const char *problem)
{
	return bad(check, "chunk dirs: directory %" PRIu32 " %s", dir, problem);
}

static const void *content_of(const struct check *check, enum chunk_id id)
{
	return check->chunks[id] ? check->snapshot->bytes + check->chunks[id]->offset : NULL;
}

static uint64_t count_of(const struct check *check, enum chunk_id id)
{
	return check->chunks[id] ? check->chunks[id]->length / known[id].record : 0;
}

/* --- header, table of contents, sums --- */

static bool check_header_sum(const struct check *check, const struct snapshot_header *header)
{
	unsigned char copy[sizeof *header + SNAPSHOT_CHUNKS_MAX * sizeof(struct snapshot_chunk)];
	size_t length = sizeof *header + header->chunk_count * sizeof(struct snapshot_chunk);

	memcpy(copy, header, length);
	memset(copy + offsetof(struct snapshot_header, sum), 0, sizeof header->sum);
	if (XXH3_64bits(copy, length) != header->sum)
		return bad(check, "header: the sum of header and table of contents is wrong");
	return true;
}

static bool check_header(struct check *check)
{
	const struct snapshot_header *header = (const void *)check->snapshot->bytes;
	size_t length = check->snapshot->length;

	if (length < sizeof *header)
		return bad(check, "header: the file is too short to have one");
	if ((uintptr_t)header % SNAPSHOT_ALIGNMENT)
		return bad(check, "header: not aligned in memory");
	if (memcmp(header->magic, SNAPSHOT_MAGIC, sizeof header->magic))
		return bad(check, "header: this is not an attr snapshot");
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
	return check_header_sum(check, header);
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

/* Place of one chunk, given where the one before it ended. */
static bool check_place(const struct check *check, const struct snapshot_chunk *chunk, uint64_t end)
{
	uint64_t size = check->snapshot->length;
	char tag[9];

	tag_text(chunk, tag);
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

static enum chunk_id id_of(const struct snapshot_chunk *chunk)
{
	int id = 0;

	while (id < CHUNK_IDS && memcmp(known[id].tag, chunk->tag, sizeof chunk->tag))
		id++;
	return (enum chunk_id)id;
}

/* What one record of the table of contents says, but for the place. */
static bool bind_chunk(struct check *check, const struct snapshot_chunk *chunk)
{
	enum chunk_id id = id_of(chunk);
	char tag[9];

	tag_text(chunk, tag);
	for (const struct snapshot_chunk *other = check->toc; other < chunk; other++)
		if (!memcmp(other->tag, chunk->tag, sizeof chunk->tag))
			return bad(check, "chunk %s: is there twice", tag);
	if (chunk->reserved || (chunk->flags & ~(uint32_t)SNAPSHOT_REQUIRED))
		return bad(check, "chunk %s: has flags that this program does not know", tag);
	if (id == CHUNK_IDS && (chunk->flags & SNAPSHOT_REQUIRED))
		return bad(check, "chunk %s: is required, and this program does not know it", tag);
	if (id == CHUNK_IDS)
		return true;
	if (chunk->length % known[id].record)
		return bad(check, "chunk %s: %" PRIu64 " bytes are not a multiple of %" PRIu32, tag, chunk->length,
			   known[id].record);
	check->chunks[id] = chunk;
	return true;
}

static bool check_table(struct check *check)
{
	const struct attr_snapshot *snapshot = check->snapshot;
	uint64_t end = sizeof(struct snapshot_header) + check->chunk_count * sizeof(struct snapshot_chunk);

	for (uint32_t i = 0; i < check->chunk_count; i++) {
		const struct snapshot_chunk *chunk = &check->toc[i];

		if (!bind_chunk(check, chunk) || !check_place(check, chunk, end))
			return false;
		end = chunk->offset + chunk->length;
	}
	if (!is_zero(snapshot->bytes, end, snapshot->length))
		return bad(check, "header: the bytes after the last chunk are not zero");
	for (int id = 0; id < CHUNK_IDS; id++)
		if (known[id].is_required && !check->chunks[id])
			return bad(check, "chunk %s: is missing", known[id].tag);
	return true;
}

static bool check_sums(const struct check *check)
{
	for (uint32_t i = 0; i < check->chunk_count; i++) {
		const struct snapshot_chunk *chunk = &check->toc[i];
		char tag[9];

		if (XXH3_64bits(check->snapshot->bytes + chunk->offset, chunk->length) != chunk->sum)
			return bad(check, "chunk %s: the sum of its content is wrong", tag_text(chunk, tag));
	}
	return true;
}

/* --- facts, devices, owners --- */

/* One text of the facts: where the next one begins, or NULL. */
static const char *take_text(const char *at, uint16_t length, const char **text)
{
	*text = at;
	return strnlen(at, (size_t)length + 1) == length ? at + length + 1 : NULL;
}

static bool check_texts(struct check *check, const struct snapshot_facts *facts)
{
	struct attr_snapshot_facts *out = &check->snapshot->facts;
	size_t length = (size_t)facts->root_length + facts->version_length + facts->options_length + 3;
	const char *at = (const char *)(facts + 1);

	if (check->chunks[FACTS]->length != sizeof *facts + length)
		return bad(check, "chunk facts: has not the length that its texts need");
	at = take_text(at, facts->root_length, &out->root_path);
	if (at)
		at = take_text(at, facts->version_length, &out->version);
	if (at)
		at = take_text(at, facts->options_length, &out->options);
	if (!at)
		return bad(check, "chunk facts: a text is not as long as said");
	return true;
}

static bool check_counts(const struct check *check, const struct snapshot_facts *facts)
{
	uint64_t entries = count_of(check, ENTRIES), dirs = count_of(check, DIRS);

	if (facts->entry_count != entries || entries < 1)
		return bad(check, "chunk facts: %" PRIu64 " entries, chunk entries has %" PRIu64, facts->entry_count, entries);
	if (facts->dir_count != dirs || dirs < 1)
		return bad(check, "chunk facts: %" PRIu32 " directories, chunk dirs has %" PRIu64, facts->dir_count, dirs);
	for (int id = ATIMES; id < CHUNK_IDS; id++)
		if (check->chunks[id] && count_of(check, (enum chunk_id)id) != entries)
			return bad(check, "chunk %s: %" PRIu64 " records for %" PRIu64 " entries", known[id].tag,
				   count_of(check, (enum chunk_id)id), entries);
	if ((check->chunks[XXH128] || check->chunks[MD5]) && !check->chunks[ORIGINS])
		return bad(check, "chunk origins: is missing, and there are digests");
	return true;
}

static bool check_facts(struct check *check)
{
	const struct snapshot_facts *facts = content_of(check, FACTS);
	struct attr_snapshot_facts *out = &check->snapshot->facts;
	const uint32_t errors = IOERR_GENERAL | IOERR_VANISHED | IOERR_DEL_LIMIT;

	if (check->chunks[FACTS]->length < sizeof *facts)
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
	out->has_atimes = check->chunks[ATIMES];
	out->digests = (check->chunks[XXH128] ? ATTR_DIGEST_XXH128 : 0) | (check->chunks[MD5] ? ATTR_DIGEST_MD5 : 0);
	return check_texts(check, facts) && check_counts(check, facts);
}

static void set_pointers(const struct check *check)
{
	struct attr_snapshot *snapshot = check->snapshot;

	snapshot->dirs = content_of(check, DIRS);
	snapshot->entries = content_of(check, ENTRIES);
	snapshot->sides = content_of(check, SIDES);
	snapshot->side_count = count_of(check, SIDES);
	snapshot->names = content_of(check, NAMES);
	snapshot->names_length = count_of(check, NAMES);
	snapshot->devices = content_of(check, DEVICES);
	snapshot->device_count = count_of(check, DEVICES);
	snapshot->atimes = content_of(check, ATIMES);
	snapshot->origins = content_of(check, ORIGINS);
	snapshot->xxh128 = content_of(check, XXH128);
	snapshot->md5 = content_of(check, MD5);
}

/* Owner `number` at *offset of the file, below `end`. */
static bool check_owner(const struct check *check, uint64_t number, uint64_t *offset, uint64_t end)
{
	const unsigned char *bytes = check->snapshot->bytes;
	const struct snapshot_owner *owner = (const void *)(bytes + *offset);
	uint64_t name = *offset + sizeof *owner, next;
	bool is_new;

	if (end - *offset < sizeof *owner)
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
	*offset = next;
	return true;
}

static bool check_owners(const struct check *check)
{
	const struct snapshot_chunk *chunk = check->chunks[OWNERS];
	uint64_t number = 0;

	for (uint64_t at = chunk ? chunk->offset : 0, end = chunk ? at + chunk->length : 0; at < end; number++)
		if (!check_owner(check, number, &at, end))
			return false;
	return true;
}

/* --- entries --- */

static bool needs_side(const struct entry *entry)
{
	return entry_is_symlink(entry) || entry_is_device(entry) || (entry->flags & ENTRY_HARD_LINKED);
}

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
	if (memchr(name, '\0', (size_t)length + 1) != name + length)
		return "has a name that does not end where it should";
	if (memchr(name, '/', length))
		return "has a slash in its name";
	if (name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')))
		return "is named . or ..";
	return NULL;
}

static bool check_entry(struct check *check, uint32_t dir, const struct entries *view, uint32_t i)
{
	const struct attr_snapshot *snapshot = check->snapshot;
	const struct entry *entry = &view->items[i];
	const char *problem = entry_problem(entry);

	if (problem)
		return bad_entry(check, ENTRIES, dir, i, problem);
	if (snapshot->dirs[dir].names + entry->name != check->next_name)
		return bad_entry(check, NAMES, dir, i, "has a name that is not where it should be");
	problem = name_problem(snapshot, check->next_name, entry->name_length);
	if (problem)
		return bad_entry(check, NAMES, dir, i, problem);
	check->next_name += entry->name_length + 1u;
	if (entry_is_dir(entry) != (i >= snapshot->dirs[dir].leading))
		return bad_dir(check, dir, "has its first directory not where it says");
	if (i > 0 && entry_compare(view, &view->items[i - 1], view, entry) >= 0)
		return bad_entry(check, ENTRIES, dir, i, "is not in order");
	if (entry_is_regular(entry))
		check->content_bytes += entry->size;
	return true;
}

/* No name stands for a directory and for something else. */
static bool check_unique(const struct check *check, uint32_t dir, const struct entries *view)
{
	struct entries others = *view;

	others.count = check->snapshot->dirs[dir].leading;
	for (uint32_t i = others.count; others.count && i < view->count; i++)
		if (entries_find(&others, entry_name(view, &view->items[i]), false) >= 0)
			return bad_entry(check, NAMES, dir, i, "has the name of another entry");
	return true;
}

static bool check_entries(struct check *check, uint32_t dir, const struct entries *view)
{
	size_t path = check->path_lengths[dir], longest = 0;

	for (uint32_t i = 0; i < view->count; i++) {
		if (!check_entry(check, dir, view, i))
			return false;
		if (view->items[i].name_length > longest)
			longest = view->items[i].name_length;
	}
	if (path + (path > 0) + longest >= PATH_MAX)
		return bad(check, "chunk names: directory %" PRIu32 " has a path of %d bytes or more in it", dir, PATH_MAX);
	return check_unique(check, dir, view);
}

/* --- side records --- */

static bool check_target(struct check *check, uint32_t dir, uint32_t i, const struct snapshot_side *side)
{
	const struct attr_snapshot *snapshot = check->snapshot;
	const char *target = snapshot->names + check->next_name, *problem = NULL;

	if (!side->b)
		problem = "has an empty target";
	else if (side->b >= PATH_MAX)
		problem = "has a target of more than 4095 bytes";
	else if (snapshot->dirs[dir].names + side->a != check->next_name)
		problem = "has a target that is not where it should be";
	else if (side->b >= snapshot->names_length - check->next_name)
		problem = "has a target that goes beyond the end of the chunk";
	else if (memchr(target, '\0', (size_t)side->b + 1) != target + side->b)
		problem = "has a target that does not end where it should";
	if (problem)
		return bad_entry(check, NAMES, dir, i, problem);
	check->next_name += side->b + 1u;
	return true;
}

static bool check_side(struct check *check, uint32_t dir, const struct entry *entry, uint32_t i)
{
	const struct attr_snapshot *snapshot = check->snapshot;
	const struct snapshot_side *side = snapshot->sides + check->next_side;
	uint64_t number = check->next_side - snapshot->dirs[dir].first_side + 1;

	if (!needs_side(entry))
		return !entry->side || bad_entry(check, ENTRIES, dir, i, "has a side record without need");
	if (entry->side != number || check->next_side >= snapshot->side_count)
		return bad_entry(check, SIDES, dir, i, "has a record that is not where it should be");
	if (!(entry->flags & ENTRY_HARD_LINKED) && side->ino)
		return bad_entry(check, SIDES, dir, i, "has an inode without hard links");
	if (!entry_is_symlink(entry) && !entry_is_device(entry) && (side->a || side->b))
		return bad_entry(check, SIDES, dir, i, "has numbers without need");
	check->next_side++;
	return !entry_is_symlink(entry) || check_target(check, dir, i, side);
}

static bool check_sides(struct check *check, uint32_t dir, const struct entries *view)
{
	for (uint32_t i = 0; i < view->count; i++)
		if (!check_side(check, dir, &view->items[i], i))
			return false;
	return true;
}

/* --- the shape of the tree --- */

/*
 * The directories among the entries are the ones below `dir`, one after the other up to its subtree_end. Seen from the root
 * on, this leaves no directory out and gives each one parent.
 */
static bool check_children(struct check *check, uint32_t dir, const struct entries *view)
{
	const struct snapshot_dir *dirs = check->snapshot->dirs;
	uint32_t end = dirs[dir].subtree_end, child = dir + 1;
	size_t path = check->path_lengths[dir];

	for (uint32_t i = dirs[dir].leading; i < view->count; i++) {
		const struct entry *entry = &view->items[i];

		if (entry->dir != child || child >= end)
			return bad_entry(check, ENTRIES, dir, i, "does not lead to the next directory");
		if (dirs[child].parent != dir || dirs[child].parent_entry != i)
			return bad_dir(check, child, "does not lead back to its entry");
		if (dirs[child].subtree_end <= child || dirs[child].subtree_end > end)
			return bad_dir(check, child, "has a subtree that ends in the wrong place");
		check->path_lengths[child] = (uint16_t)(path + (path > 0) + entry->name_length);
		child = dirs[child].subtree_end;
	}
	if (child != end)
		return bad_dir(check, dir, "has a subtree that ends in the wrong place");
	return true;
}

static const char *dir_problem(const struct check *check, const struct snapshot_dir *dir)
{
	const struct attr_snapshot *snapshot = check->snapshot;

	if (dir->first_entry != check->next_entry)
		return "does not begin with the entry after those of the directory before";
	if (dir->count > snapshot->facts.entry_count - check->next_entry || dir->count > INT32_MAX)
		return "has more entries than there are";
	if (dir->leading > dir->count)
		return "has more entries before its first directory than it has at all";
	if (dir->names != check->next_name)
		return "does not begin with the name after those of the directory before";
	if (dir->first_side != check->next_side)
		return "does not begin with the side record after those of the directory before";
	if (dir->device >= snapshot->device_count)
		return "is on a device that is not in chunk devices";
	if (dir->ctime < 0)
		return "was changed before 1970";
	return NULL;
}

static bool check_dir(struct check *check, uint32_t number)
{
	const struct attr_snapshot *snapshot = check->snapshot;
	const struct snapshot_dir *dir = &snapshot->dirs[number];
	const char *problem = dir_problem(check, dir);

	if (problem)
		return bad_dir(check, number, problem);
	struct entries view = {
		.items = (struct entry *)(snapshot->entries + dir->first_entry), .count = dir->count,
		.pool = (char *)(snapshot->names + dir->names),
	};

	if (!check_entries(check, number, &view) || !check_children(check, number, &view) || !check_sides(check, number, &view))
		return false;
	if (check->next_name - dir->names > UINT32_MAX)
		return bad_dir(check, number, "has 4 GiB of names or more");
	check->next_entry += dir->count;
	return true;
}

/* Entry 0, ".", and the record of the directory that it stands for. */
static bool check_root(struct check *check)
{
	const struct attr_snapshot *snapshot = check->snapshot;
	const struct entry *root = snapshot->entries;
	struct entry same = *root;

	same.dir = entry_is_dir(root); /* as any other directory's */
	const char *problem = entry_problem(&same);

	if (problem)
		return bad(check, "chunk entries: the root's entry %s", problem);
	if (!entry_is_dir(root) || root->dir || root->side)
		return bad(check, "chunk entries: the root's entry is not that of directory 0");
	if (root->name || root->name_length != 1 || snapshot->names_length < 2 || memcmp(snapshot->names, ".", 2))
		return bad(check, "chunk names: the root's name is not \".\"");
	if (snapshot->dirs[0].parent || snapshot->dirs[0].parent_entry)
		return bad_dir(check, 0, "has a parent");
	if (snapshot->dirs[0].subtree_end != snapshot->facts.dir_count)
		return bad_dir(check, 0, "has a subtree that ends in the wrong place");
	check->next_entry = 1;
	check->next_name = 2;
	return true;
}

/* The directories have used up all of the three chunks that they share. */
static bool check_used_up(const struct check *check)
{
	const struct attr_snapshot *snapshot = check->snapshot;

	if (check->next_entry != snapshot->facts.entry_count)
		return bad(check, "chunk entries: has entries that belong to no directory");
	if (check->next_name != snapshot->names_length)
		return bad(check, "chunk names: has bytes that belong to no entry");
	if (check->next_side != snapshot->side_count)
		return bad(check, "chunk sides: has records that belong to no entry");
	if (check->content_bytes != snapshot->facts.content_bytes)
		return bad(check, "chunk facts: %" PRIu64 " bytes of content, the entries have %" PRIu64,
			   snapshot->facts.content_bytes, check->content_bytes);
	return true;
}

static bool check_tree(struct check *check)
{
	uint32_t count = check->snapshot->facts.dir_count;
	bool good = check_root(check);

	if (!good)
		return false;
	check->path_lengths = xcalloc(count, sizeof *check->path_lengths);
	for (uint32_t dir = 0; good && dir < count; dir++)
		good = check_dir(check, dir);
	free(check->path_lengths);
	return good && check_used_up(check);
}

/* --- what goes with every entry --- */

static bool check_atimes(const struct check *check)
{
	const struct attr_snapshot *snapshot = check->snapshot;

	for (uint64_t i = 0; snapshot->atimes && i < snapshot->facts.entry_count; i++)
		if (snapshot->atimes[i] && entry_is_dir(&snapshot->entries[i]))
			return bad(check, "chunk atimes: record %" PRIu64 " is a directory's and not 0", i);
	return true;
}

static bool check_origins(const struct check *check)
{
	const struct attr_snapshot *snapshot = check->snapshot;

	for (uint64_t i = 0; snapshot->origins && i < snapshot->facts.entry_count; i++) {
		const struct snapshot_origin *origin = &snapshot->origins[i];

		if (origin->digests & ~snapshot->facts.digests)
			return bad(check, "chunk origins: record %" PRIu64 " tells of digests that are not in the file", i);
		if (origin->digests && !entry_is_regular(&snapshot->entries[i]))
			return bad(check, "chunk origins: record %" PRIu64 " has digests and is not a regular file's", i);
		if (origin->ctime_nsec >= NSEC_PER_SEC)
			return bad(check, "chunk origins: record %" PRIu64 " has more than 999999999 nanoseconds", i);
	}
	return true;
}

bool attr_snapshot_check(struct attr_snapshot *snapshot, struct strbuf *why)
{
	struct check check = { .snapshot = snapshot, .why = why };

	if (!check_header(&check) || !check_table(&check) || !check_sums(&check) || !check_facts(&check))
		return false;
	set_pointers(&check);
	return check_owners(&check) && check_tree(&check) && check_atimes(&check) && check_origins(&check);
}
