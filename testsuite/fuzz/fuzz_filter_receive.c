/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A list as it comes over the wire, then a walk with it. Input: one byte of settings, then the wire's bytes with the list's
 * end; what follows are NUL-terminated texts: rule files, given out in turn as the list asks for them, and names to test.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "catch_die.h"
#include "filter/exchange.h"
#include "filter/filter.h"
#include "lib/alloc.h"
#include "testsuite/unit/wire_memory.h"
#include "wire/setup.h"

#define FILES_MAX 64

struct input {
	const uint8_t *data;
	size_t size;
	const uint8_t *texts; /* what is left of the texts */
	size_t texts_size;
	struct filter_list *list;
	struct wire *wire;
	int opened[FILES_MAX];
	int opened_count;
};

/* The next text, or NULL. */
static const char *next_text(struct input *input, size_t *length)
{
	const uint8_t *nul = memchr(input->texts, 0, input->texts_size);
	const char *text = (const char *)input->texts;

	if (!nul)
		return NULL;
	*length = (size_t)(nul - input->texts);
	input->texts_size -= *length + 1;
	input->texts = nul + 1;
	return text;
}

static int open_text(void *context, enum filter_place place, const char *path)
{
	struct input *input = context;
	size_t length;

	/* What a peer sends never names a file of the operator; others stay inside their place. */
	if (place == FILTER_AT_OPERATOR && strcmp(path, "/home/.cvsignore"))
		abort();
	if (place == FILTER_AT_BASE && (*path == '/' || !strncmp(path, "../", 3) || strstr(path, "/../")))
		abort();
	if (place == FILTER_AT_ROOT && *path != '/')
		abort();
	const char *text = input->opened_count < FILES_MAX ? next_text(input, &length) : NULL;
	if (!text) {
		errno = ENOENT;
		return -1;
	}
	int fd = memfd_create("rules", MFD_CLOEXEC);
	if (fd >= 0 && write(fd, text, length) == (ssize_t)length)
		lseek(fd, 0, SEEK_SET);
	input->opened[input->opened_count++] = fd;
	return fd;
}

/* Where the list ends in the stream, by the same framing as the reader's. */
static size_t list_size(const uint8_t *data, size_t size)
{
	size_t at = 0;

	while (size - at >= 4) {
		uint32_t length = data[at] | (uint32_t)data[at + 1] << 8 |
				  (uint32_t)data[at + 2] << 16 | (uint32_t)data[at + 3] << 24;
		at += 4;
		if (!length || length > size - at)
			return at;
		at += length;
	}
	return size;
}

/* Transfer names come to a list cleaned. */
static bool is_clean(const char *name)
{
	return *name && !strstr(name, "..") && !strstr(name, "//") && name[strlen(name) - 1] != '/';
}

static void receive_and_walk(void *context)
{
	static const char *const dirs[] = { "", "a", "a/b", "a/b/c", "d", "a/b", "/abs/x" };
	struct input *input = context;
	uint8_t settings = input->data[0];
	struct session session = { .wire = input->wire, .is_server = true, .is_sender = !(settings & 1) };
	size_t length;

	session_set_protocol(&session, settings & 2 ? 28 : 27 + settings % 6);
	filter_receive(input->list, &session);
	filter_set_base(input->list, settings & 16 ? "x/y" : "");
	for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
		if (i == 5)
			filter_set_base(input->list, settings & 32 ? "z" : "x/y");
		filter_set_dir(input->list, dirs[i]);
		filter_excludes(input->list, "a/b/c/d.o", false);
		filter_excludes_doomed(input->list, "a/b", true);
		filter_hides_path(input->list, "a/b/c", true);
		filter_excludes_xattr(input->list, "user.a");
	}
	for (const char *name; (name = next_text(input, &length));) {
		if (!is_clean(name))
			continue;
		filter_set_argument(input->list, name);
		filter_excludes(input->list, name, false);
		filter_excludes(input->list, name, true);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { .data = data, .size = size };

	if (!size)
		return 0;
	struct filter_setup setup = {
		.side = data[0] & 1 ? FILTER_RECEIVER : FILTER_SENDER, .delete_excluded = data[0] & 4,
				.cvs_exclude = data[0] & 8,
		.from0 = data[0] & 64, .open_file = open_text, .context = &input, .cvs_home = "/home",
	};
	size_t list = list_size(data + 1, size - 1);

	input.list = filter_new(&setup);
	input.wire = wire_new_memory(data + 1, list);
	input.texts = data + 1 + list;
	input.texts_size = size - 1 - list;
	catch_die(receive_and_walk, &input);
	/* A die() leaves the file it was reading open. */
	for (int i = 0; i < input.opened_count; i++)
		close(input.opened[i]);
	filter_free(input.list);
	wire_free(input.wire);
	return 0;
}
