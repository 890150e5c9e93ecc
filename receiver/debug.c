/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The lines of --debug that the main thread prints: about the file list, and about the steps of a run (genr, recv, and in a run
 * without a peer, whose sending half is here as well, send). Those of del are in receiver/delete.c, those of workers in
 * dest/events.c.
 */
#include <string.h>
#include <unistd.h>

#include "dest/contents.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "flist/paths.h"
#include "lib/log.h"
#include "receiver/debug.h"
#include "receiver/run.h"
#include "wire/request.h"

/* --- DUP: names that the list has twice, under the indexes of those that lose --- */

static void say_duplicate(struct receiver *receiver, int32_t node, const struct entry *entry, int32_t ndx)
{
	struct strbuf path = STRBUF_INIT;

	flist_entry_path(receiver->dest.list, node, entry, &path);
	log_info("removing duplicate name %s from file list (%d)", strbuf_text(&path), ndx);
	strbuf_free(&path);
}

/* A file gives way to the directory at `index`. */
static void say_file_of_directory(struct receiver *receiver, int32_t node, uint32_t index)
{
	const struct flist_dir *dir = flist_dir(receiver->dest.list, node);
	int32_t file = entries_find(dir->entries, entry_name(dir->entries, &dir->entries->items[index]), false);

	if (file >= 0)
		say_duplicate(receiver, node, &dir->entries->items[file], dir->first_ndx + file);
}

static void say_node_duplicates(struct receiver *receiver, int32_t node)
{
	const struct flist_dir *dir = flist_dir(receiver->dest.list, node);
	bool in_turn = receiver->session.inc_recurse;
	uint32_t count =
		in_turn || !dir->child_count ? dir->count : flist_dir(receiver->dest.list, dir->first_child)->parent_entry;

	/* In one list a directory's index stands beside those of its contents. */
	if (node && !in_turn)
		say_file_of_directory(receiver, dir->parent, dir->parent_entry);
	for (int32_t i = 1; node && !in_turn && i < dir->group; i++)
		say_duplicate(receiver, dir->parent,
			      &flist_dir(receiver->dest.list, dir->parent)->entries->items[dir->parent_entry],
			      dir->own_ndx + i);
	for (uint32_t i = 0; i < count; i++) {
		const struct entry *entry = &dir->entries->items[i], *before = entry - 1;

		if (i && entry->flags & ENTRY_DUPLICATE && entry_is_dir(before) == entry_is_dir(entry)
		    && before->name_length == entry->name_length
		    && !memcmp(entry_name(dir->entries, before), entry_name(dir->entries, entry), entry->name_length))
			say_duplicate(receiver, node, entry, dir->first_ndx + (int32_t)i);
		else if (entry_is_dir(entry))
			say_file_of_directory(receiver, node, i);
	}
}

void receiver_debug_list(struct receiver *receiver, int32_t node)
{
	bool wants_duplicates = receiver->dest.options->levels.debug[DEBUG_DUP], by_path = receiver->session.caps.sorts_by_path;
	struct flist_pos pos;

	if (wants_duplicates && !by_path)
		say_node_duplicates(receiver, node);
	/* Old protocols number the whole list by path. */
	for (int32_t ndx = 0; wants_duplicates && by_path && !node && flist_locate(receiver->dest.list, ndx, &pos); ndx++)
		if (pos.entry && pos.entry->flags & ENTRY_DUPLICATE)
			say_duplicate(receiver, pos.dir, pos.entry, ndx);
	flist_debug_node(receiver->dest.list, node);
}

/* --- beginning and end --- */

static int level_of(const struct receiver *receiver, enum debug_word word)
{
	return receiver->dest.options->levels.debug[word];
}

static bool sends_too(const struct receiver *receiver)
{
	return !receiver->dest.contents->is_remote && level_of(receiver, DEBUG_SEND);
}

void receiver_debug_method(const struct receiver *receiver)
{
	if (receiver->dest.options->levels.debug[DEBUG_FLIST])
		log_info(receiver->dest.contents->is_remote && receiver->dest.options->whole_file <= 0
				 ? "delta-transmission enabled"
				 : "delta-transmission disabled for local transfer or --whole-file");
}

/* The entries of the first list, or of the only one. */
static uint64_t first_entries(const struct receiver *receiver)
{
	return receiver->session.inc_recurse ? flist_dir(receiver->dest.list, 0)->count : receiver->loaded_entries;
}

/* A directory that is alone is counted with its contents. */
void receiver_debug_destination(const struct receiver *receiver, uint64_t entries, const char *destination)
{
	uint64_t first = first_entries(receiver);

	if (sends_too(receiver))
		log_info("send_files starting");
	if (!level_of(receiver, DEBUG_RECV))
		return;
	if (!receiver->dest.shows_receiver)
		log_info("server_recv(2) starting pid=%d", (int)getpid());
	log_info("get_local_name count=%llu %s", (unsigned long long)(first > 1 ? first : entries), destination);
}

void receiver_debug_start(const struct receiver *receiver)
{
	if (level_of(receiver, DEBUG_GENR))
		log_info("generator starting pid=%d", (int)getpid());
	if (level_of(receiver, DEBUG_RECV))
		log_info("recv_files(%llu) starting", (unsigned long long)first_entries(receiver));
}

/* Each half counts for itself; protocol 29 has brought one more. */
void receiver_debug_end(const struct receiver *receiver)
{
	for (int phase = 1; phase <= 2; phase++) {
		if (level_of(receiver, DEBUG_GENR))
			log_info("generate_files phase=%d", phase);
		if (sends_too(receiver))
			log_info("send_files phase=%d", phase);
		if (level_of(receiver, DEBUG_RECV) && (phase == 1 || receiver->session.caps.third_phase))
			log_info("recv_files phase=%d", phase);
	}
	if (sends_too(receiver))
		log_info("send files finished");
	if (level_of(receiver, DEBUG_RECV))
		log_info("recv_files finished");
	if (level_of(receiver, DEBUG_GENR) && receiver->session.caps.third_phase)
		log_info("generate_files phase=3");
	if (level_of(receiver, DEBUG_GENR))
		log_info("generate_files finished");
}

/* --- one item --- */

/* As the receiving half calls it. */
static void add_path(const struct receiver *receiver, int32_t node, const struct entry *entry, struct strbuf *path)
{
	if (receiver->dest.single_name && !node)
		strbuf_add_string(path, receiver->dest.single_name);
	else
		flist_entry_path(receiver->dest.list, node, entry, path);
}

void receiver_debug_item(const struct receiver *receiver, int32_t node, const struct entry *entry, const struct event *event)
{
	/* An old sender hears of nothing else. */
	bool is_asked = event->flags & ITEM_TRANSFER || receiver->session.caps.item_flags;
	bool has_own_ndx = entry_is_dir(entry) && receiver->session.inc_recurse;
	struct strbuf path = STRBUF_INIT;

	if (sends_too(receiver)) {
		flist_shown_name(receiver->dest.list, node, entry, &path);
		log_info("send_files(%d, %s)",
			 has_own_ndx ? flist_ndx_of(receiver->dest.list, (int32_t)entry->dir, NULL)
				     : flist_ndx_of(receiver->dest.list, node, entry),
			 strbuf_text(&path));
	}
	if (receiver->dest.contents->is_remote && is_asked && level_of(receiver, DEBUG_RECV)) {
		add_path(receiver, node, entry, &path);
		log_info("recv_files(%s)", strbuf_text(&path));
	}
	strbuf_free(&path);
}

void receiver_debug_item_done(const struct receiver *receiver, int32_t node, const struct entry *entry,
			      const struct event *event)
{
	bool copied = event->flags & ITEM_TRANSFER && !receiver->dest.dry_run;
	struct strbuf path = STRBUF_INIT;

	if (sends_too(receiver) && copied) {
		flist_shown_name(receiver->dest.list, node, entry, &path);
		log_info("sender finished %s", strbuf_text(&path));
	}
	strbuf_reset(&path);
	add_path(receiver, node, entry, &path);
	if (!receiver->dest.contents->is_remote && level_of(receiver, DEBUG_RECV))
		log_info("recv_files(%s)", strbuf_text(&path));
	if (event->text) {
		const char *name = strrchr(strbuf_text(&path), '/');
		int parent = name ? (int)(name + 1 - strbuf_text(&path)) : 0;

		log_info("renaming %.*s%s to %s", parent, strbuf_text(&path), event->text, strbuf_text(&path));
	}
	strbuf_free(&path);
}

void receiver_debug_link(struct receiver *receiver, const struct task *task, uint32_t index, const char *leader)
{
	const struct entry *entry = &task->entries->items[index];
	struct strbuf path = STRBUF_INIT;

	if (!level_of(receiver, DEBUG_HLINK))
		return;
	add_path(receiver, task->node, entry, &path);
	log_info("hlink for %d (%s): leader is %s", flist_ndx_of(receiver->dest.list, task->node, entry), strbuf_text(&path),
		 leader);
	strbuf_free(&path);
}

