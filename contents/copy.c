/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Contents that are copied from files of this system: nothing has to be waited for. */
#include "contents/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dest/file.h"
#include "dest/job.h"
#include "dest/task.h"
#include "dest/write.h"
#include "fs/file.h"
#include "receiver/run.h"

struct copies {
	struct contents contents;
	struct receiver *receiver;
};

static struct receiver *local_of(struct contents *contents)
{
	return ((struct copies *)contents)->receiver;
}

static void request(struct contents *contents, struct file_job *job)
{
	(void)contents;
	job_take_content(job);
}

/* --- --checksum --- */

/* --checksum between two local files: no digest says it better than the bytes. */
static bool same_bytes(int a, int b)
{
	enum { CHUNK = 128 * 1024 };
	char *buffers = malloc(2 * CHUNK);
	ssize_t a_length = -1, b_length = -1;

	if (!buffers)
		return false;
	do {
		a_length = fs_read_full(a, buffers, CHUNK);
		b_length = fs_read_full(b, buffers + CHUNK, CHUNK);
	} while (a_length > 0 && a_length == b_length && !memcmp(buffers, buffers + CHUNK, (size_t)a_length));
	free(buffers);
	return a_length == 0 && b_length == 0;
}

static bool is_same(struct contents *contents, struct file_job *job)
{
	uint64_t size;
	bool same;
	int source = job_open_source(job, &size);
	int dest = source < 0 ? -1 : fs_open_at(job->looked_at.dir_fd, job->name, O_RDONLY, 0);

	(void)contents;
	same = dest >= 0 && same_bytes(source, dest);
	if (source >= 0)
		close(source);
	if (dest >= 0)
		close(dest);
	return same;
}

static int32_t next_list(struct contents *contents)
{
	return flist_load_next(local_of(contents)->dest.list);
}

/* --- what only somebody else wants to know --- */

static void ignore_start(struct contents *contents, struct flist_receiver *list_receiver)
{
	(void)contents;
	(void)list_receiver;
}

static void ignore_task(struct contents *contents, struct task *task)
{
	(void)contents;
	(void)task;
}

static void ignore_decision(struct contents *contents, const struct file_job *job)
{
	(void)contents;
	(void)job;
}

static void ignore_directory(struct contents *contents, const struct task *task)
{
	(void)contents;
	(void)task;
}

static void ignore_success(struct contents *contents, int32_t node, const struct entry *entry, bool is_new)
{
	(void)contents;
	(void)node;
	(void)entry;
	(void)is_new;
}

static void ignore_number(struct contents *contents, int32_t number)
{
	(void)contents;
	(void)number;
}

static void ignore_item(struct contents *contents, int32_t node, const struct entry *entry, uint32_t flags, const char *link)
{
	(void)contents;
	(void)node;
	(void)entry;
	(void)flags;
	(void)link;
}

static void ignore_deletion(struct contents *contents, const char *path, bool is_dir)
{
	(void)contents;
	(void)path;
	(void)is_dir;
}

static void ignore(struct contents *contents)
{
	(void)contents;
}

static int never_still(struct contents *contents)
{
	(void)contents;
	return 0;
}

static void ignore_end(struct contents *contents, struct peer_stats *stats)
{
	(void)contents;
	(void)stats;
}

static void free_copies(struct contents *contents)
{
	free(contents);
}

struct contents *contents_of_files(struct receiver *receiver, const struct receiver_peer *peer)
{
	static const struct contents_calls calls = {
		.start = ignore_start, .request = request, .request_directory = ignore_task, .is_same = is_same,
		.decided = ignore_decision, .decided_directory = ignore_directory,
		.decided_task = ignore_directory, .stands_still = never_still, .in_place = ignore_success,
		.arrived = ignore_number, .notify_item = ignore_item, .notify_deletion = ignore_deletion,
		.next_list = next_list, .node_done = ignore_number, .flush = ignore, .tick = ignore,
		.all_requested = ignore, .finish = ignore_end, .free = free_copies,
	};
	struct copies *copies = xcalloc(1, sizeof *copies);

	(void)peer;
	copies->contents.calls = &calls;
	copies->receiver = receiver;
	return &copies->contents;
}
