/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The filter rules of the threads that make a snapshot. */
#ifndef SNAPSHOT_MAKE_RULES_H
#define SNAPSHOT_MAKE_RULES_H

#include "filter/filter.h"
#include "fs/root.h"
#include "options.h"

/* One list of filter rules for each thread, all of them the same. */
struct make_rules;
/*
 * Read the rules of the command line. base: the absolute name of the tree, for rules with absolute names. Files that are
 * named there (or are standard input) are read once. Errors end the process, as in a listing.
 */
struct make_rules *make_rules_new(const struct options *options, const struct fs_root *root, const char *base, int threads);
void make_rules_free(struct make_rules *rules);
/* The rules of a thread; NULL: there are none, for no thread. rules: NULL is allowed, here and below. */
struct filter_list *make_rules_list(struct make_rules *rules, int thread);
/*
 * What of the command line changes a list, for the snapshot's facts: two runs with equal texts make equal lists of equal trees,
 * as far as per-directory merge files are equal too. "" without any such option. For the caller to free.
 */
char *make_rules_options(const struct options *options, const struct make_rules *rules);
/* The same of a list that came from elsewhere, only to be displayed: no refresh starts with it. */
char *make_list_options(const struct options *options);

#endif
