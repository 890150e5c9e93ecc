/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The argument words of a session as they travel: to a daemon, and in a secluded block (doc/protocol/01-session.md
 * section 5).
 */
#ifndef WIRE_ARGS_H
#define WIRE_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/charset.h"
#include "wire/wire.h"

#define ARGS_MAX_COUNT 15998 /* S-037 */
#define ARGS_MAX_LENGTH 5119

struct args {
	char **items; /* NULL-terminated, each malloc'ed */
	size_t count;
};

void args_free(struct args *args);
void args_append(struct args *args, const char *text);
/* Append a malloc'ed text, which belongs to the list from now on. */
void args_take(struct args *args, char *text);
/* A first word, in front of those there are. */
void args_prepend(struct args *args, const char *text);
/* The same of what a peer makes us remember; args_free_counted gives all of it back. */
void args_append_counted(struct args *args, const char *text, struct budget *budget);
void args_free_counted(struct args *args, struct budget *budget);
/* As args_append_counted; more than ARGS_MAX_COUNT: "too many daemon arguments", EXIT_PROTOCOL (S-037). */
void args_append_limited(struct args *args, const char *text, struct budget *budget);

/* Words up to the empty one. nul_terminated: protocol >= 30 and secluded blocks; else LF and CR end a word. Too many:
 * "too many daemon arguments", EXIT_PROTOCOL; too long: EXIT_PROTOCOL (S-008, S-037). */
void args_read(struct wire *wire, struct args *args, bool nul_terminated);
/* With --iconv (charset not NULL) the words of a secluded block travel in UTF-8; what cannot be converted stays as it is. */
void args_convert(struct args *args, struct charset *charset, bool to_wire);
/* A secluded block: the placeholder program name is dropped. */
void args_read_secluded(struct wire *wire, struct args *args);
/* doc/protocol/01-session.md section 5.3: remove one level of backslashes from every word up to and including the first "."
 * word. */
void args_unescape_options(struct args *args);

/* The words of a client to a daemon, each ended by a NUL (protocol >= 30) or LF, then an empty one (doc/protocol/01-session.md
 * section 5.1). */
void args_write(struct wire *wire, const struct args *args, bool nul_terminated);

#endif
