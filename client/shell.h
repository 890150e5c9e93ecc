/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The remote shell of a client. */
#ifndef CLIENT_SHELL_H
#define CLIENT_SHELL_H

#include <stdbool.h>

#include "client.h"

/* Start the remote shell; what it runs is `words` behind the rsync path, as they are. Sets in_fd, out_fd, shell_pid. */
void shell_start(struct connection *connection, const struct options *options, const struct remote *remote,
		const struct args *words);
/* Does the end of the session with this code leave the shell with nothing more to do? */
bool shell_has_finished(int code);
/* Wait for it as long as the circumstances of the end allow. The larger one of `code` and what it ended with. */
int shell_end(struct connection *connection, int code);

#endif
