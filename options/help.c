/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The texts of --help. */
#include <stdlib.h>
#include <string.h>

#include "options/help.h"
#include "options/table.h"
#include "wire/session.h"

#define HELP_COLUMN 25

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

static void add_options(struct strbuf *out, const struct option_spec *table)
{
	size_t column = 0;
	char label[OPTION_LABEL_SIZE];

	for (const struct option_spec *spec = table; !option_is_end(spec); spec++)
		if (option_is_shown(spec) && spec->help)
			add_option_line(out, spec);
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
