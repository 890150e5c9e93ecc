/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which extended attributes are sent, kept, compared and removed, and under which names (doc/protocol/05-xattrs-acls.md
 * section 5.4).
 */
#ifndef FLIST_XATTR_NAMES_H
#define FLIST_XATTR_NAMES_H

#include <pthread.h>
#include <stdbool.h>

#include "filter/filter.h"
#include "options.h"

/* What --fake-super keeps; never sent, received, compared or removed as what they are. */
#define XATTR_OWN_PREFIX "user.rsync."
#define XATTR_PERCENT_PREFIX "user.rsync.%"

/* One side's rules. */
struct xattr_policy {
	enum super_level level;
	bool verbatim;             /* -XX: names of XATTR_PERCENT_PREFIX are ordinary ones */
	struct filter_list *rules; /* those of this side; NULL: none */
	pthread_mutex_t *lock;     /* of the rules, if several threads look things up; else NULL */
};

/* Sender: the name that a local attribute travels under; part of `name`. NULL: it stays here. */
const char *xattr_name_to_send(const struct xattr_policy *policy, const char *name);
/* Receiver: the local name of what has come, for the caller to free. NULL: it is not kept. */
char *xattr_name_to_keep(const struct xattr_policy *policy, const char *name);
/* Receiver: is a local attribute compared with what has come, and removed if it has not? */
bool xattr_name_counts(const struct xattr_policy *policy, const char *name);

#endif
