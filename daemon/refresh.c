/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The refresh of attr trees and attr snapshots by the daemon's own configuration: there is no second list of paths that could
 * say something else. Each module is refreshed by a process of its own, so that one that fails does not keep the others back.
 */
#include "daemon/refresh.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "attrs/entry.h"
#include "attrs/snapshot.h"
#include "contents/contents.h"
#include "daemon/check.h"
#include "daemon/roots.h"
#include "fs/file.h"
#include "fs/lock.h"
#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/process.h"
#include "loadparm.h"
#include "loadparm/place.h"
#include "options.h"
#include "snapshot.h"
#include "snapshot/make.h"

/* The result that a module's process reports. */
struct outcome {
	uint64_t entries, changed;
};

struct refresh {
	const struct options *options;
	char *daemon_root;  /* this process does not enter it: "" for none */
	int code;           /* the first that was not 0; a failure that a retry may fix comes before a faulty configuration */
};

static bool has_attrs(const struct module *module)
{
	return *module->attr_snapshot || *module->real_file_prefix;
}

/* --- the runs, in the module's process --- */

/* Where the session of a client finds the module, as paths of this process; malloc'ed. */
static void find_places(const struct refresh *refresh, const struct module *module, char **tree, char **real)
{
	char *path = config_text(module->path), *prefix = config_text(module->real_file_prefix);
	struct module_place place;

	place_split(&place, path, place_divides(module, path));
	*tree = place_below(refresh->daemon_root, place.path);
	*real = *prefix ? place_find_prefix(&place, refresh->daemon_root, prefix) : xstrdup("");
	place_free(&place);
	free(path);
	free(prefix);
}

static char *as_directory(const char *path)
{
	size_t length = strlen(path);

	return xasprintf("%s%s", path, length && path[length - 1] == '/' ? "" : "/");
}

/* The options of a command line that does the same for one module. */
static void set_up_run(struct options *run, const struct refresh *refresh, const struct module *module, const char **words)
{
	struct args line = { NULL, 0 };
	char *error = NULL;
	int code;

	args_append(&line, "rsync-huai");
	for (; *words; words++)
		args_append(&line, *words);
	if (options_parse(run, (int)line.count, line.items, NULL, &error, &code) != OPTIONS_OK)
		die(EXIT_SYNTAX, "rsync: module \"%s\" cannot be refreshed: %s", module->name, error ? error : "");
	args_free(&line);
	run->attr_refresh = refresh->options->attr_refresh;
	run->attr_digests = refresh->options->attr_digests;
	for (int i = 0; i < MODULE_RULES; i++) {
		const struct rules_parameter *parameter = rules_parameter((enum module_rules)i);
		char *text = config_text(module->rules[i]);
		struct filter_option rules = {
			.kind = parameter->is_file ? FOPT_FILE : FOPT_WORDS, .style = parameter->style, .times = 1,
			.text = parameter->is_file ? place_below(refresh->daemon_root, text) : text,
		};

		if (*text)
			vec_push(&run->filters, rules);
	}
}

static int refresh_snapshot(const struct refresh *refresh, const struct module *module, struct outcome *outcome)
{
	char *file = config_text(module->attr_snapshot), *word = xasprintf("--attr-snapshot=%s", file), *tree, *real;
	struct strbuf why = STRBUF_INIT;
	struct attr_snapshot *old = attr_snapshot_open(file, &why), *new;
	struct options run;
	int code;

	find_places(refresh, module, &tree, &real);
	const char *words[] = { refresh->options->verbose ? "-aHv" : "-aHq", "--only-send-attrs", word, as_directory(tree),
				NULL };

	set_up_run(&run, refresh, module, words);
	if (!run.attr_digests && old)
		run.attr_digests = attr_snapshot_facts(old)->digests;
	code = snapshot_make_main(&run);
	new = attr_snapshot_open(file, &why);
	if (new) {
		outcome->entries = attr_snapshot_facts(new)->entry_count;
		outcome->changed = old ? snapshot_count_changes(old, new) : outcome->entries;
	}
	return code;
}

static int refresh_tree(const struct refresh *refresh, const struct module *module, struct outcome *outcome)
{
	const char *info = refresh->options->verbose ? "--info=name,del" : "--info=none";
	struct run_stats stats;
	struct options run;
	char *tree, *real;
	int code;

	find_places(refresh, module, &tree, &real);
	const char *words[] = { "-aH", info, "--only-send-attrs", "--delete", "--delete-excluded", as_directory(real),
				as_directory(tree), NULL };

	set_up_run(&run, refresh, module, words);
	run.attr_refresh = NULL;
	run.attr_digests = 0;
	code = receiver_main(&run, &stats);
	outcome->entries = stats.files.total;
	/* A new regular file is a transferred one. */
	outcome->changed = stats.transferred_files + stats.created.dirs + stats.created.links + stats.created.devices
			   + stats.created.specials + stats.deleted.total;
	return code;
}

/* --- one module --- */

static void say(const struct refresh *refresh, const struct module *module, const char *text)
{
	if (!refresh->options->quiet)
		printf("%s: %s\n", module->name, text);
	fflush(stdout);
}

/* Runs it in a process of its own; the exit code. */
static int refresh_once(const struct refresh *refresh, const struct module *module)
{
	struct outcome outcome = { 0, 0 };
	const int64_t began = clock_nanoseconds();
	int ends[2], status = -1, code;
	char *line;
	pid_t pid;

	if (pipe(ends) == 0) {
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			close(ends[0]);
			prctl(PR_SET_PDEATHSIG, SIGTERM);
			code = (*module->attr_snapshot ? refresh_snapshot : refresh_tree)(refresh, module, &outcome);
			fs_write_all(ends[1], (const char *)&outcome, sizeof outcome);
			exit_with(code);
		}
		close(ends[1]);
		if (pid > 0 && read(ends[0], &outcome, sizeof outcome) < (ssize_t)sizeof outcome)
			outcome = (struct outcome){ 0, 0 };
		close(ends[0]);
		status = pid < 0 ? -1 : process_wait(pid);
	}
	code = status == -1 ? EXIT_IPC : WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL;
	line = xasprintf("%" PRIu64 " entries, %" PRIu64 " changed, %.2f seconds%s", outcome.entries, outcome.changed,
			 (double)(clock_nanoseconds() - began) / (double)CLOCK_SECOND, code ? ", not complete" : "");
	if (outcome.entries || !code)
		say(refresh, module, line);
	else
		log_error("module \"%s\" was not refreshed (code %d)", module->name, code);
	free(line);
	return code;
}

static void note_code(struct refresh *refresh, int code)
{
	if (code && (!refresh->code || refresh->code == EXIT_SYNTAX))
		refresh->code = code;
}

static void refresh_module(struct refresh *refresh, const struct module *module)
{
	char *tree, *real, *place, *lock;
	struct fs_turn turn;
	size_t length;
	int code;

	/* Values may refer to it, as in a session. */
	setenv("RSYNC_MODULE_NAME", module->name, 1);
	find_places(refresh, module, &tree, &real);
	/* A tree that should lie in memory is written to the disk where its tmpfs is not mounted. */
	if (*real && check_tree_is_on_disk(tree, real))
		log_warning("module \"%s\": the attr tree lies on the file system of its real tree: is its tmpfs not mounted?",
			    module->name);
	/* Beside what is refreshed, so that it is there for as long as that is. */
	place = *module->attr_snapshot ? config_text(module->attr_snapshot) : xstrdup(tree);
	for (length = strlen(place); length > 1 && place[length - 1] == '/';)
		length--;
	lock = xasprintf("%.*s.lock", (int)length, place);
	free(tree);
	free(real);
	free(place);
	switch (fs_turn_take(&turn, lock, !refresh->options->no_wait)) {
	case FS_TURN_OURS:
		do {
			code = refresh_once(refresh, module);
			note_code(refresh, code);
		} while (fs_turn_end(&turn, code == EXIT_OK));
		break;
	case FS_TURN_SERVED:
		say(refresh, module, "refreshed by another process meanwhile");
		break;
	case FS_TURN_LEFT:
		say(refresh, module, "left to the process that is refreshing it");
		break;
	case FS_TURN_FAILED:
		log_errno(L_ERROR, errno, "module \"%s\": cannot lock %s", module->name, lock);
		note_code(refresh, EXIT_FILEIO);
		break;
	}
	free(lock);
}

/* --- the choice --- */

static bool is_named(const struct options *options, const char *name)
{
	for (size_t i = 0; i < options->operands.count; i++)
		if (!strcmp(options->operands.items[i], name))
			return true;
	return !options->operands.count;
}

int daemon_refresh_main(struct options *options)
{
	struct refresh refresh = { .options = options };
	struct config_problems problems = CONFIG_PROBLEMS_INIT;
	struct config *config;
	bool has_any = false;

	/* Names of paths are below one module. */
	if (options->attr_refresh && strcmp(options->attr_refresh, "dirs") && options->operands.count != 1)
		die(EXIT_SYNTAX, "rsync: --attr-refresh=%s lists paths of one module: name that one", options->attr_refresh);
	exit_set_quiet(true);
	config = config_load(options->config_file, options->dparams.items, options->dparams.count, CONFIG_SESSION, &problems);
	if (config_problems_worst(&problems) >= (int)CONFIG_ERROR)
		note_code(&refresh, EXIT_SYNTAX);
	config_problems_report(&problems, CONFIG_ERROR);
	if (!config)
		return EXIT_SYNTAX;
	refresh.daemon_root = config_text(config->globals.daemon_chroot);
	/* Operands that name no such module; all others are refreshed nevertheless. */
	for (size_t i = 0; i < options->operands.count; i++) {
		const char *name = options->operands.items[i];
		const struct module *module = config_find_module(config, name);

		if (module && has_attrs(module) && !module->disabled)
			continue;
		log_error("%s: %s \"%s\"%s", options->config_file, module ? "module" : "there is no module", name,
			  !module ? "" : module->disabled ? " has a value that cannot be used"
			  : " has neither \"attr snapshot\" nor \"real file prefix\"");
		note_code(&refresh, EXIT_SYNTAX);
	}
	for (size_t i = 0; i < config->modules.count; i++)
		has_any |= has_attrs(&config->modules.items[i]);
	/* A hook that does nothing is not what anybody wants. */
	if (!has_any) {
		log_error("%s: no module has an \"attr snapshot\" or a \"real file prefix\"", options->config_file);
		note_code(&refresh, EXIT_SYNTAX);
	}
	for (size_t i = 0; i < config->modules.count; i++) {
		const struct module *module = &config->modules.items[i];

		if (has_attrs(module) && !module->disabled && is_named(options, module->name))
			refresh_module(&refresh, module);
	}
	free(refresh.daemon_root);
	config_free(config);
	return refresh.code;
}
