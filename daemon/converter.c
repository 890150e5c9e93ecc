/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The name converter: a command of the operator that answers for the user and group tables (protocol/07 section 9). */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/session.h"
#include "daemon/talk.h"
#include "fs/file.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

#define LINE_MAX_LENGTH 1023

struct converter {
	int request_fd; /* what the client asked for, until it has been delivered */
	int to_fd, from_fd;
};

/* --- the child --- */

static noreturn void be_converter(const struct daemon_session *session, const int request[2], const int to[2],
				  const int from[2])
{
	close(request[1]);
	close(to[1]);
	close(from[0]);
	command_receive_request(request[0]);
	if (dup2(to[0], 0) < 0 || dup2(from[1], 1) < 0)
		_exit(1);
	command_run(session, session->commands.converter);
}

/* --- the session --- */

static noreturn void refuse_start(struct daemon_session *session)
{
	log_errno(L_ERROR, errno, "name-converter exec preparation failed");
	session_refuse(session, "name-converter exec preparation failed");
}

void converter_start(struct daemon_session *session)
{
	int request[2], to[2], from[2];
	pid_t child;

	if (!session->commands.converter)
		return;
	if (pipe2(request, O_CLOEXEC) < 0 || pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		refuse_start(session);
	child = fork();
	if (child < 0)
		refuse_start(session);
	if (child == 0)
		be_converter(session, request, to, from);
	close(request[0]);
	close(to[0]);
	close(from[1]);
	session->converter = xcalloc(1, sizeof *session->converter);
	*session->converter = (struct converter){ request[1], to[1], from[0] };
}

void converter_deliver(struct daemon_session *session)
{
	struct converter *converter = session->converter;

	if (!converter)
		return;
	if (command_send_request(converter->request_fd, session) < 0)
		log_errno(L_ERROR, errno, "cannot start the name converter");
	close(converter->request_fd);
	converter->request_fd = -1;
}

static bool has_control_byte(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	return false;
}

/* One line without its LF; false at the end of the command or if the line does not fit. */
static bool read_answer(int fd, char *line, size_t size)
{
	size_t length = 0;

	for (;;) {
		ssize_t got = read(fd, line + length, 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		if (line[length] == '\n')
			break;
		if (++length == size)
			return false;
	}
	line[length] = 0;
	return true;
}

/* An id is written in digits and nothing else: a text that only starts like a number would become somebody's id (S-112). */
static bool is_id(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	return text[strspn(text, "0123456789")] == 0 && *text && strlen(text) <= 10 && value < UINT32_MAX;
}

char *converter_ask(void *context, const char *kind, const char *text)
{
	struct converter *converter = context;
	char line[LINE_MAX_LENGTH + 2];
	bool wants_id = !strcmp(kind, "usr") || !strcmp(kind, "grp");
	int length;

	if (has_control_byte(text)) {
		log_error("a name with a control byte is not given to the name converter");
		return NULL;
	}
	length = snprintf(line, sizeof line, "%s %s\n", kind, text);
	if (length < 0 || length > LINE_MAX_LENGTH)
		die(EXIT_UNSUPPORTED, "request to the name converter is too long");
	if (fs_write_all(converter->to_fd, line, (size_t)length) < 0)
		die(EXIT_SOCKETIO, "Connection to name-converter failed.");
	if (!read_answer(converter->from_fd, line, sizeof line) || !*line)
		return NULL;
	return wants_id && !is_id(line) ? NULL : xstrdup(line);
}
