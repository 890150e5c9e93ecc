/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A connection that one thread reads and another writes: nothing is lost, nobody waits for the other, limits hold (run
 * under tsan). */
#include "expect_die.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire/wire.h"

enum { NUMBERS = 300000, MESSAGES = 200 };

struct end {
	struct wire *wire;
	int fd;
	pthread_mutex_t lock;
	int messages;       /* seen by the handler */
	int wrong;          /* of the numbers read */
};

static void count_message(void *context, enum message_code code, const uint8_t *payload, size_t length)
{
	struct end *end = context;

	if (code == MSG_SUCCESS && length == 4 && (int32_t)decode_int(payload) == end->messages)
		end->messages++;
}

static struct end *new_end(int fd)
{
	struct end *end = calloc(1, sizeof *end);

	end->fd = fd;
	end->wire = wire_new(fd, fd);
	wire_settings(end->wire)->protocol = 32;
	wire_set_mux_in(end->wire, true);
	wire_set_mux_out(end->wire, true);
	wire_set_message_handler(end->wire, count_message, end);
	wire_settings(end->wire)->timeout = 20;
	pthread_mutex_init(&end->lock, NULL);
	return end;
}

static void free_end(struct end *end, int fd)
{
	wire_free(end->wire);
	close(fd);
	pthread_mutex_destroy(&end->lock);
	free(end);
}

static void *write_numbers(void *context)
{
	struct end *end = context;

	for (int i = 0; i < NUMBERS; i++) {
		pthread_mutex_lock(&end->lock);
		wire_write_int(end->wire, i);
		if (i % 1000 == 0)
			wire_flush(end->wire);
		pthread_mutex_unlock(&end->lock);
	}
	pthread_mutex_lock(&end->lock);
	wire_flush(end->wire);
	pthread_mutex_unlock(&end->lock);
	return NULL;
}

/* What one end does: reads what the other writes, sends messages meanwhile from the reading thread. */
static void *use_end(void *context)
{
	struct end *end = context;
	int roomy = 256 * 1024;
	pthread_t writer;

	wire_set_output_lock(end->wire, &end->lock);
	wire_split(end->wire);
	if (pthread_create(&writer, NULL, write_numbers, end))
		return NULL;
	for (int i = 0; i < NUMBERS; i++) {
		end->wrong += wire_read_int(end->wire) != i;
		if (i % (NUMBERS / MESSAGES) == 0)
			wire_send_message_int(end->wire, MSG_SUCCESS, i / (NUMBERS / MESSAGES));
	}
	pthread_join(writer, NULL);
	/* The last messages: nobody need be reading any more. */
	setsockopt(end->fd, SOL_SOCKET, SO_SNDBUF, &roomy, sizeof roomy);
	wire_flush(end->wire);
	return end;
}

UNIT_TEST(both_directions_at_full_speed)
{
	int fds[2], small = 4096;
	struct end *ends[2];
	pthread_t other;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	/* Little room, so that both sides are stopped again and again. */
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	ends[0] = new_end(fds[0]);
	ends[1] = new_end(fds[1]);
	assert_int_equal(pthread_create(&other, NULL, use_end, ends[1]), 0);
	assert_non_null(use_end(ends[0]));
	pthread_join(other, NULL);
	for (int i = 0; i < 2; i++) {
		/* The last messages stand behind the numbers, or in the buffers of their end when it was done reading. */
		if (ends[i]->messages < MESSAGES)
			wire_input_ready(ends[i]->wire);
		assert_int_equal(ends[i]->wrong, 0);
		assert_int_equal(ends[i]->messages, MESSAGES);
	}
	free_end(ends[0], fds[0]);
	free_end(ends[1], fds[1]);
}

static size_t received(int fd, uint8_t *bytes, size_t size)
{
	size_t length = 0;
	ssize_t got;

	while ((got = recv(fd, bytes + length, size - length, MSG_DONTWAIT)) > 0)
		length += (size_t)got;
	return length;
}

static void *answer_later(void *context)
{
	const int *fd = context;
	const struct timespec pause = { 2, 500000000 };

	nanosleep(&pause, NULL);
	return write(*fd, "\4\0\0\7\1\0\0\0", 8) == 8 ? context : NULL;
}

/* Nobody writes, and the reading thread has somebody to speak for: what waits goes out, and so do keep-alives. */
UNIT_TEST(a_waiting_reader_sends_for_others)
{
	uint8_t bytes[256];
	struct end *end;
	pthread_t peer;
	size_t length;
	void *good;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	end = new_end(fds[0]);
	wire_set_output_lock(end->wire, &end->lock);
	wire_settings(end->wire)->timeout = 2;
	wire_write_int(end->wire, 42);
	wire_split(end->wire);
	wire_send_message_int(end->wire, MSG_SUCCESS, 7);
	assert_int_equal(pthread_create(&peer, NULL, answer_later, &fds[1]), 0);
	assert_int_equal(wire_read_int(end->wire), 1);
	pthread_join(peer, &good);
	assert_non_null(good);
	length = received(fds[1], bytes, sizeof bytes);
	assert_true(length >= 20 && length <= 24);
	assert_memory_equal(bytes, "\4\0\0\7\x2a\0\0\0" "\4\0\0\x6b\7\0\0\0" "\0\0\0\7", 20);
	free_end(end, fds[0]);
	close(fds[1]);
}

/* With the lock taken it does not: that is a writer's turn. */
UNIT_TEST(a_waiting_reader_leaves_a_writer_alone)
{
	uint8_t bytes[64];
	struct end *end;
	pthread_t peer;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	end = new_end(fds[0]);
	wire_set_output_lock(end->wire, &end->lock);
	wire_split(end->wire);
	pthread_mutex_lock(&end->lock);
	wire_send_message_int(end->wire, MSG_SUCCESS, 7);
	assert_int_equal(pthread_create(&peer, NULL, answer_later, &fds[1]), 0);
	assert_int_equal(wire_read_int(end->wire), 1);
	pthread_join(peer, NULL);
	assert_int_equal(received(fds[1], bytes, sizeof bytes), 0);
	wire_flush(end->wire);
	assert_int_equal(received(fds[1], bytes, sizeof bytes), 0);
	pthread_mutex_unlock(&end->lock);
	wire_flush(end->wire);
	assert_int_equal(received(fds[1], bytes, sizeof bytes), 8);
	free_end(end, fds[0]);
	close(fds[1]);
}

static void *send_then_write(void *context)
{
	struct end *end = context;

	pthread_mutex_lock(&end->lock);
	wire_write_int(end->wire, 1);
	wire_send_message(end->wire, MSG_INFO, "text\n", 5);
	wire_write_int(end->wire, 2);
	wire_flush(end->wire);
	pthread_mutex_unlock(&end->lock);
	return NULL;
}

/* doc/protocol/01-session.md section 9.5: a message comes before the data that are written after it. */
UNIT_TEST(messages_keep_their_place)
{
	static const char wanted[] = "\4\0\0\7\1\0\0\0" "\5\0\0\x09text\n" "\4\0\0\7\2\0\0\0";
	uint8_t bytes[64];
	struct end *end;
	pthread_t writer;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	end = new_end(fds[0]);
	wire_set_output_lock(end->wire, &end->lock);
	wire_split(end->wire);
	assert_int_equal(pthread_create(&writer, NULL, send_then_write, end), 0);
	pthread_join(writer, NULL);
	assert_int_equal(received(fds[1], bytes, sizeof bytes), sizeof wanted - 1);
	assert_memory_equal(bytes, wanted, sizeof wanted - 1);
	free_end(end, fds[0]);
	close(fds[1]);
}

UNIT_TEST(a_silent_peer_times_out)
{
	struct end *end;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	end = new_end(fds[0]);
	wire_settings(end->wire)->timeout = 1;
	wire_split(end->wire);
	expect_die(30, "io timeout after 1 seconds -- exiting", wire_read_int(end->wire));
	free_end(end, fds[0]);
	close(fds[1]);
}
