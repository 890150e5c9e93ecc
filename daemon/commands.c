/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the commands of a module have in common: their text, the shell, and the request that some are told of later. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/session.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

#define REQUEST_SIZE_MAX (64u << 20)

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

void commands_expand(struct daemon_session *session)
{
	const struct module *module = session->module;
	char pid[32];

	snprintf(pid, sizeof pid, "%d", (int)getpid());
	if (*module->early_exec || *module->pre_xfer_exec || *module->post_xfer_exec || *module->name_converter)
		setenv("RSYNC_PID", pid, 1);
	session->commands = (struct commands){
		.early = expand_command(module->early_exec), .pre_xfer = expand_command(module->pre_xfer_exec),
		.post_xfer = expand_command(module->post_xfer_exec), .converter = expand_command(module->name_converter),
	};
}

/* The limit that the session has set itself is no concern of the operator's commands. */
static void restore_core_files(const struct daemon_session *session)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) < 0)
		return;
	limit.rlim_cur = session->core_size;
	setrlimit(RLIMIT_CORE, &limit);
}

void command_run(const struct daemon_session *session, const char *command)
{
	const char *shell = getenv("RSYNC_SHELL");
	sigset_t none;

	restore_core_files(session);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execl(shell ? shell : "/bin/sh", shell ? shell : "sh", "-c", command, (char *)NULL);
	_exit(127);
}

void command_detach(bool output_too)
{
	int fd = fs_operator_open("/dev/null", O_RDWR, 0);

	if (fd < 0 || dup2(fd, 0) < 0 || (output_too && dup2(fd, 1) < 0))
		_exit(1);
}

/* --- the request: its length, then NUL-terminated "NAME=VALUE" strings --- */

static void add_variable(struct strbuf *out, const char *name, const char *value)
{
	strbuf_addf(out, "%s=%s", name, value);
	strbuf_add_char(out, 0);
}

static void add_argument(struct strbuf *out, size_t *number, const char *value)
{
	char name[32];

	snprintf(name, sizeof name, "RSYNC_ARG%zu", (*number)++);
	add_variable(out, name, value);
}

int command_send_request(int fd, const struct daemon_session *session)
{
	struct strbuf text = STRBUF_INIT;
	char *request = session_request(session);
	size_t number = 0;
	int result;

	add_variable(&text, "RSYNC_REQUEST", *request ? request : "(NONE)");
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

static bool read_whole(int fd, void *bytes, size_t length)
{
	char *at = bytes;
	ssize_t got = 1;

	for (; length; at += got, length -= (size_t)got) {
		do
			got = read(fd, at, length);
		while (got < 0 && errno == EINTR);
		if (got <= 0)
			return false;
	}
	return true;
}

void command_receive_request(int fd)
{
	size_t length, at = 0;
	char *text;

	/* The session may end before it knows what to do. */
	if (!read_whole(fd, &length, sizeof length) || length > REQUEST_SIZE_MAX)
		_exit(1);
	text = xmalloc(length + 1);
	if (!read_whole(fd, text, length))
		_exit(1);
	while (at < length) {
		putenv(text + at);
		at += strlen(text + at) + 1;
	}
	close(fd);
}
