/* SPDX-License-Identifier: GPL-3.0-or-later */
/* S-096, S-097: who hosts allow and hosts deny let in (the table of protocol/07 section 5.5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loadparm_hosts.h"

/* A resolver that knows one name. */
static int resolves(void *context, const char *name, const char *address)
{
	(void)context;
	if (strcmp(name, "known.example"))
		return -1;
	return !strcmp(address, "192.0.2.7");
}

static bool allowed(const char *allow, const char *deny, const char *address, const char *name)
{
	const struct host_peer peer = { .address = address, .name = name, .forward_lookup = true, .resolves = resolves };

	return hosts_allowed(allow, deny, &peer);
}

static void test_networks_match_by_bits_and_by_pattern(void **state)
{
	(void)state;
	assert_true(allowed("127.0.0.0/30", "", "127.0.0.3", "h"));
	assert_false(allowed("127.0.0.0/30", "", "127.0.0.4", "h"));
	assert_true(allowed("127.0.0.0/255.0.255.252", "", "127.9.0.3", "h"));
	assert_false(allowed("127.0.0.0/255.0.255.252", "", "127.9.0.4", "h"));
	assert_true(allowed("127.1", "", "127.0.0.1", "h"));
	assert_true(allowed("0.0.0.0/0", "", "127.0.0.5", "h"));
	assert_false(allowed("::/0", "", "127.0.0.5", "h"));
	assert_true(allowed("2001:db8::/32", "", "2001:db8:1::9", "h"));
	assert_false(allowed("2001:db8::/32", "", "2001:db9::9", "h"));
	assert_true(allowed("::/0", "", "2001:db8::1", "h"));
	assert_false(allowed("::ffff:1.2.3.4", "", "1.2.3.4", "h"));
}

static void test_wildcards_match_names_only(void **state)
{
	(void)state;
	assert_false(allowed("127.0.0.*", "", "127.0.0.5", "localhost"));
	assert_true(allowed("LOCALHOST", "", "127.0.0.1", "localhost"));
	assert_true(allowed("local*", "", "127.0.0.1", "LocalHost"));
	assert_true(allowed("l[n-p]calhost", "", "127.0.0.1", "localhost"));
	assert_true(allowed("unknown", "", "127.0.0.1", "UNKNOWN"));
	assert_true(allowed("*", "", "127.0.0.1", "UNDETERMINED"));
	assert_false(allowed("all", "", "127.0.0.1", "localhost"));
}

static void test_lists_split_at_blanks_and_commas(void **state)
{
	(void)state;
	assert_true(allowed("10.0.0.1,\t10.0.0.2 10.0.0.3", "", "10.0.0.3", "h"));
	assert_true(allowed("10.0.0.1,\t10.0.0.2 10.0.0.3", "", "10.0.0.2", "h"));
	assert_false(allowed("10.0.0.1,\t10.0.0.2 10.0.0.3", "", "10.0.0.4", "h"));
}

static void test_allow_comes_before_deny(void **state)
{
	(void)state;
	assert_true(allowed("", "", "10.0.0.1", "h"));
	assert_true(allowed("10.0.0.1", "10.0.0.0/8", "10.0.0.1", "h"));
	assert_false(allowed("10.0.0.1", "10.0.0.0/8", "10.0.0.2", "h"));
	assert_true(allowed("10.0.0.1", "10.0.0.0/8", "192.0.2.1", "h"));
	assert_false(allowed("10.0.0.1", "", "192.0.2.1", "h"));
}

static void test_plain_names_are_looked_up(void **state)
{
	(void)state;
	assert_true(allowed("known.example", "", "192.0.2.7", "UNKNOWN"));
	assert_false(allowed("known.example", "", "192.0.2.8", "UNKNOWN"));
	assert_false(allowed("", "known.example", "192.0.2.7", "UNKNOWN"));
	assert_true(allowed("", "known.example", "192.0.2.8", "UNKNOWN"));
}

static void test_deny_tokens_that_cannot_be_judged_deny(void **state)
{
	(void)state;
	assert_false(allowed("nosuch.invalid", "", "192.0.2.1", "h"));
	assert_false(allowed("", "nosuch.invalid", "192.0.2.1", "h"));
	assert_false(allowed("", "127.0.0.0/x", "192.0.2.1", "h"));
	assert_false(allowed("", "127.0.0.0/33", "192.0.2.1", "h"));
	assert_false(allowed("", "127.0.0.0/", "192.0.2.1", "h"));
	assert_false(allowed("", "127.0.0.0/-1", "192.0.2.1", "h"));
	assert_false(allowed("", "300.1.1.1", "192.0.2.1", "h"));
	assert_false(allowed("", "host.example/24", "192.0.2.1", "h"));
	/* A name pattern says nothing about a client whose name could not be found out... */
	assert_false(allowed("", "*.invalid", "192.0.2.1", "UNKNOWN"));
	/* ...and everything about one whose name is known. */
	assert_true(allowed("", "*.invalid", "192.0.2.1", "good.example"));
	assert_false(allowed("127.0.0.0/x", "", "127.0.0.1", "h"));
}

static void test_without_forward_lookups_names_are_only_compared(void **state)
{
	const struct host_peer peer = { .address = "192.0.2.7", .name = "h", .resolves = resolves };

	(void)state;
	assert_false(hosts_allowed("known.example", "", &peer));
}

static void test_an_undetermined_peer_learns_its_name_from_the_list(void **state)
{
	struct strbuf learned = STRBUF_INIT;
	const struct host_peer peer = {
		.address = "192.0.2.7", .name = "UNDETERMINED", .forward_lookup = true, .resolves = resolves,
		.learned = &learned,
	};

	(void)state;
	assert_true(hosts_allowed("Known.Example", "", &peer));
	assert_string_equal(strbuf_text(&learned), "known.example");
	strbuf_free(&learned);
}

static void test_malformed_tokens_are_reported(void **state)
{
	static const char *const good[] = { "", "*", "host.example, @group", "10.1/8", "::1/128", "10.0.0.0/255.255.0.0" };
	static const char *const bad[] = { "10.0.0.0/33", "10.0.0.0/x", "10.0.0.0/", "1.2.3.4.5", "::1/129",
					   "::1/10.0.0.0", "h/8" };
	struct strbuf why = STRBUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_true(hosts_list_check(good[i], &why));
	assert_int_equal(why.length, 0);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		strbuf_reset(&why);
		assert_false(hosts_list_check(bad[i], &why));
		assert_non_null(strstr(strbuf_text(&why), bad[i]));
	}
	strbuf_free(&why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_networks_match_by_bits_and_by_pattern),
		cmocka_unit_test(test_wildcards_match_names_only),
		cmocka_unit_test(test_lists_split_at_blanks_and_commas),
		cmocka_unit_test(test_allow_comes_before_deny),
		cmocka_unit_test(test_plain_names_are_looked_up),
		cmocka_unit_test(test_deny_tokens_that_cannot_be_judged_deny),
		cmocka_unit_test(test_without_forward_lookups_names_are_only_compared),
		cmocka_unit_test(test_an_undetermined_peer_learns_its_name_from_the_list),
		cmocka_unit_test(test_malformed_tokens_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
