/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Lists that arrive. Entries wait until their list is complete: a sub-list's lie in one directory, which each of them is held
 * against. A list without incremental recursion is one of paths in any order: its entries are gathered by directory and become
 * nodes in the order of the walk when all of them are there.
 */
#include "flist/receive.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "filter/wildmatch.h"
#include "flist/decode.h"
#include "flist/ids.h"
#include "flist/paths.h"
#include "flist/receive_attributes.h"
#include "flist/tree.h"
#include "flist/xmit.h"
#include "lib/exit.h"
#include "lib/log.h"

enum { KEPT_COUNT = 4096 }; /* entries of a sub-list whose memory is kept for the next one */

static _Noreturn void die_misplaced(const struct flist_receiver *receiver, const char *path)
{
	die(receiver->session->inc_recurse ? EXIT_UNSUPPORTED : EXIT_PROTOCOL,
	    "ABORTING due to invalid path from sender: %s", path);
}

/* Length of the directory part; *leaf is where the last component begins. A leading slash belongs to the first one. */
static size_t split_path(const char *path, size_t length, size_t *leaf)
{
	const char *slash = length > 1 ? memrchr(path + 1, '/', length - 1) : NULL;

	*leaf = slash ? (size_t)(slash - path) + 1 : 0;
	return slash ? (size_t)(slash - path) : 0;
}

static bool has_path(const struct flist_receiver *receiver, uint32_t index, const char *path, size_t length)
{
	const struct staged_dir *staged = &receiver->staged.items[index];

	return staged->length == length && !memcmp(strbuf_text(&receiver->staged_paths) + staged->path, path, length);
}

static void count_staged(struct flist_receiver *receiver, size_t bytes)
{
	receiver->staged_bytes += bytes;
	budget_take(session_budget(receiver->session), bytes, "a file list");
}

static uint32_t new_staged(struct flist_receiver *receiver, const char *path, size_t length)
{
	struct staged_dir staged = {
		.entries = xcalloc(1, sizeof *staged.entries), .path = receiver->staged_paths.length, .length = length,
	};

	entries_init(staged.entries);
	strbuf_add(&receiver->staged_paths, path, length);
	strbuf_add_char(&receiver->staged_paths, '\0');
	vec_push(&receiver->staged, staged);
	count_staged(receiver, 2 * (sizeof staged + length + sizeof(struct hashmap_slot)) + sizeof *staged.entries);
	return (uint32_t)receiver->staged.count - 1;
}

/* The directory of this path, made if there is none. */
static uint32_t find_staged(struct flist_receiver *receiver, const char *path, size_t length)
{
	uint64_t hash, attempt;
	const uint64_t *found;
	bool inserted;

	if (receiver->last_staged < receiver->staged.count && has_path(receiver, receiver->last_staged, path, length))
		return receiver->last_staged;
	hash = hashmap_hash(&receiver->staged_by_hash, path, length);
	for (attempt = 0; (found = hashmap_get(&receiver->staged_by_hash, hash, attempt)); attempt++)
		if (has_path(receiver, (uint32_t)*found, path, length))
			return (uint32_t)*found;
	uint32_t index = new_staged(receiver, path, length);

	hashmap_put(&receiver->staged_by_hash, hash, attempt, index, &inserted);
	return index;
}

static uint32_t stage(struct flist_receiver *receiver, const struct incoming *in, size_t *leaf)
{
	const char *path = strbuf_text(&in->name);

	if (in->is_child) {
		*leaf = receiver->node_path.length + 1;
		return 0;
	}
	size_t length = split_path(path, in->name.length, leaf);

	if (receiver->session->inc_recurse) {
		const struct strbuf *wanted = &receiver->node_path;

		if (length != wanted->length || memcmp(path, strbuf_text(wanted), length))
			die_misplaced(receiver, path);
		return 0;
	}
	if (S_ISDIR(in->mode) && strcmp(path + *leaf, ".") != 0) {
		uint32_t own = find_staged(receiver, path, in->name.length);

		receiver->staged.items[own].is_listed = true;
	}
	uint32_t index = find_staged(receiver, path, length);

	receiver->last_staged = index;
	receiver->staged.items[index].is_needed |= in->mode != 0;
	return index;
}

static void unstage(struct flist_receiver *receiver)
{
	budget_give_back(session_budget(receiver->session), receiver->staged_bytes);
	receiver->staged_bytes = 0;
}

static void drop_staged(struct flist_receiver *receiver)
{
	for (size_t i = 0; i < receiver->staged.count; i++) {
		if (!receiver->staged.items[i].entries)
			continue;
		entries_free(receiver->staged.items[i].entries);
		free(receiver->staged.items[i].entries);
	}
	receiver->staged.count = 0;
	strbuf_reset(&receiver->staged_paths);
	hashmap_free(&receiver->staged_by_hash);
}

static void clear_staged(struct flist_receiver *receiver)
{
	bool is_kept = receiver->session->inc_recurse && receiver->staged.count;

	if (is_kept && receiver->staged.items[0].entries->capacity > KEPT_COUNT)
		entries_free(receiver->staged.items[0].entries);
	if (!is_kept)
		drop_staged(receiver);
	unstage(receiver);
	/* The root of the transfer, or the directory of the sub-list. */
	if (!receiver->session->inc_recurse)
		receiver->last_staged = find_staged(receiver, "", 0);
	else if (!is_kept)
		receiver->last_staged = new_staged(receiver, "", 0);
	receiver->staged.items[0].is_listed = true;
}

/* --- what was asked for (doc/protocol/02-file-list.md section 11.3) --- */

struct name_set {
	VEC(char *) names, patterns; /* names: sorted */
};

/* What the source arguments allow: paths without leading slashes. */
struct asked_names {
	bool recursive, dirs;
	bool everything, top;            /* the root of the transfer, with all that is below it; with what is in it */
	struct name_set wanted, parents; /* parents: as directories only */
};

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_asked(struct asked_names *asked, const char *argument, bool relative)
{
	struct strbuf clean = STRBUF_INIT;
	const char *cut = relative ? strstr(argument, "/./") : strrchr(argument, '/');

	strbuf_add_components(&clean, cut ? cut + (relative ? 3 : 1) : argument);
	const char *path = strbuf_text(&clean);
	bool is_pattern = has_wildcards(path);

	if (!*path) {
		asked->top = true;
		asked->everything |= asked->recursive;
	} else {
		if (is_pattern)
			vec_push(&asked->wanted.patterns, xstrdup(path));
		if (!is_pattern || strchr(path, '['))
			vec_push(&asked->wanted.names, xstrdup(path));
	}
	for (const char *slash = strchr(path, '/'); relative && slash; slash = strchr(slash + 1, '/')) {
		char *parent = xstrndup(path, (size_t)(slash - path));

		if (has_wildcards(parent))
			vec_push(&asked->parents.patterns, parent);
		else
			vec_push(&asked->parents.names, parent);
	}
	strbuf_free(&clean);
}

static void name_set_sort(struct name_set *set)
{
	if (set->names.count)
		qsort(set->names.items, set->names.count, sizeof(char *), compare_texts);
}

static void name_set_free(struct name_set *set)
{
	for (size_t i = 0; i < set->names.count; i++)
		free(set->names.items[i]);
	for (size_t i = 0; i < set->patterns.count; i++)
		free(set->patterns.items[i]);
	vec_free(&set->names);
	vec_free(&set->patterns);
}

static bool name_set_has(const struct name_set *set, const char *name)
{
	if (set->names.count && bsearch(&name, set->names.items, set->names.count, sizeof(char *), compare_texts))
		return true;
	for (size_t i = 0; i < set->patterns.count; i++)
		if (wildmatch(set->patterns.items[i], name))
			return true;
	return false;
}

/* ASKED_PARENT: as a directory on the way to what was asked for. */
enum asked { ASKED_NO, ASKED_PARENT, ASKED_YES };

static enum asked asked_names_look_up(const struct asked_names *asked, const char *name, bool is_dir)
{
	char path[PATH_MAX];

	if (asked->everything)
		return ASKED_YES;
	name += *name == '/';
	if (!strcmp(name, "."))
		return asked->top ? ASKED_YES : ASKED_PARENT;
	if (name_set_has(&asked->wanted, name))
		return ASKED_YES;
	if (strlen(name) >= sizeof path)
		return ASKED_NO;
	strcpy(path, name);
	char *slash = strrchr(path, '/');

	/* What lies below something that was asked for, as deep as the options go. */
	if (!slash && asked->top && (asked->recursive || asked->dirs))
		return ASKED_YES;
	for (bool goes_on = asked->recursive || asked->dirs; slash && goes_on; slash = strrchr(path, '/')) {
		*slash = '\0';
		if (name_set_has(&asked->wanted, path))
			return ASKED_YES;
		goes_on = asked->recursive;
	}
	return is_dir && name_set_has(&asked->parents, name) ? ASKED_PARENT : ASKED_NO;
}

/* --- class of a directory: doc/protocol/02-file-list.md section 3 --- */

static uint16_t class_flags(struct flist_receiver *receiver, const struct incoming *in, bool parent_only)
{
	bool is_top = in->flags & XMIT_TOP_DIR;

	if (!parent_only && receiver->session->caps.content_flags)
		return (uint16_t)((is_top ? ENTRY_TOP_DIR : 0) | (in->flags & XMIT_NO_CONTENT_DIR ? ENTRY_NO_CONTENT : 0));
	if (!parent_only && is_top) {
		receiver->in_hierarchy = receiver->options->recursive > 0;
		strbuf_reset(&receiver->hierarchy);
		strbuf_add(&receiver->hierarchy, strbuf_text(&in->name), in->name.length);
		return ENTRY_TOP_DIR;
	}
	const struct strbuf *top = &receiver->hierarchy, *name = &in->name;

	if (receiver->options->relative && strcmp(strbuf_text(top), ".") != 0)
		receiver->in_hierarchy = receiver->in_hierarchy && name->length > top->length
					 && !memcmp(name->data, top->data, top->length) && name->data[top->length] == '/';
	/* Whatever the sender says: what was not asked for is not swept by --delete (doc/protocol/08-security.md
	 * section 4.5). */
	return parent_only ? ENTRY_TOP_DIR | ENTRY_NO_CONTENT : receiver->in_hierarchy ? 0 : ENTRY_NO_CONTENT;
}

/* --- from fields to an entry --- */

static void mark_linked(struct flist_receiver *receiver, uint32_t directory, uint32_t index, uint64_t group)
{
	struct entries *entries = receiver->staged.items[directory].entries;
	struct entry *entry = &entries->items[index];
	struct entry_side *side = entries_side(entries, entry);

	entry->flags |= ENTRY_HARD_LINKED;
	side->dev = 0;
	side->ino = group;
}

/* At protocol 27 every file has a key: only those that meet another are linked. */
static void link_members(struct flist_receiver *receiver, uint32_t directory, uint32_t index, uint64_t group)
{
	struct received_link *link = &receiver->links.items[group - 1];
	bool is_first = link->directory == UINT32_MAX;

	if (is_first) {
		link->directory = directory;
		link->index = index;
		if (!receiver->session->caps.marks_links)
			return;
	}
	if (!is_first && !link->is_marked)
		mark_linked(receiver, link->directory, link->index, group);
	link->is_marked = true;
	mark_linked(receiver, directory, index, group);
}

static void add_entry(struct flist_receiver *receiver, struct incoming *in, bool parent_only)
{
	size_t leaf = 0;
	uint32_t directory = in->unconvertible ? 0 : stage(receiver, in, &leaf);
	struct entries *entries = receiver->staged.items[directory].entries;
	const char *name = strbuf_text(&in->name) + leaf;
	size_t before = entries_memory(entries);
	struct entry *entry = entries_add(entries, name, in->name.length - leaf);

	if (receiver->options->checksum && S_ISREG(in->mode))
		entries_add_bytes(entries, in->digest, (size_t)digest_length(receiver->session->file_sum));
	entry->size = incoming_is_device(in) || S_ISFIFO(in->mode) || S_ISSOCK(in->mode) ? 0 : in->size;
	entry->mtime = in->mtime;
	entry->mtime_nsec = in->nsec;
	entry->mode = (uint16_t)in->mode;
	entry->uid = in->uid;
	entry->gid = in->gid;
	entry->dir = (uint32_t)receiver->arrived;
	if (S_ISDIR(in->mode))
		entry->flags = class_flags(receiver, in, parent_only);
	else if (in->unconvertible)
		entry->flags = ENTRY_DUPLICATE;
	if (receiver->options->atimes && !S_ISDIR(in->mode))
		entries_side(entries, entry)->atime = in->atime;
	if (receiver->options->only_send_attrs && S_ISREG(in->mode)) {
		entries_side(entries, entry)->real_size = in->size;
		entry->size = ATTR_FILE_SIZE;
	}
	if (incoming_is_device(in)) {
		struct entry_side *side = entries_side(entries, entry);

		side->rdev_major = in->rdev_major;
		side->rdev_minor = in->rdev_minor;
	}
	if (in->acls || in->xattrs) {
		struct entry_side *side = entries_side(entries, entry);

		side->acls = in->acls;
		side->xattrs = in->xattrs;
	}
	if (in->has_target)
		entries_set_target(entries, entry, strbuf_text(&in->target), in->target.length);
	if (in->group)
		link_members(receiver, directory, entries->count - 1, in->group);
	count_staged(receiver, entries_memory(entries) - before);
}

static void take_entry(struct flist_receiver *receiver, struct incoming *in)
{
	const char *name = strbuf_text(&in->name);
	bool is_dir = S_ISDIR(in->mode), is_dot = !strcmp(name, ".");
	enum asked asked = ASKED_YES;

	if ((int64_t)receiver->list_first + receiver->arrived >= INT32_MAX - 2)
		die(EXIT_MALLOC, "rsync: the file list has too many entries");
	if (is_dir && receiver->session->inc_recurse && receiver->options->iconv)
		vec_push(&receiver->list->received->arrived_dirs, (uint32_t)receiver->arrived);
	if (in->unconvertible) {
		/* What cannot be named here keeps its index, as a file with no name that has lost against another one. */
		log_msg(L_ERROR_XFER, "[%s] cannot convert filename: %s (%s)", log_role(), strbuf_text(&receiver->state.name),
			strerror(EILSEQ));
		receiver->io_error |= IOERR_GENERAL;
		strbuf_reset(&in->name);
		if (is_dir)
			in->mode = S_IFREG;
	} else {
		if (is_dot && !is_dir)
			die(EXIT_PROTOCOL, "ERROR: rejecting non-directory transfer-root entry: %s", name);
		if (receiver->asked)
			asked = asked_names_look_up(receiver->asked, name, is_dir);
		if (asked == ASKED_NO)
			die(EXIT_UNSUPPORTED, "ERROR: rejecting unrequested file-list name: %s", name);
		/* What --relative implies, and ".", is not subject to rules (doc/protocol/02-file-list.md section 7.7). */
		if (receiver->rules && asked == ASKED_YES && !is_dot && filter_excludes(receiver->rules, name, is_dir))
			die(EXIT_UNSUPPORTED, "ERROR: rejecting excluded file-list name: %s", name);
	}
	add_entry(receiver, in, asked == ASKED_PARENT);
	receiver->arrived++;
}

/* --- a directory is complete --- */

static void publish(struct flist_receiver *receiver, int32_t node, struct entries *entries)
{
	uint32_t repeated = 0;

	for (uint32_t i = 0; i < entries->count; i++) {
		if (receiver->users.heard)
			entries->items[i].uid = id_map_local(&receiver->users, entries->items[i].uid);
		if (receiver->groups.heard)
			entries->items[i].gid = id_map_local(&receiver->groups, entries->items[i].gid);
	}
	entries_mark_duplicates(entries);
	/* Equal directories share the numbers of one node. */
	for (uint32_t i = 0; i < entries->count; i++) {
		repeated = entries->items[i].flags & ENTRY_DUPLICATE && entry_is_dir(&entries->items[i]) ? repeated + 1 : 0;
		if (repeated >= UINT16_MAX)
			die(EXIT_MALLOC, "rsync: a directory is in the file list too often");
	}
	flist_received_publish(receiver->list, node, entries, receiver->list_first, receiver->io_error);
}

/* --- from paths to nodes --- */

/* Only --relative has files that come behind directories: "/x" behind "!". The walk numbers files first. */
static bool is_mixed(const struct flist_receiver *receiver)
{
	const struct entries *first = receiver->staged.items[0].entries;
	bool has_late_file = false, has_early_dir = false;

	for (uint32_t i = 0; i < first->count; i++) {
		const char *name = entry_name(first, &first->items[i]);

		has_late_file |= *name == '/' && !entry_is_dir(&first->items[i]);
		has_early_dir |= (unsigned char)*name < '/' && entry_is_dir(&first->items[i]);
	}
	return has_late_file && has_early_dir;
}

static void split(struct flist_receiver *receiver)
{
	struct flist *list = receiver->list;
	bool may_lack = receiver->options->relative && receiver->session->caps.omits_parents;
	struct strbuf path = STRBUF_INIT;

	/* Directories that only their contents speak of. More may be found on the way. */
	for (size_t i = 0; i < receiver->staged.count; i++) {
		struct staged_dir staged = receiver->staged.items[i];
		size_t leaf;

		if (staged.is_listed)
			continue;
		strbuf_reset(&path);
		strbuf_add(&path, receiver->staged_paths.data + staged.path, staged.length);
		/* What is only to be deleted may lie where the sender has nothing (doc/protocol/02-file-list.md
		 * section 7.6). */
		if (staged.is_needed && !may_lack)
			die_misplaced(receiver, strbuf_text(&path));
		size_t length = split_path(path.data, path.length, &leaf);
		uint32_t parent = find_staged(receiver, path.data, length);
		struct entry *entry = entries_add(receiver->staged.items[parent].entries, path.data + leaf, path.length - leaf);

		entry->mode = S_IFDIR | 0755;
		entry->flags = ENTRY_HIDDEN | ENTRY_NO_CONTENT;
		receiver->staged.items[i].is_listed = true;
	}
	unstage(receiver);
	if (!list->received->is_permuted && is_mixed(receiver))
		flist_received_permute(list->received);
	for (int32_t node = 0; node >= 0; node = flist_next_node(list)) {
		flist_dir_path(list, node, &path);
		uint32_t index = find_staged(receiver, strbuf_text(&path), path.length);
		struct entries *entries = receiver->staged.items[index].entries;

		receiver->staged.items[index].entries = NULL;
		list->walk = node;
		/* "a/." of old releases speaks of "a": a hole, whose class counts for the directory itself. */
		for (uint32_t i = 0; node && i < entries->count; i++) {
			struct entry *entry = &entries->items[i];
			struct flist_dir *dir = &list->dirs.items[node];

			if (!entry_is_dir(entry) || !entry_is_dot(entries, entry))
				continue;
			if (!(entry->flags & ENTRY_NO_CONTENT)) {
				struct entry *own = &list->dirs.items[dir->parent].entries->items[dir->parent_entry];

				own->flags = (uint16_t)(own->flags & ~ENTRY_NO_CONTENT);
				dir->flags = (uint16_t)(dir->flags & ~ENTRY_NO_CONTENT);
			}
			entry->flags |= ENTRY_DUPLICATE;
		}
		entries_sort(entries);
		publish(receiver, node, entries);
	}
	strbuf_free(&path);
}

/* --- lists --- */

/* The I/O errors of the list's sender, or of its names here, travel with it to the working thread. */
static void receive_list(struct flist_receiver *receiver)
{
	int mask;

	clear_staged(receiver);
	receiver->io_error = 0;
	receiver->arrived = 0;
	while (flist_decode_entry(receiver, &mask))
		take_entry(receiver, &receiver->incoming);
	receiver->io_error |= receiver->options->ignore_errors ? 0 : mask;
}

static void receive_node(struct flist_receiver *receiver, int32_t node)
{
	flist_dir_path(receiver->list, node, &receiver->node_path);
	receiver->list_first = receiver->list->next_ndx + 1;
	receive_list(receiver);
	if (receiver->options->acls)
		received_acls_localize(receiver);
	struct entries *entries = xcalloc(1, sizeof *entries);

	entries_sort_into(receiver->staged.items[0].entries, entries);
	unstage(receiver);
	publish(receiver, node, entries);
	receiver->last_node = node;
}

void flist_receive_first(struct flist_receiver *receiver)
{
	struct flist *list = receiver->list;
	const struct options *options = receiver->options;
	struct session *session = receiver->session;

	id_maps_init(&receiver->users, &receiver->groups, options, session, receiver->setup.ids);
	wire_settings(session->wire)->only_listens = true;
	if (session->inc_recurse) {
		receive_node(receiver, 0);
	} else {
		receive_list(receiver);
		if (!options->numeric_ids && (options->owner || options->acls))
			id_map_read_list(&receiver->users, session);
		if (!options->numeric_ids && (options->group || options->acls))
			id_map_read_list(&receiver->groups, session);
		if (!session->caps.io_error_message) {
			int32_t mask = wire_read_int(session->wire) & (IOERR_GENERAL | IOERR_VANISHED | IOERR_DEL_LIMIT);

			receiver->io_error |= options->ignore_errors ? 0 : mask;
		}
		if (options->acls)
			received_acls_localize(receiver);
		split(receiver);
		if (list->received->is_permuted)
			flist_number(list);
		clear_staged(receiver);
		flist_received_end(list);
	}
	wire_settings(session->wire)->only_listens = false;
	session->io_error |= list->received->io_error;
	list->received->shown = list->totals;
}

void flist_receive_next(struct flist_receiver *receiver, int32_t ndx)
{
	int64_t number = (int64_t)NDX_FLIST_OFFSET - ndx, count = (int64_t)receiver->list->received->node_by_number.count;
	const struct flist_dir *dirs = receiver->list->dirs.items;
	int32_t above = receiver->last_node;

	if (!receiver->session->inc_recurse || receiver->is_over || (ndx != NDX_FLIST_EOF && number < 0))
		die(EXIT_PROTOCOL, "Invalid file index: %d (%d - %d)", ndx, NDX_DONE, receiver->list->next_ndx - 1);
	if (ndx == NDX_FLIST_EOF) {
		receiver->is_over = true;
		flist_received_end(receiver->list);
		return;
	}
	if (number >= count)
		die(EXIT_PROTOCOL, "Invalid directory index: %lld (0 - %lld)", (long long)number, (long long)count - 1);
	int32_t node = receiver->list->received->node_by_number.items[number];

	if (node < 0)
		die(EXIT_PROTOCOL, "rsync: refusing the list of cleared directory index %lld", (long long)number);
	if (dirs[node].loaded)
		die(EXIT_PROTOCOL, "rsync: refusing a second list of directory index %lld", (long long)number);
	/* The walk goes depth first: a directory is announced while its parent is the last one or above that. */
	while (above >= 0 && above != dirs[node].parent)
		above = dirs[above].parent;
	if (above < 0)
		die(EXIT_PROTOCOL, "rsync: the list of directory %d comes out of order", dirs[node].number);
	receive_node(receiver, node);
}

/* --- a receiver --- */

struct flist_receiver *flist_receiver_new(struct flist *list, struct session *session, const struct options *options,
					  const struct flist_receive_setup *setup)
{
	struct flist_receiver *receiver = xcalloc(1, sizeof *receiver);
	bool doubtful = !setup->trust_sender && !session->is_server;

	if (options->atimes && !session->caps.extended_flags)
		die(EXIT_PROTOCOL, "--atimes requires protocol 28 or higher (negotiated %d).", session->protocol);
	receiver->list = list;
	receiver->session = session;
	receiver->options = options;
	receiver->setup = *setup;
	receiver->xattr_policy = setup->xattr_policy ? *setup->xattr_policy : (struct xattr_policy){
		.level = options_super_level(options), .verbatim = options->xattrs > 1,
	};
	if (doubtful && setup->asked && !options->old_args && !options->files_from_remote) {
		receiver->asked = xcalloc(1, sizeof *receiver->asked);
		receiver->asked->recursive = options->recursive > 0;
		receiver->asked->dirs = options->dirs;
		for (size_t i = 0; i < setup->asked->count; i++)
			add_asked(receiver->asked, setup->asked->items[i], options->relative);
		name_set_sort(&receiver->asked->wanted);
		name_set_sort(&receiver->asked->parents);
	}
	if (doubtful && setup->rules && !filter_is_empty(setup->rules) && !filter_has_merges(setup->rules))
		receiver->rules = setup->rules;
	return receiver;
}

void flist_receiver_free(struct flist_receiver *receiver)
{
	if (!receiver)
		return;
	drop_staged(receiver);
	vec_free(&receiver->staged);
	strbuf_free(&receiver->staged_paths);
	if (receiver->asked) {
		name_set_free(&receiver->asked->wanted);
		name_set_free(&receiver->asked->parents);
		free(receiver->asked);
	}
	id_map_free(&receiver->users);
	id_map_free(&receiver->groups);
	strbuf_free(&receiver->state.name);
	strbuf_free(&receiver->incoming.name);
	strbuf_free(&receiver->incoming.target);
	strbuf_free(&receiver->wire_target);
	strbuf_free(&receiver->node_path);
	strbuf_free(&receiver->hierarchy);
	hashmap_free(&receiver->link_keys);
	vec_free(&receiver->links);
	free(receiver);
}
