/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages, items and lines of --debug about objects of the destination: events of their task, in the order of the list. */
#include "dest/events.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "dest/dest.h"
#include "dest/paths.h"

/* --- a task's list of them --- */

/* A task whose worker has gone through it still runs as long as something is owed. */
enum task_state task_state_of(const struct task *task)
{
	return task->state == TASK_DONE && task->pending ? TASK_RUNNING : task->state;
}

void task_event(struct task *task, struct event event)
{
	pthread_mutex_lock(task->lock);
	vec_push(&task->events.list, event);
	pthread_mutex_unlock(task->lock);
}

uint64_t task_reserve_event(struct task *task)
{
	const struct event awaited = { .kind = EVENT_AWAITED };
	uint64_t place;

	pthread_mutex_lock(task->lock);
	vec_push(&task->events.list, awaited);
	place = task->events_taken + task->events.list.count;
	pthread_mutex_unlock(task->lock);
	return place;
}

void task_take_events(struct task *task, bool is_end, struct events *events)
{
	struct events rest = { VEC_INIT };
	size_t count;

	pthread_mutex_lock(task->lock);
	*events = task->events;
	for (count = 0; count < events->list.count; count++) {
		const struct event *event = &events->list.items[count];
		bool is_work = task->marks || event->kind == EVENT_REDO || event->kind == EVENT_DELETE_ARGUMENT;

		/* Such an event makes the main thread work on the task's entries: not while a worker does. */
		if (!is_end && (event->kind == EVENT_AWAITED || (is_work && task_state_of(task) == TASK_RUNNING)))
			break;
	}
	for (size_t i = count; i < events->list.count; i++)
		vec_push(&rest.list, events->list.items[i]);
	events->list.count = count;
	task->events_taken += count;
	task->events = rest;
	pthread_mutex_unlock(task->lock);
}

void task_take_redos(struct task *task, struct events *events)
{
	pthread_mutex_lock(task->lock);
	for (size_t i = 0; i < task->events.list.count && task->state == TASK_DONE; i++) {
		struct event *event = &task->events.list.items[i];

		if (event->kind != EVENT_REDO)
			continue;
		vec_push(&events->list, *event);
		event->kind = EVENT_NOTHING;
	}
	pthread_mutex_unlock(task->lock);
}

/* --- messages --- */

void task_text(struct task *task, enum log_kind kind, const char *fmt, ...)
{
	struct strbuf text = STRBUF_INIT;
	va_list args;

	va_start(args, fmt);
	strbuf_vaddf(&text, fmt, args);
	va_end(args);
	task_event(task, (struct event){ .kind = EVENT_TEXT, .log = kind, .text = strbuf_detach(&text) });
}

void task_error(struct task *task, const char *role, int error, char *text)
{
	task_event(task, (struct event){
		.kind = EVENT_TEXT, .log = L_ERROR_XFER, .role = role, .error = error, .text = text });
}

bool task_complain(struct task *task, const char *role, int error, const char *name, const char *before, const char *after)
{
	struct strbuf below, text = STRBUF_INIT;

	/* The process is ending and has taken the temp file away. */
	if (error == ECANCELED)
		return false;
	below = dest_path_of(task->dir->path, name);
	strbuf_add_string(&text, before);
	dest_show_path(task->dest, strbuf_text(&below), &text);
	strbuf_add_string(&text, after);
	strbuf_free(&below);
	task_error(task, role, error, strbuf_detach(&text));
	return false;
}

const char *task_name(const struct task *task, const struct entry *entry)
{
	const char *name = entry_name(task->entries, entry);

	if (task->dest->single_name && !task->node)
		return task->dest->single_name;
	return *name == '/' ? name + 1 : name;
}

/* --- what becomes of a file --- */

void job_event(struct file_job *job, const struct event *event)
{
	struct task *task = job->task;

	if (!job->event_place) {
		task_event(task, *event);
		return;
	}
	pthread_mutex_lock(task->lock);
	task->events.list.items[job->event_place - 1 - task->events_taken] = *event;
	pthread_mutex_unlock(task->lock);
}

bool job_source_failed(struct file_job *job, int error, enum source_step step)
{
	struct event event = { .kind = EVENT_SOURCE_FAILED, .index = job->index, .error = error, .bytes = step };

	if (job->decision.action == ACTION_TAKE_COPY && step != SOURCE_ATTRIBUTES) {
		task_complain(job->task, "generator", error, job->name, "cannot copy from an alternate destination to ", "");
		event = (struct event){ .kind = EVENT_FAILED, .index = job->index };
	}
	job->source_failed = true;
	task_event(job->task, event);
	return false;
}

bool job_write_failed(struct file_job *job, int error)
{
	task_complain(job->task, "receiver", error, job->name, "write failed on ", "");
	atomic_store(&job->dest->stop, STOP_WRITE);
	return false;
}

/* --- the order of items --- */

static bool has_place(const struct event *event)
{
	return event->kind == EVENT_ITEM || event->kind == EVENT_FAILED;
}

static int compare_places(const void *a, const void *b)
{
	const struct event *first = a, *second = b;

	if (first->index != second->index)
		return first->index < second->index ? -1 : 1;
	return second->is_attempt - first->is_attempt;
}

void events_order(struct events *events)
{
	struct event *items = xcalloc(events->list.count, sizeof *items);
	size_t count = 0, next = 0;

	for (size_t i = 0; i < events->list.count; i++)
		if (has_place(&events->list.items[i]))
			items[count++] = events->list.items[i];
	qsort(items, count, sizeof *items, compare_places);
	for (size_t i = 0; i < events->list.count; i++)
		if (has_place(&events->list.items[i]))
			events->list.items[i] = items[next++];
	free(items);
}

static int level_of(const struct dest *dest, enum debug_word word)
{
	return dest->options->levels.debug[word];
}

/* --- one entry --- */

void dest_debug_entry(struct task *task, uint32_t index)
{
	const struct entry *entry = &task->entries->items[index];
	const char *path = task->dir->path;
	struct dest *dest = task->dest;

	/* What would take long is looked at again by a worker. */
	if (task->debug_end > index)
		return;
	task->debug_end = index + 1;
	/* In one list a directory is met where its contents are. */
	if (!level_of(dest, DEBUG_GENR) || entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN)
	    || (entry_is_dir(entry) && !dest->session->inc_recurse && !entry_is_dot(task->entries, entry)))
		return;
	task_text(task, L_INFO, "recv_generator(%s%s%s,%d)", path, *path ? "/" : "", task_name(task, entry),
		  flist_ndx_of(dest->list, task->node, entry));
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
	const char *path = job->dir->path;
	struct fs_stat st;

	if (level_of(job->dest, DEBUG_DELTASUM) < 2 || basis_fd < 0 || fs_stat_at_fd(basis_fd, &st) < 0)
		return;
	task_text(job->task, L_INFO, "recv mapped %s%s%s of size %llu", path, *path ? "/" : "", job->name,
		  (unsigned long long)st.size);
}

/* --- attributes --- */

void dest_debug_owner(struct task *task, const char *name, uint32_t old_uid, uint32_t uid, uint32_t old_gid, uint32_t gid)
{
	struct strbuf path;

	if (!level_of(task->dest, DEBUG_OWN))
		return;
	path = dest_path_of(task->dir->path, name);
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
