/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The itemized string and the escapes of --out-format and log formats. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/exit.h"
#include "ui/itemize.h"
#include "ui/number.h"
#include "wire/request.h"

#define COLUMNS 11
#define FORMAT_MAX 4096

static char update_letter(const struct item_look *look)
{
	if (look->flags & ITEM_LOCAL_CHANGE)
		return look->flags & ITEM_XNAME_FOLLOWS ? 'h' : 'c';
	if (!(look->flags & ITEM_TRANSFER))
		return '.';
	return look->sends ? '<' : '>';
}

static char type_letter(uint32_t mode)
{
	if (S_ISDIR(mode))
		return 'd';
	if (S_ISLNK(mode))
		return 'L';
	if (S_ISCHR(mode) || S_ISBLK(mode))
		return 'D';
	if (S_ISFIFO(mode) || S_ISSOCK(mode))
		return 'S';
	return 'f';
}

static char time_letter(const struct item_look *look)
{
	if (!(look->flags & ITEM_REPORT_TIME))
		return '.';
	/* On a symlink the size bit says that its time could not be set. */
	if (!look->times_kept || (S_ISLNK(look->mode) && look->flags & ITEM_REPORT_SIZE))
		return 'T';
	return 't';
}

void itemize(const struct item_look *look, char out[12])
{
	char *columns = out + 2;

	out[COLUMNS] = '\0';
	if (look->flags & ITEM_DELETED) {
		memcpy(out, "*deleting  ", COLUMNS);
		return;
	}
	out[0] = update_letter(look);
	out[1] = type_letter(look->mode);
	uint32_t flags = look->flags;

	columns[0] = flags & ITEM_REPORT_CHANGE ? 'c' : '.';
	columns[1] = flags & ITEM_REPORT_SIZE && !S_ISLNK(look->mode) ? 's' : '.';
	columns[2] = time_letter(look);
	columns[3] = flags & ITEM_REPORT_PERMS ? 'p' : '.';
	columns[4] = flags & ITEM_REPORT_OWNER ? 'o' : '.';
	columns[5] = flags & ITEM_REPORT_GROUP ? 'g' : '.';
	static const char letters[] = ".unb";

	columns[6] = letters[(flags & ITEM_REPORT_ATIME ? 1 : 0) | (flags & ITEM_REPORT_CRTIME ? 2 : 0)];
	columns[7] = flags & ITEM_REPORT_ACL ? 'a' : '.';
	columns[8] = flags & ITEM_REPORT_XATTR ? 'x' : '.';
	if (look->flags & ITEM_IS_NEW)
		memset(columns, '+', COLUMNS - 2);
	else if (look->unknown)
		memset(columns, '?', COLUMNS - 2);
	else if (strchr(".hc", out[0]) && strspn(columns, ".") == COLUMNS - 2)
		memset(columns, ' ', COLUMNS - 2);
}

/* One escape as written: %['..][-][digits]['..]LETTER. */
struct escape {
	int style;      /* number of apostrophes: number_format level */
	bool left;
	size_t width;
	char letter;    /* '\0' at the end of the format */
	size_t length;  /* of the whole escape in the format */
};

static struct escape parse_escape(const char *text)
{
	struct escape escape = { 0, false, 0, '\0', 0 };
	const char *at = text + 1;
	int digits = 0;

	for (; *at == '\''; at++)
		escape.style++;
	if (*at == '-') {
		escape.left = true;
		at++;
		digits++;
	}
	for (; isdigit((unsigned char)*at) && digits < 23; at++, digits++)
		if (escape.width < FORMAT_MAX)
			escape.width = escape.width * 10 + (size_t)(*at - '0');
	if (escape.width > FORMAT_MAX)
		escape.width = FORMAT_MAX;
	for (; *at == '\''; at++)
		escape.style++;
	escape.letter = *at;
	escape.length = (size_t)(at - text) + (*at ? 1 : 0);
	return escape;
}

static void add_blanks(struct strbuf *out, size_t count)
{
	while (count--)
		strbuf_add_char(out, ' ');
}

static void add_padded(struct strbuf *out, const struct escape *escape, const char *text)
{
	size_t length = strlen(text);
	size_t blanks = escape->width > length ? escape->width - length : 0;

	if (!escape->left)
		add_blanks(out, blanks);
	strbuf_add(out, text, length);
	if (escape->left)
		add_blanks(out, blanks);
}

static void add_number(struct strbuf *out, const struct escape *escape, uint64_t value)
{
	char number[64];

	number_format(number, sizeof number, (int64_t)value, escape->style > 3 ? 3 : escape->style);
	add_padded(out, escape, number);
}

static void add_plain(struct strbuf *out, const struct escape *escape, uint64_t value)
{
	char digits[32];

	snprintf(digits, sizeof digits, "%" PRIu64, value);
	add_padded(out, escape, digits);
}

static void add_time(struct strbuf *out, const struct escape *escape, int64_t seconds, char between)
{
	time_t when = (time_t)seconds;
	struct tm parts;
	char text[64] = "(time out of range)";

	if (localtime_r(&when, &parts))
		strftime(text, sizeof text, between == '-' ? "%Y/%m/%d-%H:%M:%S" : "%Y/%m/%d %H:%M:%S", &parts);
	add_padded(out, escape, text);
}

static void add_link(struct strbuf *out, const struct escape *escape, const struct format_values *values)
{
	if (!values->link) {
		if (escape->width)
			add_blanks(out, escape->width + 4);
		return;
	}
	strbuf_add_string(out, values->link_is_hard ? " => " : " -> ");
	add_padded(out, escape, values->link);
}

static void add_name(struct strbuf *out, const struct escape *escape, const struct format_values *values)
{
	struct strbuf name = STRBUF_INIT;

	strbuf_add_string(&name, values->name ? values->name : "");
	if (S_ISDIR(values->look.mode))
		strbuf_add_char(&name, '/');
	add_padded(out, escape, strbuf_text(&name));
	strbuf_free(&name);
}

static void add_digest(struct strbuf *out, const struct escape *escape, const struct format_values *values)
{
	int length = values->digest_length > 0 ? values->digest_length : 16;
	struct strbuf hex = STRBUF_INIT;

	if (values->digest)
		for (int i = 0; i < length; i++)
			strbuf_addf(&hex, "%02x", values->digest[i]);
	else
		add_blanks(&hex, (size_t)length * 2);
	add_padded(out, escape, strbuf_text(&hex));
	strbuf_free(&hex);
}

static void add_permissions(struct strbuf *out, const struct escape *escape, const struct format_values *values)
{
	char letters[10];

	permission_letters(values->is_deletion ? 0 : values->look.mode, letters);
	add_padded(out, escape, letters);
}

static void add_item(struct strbuf *out, const struct escape *escape, const struct format_values *values)
{
	struct item_look look = values->look;
	char item[COLUMNS + 1];

	if (values->is_deletion)
		look.flags = ITEM_DELETED;
	itemize(&look, item);
	add_padded(out, escape, item);
}

/* Letters whose value is a string; NULL leaves the escape as it is written. */
static const char *text_value(char letter, const struct format_values *values)
{
	switch (letter) {
	case 'a': return values->address;
	case 'h': return values->host;
	case 'P': return values->module_path;
	case 'u': return values->user;
	case 'm': return values->module ? values->module : "";
	case 'o': return values->is_deletion ? "del." : values->operation ? values->operation : "";
	case 'f': return values->shown ? values->shown : values->name;
	default: return NULL;
	}
}

/* Letters whose value is a number. */
static bool add_number_letter(struct strbuf *out, const struct escape *escape, const struct format_values *values)
{
	switch (escape->letter) {
	case 'l': add_number(out, escape, values->is_deletion ? 0 : values->length); return true;
	case 'b': add_number(out, escape, values->is_deletion ? 0 : values->transferred); return true;
	case 'c': add_number(out, escape, values->is_deletion ? 0 : values->checksum_bytes); return true;
	case 'p': add_plain(out, escape, (uint64_t)values->pid); return true;
	case 'U': add_plain(out, escape, values->uid); return true;
	case 'G':
		if (values->group_not_kept)
			add_padded(out, escape, "DEFAULT");
		else
			add_plain(out, escape, values->gid);
		return true;
	default: return false;
	}
}

static bool add_other_letter(struct strbuf *out, const struct escape *escape, const struct format_values *values)
{
	switch (escape->letter) {
	case 'i': add_item(out, escape, values); return true;
	case 'n': add_name(out, escape, values); return true;
	case 'L': add_link(out, escape, values); return true;
	case 'B': add_permissions(out, escape, values); return true;
	case 'C': add_digest(out, escape, values); return true;
	case 'M': add_time(out, escape, values->is_deletion ? 0 : values->mtime, '-'); return true;
	case 't': add_time(out, escape, (int64_t)time(NULL), ' '); return true;
	case '%': strbuf_add_char(out, '%'); return true;
	default: return false;
	}
}

void format_expand(const char *format, const struct format_values *values, struct strbuf *out)
{
	if (strlen(format) > FORMAT_MAX)
		die(EXIT_MESSAGEIO, "log-format string is WAY too long!");
	for (const char *at = format; *at; ) {
		struct escape escape;

		if (*at != '%') {
			strbuf_add_char(out, *at++);
			continue;
		}
		escape = parse_escape(at);
		const char *value = text_value(escape.letter, values);

		if (value)
			add_padded(out, &escape, value);
		else if (!add_number_letter(out, &escape, values) && !add_other_letter(out, &escape, values))
			strbuf_add(out, at, escape.length);
		at += escape.length;
	}
}

bool format_uses(const char *format, char letter)
{
	for (const char *at = format; *at; ) {
		struct escape escape;

		if (*at != '%') {
			at++;
			continue;
		}
		escape = parse_escape(at);
		if (escape.letter == letter)
			return true;
		at += escape.length;
	}
	return false;
}
