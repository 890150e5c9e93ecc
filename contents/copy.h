/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Contents that are copied from files of this system. */
#ifndef CONTENTS_COPY_H
#define CONTENTS_COPY_H

#include "dest/contents.h"

struct receiver;
struct receiver_peer;

/* There is no peer. */
struct contents *contents_of_files(struct receiver *receiver, const struct receiver_peer *peer);

#endif
