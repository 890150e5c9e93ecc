/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The paths of a module's two sides. */
#include "loadparm/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/file.h"
#include "fs/operator.h"
#include "lib/alloc.h"

/* Lexical clean-up of an operator's absolute path. A relative one is left to the resolver: its ".." may be meant. */
static char *clean_path(const char *path)
{
	char *clean;
	size_t length;

	if (*path != '/')
		return xstrdup(path);
	clean = xmalloc(strlen(path) + 3);
	clean[0] = '/';
	fs_clean_path(clean + 1, path);
	for (length = strlen(clean); length > 1 && clean[length - 1] == '/';)
		clean[--length] = 0;
	if (!strcmp(clean, "/."))
		clean[1] = 0;
	return clean;
}

bool place_divides(const struct module *module, const char *path)
{
	return module->use_chroot != NO && strstr(path, "/./");
}

void place_split(struct module_place *place, const char *path, bool chroot)
{
	const char *mark = strstr(path, "/./");
	char *text;

	*place = (struct module_place){ .chroot = chroot, .divided = chroot && mark, .path = clean_path(path) };
	if (mark) {
		text = xstrndup(path, (size_t)(mark - path));
		place->mark = clean_path(*text ? text : "/");
		free(text);
	}
	place->outer = xstrdup(place->divided ? place->mark : place->path);
	/* clean_path makes "/x" of "/x"; below the outer root it is "x". */
	text = place->divided ? clean_path(mark + 2) : NULL;
	place->inner = xstrdup(text ? text + 1 : "");
	free(text);
}

void place_free(struct module_place *place)
{
	free(place->mark);
	free(place->outer);
	free(place->inner);
	free(place->path);
	*place = (struct module_place){ .chroot = false };
}

/* --- the prefix --- */

/* A directory as a process in the root `top` opens it; -1: this process's own root. Closes `top`. */
static int enter(int top, const char *path)
{
	const int flags = O_PATH | O_DIRECTORY;
	int fd = top < 0 ? fs_operator_open(path, flags, 0) : fs_operator_open_in(top, path, flags);

	fs_close(top);
	return fd;
}

int place_open_prefix(const struct module_place *place, const char *daemon_root, const char *prefix, struct fs_root *root)
{
	int fd = -1;

	if (*prefix != '/') {
		errno = EINVAL;
		return -1;
	}
	if (*daemon_root && (fd = enter(-1, daemon_root)) < 0)
		return -1;
	if (place->divided && (fd = enter(fd, place->outer)) < 0)
		return -1;
	fd = enter(fd, prefix);
	if (fd < 0)
		return -1;
	fs_root_adopt(root, fd);
	return 0;
}

char *place_below(const char *daemon_root, const char *path)
{
	char *both, *clean;

	if (!*daemon_root || !*path)
		return xstrdup(path);
	/* Each is cleaned on its own: a ".." ends at its own root. */
	clean = clean_path(path);
	both = xasprintf("%s/%s", daemon_root, clean);
	free(clean);
	clean = clean_path(both);
	free(both);
	return clean;
}

char *place_prefix_path(const struct module_place *place, const char *daemon_root, const char *prefix)
{
	char *inside, *path;

	if (!place->divided)
		return place_below(daemon_root, prefix);
	inside = place_below(place->outer, prefix);
	path = place_below(daemon_root, inside);
	free(inside);
	return path;
}

char *place_find_prefix(const struct module_place *place, const char *daemon_root, const char *prefix)
{
	struct fs_root root;
	char *path = NULL;

	/* Where the root is this process's own, the links are the resolver's business. */
	if ((place->divided || *daemon_root) && place_open_prefix(place, daemon_root, prefix, &root) == 0) {
		path = fs_path_of(root.fd);
		fs_root_close(&root);
	}
	return path ? path : place_prefix_path(place, daemon_root, prefix);
}

/* Says so if there is something at another reading of a path than the one that counts; uses `path` up. */
static bool mention(char *path, const char *what, const char *root, struct strbuf *why)
{
	int fd = fs_operator_open(path, O_PATH, 0);

	if (fd >= 0)
		strbuf_addf(why, "; there is a %s, but %s is seen from %s", path, what, root);
	fs_close(fd);
	free(path);
	return fd >= 0;
}

void place_explain_prefix(const struct module_place *place, const char *daemon_root, const char *prefix, int error,
			  struct strbuf *why)
{
	char *path = place_prefix_path(place, daemon_root, prefix), *root = place_prefix_path(place, daemon_root, "/");
	struct module_place other = *place;

	strbuf_addf(why, "real file prefix \"%s\"", prefix);
	if (strcmp(path, prefix) != 0)
		strbuf_addf(why, " is %s", path);
	strbuf_addf(why, ": %s", strerror(error));
	other.divided = !place->divided;
	other.outer = place->mark;
	if (!place->mark || !mention(place_prefix_path(&other, daemon_root, prefix), "the prefix", root, why))
		if (*daemon_root)
			mention(xstrdup(prefix), "the prefix", root, why);
	free(path);
	free(root);
}

void place_mention_snapshot(const struct module_place *place, const char *daemon_root, const char *snapshot, struct strbuf *why)
{
	struct module_place inside = *place;

	inside.divided = place->mark;
	inside.outer = place->mark;
	if (place->mark || *daemon_root)
		mention(place_prefix_path(&inside, daemon_root, snapshot), "an attr snapshot", "/", why);
}
