/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Listening sockets, and systemd's two environment variables. */
#include "daemon/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fs/file.h"
#include "fs/socket.h"
#include "lib/alloc.h"
#include "lib/log.h"
#include "lib/strbuf.h"

#define FIRST_PASSED_FD 3

/* --- binding --- */

/* A bound socket, or -1 with a line added to `why`. */
static int bind_one(const struct addrinfo *address, const struct listen_request *request, struct strbuf *why)
{
	int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
	char host[NI_MAXHOST], port[NI_MAXSERV];
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
	if (getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof host, port, sizeof port,
			NI_NUMERICHOST | NI_NUMERICSERV))
		strbuf_addf(why, "%s() failed for address of family %d: %s\n", what, address->ai_family, strerror(error));
	else
		strbuf_addf(why, "%s() failed for %s port %s: %s\n", what, host, port, strerror(error));
	fs_close(fd);
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



bool listen_bind(const struct listen_request *request, listen_sockets *sockets)
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
		log_lines(L_ERROR, why.data);
	strbuf_free(&why);
	if (!sockets->count)
		log_error("unable to bind any inbound sockets on port %d", request->port);
	return sockets->count > 0;
}

bool listen_open(const struct listen_request *request, listen_sockets *sockets)
{
	if (!listen_bind(request, sockets))
		return false;
	for (size_t i = 0; i < sockets->count; i++)
		if (listen(sockets->items[i], request->backlog) < 0) {
			log_errno(L_ERROR, errno, "listen() on socket failed");
			if (errno == EADDRINUSE && i)
				log_error("Try using --ipv4 or --ipv6 to avoid this listen() error.");
			return false;
		}
	return true;
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
