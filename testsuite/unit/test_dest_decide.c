/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Decisions about one file: the quick check, skips, item flags, modes. */
#include <stdint.h>
#include <string.h>

#include "testsuite/unit/unit.h"

#include "dest/decide.h"
#include "fs/chmod.h"
#include "wire/request.h"

/* One entry, one destination, one set of options; -rlptgoD unless a test says otherwise. */
struct scene {
	struct options options;
	struct decide_rules rules;
	struct entries list;
	struct entry *entry;
	struct decide_dest dest;
	bool contents_agree, targets_agree;
	int content_looks;
	struct decision decision;
};

static bool same_content(void *scene_void)
{
	struct scene *scene = scene_void;

	scene->content_looks++;
	return scene->contents_agree;
}

static bool same_target(void *scene_void)
{
	return ((struct scene *)scene_void)->targets_agree;
}

static int set_up(void **state)
{
	struct scene *scene = test_calloc(1, sizeof *scene);

	scene->options = (struct options){
		.recursive = 1, .links = true, .perms = true, .times = true, .owner = true, .group = true, .devices = true,
		.specials = true, .max_size = -1, .min_size = -1, .max_delete = -1,
	};
	scene->rules = (struct decide_rules){ .options = &scene->options, .am_root = true, .umask = 022 };
	entries_init(&scene->list);
	scene->entry = entries_add(&scene->list, "name", 4);
	scene->entry->mode = S_IFREG | 0644;
	scene->entry->size = 100;
	scene->entry->mtime = 1000;
	scene->dest.exists = true;
	scene->dest.st = (struct fs_stat){ .mode = S_IFREG | 0644, .size = 100, .mtime = 1000, .nlink = 1 };
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	entries_free(&scene->list);
	test_free(scene);
	return 0;
}

static const struct decision *decide_scene(struct scene *scene)
{
	struct decide_probe probe = { same_content, same_target, scene, NULL };

	decide(&scene->rules, &scene->list, scene->entry, &scene->dest, &probe, &scene->decision);
	return &scene->decision;
}

static void assert_decision(struct scene *scene, enum action action, uint32_t flags)
{
	const struct decision *decision = decide_scene(scene);

	assert_int_equal(decision->action, action);
	assert_int_equal(decision->item_flags, flags);
}

UNIT_TEST_WITH(set_up, tear_down, equal_files_are_up_to_date)
{
	assert_decision(*state, ACTION_ATTRS, 0);
}

UNIT_TEST_WITH(set_up, tear_down, missing_file_is_copied_as_new)
{
	struct scene *scene = *state;

	scene->dest.exists = false;
	assert_decision(scene, ACTION_COPY, ITEM_TRANSFER | ITEM_IS_NEW);
}

UNIT_TEST_WITH(set_up, tear_down, size_and_time_make_a_file_changed)
{
	struct scene *scene = *state;

	scene->dest.st.mtime = 999;
	assert_decision(scene, ACTION_COPY, ITEM_TRANSFER | ITEM_REPORT_TIME);
	scene->dest.st.size = 99;
	assert_decision(scene, ACTION_COPY, ITEM_TRANSFER | ITEM_REPORT_TIME | ITEM_REPORT_SIZE);
	scene->options.times = false;
	assert_decision(scene, ACTION_COPY, ITEM_TRANSFER | ITEM_REPORT_TIME | ITEM_REPORT_SIZE);
}

UNIT_TEST_WITH(set_up, tear_down, nanoseconds_count_only_with_a_negative_window)
{
	struct scene *scene = *state;

	scene->entry->mtime_nsec = 1;
	assert_decision(scene, ACTION_ATTRS, 0);
	scene->options.modify_window = -1;
	assert_decision(scene, ACTION_COPY, ITEM_TRANSFER | ITEM_REPORT_TIME);
}

UNIT_TEST_WITH(set_up, tear_down, modify_window_vectors)
{
	assert_true(decide_same_time(0, 1000, 500000000, 1000, 0));
	assert_false(decide_same_time(0, 1001, 0, 1000, 0));
	assert_true(decide_same_time(1, 1001, 500000000, 1000, 0));
	assert_false(decide_same_time(1, 1002, 0, 1000, 0));
	assert_false(decide_same_time(-1, 1000, 1, 1000, 0));
	assert_true(decide_same_time(-1, 1000, 7, 1000, 7));
	assert_false(decide_same_time(5, INT64_MIN, 0, INT64_MAX, 0));
}

UNIT_TEST_WITH(set_up, tear_down, checksum_ignores_the_time)
{
	struct scene *scene = *state;

	scene->options.checksum = true;
	scene->contents_agree = true;
	scene->dest.st.mtime = 5;
	assert_decision(scene, ACTION_ATTRS, ITEM_REPORT_TIME);
	scene->contents_agree = false;
	scene->dest.st.mtime = 1000;
	assert_decision(scene, ACTION_COPY, ITEM_TRANSFER | ITEM_REPORT_CHANGE);
	assert_int_equal(scene->content_looks, 2);
}

UNIT_TEST_WITH(set_up, tear_down, content_is_not_looked_at_without_need)
{
	struct scene *scene = *state;

	scene->options.checksum = true;
	scene->dest.st.size = 1;
	assert_decision(scene, ACTION_COPY, ITEM_TRANSFER | ITEM_REPORT_CHANGE | ITEM_REPORT_SIZE);
	scene->dest.exists = false;
	decide_scene(scene);
	assert_int_equal(scene->content_looks, 0);
}

UNIT_TEST_WITH(set_up, tear_down, size_only_and_ignore_times)
{
	struct scene *scene = *state;

	scene->dest.st.mtime = 5;
	scene->options.size_only = true;
	assert_decision(scene, ACTION_ATTRS, ITEM_REPORT_TIME);
	scene->options.size_only = false;
	scene->options.ignore_times = true;
	scene->dest.st.mtime = 1000;
	assert_decision(scene, ACTION_COPY, ITEM_TRANSFER);
}

UNIT_TEST_WITH(set_up, tear_down, attr_files_are_compared_by_what_they_say)
{
	struct scene *scene = *state;

	scene->rules.check_content = true;
	assert_decision(scene, ACTION_COPY, ITEM_TRANSFER);
	scene->contents_agree = true;
	assert_decision(scene, ACTION_ATTRS, 0);
	scene->contents_agree = false;
	scene->options.size_only = true;
	assert_decision(scene, ACTION_COPY, ITEM_TRANSFER);
}

UNIT_TEST_WITH(set_up, tear_down, update_vectors)
{
	static const struct { int window; int64_t newer_by; bool skips; } vectors[] = {
		{ 0, 1, true }, { 0, 0, false }, { 1, 0, true }, { 2, -1, true }, { 2, -2, false }, { -1, 1, false }, { -1,
				2, true },
	};
	struct scene *scene = *state;

	scene->options.update = true;
	scene->dest.st.size = 1;
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		scene->options.modify_window = vectors[i].window;
		scene->dest.st.mtime = scene->entry->mtime + vectors[i].newer_by;
		assert_int_equal(decide_scene(scene)->action, vectors[i].skips ? ACTION_SKIP : ACTION_COPY);
		assert_int_equal(scene->decision.skip, vectors[i].skips ? SKIP_NEWER : SKIP_NOTHING);
	}
	scene->entry->mtime = INT64_MIN;
	scene->dest.st.mtime = INT64_MAX;
	assert_int_equal(decide_scene(scene)->skip, SKIP_NEWER);
}

UNIT_TEST_WITH(set_up, tear_down, existing_and_ignore_existing)
{
	struct scene *scene = *state;

	scene->options.ignore_existing = true;
	assert_int_equal(decide_scene(scene)->skip, SKIP_EXISTS);
	scene->entry->mode = S_IFDIR | 0755;
	scene->dest.st.mode = S_IFDIR | 0755;
	assert_int_equal(decide_scene(scene)->action, ACTION_ATTRS);
	scene->options.existing = true;
	scene->dest.exists = false;
	assert_int_equal(decide_scene(scene)->skip, SKIP_NOT_CREATING);
}

UNIT_TEST_WITH(set_up, tear_down, size_limits)
{
	struct scene *scene = *state;

	scene->options.max_size = 99;
	assert_int_equal(decide_scene(scene)->skip, SKIP_OVER_MAX);
	scene->options.max_size = 100;
	scene->options.min_size = 101;
	assert_int_equal(decide_scene(scene)->skip, SKIP_UNDER_MIN);
	scene->entry->mode = S_IFLNK | 0777;
	scene->dest.exists = false;
	assert_int_equal(decide_scene(scene)->action, ACTION_MAKE);
}

UNIT_TEST_WITH(set_up, tear_down, kinds_that_are_not_kept)
{
	struct scene *scene = *state;

	scene->options.links = false;
	scene->entry->mode = S_IFLNK | 0777;
	assert_int_equal(decide_scene(scene)->skip, SKIP_NOT_REGULAR);
	scene->entry->mode = S_IFBLK | 0600;
	scene->dest.exists = false;
	assert_int_equal(decide_scene(scene)->action, ACTION_MAKE);
	scene->rules.am_root = false;
	assert_int_equal(decide_scene(scene)->skip, SKIP_NOT_REGULAR);
	scene->entry->mode = S_IFIFO | 0600;
	assert_int_equal(decide_scene(scene)->action, ACTION_MAKE);
	scene->options.specials = false;
	assert_int_equal(decide_scene(scene)->skip, SKIP_NOT_REGULAR);
}

UNIT_TEST_WITH(set_up, tear_down, directories)
{
	struct scene *scene = *state;

	scene->entry->mode = S_IFDIR | 0755;
	scene->dest.st.mode = S_IFDIR | 0700;
	scene->dest.st.mtime = 5;
	assert_decision(scene, ACTION_ATTRS, ITEM_REPORT_TIME | ITEM_REPORT_PERMS);
	scene->options.omit_dir_times = true;
	assert_decision(scene, ACTION_ATTRS, ITEM_REPORT_PERMS);
	scene->dest.exists = false;
	assert_decision(scene, ACTION_MAKE, ITEM_LOCAL_CHANGE | ITEM_IS_NEW);
	scene->dest.exists = true;
	scene->dest.st.mode = S_IFREG | 0644;
	assert_decision(scene, ACTION_MAKE, ITEM_LOCAL_CHANGE | ITEM_IS_NEW);
	assert_true(scene->decision.make_room);
}

UNIT_TEST_WITH(set_up, tear_down, symlinks)
{
	struct scene *scene = *state;

	scene->entry->mode = S_IFLNK | 0777;
	scene->dest.st.mode = S_IFLNK | 0777;
	scene->targets_agree = true;
	assert_decision(scene, ACTION_ATTRS, 0);
	scene->targets_agree = false;
	scene->dest.st.mtime = 5;
	assert_decision(scene, ACTION_MAKE, ITEM_LOCAL_CHANGE | ITEM_REPORT_CHANGE | ITEM_REPORT_TIME);
	assert_false(scene->decision.make_room);
	scene->options.omit_link_times = true;
	assert_decision(scene, ACTION_MAKE, ITEM_LOCAL_CHANGE | ITEM_REPORT_CHANGE | ITEM_REPORT_TIME);
	scene->dest.st.mode = S_IFDIR | 0755;
	assert_decision(scene, ACTION_MAKE, ITEM_LOCAL_CHANGE | ITEM_REPORT_CHANGE | ITEM_IS_NEW);
	assert_true(scene->decision.make_room);
}

UNIT_TEST_WITH(set_up, tear_down, devices_are_known_by_their_number)
{
	struct scene *scene = *state;

	scene->entry->mode = S_IFCHR | 0600;
	entries_side(&scene->list, scene->entry)->rdev_major = 1;
	scene->list.sides[0].rdev_minor = 3;
	scene->dest.st = (struct fs_stat){ .mode = S_IFBLK | 0600, .mtime = 1000, .rdev_major = 1, .rdev_minor = 3 };
	assert_decision(scene, ACTION_ATTRS, 0);
	scene->dest.st.rdev_minor = 5;
	assert_decision(scene, ACTION_MAKE, ITEM_LOCAL_CHANGE | ITEM_REPORT_CHANGE);
}

UNIT_TEST_WITH(set_up, tear_down, owner_and_group_flags)
{
	struct scene *scene = *state;
	const gid_t groups[] = { 7, 8 };

	scene->entry->uid = 5;
	scene->entry->gid = 8;
	assert_decision(scene, ACTION_ATTRS, ITEM_REPORT_OWNER | ITEM_REPORT_GROUP);
	scene->rules.am_root = false;
	assert_decision(scene, ACTION_ATTRS, 0);
	scene->rules.groups = groups;
	scene->rules.group_count = 2;
	assert_decision(scene, ACTION_ATTRS, ITEM_REPORT_GROUP);
	scene->entry->gid = 9;
	assert_decision(scene, ACTION_ATTRS, 0);
}

UNIT_TEST_WITH(set_up, tear_down, access_times)
{
	struct scene *scene = *state;

	scene->options.atimes = 1;
	entries_side(&scene->list, scene->entry)->atime = 77;
	assert_decision(scene, ACTION_ATTRS, ITEM_REPORT_ATIME);
	scene->dest.st.atime = 77;
	assert_decision(scene, ACTION_ATTRS, 0);
}

UNIT_TEST_WITH(set_up, tear_down, missing_arguments)
{
	struct scene *scene = *state;

	scene->entry->mode = 0;
	assert_int_equal(decide_scene(scene)->action, ACTION_DELETE);
	scene->dest.exists = false;
	assert_int_equal(decide_scene(scene)->action, ACTION_NONE);
}

UNIT_TEST_WITH(set_up, tear_down, link_flags_alone_are_no_news)
{
	assert_false(decide_is_significant(ITEM_LOCAL_CHANGE | ITEM_XNAME_FOLLOWS | ITEM_BASIS_TYPE_FOLLOWS));
	assert_true(decide_is_significant(ITEM_LOCAL_CHANGE | ITEM_IS_NEW));
	assert_true(decide_is_significant(ITEM_REPORT_TIME));
}

/* doc/protocol/06-command-line.md section 11.1: source modes down, umasks across. */
UNIT_TEST_WITH(set_up, tear_down, modes_of_new_files_without_perms)
{
	static const mode_t sources[] = { 0644, 0755, 0600, 04755, 02755, 0666, 0777, 0444 };
	static const struct { mode_t umask; mode_t results[8]; } vectors[] = {
		{ 0000, { 0644, 0755, 0600, 0755, 0755, 0666, 0777, 0444 } },
		{ 0022, { 0644, 0755, 0600, 0755, 0755, 0644, 0755, 0444 } },
		{ 0027, { 0640, 0750, 0600, 0750, 0750, 0640, 0750, 0440 } },
		{ 0077, { 0600, 0700, 0600, 0700, 0700, 0600, 0700, 0400 } },
	};
	struct scene *scene = *state;

	scene->options.perms = false;
	scene->dest.exists = false;
	for (size_t u = 0; u < sizeof vectors / sizeof vectors[0]; u++) {
		scene->rules.umask = vectors[u].umask;
		for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
			scene->entry->mode = (uint16_t)(S_IFREG | sources[i]);
			assert_int_equal(decide_mode(&scene->rules, scene->entry, &scene->dest), vectors[u].results[i]);
		}
	}
	scene->options.perms = true;
	scene->entry->mode = S_IFREG | 06755;
	assert_int_equal(decide_mode(&scene->rules, scene->entry, &scene->dest), 06755);
}

/* doc/protocol/06-command-line.md section 11.2: destination, then the result for a source of 0755 and of 0644. */
UNIT_TEST_WITH(set_up, tear_down, executability_vectors)
{
	static const mode_t vectors[][3] = {
		{ 0640, 0750, 0640 }, { 0644, 0755, 0644 }, { 0600, 0700, 0600 }, { 0755, 0755, 0644 },
		{ 0711, 0711, 0600 }, { 04644, 04755, 04644 }, { 0444, 0555, 0444 },
	};
	struct scene *scene = *state;

	scene->options.perms = false;
	scene->options.executability = true;
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		scene->dest.st.mode = S_IFREG | vectors[i][0];
		scene->entry->mode = S_IFREG | 0755;
		assert_int_equal(decide_mode(&scene->rules, scene->entry, &scene->dest), vectors[i][1]);
		scene->entry->mode = S_IFREG | 0644;
		assert_int_equal(decide_mode(&scene->rules, scene->entry, &scene->dest), vectors[i][2]);
	}
	scene->options.executability = false;
	scene->dest.st.mode = S_IFREG | 04711;
	assert_int_equal(decide_mode(&scene->rules, scene->entry, &scene->dest), 04711);
}

UNIT_TEST_WITH(set_up, tear_down, a_file_takes_no_mode_from_a_symlink)
{
	struct scene *scene = *state;

	scene->options.perms = false;
	scene->dest.st.mode = S_IFLNK | 0777;
	assert_int_equal(decide_mode(&scene->rules, scene->entry, &scene->dest), 0644);
	assert_true(decide_scene(scene)->make_room);
}

UNIT_TEST_WITH(set_up, tear_down, what_a_module_does_to_modes_comes_last)
{
	struct scene *scene = *state;

	assert_true(chmod_parse(&scene->options.incoming_chmod, "g+w,o=r"));
	scene->options.perms = false;
	scene->entry->mode = S_IFREG | 0755;
	scene->dest.st.mode = S_IFREG | 0601;
	assert_int_equal(decide_mode(&scene->rules, scene->entry, &scene->dest), 0624);
	scene->dest.exists = false;
	scene->rules.umask = 077;
	assert_int_equal(decide_mode(&scene->rules, scene->entry, &scene->dest), 0724);
	scene->entry->mode = S_IFLNK | 0777;
	scene->rules.umask = 0;
	assert_int_equal(decide_mode(&scene->rules, scene->entry, &scene->dest), 0777);
	scene->options.perms = true;
	scene->entry->mode = S_IFREG | 0755;
	assert_int_equal(decide_mode(&scene->rules, scene->entry, &scene->dest), 0755);
	chmod_free(scene->options.incoming_chmod);
	scene->options.incoming_chmod = NULL;
}

/* What is settled is what nothing would be done to; whatever differs makes it not so. */
UNIT_TEST_WITH(set_up, tear_down, settled_files_are_those_with_nothing_to_do)
{
	struct scene *scene = *state;
	const struct fs_stat same = scene->dest.st;
	struct fs_stat st = same;

	assert_true(decide_is_settled(&scene->rules, scene->entry, &st));
	assert_decision(scene, ACTION_ATTRS, 0);
	st.size++;
	assert_false(decide_is_settled(&scene->rules, scene->entry, &st));
	st = same;
	st.mtime--;
	assert_false(decide_is_settled(&scene->rules, scene->entry, &st));
	st = same;
	st.mtime_nsec = 1;
	assert_false(decide_is_settled(&scene->rules, scene->entry, &st));
	st = same;
	st.mode = S_IFREG | 0600;
	assert_false(decide_is_settled(&scene->rules, scene->entry, &st));
	st.mode = S_IFIFO | 0644;
	assert_false(decide_is_settled(&scene->rules, scene->entry, &st));
	scene->entry->mode = S_IFIFO | 0644;
	assert_false(decide_is_settled(&scene->rules, scene->entry, &st));
}

UNIT_TEST_WITH(set_up, tear_down, owners_settle_a_file_if_they_are_kept)
{
	struct scene *scene = *state;
	struct fs_stat *st = &scene->dest.st;

	st->uid = 1;
	assert_false(decide_is_settled(&scene->rules, scene->entry, st));
	scene->options.owner = false;
	assert_true(decide_is_settled(&scene->rules, scene->entry, st));
	st->gid = 1;
	assert_false(decide_is_settled(&scene->rules, scene->entry, st));
	scene->options.group = false;
	assert_true(decide_is_settled(&scene->rules, scene->entry, st));
}
