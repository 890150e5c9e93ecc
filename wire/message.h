/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The messages of a multiplexed connection, as wire.c sends and takes them. Only wire/ includes this. */
#ifndef WIRE_MESSAGE_H
#define WIRE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

enum length_rule { REFUSED, TEXT, NAME, INT32, INT64, EMPTY, EXIT_CODE };

struct message_rule {
	enum message_code code;
	enum length_rule receive;
	int send_from;              /* first protocol whose peers know the code; 0: never sent */
	enum message_code instead;  /* below that; MSG_DATA: dropped */
};

/* NULL: there is no such message. */
const struct message_rule *message_rule(int code);

/* End the process unless a frame with this code and length may come from a peer. */
void message_check(const struct wire *wire, int code, size_t length);

/* Bring the number of a message into its range before anybody sees it. */
void message_bound(int code, uint8_t *payload);

/* The longest text that every release speaking the protocol takes. */
size_t message_text_max(int protocol);

#endif
