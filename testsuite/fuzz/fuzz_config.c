/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any configuration file: --config-check looks at all of it, or a daemon has it while a client asks for its modules. Input: a
 * byte whose lowest bits say which, the text.
 */
#include "session_daemon.h"
#include "session_pair.h"

static const char *const requests[] = { "#list", "public", "secret", "a" };

static void prepare(const struct session_plan *plan)
{
	session_daemon_files(plan);
	if (plan->extra)
		session_write("conf", plan->extra, plan->extra_size);
}

static int words(const struct session_plan *plan, const char **words)
{
	static const char *const checks[][3] = {
		{ "--config-check", "-v", NULL }, { "--config-check", NULL, NULL },
		{ "--refresh-attrs", "--no-wait", NULL }, { "--status", NULL, NULL }, { "--daemon", "--no-detach",
			"--dparam=port=0" },
	};
	int count = 0;

	if (plan->choice & 1)
		return session_daemon_words(plan, words);
	words[count++] = "--config=conf";
	for (int i = 0; i < 3 && checks[plan->choice / 2 % 5][i]; i++)
		words[count++] = checks[plan->choice / 2 % 5][i];
	if (plan->choice & 0x40)
		words[count++] = "public";
	return count;
}

static void keep_configuration(const struct session_plan *plan, const char *directory)
{
	const uint8_t head = (uint8_t)plan->choice;
	char name[32];

	snprintf(name, sizeof name, "whole%03d", plan->choice);
	session_save_file("config", name, &head, 1, directory, "conf");
}

static void record(void)
{
	struct session_plan plan = { .prepare = prepare, .words = words, .keep = keep_configuration };

	for (plan.choice = 0; plan.choice < 10; plan.choice++)
		session_run(&plan, NULL, 0);
	session_end_recording();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t stream[200];

	if (getenv("FUZZ_RECORD"))
		record();
	if (size < 1)
		return 0;
	struct session_plan plan = { .prepare = prepare, .words = words, .is_server = data[0] & 1, .choice = data[0] & 1
		? data[0] >> 7 : data[0], .extra = data + 1, .extra_size = size - 1 };
	int length = snprintf((char *)stream, sizeof stream,
		"%c@RSYNCD: 31.0 sha512 sha256 sha1 md5 md4\n%s\n--server\n--sender\n"
			      "-logDtpre.iLsfxCIvu\n.\n%s/\n\n", 0, requests[data[0] >> 1 & 3], requests[data[0] >> 1 & 3]);

	/* Words of protocol 30 and later end in NUL. */
	for (int i = 1, lines = 0; i < length; i++)
		if (stream[i] == '\n' && ++lines > 2)
			stream[i] = 0;
	stream[0] = 0;
	session_run(&plan, stream, (size_t)length);
	return 0;
}
