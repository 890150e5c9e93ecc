/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One connection: its bytes and frames in both directions, which wait for each other. A write that blocks takes in what
 * arrives, a read that waits sends what is buffered.
 */
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "wire/internal.h"

/* --- reading --- */

static void receive_or_close(struct wire *wire)
{
	uint64_t before = wire->received;
	int64_t since = clock_nanoseconds();

	while (wire_receive(wire, IN_SIZE) == WIRE_WOULD_BLOCK) {
		/* The peer may be waiting for what we hold back; sending it may have drained input. */
		if (!wire->split && wire_is_output_pending(wire)) {
			wire_flush(wire);
		} else {
			wire_check_silence(wire, since);
			wire_keep_alive(wire);
			if (wire->received == before)
				wire_wait_for(wire, wire->in_fd, -1, since);
		}
		if (wire->received != before)
			return;
	}
}

bool wire_input_ready(struct wire *wire)
{
	do {
		if (wire_take_frames(wire))
			return true;
	} while (wire_receive(wire, IN_SIZE) == WIRE_RECEIVED);
	return wire->in_closed;
}

/* false: the stream has come to its end. */
static bool fill_stream(struct wire *wire)
{
	while (!wire_take_frames(wire)) {
		if (wire->in_closed)
			return false;
		receive_or_close(wire);
	}
	return true;
}

bool wire_next_byte(struct wire *wire, uint8_t *byte)
{
	if (!fill_stream(wire))
		return false;
	*byte = wire->in[wire->pos++];
	return true;
}

void wire_read(struct wire *wire, void *bytes, size_t length)
{
	uint8_t *to = bytes;
	size_t here;

	while (length) {
		if (!fill_stream(wire))
			wire_die_closed(wire);
		here = wire->limit - wire->pos;
		if (here > length)
			here = length;
		memcpy(to, wire->in + wire->pos, here);
		wire->pos += here;
		to += here;
		length -= here;
	}
}

const uint8_t *wire_read_piece(struct wire *wire, size_t most, size_t *length)
{
	const uint8_t *piece;

	if (most >= DIRECT_MIN && wire->in_capacity < IN_LONG) {
		wire->in = xrealloc_array(wire->in, IN_LONG, 1);
		wire->in_capacity = IN_LONG;
	}
	if (!fill_stream(wire))
		wire_die_closed(wire);
	piece = wire->in + wire->pos;
	*length = wire->limit - wire->pos < most ? wire->limit - wire->pos : most;
	wire->pos += *length;
	return piece;
}

/* --- the life of a connection --- */

static void set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		die(EXIT_SOCKETIO, "cannot make the connection's descriptor %d non-blocking: %s", fd, strerror(errno));
}

static struct wire *new_wire(int in_fd, int out_fd)
{
	struct wire *wire = xcalloc(1, sizeof *wire);

	wire->in_fd = in_fd;
	wire->out_fd = out_fd;
	wire->in_capacity = IN_SIZE;
	wire->in = xmalloc(IN_SIZE);
	wire->out = xmalloc(OUT_SIZE);
	wire->frame = NO_FRAME;
	wire->set.owed = true;
	wire->ndx_in[0] = wire->ndx_out[0] = -1;
	wire->ndx_in[1] = wire->ndx_out[1] = 1;
	wire->owner = pthread_self();
	wire->queue_lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	wire->last_io = wire->last_output = wire->last_traffic = wire->bw_last = clock_nanoseconds();
	return wire;
}

struct wire *wire_new(int in_fd, int out_fd)
{
	struct wire *wire;

	/* A peer that has gone must be an error of write(), not a signal. */
	signal(SIGPIPE, SIG_IGN);
	set_nonblocking(in_fd);
	set_nonblocking(out_fd);
	wire = new_wire(in_fd, out_fd);
	int protocol;
	socklen_t length = sizeof protocol;

	wire->is_tcp = getsockopt(in_fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 && protocol == IPPROTO_TCP;
	return wire;
}

struct wire *wire_new_file(int in_fd)
{
	struct wire *wire = new_wire(in_fd, -1);

	wire->failed = true;
	wire->in_closed = in_fd < 0;
	return wire;
}

void wire_free(struct wire *wire)
{
	if (!wire)
		return;
	pthread_mutex_destroy(&wire->queue_lock);
	strbuf_free(&wire->queue);
	strbuf_free(&wire->collected);
	free(wire->in);
	free(wire->out);
	free(wire);
}

/* --- settings and counts --- */

struct wire_settings *wire_settings(struct wire *wire)
{
	return &wire->set;
}

uint64_t wire_stream_read(const struct wire *wire)
{
	return wire->stream - (wire->limit - wire->pos);
}

uint64_t wire_stream_written(const struct wire *wire)
{
	return wire->sent + wire->out_used - wire->overhead;
}

uint64_t wire_bytes_written(const struct wire *wire)
{
	return wire->sent + wire->out_used - wire->sent_base;
}

void wire_reset_counts(struct wire *wire)
{
	/* What has arrived but has not been read belongs to the part that is counted. */
	wire->received_base = wire->received - (wire->end - wire->pos);
	wire->sent_base = wire->sent + wire->out_used;
}

struct budget *wire_budget(struct wire *wire)
{
	return &wire->budget;
}
