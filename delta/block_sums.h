/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The weak rolling checksum (doc/protocol/03-transfer.md section 4.1), and the generator's half of the delta: block length,
 * header and sums of a basis file (sections 3 and 4).
 */
#ifndef DELTA_BLOCK_SUMS_H
#define DELTA_BLOCK_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "delta/digest.h"
#include "wire/request.h"

/* s1 | s2 << 16 over signed bytes; vectorised where the compiler gives it, and further where the processor has AVX2. */
uint32_t rolling_compute(const void *data, size_t length);
/* The same as any machine does it. */
uint32_t rolling_compute_portably(const void *data, size_t length);

/*
 * The header for a basis of `size` bytes (doc/protocol/03-transfer.md section 3.3). block_size: -B, 0 for the usual choice.
 * longest: the session's block_length_max. strong: length of its transfer digest. full: a redo, or anything else that wants
 * whole digests; else as short as is safe. All zero, as for no basis, for an empty one and for more than 2^31 - 1 blocks.
 */
void sum_head_choose(struct sum_head *head, uint64_t size, uint32_t block_size, int32_t longest, int strong, bool full);

/* The size of the basis that a header describes. */
uint64_t sum_head_size(const struct sum_head *head);

/*
 * Write the sums of the `head->count` blocks read from fd (from offset 0). What cannot be read counts as zero bytes: the
 * transfer then fails its digest and is done again without a basis. Calls wire_keep_alive. Returns errno of the first failed
 * read (ENODATA: the file has become shorter), else 0.
 */
int block_sums_write(struct session *session, int fd, const struct sum_head *head);

#endif
