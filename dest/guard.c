/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An operator's typo must not replace a mirror by its attributes. Refused before anything is written:
 *
 * - an attr tree inside its source, or a source inside the attr tree it would go to (by device and inode of the real
 *   directories, so symlinks and bind mounts of whole trees do not help);
 * - without --force, a destination that has regular files which are not 8 bytes long. The first files of the tree are looked
 *   at here; every later one is looked at again when it would be replaced or deleted.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dest/dest.h"
#include "dest/guard.h"
#include "dest/paths.h"
#include "fs/dir.h"
#include "fs/operator.h"
#include "lib/exit.h"

#define LOOKED_AT 20000
#define DEPTH_MAX 256

struct survey {
	struct dest *dest;
	struct strbuf path;
	int left;
	int depth;
};

static void survey_directory(struct survey *survey, int fd);

static void survey_name(struct survey *survey, int fd, const struct fs_dirent *name)
{
	size_t length = survey->path.length;
	struct fs_stat st;
	int below;

	if ((name->type != DT_REG && name->type != DT_DIR && name->type != DT_UNKNOWN) || fs_lstat_at(fd, name->name, &st) < 0)
		return;
	strbuf_add_path(&survey->path, name->name);
	survey->left--;
	if (S_ISREG(st.mode) && st.size != ATTR_FILE_SIZE)
		die(EXIT_FILESELECT,
		    "rsync: refusing to write an attr tree into \"%s\": \"%s\" is not an attr file (not 8 bytes "
		    "long); --force overrides this",
		    survey->dest->top_path, strbuf_text(&survey->path));
	below = S_ISDIR(st.mode) && survey->depth < DEPTH_MAX ? fs_open_at(fd, name->name, O_RDONLY | O_DIRECTORY, 0) : -1;
	if (below >= 0) {
		survey->depth++;
		survey_directory(survey, below);
		survey->depth--;
	}
	strbuf_truncate(&survey->path, length);
}

static void survey_directory(struct survey *survey, int fd)
{
	struct fs_dirent name;
	struct fs_dir dir;

	fs_dir_start(&dir, fd);
	while (survey->left > 0 && fs_dir_next(&dir, &name) > 0)
		survey_name(survey, fd, &name);
	fs_dir_finish(&dir);
}

/* --- source and destination --- */

/* Below the destination, what the argument is written to: "." for its contents. */
static const char *target_of(const struct dest *dest, const char *argument)
{
	const char *slash, *cut;

	if (dest->options->relative) {
		cut = strstr(argument, "/./");
		argument = cut ? cut + 3 : argument;
		argument += strspn(argument, "/");
		return *argument ? argument : ".";
	}
	slash = strrchr(argument, '/');
	argument = slash ? slash + 1 : argument;
	if (!*argument || !strcmp(argument, ".") || !strcmp(argument, ".."))
		return ".";
	return dest->single_name ? dest->single_name : argument;
}

static noreturn void refuse(struct dest *dest, const char *what, const char *argument)
{
	die(EXIT_FILESELECT, "rsync: refusing to write an attr tree: %s: source \"%s\", destination \"%s\"", what, argument,
	    dest->top_path ? dest->top_path : "");
}

static void check_directory(struct dest *dest, const char *argument, int source, int target)
{
	int top = fs_opendir(&dest->top, ".");

	if (top >= 0 && fs_is_inside(top, source))
		refuse(dest, "it would lie inside its own source", argument);
	if (target >= 0 && fs_is_inside(target, source))
		refuse(dest, "it would replace its own source", argument);
	if (target >= 0 && fs_is_inside(source, target))
		refuse(dest, "the source lies inside it", argument);
	if (top >= 0)
		close(top);
}

static void check_file(struct dest *dest, const char *argument, const struct fs_stat *source, int target)
{
	struct fs_stat st;

	if (target < 0 || fs_stat_at_fd(target, &st) < 0)
		return;
	if (st.dev == source->dev && st.ino == source->ino)
		refuse(dest, "it would replace its own source", argument);
	if (S_ISREG(source->mode) && S_ISREG(st.mode) && st.size != ATTR_FILE_SIZE && !dest->options->force)
		refuse(dest, "the destination is not an attr file (not 8 bytes long); --force overrides this", argument);
}

static void check_argument(struct dest *dest, const struct fs_root *start, const char *argument)
{
	int source = fs_open_follow(start, argument, O_PATH, 0);
	int target = fs_open_follow(&dest->top, target_of(dest, argument), O_PATH, 0);
	struct fs_stat st;

	if (source >= 0 && fs_stat_at_fd(source, &st) == 0) {
		if (S_ISDIR(st.mode))
			check_directory(dest, argument, source, target);
		else
			check_file(dest, argument, &st, target);
	}
	if (source >= 0)
		close(source);
	if (target >= 0)
		close(target);
}

/* Sources of the run; a --files-from list names what it wants below a base that may well hold the destination. */
static size_t source_count(const struct dest *dest)
{
	return dest->has_sources ? dest->options->operands.count - 1 : dest->snapshot_root ? 1 : 0;
}

static const char *source_argument(const struct dest *dest, size_t index)
{
	return dest->has_sources ? dest->options->operands.items[index] : dest->snapshot_root;
}

static bool open_start(struct fs_root *start)
{
	if (fs_root_open(start, ".") < 0)
		return false;
	start->trusting = true;
	return true;
}

void dest_guard_new(struct dest *dest, const char *parent)
{
	struct fs_root start;
	int above;

	if (!dest->attrs_only || !open_start(&start))
		return;
	above = fs_open_follow(&start, parent, O_RDONLY | O_DIRECTORY, 0);
	for (size_t i = 0; above >= 0 && i < source_count(dest); i++) {
		const char *argument = source_argument(dest, i);
		int source = fs_open_follow(&start, argument, O_RDONLY | O_DIRECTORY, 0);

		if (source >= 0 && fs_is_inside(above, source))
			refuse(dest, "it would lie inside its own source", argument);
		if (source >= 0)
			close(source);
	}
	if (above >= 0)
		close(above);
	fs_root_close(&start);
}

void dest_guard(struct dest *dest)
{
	struct survey survey = { .dest = dest, .left = LOOKED_AT };
	struct fs_root start;
	int fd;

	if (!dest->attrs_only || dest->top.fd < 0 || !open_start(&start))
		return;
	for (size_t i = 0; i < source_count(dest); i++)
		check_argument(dest, &start, source_argument(dest, i));
	fs_root_close(&start);
	fd = dest->options->force || dest->single_name ? -1 : fs_opendir(&dest->top, ".");
	if (fd >= 0)
		survey_directory(&survey, fd);
	strbuf_free(&survey.path);
}
