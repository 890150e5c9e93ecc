/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Alternate destinations: opened, searched, linked from. */
#include "dest/alternate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "dest/apply.h"
#include "dest/dest.h"
#include "dest/job.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "fs/fake.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/temp.h"

/* --- the roots --- */

struct alternates *dest_alternates_open(struct dest *dest)
{
	const struct options *options = dest->options;
	const char *kind = options->alt_dest_kind;
	const int flags = O_PATH | O_DIRECTORY;
	struct alternates *alternates;

	if (!options->alt_dest_dirs.count)
		return NULL;
	alternates = xcalloc(1, sizeof *alternates);
	alternates->kind = !strcmp(kind, "link-dest") ? ALTERNATE_LINK
			   : !strcmp(kind, "copy-dest") ? ALTERNATE_COPY : ALTERNATE_COMPARE;
	for (size_t i = 0; i < options->alt_dest_dirs.count && i < ALTERNATES_MAX; i++) {
		const char *given = options->alt_dest_dirs.items[i], *top = strcmp(dest->top_path, "/") ? dest->top_path : "";
		struct fs_root *root = &alternates->roots[alternates->count++];
		char *shown = *given == '/' ? xstrdup(given) : xasprintf("%s/%s", top, given);

		/* In a dry run there may be no destination that ".." could start from. */
		if (dest->top.fd < 0) {
			char *full = shown;

			shown = xmalloc(strlen(full) + 3);
			*shown = '/';
			fs_clean_path(shown + 1, full);
			free(full);
		}
		if (dest->top.fd < 0 && !dest->module)
			root->fd = options_confine(options, fs_operator_open(shown, flags | options_link_flag(options), 0));
		else
			root->fd = dest_open_named(dest, given, flags);
		if (root->fd >= 0)
			fs_root_adopt(root, root->fd);
		else
			log_warning("--%s arg %s: %s", kind, errno == ENOTDIR ? "is not a dir" : "does not exist", shown);
		free(shown);
	}
	return alternates;
}

/* --- the directory of a task --- */

/* Does a module hide this path of the transfer there? */
static bool is_hidden_at(struct dest *dest, int number, const char *path, bool is_dir)
{
	return dest_is_hidden_in(dest, dest->options->alt_dest_dirs.items[number], path, is_dir);
}

int dest_alternate_dir(struct task *task, int number)
{
	const struct alternates *alternates = task->dest->alternates;
	const char *path = task->dir->path;

	if (!task->alternates) {
		task->alternates = xcalloc((size_t)alternates->count, sizeof *task->alternates);
		for (int i = 0; i < alternates->count; i++) {
			const struct fs_root *root = &alternates->roots[i];
			bool is_usable = root->fd >= 0 && !is_hidden_at(task->dest, i, path, true);

			task->alternates[i] = is_usable ? fs_opendir(root, *path ? path : ".") : -1;
		}
	}
	return task->alternates[number];
}

/* --- what they have --- */

/* Is it better than what was found before? The first of equal ones wins. */
static void consider(enum alternate_level level, int number, const struct decide_dest *object, struct decide_alternate *found)
{
	if (level > found->level)
		*found = (struct decide_alternate){ level, number, *object };
}

void job_find_alternate(struct file_job *job, const struct decide_probe *probe, struct decide_alternate *found)
{
	struct strbuf path = dest_path_of(job->dir->path, job->name);
	const struct entries *list = job->task->entries;
	struct decide_dest object = { .exists = true };

	found->level = ALTERNATE_NONE;
	for (int i = 0; i < job->dest->alternates->count && found->level < ALTERNATE_SAME; i++) {
		int fd = dest_alternate_dir(job->task, i);

		if (fd < 0 || dest_lstat_at(job->dest, fd, job->name, &object.st) < 0
		    || is_hidden_at(job->dest, i, strbuf_text(&path), false))
			continue;
		job->looked_at = (struct looked_at){ fd, &object.st };
		consider(decide_alternate_level(&job->rules, list, job->entry, &object, probe), i, &object, found);
	}
	strbuf_free(&path);
}

void dest_find_alternate_dir(struct dest *dest, const struct entries *list, const struct entry *entry, const char *path,
			     struct decide_alternate *found)
{
	struct decide_dest object = { .exists = true };

	found->level = ALTERNATE_NONE;
	for (int i = 0; i < dest->alternates->count && found->level < ALTERNATE_SAME; i++) {
		const struct fs_root *root = &dest->alternates->roots[i];

		if (root->fd >= 0 && !is_hidden_at(dest, i, path, true)
		    && (dest->is_fake ? fs_fake_lstat : fs_lstat)(root, *path ? path : ".", &object.st) == 0)
			consider(decide_alternate_level(&dest->rules, list, entry, &object, NULL), i, &object, found);
	}
}

void dest_find_alternate_link(struct dest *dest, const struct entries *list, const struct entry *entry, const char *path,
			      const char *leader, const struct fs_stat *leader_st, struct decide_alternate *found)
{
	const struct alternates *alternates = dest->alternates;
	struct decide_dest object = { .exists = true };

	found->level = ALTERNATE_NONE;
	for (int i = 0; i < alternates->count && found->level == ALTERNATE_NONE; i++) {
		const struct fs_root *root = &alternates->roots[i];
		const struct fs_stat *st = leader_st;
		struct fs_stat there;

		if (root->fd < 0 || is_hidden_at(dest, i, path, false)
		    || (dest->is_fake ? fs_fake_lstat : fs_lstat)(root, path, &object.st) < 0
		    || (object.st.mode & S_IFMT) != (entry->mode & S_IFMT))
			continue;
		if (alternates->kind != ALTERNATE_LINK) {
			consider(ALTERNATE_EXISTS, i, &object, found);
			continue;
		}
		/* In a dry run the leader is where it would be linked from. */
		if (!st && fs_lstat(root, leader, &there) == 0)
			st = &there;
		if (st && st->dev == object.st.dev && st->ino == object.st.ino
		    && !decide_item_flags(&dest->rules, list, entry, &object, 0))
			consider(ALTERNATE_SAME, i, &object, found);
	}
}

/* --- what is taken of them --- */

bool job_take_link(struct file_job *job)
{
	int fd = dest_alternate_dir(job->task, job->decision.alternate - 1);
	struct fs_temp temp;
	struct fs_stat st;

	if (fs_lstat_at(fd, job->name, &st) < 0)
		return false;
	if (!job->old.exists)
		return fs_link_at(fd, job->name, job->dir->fd, job->name) == 0;
	if (st.dev == job->old.st.dev && st.ino == job->old.st.ino)
		return true;
	return fs_temp_link(&temp, job->dir->fd, job->name, fd, job->name) == 0 && fs_temp_commit(&temp, job->name) == 0;
}

int job_open_alternate(const struct file_job *job, int number, const char *name, uint64_t *size)
{
	struct strbuf path = dest_path_of(job->dir->path, name);
	int fd = fs_open(&job->dest->alternates->roots[number], strbuf_text(&path), O_RDONLY, 0);

	strbuf_free(&path);
	return fs_only_regular(fd, size);
}
