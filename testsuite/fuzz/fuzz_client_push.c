/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A client that pushes, to a server that says whatever it likes: session_pair.h. */
#include "session_pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (getenv("FUZZ_RECORD"))
		pair_record(false, "client_push", "server_receive");
	pair_run(pair_push_words, false, data, size);
	return 0;
}
