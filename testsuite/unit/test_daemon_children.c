/* SPDX-License-Identifier: GPL-3.0-or-later */
/* S-053: clients that only connect neither fill the listener nor keep others out. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testsuite/unit/unit.h"

#include "daemon/listen.h"

#define MILLISECOND INT64_C(1000000)
#define BEYOND_PIDS (1 << 30) /* no process has such a number: the kernel's limit is 1 << 22 */

static int admit_at(struct children *children, const char *address, int64_t now)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	int limit;

	if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
		return children_admit(children, (struct sockaddr *)&v4, now, &limit);
	assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
	return children_admit(children, (struct sockaddr *)&v6, now, &limit);
}

static int admit(struct children *children, const char *address)
{
	return admit_at(children, address, 0);
}

static void start(struct children *children, int slot, pid_t pid)
{
	children->items[slot].pid = pid;
}

static bool made_room(const struct children *children, int slot)
{
	return children->items[slot].killed;
}

UNIT_TEST(handshakes_are_counted_by_network)
{
	struct children *children = children_new();
	int slot = -1;

	for (int i = 0; i < HANDSHAKES_MAX; i++) {
		slot = admit(children, "192.0.2.1");
		assert_true(slot >= 0);
		start(children, slot, BEYOND_PIDS + i);
	}
	assert_int_equal(admit(children, "192.0.2.1"), -1);
	assert_true(admit(children, "192.0.2.2") >= 0);
	assert_true(board_reach(children_board(children, slot), BOARD_REQUESTED));
	assert_true(admit(children, "192.0.2.1") >= 0);

	for (int i = 0; i < HANDSHAKES_MAX; i++) {
		slot = admit(children, i % 2 ? "2001:db8::1" : "2001:db8::ffff:2");
		assert_true(slot >= 0);
		start(children, slot, BEYOND_PIDS + 1000 + i);
	}
	assert_int_equal(admit(children, "2001:db8::3"), -1);
	assert_true(admit(children, "2001:db8:0:1::1") >= 0);
}

UNIT_TEST(served_clients_fill_the_table_to_its_end_only)
{
	struct children *children = children_new();

	for (int i = 0; i < CHILDREN_MAX; i++) {
		int slot = admit(children, "192.0.2.1");

		assert_true(slot >= 0);
		start(children, slot, BEYOND_PIDS + i);
		assert_true(board_reach(children_board(children, slot), BOARD_REQUESTED));
	}
	assert_int_equal(admit(children, "192.0.2.2"), -1);
}

UNIT_TEST(a_process_that_ended_gives_its_place_back)
{
	struct children *children = children_new();
	siginfo_t info;

	for (int i = 0; i < HANDSHAKES_MAX - 1; i++)
		start(children, admit(children, "192.0.2.1"), BEYOND_PIDS + i);
	int slot = admit(children, "192.0.2.1");
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	start(children, slot, pid);
	assert_int_equal(admit(children, "192.0.2.1"), -1);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	children_reap(children);
	assert_true(admit(children, "192.0.2.1") >= 0);
}

/* Processes that wait to be killed, as many as clients that can be killed. */
struct waiting {
	pid_t pid;
	int slot;
};

static struct waiting add_waiting(struct children *children, enum board_step step, int64_t now)
{
	struct waiting one = { .slot = admit_at(children, "192.0.2.1", now) };

	one.pid = fork();
	assert_true(one.slot >= 0 && one.pid >= 0);
	if (one.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	start(children, one.slot, one.pid);
	assert_true(board_reach(children_board(children, one.slot), step));
	return one;
}

static void assert_killed_for_room(struct children *children, const struct waiting *one)
{
	siginfo_t info;

	assert_true(made_room(children, one->slot));
	assert_int_equal(waitid(P_PID, (id_t)one->pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_status, SIGKILL);
	assert_false(board_reach(children_board(children, one->slot), BOARD_ADMITTED));
	children_reap(children);
}

UNIT_TEST(strangers_make_room_by_age_and_nobody_else_does)
{
	struct children *children = children_new();
	const struct waiting admitted = add_waiting(children, BOARD_ADMITTED, 1);
	const struct waiting chosen = add_waiting(children, BOARD_CHOSEN, 2);
	const struct waiting second = add_waiting(children, BOARD_CONNECTED, 4);
	const struct waiting first = add_waiting(children, BOARD_CONNECTED, 3);
	const int64_t later = 4 + HANDSHAKE_MS * MILLISECOND;
	int slot;

	for (int i = 4; i < CHILDREN_MAX; i++) {
		slot = admit(children, "192.0.2.2");
		start(children, slot, BEYOND_PIDS + i);
		assert_true(board_reach(children_board(children, slot), BOARD_REQUESTED));
	}
	assert_int_equal(children_report_wait(children, 4), -1);
	/* All of them have just come. */
	assert_int_equal(admit_at(children, "192.0.2.3", HANDSHAKE_MS * MILLISECOND), -1);
	slot = admit_at(children, "192.0.2.3", later);
	assert_true(slot >= 0);
	start(children, slot, BEYOND_PIDS);
	assert_true(board_reach(children_board(children, slot), BOARD_REQUESTED));
	assert_killed_for_room(children, &first);
	assert_int_equal(children_report_wait(children, later), 0);
	children_report(children, later, false);
	start(children, admit_at(children, "192.0.2.3", later), BEYOND_PIDS + 1);
	assert_killed_for_room(children, &second);
	assert_int_equal(children_report_wait(children, later + 1000 * MILLISECOND), 59000);
	start(children, admit_at(children, "192.0.2.3", later), BEYOND_PIDS + 2);
	assert_killed_for_room(children, &chosen);
	assert_int_equal(admit_at(children, "192.0.2.3", later), -1);
	assert_false(made_room(children, admitted.slot));
	assert_int_equal(kill(admitted.pid, SIGTERM), 0);
	assert_int_equal(waitpid(admitted.pid, NULL, 0), admitted.pid);
}

#define MINUTE (60000 * MILLISECOND)

static void move(struct children *children, int slot, uint64_t bytes, int64_t waited)
{
	struct wire_meter *meter = board_meter(children_board(children, slot));

	meter->sent += bytes;
	meter->waited += (uint64_t)waited;
}

/* A full daemon of sessions that do well, but for those that a test adds before. */
static void fill(struct children *children, int from, int64_t now)
{
	for (int i = from; i < CHILDREN_MAX; i++) {
		int slot = admit_at(children, "192.0.2.2", now);

		start(children, slot, BEYOND_PIDS + i);
		assert_true(board_reach(children_board(children, slot), BOARD_REQUESTED));
		move(children, slot, 1 << 20, 3 * MINUTE);
	}
}

static void assert_told_to_end(struct children *children, const struct waiting *one)
{
	siginfo_t info;

	assert_true(made_room(children, one->slot));
	assert_int_equal(waitid(P_PID, (id_t)one->pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_status, SIGTERM);
	children_reap(children);
}

static void end_waiting(const struct waiting *one)
{
	assert_int_equal(kill(one->pid, SIGTERM), 0);
	assert_int_equal(waitpid(one->pid, NULL, 0), one->pid);
}

UNIT_TEST(the_slowest_sessions_make_room)
{
	struct children *children = children_new();
	const struct waiting slow = add_waiting(children, BOARD_REQUESTED, 0);
	const struct waiting slowest = add_waiting(children, BOARD_ADMITTED, 0);
	const struct waiting ours = add_waiting(children, BOARD_REQUESTED, 0);
	const int64_t later = 3 * MINUTE;
	const struct waiting young = add_waiting(children, BOARD_REQUESTED, later - MINUTE + 1);

	fill(children, 4, 0);
	move(children, slow.slot, 2999, 3 * MINUTE);
	move(children, slowest.slot, 2, 5 * MINUTE);
	/* Our disk has kept this one waiting; and that one has not been here for long. */
	move(children, ours.slot, 1, MINUTE - 1);
	move(children, young.slot, 0, 3 * MINUTE);
	assert_int_equal(admit_at(children, "192.0.2.3", later), -1);
	children->minimum_rate = 999;
	start(children, admit_at(children, "192.0.2.3", later), BEYOND_PIDS);
	assert_told_to_end(children, &slowest);
	/* A new one counts as somebody who has just come. */
	assert_int_equal(admit_at(children, "192.0.2.3", later), -1);
	children->minimum_rate = 1000;
	start(children, admit_at(children, "192.0.2.3", later), BEYOND_PIDS + 1);
	assert_told_to_end(children, &slow);
	assert_int_equal(admit_at(children, "192.0.2.3", later), -1);
	assert_false(made_room(children, ours.slot) || made_room(children, young.slot));
	end_waiting(&ours);
	end_waiting(&young);
}

UNIT_TEST(what_was_moved_long_ago_does_not_count)
{
	struct children *children = children_new();
	const struct waiting once = add_waiting(children, BOARD_REQUESTED, 0);

	children->minimum_rate = 1000;
	fill(children, 1, 0);
	children_sample(children, MINUTE);
	assert_int_equal(children_sample_wait(children, MINUTE), 60001);
	move(children, once.slot, 1 << 30, MINUTE);
	assert_int_equal(admit_at(children, "192.0.2.3", 2 * MINUTE - 1), -1);
	for (int minute = 2; minute < 5; minute++) {
		/* Calls in between change nothing. */
		children_sample(children, minute * MINUTE);
		children_sample(children, minute * MINUTE + 1);
		for (int slot = 0; slot < CHILDREN_SLOTS; slot++)
			move(children, slot, slot == once.slot ? 10 : 5000, MINUTE);
	}
	assert_true(admit_at(children, "192.0.2.3", 5 * MINUTE) >= 0);
	assert_told_to_end(children, &once);
	assert_int_equal(children_sample_wait(children, 5 * MINUTE), 0);
	children->minimum_rate = 0;
	assert_int_equal(children_sample_wait(children, 5 * MINUTE), -1);
}

UNIT_TEST(processes_that_do_not_go_leave_others_out)
{
	struct children *children = children_new();
	int limit;

	for (int i = 0; i < CHILDREN_SLOTS; i++) {
		int64_t now = i < CHILDREN_MAX ? 0 : HANDSHAKE_MS * MILLISECOND;

		start(children, children_admit(children, NULL, now, &limit), BEYOND_PIDS + i);
	}
	assert_int_equal(children_admit(children, NULL, HANDSHAKE_MS * MILLISECOND, &limit), -1);
	assert_int_equal(limit, CHILDREN_MAX);
}

UNIT_TEST(a_process_reaches_no_slot_but_its_own)
{
	struct children *children = children_new();
	struct board_view view;
	int slots[3], status;

	for (int i = 0; i < 3; i++) {
		slots[i] = admit(children, "192.0.2.1");
		start(children, slots[i], BEYOND_PIDS + i);
	}
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			board_set_state(children_become(children, slots[1]), BOARD_LISTING);
			signal(SIGSEGV, SIG_DFL);
			board_set_state(children_board(children, slots[i]), BOARD_SENDING);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(i == 1 ? WIFEXITED(status) : WIFSIGNALED(status), 1);
	}
	for (int i = 0; i < 3; i++) {
		board_read(children_board(children, slots[i]), &view);
		assert_int_equal(view.state, i == 1 ? BOARD_LISTING : BOARD_HANDSHAKE);
	}
}

UNIT_TEST(processes_of_a_host_are_counted_without_those_that_refuse)
{
	struct children *children = children_new();
	int slot = -1;

	for (int i = 0; i < 5; i++) {
		slot = admit(children, "192.0.2.1");
		assert_int_equal(children_of_host(children, slot), i < 2 ? i : 2);
		start(children, slot, BEYOND_PIDS + i);
		if (i >= 2)
			children->items[slot].refused = true;
	}
	assert_int_equal(children_of_host(children, admit(children, "192.0.2.2")), 0);
}

/* As the listener sees the address of a connection, and as a session reads it. */
static struct origin host_of(const char *address)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct origin seen, read = origin_of_address(address);

	assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
	seen = origin_of((const struct sockaddr *)&v6);
	assert_true(origin_is_same(&seen, &read));
	return seen;
}

static void assert_same_host(const char *a, const char *b, bool same)
{
	const struct origin one = host_of(a), other = host_of(b);

	assert_int_equal(origin_is_same(&one, &other), same);
}

UNIT_TEST(hosts_are_ipv4_addresses_and_ipv6_networks)
{
	const struct origin mapped = host_of("::ffff:192.0.2.1"), plain = origin_of_address("192.0.2.1");
	const struct origin link = host_of("fe80::1"), with_interface = origin_of_address("fe80::1%lo");

	assert_true(origin_is_same(&mapped, &plain));
	assert_true(origin_is_same(&link, &with_interface));
	assert_same_host("::ffff:192.0.2.1", "::ffff:192.0.2.2", false);
	assert_same_host("2001:db8::1", "2001:db8::ffff:0:0:1", true);
	assert_same_host("2001:db8::1", "2001:db8:0:1::1", false);
	assert_same_host("fe80::1", "fe80::2", false);
}

static struct origin host(uint32_t address)
{
	const struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };

	return origin_of((const struct sockaddr *)&v4);
}

UNIT_TEST(rates_are_those_of_a_minute)
{
	const int64_t second = 1000000000;
	struct rates *rates = rates_new();
	struct origin a = host(1), b = host(2);

	for (int i = 0; i < 6; i++)
		assert_true(rates_take(rates, &a, 6, 1000 * second));
	assert_false(rates_take(rates, &a, 6, 1000 * second));
	assert_true(rates_take(rates, &b, 6, 1000 * second));
	assert_false(rates_take(rates, &a, 6, 1009 * second));
	assert_true(rates_take(rates, &a, 6, 1010 * second));
	assert_false(rates_take(rates, &a, 6, 1011 * second));
	for (int i = 0; i < 6; i++)
		assert_true(rates_take(rates, &a, 6, 2000 * second));
	assert_false(rates_take(rates, &a, 6, 2000 * second));
}

UNIT_TEST(many_hosts_do_not_free_one_that_comes_often)
{
	struct rates *rates = rates_new();
	struct origin often = host(1);

	for (int i = 0; i < 60; i++)
		assert_true(rates_take(rates, &often, 60, 1));
	for (uint32_t i = 2; i < 100000; i++) {
		struct origin other = host(i);

		assert_true(rates_take(rates, &other, 60, 1));
	}
	assert_false(rates_take(rates, &often, 60, 1));
}
