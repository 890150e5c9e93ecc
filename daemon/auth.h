/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Admission to a module, in the order in which a session calls these. A client that may not come in is refused. */
#ifndef DAEMON_AUTH_H
#define DAEMON_AUTH_H

struct daemon_session;
struct module;

/* By `hosts allow` and `hosts deny`; a module whose configuration has an error admits nobody. */
void session_check_access(struct daemon_session *session);
/* Challenge the client if the module asks for users; sets `user`, and `read_only` if the user's rule says so. */
void session_authenticate(struct daemon_session *session);
/*
 * Take the connection's place in the module, as far as they are limited, in all and from one client: record locks in the
 * module's lock file, which the kernel frees however a process ends. `slot_fd` holds it. A slot is for those who have been let
 * in (S-054).
 */
void session_claim_slot(struct daemon_session *session);

/* Why nobody could log in to the module, as far as that lies with its secrets file; NULL. */
const char *auth_secrets_problem(const struct module *module);

#endif
