/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A path that leads through an open descriptor (/proc/PID/fd/N) while that descriptor becomes another object, at each system
 * call of the opener in turn: what was judged is what is opened (doc/protocol/09-since-3.5.0.md section 5.1). N-11
 */
#include "fs/operator.h"

#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>

#include "fs_tree.h"

#define MOST_CALLS 400

/* What the opener found, as its exit code. */
enum found {
	FOUND_FILE,
	FOUND_PIPE,
	FOUND_NONE,   /* ENOENT */
	FOUND_BLOCKS, /* a pipe that does not wait for its other end */
	FOUND_ERROR,
	FOUND_KINDS
};

static int pipe_ends[2], file_fd, exchanged_fd;

static enum found judge(int fd)
{
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? FOUND_NONE : FOUND_ERROR;
	if (fstat(fd, &st) < 0)
		return FOUND_ERROR;
	if (!S_ISFIFO(st.st_mode))
		return S_ISREG(st.st_mode) ? FOUND_FILE : FOUND_ERROR;
	return fcntl(fd, F_GETFL) & O_NONBLOCK ? FOUND_BLOCKS : FOUND_PIPE;
}

static void open_and_judge(const char *path, int flags)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(FOUND_KINDS);
	raise(SIGSTOP);
	_exit(judge(fs_operator_open(path, flags, 0)));
}

/* Runs the opener and exchanges the descriptor when it has stopped `stop` times. -1: tracing is not to be had here. */
static int run_opener(const char *path, int flags, int stop, int other, bool *is_over)
{
	pid_t child = fork();
	int status, stops = 0;

	if (child == 0)
		open_and_judge(path, flags);
	for (;;) {
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status))
			break;
		assert_true(WIFSTOPPED(status));
		if (stops++ == stop)
			assert_int_equal(dup2(other, exchanged_fd), exchanged_fd);
		assert_return_code(ptrace(PTRACE_SYSCALL, child, NULL, NULL), errno);
	}
	*is_over = stops <= stop;
	return WEXITSTATUS(status) == FOUND_KINDS ? -1 : WEXITSTATUS(status);
}

/* The descriptor leads from `first` to `other` at any call; `seen` gets what the opener found, and how often. */
static void exchange_at_each_call(int flags, int first, int other, int seen[FOUND_KINDS])
{
	char path[64];
	bool is_over = false;

	memset(seen, 0, FOUND_KINDS * sizeof *seen);
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), exchanged_fd);
	for (int stop = 0; !is_over; stop++) {
		assert_int_equal(dup2(first, exchanged_fd), exchanged_fd);
		int found = run_opener(path, flags, stop, other, &is_over);

		if (found < 0)
			skip();
		assert_in_range(stop, 0, MOST_CALLS);
		seen[found]++;
	}
	assert_int_equal(seen[FOUND_ERROR], 0);
}

UNIT_TEST(either_object_is_opened_as_what_it_is)
{
	int seen[FOUND_KINDS];

	exchange_at_each_call(O_RDONLY | O_NONBLOCK, pipe_ends[0], file_fd, seen);
	assert_true(seen[FOUND_FILE] > 0 && seen[FOUND_PIPE] > 0);
	assert_int_equal(seen[FOUND_BLOCKS] + seen[FOUND_NONE], 0);
	exchange_at_each_call(O_RDONLY | O_NONBLOCK, file_fd, pipe_ends[0], seen);
	assert_true(seen[FOUND_FILE] > 0 && seen[FOUND_PIPE] > 0);
	assert_int_equal(seen[FOUND_BLOCKS] + seen[FOUND_NONE], 0);
}

UNIT_TEST(no_pipe_gets_past_the_judgement)
{
	int seen[FOUND_KINDS];

	exchange_at_each_call(O_RDONLY | FS_NO_ANONYMOUS, pipe_ends[0], file_fd, seen);
	assert_true(seen[FOUND_FILE] > 0 && seen[FOUND_NONE] > 0);
	assert_int_equal(seen[FOUND_PIPE] + seen[FOUND_BLOCKS], 0);
	exchange_at_each_call(O_RDONLY | FS_NO_ANONYMOUS, file_fd, pipe_ends[0], seen);
	assert_true(seen[FOUND_FILE] > 0 && seen[FOUND_NONE] > 0);
	assert_int_equal(seen[FOUND_PIPE] + seen[FOUND_BLOCKS], 0);
}

static int make_objects(void **state)
{
	if (tree_setup(state) || pipe(pipe_ends) < 0)
		return -1;
	tree_file("file", "content");
	file_fd = open("file", O_RDONLY);
	exchanged_fd = dup(file_fd);
	return exchanged_fd < 0 ? -1 : 0;
}

UNIT_GROUP(make_objects, tree_teardown)
