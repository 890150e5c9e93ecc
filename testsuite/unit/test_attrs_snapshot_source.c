/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A snapshot in the place of the tree that it was made of: the same entries, errors and messages as from the live tree, for
 * every path, option and user. The snapshot's source has no root directory at all while it is asked for attributes, so what it
 * says can only come from the mapping.
 */
#include "attrs/snapshot_write.h"
#include "fs_tree.h"
#include "snapshot_memory.h"

#include <dirent.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "attrs/image.h"
#include "attrs/source.h"
#include "lib/log.h"
#include "lib/vec.h"
#include "wire/session.h"

enum { NOBODY = 65534, OTHERS = 65533 };

/* Both sides of the comparison. The sources share nothing but the options. */
struct pair {
	struct attr_source live, mapped;
	const char *what; /* the case, for failures */
	int failures;
};

/* --- the tree --- */

static void tree_mode(const char *path, uid_t uid, gid_t gid, mode_t mode)
{
	assert_return_code(chown(path, uid, gid), errno);
	assert_return_code(chmod(path, mode), errno);
}

static void make_links(void)
{
	static const char *const links[][2] = {
		{ "a", "to_a" }, { "dir", "to_dir" }, { "nowhere", "dangling" }, { "/etc/passwd", "absolute" },
		{ "/a", "at_root" }, { "/", "root" }, { "/dir/sub", "at_root_dir" }, { "../outside", "out" },
		{ "../tree/a", "out_and_in" }, { "..", "parent" }, { "loop2", "loop1" }, { "loop1", "loop2" },
		{ "self", "self" }, { "dir/", "slash" }, { "a/", "file_slash" }, { "dir/..", "dir_dots" },
		{ "a/x", "through_file" }, { ".", "dot" }, { "dir/up", "twice" }, { "to_dir/sub/deep", "via_link" },
		{ "locked/f", "to_locked" }, { "nosearch", "to_nosearch" }, { "/rsyncd-munged/a", "munged" },
		{ "/rsyncd-munged/", "munged_empty" }, { "dir/../../tree", "climbing" }, { "twice/", "twice_slash" },
		{ "../a", "dir/up" }, { "..", "dir/back" }, { "../..", "dir/far" }, { "../dir/sub", "dir/round" },
		{ "../nosearch/sub", "dir/into_nosearch" }, { "./././a", "dots" }, { "fifo", "to_fifo" },
	};
	char target[16], name[300];

	for (size_t i = 0; i < sizeof links / sizeof *links; i++)
		tree_link(links[i][0], links[i][1]);
	tree_link("a", "chain1");
	for (int i = 2; i <= 42; i++) {
		snprintf(target, sizeof target, "chain%d", i - 1);
		snprintf(name, sizeof name, "chain%d", i);
		tree_link(target, name);
	}
	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = '\0';
	tree_link(name, "to_long_name");
}

static void make_forbidden(void)
{
	static const struct { const char *name; uid_t uid; gid_t gid; mode_t mode; } dirs[] = {
		{ "locked", 0, 0, 0700 }, { "noread", 0, 0, 0711 }, { "nosearch", 0, 0, 0744 }, { "group", 0, OTHERS, 0750 },
		{ "group_shut", 0, OTHERS, 0705 }, { "owner_shut", NOBODY, 0, 0077 }, { "own", NOBODY, 0, 0700 },
	};
	char path[64];

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		tree_dir(dirs[i].name);
		snprintf(path, sizeof path, "%s/f", dirs[i].name);
		tree_file(path, dirs[i].name);
		snprintf(path, sizeof path, "%s/sub", dirs[i].name);
		tree_dir(path);
		snprintf(path, sizeof path, "%s/link", dirs[i].name);
		tree_link("../a", path);
		tree_mode(dirs[i].name, dirs[i].uid, dirs[i].gid, dirs[i].mode);
	}
	tree_file("unreadable", "");
	tree_mode("unreadable", 0, 0, 0600);
	tree_file("group_file", "g");
	tree_mode("group_file", 0, OTHERS, 0640);
	tree_dir("unreadable_dir");
	tree_mode("unreadable_dir", 0, 0, 0600);
	tree_link("unreadable", "to_unreadable");
}

/* Away from now, whole and with nanoseconds; access time and modification time tell each other apart. */
static void set_times(const char *path, int seed)
{
	struct timespec times[2] = { { 1500000000 + seed, 7 }, { 1400000000 - seed, 123456789 } };

	assert_return_code(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), errno);
}

static int make_tree(void **state)
{
	if (geteuid() != 0)
		return 0;
	if (tree_setup(state) < 0)
		return -1;
	tree_file("outside", "not to be seen");
	tree_dir("tree");
	assert_return_code(chdir("tree"), errno);
	tree_file("a", "the file");
	tree_file("B", "");
	tree_file("\xff" " odd\n", "x");
	tree_dir("dir");
	tree_file("dir/file", "in dir");
	tree_dir("dir/sub");
	tree_file("dir/sub/deep", "deep down");
	tree_dir("empty");
	assert_return_code(link("a", "hard1"), errno);
	assert_return_code(link("a", "dir/hard2"), errno);
	assert_return_code(mkfifo("fifo", 0640), errno);
	assert_return_code(mknod("device", S_IFCHR | 0600, makedev(10, 200)), errno);
	make_links();
	make_forbidden();
	set_times("a", 1);
	set_times("dir/file", 2);
	set_times("to_a", 3);
	set_times("fifo", 4);
	set_times("dir", 5);
	return chdir("..");
}

static int remove_tree(void **state)
{
	return geteuid() == 0 ? tree_teardown(state) : 0;
}

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

/* --- a snapshot of it --- */

static void fill_dir(struct image *image, struct attr_source *source, uint32_t number)
{
	struct scan_options options = { .links = true, .hard_links = true, .atimes = true };
	struct image_dir *dir = image->dirs.items[number];
	struct strbuf path = STRBUF_INIT;
	struct fs_stat st;

	image_dir_path(image, number, &path);
	assert_return_code(fs_stat_follow(&source->attr_root, strbuf_text(&path), &st), errno);
	image_dir_stat(dir, &st);
	if (number == 0) {
		image_set_root(image, &st);
		image->root.items[0].size = st.size;
	}
	attr_source_scan(source, &options, strbuf_text(&path), strbuf_text(&path), &dir->entries, &image->io_error);
	image_add_children(image, number);
	strbuf_free(&path);
}

static struct image *image_of(const char *directory, bool has_atimes)
{
	struct attr_source source = { .kind = ATTRS_LIVE };
	struct image *image = image_new();

	image->has_atimes = has_atimes;
	assert_return_code(fs_root_open(&source.attr_root, directory), errno);
	for (uint32_t i = 0; i < image->dirs.count; i++)
		fill_dir(image, &source, i);
	fs_root_close(&source.attr_root);
	return image;
}

/* What a session leaves to the end of its process. */
static void finish_source(struct attr_source *source)
{
	vec_free(&source->links);
	fs_credentials_free(&source->who);
}

/* The snapshot's bytes stay until the process ends. */
static struct attr_snapshot *snapshot_of(struct image *image)
{
	size_t length;
	struct strbuf why = STRBUF_INIT;
	void *bytes = snapshot_bytes(image, 1, NULL, &length);
	struct attr_snapshot *snapshot = snapshot_from_memory(bytes, length, &why);

	if (!snapshot)
		fail_msg("snapshot refused: %s", strbuf_text(&why));
	image_free(image);
	return snapshot;
}

/* Without a real tree. */
static struct attr_source mapped(const struct attr_snapshot *snapshot)
{
	return (struct attr_source){ .kind = ATTRS_SNAPSHOT, .snapshot = snapshot, .attr_root.fd = -1 };
}

/* --- what a call has said --- */

static VEC(char *) messages;

static void keep_message(void *context, enum log_kind kind, const char *text, size_t length)
{
	char *line;

	(void)context;
	assert_true(asprintf(&line, "%d %.*s", kind, (int)length, text) > 0);
	vec_push(&messages, line);
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A live directory has no order, so its messages have none. */
static void add_messages(struct strbuf *out)
{
	if (messages.count)
		qsort(messages.items, messages.count, sizeof *messages.items, compare_texts);
	for (size_t i = 0; i < messages.count; i++) {
		strbuf_add_string(out, messages.items[i]);
		free(messages.items[i]);
	}
	messages.count = 0;
}

static void add_side(struct strbuf *out, const struct scan_options *options, const struct entries *list,
		     const struct entry *entry)
{
	struct entry_side expanded;
	const struct entry_side *side = entry_any_side(list, entry, &expanded);

	if (options->hard_links && entry->flags & ENTRY_HARD_LINKED)
		strbuf_addf(out, " group %llu:%llu", (unsigned long long)side->dev, (unsigned long long)side->ino);
	if (options->atimes && !entry_is_dir(entry))
		strbuf_addf(out, " atime %lld", (long long)side->atime);
	if (entry_is_device(entry))
		strbuf_addf(out, " rdev %u:%u", side->rdev_major, side->rdev_minor);
	if (options->links && entry_is_symlink(entry))
		strbuf_addf(out, " -> %s (%u)", entry_target(list, entry), side->target_length);
	if (!list->snapshot && side && side->real_size)
		strbuf_addf(out, " real %llu", (unsigned long long)side->real_size);
}

static void add_entries(struct strbuf *out, const struct scan_options *options, const struct entries *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		const struct entry *entry = &list->items[i];
		unsigned flags = entry->flags & (options->hard_links ? ~0U : ~(unsigned)ENTRY_HARD_LINKED);

		strbuf_addf(out, "%s %o %u:%u %llu %lld.%09u flags %x root %u", entry_name(list, entry), entry->mode,
			    entry->uid, entry->gid, (unsigned long long)entry->size, (long long)entry->mtime,
			    entry->mtime_nsec, flags, entry_root(list, entry));
		assert_true(list->snapshot || entry->dir == 0);
		add_side(out, options, list, entry);
		strbuf_add_char(out, '\n');
	}
}

/* --- the calls --- */

static void say_scan(struct strbuf *out, struct attr_source *source, const struct scan_options *options, const char *path)
{
	struct entries list;
	int io_error = 0;

	entries_init(&list);
	int result = attr_source_scan(source, options, path, path, &list, &io_error);

	entries_sort(&list);
	strbuf_addf(out, "result %d io_error %d\n", result, io_error);
	add_entries(out, options, &list);
	add_messages(out);
	entries_free(&list);
}

static void say_entry(struct strbuf *out, struct attr_source *source, const struct scan_options *options, const char *path,
		      bool follow)
{
	struct entries list;
	int io_error = 0;

	entries_init(&list);
	errno = 0;
	int result = attr_source_entry(source, options, path, path, "name", follow, &list, &io_error);

	strbuf_addf(out, "result %d errno %d io_error %d\n", result, result == SCAN_MISSING ? errno : 0, io_error);
	add_entries(out, options, &list);
	add_messages(out);
	entries_free(&list);
}

static void say_stat(struct strbuf *out, struct attr_source *source, const char *path, bool follow)
{
	struct fs_stat st;

	if (attr_source_stat(source, path, follow, &st) < 0) {
		strbuf_addf(out, "errno %d\n", errno);
		return;
	}
	if (S_ISDIR(st.mode)) /* their sizes are the file system's own affair */
		st.size = 0;
	strbuf_addf(out, "%o %u:%u %llu %lld.%09u\n", st.mode, st.uid, st.gid, (unsigned long long)st.size, (long long)st.mtime,
		    st.mtime_nsec);
}

static void say_names(struct strbuf *out, struct attr_source *source, const char *path)
{
	struct attr_names names;
	struct fs_dirent name;

	if (attr_source_names(source, path, &names) < 0) {
		strbuf_addf(out, "errno %d\n", errno);
		return;
	}
	while (attr_names_next(&names, &name) > 0) {
		char *line;
		assert_int_equal(strlen(name.name), name.name_length);
		assert_true(asprintf(&line, "%s %d\n", name.name, name.type) > 0);
		vec_push(&messages, line);
	}
	attr_names_finish(&names);
	add_messages(out);
}

/* The line at which two texts begin to differ. */
static const char *line_of_difference(const char *text, const char *other)
{
	const char *line = text;

	for (size_t i = 0; text[i] && text[i] == other[i]; i++)
		if (text[i] == '\n')
			line = text + i + 1;
	return line;
}

static void check_same(struct pair *pair, const char *call, const char *path, struct strbuf *live, struct strbuf *mapped)
{
	const char *a = line_of_difference(strbuf_text(live), strbuf_text(mapped));
	const char *b = line_of_difference(strbuf_text(mapped), strbuf_text(live));

	if (strcmp(a, b) != 0 && pair->failures++ < 20)
		print_error("%s, %s of \"%.60s\":\nlive     %.*s\nsnapshot %.*s\n", pair->what, call, path,
			    (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
	strbuf_free(live);
	strbuf_free(mapped);
}

#define COMPARE(pair, path, call, ...) \
	do { \
		struct strbuf live_ = STRBUF_INIT, mapped_ = STRBUF_INIT; \
		call(&live_, &(pair)->live, __VA_ARGS__); \
		call(&mapped_, &(pair)->mapped, __VA_ARGS__); \
		check_same(pair, #call, path, &live_, &mapped_); \
	} while (0)

/* --- what is asked --- */

static char long_name[300], long_path[5000];

static const char *const paths[] = {
	"", ".", "..", "./.", "/", "/a", "a", "a/", "a/.", "a/..", "a/x", "./a", "dir", "dir/", "dir/.", "dir/..",
	"dir/../a", "dir/sub/../../a", "dir//file", "dir/sub/../../..", "dir/../../tree/a", "nope", "nope/", "nope/x",
	"nope/..", "to_a", "to_a/", "to_dir", "to_dir/", "to_dir/file", "to_dir/sub/deep", "to_dir/..", "to_dir/../a",
	"to_dir/nope", "dangling", "dangling/", "dangling/x", "absolute", "absolute/x", "at_root", "root", "root/", "root/a",
	"root/..", "at_root_dir", "at_root_dir/deep", "at_root_dir/../file", "out", "out_and_in", "parent", "parent/tree/a",
	"loop1", "loop1/", "loop1/x", "self", "slash", "slash/", "slash/file", "file_slash", "file_slash/x", "dir_dots",
	"dir_dots/a", "through_file", "dot", "dot/dot/dot/a", "twice", "twice/", "twice_slash", "via_link", "to_locked",
	"to_nosearch", "to_nosearch/f", "climbing", "climbing/a", "dir/up", "dir/back", "dir/back/a",
	"dir/back/dir/back/dir/back/to_dir/up", "dir/far", "dir/far/tree", "dir/round/deep", "dir/into_nosearch", "dots",
	"to_long_name", "to_long_name/x", "chain1", "chain39", "chain40", "chain41", "chain42", "chain40/", "chain20/x",
	"dot/chain39", "dot/chain40", "locked", "locked/", "locked/.", "locked/..", "locked/f", "locked/nope", "locked/sub",
	"locked/link", "noread", "noread/f", "noread/sub", "noread/nope", "noread/link", "nosearch", "nosearch/f",
	"nosearch/sub", "nosearch/..", "nosearch/.", "group", "group/f", "group/sub", "group_shut", "group_shut/f",
	"owner_shut", "owner_shut/f", "own", "own/f", "unreadable", "unreadable_dir", "unreadable_dir/x", "group_file",
	"empty", "empty/x", "fifo", "fifo/", "fifo/x", "device", "hard1", "dir/hard2", "\xff" " odd\n", "munged",
	"to_unreadable", "B", "b", "to_fifo", long_name, long_path,
};
#define PATH_COUNT (sizeof paths / sizeof *paths)

static bool excludes_some(void *context, const char *path, bool is_dir)
{
	(void)context;
	return is_dir ? strstr(path, "sub") != NULL : strstr(path, "up") || strstr(path, "dangl") || strstr(path, "loop");
}

static bool excludes_directories(void *context, const char *path, bool is_dir)
{
	(void)context, (void)path;
	return is_dir;
}

static const struct {
	const char *what;
	struct scan_options options;
	bool only_attrs;
} cases[] = {
	{ "plain", { 0 }, false },
	{ "-l", { .links = true }, false },
	{ "-H", { .links = true, .hard_links = true }, false },
	{ "-U", { .links = true, .hard_links = true, .atimes = true }, false },
	{ "-L", { .copy_links = true }, false },
	{ "-L -H -U", { .links = true, .copy_links = true, .hard_links = true, .atimes = true }, false },
	{ "-k", { .links = true, .copy_dirlinks = true }, false },
	{ "--copy-unsafe-links", { .links = true, .copy_unsafe_links = true }, false },
	{ "--copy-unsafe-links -k",
	  { .links = true, .copy_dirlinks = true, .copy_unsafe_links = true, .log_copied_unsafe = true }, false },
	{ "ignore nonreadable", { .links = true, .ignore_nonreadable = true }, false },
	{ "ignore nonreadable -L", { .links = true, .ignore_nonreadable = true, .copy_links = true }, false },
	{ "munge symlinks", { .links = true, .munge_symlinks = true }, false },
	{ "munge symlinks -L", { .links = true, .copy_links = true, .munge_symlinks = true }, false },
	{ "-x", { .links = true, .one_file_system = 1 }, false },
	{ "-xx", { .links = true, .one_file_system = 2, .log_mounts = true }, false },
	{ "only attributes", { .links = true, .hard_links = true }, true },
	{ "rules", { .links = true, .excluded = excludes_some }, false },
	{ "rules -L", { .links = true, .copy_links = true, .excluded = excludes_some }, false },
	{ "rules for directories -L", { .links = true, .copy_links = true, .excluded = excludes_directories }, false },
};
#define CASE_COUNT (sizeof cases / sizeof *cases)

static void compare_paths(struct pair *pair)
{
	pair->what = "paths";
	for (size_t i = 0; i < PATH_COUNT; i++) {
		COMPARE(pair, paths[i], say_stat, paths[i], false);
		COMPARE(pair, paths[i], say_stat, paths[i], true);
		COMPARE(pair, paths[i], say_names, paths[i]);
	}
}

static void compare_cases(struct pair *pair)
{
	for (size_t i = 0; i < CASE_COUNT; i++) {
		pair->what = cases[i].what;
		pair->live.only_attrs = pair->mapped.only_attrs = cases[i].only_attrs;
		for (size_t j = 0; j < PATH_COUNT; j++) {
			COMPARE(pair, paths[j], say_scan, &cases[i].options, paths[j]);
			COMPARE(pair, paths[j], say_entry, &cases[i].options, paths[j], false);
			COMPARE(pair, paths[j], say_entry, &cases[i].options, paths[j], true);
		}
	}
}

static void become(uid_t uid, gid_t group)
{
	if (setgroups(1, &group) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(98);
}

struct viewer {
	uid_t uid;
	gid_t group;   /* supplementary */
	bool confined; /* in a chroot on the tree, links are trusted */
	bool daemon, walk;
};

/* In a process of its own: all comparisons as one user. Exits with 1 if there is a difference. */
static void compare_all(const struct attr_snapshot *snapshot, const char *directory, const struct viewer *viewer)
{
	struct pair pair = { .live.kind = ATTRS_LIVE, .mapped = mapped(snapshot) };

	log_set_sink((struct log_sink){ keep_message, NULL });
	memset(long_name, 'n', sizeof long_name - 1);
	memset(long_path, '/', sizeof long_path - 1);
	if (fs_root_open(&pair.live.attr_root, directory) < 0)
		_exit(97);
	pair.mapped.attr_root.trusting = pair.live.attr_root.trusting = viewer->confined;
	pair.live.attr_root.no_openat2 |= viewer->walk;
	pair.live.module = pair.mapped.module = viewer->daemon ? "mod" : NULL;
	if (viewer->confined && (fchdir(pair.live.attr_root.fd) < 0 || chroot(".") < 0))
		_exit(96);
	if (viewer->uid)
		become(viewer->uid, viewer->group);
	compare_paths(&pair);
	compare_cases(&pair);
	_exit(pair.failures ? 1 : 0);
}

static void check_viewer(const struct attr_snapshot *snapshot, const char *directory, const struct viewer *viewer)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		compare_all(snapshot, directory, viewer);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

UNIT_TEST(a_snapshot_says_what_the_live_tree_says)
{
	static const struct viewer viewers[] = {
		{ 0, 0, false, false, false }, { 0, 0, false, true, true }, { 0, 0, true, true, false },
		{ NOBODY, OTHERS, false, true, false }, { NOBODY, OTHERS, false, false, true },
		{ NOBODY, OTHERS, true, true, false }, { OTHERS, 1, false, true, false }, { 1, 1, true, false, false },
	};

	need_root();
	/* Reading a symlink marks the access, the first time. */
	image_free(image_of("tree", true));
	struct attr_snapshot *snapshot = snapshot_of(image_of("tree", true));

	for (size_t i = 0; i < sizeof viewers / sizeof *viewers; i++)
		check_viewer(snapshot, "tree", &viewers[i]);
	attr_snapshot_close(snapshot);
}

/* In a mount name space of its own: 0 if all is well, 77 if nothing may be mounted here. */
static int compare_mounts(void)
{
	struct pair pair = { .live.kind = ATTRS_LIVE };
	static const char *const below[] = { "", "dir", "dir/mount", "to_mount" };

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
	    || mount("none", "mounts/dir/mount", "tmpfs", 0, NULL) < 0)
		return 77;
	tree_file("mounts/dir/mount/file", "");
	tree_dir("mounts/dir/mount/sub");
	pair.mapped = mapped(snapshot_of(image_of("mounts", true)));
	log_set_sink((struct log_sink){ keep_message, NULL });
	assert_return_code(fs_root_open(&pair.live.attr_root, "mounts"), errno);
	for (int x = 0; x <= 2; x++)
		for (size_t i = 0; i < sizeof below / sizeof *below; i++)
			for (int links = 0; links <= 1; links++) {
				struct scan_options options = { .one_file_system = x, .copy_links = links, .log_mounts = true };
				pair.what = "mounts";
				COMPARE(&pair, below[i], say_scan, &options, below[i]);
				COMPARE(&pair, below[i], say_entry, &options, below[i], true);
			}
	return pair.failures ? 1 : 0;
}

UNIT_TEST(mount_points_are_where_they_are_in_the_live_tree)
{
	int status;

	need_root();
	tree_dir("mounts");
	tree_dir("mounts/dir");
	tree_dir("mounts/dir/mount");
	tree_dir("mounts/dir/plain");
	tree_link("dir/mount", "mounts/to_mount");
	pid_t child = fork();

	if (child == 0)
		_exit(compare_mounts());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A scan with -x has left the contents of mount points out; their entries say so. */
UNIT_TEST(a_noted_mount_point_counts_without_its_device)
{
	struct scan_options options = { .one_file_system = 1 };
	struct entries list;
	int io_error = 0;

	struct image *image = image_new();
	struct entries *top = &image->dirs.items[0]->entries;

	entries_add(top, "mount", 5)->mode = S_IFDIR | 0755;
	top->items[0].flags = ENTRY_MOUNT;
	entries_add(top, "unknown", 7)->mode = S_IFDIR | 0755;
	image->dirs.items[0]->dev = 5;
	image->dirs.items[0]->ino = 2;
	image_add_children(image, 0);

	struct attr_source source = mapped(snapshot_of(image));

	entries_init(&list);
	assert_int_equal(attr_source_scan(&source, &options, "", "", &list, &io_error), SCAN_OK);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.items[0].flags, ENTRY_MOUNT | ENTRY_NO_CONTENT);
	assert_int_equal(list.items[1].flags, 0);
	entries_free(&list);
	finish_source(&source);
}

UNIT_TEST(what_the_scan_could_not_read_stays_unreadable)
{
	struct scan_options options = { .links = true };
	struct strbuf said = STRBUF_INIT;
	struct entries view;
	int io_error = 0;

	struct image *image = image_new();

	entries_add(&image->dirs.items[0]->entries, "bad", 3)->mode = S_IFDIR | 0755;
	image_add_children(image, 0);
	image->dirs.items[1]->error = EIO;
	struct attr_source source = mapped(snapshot_of(image));

	source.module = "mod";
	struct log_sink sink = log_set_sink((struct log_sink){ keep_message, NULL });

	assert_false(attr_source_view(&source, &options, 1, "bad", "bad", &view));
	say_scan(&said, &source, &options, "bad");
	log_set_sink(sink);
	assert_string_equal(strbuf_text(&said), "result 1 io_error 1\n3 rsync: [client] opendir \"/bad\" (in mod) failed: "
						"Input/output error (5)\n");
	assert_int_equal(io_error, 0);
	strbuf_reset(&said);
	say_stat(&said, &source, "bad/file", false);
	assert_string_equal(strbuf_text(&said), "errno 5\n");
	strbuf_free(&said);
	finish_source(&source);
}

UNIT_TEST(without_stored_access_times_they_are_the_modification_times)
{
	struct scan_options options = { .atimes = true };
	struct entries list;
	int io_error = 0;

	need_root();
	struct attr_source source = mapped(snapshot_of(image_of("tree", false)));

	entries_init(&list);
	attr_source_scan(&source, &options, "dir", "dir", &list, &io_error);
	for (uint32_t i = 0; i < list.count; i++)
		if (!entry_is_dir(&list.items[i]))
			assert_int_equal(entry_side_of(&list, &list.items[i])->atime, list.items[i].mtime);
	assert_int_equal(list.count, 8);
	entries_free(&list);
	finish_source(&source);
}

/* --- views --- */

/* Is the directory had without copying? If so, as the copy says. */
static bool check_view(struct attr_source *source, const struct scan_options *options, uint32_t dir, const char *path)
{
	struct strbuf copied = STRBUF_INIT, viewed = STRBUF_INIT;
	struct entries view = { .count = 12345 };
	bool is_view = attr_source_view(source, options, dir, path, path, &view);

	assert_int_equal(messages.count, 0);
	if (!is_view) {
		assert_int_equal(view.count, 12345);
		assert_null(view.snapshot);
		return false;
	}
	strbuf_add_string(&viewed, "result 0 io_error 0\n");
	add_entries(&viewed, options, &view);
	say_scan(&copied, source, options, path);
	assert_string_equal(strbuf_text(&viewed), strbuf_text(&copied));
	strbuf_free(&copied);
	strbuf_free(&viewed);
	return true;
}

static bool refuses_none(void *context, const char *path, bool is_dir)
{
	(void)path, (void)is_dir;
	++*(int *)context;
	return false;
}

static int check_views_as_user(const struct attr_snapshot *snapshot)
{
	struct attr_source source = mapped(snapshot);
	struct scan_options options = { .links = true, .hard_links = true };
	static const char *const shut[] = { "locked", "noread", "nosearch", "owner_shut", "group_shut", "nope", "a",
					    "to_locked" };
	static const char *const open[] = { "", "dir", "to_dir", "group", "own", "dir/sub", "empty" };

	become(NOBODY, OTHERS);
	for (size_t i = 0; i < sizeof shut / sizeof *shut; i++)
		if (check_view(&source, &options, SNAPSHOT_DIR_UNKNOWN, shut[i]))
			return 1;
	for (size_t i = 0; i < sizeof open / sizeof *open; i++)
		if (!check_view(&source, &options, SNAPSHOT_DIR_UNKNOWN, open[i]))
			return 2;
	options.ignore_nonreadable = true;
	return check_view(&source, &options, SNAPSHOT_DIR_UNKNOWN, "dir") ? 3 : 0;
}

UNIT_TEST(a_view_is_what_a_copy_would_be)
{
	need_root();
	struct attr_snapshot *snapshot = snapshot_of(image_of("tree", true));
	struct attr_source source = mapped(snapshot);
	struct log_sink sink = log_set_sink((struct log_sink){ keep_message, NULL });
	struct strbuf path = STRBUF_INIT;
	int status, asked = 0;

	for (uint32_t dir = 0; dir < attr_snapshot_facts(snapshot)->dir_count; dir++) {
		struct scan_options options = { .links = true, .hard_links = true, .atimes = true, .ignore_nonreadable = true };
		attr_snapshot_dir_path(snapshot, dir, &path);
		assert_true(check_view(&source, &options, dir, strbuf_text(&path)));
		assert_true(check_view(&source, &options, SNAPSHOT_DIR_UNKNOWN, strbuf_text(&path)));
	}
	struct scan_options rules = { .excluded = refuses_none, .context = &asked };

	assert_true(check_view(&source, &rules, SNAPSHOT_DIR_UNKNOWN, "dir"));
	assert_int_equal(asked, 16); /* once for each entry by the view, once by the copy */
	log_set_sink(sink);
	strbuf_free(&path);
	finish_source(&source);
	pid_t child = fork();

	if (child == 0)
		_exit(check_views_as_user(snapshot));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	attr_snapshot_close(snapshot);
}

UNIT_TEST(there_is_no_view_where_entries_would_have_to_change)
{
	static const struct scan_options options[] = {
		{ .copy_links = true }, { .copy_dirlinks = true }, { .copy_unsafe_links = true }, { .one_file_system = 1 },
		{ .munge_symlinks = true }, { .origins = true }, { .excluded = excludes_some }, { .atimes = true },
	};
	static char deep[PATH_MAX];

	need_root();
	struct attr_source source = mapped(snapshot_of(image_of("tree", false)));

	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		assert_false(check_view(&source, &options[i], 0, ""));
	struct scan_options plain = { .links = true }, munged = { .links = true, .munge_symlinks = true };
	struct entries view;

	memset(deep, 'd', PATH_MAX - 200);
	assert_false(attr_source_view(&source, &plain, 0, "", deep, &view));
	assert_true(check_view(&source, &plain, 0, ""));
	assert_true(check_view(&source, &munged, SNAPSHOT_DIR_UNKNOWN, "dir")); /* no target there has the prefix */
	source.only_attrs = true;
	assert_false(check_view(&source, &plain, 0, ""));
	finish_source(&source);
}

static bool collects_paths(void *context, const char *path, bool is_dir)
{
	strbuf_addf(context, "%s%s ", path, is_dir ? "/" : "");
	return false;
}

UNIT_TEST(rules_are_asked_about_names_in_the_transfer)
{
	static const char *const asked[][2] = {
		{ "", "f link sub/ " }, { ".", "f link sub/ " }, { "x/y", "x/y/f x/y/link x/y/sub/ " },
		{ "/", "/f /link /sub/ " },
	};

	need_root();
	struct attr_source source = mapped(snapshot_of(image_of("tree", false)));

	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
		struct strbuf by_view = STRBUF_INIT, by_copy = STRBUF_INIT;
		struct scan_options options = { .excluded = collects_paths, .context = &by_view };
		struct entries view, list;
		int io_error = 0;

		entries_init(&list);
		assert_true(attr_source_view(&source, &options, SNAPSHOT_DIR_UNKNOWN, "group", asked[i][0], &view));
		options.context = &by_copy;
		attr_source_scan(&source, &options, "group", asked[i][0], &list, &io_error);
		assert_string_equal(strbuf_text(&by_view), asked[i][1]);
		assert_string_equal(strbuf_text(&by_copy), asked[i][1]);
		entries_free(&list);
		strbuf_free(&by_view);
		strbuf_free(&by_copy);
	}
	finish_source(&source);
}

/* --- contents --- */

static int open_listed(struct attr_source *source, const char *path, uint64_t *size)
{
	struct scan_options options = { .links = true };
	struct entries list;
	int io_error = 0;

	entries_init(&list);
	assert_int_equal(attr_source_entry(source, &options, path, path, path, false, &list, &io_error), SCAN_OK);
	int fd = attr_source_open(source, path, &list.items[0], false, size);

	entries_free(&list);
	return fd;
}

UNIT_TEST(contents_come_from_the_real_tree_and_differences_are_counted)
{
	uint64_t size = 0;

	need_root();
	tree_dir("served");
	tree_file("served/same", "same");
	tree_file("served/longer", "x");
	tree_file("served/later", "x");
	tree_file("served/gone", "x");
	tree_link("same", "served/followed");
	struct image *image = image_of("served", false);

	/* As a scan with -L would have listed it. */
	for (uint32_t i = 0; i < image->dirs.items[0]->entries.count; i++) {
		struct entry *entry = &image->dirs.items[0]->entries.items[i];
		if (entry_is_symlink(entry)) {
			entry->mode = S_IFREG | 0644;
			entry->side = 0;
			entry->size = 4;
		}
	}
	image->followed_links = true;
	struct attr_source source = { .kind = ATTRS_SNAPSHOT, .snapshot = snapshot_of(image) };

	assert_return_code(fs_root_open(&source.attr_root, "served"), errno);
	tree_file("served/longer", "xxx");
	set_times("served/later", 1);
	assert_return_code(unlink("served/gone"), errno);

	assert_string_equal(tree_content_of(open_listed(&source, "same", &size)), "same");
	assert_int_equal(source.stale, 0);
	assert_string_equal(tree_content_of(open_listed(&source, "followed", &size)), "same");
	assert_string_equal(tree_content_of(open_listed(&source, "longer", &size)), "xxx");
	assert_int_equal(size, 3);
	assert_string_equal(tree_content_of(open_listed(&source, "later", &size)), "x");
	assert_int_equal(source.missing, 0);
	assert_int_equal(open_listed(&source, "gone", &size), -1);
	assert_int_equal(source.missing, 1);
	assert_in_range(source.stale, 2, 3); /* the link's time may differ from its file's */
	fs_root_close(&source.attr_root);
	finish_source(&source);
}

UNIT_GROUP(make_tree, remove_tree)
