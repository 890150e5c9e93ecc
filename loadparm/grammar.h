/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The lexical grammar of rsyncd.conf (doc/protocol/07-daemon.md sections 2.1 to 2.6): bytes in, one event a logical line out.
 * It touches no file and knows no parameter.
 */
#ifndef LOADPARM_GRAMMAR_H
#define LOADPARM_GRAMMAR_H

#include "lib/strbuf.h"

enum grammar_event {
	GRAMMAR_END,
	GRAMMAR_SECTION,   /* name */
	GRAMMAR_PARAMETER, /* name, value */
	GRAMMAR_DIRECTIVE, /* name: the word after "&"; value: the path */
	GRAMMAR_IGNORED,   /* a badly formed line without effect: message */
	GRAMMAR_BROKEN,    /* nothing after this can be trusted: message; the reader is at its end */
};

struct grammar {
	const char *text;
	size_t length, at;
	int next_line;     /* of text[at], from 1 */
	/* of the last event */
	int line;
	struct strbuf name, value;
	const char *message;
};

/* `text` must outlive the reader. */
void grammar_start(struct grammar *grammar, const char *text, size_t length);
enum grammar_event grammar_next(struct grammar *grammar);
void grammar_free(struct grammar *grammar);

/* Equal but for case and white space (section 2.7)? */
int grammar_same_name(const char *a, const char *b);

#endif
