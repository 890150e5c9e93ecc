/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Children that run main() for one input: their directory, their borders, their peer, what they have covered. */
#include "client/shell.h"
#include "client/socket.h"
#include "client/words.h"
#include "session.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "fs/landlock.h"

enum {
	NOBODY = 65534,
	CRASHED = 77,   /* exit code of a child that a sanitizer or a signal has ended */
	TOO_LARGE = 71, /* that libFuzzer has ended, for an allocation above -malloc_limit_mb */
	IDLE_MS = 4,    /* nothing has come for so long: is the child still busy? */
	FILE_SIZE_MAX = 16 << 20,
	REPORT_FD = 250,
};

int program_main(int argc, char **argv);

/* --- what is covered: the counters of libFuzzer, and those of clang's coverage --- */

extern uint8_t edges_begin[] __asm__("__start___sancov_cntrs") __attribute__((weak));
extern uint8_t edges_end[] __asm__("__stop___sancov_cntrs") __attribute__((weak));
extern uint64_t regions_begin[] __asm__("__start___llvm_prf_cnts") __attribute__((weak));
extern uint64_t regions_end[] __asm__("__stop___llvm_prf_cnts") __attribute__((weak));
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

/* The one state of this file: where the children work, what they hand back, what they may know. */
static struct {
	char directory[PATH_MAX];
	pid_t owner;               /* the process that removes the directory */
	size_t edges, regions;
	uint8_t *shared_edges;     /* of all processes */
	uint64_t *shared_regions;
	int *finding; /* of the child and of those that it has started: CRASHED, TOO_LARGE, or 0 */
	int null_fd;
	int peer_fd;               /* in a child: of a client, until it has connected */
	uint64_t random;
	bool is_child;
} state = { .peer_fd = -1, .null_fd = -1 };

static void *share(size_t size)
{
	void *room = mmap(NULL, size + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		abort();
	return room;
}

__attribute__((no_sanitize("address", "undefined")))
static void hand_back(void)
{
	for (size_t i = 0; i < state.edges; i++)
		if (edges_begin[i] > state.shared_edges[i])
			state.shared_edges[i] = edges_begin[i];
	for (size_t i = 0; i < state.regions; i++)
		if (regions_begin[i] > state.shared_regions[i])
			state.shared_regions[i] = regions_begin[i];
}

__attribute__((no_sanitize("address", "undefined")))
static void take_over(void)
{
	for (size_t i = 0; i < state.edges; i++)
		if (state.shared_edges[i] > edges_begin[i])
			edges_begin[i] = state.shared_edges[i];
	for (size_t i = 0; i < state.regions; i++)
		if (state.shared_regions[i] > regions_begin[i])
			regions_begin[i] = state.shared_regions[i];
}

/* --- the directory --- */

static void remove_below(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir;

	if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0)
		fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || !(dir = fdopendir(fd)))
		return;
	fchmod(fd, 0700);
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (unlinkat(fd, entry->d_name, 0) < 0 && errno != ENOENT) {
			remove_below(fd, entry->d_name);
			unlinkat(fd, entry->d_name, AT_REMOVEDIR);
		}
	}
	closedir(dir);
}

static void remove_directory(void)
{
	if (state.owner != getpid())
		return;
	remove_below(AT_FDCWD, state.directory);
	rmdir(state.directory);
}

static void make_directory(void)
{
	const char *place = getenv("FUZZ_DIRECTORY");

	if (!place)
		place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(state.directory, sizeof state.directory, "%s/rsync-huai-fuzz.XXXXXX", place);
	if (!mkdtemp(state.directory))
		abort();
	if (geteuid() == 0 && chown(state.directory, NOBODY, NOBODY) < 0)
		abort();
	state.owner = getpid();
	atexit(remove_directory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	make_directory();
	state.edges = (size_t)(edges_end - edges_begin);
	state.regions = (size_t)(regions_end - regions_begin);
	state.shared_edges = share(state.edges);
	state.shared_regions = share(state.regions * sizeof *state.shared_regions);
	state.finding = share(sizeof *state.finding);
	state.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	/* What is left of a child's own children comes here to be ended. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

/* --- in a child: what the program gets instead of the system's --- */

ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
	uint8_t *bytes = buffer;

	(void)flags;
	for (size_t i = 0; i < length; i++) {
		state.random = state.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		bytes[i] = (uint8_t)(state.random >> 56);
	}
	return (ssize_t)length;
}

int execl(const char *path, const char *word, ...)
{
	(void)path;
	(void)word;
	errno = EACCES;
	return -1;
}

int execvp(const char *file, char *const words[])
{
	(void)file;
	(void)words;
	errno = EACCES;
	return -1;
}

void shell_start(struct connection *connection, const struct options *options, const struct remote *remote,
		 const struct args *words)
{
	(void)remote;
	log_words(options, "opening connection using", words);
	connection->in_fd = state.peer_fd;
	connection->out_fd = dup(state.peer_fd);
}

bool shell_has_finished(int code)
{
	return code <= 0 || code >= 23;
}

/* What stood for the child that a local run has for its other end. */
int shell_end(struct connection *connection, int code)
{
	int status = 0;

	if (waitpid(connection->shell_pid, &status, 0) < 0 || connection->ignores_shell || !WIFEXITED(status))
		return code;
	return WEXITSTATUS(status) > code ? WEXITSTATUS(status) : code;
}

int socket_dial(const struct options *options, const struct remote *remote)
{
	(void)options;
	(void)remote;
	return state.peer_fd;
}

/* Nothing outside of this process is asked, heard or notified. */
int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	(void)fd;
	(void)address;
	(void)length;
	errno = EACCES;
	return -1;
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	return bind(fd, address, length);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	int (*real)(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found);

	if (!hints || !(hints->ai_flags & AI_NUMERICHOST))
		return EAI_NONAME;
	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	return real(host, service, hints, found);
}

int getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_size, char *service,
		socklen_t service_size, int flags)
{
	int (*real)(const struct sockaddr *, socklen_t, char *, socklen_t, char *, socklen_t, int);

	if (!(flags & NI_NUMERICHOST))
		return EAI_NONAME;
	*(void **)&real = dlsym(RTLD_NEXT, "getnameinfo");
	return real(address, length, host, host_size, service, service_size, flags);
}

void syslog(int priority, const char *format, ...)
{
	(void)priority;
	(void)format;
}

/* --- a child --- */

__attribute__((no_sanitize("address", "undefined")))
static void child_ends(int code, void *context)
{
	(void)context;
	hand_back();
	_exit(code);
}

static noreturn void child_crashes(void)
{
	*state.finding = CRASHED;
	_exit(CRASHED);
}

/* How libFuzzer ends a process, without any callback. */
noreturn void _Exit(int code)
{
	if (state.is_child && (code == CRASHED || code == TOO_LARGE))
		*state.finding = code;
	_exit(code);
}

static void set_limit(int resource, rlim_t value)
{
	const struct rlimit limit = { value, value };

	setrlimit(resource, &limit);
}

static void drop_rights(void)
{
	if (geteuid() != 0)
		return;
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
		abort();
}

/* All may be read; only the own directory can be changed. The symbolizer of a finding that is shown has to be executed. */
static void confine(void)
{
	int version = getenv("FUZZ_SHOW") ? 0 : fs_landlock_version();
	const struct fs_reachable reachable[] = {
		{ open("/", O_PATH | O_CLOEXEC), false }, { open(".", O_PATH | O_CLOEXEC), true },
	};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (version >= FS_LANDLOCK_RENAMES)
		fs_landlock_confine(version, reachable, 2);
	close(reachable[0].fd);
	close(reachable[1].fd);
}

static void set_descriptors(const struct session_plan *plan, int peer)
{
	bool is_shown = getenv("FUZZ_SHOW") != NULL;

	dup3(2, REPORT_FD, O_CLOEXEC);
	if (__sanitizer_set_report_fd)
		__sanitizer_set_report_fd((void *)(uintptr_t)REPORT_FD);
	dup2(plan->is_server ? peer : state.null_fd, 0);
	if (plan->is_server || !is_shown)
		dup2(plan->is_server ? peer : state.null_fd, 1);
	if (!is_shown)
		dup2(state.null_fd, 2);
	if (plan->is_server)
		close(peer);
	else
		state.peer_fd = peer;
}

static void set_environment(const char *directory)
{
	bool is_shown = getenv("FUZZ_SHOW") != NULL;

	clearenv();
	if (is_shown)
		setenv("FUZZ_SHOW", "1", 1);
	setenv("HOME", directory, 1);
	setenv("USER", "fuzz", 1);
	setenv("TZ", "UTC", 1);
	setenv("RSYNC_PASSWORD", "secret", 1);
	umask(022);
}

static noreturn void run_child(const struct session_plan *plan, const char *directory, int peer)
{
	const char *words[SESSION_WORDS_MAX + 2] = { "rsync-huai" };
	int count;

	state.is_child = true;
	state.random = 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	on_exit(child_ends, NULL);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(child_crashes);
	set_limit(RLIMIT_CORE, 0);
	set_limit(RLIMIT_FSIZE, FILE_SIZE_MAX);
	set_limit(RLIMIT_CPU, SESSION_SECONDS);
	signal(SIGXFSZ, SIG_IGN);
	set_descriptors(plan, peer);
	set_environment(directory);
	drop_rights();
	if (chdir(directory) < 0)
		abort();
	confine();
	if (plan->prepare)
		plan->prepare(plan);
	count = plan->words(plan, words + 1);
	words[count + 1] = NULL;
	if (getenv("FUZZ_SHOW"))
		for (int i = 0; i <= count; i++)
			fprintf(stderr, "%s%c", words[i], i < count ? ' ' : '\n');
	program_main(count + 1, (char **)words);
	abort();
}

struct child {
	pid_t pid;
	int fd;
};

static struct child start_child(const struct session_plan *plan, const char *directory, int other_end)
{
	struct child child;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		abort();
	fflush(NULL);
	child.pid = fork();
	if (child.pid < 0)
		abort();
	if (child.pid == 0) {
		close(ends[0]);
		if (other_end >= 0)
			close(other_end);
		run_child(plan, directory, ends[1]);
	}
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	child.fd = ends[0];
	return child;
}

/* --- its end --- */

static int64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* Whatever the children have left running: only this process's own descendants are named there. */
static void end_descendants(void)
{
	char list[4096], path[64], *end = NULL;

	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t got = fd < 0 ? -1 : read(fd, list, sizeof list - 1);

		if (fd >= 0)
			close(fd);
		list[got > 0 ? got : 0] = 0;
		for (char *text = list; strtol(text, &end, 10) > 0 && end > text; text = end)
			kill((pid_t)strtol(text, NULL, 10), SIGKILL);
		if (got <= 0)
			break;
		usleep(200);
	}
}

static noreturn void report(const char *what, int status)
{
	fprintf(stderr, "== the program %s (status 0x%x)\n", what, (unsigned)status);
	end_descendants();
	remove_directory();
	abort();
}

/* One line of a file of /proc, without its end. */
static void read_line(char *text, size_t size, const char *directory, const char *name, const char *file)
{
	char path[600];

	snprintf(path, sizeof path, "%s/%s/%s", directory, name, file);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = 0;
	text[strcspn(text, "\n")] = 0;
}

/* Where each of its threads is. */
static void tell_threads(pid_t pid)
{
	char directory[64], stat[512], place[64], call[128];
	struct dirent *entry;
	DIR *dir;

	snprintf(directory, sizeof directory, "/proc/%d/task", (int)pid);
	dir = opendir(directory);
	while (dir && (entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		read_line(stat, sizeof stat, directory, entry->d_name, "stat");
		read_line(place, sizeof place, directory, entry->d_name, "wchan");
		read_line(call, sizeof call, directory, entry->d_name, "syscall");
		const char *bracket = strrchr(stat, ')');

		fprintf(stderr, "== thread %s: %c in %s, system call %s\n", entry->d_name,
			bracket && bracket[1] ? bracket[2] : '?', place, call);
	}
	if (dir)
		closedir(dir);
}

static void finish_child(struct child *child, int64_t deadline)
{
	int status = 0;
	pid_t got;

	for (int pause = 50; (got = waitpid(child->pid, &status, WNOHANG)) == 0; pause += pause < 5000 ? 50 : 0) {
		if (milliseconds() > deadline) {
			tell_threads(child->pid);
			kill(child->pid, SIGABRT);
			report("does not end", 0);
		}
		usleep((useconds_t)pause);
	}
	if (*state.finding == TOO_LARGE)
		report("has asked for too much memory at once", status);
	if (got < 0 || WIFSIGNALED(status) || *state.finding == CRASHED)
		report("has crashed", status);
	take_over();
}

/* --- the peer --- */

/* Does any of the child's threads have something to do? */
static bool is_busy(pid_t pid)
{
	char path[300], text[512];
	struct dirent *entry;
	bool busy = false;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && !busy && (entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		snprintf(path, sizeof path, "/proc/%d/task/%s/stat", (int)pid, entry->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

		if (fd >= 0)
			close(fd);
		text[got > 0 ? got : 0] = 0;
		const char *bracket = strrchr(text, ')');
		busy = bracket && bracket[1] && (bracket[2] == 'R' || bracket[2] == 'D');
	}
	if (dir)
		closedir(dir);
	return busy;
}

struct peer {
	const uint8_t *pauses, *stream;
	size_t pauses_left, size, at;
	size_t segment;       /* what may be said before the next pause */
	size_t awaited;       /* then so much must be heard */
	size_t heard;
	bool child_closed;
};

static size_t number_at(const uint8_t *bytes)
{
	return bytes[0] | (size_t)bytes[1] << 8;
}

static void next_pause(struct peer *peer)
{
	peer->heard = 0;
	peer->segment = peer->size - peer->at;
	peer->awaited = 0;
	if (!peer->pauses_left)
		return;
	if (number_at(peer->pauses) < peer->segment)
		peer->segment = number_at(peer->pauses);
	peer->awaited = number_at(peer->pauses + 2);
	peer->pauses += 4;
	peer->pauses_left--;
}

static void start_peer(struct peer *peer, const uint8_t *stream, size_t size)
{
	size_t pauses = size ? stream[0] : 0;

	*peer = (struct peer){ .stream = stream };
	if (!size)
		return;
	if (pauses * 4 > size - 1)
		pauses = (size - 1) / 4;
	peer->pauses = stream + 1;
	peer->pauses_left = pauses;
	peer->stream += 1 + pauses * 4;
	peer->size = size - 1 - pauses * 4;
	next_pause(peer);
}

static void hear(struct peer *peer, int fd)
{
	static char bytes[1 << 16];
	ssize_t got;

	while ((got = read(fd, bytes, sizeof bytes)) > 0)
		peer->heard += (size_t)got;
	if (got == 0 || errno != EAGAIN)
		peer->child_closed = true;
}

static void say(struct peer *peer, int fd)
{
	ssize_t sent = send(fd, peer->stream + peer->at, peer->segment, MSG_NOSIGNAL);

	if (sent > 0) {
		peer->at += (size_t)sent;
		peer->segment -= (size_t)sent;
	} else if (errno != EAGAIN) {
		peer->child_closed = true;
	}
}

static void talk(struct peer *peer, const struct child *child, int64_t deadline)
{
	bool is_said = false;

	while (!peer->child_closed) {
		if (!peer->segment && (peer->heard >= peer->awaited || !peer->awaited)) {
			if (peer->at < peer->size || peer->pauses_left) {
				next_pause(peer);
				continue;
			}
			if (!is_said)
				shutdown(child->fd, SHUT_WR);
			is_said = true;
		}
		struct pollfd poll_fd = { child->fd, (short)(POLLIN | (peer->segment ? POLLOUT : 0)), 0 };
		int ready = poll(&poll_fd, 1, is_said ? 1000 : IDLE_MS);

		if (milliseconds() > deadline)
			return;
		if (ready > 0 && poll_fd.revents & (POLLIN | POLLHUP | POLLERR))
			hear(peer, child->fd);
		if (ready > 0 && poll_fd.revents & POLLOUT && peer->segment)
			say(peer, child->fd);
		if (ready == 0 && !peer->segment && !is_busy(child->pid))
			peer->awaited = 0;
	}
}

void session_run(const struct session_plan *plan, const uint8_t *stream, size_t size)
{
	int64_t deadline = milliseconds() + SESSION_SECONDS * 1000;
	struct child child;
	struct peer peer;

	memset(state.shared_edges, 0, state.edges);
	memset(state.shared_regions, 0, state.regions * sizeof *state.shared_regions);
	start_peer(&peer, stream, size);
	child = start_child(plan, state.directory, -1);
	talk(&peer, &child, deadline);
	close(child.fd);
	finish_child(&child, deadline);
	end_descendants();
	take_over();
	if (plan->keep)
		plan->keep(plan, state.directory);
	remove_below(AT_FDCWD, state.directory);
}

/* --- recording --- */

struct track {
	uint8_t *bytes;
	size_t size, pauses, since_pause, answered;
	uint8_t pause_bytes[SESSION_PAUSES_MAX * 4];
};

static void add_pause(struct track *track)
{
	uint8_t *pause = track->pause_bytes + track->pauses * 4;

	if (track->pauses == SESSION_PAUSES_MAX || track->since_pause > 0xffff || track->answered > 0xffff)
		return;
	pause[0] = (uint8_t)track->since_pause;
	pause[1] = (uint8_t)(track->since_pause >> 8);
	pause[2] = (uint8_t)track->answered;
	pause[3] = (uint8_t)(track->answered >> 8);
	track->pauses++;
	track->since_pause = track->answered = 0;
}

/* Bytes from one child to the other. False: there are no more. */
static bool pass_on(const struct child *from, const struct child *to, struct track *heard_by_to, struct track *heard_by_from,
		    size_t limit)
{
	static uint8_t bytes[1 << 16];
	ssize_t got = read(from->fd, bytes, sizeof bytes);

	if (got < 0 && errno == EAGAIN)
		return true;
	if (got <= 0) {
		shutdown(to->fd, SHUT_WR);
		return false;
	}
	if (heard_by_to->answered)
		add_pause(heard_by_to);
	heard_by_from->answered += (size_t)got;
	for (ssize_t sent = 0, put; sent < got; sent += put > 0 ? put : 0) {
		put = send(to->fd, bytes + sent, (size_t)(got - sent), MSG_NOSIGNAL);
		if (put < 0 && errno != EAGAIN)
			break;
	}
	if (heard_by_to->size + (size_t)got <= limit) {
		heard_by_to->bytes = realloc(heard_by_to->bytes, heard_by_to->size + (size_t)got);
		memcpy(heard_by_to->bytes + heard_by_to->size, bytes, (size_t)got);
		heard_by_to->size += (size_t)got;
	}
	heard_by_to->since_pause += (size_t)got;
	return true;
}

static void keep_track(struct track *track, struct session_recording *recording)
{
	size_t head = 1 + track->pauses * 4;

	recording->size = head + track->size;
	recording->bytes = malloc(recording->size);
	recording->bytes[0] = (uint8_t)track->pauses;
	memcpy(recording->bytes + 1, track->pause_bytes, track->pauses * 4);
	if (track->size)
		memcpy(recording->bytes + head, track->bytes, track->size);
	free(track->bytes);
}

void session_record(const struct session_plan plans[2], struct session_recording heard[2], size_t limit)
{
	int64_t deadline = milliseconds() + SESSION_SECONDS * 1000;
	static struct track tracks[2];
	char directories[2][PATH_MAX + 2];
	struct child children[2];
	bool open[2] = { true, true };

	memset(tracks, 0, sizeof tracks);
	for (int i = 0; i < 2; i++) {
		snprintf(directories[i], sizeof directories[i], "%s/%d", state.directory, i);
		if (mkdir(directories[i], 0755) < 0 || (geteuid() == 0 && chown(directories[i], NOBODY, NOBODY) < 0))
			abort();
		children[i] = start_child(&plans[i], directories[i], i ? children[0].fd : -1);
	}
	while ((open[0] || open[1]) && milliseconds() < deadline) {
		struct pollfd fds[2] = { { open[0] ? children[0].fd : -1, POLLIN, 0 }, { open[1] ? children[1].fd : -1, POLLIN,
			0 } };

		poll(fds, 2, 1000);
		for (int i = 0; i < 2; i++)
			if (fds[i].revents)
				open[i] = pass_on(&children[i], &children[!i], &tracks[!i], &tracks[i], limit);
	}
	for (int i = 0; i < 2; i++)
		close(children[i].fd);
	for (int i = 0; i < 2; i++) {
		finish_child(&children[i], deadline);
		keep_track(&tracks[i], &heard[i]);
	}
	end_descendants();
	remove_below(AT_FDCWD, state.directory);
}

void session_save(const char *harness, const char *name, const uint8_t *head, size_t head_size,
		  const struct session_recording *recording)
{
	char path[PATH_MAX + 600];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", getenv("FUZZ_RECORD"), harness);
	mkdir(path, 0755);
	snprintf(path, sizeof path, "%s/%s/%s", getenv("FUZZ_RECORD"), harness, name);
	file = fopen(path, "w");
	if (!file || fwrite(head, 1, head_size, file) != head_size ||
	    fwrite(recording->bytes, 1, recording->size, file) != recording->size || fclose(file))
		abort();
}

void session_end_recording(void)
{
	remove_directory();
	_exit(0);
}

void session_save_file(const char *harness, const char *name, const uint8_t *head, size_t head_size, const char *directory,
		       const char *file_name)
{
	struct session_recording recording = { malloc(FILE_SIZE_MAX), 0 };
	char path[PATH_MAX + 600];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", directory, file_name);
	file = fopen(path, "r");
	if (file) {
		recording.size = fread(recording.bytes, 1, FILE_SIZE_MAX, file);
		fclose(file);
		session_save(harness, name, head, head_size, &recording);
	}
	free(recording.bytes);
}
