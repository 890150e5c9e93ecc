/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writing batch files. */
#include "options/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <unistd.h>

#include "fs/file.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/encode.h"

#define BUFFER_SIZE (64 * 1024)

struct batch {
	const struct options *options;
	int fd, script_fd;
	uint8_t *buffer;
	size_t used;
};

static noreturn void failed(const char *name, const char *what, int error, int code)
{
	char *cwd = *name == '/' ? NULL : getcwd(NULL, 0);

	log_errno(L_ERROR, error, "Batch file \"%s%s%s\" %s error", cwd ? cwd : "", cwd ? "/" : "", name, what);
	free(cwd);
	exit_with(code);
}

static int open_output(const struct options *options, const char *name, mode_t mode)
{
	int fd = fs_operator_open(name, O_WRONLY | O_CREAT | O_TRUNC | options_link_flag(options), mode);

	if (fd < 0)
		failed(name, "open", errno, EXIT_FILESELECT);
	return fd;
}

struct batch *batch_create(const struct options *options)
{
	struct batch *batch;
	char *script;

	if (!options->write_batch)
		return NULL;
	batch = xcalloc(1, sizeof *batch);
	script = xasprintf("%s.sh", options->write_batch);
	batch->options = options;
	batch->script_fd = open_output(options, script, 0700);
	batch->fd = open_output(options, options->write_batch, 0600);
	batch->buffer = xmalloc(BUFFER_SIZE);
	free(script);
	return batch;
}

void batch_write_script(struct batch *batch, const struct filter_list *rules)
{
	struct strbuf lines = STRBUF_INIT, script = STRBUF_INIT;

	if (!batch)
		return;
	filter_add_lines(rules, &lines);
	options_add_replay_script(batch->options, strbuf_text(&lines), &script);
	if (fs_write_all(batch->script_fd, strbuf_text(&script), script.length) < 0)
		failed(batch->options->write_batch, "write", errno, EXIT_FILEIO);
	close(batch->script_fd);
	strbuf_free(&lines);
	strbuf_free(&script);
}

/* --- the stream --- */

static void flush(struct batch *batch)
{
	if (fs_write_all(batch->fd, batch->buffer, batch->used) < 0)
		failed(batch->options->write_batch, "write", errno, EXIT_FILEIO);
	batch->used = 0;
}

void batch_write(void *batch_void, const void *bytes, size_t length)
{
	struct batch *batch = batch_void;

	if (batch->used + length > BUFFER_SIZE)
		flush(batch);
	if (length > BUFFER_SIZE && fs_write_all(batch->fd, bytes, length) < 0)
		failed(batch->options->write_batch, "write", errno, EXIT_FILEIO);
	if (length > BUFFER_SIZE)
		return;
	memcpy(batch->buffer + batch->used, bytes, length);
	batch->used += length;
}

static uint32_t flags_of(const struct options *options)
{
	const struct { uint32_t flag; bool on; } flags[] = {
		{ BATCH_RECURSIVE, options->recursive }, { BATCH_OWNER, options->owner }, { BATCH_GROUP, options->group },
		{ BATCH_LINKS, options->links }, { BATCH_DEVICES, options->devices },
		{ BATCH_HARD_LINKS, options->hard_links }, { BATCH_CHECKSUM, options->checksum },
		{ BATCH_DIRS, options->dirs || options->recursive }, { BATCH_COMPRESS, options->compress },
		{ BATCH_ICONV, options->iconv }, { BATCH_ACLS, options->acls }, { BATCH_XATTRS, options->xattrs },
		{ BATCH_INPLACE, options->inplace }, { BATCH_APPEND, options->append == 1 },
		{ BATCH_APPEND_VERIFY, options->append > 1 },
	};
	uint32_t all = 0;

	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		all |= flags[i].on ? flags[i].flag : 0;
	return all;
}

void batch_start(struct batch *batch, const struct session *session)
{
	uint8_t header[4 * ENCODED_MAX + ENCODE_SLACK], *end = header;

	if (!batch)
		return;
	end = encode_int(end, flags_of(batch->options));
	end = encode_int(end, (uint32_t)session->protocol);
	if (session->protocol >= 30)
		end = encode_varint(end, (int32_t)session->compat);
	end = encode_int(end, (uint32_t)session->seed);
	batch_write(batch, header, (size_t)(end - header));
	if (session->is_sender)
		wire_set_tee_out(session->wire, batch_write, batch);
	else
		wire_set_tee_in(session->wire, batch_write, batch);
}

void batch_finish(struct batch *batch)
{
	if (!batch)
		return;
	flush(batch);
	if (close(batch->fd) < 0)
		failed(batch->options->write_batch, "write", errno, EXIT_FILEIO);
	free(batch->buffer);
	free(batch);
}
