/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the blocks of a file's new content may come from: chosen when it is asked for, found again when it comes. With --fuzzy
 * that is a file that resembles one that is not there.
 */
#include "dest/basis.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "dest/alternate.h"
#include "dest/backup.h"
#include "dest/contents.h"
#include "dest/dest.h"
#include "dest/events.h"
#include "dest/job.h"
#include "dest/partial.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "fs/file.h"
#include "lib/alloc.h"
#include "wire/request.h"

/* --- how alike two names are: the distance of Levenshtein, bytes that differ a little being a little closer --- */

/* One change of a name; a distance beside it, in the lower bits, says how much the bytes differ. */
#define NAME_DISTANCE_UNIT (UINT32_C(1) << 16)
/* Names that are farther apart have nothing to do with each other. */
#define NAME_DISTANCE_LIMIT (25 * NAME_DISTANCE_UNIT)
/* Too far to have been looked at. */
#define NAME_DISTANCE_FAR (UINT32_C(0xffff) * NAME_DISTANCE_UNIT + 1)
#define SUFFIX_WEIGHT 10

static uint32_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	uint32_t *row, distance = 0;

	/* From nothing to a name. */
	for (size_t i = 0; !b_length && i < a_length; i++)
		distance += NAME_DISTANCE_UNIT + (uint32_t)(signed char)a[i];
	for (size_t i = 0; !a_length && i < b_length; i++)
		distance += NAME_DISTANCE_UNIT + (uint32_t)(signed char)b[i];
	if (!a_length || !b_length)
		return distance;
	row = xcalloc(b_length + 1, sizeof *row);
	for (size_t j = 0; j <= b_length; j++)
		row[j] = (uint32_t)j * NAME_DISTANCE_UNIT;
	for (size_t i = 0; i < a_length; i++) {
		uint8_t from = (uint8_t)a[i];
		uint32_t diagonal = row[0];

		row[0] = (uint32_t)(i + 1) * NAME_DISTANCE_UNIT;
		for (size_t j = 0; j < b_length; j++) {
			uint8_t to = (uint8_t)b[j];
			/* The better of two neighbours is taken before their bytes count. */
			bool drops = row[j + 1] <= row[j];
			uint32_t other = (drops ? row[j + 1] + from : row[j] + to) + NAME_DISTANCE_UNIT, change = diagonal;

			if (from != to)
				change += NAME_DISTANCE_UNIT + (from > to ? from - to : to - from);
			diagonal = row[j + 1];
			row[j + 1] = change < other ? change : other;
		}
	}
	distance = row[b_length];
	free(row);
	return distance;
}

/* ".bak" and its like, which say nothing about the kind; a "~" at the end has been taken off. */
static bool is_old_version(const char *suffix, size_t length, bool has_tilde)
{
	static const char *const marks[] = { ".bak", ".old", ".orig" };

	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (length == strlen(marks[i]) && !memcmp(suffix, marks[i], length))
			return true;
	return has_tilde && length > 2 && suffix[1] == '~' && isdigit((unsigned char)suffix[2]);
}

/* The end of a name that shows its kind (".gz"), its own beginning at the dot; *length 0: it has none. Marks of old versions
 * behind it ("~", ".bak", ".~2~") are left out, numbers ("lib.so.1") do not count if there is something else. */
static const char *name_suffix(const char *name, size_t *length)
{
	size_t start = strspn(name, "."), end = strlen(name);
	const char *number = "";
	bool is_last = true, has_tilde = end > 1 && name[end - 1] == '~';

	*length = 0;
	end -= has_tilde;
	for (size_t at = end; at-- > start;) {
		if (name[at] != '.')
			continue;
		if (!is_last || !is_old_version(name + at, end - at, has_tilde)) {
			number = name + at;
			*length = end - at;
			if (*length == 1 || strspn(number + 1, "0123456789") < *length - 1)
				break;
		}
		is_last = false;
		end = at;
	}
	return number;
}

/* Distance of two names, with what their suffixes differ in counted ten times more. NAME_DISTANCE_FAR if their lengths alone
 * are farther apart than `limit`. */
static uint32_t name_distance(const char *name, const char *other, uint32_t limit)
{
	size_t length = strlen(name), other_length = strlen(other), suffix_length, other_suffix_length;
	size_t apart = length > other_length ? length - other_length : other_length - length;
	const char *suffix = name_suffix(name, &suffix_length), *other_suffix = name_suffix(other, &other_suffix_length);

	if (apart > limit / NAME_DISTANCE_UNIT && apart * NAME_DISTANCE_UNIT > limit)
		return NAME_DISTANCE_FAR;
	return edit_distance(name, length, other, other_length)
	       + SUFFIX_WEIGHT * edit_distance(suffix, suffix_length, other_suffix, other_suffix_length);
}

/* --- the search --- */

enum { CANDIDATE_STEPS = 10, BYTES_PER_STEP = 32 };

/* The regular files of a directory that have content, in the order of a list. */
struct fuzzy_dirs {
	int count;
	struct entries names[]; /* of the destination, then of each alternate one */
};

/* --- what there is --- */

static void read_names(struct entries *names, int dir_fd)
{
	struct fs_dirent name;
	struct fs_dir dir;
	struct fs_stat st;
	int fd = dir_fd < 0 ? -1 : fs_open_at(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);

	entries_init(names);
	if (fd < 0)
		return;
	fs_dir_start(&dir, fd);
	while (fs_dir_next(&dir, &name) > 0) {
		if (fs_lstat_at(dir_fd, name.name, &st) < 0 || !S_ISREG(st.mode) || !st.size)
			continue;
		entry_set_stat(entries_add(names, name.name, name.name_length), &st);
	}
	fs_dir_finish(&dir);
	entries_sort(names);
}

void dest_leave_dirs(struct task *task)
{
	for (int i = 0; task->alternates && i < task->dest->alternates->count; i++)
		fs_close(task->alternates[i]);
	free(task->alternates);
	task->alternates = NULL;
	for (int i = 0; task->fuzzy && i < task->fuzzy->count; i++)
		entries_free(&task->fuzzy->names[i]);
	free(task->fuzzy);
	task->fuzzy = NULL;
}

/* --- what is chosen --- */

static bool agrees(const struct file_job *job, const struct entry *listed, const struct entry *file)
{
	return listed->size == file->size
	       && decide_same_time(job->dest->options->modify_window, listed->mtime, listed->mtime_nsec, file->mtime,
				   file->mtime_nsec);
}

static bool may_be_used(const struct file_job *job, int place, const struct entries *names, const struct entry *file)
{
	const char *name = entry_name(names, file);
	const struct entries *list = job->task->entries;
	int32_t index = place ? -1 : entries_find(list, name, false);
	struct dest *dest = job->dest;
	const char *dir = place ? dest->options->alt_dest_dirs.items[place - 1] : NULL;
	bool hidden = false;

	/* A module's rules hold for what a delta begins with, too. */
	if (dest->module) {
		struct strbuf path = dest_path_of(job->dir->path, name);

		hidden = dir ? dest_is_hidden_in(dest, dir, strbuf_text(&path), false)
			     : dest_is_hidden(dest, strbuf_text(&path), false);
		strbuf_free(&path);
	}
	/* What is listed before this one and has to be updated may be another file when the reply comes. */
	return !hidden && (index < 0 || (uint32_t)index > job->index || agrees(job, &list->items[index], file));
}

/* As messages call it. */
static struct strbuf shown_name(const struct file_job *job, int place, const char *name)
{
	struct strbuf shown = STRBUF_INIT;

	if (place) {
		const char *dir = job->dest->options->alt_dest_dirs.items[place - 1];

		if (*dir != '/')
			strbuf_addf(&shown, "%s/", job->dest->top_path);
		strbuf_addf(&shown, "%s/", dir);
	}
	strbuf_addf(&shown, "%s%s%s", job->dir->path, *job->dir->path ? "/" : "", name);
	return shown;
}

static void find_like(struct file_job *job, int place, const struct entries *names, uint32_t *best)
{
	for (uint32_t i = 0; i < names->count; i++) {
		const char *name = entry_name(names, &names->items[i]);
		uint32_t distance;

		if (!may_be_used(job, place, names, &names->items[i]))
			continue;
		/* Each byte of the one name is held against each of the other. A peer that lists many files asks for many such
		 * searches. */
		budget_work(session_budget(job->dest->session),
			    CANDIDATE_STEPS + strlen(name) * strlen(job->name) / BYTES_PER_STEP);
		distance = name_distance(name, job->name, *best);
		if (job->dest->options->levels.debug[DEBUG_FUZZY] > 1) {
			struct strbuf shown = shown_name(job, place, name);

			task_text(job->task, L_INFO, "fuzzy distance for %s = %u.%05u", strbuf_text(&shown),
				  distance / NAME_DISTANCE_UNIT, distance % NAME_DISTANCE_UNIT);
			strbuf_free(&shown);
		}
		if (distance > *best)
			continue;
		*best = distance;
		free(job->fuzzy);
		job->fuzzy = xstrdup(name);
		job->fuzzy_place = place;
	}
}

void job_find_fuzzy(struct file_job *job)
{
	const struct options *options = job->dest->options;
	const struct alternates *alternates = options->fuzzy > 1 ? job->dest->alternates : NULL;
	int count = 1 + (alternates ? alternates->count : 0);
	uint32_t best = NAME_DISTANCE_LIMIT;
	struct task *task = job->task;

	/* Without blocks to look for, it is for those who want to watch. */
	bool wants_blocks = job->dest->contents->is_remote && options->whole_file <= 0 && !options->append;

	if (!options->fuzzy || (!wants_blocks && !options->levels.debug[DEBUG_FUZZY]))
		return;
	if (!task->fuzzy) {
		task->fuzzy = xcalloc(1, sizeof *task->fuzzy + (size_t)count * sizeof *task->fuzzy->names);
		task->fuzzy->count = count;
		read_names(&task->fuzzy->names[0], task->dir->fresh ? -1 : task->dir->fd);
		for (int i = 1; i < count; i++)
			read_names(&task->fuzzy->names[i], dest_alternate_dir(task, i - 1));
	}
	for (int i = 0; i < count && !job->fuzzy; i++) {
		const struct entries *names = &task->fuzzy->names[i];

		for (uint32_t n = 0; n < names->count && !job->fuzzy; n++) {
			if (!agrees(job, job->entry, &names->items[n]) || !may_be_used(job, i, names, &names->items[n]))
				continue;
			job->fuzzy = xstrdup(entry_name(names, &names->items[n]));
			job->fuzzy_place = i;
			if (options->levels.debug[DEBUG_FUZZY] > 1) {
				struct strbuf shown = shown_name(job, i, job->fuzzy);

				task_text(task, L_INFO, "fuzzy size/modtime match for %s", strbuf_text(&shown));
				strbuf_free(&shown);
			}
		}
	}
	if (!job->fuzzy)
		for (int i = 0; i < count; i++)
			find_like(job, i, &task->fuzzy->names[i], &best);
	if (job->fuzzy && options->levels.debug[DEBUG_FUZZY]) {
		struct strbuf path = dest_path_of(job->dir->path, job->name);
		struct strbuf shown = shown_name(job, job->fuzzy_place, job->fuzzy);

		task_text(task, L_INFO, "fuzzy basis selected for %s: %s", strbuf_text(&path), strbuf_text(&shown));
		strbuf_free(&shown);
		strbuf_free(&path);
	}
}

/* --- the basis of one file --- */

static const struct basis no_basis = { .fd = -1, .type = BASIS_FILE };

/* The one of this type, if it is there and has content that could be of use. */
static void open_basis(const struct file_job *job, uint8_t type, struct basis *basis)
{
	const struct backup_of of = { job->dest, job->task, "generator", job->dir->fd, job->dir->path, job->name };
	bool is_fuzzy = type >= BASIS_FUZZY;
	const char *name = is_fuzzy ? job->fuzzy : job->name;

	*basis = (struct basis){ .type = type };
	if (type == BASIS_BACKUP) {
		/* An update in place spoils the file, not what was kept of it. */
		basis->fd = fs_only_regular(dest_backup_open(&of), &basis->size);
	} else if (type == BASIS_PARTIAL) {
		basis->fd = fs_only_regular(dest_partial_open(job->dest, job->dir, name, O_RDONLY), &basis->size);
	} else if (type < BASIS_FILE || (is_fuzzy && job->fuzzy_place)) {
		basis->fd = job_open_alternate(job, is_fuzzy ? job->fuzzy_place - 1 : type, name, &basis->size);
	} else {
		basis->fd = fs_open_at(job->dir->fd, name, O_RDONLY, 0);
		if (type == BASIS_FILE && job->old.is_device)
			basis->size = job->old.st.size;
		else
			basis->fd = fs_only_regular(basis->fd, &basis->size);
	}
	if (basis->fd < 0 || (!basis->size && type != BASIS_FILE && type != BASIS_BACKUP))
		basis_close(basis);
	else if (is_fuzzy)
		basis->xname = xstrdup(name);
}

void job_choose_basis(const struct file_job *job, struct basis *basis)
{
	const struct options *options = job->dest->options;
	const struct dest_module *module = job->dest->module;
	/* What is appended to is not described by sums, unless that has failed. */
	bool goes_on = options->append && !job->is_redo;
	bool wants_blocks = goes_on || (!(module && module->write_only) && (options->whole_file <= 0 || options->append));

	*basis = no_basis;
	if (!wants_blocks)
		return;
	/* What has come before is as good as the file that it will replace, or better. */
	open_basis(job, BASIS_PARTIAL, basis);
	if (basis->fd >= 0)
		return;
	if (job->is_redo || (job->old.exists && S_ISREG(job->old.st.mode) && job->old.st.size))
		open_basis(job, job->backed_up && options->inplace && !job->is_redo ? BASIS_BACKUP : BASIS_FILE, basis);
	else if (options->append)
		; /* Nothing else is the beginning of this file. */
	else if (job->decision.alternate)
		open_basis(job, (uint8_t)(job->decision.alternate - 1), basis);
	else if (job->fuzzy)
		open_basis(job, (uint8_t)(BASIS_FUZZY + job->fuzzy_place), basis);
}

void job_find_basis(const struct file_job *job, uint8_t type, const char *xname, struct basis *basis)
{
	bool is_alternate = job->decision.alternate && type == job->decision.alternate - 1;
	bool is_fuzzy = job->fuzzy && type == BASIS_FUZZY + job->fuzzy_place && !strcmp(xname, job->fuzzy);

	*basis = no_basis;
	if ((type == BASIS_FILE && !*xname) || (type == BASIS_BACKUP && job->backed_up) || type == BASIS_PARTIAL || is_alternate
	    || is_fuzzy)
		open_basis(job, type, basis);
}

void basis_close(struct basis *basis)
{
	fs_close(basis->fd);
	free(basis->xname);
	*basis = no_basis;
}
