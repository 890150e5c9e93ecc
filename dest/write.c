/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Makes one object of the destination. A temp file is filled, gets its attributes and is then installed, or kept as the part
 * that it is (doc/protocol/03-transfer.md sections 7.2 and 7.5); what replaces something does so by a rename, after its
 * backup.
 */
#include "dest/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dest/alternate.h"
#include "dest/apply.h"
#include "dest/dest.h"
#include "dest/events.h"
#include "dest/job.h"
#include "dest/partial.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "fs/copy.h"
#include "fs/file.h"
#include "lib/block_count.h"

#define UNNAMED_MAX (1u << 20)

/* --- what was there --- */

/* What a new content replaces is to be had again: without its backup the run ends. */
bool job_back_up(struct file_job *job, enum backup_way way)
{
	const struct backup_of of = {
		job->dest, job->task, way == BACKUP_COPY || !entry_is_regular(job->entry) ? "generator" : "receiver",
		job->dir->fd, job->dir->path, job->name,
	};

	if (!job->dest->backups || !job->old.exists || job->backed_up)
		return true;
	/* Whatever has no content is in the way of one that has. */
	if (entry_is_regular(job->entry) && !S_ISREG(job->old.st.mode))
		way = BACKUP_RENAME;
	job->backed_up = dest_back_up(&of, way);
	if (!job->backed_up && entry_is_regular(job->entry))
		atomic_store(&job->dest->stop, STOP_WRITE);
	return job->backed_up;
}

bool job_goes_in_place(const struct file_job *job)
{
	return job->dest->options->inplace && (!job->old.exists || S_ISREG(job->old.st.mode));
}

/* --- a complete file --- */

/* Do new files go through other directories than their own? */
static bool has_places(const struct dest *dest)
{
	return dest->temp_fd >= 0 || options_partial_dir(dest->options);
}

static bool job_create_temp(struct file_job *job, struct fs_temp *temp)
{
	const char *place = job->dest->options->temp_dir;
	int fd = job->dest->temp_fd >= 0 ? job->dest->temp_fd : job->dir->fd;
	bool is_beside = fd == job->dir->fd;

	if ((is_beside ? fs_temp_create : fs_temp_create_elsewhere)(temp, fd, job->name) == 0)
		return true;
	int error = errno;

	/* By the name that was tried; one in a --temp-dir lies below that, without its letters if that is a relative one. */
	if (is_beside || !*temp->name || job->dest->module || error == ECANCELED)
		return task_complain(job->task, "receiver", error, is_beside && *temp->name ? temp->name : job->name,
				     "mkstemp ", " failed");
	task_error(job->task, "receiver", error,
		   *place == '/' ? xasprintf("mkstemp \"%s/%s\" failed", place, temp->name)
				 : xasprintf("mkstemp \"%s/%s/%.*sXXXXXX\" failed", job->dest->top_path, place,
					     (int)strlen(temp->name) - FS_TEMP_SUFFIX_LENGTH, temp->name));
	return false;
}

/* The temp directory may lie on another file system. */
static bool is_away(const struct file_job *job, const struct fs_temp *temp)
{
	struct fs_stat a, b;

	return temp->dir_fd != job->dir->fd
	       && (fs_stat_at_fd(temp->fd, &a) < 0 || fs_lstat_at(job->dir->fd, ".", &b) < 0 || a.dev != b.dev);
}

/* Then the file gets a second temp file, beside its place. */
static bool copy_home(struct file_job *job, const struct fs_temp *temp, struct fs_temp *home)
{
	const struct fs_copy_options how = { .sparse = job->dest->options->sparse };
	struct fs_stat st;
	bool write_error;
	uint64_t copied;

	if (fs_stat_at_fd(temp->fd, &st) < 0 || lseek(temp->fd, 0, SEEK_SET) < 0
	    || fs_temp_create(home, job->dir->fd, job->name) < 0)
		return task_complain(job->task, "receiver", errno, job->name, "mkstemp ", " failed");
	if (fs_copy_content(temp->fd, home->fd, st.size, &how, &copied, &write_error) < 0) {
		job_write_failed(job, errno);
		fs_temp_discard(home);
		return false;
	}
	return true;
}

/* It is complete, and looks as it should. Takes the temp file over: by now it is gone, one way or the other. */
static bool job_install(struct file_job *job, struct fs_temp *temp)
{
	bool is_file = entry_is_regular(job->entry);
	/* Is there a place for it until the end of the run? Where a module hides that, it gets its name at once. */
	bool waits = is_file && job->dest->options->delay_updates && !dest_partial_is_hidden(job->dest, job->dir, job->name);
	bool good = false;

	if (is_file && is_away(job, temp)) {
		struct fs_temp home;
		bool is_copied = copy_home(job, temp, &home);

		fs_temp_discard(temp);
		if (!is_copied)
			return false;
		*temp = home;
		job_apply_to_file(job, temp->fd, 0600);
	}
	if (!waits && !job_back_up(job, BACKUP_LINK)) {
		fs_temp_discard(temp);
		return false;
	}
	if (waits) {
		int place = dest_partial_dir(job->dest, job->dir, job->name, true), error = errno;

		if (place < 0)
			fs_temp_discard(temp);
		else if (!(good = fs_temp_commit_to(temp, place, job->name) == 0))
			error = errno;
		fs_close(place);
		if (good)
			dest_delay(job);
		else
			task_complain(job->task, "receiver", error, job->name, "rename to the partial-dir of ", " failed");
		return good;
	}
	if (is_file && job->dest->logs_steps && job->dest->options->levels.debug[DEBUG_RECV] && !job->temp_name)
		job->temp_name = xstrdup(temp->name);
	if (fs_temp_commit_to(temp, job->dir->fd, job->name) < 0)
		return task_complain(job->task, "receiver", errno, job->name, "rename to ", " failed");
	if (is_file)
		dest_partial_drop(job->dest, job->dir, job->name);
	return true;
}

/* --- a file without a name --- */

/* It is complete and looks as it should: give it its name. The descriptor stays open. */
static bool job_publish(struct file_job *job, int fd)
{
	const struct fs_temp unnamed = { .fd = fd };
	struct fs_temp temp;
	int error;

	if (!job->old.exists && fs_unnamed_publish(fd, job->dir->fd, job->name) == 0)
		return true;
	error = errno;
	if (!job->old.exists && error != EEXIST) {
		/* The system does not let this process name it. */
		atomic_store(&job->dest->no_unnamed, true);
		if (!copy_home(job, &unnamed, &temp))
			return false;
		job_apply_to_file(job, temp.fd, 0600);
		return job_install(job, &temp);
	}
	if (!job_back_up(job, BACKUP_LINK))
		return false;
	pthread_rwlock_rdlock(&job->dest->gate);
	if (fs_temp_reserve(&temp, job->dir->fd, job->name) < 0) {
		error = errno;
	} else if (fs_unnamed_publish(fd, job->dir->fd, temp.name) < 0) {
		error = errno;
		fs_temp_discard(&temp);
	} else {
		error = fs_temp_commit(&temp, job->name) < 0 ? errno : 0;
	}
	pthread_rwlock_unlock(&job->dest->gate);
	if (error)
		task_complain(job->task, "receiver", error, job->name, "rename to ", " failed");
	return !error;
}

/* Such a file gets its attributes and its name, if it was filled. Nobody can open it before that, so the mode that it was made
 * with may be the final one. Closes it. */
static bool finish_unnamed(struct file_job *job, int fd, mode_t made_mode, bool good)
{
	if (good) {
		job_apply_to_file(job, fd, made_mode);
		good = job_publish(job, fd);
	}
	close(fd);
	return good;
}

/* --- an incomplete file --- */

bool dest_keeps_partial(const struct options *options)
{
	return options->partial || options->delay_updates;
}

/* A part that is to be found by its name: at the name of the file itself only where there is no other place for it. */
static bool keep(struct file_job *job, const struct fs_temp *temp, const struct timespec *mtime)
{
	const struct timespec times[2] = { { 0, UTIME_OMIT }, *mtime };
	struct fs_temp home;
	bool is_apart = options_partial_dir(job->dest->options) != NULL, good;
	int place = is_apart ? dest_partial_dir(job->dest, job->dir, job->name, true) : job->dir->fd;

	if (is_away(job, temp)) {
		if (!copy_home(job, temp, &home))
			return false;
		temp = &home;
	}
	job_apply_to_file(job, temp->fd, 0600);
	futimens(temp->fd, times);
	/* Its owner, who has to go on as if nothing had happened, may still be writing: it stays open. */
	good = place >= 0 && (is_apart || job_back_up(job, BACKUP_LINK))
	       && fs_rename_at(temp->dir_fd, temp->name, place, job->name) == 0;
	if (is_apart)
		fs_close(place);
	if (temp == &home)
		fs_temp_discard(&home);
	return good;
}

void job_keep_interrupted(struct file_job *job, const struct fs_temp *temp)
{
	static const struct timespec now = { 0, UTIME_NOW }, oldest = { 0, 0 };
	struct fs_stat st;

	/* What is younger would not be looked at again with --update. */
	if (fs_stat_at_fd(temp->fd, &st) == 0 && st.size)
		keep(job, temp, options_partial_dir(job->dest->options) ? &now : &oldest);
}

/* --- attr files --- */

static bool fill_attr_file(struct file_job *job, int fd)
{
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);
	uint8_t content[ATTR_FILE_SIZE];

	attr_file_encode(content, side ? side->real_size : job->entry->size);
	if (fs_write_all(fd, content, sizeof content) < 0 || (job->dest->options->fsync && fsync(fd) < 0))
		return job_write_failed(job, errno);
	job->copied = ATTR_FILE_SIZE;
	job->counts->blocks = block_count_sum(job->counts->blocks, 1);
	return true;
}

static bool copy_attr(struct file_job *job)
{
	mode_t mode = decide_mode(&job->rules, job->entry, &job->old) & 0777;
	bool unnamed = !atomic_load(&job->dest->no_unnamed) && !has_places(job->dest);
	struct fs_temp temp;

	if (job->old.exists && S_ISREG(job->old.st.mode) && job->old.st.size != ATTR_FILE_SIZE && !job->dest->options->force) {
		task_complain(job->task, "receiver", 0, job->name, "refusing to replace ",
			      ", which is not an attr file (it is not 8 bytes long); --force overrides this");
		atomic_store(&job->dest->stop, STOP_REFUSED);
		return false;
	}
	if (unnamed) {
		int fd = fs_unnamed_create(job->dir->fd, mode);

		if (fd >= 0)
			return finish_unnamed(job, fd, mode, fill_attr_file(job, fd));
		if (errno != EOPNOTSUPP)
			return task_complain(job->task, "receiver", errno, job->name, "mkstemp ", " failed");
		atomic_store(&job->dest->no_unnamed, true);
	}
	if (!job_create_temp(job, &temp))
		return false;
	if (!fill_attr_file(job, temp.fd)) {
		fs_temp_discard(&temp);
		return false;
	}
	job_apply_to_file(job, temp.fd, 0600);
	return job_install(job, &temp);
}

/* --- contents --- */

int job_open_source(struct file_job *job, uint64_t *size)
{
	const struct task *task = job->task;
	const struct options *options = job->dest->options;
	bool follow = options->copy_links || options->copy_unsafe_links;
	const char *name = entry_name(task->entries, job->entry);
	int flags = O_RDONLY | (options->open_noatime ? O_NOATIME : 0), fd = -1;

	name += strspn(name, "/");
	for (size_t i = 0; i < task->sources.count; i++) {
		const struct task_source *source = &task->sources.items[i];

		if (source->base != job->entry->root)
			continue;
		errno = source->error;
		fd = source->root.fd < 0 ? -1 : fs_open(&source->root, name, flags | (follow ? FS_FOLLOW : 0), 0);
		if (fd < 0 && errno == EPERM)
			fd = fs_open(&source->root, name, O_RDONLY | (follow ? FS_FOLLOW : 0), 0);
		break;
	}
	return fs_only_regular(fd, size);
}

static void show_progress(void *job_void, uint64_t done)
{
	struct file_job *job = job_void;

	atomic_store(&job->task->live_done, done);
	if (!done || !job->temp || !dest_keeps_partial(job->dest->options) || atomic_load(&job->dest->stop) != STOP_SIGNAL)
		return;
	job_keep_interrupted(job, job->temp);
	atomic_fetch_sub(&job->dest->keepable, 1);
	/* The process is about to end. */
	for (;;)
		pause();
}

/* Into a new file, or over the old one; from the open source, or from the peer. */
static bool fill(struct file_job *job, int from, int to, uint64_t size, bool in_place)
{
	const struct options *options = job->dest->options;
	struct block_count touched = { .total = 0 };
	struct fs_copy_options how = {
		.sparse = options->sparse, .preallocate = options->preallocate, .in_place = in_place,
		.touched = &touched, .progress = show_progress, .context = job,
	};
	bool write_error = false, good;

	if (job->incoming) {
		good = job->incoming->fill(job->incoming, job, to, in_place);
	} else {
		int result = fs_copy_content(from, to, size, &how, &job->copied, &write_error);

		/* What an alternate destination has does not come from the source. */
		if (job->decision.action != ACTION_TAKE_COPY)
			job->counts->blocks = block_count_sum(job->counts->blocks, touched.total);
		if (result < 0 && write_error)
			return job_write_failed(job, errno);
		good = (result == 0 && job->copied >= size)
		       || job_source_failed(job, result < 0 ? errno : ENODATA, SOURCE_READ);
	}
	if (good && options->fsync && fsync(to) < 0)
		return job_write_failed(job, errno);
	return good;
}

/* From now on, or from now on no more, there is something to keep should the process end. */
static void set_temp(struct file_job *job, struct fs_temp *temp)
{
	if (job->incoming) {
		job->incoming->set_temp(job->incoming, job, temp);
		return;
	}
	job->temp = temp;
	atomic_fetch_add(&job->dest->keepable, temp ? 1 : -1);
}

static bool copy_to_temp(struct file_job *job, int from, uint64_t size)
{
	static const struct timespec now = { 0, UTIME_NOW };
	struct dest *dest = job->dest;
	const bool keeps_partial = dest_keeps_partial(dest->options);
	mode_t mode = decide_mode(&job->rules, job->entry, &job->old) & 0777;
	struct fs_temp temp;
	bool good;

	/* A new, small file of which no part is to be kept needs no name while it is written. */
	if (!job->old.exists && job->entry->size <= UNNAMED_MAX && !atomic_load(&dest->no_unnamed) && !has_places(dest)
	    && !keeps_partial) {
		int fd = fs_unnamed_create(job->dir->fd, mode);

		if (fd >= 0)
			return finish_unnamed(job, fd, mode, fill(job, from, fd, size, false));
		if (errno == EOPNOTSUPP)
			atomic_store(&dest->no_unnamed, true);
	}
	if (!job_create_temp(job, &temp))
		return false;
	set_temp(job, &temp);
	good = fill(job, from, temp.fd, size, false);
	set_temp(job, NULL);
	if (!good) {
		/* Not the whole file, or a wrong one: it may be worth something. */
		if (job->incoming && job->incoming->wrong_digest)
			job->incoming->is_kept = keeps_partial && keep(job, &temp, &now);
		else if (atomic_load(&dest->stop) == STOP_WRITE && keeps_partial)
			job_keep_interrupted(job, &temp);
		fs_temp_discard(&temp);
		return false;
	}
	job->made_name = temp.name;
	job_apply_to_file(job, temp.fd, 0600);
	job->made_name = NULL;
	return job_install(job, &temp);
}

static bool copy_in_place(struct file_job *job, int from, uint64_t size)
{
	mode_t old = job->old.st.mode & PERMISSION_BITS;
	int fd = fs_open_at(job->dir->fd, job->name, O_WRONLY, 0);
	bool is_new = false, good, is_wrong;

	/* A read-only one of our own is made writable for that moment. */
	if (fd < 0 && errno == EACCES && fs_chmod_at(job->dir->fd, job->name, old | S_IWUSR) == 0) {
		fd = fs_open_at(job->dir->fd, job->name, O_WRONLY, 0);
		fs_chmod_at(job->dir->fd, job->name, old);
	}
	if (fd < 0 && errno == ENOENT) {
		fd = fs_open_at(job->dir->fd, job->name, O_WRONLY | O_CREAT | O_EXCL, 0600);
		is_new = fd >= 0;
	}
	if (fd < 0)
		return task_complain(job->task, "receiver", errno, job->name, "open ", " failed");
	if (!job_back_up(job, BACKUP_COPY)) {
		close(fd);
		return false;
	}
	good = fill(job, from, fd, size, true);
	is_wrong = !good && job->incoming && job->incoming->wrong_digest;
	if ((good || is_wrong) && is_new)
		job_apply_to_file(job, fd, 0600);
	if (is_wrong && is_new)
		futimens(fd, NULL);
	close(fd);
	if ((good || is_wrong) && !is_new)
		job_touch(job, good ? TOUCH_WRITTEN : TOUCH_NOT_RIGHT);
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
	struct fs_stat st;
	bool good;
	int fd;

	if (is_obstructed(job))
		return false;
	if (!job->incoming->in_partial)
		return job_goes_in_place(job) ? copy_in_place(job, -1, 0) : copy_to_temp(job, -1, 0);
	/* What had come of the file before is completed where it lies. */
	fd = dest_partial_open(job->dest, job->dir, job->name, O_WRONLY);
	if (fd < 0 || fs_stat_at_fd(fd, &st) < 0) {
		fs_close(fd);
		return task_complain(job->task, "receiver", errno, job->name, "open of the partial file of ", " failed");
	}
	good = fill(job, -1, fd, 0, true);
	if (good)
		apply_to_descriptor(job, fd, st.uid, st.gid, (mode_t)-1);
	close(fd);
	if (!good && job->incoming->wrong_digest)
		job->incoming->is_kept = true;
	if (good && job->dest->options->delay_updates) {
		dest_delay(job);
		return true;
	}
	if (!good || !job_back_up(job, BACKUP_LINK))
		return false;
	int place = dest_partial_dir(job->dest, job->dir, job->name, false);

	good = place >= 0 && fs_rename_at(place, job->name, job->dir->fd, job->name) == 0;
	if (!good)
		task_complain(job->task, "receiver", errno, job->name, "rename to ", " failed");
	fs_close(place);
	if (good)
		dest_partial_leave(job->dest, job->dir->fd);
	return good;
}

bool job_copy(struct file_job *job)
{
	bool in_place = job_goes_in_place(job), good;
	uint64_t size;
	int from;

	if (is_obstructed(job))
		return false;
	if (job->dest->attrs_only)
		return copy_attr(job);
	from = job->decision.action == ACTION_TAKE_COPY
		       ? job_open_alternate(job, job->decision.alternate - 1, job->name, &size)
		       : job_open_source(job, &size);
	if (from < 0)
		return job_source_failed(job, errno, SOURCE_OPEN);
	good = in_place ? copy_in_place(job, from, size) : copy_to_temp(job, from, size);
	close(from);
	return good;
}

/* --- symlinks, devices, specials --- */

bool job_make(struct file_job *job)
{
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);
	const char *target = entry_is_symlink(job->entry) ? entry_target(job->task->entries, job->entry) : NULL;
	uint32_t major = side ? side->rdev_major : 0, minor = side ? side->rdev_minor : 0;
	mode_t made_mode = decide_mode(&job->rules, job->entry, &job->old) & 0700;
	mode_t mode = made_mode | (job->entry->mode & S_IFMT);
	bool is_fake = job->dest->is_fake, has_temp = is_fake || job->old.exists;
	int error = job->dir->obstacle, dir_fd = job->dir->fd, result = 0;
	struct fs_temp temp;

	if (!error && !has_temp)
		result = target ? fs_symlink_at(target, dir_fd, job->name) : fs_mknod_at(dir_fd, job->name, mode, major, minor);
	else if (!error && !is_fake)
		result = target ? fs_temp_symlink(&temp, dir_fd, job->name, target)
				: fs_temp_mknod(&temp, dir_fd, job->name, mode, major, minor);
	else if (!error) /* a file stands for it */
		result = fs_temp_create(&temp, dir_fd, job->name);
	if (result < 0) {
		error = errno;
	} else if (!error && is_fake && target && fs_write_all(temp.fd, target, strlen(target)) < 0) {
		error = errno;
		fs_temp_discard(&temp);
	}
	if (error) {
		char *after = target ? xasprintf(" -> \"%s\" failed", target) : NULL;

		task_complain(job->task, "generator", error, job->name, target ? "symlink " : "mknod ",
			      target ? after : " failed");
		free(after);
		return false;
	}
	if (is_fake)
		apply_fake_to_descriptor(job, temp.fd);
	else
		job_apply(job, has_temp ? temp.name : job->name, made_mode);
	return !has_temp || job_install(job, &temp);
}
