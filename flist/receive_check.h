/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which names may come from a peer (doc/protocol/02-file-list.md sections 11.1 and 11.3). */
#ifndef FLIST_RECEIVE_CHECK_H
#define FLIST_RECEIVE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

struct args;
struct flist_receiver;
struct incoming;
struct options;
struct strbuf;

/* What the source arguments allow, as sets of paths without leading slashes. */
struct asked_names;
struct asked_names *asked_names_new(const struct options *options, const struct args *asked);
void asked_names_free(struct asked_names *asked);
/* ASKED_PARENT: as a directory on the way to what was asked for. */
enum asked { ASKED_NO, ASKED_PARENT, ASKED_YES };
enum asked asked_names_look_up(const struct asked_names *asked, const char *name, bool is_dir);

/* The target of a symlink without a slash at its beginning and without ".." that climb above the transfer, in which the link
 * has the name `name` (doc/protocol/07-daemon.md section 5.16). */
void flist_clean_target(const char *target, const char *name, struct strbuf *clean);
/* The form in which a name is kept (doc/protocol/02-file-list.md section 11.1), in->name, and in->is_child; ends the process if
 * it must not come. */
void flist_clean_name(const struct flist_receiver *receiver, const char *name, size_t length, struct incoming *in);

#endif
