/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any command line: local runs, tools, servers whose client says nothing. Input: words that end in NUL or LF. FUZZ_RECORD
 * writes one seed for each of the lines of the other harnesses, and for those below.
 */
#include <ctype.h>
#include <string.h>

#include "session_daemon.h"
#include "session_pair.h"

static const char *const seeds[] = {
	"--help", "-V", "-VV", "--daemon --help", "-r --attr-snapshot=new src/",
	"-r --attr-snapshot=new --attr-digests=md5,xxh128 -H src/",
	"--attr-list snapshot", "--attr-list snapshot sub", "--attr-list -vv snapshot", "--attr-verify snapshot",
	"--attr-verify snapshot src/",
	"--attr-diff snapshot snapshot", "--attr-to-tree --attr-snapshot=snapshot dst",
	"--attr-from-tree --attr-snapshot=new attrs src/",
	"-r --attr-refresh=dirs --attr-snapshot=snapshot src/", "-a --attr-snapshot=new src/ dst",
	"-a --only-send-attrs src/ dst",
	"--server --sender -vlogDtpre.iLsfxCIvu . src/", "--server -vlogDtpre.iLsfxCIvu . dst",
	"--server --daemon --config=conf .",
	"src/", "-r src", "--list-only -r src/", "-a src/plain src/sub src/link dst", "-a src/plain dst/plain",
	"-a --write-batch=b src/ dst",
	"--info=help", "--debug=help", "--config-check --config=conf", "--status --config=conf",
	"--refresh-attrs --config=conf snap",
	"-a --read-batch=rules dst", "-aR --relative src/./sub/deep dst", "--version", "-n --daemon", "-a peer:src peer:dst",
	"--protocol=29 -a peer:src .",
	"-a --copy-as=nobody src/ dst", "-a --link-dest=alt --compare-dest=x src/ dst", "-rf._rules src/ dst",
	"-e 'a b' peer:x",
	"--server --sender -e31.3iL --files-from=names . src/", "--server --sender --confine-root=src -r . /", "--config-check",
};

static void prepare(const struct session_plan *plan)
{
	session_daemon_files(plan);
}

/* A program that is asked to stay has nothing to stay for; other processes' terminals and logs are not there. */
static int words(const struct session_plan *plan, const char **words)
{
	static char text[1 << 13];
	size_t size = plan->extra_size < sizeof text - 1 ? plan->extra_size : sizeof text - 1;
	int count = 0;

	memcpy(text, plan->extra, size);
	for (size_t at = 0; at < size && count < SESSION_WORDS_MAX; at += strlen(text + at) + 1) {
		text[at + strcspn(text + at, "\n")] = 0;
		words[count++] = text + at;
	}
	return count;
}

static void save(const char *kind, int number, const char *const *found, int count)
{
	struct session_recording recording = { malloc(4096), 0 };
	char name[32];

	for (int i = 0; i < count; i++)
		recording.size += (size_t)snprintf((char *)recording.bytes + recording.size, 4096 - recording.size, "%s\n",
			found[i]);
	snprintf(name, sizeof name, "%s%03d", kind, number);
	session_save("command", name, NULL, 0, &recording);
	free(recording.bytes);
}

static void record(void)
{
	const char *found[SESSION_WORDS_MAX];

	for (int i = 0; i < (int)(sizeof seeds / sizeof *seeds); i++) {
		char *line = strdup(seeds[i]), *rest = NULL;
		int count = 0;

		for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
			found[count++] = word;
		save("seed", i, found, count);
		free(line);
	}
	for (struct session_plan plan = { .choice = 0 }; plan.choice < session_lines(); plan.choice++) {
		int count = session_client_words(&plan, found);

		found[count++] = "src/";
		found[count++] = "dst";
		save("local", plan.choice, found, count);
	}
	session_end_recording();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct session_plan plan = { .prepare = prepare, .words = words, .is_server = true, .extra = data,
		.extra_size = size };

	if (getenv("FUZZ_RECORD"))
		record();
	session_run(&plan, NULL, 0);
	return 0;
}
