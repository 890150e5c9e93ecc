/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Character sets by iconv(3); host names by libidn2, if it is there. */
#include "lib/charset.h"

#include <errno.h>
#include <iconv.h>
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_LIBIDN2
#include <idn2.h>
#endif

#include "lib/alloc.h"

struct charset {
	iconv_t to_wire, from_wire;
};

struct charset *charset_new(const char *local)
{
	const char *name = !*local || (local[0] == '.' && !local[1]) ? nl_langinfo(CODESET) : local;
	struct charset *charset = xcalloc(1, sizeof *charset);

	charset->to_wire = iconv_open("UTF-8", name);
	charset->from_wire = iconv_open(name, "UTF-8");
	if (charset->to_wire != (iconv_t)-1 && charset->from_wire != (iconv_t)-1)
		return charset;
	charset_free(charset);
	return NULL;
}

void charset_free(struct charset *charset)
{
	if (!charset)
		return;
	if (charset->to_wire != (iconv_t)-1)
		iconv_close(charset->to_wire);
	if (charset->from_wire != (iconv_t)-1)
		iconv_close(charset->from_wire);
	free(charset);
}

bool charset_convert(struct charset *charset, bool to_wire, const char *text, size_t length, size_t limit, struct strbuf *out)
{
	iconv_t how = to_wire ? charset->to_wire : charset->from_wire;
	size_t before = out->length, room = length * 4 + 16;
	char *input = (char *)text;

	strbuf_reserve(out, room);
	char *output = out->data + before;

	iconv(how, NULL, NULL, NULL, NULL);
	errno = ENAMETOOLONG;
	if (iconv(how, &input, &length, &output, &room) == (size_t)-1 || iconv(how, NULL, NULL, &output, &room) == (size_t)-1
	    || (size_t)(output - out->data) > limit) {
		strbuf_truncate(out, before);
		return false;
	}
	out->length = (size_t)(output - out->data);
	out->data[out->length] = '\0';
	return true;
}

/* --- host names, label by label: IDNA 2008 after the mapping of UTS #46, non-transitional --- */

#ifdef HAVE_LIBIDN2
enum { LABEL_MAX = 255, NAME_MAX_LENGTH = 1023 };

static bool is_ascii(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] > 0x7f)
			return false;
	return true;
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
	is_good = idn2_to_ascii_8z(text, &ascii, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) == IDN2_OK && *ascii
		  && ascii[strspn(ascii, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
	if (is_good)
		strbuf_add_string(out, ascii);
	if (ascii)
		idn2_free(ascii);
	free(text);
	return is_good;
}

static char *convert_name(const char *name)
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

char *idn_to_ascii(const char *name, bool is_utf8)
{
	struct strbuf text = STRBUF_INIT;
	struct charset *charset;
	char *result = NULL;

	if (is_ascii(name, strlen(name)))
		return NULL;
	if (is_utf8)
		return convert_name(name);
	charset = charset_new(".");
	if (charset && charset_to_wire(charset, name, strlen(name), NAME_MAX_LENGTH, &text))
		result = convert_name(strbuf_text(&text));
	charset_free(charset);
	strbuf_free(&text);
	return result;
}
#else
char *idn_to_ascii(const char *name, bool is_utf8)
{
	(void)name, (void)is_utf8;
	return NULL;
}
#endif

bool idn_is_there(void)
{
#ifdef HAVE_LIBIDN2
	return true;
#else
	return false;
#endif
}
