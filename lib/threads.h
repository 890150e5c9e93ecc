/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Several threads for one piece of work that its caller waits for. Signals are for the calling thread; where no further thread
 * can be started the work is done by those there are.
 */
#ifndef LIB_THREADS_H
#define LIB_THREADS_H

#include <pthread.h>
#include <stdbool.h>

enum { THREADS_RUN_MAX = 64 };

/* Processors that can be used, at most `most`; at least 1. */
int threads_useful(int most);

/* A thread that gets no signals, to be joined. false: there is none. */
bool thread_start(pthread_t *thread, void *(*body)(void *context), void *context);

/* Run body(context, 0) here and body(context, 1) and so on in other threads, `count` (1..THREADS_RUN_MAX) in all; returns when
 * all have. */
void threads_run(int count, void (*body)(void *context, int thread), void *context);

/* Do job(context, 0) to job(context, jobs - 1), each once: a thread that has done one takes the next. */
void threads_share(int count, int jobs, void (*job)(void *context, int number), void *context);

#endif
