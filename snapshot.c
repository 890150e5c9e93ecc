/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is done with existing attr snapshots: they are opened, described, verified against a tree and compared.
 *
 * --attr-verify FILE [SRC/]: is the file whole, and does it still say what the tree says?
 *
 * --attr-diff OLD NEW: what changed from one snapshot to the next. Without a format the output is a list of paths for another
 * program: what is new or changed, for --files-from; with --delete what is gone, for rm. With one it is what rsync -i says.
 */
#include "snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attrs/image.h"
#include "attrs/snapshot.h"
#include "dest/decide.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/hashmap.h"
#include "lib/log.h"
#include "lib/strbuf.h"
#include "lib/vec.h"
#include "options.h"
#include "snapshot/make.h"
#include "ui/itemize.h"
#include "ui/number.h"
#include "wire/request.h"
#include "wire/session.h"

struct attr_snapshot *snapshot_open_or_die(const char *path)
{
	struct strbuf why = STRBUF_INIT;
	struct attr_snapshot *snapshot = attr_snapshot_open(path, &why);
	int error = errno;

	if (snapshot) {
		strbuf_free(&why);
		return snapshot;
	}
	if (why.length)
		die(EXIT_FILEIO, "rsync: attr snapshot \"%s\": %s", path, strbuf_text(&why));
	die_errno(EXIT_FILEIO, error, "cannot open attr snapshot \"%s\"", path);
}

/* What was written to standard output has arrived there; else the process ends with EXIT_FILEIO. */
static void flush_output(void)
{
	int error = fflush(stdout) < 0 ? errno : EIO;

	if (!ferror(stdout))
		return;
	die_errno(EXIT_FILEIO, error, "cannot write to standard output");
}

static void add_number(struct strbuf *out, uint64_t value, int level, const char *unit, const char *units)
{
	char number[64];

	strbuf_addf(out, "%s %s", number_format(number, sizeof number, (int64_t)value, level), value == 1 ? unit : units);
}

static void add_age(struct strbuf *out, int64_t made)
{
	static const struct { int64_t seconds; const char *unit; } units[] = {
		{ 86400, "days" }, { 3600, "hours" }, { 60, "minutes" }, { 1, "seconds" },
	};
	int64_t age = (int64_t)time(NULL) - made;

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (age >= 2 * units[i].seconds || (units[i].seconds == 1 && age >= 0)) {
			strbuf_addf(out, " (%" PRId64 " %s ago)", age / units[i].seconds, units[i].unit);
			return;
		}
	strbuf_add_string(out, " (in the future)");
}

void snapshot_describe(struct strbuf *out, const char *path, const struct attr_snapshot *snapshot, int number_level)
{
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);

	strbuf_addf(out, "# attr snapshot %s\n# generation %" PRIu64 " of ", path, facts->generation);
	listing_time(out, facts->made);
	add_age(out, facts->made);
	strbuf_addf(out, ", made by %s\n# root: ", facts->version);
	if (facts->root_dev || facts->root_ino)
		strbuf_addf(out, "%s, device %" PRIu64 ", inode %" PRIu64, facts->root_path, facts->root_dev, facts->root_ino);
	else
		strbuf_addf(out, "any%s%s", *facts->root_path ? ", from the list of " : "", facts->root_path);
	strbuf_addf(out, "\n# options: %s\n# ", facts->options);
	add_number(out, facts->entry_count, number_level, "entry", "entries");
	strbuf_add_string(out, " in ");
	add_number(out, facts->dir_count, number_level, "directory", "directories");
	strbuf_add_string(out, ", ");
	add_number(out, facts->content_bytes, number_level, "byte", "bytes");
	strbuf_add_string(out, " of contents; the file has ");
	add_number(out, facts->file_size, number_level, "byte", "bytes");
	strbuf_addf(out, "\n# digests:%s%s%s%s", facts->digests & ATTR_DIGEST_XXH128 ? " xxh128" : "",
		    facts->digests & ATTR_DIGEST_MD5 ? " md5" : "", facts->digests ? "" : " none",
		    facts->has_atimes ? "; with access times" : "");
	if (facts->followed_links)
		strbuf_add_string(out, "\n# symlinks were followed");
	if (facts->io_error)
		strbuf_add_string(out, "\n# there were errors when it was made: it may lack something");
}

/* --- the differences of two trees: a walk through both at once, each directory a merge of two sorted lists --- */

/* Where the newer tree has an entry. */
struct tree_place { uint32_t dir, index; };
enum { NO_GROUP = UINT32_MAX };

/* One of the trees: either a snapshot or an image. */
struct compared_tree {
	const struct attr_snapshot *snapshot;
	const struct image *image;
};

struct snapshot_change {
	/* ITEM_* as rsync would itemize the step from old to new; ITEM_DELETED of names that are there no more; 0: none. */
	uint32_t item;
	const struct entries *list;  /* of the newer tree; of the older one if it is deleted */
	const struct entry *entry;
	const char *path;            /* below the root; "." for the root itself */
	uint32_t group;              /* of the newer tree, or NO_GROUP */
	struct tree_place leader;    /* of that group */
	bool leads;
	struct tree_place place;     /* in the newer tree */
};

/* Compares two trees, both in wire order, one directory after the other; nothing of a snapshot is loaded. */
struct snapshot_comparison {
	struct attr_snapshot *old;   /* not changed */
	struct compared_tree new;
	bool atimes;                 /* access times count */
	int modify_window;           /* seconds by which times may differ; 0: not by a nanosecond */
	bool all;                    /* report unchanged entries that have several links as well, with item 0 */
	bool keeps;                  /* nothing counts as deleted: the newer tree may lack something */
	void (*tell)(void *context, const struct snapshot_change *change);
	void *context;
};

/* --- hard links of two trees --- */

/*
 * Inode numbers of the two need not agree, groups are compared: an entry that is linked to the leader of its group now must
 * have been linked to it then, and entries that were linked then must still be.
 */

/* A group of the newer tree. */
struct link_pair {
	struct tree_place leader;
	bool is_known;               /* the leader was there in the older tree */
	uint64_t then_dev, then_ino; /* what it belonged to then, both 0 if to nothing */
};

struct link_groups {
	struct hashmap now;  /* device and inode in the newer tree -> index of the group */
	struct hashmap then; /* device and inode in the older tree -> the group that its first entry is in now, or NO_GROUP */
	VEC(struct link_pair) pairs;
};

/* Then, of every entry of both trees that has several links in either: was it linked to others than now? then: what it was
 * linked to; group: its group now, or NO_GROUP; leads: it is the leader. */
static bool link_groups_differ(struct link_groups *groups, const struct entry_side *then, uint32_t group, bool leads)
{
	bool differs = false, first;

	/* Was it linked to the leader that it has now? */
	if (group != NO_GROUP && !leads) {
		const struct link_pair *pair = &groups->pairs.items[group];
		differs = !then || then->dev != pair->then_dev || then->ino != pair->then_ino;
	}
	if (!then)
		return differs;
	/* A group that fell apart: all but the first of it have changed. */
	uint64_t was_with = *hashmap_put(&groups->then, then->dev, then->ino, group, &first);

	return differs || (!first && (was_with != group || group == NO_GROUP));
}

/* A directory that is being compared. */
struct level {
	struct entries old_view, new_view;
	const struct entries *old, *new; /* old without entries: the directory is new */
	uint32_t new_dir, old_at, new_at;
	size_t path_length;              /* of its path */
	bool keeps;                      /* one of the two could not be read: nothing below it counts as deleted */
};

struct walk {
	const struct snapshot_comparison *comparison;
	bool learns;                     /* the first of two walks: hard links are looked at, nothing is reported */
	struct link_groups groups;
	VEC(struct level *) levels;
	struct strbuf path;
};

/* --- trees --- */

static const struct entries *tree_entries(const struct compared_tree *tree, uint32_t dir, struct entries *view)
{
	if (tree->image)
		return &tree->image->dirs.items[dir]->entries;
	*view = attr_snapshot_view(tree->snapshot, dir);
	return view;
}

/* Path below the root of an entry of the newer tree, after a reset. */
static void compared_path(const struct compared_tree *tree, struct tree_place place, struct strbuf *out)
{
	struct entries view;
	const struct entries *list = tree_entries(tree, place.dir, &view);

	if (tree->image)
		image_dir_path(tree->image, place.dir, out);
	else
		attr_snapshot_dir_path(tree->snapshot, place.dir, out);
	strbuf_add_path(out, entry_name(list, &list->items[place.index]));
}

/* The digest of a regular file's content, 16 bytes, or NULL. */
static const uint8_t *compared_digest(const struct compared_tree *tree, const struct entries *list, const struct entry *entry,
				      enum attr_digest which)
{
	const struct entry_side *side;

	if (!entry_is_regular(entry))
		return NULL;
	if (list->snapshot)
		return attr_snapshot_digest(list, entry, which);
	side = entry_side_of(list, entry);
	if (!tree->image || !(tree->image->digests & which) || !side || !side->digest)
		return NULL;
	const struct image_digest *digest = &tree->image->digest_list.items[side->digest - 1];

	return which == ATTR_DIGEST_XXH128 ? digest->xxh128 : digest->md5;
}

/* --- two entries of one name and kind --- */

struct pair {
	const struct walk *walk;
	const struct entries *old_list, *new_list;
	const struct entry *old, *new;
};

static bool same_digests(const struct pair *pair)
{
	static const enum attr_digest kinds[] = { ATTR_DIGEST_XXH128, ATTR_DIGEST_MD5 };
	const struct snapshot_comparison *comparison = pair->walk->comparison;
	const struct compared_tree old_tree = { .snapshot = comparison->old };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const uint8_t *old = compared_digest(&old_tree, pair->old_list, pair->old, kinds[i]);
		const uint8_t *new = old ? compared_digest(&comparison->new, pair->new_list, pair->new, kinds[i]) : NULL;

		if (new && memcmp(old, new, 16) != 0)
			return false;
	}
	return true;
}

/* Anything but what every entry has. */
static uint32_t content_flags(const struct pair *pair)
{
	const uint32_t made_anew = ITEM_LOCAL_CHANGE | ITEM_REPORT_CHANGE;
	struct entry_side old_room, new_room;

	if (entry_is_regular(pair->new))
		return (pair->old->size != pair->new->size ? ITEM_REPORT_SIZE : 0)
		       | (same_digests(pair) ? 0 : ITEM_REPORT_CHANGE);
	if (entry_is_symlink(pair->new))
		return strcmp(entry_target(pair->old_list, pair->old), entry_target(pair->new_list, pair->new)) ? made_anew : 0;
	if (!entry_is_device(pair->new))
		return 0;
	const struct entry_side *old = entry_any_side(pair->old_list, pair->old, &old_room);
	const struct entry_side *new = entry_any_side(pair->new_list, pair->new, &new_room);

	return old && new && old->rdev_major == new->rdev_major && old->rdev_minor == new->rdev_minor ? 0 : made_anew;
}

/* What happens to an entry of the newer tree; same_kind: the older one has such an entry of its name. */
static uint32_t item_flags(const struct pair *pair, bool same_kind)
{
	const uint32_t transferred = ITEM_REPORT_SIZE | ITEM_REPORT_TIME | ITEM_REPORT_CHANGE;
	const struct entry *old = pair->old, *new = pair->new;
	int window = pair->walk->comparison->modify_window;
	bool regular = entry_is_regular(new);
	struct entry_side old_room, new_room;

	if (!same_kind && regular)
		return ITEM_IS_NEW | ITEM_TRANSFER;
	if (!same_kind)
		return ITEM_IS_NEW | ITEM_LOCAL_CHANGE | (entry_is_dir(new) ? 0 : ITEM_REPORT_CHANGE);
	uint32_t flags = content_flags(pair);

	if (!decide_same_time(window ? window : -1, old->mtime, old->mtime_nsec, new->mtime, new->mtime_nsec))
		flags |= ITEM_REPORT_TIME;
	if (old->mode != new->mode && !entry_is_symlink(new))
		flags |= ITEM_REPORT_PERMS;
	if (old->uid != new->uid)
		flags |= ITEM_REPORT_OWNER;
	if (old->gid != new->gid)
		flags |= ITEM_REPORT_GROUP;
	if (pair->walk->comparison->atimes && !entry_is_dir(new)) {
		const struct entry_side *then = entry_any_side(pair->old_list, old, &old_room);
		const struct entry_side *now = entry_any_side(pair->new_list, new, &new_room);

		if ((then ? then->atime : 0) != (now ? now->atime : 0))
			flags |= ITEM_REPORT_ATIME;
	}
	return regular && flags & transferred ? flags | ITEM_TRANSFER : flags;
}

/* --- reports --- */

static const struct entry_side *link_side(const struct entries *list, const struct entry *entry, struct entry_side *room)
{
	return entry && entry->flags & ENTRY_HARD_LINKED ? entry_any_side(list, entry, room) : NULL;
}

static bool is_same_kind(const struct pair *pair)
{
	return pair->old && (pair->old->mode & S_IFMT) == (pair->new->mode & S_IFMT);
}

/* First, of every entry of the newer tree that has several links, in order: the leader of a group is the first that existed in
 * the older tree, else the last of all. */
static void learn_entry(struct walk *walk, const struct pair *pair, struct tree_place place)
{
	struct link_groups *groups = &walk->groups;
	struct entry_side then_room, now_room;
	const struct entry_side *now = link_side(pair->new_list, pair->new, &now_room);
	bool existed = now && is_same_kind(pair), is_new;
	const struct entry_side *then = existed ? link_side(pair->old_list, pair->old, &then_room) : NULL;

	if (!now)
		return;
	uint64_t group = *hashmap_put(&groups->now, now->dev, now->ino, groups->pairs.count, &is_new);
	struct link_pair learned = {
		.leader = place, .is_known = existed, .then_dev = then ? then->dev : 0, .then_ino = then ? then->ino : 0,
	};

	if (is_new)
		vec_push(&groups->pairs, learned);
	else if (!groups->pairs.items[group].is_known)
		groups->pairs.items[group] = learned;
}

/* An entry of the newer tree; old NULL: it is new. */
static void report_entry(struct walk *walk, const struct pair *pair, struct tree_place place)
{
	const struct snapshot_comparison *comparison = walk->comparison;
	const uint32_t written = ITEM_TRANSFER | ITEM_LOCAL_CHANGE;
	bool same_kind = is_same_kind(pair);
	struct snapshot_change change = {
		.item = item_flags(pair, same_kind), .list = pair->new_list, .entry = pair->new, .group = NO_GROUP,
		.place = place, .path = strbuf_text(&walk->path),
	};
	struct entry_side then_room, now_room;
	const struct entry_side *now = link_side(pair->new_list, pair->new, &now_room);
	const struct entry_side *then = same_kind ? link_side(pair->old_list, pair->old, &then_room) : NULL;

	if (now) {
		change.group = (uint32_t)*hashmap_get(&walk->groups.now, now->dev, now->ino);
		change.leader = walk->groups.pairs.items[change.group].leader;
		change.leads = change.leader.dir == place.dir && change.leader.index == place.index;
	}
	bool relinked = (now || then) && link_groups_differ(&walk->groups, then, change.group, change.leads);

	/* A link to the leader of its group is made as a link, not transferred. */
	if (change.group != NO_GROUP && !change.leads && (change.item & written || relinked))
		change.item = (change.item & ~(uint32_t)ITEM_TRANSFER) | ITEM_LOCAL_CHANGE | ITEM_XNAME_FOLLOWS;
	else if (relinked && !(change.item & (written | ITEM_IS_NEW)))
		change.item |= ITEM_LOCAL_CHANGE | ITEM_XNAME_FOLLOWS;
	if (change.item || (now && comparison->all))
		comparison->tell(comparison->context, &change);
}

/* --- what is gone --- */

static void report_gone(struct walk *walk, const struct entries *list, const struct entry *entry)
{
	const struct snapshot_change change = {
		.item = ITEM_DELETED, .list = list, .entry = entry, .path = strbuf_text(&walk->path), .group = NO_GROUP,
	};

	walk->comparison->tell(walk->comparison->context, &change);
}

/* --- the walk --- */

static void enter_level(struct walk *walk, bool has_old, uint32_t old_dir, uint32_t new_dir)
{
	const struct snapshot_comparison *comparison = walk->comparison;
	const struct compared_tree old_tree = { .snapshot = comparison->old }, *new = &comparison->new;
	struct level *level = xcalloc(1, sizeof *level);

	level->old = has_old ? tree_entries(&old_tree, old_dir, &level->old_view) : &level->old_view;
	level->new = tree_entries(new, new_dir, &level->new_view);
	level->new_dir = new_dir;
	level->path_length = walk->path.length;
	int error = new->image ? new->image->dirs.items[new_dir]->error : attr_snapshot_dir(new->snapshot, new_dir).error;

	level->keeps = comparison->keeps || error;
	vec_push(&walk->levels, level);
}

static void set_name(struct walk *walk, const struct level *level, const struct entries *list, const struct entry *entry)
{
	strbuf_truncate(&walk->path, level->path_length);
	strbuf_add_path(&walk->path, entry_name(list, entry));
}

static void step_old(struct walk *walk, struct level *level)
{
	const struct entry *entry = &level->old->items[level->old_at++];
	const char *name = entry_name(level->old, entry);

	if (level->keeps || walk->learns)
		return;
	set_name(walk, level, level->old, entry);
	/* Everything in a directory and in those below it: directories after what they hold. */
	if (entry->dir) {
		const struct attr_snapshot *old = walk->comparison->old;
		struct strbuf saved = walk->path;

		walk->path = (struct strbuf)STRBUF_INIT;
		for (uint32_t dir = attr_snapshot_dir(old, entry->dir).subtree_end; dir-- > entry->dir;) {
			struct entries view = attr_snapshot_view(old, dir);

			attr_snapshot_dir_path(old, dir, &walk->path);
			for (uint32_t i = 0, length = (uint32_t)walk->path.length; i < view.count; i++) {
				strbuf_truncate(&walk->path, length);
				strbuf_add_path(&walk->path, entry_name(&view, &view.items[i]));
				report_gone(walk, &view, &view.items[i]);
			}
		}
		strbuf_free(&walk->path);
		walk->path = saved;
	}
	/* Whatever makes the new object makes room for it; a list of what to delete would come too late for that. */
	if (entries_find(level->new, name, !entry_is_dir(entry)) < 0)
		report_gone(walk, level->old, entry);
}

static void step_new(struct walk *walk, struct level *level, const struct entry *old)
{
	const struct image *image = walk->comparison->new.image;
	struct tree_place place = { level->new_dir, level->new_at++ };
	const struct entry *new = &level->new->items[place.index];
	struct pair pair = { walk, level->old, level->new, old, new };
	uint32_t dir = new->dir;

	if (walk->learns) {
		learn_entry(walk, &pair, place);
	} else {
		set_name(walk, level, level->new, new);
		report_entry(walk, &pair, place);
	}
	if (!entry_is_dir(new))
		return;
	if (image) {
		const struct image_dir *parent = image->dirs.items[place.dir];
		dir = parent->first_child + (place.index - (level->new->count - parent->child_count));
	}
	enter_level(walk, old != NULL, old ? old->dir : 0, dir);
}

static void walk_through(struct walk *walk)
{
	enter_level(walk, true, 0, 0);
	/* The next name of the directory, of one tree or of both. */
	while (walk->levels.count) {
		struct level *level = walk->levels.items[walk->levels.count - 1];
		const struct entry *old = level->old_at < level->old->count ? &level->old->items[level->old_at] : NULL;
		const struct entry *new = level->new_at < level->new->count ? &level->new->items[level->new_at] : NULL;
		int order = !old ? 1 : !new ? -1 : entry_compare(level->old, old, level->new, new);

		if (!old && !new) {
			free(walk->levels.items[--walk->levels.count]);
		} else if (order < 0) {
			step_old(walk, level);
		} else {
			level->old_at += order == 0;
			step_new(walk, level, order == 0 ? old : NULL);
		}
	}
}

static void snapshot_compare(const struct snapshot_comparison *comparison)
{
	const struct image *image = comparison->new.image;
	size_t dirs = image ? image->dirs.count : attr_snapshot_facts(comparison->new.snapshot)->dir_count;
	struct walk walk = { .comparison = comparison };
	struct entries view;
	struct entries old = attr_snapshot_root(comparison->old);
	struct entries new = image ? image->root : attr_snapshot_root(comparison->new.snapshot);
	struct pair roots = { &walk, &old, &new, &old.items[0], &new.items[0] };

	for (uint32_t dir = 0; dir < dirs && !walk.learns; dir++) {
		const struct entries *list = tree_entries(&comparison->new, dir, &view);

		for (uint32_t i = 0; i < list->count && !walk.learns; i++)
			walk.learns = list->items[i].flags & ENTRY_HARD_LINKED;
	}
	if (walk.learns)
		walk_through(&walk);
	walk.learns = false;
	strbuf_add_string(&walk.path, ".");
	report_entry(&walk, &roots, (struct tree_place){ 0, 0 });
	strbuf_reset(&walk.path);
	walk_through(&walk);
	hashmap_free(&walk.groups.now);
	hashmap_free(&walk.groups.then);
	vec_free(&walk.groups.pairs);
	vec_free(&walk.levels);
	strbuf_free(&walk.path);
}

/* --- how one difference is printed: as a line of --out-format, or as a path for another program --- */

/* How a difference is printed. */
struct change_report {
	const struct options *options;
	const char *format;               /* of a line; NULL: paths for --files-from or rm, as they are */
	const struct compared_tree *tree; /* the newer one */
	uint64_t unprintable;             /* paths that cannot stand on a line of their own */
	uint64_t differences;             /* --attr-verify: so many were printed */
};

static void put(const struct change_report *report, const char *text, size_t length)
{
	if (report->options->quiet)
		return;
	fwrite(text, 1, length, stdout);
	fputc(report->options->from0 ? '\0' : '\n', stdout);
}

/* A path as it is, made safe for a list that --files-from reads. */
static void change_report_path(struct change_report *report, const char *path)
{
	struct strbuf safe = STRBUF_INIT;

	if (!report->options->from0 && strpbrk(path, "\r\n")) {
		report->unprintable++;
		return;
	}
	/* --files-from takes these for comments. */
	if (*path == '#' || *path == ';')
		strbuf_add_string(&safe, "./");
	strbuf_add_string(&safe, path);
	put(report, strbuf_text(&safe), safe.length);
	strbuf_free(&safe);
}

static void change_report(struct change_report *report, const struct snapshot_change *change)
{
	const struct entry *entry = change->entry;
	bool is_deletion = change->item & ITEM_DELETED;
	bool is_link = change->item & ITEM_XNAME_FOLLOWS && change->group != NO_GROUP && !change->leads;
	struct strbuf leader = STRBUF_INIT, line = STRBUF_INIT;
	struct format_values values = {
		.look = { .flags = change->item, .mode = entry->mode, .times_kept = true },
		.name = change->path, .shown = change->path, .link_is_hard = is_link, .is_deletion = is_deletion,
		.length = entry->size, .mtime = entry->mtime, .uid = entry->uid, .gid = entry->gid,
		.pid = (int)getpid(), .operation = "send",
	};

	if (is_link)
		compared_path(report->tree, change->leader, &leader);
	if (!is_deletion) {
		if (is_link)
			values.link = strbuf_text(&leader);
		else if (entry_is_symlink(entry))
			values.link = entry_target(change->list, entry);
		values.digest = compared_digest(report->tree, change->list, entry, ATTR_DIGEST_XXH128);
		if (!values.digest)
			values.digest = compared_digest(report->tree, change->list, entry, ATTR_DIGEST_MD5);
	}
	format_expand(report->format, &values, &line);
	if (report->options->from0)
		put(report, strbuf_text(&line), line.length);
	else
		log_info("%s", strbuf_text(&line));
	strbuf_free(&leader);
	strbuf_free(&line);
}

/* --- --attr-verify --- */

static void count_difference(void *report_void, const struct snapshot_change *change)
{
	struct change_report *report = report_void;

	report->differences++;
	change_report(report, change);
}

static int compare_with_tree(struct options *options, const char *file, struct attr_snapshot *snapshot, const char *tree)
{
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);
	struct image *image = snapshot_scan_tree(options, tree, options->checksum ? facts->digests : 0);
	struct change_report report;
	struct snapshot_comparison comparison = {
		.old = snapshot, .new = { .image = image }, .atimes = facts->has_atimes && options->atimes > 0,
		.modify_window = options->modify_window, .tell = count_difference, .context = &report,
	};
	bool failed = image->io_error || log_saw_xfer_error();
	char number[64];

	report = (struct change_report){
		.options = options, .format = options->out_format && *options->out_format ? options->out_format : "%i %n%L",
		.tree = &comparison.new,
	};
	/* By these the comparison means less than it seems to. */
	if ((facts->root_dev || facts->root_ino) && (facts->root_dev != image->root_dev || facts->root_ino != image->root_ino))
		log_warning("%s: is of another directory, %s", file, facts->root_path);
	if (strcmp(facts->options, image->options ? image->options : "") != 0)
		log_warning("%s: was made with other options: %s", file, *facts->options ? facts->options : "none");
	if (facts->io_error)
		log_warning("%s: was made with errors: it may lack something", file);
	snapshot_compare(&comparison);
	if (report.differences)
		log_info("%s: differences from %s: %s", file, tree,
			 number_format(number, sizeof number, (int64_t)report.differences, options->human_readable));
	else
		log_info("%s: the same as %s", file, tree);
	image_free(image);
	return report.differences || failed ? EXIT_PARTIAL : EXIT_OK;
}

int snapshot_verify_main(struct options *options)
{
	const char *file = options->operands.items[0];
	struct attr_snapshot *snapshot = snapshot_open_or_die(file);
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);
	char entries[64], dirs[64], bytes[64];
	int code = EXIT_OK, level = options->human_readable;

	log_info("%s: generation %" PRIu64 ", entries: %s, directories: %s, bytes of contents: %s: whole", file,
		 facts->generation,
		 number_format(entries, sizeof entries, (int64_t)facts->entry_count, level),
		 number_format(dirs, sizeof dirs, (int64_t)facts->dir_count, level),
		 number_format(bytes, sizeof bytes, (int64_t)facts->content_bytes, level));
	if (options->checksum && options->operands.count > 1 && !facts->digests)
		die(EXIT_SYNTAX, "rsync: \"%s\" holds no digests that --checksum could compare", file);
	if (options->operands.count > 1)
		code = compare_with_tree(options, file, snapshot, options->operands.items[1]);
	flush_output();
	attr_snapshot_close(snapshot);
	return code;
}

/* --- --attr-diff --- */

/* An entry that has not changed, but may have to be named for the sake of one it is linked to. */
struct held { struct tree_place place; uint32_t group; };

struct diff {
	struct change_report report;
	bool gone_only;
	VEC(struct held) held;
	VEC(uint8_t) changed_groups; /* by number: has a member been named? */
};

static void list_changed(struct diff *diff, const struct snapshot_change *change)
{
	/* rsync sets the attributes of the root with whatever name is given to it; "." would mean all that is in it. */
	if (!strcmp(change->path, "."))
		return;
	if (!change->item) {
		struct held held = { change->place, change->group };
		vec_push(&diff->held, held);
		return;
	}
	while (change->group != NO_GROUP && diff->changed_groups.count <= change->group)
		vec_push(&diff->changed_groups, 0);
	if (change->group != NO_GROUP)
		diff->changed_groups.items[change->group] = 1;
	change_report_path(&diff->report, change->path);
}

static void list_difference(void *diff_void, const struct snapshot_change *change)
{
	struct diff *diff = diff_void;
	bool gone = change->item & ITEM_DELETED;

	if (diff->gone_only && !gone)
		return;
	if (diff->report.format)
		change_report(&diff->report, change);
	else if (diff->gone_only)
		change_report_path(&diff->report, change->path);
	else if (!gone)
		list_changed(diff, change);
}

int snapshot_diff_main(struct options *options)
{
	const char *format = options->out_format && *options->out_format ? options->out_format
			     : options->itemize                          ? "%i %n%L"
									 : NULL;
	struct diff diff = { .gone_only = options->delete_when != DELETE_NEVER };
	struct strbuf path = STRBUF_INIT;

	if (options->filters.count || options->cvs_exclude)
		die(EXIT_SYNTAX, "rsync: filter rules have no effect on --attr-diff, but on the run that makes a snapshot");
	struct attr_snapshot *old = snapshot_open_or_die(options->operands.items[0]);
	struct attr_snapshot *new = snapshot_open_or_die(options->operands.items[1]);
	struct snapshot_comparison comparison = {
		.old = old, .new = { .snapshot = new }, .atimes = options->atimes > 0, .modify_window = options->modify_window,
		.tell = list_difference, .context = &diff, .all = !format && !diff.gone_only,
		.keeps = attr_snapshot_facts(new)->io_error & IOERR_GENERAL && !options->ignore_errors,
	};

	diff.report = (struct change_report){ .options = options, .format = format, .tree = &comparison.new };
	snapshot_compare(&comparison);
	/* Links are made only among names of one list: a group that gets a member needs all the others there. */
	for (size_t i = 0; i < diff.held.count; i++) {
		const struct held *held = &diff.held.items[i];
		if (held->group >= diff.changed_groups.count || !diff.changed_groups.items[held->group])
			continue;
		compared_path(diff.report.tree, held->place, &path);
		change_report_path(&diff.report, strbuf_text(&path));
	}
	flush_output();
	uint64_t unprintable = diff.report.unprintable;
	bool keeps = comparison.keeps && (diff.gone_only || format);

	if (unprintable)
		log_error("rsync: %llu name%s with line breaks cannot be listed without --from0 (-0)",
			  (unsigned long long)unprintable, unprintable == 1 ? "" : "s");
	if (keeps)
		log_error("IO error encountered when the newer snapshot was made -- skipping deletions");
	strbuf_free(&path);
	vec_free(&diff.held);
	vec_free(&diff.changed_groups);
	attr_snapshot_close(old);
	attr_snapshot_close(new);
	return unprintable || keeps ? EXIT_PARTIAL : EXIT_OK;
}

/* --- counting --- */

static void count_change(void *count_void, const struct snapshot_change *change)
{
	uint64_t *count = count_void;

	*count += change->item != 0;
}

uint64_t snapshot_count_changes(struct attr_snapshot *old, const struct attr_snapshot *new)
{
	uint64_t count = 0;
	const struct snapshot_comparison comparison = {
		.old = old, .new = { .snapshot = new }, .tell = count_change, .context = &count,
	};

	snapshot_compare(&comparison);
	return count;
}
