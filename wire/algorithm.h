/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names of algorithms, and the lists of them that two peers compare (doc/protocol/01-session.md section 7.5). */
#ifndef WIRE_ALGORITHM_H
#define WIRE_ALGORITHM_H

#include <stdbool.h>

#include "lib/strbuf.h"
#include "wire/session.h"

/* "xxh64", also by alias ("xxhash"), case-insensitive. false if unknown. */
bool sum_algorithm_parse(const char *name, enum sum_algorithm *algorithm);
const char *sum_algorithm_name(enum sum_algorithm algorithm);
bool compress_algorithm_parse(const char *name, enum compress_algorithm *algorithm);
const char *compress_algorithm_name(enum compress_algorithm algorithm);

enum choice { CHOICE_CHECKSUM, CHOICE_COMPRESS };

/* "checksum", "compress". */
const char *choice_name(enum choice choice);

/*
 * Our names, in order of preference, from RSYNC_CHECKSUM_LIST or RSYNC_COMPRESS_LIST or the default. true: the environment
 * restricts the list; "INVALID" if nothing of it is known.
 */
bool choice_our_list(struct strbuf *list, enum choice choice, bool is_server);
/* Does the list have the algorithm (enum sum_algorithm or enum compress_algorithm), also by an alias? */
bool choice_list_has(enum choice choice, const char *list, int value);
/* The first of the client's names that the server has too; -1: nothing in common. */
int choice_by_client_order(enum choice choice, const char *client_list, const char *server_list);
/* "Failed to negotiate a checksum choice." and both lists, EXIT_UNSUPPORTED. */
_Noreturn void choice_failed(enum choice choice, bool is_server, const char *ours, const char *theirs);

#endif
