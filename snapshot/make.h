/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The run that makes an attr snapshot of a directory, or refreshes one (--attr-snapshot=FILE SRC/); and the last part
 * of a run that makes one of its destination, or of the list that a peer has sent.
 */
#ifndef SNAPSHOT_MAKE_H
#define SNAPSHOT_MAKE_H

#include <time.h>

struct image;
struct image_known;
struct options;

/*
 * The operand is a directory; with --attr-from-tree an attr tree and, perhaps, the real one behind it. The exit code: 23 and 24
 * as of a transfer (the snapshot has been written all the same), 11 if it could not be written.
 */
int snapshot_make_main(struct options *options);

/*
 * The directory `tree` as that run would see it, with the same rules and threads; `digests` (enum attr_digest) are computed.
 * Ends the process if it cannot be looked at. image_free() it.
 */
struct image *snapshot_scan_tree(const struct options *options, const char *tree, unsigned digests);

/*
 * After a run: of the directory `tree`, with all that is in it, whatever the run's filters were. known: what need not be
 * scanned (attrs/image_scan.h); NULL: nothing is known. made: when the oldest part of it was seen, by the calendar. The
 * exit code as above; the file's place has been checked by the caller.
 */
int snapshot_make_after_run(const struct options *options, const char *tree, const struct image_known *known,
			    const struct timespec *made);

/*
 * Of a list that came from a peer: `image` (taken over) has its entries. source: the operand as it was given. Nothing on this
 * machine is bound to the snapshot. The exit code as above.
 */
int snapshot_make_of_list(const struct options *options, const char *source, struct image *image, const struct timespec *made);

#endif
