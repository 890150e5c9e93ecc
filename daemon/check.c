/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is wrong with a configuration, and what its modules would do. One process takes on the daemon's identity, and for each
 * module another one goes into the module's root and takes on its user: what those may read is found by trying.
 */
#include "daemon/check.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/auth.h"
#include "daemon/check_findings.h"
#include "daemon/check_private.h"
#include "daemon/config.h"
#include "daemon/identity.h"
#include "daemon/roots.h"
#include "daemon/session.h"
#include "delta/auth_digest.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "loadparm/hosts.h"

/* --- places --- */

/* At the line of the value, or at the module's header if it has its default. */
__attribute__((format(printf, 4, 5)))
static void complain(struct subject *subject, const char *value, enum config_severity severity, const char *fmt, ...)
{
	const struct config *config = subject->check->config;
	const struct config_place *place = config_place_of(config, value);
	struct strbuf text = STRBUF_INIT;
	va_list args;

	strbuf_addf(&text, "module \"%s\": ", subject->module->name);
	va_start(args, fmt);
	strbuf_vaddf(&text, fmt, args);
	va_end(args);
	if (!place)
		place = config_place_of(config, subject->module->name);
	check_add_at(&subject->check->problems, place, subject->check->file, severity, strbuf_text(&text));
	strbuf_free(&text);
}

/* --- files, as the daemon --- */

static void check_writable(struct subject *subject, const char *value, const char *what, enum config_severity severity)
{
	char *path = check_known_text(value);

	if (path && !fs_operator_may_write(path))
		complain(subject, value, severity, "%s %s: %s", what, path, strerror(errno));
	free(path);
}

/* Only a path as the first word tells what a shell would run. */
static void check_command(struct subject *subject, const char *value, const char *what, enum config_severity severity)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._+-@,:";
	char *command = check_known_text(value);
	size_t length = command && *command == '/' ? strspn(command, plain) : 0;
	int fd;

	if (length && (!command[length] || command[length] == ' ')) {
		command[length] = 0;
		fd = fs_operator_open(command, O_PATH | FS_ANY_LINKS, 0);
		if (fd < 0 || !fs_may(fd, X_OK))
			complain(subject, value, severity, "%s %s: %s", what, command, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	free(command);
}

/* Patterns may match what is still to come. */
static void check_groups(struct subject *subject)
{
	char *users = check_known_text(subject->module->auth_users), *word;
	struct config_list list;

	if (!users)
		return;
	config_list_start(&list, users);
	while ((word = config_list_next(&list))) {
		word[strcspn(word, ":")] = 0;
		if (*word == '@' && !strpbrk(word, "*?[") && !getgrnam(word + 1))
			complain(subject, subject->module->auth_users, CONFIG_NOTE, "auth users: there is no group \"%s\"",
				 word + 1);
	}
	free(users);
}

static void check_digest(struct subject *subject)
{
	char *digest = check_known_text(subject->module->auth_digest);

	if (digest && auth_digest_rank(digest) < 0)
		complain(subject, subject->module->auth_digest, CONFIG_UNSERVED,
			 "nobody can log in: auth digest \"%s\" is no digest that this build has", digest);
	free(digest);
}

static void check_users(struct subject *subject)
{
	const struct module *module = subject->module;
	const char *why;

	if (!*module->auth_users)
		return;
	check_digest(subject);
	if (strstr(module->secrets_file, "%RSYNC_"))
		return;
	why = auth_secrets_problem(module);
	if (why)
		complain(subject, module->secrets_file, CONFIG_UNSERVED, "nobody can log in: secrets file%s%s: %s",
			 *module->secrets_file ? " " : "", module->secrets_file, why);
	check_groups(subject);
}

/* A problem for each line of what has been said; uses `said` up. */
static void complain_of(struct subject *subject, const char *value, enum config_severity severity, const char *what,
			struct strbuf *said)
{
	char *rest, *line;

	if (said->length)
		for (line = strtok_r(said->data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			complain(subject, value, severity, "%s: %s", what, line);
	strbuf_free(said);
}

/* One parameter after the other, so that each problem has its line. */
static void check_rules(struct subject *subject)
{
	const char *name, *value;
	bool is_file;

	for (size_t i = 0; (name = rules_parameter(subject->module, i, &value, &is_file)); i++) {
		struct strbuf said = STRBUF_INIT;
		char *text = check_known_text(value);

		if (text && is_file && !check_may_read(text))
			complain(subject, value, CONFIG_UNSERVED, "%s %s: %s", name, text, strerror(errno));
		else if (text)
			check_try_rules(&subject->session, i, &said);
		free(text);
		complain_of(subject, value, CONFIG_UNSERVED, name, &said);
	}
}

/* A list that turns everybody away who should not be is a module that is not served as it should be. */
static void check_hosts(struct subject *subject, const char *value, bool denies)
{
	const struct module *module = subject->module;
	const bool named = module->reverse_lookup || subject->check->config->defaults.reverse_lookup;
	const struct host_peer peer = {
		.address = "", .name = named ? "" : "UNDETERMINED", .forward_lookup = module->forward_lookup,
	};
	struct strbuf why = STRBUF_INIT;
	char *text = check_known_text(value);

	if (text)
		hosts_list_doubts(text, &peer, denies, &why);
	free(text);
	complain_of(subject, value, denies && !*module->hosts_allow ? CONFIG_UNSERVED : CONFIG_NOTE,
		    denies ? "hosts deny" : "hosts allow", &why);
}

static void check_refused_options(struct subject *subject)
{
	const char *value = subject->module->refuse_options;
	struct strbuf said = STRBUF_INIT;
	char *text = check_known_text(value);

	if (text)
		check_try_refused_options(text, &said);
	free(text);
	complain_of(subject, value, CONFIG_NOTE, "refuse options", &said);
}

static void check_files(struct subject *subject)
{
	const struct module *module = subject->module;

	check_users(subject);
	check_hosts(subject, module->hosts_allow, false);
	check_hosts(subject, module->hosts_deny, true);
	check_rules(subject);
	check_refused_options(subject);
	check_command(subject, module->early_exec, "early exec", CONFIG_UNSERVED);
	check_command(subject, module->pre_xfer_exec, "pre-xfer exec", CONFIG_UNSERVED);
	check_command(subject, module->post_xfer_exec, "post-xfer exec", CONFIG_NOTE);
	check_command(subject, module->name_converter, "name converter", CONFIG_NOTE);
	if (module->max_connections > 0 || module->max_connections_per_host)
		check_writable(subject, module->lock_file, "lock file", CONFIG_UNSERVED);
	/* Syslog takes the place of a log file. */
	if (!subject->check->options->log_file && module->log_file != subject->check->config->defaults.log_file)
		check_writable(subject, module->log_file, "log file", CONFIG_NOTE);
	if (*module->charset && !charset_new(module->charset))
		complain(subject, module->charset, CONFIG_UNSERVED, "charset \"%s\" is not known to this system",
			 module->charset);
}

/* --- roots, as the daemon and then as the module's user --- */

static bool is_on_one_disk(int tree_fd, int real_fd)
{
	struct fs_stat tree, real;

	return fs_stat_at_fd(tree_fd, &tree) == 0 && fs_stat_at_fd(real_fd, &real) == 0 && tree.dev == real.dev;
}

bool check_tree_is_on_disk(const char *tree, const char *real)
{
	int tree_fd = fs_operator_open(tree, O_PATH | O_DIRECTORY, 0);
	int real_fd = fs_operator_open(real, O_PATH | O_DIRECTORY, 0);
	char leaf[256];
	bool same;

	/* One that is still to be made will lie where its directory does. */
	if (tree_fd < 0 && errno == ENOENT)
		tree_fd = fs_operator_target(tree, leaf);
	same = tree_fd >= 0 && real_fd >= 0 && is_on_one_disk(tree_fd, real_fd);
	if (tree_fd >= 0)
		close(tree_fd);
	if (real_fd >= 0)
		close(real_fd);
	return same;
}

static void open_content(struct subject *subject, const char *prefix)
{
	struct attr_source *source = &subject->session.source;

	struct strbuf why = STRBUF_INIT;

	source->kind = ATTRS_ATTR_TREE;
	if (place_open_prefix(&subject->session.place, "", prefix, &source->content_root) < 0) {
		source->content_root.fd = -1;
		place_explain_prefix(&subject->session.place, "", prefix, errno, &why);
		/* Where no reference has to be replaced that has been said already. */
		if (strchr(subject->module->real_file_prefix, '%') || strchr(subject->module->path, '%'))
			complain(subject, subject->module->real_file_prefix, CONFIG_UNSERVED, "%s", strbuf_text(&why));
		strbuf_free(&why);
	} else if (is_on_one_disk(source->attr_root.fd, source->content_root.fd)) {
		complain(subject, subject->module->path, CONFIG_NOTE,
			 "the attr tree lies on the file system of its real tree: is its tmpfs not mounted?");
	}
}

/* false: the path depends on the client, or there is nothing behind it. */
static bool open_roots(struct subject *subject)
{
	struct module_place *place = &subject->session.place;
	enum tristate chroot = subject->module->use_chroot;
	char *path = check_known_text(subject->module->path), *prefix;

	if (!path)
		return false;
	place_split(place, path, chroot == YES || place_divides(subject->module, path) || (chroot == UNSET && geteuid() == 0));
	free(path);
	subject->session.source.attr_root.fd = subject->session.source.content_root.fd = -1;
	if (fs_operator_root(&subject->session.outer, place->outer) < 0 ||
	    fs_root_open_below(&subject->session.source.attr_root, &subject->session.outer, place->inner) < 0) {
		complain(subject, subject->module->path, CONFIG_UNSERVED, "path %s: %s", place->path, strerror(errno));
		return false;
	}
	prefix = check_known_text(subject->module->real_file_prefix);
	if (prefix)
		open_content(subject, prefix);
	free(prefix);
	return true;
}

static bool enter(struct subject *subject)
{
	const struct module *module = subject->module;
	const struct daemon_session *session = &subject->session;
	const char *failed;

	if ((session->place.chroot && fs_enter_chroot(session->outer.fd) < 0) || fchdir(session->source.attr_root.fd) < 0) {
		complain(subject, module->path, CONFIG_UNSERVED, "cannot enter %s: %s", session->place.path, strerror(errno));
		return false;
	}
	if (place_munges_symlinks(session) && attrs_munging_is_unsafe())
		complain(subject, module->path, CONFIG_UNSERVED, MUNGE_UNSAFE);
	failed = subject->has_identity ? identity_take(&session->identity) : NULL;
	if (failed)
		complain(subject, strcmp(failed, "setuid") ? module->gid : module->uid, CONFIG_UNSERVED, "%s: %s", failed,
			 strerror(errno));
	return !failed;
}

/* Nothing can be uploaded without it. A relative one lies in the directory that a client names. */
static void check_temp_dir(struct subject *subject)
{
	const char *value = subject->module->temp_dir;
	char *path = place_is_read_only(&subject->session) ? NULL : check_known_text(value);
	char *inside = path && *path == '/' ? xmalloc(strlen(path) + 2) : NULL;
	int fd;

	if (inside) {
		fs_clean_path(inside, path);
		fd = fs_open_follow(&subject->session.source.attr_root, inside, O_PATH | O_DIRECTORY, 0);
		if (fd < 0 || !fs_may(fd, W_OK | X_OK))
			complain(subject, value, CONFIG_NOTE, "temp dir %s in the module: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	free(inside);
	free(path);
}

static void complain_of_contents(struct subject *subject, int error)
{
	char *prefix = config_text(subject->module->real_file_prefix);
	char *path = place_prefix_path(&subject->session.place, "", prefix);

	complain(subject, subject->module->real_file_prefix, CONFIG_UNSERVED, "uid %u cannot open files in %s: %s",
		 (unsigned)geteuid(), path, strerror(error));
	free(prefix);
	free(path);
}

/* As the module's user. */
static void check_access(struct subject *subject)
{
	const struct daemon_session *session = &subject->session;
	const struct attr_source *source = &session->source;

	if (!fs_may(source->attr_root.fd, R_OK | X_OK))
		complain(subject, subject->module->path, CONFIG_UNSERVED, "uid %u cannot read %s: %s", (unsigned)geteuid(),
			 session->place.path, strerror(errno));
	else if (!place_is_read_only(session) && !fs_may(source->attr_root.fd, W_OK))
		complain(subject, subject->module->path, CONFIG_NOTE, "uid %u cannot write to %s: %s", (unsigned)geteuid(),
			 session->place.path, strerror(errno));
	check_temp_dir(subject);
	if (source->content_root.fd >= 0 && !fs_may(source->content_root.fd, X_OK))
		complain_of_contents(subject, errno);
}

static void find_identity(struct subject *subject)
{
	struct strbuf log = STRBUF_INIT, told = STRBUF_INIT;
	const struct module *module = subject->module;

	subject->has_identity = identity_find(module, &subject->session.identity, &log, &told);
	if (!subject->has_identity)
		complain(subject, !strncmp(strbuf_text(&log), "Invalid uid", 11) ? module->uid : module->gid, CONFIG_UNSERVED,
			 "%s", strbuf_text(&log));
	strbuf_free(&log);
	strbuf_free(&told);
}

/* --- processes --- */

static void report(struct check *check)
{
	daemon_report_problems(&check->problems, CONFIG_REMARK);
	fflush(stdout);
	fflush(stderr);
}

/* The end of a process of the check: its exit code tells the worst that it has found. */
static noreturn void end(struct check *check)
{
	report(check);
	_exit(config_problems_worst(&check->problems) + 1);
}

static noreturn void examine(struct check *check, const struct module *module)
{
	struct subject subject = { .check = check, .module = module, .session.module = module };
	bool opened;

	setenv("RSYNC_MODULE_NAME", module->name, 1);
	subject.session.daemon_options = check->options;
	subject.session.read_only = module->read_only;
	subject.session.source.attr_root.fd = subject.session.source.content_root.fd = -1;
	find_identity(&subject);
	check_files(&subject);
	opened = open_roots(&subject);
	check_describe_module(&subject);
	if (opened && enter(&subject))
		check_access(&subject);
	end(check);
}

/* Returns the worst of a process that ends with end(). */
static int await(pid_t pid)
{
	int status = 0;

	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			pid = -1;
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) <= (int)CONFIG_FATAL + 1)
		return WEXITSTATUS(status) - 1;
	log_error("the check is not complete");
	return CONFIG_FATAL;
}

static int check_module(struct check *check, const struct module *module)
{
	pid_t pid = fork();

	if (pid == 0)
		examine(check, module);
	return await(pid);
}

static noreturn void examine_all(struct check *check)
{
	const struct config *config = check->config;
	int worst = -1, found;

	if (!identity_assume_daemon(&config->globals))
		_exit(CONFIG_UNSERVED + 1);
	check_motd(check);
	report(check);
	worst = config_problems_worst(&check->problems);
	config_problems_free(&check->problems);
	check->problems = (struct config_problems)CONFIG_PROBLEMS_INIT;
	for (size_t i = 0; i < config->modules.count; i++) {
		const struct module *module = &config->modules.items[i];

		if (module->disabled || !*module->path) {
			if (!check->options->quiet)
				log_info("[%s] is not served", module->name);
			continue;
		}
		found = check_module(check, module);
		worst = found > worst ? found : worst;
	}
	_exit(worst + 1);
}

/* --- the whole --- */

/* A line of the client names the module, and one with a "#" is a command. */
static bool can_be_named(const char *name)
{
	return *name != '#' && strlen(name) < SESSION_LINE_SIZE;
}

static void check_modules(const struct config *config, const char *path, struct config_problems *problems)
{
	struct strbuf text = STRBUF_INIT;

	for (size_t i = 0; i < config->modules.count; i++) {
		const struct module *module = &config->modules.items[i];

		strbuf_reset(&text);
		if (!can_be_named(module->name))
			strbuf_addf(&text, "no client can name module \"%s\"", module->name);
		else if (!*module->path)
			strbuf_addf(&text, "module \"%s\" has no path", module->name);
		if (text.length)
			check_add_at(problems, config_place_of(config, module->name), path, CONFIG_UNSERVED,
				     strbuf_text(&text));
	}
	strbuf_free(&text);
}

struct config *check_load(const struct options *options, struct snapshots *snapshots, struct config_problems *problems)
{
	const char *path = daemon_config_path(options);
	struct config *config = config_load(path, options->dparams.items, options->dparams.count, CONFIG_CHECK, problems);

	if (config)
		check_modules(config, path, problems);
	snapshots_refresh(snapshots);
	if (config)
		snapshots_report(snapshots, config, problems);
	return config;
}

/* The listener's part. Then another process, which gives up the daemon's rights, looks at the modules. */
static int run_check(struct check *check)
{
	int worst, found;
	pid_t pid;

	if (check->config) {
		check_describe_daemon(check);
		check_listener(check);
	}
	report(check);
	worst = config_problems_worst(&check->problems);
	if (!check->config)
		return worst;
	config_problems_free(&check->problems);
	check->problems = (struct config_problems)CONFIG_PROBLEMS_INIT;
	pid = fork();
	if (pid == 0)
		examine_all(check);
	found = await(pid);
	return found > worst ? found : worst;
}

int daemon_check_main(const struct options *options)
{
	struct check check = { .options = options, .file = daemon_config_path(options), .problems = CONFIG_PROBLEMS_INIT };
	struct snapshots *snapshots = snapshots_new(options);
	struct config *config = check_load(options, snapshots, &check.problems);
	int worst;

	exit_set_quiet(true);
	check.config = config;
	check.snapshots = snapshots;
	worst = run_check(&check);
	config_free(config);
	config_problems_free(&check.problems);
	return worst < (int)CONFIG_UNSERVED ? EXIT_OK : EXIT_SYNTAX;
}
