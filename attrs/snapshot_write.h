/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writing an image as an attr snapshot (attr-snapshot(5)). */
#ifndef ATTRS_SNAPSHOT_WRITE_H
#define ATTRS_SNAPSHOT_WRITE_H

#include "attrs/image.h"

/*
 * Write the snapshot over `path` (resolver R2; a symlink there is followed): a new file in the same directory, fsync, rename,
 * fsync of the directory; mode 0644 less the umask. `generation`: 0 takes the next one of the file that it replaces (1 if
 * there is none that can be read). ids: names of owners are looked up and stored; NULL: none are. *size: of the new file.
 *
 * 0, or -1 with errno and, in `why`, what went wrong, "cannot write it". The old file then still stands; only if nothing but
 * the fsync of the directory failed the new one does. EFBIG: more than 2^32 - 2 entries or side records, or 65535 devices.
 * ECANCELED: the process is ending, there is nothing to say. Temp files are those of fs/temp.h, and where the file system can
 * do without them there are none.
 */
int attr_snapshot_write(const struct image *image, const char *path, uint64_t generation, struct fs_ids *ids, uint64_t *size,
			struct strbuf *why);
/* The image will soon be written over `path`, and need about so many bytes: a thread begins to get room for them, which the
 * writing then has. Where that cannot be had nothing happens. */
void attr_snapshot_reserve(struct image *image, const char *path, uint64_t bytes);

#endif
