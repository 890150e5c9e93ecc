/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file list: base directories, and the paths of nodes and entries. */
#ifndef FLIST_PATHS_H
#define FLIST_PATHS_H

#include "flist.h"

/* Transfer path of a node ("" for node 0) or of an entry, appended to `out` after a reset. */
void flist_dir_path(const struct flist *list, int32_t node, struct strbuf *out);
void flist_entry_path(const struct flist *list, int32_t node, const struct entry *entry, struct strbuf *out);
/* The same as messages show it: CWD-absolute outside daemons, "NAME" module-relative inside ("\"/x\" (in mod)" is made by
 * flist_quote). */
void flist_quote(const struct flist *list, int32_t node, const struct entry *entry, struct strbuf *out);
/* doc/protocol/06-command-line.md section 8.8 %f */
void flist_shown_name(const struct flist *list, int32_t node, const struct entry *entry, struct strbuf *out);
/* The transfer name of what an index points to, and where its content or attributes are. */
void flist_pos_path(const struct flist *list, const struct flist_pos *pos, struct strbuf *out);
/* The same as flist_shown_name says it. */
void flist_pos_shown_name(const struct flist *list, const struct flist_pos *pos, struct strbuf *out);
/* The same with the leading slash of an operand that has one. */
void flist_pos_operand_name(const struct flist *list, const struct flist_pos *pos, struct strbuf *out);
struct attr_source *flist_pos_source(struct flist *list, const struct flist_pos *pos, struct strbuf *path);
/* Source and path below it to open an entry's content with. */
struct attr_source *flist_entry_source(struct flist *list, int32_t node, const struct entry *entry, struct strbuf *path);

/* Index into bases of `path` (taken over). */
uint16_t flist_add_base(struct flist *list, char *path);
/* The source to read `base` with, and the path below it of transfer path `transfer`. */
struct attr_source *flist_base_source(struct flist *list, uint16_t base, const char *transfer, struct strbuf *path);

#endif
