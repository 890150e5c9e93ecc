/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions that the option table names: output, what is transferred and kept, what is selected and deleted. */
#include "options/set.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fs/chmod.h"
#include "fs/root.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "options/remote.h"

#define ALT_DESTS_MAX 20

static void *field_of(struct options *options, const struct option_spec *spec)
{
	return (char *)options + spec->field;
}

bool set_flag(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)text;
	*(bool *)field_of(options, spec) = spec->value;
	return true;
}

bool set_number(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)text;
	*(int *)field_of(options, spec) = spec->value;
	return true;
}

bool set_text(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	*(const char **)field_of(options, spec) = parse_keep(parse, text);
	return true;
}

bool count_up(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)text;
	*(int *)field_of(options, spec) += 1;
	return true;
}

bool note_only(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)options, (void)spec, (void)text;
	return true;
}

/* Output and control */

/* Where a text goes that is asked for: what a server prints is the protocol. */
static FILE *stream_of(const struct options *options)
{
	return options->server ? stderr : stdout;
}

bool set_info(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	if (!parse->refused && ui_levels_asks_for_help(text))
		parse_print(parse, PRINT_INFO_HELP, stream_of(options), EXIT_OK);
	else
		vec_push(&parse->info_words, parse_keep(parse, text));
	return true;
}

bool set_debug(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	if (!parse->refused && ui_levels_asks_for_help(text))
		parse_print(parse, PRINT_DEBUG_HELP, stream_of(options), EXIT_OK);
	else
		vec_push(&parse->debug_words, parse_keep(parse, text));
	return true;
}

bool set_stderr_mode(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	static const char *const words[] = { [STDERR_ERRORS] = "errors", [STDERR_ALL] = "all", [STDERR_CLIENT] = "client" };

	(void)spec;
	for (int i = 0; i < 3; i++)
		if (*text && strncmp(words[i], text, strlen(text)) == 0) {
			options->stderr_mode = (enum stderr_mode)i;
			options->stderr_mode_given = true;
			return true;
		}
	return parse_fail(parse, EXIT_SYNTAX, "--stderr mode \"%s\" is not one of errors, all, or client", text);
}

bool set_stderr_number(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)text;
	options->stderr_mode = (enum stderr_mode)spec->value;
	options->stderr_mode_given = true;
	return true;
}

bool set_partial_progress(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)spec, (void)text;
	options->partial = true;
	options->progress = true;
	return true;
}

bool set_out_format(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	options->out_format = parse_keep(parse, text);
	return true;
}

bool set_log_file(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	options->log_file = parse_keep(parse, text);
	return true;
}

bool set_log_file_format(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	options->log_file_format = parse_keep(parse, text);
	return true;
}

/* Before anything is printed. A server prints nothing. */
bool set_outbuf(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	static const struct { char letter; int mode; } modes[] = {
		{ 'n', _IONBF }, { 'u', _IONBF }, { 'l', _IOLBF }, { 'b', _IOFBF }, { 'f', _IOFBF },
	};

	(void)spec;
	if (options->server)
		return true;
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (tolower((unsigned char)*text) == modes[i].letter) {
			setvbuf(stdout, NULL, modes[i].mode, 0);
			return true;
		}
	return parse_fail(parse, EXIT_SYNTAX, "Invalid --outbuf setting -- specify N, L, or B.");
}

bool ask_version(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)options, (void)spec, (void)text;
	parse->versions++;
	return true;
}

bool ask_help(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	parse_print(parse, PRINT_HELP, stream_of(options), EXIT_OK);
	return true;
}

bool ask_daemon_help(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)options, (void)spec, (void)text;
	parse_print(parse, PRINT_DAEMON_HELP, stdout, EXIT_OK);
	return true;
}

/* What is transferred */

bool set_archive(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)spec, (void)text;
	if (!options->recursive)
		options->recursive = 1;
	options->links = options->perms = options->times = true;
	options->group = options->owner = true;
	options->devices = options->specials = true;
	return true;
}

bool set_dirs(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)options, (void)text;
	parse->dirs_given = spec->value;
	return true;
}

bool set_relative(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)options, (void)text;
	parse->relative_given = spec->value;
	return true;
}

bool set_acls(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)spec, (void)text;
	options->acls = options->perms = true;
	return true;
}

bool set_atimes(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)spec, (void)text;
	if (++options->atimes > 1)
		options->open_noatime = true;
	return true;
}

bool refuse_crtimes(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	return parse_fail(parse, EXIT_SYNTAX, "%s does not support --crtimes (-N)",
			  options->server ? "The server" : "This rsync");
}

bool set_modify_window(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	options->modify_window = parse->number;
	options->modify_window_given = true;
	return true;
}

bool set_devices_specials(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)text;
	options->devices = options->specials = spec->value;
	return true;
}

bool set_write_devices(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)text;
	options->write_devices = spec->value;
	return true;
}

/* One half of a mapping, said by its own option or by --chown: once, and not by both. */
static bool set_map(struct option_parse *parse, const char **map, enum owner_word *said, const char *kind, const char *own_name,
		    bool by_chown, const char *value)
{
	if (*said == SAID_MAP && by_chown)
		return parse_fail(parse, EXIT_SYNTAX, "--chown conflicts with prior %s.", own_name);
	if (*said == SAID_CHOWN && !by_chown)
		return parse_fail(parse, EXIT_SYNTAX, "%s conflicts with prior --chown.", own_name);
	if (*said == SAID_MAP)
		return parse_fail(parse, EXIT_SYNTAX, "You can only specify %s once.", own_name);
	if (*said == SAID_CHOWN)
		return parse_fail(parse, EXIT_SYNTAX, "You can only specify a %s-affecting --chown once.", kind);
	*said = by_chown ? SAID_CHOWN : SAID_MAP;
	*map = parse_keep(parse, value);
	return true;
}

static bool map_user(struct option_parse *parse, struct options *options, bool by_chown, const char *value)
{
	options->owner = true;
	return set_map(parse, &options->usermap, &parse->usermap_said, "user", "--usermap", by_chown, value);
}

static bool map_group(struct option_parse *parse, struct options *options, bool by_chown, const char *value)
{
	options->group = true;
	return set_map(parse, &options->groupmap, &parse->groupmap_said, "group", "--groupmap", by_chown, value);
}

/* --usermap 1, --groupmap 2: mapping is the receiver's, but it implies that the ids are sent, of which not every client tells a
 * server in other words. */
bool set_owner_map(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	return spec->value == 1 ? map_user(parse, options, false, text) : map_group(parse, options, false, text);
}

/* "USER:GROUP", either of which may be left out: everybody becomes that. */
bool set_chown(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	size_t length = strcspn(text, ":");
	char *user = xasprintf("*:%.*s", (int)length, text), *group = xasprintf("*:%s", text[length] ? text + length + 1 : "");
	bool good = (!user[2] || map_user(parse, options, true, user)) && (!group[2] || map_group(parse, options, true, group));

	(void)spec;
	free(user);
	free(group);
	return good;
}

bool set_chmod(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	if (!chmod_parse(&options->chmod, text))
		return parse_fail(parse, EXIT_SYNTAX, "Invalid argument passed to --chmod (%s)", text);
	return true;
}

bool set_size(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	static const struct size_limits limits = { 'b', 0, 0 };

	return parse_size(parse, spec, text, &limits, field_of(options, spec));
}

/* Selection and deletion */

bool set_checksum_choice(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	options->checksum_choice = parse_keep(parse, text);
	return true;
}

static bool add_filter(struct option_parse *parse, struct options *options, int kind, int style, const char *text, int times)
{
	struct filter_option filter = { .style = (enum filter_style)style, .times = times, .from0 = options->from0 };

	filter.kind = kind;
	filter.text = parse_keep(parse, text);
	vec_push(&options->filters, filter);
	return true;
}

bool add_filter_rule(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	return add_filter(parse, options, FOPT_RULE, spec->value, text, 1);
}

bool add_filter_file(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	return add_filter(parse, options, FOPT_FILE, spec->value, text, 1);
}

bool add_shortcut_f(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	if (parse->shortcut_f_count == 2)
		return true;
	return add_filter(parse, options, FOPT_SHORTCUT_F, FILTER_NEW_STYLE, "", ++parse->shortcut_f_count);
}

/* "HOST:FILE" and ":FILE" are files at the other end. */
static bool set_remote_files_from(struct option_parse *parse, struct options *options, const char *text)
{
	struct remote remote;

	if (options->server)
		return parse_fail(parse, EXIT_SYNTAX, "The --files-from sent to the server cannot specify a host.");
	remote_parse(&remote, text);
	options->files_from_path = parse_keep(parse, remote.path);
	remote_free(&remote);
	options->files_from_remote = true;
	if (strcmp(options->files_from_path, "-") == 0)
		return parse_fail(parse, EXIT_SYNTAX, "Invalid --files-from remote filename");
	return true;
}

bool set_files_from(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	options->files_from = parse_keep(parse, text);
	options->files_from_path = NULL;
	if (argument_is_remote(text))
		return set_remote_files_from(parse, options, text);
	options->files_from_remote = options->server && strcmp(text, "-") == 0;
	return true;
}

/* Everything that asks about removing asks for remove_source_files; the older word is one more way to want it. */
bool set_remove_sent(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)spec, (void)text;
	options->remove_source_files = options->remove_sent_files = true;
	return true;
}

bool set_delete(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)options, (void)text;
	parse->delete_words |= spec->value;
	return true;
}

bool set_max_delete(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	options->max_delete = parse->number == INT_MIN ? -1 : parse->number < 0 ? 0 : parse->number;
	return true;
}

/* A daemon's module is the boundary already, and the word comes from its client. */
bool set_confine_root(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	if (parse->refused)
		return true;
	if (*text != '/')
		return parse_fail(parse, EXIT_SYNTAX, "--confine-root must be an absolute path");
	options->confine_root = parse_keep(parse, text);
	return true;
}

bool set_backup_dir(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	while (text[0] == '.' && text[1] == '/')
		text += 2;
	options->backup_dir = parse_keep(parse, text);
	options->backup = true;
	return true;
}

bool add_alt_dest(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	if (parse->alt_dest_kind && strcmp(parse->alt_dest_kind, spec->name) != 0)
		return parse_fail(parse, EXIT_SYNTAX, "ERROR: the --%s option conflicts with the --%s option", spec->name,
				  parse->alt_dest_kind);
	if (options->alt_dests == ALT_DESTS_MAX)
		return parse_fail(parse, EXIT_SYNTAX, "ERROR: at most %d --%s args may be specified", ALT_DESTS_MAX,
				  spec->name);
	options->alt_dest_kind = parse->alt_dest_kind = spec->name;
	vec_push(&options->alt_dest_dirs, parse_keep(parse, text));
	options->alt_dests++;
	return true;
}

/* Without empty and "." components, and without those that ".." takes back. */
const char *partial_dir_clean(struct option_parse *parse, const char *text)
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

bool set_partial_dir(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	parse->partial_dir_empty = !*text || strcmp(text, ".") == 0;
	options->has_partial_dir = !parse->partial_dir_empty;
	options->partial_dir = options->has_partial_dir ? partial_dir_clean(parse, text) : NULL;
	options->partial = true;
	return true;
}
