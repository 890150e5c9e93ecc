/* SPDX-License-Identifier: GPL-3.0-or-later */
/* For the tests of filter rules: rule files in memory, the list as it goes over the wire, and how a die() ends. */
#ifndef FILTER_SUPPORT_H
#define FILTER_SUPPORT_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "filter/exchange.h"
#include "filter/filter.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/strbuf.h"
#include "testsuite/unit/unit.h"
#include "testsuite/unit/wire_memory.h"
#include "wire/setup.h"

/* A file of the tests: "operator:NAME", "base:PATH" or "root:/PATH", and what it contains. */
struct memory_file {
	const char *name, *content;
};

struct memory_files {
	const struct memory_file *items; /* ends with a NULL name */
	struct strbuf opened;            /* names that were asked for, each with a space behind */
};

static inline int open_memory_file(void *context, enum filter_place place, const char *path)
{
	static const char *const places[] = { "operator", "base", "root" };
	struct memory_files *files = context;
	char name[8192];

	snprintf(name, sizeof name, "%s:%s", places[place], path);
	strbuf_addf(&files->opened, "%s ", name);
	for (const struct memory_file *file = files->items; file && file->name; file++) {
		if (strcmp(file->name, name))
			continue;
		int fd = memfd_create("rules", MFD_CLOEXEC);
		assert_int_equal(write(fd, file->content, strlen(file->content)), strlen(file->content));
		lseek(fd, 0, SEEK_SET);
		return fd;
	}
	errno = ENOENT;
	return -1;
}

/* --- how a die() ends --- */

struct ending {
	jmp_buf jump;
	int code;
	char text[8192]; /* all messages */
};

static inline void note_message(void *context, enum log_kind kind, const char *text, size_t length)
{
	struct ending *ending = context;
	size_t used = strlen(ending->text);

	(void)kind;
	snprintf(ending->text + used, sizeof ending->text - used, "%.*s", (int)length, text);
}

static inline void jump_back(void *context, int code)
{
	struct ending *ending = context;

	ending->code = code;
	longjmp(ending->jump, 1);
}

/* Run an expression; ending->code is then the exit code it ended with, or -1. */
#define RUN(ending, expression) \
	do { \
		struct log_sink sink_before = log_set_sink((struct log_sink){ note_message, (ending) }); \
		(ending)->code = -1; \
		(ending)->text[0] = '\0'; \
		exit_push_hook(jump_back, (ending)); \
		if (!setjmp((ending)->jump)) { \
			expression; \
			exit_remove_hook(jump_back, (ending)); \
		} \
		log_set_sink(sink_before); \
	} while (0)

/* --- the list on the wire --- */

/* What a wire has collected, rule after rule with "|" between; "(none)" if not even an end marker was sent. Free it. */
static inline char *written_rules(struct wire *wire)
{
	struct strbuf text = STRBUF_INIT;
	size_t length;
	const uint8_t *at = wire_test_output(wire, &length);

	if (!length)
		strbuf_add_string(&text, "(none)");
	for (uint32_t size; length >= 4; at += size, length -= size) {
		size = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
		at += 4;
		length -= 4;
		if (!size) {
			assert_int_equal(length, 0);
			break;
		}
		assert_true(size <= length);
		strbuf_addf(&text, "%s%.*s", text.length ? "|" : "", (int)size, (const char *)at);
	}
	return text.data ? strbuf_detach(&text) : strdup("");
}

/* What filter_send writes. */
static inline char *sent_rules(struct filter_list *list, int protocol, bool is_sender, bool wanted)
{
	struct session session = { .wire = wire_new_memory("", 0), .is_sender = is_sender };

	session_set_protocol(&session, protocol);
	filter_send(list, &session, wanted);
	char *text = written_rules(session.wire);
	wire_free(session.wire);
	return text;
}

#endif
