/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counting connections, and the file with the counts. */
#include "daemon/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs/file.h"
#include "fs/operator.h"
#include "fs/temp.h"
#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/vec.h"

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
	struct strbuf written;             /* what the file holds */
	bool failing;
};

/* --- counting --- */

/* Only the modules of the configuration get a row, whatever a process says. */
static struct module_counts *find_module(struct metrics *metrics, const char *name)
{
	struct module_counts new = { .name = NULL };

	for (size_t i = 0; i < metrics->modules.count; i++)
		if (!strcmp(metrics->modules.items[i].name, name))
			return &metrics->modules.items[i];
	if (!snapshots_knows_module(metrics->snapshots, name))
		return &metrics->modules.items[0];
	new.name = xstrdup(name);
	vec_push(&metrics->modules, new);
	return &metrics->modules.items[metrics->modules.count - 1];
}

/* Add what has come since the last time. A count never goes back. */
static struct module_counts *count_slot(struct metrics *metrics, int slot)
{
	struct module_counts *module;
	struct board_view view;

	board_read(children_board(metrics->children, slot), &view);
	module = find_module(metrics, view.texts[BOARD_MODULE]);
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

	const bool made_room = children_made_room(metrics->children, slot);

	count_slot(metrics, slot)->connections[made_room ? OUTCOME_CROWDED_OUT : outcome_of(status)]++;
	memset(metrics->counted[slot], 0, sizeof metrics->counted[slot]);
}

void metrics_count_refusal(struct metrics *metrics)
{
	metrics->modules.items[0].connections[OUTCOME_REFUSED]++;
}

static void count_all(struct metrics *metrics)
{
	for (size_t i = 0; i < metrics->modules.count; i++)
		metrics->modules.items[i].current = 0;
	for (int slot = 0; slot < CHILDREN_SLOTS; slot++) {
		int64_t since;

		if (children_pid(metrics->children, slot, &since))
			count_slot(metrics, slot)->current++;
	}
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

static void add_connections(const struct metrics *metrics, struct strbuf *out)
{
	static const char *const labels[OUTCOMES] = {
		",outcome=\"ok\"", ",outcome=\"partial\"", ",outcome=\"refused\"", ",outcome=\"error\"",
		",outcome=\"signal\"", ",outcome=\"crowded_out\"",
	};

	add_head(out, "connections", "gauge", "Connections at present; without a module: none has been chosen yet.");
	for (size_t i = 0; i < metrics->modules.count; i++)
		add_value(out, "connections", metrics->modules.items[i].name, "", metrics->modules.items[i].current);
	add_head(out, "connections_total", "counter", "Connections that have ended, by their outcome.");
	for (size_t i = 0; i < metrics->modules.count; i++)
		for (int j = 0; j < OUTCOMES; j++)
			add_value(out, "connections_total", metrics->modules.items[i].name, labels[j],
				  metrics->modules.items[i].connections[j]);
}

static void add_traffic(const struct metrics *metrics, struct strbuf *out)
{
	static const struct {
		const char *name, *more, *help;
	} kinds[TRAFFICS] = {
		[TRAFFIC_RECEIVED] = { "bytes_total", ",direction=\"received\"", "Bytes of the connections." },
		[TRAFFIC_SENT] = { "bytes_total", ",direction=\"sent\"", NULL },
		[TRAFFIC_FILES] = { "files_total", "", "Files transferred." },
		[TRAFFIC_STALE] = { "stale_contents_total", "", "Files sent that are not as they were listed." },
		[TRAFFIC_MISSING] = { "missing_contents_total", "", "Files that were listed and are not there." },
	};

	for (int j = 0; j < TRAFFICS; j++) {
		if (kinds[j].help)
			add_head(out, kinds[j].name, "counter", kinds[j].help);
		for (size_t i = 0; i < metrics->modules.count; i++)
			add_value(out, kinds[j].name, metrics->modules.items[i].name, kinds[j].more,
				  metrics->modules.items[i].traffic[j]);
	}
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

void metrics_format(struct metrics *metrics, struct strbuf *out)
{
	snapshots_refresh(metrics->snapshots);
	count_all(metrics);
	add_head(out, "start_time_seconds", "gauge", "When the daemon was started.");
	strbuf_addf(out, "rsync_huai_start_time_seconds %" PRId64 "\n", metrics->started);
	add_connections(metrics, out);
	add_traffic(metrics, out);
	add_snapshots(metrics, out);
}

/* --- the file --- */

static int replace_file(const struct metrics *metrics, const struct strbuf *text)
{
	char leaf[FS_TEMP_NAME_SIZE];
	int dir_fd = fs_operator_parent(metrics->path, leaf), result = -1;
	struct fs_temp temp;

	if (dir_fd >= 0 && fs_temp_create(&temp, dir_fd, leaf) == 0) {
		if (fs_write_all(temp.fd, text->data, text->length) == 0 && fchmod(temp.fd, 0644) == 0) {
			result = fs_temp_commit(&temp, leaf);
		} else {
			const int error = errno;

			fs_temp_discard(&temp);
			errno = error;
		}
	}
	fs_close(dir_fd);
	return result;
}

/* A failure is logged once, until the file can be written again. */
static void write_file(struct metrics *metrics, struct strbuf *text)
{
	bool ok = replace_file(metrics, text) == 0;

	if (!ok && !metrics->failing)
		log_errno(L_ERROR, errno, "cannot write metrics file %s", metrics->path);
	metrics->failing = !ok;
	strbuf_free(&metrics->written);
	if (ok)
		metrics->written = *text;
	else
		strbuf_free(text);
}

struct metrics *metrics_new(const char *path, struct children *children, struct snapshots *snapshots)
{
	struct metrics *metrics = xcalloc(1, sizeof *metrics);
	struct module_counts none = { .name = xstrdup("") };

	metrics->path = xstrdup(path);
	metrics->children = children;
	metrics->snapshots = snapshots;
	metrics->started = time(NULL);
	vec_push(&metrics->modules, none);
	children_on_end(children, child_ended, metrics);
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

	if (!*metrics->path || (!now && metrics_wait(metrics) > 0))
		return;
	metrics_format(metrics, &text);
	if (now || metrics->failing || strcmp(strbuf_text(&text), strbuf_text(&metrics->written)) != 0)
		write_file(metrics, &text);
	else
		strbuf_free(&text);
	metrics->next = clock_nanoseconds() / CLOCK_MILLISECOND + INTERVAL_MS;
}
