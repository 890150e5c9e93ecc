/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Admission to a module: the lists of hosts, the login (`auth users`, `secrets file` and the challenge:
 * doc/protocol/07-daemon.md section 5.10), and the limits of connections. Whatever is wrong with a login, the client gets the
 * same answer, after the same work; only the log says why.
 */
#include "daemon/auth.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <nettle/memops.h>

#include "daemon/peer.h"
#include "daemon/session.h"
#include "daemon/talk.h"
#include "delta/digest.h"
#include "filter/wildmatch.h"
#include "fs/file.h"
#include "fs/lock.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "loadparm/hosts.h"
#include "wire/setup.h"

#define ANSWER_SIZE 5119             /* with the NUL */
#define SECRET_LINE_MAX 1023
#define SECRETS_SIZE_MAX (64u << 20)

/* --- the module's lists of hosts --- */

/* A denied client learns of an unlisted module no more than of one that does not exist (S-099). */
void session_check_access(struct daemon_session *session)
{
	const struct module *module = session->module;
	struct peer *peer = &session->peer;
	struct strbuf learned = STRBUF_INIT;
	const struct host_peer host = {
		.address = peer->address, .name = peer->name, .forward_lookup = module->forward_lookup, .learned = &learned,
	};
	char *allow, *deny;
	bool allowed;

	if (module->reverse_lookup)
		memcpy(peer->name, peer->real_name, sizeof peer->name);
	setenv("RSYNC_MODULE_NAME", module->name, 1);
	setenv("RSYNC_HOST_NAME", peer->name, 1);
	setenv("RSYNC_HOST_ADDR", peer->address, 1);
	setenv("RSYNC_USER_NAME", "", 1);
	allow = config_text(module->hosts_allow);
	deny = config_text(module->hosts_deny);
	allowed = hosts_allowed(allow, deny, &host);
	if (learned.length && learned.length < sizeof peer->name)
		memcpy(peer->name, learned.data, learned.length + 1);
	strbuf_free(&learned);
	free(allow);
	free(deny);
	if (!allowed)
		log_msg(L_LOG, "rsync denied on module %s from %s (%s)", module->name, peer->name, peer->address);
	else if (module->disabled)
		log_error("module %s is not served: its configuration has an error", module->name);
	if ((!allowed || module->disabled) && !module->list)
		session_refuse(session, "Unknown module '%s'", module->name);
	if (!allowed)
		session_refuse(session, "access denied to %s from %s (%s)", module->name, peer->name, peer->address);
	if (module->disabled)
		session_refuse(session, "daemon security issue -- contact admin");
	if (!session->over_shell)
		log_msg(L_LOG, "rsync allowed access on module %s from %s (%s)", module->name, peer->name, peer->address);
}

/* --- rules about users --- */

/* The rule that decides about a user. */
struct rule {
	enum { RULE_NONE, RULE_DENY, RULE_PLAIN, RULE_READ_ONLY, RULE_READ_WRITE } kind;
	char *group; /* the user's group that a group rule has matched; else NULL */
};

static int rule_kind(const char *option)
{
	if (!option)
		return RULE_PLAIN;
	if (tolower((unsigned char)*option) == 'd')
		return RULE_DENY;
	return !strncasecmp(option, "ro", 2) ? RULE_READ_ONLY : !strncasecmp(option, "rw", 2) ? RULE_READ_WRITE : RULE_PLAIN;
}

/* The name of the first group of a user of this system that the pattern matches; NULL. */
static char *find_group(const char *user, const char *pattern)
{
	const struct passwd *account = getpwnam(user);
	size_t count;
	gid_t *groups;
	char *name = NULL;

	if (!account)
		return NULL;
	groups = groups_of_user(user, account->pw_gid, &count);
	for (size_t i = 0; i < count && !name; i++) {
		const struct group *group = getgrgid(groups[i]);

		if (group && wildmatch(pattern, group->gr_name))
			name = xstrdup(group->gr_name);
	}
	free(groups);
	return name;
}

/* The first rule that names the user decides. */
static struct rule find_rule(char *users, const char *user)
{
	struct rule rule = { RULE_NONE, NULL };
	struct config_list list;
	char *token;

	config_list_start(&list, users);
	while (rule.kind == RULE_NONE && (token = config_list_next(&list))) {
		char *colon = strchr(token, ':');

		if (colon)
			*colon = 0;
		if (*token == '@' ? (rule.group = find_group(user, token + 1)) != NULL : wildmatch(token, user))
			rule.kind = rule_kind(colon ? colon + 1 : NULL);
	}
	return rule;
}

/* --- secrets --- */

/* -1: there is none; else *laxity is the reason for which `strict modes` rejects the file, NULL for none. */
static int open_secrets(const struct module *module, const char **laxity)
{
	char *path = config_text(module->secrets_file);
	int fd = *path ? fs_operator_open(path, O_RDONLY | O_NONBLOCK, 0) : -1;
	struct stat st;

	*laxity = NULL;
	if (fd >= 0 && module->strict_modes) {
		if (fstat(fd, &st) < 0 || st.st_mode & 06)
			*laxity = "secrets file must not be other-accessible (see strict modes option)";
		else if (geteuid() == 0 && st.st_uid != 0)
			*laxity = "secrets file must be owned by root when running as root (see strict modes)";
	}
	free(path);
	return fd;
}

const char *auth_secrets_problem(const struct module *module)
{
	struct strbuf text = STRBUF_INIT;
	const char *problem, *at;
	bool has_secret = false;
	int fd;

	if (!*module->secrets_file)
		return "there is none";
	fd = open_secrets(module, &problem);
	if (fd < 0)
		return strerror(errno);
	if (!problem && fs_read_all(fd, SECRETS_SIZE_MAX, &text) < 0)
		problem = strerror(errno);
	/* Is there a line that could be somebody's? */
	for (at = strbuf_text(&text); *at && !has_secret; at += strspn(at, "\r\n")) {
		size_t length = strcspn(at, "\r\n");

		has_secret = *at != '#' && length <= SECRET_LINE_MAX && memchr(at, ':', length);
		at += length;
	}
	if (!problem && !has_secret)
		problem = "there are no users in it";
	close(fd);
	if (text.data)
		explicit_bzero(text.data, text.capacity);
	strbuf_free(&text);
	return problem;
}

/* The whole file, or the reason why not. It is read for users whom no rule admits, too, but nothing is logged then. */
static const char *read_secrets(const struct module *module, bool logs, struct strbuf *text)
{
	const char *why = NULL, *laxity;
	int fd = open_secrets(module, &laxity);

	if (fd < 0)
		return "no secrets file";
	if (laxity && logs)
		log_msg(L_LOG, "%s", laxity);
	if (laxity)
		why = "ignoring secrets file";
	else if (fs_read_all(fd, SECRETS_SIZE_MAX, text) < 0)
		why = "no secrets file";
	close(fd);
	return why;
}

/* The password of a line "NAME:PASSWORD" or "@GROUP:PASSWORD"; NULL if it is somebody else's. */
static const char *password_of_line(const char *line, const char *name, bool is_group)
{
	size_t length = strlen(name);

	if (is_group && *line++ != '@')
		return NULL;
	return !strncmp(line, name, length) && line[length] == ':' ? line + length + 1 : NULL;
}

/* Is it the response to the challenge that the password would give? Without a password no is the answer, as slowly. */
static bool is_answer(const char *digest, const char *challenge, const char *password, const char *response)
{
	char expected[AUTH_TEXT_MAX] = "", given[AUTH_TEXT_MAX] = "";
	bool same;

	auth_response(digest, password ? password : "", challenge, expected);
	memcpy(given, response, strnlen(response, sizeof given));
	/* The bytes behind the end of the expected one are as secret as the password. */
	memset(expected + strlen(expected), 0, sizeof expected - strlen(expected));
	same = memeql_sec(expected, given, sizeof expected);
	explicit_bzero(expected, sizeof expected);
	return same && password;
}

/* The reason to refuse the user, NULL for none. */
static const char *check_secret(const struct module *module, const struct rule *rule, const char *digest, const char *challenge,
				const char *user, const char *response)
{
	struct strbuf text = STRBUF_INIT;
	const char *why = read_secrets(module, rule->kind > RULE_DENY, &text);
	/* The passwords of the user and of the user's group; they point into the text. */
	const char *of_user = NULL, *of_group = NULL;
	char *at = text.data, *end = at ? at + text.length : NULL;
	bool by_user, by_group;

	/* The whole file is scanned for every user: the time does not reveal who is in it (S-062). */
	while (at < end) {
		size_t length = strcspn(at, "\r\n");
		const char *password;

		at[length] = 0;
		password = length > SECRET_LINE_MAX ? NULL : password_of_line(at, user, false);
		if (password && !of_user)
			of_user = password;
		password = length > SECRET_LINE_MAX ? NULL : password_of_line(at, rule->group ? rule->group : "", true);
		if (password && rule->group && !of_group)
			of_group = password;
		at += length + 1;
	}
	by_user = is_answer(digest, challenge, of_user, response);
	by_group = is_answer(digest, challenge, of_group, response);
	if (!why && (*user == '#' || *user == '@' || !*user))
		why = "invalid username";
	if (!why && !of_user && !of_group)
		why = "secret not found";
	if (!why && !by_user && !by_group)
		why = "password mismatch";
	if (text.data)
		explicit_bzero(text.data, text.capacity);
	strbuf_free(&text);
	return why;
}

/* --- the login --- */

/* Whoever guesses is kept waiting, as a process that counts for its host, even if it does not wait for the answer. */
static noreturn void refuse(struct daemon_session *session)
{
	const struct origin origin = origin_of_address(session->peer.address);
	const int64_t wait = guesses_failed(session->guesses, &origin, clock_nanoseconds());
	const struct timespec pause = { wait / CLOCK_SECOND, wait % CLOCK_SECOND };
	sigset_t set = session_ending_signals();

	/* A signal that ends the process ends the pause. */
	if (wait && sigtimedwait(&set, NULL, &pause) > 0)
		exit_with(EXIT_SIGNAL);
	session_clear_deadline(session);
	session_refuse(session, "auth failed on module %s", session->module->name);
}

/* Before it is known who it is. */
__attribute__((format(printf, 2, 3)))
static noreturn void refuse_stranger(struct daemon_session *session, const char *fmt, ...)
{
	struct strbuf why = STRBUF_INIT;
	va_list args;

	va_start(args, fmt);
	strbuf_vaddf(&why, fmt, args);
	va_end(args);
	log_msg(L_LOG, "auth failed on module %s from %s (%s): %s", session->module->name, session->peer.name,
		session->peer.address, strbuf_text(&why));
	refuse(session);
}

static const char *choose_digest(struct daemon_session *session)
{
	const char *digest = auth_digest_choose(session->digests, session_caps_of(session->protocol).md5);
	const char *name;
	char *floor;

	if (!digest)
		session_refuse(session, "your client does not support one of our daemon-auth checksums: %s",
			       greeting_digests());
	floor = config_text(session->module->auth_digest);
	if (*floor && auth_digest_rank(floor) < 0)
		refuse_stranger(session, "the configured 'auth digest = %s' is not a supported digest on this build", floor);
	name = *digest ? digest : "md4";
	if (*floor && auth_digest_rank(name) > auth_digest_rank(floor))
		refuse_stranger(session, "negotiated auth digest %s is weaker than the required 'auth digest = %s'", name,
				floor);
	free(floor);
	return digest;
}

void session_authenticate(struct daemon_session *session)
{
	char *users = config_text(session->module->auth_users), challenge[AUTH_TEXT_MAX], user[ANSWER_SIZE], *response;
	const char *digest, *why;
	struct rule rule;

	if (!*users) {
		free(users);
		return;
	}
	digest = choose_digest(session);
	auth_challenge(digest, challenge);
	session_say(session, "@RSYNCD: AUTHREQD ");
	session_say(session, challenge);
	session_say(session, "\n");
	wire_flush(session->wire);
	session_read_line(session, user, sizeof user);
	response = strchr(user, ' ');
	if (!response)
		refuse_stranger(session, "invalid challenge response");
	*response++ = 0;
	rule = find_rule(users, user);
	why = check_secret(session->module, &rule, digest, challenge, user, response);
	if (rule.kind == RULE_NONE)
		why = "no matching rule";
	if (rule.kind == RULE_DENY)
		why = "denied by rule";
	if (why) {
		log_msg(L_LOG, "auth failed on module %s from %s (%s) for %s: %s", session->module->name, session->peer.name,
			session->peer.address, user, why);
		refuse(session);
	}
	if (rule.kind == RULE_READ_ONLY || rule.kind == RULE_READ_WRITE)
		session->read_only = rule.kind == RULE_READ_ONLY;
	session->user = xstrdup(user);
	free(rule.group);
	free(users);
}

/* --- how many may use it at a time (doc/protocol/07-daemon.md section 5.9) --- */

static noreturn void refuse_lock_file(struct daemon_session *session, const char *path)
{
	log_errno(L_ERROR, errno, "failed to open lock file %s", path);
	session_refuse(session, "failed to open lock file");
}

void session_claim_slot(struct daemon_session *session)
{
	const int limit = session->module->max_connections, host_limit = session->module->max_connections_per_host;
	const struct origin origin = origin_of_address(session->peer.address);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	char *path;

	session->slot_fd = -1;
	if (!limit && !host_limit)
		return;
	path = config_text(session->module->lock_file);
	session->slot_fd = fs_operator_open(path, O_RDWR | O_CREAT | O_NONBLOCK, 0600);
	if (session->slot_fd < 0)
		refuse_lock_file(session, path);
	/* A client, by its address or network, and the module: whoever uses one of them has not used up another. */
	for (const char *at = session->module->name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	hash = origin_hash(&origin, hash);
	/* Clients without an address cannot be distinguished, and are not limited. */
	if (host_limit && origin.family != AF_UNSPEC && fs_slots_take(session->slot_fd, &hash, host_limit) < 0) {
		if (errno != EBUSY)
			refuse_lock_file(session, path);
		session_refuse_crowd(session, &(struct session_limit){ "max connections per host", host_limit });
	}
	if (limit && fs_slots_take(session->slot_fd, NULL, limit) < 0) {
		if (errno != EBUSY)
			refuse_lock_file(session, path);
		log_error("max connections (%d) reached", limit);
		session_refuse(session, "max connections (%d) reached -- try again later", limit);
	}
	free(path);
}
