/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Failed logins: who has to wait for the answer, how long, and who has not; and who counts as one client. */
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testsuite/unit/unit.h"

#include "daemon/peer.h"

#define SECOND INT64_C(1000000000)

static int64_t failed_login(struct guesses *guesses, const char *address, int64_t second)
{
	const struct origin origin = origin_of_address(address);

	return guesses_failed(guesses, &origin, second * SECOND) / SECOND;
}

UNIT_TEST(whoever_fails_too_often_waits)
{
	struct guesses *guesses = guesses_new();

	for (int i = 0; i < GUESSES_AT_ONCE; i++)
		assert_int_equal(failed_login(guesses, "192.0.2.1", 1000), 0);
	assert_int_equal(failed_login(guesses, "192.0.2.1", 1000), 1);
	assert_int_equal(failed_login(guesses, "192.0.2.1", 1000), 2);
	assert_int_equal(failed_login(guesses, "192.0.2.2", 1000), 0);
	/* What has been paid off is forgotten, and no more than that. */
	assert_int_equal(failed_login(guesses, "192.0.2.1", 1002), 1);
	for (int i = 0; i < 1000; i++)
		assert_true(failed_login(guesses, "192.0.2.1", 1002) <= GUESS_WAIT_MAX_SECONDS);
	assert_int_equal(failed_login(guesses, "192.0.2.1", 1002), GUESS_WAIT_MAX_SECONDS);
	assert_int_equal(failed_login(guesses, "192.0.2.1", 1002 + GUESSES_AT_ONCE + GUESS_WAIT_MAX_SECONDS), 0);
	assert_int_equal(failed_login(NULL, "192.0.2.1", 1002), 0);
}

UNIT_TEST(processes_count_together)
{
	struct guesses *guesses = guesses_new();

	for (int i = 0; i < GUESSES_AT_ONCE; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(failed_login(guesses, "192.0.2.1", 5) != 0);
		int status;

		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	assert_int_equal(failed_login(guesses, "192.0.2.1", 5), 1);
}

UNIT_TEST(clients_are_told_apart)
{
	static const struct {
		const char *left, *right;
		bool same;
	} pairs[] = {
		{ "192.0.2.1", "192.0.2.1", true },
		{ "192.0.2.1", "192.0.2.2", false },
		{ "2001:db8::1", "2001:db8::ffff:0:0:2", true },
		{ "2001:db8::1", "2001:db8:0:1::1", false },
		{ "fe80::1%eth0", "fe80::1", true },
		{ "fe80::1%eth0", "fe80::2", false },
		{ "::ffff:192.0.2.1", "192.0.2.1", true },
		{ "0.0.0.0", "", true },
		{ "127.0.0.1", "::1", false },
	};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		const struct origin left = origin_of_address(pairs[i].left), right = origin_of_address(pairs[i].right);

		assert_int_equal(origin_is_same(&left, &right), pairs[i].same);
		assert_int_equal(origin_hash(&left, 77) == origin_hash(&right, 77), pairs[i].same);
	}
	assert_int_equal(origin_of_address("0.0.0.0").family, AF_UNSPEC);
	assert_int_equal(origin_of_address("unknown").family, AF_UNSPEC);
}
