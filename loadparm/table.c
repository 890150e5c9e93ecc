/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parameters and how their values are set. */
#include "loadparm/table.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>

#include "fs/chmod.h"
#include "lib/alloc.h"
#include "loadparm/grammar.h"
#include "loadparm/hosts.h"

#define G(field) .global = true, .offset = offsetof(struct config_globals, field)
#define M(field) .offset = offsetof(struct module, field)

static const struct parameter parameters[] = {
	{ "address", P_STRING, .listener = true, G(address) },
	{ "control socket", P_STRING, .listener = true, G(control_socket) },
	{ "daemon chroot", P_STRING, G(daemon_chroot) },
	{ "daemon gid", P_STRING, G(daemon_gid) },
	{ "daemon uid", P_STRING, G(daemon_uid) },
	{ "listen backlog", P_INTEGER, .listener = true, G(listen_backlog), .low = 1, .high = 65535 },
	{ "max connection rate", P_INTEGER, .listener = true, G(max_connection_rate), .low = 0, .high = 1000000 },
	{ "max connections per host", P_INTEGER, .listener = true, G(max_connections_per_host), .low = 0, .high = 1000000 },
	{ "metrics file", P_STRING, .listener = true, G(metrics_file) },
	{ "minimum rate", P_INTEGER, .listener = true, G(minimum_rate), .low = 0, .high = 1000000000 },
	{ "motd file", P_STRING, G(motd_file) },
	{ "pid file", P_STRING, .listener = true, G(pid_file) },
	{ "port", P_INTEGER, .listener = true, G(port), .low = 1, .high = 65535 },
	{ "proxy protocol", P_BOOL, G(proxy_protocol) },
	{ "proxy protocol hosts", P_STRING, G(proxy_protocol_hosts) },
	{ "socket options", P_STRING, .listener = true, G(socket_options) },

	{ "attr snapshot", P_PATH, M(attr_snapshot) },
	{ "attr snapshot fallback", P_FALLBACK, M(attr_snapshot_fallback) },
	{ "attr snapshot max age", P_INTEGER, M(attr_snapshot_max_age), .low = 0, .high = INT_MAX },
	{ "auth digest", P_STRING, M(auth_digest) },
	{ "auth users", P_STRING, M(auth_users) },
	{ "charset", P_STRING, M(charset) },
	{ "comment", P_STRING, M(comment) },
	{ "cpu limit per session", P_INTEGER, M(cpu_limit), .low = 0, .high = 1000000 },
	{ "dont compress", P_STRING, M(dont_compress) },
	{ "early exec", P_STRING, M(early_exec) },
	{ "exclude", P_STRING, M(exclude) },
	{ "exclude from", P_STRING, M(exclude_from) },
	{ "fake super", P_BOOL, M(fake_super) },
	{ "filter", P_STRING, M(filter) },
	{ "forward lookup", P_BOOL, M(forward_lookup) },
	{ "gid", P_STRING, M(gid) },
	{ "hosts allow", P_STRING, M(hosts_allow) },
	{ "hosts deny", P_STRING, M(hosts_deny) },
	{ "ignore errors", P_BOOL, M(ignore_errors) },
	{ "ignore nonreadable", P_BOOL, M(ignore_nonreadable) },
	{ "incoming chmod", P_STRING, M(incoming_chmod) },
	{ "include", P_STRING, M(include) },
	{ "include from", P_STRING, M(include_from) },
	{ "insecure links", P_BOOL, M(insecure_links) },
	{ "list", P_BOOL, M(list) },
	{ "lock file", P_STRING, M(lock_file) },
	{ "log file", P_STRING, M(log_file) },
	{ "log format", P_STRING, M(log_format) },
	{ "max connections", P_INTEGER, M(max_connections), .low = INT_MIN, .high = 1000000 },
	{ "max connections per host", P_INTEGER, M(max_connections_per_host), .low = 0, .high = 1000000 },
	{ "max verbosity", P_INTEGER, M(max_verbosity), .low = 0, .high = INT_MAX },
	{ "memory limit per session", P_SIZE, M(memory_limit) },
	{ "munge symlinks", P_TRISTATE, M(munge_symlinks) },
	{ "name", P_REFUSED, false, false, 0, 0, 0 },
	{ "name converter", P_STRING, M(name_converter) },
	{ "numeric ids", P_TRISTATE, M(numeric_ids) },
	{ "open noatime", P_TRISTATE, M(open_noatime) },
	{ "outgoing chmod", P_STRING, M(outgoing_chmod) },
	{ "path", P_PATH, M(path) },
	{ "post-xfer exec", P_STRING, M(post_xfer_exec) },
	{ "pre-xfer exec", P_STRING, M(pre_xfer_exec) },
	{ "read only", P_BOOL, M(read_only) },
	{ "real file prefix", P_PATH, M(real_file_prefix) },
	{ "refuse options", P_STRING, M(refuse_options) },
	{ "reverse lookup", P_BOOL, M(reverse_lookup) },
	{ "secrets file", P_STRING, M(secrets_file) },
	{ "strict modes", P_BOOL, M(strict_modes) },
	{ "syslog facility", P_FACILITY, M(syslog_facility) },
	{ "syslog tag", P_STRING, M(syslog_tag) },
	{ "temp dir", P_PATH, M(temp_dir) },
	{ "timeout", P_INTEGER, M(timeout), .low = INT_MIN, .high = INT_MAX },
	{ "transfer logging", P_BOOL, M(transfer_logging) },
	{ "uid", P_STRING, M(uid) },
	{ "use chroot", P_TRISTATE, M(use_chroot) },
	{ "write only", P_BOOL, M(write_only) },
};

#define SIZE_LEAST ((uint64_t)1 << 20)
#define MEMORY_LIMIT ((uint64_t)4 << 30) /* doc/protocol/08-security.md section 3.2 */
#define PARAMETER_COUNT (sizeof parameters / sizeof parameters[0])

const struct parameter *parameter_find(const char *name, bool in_module)
{
	const struct parameter *found = NULL;

	for (size_t i = 0; i < PARAMETER_COUNT; i++)
		if (grammar_same_name(parameters[i].name, name) && (!found || parameters[i].global != in_module))
			found = &parameters[i];
	return found;
}

char *config_keep(struct config *config, const char *text)
{
	char *copy = xstrdup(text);

	vec_push(&config->strings, copy);
	return copy;
}

static char **string_field(void *base, const struct parameter *parameter)
{
	return (char **)((char *)base + parameter->offset);
}

void parameters_set_defaults(struct config *config)
{
	struct module *module = &config->defaults;

	for (size_t i = 0; i < PARAMETER_COUNT; i++)
		if (parameters[i].type == P_STRING || parameters[i].type == P_PATH)
			*string_field(parameters[i].global ? (void *)&config->globals : module, &parameters[i]) =
				config_keep(config, "");
	module->name = config_keep(config, "");
	config->globals.listen_backlog = SOMAXCONN; /* what does not fit is lost: clients hang */
	config->globals.max_connections_per_host = 100; /* a network behind one address has fewer; nobody gets all places */
	config->globals.minimum_rate = 16384;           /* a modem moves it in fifteen seconds */
	module->use_chroot = module->munge_symlinks = module->numeric_ids = module->open_noatime = UNSET;
	module->list = module->read_only = module->reverse_lookup = module->forward_lookup = module->strict_modes = true;
	module->log_format = config_keep(config, "%o %h [%a] %m (%u) %f %l");
	module->syslog_tag = config_keep(config, "rsyncd");
	module->syslog_facility = LOG_DAEMON;
	module->lock_file = config_keep(config, "/var/run/rsyncd.lock");
	module->max_verbosity = 1;
	module->memory_limit = MEMORY_LIMIT < SIZE_MAX ? (size_t)MEMORY_LIMIT : SIZE_MAX / 4;
	module->cpu_limit = 600;
	module->timeout = 600; /* doc/protocol/08-security.md section 8: a stalled transfer must not hold its slot for ever */
}

static bool set_bool(void *field, const struct parameter *parameter, const char *text, struct strbuf *why)
{
	bool ok = parameter->type == P_BOOL ? config_parse_bool(text, field) : config_parse_tristate(text, field);

	if (!ok)
		strbuf_addf(why, "badly formed boolean \"%s\" for \"%s\"", text, parameter->name);
	return ok;
}

static bool set_fallback(void *field, const struct parameter *parameter, const char *text, struct strbuf *why)
{
	bool walk = grammar_same_name(text, "walk");

	if (!walk && !grammar_same_name(text, "refuse")) {
		strbuf_addf(why, "\"%s\" for \"%s\" is neither walk nor refuse", text, parameter->name);
		return false;
	}
	*(enum snapshot_fallback *)field = walk ? SNAPSHOT_FALLBACK_WALK : SNAPSHOT_FALLBACK_REFUSE;
	return true;
}

static bool set_size(void *field, const struct parameter *parameter, const char *text, struct strbuf *why)
{
	static const char units[] = "KMG";
	size_t digits = strspn(text, "0123456789");
	const char *unit = text[digits] ? strchr(units, text[digits] & ~0x20) : NULL;
	uint64_t value = digits && digits < 16 ? strtoull(text, NULL, 10) : 0;

	for (const char *step = units; unit && step <= unit; step++)
		value = value <= UINT64_MAX >> 10 ? value << 10 : 0;
	if (text[digits + (unit != NULL)] || value < SIZE_LEAST || value > SIZE_MAX) {
		strbuf_addf(why, "\"%s\" is not a size of the range of \"%s\"", text, parameter->name);
		return false;
	}
	*(size_t *)field = (size_t)value;
	return true;
}

static bool set_facility(void *field, const struct parameter *parameter, const char *text, struct strbuf *why)
{
	(void)parameter;
	if (config_parse_facility(text, field))
		return true;
	strbuf_addf(why, "unknown syslog facility \"%s\"", text);
	return false;
}

static bool set_number(void *field, const struct parameter *parameter, const char *text, struct strbuf *why)
{
	if (config_parse_integer(text, parameter->low, parameter->high, field))
		return true;
	strbuf_addf(why, "\"%s\" is not a number of the range of \"%s\"", text, parameter->name);
	return false;
}

/* Strings that can be judged before any reference in them is expanded. */
static bool check_string(const struct parameter *parameter, const char *text, struct strbuf *why)
{
	bool hosts = parameter->offset == offsetof(struct module, hosts_allow) ||
		     parameter->offset == offsetof(struct module, hosts_deny);

	if (strchr(text, '%'))
		return true;
	if (parameter->global)
		return parameter->offset != offsetof(struct config_globals, proxy_protocol_hosts) ||
		       hosts_list_check(text, why);
	if (hosts)
		return hosts_list_check(text, why);
	if ((parameter->offset == offsetof(struct module, real_file_prefix) ||
	     parameter->offset == offsetof(struct module, attr_snapshot)) && *text && *text != '/') {
		strbuf_addf(why, "%s \"%s\" is not an absolute path", parameter->name, text);
		return false;
	}
	if ((parameter->offset == offsetof(struct module, outgoing_chmod)
	     || parameter->offset == offsetof(struct module, incoming_chmod)) && *text) {
		struct chmod_rules *rules = NULL;
		bool ok = chmod_parse(&rules, text);

		chmod_free(rules);
		if (!ok)
			strbuf_addf(why, "invalid \"%s\": \"%s\"", parameter->name, text);
		return ok;
	}
	return true;
}

static bool set_string(struct config *config, void *base, const struct parameter *parameter, const char *text,
		       struct strbuf *why)
{
	char *copy;
	size_t length;

	if (!check_string(parameter, text, why))
		return false;
	copy = config_keep(config, text);
	length = strlen(copy);
	while (parameter->type == P_PATH && length > 1 && copy[length - 1] == '/')
		copy[--length] = 0;
	*string_field(base, parameter) = copy;
	return true;
}

bool parameter_set(struct config *config, void *base, const struct parameter *parameter, const char *text, struct strbuf *why)
{
	static bool (*const setters[])(void *, const struct parameter *, const char *, struct strbuf *) = {
		[P_BOOL] = set_bool, [P_TRISTATE] = set_bool, [P_INTEGER] = set_number, [P_FACILITY] = set_facility,
		[P_FALLBACK] = set_fallback, [P_SIZE] = set_size,
	};
	struct strbuf expanded = STRBUF_INIT;
	bool ok;

	if (parameter->type == P_STRING || parameter->type == P_PATH)
		return set_string(config, base, parameter, text, why);
	ok = config_expand(text, &expanded);
	if (!ok)
		strbuf_addf(why, "the value of \"%s\" grows too long", parameter->name);
	else
		ok = setters[parameter->type]((char *)base + parameter->offset, parameter, strbuf_text(&expanded), why);
	strbuf_free(&expanded);
	return ok;
}
