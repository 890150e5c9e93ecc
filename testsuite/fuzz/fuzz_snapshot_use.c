/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An attr snapshot of any bytes, in use: a daemon serves its list to a client, or a tool lists, verifies, compares,
 * refreshes or converts it. Input: a byte that says which, a byte of repairs (1: sums, 2: length in the header, 4: the root
 * that it is of), the file. FUZZ_RECORD: session_pair.h.
 */
#include "session_daemon.h"
#include "session_pair.h"
#include "testsuite/unit/snapshot_support.h"

enum { REPAIR_SUMS = 1, REPAIR_LENGTH = 2, HEAD = 2 };

static const char *const tools[] = {
	"--attr-list snapshot", "--attr-list -vv snapshot sub", "--attr-verify snapshot", "--attr-verify snapshot src/",
	"--attr-diff snapshot other",
	"--attr-diff -i other snapshot", "--attr-to-tree --attr-snapshot=snapshot attrs",
	"-r --attr-refresh=dirs --attr-snapshot=snapshot src/",
	"-r --attr-snapshot=snapshot src/", "-r --attr-refresh=dirs --attr-digests=md5,xxh128 --attr-snapshot=snapshot -H src/",
	"--refresh-attrs --config=conf snap", "--config-check --config=conf",
};
static const char *const requests[] = {
	"-logDtpre.iLsfxCIvu", "-logDtpHre.iLsfxCIvu", "-cre.iLsfxCIvu", "-dle.LsfxCIvu", "-logDtpRe.LsfxCIvu",
	"-logDtpcHre.iLsfxCIvu --checksum-choice=md5",
};
enum { TOOLS = sizeof tools / sizeof *tools, REQUESTS = sizeof requests / sizeof *requests };

static void prepare(const struct session_plan *plan)
{
	struct sample sample = sample_room(plan->extra_size > HEAD ? plan->extra_size - HEAD : 0);

	session_daemon_files(plan);
	session_text("other", "no snapshot");
	if (plan->extra_size <= HEAD)
		return;
	memcpy(sample.bytes, plan->extra + HEAD, plan->extra_size - HEAD);
	if (plan->extra[1] & REPAIR_LENGTH && sample.length >= sizeof(struct snapshot_header))
		sample_header(&sample)->file_size = sample.length;
	if (plan->extra[1] & REPAIR_SUMS)
		sample_repair(&sample);
	session_write("snapshot", sample.bytes, sample.length);
	free(sample.bytes);
}

static int tool_words(const char *tool, const char **words)
{
	static char line[256];
	char *save = NULL;
	int count = 0;

	snprintf(line, sizeof line, "%s", tool);
	for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
		words[count++] = word;
	return count;
}

static int words(const struct session_plan *plan, const char **words)
{
	if (plan->is_server)
		return session_daemon_words(plan, words);
	return tool_words(tools[plan->choice % TOOLS], words);
}

/* What a client says that asks for the list, and for the first files' contents. */
static size_t make_stream(uint8_t *stream, size_t size, int choice)
{
	static const uint8_t rest[] = { 4, 5, 'm', 'd', '5', ' ', 'x', 0, 0, 0, 0, 0, 1, 0, 0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0 };
	int length = snprintf((char *)stream, size, "%c@RSYNCD: 31.0 md5 md4\nsnap\n--server\n--sender\n%s\n.\nsnap/%s\n\n", 1,
			      requests[choice % REQUESTS], choice / REQUESTS % 2 ? "sub" : "");

	for (int i = 1, lines = 0; i < length; i++)
		if (stream[i] == '\n' && ++lines > 2)
			stream[i] = 0;
		else if (stream[i] == ' ' && lines > 2)
			stream[i] = 0;
	stream[0] = 0;
	memcpy(stream + length, rest, sizeof rest);
	return (size_t)length + sizeof rest;
}

static int make_words(const struct session_plan *plan, const char **words)
{
	return tool_words(plan->choice ? "-rH --attr-snapshot=snapshot --attr-digests=md5,xxh128 src/"
				       : "-r --attr-snapshot=snapshot src/", words);
}

static void keep_snapshot(const struct session_plan *plan, const char *directory)
{
	char name[32];

	for (int choice = 0; choice < 16 + TOOLS; choice++) {
		const uint8_t head[HEAD] = { (uint8_t)(choice < 16 ? choice : 0x80 + choice - 16), 3 };

		snprintf(name, sizeof name, "made%d-%03d", plan->choice, choice);
		session_save_file("snapshot_use", name, head, HEAD, directory, "snapshot");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session_plan record = { .prepare = session_trees, .words = make_words, .keep = keep_snapshot };
	uint8_t stream[400];

	for (record.choice = 0; getenv("FUZZ_RECORD") && record.choice < 2; record.choice++)
		session_run(&record, NULL, 0);
	if (getenv("FUZZ_RECORD"))
		session_end_recording();
	if (size < HEAD)
		return 0;
	struct session_plan plan = { .prepare = prepare, .words = words, .is_server = !(data[0] & 0x80),
		.choice = data[0] & 0x7f,
				     .extra = data, .extra_size = size };

	session_run(&plan, stream, plan.is_server ? make_stream(stream, sizeof stream, plan.choice >> 1) : 0);
	return 0;
}
