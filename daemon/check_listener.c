/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is wrong with the parameters of the daemon as a whole. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/check_findings.h"
#include "daemon/check_private.h"
#include "fs/operator.h"

__attribute__((format(printf, 4, 5)))
static void complain_global(struct check *check, const char *value, enum config_severity severity, const char *fmt, ...)
{
	struct strbuf text = STRBUF_INIT;
	va_list args;

	va_start(args, fmt);
	strbuf_vaddf(&text, fmt, args);
	va_end(args);
	check_add_at(&check->problems, config_place_of(check->config, value), check->file, severity, strbuf_text(&text));
	strbuf_free(&text);
}

static void check_global_writable(struct check *check, const char *value, const char *what, enum config_severity severity)
{
	char *path = check_known_text(value);

	if (path && !fs_operator_may_write(path))
		complain_global(check, value, severity, "%s %s: %s", what, path, strerror(errno));
	free(path);
}

static void check_socket_options(struct check *check)
{
	const char *value = check->config->globals.socket_options;
	struct strbuf said = STRBUF_INIT;
	char *rest, *line;

	if (*value)
		check_try_socket_options(value, &said);
	if (said.length)
		for (line = strtok_r(said.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			complain_global(check, value, CONFIG_NOTE, "%s", line);
	strbuf_free(&said);
}

/* The port may be in use, by the daemon that the configuration is for: it plays no part here. */
static void check_address(struct check *check)
{
	char *address = check_known_text(check->config->globals.address);
	const struct listen_request request = {
		.address = address, .family = check->options->ip_family, .socket_options = "",
	};
	struct strbuf said = STRBUF_INIT;

	if (address)
		check_try_binding(&request, &said);
	if (said.length)
		complain_global(check, check->config->globals.address, CONFIG_UNSERVED, "address: %.*s",
				(int)strcspn(said.data, "\n"), said.data);
	strbuf_free(&said);
	free(address);
}

/* What the listener opens before anything is given up. It does not start without some, and goes on without others. */
void check_listener(struct check *check)
{
	const struct config *config = check->config;
	const char *log = check->options->log_file ? check->options->log_file : config->defaults.log_file;

	check_global_writable(check, config->globals.pid_file, "pid file", CONFIG_UNSERVED);
	check_global_writable(check, config->globals.control_socket, "control socket", CONFIG_UNSERVED);
	check_global_writable(check, log, "log file", CONFIG_NOTE);
	check_global_writable(check, config->globals.metrics_file, "metrics file", CONFIG_NOTE);
	/* What the command line has takes the place of what the configuration says. */
	if (!check->options->sockopts)
		check_socket_options(check);
	if (!check->options->address)
		check_address(check);
}


/* As the daemon whose rights have been given up. */
void check_motd(struct check *check)
{
	const char *value = check->config->globals.motd_file;
	char *path = check_known_text(value);

	if (path && !check_may_read(path))
		complain_global(check, value, CONFIG_NOTE, "motd file %s: %s", path, strerror(errno));
	free(path);
}
