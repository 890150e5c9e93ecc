/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ground that the files behind options.h share: the shape of a row in the table of options, the state of a parse, and the
 * grammars of values: sizes (doc/protocol/06-command-line.md section 1.4) and points in time (1.5).
 * Only options.c, options/ and their tests include this.
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

struct option_parse;

struct size_limits {
	char default_unit;
	int64_t min, max; /* max 0: none; a value of 0 is below no minimum, it means "no limit" */
};
/* The size that the occurrence has as its value. False after parse_fail. */
bool parse_size(struct option_parse *parse, const struct size_limits *limits, int64_t *value);

/* In the local time zone. */
enum stop_result { STOP_OK, STOP_INVALID, STOP_PAST };
enum stop_result stop_at_parse(const char *text, time_t now, time_t *when);
bool stop_after_parse(const char *text, time_t now, time_t *when);

#define BATCH_NAME_MAX 256
#define OPTIONS_DAEMON_HINT "(Type \"rsync --daemon --help\" for assistance with daemon mode.)"

enum parse_mode { MODE_CLIENT, MODE_SERVER, MODE_DAEMON };

enum option_arg { NO_ARG, INT_ARG, TEXT_ARG };

/* The runs of a client that have it, as a set, and marks. */
enum run_kind {
	LOCAL = 1,
	PUSH = 2,             /* sends to a server: what becomes of the data there is the server's part */
	PULL = 4,
	REMOTE = PUSH | PULL,
	WORKS = LOCAL | REMOTE,
	HIDDEN = WORKS | 8,   /* works, and is not for users: --help does not name it */
	OPERATOR = 16,        /* names a file of the operator: never taken from a peer, whichever side its server is on */
	OF_DAEMON = HIDDEN | 32, /* changes over to the table of a daemon */
};

/* Carry out one occurrence, of parse->spec with the value parse->text or parse->number. False after parse_fail. */
typedef bool option_setter(struct option_parse *parse);

struct option_spec {
	const char *name; /* NULL: short only */
	char letter;      /* 0: long only */
	enum option_arg arg;
	option_setter *set; /* NULL in a row OF_DAEMON */
	size_t field;     /* offset in struct options, for the general setters */
	int value;
	enum run_kind runs;
	const char *value_name, *help; /* NULL help: a synonym or a negation */
	size_t also;      /* offset of a flag that goes with the field; 0: none */
};

/* Is this the row behind the last one of a table? */
bool option_is_end(const struct option_spec *spec);
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

/* The option that has mapped owners so far. */
enum owner_word { SAID_NOTHING, SAID_MAP, SAID_CHOWN };

/* The text that is printed when the parse has ended. */
enum print {
	PRINT_NOTHING, PRINT_HELP, PRINT_DAEMON_HELP, PRINT_INFO_HELP, PRINT_DEBUG_HELP, PRINT_VERSION, PRINT_VERSION_JSON,
};

struct option_parse {
	struct options *options;
	const struct refused_options *refused;
	enum parse_mode mode;
	bool in_block;            /* words of a secluded block */
	bool saw_end;             /* a server's "." */
	bool wants_server, wants_daemon; /* start over with that table */
	int argc;
	VEC(char *) strings;      /* what the strings of struct options point to */
	struct args words;        /* a client's command line as it was given */
	VEC(const char *) info_words, debug_words;
	const struct option_spec *spec; /* the occurrence that is carried out */
	const char *text;         /* its value, of a TEXT_ARG */
	int number;               /* its value, of an INT_ARG: popt puts it here */
	const struct option_spec *lacking[PULL + 1]; /* by kind of run: the first option that it does not have; or NULL */
	const char *alt_dest_kind, *attr_mode_name; /* the options that have set these */
	enum owner_word usermap_said, groupmap_said;
	int delete_words, compress_count, shortcut_f_count;
	bool max_alloc_given;
	bool partial_dir_empty, iconv_seen;
	bool iconv_given;         /* by the option or its negation */
	bool done;                /* a text was asked for, which may be none: end with `code` */
	enum print print;
	FILE *stream;             /* that it is printed to */
	int code;
	char *error;
	bool error_is_bare;
};

/* Record the error that ends the parse, unless there is one already; always false. bare: stock prints it without "rsync: ". */
bool parse_fail_with(struct option_parse *parse, int code, bool bare, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
#define parse_fail(parse, code, ...) parse_fail_with(parse, code, false, __VA_ARGS__)
#define parse_fail_bare(parse, code, ...) parse_fail_with(parse, code, true, __VA_ARGS__)
/* A copy of `text` that lives as long as the options. */
char *parse_keep(struct option_parse *parse, const char *text);

/* End the parse as done with `code`: `print` goes to `stream` then. */
void parse_print(struct option_parse *parse, enum print print, FILE *stream, int code);

/* Append to the filters of the options; always true. */
bool parse_add_filter(struct option_parse *parse, int kind, int style, const char *text, int times);
/* A partial-dir as it is used and sent; lives as long as the options. */
const char *parse_clean_partial_dir(struct option_parse *parse, const char *text);

/* LOCAL, PUSH or PULL, by a client's operands; whether these go together has still to be checked. */
enum run_kind options_kind_of_run(const struct options *options);

#endif
