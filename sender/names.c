/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which names are wanted: arguments, a --files-from list of this side, or one that the peer streams (doc/protocol/04-filters.md
 * section 4.16).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flist/args.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "sender/private.h"

static void add_name(struct sender *sender, const char *name)
{
	struct strbuf local = STRBUF_INIT;

	/* Names travel in UTF-8 only if the arguments did too (doc/protocol/02-file-list.md section 7.4). */
	if (sender->charset && sender->options->secluded_args && sender->host->names_fd < 0
	    && charset_from_wire(sender->charset, name, strlen(name), PATH_MAX - 1, &local))
		name = local.data;
	flist_add_argument(sender->list, name, true);
	strbuf_free(&local);
}

static void name_too_long(struct sender *sender)
{
	log_msg(L_ERROR_XFER, "rsync: [sender] a --files-from name is longer than %d bytes", PATH_MAX - 1);
	sender->session->io_error |= IOERR_GENERAL;
}

/* A list that the peer streams, raw below protocol 31 (doc/protocol/01-session.md section 9.7). */
static void read_streamed_names(struct sender *sender)
{
	struct wire *wire = sender->session->wire;
	const struct session *session = sender->session;
	bool framed = !session->is_server || session->caps.frames_requests || sender->options->remove_source_files;
	bool raw_window = framed && !session->caps.framed_names;
	struct strbuf name = STRBUF_INIT;
	bool too_long = false;

	if (raw_window)
		wire_set_mux_in(wire, false);
	for (;;) {
		char byte = (char)wire_read_byte(wire);
		if (byte) {
			too_long |= name.length >= PATH_MAX - 1;
			if (!too_long)
				strbuf_add_char(&name, byte);
			continue;
		}
		if (!name.length)
			break;
		if (too_long)
			name_too_long(sender);
		else
			add_name(sender, name.data);
		strbuf_reset(&name);
		too_long = false;
	}
	if (raw_window)
		wire_set_mux_in(wire, true);
	strbuf_free(&name);
}

static void add_line(struct sender *sender, struct strbuf *line)
{
	const char *text = strbuf_text(line);

	if (*text && *text != '#' && *text != ';' && line->length >= PATH_MAX)
		name_too_long(sender);
	else if (*text && *text != '#' && *text != ';')
		add_name(sender, text);
	strbuf_reset(line);
}

static void read_names_of_file(struct sender *sender)
{
	FILE *file = fdopen(sender->host->names_fd, "r");
	struct strbuf line = STRBUF_INIT;
	int byte;

	if (!file)
		die(EXIT_MALLOC, "rsync: [sender] cannot read the files-from file: %s", strerror(errno));
	while ((byte = getc(file)) != EOF) {
		bool ends = byte == '\0' || (!sender->options->from0 && (byte == '\n' || byte == '\r'));
		if (ends)
			add_line(sender, &line);
		/* The file is whatever the client has named: a line may be as long as that. */
		else if (line.length < PATH_MAX)
			strbuf_add_char(&line, (char)byte);
	}
	add_line(sender, &line);
	strbuf_free(&line);
	fclose(file);
}

void sender_read_names(struct sender *sender)
{
	const struct options *options = sender->options;
	const struct args *sources = sender->host->sources;

	if (options->files_from) {
		flist_set_files_from(sender->list, sources->count ? sources->items[0] : "");
		if (sender->host->names_fd < 0)
			read_streamed_names(sender);
		else
			read_names_of_file(sender);
		return;
	}
	for (size_t i = 0; i < sources->count; i++)
		flist_add_argument(sender->list, sources->items[i], false);
	if (!sources->count && (options->recursive || options->dirs || options->list_only))
		flist_add_argument(sender->list, ".", false);
}
