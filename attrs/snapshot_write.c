/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writing an attr snapshot in place of another: the new one is complete and on the disk before it has a name, so that no moment
 * and no failure shows anything but the old file or the new one.
 */
#include "attrs/snapshot_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attrs/snapshot_chunks.h"
#include "attrs/snapshot_output.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/temp.h"
#include "lib/alloc.h"
#include "lib/exit.h"

void *attr_snapshot_write_memory(const struct image *image, uint64_t generation, struct fs_ids *ids, size_t *length)
{
	struct snapshot_layout layout;
	struct snapshot_front front;
	struct strbuf why = STRBUF_INIT;

	if (snapshot_layout_make(&layout, image, generation, ids, &why) < 0)
		die(EXIT_FILEIO, "rsync: %s", strbuf_text(&why));
	snapshot_front_plan(&front, &layout);
	snapshot_layout_count(&layout); /* the size depends on it */
	size_t most = front.header.file_size + SNAPSHOT_ALIGNMENT + layout.owners.length;
	size_t rounded = (most + SNAPSHOT_ALIGNMENT - 1) / SNAPSHOT_ALIGNMENT * SNAPSHOT_ALIGNMENT;
	unsigned char *memory = aligned_alloc(SNAPSHOT_ALIGNMENT, rounded);

	if (!memory)
		die(EXIT_MALLOC, "out of memory: an attr snapshot of %zu bytes", most);
	struct snapshot_target target = { .fd = -1, .memory = memset(memory, 0, rounded) };

	snapshot_chunks_write(&front, &layout, &target);
	memcpy(memory, &front, snapshot_front_length(&front));
	*length = front.header.file_size;
	snapshot_layout_free(&layout);
	return memory;
}

/* --- the next generation --- */

static bool read_at(int fd, void *out, size_t size, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, out, size, (off_t)offset) == (ssize_t)size;
}

/* Nothing but the facts is looked at, and no sum: with a damaged file the worst is a number that is not the next one. */
static uint64_t read_generation(int fd)
{
	const char *tag = snapshot_chunk_kinds[CHUNK_FACTS].tag;
	struct snapshot_header header;
	struct snapshot_chunk chunks[SNAPSHOT_CHUNKS_MAX];
	struct snapshot_facts facts;

	if (!read_at(fd, &header, sizeof header, 0) || memcmp(header.magic, SNAPSHOT_MAGIC, sizeof header.magic) ||
	    header.version != SNAPSHOT_VERSION || header.chunk_count > SNAPSHOT_CHUNKS_MAX ||
	    !read_at(fd, chunks, header.chunk_count * sizeof *chunks, sizeof header))
		return 0;
	for (uint32_t i = 0; i < header.chunk_count; i++)
		if (!memcmp(chunks[i].tag, tag, sizeof chunks[i].tag) && chunks[i].length >= sizeof facts)
			return read_at(fd, &facts, sizeof facts, chunks[i].offset) ? facts.generation : 0;
	return 0;
}

static uint64_t next_generation(int dir_fd, const char *name)
{
	int fd = fs_open_at(dir_fd, name, O_RDONLY, 0);

	if (fd < 0)
		return 1;
	uint64_t generation = read_generation(fd) + 1;

	close(fd);
	return generation ? generation : 1;
}

/* --- the file --- */

static int fail(struct strbuf *why, int error, const char *what)
{
	strbuf_reset(why);
	strbuf_add_string(why, what);
	errno = error;
	return -1;
}

/* All of it into the open file, and onto the disk. */
static int fill(int fd, struct snapshot_layout *layout, uint64_t *size, struct strbuf *why)
{
	struct snapshot_target target = { .fd = fd };
	struct snapshot_front front;

	snapshot_front_plan(&front, layout);
	if (front.header.file_size > INT64_MAX / 2)
		return fail(why, EFBIG, "cannot write it");
	if (snapshot_chunks_write(&front, layout, &target) < 0 || ftruncate(fd, (off_t)front.header.file_size) < 0 ||
	    fs_write_all_at(fd, &front, snapshot_front_length(&front), 0) < 0)
		return fail(why, errno, "cannot write it");
	if (fchmod(fd, 0644 & ~fs_umask()) < 0)
		return fail(why, errno, "cannot set its mode");
	if (fsync(fd) < 0)
		return fail(why, errno, "cannot bring it to the disk");
	*size = front.header.file_size;
	return 0;
}

/* Not even a killed writer leaves anything behind. -1 with EOPNOTSUPP where that cannot be had. */
static int replace_unnamed(int dir_fd, const char *name, struct snapshot_layout *layout, uint64_t *size,
			   struct strbuf *why)
{
	struct fs_temp temp;
	int fd = snapshot_room_take(layout->image->room);

	if (fd < 0)
		fd = fs_unnamed_create(dir_fd, 0600);

	if (fd < 0)
		return fail(why, errno, "cannot make a temp file in its directory");
	int result = fill(fd, layout, size, why);

	/* Naming fails for reasons of its own (without /proc, on some file systems): then a file that has had a name may do. */
	if (!result && fs_temp_name(&temp, dir_fd, name, fd) < 0)
		result = fail(why, EOPNOTSUPP, "cannot give a name to the new file");
	if (result < 0) {
		int error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fs_temp_commit(&temp, name) < 0 ? fail(why, errno, "cannot put the new file in its place") : 0;
}

static int replace_named(int dir_fd, const char *name, struct snapshot_layout *layout, uint64_t *size, struct strbuf *why)
{
	struct fs_temp temp;

	if (fs_temp_create(&temp, dir_fd, name) < 0)
		return fail(why, errno, "cannot make a temp file in its directory");
	if (fill(temp.fd, layout, size, why) < 0) {
		int error = errno;
		fs_temp_discard(&temp);
		errno = error;
		return -1;
	}
	return fs_temp_commit(&temp, name) < 0 ? fail(why, errno, "cannot put the new file in its place") : 0;
}

/* The rename, too, is to survive a crash. A directory that cannot be opened or synced (EINVAL) gives what it can. */
static int sync_dir(int dir_fd, struct strbuf *why)
{
	int fd = fs_open_at(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0), error = 0;

	if (fd < 0)
		return 0;
	if (fsync(fd) < 0 && errno != EINVAL)
		error = errno;
	close(fd);
	return error ? fail(why, error, "it is written, but its directory cannot be brought to the disk") : 0;
}

static int check_target(int dir_fd, const char *name, struct strbuf *why)
{
	struct fs_stat st;

	if (fs_lstat_at(dir_fd, name, &st) < 0)
		return errno == ENOENT ? 0 : fail(why, errno, "cannot look at it");
	if (S_ISREG(st.mode))
		return 0;
	return fail(why, S_ISDIR(st.mode) ? EISDIR : EINVAL, "only a regular file is replaced");
}

static int replace(int dir_fd, const char *name, struct snapshot_layout *layout, uint64_t *size, struct strbuf *why)
{
	int result = replace_unnamed(dir_fd, name, layout, size, why);

	if (result < 0 && errno == EOPNOTSUPP) {
		strbuf_reset(why);
		result = replace_named(dir_fd, name, layout, size, why);
	}
	return result < 0 ? result : sync_dir(dir_fd, why);
}

void attr_snapshot_reserve(struct image *image, const char *path, uint64_t bytes)
{
	if (!image->room)
		image->room = snapshot_room_new(path, bytes);
}

int attr_snapshot_write(const struct image *image, const char *path, uint64_t generation, struct fs_ids *ids, uint64_t *size,
			struct strbuf *why)
{
	char name[256];
	struct snapshot_layout layout;
	int dir_fd = fs_operator_target(path, name);

	if (dir_fd < 0)
		return fail(why, errno, "cannot find its directory");
	int result = check_target(dir_fd, name, why);

	if (!result) {
		if (!generation)
			generation = next_generation(dir_fd, name);
		result = snapshot_layout_make(&layout, image, generation, ids, why);
		if (!result)
			result = replace(dir_fd, name, &layout, size, why);
		int error = errno;
		snapshot_layout_free(&layout);
		errno = error;
	}
	int error = errno;

	close(dir_fd);
	errno = error;
	return result;
}
