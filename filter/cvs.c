/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What CVS would ignore: the names that a "-C" rule stands for (doc/protocol/04-filters.md section 4.4). */
#include <stdlib.h>
#include <string.h>

#include "filter/list.h"

static const char built_in_names[] =
	"RCS SCCS CVS CVS.adm RCSLOG cvslog.* tags TAGS .make.state .nse_depinfo *~ #* .#* ,* _$* *$ *.old *.bak *.BAK *.orig "
	"*.rej .del-* *.a *.olb *.o *.obj *.so *.exe *.Z *.elc *.ln core .svn/ .git/ .hg/ .bzr/";

static void add_user_file(struct reader *reader)
{
	struct filter_list *list = reader->list;
	const char *home = list->setup.cvs_home ? list->setup.cvs_home : getenv("HOME");
	struct strbuf path = STRBUF_INIT;

	if (!home || !*home)
		return;
	strbuf_add_string(&path, home);
	strbuf_add_path(&path, ".cvsignore");
	struct origin origin = { .label = strbuf_text(&path) };
	int fd = open_rule_file(list, FILTER_AT_OPERATOR, strbuf_text(&path), NULL);

	reader->origin = &origin;
	if (fd >= 0)
		read_rule_file(reader, fd, RULE_WORDS);
	reader->origin = NULL;
	strbuf_free(&path);
}

struct segment *cvs_segment(const struct reader *outer, uint16_t flags)
{
	struct filter_list *list = outer->list;
	struct segment *names = xcalloc(1, sizeof *names);
	uint16_t shared = flags & (RULE_ABSOLUTE | RULE_NEGATE | RULE_XATTR | RULE_SIDES | RULE_PERISHABLE);
	const char *words = getenv("CVSIGNORE");
	struct reader reader = {
		.list = list, .out = names, .style = FILTER_OLD_EXCLUDE, .words = true,
		.defaults = shared | RULE_FIXED_EXCLUDE | RULE_CVS,
	};

	names->is_cvs = true;
	if (!list->setup.protocol || list->setup.protocol >= 30)
		reader.defaults |= RULE_PERISHABLE;
	reader_add_words(&reader, built_in_names, strlen(built_in_names));
	reader.defaults = shared | RULE_FIXED_EXCLUDE | RULE_CVS;
	reader.words = false;
	add_user_file(&reader);
	reader.words = true;
	if (words)
		reader_add_words(&reader, words, strlen(words));
	return names;
}
