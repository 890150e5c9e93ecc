/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Paths as text: clean-up of a peer's path, and whether a symlink target may lead out of the transfer. */
#include <string.h>

#include "fs/root.h"

/* The component at `text`: its length; *text is moved past leading slashes. 0 at the end. */
static size_t next_component(const char **text)
{
	*text += strspn(*text, "/");
	return strcspn(*text, "/");
}

static bool is_component(const char *text, size_t length, const char *name)
{
	return length == strlen(name) && !memcmp(text, name, length);
}

/* Cut the last component of out[0..end]. */
static size_t without_last(const char *out, size_t end)
{
	while (end > 0 && out[end - 1] != '/')
		end--;
	return end > 0 ? end - 1 : 0;
}

void fs_clean_path(char *out, const char *path)
{
	size_t end = 0, length;
	bool slash = *path && path[strlen(path) - 1] == '/';

	while ((length = next_component(&path)) > 0) {
		bool is_dot = is_component(path, length, "."), is_parent = is_component(path, length, "..");

		if (is_parent) {
			end = without_last(out, end);
		} else if (!is_dot) {
			if (end > 0)
				out[end++] = '/';
			memmove(out + end, path, length);
			end += length;
		}
		path += length;
		if (!*path && ((is_dot && end > 0) || is_parent))
			slash = true;
	}
	if (end == 0)
		out[end++] = '.';
	if (slash)
		out[end++] = '/';
	out[end] = '\0';
}

/* Directories between the transfer root and the link. */
static int depth_of(const char *link_path)
{
	int depth = 0;
	size_t length;

	while ((length = next_component(&link_path)) > 0) {
		if (is_component(link_path, length, ".."))
			depth = 0;
		else if (!is_component(link_path, length, "."))
			depth++;
		link_path += length;
	}
	return depth > 0 ? depth - 1 : 0;
}

static bool ends_in_parent(const char *target)
{
	size_t length = strlen(target);

	return length >= 3 && !strcmp(target + length - 3, "/..");
}

/*
 * Only leading ".."s can be judged: what any later one climbs out of may be a symlink itself. So "a/../b" is unsafe although
 * its text stays inside, and so is "../..", which ends in one.
 */
bool fs_symlink_is_unsafe(const char *target, const char *link_path)
{
	int depth = depth_of(link_path);

	if (!*target || *target == '/' || ends_in_parent(target))
		return true;
	while (!strncmp(target, "../", 3)) {
		depth--;
		target += 3;
		target += strspn(target, "/");
	}
	if (!strcmp(target, ".."))
		depth--;
	return depth < 0 || strstr(target, "/../");
}
