/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ACLs and extended attributes of list entries as they are sent. */
#include "flist/xattr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "delta/digest.h"
#include "flist/attributes.h"
#include "flist/encode.h"
#include "flist/ids.h"
#include "flist/paths.h"
#include "flist/tree.h"
#include "fs/fake.h"
#include "fs/ids.h"
#include "lib/checked.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/encode.h"

static void literals_free(struct sent_literals *literals)
{
	for (size_t i = 0; i < literals->items.count; i++)
		strbuf_free(&literals->items.items[i]);
	vec_free(&literals->items);
	hashmap_free(&literals->by_hash);
}

void sent_attributes_free(struct sent_attributes *sent)
{
	for (size_t i = 0; i < sent->lists.count; i++) {
		for (size_t j = 0; j < sent->lists.items[i].count; j++)
			free(sent->lists.items[i].items[j].name);
		free(sent->lists.items[i].items);
	}
	vec_free(&sent->lists);
	literals_free(&sent->acls[false]);
	literals_free(&sent->acls[true]);
	literals_free(&sent->xattrs);
}

/* The number of a literal whose content `key` describes; *known says whether it has been sent before. The key is kept. */
static size_t literals_number(struct sent_literals *literals, const struct strbuf *key, bool *known)
{
	uint64_t hash = hashmap_hash(&literals->by_hash, strbuf_text(key), key->length);
	bool inserted;
	uint64_t *number = hashmap_put(&literals->by_hash, hash, key->length, literals->items.count, &inserted);
	struct strbuf copy = STRBUF_INIT;

	*known = !inserted && !memcmp(strbuf_text(&literals->items.items[*number]), strbuf_text(key), key->length);
	if (*known)
		return *number;
	strbuf_add(&copy, strbuf_text(key), key->length);
	vec_push(&literals->items, copy);
	return literals->items.count - 1;
}

static void complain(struct flist_sender *sender, int32_t node, const struct entry *entry, const char *call, int error)
{
	struct strbuf quoted = STRBUF_INIT;

	flist_quote(sender->list, node, entry, &quoted);
	log_errno(L_ERROR_XFER, error, "%s(%s) failed", call, strbuf_text(&quoted));
	sender->session->io_error |= IOERR_GENERAL;
	strbuf_free(&quoted);
}

/* --- ACLs --- */

/* A number of one that has been sent, or the ACL itself. */
static void write_acl(struct flist_sender *sender, struct sent_literals *literals, const struct fs_acl *acl)
{
	const uint8_t parts[4] = { acl->user_obj, acl->group_obj, acl->mask, acl->other };
	uint8_t flags = acl->named_count ? 0x10 : 0;
	struct wire *wire = sender->session->wire;
	struct strbuf key = STRBUF_INIT;
	bool known;

	strbuf_add(&key, parts, sizeof parts);
	for (size_t i = 0; i < acl->named_count; i++)
		strbuf_addf(&key, "%u,%u,%u;", acl->named[i].id, acl->named[i].bits, acl->named[i].is_user);
	size_t number = literals_number(literals, &key, &known);

	strbuf_free(&key);
	wire_write_varint(wire, known ? (int32_t)number + 1 : 0);
	if (known)
		return;
	for (int i = 0; i < 4; i++)
		flags |= parts[i] == FS_ACL_ABSENT ? 0 : 1 << i;
	wire_write_byte(wire, flags);
	for (int i = 0; i < 4; i++)
		if (parts[i] != FS_ACL_ABSENT)
			wire_write_varint(wire, parts[i]);
	if (acl->named_count)
		wire_write_varint(wire, (int32_t)acl->named_count);
	for (size_t i = 0; i < acl->named_count; i++) {
		const struct fs_acl_entry *named = &acl->named[i];
		const char *name = id_names_mention(&sender->names, !named->is_user, named->id);

		wire_write_varint(wire, (int32_t)named->id);
		wire_write_varint(wire, named->bits << 2 | (named->is_user ? 2 : 0) | (name ? 1 : 0));
		if (name)
			id_names_write_name(sender->session, name);
	}
}

/* Devices and specials that are not preserved, and missing arguments, have an empty ACL. */
static bool has_attributes(const struct flist_sender *sender, const struct entry *entry)
{
	const struct options *options = sender->list->options;

	if (entry_is_device(entry))
		return options->devices;
	if (entry_is_special(entry))
		return options->specials;
	return entry->mode != 0 && (!entry_is_symlink(entry) || options->links);
}

static void read_acl(struct flist_sender *sender, int32_t node, const struct entry *entry, bool is_default, struct fs_acl *acl)
{
	static const struct fs_acl nothing = FS_ACL_NOTHING;
	struct strbuf path = STRBUF_INIT;
	const struct fs_root *root = attr_source_real_root(flist_entry_source(sender->list, node, entry, &path));
	bool follows = flist_acl_follows(sender->list, entry), is_fake = sender->options->super == SUPER_FAKE;
	struct fs_held held = { .fd = -1 };
	int result = 0;

	*acl = nothing;
	if (has_attributes(sender, entry)) {
		if ((follows || is_fake) && fs_hold(&held, root, strbuf_text(&path), follows) < 0)
			held.fd = -1;
		if (held.fd < 0)
			result = fs_acl_read(root, strbuf_text(&path), is_default, acl);
		else
			result = is_fake ? fs_fake_acl(&held, is_default, acl) : fs_held_acl(&held, is_default, acl);
	}
	if (result < 0) {
		complain(sender, node, entry, "sys_acl_get_file", errno);
		*acl = nothing;
	}
	fs_release(&held);
	strbuf_free(&path);
}

void xattr_send_acls(struct flist_sender *sender, int32_t node, const struct entry *entry, uint32_t mode)
{
	struct fs_acl acl;

	for (int is_default = false; is_default <= entry_is_dir(entry); is_default++) {
		read_acl(sender, node, entry, is_default, &acl);
		if (!is_default)
			acl_reduce(&acl, mode);
		write_acl(sender, &sender->attributes.acls[is_default], &acl);
		fs_acl_free(&acl);
	}
}

/* --- extended attributes --- */

static int compare_wire_names(const void *a, const void *b, void *policy)
{
	const struct fs_xattr *x = a, *y = b;

	return strcmp(xattr_name_to_send(policy, x->name), xattr_name_to_send(policy, y->name));
}

static void add_varint(struct strbuf *out, size_t value)
{
	uint8_t encoded[ENCODED_MAX + ENCODE_SLACK];

	strbuf_add(out, encoded, (size_t)(encode_varint(encoded, (int32_t)value) - encoded));
}

/* The list as it is sent when it is a new one; a long value stands there as its MD5. */
static void add_literal(struct flist_sender *sender, const struct fs_xattr_list *list, struct strbuf *out)
{
	uint8_t digest[DIGEST_MAX_LENGTH];

	add_varint(out, list->count);
	for (size_t i = 0; i < list->count; i++) {
		const struct fs_xattr *item = &list->items[i];
		const char *name = xattr_name_to_send(&sender->attributes.policy, item->name);

		add_varint(out, strlen(name) + 1);
		add_varint(out, item->length);
		strbuf_add(out, name, strlen(name) + 1);
		if (item->length <= XATTR_SHORT) {
			strbuf_add(out, item->value, item->length);
			continue;
		}
		file_digest_start_plain(sender->digest, SUM_MD5);
		file_digest_update(sender->digest, item->value, item->length);
		file_digest_finish(sender->digest, digest);
		strbuf_add(out, digest, XATTR_DIGEST_LENGTH);
	}
}

static void enter_rules(struct flist *list, int32_t node)
{
	struct strbuf path = STRBUF_INIT;

	flist_dir_path(list, node, &path);
	filter_set_dir(list->user, strbuf_text(&path));
	strbuf_free(&path);
}

void xattr_send_xattrs(struct flist_sender *sender, int32_t node, struct entry *entry)
{
	struct flist *flist = sender->list;
	struct xattr_policy *policy = &sender->attributes.policy;
	struct fs_xattr_list list = { 0 };
	struct strbuf literal = STRBUF_INIT, path = STRBUF_INIT;
	size_t kept = 0;
	/*
	 * In one list a directory's entry comes when its own contents have been read already: the merge files in force are
	 * those of its contents, and for its attributes those of the directory above count.
	 */
	bool is_late = flist->user && !flist->session->inc_recurse && entry->dir && !(entry->flags & ENTRY_TOP_DIR), known;

	if (is_late)
		enter_rules(flist, node);
	const struct fs_root *root = attr_source_real_root(flist_entry_source(flist, node, entry, &path));

	if (has_attributes(sender, entry) && fs_xattr_read(root, strbuf_text(&path), &list) < 0) {
		complain(sender, node, entry, "get_xattr_names", errno);
		memset(&list, 0, sizeof list);
	}
	for (size_t i = 0; i < list.count; i++) {
		struct fs_xattr item = list.items[i];

		if (!xattr_name_to_send(policy, item.name)) {
			free(item.name);
			free(item.value);
			continue;
		}
		list.items[kept++] = item;
	}
	list.count = kept;
	if (policy->level == LEVEL_FAKE && kept > 1)
		qsort_r(list.items, kept, sizeof *list.items, compare_wire_names, policy);
	strbuf_free(&path);
	add_literal(sender, &list, &literal);
	size_t number = literals_number(&sender->attributes.xattrs, &literal, &known);

	wire_write_varint(sender->session->wire, known ? (int32_t)number + 1 : 0);
	if (!known) {
		struct sent_list sent = { .items = xcalloc(list.count, sizeof *sent.items), .count = list.count };

		wire_write(sender->session->wire, literal.data, literal.length);
		for (size_t i = 0; i < list.count; i++) {
			sent.items[i].name = xstrdup(list.items[i].name);
			sent.items[i].requestable = list.items[i].length > XATTR_SHORT;
		}
		vec_push(&sender->attributes.lists, sent);
	}
	if (list.count) {
		entries_side(flist->dirs.items[node].entries, entry)->xattrs = (uint32_t)number + 1;
		if (entry->dir)
			flist->dirs.items[entry->dir].xattrs = (uint32_t)number + 1;
	}
	if (is_late)
		enter_rules(flist, (int32_t)entry->dir);
	fs_xattr_list_free(&list);
	strbuf_free(&literal);
}

static struct sent_list *sent_list_of(struct flist_sender *sender, const struct flist_pos *pos)
{
	const struct entry_side *side = pos->entry ? entry_side_of(pos->entries, pos->entry) : NULL;
	uint32_t number = pos->gap > 0 ? sender->list->dirs.items[pos->gap].xattrs : side ? side->xattrs : 0;

	return number ? &sender->attributes.lists.items[number - 1] : NULL;
}

void xattr_read_request(struct flist_sender *sender, const struct flist_pos *pos)
{
	struct sent_list *sent = sent_list_of(sender, pos);
	struct strbuf name = STRBUF_INIT;
	int32_t number = 0, delta;

	flist_pos_path(sender->list, pos, &name);
	while ((delta = wire_read_varint(sender->session->wire)) != 0) {
		if (!checked_add(number, delta, &number) || number < 1 || !sent || (size_t)number > sent->count)
			die(EXIT_PROTOCOL, "could not find xattr #%d for %s", number, strbuf_text(&name));
		struct sent_xattr *item = &sent->items[number - 1];
		if (!item->requestable)
			die(EXIT_PROTOCOL, "internal abbrev error on %s (%s)!", strbuf_text(&name), item->name);
		item->requestable = false;
		item->requested = true;
	}
	strbuf_free(&name);
}

/* A value that cannot be read any more is left out: the receiver keeps what it has, where an empty one would replace that. */
void xattr_write_answer(struct flist_sender *sender, const struct flist_pos *pos)
{
	struct sent_list *sent = sent_list_of(sender, pos);
	struct strbuf path = STRBUF_INIT, shown = STRBUF_INIT;
	const struct fs_root *root = attr_source_real_root(flist_pos_source(sender->list, pos, &path));
	struct wire *wire = sender->session->wire;
	int32_t previous = 0;

	flist_pos_shown_name(sender->list, pos, &shown);
	for (size_t i = 0; sent && i < sent->count; i++) {
		void *value = NULL;
		size_t length = 0;

		if (!sent->items[i].requested)
			continue;
		sent->items[i].requested = false;
		if (fs_xattr_get(root, strbuf_text(&path), sent->items[i].name, &value, &length) < 0) {
			log_errno(L_ERROR_XFER, errno, "failed to read xattr %s of \"%s\"", sent->items[i].name,
				  strbuf_text(&shown));
			continue;
		}
		wire_write_varint(wire, (int32_t)i + 1 - previous);
		wire_write_varint(wire, (int32_t)length);
		wire_write(wire, value ? value : "", length);
		previous = (int32_t)i + 1;
		free(value);
	}
	wire_write_byte(wire, 0);
	strbuf_free(&path);
	strbuf_free(&shown);
}
