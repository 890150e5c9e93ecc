/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands that run before and after a session: early, pre-xfer and post-xfer exec (protocol/07 section 5.14). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/session.h"
#include "daemon/talk.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

#define KILLED_STATUS 256 /* what others show for a command that died of a signal */
#define OUTPUT_MAX 5119 /* of pre-xfer exec: what a message to the client holds */

static noreturn void refuse_start(struct daemon_session *session, const char *what)
{
	log_errno(L_ERROR, errno, "%s", what);
	session_refuse(session, "%s", what);
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

/* --- early exec --- */

static noreturn void be_early(const struct daemon_session *session, const int input[2])
{
	command_detach(session->over_shell);
	if (dup2(input[0], 0) < 0)
		_exit(1);
	setenv("RSYNC_REQUEST", "(NONE)", 1);
	command_run(session, session->commands.early);
}

void hook_run_early(struct daemon_session *session)
{
	const struct strbuf *bytes = &session->early_input;
	int input[2];
	pid_t child;

	if (!session->commands.early)
		return;
	if (pipe2(input, O_CLOEXEC) < 0 || (child = fork()) < 0)
		refuse_start(session, "early exec preparation failed");
	if (child == 0)
		be_early(session, input);
	close(input[0]);
	/* A pipe takes it at once; a command that does not read it need not. */
	if (bytes->length && fs_write_all(input[1], bytes->data, bytes->length) < 0 && errno != EPIPE)
		log_errno(L_ERROR, errno, "cannot hand on the early input");
	close(input[1]);
	if (wait_for(child) != 0) {
		log_error("rsync: [%s] early exec failed", log_role());
		session_refuse(session, "early exec failed");
	}
}

/* --- pre-xfer exec: started before the process is confined, run once the request is known --- */

static noreturn void be_pre_xfer(const struct daemon_session *session, const int request[2], const int output[2])
{
	close(request[1]);
	command_receive_request(request[0]);
	command_detach(false);
	if (dup2(output[1], 1) < 0)
		_exit(1);
	command_run(session, session->commands.pre_xfer);
}

void hook_start_pre_xfer(struct daemon_session *session)
{
	struct commands *commands = &session->commands;
	int request[2], output[2];

	if (!commands->pre_xfer)
		return;
	if (pipe2(request, O_CLOEXEC) < 0 || pipe2(output, O_CLOEXEC) < 0 || (commands->pre_xfer_pid = fork()) < 0)
		refuse_start(session, "pre-xfer exec preparation failed");
	if (commands->pre_xfer_pid == 0)
		be_pre_xfer(session, request, output);
	close(request[0]);
	close(output[1]);
	commands->request_fd = request[1];
	commands->output_fd = output[0];
}

/* What the command writes, up to its end; CRs before LFs are dropped, and so is what no message can hold. */
static void read_output(int fd, struct strbuf *out)
{
	char bytes[1024];
	ssize_t got;

	while ((got = read(fd, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR))
		for (ssize_t i = 0; i < got && out->length < OUTPUT_MAX; i++) {
			if (bytes[i] == '\n' && out->length && out->data[out->length - 1] == '\r')
				strbuf_truncate(out, out->length - 1);
			strbuf_add_char(out, bytes[i]);
		}
}

void hook_finish_pre_xfer(struct daemon_session *session)
{
	struct commands *commands = &session->commands;
	struct strbuf output = STRBUF_INIT;
	int status;

	if (!commands->pre_xfer)
		return;
	if (command_send_request(commands->request_fd, session) < 0)
		log_errno(L_ERROR, errno, "cannot tell pre-xfer exec the request");
	close(commands->request_fd);
	read_output(commands->output_fd, &output);
	close(commands->output_fd);
	status = wait_for(commands->pre_xfer_pid);
	if (status != 0) {
		session->refusal = xasprintf("pre-xfer exec returned failure (%d)%s",
					     WIFEXITED(status) ? status : KILLED_STATUS, output.length ? ":" : "");
		session->refusal_code = EXIT_UNSUPPORTED;
		session->refusal_output = xstrdup(strbuf_text(&output));
	}
	strbuf_free(&output);
}

/* --- post-xfer exec: the process that has been the session so far waits for the one that is it from now on --- */

static void set_number(const char *name, int number)
{
	char text[32];

	snprintf(text, sizeof text, "%d", number);
	setenv(name, text, 1);
}

/* Whoever wants the session to end may tell either process. */
static int wait_for_session(pid_t child, const sigset_t *signals)
{
	siginfo_t info;
	int status;

	for (;;) {
		pid_t ended = waitpid(child, &status, WNOHANG);

		if (ended == child || (ended < 0 && errno != EINTR))
			return ended == child ? status : -1;
		if (sigwaitinfo(signals, &info) > 0 && info.si_signo != SIGCHLD)
			kill(child, info.si_signo);
	}
}

static noreturn void attend(struct daemon_session *session, pid_t child, const sigset_t *signals)
{
	int status;
	pid_t hook;

	/* The client's connection ends with the session. */
	if (session->over_shell) {
		command_detach(true);
	} else {
		close(session->in_fd);
	}
	log_file_close(session->log);
	status = wait_for_session(child, signals);
	set_number("RSYNC_EXIT_STATUS", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	set_number("RSYNC_RAW_STATUS", status);
	hook = fork();
	if (hook == 0) {
		command_detach(session->over_shell);
		command_run(session, session->commands.post_xfer);
	}
	if (hook > 0)
		wait_for(hook);
	exit_set_quiet(true);
	exit_with(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_CRASHED);
}

void hook_fork_post_xfer(struct daemon_session *session)
{
	sigset_t signals, before;
	pid_t child;

	if (!session->commands.post_xfer)
		return;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	child = fork();
	if (child < 0)
		refuse_start(session, "fork failed");
	if (child > 0)
		attend(session, child, &signals);
	sigprocmask(SIG_SETMASK, &before, NULL);
}
