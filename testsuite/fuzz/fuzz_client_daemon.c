/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A client of a daemon that says whatever it likes, from the greeting on. Input: command line, protocol,
 * stream; seeds: fuzz_daemon. */
#include "session_daemon.h"
#include "session_pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session_plan plan = { .prepare = session_daemon_files, .words = session_daemon_client_words };

	if (size < PAIR_HEAD)
		return 0;
	plan.choice = data[0] % session_daemon_lines();
	plan.protocol = pair_protocol(data[1]);
	session_run(&plan, data + PAIR_HEAD, size - PAIR_HEAD);
	return 0;
}
