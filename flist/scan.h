/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From directories, source arguments and --files-from names to the entries of a list. */
#ifndef FLIST_SCAN_H
#define FLIST_SCAN_H

#include "flist.h"

/* Load a node: what its directory has, and what arguments name below it. */
void flist_scan_node(struct flist *list, int32_t node);

/* A filter_setup.open_file for rules that a peer names or that stand in the tree: context is the address of a struct flist *,
 * which may be set after the rules have been made (doc/protocol/04-filters.md section 4.11.4). */
int flist_open_rule_file(void *flist_address, enum filter_place place, const char *path);

/*
 * Add one source argument (doc/protocol/02-file-list.md section 7), or one name of a --files-from list (from_file). Errors are
 * logged and noted for the exit code as stock does. Arguments of a daemon are module-relative. Only before
 * flist_finish_arguments.
 */
void flist_add_argument(struct flist *list, const char *argument, bool from_file);
/* Sorts and numbers node 0. */
void flist_finish_arguments(struct flist *list);
#endif
