/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order of entries and the fate of equal names (doc/protocol/02-file-list.md section 5). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testsuite/unit/unit.h"

#include "attrs/entry.h"

static struct entry *add(struct entries *list, const char *name, bool is_dir)
{
	struct entry *entry = entries_add(list, name, strlen(name));

	entry->mode = is_dir ? 040755 : 0100644;
	return entry;
}

/* A trailing "/" marks a directory. */
static void add_names(struct entries *list, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(names[i]);
		bool is_dir = names[i][length - 1] == '/';
		struct entry *entry = entries_add(list, names[i], is_dir ? length - 1 : length);
		entry->mode = is_dir ? 040755 : 0100644;
	}
}

/* The top level of the whole-tree vector of doc/protocol/02-file-list.md section 5.3, in order. */
static const char *const vector[] = {
	"./", "\x01", "..y", ".x", "A", "a\n", "a b", "a!", "a-b", "a.b", "a0", "ab", "~", "\xc3\xa9", "\xff",
	"\x01" "d/", ".../", ".dot/", "B/", "a d/", "a-d/", "a.d/", "a/", "a0d/", "\xc3\xa9_d/", "\xfe" "d/",
};
#define VECTOR_COUNT (sizeof vector / sizeof *vector)

static void assert_is_vector(const struct entries *list)
{
	assert_int_equal(list->count, VECTOR_COUNT);
	for (size_t i = 0; i < VECTOR_COUNT; i++) {
		size_t length = strlen(vector[i]);
		if (vector[i][length - 1] == '/')
			length--;
		assert_int_equal(list->items[i].name_length, length);
		assert_memory_equal(entry_name(list, &list->items[i]), vector[i], length);
	}
}

UNIT_TEST(sorting_gives_the_wire_order_from_any_arrival_order)
{
	srand(7);
	for (int round = 0; round < 50; round++) {
		const char *shuffled[VECTOR_COUNT];
		struct entries list;

		memcpy(shuffled, vector, sizeof vector);
		for (size_t i = VECTOR_COUNT - 1; i > 0; i--) {
			size_t j = (size_t)rand() % (i + 1);
			const char *swap = shuffled[i];
			shuffled[i] = shuffled[j];
			shuffled[j] = swap;
		}
		entries_init(&list);
		add_names(&list, shuffled, VECTOR_COUNT);
		entries_sort(&list);
		assert_is_vector(&list);
		entries_free(&list);
	}
}

UNIT_TEST(long_equal_prefixes_are_ordered_by_what_follows)
{
	static const char *const names[] = { "prefix-long-z", "prefix-long-a", "prefix-long", "prefix-long/", "prefix-long-a/",
					     "prefix-long.a/" };
	static const char *const sorted[] = { "prefix-long", "prefix-long-a", "prefix-long-z", "prefix-long-a", "prefix-long.a",
					      "prefix-long" };
	struct entries list;

	entries_init(&list);
	add_names(&list, names, 6);
	entries_sort(&list);
	for (int i = 0; i < 6; i++)
		assert_string_equal(entry_name(&list, &list.items[i]), sorted[i]);
	entries_free(&list);
}

static void add_numbered(struct entries *list, uint32_t count, uint32_t distinct)
{
	char name[32];

	for (uint32_t i = 0; i < count; i++) {
		int length = snprintf(name, sizeof name, "package-%05u", (unsigned)(rand() % (int)distinct));
		struct entry *entry = entries_add(list, name, (size_t)length);

		entry->mode = 0100644;
		entry->size = i;
	}
}

static void assert_in_order(const struct entries *list)
{
	for (uint32_t i = 1; i < list->count; i++) {
		int order = entry_compare(list, &list->items[i - 1], list, &list->items[i]);

		assert_true(order <= 0);
		/* Equal names stay in the order of their arrival. */
		assert_true(order || list->items[i - 1].size < list->items[i].size);
	}
}

UNIT_TEST(lists_of_any_length_are_sorted_and_stable)
{
	srand(11);
	for (uint32_t count = 0; count <= 700; count += count < 40 ? 1 : 37) {
		struct entries list, sorted;

		entries_init(&list);
		entries_init(&sorted);
		add_numbered(&list, count, 1 + count);
		entries_sort(&list);
		assert_int_equal(list.count, count);
		assert_in_order(&list);
		entries_free(&list);
		add_numbered(&list, count, 1 + count / 3);
		entries_sort_into(&list, &sorted);
		assert_int_equal(list.count, 0);
		assert_int_equal(sorted.count, count);
		assert_in_order(&sorted);
		entries_free(&list);
		entries_free(&sorted);
	}
}

UNIT_TEST(a_sorted_copy_has_names_and_sides_of_its_own)
{
	struct entries list, sorted;

	entries_init(&list);
	entries_init(&sorted);
	struct entry *link = add(&list, "link", false);

	link->mode = 0120777;
	entries_set_target(&list, link, "to/where", 8);
	add(&list, "file", false);
	entries_sort_into(&list, &sorted);
	entries_free(&list);
	assert_int_equal(sorted.count, 2);
	assert_string_equal(entry_name(&sorted, &sorted.items[0]), "file");
	assert_string_equal(entry_name(&sorted, &sorted.items[1]), "link");
	assert_string_equal(entry_target(&sorted, &sorted.items[1]), "to/where");
	entries_free(&sorted);
}

UNIT_TEST(names_with_leading_slash_form_their_own_level)
{
	struct entries list;

	entries_init(&list);
	add(&list, "/srv", true);
	add(&list, "/a-file", false);
	add(&list, "zz", false);
	add(&list, "!dir", true);
	add(&list, "a", true);
	entries_sort(&list);
	assert_string_equal(entry_name(&list, &list.items[0]), "zz");
	assert_string_equal(entry_name(&list, &list.items[1]), "!dir");
	assert_string_equal(entry_name(&list, &list.items[2]), "/a-file");
	assert_string_equal(entry_name(&list, &list.items[3]), "/srv");
	assert_string_equal(entry_name(&list, &list.items[4]), "a");
	entries_free(&list);
}

UNIT_TEST(first_of_equal_names_stays_and_a_directory_wins)
{
	struct entries list;

	entries_init(&list);
	add(&list, "f", false)->size = 1;
	add(&list, "n", false);
	add(&list, "b", true)->flags = ENTRY_TOP_DIR | ENTRY_NO_CONTENT;
	add(&list, "f", false)->size = 2;
	add(&list, "n", true);
	add(&list, "b", true);
	entries_sort(&list);
	entries_mark_duplicates(&list);
	/* f f n b b n */
	assert_int_equal(list.items[0].size, 1);
	assert_false(list.items[0].flags & ENTRY_DUPLICATE);
	assert_true(list.items[1].flags & ENTRY_DUPLICATE);
	assert_true(list.items[2].flags & ENTRY_DUPLICATE);
	assert_int_equal(list.items[3].flags, ENTRY_TOP_DIR);
	assert_true(list.items[4].flags & ENTRY_DUPLICATE);
	assert_false(list.items[5].flags & ENTRY_DUPLICATE);
	entries_free(&list);
}

UNIT_TEST(equal_directories_are_implied_only_if_all_are)
{
	const uint16_t implied = ENTRY_TOP_DIR | ENTRY_NO_CONTENT;
	const struct { const char *name; uint16_t first, second; bool is_implied; } cases[] = {
		{ "a", implied, implied, true }, { "b", implied, ENTRY_NO_CONTENT, false },
		{ "c", ENTRY_NO_CONTENT, implied, false }, { "d", implied, ENTRY_TOP_DIR, false },
		{ "e", ENTRY_NO_CONTENT, ENTRY_NO_CONTENT, false },
	};
	const uint32_t count = sizeof cases / sizeof *cases;
	struct entries list;

	entries_init(&list);
	for (uint32_t i = 0; i < count; i++) {
		add(&list, cases[i].name, true)->flags = cases[i].first;
		add(&list, cases[i].name, true)->flags = cases[i].second;
	}
	entries_sort(&list);
	entries_mark_duplicates(&list);
	assert_int_equal(list.count, 2 * count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(entry_is_implied(&list.items[2 * i]), cases[i].is_implied);
	entries_free(&list);
}

UNIT_TEST(a_hidden_directory_gives_way_to_an_equal_one)
{
	const uint16_t hidden = ENTRY_TOP_DIR | ENTRY_NO_CONTENT | ENTRY_HIDDEN;
	struct entries list;

	entries_init(&list);
	add(&list, "a", true)->flags = hidden;
	add(&list, "a", true)->flags = 0;
	add(&list, "b", true)->flags = hidden;
	add(&list, "b", true)->flags = hidden;
	add(&list, "c", true)->flags = ENTRY_NO_CONTENT;
	add(&list, "c", true)->flags = hidden;
	entries_sort(&list);
	entries_mark_duplicates(&list);
	assert_int_equal(list.count, 3);
	assert_int_equal(list.items[0].flags, 0);
	assert_int_equal(list.items[1].flags, hidden);
	assert_int_equal(list.items[2].flags, ENTRY_NO_CONTENT);
	entries_free(&list);
}

UNIT_TEST(find_tells_kinds_apart)
{
	struct entries list;

	entries_init(&list);
	add_names(&list, vector, VECTOR_COUNT);
	entries_sort(&list);
	for (size_t i = 0; i < VECTOR_COUNT; i++) {
		bool is_dir = entry_is_dir(&list.items[i]);
		assert_int_equal(entries_find(&list, entry_name(&list, &list.items[i]), is_dir), i);
		assert_int_equal(entries_find(&list, entry_name(&list, &list.items[i]), !is_dir), -1);
	}
	assert_int_equal(entries_find(&list, "nothing", false), -1);
	entries_free(&list);
}

UNIT_TEST(side_records_follow_their_entry_through_a_sort)
{
	struct entries list;

	entries_init(&list);
	for (int i = 99; i >= 0; i--) {
		char name[16];
		snprintf(name, sizeof name, "n%02d", i);
		struct entry *entry = entries_add(&list, name, strlen(name));
		entry->mode = 0120777;
		entries_set_target(&list, entry, name, strlen(name));
		entries_side(&list, entry)->ino = (uint64_t)i;
	}
	entries_sort(&list);
	for (int i = 0; i < 100; i++) {
		assert_string_equal(entry_target(&list, &list.items[i]), entry_name(&list, &list.items[i]));
		assert_int_equal(entry_side_of(&list, &list.items[i])->ino, i);
	}
	entries_free(&list);
}
