/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The inside of struct wire, shared by the files of this room and by nobody else.
 *
 * Input buffer:   in[pos..limit) stream bytes ready to be read
 *                 in[limit..end) received, but behind a frame header that has not been looked at yet
 *                 frame_left     bytes of the current DATA frame that have not been received; then limit == end
 * Output buffer:  out[0..out_used) complete frames, then perhaps one open DATA frame whose header is at `frame`
 */
#ifndef WIRE_INTERNAL_H
#define WIRE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/clock.h"
#include "lib/strbuf.h"
#include "wire/wire.h"

enum {
	FRAME_HEADER = 4,
	TAG_BASE = 7,            /* what is added to a message code in a header */
	TEXT_MAX = 5119,         /* payload of a text message */
	OUT_SIZE = 64 * 1024,    /* output buffer; bounds a DATA frame too */
	IN_SIZE = 64 * 1024,     /* input buffer at first */
	IN_LONG = 1024 * 1024,   /* once long data has come */
	IN_MAX = 1024 * 1024,    /* and when it has to take what arrives while output blocks */
	READ_ROOM = 16 * 1024,   /* less room than this behind `end`: move the bytes to the front first */
	DIRECT_MIN = 16 * 1024,  /* data of this length is sent from where it is */
};

#define NO_FRAME SIZE_MAX

enum length_rule { REFUSED, TEXT, NAME, INT32, INT64, EMPTY, EXIT_CODE };

struct message_rule {
	enum message_code code;
	enum length_rule receive;
	int send_from;              /* first protocol whose peers know the code; 0: never sent */
	enum message_code instead;  /* below that; MSG_DATA: dropped */
};

struct wire {
	int in_fd, out_fd; /* -1: none */
	bool is_tcp;
	size_t last_piece; /* bytes of the last read */
	struct wire_settings set;

	uint8_t *in;
	size_t in_capacity, pos, limit, end;
	size_t frame_left;
	bool mux_in;
	atomic_bool in_closed; /* end of file or error seen */
	atomic_bool exit_heard; /* an ERROR_EXIT has come */
	int in_error;   /* errno of a failed read, 0: end of file */
	wire_message_handler *handler;
	void *handler_context;

	uint8_t *out;
	size_t out_used, frame;
	bool mux_out;
	atomic_bool failed;      /* a write failed: what follows is thrown away, so that ending cannot fail again */
	struct strbuf collected; /* what tests have sent */

	pthread_t owner;         /* not split: only its thread touches the buffers; others queue their messages */
	pthread_mutex_t queue_lock;
	struct strbuf queue;     /* whole frames */
	atomic_bool queued;

	atomic_bool split;            /* one thread reads, others write */
	pthread_t reader;
	pthread_mutex_t *output_lock; /* then held by whoever touches the output */

	wire_tee *tee_in, *tee_out;
	void *tee_in_context, *tee_out_context;

	int32_t ndx_in[2], ndx_out[2]; /* last positive, last negative magnitude (doc/protocol/01-session.md section 8.7) */

	_Atomic uint64_t received, sent;
	uint64_t received_base, sent_base;
	uint64_t stream;             /* bytes of data, not of headers and messages, up to `limit` */
	uint64_t overhead;           /* bytes of headers and messages among what was written */

	_Atomic int64_t last_io, last_output;  /* CLOCK_MONOTONIC, ns */
	_Atomic int64_t last_traffic;          /* of bytes other than our keep-alives */
	bool sends_keep_alive;
	_Atomic int64_t deadline; /* CLOCK_MONOTONIC, ns; 0: none */
	void (*expired)(void *context);
	void *expired_context;
	struct budget budget;    /* what the peer may cost */
	uint32_t bwlimit;        /* KiB per second */
	int64_t bw_last;
	uint64_t bw_debt;        /* bytes sent ahead of the limit */
};

/* Is this the thread that reads a split connection? What it does not end itself, the one that writes does. */
static inline bool wire_is_reader(const struct wire *wire)
{
	return wire->split && pthread_equal(pthread_self(), wire->reader);
}

static inline int64_t wire_keep_alive_interval(const struct wire *wire)
{
	return ((int64_t)wire->set.timeout + 1) / 2 * CLOCK_SECOND;
}

static inline void wire_run_wait_hook(struct wire *wire)
{
	if (wire->set.wait_hook)
		wire->set.wait_hook(wire->set.wait_hook_context);
}

static inline uint8_t *wire_room(struct wire *wire, size_t length)
{
	uint8_t *room;

	if ((wire->mux_out && wire->frame == NO_FRAME) || wire->out_used + length > OUT_SIZE || wire->split)
		return wire_room_slow(wire, length);
	room = wire->out + wire->out_used;
	wire->out_used += length;
	return room;
}

/* `length` (<= 16) contiguous stream bytes; `scratch` is used when they are not in the buffer in one piece. */
static inline const uint8_t *wire_take(struct wire *wire, size_t length, uint8_t scratch[16])
{
	const uint8_t *bytes = wire->in + wire->pos;

	if (wire->limit - wire->pos < length) {
		wire_read(wire, scratch, length);
		return scratch;
	}
	wire->pos += length;
	return bytes;
}

#endif
