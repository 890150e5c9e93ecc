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

void itemize(const struct item_look *look, char out[12])
{
	static const char other_times[] = ".unb", types[] = "fSDfdfDfffLfSfff"; /* types by their four bits */
	uint32_t flags = look->flags;
	/* On a symlink the size bit says that its time could not be set. */
	bool is_link = S_ISLNK(look->mode), time_failed = !look->times_kept || (is_link && flags & ITEM_REPORT_SIZE);
	char *columns = out + 2;

	out[COLUMNS] = '\0';
	if (flags & ITEM_DELETED) {
		memcpy(out, "*deleting  ", COLUMNS);
		return;
	}
	if (flags & ITEM_LOCAL_CHANGE)
		out[0] = flags & ITEM_XNAME_FOLLOWS ? 'h' : 'c';
	else
		out[0] = !(flags & ITEM_TRANSFER) ? '.' : look->sends ? '<' : '>';
	out[1] = types[(look->mode & S_IFMT) >> 12];
	columns[0] = flags & ITEM_REPORT_CHANGE ? 'c' : '.';
	columns[1] = flags & ITEM_REPORT_SIZE && !is_link ? 's' : '.';
	columns[2] = !(flags & ITEM_REPORT_TIME) ? '.' : time_failed ? 'T' : 't';
	columns[3] = flags & ITEM_REPORT_PERMS ? 'p' : '.';
	columns[4] = flags & ITEM_REPORT_OWNER ? 'o' : '.';
	columns[5] = flags & ITEM_REPORT_GROUP ? 'g' : '.';
	columns[6] = other_times[(flags & ITEM_REPORT_ATIME ? 1 : 0) | (flags & ITEM_REPORT_CRTIME ? 2 : 0)];
	columns[7] = flags & ITEM_REPORT_ACL ? 'a' : '.';
	columns[8] = flags & ITEM_REPORT_XATTR ? 'x' : '.';
	if (flags & ITEM_IS_NEW)
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

/* The value of one escape; what is none, or has no value, stays as it is written. */
static void add_value(struct strbuf *out, const char *text, const struct escape *escape, const struct format_values *values)
{
	bool deleted = values->is_deletion;
	struct item_look look = values->look;
	const char *value = NULL;
	char short_text[32];

	switch (escape->letter) {
	case 'a': value = values->address; break;
	case 'h': value = values->host; break;
	case 'P': value = values->module_path; break;
	case 'u': value = values->user; break;
	case 'm': value = values->module ? values->module : ""; break;
	case 'o': value = deleted ? "del." : values->operation ? values->operation : ""; break;
	case 'f': value = values->shown ? values->shown : values->name; break;
	case 'l': add_number(out, escape, deleted ? 0 : values->length); return;
	case 'b': add_number(out, escape, deleted ? 0 : values->transferred); return;
	case 'c': add_number(out, escape, deleted ? 0 : values->checksum_bytes); return;
	case 'n': add_name(out, escape, values); return;
	case 'L': add_link(out, escape, values); return;
	case 'C': add_digest(out, escape, values); return;
	case 'M': add_time(out, escape, deleted ? 0 : values->mtime, '-'); return;
	case 't': add_time(out, escape, (int64_t)time(NULL), ' '); return;
	case '%': strbuf_add_char(out, '%'); return;
	case 'p':
		snprintf(short_text, sizeof short_text, "%d", values->pid);
		value = short_text;
		break;
	case 'U':
		snprintf(short_text, sizeof short_text, "%" PRIu32, values->uid);
		value = short_text;
		break;
	case 'G':
		snprintf(short_text, sizeof short_text, "%" PRIu32, values->gid);
		value = values->group_not_kept ? "DEFAULT" : short_text;
		break;
	case 'B':
		permission_letters(deleted ? 0 : look.mode, short_text);
		value = short_text;
		break;
	case 'i':
		if (deleted)
			look.flags = ITEM_DELETED;
		itemize(&look, short_text);
		value = short_text;
		break;
	default:
		break;
	}
	if (value)
		add_padded(out, escape, value);
	else
		strbuf_add(out, text, escape->length);
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
		add_value(out, at, &escape, values);
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
