/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The run of a receiving side: from the operands to the exit code. First what it reads before it has a list: the names of its
 * sources, from the operands or --files-from, and its filter rules. What surrounds the run is in receiver/run.h.
 */
#include "receiver.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attrs/image.h"
#include "dest/alternate.h"
#include "dest/apply.h"
#include "dest/backup.h"
#include "dest/choose.h"
#include "dest/contents.h"
#include "dest/partial.h"
#include "dest/paths.h"
#include "dest/seen.h"
#include "filter/exchange.h"
#include "flist/receive.h"
#include "flist/scan.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/temp.h"
#include "lib/charset.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options/owners.h"
#include "receiver/debug.h"
#include "receiver/link.h"
#include "receiver/output.h"
#include "receiver/pool.h"
#include "receiver/report.h"
#include "receiver/run.h"
#include "receiver/snapshot.h"
#include "receiver/walk.h"
#include "wire/setup.h"

/* --- names --- */

#define FROM_FILE_LIMIT (1u << 30)

/* Lines end in LF, CR or NUL; with -0 only in NUL (doc/protocol/06-command-line.md section 13). */
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
		flist_add_argument(run->receiver.dest.list, name, true);
}

/* A name travels with its NUL (doc/protocol/01-session.md section 9.7), and may then be in the list that comes back. What is a
 * comment here is a name to a peer, unless that is ourselves. */
static void send_name(struct run *run, const char *name)
{
	struct charset *charset = run->options->secluded_args ? run->peer->charset : NULL;
	struct strbuf sent = STRBUF_INIT;

	if (run->peer->is_ourselves && (*name == '#' || *name == ';'))
		return;
	if (!charset || !charset_to_wire(charset, name, strlen(name), PATH_MAX - 1, &sent))
		strbuf_add_string(&sent, name);
	wire_write(run->receiver.session.wire, strbuf_text(&sent), sent.length + 1);
	args_append(&run->names, name);
	strbuf_free(&sent);
}

/* Read the list of --files-from, at most once; ends the program if it cannot be. */
static void run_load_names(struct run *run)
{
	const struct options *options = run->options;
	bool is_stdin = !strcmp(options->files_from, "-");
	int failed, error, fd;

	if (run->has_names_text)
		return;
	run->has_names_text = true;
	fd = is_stdin ? STDIN_FILENO : fs_operator_open(options->files_from, O_RDONLY | options_link_flag(options), 0);
	if (fd < 0) {
		log_set_role("client");
		die(EXIT_SYNTAX, "rsync: failed to open files-from file %s: %s", options->files_from, strerror(errno));
	}
	failed = fs_read_all(fd, FROM_FILE_LIMIT, &run->names_text);
	error = errno;
	if (!is_stdin)
		close(fd);
	if (!failed)
		return;
	log_set_role("client");
	die_errno(EXIT_FILEIO, error, "failed to open files-from file %s", options->files_from);
}

/* A list of names that lies here and is wanted there. Below protocol 31 it travels between frames. */
static void run_send_files_from(struct run *run)
{
	const struct options *options = run->options;
	struct wire *wire = run->receiver.session.wire;
	bool framed = wire_mux_out(wire), window = framed && !run->receiver.session.caps.framed_names;

	if (!options->files_from || options->files_from_remote)
		return;
	run_load_names(run);
	if (window)
		wire_set_mux_out(wire, false);
	for_each_name(run, &run->names_text, send_name);
	wire_write_byte(wire, 0);
	if (window)
		wire_set_mux_out(wire, true);
	strbuf_free(&run->names_text);
}

/* The sources of a list that is made here. */
static void run_add_arguments(struct run *run)
{
	struct flist *list = run->receiver.dest.list;
	const struct args *operands = &run->options->operands;
	const char *base = operands->count ? operands->items[0] : "";
	struct fs_root root;

	if (run->from) {
		flist_add_argument(list, run->from->path, false);
		return;
	}
	if (!run->options->files_from) {
		for (size_t i = 0; i + (operands->count > 1) < operands->count; i++)
			flist_add_argument(list, operands->items[i], false);
		return;
	}
	if (fs_root_open(&root, base) < 0) {
		int error = errno;
		char *cwd = getcwd(NULL, 0);

		log_errno(L_ERROR, error, "change_dir \"%s%s%s\" failed", *base == '/' || !cwd ? "" : cwd,
			  *base == '/' ? "" : "/", base);
		free(cwd);
		exit_with(EXIT_FILESELECT);
	}
	fs_root_close(&root);
	flist_set_files_from(list, base);
	run_load_names(run);
	for_each_name(run, &run->names_text, add_name);
	strbuf_free(&run->names_text);
}

/* --- rules --- */

#define RULE_FILE_LIMIT (64u << 20)

static int open_sender_rules(void *run_void, enum filter_place place, const char *path)
{
	struct run *run = run_void;
	struct strbuf text = STRBUF_INIT;

	if (place != FILTER_AT_OPERATOR)
		return flist_open_rule_file(&run->receiver.dest.list, place, path);
	if (strcmp(path, "-") != 0)
		return fs_operator_open(path, O_RDONLY | O_NONBLOCK | options_link_flag(run->options), 0);
	/* Rules are read once for each side, standard input only once. */
	if (run->stdin_copy < 0) {
		run->stdin_copy = memfd_create("rules", MFD_CLOEXEC);
		if (run->stdin_copy < 0 || fs_read_all(STDIN_FILENO, RULE_FILE_LIMIT, &text) < 0
		    || fs_write_all(run->stdin_copy, strbuf_text(&text), text.length) < 0)
			return -1;
		strbuf_free(&text);
	}
	return lseek(run->stdin_copy, 0, SEEK_SET) < 0 ? -1 : fcntl(run->stdin_copy, F_DUPFD_CLOEXEC, 0);
}

static int open_receiver_rules(void *run_void, enum filter_place place, const char *path)
{
	struct run *run = run_void;

	const struct dest_module *module = run->receiver.dest.module;

	if (module && place != FILTER_AT_OPERATOR
	    && (place == FILTER_AT_ROOT ? dest_is_hidden_in(&run->receiver.dest, "/", path + strspn(path, "/"), false)
					: dest_is_hidden(&run->receiver.dest, path, false))) {
		errno = ENOENT;
		return FILTER_HIDDEN;
	}
	if (module && place == FILTER_AT_ROOT)
		return fs_open(module->root, path + strspn(path, "/"), O_RDONLY | FS_FOLLOW, 0);
	if (place != FILTER_AT_BASE && !module)
		return open_sender_rules(run, FILTER_AT_OPERATOR, path);
	if (run->receiver.dest.top.fd < 0 || place != FILTER_AT_BASE) {
		errno = ENOENT;
		return -1;
	}
	return fs_open(&run->receiver.dest.top, path, O_RDONLY | FS_FOLLOW, 0);
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
		.side = side,
		.delete_excluded = options->delete_excluded,
		.from0 = options->from0,
		.cvs_exclude = options->cvs_exclude,
		.open_file = sends ? open_sender_rules : open_receiver_rules,
		.context = run,
		.budget = run->receiver.service ? session_budget(&run->receiver.session) : NULL,
	};
	struct filter_list *rules;
	bool is_sent = run->peer && !sends;

	if (options->levels.debug[DEBUG_FILTER] && !(run->peer && sends))
		setup.explain = sends ? explain_sender : explain_receiver;
	if (run->receiver.service && !sends) {
		/* Its own rules and those that the client sends, if it does (doc/protocol/04-filters.md section 4.6.1). */
		bool deletes = options->delete_when != DELETE_NEVER, modern = run->receiver.session.caps.modern_filters;

		rules = run->receiver.service->rules;
		filter_set_up(rules, &setup);
		if (options->prune_empty_dirs || (deletes && (!options->delete_excluded || modern)))
			filter_receive(rules, &run->receiver.session);
		return rules;
	}
	rules = filter_new(&setup);
	if (run->receiver.service)
		return rules;
	/* filter_send adds those of -C itself, in the way that the peer's protocol knows. */
	options_add_filters(options, rules, !is_sent);
	options_protect_leftovers(options, rules, true);
	return rules;
}

/* What a peer should have hidden is looked for by the reading thread, which needs a list of its own. */
static void run_read_rules(struct run *run)
{
	if (run->receiver.sender_rules)
		return;
	run->receiver.sender_rules = make_rules(run, FILTER_SENDER);
	run->receiver.receiver_rules = make_rules(run, FILTER_RECEIVER);
}

/* Rules of per-directory files are not among them: names of attributes are looked up in no order, and by any thread. */
static void make_xattr_policies(struct run *run)
{
	const struct options *options = run->options;
	struct receiver *receiver = &run->receiver;
	struct xattr_policy policy = { .verbatim = options->xattrs > 1, .lock = &receiver->dest.xattr_lock };

	receiver->dest.sends_xattrs = receiver->dest.keeps_xattrs = policy;
	receiver->dest.sends_xattrs.level = options_super_level(options);
	receiver->dest.keeps_xattrs.level = dest_receiving_level(options, !run->peer || run->peer->is_ourselves);
	receiver->dest.sends_xattrs.rules = filter_xattr_list(receiver->sender_rules);
	receiver->dest.keeps_xattrs.rules = filter_xattr_list(receiver->receiver_rules);
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

/* --- the parts of a run --- */

static void read_groups(struct receiver *receiver)
{
	int count = getgroups(0, NULL);
	gid_t *groups;

	if (receiver->dest.rules.am_root || count < 0)
		return;
	groups = xcalloc((size_t)count + 1, sizeof *groups);
	count = count ? getgroups(count, groups) : 0;
	groups[count > 0 ? count : 0] = getegid();
	receiver->dest.rules.groups = groups;
	receiver->dest.rules.group_count = (size_t)(count > 0 ? count : 0) + 1;
}

/* --copy-as: the files of the command line are read as the user who typed it, all others as somebody else. */
static void become_copier(struct run *run)
{
	const struct options *options = run->options;

	if (!options->copy_as || (run->peer && run->peer->service))
		return;
	run_read_rules(run);
	if (options->files_from && !options->files_from_remote)
		run_load_names(run);
	copy_as_assume(options);
}

/* Whether anything but a file's own looks matters: what lies beside it, its content, who hears of it. */
static bool passes_settled(const struct receiver *receiver)
{
	const struct options *options = receiver->dest.options;
	bool looks_closer = options->checksum || options->ignore_times || options->atimes || options->acls || options->xattrs
			    || receiver->dest.attrs_only || receiver->dest.is_fake;
	bool looks_beside = options->alt_dest_dirs.count || options_partial_dir(options) || receiver->snapshot_file;

	return !looks_closer && !looks_beside && !receiver->dest.wants_items && !receiver->dest.notifies_items
	       && !options->remove_source_files && !options->levels.info[INFO_SKIP];
}

static void set_up(struct run *run)
{
	struct receiver *receiver = &run->receiver;
	const struct options *options = run->options;
	enum super_level level = dest_receiving_level(options, !run->peer || run->peer->is_ourselves);

	receiver->dest.options = options;
	pthread_mutex_init(&receiver->dest.xattr_lock, NULL);
	receiver->dest.session = &receiver->session;
	session_set_protocol(&receiver->session, PROTOCOL_MAX);
	receiver->session.is_sender = true;
	receiver->session.inc_recurse = options->recursive && options->allow_inc_recurse && !options->use_qsort
					&& options->delete_when != DELETE_BEFORE && options->delete_when != DELETE_AFTER
					&& !options->delay_updates && !options->prune_empty_dirs;
	if (run->peer) {
		receiver->session = *run->peer->session;
		receiver->service = run->peer->service;
		receiver->dest.module = receiver->service ? receiver->service->module : NULL;
	}
	/* doc/protocol/03-transfer.md section 10.1 */
	if (options->delete_when == DELETE_DEFAULT && !receiver->session.caps.deletes_during)
		run->options->delete_when = DELETE_BEFORE;
	receiver->dest.notifies_items = receiver->service || (run->peer && run->peer->batch);
	receiver->dest.shows_receiver = run->peer && !run->peer->is_ourselves;
	receiver->dest.uid = geteuid();
	receiver->dest.attrs_only = options->only_send_attrs;
	receiver->dest.is_fake = level == LEVEL_FAKE;
	receiver->dest.snapshot_root = run->from ? run->from->root : NULL;
	receiver->dest.has_sources = !run->from && (!run->peer || run->peer->is_ourselves) && !options->files_from;
	receiver->dest.dry_run = options->dry_run || options->only_write_batch;
	receiver->snapshot_file = run->from ? NULL : options->attr_snapshot;
	clock_gettime(CLOCK_REALTIME, &receiver->began);
	receiver->dest.rules = (struct decide_rules){
		.options = options,
		.am_root = level != LEVEL_NORMAL,
		.umask = umask(0),
		.check_content = receiver->dest.attrs_only,
	};
	pthread_mutex_init(&receiver->dest.hidden_lock, NULL);
	pthread_rwlock_init(&receiver->dest.gate, NULL);
	receiver->dest.top.fd = -1;
	receiver->preloaded = -1;
	read_groups(receiver);
	receiver->dest.logs_steps = options->levels.debug[DEBUG_GENR] || options->levels.debug[DEBUG_RECV]
				    || options->levels.debug[DEBUG_SEND] || options->levels.debug[DEBUG_DEL] > 1
				    || options->levels.debug[DEBUG_OWN];
	receiver->report = report_new(receiver);
	receiver->dest.passes_settled = passes_settled(receiver) && !(run->peer && run->peer->is_batch);
	receiver->deletes = options->delete_when != DELETE_NEVER && (options->recursive || options->dirs);
	receiver->loads_all =
		(receiver->deletes && options->delete_when == DELETE_BEFORE) || options->prune_empty_dirs
		|| (options->hard_links && (receiver->dest.wants_items || !receiver->dest.attrs_only || options->delay_updates))
		|| (!receiver->session.inc_recurse
		    && (options->levels.info[INFO_FLIST] > 1 || options->levels.debug[DEBUG_DUP]
			|| options->levels.debug[DEBUG_FLIST] > 1 || receiver->dest.logs_steps));
	/* A peer sends further directories only as the ones before are done. */
	receiver->loads_all &= !(run->peer && receiver->session.inc_recurse);
	receiver->keeps_entries = (receiver->deletes && options->delete_when == DELETE_AFTER)
				  || ((receiver->loads_all || (run->peer && run->peer->is_batch)) && options->hard_links);
	receiver->late_dirs = receiver->keeps_entries || (receiver->deletes && options->delete_when == DELETE_DELAY)
			      || options->delay_updates;
}

static void make_list(struct run *run)
{
	struct receiver *receiver = &run->receiver;

	receiver->dest.contents = run->new_contents(receiver, NULL);
	/* The one who may read the file may see all of it. */
	if (run->from)
		run->source = (struct attr_source){
			.kind = ATTRS_SNAPSHOT, .attr_root.fd = -1, .snapshot = run->from->snapshot,
			.shown_prefix = run->from->shown, .who = { .known = true, .superuser = true },
		};
	receiver->dest.list = flist_new(run->options, &receiver->session, run->from ? &run->source : NULL,
					receiver->sender_rules, NULL);
	flist_scan_options(receiver->dest.list)->munge_symlinks = run->options->munge_links;
	run_say_header(run);
	receiver->owner_maps = dest_owner_maps_new(run->options, &receiver->dest.rules);
	run_add_arguments(run);
	flist_finish_arguments(receiver->dest.list);
	run_close_header(run);
}

/* The peer's list: our rules go out, the first part of it comes in. */
static void receive_list(struct run *run)
{
	struct receiver *receiver = &run->receiver;
	const struct receiver_peer *peer = run->peer;
	struct session *session = &receiver->session;

	receiver->dest.list = flist_new_received(run->options, session);
	receiver->dest.contents = run->new_contents(receiver, peer);
	receiver->dest.asks_in_turn = !receiver->dest.attrs_only && receiver->dest.notifies_items;
	batch_write_script(peer->batch, receiver->receiver_rules);
	if (!receiver->service) {
		filter_send(receiver->receiver_rules, session, true);
		run_send_files_from(run);
	}
	wire_flush(session->wire);
	batch_start(peer->batch, session);
	const struct flist_receive_setup setup = {
		.ids = peer->ids,
		.charset = peer->charset,
		.rules = receiver->service ? NULL : receiver->sender_rules,
		.asked = receiver->service || (run->options->files_from && run->options->files_from_remote) ? NULL
			 : run->options->files_from                                                         ? &run->names
													    : peer->asked,
		.xattr_policy = &receiver->dest.keeps_xattrs,
		.trust_sender = peer->trusted,
		.munge_symlinks = peer->munge_symlinks,
		.repeats_values = peer->is_batch,
		.clean_symlinks = peer->clean_symlinks,
	};

	run->list_receiver = flist_receiver_new(receiver->dest.list, session, run->options, &setup);
	run_say_header(run);
	flist_receive_first(run->list_receiver);
	run_close_header(run);
	/* After an empty list the session ends before there are two halves of a receiver. */
	if (!receiver->service && !flist_dir(receiver->dest.list, 0)->entries->count)
		return;
	if (receiver->dest.shows_receiver)
		log_set_role("generator");
	receiver->dest.contents->calls->start(receiver->dest.contents, run->list_receiver);
}

static void copy_tree(struct run *run, const char *destination)
{
	struct receiver *receiver = &run->receiver;
	const struct entries *first = flist_dir(receiver->dest.list, 0)->entries;
	uint64_t entries;

	if (receiver->loads_all) {
		receiver_load_everything(receiver);
		run_say_list_count(run);
		entries = receiver->loaded_entries;
	} else {
		receiver_debug_list(receiver, 0);
		entries = first->count;
		/* What decides between "into the directory" and "under this name": a list of one directory counts with its
		 * contents. */
		if (entries == 1 && first->items[0].dir) {
			receiver->preloaded = flist_load_next(receiver->dest.list);
			if (receiver->preloaded >= 0)
				entries += flist_dir(receiver->dest.list, receiver->preloaded)->entries->count;
		}
	}
	if (!entries && receiver->dest.shows_receiver && !receiver->service)
		return;
	receiver_debug_destination(receiver, entries, destination);
	dest_choose_destination(&receiver->dest, destination, entries);
	if (!entries) {
		if (receiver->service)
			receiver->dest.contents->calls->node_done(receiver->dest.contents, 0);
		return;
	}
	if (receiver->dest.single_name)
		receiver->deletes = false;
	dest_guard(&receiver->dest);
	dest_refuse_hidden_dirs(&receiver->dest);
	dest_backups_begin(&receiver->dest);
	receiver->dest.alternates = dest_alternates_open(&receiver->dest);
	dest_places_begin(&receiver->dest);
	receiver_snapshot_begin(receiver);
	filter_set_base(receiver->receiver_rules, receiver->dest.top_path);
	if (receiver->dest.options->prune_empty_dirs)
		receiver_prune(receiver);
	receiver_debug_start(receiver);
	receiver->pool = pool_new(&receiver->dest);
	receiver_run(receiver);
	receiver_debug_end(receiver);
}

static void list_tree(struct run *run)
{
	struct receiver *receiver = &run->receiver;
	bool has_any = flist_dir(receiver->dest.list, 0)->count;

	/* After an empty list a sender has left. */
	if (!has_any && run->peer && !receiver->service)
		return;
	dest_open_top(&receiver->dest, ".");
	receiver->dest.alternates = dest_alternates_open(&receiver->dest);
	if (has_any && !run->from)
		receiver_debug_method(receiver);
	receiver_list_run(receiver);
}

int run_exit_code(int io_error)
{
	if (log_saw_xfer_error() || io_error & IOERR_GENERAL)
		return EXIT_PARTIAL;
	if (io_error & IOERR_VANISHED)
		return EXIT_VANISHED;
	return io_error & IOERR_DEL_LIMIT ? EXIT_DEL_LIMIT : EXIT_OK;
}

static void clean_up(struct run *run)
{
	struct receiver *receiver = &run->receiver;

	report_free(receiver->report);
	receiver->report = NULL;
	receiver_links_free(receiver);
	dest_owner_maps_free(receiver->owner_maps);
	dest_backups_free(&receiver->dest);
	dest_places_free(&receiver->dest);
	if (run->list_receiver)
		flist_receiver_free(run->list_receiver);
	receiver->dest.contents->calls->free(receiver->dest.contents);
	vec_free(&receiver->order);
	vec_free(&receiver->open_stack);
	vec_free(&receiver->done_stack);
	flist_free(receiver->dest.list);
	filter_free(receiver->sender_rules);
	filter_free(receiver->receiver_rules);
	filter_free(receiver->dest.sends_xattrs.rules);
	filter_free(receiver->dest.keeps_xattrs.rules);
	pthread_mutex_destroy(&receiver->dest.xattr_lock);
	if (receiver->dest.top.fd >= 0)
		fs_root_close(&receiver->dest.top);
	for (int i = 0; receiver->dest.alternates && i < receiver->dest.alternates->count; i++)
		fs_root_close(&receiver->dest.alternates->roots[i]);
	free(receiver->dest.alternates);
	dest_seen_free(receiver->dest.seen);
	pthread_mutex_destroy(&receiver->dest.hidden_lock);
	pthread_rwlock_destroy(&receiver->dest.gate);
	free(receiver->dest.top_path);
	free(receiver->dest.single_name);
	free((void *)receiver->dest.rules.groups);
	if (run->stdin_copy >= 0)
		close(run->stdin_copy);
	fflush(stdout);
}

int run_receiver(struct options *options, const struct receiver_snapshot *from, const struct receiver_peer *peer,
		 contents_maker *new_contents, const char *destination, struct run_stats *stats)
{
	struct run *run = xcalloc(1, sizeof *run);
	struct receiver *receiver = &run->receiver;
	struct log_sink old = { NULL, NULL };
	struct image *image = NULL; /* of the peer's list, for its snapshot */
	struct contents *contents;
	int code;

	run->options = options;
	run->from = from;
	run->peer = peer;
	run->new_contents = new_contents;
	run->stdin_copy = -1;
	run->started = clock_nanoseconds();
	if (!peer || !peer->service) {
		old = log_set_sink((struct log_sink){ run_emit, run });
		exit_push_hook(run_log_broken_end, run);
	}
	log_set_role(peer && !peer->is_ourselves ? "Receiver" : "sender");
	allow_descriptors();
	fs_temp_install();
	run_handle_signals(run);
	become_copier(run);
	set_up(run);
	run_read_rules(run);
	make_xattr_policies(run);
	if (peer)
		receive_list(run);
	else
		make_list(run);
	if (destination)
		copy_tree(run, destination);
	else if (!receiver->snapshot_file)
		list_tree(run);
	else if (flist_dir(receiver->dest.list, 0)->count)
		image = receiver_snapshot_of_list(receiver);
	contents = receiver->dest.contents;
	if (contents->is_remote && (receiver->service || flist_dir(receiver->dest.list, 0)->count))
		contents->calls->finish(contents, &run->peer_stats);
	pool_free(receiver->pool);
	if (peer)
		batch_finish(peer->batch);
	report_drain(receiver->report);
	if (stats) {
		run_fill_statistics(run);
		*stats = receiver->stats;
	}
	code = run_exit_code(receiver->session.io_error | atomic_load(&contents->io_error));
	exit_remove_hook(run_log_broken_end, run);
	run_say_end(run, code);
	run_stop_signals(run);
	if (receiver->snapshot_file) {
		int snapshot_code = receiver_snapshot_write(receiver, destination, image);

		code = code ? code : snapshot_code;
	}
	clean_up(run);
	if (old.emit)
		log_set_sink(old);
	free(run);
	return code;
}
