/* SPDX-License-Identifier: GPL-3.0-or-later */
/* wire/: real descriptors: blocking, draining, time-outs, keep-alives, limits. */
#include "expect_die.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire/wire.h"

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct wire *pair(int *peer)
{
	struct wire *wire;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	wire = wire_new(fds[0], fds[0]);
	wire_settings(wire)->protocol = 32;
	*peer = fds[1];
	return wire;
}

/* The wire's own descriptor lives as long as the program. */
static void done(struct wire *wire, int fd)
{
	wire_free(wire);
	close(fd);
}

struct script {
	int fd;
	size_t flood, read_total;
	int pause_ms;
	uint64_t got;
	uint8_t last;
};

static void nap(int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

/* A peer that first writes `flood` bytes of NOOP frames while it reads nothing, then reads `read_total` bytes. */
static void *flood_then_read(void *argument)
{
	struct script *script = argument;
	uint8_t frames[65536], buf[65536];
	size_t step;
	ssize_t n;

	for (size_t i = 0; i < sizeof frames; i += 4)
		memcpy(frames + i, "\0\0\0\x31", 4);
	for (size_t left = script->flood; left; left -= step) {
		step = left < sizeof frames ? left : sizeof frames;
		if ((n = write(script->fd, frames, step)) <= 0)
			return NULL;
		step = (size_t)n;
	}
	nap(script->pause_ms);
	while (script->got < script->read_total) {
		n = read(script->fd, buf, sizeof buf);
		if (n <= 0)
			break;
		script->got += (uint64_t)n;
		script->last = buf[n - 1];
	}
	if (write(script->fd, "\1\0\0\7Z", 5) != 5)
		script->got = 0;
	return NULL;
}

/* S-058 and the deadlock rule: both sides write more than the socket holds, and neither reads at first. */
UNIT_TEST(a_blocked_write_drains_what_the_peer_sends)
{
	enum { OUTPUT = 4 * 1024 * 1024 };
	struct script script = { .flood = 800000, .pause_ms = 50 };
	uint8_t *data = calloc(1, OUTPUT);
	pthread_t thread;
	struct wire *wire = pair(&script.fd);

	wire_set_mux_in(wire, true);
	script.read_total = OUTPUT;
	assert_int_equal(pthread_create(&thread, NULL, flood_then_read, &script), 0);
	wire_write(wire, data, OUTPUT);
	wire_flush(wire);
	assert_int_equal(wire_read_byte(wire), 'Z');
	pthread_join(thread, NULL);
	assert_int_equal(script.got, OUTPUT);
	assert_int_equal(wire_bytes_read(wire), 800005);
	wire_free(wire);
	close(script.fd);
	free(data);
}

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* 64 MiB of frames against a blocked output do not end up in memory. */
UNIT_TEST(the_drained_input_is_bounded)
{
	enum { OUTPUT = 8 * 1024 * 1024 };
	struct script script = { .flood = 0, .pause_ms = 0 };
	struct script writer = { .flood = 64 * 1024 * 1024, .read_total = 0 };
	uint8_t *data = calloc(1, OUTPUT);
	pthread_t reader_thread, writer_thread;
	struct wire *wire = pair(&script.fd);
	long before;

	wire_set_mux_in(wire, true);
	writer.fd = script.fd;
	script.pause_ms = 300;
	script.read_total = OUTPUT;
	memset(data, 1, OUTPUT);
	before = peak_kib();
	assert_int_equal(pthread_create(&writer_thread, NULL, flood_then_read, &writer), 0);
	assert_int_equal(pthread_create(&reader_thread, NULL, flood_then_read, &script), 0);
	wire_write(wire, data, OUTPUT);
	wire_flush(wire);
	assert_int_equal(wire_read_byte(wire), 'Z');
	pthread_join(reader_thread, NULL);
	assert_int_equal(wire_read_byte(wire), 'Z');
	pthread_join(writer_thread, NULL);
	assert_true(peak_kib() - before < 16 * 1024);
	wire_free(wire);
	close(script.fd);
	free(data);
}

UNIT_TEST(a_read_sends_what_was_held_back)
{
	struct script script = { .flood = 0, .read_total = 5 };
	pthread_t thread;
	struct wire *wire = pair(&script.fd);

	wire_set_mux_in(wire, true);
	wire_set_mux_out(wire, true);
	assert_int_equal(pthread_create(&thread, NULL, flood_then_read, &script), 0);
	wire_write_byte(wire, 0x42);
	assert_int_equal(wire_read_byte(wire), 'Z');
	pthread_join(thread, NULL);
	assert_int_equal(script.last, 0x42);
	wire_free(wire);
	close(script.fd);
}

UNIT_TEST(a_closed_peer_is_an_orderly_end)
{
	struct wire *wire;
	int peer;

	wire = pair(&peer);
	log_set_role("sender");
	assert_int_equal(write(peer, "abc", 3), 3);
	close(peer);
	expect_die(EXIT_STREAMIO, "rsync: connection unexpectedly closed (3 bytes received so far) [sender]",
		   wire_read_int(wire));
	assert_true(wire_input_ready(wire));
	wire_write_int(wire, 5);
	expect_die(EXIT_SOCKETIO, "rsync: [sender] write error: Broken pipe (32)", wire_flush(wire));
	/* Once a write has failed nothing else can: the end must not fail again. */
	wire_set_mux_out(wire, true);
	wire_send_message(wire, MSG_ERROR, "last words\n", 11);
	wire_flush(wire);
	wire_drain(wire, 5);
	wire_free(wire);
	log_set_role("client");
}

UNIT_TEST(silence_ends_after_the_timeout)
{
	double start = now(), burnt = cpu();
	struct wire *wire;
	int peer;

	wire = pair(&peer);
	wire_settings(wire)->timeout = 1;
	expect_die(EXIT_TIMEOUT, "[client] io timeout after 1 seconds -- exiting", wire_read_byte(wire));
	assert_true(now() - start > 0.95 && now() - start < 2.5);
	assert_true(cpu() - burnt < 0.3);
	done(wire, peer);
}

/* One that only takes keep-alives: of a client, three time-outs; none go out while a list is waited for. */
UNIT_TEST(silence_of_a_server)
{
	for (int listens = 0; listens <= 1; listens++) {
		double start = now();
		struct wire *wire;
		int peer;

		wire = pair(&peer);
		wire_set_mux_out(wire, true);
		wire_settings(wire)->timeout = 1;
		wire_settings(wire)->only_listens = listens;
		if (listens)
			expect_die(EXIT_TIMEOUT, "[client] io timeout after 1 seconds -- exiting", wire_read_byte(wire));
		else
			expect_die(EXIT_TIMEOUT, "[client] io timeout after 3 seconds -- exiting", wire_read_byte(wire));
		assert_true(now() - start > (listens ? 0.95 : 2.95));
		done(wire, peer);
	}
}

static void *write_slowly(void *argument)
{
	struct script *script = argument;

	for (int i = 0; i < 4; i++) {
		nap(600);
		if (write(script->fd, "x", 1) != 1)
			break;
	}
	return NULL;
}

UNIT_TEST(any_byte_puts_the_timeout_off)
{
	struct script script = { .flood = 0 };
	struct wire *wire = pair(&script.fd);
	pthread_t thread;

	wire_settings(wire)->timeout = 1;
	assert_int_equal(pthread_create(&thread, NULL, write_slowly, &script), 0);
	assert_int_equal(wire_read_int(wire), 0x78787878);
	pthread_join(thread, NULL);
	done(wire, script.fd);
}

static void expired(void *context)
{
	(void)context;
	die(EXIT_TIMEOUT, "the handshake took too long");
}

static int64_t nanoseconds_from_now(double seconds)
{
	return (int64_t)((now() + seconds) * 1e9);
}

/* S-046, S-047: a trickle of bytes does not extend the deadline. */
UNIT_TEST(the_deadline_holds_against_a_trickle)
{
	struct script script = { .flood = 0 };
	struct wire *wire = pair(&script.fd);
	pthread_t thread;
	double start = now();

	wire_set_deadline(wire, nanoseconds_from_now(1.0), expired, NULL);
	assert_int_equal(pthread_create(&thread, NULL, write_slowly, &script), 0);
	expect_die(EXIT_TIMEOUT, "the handshake took too long", wire_read_int(wire));
	assert_true(now() - start > 0.9 && now() - start < 1.6);
	pthread_join(thread, NULL);
	done(wire, script.fd);
}

/* S-052: huge values neither overflow nor spin. */
UNIT_TEST(a_huge_timeout_does_not_spin)
{
	struct wire *wire;
	double burnt = cpu();
	int peer;

	wire = pair(&peer);
	wire_set_mux_out(wire, true);
	wire_settings(wire)->timeout = INT32_MAX;
	wire_set_deadline(wire, nanoseconds_from_now(1.0), expired, NULL);
	expect_die(EXIT_TIMEOUT, "the handshake took too long", wire_read_byte(wire));
	assert_true(cpu() - burnt < 0.2);
	done(wire, peer);
}

UNIT_TEST(keep_alives_go_out_at_half_time)
{
	struct wire *wire;
	uint8_t got[64];
	double start = now();
	int peer;

	wire = pair(&peer);
	wire_set_mux_out(wire, true);
	wire_settings(wire)->timeout = 2;
	wire_set_deadline(wire, nanoseconds_from_now(2.6), expired, NULL);
	/* Own keep-alives count as traffic: the peer is not timed out. */
	expect_die(EXIT_TIMEOUT, "the handshake took too long", wire_read_byte(wire));
	assert_true(now() - start > 2.4);
	assert_int_equal(read(peer, got, sizeof got), 8);
	assert_memory_equal(got, "\0\0\0\7\0\0\0\7", 8);
	done(wire, peer);
}

UNIT_TEST(keep_alive_is_quiet_until_it_is_due)
{
	struct wire *wire;
	struct pollfd fd;
	uint8_t got[16];
	int peer;

	wire = pair(&peer);
	fd = (struct pollfd){ .fd = peer, .events = POLLIN };
	wire_set_mux_out(wire, true);
	wire_settings(wire)->timeout = 2;
	for (int i = 0; i < 1000; i++)
		wire_keep_alive(wire);
	assert_int_equal(poll(&fd, 1, 0), 0);
	nap(1100);
	wire_keep_alive(wire);
	wire_keep_alive(wire);
	assert_int_equal(read(peer, got, sizeof got), 4);
	nap(1100);
	wire_write_byte(wire, 9);
	wire_keep_alive(wire);
	assert_int_equal(read(peer, got, sizeof got), 5);
	assert_memory_equal(got, "\1\0\0\7\x09", 5);
	done(wire, peer);
}

UNIT_TEST(stop_at_ends_the_run)
{
	struct wire *wire;
	int peer;

	wire = pair(&peer);
	wire_settings(wire)->stop_at = time(NULL) + 1;
	expect_die(EXIT_TIMEOUT, "stopping at requested limit", wire_read_byte(wire));
	done(wire, peer);
}

static void count_call(void *context)
{
	if (++*(int *)context == 3)
		die(EXIT_SIGNAL, "told to stop");
}

UNIT_TEST(the_wait_hook_runs_every_second)
{
	struct wire *wire;
	int peer, calls = 0;
	double start = now();

	wire = pair(&peer);
	wire_settings(wire)->wait_hook = count_call;
	wire_settings(wire)->wait_hook_context = &calls;
	expect_die(EXIT_SIGNAL, "told to stop", wire_read_byte(wire));
	assert_true(now() - start < 2.5);
	done(wire, peer);
}

UNIT_TEST(bandwidth_limit)
{
	struct script script = { .read_total = 102400 };
	struct wire *wire = pair(&script.fd);
	static uint8_t data[102400];
	pthread_t thread;
	double start = now();

	wire_set_bwlimit(wire, 100);
	assert_int_equal(pthread_create(&thread, NULL, flood_then_read, &script), 0);
	wire_write(wire, data, sizeof data);
	wire_flush(wire);
	assert_true(now() - start > 0.7 && now() - start < 1.6);
	pthread_join(thread, NULL);
	assert_int_equal(script.got, 102400);
	done(wire, script.fd);
}

UNIT_TEST(drain_stops_at_an_exit_message)
{
	struct wire *wire;
	double start = now();
	int peer;

	wire = pair(&peer);
	wire_set_mux_in(wire, true);
	assert_int_equal(write(peer, "\3\0\0\7abc\1\0\0\x37?\0\0\0\x5d", 16), 16);
	wire_drain(wire, 10);
	assert_true(now() - start < 1);
	wire_drain(wire, 1);
	assert_true(now() - start < 1.9);
	done(wire, peer);
}

UNIT_TEST(input_ready_handles_messages_but_reports_data)
{
	struct wire *wire;
	int peer;

	wire = pair(&peer);
	wire_set_mux_in(wire, true);
	assert_false(wire_input_ready(wire));
	assert_int_equal(write(peer, "\0\0\0\x31\0\0\0\7\1\0\0", 11), 11);
	assert_false(wire_input_ready(wire));
	assert_int_equal(write(peer, "\7Z", 2), 2);
	assert_true(wire_input_ready(wire));
	assert_int_equal(wire_read_byte(wire), 'Z');
	assert_false(wire_input_ready(wire));
	close(peer);
	assert_true(wire_input_ready(wire));
	wire_free(wire);
}
