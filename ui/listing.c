/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lines of a listing. */
#include <stdio.h>
#include <time.h>

#include "ui/listing.h"
#include "ui/number.h"

static char kind_letter(uint32_t mode)
{
	static const struct { uint32_t type; char letter; } kinds[] = {
		{ S_IFDIR, 'd' }, { S_IFLNK, 'l' }, { S_IFBLK, 'b' }, { S_IFCHR, 'c' }, { S_IFIFO, 'p' }, { S_IFSOCK, 's' },
	};

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if ((mode & S_IFMT) == kinds[i].type)
			return kinds[i].letter;
	return '-';
}

/* The bits without a column of their own take the place of the x before them: lower case if the x is set as well. */
static char execute_letter(uint32_t mode, uint32_t x_bit, uint32_t special_bit, char special)
{
	if (!(mode & special_bit))
		return mode & x_bit ? 'x' : '-';
	return mode & x_bit ? special : (char)(special - 'a' + 'A');
}

void permission_letters(uint32_t mode, char out[10])
{
	static const char letters[] = "rwxrwxrwx";

	for (int i = 0; i < 9; i++)
		out[i] = mode & (0400u >> i) ? letters[i] : '-';
	out[2] = execute_letter(mode, S_IXUSR, S_ISUID, 's');
	out[5] = execute_letter(mode, S_IXGRP, S_ISGID, 's');
	out[8] = execute_letter(mode, S_IXOTH, S_ISVTX, 't');
	out[9] = '\0';
}

void listing_time(struct strbuf *out, int64_t seconds)
{
	time_t when = (time_t)seconds;
	struct tm parts;
	char text[64];

	if (localtime_r(&when, &parts) && strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S", &parts))
		strbuf_add_string(out, text);
	else
		strbuf_add_string(out, "(time out of range)");
}

void listing_line(struct strbuf *out, const struct entries *list, const struct entry *entry, uint32_t mode, const char *path,
		  int number_level, bool with_atime, bool with_target)
{
	struct entry_side expanded;
	const struct entry_side *side = entry_any_side(list, entry, &expanded);
	char letters[10], number[64];

	if (!mode) {
		strbuf_addf(out, "%-45s %s", "*missing", path);
		return;
	}
	permission_letters(mode, letters);
	number_format(number, sizeof number, (int64_t)entry->size, number_level);
	strbuf_addf(out, "%c%s %*s ", kind_letter(mode), letters, number_level > 0 ? 14 : 11, number);
	listing_time(out, entry->mtime);
	if (with_atime) {
		strbuf_add_char(out, ' ');
		if (entry_is_dir(entry) || !side)
			strbuf_addf(out, "%19s", "");
		else
			listing_time(out, side->atime);
	}
	strbuf_addf(out, " %s", path);
	if (with_target && entry_is_symlink(entry))
		strbuf_addf(out, " -> %s", entry_target(list, entry));
}
