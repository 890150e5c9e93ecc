/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The listener's snapshots: which files the configuration names, a checked mapping of each, and who is served from it. */
#include "daemon/snapshots.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "daemon/talk.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/log.h"
#include "lib/vec.h"
#include "loadparm/place.h"

#define MODULE_NAME_VARIABLE "RSYNC_MODULE_NAME"
#define MINUTE 60
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define NEWS_BITS 8       /* of a word of `logged`; the rest is the serial that they belong to */
#define SETTLED_SECONDS 2 /* a file that changed within the last clock tick could change again without a trace */

/* A file or directory of the configuration. */
struct watched {
	bool settled;
	struct snapshot_identity identity;
};

/* A path that modules name. */
struct snapshot_file {
	char *path;
	struct attr_snapshot *snapshot; /* the last good one */
	struct snapshot_identity seen;  /* what was checked last */
	bool checked, missing;
	struct strbuf why;
	uint64_t serial;
	bool wanted;                    /* while the configuration is read */
};

struct snapshot_module {
	const struct module *module;
	size_t file;                    /* index */
};

struct snapshots {
	const struct options *options;
	struct config *config;          /* as it was last seen; NULL: not yet */
	VEC(struct watched) watched;    /* its files, in their order */
	VEC(struct snapshot_file *) files;
	VEC(struct snapshot_module) modules;
	_Atomic uint64_t *logged;         /* one for each module, shared with server processes */
	size_t logged_count;
	uint64_t serial;
};

struct snapshots *snapshots_new(const struct options *options)
{
	struct snapshots *snapshots = xcalloc(1, sizeof *snapshots);

	snapshots->options = options;
	return snapshots;
}

/* --- what a snapshot is worth --- */

/* A clock that was set back does not make a snapshot of the future older than it is. */
static int64_t age_of(const struct attr_snapshot *snapshot, int64_t now)
{
	int64_t made = attr_snapshot_facts(snapshot)->made;

	return made < now ? now - made : 0;
}

static void add_age(struct strbuf *out, int64_t seconds)
{
	if (seconds < 2 * MINUTE)
		strbuf_addf(out, "%" PRId64 " s", seconds);
	else if (seconds < 2 * HOUR)
		strbuf_addf(out, "%" PRId64 " min", seconds / MINUTE);
	else if (seconds < 2 * DAY)
		strbuf_addf(out, "%" PRId64 " h", seconds / HOUR);
	else
		strbuf_addf(out, "%" PRId64 " days", seconds / DAY);
}

void snapshot_summary(const struct attr_snapshot *snapshot, int64_t now, struct strbuf *out)
{
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);

	strbuf_addf(out, "generation %" PRIu64 ", %" PRIu64 " entries, made ", facts->generation, facts->entry_count);
	add_age(out, age_of(snapshot, now));
	strbuf_add_string(out, " ago");
}

enum snapshot_news snapshot_judge(const struct attr_snapshot *snapshot, int max_age, int root_fd, int64_t now,
				  struct strbuf *why)
{
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);
	int64_t age = age_of(snapshot, now);
	struct fs_stat st;

	if (root_fd >= 0 && (facts->root_dev || facts->root_ino)
	    && (fs_stat_at_fd(root_fd, &st) != 0 || st.dev != facts->root_dev || st.ino != facts->root_ino)) {
		strbuf_addf(why, "generation %" PRIu64 " was made of another directory, %s", facts->generation,
			    facts->root_path);
		return SNAPSHOT_FOREIGN;
	}
	if (max_age && age > max_age) {
		strbuf_addf(why, "generation %" PRIu64 " was made ", facts->generation);
		add_age(why, age);
		strbuf_addf(why, " ago, more than the max age of %d s", max_age);
		return SNAPSHOT_TOO_OLD;
	}
	return SNAPSHOT_IN_USE;
}

/* --- one file --- */

/* The process is short of something; the file may be all right. */
static bool is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EINTR;
}

static void drop_mapping(struct snapshot_file *file)
{
	attr_snapshot_close(file->snapshot);
	file->snapshot = NULL;
}

static void note_trouble(struct snapshots *snapshots, struct snapshot_file *file, const char *why)
{
	strbuf_reset(&file->why);
	strbuf_add_string(&file->why, why);
	file->serial = ++snapshots->serial;
}

static void refresh_file(struct snapshots *snapshots, struct snapshot_file *file)
{
	const struct attr_snapshot_facts *last = file->snapshot ? attr_snapshot_facts(file->snapshot) : NULL, *facts;
	struct strbuf why = STRBUF_INIT;
	struct snapshot_identity now;
	struct attr_snapshot *next;
	int error;

	if (snapshot_identity_read(file->path, &now) < 0) {
		error = errno;
		if (is_shortage(error) && file->serial)
			return;
		strbuf_addf(&why, "it cannot be opened: %s", strerror(error));
		file->checked = false;
		file->missing = error == ENOENT;
		if (file->snapshot || strcmp(strbuf_text(&file->why), strbuf_text(&why)) != 0) {
			drop_mapping(file);
			note_trouble(snapshots, file, strbuf_text(&why));
		}
		strbuf_free(&why);
		return;
	}
	if (file->checked && snapshot_identity_equal(&now, &file->seen))
		return;
	next = attr_snapshot_open(file->path, &why);
	error = errno;
	file->missing = false;
	if (next) {
		facts = attr_snapshot_facts(next);
		if (!last || file->why.length || last->generation != facts->generation || last->made != facts->made
		    || last->made_nsec != facts->made_nsec)
			file->serial = ++snapshots->serial;
		drop_mapping(file);
		file->snapshot = next;
		file->seen = facts->identity;
		file->checked = true;
		strbuf_reset(&file->why);
	} else {
		const char *text = why.length ? strbuf_text(&why) : strerror(error);

		/* A mapped file that was written to in place is no longer what was checked. */
		if (last && last->identity.dev == now.dev && last->identity.ino == now.ino)
			drop_mapping(file);
		file->seen = now;
		file->checked = !is_shortage(error);
		if (strcmp(strbuf_text(&file->why), text) != 0 || file->checked)
			note_trouble(snapshots, file, text);
	}
	strbuf_free(&why);
}

/* --- the configuration --- */

/*
 * The file that a module names, malloc'ed; NULL if that cannot be known before a client is there. The module's own name is
 * the only one of the variables of a connection that can be: "attr snapshot = /srv/%RSYNC_MODULE_NAME%.snap".
 */
static char *path_of(const struct module *module, const char *value)
{
	const char *before = getenv(MODULE_NAME_VARIABLE), *at = value;
	char *saved = before ? xstrdup(before) : NULL;
	struct strbuf path = STRBUF_INIT;
	bool ok;

	for (; (at = strstr(at, "%RSYNC_")); at++)
		if (strncmp(at + 1, MODULE_NAME_VARIABLE "%", sizeof MODULE_NAME_VARIABLE) != 0)
			break;
	if (at || !*value) {
		free(saved);
		return NULL;
	}
	setenv(MODULE_NAME_VARIABLE, module->name, 1);
	ok = config_expand(value, &path);
	if (saved)
		setenv(MODULE_NAME_VARIABLE, saved, 1);
	else
		unsetenv(MODULE_NAME_VARIABLE);
	free(saved);
	if (ok && *strbuf_text(&path) == '/')
		return strbuf_detach(&path);
	strbuf_free(&path);
	return NULL;
}

static struct snapshot_file *find_file(const struct snapshots *snapshots, const char *path, size_t *index)
{
	for (size_t i = 0; i < snapshots->files.count; i++)
		if (!strcmp(snapshots->files.items[i]->path, path)) {
			*index = i;
			return snapshots->files.items[i];
		}
	return NULL;
}

static _Atomic uint64_t *find_logged(const struct snapshots *snapshots, const char *module, const char *path)
{
	for (size_t i = 0; i < snapshots->modules.count && i < snapshots->logged_count; i++) {
		const struct snapshot_module *known = &snapshots->modules.items[i];

		if (!strcmp(known->module->name, module) && !strcmp(snapshots->files.items[known->file]->path, path))
			return &snapshots->logged[i];
	}
	return NULL;
}

static void take_modules(struct snapshots *snapshots, struct config *config)
{
	const struct snapshots old = *snapshots;
	void *shared;
	size_t size;

	snapshots->config = config;
	memset(&snapshots->modules, 0, sizeof snapshots->modules);
	for (size_t i = 0; i < snapshots->files.count; i++)
		snapshots->files.items[i]->wanted = false;
	for (size_t i = 0; i < config->modules.count; i++) {
		const struct module *module = &config->modules.items[i];
		char *path = module->disabled ? NULL : path_of(module, module->attr_snapshot);

		struct snapshot_module item = { .module = module };
		struct snapshot_file *file;

		if (!path)
			continue;
		file = find_file(snapshots, path, &item.file);
		if (!file) {
			file = xcalloc(1, sizeof *file);
			file->path = xstrdup(path);
			item.file = snapshots->files.count;
			vec_push(&snapshots->files, file);
		}
		file->wanted = true;
		vec_push(&snapshots->modules, item);
		free(path);
	}
	/* Files keep their indices while modules refer to them; what nobody names any more only loses its mapping. */
	for (size_t i = 0; i < snapshots->files.count; i++) {
		struct snapshot_file *file = snapshots->files.items[i];

		if (file->wanted)
			continue;
		drop_mapping(file);
		strbuf_reset(&file->why);
		file->checked = false;
		file->serial = 0;
	}
	/* The old list of modules, with what has been logged of them, makes room for the new one. */
	size = snapshots->modules.count * sizeof *snapshots->logged;
	shared = size ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
	/* Without this memory every process logs for itself. */
	snapshots->logged = shared == MAP_FAILED ? NULL : shared;
	snapshots->logged_count = shared == MAP_FAILED ? 0 : snapshots->modules.count;
	for (size_t i = 0; i < snapshots->logged_count; i++) {
		const struct snapshot_module *module = &snapshots->modules.items[i];
		_Atomic uint64_t *before = find_logged(&old, module->module->name, snapshots->files.items[module->file]->path);

		atomic_store(&snapshots->logged[i], before ? atomic_load(before) : 0);
	}
	free(old.modules.items);
	if (old.logged)
		munmap((void *)old.logged, old.logged_count * sizeof *old.logged);
	config_free(old.config);
}

static bool configuration_has_changed(const struct snapshots *snapshots)
{
	for (size_t i = 0; i < snapshots->watched.count; i++) {
		const struct watched *item = &snapshots->watched.items[i];
		struct snapshot_identity now;

		if (!item->settled || snapshot_identity_read(snapshots->config->files.items[i], &now) < 0
		    || !snapshot_identity_equal(&now, &item->identity))
			return true;
	}
	return snapshots->watched.count == 0;
}

static void refresh_modules(struct snapshots *snapshots)
{
	const struct options *options = snapshots->options;
	struct config_problems problems = CONFIG_PROBLEMS_INIT;
	struct config *config = NULL;
	int64_t now;
	int fd = fs_operator_open(options->config_file, O_PATH, 0);
	struct fs_stat st;

	/* Reading anything but a regular file could take for ever. */
	if (fd >= 0 && fs_stat_at_fd(fd, &st) == 0 && S_ISREG(st.mode))
		config = config_load(options->config_file, options->dparams.items, options->dparams.count, CONFIG_SESSION,
				     &problems);
	fs_close(fd);
	config_problems_free(&problems);
	if (!config)
		return;
	now = time(NULL);
	snapshots->watched.count = 0;
	for (size_t i = 0; i < config->files.count; i++) {
		struct watched item = { .settled = false };

		item.settled = snapshot_identity_read(config->files.items[i], &item.identity) == 0
			       && item.identity.ctime < now - SETTLED_SECONDS;
		vec_push(&snapshots->watched, item);
	}
	take_modules(snapshots, config);
}

void snapshots_refresh(struct snapshots *snapshots)
{
	if (configuration_has_changed(snapshots))
		refresh_modules(snapshots);
	for (size_t i = 0; i < snapshots->files.count; i++)
		if (snapshots->files.items[i]->wanted)
			refresh_file(snapshots, snapshots->files.items[i]);
}

/* --- what is known --- */

bool snapshots_find(const struct snapshots *snapshots, const char *module, const char *path, struct snapshot_finding *finding)
{
	size_t index;
	const struct snapshot_file *file = find_file(snapshots, path, &index);

	if (!file || !file->serial)
		return false;
	*finding = (struct snapshot_finding){
		.snapshot = file->snapshot, .why = strbuf_text(&file->why), .missing = file->missing, .serial = file->serial,
		.logged = find_logged(snapshots, module, path),
	};
	return true;
}

bool snapshots_knows_module(const struct snapshots *snapshots, const char *module)
{
	return snapshots->config && config_find_module(snapshots->config, module);
}

bool snapshots_state(const struct snapshots *snapshots, size_t i, int64_t now, struct snapshot_state *state)
{
	const struct attr_snapshot *snapshot;
	const struct module *module;
	struct strbuf why = STRBUF_INIT;

	if (i >= snapshots->modules.count)
		return false;
	module = snapshots->modules.items[i].module;
	snapshot = snapshots->files.items[snapshots->modules.items[i].file]->snapshot;
	*state = (struct snapshot_state){ .module = module->name };
	if (snapshot) {
		state->facts = attr_snapshot_facts(snapshot);
		state->usable = snapshot_judge(snapshot, module->attr_snapshot_max_age, -1, now, &why) == SNAPSHOT_IN_USE;
	}
	strbuf_free(&why);
	return true;
}

bool snapshot_is_news(const struct snapshot_finding *finding, enum snapshot_news news)
{
	uint64_t before, after;

	if (!finding->logged)
		return true;
	before = atomic_load(finding->logged);
	do {
		if (before >> NEWS_BITS > finding->serial)
			return false; /* another process has logged a later state already */
		after = (before >> NEWS_BITS == finding->serial ? before : finding->serial << NEWS_BITS) | (uint64_t)news;
		if (after == before)
			return false;
	} while (!atomic_compare_exchange_weak(finding->logged, &before, after));
	return true;
}

/* --- for a check of the configuration --- */

static void report(const struct config *config, const struct module *module, const char *why, bool may_heal,
		   struct config_problems *problems)
{
	const struct config_place *place = config_place_of(config, module->attr_snapshot);
	/* A problem that the next refresh removes is no fault of the file, unless clients are refused until then. */
	bool harmless = may_heal && module->attr_snapshot_fallback == SNAPSHOT_FALLBACK_WALK;

	config_problem_add(problems, place->file, place->line, harmless ? CONFIG_REMARK : CONFIG_UNSERVED,
			   "attr snapshot of module \"%s\": %s", module->name, why);
}

static void report_module(const struct snapshot_finding *finding, const struct config *config, const struct module *module,
			  const char *snapshot, struct config_problems *problems)
{
	char *path = path_of(module, module->path), *daemon_root = config_text(config->globals.daemon_chroot), *whole;
	struct strbuf why = STRBUF_INIT;
	struct module_place place;
	int root_fd;

	strbuf_add_string(&why, finding->why);
	/* The file is not there: perhaps it is where the operator took the path to lead. */
	if (finding->missing && path) {
		place_split(&place, path, place_divides(module, path));
		place_mention_snapshot(&place, daemon_root, snapshot, &why);
		place_free(&place);
	}
	if (*finding->why)
		report(config, module, strbuf_text(&why), finding->missing, problems);
	strbuf_reset(&why);
	if (finding->snapshot) {
		whole = path ? place_below(daemon_root, path) : NULL;
		root_fd = whole ? fs_operator_open(whole, O_PATH | O_DIRECTORY, 0) : -1;
		if (snapshot_judge(finding->snapshot, module->attr_snapshot_max_age, root_fd, time(NULL), &why)
		    != SNAPSHOT_IN_USE)
			report(config, module, strbuf_text(&why), true, problems);
		fs_close(root_fd);
		free(whole);
	}
	strbuf_free(&why);
	free(daemon_root);
	free(path);
}

void snapshots_report(const struct snapshots *snapshots, const struct config *config, struct config_problems *problems)
{
	struct snapshot_finding finding;

	for (size_t i = 0; i < config->modules.count; i++) {
		const struct module *module = &config->modules.items[i];
		char *path = path_of(module, module->attr_snapshot);

		if (path && snapshots_find(snapshots, module->name, path, &finding))
			report_module(&finding, config, module, path, problems);
		free(path);
	}
}

/* --- for one session --- */

void snapshot_choose(struct daemon_session *session)
{
	const struct module *module = session->module;
	const bool refuses = module->attr_snapshot_fallback == SNAPSHOT_FALLBACK_REFUSE;
	char *path = config_text(module->attr_snapshot);
	struct strbuf opened_why = STRBUF_INIT, why = STRBUF_INIT;
	enum snapshot_news verdict = SNAPSHOT_UNUSABLE;
	struct snapshot_finding finding;
	bool is_news;

	if (*path) {
		if (!session->snapshots || !snapshots_find(session->snapshots, module->name, path, &finding)) {
			finding = (struct snapshot_finding){ .why = "" };
			if (*path != '/')
				strbuf_addf(&opened_why, "\"%s\" is not an absolute path", path);
			else if (!(finding.snapshot = attr_snapshot_open(path, &opened_why)) && !opened_why.length)
				strbuf_add_string(&opened_why, strerror(errno));
			finding.why = strbuf_text(&opened_why);
		}
		if (finding.snapshot)
			verdict = snapshot_judge(finding.snapshot, module->attr_snapshot_max_age, session->source.attr_root.fd,
						 time(NULL), &why);
		else
			strbuf_add_string(&why, finding.why);
		is_news = snapshot_is_news(&finding, verdict);
		if (verdict != SNAPSHOT_IN_USE) {
			if (is_news)
				log_warning("module %s: attr snapshot cannot be used: %s; %s", module->name, strbuf_text(&why),
					    refuses ? "clients are refused" : "the tree itself is listed");
			if (refuses)
				session_refuse(session, "the file list of %s is not available -- try again later",
					       module->name);
		} else {
			session->source.kind = ATTRS_SNAPSHOT;
			session->source.snapshot = finding.snapshot;
			if (is_news && *finding.why) {
				add_age(&why, age_of(finding.snapshot, time(NULL)));
				log_warning("module %s: the new attr snapshot cannot be used: %s; generation %" PRIu64
					    ", made %s ago, stays in use",
					    module->name, finding.why, attr_snapshot_facts(finding.snapshot)->generation,
					    strbuf_text(&why));
			} else if (is_news) {
				snapshot_summary(finding.snapshot, time(NULL), &why);
				log_msg(L_LOG, "module %s: attr snapshot %s", module->name, strbuf_text(&why));
			}
		}
	}
	/* Nothing of other modules in a process that a client talks to. */
	for (size_t i = 0; session->snapshots && i < session->snapshots->files.count; i++)
		if (session->snapshots->files.items[i]->snapshot != session->source.snapshot)
			drop_mapping(session->snapshots->files.items[i]);
	strbuf_free(&opened_why);
	strbuf_free(&why);
	free(path);
}
