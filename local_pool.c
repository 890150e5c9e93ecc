/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Worker threads and their queue. Tasks start in the order they were submitted; urgent ones overtake. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib/exit.h"
#include "local_private.h"

#define THREADS_MAX 16
#define CONTENT_THREADS_MAX 4 /* copying contents: more only make a disk seek */

struct pool {
	struct local *local;
	pthread_mutex_t lock;
	pthread_cond_t work;     /* the queue has grown, or it is closed */
	pthread_cond_t finished; /* a task has changed its state */
	struct task *head, *tail;
	bool closed;
	int busy;                /* workers that have a task */
	pthread_rwlock_t gate;   /* held for reading while an object may exist under a temp name */
	int count;
	pthread_t threads[THREADS_MAX];
};

int pool_threads(const struct options *options, bool attrs_only)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	long most = attrs_only || options->dry_run ? THREADS_MAX : CONTENT_THREADS_MAX;

	if (processors < 1)
		return 1;
	return (int)(processors < most ? processors : most);
}

static struct task *next_task(struct pool *pool)
{
	struct task *task;

	pthread_mutex_lock(&pool->lock);
	while ((!pool->head || atomic_load(&pool->local->crowded)) && !pool->closed)
		pthread_cond_wait(&pool->work, &pool->lock);
	task = pool->head;
	if (task) {
		pool->head = task->next;
		if (!pool->head)
			pool->tail = NULL;
		task->state = TASK_RUNNING;
		pool->busy++;
	}
	pthread_mutex_unlock(&pool->lock);
	return task;
}

static enum task_state state_after_run(const struct task *task)
{
	if (atomic_load(&task->local->crowded) == task)
		return TASK_CROWDED;
	return task->surplus.count && task->find_surplus ? TASK_WAITS : TASK_DONE;
}

static void *work(void *pool_void)
{
	struct pool *pool = pool_void;
	struct task *task;

	while ((task = next_task(pool))) {
		local_task_run(task);
		pthread_mutex_lock(&pool->lock);
		pool->busy--;
		task->state = state_after_run(task);
		atomic_fetch_sub(&pool->local->submitted, 1);
		pthread_cond_signal(&pool->finished);
		pthread_mutex_unlock(&pool->lock);
	}
	return NULL;
}

struct pool *pool_new(struct local *local, int threads)
{
	struct pool *pool = xcalloc(1, sizeof *pool);
	pthread_condattr_t clock;
	sigset_t all, old;

	pool->local = local;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_rwlock_init(&pool->gate, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&pool->finished, &clock);
	pthread_condattr_destroy(&clock);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	while (pool->count < threads && pool->count < THREADS_MAX
	       && pthread_create(&pool->threads[pool->count], NULL, work, pool) == 0)
		pool->count++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!pool->count)
		die(EXIT_IPC, "rsync: cannot start a worker thread");
	return pool;
}

void pool_free(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->closed = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (int i = 0; i < pool->count; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->work);
	pthread_cond_destroy(&pool->finished);
	pthread_mutex_destroy(&pool->lock);
	pthread_rwlock_destroy(&pool->gate);
	free(pool);
}

void pool_submit(struct pool *pool, struct task *task, bool urgent)
{
	pthread_mutex_lock(&pool->lock);
	task->state = TASK_QUEUED;
	atomic_fetch_add(&pool->local->submitted, 1);
	task->next = urgent ? pool->head : NULL;
	if (urgent || !pool->head)
		pool->head = task;
	else
		pool->tail->next = task;
	if (!urgent || !pool->tail)
		pool->tail = task;
	pthread_cond_signal(&pool->work);
	pthread_mutex_unlock(&pool->lock);
}

bool pool_run_here(struct pool *pool, struct task *task)
{
	pthread_mutex_lock(&pool->lock);
	bool idle = !pool->head && !pool->busy && !atomic_load(&pool->local->crowded);

	if (idle)
		task->state = TASK_RUNNING;
	pthread_mutex_unlock(&pool->lock);
	if (!idle || task->local->options->checksum)
		return false;
	task->is_brief = true;
	local_task_run(task);
	task->is_brief = false;
	if (task->is_left) {
		task->is_left = false;
		return false;
	}
	pthread_mutex_lock(&pool->lock);
	task->state = state_after_run(task);
	pthread_mutex_unlock(&pool->lock);
	return true;
}

/* A task whose worker has gone through it still runs as long as something is owed. */
static enum task_state state_of(const struct task *task)
{
	return task->state == TASK_DONE && task->pending ? TASK_RUNNING : task->state;
}

static bool is_busy(const struct task *task)
{
	return state_of(task) == TASK_QUEUED || state_of(task) == TASK_RUNNING;
}

enum task_state pool_state(struct pool *pool, struct task *task)
{
	pthread_mutex_lock(&pool->lock);
	enum task_state state = state_of(task);

	pthread_mutex_unlock(&pool->lock);
	return state;
}

bool pool_has_run(struct pool *pool, struct task *task)
{
	pthread_mutex_lock(&pool->lock);
	bool has_run = task->state == TASK_DONE;

	pthread_mutex_unlock(&pool->lock);
	return has_run;
}

void pool_hold(struct pool *pool, struct task *task)
{
	pthread_mutex_lock(&pool->lock);
	task->pending++;
	pthread_mutex_unlock(&pool->lock);
}

void pool_release(struct pool *pool, struct task *task)
{
	pthread_mutex_lock(&pool->lock);
	if (--task->pending == 0)
		pthread_cond_signal(&pool->finished);
	pthread_mutex_unlock(&pool->lock);
}

static struct timespec in_ms(int ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return until;
}

enum task_state pool_wait(struct pool *pool, struct task *task, int ms)
{
	struct timespec until = in_ms(ms);
	int result = 0;

	pthread_mutex_lock(&pool->lock);
	while (is_busy(task) && !atomic_load(&pool->local->crowded) && result != ETIMEDOUT)
		result = pthread_cond_timedwait(&pool->finished, &pool->lock, &until);
	enum task_state state = state_of(task);

	pthread_mutex_unlock(&pool->lock);
	return state;
}

void pool_take_last_events(struct pool *pool, struct task *task, struct events *events)
{
	pthread_mutex_lock(&pool->lock);
	*events = task->events;
	task->events_taken += events->list.count;
	task->events = (struct events){ VEC_INIT };
	pthread_mutex_unlock(&pool->lock);
}

/* An event makes the main thread work on the task's entries: not while a worker does. */
static bool is_for_later(const struct task *task, const struct event *event)
{
	bool is_work = task->marks || event->kind == EVENT_REDO || event->kind == EVENT_DELETE_ARGUMENT;

	return event->kind == EVENT_AWAITED || (is_work && state_of(task) == TASK_RUNNING);
}

/* Under the lock. */
static void take_redos(struct task *task, struct events *events)
{
	for (size_t i = 0; i < task->events.list.count && task->state == TASK_DONE; i++) {
		struct event *event = &task->events.list.items[i];

		if (event->kind != EVENT_REDO)
			continue;
		vec_push(&events->list, *event);
		event->kind = EVENT_NOTHING;
	}
}

void pool_take_events(struct pool *pool, struct task *task, struct events *events, bool only_redos)
{
	struct events rest = { VEC_INIT };
	size_t count = 0;

	pthread_mutex_lock(&pool->lock);
	if (only_redos) {
		take_redos(task, events);
		pthread_mutex_unlock(&pool->lock);
		return;
	}
	*events = task->events;
	while (count < events->list.count && !is_for_later(task, &events->list.items[count]))
		count++;
	for (size_t i = count; i < events->list.count; i++)
		vec_push(&rest.list, events->list.items[i]);
	events->list.count = count;
	task->events_taken += count;
	task->events = rest;
	pthread_mutex_unlock(&pool->lock);
}

void pool_add_event(struct pool *pool, struct task *task, const struct event *event)
{
	pthread_mutex_lock(&pool->lock);
	vec_push(&task->events.list, *event);
	pthread_mutex_unlock(&pool->lock);
}

uint64_t pool_reserve_event(struct pool *pool, struct task *task)
{
	const struct event awaited = { .kind = EVENT_AWAITED };
	uint64_t place;

	pthread_mutex_lock(&pool->lock);
	vec_push(&task->events.list, awaited);
	place = task->events_taken + task->events.list.count;
	pthread_mutex_unlock(&pool->lock);
	return place;
}

void pool_fill_event(struct pool *pool, struct task *task, uint64_t place, const struct event *event)
{
	pthread_mutex_lock(&pool->lock);
	task->events.list.items[place - 1 - task->events_taken] = *event;
	pthread_mutex_unlock(&pool->lock);
}

void pool_enter(struct pool *pool)
{
	pthread_rwlock_rdlock(&pool->gate);
}

void pool_leave(struct pool *pool)
{
	pthread_rwlock_unlock(&pool->gate);
}

void pool_close_gate(struct pool *pool)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_rwlock_timedwrlock(&pool->gate, &until);
}
