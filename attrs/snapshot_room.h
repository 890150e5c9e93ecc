/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of a snapshot that will be written soon: a thread gets it room. Only image.c and the writer include this. */
#ifndef ATTRS_SNAPSHOT_ROOM_H
#define ATTRS_SNAPSHOT_ROOM_H

#include <stdint.h>

struct snapshot_room;

/* An unnamed file beside `path`, and about so many bytes for it. NULL: that cannot be had. */
struct snapshot_room *snapshot_room_new(const char *path, uint64_t bytes);
/* Wait for the thread, and take the open file over, of whatever length; -1: it has been taken before. NULL is allowed. */
int snapshot_room_take(struct snapshot_room *room);
void snapshot_room_free(struct snapshot_room *room); /* NULL is allowed */

#endif
