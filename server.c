/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A server's session: messages, rules, set-up, the roles of sender and receiver, the end. */
#include "server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contents/contents.h"
#include "filter/exchange.h"
#include "filter/wildmatch.h"
#include "flist/scan.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/root.h"
#include "lib/alloc.h"
#include "lib/charset.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options/owners.h"
#include "ui/log_file.h"
#include "wire/args.h"
#include "wire/request.h"
#include "wire/setup.h"

/*
 * --- wildcards ---
 *
 * Of operands that no shell has expanded: those of a daemon's client, and secluded ones. '*', '?' and brackets match as in
 * filter rules, also names with a leading dot; what matches nothing stays as it is.
 */

enum { NAMES_MAX = 4000000, NAME_STEPS = 50, DIRECTORY_STEPS = 500 };

struct expansion {
	struct attr_source *source;
	struct filter_list *hidden;
	struct expansion_cost *cost;
	struct args *out;
};

static char *join(const char *directory, const char *name)
{
	size_t length = strlen(directory);

	return xasprintf("%s%s%s", directory, length && directory[length - 1] != '/' ? "/" : "", name);
}

/* Does the pattern's match count, and is it a directory? A link that leads nowhere (in the module) does not: stock does the
 * same. */
static bool is_there(struct attr_source *source, const char *path, unsigned char type, bool *is_dir)
{
	bool must_look = type == DT_LNK || type == DT_UNKNOWN;
	struct fs_stat st;
	int result = must_look ? attr_source_stat(source, path, true, &st) : 0;

	*is_dir = must_look ? result == 0 && S_ISDIR(st.mode) : type == DT_DIR;
	return result == 0 || type == DT_UNKNOWN;
}

/* The names in `directory` that the pattern selects: as if the hidden ones were not there. */
static void collect_matches(const struct expansion *expansion, const char *directory, const char *pattern,
			    bool only_directories, struct args *names)
{
	struct budget *budget = expansion->cost->budget;
	struct attr_names entries;
	struct fs_dirent entry;

	budget_work(budget, DIRECTORY_STEPS);
	if (attr_source_names(expansion->source, directory, &entries) < 0)
		return;
	while (attr_names_next(&entries, &entry) > 0) {
		bool is_dir;
		char *path;

		if (++expansion->cost->names > NAMES_MAX)
			die(EXIT_PROTOCOL, "the wildcards of the arguments lead to more than %d names", NAMES_MAX);
		budget_work(budget, NAME_STEPS);
		if (!wildmatch_for(budget, pattern, entry.name))
			continue;
		path = join(directory, entry.name);
		if (is_there(expansion->source, path, entry.type, &is_dir) && (is_dir || !only_directories)
		    && !(expansion->hidden && filter_hides_path(expansion->hidden, path, is_dir)))
			args_append_counted(names, path, budget);
		free(path);
	}
	attr_names_finish(&entries);
}

/* `done` is what stands fast; `rest` starts with the slash that follows it, or with a component if `done` is "". */
static void expand_from(struct expansion *expansion, const char *done, const char *rest)
{
	size_t slashes = strspn(rest, "/"), length = strcspn(rest + slashes, "/");
	char *component;

	if (!length) {
		char *whole = xasprintf("%s%s", done, rest);

		args_append_limited(expansion->out, whole, expansion->cost->budget);
		free(whole);
		return;
	}
	component = xstrndup(rest + slashes, length);
	if (strpbrk(component, "*?[")) {
		struct args names = { NULL, 0 };

		rest += slashes + length;
		collect_matches(expansion, done, component, *rest != 0, &names);
		for (size_t i = 0; i < names.count; i++)
			expand_from(expansion, names.items[i], rest);
		args_free_counted(&names, expansion->cost->budget);
	} else {
		char *longer = join(done, component);

		expand_from(expansion, longer, rest + slashes + length);
		free(longer);
	}
	free(component);
}

void operand_expand(struct attr_source *source, struct filter_list *hidden, const char *pattern, struct expansion_cost *cost,
		    struct args *out)
{
	struct expansion expansion = { source, hidden, cost, out };
	size_t before = out->count;

	if (strpbrk(pattern, "*?["))
		expand_from(&expansion, "", pattern);
	if (out->count == before)
		args_append_limited(out, pattern, cost->budget);
}

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* With the rights and from the working directory of this process; the `most` first. An absolute pattern is one below the root,
 * without the slash. */
static void expand_own(const char *pattern, size_t most, struct expansion_cost *cost, struct args *out)
{
	const bool is_absolute = *pattern == '/';
	struct attr_source source = { .kind = ATTRS_LIVE, .attr_root.fd = -1, .content_root.fd = -1 };
	struct args found = { NULL, 0 };
	int fd = strpbrk(pattern, "*?[") ? fs_operator_open(is_absolute ? "/" : ".", O_PATH | O_DIRECTORY, 0) : -1;

	if (fd < 0) {
		args_append(out, pattern);
		return;
	}
	fs_root_adopt(&source.attr_root, fd);
	source.attr_root.trusting = true;
	operand_expand(&source, NULL, pattern + (is_absolute ? strspn(pattern, "/") : 0), cost, &found);
	qsort(found.items, found.count, sizeof *found.items, compare_words);
	for (size_t i = 0; i < found.count && i < most; i++)
		args_take(out, xasprintf("%s%s", is_absolute ? "/" : "", found.items[i]));
	args_free(&found);
	fs_root_close(&source.attr_root);
}

#define DRAIN_SECONDS 60          /* doc/protocol/01-session.md section 10.8 */
#define DAEMON_DRAIN_SECONDS 5    /* of a client that has a place in a daemon: others wait for it */
#define REFUSAL_GRACE_SECONDS 1   /* doc/protocol/07-daemon.md section 5.22 */

/* --- messages --- */

static void emit(void *context, enum log_kind kind, const char *text, size_t length)
{
	static const enum message_code codes[] = {
		[L_INFO] = MSG_INFO, [L_CLIENT] = MSG_INFO, [L_WARNING] = MSG_WARNING, [L_ERROR] = MSG_ERROR,
		[L_ERROR_XFER] = MSG_ERROR_XFER,
	};
	struct server *server = context;
	bool informs = kind == L_INFO || kind == L_CLIENT;
	/* Does this class of text reach the client through the stream? */
	bool streamed = informs ? !server->options->quiet : kind != L_LOG && server->session.log_through_stream;

	if (server->finished || server->stream_broken || !wire_mux_out(server->session.wire))
		streamed = false;
	if ((server->module && kind != L_CLIENT) || (!streamed && !server->finished && !informs))
		server->below.emit(server->below.context, kind, text, length);
	if (streamed)
		wire_send_message(server->session.wire, codes[kind], text, length);
}

/* --- the end --- */

/* A client of a daemon that takes nothing, not even why it is over. */
static void goodbye_took_too_long(void *context)
{
	struct server *server = context;

	server->finished = true;
	exit_set_quiet(true);
	exit_with(server->end_code);
}

/* Exit hook: say why the session ends, wait until the peer has read it. */
static void say_goodbye(void *context, int code)
{
	struct server *server = context;
	struct wire *wire = server->session.wire;
	int seconds = wire_settings(wire)->timeout ? wire_settings(wire)->timeout : DRAIN_SECONDS;

	if (server->finished || code == EXIT_OK)
		return;
	if (server->module) {
		server->end_code = code;
		wire_set_deadline(wire, clock_nanoseconds() + DAEMON_DRAIN_SECONDS * CLOCK_SECOND, goodbye_took_too_long,
				  server);
	}
	if (code == EXIT_SOCKETIO || code == EXIT_STREAMIO || code == EXIT_SIGNAL1 || code == EXIT_TIMEOUT) {
		/* Data in the stream may still arrive; a reply is not expected. */
		server->stream_broken = code != EXIT_STREAMIO && code != EXIT_TIMEOUT;
		exit_report();
		server->stream_broken = true;
		return;
	}
	exit_report();
	if (!wire_mux_out(wire))
		return;
	if (server->session.caps.error_exit)
		wire_send_message_int(wire, MSG_ERROR_EXIT, code);
	/* Nobody else needs it any more. */
	wire_claim_output(wire);
	wire_flush(wire);
	if (server->session.caps.error_exit && server->session.log_through_stream)
		wire_drain(wire, server->module && seconds > DAEMON_DRAIN_SECONDS ? DAEMON_DRAIN_SECONDS : seconds);
	else if (!server->session.is_sender)
		/* A client that goes on sending into a closed connection hears of nothing else. */
		wire_drain(wire, REFUSAL_GRACE_SECONDS);
	server->finished = true;
}

static void take_message(void *server_void, enum message_code code, const uint8_t *payload, size_t length)
{
	struct server *server = server_void;
	int end = length == 4 ? payload[0] : EXIT_STREAMIO;

	if (code == MSG_IO_ERROR)
		server->session.io_error |= (int32_t)decode_int(payload) & 7;
	if (code != MSG_ERROR_EXIT)
		return;
	/* The peer ends the session: acknowledge and follow, without a line of our own (doc/protocol/01-session.md section
	 * 10.8). */
	if (length == 4 && server->session.is_sender)
		wire_send_message(server->session.wire, MSG_ERROR_EXIT, "", 0);
	else if (length == 4)
		wire_send_message_int(server->session.wire, MSG_ERROR_EXIT, end);
	wire_flush(server->session.wire);
	server->finished = true;
	if (!server->module)
		exit_set_quiet(true);
	exit_with(end ? end : EXIT_STREAMIO);
}

/* --- rules and files that the command line names --- */

static bool is_hidden(const struct module_session *module, const char *path)
{
	return module && module->dest.hidden && filter_hides_path(module->dest.hidden, path, false);
}

static int open_named(const struct server *server, const char *path, int flags)
{
	int fd = -1, error = ENOENT;

	flags |= O_RDONLY;
	if (!server->module)
		return options_confine(server->options, fs_operator_open(path, flags | options_link_flag(server->options), 0));
	/* Of a module's client: nothing that is hidden, and nothing outside, wherever links lead. */
	char *clean = xmalloc(strlen(path) + 2);

	fs_clean_path(clean, path + strspn(path, "/"));
	if (!is_hidden(server->module, clean)) {
		fd = fs_open(attr_source_real_root(server->module->source), clean, flags | FS_FOLLOW, 0);
		error = errno;
	}
	free(clean);
	errno = error;
	return fd;
}

static int open_rules(void *server_void, enum filter_place place, const char *path)
{
	const struct server *server = server_void;

	(void)place;
	if (is_hidden(server->module, path)) {
		errno = ENOENT;
		return FILTER_HIDDEN;
	}
	return open_named(server, path, O_NONBLOCK);
}

static void read_rules(struct server *server)
{
	const struct options *options = server->options;
	const struct filter_setup setup = {
		.side = options->sender ? FILTER_SENDER : FILTER_RECEIVER, .server_words = true, .from0 = options->from0,
		.of_peer = server->module != NULL, .budget = wire_budget(server->session.wire),
		.lasting_cvs_names = !session_caps_of(options->max_protocol).perishable_rules,
		.open_file = open_rules, .context = server,
	};

	server->rules = filter_new(&setup);
	options_add_filters(options, server->rules, false);
}

/* --- set-up --- */

/* Lines end in LF, CR or NUL, with -0 only in NUL; names end in NUL (doc/protocol/01-session.md section 9.7). Passed on as they
 * are read: the file is whatever the client has named. */
static void send_names(struct server *server)
{
	struct wire *wire = server->session.wire;
	char bytes[8192], last = 0;
	ssize_t got = 0;

	while (server->names_fd >= 0 &&
	       ((got = read(server->names_fd, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR)))
		for (ssize_t i = 0; i < got; i++) {
			bool ends = !bytes[i] || (!server->options->from0 && strchr("\r\n", bytes[i]));

			if (!ends || last)
				wire_write_byte(wire, ends ? 0 : (uint8_t)bytes[i]);
			last = ends ? 0 : bytes[i];
		}
	if (got < 0)
		log_errno(L_ERROR_XFER, errno, "read error on files-from file %s", server->options->files_from);
	if (last)
		wire_write_byte(wire, 0);
	wire_write_byte(wire, 0);
	fs_close(server->names_fd);
}

static void set_up(struct server *server)
{
	struct session *session = &server->session;
	const struct options *options = server->options;
	bool sends_names = !options->sender && options->files_from && strcmp(options->files_from, "-") != 0;
	struct setup_request request;

	session->is_server = true;
	session->is_sender = options->sender;
	options_setup_request(options, &request);
	/* A session that will be refused must get so far that the client can read why. */
	request.always_checksum &= !server->startup_error;
	if (!session->is_daemon)
		setup_exchange_versions(session, &request);
	/* A client that stalls inside the negotiation is timed out, too. */
	wire_settings(session->wire)->timeout = options->timeout;
	session->log_through_stream = session->is_daemon || options->stderr_mode == STDERR_CLIENT
				      || (session->caps.errors_in_stream && !options->stderr_mode_given);
	server->below = log_set_sink((struct log_sink){ emit, server });
	exit_push_hook(say_goodbye, server);
	setup_server(session, &request);
	if (sends_names && !session->caps.framed_names)
		send_names(server);
	wire_set_message_handler(session->wire, take_message, server);
	setup_start_mux(session, options->remove_source_files);
	wire_set_bwlimit(session->wire, options->bwlimit);
	wire_settings(session->wire)->stop_at = options->stop_at;
	session->max_alloc = options->max_alloc;
	session_limit_memory(session);
	if (session->is_daemon && options->timeout > 0 && session->caps.io_timeout)
		wire_send_message_int(session->wire, MSG_IO_TIMEOUT, options->timeout);
	if (sends_names && session->caps.framed_names)
		send_names(server);
}

/* Before the session starts: a daemon's client hears of a failure after the set-up, a remote shell's at once. */
static void open_names_file(struct server *server)
{
	const char *path = server->options->files_from;
	struct fs_stat st;

	if (!path || !strcmp(path, "-") || server->startup_error)
		return;
	server->names_fd = open_named(server, path, 0);
	/* A device could have no end. */
	if (server->names_fd >= 0 && server->module && fs_stat_at_fd(server->names_fd, &st) == 0
	    && (S_ISCHR(st.mode) || S_ISBLK(st.mode))) {
		close(server->names_fd);
		server->names_fd = -1;
		errno = ENXIO;
	}
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

static noreturn void finish(struct server *server, int code, uint64_t total_size)
{
	const struct wire *wire = server->session.wire;

	server->finished = true;
	/* A receiver that has failed has said how. */
	if (server->module && server->module->log_end && (server->session.is_sender || code == EXIT_OK))
		server->module->log_end(server->module->dest.context, wire_bytes_written(wire), wire_bytes_read(wire),
					total_size, code);
	if (!server->module && server->options->log_file && server->session.is_sender)
		log_run_end(true, wire_bytes_written(wire), wire_bytes_read(wire), total_size, code);
	exit_set_quiet(true); /* each error has been logged where it arose */
	exit_with(code);
}

/* The log line of an item: the module's, if it wants one, where only changes are worth it (doc/protocol/03-transfer.md section
 * 2.7); or in a log of the server's own. */
static void log_item(void *context, const struct transfer_record *record, enum item_stage stage)
{
	const uint32_t insignificant = ITEM_BASIS_TYPE_FOLLOWS | ITEM_XNAME_FOLLOWS | ITEM_LOCAL_CHANGE;
	const struct server *server = context;
	const struct module_session *module = server->module;
	bool changes = record->flags & ~insignificant || record->link_is_hard, is_dir = entry_is_dir(record->entry);
	struct format_values values;

	if (stage == ITEM_BEGINS)
		return;
	if (!module && item_is_logged(&server->lines, record->flags, is_dir, record->link_is_hard)) {
		item_record_values(&values, server->options, record);
		item_line_log(L_LOG, server->lines.logged, &values);
	}
	if (module && !server->options->dry_run && (stage == ITEM_ENDS || (module->dest.logs_items && changes)))
		module->log_transfer(module->dest.context, record);
}

static void note_transfer(void *context, enum item_stage stage)
{
	const struct server *server = context;

	server->module->transfer(server->module->dest.context, stage);
}

static void explain(void *list_address, const char *text)
{
	(void)list_address;
	log_info("[sender] %s", text);
}

static noreturn void server_send(struct server *server)
{
	const struct options *options = server->options;
	const struct module_session *module = server->module;
	bool logs_items = module ? module->log_transfer != NULL : server->lines.logged != NULL;
	struct flist *list = NULL;
	struct filter_setup setup = {
		.side = FILTER_SENDER,
		.delete_excluded = options->delete_excluded,
		.from0 = options->from0,
		.cvs_exclude = options->cvs_exclude,
		.open_file = flist_open_rule_file,
		.explain = options->levels.debug[DEBUG_FILTER] ? explain : NULL,
		.budget = wire_budget(server->session.wire),
		.context = &list,
		.hidden = module ? module->dest.hidden : NULL,
	};

	if (options->levels.debug[DEBUG_SEND])
		log_info("server_sender starting pid=%d", (int)getpid());
	filter_set_up(server->rules, &setup);
	/* The list, still empty, with the client's and the module's rules. */
	list = flist_new(options, &server->session, module ? module->source : NULL, server->rules, setup.hidden);
	/* The operator decides how the links of a module are treated. */
	flist_scan_options(list)->munge_symlinks = module ? module->munge_symlinks : options->munge_links;
	if (module) {
		flist_scan_options(list)->ignore_nonreadable = module->ignore_nonreadable;
		module->source->open_noatime |= module->open_noatime;
		module->source->copies_devices = options->copy_devices;
		server->options->ignore_errors |= module->ignore_errors;
	}
	filter_receive(server->rules, &server->session);
	/* After the set-up, so that the refusal reaches the client. */
	if (module && module->read_only && options->remove_source_files)
		die(EXIT_SYNTAX, "ERROR: --remove-%s-files cannot be used with a read-only module",
		    options->remove_sent_files ? "sent" : "source");
	struct sender_host host = {
		.session = &server->session,
		.options = options,
		.ids = server->ids,
		.sources = &options->operands,
		.names_fd = server->names_fd,
		.no_names = module && module->numeric_ids,
		.chmod = options->chmod,
		.charset = module ? module->charset : options->iconv,
		.dont_compress = module ? module->dont_compress : NULL,
		.message = take_message,
		.item = logs_items ? log_item : NULL,
		.transfer = module && module->transfer ? note_transfer : NULL,
		.context = server,
	};

	if (!module)
		log_msg(L_LOG, "building file list");
	sender_run(&host, list);
	filter_free(server->rules);
	finish(server, run_exit_code(server->session.io_error), flist_totals(list)->size);
}

/* --- the role of the receiver --- */

static int receive(struct server *server, uint64_t *total_size)
{
	struct options *options = server->options;
	const struct args *operands = &options->operands;
	const char *destination = operands->count ? operands->items[0] : ".";
	struct charset *charset = options->iconv ? charset_new(options->iconv) : NULL;
	struct module_session *module = server->module;
	struct run_stats stats = { .total_size = 0 };
	const struct receiver_service service = {
		.message = take_message,
		.context = server,
		.stats = &stats,
		.rules = server->rules,
		.module = module ? &module->dest : NULL,
	};
	const struct receiver_peer peer = {
		.session = &server->session,
		.ids = module && module->numeric_ids ? NULL : server->ids,
		.charset = charset,
		.munge_symlinks = module ? module->munge_symlinks : options->munge_links,
		.clean_symlinks = module && !module->munge_symlinks && module->source->below_root,
		.service = &service,
	};

	if (options->iconv && !charset)
		die(EXIT_UNSUPPORTED, "iconv_open(\"%s\", \"UTF-8\") failed", options->iconv);
	if (operands->count > 1)
		die(EXIT_SYNTAX, "rsync: a server receives into one destination, not into %zu", operands->count);
	if (module)
		module->dest.root = attr_source_real_root(module->source);
	/* A list that the client wants to see as we have understood it: nothing is written. */
	int code = receiver_pull_main(options, &peer, options->list_only ? NULL : destination);

	*total_size = stats.total_size;
	return code;
}

noreturn void server_run(struct server *server)
{
	struct wire *wire = server->session.wire;
	uint64_t total_size;
	int code;

	log_set_role(server->options->sender ? "sender" : "Receiver");
	/* -c needs a digest for the list (doc/protocol/02-file-list.md section 2.11). */
	if (!server->startup_error && options_lack_list_digest(server->options)) {
		if (!server->module)
			die(EXIT_UNSUPPORTED, OPTIONS_NO_LIST_DIGEST);
		server->startup_error = OPTIONS_NO_LIST_DIGEST;
		server->startup_error_is_bare = true;
		server->startup_code = EXIT_UNSUPPORTED;
	}
	server->names_fd = -1;
	open_names_file(server);
	if (server->options->sender) {
		copy_as_assume(server->options);
	} else if (!server->startup_error) {
		/* An option that a receiver does not have. */
		server->startup_error = options_receiving_lack(server->options);
		server->startup_code = EXIT_UNSUPPORTED;
	}
	set_up(server);
	if (server->startup_error) {
		bool is_bare = server->startup_error_is_bare || !strncmp(server->startup_error, "ERROR: ", 7);

		log_error("%s%s", is_bare ? "" : "rsync: ", server->startup_error);
		log_lines(L_ERROR, server->startup_output);
		wire_flush(wire);
		/* Closing with unread input would reset the connection, and the text with it. A client that sends is asked to
		 * end. */
		if (server->session.is_sender)
			wire_drain(wire, REFUSAL_GRACE_SECONDS);
		exit_with(server->startup_code);
	}
	/* Errors in them are reported to the client. */
	if (server->module)
		read_rules(server);
	if (server->options->sender)
		server_send(server);
	copy_as_assume(server->options);
	code = receive(server, &total_size);
	finish(server, code, total_size);
}

/* --- over a remote shell --- */

/* Standard output carries the protocol. */
static void emit_as_error(void *sink_void, enum log_kind kind, const char *text, size_t length)
{
	const struct log_sink *sink = sink_void;

	sink->emit(sink->context, kind == L_INFO || kind == L_CLIENT ? L_WARNING : kind, text, length);
}

noreturn void server_main(struct options *options)
{
	struct server server = { .options = options };
	struct log_file log;
	struct log_sink sink;

	log_set_role("server");
	sink = log_set_sink((struct log_sink){ emit_as_error, &sink });
	server.session.wire = wire_new(STDIN_FILENO, STDOUT_FILENO);
	server.session.max_alloc = options->max_alloc;
	session_limit_memory(&server.session);
	wire_budget(server.session.wire)->look = wire_check_peer;
	wire_budget(server.session.wire)->context = server.session.wire;
	server.ids = fs_ids_new(NULL, NULL);
	if (options->secluded_args) {
		struct args words = { NULL, 0 };
		struct charset *charset;
		char *error;
		int code;

		args_read_secluded(server.session.wire, &words);
		charset = options->iconv ? charset_new(options->iconv) : NULL;
		args_convert(&words, charset, false);
		charset_free(charset);
		args_prepend(&words, "rsync");
		if (options_parse_secluded(options, (int)words.count, words.items, NULL, &error, &code) != OPTIONS_OK)
			die(code, "rsync: on remote machine: %s", error);
		/* Inside of a confining root names are taken as they are. There is one destination. */
		if (!options->confine_root) {
			struct args patterns = options->operands;
			struct expansion_cost cost = { .budget = wire_budget(server.session.wire) };

			options->operands = (struct args){ NULL, 0 };
			for (size_t i = 0; i < patterns.count; i++)
				expand_own(patterns.items[i], options->sender ? SIZE_MAX : 1, &cost, &options->operands);
			args_free(&patterns);
		}
		args_free(&words);
	}
	if (options->log_file)
		log_file_copy(&log, options->log_file, options_link_flag(options));
	item_lines_init(&server.lines, options);
	read_rules(&server);
	server_run(&server);
}
