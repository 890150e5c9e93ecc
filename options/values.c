/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The grammars of option values. */
#include "options/values.h"

#include <ctype.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "ui/number.h"

#define SIZE_CEILING 9223372036854775807.0

/* Digits with at most one decimal point, as a double: sizes are not exact beyond 2^53 in rsync either. Moves *text on. */
static double parse_decimal(const char **text)
{
	const char *point = localeconv()->decimal_point;
	const char *p = *text;
	size_t whole, point_length = 0, fraction = 0;
	char *number;
	double value;

	whole = strspn(p, "0123456789");
	if (p[whole] == '.')
		point_length = 1;
	else if (strncmp(p + whole, point, strlen(point)) == 0)
		point_length = strlen(point);
	if (point_length)
		fraction = strspn(p + whole + point_length, "0123456789");
	number = xasprintf("0%.*s%s%.*s", (int)whole, p, point, (int)fraction, p + whole + point_length);
	value = strtod(number, NULL);
	free(number);
	*text = p + whole + point_length + fraction;
	return value;
}

/* "K", "KB", "KiB": 1024, 1000, 1024 to the power of the letter's place. Moves *text on; 0: not a unit. */
static double parse_unit(const char **text, char default_unit)
{
	static const char letters[] = "bkmgtp";
	const char *p = *text;
	const char *letter;
	double base = 1024, unit = 1;

	if (!*p || *p == '+' || *p == '-') {
		letter = strchr(letters, default_unit);
	} else {
		letter = strchr(letters, tolower((unsigned char)*p++));
		if (!letter)
			return 0;
		if (strncasecmp(p, "ib", 2) == 0) {
			p += 2;
		} else if (*p == 'b' || *p == 'B') {
			base = 1000;
			p++;
		}
	}
	*text = p;
	for (; letter > letters; letter--)
		unit *= base;
	return unit;
}

enum size_result size_parse(const char *text, char default_unit, int64_t *value)
{
	const char *p = text;
	double amount, unit;
	int step = 0;

	if (*p == '+')
		return SIZE_INVALID;
	amount = parse_decimal(&p);
	unit = parse_unit(&p, default_unit);
	if (unit == 0)
		return SIZE_INVALID;
	if (*p == '+' || *p == '-') {
		step = *p++ == '+' ? 1 : -1;
		if (*p++ != '1')
			return SIZE_INVALID;
	}
	if (*p)
		return SIZE_INVALID;
	amount *= unit;
	if (!(amount < SIZE_CEILING))
		return SIZE_TOO_LARGE;
	*value = (int64_t)amount + step;
	return *value < 0 ? SIZE_TOO_LARGE : SIZE_OK;
}

bool parse_size(struct option_parse *parse, const struct size_limits *limits, int64_t *value)
{
	const char *name = parse->spec->name, *text = parse->text;
	char limit[64];

	switch (size_parse(text, limits->default_unit, value)) {
	case SIZE_INVALID:
		return parse_fail(parse, EXIT_SYNTAX, "--%s=%s is invalid", name, text);
	case SIZE_TOO_LARGE:
		*value = INT64_MAX;
		break;
	case SIZE_OK:
		break;
	}
	if (limits->max && *value > limits->max)
		return parse_fail(parse, EXIT_SYNTAX, "--%s=%s is too large (max: %s)", name, text,
				  number_format(limit, sizeof limit, limits->max, 3));
	if (*value == INT64_MAX)
		return parse_fail(parse, EXIT_SYNTAX, "--%s=%s is too large", name, text);
	if (*value && *value < limits->min)
		return parse_fail(parse, EXIT_SYNTAX, "--%s=%s is too small (min: %s or 0 for unlimited)", name, text,
				  limits->min < 1024 ? "512" : number_format(limit, sizeof limit, limits->min, 3));
	return true;
}

bool stop_after_parse(const char *text, time_t now, time_t *when)
{
	int64_t minutes = 0;

	while (isspace((unsigned char)*text))
		text++;
	text += *text == '+';
	if (!isdigit((unsigned char)*text))
		return false;
	for (; isdigit((unsigned char)*text); text++) {
		minutes = minutes * 10 + (*text - '0');
		if (minutes > INT32_MAX)
			return false;
	}
	*when = now + minutes * 60;
	return minutes > 0;
}

/* The value of --stop-at; -1: not given. */
struct stop_fields { int year, month, day, hour, minute; };

/* Digits of a value in [low, high]; moves *text on. */
static bool parse_field(const char **text, int low, int high, int *value)
{
	int n = 0;

	if (!isdigit((unsigned char)**text))
		return false;
	for (; isdigit((unsigned char)**text); (*text)++) {
		n = n * 10 + (**text - '0');
		if (n > 99999)
			return false;
	}
	*value = n;
	return n >= low && n <= high;
}

/* [[Y-]M-]D: the parts are known by their number only when the last has been read. */
static bool parse_date(const char **text, struct stop_fields *fields)
{
	/* February is allowed its 29th in every year: mktime turns the wrong ones into March 1st. */
	static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int parts[3], count = 0;

	for (;;) {
		if (!parse_field(text, 0, 99999, &parts[count++]))
			return false;
		if (**text != '-' && **text != '/')
			break;
		if (count == 3)
			return false;
		(*text)++;
	}
	fields->day = parts[count - 1];
	fields->month = count > 1 ? parts[count - 2] : -1;
	fields->year = count > 2 ? parts[0] : -1;
	if (fields->day < 1 || fields->day > 31)
		return false;
	return fields->month == -1 || (fields->month >= 1 && fields->month <= 12 && fields->day <= days[fields->month - 1]);
}

/* H:M or :M, up to the end of the text. */
static bool parse_clock(const char *text, bool hour_needed, struct stop_fields *fields)
{
	fields->hour = -1;
	if (*text != ':' && !parse_field(&text, 0, 23, &fields->hour))
		return false;
	if (hour_needed && fields->hour < 0)
		return false;
	if (*text++ != ':')
		return false;
	return parse_field(&text, 0, 59, &fields->minute) && !*text;
}

static bool parse_stop_fields(const char *text, struct stop_fields *fields)
{
	size_t digits = strspn(text, "0123456789");

	*fields = (struct stop_fields){ -1, -1, -1, 0, 0 };
	if (*text == 'T' || *text == 't')
		return parse_clock(text + 1, true, fields);
	if (text[digits] == ':')
		return parse_clock(text, false, fields);
	if (!parse_date(&text, fields))
		return false;
	if (!*text)
		return true;
	if (*text != 'T' && *text != 't')
		return false;
	return !text[1] || parse_clock(text + 1, true, fields);
}

/* The fields as a point in time, the open ones filled from `base`; then `step` times the smallest unit left open is added. */
static time_t stop_time(const struct stop_fields *fields, const struct tm *base, int step)
{
	struct tm tm = {
		.tm_year = fields->year >= 0 ? fields->year - 1900 : base->tm_year,
		.tm_mon = fields->month >= 0 ? fields->month - 1 : base->tm_mon,
		.tm_mday = fields->day >= 0 ? fields->day : base->tm_mday,
		.tm_hour = fields->hour >= 0 ? fields->hour : base->tm_hour,
		.tm_min = fields->minute,
		.tm_isdst = -1,
	};

	if (fields->hour < 0)
		tm.tm_hour += step;
	else if (fields->day < 0)
		tm.tm_mday += step;
	else if (fields->month < 0)
		tm.tm_mon += step;
	else
		tm.tm_year += step;
	return mktime(&tm);
}

/* Months without a 31st and years without a February 29th are passed over. */
static bool has_the_day(time_t when, int day)
{
	struct tm tm;

	return day < 0 || (localtime_r(&when, &tm) && tm.tm_mday == day);
}

enum stop_result stop_at_parse(const char *text, time_t now, time_t *when)
{
	enum { MOST_STEPS = 8 }; /* from one leap year to the next over a century without */
	struct stop_fields fields;
	struct tm base;

	if (!parse_stop_fields(text, &fields))
		return STOP_INVALID;
	localtime_r(&now, &base);
	if (fields.year >= 0 && fields.year < 100)
		while (fields.year < base.tm_year + 1900)
			fields.year += 100;
	if (fields.year >= 0) {
		*when = stop_time(&fields, &base, 0);
		return *when > now ? STOP_OK : STOP_PAST;
	}
	for (int step = 0; step <= MOST_STEPS; step++) {
		*when = stop_time(&fields, &base, step);
		if (*when > now && has_the_day(*when, fields.day))
			return STOP_OK;
	}
	return STOP_PAST;
}
