/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading rsyncd.conf: the parameters; sections, defaults by position, included files, overrides. */
#include "loadparm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "fs/chmod.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/root.h"
#include "lib/alloc.h"
#include "lib/log.h"
#include "loadparm/grammar.h"
#include "loadparm/hosts.h"
#include "loadparm/place.h"

/* --- the parameters, their types, defaults and places (doc/protocol/07-daemon.md section 3) --- */

struct parameter {
	const char *name;
	enum {
		P_STRING, P_PATH, P_BOOL, P_TRISTATE, P_INTEGER, P_FACILITY, P_FALLBACK,
		P_SIZE,        /* bytes, at least a mebibyte; K, M or G behind the number count in powers of 1024 */
		P_REFUSED,     /* in no manual; renames a module behind the back of its own header */
	} type;
	enum { ANY, ABSOLUTE, HOSTS, CHMOD } text; /* of strings: what else than "" they have to be */
	bool global;   /* belongs to the daemon as a whole, not to a module */
	bool listener; /* counts only before the first section */
	size_t offset; /* in struct config_globals or struct module */
	int low, high; /* P_INTEGER */
};

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
	{ "proxy protocol hosts", P_STRING, .text = HOSTS, G(proxy_protocol_hosts) },
	{ "socket options", P_STRING, .listener = true, G(socket_options) },

	{ "attr snapshot", P_PATH, .text = ABSOLUTE, M(attr_snapshot) },
	{ "attr snapshot fallback", P_FALLBACK, M(attr_snapshot_fallback) },
	{ "attr snapshot max age", P_INTEGER, M(attr_snapshot_max_age), .low = 0, .high = INT_MAX },
	{ "auth digest", P_STRING, M(auth_digest) },
	{ "auth users", P_STRING, M(auth_users) },
	{ "charset", P_STRING, M(charset) },
	{ "comment", P_STRING, M(comment) },
	{ "cpu limit per session", P_INTEGER, M(cpu_limit), .low = 0, .high = 1000000 },
	{ "dont compress", P_STRING, M(dont_compress) },
	{ "early exec", P_STRING, M(early_exec) },
	{ "exclude", P_STRING, M(rules[RULES_EXCLUDE]) },
	{ "exclude from", P_STRING, M(rules[RULES_EXCLUDE_FROM]) },
	{ "fake super", P_BOOL, M(fake_super) },
	{ "filter", P_STRING, M(rules[RULES_FILTER]) },
	{ "forward lookup", P_BOOL, M(forward_lookup) },
	{ "gid", P_STRING, M(gid) },
	{ "hosts allow", P_STRING, .text = HOSTS, M(hosts_allow) },
	{ "hosts deny", P_STRING, .text = HOSTS, M(hosts_deny) },
	{ "ignore errors", P_BOOL, M(ignore_errors) },
	{ "ignore nonreadable", P_BOOL, M(ignore_nonreadable) },
	{ "incoming chmod", P_STRING, .text = CHMOD, M(incoming_chmod) },
	{ "include", P_STRING, M(rules[RULES_INCLUDE]) },
	{ "include from", P_STRING, M(rules[RULES_INCLUDE_FROM]) },
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
	{ "name", P_REFUSED, M(name) },
	{ "name converter", P_STRING, M(name_converter) },
	{ "numeric ids", P_TRISTATE, M(numeric_ids) },
	{ "open noatime", P_TRISTATE, M(open_noatime) },
	{ "outgoing chmod", P_STRING, .text = CHMOD, M(outgoing_chmod) },
	{ "path", P_PATH, M(path) },
	{ "post-xfer exec", P_STRING, M(post_xfer_exec) },
	{ "pre-xfer exec", P_STRING, M(pre_xfer_exec) },
	{ "read only", P_BOOL, M(read_only) },
	{ "real file prefix", P_PATH, .text = ABSOLUTE, M(real_file_prefix) },
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

/* By rsyncd.conf's comparison of names, as it is meant inside of a module's section or outside; NULL if nobody knows it. */
static const struct parameter *parameter_find(const char *name, bool in_module)
{
	const struct parameter *found = NULL;

	for (size_t i = 0; i < PARAMETER_COUNT; i++)
		if (grammar_same_name(parameters[i].name, name) && (!found || parameters[i].global != in_module))
			found = &parameters[i];
	return found;
}

/* A copy of the text that lives as long as the configuration. */
static char *config_keep(struct config *config, const char *text)
{
	char *copy = xstrdup(text);

	vec_push(&config->strings, copy);
	return copy;
}

static char **string_field(void *base, const struct parameter *parameter)
{
	return (char **)((char *)base + parameter->offset);
}

static bool parse_size(const char *text, size_t *size)
{
	static const char units[] = "KMG";
	size_t digits = strspn(text, "0123456789");
	const char *unit = text[digits] ? strchr(units, text[digits] & ~0x20) : NULL;
	uint64_t value = digits && digits < 16 ? strtoull(text, NULL, 10) : 0;

	for (const char *step = units; unit && step <= unit; step++)
		value = value <= UINT64_MAX >> 10 ? value << 10 : 0;
	if (text[digits + (unit != NULL)] || value < SIZE_LEAST || value > SIZE_MAX)
		return false;
	*size = (size_t)value;
	return true;
}

/* Sets a field that is no string. Returns false with the reason if the text is no value for it. */
static bool parse_value(const struct parameter *parameter, const char *text, void *field, struct strbuf *why)
{
	bool ok, walk;

	switch (parameter->type) {
	case P_BOOL:
	case P_TRISTATE:
		ok = parameter->type == P_BOOL ? config_parse_bool(text, field) : config_parse_tristate(text, field);
		if (!ok)
			strbuf_addf(why, "badly formed boolean \"%s\" for \"%s\"", text, parameter->name);
		return ok;
	case P_FACILITY:
		ok = config_parse_facility(text, field);
		if (!ok)
			strbuf_addf(why, "unknown syslog facility \"%s\"", text);
		return ok;
	case P_FALLBACK:
		walk = grammar_same_name(text, "walk");
		ok = walk || grammar_same_name(text, "refuse");
		if (ok)
			*(enum snapshot_fallback *)field = walk ? SNAPSHOT_FALLBACK_WALK : SNAPSHOT_FALLBACK_REFUSE;
		else
			strbuf_addf(why, "\"%s\" for \"%s\" is neither walk nor refuse", text, parameter->name);
		return ok;
	default:
		ok = parameter->type == P_SIZE ? parse_size(text, field)
					       : config_parse_integer(text, parameter->low, parameter->high, field);
		if (!ok)
			strbuf_addf(why, "\"%s\" is not a %s of the range of \"%s\"", text,
				    parameter->type == P_SIZE ? "size" : "number", parameter->name);
		return ok;
	}
}

/* Strings that can be judged before any reference in them is expanded. */
static bool check_string(const struct parameter *parameter, const char *text, struct strbuf *why)
{
	struct chmod_rules *rules = NULL;
	bool ok = true;

	if (!*text || strchr(text, '%'))
		return true;
	if (parameter->text == HOSTS)
		return hosts_list_check(text, why);
	if (parameter->text == ABSOLUTE && *text != '/') {
		strbuf_addf(why, "%s \"%s\" is not an absolute path", parameter->name, text);
		return false;
	}
	if (parameter->text == CHMOD) {
		ok = chmod_parse(&rules, text);
		chmod_free(rules);
		if (!ok)
			strbuf_addf(why, "invalid \"%s\": \"%s\"", parameter->name, text);
	}
	return ok;
}

/* Sets a value in `base`, the globals or a module. Returns false with the reason if it cannot be used. */
static bool parameter_set(struct config *config, void *base, const struct parameter *parameter, const char *text,
			  struct strbuf *why)
{
	struct strbuf expanded = STRBUF_INIT;
	size_t length;
	char *copy;
	bool ok;

	if (parameter->type <= P_PATH) {
		if (!check_string(parameter, text, why))
			return false;
		copy = config_keep(config, text);
		length = strlen(copy);
		while (parameter->type == P_PATH && length > 1 && copy[length - 1] == '/')
			copy[--length] = 0;
		*string_field(base, parameter) = copy;
		return true;
	}
	ok = config_expand(text, &expanded);
	if (!ok)
		strbuf_addf(why, "the value of \"%s\" grows too long", parameter->name);
	else
		ok = parse_value(parameter, strbuf_text(&expanded), (char *)base + parameter->offset, why);
	strbuf_free(&expanded);
	return ok;
}

/* --- the file --- */

#define INCLUDE_DEPTH_MAX 16 /* a file that includes itself ends here */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define FILE_SIZE_MAX (64u << 20)
#define NO_MODULE (-1)

/* The place in the text that lines are applied to. */
struct loader {
	struct config *config;
	struct config_problems *problems;
	enum config_mode mode;
	char *const *dparams;
	size_t dparam_count;
	long section;          /* index of the open module, NO_MODULE: the global section */
	bool dparams_applied;
	bool seen_section;     /* any "[" so far: listener parameters are too late now */
	bool stopped;          /* listener: the first "[" ends the reading */
	int depth;
	const char *file;
	int line;
};

static bool load_file(struct loader *loader, const char *path);

__attribute__((format(printf, 3, 4)))
static void problem(struct loader *loader, enum config_severity severity, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	config_problem_add(loader->problems, loader->file, loader->line, severity, "%s", text);
}

static struct module *open_module(struct loader *loader)
{
	return loader->section == NO_MODULE ? &loader->config->defaults : &loader->config->modules.items[loader->section];
}

/* A line that cannot take effect as written: nobody gets the module it would have configured. */
static void spoil(struct loader *loader, bool global, const char *why)
{
	problem(loader, global ? CONFIG_FATAL : CONFIG_ERROR, "%s", why);
	if (!global)
		open_module(loader)->disabled = true;
}

static void note_place(struct loader *loader, const char *value)
{
	struct config_place place = { value, loader->file, loader->line };

	vec_push(&loader->config->places, place);
}

static void set_parameter(struct loader *loader, const char *name, const char *value)
{
	const struct parameter *parameter = parameter_find(name, loader->section != NO_MODULE);
	struct strbuf why = STRBUF_INIT;
	void *base = open_module(loader);

	if (!parameter) {
		problem(loader, CONFIG_NOTE, "unknown parameter \"%s\" is ignored", name);
		return;
	}
	if (parameter->type == P_REFUSED) {
		spoil(loader, false, "a module's name is that of its header and cannot be renamed");
	} else if (parameter->global && loader->section != NO_MODULE) {
		problem(loader, CONFIG_NOTE, "global parameter \"%s\" inside a module is ignored", parameter->name);
	} else if (parameter->listener && loader->seen_section) {
		problem(loader, CONFIG_NOTE, "\"%s\" has no effect after the first section header", parameter->name);
	} else {
		if (parameter->global)
			base = &loader->config->globals;
		if (!parameter_set(loader->config, base, parameter, value, &why))
			spoil(loader, parameter->global, strbuf_text(&why));
		else if (parameter->type <= P_PATH)
			note_place(loader, *string_field(base, parameter));
	}
	strbuf_free(&why);
}

static void apply_dparams(struct loader *loader)
{
	const char *file = loader->file;
	int line = loader->line;

	loader->dparams_applied = true;
	loader->file = "--dparam";
	loader->line = 0;
	for (size_t i = 0; i < loader->dparam_count; i++) {
		const char *text = loader->dparams[i], *value = strchr(text, '=');
		char *name = xstrndup(text, value ? (size_t)(value - text) : strlen(text));

		if (!value)
			problem(loader, CONFIG_FATAL, "\"%s\" has no \"=\"", text);
		else if (!parameter_find(name, false))
			problem(loader, CONFIG_FATAL, "unknown parameter \"%s\"", name);
		else
			set_parameter(loader, name, value + 1 + strspn(value + 1, " \t\r\n\v\f"));
		free(name);
	}
	loader->file = file;
	loader->line = line;
}

static void open_section(struct loader *loader, const char *name)
{
	struct config *config = loader->config;
	struct module module;

	if (grammar_same_name(name, "global")) {
		loader->section = NO_MODULE;
		loader->seen_section = true;
		return;
	}
	if (loader->section == NO_MODULE && !loader->dparams_applied)
		apply_dparams(loader);
	loader->seen_section = true;
	for (size_t i = 0; i < config->modules.count; i++)
		if (grammar_same_name(config->modules.items[i].name, name)) {
			loader->section = (long)i;
			return;
		}
	module = config->defaults;
	module.name = config_keep(config, name);
	note_place(loader, module.name);
	vec_push(&config->modules, module);
	loader->section = (long)config->modules.count - 1;
}

/* Returns the path as it is kept. */
static const char *note_file(struct loader *loader, const char *path)
{
	char *kept = config_keep(loader->config, path);

	vec_push(&loader->config->files, kept);
	return kept;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One file of a directive. The listener takes the globals of included files as they come; a session keeps them apart. */
static bool load_part(struct loader *loader, const char *path, bool isolate)
{
	struct config *config = loader->config;
	const struct config_globals globals = config->globals;
	const struct module defaults = config->defaults;
	bool dparams_applied = loader->dparams_applied, ok;

	isolate = isolate && loader->mode != CONFIG_LISTENER;
	if (isolate)
		loader->section = NO_MODULE;
	ok = load_file(loader, path);
	if (isolate) {
		config->globals = globals;
		config->defaults = defaults;
		loader->dparams_applied = dparams_applied;
		loader->section = NO_MODULE;
	}
	return ok;
}

static bool load_directory(struct loader *loader, const char *path, int fd, bool isolate)
{
	const char *suffix = isolate ? ".conf" : ".inc";
	const size_t tail = strlen(suffix);
	VEC(char *) names = VEC_INIT;
	struct fs_dirent entry;
	struct fs_dir dir;
	bool ok;
	int got;

	/* Dot files are what editors and package tools leave behind. */
	fs_dir_start(&dir, fd);
	while ((got = fs_dir_next(&dir, &entry)) > 0)
		if (entry.name[0] != '.' && entry.type != DT_DIR && entry.name_length > tail
		    && !strcmp(entry.name + entry.name_length - tail, suffix))
			vec_push(&names, xstrndup(entry.name, entry.name_length));
	fs_dir_finish(&dir);
	if (names.count)
		qsort(names.items, names.count, sizeof *names.items, compare_names);
	ok = got == 0;
	note_file(loader, path);
	if (!ok)
		problem(loader, CONFIG_FATAL, "cannot read directory \"%s\": %s", path, strerror(errno));
	for (size_t i = 0; i < names.count; i++) {
		char *full = xasprintf("%s/%s", path, names.items[i]);

		ok = ok && (loader->stopped || load_part(loader, full, isolate));
		free(full);
		free(names.items[i]);
	}
	vec_free(&names);
	return ok;
}

static bool follow_directive(struct loader *loader, const char *word, const char *path)
{
	bool isolate = !strcasecmp(word, "include");
	struct fs_stat st;
	int fd;

	if (!isolate && strcasecmp(word, "merge")) {
		problem(loader, CONFIG_FATAL, "unknown directive \"&%s\"", word);
		return false;
	}
	fd = fs_operator_open(path, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0 || fs_stat_at_fd(fd, &st) < 0) {
		problem(loader, CONFIG_FATAL, "cannot open \"%s\": %s", path, strerror(errno));
		fs_close(fd);
		return false;
	}
	if (S_ISDIR(st.mode))
		return load_directory(loader, path, fd, isolate);
	close(fd);
	if (S_ISREG(st.mode))
		return load_part(loader, path, isolate);
	problem(loader, CONFIG_FATAL, "\"%s\" is neither a regular file nor a directory", path);
	return false;
}

static bool apply_event(struct loader *loader, struct grammar *grammar, enum grammar_event event)
{
	const char *name = strbuf_text(&grammar->name), *value = strbuf_text(&grammar->value);

	loader->line = grammar->line;
	switch (event) {
	case GRAMMAR_SECTION:
		loader->stopped = loader->mode == CONFIG_LISTENER;
		if (!loader->stopped)
			open_section(loader, name);
		return true;
	case GRAMMAR_PARAMETER:
		set_parameter(loader, name, value);
		return true;
	case GRAMMAR_DIRECTIVE:
		return follow_directive(loader, name, value);
	case GRAMMAR_IGNORED:
		problem(loader, CONFIG_NOTE, "%s", grammar->message);
		return true;
	default:
		problem(loader, CONFIG_FATAL, "%s", grammar->message);
		return false;
	}
}

static bool load_file(struct loader *loader, const char *path)
{
	const char *outer_file = loader->file;
	const int outer_line = loader->line;
	struct strbuf text = STRBUF_INIT;
	enum grammar_event event;
	struct grammar grammar;
	bool ok = false;

	path = note_file(loader, path);
	if (loader->depth >= INCLUDE_DEPTH_MAX)
		problem(loader, CONFIG_FATAL, "more than %d files include each other", INCLUDE_DEPTH_MAX);
	else if (fs_operator_read(path, 0, FILE_SIZE_MAX, &text) < 0)
		problem(loader, CONFIG_FATAL, "cannot read \"%s\": %s", path, strerror(errno));
	else {
		ok = true;
		loader->depth++;
		loader->file = path;
		loader->line = 1;
		if (!strncmp(strbuf_text(&text), BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)))
			problem(loader, CONFIG_NOTE, "the byte order mark is taken for a part of this line");
		grammar_start(&grammar, strbuf_text(&text), text.length);
		while (ok && !loader->stopped && (event = grammar_next(&grammar)) != GRAMMAR_END)
			ok = apply_event(loader, &grammar, event);
		grammar_free(&grammar);
		loader->file = outer_file;
		loader->line = outer_line;
		loader->depth--;
	}
	strbuf_free(&text);
	return ok;
}

static void check_modules(struct loader *loader)
{
	for (size_t i = 0; i < loader->config->modules.count; i++) {
		struct module *module = &loader->config->modules.items[i];
		const struct config_place *header = config_place_of(loader->config, module->name);
		const char *prefix = module->real_file_prefix;

		loader->file = header->file;
		loader->line = header->line;
		if (module->fake_super && (*module->attr_snapshot || *prefix)) {
			problem(loader, CONFIG_ERROR, "module \"%s\" has \"fake super\" and attributes of another origin",
				module->name);
			module->disabled = true;
		}
		/* Paths that depend on the client, or on the module's name, are only known in a session. */
		if (loader->mode == CONFIG_CHECK && *prefix && !strchr(prefix, '%') && !strchr(module->path, '%')) {
			char *daemon_root = config_text(loader->config->globals.daemon_chroot);
			struct strbuf why = STRBUF_INIT;
			struct module_place place;
			struct fs_root root;

			place_split(&place, module->path, place_divides(module, module->path));
			if (place_open_prefix(&place, daemon_root, prefix, &root) == 0) {
				fs_root_close(&root);
			} else {
				const struct config_place *line = config_place_of(loader->config, prefix);

				place_explain_prefix(&place, daemon_root, prefix, errno, &why);
				loader->file = line->file;
				loader->line = line->line;
				problem(loader, CONFIG_ERROR, "%s", strbuf_text(&why));
				strbuf_free(&why);
			}
			place_free(&place);
			free(daemon_root);
		}
		if (!*module->attr_snapshot)
			continue;
		if (*prefix) {
			problem(loader, CONFIG_ERROR, "module \"%s\" has both an attr snapshot and a real file prefix",
				module->name);
			module->disabled = true;
		} else if (!module->read_only && loader->mode == CONFIG_CHECK) {
			problem(loader, CONFIG_NOTE, "module \"%s\" has an attr snapshot: \"read only = no\" is ignored",
				module->name);
		}
	}
}

struct config *config_load(const char *path, char *const *dparams, size_t dparam_count, enum config_mode mode,
			   struct config_problems *problems)
{
	struct config *config = xcalloc(1, sizeof *config);
	struct loader loader = {
		.config = config, .problems = problems, .mode = mode, .dparams = dparams, .dparam_count = dparam_count,
		.section = NO_MODULE, .file = path,
	};
	struct module *module = &config->defaults;
	bool ok;

	/* All defaults, the strings owned by `config`. */
	for (size_t i = 0; i < PARAMETER_COUNT; i++)
		if (parameters[i].type <= P_PATH)
			*string_field(parameters[i].global ? (void *)&config->globals : module, &parameters[i]) =
				config_keep(config, "");
	module->name = config_keep(config, "");
	config->globals.port = 873;
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
	ok = load_file(&loader, path);
	if (mode == CONFIG_LISTENER)
		apply_dparams(&loader);
	loader.line = 0;
	if (mode == CONFIG_CHECK && config->globals.proxy_protocol && !*config->globals.proxy_protocol_hosts)
		problem(&loader, CONFIG_UNSERVED, "without \"proxy protocol hosts\" every connection is rejected");
	check_modules(&loader);
	config->any_reverse_lookup = config->defaults.reverse_lookup;
	for (size_t i = 0; i < config->modules.count; i++)
		config->any_reverse_lookup |= config->modules.items[i].reverse_lookup;
	if (ok && config_problems_worst(problems) < CONFIG_FATAL)
		return config;
	config_free(config);
	return NULL;
}

void config_free(struct config *config)
{
	if (!config)
		return;
	for (size_t i = 0; i < config->strings.count; i++)
		free(config->strings.items[i]);
	vec_free(&config->strings);
	vec_free(&config->files);
	vec_free(&config->places);
	vec_free(&config->modules);
	free(config);
}

const struct config_place *config_place_of(const struct config *config, const char *value)
{
	for (size_t i = 0; i < config->places.count; i++)
		if (config->places.items[i].value == value)
			return &config->places.items[i];
	return NULL;
}

const struct module *config_find_module(const struct config *config, const char *name)
{
	for (size_t i = config->modules.count; i-- > 0;)
		if (!strcmp(config->modules.items[i].name, name))
			return &config->modules.items[i];
	return NULL;
}

void config_problem_add(struct config_problems *problems, const char *file, int line, enum config_severity severity,
			const char *fmt, ...)
{
	struct strbuf text = STRBUF_INIT;
	struct config_problem item = { xstrdup(file), line, severity, NULL };
	va_list args;

	va_start(args, fmt);
	strbuf_vaddf(&text, fmt, args);
	va_end(args);
	item.text = strbuf_detach(&text);
	vec_push(&problems->list, item);
}

int config_problems_worst(const struct config_problems *problems)
{
	int worst = -1;

	for (size_t i = 0; i < problems->list.count; i++)
		if ((int)problems->list.items[i].severity > worst)
			worst = (int)problems->list.items[i].severity;
	return worst;
}

void config_problems_free(struct config_problems *problems)
{
	for (size_t i = 0; i < problems->list.count; i++) {
		free(problems->list.items[i].file);
		free(problems->list.items[i].text);
	}
	vec_free(&problems->list);
}

void config_problems_report(struct config_problems *problems, enum config_severity least)
{
	for (size_t i = 0; i < problems->list.count; i++) {
		const struct config_problem *problem = &problems->list.items[i];
		enum log_kind kind = problem->severity <= CONFIG_NOTE ? L_WARNING : L_ERROR;

		if (problem->severity < least)
			continue;
		if (problem->line)
			log_msg(kind, "%s:%d: %s", problem->file, problem->line, problem->text);
		else
			log_msg(kind, "%s: %s", problem->file, problem->text);
	}
	config_problems_free(problems);
}
