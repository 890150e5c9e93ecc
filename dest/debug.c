/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What --debug tells of the steps of a run: genr, recv, and in a run without a peer, whose sending half is here as well,
 * send. Those of del are in receiver/delete.c.
 */
#include <string.h>
#include <unistd.h>

#include "dest/events.h"
#include "dest/paths.h"
#include "dest/private.h"
#include "flist/receive.h"

static int level_of(const struct local *local, enum debug_word word)
{
	return local->options->levels.debug[word];
}

static bool sends_too(const struct local *local)
{
	return !local->contents->is_remote && level_of(local, DEBUG_SEND);
}

bool local_debug_wants_items(const struct local *local)
{
	return level_of(local, DEBUG_GENR) || level_of(local, DEBUG_RECV) || level_of(local, DEBUG_SEND)
	       || level_of(local, DEBUG_DEL) > 1 || level_of(local, DEBUG_OWN);
}

/* --- beginning and end --- */

void local_say_method(const struct local *local)
{
	if (local->options->levels.debug[DEBUG_FLIST])
		log_info(local->contents->is_remote && local->options->whole_file <= 0 ? "delta-transmission enabled"
			 : "delta-transmission disabled for local transfer or --whole-file");
}

/* The entries of the first list, or of the only one. */
static uint64_t first_entries(const struct local *local)
{
	return local->session.inc_recurse ? flist_dir(local->list, 0)->count : local->loaded_entries;
}

/* A directory that is alone is counted with its contents. */
void local_debug_destination(const struct local *local, uint64_t entries, const char *destination)
{
	uint64_t first = first_entries(local);

	if (sends_too(local))
		log_info("send_files starting");
	if (!level_of(local, DEBUG_RECV))
		return;
	if (!local->shows_receiver)
		log_info("server_recv(2) starting pid=%d", (int)getpid());
	log_info("get_local_name count=%llu %s", (unsigned long long)(first > 1 ? first : entries), destination);
}

void local_debug_start(const struct local *local)
{
	if (level_of(local, DEBUG_GENR))
		log_info("generator starting pid=%d", (int)getpid());
	if (level_of(local, DEBUG_RECV))
		log_info("recv_files(%llu) starting", (unsigned long long)first_entries(local));
}

/* Each half counts for itself; protocol 29 has brought one more. */
void local_debug_end(const struct local *local)
{
	for (int phase = 1; phase <= 2; phase++) {
		if (level_of(local, DEBUG_GENR))
			log_info("generate_files phase=%d", phase);
		if (sends_too(local))
			log_info("send_files phase=%d", phase);
		if (level_of(local, DEBUG_RECV) && (phase == 1 || local->session.protocol >= 29))
			log_info("recv_files phase=%d", phase);
	}
	if (sends_too(local))
		log_info("send files finished");
	if (level_of(local, DEBUG_RECV))
		log_info("recv_files finished");
	if (level_of(local, DEBUG_GENR) && local->session.protocol >= 29)
		log_info("generate_files phase=3");
	if (level_of(local, DEBUG_GENR))
		log_info("generate_files finished");
}

/* As the receiving half calls it. */
static void add_path(const struct local *local, int32_t node, const struct entry *entry, struct strbuf *path)
{
	if (local->single_name && !node)
		strbuf_add_string(path, local->single_name);
	else
		flist_entry_path(local->list, node, entry, path);
}

/* --- one entry --- */

void local_debug_entry(struct task *task, uint32_t index)
{
	const struct entry *entry = &task->entries->items[index];
	struct local *local = task->local;
	struct strbuf path = STRBUF_INIT;

	/* What would take long is looked at again by a worker. */
	if (task->told > index)
		return;
	task->told = index + 1;
	/* In one list a directory is met where its contents are. */
	if (!level_of(local, DEBUG_GENR) || entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN)
	    || (entry_is_dir(entry) && !local->session.inc_recurse && !entry_is_dot(task->entries, entry)))
		return;
	strbuf_add_string(&path, task->dir->path);
	strbuf_add_path(&path, task_name(task, entry));
	task_text(task, L_INFO, "recv_generator(%s,%d)", strbuf_text(&path), flist_ndx_of(local->list, task->node, entry));
	strbuf_free(&path);
}

void local_debug_directory(struct task *task)
{
	struct local *local = task->local;
	const char *path = task->dir->path;
	int32_t dot = task->node ? -1 : entries_find(task->entries, ".", true);
	/* Lists of old protocols are gone through in parts, to none of which the top belongs. */
	bool is_apart = local->session.protocol < 29;
	const struct entry *entry = dot >= 0 && is_apart ? &task->entries->items[dot] : NULL;

	if (!level_of(local, DEBUG_GENR) || (!task->node && (dot < 0 || !(local->session.inc_recurse || is_apart))))
		return;
	task_text(task, L_INFO, "recv_generator(%s,%d)", *path ? path : ".", flist_ndx_of(local->list, task->node, entry));
}

void local_debug_node(struct file_job *job)
{
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);
	const char *path = job->dir->path;

	if (!level_of(job->local, DEBUG_GENR) || entry_is_regular(job->entry) || entry_is_symlink(job->entry))
		return;
	task_text(job->task, L_INFO, "mknod(%s%s%s, 0%o, [%u,%u])", path, *path ? "/" : "", job->name,
		  (unsigned)job->entry->mode, side ? side->rdev_major : 0, side ? side->rdev_minor : 0);
}

void local_debug_link(struct local *local, const struct task *task, uint32_t index, const char *leader)
{
	const struct entry *entry = &task->entries->items[index];
	struct strbuf path = STRBUF_INIT;

	if (!level_of(local, DEBUG_HLINK))
		return;
	add_path(local, task->node, entry, &path);
	log_info("hlink for %d (%s): leader is %s", flist_ndx_of(local->list, task->node, entry), strbuf_text(&path), leader);
	strbuf_free(&path);
}

/* --- deltas --- */

static void add_job_path(const struct file_job *job, struct strbuf *path)
{
	strbuf_add_string(path, job->dir->path);
	strbuf_add_path(path, job->name);
}

void local_debug_sums(const struct file_job *job, int32_t ndx, const struct sum_head *head, uint64_t size)
{
	if (level_of(job->local, DEBUG_DELTASUM) < 2)
		return;
	task_text(job->task, L_INFO, "generating and sending sums for %d", ndx);
	task_text(job->task, L_INFO, "count=%d rem=%d blength=%d s2length=%d flength=%llu", head->count, head->remainder,
		  head->block_length, head->strong_length, (unsigned long long)size);
}

void local_debug_basis(const struct file_job *job, int basis_fd)
{
	struct strbuf path = STRBUF_INIT;
	struct fs_stat st;

	if (level_of(job->local, DEBUG_DELTASUM) < 2 || basis_fd < 0 || fs_stat_at_fd(basis_fd, &st) < 0)
		return;
	add_job_path(job, &path);
	task_text(job->task, L_INFO, "recv mapped %s of size %llu", strbuf_text(&path), (unsigned long long)st.size);
	strbuf_free(&path);
}

void local_debug_patched(const struct file_job *job)
{
	if (level_of(job->local, DEBUG_DELTASUM) > 1)
		task_text(job->task, L_INFO, "got file_sum");
}

/* --- one item --- */

static int32_t item_ndx(const struct local *local, int32_t node, const struct entry *entry)
{
	if (!entry_is_dir(entry) || !local->session.inc_recurse)
		return flist_ndx_of(local->list, node, entry);
	return flist_ndx_of(local->list, entry->dir ? (int32_t)entry->dir : 0, NULL);
}

void local_debug_item(const struct local *local, int32_t node, const struct entry *entry, const struct event *event)
{
	/* An old sender hears of nothing else. */
	bool is_asked = event->flags & ITEM_TRANSFER || local->session.protocol >= 29;

	struct strbuf path = STRBUF_INIT;

	if (sends_too(local)) {
		flist_shown_name(local->list, node, entry, &path);
		log_info("send_files(%d, %s)", item_ndx(local, node, entry), strbuf_text(&path));
	}
	if (local->contents->is_remote && is_asked && level_of(local, DEBUG_RECV)) {
		add_path(local, node, entry, &path);
		log_info("recv_files(%s)", strbuf_text(&path));
	}
	strbuf_free(&path);
}

void local_debug_item_done(const struct local *local, int32_t node, const struct entry *entry, const struct event *event)
{
	bool copied = event->flags & ITEM_TRANSFER && !local->dry_run;
	struct strbuf path = STRBUF_INIT;

	if (sends_too(local) && copied) {
		flist_shown_name(local->list, node, entry, &path);
		log_info("sender finished %s", strbuf_text(&path));
	}
	strbuf_reset(&path);
	add_path(local, node, entry, &path);
	if (!local->contents->is_remote && level_of(local, DEBUG_RECV))
		log_info("recv_files(%s)", strbuf_text(&path));
	if (event->text) {
		const char *name = strrchr(strbuf_text(&path), '/');
		int parent = name ? (int)(name + 1 - strbuf_text(&path)) : 0;

		log_info("renaming %.*s%s to %s", parent, strbuf_text(&path), event->text, strbuf_text(&path));
	}
	strbuf_free(&path);
}

/* --- attributes --- */

void local_debug_owner(struct task *task, const char *name, uint32_t old_uid, uint32_t uid, uint32_t old_gid, uint32_t gid)
{
	struct strbuf path = STRBUF_INIT;

	if (!level_of(task->local, DEBUG_OWN))
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

void local_debug_umask(struct task *task)
{
	struct local_dir *dir = task->dir;

	if (!level_of(task->local, DEBUG_ACL) || task->local->options->perms || dir->fd < 0 || !local_dir_has_default_acl(dir))
		return;
	task_text(task, L_INFO, "got ACL-based default perms %o for directory %s", 0777 & ~local_dir_umask(task->local, dir),
		  *dir->path ? dir->path : ".");
}

void local_debug_touch(const struct local *local, const struct local_dir *dir)
{
	const struct flist_dir *listed = flist_dir(local->list, dir->node);
	int32_t number = local->session.inc_recurse ? listed->number : listed->own_ndx;

	/* Of one list those only whose times are set. */
	if (level_of(local, DEBUG_TIME) > 1 && (local->session.inc_recurse || decide_keeps_time(local->options, &dir->entry)))
		log_info("touch_up_dirs: %s (%d)", *dir->path ? dir->path : ".", dir->node ? number : 0);
}
