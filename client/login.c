/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The text phase with a daemon: greetings, early input, module, what it says, authentication (doc/protocol/01-session.md
 * sections 3 and 4).
 */
#include "client/login.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "delta/digest.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/setup.h"

enum {
	LINE_SIZE = 5119,         /* a daemon's line with its NUL */
	EARLY_INPUT_MAX = 5120,
	PASSWORD_MAX = 511,
};

static void read_line(struct wire *wire, char line[LINE_SIZE], const char *missing)
{
	bool bad;

	if (!wire_read_line(wire, line, LINE_SIZE, '\n', -1, &bad))
		die(EXIT_STARTCLIENT, "rsync: %s", missing);
}

/* --- the answer to a challenge: which digest, whose password --- */

/* The first line that is not empty, NUL-terminated; bytes beyond PASSWORD_MAX are not read. */
static void read_first_line(int fd, char password[PASSWORD_MAX + 1])
{
	size_t length = 0, skipped = 0;
	ssize_t got;

	while (length < PASSWORD_MAX && !memchr(password + skipped, '\n', length - skipped)) {
		got = read(fd, password + length, PASSWORD_MAX - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
		password[length] = '\0';
		skipped = strspn(password, "\r\n");
	}
	password[length] = '\0';
	memmove(password, password + skipped, length + 1 - skipped);
	password[strcspn(password, "\r\n")] = '\0';
}

/* From the terminal, without echo. Where there is none, from standard input, as it comes. */
static void password_from_terminal(char password[PASSWORD_MAX + 1])
{
	int terminal = fs_operator_open("/dev/tty", O_RDWR | O_NOCTTY, 0);
	int fd = terminal >= 0 ? terminal : STDIN_FILENO;
	struct termios shown, hidden;
	bool hides = tcgetattr(fd, &shown) == 0;

	if (hides) {
		hidden = shown;
		hidden.c_lflag &= ~(tcflag_t)ECHO;
		tcsetattr(fd, TCSAFLUSH, &hidden);
	}
	dprintf(terminal >= 0 ? terminal : STDERR_FILENO, "Password: ");
	read_first_line(fd, password);
	if (hides) {
		tcsetattr(fd, TCSAFLUSH, &shown);
		dprintf(fd, "\n");
	}
	fs_close(terminal);
}

static void answer(struct wire *wire, const struct options *options, const struct remote *remote, const char *digests,
		   int protocol, const char *challenge)
{
	const char *digest = auth_digest_choose(digests, session_caps_of(protocol).md5);
	const char *environment = getenv("RSYNC_PASSWORD"), *user = remote->user;
	char password[PASSWORD_MAX + 1], response[AUTH_TEXT_MAX], *line;

	if (!digest) {
		log_error("Failed to negotiate a daemon auth checksum choice.");
		log_error("Server list: %s", digests);
		log_error("Client list: %s", greeting_digests());
		exit_with(EXIT_UNSUPPORTED);
	}
	if (options->password_file) {
		const char *file = options->password_file;
		bool is_stdin = strcmp(file, "-") == 0;
		int fd = is_stdin ? STDIN_FILENO : fs_operator_open(file, O_RDONLY | options_link_flag(options), 0);

		if (fd < 0)
			die_errno(EXIT_SYNTAX, errno, "could not open password file %s", file);
		if (!is_stdin) {
			/* A file that others can read is no place for a password. */
			struct stat st;

			if (fstat(fd, &st) < 0)
				die_errno(EXIT_SYNTAX, errno, "could not stat the password file");
			if (st.st_mode & 06)
				die(EXIT_SYNTAX, "ERROR: password file must not be other-accessible");
			if (geteuid() == 0 && st.st_uid != 0)
				die(EXIT_SYNTAX, "ERROR: password file must be owned by root when running as root");
		}
		read_first_line(fd, password);
		if (!is_stdin)
			close(fd);
		if (!*password)
			die(EXIT_SYNTAX, "ERROR: failed to read a password from %s", file);
	} else if (environment)
		snprintf(password, PASSWORD_MAX + 1, "%s", environment);
	else
		password_from_terminal(password);
	auth_response(digest, password, challenge, response);
	explicit_bzero(password, sizeof password);
	if (!user || !*user)
		user = getenv("USER");
	if (!user || !*user)
		user = getenv("LOGNAME");
	line = xasprintf("%s %s\n", user && *user ? user : "nobody", response);
	wire_write(wire, line, strlen(line));
	wire_flush(wire);
	free(line);
}

/* --- greetings --- */

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
	connection->protocol = greeting_negotiate(&greeting, options->max_protocol);
	if (!connection->protocol && (greeting.version < PEER_PROTOCOL_MIN || greeting.version > PEER_PROTOCOL_MAX))
		setup_refuse_version();
	if (!connection->protocol)
		die(EXIT_PROTOCOL, "the daemon speaks protocol %d at most, but %d is the least that this side supports",
		    greeting.version, PROTOCOL_MIN);
	connection->peer_version = greeting.version;
	/* From here on it is the daemon that says how this ends. */
	connection->ignores_shell = true;
	return greeting.digests ? xstrdup(greeting.digests) : NULL;
}

/* --- what it answers --- */

void daemon_log_in(struct connection *connection, const struct options *options, const struct remote *remote,
		const char *digests)
{
	static const char challenge[] = "@RSYNCD: AUTHREQD ";
	char line[LINE_SIZE];

	if (options->early_input) {
		const char *file = options->early_input;
		struct strbuf bytes = STRBUF_INIT;
		char *before;

		if (fs_operator_read(file, options_link_flag(options), EARLY_INPUT_MAX, &bytes) < 0) {
			if (errno == EFBIG)
				die(EXIT_STARTCLIENT, "%s is > %d bytes.", file, EARLY_INPUT_MAX);
			die_errno(EXIT_STARTCLIENT, errno, "failed to open %s", file);
		}
		if (bytes.length) {
			before = xasprintf("#early_input=%zu\n", bytes.length);
			wire_write(connection->wire, before, strlen(before));
			wire_write(connection->wire, bytes.data, bytes.length);
			free(before);
		}
		strbuf_free(&bytes);
	}
	wire_write(connection->wire, remote->path, strcspn(remote->path, "/"));
	wire_write_byte(connection->wire, '\n');
	wire_flush(connection->wire);
	/* Lines up to the one that lets us in. Those that are not the protocol's are for the user: the message of the day, a
	 * list of modules. */
	for (;;) {
		read_line(connection->wire, line, "didn't get server startup line");
		if (strcmp(line, "@RSYNCD: OK") == 0)
			break;
		if (strncmp(line, challenge, sizeof challenge - 1) == 0)
			answer(connection->wire, options, remote, digests, connection->protocol, line + sizeof challenge - 1);
		else if (strcmp(line, "@RSYNCD: EXIT") == 0)
			exit_with(EXIT_OK);
		else if (strncmp(line, "@ERROR", 6) == 0)
			die(EXIT_STARTCLIENT, "%s", line);
		else if (options->motd)
			log_info("%s", line);
	}
	connection->ignores_shell = false;
}
