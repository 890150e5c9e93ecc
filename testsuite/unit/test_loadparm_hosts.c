/* SPDX-License-Identifier: GPL-3.0-or-later */
/* S-096, S-097: who hosts allow and hosts deny let in (the table of doc/protocol/07-daemon.md section 5.5). */
#include <stdint.h>
#include <string.h>

#include "testsuite/unit/unit.h"

#include "lib/charset.h"
#include "loadparm/hosts.h"

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

UNIT_TEST(networks_match_by_bits_and_by_pattern)
{
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

UNIT_TEST(wildcards_match_names_only)
{
	assert_false(allowed("127.0.0.*", "", "127.0.0.5", "localhost"));
	assert_true(allowed("LOCALHOST", "", "127.0.0.1", "localhost"));
	assert_true(allowed("local*", "", "127.0.0.1", "LocalHost"));
	assert_true(allowed("l[n-p]calhost", "", "127.0.0.1", "localhost"));
	assert_true(allowed("unknown", "", "127.0.0.1", "UNKNOWN"));
	assert_true(allowed("*", "", "127.0.0.1", "UNDETERMINED"));
	assert_false(allowed("all", "", "127.0.0.1", "localhost"));
}

/* doc/protocol/09-since-3.5.0.md section 11.3; a wildcard in a label that cannot be converted denies. */
UNIT_TEST(internationalised_names)
{
	static const char *const matching[] = {
		"b\xc3\xbc" "cher.example", "B\xc3\x9c" "CHER.EXAMPLE", "bu\xcc\x88" "cher.example", "xn--bcher-kva.example",
		"XN--BCHER-KVA.Example", "*.example", "b\xc3\xbc" "cher.*",
	};
	static const char *const doubtful[] = {
		"b\xc3\xbc*.example", "\xc3\xbc*", "\xef\xbc\x8a", "\xef\xbc\x8a.example", "\xc3\xbc" "cher.example",
		"b\xfc" "cher.example",
	};

	if (!idn_is_there())
		skip();
	for (size_t i = 0; i < sizeof matching / sizeof *matching; i++) {
		assert_true(allowed(matching[i], "", "192.0.2.1", "xn--bcher-kva.example"));
		assert_false(allowed("", matching[i], "192.0.2.1", "xn--bcher-kva.example"));
	}
	for (size_t i = 0; i < sizeof doubtful / sizeof *doubtful; i++) {
		assert_false(allowed(doubtful[i], "", "192.0.2.1", "xn--bcher-kva.example"));
		assert_false(allowed("", doubtful[i], "192.0.2.1", "xn--bcher-kva.example"));
	}
}

UNIT_TEST(lists_split_at_blanks_and_commas)
{
	assert_true(allowed("10.0.0.1,\t10.0.0.2 10.0.0.3", "", "10.0.0.3", "h"));
	assert_true(allowed("10.0.0.1,\t10.0.0.2 10.0.0.3", "", "10.0.0.2", "h"));
	assert_false(allowed("10.0.0.1,\t10.0.0.2 10.0.0.3", "", "10.0.0.4", "h"));
}

UNIT_TEST(allow_comes_before_deny)
{
	assert_true(allowed("", "", "10.0.0.1", "h"));
	assert_true(allowed("10.0.0.1", "10.0.0.0/8", "10.0.0.1", "h"));
	assert_false(allowed("10.0.0.1", "10.0.0.0/8", "10.0.0.2", "h"));
	assert_true(allowed("10.0.0.1", "10.0.0.0/8", "192.0.2.1", "h"));
	assert_false(allowed("10.0.0.1", "", "192.0.2.1", "h"));
}

UNIT_TEST(plain_names_are_looked_up)
{
	assert_true(allowed("known.example", "", "192.0.2.7", "UNKNOWN"));
	assert_false(allowed("known.example", "", "192.0.2.8", "UNKNOWN"));
	assert_false(allowed("", "known.example", "192.0.2.7", "UNKNOWN"));
	assert_true(allowed("", "known.example", "192.0.2.8", "UNKNOWN"));
}

UNIT_TEST(deny_tokens_that_cannot_be_judged_deny)
{
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

UNIT_TEST(without_forward_lookups_names_are_only_compared)
{
	const struct host_peer peer = { .address = "192.0.2.7", .name = "h", .resolves = resolves };

	assert_false(hosts_allowed("known.example", "", &peer));
}

UNIT_TEST(an_undetermined_peer_learns_its_name_from_the_list)
{
	struct strbuf learned = STRBUF_INIT;
	const struct host_peer peer = {
		.address = "192.0.2.7", .name = "UNDETERMINED", .forward_lookup = true, .resolves = resolves,
		.learned = &learned,
	};

	assert_true(hosts_allowed("Known.Example", "", &peer));
	assert_string_equal(strbuf_text(&learned), "known.example");
	strbuf_free(&learned);
}

/* --- the grid: forms of tokens x clients x lookups x lists --- */

enum lookup { WORKS, FAILS, OFF, LOOKUPS };

static int grid_resolves(void *context, const char *name, const char *address)
{
	if (*(const enum lookup *)context != WORKS)
		return -1;
	if (!strcmp(name, "host.example"))
		return !strcmp(address, "192.0.2.7") || !strcmp(address, "2001:db8::7");
	return !strcmp(name, "other.example") ? 0 : -1;
}

static int grid_has_member(void *context, const char *group, const char *name)
{
	if (*(const enum lookup *)context != WORKS || strcmp(group, "group"))
		return -1;
	return !strcmp(name, "host.example");
}

/* One letter for each state of lookups: m matches, n does not, u undecided. */
static const struct {
	const char *token;
	const char *host4, *host6; /* host.example: 192.0.2.7 and 2001:db8::7; without lookups it has no name */
	const char *nobody;        /* 0.0.0.0, UNKNOWN */
} grid[] = {
	{ "192.0.2.7", "mmm", "nnn", "uuu" },
	{ "192.0.2.0/24", "mmm", "nnn", "uuu" },
	{ "192.0.2.8", "nnn", "nnn", "uuu" },
	{ "0.0.0.0/0", "mmm", "nnn", "mmm" },
	{ "2001:db8::7", "nnn", "mmm", "uuu" },
	{ "2001:db8::/255", "uuu", "uuu", "uuu" },
	{ "::/0", "nnn", "mmm", "uuu" },
	{ "::ffff:192.0.2.7", "uuu", "nnn", "nnn" },
	{ "::ffff:192.0.2.0/120", "uuu", "nnn", "nnn" },
	{ "::ffff:0:0/96", "uuu", "nnn", "uuu" },
	{ "::ffff:192.0.2.8", "nnn", "nnn", "nnn" },
	{ "192.0.2.7/x", "uuu", "uuu", "uuu" },
	{ "300.1.1.1", "uuu", "uuu", "uuu" },
	{ "*", "mmm", "mmm", "mmm" },
	{ "HOST.example", "muu", "muu", "nuu" },
	{ "other.example", "nuu", "nuu", "nuu" },
	{ "nosuch.example", "uuu", "uuu", "uuu" },
	{ "*.example", "muu", "muu", "uuu" },
	{ "*.invalid", "nuu", "nuu", "uuu" },
	{ "h[n-p]st.example", "muu", "muu", "uuu" },
	{ "b\xc3\xbc*.example", "uuu", "uuu", "uuu" },
	{ "b\xc3\xbc" "cher.example", "uuu", "uuu", "uuu" },
	{ "@group", "muu", "muu", "uuu" },
	{ "@nosuch", "uuu", "uuu", "uuu" },
};

static void check_cell(const char *token, const char *address, const char *name, enum lookup lookup, char expected)
{
	const struct host_peer peer = {
		.address = address, .name = name, .forward_lookup = lookup != OFF, .resolves = grid_resolves,
		.has_member = grid_has_member, .context = &lookup,
	};
	bool allowed = hosts_allowed(token, "", &peer), denied = !hosts_allowed("", token, &peer);

	if (allowed != (expected == 'm') || denied != (expected != 'n'))
		fail_msg("%s, %s (%s), lookups %d: allowed %d, denied %d", token, address, name, lookup, allowed, denied);
}

UNIT_TEST(what_cannot_be_decided_lets_nobody_in)
{
	for (size_t i = 0; i < sizeof grid / sizeof grid[0]; i++)
		for (enum lookup lookup = WORKS; lookup < LOOKUPS; lookup++) {
			const char *name = lookup == WORKS ? "host.example" : lookup == FAILS ? "UNKNOWN" : "UNDETERMINED";

			check_cell(grid[i].token, "192.0.2.7", name, lookup, grid[i].host4[lookup]);
			check_cell(grid[i].token, "2001:db8::7", name, lookup, grid[i].host6[lookup]);
			check_cell(grid[i].token, "0.0.0.0", "UNKNOWN", lookup, grid[i].nobody[lookup]);
		}
}

/* What no client could be decided by is reported, and nothing else. */
UNIT_TEST(the_check_doubts_what_no_client_can_be_decided_by)
{
	static const struct {
		const char *token;
		const char *doubted; /* y or n: works, fails, off */
	} cases[] = {
		{ "192.0.2.7", "nnn" }, { "::/0", "nnn" }, { "::ffff:192.0.2.7", "yyy" }, { "*", "nnn" }, { "unknown", "nnn" },
		{ "host.example", "nyy" }, { "nosuch.example", "yyy" }, { "*.example", "nny" }, { "b\xc3\xbc*.example", "yyy" },
		{ "@group", "nyy" }, { "@nosuch", "yyy" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (enum lookup lookup = WORKS; lookup < LOOKUPS; lookup++) {
			const struct host_peer peer = {
				.address = "", .name = lookup == OFF ? "UNDETERMINED" : "", .forward_lookup = lookup != OFF,
				.resolves = grid_resolves, .has_member = grid_has_member, .context = &lookup,
			};
			struct strbuf why = STRBUF_INIT;

			hosts_list_doubts(cases[i].token, &peer, true, &why);
			if ((why.length != 0) != (cases[i].doubted[lookup] == 'y'))
				fail_msg("%s, lookups %d: %s", cases[i].token, lookup, strbuf_text(&why));
			strbuf_free(&why);
		}
}

UNIT_TEST(malformed_tokens_are_reported)
{
	static const char *const good[] = { "", "*", "host.example, @group", "10.1/8", "::1/128", "10.0.0.0/255.255.0.0" };
	static const char *const bad[] = { "10.0.0.0/33", "10.0.0.0/x", "10.0.0.0/", "1.2.3.4.5", "::1/129",
					   "::1/10.0.0.0", "h/8" };
	struct strbuf why = STRBUF_INIT;

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
