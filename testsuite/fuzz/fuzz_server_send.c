/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A server that sends, to a client that says whatever it likes: session_pair.h. */
#include "session_pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (getenv("FUZZ_RECORD"))
		pair_record(true, "client_pull", "server_send");
	pair_run(pair_sending_words, true, data, size);
	return 0;
}
