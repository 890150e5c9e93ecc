/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Making and refreshing an attr snapshot: from the operands to the report, or a signal, and the exit code. */
#include "snapshot/make.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attrs/image.h"
#include "attrs/image_scan.h"
#include "attrs/snapshot.h"
#include "attrs/snapshot_write.h"
#include "delta/digest.h"
#include "filter/filter.h"
#include "fs/chmod.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/temp.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/strbuf.h"
#include "lib/vec.h"
#include "options.h"
#include "snapshot/digest.h"
#include "ui/number.h"
#include "wire/session.h"

#define THREADS_LEAST 2
#define THREADS_MOST 8
#define LIST_LIMIT (1u << 30)
#define WORTH_RESERVING (1 << 20) /* so many bytes take longer to get than a thread to start */
#define PROGRESS_NANOSECONDS 250000000
#define RULE_FILE_LIMIT (64u << 20)
#define SHOWN_RULES_LIMIT 4000 /* bytes of the options' text: the rest is in the sum */

/* --- filter rules: one list for each thread, from one reading of each file --- */

struct rule_file {
	char *path;
	struct strbuf text;
};

/* All the lists are the same. */
struct make_rules {
	const struct fs_root *root;
	bool reading_line;            /* the command line's files; later it is merge files, which are not kept */
	VEC(struct rule_file) files;
	int threads;
	struct filter_list *lists[IMAGE_THREADS_MAX];
};

/* A pipe gives its content only once, and every thread wants it. */
static const struct rule_file *read_once(struct make_rules *rules, const char *path)
{
	struct rule_file file = { .text = STRBUF_INIT };

	for (size_t i = 0; i < rules->files.count; i++)
		if (!strcmp(rules->files.items[i].path, path))
			return &rules->files.items[i];
	int result = !strcmp(path, "-") ? fs_read_all(STDIN_FILENO, RULE_FILE_LIMIT, &file.text)
					: fs_operator_read(path, 0, RULE_FILE_LIMIT, &file.text);

	if (result < 0) {
		strbuf_free(&file.text);
		return NULL;
	}
	file.path = xstrdup(path);
	vec_push(&rules->files, file);
	return &rules->files.items[rules->files.count - 1];
}

static int open_rules(void *rules_void, enum filter_place place, const char *path)
{
	struct make_rules *rules = rules_void;

	if (place == FILTER_AT_BASE)
		return fs_open(rules->root, path, O_RDONLY | FS_FOLLOW, 0);
	if (!rules->reading_line)
		return fs_operator_open(path, O_RDONLY | O_NONBLOCK, 0);
	const struct rule_file *file = read_once(rules, path);
	int fd = file ? memfd_create("rules", MFD_CLOEXEC) : -1;

	if (fd < 0)
		return -1;
	if (fs_write_all(fd, strbuf_text(&file->text), file->text.length) < 0 || lseek(fd, 0, SEEK_SET) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void explain(void *rules_void, const char *text)
{
	(void)rules_void;
	log_info("[sender] %s", text);
}

/*
 * Read the rules of the command line. base: the absolute name of the tree, for rules with absolute names. Files that are
 * named there (or are standard input) are read once. Errors end the process, as in a listing.
 */
static struct make_rules *make_rules_new(const struct options *options, const struct fs_root *root, const char *base,
					 int threads)
{
	struct make_rules *rules = xcalloc(1, sizeof *rules);
	struct filter_setup setup = {
		.side = FILTER_SENDER, .delete_excluded = options->delete_excluded, .from0 = options->from0,
		.cvs_exclude = options->cvs_exclude, .open_file = open_rules, .context = rules,
		.explain = options->levels.debug[DEBUG_FILTER] ? explain : NULL,
	};

	rules->root = root;
	rules->threads = threads;
	rules->reading_line = true;
	for (int i = 0; i < threads; i++) {
		rules->lists[i] = filter_new(&setup);
		options_add_filters(options, rules->lists[i], true);
		filter_set_base(rules->lists[i], base);
		filter_set_dir(rules->lists[i], "");
	}
	rules->reading_line = false;
	return rules;
}

/* The rules of a thread; NULL: there are none, for no thread. rules: NULL is allowed, here and below. */
static struct filter_list *make_rules_list(struct make_rules *rules, int thread)
{
	return !rules || filter_is_empty(rules->lists[thread]) ? NULL : rules->lists[thread];
}

/* --- the options' text --- */

static void add_word(struct strbuf *out, const char *word)
{
	if (out->length)
		strbuf_add_char(out, ' ');
	strbuf_add_string(out, word);
}

/* Rules as the command line could say them; of a file only that there is one: its name may be that of a pipe. */
static void add_rules(struct strbuf *out, const struct options *options)
{
	static const char *const names[] = {
		[FILTER_NEW_STYLE] = "filter", [FILTER_OLD_EXCLUDE] = "exclude", [FILTER_OLD_INCLUDE] = "include",
	};

	for (size_t i = 0; i < options->filters.count; i++) {
		const struct filter_option *filter = &options->filters.items[i];

		switch (filter->kind) {
		case FOPT_RULE:
		case FOPT_WORDS:
			add_word(out, "--");
			strbuf_addf(out, "%s=%s", names[filter->style], filter->text);
			break;
		case FOPT_FILE:
			add_word(out, "--");
			strbuf_addf(out, "%s-from", names[filter->style]);
			break;
		case FOPT_SHORTCUT_F:
			add_word(out, "-F");
			break;
		case FOPT_CVS:
			add_word(out, "-C");
			break;
		}
	}
}

static void sum_text(struct file_digest *digest, const char *text, size_t length)
{
	uint64_t size = length;

	file_digest_update(digest, &size, sizeof size);
	file_digest_update(digest, text, length);
}

static void add_scan_words(struct strbuf *text, const struct options *options, bool from_files)
{
	const struct { bool used; const char *word; } words[] = {
		{ options->one_file_system == 1, "-x" },
		{ options->one_file_system > 1, "-xx" },
		{ options->copy_links, "-L" },
		{ options->copy_dirlinks, "-k" },
		{ options->copy_unsafe_links, "--copy-unsafe-links" },
		{ options->chmod != NULL, "--chmod" },
		{ options->from0 && from_files, "-0" },
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (words[i].used)
			add_word(text, words[i].word);
}

/*
 * What of the command line changes a list, for the snapshot's facts: two runs with equal texts make equal lists of equal trees,
 * as far as per-directory merge files are equal too. "" without any such option. For the caller to free.
 */
static char *make_rules_options(const struct options *options, const struct make_rules *rules)
{
	const char *cvs = getenv("CVSIGNORE");
	struct strbuf text = STRBUF_INIT;
	uint8_t bytes[DIGEST_MAX_LENGTH];
	uint64_t sum;

	if (options->atimes)
		add_word(&text, "-U");
	if (rules) {
		add_scan_words(&text, options, rules->files.count > 0);
		add_rules(&text, options);
	}
	if (!rules || (!options->chmod && !options->filters.count))
		return text.data ? strbuf_detach(&text) : xstrdup("");
	/* Everything that cannot be shown: contents of rule files, what --chmod does to each mode, long rules. */
	struct file_digest *digest = file_digest_new();

	file_digest_start_plain(digest, SUM_XXH3);
	sum_text(digest, strbuf_text(&text), text.length);
	for (size_t i = 0; i < rules->files.count; i++)
		sum_text(digest, strbuf_text(&rules->files.items[i].text), rules->files.items[i].text.length);
	if (options->cvs_exclude && cvs)
		sum_text(digest, cvs, strlen(cvs));
	for (unsigned mode = 0; options->chmod && mode < 2 * 010000; mode++) {
		mode_t type = mode & 010000 ? S_IFDIR : S_IFREG;
		uint32_t changed = chmod_apply(options->chmod, type | (mode & 07777));

		file_digest_update(digest, &changed, sizeof changed);
	}
	file_digest_finish(digest, bytes);
	file_digest_free(digest);
	memcpy(&sum, bytes, sizeof sum);
	if (text.length > SHOWN_RULES_LIMIT) {
		strbuf_truncate(&text, SHOWN_RULES_LIMIT);
		strbuf_add_string(&text, "...");
	}
	strbuf_addf(&text, " sum=%016" PRIx64, sum);
	return strbuf_detach(&text);
}

/* --- the run --- */

struct maker {
	const struct options *options;
	const struct image_known *known; /* after a run; NULL: nothing */
	bool after_run;                 /* of a destination: as it lies there; no filters, no --chmod, no links followed */
	struct attr_source source;
	struct fs_stat root_stat;
	char *shown;                    /* the tree as the operator named it, absolute */
	struct make_rules *rules;       /* NULL: none */
	struct scan_options scan_options[IMAGE_THREADS_MAX];
	struct image_scan scan;
	struct image *image;
	struct attr_snapshot *old;      /* what stands at the file's name; NULL: nothing that can be read */
	uint64_t reread, reused_digests, computed_digests, generation, size;
	int64_t began;                  /* by lib/clock.h */

	/* Shared with the threads. */
	_Atomic uint64_t done;
	atomic_bool stop;
	atomic_bool over;               /* the run, for the thread that waits for signals */

	/* Output. */
	struct log_sink below;
	bool line_open;                 /* a progress line waits for its end; guarded by the log */
	pthread_t watch;
	bool watches;
};

/* --- the progress line --- */

/* Everything that is logged goes through here, so that a message does not end up behind the count. */
static void emit(void *maker_void, enum log_kind kind, const char *text, size_t length)
{
	struct maker *maker = maker_void;
	bool is_progress = *text == '\r';

	if (maker->line_open && !is_progress)
		maker->below.emit(maker->below.context, L_CLIENT, "\n", 1);
	maker->line_open = is_progress;
	maker->below.emit(maker->below.context, kind, text, is_progress ? length - 1 : length);
}

static const char *format(const struct maker *maker, char *buf, uint64_t value)
{
	return number_format(buf, 64, (int64_t)value, maker->options->human_readable);
}

/* The line of --info=progress, if the options ask for it. */
static void show_progress(struct maker *maker)
{
	char number[64];

	if (maker->options->levels.info[INFO_PROGRESS] > 0 && !maker->options->quiet && !maker->after_run)
		log_msg(L_CLIENT, "\r%15s files...", format(maker, number, atomic_load(&maker->done)));
}

/* --- the thread that waits for signals --- */

static void fill_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

/* It ends with the first signal after the run, which make_watch_stop sends. */
static void *watch(void *maker_void)
{
	static const struct timespec interval = { 0, PROGRESS_NANOSECONDS };
	struct maker *maker = maker_void;
	sigset_t set;
	int number;

	fill_set(&set);
	for (;;) {
		number = sigtimedwait(&set, NULL, &interval);
		if (atomic_load(&maker->over))
			return NULL;
		if (number > 0) {
			atomic_store(&maker->stop, true);
			exit_with(EXIT_SIGNAL);
		}
		show_progress(maker);
	}
}

static void make_watch_stop(struct maker *maker)
{
	if (maker->watches) {
		atomic_store(&maker->over, true);
		pthread_kill(maker->watch, SIGHUP);
		pthread_join(maker->watch, NULL);
	}
	show_progress(maker);
	if (maker->line_open)
		log_msg(L_CLIENT, "%s", "");
	log_set_sink(maker->below);
}

/* --- the end --- */

static void log_statistics(const struct maker *maker)
{
	enum { FILES, DIRS, LINKS, DEVICES, SPECIALS, KINDS };
	static const char *const names[KINDS] = { "reg", "dir", "link", "dev", "special" };
	const struct image *image = maker->image;
	uint64_t counts[KINDS] = { [DIRS] = 1 }, bytes = 0, dirs = image->dirs.count;
	struct strbuf line = STRBUF_INIT;
	char a[64], b[64];

	for (size_t i = 0; i < dirs; i++) {
		const struct entries *entries = &image->dirs.items[i]->entries;

		for (uint32_t j = 0; j < entries->count; j++) {
			const struct entry *entry = &entries->items[j];

			counts[FILES] += entry_is_regular(entry);
			bytes += entry_is_regular(entry) ? entry->size : 0;
			counts[DIRS] += entry_is_dir(entry);
			counts[LINKS] += entry_is_symlink(entry);
			counts[DEVICES] += entry_is_device(entry);
			counts[SPECIALS] += entry_is_special(entry);
		}
	}
	for (int i = 0; i < KINDS; i++)
		if (counts[i])
			strbuf_addf(&line, "%s%s: %s", line.length ? ", " : "", names[i], format(maker, a, counts[i]));
	log_info("%s", "");
	log_info("Number of files: %s (%s)", format(maker, a, image_count(image)), strbuf_text(&line));
	log_info("Total file size: %s bytes", format(maker, a, bytes));
	log_info("Directories: %s read, %s taken over", format(maker, a, maker->reread),
		 format(maker, b, dirs > maker->reread ? dirs - maker->reread : 0));
	if (image->digests)
		log_info("Digests: %s computed, %s taken over", format(maker, a, maker->computed_digests),
			 format(maker, b, maker->reused_digests));
	log_info("Threads: %d", maker->scan.threads);
	if (!maker->options->dry_run)
		log_info("Snapshot size: %s bytes", format(maker, a, maker->size));
	log_info("Time: %.3f seconds", (double)(clock_nanoseconds() - maker->began) / 1e9);
	strbuf_free(&line);
}

/* --- the tree and the file --- */

static bool follows_links(const struct maker *maker)
{
	const struct options *options = maker->options;

	return !maker->after_run && (options->copy_links || options->copy_dirlinks || options->copy_unsafe_links);
}

/* Where the tree really is. The working directory is as before; no other thread goes by it. */
static char *physical_name(const struct maker *maker)
{
	struct fs_root here;
	char *name = NULL;

	if (maker->source.kind == ATTRS_ATTR_TREE && maker->source.content_root.fd < 0)
		return xstrdup("");
	if (fs_root_open(&here, ".") < 0)
		return xstrdup(maker->shown);
	if (fchdir(attr_source_real_root(&maker->source)->fd) == 0) {
		name = getcwd(NULL, 0);
		if (fchdir(here.fd) < 0)
			die(EXIT_FILEIO, "rsync: cannot return to the working directory: %s", strerror(errno));
	}
	fs_root_close(&here);
	return name ? name : xstrdup(maker->shown);
}

/* shown: the operand as an absolute name, symlinks and all: absolute filter rules go by it, and messages. */
static void open_root(struct maker *maker, struct fs_root *root, const char *tree)
{
	struct strbuf name = STRBUF_INIT;
	char *cwd = *tree == '/' ? NULL : getcwd(NULL, 0);

	strbuf_add_string(&name, cwd ? cwd : "");
	if (*tree == '/')
		strbuf_add_string(&name, tree);
	else if (strcmp(tree, ".") && strcmp(tree, "./"))
		strbuf_add_path(&name, tree);
	while (name.length > 1 && name.data[name.length - 1] == '/')
		strbuf_truncate(&name, name.length - 1);
	free(cwd);
	free(maker->shown);
	maker->shown = strbuf_detach(&name);
	maker->source.shown_prefix = maker->shown;
	if (fs_root_open(root, tree) < 0 || fs_stat_at_fd(root->fd, &maker->root_stat) < 0)
		die_errno(EXIT_FILESELECT, errno, "cannot make a snapshot of \"%s\"", maker->shown);
}

static void open_tree(struct maker *maker, const char *tree)
{
	maker->source.kind = ATTRS_LIVE;
	open_root(maker, &maker->source.attr_root, tree);
	maker->source.attr_root.trusting = follows_links(maker);
}

static void open_old(struct maker *maker)
{
	const char *file = maker->options->attr_snapshot;
	struct strbuf why = STRBUF_INIT;

	maker->generation = 1;
	maker->old = attr_snapshot_open(file, &why);
	if (maker->old)
		maker->generation = attr_snapshot_facts(maker->old)->generation + 1;
	else if (errno != ENOENT)
		log_warning("rsync: the old snapshot %s is of no use: %s", file, why.length ? strbuf_text(&why)
			    : strerror(errno));
	strbuf_free(&why);
}

static bool is_of_this_tree(const struct maker *maker)
{
	const struct attr_snapshot_facts *facts = maker->old ? attr_snapshot_facts(maker->old) : NULL;

	return facts && facts->root_dev == maker->root_stat.dev && facts->root_ino == maker->root_stat.ino;
}

/* --- scanning --- */

static bool is_excluded(void *list, const char *path, bool is_dir)
{
	return filter_excludes(list, path, is_dir);
}

static void enter(void *maker_void, int thread, const char *transfer_dir)
{
	struct maker *maker = maker_void;

	filter_set_dir(make_rules_list(maker->rules, thread), transfer_dir);
}

static void adjust(void *maker_void, struct entry *entry)
{
	struct maker *maker = maker_void;

	if (!entry_is_symlink(entry))
		entry->mode = (uint16_t)chmod_apply(maker->options->chmod, entry->mode);
}

/* The new snapshot will be about as large as the old one. Digests may take hours, that would be early. */
static void reserve(void *maker_void)
{
	struct maker *maker = maker_void;
	uint64_t bytes = attr_snapshot_facts(maker->old)->file_size;

	if (bytes >= WORTH_RESERVING && !maker->options->dry_run && !maker->image->digests)
		attr_snapshot_reserve(maker->image, maker->options->attr_snapshot, bytes);
}

static void set_up_scan(struct maker *maker)
{
	const struct options *options = maker->options;
	struct image_scan *scan = &maker->scan;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	scan->threads = processors < THREADS_LEAST ? THREADS_LEAST : processors > THREADS_MOST ? THREADS_MOST : (int)processors;
	if (!maker->after_run)
		maker->rules = make_rules_new(options, attr_source_real_root(&maker->source), maker->shown, scan->threads);
	for (int i = 0; i < scan->threads; i++) {
		struct filter_list *list = make_rules_list(maker->rules, i);

		scan->options[i] = &maker->scan_options[i];
		*scan->options[i] = (struct scan_options){ .atimes = options->atimes > 0 };
		if (maker->after_run)
			continue;
		*scan->options[i] = (struct scan_options){
			.atimes = options->atimes > 0, .copy_links = options->copy_links,
			.copy_dirlinks = options->copy_dirlinks, .copy_unsafe_links = options->copy_unsafe_links,
			.one_file_system = options->one_file_system,
			.log_copied_unsafe = options->levels.info[INFO_SYMSAFE] > 0,
			.log_mounts = options->levels.info[INFO_MOUNT] > 0,
			.excluded = list ? is_excluded : NULL, .context = list,
		};
	}
	scan->source = &maker->source;
	/* Only rules of merge files depend on where in the tree the scan is; and with them a refresh has to read more. */
	struct filter_list *list = make_rules_list(maker->rules, 0);

	scan->enter = list && filter_has_merges(list) ? enter : NULL;
	scan->looked = reserve;
	scan->adjust = options->chmod && !maker->after_run ? adjust : NULL;
	scan->context = maker;
	scan->done = &maker->done;
	scan->stop = &maker->stop;
}

static void set_up_image(struct maker *maker)
{
	struct image *image = maker->image = image_new();

	image->root_dev = maker->root_stat.dev;
	image->root_ino = maker->root_stat.ino;
	image->root_path = physical_name(maker);
	image->options = make_rules_options(maker->options, maker->rules);
	/* What stems from an attr tree says so: its inodes are not the real ones, so nothing of it can be kept by a refresh. */
	if (maker->source.kind == ATTRS_ATTR_TREE) {
		char *options = image->options;
		image->options = xasprintf("--attr-from-tree%s%s", *options ? " " : "", options);
		free(options);
	}
	image->followed_links = follows_links(maker);
	image->has_atimes = maker->options->atimes > 0;
	image->digests = maker->options->attr_digests;
}

/* Why the old snapshot is not a start; NULL: it is one. `dirs`: unchanged directories are to be believed. */
static const char *unfit(const struct maker *maker, bool dirs)
{
	const struct attr_snapshot_facts *facts;

	if (!maker->old)
		return "there is no old snapshot that can be read";
	facts = attr_snapshot_facts(maker->old);
	if (!is_of_this_tree(maker))
		return "the old snapshot is of another directory";
	if (strcmp(facts->options, maker->image->options) != 0)
		return "the old snapshot was made with other options";
	if (facts->io_error & IOERR_GENERAL)
		return "the old snapshot lacks what could not be read then";
	if (dirs && maker->options->atimes)
		return "access times change without a trace in directories";
	if (dirs && follows_links(maker))
		return "what symlinks point to changes without a trace in directories";
	return NULL;
}

/* --- the scan --- */

static void fill_image(struct maker *maker)
{
	const struct options *options = maker->options;
	struct attr_snapshot *old = is_of_this_tree(maker) ? maker->old : NULL;
	const char *how = options->attr_refresh;
	bool dirs = how && !strcmp(how, "dirs");
	const char *problem = how ? unfit(maker, dirs) : NULL;
	VEC(const char *) paths = VEC_INIT;
	struct strbuf text = STRBUF_INIT;
	int result;

	/* The paths to look at again, in the form of a --files-from list: lines end in LF, CR or NUL, with -0 only in NUL;
	 * comments are skipped in either case. */
	if (how && !dirs) {
		result = !strcmp(how, "-") ? fs_read_all(STDIN_FILENO, LIST_LIMIT, &text)
					   : fs_operator_read(how, 0, LIST_LIMIT, &text);
		if (result < 0)
			die_errno(EXIT_FILEIO, errno, "failed to open attr-refresh file %s", how);
	}
	for (size_t at = 0; at < text.length; at++) {
		char *path = text.data + at;

		at += options->from0 ? strlen(path) : strcspn(path, "\r\n");
		text.data[at] = '\0';
		if (*path && *path != '#' && *path != ';')
			vec_push(&paths, path);
	}
	if (problem && !options->quiet)
		log_info("full scan: %s", problem);
	if (!how || problem)
		result = image_scan_all(maker->image, &maker->scan, maker->known, &maker->reread);
	else if (dirs)
		result = image_refresh_dirs(maker->image, &maker->scan, maker->old, &maker->reread);
	else
		result = image_refresh_paths(maker->image, &maker->scan, maker->old, paths.items, paths.count, &maker->reread);
	vec_free(&paths);
	strbuf_free(&text);
	if (result == 0 && maker->image->digests)
		result = image_add_digests(maker->image, &maker->scan, old, &maker->reused_digests, &maker->computed_digests);
	if (result < 0 && errno == ECANCELED)
		exit_with(EXIT_SIGNAL);
	if (result < 0)
		die_errno(EXIT_FILESELECT, errno, "cannot make a snapshot of \"%s\"", maker->shown);
	/* Said already. Nothing is better than an empty list. */
	if (maker->image->dirs.items[0]->error)
		exit_with(EXIT_PARTIAL);
}

/* --- its parts --- */

static void clean_up(struct maker *maker)
{
	struct make_rules *rules = maker->rules;

	image_free(maker->image);
	attr_snapshot_close(maker->old);
	if (rules) {
		for (int i = 0; i < rules->threads; i++)
			filter_free(rules->lists[i]);
		for (size_t i = 0; i < rules->files.count; i++) {
			free(rules->files.items[i].path);
			strbuf_free(&rules->files.items[i].text);
		}
		vec_free(&rules->files);
		free(rules);
	}
	fs_root_close(&maker->source.attr_root);
	fs_root_close(&maker->source.content_root);
	free(maker->shown);
	free(maker);
	fflush(stdout);
}

/* From here on signals end the process, and a progress line is shown if the options ask for one. */
static struct maker *maker_new(const struct options *options, bool after_run)
{
	struct maker *maker = xcalloc(1, sizeof *maker);
	sigset_t set;

	maker->options = options;
	maker->after_run = after_run;
	maker->source.attr_root.fd = maker->source.content_root.fd = -1;
	maker->source.open_noatime = true; /* reading a whole mirror is no use of its files */
	maker->began = clock_nanoseconds();
	maker->below = log_set_sink((struct log_sink){ emit, maker });
	fill_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	maker->watches = pthread_create(&maker->watch, NULL, watch, maker) == 0;
	if (!maker->watches)
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return maker;
}

/* The image is complete. */
static int finish(struct maker *maker, const struct timespec *made)
{
	const struct options *options = maker->options;
	struct fs_ids *ids = options->dry_run || options->numeric_ids ? NULL : fs_ids_new(NULL, NULL);
	struct strbuf why = STRBUF_INIT;
	char a[64], b[64];

	maker->image->made = *made;
	if (!options->dry_run
	    && attr_snapshot_write(maker->image, options->attr_snapshot, maker->generation, ids, &maker->size, &why) < 0) {
		if (errno == ECANCELED)
			exit_with(EXIT_SIGNAL);
		die_errno(EXIT_FILEIO, errno, "%s: %s", options->attr_snapshot, strbuf_text(&why));
	}
	if (ids)
		fs_ids_free(ids);
	strbuf_free(&why);
	make_watch_stop(maker);
	if (!options->quiet && options->levels.info[INFO_MISC])
		log_info("%s %s: generation %" PRIu64 ", %s entries, %s directories read%s", options->dry_run ? "would write"
			 : "wrote", options->attr_snapshot, maker->generation, format(maker, a, image_count(maker->image)),
			 format(maker, b, maker->reread), options->dry_run ? " (DRY RUN)" : "");
	if (!options->quiet && options->levels.info[INFO_STATS] > 1 && !maker->after_run)
		log_statistics(maker);
	int io_error = maker->image->io_error;

	clean_up(maker);
	if (log_saw_xfer_error() || io_error & IOERR_GENERAL)
		return EXIT_PARTIAL;
	return io_error & IOERR_VANISHED ? EXIT_VANISHED : EXIT_OK;
}

/* Everything after the checks. */
static int run(struct maker *maker, const struct timespec *made)
{
	open_old(maker);
	set_up_scan(maker);
	set_up_image(maker);
	fill_image(maker);
	struct image *image = maker->image;

	/* The inodes of an attr tree would be taken for those of the real directories. */
	if (maker->source.kind == ATTRS_ATTR_TREE) {
		image->root_dev = maker->root_stat.dev;
		image->root_ino = maker->root_stat.ino;
		for (size_t i = 0; i < image->dirs.count; i++) {
			struct image_dir *dir = image->dirs.items[i];

			dir->ino = 0;
			dir->ctime = 0;
			dir->ctime_nsec = 0;
		}
	}
	return finish(maker, made);
}

static void set_up_process(void)
{
	log_set_role("sender");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	fs_temp_install();
}

int snapshot_make_main(struct options *options)
{
	const struct args *operands = &options->operands;
	const char *file = options->attr_snapshot;
	struct timespec made;
	char leaf[256];

	if (options->attr_mode == ATTR_MODE_FROM_TREE && options->atimes)
		die(EXIT_SYNTAX, "rsync: an attr tree does not keep the access times that --atimes (-U) asks for");
	set_up_process();
	struct maker *maker = maker_new(options, false);

	clock_gettime(CLOCK_REALTIME, &made);
	if (options->attr_mode == ATTR_MODE_FROM_TREE) {
		/* Without the real tree it is not known, and whatever the stat of the attr tree says is not its. */
		maker->source.kind = ATTRS_ATTR_TREE;
		if (operands->count > 1)
			open_root(maker, &maker->source.content_root, operands->items[1]);
		struct fs_stat real_stat = maker->root_stat;

		open_root(maker, &maker->source.attr_root, operands->items[0]);
		maker->root_stat = real_stat;
	} else {
		open_tree(maker, operands->items[0]);
	}
	/* A snapshot inside its own tree would change the directory that it has just described. */
	int fd = fs_operator_parent(file, 0, leaf);

	if (fd < 0)
		die_errno(EXIT_FILEIO, errno, "cannot write the snapshot %s", file);
	if (fs_is_inside(fd, maker->source.attr_root.fd)
	    || (maker->source.content_root.fd >= 0 && fs_is_inside(fd, maker->source.content_root.fd)))
		die(EXIT_SYNTAX, "rsync: the snapshot %s would lie inside the tree that it is of, %s", file, maker->shown);
	close(fd);
	return run(maker, &made);
}

struct image *snapshot_scan_tree(const struct options *options, const char *tree, unsigned digests)
{
	set_up_process();
	struct maker *maker = maker_new(options, false);

	open_tree(maker, tree);
	set_up_scan(maker);
	set_up_image(maker);
	maker->image->digests = digests;
	fill_image(maker);
	make_watch_stop(maker);
	struct image *image = maker->image;

	maker->image = NULL;
	clean_up(maker);
	return image;
}

int snapshot_make_after_run(const struct options *options, const char *tree, const struct image_known *known,
			    const struct timespec *made)
{
	struct maker *maker = maker_new(options, true);

	maker->known = known;
	open_tree(maker, tree);
	return run(maker, made);
}

int snapshot_make_of_list(const struct options *options, const char *source, struct image *image, const struct timespec *made)
{
	struct maker *maker = maker_new(options, true);
	struct strbuf text = STRBUF_INIT;

	maker->image = image;
	open_old(maker);
	image->root_path = xstrdup(source);
	/* Only to be displayed: no refresh starts with a list that came from elsewhere. */
	if (options->atimes)
		add_word(&text, "-U");
	add_scan_words(&text, options, false);
	add_rules(&text, options);
	image->options = text.data ? strbuf_detach(&text) : xstrdup("");
	image->has_atimes = options->atimes > 0;
	return finish(maker, made);
}
