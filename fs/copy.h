/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copying the content of one open file to another: reflink, copy_file_range, or read and write, with holes if asked. */
#ifndef FS_COPY_H
#define FS_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/block_count.h"

struct fs_copy_options {
	bool sparse;      /* -S: turn runs of zeros into holes */
	bool preallocate; /* --preallocate: fallocate the announced size first */
	bool in_place;    /* the target has old content: cut at the end */
	struct block_count *touched; /* counts what is written; NULL: nobody asks */
	/* called now and then with the bytes copied so far; NULL for none */
	void (*progress)(void *context, uint64_t done);
	void *context;
};

/* Copy up to the end of `from` (announced as `size` bytes) to `to`. Returns 0 and *copied, or -1 with errno; *write_error
 * says whether reading or writing failed. */
int fs_copy_content(int from, int to, uint64_t size, const struct fs_copy_options *options, uint64_t *copied,
		    bool *write_error);

/* Let the new and empty file `to` share all blocks of `from`, as copy on write. false: the file systems cannot, or not here. */
bool fs_clone(int to, int from);

#endif
