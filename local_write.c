/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Contents and attributes of one destination file. What replaces something does so by a rename. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "attrs/hint.h"
#include "fs/copy.h"
#include "fs/file.h"
#include "fs/unnamed.h"
#include "lib/block_count.h"
#include "lib/exit.h"
#include "local_alternate.h"
#include "local_install.h"
#include "local_partial.h"
#include "local_pull.h"
#include "wire/request.h"

#define PERMISSION_BITS 07777u
#define SETID_BITS (S_ISUID | S_ISGID)

/* --- attributes --- */

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
	bool keeps_atime = job->local->options->atimes && side && !entry_is_symlink(job->entry);

	times[0] = (struct timespec){ keeps_atime ? (time_t)side->atime : 0, keeps_atime ? 0 : UTIME_OMIT };
	if (!keeps_atime && side && job->local->attrs_only && entry_is_regular(job->entry))
		times[0] = attr_hint_time(side->real_size);
	times[1] = (struct timespec){ (time_t)job->entry->mtime, (long)job->entry->mtime_nsec };
	if (!decide_keeps_time(job->local->options, job->entry))
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
static struct dressed dressed_as(const struct file_job *job, const char *name)
{
	bool same_kind = job->dest.exists && (job->dest.st.mode & S_IFMT) == (job->entry->mode & S_IFMT);

	return (struct dressed){
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

/* --fake-super: nothing of this needs root. */
static bool dress_fake_descriptor(struct file_job *job, int fd)
{
	const struct dressed dressed = dressed_as(job, name_now(job));
	struct timespec times[2];
	struct fs_held held;
	mode_t mode = 0;
	bool good;

	if (!dressed_hold_open(&dressed, fd, &held))
		return false;
	good = job_fake_store(job, &dressed, &held) >= 0;
	dress_xattrs(&dressed, &job->wanted, &held);
	times_of(job, times);
	if ((times[0].tv_nsec != UTIME_OMIT || times[1].tv_nsec != UTIME_OMIT) && futimens(fd, times) < 0) {
		task_complain(job->task, "receiver", errno, name_now(job), "failed to set times on ", "");
		good = false;
	}
	dress_acls(&dressed, &job->wanted, &held, mode, &mode);
	return good;
}

/* Where the owner cannot be set, nothing else is. */
static bool dress_descriptor(struct file_job *job, int fd, uid_t made_uid, gid_t made_gid, mode_t made_mode)
{
	uid_t uid;
	gid_t gid;
	bool gives = choose_owner(job, made_uid, made_gid, &uid, &gid);
	mode_t mode = decide_mode(&job->rules, job->entry, &job->dest);
	struct timespec times[2];
	const struct dressed dressed = dressed_as(job, name_now(job));
	struct fs_held held = { .fd = -1 };
	bool good = true, has_acl, mode_is_off;

	if (job->local->is_fake)
		return dress_fake_descriptor(job, fd);
	if (gives && job->local->tells_steps)
		local_debug_owner(job->task, name_now(job), made_uid, uid, made_gid, gid);
	if (gives && fchown(fd, uid, gid) < 0) {
		task_complain(job->task, role_of(job), errno, name_now(job), uid == (uid_t)-1 ? "chgrp " : "chown ", " failed");
		/* What it should let others do was meant for another owner. */
		mode = (mode & 0700) | 0600;
		if (mode != made_mode)
			fchmod(fd, mode);
		return false;
	}
	if (wants_attributes(job) && dressed_hold_open(&dressed, fd, &held))
		dress_xattrs(&dressed, &job->wanted, &held);
	times_of(job, times);
	if ((times[0].tv_nsec != UTIME_OMIT || times[1].tv_nsec != UTIME_OMIT) && futimens(fd, times) < 0) {
		task_complain(job->task, "receiver", errno, name_now(job), "failed to set times on ", "");
		good = false;
	}
	has_acl = held.fd >= 0 && dress_acls(&dressed, &job->wanted, &held, mode, &mode);
	mode_is_off = has_acl || mode != made_mode || local_dir_has_default_acl(job->dir) || (gives && mode & SETID_BITS);
	if (mode_is_off && fchmod(fd, mode) < 0) {
		task_complain(job->task, "receiver", errno, name_now(job), "failed to set permissions on ", "");
		good = false;
	}
	return good;
}

bool job_dress_file(struct file_job *job, int fd, mode_t made_mode)
{
	return dress_descriptor(job, fd, job->local->uid, group_of_new(job, fd), made_mode);
}

/* 1: set, 0: nothing to set, -1: failed, and nothing else is to be set then. */
static int set_owner(struct file_job *job, const char *name, uint32_t old_uid, uint32_t old_gid)
{
	uid_t uid;
	gid_t gid;

	if (!choose_owner(job, old_uid, old_gid, &uid, &gid))
		return 0;
	if (job->local->tells_steps)
		local_debug_owner(job->task, name, old_uid, uid, old_gid, gid);
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
void job_dress(struct file_job *job, const char *name, mode_t made_mode)
{
	mode_t mode = decide_mode(&job->rules, job->entry, &job->dest);
	const struct dressed dressed = dressed_as(job, job->name);
	struct fs_held held = { .fd = -1 };
	struct fs_stat st;

	if (fs_lstat_at(job->dir->fd, name, &st) < 0) {
		task_complain(job->task, role_of(job), errno, job->name, "stat ", " failed");
		return;
	}
	int given = set_owner(job, name, st.uid, st.gid);
	bool off = given || mode != made_mode || local_dir_has_default_acl(job->dir);

	if (given < 0)
		return;
	if (wants_attributes(job) && dressed_hold(&dressed, job->dir->fd, name, &held))
		dress_xattrs(&dressed, &job->wanted, &held);
	set_times(job, name);
	off |= held.fd >= 0 && dress_acls(&dressed, &job->wanted, &held, mode, &mode);
	fs_release(&held);
	if (!entry_is_symlink(job->entry) && off)
		set_mode(job, name, mode);
}

/* ACLs and extended attributes of what is there already; true if the mode has to be set again. */
static bool touch_attributes(struct file_job *job, mode_t *mode)
{
	const uint32_t flags = job->decision.item_flags;
	const struct dressed dressed = dressed_as(job, job->name);
	struct fs_held held;
	bool has_acl = false;

	if (!(flags & (ITEM_REPORT_ACL | ITEM_REPORT_XATTR)) || !dressed_hold(&dressed, job->dir->fd, job->name, &held))
		return false;
	if (flags & ITEM_REPORT_XATTR)
		job->set_xattrs = dress_xattrs(&dressed, &job->wanted, &held);
	if (flags & ITEM_REPORT_ACL)
		has_acl = dress_acls(&dressed, &job->wanted, &held, *mode, mode);
	fs_release(&held);
	return has_acl;
}

/* Whole seconds decide whether a file is up to date; after a comparison of contents the rest is put right as well. */
static bool times_need_setting(const struct file_job *job)
{
	const struct entry *entry = job->entry;

	if (job->decision.item_flags & (ITEM_REPORT_TIME | ITEM_REPORT_ATIME))
		return true;
	return job->local->options->checksum && decide_keeps_time(job->local->options, entry)
	       && (entry->mtime != job->dest.st.mtime || entry->mtime_nsec != job->dest.st.mtime_nsec);
}

/* Its ACLs were set when it was entered. */
void job_touch_directory(struct file_job *job)
{
	const struct dressed dressed = dressed_as(job, job->name);
	struct fs_held held;

	if (!dressed_hold(&dressed, job->dir->fd, job->name, &held))
		return;
	dress_xattrs(&dressed, &job->wanted, &held);
	fs_release(&held);
	atomic_store(&job->dir->acl_state, ACL_UNKNOWN);
}

/* What is there already, with --fake-super; true if anything was set. */
static bool touch_fake(struct file_job *job, bool with_times)
{
	const struct dressed dressed = dressed_as(job, job->name);
	struct fs_held held;
	mode_t mode = 0;
	bool changed;

	if (!dressed_hold(&dressed, job->dir->fd, job->name, &held))
		return false;
	changed = job_fake_store(job, &dressed, &held) > 0;
	fs_release(&held);
	touch_attributes(job, &mode);
	return (with_times && set_times(job, job->name)) || changed;
}

/* The system takes set-id bits from what is given away; stock's items tell of what is off after that. */
static void look_again(struct file_job *job)
{
	const uint32_t changed = ITEM_REPORT_OWNER | ITEM_REPORT_GROUP | ITEM_REPORT_PERMS;
	uint32_t *flags = &job->decision.item_flags;

	if (fs_lstat_at(job->dir->fd, job->name, &job->dest.st) == 0)
		*flags = (*flags & ~changed)
			 | (decide_item_flags(&job->rules, job->task->entries, job->entry, &job->dest, 0) & changed);
}

bool job_touch(struct file_job *job)
{
	if (job->local->is_fake)
		return touch_fake(job, times_need_setting(job));
	mode_t mode = decide_mode(&job->rules, job->entry, &job->dest), old;
	int given = set_owner(job, job->name, job->dest.st.uid, job->dest.st.gid), changes = given;
	bool has_acl;

	if (given < 0)
		return false;
	if (given && job->dest.st.mode & SETID_BITS)
		look_again(job);
	old = job->dest.st.mode & PERMISSION_BITS;
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

/* --- attr files --- */

void job_write_failed(struct file_job *job, int error)
{
	task_complain(job->task, "receiver", error, job->name, "write failed on ", "");
	atomic_store(&job->local->stop, STOP_WRITE);
}

static bool fill_attr_file(struct file_job *job, int fd)
{
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);
	uint8_t content[ATTR_FILE_SIZE];
	ssize_t written;

	attr_file_encode(content, side ? side->real_size : job->entry->size);
	written = write(fd, content, sizeof content);
	if (written != ATTR_FILE_SIZE || (job->local->options->fsync && fsync(fd) < 0)) {
		job_write_failed(job, written < 0 ? errno : ENOSPC);
		return false;
	}
	job->copied = ATTR_FILE_SIZE;
	job->counts->blocks = block_count_sum(job->counts->blocks, 1);
	return true;
}

/* The mode that the file is made with: nobody can open it before it has its name, so the final one will do. */
static bool copy_attr_unnamed(struct file_job *job, int fd, mode_t made_mode)
{
	bool good = fill_attr_file(job, fd);

	if (good) {
		job_dress_file(job, fd, made_mode);
		good = job_publish(job, fd);
	}
	close(fd);
	return good;
}

/* Is what stands there an attr file, or did the operator say that it may go? */
static bool may_replace(struct file_job *job)
{
	if (!job->dest.exists || !S_ISREG(job->dest.st.mode) || job->dest.st.size == ATTR_FILE_SIZE)
		return true;
	if (job->local->options->force)
		return true;
	task_complain(job->task, "receiver", 0, job->name, "refusing to replace ",
		      ", which is not an attr file (it is not 8 bytes long); --force overrides this");
	atomic_store(&job->local->stop, STOP_REFUSED);
	return false;
}

static bool copy_attr(struct file_job *job)
{
	mode_t mode = decide_mode(&job->rules, job->entry, &job->dest) & 0777;
	struct fs_temp temp;
	int fd = -1;

	if (!may_replace(job))
		return false;
	bool unnamed = !atomic_load(&job->local->no_unnamed) && !local_has_places(job->local);

	if (unnamed)
		fd = fs_unnamed_create(job->dir->fd, mode);
	if (fd >= 0)
		return copy_attr_unnamed(job, fd, mode);
	if (unnamed && errno != EOPNOTSUPP) {
		task_complain(job->task, "receiver", errno, job->name, "mkstemp ", " failed");
		return false;
	}
	if (unnamed)
		atomic_store(&job->local->no_unnamed, true);
	if (!job_create_temp(job, &temp))
		return false;
	if (!fill_attr_file(job, temp.fd)) {
		fs_temp_discard(&temp);
		return false;
	}
	job_dress_file(job, temp.fd, 0600);
	return job_install(job, &temp);
}

/* --- contents --- */

int job_open_source(struct file_job *job, uint64_t *size)
{
	const struct task *task = job->task;
	const struct options *options = job->local->options;
	bool follow = options->copy_links || options->copy_unsafe_links;
	const char *name = entry_name(task->entries, job->entry);
	int flags = O_RDONLY | (options->open_noatime ? O_NOATIME : 0), fd = -1;

	while (*name == '/')
		name++;
	for (size_t i = 0; i < task->sources.count; i++) {
		const struct task_source *source = &task->sources.items[i];

		if (source->base != job->entry->root)
			continue;
		errno = source->error;
		fd = source->root.fd < 0 ? -1 : (follow ? fs_open_follow : fs_open)(&source->root, name, flags, 0);
		if (fd < 0 && errno == EPERM)
			fd = (follow ? fs_open_follow : fs_open)(&source->root, name, O_RDONLY, 0);
		break;
	}
	return fs_only_regular(fd, size);
}

static void show_progress(void *job_void, uint64_t done)
{
	struct file_job *job = job_void;

	atomic_store(&job->task->live_done, done);
	if (!done || !job->temp || !local_keeps_partial(job->local->options) || atomic_load(&job->local->stop) != STOP_SIGNAL)
		return;
	job_keep_interrupted(job, job->temp);
	/* The process is about to end. */
	for (;;)
		pause();
}

static bool move_content(struct file_job *job, int from, int to, uint64_t size, bool in_place)
{
	const struct options *options = job->local->options;
	struct block_count touched = { .total = 0 };
	struct fs_copy_options how = {
		.sparse = options->sparse, .preallocate = options->preallocate, .in_place = in_place,
		.touched = &touched, .progress = show_progress, .context = job,
	};
	bool write_error = false;
	int result = fs_copy_content(from, to, size, &how, &job->copied, &write_error);

	/* What an alternate destination has does not come from the source. */
	if (job->decision.action != ACTION_TAKE_COPY)
		job->counts->blocks = block_count_sum(job->counts->blocks, touched.total);
	if (result < 0) {
		if (write_error)
			job_write_failed(job, errno);
		else
			job_source_failed(job, errno, SOURCE_READ);
		return false;
	}
	if (job->copied < size) {
		job_source_failed(job, ENODATA, SOURCE_READ);
		return false;
	}
	return true;
}

/* Into a new file, or over the old one; from the open source, or from the peer. */
static bool fill(struct file_job *job, int from, int to, uint64_t size, bool in_place)
{
	bool good = job->incoming ? incoming_fill(job->incoming, job, to, in_place)
				  : move_content(job, from, to, size, in_place);

	if (good && job->local->options->fsync && fsync(to) < 0) {
		job_write_failed(job, errno);
		return false;
	}
	return good;
}

/* Not the whole file: a part of it may be worth something. */
static void give_up(struct file_job *job, struct fs_temp *temp)
{
	if (job->incoming && job->incoming->wrong_digest)
		job->incoming->is_kept = job_keep_unverified(job, temp);
	else if (atomic_load(&job->local->stop) == STOP_WRITE && local_keeps_partial(job->local->options))
		job_keep_interrupted(job, temp);
	fs_temp_discard(temp);
}

/* From now on, or from now on no more, there is something to keep should the process end. */
static void set_temp(struct file_job *job, struct fs_temp *temp)
{
	if (job->incoming)
		incoming_set_temp(job->incoming, job, temp);
	else
		job->temp = temp;
}

/* Nothing of a small file is worth keeping, so it needs no name before it is complete; and a name costs. */
static bool copy_unnamed(struct file_job *job, int from, uint64_t size, int fd, mode_t made_mode)
{
	bool good = fill(job, from, fd, size, false);

	if (good) {
		job_dress_file(job, fd, made_mode);
		good = job_publish(job, fd);
	}
	close(fd);
	return good;
}

static bool copy_to_temp(struct file_job *job, int from, uint64_t size)
{
	mode_t mode = decide_mode(&job->rules, job->entry, &job->dest) & 0777;
	int unnamed = job_create_unnamed(job, mode);
	struct fs_temp temp;
	bool good;

	if (unnamed >= 0)
		return copy_unnamed(job, from, size, unnamed, mode);
	if (!job_create_temp(job, &temp))
		return false;
	set_temp(job, &temp);
	good = fill(job, from, temp.fd, size, false);
	set_temp(job, NULL);
	if (!good) {
		give_up(job, &temp);
		return false;
	}
	job->made_name = temp.name;
	job_dress_file(job, temp.fd, 0600);
	job->made_name = NULL;
	return job_install(job, &temp);
}

/* What had come of the file before is completed where it lies. */
static bool complete_partial(struct file_job *job)
{
	int fd = local_partial_open(job->local, job->dir, job->name, O_WRONLY);
	struct fs_stat st;
	bool good;

	if (fd < 0 || fs_stat_at_fd(fd, &st) < 0) {
		task_complain(job->task, "receiver", errno, job->name, "open of the partial file of ", " failed");
		return false;
	}
	good = fill(job, -1, fd, 0, true);
	if (good)
		dress_descriptor(job, fd, st.uid, st.gid, (mode_t)-1);
	close(fd);
	if (!good && job->incoming->wrong_digest)
		job->incoming->is_kept = true;
	return good && job_install_partial(job);
}

/* Open the file itself for writing; a read-only one of our own is made writable for that moment. */
static int open_in_place(struct file_job *job, bool *is_new)
{
	mode_t old = job->dest.st.mode & PERMISSION_BITS;
	int fd = fs_open_at(job->dir->fd, job->name, O_WRONLY, 0);

	*is_new = false;
	if (fd < 0 && errno == EACCES && fs_chmod_at(job->dir->fd, job->name, old | S_IWUSR) == 0) {
		fd = fs_open_at(job->dir->fd, job->name, O_WRONLY, 0);
		fs_chmod_at(job->dir->fd, job->name, old);
	}
	if (fd < 0 && errno == ENOENT) {
		fd = fs_open_at(job->dir->fd, job->name, O_WRONLY | O_CREAT | O_EXCL, 0600);
		*is_new = fd >= 0;
	}
	return fd;
}

/* What has not come right keeps the time of now, so that it is looked at again. */
static void dress_in_place(struct file_job *job, bool with_times)
{
	if (job->local->is_fake) {
		touch_fake(job, with_times);
		return;
	}
	mode_t mode = decide_mode(&job->rules, job->entry, &job->dest);
	int given = set_owner(job, job->name, job->dest.st.uid, job->dest.st.gid);
	bool has_acl;

	if (given < 0)
		return;
	has_acl = touch_attributes(job, &mode);
	if (with_times)
		set_times(job, job->name);
	if (has_acl || mode != (job->dest.st.mode & PERMISSION_BITS) || (given && mode & SETID_BITS))
		set_mode(job, job->name, mode);
}

static bool copy_in_place(struct file_job *job, int from, uint64_t size)
{
	bool is_new, good, is_wrong;
	int fd = open_in_place(job, &is_new);

	if (fd < 0) {
		task_complain(job->task, "receiver", errno, job->name, "open ", " failed");
		return false;
	}
	if (!job_back_up_early(job)) {
		close(fd);
		return false;
	}
	good = fill(job, from, fd, size, true);
	is_wrong = !good && job->incoming && job->incoming->wrong_digest;
	if ((good || is_wrong) && is_new)
		job_dress_file(job, fd, 0600);
	if (is_wrong && is_new)
		futimens(fd, NULL);
	close(fd);
	if ((good || is_wrong) && !is_new)
		dress_in_place(job, good);
	return good;
}

/* The directory is none, and stays that. */
static bool is_obstructed(struct file_job *job)
{
	const char *what = job_goes_in_place(job) ? "open " : "mkstemp ";

	if (job->dir->obstacle)
		task_complain(job->task, "receiver", job->dir->obstacle, job->name, what, " failed");
	return job->dir->obstacle;
}

bool job_receive(struct file_job *job)
{
	if (is_obstructed(job))
		return false;
	if (job->incoming->in_partial)
		return complete_partial(job);
	return job_goes_in_place(job) ? copy_in_place(job, -1, 0) : copy_to_temp(job, -1, 0);
}

static bool copy_content(struct file_job *job)
{
	uint64_t size;
	bool in_place = job_goes_in_place(job), good;
	int from = job->decision.action == ACTION_TAKE_COPY ? job_open_alternate(job, job->decision.alternate - 1, &size)
							    : job_open_source(job, &size);

	if (from < 0) {
		job_source_failed(job, errno, SOURCE_OPEN);
		return false;
	}
	good = in_place ? copy_in_place(job, from, size) : copy_to_temp(job, from, size);
	close(from);
	return good;
}

bool job_copy(struct file_job *job)
{
	if (is_obstructed(job))
		return false;
	return job->local->attrs_only ? copy_attr(job) : copy_content(job);
}

/* --- symlinks, devices, specials --- */

static int make_temp_object(struct file_job *job, struct fs_temp *temp, mode_t mode)
{
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);

	if (entry_is_symlink(job->entry))
		return fs_temp_symlink(temp, job->dir->fd, job->name, entry_target(job->task->entries, job->entry));
	return fs_temp_mknod(temp, job->dir->fd, job->name, (job->entry->mode & S_IFMT) | mode, side ? side->rdev_major : 0,
			     side ? side->rdev_minor : 0);
}

static int make_new_object(struct file_job *job, mode_t mode)
{
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);

	if (entry_is_symlink(job->entry))
		return fs_symlink_at(entry_target(job->task->entries, job->entry), job->dir->fd, job->name);
	return fs_mknod_at(job->dir->fd, job->name, (job->entry->mode & S_IFMT) | mode, side ? side->rdev_major : 0,
			   side ? side->rdev_minor : 0);
}

static void make_failed(struct file_job *job, int error)
{
	if (entry_is_symlink(job->entry)) {
		struct strbuf after = STRBUF_INIT;

		strbuf_addf(&after, " -> \"%s\" failed", entry_target(job->task->entries, job->entry));
		task_complain(job->task, "generator", error, job->name, "symlink ", strbuf_text(&after));
		strbuf_free(&after);
	} else {
		task_complain(job->task, "generator", error, job->name, "mknod ", " failed");
	}
}

static bool make_fake(struct file_job *job)
{
	struct fs_temp temp;

	if (job_fake_make(job, &temp) < 0) {
		make_failed(job, errno);
		return false;
	}
	dress_fake_descriptor(job, temp.fd);
	return job_install(job, &temp);
}

bool job_make(struct file_job *job)
{
	mode_t made_mode = decide_mode(&job->rules, job->entry, &job->dest) & 0700;
	struct fs_temp temp;

	if (job->dir->obstacle) {
		make_failed(job, job->dir->obstacle);
		return false;
	}
	if (job->local->is_fake)
		return make_fake(job);
	if (!job->dest.exists) {
		if (make_new_object(job, made_mode) < 0) {
			make_failed(job, errno);
			return false;
		}
		job_dress(job, job->name, made_mode);
		return true;
	}
	if (make_temp_object(job, &temp, made_mode) < 0) {
		make_failed(job, errno);
		return false;
	}
	job_dress(job, temp.name, made_mode);
	return job_install(job, &temp);
}
