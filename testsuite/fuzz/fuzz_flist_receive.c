/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A file list of any bytes, for any session and set of options: refused with a message, or a tree of nodes whose names stay
 * below the destination and whose numbers lead to the entries they came from. The first three bytes choose session and options.
 * What follows the list is an answer with values of extended attributes.
 */
#include "catch_die.h"

#include <string.h>

#include "flist/paths.h"
#include "flist/receive.h"
#include "flist/receive_attributes.h"
#include "lib/charset.h"
#include "options.h"
#include "testsuite/unit/wire_memory.h"
#include "wire/setup.h"

enum { LIST_MEMORY = 1 << 20 };

struct run {
	struct options options;
	struct session session;
	struct flist *list;
	struct flist_receiver *receiver;
	struct charset *charset;
	bool finished;
};

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void choose(struct run *run, uint8_t first, uint8_t second, uint8_t third)
{
	struct options *options = &run->options;
	struct session *session = &run->session;

	session_set_protocol(session, 27 + (first & 7) % 7);
	session->inc_recurse = session->protocol >= 30 && first & 8;
	session->varint_flags = session->id0_names = session->protocol >= 30 && first & 0x10;
	session->safe_flist = session->protocol >= 31 || session->varint_flags;
	session->file_sum = SUM_MD5;
	session->max_alloc = LIST_MEMORY;
	options->relative = first & 0x20;
	options->delete_missing_args = first & 0x40;
	options->recursive = !(first & 0x80);
	options->dirs = true;
	options->owner = options->group = second & 1;
	options->links = second & 2;
	options->devices = options->specials = second & 4;
	options->hard_links = (second & 8) != 0;
	options->checksum = second & 0x10;
	options->atimes = second & 0x20 && session->protocol >= 28;
	options->iconv = second & 0x40 ? "iso-8859-1" : NULL;
	session->symlink_iconv = second & 0x40;
	options->numeric_ids = second & 0x80;
	options->acls = third & 1 && session->protocol >= 30;
	options->xattrs = session->protocol >= 30 ? third >> 1 & 3 : 0;
	options->super = (third >> 3 & 3) == 3 ? SUPER_YES : -(third >> 3 & 3);
}

/* Relative to the destination, and nowhere above it. */
static void check_path(const struct run *run, const char *path)
{
	require(*path && (run->options.relative || *path != '/'));
	while (*path) {
		size_t length = strcspn(path, "/");

		require(length != 2 || memcmp(path, "..", 2) != 0);
		path += length;
		path += *path == '/';
	}
}

/* In order, of ids that files can have, under names that are kept. */
static void check_attributes(struct run *run, int32_t node, const struct entry *entry)
{
	const struct fs_acl *access, *defaults;

	if (run->options.acls) {
		flist_received_acls(run->list, node, entry, &access, &defaults);
		for (size_t i = 0; i < access->named_count; i++)
			require(access->named[i].bits < 8 && access->named[i].id != UINT32_MAX);
		for (size_t i = 1; i < defaults->named_count; i++)
			require(defaults->named[i].is_user < defaults->named[i - 1].is_user
				|| defaults->named[i].id > defaults->named[i - 1].id);
	}
	if (!run->options.xattrs)
		return;
	const struct xattr_list *list = flist_received_xattrs(run->list, node, entry);

	for (size_t i = 0; i < list->count; i++) {
		require(*list->items[i].name && (!i || strcmp(list->items[i - 1].name, list->items[i].name) < 0));
		require(run->options.xattrs > 1 || strncmp(list->items[i].name, "user.rsync.%", 12) != 0);
	}
}

static void check_entry(struct run *run, int32_t node, const struct entry *entry, struct strbuf *path)
{
	const struct flist_dir *dir = flist_dir(run->list, node);
	struct flist_pos pos;

	flist_entry_path(run->list, node, entry, path);
	if (entry->name_length)
		check_path(run, strbuf_text(path));
	require(strlen(entry_name(dir->entries, entry)) == entry->name_length);
	require(!memchr(entry_name(dir->entries, entry) + 1, '/', entry->name_length ? entry->name_length - 1u : 0));
	if (entry_is_symlink(entry))
		require(strlen(entry_target(dir->entries, entry)) < 4096);
	if (entry->flags & ENTRY_HIDDEN)
		return;
	require(flist_locate(run->list, flist_ndx_of(run->list, node, entry), &pos));
	require(pos.entry == entry && pos.dir == node);
	require(!flist_received_digest(run->list, node, entry) || run->options.checksum);
	check_attributes(run, node, entry);
}

static void check_list(struct run *run)
{
	struct strbuf path = STRBUF_INIT;
	int32_t last = -1;

	for (int32_t node = 0; node >= 0; node = flist_load_next(run->list)) {
		const struct flist_dir *dir = flist_dir(run->list, node);

		require(dir->loaded && dir->count == dir->entries->count && dir->own_ndx >= last);
		last = dir->own_ndx;
		for (uint32_t i = 0; i < dir->count; i++)
			check_entry(run, node, &dir->entries->items[i], &path);
	}
	strbuf_free(&path);
}

static void receive(void *run_void)
{
	struct run *run = run_void;
	const struct flist_receive_setup setup = { .charset = run->charset };
	int32_t ndx = 0;

	run->list = flist_new_received(&run->options, &run->session);
	run->receiver = flist_receiver_new(run->list, &run->session, &run->options, &setup);
	flist_receive_first(run->receiver);
	while (run->session.inc_recurse && ndx != NDX_FLIST_EOF) {
		ndx = wire_read_ndx(run->session.wire);
		flist_receive_next(run->receiver, ndx);
	}
	run->finished = true;
	const struct entries *first = flist_dir(run->list, 0)->entries;

	if (run->options.xattrs && first->count)
		flist_receive_xattr_answer(run->receiver, 0, &first->items[first->count - 1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run run;

	if (size < 3)
		return 0;
	memset(&run, 0, sizeof run);
	choose(&run, data[0], data[1], data[2]);
	run.charset = run.options.iconv ? charset_new(run.options.iconv) : NULL;
	run.session.wire = wire_new_memory(data + 3, size - 3);
	session_limit_memory(&run.session);
	wire_settings(run.session.wire)->protocol = run.session.protocol;
	catch_die(receive, &run);
	if (run.finished)
		check_list(&run);
	flist_receiver_free(run.receiver);
	flist_free(run.list);
	charset_free(run.charset);
	wire_free(run.session.wire);
	return 0;
}
