/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How many may use a module at a time (protocol/07 section 5.9), in all and from one client: record locks in the module's lock
 * file, which the kernel frees however a process ends. A slot is for those who have been let in (S-054).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/hosts.h"
#include "daemon/session.h"
#include "daemon/talk.h"
#include "fs/lock.h"
#include "lib/log.h"

static noreturn void refuse_lock_file(struct daemon_session *session, const char *path)
{
	log_errno(L_ERROR, errno, "failed to open lock file %s", path);
	session_refuse(session, "failed to open lock file");
}

/* A client, by its address or network, and the module: whoever uses one of them has not used up another. */
static uint64_t holder_of(const struct daemon_session *session, const struct origin *origin)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *at = session->module->name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	return origin_hash(origin, hash);
}

/* Nobody is told apart who has no address. */
static void claim_host_slot(struct daemon_session *session, const char *path)
{
	const struct origin origin = origin_of_address(session->peer.address);
	const int limit = session->module->max_connections_per_host;

	if (!limit || origin.family == AF_UNSPEC ||
	    fs_slots_take_of(session->slot_fd, holder_of(session, &origin), limit) == 0)
		return;
	if (errno != EBUSY)
		refuse_lock_file(session, path);
	session_refuse_crowd(session, &(struct session_limit){ "max connections per host", limit });
}

static void claim_module_slot(struct daemon_session *session, const char *path)
{
	const int limit = session->module->max_connections;

	if (!limit || fs_slots_take(session->slot_fd, limit) == 0)
		return;
	if (errno != EBUSY)
		refuse_lock_file(session, path);
	log_error("max connections (%d) reached", limit);
	session_refuse(session, "max connections (%d) reached -- try again later", limit);
}

void session_claim_slot(struct daemon_session *session)
{
	const struct module *module = session->module;
	char *path;

	session->slot_fd = -1;
	if (!module->max_connections && !module->max_connections_per_host)
		return;
	path = config_text(module->lock_file);
	session->slot_fd = fs_slots_open(path);
	if (session->slot_fd < 0)
		refuse_lock_file(session, path);
	claim_host_slot(session, path);
	claim_module_slot(session, path);
	free(path);
}
