/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --config-check, and what of it the listener does at its start and after SIGHUP. */
#ifndef DAEMON_CHECK_H
#define DAEMON_CHECK_H

#include <stdbool.h>

#include "daemon/snapshots.h"
#include "loadparm.h"
#include "options.h"

/*
 * Look at everything in the file, and at the snapshots that it names, which are refreshed; at nothing that could keep a
 * listener waiting. NULL if the file cannot be understood.
 */
struct config *check_load(const struct options *options, struct snapshots *snapshots, struct config_problems *problems);

/*
 * The whole check for an operator: also every file and directory that is named, as the users that the daemon and its modules
 * run as. What each module would do goes to stdout, but with --quiet; problems go to stderr. EXIT_SYNTAX if a module could not
 * be served, else EXIT_OK. Leaves nothing behind and opens nothing for writing.
 */
int daemon_check_main(const struct options *options);

/* Would this attr tree be written to the disks of its real tree? So it is when its tmpfs is not mounted. */
bool check_tree_is_on_disk(const char *tree, const char *real);

#endif
