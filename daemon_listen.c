/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Listening sockets, their options, and systemd's two environment variables. */
#include "daemon_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/alloc.h"
#include "lib/log.h"
#include "lib/strbuf.h"

#define FIRST_PASSED_FD 3

/* --- socket options --- */

static const struct {
	const char *name;
	int level, option;
	int fixed; /* the only value, or 0: the text has one (default 1) */
} socket_options[] = {
	{ "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 0 },
	{ "SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR, 0 },
	{ "SO_BROADCAST", SOL_SOCKET, SO_BROADCAST, 0 },
	{ "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 0 },
	{ "IPTOS_LOWDELAY", IPPROTO_IP, IP_TOS, IPTOS_LOWDELAY },
	{ "IPTOS_THROUGHPUT", IPPROTO_IP, IP_TOS, IPTOS_THROUGHPUT },
	{ "SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 0 },
	{ "SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 0 },
	{ "SO_SNDLOWAT", SOL_SOCKET, SO_SNDLOWAT, 0 },
	{ "SO_RCVLOWAT", SOL_SOCKET, SO_RCVLOWAT, 0 },
	{ "SO_SNDTIMEO", SOL_SOCKET, SO_SNDTIMEO, 0 },
	{ "SO_RCVTIMEO", SOL_SOCKET, SO_RCVTIMEO, 0 },
};

static int set_option(int fd, size_t index, int value)
{
	struct timeval seconds = { value, 0 };
	int option = socket_options[index].option, level = socket_options[index].level;

	if (level == SOL_SOCKET && (option == SO_SNDTIMEO || option == SO_RCVTIMEO))
		return setsockopt(fd, level, option, &seconds, sizeof seconds);
	return setsockopt(fd, level, option, &value, sizeof value);
}

static void apply_option(int fd, char *word)
{
	const size_t count = sizeof socket_options / sizeof socket_options[0];
	char *value = strchr(word, '=');
	int number = value ? atoi(value + 1) : 1;
	size_t i;

	if (value)
		*value = 0;
	for (i = 0; i < count && strcmp(socket_options[i].name, word); i++)
		;
	if (i == count) {
		log_error("Unknown socket option %s", word);
		return;
	}
	if (value && socket_options[i].fixed)
		log_error("syntax error -- %s does not take a value", word);
	if (set_option(fd, i, socket_options[i].fixed ? socket_options[i].fixed : number) < 0)
		log_errno(L_ERROR, errno, "failed to set socket option %s", word);
}

void socket_options_apply(int fd, const char *options)
{
	char *copy = xstrdup(options), *rest, *word;

	for (word = strtok_r(copy, " \t,", &rest); word; word = strtok_r(NULL, " \t,", &rest))
		apply_option(fd, word);
	free(copy);
}

/* --- binding --- */

static void describe(const struct addrinfo *address, char *out, size_t size)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof host, port, sizeof port,
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(out, size, "address of family %d", address->ai_family);
	else
		snprintf(out, size, "%s port %s", host, port);
}

/* A bound socket, or -1 with a line added to `why`. */
static int bind_one(const struct addrinfo *address, const struct listen_request *request, struct strbuf *why)
{
	int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
	char text[NI_MAXHOST + NI_MAXSERV + 16];
	const char *what = "socket";
	int one = 1, error;

	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		socket_options_apply(fd, request->socket_options);
		what = "bind";
		if ((address->ai_family != AF_INET6 ||
		     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0 || request->family == 6) &&
		    bind(fd, address->ai_addr, address->ai_addrlen) == 0)
			return fd;
	}
	error = errno;
	describe(address, text, sizeof text);
	strbuf_addf(why, "%s() failed for %s: %s\n", what, text, strerror(error));
	if (fd >= 0)
		close(fd);
	return -1;
}

static struct addrinfo *resolve(const struct listen_request *request)
{
	struct addrinfo hints = {
		.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM,
		.ai_family = request->family == 4 ? AF_INET : request->family == 6 ? AF_INET6 : AF_UNSPEC,
	}, *found;
	char port[16];
	int error;

	snprintf(port, sizeof port, "%d", request->port);
	error = getaddrinfo(*request->address ? request->address : NULL, port, &hints, &found);
	if (!error)
		return found;
	log_error("rsync: getaddrinfo: %s %s: %s", *request->address ? request->address : "(default)", port,
		  gai_strerror(error));
	return NULL;
}

static void log_lines(char *text)
{
	char *rest, *line;

	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		log_error("%s", line);
}

static bool start_listening(listen_sockets *sockets, int backlog)
{
	for (size_t i = 0; i < sockets->count; i++)
		if (listen(sockets->items[i], backlog) < 0) {
			log_errno(L_ERROR, errno, "listen() on socket failed");
			if (errno == EADDRINUSE && i)
				log_error("Try using --ipv4 or --ipv6 to avoid this listen() error.");
			return false;
		}
	return true;
}

bool listen_open(const struct listen_request *request, listen_sockets *sockets)
{
	struct addrinfo *addresses = resolve(request), *at;
	struct strbuf why = STRBUF_INIT;

	for (at = addresses; at; at = at->ai_next) {
		int fd = bind_one(at, request, &why);

		if (fd >= 0)
			vec_push(sockets, fd);
	}
	if (addresses)
		freeaddrinfo(addresses);
	if (why.length && (!sockets->count || request->verbose))
		log_lines(why.data);
	strbuf_free(&why);
	if (!sockets->count)
		log_error("unable to bind any inbound sockets on port %d", request->port);
	return sockets->count && start_listening(sockets, request->backlog);
}

/* --- systemd --- */

int listen_from_systemd(listen_sockets *sockets)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	int passed = pid && count && strtol(pid, NULL, 10) == (long)getpid() ? atoi(count) : 0;

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	for (int i = 0; i < passed; i++) {
		int fd = FIRST_PASSED_FD + i;

		fcntl(fd, F_SETFD, FD_CLOEXEC);
		vec_push(sockets, fd);
	}
	return passed > 0 ? passed : 0;
}

void listen_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = path ? strlen(path) : 0;
	int fd;

	if (length < 2 || length >= sizeof address.sun_path || (*path != '/' && *path != '@'))
		return;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		log_errno(L_LOG, errno, "cannot notify the service manager");
	close(fd);
}
