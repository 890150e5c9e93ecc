/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading a directory into its node, under the rules that hold there. */
#ifndef FLIST_SCAN_H
#define FLIST_SCAN_H

#include "flist.h"

struct flist_parts;

/* Add what the node's directory has below a base to the node's entries. */
void flist_scan_part(struct flist *list, int32_t node, uint16_t base);
/* The node's directory as it stands in the module's snapshot, if nothing about its entries may have to be changed. */
bool flist_view_directory(struct flist *list, int32_t node);
/* Sort the entries of a freshly filled node, number them, make its child nodes with the parts in `deeper`. */
void flist_finish_node(struct flist *list, int32_t node, struct flist_parts *deeper, bool may_repeat);
/* Tell the user's rules which base directory the names that follow belong to. The base has been opened. */
void flist_set_rule_base(struct flist *list, uint16_t base);

/* A filter_setup.open_file for rules that a peer names or that stand in the tree: context is the address of a struct flist *,
 * which may be set after the rules have been made (doc/protocol/04-filters.md section 4.11.4). */
int flist_open_rule_file(void *flist_address, enum filter_place place, const char *path);

#endif
