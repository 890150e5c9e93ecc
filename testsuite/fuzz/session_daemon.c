/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A daemon's configuration and its clients, for harnesses. New lines go to the end: seeds name them by number. */
#include "session_daemon.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char configuration[] =
	"motd file = %HOME%/motd\n"
	"log file = %HOME%/log\n"
	"reverse lookup = no\n"
	"transfer logging = yes\n"
	"use chroot = no\n"
	"dont compress = *.o\n"
	"[public]\n\tpath = %HOME%/src\n\tcomment = a tree to read\n\tdont compress = *\n"
	"[write]\n\tpath = %HOME%/dst\n\tread only = no\n\tincoming chmod = Dg+w\n"
	"\tlog format = %o %h %i %n%L %b %c %C %M %U %G %B %P\n"
	"[drop]\n\tpath = %HOME%/dst\n\tread only = no\n\twrite only = yes\n\tmunge symlinks = yes\n\ttemp dir = /sub\n"
	"[secret]\n\tpath = %HOME%/src\n\tauth users = fuzz:rw, reader:ro, barred:deny, @staff\n"
	"\tsecrets file = %HOME%/secrets\n"
	"[old]\n\tpath = %HOME%/dst\n\tread only = no\n\tauth users = fuzz\n"
	"\tsecrets file = %HOME%/secrets\n\tauth digest = md5\n"
	"[filtered]\n\tpath = %HOME%/src\n\tfilter = - /sub/deep + *.o\n\texclude = large link\n\texclude from = %HOME%/rules\n"
	"\tinclude = plain\n\tnumeric ids = yes\n\toutgoing chmod = go-w\n\tmax verbosity = 3\n"
	"[refusing]\n\tpath = %HOME%/src\n\trefuse options = delete c z* !acls\n\tlist = no\n"
	"[denied]\n\tpath = %HOME%/src\n\thosts allow = 192.0.2.0/24\n\thosts deny = *\n"
	"[inner]\n\tpath = %HOME%/./src\n\tuse chroot = yes\n"
	"[fake]\n\tpath = %HOME%/dst\n\tfake super = yes\n\tread only = no\n\tcharset = latin1\n"
	"[attrs]\n\tpath = %HOME%/attrs\n\treal file prefix = %HOME%/src\n\tignore nonreadable = yes\n"
	"[snap]\n\tpath = %HOME%/src\n\tattr snapshot = %HOME%/snapshot\n\tattr snapshot fallback = walk\n"
	"[executing]\n\tpath = %HOME%/src\n\tearly exec = true\n\tpre-xfer exec = true\n\tpost-xfer exec = true\n"
	"[mod]\n\tpath = %HOME%/src\n"
	"[converting]\n\tpath = %HOME%/dst\n\tread only = no\n\tname converter = true\n";

void session_daemon_files(const struct session_plan *plan)
{
	static const uint8_t sizes[2][8] = { { 20 }, { 0x20, 0x4e } };

	session_trees(plan);
	session_text("conf", configuration);
	session_text("motd", "welcome\n");
	session_text("secrets", "# secrets\nfuzz:secret\nreader:secret\n@staff:x\n");
	chmod("secrets", 0600);
	mkdir("attrs", 0755);
	session_write("attrs/plain", sizes[0], 8);
	session_write("attrs/large", sizes[1], 8);
}

int session_daemon_words(const struct session_plan *plan, const char **words)
{
	int count = 0;

	words[count++] = "--server";
	words[count++] = "--daemon";
	words[count++] = "--config=conf";
	if (plan->choice & 1)
		words[count++] = "--no-sandbox";
	words[count++] = ".";
	return count;
}

static const char *const lines[] = {
	"peer::", "-a peer::public dst", "-a peer::public/sub/ dst", "peer::public/*", "-a src/ peer::write",
	"-a --delete src/ peer::write/",
	"-ai src/ peer::drop/new", "-a fuzz@peer::secret dst", "-avv fuzz@peer::old/ dst", "-a src/ fuzz@peer::old/",
	"-rltvv peer::filtered dst", "-az peer::refusing dst", "-a peer::denied dst", "-a peer::inner dst",
	"-aX src/ peer::fake",
	"-a peer::attrs dst", "-a peer::snap dst", "-a peer::executing dst", "-a src/ peer::converting", "-a peer::nothing dst",
	"-a --files-from=names peer::public dst", "-a --files-from=:/names peer::public dst", "-aR peer::public/sub/deep dst",
	"-s -a peer::public/sub dst", "-a --early-input=names peer::public dst", "-a peer::public/plain ::public/sub dst",
	"-a --filter=._rules --delete-excluded peer::public dst", "-a --password-file=secret reader@peer::secret dst",
	"-a src/ reader@peer::secret/", "-a barred@peer::secret dst", "-aHAX --fake-super peer::public dst",
	"-aP --inplace src/ peer::write/sub",
	"-ab --backup-dir=saved src/ peer::write", "-a --link-dest=/sub src/ peer::write/new",
	"-a --temp-dir=/sub src/ peer::write",
	"-a --partial-dir=.part --delay-updates src/ peer::write", "-az --zc=zstd peer::public dst",
	"-c --cc=sha1 -r peer::public dst",
	"-a --iconv=utf8,latin1 src/ peer::fake", "-a --list-only peer::public/sub/", "-a --no-motd peer::",
	"-vvv -a --stats peer::write dst",
	"-a --attr-snapshot=snapshot peer::public", "-a -M--log-format=%i src/ peer::write",
	"-a --remove-source-files peer::write dst",
	"-a --mkpath src/ peer::write/a/b/c", "-a --chmod=u-w src/ peer::write", "-K -a src/ peer::write",
	"-a ./src/link peer::write/dirlink",
	"-a rsync://peer:1234/public/large dst/new", "-a --auth-digest=md5 fuzz@peer::old dst", "-e shell -a peer::public dst",
	"-e shell -a src/ fuzz@peer::old", "--write-batch=batch -a peer::public dst",
	"-a --delete-delay --max-delete=1 src/ peer::write",
};

int session_daemon_lines(void)
{
	return (int)(sizeof lines / sizeof *lines);
}

int session_daemon_client_words(const struct session_plan *plan, const char **words)
{
	static char line[256], protocol[32];
	char *save = NULL;
	int count = 0;

	snprintf(line, sizeof line, "%s", lines[plan->choice % session_daemon_lines()]);
	snprintf(protocol, sizeof protocol, "--protocol=%d", plan->protocol);
	if (plan->protocol)
		words[count++] = protocol;
	for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
		words[count++] = word;
	return count;
}
