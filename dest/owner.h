/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --usermap, --groupmap and --chown of a local run (main thread). */
#ifndef DEST_OWNER_H
#define DEST_OWNER_H

struct decide_rules;
struct options;

/* NULL if the ids of a local run stay as they are; else `rules` maps them, until it is freed. Ends the process with EXIT_SYNTAX
 * on maps that are none. */
struct owner_maps;
struct owner_maps *dest_owner_maps_new(const struct options *options, struct decide_rules *rules);
void dest_owner_maps_free(struct owner_maps *maps);

#endif
