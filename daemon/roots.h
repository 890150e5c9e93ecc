/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The place of a module and its border, in the order in which a session calls these. */
#ifndef DAEMON_ROOTS_H
#define DAEMON_ROOTS_H

#include <stdbool.h>
#include <stddef.h>

struct daemon_session;
struct module;

/* Of the whole daemon, before anything of a module. false: it has been logged why. */
bool roots_enter_daemon(const char *path);

void place_resolve(struct daemon_session *session);  /* path and chroot decision */
/* Reads the module's rules into `hidden`. A faulty rule ends the process. */
void rules_load(struct daemon_session *session);
void roots_open(struct daemon_session *session);     /* attribute and content side, before any privilege goes */
void roots_enter(struct daemon_session *session);    /* chroot, change directory, munge check */
void roots_confine(struct daemon_session *session);  /* the sandbox around what is left: daemon/sandbox.h */

/* The rules of one parameter only; its name and its value in the module (rules or their file), NULL beyond the last one. */
void rules_load_parameter(struct daemon_session *session, size_t index);
const char *rules_parameter(const struct module *module, size_t index, const char **value, bool *is_file);

bool place_munges_symlinks(const struct daemon_session *session);
bool place_is_read_only(const struct daemon_session *session);
/* Are names of users and groups never sent to the clients of the module? */
bool session_hides_names(const struct daemon_session *session);

#endif
