/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The attr snapshots of a daemon's modules (attrs/snapshot.h).
 *
 * The listener maps and checks each new file once, before it forks, and its server processes inherit the mapping:
 *
 *	snapshots_new, then snapshots_refresh before every fork
 *
 * A server process decides whether its module can be served from what it inherited, or opens the file itself where there is
 * no listener, where the path differs from client to client, or where the configuration is newer than what the listener has
 * seen. What it finds is logged once for all processes of the listener.
 *
 * While the file at a path is damaged, the snapshot that it replaced stays in use; if the path leads nowhere, none is.
 */
#ifndef DAEMON_SNAPSHOTS_H
#define DAEMON_SNAPSHOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "attrs/snapshot.h"
#include "lib/strbuf.h"
#include "loadparm.h"
#include "options.h"

struct snapshots;

/* Knows nothing before the first refresh. Lives as long as the process. */
struct snapshots *snapshots_new(const struct options *options);

/*
 * Look whether the configuration or a snapshot has been replaced, and open what is new. What has not changed costs a look at
 * its path; a file that failed its check is not checked again before it changes. A configuration that cannot be used, now or
 * at all, leaves everything as it is. Never ends the process.
 */
void snapshots_refresh(struct snapshots *snapshots);

/* The state of one path. Texts and the snapshot belong to `struct snapshots`. */
struct snapshot_finding {
	struct attr_snapshot *snapshot; /* NULL: none */
	const char *why;                /* what is wrong with the file that is there now, "": nothing */
	bool missing;                   /* it is not there at all */
	uint64_t serial;                /* changes with every change of the above */
	_Atomic uint64_t *logged;       /* shared by all processes: what has been logged of the module; NULL: unknown */
};

/* false: the listener does not know this path. */
bool snapshots_find(const struct snapshots *snapshots, const char *module, const char *path, struct snapshot_finding *finding);

/* Things to be logged; bits. */
enum snapshot_news { SNAPSHOT_IN_USE = 1, SNAPSHOT_UNUSABLE = 2, SNAPSHOT_TOO_OLD = 4, SNAPSHOT_FOREIGN = 8 };

/* Is this process the first to say it of this finding? Only the first call with the same bit gets true. */
bool snapshot_is_news(const struct snapshot_finding *finding, enum snapshot_news news);

/*
 * May a module whose root directory is `root_fd` be served from the snapshot at the time `now`? SNAPSHOT_IN_USE, or
 * SNAPSHOT_TOO_OLD or SNAPSHOT_FOREIGN with the reason appended to `why`. max_age: seconds, 0 for any. root_fd -1: any root.
 */
enum snapshot_news snapshot_judge(const struct attr_snapshot *snapshot, int max_age, int root_fd, int64_t now,
				  struct strbuf *why);

/* Does the configuration, as it was last seen, have this module? */
bool snapshots_knows_module(const struct snapshots *snapshots, const char *module);

/* Of the i-th module that has an attr snapshot, whatever its root is. false: there are not so many. */
struct snapshot_state {
	const char *module;
	const struct attr_snapshot_facts *facts; /* NULL: there is none */
	bool usable;
};
bool snapshots_state(const struct snapshots *snapshots, size_t i, int64_t now, struct snapshot_state *state);

/* "generation 4, 22 entries, made 3 s ago" */
void snapshot_summary(const struct attr_snapshot *snapshot, int64_t now, struct strbuf *out);

/* For a check of the configuration: what stands against serving its modules from their snapshots at the moment. */
void snapshots_report(const struct snapshots *snapshots, const struct config *config, struct config_problems *problems);

struct daemon_session;

/*
 * In a server process, with the module's root open and all rights still there: make the snapshot the session's source, or
 * leave it a live one or refuse the client as the module says. All others are unmapped: their findings are void.
 */
void snapshot_choose(struct daemon_session *session);

#endif
