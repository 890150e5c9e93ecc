/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names of the sources. */
#ifndef SENDER_NAMES_H
#define SENDER_NAMES_H

#include <stdint.h>

struct sender;

/* All source arguments and --files-from names into the list. */
void sender_read_names(struct sender *sender);
/* The peer has the file: --remove-source-files. */
void sender_remove_source(struct sender *sender, int32_t ndx);

#endif
