/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a server reports to its client. */
#ifndef CONTENTS_SERVE_H
#define CONTENTS_SERVE_H

#include "contents/pull.h"

/* What the client of a service is told of items and deletions, the latter from protocol 29 on: notify_item, notify_deletion. */
void serve_item(struct contents *contents, int32_t node, const struct entry *entry, uint32_t flags, const char *link);
void serve_deletion(struct contents *contents, const char *path, bool is_dir);

#endif
