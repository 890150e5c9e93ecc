/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Starting threads, sharing work among them, and waiting for them. */
#include "lib/threads.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

bool thread_start(pthread_t *thread, void *(*body)(void *context), void *context)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	bool started = pthread_create(thread, NULL, body, context) == 0;

	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

struct start {
	void (*body)(void *context, int thread);
	void *context;
	int thread;
};

static void *run_body(void *start_void)
{
	const struct start *start = start_void;

	start->body(start->context, start->thread);
	return NULL;
}

int threads_useful(int most)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	return processors < 1 ? 1 : processors < most ? (int)processors : most;
}

void threads_run(int count, void (*body)(void *context, int thread), void *context)
{
	struct start starts[THREADS_RUN_MAX];
	pthread_t handles[THREADS_RUN_MAX];
	int started = 1;

	for (; started < count && started < THREADS_RUN_MAX; started++) {
		starts[started] = (struct start){ body, context, started };
		if (!thread_start(&handles[started], run_body, &starts[started]))
			break;
	}
	body(context, 0);
	for (int i = 1; i < started; i++)
		pthread_join(handles[i], NULL);
}

struct shared {
	void (*job)(void *context, int number);
	void *context;
	int jobs;
	atomic_int next;
};

static void take_jobs(void *shared_void, int thread)
{
	struct shared *shared = shared_void;
	int number;

	(void)thread;
	while ((number = atomic_fetch_add(&shared->next, 1)) < shared->jobs)
		shared->job(shared->context, number);
}

void threads_share(int count, int jobs, void (*job)(void *context, int number), void *context)
{
	struct shared shared = { .job = job, .context = context, .jobs = jobs };

	threads_run(count < jobs ? count : jobs, take_jobs, &shared);
}
