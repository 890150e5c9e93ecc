/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Contents of one destination file. What replaces something does so by a rename. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "attrs/hint.h"
#include "dest/alternate.h"
#include "dest/apply.h"
#include "dest/dest.h"
#include "dest/events.h"
#include "dest/fake.h"
#include "dest/install.h"
#include "dest/job.h"
#include "dest/partial.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "dest/write.h"
#include "fs/copy.h"
#include "fs/file.h"
#include "fs/temp.h"
#include "lib/block_count.h"
#include "lib/exit.h"
#include "wire/request.h"

#define PERMISSION_BITS 07777u

/* --- attr files --- */

static bool fill_attr_file(struct file_job *job, int fd)
{
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);
	uint8_t content[ATTR_FILE_SIZE];

	attr_file_encode(content, side ? side->real_size : job->entry->size);
	if (fs_write_all(fd, content, sizeof content) < 0 || (job->dest->options->fsync && fsync(fd) < 0)) {
		job_write_failed(job, errno);
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
		job_apply_to_file(job, fd, made_mode);
		good = job_publish(job, fd);
	}
	close(fd);
	return good;
}

/* Is what stands there an attr file, or did the operator say that it may go? */
static bool may_replace(struct file_job *job)
{
	if (!job->old.exists || !S_ISREG(job->old.st.mode) || job->old.st.size == ATTR_FILE_SIZE)
		return true;
	if (job->dest->options->force)
		return true;
	task_complain(job->task, "receiver", 0, job->name, "refusing to replace ",
		      ", which is not an attr file (it is not 8 bytes long); --force overrides this");
	atomic_store(&job->dest->stop, STOP_REFUSED);
	return false;
}

static bool copy_attr(struct file_job *job)
{
	mode_t mode = decide_mode(&job->rules, job->entry, &job->old) & 0777;
	struct fs_temp temp;
	int fd = -1;

	if (!may_replace(job))
		return false;
	bool unnamed = !atomic_load(&job->dest->no_unnamed) && !dest_has_places(job->dest);

	if (unnamed)
		fd = fs_unnamed_create(job->dir->fd, mode);
	if (fd >= 0)
		return copy_attr_unnamed(job, fd, mode);
	if (unnamed && errno != EOPNOTSUPP) {
		task_complain(job->task, "receiver", errno, job->name, "mkstemp ", " failed");
		return false;
	}
	if (unnamed)
		atomic_store(&job->dest->no_unnamed, true);
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
	if (!done || !job->temp || !dest_keeps_partial(job->dest->options) || atomic_load(&job->dest->stop) != STOP_SIGNAL)
		return;
	job_keep_interrupted(job, job->temp);
	atomic_fetch_sub(&job->dest->keepable, 1);
	/* The process is about to end. */
	for (;;)
		pause();
}

static bool move_content(struct file_job *job, int from, int to, uint64_t size, bool in_place)
{
	const struct options *options = job->dest->options;
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
	bool good = job->incoming ? job->incoming->fill(job->incoming, job, to, in_place)
				  : move_content(job, from, to, size, in_place);

	if (good && job->dest->options->fsync && fsync(to) < 0) {
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
	else if (atomic_load(&job->dest->stop) == STOP_WRITE && dest_keeps_partial(job->dest->options))
		job_keep_interrupted(job, temp);
	fs_temp_discard(temp);
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

/* Nothing of a small file is worth keeping, so it needs no name before it is complete; and a name costs. */
static bool copy_unnamed(struct file_job *job, int from, uint64_t size, int fd, mode_t made_mode)
{
	bool good = fill(job, from, fd, size, false);

	if (good) {
		job_apply_to_file(job, fd, made_mode);
		good = job_publish(job, fd);
	}
	close(fd);
	return good;
}

static bool copy_to_temp(struct file_job *job, int from, uint64_t size)
{
	mode_t mode = decide_mode(&job->rules, job->entry, &job->old) & 0777;
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
	job_apply_to_file(job, temp.fd, 0600);
	job->made_name = NULL;
	return job_install(job, &temp);
}

/* What had come of the file before is completed where it lies. */
static bool complete_partial(struct file_job *job)
{
	int fd = dest_partial_open(job->dest, job->dir, job->name, O_WRONLY);
	struct fs_stat st;
	bool good;

	if (fd < 0 || fs_stat_at_fd(fd, &st) < 0) {
		task_complain(job->task, "receiver", errno, job->name, "open of the partial file of ", " failed");
		return false;
	}
	good = fill(job, -1, fd, 0, true);
	if (good)
		apply_to_descriptor(job, fd, st.uid, st.gid, (mode_t)-1);
	close(fd);
	if (!good && job->incoming->wrong_digest)
		job->incoming->is_kept = true;
	return good && job_install_partial(job);
}

/* Open the file itself for writing; a read-only one of our own is made writable for that moment. */
static int open_in_place(struct file_job *job, bool *is_new)
{
	mode_t old = job->old.st.mode & PERMISSION_BITS;
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
		job_apply_to_file(job, fd, 0600);
	if (is_wrong && is_new)
		futimens(fd, NULL);
	close(fd);
	if ((good || is_wrong) && !is_new)
		apply_in_place(job, good);
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
	return job->dest->attrs_only ? copy_attr(job) : copy_content(job);
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
	apply_fake_to_descriptor(job, temp.fd);
	return job_install(job, &temp);
}

bool job_make(struct file_job *job)
{
	mode_t made_mode = decide_mode(&job->rules, job->entry, &job->old) & 0700;
	struct fs_temp temp;

	if (job->dir->obstacle) {
		make_failed(job, job->dir->obstacle);
		return false;
	}
	if (job->dest->is_fake)
		return make_fake(job);
	if (!job->old.exists) {
		if (make_new_object(job, made_mode) < 0) {
			make_failed(job, errno);
			return false;
		}
		job_apply(job, job->name, made_mode);
		return true;
	}
	if (make_temp_object(job, &temp, made_mode) < 0) {
		make_failed(job, errno);
		return false;
	}
	job_apply(job, temp.name, made_mode);
	return job_install(job, &temp);
}
