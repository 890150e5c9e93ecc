/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list on the wire (doc/protocol/04-filters.md section 4.6): a client sends, a server receives. */
#include <string.h>

#include "filter/add.h"
#include "filter/exchange.h"
#include "filter/list.h"
#include "filter/parse.h"
#include "lib/exit.h"
#include "wire/setup.h"

/* --- receiving --- */

void filter_receive(struct filter_list *list, struct session *session)
{
	enum filter_style style = session->caps.modern_filters ? FILTER_NEW_STYLE : FILTER_OLD_EXCLUDE;
	size_t bytes = 0, count = 0;

	list->setup.lasting_cvs_names = !session->caps.perishable_rules;
	list->from_peer = true;
	for (uint32_t length; (length = (uint32_t)wire_read_int(session->wire)) > 0; bytes += length) {
		char text[RULE_TEXT_MAX];

		if (length > RULE_TEXT_MAX)
			die(EXIT_MALLOC, "buffer overflow: recv_rules");
		wire_read(session->wire, text, length);
		if (memchr(text, '\0', length))
			die(EXIT_PROTOCOL, "filter rule from the peer contains a NUL byte");
		filter_add_received(list, text, length, style);
		/* Counted apart from the rules in force: a clear rule does not make room for more. */
		if (++count > PEER_RULES_MAX || bytes + length > PEER_BYTES_MAX)
			die(EXIT_MALLOC, "too many filter rules (limits: %d rules, %u bytes)", PEER_RULES_MAX, PEER_BYTES_MAX);
	}
	if (!list->setup.cvs_exclude)
		return;
	if (session->is_sender)
		filter_add_cvs(list);
	else if (!session->caps.modern_filters)
		filter_add(list, ":C", FILTER_NEW_STYLE);
}

/* --- sending --- */

struct sending {
	struct wire *wire; /* NULL: only check */
	struct strbuf *lines; /* not to a peer, but here, and all of them; NULL: to a peer */
	struct session_caps caps;
	bool is_sender, delete_excluded;
};

static _Noreturn void refuse_modern(void)
{
	die(EXIT_PROTOCOL, "filter rules are too modern for remote rsync.");
}

/* The letters behind the action, in the order of 4.6.2. NOT: left out if any of those flags is set. */
static const struct wire_modifier {
	uint16_t flag, not;
	char letter;
} wire_modifiers[] = {
	{ RULE_ABSOLUTE, 0, '/' },
	{ RULE_NEGATE, 0, '!' },
	{ RULE_CVS, 0, 'C' },
	{ RULE_NO_INHERIT, RULE_CVS, 'n' },
	{ RULE_WORDS, RULE_CVS, 'w' },
	{ RULE_FIXED_EXCLUDE, RULE_CVS, '-' },
	{ RULE_FIXED_INCLUDE, RULE_CVS, '+' },
	{ RULE_XATTR, 0, 'x' },
	{ RULE_SENDER, 0, 's' },
	{ RULE_RECEIVER, 0, 'r' },
	{ RULE_PERISHABLE, 0, 'p' },
};

static void add_modern(const struct rule *rule, uint16_t flags, struct strbuf *text)
{
	strbuf_add_char(text, "-+:"[rule->action]);
	for (size_t i = 0; i < sizeof wire_modifiers / sizeof wire_modifiers[0]; i++)
		if ((flags & wire_modifiers[i].flag) && !(flags & wire_modifiers[i].not))
			strbuf_add_char(text, wire_modifiers[i].letter);
	strbuf_addf(text, " %s%s", rule->pattern, flags & RULE_DIR_ONLY ? "/" : "");
}

static void send_rule(const struct sending *sending, const struct rule *rule)
{
	uint16_t flags = rule->flags, sides = flags & RULE_SIDES;
	struct strbuf text = STRBUF_INIT;

	if (!sending->lines && sides == (sending->is_sender ? RULE_SENDER : RULE_RECEIVER))
		return;
	if ((flags & RULE_PERISHABLE) && !sending->caps.perishable_rules) {
		if (sending->is_sender)
			refuse_modern();
		flags &= (uint16_t)~RULE_PERISHABLE;
	}
	if (sending->caps.modern_filters) {
		add_modern(rule, flags, &text);
	} else {
		/* A pattern, with a prefix only where one is needed. The old peer takes "!" for "clear" (4.18 no. 8). */
		const char *pattern = rule->pattern;
		bool looks_prefixed = (pattern[0] == '-' || pattern[0] == '+') && pattern[1] == ' ';

		if (rule->action == ACTION_DIR_MERGE || (flags & (RULE_ABSOLUTE | RULE_NEGATE | RULE_XATTR))
		    || (sending->is_sender && sending->delete_excluded && (flags & RULE_RECEIVER))
		    || (rule->action == ACTION_EXCLUDE && !strcmp(pattern, "!") && !(flags & RULE_DIR_ONLY)))
			refuse_modern();
		strbuf_addf(&text, "%s%s%s", rule->action == ACTION_INCLUDE ? "+ " : looks_prefixed ? "- " : "", pattern,
			    flags & RULE_DIR_ONLY ? "/" : "");
	}
	if (sending->lines) {
		if (memchr(text.data, '\n', text.length))
			die(EXIT_SYNTAX, "a filter rule with a newline cannot be kept with a batch");
		strbuf_addf(sending->lines, "%s\n", text.data);
	}
	if (sending->wire) {
		wire_write_int(sending->wire, (int32_t)text.length);
		wire_write(sending->wire, text.data, text.length);
	}
	strbuf_free(&text);
}

static void send_segment(const struct sending *sending, const struct segment *segment)
{
	for (size_t i = 0; i < segment->rules.count; i++) {
		const struct rule *rule = &segment->rules.items[i];
		bool is_cvs = rule->action != ACTION_DIR_MERGE && rule->cvs;
		if (is_cvs && (sending->is_sender || !sending->caps.modern_filters))
			send_segment(sending, rule->cvs);
		else
			send_rule(sending, rule);
	}
}

void filter_send(struct filter_list *list, struct session *session, bool wanted)
{
	struct sending sending = {
		.wire = wanted ? session->wire : NULL, .caps = session->caps,
		.is_sender = session->is_sender, .delete_excluded = list->setup.delete_excluded,
	};
	bool cvs = list->setup.cvs_exclude;
	bool merge_before = session->is_sender && session->caps.modern_filters;

	list->setup.lasting_cvs_names = !session->caps.perishable_rules;
	if (cvs && merge_before)
		filter_add(list, ":C", FILTER_NEW_STYLE);
	if (cvs && session->is_sender)
		filter_add(list, "-C", FILTER_NEW_STYLE);
	send_segment(&sending, &list->rules);
	if (wanted)
		wire_write_int(session->wire, 0);
	if (cvs && !merge_before)
		filter_add(list, ":C", FILTER_NEW_STYLE);
	if (cvs && !session->is_sender)
		filter_add(list, "-C", FILTER_NEW_STYLE);
}

struct filter_list *filter_xattr_list(const struct filter_list *list)
{
	struct strbuf text = STRBUF_INIT;

	if (!list->has_xattr_rules)
		return NULL;
	struct filter_list *copy = filter_new(&list->setup);

	for (size_t i = 0; i < list->rules.rules.count; i++) {
		const struct rule *rule = &list->rules.rules.items[i];

		if (!(rule->flags & RULE_XATTR) || rule->action == ACTION_DIR_MERGE || rule->cvs)
			continue;
		strbuf_reset(&text);
		add_modern(rule, rule->flags, &text);
		filter_add(copy, strbuf_text(&text), FILTER_NEW_STYLE);
	}
	copy->has_xattr_rules = true;
	strbuf_free(&text);
	return copy;
}

void filter_add_lines(const struct filter_list *list, struct strbuf *lines)
{
	const struct sending sending = { .lines = lines, .caps = session_caps_of(PROTOCOL_MAX) };

	send_segment(&sending, &list->rules);
}
