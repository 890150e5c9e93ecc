/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The daemon's ways to start: standalone, handed a socket, or over a remote shell; and the listener's loop. */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "daemon/check.h"
#include "daemon/listen.h"
#include "daemon/peer.h"
#include "daemon/sandbox.h"
#include "daemon/session.h"
#include "daemon/snapshots.h"
#include "daemon/status.h"
#include "daemon/talk.h"
#include "fs/lock.h"
#include "fs/operator.h"
#include "fs/socket.h"
#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "loadparm.h"
#include "ui/log_file.h"

#ifndef HUAI_VERSION
#define HUAI_VERSION "dev"
#endif

#define DESCRIPTORS_WANTED 4096

struct listener {
	const struct options *options;
	struct config *config;        /* what stands before the first section */
	struct log_file log;
	listen_sockets sockets;
	struct fs_own_name pid_file;
	struct fs_own_name control;
	struct children *children;
	struct rates *rates;
	struct guesses *guesses;
	int port;
	int per_host, per_minute;     /* connections of a host, and in a minute; 0: any number */
	struct snapshots *snapshots;
	struct metrics *metrics;
	sigset_t outside_mask;        /* for server processes */
	int signal_fd;
	int starter_fd;               /* the process that started this one waits here; -1: none does */
};

/* --- configuration --- */

static struct config *load_globals(const struct options *options)
{
	struct config_problems problems = CONFIG_PROBLEMS_INIT;
	struct config *config =
		config_load(options->config_file, options->dparams.items, options->dparams.count, CONFIG_LISTENER, &problems);

	config_problems_free(&problems);
	return config;
}

static void set_limits(struct listener *listener, const struct config *config)
{
	listener->per_host = config->globals.max_connections_per_host;
	listener->per_minute = config->globals.max_connection_rate;
	listener->children->minimum_rate = config->globals.minimum_rate;
}

/* Every connection reads the configuration anew. What is left is to say what is wrong with it, and how many may come. */
static void reload(struct listener *listener)
{
	struct config_problems problems = CONFIG_PROBLEMS_INIT;
	struct config *config = check_load(listener->options, listener->snapshots, &problems);
	int worst = config_problems_worst(&problems);

	config_problems_report(&problems, CONFIG_REMARK);
	config_free(config);
	if (worst >= (int)CONFIG_ERROR)
		return;
	log_msg(L_LOG, worst < (int)CONFIG_UNSERVED ? "the configuration has no errors"
		: "the configuration is in use, but not every module is served as it should be");
	config = load_globals(listener->options);
	if (!config)
		return;
	if (config->globals.max_connection_rate != listener->per_minute)
		rates_forget(listener->rates);
	set_limits(listener, config);
	config_free(config);
}

/* --- start-up --- */

/* A client that somebody else has accepted: nothing else is taken for one (doc/protocol/09-since-3.5.0.md section 10). */
static bool is_connection(int fd)
{
	struct sockaddr_storage peer;
	socklen_t type_length = sizeof(int), length = sizeof peer;
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_length) == 0 && type == SOCK_STREAM &&
	       getpeername(fd, (struct sockaddr *)&peer, &length) == 0 &&
	       (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
}

/* Sockets that were handed over count before any that the configuration names. */
static bool get_sockets(struct listener *listener)
{
	const struct options *options = listener->options;
	const struct config_globals *globals = &listener->config->globals;
	char *address = config_text(options->address ? options->address : globals->address);
	const struct listen_request request = {
		.address = address, .port = listener->port, .backlog = globals->listen_backlog,
		.family = options->ip_family, .verbose = options->verbose > 1,
		.socket_options = options->sockopts ? options->sockopts : globals->socket_options,
	};
	int listening = 0;
	socklen_t length = sizeof listening;
	bool ok = true;

	if (getsockopt(0, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) == 0 && listening)
		vec_push(&listener->sockets, fcntl(0, F_DUPFD_CLOEXEC, 3));
	else
		listen_from_systemd(&listener->sockets);
	for (size_t i = 0; i < listener->sockets.count; i++)
		socket_options_apply(listener->sockets.items[i], "");
	if (!listener->sockets.count)
		ok = listen_open(&request, &listener->sockets);
	free(address);
	return ok;
}

static void use_dev_null(void)
{
	int fd = fs_operator_open("/dev/null", O_RDWR, 0);

	for (int i = 0; fd >= 0 && i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
}

/* The starter stays until the daemon is ready or has failed, and ends with its code. */
static void detach(struct listener *listener)
{
	unsigned char code = EXIT_IPC;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		die(EXIT_IPC, "cannot detach: %s", strerror(errno));
	if (pid > 0) {
		close(ends[1]);
		if (read(ends[0], &code, 1) != 1)
			code = EXIT_CRASHED;
		_exit(code);
	}
	close(ends[0]);
	listener->starter_fd = ends[1];
	setsid();
}

static void notify_starter(struct listener *listener, int code)
{
	unsigned char byte = (unsigned char)code;

	if (listener->starter_fd < 0)
		return;
	if (write(listener->starter_fd, &byte, 1) < 0)
		log_errno(L_LOG, errno, "cannot report to the starting process");
	close(listener->starter_fd);
	listener->starter_fd = -1;
}

/* The pid file and the control socket. */
static bool make_files(struct listener *listener)
{
	char *pid_file = config_text(listener->config->globals.pid_file);
	char *control = config_text(listener->config->globals.control_socket);
	const char *what = "open";
	bool ok = !*pid_file || fs_pid_file_write(&listener->pid_file, pid_file, &what) == 0;

	if (!ok) {
		log_error("failed to %s pid file %s: %s", what, pid_file, strerror(errno));
	} else if (*control && fs_socket_listen(&listener->control, control) < 0) {
		log_error("cannot listen at the control socket %s: %s", control, strerror(errno));
		ok = false;
	}
	free(pid_file);
	free(control);
	return ok;
}

/* The listener takes its signals as input: nothing happens between two lines of code. */
static void catch_signals(struct listener *listener)
{
	sigset_t caught = session_ending_signals();

	sigaddset(&caught, SIGCHLD);
	sigprocmask(SIG_BLOCK, &caught, &listener->outside_mask);
	listener->signal_fd = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
	if (listener->signal_fd < 0)
		die(EXIT_IPC, "cannot receive signals: %s", strerror(errno));
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

/* --- the loop --- */

static noreturn void end_listener(struct listener *listener, int code)
{
	listen_notify("STOPPING=1");
	children_reap(listener->children);
	children_report(listener->children, clock_nanoseconds(), true);
	metrics_update(listener->metrics, true);
	if (code == EXIT_OK)
		log_msg(L_LOG, "sent 0 bytes  received 0 bytes  total size 0");
	fs_own_name_remove(&listener->control);
	fs_own_name_remove(&listener->pid_file);
	exit_with(code);
}

static void take_signals(struct listener *listener)
{
	struct signalfd_siginfo info;

	while (read(listener->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
		switch (info.ssi_signo) {
		case SIGCHLD:
			children_reap(listener->children);
			break;
		case SIGHUP:
			reload(listener);
			metrics_update(listener->metrics, true);
			break;
		default:
			end_listener(listener, info.ssi_signo == SIGTERM ? EXIT_OK : EXIT_SIGNAL);
		}
	}
}

static noreturn void serve(struct listener *listener, int fd, int slot, struct session_limit over)
{
	struct daemon_session session = {
		.daemon_options = listener->options, .log = &listener->log, .in_fd = fd, .out_fd = fd, .standalone = true,
		.snapshots = listener->snapshots, .over = over, .board = children_become(listener->children, slot),
		.guesses = listener->guesses,
	};
	int one = 1;

	alloc_set_patient(false);
	for (size_t i = 0; i < listener->sockets.count; i++)
		close(listener->sockets.items[i]);
	close(listener->signal_fd);
	fs_own_name_close(&listener->control);
	fs_own_name_close(&listener->pid_file);
	unsetenv("NOTIFY_SOCKET");
	signal(SIGUSR1, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
	sigprocmask(SIG_SETMASK, &listener->outside_mask, NULL);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	daemon_session_run(&session);
}

static void accept_one(struct listener *listener, int socket_fd)
{
	struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
	socklen_t length = sizeof peer;
	int fd = accept4(socket_fd, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC), slot, limit;
	struct session_limit over = { .name = NULL };
	struct child *child;
	char text[100];
	pid_t pid;

	if (fd < 0) {
		/* A connection that went away is not worth a line; without descriptors, waiting is all that helps. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			log_errno(L_ERROR, errno, "cannot accept a connection");
			sleep(1);
		}
		return;
	}
	children_reap(listener->children);
	slot = children_admit(listener->children, listener->config->globals.proxy_protocol ? NULL : (struct sockaddr *)&peer,
			      clock_nanoseconds(), &limit);
	if (slot < 0) {
		/* Too many of them: a line, if the socket takes it at once, and good-bye. */
		length = (socklen_t)snprintf(text, sizeof text, "@ERROR: max connections (%d) reached -- try again later\n",
					     limit);
		log_msg(L_LOG, "connection refused: too many server processes%s",
			send(fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? ", and no answer could be sent" : "");
		metrics_count_refusal(listener->metrics);
		close(fd);
		return;
	}
	/* The operator's limit that the client exceeds, if any; a process of its own then refuses it. */
	child = &listener->children->items[slot];
	if (child->origin.family != AF_UNSPEC && listener->per_host
	    && children_of_host(listener->children, slot) >= listener->per_host)
		over = (struct session_limit){ "max connections per host", listener->per_host };
	else if (child->origin.family != AF_UNSPEC && listener->per_minute
		 && !rates_take(listener->rates, &child->origin, listener->per_minute, clock_nanoseconds()))
		over = (struct session_limit){ "max connection rate", listener->per_minute };
	child->refused = over.name;
	snapshots_refresh(listener->snapshots);
	pid = fork();
	if (pid == 0)
		serve(listener, fd, slot, over);
	if (pid < 0) {
		log_errno(L_ERROR, errno, "could not create child server process");
	} else {
		child->pid = pid;
		child->since = time(NULL);
	}
	close(fd);
	if (pid < 0)
		sleep(2);
}

static noreturn void listen_for_ever(struct listener *listener)
{
	size_t count = listener->sockets.count;
	struct pollfd *polls = xcalloc(count + 2, sizeof *polls);

	for (size_t i = 0; i < count; i++) {
		polls[i] = (struct pollfd){ .fd = listener->sockets.items[i], .events = POLLIN };
		fcntl(polls[i].fd, F_SETFL, fcntl(polls[i].fd, F_GETFL) | O_NONBLOCK);
	}
	polls[count] = (struct pollfd){ .fd = listener->signal_fd, .events = POLLIN };
	polls[count + 1] = (struct pollfd){ .fd = listener->control.fd, .events = POLLIN };
	/* Its sessions would go on, but nobody could begin one. */
	alloc_set_patient(true);
	for (;;) {
		/* Milliseconds until there is something to do though nothing has come, -1: never. */
		int waits[3], wait = -1;

		children_report(listener->children, clock_nanoseconds(), false);
		children_sample(listener->children, clock_nanoseconds());
		log_file_close(&listener->log);
		metrics_update(listener->metrics, false);
		waits[0] = metrics_wait(listener->metrics);
		waits[1] = children_report_wait(listener->children, clock_nanoseconds());
		waits[2] = children_sample_wait(listener->children, clock_nanoseconds());
		for (int i = 0; i < 3; i++)
			if (waits[i] >= 0 && (wait < 0 || waits[i] < wait))
				wait = waits[i];
		if (poll(polls, count + 2, wait) < 0) {
			if (errno == EINTR)
				continue;
			log_errno(L_ERROR, errno, "poll failed");
			end_listener(listener, EXIT_SOCKETIO);
		}
		if (polls[count].revents)
			take_signals(listener);
		if (polls[count + 1].revents)
			status_answer(listener->control.fd, listener->children);
		for (size_t i = 0; i < count; i++)
			if (polls[i].revents)
				accept_one(listener, polls[i].fd);
	}
}

/* --- modes --- */

static int run_standalone(struct options *options)
{
	struct listener listener = { .options = options, .pid_file = FS_OWN_NAME_INIT, .control = FS_OWN_NAME_INIT,
				     .starter_fd = -1 };
	struct config_problems problems = CONFIG_PROBLEMS_INIT;
	const struct module *defaults;
	struct rlimit limit;
	char *log_file, *tag, *metrics_path;

	listener.snapshots = snapshots_new(options);
	config_free(check_load(options, listener.snapshots, &problems));
	if (config_problems_worst(&problems) < (int)CONFIG_ERROR)
		listener.config = load_globals(options);
	if (!listener.config) {
		config_problems_report(&problems, CONFIG_REMARK);
		log_error("Failed to parse config file: %s", options->config_file);
		return EXIT_SYNTAX;
	}
	defaults = &listener.config->defaults;
	listener.port = options->port ? options->port : listener.config->globals.port;
	log_file = config_text(options->log_file ? options->log_file : defaults->log_file);
	tag = config_text(defaults->syslog_tag);
	log_file_init(&listener.log, log_file, tag, defaults->syslog_facility);
	free(log_file);
	free(tag);
	if (!get_sockets(&listener))
		return EXIT_SOCKETIO;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < DESCRIPTORS_WANTED) {
		limit.rlim_cur = limit.rlim_max < DESCRIPTORS_WANTED ? limit.rlim_max : DESCRIPTORS_WANTED;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (options->detach)
		detach(&listener);
	if (!make_files(&listener)) {
		fs_own_name_remove(&listener.pid_file);
		notify_starter(&listener, EXIT_FILEIO);
		return EXIT_FILEIO;
	}
	listener.children = children_new();
	set_limits(&listener, listener.config);
	listener.rates = rates_new();
	listener.guesses = guesses_new();
	metrics_path = config_text(listener.config->globals.metrics_file);
	listener.metrics = metrics_new(metrics_path, listener.children, listener.snapshots);
	free(metrics_path);
	catch_signals(&listener);
	if (options->detach)
		use_dev_null();
	log_set_role("Receiver");
	log_set_sink(log_file_sink(&listener.log));
	log_msg(L_LOG, "rsyncd version %s starting, listening on port %d", HUAI_VERSION, listener.port);
	config_problems_report(&problems, CONFIG_REMARK);
	if (options->sandbox)
		sandbox_report();
	notify_starter(&listener, EXIT_OK);
	listen_notify("READY=1\nSTATUS=listening");
	listen_for_ever(&listener);
}

/* One session; over a shell on descriptors 0 and 1, else (inetd and systemd's Accept=yes) the connection is descriptor 0. */
static noreturn void run_one(struct options *options, bool over_shell)
{
	struct log_file log;
	struct daemon_session session = { .daemon_options = options, .log = &log, .out_fd = 1, .over_shell = over_shell };
	int one = 1;

	log_file_init(&log, options->log_file ? options->log_file : "", "rsyncd", LOG_DAEMON);
	if (!over_shell) {
		session.in_fd = session.out_fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
		use_dev_null();
		setsockopt(session.in_fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
		socket_options_apply(session.in_fd, "");
	}
	daemon_session_run(&session);
}

int daemon_main(struct options *options)
{
	if (options->daemon && options->server)
		run_one(options, true);
	if (options->config_check)
		return daemon_check_main(options);
	if (is_connection(0))
		run_one(options, false);
	return run_standalone(options);
}
