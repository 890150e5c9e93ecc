/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where a module lies, what it hides from its clients, and how the process gets confined to it (doc/protocol/07-daemon.md
 * sections 5.12, 5.13, 5.15, 5.16). Both sides of a module, attributes and contents, are held as directory descriptors from
 * before the chroot on: whatever the process is rooted in afterwards, it reads below these two and nowhere else. The user and
 * groups of a module, and giving up all others for good (sections 5.11 and 5.17).
 */
#include "daemon/roots.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/sandbox.h"
#include "daemon/session.h"
#include "daemon/snapshots.h"
#include "daemon/talk.h"
#include "filter/add.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/log.h"

#define GROUPS_MAX 65536

/* --- where it lies --- */

void place_resolve(struct daemon_session *session)
{
	const struct module *module = session->module;
	const char *user = session->user, *const name = "%RSYNC_USER_NAME%";
	char *path;
	bool chroot = module->use_chroot == YES;
	int here, root;

	/* An anonymous client has no user name: the path would widen to the parent of all users' directories. So would "..". */
	if ((strstr(module->path, name) || strstr(module->real_file_prefix, name) || strstr(module->attr_snapshot, name))
	    && (!*user || !strcmp(user, ".") || !strcmp(user, "..") || strchr(user, '/'))) {
		log_error("the path of module %s needs a user name that is one component of a path", module->name);
		session_refuse(session, "no path setting.");
	}
	path = config_text(module->path);
	if (!*path) {
		log_error("No path specified for module %s", module->name);
		session_refuse(session, "no path setting.");
	}
	if (module->use_chroot == UNSET && !(chroot = place_divides(module, path))) {
		here = fs_operator_open(".", O_PATH | O_DIRECTORY, 0);
		root = fs_operator_open("/", O_PATH | O_DIRECTORY, 0);
		chroot = root >= 0 && fs_enter_chroot(root) == 0;
		if (!chroot) {
			log_errno(L_LOG, errno, "chroot test failed. Switching 'use chroot' from unset to false");
			if (here >= 0 && fchdir(here) < 0)
				log_errno(L_ERROR, errno, "cannot return to the working directory");
		}
		fs_close(here);
		fs_close(root);
	}
	place_split(&session->place, path, chroot);
	setenv("RSYNC_MODULE_PATH", session->place.path, 1);
	free(path);
}

/* --- what it hides --- */

/* Files that the configuration names are the operator's; per-directory rule files lie in the module, on its real side. */
static int open_rule_file(void *context, enum filter_place place, const char *path)
{
	const struct daemon_session *session = context;

	if (place == FILTER_AT_OPERATOR)
		return fs_operator_open(path, O_RDONLY | O_NONBLOCK, 0);
	while (*path == '/')
		path++;
	return fs_open(attr_source_real_root(&session->source), path, O_RDONLY | FS_FOLLOW, 0);
}

const struct rules_parameter *rules_parameter(enum module_rules which)
{
	static const struct rules_parameter parameters[MODULE_RULES] = {
		[RULES_FILTER] = { "filter", false, FILTER_NEW_STYLE },
		[RULES_INCLUDE_FROM] = { "include from", true, FILTER_OLD_INCLUDE },
		[RULES_INCLUDE] = { "include", false, FILTER_OLD_INCLUDE },
		[RULES_EXCLUDE_FROM] = { "exclude from", true, FILTER_OLD_EXCLUDE },
		[RULES_EXCLUDE] = { "exclude", false, FILTER_OLD_EXCLUDE },
	};

	return &parameters[which];
}

void rules_load_parameter(struct daemon_session *session, enum module_rules which)
{
	const struct filter_setup setup = { .side = FILTER_SENDER, .daemon_rules = true, .open_file = open_rule_file,
					    .context = session };
	const struct rules_parameter *parameter = rules_parameter(which);
	char *text = config_text(session->module->rules[which]);

	if (!session->hidden)
		session->hidden = filter_new(&setup);
	if (*text)
		(parameter->is_file ? filter_add_file : filter_add_words)(session->hidden, text, parameter->style);
	free(text);
}

void rules_load(struct daemon_session *session)
{
	for (int i = 0; i < MODULE_RULES; i++)
		rules_load_parameter(session, (enum module_rules)i);
	if (!filter_is_empty(session->hidden))
		return;
	filter_free(session->hidden);
	session->hidden = NULL;
}

/* --- its two roots --- */

static noreturn void refuse_place(struct daemon_session *session, bool chroot, const char *path)
{
	if (chroot)
		log_errno(L_ERROR, errno, "chroot(\"%s\") failed", path);
	else
		log_errno(L_ERROR, errno, "chdir %s failed", path);
	session_refuse(session, chroot ? "chroot failed" : "chdir failed");
}

void roots_open(struct daemon_session *session)
{
	const struct module_place *place = &session->place;
	struct attr_source *source = &session->source;
	char *prefix = config_text(session->module->real_file_prefix);
	struct strbuf why = STRBUF_INIT;

	*source = (struct attr_source){
		.kind = ATTRS_LIVE, .attr_root.fd = -1, .content_root.fd = -1, .module = session->module->name,
		.below_root = (!place->chroot && strcmp(place->outer, "/") != 0) || *place->inner,
	};
	if (fs_operator_root(&session->outer, place->outer) < 0)
		refuse_place(session, place->chroot, place->outer);
	if (fs_root_open_below(&source->attr_root, &session->outer, place->inner) < 0)
		refuse_place(session, false, place->path);
	if (*prefix)
		source->kind = ATTRS_ATTR_TREE;
	if (*prefix && place_open_prefix(place, "", prefix, &source->content_root) < 0) {
		place_explain_prefix(place, "", prefix, errno, &why);
		log_error("module %s: %s", session->module->name, strbuf_text(&why));
		session_refuse(session, "chdir failed");
	}
	free(prefix);
	snapshot_choose(session);
	/* Where the module is what the process will be rooted in, links lead nowhere else, not even absolute ones. */
	source->attr_root.trusting = ((place->chroot && !*place->inner) || session->module->insecure_links) &&
				     source->kind != ATTRS_ATTR_TREE;
	source->content_root.trusting |= session->module->insecure_links;
}

void roots_enter(struct daemon_session *session)
{
	const struct module_place *place = &session->place;

	if (place->chroot || session->daemon_options->sandbox)
		sandbox_prepare();
	if (place->chroot && fs_enter_chroot(session->outer.fd) < 0)
		refuse_place(session, true, place->outer);
	if (fchdir(session->source.attr_root.fd) < 0)
		refuse_place(session, false, place->path);
	fs_root_close(&session->outer);
	if (place_munges_symlinks(session) && attrs_munging_is_unsafe()) {
		log_error(MUNGE_UNSAFE);
		session_refuse(session, "daemon security issue -- contact admin");
	}
}

bool session_hides_names(const struct daemon_session *session)
{
	enum tristate numeric = session->module->numeric_ids;

	if (session->place.chroot)
		return numeric != NO && !session->converter;
	return numeric == YES;
}

bool place_munges_symlinks(const struct daemon_session *session)
{
	enum tristate munge = session->module->munge_symlinks;

	if (munge != UNSET)
		return munge == YES;
	return !session->place.chroot || *session->place.inner;
}

bool place_is_read_only(const struct daemon_session *session)
{
	/* An attr tree holds attributes: there is no place for contents. A snapshot would go on listing what is gone; and while
	 * it cannot be used, clients may not do more than otherwise. */
	return session->read_only || session->source.kind == ATTRS_ATTR_TREE || *session->module->attr_snapshot;
}

void roots_confine(struct daemon_session *session)
{
	const struct attr_source *source = &session->source;
	struct sandbox sandbox = {
		.attr_root = source->attr_root.fd, .content_root = source->content_root.fd,
		.writable = !place_is_read_only(session), .as_root = geteuid() == 0,
	};
	const char *failed;
	int root = -1;

	if (!session->daemon_options->sandbox)
		return;
	/* Where they are looked for inside of a module, its disk is read. */
	sandbox.names_ids = sandbox.writable || !session_hides_names(session);
	/* Where links lead anywhere, the border is the process's own root. */
	if (session->module->insecure_links)
		sandbox.attr_root = root = fs_operator_open("/", O_PATH | O_DIRECTORY, 0);
	failed = sandbox_enter(&sandbox);
	if (failed) {
		log_errno(L_ERROR, errno, "cannot enter the sandbox (%s); --no-sandbox serves without", failed);
		session_refuse(session, "daemon security issue -- contact admin");
	}
	fs_close(root);
}

bool identity_parse(const char *text, uint32_t *id)
{
	unsigned long long value = strtoull(text, NULL, 10);

	if (!*text || strlen(text) > 10 || text[strspn(text, "0123456789")] || value >= UINT32_MAX)
		return false;
	*id = (uint32_t)value;
	return true;
}

static bool find_uid(const char *text, uid_t *uid)
{
	const struct passwd *user;

	if (identity_parse(text, uid))
		return true;
	user = getpwnam(text);
	if (user)
		*uid = user->pw_uid;
	return user != NULL;
}

static bool find_gid(const char *text, gid_t *gid)
{
	const struct group *group;

	if (identity_parse(text, gid))
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

gid_t *groups_of_user(const char *name, gid_t gid, size_t *count)
{
	int room = 32, found;
	gid_t *groups = NULL;

	do {
		room *= 2;
		found = room;
		groups = xrealloc_array(groups, (size_t)room, sizeof *groups);
	} while (getgrouplist(name, gid, groups, &found) < 0 && room < GROUPS_MAX);
	*count = (size_t)(found < room ? found : room);
	return groups;
}

/* "*": all groups that the user database gives to the module's user. */
static bool add_group(struct identity *identity, const char *name, struct fault fault)
{
	const struct passwd *user;
	size_t count;
	gid_t gid, *groups;

	if (strcmp(name, "*")) {
		if (!find_gid(name, &gid))
			return invalid(fault, "gid", name);
		vec_push(&identity->gids, gid);
		return true;
	}
	if (identity->gids.count) {
		strbuf_add_string(fault.log, "invalid gid setting.");
		strbuf_add_string(fault.answer, "invalid gid setting.");
		return false;
	}
	user = getpwuid(identity->set_uid ? identity->uid : geteuid());
	if (!user) {
		strbuf_addf(fault.log, "getpwuid(%u) failed", (unsigned)identity->uid);
		strbuf_add_string(fault.answer, "getpwuid failed");
		return false;
	}
	groups = groups_of_user(user->pw_name, user->pw_gid, &count);
	for (size_t i = 0; i < count; i++)
		vec_push(&identity->gids, groups[i]);
	free(groups);
	return true;
}

bool identity_find(const struct module *module, struct identity *identity, struct strbuf *log, struct strbuf *answer)
{
	const struct fault fault = { log, answer };
	char *uid = config_text(module->uid), *gid = config_text(module->gid);
	const char *user = *uid ? uid : "nobody";
	bool root = geteuid() == 0, ok = true;
	struct config_list list;
	gid_t nobody;
	char *name;

	identity->set_uid = *uid || root;
	identity->set_gid = *gid || root;
	if (identity->set_uid && !find_uid(user, &identity->uid))
		ok = invalid(fault, "uid", user);
	config_list_start(&list, gid);
	while (ok && (name = config_list_next(&list)))
		ok = add_group(identity, name, fault);
	if (ok && identity->set_gid && !identity->gids.count) {
		ok = find_gid("nobody", &nobody) || find_gid("nogroup", &nobody) || invalid(fault, "gid", "nobody");
		if (ok)
			vec_push(&identity->gids, nobody);
	}
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

bool identity_assume_daemon(const struct config_globals *globals)
{
	char *root = config_text(globals->daemon_chroot), *user = config_text(globals->daemon_uid);
	char *group = config_text(globals->daemon_gid);
	gid_t gid = getegid();
	uid_t uid;
	int fd;
	bool ok = true;

	if (*root) {
		fd = fs_operator_open(root, O_PATH | O_DIRECTORY, 0);
		if (fd >= 0)
			sandbox_prepare();
		ok = fd >= 0 && fs_enter_chroot(fd) == 0;
		if (!ok)
			log_errno(L_ERROR, errno, "daemon chroot(\"%s\") failed", root);
		fs_close(fd);
	}
	/* The groups of the starting process are given up if either of the two is set. */
	if (ok && *group && !find_gid(group, &gid)) {
		log_error("Invalid daemon gid: %s", group);
		ok = false;
	}
	if (ok && (*group || *user) && (setgroups(1, &gid) < 0 || setresgid(gid, gid, gid) < 0)) {
		log_errno(L_ERROR, errno, "Unable to set group to daemon gid: %u", (unsigned)gid);
		ok = false;
	}
	if (ok && *user && !find_uid(user, &uid)) {
		log_error("Invalid daemon uid: %s", user);
		ok = false;
	}
	if (ok && *user && (setresuid(uid, uid, uid) < 0 || (uid != 0 && setuid(0) == 0))) {
		log_errno(L_ERROR, errno, "Unable to set user to daemon uid: %u", (unsigned)uid);
		ok = false;
	}
	free(root);
	free(user);
	free(group);
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
