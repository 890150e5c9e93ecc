/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is wrong with a configuration, and what its modules would do. One process takes on the daemon's identity, and for each
 * module another one goes into the module's root and takes on its user: what those may read is found by trying.
 */
#include "daemon/check.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/auth.h"
#include "daemon/listen.h"
#include "daemon/roots.h"
#include "daemon/session.h"
#include "delta/digest.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/socket.h"
#include "lib/alloc.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/process.h"
#include "loadparm/hosts.h"
#include "options/refuse.h"

#define OUTPUT_MAX (64 << 10)

struct check {
	const struct options *options;
	const struct config *config;
	struct snapshots *snapshots;
	struct config_problems problems;
};

/* The daemon as a whole (module NULL), or a module in its own process; the session is one that has no client. */
struct subject {
	struct check *check;
	const struct module *module;
	struct daemon_session session;
	bool has_identity;
	int ends[2]; /* of the pipe that an attempt logs to */
};

/* --- problems --- */

/* Records a problem at the line of the value, or at the module's header if it has its default, or of the file as a whole. */
__attribute__((format(printf, 4, 5)))
static void complain(struct subject *subject, const char *value, enum config_severity severity, const char *fmt, ...)
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
	config_problem_add(&subject->check->problems, place ? place->file : subject->check->options->config_file,
			   place ? place->line : 0, severity, "%s", strbuf_text(&text));
	strbuf_free(&text);
}

/* Records a problem for each line of `output`, as "WHAT: LINE" (what NULL: "LINE"), and frees it. */
static void complain_of(struct subject *subject, const char *value, enum config_severity severity, const char *what,
			struct strbuf *output)
{
	char *rest, *line;

	if (output->length)
		for (line = strtok_r(output->data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			complain(subject, value, severity, "%s%s%s", what ? what : "", what ? ": " : "", line);
	strbuf_free(output);
}

/* --- values --- */

/* Returns the value as a session would have it; NULL if that depends on the client, or if it is not set. */
static char *known_text(const char *value)
{
	char *text = config_text(value);

	if (*text && !strstr(text, "%RSYNC_"))
		return text;
	free(text);
	return NULL;
}

static bool may_read(const char *path)
{
	int fd = fs_operator_open(path, O_RDONLY | O_NONBLOCK, 0);

	fs_close(fd);
	return fd >= 0;
}

/* Records a problem if the file that the value names could not be written to. */
static void check_writable(struct subject *subject, const char *value, const char *what, enum config_severity severity)
{
	char *path = known_text(value);

	if (path && !fs_operator_may_write(path))
		complain(subject, value, severity, "%s %s: %s", what, path, strerror(errno));
	free(path);
}

/* --- attempts --- */

static void emit(void *context, enum log_kind kind, const char *text, size_t length)
{
	(void)kind;
	if (fs_write_all(*(const int *)context, text, length) < 0)
		_exit(EXIT_IPC);
}

/*
 * Appends the lines that an attempt logs. true: this is the process of its own that makes it; it may end itself, and ends by
 * _exit. false: it has ended.
 */
static bool try(struct subject *subject, struct strbuf *output)
{
	pid_t pid;
	int status;

	if (pipe(subject->ends) < 0 || (pid = fork()) < 0)
		die(EXIT_IPC, "cannot try: %s", strerror(errno));
	if (pid == 0) {
		log_set_sink((struct log_sink){ emit, &subject->ends[1] });
		exit_set_quiet(true);
		return true;
	}
	close(subject->ends[1]);
	if (fs_read_all(subject->ends[0], OUTPUT_MAX, output) < 0)
		strbuf_add_string(output, "it has more problems than can be reported here\n");
	close(subject->ends[0]);
	status = process_wait(pid);
	if (status && !output->length)
		strbuf_addf(output, "the attempt ended with status %d\n", status);
	return false;
}

/* --- the description on standard output --- */

static void describe_snapshot(const struct subject *subject, struct strbuf *out)
{
	const struct module *module = subject->module;
	char *path = config_text(module->attr_snapshot);
	struct strbuf why = STRBUF_INIT;
	struct snapshot_finding finding;
	int64_t now = time(NULL);

	strbuf_addf(out, ", listed from the snapshot %s: ", path);
	if (strstr(path, "%RSYNC_"))
		strbuf_add_string(out, "depends on the client");
	else if (snapshots_find(subject->check->snapshots, module->name, path, &finding) && finding.snapshot &&
		 snapshot_judge(finding.snapshot, module->attr_snapshot_max_age, subject->session.source.attr_root.fd, now,
				&why) == SNAPSHOT_IN_USE)
		snapshot_summary(finding.snapshot, now, out);
	else
		strbuf_addf(out, "cannot be used, %s", module->attr_snapshot_fallback == SNAPSHOT_FALLBACK_REFUSE ?
			    "clients are refused" : "the tree itself is listed");
	strbuf_free(&why);
	free(path);
}

static void describe_limits(const struct module *module, struct strbuf *out)
{
	static const struct {
		const char *text;
		size_t offset;
	} set[] = {
		{ ", auth users", offsetof(struct module, auth_users) },
		{ ", hosts allow", offsetof(struct module, hosts_allow) },
		{ ", hosts deny", offsetof(struct module, hosts_deny) },
		{ ", early exec", offsetof(struct module, early_exec) },
		{ ", pre-xfer exec", offsetof(struct module, pre_xfer_exec) },
		{ ", post-xfer exec", offsetof(struct module, post_xfer_exec) },
		{ ", name converter", offsetof(struct module, name_converter) },
	};
	const size_t memory = module->memory_limit;

	for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
		if (**(char *const *)((const char *)module + set[i].offset))
			strbuf_add_string(out, set[i].text);
	if (module->max_connections > 0)
		strbuf_addf(out, ", at most %d connections", module->max_connections);
	if (module->max_connections < 0)
		strbuf_add_string(out, ", closed by \"max connections\"");
	if (module->max_connections_per_host)
		strbuf_addf(out, ", at most %d connections per host", module->max_connections_per_host);
	if (module->timeout > 0)
		strbuf_addf(out, ", timeout %d s", module->timeout);
	if (memory % ((size_t)1 << 30) == 0)
		strbuf_addf(out, ", per session %zuG of memory", memory >> 30);
	else if (memory % (1 << 20) == 0)
		strbuf_addf(out, ", per session %zuM of memory", memory >> 20);
	else
		strbuf_addf(out, ", per session %zu bytes of memory", memory);
	if (module->cpu_limit)
		strbuf_addf(out, " and %d s of the processor", module->cpu_limit);
	if (!module->list)
		strbuf_add_string(out, ", not in the list of modules");
}

static void describe_module(const struct subject *subject)
{
	struct strbuf form = STRBUF_INIT, rights = STRBUF_INIT;
	const struct daemon_session *session = &subject->session;
	const struct identity *identity = &session->identity;
	const struct module *module = subject->module;
	char *path, *prefix, *daemon_root, *real;
	bool read_only = place_is_read_only(session);
	struct module_place place;

	if (subject->check->options->quiet)
		return;
	path = config_text(module->path);
	prefix = config_text(module->real_file_prefix);
	daemon_root = config_text(subject->check->config->globals.daemon_chroot);
	strbuf_addf(&form, "[%s] %s", module->name, path);
	if (*prefix) {
		place_split(&place, path, place_divides(module, path));
		real = place_prefix_path(&place, daemon_root, prefix);
		strbuf_addf(&form, ", an attr tree of %s", real);
		place_free(&place);
		free(real);
	} else if (strstr(path, "%RSYNC_")) {
		strbuf_add_string(&form, ", which depends on the client");
	} else if (*module->attr_snapshot) {
		describe_snapshot(subject, &form);
	} else {
		strbuf_add_string(&form, ", listed from the tree itself");
	}
	log_info("%s", strbuf_text(&form));
	strbuf_free(&form);
	free(path);
	free(prefix);
	free(daemon_root);
	strbuf_addf(&rights, "    %s, %s", module->write_only ? (read_only ? "neither read nor written" : "write only")
		    : read_only ? "read only" : "writable", session->place.chroot ? "chroot" : "no chroot");
	if (subject->has_identity) {
		strbuf_addf(&rights, ", uid %u, gid", (unsigned)(identity->set_uid ? identity->uid : geteuid()));
		for (size_t i = 0; i < identity->gids.count; i++)
			strbuf_addf(&rights, "%s%u", i ? "," : " ", (unsigned)identity->gids.items[i]);
		if (!identity->gids.count)
			strbuf_addf(&rights, " %u", (unsigned)getegid());
	}
	describe_limits(module, &rights);
	log_info("%s", strbuf_text(&rights));
	strbuf_free(&rights);
}

/* --- the daemon as a whole --- */

/* Checks the files that the listener opens with all of its rights. It does not start without some, and runs without others. */
static void check_listener(struct check *check)
{
	const struct config *config = check->config;
	const char *log = check->options->log_file ? check->options->log_file : config->defaults.log_file;
	struct subject daemon = { .check = check };
	struct strbuf output = STRBUF_INIT;
	const char *value;
	char *address;

	check_writable(&daemon, config->globals.pid_file, "pid file", CONFIG_UNSERVED);
	check_writable(&daemon, config->globals.control_socket, "control socket", CONFIG_UNSERVED);
	check_writable(&daemon, log, "log file", CONFIG_NOTE);
	check_writable(&daemon, config->globals.metrics_file, "metrics file", CONFIG_NOTE);
	/* Options of the command line replace these parameters. */
	if (!check->options->sockopts) {
		value = config->globals.socket_options;
		if (*value && try(&daemon, &output)) {
			int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

			if (fd >= 0)
				socket_options_apply(fd, value);
			_exit(EXIT_OK);
		}
		complain_of(&daemon, value, CONFIG_NOTE, NULL, &output);
	}
	value = config->globals.address;
	address = check->options->address ? NULL : known_text(value);
	if (address) {
		/* The port may be in use, by the daemon that the configuration is for: it plays no part here. */
		const struct listen_request request = {
			.address = address, .family = check->options->ip_family, .socket_options = "",
		};
		listen_sockets sockets = VEC_INIT;

		if (try(&daemon, &output)) {
			listen_bind(&request, &sockets);
			_exit(EXIT_OK);
		}
		/* One line says enough of it. */
		if (output.length)
			strbuf_truncate(&output, strcspn(output.data, "\n"));
		complain_of(&daemon, value, CONFIG_UNSERVED, "address", &output);
	}
	free(address);
}

/* --- the files of a module, as the daemon --- */

/* A command is checked only if its first word is a path: anything else is up to the shell. */
static void check_command(struct subject *subject, const char *value, const char *what, enum config_severity severity)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._+-@,:";
	char *command = known_text(value);
	size_t length = command && *command == '/' ? strspn(command, plain) : 0;
	int fd;

	if (length && (!command[length] || command[length] == ' ')) {
		command[length] = 0;
		fd = fs_operator_open(command, O_PATH | FS_ANY_LINKS, 0);
		if (fd < 0 || !fs_may(fd, X_OK))
			complain(subject, value, severity, "%s %s: %s", what, command, strerror(errno));
		fs_close(fd);
	}
	free(command);
}

static void check_users(struct subject *subject)
{
	const struct module *module = subject->module;
	char *digest, *users, *word;
	struct config_list list;
	const char *why;

	if (!*module->auth_users)
		return;
	digest = known_text(module->auth_digest);
	if (digest && auth_digest_rank(digest) < 0)
		complain(subject, module->auth_digest, CONFIG_UNSERVED,
			 "nobody can log in: auth digest \"%s\" is no digest that this build has", digest);
	free(digest);
	if (strstr(module->secrets_file, "%RSYNC_"))
		return;
	why = auth_secrets_problem(module);
	if (why)
		complain(subject, module->secrets_file, CONFIG_UNSERVED, "nobody can log in: secrets file%s%s: %s",
			 *module->secrets_file ? " " : "", module->secrets_file, why);
	users = known_text(module->auth_users);
	if (!users)
		return;
	config_list_start(&list, users);
	while ((word = config_list_next(&list))) {
		word[strcspn(word, ":")] = 0;
		/* Patterns may match what is still to come. */
		if (*word == '@' && !strpbrk(word, "*?[") && !getgrnam(word + 1))
			complain(subject, module->auth_users, CONFIG_NOTE, "auth users: there is no group \"%s\"", word + 1);
	}
	free(users);
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
	char *text = known_text(value);

	if (text)
		hosts_list_doubts(text, &peer, denies, &why);
	free(text);
	complain_of(subject, value, denies && !*module->hosts_allow ? CONFIG_UNSERVED : CONFIG_NOTE,
		    denies ? "hosts deny" : "hosts allow", &why);
}

static void check_files(struct subject *subject)
{
	const struct module *module = subject->module;
	char *refused = known_text(module->refuse_options);
	struct strbuf output = STRBUF_INIT;

	check_users(subject);
	check_hosts(subject, module->hosts_allow, false);
	check_hosts(subject, module->hosts_deny, true);
	/* One parameter after the other, so that each problem has its line. */
	for (int i = 0; i < MODULE_RULES; i++) {
		const struct rules_parameter *parameter = rules_parameter((enum module_rules)i);
		const char *value = module->rules[i];
		char *text = known_text(value);

		if (text && parameter->is_file && !may_read(text)) {
			complain(subject, value, CONFIG_UNSERVED, "%s %s: %s", parameter->name, text, strerror(errno));
		} else if (text && try(subject, &output)) {
			rules_load_parameter(&subject->session, (enum module_rules)i);
			_exit(EXIT_OK);
		}
		free(text);
		complain_of(subject, value, CONFIG_UNSERVED, parameter->name, &output);
	}
	if (refused && try(subject, &output)) {
		refused_options_free(refused_options_new(refused, true));
		_exit(EXIT_OK);
	}
	free(refused);
	complain_of(subject, module->refuse_options, CONFIG_NOTE, "refuse options", &output);
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
		tree_fd = fs_operator_parent(tree, FS_FOLLOW, leaf);
	same = tree_fd >= 0 && real_fd >= 0 && is_on_one_disk(tree_fd, real_fd);
	fs_close(tree_fd);
	fs_close(real_fd);
	return same;
}

/* false: the path depends on the client, or there is nothing behind it. */
static bool open_roots(struct subject *subject)
{
	const struct module *module = subject->module;
	struct module_place *place = &subject->session.place;
	struct attr_source *source = &subject->session.source;
	enum tristate chroot = module->use_chroot;
	char *path = known_text(module->path), *prefix;
	struct strbuf why = STRBUF_INIT;

	if (!path)
		return false;
	place_split(place, path, chroot == YES || place_divides(module, path) || (chroot == UNSET && geteuid() == 0));
	free(path);
	source->attr_root.fd = source->content_root.fd = -1;
	if (fs_operator_root(&subject->session.outer, place->outer) < 0
	    || fs_root_open_below(&source->attr_root, &subject->session.outer, place->inner) < 0) {
		complain(subject, module->path, CONFIG_UNSERVED, "path %s: %s", place->path, strerror(errno));
		return false;
	}
	prefix = known_text(module->real_file_prefix);
	if (!prefix)
		return true;
	source->kind = ATTRS_ATTR_TREE;
	if (place_open_prefix(place, "", prefix, &source->content_root) < 0) {
		source->content_root.fd = -1;
		place_explain_prefix(place, "", prefix, errno, &why);
		/* Where no reference has to be replaced that has been said already. */
		if (strchr(module->real_file_prefix, '%') || strchr(module->path, '%'))
			complain(subject, module->real_file_prefix, CONFIG_UNSERVED, "%s", strbuf_text(&why));
		strbuf_free(&why);
	} else if (is_on_one_disk(source->attr_root.fd, source->content_root.fd)) {
		complain(subject, module->path, CONFIG_NOTE,
			 "the attr tree lies on the file system of its real tree: is its tmpfs not mounted?");
	}
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

/* As the module's user. */
static void check_access(struct subject *subject)
{
	const struct module *module = subject->module;
	const struct daemon_session *session = &subject->session;
	const struct attr_source *source = &session->source;
	const bool read_only = place_is_read_only(session);
	char *temp_dir = read_only ? NULL : known_text(module->temp_dir);
	int fd;

	if (!fs_may(source->attr_root.fd, R_OK | X_OK))
		complain(subject, module->path, CONFIG_UNSERVED, "uid %u cannot read %s: %s", (unsigned)geteuid(),
			 session->place.path, strerror(errno));
	else if (!read_only && !fs_may(source->attr_root.fd, W_OK))
		complain(subject, module->path, CONFIG_NOTE, "uid %u cannot write to %s: %s", (unsigned)geteuid(),
			 session->place.path, strerror(errno));
	/* Nothing can be uploaded without it. A relative one lies in the directory that a client names. */
	if (temp_dir && *temp_dir == '/') {
		char *inside = xmalloc(strlen(temp_dir) + 2);

		fs_clean_path(inside, temp_dir);
		fd = fs_open(&source->attr_root, inside, O_PATH | O_DIRECTORY | FS_FOLLOW, 0);
		if (fd < 0 || !fs_may(fd, W_OK | X_OK))
			complain(subject, module->temp_dir, CONFIG_NOTE, "temp dir %s in the module: %s", temp_dir,
				 strerror(errno));
		fs_close(fd);
		free(inside);
	}
	free(temp_dir);
	if (source->content_root.fd >= 0 && !fs_may(source->content_root.fd, X_OK)) {
		char *prefix = config_text(module->real_file_prefix);
		char *path = place_prefix_path(&session->place, "", prefix);

		complain(subject, module->real_file_prefix, CONFIG_UNSERVED, "uid %u cannot open files in %s: %s",
			 (unsigned)geteuid(), path, strerror(errno));
		free(prefix);
		free(path);
	}
}

/* --- processes --- */

/* Returns the worst severity, -1 for none. */
static int report(struct check *check)
{
	int worst = config_problems_worst(&check->problems);

	config_problems_report(&check->problems, CONFIG_REMARK);
	fflush(stdout);
	fflush(stderr);
	return worst;
}

/* A process of its own, whose exit code is the worst severity that it has found, plus one. */
static noreturn void examine(struct check *check, const struct module *module)
{
	struct subject subject = { .check = check, .module = module, .session.module = module };
	struct strbuf log = STRBUF_INIT, answer = STRBUF_INIT;
	bool opened;

	setenv("RSYNC_MODULE_NAME", module->name, 1);
	subject.session.daemon_options = check->options;
	subject.session.read_only = module->read_only;
	subject.session.source.attr_root.fd = subject.session.source.content_root.fd = -1;
	subject.has_identity = identity_find(module, &subject.session.identity, &log, &answer);
	if (!subject.has_identity)
		complain(&subject, !strncmp(strbuf_text(&log), "Invalid uid", 11) ? module->uid : module->gid, CONFIG_UNSERVED,
			 "%s", strbuf_text(&log));
	strbuf_free(&log);
	strbuf_free(&answer);
	check_files(&subject);
	opened = open_roots(&subject);
	describe_module(&subject);
	if (opened && enter(&subject))
		check_access(&subject);
	_exit(report(check) + 1);
}

/* Returns the worst of a process of the check, or what was worse. */
static int await(pid_t pid, int worst)
{
	int status = pid > 0 ? process_wait(pid) : -1;

	if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) <= (int)CONFIG_FATAL + 1)
		return WEXITSTATUS(status) - 1 > worst ? WEXITSTATUS(status) - 1 : worst;
	log_error("the check is not complete");
	return CONFIG_FATAL;
}

static noreturn void examine_all(struct check *check)
{
	const struct config *config = check->config;
	struct subject daemon = { .check = check };
	int worst;
	char *motd;
	pid_t pid;

	if (!identity_assume_daemon(&config->globals))
		_exit(CONFIG_UNSERVED + 1);
	motd = known_text(config->globals.motd_file);
	if (motd && !may_read(motd))
		complain(&daemon, config->globals.motd_file, CONFIG_NOTE, "motd file %s: %s", motd, strerror(errno));
	free(motd);
	worst = report(check);
	for (size_t i = 0; i < config->modules.count; i++) {
		const struct module *module = &config->modules.items[i];

		if (module->disabled || !*module->path) {
			if (!check->options->quiet)
				log_info("[%s] is not served", module->name);
			continue;
		}
		pid = fork();
		if (pid == 0)
			examine(check, module);
		worst = await(pid, worst);
	}
	_exit(worst + 1);
}

/* --- the whole --- */

struct config *check_load(const struct options *options, struct snapshots *snapshots, struct config_problems *problems)
{
	struct config *config =
		config_load(options->config_file, options->dparams.items, options->dparams.count, CONFIG_CHECK, problems);

	for (size_t i = 0; config && i < config->modules.count; i++) {
		const struct module *module = &config->modules.items[i];
		const struct config_place *place = config_place_of(config, module->name);
		const char *file = place ? place->file : options->config_file;
		const int line = place ? place->line : 0;

		/* A line of the client names the module, and one with a "#" is a command. */
		if (*module->name == '#' || strlen(module->name) >= SESSION_LINE_SIZE)
			config_problem_add(problems, file, line, CONFIG_UNSERVED, "no client can name module \"%s\"",
					   module->name);
		else if (!*module->path)
			config_problem_add(problems, file, line, CONFIG_UNSERVED, "module \"%s\" has no path", module->name);
	}
	snapshots_refresh(snapshots);
	if (config)
		snapshots_report(snapshots, config, problems);
	return config;
}

int daemon_check_main(const struct options *options)
{
	struct check check = { .options = options, .snapshots = snapshots_new(options), .problems = CONFIG_PROBLEMS_INIT };
	struct config *config = check_load(options, check.snapshots, &check.problems);
	struct strbuf text = STRBUF_INIT;
	int worst;
	pid_t pid;

	exit_set_quiet(true);
	check.config = config;
	if (config && !options->quiet) {
		const struct config_globals *globals = &config->globals;

		strbuf_addf(&text, "%s: %zu module%s, port %d", options->config_file, config->modules.count,
			    config->modules.count == 1 ? "" : "s", globals->port);
		if (*globals->daemon_chroot)
			strbuf_addf(&text, ", paths below %s", globals->daemon_chroot);
		if (globals->max_connections_per_host)
			strbuf_addf(&text, ", at most %d connections per host", globals->max_connections_per_host);
		if (globals->max_connection_rate)
			strbuf_addf(&text, ", at most %d connections of a host in a minute", globals->max_connection_rate);
		if (globals->minimum_rate)
			strbuf_addf(&text, ", sessions below %d bytes a minute make room", globals->minimum_rate);
		log_info("%s", strbuf_text(&text));
		strbuf_free(&text);
	}
	if (config)
		check_listener(&check);
	worst = report(&check);
	/* Another process, which gives up the daemon's rights, looks at the modules. */
	if (config) {
		pid = fork();
		if (pid == 0)
			examine_all(&check);
		worst = await(pid, worst);
	}
	config_free(config);
	return worst < (int)CONFIG_UNSERVED ? EXIT_OK : EXIT_SYNTAX;
}
