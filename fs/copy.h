/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Copying the content of one open file to another: reflink, copy_file_range, or read and write, with holes if asked; and
 * writing an open file with holes where there are only zeros (doc/protocol/03-transfer.md section 7.7).
 */
#ifndef FS_COPY_H
#define FS_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/block_count.h"

/*
 * A file that is written from one place to its end, with holes for zeros at the start, at the end and in runs of 1 KiB or more.
 * The file is too short in between: fs_sparse_end sets its length.
 */
struct fs_sparse {
	int fd;          /* a regular file */
	bool has_blocks; /* it may have blocks where nothing has been written yet: of old content, or reserved ones */
	bool keeps_tail; /* those behind the last data stay reserved */
	struct block_count *touched; /* counts the blocks that get data, not those of holes; NULL: nobody asks */
	uint64_t data_end;           /* in the beginning where writing begins; nothing but zeros has come since */
};

/* All bytes or -1 with errno. Each call goes on where the last one ended. is_there: they are in the file at that place already,
 * only zeros matter. */
int fs_sparse_write(struct fs_sparse *sparse, const void *bytes, size_t length, uint64_t offset, bool is_there);
/* All `size` bytes have come. 0 or -1 with errno. */
int fs_sparse_end(struct fs_sparse *sparse, uint64_t size);

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
