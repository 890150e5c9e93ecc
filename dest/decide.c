/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The decisions about one file, without any side effect of their own. */
#include "dest/decide.h"

#include "fs/chmod.h"
#include "lib/checked.h"
#include "wire/request.h"

#define EXECUTE_BITS 0111u

bool decide_same_time(int window, int64_t a, uint32_t a_nsec, int64_t b, uint32_t b_nsec)
{
	uint64_t apart = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;

	if (window < 0)
		return a == b && a_nsec == b_nsec;
	return apart <= (uint64_t)window;
}

bool decide_keeps_time(const struct options *options, const struct entry *entry)
{
	return options->times && !(entry_is_dir(entry) && options->omit_dir_times)
	       && !(entry_is_symlink(entry) && options->omit_link_times);
}

uint32_t decide_uid(const struct decide_rules *rules, const struct entry *entry)
{
	return rules->map_id ? rules->map_id(rules->map_context, false, entry->uid) : entry->uid;
}

uint32_t decide_gid(const struct decide_rules *rules, const struct entry *entry)
{
	return rules->map_id ? rules->map_id(rules->map_context, true, entry->gid) : entry->gid;
}

bool decide_keeps_owner(const struct decide_rules *rules)
{
	return rules->options->owner && rules->am_root;
}

bool decide_keeps_group(const struct decide_rules *rules, const struct entry *entry)
{
	if (!rules->options->group)
		return false;
	if (rules->am_root)
		return true;
	for (size_t i = 0; i < rules->group_count; i++)
		if (rules->groups[i] == decide_gid(rules, entry))
			return true;
	return false;
}

unsigned decide_owner(const struct decide_rules *rules, const struct entry *entry, uint32_t old_uid, uint32_t old_gid,
		      uid_t *uid, gid_t *gid)
{
	uint32_t new_uid = decide_keeps_owner(rules) ? decide_uid(rules, entry) : old_uid;
	uint32_t new_gid = decide_keeps_group(rules, entry) ? decide_gid(rules, entry) : old_gid;
	unsigned impossible = 0;

	/* The last id means "leave it" to the system. */
	*uid = new_uid == old_uid ? (uid_t)-1 : new_uid;
	*gid = new_gid == old_gid ? (gid_t)-1 : new_gid;
	if (new_uid == UINT32_MAX && new_uid != old_uid)
		impossible |= OWNER_UID_IMPOSSIBLE;
	if (new_gid == UINT32_MAX && new_gid != old_gid)
		impossible |= OWNER_GID_IMPOSSIBLE;
	return impossible;
}

static bool mtimes_agree(const struct decide_rules *rules, const struct entry *entry, const struct decide_dest *dest)
{
	return decide_same_time(rules->options->modify_window, entry->mtime, entry->mtime_nsec, dest->st.mtime,
				dest->st.mtime_nsec);
}

uint32_t decide_item_flags(const struct decide_rules *rules, const struct entries *list, const struct entry *entry,
			   const struct decide_dest *dest, uint32_t start)
{
	const struct entry_side *side = entry_side_of(list, entry);
	const struct options *options = rules->options;
	uint32_t flags = start;
	bool differs = false;

	if (!dest->exists)
		return flags | ITEM_IS_NEW;
	if (entry_is_regular(entry) && entry->size != dest->st.size)
		flags |= ITEM_REPORT_SIZE;
	/* What nothing keeps becomes "now" if something is written, which a hard link and an unchanged file are not. */
	if (decide_keeps_time(options, entry))
		differs = !mtimes_agree(rules, entry, dest);
	else if (!(start & (ITEM_XNAME_FOLLOWS | ITEM_MATCHED)))
		differs = start & (ITEM_TRANSFER | ITEM_LOCAL_CHANGE);
	if (differs)
		flags |= ITEM_REPORT_TIME;
	differs = false;
	if (options->perms)
		differs = (entry->mode ^ dest->st.mode) & PERMISSION_BITS;
	else if (options->executability && entry_is_regular(entry))
		differs = !(entry->mode & EXECUTE_BITS) != !(dest->st.mode & EXECUTE_BITS);
	if (differs && !(entry_is_symlink(entry) && S_ISLNK(dest->st.mode)))
		flags |= ITEM_REPORT_PERMS;
	if (options->atimes && side && !entry_is_dir(entry) && !entry_is_symlink(entry)
	    && !decide_same_time(options->modify_window, side->atime, 0, dest->st.atime, 0))
		flags |= ITEM_REPORT_ATIME;
	if (decide_keeps_owner(rules) && decide_uid(rules, entry) != dest->st.uid)
		flags |= ITEM_REPORT_OWNER;
	if (decide_keeps_group(rules, entry) && decide_gid(rules, entry) != dest->st.gid)
		flags |= ITEM_REPORT_GROUP;
	return flags;
}

bool decide_is_significant(uint32_t item_flags)
{
	/* A link that was in place already says nothing by its two flags alone. */
	const uint32_t insignificant = ITEM_BASIS_TYPE_FOLLOWS | ITEM_XNAME_FOLLOWS | ITEM_LOCAL_CHANGE | ITEM_MATCHED;

	return (item_flags & ~insignificant) != 0;
}

bool decide_same_kind(const struct entry *entry, const struct decide_dest *dest)
{
	if (!dest->exists)
		return false;
	if (entry_is_device(entry)) /* block or character: the number alone counts */
		return S_ISCHR(dest->st.mode) || S_ISBLK(dest->st.mode);
	if (entry_is_special(entry))
		return S_ISFIFO(dest->st.mode) || S_ISSOCK(dest->st.mode);
	return (entry->mode & S_IFMT) == (dest->st.mode & S_IFMT);
}

static bool is_kept_kind(const struct decide_rules *rules, const struct entry *entry)
{
	const struct options *options = rules->options;

	if (entry_is_symlink(entry))
		return options->links;
	if (entry_is_device(entry))
		return options->devices && rules->am_root && !options->drop_devices;
	if (entry_is_special(entry))
		return options->specials && !options->drop_devices;
	return entry_is_regular(entry) || entry_is_dir(entry);
}

/* Is a symlink, device or special that exists already the one that is wanted? */
static bool is_same_object(const struct entries *list, const struct entry *entry, const struct decide_dest *dest,
			   const struct decide_probe *probe)
{
	const struct entry_side *side = entry_side_of(list, entry);

	if (entry_is_symlink(entry))
		return probe->same_target(probe->context);
	if (entry_is_special(entry))
		return (entry->mode & S_IFMT) == (dest->st.mode & S_IFMT);
	return dest->st.rdev_major == (side ? side->rdev_major : 0) && dest->st.rdev_minor == (side ? side->rdev_minor : 0);
}

/* doc/protocol/03-transfer.md section 8.2; an attr file is compared by what it says, because all of them have the same size. */
static bool is_unchanged(const struct decide_rules *rules, const struct entry *entry, const struct decide_dest *dest,
			 const struct decide_probe *probe)
{
	const struct options *options = rules->options;

	if (entry->size != dest->st.size)
		return false;
	if (options->checksum)
		return dest->is_device ? !entry->size : probe->same_content(probe->context);
	if (options->size_only)
		return !rules->check_content || probe->same_content(probe->context);
	if (options->ignore_times || !mtimes_agree(rules, entry, dest))
		return false;
	return !rules->check_content || probe->same_content(probe->context);
}

/* -u: is the destination so much newer that the window does not cover it? Whole seconds, as the quick check counts. */
static bool is_newer_there(int window, const struct entry *entry, const struct decide_dest *dest)
{
	int64_t ahead;

	if (!dest->exists || dest->is_device || !S_ISREG(dest->st.mode))
		return false;
	if (!checked_sub(entry->mtime, dest->st.mtime, &ahead))
		return entry->mtime < dest->st.mtime;
	return ahead < window;
}

static enum skip_reason find_skip_reason(const struct decide_rules *rules, const struct entry *entry,
					 const struct decide_dest *dest)
{
	const struct options *options = rules->options;
	bool both_dirs = dest->exists && S_ISDIR(dest->st.mode) && entry_is_dir(entry);

	if (options->existing && !dest->exists)
		return SKIP_NOT_CREATING;
	if (options->ignore_existing && dest->exists && !both_dirs)
		return SKIP_EXISTS;
	if (!is_kept_kind(rules, entry))
		return SKIP_NOT_REGULAR;
	if (!entry_is_regular(entry))
		return SKIP_NOTHING;
	if (options->max_size >= 0 && entry->size > (uint64_t)options->max_size)
		return SKIP_OVER_MAX;
	if (options->min_size >= 0 && entry->size < (uint64_t)options->min_size)
		return SKIP_UNDER_MIN;
	return options->update && is_newer_there(options->modify_window, entry, dest) ? SKIP_NEWER : SKIP_NOTHING;
}

void decide(const struct decide_rules *rules, const struct entries *list, const struct entry *entry,
	    const struct decide_dest *dest, const struct decide_probe *probe, struct decision *decision)
{
	static const struct decide_dest nothing;
	const struct options *options = rules->options;
	bool same = decide_same_kind(entry, dest);
	uint32_t start;

	*decision = (struct decision){ .action = ACTION_NONE, .skip = SKIP_NOTHING };
	if (!entry->mode) {
		decision->action = dest->exists ? ACTION_DELETE : ACTION_NONE;
		return;
	}
	decision->skip = find_skip_reason(rules, entry, dest);
	if (decision->skip != SKIP_NOTHING) {
		decision->action = ACTION_SKIP;
		return;
	}
	decision->make_room = dest->exists && !same;
	if (entry_is_regular(entry)) {
		decision->action = same && is_unchanged(rules, entry, dest, probe) ? ACTION_ATTRS : ACTION_COPY;
		start = ITEM_TRANSFER | (options->checksum ? ITEM_REPORT_CHANGE : 0);
		if (decision->action == ACTION_COPY && same && options->append && dest->st.size >= entry->size) {
			/* There is nothing to append. */
			decision->action = ACTION_NONE;
			return;
		}
	} else {
		bool is_as_wanted = same && (entry_is_dir(entry) || is_same_object(list, entry, dest, probe));

		decision->action = is_as_wanted ? ACTION_ATTRS : ACTION_MAKE;
		start = entry_is_dir(entry) ? ITEM_LOCAL_CHANGE : ITEM_LOCAL_CHANGE | ITEM_REPORT_CHANGE;
	}
	if (decision->action == ACTION_ATTRS)
		start = 0;
	decision->item_flags = decide_item_flags(rules, list, entry, same ? dest : &nothing, start);
}

bool decide_is_settled(const struct decide_rules *rules, const struct entry *entry, const struct fs_stat *st)
{
	return S_ISREG(st->mode) && entry->mode == st->mode && entry->size == st->size && entry->mtime == st->mtime
	       && entry->mtime_nsec == st->mtime_nsec
	       && (!decide_keeps_owner(rules) || decide_uid(rules, entry) == st->uid)
	       && (!decide_keeps_group(rules, entry) || decide_gid(rules, entry) == st->gid);
}

bool decide_wants_alternate(enum alternate_kind kind, const struct entry *entry, const struct decide_dest *dest)
{
	if (!dest->exists)
		return true;
	if (!entry_is_regular(entry))
		return false;
	return kind != ALTERNATE_COPY || !S_ISREG(dest->st.mode);
}

enum alternate_level decide_alternate_level(const struct decide_rules *rules, const struct entries *list,
					    const struct entry *entry, const struct decide_dest *object,
					    const struct decide_probe *probe)
{
	const uint32_t attributes = ITEM_REPORT_TIME | ITEM_REPORT_PERMS | ITEM_REPORT_OWNER | ITEM_REPORT_GROUP;
	bool unchanged = true;

	if (!decide_same_kind(entry, object))
		return ALTERNATE_NONE;
	if (entry_is_regular(entry))
		unchanged = is_unchanged(rules, entry, object, probe);
	else if (!entry_is_dir(entry))
		unchanged = is_same_object(list, entry, object, probe);
	if (!unchanged)
		return ALTERNATE_EXISTS;
	if (decide_item_flags(rules, list, entry, object, 0) & attributes
	    || (probe && probe->same_attributes && !probe->same_attributes(probe->context)))
		return ALTERNATE_UNCHANGED;
	/* -O does not make another time the same. */
	return rules->options->times && entry_is_dir(entry) && !mtimes_agree(rules, entry, object) ? ALTERNATE_UNCHANGED
												   : ALTERNATE_SAME;
}

void decide_with_alternate(const struct decide_rules *rules, const struct entries *list, const struct entry *entry,
			   const struct decide_dest *dest, enum alternate_kind kind,
			   const struct decide_alternate *alternate, struct decision *decision)
{
	uint32_t start = decision->item_flags & (ITEM_TRANSFER | ITEM_LOCAL_CHANGE | ITEM_REPORT_CHANGE), matched = 0;
	bool is_regular = entry_is_regular(entry), same = alternate->level == ALTERNATE_SAME;

	if (alternate->level == ALTERNATE_NONE || (!same && decide_same_kind(entry, dest)))
		return;
	decision->alternate = alternate->number + 1;
	if (same) {
		/* What it takes to have exactly that object here. */
		start = ITEM_LOCAL_CHANGE;
		matched = ITEM_MATCHED;
		if (entry_is_dir(entry)) {
			decision->action = ACTION_MAKE;
		} else if (kind == ALTERNATE_COMPARE) {
			decision->action = ACTION_LEAVE_OUT;
			start = 0;
		} else if (kind == ALTERNATE_LINK) {
			decision->action = ACTION_TAKE_LINK;
			start |= ITEM_XNAME_FOLLOWS;
		} else {
			decision->action = is_regular ? ACTION_TAKE_COPY : ACTION_MAKE;
		}
		/* The time of a file that is written becomes that of now, if it is not kept. */
		if (decision->action != ACTION_TAKE_COPY)
			start |= matched;
	} else if (is_regular && alternate->level == ALTERNATE_UNCHANGED) {
		decision->action = ACTION_TAKE_COPY;
		start = ITEM_LOCAL_CHANGE;
	}
	decision->item_flags = decide_item_flags(rules, list, entry, &alternate->dest, start) | matched;
}

mode_t decide_mode(const struct decide_rules *rules, const struct entry *entry, const struct decide_dest *dest)
{
	const struct chmod_rules *incoming = rules->options->incoming_chmod;
	/* Does what is there lend its permission bits? A regular file takes them only from another one. */
	bool has_basis = dest->exists && (entry_is_regular(entry) ? S_ISREG(dest->st.mode)
								  : S_ISDIR(dest->st.mode) == entry_is_dir(entry));
	mode_t mode = has_basis ? dest->st.mode & PERMISSION_BITS : entry->mode & 0777 & ~rules->umask;

	if (rules->options->perms) /* what is listed has been changed already */
		return entry->mode & PERMISSION_BITS;
	/* --executability on an existing regular file: the source's x bits decide whether there are any, r bits where. */
	if (has_basis && rules->options->executability && entry_is_regular(entry)) {
		if (!(entry->mode & EXECUTE_BITS))
			mode &= ~(mode_t)EXECUTE_BITS;
		else if (!(mode & EXECUTE_BITS))
			mode |= (mode & 0444) >> 2;
	}
	if (incoming && !entry_is_symlink(entry))
		mode = chmod_apply(incoming, (entry->mode & S_IFMT) | mode) & PERMISSION_BITS;
	return mode;
}
