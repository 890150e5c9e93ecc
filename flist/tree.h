/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The directories of a file list as nodes. Included by flist.h and flist/private.h. */
#ifndef FLIST_TREE_H
#define FLIST_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct flist;
struct flist_part;
struct flist_parts;

/* Does the walk go into directories below the arguments' own? */
bool flist_recursive(const struct flist *list);
void flist_parts_add(struct flist *list, struct flist_parts *parts, const struct flist_part *part);
void flist_parts_free(struct flist *list, struct flist_parts *parts);
/* Count the memory of a node's entries anew, for the session's budget. Not of lists that arrive. */
void flist_count_entries(struct flist *list, int32_t node);
/* Number the sorted entries of a filled node and make its child nodes, with the parts in `deeper`. */
void flist_enter_node(struct flist *list, int32_t node, struct flist_parts *deeper);
/* The same of a view of a snapshot's directory. */
void flist_enter_view(struct flist *list, int32_t node);
/* The node behind list->walk in the order of the walk, -1 at the end. */
int32_t flist_next_node(const struct flist *list);
/* Directory nodes so far, and one of them. */
uint32_t flist_dir_count(const struct flist *list);
struct flist_dir *flist_dir(struct flist *list, int32_t node);

#endif
