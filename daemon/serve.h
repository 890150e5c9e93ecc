/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From an admitted and confined client to the server that both transports share. */
#ifndef DAEMON_SERVE_H
#define DAEMON_SERVE_H

#include <stdnoreturn.h>

#include "daemon/session.h"

#define DEFAULT_PORT 873

/* The module's settings on top of the client's options (doc/protocol/07-daemon.md section 5.20), then server_run. */
noreturn void daemon_serve(struct daemon_session *session);

#endif
