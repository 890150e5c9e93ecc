/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The reading thread of a pull. */
#ifndef CONTENTS_RECEIVE_H
#define CONTENTS_RECEIVE_H

#include "contents/pull.h"

void *pull_read(void *pull_void);
/* The handler of wire_set_message_handler; context: the struct pull. */
void pull_message(void *pull_void, enum message_code code, const uint8_t *payload, size_t length);

#endif
