/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The engine as the server of a session: items and deletions go to the client, who shows them (doc/protocol/03-transfer.md
 * sections 2.7 and 10.3).
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "contents/pull.h"
#include "contents/requests.h"
#include "contents/serve.h"
#include "flist/received.h"
#include "lib/charset.h"
#include "receiver/report.h"

/* As the client calls it. */
static void to_wire(const struct pull *pull, const char *name, struct strbuf *sent)
{
	struct charset *charset = pull->charset;

	if (!charset || !charset_to_wire(charset, name, strlen(name), PATH_MAX - 1, sent)) {
		strbuf_reset(sent);
		strbuf_add_string(sent, name);
	}
}

/* Without values of extended attributes: the client has them. */
static void write_item(struct pull *pull, int32_t ndx, const struct item_attrs *item)
{
	pthread_mutex_lock(&pull->out_lock);
	atomic_store(&pull->has_requests, true);
	request_write_attrs(pull->session, ndx, item);
	if (pull_has_xattr_part(pull, item->flags))
		wire_write_byte(pull->session->wire, 0);
	pthread_mutex_unlock(&pull->out_lock);
}

void serve_item(struct contents *contents, int32_t node, const struct entry *entry, uint32_t flags, const char *link)
{
	struct pull *pull = pull_of(contents);
	struct receiver *receiver = pull->receiver;
	struct session *session = &receiver->session;

	if (!report_is_told(receiver->dest.options, flags, link) || (!session->caps.item_flags && !(flags & ITEM_TRANSFER)))
		return;
	struct item_attrs *item = xcalloc(1, sizeof *item);
	struct strbuf name = STRBUF_INIT;
	int32_t ndx = flist_ndx_of(receiver->dest.list, node, entry);

	item->flags = flags & 0xffff;
	item->basis = BASIS_FILE;
	if (link)
		to_wire(pull, link, &name);
	if (name.length < sizeof item->xname) {
		item->xname_length = name.length;
		memcpy(item->xname, strbuf_text(&name), name.length);
	}
	write_item(pull, ndx, item);
	strbuf_free(&name);
	free(item);
}

void serve_deletion(struct contents *contents, const char *path, bool is_dir)
{
	struct pull *pull = pull_of(contents);
	struct strbuf name = STRBUF_INIT;

	to_wire(pull, path, &name);
	/* A directory's has its NUL. */
	wire_send_message(pull->session->wire, MSG_DELETED, strbuf_text(&name), name.length + is_dir);
	strbuf_free(&name);
}
