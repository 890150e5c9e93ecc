/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Many clients of a daemon in one process, for bench_load.py:
 *
 *	load_clients PORT MODULE SECONDS LISTING IDLE TRICKLE HOSTS
 *
 * LISTING of them list the module again and again and throw the list away, IDLE connect and say nothing, TRICKLE send a byte
 * now and then, in the greeting, in the module's name or in the words. They come from HOSTS loopback addresses. A connection
 * that has ended begins anew. "ready" is written once all have been tried, and SECONDS later what happened, as JSON. What ends
 * before it has asked for anything, but no earlier than the handshake's deadline, was cut by that limit.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "flist/xmit.h"
#include "lib/alloc.h"
#include "wire/wire.h"

#define PART (256 << 10)       /* read at once */
#define ITEM_MAX 12288         /* the longest item of a list: a path, a target, two names */
#define REASON 160
#define OUTCOMES_MAX 32
#define DELAYS_MAX 200000
#define DEADLINE_SECONDS 60   /* of either half of a handshake, both with stock and with ours */
#define LATE_SECONDS 5         /* that the beginning of the deadline may have been seen late */
#define READY_SECONDS 20
#define TRICKLE_SECONDS 2.0
#define RETRY_SECONDS 1.0

#define GREETING "@RSYNCD: 32.0 md5\n"
/* Without "v" nothing is negotiated; "i": sub-lists. */
#define WORDS "--server\0--sender\0-logDtpre.iLsfxCIu\0.\0"

enum kind { LISTING, IDLE, TRICKLE, KINDS };
enum stage { CONNECTING, GREETED, ASKED, SETTING_UP, IN_LISTS };

struct client {
	enum kind kind;
	int number, fd;        /* -1: waits until `next` */
	bool tried;
	enum stage stage;      /* from here on: of the connection */
	double began, asked, next;
	/* the multiplexed stream */
	uint8_t header[4];
	unsigned header_length;
	uint32_t frame_left;
	int frame_code;
	char text[REASON];     /* of the daemon's last line or message */
	size_t text_length;
	uint8_t rest[ITEM_MAX]; /* an item that is not whole yet */
	size_t rest_length;
	/* the lists */
	bool in_list, all_lists;
	uint32_t mode;
	int32_t last_negative;
	uint32_t lists, done, due; /* DONEs received; DONEs that the socket has not taken */
	uint64_t entries;
};

struct outcome {
	enum kind kind;
	const char *what;
	char why[REASON];
	uint64_t count;
};

struct load {
	struct client *clients;
	int count, epoll, hosts;
	struct sockaddr_in daemon;
	const char *module;
	struct outcome outcomes[OUTCOMES_MAX];
	int outcome_count;
	uint64_t entries, bytes;
	float *delays;         /* until the greeting */
	int delay_count;
	uint8_t part[PART], stream[PART + ITEM_MAX];
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* --- beginning and end of a connection --- */

static void count_outcome(struct load *load, enum kind kind, const char *what, const char *why)
{
	struct outcome *outcome = load->outcomes;

	for (int i = 0; i < load->outcome_count; i++, outcome++)
		if (outcome->kind == kind && !strcmp(outcome->what, what) && !strcmp(outcome->why, why))
			break;
	if (outcome == load->outcomes + load->outcome_count) {
		if (load->outcome_count == OUTCOMES_MAX)
			outcome--;
		else
			load->outcome_count++;
		outcome->kind = kind;
		outcome->what = what;
		snprintf(outcome->why, sizeof outcome->why, "%s", why);
	}
	outcome->count++;
}

static void finish(struct load *load, struct client *client, const char *what, const char *why)
{
	bool refused = strcmp(what, "completed") != 0 && strcmp(what, "cut") != 0;

	count_outcome(load, client->kind, what, why);
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
	client->tried = true;
	client->next = now() + (refused ? RETRY_SECONDS : 0);
}

static void lose(struct load *load, struct client *client, const char *how)
{
	static const char *const where[] = {
		"before the greeting", "before the module", "before the words", "in the set-up", "in the list",
	};
	char why[REASON];

	snprintf(why, sizeof why, "%s %s%s%.80s", how, where[client->stage], *client->text ? ": " : "", client->text);
	finish(load, client, "lost", why);
}

/* The daemon has closed. */
static void take_end(struct load *load, struct client *client, const char *how)
{
	bool handshake = client->stage > CONNECTING && client->stage < SETTING_UP;

	if (client->stage == IN_LISTS && client->all_lists && client->done >= client->lists + 2)
		finish(load, client, "completed", "");
	else if (!strncmp(client->text, "@ERROR", 6))
		finish(load, client, "refused", client->text);
	else if (handshake && now() - client->asked >= DEADLINE_SECONDS - LATE_SECONDS)
		finish(load, client, "cut", "");
	else
		lose(load, client, how);
}

static void begin(struct load *load, struct client *client)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT, .data.ptr = client };
	int one = 1, host = client->number % load->hosts;

	own.sin_addr.s_addr = htonl(0x7f010001 + (uint32_t)host);
	memset(&client->stage, 0, sizeof *client - offsetof(struct client, stage));
	client->last_negative = 1;
	client->in_list = true;
	client->began = client->asked = now();
	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(client->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	setsockopt(client->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
	if (client->fd < 0 || bind(client->fd, (struct sockaddr *)&own, sizeof own) < 0 ||
	    (connect(client->fd, (struct sockaddr *)&load->daemon, sizeof load->daemon) < 0 && errno != EINPROGRESS))
		lose(load, client, strerror(errno));
	else
		epoll_ctl(load->epoll, EPOLL_CTL_ADD, client->fd, &event);
}

/* What is sent is short, and the daemon reads: it fits, or the connection is over. */
static void say(struct load *load, struct client *client, const char *text, size_t length)
{
	if (send(client->fd, text, length, MSG_NOSIGNAL) != (ssize_t)length)
		lose(load, client, "cannot send");
}

/* --- the lists (doc/protocol/02-file-list.md) --- */

struct cursor {
	const uint8_t *at, *end;
	bool is_short, is_bad;
};

static uint32_t take(struct cursor *cursor, unsigned bytes)
{
	uint32_t value = 0;

	if ((size_t)(cursor->end - cursor->at) < bytes) {
		cursor->is_short = true;
		return 0;
	}
	for (unsigned i = 0; i < bytes && i < 4; i++)
		value |= (uint32_t)cursor->at[i] << 8 * i;
	cursor->at += bytes;
	return value;
}

/* A varint or varlong; only the low 32 bits of a longer one. */
static uint32_t take_number(struct cursor *cursor, unsigned least)
{
	uint32_t lead = take(cursor, 1), low;
	unsigned extra = 0, length;

	while (extra < 6 && lead & 0x80 >> extra)
		extra++;
	length = least - 1 + extra;
	low = take(cursor, length);
	return length < 4 ? low | (lead & (0xffu >> (extra + 1))) << 8 * length : low;
}

static void take_entry(struct client *client, struct cursor *cursor)
{
	uint32_t flags = take(cursor, 1), mode = client->mode;

	if (flags & XMIT_EXTENDED_FLAGS)
		flags |= take(cursor, 1) << 8;
	if (flags == 0 || flags == (XMIT_EXTENDED_FLAGS | XMIT_IO_ERROR_ENDLIST)) {
		if (flags)
			take_number(cursor, 1);
		client->in_list = cursor->is_short;
		return;
	}
	take(cursor, flags & XMIT_SAME_NAME ? 1 : 0);
	take(cursor, flags & XMIT_LONG_NAME ? take_number(cursor, 1) : take(cursor, 1));
	take_number(cursor, 3);
	if (!(flags & XMIT_SAME_TIME))
		take_number(cursor, 4);
	if (flags & XMIT_MOD_NSEC)
		take_number(cursor, 1);
	if (!(flags & XMIT_SAME_MODE))
		mode = take(cursor, 4);
	if (!(flags & XMIT_SAME_UID)) {
		take_number(cursor, 1);
		take(cursor, flags & XMIT_USER_NAME_FOLLOWS ? take(cursor, 1) : 0);
	}
	if (!(flags & XMIT_SAME_GID)) {
		take_number(cursor, 1);
		take(cursor, flags & XMIT_GROUP_NAME_FOLLOWS ? take(cursor, 1) : 0);
	}
	if (S_ISLNK(mode))
		take(cursor, take_number(cursor, 1));
	if (cursor->is_short)
		return;
	cursor->is_bad = S_ISCHR(mode) || S_ISBLK(mode) || (!S_ISDIR(mode) && flags & XMIT_HLINKED);
	client->mode = mode;
	client->entries++;
}

/* Between lists: another list, the end of all lists, or an answer to a DONE. After the last answers come statistics. */
static void take_ndx(struct client *client, struct cursor *cursor)
{
	int32_t memory = client->last_negative;
	uint32_t lead = take(cursor, 1), high;

	if (lead == 0) {
		client->done += !cursor->is_short;
		return;
	}
	cursor->is_bad = lead != 0xff;
	lead = take(cursor, 1);
	if (lead == 0xfe) {
		high = take(cursor, 1);
		if (high & 0x80)
			memory = (int32_t)((high & 0x7f) << 24 | take(cursor, 3));
		else
			memory += (int32_t)(high << 8 | take(cursor, 1));
	} else {
		memory += (int32_t)lead;
	}
	if (cursor->is_short)
		return;
	client->last_negative = memory;
	client->all_lists |= memory == -NDX_FLIST_EOF;
	client->in_list = memory >= -NDX_FLIST_OFFSET;
}

/* Tell the daemon that all of a list has been dealt with, as often as is due. */
static void send_done(struct client *client)
{
	uint8_t frame[4 + 1024] = { 0 };
	uint32_t count = client->due < sizeof frame - 4 ? client->due : sizeof frame - 4;

	frame[0] = (uint8_t)count;
	frame[1] = (uint8_t)(count >> 8);
	frame[3] = 7;
	/* A frame goes out whole or, if the daemon is behind with reading, later. */
	if (count && send(client->fd, frame, 4 + count, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)(4 + count))
		client->due -= count;
}

static void take_items(struct load *load, struct client *client, size_t length)
{
	struct cursor cursor = { .at = load->stream, .end = load->stream + length };

	while (cursor.at < cursor.end && !(client->all_lists && client->done >= client->lists + 2)) {
		const uint8_t *start = cursor.at;
		bool was_in_list = client->in_list, had_all = client->all_lists;

		if (client->in_list)
			take_entry(client, &cursor);
		else
			take_ndx(client, &cursor);
		if (cursor.is_short || cursor.is_bad) {
			cursor.at = start;
			break;
		}
		if (was_in_list && !client->in_list)
			client->lists++, client->due++;
		if (client->all_lists && !had_all)
			client->due += 4;
	}
	client->rest_length = client->all_lists && client->done >= client->lists + 2 ? 0 : (size_t)(cursor.end - cursor.at);
	if (cursor.is_bad || client->rest_length > ITEM_MAX) {
		lose(load, client, "not understood");
		return;
	}
	memcpy(client->rest, cursor.at, client->rest_length);
	load->entries += client->entries;
	client->entries = 0;
	send_done(client);
}

/* --- the stream around them --- */

static void take_text(struct client *client, const uint8_t *text, size_t length)
{
	for (size_t i = 0; i < length && client->text_length < REASON - 1; i++)
		client->text[client->text_length++] = (char)(text[i] < ' ' || strchr("\"\\", text[i]) ? ' ' : text[i]);
	client->text[client->text_length] = 0;
}

static void take_frames(struct load *load, struct client *client, const uint8_t *at, size_t length)
{
	const uint8_t *end = at + length;
	size_t have = client->rest_length;

	memcpy(load->stream, client->rest, have);
	while (at < end) {
		size_t part;

		if (client->header_length < 4) {
			client->header[client->header_length++] = *at++;
			client->frame_left = client->header[0] | client->header[1] << 8 | (uint32_t)client->header[2] << 16;
			client->frame_code = client->header[3] - 7;
			continue;
		}
		part = client->frame_left < (size_t)(end - at) ? client->frame_left : (size_t)(end - at);
		if (client->frame_code == MSG_DATA) {
			memcpy(load->stream + have, at, part);
			have += part;
		} else if (client->frame_code < MSG_IO_ERROR) {
			take_text(client, at, part);
		}
		at += part;
		client->frame_left -= (uint32_t)part;
		if (!client->frame_left)
			client->header_length = 0;
	}
	take_items(load, client, have);
}

/* The set-up: two bytes of compat flags, the seed. An empty list of rules begins our side of the stream. */
static void take_set_up(struct load *load, struct client *client, const uint8_t *at, size_t length)
{
	while (client->rest_length < 6 && length) {
		client->rest[client->rest_length++] = *at++;
		length--;
	}
	if (client->rest_length < 6)
		return;
	client->rest_length = 0;
	client->stage = IN_LISTS;
	say(load, client, "\4\0\0\7\0\0\0\0", 8);
	if (length && client->fd >= 0)
		take_frames(load, client, at, length);
}

/* The daemon's greeting is there; what comes next depends on who asks. */
static void answer_greeting(struct load *load, struct client *client)
{
	char text[256];
	bool silent = client->kind == IDLE || (client->kind == TRICKLE && client->number % 3 == 0);
	bool asks = client->kind == LISTING || client->number % 3 == 2;

	if (load->delay_count < DELAYS_MAX)
		load->delays[load->delay_count++] = (float)(now() - client->began);
	client->tried = true;
	client->stage = GREETED;
	client->next = now() + TRICKLE_SECONDS;
	if (silent)
		return;
	snprintf(text, sizeof text, "%s%s%s", GREETING, asks ? load->module : "", asks ? "\n" : "");
	say(load, client, text, strlen(text));
}

static void send_words(struct load *load, struct client *client)
{
	char text[512];
	size_t length = sizeof WORDS - 1;

	client->stage = ASKED;
	client->asked = now();
	if (client->kind != LISTING)
		return;
	memcpy(text, WORDS, length);
	length += (size_t)snprintf(text + length, sizeof text - length, "%s/", load->module) + 1;
	text[length++] = 0;
	client->stage = SETTING_UP;
	say(load, client, text, length);
}

/* Lines of the text phase. */
static void take_lines(struct load *load, struct client *client, const uint8_t *at, size_t length)
{
	for (size_t i = 0; i < length && client->fd >= 0; i++) {
		if (at[i] != '\n') {
			take_text(client, at + i, 1);
			continue;
		}
		if (!strncmp(client->text, "@ERROR", 6)) {
			take_end(load, client, "");
			return;
		}
		client->text_length = 0;
		if (client->stage == CONNECTING)
			answer_greeting(load, client);
		else if (!strcmp(client->text, "@RSYNCD: OK"))
			send_words(load, client);
		client->text[0] = 0;
		if (client->stage == SETTING_UP && i + 1 < length) {
			take_set_up(load, client, at + i + 1, length - i - 1);
			return;
		}
	}
}

static void receive(struct load *load, struct client *client)
{
	ssize_t length = recv(client->fd, load->part, PART, 0);

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (length <= 0) {
		take_end(load, client, length ? strerror(errno) : "closed");
		return;
	}
	load->bytes += (uint64_t)length;
	if (client->stage == IN_LISTS)
		take_frames(load, client, load->part, (size_t)length);
	else if (client->stage == SETTING_UP)
		take_set_up(load, client, load->part, (size_t)length);
	else
		take_lines(load, client, load->part, (size_t)length);
}

/* --- all of them --- */

static void tick(struct load *load)
{
	double time = now();

	for (int i = 0; i < load->count; i++) {
		struct client *client = &load->clients[i];

		if (client->fd < 0 && client->next <= time)
			begin(load, client);
		else if (client->fd >= 0 && client->due)
			send_done(client);
		else if (client->fd >= 0 && client->kind == TRICKLE && client->stage > CONNECTING && client->next <= time) {
			client->next = time + TRICKLE_SECONDS;
			say(load, client, "@", 1);
		}
	}
}

static void run_until(struct load *load, double end, bool until_ready)
{
	struct epoll_event events[64], readable = { .events = EPOLLIN };
	double next_tick = 0;
	int waiting = load->count;

	while (now() < end && (!until_ready || waiting)) {
		int count = epoll_wait(load->epoll, events, 64, 50);

		for (int i = 0; i < count; i++) {
			struct client *client = events[i].data.ptr;

			if (events[i].events & EPOLLOUT) {
				readable.data.ptr = client;
				epoll_ctl(load->epoll, EPOLL_CTL_MOD, client->fd, &readable);
			}
			if (events[i].events & ~(uint32_t)EPOLLOUT)
				receive(load, client);
		}
		if (now() < next_tick)
			continue;
		next_tick = now() + 0.05;
		tick(load);
		waiting = 0;
		for (int i = 0; i < load->count; i++)
			waiting += !load->clients[i].tried;
	}
}

static int compare_floats(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void report(struct load *load)
{
	static const char *const kinds[KINDS] = { "listing", "idle", "trickle" };
	const float *delays = load->delays;
	int count = load->delay_count, open = 0;

	qsort(load->delays, (size_t)count, sizeof *load->delays, compare_floats);
	for (int i = 0; i < load->count; i++)
		open += load->clients[i].fd >= 0 && load->clients[i].stage > CONNECTING;
	printf("{\"entries\": %llu, \"bytes\": %llu, \"open\": %d, ", (unsigned long long)load->entries,
	       (unsigned long long)load->bytes, open);
	printf("\"greeting\": [");
	for (int i = 0; i < count && i < 3; i++)
		printf("%s%.4f", i ? ", " : "", (double)delays[i == 0 ? count / 2 : i == 1 ? count * 95 / 100 : count - 1]);
	printf("], \"greetings\": %d, \"outcomes\": [", count);
	for (int i = 0; i < load->outcome_count; i++)
		printf("%s[\"%s\", \"%s\", \"%s\", %llu]", i ? ", " : "", kinds[load->outcomes[i].kind], load->outcomes[i].what,
		       load->outcomes[i].why, (unsigned long long)load->outcomes[i].count);
	printf("]}\n");
}

int main(int argc, char **argv)
{
	static struct load load;
	struct rlimit files;
	int first = 4;

	if (argc != 8)
		return fprintf(stderr, "load_clients PORT MODULE SECONDS LISTING IDLE TRICKLE HOSTS\n"), 1;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	load.daemon = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])),
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	load.module = argv[2];
	load.hosts = atoi(argv[7]);
	load.epoll = epoll_create1(EPOLL_CLOEXEC);
	load.delays = xcalloc(DELAYS_MAX, sizeof *load.delays);
	for (int kind = 0; kind < KINDS; kind++)
		load.count += atoi(argv[first + kind]);
	load.clients = xcalloc((size_t)load.count, sizeof *load.clients);
	for (int kind = 0, i = 0; kind < KINDS; kind++)
		for (int left = atoi(argv[first + kind]); left > 0; left--, i++)
			load.clients[i] = (struct client){ .kind = (enum kind)kind, .number = i, .fd = -1 };
	run_until(&load, now() + READY_SECONDS, true);
	puts("ready");
	fflush(stdout);
	run_until(&load, now() + atof(argv[3]), false);
	report(&load);
	return 0;
}
