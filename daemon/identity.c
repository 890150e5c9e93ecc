/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The user and groups of a module, and giving up all others for good (doc/protocol/07-daemon.md sections 5.11 and 5.17). */
#include "daemon/identity.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/roots.h"
#include "daemon/session.h"
#include "daemon/talk.h"
#include "lib/alloc.h"
#include "lib/log.h"

/* All digits and an id: (uid_t)-1 means "leave it" to the system calls and is not one. */
static bool parse_id(const char *text, uint32_t *id)
{
	unsigned long long value = 0;

	if (!*text || strlen(text) > 10)
		return false;
	for (; *text; text++) {
		if (!isdigit((unsigned char)*text))
			return false;
		value = value * 10 + (unsigned long long)(*text - '0');
	}
	if (value >= UINT32_MAX)
		return false;
	*id = (uint32_t)value;
	return true;
}

static bool find_uid(const char *text, uid_t *uid)
{
	const struct passwd *user;

	if (parse_id(text, uid))
		return true;
	user = getpwnam(text);
	if (user)
		*uid = user->pw_uid;
	return user != NULL;
}

static bool find_gid(const char *text, gid_t *gid)
{
	const struct group *group;

	if (parse_id(text, gid))
		return true;
	group = getgrnam(text);
	if (group)
		*gid = group->gr_gid;
	return group != NULL;
}

/* The two texts that say what is wrong: for the log and for the client. */
struct fault {
	struct strbuf *log, *answer;
};

static bool invalid(struct fault fault, const char *what, const char *name)
{
	strbuf_addf(fault.log, "Invalid %s %s", what, name);
	strbuf_addf(fault.answer, "invalid %s %s", what, name);
	return false;
}

static bool add_default_groups(struct identity *identity, struct fault fault)
{
	gid_t gid;

	if (!find_gid("nobody", &gid) && !find_gid("nogroup", &gid))
		return invalid(fault, "gid", "nobody");
	vec_push(&identity->gids, gid);
	return true;
}

/* "*": all groups that the user database gives to the module's user. */
static bool add_groups_of_user(struct identity *identity, struct fault fault)
{
	const struct passwd *user = getpwuid(identity->set_uid ? identity->uid : geteuid());
	int room = 32, count;
	gid_t *groups = NULL;

	if (!user) {
		strbuf_addf(fault.log, "getpwuid(%u) failed", (unsigned)identity->uid);
		strbuf_add_string(fault.answer, "getpwuid failed");
		return false;
	}
	do {
		room *= 2;
		count = room;
		groups = xrealloc_array(groups, (size_t)room, sizeof *groups);
	} while (getgrouplist(user->pw_name, user->pw_gid, groups, &count) < 0 && room < 65536);
	for (int i = 0; i < count && i < room; i++)
		vec_push(&identity->gids, groups[i]);
	free(groups);
	return true;
}

static bool add_group(struct identity *identity, const char *name, struct fault fault)
{
	gid_t gid;

	if (!strcmp(name, "*")) {
		if (!identity->gids.count)
			return add_groups_of_user(identity, fault);
		strbuf_add_string(fault.log, "invalid gid setting.");
		strbuf_add_string(fault.answer, "invalid gid setting.");
		return false;
	}
	if (!find_gid(name, &gid))
		return invalid(fault, "gid", name);
	vec_push(&identity->gids, gid);
	return true;
}

static bool add_groups(struct identity *identity, char *text, struct fault fault)
{
	struct config_list list;
	char *name;

	config_list_start(&list, text);
	while ((name = config_list_next(&list)))
		if (!add_group(identity, name, fault))
			return false;
	return !identity->set_gid || identity->gids.count || add_default_groups(identity, fault);
}

bool identity_find(const struct module *module, struct identity *identity, struct strbuf *log, struct strbuf *answer)
{
	const struct fault fault = { log, answer };
	char *uid = config_text(module->uid), *gid = config_text(module->gid);
	const char *user = *uid ? uid : "nobody";
	bool root = geteuid() == 0, ok;

	identity->set_uid = *uid || root;
	identity->set_gid = *gid || root;
	if (identity->set_uid && !find_uid(user, &identity->uid))
		ok = invalid(fault, "uid", user);
	else
		ok = add_groups(identity, gid, fault);
	free(uid);
	free(gid);
	return ok;
}

void identity_resolve(struct daemon_session *session)
{
	struct strbuf log = STRBUF_INIT, answer = STRBUF_INIT;

	if (!identity_find(session->module, &session->identity, &log, &answer)) {
		log_error("%s", strbuf_text(&log));
		session_refuse(session, "%s", strbuf_text(&answer));
	}
	strbuf_free(&log);
	strbuf_free(&answer);
}

/* The groups of the starting process are given up if either of the two is set. */
static bool assume_daemon_group(const char *name, bool user_changes)
{
	gid_t gid = getegid();

	if (!*name && !user_changes)
		return true;
	if (*name && !find_gid(name, &gid)) {
		log_error("Invalid daemon gid: %s", name);
		return false;
	}
	if (setgroups(1, &gid) == 0 && setresgid(gid, gid, gid) == 0)
		return true;
	log_errno(L_ERROR, errno, "Unable to set group to daemon gid: %u", (unsigned)gid);
	return false;
}

static bool assume_daemon_user(const char *name)
{
	uid_t uid;

	if (!*name)
		return true;
	if (!find_uid(name, &uid)) {
		log_error("Invalid daemon uid: %s", name);
		return false;
	}
	if (setresuid(uid, uid, uid) == 0 && (uid == 0 || setuid(0) < 0))
		return true;
	log_errno(L_ERROR, errno, "Unable to set user to daemon uid: %u", (unsigned)uid);
	return false;
}

bool identity_assume_daemon(const struct config_globals *globals)
{
	char *root = config_text(globals->daemon_chroot), *uid = config_text(globals->daemon_uid);
	char *gid = config_text(globals->daemon_gid);
	bool ok = (!*root || roots_enter_daemon(root)) && assume_daemon_group(gid, *uid) && assume_daemon_user(uid);

	free(root);
	free(uid);
	free(gid);
	return ok;
}

const char *identity_take(const struct identity *identity)
{
	if (identity->set_gid) {
		gid_t gid = identity->gids.items[0];

		if (setresgid(gid, gid, gid) < 0)
			return "setgid";
		if (setgroups(identity->gids.count, identity->gids.items) < 0)
			return "setgroups";
	}
	if (!identity->set_uid)
		return NULL;
	if (setresuid(identity->uid, identity->uid, identity->uid) < 0)
		return "setuid";
	/* A uid that can come back was never given up. */
	if (identity->uid != 0 && setuid(0) == 0) {
		errno = ENOTRECOVERABLE;
		return "setuid";
	}
	return NULL;
}

void identity_assume(struct daemon_session *session)
{
	const struct identity *identity = &session->identity;
	const char *failed = identity_take(identity);
	const struct rlimit no_core = { 0, 0 };

	if (failed) {
		log_errno(L_ERROR, errno, "%s %u failed", failed,
			  (unsigned)(strcmp(failed, "setuid") ? identity->gids.items[0] : identity->uid));
		session_refuse(session, "%s failed", failed);
	}
	/* A client that misuses this process must gain no rights by it, and no core file of it is left. */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	setrlimit(RLIMIT_CORE, &no_core);
}
