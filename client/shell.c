/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The remote shell: its command line, the child that runs it, and what its end says (doc/protocol/01-session.md
 * sections 2.1 and 10.10).
 */
#include "client/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/words.h"
#include "lib/alloc.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/process.h"

enum {
	PEER_GONE_MS = 3000,     /* a shell that has closed its end is about to exit: so long it may take */
	OTHER_MS = 300,          /* and so long after any other failure */
	POLL_MS = 10,
	PIPE_SIZE = 256 * 1024,
};

/* --- the command --- */

/* The next word of a command: blanks end it, quotes of both kinds group, doubled ones inside of a group are themselves. */
static bool next_word(const char **text, struct strbuf *word)
{
	char quote = '\0';

	*text += strspn(*text, " ");
	if (!**text)
		return false;
	for (; **text && (quote || **text != ' '); (*text)++) {
		char c = **text;

		if (quote && c == quote && (*text)[1] == quote)
			strbuf_add_char(word, *(*text)++);
		else if (c == quote)
			quote = '\0';
		else if (!quote && (c == '\'' || c == '"'))
			quote = c;
		else
			strbuf_add_char(word, c);
	}
	if (quote)
		die(EXIT_SYNTAX, "Missing trailing-%c in remote-shell command.", quote);
	return true;
}

/* --- the child --- */

static void start(struct connection *connection, const struct args *words, const char *port)
{
	int to[2], from[2], report[2], error;
	ssize_t got;
	pid_t child;

	/* Pipes, not a socket: bash takes a socket for rshd's, and one with unread bytes would not end in an end of file. */
	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0)
		die_errno(EXIT_IPC, errno, "cannot make a connection to the remote shell");
	/* More than the default makes fewer switches between the processes; the default will do. */
	fcntl(to[1], F_SETPIPE_SZ, PIPE_SIZE);
	fcntl(from[0], F_SETPIPE_SZ, PIPE_SIZE);
	fflush(NULL);
	child = fork();
	if (child < 0)
		die_errno(EXIT_IPC, errno, "fork");
	if (child == 0) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		if (port)
			setenv("RSYNC_PORT", port, 1);
		if (!getenv("SSH_ASKPASS"))
			unsetenv("DISPLAY");
		if (dup2(to[0], 0) >= 0 && dup2(from[1], 1) >= 0)
			execvp(words->items[0], words->items);
		error = errno;
		if (write(report[1], &error, sizeof error) < 0)
			_exit(EXIT_STREAMIO);
		_exit(EXIT_IPC);
	}
	close(to[0]);
	close(from[1]);
	close(report[1]);
	connection->in_fd = from[0];
	connection->out_fd = to[1];
	connection->shell_pid = child;
	/* The error that kept the command from being run; nothing comes when it runs. */
	do {
		got = read(report[0], &error, sizeof error);
	} while (got < 0 && errno == EINTR);
	close(report[0]);
	if (got == (ssize_t)sizeof error)
		die_errno(EXIT_IPC, error, "Failed to exec %s", words->items[0]);
}

void shell_start(struct connection *connection, const struct options *options, const struct remote *remote,
		 const struct args *server_words)
{
	struct args words = { NULL, 0 };
	const char *environment = getenv("RSYNC_RSH"), *command = environment && *environment ? environment : "ssh";
	bool named = false;
	char port[16];

	snprintf(port, sizeof port, "%d", remote->port ? remote->port : options->port);
	if (options->rsh)
		command = options->rsh;
	struct strbuf word = STRBUF_INIT;

	while (next_word(&command, &word)) {
		args_append(&words, strbuf_text(&word));
		strbuf_reset(&word);
	}
	strbuf_free(&word);
	if (!words.count)
		die(EXIT_SYNTAX, "the remote-shell command is empty");
	/* "-l NAME" of the user's own, which then stands for the login; the user before the "@" is the daemon's. */
	for (size_t i = 1; remote->kind == REMOTE_DAEMON_OVER_SHELL && i + 1 < words.count; i++)
		named |= strcmp(words.items[i], "-l") == 0 && words.items[i + 1][0] != '-';
	if (remote->user && !named) {
		args_append(&words, "-l");
		args_append(&words, remote->user);
	}
	const char *slash = strrchr(words.items[0], '/');

	if (options->ip_family && strcmp(slash ? slash + 1 : words.items[0], "ssh") == 0)
		args_append(&words, options->ip_family == 4 ? "-4" : "-6");
	char *ascii = remote->kind == REMOTE_DAEMON_OVER_SHELL ? idn_to_ascii(remote->host, false) : NULL;

	args_append(&words, ascii ? ascii : remote->host);
	free(ascii);
	args_append(&words, options->rsync_path ? options->rsync_path : "rsync");
	for (size_t i = 0; i < server_words->count; i++)
		args_append(&words, server_words->items[i]);
	client_log_command(options, options->rsh ? options->rsh : getenv("RSYNC_RSH"), remote, remote->path, &words);
	log_words(options, "opening connection using", &words);
	start(connection, &words, remote->kind == REMOTE_DAEMON_OVER_SHELL ? port : NULL);
	args_free(&words);
}

/* --- its end --- */

bool shell_has_finished(int code)
{
	return code == EXIT_OK || code == EXIT_PARTIAL || code == EXIT_VANISHED || code == EXIT_DEL_LIMIT;
}

int shell_end(struct connection *connection, int code)
{
	pid_t child = connection->shell_pid;
	int status, waited, theirs;

	connection->shell_pid = 0;
	if (shell_has_finished(code))
		waited = status = process_wait(child);
	else {
		/* After a failure the shell gets a while; one that goes on is left alone. */
		int milliseconds = code == EXIT_STREAMIO ? PEER_GONE_MS : OTHER_MS;
		const struct timespec pause = { 0, POLL_MS * 1000000L };
		pid_t got;

		while ((got = waitpid(child, &status, WNOHANG)) == 0 && milliseconds > 0) {
			nanosleep(&pause, NULL);
			milliseconds -= POLL_MS;
		}
		waited = got == child ? 0 : -1;
	}
	if (waited < 0)
		return code;
	theirs = connection->ignores_shell ? EXIT_OK : WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_STREAMIO;
	return theirs > code ? theirs : code;
}
