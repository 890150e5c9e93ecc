/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The premature end of a run (main thread). */
#ifndef RECEIVER_STOP_H
#define RECEIVER_STOP_H

struct receiver;

void receiver_stop_check(struct receiver *receiver); /* ends the process if it is to end */

#endif
