/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The filter rules of a server's own command line, and the files that it names. */
#ifndef SERVER_RULES_H
#define SERVER_RULES_H

#include "server.h"

/* Open a file that the command line names, for reading. -1 with errno. */
int server_open_named(const struct server *server, const char *path, int flags);
/* Fill in server->rules. What is wrong with them ends the process. */
void server_read_rules(struct server *server);

#endif
