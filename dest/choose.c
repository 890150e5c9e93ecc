/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the destination operand stands for: a directory to fill, or the one name to write (doc/protocol/06-command-line.md
 * section 10.2).
 *
 * An operator's typo must not replace a mirror by its attributes. Refused before anything is written:
 *
 * - an attr tree inside its source, or a source inside the attr tree it would go to (by device and inode of the real
 *   directories, so symlinks and bind mounts of whole trees do not help);
 * - without --force, a destination that has regular files which are not 8 bytes long. The first files of the tree are looked
 *   at here; every later one is looked at again when it would be replaced or deleted.
 */
#include "dest/choose.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attrs/source.h"
#include "dest/dest.h"
#include "dest/paths.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/exit.h"
#include "lib/log.h"

/* --- refusals of attr trees --- */

#define LOOKED_AT 20000
#define DEPTH_MAX 256

struct survey {
	struct dest *dest;
	struct strbuf path;
	int left;
};

static void survey_directory(struct survey *survey, int fd, int depth)
{
	const size_t length = survey->path.length;
	struct fs_dirent name;
	struct fs_dir dir;
	struct fs_stat st;
	int below;

	fs_dir_start(&dir, fd);
	while (survey->left > 0 && fs_dir_next(&dir, &name) > 0) {
		if ((name.type != DT_REG && name.type != DT_DIR && name.type != DT_UNKNOWN)
		    || fs_lstat_at(fd, name.name, &st) < 0)
			continue;
		strbuf_add_path(&survey->path, name.name);
		survey->left--;
		if (S_ISREG(st.mode) && st.size != ATTR_FILE_SIZE)
			die(EXIT_FILESELECT,
			    "rsync: refusing to write an attr tree into \"%s\": \"%s\" is not an attr file (not 8 bytes "
			    "long); --force overrides this",
			    survey->dest->top_path, strbuf_text(&survey->path));
		if (S_ISDIR(st.mode) && depth < DEPTH_MAX
		    && (below = fs_open_at(fd, name.name, O_RDONLY | O_DIRECTORY, 0)) >= 0)
			survey_directory(survey, below, depth + 1);
		strbuf_truncate(&survey->path, length);
	}
	fs_dir_finish(&dir);
}

/* --- source and destination --- */

static const char *leaf_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Below the destination, what the argument is written to: "." for its contents. */
static const char *target_of(const struct dest *dest, const char *argument)
{
	if (dest->options->relative) {
		const char *cut = strstr(argument, "/./");

		argument = cut ? cut + 3 : argument;
		argument += strspn(argument, "/");
		return *argument ? argument : ".";
	}
	argument = leaf_of(argument);
	if (!*argument || !strcmp(argument, ".") || !strcmp(argument, ".."))
		return ".";
	return dest->single_name ? dest->single_name : argument;
}

static noreturn void refuse(struct dest *dest, const char *what, const char *argument)
{
	die(EXIT_FILESELECT, "rsync: refusing to write an attr tree: %s: source \"%s\", destination \"%s\"", what, argument,
	    dest->top_path ? dest->top_path : "");
}

/* Sources of the run, NULL: no more; a --files-from list names what it wants below a base that may hold the destination. */
static const char *source_argument(const struct dest *dest, size_t index)
{
	if (!dest->has_sources)
		return index ? NULL : dest->snapshot_root;
	return index + 1 < dest->options->operands.count ? dest->options->operands.items[index] : NULL;
}

/* The same before a directory is made in `parent`. */
static void dest_guard_new(struct dest *dest, const char *parent)
{
	const char *argument;
	struct fs_root start;
	int above;

	if (!dest->attrs_only || fs_root_open(&start, ".") < 0)
		return;
	start.trusting = true;
	above = fs_open(&start, parent, O_RDONLY | O_DIRECTORY | FS_FOLLOW, 0);
	for (size_t i = 0; above >= 0 && (argument = source_argument(dest, i)); i++) {
		int source = fs_open(&start, argument, O_RDONLY | O_DIRECTORY | FS_FOLLOW, 0);

		if (source >= 0 && fs_is_inside(above, source))
			refuse(dest, "it would lie inside its own source", argument);
		fs_close(source);
	}
	fs_close(above);
	fs_root_close(&start);
}

void dest_guard(struct dest *dest)
{
	struct survey survey = { .dest = dest, .left = LOOKED_AT };
	const char *argument;
	struct fs_root start;
	int fd;

	if (!dest->attrs_only || dest->top.fd < 0 || fs_root_open(&start, ".") < 0)
		return;
	start.trusting = true;
	for (size_t i = 0; (argument = source_argument(dest, i)); i++) {
		int source = fs_open(&start, argument, O_PATH | FS_FOLLOW, 0);
		int target = fs_open(&dest->top, target_of(dest, argument), O_PATH | FS_FOLLOW, 0);
		struct fs_stat from = { .mode = 0 }, st;
		int top = -1;

		if (source >= 0 && fs_stat_at_fd(source, &from) == 0 && S_ISDIR(from.mode)) {
			top = fs_opendir(&dest->top, ".");
			if (top >= 0 && fs_is_inside(top, source))
				refuse(dest, "it would lie inside its own source", argument);
			if (target >= 0 && fs_is_inside(target, source))
				refuse(dest, "it would replace its own source", argument);
			if (target >= 0 && fs_is_inside(source, target))
				refuse(dest, "the source lies inside it", argument);
		} else if (from.mode && target >= 0 && fs_stat_at_fd(target, &st) == 0) {
			if (st.dev == from.dev && st.ino == from.ino)
				refuse(dest, "it would replace its own source", argument);
			if (S_ISREG(from.mode) && S_ISREG(st.mode) && st.size != ATTR_FILE_SIZE && !dest->options->force)
				refuse(dest, "the destination is not an attr file (not 8 bytes long); --force overrides this",
				       argument);
		}
		fs_close(top);
		fs_close(source);
		fs_close(target);
	}
	fs_root_close(&start);
	fd = dest->options->force || dest->single_name ? -1 : fs_opendir(&dest->top, ".");
	if (fd >= 0)
		survey_directory(&survey, fd, 0);
	strbuf_free(&survey.path);
}

/* --- the operand --- */

/* For a module's client the world begins at its root. */
static char *absolute(const struct dest *dest, const char *path)
{
	struct strbuf full = STRBUF_INIT;
	char *cwd;

	if (dest->module)
		return xstrdup(strcmp(path, ".") ? path : "");
	if (*path != '/' && (cwd = getcwd(NULL, 0))) {
		strbuf_add_string(&full, cwd);
		free(cwd);
	}
	if (strcmp(path, ".") != 0)
		strbuf_add_path(&full, path);
	return strbuf_detach(&full);
}

/* The operand, which in the root of the process is absolute. */
static char *as_asked(const struct dest *dest, const char *path)
{
	const struct dest_module *module = dest->module;

	return xasprintf("%s%s", module && module->root->trusting ? "/" : "", path);
}

static noreturn void cannot_use(struct dest *dest, int code, const char *what, const char *path, const char *after)
{
	const struct dest_module *module = dest->module;
	char *place = module ? xasprintf(" (in %s)", module->name) : xstrdup("");
	char *shown = module ? as_asked(dest, path) : absolute(dest, path);
	int error = errno;

	log_set_role("Receiver");
	if (error == ELOOP && !module)
		log_error("refusing to follow a symlink owned by an untrusted user; use --insecure-links locally or \"insecure "
			  "links = yes\" in a daemon module ONLY if every path component is trusted");
	die_errno(code, error, "%s \"%s\"%s%s", what, shown, place, after);
}

/* ENOENT instead of ELOOP in errno: nothing is where munged links lead. Whether something is at the other end of another link
 * out of the module is nothing that its client learns. */
static void judge_failure(const struct dest *dest, const char *path)
{
	char target[PATH_MAX];
	bool is_munged = false;

	if (!dest->module || errno != ELOOP)
		return;
	/* Does any component of the path have the form in which munged links are kept? */
	for (const char *end = path; !is_munged && *end;) {
		end += strspn(end, "/");
		end += strcspn(end, "/");
		char *there = xstrndup(path, (size_t)(end - path));

		is_munged = fs_readlink(dest->module->root, there, target, sizeof target) > 0
			    && !strncmp(target, MUNGE_PREFIX, strlen(MUNGE_PREFIX));
		free(there);
	}
	errno = is_munged ? ENOENT : ELOOP;
}

/*
 * The operator's own path: links of other users are not followed, unless that was asked for (doc/protocol/08-security.md
 * section 4.3). Or one below a module's root; whatever links mean to the one who names the destination, in it they lead nowhere
 * else.
 */
static int open_place(const struct dest *dest, struct fs_root *root, const char *path)
{
	const struct dest_module *module = dest->module;

	if (module && fs_root_open_below(root, module->root, path) < 0)
		return -1;
	if (!module) {
		int fd = fs_operator_open(path, O_PATH | O_DIRECTORY | FS_SILENT | options_link_flag(dest->options), 0);

		if (fd < 0)
			return -1;
		fs_root_adopt(root, fd);
	}
	root->trusting = !module && dest->options->insecure_links;
	return 0;
}

static int stat_operator(const char *path, int flags, struct fs_stat *st)
{
	int fd = fs_operator_open(path, O_PATH | flags, 0), result = fd < 0 ? -1 : fs_stat_at_fd(fd, st);

	fs_close(fd);
	return result;
}

static int stat_place(const struct dest *dest, const char *path, struct fs_stat *st)
{
	if (!dest->module)
		return stat_operator(path, FS_SILENT | options_link_flag(dest->options), st);
	int result = fs_stat_follow(dest->module->root, path, st);

	if (result < 0)
		judge_failure(dest, path);
	return result;
}

void dest_open_top(struct dest *dest, const char *path)
{
	dest->top_path = absolute(dest, path);
	if (open_place(dest, &dest->top, path) < 0)
		cannot_use(dest, EXIT_FILESELECT, "change_dir#1", path, " failed");
}

/* --- one entry under the operand's own name --- */

static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

static void use_single_name(struct dest *dest, const char *path)
{
	char *parent = parent_of(path);

	dest->single_name = xstrdup(leaf_of(path));
	if (!strcmp(dest->single_name, ".") || !strcmp(dest->single_name, "..")) {
		errno = ENOENT;
		cannot_use(dest, EXIT_FILESELECT, "change_dir#3", parent, " failed");
	}
	dest->top_path = absolute(dest, parent);
	if (open_place(dest, &dest->top, parent) < 0) {
		if (!dest->dry_run || !dest->options->mkpath || errno != ENOENT)
			cannot_use(dest, EXIT_FILESELECT, "change_dir#3", parent, " failed");
		dest->top.fd = -1;
	}
	free(parent);
}

/* --- a directory that is not there yet --- */

static void make_top(struct dest *dest, const char *path, bool announced)
{
	char *parent;
	struct fs_root above;

	if (dest->dry_run) {
		dest->top.fd = -1;
		dest->top_path = absolute(dest, path);
	} else {
		parent = parent_of(path);
		dest_guard_new(dest, parent);
		if (open_place(dest, &above, parent) < 0) {
			judge_failure(dest, parent);
			cannot_use(dest, EXIT_FILEIO, "mkdir", path, " failed");
		}
		if (fs_mkdir_at(above.fd, leaf_of(path), dest_unlisted_mode(dest, above.fd)) < 0)
			cannot_use(dest, EXIT_FILEIO, "mkdir", path, " failed");
		fs_root_close(&above);
		free(parent);
		dest_open_top(dest, path);
	}
	dest->top_is_new = true;
	if (announced && dest->names_directories) {
		char *shown = as_asked(dest, path);

		log_info("created directory %s", shown);
		free(shown);
	}
}

static int count_missing(struct dest *dest, const char *path)
{
	struct fs_stat st;
	char *parent;
	int count = 0;

	if (stat_place(dest, path, &st) == 0) {
		dest_guard_new(dest, path);
		return 0;
	}
	parent = parent_of(path);
	count = 1 + (strcmp(parent, ".") && strcmp(parent, "/") ? count_missing(dest, parent) : 0);
	free(parent);
	return count;
}

/* All of it that is missing, below what is there. Takes over the path. */
static void make_path(struct dest *dest, char *path)
{
	int missing = count_missing(dest, path), result = 0;
	char *there = xstrdup(path), *parent;
	struct fs_root root;
	struct fs_stat st;

	if (missing && !dest->dry_run) {
		while (stat_place(dest, there, &st) < 0 && errno == ENOENT && strcmp(there, ".") && strcmp(there, "/")) {
			parent = parent_of(there);
			free(there);
			there = parent;
		}
		const char *rest = strcmp(there, ".") ? path + strlen(there) : path;

		result = open_place(dest, &root, there);
		if (result == 0) {
			result = fs_make_path(&root, rest + strspn(rest, "/"), dest_unlisted_mode(dest, root.fd));
			fs_root_close(&root);
		}
	}
	if (result < 0)
		cannot_use(dest, EXIT_FILEIO, "mkdir", path, " failed");
	if (missing && dest->names_directories) {
		char *shown = as_asked(dest, path);

		log_info("created %d director%s for %s", missing, missing == 1 ? "y" : "ies", shown);
		free(shown);
	}
	free(there);
	free(path);
}

/* --- the decision --- */

void dest_choose_destination(struct dest *dest, const char *given, uint64_t entries)
{
	const struct entries *first = flist_dir(dest->list, 0)->entries;
	const struct entry *only = entries == 1 && first->count ? &first->items[0] : NULL;
	size_t length = strlen(given);
	bool slash = length > 0 && given[length - 1] == '/';
	struct fs_stat st;

	while (length > 1 && given[length - 1] == '/')
		length--;
	char *path = length ? xstrndup(given, length) : xstrdup(".");
	bool exists = stat_place(dest, length ? given : ".", &st) == 0, is_dir = exists && S_ISDIR(st.mode);
	bool makes_dir = is_dir || !only || entry_is_dir(only) || slash;
	int error = errno;

	/* What a module hides is no destination, neither as what exists there nor as what would be made. */
	if (dest_is_hidden_in(dest, "/", given, makes_dir) || (exists && dest_is_hidden_in(dest, "/", given, is_dir))) {
		log_set_role("Receiver");
		die(EXIT_FILESELECT, "ERROR: daemon has excluded destination \"%s\"", given);
	}
	errno = error;
	if (!exists && errno == ENOENT && dest->options->mkpath && (strchr(given, '/') || entries > 1)) {
		make_path(dest, slash || entries > 1 ? xstrdup(path) : parent_of(path));
		exists = stat_place(dest, given, &st) == 0;
	}
	/* A link of somebody else that stands for no directory is only a name: what is copied replaces it. */
	exists = exists
		 || (errno == ELOOP && !dest->module && stat_operator(given, FS_ANY_LINKS, &st) == 0 && !S_ISDIR(st.mode));
	if (!exists && errno == ELOOP)
		cannot_use(dest, EXIT_FILESELECT, "change_dir#1", given, " failed");
	if (!exists && errno != ENOENT)
		cannot_use(dest, EXIT_FILESELECT, "ERROR: cannot stat destination", given, "");
	is_dir = exists && S_ISDIR(st.mode);
	if (exists && !is_dir && (entries > 1 || (only && entry_is_dir(only)))) {
		log_set_role("Receiver");
		die(EXIT_FILESELECT, entries > 1 ? "ERROR: destination must be a directory when copying more than 1 file"
						 : "ERROR: cannot overwrite non-directory with a directory");
	}
	if (is_dir)
		dest_open_top(dest, path);
	else if (!exists && (entries > 1 || slash))
		make_top(dest, path, true);
	else if (!exists && only && !strcmp(entry_name(first, only), "."))
		make_top(dest, path, false);
	else
		use_single_name(dest, path);
	free(path);
}
