/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The local engine: from the operands to the exit code. Its parts are listed in dest/private.h and receiver/run.h. */
#include "receiver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attrs/image.h"
#include "dest/alternate.h"
#include "dest/backup.h"
#include "dest/partial.h"
#include "fs/temp.h"
#include "lib/exit.h"
#include "options/owners.h"
#include "receiver/pool.h"
#include "receiver/run.h"
#include "receiver/task.h"
#include "snapshot/make.h"

/* Every task holds directories. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max && limit.rlim_cur < 65536) {
		limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* --- the list --- */

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

	if (count == 1 && first->items[0].dir) {
		local->preloaded = flist_load_next(local->list);
		if (local->preloaded >= 0)
			count += flist_dir(local->list, local->preloaded)->entries->count;
	}
	return count;
}

/* --- the parts of a run --- */

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

/* Whether anything but a file's own looks matters: what lies beside it, its content, who is told of it. */
static bool passes_settled(const struct local *local)
{
	const struct options *options = local->options;
	bool looks_closer = options->checksum || options->ignore_times || options->atimes || options->acls || options->xattrs
			    || local->attrs_only || local->is_fake;
	bool looks_beside = options->alt_dest_dirs.count || options_partial_dir(options) || local->snapshot_file;

	return !looks_closer && !looks_beside && !local->wants_items && !local->tells_items && !options->remove_source_files
	       && !options->levels.info[INFO_SKIP];
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
	/* doc/protocol/03-transfer.md section 10.1 */
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
	pthread_rwlock_init(&local->gate, NULL);
	local->top.fd = -1;
	local->preloaded = -1;
	read_groups(local);
	local->tells_steps = local_debug_wants_items(local);
	local->wants_items = local->tells_steps || report_wants_names(local);
	local->names_directories = report_names_directories(local);
	local->passes_settled = passes_settled(local) && !(run->peer && run->peer->is_batch);
	local->deletes = options->delete_when != DELETE_NEVER && (options->recursive || options->dirs);
	local->loads_all = (local->deletes && options->delete_when == DELETE_BEFORE) || options->prune_empty_dirs
			   || (options->hard_links && (local->wants_items || !local->attrs_only || options->delay_updates))
			   || (!local->session.inc_recurse
			       && (options->levels.info[INFO_FLIST] > 1 || options->levels.debug[DEBUG_DUP]
				   || options->levels.debug[DEBUG_FLIST] > 1 || local->tells_steps));
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

	local->contents = run->new_contents(local, NULL);
	run_read_rules(run);
	run_make_xattr_policies(run);
	local->list = flist_new(run->options, &local->session, snapshot_source(run), local->sender_rules, NULL);
	flist_scan_options(local->list)->munge_symlinks = run->options->munge_links;
	run_say_header(run);
	local->owner_maps = local_owner_maps_new(run->options, &local->rules);
	run_add_arguments(run);
	flist_finish_arguments(local->list);
	run_close_header(run);
}

/* The peer's list: our rules go out, the first part of it comes in. */
static void receive_list(struct run *run)
{
	struct local *local = &run->local;
	const struct local_peer *peer = run->peer;
	struct session *session = &local->session;

	/* What the peer should have hidden is looked for by the reading thread, which needs a list of its own. */
	run_read_rules(run);
	run_make_xattr_policies(run);
	local->list = flist_new_received(run->options, session);
	local->contents = run->new_contents(local, peer);
	local->asks_in_turn = !local->attrs_only && local->tells_items;
	batch_write_script(peer->batch, local->receiver_rules);
	if (!local->service) {
		filter_send(local->receiver_rules, session, true);
		run_send_files_from(run);
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

	run->list_receiver = flist_receiver_new(local->list, session, run->options, &setup);
	run_say_header(run);
	flist_receive_first(run->list_receiver);
	run_close_header(run);
	/* After an empty list the session ends before there are two halves of a receiver. */
	if (!local->service && !flist_dir(local->list, 0)->entries->count)
		return;
	if (local->shows_receiver)
		log_set_role("generator");
	local->contents->calls->start(local->contents, run->list_receiver);
}

static void end_contents(struct run *run)
{
	struct contents *contents = run->local.contents;

	if (run->local.service || flist_dir(run->local.list, 0)->count)
		contents->calls->finish(contents, &run->peer_stats);
}

static void copy_tree(struct run *run, const char *destination)
{
	struct local *local = &run->local;
	uint64_t entries;

	if (local->loads_all) {
		local_load_everything(local);
		run_say_list_count(run);
		entries = local->loaded_entries;
	} else {
		local_debug_list(local, 0);
		entries = count_first_entries(local);
	}

	if (!entries && local->shows_receiver && !local->service)
		return;
	local_debug_destination(local, entries, destination);
	local_choose_destination(local, destination, entries);
	if (!entries) {
		if (local->service)
			local->contents->calls->node_done(local->contents, 0);
		end_contents(run);
		return;
	}
	if (local->single_name)
		local->deletes = false;
	local_guard(local);
	local_refuse_hidden_dirs(local);
	local_backups_begin(local);
	local->alternates = local_alternates_open(local);
	local_places_begin(local);
	local_snapshot_begin(local);
	filter_set_base(local->receiver_rules, local->top_path);
	if (local->options->prune_empty_dirs)
		local_prune(local);
	local_debug_start(local);
	/* Requests have the order of the list. */
	bool in_order = local->contents->is_remote && !local->attrs_only;

	local->pool = pool_new(local_task_run, in_order ? 1 : pool_threads(local->options, local->attrs_only));
	local_run(local);
	local_debug_end(local);
	end_contents(run);
	pool_free(local->pool);
	local->pool = NULL;
}

static void list_tree(struct run *run)
{
	struct local *local = &run->local;
	bool has_any = flist_dir(local->list, 0)->count;

	/* After an empty list a sender has left. */
	if (has_any || !run->peer || local->service) {
		local_stay_here(local);
		local->alternates = local_alternates_open(local);
		if (has_any && !run->from)
			local_say_method(local);
		local_list_run(local);
	}
	end_contents(run);
}

static int exit_code(const struct run *run)
{
	int io_error = run->local.session.io_error | atomic_load(&run->local.contents->io_error);

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
	run->image->io_error |= local->session.io_error | atomic_load(&local->contents->io_error);
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
	if (run->list_receiver)
		flist_receiver_free(run->list_receiver);
	local->contents->calls->free(local->contents);
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
	pthread_rwlock_destroy(&local->gate);
	free(local->top_path);
	free(local->single_name);
	free((void *)local->rules.groups);
	if (run->stdin_copy >= 0)
		close(run->stdin_copy);
	fflush(stdout);
}

int run_local(struct options *options, const struct local_snapshot *from, const struct local_peer *peer,
	      contents_maker *new_contents, const char *destination, struct run_stats *stats)
{
	struct run *run = xcalloc(1, sizeof *run);
	struct local *local = &run->local;
	struct log_sink old = { NULL, NULL };
	int code;

	run->options = options;
	run->from = from;
	run->peer = peer;
	run->new_contents = new_contents;
	run->stdin_copy = -1;
	clock_gettime(CLOCK_MONOTONIC, &run->started);
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
		end_contents(run);
	} else {
		list_tree(run);
	}
	if (peer)
		batch_finish(peer->batch);
	report_drain(local->report);
	if (stats) {
		run_fill_statistics(run);
		*stats = local->stats;
	}
	code = exit_code(run);
	exit_remove_hook(run_log_broken_end, run);
	run_say_end(run, code);
	run_stop_signals(run);
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
