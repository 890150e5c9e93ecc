/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What --debug shows of a list that is loaded node by node, in the order of the walk: flist, and filter of the sending half. */
#ifndef FLIST_DEBUG_H
#define FLIST_DEBUG_H

#include "flist.h"

/* Everything that the half that reads directories, or the half that gets the list from a peer, says of this node. Nothing without
 * --debug. */
void flist_debug_node(struct flist *list, int32_t node);

#endif
