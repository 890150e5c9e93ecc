/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What one session may cost: the memory of everything that its peer makes it remember, and the work of matching names with what
 * the peer has asked for. It is passed with the session; a NULL budget (local runs) has no limits and counts nothing.
 *
 * Memory is counted where it is allocated, by what the allocation takes in the end (growing arrays have room to spare), and
 * given back where it is freed. Any thread.
 */
#ifndef LIB_BUDGET_H
#define LIB_BUDGET_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct budget {
	size_t limit;             /* bytes; 0: any number */
	const char *limit_setting; /* what the user or the operator sets it with; errors name it */
	_Atomic size_t used;

	int work_seconds;         /* of the processor; 0: any number */
	const char *work_setting;
	_Atomic uint64_t steps;   /* since the last look */
	_Atomic int64_t work;     /* nanoseconds of the looks so far */
	_Atomic int64_t looked;   /* the processor's clock then */
	void (*look)(void *context); /* called by every look: ends the process if nobody listens any more; or NULL */
	void *context;
};

/* A small allocation of `length` bytes. */
#define BUDGET_OF_TEXT(length) ((size_t)(length) + 32)

/* Count so many bytes, for `what`; EXIT_MALLOC with the limit and its setting if they are too many. */
void budget_take(struct budget *budget, size_t bytes, const char *what);
void budget_give_back(struct budget *budget, size_t bytes);
/* Count the difference to what has been counted for the same thing before. */
void budget_adjust(struct budget *budget, size_t *counted, size_t bytes, const char *what);
/* Make the limit stricter, never laxer. 0: leave it. */
void budget_lower(struct budget *budget, size_t limit, const char *setting);

/* A look is worth its system calls after so many steps; a step is a rule or a few bytes of a pattern, and takes no longer. */
enum { BUDGET_STEPS = 1 << 20, BUDGET_STEP_NS = 100 };

/* See whether there is anybody left to work for, and how long all the work has taken: EXIT_TIMEOUT if that is too long. */
void budget_look(struct budget *budget);

/* Count so many steps of matching names; now and then, look. */
static inline void budget_work(struct budget *budget, uint64_t steps)
{
	if (budget && atomic_fetch_add_explicit(&budget->steps, steps, memory_order_relaxed) + steps >= BUDGET_STEPS)
		budget_look(budget);
}

#endif
