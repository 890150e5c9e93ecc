/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names of the sources: those that are wanted, and those that are removed. */
#include "sender/names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flist/paths.h"
#include "flist/scan.h"
#include "flist/send.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "sender/state.h"

/*
 * --- which names are wanted ---
 *
 * Arguments, a --files-from list of this side, or one that the peer streams (doc/protocol/04-filters.md section 4.16).
 */

static void add_name(struct sender *sender, const char *name)
{
	struct strbuf local = STRBUF_INIT;

	/* Names travel in UTF-8 only if the arguments did too (doc/protocol/02-file-list.md section 7.4). */
	if (sender->charset && sender->options->secluded_args && sender->host->names_fd < 0
	    && charset_from_wire(sender->charset, name, strlen(name), PATH_MAX - 1, &local))
		name = local.data;
	flist_add_argument(sender->list, name, true);
	strbuf_free(&local);
}

static void name_too_long(struct sender *sender)
{
	log_msg(L_ERROR_XFER, "rsync: [sender] a --files-from name is longer than %d bytes", PATH_MAX - 1);
	sender->session->io_error |= IOERR_GENERAL;
}

/* A list that the peer streams, raw below protocol 31 (doc/protocol/01-session.md section 9.7). */
static void read_streamed_names(struct sender *sender)
{
	struct wire *wire = sender->session->wire;
	const struct session *session = sender->session;
	bool framed = !session->is_server || session->caps.frames_requests || sender->options->remove_source_files;
	bool raw_window = framed && !session->caps.framed_names;
	struct strbuf name = STRBUF_INIT;
	bool too_long = false;

	if (raw_window)
		wire_set_mux_in(wire, false);
	for (;;) {
		char byte = (char)wire_read_byte(wire);
		if (byte) {
			too_long |= name.length >= PATH_MAX - 1;
			if (!too_long)
				strbuf_add_char(&name, byte);
			continue;
		}
		if (!name.length)
			break;
		if (too_long)
			name_too_long(sender);
		else
			add_name(sender, name.data);
		strbuf_reset(&name);
		too_long = false;
	}
	if (raw_window)
		wire_set_mux_in(wire, true);
	strbuf_free(&name);
}

static void read_names_of_file(struct sender *sender)
{
	FILE *file = fdopen(sender->host->names_fd, "r");
	struct strbuf line = STRBUF_INIT;
	int byte;

	if (!file)
		die(EXIT_MALLOC, "rsync: [sender] cannot read the files-from file: %s", strerror(errno));
	do {
		byte = getc(file);
		if (byte == EOF || byte == '\0' || (!sender->options->from0 && (byte == '\n' || byte == '\r'))) {
			const char *text = strbuf_text(&line);

			if (*text && *text != '#' && *text != ';' && line.length >= PATH_MAX)
				name_too_long(sender);
			else if (*text && *text != '#' && *text != ';')
				add_name(sender, text);
			strbuf_reset(&line);
		} else if (line.length < PATH_MAX) {
			/* The file is whatever the client has named: a line may be as long as that. */
			strbuf_add_char(&line, (char)byte);
		}
	} while (byte != EOF);
	strbuf_free(&line);
	fclose(file);
}

void sender_read_names(struct sender *sender)
{
	const struct options *options = sender->options;
	const struct args *sources = sender->host->sources;

	if (options->files_from) {
		flist_set_files_from(sender->list, sources->count ? sources->items[0] : "");
		if (sender->host->names_fd < 0)
			read_streamed_names(sender);
		else
			read_names_of_file(sender);
		return;
	}
	for (size_t i = 0; i < sources->count; i++)
		flist_add_argument(sender->list, sources->items[i], false);
	if (!sources->count && (options->recursive || options->dirs || options->list_only))
		flist_add_argument(sender->list, ".", false);
}

/*
 * --- which names are removed ---
 *
 * --remove-source-files: unlink what the receiver has confirmed, if it is still what was sent (doc/protocol/03-transfer.md
 * section 7.9).
 */

static bool is_unchanged(const struct sender *sender, const struct entry *entry, const struct fs_stat *st)
{
	if (entry_is_regular(entry) && st->size != entry->size)
		return false;
	return st->mtime == entry->mtime && (!sender->session->caps.mtime_nsec || st->mtime_nsec == entry->mtime_nsec);
}

/*
 * Without following symlinks that lead outside of the source: what they lead to may be read, not removed. But those on the way
 * that an operand or a list entry takes are followed again, if they are root's or the user's (doc/protocol/09-since-3.5.0.md
 * section 6.3), and if no option can have led through others.
 */
static int open_directory(const struct sender *sender, const struct fs_root *source, const char *path)
{
	struct fs_root root = *source;

	root.trusting = sender->options->insecure_links;
	root.owned = source->owned || source->anchors;
	return fs_open_follow(&root, path, O_PATH | O_DIRECTORY, 0);
}

/* The source's parent directory, held open, and the name in it. -1 with errno. */
static int open_parent(const struct sender *sender, const struct fs_root *root, char *path, const char **name)
{
	char *slash = strrchr(path, '/');

	*name = slash ? slash + 1 : path;
	if (!slash)
		return open_directory(sender, root, "");
	*slash = '\0';
	int fd = open_directory(sender, root, path);

	*slash = '/';
	return fd;
}

static bool is_object(const struct fs_root *operator, const char *path, const struct fs_stat *st)
{
	struct fs_stat found;
	int fd = fs_open_follow(operator, path, O_PATH | O_NOFOLLOW, 0);
	bool is_same = fd >= 0 && fs_stat_at_fd(fd, &found) == 0 && found.dev == st->dev && found.ino == st->ino;

	if (fd >= 0)
		close(fd);
	return is_same;
}

/*
 * Whether what is to be removed is what the other half of a local run has just written or verified, as where both operands lead
 * to the same place (doc/protocol/08-security.md section 4.4). What cannot be found out counts as that.
 */
static bool is_destination(const struct sender *sender, const char *name, const struct fs_stat *st)
{
	const char *destination = sender->options->destination;
	struct strbuf path = STRBUF_INIT;
	struct fs_root operator;

	if (!destination)
		return false;
	if (fs_root_open(&operator, ".") < 0)
		return true;
	operator.trusting = true;
	strbuf_addf(&path, "%s/%s", destination, name);
	bool is_it = is_object(&operator, destination, st) || is_object(&operator, strbuf_text(&path), st);

	strbuf_free(&path);
	fs_root_close(&operator);
	return is_it;
}

void sender_remove_source(struct sender *sender, int32_t ndx)
{
	struct flist_pos pos;
	struct strbuf path = STRBUF_INIT, name = STRBUF_INIT;
	struct fs_stat st;
	const char *leaf;

	if (!sender->list_sender)
		return;
	flist_find(sender->list_sender, ndx, &pos);
	if (pos.gap >= 0 || entry_is_dir(pos.entry))
		return;
	struct attr_source *source = flist_pos_source(sender->list, &pos, &path);
	int parent = open_parent(sender, &source->attr_root, path.data, &leaf);

	flist_pos_path(sender->list, &pos, &name);
	if (parent < 0 && errno != ENOENT) {
		log_errno(L_ERROR_XFER, errno, "sender failed to secure-open-parent %s", strbuf_text(&name));
	} else if (parent < 0 || (sender->options->copy_links ? fs_stat_follow(&source->attr_root, path.data, &st)
				  : fs_lstat_at(parent, leaf, &st)) < 0) {
		if (errno == ENOENT)
			log_info("sender file already removed: %s", strbuf_text(&name));
		else
			log_errno(L_ERROR_XFER, errno, "sender failed to re-lstat %s", strbuf_text(&name));
	} else if (!is_unchanged(sender, pos.entry, &st)) {
		log_msg(L_ERROR_XFER, "ERROR: Skipping sender remove for changed file: %s", strbuf_text(&name));
	} else if (is_destination(sender, strbuf_text(&name), &st)) {
		log_msg(L_ERROR_XFER, "ERROR: Skipping sender remove of destination file: %s", strbuf_text(&name));
	} else if (fs_unlink_at(parent, leaf) < 0) {
		log_errno(L_ERROR_XFER, errno, "sender failed to remove %s", strbuf_text(&name));
	} else if (sender->options->levels.info[INFO_REMOVE] > 0) {
		log_info("sender removed %s", strbuf_text(&name));
	}
	if (parent >= 0)
		close(parent);
	strbuf_free(&path);
	strbuf_free(&name);
}
