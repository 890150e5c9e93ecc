/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --attr-list */
#ifndef SNAPSHOT_LIST_H
#define SNAPSHOT_LIST_H

struct options;

int snapshot_list_main(struct options *options);

#endif
