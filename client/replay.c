/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading a batch: its header makes the session, its stream is what a server would have sent. */
#include "client/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "client/remote.h"
#include "contents/contents.h"
#include "fs/file.h"
#include "fs/ids.h"
#include "fs/operator.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options/batch.h"
#include "wire/setup.h"

/* --- the file --- */

static char *full_name(const char *name)
{
	char *cwd = *name == '/' ? NULL : getcwd(NULL, 0);
	char *full = cwd ? xasprintf("%s/%s", cwd, name) : xstrdup(name);

	free(cwd);
	return full;
}

static int open_batch(const struct options *options)
{
	const char *name = options->read_batch;
	struct fs_stat st;
	int fd;

	if (strcmp(name, "-") == 0)
		return dup(STDIN_FILENO);
	fd = fs_operator_open(name, O_RDONLY | O_NONBLOCK | options_link_flag(options), 0);
	if (fd >= 0 && fs_stat_at_fd(fd, &st) == 0 && S_ISREG(st.mode))
		return fd;
	if (fd >= 0 && S_ISFIFO(st.mode)) {
		fs_await_writer(fd);
		return fd;
	}
	char *full = full_name(name);

	if (fd >= 0)
		die(EXIT_FILEIO, "Batch file \"%s\" is neither a regular file nor a FIFO", full);
	log_errno(L_ERROR, errno, "Batch file \"%s\" open error", full);
	exit_with(EXIT_FILEIO);
}

static int read_protocol(struct wire *wire)
{
	int protocol = wire_read_int(wire);

	if (protocol > PROTOCOL_MAX)
		die(EXIT_PROTOCOL, "The protocol version in the batch file is too new (%d > %d).", protocol, PROTOCOL_MAX);
	if (protocol < PROTOCOL_MIN)
		setup_refuse_version();
	return protocol;
}

/* --- the options that it was made with --- */

/* One of them as it is here, and what people are told of it. */
struct batch_option {
	uint32_t flag;
	int since;          /* the first protocol whose batches tell */
	const char *name;
	int now;
};

static void tell_change(const struct options *options, const struct batch_option *option, bool on)
{
	if (options->levels.info[INFO_MISC])
		log_info("%sing the %s option to match the batchfile.", on ? "Sett" : "Clear", option->name);
}

static void check_iconv(const struct options *options, uint32_t flags, int protocol)
{
	bool has_iconv = flags & BATCH_ICONV;

	if (protocol >= 30 && has_iconv != (options->iconv != NULL))
		die(EXIT_SYNTAX, "%s specify the --iconv option to use this batch file.", has_iconv ? "Please" : "Do not");
}

static void set_option(struct options *options, uint32_t flag, bool on)
{
	switch (flag) {
	case BATCH_RECURSIVE:
		options->recursive = on;
		break;
	case BATCH_OWNER:
		options->owner = on;
		break;
	case BATCH_GROUP:
		options->group = on;
		break;
	case BATCH_LINKS:
		options->links = on;
		break;
	case BATCH_DEVICES:
		options->devices = on;
		break;
	case BATCH_HARD_LINKS:
		options->hard_links = on;
		break;
	case BATCH_CHECKSUM:
		options->checksum = on;
		break;
	case BATCH_DIRS:
		options->dirs = on;
		break;
	case BATCH_COMPRESS:
		options->compress = on;
		break;
	case BATCH_ACLS:
		options->acls = on;
		break;
	case BATCH_XATTRS:
		options->xattrs = on;
		break;
	case BATCH_INPLACE:
		options->inplace = on;
		break;
	case BATCH_APPEND:
		options->append = on;
		break;
	case BATCH_APPEND_VERIFY:
		options->append = on ? 2 : options->append == 1;
		break;
	}
}

/* What shapes the stream must be as it was, or nothing of it could be read. */
static void match_options(struct options *options, uint32_t flags, int protocol)
{
	const struct batch_option list[] = {
		{ BATCH_RECURSIVE, 0, "--recurse (-r)", options->recursive },
		{ BATCH_OWNER, 0, "--owner (-o)", options->owner },
		{ BATCH_GROUP, 0, "--group (-g)", options->group },
		{ BATCH_LINKS, 0, "--links (-l)", options->links },
		{ BATCH_DEVICES, 0, "--devices (-D)", options->devices },
		{ BATCH_HARD_LINKS, 0, "--hard-links (-H)", options->hard_links != 0 },
		{ BATCH_CHECKSUM, 0, "--checksum (-c)", options->checksum },
		{ BATCH_DIRS, 29, "--dirs (-d)", options->dirs || options->recursive },
		{ BATCH_COMPRESS, 29, "--compress (-z)", options->compress },
		{ BATCH_ACLS, 30, "--acls (-A)", options->acls },
		{ BATCH_XATTRS, 30, "--xattrs (-X)", options->xattrs != 0 },
		{ BATCH_INPLACE, 30, "--inplace", options->inplace },
		{ BATCH_APPEND, 30, "--append", options->append == 1 },
		{ BATCH_APPEND_VERIFY, 30, "--append-verify", options->append > 1 },
	};

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		bool on = flags & list[i].flag;

		if (protocol < list[i].since || on == list[i].now)
			continue;
		tell_change(options, &list[i], on);
		set_option(options, list[i].flag, on);
	}
	check_iconv(options, flags, protocol);
}

/* --- the session --- */

static void set_up(struct session *session, struct options *options)
{
	struct setup_request request;
	struct wire *wire = wire_new_file(open_batch(options));
	uint32_t flags;

	remote_check_no_daemon(options);
	if (argument_is_remote(options->operands.items[options->operands.count - 1]))
		die(EXIT_SYNTAX, "remote destination is not allowed with --read-batch");
	flags = (uint32_t)wire_read_int(wire);
	*session = (struct session){ .wire = wire, .max_alloc = options->max_alloc };
	session_set_protocol(session, read_protocol(wire));
	session_limit_memory(session);
	match_options(options, flags, session->protocol);
	options_setup_request(options, &request);
	setup_client(session, &request);
}

int client_replay(struct options *options)
{
	const char *destination = options->list_only ? NULL : options->operands.items[options->operands.count - 1];
	struct session session;
	int code;

	log_set_role("Receiver");
	set_up(&session, options);
	const struct receiver_peer peer = {
		.session = &session,
		.ids = fs_ids_new(NULL, NULL),
		.trusted = true,
		.is_batch = true,
	};

	code = receiver_pull_main(options, &peer, destination);
	wire_free(session.wire);
	fs_ids_free(peer.ids);
	return code;
}
