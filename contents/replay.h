/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A batch in the place of a peer. */
#ifndef CONTENTS_REPLAY_H
#define CONTENTS_REPLAY_H

#include "contents/pull.h"

/* The request for ndx, when the batch has come to that: wait until it is known whether it is wanted. NULL: it is not. */
struct transfer *replay_take(struct pull *pull, int32_t ndx);
/* The batch has not what is wanted. */
void replay_missing(struct pull *pull, struct transfer *transfer);
/* Read over a reply that nobody wants. */
void replay_skip(struct pull *pull, int32_t ndx);
/* A request, from the main thread or a worker; and one that has failed its verification. */
void replay_request(struct pull *pull, struct transfer *transfer);
void replay_came_wrong(struct pull *pull, struct transfer *transfer);
void replay_decided(struct pull *pull, int32_t ndx);
void replay_node_done(struct pull *pull, int32_t node);
/* Nothing will be decided from now on: what the batch still has, nobody waits for. */
void replay_all_decided(struct pull *pull);
/* What comes now has been sent before, and had come out wrong. */
void replay_second_phase(struct pull *pull);
/* The batch has been read: there is nothing more to come. */
void replay_end(struct pull *pull);
struct replay *replay_new(void);
void replay_free(struct replay *replay);

#endif
