/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Turns of processes at one job: nothing that was asked for is lost, nothing is done twice without need. */
#include "testsuite/unit/expect_die.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/lock.h"

static char lock_file[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(lock_file, sizeof lock_file, "/tmp/turn-test.%d", (int)getpid());
	unlink(lock_file);
	return 0;
}

static int clean_up(void **state)
{
	(void)state;
	return unlink(lock_file);
}

UNIT_TEST_WITH(set_up, clean_up, one_after_the_other)
{
	struct fs_turn turn;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(fs_turn_take(&turn, lock_file, i & 1), FS_TURN_OURS);
		assert_false(fs_turn_end(&turn, true));
	}
}

UNIT_TEST_WITH(set_up, clean_up, who_does_not_wait_is_served_by_one_more_run)
{
	struct fs_turn first, second;

	assert_int_equal(fs_turn_take(&first, lock_file, true), FS_TURN_OURS);
	assert_int_equal(fs_turn_take(&second, lock_file, false), FS_TURN_LEFT);
	assert_int_equal(fs_turn_take(&second, lock_file, false), FS_TURN_LEFT);
	assert_true(fs_turn_end(&first, true));
	assert_int_equal(fs_turn_take(&second, lock_file, false), FS_TURN_LEFT);
	assert_true(fs_turn_end(&first, true));
	assert_false(fs_turn_end(&first, true));
	assert_int_equal(fs_turn_take(&second, lock_file, false), FS_TURN_OURS);
	assert_false(fs_turn_end(&second, true));
}

UNIT_TEST_WITH(set_up, clean_up, a_failed_run_frees_the_lock_and_serves_nobody)
{
	struct fs_turn first, second;

	assert_int_equal(fs_turn_take(&first, lock_file, true), FS_TURN_OURS);
	assert_int_equal(fs_turn_take(&second, lock_file, false), FS_TURN_LEFT);
	assert_false(fs_turn_end(&first, false));
	assert_int_equal(fs_turn_take(&second, lock_file, true), FS_TURN_OURS);
	assert_false(fs_turn_end(&second, true));
}

/* The run that a process waits for began before it asked, so another is needed; whose turn that is does not matter. */
UNIT_TEST_WITH(set_up, clean_up, who_waits_gets_a_turn_or_has_been_served)
{
	struct fs_turn first, second;
	int ends[2], answer = -1;
	struct stat st;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fs_turn_take(&first, lock_file, true), FS_TURN_OURS);
	if (fork() == 0) {
		answer = fs_turn_take(&second, lock_file, true);
		if (answer == FS_TURN_OURS)
			fs_turn_end(&second, true);
		_exit(write(ends[1], &answer, sizeof answer) != sizeof answer);
	}
	do
		usleep(1000);
	while (stat(lock_file, &st) == 0 && st.st_size < 10);
	while (fs_turn_end(&first, true))
		;
	assert_int_equal(read(ends[0], &answer, sizeof answer), sizeof answer);
	assert_true(answer == FS_TURN_OURS || answer == FS_TURN_SERVED);
	close(ends[0]);
	close(ends[1]);
}

UNIT_TEST(a_place_that_is_not_there)
{
	struct fs_turn turn;

	assert_int_equal(fs_turn_take(&turn, "/nowhere/at/all.lock", true), FS_TURN_FAILED);
	assert_int_equal(turn.fd, -1);
}
