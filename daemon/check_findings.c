/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Noting what is wrong with a value of the configuration, and looking at what it names. */
#include "daemon/check_findings.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/operator.h"

void check_add_at(struct config_problems *problems, const struct config_place *place, const char *file,
		  enum config_severity severity, const char *text)
{
	config_problem_add(problems, place ? place->file : file, place ? place->line : 0, severity, "%s", text);
}

char *check_known_text(const char *value)
{
	char *text = config_text(value);

	if (*text && !strstr(text, "%RSYNC_"))
		return text;
	free(text);
	return NULL;
}

bool check_may_read(const char *path)
{
	int fd = fs_operator_open(path, O_RDONLY | O_NONBLOCK, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}
