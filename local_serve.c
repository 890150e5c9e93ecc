/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The engine as the server of a session: items and deletions go to the client, who shows them (doc/protocol/03-transfer.md
 * sections 2.7 and 10.3).
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/charset.h"
#include "local_pull.h"

/* As the client calls it. */
static void to_wire(const struct local *local, const char *name, struct strbuf *sent)
{
	struct charset *charset = local->pull->charset;

	if (!charset || !charset_to_wire(charset, name, strlen(name), PATH_MAX - 1, sent)) {
		strbuf_reset(sent);
		strbuf_add_string(sent, name);
	}
}

void serve_item(struct local *local, int32_t node, const struct entry *entry, uint32_t flags, const char *link)
{
	struct session *session = &local->session;

	if (!report_is_told(local->options, flags, link) || (session->protocol < 29 && !(flags & ITEM_TRANSFER)))
		return;
	struct item_attrs *item = xcalloc(1, sizeof *item);
	struct strbuf name = STRBUF_INIT;
	int32_t ndx = flist_ndx_of(local->list, node, entry);

	item->flags = flags & 0xffff;
	item->basis = BASIS_FILE;
	if (link)
		to_wire(local, link, &name);
	if (name.length < sizeof item->xname) {
		item->xname_length = name.length;
		memcpy(item->xname, strbuf_text(&name), name.length);
	}
	pull_write_item(local->pull, ndx, item);
	strbuf_free(&name);
	free(item);
}

void serve_deletion(struct local *local, const char *path, bool is_dir)
{
	struct strbuf name = STRBUF_INIT;

	to_wire(local, path, &name);
	/* A directory's has its NUL. */
	wire_send_message(local->session.wire, MSG_DELETED, strbuf_text(&name), name.length + is_dir);
	strbuf_free(&name);
}

/* doc/protocol/04-filters.md section 4.6.1 */
static bool sends_rules(const struct options *options, int protocol)
{
	bool deletes = options->delete_when != DELETE_NEVER;

	return options->prune_empty_dirs || (deletes && (!options->delete_excluded || protocol >= 29));
}

struct filter_list *serve_rules(struct local *local, const struct options *options, const struct filter_setup *setup)
{
	struct filter_list *rules = local->service->rules;

	filter_set_up(rules, setup);
	if (sends_rules(options, local->session.protocol))
		filter_receive(rules, &local->session);
	return rules;
}
