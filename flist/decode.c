/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One entry of the list from the wire (doc/protocol/02-file-list.md section 2): its fields, checked. */
#include "flist/decode.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "flist/ids.h"
#include "flist/receive_attributes.h"
#include "flist/xmit.h"
#include "lib/charset.h"
#include "lib/exit.h"

enum { NSEC_MAX = 999999999, IO_ERROR_BITS = 7 };

/* --- the form of a name (doc/protocol/02-file-list.md section 11.1) --- */

static _Noreturn void die_unsafe(const char *name)
{
	die(EXIT_UNSUPPORTED, "ABORTING due to unsafe pathname from sender: %s", name);
}

static bool is_component(const char *text, size_t length, const char *component)
{
	return strlen(component) == length && !memcmp(text, component, length);
}

/* Most names are one more component of the directory that the list is of, and that has been cleaned. */
static bool is_clean_child(const struct flist_receiver *receiver, const char *name, size_t length)
{
	const struct strbuf *parent = &receiver->node_path;
	size_t prefix = parent->length ? parent->length + 1 : 0;

	if (!prefix || length <= prefix || name[prefix - 1] != '/' || memcmp(name, parent->data, prefix - 1) != 0)
		return false;
	name += prefix;
	length -= prefix;
	return *name != '.' && !memchr(name, '/', length) && !memchr(name, '\0', length);
}

static void clean_name(const struct flist_receiver *receiver, const char *name, size_t length, struct strbuf *clean)
{
	const char *at = name, *end = name + length;

	if (memchr(name, '\0', length))
		die(EXIT_PROTOCOL, "NUL byte inside a file-list name received: %s", name);
	if (!length)
		die(EXIT_PROTOCOL, "ERROR: rejecting empty file-list name");
	if (*name == '/') {
		if (!receiver->options->relative)
			die_unsafe(name);
		strbuf_add_char(clean, '/');
	}
	while (at < end) {
		const char *slash = memchr(at, '/', (size_t)(end - at));
		size_t part = slash ? (size_t)(slash - at) : (size_t)(end - at);

		if (is_component(at, part, ".."))
			die_unsafe(name);
		if (part && !is_component(at, part, ".")) {
			if (clean->length && clean->data[clean->length - 1] != '/')
				strbuf_add_char(clean, '/');
			strbuf_add(clean, at, part);
		} else if (part && !slash && clean->length && strcmp(clean->data, "/") != 0) {
			/* Only releases without a name for it send "a/." (doc/protocol/02-file-list.md section 13). */
			if (receiver->session->caps.clean_names)
				die_unsafe(name);
			strbuf_add_string(clean, "/.");
		}
		at += part + (slash != NULL);
	}
	if (!clean->length || !strcmp(clean->data, "/")) {
		strbuf_reset(clean);
		strbuf_add_char(clean, '.');
	}
}

/* --- flags --- */

static _Noreturn void die_flags(uint32_t flags)
{
	die(EXIT_PROTOCOL, "Invalid flist flag: %x", flags);
}

/* Every bit stands for fields: one that the session has no meaning for means that the place in the stream is lost. */
static uint32_t known_flags(const struct flist_receiver *receiver)
{
	const struct session_caps *caps = &receiver->session->caps;
	const struct options *options = receiver->options;

	if (!caps->extended_flags)
		return UINT8_MAX;
	return UINT8_MAX | XMIT_SAME_RDEV_MAJOR | XMIT_USER_NAME_FOLLOWS | XMIT_GROUP_NAME_FOLLOWS
	       | (options->hard_links ? XMIT_HLINKED | (caps->links_by_index ? XMIT_HLINK_FIRST : 0) : 0)
	       | (caps->mtime_nsec ? XMIT_MOD_NSEC : 0) | (options->atimes ? XMIT_SAME_ATIME : 0);
}

/* The flag word of an entry; 0 at the end of the list, with the error mask. */
static uint32_t read_flags(struct flist_receiver *receiver, int *mask)
{
	struct session *session = receiver->session;
	uint32_t flags;

	*mask = 0;
	if (session->varint_flags) {
		flags = (uint32_t)wire_read_varint(session->wire);
		if (!flags)
			*mask = wire_read_varint(session->wire) & IO_ERROR_BITS;
	} else {
		flags = wire_read_byte(session->wire);
		if (session->caps.extended_flags && flags & XMIT_EXTENDED_FLAGS)
			flags |= (uint32_t)wire_read_byte(session->wire) << 8;
		if (session->caps.extended_flags && flags == (XMIT_IO_ERROR_ENDLIST | XMIT_EXTENDED_FLAGS)) {
			if (!session->safe_flist)
				die_flags(flags);
			*mask = wire_read_varint(session->wire) & IO_ERROR_BITS;
			return 0;
		}
	}
	if ((flags > UINT8_MAX && flags & ~known_flags(receiver)) || (flags & XMIT_HLINK_FIRST && !(flags & XMIT_HLINKED)))
		die_flags(flags);
	return flags;
}

/* --- the name --- */

static void read_name(struct flist_receiver *receiver, uint32_t flags)
{
	struct strbuf *name = &receiver->state.name;
	struct wire *wire = receiver->session->wire;
	size_t prefix = flags & XMIT_SAME_NAME ? wire_read_byte(wire) : 0;
	int32_t rest = flags & XMIT_LONG_NAME ? wire_read_vint30(wire) : wire_read_byte(wire);

	if (rest < 0 || (size_t)rest + prefix >= PATH_MAX)
		die(EXIT_MALLOC, "overflow: xflags=0x%x l1=%zu l2=%d lastname=%s", flags, prefix, rest, strbuf_text(name));
	if (prefix > name->length)
		die(EXIT_PROTOCOL, "file-list name shares %zu bytes with one of %zu", prefix, name->length);
	strbuf_truncate(name, prefix);
	strbuf_reserve(name, (size_t)rest);
	wire_read(wire, name->data + prefix, (size_t)rest);
	strbuf_truncate(name, prefix + (size_t)rest);
}

/* --- fields --- */

/* doc/protocol/02-file-list.md section 2.8. */
static void read_device(struct flist_receiver *receiver, struct incoming *in)
{
	const struct options *options = receiver->options;
	struct incoming_state *state = &receiver->state;
	struct wire *wire = receiver->session->wire;
	const struct session_caps *caps = &receiver->session->caps;
	bool is_special = S_ISFIFO(in->mode) || S_ISSOCK(in->mode);

	if (!(incoming_is_device(in) && options->devices) && !(is_special && options->specials && caps->special_rdev)) {
		state->rdev = 0;
		return;
	}
	if (!caps->split_rdev) {
		if (!(in->flags & XMIT_SAME_RDEV_PRE28))
			state->rdev = (uint32_t)wire_read_int(wire);
		in->rdev_major = major(state->rdev);
		in->rdev_minor = minor(state->rdev);
		return;
	}
	if (!(in->flags & XMIT_SAME_RDEV_MAJOR))
		state->rdev_major = (uint32_t)wire_read_vint30(wire);
	in->rdev_major = state->rdev_major;
	if (caps->byte_minors && in->flags & XMIT_RDEV_MINOR_8_PRE30)
		in->rdev_minor = wire_read_byte(wire);
	else
		in->rdev_minor = (uint32_t)wire_read_vint30(wire);
}

/* Append the target of a symlink without a slash at its beginning and without ".." that climb above the transfer, in which the
 * link has the name `name` (doc/protocol/07-daemon.md section 5.16). */
static void clean_target(const char *target, const char *name, struct strbuf *clean)
{
	size_t depth = 0, start = clean->length, below = 0;
	struct strbuf path = STRBUF_INIT;
	bool slash = false;

	for (name += strspn(name, "/"); *name; name++)
		depth += *name == '/';
	while (*target) {
		size_t length = strcspn(target, "/");
		bool climbs = is_component(target, length, "..");

		if (climbs && below) {
			const char *last = strrchr(strbuf_text(&path), '/');

			strbuf_truncate(&path, last ? (size_t)(last - path.data) : 0);
			below--;
		} else if (length && !is_component(target, length, ".") && (!climbs || depth)) {
			if (path.length)
				strbuf_add_char(&path, '/');
			strbuf_add(&path, target, length);
			below += !climbs;
			depth -= climbs;
		}
		slash = target[length] == '/';
		target += length + slash;
	}
	strbuf_add_string(clean, path.length ? strbuf_text(&path) : ".");
	if (slash && path.length && clean->length > start)
		strbuf_add_char(clean, '/');
	strbuf_free(&path);
}

static void read_target(struct flist_receiver *receiver, struct incoming *in)
{
	const struct flist_receive_setup *setup = &receiver->setup;
	struct strbuf *raw = &receiver->wire_target;
	int32_t length = wire_read_vint30(receiver->session->wire);

	if (length <= 0 || length >= PATH_MAX)
		die(EXIT_MALLOC, "overflow: linkname_len=%d", length);
	strbuf_reset(raw);
	strbuf_reserve(raw, (size_t)length);
	wire_read(receiver->session->wire, raw->data, (size_t)length);
	strbuf_truncate(raw, (size_t)length);
	if (memchr(raw->data, '\0', raw->length))
		die(EXIT_PROTOCOL, "NUL byte inside the target of symlink %s received", strbuf_text(&in->name));
	strbuf_reset(&in->target);
	if (setup->clean_symlinks) {
		clean_target(strbuf_text(raw), strbuf_text(&in->name), &in->target);
		return;
	}
	if (setup->munge_symlinks)
		strbuf_add_string(&in->target, MUNGE_PREFIX);
	if (!setup->charset || !receiver->session->symlink_iconv)
		strbuf_add(&in->target, raw->data, raw->length);
	else if (!charset_from_wire(setup->charset, raw->data, raw->length, PATH_MAX - 1, &in->target))
		in->unconvertible = true;
}

/* --- hard links: doc/protocol/02-file-list.md section 2.10 --- */

/* A group becomes known; its first member is the entry that is added next. */
static uint64_t new_group(struct flist_receiver *receiver)
{
	struct received_link link = { .directory = UINT32_MAX };

	vec_push(&receiver->links, link);
	budget_take(session_budget(receiver->session), 2 * (sizeof(struct hashmap_slot) + sizeof link), "a file list");
	return receiver->links.count;
}

/* The reference of a later member; true if nothing of it follows. */
static bool read_reference(struct flist_receiver *receiver, struct incoming *in)
{
	int32_t reference = wire_read_varint(receiver->session->wire);
	int64_t next = (int64_t)receiver->list_first + receiver->arrived;
	const uint64_t *group = reference < 0 ? NULL : hashmap_get(&receiver->link_keys, 0, (uint64_t)reference);

	if (reference >= next || !group)
		die(EXIT_PROTOCOL, "hard-link reference out of range: %d (%lld)", reference, (long long)next);
	in->group = *group;
	if (reference < receiver->list_first)
		return false;
	/* Everything that an abbreviated entry has in common with the first of its group. */
	const struct received_link *link = &receiver->links.items[in->group - 1];
	const struct entries *entries = receiver->staged.items[link->directory].entries;
	const struct entry *first = &entries->items[link->index];
	const struct entry_side *side = entry_side_of(entries, first);

	in->size = receiver->options->only_send_attrs && entry_is_regular(first) ? side->real_size : first->size;
	in->mtime = receiver->state.mtime = first->mtime;
	in->nsec = first->mtime_nsec;
	in->mode = receiver->state.mode = first->mode;
	in->uid = first->uid;
	in->gid = first->gid;
	if (receiver->options->owner)
		receiver->state.uid = in->uid;
	if (receiver->options->group)
		receiver->state.gid = in->gid;
	in->atime = side->atime;
	if (receiver->options->atimes)
		receiver->state.atime = in->atime;
	in->rdev_major = side->rdev_major;
	in->rdev_minor = side->rdev_minor;
	if (incoming_is_device(in) && receiver->options->devices)
		receiver->state.rdev_major = in->rdev_major;
	in->has_target = S_ISLNK(in->mode) && receiver->options->links;
	strbuf_reset(&in->target);
	strbuf_add(&in->target, entry_target(entries, first), side->target_length);
	if (receiver->options->checksum && entry_is_regular(first))
		memcpy(in->digest, entry_name(entries, first) + first->name_length + 1,
		       (size_t)digest_length(receiver->session->file_sum));
	return true;
}

/* --- one entry --- */

static void read_fields(struct flist_receiver *receiver, struct incoming *in)
{
	const struct options *options = receiver->options;
	const struct session_caps *caps = &receiver->session->caps;
	struct incoming_state *state = &receiver->state;
	struct wire *wire = receiver->session->wire;
	int64_t size = wire_read_vlong30(wire, 3);

	if (size < 0)
		die(EXIT_UNSUPPORTED, "Offset underflow: file-length is negative");
	in->size = (uint64_t)size;
	if (!(in->flags & XMIT_SAME_TIME))
		state->mtime = caps->wide_mtime ? wire_read_varlong(wire, 4) : (uint32_t)wire_read_int(wire);
	in->mtime = state->mtime;
	in->nsec = in->flags & XMIT_MOD_NSEC ? (uint32_t)wire_read_varint_range(wire, 0, NSEC_MAX, "modtime_nsec") : 0;
	if (!(in->flags & XMIT_SAME_MODE))
		state->mode = (uint32_t)wire_read_int(wire);
	in->mode = state->mode;
	bool is_known = in->mode <= UINT16_MAX
			&& (S_ISREG(in->mode) || S_ISDIR(in->mode) || S_ISLNK(in->mode) || S_ISFIFO(in->mode)
			    || S_ISSOCK(in->mode) || incoming_is_device(in));

	if (!is_known && (in->mode || !options->delete_missing_args))
		die(EXIT_PROTOCOL, "invalid file mode 0%o for %s", in->mode, strbuf_text(&state->name));
	if (in->flags & XMIT_HLINKED && S_ISDIR(in->mode))
		die(EXIT_PROTOCOL, "hard-linked directory in the file list: %s", strbuf_text(&state->name));
	if (options->atimes && !S_ISDIR(in->mode) && !(in->flags & XMIT_SAME_ATIME))
		state->atime = wire_read_varlong(wire, 4);
	in->atime = state->atime;
	if (options->owner && !(in->flags & XMIT_SAME_UID)) {
		state->uid = (uint32_t)wire_read_vint30(wire);
		receiver->users.heard = true;
		if (caps->inline_names && in->flags & XMIT_USER_NAME_FOLLOWS)
			id_map_read_name(&receiver->users, wire, state->uid);
	}
	if (options->group && !(in->flags & XMIT_SAME_GID)) {
		state->gid = (uint32_t)wire_read_vint30(wire);
		receiver->groups.heard = true;
		if (caps->inline_names && in->flags & XMIT_GROUP_NAME_FOLLOWS)
			id_map_read_name(&receiver->groups, wire, state->gid);
	}
	in->uid = state->uid;
	in->gid = state->gid;
	read_device(receiver, in);
	in->has_target = S_ISLNK(in->mode) && options->links;
	if (in->has_target)
		read_target(receiver, in);
	/* Device and inode as an opaque key, below protocol 30. */
	if (options->hard_links && !caps->links_by_index
	    && (caps->marks_links ? in->flags & XMIT_HLINKED : S_ISREG(in->mode))) {
		bool inserted;

		if (!caps->marks_links || !(in->flags & XMIT_SAME_DEV_PRE30))
			state->link_dev = wire_read_longint(wire);
		int64_t inode = wire_read_longint(wire);

		in->group = *hashmap_put(&receiver->link_keys, (uint64_t)state->link_dev, (uint64_t)inode,
					 receiver->links.count + 1, &inserted);
		if (inserted)
			new_group(receiver);
	}
	if (options->checksum && (S_ISREG(in->mode) || !caps->sums_only_files))
		wire_read(wire, in->digest, (size_t)digest_length(receiver->session->file_sum));
}

bool flist_decode_entry(struct flist_receiver *receiver, int *mask)
{
	struct incoming *in = &receiver->incoming;
	bool is_abbreviated = false, inserted;
	uint32_t flags = read_flags(receiver, mask);

	if (!flags)
		return false;
	in->flags = flags;
	in->group = 0;
	in->acls = in->xattrs = 0;
	in->has_target = false;
	in->rdev_major = in->rdev_minor = 0;
	read_name(receiver, flags);
	const struct strbuf *name = &receiver->state.name;
	struct charset *charset = receiver->setup.charset;
	struct strbuf converted = STRBUF_INIT;

	/* An entry without a name here is a hole. */
	in->unconvertible = charset && !charset_from_wire(charset, strbuf_text(name), name->length, PATH_MAX - 1, &converted);
	if (charset && !in->unconvertible)
		name = &converted;
	strbuf_reset(&in->name);
	in->is_child = is_clean_child(receiver, strbuf_text(name), name->length);
	if (in->is_child)
		strbuf_add(&in->name, name->data, name->length);
	else
		clean_name(receiver, strbuf_text(name), name->length, &in->name);
	strbuf_free(&converted);
	if (receiver->session->caps.links_by_index && flags & XMIT_HLINK_FIRST) {
		in->group = new_group(receiver);
		hashmap_put(&receiver->link_keys, 0, (uint64_t)receiver->list_first + (uint64_t)receiver->arrived, in->group,
			    &inserted);
	} else if (receiver->session->caps.links_by_index && flags & XMIT_HLINKED) {
		is_abbreviated = read_reference(receiver, in);
	}
	if (!is_abbreviated)
		read_fields(receiver, in);
	if (receiver->options->acls && !S_ISLNK(in->mode))
		in->acls = received_acls_read(receiver, in->mode);
	if (receiver->options->xattrs)
		in->xattrs = received_xattrs_read(receiver);
	return true;
}
