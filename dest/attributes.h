/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ACLs and extended attributes of objects of the destination. Any thread, but for dest_want_attributes. */
#ifndef DEST_ATTRIBUTES_H
#define DEST_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attrs/entry.h"
#include "flist/attributes.h"
#include "lib/vec.h"

struct file_job;
struct fs_held;
struct fs_root;
struct dest;
struct source_attributes;
struct task;

/* What an object is to have besides what stat(2) shows. */
struct wanted {
	const struct fs_acl *access, *defaults; /* reduced (flist/attributes.h); NULL: ACLs are left alone */
	const struct xattr_list *xattrs;        /* NULL: they are left alone */
	bool is_known;                          /* read already */
	bool lacks_values;                      /* there are values that neither the list nor the destination has (yet) */
	struct source_attributes *own;          /* read for this one; NULL: they are the list's */
};

/* Those values. */
struct lacking {
	VEC(struct xattr_item *) items;
};

/* An object whose attributes are set, in the directory of its task. */
struct attr_subject {
	struct task *task;
	const char *name;      /* in messages; ".": the directory itself */
	const char *old_name;  /* of what it is to replace, or of itself; NULL: it is new */
	int alternate;         /* 1 + number of the alternate destination that has the old one; 0: none */
	const char *role;      /* in messages of ACLs, static */
	bool is_link;
};

/* Hold an object to apply attributes to it; false with a message if it cannot be opened (fs_held.fd is then -1). */
bool subject_hold(const struct attr_subject *subject, int dir_fd, const char *name, struct fs_held *held);
/* The same of a descriptor that stays the caller's. */
bool subject_hold_open(const struct attr_subject *subject, int fd, struct fs_held *held);
/* Read the wishes for a file's entry (false: the source cannot be read, errno); for any entry (main thread). */
bool job_want_attributes(struct file_job *job);
void dest_want_attributes(struct dest *dest, int32_t node, const struct entry *entry, struct wanted *wanted);
void wanted_free(struct wanted *wanted);
/* ITEM_REPORT_ACL and ITEM_REPORT_XATTR, if an object that is to have this mode differs; name NULL: nothing is there. */
uint32_t wanted_compare(const struct dest *dest, struct wanted *wanted, mode_t mode, int dir_fd, const char *name);
void wanted_find_lacking(const struct wanted *wanted, int dir_fd, const char *name, struct lacking *lacking);
/* Set what is not as it should be; true if anything was. ACLs change permission bits to those of the listed mode: *mode, which
 * is otherwise the one to be set, has to be set again then. */
bool apply_xattrs(const struct attr_subject *subject, const struct wanted *wanted, const struct fs_held *held);
bool apply_acls(const struct attr_subject *subject, const struct wanted *wanted, const struct fs_held *held, mode_t listed,
		mode_t *mode);

/* Give the new object `to_name` the attributes of another one, as far as any are kept and can be set. */
void dest_copy_attributes(const struct dest *dest, const struct fs_root *root, const char *from_path, int to_fd,
			  const char *to_name);

#endif
