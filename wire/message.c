/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The table of messages: which may be sent at which protocol, and what may come (doc/protocol/01-session.md
 * sections 9.3 and 9.6).
 */
#include "wire/message.h"

#include "lib/exit.h"
#include "lib/log.h"
#include "wire/internal.h"

static const struct message_rule rules[] = {
	{ MSG_ERROR_XFER, TEXT, 27, MSG_DATA },
	{ MSG_INFO, TEXT, 27, MSG_DATA },
	{ MSG_ERROR, TEXT, 30, MSG_ERROR_XFER },
	{ MSG_WARNING, TEXT, 30, MSG_INFO },
	{ MSG_ERROR_SOCKET, REFUSED, 0, MSG_DATA },
	{ MSG_LOG, REFUSED, 0, MSG_DATA },
	{ MSG_CLIENT, REFUSED, 0, MSG_DATA },
	{ MSG_ERROR_UTF8, REFUSED, 0, MSG_DATA },
	{ MSG_REDO, REFUSED, 0, MSG_DATA },
	{ MSG_STATS, REFUSED, 0, MSG_DATA },
	{ MSG_BLOCK_STATS, INT64, 33, MSG_DATA },
	{ MSG_IO_ERROR, INT32, 30, MSG_DATA },
	{ MSG_IO_TIMEOUT, INT32, 31, MSG_DATA },
	{ MSG_NOOP, EMPTY, 0, MSG_DATA },
	{ MSG_ERROR_EXIT, EXIT_CODE, 31, MSG_DATA },
	{ MSG_SUCCESS, INT32, 27, MSG_DATA },
	{ MSG_DELETED, NAME, 29, MSG_DATA },
	{ MSG_NO_SEND, INT32, 30, MSG_DATA },
};

const struct message_rule *message_rule(int code)
{
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if ((int)rules[i].code == code)
			return &rules[i];
	return NULL;
}

void message_check(const struct wire *wire, int code, size_t length)
{
	const struct message_rule *rule = message_rule(code);
	bool good = false;

	/* doc/protocol/09-since-3.5.0.md section 2.2: to an older session it is an unknown code. */
	if (!rule || (code == MSG_BLOCK_STATS && wire->protocol < rule->send_from))
		die(EXIT_STREAMIO, "unexpected tag %d [%s]", code, log_role());
	switch (rule->receive) {
	case TEXT:
	case NAME:
		if (length > TEXT_MAX)
			die(EXIT_STREAMIO, "multiplexing overflow %d:%zu [%s]", code, length, log_role());
		good = true;
		break;
	case INT32:
		good = length == 4 && !(code == MSG_IO_TIMEOUT && wire->is_server);
		break;
	case INT64:
		good = length == 8 && wire->is_sender;
		break;
	case EMPTY:
		good = length == 0;
		break;
	case EXIT_CODE:
		good = length == 0 || length == 4;
		break;
	case REFUSED:
		break;
	}
	if (!good)
		die(EXIT_STREAMIO, "invalid multi-message %d:%zu [%s]", code, length, log_role());
}

void message_bound(int code, uint8_t *payload)
{
	uint32_t value = get_le32(payload);

	if (code == MSG_IO_ERROR)
		put_le32(payload, value & 7);
	else if (code == MSG_ERROR_EXIT)
		put_le32(payload, value & 0xff);
	else if ((int32_t)value < 0)
		die(EXIT_PROTOCOL, "wire value %s index out of range: %d", code == MSG_SUCCESS ? "success" : "no-send",
		    (int32_t)value);
}

size_t message_text_max(int protocol)
{
	return protocol < 29 ? 1023 : protocol < 30 ? 4096 : TEXT_MAX;
}
