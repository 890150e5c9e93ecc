/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a daemon makes of text that others control: the path words of a client, which must come out below the module's root
 * whatever they hold; the client's host name, which is held against the access lists; and a configuration file's bytes.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/session.h"
#include "daemon/talk.h"
#include "lib/alloc.h"
#include "loadparm/grammar.h"
#include "loadparm/hosts.h"
#include "ui/log_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int resolves_nothing(void *context, const char *name, const char *address)
{
	(void)context;
	(void)name;
	(void)address;
	return -1;
}

static void require(int holds)
{
	if (!holds)
		abort();
}

/* Relative, and no component that climbs. */
static void check_confined(const char *path)
{
	require(*path && *path != '/');
	while (*path) {
		size_t length = strcspn(path, "/");

		require(length != 2 || memcmp(path, "..", 2));
		path += length;
		path += strspn(path, "/");
	}
}

static void try_words(const char *text)
{
	struct args pieces = { NULL, 0 };

	argument_split(&pieces, text, "mod", NULL);
	for (size_t i = 0; i < pieces.count; i++)
		check_confined(pieces.items[i]);
	args_free(&pieces);
}

static void try_hosts(char *text)
{
	char *list = strchr(text, '\n');
	const struct host_peer peer = {
		.address = "192.0.2.1", .name = text, .forward_lookup = true, .resolves = resolves_nothing,
	};
	struct strbuf why = STRBUF_INIT;

	if (!list)
		return;
	*list++ = 0;
	/* A network group is the system's business. */
	if (!strchr(list, '@')) {
		bool well_formed = hosts_list_check(list, &why);

		require(well_formed == !why.length);
		hosts_allowed(list, "", &peer);
		/* A deny list with a malformed token never lets anybody in. */
		require(well_formed || !hosts_allowed("", list, &peer));
	}
	strbuf_free(&why);
}

static void try_configuration(const char *text, size_t size)
{
	struct grammar grammar;
	size_t before = 0;

	grammar_start(&grammar, text, size);
	while (grammar_next(&grammar) != GRAMMAR_END) {
		require(grammar.at > before || grammar.at == size);
		before = grammar.at;
		if (grammar.message && grammar.at == size)
			break;
	}
	grammar_free(&grammar);
}

static void try_log(const char *text, size_t size)
{
	struct strbuf out = STRBUF_INIT;

	log_file_escape(&out, text, size);
	for (size_t i = 0; i < out.length; i++) {
		unsigned char c = (unsigned char)out.data[i];

		require((c >= ' ' || c == '\t') && (c < 0x7f || c >= 0xa0));
	}
	strbuf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xcalloc(1, size + 1);

	memcpy(text, data, size);
	try_configuration(text, size);
	try_log(text, size);
	if (strlen(text) <= ARGS_MAX_LENGTH)
		try_words(text);
	try_hosts(text);
	free(text);
	return 0;
}
