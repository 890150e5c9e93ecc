/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Making the connection of a client, telling the server what to do, and closing it (doc/protocol/01-session.md
 * sections 2 and 5).
 */
#include "client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/login.h"
#include "client/shell.h"
#include "client/socket.h"
#include "client/words.h"
#include "fs/file.h"
#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/setup.h"

/* --- paths --- */

static char *shell_path(const struct options *options, const char *path, bool we_send)
{
	bool quoted = !options->secluded_args && !options->old_args;
	/* The path that a leading "~" stands for at the other end must not get a name that the list of files does not have. */
	bool keeps_tilde = *path == '~' && !we_send && !options->trust_sender
			   && (options->relative ? !strstr(path, "/./") : !strchr(path, '/'));
	struct strbuf word = STRBUF_INIT;
	char *escaped;

	if (!*path)
		return xstrdup(".");
	if (*path == '-')
		strbuf_add_string(&word, "./");
	if (quoted && keeps_tilde)
		strbuf_add_char(&word, '\\');
	escaped = quoted ? server_word_escape(path, true) : xstrdup(path);
	strbuf_add_string(&word, escaped);
	free(escaped);
	return strbuf_detach(&word);
}

/* A daemon takes " MODULE/" for the start of another argument, as its oldest clients meant it: a blank in brackets is none. */
static char *daemon_path(const struct options *options, const char *path, const char *module)
{
	struct strbuf word = STRBUF_INIT;
	size_t length = strlen(module);

	if (strcmp(path, module) == 0) {
		strbuf_addf(&word, "%s/", path);
		return strbuf_detach(&word);
	}
	if (*path == '-')
		strbuf_add_string(&word, "./");
	for (; *path; path++) {
		if (*path == ' ' && !options->old_args && strncmp(path + 1, module, length) == 0 && path[1 + length] == '/')
			strbuf_add_string(&word, "[ ]");
		else
			strbuf_add_char(&word, *path);
	}
	return word.data ? strbuf_detach(&word) : xstrdup(".");
}

/* --- words: those that are seen, and those of a secluded block --- */

struct server_line { struct args seen, secluded; };

/* The paths stand behind a "." word; module NULL: they are a remote shell's. */
static void make_line(struct server_line *line, const struct options *options, int protocol, bool we_send,
		      const struct args *paths, const char *module)
{
	struct args words = { NULL, 0 }, *last = options->secluded_args ? &line->secluded : &line->seen;
	size_t visible;

	*line = (struct server_line){ { NULL, 0 }, { NULL, 0 } };
	options_server_words(options, we_send, protocol, &words);
	visible = options->secluded_args ? server_words_visible(&words) : words.count;
	if (!options->secluded_args)
		server_words_escape(options, &words);
	for (size_t i = 0; i < words.count; i++)
		args_append(i < visible ? &line->seen : &line->secluded, words.items[i]);
	args_free(&words);
	args_append(last, ".");
	for (size_t i = 0; i < paths->count; i++)
		args_take(last, module ? daemon_path(options, paths->items[i], module)
				       : shell_path(options, paths->items[i], we_send));
}

/* --- connecting --- */

static void make_wire(struct connection *connection, const struct options *options)
{
	connection->wire = wire_new(connection->in_fd, connection->out_fd);
	wire_settings(connection->wire)->timeout = options->timeout;
	wire_set_bwlimit(connection->wire, options->bwlimit);
	wire_settings(connection->wire)->stop_at = options->stop_at;
}

struct charset *client_charset(const struct options *options)
{
	struct charset *charset;
	char *name;

	if (!options->iconv)
		return NULL;
	name = xstrndup(options->iconv, strcspn(options->iconv, ","));
	charset = charset_new(name);
	if (!charset)
		die(EXIT_UNSUPPORTED, "iconv_open(\"UTF-8\", \"%s\") failed", name);
	free(name);
	return charset;
}

/* What is left to send of the line, if anything; and the end of it. */
static void finish_line(struct connection *connection, const struct options *options, struct server_line *line)
{
	if (options->secluded_args) {
		struct charset *charset = client_charset(options);

		log_words(options, "protected args", &line->secluded);
		args_convert(&line->secluded, charset, true);
		charset_free(charset);
		/* The placeholder program name (doc/protocol/01-session.md section 5.4). */
		args_prepend(&line->secluded, "rsync");
		args_write(connection->wire, &line->secluded, true);
	}
	args_free(&line->seen);
	args_free(&line->secluded);
}

/* --contimeout has passed on the way to a daemon that a command leads to (doc/protocol/09-since-3.5.0.md section 4.1). */
static void expire(void *role)
{
	log_set_role(role);
	log_error("[%s] connection timed out -- exiting", (const char *)role);
	exit_with(EXIT_CONTIMEOUT);
}

static void connect_daemon(struct connection *connection, const struct options *options, const struct remote *remote,
			   const struct args *paths, bool we_send)
{
	static char sender[] = "sender", receiver[] = "Receiver";
	bool is_bounded = remote->kind == REMOTE_DAEMON_OVER_SHELL && options->contimeout > 0;
	int64_t end = is_bounded ? clock_nanoseconds() + options->contimeout * CLOCK_SECOND : 0;

	connection->is_daemon = true;
	if (remote->kind == REMOTE_DAEMON_OVER_SHELL) {
		struct args words = { NULL, 0 };

		args_append(&words, "--server");
		args_append(&words, "--daemon");
		args_append(&words, ".");
		shell_start(connection, options, remote, &words);
		args_free(&words);
	} else
		connection->in_fd = connection->out_fd = socket_dial(options, remote);
	make_wire(connection, options);
	wire_set_deadline(connection->wire, end, expire, we_send ? sender : receiver);
	char *digests = daemon_greet(connection, options), *module = xstrndup(remote->path, strcspn(remote->path, "/"));
	struct server_line line;

	/* The request is made, and logged, before the login, and sent after it. */
	make_line(&line, options, connection->protocol, we_send, paths, module);
	free(module);
	log_words(options, "sending daemon args", &line.seen);
	daemon_log_in(connection, options, remote, digests);
	wire_set_deadline(connection->wire, 0, NULL, NULL);
	args_write(connection->wire, &line.seen, session_caps_of(connection->protocol).nul_args);
	finish_line(connection, options, &line);
	wire_flush(connection->wire);
	free(digests);
}

void client_set_up(struct session *session, const struct connection *connection, const struct options *options)
{
	struct setup_request request;
	bool negotiates;

	session->wire = connection->wire;
	session->peer_version = connection->peer_version;
	session->max_alloc = options->max_alloc;
	session_set_protocol(session, connection->protocol);
	session_limit_memory(session);
	options_setup_request(options, &request);
	if (!connection->is_daemon)
		setup_exchange_versions(session, &request);
	setup_client(session, &request);
	negotiates = session->varint_flags;
	if (options->levels.debug[DEBUG_PROTO])
		log_info("(Client) Protocol versions: remote=%d, negotiated=%d", session->peer_version, session->protocol);
	if (options->iconv && options->levels.debug[DEBUG_ICONV] > 1)
		log_info("[%s] charset: %.*s", log_role(), (int)strcspn(options->iconv, ","), options->iconv);
	/* Which algorithms the two ends have come to. */
	if (options->levels.debug[DEBUG_NSTR])
		log_info("Client%s checksum: %s", negotiates && !options->checksum_choice ? " negotiated" : "",
			 algorithm_name(CHOICE_CHECKSUM, (int)session->xfer_sum));
	if (options->levels.debug[DEBUG_NSTR] && session->compress != COMPRESS_NONE)
		log_info("Client%s compress: %s (level %d)", negotiates && !options->compress_choice ? " negotiated" : "",
			 algorithm_name(CHOICE_COMPRESS, (int)session->compress), session->compress_level);
	setup_start_mux(session, options->remove_source_files);
}

/* --- the end --- */

static int close_and_wait(struct connection *connection, int code)
{
	/* After a failure of ours, a shell that ends because the connection does has nothing to add. That ends with the
	 * process, because other threads may be using it. */
	if (!shell_has_finished(code))
		return connection->shell_pid ? shell_end(connection, code) : code;
	fs_close(connection->in_fd);
	if (connection->out_fd >= 0 && connection->out_fd != connection->in_fd)
		close(connection->out_fd);
	connection->in_fd = connection->out_fd = -1;
	return connection->shell_pid ? shell_end(connection, code) : code;
}

/* Exit hook: the last word on the exit code is the remote shell's, if it had more to complain of. */
static void end_connection(void *context, int code)
{
	int theirs = close_and_wait(context, code);

	if (theirs != code)
		exit_with(theirs);
}

void client_adopt(struct connection *connection, const struct options *options)
{
	exit_push_hook(end_connection, connection);
	make_wire(connection, options);
}

void client_connect(struct connection *connection, struct options *options, const struct remote *remote,
		    const struct args *paths, bool we_send)
{
	*connection = (struct connection){ .in_fd = -1, .out_fd = -1 };
	exit_push_hook(end_connection, connection);
	if (remote->kind == REMOTE_SHELL) {
		struct server_line line;

		make_line(&line, options, options->max_protocol, we_send, paths, NULL);
		shell_start(connection, options, remote, &line.seen);
		make_wire(connection, options);
		finish_line(connection, options, &line);
	} else
		connect_daemon(connection, options, remote, paths, we_send);
}

int client_disconnect(struct connection *connection, int code)
{
	exit_remove_hook(end_connection, connection);
	code = close_and_wait(connection, code);
	wire_free(connection->wire);
	connection->wire = NULL;
	return code;
}
