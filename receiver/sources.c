/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a run reads before it has a list: the names of its sources, from the operands or --files-from, and its filter rules. */
#include "receiver/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dest/apply.h"
#include "dest/paths.h"
#include "filter/exchange.h"
#include "flist/scan.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "receiver/run.h"

/* --- names --- */

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
	struct flist *list = run->receiver.dest.list;
	const struct args *operands = &run->options->operands;
	const char *base = operands->count ? operands->items[0] : "";
	struct fs_root root;

	if (run->from) {
		flist_add_argument(list, run->from->path, false);
		return;
	}
	if (!run->options->files_from) {
		for (size_t i = 0; i + (operands->count > 1) < operands->count; i++)
			flist_add_argument(list, operands->items[i], false);
		return;
	}
	if (fs_root_open(&root, base) < 0) {
		int error = errno;
		char *cwd = getcwd(NULL, 0);

		log_errno(L_ERROR, error, "change_dir \"%s%s%s\" failed", *base == '/' || !cwd ? "" : cwd,
			  *base == '/' ? "" : "/", base);
		free(cwd);
		exit_with(EXIT_FILESELECT);
	}
	fs_root_close(&root);
	flist_set_files_from(list, base);
	run_load_names(run);
	for_each_name(run, &run->names_text, add_name);
	strbuf_free(&run->names_text);
}

/* --- rules --- */

#define RULE_FILE_LIMIT (64u << 20)

static int open_sender_rules(void *run_void, enum filter_place place, const char *path)
{
	struct run *run = run_void;
	struct strbuf text = STRBUF_INIT;

	if (place != FILTER_AT_OPERATOR)
		return flist_open_rule_file(&run->receiver.dest.list, place, path);
	if (strcmp(path, "-") != 0)
		return fs_operator_open(path, O_RDONLY | O_NONBLOCK | options_link_flag(run->options), 0);
	/* Rules are read once for each side, standard input only once. */
	if (run->stdin_copy < 0) {
		run->stdin_copy = memfd_create("rules", MFD_CLOEXEC);
		if (run->stdin_copy < 0 || fs_read_all(STDIN_FILENO, RULE_FILE_LIMIT, &text) < 0
		    || fs_write_all(run->stdin_copy, strbuf_text(&text), text.length) < 0)
			return -1;
		strbuf_free(&text);
	}
	return lseek(run->stdin_copy, 0, SEEK_SET) < 0 ? -1 : fcntl(run->stdin_copy, F_DUPFD_CLOEXEC, 0);
}

static int open_receiver_rules(void *run_void, enum filter_place place, const char *path)
{
	struct run *run = run_void;

	const struct dest_module *module = run->receiver.dest.module;

	if (module && place != FILTER_AT_OPERATOR
	    && (place == FILTER_AT_ROOT ? dest_is_hidden_in(&run->receiver.dest, "/", path + strspn(path, "/"), false)
					: dest_is_hidden(&run->receiver.dest, path, false))) {
		errno = ENOENT;
		return FILTER_HIDDEN;
	}
	if (module && place == FILTER_AT_ROOT)
		return fs_open_follow(module->root, path + strspn(path, "/"), O_RDONLY, 0);
	if (place != FILTER_AT_BASE && !module)
		return open_sender_rules(run, FILTER_AT_OPERATOR, path);
	if (run->receiver.dest.top.fd < 0 || place != FILTER_AT_BASE) {
		errno = ENOENT;
		return -1;
	}
	return fs_open_follow(&run->receiver.dest.top, path, O_RDONLY, 0);
}

static void explain_sender(void *run_void, const char *text)
{
	(void)run_void;
	log_info("[sender] %s", text);
}

static void explain_receiver(void *run_void, const char *text)
{
	(void)run_void;
	log_info("[generator] %s", text);
}

/* doc/protocol/04-filters.md section 4.6.1 */
static bool sends_rules(const struct options *options, bool modern)
{
	bool deletes = options->delete_when != DELETE_NEVER;

	return options->prune_empty_dirs || (deletes && (!options->delete_excluded || modern));
}

/* The server's own rules and those that the client sends, if it does. */
static struct filter_list *service_rules(struct receiver *receiver, const struct options *options,
					 const struct filter_setup *setup)
{
	struct filter_list *rules = receiver->service->rules;

	filter_set_up(rules, setup);
	if (sends_rules(options, receiver->session.caps.modern_filters))
		filter_receive(rules, &receiver->session);
	return rules;
}

static struct filter_list *make_rules(struct run *run, enum filter_side side)
{
	const struct options *options = run->options;
	bool sends = side == FILTER_SENDER;
	struct filter_setup setup = {
		.side = side,
		.delete_excluded = options->delete_excluded,
		.from0 = options->from0,
		.cvs_exclude = options->cvs_exclude,
		.open_file = sends ? open_sender_rules : open_receiver_rules,
		.context = run,
		.budget = run->receiver.service ? session_budget(&run->receiver.session) : NULL,
	};
	struct filter_list *rules;
	bool is_sent = run->peer && !sends;

	if (options->levels.debug[DEBUG_FILTER] && !(run->peer && sends))
		setup.explain = sends ? explain_sender : explain_receiver;
	if (run->receiver.service && !sends)
		return service_rules(&run->receiver, options, &setup);
	rules = filter_new(&setup);
	if (run->receiver.service)
		return rules;
	/* filter_send adds those of -C itself, in the way that the peer's protocol knows. */
	options_add_filters(options, rules, !is_sent);
	options_protect_leftovers(options, rules, true);
	return rules;
}

/* Rules of per-directory files are not among them: names of attributes are looked up in no order, and by any thread. */
void run_make_xattr_policies(struct run *run)
{
	const struct options *options = run->options;
	struct receiver *receiver = &run->receiver;
	struct xattr_policy policy = { .verbatim = options->xattrs > 1, .lock = &receiver->dest.xattr_lock };

	receiver->dest.sends_xattrs = receiver->dest.keeps_xattrs = policy;
	receiver->dest.sends_xattrs.level = options_super_level(options);
	receiver->dest.keeps_xattrs.level = dest_receiving_level(options, !run->peer || run->peer->is_ourselves);
	receiver->dest.sends_xattrs.rules = filter_xattr_list(receiver->sender_rules);
	receiver->dest.keeps_xattrs.rules = filter_xattr_list(receiver->receiver_rules);
}

void run_read_rules(struct run *run)
{
	if (run->receiver.sender_rules)
		return;
	run->receiver.sender_rules = make_rules(run, FILTER_SENDER);
	run->receiver.receiver_rules = make_rules(run, FILTER_RECEIVER);
}
