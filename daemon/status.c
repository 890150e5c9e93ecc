/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a daemon reports of itself: the file with its counts, and the list of connections, with their state, age and speed: the
 * listener's answer, and the command that asks for it.
 */
#include "daemon/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs/file.h"
#include "fs/operator.h"
#include "fs/socket.h"
#include "fs/temp.h"
#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/vec.h"
#include "loadparm.h"

#define INTERVAL_MS 15000
#define STATUS_OF_REFUSED 255 /* of a session that has a command for its end */

enum outcome { OUTCOME_OK, OUTCOME_PARTIAL, OUTCOME_REFUSED, OUTCOME_ERROR, OUTCOME_SIGNAL, OUTCOME_CROWDED_OUT,
	       OUTCOMES };
enum traffic { TRAFFIC_RECEIVED, TRAFFIC_SENT, TRAFFIC_FILES, TRAFFIC_STALE, TRAFFIC_MISSING, TRAFFICS };

struct module_counts {
	char *name;
	uint64_t connections[OUTCOMES];
	uint64_t traffic[TRAFFICS];
	uint64_t current;
};

struct metrics {
	char *path;
	struct children *children;
	struct snapshots *snapshots;
	VEC(struct module_counts) modules; /* the first is that of connections without one */
	uint64_t counted[CHILDREN_SLOTS][TRAFFICS];
	int64_t started;                   /* Unix time */
	int64_t next;                      /* of clock_nanoseconds, in ms */
	struct strbuf written;             /* what the file holds, unless that failed */
	bool failing;
};

/* --- counting --- */

/* Add what has come since the last time. A count never goes back. */
static struct module_counts *count_slot(struct metrics *metrics, int slot)
{
	struct module_counts *module, new = { .name = NULL };
	struct board_view view;
	size_t row = 0;

	board_read(children_board(metrics->children, slot), &view);
	while (row < metrics->modules.count && strcmp(metrics->modules.items[row].name, view.texts[BOARD_MODULE]) != 0)
		row++;
	/* Only the modules of the configuration get a row, whatever a process says. */
	if (row == metrics->modules.count && snapshots_knows_module(metrics->snapshots, view.texts[BOARD_MODULE])) {
		new.name = xstrdup(view.texts[BOARD_MODULE]);
		vec_push(&metrics->modules, new);
	}
	module = &metrics->modules.items[row < metrics->modules.count ? row : 0];
	const uint64_t now[TRAFFICS] = {
		view.received, view.sent, view.counts[BOARD_FILES], view.counts[BOARD_STALE], view.counts[BOARD_MISSING],
	};

	for (int i = 0; i < TRAFFICS; i++) {
		if (now[i] <= metrics->counted[slot][i])
			continue;
		module->traffic[i] += now[i] - metrics->counted[slot][i];
		metrics->counted[slot][i] = now[i];
	}
	return module;
}

static enum outcome outcome_of(int status)
{
	if (!WIFEXITED(status))
		return OUTCOME_SIGNAL;
	switch (WEXITSTATUS(status)) {
	case EXIT_OK:
		return OUTCOME_OK;
	case EXIT_PARTIAL:
	case EXIT_VANISHED:
	case EXIT_DEL_LIMIT:
		return OUTCOME_PARTIAL;
	case EXIT_SYNTAX:
	case EXIT_UNSUPPORTED:
	case EXIT_STARTCLIENT:
	case STATUS_OF_REFUSED:
		return OUTCOME_REFUSED;
	case EXIT_CRASHED:
	case EXIT_SIGNAL1:
	case EXIT_SIGNAL:
		return OUTCOME_SIGNAL;
	default:
		return OUTCOME_ERROR;
	}
}

static void child_ended(void *context, int slot, int status)
{
	struct metrics *metrics = context;
	const bool made_room = metrics->children->items[slot].killed;

	count_slot(metrics, slot)->connections[made_room ? OUTCOME_CROWDED_OUT : outcome_of(status)]++;
	memset(metrics->counted[slot], 0, sizeof metrics->counted[slot]);
}

void metrics_count_refusal(struct metrics *metrics)
{
	metrics->modules.items[0].connections[OUTCOME_REFUSED]++;
}

/* --- the text --- */

/* The length of the UTF-8 character at `at`, 0 if there is none; a text ends in a NUL, so nothing is read beyond it. */
static size_t character_length(const unsigned char *at)
{
	size_t length = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < length; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) || (*at == 0xf0 && at[1] < 0x90) ||
	    (*at == 0xf4 && at[1] > 0x8f))
		return 0;
	return length;
}

void metrics_add_label(struct strbuf *out, const char *value)
{
	const unsigned char *at = (const unsigned char *)value;

	while (*at) {
		size_t length = character_length(at);

		if (*at == '\\' || *at == '"')
			strbuf_addf(out, "\\%c", *at);
		else if (*at == '\n')
			strbuf_add_string(out, "\\n");
		else if (!length)
			strbuf_addf(out, "\\\\x%02x", *at);
		else
			strbuf_add(out, at, length);
		at += length ? length : 1;
	}
}

static void add_head(struct strbuf *out, const char *name, const char *type, const char *help)
{
	strbuf_addf(out, "# HELP rsync_huai_%s %s\n# TYPE rsync_huai_%s %s\n", name, help, name, type);
}

/* more: further labels, "" for none. */
static void add_value(struct strbuf *out, const char *name, const char *module, const char *more, uint64_t value)
{
	strbuf_addf(out, "rsync_huai_%s{module=\"", name);
	metrics_add_label(out, module);
	strbuf_addf(out, "\"%s} %" PRIu64 "\n", more, value);
}

static uint64_t not_negative(int64_t value)
{
	return value < 0 ? 0 : (uint64_t)value;
}

static void add_snapshots(const struct metrics *metrics, struct strbuf *out)
{
	static const struct {
		const char *name, *help;
	} kinds[] = {
		{ "snapshot_usable", "Is there an attr snapshot that is sound and not too old?" },
		{ "snapshot_generation", "Its generation." },
		{ "snapshot_entries", "Its entries." },
		{ "snapshot_made_timestamp_seconds", "When it was made." },
		{ "snapshot_age_seconds", "How long ago that was when this file was written." },
	};
	struct snapshot_state state;
	int64_t now = time(NULL);

	for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++) {
		add_head(out, kinds[j].name, "gauge", kinds[j].help);
		for (size_t i = 0; snapshots_state(metrics->snapshots, i, now, &state); i++) {
			const uint64_t values[] = {
				state.usable, state.facts ? state.facts->generation : 0,
				state.facts ? state.facts->entry_count : 0,
				state.facts ? not_negative(state.facts->made) : 0,
				state.facts ? not_negative(now - state.facts->made) : 0,
			};

			if (state.facts || !j)
				add_value(out, kinds[j].name, state.module, "", values[j]);
		}
	}
}

static void format(struct metrics *metrics, struct strbuf *out)
{
	static const char *const outcomes[OUTCOMES] = {
		",outcome=\"ok\"", ",outcome=\"partial\"", ",outcome=\"refused\"", ",outcome=\"error\"",
		",outcome=\"signal\"", ",outcome=\"crowded_out\"",
	};
	static const struct {
		const char *name, *more, *help;
	} kinds[TRAFFICS] = {
		[TRAFFIC_RECEIVED] = { "bytes_total", ",direction=\"received\"", "Bytes of the connections." },
		[TRAFFIC_SENT] = { "bytes_total", ",direction=\"sent\"", NULL },
		[TRAFFIC_FILES] = { "files_total", "", "Files transferred." },
		[TRAFFIC_STALE] = { "stale_contents_total", "", "Files sent that are not as they were listed." },
		[TRAFFIC_MISSING] = { "missing_contents_total", "", "Files that were listed and are not there." },
	};
	const struct module_counts *item, *end;

	snapshots_refresh(metrics->snapshots);
	for (size_t i = 0; i < metrics->modules.count; i++)
		metrics->modules.items[i].current = 0;
	for (int slot = 0; slot < CHILDREN_SLOTS; slot++)
		if (metrics->children->items[slot].pid)
			count_slot(metrics, slot)->current++;
	end = metrics->modules.items + metrics->modules.count;
	add_head(out, "start_time_seconds", "gauge", "When the daemon was started.");
	strbuf_addf(out, "rsync_huai_start_time_seconds %" PRId64 "\n", metrics->started);
	add_head(out, "connections", "gauge", "Connections at present; without a module: none has been chosen yet.");
	for (item = metrics->modules.items; item < end; item++)
		add_value(out, "connections", item->name, "", item->current);
	add_head(out, "connections_total", "counter", "Connections that have ended, by their outcome.");
	for (item = metrics->modules.items; item < end; item++)
		for (int i = 0; i < OUTCOMES; i++)
			add_value(out, "connections_total", item->name, outcomes[i], item->connections[i]);
	for (int i = 0; i < TRAFFICS; i++) {
		if (kinds[i].help)
			add_head(out, kinds[i].name, "counter", kinds[i].help);
		for (item = metrics->modules.items; item < end; item++)
			add_value(out, kinds[i].name, item->name, kinds[i].more, item->traffic[i]);
	}
	add_snapshots(metrics, out);
}

/* --- the file --- */

struct metrics *metrics_new(const char *path, struct children *children, struct snapshots *snapshots)
{
	struct metrics *metrics = xcalloc(1, sizeof *metrics);
	struct module_counts none = { .name = xstrdup("") };

	metrics->path = xstrdup(path);
	metrics->children = children;
	metrics->snapshots = snapshots;
	metrics->started = time(NULL);
	vec_push(&metrics->modules, none);
	children->ended = child_ended;
	children->ended_context = metrics;
	return metrics;
}

int metrics_wait(const struct metrics *metrics)
{
	int64_t left = metrics->next - clock_nanoseconds() / CLOCK_MILLISECOND;

	return !*metrics->path ? -1 : left > 0 ? (int)left : 0;
}

void metrics_update(struct metrics *metrics, bool now)
{
	struct strbuf text = STRBUF_INIT;
	char leaf[FS_TEMP_NAME_SIZE];
	struct fs_temp temp;

	if (!*metrics->path || (!now && metrics_wait(metrics) > 0))
		return;
	format(metrics, &text);
	if (now || metrics->failing || strcmp(strbuf_text(&text), strbuf_text(&metrics->written)) != 0) {
		int dir_fd = fs_operator_parent(metrics->path, 0, leaf);
		bool ok = dir_fd >= 0 && fs_temp_create(&temp, dir_fd, leaf) == 0;

		if (ok && (fs_write_all(temp.fd, text.data, text.length) < 0 || fchmod(temp.fd, 0644) < 0)) {
			const int error = errno;

			fs_temp_discard(&temp);
			errno = error;
			ok = false;
		} else if (ok) {
			ok = fs_temp_commit(&temp, leaf) == 0;
		}
		fs_close(dir_fd);
		/* A failure is logged once, until the file can be written again. */
		if (!ok && !metrics->failing)
			log_errno(L_ERROR, errno, "cannot write metrics file %s", metrics->path);
		metrics->failing = !ok;
	}
	strbuf_free(&metrics->written);
	metrics->written = text;
	metrics->next = clock_nanoseconds() / CLOCK_MILLISECOND + INTERVAL_MS;
}

#define ANSWERS_AT_A_TIME 8
#define ANSWER_MAX (1 << 20)
#define ANSWER_SECONDS 20

/* --- the answer --- */

void status_format(struct children *children, int64_t now, struct strbuf *out)
{
	static const char *const states[BOARD_STATES] = {
		"handshake", "authentication", "listing", "sending", "receiving", "ending",
	};
	uint64_t received = 0, sent = 0, files = 0, speed = 0;
	int connections = 0;

	for (int slot = 0; slot < CHILDREN_SLOTS; slot++) {
		const struct child *child = &children->items[slot];
		const time_t start = (time_t)child->since;
		const uint64_t seconds = now > child->since ? (uint64_t)(now - child->since) : 0;
		struct board_view view;
		uint64_t own_speed;
		char time_text[32] = "";
		struct tm parts;

		if (!child->pid)
			continue;
		board_read(children_board(children, slot), &view);
		own_speed = (view.received + view.sent) / (seconds ? seconds : 1);
		if (!localtime_r(&start, &parts) || !strftime(time_text, sizeof time_text, "%Y/%m/%d %H:%M:%S", &parts))
			time_text[0] = 0;
		strbuf_addf(out, "%d %s since %s (%" PRIu64 " s): %s%s%s module %s, received %" PRIu64 ", sent %" PRIu64
			    ", files %" PRIu64 ", %" PRIu64 " bytes/s\n", (int)child->pid, states[view.state],
			    time_text, seconds, view.texts[BOARD_USER], *view.texts[BOARD_USER] ? "@" : "",
			    *view.texts[BOARD_ADDRESS] ? view.texts[BOARD_ADDRESS] : "-",
			    *view.texts[BOARD_MODULE] ? view.texts[BOARD_MODULE] : "-", view.received, view.sent,
			    view.counts[BOARD_FILES], own_speed);
		connections++;
		received += view.received;
		sent += view.sent;
		files += view.counts[BOARD_FILES];
		speed += own_speed;
	}
	strbuf_addf(out,
		    "total: connections %d, received %" PRIu64 ", sent %" PRIu64 ", files %" PRIu64 ", %" PRIu64 " bytes/s\n",
		    connections, received, sent, files, speed);
}

/* --- the listener --- */

void status_answer(int socket_fd, struct children *children)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	char mark = '+';
	struct iovec data = { &mark, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes,
	};

	control.header =
		(struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) };
	for (int i = 0; i < ANSWERS_AT_A_TIME; i++) {
		int connection = accept4(socket_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), fd;
		struct strbuf text = STRBUF_INIT;
		struct ucred who;
		socklen_t length = sizeof who;

		if (connection < 0)
			return;
		if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0
		    || (who.uid != 0 && who.uid != geteuid())) {
			log_msg(L_LOG, "somebody else may not ask for the status");
		} else {
			status_format(children, time(NULL), &text);
			fd = memfd_create("status", MFD_CLOEXEC);
			memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
			/* A byte and the descriptor, if the socket takes them at once, as one that is new does. */
			if (fd < 0 || fs_write_all(fd, text.data, text.length) < 0
			    || sendmsg(connection, &message, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
				log_errno(L_LOG, errno, "cannot send the status");
			fs_close(fd);
			strbuf_free(&text);
		}
		close(connection);
	}
}

/* --- the command --- */

/* -1 with errno; ECONNRESET: there was no answer. */
static int ask(const char *path, struct strbuf *answer)
{
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	int connection = fs_socket_connect(path, 0), fd = -1, result = -1;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char mark;
	struct iovec data = { &mark, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes,
	};
	const struct cmsghdr *header;
	ssize_t got;

	if (connection < 0)
		return -1;
	setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
	header = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
	if (got >= 0)
		errno = ECONNRESET;
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS
	    && header->cmsg_len == CMSG_LEN(sizeof fd)) {
		memcpy(&fd, CMSG_DATA(header), sizeof fd);
		if (lseek(fd, 0, SEEK_SET) == 0)
			result = fs_read_all(fd, ANSWER_MAX, answer);
	}
	fs_close(fd);
	fs_close(connection);
	return result;
}

int daemon_status_main(const struct options *options)
{
	struct config_problems problems = CONFIG_PROBLEMS_INIT;
	struct config *config =
		config_load(options->config_file, options->dparams.items, options->dparams.count, CONFIG_LISTENER, &problems);
	struct strbuf answer = STRBUF_INIT;
	int code = EXIT_SYNTAX;
	char *path;

	exit_set_quiet(true);
	config_problems_report(&problems, CONFIG_ERROR);
	if (!config)
		return code;
	path = config_text(config->globals.control_socket);
	config_free(config);
	if (!*path)
		log_error("rsync: %s names no control socket", options->config_file);
	else if (ask(path, &answer) < 0)
		log_error("rsync: no daemon answers at the control socket %s: %s", path, strerror(errno));
	else
		code = EXIT_OK;
	/* Whoever has made the socket: nothing acts on the terminal. */
	for (size_t i = 0; i < answer.length; i++)
		if (((unsigned char)answer.data[i] < ' ' && answer.data[i] != '\n') || (unsigned char)answer.data[i] == 0x7f)
			answer.data[i] = '?';
	if (!code && (fwrite(answer.data, 1, answer.length, stdout) != answer.length || fflush(stdout) != 0))
		code = EXIT_FILEIO;
	strbuf_free(&answer);
	free(path);
	return code;
}
