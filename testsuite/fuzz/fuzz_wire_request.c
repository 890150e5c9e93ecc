/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzzes the requests that a sender reads: index, attributes, checksum header, block sums, delete statistics. */
#include "catch_die.h"

#include <string.h>

#include "testsuite/unit/wire_memory.h"
#include "wire/request.h"
#include "wire/setup.h"

struct run { struct session session; struct item_attrs item; struct block_sums sums; int digest_length; };

static void check_name(const struct item_attrs *item)
{
	const char *at = item->xname;
	size_t length;

	if (strlen(at) != item->xname_length || item->xname_length > 4095)
		abort();
	if (!(item->flags & ITEM_XNAME_FOLLOWS) || item->basis < BASIS_FUZZY)
		return;
	if (*at == '/' || !*at)
		abort();
	for (; *at; at += length + (at[length] == '/')) {
		length = strcspn(at, "/");
		if (length == 2 && at[0] == '.' && at[1] == '.')
			abort();
	}
}

static void read_requests(void *context)
{
	struct run *run = context;
	int32_t ndx;

	for (;;) {
		ndx = wire_read_ndx(run->session.wire);
		if (ndx == NDX_DONE)
			continue;
		if (ndx == NDX_DEL_STATS) {
			delete_stats_read(&run->session);
			delete_stats_write(&run->session);
			continue;
		}
		request_read_attrs(&run->session, &run->item);
		check_name(&run->item);
		request_write_attrs(&run->session, ndx, &run->item);
		if (!(run->item.flags & ITEM_TRANSFER))
			continue;
		sum_head_read(&run->session, &run->sums.head, run->digest_length);
		sum_head_write(&run->session, &run->sums.head);
		block_sums_read(&run->session, &run->sums);
		block_sums_free(&run->sums);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int digests[] = { 8, 16, 20, 1 };
	struct run run;

	if (!size)
		return 0;
	memset(&run, 0, sizeof run);
	run.session.max_alloc = 1 << 20;
	run.digest_length = digests[data[0] >> 6];
	run.session.wire = wire_new_memory(data + 1, size - 1);
	session_set_protocol(&run.session, 27 + data[0] % 6);
	wire_set_mux_in(run.session.wire, data[0] & 0x20);
	catch_die(read_requests, &run);
	block_sums_free(&run.sums);
	wire_free(run.session.wire);
	return 0;
}
