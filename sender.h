/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The sender: answers every request of the generator, in order (doc/protocol/03-transfer.md). It works for a host: a server's
 * session (server.c) or a client that pushes (client/push.c).
 */
#ifndef SENDER_H
#define SENDER_H

#include "flist/send.h"
#include "options.h"
#include "options/batch.h"

/* What may be reported of one item. */
struct transfer_record {
	const struct entry *entry;
	const char *name, *shown;   /* in the transfer; below the module, or as the operator named it */
	const char *link;           /* symlink target or hard-link name, NULL if none */
	bool link_is_hard;
	uint32_t flags;             /* ITEM_* */
	uint64_t size;              /* of the content that goes out */
	uint64_t position;          /* number of the item in the list, from 0 */
	uint64_t written, sums;     /* bytes of file data sent, of checksums received; 0 until it has been sent */
	const uint8_t *digest;      /* of the whole file, NULL if it was not sent */
	int digest_length;
};

enum item_stage {
	ITEM_WITHOUT_CONTENT, /* nothing goes out for it, or it gets no report: a dry run */
	ITEM_BEGINS,          /* its content will go out next */
	ITEM_ENDS,            /* it has gone out */
};

struct sender_host {
	struct session *session;
	const struct options *options;
	struct fs_ids *ids;
	const struct args *sources;   /* the operands that name sources; with --files-from the directory they start from */
	int names_fd;                 /* the --files-from list of this side, closed by the sender; -1: the peer streams it */
	bool no_names;                /* a daemon's "numeric ids" (flist_send_setup) */
	struct chmod_rules *chmod;    /* changes the modes that are sent, or NULL */
	const char *charset;          /* of this side's names, used only under --iconv */
	const struct skip_list *dont_compress; /* in addition to the options', or NULL */

	/* Every message of the peer but MSG_SUCCESS. */
	void (*message)(void *context, enum message_code code, const uint8_t *payload, size_t length);
	/* Everything that the generator asks for or reports. NULL: nobody wants to know. */
	void (*item)(void *context, const struct transfer_record *record, enum item_stage stage);
	/* Just that a file's content begins and has gone out, which is cheaper. NULL: nobody wants to know. */
	void (*transfer)(void *context, enum item_stage stage);
	/* Between ITEM_BEGINS and ITEM_ENDS: so many bytes of the file have been dealt with. NULL: nobody wants to know. */
	void (*progress)(void *context, uint64_t done);
	/* All entries up to this place in the list have been dealt with. NULL: nobody wants to know. */
	void (*list_done)(void *context, uint64_t position);
	/* The list (with incremental recursion: its beginning) has been sent. NULL: nobody wants to know. */
	void (*list_sent)(void *context);
	void *context;
	struct batch *batch;          /* of a client, to be given the statistics; NULL: none */

	/* Results. */
	struct match_stats *match;    /* where to count, or NULL */
	int64_t list_build_ms;
	uint64_t list_bytes;          /* what the first list took on the wire */
};

/* Read the names that are wanted (arguments, --files-from), send the list, serve all requests up to the goodbye. */
void sender_run(struct sender_host *host, struct flist *list);

#endif
