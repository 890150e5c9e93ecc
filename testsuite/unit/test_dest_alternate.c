/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Decisions with alternate destinations: how well an object agrees, and what is then done in each of the three ways. */
#include <stdint.h>
#include <string.h>

#include "testsuite/unit/unit.h"

#include "dest/decide.h"
#include "wire/request.h"

struct scene {
	struct options options;
	struct decide_rules rules;
	struct entries list;
	struct entry *entry;
	struct decide_dest dest;
	struct decide_alternate found;
	struct decision decision;
};

static bool agree(void *unused)
{
	(void)unused;
	return true;
}

static bool differ(void *unused)
{
	(void)unused;
	return false;
}

static const struct decide_probe agreeing = { agree, agree, NULL, agree }, differing = { differ, differ, NULL, differ };
static const struct decide_probe with_other_acl = { agree, agree, NULL, differ };

static int set_up(void **state)
{
	struct scene *scene = test_calloc(1, sizeof *scene);

	scene->options = (struct options){
		.perms = true, .times = true, .owner = true, .group = true, .links = true, .max_size = -1, .min_size = -1,
	};
	scene->rules = (struct decide_rules){ .options = &scene->options, .am_root = true, .umask = 022 };
	entries_init(&scene->list);
	scene->entry = entries_add(&scene->list, "name", 4);
	scene->entry->mode = S_IFREG | 0644;
	scene->entry->size = 100;
	scene->entry->mtime = 1000;
	scene->found.dest = (struct decide_dest){
		.exists = true, .st = { .mode = S_IFREG | 0644, .size = 100, .mtime = 1000, .nlink = 1 },
	};
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

static enum alternate_level level(struct scene *scene, const struct decide_probe *probe)
{
	return decide_alternate_level(&scene->rules, &scene->list, scene->entry, &scene->found.dest, probe);
}

static void make_kind(struct scene *scene, mode_t mode)
{
	scene->entry->mode = (uint16_t)mode;
	scene->found.dest.st.mode = mode;
}

/* The decision for the entry with the alternate number 3 as it is now. */
static enum action act(struct scene *scene, enum alternate_kind kind)
{
	decide(&scene->rules, &scene->list, scene->entry, &scene->dest, &agreeing, &scene->decision);
	scene->found.level = level(scene, &agreeing);
	scene->found.number = 3;
	if (decide_wants_alternate(kind, scene->entry, &scene->dest))
		decide_with_alternate(&scene->rules, &scene->list, scene->entry, &scene->dest, kind, &scene->found,
				      &scene->decision);
	return scene->decision.action;
}

UNIT_TEST_WITH(set_up, tear_down, level_of_a_regular_file)
{
	struct scene *scene = *state;
	struct fs_stat *st = &scene->found.dest.st;

	assert_int_equal(level(scene, &agreeing), ALTERNATE_SAME);
	assert_int_equal(level(scene, &with_other_acl), ALTERNATE_UNCHANGED);
	st->mode = S_IFREG | 0600;
	assert_int_equal(level(scene, &agreeing), ALTERNATE_UNCHANGED);
	scene->options.perms = false;
	assert_int_equal(level(scene, &agreeing), ALTERNATE_SAME);
	st->uid = 5;
	assert_int_equal(level(scene, &agreeing), ALTERNATE_UNCHANGED);
	scene->rules.am_root = false;
	assert_int_equal(level(scene, &agreeing), ALTERNATE_SAME);
	st->mtime = 2000;
	assert_int_equal(level(scene, &agreeing), ALTERNATE_EXISTS);
	scene->options.size_only = true;
	assert_int_equal(level(scene, &agreeing), ALTERNATE_UNCHANGED);
	scene->options.times = false;
	assert_int_equal(level(scene, &agreeing), ALTERNATE_SAME);
	scene->options.checksum = true;
	assert_int_equal(level(scene, &differing), ALTERNATE_EXISTS);
	st->mode = S_IFLNK | 0777;
	assert_int_equal(level(scene, &agreeing), ALTERNATE_NONE);
}

UNIT_TEST_WITH(set_up, tear_down, level_of_other_kinds)
{
	struct scene *scene = *state;

	make_kind(scene, S_IFLNK | 0777);
	assert_int_equal(level(scene, &agreeing), ALTERNATE_SAME);
	assert_int_equal(level(scene, &differing), ALTERNATE_EXISTS);
	scene->found.dest.st.mtime = 1;
	assert_int_equal(level(scene, &agreeing), ALTERNATE_UNCHANGED);
	scene->options.omit_link_times = true;
	assert_int_equal(level(scene, &agreeing), ALTERNATE_SAME);
	make_kind(scene, S_IFDIR | 0755);
	scene->options.omit_dir_times = true;
	assert_int_equal(level(scene, &agreeing), ALTERNATE_UNCHANGED);
	scene->options.times = false;
	assert_int_equal(level(scene, &agreeing), ALTERNATE_SAME);
}

UNIT_TEST_WITH(set_up, tear_down, same_file_where_there_is_none)
{
	struct scene *scene = *state;

	assert_int_equal(act(scene, ALTERNATE_COMPARE), ACTION_LEAVE_OUT);
	assert_int_equal(scene->decision.item_flags, ITEM_MATCHED);
	assert_int_equal(act(scene, ALTERNATE_COPY), ACTION_TAKE_COPY);
	assert_int_equal(scene->decision.item_flags, ITEM_MATCHED | ITEM_LOCAL_CHANGE);
	assert_int_equal(act(scene, ALTERNATE_LINK), ACTION_TAKE_LINK);
	assert_int_equal(scene->decision.item_flags, ITEM_MATCHED | ITEM_LOCAL_CHANGE | ITEM_XNAME_FOLLOWS);
	assert_int_equal(scene->decision.alternate, 4);
	/* A copy has the time of now. */
	scene->options.times = false;
	scene->options.size_only = true;
	act(scene, ALTERNATE_COPY);
	assert_int_equal(scene->decision.item_flags, ITEM_MATCHED | ITEM_LOCAL_CHANGE | ITEM_REPORT_TIME);
}

UNIT_TEST_WITH(set_up, tear_down, file_with_other_attributes_is_copied)
{
	struct scene *scene = *state;

	scene->found.dest.st.mode = S_IFREG | 0600;
	for (enum alternate_kind kind = ALTERNATE_COMPARE; kind <= ALTERNATE_LINK; kind++) {
		assert_int_equal(act(scene, kind), ACTION_TAKE_COPY);
		assert_int_equal(scene->decision.item_flags, ITEM_LOCAL_CHANGE | ITEM_REPORT_PERMS);
	}
}

UNIT_TEST_WITH(set_up, tear_down, file_with_other_content_is_a_basis)
{
	struct scene *scene = *state;

	scene->found.dest.st.size = 99;
	assert_int_equal(act(scene, ALTERNATE_LINK), ACTION_COPY);
	assert_int_equal(scene->decision.item_flags, ITEM_TRANSFER | ITEM_REPORT_SIZE);
	assert_int_equal(scene->decision.alternate, 4);
}

UNIT_TEST_WITH(set_up, tear_down, destination_that_exists)
{
	struct scene *scene = *state;

	scene->dest = scene->found.dest;
	assert_int_equal(act(scene, ALTERNATE_COMPARE), ACTION_LEAVE_OUT);
	assert_int_equal(act(scene, ALTERNATE_COPY), ACTION_ATTRS);
	assert_int_equal(act(scene, ALTERNATE_LINK), ACTION_TAKE_LINK);
	/* Less than the same is nothing then. */
	scene->found.dest.st.mode = S_IFREG | 0600;
	assert_int_equal(act(scene, ALTERNATE_LINK), ACTION_ATTRS);
	assert_int_equal(scene->decision.alternate, 0);
	scene->dest.st.size = 1;
	assert_int_equal(act(scene, ALTERNATE_COMPARE), ACTION_COPY);
	assert_int_equal(scene->decision.alternate, 0);
	/* Something of another type is none. */
	scene->dest.st.mode = S_IFIFO | 0644;
	assert_int_equal(act(scene, ALTERNATE_COPY), ACTION_TAKE_COPY);
	assert_true(scene->decision.make_room);
	/* Other kinds look elsewhere only if there is nothing. */
	make_kind(scene, S_IFLNK | 0777);
	assert_false(decide_wants_alternate(ALTERNATE_LINK, scene->entry, &scene->dest));
}

UNIT_TEST_WITH(set_up, tear_down, symlinks_and_directories)
{
	struct scene *scene = *state;

	make_kind(scene, S_IFLNK | 0777);
	assert_int_equal(act(scene, ALTERNATE_LINK), ACTION_TAKE_LINK);
	assert_int_equal(act(scene, ALTERNATE_COPY), ACTION_MAKE);
	assert_int_equal(scene->decision.item_flags, ITEM_MATCHED | ITEM_LOCAL_CHANGE);
	scene->found.dest.st.mtime = 1;
	assert_int_equal(act(scene, ALTERNATE_LINK), ACTION_MAKE);
	assert_int_equal(scene->decision.item_flags, ITEM_LOCAL_CHANGE | ITEM_REPORT_CHANGE | ITEM_REPORT_TIME);
	make_kind(scene, S_IFDIR | 0755);
	assert_int_equal(act(scene, ALTERNATE_COMPARE), ACTION_MAKE);
	assert_int_equal(scene->decision.item_flags, ITEM_LOCAL_CHANGE | ITEM_REPORT_TIME);
}
