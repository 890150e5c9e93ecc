/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The configuration file of a daemon, as every part of it finds it and reports what is wrong with it. */
#include "daemon/config.h"

#include <unistd.h>

#include "lib/log.h"

const char *daemon_config_path(const struct options *options)
{
	if (options->config_file)
		return options->config_file;
	return options->server && geteuid() != 0 ? "rsyncd.conf" : "/etc/rsyncd.conf";
}

struct config *daemon_config_load(const struct options *options, enum config_mode mode, struct config_problems *problems)
{
	return config_load(daemon_config_path(options), options->dparams.items, options->dparams.count, mode, problems);
}

void daemon_report_problems(const struct config_problems *problems, enum config_severity least)
{
	for (size_t i = 0; i < problems->list.count; i++) {
		const struct config_problem *problem = &problems->list.items[i];
		enum log_kind kind = problem->severity <= CONFIG_NOTE ? L_WARNING : L_ERROR;

		if (problem->severity < least)
			continue;
		if (problem->line)
			log_msg(kind, "%s:%d: %s", problem->file, problem->line, problem->text);
		else
			log_msg(kind, "%s: %s", problem->file, problem->text);
	}
}
