/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A session of a daemon, from a client's first byte on. Input: settings (1: no sandbox), the stream. FUZZ_RECORD:
 * session_pair.h. */
#include "session_daemon.h"
#include "session_pair.h"

static void record_one(int choice, uint8_t protocol)
{
	const struct session_plan plans[2] = {
		{ .prepare = session_daemon_files, .words = session_daemon_client_words, .choice = choice,
		  .protocol = pair_protocol(protocol) },
		{ .prepare = session_daemon_files, .words = session_daemon_words, .is_server = true, .choice = 1 },
	};
	const uint8_t client_head[PAIR_HEAD] = { (uint8_t)choice, protocol }, daemon_head = (uint8_t)(choice % 2);
	struct session_recording heard[2];
	char name[32];

	snprintf(name, sizeof name, "line%03d-%d", choice, protocol);
	session_record(plans, heard, PAIR_STREAM_MAX);
	session_save("client_daemon", name, client_head, sizeof client_head, &heard[0]);
	session_save("daemon", name, &daemon_head, 1, &heard[1]);
	free(heard[0].bytes);
	free(heard[1].bytes);
}

static void record(void)
{
	for (int choice = 0; choice < session_daemon_lines(); choice++) {
		record_one(choice, 0);
		record_one(choice, (uint8_t)(choice % (PAIR_PROTOCOLS - 1) + 1));
	}
	session_end_recording();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session_plan plan = { .prepare = session_daemon_files, .words = session_daemon_words, .is_server = true };

	if (getenv("FUZZ_RECORD"))
		record();
	if (size < 1)
		return 0;
	plan.choice = data[0];
	session_run(&plan, data + 1, size - 1);
	return 0;
}
