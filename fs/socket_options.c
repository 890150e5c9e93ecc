/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Socket options by name. */
#include "fs/socket_options.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/alloc.h"
#include "lib/log.h"

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
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	for (word = strtok_r(copy, " \t,", &rest); word; word = strtok_r(NULL, " \t,", &rest))
		apply_option(fd, word);
	free(copy);
}
