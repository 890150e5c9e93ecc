/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writing batch files, and the scripts that replay them. */
#include "options/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <unistd.h>

#include "filter/exchange.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options/remote.h"
#include "options/table.h"
#include "wire/encode.h"

#define BUFFER_SIZE (64 * 1024)

struct batch {
	const struct options *options;
	int fd, script_fd;
	uint8_t *buffer;
	size_t used;
};

static char *full_name(const char *name)
{
	char *cwd = *name == '/' ? NULL : getcwd(NULL, 0);
	char *full = cwd ? xasprintf("%s/%s", cwd, name) : xstrdup(name);

	free(cwd);
	return full;
}

static noreturn void failed(const char *name, const char *what, int error, int code)
{
	die_errno(code, error, "Batch file \"%s\" %s error", full_name(name), what);
}

int batch_open(const struct options *options)
{
	const char *name = options->read_batch;
	struct fs_stat st = { 0 };
	int fd;

	if (strcmp(name, "-") == 0)
		return dup(STDIN_FILENO);
	fd = fs_operator_open(name, O_RDONLY | O_NONBLOCK | options_link_flag(options), 0);
	if (fd < 0)
		failed(name, "open", errno, EXIT_FILEIO);
	if (fs_stat_at_fd(fd, &st) == 0 && S_ISREG(st.mode))
		return fd;
	if (!S_ISFIFO(st.mode))
		die(EXIT_FILEIO, "Batch file \"%s\" is neither a regular file nor a FIFO", full_name(name));
	fs_await_writer(fd);
	return fd;
}

static int open_output(const struct options *options, const char *name, mode_t mode)
{
	int fd = fs_operator_open(name, O_WRONLY | O_CREAT | O_TRUNC | options_link_flag(options), mode);

	if (fd < 0)
		failed(name, "open", errno, EXIT_FILESELECT);
	return fd;
}

struct batch *batch_create(const struct options *options)
{
	struct batch *batch;
	char *script;

	if (!options->write_batch)
		return NULL;
	batch = xcalloc(1, sizeof *batch);
	script = xasprintf("%s.sh", options->write_batch);
	batch->options = options;
	batch->script_fd = open_output(options, script, 0700);
	batch->fd = open_output(options, options->write_batch, 0600);
	batch->buffer = xmalloc(BUFFER_SIZE);
	free(script);
	return batch;
}

/* --- the script that replays it --- */

/* One word of the line after the other. */
struct scan {
	const struct args *words;
	size_t at;
	bool only_operands; /* behind a "--" */
	struct strbuf *script;
};

static void add_quoted(struct strbuf *script, const char *text)
{
	strbuf_add_char(script, '\'');
	for (; *text; text++)
		if (*text == '\'')
			strbuf_add_string(script, "'\\''");
		else
			strbuf_add_char(script, *text);
	strbuf_add_char(script, '\'');
}

/* "--name='VALUE'", or all of it in quotes. */
static void add_word(struct strbuf *script, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	size_t name = strspn(word, plain);

	strbuf_add_char(script, ' ');
	if (strncmp(word, "--", 2) == 0 && word[name] == '=') {
		strbuf_add(script, word, name + 1);
		word += name + 1;
	}
	add_quoted(script, word);
}

/* In the script, rules and names of sources have other forms. */
static bool is_left_out(const struct option_spec *spec)
{
	static const char *const names[] = {
		"filter", "exclude", "include", "exclude-from", "include-from", "files-from",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (spec->name && strcmp(spec->name, names[i]) == 0)
			return true;
	return false;
}

/* The next word, if the option takes one. */
static const char *take_value(struct scan *scan)
{
	return scan->at + 1 < scan->words->count ? scan->words->items[++scan->at] : "";
}

static void add_long(struct scan *scan, const char *word)
{
	size_t length = strcspn(word + 2, "=");
	const struct option_spec *spec = option_find(option_table(MODE_CLIENT), word + 2, length, '\0');
	bool has_value = word[2 + length] == '=', is_batch = spec && spec->field == offsetof(struct options, write_batch);
	const char *value = spec && spec->arg != NO_ARG && !has_value ? take_value(scan) : NULL;

	if (spec && is_left_out(spec))
		return;
	if (is_batch && has_value) {
		strbuf_add_string(scan->script, " --read-batch=");
		add_quoted(scan->script, word + 2 + length + 1);
	} else if (is_batch) {
		strbuf_add_string(scan->script, " --read-batch");
	} else {
		add_word(scan->script, word);
	}
	if (value)
		add_word(scan->script, value);
}

/* Letters up to one that takes a value, which is the rest of the word or the next one. */
static void add_letters(struct scan *scan, const char *word)
{
	const struct option_spec *table = option_table(MODE_CLIENT), *spec = NULL;
	size_t at = 1;

	while (word[at] && (!(spec = option_find(table, NULL, 0, word[at])) || spec->arg == NO_ARG))
		at++;
	const char *value = word[at] && !word[at + 1] ? take_value(scan) : NULL;

	if (word[at] && is_left_out(spec)) {
		char *rest = xstrndup(word, at);

		if (at > 1)
			add_word(scan->script, rest);
		free(rest);
		return;
	}
	add_word(scan->script, word);
	if (value)
		add_word(scan->script, value);
}

void batch_write_script(struct batch *batch, const struct filter_list *rules)
{
	struct strbuf lines = STRBUF_INIT, script = STRBUF_INIT;

	if (!batch)
		return;
	filter_add_lines(rules, &lines);
	/* The command line as it was given, but for the sources and the filter rules; those follow line by line. */
	const struct args *words = &batch->options->parse->words, *operands = &batch->options->operands;
	struct scan scan = { .words = words, .script = &script };

	add_quoted(&script, words->items[0]);
	if (lines.length)
		strbuf_add_string(&script, batch->options->from0 ? " --filter='._-' --no-from0" : " --filter='._-'");
	for (scan.at = 1; scan.at < scan.words->count; scan.at++) {
		const char *word = scan.words->items[scan.at];

		if (scan.only_operands || word[0] != '-' || !word[1])
			continue;
		if (strcmp(word, "--") == 0)
			scan.only_operands = true;
		else if (word[1] == '-')
			add_long(&scan, word);
		else
			add_letters(&scan, word);
	}
	if (scan.only_operands)
		add_word(scan.script, "--");
	strbuf_add_string(&script, " ${1:-");
	const char *destination = operands->count ? operands->items[operands->count - 1] : ".";
	struct remote remote = { .path = NULL };

	/* A batch is replayed on the machine that has the destination. */
	add_quoted(&script, remote_parse(&remote, destination) ? remote.path : destination);
	remote_free(&remote);
	strbuf_add_char(&script, '}');
	if (lines.length)
		strbuf_addf(&script, " <<'#E#'\n%s#E#", lines.data);
	strbuf_add_char(&script, '\n');
	if (fs_write_all(batch->script_fd, strbuf_text(&script), script.length) < 0)
		failed(batch->options->write_batch, "write", errno, EXIT_FILEIO);
	close(batch->script_fd);
	strbuf_free(&lines);
	strbuf_free(&script);
}

/* --- the options that it is made with --- */

#define F(member) offsetof(struct options, member)
#define ANY (-1)
#define BATCH_RECURSE 0x0001
#define BATCH_ICONV 0x0200

/* The bits of a batch's first field, the lowest first; old protocols have fewer (batch_bits of their capabilities). */
static const struct batch_option {
	const char *name; /* of messages; NULL: --iconv, which cannot be changed */
	size_t field;
	int level;        /* of an int; 0: the field is a bool */
} batch_options[] = {
	{ "--recurse (-r)", F(recursive), ANY },
	{ "--owner (-o)", F(owner), 0 },
	{ "--group (-g)", F(group), 0 },
	{ "--links (-l)", F(links), 0 },
	{ "--devices (-D)", F(devices), 0 },
	{ "--hard-links (-H)", F(hard_links), ANY },
	{ "--checksum (-c)", F(checksum), 0 },
	{ "--dirs (-d)", F(dirs), 0 },
	{ "--compress (-z)", F(compress), 0 },
	{ NULL, F(iconv), 0 },
	{ "--acls (-A)", F(acls), 0 },
	{ "--xattrs (-X)", F(xattrs), ANY },
	{ "--inplace", F(inplace), 0 },
	{ "--append", F(append), 1 },
	{ "--append-verify", F(append), 2 },
};

#define BATCH_OPTIONS (sizeof batch_options / sizeof *batch_options)

static bool is_set(const struct options *options, const struct batch_option *option)
{
	const void *field = (const char *)options + option->field;

	if (!option->name)
		return options->iconv != NULL;
	if (option->field == F(dirs))
		return options->dirs || options->recursive;
	if (!option->level)
		return *(const bool *)field;
	return option->level == ANY ? *(const int *)field != 0 : *(const int *)field == option->level;
}

static uint32_t flags_of(const struct options *options)
{
	uint32_t flags = 0;

	for (size_t i = 0; i < BATCH_OPTIONS; i++)
		flags |= (uint32_t)is_set(options, &batch_options[i]) << i;
	return flags;
}

void batch_match(struct options *options, uint32_t flags, uint32_t known)
{
	uint32_t different = (flags ^ flags_of(options)) & known;

	/* An explicit -r becomes the implied one of -a; 3.5.0 reports that as a change, too. */
	if (options->recursive > 1)
		different |= BATCH_RECURSE;
	for (size_t i = 0; i < BATCH_OPTIONS; i++)
		if (batch_options[i].name && different >> i & 1) {
			bool on = flags >> i & 1;
			void *field = (char *)options + batch_options[i].field;

			if (options->levels.info[INFO_MISC])
				log_info("%sing the %s option to match the batchfile.", on ? "Sett" : "Clear",
					 batch_options[i].name);
			if (!batch_options[i].level)
				*(bool *)field = on;
			else if (on)
				*(int *)field = batch_options[i].level == ANY ? 1 : batch_options[i].level;
			else if (is_set(options, &batch_options[i])) /* not if the other level of --append has just been set */
				*(int *)field = 0;
		}
	if (different & BATCH_ICONV)
		die(EXIT_SYNTAX, "%s specify the --iconv option to use this batch file.",
		    flags & BATCH_ICONV ? "Please" : "Do not");
}

/* --- the stream --- */

static void flush(struct batch *batch)
{
	if (fs_write_all(batch->fd, batch->buffer, batch->used) < 0)
		failed(batch->options->write_batch, "write", errno, EXIT_FILEIO);
	batch->used = 0;
}

void batch_write(void *batch_void, const void *bytes, size_t length)
{
	struct batch *batch = batch_void;

	if (batch->used + length > BUFFER_SIZE)
		flush(batch);
	if (length > BUFFER_SIZE && fs_write_all(batch->fd, bytes, length) < 0)
		failed(batch->options->write_batch, "write", errno, EXIT_FILEIO);
	if (length > BUFFER_SIZE)
		return;
	memcpy(batch->buffer + batch->used, bytes, length);
	batch->used += length;
}

void batch_start(struct batch *batch, const struct session *session)
{
	uint8_t header[4 * ENCODED_MAX + ENCODE_SLACK], *end = header;

	if (!batch)
		return;
	end = encode_int(end, flags_of(batch->options));
	end = encode_int(end, (uint32_t)session->protocol);
	if (session->caps.compat_flags)
		end = encode_varint(end, (int32_t)session->compat);
	end = encode_int(end, (uint32_t)session->seed);
	batch_write(batch, header, (size_t)(end - header));
	if (session->is_sender)
		wire_set_tee_out(session->wire, batch_write, batch);
	else
		wire_set_tee_in(session->wire, batch_write, batch);
}

void batch_finish(struct batch *batch)
{
	if (!batch)
		return;
	flush(batch);
	if (close(batch->fd) < 0)
		failed(batch->options->write_batch, "write", errno, EXIT_FILEIO);
	free(batch->buffer);
	free(batch);
}
