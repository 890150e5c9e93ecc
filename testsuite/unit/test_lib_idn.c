/* SPDX-License-Identifier: GPL-3.0-or-later */
/* lib/idn: the vectors of doc/protocol/09-since-3.5.0.md section 11.1. */
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "testsuite/unit/unit.h"

#include "lib/charset.h"
#include "lib/strbuf.h"

struct idn_case { const char *name, *used; /* NULL: as it is */ };

static const struct idn_case cases[] = {
	{ "b\xc3\xbc" "cher.example", "xn--bcher-kva.example" }, { "bu\xcc\x88" "cher.example", "xn--bcher-kva.example" },
	{ "B\xc3\x9c" "CHER.Example", "xn--bcher-kva.Example" }, { "stra\xc3\x9f" "e.de", "xn--strae-oqa.de" },
	{ "fa\xc3\x9f.B\xc3\x9c" "cher.example", "xn--fa-hia.xn--bcher-kva.example" },
	{ "\xe4\xbe\x8b\xe3\x81\x88.\xe3\x83\x86\xe3\x82\xb9\xe3\x83\x88", "xn--r8jz45g.xn--zckzah" },
	{ "\xef\xac\x80\xc3\xbc.x", "xn--ff-yka.x" }, { "\xc3\xbc..example", "xn--tda..example" },
	{ "\xc3\xbc.example.", "xn--tda.example." }, { "xn--bcher-kva.example", NULL }, { "192.0.2.1", NULL },
	{ "2001:db8::1", NULL }, { "plain.Example", NULL }, { "", NULL }, { "\xc3\xbc\xe3\x80\x82" "example", NULL },
	{ "a_\xc3\xbc.example", NULL }, { "\xc3\xbc_.example", NULL }, { "*\xc3\xbc.example", NULL },
	{ "-\xc3\xbc.example", NULL }, { "\xc3\xbc-.example", NULL }, { "\xef\xbc\x8a.example", NULL },
	{ "\xe2\x98\x83.example", NULL }, { "b\xfc" "cher.example", NULL }, { "\xc3.example", NULL },
};

static void expect(const char *name, const char *used, bool is_utf8)
{
	char *ascii = idn_to_ascii(name, is_utf8);

	if (!used && ascii)
		fail_msg("%s became %s", name, ascii);
	if (used && (!ascii || strcmp(ascii, used) != 0))
		fail_msg("%s became %s", name, ascii ? ascii : "nothing");
	free(ascii);
}

UNIT_TEST(names_become_what_the_system_knows)
{
	struct strbuf text = STRBUF_INIT;

	if (!idn_is_there())
		skip();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect(cases[i].name, cases[i].used, true);
	for (int count = 70; count <= 140; count += 70) {
		strbuf_reset(&text);
		for (int i = 0; i < count; i++)
			strbuf_add_string(&text, "\xc3\xbc");
		expect(strbuf_text(&text), NULL, true);
	}
	strbuf_reset(&text);
	strbuf_add_string(&text, "\xc3\xbc");
	while (text.length <= 1023)
		strbuf_add_string(&text, ".label");
	expect(strbuf_text(&text), NULL, true);
	strbuf_free(&text);
}

UNIT_TEST(bytes_are_the_locales)
{
	if (!idn_is_there())
		skip();
	setlocale(LC_CTYPE, "C");
	expect("b\xc3\xbc" "cher.example", NULL, false);
	expect("b\xc3\xbc" "cher.example", "xn--bcher-kva.example", true);
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		skip();
	expect("b\xc3\xbc" "cher.example", "xn--bcher-kva.example", false);
	expect("b\xfc" "cher.example", NULL, false);
	setlocale(LC_CTYPE, "C");
}
