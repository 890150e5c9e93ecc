/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The texts of --help; those of --version, for users and as JSON. */
#include "options/help.h"

#include <string.h>

#include "lib/charset.h"
#include "options/table.h"
#include "wire/session.h"
#include "wire/setup.h"

#define HELP_COLUMN 25
#define LINE_WIDTH 78

/* `word` after `indent` blanks at a line's start, else after one; *column (0 before the first word) is kept up to date. */
static void help_add_word(struct strbuf *out, const char *word, int indent, size_t *column)
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

/* --- --help --- */

static void add_options(struct strbuf *out, const struct option_spec *table)
{
	size_t column = 0;
	char label[OPTION_LABEL_SIZE];

	for (const struct option_spec *spec = table; !option_is_end(spec); spec++)
		if (option_is_shown(spec) && spec->help) {
			size_t start = out->length;

			if (spec->name)
				strbuf_addf(out, "--%s", spec->name);
			if (spec->name && spec->value_name)
				strbuf_addf(out, "=%s", spec->value_name);
			if (spec->letter)
				strbuf_addf(out, "%s-%c", spec->name ? ", " : "", spec->letter);
			strbuf_addf(out, "%*s %s\n",
				    (int)(HELP_COLUMN > out->length - start ? HELP_COLUMN - (out->length - start) : 0), "",
				    spec->help);
		}
	strbuf_add_string(out, "\nNegations and other spellings:\n");
	for (const struct option_spec *spec = table; !option_is_end(spec); spec++)
		if (option_is_shown(spec) && !spec->help)
			help_add_word(out, option_label(spec, label), 2, &column);
	strbuf_add_char(out, '\n');
}

void options_add_help(struct strbuf *out)
{
	strbuf_addf(out, "rsync-huai  version %s  protocol version %d\n\n", HUAI_VERSION, PROTOCOL_MAX);
	strbuf_add_string(out, "Makes the destination equal to the sources; can keep attributes apart from contents.\n\n"
			       "Usage: rsync-huai [OPTION]... SRC... DEST      copy\n"
			       "       rsync-huai [OPTION]... SRC              list\n"
			       "       rsync-huai -a --attr-snapshot=FILE [OPTION]... SRC/   keep the attributes in a file\n"
			       "       rsync-huai --daemon [OPTION]...         serve (see --daemon --help)\n"
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

/* --- --version --- */

/* "no NAME" if it is not there. In JSON '_' stands for dashes. */
struct feature {
	const char *name;
	enum { NO, YES, ASKED_FOR, IF_IDN } is_there;
};

static const struct feature capabilities[] = {
	{ "socketpairs", YES }, { "symlinks", YES }, { "symtimes", YES }, { "hardlinks", YES }, { "hardlink-specials", YES },
	{ "hardlink-symlinks", YES }, { "IPv6", YES }, { "atimes", YES }, { "batchfiles", YES }, { "inplace", YES },
	{ "append", YES }, { "ACLs", YES }, { "ACL-at", YES }, { "xattrs", YES }, { "secluded-args", ASKED_FOR },
	{ "iconv", YES }, { "prealloc", YES }, { "stop-at", YES }, { "crtimes", NO }, { "IDN", IF_IDN },
	{ "only-send-attrs", YES }, { "attr-snapshot", YES }, { NULL, NO },
};

static const struct feature optimizations[] = {
	{ "SIMD-roll", YES }, { "asm-roll", NO }, { "openssl-crypto", NO }, { "asm-MD5", NO }, { NULL, NO },
};

static const char sum_names[] = "xxh128 xxh3 xxh64 md5 md4 sha1 none";
static const char compress_names[] = "zstd lz4 zlibx zlib none";

static void add_features(struct strbuf *out, size_t column, const struct feature *features, bool as_json)
{
	for (; features->name; features++) {
		bool is_asked_for = features->is_there == ASKED_FOR;
		bool is_there = features->is_there == IF_IDN ? idn_is_there() : features->is_there != NO;
		const char *comma = features[1].name ? "," : "";
		struct strbuf word = STRBUF_INIT;

		if (as_json)
			strbuf_addf(&word, "\"%s\": ", features->name);
		for (char *p = word.data; as_json && *p; p++)
			if (*p == '-')
				*p = '_';
		if (as_json)
			strbuf_addf(&word, "%s%s", is_asked_for ? "\"optional\"" : is_there ? "true" : "false", comma);
		else
			strbuf_addf(&word, "%s%s%s", !is_there ? "no " : is_asked_for ? "optional " : "", features->name,
				    comma);
		help_add_word(out, word.data, 4, &column);
		strbuf_free(&word);
	}
	strbuf_add_string(out, as_json ? "\n  },\n" : "\n");
}

/* The names of a list, one after the other, with an alias behind the one that has one. */
static void add_names(struct strbuf *out, const char *title, const char *names)
{
	const char *alias = strstr(names, "xxh64 ");
	size_t before = alias ? (size_t)(alias - names) + strlen("xxh64") : strlen(names);

	strbuf_addf(out, "%s:\n    %.*s%s%s\n", title, (int)before, names, alias ? " (xxhash)" : "", names + before);
}

void options_add_version(struct strbuf *out)
{
	strbuf_addf(out, "rsync-huai  version %s  protocol version %d\n", HUAI_VERSION, PROTOCOL_MAX);
	strbuf_add_string(out, "Speaks the protocol of rsync, and is not made from it.\n");
	static const char *const bits[] = { "64-bit files,", "64-bit inums,", "64-bit timestamps,", "64-bit long ints," };
	size_t column = 0;

	strbuf_add_string(out, "Capabilities:\n");
	for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
		help_add_word(out, bits[i], 4, &column);
	add_features(out, column, capabilities, false);
	strbuf_add_string(out, "Optimizations:\n");
	add_features(out, 0, optimizations, false);
	add_names(out, "Checksum list", sum_names);
	add_names(out, "Compress list", compress_names);
	add_names(out, "Daemon auth list", greeting_digests());
	strbuf_add_string(out, "\nFree software: you may change and redistribute it under the GNU General Public License,\n"
			       "version 3 or later. There is no warranty, as far as the law permits.\n");
}

static void add_json_names(struct strbuf *out, const char *key, const char *names)
{
	size_t column = 0;

	strbuf_addf(out, "  \"%s\": [\n", key);
	while (*names) {
		size_t length = strcspn(names, " ");
		struct strbuf word = STRBUF_INIT;

		strbuf_addf(&word, "\"%.*s\"%s", (int)length, names, names[length] ? "," : "");
		names += length + (names[length] == ' ');
		help_add_word(out, word.data, 4, &column);
		strbuf_free(&word);
	}
	strbuf_add_string(out, "\n  ],\n");
}

void options_add_version_json(struct strbuf *out)
{
	static const char *const bits[] = { "\"file_bits\": 64,", "\"inum_bits\": 64,", "\"timestamp_bits\": 64,",
					    "\"long_int_bits\": 64," };
	size_t column = 0;

	strbuf_addf(out, "{\n  \"program\": \"rsync-huai\",\n  \"version\": \"%s\",\n  \"protocol\": \"%d.0\",\n", HUAI_VERSION,
		    PROTOCOL_MAX);
	strbuf_add_string(out, "  \"copyright\": \"(C) the authors of rsync-huai\",\n  \"capabilities\": {\n");
	for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
		help_add_word(out, bits[i], 4, &column);
	add_features(out, column, capabilities, true);
	strbuf_add_string(out, "  \"optimizations\": {\n");
	add_features(out, 0, optimizations, true);
	add_json_names(out, "checksum_list", sum_names);
	add_json_names(out, "compress_list", compress_names);
	add_json_names(out, "daemon_auth_list", greeting_digests());
	strbuf_add_string(out, "  \"license\": \"GPLv3\",\n  \"caveat\": \"there is no warranty\"\n}\n");
}
