/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What --debug tells of the steps of a run: genr, recv, and in a run without a peer, whose sending half is here as well,
 * send. Those of del are in receiver/delete.c.
 */
#include <string.h>
#include <unistd.h>

#include "dest/contents.h"
#include "dest/debug.h"
#include "dest/dest.h"
#include "dest/events.h"
#include "dest/job.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "flist/paths.h"
#include "flist/receive.h"

static int level_of(const struct receiver *receiver, enum debug_word word)
{
	return receiver->options->levels.debug[word];
}

static bool sends_too(const struct receiver *receiver)
{
	return !receiver->contents->is_remote && level_of(receiver, DEBUG_SEND);
}

bool dest_debug_wants_items(const struct receiver *receiver)
{
	return level_of(receiver, DEBUG_GENR) || level_of(receiver, DEBUG_RECV) || level_of(receiver, DEBUG_SEND)
	       || level_of(receiver, DEBUG_DEL) > 1 || level_of(receiver, DEBUG_OWN);
}

/* --- beginning and end --- */

void dest_say_method(const struct receiver *receiver)
{
	if (receiver->options->levels.debug[DEBUG_FLIST])
		log_info(receiver->contents->is_remote && receiver->options->whole_file <= 0
				 ? "delta-transmission enabled"
				 : "delta-transmission disabled for local transfer or --whole-file");
}

/* The entries of the first list, or of the only one. */
static uint64_t first_entries(const struct receiver *receiver)
{
	return receiver->session.inc_recurse ? flist_dir(receiver->list, 0)->count : receiver->loaded_entries;
}

/* A directory that is alone is counted with its contents. */
void dest_debug_destination(const struct receiver *receiver, uint64_t entries, const char *destination)
{
	uint64_t first = first_entries(receiver);

	if (sends_too(receiver))
		log_info("send_files starting");
	if (!level_of(receiver, DEBUG_RECV))
		return;
	if (!receiver->shows_receiver)
		log_info("server_recv(2) starting pid=%d", (int)getpid());
	log_info("get_local_name count=%llu %s", (unsigned long long)(first > 1 ? first : entries), destination);
}

void dest_debug_start(const struct receiver *receiver)
{
	if (level_of(receiver, DEBUG_GENR))
		log_info("generator starting pid=%d", (int)getpid());
	if (level_of(receiver, DEBUG_RECV))
		log_info("recv_files(%llu) starting", (unsigned long long)first_entries(receiver));
}

/* Each half counts for itself; protocol 29 has brought one more. */
void dest_debug_end(const struct receiver *receiver)
{
	for (int phase = 1; phase <= 2; phase++) {
		if (level_of(receiver, DEBUG_GENR))
			log_info("generate_files phase=%d", phase);
		if (sends_too(receiver))
			log_info("send_files phase=%d", phase);
		if (level_of(receiver, DEBUG_RECV) && (phase == 1 || receiver->session.protocol >= 29))
			log_info("recv_files phase=%d", phase);
	}
	if (sends_too(receiver))
		log_info("send files finished");
	if (level_of(receiver, DEBUG_RECV))
		log_info("recv_files finished");
	if (level_of(receiver, DEBUG_GENR) && receiver->session.protocol >= 29)
		log_info("generate_files phase=3");
	if (level_of(receiver, DEBUG_GENR))
		log_info("generate_files finished");
}

/* As the receiving half calls it. */
static void add_path(const struct receiver *receiver, int32_t node, const struct entry *entry, struct strbuf *path)
{
	if (receiver->single_name && !node)
		strbuf_add_string(path, receiver->single_name);
	else
		flist_entry_path(receiver->list, node, entry, path);
}

/* --- one entry --- */

void dest_debug_entry(struct task *task, uint32_t index)
{
	const struct entry *entry = &task->entries->items[index];
	struct receiver *receiver = task->receiver;
	struct strbuf path = STRBUF_INIT;

	/* What would take long is looked at again by a worker. */
	if (task->told > index)
		return;
	task->told = index + 1;
	/* In one list a directory is met where its contents are. */
	if (!level_of(receiver, DEBUG_GENR) || entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN)
	    || (entry_is_dir(entry) && !receiver->session.inc_recurse && !entry_is_dot(task->entries, entry)))
		return;
	strbuf_add_string(&path, task->dir->path);
	strbuf_add_path(&path, task_name(task, entry));
	task_text(task, L_INFO, "recv_generator(%s,%d)", strbuf_text(&path), flist_ndx_of(receiver->list, task->node, entry));
	strbuf_free(&path);
}

void dest_debug_directory(struct task *task)
{
	struct receiver *receiver = task->receiver;
	const char *path = task->dir->path;
	int32_t dot = task->node ? -1 : entries_find(task->entries, ".", true);
	/* Lists of old protocols are gone through in parts, to none of which the top belongs. */
	bool is_apart = receiver->session.protocol < 29;
	const struct entry *entry = dot >= 0 && is_apart ? &task->entries->items[dot] : NULL;

	if (!level_of(receiver, DEBUG_GENR) || (!task->node && (dot < 0 || !(receiver->session.inc_recurse || is_apart))))
		return;
	task_text(task, L_INFO, "recv_generator(%s,%d)", *path ? path : ".", flist_ndx_of(receiver->list, task->node, entry));
}

void dest_debug_node(struct file_job *job)
{
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);
	const char *path = job->dir->path;

	if (!level_of(job->receiver, DEBUG_GENR) || entry_is_regular(job->entry) || entry_is_symlink(job->entry))
		return;
	task_text(job->task, L_INFO, "mknod(%s%s%s, 0%o, [%u,%u])", path, *path ? "/" : "", job->name,
		  (unsigned)job->entry->mode, side ? side->rdev_major : 0, side ? side->rdev_minor : 0);
}

void dest_debug_link(struct receiver *receiver, const struct task *task, uint32_t index, const char *leader)
{
	const struct entry *entry = &task->entries->items[index];
	struct strbuf path = STRBUF_INIT;

	if (!level_of(receiver, DEBUG_HLINK))
		return;
	add_path(receiver, task->node, entry, &path);
	log_info("hlink for %d (%s): leader is %s", flist_ndx_of(receiver->list, task->node, entry), strbuf_text(&path),
		 leader);
	strbuf_free(&path);
}

/* --- deltas --- */

static void add_job_path(const struct file_job *job, struct strbuf *path)
{
	strbuf_add_string(path, job->dir->path);
	strbuf_add_path(path, job->name);
}

void dest_debug_sums(const struct file_job *job, int32_t ndx, const struct sum_head *head, uint64_t size)
{
	if (level_of(job->receiver, DEBUG_DELTASUM) < 2)
		return;
	task_text(job->task, L_INFO, "generating and sending sums for %d", ndx);
	task_text(job->task, L_INFO, "count=%d rem=%d blength=%d s2length=%d flength=%llu", head->count, head->remainder,
		  head->block_length, head->strong_length, (unsigned long long)size);
}

void dest_debug_basis(const struct file_job *job, int basis_fd)
{
	struct strbuf path = STRBUF_INIT;
	struct fs_stat st;

	if (level_of(job->receiver, DEBUG_DELTASUM) < 2 || basis_fd < 0 || fs_stat_at_fd(basis_fd, &st) < 0)
		return;
	add_job_path(job, &path);
	task_text(job->task, L_INFO, "recv mapped %s of size %llu", strbuf_text(&path), (unsigned long long)st.size);
	strbuf_free(&path);
}

void dest_debug_patched(const struct file_job *job)
{
	if (level_of(job->receiver, DEBUG_DELTASUM) > 1)
		task_text(job->task, L_INFO, "got file_sum");
}

/* --- one item --- */

static int32_t item_ndx(const struct receiver *receiver, int32_t node, const struct entry *entry)
{
	if (!entry_is_dir(entry) || !receiver->session.inc_recurse)
		return flist_ndx_of(receiver->list, node, entry);
	return flist_ndx_of(receiver->list, entry->dir ? (int32_t)entry->dir : 0, NULL);
}

void dest_debug_item(const struct receiver *receiver, int32_t node, const struct entry *entry, const struct event *event)
{
	/* An old sender hears of nothing else. */
	bool is_asked = event->flags & ITEM_TRANSFER || receiver->session.protocol >= 29;

	struct strbuf path = STRBUF_INIT;

	if (sends_too(receiver)) {
		flist_shown_name(receiver->list, node, entry, &path);
		log_info("send_files(%d, %s)", item_ndx(receiver, node, entry), strbuf_text(&path));
	}
	if (receiver->contents->is_remote && is_asked && level_of(receiver, DEBUG_RECV)) {
		add_path(receiver, node, entry, &path);
		log_info("recv_files(%s)", strbuf_text(&path));
	}
	strbuf_free(&path);
}

void dest_debug_item_done(const struct receiver *receiver, int32_t node, const struct entry *entry, const struct event *event)
{
	bool copied = event->flags & ITEM_TRANSFER && !receiver->dry_run;
	struct strbuf path = STRBUF_INIT;

	if (sends_too(receiver) && copied) {
		flist_shown_name(receiver->list, node, entry, &path);
		log_info("sender finished %s", strbuf_text(&path));
	}
	strbuf_reset(&path);
	add_path(receiver, node, entry, &path);
	if (!receiver->contents->is_remote && level_of(receiver, DEBUG_RECV))
		log_info("recv_files(%s)", strbuf_text(&path));
	if (event->text) {
		const char *name = strrchr(strbuf_text(&path), '/');
		int parent = name ? (int)(name + 1 - strbuf_text(&path)) : 0;

		log_info("renaming %.*s%s to %s", parent, strbuf_text(&path), event->text, strbuf_text(&path));
	}
	strbuf_free(&path);
}

/* --- attributes --- */

void dest_debug_owner(struct task *task, const char *name, uint32_t old_uid, uint32_t uid, uint32_t old_gid, uint32_t gid)
{
	struct strbuf path = STRBUF_INIT;

	if (!level_of(task->receiver, DEBUG_OWN))
		return;
	strbuf_add_string(&path, task->dir->path);
	if (*name)
		strbuf_add_path(&path, name);
	if (uid != (uid_t)-1 && uid != old_uid)
		task_text(task, L_INFO, "set uid of %s from %u to %u", strbuf_text(&path), old_uid, uid);
	if (gid != (gid_t)-1 && gid != old_gid)
		task_text(task, L_INFO, "set gid of %s from %u to %u", strbuf_text(&path), old_gid, gid);
	strbuf_free(&path);
}

void dest_debug_umask(struct task *task)
{
	struct dest_dir *dir = task->dir;

	if (!level_of(task->receiver, DEBUG_ACL) || task->receiver->options->perms || dir->fd < 0
	    || !dest_dir_has_default_acl(dir))
		return;
	task_text(task, L_INFO, "got ACL-based default perms %o for directory %s", 0777 & ~dest_dir_umask(task->receiver, dir),
		  *dir->path ? dir->path : ".");
}

void dest_debug_touch(const struct receiver *receiver, const struct dest_dir *dir)
{
	const struct flist_dir *listed = flist_dir(receiver->list, dir->node);
	int32_t number = receiver->session.inc_recurse ? listed->number : listed->own_ndx;

	/* Of one list those only whose times are set. */
	if (level_of(receiver, DEBUG_TIME) > 1
	    && (receiver->session.inc_recurse || decide_keeps_time(receiver->options, &dir->entry)))
		log_info("touch_up_dirs: %s (%d)", *dir->path ? dir->path : ".", dir->node ? number : 0);
}
