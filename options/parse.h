/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the files behind options.h share: the table that says of each option how it is spelled, where it works and what it
 * sets; the state of a parse; and the grammars of option values. Nobody else includes this.
 */
#ifndef OPTIONS_PARSE_H
#define OPTIONS_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "lib/strbuf.h"
#include "options.h"

#define BATCH_NAME_MAX 256
#define OPTIONS_DAEMON_HINT "(Type \"rsync --daemon --help\" for assistance with daemon mode.)"

enum parse_mode { MODE_CLIENT, MODE_SERVER, MODE_DAEMON };

enum option_arg { NO_ARG, INT_ARG, TEXT_ARG };

/* In which runs does a client have it? A set of kinds of runs. */
enum client_use {
	LOCAL = 1,
	PUSH = 2,             /* sends to a server: what becomes of the data there is the server's part */
	PULL = 4,
	REMOTE = PUSH | PULL,
	WORKS = LOCAL | REMOTE,
	HIDDEN = WORKS | 8,   /* works, and is no word for people */
};

/*
 * What it means to a sending server, which must take what clients have ever sent it on a pull and what -M adds. A receiving
 * server runs the same engine as a pull and has the same options, except for NOT_BUILT and beside USER_END: what is switched on
 * for PULL is on for it, too.
 */
enum server_use {
	ACTS,      /* the sending side acts on it */
	RECEIVES,  /* says what becomes of the data, deletions or files at the other end: no effect here by its definition */
	USER_END,  /* concerns the process that the user started, its terminal or its connection: no effect here likewise */
	NOT_BUILT, /* no server has it: refused */
};

struct option_parse;
struct option_spec;

/* Carry out one occurrence; `text`: the value of a TEXT_ARG, else NULL. False after parse_fail. */
typedef bool option_setter(struct option_parse *parse, struct options *options, const struct option_spec *spec,
			   const char *text);

struct option_spec {
	const char *name; /* NULL: short only */
	char letter;      /* 0: long only */
	enum option_arg arg;
	option_setter *set;
	size_t field;     /* offset in struct options, for the general setters */
	int value;
	enum client_use client;
	enum server_use server;
	const char *value_name, *help; /* NULL help: a synonym or a negation */
};

/* The table of a mode (client and server share one), ended by a spec without setter. */
const struct option_spec *option_table(enum parse_mode mode);
size_t option_table_count(const struct option_spec *table);
/* Are these spellings of one option: do they do the same? */
bool option_is_same(const struct option_spec *a, const struct option_spec *b);
/* "--name", or "-X" for a nameless one; into a buffer of OPTION_LABEL_SIZE. */
#define OPTION_LABEL_SIZE 64
const char *option_label(const struct option_spec *spec, char label[OPTION_LABEL_SIZE]);

/* Is it one that --help names? */
bool option_is_shown(const struct option_spec *spec);

/* How --delete and its relatives were spelled; an `int` set of these in struct option_parse. */
enum delete_word {
	SAID_DELETE = 1,
	SAID_BEFORE = 2,
	SAID_DURING = 4,
	SAID_DELAY = 8,
	SAID_AFTER = 16,
};

/* Who has mapped owners so far. */
enum owner_word { SAID_NOTHING, SAID_MAP, SAID_CHOWN };

/* The text that is printed when the parse has ended. */
enum print {
	PRINT_NOTHING, PRINT_HELP, PRINT_DAEMON_HELP, PRINT_INFO_HELP, PRINT_DEBUG_HELP, PRINT_VERSION, PRINT_VERSION_JSON,
};

struct option_parse {
	const struct refused_options *refused;
	enum parse_mode mode;
	bool in_block;            /* words of a secluded block */
	bool saw_end;             /* a server's "." */
	bool wants_server, wants_daemon; /* start over with that table */
	int argc;
	VEC(char *) strings;      /* what the strings of struct options point to */
	struct args words;        /* a client's command line as it was given */
	VEC(const char *) info_words, debug_words;
	int number;               /* where popt puts the value of an INT_ARG */
	const struct option_spec *not_built; /* the first that a sending server has to refuse */
	const struct option_spec *not_received;               /* ... that a receiving one would */
	const struct option_spec *not_local, *not_push, *not_pull; /* the first that such a run of a client would */
	const char *alt_dest_kind;
	enum owner_word usermap_said, groupmap_said;
	int delete_words, compress_count, shortcut_f_count;
	int dirs_given, relative_given;  /* -1: neither the option nor its negation */
	int secluded_given;              /* likewise of -s */
	bool old_args_given, max_alloc_given;
	bool partial_dir_empty, daemon_seen, iconv_seen;
	bool iconv_given;         /* by the option or its negation */
	int versions;             /* -V count */
	bool done;                /* a text was asked for, which may be none: end with `code` */
	enum print print;
	FILE *stream;             /* that it is printed to */
	int code;
	char *error;
	bool error_is_bare;
};

/* Note the error that ends the parse; always false. */
bool parse_fail(struct option_parse *parse, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same for a message that stock prints without "rsync: ". */
bool parse_fail_bare(struct option_parse *parse, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A copy of `text` that lives as long as the options. */
char *parse_keep(struct option_parse *parse, const char *text);

/* End the parse as done with `code`: `print` goes to `stream` then. */
void parse_print(struct option_parse *parse, enum print print, FILE *stream, int code);

/* A partial-dir as it is used and sent; lives as long as the options. */
const char *partial_dir_clean(struct option_parse *parse, const char *text);

/* RSYNC_MAX_ALLOC, where --max-alloc was not given. False after parse_fail. */
bool max_alloc_from_environment(struct option_parse *parse, struct options *options);

/* The checks and consequences that need the whole line (protocol/06 section 3). False after parse_fail. */
bool options_finish(struct option_parse *parse, struct options *options);
/* Which way do a client's files go: LOCAL, PUSH or PULL? That the operands go together has still to be checked. */
enum client_use options_kind_of_run(const struct options *options);

/* The attr snapshot's part of that: does the line ask for something other than a listing; one that has such options. */
bool attr_options_list_nothing(const struct options *options);
bool attr_options_check(struct option_parse *parse, struct options *options);

/* protocol/07 5.19: at each option, and what a refusal implies at the end. False after parse_fail. */
bool refuse_option(struct option_parse *parse, const struct option_spec *spec);
bool refuse_implied(struct option_parse *parse, const struct options *options);

/* Value grammars. */
enum size_result { SIZE_OK, SIZE_INVALID, SIZE_TOO_LARGE };
enum size_result size_parse(const char *text, char default_unit, int64_t *value); /* protocol/06 1.4 */
struct size_limits {
	char default_unit;
	int64_t min, max; /* max 0: none; a value of 0 is below no minimum, it means "no limit" */
};
bool parse_size(struct option_parse *parse, const struct option_spec *spec, const char *text, const struct size_limits *limits,
		int64_t *value);
enum stop_result { STOP_OK, STOP_INVALID, STOP_PAST };
enum stop_result stop_at_parse(const char *text, time_t now, time_t *when);       /* 1.5, local time zone */
bool stop_after_parse(const char *text, time_t now, time_t *when);

/* `word` after `indent` blanks at a line's start, else after one; *column (0 before the first word) is kept up to date. */
void help_add_word(struct strbuf *out, const char *word, int indent, size_t *column);
void options_add_help(struct strbuf *out);
void options_add_daemon_help(struct strbuf *out);
void options_add_version(struct strbuf *out);
void options_add_version_json(struct strbuf *out);

#endif
