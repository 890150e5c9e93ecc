/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The role of the receiver at a server: the names it may have to send, and the engine that keeps its destination. */
#include "server/receive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contents/contents.h"
#include "fs/file.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/strbuf.h"

void server_check_receiving(struct server *server)
{
	char *lack = server->startup_error ? NULL : options_receiving_lack(server->options);

	if (!lack)
		return;
	server->startup_error = lack;
	server->startup_code = EXIT_UNSUPPORTED;
}

/* Lines end in LF, CR or NUL, with -0 only in NUL; names end in NUL (doc/protocol/01-session.md section 9.7). Passed on as they
 * are read: the file is whatever the client has named. */
void server_send_names(struct server *server)
{
	struct wire *wire = server->session.wire;
	char bytes[8192], last = 0;
	ssize_t got = 0;

	while (server->names_fd >= 0 &&
	       ((got = read(server->names_fd, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR)))
		for (ssize_t i = 0; i < got; i++) {
			bool ends = !bytes[i] || (!server->options->from0 && strchr("\r\n", bytes[i]));

			if (!ends || last)
				wire_write_byte(wire, ends ? 0 : (uint8_t)bytes[i]);
			last = ends ? 0 : bytes[i];
		}
	if (got < 0)
		log_errno(L_ERROR_XFER, errno, "read error on files-from file %s", server->options->files_from);
	if (last)
		wire_write_byte(wire, 0);
	wire_write_byte(wire, 0);
	if (server->names_fd >= 0)
		close(server->names_fd);
}

static struct charset *make_charset(const struct options *options)
{
	struct charset *charset = options->iconv ? charset_new(options->iconv) : NULL;

	if (options->iconv && !charset)
		die(EXIT_UNSUPPORTED, "iconv_open(\"%s\", \"UTF-8\") failed", options->iconv);
	return charset;
}

static void describe_module(const struct module_session *module, struct dest_module *place)
{
	*place = (struct dest_module){
		.name = module->name,
		.root = attr_source_real_root(module->source),
		.hidden = module->hidden,
		.log_item = module->log_received,
		.log_deletion = module->log_deletion,
		.received = module->received,
		.logs_items = module->log_items,
		.logs_operations = module->log_operations,
		.context = module->log_context,
		.write_only = module->write_only,
		.has_own_temp_dir = module->has_own_temp_dir,
	};
}

int server_receive(struct server *server, wire_message_handler *message, uint64_t *total_size)
{
	struct options *options = server->options;
	const struct args *operands = &options->operands;
	const char *destination = operands->count ? operands->items[0] : ".";
	struct module_session *module = server->module;
	struct dest_module place;
	struct run_stats stats = { .total_size = 0 };
	const struct receiver_service service = {
		.message = message,
		.context = server,
		.stats = &stats,
		.rules = server->rules,
		.module = module ? &place : NULL,
	};
	const struct receiver_peer peer = {
		.session = &server->session,
		.ids = module && module->numeric_ids ? NULL : server->ids,
		.charset = make_charset(options),
		.munge_symlinks = module ? module->munge_symlinks : options->munge_links,
		.clean_symlinks = module && !module->munge_symlinks && module->source->below_root,
		.service = &service,
	};

	if (operands->count > 1)
		die(EXIT_SYNTAX, "rsync: a server receives into one destination, not into %zu", operands->count);
	if (module)
		describe_module(module, &place);
	/* A list that the client wants to see as we have understood it: nothing is written. */
	int code = receiver_pull_main(options, &peer, options->list_only ? NULL : destination);

	*total_size = stats.total_size;
	return code;
}
