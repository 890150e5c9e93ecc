/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The threads of a run: the one that receives signals, for the premature end, and workers with their queue. Tasks start in the
 * order they were submitted; urgent ones overtake.
 */
#include "receiver/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "dest/basis.h"
#include "dest/contents.h"
#include "dest/dest.h"
#include "dest/events.h"
#include "dest/file.h"
#include "dest/seen.h"
#include "dest/task.h"
#include "dest/write.h"
#include "fs/temp.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "receiver/delete.h"
#include "receiver/report.h"
#include "receiver/run.h"

/* --- signals: a thread of their own receives them --- */

#define PATIENCE_MS 2000
#define PATIENCE_KEEPING_MS 10000 /* parts of files are still to be kept */
#define MOMENT_MS 20

/* The threads are interrupted nowhere; this one takes the signal and notifies them. */
static void *await_signal(void *run_void)
{
	struct run *run = run_void;
	int number;

	sigwait(&run->signals, &number);
	atomic_store(&run->receiver.dest.stop, number == SIGUSR1 ? STOP_SIGNAL1 : STOP_SIGNAL);
	/* The main thread ends the process within moments, unless it waits for something that does not come. */
	for (int waited = 0; !atomic_load(&run->is_over); waited += MOMENT_MS) {
		if (waited >= (atomic_load(&run->receiver.dest.keepable) > 0 ? PATIENCE_KEEPING_MS : PATIENCE_MS))
			break;
		nanosleep(&(struct timespec){ 0, MOMENT_MS * 1000000 }, NULL);
	}
	if (atomic_load(&run->is_over))
		return NULL;
	fs_temp_remove_all();
	_exit(number == SIGUSR1 ? EXIT_SIGNAL1 : EXIT_SIGNAL);
}

void run_handle_signals(struct run *run)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGVTALRM, SIG_IGN);
	sigemptyset(&run->signals);
	sigaddset(&run->signals, SIGINT);
	sigaddset(&run->signals, SIGTERM);
	sigaddset(&run->signals, SIGHUP);
	sigaddset(&run->signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &run->signals, NULL);
	run->has_signal_thread = pthread_create(&run->signal_thread, NULL, await_signal, run) == 0;
}

void run_stop_signals(struct run *run)
{
	if (!run->has_signal_thread)
		return;
	/* To cancel a thread takes a library that a module's root does not have. */
	atomic_store(&run->is_over, true);
	pthread_kill(run->signal_thread, SIGTERM); /* NOLINT(bugprone-bad-signal-to-kill-thread): it waits for that signal */
	pthread_join(run->signal_thread, NULL);
}

/* --- the main thread --- */

void receiver_stop_check(struct receiver *receiver)
{
	static const int codes[] = {
		[STOP_SIGNAL] = EXIT_SIGNAL, [STOP_SIGNAL1] = EXIT_SIGNAL1, [STOP_WRITE] = EXIT_FILEIO,
		[STOP_REFUSED] = EXIT_FILESELECT,
	};
	const struct timespec moment = { 0, 10000000 };
	int stop = atomic_load(&receiver->dest.stop);
	struct timespec until;

	if (stop == STOP_NONE)
		return;
	report_drain(receiver->report);
	report_break_line(receiver->report);
	/* The workers look at the flag now and then; they may have a file to keep. The signal thread makes sure this ends. */
	while (stop == STOP_SIGNAL && dest_keeps_partial(receiver->dest.options) && atomic_load(&receiver->dest.keepable) > 0)
		nanosleep(&moment, NULL);
	/* Whoever makes an object under a temp name holds the gate: from now on nobody gets it any more. */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_rwlock_timedwrlock(&receiver->dest.gate, &until);
	exit_with(codes[stop]);
}

/* --- workers --- */

#define CONTENT_THREADS_MAX 4 /* copying contents: more only make a disk seek */

/* A worker's whole work on a task, or the rest of it. */
static void task_run(struct task *task)
{
	struct dest *dest = task->dest;
	struct contents *contents = dest->contents;
	/* The list's own ".". */
	int32_t dot = !task->node && task->notifies_dir ? entries_find(task->entries, ".", true) : -1;

	if (task->find_surplus && !atomic_load(&dest->stop)) {
		if (!task->names_read)
			receiver_find_surplus(task);
		if (task->surplus.count)
			return;
		task->find_surplus = false;
	}
	if (contents->is_remote && task->dir_wanted.lacks_values)
		contents->calls->request_directory(contents, task);
	else if (task->notifies_dir)
		contents->calls->notify_item(contents, task->node, dot < 0 ? NULL : &task->entries->items[dot], task->dir_flags,
					     NULL);
	task->notifies_dir = task->dir_wanted.lacks_values = false;
	if (contents->is_remote)
		contents->calls->decided_directory(contents, task);
	if (!task->started)
		dest_seen_start(task);
	task->started = true;
	for (; task->at < task->last && !atomic_load(&dest->stop); task->at++) {
		dest_process_entry(task, task->at, TURN_FIRST);
		if (task->is_left || atomic_load(&dest->crowded) == task)
			return;
	}
	dest_leave_dirs(task);
	if (contents->is_remote)
		contents->calls->flush(contents);
}

/* Is the main thread to make room for a task of this one's run? */
static bool is_crowded(const struct task *task)
{
	return atomic_load(&task->dest->crowded);
}

static enum task_state state_after_run(const struct task *task)
{
	if (atomic_load(&task->dest->crowded) == task)
		return TASK_CROWDED;
	return task->surplus.count && task->find_surplus ? TASK_WAITS : TASK_DONE;
}

static void *work(void *pool_void)
{
	struct pool *pool = pool_void;
	struct task *task;

	pthread_mutex_lock(&pool->lock);
	for (;;) {
		while ((!pool->head || is_crowded(pool->head)) && !pool->closed)
			pthread_cond_wait(&pool->work, &pool->lock);
		task = pool->head;
		if (!task)
			break;
		pool->head = task->next;
		if (!pool->head)
			pool->tail = NULL;
		task->state = TASK_RUNNING;
		pool->busy++;
		pthread_mutex_unlock(&pool->lock);
		task_run(task);
		pthread_mutex_lock(&pool->lock);
		pool->busy--;
		task->state = state_after_run(task);
		atomic_fetch_sub(&pool->submitted, 1);
		pthread_cond_signal(&pool->finished);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

struct pool *pool_new(const struct dest *dest)
{
	struct pool *pool = xcalloc(1, sizeof *pool);
	long threads = sysconf(_SC_NPROCESSORS_ONLN);
	long most = dest->attrs_only || dest->options->dry_run ? THREADS_MAX : CONTENT_THREADS_MAX;
	pthread_condattr_t clock;
	sigset_t all, old;

	/* Requests have the order of the list. */
	if (threads < 1 || (dest->contents->is_remote && !dest->attrs_only))
		threads = 1;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&pool->finished, &clock);
	pthread_condattr_destroy(&clock);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	while (pool->count < threads && pool->count < most
	       && pthread_create(&pool->threads[pool->count], NULL, work, pool) == 0)
		pool->count++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!pool->count)
		die(EXIT_IPC, "rsync: cannot start a worker thread");
	return pool;
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->closed = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (int i = 0; i < pool->count; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->work);
	pthread_cond_destroy(&pool->finished);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

void pool_submit(struct pool *pool, struct task *task, bool urgent)
{
	pthread_mutex_lock(&pool->lock);
	task->state = TASK_QUEUED;
	atomic_fetch_add(&pool->submitted, 1);
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
	bool idle = !pool->head && !pool->busy && !is_crowded(task);

	if (idle)
		task->state = TASK_RUNNING;
	pthread_mutex_unlock(&pool->lock);
	if (!idle || task->dest->options->checksum)
		return false;
	task->is_brief = true;
	task_run(task);
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

enum task_state pool_state(struct pool *pool, struct task *task)
{
	pthread_mutex_lock(&pool->lock);
	enum task_state state = task_state_of(task);

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

enum task_state pool_wait(struct pool *pool, struct task *task, int ms)
{
	struct timespec until = clock_after(CLOCK_MONOTONIC, ms);
	int result = 0;

	pthread_mutex_lock(&pool->lock);
	while ((task_state_of(task) == TASK_QUEUED || task_state_of(task) == TASK_RUNNING) && !is_crowded(task)
	       && result != ETIMEDOUT)
		result = pthread_cond_timedwait(&pool->finished, &pool->lock, &until);
	enum task_state state = task_state_of(task);

	pthread_mutex_unlock(&pool->lock);
	return state;
}
