/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions that the option table names: how data travels, how a server is spoken to, and a daemon's own options. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "delta/skip_list.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "options/set.h"

#define KIB 1024
#define BLOCK_SIZE_MAX 131072
#define BLOCK_SIZE_MAX_OLD (1 << 29) /* protocol below 30 */
#define MAX_ALLOC_MIN (1 << 20)

/* Sizes */

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
	parse->max_alloc_given = true;
	options->max_alloc_text = value == (int64_t)MAX_ALLOC_DEFAULT ? NULL : parse_keep(parse, text);
	options->max_alloc = value >= (int64_t)MAX_ALLOC_DEFAULT ? 0 : (size_t)value;
	return true;
}

bool max_alloc_from_environment(struct option_parse *parse, struct options *options)
{
	static const struct option_spec spec = { .name = "max-alloc", .arg = TEXT_ARG };
	const char *text = getenv("RSYNC_MAX_ALLOC");

	return parse->max_alloc_given || !text || !*text || set_max_alloc(parse, options, &spec, text);
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

bool set_compress_threads(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	options->compress_threads = parse->number;
	return true;
}

bool set_skip_compress(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	options->skip_compress_text = parse_keep(parse, text);
	skip_list_free(options->skip_compress);
	options->skip_compress = skip_list_new();
	skip_list_add_option(options->skip_compress, text);
	return true;
}

/* A client says it once for all; each occurrence in a server's words counts. */
bool set_append(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	options->append = parse->mode == MODE_SERVER ? options->append + 1 : 1;
	return true;
}

bool set_only_write_batch(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	options->only_write_batch = true;
	options->write_batch = parse_keep(parse, text);
	return true;
}

bool set_contimeout(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	options->contimeout = parse->number;
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
	parse->iconv_seen = parse->iconv_given = true;
	options->iconv = strcmp(text, "-") == 0 ? NULL : parse_keep(parse, text);
	return true;
}

bool clear_iconv(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	parse->iconv_seen = false;
	parse->iconv_given = true;
	options->iconv = NULL;
	return true;
}

bool set_protocol(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec, (void)text;
	/* What a server may be allowed to speak beyond what it can means nothing. */
	if (options->server && parse->number > PROTOCOL_MAX)
		parse->number = PROTOCOL_MAX;
	const char *side = options->server ? "Server" : "Client";

	if (parse->number > PROTOCOL_MAX)
		return parse_fail(parse, EXIT_PROTOCOL, "--protocol must be no more than %d on the %s.", PROTOCOL_MAX, side);
	if (parse->number < PROTOCOL_MIN)
		return parse_fail(parse, EXIT_PROTOCOL, "--protocol must be at least %d on the %s.", PROTOCOL_MIN, side);
	options->max_protocol = parse->number;
	return true;
}

/* Connection */

/* A client's remote shell; a server's word from its client about what that can do. */
bool set_rsh(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	if (parse->mode == MODE_SERVER)
		options->client_info = parse_keep(parse, text);
	else
		options->rsh = parse_keep(parse, text);
	return true;
}

/* What the block says of it comes too late: it is being read (S-110). */
bool set_secluded(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)text;
	if (parse->in_block)
		return true;
	options->secluded_args = spec->value;
	parse->secluded_given = spec->value;
	return true;
}

bool set_old_args(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)text;
	options->old_args = spec->value ? options->old_args + 1 : 0;
	parse->old_args_given = true;
	return true;
}

bool add_remote_option(struct option_parse *parse, struct options *options, const struct option_spec *spec, const char *text)
{
	(void)spec;
	if (*text != '-')
		return parse_fail(parse, EXIT_SYNTAX, "Remote option must start with a dash: %s", text);
	vec_push(&options->remote_options, parse_keep(parse, text));
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
