/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rule files (doc/protocol/04-filters.md section 4.11), from which rules are pulled one by one.
 *
 *   int fd = open_rule_file(list, place, path, full);
 *   struct reader *reader = reader_new(list, fd, &syntax, flags, in_directory);
 *   while (reader_next(reader, &parsed))
 *           ... syntax.origin is the line that the rule stands on
 *   reader_free(reader);
 */
#ifndef FILTER_READER_H
#define FILTER_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "filter/parse.h"

struct reader;

/* Open by the list's callback: what that returns. full: path that the module's rules are asked about, NULL for the operator's
 * own files. */
int open_rule_file(struct filter_list *list, enum filter_place place, const char *path, const char *full);

/* The same for the name in a merge rule of `outer`, which was read from a per-directory file (4.11.3). */
int open_inner_merge(struct filter_list *list, const struct segment *outer, const char *name);

/* syntax: of the rules, with the origin that names the file, which becomes the one of each rule. `flags` of the merge rule (0:
 * none) decide how the file is split. in_directory: a per-directory file, for which a directory counts as no file. */
struct reader *reader_new(struct filter_list *list, int fd, struct rule_syntax *syntax, uint16_t flags, bool in_directory);
/* Closes the file too. */
void reader_free(struct reader *reader);
/* The next rule, which lies in the reader until the next call; false at the end. A read error ends with EXIT_FILEIO. */
bool reader_next(struct reader *reader, struct parsed *parsed);

#endif
