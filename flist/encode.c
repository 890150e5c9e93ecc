/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One entry of the list on the wire (doc/protocol/02-file-list.md section 2): which of its fields differ from the entry before,
 * and those fields, put together in the connection's own buffer. A list of a million entries spends its time here.
 */
#include "flist/encode.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "delta/digest.h"
#include "flist/ids.h"
#include "flist/paths.h"
#include "flist/xattr.h"
#include "flist/xmit.h"
#include "fs/chmod.h"
#include "lib/charset.h"
#include "wire/encode.h"

#define DIGEST_BUFFER (256 * 1024)

/* One entry about to be written: what the flags say and what the fields will hold. */
struct outgoing {
	const struct entry *entry;
	const struct entry_side *side;
	const struct entries *entries;
	int32_t node;
	uint32_t mode;              /* after "outgoing chmod" */
	uint32_t flags;
	size_t prefix;              /* bytes shared with the previous name */
	const char *user_name, *group_name;
	const struct first_link *first; /* hard link to an earlier member */
	bool abbreviated;
	bool has_rdev;
	uint32_t rdev_major, rdev_minor; /* as transmitted */
};

/* --- flags --- */

/* The values of an entry as transmitted. */
static struct first_link sent_values(const struct outgoing *out, int32_t ndx)
{
	return (struct first_link){
		.ndx = ndx, .mtime = out->entry->mtime, .mode = out->mode, .uid = out->entry->uid, .gid = out->entry->gid,
		.atime = out->side->atime, .rdev_major = out->side->rdev_major,
	};
}

/* Hard links by group index, doc/protocol/02-file-list.md section 2.10. */
static void flag_link(struct flist_sender *sender, struct outgoing *out, int32_t ndx, int32_t list_first_ndx)
{
	bool inserted;

	if (!(out->entry->flags & ENTRY_HARD_LINKED) || !sender->options->hard_links)
		return;
	/* A dropped duplicate that declares a group would make receivers fail (doc/protocol/02-file-list.md section 6.8). */
	if (sender->session->inc_recurse && (out->entry->flags & ENTRY_DUPLICATE))
		return;
	out->flags |= XMIT_HLINKED;
	if (!sender->session->caps.links_by_index) {
		if (sender->state.link_dev == (int64_t)out->side->dev + 1)
			out->flags |= XMIT_SAME_DEV_PRE30;
		return;
	}
	uint64_t *group = hashmap_put(&sender->links, out->side->dev, out->side->ino, sender->firsts.count, &inserted);

	if (inserted) {
		struct first_link first = sent_values(out, ndx);

		out->flags |= XMIT_HLINK_FIRST;
		vec_push(&sender->firsts, first);
		return;
	}
	out->first = &sender->firsts.items[*group];
	out->abbreviated = out->first->ndx >= list_first_ndx;
}

static void compute_flags(struct flist_sender *sender, struct outgoing *out, int32_t ndx, int32_t list_first_ndx)
{
	struct entry_state *state = &sender->state;
	const struct options *options = sender->options;
	const struct entry *entry = out->entry;
	const struct session_caps *caps = &sender->session->caps;

	if (caps->marks_links)
		flag_link(sender, out, ndx, list_first_ndx);
	if (entry_is_dir(entry)) {
		/* An equal one that is sent as well has the other bit. */
		bool is_top = (entry->flags & (ENTRY_TOP_DIR | ENTRY_ALSO_LISTED)) == ENTRY_TOP_DIR;
		bool has_content = !(entry->flags & ENTRY_NO_CONTENT);

		if (is_top && (has_content || caps->content_flags))
			out->flags |= XMIT_TOP_DIR;
		if (!has_content && caps->content_flags)
			out->flags |= XMIT_NO_CONTENT_DIR;
	}
	if (out->mode == state->mode)
		out->flags |= XMIT_SAME_MODE;
	if (caps->wide_mtime ? entry->mtime == state->mtime : (uint32_t)entry->mtime == (uint32_t)state->mtime)
		out->flags |= XMIT_SAME_TIME;
	if (caps->mtime_nsec && entry->mtime_nsec)
		out->flags |= XMIT_MOD_NSEC;
	if (!options->owner || (state->any && state->uid == entry->uid))
		out->flags |= XMIT_SAME_UID;
	else if ((out->user_name = id_names_mention(&sender->names, false, entry->uid)))
		out->flags |= XMIT_USER_NAME_FOLLOWS;
	if (!options->group || (state->any && state->gid == entry->gid))
		out->flags |= XMIT_SAME_GID;
	else if ((out->group_name = id_names_mention(&sender->names, true, entry->gid)))
		out->flags |= XMIT_GROUP_NAME_FOLLOWS;
	/*
	 * Device numbers, doc/protocol/02-file-list.md section 2.8. FIFOs and sockets travel as device 0: releases before 3.1
	 * compare the number with that of their own file, so the number of the device before would make every special a changed
	 * one.
	 */
	bool device = entry_is_device(entry) && options->devices;

	out->has_rdev = device || (entry_is_special(entry) && options->specials && caps->special_rdev);
	out->rdev_major = device ? out->side->rdev_major : 0;
	out->rdev_minor = device ? out->side->rdev_minor : 0;
	if (caps->split_rdev && out->has_rdev) {
		if (out->rdev_major == state->rdev_major)
			out->flags |= XMIT_SAME_RDEV_MAJOR;
		if (caps->byte_minors && out->rdev_minor <= 255)
			out->flags |= XMIT_RDEV_MINOR_8_PRE30;
	} else if (!caps->split_rdev && !out->has_rdev) {
		state->rdev = 0;
	} else if (!caps->split_rdev && (uint32_t)makedev(out->rdev_major, out->rdev_minor) == state->rdev) {
		out->flags |= XMIT_SAME_RDEV_PRE28;
	}
	if (options->atimes && !entry_is_dir(entry) && out->side->atime == state->atime)
		out->flags |= XMIT_SAME_ATIME;
}

/* --- the name --- */

static size_t common_prefix(const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t limit = a_length < b_length ? a_length : b_length, prefix = 0;
	uint64_t a_word, b_word;

	for (; prefix + sizeof a_word <= limit; prefix += sizeof a_word) {
		memcpy(&a_word, a + prefix, sizeof a_word);
		memcpy(&b_word, b + prefix, sizeof b_word);
		if (a_word != b_word)
			break;
	}
	while (prefix < limit && a[prefix] == b[prefix])
		prefix++;
	return prefix;
}

/* The name as it travels: converted, directory part and last component separately. */
static void wire_name(struct flist_sender *sender, int32_t node, const struct entry *entry, struct strbuf *name)
{
	struct charset *charset = sender->setup.charset;
	struct strbuf local = STRBUF_INIT;

	if (!charset) {
		flist_entry_path(sender->list, node, entry, name);
		return;
	}
	strbuf_reset(name);
	flist_dir_path(sender->list, node, &local);
	charset_to_wire(charset, strbuf_text(&local), local.length, PATH_MAX - 1, name);
	if (name->length)
		strbuf_add_char(name, '/');
	charset_to_wire(charset, entry_name(sender->list->dirs.items[node].entries, entry), entry->name_length, PATH_MAX - 1,
			name);
	strbuf_free(&local);
}

/* The entry's wire name takes the place of the previous one: sets the prefix and the name flags. */
static void set_name(struct flist_sender *sender, struct outgoing *out)
{
	struct entry_state *state = &sender->state;
	struct strbuf *name = &state->name;
	size_t length = out->entry->name_length, same;

	if (out->node == state->node) {
		/* The previous name lies in the same directory: only what follows the last slash changes. */
		const char *leaf = entry_name(out->entries, out->entry);

		same = common_prefix(name->data + state->leaf, name->length - state->leaf, leaf, length);
		if (state->leaf + length >= name->capacity)
			strbuf_reserve(name, length);
		memcpy(name->data + state->leaf + same, leaf + same, length - same);
		same += state->leaf;
		name->length = state->leaf + length;
		name->data[name->length] = '\0';
	} else {
		/* The new name becomes the previous one; the old buffer is used for the next. */
		struct strbuf previous = *name;

		wire_name(sender, out->node, out->entry, &sender->path);
		same = common_prefix(strbuf_text(&previous), previous.length, sender->path.data, sender->path.length);
		*name = sender->path;
		sender->path = previous;
		state->node = sender->setup.charset ? -1 : out->node;
		state->leaf = name->length - length;
	}
	out->prefix = same > 255 ? 255 : same;
	if (out->prefix)
		out->flags |= XMIT_SAME_NAME;
	if (name->length - out->prefix > 255)
		out->flags |= XMIT_LONG_NAME;
}

/* --- fields --- */

static uint8_t *put_vint30(const struct flist_sender *sender, uint8_t *to, int32_t value)
{
	return sender->session->caps.varints ? encode_varint(to, value) : encode_int(to, (uint32_t)value);
}

static uint8_t *put_bytes(uint8_t *to, const void *bytes, size_t length)
{
	memcpy(to, bytes, length);
	return to + length;
}

/* doc/protocol/02-file-list.md section 2.1: a flag word never looks like the end marker. */
static uint8_t *put_flags(const struct flist_sender *sender, const struct outgoing *out, uint8_t *to)
{
	uint32_t flags = out->flags;

	if (sender->session->varint_flags)
		return encode_varint(to, (int32_t)(flags ? flags : XMIT_EXTENDED_FLAGS));
	if (!sender->session->caps.extended_flags) {
		flags &= 0xff;
		if (!flags)
			flags = entry_is_dir(out->entry) ? XMIT_LONG_NAME : XMIT_TOP_DIR;
		*to = (uint8_t)flags;
		return to + 1;
	}
	if (!flags && !entry_is_dir(out->entry))
		flags = XMIT_TOP_DIR;
	if ((flags & 0xff00) || !flags)
		return encode_short(to, (uint16_t)(flags | XMIT_EXTENDED_FLAGS));
	*to = (uint8_t)flags;
	return to + 1;
}

static uint8_t *put_id(const struct flist_sender *sender, uint8_t *to, uint32_t id, const char *name)
{
	size_t length = name ? strlen(name) : 0;

	to = put_vint30(sender, to, (int32_t)id);
	if (!name)
		return to;
	*to++ = (uint8_t)(length > 255 ? 255 : length);
	return put_bytes(to, name, length > 255 ? 255 : length);
}

static uint8_t *put_device(const struct flist_sender *sender, const struct outgoing *out, uint8_t *to)
{
	const struct session_caps *caps = &sender->session->caps;

	if (!caps->split_rdev)
		return out->flags & XMIT_SAME_RDEV_PRE28
			       ? to : encode_int(to, (uint32_t)makedev(out->rdev_major, out->rdev_minor));
	if (!(out->flags & XMIT_SAME_RDEV_MAJOR))
		to = put_vint30(sender, to, (int32_t)out->rdev_major);
	if (out->flags & XMIT_RDEV_MINOR_8_PRE30 && caps->byte_minors) {
		*to = (uint8_t)out->rdev_minor;
		return to + 1;
	}
	return put_vint30(sender, to, (int32_t)out->rdev_minor);
}

/* Device and inode as an opaque key, protocols 27 to 29. */
static uint8_t *put_link_key(struct flist_sender *sender, const struct outgoing *out, uint8_t *to)
{
	bool linked = out->entry->flags & ENTRY_HARD_LINKED;

	if (sender->session->caps.marks_links) {
		if (!(out->flags & XMIT_HLINKED))
			return to;
		if (!(out->flags & XMIT_SAME_DEV_PRE30))
			to = encode_longint(to, (int64_t)out->side->dev + 1);
		return encode_longint(to, (int64_t)out->side->ino);
	}
	if (!entry_is_regular(out->entry))
		return to;
	to = encode_longint(to, linked ? (int64_t)out->side->dev + 1 : 0);
	return encode_longint(to, linked ? (int64_t)out->side->ino : (int64_t)++sender->unlinked_files);
}

static uint8_t *put_fields(struct flist_sender *sender, const struct outgoing *out, uint8_t *to)
{
	const struct session_caps *caps = &sender->session->caps;
	const struct options *options = sender->options;
	const struct entry *entry = out->entry;

	to = caps->varints ? encode_varlong(to, (int64_t)entry->size, 3) : encode_longint(to, (int64_t)entry->size);
	if (!(out->flags & XMIT_SAME_TIME))
		to = caps->wide_mtime ? encode_varlong(to, entry->mtime, 4) : encode_int(to, (uint32_t)entry->mtime);
	if (out->flags & XMIT_MOD_NSEC)
		to = encode_varint(to, (int32_t)entry->mtime_nsec);
	if (!(out->flags & XMIT_SAME_MODE))
		to = encode_int(to, out->mode);
	if (options->atimes && !entry_is_dir(entry) && !(out->flags & XMIT_SAME_ATIME))
		to = encode_varlong(to, out->side->atime, 4);
	if (!(out->flags & XMIT_SAME_UID))
		to = put_id(sender, to, entry->uid, out->user_name);
	if (!(out->flags & XMIT_SAME_GID))
		to = put_id(sender, to, entry->gid, out->group_name);
	if (out->has_rdev)
		to = put_device(sender, out, to);
	if (entry_is_symlink(entry) && options->links) {
		const char *target = out->entries->pool + out->side->target;
		size_t length = out->side->target_length;
		struct strbuf converted = STRBUF_INIT;

		if (sender->setup.charset && sender->session->symlink_iconv
		    && charset_to_wire(sender->setup.charset, target, length, PATH_MAX - 1, &converted)) {
			target = converted.data;
			length = converted.length;
		}
		to = put_bytes(put_vint30(sender, to, (int32_t)length), target, length);
		strbuf_free(&converted);
	}
	if (options->hard_links && !caps->links_by_index)
		to = put_link_key(sender, out, to);
	return to;
}

/* --- digests for -c --- */

/* Digest of a file's content for -c; all zero if it cannot be opened. Keep-alives go out meanwhile. */
static void compute_digest(struct flist_sender *sender, const struct outgoing *out, bool follows, uint8_t *digest)
{
	struct strbuf path = STRBUF_INIT;
	struct attr_source *source = flist_entry_source(sender->list, out->node, out->entry, &path);
	uint8_t attr_bytes[ATTR_FILE_SIZE];
	uint64_t size;
	int fd = source->only_attrs ? -1 : attr_source_open(source, strbuf_text(&path), out->entry, follows, &size);

	strbuf_free(&path);
	if (!source->only_attrs && fd < 0)
		return;
	file_digest_start_plain(sender->digest, sender->session->file_sum);
	if (fd < 0) {
		attr_file_encode(attr_bytes, out->side->real_size);
		file_digest_update(sender->digest, attr_bytes, sizeof attr_bytes);
	} else {
		char *buffer = xmalloc(DIGEST_BUFFER);
		/* A device may have no end. */
		uint64_t left = source->copies_devices ? size : UINT64_MAX;
		ssize_t got;

		while (left && (got = read(fd, buffer, left < DIGEST_BUFFER ? left : DIGEST_BUFFER)) > 0) {
			left -= (uint64_t)got;
			file_digest_update(sender->digest, buffer, (size_t)got);
			wire_keep_alive(sender->session->wire);
		}
		free(buffer);
		close(fd);
	}
	file_digest_finish(sender->digest, digest);
}

/* The digest that the module's snapshot holds, if it is of the session's kind, else that of the content. */
static void write_digest(struct flist_sender *sender, const struct outgoing *out)
{
	enum sum_algorithm sum = sender->session->file_sum;
	enum attr_digest which = sum == SUM_MD5 ? ATTR_DIGEST_MD5 : ATTR_DIGEST_XXH128;
	uint8_t computed[DIGEST_MAX_LENGTH] = { 0 };
	const uint8_t *digest = NULL;
	bool is_regular = entry_is_regular(out->entry);
	bool follows = sender->options->copy_links || sender->options->copy_unsafe_links;

	if (!is_regular && sender->session->caps.sums_only_files)
		return;
	if (is_regular && (sum == SUM_XXH128 || sum == SUM_MD5)) {
		struct strbuf path = STRBUF_INIT;

		/* Of an entry that is no part of a view it is looked up by path. */
		if (out->entries->snapshot) {
			digest = attr_source_view_digest(sender->list->module_source, out->entries, out->entry, which);
		} else {
			/* The path is filled in first: arguments of one call are evaluated in no order. */
			struct attr_source *source = flist_entry_source(sender->list, out->node, out->entry, &path);
			digest = attr_source_digest(source, strbuf_text(&path), follows, which);
		}
		strbuf_free(&path);
	}
	if (is_regular && !digest)
		compute_digest(sender, out, follows, computed);
	wire_write(sender->session->wire, digest ? digest : computed, (size_t)digest_length(sum));
}

/* --- state after an entry --- */

/* An abbreviated entry leaves the state of the group's first member, as transmitted. */
static void update_state(struct flist_sender *sender, const struct outgoing *out)
{
	struct entry_state *state = &sender->state;
	const struct first_link sent = out->abbreviated ? *out->first : sent_values(out, 0);

	state->any = true;
	state->mtime = sent.mtime;
	state->mode = sent.mode;
	if (sender->options->owner)
		state->uid = sent.uid;
	if (sender->options->group)
		state->gid = sent.gid;
	if (sender->options->atimes && !entry_is_dir(out->entry))
		state->atime = sent.atime;
	if (out->abbreviated) {
		if (entry_is_device(out->entry) && sender->options->devices)
			state->rdev_major = sent.rdev_major;
		else if (out->has_rdev && state->rdev_major)
			/* Some receivers take over the 0 of the first member, others do not. */
			state->rdev_major = RDEV_MAJOR_UNKNOWN;
		return;
	}
	if (out->has_rdev) {
		state->rdev_major = out->rdev_major;
		state->rdev = (uint32_t)makedev(out->rdev_major, out->rdev_minor);
	}
	if (out->flags & XMIT_HLINKED && !sender->session->caps.links_by_index)
		state->link_dev = (int64_t)out->side->dev + 1;
}

/* --- one entry --- */

/* Names, a target and a few numbers. */
enum { ENTRY_ROOM = 2 * PATH_MAX + 2 * 256 + 24 * ENCODED_MAX };
_Static_assert((int)ENTRY_ROOM <= (int)WIRE_RESERVE_MAX, "an entry fits into the output buffer");

void flist_send_entry(struct flist_sender *sender, int32_t node, struct entry *entry, int32_t ndx, int32_t list_first_ndx)
{
	static const struct entry_side no_side;
	struct entries *entries = sender->list->dirs.items[node].entries;
	struct entry_side expanded;
	const struct entry_side *side = entry_any_side(entries, entry, &expanded);
	struct outgoing out = {
		.entry = entry, .entries = entries, .node = node, .side = side ? side : &no_side, .mode = entry->mode,
	};

	if (sender->setup.chmod && entry->mode && !entry_is_symlink(entry))
		out.mode = (uint32_t)chmod_apply(sender->setup.chmod, entry->mode);
	compute_flags(sender, &out, ndx, list_first_ndx);
	set_name(sender, &out);
	struct wire *wire = sender->session->wire;
	const struct strbuf *name = &sender->state.name;
	size_t rest = name->length - out.prefix;
	/* At protocol 27 a directory without any flag is marked by the long form of its length. */
	bool is_long = (out.flags & XMIT_LONG_NAME)
		       || (!sender->session->caps.extended_flags && !(out.flags & 0xff) && entry_is_dir(out.entry));
	uint8_t *to = put_flags(sender, &out, wire_reserve(wire, ENTRY_ROOM));

	if (out.flags & XMIT_SAME_NAME)
		*to++ = (uint8_t)out.prefix;
	if (is_long)
		to = put_vint30(sender, to, (int32_t)rest);
	else
		*to++ = (uint8_t)rest;
	to = put_bytes(to, name->data + out.prefix, rest);
	if (out.first)
		to = encode_varint(to, out.first->ndx);
	if (!out.abbreviated)
		to = put_fields(sender, &out, to);
	wire_commit(wire, to);
	if (sender->options->checksum && !out.abbreviated)
		write_digest(sender, &out);
	update_state(sender, &out);
	if (sender->options->acls && !entry_is_symlink(entry))
		xattr_send_acls(sender, node, entry, out.mode);
	if (sender->options->xattrs)
		xattr_send_xattrs(sender, node, entry);
}
