/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The texts of --help and --version (protocol/06 section 8.12). */
#include <stdlib.h>
#include <string.h>

#include "options_parse.h"
#include "wire/session.h"

#define HELP_COLUMN 25
#define LINE_WIDTH 78

static void add_option_line(struct strbuf *out, const struct option_spec *spec)
{
	size_t start = out->length;

	if (spec->name)
		strbuf_addf(out, "--%s", spec->name);
	if (spec->name && spec->value_name)
		strbuf_addf(out, "=%s", spec->value_name);
	if (spec->letter)
		strbuf_addf(out, "%s-%c", spec->name ? ", " : "", spec->letter);
	strbuf_addf(out, "%*s %s\n", (int)(HELP_COLUMN > out->length - start ? HELP_COLUMN - (out->length - start) : 0), "",
		    spec->help);
}

/* `word` after `indent` blanks at a line's start, else after one; *column is kept up to date. */
static void add_wrapped(struct strbuf *out, const char *word, int indent, size_t *column)
{
	if (*column + 1 + strlen(word) > LINE_WIDTH || *column == 0) {
		strbuf_addf(out, "%s%*s", *column ? "\n" : "", indent, "");
		*column = (size_t)indent;
	} else {
		strbuf_add_char(out, ' ');
		(*column)++;
	}
	strbuf_add_string(out, word);
	*column += strlen(word);
}

bool option_is_shown(const struct option_spec *spec)
{
	return spec->client != LATER && spec->client != HIDDEN;
}

static void add_options(struct strbuf *out, const struct option_spec *table)
{
	size_t column = 0;
	char label[OPTION_LABEL_SIZE];

	for (const struct option_spec *spec = table; spec->set; spec++)
		if (option_is_shown(spec) && spec->help)
			add_option_line(out, spec);
	strbuf_add_string(out, "\nNegations and other spellings:\n");
	for (const struct option_spec *spec = table; spec->set; spec++)
		if (option_is_shown(spec) && !spec->help)
			add_wrapped(out, option_label(spec, label), 2, &column);
	strbuf_add_char(out, '\n');
}

void options_add_help(struct strbuf *out)
{
	strbuf_addf(out, "rsync-huai  version %s  protocol version %d\n\n", HUAI_VERSION, PROTOCOL_MAX);
	strbuf_add_string(out, "Makes the destination equal to the sources; can keep attributes apart from contents.\n\n"
			       "Usage: rsync-huai [OPTION]... SRC... DEST      copy\n"
			       "       rsync-huai [OPTION]... SRC              list\n"
			       "       rsync-huai -a --attr-snapshot=FILE [OPTION]... SRC/   keep the attributes in a file\n"
			       "       rsync-huai --daemon [OPTION]...         serve (--daemon --help tells more)\n"
			       "A stock rsync reaches it with --rsync-path=rsync-huai or through rsync://.\n\n"
			       "Options\n");
	add_options(out, option_table(MODE_CLIENT));
	strbuf_add_string(out, "\nThe manual is rsync-huai(1).\n");
}

void options_add_daemon_help(struct strbuf *out)
{
	strbuf_addf(out, "rsync-huai  version %s  protocol version %d\n\n", HUAI_VERSION, PROTOCOL_MAX);
	strbuf_add_string(out, "Usage: rsync-huai --daemon [OPTION]...\n\nOptions\n");
	add_options(out, option_table(MODE_DAEMON));
	strbuf_add_string(out, "\nThe manuals are rsync-huai(1) and rsync-huaid.conf(5).\n");
}

/* What the version text tells; `has` false is printed as "no NAME". Keys of JSON use '_' for blanks and dashes. */
static const struct {
	const char *name;
	bool has;
} capabilities[] = {
	{ "socketpairs", true }, { "symlinks", true }, { "symtimes", true }, { "hardlinks", true },
	{ "hardlink-specials", true },
	{ "hardlink-symlinks", true }, { "IPv6", true }, { "atimes", true }, { "batchfiles", false }, { "inplace", true },
	{ "append", true }, { "ACLs", false }, { "xattrs", false }, { "secluded-args", true }, { "iconv", true },
	{ "prealloc", true }, { "stop-at", true }, { "crtimes", false }, { "only-send-attrs", true },
	{ "attr-snapshot", true },
};
#define CAPABILITY_COUNT (sizeof capabilities / sizeof *capabilities)

static const char *const sum_names[] = { "xxh128", "xxh3", "xxh64", "md5", "md4", "sha1", "none", NULL };
static const char *const compress_names[] = { "zstd", "lz4", "zlibx", "zlib", "none", NULL };

static void add_capabilities(struct strbuf *out)
{
	static const char *const bits[] = { "64-bit files,", "64-bit inums,", "64-bit timestamps,", "64-bit long ints," };
	size_t column = 0;

	strbuf_add_string(out, "Capabilities:\n");
	for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
		add_wrapped(out, bits[i], 4, &column);
	for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
		struct strbuf word = STRBUF_INIT;
		bool optional = strcmp(capabilities[i].name, "secluded-args") == 0;

		strbuf_addf(&word, "%s%s%s", capabilities[i].has ? optional ? "optional " : "" : "no ", capabilities[i].name,
			    i + 1 < CAPABILITY_COUNT ? "," : "");
		add_wrapped(out, word.data, 4, &column);
		strbuf_free(&word);
	}
	strbuf_add_char(out, '\n');
}

static void add_names(struct strbuf *out, const char *title, const char *const *names)
{
	strbuf_addf(out, "%s:\n   ", title);
	for (; *names; names++)
		strbuf_addf(out, " %s%s", *names, strcmp(*names, "xxh64") == 0 ? " (xxhash)" : "");
	strbuf_add_char(out, '\n');
}

void options_add_version(struct strbuf *out)
{
	strbuf_addf(out, "rsync-huai  version %s  protocol version %d\n", HUAI_VERSION, PROTOCOL_MAX);
	strbuf_add_string(out, "Speaks the protocol of rsync, and is not made from it.\n");
	add_capabilities(out);
	add_names(out, "Checksum list", sum_names);
	add_names(out, "Compress list", compress_names);
	strbuf_add_string(out, "\nFree software: you may change and redistribute it under the GNU General Public License,\n"
			       "version 3 or later. There is no warranty, as far as the law permits.\n");
}

static void add_json_names(struct strbuf *out, const char *key, const char *const *names)
{
	strbuf_addf(out, "  \"%s\": [", key);
	for (size_t i = 0; names[i]; i++)
		strbuf_addf(out, "%s \"%s\"", i ? "," : "", names[i]);
	strbuf_add_string(out, " ],\n");
}

static void add_json_capability(struct strbuf *out, const char *name, bool has)
{
	struct strbuf key = STRBUF_INIT;

	strbuf_add_string(&key, name);
	for (char *p = key.data; *p; p++)
		if (*p == '-')
			*p = '_';
	if (strcmp(name, "secluded-args") == 0)
		strbuf_addf(out, ",\n    \"%s\": \"optional\"", key.data);
	else
		strbuf_addf(out, ",\n    \"%s\": %s", key.data, has ? "true" : "false");
	strbuf_free(&key);
}

void options_add_version_json(struct strbuf *out)
{
	static const char *const no_names[] = { NULL };

	strbuf_addf(out, "{\n  \"program\": \"rsync-huai\",\n  \"version\": \"%s\",\n  \"protocol\": \"%d.0\",\n", HUAI_VERSION,
		    PROTOCOL_MAX);
	strbuf_add_string(out, "  \"capabilities\": {\n    \"file_bits\": 64,\n    \"inum_bits\": 64,\n"
			       "    \"timestamp_bits\": 64,\n    \"long_int_bits\": 64");
	for (size_t i = 0; i < CAPABILITY_COUNT; i++)
		add_json_capability(out, capabilities[i].name, capabilities[i].has);
	strbuf_add_string(out, "\n  },\n");
	add_json_names(out, "checksum_list", sum_names);
	add_json_names(out, "compress_list", compress_names);
	add_json_names(out, "daemon_auth_list", no_names);
	strbuf_add_string(out, "  \"license\": \"GPLv3\",\n  \"caveat\": \"there is no warranty\"\n}\n");
}
