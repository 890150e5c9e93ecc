/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * For harnesses that run the whole program: each input is a run of main() in a child process, in a temp directory that is
 * empty before it, with a peer that says what the input holds. What the child covers is added to the counters of the fuzzer.
 *
 * A child writes nowhere but in its directory (Landlock, and nobody's rights if the fuzzer is root), executes no other program,
 * and ends with its input, together with all that it has started. Random bytes are the same in each child. A child that
 * crashes, asks for more memory at once than libFuzzer allows (-malloc_limit_mb, which is -rss_limit_mb: 1 GiB in
 * testsuite/fuzz/run), or is not over in SESSION_SECONDS although its peer has closed the connection, is a finding.
 *
 * The stream of a session begins with its pauses: their number (a byte), and for each of them two little-endian numbers of 16
 * bits, how many bytes of the stream come before it (since the pause before), and how many bytes the child must have sent
 * (since then) for the stream to go on. It goes on as well when the child does nothing but wait.
 */
#ifndef TESTSUITE_FUZZ_SESSION_H
#define TESTSUITE_FUZZ_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

enum { SESSION_WORDS_MAX = 128, SESSION_SECONDS = 60, SESSION_PAUSES_MAX = 255 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* One run of the program. */
struct session_plan {
	/* In the child, in its empty directory: make the files. NULL: none. */
	void (*prepare)(const struct session_plan *plan);
	/* In the child after that: what main() gets behind the program's name. At most SESSION_WORDS_MAX. */
	int (*words)(const struct session_plan *plan, const char **words);
	/* In the fuzzer, after the run: what to keep of the directory's files. NULL: nothing. */
	void (*keep)(const struct session_plan *plan, const char *directory);
	bool is_server;        /* the peer is at its standard input and output; a client finds it wherever it connects to */
	const uint8_t *extra;  /* for `prepare` and `words` */
	size_t extra_size;
	int choice;            /* likewise */
	int protocol;          /* likewise: 0, or what --protocol is to say */
};

/* Run it with the peer that `stream` describes; size 0: one that closes at once. */
void session_run(const struct session_plan *plan, const uint8_t *stream, size_t size);

/*
 * Run two against each other, and write down what each has heard as a stream that begins with its pauses: `first` and `second`
 * are the streams for them. Both malloc'ed. At most `limit` bytes of each.
 */
struct session_recording { uint8_t *bytes; size_t size; };
void session_record(const struct session_plan plans[2], struct session_recording heard[2], size_t limit);

/* Add what follows to the recording NAME/NUMBER of the directory FUZZ_RECORD. */
void session_save(const char *harness, const char *name, const uint8_t *head, size_t head_size,
		  const struct session_recording *recording);

/* The same of a file. */
void session_save_file(const char *harness, const char *name, const uint8_t *head, size_t head_size, const char *directory,
		       const char *file);

/* All is recorded. */
noreturn void session_end_recording(void);

/* --- files, for `prepare`: below the current directory; what cannot be made is left out --- */

void session_write(const char *path, const void *bytes, size_t size);
void session_text(const char *path, const char *text);
/* The tree of a sender ("src"), and of a receiver that has some of it already ("dst", "alt"); lists of names and rules. */
void session_trees(const struct session_plan *plan);

/* --- clients' command lines, for runs with a peer --- */

int session_lines(void);
/* Options of line plan->choice, with --protocol. Returns how many. */
int session_client_words(const struct session_plan *plan, const char **words);
/* The same as a server's words, with the path. `pull`: the server sends. */
int session_server_words(const struct session_plan *plan, const char **words, bool pull);

#endif
