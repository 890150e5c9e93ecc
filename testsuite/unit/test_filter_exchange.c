/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list on the wire: dumps and matrix of doc/protocol/04-filters.md sections 4.6.4 and 4.6.6, and what a server refuses. */
#include "filter/add.h"
#include "filter/exchange.h"
#include "filter_support.h"
#include "testsuite/unit/wire_memory.h"

/* Rules given as --exclude=/--include= carry the style in front: "E" exclude, "I" include, "F" filter. */
static struct filter_list *build(const char *const *rules, bool delete_excluded, bool is_sender, bool cvs)
{
	struct filter_setup setup = {
		.side = is_sender ? FILTER_SENDER : FILTER_RECEIVER, .delete_excluded = delete_excluded,
		.cvs_exclude = cvs, .cvs_home = "/nonexistent",
	};
	struct filter_list *list = filter_new(&setup);

	for (; *rules; rules++)
		filter_add(list, *rules + 1,
			   **rules == 'E' ? FILTER_OLD_EXCLUDE : **rules == 'I' ? FILTER_OLD_INCLUDE : FILTER_NEW_STYLE);
	return list;
}

struct exchange {
	const char *const *rules;
	bool delete_excluded, is_sender, wanted;
	int protocol;
	const char *sent; /* NULL: too modern */
};

static void check(const struct exchange *exchange)
{
	struct filter_list *list = build(exchange->rules, exchange->delete_excluded, exchange->is_sender, false);
	struct session session = { .wire = wire_new_memory("", 0), .is_sender = exchange->is_sender };
	struct ending ending;

	session_set_protocol(&session, exchange->protocol);
	RUN(&ending, filter_send(list, &session, exchange->wanted));
	if (exchange->sent) {
		char *sent = written_rules(session.wire);
		assert_int_equal(ending.code, -1);
		assert_string_equal(sent, exchange->sent);
		free(sent);
	} else {
		assert_int_equal(ending.code, EXIT_PROTOCOL);
		assert_string_equal(ending.text, "filter rules are too modern for remote rsync.\n");
	}
	wire_free(session.wire);
	filter_free(list);
}

static const char *const matrix_rules[] = {
	"E*.o", "I+keep", "Iincl/", "FH hid", "FS sho", "FP pro", "FR ris", "F-sr both", "F-p per", "F-/ /abs", "F-! neg",
	"F: .rules", NULL,
};
static const char *const no_perishable[] = { "E*.o", "FH hid", "FP pro", NULL };
static const char *const perishable[] = { "F-p x", NULL };
static const char *const merges[] = { "F: /.rsync-filter", NULL };
static const char *const classic[] = { "E*.o", "Iincl/", "E- dash", "Edir/", NULL };
static const char *const sided[] = { "FH hid", "FP pro", "F-sr both", NULL };
static const char *const clear_pattern[] = { "E- !", NULL };
static const char *const prefix_pattern[] = { "F- - x", "F- + y", "F+ z", NULL };
static const char *const merge_kinds[] = { "Ebefore", "Eafter", "F:n- .foo", "F: .bar", "F:s .baz", "F:r .qux", NULL };

#define MATRIX_PULL "- *.o|+ +keep|+ incl/|-s hid|+s sho|-sr both|-p per|-/ /abs|-! neg|: .rules"
#define MATRIX_PUSH "- *.o|+ +keep|+ incl/|-r pro|+r ris|-sr both|-p per|-/ /abs|-! neg|: .rules"

static const struct exchange exchanges[] = {
	{ matrix_rules, false, false, true, 32, MATRIX_PULL },
	{ matrix_rules, false, false, true, 30, MATRIX_PULL },
	{ matrix_rules, true, false, true, 31,
	  "-s *.o|+s +keep|+s incl/|-s hid|+s sho|-sr both|-sp per|-/s /abs|-!s neg|: .rules" },
	{ matrix_rules, false, true, false, 32, "(none)" },
	{ matrix_rules, false, true, true, 32, MATRIX_PUSH },
	{ matrix_rules, true, true, true, 32, "-r pro|+r ris|-sr both|: .rules" },
	{ matrix_rules, true, true, true, 29, "-r pro|+r ris|-sr both|: .rules" },
	{ matrix_rules, false, false, true, 29,
	  "- *.o|+ +keep|+ incl/|-s hid|+s sho|-sr both|- per|-/ /abs|-! neg|: .rules" },
	{ matrix_rules, false, true, true, 29, NULL },
	{ no_perishable, false, true, true, 29, "- *.o|-r pro" },
	{ perishable, false, true, false, 29, NULL },
	{ perishable, false, false, true, 28, "x" },
	{ perishable, false, true, true, 28, NULL },
	{ merges, false, true, false, 28, NULL },
	{ merges, false, false, true, 28, NULL },
	{ classic, false, false, true, 28, "*.o|+ incl/|dash|dir/" },
	{ classic, false, true, true, 27, "*.o|+ incl/|dash|dir/" },
	{ classic, true, true, false, 28, "(none)" },
	{ sided, false, false, true, 28, "hid|both" },
	{ sided, false, true, true, 28, "pro|both" },
	{ sided, true, true, true, 28, NULL },
	{ clear_pattern, false, false, true, 28, NULL },
	{ clear_pattern, false, false, true, 29, "- !" },
	{ prefix_pattern, false, false, true, 28, "- - x|- + y|+ z" },
	{ merge_kinds, true, false, true, 32, "-s before|-s after|:n-s .foo|: .bar|:s .baz" },
	{ merge_kinds, true, true, true, 32, ": .bar|:r .qux" },
};

UNIT_TEST(each_kind_of_transfer_sends_what_stock_sends)
{
	for (size_t i = 0; i < sizeof exchanges / sizeof exchanges[0]; i++)
		check(&exchanges[i]);
}

UNIT_TEST(pull_sends_the_bytes_of_the_dump)
{
	static const char *const rules[] = {
		"E*.o", "FH foo", "FP bar", "FR,p baz/", "F+/ /abs", "F-! neg", "F:e .rules", "F:n- .nr", "F:C", "F-x user.foo",
		"F-sr both", "F-C", NULL,
	};
	static const uint8_t expected[] =
		"\5\0\0\0- *.o" "\6\0\0\0-s foo" "\7\0\0\0+/ /abs" "\6\0\0\0-! neg" "\10\0\0\0- .rules" "\10\0\0\0: .rules"
		"\7\0\0\0:n- .nr" "\15\0\0\0:C .cvsignore" "\13\0\0\0-x user.foo" "\10\0\0\0-sr both" "\3\0\0\0-C " "\0\0\0";
	struct filter_list *list = build(rules, false, false, false);
	struct session session = { .wire = wire_new_memory("", 0) };
	size_t length;

	session_set_protocol(&session, 32);
	filter_send(list, &session, true);
	const uint8_t *bytes = wire_test_output(session.wire, &length);
	assert_int_equal(length, 130);
	assert_int_equal(sizeof expected, 130);
	assert_memory_equal(bytes, expected, length);
	wire_free(session.wire);
	filter_free(list);
}

/* --- CVS --- */

static const char cvs_before_30[] =
	"- RCS|- SCCS|- CVS|- CVS.adm|- RCSLOG|- cvslog.*|"
	"- tags|- TAGS|- .make.state|- .nse_depinfo|- *~|- #*|- .#*|- ,*|- _$*|"
	"- *$|- *.old|- *.bak|- *.BAK|- *.orig|- *.rej|- .del-*|- *.a|- *.olb|- *.o|"
	"- *.obj|- *.so|- *.exe|- *.Z|- *.elc|- *.ln|"
	"- core|- .svn/|- .git/|- .hg/|- .bzr/";

static char *sent_with_cvs(bool is_sender, int protocol, const char *ignored)
{
	static const char *const rules[] = { "E*.x", NULL };
	struct filter_list *list = build(rules, false, is_sender, true);
	char *sent = sent_rules(list, protocol, is_sender, true);

	/* Whatever was sent, both rules are in force here afterwards. */
	assert_true(filter_excludes(list, ignored, false));
	assert_true(filter_has_merges(list));
	filter_free(list);
	return sent;
}

UNIT_TEST(option_C_sends_its_rules_in_a_push_only)
{
	unsetenv("CVSIGNORE");
	char *sent = sent_with_cvs(false, 32, "a/core");
	assert_string_equal(sent, "- *.x");
	free(sent);

	sent = sent_with_cvs(true, 29, "a/core");
	assert_int_equal(strncmp(sent, "- *.x|:C .cvsignore|", 20), 0);
	assert_string_equal(sent + 20, cvs_before_30);
	free(sent);

	setenv("CVSIGNORE", "gone ! envp -x", 1);
	sent = sent_with_cvs(true, 32, "a/envp");
	assert_string_equal(sent, "- *.x|:C .cvsignore|- envp|- -x");
	free(sent);
	unsetenv("CVSIGNORE");
}

UNIT_TEST(option_C_is_expanded_for_old_peers)
{
	setenv("CVSIGNORE", "! one", 1);
	static const char *const rules[] = { "F-C", NULL };
	struct filter_list *list = build(rules, false, false, false);
	char *sent = sent_rules(list, 28, false, true);

	assert_string_equal(sent, "one");
	free(sent);
	filter_free(list);
	sent = sent_with_cvs(true, 28, "a/one");
	assert_string_equal(sent, "*.x|one");
	free(sent);
	unsetenv("CVSIGNORE");
}

UNIT_TEST(cvs_rule_passes_its_modifiers_on)
{
	static const char *const rules[] = { "F-Cr", NULL };
	struct filter_list *list = build(rules, false, true, false);
	char *sent = sent_rules(list, 32, true, true);

	assert_int_equal(strncmp(sent, "-rp RCS|-rp SCCS|", 17), 0);
	free(sent);
	assert_false(filter_excludes(list, "core", false));
	filter_free(list);
}

/* --- receiving --- */

static void add_wire_rule(struct strbuf *bytes, const char *text, size_t length)
{
	uint8_t size[4] = { (uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16), (uint8_t)(length >> 24) };

	strbuf_add(bytes, size, sizeof size);
	strbuf_add(bytes, text, length);
}

/* Receive the bytes as a sending server. */
static struct filter_list *receive(struct strbuf *bytes, int protocol, bool cvs, struct ending *ending)
{
	struct filter_setup setup = { .side = FILTER_SENDER, .cvs_exclude = cvs, .cvs_home = "/nonexistent" };
	struct filter_list *list = filter_new(&setup);
	struct session session = {
		.wire = wire_new_memory(bytes->data, bytes->length), .is_server = true, .is_sender = true,
	};

	session_set_protocol(&session, protocol);
	RUN(ending, filter_receive(list, &session));
	wire_free(session.wire);
	return list;
}

UNIT_TEST(server_understands_what_clients_send)
{
	struct strbuf bytes = STRBUF_INIT;
	struct ending ending;

	add_wire_rule(&bytes, "+s keep.o", 9);
	add_wire_rule(&bytes, "- *.o", 5);
	add_wire_rule(&bytes, "-C ", 3);
	add_wire_rule(&bytes, "", 0);
	struct filter_list *list = receive(&bytes, 32, false, &ending);
	assert_int_equal(ending.code, -1);
	assert_false(filter_excludes(list, "a/keep.o", false));
	assert_true(filter_excludes(list, "a/x.o", false));
	assert_true(filter_excludes(list, "core", false));
	assert_true(filter_excludes(list, "a/.git", true));
	filter_free(list);
	strbuf_reset(&bytes);

	add_wire_rule(&bytes, "+ a*", 4);
	add_wire_rule(&bytes, "-p x", 4);
	add_wire_rule(&bytes, "", 0);
	list = receive(&bytes, 28, true, &ending);
	assert_false(filter_excludes(list, "a.o", false));
	assert_true(filter_excludes(list, "-p x", false));
	assert_true(filter_excludes(list, "b.o", false));
	assert_true(filter_has_merges(list));
	filter_free(list);
	strbuf_free(&bytes);
}

static void expect_refusal(struct strbuf *bytes, int code, const char *message)
{
	struct ending ending;
	struct filter_list *list = receive(bytes, 32, false, &ending);

	assert_int_equal(ending.code, code);
	if (!strstr(ending.text, message))
		fail_msg("refused with \"%s\"", ending.text);
	filter_free(list);
	strbuf_free(bytes);
}

UNIT_TEST(rule_length_is_bounded)
{
	struct strbuf bytes = STRBUF_INIT;
	struct ending ending;
	char *text = malloc(5120);

	memset(text, 'x', 5120);
	memcpy(text, "-p", 2);
	text[2] = ' ';
	/* Legal on the wire, too long as a pattern. */
	add_wire_rule(&bytes, text, 5119);
	add_wire_rule(&bytes, "", 0);
	struct filter_list *list = receive(&bytes, 32, false, &ending);
	assert_int_equal(ending.code, -1);
	assert_true(filter_is_empty(list));
	filter_free(list);
	strbuf_free(&bytes);

	add_wire_rule(&bytes, text, 5120);
	expect_refusal(&bytes, EXIT_MALLOC, "buffer overflow: recv_rules");
	strbuf_add(&bytes, "\xff\xff\xff\xff", 4);
	expect_refusal(&bytes, EXIT_MALLOC, "buffer overflow: recv_rules");
	free(text);
}

UNIT_TEST(server_refuses_what_no_client_may_send)
{
	struct strbuf bytes = STRBUF_INIT;

	add_wire_rule(&bytes, ". /etc/passwd", 13);
	expect_refusal(&bytes, EXIT_SYNTAX, "a merge rule cannot be sent to a server");
	add_wire_rule(&bytes, "merge,- x", 9);
	expect_refusal(&bytes, EXIT_SYNTAX, "a merge rule cannot be sent to a server");
	add_wire_rule(&bytes, "- a\0b", 5);
	expect_refusal(&bytes, EXIT_PROTOCOL, "NUL");
	add_wire_rule(&bytes, "zork", 4);
	expect_refusal(&bytes, EXIT_SYNTAX, "Unknown filter rule: zork");
}

UNIT_TEST(number_and_bytes_of_rules_are_capped)
{
	struct strbuf bytes = STRBUF_INIT;
	struct ending ending;
	char long_rule[3000];

	for (int i = 0; i < 65536; i++)
		add_wire_rule(&bytes, "- a", 3);
	size_t full = bytes.length;
	add_wire_rule(&bytes, "", 0);
	struct filter_list *list = receive(&bytes, 32, false, &ending);
	assert_int_equal(ending.code, -1);
	filter_free(list);
	strbuf_truncate(&bytes, full);
	add_wire_rule(&bytes, "- a", 3);
	expect_refusal(&bytes, EXIT_MALLOC, "too many filter rules");

	/* A clear rule does not make room for more. */
	for (int i = 0; i < 65537; i++)
		add_wire_rule(&bytes, "!", 1);
	expect_refusal(&bytes, EXIT_MALLOC, "too many filter rules");

	memset(long_rule, 'x', sizeof long_rule);
	long_rule[0] = '-';
	long_rule[1] = ' ';
	for (int i = 0; i < 6000; i++)
		add_wire_rule(&bytes, long_rule, sizeof long_rule);
	expect_refusal(&bytes, EXIT_MALLOC, "too many filter rules");
}

/* What one side sends, the other understands: sending it again gives the same list. */
UNIT_TEST(received_list_is_the_list_that_was_sent)
{
	struct filter_list *list = build(matrix_rules, false, false, false);
	struct session out = { .wire = wire_new_memory("", 0) };
	size_t length;

	session_set_protocol(&out, 32);
	filter_send(list, &out, true);
	const uint8_t *bytes = wire_test_output(out.wire, &length);
	struct filter_setup setup = { .side = FILTER_SENDER };
	struct filter_list *copy = filter_new(&setup);
	struct session in = { .wire = wire_new_memory(bytes, length), .is_server = true, .is_sender = true };

	session_set_protocol(&in, 32);
	filter_receive(copy, &in);
	char *again = sent_rules(copy, 32, false, true);
	assert_string_equal(again, MATRIX_PULL);
	free(again);
	wire_free(in.wire);
	wire_free(out.wire);
	filter_free(copy);
	filter_free(list);
}
