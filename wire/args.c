/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading and writing the argument words of a session. */
#include "wire/args.h"

#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/exit.h"

void args_free(struct args *args)
{
	for (size_t i = 0; i < args->count; i++)
		free(args->items[i]);
	free(args->items);
	args->items = NULL;
	args->count = 0;
}

/* Capacities are powers of two, with one item kept for the NULL at the end. */
void args_take(struct args *args, char *text)
{
	size_t filled = args->count + 1;

	if (!args->items)
		args->items = xcalloc(2, sizeof *args->items);
	else if (filled >= 2 && (filled & (filled - 1)) == 0)
		args->items = xrealloc_array(args->items, filled * 2, sizeof *args->items);
	args->items[args->count++] = text;
	args->items[args->count] = NULL;
}

void args_append(struct args *args, const char *text)
{
	args_take(args, xstrdup(text));
}

void args_prepend(struct args *args, const char *text)
{
	args_append(args, text);
	char *first = args->items[args->count - 1];

	memmove(args->items + 1, args->items, (args->count - 1) * sizeof *args->items);
	args->items[0] = first;
}

void args_append_counted(struct args *args, const char *text, struct budget *budget)
{
	budget_take(budget, BUDGET_OF_TEXT(strlen(text)) + 2 * sizeof *args->items, "arguments");
	args_append(args, text);
}

void args_append_limited(struct args *args, const char *text, struct budget *budget)
{
	if (args->count >= ARGS_MAX_COUNT)
		die(EXIT_PROTOCOL, "too many daemon arguments");
	args_append_counted(args, text, budget);
}

void args_free_counted(struct args *args, struct budget *budget)
{
	for (size_t i = 0; i < args->count; i++)
		budget_give_back(budget, BUDGET_OF_TEXT(strlen(args->items[i])) + 2 * sizeof *args->items);
	args_free(args);
}

/* One word into buf; false: the empty word that ends the list. */
static bool read_word(struct wire *wire, char *buf, size_t size, bool nul_terminated)
{
	bool too_bad;

	if (!wire_read_line(wire, buf, size, nul_terminated ? '\0' : '\n', nul_terminated ? -1 : '\r', &too_bad)) {
		if (too_bad)
			die(EXIT_PROTOCOL, "an argument is longer than %d bytes or contains a NUL", ARGS_MAX_LENGTH);
		wire_die_closed(wire);
	}
	return buf[0] != '\0';
}

void args_read(struct wire *wire, struct args *args, bool nul_terminated)
{
	char word[ARGS_MAX_LENGTH + 1];

	while (read_word(wire, word, sizeof word, nul_terminated))
		args_append_limited(args, word, wire_budget(wire));
}

void args_read_secluded(struct wire *wire, struct args *args)
{
	char program[ARGS_MAX_LENGTH + 1];

	if (read_word(wire, program, sizeof program, true))
		args_read(wire, args, true);
}

void args_unescape_options(struct args *args)
{
	for (size_t i = 0; i < args->count && strcmp(args->items[i], ".") != 0; i++) {
		char *word = args->items[i];
		char *to = word;

		for (; *word; word++) {
			if (*word == '\\' && word[1])
				word++;
			*to++ = *word;
		}
		*to = '\0';
	}
}

void args_write(struct wire *wire, const struct args *args, bool nul_terminated)
{
	char end = nul_terminated ? '\0' : '\n';

	for (size_t i = 0; i < args->count; i++) {
		/* An empty word would end the list; as the value of an option it is the name of a directory. */
		const char *word = *args->items[i] ? args->items[i] : ".";

		if (end == '\n' && strpbrk(word, "\r\n"))
			die(EXIT_SYNTAX, "an argument with a line break cannot be sent at this protocol: %s", word);
		if (strlen(word) > ARGS_MAX_LENGTH)
			die(EXIT_SYNTAX, "an argument for the server is longer than %d bytes", ARGS_MAX_LENGTH);
		wire_write(wire, word, strlen(word));
		wire_write_byte(wire, (uint8_t)end);
	}
	wire_write_byte(wire, (uint8_t)end);
}

void args_convert(struct args *args, struct charset *charset, bool to_wire)
{
	for (size_t i = 0; charset && i < args->count; i++) {
		const char *item = args->items[i];
		struct strbuf word = STRBUF_INIT;

		if (!charset_convert(charset, to_wire, item, strlen(item), ARGS_MAX_LENGTH, &word) || !word.data)
			continue;
		free(args->items[i]);
		args->items[i] = strbuf_detach(&word);
	}
}
