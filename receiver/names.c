/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the names of the sources come from: the operands, or a list (--files-from). */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flist/args.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "receiver/run.h"

#define FROM_FILE_LIMIT (1u << 30)

/* Lines end in LF, CR or NUL; with -0 only in NUL (doc/protocol/06-command-line.md section 13). */
static void for_each_name(struct run *run, const struct strbuf *names, void (*take)(struct run *run, const char *name))
{
	const char *text = strbuf_text(names);
	size_t at = 0, length = names->length;

	while (at < length) {
		size_t end = at;
		char *name;

		while (end < length && text[end] && (run->options->from0 || (text[end] != '\n' && text[end] != '\r')))
			end++;
		name = xstrndup(text + at, end - at);
		if (*name)
			take(run, name);
		free(name);
		at = end + 1;
	}
}

static void add_name(struct run *run, const char *name)
{
	if (*name != '#' && *name != ';')
		flist_add_argument(run->receiver.dest.list, name, true);
}

/* A name travels with its NUL (doc/protocol/01-session.md section 9.7), and may then be in the list that comes back. What is a
 * comment here is a name to a peer, unless that is ourselves. */
static void send_name(struct run *run, const char *name)
{
	struct charset *charset = run->options->secluded_args ? run->peer->charset : NULL;
	struct strbuf sent = STRBUF_INIT;

	if (run->peer->is_ourselves && (*name == '#' || *name == ';'))
		return;
	if (!charset || !charset_to_wire(charset, name, strlen(name), PATH_MAX - 1, &sent))
		strbuf_add_string(&sent, name);
	wire_write(run->receiver.session.wire, strbuf_text(&sent), sent.length + 1);
	args_append(&run->names, name);
	strbuf_free(&sent);
}

void run_load_names(struct run *run)
{
	const struct options *options = run->options;
	bool is_stdin = !strcmp(options->files_from, "-");
	int failed, error, fd;

	if (run->has_names_text)
		return;
	run->has_names_text = true;
	fd = is_stdin ? STDIN_FILENO : fs_operator_open(options->files_from, O_RDONLY | options_link_flag(options), 0);
	if (fd < 0) {
		log_set_role("client");
		die(EXIT_SYNTAX, "rsync: failed to open files-from file %s: %s", options->files_from, strerror(errno));
	}
	failed = fs_read_all(fd, FROM_FILE_LIMIT, &run->names_text);
	error = errno;
	if (!is_stdin)
		close(fd);
	if (!failed)
		return;
	log_set_role("client");
	log_errno(L_ERROR, error, "failed to open files-from file %s", options->files_from);
	exit_with(EXIT_FILEIO);
}

static void read_files_from(struct run *run)
{
	const struct options *options = run->options;
	const char *base = options->operands.items[0];
	struct fs_root root;
	int error;

	if (fs_root_open(&root, base) < 0) {
		error = errno;
		char *cwd = getcwd(NULL, 0);

		log_errno(L_ERROR, error, "change_dir \"%s%s%s\" failed", *base == '/' || !cwd ? "" : cwd,
			  *base == '/' ? "" : "/", base);
		free(cwd);
		exit_with(EXIT_FILESELECT);
	}
	fs_root_close(&root);
	flist_set_files_from(run->receiver.dest.list, base);
	run_load_names(run);
	for_each_name(run, &run->names_text, add_name);
	strbuf_free(&run->names_text);
}

/* A list of names that lies here and is wanted there. Below protocol 31 it travels between frames. */
void run_send_files_from(struct run *run)
{
	const struct options *options = run->options;
	struct wire *wire = run->receiver.session.wire;
	bool framed = wire_mux_out(wire), window = framed && !run->receiver.session.caps.framed_names;

	if (!options->files_from || options->files_from_remote)
		return;
	run_load_names(run);
	if (window)
		wire_set_mux_out(wire, false);
	for_each_name(run, &run->names_text, send_name);
	wire_write_byte(wire, 0);
	if (window)
		wire_set_mux_out(wire, true);
	strbuf_free(&run->names_text);
}

void run_add_arguments(struct run *run)
{
	size_t operands = run->options->operands.count, sources = operands > 1 ? operands - 1 : operands;

	if (run->from) {
		flist_add_argument(run->receiver.dest.list, run->from->path, false);
		return;
	}
	if (run->options->files_from) {
		read_files_from(run);
		return;
	}
	for (size_t i = 0; i < sources; i++)
		flist_add_argument(run->receiver.dest.list, run->options->operands.items[i], false);
}
