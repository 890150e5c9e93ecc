/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The attr snapshot of the destination (main thread). */
#ifndef RECEIVER_SNAPSHOT_H
#define RECEIVER_SNAPSHOT_H

struct image;
struct receiver;

/* Before anything is written: end the process if there can be no snapshot of such a destination; else begin to look. */
void receiver_snapshot_begin(struct receiver *receiver);
/* No destination: an image of the peer's whole list, as it comes in. NULL: it is not one of a directory, said so. */
struct image *receiver_snapshot_of_list(struct receiver *receiver);
/* After all: write the snapshot of the destination `given`, or, if that is NULL, the `image` of a list. The exit code: 0, or 23
 * and 24 as of a scan; ends the process with 11 if it cannot be written. */
int receiver_snapshot_write(struct receiver *receiver, const char *given, struct image *image);

#endif
