/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lines of --debug about single objects. They wait among the events of their task. */
#include "dest/debug.h"
#include "dest/dest.h"
#include "dest/events.h"
#include "dest/job.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "flist/paths.h"
#include "flist/received.h"

static int level_of(const struct dest *dest, enum debug_word word)
{
	return dest->options->levels.debug[word];
}

/* --- one entry --- */

void dest_debug_entry(struct task *task, uint32_t index)
{
	const struct entry *entry = &task->entries->items[index];
	struct dest *dest = task->dest;
	struct strbuf path = STRBUF_INIT;

	/* What would take long is looked at again by a worker. */
	if (task->told > index)
		return;
	task->told = index + 1;
	/* In one list a directory is met where its contents are. */
	if (!level_of(dest, DEBUG_GENR) || entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN)
	    || (entry_is_dir(entry) && !dest->session->inc_recurse && !entry_is_dot(task->entries, entry)))
		return;
	strbuf_add_string(&path, task->dir->path);
	strbuf_add_path(&path, task_name(task, entry));
	task_text(task, L_INFO, "recv_generator(%s,%d)", strbuf_text(&path), flist_ndx_of(dest->list, task->node, entry));
	strbuf_free(&path);
}

void dest_debug_directory(struct task *task)
{
	struct dest *dest = task->dest;
	const char *path = task->dir->path;
	int32_t dot = task->node ? -1 : entries_find(task->entries, ".", true);
	/* Lists of old protocols are gone through in parts, to none of which the top belongs. */
	bool is_apart = dest->session->caps.sorts_by_path;
	const struct entry *entry = dot >= 0 && is_apart ? &task->entries->items[dot] : NULL;

	if (!level_of(dest, DEBUG_GENR) || (!task->node && (dot < 0 || !(dest->session->inc_recurse || is_apart))))
		return;
	task_text(task, L_INFO, "recv_generator(%s,%d)", *path ? path : ".", flist_ndx_of(dest->list, task->node, entry));
}

void dest_debug_node(struct file_job *job)
{
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);
	const char *path = job->dir->path;

	if (!level_of(job->dest, DEBUG_GENR) || entry_is_regular(job->entry) || entry_is_symlink(job->entry))
		return;
	task_text(job->task, L_INFO, "mknod(%s%s%s, 0%o, [%u,%u])", path, *path ? "/" : "", job->name,
		  (unsigned)job->entry->mode, side ? side->rdev_major : 0, side ? side->rdev_minor : 0);
}

/* --- deltas --- */

static void add_job_path(const struct file_job *job, struct strbuf *path)
{
	strbuf_add_string(path, job->dir->path);
	strbuf_add_path(path, job->name);
}

void dest_debug_sums(const struct file_job *job, int32_t ndx, const struct sum_head *head, uint64_t size)
{
	if (level_of(job->dest, DEBUG_DELTASUM) < 2)
		return;
	task_text(job->task, L_INFO, "generating and sending sums for %d", ndx);
	task_text(job->task, L_INFO, "count=%d rem=%d blength=%d s2length=%d flength=%llu", head->count, head->remainder,
		  head->block_length, head->strong_length, (unsigned long long)size);
}

void dest_debug_basis(const struct file_job *job, int basis_fd)
{
	struct strbuf path = STRBUF_INIT;
	struct fs_stat st;

	if (level_of(job->dest, DEBUG_DELTASUM) < 2 || basis_fd < 0 || fs_stat_at_fd(basis_fd, &st) < 0)
		return;
	add_job_path(job, &path);
	task_text(job->task, L_INFO, "recv mapped %s of size %llu", strbuf_text(&path), (unsigned long long)st.size);
	strbuf_free(&path);
}

void dest_debug_patched(const struct file_job *job)
{
	if (level_of(job->dest, DEBUG_DELTASUM) > 1)
		task_text(job->task, L_INFO, "got file_sum");
}

/* --- attributes --- */

void dest_debug_owner(struct task *task, const char *name, uint32_t old_uid, uint32_t uid, uint32_t old_gid, uint32_t gid)
{
	struct strbuf path = STRBUF_INIT;

	if (!level_of(task->dest, DEBUG_OWN))
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

	if (!level_of(task->dest, DEBUG_ACL) || task->dest->options->perms || dir->fd < 0 || !dest_dir_has_default_acl(dir))
		return;
	task_text(task, L_INFO, "got ACL-based default perms %o for directory %s", 0777 & ~dest_dir_umask(task->dest, dir),
		  *dir->path ? dir->path : ".");
}
