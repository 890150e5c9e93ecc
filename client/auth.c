/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The answer to a daemon's challenge: which digest, whose password (doc/protocol/01-session.md section 4). */
#include "client/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "delta/auth_digest.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/greeting.h"

enum { PASSWORD_MAX = 511 };

/* --- the digest --- */

static const char *choose_digest(const char *theirs, int protocol)
{
	const char *digest = auth_digest_choose(theirs, protocol);

	if (digest)
		return digest;
	log_error("Failed to negotiate a daemon auth checksum choice.");
	log_error("Server list: %s", theirs);
	log_error("Client list: %s", greeting_digests());
	exit_with(EXIT_UNSUPPORTED);
}

/* --- the password --- */

/* A file that others can read is no place for a password. */
static void check_password_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		die(EXIT_SYNTAX, "rsync: [%s] could not stat the password file: %s (%d)", log_role(), strerror(errno), errno);
	if (st.st_mode & 06)
		die(EXIT_SYNTAX, "ERROR: password file must not be other-accessible");
	if (geteuid() == 0 && st.st_uid != 0)
		die(EXIT_SYNTAX, "ERROR: password file must be owned by root when running as root");
}

static bool has_line(const char *bytes, size_t length)
{
	size_t start = 0;

	while (start < length && (bytes[start] == '\r' || bytes[start] == '\n'))
		start++;
	return memchr(bytes + start, '\n', length - start) != NULL;
}

/* The first line that is not empty, NUL-terminated; bytes beyond PASSWORD_MAX are not read. */
static void read_first_line(int fd, char password[PASSWORD_MAX + 1])
{
	size_t length = 0, skipped;
	ssize_t got;

	while (length < PASSWORD_MAX && !has_line(password, length)) {
		got = read(fd, password + length, PASSWORD_MAX - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	password[length] = '\0';
	skipped = strspn(password, "\r\n");
	memmove(password, password + skipped, length + 1 - skipped);
	password[strcspn(password, "\r\n")] = '\0';
}

static void password_from_file(const struct options *options, char password[PASSWORD_MAX + 1])
{
	const char *file = options->password_file;
	bool is_stdin = strcmp(file, "-") == 0;
	int fd = is_stdin ? STDIN_FILENO : fs_operator_open(file, O_RDONLY | options_link_flag(options), 0);

	if (fd < 0) {
		log_errno(L_ERROR, errno, "could not open password file %s", file);
		exit_with(EXIT_SYNTAX);
	}
	if (!is_stdin)
		check_password_file(fd);
	read_first_line(fd, password);
	if (!is_stdin)
		close(fd);
	if (!*password)
		die(EXIT_SYNTAX, "ERROR: failed to read a password from %s", file);
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
	if (terminal >= 0)
		close(terminal);
}

static void find_password(const struct options *options, char password[PASSWORD_MAX + 1])
{
	const char *environment = getenv("RSYNC_PASSWORD");

	if (options->password_file)
		password_from_file(options, password);
	else if (environment)
		snprintf(password, PASSWORD_MAX + 1, "%s", environment);
	else
		password_from_terminal(password);
}

static const char *find_user(const struct remote *remote)
{
	const char *user = remote->user;

	if (!user || !*user)
		user = getenv("USER");
	if (!user || !*user)
		user = getenv("LOGNAME");
	return user && *user ? user : "nobody";
}

void daemon_answer(struct wire *wire, const struct options *options, const struct remote *remote, const char *digests,
		int protocol,
		   const char *challenge)
{
	const char *digest = choose_digest(digests, protocol);
	char password[PASSWORD_MAX + 1], response[AUTH_TEXT_MAX], *line;

	find_password(options, password);
	auth_response(digest, password, challenge, response);
	explicit_bzero(password, sizeof password);
	line = xasprintf("%s %s\n", find_user(remote), response);
	wire_write(wire, line, strlen(line));
	wire_flush(wire);
	free(line);
}
