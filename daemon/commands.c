/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The commands of a module: early, pre-xfer and post-xfer exec, and the name converter (doc/protocol/07-daemon.md
 * sections 5.14 and 9). They are forked before the session is confined; those that get the request wait for it.
 */
#include "daemon/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/roots.h"
#include "daemon/session.h"
#include "daemon/talk.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/process.h"

#define REQUEST_SIZE_MAX (64u << 20)
#define KILLED_STATUS 256 /* what others show for a command that died of a signal */
#define OUTPUT_MAX 5119 /* of pre-xfer exec: what a message to the client holds */
#define LINE_MAX_LENGTH 1023

struct converter {
	int request_fd; /* what the client asked for, until it has been delivered */
	int to_fd, from_fd;
};

static char *expand_command(const char *command)
{
	struct strbuf expanded = STRBUF_INIT;
	char *bad = NULL;

	if (!*command || getenv("RSYNC_NO_XFER_EXEC"))
		return NULL;
	if (!config_expand_command(command, &expanded, &bad))
		die(EXIT_UNSUPPORTED, "refusing to run shell hook: %s holds a shell metacharacter", bad);
	return strbuf_detach(&expanded);
}

static void set_number(const char *name, int number)
{
	char text[32];

	snprintf(text, sizeof text, "%d", number);
	setenv(name, text, 1);
}

void commands_expand(struct daemon_session *session)
{
	const struct module *module = session->module;

	if (*module->early_exec || *module->pre_xfer_exec || *module->post_xfer_exec || *module->name_converter)
		set_number("RSYNC_PID", (int)getpid());
	session->commands = (struct commands){
		.early = expand_command(module->early_exec), .pre_xfer = expand_command(module->pre_xfer_exec),
		.post_xfer = expand_command(module->post_xfer_exec), .converter = expand_command(module->name_converter),
	};
}

static noreturn void command_run(const struct daemon_session *session, const char *command)
{
	const char *shell = getenv("RSYNC_SHELL");
	sigset_t none;

	/* The limit that the session has set itself is no concern of the operator's commands. */
	session_set_limit(RLIMIT_CORE, session->core_size);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execl(shell ? shell : "/bin/sh", shell ? shell : "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static void command_detach(bool output_too)
{
	int fd = fs_operator_open("/dev/null", O_RDWR, 0);

	if (fd < 0 || dup2(fd, 0) < 0 || (output_too && dup2(fd, 1) < 0))
		_exit(1);
}

/* --- the request: its length, then NUL-terminated "NAME=VALUE" strings --- */

static void add_argument(struct strbuf *out, size_t *number, const char *value)
{
	strbuf_addf(out, "RSYNC_ARG%zu=%s", (*number)++, value);
	strbuf_add_char(out, 0);
}

static int command_send_request(int fd, const struct daemon_session *session)
{
	struct strbuf text = STRBUF_INIT;
	char *request = session_request(session);
	size_t number = 0;
	int result;

	strbuf_addf(&text, "RSYNC_REQUEST=%s", *request ? request : "(NONE)");
	strbuf_add_char(&text, 0);
	for (size_t i = 0; i < session->words.count; i++)
		add_argument(&text, &number, session->words.items[i]);
	add_argument(&text, &number, ".");
	for (size_t i = 0; i < session->options.operands.count; i++)
		add_argument(&text, &number, session->options.operands.items[i]);
	result = fs_write_all(fd, &text.length, sizeof text.length);
	if (result == 0)
		result = fs_write_all(fd, text.data, text.length);
	strbuf_free(&text);
	free(request);
	return result;
}

static void command_receive_request(int fd)
{
	size_t length, at = 0;
	char *text;

	/* The session may end before it knows what to do. */
	if (fs_read_full(fd, &length, sizeof length) != (ssize_t)sizeof length || length > REQUEST_SIZE_MAX)
		_exit(1);
	text = xmalloc(length + 1);
	if (fs_read_full(fd, text, length) != (ssize_t)length)
		_exit(1);
	while (at < length) {
		putenv(text + at);
		at += strlen(text + at) + 1;
	}
	close(fd);
}

/* --- the session's part --- */

static noreturn void refuse_start(struct daemon_session *session, const char *what)
{
	log_errno(L_ERROR, errno, "%s", what);
	session_refuse(session, "%s", what);
}

/* --- early exec --- */

void hook_run_early(struct daemon_session *session)
{
	const struct strbuf *bytes = &session->early_input;
	int input[2];
	pid_t child;

	if (!session->commands.early)
		return;
	if (pipe2(input, O_CLOEXEC) < 0 || (child = fork()) < 0)
		refuse_start(session, "early exec preparation failed");
	if (child == 0) {
		command_detach(session->over_shell);
		if (dup2(input[0], 0) < 0)
			_exit(1);
		setenv("RSYNC_REQUEST", "(NONE)", 1);
		command_run(session, session->commands.early);
	}
	close(input[0]);
	/* A pipe takes it at once; a command that does not read it need not. */
	if (bytes->length && fs_write_all(input[1], bytes->data, bytes->length) < 0 && errno != EPIPE)
		log_errno(L_ERROR, errno, "cannot hand on the early input");
	close(input[1]);
	if (process_wait(child) != 0) {
		log_error("rsync: [%s] early exec failed", log_role());
		session_refuse(session, "early exec failed");
	}
}

/* --- pre-xfer exec: started before the process is confined, run once the request is known --- */

void hook_start_pre_xfer(struct daemon_session *session)
{
	struct commands *commands = &session->commands;
	int request[2], output[2];

	if (!commands->pre_xfer)
		return;
	if (pipe2(request, O_CLOEXEC) < 0 || pipe2(output, O_CLOEXEC) < 0 || (commands->pre_xfer_pid = fork()) < 0)
		refuse_start(session, "pre-xfer exec preparation failed");
	if (commands->pre_xfer_pid == 0) {
		close(request[1]);
		command_receive_request(request[0]);
		command_detach(false);
		if (dup2(output[1], 1) < 0)
			_exit(1);
		command_run(session, session->commands.pre_xfer);
	}
	close(request[0]);
	close(output[1]);
	commands->request_fd = request[1];
	commands->output_fd = output[0];
}

void hook_finish_pre_xfer(struct daemon_session *session)
{
	struct commands *commands = &session->commands;
	struct strbuf output = STRBUF_INIT;
	char bytes[1024];
	ssize_t got;
	int status;

	if (!commands->pre_xfer)
		return;
	if (command_send_request(commands->request_fd, session) < 0)
		log_errno(L_ERROR, errno, "cannot send the request to pre-xfer exec");
	close(commands->request_fd);
	/* Drops CRs before LFs, and everything beyond the size of a message. */
	while ((got = read(commands->output_fd, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR))
		for (ssize_t i = 0; i < got && output.length < OUTPUT_MAX; i++) {
			if (bytes[i] == '\n' && output.length && output.data[output.length - 1] == '\r')
				strbuf_truncate(&output, output.length - 1);
			strbuf_add_char(&output, bytes[i]);
		}
	close(commands->output_fd);
	status = process_wait(commands->pre_xfer_pid);
	if (status != 0) {
		session_set_refusal(session, xasprintf("pre-xfer exec returned failure (%d)%s",
						       WIFEXITED(status) ? status : KILLED_STATUS, output.length ? ":" : ""),
				    EXIT_UNSUPPORTED);
		session->refusal_output = xstrdup(strbuf_text(&output));
	}
	strbuf_free(&output);
}

/* --- post-xfer exec: the process that has been the session so far waits for the one that is it from now on --- */

void hook_fork_post_xfer(struct daemon_session *session)
{
	sigset_t signals = session_ending_signals(), before;
	pid_t child, hook, ended;
	siginfo_t info;
	int status;

	if (!session->commands.post_xfer)
		return;
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	child = fork();
	if (child < 0)
		refuse_start(session, "fork failed");
	if (child == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		return;
	}
	/* The client's connection ends with the session. */
	if (session->over_shell)
		command_detach(true);
	else
		close(session->in_fd);
	log_file_close(session->log);
	/* A signal that is to end the session may go to either process. */
	while ((ended = waitpid(child, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR))
		if (sigwaitinfo(&signals, &info) > 0 && info.si_signo != SIGCHLD)
			kill(child, info.si_signo);
	if (ended != child)
		status = -1;
	set_number("RSYNC_EXIT_STATUS", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	set_number("RSYNC_RAW_STATUS", status);
	hook = fork();
	if (hook == 0) {
		command_detach(session->over_shell);
		command_run(session, session->commands.post_xfer);
	}
	if (hook > 0)
		process_wait(hook);
	exit_set_quiet(true);
	exit_with(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_CRASHED);
}

/* --- the name converter: it answers for the user and group tables (doc/protocol/07-daemon.md section 9) --- */

void converter_start(struct daemon_session *session)
{
	int request[2], to[2], from[2];
	pid_t child;

	if (!session->commands.converter)
		return;
	if (pipe2(request, O_CLOEXEC) < 0 || pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0 || (child = fork()) < 0)
		refuse_start(session, "name-converter exec preparation failed");
	if (child == 0) {
		close(request[1]);
		close(to[1]);
		close(from[0]);
		command_receive_request(request[0]);
		if (dup2(to[0], 0) < 0 || dup2(from[1], 1) < 0)
			_exit(1);
		command_run(session, session->commands.converter);
	}
	close(request[0]);
	close(to[0]);
	close(from[1]);
	session->converter = xcalloc(1, sizeof *session->converter);
	*session->converter = (struct converter){ request[1], to[1], from[0] };
}

void converter_deliver(struct daemon_session *session)
{
	struct converter *converter = session->converter;

	if (!converter)
		return;
	if (command_send_request(converter->request_fd, session) < 0)
		log_errno(L_ERROR, errno, "cannot start the name converter");
	close(converter->request_fd);
	converter->request_fd = -1;
}

char *converter_ask(void *context, const char *kind, const char *text)
{
	struct converter *converter = context;
	char line[LINE_MAX_LENGTH + 2];
	bool wants_id = !strcmp(kind, "usr") || !strcmp(kind, "grp");
	size_t have = 0;
	uint32_t id;
	int length;

	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f) {
			log_error("a name with a control byte is not given to the name converter");
			return NULL;
		}
	length = snprintf(line, sizeof line, "%s %s\n", kind, text);
	if (length < 0 || length > LINE_MAX_LENGTH)
		die(EXIT_UNSUPPORTED, "request to the name converter is too long");
	if (fs_write_all(converter->to_fd, line, (size_t)length) < 0)
		die(EXIT_SOCKETIO, "Connection to name-converter failed.");
	/* One line: the command may have ended, or its answer may not fit. */
	do
		if (have == sizeof line || fs_read_full(converter->from_fd, line + have, 1) != 1)
			return NULL;
	while (line[have++] != '\n');
	line[have - 1] = 0;
	/* A text that only starts like a number would become somebody's id (S-112). */
	return !*line || (wants_id && !identity_parse(line, &id)) ? NULL : xstrdup(line);
}
