/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copying content: equal bytes whatever the sizes and options, holes, progress, errors. */
#include "fs/copy.h"

#include <sys/resource.h>
#include <signal.h>

#include "fs_tree.h"

static unsigned char *patterned(size_t size)
{
	unsigned char *bytes = malloc(size + 1);
	uint32_t x = 12345;

	for (size_t i = 0; i < size; i++) {
		x = x * 1103515245 + 12345;
		bytes[i] = (unsigned char)(x >> 16);
		/* zero runs of many lengths, some across buffers */
		if (i % 5000 < 1500 || i % 300000 < 70000)
			bytes[i] = 0;
	}
	return bytes;
}

static int file_with(const char *path, const void *bytes, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_return_code(fd, errno);
	assert_int_equal(pwrite(fd, bytes, size, 0), (ssize_t)size);
	return fd;
}

static void expect_content(int fd, const unsigned char *bytes, size_t size)
{
	unsigned char *got = malloc(size + 1);

	assert_int_equal(pread(fd, got, size + 1, 0), (ssize_t)size);
	if (memcmp(got, bytes, size))
		fail_msg("%zu bytes were not copied faithfully", size);
	free(got);
}

static void check_copy(size_t size, uint64_t announced, const struct fs_copy_options *options, size_t old_size)
{
	unsigned char *bytes = patterned(size), *old = malloc(old_size + 1);
	uint64_t copied = 99;
	bool write_error = false;

	memset(old, 'o', old_size);
	int from = file_with("from", bytes, size), to = file_with("to", old, old_size);

	assert_return_code(fs_copy_content(from, to, announced, options, &copied, &write_error), errno);
	assert_int_equal(copied, size);
	assert_false(write_error);
	expect_content(to, bytes, size);
	close(from);
	close(to);
	free(bytes);
	free(old);
}

static const size_t sizes[] = { 0, 1, 8, 1023, 1024, 4096, 16384, 16385, 100000, 262144, 262145, 1000000, 3000000 };

static void check_all_sizes(struct fs_copy_options options)
{
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		check_copy(sizes[i], sizes[i], &options, 0);
		check_copy(sizes[i], sizes[i] / 2, &options, 0); /* grew meanwhile */
		check_copy(sizes[i], sizes[i] * 2 + 1, &options, 0); /* shrank meanwhile */
		if (options.in_place) {
			check_copy(sizes[i], sizes[i], &options, sizes[i] / 3);
			check_copy(sizes[i], sizes[i], &options, sizes[i] * 2 + 10);
		}
	}
}

UNIT_TEST(every_size_with_every_option)
{
	for (int bits = 0; bits < 8; bits++)
		check_all_sizes((struct fs_copy_options){ .sparse = bits & 1, .preallocate = bits & 2, .in_place = bits & 4 });
}

UNIT_TEST(sparse_makes_holes_and_skips_those_of_the_source)
{
	struct fs_copy_options options = { .sparse = true };
	off_t size = (off_t)3 << 30;
	uint64_t copied;
	bool write_error;
	struct stat st;

	int from = file_with("from", "begin", 5), to = file_with("to", "", 0);
	assert_int_equal(pwrite(from, "middle", 6, size / 2), 6);
	assert_int_equal(ftruncate(from, size), 0);
	assert_return_code(fs_copy_content(from, to, (uint64_t)size, &options, &copied, &write_error), errno);
	assert_int_equal(copied, size);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_true(st.st_blocks < 1000);
	char text[8] = "";
	assert_int_equal(pread(to, text, 6, size / 2), 6);
	assert_string_equal(text, "middle");
	close(from);
	close(to);
}

UNIT_TEST(sparse_turns_zeros_into_holes)
{
	struct fs_copy_options options = { .sparse = true };
	uint64_t copied;
	bool write_error;
	struct stat st;
	char *zeros = calloc(1, 4 << 20);

	zeros[2 << 20] = 'x';
	int from = file_with("from", zeros, 4 << 20), to = file_with("to", "", 0);
	assert_int_equal(fs_copy_content(from, to, 4 << 20, &options, &copied, &write_error), 0);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, 4 << 20);
	assert_true(st.st_blocks <= 128);
	free(zeros);
	close(from);
	close(to);
}

UNIT_TEST(preallocated_blocks_beyond_the_end_are_given_back)
{
	struct fs_copy_options options = { .preallocate = true };
	uint64_t copied;
	bool write_error;
	struct stat st;

	int from = file_with("from", "short", 5), to = file_with("to", "", 0);
	assert_int_equal(fs_copy_content(from, to, 8 << 20, &options, &copied, &write_error), 0);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, 5);
	assert_true(st.st_blocks < 1024);
	close(from);
	close(to);
}

static void note_progress(void *context, uint64_t done)
{
	uint64_t *last = context;

	assert_true(done > *last);
	*last = done;
}

UNIT_TEST(progress_ends_at_the_size)
{
	uint64_t last = 0, copied;
	struct fs_copy_options options = { .progress = note_progress, .context = &last };
	bool write_error;
	unsigned char *bytes = patterned(2000000);

	int from = file_with("from", bytes, 2000000), to = file_with("to", "", 0);
	assert_int_equal(fs_copy_content(from, to, 2000000, &options, &copied, &write_error), 0);
	assert_int_equal(last, 2000000);
	free(bytes);
	close(from);
	close(to);
}

UNIT_TEST(file_without_size_is_copied_to_its_end)
{
	struct fs_copy_options options = { 0 };
	uint64_t copied;
	bool write_error;

	for (int i = 0; i < 2; i++) {
		int from = open("/proc/version", O_RDONLY | O_CLOEXEC), to = file_with("to", "", 0);
		assert_return_code(from, errno);
		assert_int_equal(fs_copy_content(from, to, i ? 1 << 20 : 0, &options, &copied, &write_error), 0);
		assert_true(copied > 10);
		close(from);
		close(to);
	}
}

static void check_limit(size_t size, struct fs_copy_options options)
{
	unsigned char *bytes = patterned(size);
	uint64_t copied;
	bool write_error = false;
	int from = file_with("from", bytes, size), to = file_with("to", "", 0);
	struct rlimit limit = { 8192, RLIM_INFINITY }, none = { RLIM_INFINITY, RLIM_INFINITY };

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	int result = fs_copy_content(from, to, size, &options, &copied, &write_error);
	int error = errno;

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(result, -1);
	assert_int_equal(error, EFBIG);
	assert_true(write_error);
	free(bytes);
	close(from);
	close(to);
}

UNIT_TEST(full_target_is_a_write_error)
{
	signal(SIGXFSZ, SIG_IGN);
	check_limit(12000, (struct fs_copy_options){ 0 });
	check_limit(100000, (struct fs_copy_options){ 0 });
	check_limit(100000, (struct fs_copy_options){ .sparse = true });
	check_limit(100000, (struct fs_copy_options){ .preallocate = true });
}

UNIT_TEST(unreadable_source_is_no_write_error)
{
	struct fs_copy_options options = { 0 };
	uint64_t copied;
	bool write_error = true;

	for (int i = 0; i < 2; i++) {
		int from = open("from", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), to = file_with("to", "", 0);
		assert_int_equal(fs_copy_content(from, to, i ? 100000 : 100, &options, &copied, &write_error), -1);
		assert_int_equal(errno, EBADF);
		assert_false(write_error);
		close(from);
		close(to);
	}
}

UNIT_GROUP(tree_setup, tree_teardown)
