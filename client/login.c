/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The text phase with a daemon: greetings, early input, module, what it says, authentication (doc/protocol/01-session.md
 * sections 3 and 4).
 */
#include "client/login.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/auth.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/greeting.h"
#include "wire/setup.h"

enum {
	LINE_SIZE = 5119,         /* a daemon's line with its NUL */
	EARLY_INPUT_MAX = 5120,
};

static void read_line(struct wire *wire, char line[LINE_SIZE], const char *missing)
{
	bool bad;

	if (!wire_read_line(wire, line, LINE_SIZE, '\n', -1, &bad))
		die(EXIT_STARTCLIENT, "rsync: %s", missing);
}

/* --- greetings --- */

static int negotiate(const struct greeting *greeting, int ours)
{
	int protocol = greeting_negotiate(greeting, ours);

	if (protocol)
		return protocol;
	if (greeting->version < PEER_PROTOCOL_MIN || greeting->version > PEER_PROTOCOL_MAX)
		setup_refuse_version();
	die(EXIT_PROTOCOL, "the daemon speaks protocol %d at most, but %d is the least that this side supports",
		greeting->version,
	    PROTOCOL_MIN);
}

char *daemon_greet(struct connection *connection, const struct options *options)
{
	struct greeting greeting;
	char line[LINE_SIZE];

	wire_write(connection->wire, line, greeting_format(line, sizeof line, options->max_protocol));
	wire_flush(connection->wire);
	read_line(connection->wire, line, "did not see server greeting");
	switch (greeting_parse(&greeting, line)) {
	case GREETING_OK:
		break;
	case GREETING_MALFORMED:
		die(EXIT_STARTCLIENT, "rsync: server sent \"%s\" rather than greeting", line);
	case GREETING_NO_SUBPROTOCOL:
		die(EXIT_STARTCLIENT, "rsync: the server omitted the subprotocol value: %s", line);
	case GREETING_NO_DIGESTS:
		die(EXIT_STARTCLIENT, "rsync: the server omitted the digest name list: %s", line);
	}
	connection->protocol = negotiate(&greeting, options->max_protocol);
	connection->peer_version = greeting.version;
	/* From here on it is the daemon that says how this ends. */
	connection->ignores_shell = true;
	return greeting.digests ? xstrdup(greeting.digests) : NULL;
}

/* --- what we send --- */

static void send_early_input(struct wire *wire, const struct options *options)
{
	const char *file = options->early_input;
	struct strbuf bytes = STRBUF_INIT, line = STRBUF_INIT;

	if (fs_operator_read(file, options_link_flag(options), EARLY_INPUT_MAX, &bytes) < 0) {
		if (errno == EFBIG)
			die(EXIT_STARTCLIENT, "%s is > %d bytes.", file, EARLY_INPUT_MAX);
		log_errno(L_ERROR, errno, "failed to open %s", file);
		exit_with(EXIT_STARTCLIENT);
	}
	if (bytes.length) {
		strbuf_addf(&line, "#early_input=%zu\n", bytes.length);
		wire_write(wire, line.data, line.length);
		wire_write(wire, bytes.data, bytes.length);
	}
	strbuf_free(&line);
	strbuf_free(&bytes);
}

static void send_module(struct wire *wire, const char *path)
{
	wire_write(wire, path, strcspn(path, "/"));
	wire_write_byte(wire, '\n');
	wire_flush(wire);
}

/* --- what it answers --- */

static bool take_challenge(const char *line, const char **challenge)
{
	static const char wanted[] = "@RSYNCD: AUTHREQD ";

	*challenge = line + sizeof wanted - 1;
	return strncmp(line, wanted, sizeof wanted - 1) == 0;
}

/* Lines up to the one that lets us in. Those that are not the protocol's are for people: the message of the day, a list of
 * modules. */
static void await_admission(struct connection *connection, const struct options *options, const struct remote *remote,
			    const char *digests)
{
	const char *challenge;
	char line[LINE_SIZE];

	for (;;) {
		read_line(connection->wire, line, "didn't get server startup line");
		if (take_challenge(line, &challenge))
			daemon_answer(connection->wire, options, remote, digests, connection->protocol, challenge);
		else if (strcmp(line, "@RSYNCD: OK") == 0)
			return;
		else if (strcmp(line, "@RSYNCD: EXIT") == 0)
			exit_with(EXIT_OK);
		else if (strncmp(line, "@ERROR", 6) == 0)
			die(EXIT_STARTCLIENT, "%s", line);
		else if (options->motd)
			log_info("%s", line);
	}
}

void daemon_log_in(struct connection *connection, const struct options *options, const struct remote *remote,
		const char *digests)
{
	if (options->early_input)
		send_early_input(connection->wire, options);
	send_module(connection->wire, remote->path);
	await_admission(connection, options, remote, digests);
	connection->ignores_shell = false;
}
