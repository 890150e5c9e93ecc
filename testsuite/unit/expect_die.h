/* SPDX-License-Identifier: GPL-3.0-or-later */
/* For tests: run code that must end the process, and see with which code and words, by an exit hook that jumps back. */
#ifndef TESTSUITE_EXPECT_DIE_H
#define TESTSUITE_EXPECT_DIE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/exit.h"
#include "lib/log.h"
#include "testsuite/unit/unit.h"

/* Locals of the tests do not change between setjmp and longjmp. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic ignored "-Wclobbered"
#endif

struct dying {
	jmp_buf jump;
	volatile int code;
	char text[2048];
};

static inline void dying_emit(void *context, enum log_kind kind, const char *text, size_t length)
{
	struct dying *dying = context;

	(void)kind;
	if (strlen(dying->text) + length < sizeof dying->text)
		strncat(dying->text, text, length);
}

static inline void dying_hook(void *context, int code)
{
	struct dying *dying = context;

	dying->code = code;
	longjmp(dying->jump, 1);
}

/* The statement must die with `wanted` and words that contain `words`. */
#define expect_die(wanted, words, ...) \
	do { \
		struct dying dying_ = { .code = -1, .text = "" }; \
		struct log_sink sink_ = log_set_sink((struct log_sink){ dying_emit, &dying_ }); \
		exit_push_hook(dying_hook, &dying_); \
		if (!setjmp(dying_.jump)) { \
			__VA_ARGS__; \
			exit_remove_hook(dying_hook, &dying_); \
		} \
		log_set_sink(sink_); \
		if (dying_.code != (wanted) || !strstr(dying_.text, (words))) \
			fail_msg("%s: ended with %d and \"%s\", not with %d and \"%s\"", #__VA_ARGS__, dying_.code, \
				 dying_.text, (wanted), (words)); \
	} while (0)

#endif
