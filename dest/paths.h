/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Directories of the destination by their paths in the transfer, their names and their default ACLs (any thread). */
#ifndef DEST_PATHS_H
#define DEST_PATHS_H

#include "dest/private.h"

/* May a symlink be one of our directories? */
bool local_enters_links(const struct local *local);
/* Descriptor of a directory by its transfer path, to be closed by the caller. `to_delete`: not behind a symlink that only
 * --ignore-existing has left there, where nothing is surplus. */
int local_open_dir(struct local *local, const char *path, bool to_delete);
/* All names of a directory, or those that `listed` has not, sorted. -1 with errno. */
int local_read_names(int dir_fd, const struct entries *listed, struct entries *names);
void local_dir_hold(struct local_dir *dir);
void local_dir_release(struct local_dir *dir);
/* The permissions of a directory that the run makes in that one although no entry asks for it, and of those in it: what the
 * default ACL of the one above grants, or else what the umask leaves. */
mode_t local_unlisted_mode(const struct local *local, int parent_fd);
/* The umask for new objects in the directory: the process's, or its default ACL's. */
mode_t local_dir_umask(struct local *local, struct local_dir *dir);
bool local_dir_has_default_acl(struct local_dir *dir);

#endif
