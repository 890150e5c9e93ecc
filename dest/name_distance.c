/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The distance of Levenshtein, with bytes that differ a little being a little closer than others. */
#include "dest/name_distance.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"

#define SUFFIX_WEIGHT 10

/* From nothing to a name. */
static uint32_t whole_distance(const char *name, size_t length)
{
	uint32_t distance = 0;

	for (size_t i = 0; i < length; i++)
		distance += NAME_DISTANCE_UNIT + (uint32_t)(signed char)name[i];
	return distance;
}

static uint32_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	uint32_t *row, distance;

	if (!a_length || !b_length)
		return whole_distance(a, a_length) + whole_distance(b, b_length);
	row = xcalloc(b_length + 1, sizeof *row);
	for (size_t j = 0; j <= b_length; j++)
		row[j] = (uint32_t)j * NAME_DISTANCE_UNIT;
	for (size_t i = 0; i < a_length; i++) {
		uint8_t from = (uint8_t)a[i];
		uint32_t diagonal = row[0];

		row[0] = (uint32_t)(i + 1) * NAME_DISTANCE_UNIT;
		for (size_t j = 0; j < b_length; j++) {
			uint8_t to = (uint8_t)b[j];
			/* The better of two neighbours is taken before their bytes count. */
			bool drops = row[j + 1] <= row[j];
			uint32_t other = (drops ? row[j + 1] + from : row[j] + to) + NAME_DISTANCE_UNIT, change = diagonal;

			if (from != to)
				change += NAME_DISTANCE_UNIT + (from > to ? from - to : to - from);
			diagonal = row[j + 1];
			row[j + 1] = change < other ? change : other;
		}
	}
	distance = row[b_length];
	free(row);
	return distance;
}

static bool is_number(const char *text, size_t length)
{
	size_t digits = 0;

	while (digits < length && isdigit((unsigned char)text[digits]))
		digits++;
	return length && digits == length;
}

/* ".bak" and its like, which say nothing about the kind; a "~" at the end has been taken off. */
static bool is_old_version(const char *suffix, size_t length, bool has_tilde)
{
	static const char *const marks[] = { ".bak", ".old", ".orig" };

	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (length == strlen(marks[i]) && !memcmp(suffix, marks[i], length))
			return true;
	return has_tilde && length > 2 && suffix[1] == '~' && isdigit((unsigned char)suffix[2]);
}

const char *name_suffix(const char *name, size_t *length)
{
	size_t start = strspn(name, "."), end = strlen(name);
	const char *number = "";
	bool is_last = true, has_tilde = end > 1 && name[end - 1] == '~';

	*length = 0;
	end -= has_tilde;
	for (size_t at = end; at-- > start;) {
		if (name[at] != '.')
			continue;
		if (!is_last || !is_old_version(name + at, end - at, has_tilde)) {
			number = name + at;
			*length = end - at;
			if (!is_number(number + 1, *length - 1))
				break;
		}
		is_last = false;
		end = at;
	}
	return number;
}

uint32_t name_distance(const char *name, const char *other, uint32_t limit)
{
	size_t length = strlen(name), other_length = strlen(other), suffix_length, other_suffix_length;
	size_t apart = length > other_length ? length - other_length : other_length - length;
	const char *suffix = name_suffix(name, &suffix_length), *other_suffix = name_suffix(other, &other_suffix_length);

	if (apart > limit / NAME_DISTANCE_UNIT && apart * NAME_DISTANCE_UNIT > limit)
		return NAME_DISTANCE_FAR;
	return edit_distance(name, length, other, other_length)
	       + SUFFIX_WEIGHT * edit_distance(suffix, suffix_length, other_suffix, other_suffix_length);
}
