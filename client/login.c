/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The way to a daemon: its socket, dialled directly or by a proxy, or given by a command; then the text phase: greetings, early
 * input, module, what it says, authentication (doc/protocol/01-session.md sections 3, 4 and 11).
 */
#include "client/login.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <nettle/base64.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "delta/digest.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/socket.h"
#include "lib/alloc.h"
#include "lib/charset.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/setup.h"

enum {
	DAEMON_PORT = 873,
	PROXY_LINE_MAX = 1023,   /* of an answer, and of our request */
	PROXY_LINES_MAX = 100,
	PROXY_SECONDS = 60,      /* for its answer, if --contimeout says nothing */
};

/* Wait for the event; `end` 0: as long as it takes. --contimeout is said by its exit code alone. */
static void wait_until(int fd, short events, int64_t end)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };
	int64_t left;

	for (;;) {
		left = end ? end - clock_nanoseconds() : -1;
		if (end && left <= 0)
			exit_with(EXIT_CONTIMEOUT);
		if (poll(&poll_fd, 1, end ? (int)((left + CLOCK_MILLISECOND - 1) / CLOCK_MILLISECOND) : -1) > 0)
			return;
	}
}

/* --- connecting --- */

static struct addrinfo *look_up(const char *host, const char *port, int family)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int error;

	hints.ai_family = family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_UNSPEC;
	error = getaddrinfo(host, port, &hints, &found);
	if (error)
		die(EXIT_SOCKETIO, "rsync: getaddrinfo: %s %s: %s", host, port, gai_strerror(error));
	return found;
}

/* Our own end gets the address of --address, if that is one of the family. */
static bool bind_source(int fd, const char *address, int family)
{
	struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found;
	int error = getaddrinfo(address, NULL, &hints, &found), bound;

	if (error)
		die(EXIT_SOCKETIO, "rsync: getaddrinfo %s: %s", address, gai_strerror(error));
	bound = bind(fd, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return bound == 0;
}

/* Non-blocking from here on, as the connection will be. */
static int connect_in_time(int fd, const struct addrinfo *address, int64_t end)
{
	socklen_t length = sizeof(int);
	int error;

	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -1;
	if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
		return 0;
	if (errno != EINPROGRESS && errno != EINTR)
		return -1;
	wait_until(fd, POLLOUT, end);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
		return -1;
	errno = error;
	return error ? -1 : 0;
}

static const char *numeric(const struct addrinfo *address, char text[NI_MAXHOST])
{
	if (getnameinfo(address->ai_addr, address->ai_addrlen, text, NI_MAXHOST, NULL, 0, NI_NUMERICHOST))
		snprintf(text, NI_MAXHOST, "?");
	return text;
}

/* One address; -1, with a line added to `why`. */
static int dial_one(const struct options *options, const char *host, const struct addrinfo *address, int64_t end,
		    struct strbuf *why)
{
	int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol), error;
	char text[NI_MAXHOST];

	if (fd < 0)
		return -1;
	socket_options_apply(fd, options->sockopts ? options->sockopts : "");
	if ((!options->address || bind_source(fd, options->address, address->ai_family)) &&
	    connect_in_time(fd, address, end) == 0) {
		if (options->levels.debug[DEBUG_CONNECT] > 1)
			log_info("Connected to %s (%s)", host, numeric(address, text));
		return fd;
	}
	error = errno;
	strbuf_addf(why, "rsync: [%s] failed to connect to %s (%s): %s (%d)\n", log_role(), host, numeric(address, text),
		    strerror(error), error);
	close(fd);
	return -1;
}

/* All addresses in the order of the resolver; only if none answers, the error of each is reported. */
static int dial(const struct options *options, const char *host, const char *port, int64_t end)
{
	struct addrinfo *found = look_up(host, port, options->ip_family);
	struct strbuf why = STRBUF_INIT;
	int fd = -1;

	for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
		fd = dial_one(options, host, at, end, &why);
	freeaddrinfo(found);
	if (fd < 0) {
		log_lines(L_ERROR, strbuf_text(&why));
		exit_with(EXIT_SOCKETIO);
	}
	strbuf_free(&why);
	return fd;
}

/* --- the proxy: RSYNC_PROXY=[USER:PASSWORD@]HOST:PORT --- */

/* Byte by byte: what follows the last line is the daemon's. */
static void read_proxy_line(int fd, char line[PROXY_LINE_MAX + 1], const char *what, int64_t end)
{
	size_t length = 0;
	ssize_t got;
	char c;

	for (;;) {
		got = recv(fd, &c, 1, 0);
		if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
			wait_until(fd, POLLIN, end);
			continue;
		}
		if (got <= 0 || length == PROXY_LINE_MAX) {
			if (got < 0)
				log_errno(L_ERROR, errno, "failed to read from proxy");
			else if (!got)
				log_error("rsync: [%s] failed to read from proxy: it has closed the connection", log_role());
			else
				log_error("proxy response %s too long", what);
			exit_with(EXIT_SOCKETIO);
		}
		if (c == '\n')
			break;
		line[length++] = c;
	}
	if (length && line[length - 1] == '\r')
		length--;
	line[length] = '\0';
}

/* "HTTP/1.1 200 OK": the class of the answer decides. */
static bool proxy_agrees(const char *line)
{
	if (strncmp(line, "HTTP/", 5) != 0)
		die(EXIT_SOCKETIO, "bad response from proxy -- %s", line);
	line += 5;
	line += strspn(line, "0123456789.");
	line += strspn(line, " ");
	return *line == '2';
}

static void ask_proxy(int fd, const char *host, const char *port, const char *login, int64_t end)
{
	struct strbuf request = STRBUF_INIT;
	char line[PROXY_LINE_MAX + 1];
	int lines = 0;

	strbuf_addf(&request, "CONNECT %s:%s HTTP/1.0\r\n", host, port);
	if (login) {
		char *encoded = xmalloc(BASE64_ENCODE_RAW_LENGTH(strlen(login)) + 1);

		base64_encode_raw(encoded, strlen(login), (const uint8_t *)login);
		encoded[BASE64_ENCODE_RAW_LENGTH(strlen(login))] = '\0';
		strbuf_addf(&request, "Proxy-Authorization: Basic %s\r\n", encoded);
		free(encoded);
	}
	strbuf_add_string(&request, "\r\n");
	if (request.length > PROXY_LINE_MAX)
		die(EXIT_SOCKETIO, "the request to the proxy is longer than %d bytes", PROXY_LINE_MAX);
	const char *bytes = request.data;
	size_t length = request.length;
	ssize_t sent;

	while (length) {
		sent = send(fd, bytes, length, MSG_NOSIGNAL);
		if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
			wait_until(fd, POLLOUT, end);
			continue;
		}
		if (sent < 0) {
			log_errno(L_ERROR, errno, "failed to write to proxy");
			exit_with(EXIT_SOCKETIO);
		}
		bytes += sent;
		length -= (size_t)sent;
	}
	strbuf_free(&request);
	read_proxy_line(fd, line, "line", end);
	if (!proxy_agrees(line))
		die(EXIT_SOCKETIO, "bad response from proxy -- %s", line);
	do {
		read_proxy_line(fd, line, "header line", end);
	} while (*line && ++lines < PROXY_LINES_MAX);
	if (*line)
		die(EXIT_SOCKETIO, "the proxy's answer has more than %d lines", PROXY_LINES_MAX);
}

static int dial_by_proxy(const struct options *options, const char *proxy, const char *host, const char *port, int64_t end)
{
	char *copy = xstrdup(proxy), *at = strrchr(copy, '@'), *place = at ? at + 1 : copy, *colon = strchr(place, ':');
	int fd;

	for (const char *p = host; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f)
			die(EXIT_SOCKETIO, "the host name holds a control character or a blank");
	if (!colon)
		die(EXIT_SOCKETIO, "invalid proxy specification: should be HOST:PORT");
	*colon = '\0';
	if (at)
		*at = '\0';
	fd = dial(options, place, colon + 1, end);
	ask_proxy(fd, host, port, at ? copy : NULL, end ? end : clock_nanoseconds() + PROXY_SECONDS * CLOCK_SECOND);
	free(copy);
	return fd;
}

/* --- a command in place of the network: RSYNC_CONNECT_PROG --- */

static char *expand_command(const char *program, const char *host)
{
	struct strbuf command = STRBUF_INIT;

	if (strchr(program, '%')) {
		/* The host stands in a shell's command: nothing but what host names are made of. */
		static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-%+~";

		if (!*host || strchr("-+~%", *host) || host[strspn(host, good)])
			die(EXIT_SOCKETIO, "unsafe host characters for RSYNC_CONNECT_PROG");
	}
	for (; *program; program++) {
		if (program[0] == '%' && program[1] == 'H')
			strbuf_addf(&command, "'%s'", host);
		else if (program[0] == '%' && program[1] == '%')
			strbuf_add_char(&command, '%');
		else
			strbuf_add_char(&command, *program);
		program += program[0] == '%' && (program[1] == 'H' || program[1] == '%');
	}
	return command.data ? strbuf_detach(&command) : xstrdup("");
}

static int loopback_socket(struct sockaddr_in *own)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof *own;

	*own = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd >= 0 && bind(fd, (struct sockaddr *)own, sizeof *own) == 0 &&
	    getsockname(fd, (struct sockaddr *)own, &length) == 0)
		return fd;
	fs_close(fd);
	return -1;
}

/* Somebody else on this machine could be faster than we are: nobody is taken but the socket with this address. */
static int accept_own(int listening, const struct sockaddr_in *own)
{
	struct sockaddr_in peer;
	socklen_t length;
	int fd;

	for (;;) {
		length = sizeof peer;
		fd = accept4(listening, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC);
		if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
			return -1;
		if (fd >= 0 && peer.sin_port == own->sin_port && peer.sin_addr.s_addr == own->sin_addr.s_addr)
			return fd;
		fs_close(fd);
	}
}

/* Two ends of a TCP connection on the loopback interface. -1 with errno. */
static int loopback_pair(int ends[2])
{
	struct sockaddr_in listens, connects;
	int listening = loopback_socket(&listens);

	ends[0] = loopback_socket(&connects);
	ends[1] = -1;
	if (listening >= 0 && ends[0] >= 0 && listen(listening, 8) == 0 &&
	    connect(ends[0], (struct sockaddr *)&listens, sizeof listens) == 0)
		ends[1] = accept_own(listening, &connects);
	fs_close(listening);
	if (ends[1] < 0)
		fs_close(ends[0]);
	return ends[1] < 0 ? -1 : 0;
}

/*
 * A daemon that the command starts is to see a client that its access lists can name (doc/protocol/09-since-3.5.0.md
 * section 10). Where there is no loopback interface, other commands can do without.
 */
static int make_pair(const struct options *options, int ends[2])
{
	if (loopback_pair(ends) < 0)
		return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
	for (int i = 0; i < 2; i++)
		socket_options_apply(ends[i], options->sockopts ? options->sockopts : "");
	return 0;
}

int socket_dial(const struct options *options, const struct remote *remote)
{
	const char *program = getenv("RSYNC_CONNECT_PROG"), *proxy = getenv("RSYNC_PROXY");
	int64_t end = options->contimeout > 0 ? clock_nanoseconds() + options->contimeout * CLOCK_SECOND : 0;
	char port[16];

	snprintf(port, sizeof port, "%d", remote->port ? remote->port : options->port ? options->port : DAEMON_PORT);
	if (program && *program) {
		/* It ends when the connection does; how is of no concern, so nobody waits for it. */
		char *command = expand_command(program, remote->host);
		int ends[2];
		pid_t child;

		if (make_pair(options, ends) < 0 || (child = fork()) < 0) {
			log_errno(L_ERROR, errno, "cannot run RSYNC_CONNECT_PROG");
			exit_with(EXIT_SOCKETIO);
		}
		if (child == 0) {
			const char *shell = getenv("RSYNC_SHELL");
			sigset_t none;

			sigemptyset(&none);
			sigprocmask(SIG_SETMASK, &none, NULL);
			signal(SIGPIPE, SIG_DFL);
			if (dup2(ends[1], 0) < 0 || dup2(ends[1], 1) < 0)
				_exit(127);
			execl(shell ? shell : "/bin/sh", shell ? shell : "sh", "-c", command, (char *)NULL);
			_exit(127);
		}
		close(ends[1]);
		free(command);
		return ends[0];
	}
	char *ascii = idn_to_ascii(remote->host, false);
	const char *host = ascii ? ascii : remote->host;
	bool has_proxy = proxy && *proxy;

	if (!has_proxy && options->levels.debug[DEBUG_CONNECT])
		log_info("opening tcp connection to %s port %s", remote->host, port);
	int fd = has_proxy ? dial_by_proxy(options, proxy, host, port, end) : dial(options, host, port, end);

	free(ascii);
	return fd;
}

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

static const char *choose_digest(const char *theirs, int protocol)
{
	const char *digest = auth_digest_choose(theirs, session_caps_of(protocol).md5);

	if (digest)
		return digest;
	log_error("Failed to negotiate a daemon auth checksum choice.");
	log_error("Server list: %s", theirs);
	log_error("Client list: %s", greeting_digests());
	exit_with(EXIT_UNSUPPORTED);
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

static const char *find_user(const struct remote *remote)
{
	const char *user = remote->user;

	if (!user || !*user)
		user = getenv("USER");
	if (!user || !*user)
		user = getenv("LOGNAME");
	return user && *user ? user : "nobody";
}

static void answer(struct wire *wire, const struct options *options, const struct remote *remote, const char *digests,
		   int protocol, const char *challenge)
{
	const char *digest = choose_digest(digests, protocol);
	char password[PASSWORD_MAX + 1], response[AUTH_TEXT_MAX], *line;

	const char *environment = getenv("RSYNC_PASSWORD");

	if (options->password_file) {
		const char *file = options->password_file;
		bool is_stdin = strcmp(file, "-") == 0;
		int fd = is_stdin ? STDIN_FILENO : fs_operator_open(file, O_RDONLY | options_link_flag(options), 0);

		if (fd < 0) {
			log_errno(L_ERROR, errno, "could not open password file %s", file);
			exit_with(EXIT_SYNTAX);
		}
		if (!is_stdin) {
			/* A file that others can read is no place for a password. */
			struct stat st;

			if (fstat(fd, &st) < 0)
				die(EXIT_SYNTAX, "rsync: [%s] could not stat the password file: %s (%d)", log_role(),
				    strerror(errno), errno);
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
	line = xasprintf("%s %s\n", find_user(remote), response);
	wire_write(wire, line, strlen(line));
	wire_flush(wire);
	free(line);
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

/* --- what it answers --- */

/* Lines up to the one that lets us in. Those that are not the protocol's are for the user: the message of the day, a list of
 * modules. */
static void await_admission(struct connection *connection, const struct options *options, const struct remote *remote,
			    const char *digests)
{
	static const char challenge[] = "@RSYNCD: AUTHREQD ";
	char line[LINE_SIZE];

	for (;;) {
		read_line(connection->wire, line, "didn't get server startup line");
		if (strncmp(line, challenge, sizeof challenge - 1) == 0)
			answer(connection->wire, options, remote, digests, connection->protocol, line + sizeof challenge - 1);
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
	if (options->early_input) {
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
			wire_write(connection->wire, line.data, line.length);
			wire_write(connection->wire, bytes.data, bytes.length);
		}
		strbuf_free(&line);
		strbuf_free(&bytes);
	}
	wire_write(connection->wire, remote->path, strcspn(remote->path, "/"));
	wire_write_byte(connection->wire, '\n');
	wire_flush(connection->wire);
	await_admission(connection, options, remote, digests);
	connection->ignores_shell = false;
}
