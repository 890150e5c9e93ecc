/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of paths to look at again (--attr-refresh=LIST). */
#ifndef SNAPSHOT_MAKE_PATHS_H
#define SNAPSHOT_MAKE_PATHS_H

#include "lib/vec.h"
#include "options.h"

struct make_paths {
	VEC(char *) paths; /* below the root, without slashes at the ends; "" is the root itself */
};
/* Read --attr-refresh=LIST; exits like --files-from if that cannot be done. */
void make_paths_read(const struct options *options, struct make_paths *paths);
void make_paths_free(struct make_paths *paths);

#endif
