/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Label by label, by libidn2: IDNA 2008 after the mapping of UTS #46, non-transitional. */
#include "lib/idn.h"

#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"

#ifdef HAVE_LIBIDN2
#include <idn2.h>

#include "lib/charset.h"
#include "lib/strbuf.h"

enum { LABEL_MAX = 255, NAME_MAX_LENGTH = 1023 };

static bool is_ascii(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] > 0x7f)
			return false;
	return true;
}

static bool is_host_label(const char *label)
{
	return *label && label[strspn(label, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

static bool add_label(const char *label, size_t length, struct strbuf *out)
{
	char *text, *ascii = NULL;
	bool is_good;

	if (is_ascii(label, length)) {
		strbuf_add(out, label, length);
		return true;
	}
	if (length > LABEL_MAX)
		return false;
	text = xstrndup(label, length);
	is_good = idn2_to_ascii_8z(text, &ascii, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) == IDN2_OK && is_host_label(ascii);
	if (is_good)
		strbuf_add_string(out, ascii);
	if (ascii)
		idn2_free(ascii);
	free(text);
	return is_good;
}

static char *convert(const char *name)
{
	struct strbuf out = STRBUF_INIT;
	bool is_good = true;

	for (const char *label = name; is_good; label++) {
		size_t length = strcspn(label, ".");

		is_good = add_label(label, length, &out);
		label += length;
		if (!*label)
			break;
		strbuf_add_char(&out, '.');
	}
	if (is_good && out.length <= NAME_MAX_LENGTH)
		return strbuf_detach(&out);
	strbuf_free(&out);
	return NULL;
}

bool idn_is_there(void)
{
	return true;
}

char *idn_to_ascii(const char *name, bool is_utf8)
{
	struct strbuf text = STRBUF_INIT;
	struct charset *charset;
	char *result = NULL;

	if (is_ascii(name, strlen(name)))
		return NULL;
	if (is_utf8)
		return convert(name);
	charset = charset_new(".");
	if (charset && charset_to_wire(charset, name, strlen(name), NAME_MAX_LENGTH, &text))
		result = convert(strbuf_text(&text));
	charset_free(charset);
	strbuf_free(&text);
	return result;
}
#else
bool idn_is_there(void)
{
	return false;
}

char *idn_to_ascii(const char *name, bool is_utf8)
{
	(void)name, (void)is_utf8;
	return NULL;
}
#endif
