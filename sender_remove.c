/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --remove-source-files: unlink what the receiver has confirmed, if it is still what was sent (protocol/03 section 7.9). */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/log.h"
#include "sender_private.h"

static bool is_unchanged(const struct sender *sender, const struct entry *entry, const struct fs_stat *st)
{
	if (entry_is_regular(entry) && st->size != entry->size)
		return false;
	return st->mtime == entry->mtime && (sender->session->protocol < 31 || st->mtime_nsec == entry->mtime_nsec);
}

/* The source's parent directory, held open, and the name in it. -1 with errno. */
static int open_parent(const struct fs_root *root, char *path, const char **name)
{
	char *slash = strrchr(path, '/');

	*name = slash ? slash + 1 : path;
	if (!slash)
		return fs_opendir(root, "");
	*slash = '\0';
	int fd = fs_opendir(root, path);

	*slash = '/';
	return fd;
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
	/* What a symlink leads to outside of the source may be read, not removed. */
	struct fs_root root = source->attr_root;

	root.trusting = sender->options->insecure_links;
	int parent = open_parent(&root, path.data, &leaf);

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
