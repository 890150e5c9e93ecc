/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The --info and --debug words and their levels, and what -v turns on (doc/protocol/06-command-line.md section 7). */
#ifndef UI_LEVELS_H
#define UI_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/strbuf.h"

enum info_word {
	INFO_BACKUP, INFO_COPY, INFO_DEL, INFO_FLIST, INFO_MISC, INFO_MOUNT, INFO_NAME, INFO_NONREG, INFO_PROGRESS, INFO_REMOVE,
	INFO_SKIP, INFO_STATS, INFO_SYMSAFE, INFO_COUNT
};
enum debug_word {
	DEBUG_ACL, DEBUG_BACKUP, DEBUG_BIND, DEBUG_CHDIR, DEBUG_CONNECT, DEBUG_CMD, DEBUG_DEL, DEBUG_DELTASUM, DEBUG_DUP,
	DEBUG_EXIT, DEBUG_FILTER, DEBUG_FLIST, DEBUG_FUZZY, DEBUG_GENR, DEBUG_HASH, DEBUG_HLINK, DEBUG_ICONV, DEBUG_IO,
	DEBUG_NSTR, DEBUG_OWN, DEBUG_PROTO, DEBUG_RECV, DEBUG_SEND, DEBUG_TIME, DEBUG_COUNT
};

struct ui_levels {
	uint8_t info[INFO_COUNT];
	uint8_t debug[DEBUG_COUNT];
};

/* Levels of `verbose` times -v. */
void ui_levels_from_verbose(struct ui_levels *levels, int verbose);
/* One --info or --debug value ("progress2,name0"); false with *bad (malloc'ed) naming the first unknown item. The known ones
 * are applied all the same. */
bool ui_levels_parse_info(struct ui_levels *levels, const char *words, char **bad);
bool ui_levels_parse_debug(struct ui_levels *levels, const char *words, char **bad);
/* A daemon's clamp: nothing above what `max_verbosity` would enable (doc/protocol/07-daemon.md section 5.20). */
void ui_levels_clamp(struct ui_levels *levels, int max_verbosity);

/*
 * The --info list that gives a server the levels that were given (0xff: not given) to those `count` words that concern it, in
 * its shortest common form (doc/protocol/06-command-line.md section 7.3); nothing is appended if there are none.
 */
void ui_levels_add_given(struct strbuf *out, const uint8_t given[INFO_COUNT], const enum info_word *words, size_t count);

/* Is "help" among the words? And the text it asks for, appended to `out`. */
bool ui_levels_asks_for_help(const char *words);
void ui_levels_add_info_help(struct strbuf *out);
void ui_levels_add_debug_help(struct strbuf *out);

#endif
