/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A local run whose rule files, merge files and lists of names are the input: the command line, then texts that end in NUL, one
 * for each of the files below.
 */
#include "session_pair.h"

static const char *const files[] = { "rules", "src/.rsync-filter", "names", "src/sub/.more", "src/.cvsignore",
	"dst/.rsync-filter" };
static const char *const options[] = {
	"-a -f._rules", "-aFF --delete", "-aC --delete", "-a --files-from=names", "-aR --files-from=names --from0",
	"-rn --exclude-from=rules -vv",
	"-a --include-from=rules --delete-excluded", "-aF -f.rules --prune-empty-dirs",
	"-r --files-from=names --delete-missing-args --mkpath",
	"-a -f:_.more -f-_*.o --delete --debug=filter3", "-anic -0 --exclude-from=rules",
};
enum { FILES = sizeof files / sizeof *files, OPTIONS = sizeof options / sizeof *options };

static void prepare(const struct session_plan *plan)
{
	const uint8_t *at = plan->extra, *end = at + plan->extra_size;

	session_trees(plan);
	for (size_t i = 0; i < FILES && at < end; i++) {
		const uint8_t *nul = memchr(at, 0, (size_t)(end - at));
		size_t length = (size_t)((nul ? nul : end) - at);

		session_write(files[i], at, length);
		at += length + 1;
	}
}

static int words(const struct session_plan *plan, const char **words)
{
	static char line[256];
	char *save = NULL;
	int count = 0;

	snprintf(line, sizeof line, "%s", options[plan->choice % OPTIONS]);
	for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		/* "_" stands for the blank in a rule. */
		for (char *c = word; *c; c++)
			*c = *c == '_' ? ' ' : *c;
		words[count++] = word;
	}
	words[count++] = "src/";
	words[count++] = "dst";
	return count;
}

static void record(void)
{
	static const char text[] =
		"# rules\n- *.o\n+ /sub/***\nP,s /extra\n"
		"dir-merge,en- .more\nmerge rules\n!\n\0- *.skip\nH! */keep*\n: .more\n\0"
		"plain\nsub/deep\n./sub/./medium\nmissing\nlarge\n\0"
		"hide *.hidden\nrisk risky\nmerge ../.cvsignore\n\0"
		"*.bak !\n*.tmp\n\0R x";
	struct session_recording recording = { (uint8_t *)(uintptr_t)text, sizeof text };
	char name[32];

	for (uint8_t choice = 0; choice < OPTIONS; choice++) {
		snprintf(name, sizeof name, "line%03d", choice);
		session_save("local_rules", name, &choice, 1, &recording);
	}
	session_end_recording();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (getenv("FUZZ_RECORD"))
		record();
	if (size < 1)
		return 0;
	const struct session_plan plan = { .prepare = prepare, .words = words, .choice = data[0], .extra = data + 1,
					   .extra_size = size - 1 };

	session_run(&plan, NULL, 0);
	return 0;
}
