/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The 11 columns of %i and the log formats (doc/protocol/03-transfer.md section 9.2, doc/protocol/06-command-line.md
 * sections 8.7 and 8.8).
 */
#ifndef UI_ITEMIZE_H
#define UI_ITEMIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/strbuf.h"

struct item_look {
	uint32_t flags;       /* ITEM_* */
	uint32_t mode;        /* st_mode of the entry */
	bool times_kept;      /* -t in force for this type */
	bool sends;           /* '<' instead of '>': data goes to a remote side */
	bool unknown;         /* a protocol without item flags */
};
/* 12 bytes with the NUL. */
void itemize(const struct item_look *look, char out[12]);

/* Everything a format escape can show; NULL strings where there is nothing. */
struct format_values {
	struct item_look look;
	const char *name;        /* %n, without the trailing slash of directories */
	const char *shown;       /* %f */
	const char *link;        /* " -> x" or " => x" target, with link_is_hard */
	bool link_is_hard;
	bool is_deletion;
	uint64_t length, transferred, checksum_bytes;
	int64_t mtime;
	uint32_t uid, gid;
	bool group_not_kept;     /* %G shows DEFAULT */
	const uint8_t *digest;   /* %C, NULL: blanks */
	int digest_length;
	/* daemon */
	const char *address, *host, *module, *module_path, *user;
	int pid;
	const char *operation;   /* "send", "recv", "del." */
};
/* Expand `format` into out (appended, no newline). doc/protocol/06-command-line.md section 8.8. */
void format_expand(const char *format, const struct format_values *values, struct strbuf *out);
bool format_uses(const char *format, char letter);

#endif
