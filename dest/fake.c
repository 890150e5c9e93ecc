/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --fake-super at the destination: what would need root is kept in an attribute instead (fs/fake.h). */
#include <errno.h>
#include <string.h>

#include "dest/attributes.h"
#include "dest/dest.h"
#include "dest/events.h"
#include "dest/fake.h"
#include "dest/job.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "fs/fake.h"
#include "fs/file.h"
#include "fs/temp.h"

enum super_level dest_receiving_level(const struct options *options, bool is_local_run)
{
	static const struct { const char *word; int super; } words[] = {
		{ "--fake-super", SUPER_FAKE }, { "--super", SUPER_YES }, { "--no-super", SUPER_NO },
	};
	struct options receiving = *options;

	/* A local run is both ends at once: -M speaks of its receiving half. */
	for (size_t i = 0; is_local_run && i < options->remote_options.count; i++)
		for (size_t w = 0; w < sizeof words / sizeof *words; w++)
			if (!strcmp(options->remote_options.items[i], words[w].word))
				receiving.super = words[w].super;
	return options_super_level(&receiving);
}

int dest_lstat_at(const struct dest *dest, int dir_fd, const char *name, struct fs_stat *st)
{
	return dest->is_fake ? fs_fake_lstat_at(dir_fd, name, st) : fs_lstat_at(dir_fd, name, st);
}

int dest_lstat(const struct dest *dest, const struct fs_root *root, const char *path, struct fs_stat *st)
{
	return dest->is_fake ? fs_fake_lstat(root, path, st) : fs_lstat(root, path, st);
}

/* Where nothing says otherwise, the owner stays who it was, or who has made the object. */
static void keep_owner(const struct decide_rules *rules, const struct entry *entry, struct fs_stat *wanted)
{
	uint32_t uid = decide_uid(rules, entry), gid = decide_gid(rules, entry);

	if (decide_keeps_owner(rules) && uid != UINT32_MAX)
		wanted->uid = uid;
	if (decide_keeps_group(rules, entry) && gid != UINT32_MAX)
		wanted->gid = gid;
}

/* A device that is real already, and all that is wanted: it cannot have an attribute that says so. */
static bool needs_no_record(const struct fs_stat *st, const struct fs_stat *wanted)
{
	return !S_ISREG(st->mode) && !S_ISDIR(st->mode) && st->mode == wanted->mode && st->uid == wanted->uid
	       && st->gid == wanted->gid && st->rdev_major == wanted->rdev_major && st->rdev_minor == wanted->rdev_minor;
}

static int store(const struct attr_subject *subject, const struct fs_held *held, const struct fs_stat *wanted)
{
	struct task *task = subject->task;
	int result = needs_no_record(&held->st, wanted) ? 0 : fs_fake_store(held, wanted);

	if (result < 0)
		task_complain(task, subject->role, errno, subject->name, "failed to write xattr user.rsync.%stat for ", "");
	return result;
}

int job_fake_store(struct file_job *job, const struct attr_subject *subject, const struct fs_held *held)
{
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);
	bool same_kind = job->old.exists && (job->old.st.mode & S_IFMT) == (job->entry->mode & S_IFMT);
	struct fs_stat wanted = same_kind ? job->old.st : held->st;

	keep_owner(&job->rules, job->entry, &wanted);
	wanted.mode = (job->entry->mode & S_IFMT) | (decide_mode(&job->rules, job->entry, &job->old) & 07777);
	wanted.rdev_major = wanted.rdev_minor = 0;
	if (side && entry_is_device(job->entry)) {
		wanted.rdev_major = side->rdev_major;
		wanted.rdev_minor = side->rdev_minor;
	}
	return store(subject, held, &wanted);
}

void dir_fake_store(struct dest *dest, const struct dest_dir *dir, const struct attr_subject *subject,
		    const struct fs_held *held)
{
	struct fs_stat wanted;

	if (fs_fake_overlay(held, &wanted) < 0)
		wanted = held->st;
	keep_owner(&dest->rules, &dir->entry, &wanted);
	wanted.mode = S_IFDIR | dir->mode;
	wanted.rdev_major = wanted.rdev_minor = 0;
	store(subject, held, &wanted);
}

int job_fake_make(struct file_job *job, struct fs_temp *temp)
{
	const char *target = entry_is_symlink(job->entry) ? entry_target(job->task->entries, job->entry) : "";

	if (fs_temp_create(temp, job->dir->fd, job->name) < 0)
		return -1;
	if (fs_write_all(temp->fd, target, strlen(target)) == 0)
		return 0;
	int error = errno;

	fs_temp_discard(temp);
	errno = error;
	return -1;
}
