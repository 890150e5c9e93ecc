/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The daemon's configuration file: where it lies, and how its problems are reported. */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include "loadparm.h"
#include "options.h"

/* Which configuration file the command line means. */
const char *daemon_config_path(const struct options *options);
/* Loads that file, with the parameters of the command line laid over it: see config_load. */
struct config *daemon_config_load(const struct options *options, enum config_mode mode, struct config_problems *problems);
/* Log the problems that are at least this bad, as "FILE:LINE: TEXT". */
void daemon_report_problems(const struct config_problems *problems, enum config_severity least);

#endif
