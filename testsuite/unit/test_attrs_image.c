/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Images: what is put into one comes back out of its snapshot, and the same content always gives the same bytes. */
#include "attrs/snapshot_write.h"
#include "fs_tree.h"
#include "snapshot_memory.h"

#include <dirent.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "attrs/image.h"
#include "attrs/snapshot_format.h"
#include "lib/alloc.h"

enum { DEVICE = 2049, OTHER_DEVICE = 2050, NAME_BYTES = 200 };

/* --- building --- */

static uint32_t set_dir(struct image *image, uint32_t dir, uint64_t ino)
{
	struct fs_stat st = { .dev = DEVICE, .ino = ino, .ctime = 1700000000 + (int64_t)ino, .ctime_nsec = 11 };

	image_dir_stat(image->dirs.items[dir], &st);
	return dir;
}

static struct entry *add(struct image *image, uint32_t dir, const char *name, uint32_t mode)
{
	struct entry *entry = entries_add(&image->dirs.items[dir]->entries, name, strlen(name));

	entry->mode = (uint16_t)mode;
	entry->mtime = 1600000000 + (int64_t)strlen(name);
	entry->mtime_nsec = 123456789;
	return entry;
}

static struct entry_side *side_of(struct image *image, uint32_t dir, struct entry *entry)
{
	return entries_side(&image->dirs.items[dir]->entries, entry);
}

static void add_file(struct image *image, uint32_t dir, const char *name, uint64_t size)
{
	struct entry *entry = add(image, dir, name, S_IFREG | 0644);

	entry->size = size;
	entry->uid = size % 3 == 0 ? 0 : 1000;
	entry->gid = size % 5 == 0 ? 0 : 100;
	*side_of(image, dir, entry) = (struct entry_side){
		.dev = DEVICE, .ino = size + 7, .ctime = 1650000000, .ctime_nsec = (uint32_t)size,
		.atime = 1660000000 + (int64_t)size,
	};
	if (size % 4)
		return;
	struct image_digest digest;

	memset(digest.xxh128, (int)size, sizeof digest.xxh128);
	memset(digest.md5, (int)size + 1, sizeof digest.md5);
	vec_push(&image->digest_list, digest);
	side_of(image, dir, entry)->digest = (uint32_t)image->digest_list.count;
}

static void add_link(struct image *image, uint32_t dir, const char *name, uint32_t mode, uint64_t dev, uint64_t ino)
{
	struct entry *entry = add(image, dir, name, mode);
	struct entry_side *side = side_of(image, dir, entry);

	entry->flags = ENTRY_HARD_LINKED;
	side->dev = dev;
	side->ino = ino;
}

static void add_symlink(struct image *image, uint32_t dir, const char *name, const char *target)
{
	struct entry *entry = add(image, dir, name, S_IFLNK | 0777);

	entry->size = strlen(target);
	entries_set_target(&image->dirs.items[dir]->entries, entry, target, strlen(target));
}

static void add_device(struct image *image, uint32_t dir, const char *name, uint32_t type, uint32_t major, uint32_t minor)
{
	struct entry *entry = add(image, dir, name, type | 0660);
	struct entry_side *side = side_of(image, dir, entry);

	side->rdev_major = major;
	side->rdev_minor = minor;
}

/* The number of the directory `name` of `dir`, whose entries are complete. */
static uint32_t child(struct image *image, uint32_t dir, const char *name)
{
	const struct image_dir *node = image->dirs.items[dir];
	int32_t at = entries_find(&node->entries, name, true);

	assert_true(at >= 0);
	return node->first_child + (uint32_t)at - (node->entries.count - node->child_count);
}

static void fill_root(struct image *image)
{
	struct fs_stat st = { .mode = S_IFDIR | 0751, .uid = 12, .gid = 34, .mtime = 1500000000, .mtime_nsec = 5,
			      .dev = DEVICE, .ino = 2, .ctime = 1500000001, .ctime_nsec = 6 };

	image_set_root(image, &st);
	add(image, 0, "links", S_IFDIR | 0755);
	add(image, 0, "a lot of names", S_IFDIR | 0755)->uid = 4000000000;
	add(image, 0, "deep", S_IFDIR | 01777);
	add(image, 0, "closed", S_IFDIR | 0700);
	add(image, 0, "mount", S_IFDIR | 0755)->flags = ENTRY_MOUNT | ENTRY_TOP_DIR;
	add(image, 0, "big", S_IFDIR | 0755);
	add_file(image, 0, "large", (uint64_t)1 << 40);
	add_file(image, 0, "zero", 0);
	add(image, 0, "fifo", S_IFIFO | 0600);
	add(image, 0, "socket", S_IFSOCK | 0755);
	add_device(image, 0, "null", S_IFCHR, 1, 3);
	add_device(image, 0, "disk", S_IFBLK, 4095, 1048575);
	add_link(image, 0, "linked", S_IFREG | 0640, DEVICE, 77);
	add(image, 0, "old", S_IFREG | 0644)->mtime = -5;
	image_add_children(image, 0);
}

/* changed: as it is one refresh later, with one more directory between others. */
static void fill_names(struct image *image, uint32_t dir, bool changed)
{
	char longest[256];

	memset(longest, 'n', 255);
	longest[255] = '\0';
	add_file(image, dir, longest, 20);
	add_file(image, dir, "\xff\xfe not UTF-8", 24);
	add_file(image, dir, "new\nline", 1);
	add_file(image, dir, "a-", 2);
	add_file(image, dir, "a", 3);
	add(image, dir, "a.d", S_IFDIR | 0755);
	add(image, dir, "a-d", S_IFDIR | 0755);
	add_file(image, dir, "...", 28);
	if (changed) {
		add(image, dir, "a-e", S_IFDIR | 0755);
		add_symlink(image, dir, "new", "n");
	}
	image_add_children(image, dir);
	if (changed) {
		uint32_t between = set_dir(image, child(image, dir, "a-e"), 49);
		add_file(image, between, "z", 64);
		add_symlink(image, between, "s", "target");
		image_add_children(image, between);
	}
}

static void fill_below_names(struct image *image, uint32_t dir, int which)
{
	set_dir(image, dir, 50 + (uint64_t)which);
	add_file(image, dir, which ? "x" : "y", 32 + (uint64_t)which);
	image_add_children(image, dir);
}

static void fill_links(struct image *image, uint32_t dir)
{
	char target[PATH_MAX];

	memset(target, 't', sizeof target - 1);
	target[sizeof target - 1] = '\0';
	add_symlink(image, dir, "long", target);
	add_symlink(image, dir, "dots", "../../x/./y/");
	add_symlink(image, dir, "bytes", "\x01\xff");
	add_link(image, dir, "linked", S_IFREG | 0640, DEVICE, 77);
	add_link(image, dir, "bind", S_IFREG | 0640, OTHER_DEVICE, 78);
	add_link(image, dir, "pipe", S_IFIFO | 0640, DEVICE, 79);
	add_link(image, dir, "char", S_IFCHR | 0640, DEVICE, 80);
	add_symlink(image, dir, "twice", "t");
	struct entry *twice = &image->dirs.items[dir]->entries.items[image->dirs.items[dir]->entries.count - 1];

	twice->flags = ENTRY_HARD_LINKED;
	side_of(image, dir, twice)->dev = DEVICE;
	side_of(image, dir, twice)->ino = 81;
	image_add_children(image, dir);
}

static void fill_big(struct image *image, uint32_t dir)
{
	for (int i = 0; i < 5000; i++) {
		char name[32];
		snprintf(name, sizeof name, "f%d", i * 7919 % 5000);
		add_file(image, dir, name, (uint64_t)i);
	}
	image_add_children(image, dir);
}

/* As deep as a path can be, below `dir`: the name of each directory is NAME_BYTES long. */
static void fill_deep(struct image *image, uint32_t dir)
{
	char name[NAME_BYTES + 1];

	memset(name, 'd', NAME_BYTES);
	name[NAME_BYTES] = '\0';
	for (int depth = 0; depth < (PATH_MAX - 200) / (NAME_BYTES + 1); depth++) {
		add_file(image, dir, "beside", (uint64_t)depth);
		add(image, dir, name, S_IFDIR | 0755);
		image_add_children(image, dir);
		dir = set_dir(image, image->dirs.items[dir]->first_child, 900 + (uint64_t)depth);
	}
}

/* Directories are filled in an order of its own, which must not show. */
static void fill_dir(struct image *image, int which, bool changed)
{
	static const char *const names[] = { "big", "closed", "links", "mount", "a lot of names", "deep" };
	uint32_t dir = set_dir(image, child(image, 0, names[which]), 100 + (uint64_t)which);

	if (which == 0)
		fill_big(image, dir);
	else if (which == 1)
		image->dirs.items[dir]->error = EACCES;
	else if (which == 2)
		fill_links(image, dir);
	else if (which == 3)
		image->dirs.items[dir]->dev = OTHER_DEVICE;
	else if (which == 5)
		fill_deep(image, dir);
	if (which != 4)
		return;
	fill_names(image, dir, changed);
	fill_below_names(image, child(image, dir, "a.d"), 0);
	fill_below_names(image, child(image, dir, "a-d"), 1);
}

static void set_facts(struct image *image)
{
	image->made = (struct timespec){ 1700000000, 42 };
	image->root_path = xstrdup("/srv/mirror");
	image->options = xstrdup("-aH --exclude=x");
	image->io_error = 1;
	image->followed_links = true;
	image->has_atimes = true;
	image->digests = ATTR_DIGEST_XXH128 | ATTR_DIGEST_MD5;
}

static struct image *new_image(int first, bool changed)
{
	struct image *image = image_new();

	set_facts(image);
	fill_root(image);
	for (int i = 0; i < 6; i++)
		fill_dir(image, (first + i) % 6, changed);
	return image;
}

/* --- snapshots of them --- */

struct written {
	void *bytes;
	size_t length;
	struct attr_snapshot *snapshot;
};

/* User 12 has no name. */
static char *name_of_id(void *context, const char *kind, const char *text)
{
	(void)context;
	return strcmp(text, "12") ? xasprintf("%s-%s", kind, text) : NULL;
}

static struct written write_image(const struct image *image)
{
	struct fs_ids *ids = fs_ids_new(name_of_id, NULL);
	struct strbuf why = STRBUF_INIT;
	struct written written;

	written.bytes = snapshot_bytes(image, 3, ids, &written.length);
	written.snapshot = snapshot_from_memory(written.bytes, written.length, &why);
	assert_string_equal(strbuf_text(&why), "");
	assert_non_null(written.snapshot);
	fs_ids_free(ids);
	return written;
}

static void drop(struct written *written)
{
	attr_snapshot_close(written->snapshot);
	free(written->bytes);
}

static void assert_same_bytes(const struct image *image, const struct written *expected)
{
	struct written written = write_image(image);

	assert_int_equal(written.length, expected->length);
	assert_memory_equal(written.bytes, expected->bytes, expected->length);
	drop(&written);
}

/* --- what was put in is what comes out --- */

static void assert_same_side(const struct image_dir *dir, const struct entry *built, const struct entries *view,
			     const struct entry *entry)
{
	static const struct entry_side none;
	struct entry_side expanded;
	const struct entry_side *expected = entry_side_of(&dir->entries, built), *side = entry_any_side(view, entry, &expanded);

	if (!expected)
		expected = &none;
	if (!side)
		side = &none;
	assert_int_equal(side->rdev_major, expected->rdev_major);
	assert_int_equal(side->rdev_minor, expected->rdev_minor);
	assert_int_equal(side->atime, expected->atime);
	if (entry->flags & ENTRY_HARD_LINKED) {
		assert_int_equal(side->dev, dir->dev);
		assert_int_equal(side->ino, expected->ino);
	}
	if (entry_is_symlink(entry)) {
		assert_int_equal(side->target_length, expected->target_length);
		assert_string_equal(entry_target(view, entry), entry_target(&dir->entries, built));
	}
}

static void assert_same_digest(const struct image *image, const struct entries *list, const struct entry *built,
			       const struct entries *view, const struct entry *entry)
{
	const struct entry_side *side = entry_side_of(list, built);
	struct entry_side expanded;
	const struct entry_side *origin = entry_any_side(view, entry, &expanded);

	if (!side || !side->digest) {
		assert_null(attr_snapshot_digest(view, entry, ATTR_DIGEST_XXH128));
		assert_null(attr_snapshot_digest(view, entry, ATTR_DIGEST_MD5));
		assert_true(!origin || (!origin->ctime && !origin->ctime_nsec));
		return;
	}
	const struct image_digest *digest = &image->digest_list.items[side->digest - 1];

	assert_memory_equal(attr_snapshot_digest(view, entry, ATTR_DIGEST_XXH128), digest->xxh128, 16);
	assert_memory_equal(attr_snapshot_digest(view, entry, ATTR_DIGEST_MD5), digest->md5, 16);
	assert_non_null(origin);
	assert_int_equal(origin->ino, side->ino);
	assert_int_equal(origin->ctime, side->ctime);
	assert_int_equal(origin->ctime_nsec, side->ctime_nsec);
}

static void assert_same_attributes(const struct entries *list, const struct entry *built, const struct entries *view,
				   const struct entry *entry)
{
	assert_int_equal(entry->name_length, built->name_length);
	assert_string_equal(entry_name(view, entry), entry_name(list, built));
	assert_int_equal(entry->size, built->size);
	assert_int_equal(entry->mtime, built->mtime);
	assert_int_equal(entry->mtime_nsec, built->mtime_nsec);
	assert_int_equal(entry->mode, built->mode);
	assert_int_equal(entry->uid, built->uid);
	assert_int_equal(entry->gid, built->gid);
	assert_int_equal(entry->flags, built->flags & (ENTRY_HARD_LINKED | ENTRY_MOUNT));
}

static void assert_same_dir(const struct image *image, uint32_t number, const struct attr_snapshot *snapshot, uint32_t dir)
{
	const struct image_dir *expected = image->dirs.items[number];
	struct snapshot_dir_facts facts;
	struct strbuf path = STRBUF_INIT, expected_path = STRBUF_INIT;
	struct entries view;
	uint32_t next = 0;

	facts = attr_snapshot_dir(snapshot, dir);
	assert_int_equal(facts.dev, expected->dev);
	assert_int_equal(facts.ino, expected->ino);
	assert_int_equal(facts.ctime, expected->ctime);
	assert_int_equal(facts.ctime_nsec, expected->ctime_nsec);
	assert_int_equal(facts.error, expected->error);
	attr_snapshot_dir_path(snapshot, dir, &path);
	image_dir_path(image, number, &expected_path);
	assert_string_equal(strbuf_text(&path), strbuf_text(&expected_path));
	view = attr_snapshot_view(snapshot, dir);
	assert_int_equal(view.count, expected->entries.count);
	for (uint32_t i = 0; i < view.count; i++) {
		const struct entry *built = &expected->entries.items[i], *entry = &view.items[i];

		assert_same_attributes(&expected->entries, built, &view, entry);
		assert_same_side(expected, built, &view, entry);
		assert_same_digest(image, &expected->entries, built, &view, entry);
		if (entry_is_dir(entry))
			assert_same_dir(image, expected->first_child + next++, snapshot, entry->dir);
	}
	assert_int_equal(next, expected->child_count);
	strbuf_free(&path);
	strbuf_free(&expected_path);
}

UNIT_TEST(what_was_put_in_comes_out)
{
	struct image *image = new_image(0, false);
	struct written written = write_image(image);
	struct entries root = attr_snapshot_root(written.snapshot);
	assert_same_attributes(&image->root, image->root.items, &root, root.items);
	assert_same_dir(image, 0, written.snapshot, 0);
	drop(&written);
	image_free(image);
}

UNIT_TEST(the_facts_are_those_of_the_image)
{
	struct image *image = new_image(0, false);
	struct written written = write_image(image);
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(written.snapshot);

	assert_int_equal(facts->generation, 3);
	assert_int_equal(facts->made, 1700000000);
	assert_int_equal(facts->made_nsec, 42);
	assert_int_equal(facts->root_dev, DEVICE);
	assert_int_equal(facts->root_ino, 2);
	assert_int_equal(facts->io_error, 1);
	assert_true(facts->followed_links);
	assert_true(facts->has_atimes);
	assert_int_equal(facts->digests, ATTR_DIGEST_XXH128 | ATTR_DIGEST_MD5);
	assert_string_equal(facts->root_path, "/srv/mirror");
	assert_string_equal(facts->options, "-aH --exclude=x");
	assert_memory_equal(facts->version, "rsync-huai ", 11);
	assert_int_equal(image_count(image), facts->entry_count);
	assert_int_equal(image->dirs.count, facts->dir_count);
	assert_int_equal(facts->entry_count, 1 + 14 + 5000 + 8 + 8 + 2 + 2 * 19);
	assert_int_equal(facts->content_bytes,
			 ((uint64_t)1 << 40) + 4999 * 5000 / 2 + (20 + 24 + 1 + 2 + 3 + 28) + (32 + 33) + 18 * 19 / 2);
	drop(&written);
	image_free(image);
}

UNIT_TEST(names_of_owners_are_stored_where_they_are_known)
{
	struct image *image = new_image(0, false);
	struct written written = write_image(image);

	assert_string_equal(attr_snapshot_owner(written.snapshot, false, 0), "uid-0");
	assert_string_equal(attr_snapshot_owner(written.snapshot, false, 1000), "uid-1000");
	assert_string_equal(attr_snapshot_owner(written.snapshot, false, 4000000000), "uid-4000000000");
	assert_null(attr_snapshot_owner(written.snapshot, false, 12));
	assert_null(attr_snapshot_owner(written.snapshot, false, 34));
	assert_string_equal(attr_snapshot_owner(written.snapshot, true, 34), "gid-34");
	assert_null(attr_snapshot_owner(written.snapshot, true, 1000));
	drop(&written);
	image_free(image);
}

static const struct snapshot_chunk *chunk_of(const struct written *written, const char *tag)
{
	const struct snapshot_header *header = written->bytes;
	const struct snapshot_chunk *chunks = (const void *)(header + 1);

	for (uint32_t i = 0; i < header->chunk_count; i++)
		if (!strncmp(chunks[i].tag, tag, sizeof chunks[i].tag))
			return &chunks[i];
	return NULL;
}

/* The order in which the entries have them is not to be seen either. */
UNIT_TEST(owners_are_sorted)
{
	struct image *image = new_image(0, false);
	struct written written = write_image(image);
	const struct snapshot_chunk *chunk = chunk_of(&written, "owners");
	uint64_t last = 0, count = 0;

	assert_non_null(chunk);
	for (uint64_t at = 0; at < chunk->length; count++) {
		const struct snapshot_owner *owner = (const void *)((const char *)written.bytes + chunk->offset + at);
		uint64_t key = (uint64_t)owner->is_group << 32 | owner->id;

		assert_true(!at || key > last);
		last = key;
		at += (sizeof *owner + owner->length + 4) / 4 * 4;
	}
	assert_int_equal(count, 6);
	drop(&written);
	image_free(image);
}

UNIT_TEST(what_is_optional_is_only_there_if_it_is_needed)
{
	struct image *image = new_image(0, false);
	struct written all = write_image(image);

	image->has_atimes = false;
	image->digests = ATTR_DIGEST_MD5;
	struct written some = { 0 };

	some.bytes = snapshot_bytes(image, 1, NULL, &some.length);
	assert_non_null(chunk_of(&all, "xxh128"));
	assert_non_null(chunk_of(&all, "atimes"));
	assert_non_null(chunk_of(&some, "md5"));
	assert_non_null(chunk_of(&some, "origins"));
	assert_null(chunk_of(&some, "xxh128"));
	assert_null(chunk_of(&some, "atimes"));
	assert_null(chunk_of(&some, "owners"));
	drop(&all);
	drop(&some);
	image_free(image);
}

UNIT_TEST(a_file_of_another_device_has_no_hard_link_group)
{
	struct image *image = new_image(0, false);
	const struct entries *list = &image->dirs.items[child(image, 0, "links")]->entries;

	assert_false(list->items[entries_find(list, "bind", false)].flags & ENTRY_HARD_LINKED);
	assert_true(list->items[entries_find(list, "linked", false)].flags & ENTRY_HARD_LINKED);
	image_free(image);
}

UNIT_TEST(an_empty_tree_is_its_root)
{
	struct image *image = image_new();
	struct fs_stat st = { .mode = S_IFDIR | 0700, .dev = 1, .ino = 1 };

	image_set_root(image, &st);
	struct written written = write_image(image);

	assert_int_equal(attr_snapshot_facts(written.snapshot)->entry_count, 1);
	assert_int_equal(attr_snapshot_facts(written.snapshot)->dir_count, 1);
	assert_false(attr_snapshot_facts(written.snapshot)->has_atimes);
	assert_int_equal(attr_snapshot_facts(written.snapshot)->digests, 0);
	drop(&written);
	image_free(image);
}

/* --- the same content is the same bytes --- */

UNIT_TEST(the_order_in_which_directories_were_filled_does_not_show)
{
	struct image *image = new_image(0, false);
	struct written expected = write_image(image);

	image_free(image);
	for (int first = 1; first < 6; first++) {
		image = new_image(first, false);
		assert_same_bytes(image, &expected);
		image_free(image);
	}
	drop(&expected);
}

/* Directory `dir` of the snapshot, and all below it, as views. */
static void add_views(struct image *image, uint32_t number, const struct attr_snapshot *old, uint32_t dir)
{
	struct image_dir *node = image->dirs.items[number];
	struct snapshot_dir_facts facts = attr_snapshot_dir(old, dir);
	node->dev = facts.dev;
	node->ino = facts.ino;
	node->ctime = facts.ctime;
	node->ctime_nsec = facts.ctime_nsec;
	node->error = facts.error;
	node->entries = attr_snapshot_view(old, dir);
	image_add_children(image, number);
	for (uint32_t i = 0; i < node->child_count; i++)
		add_views(image, node->first_child + i, old,
			  node->entries.items[node->entries.count - node->child_count + i].dir);
}

static uint32_t old_child(const struct attr_snapshot *old, uint32_t dir, const char *name)
{
	struct entries view = attr_snapshot_view(old, dir);
	return view.items[entries_find(&view, name, true)].dir;
}

static struct image *new_root_image(void)
{
	struct image *image = image_new();

	set_facts(image);
	fill_root(image);
	return image;
}

/* Views of `old`, but for the directories whose bits are set in `built`; bit 4 has those below it as views in any case. */
static struct image *new_mixed_image(const struct attr_snapshot *old, unsigned built, bool changed)
{
	static const char *const names[] = { "big", "closed", "links", "mount", "a lot of names", "deep" };
	struct image *image = new_root_image();

	for (int i = 0; i < 6; i++) {
		uint32_t dir = child(image, 0, names[i]), old_dir = old_child(old, 0, names[i]);

		if (!(built >> i & 1)) {
			add_views(image, dir, old, old_dir);
		} else if (i == 4) {
			fill_names(image, set_dir(image, dir, 104), changed);
			add_views(image, child(image, dir, "a.d"), old, old_child(old, old_dir, "a.d"));
			add_views(image, child(image, dir, "a-d"), old, old_child(old, old_dir, "a-d"));
		} else {
			fill_dir(image, i, changed);
		}
	}
	return image;
}

UNIT_TEST(views_of_an_old_snapshot_give_the_bytes_of_a_scan)
{
	struct image *image = new_image(0, false);
	struct written old = write_image(image);

	image_free(image);
	for (unsigned built = 0; built < 64; built++) {
		image = new_mixed_image(old.snapshot, built, false);
		assert_same_bytes(image, &old);
		image_free(image);
	}
	drop(&old);
}

UNIT_TEST(a_refresh_that_moves_directory_numbers_gives_the_bytes_of_a_scan)
{
	struct image *image = new_image(0, false), *later = new_image(0, true);
	struct written old = write_image(image), expected = write_image(later);

	assert_true(old.length < expected.length);
	image_free(image);
	image_free(later);
	for (unsigned built = 0; built < 64; built++) {
		/* Forwards, with one directory more, and back. */
		image = new_mixed_image(old.snapshot, built | 1u << 4, true);
		assert_same_bytes(image, &expected);
		image_free(image);
		image = new_mixed_image(expected.snapshot, built | 1u << 4, false);
		assert_same_bytes(image, &old);
		image_free(image);
	}
	drop(&old);
	drop(&expected);
}

UNIT_TEST(a_whole_tree_of_views_gives_the_same_bytes)
{
	struct image *image = new_image(0, false);
	struct written old = write_image(image);
	struct fs_stat st = { .mode = S_IFDIR | 0751, .uid = 12, .gid = 34, .mtime = 1500000000, .mtime_nsec = 5,
			      .dev = DEVICE, .ino = 2, .ctime = 1500000001, .ctime_nsec = 6 };

	image_free(image);
	image = image_new();
	set_facts(image);
	image_set_root(image, &st);
	add_views(image, 0, old.snapshot, 0);
	assert_same_bytes(image, &old);
	image_free(image);
	drop(&old);
}

UNIT_TEST(what_is_no_longer_wanted_is_left_behind)
{
	static const unsigned wanted[] = { 0, ATTR_DIGEST_XXH128, ATTR_DIGEST_MD5 };
	struct image *built = new_image(0, false);
	struct written old = write_image(built);

	built->has_atimes = false;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		struct image *image = new_mixed_image(old.snapshot, 1, false);

		image->has_atimes = false;
		image->digests = built->digests = wanted[i];
		struct written expected = write_image(built);

		assert_int_equal(attr_snapshot_facts(expected.snapshot)->digests, wanted[i]);
		assert_same_bytes(image, &expected);
		drop(&expected);
		image_free(image);
	}
	image_free(built);
	drop(&old);
}

UNIT_TEST(what_an_old_snapshot_lacks_its_views_lack)
{
	struct image *image = new_image(0, false);
	struct entry_side expanded;
	struct entries view;

	image->has_atimes = false;
	image->digests = 0;
	struct written old = write_image(image);

	image_free(image);
	image = new_mixed_image(old.snapshot, 0, false);
	struct written written = write_image(image);

	view = attr_snapshot_view(written.snapshot, 0);
	const struct entry *entry = &view.items[entries_find(&view, "zero", false)];

	assert_int_equal(entry_any_side(&view, entry, &expanded)->atime, 1660000000);
	assert_non_null(attr_snapshot_digest(&view, entry, ATTR_DIGEST_MD5));
	view = attr_snapshot_view(written.snapshot, old_child(written.snapshot, 0, "big"));
	for (uint32_t i = 0; i < view.count; i++) {
		assert_int_equal(entry_any_side(&view, &view.items[i], &expanded)->atime, 0);
		assert_null(attr_snapshot_digest(&view, &view.items[i], ATTR_DIGEST_MD5));
		assert_null(attr_snapshot_digest(&view, &view.items[i], ATTR_DIGEST_XXH128));
	}
	image_free(image);
	drop(&old);
	drop(&written);
}

/* --- files --- */

/* Is there nothing but `name` in the directory? */
static bool is_alone(const char *directory, const char *name)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	bool alone = true;

	assert_non_null(stream);
	while ((entry = readdir(stream)))
		alone = alone && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || !strcmp(entry->d_name, name));
	closedir(stream);
	return alone;
}

static uint64_t generation_of(const char *path)
{
	struct strbuf why = STRBUF_INIT;
	struct attr_snapshot *snapshot = attr_snapshot_open(path, &why);

	assert_string_equal(strbuf_text(&why), "");
	assert_non_null(snapshot);
	uint64_t generation = attr_snapshot_facts(snapshot)->generation;

	attr_snapshot_close(snapshot);
	return generation;
}

static void assert_written(const struct image *image, const char *path, uint64_t generation)
{
	struct strbuf why = STRBUF_INIT;
	struct stat st;
	uint64_t size;

	assert_return_code(attr_snapshot_write(image, path, generation, NULL, &size, &why), errno);
	assert_string_equal(strbuf_text(&why), "");
	assert_return_code(stat(path, &st), errno);
	assert_int_equal(st.st_size, size);
}

static void assert_refused(const struct image *image, const char *path, int error, const char *expected)
{
	struct strbuf why = STRBUF_INIT;
	uint64_t size;

	assert_int_equal(attr_snapshot_write(image, path, 0, NULL, &size, &why), -1);
	assert_int_equal(errno, error);
	assert_string_equal(strbuf_text(&why), expected);
	strbuf_free(&why);
}

static void assert_file_holds(const char *path, const unsigned char *expected, size_t length)
{
	unsigned char *bytes = malloc(length + 1);
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, length + 1, file), length);
	assert_memory_equal(bytes, expected, length);
	fclose(file);
	free(bytes);
}

UNIT_TEST(a_file_stands_alone_and_has_the_same_bytes_each_time)
{
	struct image *image = new_image(0, false);
	size_t length;
	unsigned char *expected = snapshot_bytes(image, 9, NULL, &length);

	tree_dir("bytes");
	assert_written(image, "bytes/file", 9);
	assert_file_holds("bytes/file", expected, length);
	assert_true(is_alone("bytes", "file"));
	free(expected);
	image_free(image);
}

UNIT_TEST(room_got_before_does_not_show_in_the_file)
{
	struct image *image = new_image(0, false);
	size_t length;
	unsigned char *expected = snapshot_bytes(image, 9, NULL, &length);
	const size_t sizes[] = { 1, length / 2, length, 4 * length + 1000000, SIZE_MAX };
	struct stat st;

	image_free(image);
	tree_dir("room");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		image = new_image(0, false);
		attr_snapshot_reserve(image, "room/file", sizes[i]);
		assert_written(image, "room/file", 9);
		assert_file_holds("room/file", expected, length);
		assert_return_code(stat("room/file", &st), errno);
		assert_in_range((uint64_t)st.st_blocks * 512, 0, length + (64 << 10));
		/* There is none for a second one. */
		assert_written(image, "room/second", 9);
		assert_file_holds("room/second", expected, length);
		image_free(image);
		assert_return_code(unlink("room/second"), errno);
	}
	free(expected);
}

UNIT_TEST(room_that_is_not_used_or_not_to_be_had_leaves_nothing)
{
	struct image *unused = new_image(0, false), *nowhere = new_image(0, false);

	tree_dir("unused");
	attr_snapshot_reserve(unused, "unused/file", 1000000);
	attr_snapshot_reserve(nowhere, "nowhere/file", 1000000);
	assert_written(nowhere, "unused/other", 9);
	image_free(unused);
	image_free(nowhere);
	assert_true(is_alone("unused", "other"));
}

UNIT_TEST(each_file_is_one_generation_after_the_one_it_replaces)
{
	struct image *image = new_root_image();

	assert_written(image, "generations", 0);
	assert_int_equal(generation_of("generations"), 1);
	assert_written(image, "generations", 0);
	assert_int_equal(generation_of("generations"), 2);
	assert_written(image, "generations", 77);
	assert_written(image, "generations", 0);
	assert_int_equal(generation_of("generations"), 78);
	assert_written(image, "generations", UINT64_MAX);
	assert_written(image, "generations", 0);
	assert_int_equal(generation_of("generations"), 1);
	tree_file("generations", "attrsnap, but not for long");
	assert_written(image, "generations", 0);
	assert_int_equal(generation_of("generations"), 1);
	image_free(image);
}

static mode_t mode_with_umask(const struct image *image, mode_t mask)
{
	mode_t before = umask(mask);
	struct stat st;

	assert_written(image, "mode", 0);
	umask(before);
	assert_return_code(stat("mode", &st), errno);
	return st.st_mode & 07777;
}

UNIT_TEST(nobody_but_the_owner_can_ever_write_a_snapshot)
{
	struct image *image = new_root_image();

	assert_int_equal(mode_with_umask(image, 0), 0644);
	assert_int_equal(mode_with_umask(image, 027), 0640);
	assert_int_equal(mode_with_umask(image, 077), 0600);
	image_free(image);
}

UNIT_TEST(only_regular_files_are_replaced)
{
	struct image *image = new_root_image();
	struct stat st;

	tree_dir("refused");
	tree_dir("refused/dir");
	assert_return_code(mkfifo("refused/fifo", 0600), errno);
	assert_refused(image, "refused/dir", EISDIR, "only a regular file is replaced");
	assert_refused(image, "refused/fifo", EINVAL, "only a regular file is replaced");
	assert_refused(image, "refused/", EISDIR, "cannot find its directory");
	assert_refused(image, "refused/none/file", ENOENT, "cannot find its directory");
	assert_refused(image, "/proc/self/fd/1", EINVAL, "cannot find its directory");
	assert_return_code(lstat("refused/fifo", &st), errno);
	assert_true(S_ISFIFO(st.st_mode));
	image_free(image);
}

UNIT_TEST(a_symlink_stays_and_what_it_names_is_replaced)
{
	struct image *image = new_root_image();
	struct stat st;

	tree_dir("far");
	tree_link("far/snapshot", "current");
	assert_written(image, "current", 0);
	assert_written(image, "current", 0);
	assert_return_code(lstat("current", &st), errno);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(generation_of("far/snapshot"), 2);
	assert_true(is_alone("far", "snapshot"));
	image_free(image);
}

/* Wherever the file system is full: at each size at which another write fails. */
UNIT_TEST(a_write_that_fails_leaves_the_old_file)
{
	struct image *image = new_image(0, false), *small = new_root_image();
	struct rlimit before, limit;
	struct sigaction ignored = { .sa_handler = SIG_IGN }, old_action;

	tree_dir("full");
	assert_written(small, "full/file", 5);
	assert_return_code(getrlimit(RLIMIT_FSIZE, &before), errno);
	assert_return_code(sigaction(SIGXFSZ, &ignored, &old_action), errno);
	limit = before;
	for (rlim_t size = 0; size < 600000; size += size < 10000 ? 1000 : 100000) {
		limit.rlim_cur = size;
		assert_return_code(setrlimit(RLIMIT_FSIZE, &limit), errno);
		assert_refused(image, "full/file", EFBIG, "cannot write it");
		assert_return_code(setrlimit(RLIMIT_FSIZE, &before), errno);
		assert_int_equal(generation_of("full/file"), 5);
		assert_true(is_alone("full", "file"));
	}
	sigaction(SIGXFSZ, &old_action, NULL);
	assert_written(image, "full/file", 0);
	assert_int_equal(generation_of("full/file"), 6);
	image_free(image);
	image_free(small);
}

/* A file system that has no O_TMPFILE is one whose kernel says so. */
static int forbid_unnamed_files(void)
{
	enum { LOWER = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4 };
	enum { FLAGS = offsetof(struct seccomp_data, args[2]) + LOWER };
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FLAGS),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof code / sizeof *code, .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

UNIT_TEST(where_every_file_has_a_name_a_temp_file_is_renamed)
{
	pid_t process = fork();
	int status;

	if (process == 0) {
		tree_dir("named");
		assert_return_code(chdir("named"), errno);
		if (forbid_unnamed_files() < 0)
			_exit(77);
		assert_int_equal(openat(AT_FDCWD, ".", O_TMPFILE | O_RDWR, 0600), -1);
		assert_int_equal(errno, EOPNOTSUPP);
		test_a_file_stands_alone_and_has_the_same_bytes_each_time(state);
		test_each_file_is_one_generation_after_the_one_it_replaces(state);
		test_nobody_but_the_owner_can_ever_write_a_snapshot(state);
		test_a_write_that_fails_leaves_the_old_file(state);
		_exit(0);
	}
	assert_int_equal(waitpid(process, &status, 0), process);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip(); /* no seccomp here */
	assert_int_equal(status, 0);
}

UNIT_TEST(more_file_systems_than_the_format_can_count_are_refused)
{
	struct image *image = image_new();
	struct strbuf why = STRBUF_INIT;
	uint64_t size;

	for (int i = 0; i < 65535; i++) {
		char name[16];
		snprintf(name, sizeof name, "%d", i);
		add(image, 0, name, S_IFDIR | 0755);
	}
	image_add_children(image, 0);
	for (uint32_t i = 1; i < 65536; i++)
		image->dirs.items[i]->dev = i;
	assert_int_equal(attr_snapshot_write(image, "devices", 0, NULL, &size, &why), -1);
	assert_int_equal(errno, EFBIG);
	assert_string_equal(strbuf_text(&why), "too many mounted file systems for one attr snapshot");
	assert_false(tree_has("devices"));
	image->dirs.items[65535]->dev = 1;
	assert_written(image, "devices", 0);
	assert_int_equal(generation_of("devices"), 1);
	image_free(image);
	strbuf_free(&why);
}

UNIT_GROUP(tree_setup, tree_teardown)
