/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a temp file to a file of the destination: backups of what it replaces, partial and delayed files, other file systems. */
#include "dest/install.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dest/apply.h"
#include "dest/backup.h"
#include "dest/dest.h"
#include "dest/events.h"
#include "dest/job.h"
#include "dest/module.h"
#include "dest/partial.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "fs/copy.h"
#include "fs/temp.h"

#define UNNAMED_MAX (1u << 20)

/* --- what was there --- */

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

bool job_back_up_early(struct file_job *job)
{
	return !job_goes_in_place(job) || job_back_up(job, BACKUP_COPY);
}

void job_pretend_backup(struct file_job *job)
{
	if (job->decision.action == ACTION_MAKE || (job->decision.action == ACTION_COPY && !S_ISREG(job->old.st.mode)))
		job_back_up(job, BACKUP_LINK);
}

/* --- a complete file --- */

/* By the name that was tried; one in a --temp-dir lies below that, and without its letters if that is a relative one. */
static void complain_of_temp(struct file_job *job, const struct fs_temp *temp, bool is_beside)
{
	const char *place = job->dest->options->temp_dir;
	struct event event = { .kind = EVENT_TEXT, .log = L_ERROR_XFER, .role = "receiver", .error = errno };

	if (is_beside || !*temp->name || job->dest->module || errno == ECANCELED) {
		task_complain(job->task, "receiver", errno, is_beside && *temp->name ? temp->name : job->name, "mkstemp ",
			      " failed");
		return;
	}
	if (*place == '/')
		event.text = xasprintf("mkstemp \"%s/%s\" failed", place, temp->name);
	else
		event.text = xasprintf("mkstemp \"%s/%s/%.*sXXXXXX\" failed", job->dest->top_path, place,
				       (int)strlen(temp->name) - FS_TEMP_SUFFIX_LENGTH, temp->name);
	task_event(job->task, event);
}

bool job_create_temp(struct file_job *job, struct fs_temp *temp)
{
	int fd = dest_temp_fd(job->dest, job->dir);

	if ((fd == job->dir->fd ? fs_temp_create : fs_temp_create_elsewhere)(temp, fd, job->name) == 0)
		return true;
	complain_of_temp(job, temp, fd == job->dir->fd);
	return false;
}

static bool is_on_file_system_of(int fd, int dir_fd)
{
	struct fs_stat a, b;

	return fs_stat_at_fd(fd, &a) == 0 && fs_lstat_at(dir_fd, ".", &b) == 0 && a.dev == b.dev;
}

/* The temp directory may lie on another file system. */
static bool is_away(const struct file_job *job, const struct fs_temp *temp)
{
	return temp->dir_fd != job->dir->fd && !is_on_file_system_of(temp->fd, job->dir->fd);
}

/* Then the file gets a second temp file, beside its place. */
static bool copy_home(struct file_job *job, const struct fs_temp *temp, struct fs_temp *home)
{
	const struct fs_copy_options how = { .sparse = job->dest->options->sparse };
	struct fs_stat st;
	bool write_error;
	uint64_t copied;

	if (fs_stat_at_fd(temp->fd, &st) < 0 || lseek(temp->fd, 0, SEEK_SET) < 0
	    || fs_temp_create(home, job->dir->fd, job->name) < 0) {
		task_complain(job->task, "receiver", errno, job->name, "mkstemp ", " failed");
		return false;
	}
	if (fs_copy_content(temp->fd, home->fd, st.size, &how, &copied, &write_error) < 0) {
		job_write_failed(job, errno);
		fs_temp_discard(home);
		return false;
	}
	return true;
}

static bool move_home(struct file_job *job, struct fs_temp *temp)
{
	struct fs_temp home;

	if (!is_away(job, temp))
		return true;
	if (!copy_home(job, temp, &home))
		return false;
	fs_temp_discard(temp);
	*temp = home;
	job_apply_to_file(job, temp->fd, 0600);
	return true;
}

static bool park(struct file_job *job, struct fs_temp *temp)
{
	int place = dest_partial_dir(job->dest, job->dir, job->name, true), error = errno;
	bool good = false;

	if (place < 0)
		fs_temp_discard(temp);
	else if (!(good = fs_temp_commit_to(temp, place, job->name) == 0))
		error = errno;
	if (place >= 0)
		close(place);
	if (good)
		dest_delay(job);
	else
		task_complain(job->task, "receiver", error, job->name, "rename to the partial-dir of ", " failed");
	return good;
}

/* Is there a place for it until the end of the run? Where a module hides that, it gets its name at once. */
static bool can_wait(const struct file_job *job)
{
	return job->dest->options->delay_updates && !dest_partial_is_hidden(job->dest, job->dir, job->name);
}

bool job_install(struct file_job *job, struct fs_temp *temp)
{
	bool is_file = entry_is_regular(job->entry), waits = is_file && can_wait(job);

	if ((is_file && !move_home(job, temp)) || (!waits && !job_back_up(job, BACKUP_LINK))) {
		fs_temp_discard(temp);
		return false;
	}
	if (waits)
		return park(job, temp);
	if (is_file && job->dest->logs_steps && job->dest->options->levels.debug[DEBUG_RECV] && !job->temp_name)
		job->temp_name = xstrdup(temp->name);
	if (fs_temp_commit_to(temp, job->dir->fd, job->name) < 0) {
		task_complain(job->task, "receiver", errno, job->name, "rename to ", " failed");
		return false;
	}
	if (is_file)
		dest_partial_drop(job->dest, job->dir, job->name);
	return true;
}

bool job_install_partial(struct file_job *job)
{
	int place;
	bool good;

	if (job->dest->options->delay_updates) {
		dest_delay(job);
		return true;
	}
	if (!job_back_up(job, BACKUP_LINK))
		return false;
	place = dest_partial_dir(job->dest, job->dir, job->name, false);
	good = place >= 0 && fs_rename_at(place, job->name, job->dir->fd, job->name) == 0;
	if (!good)
		task_complain(job->task, "receiver", errno, job->name, "rename to ", " failed");
	if (place >= 0)
		close(place);
	if (good)
		dest_partial_leave(job->dest, job->dir->fd);
	return good;
}

/* --- a file without a name --- */

/* Whoever makes an object under a temp name holds the gate; when the process is ending nobody gets it any more. */
void dest_close_gate(struct dest *dest)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_rwlock_timedwrlock(&dest->gate, &until);
}

int job_create_unnamed(struct file_job *job, mode_t mode)
{
	struct dest *dest = job->dest;
	int fd;

	if (job->old.exists || job->entry->size > UNNAMED_MAX || atomic_load(&dest->no_unnamed) || dest_has_places(dest)
	    || dest_keeps_partial(dest->options))
		return -1;
	fd = fs_unnamed_create(job->dir->fd, mode);
	if (fd < 0 && errno == EOPNOTSUPP)
		atomic_store(&dest->no_unnamed, true);
	return fd;
}

/* The system does not let this process name it. */
static bool publish_copy(struct file_job *job, int fd)
{
	const struct fs_temp unnamed = { .fd = fd };
	struct fs_temp home;

	atomic_store(&job->dest->no_unnamed, true);
	if (!copy_home(job, &unnamed, &home))
		return false;
	job_apply_to_file(job, home.fd, 0600);
	return job_install(job, &home);
}

bool job_publish(struct file_job *job, int fd)
{
	struct fs_temp temp;
	int error;

	if (!job->old.exists && fs_unnamed_publish(fd, job->dir->fd, job->name) == 0)
		return true;
	error = errno;
	if (!job->old.exists && error != EEXIST)
		return publish_copy(job, fd);
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
	good = place >= 0 && (is_apart || job_back_up(job, BACKUP_LINK)) && fs_temp_keep(temp, place, job->name) == 0;
	if (is_apart && place >= 0)
		close(place);
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

bool job_keep_unverified(struct file_job *job, const struct fs_temp *temp)
{
	static const struct timespec now = { 0, UTIME_NOW };

	return dest_keeps_partial(job->dest->options) && keep(job, temp, &now);
}
