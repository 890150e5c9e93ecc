/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Beside the files: directories for temp files (--temp-dir), for what has come of interrupted files (--partial-dir), and for
 * what waits there for the end (--delay-updates). Any thread, once dest_places_begin is through (doc/protocol/03-transfer.md
 * sections 7.4 to 7.7).
 */
#ifndef DEST_PARTIAL_H
#define DEST_PARTIAL_H

#include <stdbool.h>

struct dest_dir;
struct file_job;
struct dest;

/* After the destination has been chosen: look at those of the operator's directories that are not one for each directory of
 * the destination. Ends the process where they cannot be used. */
void dest_places_begin(struct dest *dest);
void dest_places_free(struct dest *dest);

/* --- the directory of partial files that belongs to a directory; all of this does nothing without one --- */

/* Does a module hide the place that a file of this directory has there? Then it has none: nothing is kept or found. */
bool dest_partial_is_hidden(struct dest *dest, const struct dest_dir *dir, const char *name);
/* The directory for a file of this name. To be closed by the caller; -1 with errno, EACCES if its place is hidden. */
int dest_partial_dir(struct dest *dest, struct dest_dir *dir, const char *name, bool make);
/* What there is of a file, a regular one, opened with these flags; -1: nothing. */
int dest_partial_open(struct dest *dest, struct dest_dir *dir, const char *name, int flags);
/* It is of no use any more. The directory goes with the last of them. */
void dest_partial_drop(struct dest *dest, struct dest_dir *dir, const char *name);
/* One has got another name. */
void dest_partial_leave(struct dest *dest, int dir_fd);

/* --- --delay-updates --- */

/* A complete file lies among the partial ones, until dest_delayed_install (main thread), which calls `check` before each. */
void dest_delay(const struct file_job *job);
void dest_delayed_install(struct dest *dest, void (*check)(void *context), void *context);

#endif
