/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An attr snapshot: opening the file, and what its readers ask for. Nothing here checks what snapshot_check.c has checked. */
#include "attrs/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attrs/entry.h"
#include "attrs/snapshot_check.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/alloc.h"

/* --- opening --- */

static void fill_identity(struct snapshot_identity *identity, const struct stat *st)
{
	*identity = (struct snapshot_identity){
		.dev = st->st_dev, .ino = st->st_ino, .size = (uint64_t)st->st_size,
		.mtime = st->st_mtim.tv_sec, .mtime_nsec = (uint32_t)st->st_mtim.tv_nsec,
		.ctime = st->st_ctim.tv_sec, .ctime_nsec = (uint32_t)st->st_ctim.tv_nsec,
	};
}

int snapshot_identity_read(const char *path, struct snapshot_identity *identity)
{
	int fd = fs_operator_open(path, O_PATH, 0);
	struct stat st;

	if (fd < 0)
		return -1;
	int result = fstat(fd, &st);

	fs_close(fd);
	if (!result)
		fill_identity(identity, &st);
	return result;
}

bool snapshot_identity_equal(const struct snapshot_identity *a, const struct snapshot_identity *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->mtime == b->mtime && a->ctime == b->ctime &&
	       a->mtime_nsec == b->mtime_nsec && a->ctime_nsec == b->ctime_nsec;
}

/* NULL, with errno and the reason. */
static void *refuse(struct strbuf *why, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void *refuse(struct strbuf *why, int error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	strbuf_vaddf(why, fmt, args);
	va_end(args);
	errno = error;
	return NULL;
}

static struct attr_snapshot *open_descriptor(int fd, struct strbuf *why)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return refuse(why, errno, "its attributes cannot be read: %s", strerror(errno));
	/* May what is in this file be believed as if the operator had written it? */
	if (!S_ISREG(st.st_mode))
		return refuse(why, EINVAL, "it is not a regular file");
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return refuse(why, EPERM, "it belongs to uid %u, neither to root nor to uid %u", st.st_uid, geteuid());
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return refuse(why, EPERM, "its mode %03o lets others than its owner write it", st.st_mode & 0777);
	if (st.st_size < (off_t)sizeof(struct snapshot_header))
		return refuse(why, EINVAL, "header: the file is too short to have one");
	if ((uint64_t)st.st_size > PTRDIFF_MAX)
		return refuse(why, EFBIG, "it is too large for the address space of this machine");
	size_t length = (size_t)st.st_size;
	void *bytes = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0);

	if (bytes == MAP_FAILED)
		return refuse(why, errno, "it cannot be mapped: %s", strerror(errno));
	/* The check reads all pages soon, once, front to back. */
	madvise(bytes, length, MADV_WILLNEED);
	madvise(bytes, length, MADV_DONTDUMP);
	struct attr_snapshot *snapshot = xcalloc(1, sizeof *snapshot);

	snapshot->bytes = bytes;
	snapshot->length = length;
	snapshot->is_mapped = true;
	fill_identity(&snapshot->facts.identity, &st);
	if (attr_snapshot_check(snapshot, why))
		return snapshot;
	attr_snapshot_close(snapshot);
	errno = EINVAL;
	return NULL;
}

struct attr_snapshot *attr_snapshot_open(const char *path, struct strbuf *why)
{
	int fd = fs_operator_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0)
		return refuse(why, errno, "it cannot be opened: %s", strerror(errno));
	struct attr_snapshot *snapshot = open_descriptor(fd, why);

	fs_close(fd);
	return snapshot;
}

void attr_snapshot_close(struct attr_snapshot *snapshot)
{
	if (!snapshot)
		return;
	if (snapshot->is_mapped) {
		/* Of a mapping that is not said to be read in sequence the kernel notes for every page that it was used. */
		madvise((void *)snapshot->bytes, snapshot->length, MADV_SEQUENTIAL);
		munmap((void *)snapshot->bytes, snapshot->length);
	}
	hashmap_free(&snapshot->owners);
	free(snapshot);
}

/* --- reading --- */

const struct attr_snapshot_facts *attr_snapshot_facts(const struct attr_snapshot *snapshot)
{
	return &snapshot->facts;
}

/* The mapping is not to be written: attrs/entry.h says so to callers of views. */
static struct entries make_view(const struct attr_snapshot *snapshot, uint64_t first, uint32_t count, uint64_t names,
				uint64_t end)
{
	return (struct entries){
		.items = (struct entry *)(snapshot->entries + first), .count = count, .capacity = count,
		.pool = (char *)(snapshot->names + names), .pool_used = (uint32_t)(end - names),
		.pool_capacity = (uint32_t)(end - names), .snapshot = snapshot,
	};
}

struct entries attr_snapshot_view(const struct attr_snapshot *snapshot, uint32_t dir)
{
	const struct snapshot_dir *record = &snapshot->dirs[dir];
	uint64_t end = dir + 1 < snapshot->facts.dir_count ? record[1].names : snapshot->names_length;
	struct entries view = make_view(snapshot, record->first_entry, record->count, record->names, end);

	view.snapshot_dir = dir;
	return view;
}

struct entries attr_snapshot_root(const struct attr_snapshot *snapshot)
{
	return make_view(snapshot, 0, 1, 0, snapshot->dirs[0].names);
}

struct snapshot_dir_facts attr_snapshot_dir(const struct attr_snapshot *snapshot, uint32_t dir)
{
	const struct snapshot_dir *record = &snapshot->dirs[dir];

	return (struct snapshot_dir_facts){
		.parent = record->parent, .parent_entry = record->parent_entry,
		.leading = record->leading, .subtree_end = record->subtree_end, .error = record->error,
		.dev = snapshot->devices[record->device], .ino = record->ino,
		.ctime = record->ctime / SNAPSHOT_TIME_UNIT, .ctime_nsec = (uint32_t)(record->ctime % SNAPSHOT_TIME_UNIT),
	};
}

const char *attr_snapshot_dir_name(const struct attr_snapshot *snapshot, uint32_t dir)
{
	const struct snapshot_dir *parent = &snapshot->dirs[snapshot->dirs[dir].parent];
	const struct entry *entry = &snapshot->entries[parent->first_entry + snapshot->dirs[dir].parent_entry];

	return snapshot->names + parent->names + entry->name;
}

void attr_snapshot_dir_path(const struct attr_snapshot *snapshot, uint32_t dir, struct strbuf *out)
{
	uint32_t chain[PATH_MAX / 2]; /* no path of a snapshot is longer */
	size_t depth = 0;

	strbuf_reset(out);
	for (; dir; dir = snapshot->dirs[dir].parent)
		chain[depth++] = dir;
	while (depth > 0) {
		if (out->length)
			strbuf_add_char(out, '/');
		strbuf_add_string(out, attr_snapshot_dir_name(snapshot, chain[--depth]));
	}
}

/* --- what only some entries have --- */

static uint64_t index_of(const struct attr_snapshot *snapshot, const struct entry *entry)
{
	return (uint64_t)(entry - snapshot->entries);
}

/* What is known of the file whose digests are stored; NULL: there are none. */
static const struct snapshot_origin *origin_of(const struct attr_snapshot *snapshot, const struct entry *entry)
{
	const struct snapshot_origin *origin = snapshot->origins ? &snapshot->origins[index_of(snapshot, entry)] : NULL;

	return origin && origin->digests ? origin : NULL;
}

const struct entry_side *entry_any_side(const struct entries *list, const struct entry *entry, struct entry_side *expanded)
{
	const struct attr_snapshot *snapshot = list->snapshot;

	if (!snapshot)
		return entry_side_of(list, entry);
	const struct snapshot_dir *dir = &snapshot->dirs[list->snapshot_dir];
	const struct snapshot_origin *origin = origin_of(snapshot, entry);

	if (!entry->side && !snapshot->atimes && !origin)
		return NULL;
	*expanded = (struct entry_side){ .dev = snapshot->devices[dir->device], .real_size = entry->size };
	if (entry->side) {
		const struct snapshot_side *side = &snapshot->sides[dir->first_side + entry->side - 1];

		if (entry_is_symlink(entry)) {
			expanded->target = side->a;
			expanded->target_length = side->b;
		} else {
			expanded->rdev_major = side->a;
			expanded->rdev_minor = side->b;
		}
		expanded->ino = side->ino;
	}
	if (snapshot->atimes)
		expanded->atime = snapshot->atimes[index_of(snapshot, entry)];
	if (origin) {
		expanded->ino = origin->ino;
		expanded->ctime = origin->ctime;
		expanded->ctime_nsec = origin->ctime_nsec;
	}
	return expanded;
}

const uint8_t *attr_snapshot_digest(const struct entries *view, const struct entry *entry, enum attr_digest which)
{
	const struct attr_snapshot *snapshot = view->snapshot;
	const struct snapshot_origin *origin = origin_of(snapshot, entry);

	if (!origin || !(origin->digests & which))
		return NULL;
	const uint8_t *digests = snapshot->chunks[which == ATTR_DIGEST_MD5 ? CHUNK_MD5 : CHUNK_XXH128];

	return digests + index_of(snapshot, entry) * SNAPSHOT_DIGEST;
}

const char *attr_snapshot_owner(const struct attr_snapshot *snapshot, bool is_group, uint32_t id)
{
	const uint64_t *offset = hashmap_get(&snapshot->owners, is_group, id);

	return offset ? (const char *)snapshot->bytes + *offset : NULL;
}
