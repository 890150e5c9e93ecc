/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --attr-from-tree and --attr-to-tree */
#ifndef SNAPSHOT_CONVERT_H
#define SNAPSHOT_CONVERT_H

struct options;

int snapshot_from_tree_main(struct options *options);
int snapshot_to_tree_main(struct options *options);

#endif
