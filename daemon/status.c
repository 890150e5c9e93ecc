/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of connections, with their state, age and speed: the listener's answer, and the command that asks for it. */
#include "daemon/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "fs/file.h"
#include "fs/socket.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "loadparm.h"

#define ANSWERS_AT_A_TIME 8
#define ANSWER_MAX (1 << 20)
#define ANSWER_SECONDS 20

/* --- the answer --- */

struct total {
	uint64_t received, sent, files, speed;
	int connections;
};

static void add_time(struct strbuf *out, int64_t when)
{
	char text[32];
	time_t seconds = (time_t)when;
	struct tm parts;

	if (localtime_r(&seconds, &parts) && strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S", &parts))
		strbuf_add_string(out, text);
}

static void add_connection(struct children *children, int slot, int64_t now, struct strbuf *out, struct total *total)
{
	struct board_view view;
	int64_t since, seconds;
	pid_t pid = children_pid(children, slot, &since);
	uint64_t speed;

	if (!pid)
		return;
	board_read(children_board(children, slot), &view);
	seconds = now > since ? now - since : 0;
	speed = (view.received + view.sent) / (uint64_t)(seconds ? seconds : 1);
	strbuf_addf(out, "%d %s since ", (int)pid, board_state_name(view.state));
	add_time(out, since);
	strbuf_addf(out, " (%" PRId64 " s): %s%s%s module %s, received %" PRIu64 ", sent %" PRIu64 ", files %" PRIu64
		    ", %" PRIu64 " bytes/s\n", seconds, view.texts[BOARD_USER], *view.texts[BOARD_USER] ? "@" : "",
		    *view.texts[BOARD_ADDRESS] ? view.texts[BOARD_ADDRESS] : "-",
		    *view.texts[BOARD_MODULE] ? view.texts[BOARD_MODULE] : "-", view.received, view.sent,
		    view.counts[BOARD_FILES], speed);
	total->connections++;
	total->received += view.received;
	total->sent += view.sent;
	total->files += view.counts[BOARD_FILES];
	total->speed += speed;
}

void status_format(struct children *children, int64_t now, struct strbuf *out)
{
	struct total total = { .connections = 0 };

	for (int slot = 0; slot < CHILDREN_SLOTS; slot++)
		add_connection(children, slot, now, out, &total);
	strbuf_addf(out, "total: connections %d, received %" PRIu64 ", sent %" PRIu64 ", files %" PRIu64 ", %" PRIu64
		    " bytes/s\n", total.connections, total.received, total.sent, total.files, total.speed);
}

/* --- the listener --- */

static bool may_ask(int fd)
{
	struct ucred who;
	socklen_t length = sizeof who;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && (who.uid == 0 || who.uid == geteuid());
}

/* A byte and a descriptor, if the socket takes them at once, as one that is new does. */
static int hand_over(int socket_fd, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	char mark = '+';
	struct iovec data = { &mark, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes,
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	return sendmsg(socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static void answer_one(int connection, struct children *children)
{
	struct strbuf text = STRBUF_INIT;
	int fd;

	if (!may_ask(connection)) {
		log_msg(L_LOG, "somebody else may not ask for the status");
		return;
	}
	status_format(children, time(NULL), &text);
	fd = memfd_create("status", MFD_CLOEXEC);
	if (fd < 0 || fs_write_all(fd, text.data, text.length) < 0 || hand_over(connection, fd) < 0)
		log_errno(L_LOG, errno, "cannot send the status");
	fs_close(fd);
	strbuf_free(&text);
}

void status_answer(int socket_fd, struct children *children)
{
	for (int i = 0; i < ANSWERS_AT_A_TIME; i++) {
		int connection = accept4(socket_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (connection < 0)
			return;
		answer_one(connection, children);
		close(connection);
	}
}

/* --- the command --- */

/* -1 with errno; ECONNRESET: there was no answer. */
static int take_over(int socket_fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char mark;
	struct iovec data = { &mark, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes,
	};
	ssize_t got = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *header = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
	int fd;

	if (got >= 0)
		errno = ECONNRESET;
	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof fd))
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof fd);
	return fd;
}

static int ask(const char *path, struct strbuf *answer)
{
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	int connection = fs_socket_connect(path, 0), fd, result = -1;

	if (connection < 0)
		return -1;
	setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	fd = take_over(connection);
	if (fd >= 0 && lseek(fd, 0, SEEK_SET) == 0)
		result = fs_read_all(fd, ANSWER_MAX, answer);
	fs_close(fd);
	fs_close(connection);
	return result;
}

/* Whoever has made the socket: nothing acts on the terminal. */
static void make_plain(struct strbuf *text)
{
	for (size_t i = 0; i < text->length; i++)
		if (((unsigned char)text->data[i] < ' ' && text->data[i] != '\n') || (unsigned char)text->data[i] == 0x7f)
			text->data[i] = '?';
}

static int report(const char *config_path, const char *path)
{
	struct strbuf answer = STRBUF_INIT;
	int code = EXIT_OK;

	if (!*path) {
		log_error("rsync: %s names no control socket", config_path);
		return EXIT_SYNTAX;
	}
	if (ask(path, &answer) < 0) {
		log_error("rsync: no daemon answers at the control socket %s: %s", path, strerror(errno));
		code = EXIT_SYNTAX;
	}
	make_plain(&answer);
	if (!code && (fwrite(answer.data, 1, answer.length, stdout) != answer.length || fflush(stdout) != 0))
		code = EXIT_FILEIO;
	strbuf_free(&answer);
	return code;
}

int daemon_status_main(const struct options *options)
{
	struct config_problems problems = CONFIG_PROBLEMS_INIT;
	struct config *config =
		config_load(options->config_file, options->dparams.items, options->dparams.count, CONFIG_LISTENER, &problems);
	int code = EXIT_SYNTAX;

	exit_set_quiet(true);
	config_problems_report(&problems, CONFIG_ERROR);
	if (config) {
		char *path = config_text(config->globals.control_socket);

		code = report(options->config_file, path);
		free(path);
	}
	config_free(config);
	config_problems_free(&problems);
	return code;
}
