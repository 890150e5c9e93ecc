/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Read permission, asked of the kernel or of mode bits. */
#include "fs/access.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/alloc.h"

bool fs_is_readable_at(int dir_fd, const char *name)
{
	return faccessat(dir_fd, name, R_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) == 0;
}

bool fs_is_readable(const struct fs_root *root, const char *path)
{
	int fd = fs_open(root, path, O_PATH, 0);
	bool readable = fd >= 0 && faccessat(fd, "", R_OK, AT_EACCESS | AT_EMPTY_PATH) == 0;

	if (fd >= 0)
		close(fd);
	return readable;
}

void fs_credentials_read(struct fs_credentials *who)
{
	int count = getgroups(0, NULL);

	fs_credentials_free(who);
	who->uid = geteuid();
	who->gid = getegid();
	who->superuser = who->uid == 0;
	if (count > 0) {
		who->groups = xcalloc((size_t)count, sizeof *who->groups);
		count = getgroups(count, who->groups);
		who->group_count = count > 0 ? (size_t)count : 0;
	}
	who->known = true;
}

void fs_credentials_free(struct fs_credentials *who)
{
	free(who->groups);
	memset(who, 0, sizeof *who);
}

static bool is_member(const struct fs_credentials *who, uint32_t gid)
{
	for (size_t i = 0; i < who->group_count; i++)
		if (who->groups[i] == gid)
			return true;
	return who->gid == gid;
}

/* The first class that fits decides, even if it grants less than the next one. */
bool fs_permits(const struct fs_credentials *who, uint32_t mode, uint32_t uid, uint32_t gid, unsigned wanted)
{
	int shift = who->uid == uid ? 6 : is_member(who, gid) ? 3 : 0;

	return who->superuser || (mode >> shift & wanted) == wanted;
}
