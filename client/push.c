/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A push: rules, connection, set-up, the sender's run, and the end; and what users see of it: the header, a line for each item,
 * deletions, progress, what the server says, and the closing numbers (doc/protocol/06-command-line.md section 8). The parts
 * share standard output: a progress line or an unfinished header is ended before anything else is said.
 */
#include "client/push.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "delta/digest.h"
#include "delta/match.h"
#include "filter/exchange.h"
#include "flist/scan.h"
#include "fs/chmod.h"
#include "fs/ids.h"
#include "fs/operator.h"
#include "fs/root.h"
#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options/batch.h"
#include "options/owners.h"
#include "receiver.h"
#include "receiver/output.h"
#include "receiver/report.h"
#include "sender.h"
#include "server.h"
#include "ui/number.h"
#include "ui/progress.h"
#include "wire/request.h"

#define DRAIN_SECONDS 60   /* doc/protocol/01-session.md section 10.8 */
#define FIRST_UPDATE 32768 /* bytes that a file has when it is first seen to progress */

struct push {
	struct options *options;
	struct session session;
	struct connection connection;
	struct flist *list;
	struct filter_list *rules;
	struct args sources;          /* the operands but the last; borrowed */
	char *charset;                /* of our side's names, of --iconv=LOCAL,REMOTE */
	struct batch *batch;          /* NULL: none is written */
	struct match_stats match;
	struct run_stats stats;
	int64_t started;              /* of clock_nanoseconds */
	bool ending;                  /* the peer knows that the session ends */
	struct log_sink below;        /* the log's before this run */
	struct item_lines lines;
	struct progress *progress;
	bool progress_shown;          /* of this file */
	bool header_is_open;          /* "building file list ... " waits for its "done" */
	bool header_was_broken;
};

/* --- signals: noticed where the connection waits --- */

static volatile sig_atomic_t caught_signal;

static void note_signal(int number)
{
	/* A second one, or a wait that does not come to its end, ends the process at once. */
	if (caught_signal || number == SIGALRM)
		_exit(EXIT_SIGNAL);
	caught_signal = number;
	alarm(2);
}

static void look_for_signal(void *push_void)
{
	(void)push_void;
	if (caught_signal)
		exit_with(caught_signal == SIGUSR1 ? EXIT_SIGNAL1 : EXIT_SIGNAL);
}

/* --- messages --- */

/* The log's sink. */
static void emit(void *push_void, enum log_kind kind, const char *text, size_t length)
{
	struct push *push = push_void;

	if (kind == L_LOG || ((kind == L_INFO || kind == L_CLIENT) && push->options->quiet))
		return;
	if (push->progress)
		progress_break_line(push->progress);
	if (push->header_is_open) {
		fputc('\n', stream_of(push->options, kind));
		push->header_is_open = false;
		push->header_was_broken = true;
	}
	push->below.emit(push->below.context, kind, text, length);
}

static void handle_message(void *push_void, enum message_code code, const uint8_t *payload, size_t length)
{
	struct push *push = push_void;

	if (code == MSG_ERROR_EXIT) {
		/* The server ends the session: acknowledge and follow; it has said why (doc/protocol/01-session.md
		 * section 10.8). */
		int theirs = length == 4 ? payload[0] : 0;

		push->ending = true;
		if (length == 4)
			wire_send_message(push->session.wire, MSG_ERROR_EXIT, "", 0);
		wire_flush(push->session.wire);
		/* Nobody ends well before the goodbye. */
		exit_set_quiet(theirs != EXIT_OK);
		exit_with(theirs ? theirs : EXIT_STREAMIO);
	}
	receiver_say_message(push->options, NULL, code, payload, length);
	if (code == MSG_IO_ERROR)
		push->session.io_error |= (int32_t)decode_int(payload) & 7;
	if (code == MSG_BLOCK_STATS)
		push->stats.blocks = decode_int64(payload);
	if (code == MSG_DELETED && length)
		item_lines_deletion(&push->lines, (const char *)payload, payload[length - 1] == '\0');
}

/* Exit hook: report to the server that this side ends, and let it end in order. */
static void say_end(void *push_void, int code)
{
	struct push *push = push_void;
	struct wire *wire = push->session.wire;

	if (push->ending || code == EXIT_OK || code == EXIT_SOCKETIO || code == EXIT_STREAMIO || code == EXIT_SIGNAL1
	    || code == EXIT_TIMEOUT || !wire_mux_out(wire))
		return;
	push->ending = true;
	if (push->session.caps.error_exit)
		wire_send_message_int(wire, MSG_ERROR_EXIT, code);
	wire_flush(wire);
	if (push->session.caps.error_exit && code != EXIT_SIGNAL)
		wire_drain(wire, wire_settings(wire)->timeout ? wire_settings(wire)->timeout : DRAIN_SECONDS);
}

/* Exit hook: how a log of a run that breaks off ends. */
static void log_broken_end(void *push_void, int code)
{
	const struct push *push = push_void;
	const struct wire *wire = push->session.wire;

	if (code)
		log_run_end(true, wire ? wire_bytes_written(wire) : 0, wire ? wire_bytes_read(wire) : 0,
			    push->list ? flist_totals(push->list)->size : 0, code);
}

/* --- rules --- */

static int open_rule_file(void *push_void, enum filter_place place, const char *path)
{
	struct push *push = push_void;

	if (place == FILTER_AT_BASE)
		return flist_open_rule_file(&push->list, place, path);
	return fs_operator_open(path, O_RDONLY | O_NONBLOCK | options_link_flag(push->options), 0);
}

static void explain(void *push_void, const char *text)
{
	(void)push_void;
	log_info("[sender] %s", text);
}

static struct filter_list *make_rules(struct push *push)
{
	const struct options *options = push->options;
	struct filter_setup setup = {
		.side = FILTER_SENDER, .delete_excluded = options->delete_excluded, .from0 = options->from0,
		.cvs_exclude = options->cvs_exclude, .dash_is_stdin = true, .open_file = open_rule_file, .context = push,
	};

	if (options->levels.debug[DEBUG_FILTER])
		setup.explain = explain;
	struct filter_list *rules = filter_new(&setup);

	options_add_filters(options, rules, false);
	return rules;
}

/* --- the list --- */

/* The directory that the names of a --files-from list are relative to has to be there. */
static void check_names_base(const char *base)
{
	struct fs_root root;

	if (fs_root_open(&root, base) == 0) {
		fs_root_close(&root);
		return;
	}
	int error = errno;
	char *cwd = getcwd(NULL, 0);

	log_errno(L_ERROR, error, "change_dir \"%s%s%s\" failed", *base == '/' || !cwd ? "" : cwd, *base == '/' ? "" : "/",
		  base);
	free(cwd);
	exit_with(EXIT_FILESELECT);
}

static int open_names(const struct options *options)
{
	const char *path = options->files_from;

	if (!path || options->files_from_remote)
		return -1;
	log_set_role("client");
	int fd = strcmp(path, "-") ? fs_operator_open(path, O_RDONLY | options_link_flag(options), 0) : dup(STDIN_FILENO);

	if (fd < 0)
		die(EXIT_SYNTAX, "rsync: failed to open files-from file %s: %s", path, strerror(errno));
	return fd;
}

static void list_sent(void *push_void)
{
	struct push *push = push_void;
	const struct options *options = push->options;
	bool has_dirs = options->recursive || options->dirs;

	if (push->header_is_open || push->header_was_broken) {
		fputs("done\n", stream_of(options, L_CLIENT));
		log_msg(L_LOG, "done");
	}
	push->header_is_open = push->header_was_broken = false;
	if (!options->quiet && !push->session.inc_recurse && has_dirs)
		say_list_count(options, 0, kinds_listed(flist_totals(push->list)).total);
}

/* --- items --- */

/* The totals of progress lines, of as much of the list as is known. */
static void note_totals(struct push *push)
{
	const struct flist_totals *totals = flist_totals(push->list);

	if (push->progress)
		progress_totals(push->progress, totals->size, kinds_listed(totals).total, flist_is_complete(push->list));
}

static void log_transfer_item(const struct push *push, enum log_kind kind, const char *format,
			      const struct transfer_record *record)
{
	static const uint8_t no_digest[DIGEST_MAX_LENGTH];
	bool is_symlink = entry_is_symlink(record->entry);
	struct format_values values;

	item_record_values(&values, push->options, record);
	values.look.mode = record->entry->mode;
	/* As it is sent. */
	if (push->options->chmod && !is_symlink)
		values.look.mode = chmod_apply(push->options->chmod, record->entry->mode);
	/* Of an older receiver it is not known whether it can set the times of symlinks. */
	if (!push->session.caps.symlink_times && is_symlink)
		values.look.times_kept = false;
	values.digest_length = digest_length(push->session.xfer_sum);
	if (push->options->dry_run && record->flags & ITEM_TRANSFER)
		values.digest = no_digest;
	item_line_log(kind, format, &values);
}

/* Counts an item; prints its line, when it is time for it, and its progress. */
static void take_item(void *push_void, const struct transfer_record *record, enum item_stage stage)
{
	struct push *push = push_void;
	const struct item_lines *lines = &push->lines;
	enum item_stage line_stage = lines->shown_is_late ? ITEM_ENDS : ITEM_BEGINS;
	bool is_dir = entry_is_dir(record->entry), is_hard_link = record->link_is_hard;

	if (stage != ITEM_ENDS && record->flags & ITEM_IS_NEW)
		kind_count(&push->stats.created, record->entry->mode);
	if (stage != ITEM_ENDS && record->flags & ITEM_TRANSFER) {
		push->stats.transferred_files++;
		push->stats.transferred_size += record->entry->size;
	}
	note_totals(push);
	if (push->progress && stage == ITEM_ENDS && !push->options->levels.info[INFO_PROGRESS])
		item_lines_name_asked(lines, push->options, record->name);
	if (push->progress && (stage == ITEM_ENDS || (stage == ITEM_WITHOUT_CONTENT && record->flags & ITEM_TRANSFER)))
		progress_file_end(push->progress, record->size, record->position);
	if ((stage == ITEM_WITHOUT_CONTENT || stage == line_stage) && item_is_shown(lines, record->flags, is_dir, is_hard_link))
		log_transfer_item(push, L_CLIENT, lines->shown, record);
	if (stage != ITEM_BEGINS && item_is_logged(lines, record->flags, is_dir, is_hard_link))
		log_transfer_item(push, L_LOG, lines->logged, record);
	if (push->progress && stage == ITEM_BEGINS)
		progress_file_start(push->progress, record->size);
	push->progress_shown = false;
}

/* All items up to this place in the list have been looked at (--info=progress2). */
static void take_section(void *push_void, uint64_t position)
{
	struct push *push = push_void;

	note_totals(push);
	if (push->progress)
		progress_section_end(push->progress, position);
}

static void take_progress(void *push_void, uint64_t done)
{
	struct push *push = push_void;

	if (!push->progress)
		return;
	progress_update(push->progress, push->progress_shown || done < FIRST_UPDATE ? done : FIRST_UPDATE);
	push->progress_shown = true;
}

/* --- the run --- */

/* "sending incremental file list" and its relatives. */
static void print_header(struct push *push)
{
	const struct options *options = push->options;
	int level = options->levels.info[INFO_FLIST];

	log_msg(L_LOG, "building file list");
	if (!level || options->quiet || (!options->recursive && !options->dirs))
		return;
	if (push->session.inc_recurse) {
		log_msg(L_CLIENT, "sending incremental file list");
	} else {
		fprintf(stream_of(options, L_CLIENT), "building file list ... %s", level > 1 ? "\n" : "");
		push->header_is_open = level == 1;
	}
	/* A server may write to our standard error. */
	fflush(stdout);
}

static void send_files(struct push *push, int names_fd)
{
	const struct options *options = push->options;
	struct sender_host host = {
		.session = &push->session, .options = options, .ids = fs_ids_new(NULL, NULL), .sources = &push->sources,
		.names_fd = names_fd, .chmod = options->chmod, .charset = push->charset, .match = &push->match,
		.message = handle_message, .item = take_item, .list_sent = list_sent, .context = push,
		.progress = options->levels.info[INFO_PROGRESS] ? take_progress : NULL, .list_done = take_section,
		.batch = push->batch,
	};
	const struct delete_stats *deleted = &push->session.deleted;
	struct run_stats *stats = &push->stats;

	push->list = flist_new(options, &push->session, NULL, push->rules, NULL);
	flist_scan_options(push->list)->munge_symlinks = options->munge_links;
	print_header(push);
	sender_run(&host, push->list);
	push->ending = true;
	fs_ids_free(host.ids);
	batch_finish(push->batch);
	stats->list_build_ms = host.list_build_ms;
	stats->list_size = host.list_bytes;
	stats->files = kinds_listed(flist_totals(push->list));
	stats->deleted = (struct kind_counts){
		.total = (uint64_t)(deleted->files + deleted->dirs + deleted->symlinks + deleted->devices + deleted->specials),
		.dirs = (uint64_t)deleted->dirs, .links = (uint64_t)deleted->symlinks,
		.devices = (uint64_t)deleted->devices, .specials = (uint64_t)deleted->specials,
	};
	stats->total_size = flist_totals(push->list)->size;
	stats->literal = push->match.literal_bytes;
	stats->matched = push->match.matched_bytes;
	stats->sent = wire_bytes_written(push->session.wire);
	stats->received = wire_bytes_read(push->session.wire);
	stats->elapsed_seconds = (clock_nanoseconds() - push->started) / CLOCK_SECOND;
	stats->caps = push->session.caps;
}

/* The statistics that the options want, as far as the session's protocol has them, and the end of the log of a run with this
 * exit code. The sink is again what it was. */
static void end_output(struct push *push, int code)
{
	const struct options *options = push->options;
	const struct run_stats *stats = &push->stats;
	int level = options->levels.info[INFO_STATS];

	if (push->progress)
		progress_break_line(push->progress);
	if (level)
		stats_print(stats, options->human_readable, level > 1, true, options_kind_of_end(options));
	if (code || !options->levels.info[INFO_STATS])
		log_run_end(true, stats->sent, stats->received, stats->total_size, code);
	log_set_sink(push->below);
	free(push->progress);
	fflush(stdout);
}

int client_push(struct options *options, const struct remote *remote, const struct args *paths)
{
	struct push *push = xcalloc(1, sizeof *push);
	int progress_mode = options->levels.info[INFO_PROGRESS], names_fd, code;

	push->options = options;
	push->sources = (struct args){ options->operands.items, options->operands.count - 1 };
	push->started = clock_nanoseconds();
	if (options->iconv)
		push->charset = xstrndup(options->iconv, strcspn(options->iconv, ","));
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM };
	struct sigaction action = { .sa_handler = note_signal };

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		sigaction(numbers[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGVTALRM, SIG_IGN);
	exit_push_hook(log_broken_end, push);
	item_lines_init(&push->lines, options);
	if (!options->quiet && (!options->dry_run || progress_mode > 1))
		push->progress = progress_new(progress_mode, options->human_readable, options->dry_run);
	if (push->progress && !progress_mode)
		progress_listen();
	push->below = log_set_sink((struct log_sink){ emit, push });
	push->batch = batch_create(options);
	push->rules = make_rules(push);
	batch_write_script(push->batch, push->rules);
	names_fd = open_names(options);
	client_connect(&push->connection, options, remote, paths, true);
	log_set_role("sender");
	struct session *session = &push->session;

	session->is_daemon = push->connection.is_daemon;
	session->is_sender = true;
	wire_set_message_handler(push->connection.wire, handle_message, push);
	client_set_up(session, &push->connection, options);
	wire_settings(session->wire)->wait_hook = look_for_signal;
	wire_settings(session->wire)->wait_hook_context = push;
	exit_push_hook(say_end, push);
	copy_as_assume(options);
	options_protect_leftovers(options, push->rules, session->caps.perishable_rules);
	/* doc/protocol/04-filters.md section 4.6.1 */
	bool deletes = options->delete_when != DELETE_NEVER && (!options->delete_excluded || session->caps.modern_filters);

	filter_send(push->rules, session, options->prune_empty_dirs || deletes);
	batch_start(push->batch, session);
	if (options->files_from)
		check_names_base(push->sources.items[0]);
	send_files(push, names_fd);
	/* A server that says much is not done yet, and would take a closed connection for an error. */
	if (push->connection.shell_pid)
		wire_take_rest(session->wire, DRAIN_SECONDS);
	exit_remove_hook(say_end, push);
	/* They are counted in the budget of the session, which ends with its wire. */
	flist_free(push->list);
	push->list = NULL;
	filter_free(push->rules);
	code = client_disconnect(&push->connection, run_exit_code(session->io_error));
	exit_remove_hook(log_broken_end, push);
	end_output(push, code);
	free(push->charset);
	free(push);
	return code;
}
