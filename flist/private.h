/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the file list share: flist/args.c (arguments), flist/scan.c, flist/paths.c, lists that arrive. */
#ifndef FLIST_PRIVATE_H
#define FLIST_PRIVATE_H

#include "flist/tree.h"

/* --- lists that arrive (flist/receive.c): what flist.h says of them --- */

int32_t flist_received_next(struct flist *list);
bool flist_received_is_complete(const struct flist *list);
const struct flist_totals *flist_received_totals(const struct flist *list);
bool flist_received_locate(struct flist *list, int32_t ndx, struct flist_pos *pos);
/* The entries of a node that is given up, to be freed; NULL if there are none. */
struct entries *flist_received_take(struct flist *list, int32_t node);
void flist_received_free(struct flist *list); /* nothing if the list was scanned */

#endif
