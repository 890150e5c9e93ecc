/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Contents that are copied from files of this system. */
#ifndef CONTENTS_COPY_H
#define CONTENTS_COPY_H

#include "dest/contents.h"

struct local;
struct local_peer;

/* There is no peer. */
struct contents *contents_of_files(struct local *local, const struct local_peer *peer);

#endif
