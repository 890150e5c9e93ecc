/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The four harnesses of a session with a remote shell: either side, either direction. Input: the command line (session_lines),
 * the protocol, the stream. With the environment variable FUZZ_RECORD, a directory, they write the streams of real sessions
 * into it as seeds, and end.
 */
#ifndef TESTSUITE_FUZZ_SESSION_PAIR_H
#define TESTSUITE_FUZZ_SESSION_PAIR_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"
#include "wire/session.h"

enum { PAIR_HEAD = 2, PAIR_PROTOCOL_MIN = 27, PAIR_PROTOCOLS = 8, PAIR_STREAM_MAX = 40000 };

static inline int pair_pull_words(const struct session_plan *plan, const char **words)
{
	int count = session_client_words(plan, words);

	words[count++] = "peer:src/";
	words[count++] = "dst";
	return count;
}

static inline int pair_push_words(const struct session_plan *plan, const char **words)
{
	int count = session_client_words(plan, words);

	words[count++] = "src/";
	words[count++] = "peer:dst";
	return count;
}

static inline int pair_sending_words(const struct session_plan *plan, const char **words)
{
	return session_server_words(plan, words, true);
}

static inline int pair_receiving_words(const struct session_plan *plan, const char **words)
{
	return session_server_words(plan, words, false);
}

/* 0: the newest. */
static inline int pair_protocol(uint8_t byte)
{
	int number = byte % PAIR_PROTOCOLS, protocol = PAIR_PROTOCOL_MIN + number - 1;

	return !number || protocol > PROTOCOL_MAX ? 0 : protocol;
}

static inline void pair_record_one(int choice, uint8_t protocol, bool pull, const char *client_side, const char *server_side)
{
	const struct session_plan plans[2] = {
		{ .prepare = session_trees, .words = pull ? pair_pull_words : pair_push_words, .choice = choice,
		  .protocol = pair_protocol(protocol) },
		{ .prepare = session_trees, .words = pull ? pair_sending_words : pair_receiving_words, .is_server = true,
		  .choice = choice, .protocol = pair_protocol(protocol) },
	};
	const uint8_t head[PAIR_HEAD] = { (uint8_t)choice, protocol };
	struct session_recording heard[2];
	char name[32];

	snprintf(name, sizeof name, "line%03d-%d", choice, protocol);
	session_record(plans, heard, PAIR_STREAM_MAX);
	session_save(client_side, name, head, sizeof head, &heard[0]);
	session_save(server_side, name, head, sizeof head, &heard[1]);
	free(heard[0].bytes);
	free(heard[1].bytes);
}

/* Every line with the newest protocol and one older one; the first with all. */
static inline void pair_record(bool pull, const char *client_side, const char *server_side)
{
	for (int choice = 0; choice < session_lines(); choice++)
		for (int protocol = 0; protocol < PAIR_PROTOCOLS; protocol++)
			if (!protocol || choice == 0 || protocol == choice % (PAIR_PROTOCOLS - 1) + 1)
				pair_record_one(choice, (uint8_t)protocol, pull, client_side, server_side);
	session_end_recording();
}

static inline void pair_run(int (*words)(const struct session_plan *plan, const char **words), bool is_server,
			    const uint8_t *data, size_t size)
{
	struct session_plan plan = { .prepare = session_trees, .words = words, .is_server = is_server };

	if (size < PAIR_HEAD)
		return;
	plan.choice = data[0] % session_lines();
	plan.protocol = pair_protocol(data[1]);
	session_run(&plan, data + PAIR_HEAD, size - PAIR_HEAD);
}

#endif
