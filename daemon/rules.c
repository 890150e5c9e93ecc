/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rules by which a module hides names from its clients (protocol/07 section 5.13). */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>

#include "daemon/session.h"
#include "fs/operator.h"

/* In the order in which they count. */
static const struct {
	const char *name;
	size_t offset;
	bool is_file;
	enum filter_style style;
} parameters[] = {
	{ "filter", offsetof(struct module, filter), false, FILTER_NEW_STYLE },
	{ "include from", offsetof(struct module, include_from), true, FILTER_OLD_INCLUDE },
	{ "include", offsetof(struct module, include), false, FILTER_OLD_INCLUDE },
	{ "exclude from", offsetof(struct module, exclude_from), true, FILTER_OLD_EXCLUDE },
	{ "exclude", offsetof(struct module, exclude), false, FILTER_OLD_EXCLUDE },
};

#define PARAMETER_COUNT (sizeof parameters / sizeof *parameters)

/* Files that the configuration names are the operator's; per-directory rule files lie in the module, on its real side. */
static int open_rule_file(void *context, enum filter_place place, const char *path)
{
	const struct daemon_session *session = context;

	if (place == FILTER_AT_OPERATOR)
		return fs_operator_open(path, O_RDONLY | O_NONBLOCK, 0);
	while (*path == '/')
		path++;
	return fs_open_follow(attr_source_real_root(&session->source), path, O_RDONLY, 0);
}

static const char *value_of(const struct module *module, size_t index)
{
	return *(char *const *)(const void *)((const char *)module + parameters[index].offset);
}

const char *rules_parameter(const struct module *module, size_t index, const char **value, bool *is_file)
{
	if (index >= PARAMETER_COUNT)
		return NULL;
	*value = value_of(module, index);
	*is_file = parameters[index].is_file;
	return parameters[index].name;
}

void rules_load_parameter(struct daemon_session *session, size_t index)
{
	const struct filter_setup setup = { .side = FILTER_SENDER, .daemon_rules = true, .open_file = open_rule_file,
					    .context = session };
	char *text = config_text(value_of(session->module, index));

	if (!session->hidden)
		session->hidden = filter_new(&setup);
	if (*text)
		(parameters[index].is_file ? filter_add_file : filter_add_words)(session->hidden, text,
										  parameters[index].style);
	free(text);
}

void rules_load(struct daemon_session *session)
{
	for (size_t i = 0; i < PARAMETER_COUNT; i++)
		rules_load_parameter(session, i);
	if (!filter_is_empty(session->hidden))
		return;
	filter_free(session->hidden);
	session->hidden = NULL;
}
