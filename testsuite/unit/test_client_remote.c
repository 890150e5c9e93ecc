/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Host specifications, which operands go together, and the answers to a daemon's challenge. */
#include "client/login.h"
#include "expect_die.h"
#include "options/remote.h"
#include "options_support.h"

#include "client.h"
#include "delta/digest.h"
#include "testsuite/unit/wire_memory.h"

enum { SHELL = REMOTE_SHELL, DAEMON = REMOTE_DAEMON, LOCAL = -1 };

/* doc/protocol/06-command-line.md section 6 */
static const struct { const char *operand; int kind; const char *user, *host; int port; const char *path; } operands[] = {
	{ "h:x", SHELL, NULL, "h", 0, "x" }, { "u@h:x", SHELL, "u", "h", 0, "x" }, { "u@v@h:x", SHELL, "u@v", "h", 0, "x" },
	{ "@h:x", SHELL, "", "h", 0, "x" }, { "h:", SHELL, NULL, "h", 0, "" }, { ":x", SHELL, NULL, "", 0, "x" },
	{ "C:\\x", SHELL, NULL, "C", 0, "\\x" }, { "a b:x", SHELL, NULL, "a b", 0, "x" }, { "h:/a:b", SHELL, NULL, "h", 0,
	  "/a:b" },
	{ "[::1]:x", SHELL, NULL, "::1", 0, "x" }, { "u@[::1]:x", SHELL, "u", "::1", 0, "x" },
	{ "[fe80::1%eth0]:x", SHELL, NULL, "fe80::1%eth0", 0, "x" }, { "[::1]::m", DAEMON, NULL, "::1", 0, "m" },
	{ "h::m/p", DAEMON, NULL, "h", 0, "m/p" }, { "h::", DAEMON, NULL, "h", 0, "" }, { "::m", DAEMON, NULL, "", 0, "m" },
	{ "u@h::m", DAEMON, "u", "h", 0, "m" }, { "rsync://h", DAEMON, NULL, "h", 0, "" }, { "rsync://h/", DAEMON, NULL, "h", 0,
	  "" },
	{ "RSYNC://h:/m", DAEMON, NULL, "h", 0, "m" }, { "rsync://h:99/m/p", DAEMON, NULL, "h", 99, "m/p" },
	{ "rsync://h:99", DAEMON, NULL, "h", 99, "" }, { "rsync://[::1]:88/m", DAEMON, NULL, "::1", 88, "m" },
	{ "rsync://[::1]", DAEMON, NULL, "::1", 0, "" }, { "rsync://u@h/m", DAEMON, "u", "h", 0, "m" },
	{ "rsync://h//m", DAEMON, NULL, "h", 0, "/m" }, { "rsync://h/m@x:y", DAEMON, NULL, "h", 0, "m@x:y" },
	{ "rsync://h:abc/m", SHELL, NULL, "rsync", 0, "//h:abc/m" }, { "rsync://h:99x/m", SHELL, NULL, "rsync", 0,
	  "//h:99x/m" },
	{ "rsync://h:99999/m", SHELL, NULL, "rsync", 0, "//h:99999/m" }, { "rsync://u:p@h/m", SHELL, NULL, "rsync", 0,
	  "//u:p@h/m" },
	{ "rsync:/h/m", SHELL, NULL, "rsync", 0, "/h/m" }, { "./h:x", LOCAL, 0, 0, 0, 0 }, { "/h:x", LOCAL, 0, 0, 0, 0 },
	{ "a/b:c", LOCAL, 0, 0, 0, 0 }, { "x", LOCAL, 0, 0, 0, 0 }, { "", LOCAL, 0, 0, 0, 0 }, { "a@b", LOCAL, 0, 0, 0, 0 },
	{ "[::1]x:y", LOCAL, 0, 0, 0, 0 }, { "[::1]", LOCAL, 0, 0, 0, 0 }, { "[]:x", LOCAL, 0, 0, 0, 0 }, { "[1:x", LOCAL, 0, 0,
	  0, 0 },
	{ "x[1]:y", LOCAL, 0, 0, 0, 0 }, { "u@/h:x", LOCAL, 0, 0, 0, 0 },
};

static bool same(const char *a, const char *b)
{
	return !a || !b ? a == b : strcmp(a, b) == 0;
}

UNIT_TEST(operands_are_taken_apart)
{
	for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
		struct remote remote;
		bool found = remote_parse(&remote, operands[i].operand);

		if (found != (operands[i].kind != LOCAL) || argument_is_remote(operands[i].operand) != found)
			fail_msg("%s is %sremote", operands[i].operand, found ? "" : "not ");
		if (!found)
			continue;
		if ((int)remote.kind != operands[i].kind || !same(remote.user, operands[i].user) ||
		    !same(remote.host, operands[i].host) || remote.port != operands[i].port ||
		    !same(remote.path, operands[i].path))
			fail_msg("%s: kind %d user %s host %s port %d path %s", operands[i].operand, remote.kind, remote.user,
				 remote.host, remote.port, remote.path);
		remote_free(&remote);
	}
}

struct taken { struct parsed parsed; struct remote remote; struct args paths; bool push, found; };

static void take(struct taken *taken, const char *line)
{
	assert_parses(&taken->parsed, line);
	taken->found = remote_operands(&taken->parsed.options, &taken->remote, &taken->paths, &taken->push);
}

static void drop(struct taken *taken)
{
	if (taken->found)
		remote_free(&taken->remote);
	args_free(&taken->paths);
	parsed_free(&taken->parsed);
}

UNIT_TEST(which_operands_are_the_servers)
{
	struct taken taken;

	take(&taken, "a b");
	assert_false(taken.found);
	drop(&taken);
	take(&taken, "a b h:c");
	assert_true(taken.found && taken.push);
	assert_int_equal(taken.paths.count, 1);
	assert_string_equal(taken.paths.items[0], "c");
	drop(&taken);
	take(&taken, "u@h::m/a ::m/b h::m d");
	assert_true(taken.found && !taken.push);
	assert_int_equal(taken.paths.count, 3);
	assert_string_equal(taken.paths.items[1], "m/b");
	assert_string_equal(taken.paths.items[2], "m");
	assert_string_equal(taken.remote.user, "u");
	drop(&taken);
	take(&taken, "-e sh rsync://h/m");
	assert_true(taken.found && !taken.push && taken.remote.kind == REMOTE_DAEMON_OVER_SHELL);
	drop(&taken);
}

UNIT_TEST(operands_that_do_not_go_together)
{
	static const struct { const char *line, *error; int code; } cases[] = {
		{ "h:a h:b", "The source and destination cannot both be remote.", 1 },
		{ "a h:b c", "Unexpected remote arg: h:b", 1 }, { "a h:b h:c", "Unexpected remote arg: h:b", 1 },
		{ "h:a b c", "Unexpected local arg: b\nIf arg is a remote file/dir, prefix it with a colon (:).", 1 },
		{ "h:a i:b c", "All source args must come from the same machine.", 1 },
		{ "h:a h::b c", "All source args must use the same hostspec format.", 1 },
		{ "rsync://h:1/a rsync://h:2/b c", "All source args must use the same port number.", 1 },
		{ "-r -- -h:a b", "Invalid remote host: hostnames may not start with '-'.", 1 },
		{ "h::/m d", "ERROR: The remote path must start with a module name not a /", 5 },
		{ "--password-file=x h:a b", "The --password-file option may only be used when accessing an rsync daemon.", 1 },
		{ "--contimeout=5 h:a b", "The --contimeout option may only be used when connecting to an rsync daemon.", 1 },
		{ "--files-from=i:x h:a b", "--files-from hostname is not the same as the transfer hostname", 1 },
		{ "h:a  b", "Empty source arg specified.", 1 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct taken taken = { .found = false };

		expect_die(cases[i].code, cases[i].error, take(&taken, cases[i].line));
		parsed_free(&taken.parsed);
	}
	log_set_role("client");
}

/* doc/protocol/01-session.md section 4.3 */
UNIT_TEST(answers_to_a_challenge)
{
	static const struct { const char *digest, *response; } vectors[] = {
		{ "sha512", "zizOx7g5sMcr9ymJMKekCvq3WlCtqhefgb/eJqIr0yEkD3T2JBH4fvV2uBWYL1c+U1QsdWmsc0KqZH+dXsrlYg" },
		{ "sha256", "P4evBcvjmJR+9bAp5/LjCrpoZUWW29htRtxW/gRy3oc" }, { "sha1", "nPXkYd5K5AkRyLAWhvPcx8S8aAQ" },
		{ "md5", "lmw0eSdZXyzGHcR6g5+7mg" }, { "md4", "WUTRWfWQVOU3tTMI4h5lkA" }, { "", "sd44BIHe/Wt+hg+4vnui/g" },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		char response[AUTH_TEXT_MAX];

		auth_response(vectors[i].digest, "sekrit", "AAAAAAAAAAAAAAAAAAAAAA", response);
		assert_string_equal(response, vectors[i].response);
	}
}

/* Whose list of digests, which version: what the client then answers with. */
UNIT_TEST(the_digest_is_the_strongest_in_common)
{
	static const char challenge[] = "@RSYNCD: AUTHREQD AAAAAAAAAAAAAAAAAAAAAA\n@RSYNCD: OK\n";
	static const struct { const char *digests; int protocol; const char *line; } cases[] = {
		{ "md4 md5 SHA1", 31, "me nPXkYd5K5AkRyLAWhvPcx8S8aAQ\n" }, { "foo md5", 32, "me lmw0eSdZXyzGHcR6g5+7mg\n" },
		{ NULL, 30, "me lmw0eSdZXyzGHcR6g5+7mg\n" }, { NULL, 29, "me sd44BIHe/Wt+hg+4vnui/g\n" },
		{ "md4", 29, "me WUTRWfWQVOU3tTMI4h5lkA\n" },
	};
	struct remote remote;
	struct parsed parsed;

	setenv("RSYNC_PASSWORD", "sekrit", 1);
	assert_parses(&parsed, "me@h::m d");
	assert_true(remote_parse(&remote, "me@h::m"));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct connection connection = {
			.wire = wire_new_memory(challenge, sizeof challenge - 1), .protocol = cases[i].protocol,
		};
		const uint8_t *bytes;
		size_t length;

		daemon_log_in(&connection, &parsed.options, &remote, cases[i].digests);
		bytes = wire_test_output(connection.wire, &length);
		assert_int_equal(length, 2 + strlen(cases[i].line));
		assert_memory_equal(bytes, "m\n", 2);
		assert_memory_equal(bytes + 2, cases[i].line, length - 2);
		wire_free(connection.wire);
	}
	struct connection refused = { .wire = wire_new_memory(challenge, sizeof challenge - 1), .protocol = 32 };

	expect_die(4, "Server list: foo bar\nClient list: sha512 sha256 sha1 md5 md4",
		   daemon_log_in(&refused, &parsed.options, &remote, "foo bar"));
	wire_free(refused.wire);
	remote_free(&remote);
	parsed_free(&parsed);
	unsetenv("RSYNC_PASSWORD");
}
