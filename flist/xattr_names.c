/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names of extended attributes and what becomes of them. */
#include "flist/xattr_names.h"

#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"

static bool starts_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_fake_record(const char *name)
{
	static const char *const records[] = { "stat", "aacl", "dacl" };

	for (size_t i = 0; i < sizeof records / sizeof *records; i++)
		if (starts_with(name, XATTR_PERCENT_PREFIX) && !strcmp(name + strlen(XATTR_PERCENT_PREFIX), records[i]))
			return true;
	return false;
}

/* What the rules say: -1 nothing, because there are none of the kind. */
static int excluded(const struct xattr_policy *policy, const char *name)
{
	int result;

	if (!policy->rules)
		return -1;
	if (policy->lock)
		pthread_mutex_lock(policy->lock);
	result = filter_excludes_xattr(policy->rules, name);
	if (policy->lock)
		pthread_mutex_unlock(policy->lock);
	return result;
}

static bool is_reserved(const struct xattr_policy *policy, const char *name)
{
	return (!policy->verbatim && starts_with(name, XATTR_PERCENT_PREFIX))
	       || (policy->level == LEVEL_FAKE && is_fake_record(name));
}

const char *xattr_name_to_send(const struct xattr_policy *policy, const char *name)
{
	int rule = excluded(policy, name);

	if (rule > 0 || (rule < 0 && starts_with(name, "system.")) || is_reserved(policy, name))
		return NULL;
	if (policy->level == LEVEL_FAKE && starts_with(name, XATTR_OWN_PREFIX) && !starts_with(name, XATTR_PERCENT_PREFIX)
	    && name[strlen(XATTR_OWN_PREFIX)])
		return name + strlen(XATTR_OWN_PREFIX);
	return name;
}

char *xattr_name_to_keep(const struct xattr_policy *policy, const char *name)
{
	bool is_foreign = policy->level != LEVEL_ROOT && !starts_with(name, "user.");
	int rule = excluded(policy, name);

	/* Nobody has asked for a system's own attributes; ACLs have their own option. */
	if (rule > 0 || (rule < 0 && starts_with(name, "system.")))
		return NULL;
	if (is_foreign && rule < 0 && policy->level == LEVEL_NORMAL)
		return NULL;
	char *local = is_foreign ? xasprintf("%s%s", XATTR_OWN_PREFIX, name) : xstrdup(name);

	if (!is_reserved(policy, local))
		return local;
	free(local);
	return NULL;
}

bool xattr_name_counts(const struct xattr_policy *policy, const char *name)
{
	int rule = excluded(policy, name);

	if (is_reserved(policy, name) || rule > 0)
		return false;
	if (rule == 0)
		return true;
	return policy->level == LEVEL_ROOT ? !starts_with(name, "system.") : starts_with(name, "user.");
}
