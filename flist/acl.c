/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What of an ACL travels, what comes of it, and whether two are the same. */
#include "flist/acl.h"

static uint8_t group_bits(uint32_t mode)
{
	return mode >> 3 & 7;
}

void acl_reduce(struct fs_acl *acl, uint32_t mode)
{
	uint8_t group = group_bits(mode);

	if (acl->mask == FS_ACL_ABSENT || acl->group_obj == group)
		acl->group_obj = FS_ACL_ABSENT;
	if (acl->named_count && acl->mask == group)
		acl->mask = FS_ACL_ABSENT;
	acl->user_obj = acl->other = FS_ACL_ABSENT;
}

void acl_complete(struct fs_acl *acl, bool is_default, uint32_t mode)
{
	if (!acl->named_count || acl->mask != FS_ACL_ABSENT)
		return;
	acl->mask = is_default ? 0 : group_bits(mode);
	if (!is_default)
		return;
	if (acl->group_obj != FS_ACL_ABSENT)
		acl->mask = acl->group_obj;
	for (size_t i = 0; i < acl->named_count; i++)
		acl->mask |= acl->named[i].bits;
}

struct fs_acl acl_of_file(const struct fs_acl *reduced, uint32_t mode)
{
	struct fs_acl whole = *reduced;

	whole.user_obj = mode >> 6 & 7;
	whole.other = mode & 7;
	if (!acl_is_extended(reduced) || whole.group_obj == FS_ACL_ABSENT)
		whole.group_obj = group_bits(mode);
	whole.mask = acl_is_extended(reduced) ? group_bits(mode) : FS_ACL_ABSENT;
	return whole;
}

struct fs_acl acl_of_directory(const struct fs_acl *defaults)
{
	struct fs_acl whole = *defaults;

	if (fs_acl_is_empty(defaults))
		return whole;
	whole.user_obj = defaults->user_obj == FS_ACL_ABSENT ? 7 : defaults->user_obj;
	whole.group_obj = defaults->group_obj == FS_ACL_ABSENT ? 0 : defaults->group_obj;
	whole.other = defaults->other == FS_ACL_ABSENT ? 0 : defaults->other;
	return whole;
}

static bool same_entries(const struct fs_acl *a, const struct fs_acl *b)
{
	bool same = a->named_count == b->named_count;

	for (size_t i = 0; same && i < a->named_count; i++)
		same = a->named[i].id == b->named[i].id && a->named[i].bits == b->named[i].bits
		       && a->named[i].is_user == b->named[i].is_user;
	return same;
}

bool acl_same_access(const struct fs_acl *reduced, uint32_t mode, const struct fs_acl *have)
{
	bool is_extended = acl_is_extended(reduced);

	if (is_extended != acl_is_extended(have))
		return false;
	if (!is_extended)
		return true;
	return have->group_obj == acl_of_file(reduced, mode).group_obj && same_entries(reduced, have);
}

bool acl_same_default(const struct fs_acl *wanted, const struct fs_acl *have)
{
	const struct fs_acl whole = acl_of_directory(wanted);

	return whole.user_obj == have->user_obj && whole.group_obj == have->group_obj && whole.mask == have->mask
	       && whole.other == have->other && same_entries(&whole, have);
}

bool acl_is_extended(const struct fs_acl *acl)
{
	return acl->named_count || acl->mask != FS_ACL_ABSENT;
}
