/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the blocks of a file's new content may come from: chosen when it is asked for, found again when it comes. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dest/alternate.h"
#include "dest/backup.h"
#include "dest/basis.h"
#include "dest/dest.h"
#include "dest/fuzzy.h"
#include "dest/job.h"
#include "dest/module.h"
#include "dest/partial.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "wire/request.h"

static const struct basis no_basis = { .fd = -1, .type = BASIS_FILE };

static void open_old_file(const struct file_job *job, struct basis *basis)
{
	struct fs_stat st;

	basis->fd = fs_open_at(job->dir->fd, job->name, O_RDONLY, 0);
	if (basis->fd >= 0 && job->old.is_device)
		basis->size = job->old.st.size;
	else if (basis->fd >= 0 && fs_stat_at_fd(basis->fd, &st) == 0 && S_ISREG(st.mode))
		basis->size = st.size;
	else
		basis_close(basis);
}

/* An update in place spoils the file, not what was kept of it. */
static void open_backup(const struct file_job *job, struct basis *basis)
{
	const struct backup_of of = { job->dest, job->task, "generator", job->dir->fd, job->dir->path, job->name };
	struct fs_stat st;

	basis->type = BASIS_BACKUP;
	basis->fd = dest_backup_open(&of);
	if (basis->fd >= 0 && fs_stat_at_fd(basis->fd, &st) == 0 && S_ISREG(st.mode))
		basis->size = st.size;
	else
		basis_close(basis);
}

/* A file of an alternate destination, by its number. */
static void open_alternate(const struct file_job *job, int number, struct basis *basis)
{
	basis->type = (uint8_t)number;
	basis->fd = job_open_alternate(job, number, &basis->size);
	if (basis->fd < 0 || !basis->size)
		basis_close(basis);
}

static void open_fuzzy(const struct file_job *job, struct basis *basis)
{
	basis->type = (uint8_t)(BASIS_FUZZY + job->fuzzy_place);
	basis->fd = job_open_fuzzy(job, &basis->size);
	if (basis->fd < 0 || !basis->size)
		basis_close(basis);
	else
		basis->xname = xstrdup(job->fuzzy);
}

/* What has come before is as good as the file that it will replace, or better. */
static bool open_partial(const struct file_job *job, struct basis *basis)
{
	struct fs_stat st;

	basis->fd = dest_partial_open(job->dest, job->dir, job->name, O_RDONLY);
	if (basis->fd < 0)
		return false;
	basis->type = BASIS_PARTIAL;
	if (fs_stat_at_fd(basis->fd, &st) == 0 && st.size) {
		basis->size = st.size;
		return true;
	}
	basis_close(basis);
	return false;
}

void job_choose_basis(const struct file_job *job, struct basis *basis)
{
	const struct options *options = job->dest->options;

	const struct dest_module *module = job->dest->module;
	/* What is appended to is not described by sums, unless that has failed. */
	bool goes_on = options->append && !job->is_redo;
	bool wants_blocks = goes_on || (!(module && module->write_only) && (options->whole_file <= 0 || options->append));

	*basis = no_basis;
	if (!wants_blocks || open_partial(job, basis))
		return;
	if (job->is_redo || (job->old.exists && S_ISREG(job->old.st.mode) && job->old.st.size))
		(job->backed_up && options->inplace && !job->is_redo ? open_backup : open_old_file)(job, basis);
	else if (options->append)
		; /* Nothing else is the beginning of this file. */
	else if (job->decision.alternate)
		open_alternate(job, job->decision.alternate - 1, basis);
	else if (job->fuzzy)
		open_fuzzy(job, basis);
}

void job_find_basis(const struct file_job *job, uint8_t type, const char *xname, struct basis *basis)
{
	*basis = no_basis;
	if (type == BASIS_FILE && !*xname)
		open_old_file(job, basis);
	else if (type == BASIS_BACKUP && job->backed_up)
		open_backup(job, basis);
	else if (type == BASIS_PARTIAL)
		open_partial(job, basis);
	else if (job->decision.alternate && type == job->decision.alternate - 1)
		open_alternate(job, type, basis);
	else if (job->fuzzy && type == BASIS_FUZZY + job->fuzzy_place && !strcmp(xname, job->fuzzy))
		open_fuzzy(job, basis);
}

void basis_close(struct basis *basis)
{
	if (basis->fd >= 0)
		close(basis->fd);
	free(basis->xname);
	*basis = no_basis;
}
