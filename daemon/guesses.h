/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Failed logins, by client: memory that a listener shares with its server processes. Who fails too often waits for the answer,
 * and only the one who fails: right passwords are never kept waiting.
 */
#ifndef DAEMON_GUESSES_H
#define DAEMON_GUESSES_H

#include <stdint.h>

#include "daemon/hosts.h"

#define GUESSES_AT_ONCE 20        /* that are answered at once; one more is forgiven each second */
#define GUESS_SECONDS 1
#define GUESS_WAIT_MAX_SECONDS 30 /* less than a silent client may stay */

struct guesses;

/* Ends the process if there is no memory. Lives as long as the process. */
struct guesses *guesses_new(void);
/*
 * A login from there has failed at `now` (nanoseconds of a clock that only goes forward): how many nanoseconds its answer has
 * to wait. Any number of processes may ask at once. guesses NULL: there is no listener that would remember; 0.
 */
int64_t guesses_failed(struct guesses *guesses, const struct origin *origin, int64_t now);

#endif
