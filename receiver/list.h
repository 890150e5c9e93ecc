/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --list-only (main thread). */
#ifndef RECEIVER_LIST_H
#define RECEIVER_LIST_H

struct receiver;

void receiver_list_run(struct receiver *receiver);

#endif
