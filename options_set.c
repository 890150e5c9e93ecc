/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What each option does to struct options when it is met: the functions that the option table names. */
#include "options_set.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fs/chmod.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "ui/number.h"

#define KIB 1024
#define BLOCK_SIZE_MAX 131072
#define BLOCK_SIZE_MAX_OLD (1 << 29) /* protocol below 30 */
#define MAX_ALLOC_MIN (1 << 20)
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

bool set_info(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	if (!options->server && ui_levels_asks_for_help(text))
		options_print(parse, stdout, EXIT_OK, ui_levels_add_info_help);
	else
		vec_push(&parse->info_words, parse_keep(parse, text));
	return true;
}

bool set_debug(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	if (!options->server && ui_levels_asks_for_help(text))
		options_print(parse, stdout, EXIT_OK, ui_levels_add_debug_help);
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

bool ask_version(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)options, (void)spec, (void)text;
	parse->versions++;
	return true;
}

bool ask_help(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)options, (void)spec, (void)text;
	options_print(parse, stdout, EXIT_OK, options_add_help);
	return true;
}

bool ask_daemon_help(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)options, (void)spec, (void)text;
	options_print(parse, stdout, EXIT_OK, options_add_daemon_help);
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
	(void)options, (void)spec, (void)text;
	return parse_fail(parse, EXIT_SYNTAX, "This rsync does not support --crtimes (-N)");
}

bool set_modify_window(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	options->modify_window = parse->number;
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
	(void)parse, (void)spec, (void)text;
	options->inplace = true;
	return true;
}

/* --usermap 1, --groupmap 2, --chown both: mapping is the receiver's, but it implies that the ids are sent. */
bool set_owner_map(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)text;
	if (spec->value & 1)
		options->owner = true;
	if (spec->value & 2)
		options->group = true;
	return true;
}

bool set_chmod(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	if (!chmod_parse(&options->chmod, text))
		return parse_fail(parse, EXIT_SYNTAX, "Invalid argument passed to --chmod (%s)", text);
	return true;
}

/* Sizes */

struct size_limits {
	char default_unit;
	int64_t min, max; /* max 0: none; a value of 0 is below no minimum, it means "no limit" */
};

static bool parse_size(struct option_parse *parse, const struct option_spec *spec, const char *text,
		       const struct size_limits *limits, int64_t *value)
{
	const char *name = spec->name;
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
				  limits->min < KIB ? "512" : number_format(limit, sizeof limit, limits->min, 3));
	return true;
}

bool set_size(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	static const struct size_limits limits = { 'b', 0, 0 };

	return parse_size(parse, spec, text, &limits, field_of(options, spec));
}

bool set_block_size(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	struct size_limits limits = { 'b', 0, options->max_protocol < 30 ? BLOCK_SIZE_MAX_OLD : BLOCK_SIZE_MAX };
	int64_t value;

	if (!parse_size(parse, spec, text, &limits, &value))
		return false;
	options->block_size = (uint32_t)value;
	return true;
}

bool set_bwlimit(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	static const struct size_limits limits = { 'k', 512, 0 };
	int64_t value;

	if (!parse_size(parse, spec, text, &limits, &value))
		return false;
	value = value / KIB + (value % KIB >= KIB / 2);
	options->bwlimit = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
	return true;
}

bool clear_bwlimit(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)spec, (void)text;
	options->bwlimit = 0;
	return true;
}

/* A value over the built-in ceiling, and 0 for "none", leave the ceiling where it is (S-005). */
bool set_max_alloc(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	static const struct size_limits limits = { 'b', MAX_ALLOC_MIN, 0 };
	int64_t value;

	if (!parse_size(parse, spec, text, &limits, &value))
		return false;
	options->max_alloc = value >= (int64_t)MAX_ALLOC_DEFAULT ? 0 : (size_t)value;
	return true;
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
	struct filter_option filter = { .style = (enum filter_style)style, .times = times };

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

bool set_files_from(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	bool remote = argument_is_remote(text) || *text == ':';

	(void)spec;
	if (options->server && remote)
		return parse_fail(parse, EXIT_SYNTAX, "The --files-from sent to the server cannot specify a host.");
	options->files_from = parse_keep(parse, text);
	options->files_from_remote = options->server ? strcmp(text, "-") == 0 : remote;
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

bool set_ignore_errors(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)text;
	options->ignore_errors = spec->value;
	options->ignore_errors_given = true;
	return true;
}

bool set_max_delete(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	options->max_delete = parse->number == INT_MIN ? -1 : parse->number < 0 ? 0 : parse->number;
	return true;
}

bool set_backup_dir(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)spec, (void)text;
	options->backup = true;
	return true;
}

bool add_alt_dest(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)text;
	if (parse->alt_dest_kind && strcmp(parse->alt_dest_kind, spec->name) != 0)
		return parse_fail(parse, EXIT_SYNTAX, "ERROR: the --%s option conflicts with the --%s option", spec->name,
				  parse->alt_dest_kind);
	if (options->alt_dests == ALT_DESTS_MAX)
		return parse_fail(parse, EXIT_SYNTAX, "ERROR: at most %d --%s args may be specified", ALT_DESTS_MAX, spec->name);
	parse->alt_dest_kind = spec->name;
	options->alt_dests++;
	return true;
}

bool set_partial_dir(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	parse->partial_dir_empty = !*text || strcmp(text, ".") == 0;
	options->has_partial_dir = !parse->partial_dir_empty;
	options->partial = true;
	return true;
}

/* Mechanics */

bool set_compress(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)text;
	options->compress = spec->value;
	if (spec->value) {
		parse->compress_count++;
	} else {
		parse->compress_count = 0;
		options->compress_choice = NULL;
	}
	return true;
}

bool set_zlib_variant(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)text;
	options->compress_choice = spec->value ? "zlibx" : "zlib";
	return true;
}

bool set_compress_choice(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	options->compress_choice = parse_keep(parse, text);
	return true;
}

bool set_compress_level(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	options->compress_level = parse->number;
	options->compress_level_set = parse->number != INT_MIN;
	return true;
}

bool set_skip_compress(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)spec;
	skip_list_free(options->skip_compress);
	options->skip_compress = skip_list_new();
	skip_list_add_option(options->skip_compress, text);
	return true;
}

bool set_timeout(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	options->timeout = parse->number < 0 ? 0 : parse->number;
	return true;
}

bool clear_timeout(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)parse, (void)spec, (void)text;
	options->timeout = 0;
	return true;
}

bool set_stop_after(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	if (!stop_after_parse(text, time(NULL), &options->stop_at))
		return parse_fail(parse, EXIT_SYNTAX, "invalid --stop-after value: %s", text);
	return true;
}

bool set_stop_at(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	switch (stop_at_parse(text, time(NULL), &options->stop_at)) {
	case STOP_INVALID:
		return parse_fail(parse, EXIT_SYNTAX, "invalid --stop-at format: %s", text);
	case STOP_PAST:
		return parse_fail(parse, EXIT_SYNTAX, "--stop-at time is not in the future: %s", text);
	case STOP_OK:
		break;
	}
	return true;
}

bool set_checksum_seed(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	options->checksum_seed = parse->number;
	return true;
}

bool set_iconv(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	parse->iconv_seen = true;
	options->iconv = strcmp(text, "-") == 0 ? NULL : parse_keep(parse, text);
	return true;
}

bool clear_iconv(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	parse->iconv_seen = false;
	options->iconv = NULL;
	return true;
}

bool set_protocol(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	if (parse->number < PROTOCOL_MIN || parse->number > PROTOCOL_MAX)
		return parse_fail(parse, EXIT_PROTOCOL, "--protocol must be at least %d and no more than %d", PROTOCOL_MIN,
				  PROTOCOL_MAX);
	options->max_protocol = parse->number;
	return true;
}

/* Connection */

/* A client's remote shell; a server's word from its client about what that can do. */
bool set_rsh(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	options->client_info = parse_keep(parse, text);
	return true;
}

/* What the block says of it comes too late: it is being read (S-110). */
bool set_secluded(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)text;
	if (!parse->in_block)
		options->secluded_args = spec->value;
	return true;
}

bool check_remote_option(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)options, (void)spec;
	if (*text != '-')
		return parse_fail(parse, EXIT_SYNTAX, "Remote option must start with a dash: %s", text);
	return true;
}

bool become_server(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	if (parse->mode == MODE_CLIENT)
		parse->wants_server = true;
	options->server = true;
	return true;
}

bool become_daemon(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)options, (void)spec, (void)text;
	if (parse->refused || parse->in_block)
		return parse_fail(parse, EXIT_SYNTAX, "Attempt to hack rsync thwarted!");
	parse->wants_daemon = true;
	return true;
}

/* A daemon's own */

bool see_daemon(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	parse->daemon_seen = true;
	options->daemon = true;
	return true;
}

bool set_address(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	options->address = parse_keep(parse, text);
	return true;
}

bool set_config(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	options->config_file = parse_keep(parse, text);
	return true;
}

bool add_dparam(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	if (!strchr(text, '='))
		return parse_fail(parse, EXIT_SYNTAX, "--dparam value is missing an '=': %s\n%s", text, OPTIONS_DAEMON_HINT);
	vec_push(&options->dparams, parse_keep(parse, text));
	return true;
}

bool set_port(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	if (parse->number < 0 || parse->number > 65535)
		return parse_fail(parse, EXIT_SYNTAX, "--port=%d is not a port number", parse->number);
	options->port = parse->number;
	return true;
}

bool set_sockopts(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	options->sockopts = parse_keep(parse, text);
	return true;
}
