/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the parts of --config-check do with one value: note a problem at its place, and look at what it names. */
#ifndef DAEMON_CHECK_FINDINGS_H
#define DAEMON_CHECK_FINDINGS_H

#include <stdbool.h>

#include "loadparm.h"

/* A problem at the place, or of the file as a whole. */
void check_add_at(struct config_problems *problems, const struct config_place *place, const char *file,
		  enum config_severity severity, const char *text);
/* The value as a session would have it; NULL if that depends on the client, or if it is not set. */
char *check_known_text(const char *value);
bool check_may_read(const char *path);

#endif
