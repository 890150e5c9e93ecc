/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An attr snapshot of any bytes: refused with a message, or all of it is as attrs/snapshot.h promises. The first byte says
 * whether the sums (1) and the length in the header (2) are set right before.
 */
#include "catch_die.h"

#include <errno.h>

#include "testsuite/unit/snapshot_support.h"
#include "testsuite/unit/snapshot_walk.h"

enum { REPAIR_SUMS = 1, REPAIR_LENGTH = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf why = STRBUF_INIT;

	if (!size)
		return 0;
	struct sample sample = sample_room(size - 1);

	memcpy(sample.bytes, data + 1, size - 1);
	if (data[0] & REPAIR_LENGTH && sample.length >= sizeof(struct snapshot_header))
		sample_header(&sample)->file_size = sample.length;
	if (data[0] & REPAIR_SUMS)
		sample_repair(&sample);
	struct attr_snapshot *snapshot = snapshot_from_memory(sample.bytes, sample.length, &why);

	snapshot_require(!snapshot == (why.length > 0) && (snapshot || errno == EINVAL));
	if (snapshot)
		snapshot_walk_all(snapshot);
	attr_snapshot_close(snapshot);
	strbuf_free(&why);
	free(sample.bytes);
	return 0;
}
