/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Waiting for a child process. */
#ifndef LIB_PROCESS_H
#define LIB_PROCESS_H

#include <errno.h>
#include <sys/wait.h>

/* Its status, of waitpid(); -1 with errno if there is no such child. */
static inline int process_wait(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

#endif
