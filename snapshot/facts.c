/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attr snapshots as a command opens and describes them. */
#include "snapshot/facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "attrs/snapshot.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/strbuf.h"
#include "ui/listing.h"
#include "ui/number.h"

struct attr_snapshot *snapshot_open_or_die(const char *path)
{
	struct strbuf why = STRBUF_INIT;
	struct attr_snapshot *snapshot = attr_snapshot_open(path, &why);
	int error = errno;

	if (snapshot) {
		strbuf_free(&why);
		return snapshot;
	}
	if (why.length)
		die(EXIT_FILEIO, "rsync: attr snapshot \"%s\": %s", path, strbuf_text(&why));
	log_errno(L_ERROR, error, "cannot open attr snapshot \"%s\"", path);
	exit_with(EXIT_FILEIO);
}

void snapshot_flush_output(void)
{
	int error = fflush(stdout) < 0 ? errno : EIO;

	if (!ferror(stdout))
		return;
	log_errno(L_ERROR, error, "cannot write to standard output");
	exit_with(EXIT_FILEIO);
}

static void add_number(struct strbuf *out, uint64_t value, int level, const char *unit, const char *units)
{
	char number[64];

	strbuf_addf(out, "%s %s", number_format(number, sizeof number, (int64_t)value, level), value == 1 ? unit : units);
}

static void add_age(struct strbuf *out, int64_t made)
{
	static const struct { int64_t seconds; const char *unit; } units[] = {
		{ 86400, "days" }, { 3600, "hours" }, { 60, "minutes" }, { 1, "seconds" },
	};
	int64_t age = (int64_t)time(NULL) - made;

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (age >= 2 * units[i].seconds || (units[i].seconds == 1 && age >= 0)) {
			strbuf_addf(out, " (%" PRId64 " %s ago)", age / units[i].seconds, units[i].unit);
			return;
		}
	strbuf_add_string(out, " (in the future)");
}

static void add_contents(struct strbuf *out, const struct attr_snapshot_facts *facts, int level)
{
	strbuf_add_string(out, "# ");
	add_number(out, facts->entry_count, level, "entry", "entries");
	strbuf_add_string(out, " in ");
	add_number(out, facts->dir_count, level, "directory", "directories");
	strbuf_add_string(out, ", ");
	add_number(out, facts->content_bytes, level, "byte", "bytes");
	strbuf_add_string(out, " of contents; the file has ");
	add_number(out, facts->file_size, level, "byte", "bytes");
	strbuf_addf(out, "\n# digests:%s%s%s%s", facts->digests & ATTR_DIGEST_XXH128 ? " xxh128" : "",
		    facts->digests & ATTR_DIGEST_MD5 ? " md5" : "", facts->digests ? "" : " none",
		    facts->has_atimes ? "; with access times" : "");
	if (facts->followed_links)
		strbuf_add_string(out, "\n# symlinks were followed");
	if (facts->io_error)
		strbuf_add_string(out, "\n# there were errors when it was made: it may lack something");
}

void snapshot_describe(struct strbuf *out, const char *path, const struct attr_snapshot *snapshot, int number_level)
{
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);

	strbuf_addf(out, "# attr snapshot %s\n# generation %" PRIu64 " of ", path, facts->generation);
	listing_time(out, facts->made);
	add_age(out, facts->made);
	strbuf_addf(out, ", made by %s\n# root: ", facts->version);
	if (facts->root_dev || facts->root_ino)
		strbuf_addf(out, "%s, device %" PRIu64 ", inode %" PRIu64, facts->root_path, facts->root_dev, facts->root_ino);
	else
		strbuf_addf(out, "any%s%s", *facts->root_path ? ", from the list of " : "", facts->root_path);
	strbuf_addf(out, "\n# options: %s\n", facts->options);
	add_contents(out, facts, number_level);
}
