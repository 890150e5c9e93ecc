/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a listener has: the board in shared memory on which server processes publish their state, the count of these processes,
 * its sockets, and systemd's two environment variables.
 */
#include "daemon/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/file.h"
#include "fs/socket.h"
#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/strbuf.h"

#define FIRST_PASSED_FD 3
#define REPORT_MS 60000
#define MINUTE (60 * CLOCK_SECOND)

/* --- the board --- */

struct board_slot {
	atomic_int step;
	atomic_int state;
	struct wire_meter meter;
	_Atomic uint64_t counts[BOARD_COUNTS];
	_Atomic char texts[BOARD_TEXTS][BOARD_TEXT];
};

bool board_reach(struct board_slot *slot, enum board_step step)
{
	int seen = slot ? atomic_load(&slot->step) : BOARD_DISMISSED;

	while (slot && seen != BOARD_DISMISSED)
		if (atomic_compare_exchange_weak(&slot->step, &seen, (int)step))
			return true;
	return !slot;
}

void board_set_state(struct board_slot *slot, enum board_state state)
{
	if (slot)
		atomic_store_explicit(&slot->state, (int)state, memory_order_relaxed);
}

void board_set_text(struct board_slot *slot, enum board_text which, const char *text)
{
	size_t length = strnlen(text, BOARD_TEXT - 1);

	for (size_t i = 0; slot && i < BOARD_TEXT; i++)
		atomic_store_explicit(&slot->texts[which][i], i < length ? text[i] : 0, memory_order_relaxed);
}

void board_set_count(struct board_slot *slot, enum board_count which, uint64_t value)
{
	if (slot)
		atomic_store_explicit(&slot->counts[which], value, memory_order_relaxed);
}

void board_count_file(struct board_slot *slot)
{
	if (slot)
		atomic_fetch_add_explicit(&slot->counts[BOARD_FILES], 1, memory_order_relaxed);
}

struct wire_meter *board_meter(struct board_slot *slot)
{
	return slot ? &slot->meter : NULL;
}

uint64_t board_traffic(const struct board_slot *slot)
{
	if (!slot)
		return 0;
	return atomic_load_explicit(&slot->meter.received, memory_order_relaxed) +
	       atomic_load_explicit(&slot->meter.sent, memory_order_relaxed);
}

void board_read(const struct board_slot *slot, struct board_view *view)
{
	int state = atomic_load_explicit(&slot->state, memory_order_relaxed);
	char byte;

	view->state = state >= 0 && state < BOARD_STATES ? (enum board_state)state : BOARD_ENDING;
	view->received = atomic_load_explicit(&slot->meter.received, memory_order_relaxed);
	view->sent = atomic_load_explicit(&slot->meter.sent, memory_order_relaxed);
	for (int i = 0; i < BOARD_COUNTS; i++)
		view->counts[i] = atomic_load_explicit(&slot->counts[i], memory_order_relaxed);
	for (int i = 0; i < BOARD_TEXTS; i++) {
		size_t length = 0;

		while (length < BOARD_TEXT - 1 && (byte = atomic_load_explicit(&slot->texts[i][length], memory_order_relaxed)))
			view->texts[i][length++] = (unsigned char)byte < ' ' || byte == 0x7f ? '?' : byte;
		view->texts[i][length] = 0;
	}
}

/* --- the processes --- */

struct children *children_new(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct children *children = xcalloc(1, sizeof *children);

	children->stride = (sizeof(struct board_slot) + page - 1) / page * page;
	children->board =
		mmap(NULL, CHILDREN_SLOTS * children->stride, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (children->board == MAP_FAILED)
		die(EXIT_MALLOC, "cannot share memory with server processes: %s", strerror(errno));
	return children;
}

static enum board_step step_of(struct children *children, int slot)
{
	return (enum board_step)atomic_load(&children_board(children, slot)->step);
}

static void note_room(struct children *children, int slot, int *count, char last[BOARD_TEXT])
{
	struct board_view view;

	board_read(children_board(children, slot), &view);
	memcpy(last, view.texts[BOARD_ADDRESS], BOARD_TEXT);
	++*count;
	children->items[slot].killed = true;
}

static bool dismiss_stranger(struct children *children, int64_t now)
{
	int slot, seen = BOARD_CONNECTED;

	do {
		slot = -1;
		for (int i = 0; i < CHILDREN_SLOTS; i++) {
			const struct child *child = &children->items[i];
			const int at = (int)step_of(children, i);

			if (!child->pid || child->killed || at > BOARD_CHOSEN
			    || child->began > now - HANDSHAKE_MS * CLOCK_MILLISECOND)
				continue;
			if (slot >= 0 && (at > seen || (at == seen && child->began >= children->items[slot].began)))
				continue;
			slot = i;
			seen = at;
		}
		if (slot < 0)
			return false;
	} while (!atomic_compare_exchange_strong(&children_board(children, slot)->step, &seen, BOARD_DISMISSED));
	note_room(children, slot, &children->killed, children->last);
	kill(children->items[slot].pid, SIGKILL);
	return true;
}

/* --- sessions that are too slow --- */

static struct mark mark_now(struct children *children, int slot, int64_t now)
{
	const struct board_slot *board = children_board(children, slot);

	return (struct mark){ now, board_traffic(board), atomic_load_explicit(&board->meter.waited, memory_order_relaxed) };
}

/*
 * The slowest of those below the minimum rate: bytes that a session has moved in a minute of waiting for its client, since the
 * mark before the last, so that at least one minute is looked at. It may have files to put away, and a command to be run at its
 * end: it gets a signal that it can handle.
 */
static bool end_slowest(struct children *children, int64_t now)
{
	double least = children->minimum_rate;
	int found = -1;

	for (int i = 0; i < CHILDREN_SLOTS; i++) {
		const struct child *child = &children->items[i];
		const enum board_step at = step_of(children, i);
		const struct mark *then = &child->marks[0];
		struct mark here;
		int64_t waited;
		double rate;

		if (!child->pid || child->killed || (at != BOARD_ADMITTED && at != BOARD_REQUESTED))
			continue;
		here = mark_now(children, i, now);
		waited = (int64_t)(here.waited - then->waited);
		/* It may wait for more than one thing at a time, and it is a process that talks to unknown clients. */
		if (waited > now - then->at)
			waited = now - then->at;
		/* If it has not waited for so long it is our disk that makes it slow. */
		if (waited < MINUTE)
			continue;
		rate = (double)(here.bytes - then->bytes) / ((double)waited / (double)MINUTE);
		if (rate >= least)
			continue;
		found = i;
		least = rate;
	}
	if (found < 0)
		return false;
	note_room(children, found, &children->slow, children->last_slow);
	kill(children->items[found].pid, SIGTERM);
	return true;
}

void children_sample(struct children *children, int64_t now)
{
	if (now - children->sampled_at < MINUTE)
		return;
	children->sampled_at = now;
	for (int i = 0; i < CHILDREN_SLOTS; i++) {
		struct child *child = &children->items[i];

		child->marks[0] = child->marks[1];
		child->marks[1] = mark_now(children, i, now);
	}
}

int children_sample_wait(const struct children *children, int64_t now)
{
	int64_t left = (children->sampled_at + MINUTE - now) / CLOCK_MILLISECOND;

	for (int i = 0; children->minimum_rate && i < CHILDREN_SLOTS; i++)
		if (children->items[i].pid)
			return left > 0 ? (int)left + 1 : 0;
	return -1;
}

int children_admit(struct children *children, const struct sockaddr *peer, int64_t now, int *limit)
{
	const struct origin origin = origin_of(peer);
	int processes = 0, handshakes = 0, slot = -1;
	struct board_slot *board;

	for (int i = 0; i < CHILDREN_SLOTS; i++) {
		const struct child *child = &children->items[i];

		if (!child->pid)
			slot = i;
		else if (!child->killed)
			processes++;
		if (child->pid && step_of(children, i) < BOARD_REQUESTED && origin_is_same(&child->origin, &origin))
			handshakes++;
	}
	*limit = HANDSHAKES_MAX;
	if (peer && handshakes >= HANDSHAKES_MAX)
		return -1;
	*limit = CHILDREN_MAX;
	if (slot < 0 || (processes >= CHILDREN_MAX && !dismiss_stranger(children, now) && !end_slowest(children, now)))
		return -1;
	children->items[slot] = (struct child){ .origin = origin, .began = now, .marks = { { .at = now }, { .at = now } } };
	board = children_board(children, slot);
	atomic_store(&board->step, BOARD_CONNECTED);
	board_set_state(board, BOARD_HANDSHAKE);
	atomic_store_explicit(&board->meter.received, 0, memory_order_relaxed);
	atomic_store_explicit(&board->meter.sent, 0, memory_order_relaxed);
	atomic_store_explicit(&board->meter.waited, 0, memory_order_relaxed);
	for (int i = 0; i < BOARD_COUNTS; i++)
		board_set_count(board, (enum board_count)i, 0);
	for (int i = 0; i < BOARD_TEXTS; i++)
		board_set_text(board, (enum board_text)i, "");
	return slot;
}

int children_of_host(const struct children *children, int slot)
{
	int count = 0;

	for (int i = 0; i < CHILDREN_SLOTS; i++) {
		const struct child *child = &children->items[i];

		count += i != slot && child->pid && !child->refused && !child->killed &&
			 origin_is_same(&child->origin, &children->items[slot].origin);
	}
	return count;
}

struct board_slot *children_board(struct children *children, int slot)
{
	return (struct board_slot *)(void *)(children->board + (size_t)slot * children->stride);
}

struct board_slot *children_become(struct children *children, int slot)
{
	char *own = children->board + (size_t)slot * children->stride, *next = own + children->stride;
	char *end = children->board + CHILDREN_SLOTS * children->stride;

	if ((own > children->board && munmap(children->board, (size_t)(own - children->board)) < 0)
	    || (next < end && munmap(next, (size_t)(end - next)) < 0))
		die(EXIT_IPC, "cannot give up the memory of other server processes: %s", strerror(errno));
	return children_board(children, slot);
}

void children_reap(struct children *children)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < CHILDREN_SLOTS; i++) {
			struct child *child = &children->items[i];

			if (child->pid != pid)
				continue;
			if (WIFSIGNALED(status) && !child->killed)
				log_error("server process %d died of signal %d", (int)pid, WTERMSIG(status));
			if (children->ended)
				children->ended(children->ended_context, i, status);
			child->pid = 0;
		}
}

int children_report_wait(const struct children *children, int64_t now)
{
	int64_t left = (children->report_at - now) / CLOCK_MILLISECOND;

	return !children->killed && !children->slow ? -1 : left > 0 ? (int)left : 0;
}

static void report(int *count, const char *who, const char *last)
{
	if (*count)
		log_msg(L_LOG, "too many server processes: ended %d of %s, the last that of %s", *count, who,
			*last ? last : "an unknown address");
	*count = 0;
}

void children_report(struct children *children, int64_t now, bool all)
{
	if ((!children->killed && !children->slow) || (!all && children_report_wait(children, now) > 0))
		return;
	report(&children->killed, "clients that had not been let in", children->last);
	report(&children->slow, "sessions below the minimum rate", children->last_slow);
	children->report_at = now + REPORT_MS * CLOCK_MILLISECOND;
}

/* --- its sockets --- */

bool listen_bind(const struct listen_request *request, listen_sockets *sockets)
{
	const char *const name = *request->address ? request->address : NULL;
	struct addrinfo hints = {
		.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM,
		.ai_family = request->family == 4 ? AF_INET : request->family == 6 ? AF_INET6 : AF_UNSPEC,
	}, *addresses = NULL;
	char host[NI_MAXHOST], port[NI_MAXSERV];
	struct strbuf why = STRBUF_INIT;
	int one = 1, error;

	snprintf(port, sizeof port, "%d", request->port);
	error = getaddrinfo(name, port, &hints, &addresses);
	if (error)
		log_error("rsync: getaddrinfo: %s %s: %s", name ? name : "(default)", port, gai_strerror(error));
	for (const struct addrinfo *at = error ? NULL : addresses; at; at = at->ai_next) {
		int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
		const char *what = "socket";

		if (fd >= 0) {
			setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
			socket_options_apply(fd, request->socket_options);
			what = "bind";
			if ((at->ai_family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0
			     || request->family == 6)
			    && bind(fd, at->ai_addr, at->ai_addrlen) == 0) {
				vec_push(sockets, fd);
				continue;
			}
		}
		error = errno;
		if (getnameinfo(at->ai_addr, at->ai_addrlen, host, sizeof host, port, sizeof port,
				NI_NUMERICHOST | NI_NUMERICSERV))
			strbuf_addf(&why, "%s() failed for address of family %d: %s\n", what, at->ai_family, strerror(error));
		else
			strbuf_addf(&why, "%s() failed for %s port %s: %s\n", what, host, port, strerror(error));
		fs_close(fd);
	}
	if (addresses)
		freeaddrinfo(addresses);
	if (why.length && (!sockets->count || request->verbose))
		log_lines(L_ERROR, why.data);
	strbuf_free(&why);
	if (!sockets->count)
		log_error("unable to bind any inbound sockets on port %d", request->port);
	return sockets->count > 0;
}

bool listen_open(const struct listen_request *request, listen_sockets *sockets)
{
	if (!listen_bind(request, sockets))
		return false;
	for (size_t i = 0; i < sockets->count; i++)
		if (listen(sockets->items[i], request->backlog) < 0) {
			log_errno(L_ERROR, errno, "listen() on socket failed");
			if (errno == EADDRINUSE && i)
				log_error("Try using --ipv4 or --ipv6 to avoid this listen() error.");
			return false;
		}
	return true;
}

/* --- systemd --- */

void listen_from_systemd(listen_sockets *sockets)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	int passed = pid && count && strtol(pid, NULL, 10) == (long)getpid() ? atoi(count) : 0;

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	for (int i = 0; i < passed; i++) {
		int fd = FIRST_PASSED_FD + i;

		fcntl(fd, F_SETFD, FD_CLOEXEC);
		vec_push(sockets, fd);
	}
}

void listen_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = path ? strlen(path) : 0;
	int fd;

	if (length < 2 || length >= sizeof address.sun_path || (*path != '/' && *path != '@'))
		return;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		log_errno(L_LOG, errno, "cannot notify the service manager");
	close(fd);
}
