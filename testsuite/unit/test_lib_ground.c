/* SPDX-License-Identifier: GPL-3.0-or-later */
/* lib/: memory, strings, maps, vectors, escaping, the log and the end of the process. */
#include "expect_die.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/alloc.h"
#include "lib/checked.h"
#include "lib/budget.h"
#include "lib/hashmap.h"
#include "lib/strbuf.h"
#include "lib/threads.h"
#include "lib/vec.h"

UNIT_TEST(allocation_refuses_products_that_wrap)
{
	expect_die(EXIT_MALLOC, "out of memory", (void)xcalloc(SIZE_MAX / 2, 3));
	expect_die(EXIT_MALLOC, "out of memory", (void)xrealloc_array(NULL, SIZE_MAX / 8 + 1, 8));
	free(xmalloc(0));
}

UNIT_TEST(peer_allocation_has_a_ceiling)
{
	uint8_t *memory;

	memory = peer_alloc(4, 256, 1024);
	assert_non_null(memory);
	for (size_t i = 0; i < 1024; i++)
		assert_int_equal(memory[i], 0);
	free(memory);
	expect_die(EXIT_MALLOC, "exceeded --max-alloc=1024 setting", (void)peer_alloc(4, 257, 1024));
	expect_die(EXIT_MALLOC, "exceeded --max-alloc=1073741824 setting", (void)peer_alloc(SIZE_MAX, 16, 1 << 30));
}

UNIT_TEST(checked_arithmetic_sees_wrapping)
{
	int32_t sum;

	assert_true(checked_add(INT32_MAX - 1, 1, &sum));
	assert_int_equal(sum, INT32_MAX);
	assert_false(checked_add(INT32_MAX, 1, &sum));
	assert_false(checked_mul(1 << 30, 2, &sum));
	assert_false(checked_sub(INT32_MIN, 1, &sum));
}

UNIT_TEST(strbuf_grows_and_keeps_nuls)
{
	struct strbuf sb = STRBUF_INIT;
	char *text;

	assert_string_equal(strbuf_text(&sb), "");
	strbuf_add(&sb, "a\0b", 3);
	strbuf_addf(&sb, "%0200d", 7);
	assert_int_equal(sb.length, 203);
	assert_memory_equal(sb.data, "a\0b000", 6);
	assert_int_equal(sb.data[203], '\0');
	strbuf_truncate(&sb, 3);
	assert_int_equal(sb.length, 3);
	text = strbuf_detach(&sb);
	assert_memory_equal(text, "a\0b", 4);
	assert_null(sb.data);
	free(text);
	text = strbuf_detach(&sb);
	assert_string_equal(text, "");
	free(text);
}

UNIT_TEST(strbuf_joins_paths)
{
	static const struct { const char *base, *name, *joined; } cases[] = {
		{ "", "x", "x" }, { ".", "x", "x" }, { "a", "x", "a/x" }, { "a/", "x", "a/x" }, { "/", "x", "/x" },
		{ "..", "x", "../x" },
	};
	struct strbuf sb = STRBUF_INIT;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		strbuf_reset(&sb);
		strbuf_add_string(&sb, cases[i].base);
		strbuf_add_path(&sb, cases[i].name);
		assert_string_equal(strbuf_text(&sb), cases[i].joined);
	}
	strbuf_free(&sb);
}

UNIT_TEST(hashmap_keeps_what_was_put_first)
{
	struct hashmap map = HASHMAP_INIT;
	bool inserted;

	assert_null(hashmap_get(&map, 0, 0));
	for (uint64_t i = 0; i < 20000; i++) {
		assert_int_equal(*hashmap_put(&map, i % 7, i, i * 3, &inserted), i * 3);
		assert_true(inserted);
	}
	assert_int_equal(*hashmap_put(&map, 5, 5, 99, &inserted), 15);
	assert_false(inserted);
	assert_int_equal(map.count, 20000);
	for (uint64_t i = 0; i < 20000; i++)
		assert_int_equal(*hashmap_get(&map, i % 7, i), i * 3);
	assert_null(hashmap_get(&map, 6, 5));
	for (uint64_t i = 0; i < 1000; i += 3)
		hashmap_remove(&map, i % 7, i);
	hashmap_remove(&map, 6, 5);
	for (uint64_t i = 0; i < 1000; i++) {
		const uint64_t *found = hashmap_get(&map, i % 7, i);

		assert_int_equal(found != NULL, i % 3 != 0);
		if (found)
			assert_int_equal(*found, i * 3);
	}
	hashmap_free(&map);
}

/* The values are CPython's, which hashes with the same function; its key is 0 with PYTHONHASHSEED=0. */
UNIT_TEST(names_are_hashed_with_siphash)
{
	struct hashmap no_key = { .has_key = true };
	static const char numbers[] = "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17";

	assert_true(hashmap_hash(&no_key, "a", 1) == 0x407448d2b89b1813u);
	assert_true(hashmap_hash(&no_key, "abcdefgh", 8) == 0x3f7b849c0b8e35eau);
	assert_true(hashmap_hash(&no_key, "the quick brown fox", 19) == 0x5a17575ad3449cbau);
	assert_true(hashmap_hash(&no_key, numbers, 16) == 0x8972188433a5c5b7u);
}

static void count_look(void *context)
{
	++*(int *)context;
}

UNIT_TEST(a_budget_ends_what_costs_too_much)
{
	int looks = 0;
	struct budget budget = { .look = count_look, .context = &looks };
	size_t counted = 0;

	budget_take(NULL, SIZE_MAX, "nobody's");
	budget_take(&budget, 1 << 20, "what has no limit");
	budget_lower(&budget, 3 << 20, "the operator");
	budget_lower(&budget, 4 << 20, "one who is laxer");
	budget_adjust(&budget, &counted, 2 << 20, "what grows");
	budget_adjust(&budget, &counted, 1 << 20, "what shrinks");
	budget_take(&budget, 1 << 20, "the rest");
	expect_die(EXIT_MALLOC, "exceeded the memory of a session, 3145728 bytes, with a byte (see the operator)",
		   budget_take(&budget, 1, "a byte"));
	budget_give_back(&budget, 2);
	expect_die(EXIT_MALLOC, "with what is huge", budget_take(&budget, SIZE_MAX / 2, "what is huge"));

	budget_work(&budget, BUDGET_STEPS - 1);
	assert_int_equal(looks, 0);
	budget_work(&budget, 1);
	assert_int_equal(looks, 1);
	budget.work_seconds = 1;
	budget.work_setting = "the clock";
	atomic_store(&budget.work, INT64_C(1000000000));
	expect_die(EXIT_TIMEOUT, "matching names has taken 1 seconds of the processor (see the clock)", budget_look(&budget));
}

UNIT_TEST(every_map_has_a_key_of_its_own)
{
	struct hashmap first = HASHMAP_INIT, second = HASHMAP_INIT;
	uint64_t hash = hashmap_hash(&first, "name", 4);
	bool inserted;

	assert_true(hash != hashmap_hash(&second, "name", 4));
	for (uint64_t i = 0; i < 1000; i++)
		hashmap_put(&first, hash, i, i, &inserted);
	assert_true(hash == hashmap_hash(&first, "name", 4));
	hashmap_free(&first);
	hashmap_free(&second);
}

UNIT_TEST(vector_grows)
{
	VEC(int) v = VEC_INIT;

	for (int i = 0; i < 100; i++)
		vec_push(&v, i);
	assert_int_equal(v.count, 100);
	assert_int_equal(v.items[99], 99);
	vec_free(&v);
	assert_null(v.items);
}

struct escape_case { const char *raw, *c, *utf8, *eight; };

/* doc/protocol/06-command-line.md section 8.13, with DEL and C1 controls escaped as doc/protocol/08-security.md section 6 asks
 * for. */
static const struct escape_case escapes[] = {
	{ "nl\nx", "nl\\#012x", "nl\\#012x", "nl\\#012x" },
	{ "tab\there", "tab\there", "tab\there", "tab\there" },
	{ "del\x7f", "del\\#177", "del\\#177", "del\\#177" },
	{ "\xc3\xa9", "\\#303\\#251", "\xc3\xa9", "\xc3\xa9" },
	{ "bad\xff", "bad\\#377", "bad\\#377", "bad\xff" },
	{ "bad\xc3", "bad\\#303", "bad\\#303", "bad\xc3" },
	{ "\xc2\x9b", "\\#302\\#233", "\\#302\\#233", "\xc2\x9b" },
	{ "bs\\#012", "bs\\#134#012", "bs\\#134#012", "bs\\#134#012" },
	{ "bs\\#0123", "bs\\#134#0123", "bs\\#134#0123", "bs\\#134#0123" },
	{ "bs\\#01", "bs\\#01", "bs\\#01", "bs\\#01" },
	{ "bs\\x", "bs\\x", "bs\\x", "bs\\x" },
	{ "esc\x1b[0m", "esc\\#033[0m", "esc\\#033[0m", "esc\\#033[0m" },
};

static void check_escapes(size_t offset, int eight_bit)
{
	char out[64];
	const char *wanted;

	for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
		memcpy(&wanted, (const char *)&escapes[i] + offset, sizeof wanted);
		assert_int_equal(log_escape(out, sizeof out, escapes[i].raw, strlen(escapes[i].raw), eight_bit),
				 strlen(wanted));
		assert_string_equal(out, wanted);
	}
}

UNIT_TEST(escaping_follows_the_locale)
{
	setlocale(LC_ALL, "C");
	check_escapes(offsetof(struct escape_case, c), 0);
	check_escapes(offsetof(struct escape_case, eight), 1);
	if (setlocale(LC_ALL, "C.UTF-8"))
		check_escapes(offsetof(struct escape_case, utf8), 0);
	setlocale(LC_ALL, "C");
}

UNIT_TEST(escaping_cuts_between_characters)
{
	char out[8] = "unused";

	assert_int_equal(log_escape(out, 6, "ab\ncd", 5, 0), 9);
	assert_string_equal(out, "ab");
	assert_int_equal(log_escape(NULL, 0, "ab\ncd", 5, 0), 9);
}

struct heard { int count; enum log_kind kind; char text[4096]; };

static void hear(void *context, enum log_kind kind, const char *text, size_t length)
{
	struct heard *heard = context;

	heard->count++;
	heard->kind = kind;
	if (length < sizeof heard->text) {
		memcpy(heard->text, text, length);
		heard->text[length] = '\0';
	}
}

UNIT_TEST(log_lines_end_in_one_newline)
{
	struct heard heard = { 0 };
	struct log_sink old = log_set_sink((struct log_sink){ hear, &heard });

	log_set_role("sender");
	log_warning("with %s\n", "one");
	assert_string_equal(heard.text, "with one\n");
	assert_int_equal(heard.kind, L_WARNING);
	log_info("%03000d", 1);
	assert_int_equal(strlen(heard.text), 3001);
	assert_false(log_saw_xfer_error());
	log_errno(L_ERROR_XFER, ENOENT, "open \"%s\" failed", "x");
	assert_string_equal(heard.text, "rsync: [sender] open \"x\" failed: No such file or directory (2)\n");
	assert_true(log_saw_xfer_error());
	assert_int_equal(heard.count, 3);
	log_set_sink(old);
	log_set_role("client");
}

static void *log_much(void *argument)
{
	for (int i = 0; i < 500; i++)
		log_info("%s", (const char *)argument);
	return NULL;
}

UNIT_TEST(log_serialises_threads)
{
	struct heard heard = { 0 };
	struct log_sink old = log_set_sink((struct log_sink){ hear, &heard });
	pthread_t threads[4];
	char line[] = "a line of a worker";

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, log_much, line), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	log_set_sink(old);
	assert_int_equal(heard.count, 2000);
}

UNIT_TEST(exit_codes_have_the_meanings_of_rsync)
{
	assert_string_equal(exit_meaning(EXIT_STREAMIO), "error in rsync protocol data stream");
	assert_string_equal(exit_meaning(EXIT_PARTIAL), "some files/attrs were not transferred (see previous errors)");
	assert_string_equal(exit_meaning(127), "remote command not found");
	assert_string_equal(exit_meaning(77), "unexplained error");
}

/* Runs `body` in a child whose stderr is collected; returns the exit status. */
static int in_child(void (*body)(void), char *out, size_t size)
{
	int fds[2], status;
	size_t length = 0;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		body();
		_exit(99);
	}
	close(fds[1]);
	while ((got = read(fds[0], out + length, size - 1 - length)) > 0)
		length += (size_t)got;
	out[length] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void hook_first(void *context, int code)
{
	(void)context;
	dprintf(STDERR_FILENO, "hook 1 code %d\n", code);
}

static void hook_second(void *context, int code)
{
	(void)context;
	(void)code;
	dprintf(STDERR_FILENO, "hook 2\n");
	exit_report();
	die(EXIT_SOCKETIO, "the hook failed");
}

static void die_with_hooks(void)
{
	exit_push_hook(hook_first, NULL);
	exit_push_hook(hook_second, NULL);
	die(EXIT_PROTOCOL, "why");
}

static void die_vanished(void)
{
	exit_with_at(EXIT_VANISHED, "/some/where/sender.c", 12);
}

static void die_quietly(void)
{
	exit_set_quiet(true);
	die(EXIT_SYNTAX, "%s", "text");
}

UNIT_TEST(the_end_runs_hooks_once_and_reports_once)
{
	char out[1024];

	assert_int_equal(in_child(die_with_hooks, out, sizeof out), EXIT_SOCKETIO);
	assert_non_null(strstr(out, "why\nhook 2\nrsync error: protocol incompatibility (code 2) at test_lib_ground.c("));
	assert_non_null(strstr(out, "the hook failed\nhook 1 code 10\n"));
	assert_null(strstr(strstr(out, "rsync error") + 1, "rsync error"));
}

UNIT_TEST(the_final_line_is_a_warning_for_vanished_files)
{
	char out[1024];

	assert_int_equal(in_child(die_vanished, out, sizeof out), EXIT_VANISHED);
	assert_ptr_equal(strstr(out, "rsync warning: some files vanished before they could be transferred (code 24) at "
				"sender.c(12) [client="), out);
	assert_int_equal(in_child(die_quietly, out, sizeof out), EXIT_SYNTAX);
	assert_string_equal(out, "text\n");
}

/* --- threads --- */

struct shared_work { pthread_t main; int done[100]; int bodies[4]; };

static void do_one(void *work_void, int number)
{
	struct shared_work *work = work_void;

	work->done[number]++;
}

static void note_body(void *work_void, int thread)
{
	struct shared_work *work = work_void;

	work->bodies[thread] = pthread_equal(work->main, pthread_self()) ? 1 : 2;
}

UNIT_TEST(shared_work_is_done_once_and_the_caller_takes_part)
{
	for (int count = 1; count <= 4; count++) {
		struct shared_work work = { .main = pthread_self() };

		threads_share(count, 100, do_one, &work);
		for (int i = 0; i < 100; i++)
			assert_int_equal(work.done[i], 1);
		threads_run(count, note_body, &work);
		for (int i = 0; i < 4; i++)
			assert_int_equal(work.bodies[i], i == 0 ? 1 : i < count ? 2 : 0);
	}
	assert_int_equal(threads_useful(1), 1);
	assert_in_range(threads_useful(1000), 1, 1000);
}
