/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the destination operand stands for: a directory to fill, or the one name to write (doc/protocol/06-command-line.md
 * section 10.2).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dest/module.h"
#include "dest/paths.h"
#include "dest/private.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/exit.h"

/* The operand taken apart. */
struct destination {
	struct local *local;
	const char *given;
	char *path;       /* without slashes at the end, "." for none */
	bool slash;       /* it had some */
	uint64_t entries; /* in the first lists */
};

/* For a module's client the world begins at its root. */
static char *absolute(const struct local *local, const char *path)
{
	struct strbuf full = STRBUF_INIT;
	char *cwd;

	if (local_module(local))
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
static char *as_asked(const struct local *local, const char *path)
{
	const struct local_module *module = local_module(local);

	return xasprintf("%s%s", module && module->root->trusting ? "/" : "", path);
}

static noreturn void cannot_use(struct local *local, int code, const char *what, const char *path, const char *after)
{
	const struct local_module *module = local_module(local);
	char *place = module ? xasprintf(" (in %s)", module->name) : xstrdup("");
	char *shown = module ? as_asked(local, path) : absolute(local, path);
	int error = errno;

	log_set_role("Receiver");
	if (error == ELOOP && !module)
		log_error("refusing to follow a symlink owned by an untrusted user; use --insecure-links locally or \"insecure "
			  "links = yes\" in a daemon module ONLY if every path component is trusted");
	log_errno(L_ERROR, error, "%s \"%s\"%s%s", what, shown, place, after);
	exit_with(code);
}

/*
 * The operator's own path: links of other users are not followed, unless that was asked for (doc/protocol/08-security.md
 * section 4.3). Or one below a module's root; whatever links mean to the one who names the destination, in it they lead nowhere
 * else.
 */
static int open_place(const struct local *local, struct fs_root *root, const char *path)
{
	const struct local_module *module = local_module(local);

	if (module && fs_root_open_below(root, module->root, path) < 0)
		return -1;
	if (!module) {
		int fd = fs_operator_open(path, O_PATH | O_DIRECTORY | FS_SILENT | options_link_flag(local->options), 0);

		if (fd < 0)
			return -1;
		fs_root_adopt(root, fd);
	}
	root->trusting = !module && local->options->insecure_links;
	return 0;
}

static int stat_place(const struct local *local, const char *path, struct fs_stat *st)
{
	const struct local_module *module = local_module(local);
	int fd, result;

	if (module)
		return fs_stat_follow(module->root, path, st);
	fd = fs_operator_open(path, O_PATH | FS_SILENT | options_link_flag(local->options), 0);
	if (fd < 0)
		return -1;
	result = fs_stat_at_fd(fd, st);
	close(fd);
	return result;
}

/* A link of somebody else that stands for no directory is only a name: what is copied replaces it. */
static bool is_foreign_file(const struct local *local, const char *path, struct fs_stat *st)
{
	int fd = local_module(local) ? -1 : fs_operator_open(path, O_PATH | FS_ANY_LINKS, 0);

	if (fd < 0)
		return false;
	int result = fs_stat_at_fd(fd, st);

	close(fd);
	return result == 0 && !S_ISDIR(st->mode);
}

static void open_top(struct destination *destination, const char *path)
{
	struct local *local = destination->local;

	local->top_path = absolute(local, path);
	if (open_place(local, &local->top, path) < 0)
		cannot_use(local, EXIT_FILESELECT, "change_dir#1", path, " failed");
}

void local_stay_here(struct local *local)
{
	local->top_path = absolute(local, ".");
	if (open_place(local, &local->top, ".") < 0)
		cannot_use(local, EXIT_FILESELECT, "change_dir#1", ".", " failed");
}

/* --- one entry under the operand's own name --- */

static const char *leaf_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

static void use_single_name(struct destination *destination)
{
	struct local *local = destination->local;
	char *parent = parent_of(destination->path);

	local->single_name = xstrdup(leaf_of(destination->path));
	if (!strcmp(local->single_name, ".") || !strcmp(local->single_name, "..")) {
		errno = ENOENT;
		cannot_use(local, EXIT_FILESELECT, "change_dir#3", parent, " failed");
	}
	local->top_path = absolute(local, parent);
	if (open_place(local, &local->top, parent) < 0) {
		if (!local->dry_run || !local->options->mkpath || errno != ENOENT)
			cannot_use(local, EXIT_FILESELECT, "change_dir#3", parent, " failed");
		local->top.fd = -1;
	}
	free(parent);
}

/* --- a directory that is not there yet --- */

static void make_top(struct destination *destination, bool announced)
{
	struct local *local = destination->local;
	char *parent;
	struct fs_root above;
	bool made;

	if (local->dry_run) {
		local->top.fd = -1;
		local->top_path = absolute(local, destination->path);
	} else {
		parent = parent_of(destination->path);
		local_guard_new(local, parent);
		made = open_place(local, &above, parent) == 0;
		if (made) {
			made = fs_mkdir_at(above.fd, leaf_of(destination->path), local_unlisted_mode(local, above.fd)) == 0;
			int error = errno;
			fs_root_close(&above);
			errno = error;
		}
		if (!made)
			cannot_use(local, EXIT_FILEIO, "mkdir", destination->path, " failed");
		free(parent);
		open_top(destination, destination->path);
	}
	local->top_is_new = true;
	if (announced && local->names_directories) {
		char *shown = as_asked(local, destination->path);

		log_info("created directory %s", shown);
		free(shown);
	}
}

static int count_missing(struct destination *destination, const char *path)
{
	struct fs_stat st;
	char *parent;
	int count = 0;

	if (stat_place(destination->local, path, &st) == 0) {
		local_guard_new(destination->local, path);
		return 0;
	}
	parent = parent_of(path);
	count = 1 + (strcmp(parent, ".") && strcmp(parent, "/") ? count_missing(destination, parent) : 0);
	free(parent);
	return count;
}

/* All of it that is missing, below what is there. */
static int make_missing(const struct local *local, const char *path)
{
	char *there = xstrdup(path);
	struct fs_root root;
	struct fs_stat st;
	int result;

	while (stat_place(local, there, &st) < 0 && errno == ENOENT && strcmp(there, ".") && strcmp(there, "/")) {
		char *parent = parent_of(there);

		free(there);
		there = parent;
	}
	const char *rest = strcmp(there, ".") ? path + strlen(there) : path;

	result = open_place(local, &root, there);
	if (result == 0) {
		result = fs_make_path(&root, rest + strspn(rest, "/"), local_unlisted_mode(local, root.fd));
		int error = errno;

		fs_root_close(&root);
		errno = error;
	}
	free(there);
	return result;
}

static void make_path(struct destination *destination)
{
	struct local *local = destination->local;
	bool whole = destination->slash || destination->entries > 1;
	char *path = whole ? xstrdup(destination->path) : parent_of(destination->path);
	int made = count_missing(destination, path);

	if (made && !local->dry_run && make_missing(local, path) < 0)
		cannot_use(local, EXIT_FILEIO, "mkdir", path, " failed");
	if (made && local->names_directories) {
		char *shown = as_asked(local, path);

		log_info("created %d director%s for %s", made, made == 1 ? "y" : "ies", shown);
		free(shown);
	}
	free(path);
}

/* --- the decision --- */

static const struct entry *only_entry(struct destination *destination)
{
	const struct entries *first = flist_dir(destination->local->list, 0)->entries;

	return destination->entries == 1 && first->count ? &first->items[0] : NULL;
}

static void use_existing(struct destination *destination, const struct fs_stat *st)
{
	const struct entry *only = only_entry(destination);
	const char *role = log_role();

	if (S_ISDIR(st->mode)) {
		open_top(destination, destination->path);
		return;
	}
	log_set_role("Receiver");
	if (destination->entries > 1)
		die(EXIT_FILESELECT, "ERROR: destination must be a directory when copying more than 1 file");
	if (only && entry_is_dir(only))
		die(EXIT_FILESELECT, "ERROR: cannot overwrite non-directory with a directory");
	log_set_role(role);
	use_single_name(destination);
}

static void use_missing(struct destination *destination)
{
	const struct entry *only = only_entry(destination);
	const struct entries *first = flist_dir(destination->local->list, 0)->entries;

	if (destination->entries > 1 || destination->slash)
		make_top(destination, true);
	else if (only && !strcmp(entry_name(first, only), "."))
		make_top(destination, false);
	else
		use_single_name(destination);
}

static char *without_slashes(const char *given)
{
	size_t length = strlen(given);

	while (length > 1 && given[length - 1] == '/')
		length--;
	return length ? xstrndup(given, length) : xstrdup(".");
}

/* Is the name that is written a directory's? */
static bool makes_directory(struct destination *destination)
{
	const struct entry *only = only_entry(destination);

	return !only || entry_is_dir(only) || destination->slash;
}

/* What a module hides is no destination, neither as what exists there nor as what would be made. st: NULL if it is missing. */
static void refuse_hidden(struct destination *destination, const struct fs_stat *st)
{
	struct local *local = destination->local;
	const char *given = destination->given;
	bool is_dir = st && S_ISDIR(st->mode), makes_dir = is_dir || makes_directory(destination);
	int error = errno;

	if (!local_is_hidden_in(local, "/", given, makes_dir) && !(st && local_is_hidden_in(local, "/", given, is_dir))) {
		errno = error;
		return;
	}
	log_set_role("Receiver");
	die(EXIT_FILESELECT, "ERROR: daemon has excluded destination \"%s\"", given);
}

void local_choose_destination(struct local *local, const char *given, uint64_t entries)
{
	struct destination destination = { .local = local, .given = given, .entries = entries };
	size_t length = strlen(given);
	struct fs_stat st;
	bool exists;

	destination.path = without_slashes(given);
	destination.slash = length > 0 && given[length - 1] == '/';
	exists = stat_place(local, length ? given : ".", &st) == 0;
	refuse_hidden(&destination, exists ? &st : NULL);
	if (!exists && errno == ENOENT && local->options->mkpath && (strchr(given, '/') || entries > 1)) {
		make_path(&destination);
		exists = stat_place(local, given, &st) == 0;
	}
	exists = exists || (errno == ELOOP && is_foreign_file(local, given, &st));
	if (!exists && errno == ELOOP)
		cannot_use(local, EXIT_FILESELECT, "change_dir#1", given, " failed");
	if (!exists && errno != ENOENT)
		cannot_use(local, EXIT_FILESELECT, "ERROR: cannot stat destination", given, "");
	if (exists)
		use_existing(&destination, &st);
	else
		use_missing(&destination);
	free(destination.path);
}
