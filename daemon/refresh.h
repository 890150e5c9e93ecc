/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --refresh-attrs: what is run after each update of the mirrored trees. */
#ifndef DAEMON_REFRESH_H
#define DAEMON_REFRESH_H

struct options;

/*
 * Bring the attr trees and attr snapshots of the modules that the operands name (of all that have one, without operands) up to
 * date, as the daemon's own configuration describes them; one line of output for each. The exit code:
 *   0   everything is up to date, or left to a process that is at it (--no-wait)
 *   1   the configuration is at fault: trying again is of no use
 *   any other: the first that a module's run ended with, see EXIT VALUES of rsync-huai(1); trying again may help
 */
int daemon_refresh_main(struct options *options);

#endif
