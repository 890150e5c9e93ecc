/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rules as text: on the wire (doc/protocol/04-filters.md section 4.6), for a batch, for another list. */
#ifndef FILTER_EXCHANGE_H
#define FILTER_EXCHANGE_H

#include <stdbool.h>

#include "filter/filter.h"
#include "lib/strbuf.h"
#include "wire/session.h"

/*
 * The exchange of 4.6, with the additions of -C on either side (4.4).
 * Receive: a server that is the sender, or a receiver that wants the list, reads it. At most 65,536 rules and 16 MiB; a length
 * of 5120 or more or negative is EXIT_MALLOC ("buffer overflow: recv_rules", S-036); single merges are refused.
 * Send: `wanted` says whether the peer reads a list (always in a pull). Without it nothing is written, but rules that the
 * protocol cannot express still end with EXIT_PROTOCOL "filter rules are too modern for remote rsync.".
 */
void filter_receive(struct filter_list *list, struct session *session);
void filter_send(struct filter_list *list, struct session *session, bool wanted);

/* The command line's rules, one on a line, such that "merge" reads them again. EXIT_SYNTAX if a pattern has a newline. */
void filter_add_lines(const struct filter_list *list, struct strbuf *lines);
/* The xattr rules of the command line or the wire alone, for a list of their own; NULL: there are none of the kind. */
struct filter_list *filter_xattr_list(const struct filter_list *list);

#endif
