/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Adding rules to a list. A syntax error ends with stock's message and EXIT_SYNTAX, a merge file that cannot be opened with
 * EXIT_FILEIO. Messages never show the text of a rule that was read from a file, only "<rule from FILE line N>" (S-121).
 */
#ifndef FILTER_ADD_H
#define FILTER_ADD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter/filter.h"

struct origin;
struct segment;

void filter_add(struct filter_list *list, const char *rule, enum filter_style style);
void filter_add_words(struct filter_list *list, const char *rules, enum filter_style style); /* daemon parameters, 4.2.5 */
void filter_add_file(struct filter_list *list, const char *path, enum filter_style style);   /* --exclude-from ..., 4.11 */
void filter_set_from0(struct filter_list *list, bool from0); /* of the files that are read from now on */
void filter_add_cvs(struct filter_list *list); /* ":C" and "-C" of option -C; for local runs, after all other rules */
void filter_add_shortcut_F(struct filter_list *list, int times); /* the times-th -F: 1, 2; more adds nothing */

/* For the room: a rule from the wire, and the rules of a per-directory file of a merge with `flags`, which is closed. */
void filter_add_received(struct filter_list *list, const char *text, size_t length, enum filter_style style);
void filter_add_directory_file(struct filter_list *list, struct segment *out, int fd, const struct origin *origin,
			       uint16_t flags);

#endif
