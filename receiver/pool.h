/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Worker threads and their queue of tasks; the premature end of a run. */
#ifndef RECEIVER_POOL_H
#define RECEIVER_POOL_H

#include "dest/task.h"

struct dest;
struct receiver;
struct run;

#define THREADS_MAX 16

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t work;     /* the queue has grown, or it is closed */
	pthread_cond_t finished; /* a task has changed its state */
	struct task *head, *tail;
	bool closed;
	int busy;                /* workers that have a task */
	atomic_int submitted;    /* tasks that no worker has gone through yet */
	int count;
	pthread_t threads[THREADS_MAX];
};

/* From here on a signal stops the run: receiver.dest.stop. Main thread. */
void run_handle_signals(struct run *run);
void run_stop_signals(struct run *run);
/* Ends the process if the run is to end. Main thread. */
void receiver_stop_check(struct receiver *receiver);

/* As many threads as this run can use. */
struct pool *pool_new(const struct dest *dest);
void pool_free(struct pool *pool);       /* waits for the workers; NULL: nothing */
void pool_submit(struct pool *pool, struct task *task, bool urgent);
/* Go through a new task in this thread while no worker has anything to do: to wake one would cost more than most directories.
 * false: workers are busy, or something takes long, and the rest has to be submitted. */
bool pool_run_here(struct pool *pool, struct task *task);
/* Wait until the state of the task is not QUEUED or RUNNING, some task is crowded, or `ms` have passed. */
enum task_state pool_wait(struct pool *pool, struct task *task, int ms);
enum task_state pool_state(struct pool *pool, struct task *task);
/* Has its worker gone through it? */
bool pool_has_run(struct pool *pool, struct task *task);
/* One more, one fewer reason why a task is not done although its worker is. Any thread. */
void pool_hold(struct pool *pool, struct task *task);
void pool_release(struct pool *pool, struct task *task);

#endif
