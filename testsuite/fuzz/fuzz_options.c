/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A daemon's client sends any words: they are parsed under a module's refusals, and a second list on top of them if the first
 * asks for it. Words end in NUL or LF, so that captured argument lists are seeds; an empty word begins the second list.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "options/refuse.h"
#include "wire/setup.h"

#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The words of one list, from *position on; words[0] is a program name. */
static int split(char *text, size_t size, size_t *position, char **words)
{
	static char name[] = "rsyncd";
	int count = 0;

	words[count++] = name;
	while (*position < size && count < WORDS_MAX) {
		char *word = text + *position;

		*position += strlen(word) + 1;
		if (!*word)
			break;
		words[count++] = word;
	}
	words[count] = NULL;
	return count;
}

static void parse_both(char *text, size_t size, const struct refused_options *refused)
{
	char *words[WORDS_MAX + 1];
	struct options options;
	struct setup_request request;
	size_t position = 0;
	char *error = NULL;
	int code, count = split(text, size, &position, words);

	if (options_parse(&options, count, words, refused, &error, &code) == OPTIONS_OK && options.secluded_args) {
		count = split(text, size, &position, words);
			options_parse_secluded(&options, count, words, refused, &error, &code);
	}
	options_setup_request(&options, &request);
	free(error);
	options_free(&options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const settings[] = { "", "*", "* !a !v", "delete compress c", "partial inplace no-iconv" };
	struct refused_options *refused;
	char *text;

	if (size < 1)
		return 0;
	refused = refused_options_new(settings[data[0] % (sizeof settings / sizeof *settings)], data[0] & 0x80);
	text = malloc(size + 1);
	if (text) {
		memcpy(text, data, size);
		text[size] = 0;
		for (size_t i = 0; i < size; i++)
			if (text[i] == '\n')
				text[i] = 0;
		parse_both(text, size, refused);
	}
	free(text);
	refused_options_free(refused);
	return 0;
}
