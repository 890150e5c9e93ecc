/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The words of a server's command line, and --debug=cmd about them. */
#ifndef CLIENT_WORDS_H
#define CLIENT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "options.h"
#include "options/remote.h"
#include "wire/args.h"

/*
 * The option words of a server (doc/protocol/01-session.md section 6), without program name and paths, not
 * quoted yet. `protocol`: the highest that is still possible, or the one agreed upon.
 */
void options_server_words(const struct options *options, bool we_send, int protocol, struct args *words);
/* How many of the server's words stay visible when arguments are secluded: up to the cluster and --iconv
 * (doc/protocol/01-session.md section 5.4). */
size_t server_words_visible(const struct args *words);
/* Put backslashes before what the shell at the other end would take for something else, as far as --old-args lets us. */
void server_words_escape(const struct options *options, struct args *words);
/* One word, malloc'ed; in a path, wildcards are meant. */
char *server_word_escape(const char *word, bool is_path);

/* "LABEL: WORD WORD ...  (N args)", for -vv. */
void log_words(const struct options *options, const char *label, const struct args *words);
/* --debug=cmd2: what the other side is started with. shell: as the user gave it, or NULL; remote NULL: it is this process. */
void client_log_command(const struct options *options, const char *shell, const struct remote *remote, const char *path,
			const struct args *words);

#endif
