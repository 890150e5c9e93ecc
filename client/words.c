/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The command line of a server, in the order in which every client gives them (doc/protocol/01-session.md
 * section 6).
 */
#include "client/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/log.h"
#include "lib/strbuf.h"
#include "ui/itemize.h"
#include "wire/setup.h"

#define VERBOSE_MAX 9 /* -v that are passed on */

/* --- the single letters --- */

static int at_most(int value, int most)
{
	return value < most ? value : most;
}

static void add_cluster(const struct options *o, bool we_send, const struct session_caps *caps, struct args *words)
{
	/* Directories that are only implied matter where the server makes a listing, or has to find what to delete. */
	bool wants_dirs = o->dirs_given || o->list_only || (we_send && o->delete_when != DELETE_NEVER);
	bool may_recurse = o->allow_inc_recurse && !o->use_qsort && (we_send || !options_need_whole_list(o));
	const struct { char letter; int times; } letters[] = {
		{ 's', o->secluded_args }, { 'v', at_most(o->verbose, VERBOSE_MAX) },
		{ 'q', o->quiet && o->stderr_mode != STDERR_CLIENT }, { 'b', o->backup }, { 'u', o->update },
		{ 'n', o->dry_run && !o->only_write_batch }, { 'l', o->links },
		{ 'd', !o->recursive && o->dirs && wants_dirs },
		/* Options that concern only a receiving server, or only a sending one. */
		{ 'K', we_send && o->keep_dirlinks }, { 'm', we_send && o->prune_empty_dirs },
		/* Backups beside the files imply it. */
		{ 'O', we_send && o->omit_dir_times && (!o->backup || o->backup_dir) }, { 'J', we_send && o->omit_link_times },
		{ 'y', we_send ? at_most(o->fuzzy, o->alt_dests ? 2 : 1) : 0 }, { 'L', !we_send && o->copy_links },
		{ 'k', !we_send && o->copy_dirlinks },
		/* And of both again. */
		{ 'W', o->whole_file == 1 }, { 'H', at_most(o->hard_links, 2) }, { 'o', o->owner }, { 'g', o->group },
		{ 'D', o->devices }, { 't', o->times }, { 'U', at_most(o->atimes, 2) }, { 'p', o->perms },
		{ 'E', we_send && o->executability && !o->perms }, { 'A', o->acls }, { 'X', at_most(o->xattrs, 2) },
		{ 'r', o->recursive != 0 }, { 'c', o->checksum }, { 'C', o->cvs_exclude }, { 'I', o->ignore_times },
		{ 'R', o->relative }, { 'x', at_most(o->one_file_system, 2) }, { 'S', o->sparse },
		{ 'z', o->compress_letter },
	};
	struct strbuf cluster = STRBUF_INIT;

	strbuf_add_char(&cluster, '-');
	for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
		for (int times = letters[i].times; times > 0; times--)
			strbuf_add_char(&cluster, letters[i].letter);
	if (caps->compat_flags)
		strbuf_addf(&cluster, "e.%sLsfxCIvu", o->recursive && may_recurse ? "i" : "");
	if (cluster.length > 1)
		args_append(words, strbuf_text(&cluster));
	strbuf_free(&cluster);
}

/* --- the long ones --- */

/* One of them, with its value. */
struct word {
	bool said;
	enum { ALONE, BEFORE_NUMBER, BEFORE_TEXT, BEFORE_PATH } kind;
	const char *name;
	int64_t number;
	const char *text;
};

/* The kinds: "--name"; "--name=5", with the '=' in the name; "--name=TEXT" and "--name" "PATH" unless they are NULL. */
#define FLAG(said, name) { said, ALONE, name, 0, NULL }
#define NUMBER(said, name, number) { said, BEFORE_NUMBER, name, number, NULL }
#define TEXT(name, text) { (text) != NULL, BEFORE_TEXT, name, 0, text }
#define PATH(name, text) { (text) != NULL, BEFORE_PATH, name, 0, text }

static void add_words(struct args *words, const struct word *said, size_t count)
{
	for (; count; said++, count--) {
		if (!said->said)
			continue;
		if (said->kind == BEFORE_NUMBER)
			args_take(words, xasprintf("%s%" PRId64, said->name, said->number));
		else if (said->kind == BEFORE_TEXT)
			args_take(words, xasprintf("%s=%s", said->name, said->text));
		else
			args_append(words, said->name);
		/* In a word of its own, so that a shell at the other end expands a "~" in it. */
		if (said->kind == BEFORE_PATH)
			args_append(words, said->text);
	}
}

static void add_middle(const struct options *o, bool we_send, struct args *words)
{
	const struct word said[] = {
		FLAG(we_send && o->delete_excluded, "--delete-excluded"), FLAG(we_send && o->force, "--force"),
		FLAG(we_send && o->only_write_batch, "--only-write-batch=X"),
		FLAG(we_send && o->super == SUPER_YES, "--super"), FLAG(we_send && o->size_only, "--size-only"),
		FLAG(we_send && o->stats, "--stats"), TEXT("--skip-compress", we_send ? NULL : o->skip_compress_text),
		TEXT("--max-alloc", o->max_alloc_text), FLAG(o->delete_missing_args, "--delete-missing-args"),
		FLAG(o->ignore_missing_args && !o->delete_missing_args && !we_send, "--ignore-missing-args"),
		NUMBER(we_send && o->modify_window_given, o->modify_window < 0 ? "-@" : "--modify-window=", o->modify_window),
		NUMBER(o->checksum_seed, "--checksum-seed=", o->checksum_seed),
		PATH("--partial-dir", we_send && o->has_partial_dir ? o->partial_dir : NULL),
		FLAG(we_send && o->delay_updates, "--delay-updates"),
		FLAG(we_send && o->partial && !o->has_partial_dir && !o->delay_updates && !o->inplace, "--partial"),
		FLAG(o->ignore_errors, "--ignore-errors"), FLAG(o->copy_unsafe_links, "--copy-unsafe-links"),
		FLAG(o->safe_links, "--safe-links"), FLAG(o->numeric_ids, "--numeric-ids"),
		/* A server takes these for -o and -g, and below protocol 30 it would wait for the names of ids that are not
		 * sent. */
		TEXT("--usermap", we_send && (o->owner || o->acls) ? o->usermap : NULL),
		TEXT("--groupmap", we_send && (o->group || o->acls) ? o->groupmap : NULL),
		FLAG(we_send && o->ignore_existing, "--ignore-existing"), FLAG(we_send && o->existing, "--existing"),
		PATH("--temp-dir", we_send ? o->temp_dir : NULL), FLAG(we_send && o->fsync, "--fsync"),
	};

	add_words(words, said, sizeof said / sizeof *said);
	for (size_t i = 0; we_send && i < o->alt_dest_dirs.count; i++) {
		args_take(words, xasprintf("--%s", o->alt_dest_kind));
		args_append(words, o->alt_dest_dirs.items[i]);
	}
}

static void add_last(const struct options *o, bool we_send, const struct session_caps *caps, struct args *words)
{
	/* Of the words of --info, those that concern what the server is. */
	static const enum info_word receiver[] = {
		INFO_BACKUP, INFO_COPY,   INFO_DEL,  INFO_MISC,  INFO_MOUNT,
		INFO_NAME,   INFO_NONREG, INFO_SKIP, INFO_STATS, INFO_SYMSAFE,
	};
	static const enum info_word sender[] = {
		INFO_MISC, INFO_MOUNT, INFO_NAME, INFO_REMOVE, INFO_STATS, INFO_SYMSAFE,
	};
	struct strbuf list = STRBUF_INIT;

	ui_levels_add_given(&list, o->info_given, we_send ? receiver : sender,
			    we_send ? sizeof receiver / sizeof *receiver : sizeof sender / sizeof *sender);
	bool in_place = o->inplace && !o->append;
	/* A list of ours goes to a sending server over the connection; one of the server's is named to it. */
	bool of_server = o->files_from && o->files_from_remote, of_ours = o->files_from && !o->files_from_remote && !we_send;
	const struct word said[] = {
		TEXT("--info", list.length ? list.data : NULL),
		FLAG(o->append, "--append"), FLAG(o->append > 1, "--append"), FLAG(in_place, "--inplace"),
		FLAG(in_place && we_send && o->sparse && o->whole_file == 0, "--no-W"),
		PATH("--files-from", of_server ? o->files_from_path : NULL), FLAG(of_ours, "--files-from=-"),
		FLAG(of_ours || (of_server && o->from0), "--from0"),
		FLAG((of_server || of_ours) && !o->relative, "--no-relative"),
		FLAG(o->relative && !o->implied_dirs && (!we_send || !caps->omits_parents), "--no-implied-dirs"),
		FLAG(we_send && o->write_devices, "--write-devices"),
		FLAG(o->remove_source_files, o->remove_sent_files ? "--remove-sent-files" : "--remove-source-files"),
		FLAG(!we_send && o->copy_devices, "--copy-devices"), FLAG(we_send && o->preallocate, "--preallocate"),
		FLAG(o->open_noatime && o->atimes <= 1, "--open-noatime"), FLAG(we_send && o->mkpath, "--mkpath"),
	};

	add_words(words, said, sizeof said / sizeof *said);
	strbuf_free(&list);
}

void options_server_words(const struct options *o, bool we_send, int protocol, struct args *words)
{
	static const char *const whens[] = {
		[DELETE_DEFAULT] = "--delete", [DELETE_BEFORE] = "--delete-before", [DELETE_DURING] = "--delete-during",
		[DELETE_DELAY] = "--delete-delay", [DELETE_AFTER] = "--delete-after",
	};
	const struct session_caps caps = session_caps_of(protocol);
	const char *comma = o->iconv ? strchr(o->iconv, ',') : NULL, *log_format = NULL, *choice = o->compress_choice;
	/* A receiving server reports what our format needs to know: it never prints it. */
	const char *format = o->out_format ? o->out_format : o->levels.info[INFO_NAME] ? "%n%L" : NULL;
	int algorithm = choice ? algorithm_find(CHOICE_COMPRESS, choice, strlen(choice)) : COMPRESS_NONE;
	bool deletes = we_send && o->delete_when != DELETE_NEVER, has_word;

	if (we_send && format && format_uses(format, 'i'))
		log_format = o->itemize > 1 ? "%i%I" : "%i";
	else if (we_send && format && format_uses(format, 'o'))
		log_format = "%o";
	else if (we_send && format && !o->verbose)
		log_format = "X";
	if (algorithm < 0)
		choice = NULL;
	has_word = algorithm == COMPRESS_ZLIBX || algorithm == COMPRESS_ZLIB;
	args_append(words, "--server");
	if (!we_send)
		args_append(words, "--sender");
	add_cluster(o, we_send, &caps, words);
	const struct word said[] = {
		/* LOCAL,REMOTE: a server gets its own half. */
		TEXT("--iconv", comma ? comma + 1 : o->iconv),
		FLAG(o->list_only_given, "--list-only"), FLAG(deletes && o->dirs && !o->recursive, "--no-r"),
		NUMBER(o->compress_level_set && o->compress, "--compress-level=", o->compress_level),
		FLAG(o->devices && !o->specials, "--no-specials"), FLAG(o->specials && !o->devices, "--specials"),
		TEXT("--log-format", log_format), FLAG(o->stderr_mode == STDERR_ALL, "--msgs2stderr"),
		FLAG(o->stderr_mode == STDERR_CLIENT, "--no-msgs2stderr"), NUMBER(o->block_size, "-B", o->block_size),
		NUMBER(o->timeout, "--timeout=", o->timeout), NUMBER(o->bwlimit, "--bwlimit=", o->bwlimit),
		PATH("--backup-dir", o->backup_dir),
		/* The default is "~", but nothing where backups have a directory of their own. */
		TEXT("--suffix", o->suffix && strcmp(o->suffix, o->backup_dir ? "" : "~") != 0 ? o->suffix : NULL),
		TEXT("--checksum-choice", o->checksum_choice),
		FLAG(has_word, algorithm == COMPRESS_ZLIBX ? "--new-compress" : "--old-compress"),
		TEXT("--compress-choice", has_word ? NULL : choice),
		NUMBER(we_send && o->max_delete >= 0, "--max-delete=", o->max_delete ? o->max_delete : -1),
		NUMBER(we_send && o->min_size >= 0, "--min-size=", o->min_size),
		NUMBER(we_send && o->max_size >= 0, "--max-size=", o->max_size),
		FLAG(deletes && (o->delete_when != DELETE_DEFAULT || !o->delete_excluded), whens[o->delete_when]),
	};
	add_words(words, said, sizeof said / sizeof *said);
	add_middle(o, we_send, words);
	add_last(o, we_send, &caps, words);
	for (size_t i = 0; i < o->remote_options.count; i++)
		args_append(words, o->remote_options.items[i]);
}

/* --- how they travel --- */

size_t server_words_visible(const struct args *words)
{
	size_t count = 1;

	count += count < words->count && strcmp(words->items[count], "--sender") == 0;
	count += count < words->count && words->items[count][0] == '-' && words->items[count][1] == 's';
	count += count < words->count && strncmp(words->items[count], "--iconv=", 8) == 0;
	return count;
}

char *server_word_escape(const char *word, bool is_path)
{
	/* The bytes that the login shell of the other side takes for something else than themselves. */
	const char *special = is_path ? "!#$&;|<>(){}\"'` \t\n\r\\" : "!#$&;|<>(){}\"'` \t\n\r\\*?[]";
	struct strbuf escaped = STRBUF_INIT;

	for (; *word; word++) {
		/* A wildcard that has been escaped already stays so. */
		bool kept = is_path && *word == '\\' && word[1] && strchr("*?[]", word[1]);

		/* To a shell, one behind a backslash is none. */
		if (*word == '\n') {
			strbuf_add_string(&escaped, "'\n'");
			continue;
		}
		if (strchr(special, *word) && !kept)
			strbuf_add_char(&escaped, '\\');
		strbuf_add_char(&escaped, *word);
	}
	return escaped.data ? strbuf_detach(&escaped) : xstrdup("");
}

void server_words_escape(const struct options *options, struct args *words)
{
	size_t own = words->count - options->remote_options.count;

	for (size_t i = 0; i < words->count; i++) {
		int left_alone_from = i < own ? 2 : 1;
		char *word;

		if (options->old_args >= left_alone_from)
			continue;
		word = server_word_escape(words->items[i], false);
		free(words->items[i]);
		words->items[i] = word;
	}
}

/* --- what is started, for the user --- */

void log_words(const struct options *options, const char *label, const struct args *words)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+,-./=@_";
	struct strbuf line = STRBUF_INIT;

	if (!options->levels.debug[DEBUG_CMD])
		return;
	for (size_t i = 0; i < words->count; i++) {
		const char *word = words->items[i], *quote = word[strspn(word, plain)] ? "\"" : "";

		strbuf_addf(&line, " %s%s%s", quote, word, quote);
	}
	log_msg(L_CLIENT, "%s:%s  (%zu args)", label, strbuf_text(&line), words->count);
	strbuf_free(&line);
}

void client_log_command(const struct options *options, const char *shell, const struct remote *remote, const char *path,
			const struct args *words)
{
	struct strbuf line = STRBUF_INIT;

	if (options->levels.debug[DEBUG_CMD] < 2)
		return;
	log_info("cmd=%s machine=%s user=%s path=%s", shell ? shell : "<NULL>", remote ? remote->host : "<NULL>",
		 remote && remote->user ? remote->user : "<NULL>", path);
	for (size_t i = 0; i < words->count; i++)
		strbuf_addf(&line, "cmd[%zu]=%s ", i, words->items[i]);
	log_info("%s", strbuf_text(&line));
	strbuf_free(&line);
}
