/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The premature end of a run. */
#ifndef RECEIVER_STOP_H
#define RECEIVER_STOP_H

struct receiver;
struct run;

/* From here on a signal stops the run: receiver.dest.stop. Main thread. */
void run_handle_signals(struct run *run);
void run_stop_signals(struct run *run);
/* Ends the process if the run is to end. Main thread. */
void receiver_stop_check(struct receiver *receiver);

#endif
