/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A server that receives, from a client that says whatever it likes: session_pair.h. */
#include "session_pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (getenv("FUZZ_RECORD"))
		pair_record(false, "client_push", "server_receive");
	pair_run(pair_receiving_words, true, data, size);
	return 0;
}
