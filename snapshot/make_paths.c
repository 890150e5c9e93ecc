/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --attr-refresh=LIST: the paths that are to be looked at again, in the form of a --files-from list. */
#include "snapshot/make_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/file.h"
#include "fs/operator.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/strbuf.h"
#include "lib/vec.h"
#include "options.h"

#define LIST_LIMIT (1u << 30)

static void add_path(struct make_paths *paths, const char *text)
{
	char *path = xmalloc(strlen(text) + 2);
	size_t length;

	fs_clean_path(path, text);
	length = strlen(path);
	while (length && path[length - 1] == '/')
		path[--length] = '\0';
	if (!strcmp(path, "."))
		*path = '\0';
	vec_push(&paths->paths, path);
}

/* Lines end in LF, CR or NUL; with -0 only in NUL. Comments are skipped in either case, as in --files-from. */
static void split(const struct options *options, struct strbuf *text, struct make_paths *paths)
{
	char *at = text->data, *end = text->data + text->length;

	while (at < end) {
		size_t length = options->from0 ? strlen(at) : strcspn(at, "\r\n");

		at[length] = '\0';
		if (*at && *at != '#' && *at != ';')
			add_path(paths, at);
		at += length + 1;
	}
}

void make_paths_read(const struct options *options, struct make_paths *paths)
{
	const char *file = options->attr_refresh;
	struct strbuf text = STRBUF_INIT;
	int result = !strcmp(file, "-") ? fs_read_all(STDIN_FILENO, LIST_LIMIT, &text)
					: fs_operator_read(file, 0, LIST_LIMIT, &text);

	if (result < 0) {
		log_errno(L_ERROR, errno, "failed to open attr-refresh file %s", file);
		exit_with(EXIT_FILEIO);
	}
	if (text.data)
		split(options, &text, paths);
	strbuf_free(&text);
}

void make_paths_free(struct make_paths *paths)
{
	for (size_t i = 0; i < paths->paths.count; i++)
		free(paths->paths.items[i]);
	vec_free(&paths->paths);
}
