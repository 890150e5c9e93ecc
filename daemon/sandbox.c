/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Entering the sandbox of a session. */
#include "daemon/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <nss.h>
#endif

#include "fs/landlock.h"
#include "fs/operator.h"
#include "lib/log.h"

#define FIRST_WITH_NETWORK 4
#define FIRST_WITH_TRUNCATE 3

void sandbox_prepare(void)
{
	tzset();
	getpwuid(0);
	getgrgid(0);
#ifdef __GLIBC__
	/* Asked for an id that it does not know, the C library would load its other ways to look for one, too. */
	__nss_configure_lookup("passwd", "files");
	__nss_configure_lookup("group", "files");
#endif
}

/* Moving names between directories is what receiving does; where Landlock always forbids it, a module to write goes without. */
static int usable_version(const struct sandbox *sandbox)
{
	int version = fs_landlock_version();

	return sandbox->writable && version < FS_LANDLOCK_RENAMES ? 0 : version;
}

/* The names of users and groups are told to clients: these two files, of the root that the process has by now. */
static int confine_files(const struct sandbox *sandbox, int version)
{
	static const char *const tables[] = { "/etc/passwd", "/etc/group" };
	struct fs_reachable reachable[4];
	size_t count = 0, roots;
	int result, error;

	reachable[count++] = (struct fs_reachable){ sandbox->attr_root, sandbox->writable };
	if (sandbox->content_root >= 0)
		reachable[count++] = (struct fs_reachable){ sandbox->content_root, false };
	roots = count;
	for (size_t i = 0; i < 2 && sandbox->names_ids; i++) {
		int fd = fs_operator_open(tables[i], O_PATH, 0);

		if (fd >= 0)
			reachable[count++] = (struct fs_reachable){ fd, false };
	}
	result = fs_landlock_confine(version, reachable, count);
	error = errno;
	while (count > roots)
		close(reachable[--count].fd);
	errno = error;
	return result;
}

static int confine_calls(const struct sandbox *sandbox)
{
	struct call_table tables[SANDBOX_TABLES + 1];
	size_t count = sandbox_calls(sandbox, tables);
	const struct call_rule own_signals = { SYS_tgkill, CALL_IF_EQUAL, 0, (uint32_t)getpid() };

	tables[count++] = (struct call_table){ &own_signals, 1 };
	return seccomp_allow_only(tables, count);
}

const char *sandbox_enter(const struct sandbox *sandbox)
{
	int version = usable_version(sandbox);

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return "no_new_privs";
	if (version && confine_files(sandbox, version) < 0)
		return "Landlock";
	if (seccomp_is_available() && confine_calls(sandbox) < 0)
		return "seccomp";
	return NULL;
}

void sandbox_report(void)
{
	int version = fs_landlock_version();

	if (!version)
		log_msg(L_LOG, "sandbox: this kernel has no Landlock; sessions are not confined to their directories by it");
	else if (version < FS_LANDLOCK_ALL)
		log_msg(L_LOG, "sandbox: version %d of Landlock does not restrict%s%s%s signals", version,
			version < FS_LANDLOCK_RENAMES ? " writable modules," : "",
			version < FIRST_WITH_TRUNCATE ? " truncation," : "", version < FIRST_WITH_NETWORK ? " TCP and" : "");
	if (!seccomp_is_available())
		log_msg(L_LOG, "sandbox: no seccomp filter here; sessions may make every system call");
}
