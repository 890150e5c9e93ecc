/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The description that --config-check prints of the daemon and of each module. */
#include "daemon/check_describe.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/roots.h"
#include "daemon/serve.h"
#include "daemon/session.h"
#include "lib/log.h"

static void describe_snapshot(const struct subject *subject, struct strbuf *out)
{
	const struct module *module = subject->module;
	char *path = config_text(module->attr_snapshot);
	struct strbuf why = STRBUF_INIT;
	struct snapshot_finding finding;
	int64_t now = time(NULL);

	strbuf_addf(out, ", listed from the snapshot %s: ", path);
	if (strstr(path, "%RSYNC_"))
		strbuf_add_string(out, "depends on the client");
	else if (snapshots_find(subject->check->snapshots, module->name, path, &finding) && finding.snapshot &&
		 snapshot_judge(finding.snapshot, module->attr_snapshot_max_age, subject->session.source.attr_root.fd, now,
				&why) == SNAPSHOT_IN_USE)
		snapshot_summary(finding.snapshot, now, out);
	else
		strbuf_addf(out, "cannot be used, %s", module->attr_snapshot_fallback == SNAPSHOT_FALLBACK_REFUSE ?
			    "clients are refused" : "the tree itself is listed");
	strbuf_free(&why);
	free(path);
}

static void describe_form(const struct subject *subject, struct strbuf *out)
{
	char *path = config_text(subject->module->path), *prefix = config_text(subject->module->real_file_prefix);
	char *daemon_root = config_text(subject->check->config->globals.daemon_chroot), *real;
	struct module_place place;

	strbuf_addf(out, "[%s] %s", subject->module->name, path);
	if (*prefix) {
		place_split(&place, path, place_divides(subject->module, path));
		real = place_prefix_path(&place, daemon_root, prefix);
		strbuf_addf(out, ", an attr tree of %s", real);
		place_free(&place);
		free(real);
	} else if (strstr(path, "%RSYNC_"))
		strbuf_add_string(out, ", which depends on the client");
	else if (*subject->module->attr_snapshot)
		describe_snapshot(subject, out);
	else
		strbuf_add_string(out, ", listed from the tree itself");
	free(path);
	free(prefix);
	free(daemon_root);
}

static void describe_identity(const struct subject *subject, struct strbuf *out)
{
	const struct identity *identity = &subject->session.identity;

	if (!subject->has_identity)
		return;
	strbuf_addf(out, ", uid %u, gid", (unsigned)(identity->set_uid ? identity->uid : geteuid()));
	for (size_t i = 0; i < identity->gids.count; i++)
		strbuf_addf(out, "%s%u", i ? "," : " ", (unsigned)identity->gids.items[i]);
	if (!identity->gids.count)
		strbuf_addf(out, " %u", (unsigned)getegid());
}

/* The limits of memory and processor time of one session. */
static void describe_budget(const struct module *module, struct strbuf *out)
{
	size_t memory = module->memory_limit;

	if (memory % ((size_t)1 << 30) == 0)
		strbuf_addf(out, ", per session %zuG of memory", memory >> 30);
	else if (memory % (1 << 20) == 0)
		strbuf_addf(out, ", per session %zuM of memory", memory >> 20);
	else
		strbuf_addf(out, ", per session %zu bytes of memory", memory);
	if (module->cpu_limit)
		strbuf_addf(out, " and %d s of the processor", module->cpu_limit);
}

static void describe_limits(const struct module *module, struct strbuf *out)
{
	static const struct {
		const char *text;
		size_t offset;
	} set[] = {
		{ ", auth users", offsetof(struct module, auth_users) },
		{ ", hosts allow", offsetof(struct module, hosts_allow) },
		{ ", hosts deny", offsetof(struct module, hosts_deny) },
		{ ", early exec", offsetof(struct module, early_exec) },
		{ ", pre-xfer exec", offsetof(struct module, pre_xfer_exec) },
		{ ", post-xfer exec", offsetof(struct module, post_xfer_exec) },
		{ ", name converter", offsetof(struct module, name_converter) },
	};

	for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
		if (**(char *const *)((const char *)module + set[i].offset))
			strbuf_add_string(out, set[i].text);
	if (module->max_connections > 0)
		strbuf_addf(out, ", at most %d connections", module->max_connections);
	if (module->max_connections < 0)
		strbuf_add_string(out, ", closed by \"max connections\"");
	if (module->max_connections_per_host)
		strbuf_addf(out, ", at most %d connections per host", module->max_connections_per_host);
	if (module->timeout > 0)
		strbuf_addf(out, ", timeout %d s", module->timeout);
	describe_budget(module, out);
	if (!module->list)
		strbuf_add_string(out, ", not in the list of modules");
}

void check_describe_module(const struct subject *subject)
{
	struct strbuf form = STRBUF_INIT, rights = STRBUF_INIT;
	const struct daemon_session *session = &subject->session;
	const struct module *module = subject->module;
	bool read_only = place_is_read_only(session);

	if (subject->check->options->quiet)
		return;
	describe_form(subject, &form);
	strbuf_addf(&rights, "    %s, %s", module->write_only ? (read_only ? "neither read nor written" : "write only")
		    : read_only ? "read only" : "writable", session->place.chroot ? "chroot" : "no chroot");
	describe_identity(subject, &rights);
	describe_limits(module, &rights);
	log_info("%s", strbuf_text(&form));
	log_info("%s", strbuf_text(&rights));
	strbuf_free(&form);
	strbuf_free(&rights);
}

void check_describe_daemon(const struct check *check)
{
	const struct config_globals *globals = &check->config->globals;
	struct strbuf text = STRBUF_INIT;

	if (check->options->quiet)
		return;
	strbuf_addf(&text, "%s: %zu module%s, port %d", check->file, check->config->modules.count,
		    check->config->modules.count == 1 ? "" : "s", globals->port ? globals->port : DEFAULT_PORT);
	if (*globals->daemon_chroot)
		strbuf_addf(&text, ", paths below %s", globals->daemon_chroot);
	if (globals->max_connections_per_host)
		strbuf_addf(&text, ", at most %d connections per host", globals->max_connections_per_host);
	if (globals->max_connection_rate)
		strbuf_addf(&text, ", at most %d connections of a host in a minute", globals->max_connection_rate);
	if (globals->minimum_rate)
		strbuf_addf(&text, ", sessions below %d bytes a minute make room", globals->minimum_rate);
	log_info("%s", strbuf_text(&text));
	strbuf_free(&text);
}
