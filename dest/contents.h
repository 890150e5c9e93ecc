/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where new contents come from: files that lie here and are copied, a peer that is asked for them, or a batch. The run and the
 * code of a destination object know nothing else of that. Each call is for any thread unless it says something else. Those that
 * are marked with "remote" are never made where contents are not, and may be NULL there.
 */
#ifndef DEST_CONTENTS_H
#define DEST_CONTENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct contents;
struct entry;
struct file_job;
struct flist_receiver;
struct task;

/* What a peer says at the end (doc/protocol/01-session.md section 10.5). */
struct peer_stats {
	int64_t read, written, total_size, build_ms, transfer_ms;
};

/* What stands_still means the last time: the reading thread gives something up. Before, the run may decide what it can. */
enum { STILL_DECIDES = 2, STILL_GIVES_UP };

struct contents_calls {
	/* Remote: `receiver` has read the first list, and more will come (main thread). */
	void (*start)(struct contents *contents, struct flist_receiver *list_receiver);

	/* --- one object --- */

	/* Bring the content of a regular file, or just values of any one's attributes. Where it has to be waited for, the task
	 * stays busy until the fate of the file is known. */
	void (*request)(struct contents *contents, struct file_job *job);
	/* Remote: the same with attributes of the directory of the task. */
	void (*request_directory)(struct contents *contents, struct task *task);
	/* --checksum: is the content of the object that the job looks at the same? */
	bool (*is_same)(struct contents *contents, struct file_job *job);
	/* Remote: what is to become of this file, of the task's directory, or of all of its files, has been decided: if it was
	 * not requested by now, it will not be. */
	void (*decided)(struct contents *contents, const struct file_job *job);
	void (*decided_directory)(struct contents *contents, const struct task *task);
	void (*decided_task)(struct contents *contents, const struct task *task);
	/* A replay: an index is not wanted; wait some time for one that is awaited or the end of the batch, true: that has been
	 * read (main thread). */
	void (*unwanted)(struct contents *contents, int32_t ndx);
	bool (*await_end)(struct contents *contents, int ms);
	/* Remote: it is in place here, so the source may be removed; is_new: since now. Or a new file, by its index. */
	void (*in_place)(struct contents *contents, int32_t node, const struct entry *entry, bool is_new);
	void (*arrived)(struct contents *contents, int32_t ndx);
	/* Remote: notify the peer of what was done without a content, to an entry or, with entry NULL, to a directory. `link`:
	 * the file that it was made a link of, "" if it was one before; NULL: none. */
	void (*notify_item)(struct contents *contents, int32_t node, const struct entry *entry, uint32_t flags,
			    const char *link);

	/* --- the run (main thread, but for flush) --- */

	/* Remote. */
	void (*notify_deletion)(struct contents *contents, const char *path, bool is_dir);
	/* As flist_load_next. */
	int32_t (*next_list)(struct contents *contents);
	/* Remote: all files of a node's directory have a final outcome. */
	void (*node_done)(struct contents *contents, int32_t node);
	/* Remote: what was requested is not to lie in a buffer. */
	void (*flush)(struct contents *contents);
	/* Remote: now and then. */
	void (*tick)(struct contents *contents);
	/*
	 * A replay's main thread waits, and no worker has anything to do: how often has it looked around like this while the
	 * reading thread was waiting for a decision, and nothing has been decided? 0: that waits for nothing. `awaited`: set to
	 * the index whose content the batch has next and nothing is decided on, -1: none.
	 */
	int (*stands_still)(struct contents *contents, int32_t *awaited);
	/* Remote: everything has been requested once. */
	void (*all_requested)(struct contents *contents);
	/* Remote: all files are done. */
	void (*finish)(struct contents *contents, struct peer_stats *stats);
	void (*free)(struct contents *contents);
};

/* The beginning of each kind of them. */
struct contents {
	const struct contents_calls *calls;
	bool is_remote;       /* requests are answered later, and in their order */
	bool is_replay;       /* by a batch: what comes was requested by another run */
	uint64_t list_bytes;  /* that the lists took on the wire */
	atomic_int io_error;  /* bits of the peer's errors so far */
};

#endif
