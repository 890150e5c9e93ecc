/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a server process writes about itself, believed only as far as it is harmless; labels of the metrics. */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testsuite/unit/unit.h"

#include "daemon/listen.h"
#include "daemon/status.h"

static int admit(struct children *children)
{
	struct sockaddr peer = { .sa_family = AF_UNSPEC };
	int limit;

	return children_admit(children, &peer, 0, &limit);
}

UNIT_TEST(a_child_is_read_by_its_parent)
{
	struct children *children = children_new();
	const int index = admit(children);
	struct board_slot *slot = children_board(children, index);
	struct board_view view;
	pid_t pid = fork();

	if (pid == 0) {
		board_set_state(slot, BOARD_SENDING);
		board_set_text(slot, BOARD_MODULE, "debian");
		board_count_file(slot);
		board_count_file(slot);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	board_read(slot, &view);
	assert_int_equal(view.state, BOARD_SENDING);
	assert_string_equal(view.texts[BOARD_MODULE], "debian");
	assert_int_equal(view.counts[BOARD_FILES], 2);
	board_read(children_board(children, index - 1), &view);
	assert_string_equal(view.texts[BOARD_MODULE], "");
	/* The slot that has not got a process is given away again, and nothing of the last one is left in it. */
	assert_int_equal(admit(children), index);
	board_read(slot, &view);
	assert_int_equal(view.state, BOARD_HANDSHAKE);
	assert_string_equal(view.texts[BOARD_MODULE], "");
	assert_int_equal(view.counts[BOARD_FILES], 0);
}

UNIT_TEST(nonsense_is_made_harmless)
{
	struct board_slot *slot = children_board(children_new(), 0);
	char lengthy[3 * BOARD_TEXT];
	struct board_view view;

	memset(lengthy, 'x', sizeof lengthy - 1);
	lengthy[sizeof lengthy - 1] = 0;
	board_set_state(slot, (enum board_state)4711);
	board_set_text(slot, BOARD_USER, lengthy);
	board_set_text(slot, BOARD_MODULE, "a\nb\033[2J\177");
	board_read(slot, &view);
	assert_true(view.state < BOARD_STATES);
	assert_int_equal(strlen(view.texts[BOARD_USER]), BOARD_TEXT - 1);
	assert_string_equal(view.texts[BOARD_MODULE], "a?b?[2J?");
}

UNIT_TEST(a_process_without_a_board_tells_nobody)
{
	board_set_state(NULL, BOARD_ENDING);
	board_set_text(NULL, BOARD_USER, "user");
	board_count_file(NULL);
	assert_null(board_meter(NULL));
}

static void assert_label(const char *value, const char *expected)
{
	struct strbuf out = STRBUF_INIT;

	metrics_add_label(&out, value);
	assert_string_equal(strbuf_text(&out), expected);
	strbuf_free(&out);
}

UNIT_TEST(labels_are_escaped)
{
	assert_label("", "");
	assert_label("a\"b\\c\nd", "a\\\"b\\\\c\\nd");
	assert_label("m\xc3\xbcll \xf0\x9f\x90\xa7", "m\xc3\xbcll \xf0\x9f\x90\xa7");
	assert_label("\xe9t", "\\\\xe9t");
	assert_label("\xc3", "\\\\xc3");
	assert_label("\xc0\xaf", "\\\\xc0\\\\xaf");
	assert_label("\xed\xa0\x80", "\\\\xed\\\\xa0\\\\x80");
}

UNIT_TEST(the_status_has_a_line_for_each_process)
{
	struct children *children = children_new();
	struct strbuf out = STRBUF_INIT;
	int slot = admit(children);

	children->items[slot].pid = 4711;
	children->items[slot].since = 1700000000;
	board_set_text(children_board(children, slot), BOARD_ADDRESS, "192.0.2.1");
	board_set_text(children_board(children, slot), BOARD_USER, "anna");
	board_set_state(children_board(children, slot), BOARD_RECEIVING);
	atomic_store(&board_meter(children_board(children, slot))->received, 5000);
	status_format(children, 1700000010, &out);
	assert_non_null(strstr(strbuf_text(&out), "4711 receiving since "));
	assert_non_null(strstr(strbuf_text(&out), " (10 s): anna@192.0.2.1 module -, received 5000, sent 0, files 0, "
						  "500 bytes/s\ntotal: connections 1, received 5000, sent 0, files 0, "
						  "500 bytes/s\n"));
	strbuf_free(&out);
}
