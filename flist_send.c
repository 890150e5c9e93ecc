/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file list on the wire: entries, end markers, sub-lists, look-ahead (protocol/02 sections 2 and 6). */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "delta/digest.h"
#include "flist_send_private.h"
#include "fs/chmod.h"
#include "lib/charset.h"
#include "lib/exit.h"

#define LOOK_AHEAD 1000
#define DIGEST_BUFFER (256 * 1024)

/* Flag bits of an entry, protocol/02 section 2.2. */
enum xmit_flag {
	XMIT_TOP_DIR = 0x0001,
	XMIT_SAME_MODE = 0x0002,
	XMIT_SAME_RDEV_PRE28 = 0x0004,
	XMIT_EXTENDED_FLAGS = 0x0004,
	XMIT_SAME_UID = 0x0008,
	XMIT_SAME_GID = 0x0010,
	XMIT_SAME_NAME = 0x0020,
	XMIT_LONG_NAME = 0x0040,
	XMIT_SAME_TIME = 0x0080,
	XMIT_SAME_RDEV_MAJOR = 0x0100,
	XMIT_NO_CONTENT_DIR = 0x0100,
	XMIT_HLINKED = 0x0200,
	XMIT_SAME_DEV_PRE30 = 0x0400,
	XMIT_USER_NAME_FOLLOWS = 0x0400,
	XMIT_RDEV_MINOR_8_PRE30 = 0x0800,
	XMIT_GROUP_NAME_FOLLOWS = 0x0800,
	XMIT_HLINK_FIRST = 0x1000,
	XMIT_IO_ERROR_ENDLIST = 0x1000,
	XMIT_MOD_NSEC = 0x2000,
	XMIT_SAME_ATIME = 0x4000,
};

/* One entry about to be written: what the flags say and what the fields will hold. */
struct outgoing {
	const struct entry *entry;
	const struct entry_side *side;
	const struct entries *entries;
	uint32_t mode;              /* after "outgoing chmod" */
	uint32_t flags;
	size_t prefix;              /* bytes shared with the previous name */
	const char *user_name, *group_name;
	const struct first_link *first; /* hard link to an earlier member */
	bool abbreviated;
	bool has_rdev;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* --- flags --- */

static void flag_directory(const struct flist_sender *sender, struct outgoing *out)
{
	bool top = out->entry->flags & ENTRY_TOP_DIR, no_content = out->entry->flags & ENTRY_NO_CONTENT;

	if (sender->session->protocol >= 30) {
		out->flags |= (top ? XMIT_TOP_DIR : 0) | (no_content ? XMIT_NO_CONTENT_DIR : 0);
	} else if (top && !no_content) {
		out->flags |= XMIT_TOP_DIR;
	}
}

static void flag_owner(struct flist_sender *sender, struct outgoing *out)
{
	const struct entry_state *state = &sender->state;
	const struct entry *entry = out->entry;

	if (!sender->options->owner || (state->any && state->uid == entry->uid)) {
		out->flags |= XMIT_SAME_UID;
	} else {
		out->user_name = id_names_mention_user(&sender->names, entry->uid);
		out->flags |= out->user_name ? XMIT_USER_NAME_FOLLOWS : 0;
	}
	if (!sender->options->group || (state->any && state->gid == entry->gid)) {
		out->flags |= XMIT_SAME_GID;
	} else {
		out->group_name = id_names_mention_group(&sender->names, entry->gid);
		out->flags |= out->group_name ? XMIT_GROUP_NAME_FOLLOWS : 0;
	}
}

/* Device numbers, protocol/02 section 2.8. */
static void flag_device(struct flist_sender *sender, struct outgoing *out)
{
	const struct entry *entry = out->entry;
	int protocol = sender->session->protocol;
	bool device = entry_is_device(entry) && sender->options->devices;
	bool special = entry_is_special(entry) && sender->options->specials && protocol < 31;
	uint32_t major = device ? out->side->rdev_major : sender->state.rdev_major;
	uint32_t minor = device ? out->side->rdev_minor : 0;

	out->has_rdev = device || special;
	if (protocol < 28) {
		uint32_t rdev = device ? (uint32_t)makedev(major, minor) : sender->state.rdev;
		if (!out->has_rdev)
			sender->state.rdev = 0;
		else if (rdev == sender->state.rdev)
			out->flags |= XMIT_SAME_RDEV_PRE28;
		return;
	}
	if (!out->has_rdev)
		return;
	if (major == sender->state.rdev_major)
		out->flags |= XMIT_SAME_RDEV_MAJOR;
	if (protocol < 30 && minor <= 255)
		out->flags |= XMIT_RDEV_MINOR_8_PRE30;
}

static void remember_first(struct flist_sender *sender, const struct outgoing *out, int32_t ndx)
{
	struct first_link first = {
		.ndx = ndx, .mtime = out->entry->mtime, .mode = out->mode, .uid = out->entry->uid, .gid = out->entry->gid,
		.atime = out->side->atime, .rdev_major = out->side->rdev_major,
	};

	vec_push(&sender->firsts, first);
}

/* Hard links by group index, protocol/02 section 2.10. */
static void flag_link(struct flist_sender *sender, struct outgoing *out, int32_t ndx, int32_t list_first_ndx)
{
	bool inserted;

	if (!(out->entry->flags & ENTRY_HARD_LINKED) || !sender->options->hard_links)
		return;
	/* A dropped duplicate that declares a group would make receivers fail (protocol/02 6.8). */
	if (sender->session->inc_recurse && (out->entry->flags & ENTRY_DUPLICATE))
		return;
	out->flags |= XMIT_HLINKED;
	if (sender->session->protocol < 30) {
		if (sender->state.link_dev == (int64_t)out->side->dev + 1)
			out->flags |= XMIT_SAME_DEV_PRE30;
		return;
	}
	uint64_t *group = hashmap_put(&sender->links, out->side->dev, out->side->ino, sender->firsts.count, &inserted);

	if (inserted) {
		out->flags |= XMIT_HLINK_FIRST;
		remember_first(sender, out, ndx);
		return;
	}
	out->first = &sender->firsts.items[*group];
	out->abbreviated = out->first->ndx >= list_first_ndx;
}

static void compute_flags(struct flist_sender *sender, struct outgoing *out, int32_t ndx, int32_t list_first_ndx)
{
	const struct entry_state *state = &sender->state;
	const struct entry *entry = out->entry;
	int protocol = sender->session->protocol;

	if (protocol >= 28)
		flag_link(sender, out, ndx, list_first_ndx);
	if (out->abbreviated)
		return;
	if (entry_is_dir(entry))
		flag_directory(sender, out);
	if (out->mode == state->mode)
		out->flags |= XMIT_SAME_MODE;
	if (protocol >= 30 ? entry->mtime == state->mtime : (uint32_t)entry->mtime == (uint32_t)state->mtime)
		out->flags |= XMIT_SAME_TIME;
	if (protocol >= 31 && entry->mtime_nsec)
		out->flags |= XMIT_MOD_NSEC;
	flag_owner(sender, out);
	flag_device(sender, out);
	if (sender->options->atimes && !entry_is_dir(entry) && out->side->atime == state->atime)
		out->flags |= XMIT_SAME_ATIME;
}

/* --- fields --- */

/* The entry's wire name against the previous one: sets the prefix and the name flags. */
static void compare_with_previous(struct flist_sender *sender, struct outgoing *out, const struct strbuf *name)
{
	const struct strbuf *previous = &sender->state.name;
	size_t limit = name->length < previous->length ? name->length : previous->length;
	size_t prefix = 0;

	if (limit > 255)
		limit = 255;
	while (prefix < limit && name->data[prefix] == previous->data[prefix])
		prefix++;
	out->prefix = prefix;
	if (prefix)
		out->flags |= XMIT_SAME_NAME;
	if (name->length - prefix > 255)
		out->flags |= XMIT_LONG_NAME;
}

/* Protocol/02 section 2.1: a flag word never looks like the end marker. */
static void write_flags(struct flist_sender *sender, const struct outgoing *out)
{
	struct wire *wire = sender->session->wire;
	uint32_t flags = out->flags;

	if (sender->session->varint_flags) {
		wire_write_varint(wire, (int32_t)(flags ? flags : XMIT_EXTENDED_FLAGS));
		return;
	}
	if (sender->session->protocol < 28) {
		flags &= 0xff;
		if (!flags)
			flags = entry_is_dir(out->entry) ? XMIT_LONG_NAME : XMIT_TOP_DIR;
		wire_write_byte(wire, (uint8_t)flags);
		return;
	}
	if (!flags && !entry_is_dir(out->entry))
		flags = XMIT_TOP_DIR;
	if ((flags & 0xff00) || !flags)
		wire_write_short(wire, (uint16_t)(flags | XMIT_EXTENDED_FLAGS));
	else
		wire_write_byte(wire, (uint8_t)flags);
}

static void write_name(struct flist_sender *sender, const struct outgoing *out, const struct strbuf *name)
{
	struct wire *wire = sender->session->wire;
	size_t rest = name->length - out->prefix;
	/* At protocol 27 a directory without any flag is marked by the long form of its length. */
	bool long_form = (out->flags & XMIT_LONG_NAME)
			 || (sender->session->protocol < 28 && !(out->flags & 0xff) && entry_is_dir(out->entry));

	if (out->flags & XMIT_SAME_NAME)
		wire_write_byte(wire, (uint8_t)out->prefix);
	if (long_form)
		wire_write_vint30(wire, (int32_t)rest);
	else
		wire_write_byte(wire, (uint8_t)rest);
	wire_write(wire, name->data + out->prefix, rest);
}

static void write_id(struct flist_sender *sender, uint32_t id, const char *name)
{
	wire_write_vint30(sender->session->wire, (int32_t)id);
	if (name)
		id_names_write_name(sender->session, name);
}

static void write_times_and_mode(struct flist_sender *sender, const struct outgoing *out)
{
	struct wire *wire = sender->session->wire;
	const struct entry *entry = out->entry;

	if (!(out->flags & XMIT_SAME_TIME)) {
		if (sender->session->protocol >= 30)
			wire_write_varlong(wire, entry->mtime, 4);
		else
			wire_write_int(wire, (int32_t)(uint32_t)entry->mtime);
	}
	if (out->flags & XMIT_MOD_NSEC)
		wire_write_varint(wire, (int32_t)entry->mtime_nsec);
	if (!(out->flags & XMIT_SAME_MODE))
		wire_write_int(wire, (int32_t)out->mode);
	if (sender->options->atimes && !entry_is_dir(entry) && !(out->flags & XMIT_SAME_ATIME))
		wire_write_varlong(wire, out->side->atime, 4);
}

static void write_device(struct flist_sender *sender, const struct outgoing *out)
{
	struct wire *wire = sender->session->wire;
	int protocol = sender->session->protocol;
	bool device = entry_is_device(out->entry);
	uint32_t minor = device ? out->side->rdev_minor : 0;

	if (!out->has_rdev)
		return;
	if (protocol < 28) {
		if (!(out->flags & XMIT_SAME_RDEV_PRE28))
			wire_write_int(wire, (int32_t)makedev(out->side->rdev_major, minor));
		return;
	}
	if (!(out->flags & XMIT_SAME_RDEV_MAJOR))
		wire_write_vint30(wire, (int32_t)out->side->rdev_major);
	if (out->flags & XMIT_RDEV_MINOR_8_PRE30 && protocol < 30)
		wire_write_byte(wire, (uint8_t)minor);
	else
		wire_write_vint30(wire, (int32_t)minor);
}

static void write_target(struct flist_sender *sender, const struct outgoing *out)
{
	struct wire *wire = sender->session->wire;
	const char *target = out->entries->pool + out->side->target;
	size_t length = out->side->target_length;
	struct strbuf converted = STRBUF_INIT;

	if (sender->setup.charset && sender->session->symlink_iconv
	    && charset_to_wire(sender->setup.charset, target, length, PATH_MAX - 1, &converted)) {
		target = converted.data;
		length = converted.length;
	}
	wire_write_vint30(wire, (int32_t)length);
	wire_write(wire, target, length);
	strbuf_free(&converted);
}

/* Device and inode as an opaque key, protocols 27 to 29. */
static void write_link_key(struct flist_sender *sender, const struct outgoing *out)
{
	struct wire *wire = sender->session->wire;
	bool linked = out->entry->flags & ENTRY_HARD_LINKED;
	int protocol = sender->session->protocol;

	if (!sender->options->hard_links || protocol >= 30)
		return;
	if (protocol >= 28) {
		if (!(out->flags & XMIT_HLINKED))
			return;
		if (!(out->flags & XMIT_SAME_DEV_PRE30))
			wire_write_longint(wire, (int64_t)out->side->dev + 1);
		wire_write_longint(wire, (int64_t)out->side->ino);
		return;
	}
	if (!entry_is_regular(out->entry))
		return;
	wire_write_longint(wire, linked ? (int64_t)out->side->dev + 1 : 0);
	wire_write_longint(wire, linked ? (int64_t)out->side->ino : (int64_t)++sender->unlinked_files);
}

/* Digest of a file's content for -c; all zero if it cannot be opened. Keep-alives go out meanwhile. */
static void compute_digest(struct flist_sender *sender, int32_t node, const struct outgoing *out, uint8_t *digest)
{
	struct strbuf path = STRBUF_INIT;
	struct attr_source *source = flist_entry_source(sender->list, node, out->entry, &path);
	uint8_t attr_bytes[ATTR_FILE_SIZE];
	uint64_t size;

	file_digest_start_plain(sender->digest, sender->session->file_sum);
	if (source->only_attrs) {
		attr_file_encode(attr_bytes, out->side->real_size);
		file_digest_update(sender->digest, attr_bytes, sizeof attr_bytes);
	} else {
		bool follow = sender->options->copy_links || sender->options->copy_unsafe_links;
		int fd = attr_source_open(source, strbuf_text(&path), out->entry, follow, &size);
		char *buffer = fd < 0 ? NULL : xmalloc(DIGEST_BUFFER);
		ssize_t got;

		strbuf_free(&path);
		if (fd < 0)
			return;
		while ((got = read(fd, buffer, DIGEST_BUFFER)) > 0) {
			file_digest_update(sender->digest, buffer, (size_t)got);
			wire_keep_alive(sender->session->wire);
		}
		free(buffer);
		close(fd);
	}
	strbuf_free(&path);
	file_digest_finish(sender->digest, digest);
}

static void write_digest(struct flist_sender *sender, int32_t node, const struct outgoing *out)
{
	uint8_t digest[DIGEST_MAX_LENGTH] = { 0 };
	bool regular = entry_is_regular(out->entry);

	if (!sender->options->checksum || (!regular && sender->session->protocol >= 28))
		return;
	if (regular)
		compute_digest(sender, node, out, digest);
	wire_write(sender->session->wire, digest, (size_t)digest_length(sender->session->file_sum));
}

static void write_fields(struct flist_sender *sender, int32_t node, const struct outgoing *out)
{
	wire_write_vlong30(sender->session->wire, (int64_t)out->entry->size, 3);
	write_times_and_mode(sender, out);
	if (!(out->flags & XMIT_SAME_UID))
		write_id(sender, out->entry->uid, out->user_name);
	if (!(out->flags & XMIT_SAME_GID))
		write_id(sender, out->entry->gid, out->group_name);
	write_device(sender, out);
	if (entry_is_symlink(out->entry) && sender->options->links)
		write_target(sender, out);
	write_link_key(sender, out);
	write_digest(sender, node, out);
}

/* --- state after an entry --- */

static void update_state(struct flist_sender *sender, const struct outgoing *out)
{
	struct entry_state *state = &sender->state;
	const struct entry *entry = out->entry;

	state->any = true;
	state->mtime = entry->mtime;
	state->mode = out->mode;
	if (sender->options->owner)
		state->uid = entry->uid;
	if (sender->options->group)
		state->gid = entry->gid;
	if (sender->options->atimes && !entry_is_dir(entry))
		state->atime = out->side->atime;
	if (out->has_rdev && entry_is_device(entry)) {
		state->rdev_major = out->side->rdev_major;
		state->rdev = (uint32_t)makedev(out->side->rdev_major, out->side->rdev_minor);
	}
	if (out->flags & XMIT_HLINKED && sender->session->protocol < 30)
		state->link_dev = (int64_t)out->side->dev + 1;
}

/* An abbreviated entry leaves the state of the group's first member, as transmitted. */
static void copy_state(struct flist_sender *sender, const struct outgoing *out)
{
	struct entry_state *state = &sender->state;
	const struct first_link *first = out->first;

	state->any = true;
	state->mtime = first->mtime;
	state->mode = first->mode;
	if (sender->options->owner)
		state->uid = first->uid;
	if (sender->options->group)
		state->gid = first->gid;
	if (sender->options->atimes)
		state->atime = first->atime;
	if (entry_is_device(out->entry) && sender->options->devices)
		state->rdev_major = first->rdev_major;
}

/* --- one entry --- */

/* The name as it travels: converted, directory part and last component separately. */
static void wire_name(struct flist_sender *sender, int32_t node, const struct entry *entry, struct strbuf *name)
{
	struct charset *charset = sender->setup.charset;

	if (!charset) {
		flist_entry_path(sender->list, node, entry, name);
		return;
	}
	struct strbuf local = STRBUF_INIT;
	const char *leaf = entry_name(sender->list->dirs.items[node].entries, entry);

	strbuf_reset(name);
	flist_dir_path(sender->list, node, &local);
	charset_to_wire(charset, strbuf_text(&local), local.length, PATH_MAX - 1, name);
	if (name->length)
		strbuf_add_char(name, '/');
	charset_to_wire(charset, leaf, strlen(leaf), PATH_MAX - 1, name);
	strbuf_free(&local);
}

static void send_entry(struct flist_sender *sender, int32_t node, struct entry *entry, int32_t ndx, int32_t list_first_ndx)
{
	static const struct entry_side no_side;
	struct entries *entries = sender->list->dirs.items[node].entries;
	const struct entry_side *side = entry_side_of(entries, entry);
	struct outgoing out = { .entry = entry, .entries = entries, .side = side ? side : &no_side, .mode = entry->mode };
	struct strbuf *name = &sender->path;

	if (sender->setup.chmod && entry->mode && !entry_is_symlink(entry))
		out.mode = (uint32_t)chmod_apply(sender->setup.chmod, entry->mode);
	wire_name(sender, node, entry, name);
	compute_flags(sender, &out, ndx, list_first_ndx);
	compare_with_previous(sender, &out, name);
	write_flags(sender, &out);
	write_name(sender, &out, name);
	if (out.first)
		wire_write_varint(sender->session->wire, out.first->ndx);
	if (out.abbreviated) {
		copy_state(sender, &out);
	} else {
		write_fields(sender, node, &out);
		update_state(sender, &out);
	}
	/* The new name becomes the previous one; the old buffer is used for the next. */
	struct strbuf previous = sender->state.name;

	sender->state.name = sender->path;
	sender->path = previous;
	if (sender->options->acls && !entry_is_symlink(entry))
		xattr_send_acls(sender->xattrs, node, entry);
	if (sender->options->xattrs)
		xattr_send_xattrs(sender->xattrs, node, entry);
}

/* Entries from..to of a node, the first of which has index ndx. */
static void send_range(struct flist_sender *sender, int32_t node, uint32_t from, uint32_t to, int32_t ndx,
		       int32_t list_first_ndx)
{
	for (uint32_t i = from; i < to; i++) {
		struct entry *entry = &sender->list->dirs.items[node].entries->items[i];
		if (!(entry->flags & ENTRY_HIDDEN))
			send_entry(sender, node, entry, ndx + (int32_t)(i - from), list_first_ndx);
	}
}

/* --- ends of lists --- */

static void write_end(struct flist_sender *sender)
{
	struct session *session = sender->session;
	int mask = sender->options->ignore_errors ? 0 : session->io_error;

	if (mask == sender->reported_io_error)
		mask = 0;
	else
		sender->reported_io_error = mask;
	if (session->varint_flags) {
		wire_write_varint(session->wire, 0);
		wire_write_varint(session->wire, session->safe_flist ? mask : 0);
	} else if (mask && session->safe_flist) {
		wire_write_short(session->wire, XMIT_IO_ERROR_ENDLIST | XMIT_EXTENDED_FLAGS);
		wire_write_varint(session->wire, mask);
	} else {
		wire_write_byte(session->wire, 0);
	}
	if (mask && session->protocol >= 30 && !session->safe_flist)
		wire_send_message_int(session->wire, MSG_IO_ERROR, mask);
}

static void send_flist_eof(struct flist_sender *sender)
{
	wire_write_ndx(sender->session->wire, NDX_FLIST_EOF);
	sender->eof_sent = true;
}

/* Everything in one list: the walk's order is the order on the wire. */
static void send_whole_list(struct flist_sender *sender)
{
	struct flist *list = sender->list;
	struct session *session = sender->session;
	int32_t node = 0;

	do {
		const struct flist_dir *dir = &list->dirs.items[node];
		uint32_t leading = dir->child_count ? list->dirs.items[dir->first_child].parent_entry : dir->count;

		if (node)
			send_range(sender, dir->parent, dir->parent_entry, dir->parent_entry + dir->group, dir->own_ndx, 0);
		send_range(sender, node, 0, leading, list->dirs.items[node].first_ndx, 0);
		wire_keep_alive(session->wire);
	} while ((node = flist_load_next(list)) >= 0);
	write_end(sender);
	id_names_write_lists(&sender->names, sender->options->owner || sender->options->acls,
			     sender->options->group || sender->options->acls);
	if (session->protocol < 30)
		wire_write_int(session->wire, sender->options->ignore_errors ? 0 : session->io_error);
}

static void send_sub_list(struct flist_sender *sender, int32_t node)
{
	struct flist *list = sender->list;
	const struct flist_dir *dir = &list->dirs.items[node];

	wire_write_ndx(sender->session->wire, NDX_FLIST_OFFSET - dir->number);
	send_range(sender, node, 0, dir->count, dir->first_ndx, dir->first_ndx);
	write_end(sender);
	wire_keep_alive(sender->session->wire);
}

/* Load and send the next sub-list; false (and NDX_FLIST_EOF sent) at the end. */
static bool send_next(struct flist_sender *sender)
{
	int32_t node = flist_load_next(sender->list);

	if (node >= 0)
		send_sub_list(sender, node);
	if (flist_is_complete(sender->list)) {
		send_flist_eof(sender);
		return false;
	}
	return true;
}

static void send_first_list(struct flist_sender *sender)
{
	const struct flist_dir *first = &sender->list->dirs.items[0];
	uint32_t count = first->count;

	send_range(sender, 0, 0, count, first->first_ndx, first->first_ndx);
	write_end(sender);
	if (flist_is_complete(sender->list)) {
		send_flist_eof(sender);
		return;
	}
	/* A single item: the receiver waits for one more index before it decides what the destination is (6.6). */
	for (bool more = count == 1; more;) {
		size_t lists = sender->list->load_order.count;
		more = send_next(sender);
		if (sender->list->load_order.count > lists
		    && sender->list->dirs.items[sender->list->load_order.items[lists]].count)
			break;
	}
}

/* --- interface --- */

struct flist_sender *flist_send_start(struct flist *list, struct session *session, const struct options *options,
				      const struct flist_send_setup *setup)
{
	struct flist_sender *sender = xcalloc(1, sizeof *sender);

	sender->list = list;
	sender->session = session;
	sender->options = options;
	sender->setup = *setup;
	sender->started_ns = now_ns();
	id_names_init(&sender->names, session, options, setup);
	if (options->checksum)
		sender->digest = file_digest_new();
	if (options->acls || options->xattrs)
		sender->xattrs = xattr_sender_new(list, &sender->names);
	if (session->inc_recurse)
		send_first_list(sender);
	else
		send_whole_list(sender);
	sender->build_ms = (now_ns() - sender->started_ns) / 1000000;
	wire_flush(session->wire);
	return sender;
}

void flist_sender_free(struct flist_sender *sender)
{
	if (!sender)
		return;
	id_names_free(&sender->names);
	xattr_sender_free(sender->xattrs);
	hashmap_free(&sender->links);
	vec_free(&sender->firsts);
	file_digest_free(sender->digest);
	strbuf_free(&sender->state.name);
	strbuf_free(&sender->path);
	free(sender);
}

static int64_t entries_ahead(const struct flist_sender *sender, int32_t current_ndx)
{
	const struct flist *list = sender->list;
	size_t last = list->load_order.count - 1;
	size_t current = current_ndx >= 0 ? flist_order_of(list, current_ndx) : 0;

	if (current < sender->oldest)
		current = sender->oldest < last ? sender->oldest : last;
	const struct flist_dir *current_dir = &list->dirs.items[list->load_order.items[current]];
	const struct flist_dir *last_dir = &list->dirs.items[list->load_order.items[last]];
	int64_t last_end = (int64_t)last_dir->first_ndx + last_dir->count;
	int64_t current_end = (int64_t)current_dir->first_ndx + current_dir->count;

	/* Every list in between has a gap index. */
	return last_end - current_end - (int64_t)(last - current);
}

void flist_send_ahead(struct flist_sender *sender, int32_t current_ndx)
{
	if (!sender->session->inc_recurse || sender->eof_sent)
		return;
	while (entries_ahead(sender, current_ndx) < LOOK_AHEAD && send_next(sender))
		;
}

void flist_send_drop_oldest(struct flist_sender *sender)
{
	if (sender->oldest < sender->list->load_order.count)
		flist_drop_entries(sender->list, sender->list->load_order.items[sender->oldest++]);
}

int flist_send_held(const struct flist_sender *sender)
{
	return (int)(sender->list->load_order.count - sender->oldest);
}

bool flist_send_is_empty(const struct flist_sender *sender)
{
	return sender->list->dirs.items[0].count == 0 && sender->list->dirs.count == 1;
}

int64_t flist_send_build_ms(const struct flist_sender *sender)
{
	return sender->build_ms > 0 ? sender->build_ms : 1;
}

void flist_find(struct flist_sender *sender, int32_t ndx, struct flist_pos *pos)
{
	struct flist *list = sender->list;
	size_t held = list->load_order.count - sender->oldest;
	const struct flist_dir *oldest = held ? &list->dirs.items[list->load_order.items[sender->oldest]] : NULL;
	int32_t low = !oldest ? 0 : sender->session->inc_recurse ? oldest->own_ndx : 0;

	if (!oldest || ndx < low || ndx >= list->next_ndx || !flist_locate(list, ndx, pos))
		die(EXIT_PROTOCOL, "rsync: File-list index %d not in %d - %d", ndx, low, list->next_ndx - 1);
	if (pos->entry && pos->gap < 0 && (pos->entry->flags & ENTRY_DUPLICATE))
		die(EXIT_PROTOCOL, "rsync: refusing transfer of cleared file index %d", ndx);
}

static uint32_t sent_xattrs(const struct flist_sender *sender, const struct flist_pos *pos)
{
	const struct entry_side *side = pos->entry ? entry_side_of(pos->entries, pos->entry) : NULL;

	if (pos->gap > 0)
		return sender->list->dirs.items[pos->gap].xattrs;
	return side ? side->xattrs : 0;
}

void flist_send_read_xattr_request(struct flist_sender *sender, const struct flist_pos *pos)
{
	struct strbuf name = STRBUF_INIT;

	flist_pos_path(sender->list, pos, &name);
	xattr_read_request(sender->xattrs, sent_xattrs(sender, pos), strbuf_text(&name));
	strbuf_free(&name);
}

void flist_send_write_xattr_answer(struct flist_sender *sender, const struct flist_pos *pos)
{
	struct strbuf path = STRBUF_INIT;
	struct attr_source *source = flist_pos_source(sender->list, pos, &path);

	xattr_write_answer(sender->xattrs, sent_xattrs(sender, pos), attr_source_real_root(source), strbuf_text(&path));
	strbuf_free(&path);
}
