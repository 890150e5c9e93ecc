/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finding what a session would say by having a process do the same. */
#include <errno.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/check_private.h"
#include "daemon/roots.h"
#include "fs/file.h"
#include "fs/socket_options.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options/refuse.h"

#define SAID_MAX (64 << 10)

static void emit(void *context, enum log_kind kind, const char *text, size_t length)
{
	(void)kind;
	if (fs_write_all(*(const int *)context, text, length) < 0)
		_exit(EXIT_IPC);
}

static noreturn void work_and_tell(void (*work)(const void *), const void *context, int fd)
{
	log_set_sink((struct log_sink){ emit, &fd });
	exit_set_quiet(true);
	work(context);
	_exit(EXIT_OK);
}

static void try(void (*work)(const void *context), const void *context, struct strbuf *said)
{
	int ends[2], status = -1;
	pid_t pid;

	if (pipe(ends) < 0)
		die(EXIT_IPC, "cannot try: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		die(EXIT_IPC, "cannot try: %s", strerror(errno));
	if (pid == 0)
		work_and_tell(work, context, ends[1]);
	close(ends[1]);
	if (fs_read_all(ends[0], SAID_MAX, said) < 0)
		strbuf_add_string(said, "too much is wrong with it to be told here\n");
	close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status && !said->length)
		strbuf_addf(said, "the attempt ended with status %d\n", status);
}

/* --- what is tried --- */

struct rules_of {
	const struct daemon_session *session;
	size_t parameter;
};

static void load_rules(const void *context)
{
	const struct rules_of *rules = context;
	struct daemon_session session = *rules->session;

	rules_load_parameter(&session, rules->parameter);
}

void check_try_rules(const struct daemon_session *session, size_t parameter, struct strbuf *said)
{
	const struct rules_of rules = { session, parameter };

	try(load_rules, &rules, said);
}

static void find_refused(const void *context)
{
	refused_options_free(refused_options_new(context, true));
}

void check_try_refused_options(const char *options, struct strbuf *said)
{
	try(find_refused, options, said);
}

static void set_socket_options(const void *context)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		socket_options_apply(fd, context);
}

void check_try_socket_options(const char *options, struct strbuf *said)
{
	try(set_socket_options, options, said);
}

static void bind_sockets(const void *context)
{
	listen_sockets sockets = VEC_INIT;

	listen_bind(context, &sockets);
}

void check_try_binding(const struct listen_request *request, struct strbuf *said)
{
	try(bind_sockets, request, said);
}
