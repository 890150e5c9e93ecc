/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small trees for the tests of fs/: a temporary directory that goes away, and one-line ways to fill it. */
#ifndef FS_TREE_H
#define FS_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/file.h"
#include "testsuite/unit/unit.h"

/* The tests of a program share one tree; paths are relative to it, it is the working directory. */
static char tree_path[64];

static inline int tree_setup(void **state)
{
	(void)state;
	strcpy(tree_path, "/tmp/fs-test.XXXXXX");
	umask(022);
	return mkdtemp(tree_path) && chdir(tree_path) == 0 ? 0 : -1;
}

static inline int tree_teardown(void **state)
{
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		execlp("rm", "rm", "-rf", "--", tree_path, (char *)NULL);
		_exit(127);
	}
	return chdir("/") < 0 || waitpid(child, NULL, 0) < 0;
}

static inline void tree_dir(const char *path)
{
	assert_return_code(mkdir(path, 0755), errno);
}

static inline void tree_file(const char *path, const char *content)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(content, file);
	assert_int_equal(fclose(file), 0);
}

static inline void tree_link(const char *target, const char *path)
{
	assert_return_code(symlink(target, path), errno);
}

static inline bool tree_has(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* A file below the root, whole: 0, or -1 with errno. */
static inline int tree_read_below(const struct fs_root *root, const char *path, size_t limit, struct strbuf *out)
{
	int fd = fs_open(root, path, O_RDONLY | FS_FOLLOW, 0), result = fd < 0 ? -1 : fs_read_all(fd, limit, out);

	fs_close(fd);
	return result;
}

/* Content of an open file from its position on, as a string; closes it. */
static inline const char *tree_content_of(int fd)
{
	static char content[4096];
	ssize_t length = read(fd, content, sizeof content - 1);

	assert_true(length >= 0);
	content[length] = '\0';
	close(fd);
	return content;
}

static inline const char *tree_content(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_return_code(fd, errno);
	return tree_content_of(fd);
}

/* What `run` exits with in a child process whose user is `uid`. */
static inline int tree_as_user(uid_t uid, int (*run)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (setgid(uid) < 0 || setuid(uid) < 0)
			_exit(99);
		_exit(run());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#endif
