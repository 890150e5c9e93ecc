/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The daemon: listen, admit, confine, serve (doc/protocol/07-daemon.md). */
#ifndef DAEMON_H
#define DAEMON_H

#include "options.h"

/*
 * --daemon: standalone, inetd or socket-activated depending on descriptor 0; also --config-check. "--server --daemon .": one
 * session on stdin and stdout, for a remote shell. Returns the exit code.
 */
int daemon_main(struct options *options);

#endif
