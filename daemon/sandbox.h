/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The last border of a session: the kernel gets a list of what it will still need, and forbids the rest (Landlock and a seccomp
 * filter). The resolvers of fs/ keep names inside the module; this holds if a session is talked into running foreign code.
 * Commands of the module run in processes that were forked before, and are not confined.
 */
#ifndef DAEMON_SANDBOX_H
#define DAEMON_SANDBOX_H

#include <stdbool.h>

struct sandbox {
	int attr_root, content_root; /* descriptors of directories; -1: there is none */
	bool writable;               /* the attribute root may be changed */
	bool as_root;                /* the process runs as root */
	bool names_ids;              /* it looks up names of users and groups */
};

/* Has the C library read the files that it needs from outside, before they are out of reach: also for a chroot. */
void sandbox_prepare(void);

/* Confine this process, with what the kernel has. NULL, or what failed though the kernel has it, with errno. */
const char *sandbox_enter(const struct sandbox *sandbox);

/* Log what this kernel cannot give. */
void sandbox_report(void);

#endif
