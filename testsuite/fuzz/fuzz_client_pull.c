/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A client that pulls, from a server that says whatever it likes: session_pair.h. */
#include "session_pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (getenv("FUZZ_RECORD"))
		pair_record(true, "client_pull", "server_send");
	pair_run(pair_pull_words, false, data, size);
	return 0;
}
