/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Every option of rsync(1), and ours: its spellings, where it works, what it sets (doc/protocol/06-command-line.md
 * section 2).
 */
#include "options/table.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "delta/skip_list.h"
#include "fs/chmod.h"
#include "lib/exit.h"
#include "options/owners.h"
#include "options/parse.h"
#include "options/remote.h"
#include "wire/setup.h"

#define ALT_DESTS_MAX 20
#define KIB 1024
#define MAX_ALLOC_MIN (1 << 20)

/* --- general setters: into the field of the row --- */

static void *field_of(const struct option_parse *parse)
{
	return (char *)parse->options + parse->spec->field;
}

static void set_also(const struct option_parse *parse, bool value)
{
	if (parse->spec->also)
		*(bool *)((char *)parse->options + parse->spec->also) = value;
}

static bool set_flag(struct option_parse *parse)
{
	*(bool *)field_of(parse) = parse->spec->value;
	set_also(parse, parse->spec->value);
	return true;
}

static bool count_up(struct option_parse *parse)
{
	*(int *)field_of(parse) += 1;
	set_also(parse, true);
	return true;
}

static bool set_int(struct option_parse *parse)
{
	*(int *)field_of(parse) = parse->spec->arg == INT_ARG ? parse->number : parse->spec->value;
	set_also(parse, true);
	return true;
}

static bool set_text(struct option_parse *parse)
{
	*(const char **)field_of(parse) = parse_keep(parse, parse->text);
	set_also(parse, true);
	return true;
}

/* There is nothing to set: the comment in the table gives the reason. */
static bool note_only(struct option_parse *parse)
{
	(void)parse;
	return true;
}

static bool set_size(struct option_parse *parse)
{
	static const struct size_limits limits = { 'b', 0, 0 };

	return parse_size(parse, &limits, field_of(parse));
}

/* --- output and control --- */

/* The standard output of a server is the protocol. */
static FILE *stream_of(const struct options *options)
{
	return options->server ? stderr : stdout;
}

/* Words of --info or --debug; the value is the text that their "help" prints. */
static bool set_levels(struct option_parse *parse)
{
	enum print help = (enum print)parse->spec->value;

	if (!parse->refused && ui_levels_asks_for_help(parse->text))
		parse_print(parse, help, stream_of(parse->options), EXIT_OK);
	else if (help == PRINT_INFO_HELP)
		vec_push(&parse->info_words, parse_keep(parse, parse->text));
	else
		vec_push(&parse->debug_words, parse_keep(parse, parse->text));
	return true;
}

static bool set_stderr_mode(struct option_parse *parse)
{
	static const char *const words[] = { [STDERR_ERRORS] = "errors", [STDERR_ALL] = "all", [STDERR_CLIENT] = "client" };
	const char *text = parse->text;

	for (int i = 0; i < 3; i++)
		if (*text && strncmp(words[i], text, strlen(text)) == 0) {
			parse->options->stderr_mode = (enum stderr_mode)i;
			parse->options->stderr_mode_given = true;
			return true;
		}
	return parse_fail(parse, EXIT_SYNTAX, "--stderr mode \"%s\" is not one of errors, all, or client", text);
}

/* Takes effect before anything is printed. A server prints nothing. */
static bool set_outbuf(struct option_parse *parse)
{
	static const struct { char letter; int mode; } modes[] = {
		{ 'n', _IONBF }, { 'u', _IONBF }, { 'l', _IOLBF }, { 'b', _IOFBF }, { 'f', _IOFBF },
	};

	if (parse->options->server)
		return true;
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (tolower((unsigned char)*parse->text) == modes[i].letter) {
			setvbuf(stdout, NULL, modes[i].mode, 0);
			return true;
		}
	return parse_fail(parse, EXIT_SYNTAX, "Invalid --outbuf setting -- specify N, L, or B.");
}

static bool ask_help(struct option_parse *parse)
{
	enum print help = (enum print)parse->spec->value;

	parse_print(parse, help, help == PRINT_HELP ? stream_of(parse->options) : stdout, EXIT_OK);
	return true;
}

/* --- what is transferred --- */

static bool set_archive(struct option_parse *parse)
{
	struct options *options = parse->options;

	if (!options->recursive)
		options->recursive = 1;
	options->links = options->perms = options->times = true;
	options->group = options->owner = true;
	options->devices = options->specials = true;
	return true;
}

static bool set_atimes(struct option_parse *parse)
{
	if (++parse->options->atimes > 1)
		parse->options->open_noatime = true;
	return true;
}

static bool refuse_crtimes(struct option_parse *parse)
{
	return parse_fail(parse, EXIT_SYNTAX, "%s does not support --crtimes (-N)",
			  parse->options->server ? "The server" : "This rsync");
}

static bool set_chmod(struct option_parse *parse)
{
	if (!chmod_parse(&parse->options->chmod, parse->text))
		return parse_fail(parse, EXIT_SYNTAX, "Invalid argument passed to --chmod (%s)", parse->text);
	return true;
}

/* --- selection and deletion --- */

static bool add_filter_rule(struct option_parse *parse)
{
	return parse_add_filter(parse, FOPT_RULE, parse->spec->value, parse->text, 1);
}

static bool add_filter_file(struct option_parse *parse)
{
	return parse_add_filter(parse, FOPT_FILE, parse->spec->value, parse->text, 1);
}

static bool add_shortcut_f(struct option_parse *parse)
{
	if (parse->shortcut_f_count == 2)
		return true;
	return parse_add_filter(parse, FOPT_SHORTCUT_F, FILTER_NEW_STYLE, "", ++parse->shortcut_f_count);
}

static bool set_files_from(struct option_parse *parse)
{
	struct options *options = parse->options;

	options->files_from = parse_keep(parse, parse->text);
	options->files_from_path = NULL;
	if (argument_is_remote(parse->text)) {
		/* "HOST:FILE" and ":FILE" are files at the other end. */
		struct remote remote;

		if (options->server)
			return parse_fail(parse, EXIT_SYNTAX, "The --files-from sent to the server cannot specify a host.");
		remote_parse(&remote, parse->text);
		options->files_from_path = parse_keep(parse, remote.path);
		remote_free(&remote);
		options->files_from_remote = true;
		if (strcmp(options->files_from_path, "-") == 0)
			return parse_fail(parse, EXIT_SYNTAX, "Invalid --files-from remote filename");
		return true;
	}
	options->files_from_remote = options->server && strcmp(parse->text, "-") == 0;
	return true;
}

static bool set_delete(struct option_parse *parse)
{
	parse->delete_words |= parse->spec->value;
	return true;
}

static bool set_max_delete(struct option_parse *parse)
{
	parse->options->max_delete = parse->number == INT_MIN ? -1 : parse->number < 0 ? 0 : parse->number;
	return true;
}

/* In a daemon, where the option comes from a client, the module is the boundary already. */
static bool set_confine_root(struct option_parse *parse)
{
	if (parse->refused)
		return true;
	if (*parse->text != '/')
		return parse_fail(parse, EXIT_SYNTAX, "--confine-root must be an absolute path");
	parse->options->confine_root = parse_keep(parse, parse->text);
	return true;
}

static bool add_alt_dest(struct option_parse *parse)
{
	struct options *options = parse->options;
	const char *name = parse->spec->name;

	if (parse->alt_dest_kind && strcmp(parse->alt_dest_kind, name) != 0)
		return parse_fail(parse, EXIT_SYNTAX, "ERROR: the --%s option conflicts with the --%s option", name,
				  parse->alt_dest_kind);
	if (options->alt_dests == ALT_DESTS_MAX)
		return parse_fail(parse, EXIT_SYNTAX, "ERROR: at most %d --%s args may be specified", ALT_DESTS_MAX, name);
	options->alt_dest_kind = parse->alt_dest_kind = name;
	vec_push(&options->alt_dest_dirs, parse_keep(parse, parse->text));
	options->alt_dests++;
	return true;
}

static bool set_partial_dir(struct option_parse *parse)
{
	struct options *options = parse->options;

	parse->partial_dir_empty = !*parse->text || strcmp(parse->text, ".") == 0;
	options->has_partial_dir = !parse->partial_dir_empty;
	options->partial_dir = options->has_partial_dir ? parse_clean_partial_dir(parse, parse->text) : NULL;
	options->partial = true;
	return true;
}

/* --- how the data travels --- */

static bool set_block_size(struct option_parse *parse)
{
	struct size_limits limits = { 'b', 0, session_caps_of(parse->options->max_protocol).block_length_max };
	int64_t value;

	if (!parse_size(parse, &limits, &value))
		return false;
	parse->options->block_size = (uint32_t)value;
	return true;
}

static bool set_bwlimit(struct option_parse *parse)
{
	static const struct size_limits limits = { 'k', 512, 0 };
	int64_t value;

	if (!parse_size(parse, &limits, &value))
		return false;
	value = value / KIB + (value % KIB >= KIB / 2);
	parse->options->bwlimit = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
	return true;
}

/* A value over the built-in ceiling, and 0 for "none", leave the ceiling where it is (S-005). */
static bool set_max_alloc(struct option_parse *parse)
{
	static const struct size_limits limits = { 'b', MAX_ALLOC_MIN, 0 };
	int64_t value;

	if (!parse_size(parse, &limits, &value))
		return false;
	parse->max_alloc_given = true;
	parse->options->max_alloc_text = value == (int64_t)MAX_ALLOC_DEFAULT ? NULL : parse_keep(parse, parse->text);
	parse->options->max_alloc = value >= (int64_t)MAX_ALLOC_DEFAULT ? 0 : (size_t)value;
	return true;
}

static bool set_compress(struct option_parse *parse)
{
	parse->options->compress = parse->spec->value;
	parse->compress_count = parse->spec->value ? parse->compress_count + 1 : 0;
	if (!parse->spec->value)
		parse->options->compress_choice = NULL;
	return true;
}

static bool set_zlib_variant(struct option_parse *parse)
{
	parse->options->compress_choice = parse->spec->value ? "zlibx" : "zlib";
	return true;
}

static bool set_skip_compress(struct option_parse *parse)
{
	struct options *options = parse->options;

	options->skip_compress_text = parse_keep(parse, parse->text);
	skip_list_free(options->skip_compress);
	options->skip_compress = skip_list_new();
	skip_list_add_option(options->skip_compress, parse->text);
	return true;
}

/* A client gives it once for all; each occurrence in a server's words counts. */
static bool set_append(struct option_parse *parse)
{
	parse->options->append = parse->mode == MODE_SERVER ? parse->options->append + 1 : 1;
	return true;
}

static bool set_stop_after(struct option_parse *parse)
{
	if (!stop_after_parse(parse->text, time(NULL), &parse->options->stop_at))
		return parse_fail(parse, EXIT_SYNTAX, "invalid --stop-after value: %s", parse->text);
	return true;
}

static bool set_stop_at(struct option_parse *parse)
{
	switch (stop_at_parse(parse->text, time(NULL), &parse->options->stop_at)) {
	case STOP_INVALID:
		return parse_fail(parse, EXIT_SYNTAX, "invalid --stop-at format: %s", parse->text);
	case STOP_PAST:
		return parse_fail(parse, EXIT_SYNTAX, "--stop-at time is not in the future: %s", parse->text);
	case STOP_OK:
		break;
	}
	return true;
}

/* --no-iconv has no text. */
static bool set_iconv(struct option_parse *parse)
{
	const char *text = parse->text;

	parse->iconv_given = true;
	parse->iconv_seen = text != NULL;
	parse->options->iconv = !text || strcmp(text, "-") == 0 ? NULL : parse_keep(parse, text);
	return true;
}

static bool set_protocol(struct option_parse *parse)
{
	const char *side = parse->options->server ? "Server" : "Client";

	/* Permission to speak a newer protocol than it knows means nothing to a server. */
	if (parse->options->server && parse->number > PROTOCOL_MAX)
		parse->number = PROTOCOL_MAX;
	if (parse->number > PROTOCOL_MAX)
		return parse_fail(parse, EXIT_PROTOCOL, "--protocol must be no more than %d on the %s.", PROTOCOL_MAX, side);
	if (parse->number < PROTOCOL_MIN)
		return parse_fail(parse, EXIT_PROTOCOL, "--protocol must be at least %d on the %s.", PROTOCOL_MIN, side);
	parse->options->max_protocol = parse->number;
	return true;
}

/* --- the connection --- */

/* The remote shell of a client; what the client of a server is capable of. */
static bool set_rsh(struct option_parse *parse)
{
	const char **field = parse->mode == MODE_SERVER ? &parse->options->client_info : &parse->options->rsh;

	*field = parse_keep(parse, parse->text);
	return true;
}

static bool add_remote_option(struct option_parse *parse)
{
	if (*parse->text != '-')
		return parse_fail(parse, EXIT_SYNTAX, "Remote option must start with a dash: %s", parse->text);
	vec_push(&parse->options->remote_options, parse_keep(parse, parse->text));
	return true;
}

static bool set_port(struct option_parse *parse)
{
	if (parse->number < 0 || parse->number > 65535)
		return parse_fail(parse, EXIT_SYNTAX, "--port=%d is not a port number", parse->number);
	parse->options->port = parse->number;
	return true;
}

static bool become_server(struct option_parse *parse)
{
	parse->wants_server |= parse->mode == MODE_CLIENT;
	parse->options->server = true;
	return true;
}

/* --- attr snapshots --- */

static bool set_attr_file(struct option_parse *parse)
{
	if (!*parse->text)
		return parse_fail(parse, EXIT_SYNTAX, "--%s needs the name of a file", parse->spec->name);
	return set_text(parse);
}

static bool set_attr_digests(struct option_parse *parse)
{
	static const struct { const char *name; enum attr_digest digest; } names[] = {
		{ "xxh128", ATTR_DIGEST_XXH128 }, { "md5", ATTR_DIGEST_MD5 },
	};
	unsigned digests = 0;

	for (const char *p = parse->text;; p++) {
		size_t length = strcspn(p, ",");
		unsigned digest = 0;

		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (length == strlen(names[i].name) && strncmp(p, names[i].name, length) == 0)
				digest = names[i].digest;
		if (!digest)
			return parse_fail(parse, EXIT_SYNTAX, "--attr-digests: \"%.*s\" is not one of xxh128 and md5",
					  (int)length, p);
		digests |= digest;
		p += length;
		if (!*p)
			break;
	}
	parse->options->attr_digests = digests;
	return true;
}

static bool set_attr_mode(struct option_parse *parse)
{
	enum attr_mode *mode = &parse->options->attr_mode, wanted = (enum attr_mode)parse->spec->value;

	if (*mode != ATTR_MODE_NONE && *mode != wanted)
		return parse_fail(parse, EXIT_SYNTAX, "--%s and --%s cannot be used together", parse->attr_mode_name,
				  parse->spec->name);
	*mode = wanted;
	parse->attr_mode_name = parse->spec->name;
	return true;
}

/* --- a daemon's own --- */

static bool add_dparam(struct option_parse *parse)
{
	if (!strchr(parse->text, '='))
		return parse_fail(parse, EXIT_SYNTAX, "--dparam value is missing an '=': %s\n%s", parse->text,
				  OPTIONS_DAEMON_HINT);
	vec_push(&parse->options->dparams, parse_keep(parse, parse->text));
	return true;
}

/* --- the table --- */

#define F(member) offsetof(struct options, member)

/* Which note_only rows are spellings of one option. */
enum { NO_CRTIMES, BLOCKING };

/* The recurring shapes of a row: general setters, then setters of an option's own. */
#define ON(name, letter, member, runs, help) { name, letter, NO_ARG, set_flag, F(member), true, runs, NULL, help, 0 }
#define OFF(name, member, runs, help) { name, 0, NO_ARG, set_flag, F(member), false, runs, NULL, help, 0 }
#define COUNT(name, letter, member, runs, help) { name, letter, NO_ARG, count_up, F(member), 0, runs, NULL, help, 0 }
#define NUMBER(name, letter, member, value, runs, help) \
	{ name, letter, NO_ARG, set_int, F(member), value, runs, NULL, help, 0 }
#define INT(name, member, runs, value_name, help) { name, 0, INT_ARG, set_int, F(member), 0, runs, value_name, help, 0 }
#define TEXT(name, letter, member, runs, value_name, help) \
	{ name, letter, TEXT_ARG, set_text, F(member), 0, runs, value_name, help, 0 }
#define CALL(name, letter, setter, value, runs, help) { name, letter, NO_ARG, setter, 0, value, runs, NULL, help, 0 }
#define INT_CALL(name, letter, setter, runs, value_name, help) \
	{ name, letter, INT_ARG, setter, 0, 0, runs, value_name, help, 0 }
#define TEXT_CALL(name, letter, setter, value, runs, value_name, help) \
	{ name, letter, TEXT_ARG, setter, 0, value, runs, value_name, help, 0 }
#define TEXT_FIELD(name, setter, member, runs, value_name, help) \
	{ name, 0, TEXT_ARG, setter, F(member), 0, runs, value_name, help, 0 }
/* With a second flag, which gets the same value, or records that the first has been given. */
#define PAIR(name, letter, member, other, value, runs, help) \
	{ name, letter, NO_ARG, set_flag, F(member), value, runs, NULL, help, F(other) }
#define GIVEN(name, member, value, given, runs, help) \
	{ name, 0, NO_ARG, set_int, F(member), value, runs, NULL, help, F(given) }
#define COUNT_GIVEN(name, member, given, runs, help) { name, 0, NO_ARG, count_up, F(member), 0, runs, NULL, help, F(given) }
#define INT_GIVEN(name, letter, member, given, runs, value_name, help) \
	{ name, letter, INT_ARG, set_int, F(member), 0, runs, value_name, help, F(given) }
#define TEXT_GIVEN(name, member, given, runs, value_name, help) \
	{ name, 0, TEXT_ARG, set_text, F(member), 0, runs, value_name, help, F(given) }
#define DAEMON(name, arg) { name, 0, arg, NULL, 0, 0, OF_DAEMON, NULL, NULL, 0 }
#define END { NULL, 0, NO_ARG, NULL, 0, 0, HIDDEN, NULL, NULL, 0 }

/* Several rows: a flag or a level with its negations, --no-NAME and (_LETTER) --no-X. */
#define SWITCH(name, letter, member, runs, help) ON(name, letter, member, runs, help), OFF("no-" name, member, runs, NULL)
#define SWITCH_LETTER(name, letter, no_letter, member, runs, help) \
	SWITCH(name, letter, member, runs, help), OFF(no_letter, member, runs, NULL)
#define LEVEL_LETTER(name, letter, no_letter, member, runs, help) \
	COUNT(name, letter, member, runs, help), NUMBER("no-" name, 0, member, 0, runs, NULL), \
	NUMBER(no_letter, 0, member, 0, runs, NULL)
#define CHOICE_LETTER(name, letter, no_letter, member, help) \
	NUMBER(name, letter, member, 1, WORKS, help), NUMBER("no-" name, 0, member, 0, WORKS, NULL), \
		NUMBER(no_letter, 0, member, 0, WORKS, NULL)

static const struct option_spec options[] = {
	/* output and control */
	LEVEL_LETTER("verbose", 'v', "no-v", verbose, WORKS, "say more; repeat for more still"),
	TEXT_CALL("info", 0, set_levels, PRINT_INFO_HELP, WORKS, "FLAGS",
		"choose what is reported, item by item (--info=help)"),
	TEXT_CALL("debug", 0, set_levels, PRINT_DEBUG_HELP, WORKS, "FLAGS",
		"choose what is traced, item by item (--debug=help)"),
	TEXT_CALL("stderr", 0, set_stderr_mode, 0, WORKS, "e|a|c", "what goes to standard error: errors, all, client's way"),
	GIVEN("msgs2stderr", stderr_mode, STDERR_ALL, stderr_mode_given, WORKS, "same as --stderr=all"),
	GIVEN("no-msgs2stderr", stderr_mode, STDERR_CLIENT, stderr_mode_given, WORKS, NULL),
	COUNT("quiet", 'q', quiet, WORKS, "report errors only"),
	ON("motd", 0, motd, WORKS, NULL),
	OFF("no-motd", motd, WORKS, "do not print what a daemon says on connecting"),
	ON("stats", 0, stats, WORKS, "close with statistics"),
	LEVEL_LETTER("human-readable", 'h', "no-h", human_readable, WORKS, "numbers with units (-h alone: this help)"),
	SWITCH("progress", 0, progress, WORKS, "show how far each file is"),
	PAIR(NULL, 'P', partial, progress, true, WORKS, "--partial and --progress"),
	LEVEL_LETTER("itemize-changes", 'i', "no-i", itemize, WORKS, "one line for each change, with what changed"),
	TEXT("out-format", 0, out_format, WORKS, "FORMAT", "one line in this format for each change"),
	TEXT("log-format", 0, out_format, WORKS, NULL, NULL),
	TEXT("log-file", 0, log_file, WORKS, "FILE", "write to FILE what is done"),
	TEXT("log-file-format", 0, log_file_format, WORKS, "FORMAT", "... each change in this format"),
	SWITCH_LETTER("8-bit-output", '8', "no-8", eight_bit_output, WORKS, "print bytes above 127 in names as they are"),
	ON("list-only", 0, list_only, WORKS, "list the source instead of copying it"),
	ON("dry-run", 'n', dry_run, WORKS, "change nothing, show what would be done"),
	TEXT_CALL("outbuf", 0, set_outbuf, 0, WORKS, "N|L|B", "buffer the output: not, by lines, by blocks"),
	COUNT("version", 'V', said.versions, WORKS, "show version and features (-VV: as JSON)"),
	CALL("help", 0, ask_help, PRINT_HELP, WORKS, "show this"),

	/* what is transferred, and what of it is kept */
	CALL("archive", 'a', set_archive, 0, WORKS, "-rlptgoD"),
	NUMBER("recursive", 'r', recursive, 2, WORKS, "descend into directories"),
	NUMBER("no-recursive", 0, recursive, 0, WORKS, NULL),
	NUMBER("no-r", 0, recursive, 0, WORKS, NULL),
	ON("inc-recursive", 0, allow_inc_recurse, WORKS, "list directory by directory (the default)"),
	ON("i-r", 0, allow_inc_recurse, WORKS, NULL),
	OFF("no-inc-recursive", allow_inc_recurse, WORKS, NULL),
	OFF("no-i-r", allow_inc_recurse, WORKS, NULL),
	CHOICE_LETTER("dirs", 'd', "no-d", said.dirs, "take directories themselves, do not descend"),
	NUMBER("old-dirs", 0, said.dirs, 2, WORKS, "the same by -r and an exclude rule, for old servers"),
	NUMBER("old-d", 0, said.dirs, 2, WORKS, NULL),
	CHOICE_LETTER("relative", 'R', "no-R", said.relative, "keep the whole path of each source argument"),
	ON("implied-dirs", 0, implied_dirs, WORKS, "with -R, give the path's directories their attributes (default)"),
	ON("i-d", 0, implied_dirs, WORKS, NULL),
	OFF("no-implied-dirs", implied_dirs, WORKS, NULL),
	OFF("no-i-d", implied_dirs, WORKS, NULL),
	SWITCH_LETTER("perms", 'p', "no-p", perms, WORKS, "keep permissions"),
	ON("executability", 'E', executability, WORKS, "keep whether files are executable"),
	PAIR("acls", 'A', acls, perms, true, WORKS, "keep ACLs"),
	OFF("no-acls", acls, WORKS, NULL),
	OFF("no-A", acls, WORKS, NULL),
	LEVEL_LETTER("xattrs", 'X', "no-X", xattrs, WORKS, "keep extended attributes"),
	SWITCH_LETTER("times", 't', "no-t", times, WORKS, "keep modification times"),
	CALL("atimes", 'U', set_atimes, 0, WORKS, "keep access times"),
	NUMBER("no-atimes", 0, atimes, 0, WORKS, NULL),
	NUMBER("no-U", 0, atimes, 0, WORKS, NULL),
	SWITCH("open-noatime", 0, open_noatime, WORKS, "leave access times of sources alone"),
	CALL("crtimes", 'N', refuse_crtimes, 0, HIDDEN, NULL),
	/* Nobody keeps creation times on Linux. */
	CALL("no-crtimes", 0, note_only, NO_CRTIMES, WORKS, NULL),
	CALL("no-N", 0, note_only, NO_CRTIMES, WORKS, NULL),
	SWITCH_LETTER("omit-dir-times", 'O', "no-O", omit_dir_times, WORKS, "leave times of directories alone"),
	SWITCH_LETTER("omit-link-times", 'J', "no-J", omit_link_times, WORKS, "leave times of symlinks alone"),
	INT_GIVEN("modify-window", '@', modify_window, modify_window_given, WORKS, "SECONDS",
		"times so close are equal (-1: nanoseconds count)"),
	SWITCH_LETTER("owner", 'o', "no-o", owner, WORKS, "keep owners (needs root)"),
	SWITCH_LETTER("group", 'g', "no-g", group, WORKS, "keep groups"),
	PAIR(NULL, 'D', devices, specials, true, WORKS, "--devices and --specials"),
	PAIR("no-D", 0, devices, specials, false, WORKS, NULL),
	SWITCH("devices", 0, devices, WORKS, "keep device files (needs root)"),
	SWITCH("specials", 0, specials, WORKS, "keep FIFOs and sockets"),
	SWITCH("drop-D", 0, drop_devices, WORKS, "make no devices, FIFOs or sockets here"),
	ON("copy-devices", 0, copy_devices, REMOTE, "copy what devices hold, as files"),
	SWITCH("write-devices", 0, write_devices, REMOTE, "write into devices, do not replace them"),
	SWITCH_LETTER("links", 'l', "no-l", links, WORKS, "copy symlinks as symlinks"),
	ON("copy-links", 'L', copy_links, WORKS, "copy what symlinks point to"),
	ON("copy-dirlinks", 'k', copy_dirlinks, WORKS, "copy the directories that symlinks point to"),
	ON("keep-dirlinks", 'K', keep_dirlinks, WORKS, "take symlinks to directories there for directories"),
	ON("copy-unsafe-links", 0, copy_unsafe_links, WORKS, "copy what unsafe symlinks point to"),
	ON("safe-links", 0, safe_links, WORKS, "leave out symlinks that point outside the tree"),
	SWITCH("insecure-links", 0, insecure_links, WORKS, "follow symlinks of anybody in paths of the command line"),
	SWITCH("munge-links", 0, munge_links, WORKS, "make received symlinks harmless, take that off sent ones"),
	TEXT_CALL("confine-root", 0, set_confine_root, 0, WORKS, "DIR", "refuse paths of options that lead out of DIR"),
	LEVEL_LETTER("hard-links", 'H', "no-H", hard_links, WORKS, "keep hard links"),
	SWITCH("numeric-ids", 0, numeric_ids, WORKS, "keep ids by number, not by name"),
	TEXT_CALL("usermap", 0, set_owner_map, false, WORKS, "MAP", "change owners by name or number"),
	TEXT_CALL("groupmap", 0, set_owner_map, true, WORKS, "MAP", "change groups likewise"),
	TEXT_CALL("chown", 0, set_chown, 0, WORKS, "USER:GROUP", "give files to these"),
	TEXT_CALL("chmod", 0, set_chmod, 0, WORKS, "CHMOD", "change permissions on the way"),
	NUMBER("super", 0, super, SUPER_YES, WORKS, "let the receiving side try what needs root"),
	NUMBER("no-super", 0, super, SUPER_NO, WORKS, NULL),
	NUMBER("fake-super", 0, super, SUPER_FAKE, WORKS, "keep in attributes what only root can do, and read it there"),
	TEXT("copy-as", 0, copy_as, WORKS, "USER:GROUP", "touch files as this user"),
	LEVEL_LETTER("one-file-system", 'x', "no-x", one_file_system, WORKS, "stay on the file system of each source argument"),
	SWITCH_LETTER("sparse", 'S', "no-S", sparse, WORKS, "write runs of zeros as holes"),
	ON("preallocate", 0, preallocate, WORKS, "allocate the space of a file before writing it"),

	/* selection, deletion */
	SWITCH_LETTER("checksum", 'c', "no-c", checksum, WORKS, "compare contents, not size and time"),
	TEXT("checksum-choice", 0, checksum_choice, REMOTE, "NAME", "digest to compare contents with"),
	TEXT("cc", 0, checksum_choice, REMOTE, NULL, NULL),
	ON("ignore-times", 'I', ignore_times, WORKS, "copy files of equal size and time as well"),
	ON("size-only", 0, size_only, WORKS, "leave files of equal size alone"),
	ON("update", 'u', update, WORKS, "leave files alone that are newer at the destination"),
	ON("existing", 0, existing, WORKS, "create nothing that is not there"),
	ON("ignore-non-existing", 0, existing, WORKS, NULL),
	ON("ignore-existing", 0, ignore_existing, WORKS, "update nothing that is there"),
	ON("remove-source-files", 0, remove_source_files, REMOTE, "remove sources that have arrived"),
	/* The older option: its own flag only selects which of the two is sent and named in errors. */
	PAIR("remove-sent-files", 0, remove_source_files, remove_sent_files, true, REMOTE, NULL),
	TEXT_FIELD("max-size", set_size, max_size, WORKS, "SIZE", "leave out larger files"),
	TEXT_FIELD("min-size", set_size, min_size, WORKS, "SIZE", "leave out smaller files"),
	TEXT_CALL("filter", 'f', add_filter_rule, FILTER_NEW_STYLE, WORKS, "RULE", "add a filter rule"),
	CALL(NULL, 'F', add_shortcut_f, 0, WORKS, "obey .rsync-filter files (-FF: and leave them out)"),
	TEXT_CALL("exclude", 0, add_filter_rule, FILTER_OLD_EXCLUDE, WORKS, "PATTERN", "leave out what matches"),
	TEXT_CALL("include", 0, add_filter_rule, FILTER_OLD_INCLUDE, WORKS, "PATTERN", "do not leave out what matches"),
	TEXT_CALL("exclude-from", 0, add_filter_file, FILTER_OLD_EXCLUDE, WORKS, "FILE", "read such patterns from FILE"),
	TEXT_CALL("include-from", 0, add_filter_file, FILTER_OLD_INCLUDE, WORKS, "FILE", "read such patterns from FILE"),
	ON("cvs-exclude", 'C', cvs_exclude, WORKS, "leave out what CVS would"),
	TEXT_CALL("files-from", 0, set_files_from, 0, WORKS, "FILE", "copy the names that FILE lists"),
	SWITCH("from0", '0', from0, WORKS, "names and rules in files end in NUL, not in newline"),
	SWITCH_LETTER("prune-empty-dirs", 'm', "no-m", prune_empty_dirs, WORKS, "leave out directories without files"),
	CALL("delete", 0, set_delete, SAID_DELETE, WORKS, "delete what the source does not have"),
	CALL("del", 0, set_delete, SAID_DURING, WORKS, NULL),
	CALL("delete-before", 0, set_delete, SAID_BEFORE, WORKS, "... before copying"),
	CALL("delete-during", 0, set_delete, SAID_DURING, WORKS, "... directory by directory while copying"),
	CALL("delete-delay", 0, set_delete, SAID_DELAY, WORKS, "... found while copying, deleted at the end"),
	CALL("delete-after", 0, set_delete, SAID_AFTER, WORKS, "... after copying"),
	ON("delete-excluded", 0, delete_excluded, WORKS, "delete what is excluded as well"),
	ON("delete-missing-args", 0, delete_missing_args, WORKS, "delete what missing arguments name"),
	ON("ignore-missing-args", 0, ignore_missing_args, WORKS, "say nothing about missing arguments"),
	SWITCH("force", 0, force, WORKS, "delete directories that are in the way, even if not empty"),
	SWITCH("ignore-errors", 0, ignore_errors, WORKS, "delete even after read errors"),
	INT_CALL("max-delete", 0, set_max_delete, WORKS, "NUM", "delete at most NUM files"),
	SWITCH("backup", 'b', backup, WORKS, "keep what is replaced or deleted"),
	TEXT_GIVEN("backup-dir", backup_dir, backup, WORKS, "DIR", "... in this directory"),
	TEXT("suffix", 0, suffix, WORKS, "SUFFIX", "... under a name with this end (~)"),
	TEXT_CALL("compare-dest", 0, add_alt_dest, 0, WORKS, "DIR", "leave out what is the same in DIR"),
	TEXT_CALL("copy-dest", 0, add_alt_dest, 1, WORKS, "DIR", "... and copy it from there"),
	TEXT_CALL("link-dest", 0, add_alt_dest, 2, WORKS, "DIR", "... and link to it"),
	LEVEL_LETTER("fuzzy", 'y', "no-y", fuzzy, WORKS, "look for a similar file to start from"),
	SWITCH("mkpath", 0, mkpath, WORKS, "make the missing directories of the destination's path"),

	/* mechanics */
	NUMBER("whole-file", 'W', whole_file, 1, WORKS, "copy files whole, no delta (the default of a local run)"),
	NUMBER("no-whole-file", 0, whole_file, 0, REMOTE, "look for blocks that the other end has"),
	NUMBER("no-W", 0, whole_file, 0, REMOTE, NULL),
	SWITCH("inplace", 0, inplace, WORKS, "write into files, do not replace them"),
	CALL("append", 0, set_append, 0, REMOTE, "send only the end of files that have grown"),
	NUMBER("append-verify", 0, append, 2, REMOTE, "... after comparing the beginning"),
	NUMBER("no-append", 0, append, 0, WORKS, NULL),
	SWITCH("partial", 0, partial, WORKS, "keep what has come of interrupted files"),
	TEXT_CALL("partial-dir", 0, set_partial_dir, 0, WORKS, "DIR", "keep interrupted files there"),
	SWITCH("delay-updates", 0, delay_updates, WORKS, "put all new files in place at the end"),
	TEXT("temp-dir", 'T', temp_dir, WORKS, "DIR", "write new files there first"),
	ON("fsync", 0, fsync, WORKS, "flush every written file to the disk"),
	CALL("compress", 'z', set_compress, 1, REMOTE, "compress what travels"),
	CALL("no-compress", 0, set_compress, 0, WORKS, NULL),
	CALL("no-z", 0, set_compress, 0, WORKS, NULL),
	CALL("new-compress", 0, set_zlib_variant, 1, REMOTE, NULL),
	CALL("old-compress", 0, set_zlib_variant, 0, REMOTE, NULL),
	TEXT("compress-choice", 0, compress_choice, REMOTE, "NAME", "how to"),
	TEXT("zc", 0, compress_choice, REMOTE, NULL, NULL),
	INT_GIVEN("compress-level", 0, compress_level, compress_level_set, REMOTE, "NUM", "how much"),
	INT_GIVEN("zl", 0, compress_level, compress_level_set, REMOTE, NULL, NULL),
	INT("compress-threads", compress_threads, WORKS, "NUM", "threads of zstd (at most 8)"),
	INT("zt", compress_threads, WORKS, NULL, NULL),
	TEXT_CALL("skip-compress", 0, set_skip_compress, 0, REMOTE, "SUFFIXES", "but hardly what ends in these"),
	TEXT_CALL("block-size", 'B', set_block_size, 0, REMOTE, "SIZE", "size of the blocks that are looked for"),
	TEXT_CALL("bwlimit", 0, set_bwlimit, 0, REMOTE, "RATE", "use no more bandwidth than this, in KiB a second"),
	NUMBER("no-bwlimit", 0, bwlimit, 0, WORKS, NULL),
	INT("timeout", timeout, WORKS, "SECONDS", "end when nothing has come for so long"),
	NUMBER("no-timeout", 0, timeout, 0, WORKS, NULL),
	INT("contimeout", contimeout, WORKS, "SECONDS", "... when a daemon has not let us in for so long"),
	NUMBER("no-contimeout", 0, contimeout, 0, WORKS, NULL),
	TEXT_CALL("stop-after", 0, set_stop_after, 0, REMOTE, "MINUTES", "end after so long"),
	TEXT_CALL("time-limit", 0, set_stop_after, 0, REMOTE, NULL, NULL),
	TEXT_CALL("stop-at", 0, set_stop_at, 0, REMOTE, "TIME", "end at this time"),
	INT("checksum-seed", checksum_seed, REMOTE, "NUM", "seed of block sums"),
	TEXT_CALL("max-alloc", 0, set_max_alloc, 0, WORKS, "SIZE", "take no more memory than this at once"),
	TEXT_CALL("iconv", 0, set_iconv, 1, REMOTE, "CHARSETS", "convert names: LOCAL,REMOTE"),
	CALL("no-iconv", 0, set_iconv, 0, WORKS, NULL),
	ON("qsort", 0, use_qsort, WORKS, NULL),
	ON("use-qsort", 0, use_qsort, WORKS, NULL),
	INT_CALL("protocol", 0, set_protocol, WORKS, "NUM", "speak no newer protocol than this"),
	TEXT("write-batch", 0, write_batch, REMOTE, "FILE", "write down what was sent, to be replayed elsewhere"),
	TEXT_GIVEN("only-write-batch", write_batch, only_write_batch, REMOTE, "FILE", "... and leave the destination as it is"),
	TEXT("read-batch", 0, read_batch, WORKS, "FILE", "replay it"),

	/* connection */
	TEXT_CALL("rsh", 'e', set_rsh, 0, WORKS, "COMMAND", "the remote shell to use"),
	TEXT("rsync-path", 0, rsync_path, WORKS, "PROGRAM", "the rsync to run at the other end"),
	/* The two ends of the connection to a remote shell block or not each for itself: there is nothing to choose. */
	CALL("blocking-io", 0, note_only, BLOCKING, WORKS, NULL),
	CALL("no-blocking-io", 0, note_only, BLOCKING, WORKS, NULL),
	NUMBER("secluded-args", 's', said.secluded, 1, WORKS, "send arguments past the remote shell"),
	NUMBER("protect-args", 0, said.secluded, 1, WORKS, NULL),
	NUMBER("no-secluded-args", 0, said.secluded, 0, WORKS, NULL),
	NUMBER("no-protect-args", 0, said.secluded, 0, WORKS, NULL),
	NUMBER("no-s", 0, said.secluded, 0, WORKS, NULL),
	COUNT_GIVEN("old-args", old_args, said.old_args, WORKS, "let the remote shell split arguments at blanks"),
	GIVEN("no-old-args", old_args, 0, said.old_args, WORKS, NULL),
	ON("trust-sender", 0, trust_sender, WORKS, "take whatever names a server sends, asked for or not"),
	TEXT_CALL("remote-option", 'M', add_remote_option, 0, WORKS, "OPT", "an option for the other end only"),
	NUMBER("ipv4", '4', ip_family, 4, WORKS, "reach the other end by IPv4"),
	NUMBER("ipv6", '6', ip_family, 6, WORKS, "reach the other end by IPv6"),
	TEXT("address", 0, address, WORKS, "ADDRESS", "reach a daemon from this address of ours"),
	INT_CALL("port", 0, set_port, WORKS, "PORT", "a daemon's port, if not 873"),
	TEXT("sockopts", 0, sockopts, WORKS, "OPTIONS", "TCP options of the connection to a daemon"),
	TEXT("password-file", 0, password_file, WORKS, "FILE", "read the password for a daemon from FILE"),
	TEXT("early-input", 0, early_input, WORKS, "FILE", "data for a daemon's early exec command"),
	CALL("server", 0, become_server, 0, HIDDEN, NULL),
	ON("sender", 0, sender, HIDDEN, NULL),

	/* ours */
	ON("only-send-attrs", 0, only_send_attrs, LOCAL | PULL, "take each regular file's size, as 8 bytes, for its content"),
	TEXT_FIELD("attr-snapshot", set_attr_file, attr_snapshot, LOCAL | PULL | OPERATOR, "FILE",
		"write the attributes of SRC/ (or of DEST) to FILE"),
	TEXT_FIELD("attr-refresh", set_attr_file, attr_refresh, LOCAL | OPERATOR, "HOW",
		"... after looking again only at changed dirs, or at the names in a file"),
	TEXT_CALL("attr-digests", 0, set_attr_digests, 0, LOCAL | PULL | OPERATOR, "NAMES",
		"... with digests of contents: xxh128,md5"),
	CALL("attr-list", 0, set_attr_mode, ATTR_MODE_LIST, LOCAL | OPERATOR, "FILE [PATH]: list a snapshot"),
	CALL("attr-verify", 0, set_attr_mode, ATTR_MODE_VERIFY, LOCAL | OPERATOR, "FILE [SRC/]: check one"),
	CALL("attr-diff", 0, set_attr_mode, ATTR_MODE_DIFF, LOCAL | OPERATOR, "OLD NEW: list what differs between two"),
	CALL("attr-from-tree", 0, set_attr_mode, ATTR_MODE_FROM_TREE, LOCAL | OPERATOR, "TREE [REAL/]: from an attr tree"),
	CALL("attr-to-tree", 0, set_attr_mode, ATTR_MODE_TO_TREE, LOCAL | OPERATOR, "TREE: to an attr tree"),

	/* a daemon's own: they change to the other table */
	DAEMON("daemon", NO_ARG),
	DAEMON("config", TEXT_ARG),
	DAEMON("dparam", TEXT_ARG),
	DAEMON("detach", NO_ARG),
	DAEMON("no-detach", NO_ARG),
	DAEMON("no-sandbox", NO_ARG),
	DAEMON("config-check", NO_ARG),
	DAEMON("status", NO_ARG),
	DAEMON("refresh-attrs", NO_ARG),
	DAEMON("no-wait", NO_ARG),
	END
};

static const struct option_spec daemon_options[] = {
	ON("daemon", 0, daemon, WORKS, "run as a daemon"),
	ON("refresh-attrs", 0, refresh_attrs, WORKS,
		"[MODULE]...: bring the attr trees and snapshots of these modules (of all) up to date"),
	COUNT("quiet", 'q', quiet, WORKS, "... without a line for each of them; config-check: only what is wrong"),
	ON("no-wait", 0, no_wait, WORKS, "... and leave a module to the refresh that is at it"),
	TEXT_FIELD("attr-refresh", set_attr_file, attr_refresh, WORKS, "HOW",
		"... snapshots: after looking again only at changed dirs, or at the names in a file"),
	TEXT_CALL("attr-digests", 0, set_attr_digests, 0, WORKS, "NAMES", "... with digests of contents (default: as before)"),
	ON("status", 0, status, WORKS, "ask the running daemon who is connected, doing what, since when, how fast"),
	ON("config-check", 0, config_check, WORKS, "only check the configuration: what is wrong, what each module does"),
	TEXT("address", 0, address, WORKS, "ADDRESS", "listen on this address"),
	TEXT_CALL("bwlimit", 0, set_bwlimit, 0, WORKS, "RATE", "upper bound of every session's bandwidth"),
	TEXT("config", 0, config_file, WORKS, "FILE", "read this configuration, not /etc/rsyncd.conf"),
	TEXT_CALL("dparam", 'M', add_dparam, 0, WORKS, "NAME=VALUE", "set a global parameter over the configuration"),
	ON("detach", 0, detach, WORKS, "go to the background (default)"),
	OFF("no-detach", detach, WORKS, "stay in the foreground"),
	ON("sandbox", 0, sandbox, WORKS, NULL),
	OFF("no-sandbox", sandbox, WORKS, "do not confine sessions by Landlock and seccomp"),
	INT_CALL("port", 0, set_port, WORKS, "PORT", "listen on this port, not on 873"),
	TEXT("log-file", 0, log_file, WORKS, "FILE", "write the log there"),
	TEXT("log-file-format", 0, log_file_format, WORKS, "FORMAT", "format of the log's transfer lines"),
	TEXT("sockopts", 0, sockopts, WORKS, "OPTIONS", "TCP options of the sockets"),
	INT_CALL("protocol", 0, set_protocol, WORKS, "NUM", "speak no newer protocol than this"),
	TEXT("temp-dir", 'T', temp_dir, WORKS, "DIR", "temp dir of modules that name none"),
	LEVEL_LETTER("verbose", 'v', "no-v", verbose, WORKS, "log more"),
	NUMBER("ipv4", '4', ip_family, 4, WORKS, "listen with IPv4 only"),
	NUMBER("ipv6", '6', ip_family, 6, WORKS, "listen with IPv6 only"),
	ON("server", 0, server, HIDDEN, NULL),
	CALL("help", 'h', ask_help, PRINT_DAEMON_HELP, WORKS, "show this"),
	END
};

const struct option_spec *option_table(enum parse_mode mode)
{
	return mode == MODE_DAEMON ? daemon_options : options;
}

const struct option_spec *option_find(const struct option_spec *table, const char *name, size_t length, char letter)
{
	for (; !option_is_end(table); table++)
		if (letter ? table->letter == letter : table->name && strlen(table->name) == length
		    && strncmp(table->name, name, length) == 0)
			return table;
	return NULL;
}
