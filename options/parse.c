/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of a parse, rows of the table of options, the kind of a run, the grammars of values. */
#include "options/parse.h"

#include <ctype.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fs/root.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "options/remote.h"
#include "ui/number.h"

#define SIZE_CEILING 9223372036854775807.0

bool parse_fail_with(struct option_parse *parse, int code, bool bare, const char *fmt, ...)
{
	struct strbuf text = STRBUF_INIT;
	va_list args;

	if (parse->error)
		return false;
	va_start(args, fmt);
	strbuf_vaddf(&text, fmt, args);
	va_end(args);
	parse->error = strbuf_detach(&text);
	parse->error_is_bare = bare;
	parse->code = code;
	return false;
}

char *parse_keep(struct option_parse *parse, const char *text)
{
	char *copy = xstrdup(text);

	vec_push(&parse->strings, copy);
	return copy;
}

void parse_print(struct option_parse *parse, enum print print, FILE *stream, int code)
{
	parse->done = true;
	parse->print = print;
	parse->stream = stream;
	parse->code = code;
}

bool parse_add_filter(struct option_parse *parse, int kind, int style, const char *text, int times)
{
	struct options *options = parse->options;
	struct filter_option filter = { .style = (enum filter_style)style, .times = times, .from0 = options->from0 };

	filter.kind = kind;
	filter.text = parse_keep(parse, text);
	vec_push(&options->filters, filter);
	return true;
}

/* Without empty and "." components, and without those that ".." takes back. */
const char *parse_clean_partial_dir(struct option_parse *parse, const char *text)
{
	size_t length = strlen(text), end;
	char *clean = xmalloc(length + 4);
	bool absolute = *text == '/', has_dot = length > 2 && strcmp(text + length - 2, "/.") == 0;

	fs_clean_path(clean + absolute, text);
	if (absolute)
		*clean = '/';
	end = strlen(clean);
	while (end > 1 && clean[end - 1] == '/')
		clean[--end] = '\0';
	/* That much is left as it stands. */
	if (has_dot && end > 1)
		memcpy(clean + end, "/.", sizeof "/.");
	vec_push(&parse->strings, clean);
	return clean;
}

/* --- rows of the table --- */

bool option_is_end(const struct option_spec *spec)
{
	return !spec->name && !spec->letter;
}

size_t option_table_count(const struct option_spec *table)
{
	size_t count = 0;

	while (!option_is_end(&table[count]))
		count++;
	return count;
}

bool option_is_same(const struct option_spec *a, const struct option_spec *b)
{
	return a == b || (a->set == b->set && a->field == b->field && a->value == b->value && a->also == b->also);
}

const char *option_label(const struct option_spec *spec, char label[OPTION_LABEL_SIZE])
{
	if (spec->name)
		snprintf(label, OPTION_LABEL_SIZE, "--%s", spec->name);
	else
		snprintf(label, OPTION_LABEL_SIZE, "-%c", spec->letter);
	return label;
}

bool option_is_shown(const struct option_spec *spec)
{
	return (spec->runs & HIDDEN) != HIDDEN;
}

enum run_kind options_kind_of_run(const struct options *options)
{
	const struct args *operands = &options->operands;

	if (options->read_batch)
		return PULL;
	if (operands->count > 1 && argument_is_remote(operands->items[operands->count - 1]))
		return PUSH;
	return operands->count && argument_is_remote(operands->items[0]) ? PULL : LOCAL;
}

/* --- sizes and points in time --- */

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

/* NUMBER[UNIT][+1|-1]; what is too large is INT64_MAX. False: the text is nothing of that kind. */
static bool parse_amount(const char *text, char default_unit, int64_t *value)
{
	const char *point = localeconv()->decimal_point;
	size_t whole = strspn(text, "0123456789"), point_length = 0, fraction = 0;
	double amount, unit;
	char *number;
	int step;

	/* Digits with at most one decimal point, as a double: sizes are not exact beyond 2^53 in rsync either. */
	if (text[whole] == '.')
		point_length = 1;
	else if (strncmp(text + whole, point, strlen(point)) == 0)
		point_length = strlen(point);
	if (point_length)
		fraction = strspn(text + whole + point_length, "0123456789");
	number = xasprintf("0%.*s%s%.*s", (int)whole, text, point, (int)fraction, text + whole + point_length);
	amount = strtod(number, NULL);
	free(number);
	text += whole + point_length + fraction;
	unit = parse_unit(&text, default_unit);
	step = *text == '+' ? 1 : *text == '-' ? -1 : 0;
	if (step && *++text == '1')
		text++;
	else if (step)
		return false;
	if (unit == 0 || *text)
		return false;
	amount *= unit;
	*value = amount < SIZE_CEILING ? (int64_t)amount + step : INT64_MAX;
	if (*value < 0)
		*value = INT64_MAX;
	return true;
}

bool parse_size(struct option_parse *parse, const struct size_limits *limits, int64_t *value)
{
	const char *name = parse->spec->name, *text = parse->text;
	char limit[64];

	if (*text == '+' || !parse_amount(text, limits->default_unit, value))
		return parse_fail(parse, EXIT_SYNTAX, "--%s=%s is invalid", name, text);
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
	/* [[Y-]M-]D: the parts are known by their number only when the last has been read. */
	/* February is allowed its 29th in every year: mktime turns the wrong ones into March 1st. */
	static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int parts[3], count = 0;

	for (;;) {
		if (!parse_field(&text, 0, 99999, &parts[count++]))
			return false;
		if (**&text != '-' && **&text != '/')
			break;
		if (count == 3)
			return false;
		(text)++;
	}
	fields->day = parts[count - 1];
	fields->month = count > 1 ? parts[count - 2] : -1;
	fields->year = count > 2 ? parts[0] : -1;
	if (fields->day < 1 || fields->day > 31)
		return false;
	if (!(fields->month == -1 || (fields->month >= 1 && fields->month <= 12 && fields->day <= days[fields->month - 1])))
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

enum stop_result stop_at_parse(const char *text, time_t now, time_t *when)
{
	enum { MOST_STEPS = 8 }; /* from one leap year to the next over a century without */
	struct stop_fields fields;
	struct tm base, reached;

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
		/* Months without a 31st and years without a February 29th are passed over. */
		if (*when > now && (fields.day < 0 || (localtime_r(when, &reached) && reached.tm_mday == fields.day)))
			return STOP_OK;
	}
	return STOP_PAST;
}
