/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading rsyncd.conf: sections, defaults by position, included files, overrides. */
#include "loadparm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/dir.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/root.h"
#include "lib/alloc.h"
#include "lib/log.h"
#include "loadparm/grammar.h"
#include "loadparm/place.h"
#include "loadparm/table.h"

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
		else if (parameter->type == P_STRING || parameter->type == P_PATH)
			note_place(loader, *(char **)((char *)base + parameter->offset));
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

typedef VEC(char *) name_list;

/* The files of a directory that `suffix` selects, sorted. Dot files are what editors and package tools leave behind. */
static bool list_directory(int fd, const char *suffix, name_list *names)
{
	struct fs_dir dir;
	struct fs_dirent entry;
	size_t tail = strlen(suffix);
	int got;

	fs_dir_start(&dir, fd);
	while ((got = fs_dir_next(&dir, &entry)) > 0)
		if (entry.name[0] != '.' && entry.type != DT_DIR && entry.name_length > tail
		    && !strcmp(entry.name + entry.name_length - tail, suffix))
			vec_push(names, xstrndup(entry.name, entry.name_length));
	fs_dir_finish(&dir);
	if (names->count)
		qsort(names->items, names->count, sizeof *names->items, compare_names);
	return got == 0;
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
	name_list names = VEC_INIT;
	bool ok = list_directory(fd, isolate ? ".conf" : ".inc", &names);

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

static bool apply_text(struct loader *loader, const char *path, const struct strbuf *text)
{
	const char *outer_file = loader->file;
	int outer_line = loader->line;
	enum grammar_event event;
	struct grammar grammar;
	bool ok = true;

	grammar_start(&grammar, strbuf_text(text), text->length);
	loader->file = path;
	loader->line = 1;
	if (!strncmp(strbuf_text(text), BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)))
		problem(loader, CONFIG_NOTE, "the byte order mark is taken for a part of this line");
	while (ok && !loader->stopped && (event = grammar_next(&grammar)) != GRAMMAR_END)
		ok = apply_event(loader, &grammar, event);
	grammar_free(&grammar);
	loader->file = outer_file;
	loader->line = outer_line;
	return ok;
}

static bool load_file(struct loader *loader, const char *path)
{
	struct strbuf text = STRBUF_INIT;
	bool ok = false;

	path = note_file(loader, path);
	if (loader->depth >= INCLUDE_DEPTH_MAX)
		problem(loader, CONFIG_FATAL, "more than %d files include each other", INCLUDE_DEPTH_MAX);
	else if (fs_operator_read(path, 0, FILE_SIZE_MAX, &text) < 0)
		problem(loader, CONFIG_FATAL, "cannot read \"%s\": %s", path, strerror(errno));
	else {
		loader->depth++;
		ok = apply_text(loader, path, &text);
		loader->depth--;
	}
	strbuf_free(&text);
	return ok;
}

/* Checks between global parameters, once all of them are known. */
static void check_globals(struct loader *loader)
{
	const struct config_globals *globals = &loader->config->globals;

	loader->line = 0;
	if (loader->mode == CONFIG_CHECK && globals->proxy_protocol && !*globals->proxy_protocol_hosts)
		problem(loader, CONFIG_UNSERVED, "without \"proxy protocol hosts\" every connection is rejected");
}

/* Paths that depend on the client, or on the module's name, are only known in a session. */
static void check_prefix(struct loader *loader, const struct module *module)
{
	const struct config_place *line = config_place_of(loader->config, module->real_file_prefix);
	char *daemon_root = config_text(loader->config->globals.daemon_chroot);
	struct strbuf why = STRBUF_INIT;
	struct module_place place;
	struct fs_root root;

	place_split(&place, module->path, place_divides(module, module->path));
	if (place_open_prefix(&place, daemon_root, module->real_file_prefix, &root) < 0) {
		place_explain_prefix(&place, daemon_root, module->real_file_prefix, errno, &why);
		loader->file = line->file;
		loader->line = line->line;
		problem(loader, CONFIG_ERROR, "%s", strbuf_text(&why));
	} else {
		fs_root_close(&root);
	}
	place_free(&place);
	strbuf_free(&why);
	free(daemon_root);
}

static void check_modules(struct loader *loader)
{
	for (size_t i = 0; i < loader->config->modules.count; i++) {
		struct module *module = &loader->config->modules.items[i];
		const struct config_place *header = config_place_of(loader->config, module->name);

		loader->file = header->file;
		loader->line = header->line;
		if (module->fake_super && (*module->attr_snapshot || *module->real_file_prefix)) {
			problem(loader, CONFIG_ERROR, "module \"%s\" has \"fake super\" and attributes of another origin",
				module->name);
			module->disabled = true;
		}
		if (loader->mode == CONFIG_CHECK && *module->real_file_prefix && !strchr(module->real_file_prefix, '%') &&
		    !strchr(module->path, '%'))
			check_prefix(loader, module);
		if (!*module->attr_snapshot)
			continue;
		if (*module->real_file_prefix) {
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
	bool ok;

	parameters_set_defaults(config);
	ok = load_file(&loader, path);
	if (mode == CONFIG_LISTENER)
		apply_dparams(&loader);
	check_globals(&loader);
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

void config_problems_report(const struct config_problems *problems, enum config_severity least)
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
}

void config_problems_free(struct config_problems *problems)
{
	for (size_t i = 0; i < problems->list.count; i++) {
		free(problems->list.items[i].file);
		free(problems->list.items[i].text);
	}
	vec_free(&problems->list);
}
