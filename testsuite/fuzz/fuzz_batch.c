/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A batch that is replayed onto a tree. Input: options, the batch file. FUZZ_RECORD: session_pair.h. */
#include "session_pair.h"

static const char *const options[] = {
	"-a", "-aHAX", "-a --delete", "-av --stats", "-a --no-i-r", "-a --partial-dir=.part", "-aS --inplace", "-ai --backup",
	"-an -vv", "-aX --fake-super",
	"-a --only-send-attrs", "-rz", "-ac --protocol=29", "-a --protocol=27",
};
enum { OPTIONS = sizeof options / sizeof *options };

static void prepare(const struct session_plan *plan)
{
	session_trees(plan);
	session_write("batch", plan->extra, plan->extra_size);
}

static int words_of(const struct session_plan *plan, const char **words, const char *batch, const char *source)
{
	static char line[256];
	char *save = NULL;
	int count = 0;

	snprintf(line, sizeof line, "%s %s", options[plan->choice % OPTIONS], batch);
	for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
		words[count++] = word;
	if (source)
		words[count++] = source;
	words[count++] = "dst";
	return count;
}

static int replay_words(const struct session_plan *plan, const char **words)
{
	return words_of(plan, words, "--read-batch=batch", NULL);
}

static int write_words(const struct session_plan *plan, const char **words)
{
	return words_of(plan, words, "--write-batch=batch --no-W", "src/");
}

static void keep_batch(const struct session_plan *plan, const char *directory)
{
	const uint8_t head = (uint8_t)plan->choice;
	char name[32];

	snprintf(name, sizeof name, "line%03d", plan->choice);
	session_save_file("batch", name, &head, 1, directory, "batch");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session_plan record = { .prepare = session_trees, .words = write_words, .keep = keep_batch };

	for (record.choice = 0; getenv("FUZZ_RECORD") && record.choice < OPTIONS; record.choice++)
		session_run(&record, NULL, 0);
	if (getenv("FUZZ_RECORD"))
		session_end_recording();
	if (size < 1)
		return 0;
	struct session_plan plan = { .prepare = prepare, .words = replay_words, .choice = data[0], .extra = data + 1,
				     .extra_size = size - 1 };

	session_run(&plan, NULL, 0);
	return 0;
}
