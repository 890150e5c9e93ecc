/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --copy-as=USER[:GROUP]. */
#include "options/copy_as.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <unistd.h>

#include "fs/ids.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

enum { GROUPS_MAX = 65536 };

struct identity {
	uint32_t uid, gid;
	gid_t *groups;
	int group_count;
};

static noreturn void failed(const char *what, int error)
{
	log_errno(L_ERROR, error, "%s failed", what);
	exit_with(EXIT_SYNTAX);
}

static bool find(struct fs_ids *ids, bool (*by_name)(struct fs_ids *ids, const char *name, uint32_t *id), const char *text,
		 uint32_t *id)
{
	char *end;
	unsigned long number;

	if (text[strspn(text, "0123456789")] || !*text)
		return by_name(ids, text, id);
	errno = 0;
	number = strtoul(text, &end, 10);
	*id = (uint32_t)number;
	return !errno && number < UINT32_MAX;
}

/* Without a group of the operator's choice: those that the system gives to the user. */
static void learn_groups(struct identity *identity)
{
	errno = 0;
	const struct passwd *user = getpwuid(identity->uid);

	if (!user)
		failed("getpwuid", errno);
	identity->gid = user->pw_gid;
	identity->group_count = 64;
	do {
		identity->group_count *= 2;
		identity->groups = xrealloc_array(identity->groups, (size_t)identity->group_count, sizeof *identity->groups);
	} while (getgrouplist(user->pw_name, user->pw_gid, identity->groups, &identity->group_count) < 0
		 && identity->group_count < GROUPS_MAX);
}

static void resolve(const char *text, struct identity *identity)
{
	const char *colon = strchr(text, ':');
	char *user = xstrndup(text, strcspn(text, ":"));
	struct fs_ids *ids = fs_ids_new(NULL, NULL);

	if (!find(ids, fs_user_id, user, &identity->uid))
		die(EXIT_SYNTAX, "Invalid copy-as user: %s", user);
	if (!colon) {
		learn_groups(identity);
	} else {
		if (!find(ids, fs_group_id, colon + 1, &identity->gid))
			die(EXIT_SYNTAX, "Invalid copy-as group: %s", colon + 1);
		identity->groups = xcalloc(1, sizeof *identity->groups);
		identity->groups[0] = identity->gid;
		identity->group_count = 1;
	}
	fs_ids_free(ids);
	free(user);
}

void copy_as_assume(const struct options *options)
{
	struct identity identity = { .groups = NULL };

	if (!options->copy_as)
		return;
	resolve(options->copy_as, &identity);
	if (setresgid(identity.gid, identity.gid, identity.gid) < 0)
		failed("setgid", errno);
	if (setgroups((size_t)identity.group_count, identity.groups) < 0)
		failed("setgroups", errno);
	if (setresuid(identity.uid, identity.uid, identity.uid) < 0)
		failed("setuid", errno);
	/* A uid that can come back was never given up. */
	if (identity.uid != 0 && setuid(0) == 0)
		failed("giving up root", 0);
	free(identity.groups);
}
