/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The life of a connection: making, setting and freeing it. poll.c moves its bytes, mux.c its frames. */
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "wire/internal.h"

int64_t monotonic_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NANOSECONDS + now.tv_nsec;
}

static void set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		die(EXIT_SOCKETIO, "cannot make the connection's descriptor %d non-blocking: %s", fd, strerror(errno));
}

static struct wire *new_wire(int in_fd, int out_fd, size_t in_capacity)
{
	struct wire *wire = xcalloc(1, sizeof *wire);
	pthread_mutexattr_t recursive;

	wire->in_fd = in_fd;
	wire->out_fd = out_fd;
	wire->protocol = 0;
	wire->in_capacity = in_capacity;
	wire->in = xmalloc(in_capacity);
	wire->out = xmalloc(OUT_SIZE);
	wire->frame = NO_FRAME;
	wire->ndx_in[0] = wire->ndx_out[0] = -1;
	wire->ndx_in[1] = wire->ndx_out[1] = 1;
	wire->owner = pthread_self();
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&wire->queue_lock, &recursive);
	pthread_mutexattr_destroy(&recursive);
	wire->last_io = wire->last_output = wire->last_traffic = wire->bw_last = monotonic_now();
	return wire;
}

static bool is_tcp(int fd)
{
	int protocol;
	socklen_t length = sizeof protocol;

	return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 && protocol == IPPROTO_TCP;
}

struct wire *wire_new(int in_fd, int out_fd)
{
	struct wire *wire;

	/* A peer that has gone must be an error of write(), not a signal. */
	signal(SIGPIPE, SIG_IGN);
	set_nonblocking(in_fd);
	set_nonblocking(out_fd);
	wire = new_wire(in_fd, out_fd, IN_SIZE);
	wire->is_tcp = is_tcp(in_fd);
	return wire;
}

struct wire *wire_new_file(int in_fd)
{
	struct wire *wire = new_wire(in_fd, -1, IN_SIZE);

	wire->failed = true;
	wire->in_closed = in_fd < 0;
	return wire;
}

struct wire *wire_new_memory(const void *input, size_t length)
{
	struct wire *wire = new_wire(-1, -1, length ? length : 1);

	if (length)
		memcpy(wire->in, input, length);
	wire->end = 0;
	wire_input_grew(wire, length);
	wire->received = length;
	wire->in_closed = true;
	return wire;
}

const uint8_t *wire_test_output(struct wire *wire, size_t *length)
{
	wire_flush(wire);
	*length = wire->collected.length;
	return (const uint8_t *)strbuf_text(&wire->collected);
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

void wire_set_protocol(struct wire *wire, int protocol)
{
	wire->protocol = protocol;
}

void wire_set_server(struct wire *wire, bool is_server)
{
	wire->is_server = is_server;
}

void wire_set_sender(struct wire *wire, bool is_sender)
{
	wire->is_sender = is_sender;
}

void wire_set_message_handler(struct wire *wire, wire_message_handler *handler, void *context)
{
	wire->handler = handler;
	wire->handler_context = context;
}

void wire_set_timeout(struct wire *wire, int seconds)
{
	wire->timeout = seconds > 0 ? seconds : 0;
}

void wire_only_listen(struct wire *wire, bool only_listens)
{
	wire->only_listens = only_listens;
}

int wire_timeout(const struct wire *wire)
{
	return wire->timeout;
}

void wire_set_deadline(struct wire *wire, int64_t monotonic_ns, void (*expired)(void *context), void *context)
{
	wire->expired = expired;
	wire->expired_context = context;
	wire->deadline = monotonic_ns;
}

void wire_set_stop_at(struct wire *wire, time_t when)
{
	wire->stop_at = when;
}

void wire_set_bwlimit(struct wire *wire, uint32_t kib_per_second)
{
	wire->bwlimit = kib_per_second;
	wire->bw_last = monotonic_now();
	wire->bw_debt = 0;
}

void wire_set_wait_hook(struct wire *wire, void (*hook)(void *context), void *context)
{
	wire->wait_hook = hook;
	wire->wait_hook_context = context;
}

void wire_set_owed(struct wire *wire, bool owed)
{
	atomic_store(&wire->owed, owed);
}

void wire_set_meter(struct wire *wire, struct wire_meter *meter)
{
	wire->meter = meter;
	atomic_store(&wire->owed, true);
}

uint64_t wire_bytes_read(const struct wire *wire)
{
	return wire->received - wire->received_base;
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
