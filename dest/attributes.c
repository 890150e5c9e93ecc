/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ACLs and extended attributes of destination objects (doc/protocol/05-xattrs-acls.md): what they are to be, by the list of a
 * peer or by the local source; whether they are that; and setting them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dest/alternate.h"
#include "dest/attributes.h"
#include "dest/contents.h"
#include "dest/dest.h"
#include "dest/events.h"
#include "dest/job.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "flist/paths.h"
#include "flist/receive_attributes.h"
#include "fs/fake.h"
#include "wire/request.h"

/* What was read from a local source. */
struct source_attributes {
	struct fs_acl access, defaults;
	struct xattr_list xattrs;
};

/* --- what is wanted --- */

/* An ACL of the destination, or of a source that --fake-super has written; an access ACL as a whole. */
static int held_acl(bool is_fake, const struct fs_held *held, bool is_default, mode_t mode, struct fs_acl *acl)
{
	if (!is_fake)
		return fs_held_acl(held, is_default, acl);
	if (fs_fake_acl(held, is_default, acl) < 0)
		return -1;
	if (!is_default)
		*acl = acl_of_file(acl, mode);
	return 0;
}

/* What can have no attributes has none. False with errno. */
static bool read_source(const struct dest *dest, const struct fs_root *root, const char *path, const struct entry *entry,
			struct wanted *wanted)
{
	bool is_fake = dest->sends_xattrs.level == LEVEL_FAKE;
	struct source_attributes *own = xcalloc(1, sizeof *own);
	struct fs_xattr_list have;
	struct fs_held held;
	bool good = true;

	wanted_free(wanted);
	own->access = own->defaults = (struct fs_acl)FS_ACL_NOTHING;
	wanted->own = own;
	if (dest->options->acls && !entry_is_symlink(entry)) {
		if (fs_hold(&held, root, path, flist_acl_follows(dest->list, entry)) < 0)
			good = errno == ENOTSUP;
		else
			good = held_acl(is_fake, &held, false, entry->mode, &own->access) == 0
			       && (!entry_is_dir(entry) || held_acl(is_fake, &held, true, 0, &own->defaults) == 0);
		if (good && held.fd >= 0) {
			acl_reduce(&own->access, entry->mode);
			acl_complete(&own->access, false, entry->mode);
		}
		fs_release(&held);
		wanted->access = good ? &own->access : NULL;
		wanted->defaults = good ? &own->defaults : NULL;
	}
	/* The extended attributes are always the link's own. */
	if (good && dest->options->xattrs) {
		if (fs_hold(&held, root, path, false) < 0)
			good = errno == ENOTSUP;
		else if (fs_held_xattrs(&held, &have) < 0)
			good = false;
		else
			xattr_list_from_source(&own->xattrs, &have, &dest->sends_xattrs, &dest->keeps_xattrs);
		fs_release(&held);
		wanted->xattrs = good ? &own->xattrs : NULL;
	}
	return good;
}

static void take_from_list(const struct dest *dest, int32_t node, const struct entry *entry, struct wanted *wanted)
{
	if (dest->options->acls && !entry_is_symlink(entry))
		flist_received_acls(dest->list, node, entry, &wanted->access, &wanted->defaults);
	if (dest->options->xattrs)
		wanted->xattrs = flist_received_xattrs(dest->list, node, entry);
}

bool job_want_attributes(struct file_job *job)
{
	const struct task *task = job->task;
	const char *name = entry_name(task->entries, job->entry);

	if ((!job->dest->options->acls && !job->dest->options->xattrs) || job->wanted.is_known)
		return true;
	if (job->dest->contents->is_remote) {
		take_from_list(job->dest, task->node, job->entry, &job->wanted);
		return job->wanted.is_known = true;
	}
	errno = ENOENT;
	for (size_t i = 0; i < task->sources.count; i++) {
		const struct task_source *source = &task->sources.items[i];

		if (source->base == job->entry->root && source->root.fd < 0)
			errno = source->error;
		else if (source->base == job->entry->root)
			job->wanted.is_known =
				read_source(job->dest, &source->root, name + strspn(name, "/"), job->entry, &job->wanted);
	}
	return job->wanted.is_known;
}

void dest_want_attributes(struct dest *dest, int32_t node, const struct entry *entry, struct wanted *wanted)
{
	struct strbuf path = STRBUF_INIT;

	*wanted = (struct wanted){ .own = NULL };
	if (!dest->options->acls && !dest->options->xattrs)
		return;
	if (dest->contents->is_remote) {
		take_from_list(dest, node, entry, wanted);
		return;
	}
	struct attr_source *source = flist_entry_source(dest->list, node, entry, &path);

	if (!read_source(dest, attr_source_real_root(source), strbuf_text(&path), entry, wanted)) {
		int error = errno;

		flist_quote(dest->list, node, entry, &path);
		log_errno(L_ERROR_XFER, error, "failed to read attributes of %s", strbuf_text(&path));
	}
	strbuf_free(&path);
}

void wanted_free(struct wanted *wanted)
{
	struct source_attributes *own = wanted->own;

	if (own) {
		fs_acl_free(&own->access);
		fs_acl_free(&own->defaults);
		xattr_list_free(&own->xattrs);
		free(own);
	}
	*wanted = (struct wanted){ .own = NULL };
}

/* --- is it so? --- */

/* What cannot be read counts as nothing: where there are no ACLs, a mode is all there is. */
static bool same_acls(const struct dest *dest, const struct fs_held *held, const struct wanted *wanted, mode_t mode)
{
	struct fs_acl have;
	bool same = held_acl(dest->is_fake, held, false, mode, &have) < 0 ? !acl_is_extended(wanted->access)
									  : acl_same_access(wanted->access, mode, &have);

	fs_acl_free(&have);
	if (!same || !S_ISDIR(held->st.mode))
		return same;
	same = held_acl(dest->is_fake, held, true, mode, &have) < 0 ? fs_acl_is_empty(wanted->defaults)
								    : acl_same_default(wanted->defaults, &have);
	fs_acl_free(&have);
	return same;
}

/* A value that has not come, and that the object does not have either. */
static bool lacks_value(const struct xattr_item *item, const struct fs_xattr_list *have)
{
	const struct fs_xattr *there = xattr_find(have, item->name);

	return !atomic_load(&item->value) && !(there && xattr_item_matches(item, there->value, there->length));
}

uint32_t wanted_compare(const struct dest *dest, struct wanted *wanted, mode_t mode, int dir_fd, const char *name)
{
	struct fs_xattr_list have = { NULL, 0 };
	struct fs_held held = { .fd = -1 };
	uint32_t flags = 0;

	if (!wanted->access && !wanted->xattrs)
		return 0;
	if (name && fs_hold_at(&held, dir_fd, name) < 0)
		name = NULL;
	if (wanted->access && name && !S_ISLNK(held.st.mode) && !same_acls(dest, &held, wanted, mode))
		flags |= ITEM_REPORT_ACL;
	if (wanted->xattrs) {
		if (name)
			fs_held_xattrs(&held, &have); /* none, if they cannot be read */
		if (!xattr_list_same(wanted->xattrs, &have, &dest->keeps_xattrs)) {
			flags |= ITEM_REPORT_XATTR;
			wanted->lacks_values = false;
			for (size_t i = 0; !wanted->lacks_values && i < wanted->xattrs->count; i++)
				wanted->lacks_values = lacks_value(&wanted->xattrs->items[i], &have);
		}
		fs_xattr_list_free(&have);
	}
	fs_release(&held);
	return flags;
}

void wanted_find_lacking(const struct wanted *wanted, int dir_fd, const char *name, struct lacking *lacking)
{
	struct fs_xattr_list have = { NULL, 0 };
	struct fs_held held;

	if (!wanted->lacks_values)
		return;
	if (name && fs_hold_at(&held, dir_fd, name) == 0) {
		fs_held_xattrs(&held, &have);
		fs_release(&held);
	}
	for (size_t i = 0; i < wanted->xattrs->count; i++)
		if (lacks_value(&wanted->xattrs->items[i], &have))
			vec_push(&lacking->items, &wanted->xattrs->items[i]);
	fs_xattr_list_free(&have);
}

/* --- making it so --- */

/* Messages name directories as such, everything else by the name that it has at the moment. */
static char *shown_path(const struct attr_subject *subject, bool absolute)
{
	const struct dest *dest = subject->task->dest;
	const char *name = strcmp(subject->name, ".") ? subject->name : "";
	struct strbuf path = STRBUF_INIT, below = dest_path_of(subject->task->dir->path, name);

	if (absolute)
		strbuf_addf(&path, "%s%s/", dest->module ? "/" : "", dest->top_path);
	strbuf_add_string(&path, below.length ? strbuf_text(&below) : ".");
	strbuf_free(&below);
	return strbuf_detach(&path);
}

static void say_xattr(void *subject_void, int error, const char *call, const char *name)
{
	const struct attr_subject *subject = subject_void;
	const struct dest_module *module = subject->task->dest->module;
	char *path = shown_path(subject, *call), *text;

	if (!*call)
		text = xasprintf("Missing abbreviated xattr value, %s, for %s", name, path);
	else
		text = xasprintf("%s: %s%s(\"%s\"%s%s%s%s%s%s) failed", name ? "rsync_xal_set" : "rsync_xal_get",
				 subject->is_link ? "l" : "f", call, path, module ? " (in " : "", module ? module->name : "",
				 module ? ")" : "", name ? ",\"" : "", name ? name : "", name ? "\"" : "");
	task_error(subject->task, error ? "receiver" : NULL, error, text);
	free(path);
}

static void say_acl(const struct attr_subject *subject, bool is_default)
{
	int error = errno;
	char *path = shown_path(subject, false);

	task_error(subject->task, subject->role, error,
		   xasprintf("set_acl: xacl_set(%s, ACL_TYPE_%s)", path, is_default ? "DEFAULT" : "ACCESS"));
	free(path);
}

static bool hold_failed(const struct attr_subject *subject, int error)
{
	/* Without /proc a symlink or a device has none, and an object that has gone away needs none. */
	if (error == ENOTSUP || error == ENOENT)
		return false;
	char *path = shown_path(subject, true);

	task_error(subject->task, "receiver", error,
		   xasprintf("failed to open \"%s\" for its ACLs and extended attributes", path));
	free(path);
	return false;
}

bool subject_hold(const struct attr_subject *subject, int dir_fd, const char *name, struct fs_held *held)
{
	return fs_hold_at(held, dir_fd, name) == 0 || hold_failed(subject, errno);
}

bool subject_hold_open(const struct attr_subject *subject, int fd, struct fs_held *held)
{
	if (fs_hold_open(held, fd) == 0)
		return true;
	held->fd = -1;
	return hold_failed(subject, errno);
}

/* What the object that is replaced has, if something of it is needed. */
static void read_predecessor(const struct attr_subject *subject, const struct xattr_list *list, struct fs_xattr_list *old)
{
	const struct task *task = subject->task;
	struct fs_held held;
	bool needed = false, is_held;

	*old = (struct fs_xattr_list){ NULL, 0 };
	for (size_t i = 0; !needed && i < list->count; i++)
		needed = !atomic_load(&list->items[i].value);
	if (!needed || !subject->old_name)
		return;
	if (subject->alternate) {
		const struct fs_root *root = &task->dest->alternates->roots[subject->alternate - 1];
		struct strbuf path = dest_path_of(task->dir->path, subject->old_name);

		is_held = fs_hold(&held, root, strbuf_text(&path), false) == 0;
		strbuf_free(&path);
	} else {
		is_held = fs_hold_at(&held, task->dir->fd, subject->old_name) == 0;
	}
	if (!is_held)
		return;
	fs_held_xattrs(&held, old);
	fs_release(&held);
}

bool apply_xattrs(const struct attr_subject *subject, const struct wanted *wanted, const struct fs_held *held)
{
	const struct dest *dest = subject->task->dest;
	const struct xattr_complaint complaint = { say_xattr, (void *)subject };
	struct fs_xattr_list old;

	if (!wanted->xattrs)
		return false;
	/* Attributes of users are content: a read-only object of our own is made writable for that moment. */
	bool opens = !dest->rules.am_root && !subject->is_link && !(held->st.mode & S_IWUSR)
		     && fs_held_chmod(held, (held->st.mode & PERMISSION_BITS) | S_IWUSR) == 0;

	read_predecessor(subject, wanted->xattrs, &old);
	bool changed = xattr_list_apply(wanted->xattrs, held, &old, &dest->keeps_xattrs, &complaint);

	fs_xattr_list_free(&old);
	if (opens)
		fs_held_chmod(held, held->st.mode & PERMISSION_BITS);
	return changed;
}

bool apply_acls(const struct attr_subject *subject, const struct wanted *wanted, const struct fs_held *held, mode_t listed,
		mode_t *mode)
{
	const mode_t old = held->st.mode & PERMISSION_BITS;
	struct fs_acl have, whole;
	bool changed = false, failed = false;

	if (!wanted->access || S_ISLNK(held->st.mode))
		return false;
	if (subject->task->dest->is_fake) {
		/* They are kept as they came, and change no mode. */
		if (fs_fake_set_acl(held, false, wanted->access) < 0)
			say_acl(subject, false);
		if (S_ISDIR(held->st.mode) && fs_fake_set_acl(held, true, wanted->defaults) < 0)
			say_acl(subject, true);
		return false;
	}
	if (fs_held_acl(held, false, &have) < 0 || !acl_same_access(wanted->access, listed, &have)) {
		/* Bits that would not go with the other ACL are taken off first (5.6.7). */
		if ((old ^ *mode) & 07000)
			fs_held_chmod(held, (*mode & S_ISVTX) | (old & *mode & (SETID_BITS | 0777)));
		whole = acl_of_file(wanted->access, listed);
		changed = fs_held_set_acl(held, false, &whole) == 0;
		failed = !changed;
		if (failed)
			say_acl(subject, false);
		else
			*mode = (*mode & ~(mode_t)0777) | (listed & 0777);
	}
	fs_acl_free(&have);
	if (failed || !S_ISDIR(held->st.mode))
		return changed;
	if (fs_held_acl(held, true, &have) < 0 || !acl_same_default(wanted->defaults, &have)) {
		whole = acl_of_directory(wanted->defaults);
		if (fs_held_set_acl(held, true, &whole) < 0)
			say_acl(subject, true);
	}
	fs_acl_free(&have);
	return changed;
}

/* --- copies --- */

void dest_copy_attributes(const struct dest *dest, const struct fs_root *root, const char *from_path, int to_fd,
			  const char *to_name)
{
	/* What --fake-super keeps goes along with the object. */
	static const char *const records[] = { "user.rsync.%stat", "user.rsync.%aacl", "user.rsync.%dacl" };
	bool keeps_acls = dest->options->acls && !dest->is_fake;
	struct fs_held from, to = { .fd = -1 };
	struct fs_xattr_list list;
	struct fs_acl acl;
	size_t length;
	void *value;

	if ((!dest->options->acls && !dest->options->xattrs && !dest->is_fake) || fs_hold(&from, root, from_path, false) < 0)
		return;
	bool is_held = fs_hold_at(&to, to_fd, to_name) == 0;

	if (is_held && dest->options->xattrs && fs_held_xattrs(&from, &list) == 0) {
		for (size_t i = 0; i < list.count; i++)
			if (xattr_name_counts(&dest->keeps_xattrs, list.items[i].name))
				fs_held_set(&to, list.items[i].name, list.items[i].value, list.items[i].length);
		fs_xattr_list_free(&list);
	}
	for (size_t i = 0; is_held && dest->is_fake && i < sizeof records / sizeof *records; i++) {
		if (fs_held_get(&from, records[i], &value, &length) < 0)
			continue;
		fs_held_set(&to, records[i], value, length);
		free(value);
	}
	keeps_acls = keeps_acls && is_held && !S_ISLNK(from.st.mode);
	for (int is_default = 0; keeps_acls && is_default <= S_ISDIR(from.st.mode); is_default++) {
		if (fs_held_acl(&from, is_default, &acl) < 0)
			continue;
		fs_held_set_acl(&to, is_default, &acl);
		fs_acl_free(&acl);
	}
	fs_release(&from);
	fs_release(&to);
}
