/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A daemon's socket: dialled directly or by a proxy, or given by a command (doc/protocol/01-session.md section 11). */
#include "client/socket.h"

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
#include <unistd.h>

#include "fs/file.h"
#include "fs/socket.h"
#include "lib/alloc.h"
#include "lib/charset.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"

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
	int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol), error, bound = 0;
	char text[NI_MAXHOST];

	if (fd < 0)
		return -1;
	socket_options_apply(fd, options->sockopts ? options->sockopts : "");
	if (options->address) {
		/* Our own end gets the address of --address, if that is one of the family. */
		struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found;

		hints.ai_family = address->ai_family;
		error = getaddrinfo(options->address, NULL, &hints, &found);
		if (error)
			die(EXIT_SOCKETIO, "rsync: getaddrinfo %s: %s", options->address, gai_strerror(error));
		bound = bind(fd, found->ai_addr, found->ai_addrlen);
		error = errno;
		freeaddrinfo(found);
		errno = error;
	}
	if (bound == 0 && connect_in_time(fd, address, end) == 0) {
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
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	struct strbuf why = STRBUF_INIT;
	int fd = -1, error;

	hints.ai_family = options->ip_family == 4 ? AF_INET : options->ip_family == 6 ? AF_INET6 : AF_UNSPEC;
	error = getaddrinfo(host, port, &hints, &found);
	if (error)
		die(EXIT_SOCKETIO, "rsync: getaddrinfo: %s %s: %s", host, port, gai_strerror(error));
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
	const char *bytes = request.data, *class;
	size_t length = request.length;
	ssize_t sent;

	while (length) {
		sent = send(fd, bytes, length, MSG_NOSIGNAL);
		if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
			wait_until(fd, POLLOUT, end);
			continue;
		}
		if (sent < 0)
			die_errno(EXIT_SOCKETIO, errno, "failed to write to proxy");
		bytes += sent;
		length -= (size_t)sent;
	}
	strbuf_free(&request);
	read_proxy_line(fd, line, "line", end);
	/* "HTTP/1.1 200 OK": the class of the answer decides. */
	class = strncmp(line, "HTTP/", 5) == 0 ? line + 5 : "";
	class += strspn(class, "0123456789.");
	class += strspn(class, " ");
	if (*class != '2')
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

int socket_dial(const struct options *options, const struct remote *remote)
{
	const char *program = getenv("RSYNC_CONNECT_PROG"), *proxy = getenv("RSYNC_PROXY");
	int64_t end = options->contimeout > 0 ? clock_nanoseconds() + options->contimeout * CLOCK_SECOND : 0;
	char port[16];

	snprintf(port, sizeof port, "%d", remote->port ? remote->port : options->port ? options->port : DAEMON_PORT);
	if (program && *program) {
		/* It ends when the connection does; how is of no concern, so nobody waits for it. */
		char *command = expand_command(program, remote->host);
		bool is_tcp;
		int ends[2];
		pid_t child;

		/* A daemon that the command starts is to see a client that its access lists can name
		 * (doc/protocol/09-since-3.5.0.md section 10). Where there is no loopback interface, other commands can do
		 * without. */
		is_tcp = loopback_pair(ends) == 0;
		for (int i = 0; is_tcp && i < 2; i++)
			socket_options_apply(ends[i], options->sockopts ? options->sockopts : "");
		if ((!is_tcp && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) || (child = fork()) < 0)
			die_errno(EXIT_SOCKETIO, errno, "cannot run RSYNC_CONNECT_PROG");
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
