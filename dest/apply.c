/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Applies owner, times, mode, ACLs and extended attributes to one object of the destination. Its owner may be mapped
 * (--usermap, --groupmap and --chown of a local run; ids from a peer have been mapped when they come, flist/ids.c), and with
 * --fake-super what would need root is kept in an attribute instead (fs/fake.h).
 */
#include "dest/apply.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attrs/hint.h"
#include "dest/decide.h"
#include "dest/dest.h"
#include "dest/events.h"
#include "dest/job.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "fs/fake.h"
#include "lib/alloc.h"
#include "lib/log.h"
#include "options/owners.h"
#include "wire/request.h"

/* --- mapped owners --- */

struct owner_maps {
	bool has_names;        /* without --numeric-ids */
	struct id_rules *users, *groups;
	struct fs_ids *ids;
	pthread_mutex_t lock;  /* of `ids` */
};

static uint32_t map_id(void *maps_void, bool group, uint32_t id)
{
	struct owner_maps *maps = maps_void;
	const struct id_rules *rules = group ? maps->groups : maps->users;
	const char *name = NULL;
	uint32_t mapped;

	if (!rules)
		return id;
	pthread_mutex_lock(&maps->lock);
	if (maps->has_names)
		name = fs_id_name(maps->ids, group, id);
	pthread_mutex_unlock(&maps->lock);
	return id_rules_apply(rules, id, name ? name : "", &mapped) ? mapped : id;
}

struct owner_maps *dest_owner_maps_new(const struct options *options, struct decide_rules *rules)
{
	const char *role = log_role();
	struct owner_maps *maps;

	if (!options->usermap && !options->groupmap)
		return NULL;
	maps = xcalloc(1, sizeof *maps);
	maps->has_names = !options->numeric_ids;
	maps->ids = fs_ids_new(NULL, NULL);
	pthread_mutex_init(&maps->lock, NULL);
	log_set_role("Receiver");
	maps->users = id_rules_new(false, options->usermap, maps->ids);
	maps->groups = id_rules_new(true, options->groupmap, maps->ids);
	log_set_role(role);
	rules->map_id = map_id;
	rules->map_context = maps;
	return maps;
}

void dest_owner_maps_free(struct owner_maps *maps)
{
	if (!maps)
		return;
	id_rules_free(maps->users);
	id_rules_free(maps->groups);
	fs_ids_free(maps->ids);
	pthread_mutex_destroy(&maps->lock);
	free(maps);
}

/* --- --fake-super --- */

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

/* `side`: of a device. Where nothing says otherwise, the owner stays who it was, or who has made the object. */
static int store(const struct attr_subject *subject, const struct fs_held *held, const struct decide_rules *rules,
		 const struct entry *entry, const struct entry_side *side, struct fs_stat *wanted)
{
	const struct fs_stat *st = &held->st;
	uint32_t uid = decide_uid(rules, entry), gid = decide_gid(rules, entry);

	if (decide_keeps_owner(rules) && uid != UINT32_MAX)
		wanted->uid = uid;
	if (decide_keeps_group(rules, entry) && gid != UINT32_MAX)
		wanted->gid = gid;
	wanted->rdev_major = side ? side->rdev_major : 0;
	wanted->rdev_minor = side ? side->rdev_minor : 0;
	/* A device that is real already, and all that is wanted: it cannot have an attribute that says so. */
	bool is_real = !S_ISREG(st->mode) && !S_ISDIR(st->mode) && st->mode == wanted->mode && st->uid == wanted->uid
		       && st->gid == wanted->gid && st->rdev_major == wanted->rdev_major
		       && st->rdev_minor == wanted->rdev_minor;
	int result = is_real ? 0 : fs_fake_store(held, wanted);

	if (result < 0)
		task_complain(subject->task, subject->role, errno, subject->name, "failed to write xattr user.rsync.%stat for ",
			      "");
	return result;
}

/* Keep owner and mode of a file or directory. 1: something was changed, 0: it was so already, -1: failed, said so. */
static int job_fake_store(struct file_job *job, const struct attr_subject *subject, const struct fs_held *held)
{
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);
	bool same_kind = job->old.exists && (job->old.st.mode & S_IFMT) == (job->entry->mode & S_IFMT);
	struct fs_stat wanted = same_kind ? job->old.st : held->st;

	wanted.mode = (job->entry->mode & S_IFMT) | (decide_mode(&job->rules, job->entry, &job->old) & 07777);
	return store(subject, held, &job->rules, job->entry, entry_is_device(job->entry) ? side : NULL, &wanted);
}

void dir_fake_store(struct dest *dest, const struct dest_dir *dir, const struct attr_subject *subject,
		    const struct fs_held *held)
{
	struct fs_stat wanted;

	if (fs_fake_overlay(held, &wanted) < 0)
		wanted = held->st;
	wanted.mode = S_IFDIR | dir->mode;
	store(subject, held, &dest->rules, &dir->entry, NULL, &wanted);
}

/* --- what an object is to have --- */

/* false: neither is to be set. */
static bool times_of(const struct file_job *job, struct timespec times[2])
{
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);
	bool keeps_atime = job->dest->options->atimes && side && !entry_is_symlink(job->entry);

	times[0] = (struct timespec){ keeps_atime ? (time_t)side->atime : 0, keeps_atime ? 0 : UTIME_OMIT };
	if (!keeps_atime && side && job->dest->attrs_only && entry_is_regular(job->entry))
		times[0] = attr_hint_time(side->real_size);
	times[1] = (struct timespec){ (time_t)job->entry->mtime, (long)job->entry->mtime_nsec };
	if (!decide_keeps_time(job->dest->options, job->entry))
		times[1].tv_nsec = UTIME_OMIT;
	return times[0].tv_nsec != UTIME_OMIT || times[1].tv_nsec != UTIME_OMIT;
}

/* The role that messages about the object's attributes name. */
static const char *role_of(const struct file_job *job)
{
	return job->decision.action == ACTION_COPY ? "receiver" : "generator";
}

/* The arguments of chown; false: it is not called. */
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

/* What messages call a file that gets its attributes. */
static const char *name_now(const struct file_job *job)
{
	return job->made_name ? job->made_name : job->name;
}

/* --- new files, by their descriptors --- */

static bool set_open_times(struct file_job *job, int fd)
{
	struct timespec times[2];

	return !times_of(job, times) || futimens(fd, times) == 0
	       || task_complain(job->task, "receiver", errno, name_now(job), "failed to set times on ", "");
}

bool apply_fake_to_descriptor(struct file_job *job, int fd)
{
	const struct attr_subject subject = subject_of(job, name_now(job));
	struct fs_held held;
	mode_t mode = 0;
	bool good;

	if (!subject_hold_open(&subject, fd, &held))
		return false;
	good = job_fake_store(job, &subject, &held) >= 0;
	apply_xattrs(&subject, &job->wanted, &held);
	good = set_open_times(job, fd) && good;
	apply_acls(&subject, &job->wanted, &held, mode, &mode);
	return good;
}

bool apply_to_descriptor(struct file_job *job, int fd, uid_t made_uid, gid_t made_gid, mode_t made_mode)
{
	uid_t uid;
	gid_t gid;
	bool gives = choose_owner(job, made_uid, made_gid, &uid, &gid);
	mode_t mode = decide_mode(&job->rules, job->entry, &job->old);
	const struct attr_subject subject = subject_of(job, name_now(job));
	struct fs_held held = { .fd = -1 };
	bool good, has_acl, mode_is_off;

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
	if ((job->wanted.xattrs || job->wanted.access) && subject_hold_open(&subject, fd, &held))
		apply_xattrs(&subject, &job->wanted, &held);
	good = set_open_times(job, fd);
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
	int64_t gid = atomic_load(&job->dir->new_gid);
	struct fs_stat st;

	if (gid < 0 && fs_stat_at_fd(fd, &st) == 0) {
		gid = st.gid;
		atomic_store(&job->dir->new_gid, gid);
	}
	return apply_to_descriptor(job, fd, job->dest->uid, (gid_t)gid, made_mode);
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

static bool set_times(struct file_job *job, const char *name)
{
	struct timespec times[2];

	if (!times_of(job, times))
		return false;
	return fs_utimens_at(job->dir->fd, name, times) == 0
	       || task_complain(job->task, role_of(job), errno, job->name, "failed to set times on ", "");
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
	if ((job->wanted.xattrs || job->wanted.access) && subject_hold(&subject, job->dir->fd, name, &held))
		apply_xattrs(&subject, &job->wanted, &held);
	set_times(job, name);
	off |= held.fd >= 0 && apply_acls(&subject, &job->wanted, &held, mode, &mode);
	fs_release(&held);
	if (!entry_is_symlink(job->entry) && off && fs_chmod_at(job->dir->fd, name, mode) < 0)
		task_complain(job->task, role_of(job), errno, job->name, "failed to set permissions on ", "");
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

bool job_touch(struct file_job *job, enum touch_reason reason)
{
	const uint32_t changed = ITEM_REPORT_OWNER | ITEM_REPORT_GROUP | ITEM_REPORT_PERMS;
	bool is_old = reason == TOUCH_UP_TO_DATE, with_times = reason == TOUCH_WRITTEN;
	const struct entry *entry = job->entry;

	/* Whole seconds decide whether a file is up to date; after a comparison of contents the rest is put right as well. */
	if (is_old)
		with_times = job->decision.item_flags & (ITEM_REPORT_TIME | ITEM_REPORT_ATIME)
			     || (job->dest->options->checksum && decide_keeps_time(job->dest->options, entry)
				 && (entry->mtime != job->old.st.mtime || entry->mtime_nsec != job->old.st.mtime_nsec));
	if (job->dest->is_fake) {
		const struct attr_subject subject = subject_of(job, job->name);
		struct fs_held held;
		mode_t none = 0;

		if (!subject_hold(&subject, job->dir->fd, job->name, &held))
			return false;
		bool is_changed = job_fake_store(job, &subject, &held) > 0;

		fs_release(&held);
		touch_attributes(job, &none);
		return (with_times && set_times(job, job->name)) || is_changed;
	}
	mode_t mode = decide_mode(&job->rules, entry, &job->old), old;
	int given = set_owner(job, job->name, job->old.st.uid, job->old.st.gid), changes = given;
	uint32_t *flags = &job->decision.item_flags;
	bool has_acl;

	if (given < 0)
		return false;
	/* The system takes set-id bits from what is given away; stock's items show what is off after that. */
	if (is_old && given && job->old.st.mode & SETID_BITS && fs_lstat_at(job->dir->fd, job->name, &job->old.st) == 0)
		*flags = (*flags & ~changed)
			 | (decide_item_flags(&job->rules, job->task->entries, entry, &job->old, 0) & changed);
	old = job->old.st.mode & PERMISSION_BITS;
	has_acl = touch_attributes(job, &mode);
	/* The ACL has brought the mode's bits along, as far as an item of a file shows. */
	if (is_old && has_acl && entry_is_regular(entry) && !((mode ^ old) & 07000))
		*flags &= ~(uint32_t)ITEM_REPORT_PERMS;
	if (with_times)
		changes += set_times(job, job->name);
	if (!entry_is_symlink(entry) && (mode != old || has_acl || (given && mode & SETID_BITS)))
		changes += fs_chmod_at(job->dir->fd, job->name, mode) == 0
			   || task_complain(job->task, role_of(job), errno, job->name, "failed to set permissions on ", "");
	return changes > 0 || has_acl;
}
