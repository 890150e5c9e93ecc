/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A batch file that is written beside a transfer: what the sender has sent, for a later replay, and a script that does that
 * (doc/protocol/03-transfer.md section 12). All functions but batch_create take NULL for "none".
 *
 *     batch = batch_create(options);                     NULL: none is wanted
 *     batch_write_script(batch, rules);
 *     batch_start(batch, session);                       set up, rules exchanged, before the list
 *     ...
 *     batch_finish(batch);                               after the goodbye
 */
#ifndef OPTIONS_BATCH_H
#define OPTIONS_BATCH_H

#include "options.h"
#include "wire/session.h"

/* The bits of a batch's first field: the options it was made with. */
enum batch_flag {
	BATCH_RECURSIVE = 0x0001,
	BATCH_OWNER = 0x0002,
	BATCH_GROUP = 0x0004,
	BATCH_LINKS = 0x0008,
	BATCH_DEVICES = 0x0010,
	BATCH_HARD_LINKS = 0x0020,
	BATCH_CHECKSUM = 0x0040,
	BATCH_DIRS = 0x0080,         /* this and the next: from protocol 29 on */
	BATCH_COMPRESS = 0x0100,
	BATCH_ICONV = 0x0200,        /* this and the next: from 30 on */
	BATCH_ACLS = 0x0400,
	BATCH_XATTRS = 0x0800,
	BATCH_INPLACE = 0x1000,
	BATCH_APPEND = 0x2000,       /* without verifying */
	BATCH_APPEND_VERIFY = 0x4000,
};

struct batch;

/* Open both files; EXIT_FILESELECT if that cannot be done. *options must live as long as the batch. */
struct batch *batch_create(const struct options *options);
void batch_write_script(struct batch *batch, const struct filter_list *rules);
/* Write the header. From now on the session's stream is written down: of a sender what goes out, else what comes in. */
void batch_start(struct batch *batch, const struct session *session);
/* Something that is in the batch only. */
void batch_write(void *batch_void, const void *bytes, size_t length);
/* Everything has to be on the disk: EXIT_FILEIO if it is not. Frees the batch. */
void batch_finish(struct batch *batch);

#endif
