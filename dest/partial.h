/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Beside the files: directories for temp files (--temp-dir), for what has come of interrupted files (--partial-dir), and for
 * what waits there for the end (--delay-updates). Any thread, once local_places_begin is through (doc/protocol/03-transfer.md
 * sections 7.4 to 7.7).
 */
#ifndef DEST_PARTIAL_H
#define DEST_PARTIAL_H

#include "dest/private.h"

/* After the destination has been chosen: look at those of the operator's directories that are not one for each directory of
 * the destination. Ends the process where they cannot be used. */
void local_places_begin(struct local *local);
void local_places_free(struct local *local);

/* Do new files go through other directories than their own? */
bool local_has_places(const struct local *local);
/* Where temp files of this directory are made: its own descriptor, or that of --temp-dir. Not to be closed. */
int local_temp_fd(const struct local *local, const struct local_dir *dir);

/* --- the directory of partial files that belongs to a directory; all of this does nothing without one --- */

/* Does a module hide the place that a file of this directory has there? Then it has none: nothing is kept or found. */
bool local_partial_is_hidden(struct local *local, const struct local_dir *dir, const char *name);
/* The directory for a file of this name. To be closed by the caller; -1 with errno, EACCES if its place is hidden. */
int local_partial_dir(struct local *local, struct local_dir *dir, const char *name, bool make);
/* What there is of a file, a regular one, opened with these flags; -1: nothing. */
int local_partial_open(struct local *local, struct local_dir *dir, const char *name, int flags);
/* It is of no use any more. The directory goes with the last of them. */
void local_partial_drop(struct local *local, struct local_dir *dir, const char *name);
/* One has got another name. */
void local_partial_leave(struct local *local, int dir_fd);

/* --- --delay-updates --- */

/* A complete file lies among the partial ones, until local_delayed_install (main thread), which calls `check` before each. */
void local_delay(const struct file_job *job);
void local_delayed_install(struct local *local, void (*check)(struct local *local));

#endif
