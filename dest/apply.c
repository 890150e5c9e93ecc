/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Owner, times, mode, ACLs and extended attributes of one object of the destination. */
#include "dest/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "attrs/hint.h"
#include "dest/attributes.h"
#include "dest/debug.h"
#include "dest/dest.h"
#include "dest/events.h"
#include "dest/fake.h"
#include "dest/job.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "wire/request.h"

#define PERMISSION_BITS 07777u
#define SETID_BITS (S_ISUID | S_ISGID)

/* What a new object of ours is given by the system. */
static gid_t group_of_new(struct file_job *job, int fd)
{
	int64_t known = atomic_load(&job->dir->new_gid);
	struct fs_stat st;

	if (known >= 0)
		return (gid_t)known;
	if (fd < 0 || fs_stat_at_fd(fd, &st) < 0)
		return (gid_t)-1;
	atomic_store(&job->dir->new_gid, (int64_t)st.gid);
	return st.gid;
}

static void times_of(const struct file_job *job, struct timespec times[2])
{
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);
	bool keeps_atime = job->dest->options->atimes && side && !entry_is_symlink(job->entry);

	times[0] = (struct timespec){ keeps_atime ? (time_t)side->atime : 0, keeps_atime ? 0 : UTIME_OMIT };
	if (!keeps_atime && side && job->dest->attrs_only && entry_is_regular(job->entry))
		times[0] = attr_hint_time(side->real_size);
	times[1] = (struct timespec){ (time_t)job->entry->mtime, (long)job->entry->mtime_nsec };
	if (!decide_keeps_time(job->dest->options, job->entry))
		times[1].tv_nsec = UTIME_OMIT;
}

/* Who, in people's eyes, gives the object its attributes. */
static const char *role_of(const struct file_job *job)
{
	return job->decision.action == ACTION_COPY ? "receiver" : "generator";
}

/* What chown is to be told; false: nothing. */
static bool choose_owner(struct file_job *job, uint32_t old_uid, uint32_t old_gid, uid_t *uid, gid_t *gid)
{
	unsigned impossible = decide_owner(&job->rules, job->entry, old_uid, old_gid, uid, gid);

	if (impossible & OWNER_UID_IMPOSSIBLE)
		task_complain(job->task, NULL, 0, job->name, OWNER_UID_TEXT, "");
	if (impossible & OWNER_GID_IMPOSSIBLE)
		task_complain(job->task, NULL, 0, job->name, OWNER_GID_TEXT, "");
	return *uid != (uid_t)-1 || *gid != (gid_t)-1;
}

/* `name`: as messages call it. */
static struct attr_subject subject_of(const struct file_job *job, const char *name)
{
	bool same_kind = job->old.exists && (job->old.st.mode & S_IFMT) == (job->entry->mode & S_IFMT);

	return (struct attr_subject){
		.task = job->task, .name = name, .old_name = same_kind || job->decision.alternate ? job->name : NULL,
		.alternate = job->decision.alternate, .role = role_of(job), .is_link = entry_is_symlink(job->entry),
	};
}

static bool wants_attributes(const struct file_job *job)
{
	return job->wanted.xattrs || job->wanted.access;
}

/* What messages call a file that gets its attributes. */
static const char *name_now(const struct file_job *job)
{
	return job->made_name ? job->made_name : job->name;
}

/* --- new files, by their descriptors --- */

bool apply_fake_to_descriptor(struct file_job *job, int fd)
{
	const struct attr_subject subject = subject_of(job, name_now(job));
	struct timespec times[2];
	struct fs_held held;
	mode_t mode = 0;
	bool good;

	if (!subject_hold_open(&subject, fd, &held))
		return false;
	good = job_fake_store(job, &subject, &held) >= 0;
	apply_xattrs(&subject, &job->wanted, &held);
	times_of(job, times);
	if ((times[0].tv_nsec != UTIME_OMIT || times[1].tv_nsec != UTIME_OMIT) && futimens(fd, times) < 0) {
		task_complain(job->task, "receiver", errno, name_now(job), "failed to set times on ", "");
		good = false;
	}
	apply_acls(&subject, &job->wanted, &held, mode, &mode);
	return good;
}

bool apply_to_descriptor(struct file_job *job, int fd, uid_t made_uid, gid_t made_gid, mode_t made_mode)
{
	uid_t uid;
	gid_t gid;
	bool gives = choose_owner(job, made_uid, made_gid, &uid, &gid);
	mode_t mode = decide_mode(&job->rules, job->entry, &job->old);
	struct timespec times[2];
	const struct attr_subject subject = subject_of(job, name_now(job));
	struct fs_held held = { .fd = -1 };
	bool good = true, has_acl, mode_is_off;

	if (job->dest->is_fake)
		return apply_fake_to_descriptor(job, fd);
	if (gives && job->dest->logs_steps)
		dest_debug_owner(job->task, name_now(job), made_uid, uid, made_gid, gid);
	if (gives && fchown(fd, uid, gid) < 0) {
		task_complain(job->task, role_of(job), errno, name_now(job), uid == (uid_t)-1 ? "chgrp " : "chown ", " failed");
		/* What it should let others do was meant for another owner. */
		mode = (mode & 0700) | 0600;
		if (mode != made_mode)
			fchmod(fd, mode);
		return false;
	}
	if (wants_attributes(job) && subject_hold_open(&subject, fd, &held))
		apply_xattrs(&subject, &job->wanted, &held);
	times_of(job, times);
	if ((times[0].tv_nsec != UTIME_OMIT || times[1].tv_nsec != UTIME_OMIT) && futimens(fd, times) < 0) {
		task_complain(job->task, "receiver", errno, name_now(job), "failed to set times on ", "");
		good = false;
	}
	has_acl = held.fd >= 0 && apply_acls(&subject, &job->wanted, &held, mode, &mode);
	mode_is_off = has_acl || mode != made_mode || dest_dir_has_default_acl(job->dir) || (gives && mode & SETID_BITS);
	if (mode_is_off && fchmod(fd, mode) < 0) {
		task_complain(job->task, "receiver", errno, name_now(job), "failed to set permissions on ", "");
		good = false;
	}
	return good;
}

bool job_apply_to_file(struct file_job *job, int fd, mode_t made_mode)
{
	return apply_to_descriptor(job, fd, job->dest->uid, group_of_new(job, fd), made_mode);
}

/* --- other objects, by their names --- */

/* 1: set, 0: nothing to set, -1: failed, and nothing else is to be set then. */
static int set_owner(struct file_job *job, const char *name, uint32_t old_uid, uint32_t old_gid)
{
	uid_t uid;
	gid_t gid;

	if (!choose_owner(job, old_uid, old_gid, &uid, &gid))
		return 0;
	if (job->dest->logs_steps)
		dest_debug_owner(job->task, name, old_uid, uid, old_gid, gid);
	if (fs_chown_at(job->dir->fd, name, uid, gid) == 0)
		return 1;
	task_complain(job->task, role_of(job), errno, job->name, uid == (uid_t)-1 ? "chgrp " : "chown ", " failed");
	return -1;
}

static int set_times(struct file_job *job, const char *name)
{
	struct timespec times[2];

	times_of(job, times);
	if (times[0].tv_nsec == UTIME_OMIT && times[1].tv_nsec == UTIME_OMIT)
		return 0;
	if (fs_utimens_at(job->dir->fd, name, times) == 0)
		return 1;
	task_complain(job->task, role_of(job), errno, job->name, "failed to set times on ", "");
	return 0;
}

static int set_mode(struct file_job *job, const char *name, mode_t mode)
{
	if (fs_chmod_at(job->dir->fd, name, mode) == 0)
		return 1;
	task_complain(job->task, role_of(job), errno, job->name, "failed to set permissions on ", "");
	return 0;
}

/* Symlinks, devices and specials: by name, in the order that keeps set-id bits. */
void job_apply(struct file_job *job, const char *name, mode_t made_mode)
{
	mode_t mode = decide_mode(&job->rules, job->entry, &job->old);
	const struct attr_subject subject = subject_of(job, job->name);
	struct fs_held held = { .fd = -1 };
	struct fs_stat st;

	if (fs_lstat_at(job->dir->fd, name, &st) < 0) {
		task_complain(job->task, role_of(job), errno, job->name, "stat ", " failed");
		return;
	}
	int given = set_owner(job, name, st.uid, st.gid);
	bool off = given || mode != made_mode || dest_dir_has_default_acl(job->dir);

	if (given < 0)
		return;
	if (wants_attributes(job) && subject_hold(&subject, job->dir->fd, name, &held))
		apply_xattrs(&subject, &job->wanted, &held);
	set_times(job, name);
	off |= held.fd >= 0 && apply_acls(&subject, &job->wanted, &held, mode, &mode);
	fs_release(&held);
	if (!entry_is_symlink(job->entry) && off)
		set_mode(job, name, mode);
}

/* ACLs and extended attributes of what is there already; true if the mode has to be set again. */
static bool touch_attributes(struct file_job *job, mode_t *mode)
{
	const uint32_t flags = job->decision.item_flags;
	const struct attr_subject subject = subject_of(job, job->name);
	struct fs_held held;
	bool has_acl = false;

	if (!(flags & (ITEM_REPORT_ACL | ITEM_REPORT_XATTR)) || !subject_hold(&subject, job->dir->fd, job->name, &held))
		return false;
	if (flags & ITEM_REPORT_XATTR)
		job->set_xattrs = apply_xattrs(&subject, &job->wanted, &held);
	if (flags & ITEM_REPORT_ACL)
		has_acl = apply_acls(&subject, &job->wanted, &held, *mode, mode);
	fs_release(&held);
	return has_acl;
}

/* Whole seconds decide whether a file is up to date; after a comparison of contents the rest is put right as well. */
static bool times_need_setting(const struct file_job *job)
{
	const struct entry *entry = job->entry;

	if (job->decision.item_flags & (ITEM_REPORT_TIME | ITEM_REPORT_ATIME))
		return true;
	return job->dest->options->checksum && decide_keeps_time(job->dest->options, entry)
	       && (entry->mtime != job->old.st.mtime || entry->mtime_nsec != job->old.st.mtime_nsec);
}

/* Its ACLs were set when it was entered. */
void job_touch_directory(struct file_job *job)
{
	const struct attr_subject subject = subject_of(job, job->name);
	struct fs_held held;

	if (!subject_hold(&subject, job->dir->fd, job->name, &held))
		return;
	apply_xattrs(&subject, &job->wanted, &held);
	fs_release(&held);
	atomic_store(&job->dir->acl_state, ACL_UNKNOWN);
}

/* --- objects that exist --- */

/* What is there already, with --fake-super; true if anything was set. */
static bool touch_fake(struct file_job *job, bool with_times)
{
	const struct attr_subject subject = subject_of(job, job->name);
	struct fs_held held;
	mode_t mode = 0;
	bool changed;

	if (!subject_hold(&subject, job->dir->fd, job->name, &held))
		return false;
	changed = job_fake_store(job, &subject, &held) > 0;
	fs_release(&held);
	touch_attributes(job, &mode);
	return (with_times && set_times(job, job->name)) || changed;
}

/* The system takes set-id bits from what is given away; stock's items tell of what is off after that. */
static void look_again(struct file_job *job)
{
	const uint32_t changed = ITEM_REPORT_OWNER | ITEM_REPORT_GROUP | ITEM_REPORT_PERMS;
	uint32_t *flags = &job->decision.item_flags;

	if (fs_lstat_at(job->dir->fd, job->name, &job->old.st) == 0)
		*flags = (*flags & ~changed)
			 | (decide_item_flags(&job->rules, job->task->entries, job->entry, &job->old, 0) & changed);
}

bool job_touch(struct file_job *job)
{
	if (job->dest->is_fake)
		return touch_fake(job, times_need_setting(job));
	mode_t mode = decide_mode(&job->rules, job->entry, &job->old), old;
	int given = set_owner(job, job->name, job->old.st.uid, job->old.st.gid), changes = given;
	bool has_acl;

	if (given < 0)
		return false;
	if (given && job->old.st.mode & SETID_BITS)
		look_again(job);
	old = job->old.st.mode & PERMISSION_BITS;
	has_acl = touch_attributes(job, &mode);
	/* The ACL has brought the mode's bits along, as far as an item of a file tells. */
	if (has_acl && entry_is_regular(job->entry) && !((mode ^ old) & 07000))
		job->decision.item_flags &= ~(uint32_t)ITEM_REPORT_PERMS;
	if (times_need_setting(job))
		changes += set_times(job, job->name);
	if (!entry_is_symlink(job->entry) && (mode != old || has_acl || (given && mode & SETID_BITS)))
		changes += set_mode(job, job->name, mode);
	return changes > 0 || has_acl;
}

void apply_in_place(struct file_job *job, bool with_times)
{
	if (job->dest->is_fake) {
		touch_fake(job, with_times);
		return;
	}
	mode_t mode = decide_mode(&job->rules, job->entry, &job->old);
	int given = set_owner(job, job->name, job->old.st.uid, job->old.st.gid);
	bool has_acl;

	if (given < 0)
		return;
	has_acl = touch_attributes(job, &mode);
	if (with_times)
		set_times(job, job->name);
	if (has_acl || mode != (job->old.st.mode & PERMISSION_BITS) || (given && mode & SETID_BITS))
		set_mode(job, job->name, mode);
}
