/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From source arguments and --files-from names to the first entries of a list (doc/protocol/02-file-list.md section 7). */
#ifndef FLIST_ARGS_H
#define FLIST_ARGS_H

#include "flist.h"

struct flist_part;
struct flist_parts;

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
