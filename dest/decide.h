/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What must happen to one file: pure functions over (list entry, destination's attributes, options), design rule 2. Used by
 * local runs and those with a peer; the same answer feeds itemized output and statistics (doc/protocol/03-transfer.md
 * sections 8 and 9).
 */
#ifndef DEST_DECIDE_H
#define DEST_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attrs/entry.h"
#include "fs/root.h"
#include "options.h"

/* Of a mode. */
#define PERMISSION_BITS 07777u
#define SETID_BITS (S_ISUID | S_ISGID)

enum action {
	ACTION_NONE,          /* nothing to do, nothing to say */
	ACTION_SKIP,          /* not to be touched; see skip */
	ACTION_ATTRS,         /* up to date: only attributes (maybe none differ) */
	ACTION_COPY,          /* regular file: content */
	ACTION_MAKE,          /* directory, symlink, device, special: create or replace */
	ACTION_DELETE,        /* missing argument with --delete-missing-args */
	ACTION_LEAVE_OUT,     /* an alternate destination has it: nothing is to be here */
	ACTION_TAKE_COPY,     /* regular file: content of an alternate destination's */
	ACTION_TAKE_LINK,     /* hard link to an alternate destination's */
};
enum skip_reason { SKIP_NOTHING, SKIP_NOT_CREATING, SKIP_EXISTS, SKIP_NEWER, SKIP_OVER_MAX, SKIP_UNDER_MIN, SKIP_NOT_REGULAR };

struct decision {
	enum action action;
	enum skip_reason skip;
	uint32_t item_flags; /* ITEM_* of wire/request.h as doc/protocol/03-transfer.md section 9.1 computes them */
	bool make_room;      /* something of another type is in the way */
	int alternate;       /* 1 + number of the alternate destination whose file is taken or is the basis; 0: none */
};

/* What the decision may need to look at beyond metadata, asked for only when needed. */
struct decide_probe {
	bool (*same_content)(void *context); /* --checksum, or attr files: do contents agree? */
	bool (*same_target)(void *context);  /* symlinks */
	void *context;
	bool (*same_attributes)(void *context); /* alternates: ACLs and extended attributes; NULL: none are kept */
};

/* The destination's attributes as they matter to a decision; exists false: nothing there. */
struct decide_dest {
	bool exists;
	bool is_device;      /* --write-devices: one that is taken for a regular file, as st says */
	struct fs_stat st;
};

struct decide_rules {
	const struct options *options;
	bool am_root;
	mode_t umask;
	/* Owners of the entry become these: --usermap and --groupmap of a local run; NULL: they stay. Any thread. */
	uint32_t (*map_id)(void *context, bool group, uint32_t id);
	void *map_context;
	bool check_content;  /* --only-send-attrs: equal size and time are not enough */
	const gid_t *groups; /* not root: the groups that a file can be given to; NULL: none */
	size_t group_count;
};

/* --- alternate destinations: --compare-dest, --copy-dest, --link-dest (doc/protocol/03-transfer.md section 11.2) --- */

enum alternate_kind { ALTERNATE_COMPARE, ALTERNATE_COPY, ALTERNATE_LINK };
enum alternate_level { ALTERNATE_NONE, ALTERNATE_EXISTS, ALTERNATE_UNCHANGED, ALTERNATE_SAME };

/* The best that an alternate destination has for an entry. */
struct decide_alternate {
	enum alternate_level level;
	int number;              /* of the destination, from 0 */
	struct decide_dest dest; /* its object */
};

/* Can what an alternate destination has matter, with this at the destination? */
bool decide_wants_alternate(enum alternate_kind kind, const struct entry *entry, const struct decide_dest *dest);
/* How well does an object of an alternate destination agree with the entry? The probe looks at that object. */
enum alternate_level decide_alternate_level(const struct decide_rules *rules, const struct entries *list,
					    const struct entry *entry, const struct decide_dest *object,
					    const struct decide_probe *probe);
/* Change a decision of decide() about an entry that decide_wants_alternate() to what is best with that alternate. */
void decide_with_alternate(const struct decide_rules *rules, const struct entries *list, const struct entry *entry,
			   const struct decide_dest *dest, enum alternate_kind kind,
			   const struct decide_alternate *alternate, struct decision *decision);

void decide(const struct decide_rules *rules, const struct entries *list, const struct entry *entry,
	    const struct decide_dest *dest, const struct decide_probe *probe, struct decision *decision);
/* Is this object a regular file with everything that a listing shows of the entry? Then no option that goes by the listing
 * alone finds anything to do. */
bool decide_is_settled(const struct decide_rules *rules, const struct entry *entry, const struct fs_stat *st);
/* Final permission bits of the destination (doc/protocol/03-transfer.md section 8.1 step 8, doc/protocol/06-command-line.md
 * sections 11.1 and 11.2). */
mode_t decide_mode(const struct decide_rules *rules, const struct entry *entry, const struct decide_dest *dest);

/* The parts of decide() that a caller needs on their own: */

/* ITEM_* of `entry` against `dest` on top of `start` (doc/protocol/03-transfer.md section 9.1); dest absent: ITEM_IS_NEW. */
uint32_t decide_item_flags(const struct decide_rules *rules, const struct entries *list, const struct entry *entry,
			   const struct decide_dest *dest, uint32_t start);
/* Is there an object of the entry's kind? Both kinds of devices are one here, and so are pipes and sockets. */
bool decide_same_kind(const struct entry *entry, const struct decide_dest *dest);
/* Is the modification time of this kind of entry kept? */
bool decide_keeps_time(const struct options *options, const struct entry *entry);
/* The ids that the entry is to have there; UINT32_MAX: one that cannot be set. */
uint32_t decide_uid(const struct decide_rules *rules, const struct entry *entry);
uint32_t decide_gid(const struct decide_rules *rules, const struct entry *entry);
/* The arguments of chown(2) for an object that has these ids now, (uid_t)-1 and (gid_t)-1 for what stays. Returns which of
 * them should change and cannot. */
enum { OWNER_UID_IMPOSSIBLE = 1, OWNER_GID_IMPOSSIBLE = 2 };
#define OWNER_UID_TEXT "uid 4294967295 (-1) is impossible to set on "
#define OWNER_GID_TEXT "gid 4294967295 (-1) is impossible to set on "
unsigned decide_owner(const struct decide_rules *rules, const struct entry *entry, uint32_t old_uid, uint32_t old_gid,
		      uid_t *uid, gid_t *gid);
bool decide_keeps_owner(const struct decide_rules *rules);
bool decide_keeps_group(const struct decide_rules *rules, const struct entry *entry);
/* Are the two times equal under --modify-window? */
bool decide_same_time(int window, int64_t a, uint32_t a_nsec, int64_t b, uint32_t b_nsec);
/* Is the item worth a line with -i / -vv (doc/protocol/03-transfer.md section 2.7)? */
bool decide_is_significant(uint32_t item_flags);

#endif
