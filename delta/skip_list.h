/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Suffixes of files that are not worth compressing: --skip-compress, "dont compress" (doc/protocol/03-transfer.md
 * section 6.7).
 */
#ifndef DELTA_SKIP_LIST_H
#define DELTA_SKIP_LIST_H

/* A compiled list of suffixes. */
struct skip_list;

struct skip_list *skip_list_new(void);
void skip_list_add_option(struct skip_list *list, const char *suffixes);  /* "gz/jpg/mp[34]" */
void skip_list_add_daemon(struct skip_list *list, const char *patterns);  /* "*.gz *.tgz", "*" */
int skip_list_matches(const struct skip_list *list, const char *name);
void skip_list_free(struct skip_list *list);

#endif
