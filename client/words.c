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

enum {
	VERBOSE_MAX = 9,              /* -v that are passed on */
};

/* --- the single letters --- */

static int at_most(int value, int most)
{
	return value < most ? value : most;
}

static bool deletes(const struct options *options)
{
	return options->delete_when != DELETE_NEVER;
}

/* Directories that are only implied matter where the server makes a listing, or has to find what to delete. */
static bool asks_for_dirs(const struct options *options, bool we_send)
{
	if (options->recursive || !options->dirs)
		return false;
	return options->dirs_given || options->list_only || (we_send && deletes(options));
}

struct letter { char letter; int times; };

static void add_letters(struct strbuf *cluster, const struct letter *letters, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int times = letters[i].times; times > 0; times--)
			strbuf_add_char(cluster, letters[i].letter);
}

static void add_cluster(const struct options *o, bool we_send, const struct session_caps *caps, struct args *words)
{
	const struct letter before[] = {
		{ 's', o->secluded_args }, { 'v', at_most(o->verbose, VERBOSE_MAX) },
		{ 'q', o->quiet && o->stderr_mode != STDERR_CLIENT }, { 'b', o->backup }, { 'u', o->update },
		{ 'n', o->dry_run && !o->only_write_batch }, { 'l', o->links }, { 'd', asks_for_dirs(o, we_send) },
	};
	const struct letter after[] = {
		{ 'W', o->whole_file == 1 }, { 'H', at_most(o->hard_links, 2) }, { 'o', o->owner }, { 'g', o->group },
		{ 'D', o->devices }, { 't', o->times }, { 'U', at_most(o->atimes, 2) }, { 'p', o->perms },
		{ 'E', we_send && o->executability && !o->perms }, { 'A', o->acls }, { 'X', at_most(o->xattrs, 2) },
		{ 'r', o->recursive != 0 }, { 'c', o->checksum }, { 'C', o->cvs_exclude }, { 'I', o->ignore_times },
		{ 'R', o->relative }, { 'x', at_most(o->one_file_system, 2) }, { 'S', o->sparse },
		{ 'z', o->compress_letter },
	};
	struct strbuf cluster = STRBUF_INIT;

	strbuf_add_char(&cluster, '-');
	add_letters(&cluster, before, sizeof before / sizeof *before);
	/* Options that concern only a receiving server, or only a sending one. */
	const struct letter push[] = {
		{ 'K', o->keep_dirlinks },
		{ 'm', o->prune_empty_dirs },
		/* Backups beside the files imply it. */
		{ 'O', o->omit_dir_times && (!o->backup || o->backup_dir) },
		{ 'J', o->omit_link_times },
		{ 'y', at_most(o->fuzzy, o->alt_dests ? 2 : 1) },
	};
	const struct letter pull[] = { { 'L', o->copy_links }, { 'k', o->copy_dirlinks } };

	if (we_send)
		add_letters(&cluster, push, sizeof push / sizeof *push);
	else
		add_letters(&cluster, pull, sizeof pull / sizeof *pull);
	add_letters(&cluster, after, sizeof after / sizeof *after);
	if (caps->compat_flags)
		strbuf_addf(&cluster, "e.%sLsfxCIvu",
			    (o->recursive && o->allow_inc_recurse && !o->use_qsort && (we_send || !options_need_whole_list(o)))
				    ? "i"
				    : "");
	if (cluster.length > 1)
		args_append(words, strbuf_text(&cluster));
	strbuf_free(&cluster);
}

/* --- the long ones --- */

static void add_flag(struct args *words, bool said, const char *word)
{
	if (said)
		args_append(words, word);
}

/* "--name=VALUE"; nothing without a value. */
static void add_text(struct args *words, const char *name, const char *value)
{
	if (value)
		args_take(words, xasprintf("%s=%s", name, value));
}

static void add_number(struct args *words, bool said, const char *form, int64_t value)
{
	if (said)
		args_take(words, xasprintf("%s%" PRId64, form, value));
}

/* Two words, so that a shell at the other end expands a "~" in the second. */
static void add_path(struct args *words, const char *name, const char *path)
{
	if (!path)
		return;
	args_append(words, name);
	args_append(words, path);
}

static void add_general(const struct options *o, bool we_send, struct args *words)
{
	add_flag(words, o->list_only_given, "--list-only");
	add_flag(words, we_send && o->dirs && !o->recursive && deletes(o), "--no-r");
	add_number(words, o->compress_level_set && o->compress, "--compress-level=", o->compress_level);
	add_flag(words, o->devices && !o->specials, "--no-specials");
	add_flag(words, o->specials && !o->devices, "--specials");
	/* A receiving server reports what our format needs to know: it never prints it. */
	const char *format = o->out_format ? o->out_format : o->levels.info[INFO_NAME] ? "%n%L" : NULL;

	if (we_send && format && format_uses(format, 'i'))
		args_append(words, o->itemize > 1 ? "--log-format=%i%I" : "--log-format=%i");
	else if (we_send && format && format_uses(format, 'o'))
		args_append(words, "--log-format=%o");
	else
		add_flag(words, we_send && format && !o->verbose, "--log-format=X");
	add_flag(words, o->stderr_mode == STDERR_ALL, "--msgs2stderr");
	add_flag(words, o->stderr_mode == STDERR_CLIENT, "--no-msgs2stderr");
	add_number(words, o->block_size, "-B", o->block_size);
	add_number(words, o->timeout, "--timeout=", o->timeout);
	add_number(words, o->bwlimit, "--bwlimit=", o->bwlimit);
	add_path(words, "--backup-dir", o->backup_dir);
	/* The default is "~", but nothing where backups have a directory of their own. */
	if (o->suffix && strcmp(o->suffix, o->backup_dir ? "" : "~") != 0)
		add_text(words, "--suffix", o->suffix);
	add_text(words, "--checksum-choice", o->checksum_choice);
	enum compress_algorithm algorithm;

	if (!o->compress_choice || !compress_algorithm_parse(o->compress_choice, &algorithm))
		return;
	if (algorithm == COMPRESS_ZLIBX)
		args_append(words, "--new-compress");
	else if (algorithm == COMPRESS_ZLIB)
		args_append(words, "--old-compress");
	else
		add_text(words, "--compress-choice", o->compress_choice);
}

static void add_middle(const struct options *o, bool we_send, struct args *words)
{
	if (!we_send)
		add_text(words, "--skip-compress", o->skip_compress_text);
	add_text(words, "--max-alloc", o->max_alloc_text);
	if (o->delete_missing_args)
		args_append(words, "--delete-missing-args");
	else
		add_flag(words, o->ignore_missing_args && !we_send, "--ignore-missing-args");
	if (we_send)
		add_number(words, o->modify_window_given, o->modify_window < 0 ? "-@" : "--modify-window=", o->modify_window);
	add_number(words, o->checksum_seed, "--checksum-seed=", o->checksum_seed);
	if (we_send) {
		if (o->has_partial_dir)
			add_path(words, "--partial-dir", o->partial_dir);
		add_flag(words, o->delay_updates, "--delay-updates");
		add_flag(words, o->partial && !o->has_partial_dir && !o->delay_updates && !o->inplace, "--partial");
	}
	add_flag(words, o->ignore_errors, "--ignore-errors");
	add_flag(words, o->copy_unsafe_links, "--copy-unsafe-links");
	add_flag(words, o->safe_links, "--safe-links");
	add_flag(words, o->numeric_ids, "--numeric-ids");
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
	if (list.length)
		add_text(words, "--info", strbuf_text(&list));
	strbuf_free(&list);
	if (o->append) {
		add_flag(words, true, "--append");
		add_flag(words, o->append > 1, "--append");
	} else if (o->inplace) {
		args_append(words, "--inplace");
		add_flag(words, we_send && o->sparse && o->whole_file == 0, "--no-W");
	}
	/* A list of ours goes to a sending server over the connection; one of the server's is named to it. */
	bool given = o->files_from && (o->files_from_remote || !we_send);

	if (given && o->files_from_remote) {
		add_path(words, "--files-from", o->files_from_path);
		add_flag(words, o->from0, "--from0");
	} else if (given) {
		args_append(words, "--files-from=-");
		args_append(words, "--from0");
	}
	add_flag(words, given && !o->relative, "--no-relative");
	add_flag(words, o->relative && !o->implied_dirs && (!we_send || !caps->omits_parents), "--no-implied-dirs");
	add_flag(words, we_send && o->write_devices, "--write-devices");
	if (o->remove_source_files)
		args_append(words, o->remove_sent_files ? "--remove-sent-files" : "--remove-source-files");
	add_flag(words, !we_send && o->copy_devices, "--copy-devices");
	add_flag(words, we_send && o->preallocate, "--preallocate");
	add_flag(words, o->open_noatime && o->atimes <= 1, "--open-noatime");
	add_flag(words, we_send && o->mkpath, "--mkpath");
}

void options_server_words(const struct options *options, bool we_send, int protocol, struct args *words)
{
	const struct session_caps caps = session_caps_of(protocol);
	const char *comma = options->iconv ? strchr(options->iconv, ',') : NULL;

	args_append(words, "--server");
	add_flag(words, !we_send, "--sender");
	add_cluster(options, we_send, &caps, words);
	/* LOCAL,REMOTE: a server gets its own half. */
	add_text(words, "--iconv", comma ? comma + 1 : options->iconv);
	add_general(options, we_send, words);
	if (we_send) {
		static const char *const whens[] = {
			[DELETE_BEFORE] = "--delete-before",
			[DELETE_DURING] = "--delete-during",
			[DELETE_DELAY] = "--delete-delay",
			[DELETE_AFTER] = "--delete-after",
		};

		add_number(words, options->max_delete >= 0, "--max-delete=", options->max_delete ? options->max_delete : -1);
		add_number(words, options->min_size >= 0, "--min-size=", options->min_size);
		add_number(words, options->max_size >= 0, "--max-size=", options->max_size);
		if (options->delete_when == DELETE_DEFAULT)
			add_flag(words, !options->delete_excluded, "--delete");
		else if (options->delete_when != DELETE_NEVER)
			args_append(words, whens[options->delete_when]);
		add_flag(words, options->delete_excluded, "--delete-excluded");
		add_flag(words, options->force, "--force");
		add_flag(words, options->only_write_batch, "--only-write-batch=X");
		add_flag(words, options->super == SUPER_YES, "--super");
		add_flag(words, options->size_only, "--size-only");
		add_flag(words, options->stats, "--stats");
	}
	add_middle(options, we_send, words);
	if (we_send) {
		char *kind;

		/* A server takes these for -o and -g, and below protocol 30 it would wait for the names of ids that are not
		 * sent. */
		add_text(words, "--usermap", options->owner || options->acls ? options->usermap : NULL);
		add_text(words, "--groupmap", options->group || options->acls ? options->groupmap : NULL);
		add_flag(words, options->ignore_existing, "--ignore-existing");
		add_flag(words, options->existing, "--existing");
		add_path(words, "--temp-dir", options->temp_dir);
		add_flag(words, options->fsync, "--fsync");
		kind = xasprintf("--%s", options->alt_dest_kind ? options->alt_dest_kind : "");
		for (size_t i = 0; i < options->alt_dest_dirs.count; i++)
			add_path(words, kind, options->alt_dest_dirs.items[i]);
		free(kind);
	}
	add_last(options, we_send, &caps, words);
	for (size_t i = 0; i < options->remote_options.count; i++)
		args_append(words, options->remote_options.items[i]);
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
