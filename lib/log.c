/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The log: formatting, serialising, escaping; the sink decides where the text goes. */
#include "lib/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum {
	LINE_ROOM = 1024,     /* longer lines are formatted in allocated memory */
	NESTING_MAX = 3,      /* a sink that itself logs, and fails, and logs: in the end to stderr */
	ESCAPED_LENGTH = 5,   /* \#ooo */
};

static void emit_to_stdio(void *context, enum log_kind kind, const char *text, size_t length);

/* The process-wide sink. The mutex is recursive: a sink that fails may die, which logs. */
static struct {
	struct log_sink sink, copy;
	bool copies_errors_only;
	const char *_Atomic role;
	atomic_bool xfer_error;
	pthread_mutex_t mutex;
	int nesting;
} state = { .sink = { emit_to_stdio, NULL }, .role = "client", .mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP };

struct log_sink log_set_sink(struct log_sink sink)
{
	struct log_sink old;

	pthread_mutex_lock(&state.mutex);
	old = state.sink;
	state.sink = sink.emit ? sink : (struct log_sink){ emit_to_stdio, NULL };
	pthread_mutex_unlock(&state.mutex);
	return old;
}

void log_set_copy(struct log_sink copy)
{
	pthread_mutex_lock(&state.mutex);
	state.copy = copy;
	state.copies_errors_only = false;
	pthread_mutex_unlock(&state.mutex);
}

void log_copy_errors_only(void)
{
	pthread_mutex_lock(&state.mutex);
	state.copies_errors_only = true;
	pthread_mutex_unlock(&state.mutex);
}

void log_set_role(const char *role)
{
	atomic_store(&state.role, role);
}

const char *log_role(void)
{
	return atomic_load(&state.role);
}

int log_saw_xfer_error(void)
{
	return atomic_load(&state.xfer_error);
}

/* The sink of a process that has not set one. Text may come from a peer, so controls never reach a terminal raw. Without memory
 * for a long line its beginning is shown. */
static void emit_to_stdio(void *context, enum log_kind kind, const char *text, size_t length)
{
	FILE *out = kind == L_INFO || kind == L_CLIENT ? stdout : stderr;
	size_t body = length && text[length - 1] == '\n' ? length - 1 : length;
	size_t needed = log_escape(NULL, 0, text, body, 0);
	char room[LINE_ROOM], *line = room;

	(void)context;
	if (kind == L_LOG)
		return;
	if (needed + 2 > sizeof room && !(line = malloc(needed + 2))) {
		line = room;
		log_escape(line, sizeof room - 1, text, body, 0);
		needed = strlen(line);
	} else {
		log_escape(line, needed + 1, text, body, 0);
	}
	if (length > body)
		line[needed++] = '\n';
	if (out == stderr)
		fflush(stdout);
	fwrite(line, 1, needed, out);
	fflush(out);
	if (line != room)
		free(line);
}

void log_vmsg(enum log_kind kind, const char *fmt, va_list args)
{
	char room[LINE_ROOM], *text = room, *allocated = NULL;
	va_list again;
	int needed;
	size_t length;

	va_copy(again, args);
	needed = vsnprintf(room, sizeof room - 1, fmt, args);
	length = needed < 0 ? 0 : (size_t)needed;
	if (length > sizeof room - 2) {
		allocated = malloc(length + 2);
		if (allocated) {
			vsnprintf(allocated, length + 1, fmt, again);
			text = allocated;
		} else {
			length = sizeof room - 2;
		}
	}
	va_end(again);
	if (!length || text[length - 1] != '\n')
		text[length++] = '\n';
	text[length] = '\0';
	bool is_error = kind == L_WARNING || kind == L_ERROR || kind == L_ERROR_XFER;

	if (kind == L_ERROR_XFER)
		atomic_store(&state.xfer_error, true);
	pthread_mutex_lock(&state.mutex);
	state.nesting++;
	if (state.nesting > NESTING_MAX)
		emit_to_stdio(NULL, kind, text, length);
	else
		state.sink.emit(state.sink.context, kind, text, length);
	if (state.copy.emit && state.nesting <= NESTING_MAX && (is_error || !state.copies_errors_only))
		state.copy.emit(state.copy.context, kind, text, length);
	state.nesting--;
	pthread_mutex_unlock(&state.mutex);
	free(allocated);
}

void log_msg(enum log_kind kind, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_vmsg(kind, fmt, args);
	va_end(args);
}

void log_lines(enum log_kind kind, const char *text)
{
	while (text && *text) {
		size_t length = strcspn(text, "\n");

		log_msg(kind, "%.*s", (int)length, text);
		text += length + (text[length] == '\n');
	}
}

void log_errno(enum log_kind kind, int error, const char *fmt, ...)
{
	char reason[128], room[LINE_ROOM], *text = room, *allocated = NULL;
	va_list args, again;

	va_start(args, fmt);
	va_copy(again, args);
	if (vsnprintf(room, sizeof room, fmt, args) >= (int)sizeof room && vasprintf(&allocated, fmt, again) >= 0)
		text = allocated;
	va_end(again);
	va_end(args);
	log_msg(kind, "rsync: [%s] %s: %s (%d)", log_role(), text, strerror_r(error, reason, sizeof reason), error);
	if (text == allocated)
		free(allocated);
}

/* A backslash that would read as an escape is escaped itself. */
static bool reads_as_escape(const char *text, size_t length)
{
	if (length < ESCAPED_LENGTH || text[0] != '\\' || text[1] != '#')
		return false;
	for (int i = 2; i < ESCAPED_LENGTH; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	return true;
}

/* Length of the character of the locale at text (a byte >= 0x80): 0 if it is broken or a C1 control. */
static size_t character_length(const char *text, size_t length)
{
	mbstate_t mb;
	wchar_t wide;
	size_t used;

	memset(&mb, 0, sizeof mb);
	used = mbrtowc(&wide, text, length, &mb);
	if (used == 0 || used > length)
		return 0;
	return (uint32_t)wide < 0xa0 ? 0 : used;
}

/* How many bytes at text may pass as they are; 0: escape the first one. */
static size_t plain_length(const char *text, size_t length, int eight_bit)
{
	unsigned char c = (unsigned char)*text;

	if (c >= 0x80)
		return eight_bit ? 1 : character_length(text, length);
	if ((c < 0x20 && c != '\t') || c == 0x7f)
		return 0;
	return c == '\\' && reads_as_escape(text, length) ? 0 : 1;
}

size_t log_escape(char *out, size_t size, const char *text, size_t length, int eight_bit)
{
	size_t needed = 0, room = size ? size - 1 : 0, at = 0, plain, piece_length;
	const char *piece;
	char escaped[ESCAPED_LENGTH + 1];
	bool cut = false;

	while (at < length) {
		plain = plain_length(text + at, length - at, eight_bit);
		piece = plain ? text + at : escaped;
		piece_length = plain ? plain : ESCAPED_LENGTH;
		if (!plain)
			snprintf(escaped, sizeof escaped, "\\#%03o", (unsigned char)text[at]);
		cut = cut || needed + piece_length > room;
		if (!cut)
			memcpy(out + needed, piece, piece_length);
		else if (needed < room)
			room = needed;
		needed += piece_length;
		at += plain ? plain : 1;
	}
	if (size)
		out[needed < room ? needed : room] = '\0';
	return needed;
}
