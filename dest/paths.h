/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Directories of the destination by their paths in the transfer, their names and their default ACLs (any thread). */
#ifndef DEST_PATHS_H
#define DEST_PATHS_H

#include "dest/private.h"

/* May a symlink be one of our directories? */
bool dest_enters_links(const struct receiver *receiver);
/* Descriptor of a directory by its transfer path, to be closed by the caller. `to_delete`: not behind a symlink that only
 * --ignore-existing has left there, where nothing is surplus. */
int dest_open_dir(struct receiver *receiver, const char *path, bool to_delete);
/* All names of a directory, or those that `listed` has not, sorted. -1 with errno. */
int dest_read_names(int dir_fd, const struct entries *listed, struct entries *names);
void dest_dir_hold(struct dest_dir *dir);
void dest_dir_release(struct dest_dir *dir);
/* The permissions of a directory that the run makes in that one although no entry asks for it, and of those in it: what the
 * default ACL of the one above grants, or else what the umask leaves. */
mode_t dest_unlisted_mode(const struct receiver *receiver, int parent_fd);
/* The umask for new objects in the directory: the process's, or its default ACL's. */
mode_t dest_dir_umask(struct receiver *receiver, struct dest_dir *dir);
bool dest_dir_has_default_acl(struct dest_dir *dir);

#endif
