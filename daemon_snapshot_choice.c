/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whether one client is served from its module's attr snapshot, and what the log says about it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon_session.h"
#include "daemon_snapshots.h"
#include "daemon_talk.h"
#include "lib/log.h"

#define MINUTE 60
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

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

static bool is_of_root(const struct attr_snapshot_facts *facts, int root_fd)
{
	struct fs_stat st;

	if (root_fd < 0 || (!facts->root_dev && !facts->root_ino))
		return true;
	return fs_stat_at_fd(root_fd, &st) == 0 && st.dev == facts->root_dev && st.ino == facts->root_ino;
}

enum snapshot_news snapshot_judge(const struct attr_snapshot *snapshot, int max_age, int root_fd, int64_t now,
				  struct strbuf *why)
{
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);
	int64_t age = age_of(snapshot, now);

	if (!is_of_root(facts, root_fd)) {
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

/* What the listener knows; else this process looks for itself. `opened_why` holds the text of what was found here. */
static void find(struct daemon_session *session, const char *path, struct snapshot_finding *finding, struct strbuf *opened_why)
{
	if (session->snapshots && snapshots_find(session->snapshots, session->module->name, path, finding))
		return;
	*finding = (struct snapshot_finding){ .why = "" };
	if (*path != '/')
		strbuf_addf(opened_why, "\"%s\" is not an absolute path", path);
	else if (!(finding->snapshot = attr_snapshot_open(path, opened_why)) && !opened_why->length)
		strbuf_add_string(opened_why, strerror(errno));
	finding->why = strbuf_text(opened_why);
}

static void tell_of_use(const struct daemon_session *session, const struct snapshot_finding *finding)
{
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(finding->snapshot);
	struct strbuf text = STRBUF_INIT;

	if (!snapshot_is_news(finding, SNAPSHOT_IN_USE))
		return;
	if (*finding->why) {
		add_age(&text, age_of(finding->snapshot, time(NULL)));
		log_warning("module %s: the new attr snapshot cannot be used: %s; generation %" PRIu64 ", made %s ago, "
			    "stays in use", session->module->name, finding->why, facts->generation, strbuf_text(&text));
	} else {
		snapshot_summary(finding->snapshot, time(NULL), &text);
		log_msg(L_LOG, "module %s: attr snapshot %s", session->module->name, strbuf_text(&text));
	}
	strbuf_free(&text);
}

static void fall_back(struct daemon_session *session, const struct snapshot_finding *finding, enum snapshot_news news,
		      const char *why)
{
	bool refuses = session->module->attr_snapshot_fallback == SNAPSHOT_FALLBACK_REFUSE;

	if (snapshot_is_news(finding, news))
		log_warning("module %s: attr snapshot cannot be used: %s; %s", session->module->name, why,
			    refuses ? "clients are refused" : "the tree itself is listed");
	if (refuses)
		session_refuse(session, "the file list of %s is not available -- try again later", session->module->name);
}

static void choose(struct daemon_session *session, const struct snapshot_finding *finding)
{
	struct strbuf why = STRBUF_INIT;
	enum snapshot_news verdict = SNAPSHOT_UNUSABLE;

	if (finding->snapshot)
		verdict = snapshot_judge(finding->snapshot, session->module->attr_snapshot_max_age,
					 session->source.attr_root.fd, time(NULL), &why);
	else
		strbuf_add_string(&why, finding->why);
	if (verdict == SNAPSHOT_IN_USE) {
		session->source.kind = ATTRS_SNAPSHOT;
		session->source.snapshot = finding->snapshot;
		tell_of_use(session, finding);
	} else {
		fall_back(session, finding, verdict, strbuf_text(&why));
	}
	strbuf_free(&why);
}

void snapshot_choose(struct daemon_session *session)
{
	char *path = config_text(session->module->attr_snapshot);
	struct strbuf opened_why = STRBUF_INIT;
	struct snapshot_finding finding;

	if (*path) {
		find(session, path, &finding, &opened_why);
		choose(session, &finding);
	}
	/* Nothing of other modules in a process that a client talks to. */
	if (session->snapshots)
		snapshots_drop_others(session->snapshots, session->source.snapshot);
	strbuf_free(&opened_why);
	free(path);
}
