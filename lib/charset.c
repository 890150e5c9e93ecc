/* SPDX-License-Identifier: GPL-3.0-or-later */
/* iconv(3) behind two functions. */
#include "lib/charset.h"

#include <errno.h>
#include <iconv.h>
#include <langinfo.h>
#include <stdlib.h>

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

static bool convert(iconv_t how, const char *text, size_t length, size_t limit, struct strbuf *out)
{
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

bool charset_to_wire(struct charset *charset, const char *text, size_t length, size_t limit, struct strbuf *out)
{
	return convert(charset->to_wire, text, length, limit, out);
}

bool charset_from_wire(struct charset *charset, const char *text, size_t length, size_t limit, struct strbuf *out)
{
	return convert(charset->from_wire, text, length, limit, out);
}
