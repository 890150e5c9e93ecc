/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What one session may cost. */
#include "lib/budget.h"

#include <time.h>

#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"

/* --- memory --- */

void budget_take(struct budget *budget, size_t bytes, const char *what)
{
	if (!budget)
		return;
	size_t before = atomic_fetch_add(&budget->used, bytes);

	if (budget->limit && (before > budget->limit || bytes > budget->limit - before))
		die(EXIT_MALLOC, "[%s] exceeded the memory of a session, %zu bytes, with %s (see %s)", log_role(),
		    budget->limit, what, budget->limit_setting);
}

void budget_give_back(struct budget *budget, size_t bytes)
{
	if (budget)
		atomic_fetch_sub(&budget->used, bytes);
}

void budget_adjust(struct budget *budget, size_t *counted, size_t bytes, const char *what)
{
	size_t before = *counted;

	if (!budget)
		return;
	*counted = bytes;
	if (bytes > before)
		budget_take(budget, bytes - before, what);
	else
		budget_give_back(budget, before - bytes);
}

void budget_lower(struct budget *budget, size_t limit, const char *setting)
{
	if (!budget || !limit || (budget->limit && budget->limit <= limit))
		return;
	budget->limit = limit;
	budget->limit_setting = setting;
}

/* --- work --- */

/* What the processor has done since the last look is this work, unless the steps are too few for that. */
void budget_look(struct budget *budget)
{
	struct timespec clock;

	if (!budget)
		return;
	uint64_t steps = atomic_exchange(&budget->steps, 0);

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &clock);
	int64_t now = clock.tv_sec * CLOCK_SECOND + clock.tv_nsec, took = now - atomic_exchange(&budget->looked, now);
	int64_t most = steps < INT64_MAX / BUDGET_STEP_NS ? (int64_t)steps * BUDGET_STEP_NS : INT64_MAX;

	took = took < 0 ? 0 : took < most ? took : most;
	int64_t work = atomic_fetch_add(&budget->work, took) + took;

	if (budget->look)
		budget->look(budget->context);
	if (budget->work_seconds && work >= budget->work_seconds * CLOCK_SECOND)
		die(EXIT_TIMEOUT, "[%s] matching names has taken %d seconds of the processor (see %s)", log_role(),
		    budget->work_seconds, budget->work_setting);
}
