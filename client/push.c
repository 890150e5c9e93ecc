/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A push: rules, connection, set-up, the sender's run, and the end. */
#include "client/push.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/output.h"
#include "delta/match.h"
#include "filter/exchange.h"
#include "flist/scan.h"
#include "fs/ids.h"
#include "fs/operator.h"
#include "fs/root.h"
#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "options/batch.h"
#include "options/owners.h"
#include "receiver.h"
#include "receiver/report.h"
#include "server.h"
#include "wire/request.h"

#define DRAIN_SECONDS 60 /* doc/protocol/01-session.md section 10.8 */

struct push {
	struct options *options;
	struct session session;
	struct connection connection;
	struct client_output *output;
	struct flist *list;
	struct filter_list *rules;
	struct args sources;          /* the operands but the last; borrowed */
	char *charset;                /* of our side's names, of --iconv=LOCAL,REMOTE */
	struct batch *batch;          /* NULL: none is written */
	struct match_stats match;
	struct run_stats stats;
	int64_t started;              /* of clock_nanoseconds */
	bool ending;                  /* the peer knows that the session ends */
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
	if (code == MSG_IO_ERROR)
		push->session.io_error |= (int32_t)decode_int(payload) & 7;
	else if (code == MSG_BLOCK_STATS)
		push->stats.blocks = decode_int64(payload);
	else
		client_output_message(push->output, code, payload, length);
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
		wire_drain(wire, wire_timeout(wire) ? wire_timeout(wire) : DRAIN_SECONDS);
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

/* doc/protocol/04-filters.md section 4.6.1 */
static bool server_wants_rules(const struct push *push)
{
	const struct options *options = push->options;

	return options->prune_empty_dirs
	       || (options->delete_when != DELETE_NEVER && (!options->delete_excluded || push->session.caps.modern_filters));
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

static struct kind_counts kinds_listed(const struct flist_totals *totals)
{
	return (struct kind_counts){
		.total = (uint64_t)totals->files + totals->dirs + totals->symlinks + totals->devices + totals->specials,
		.dirs = totals->dirs, .links = totals->symlinks, .devices = totals->devices, .specials = totals->specials,
	};
}

static void list_sent(void *push_void)
{
	struct push *push = push_void;

	client_output_header_done(push->output, kinds_listed(flist_totals(push->list)).total);
}

/* --- items --- */

static void take_item(void *push_void, const struct transfer_record *record, enum item_stage stage)
{
	struct push *push = push_void;

	if (stage != ITEM_ENDS && record->flags & ITEM_IS_NEW) {
		push->stats.created.total++;
		push->stats.created.dirs += entry_is_dir(record->entry);
		push->stats.created.links += entry_is_symlink(record->entry);
		push->stats.created.devices += entry_is_device(record->entry);
		push->stats.created.specials += entry_is_special(record->entry);
	}
	if (stage != ITEM_ENDS && record->flags & ITEM_TRANSFER) {
		push->stats.transferred_files++;
		push->stats.transferred_size += record->entry->size;
	}
	client_output_totals(push->output, flist_totals(push->list), flist_is_complete(push->list));
	client_output_item(push->output, record, stage);
}

static void take_section(void *push_void, uint64_t position)
{
	struct push *push = push_void;

	client_output_totals(push->output, flist_totals(push->list), flist_is_complete(push->list));
	client_output_section(push->output, position);
}

static void take_progress(void *push_void, uint64_t done)
{
	struct push *push = push_void;

	client_output_progress(push->output, done);
}

/* --- the run --- */

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

	push->list = flist_new(options, &push->session, NULL, push->rules, NULL);
	flist_scan_options(push->list)->munge_symlinks = options->munge_links;
	client_output_header(push->output);
	sender_run(&host, push->list);
	push->ending = true;
	push->stats.list_build_ms = host.list_build_ms;
	push->stats.list_size = host.list_bytes;
	fs_ids_free(host.ids);
}

static void fill_stats(struct push *push)
{
	const struct flist_totals *totals = flist_totals(push->list);
	struct run_stats *stats = &push->stats;

	stats->files = kinds_listed(totals);
	stats->deleted = (struct kind_counts){
		.total = (uint64_t)(push->session.deleted.files + push->session.deleted.dirs + push->session.deleted.symlinks
				    + push->session.deleted.devices + push->session.deleted.specials),
		.dirs = (uint64_t)push->session.deleted.dirs,
		.links = (uint64_t)push->session.deleted.symlinks,
		.devices = (uint64_t)push->session.deleted.devices,
		.specials = (uint64_t)push->session.deleted.specials,
	};
	stats->total_size = totals->size;
	stats->literal = push->match.literal_bytes;
	stats->matched = push->match.matched_bytes;
	stats->sent = wire_bytes_written(push->session.wire);
	stats->received = wire_bytes_read(push->session.wire);
	stats->elapsed_seconds = (clock_nanoseconds() - push->started) / CLOCK_SECOND;
}

int client_push(struct options *options, const struct remote *remote, const struct args *paths)
{
	struct push *push = xcalloc(1, sizeof *push);
	int names_fd, code;

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
	push->output = client_output_new(options, &push->session, true);
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
	client_set_up(session, &push->connection, push->options);
	wire_set_wait_hook(session->wire, look_for_signal, push);
	exit_push_hook(say_end, push);
	copy_as_assume(options);
	options_protect_leftovers(push->options, push->rules, push->session.caps.perishable_rules);
	filter_send(push->rules, &push->session, server_wants_rules(push));
	batch_start(push->batch, &push->session);
	if (options->files_from)
		check_names_base(push->sources.items[0]);
	send_files(push, names_fd);
	batch_finish(push->batch);
	fill_stats(push);
	/* A server that says much is not done yet, and would take a closed connection for an error. */
	if (push->connection.shell_pid)
		wire_take_rest(push->session.wire, DRAIN_SECONDS);
	exit_remove_hook(say_end, push);
	/* They are counted in the budget of the session, which ends with its wire. */
	flist_free(push->list);
	push->list = NULL;
	filter_free(push->rules);
	code = client_disconnect(&push->connection, run_exit_code(push->session.io_error));
	exit_remove_hook(log_broken_end, push);
	client_output_end(push->output, &push->stats, code);
	client_output_free(push->output);
	free(push->charset);
	free(push);
	return code;
}
