/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Names of checksum and compression algorithms, and how two peers choose one of each (doc/protocol/01-session.md
 * section 7.5).
 */
#include "wire/algorithm.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/exit.h"
#include "lib/log.h"

struct name { const char *text; int value; };

/* In the order of preference; SUM_MD4_OLD goes by the name of md4 and is never chosen by name. */
static const struct name sum_names[] = {
	{ "xxh128", SUM_XXH128 }, { "xxh3", SUM_XXH3 }, { "xxh64", SUM_XXH64 }, { "md5", SUM_MD5 }, { "md4", SUM_MD4 },
	{ "sha1", SUM_SHA1 }, { "none", SUM_NONE }, { "xxhash", SUM_XXH64 }, { "md4", SUM_MD4_OLD }, { NULL, 0 },
};

static const struct name compress_names[] = {
	{ "zstd", COMPRESS_ZSTD }, { "lz4", COMPRESS_LZ4 }, { "zlibx", COMPRESS_ZLIBX }, { "zlib", COMPRESS_ZLIB },
	{ "none", COMPRESS_NONE }, { NULL, 0 },
};

static const struct choice_kind {
	const struct name *names;
	const char *variable, *client_list;
} kinds[] = {
	[CHOICE_CHECKSUM] = { sum_names, "RSYNC_CHECKSUM_LIST", "xxh128 xxh3 xxh64 md5 md4 sha1" },
	[CHOICE_COMPRESS] = { compress_names, "RSYNC_COMPRESS_LIST", "zstd lz4 zlibx zlib" },
};

const char *choice_name(enum choice choice)
{
	return choice == CHOICE_CHECKSUM ? "checksum" : "compress";
}

static const struct name *find_name(const struct name *names, const char *text, size_t length)
{
	for (; names->text; names++)
		if (strlen(names->text) == length && strncasecmp(names->text, text, length) == 0)
			return names;
	return NULL;
}

static const char *find_text(const struct name *names, int value)
{
	for (; names->text; names++)
		if (names->value == value)
			return names->text;
	return "unknown";
}

bool sum_algorithm_parse(const char *name, enum sum_algorithm *algorithm)
{
	const struct name *found = find_name(sum_names, name, strlen(name));

	if (found)
		*algorithm = (enum sum_algorithm)found->value;
	return found != NULL;
}

const char *sum_algorithm_name(enum sum_algorithm algorithm)
{
	return find_text(sum_names, (int)algorithm);
}

bool compress_algorithm_parse(const char *name, enum compress_algorithm *algorithm)
{
	const struct name *found = find_name(compress_names, name, strlen(name));

	if (found)
		*algorithm = (enum compress_algorithm)found->value;
	return found != NULL;
}

const char *compress_algorithm_name(enum compress_algorithm algorithm)
{
	return find_text(compress_names, (int)algorithm);
}

/* The next word of a blank-separated list; its length, 0 at the end. */
static size_t next_word(const char **list)
{
	*list += strspn(*list, " \t\r\n");
	return strcspn(*list, " \t\r\n");
}

static const char *value_from_list(enum choice choice, const char *list, int value)
{
	const struct name *found;
	size_t length;

	for (; (length = next_word(&list)) > 0; list += length) {
		found = find_name(kinds[choice].names, list, length);
		if (found && found->value == value)
			return list;
	}
	return NULL;
}

bool choice_list_has(enum choice choice, const char *list, int value)
{
	return value_from_list(choice, list, value) != NULL;
}

int choice_by_client_order(enum choice choice, const char *client_list, const char *server_list)
{
	const struct name *found;
	size_t length;

	for (; (length = next_word(&client_list)) > 0; client_list += length) {
		found = find_name(kinds[choice].names, client_list, length);
		if (found && choice_list_has(choice, server_list, found->value))
			return found->value;
	}
	return -1;
}

/* The part of the environment's list that is ours: before "&" for a client, after it for a server. */
static void environment_list(struct strbuf *part, enum choice choice, bool is_server)
{
	const char *text = getenv(kinds[choice].variable), *ampersand;

	if (!text)
		return;
	ampersand = strchr(text, '&');
	if (!ampersand)
		strbuf_add_string(part, text);
	else if (is_server)
		strbuf_add_string(part, ampersand + 1);
	else
		strbuf_add(part, text, (size_t)(ampersand - text));
}

bool choice_our_list(struct strbuf *list, enum choice choice, bool is_server)
{
	struct strbuf wanted = STRBUF_INIT;
	const struct name *found;
	const char *word;
	size_t length;

	environment_list(&wanted, choice, is_server);
	word = strbuf_text(&wanted);
	if (!next_word(&word)) {
		strbuf_free(&wanted);
		strbuf_add_string(list, kinds[choice].client_list);
		if (is_server)
			strbuf_add_string(list, " none");
		return false;
	}
	for (; (length = next_word(&word)) > 0; word += length) {
		found = find_name(kinds[choice].names, word, length);
		if (!found || choice_list_has(choice, strbuf_text(list), found->value))
			continue;
		if (list->length)
			strbuf_add_char(list, ' ');
		strbuf_add_string(list, find_text(kinds[choice].names, found->value));
	}
	if (!list->length)
		strbuf_add_string(list, "INVALID");
	strbuf_free(&wanted);
	return true;
}

void choice_failed(enum choice choice, bool is_server, const char *ours, const char *theirs)
{
	log_error("Failed to negotiate a %s choice.", choice_name(choice));
	log_error("%s list: %s", is_server ? "Client" : "Server", theirs);
	log_error("%s list: %s", is_server ? "Server" : "Client", ours);
	exit_with(EXIT_UNSUPPORTED);
}
