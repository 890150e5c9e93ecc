/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ACLs and extended attributes that objects are to have: their form on the wire, comparing and setting. */
#include "flist/attributes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "delta/digest.h"
#include "lib/alloc.h"

/* --- ACLs --- */

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

/* --- names of extended attributes --- */

static bool starts_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
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
	if (!starts_with(name, XATTR_PERCENT_PREFIX))
		return false;
	name += strlen(XATTR_PERCENT_PREFIX);
	return !policy->verbatim
	       || (policy->level == LEVEL_FAKE && (!strcmp(name, "stat") || !strcmp(name, "aacl") || !strcmp(name, "dacl")));
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

/* --- lists of them --- */

struct xattr_value *xattr_value_new(const void *bytes, size_t length)
{
	size_t kept = length > XATTR_KEPT_MAX ? 0 : length;
	struct xattr_value *value = xmalloc(sizeof *value + kept);

	value->length = length;
	if (kept)
		memcpy(value->bytes, bytes, kept);
	return value;
}

void xattr_list_add(struct xattr_list *list, size_t *capacity, const struct xattr_item *item)
{
	if (list->count == *capacity) {
		*capacity = *capacity ? 2 * *capacity : 4;
		list->items = xrealloc_array(list->items, *capacity, sizeof *list->items);
	}
	memcpy(&list->items[list->count++], item, sizeof *item);
}

static void free_item(struct xattr_item *item)
{
	free(item->name);
	free(atomic_load(&item->value));
}

static int compare_items(const void *a, const void *b)
{
	const struct xattr_item *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->number < y->number ? -1 : x->number > y->number;
}

void xattr_list_sort(struct xattr_list *list)
{
	size_t kept = 0;

	if (list->count < 2)
		return;
	qsort(list->items, list->count, sizeof *list->items, compare_items);
	for (size_t i = 0; i < list->count; i++) {
		if (kept && !strcmp(list->items[kept - 1].name, list->items[i].name))
			free_item(&list->items[i]);
		else
			memmove(&list->items[kept++], &list->items[i], sizeof *list->items);
	}
	list->count = kept;
}

void xattr_list_free(struct xattr_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free_item(&list->items[i]);
	free(list->items);
	list->items = NULL;
	list->count = 0;
}

void xattr_list_from_source(struct xattr_list *list, struct fs_xattr_list *have, const struct xattr_policy *sends,
			    const struct xattr_policy *keeps)
{
	size_t capacity = 0;

	*list = (struct xattr_list){ NULL, 0 };
	for (size_t i = 0; i < have->count; i++) {
		const struct fs_xattr *from = &have->items[i];
		const char *sent = xattr_name_to_send(sends, from->name);
		char *name = sent ? xattr_name_to_keep(keeps, sent) : NULL;
		struct xattr_item item = { .name = name, .length = from->length, .number = (int32_t)i + 1 };

		if (!name)
			continue;
		atomic_init(&item.value, xattr_value_new(from->value, from->length));
		xattr_list_add(list, &capacity, &item);
	}
	xattr_list_sort(list);
	fs_xattr_list_free(have);
}

/* --- comparing --- */

bool xattr_item_matches(const struct xattr_item *item, const void *value, size_t length)
{
	const struct xattr_value *known = atomic_load(&item->value);
	uint8_t digest[DIGEST_MAX_LENGTH];

	if (known)
		return known->length == length && length <= XATTR_KEPT_MAX && !memcmp(known->bytes, value, length);
	if (item->length != length)
		return false;
	struct file_digest *running = file_digest_new();

	file_digest_start_plain(running, SUM_MD5);
	file_digest_update(running, value, length);
	file_digest_finish(running, digest);
	file_digest_free(running);
	return !memcmp(digest, item->digest, XATTR_DIGEST_LENGTH);
}

static int compare_name(const void *name, const void *item)
{
	return strcmp(name, ((const struct fs_xattr *)item)->name);
}

const struct fs_xattr *xattr_find(const struct fs_xattr_list *have, const char *name)
{
	return have->count ? bsearch(name, have->items, have->count, sizeof *have->items, compare_name) : NULL;
}

static int compare_wanted(const void *name, const void *item)
{
	return strcmp(name, ((const struct xattr_item *)item)->name);
}

bool xattr_list_same(const struct xattr_list *list, const struct fs_xattr_list *have, const struct xattr_policy *policy)
{
	size_t next = 0;

	for (size_t i = 0; i < have->count; i++) {
		const struct fs_xattr *item = &have->items[i];

		if (!xattr_name_counts(policy, item->name))
			continue;
		if (next == list->count || strcmp(list->items[next].name, item->name) != 0
		    || !xattr_item_matches(&list->items[next], item->value, item->length))
			return false;
		next++;
	}
	return next == list->count;
}

/* --- setting --- */

static bool set_item(const struct xattr_item *item, const struct fs_held *to, const struct fs_xattr_list *have,
		     const struct fs_xattr_list *old, const struct xattr_complaint *complaint)
{
	const struct xattr_value *known = atomic_load(&item->value);
	const struct fs_xattr *there = xattr_find(have, item->name);
	const struct fs_xattr *before = old && !known ? xattr_find(old, item->name) : NULL;

	if (there && xattr_item_matches(item, there->value, there->length))
		return false;
	if (!known && (!before || !xattr_item_matches(item, before->value, before->length))) {
		complaint->say(complaint->context, 0, "", item->name);
		return false;
	}
	size_t length = known ? known->length : before->length;
	bool fits = length <= XATTR_KEPT_MAX;

	if (fits && fs_held_set(to, item->name, known ? known->bytes : before->value, length) == 0)
		return true;
	complaint->say(complaint->context, fits ? errno : E2BIG, "setxattr", item->name);
	return false;
}

bool xattr_list_apply(const struct xattr_list *list, const struct fs_held *to, const struct fs_xattr_list *old,
		      const struct xattr_policy *policy, const struct xattr_complaint *complaint)
{
	struct fs_xattr_list have;
	bool changed = false;

	if (fs_held_xattrs(to, &have) < 0) {
		complaint->say(complaint->context, errno, "listxattr", NULL);
		return false;
	}
	for (size_t i = 0; i < list->count; i++)
		changed |= set_item(&list->items[i], to, &have, old, complaint);
	for (size_t i = 0; i < have.count; i++) {
		const char *name = have.items[i].name;

		if (!xattr_name_counts(policy, name)
		    || (list->count && bsearch(name, list->items, list->count, sizeof *list->items, compare_wanted)))
			continue;
		if (fs_held_remove(to, name) == 0)
			changed = true;
		else
			complaint->say(complaint->context, errno, "removexattr", name);
	}
	fs_xattr_list_free(&have);
	return changed;
}
