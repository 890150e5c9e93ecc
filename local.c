/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The local engine: from the operands to the exit code. Nothing travels, so "sent" is what the copies and the names in the
 * list amount to, and "received" is 0.
 */
#include "local.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attrs/image.h"
#include "copy_as.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "item_lines.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "local_alternate.h"
#include "local_backup.h"
#include "local_partial.h"
#include "local_pull.h"
#include "snapshot_make.h"

#define PATIENCE_MS 2000
#define MOMENT_MS 20
#define RULE_FILE_LIMIT (64u << 20)
#define FROM_FILE_LIMIT (1u << 30)
#define RECORD_BYTES 20 /* what an entry takes beside its name, roughly, in any file list */

/* Owned by local_main; what only the outer frame needs. */
struct run {
	struct local local;
	struct options *options;
	const struct local_snapshot *from; /* NULL: the operands, of the live tree */
	struct attr_source source;         /* from != NULL */
	const struct local_peer *peer;     /* NULL: sources are local */
	struct flist_receiver *receiver;   /* peer != NULL */
	struct peer_stats peer_stats;
	struct image *image;               /* of the peer's list, for its snapshot */
	bool has_names_text;
	struct strbuf names_text;          /* the --files-from list, once it has been read */
	struct args names;                 /* of a --files-from list that the peer has been sent */
	int stdin_copy;          /* -: both sides read the same rules */
	bool header_is_open;     /* "building file list ... " waits for its "done" */
	bool header_was_broken;
	pthread_t signal_thread;
	bool has_signal_thread;
	atomic_bool is_over;     /* signals are of no interest any more */
	struct timespec started;
	int64_t list_started_ms, list_ms;
};

/* --- output --- */

static FILE *stream_of(const struct options *options, enum log_kind kind)
{
	bool informs = kind == L_INFO || kind == L_CLIENT;

	return informs && options->stderr_mode != STDERR_ALL ? stdout : stderr;
}

static void emit(void *run_void, enum log_kind kind, const char *text, size_t length)
{
	struct run *run = run_void;
	bool informs = kind == L_INFO || kind == L_CLIENT;
	size_t body = length && text[length - 1] == '\n' ? length - 1 : length, needed;
	FILE *out = stream_of(run->options, kind);
	char *line;

	if (kind == L_LOG || (informs && run->options->quiet))
		return;
	if (run->local.report && report_progress(run->local.report))
		progress_break_line(report_progress(run->local.report));
	needed = log_escape(NULL, 0, text, body, run->options->eight_bit_output);
	line = xmalloc(needed + 2);
	log_escape(line, needed + 1, text, body, run->options->eight_bit_output);
	line[needed] = '\n';
	if (out == stderr)
		fflush(stdout);
	if (run->header_is_open) {
		fputc('\n', out);
		run->header_is_open = false;
		run->header_was_broken = true;
	}
	/* At once: others write to the same standard error. */
	fwrite(line, 1, needed + 1, out);
	free(line);
}

/* Exit hook: how a log of a run that breaks off ends. */
static void log_broken_end(void *run_void, int code)
{
	const struct run *run = run_void;

	if (code && !run->local.shows_receiver)
		log_run_end(true, 0, 0, 0, code);
}

/* --- signals --- */

/* Those that end a run. */
static void fill_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
}

/* The threads are interrupted nowhere; this one hears the signal and tells them. */
static void *await_signal(void *run_void)
{
	struct run *run = run_void;
	sigset_t set;
	int number;

	fill_signals(&set);
	sigwait(&set, &number);
	atomic_store(&run->local.stop, number == SIGUSR1 ? STOP_SIGNAL1 : STOP_SIGNAL);
	/* The main thread ends the process within moments, unless it waits for something that does not come. */
	for (int i = 0; i < PATIENCE_MS && !atomic_load(&run->is_over); i += MOMENT_MS)
		nanosleep(&(struct timespec){ 0, MOMENT_MS * 1000000 }, NULL);
	if (atomic_load(&run->is_over))
		return NULL;
	fs_temp_remove_all();
	_exit(number == SIGUSR1 ? EXIT_SIGNAL1 : EXIT_SIGNAL);
}

static void handle_signals(struct run *run)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGVTALRM, SIG_IGN);
	fill_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	run->has_signal_thread = pthread_create(&run->signal_thread, NULL, await_signal, run) == 0;
}

static void stop_signal_thread(struct run *run)
{
	if (!run->has_signal_thread)
		return;
	/* To cancel a thread takes a library that a module's root does not have. */
	atomic_store(&run->is_over, true);
	pthread_kill(run->signal_thread, SIGTERM);
	pthread_join(run->signal_thread, NULL);
}

/* Every task holds directories. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max && limit.rlim_cur < 65536) {
		limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* --- filters --- */

/* Rules are read once for each side, standard input only once. */
static int open_stdin_copy(struct run *run)
{
	struct strbuf text = STRBUF_INIT;

	if (run->stdin_copy < 0) {
		run->stdin_copy = memfd_create("rules", MFD_CLOEXEC);
		if (run->stdin_copy < 0 || fs_read_all(STDIN_FILENO, RULE_FILE_LIMIT, &text) < 0
		    || fs_write_all(run->stdin_copy, strbuf_text(&text), text.length) < 0)
			return -1;
		strbuf_free(&text);
	}
	if (lseek(run->stdin_copy, 0, SEEK_SET) < 0)
		return -1;
	return fcntl(run->stdin_copy, F_DUPFD_CLOEXEC, 0);
}

static int open_sender_rules(void *run_void, enum filter_place place, const char *path)
{
	struct run *run = run_void;

	if (place == FILTER_AT_OPERATOR && !strcmp(path, "-"))
		return open_stdin_copy(run);
	if (place == FILTER_AT_OPERATOR)
		return fs_operator_open(path, O_RDONLY | O_NONBLOCK | options_link_flag(run->options), 0);
	return flist_open_rule_file(&run->local.list, place, path);
}

static bool is_hidden_rule_file(struct run *run, enum filter_place place, const char *path)
{
	return place == FILTER_AT_ROOT ? local_is_hidden_in(&run->local, "/", path + strspn(path, "/"), false)
				       : local_is_hidden(&run->local, path, false);
}

static int open_receiver_rules(void *run_void, enum filter_place place, const char *path)
{
	struct run *run = run_void;

	const struct local_module *module = local_module(&run->local);

	if (module && place != FILTER_AT_OPERATOR && is_hidden_rule_file(run, place, path)) {
		errno = ENOENT;
		return -1;
	}
	if (module && place == FILTER_AT_ROOT)
		return fs_open_follow(module->root, path + strspn(path, "/"), O_RDONLY, 0);
	if (place != FILTER_AT_BASE && !module)
		return open_sender_rules(run, FILTER_AT_OPERATOR, path);
	if (run->local.top.fd < 0 || place != FILTER_AT_BASE) {
		errno = ENOENT;
		return -1;
	}
	return fs_open_follow(&run->local.top, path, O_RDONLY, 0);
}

static void explain_sender(void *run_void, const char *text)
{
	(void)run_void;
	log_info("[sender] %s", text);
}

static void explain_receiver(void *run_void, const char *text)
{
	(void)run_void;
	log_info("[generator] %s", text);
}

static struct filter_list *make_rules(struct run *run, enum filter_side side)
{
	const struct options *options = run->options;
	bool sends = side == FILTER_SENDER;
	struct filter_setup setup = {
		.side = side, .delete_excluded = options->delete_excluded, .from0 = options->from0,
		.cvs_exclude = options->cvs_exclude, .protocol = PROTOCOL_MAX,
		.open_file = sends ? open_sender_rules : open_receiver_rules, .context = run,
	};
	struct filter_list *rules;
	bool is_sent = run->peer && !sends;

	if (options->levels.debug[DEBUG_FILTER] && !(run->peer && sends))
		setup.explain = sends ? explain_sender : explain_receiver;
	if (run->local.service && !sends)
		return serve_rules(&run->local, options, &setup);
	rules = filter_new(&setup);
	if (run->local.service)
		return rules;
	/* filter_send adds those of -C itself, in the way that the peer's protocol knows. */
	options_add_filters(options, rules, !is_sent);
	options_protect_leftovers(options, rules, true);
	return rules;
}

/* Rules of per-directory files are not among them: names of attributes are looked up in no order, and by any thread. */
static void make_xattr_policies(struct run *run)
{
	const struct options *options = run->options;
	struct local *local = &run->local;
	struct xattr_policy policy = { .verbatim = options->xattrs > 1, .lock = &local->xattr_lock };

	local->sends_xattrs = local->keeps_xattrs = policy;
	local->sends_xattrs.level = options_super_level(options);
	local->keeps_xattrs.level = local_receiving_level(options, !run->peer || run->peer->is_ourselves);
	local->sends_xattrs.rules = filter_xattr_list(local->sender_rules);
	local->keeps_xattrs.rules = filter_xattr_list(local->receiver_rules);
}

/* --- the list --- */

static void say_header(struct run *run)
{
	const struct options *options = run->options;
	int level = options->levels.info[INFO_FLIST];

	log_list_begin(!run->local.shows_receiver);
	if (!level || options->quiet || run->local.service || (!options->recursive && !options->dirs))
		return;
	if (run->local.session.inc_recurse)
		log_msg(L_CLIENT, "%s incremental file list", run->local.shows_receiver ? "receiving" : "sending");
	else if (level > 1 && !run->local.shows_receiver)
		log_msg(L_CLIENT, "building file list ... ");
	else
		run->header_is_open = fprintf(stream_of(options, L_CLIENT), "%s file list ... ",
					      run->local.shows_receiver ? "receiving" : "building") >= 0;
}

static void close_header(struct run *run)
{
	/* With a count, which still follows, there is no "done". */
	if (run->options->levels.info[INFO_FLIST] > 1)
		return;
	if (run->header_is_open || run->header_was_broken) {
		fputs("done\n", stream_of(run->options, L_CLIENT));
		log_msg(L_LOG, "done");
	}
	run->header_is_open = false;
}

/* Lines end in LF, CR or NUL; with -0 only in NUL (protocol/06 section 13). */
static void for_each_name(struct run *run, const struct strbuf *names, void (*take)(struct run *run, const char *name))
{
	const char *text = strbuf_text(names);
	size_t at = 0, length = names->length;

	while (at < length) {
		size_t end = at;
		char *name;

		while (end < length && text[end] && (run->options->from0 || (text[end] != '\n' && text[end] != '\r')))
			end++;
		name = xstrndup(text + at, end - at);
		if (*name)
			take(run, name);
		free(name);
		at = end + 1;
	}
}

static void add_name(struct run *run, const char *name)
{
	if (*name != '#' && *name != ';')
		flist_add_argument(run->local.list, name, true);
}

/* A name travels with its NUL (protocol/01 9.7), and may then be in the list that comes back. What is a comment here is a name
 * to a peer, unless that is ourselves. */
static void send_name(struct run *run, const char *name)
{
	struct charset *charset = run->options->secluded_args ? run->peer->charset : NULL;
	struct strbuf sent = STRBUF_INIT;

	if (run->peer->is_ourselves && (*name == '#' || *name == ';'))
		return;
	if (!charset || !charset_to_wire(charset, name, strlen(name), PATH_MAX - 1, &sent))
		strbuf_add_string(&sent, name);
	wire_write(run->local.session.wire, strbuf_text(&sent), sent.length + 1);
	args_append(&run->names, name);
	strbuf_free(&sent);
}

static void load_names(struct run *run)
{
	const struct options *options = run->options;
	int failed, error;

	if (run->has_names_text)
		return;
	run->has_names_text = true;
	if (!strcmp(options->files_from, "-"))
		failed = fs_read_all(STDIN_FILENO, FROM_FILE_LIMIT, &run->names_text);
	else
		failed = fs_operator_read(options->files_from, options_link_flag(options), FROM_FILE_LIMIT, &run->names_text);
	if (!failed)
		return;
	error = errno;
	log_set_role("client");
	log_errno(L_ERROR, error, "failed to open files-from file %s", options->files_from);
	exit_with(EXIT_FILEIO);
}

static void read_files_from(struct run *run)
{
	const struct options *options = run->options;
	const char *base = options->operands.items[0];
	struct fs_root root;
	int error;

	if (fs_root_open(&root, base) < 0) {
		error = errno;
		char *cwd = getcwd(NULL, 0);

		log_errno(L_ERROR, error, "change_dir \"%s%s%s\" failed", *base == '/' || !cwd ? "" : cwd, *base == '/'
				? "" : "/",
			  base);
		free(cwd);
		exit_with(EXIT_FILESELECT);
	}
	fs_root_close(&root);
	flist_set_files_from(run->local.list, base);
	load_names(run);
	for_each_name(run, &run->names_text, add_name);
	strbuf_free(&run->names_text);
}

/* A list of names that lies here and is wanted there. Below protocol 31 it travels between frames. */
static void send_files_from(struct run *run)
{
	const struct options *options = run->options;
	struct wire *wire = run->local.session.wire;
	bool framed = wire_mux_out(wire), window = framed && run->local.session.protocol < 31;

	if (!options->files_from || options->files_from_remote)
		return;
	load_names(run);
	if (window)
		wire_set_mux_out(wire, false);
	for_each_name(run, &run->names_text, send_name);
	wire_write_byte(wire, 0);
	if (window)
		wire_set_mux_out(wire, true);
	strbuf_free(&run->names_text);
}

static void add_arguments(struct run *run)
{
	size_t operands = run->options->operands.count, sources = operands > 1 ? operands - 1 : operands;

	if (run->from) {
		flist_add_argument(run->local.list, run->from->path, false);
		return;
	}
	if (run->options->files_from) {
		read_files_from(run);
		return;
	}
	for (size_t i = 0; i < sources; i++)
		flist_add_argument(run->local.list, run->options->operands.items[i], false);
}

static bool is_incremental(const struct options *options)
{
	return options->recursive && options->allow_inc_recurse && !options->use_qsort && options->delete_when != DELETE_BEFORE
	       && options->delete_when != DELETE_AFTER && !options->delay_updates && !options->prune_empty_dirs;
}

/* What decides between "into the directory" and "under this name": a list of one directory counts with its contents. */
static uint64_t count_first_entries(struct local *local)
{
	const struct entries *first = flist_dir(local->list, 0)->entries;
	uint64_t count = first->count;

	if (count == 1 && first->items[0].dir && !(first->items[0].flags & ENTRY_NO_CONTENT)) {
		local->preloaded = flist_load_next(local->list);
		if (local->preloaded >= 0)
			count += flist_dir(local->list, local->preloaded)->entries->count;
	}
	return count;
}

/* --- the parts of a run --- */

static int64_t ms_since(const struct timespec *then)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)(now.tv_sec - then->tv_sec) * 1000 + (now.tv_nsec - then->tv_nsec) / 1000000;
}

static void read_groups(struct local *local)
{
	int count = getgroups(0, NULL);
	gid_t *groups;

	if (local->rules.am_root || count < 0)
		return;
	groups = xcalloc((size_t)count + 1, sizeof *groups);
	count = count ? getgroups(count, groups) : 0;
	groups[count > 0 ? count : 0] = local->gid;
	local->rules.groups = groups;
	local->rules.group_count = (size_t)(count > 0 ? count : 0) + 1;
}

static void read_rules(struct run *run)
{
	if (run->local.sender_rules)
		return;
	run->local.sender_rules = make_rules(run, FILTER_SENDER);
	run->local.receiver_rules = make_rules(run, FILTER_RECEIVER);
}

/* --copy-as: the files of the command line are read as the user who typed it, all others as somebody else. */
static void become_copier(struct run *run)
{
	const struct options *options = run->options;

	if (!options->copy_as || (run->peer && run->peer->service))
		return;
	read_rules(run);
	if (options->files_from && !options->files_from_remote)
		load_names(run);
	copy_as_assume(options);
}

static void set_up(struct run *run)
{
	struct local *local = &run->local;
	const struct options *options = run->options;
	enum super_level level = local_receiving_level(options, !run->peer || run->peer->is_ourselves);

	local->options = options;
	pthread_mutex_init(&local->xattr_lock, NULL);
	local->session.protocol = PROTOCOL_MAX;
	local->session.is_sender = true;
	local->session.inc_recurse = is_incremental(options);
	if (run->peer) {
		local->session = *run->peer->session;
		local->service = run->peer->service;
	}
	/* protocol/03 10.1 */
	if (options->delete_when == DELETE_DEFAULT && local->session.protocol < 30)
		run->options->delete_when = DELETE_BEFORE;
	local->tells_items = local->service || (run->peer && run->peer->batch);
	local->shows_receiver = run->peer && !run->peer->is_ourselves;
	local->uid = geteuid();
	local->gid = getegid();
	local->attrs_only = options->only_send_attrs;
	local->is_fake = level == LEVEL_FAKE;
	local->snapshot_root = run->from ? run->from->root : NULL;
	local->has_sources = !run->from && (!run->peer || run->peer->is_ourselves) && !options->files_from;
	local->dry_run = options->dry_run || options->only_write_batch;
	local->snapshot_file = run->from ? NULL : options->attr_snapshot;
	clock_gettime(CLOCK_REALTIME, &local->began);
	local->rules = (struct decide_rules){
		.options = options, .am_root = level != LEVEL_NORMAL,
		.umask = umask(0), .check_content = local->attrs_only,
	};
	pthread_mutex_init(&local->hidden_lock, NULL);
	local->top.fd = -1;
	local->preloaded = -1;
	read_groups(local);
	local->wants_items = report_wants_names(local);
	local->deletes = options->delete_when != DELETE_NEVER && (options->recursive || options->dirs);
	local->loads_all = (local->deletes && options->delete_when == DELETE_BEFORE) || options->prune_empty_dirs
			   || (options->hard_links && (local->wants_items || !local->attrs_only || options->delay_updates))
			   || (!local->session.inc_recurse && options->levels.info[INFO_FLIST] > 1);
	/* A peer sends further directories only as the ones before are done. */
	local->loads_all &= !(run->peer && local->session.inc_recurse);
	local->keeps_entries = (local->deletes && options->delete_when == DELETE_AFTER)
			       || (local->loads_all && options->hard_links);
	local->late_dirs = local->keeps_entries || (local->deletes && options->delete_when == DELETE_DELAY)
			   || options->delay_updates;
}

/* The one who may read the file may see all of it. */
static struct attr_source *snapshot_source(struct run *run)
{
	if (!run->from)
		return NULL;
	run->source = (struct attr_source){
		.kind = ATTRS_SNAPSHOT, .attr_root.fd = -1, .snapshot = run->from->snapshot, .shown_prefix = run->from->shown,
		.who = { .known = true, .superuser = true },
	};
	return &run->source;
}

static void make_list(struct run *run)
{
	struct local *local = &run->local;

	read_rules(run);
	make_xattr_policies(run);
	local->list = flist_new(run->options, &local->session, snapshot_source(run), local->sender_rules, NULL);
	flist_scan_options(local->list)->munge_symlinks = run->options->munge_links;
	say_header(run);
	local->owner_maps = local_owner_maps_new(run->options, &local->rules);
	add_arguments(run);
	flist_finish_arguments(local->list);
	close_header(run);
}

/* The peer's list: our rules go out, the first part of it comes in. */
static void receive_list(struct run *run)
{
	struct local *local = &run->local;
	const struct local_peer *peer = run->peer;
	struct session *session = &local->session;

	/* What the peer should have hidden is looked for by the reading thread, which needs a list of its own. */
	read_rules(run);
	make_xattr_policies(run);
	local->list = flist_new_received(run->options, session);
	local->pull = pull_new(local, peer->is_batch);
	local->pull->charset = peer->charset;
	/* Its list is in another order than the one that contents are asked for in. */
	if (peer->batch && session->protocol < 29)
		die(EXIT_UNSUPPORTED, "rsync: a batch is written from protocol 29 on, except in a push");
	batch_write_script(peer->batch, local->receiver_rules);
	if (!local->service) {
		filter_send(local->receiver_rules, session, true);
		send_files_from(run);
	}
	wire_flush(session->wire);
	batch_start(peer->batch, session);
	const struct flist_receive_setup setup = {
		.ids = peer->ids, .charset = peer->charset, .rules = local->service ? NULL : local->sender_rules,
		.asked = local->service || (run->options->files_from && run->options->files_from_remote) ? NULL
			 : run->options->files_from ? &run->names : peer->asked,
		.xattr_policy = &local->keeps_xattrs, .trust_sender = peer->trusted, .munge_symlinks = peer->munge_symlinks,
		.repeats_values = peer->is_batch,
		.clean_symlinks = peer->clean_symlinks,
	};

	run->receiver = flist_receiver_new(local->list, session, run->options, &setup);
	say_header(run);
	flist_receive_first(run->receiver);
	close_header(run);
	/* After an empty list the session ends before there are two halves of a receiver. */
	if (!local->service && !flist_dir(local->list, 0)->entries->count)
		return;
	if (local->shows_receiver)
		log_set_role("generator");
	pull_start(local->pull, run->receiver);
}

static void end_pull(struct run *run)
{
	struct pull *pull = run->local.pull;

	if (pull && (run->local.service || flist_dir(run->local.list, 0)->count))
		pull_finish(pull, &run->peer_stats);
}

/* FLIST2: the counter that people would see running, and its end. A receiver has begun with its first hundred. */
static void say_list_count(struct run *run)
{
	const struct options *options = run->options;
	uint64_t entries = run->local.loaded_entries;
	FILE *out = stream_of(options, L_CLIENT);

	if (options->levels.info[INFO_FLIST] < 2 || run->local.service || run->local.session.inc_recurse
	    || (!options->recursive && !options->dirs))
		return;
	if (run->header_is_open && entries >= 100)
		fputc('\n', out);
	run->header_is_open = false;
	for (uint64_t i = run->local.shows_receiver ? 100 : 0; !options->quiet && i <= entries; i += 100)
		fprintf(out, " %llu files...\r", (unsigned long long)i);
	log_info("%llu file%s to consider", (unsigned long long)entries, entries == 1 ? " " : "s");
}

static void say_method(struct local *local)
{
	if (local->options->levels.debug[DEBUG_FLIST])
		log_info(local->pull && local->options->whole_file <= 0 ? "delta-transmission enabled"
			 : "delta-transmission disabled for local transfer or --whole-file");
}

static void copy_tree(struct run *run, const char *destination)
{
	struct local *local = &run->local;
	uint64_t entries;

	if (local->loads_all) {
		local_load_everything(local);
		say_list_count(run);
		entries = local->loaded_entries;
	} else {
		entries = count_first_entries(local);
	}

	if (!entries && local->pull && !local->service)
		return;
	local_choose_destination(local, destination, entries);
	if (!entries) {
		if (local->pull)
			pull_node_done(local->pull, 0);
		end_pull(run);
		return;
	}
	if (local->single_name)
		local->deletes = false;
	local_guard(local);
	local_backups_begin(local);
	local->alternates = local_alternates_open(local);
	local_places_begin(local);
	local_snapshot_begin(local);
	filter_set_base(local->receiver_rules, local->top_path);
	if (local->options->prune_empty_dirs)
		local_prune(local);
	say_method(local);
	/* Requests have the order of the list. */
	local->pool = pool_new(local, local->pull && !local->attrs_only ? 1 : pool_threads(local->options, local->attrs_only));
	local_run(local);
	end_pull(run);
	pool_free(local->pool);
	local->pool = NULL;
}

static void fill_statistics(struct run *run)
{
	struct local *local = &run->local;
	struct run_stats *stats = &local->stats;
	const struct flist_totals *totals = flist_totals(local->list);

	stats->files = (struct kind_counts){
		.total = (uint64_t)totals->files + totals->dirs + totals->symlinks + totals->devices + totals->specials,
		.dirs = totals->dirs, .links = totals->symlinks, .devices = totals->devices, .specials = totals->specials,
	};
	stats->total_size = totals->size;
	stats->list_build_ms = 1;
	stats->protocol = local->session.protocol;
	stats->sent = stats->literal + stats->files.total * RECORD_BYTES;
	if (run->peer) {
		stats->list_size = local->pull->list_bytes;
		stats->list_build_ms = run->peer_stats.build_ms;
		stats->list_transfer_ms = run->peer_stats.transfer_ms;
		stats->sent = (uint64_t)(local->shows_receiver ? run->peer_stats.read : run->peer_stats.written);
		stats->received = (uint64_t)(local->shows_receiver ? run->peer_stats.written : run->peer_stats.read);
	}
	stats->elapsed_seconds = ms_since(&run->started) / 1000;
}

/* A daemon has an end of its own. */
static void log_service_end(const struct run *run, int code)
{
	const struct wire *wire = run->local.session.wire;

	if (run->options->log_file)
		log_run_end(false, wire_bytes_written(wire), wire_bytes_read(wire), flist_totals(run->local.list)->size, code);
}

static void say_end(struct run *run, int code)
{
	const struct options *options = run->options;
	struct run_stats *stats = &run->local.stats;
	int level = options->levels.info[INFO_STATS];

	if (run->local.service) {
		log_service_end(run, code);
		return;
	}
	if (options->levels.debug[DEBUG_DELTASUM] && !run->peer)
		log_info("total: matches=0  hash_hits=0  false_alarms=0 data=%llu", (unsigned long long)stats->literal);
	fill_statistics(run);
	if (level)
		stats_print(stats, options->human_readable, level > 1, true, options_kind_of_end(options));
	if (!log_end_is_told(options, code))
		log_run_end(!run->local.shows_receiver, stats->sent, stats->received, stats->total_size, code);
}

static int exit_code(const struct run *run)
{
	int io_error = run->local.session.io_error | (run->peer ? pull_io_error(run->local.pull) : 0);

	if (log_saw_xfer_error() || io_error & IOERR_GENERAL)
		return EXIT_PARTIAL;
	if (io_error & IOERR_VANISHED)
		return EXIT_VANISHED;
	return io_error & IOERR_DEL_LIMIT ? EXIT_DEL_LIMIT : EXIT_OK;
}

static int write_snapshot(struct run *run, const char *destination)
{
	struct local *local = &run->local;

	if (destination)
		return local_snapshot_write(local, destination);
	if (!run->image)
		return EXIT_FILESELECT;
	run->image->io_error |= local->session.io_error | pull_io_error(local->pull);
	return snapshot_make_of_list(local->options, local->options->operands.items[0], run->image, &local->began);
}

static void clean_up(struct run *run)
{
	struct local *local = &run->local;

	report_free(local->report);
	local->report = NULL;
	local_links_free(local);
	local_owner_maps_free(local->owner_maps);
	local_backups_free(local);
	local_places_free(local);
	if (local->pull) {
		flist_receiver_free(run->receiver);
		pull_free(local->pull);
	}
	vec_free(&local->order);
	vec_free(&local->open_stack);
	vec_free(&local->done_stack);
	flist_free(local->list);
	filter_free(local->sender_rules);
	filter_free(local->receiver_rules);
	filter_free(local->sends_xattrs.rules);
	filter_free(local->keeps_xattrs.rules);
	pthread_mutex_destroy(&local->xattr_lock);
	if (local->top.fd >= 0)
		fs_root_close(&local->top);
	local_alternates_free(local->alternates);
	local_seen_free(local->seen);
	pthread_mutex_destroy(&local->hidden_lock);
	free(local->top_path);
	free(local->single_name);
	free((void *)local->rules.groups);
	if (run->stdin_copy >= 0)
		close(run->stdin_copy);
	fflush(stdout);
}

static int run_local(struct options *options, const struct local_snapshot *from, const struct local_peer *peer,
		     const char *destination, struct run_stats *stats)
{
	struct run *run = xcalloc(1, sizeof *run);
	struct local *local = &run->local;
	struct log_sink old = { NULL, NULL };
	int code;

	run->options = options;
	run->from = from;
	run->peer = peer;
	run->stdin_copy = -1;
	clock_gettime(CLOCK_MONOTONIC, &run->started);
	if (!peer || !peer->service) {
		old = log_set_sink((struct log_sink){ emit, run });
		exit_push_hook(log_broken_end, run);
	}
	log_set_role(peer && !peer->is_ourselves ? "Receiver" : "sender");
	allow_descriptors();
	fs_temp_install();
	handle_signals(run);
	become_copier(run);
	set_up(run);
	local->report = report_new(local);
	if (peer)
		receive_list(run);
	else
		make_list(run);
	if (destination) {
		copy_tree(run, destination);
	} else if (local->snapshot_file) {
		if (flist_dir(local->list, 0)->count)
			run->image = local_snapshot_of_list(local);
		end_pull(run);
	} else {
		bool has_any = flist_dir(local->list, 0)->count;

		if (has_any && !from)
			say_method(local);
		/* After an empty list a sender has left. */
		if (has_any || !peer || local->service)
			local_list_run(local);
		end_pull(run);
	}
	if (peer)
		batch_finish(peer->batch);
	report_drain(local->report);
	if (stats) {
		fill_statistics(run);
		*stats = local->stats;
	}
	code = exit_code(run);
	exit_remove_hook(log_broken_end, run);
	say_end(run, code);
	stop_signal_thread(run);
	if (local->snapshot_file) {
		int snapshot_code = write_snapshot(run, destination);

		code = code ? code : snapshot_code;
	}
	clean_up(run);
	if (old.emit)
		log_set_sink(old);
	free(run);
	return code;
}

int local_main(struct options *options)
{
	size_t operands = options->operands.count;
	bool lists = options->list_only || operands == 1;

	if (options->attr_snapshot && options->only_send_attrs)
		die(EXIT_SYNTAX, "rsync: --only-send-attrs with a destination writes an attr tree: --attr-snapshot is for runs "
		    "without a destination then");
	return run_local(options, NULL, NULL, lists ? NULL : options->operands.items[operands - 1], NULL);
}

int local_count_main(struct options *options, struct run_stats *stats)
{
	return run_local(options, NULL, NULL, options->operands.items[options->operands.count - 1], stats);
}

int local_snapshot_main(struct options *options, const struct local_snapshot *from, const char *destination)
{
	return run_local(options, from, NULL, destination, NULL);
}

int local_pull_main(struct options *options, const struct local_peer *peer, const char *destination)
{
	return run_local(options, NULL, peer, destination, peer->service ? peer->service->stats : NULL);
}
