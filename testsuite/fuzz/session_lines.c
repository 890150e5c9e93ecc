/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The trees and the command lines of the harnesses that run the program. New lines go to the end: seeds name them by number. */
#include "client/words.h"
#include "session.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "client.h"
#include "options.h"

enum { MANY = 20000, THEN = 1500000000 };

/* --- files --- */

static void set_time(const char *path, time_t seconds)
{
	const struct timespec times[2] = { { seconds, 0 }, { seconds, 0 } };

	utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

void session_write(const char *path, const void *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return;
	if (size && write(fd, bytes, size) != (ssize_t)size)
		unlink(path);
	close(fd);
	set_time(path, THEN);
}

void session_text(const char *path, const char *text)
{
	session_write(path, text, strlen(text));
}

/* Bytes that do not repeat, but for what `changes` says: every so many, one is another. */
static void write_many(const char *path, size_t size, size_t changes)
{
	uint8_t *bytes = malloc(size);
	uint32_t number = 1;

	for (size_t i = 0; i < size; i++) {
		number = number * 1103515245 + 12345;
		bytes[i] = (uint8_t)(number >> 16);
		if (changes && i % changes == 7)
			bytes[i] ^= 0x55;
	}
	session_write(path, bytes, size);
	free(bytes);
}

static void make_dir(const char *path)
{
	mkdir(path, 0755);
}

static void make_source(void)
{
	make_dir("src");
	session_text("src/plain", "the quick brown fox\n");
	session_text("src/empty", "");
	session_text("src/object.o", "object");
	session_text("src/.cvsignore", "*.bak\n!\n*.tmp\n");
	session_text("src/.rsync-filter", "- *.skip\n+ keep*\nP doomed\n: .more\n");
	session_text("src/name with\nline \xc3\xa4\xff", "odd");
	session_text("src/old.skip", "skipped");
	write_many("src/large", MANY, 0);
	make_dir("src/sub");
	make_dir("src/sub/deep");
	make_dir("src/hollow");
	session_text("src/sub/.more", "hide *.hidden\nrisk risky\nmerge ../.cvsignore\n");
	session_text("src/sub/x.hidden", "hidden");
	session_text("src/sub/deep/bottom", "bottom");
	session_text("src/sub/renamed-large-file", "similar name");
	chmod("src/sub/deep/bottom", 0751);
	write_many("src/sub/medium", 3000, 0);
	if (link("src/plain", "src/sub/hard") < 0 || symlink("sub/deep", "src/link") < 0 || symlink("/etc",
		"src/outside") < 0 ||
	    mkfifo("src/fifo", 0600) < 0)
		abort();
	lsetxattr("src/plain", "user.short", "value", 5, 0);
	setxattr("src/sub", "user.long", "a value of more than thirty-two bytes, so that it is sent later", 60, 0);
	set_time("src/sub/deep", THEN);
	set_time("src/sub", THEN);
	set_time("src/hollow", THEN);
}

static void make_destination(const char *root)
{
	if (mkdir(root, 0755) < 0 || chdir(root) < 0)
		abort();
	session_text("plain", "the quick brown dog\n");
	set_time("plain", THEN - 5);
	write_many("large", MANY - 999, 4000);
	set_time("large", THEN - 5);
	session_text("extra", "to be deleted");
	session_text("hollow", "a file where a directory comes");
	make_dir("empty");
	session_text("empty/doomed", "in a directory where a file comes");
	make_dir("sub");
	session_text("sub/extra", "to be deleted");
	write_many("sub/medium", 3000, 0);
	write_many("sub/renamed-large-fil", MANY, 0);
	if (symlink("elsewhere", "link") < 0 || symlink("sub", "dirlink") < 0 || chdir("..") < 0)
		abort();
}

void session_trees(const struct session_plan *plan)
{
	(void)plan;
	make_source();
	make_destination("dst");
	make_destination("alt");
	session_text("names", "plain\nsub/deep\n./sub/./medium\nmissing\n# no comment\n;\nlarge\n");
	session_text("rules", "# rules\n- *.o\n+ /sub/***\nclear\nexclude,! *.c\nP,s /extra\ndir-merge,en- .more\n");
	session_text("secret", "secret\n");
	chmod("secret", 0600);
}

/* --- command lines --- */

static const char *const lines[] = {
	"-a", "-r", "-rlptgoD --delete", "-avvz --stats", "-aHAX", "-c -a", "-an -i -vv", "-a --whole-file", "-rt --inplace",
	"-a --append", "-a --append-verify", "-a --delete-after --force", "-a --delete-before -v", "-a --delete-delay --backup",
	"-ab --backup-dir=saved --delete", "-a --partial-dir=.part", "-a --fuzzy --no-W", "-a -yy --link-dest=../alt",
	"-a --copy-dest=../alt", "-a --compare-dest=../alt -v", "-aR", "-rR --no-implied-dirs", "-a --files-from=names",
	"-a --files-from=names -0", "-a --files-from=:names", "-aF", "-aFF --delete --delete-excluded", "-aC",
	"-a --filter=._rules", "-a --exclude-from=rules --include=*.o", "-a --max-size=1k", "-a --min-size=10", "-aL", "-ak",
	"-aK --delete", "-a --safe-links", "-a --copy-unsafe-links", "-a --munge-links", "-a --numeric-ids", "-a --no-i-r",
	"-a --no-i-r -H --delete", "-az --zc=zlib", "-az --zc=zlibx", "-az --zc=lz4", "-az --zc=zstd --zl=3", "-z --zl=9 -r",
	"-rtc --cc=md5", "-rc --cc=sha1 --no-W", "-rc --cc=xxh128", "-ac --cc=md4", "-r --cc=none", "-a -B 1000 --no-W",
	"-aS --no-W", "-aS --preallocate", "-a --remove-source-files", "-a --existing", "-a --ignore-existing", "-au", "-aI",
	"-a --size-only", "-d", "-a --prune-empty-dirs", "-rtO -J", "-aU --atimes", "-aNU", "-a --chmod=Dg+s,Fo-r -E",
	"-a --max-delete=1 --delete", "-a --delete-missing-args", "-a --ignore-missing-args", "-a --fake-super -X",
	"-aX --fake-super --no-W -i", "-a --out-format=%i_%n%L_%l_%C", "-a --log-format=%o_%b_%c -vvv", "-a --usermap=*:nobody",
	"-a --groupmap=0:7 --chown=1:2", "-s -a", "-s -a --files-from=names -i", "--old-args -a", "-a --iconv=utf8,latin1",
	"-a --copy-devices --write-devices -n", "-a --delay-updates", "-a -T .", "-a --mkpath", "-x -a --one-file-system",
	"-ahh -P",
	"-a --info=all2 --debug=all4", "-a --progress --bwlimit=100m", "-a --timeout=5", "-rlt --open-noatime -m",
	"-aHi -M--super",
	"-a --checksum-seed=7", "-a --checksum-seed=7 -z -B 700 --no-W -i", "-aq", "-a --msgs2stderr", "-a --no-msgs2stderr -v",
	"--list-only -r", "--list-only -a -H -vv", "-a --only-send-attrs", "-aHAXi --only-send-attrs",
	"-a --skip-compress=o/skip -z",
	"-a --modify-window=-1", "-a --ignore-errors --delete", "-aHSXAz --delete --fuzzy --partial -i", "-a --stop-after=1",
	"-a --suffix=.~1 -b", "-a --no-inc-recursive -z --zc=zstd", "-a --inplace --backup --no-W", "-rlH --copy-dirlinks",
	"-a --write-batch=batch", "-a --only-write-batch=batch", "-a --max-alloc=1m", "-vv --trust-sender -a",
	"-0 -a --exclude=*.o",
};

int session_lines(void)
{
	return (int)(sizeof lines / sizeof *lines);
}

int session_client_words(const struct session_plan *plan, const char **words)
{
	static char line[256], protocol[32];
	char *save = NULL;
	int count = 0;

	snprintf(line, sizeof line, "%s", lines[plan->choice % session_lines()]);
	for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
		words[count++] = word;
	snprintf(protocol, sizeof protocol, "--protocol=%d", plan->protocol);
	if (plan->protocol)
		words[count++] = protocol;
	return count;
}

int session_server_words(const struct session_plan *plan, const char **words, bool pull)
{
	static struct options options;
	static struct args server = { NULL, 0 };
	const char *line[SESSION_WORDS_MAX] = { "rsync-huai" };
	char *error = NULL;
	int code = 0, count = 1 + session_client_words(plan, line + 1);

	line[count++] = pull ? "peer:src/" : "src/";
	line[count++] = pull ? "dst" : "peer:dst";
	line[count] = NULL;
	if (options_parse(&options, count, (char **)line, NULL, &error, &code) != OPTIONS_OK) {
		fprintf(stderr, "line %d: %s\n", plan->choice, error);
		exit(code);
	}
	options_server_words(&options, !pull, options.max_protocol, &server);
	/* The rest comes through the stream. */
	if (options.secluded_args) {
		server.count = server_words_visible(&server);
	} else {
		args_append(&server, ".");
		args_append(&server, pull ? "src/" : "dst");
	}
	for (size_t i = 0; i < server.count; i++)
		words[i] = server.items[i];
	return (int)server.count;
}
