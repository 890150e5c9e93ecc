/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recording problems of a value of the configuration, inspecting the file that it names, trying its effect in a process. */
#include "daemon/check_findings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/file.h"
#include "fs/operator.h"
#include "lib/exit.h"
#include "lib/log.h"

#define OUTPUT_MAX (64 << 10)

/* --- problems --- */

void check_complain(struct subject *subject, const char *value, enum config_severity severity, const char *fmt, ...)
{
	const struct module *module = subject->module;
	const struct config *config = subject->check->config;
	const struct config_place *place = config_place_of(config, value);
	struct strbuf text = STRBUF_INIT;
	va_list args;

	if (module)
		strbuf_addf(&text, "module \"%s\": ", module->name);
	va_start(args, fmt);
	strbuf_vaddf(&text, fmt, args);
	va_end(args);
	if (!place && module)
		place = config_place_of(config, module->name);
	config_problem_add(&subject->check->problems, place ? place->file : subject->check->file, place ? place->line : 0,
			   severity, "%s", strbuf_text(&text));
	strbuf_free(&text);
}

void check_complain_of(struct subject *subject, const char *value, enum config_severity severity, const char *what,
		       struct strbuf *output)
{
	char *rest, *line;

	if (output->length)
		for (line = strtok_r(output->data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			check_complain(subject, value, severity, "%s%s%s", what ? what : "", what ? ": " : "", line);
	strbuf_free(output);
}

/* --- values --- */

char *check_known_text(const char *value)
{
	char *text = config_text(value);

	if (*text && !strstr(text, "%RSYNC_"))
		return text;
	free(text);
	return NULL;
}

bool check_may_read(const char *path)
{
	int fd = fs_operator_open(path, O_RDONLY | O_NONBLOCK, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void check_writable(struct subject *subject, const char *value, const char *what, enum config_severity severity)
{
	char *path = check_known_text(value);

	if (path && !fs_operator_may_write(path))
		check_complain(subject, value, severity, "%s %s: %s", what, path, strerror(errno));
	free(path);
}

/* --- attempts --- */

static void emit(void *context, enum log_kind kind, const char *text, size_t length)
{
	(void)kind;
	if (fs_write_all(*(const int *)context, text, length) < 0)
		_exit(EXIT_IPC);
}

static noreturn void work_and_report(void (*work)(const void *), const void *context, int fd)
{
	log_set_sink((struct log_sink){ emit, &fd });
	exit_set_quiet(true);
	work(context);
	_exit(EXIT_OK);
}

void check_try(void (*work)(const void *context), const void *context, struct strbuf *output)
{
	int ends[2], status = -1;
	pid_t pid;

	if (pipe(ends) < 0)
		die(EXIT_IPC, "cannot try: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		die(EXIT_IPC, "cannot try: %s", strerror(errno));
	if (pid == 0)
		work_and_report(work, context, ends[1]);
	close(ends[1]);
	if (fs_read_all(ends[0], OUTPUT_MAX, output) < 0)
		strbuf_add_string(output, "too much is wrong with it to be told here\n");
	close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status && !output->length)
		strbuf_addf(output, "the attempt ended with status %d\n", status);
}
