/* SPDX-License-Identifier: GPL-3.0-or-later */
/* S-053: clients that only connect neither fill the listener nor keep others out. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon_children.h"

static int admit(struct children *children, const char *address)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	int limit;

	if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
		return children_admit(children, (struct sockaddr *)&v4, &limit);
	assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
	return children_admit(children, (struct sockaddr *)&v6, &limit);
}

static void test_handshakes_are_counted_by_network(void **state)
{
	struct children *children = children_new();
	int slot = -1;

	(void)state;
	for (int i = 0; i < HANDSHAKES_MAX; i++) {
		slot = admit(children, "192.0.2.1");
		assert_true(slot >= 0);
		children_started(children, slot, 1000000 + i);
	}
	assert_int_equal(admit(children, "192.0.2.1"), -1);
	assert_true(admit(children, "192.0.2.2") >= 0);
	children_handshake_done(children, slot);
	assert_true(admit(children, "192.0.2.1") >= 0);

	for (int i = 0; i < HANDSHAKES_MAX; i++) {
		slot = admit(children, i % 2 ? "2001:db8::1" : "2001:db8::ffff:2");
		assert_true(slot >= 0);
		children_started(children, slot, 2000000 + i);
	}
	assert_int_equal(admit(children, "2001:db8::3"), -1);
	assert_true(admit(children, "2001:db8:0:1::1") >= 0);
}

static void test_served_clients_fill_the_table_to_its_end_only(void **state)
{
	struct children *children = children_new();

	(void)state;
	for (int i = 0; i < CHILDREN_MAX; i++) {
		int slot = admit(children, "192.0.2.1");

		assert_true(slot >= 0);
		children_started(children, slot, 1000000 + i);
		children_handshake_done(children, slot);
	}
	assert_int_equal(admit(children, "192.0.2.2"), -1);
}

static void test_a_process_that_ended_gives_its_place_back(void **state)
{
	struct children *children = children_new();
	siginfo_t info;

	(void)state;
	for (int i = 0; i < HANDSHAKES_MAX - 1; i++)
		children_started(children, admit(children, "192.0.2.1"), 1000000 + i);
	int slot = admit(children, "192.0.2.1");
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	children_started(children, slot, pid);
	assert_int_equal(admit(children, "192.0.2.1"), -1);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	children_reap(children);
	assert_true(admit(children, "192.0.2.1") >= 0);
}

static void test_processes_of_a_host_are_counted_without_those_that_refuse(void **state)
{
	struct children *children = children_new();
	int slot = -1;

	(void)state;
	for (int i = 0; i < 5; i++) {
		slot = admit(children, "192.0.2.1");
		assert_int_equal(children_of_host(children, slot), i < 2 ? i : 2);
		children_started(children, slot, 1000000 + i);
		if (i >= 2)
			children_refuse(children, slot);
	}
	assert_int_equal(children_of_host(children, admit(children, "192.0.2.2")), 0);
}

static struct origin host(uint32_t address)
{
	const struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };

	return origin_of((const struct sockaddr *)&v4);
}

static void test_rates_are_those_of_a_minute(void **state)
{
	const int64_t second = 1000000000;
	struct rates *rates = rates_new();
	struct origin a = host(1), b = host(2);

	(void)state;
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

static void test_many_hosts_do_not_free_one_that_comes_often(void **state)
{
	struct rates *rates = rates_new();
	struct origin often = host(1);

	(void)state;
	for (int i = 0; i < 60; i++)
		assert_true(rates_take(rates, &often, 60, 1));
	for (uint32_t i = 2; i < 100000; i++) {
		struct origin other = host(i);

		assert_true(rates_take(rates, &other, 60, 1));
	}
	assert_false(rates_take(rates, &often, 60, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handshakes_are_counted_by_network),
		cmocka_unit_test(test_served_clients_fill_the_table_to_its_end_only),
		cmocka_unit_test(test_a_process_that_ended_gives_its_place_back),
		cmocka_unit_test(test_processes_of_a_host_are_counted_without_those_that_refuse),
		cmocka_unit_test(test_rates_are_those_of_a_minute),
		cmocka_unit_test(test_many_hosts_do_not_free_one_that_comes_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
