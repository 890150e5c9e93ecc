/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Per-directory merge files (doc/protocol/04-filters.md section 4.10): what is in force in which directory. */
#ifndef FILTER_MERGE_H
#define FILTER_MERGE_H

#include "filter/filter.h"

/* filter_set_dir for a path from list->base on. */
void enter_directory(struct filter_list *list, const char *dir);

#endif
