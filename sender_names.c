/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which names are wanted: arguments, a --files-from list of the server, or one that the client streams (protocol/04 4.16). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "sender_private.h"

static void add_name(struct sender *sender, const char *name)
{
	struct strbuf local = STRBUF_INIT;

	/* Names travel in UTF-8 only if the arguments did too (protocol/02 7.4). */
	if (sender->charset && sender->options->secluded_args && sender->options->files_from[0] == '-'
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

/* A list that the client streams, raw below protocol 31 (protocol/01 9.7). */
static void read_streamed_names(struct sender *sender)
{
	struct wire *wire = sender->session->wire;
	bool raw_window = sender->session->protocol < 31
			  && (sender->session->protocol >= 30 || sender->options->remove_source_files);
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

static int open_names(const struct server *server)
{
	const struct module_session *module = server->module;
	const char *path = server->options->files_from;

	if (!module)
		return fs_operator_open(path, O_RDONLY, 0);
	while (*path == '/')
		path++;
	if (module->hidden && filter_hides_path(module->hidden, path, false)) {
		errno = ENOENT;
		return -1;
	}
	return fs_open_follow(attr_source_real_root(module->source), path, O_RDONLY, 0);
}

void sender_open_names(struct server *server)
{
	const char *path = server->options->files_from;

	if (!path || !strcmp(path, "-") || server->startup_error)
		return;
	server->names_fd = open_names(server);
	if (server->names_fd >= 0)
		return;
	char *problem = xasprintf("failed to open files-from file %s: %s", path, strerror(errno));

	if (!server->module) {
		log_set_role("server");
		die(EXIT_SYNTAX, "rsync: %s", problem);
	}
	server->startup_error = problem;
	server->startup_code = EXIT_UNSUPPORTED;
}

static void add_line(struct sender *sender, const char *line)
{
	if (!*line || *line == '#' || *line == ';')
		return;
	if (strlen(line) >= PATH_MAX)
		name_too_long(sender);
	else
		add_name(sender, line);
}

static void read_names_of_file(struct sender *sender)
{
	FILE *file = fdopen(sender->server->names_fd, "r");
	struct strbuf line = STRBUF_INIT;
	int byte;

	if (!file)
		die(EXIT_MALLOC, "rsync: [sender] cannot read the files-from file: %s", strerror(errno));
	while ((byte = getc(file)) != EOF) {
		bool ends = byte == '\0' || (!sender->options->from0 && (byte == '\n' || byte == '\r'));
		if (!ends) {
			strbuf_add_char(&line, (char)byte);
			continue;
		}
		add_line(sender, strbuf_text(&line));
		strbuf_reset(&line);
	}
	add_line(sender, strbuf_text(&line));
	strbuf_free(&line);
	fclose(file);
}

void sender_read_names(struct sender *sender)
{
	const struct options *options = sender->options;

	if (options->files_from) {
		flist_set_files_from(sender->list, options->operands.count ? options->operands.items[0] : "");
		if (!strcmp(options->files_from, "-"))
			read_streamed_names(sender);
		else
			read_names_of_file(sender);
		return;
	}
	for (size_t i = 0; i < options->operands.count; i++)
		flist_add_argument(sender->list, options->operands.items[i], false);
	if (!options->operands.count && (options->recursive || options->dirs || options->list_only))
		flist_add_argument(sender->list, ".", false);
}
