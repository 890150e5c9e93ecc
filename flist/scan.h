/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From directories, source arguments and --files-from names to the entries of a list. */
#ifndef FLIST_SCAN_H
#define FLIST_SCAN_H

#include "flist.h"

struct flist_part;
struct flist_parts;

/* Add what the node's directory has below a base to the node's entries. */
void flist_scan_part(struct flist *list, int32_t node, uint16_t base);
/* The node's directory as it stands in the module's snapshot, if nothing about its entries may have to be changed. */
bool flist_view_directory(struct flist *list, int32_t node);
/* Sort the entries of a freshly filled node, number them, make its child nodes with the parts in `deeper`. */
void flist_finish_node(struct flist *list, int32_t node, struct flist_parts *deeper, bool may_repeat);

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
/* Add what `path` (components below node, may be one) names to the node's entries; what lies deeper becomes a part of the
 * child, in `deeper`. */
void flist_add_named(struct flist *list, int32_t node, const struct flist_part *part, struct flist_parts *deeper);

#endif
