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

struct batch;

/* Open the file that is to be replayed. */
int batch_open(const struct options *options);
/* Open both files; EXIT_FILESELECT if that cannot be done. *options must live as long as the batch. */
struct batch *batch_create(const struct options *options);
void batch_write_script(struct batch *batch, const struct filter_list *rules);
/* Write the header. From now on the session's stream is written down: of a sender what goes out, else what comes in. */
void batch_start(struct batch *batch, const struct session *session);
/* Something that is in the batch only. */
void batch_write(void *batch_void, const void *bytes, size_t length);
/* Change the options to those that a batch was made with, by its first field: they shape its stream. known: the bits that its
 * protocol has. EXIT_SYNTAX if that is not possible. */
void batch_match(struct options *options, uint32_t flags, uint32_t known);
/* Everything has to be on the disk: EXIT_FILEIO if it is not. Frees the batch. */
void batch_finish(struct batch *batch);

#endif
