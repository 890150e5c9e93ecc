/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The --chmod language: parsed once into items, applied to each mode. */
#include "fs/chmod.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/file.h"
#include "lib/alloc.h"
#include "lib/vec.h"

enum scope { ANY, DIRECTORIES, FILES };
enum classes { USER = 4, GROUP = 2, OTHER = 1, ALL = 7 };

struct item {
	enum scope scope;
	char operator;       /* '+', '-', '='; '0' for an octal mode */
	unsigned classes;    /* 0: none named, which is all of them under the umask */
	mode_t bits;         /* rwx of one class, or the whole octal mode */
	bool conditional_x;  /* X */
	mode_t special;      /* what s and t stand for here */
	char copy_from;      /* 'u', 'g', 'o' or 0 */
};

struct chmod_rules {
	VEC(struct item) items;
	mode_t mask; /* the umask at the time of parsing */
};

static bool parse_class(struct item *item, char letter)
{
	enum scope scope = letter == 'D' ? DIRECTORIES : letter == 'F' ? FILES : ANY;
	unsigned classes = letter == 'u' ? USER : letter == 'g' ? GROUP : letter == 'o' ? OTHER : letter == 'a' ? ALL : 0;

	if (scope != ANY && item->scope != ANY && item->scope != scope)
		return false;
	if (scope != ANY)
		item->scope = scope;
	item->classes |= classes;
	return scope != ANY || classes;
}

/* s: the set-id bits of the classes named; without u and g the user's, which then stands alone, a "t" before it is lost. */
static mode_t set_id_bits(unsigned classes)
{
	return (classes & USER ? S_ISUID : 0) | (classes & GROUP ? S_ISGID : 0);
}

static bool parse_permission(struct item *item, char letter)
{
	mode_t bit = letter == 'r' ? 4 : letter == 'w' ? 2 : letter == 'x' ? 1 : 0, set_id = set_id_bits(item->classes);

	item->bits |= bit;
	if (letter == 'X')
		item->conditional_x = true;
	else if (letter == 's')
		item->special = set_id ? item->special | set_id : S_ISUID;
	else if (letter == 't')
		item->special |= S_ISVTX;
	else
		return bit;
	return true;
}

static bool parse_item(struct item *item, const char *text, size_t length)
{
	size_t i = 0;

	*item = (struct item){ .scope = ANY };
	while (i < length && parse_class(item, text[i]))
		i++;
	if (i == length)
		return false;
	if (text[i] >= '0' && text[i] <= '7') {
		item->operator = '0';
		for (; i < length; i++) {
			if (text[i] < '0' || text[i] > '7')
				return false;
			item->bits = item->bits * 8 + (mode_t)(text[i] - '0');
			if (item->bits > 07777)
				return false;
		}
		return item->classes == 0;
	}
	if (!strchr("+-=", text[i]))
		return false;
	item->operator = text[i++];
	if (length - i == 1 && strchr("ugo", text[i])) {
		item->copy_from = text[i];
		return true;
	}
	for (; i < length; i++)
		if (!parse_permission(item, text[i]))
			return false;
	return true;
}

bool chmod_parse(struct chmod_rules **rules, const char *text)
{
	struct chmod_rules *list = *rules ? *rules : xcalloc(1, sizeof *list);
	size_t before = list->items.count;

	if (!*rules)
		list->mask = fs_umask();
	for (;;) {
		struct item item;
		size_t length = strcspn(text, ",");

		if (!parse_item(&item, text, length)) {
			list->items.count = before;
			if (!*rules)
				chmod_free(list);
			return false;
		}
		vec_push(&list->items, item);
		if (!text[length])
			break;
		text += length + 1;
	}
	*rules = list;
	return true;
}

/* The rwx bits that the item names, for every class it concerns. An X that does not hold adds no x, but it takes x away. */
static mode_t named_bits(const struct item *item, mode_t mode, mode_t mask, bool may_execute)
{
	unsigned classes = item->classes ? item->classes : ALL;
	mode_t bits = item->bits;

	if (item->copy_from)
		bits = mode >> (item->copy_from == 'u' ? 6 : item->copy_from == 'g' ? 3 : 0) & 7;
	if (item->conditional_x)
		bits = may_execute || item->operator == '-' ? bits | 1 : bits & ~(mode_t)1;
	mode_t all = (classes & USER ? bits << 6 : 0) | (classes & GROUP ? bits << 3 : 0) | (classes & OTHER ? bits : 0);

	return item->classes ? all : all & ~mask;
}

static mode_t apply_item(const struct item *item, mode_t mode, mode_t mask, bool may_execute)
{
	if (item->operator == '0')
		return (mode & ~(mode_t)07777) | item->bits;
	unsigned classes = item->classes ? item->classes : ALL;
	mode_t cleared = (classes & USER ? S_IRWXU : 0) | (classes & GROUP ? S_IRWXG : 0) | (classes & OTHER ? S_IRWXO : 0);
	mode_t bits = named_bits(item, mode, mask, may_execute) | item->special;

	if (item->operator == '-')
		return mode & ~bits;
	/* What "=" takes away before it adds: set-id bits only if it adds such bits or copies a class. */
	if (item->copy_from)
		cleared |= set_id_bits(classes) | (classes & OTHER ? S_ISVTX : 0);
	else if (item->special)
		cleared |= set_id_bits(item->classes);
	if (item->operator == '=')
		mode &= ~cleared;
	return mode | bits;
}

mode_t chmod_apply(const struct chmod_rules *rules, mode_t mode)
{
	bool is_dir = S_ISDIR(mode);
	bool may_execute = is_dir || mode & 0111;

	if (!rules || S_ISLNK(mode))
		return mode;
	for (size_t i = 0; i < rules->items.count; i++) {
		const struct item *item = &rules->items.items[i];
		if (item->scope != (is_dir ? FILES : DIRECTORIES))
			mode = apply_item(item, mode, rules->mask, may_execute);
	}
	return mode;
}

void chmod_free(struct chmod_rules *rules)
{
	if (!rules)
		return;
	vec_free(&rules->items);
	free(rules);
}
