/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Directories beside the files of the destination: of temp files, of partial files, of delayed ones. */
#include "dest/partial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dest/backup.h"
#include "dest/contents.h"
#include "dest/dest.h"
#include "dest/job.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/exit.h"

/* One file that waits. */
struct delayed {
	uint64_t position; /* in the list */
	int32_t ndx;
	char *dir_path, *name;
	bool is_in_the_way; /* what it replaces: no file */
	bool replaces, backed_up;
};

struct places {
	const char *partial;     /* as given; NULL: there is none */
	int partial_fd;          /* it is absolute: one for all; -1: one for each directory */
	pthread_mutex_t lock;    /* on the rest */
	VEC(struct delayed) delayed;
};

/* --- the beginning and the end --- */

void dest_places_begin(struct dest *dest)
{
	const struct options *options = dest->options;
	const char *temp_dir = dest->top.fd < 0 ? NULL : options->temp_dir;
	struct places *places = dest->places = xcalloc(1, sizeof *places);

	places->partial = options_partial_dir(options);
	places->partial_fd = -1;
	pthread_mutex_init(&places->lock, NULL);
	dest->temp_fd = temp_dir ? dest_open_named(dest, temp_dir, O_PATH | O_DIRECTORY) : -1;
	if (!temp_dir || dest->temp_fd >= 0)
		return;
	log_set_role("Receiver");
	if (errno == ENOTDIR)
		die(EXIT_SYNTAX, "The temp-dir is not a directory: %s", temp_dir);
	if (errno == ENOENT)
		die(EXIT_SYNTAX, "The temp-dir does not exist: %s", temp_dir);
	die_errno(EXIT_FILEIO, errno, "cannot open the temp-dir %s", temp_dir);
}

static void free_delayed(struct places *places)
{
	for (size_t i = 0; i < places->delayed.count; i++) {
		free(places->delayed.items[i].dir_path);
		free(places->delayed.items[i].name);
	}
	vec_free(&places->delayed);
}

void dest_places_free(struct dest *dest)
{
	struct places *places = dest->places;

	if (!places)
		return;
	free_delayed(places);
	fs_close(dest->temp_fd);
	fs_close(places->partial_fd);
	pthread_mutex_destroy(&places->lock);
	free(places);
	dest->places = NULL;
}

/* --- partial files --- */

/* An absolute one is made if need be, but only itself. Without it nothing is kept. */
static int shared_dir(const struct dest *dest, struct places *places, bool make)
{
	const int flags = O_PATH | O_DIRECTORY;
	char leaf[256];
	int fd, parent = -1;

	pthread_mutex_lock(&places->lock);
	if (places->partial_fd < 0)
		places->partial_fd = dest_open_named(dest, places->partial, flags);
	if (places->partial_fd < 0 && errno == ENOENT && make && dest->module) {
		char *clean = dest_named_in_module(dest, places->partial), *slash;
		size_t length = strlen(clean);

		while (length && clean[length - 1] == '/')
			clean[--length] = '\0';
		slash = strrchr(clean, '/');
		if (snprintf(leaf, sizeof leaf, "%s", slash ? slash + 1 : clean) < (int)sizeof leaf) {
			if (slash)
				*slash = '\0';
			parent = fs_open(dest->module->root, slash ? clean : ".", flags | FS_FOLLOW, 0);
		}
		free(clean);
	} else if (places->partial_fd < 0 && errno == ENOENT && make) {
		int link_flag = options_link_flag(dest->options);

		parent = options_confine(dest->options, fs_operator_parent(places->partial, link_flag, leaf));
	}
	if (parent >= 0 && fs_mkdir_at(parent, leaf, 0700) == 0)
		places->partial_fd = fs_open_at(parent, leaf, flags, 0);
	fs_close(parent);
	fd = places->partial_fd < 0 ? -1 : fcntl(places->partial_fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&places->lock);
	return fd;
}

enum step {
	STEP_FIND,
	STEP_MAKE,    /* make it if it is missing */
	STEP_REPLACE, /* the same, and what is no directory has to give way to one */
};

/* The directory that a relative path leads to from `dir_fd`, itself made if need be; its parent and its own name instead, if
 * they are asked for. No link is followed: a name may be the peer's. */
static int walk(int dir_fd, const char *path, enum step step, char **leaf)
{
	const int flags = O_PATH | O_DIRECTORY;
	int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);

	while (fd >= 0 && *path) {
		size_t length = strcspn(path, "/");
		char *name = xstrndup(path, length);

		path += length + strspn(path + length, "/");
		if (leaf && !*path) {
			*leaf = name;
			return fd;
		}
		int next = fs_open_at(fd, name, flags, 0), error;

		if (next < 0 && !*path && step != STEP_FIND) {
			if (step == STEP_REPLACE && (errno == ENOTDIR || errno == ELOOP))
				fs_unlink_at(fd, name);
			if (fs_mkdir_at(fd, name, 0700) == 0 || errno == EEXIST)
				next = fs_open_at(fd, name, flags, 0);
		}
		error = errno;
		free(name);
		close(fd);
		fd = next;
		errno = error;
	}
	return fd;
}

/* From the destination, or from the module's root. */
static char *partial_path(const struct dest *dest, const struct dest_dir *dir)
{
	const char *partial = dest->places->partial;

	return *partial == '/' || !*dir->path ? xstrdup(partial) : xasprintf("%s/%s", dir->path, partial);
}

bool dest_partial_is_hidden(struct dest *dest, const struct dest_dir *dir, const char *name)
{
	bool hidden;
	char *path;

	if (!dest->places->partial || !dest->module)
		return false;
	path = partial_path(dest, dir);
	hidden = dest_is_hidden(dest, path, true) || dest_is_hidden_in(dest, path, name, false);
	free(path);
	return hidden;
}

int dest_partial_dir(struct dest *dest, struct dest_dir *dir, const char *name, bool make)
{
	struct places *places = dest->places;
	enum step step = STEP_FIND;
	int fd;

	if (!places->partial)
		return fs_fail(ENOENT);
	if (dest_partial_is_hidden(dest, dir, name))
		return fs_fail(EACCES);
	if (*places->partial == '/')
		return shared_dir(dest, places, make);
	if (!make && atomic_load(&dir->has_no_partial))
		return fs_fail(ENOENT);
	if (make) {
		char *path = partial_path(dest, dir);

		/* What stands where a directory is wanted may be hidden as something else. */
		step = dest_is_hidden(dest, path, false) ? STEP_MAKE : STEP_REPLACE;
		free(path);
	}
	fd = walk(dir->fd, places->partial, step, NULL);
	/* Nobody but this run makes one, and that is noted. */
	if (fd < 0 && !make && errno == ENOENT)
		atomic_store(&dir->has_no_partial, true);
	else if (make)
		atomic_store(&dir->has_no_partial, false);
	return fd;
}

int dest_partial_open(struct dest *dest, struct dest_dir *dir, const char *name, int flags)
{
	int place = dest_partial_dir(dest, dir, name, false), fd;
	uint64_t size;

	if (place < 0)
		return -1;
	fd = fs_open_at(place, name, flags, 0);
	close(place);
	return fs_only_regular(fd, &size);
}

void dest_partial_leave(struct dest *dest, int dir_fd)
{
	char *leaf = NULL;
	int parent;

	if (*dest->places->partial == '/')
		return;
	parent = walk(dir_fd, dest->places->partial, STEP_FIND, &leaf);
	if (parent >= 0) {
		fs_rmdir_at(parent, leaf);
		close(parent);
	}
	free(leaf);
}

void dest_partial_drop(struct dest *dest, struct dest_dir *dir, const char *name)
{
	int place = dest_partial_dir(dest, dir, name, false);

	if (place < 0)
		return;
	if (fs_unlink_at(place, name) == 0)
		dest_partial_leave(dest, dir->fd);
	close(place);
}

/* --- delayed ones --- */

void dest_delay(const struct file_job *job)
{
	struct places *places = job->dest->places;
	struct delayed delayed = {
		.position = job->task->first_position + job->index, .dir_path = xstrdup(job->dir->path),
		.name = xstrdup(job->name), .replaces = job->old.exists, .backed_up = job->backed_up,
		.is_in_the_way = job->old.exists && !S_ISREG(job->old.st.mode),
	};

	if (job->dest->contents->is_remote)
		delayed.ndx = flist_ndx_of(job->dest->list, job->task->node, job->entry);

	pthread_mutex_lock(&places->lock);
	vec_push(&places->delayed, delayed);
	pthread_mutex_unlock(&places->lock);
}

static int compare(const void *a, const void *b)
{
	uint64_t first = ((const struct delayed *)a)->position, second = ((const struct delayed *)b)->position;

	return first < second ? -1 : first > second;
}

void dest_delayed_install(struct dest *dest, void (*check)(void *context), void *context)
{
	struct places *places = dest->places;

	if (!places->delayed.count)
		return;
	qsort(places->delayed.items, places->delayed.count, sizeof *places->delayed.items, compare);
	for (size_t i = 0; i < places->delayed.count; i++) {
		const struct delayed *delayed = &places->delayed.items[i];

		check(context);
		struct dest_dir dir = { .path = delayed->dir_path, .fd = dest_open_dir(dest, delayed->dir_path, false) };
		int place = dir.fd < 0 ? -1 : dest_partial_dir(dest, &dir, delayed->name, false), error = errno;
		const struct backup_of of = { dest, NULL, "receiver", dir.fd, delayed->dir_path, delayed->name };
		enum backup_way way = delayed->is_in_the_way ? BACKUP_RENAME : BACKUP_LINK;

		if (place >= 0 && delayed->replaces && !delayed->backed_up && !dest_back_up(&of, way))
			exit_with(EXIT_FILEIO);
		if (place < 0) {
			dest_complain_path(dest, "receiver", error, delayed->dir_path, "opendir ", " failed");
		} else if (fs_rename_at(place, delayed->name, dir.fd, delayed->name) == 0) {
			dest_partial_leave(dest, dir.fd);
			if (dest->contents->is_remote)
				dest->contents->calls->arrived(dest->contents, delayed->ndx);
		} else {
			error = errno;
			struct strbuf path = dest_path_of(delayed->dir_path, delayed->name);
			char *after = xasprintf(" (from %s/%s)", places->partial, delayed->name);

			dest_complain_path(dest, "receiver", error, strbuf_text(&path), "rename failed for ", after);
			free(after);
			strbuf_free(&path);
		}
		fs_close(place);
		fs_close(dir.fd);
	}
	free_delayed(places);
}
