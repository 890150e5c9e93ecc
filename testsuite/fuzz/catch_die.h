/* SPDX-License-Identifier: GPL-3.0-or-later */
/* For fuzz harnesses: run a function in which die() is an ordinary end. What it says is formatted and thrown away. */
#ifndef TESTSUITE_CATCH_DIE_H
#define TESTSUITE_CATCH_DIE_H

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/exit.h"
#include "lib/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void catch_emit(void *context, enum log_kind kind, const char *text, size_t length)
{
	char escaped[256];

	(void)context;
	(void)kind;
	log_escape(escaped, sizeof escaped, text, length, 0);
}

static inline void catch_hook(void *context, int code)
{
	/* Only rsync's codes may come out of it. */
	if (code < 0 || code > 255)
		abort();
	longjmp(*(jmp_buf *)context, 1);
}

static inline void catch_die(void (*run)(void *context), void *context)
{
	jmp_buf jump;

	log_set_sink((struct log_sink){ catch_emit, NULL });
	exit_push_hook(catch_hook, &jump);
	if (!setjmp(jump)) {
		run(context);
		exit_remove_hook(catch_hook, &jump);
	}
}

#endif
