/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The attributes that an object is to have.
 *
 * ACLs as a file list has them (doc/protocol/05-xattrs-acls.md section 5.6): an access ACL travels without what the mode says,
 * and one that has come is made whole again for each file that has it. These functions are pure.
 *
 * Extended attributes by their local names, compared with those that an object has, and set (section 5.5). A list that has come
 * from a peer knows long values by their digests first; one that is read from a source has all values.
 */
#ifndef FLIST_ATTRIBUTES_H
#define FLIST_ATTRIBUTES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter/filter.h"
#include "fs/xattr.h"
#include "options.h"

/* --- ACLs --- */

/* Take out of an access ACL what `mode` says (5.6.2). */
void acl_reduce(struct fs_acl *acl, uint32_t mode);
/* Of an ACL as it came: where named entries need a mask that was not sent, there is one (5.6.5 step 2). */
void acl_complete(struct fs_acl *acl, bool is_default, uint32_t mode);
/* The whole access ACL of a file with this mode. The named entries are those of `reduced`. */
struct fs_acl acl_of_file(const struct fs_acl *reduced, uint32_t mode);
/* A default ACL as the kernel wants it; entries likewise. */
struct fs_acl acl_of_directory(const struct fs_acl *defaults);

/* Does a file that has (or is to have) this mode have the access ACL already? Its permission bits are not compared (5.6.6). */
bool acl_same_access(const struct fs_acl *reduced, uint32_t mode, const struct fs_acl *have);
bool acl_same_default(const struct fs_acl *wanted, const struct fs_acl *have);
/* Does it say more than a mode does? */
bool acl_is_extended(const struct fs_acl *acl);

/* --- names of xattrs: which are sent, kept, compared and removed (doc/protocol/05-xattrs-acls.md section 5.4) --- */

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

/* --- lists of them --- */

#define XATTR_SHORT 32          /* longer values are known by their MD5 first */
#define XATTR_DIGEST_LENGTH 16
#define XATTR_KEPT_MAX 65536    /* longer ones no Linux file system takes: their bytes are not kept */

struct xattr_value {
	size_t length;
	uint8_t bytes[];        /* none if longer than XATTR_KEPT_MAX */
};

struct xattr_item {
	char *name;             /* local */
	size_t length;          /* as listed */
	uint8_t digest[XATTR_DIGEST_LENGTH]; /* of a long value that has been listed */
	_Atomic(struct xattr_value *) value; /* NULL: not known (yet); set once, by the thread that reads */
	int32_t number;         /* of the sender's list, from 1 */
	bool requested;         /* of a peer, once in a connection; for the thread that writes */
};

struct xattr_list {
	struct xattr_item *items; /* by name */
	size_t count;
};

/* Add an item; `name` and `value` (NULL: only the digest is known) become the list's. *capacity: 0 at first. */
void xattr_list_add(struct xattr_list *list, size_t *capacity, const struct xattr_item *item);
/* After the last one. Of two of the same name, which only a peer can have sent, one stays. */
void xattr_list_sort(struct xattr_list *list);
void xattr_list_free(struct xattr_list *list);
struct xattr_value *xattr_value_new(const void *bytes, size_t length);

/* What a source has, as a sender with the one policy would send it and a receiver with the other would keep it; takes `have`
 * over. */
void xattr_list_from_source(struct xattr_list *list, struct fs_xattr_list *have, const struct xattr_policy *sends,
			    const struct xattr_policy *keeps);

/* Does the object have just these? */
bool xattr_list_same(const struct xattr_list *list, const struct fs_xattr_list *have, const struct xattr_policy *policy);
/* Is this value the one that is listed? */
bool xattr_item_matches(const struct xattr_item *item, const void *value, size_t length);
/* Of these attributes of an object, the one of that name, or NULL. */
const struct fs_xattr *xattr_find(const struct fs_xattr_list *have, const char *name);

/* Said of an attribute (NULL: of all) that cannot be read or set. error 0: there is no system's reason. */
struct xattr_complaint {
	void (*say)(void *context, int error, const char *call, const char *name);
	void *context;
};

/*
 * Give the object `to` what it does not have, take from it what it should not have. `old` has what its predecessor had: values
 * that only digests are known of are taken from there. Calls are named "setxattr" and "removexattr"; "" is a value that should
 * be in `old` and is not. Returns whether anything was changed.
 */
bool xattr_list_apply(const struct xattr_list *list, const struct fs_held *to, const struct fs_xattr_list *old,
		      const struct xattr_policy *policy, const struct xattr_complaint *complaint);

#endif
