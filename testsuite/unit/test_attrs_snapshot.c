/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading attr snapshots: what is in them, and that each thing that can be wrong with one is refused by its name. */
#include "attrs/entry.h"
#include "attrs/snapshot.h"

#include "attrs/snapshot_write.h"
#include "fs_tree.h"
#include "snapshot_support.h"
#include "snapshot_walk.h"

enum { ALL_DIGESTS = ATTR_DIGEST_XXH128 | ATTR_DIGEST_MD5 };

static struct attr_snapshot *open_sample(const struct sample *sample)
{
	struct strbuf why = STRBUF_INIT;
	struct attr_snapshot *snapshot = snapshot_from_memory(sample->bytes, sample->length, &why);

	assert_string_equal(strbuf_text(&why), "");
	assert_non_null(snapshot);
	strbuf_free(&why);
	return snapshot;
}

/* The directory and the view that hold an entry, found by path from the root on. */
static const struct entry *find(const struct attr_snapshot *snapshot, const char *path, struct entries *view)
{
	char name[256];

	*view = attr_snapshot_view(snapshot, 0);
	for (;;) {
		size_t length = strcspn(path, "/");
		bool is_last = !path[length];

		memcpy(name, path, length);
		name[length] = '\0';
		int32_t at = entries_find(view, name, true);
		if (at < 0 && is_last)
			at = entries_find(view, name, false);
		assert_true(at >= 0);
		if (is_last)
			return &view->items[at];
		*view = attr_snapshot_view(snapshot, view->items[at].dir);
		path += length + 1;
	}
}

/* --- what is in it --- */

UNIT_TEST(facts_say_what_the_header_says)
{
	struct sample sample = sample_new(ALL_DIGESTS, false);
	struct attr_snapshot *snapshot = open_sample(&sample);
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);

	assert_int_equal(facts->generation, 9);
	assert_int_equal(facts->made, 1700000000);
	assert_int_equal(facts->made_nsec, 42);
	assert_int_equal(facts->root_dev, SAMPLE_DEV);
	assert_int_equal(facts->root_ino, 100);
	assert_int_equal(facts->entry_count, SAMPLE_NODES + 1);
	assert_int_equal(facts->content_bytes, 3 + 1000 + 5 + 123456 + 1 + 7 + 5 + 12);
	assert_int_equal(facts->file_size, sample.length);
	assert_int_equal(facts->dir_count, 10);
	assert_int_equal(facts->io_error, 1);
	assert_false(facts->followed_links);
	assert_true(facts->has_atimes);
	assert_int_equal(facts->digests, ALL_DIGESTS);
	assert_string_equal(facts->root_path, "/srv/mirror");
	assert_string_equal(facts->options, "-aH");
	assert_true(strlen(facts->version) > 0);
	attr_snapshot_close(snapshot);
	free(sample.bytes);
}

UNIT_TEST(a_plain_snapshot_has_nothing_optional)
{
	struct sample sample = sample_new(0, true);
	struct attr_snapshot *snapshot = open_sample(&sample);
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);
	struct entries view;
	struct entry_side expanded;
	const struct entry *entry = find(snapshot, "a", &view);

	assert_false(facts->has_atimes);
	assert_int_equal(facts->digests, 0);
	assert_null(entry_any_side(&view, entry, &expanded));
	assert_null(attr_snapshot_digest(&view, entry, ATTR_DIGEST_MD5));
	assert_null(attr_snapshot_owner(snapshot, false, 1000));
	assert_null(attr_snapshot_owner(snapshot, true, 100));
	attr_snapshot_close(snapshot);
	free(sample.bytes);
}

static void assert_entry_is(const struct attr_snapshot *snapshot, const struct sample_node *node)
{
	struct entries view;
	const struct entry *entry = find(snapshot, node->path, &view);
	struct entry_side expanded;
	const struct entry_side *side = entry_any_side(&view, entry, &expanded);

	assert_int_equal(entry->mode, node->mode);
	assert_int_equal(entry->size, node->size);
	assert_int_equal(entry->mtime, 1000000000 + (int64_t)node->size);
	assert_int_equal(entry->mtime_nsec, 123456789);
	assert_int_equal(entry->uid, 1000);
	assert_int_equal(entry->gid, node->mode & 0111 ? 100 : 0);
	assert_int_equal(entry_is_dir(entry), entry->dir != 0);
	if (node->target)
		assert_string_equal(entry_target(&view, entry), node->target);
	assert_non_null(side);
	assert_int_equal(side->target_length, node->target ? strlen(node->target) : 0);
	assert_int_equal(side->atime, entry_is_dir(entry) ? 0 : 2000000000 + (int64_t)node->size);
	assert_int_equal(side->rdev_major, node->major);
	assert_int_equal(side->rdev_minor, node->minor);
	assert_int_equal(side->dev, !strncmp(node->path, "mount/", 6) ? SAMPLE_MOUNT_DEV : SAMPLE_DEV);
	assert_int_equal(!!(entry->flags & ENTRY_HARD_LINKED), node->ino && !entry_is_dir(entry));
	assert_int_equal(!!(entry->flags & ENTRY_MOUNT), !strcmp(node->path, "mount"));
	if (entry->flags & ENTRY_HARD_LINKED)
		assert_int_equal(side->ino, node->ino);
	else if (entry_is_regular(entry))
		assert_int_equal(side->ino, 9000 + node->size);
	else
		assert_int_equal(side->ino, 0);
}

UNIT_TEST(every_entry_is_as_it_was_written)
{
	struct sample sample = sample_new(ALL_DIGESTS, false);
	struct attr_snapshot *snapshot = open_sample(&sample);

	for (size_t i = 0; i < SAMPLE_NODES; i++)
		assert_entry_is(snapshot, &sample_nodes[i]);
	snapshot_walk_all(snapshot);
	attr_snapshot_close(snapshot);
	free(sample.bytes);
}

UNIT_TEST(the_root_is_a_list_of_one)
{
	struct sample sample = sample_new(0, false);
	struct attr_snapshot *snapshot = open_sample(&sample);
	struct entries view = attr_snapshot_root(snapshot);
	assert_int_equal(view.count, 1);
	assert_string_equal(entry_name(&view, view.items), ".");
	assert_int_equal(view.items[0].mode, 040755);
	assert_int_equal(view.items[0].uid, 1000);
	entries_free(&view); /* does nothing to a view */
	snapshot_walk_all(snapshot);
	attr_snapshot_close(snapshot);
	free(sample.bytes);
}

UNIT_TEST(directories_know_their_place)
{
	struct sample sample = sample_new(0, true);
	struct attr_snapshot *snapshot = open_sample(&sample);
	struct entries view;
	struct strbuf path = STRBUF_INIT;
	struct snapshot_dir_facts facts;
	uint32_t sub = find(snapshot, "sub", &view)->dir, deep = find(snapshot, "sub/deep", &view)->dir;

	attr_snapshot_dir_path(snapshot, 0, &path);
	assert_string_equal(strbuf_text(&path), "");
	attr_snapshot_dir_path(snapshot, find(snapshot, "sub/deep/er", &view)->dir, &path);
	assert_string_equal(strbuf_text(&path), "sub/deep/er");
	facts = attr_snapshot_dir(snapshot, sub);
	assert_int_equal(facts.parent, 0);
	assert_int_equal(facts.leading, 5);
	assert_int_equal(facts.subtree_end, 10);
	assert_int_equal(facts.error, 0);
	assert_int_equal(facts.dev, SAMPLE_DEV);
	assert_int_equal(facts.ctime, 1400000000 + facts.ino - 100);
	assert_int_equal(facts.ctime_nsec, facts.ino - 100);
	facts = attr_snapshot_dir(snapshot, deep);
	assert_int_equal(facts.parent, sub);
	view = attr_snapshot_view(snapshot, sub);
	assert_string_equal(entry_name(&view, &view.items[facts.parent_entry]), "deep");
	facts = attr_snapshot_dir(snapshot, find(snapshot, "secret", &view)->dir);
	assert_int_equal(facts.error, 13);
	facts = attr_snapshot_dir(snapshot, find(snapshot, "mount", &view)->dir);
	assert_int_equal(facts.dev, SAMPLE_MOUNT_DEV);
	strbuf_free(&path);
	attr_snapshot_close(snapshot);
	free(sample.bytes);
}

UNIT_TEST(regular_files_have_their_digests_and_where_they_are_from)
{
	struct sample sample = sample_new(ALL_DIGESTS, true);
	struct attr_snapshot *snapshot = open_sample(&sample);
	struct entries view;
	const struct entry *entry = find(snapshot, "sub/deep/er/bottom", &view);
	struct entry_side expanded;
	const struct entry_side *origin = entry_any_side(&view, entry, &expanded);

	assert_memory_equal(attr_snapshot_digest(&view, entry, ATTR_DIGEST_XXH128), "\7\7\7\7\7\7\7\7\7\7\7\7\7\7\7\7", 16);
	assert_int_equal(attr_snapshot_digest(&view, entry, ATTR_DIGEST_MD5)[15], 0xf8);
	assert_non_null(origin);
	assert_int_equal(origin->ino, 9007);
	assert_int_equal(origin->ctime, 1500000000);
	assert_int_equal(origin->ctime_nsec, 5);
	entry = find(snapshot, "link", &view);
	assert_null(attr_snapshot_digest(&view, entry, ATTR_DIGEST_XXH128));
	assert_int_equal(entry_any_side(&view, entry, &expanded)->ctime, 0);
	attr_snapshot_close(snapshot);
	free(sample.bytes);
}

UNIT_TEST(a_digest_that_was_not_asked_for_is_not_there)
{
	struct sample sample = sample_new(ATTR_DIGEST_MD5, true);
	struct attr_snapshot *snapshot = open_sample(&sample);
	struct entries view;
	const struct entry *entry = find(snapshot, "a", &view);

	assert_int_equal(attr_snapshot_facts(snapshot)->digests, ATTR_DIGEST_MD5);
	assert_null(attr_snapshot_digest(&view, entry, ATTR_DIGEST_XXH128));
	assert_non_null(attr_snapshot_digest(&view, entry, ATTR_DIGEST_MD5));
	attr_snapshot_close(snapshot);
	free(sample.bytes);
}

UNIT_TEST(owners_have_their_stored_names)
{
	struct sample sample = sample_new(0, false);
	struct attr_snapshot *snapshot = open_sample(&sample);

	assert_string_equal(attr_snapshot_owner(snapshot, false, 1000), "alice");
	assert_string_equal(attr_snapshot_owner(snapshot, true, 100), "users");
	assert_string_equal(attr_snapshot_owner(snapshot, true, 0), "root");
	assert_null(attr_snapshot_owner(snapshot, false, 100));
	assert_null(attr_snapshot_owner(snapshot, true, 1000));
	attr_snapshot_close(snapshot);
	free(sample.bytes);
}

UNIT_TEST(an_empty_tree_has_its_root)
{
	struct image *image = image_new();
	struct sample sample;
	struct entries view;

	image_add_children(image, 0);
	sample.bytes = snapshot_bytes(image, 1, NULL, &sample.length);
	image_free(image);
	struct attr_snapshot *snapshot = open_sample(&sample);

	view = attr_snapshot_view(snapshot, 0);
	assert_int_equal(view.count, 0);
	assert_int_equal(attr_snapshot_facts(snapshot)->entry_count, 1);
	snapshot_walk_all(snapshot);
	attr_snapshot_close(snapshot);
	free(sample.bytes);
}

/* --- what is wrong with it: one number is changed, and the sums are right --- */

enum place { HEADER, CHUNK, FACTS, DIR, ENTRY, NAME, SIDE, ATIME, ORIGIN, OWNERS };

struct edit {
	enum place place;
	const char *name;    /* CHUNK: tag; else the path of the entry; DIR: of the directory, "" for the root */
	size_t offset, size; /* of the field in the record */
	uint64_t value;
	const char *message;
};

#define FIELD(type, field) offsetof(struct type, field), sizeof ((struct type *)NULL)->field
/* Eight characters as a number, the first one in its lowest byte. */
#define AS_TEXT(number) (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? UINT64_C(number) : __builtin_bswap64(UINT64_C(number)))
#define HEADER_EDIT(field, value, message) { HEADER, NULL, FIELD(snapshot_header, field), value, message }
#define CHUNK_EDIT(tag, field, value, message) { CHUNK, tag, FIELD(snapshot_chunk, field), value, "chunk " message }
#define FACTS_EDIT(field, value, message) { FACTS, NULL, FIELD(snapshot_facts, field), value, "chunk facts: " message }
#define DIR_EDIT(path, field, value, message) { DIR, path, FIELD(snapshot_dir, field), value, "chunk dirs: " message }
#define ENTRY_EDIT(path, field, value, message) { ENTRY, path, FIELD(entry, field), value, "chunk " message }
#define NAME_EDIT(path, offset, value, message) { NAME, path, offset, 1, value, "chunk names: " message }
#define SIDE_EDIT(path, field, value, message) { SIDE, path, FIELD(snapshot_side, field), value, "chunk " message }
#define ORIGIN_EDIT(path, field, value, message) \
	{ ORIGIN, path, FIELD(snapshot_origin, field), value, "chunk origins: " message }
#define OWNERS_EDIT(offset, size, value, message) { OWNERS, NULL, offset, size, value, "chunk owners: " message }

static const struct edit edits[] = {
	HEADER_EDIT(magic, 0, "header: this is not an attr snapshot"),
	HEADER_EDIT(version, 0x01000000, "header: it was made on a machine with another byte order"),
	HEADER_EDIT(version, 2, "header: format version 2, this program reads version 1"),
	HEADER_EDIT(chunk_count, 0, "header: 0 chunks, a snapshot has 1 to 64"),
	HEADER_EDIT(chunk_count, 65, "header: 65 chunks, a snapshot has 1 to 64"),
	HEADER_EDIT(file_size, 100, NULL),

	CHUNK_EDIT("md5", tag, AS_TEXT(0x383231687878), "xxh128: is there twice"),
	CHUNK_EDIT("md5", flags, 2, "md5: has flags that this program does not know"),
	CHUNK_EDIT("md5", reserved, 1, "md5: has flags that this program does not know"),
	CHUNK_EDIT("sides", tag, AS_TEXT(0xff7a207373), "ss?z?: is required, and this program does not know it"),
	CHUNK_EDIT("dirs", length, 561, "dirs: 561 bytes are not a multiple of 56"),
	CHUNK_EDIT("dirs", offset, 96, "dirs: does not begin at a multiple of 64"),
	CHUNK_EDIT("dirs", offset, 64, "dirs: overlaps with what is before it"),
	CHUNK_EDIT("dirs", offset, 1 << 30, "dirs: goes beyond the end of the file"),
	CHUNK_EDIT("dirs", length, 56 << 24, "dirs: goes beyond the end of the file"),
	CHUNK_EDIT("dirs", length, UINT64_MAX - 15, "dirs: goes beyond the end of the file"),

	FACTS_EDIT(flags, 2, "has flags that this program does not know"),
	FACTS_EDIT(io_error, 8, "has flags that this program does not know"),
	FACTS_EDIT(reserved, 1, "has flags that this program does not know"),
	FACTS_EDIT(made_nsec, 1000000000, "the time has 1000000000 nanoseconds"),
	FACTS_EDIT(options_length, 4, "has not the length that its texts need"),
	{ FACTS, NULL, sizeof(struct snapshot_facts) + 3, 1, 0, "chunk facts: a text is not as long as said" },
	{ FACTS, NULL, sizeof(struct snapshot_facts) + 11, 1, 'x', "chunk facts: a text is not as long as said" },
	FACTS_EDIT(entry_count, 30, "30 entries, chunk entries has 31"),
	FACTS_EDIT(dir_count, 11, "11 directories, chunk dirs has 10"),
	FACTS_EDIT(content_bytes, 1, "1 bytes of content, the entries have 124489"),

	OWNERS_EDIT(4, 2, 2, "owner 0 is neither a user nor a group"),
	OWNERS_EDIT(6, 2, 0, "owner 0 has a name of 0 bytes"),
	OWNERS_EDIT(6, 2, 256, "owner 0 has a name of 256 bytes"),
	OWNERS_EDIT(6, 2, 255, "ends in the middle of owner 0"),
	OWNERS_EDIT(10, 1, 0, "the name of owner 0 does not end where it should"),
	OWNERS_EDIT(13, 1, 'x', "the name of owner 0 does not end where it should"),
	OWNERS_EDIT(15, 1, 'x', "the name of owner 0 does not end where it should"),
	OWNERS_EDIT(32, 4, 0, "owner 2 is there twice"),

	ENTRY_EDIT("", mode, 0, "entries: the root's entry has a mode without a file type"),
	ENTRY_EDIT("", mode, 0100644, "entries: the root's entry is not that of directory 0"),
	ENTRY_EDIT("", dir, 1, "entries: the root's entry is not that of directory 0"),
	ENTRY_EDIT("", side, 1, "entries: the root's entry is not that of directory 0"),
	ENTRY_EDIT("", name, 1, "names: the root's name is not \".\""),
	ENTRY_EDIT("", name_length, 2, "names: the root's name is not \".\""),
	NAME_EDIT("", 0, 'x', "the root's name is not \".\""),
	NAME_EDIT("", 1, 'x', "the root's name is not \".\""),
	DIR_EDIT("", parent, 1, "directory 0 has a parent"),
	DIR_EDIT("", parent_entry, 1, "directory 0 has a parent"),
	DIR_EDIT("", subtree_end, 9, "directory 0 has a subtree that ends in the wrong place"),

	DIR_EDIT("bin", first_entry, 3, "directory 1 does not begin with the entry after those of the directory before"),
	DIR_EDIT("bin", names, 3, "directory 1 does not begin with the name after those of the directory before"),
	DIR_EDIT("sub", first_side, 3, "directory 5 does not begin with the side record after those of the directory before"),
	DIR_EDIT("", count, 31, "directory 0 has more entries than there are"),
	DIR_EDIT("sub/deep", count, UINT32_MAX, "directory 6 has more entries than there are"),
	DIR_EDIT("", leading, 17, "directory 0 has more entries before its first directory than it has at all"),
	DIR_EDIT("", leading, 10, "directory 0 has its first directory not where it says"),
	DIR_EDIT("", leading, 12, "directory 0 has its first directory not where it says"),
	DIR_EDIT("mount", device, 2, "directory 3 is on a device that is not in chunk devices"),
	DIR_EDIT("mount", ctime, UINT64_MAX, "directory 3 was changed before 1970"),
	DIR_EDIT("bin", parent, 2, "directory 1 does not lead back to its entry"),
	DIR_EDIT("bin", parent_entry, 12, "directory 1 does not lead back to its entry"),
	DIR_EDIT("bin", subtree_end, 1, "directory 1 has a subtree that ends in the wrong place"),
	DIR_EDIT("bin", subtree_end, 11, "directory 1 has a subtree that ends in the wrong place"),
	DIR_EDIT("sub", count, 7, "directory 5 has a subtree that ends in the wrong place"),
	{ DIR, "bin", FIELD(snapshot_dir, subtree_end), 3,
	  "chunk entries: entry 12 of directory 0 does not lead to the next directory" },
	ENTRY_EDIT("bin", dir, 2, "entries: entry 11 of directory 0 does not lead to the next directory"),
	ENTRY_EDIT("sub/deep", dir, UINT32_MAX, "entries: entry 5 of directory 5 does not lead to the next directory"),
	ENTRY_EDIT("bin", dir, 0, "entries: entry 11 of directory 0 is a directory without a record in chunk dirs"),
	ENTRY_EDIT("a", dir, 1, "entries: entry 0 of directory 0 has a record in chunk dirs and is no directory"),

	ENTRY_EDIT("a", mode, 0644, "entries: entry 0 of directory 0 has a mode without a file type"),
	ENTRY_EDIT("a", mode, 0170644, "entries: entry 0 of directory 0 has a mode without a file type"),
	ENTRY_EDIT("a", flags, ENTRY_TOP_DIR, "entries: entry 0 of directory 0 has flags that are not for files"),
	ENTRY_EDIT("a", flags, 0x8000, "entries: entry 0 of directory 0 has flags that are not for files"),
	ENTRY_EDIT("a", flags, ENTRY_MOUNT, "entries: entry 0 of directory 0 is a mount point and no directory"),
	ENTRY_EDIT("bin", flags, ENTRY_HARD_LINKED, "entries: entry 11 of directory 0 is a directory with hard links"),
	ENTRY_EDIT("a", root, 1, "entries: entry 0 of directory 0 belongs to another source argument"),
	ENTRY_EDIT("a", mtime_nsec, 1000000000, "entries: entry 0 of directory 0 has more than 999999999 nanoseconds"),
	ENTRY_EDIT("a", size, (uint64_t)1 << 63, "entries: entry 0 of directory 0 has a size of 2^63 or more"),
	ENTRY_EDIT("disk", size, 1, "entries: entry 2 of directory 0 is a device or special file with a size"),
	ENTRY_EDIT("fifo", size, 1, "entries: entry 3 of directory 0 is a device or special file with a size"),

	ENTRY_EDIT("a", name, 1, "names: entry 0 of directory 0 has a name that is not where it should be"),
	ENTRY_EDIT("link", name, UINT32_MAX, "names: entry 7 of directory 0 has a name that is not where it should be"),
	ENTRY_EDIT("a", name_length, 0, "names: entry 0 of directory 0 has an empty name"),
	ENTRY_EDIT("a", name_length, 256, "names: entry 0 of directory 0 has a name of more than 255 bytes"),
	ENTRY_EDIT("a", name_length, 2, "names: entry 0 of directory 0 has a name that does not end where it should"),
	ENTRY_EDIT("link", name_length, 3, "names: entry 7 of directory 0 has a name that does not end where it should"),
	ENTRY_EDIT("sub/x/last", name_length, 5,
		   "names: entry 0 of directory 9 has a name that goes beyond the end of the chunk"),
	NAME_EDIT("link", 2, 0, "entry 7 of directory 0 has a name that does not end where it should"),
	NAME_EDIT("link", 2, '/', "entry 7 of directory 0 has a slash in its name"),
	NAME_EDIT("a", 0, '.', "entry 0 of directory 0 is named . or .."),
	{ NAME, "sub/z1", 0, 2, 0x2e2e, "chunk names: entry 3 of directory 5 is named . or .." },
	{ NAME, "a", 0, 1, 'z', "chunk entries: entry 1 of directory 0 is not in order" },
	{ NAME, "sub/z2", 1, 1, '1', "chunk entries: entry 4 of directory 5 is not in order" },
	{ NAME, "sub/x.d", 1, 1, '0', "chunk entries: entry 7 of directory 5 is not in order" },
	NAME_EDIT("sub/x", 0, 'y', "entry 7 of directory 5 has the name of another entry"),

	ENTRY_EDIT("a", side, 1, "entries: entry 0 of directory 0 has a side record without need"),
	ENTRY_EDIT("hard1", flags, 0, "entries: entry 4 of directory 0 has a side record without need"),
	ENTRY_EDIT("a", flags, ENTRY_HARD_LINKED, "sides: entry 0 of directory 0 has a record that is not where it should be"),
	ENTRY_EDIT("disk", side, 0, "sides: entry 2 of directory 0 has a record that is not where it should be"),
	ENTRY_EDIT("disk", side, 2, "sides: entry 2 of directory 0 has a record that is not where it should be"),
	SIDE_EDIT("disk", ino, 5, "sides: entry 2 of directory 0 has an inode without hard links"),
	SIDE_EDIT("hard1", a, 1, "sides: entry 4 of directory 0 has numbers without need"),
	SIDE_EDIT("hard1", b, 1, "sides: entry 4 of directory 0 has numbers without need"),
	SIDE_EDIT("link", b, 0, "names: entry 7 of directory 0 has an empty target"),
	SIDE_EDIT("link", b, 4096, "names: entry 7 of directory 0 has a target of more than 4095 bytes"),
	SIDE_EDIT("link", b, 4095, "names: entry 7 of directory 0 has a target that goes beyond the end of the chunk"),
	SIDE_EDIT("link", b, 8, "names: entry 7 of directory 0 has a target that does not end where it should"),
	SIDE_EDIT("link", b, 10, "names: entry 7 of directory 0 has a target that does not end where it should"),
	SIDE_EDIT("link", a, 0, "names: entry 7 of directory 0 has a target that is not where it should be"),

	{ ATIME, "bin", 0, 8, 1, "chunk atimes: record 12 is a directory's and not 0" },
	ORIGIN_EDIT("a", digests, 4, "record 1 names digests that are not in the file"),
	ORIGIN_EDIT("link", digests, ATTR_DIGEST_MD5, "record 8 has digests and is not a regular file's"),
	ORIGIN_EDIT("a", ctime_nsec, 1000000000, "record 1 has more than 999999999 nanoseconds"),
};

/* The directory whose entries have this index among them; the root's own entry is before the first. */
static const struct snapshot_dir *dir_of(const struct sample *sample, uint64_t index)
{
	static const struct snapshot_dir above;
	const struct snapshot_dir *dir = sample_content(sample, "dirs");

	if (!index)
		return &above;
	while (index >= dir->first_entry + dir->count)
		dir++;
	return dir;
}

static unsigned char *place_of_entry(const struct sample *sample, enum place place, const char *path)
{
	uint64_t index = sample_entry(sample, path);
	struct entry *entry = (struct entry *)sample_content(sample, "entries") + index;
	const struct snapshot_dir *dir = dir_of(sample, index);

	assert_int_equal(!*path, !index);
	switch (place) {
	case DIR:
		return (unsigned char *)((struct snapshot_dir *)sample_content(sample, "dirs") + entry->dir);
	case NAME:
		return (unsigned char *)sample_content(sample, "names") + dir->names + entry->name;
	case SIDE:
		return (unsigned char *)((struct snapshot_side *)sample_content(sample, "sides") + dir->first_side + entry->side
					 - 1);
	case ATIME:
		return (unsigned char *)sample_content(sample, "atimes") + index * sizeof(int64_t);
	case ORIGIN:
		return (unsigned char *)((struct snapshot_origin *)sample_content(sample, "origins") + index);
	default:
		return (unsigned char *)entry;
	}
}

static unsigned char *place_of(const struct sample *sample, const struct edit *edit)
{
	switch (edit->place) {
	case HEADER:
		return sample->bytes;
	case CHUNK:
		return (unsigned char *)sample_chunk(sample, edit->name);
	case FACTS:
		return sample_content(sample, "facts");
	case OWNERS:
		return sample_content(sample, "owners");
	default:
		return place_of_entry(sample, edit->place, edit->name);
	}
}

static void assert_refused(const struct sample *sample, const char *message)
{
	struct strbuf why = STRBUF_INIT;

	errno = 0;
	assert_null(snapshot_from_memory(sample->bytes, sample->length, &why));
	assert_string_equal(strbuf_text(&why), message);
	assert_int_equal(errno, EINVAL);
	strbuf_free(&why);
}

UNIT_TEST(every_wrong_number_is_refused_by_its_name)
{
	struct sample whole = sample_new(ALL_DIGESTS, false);

	for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
		struct sample sample = sample_copy(&whole, whole.length);
		char message[128];

		memcpy(place_of(&sample, &edits[i]) + edits[i].offset,
		       (const char *)&edits[i].value + lower_bytes(sizeof edits[i].value, edits[i].size), edits[i].size);
		sample_repair(&sample);
		snprintf(message, sizeof message, "header: the file should have 100 bytes and has %zu", sample.length);
		assert_refused(&sample, edits[i].message ? edits[i].message : message);
		free(sample.bytes);
	}
	free(whole.bytes);
}

/* --- chunks that are shorter, longer, away or unknown --- */

UNIT_TEST(chunks_that_are_cut_are_refused)
{
	static const struct {
		const char *tag;
		uint64_t length;
		const char *message;
	} cuts[] = {
		{ "facts", 64, "chunk facts: is too short" },
		{ "facts", 80, "chunk facts: has not the length that its texts need" },
		{ "entries", 48, "chunk facts: 31 entries, chunk entries has 1" },
		{ "entries", 0, "chunk facts: 31 entries, chunk entries has 0" },
		{ "dirs", 56, "chunk facts: 10 directories, chunk dirs has 1" },
		{ "atimes", 8, "chunk atimes: 1 records for 31 entries" },
		{ "origins", 24, "chunk origins: 1 records for 31 entries" },
		{ "xxh128", 16, "chunk xxh128: 1 records for 31 entries" },
		{ "md5", 0, "chunk md5: 0 records for 31 entries" },
		{ "sides", 0, "chunk sides: entry 2 of directory 0 has a record that is not where it should be" },
		{ "names", 0, "chunk names: the root's name is not \".\"" },
		{ "names", 2, "chunk names: entry 0 of directory 0 has a name that goes beyond the end of the chunk" },
		{ "devices", 0, "chunk dirs: directory 0 is on a device that is not in chunk devices" },
		{ "owners", 4, "chunk owners: ends in the middle of owner 0" },
		{ "owners", 15, "chunk owners: ends in the middle of owner 0" },
	};
	struct sample whole = sample_new(ALL_DIGESTS, false);

	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
		struct sample sample = sample_copy(&whole, whole.length);
		struct snapshot_chunk *chunk = sample_chunk(&sample, cuts[i].tag);

		memset(sample.bytes + chunk->offset + cuts[i].length, 0, chunk->length - cuts[i].length);
		chunk->length = cuts[i].length;
		sample_repair(&sample);
		assert_refused(&sample, cuts[i].message);
		free(sample.bytes);
	}
	free(whole.bytes);
}

UNIT_TEST(chunks_with_more_than_the_directories_use_are_refused)
{
	struct sample sample = sample_new(0, false);
	struct snapshot_dir *last = (struct snapshot_dir *)sample_content(&sample, "dirs") + 9;

	sample_chunk(&sample, "names")->length++;
	sample_repair(&sample);
	assert_refused(&sample, "chunk names: has bytes that belong to no entry");
	sample_chunk(&sample, "names")->length--;
	sample_chunk(&sample, "sides")->length += sizeof(struct snapshot_side);
	sample_repair(&sample);
	assert_refused(&sample, "chunk sides: has records that belong to no entry");
	last->count = last->leading = 0;
	sample_repair(&sample);
	assert_refused(&sample, "chunk entries: has entries that belong to no directory");
	free(sample.bytes);
}

UNIT_TEST(a_missing_chunk_is_refused_unless_it_is_optional)
{
	static const char *const required[] = { "facts", "dirs", "entries", "sides", "names", "devices" };
	struct sample sample = sample_new(ALL_DIGESTS, false);
	char message[64];

	for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
		struct snapshot_chunk *chunk = sample_chunk(&sample, required[i]), old = *chunk;

		memcpy(chunk->tag, "unknown", sizeof chunk->tag);
		chunk->flags = 0;
		sample_repair(&sample);
		snprintf(message, sizeof message, "chunk %s: is missing", required[i]);
		assert_refused(&sample, message);
		*chunk = old;
	}
	memcpy(sample_chunk(&sample, "origins")->tag, "unknown", sizeof "unknown");
	sample_repair(&sample);
	assert_refused(&sample, "chunk origins: is missing, and there are digests");
	free(sample.bytes);
}

UNIT_TEST(unknown_optional_chunks_are_skipped)
{
	struct sample sample = sample_new(0, false);

	memcpy(sample_chunk(&sample, "atimes")->tag, "unknown", sizeof "unknown");
	memcpy(sample_chunk(&sample, "owners")->tag, "\1\2 \xff\"", sizeof "\1\2 \xff\"");
	sample_repair(&sample);
	struct attr_snapshot *snapshot = open_sample(&sample);

	assert_false(attr_snapshot_facts(snapshot)->has_atimes);
	assert_null(attr_snapshot_owner(snapshot, false, 1000));
	snapshot_walk_all(snapshot);
	attr_snapshot_close(snapshot);
	free(sample.bytes);
}

/* --- sums and what is between the chunks --- */

UNIT_TEST(every_changed_bit_is_noticed)
{
	struct sample sample = sample_new(ALL_DIGESTS, false);
	struct strbuf why = STRBUF_INIT;

	for (size_t i = 0; i < sample.length; i++) {
		sample.bytes[i] ^= (unsigned char)(1 << i % 8);
		assert_null(snapshot_from_memory(sample.bytes, sample.length, &why));
		sample.bytes[i] ^= (unsigned char)(1 << i % 8);
	}
	strbuf_free(&why);
	free(sample.bytes);
}

UNIT_TEST(sums_name_their_chunk)
{
	struct sample sample = sample_new(ALL_DIGESTS, false);
	struct snapshot_chunk *chunks = (void *)(sample_header(&sample) + 1);
	char message[64];

	for (uint32_t i = 0; i < sample_header(&sample)->chunk_count; i++) {
		sample.bytes[chunks[i].offset + chunks[i].length - 1] ^= 0x80;
		snprintf(message, sizeof message, "chunk %s: the sum of its content is wrong", chunks[i].tag);
		assert_refused(&sample, message);
		sample.bytes[chunks[i].offset + chunks[i].length - 1] ^= 0x80;
	}
	chunks[2].sum ^= 1;
	assert_refused(&sample, "header: the sum of header and table of contents is wrong");
	free(sample.bytes);
}

UNIT_TEST(bytes_between_chunks_are_zero)
{
	struct sample sample = sample_new(0, false);
	struct snapshot_chunk *names = sample_chunk(&sample, "names");
	struct sample longer = sample_room(sample.length + 100);

	memcpy(longer.bytes, sample.bytes, sample.length);
	sample_header(&longer)->file_size += 100;
	sample_repair(&longer);
	attr_snapshot_close(open_sample(&longer));
	longer.bytes[sample.length + 99] = 1;
	assert_refused(&longer, "header: the bytes after the last chunk are not zero");
	sample.bytes[names->offset + names->length] = 1;
	assert_refused(&sample, "chunk devices: the bytes before it are not zero");
	free(longer.bytes);
	free(sample.bytes);
}

UNIT_TEST(every_shorter_file_is_refused)
{
	struct sample sample = sample_new(ALL_DIGESTS, false);

	for (size_t length = 0; length < sample.length; length++) {
		struct sample shorter = { sample.bytes, length };
		char message[96] = "header: the file is too short to have one";

		if (length >= sizeof(struct snapshot_header))
			snprintf(message, sizeof message, "header: the file should have %zu bytes and has %zu", sample.length,
				 length);
		assert_refused(&shorter, message);
	}
	sample_header(&sample)->file_size = sample.length = sizeof(struct snapshot_header);
	assert_refused(&sample, "header: the table of contents goes beyond the end of the file");
	free(sample.bytes);
}

UNIT_TEST(memory_has_to_be_aligned)
{
	struct sample sample = sample_new(0, true);
	struct sample room = sample_room(sample.length + 8);
	struct sample moved = { room.bytes + 8, sample.length };

	memcpy(moved.bytes, sample.bytes, sample.length);
	assert_refused(&moved, "header: not aligned in memory");
	free(room.bytes);
	free(sample.bytes);
}

/* --- long paths --- */

/* A chain of directories, each with a name of 255 bytes, and a name of `last` bytes at its end. */
static struct sample chain(uint32_t depth, size_t last)
{
	struct image *image = image_new();
	struct sample sample;
	char name[256];

	memset(name, 'x', sizeof name);
	for (uint32_t i = 0; i <= depth; i++) {
		struct entries *list = &image->dirs.items[i]->entries;
		entries_add(list, name, i < depth ? 255 : last)->mode = i < depth ? 040755 : 0100644;
		image_add_children(image, i);
	}
	sample.bytes = snapshot_bytes(image, 1, NULL, &sample.length);
	image_free(image);
	return sample;
}

UNIT_TEST(paths_are_shorter_than_the_system_allows)
{
	struct sample good = chain(15, 255), bad = chain(16, 1);
	struct attr_snapshot *snapshot = open_sample(&good);
	struct strbuf path = STRBUF_INIT;

	attr_snapshot_dir_path(snapshot, 15, &path);
	assert_int_equal(path.length, 15 * 256 - 1);
	snapshot_walk_all(snapshot);
	attr_snapshot_close(snapshot);
	assert_refused(&bad, "chunk names: directory 16 has a path of 4096 bytes or more in it");
	strbuf_free(&path);
	free(good.bytes);
	free(bad.bytes);
}

/* --- so much that several threads look at it --- */

enum { MANY_DIRS = 2000, MANY_FILES = 40, SECOND_HALF = (MANY_DIRS + 1) / 2 };

static void add_named(struct image *image, uint32_t dir, const char *format, unsigned number, uint16_t mode)
{
	char name[32];

	snprintf(name, sizeof name, format, number);
	struct entry *entry = entries_add(&image->dirs.items[dir]->entries, name, strlen(name));

	entry->mode = mode;
	entry->size = number;
	if (entry_is_symlink(entry))
		entries_set_target(&image->dirs.items[dir]->entries, entry, "f00000", 6);
}

/* Two parts, of which the second begins with directory SECOND_HALF. */
static struct sample many(void)
{
	struct image *image = image_new();
	struct sample sample;

	for (unsigned i = 0; i < MANY_DIRS; i++)
		add_named(image, 0, "d%05u", i, 040755);
	image_add_children(image, 0);
	for (uint32_t dir = 1; dir <= MANY_DIRS; dir++) {
		for (unsigned i = 0; i < MANY_FILES; i++)
			add_named(image, dir, "f%05u", i, 0100644);
		add_named(image, dir, "link", 6, 0120777);
		image_add_children(image, dir);
	}
	sample.bytes = snapshot_bytes(image, 1, NULL, &sample.length);
	image_free(image);
	return sample;
}

/* Open it with a number changed, and back again. */
static void assert_change_refused(const struct sample *sample, void *place, uint32_t value, const char *message)
{
	uint32_t before;

	memcpy(&before, place, sizeof before);
	memcpy(place, &value, sizeof value);
	sample_repair(sample);
	assert_refused(sample, message);
	memcpy(place, &before, sizeof before);
	sample_repair(sample);
}

UNIT_TEST(a_large_snapshot_is_looked_at_everywhere)
{
	struct sample sample = many();
	struct snapshot_dir *dirs = sample_content(&sample, "dirs"), *second = &dirs[SECOND_HALF];
	struct entry *late = (struct entry *)sample_content(&sample, "entries") + dirs[1500].first_entry;
	char *names = sample_content(&sample, "names");
	unsigned char *size = (unsigned char *)&late[3].size + lower_bytes(sizeof late[3].size, sizeof(uint32_t));
	uint32_t wrong_name;

	struct attr_snapshot *snapshot = open_sample(&sample);

	snapshot_walk_all(snapshot);
	attr_snapshot_close(snapshot);
	for (int i = 0; i < 2; i++) {
		uint32_t wrong = i ? UINT32_MAX : 1;

		assert_change_refused(&sample, &second->first_entry, wrong, "chunk dirs: directory 1000 does not begin with "
				      "the entry after those of the directory before");
		assert_change_refused(&sample, &second->names, wrong, "chunk dirs: directory 1000 does not begin with "
				      "the name after those of the directory before");
		assert_change_refused(&sample, &second->first_side, wrong, "chunk dirs: directory 1000 does not begin with "
				      "the side record after those of the directory before");
		assert_change_refused(&sample, &second->subtree_end, wrong, "chunk dirs: directory 1000 has a subtree that "
				      "ends in the wrong place");
	}
	assert_change_refused(&sample, &late[3].mtime_nsec, 1000000000, "chunk entries: entry 3 of directory 1500 has more "
			      "than 999999999 nanoseconds");
	assert_change_refused(&sample, size, 1003, "chunk facts: 1560000 bytes of content, the entries have 1561000");
	memcpy(&wrong_name, "l/nk", sizeof wrong_name);
	assert_change_refused(&sample, names + dirs[1500].names + late[MANY_FILES].name, wrong_name, "chunk names: entry 40 of "
			      "directory 1500 has a slash in its name");
	free(sample.bytes);
}

UNIT_TEST(the_first_of_several_problems_is_told)
{
	struct sample sample = many();
	struct snapshot_dir *dirs = sample_content(&sample, "dirs");

	dirs[1500].device = 9;
	sample_repair(&sample);
	assert_change_refused(&sample, &dirs[20].count, UINT32_MAX, "chunk dirs: directory 20 has more entries than there are");
	assert_refused(&sample, "chunk dirs: directory 1500 is on a device that is not in chunk devices");
	sample_chunk(&sample, "names")->sum++;
	sample_header(&sample)->sum = 0;
	sample_header(&sample)->sum = XXH3_64bits(sample.bytes, sizeof(struct snapshot_header) +
						  sample_header(&sample)->chunk_count * sizeof(struct snapshot_chunk));
	assert_refused(&sample, "chunk names: the sum of its content is wrong");
	free(sample.bytes);
}

/* --- files --- */

static void write_sample(const char *path, const struct sample *sample)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_return_code(fd, errno);
	assert_int_equal(write(fd, sample->bytes, sample->length), sample->length);
	close(fd);
}

static void assert_file_refused(const char *path, int error, const char *message)
{
	struct strbuf why = STRBUF_INIT;

	assert_null(attr_snapshot_open(path, &why));
	assert_int_equal(errno, error);
	assert_string_equal(strbuf_text(&why), message);
	strbuf_free(&why);
}

UNIT_TEST(a_file_is_opened_and_stays_though_it_is_replaced)
{
	struct sample sample = sample_new(ALL_DIGESTS, false);
	struct strbuf why = STRBUF_INIT;
	struct snapshot_identity identity;
	int next = dup(0);

	close(next);
	write_sample("good", &sample);
	tree_link("good", "good-link");
	struct attr_snapshot *snapshot = attr_snapshot_open("good-link", &why);

	assert_non_null(snapshot);
	assert_int_equal(dup(0), next); /* no descriptor is kept */
	close(next);
	assert_int_equal(snapshot_identity_read("good", &identity), 0);
	assert_true(snapshot_identity_equal(&identity, &attr_snapshot_facts(snapshot)->identity));
	assert_int_equal(identity.size, sample.length);
	write_sample("new", &sample);
	assert_return_code(rename("new", "good"), errno);
	assert_int_equal(snapshot_identity_read("good", &identity), 0);
	assert_false(snapshot_identity_equal(&identity, &attr_snapshot_facts(snapshot)->identity));
	snapshot_walk_all(snapshot);
	attr_snapshot_close(snapshot);
	free(sample.bytes);
}

UNIT_TEST(only_whole_regular_files_are_opened)
{
	struct sample sample = sample_new(0, true);
	struct snapshot_identity identity;
	char message[96];

	assert_file_refused("missing", ENOENT, "it cannot be opened: No such file or directory");
	assert_int_equal(snapshot_identity_read("missing", &identity), -1);
	assert_int_equal(errno, ENOENT);
	tree_dir("dir");
	assert_file_refused("dir", EINVAL, "it is not a regular file");
	assert_return_code(mkfifo("pipe", 0600), errno);
	assert_file_refused("pipe", EINVAL, "it is not a regular file");
	tree_file("empty", "");
	assert_file_refused("empty", EINVAL, "header: the file is too short to have one");
	snprintf(message, sizeof message, "header: the file should have %zu bytes and has 4096", sample.length);
	write_sample("cut", &sample);
	assert_return_code(truncate("cut", 4096), errno);
	assert_file_refused("cut", EINVAL, message);
	free(sample.bytes);
}

UNIT_TEST(nobody_else_may_be_able_to_write_the_file)
{
	struct sample sample = sample_new(0, true);

	write_sample("mine", &sample);
	assert_return_code(chmod("mine", 0664), errno);
	assert_file_refused("mine", EPERM, "its mode 664 lets others than its owner write it");
	assert_return_code(chmod("mine", 0602), errno);
	assert_file_refused("mine", EPERM, "its mode 602 lets others than its owner write it");
	free(sample.bytes);
}

static int open_of_root_and_of_others(void)
{
	struct strbuf why = STRBUF_INIT;
	struct attr_snapshot *snapshot = attr_snapshot_open("root", &why);

	if (!snapshot)
		return 1;
	attr_snapshot_close(snapshot);
	snapshot = attr_snapshot_open("own", &why);
	if (!snapshot)
		return 2;
	attr_snapshot_close(snapshot);
	if (attr_snapshot_open("foreign", &why) || errno != EPERM)
		return 3;
	return strcmp(strbuf_text(&why), "it belongs to uid 1235, neither to root nor to uid 1234") ? 4 : 0;
}

UNIT_TEST(the_file_belongs_to_root_or_to_the_reader)
{
	struct sample sample = sample_new(0, true);

	if (geteuid() != 0) {
		free(sample.bytes);
		skip();
	}
	assert_return_code(chmod(".", 0755), errno);
	write_sample("root", &sample);
	write_sample("own", &sample);
	assert_return_code(chown("own", 1234, 0), errno);
	write_sample("foreign", &sample);
	assert_return_code(chown("foreign", 1235, 0), errno);
	assert_int_equal(tree_as_user(1234, open_of_root_and_of_others), 0);
	assert_file_refused("foreign", EPERM, "it belongs to uid 1235, neither to root nor to uid 0");
	free(sample.bytes);
}

UNIT_GROUP(tree_setup, tree_teardown)
