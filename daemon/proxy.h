/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The header with which a proxy says for whom it connects, versions 1 and 2 (protocol/07 section 5.3). */
#ifndef DAEMON_PROXY_H
#define DAEMON_PROXY_H

#include <stddef.h>
#include <stdint.h>

#define PROXY_ADDRESS_SIZE 64
#define PROXY_HEADER_MAX 552 /* of version 2, with 536 bytes behind the fixed part; version 1 has at most 107 */

enum proxy_result {
	PROXY_MORE,    /* the header goes on */
	PROXY_ADDRESS, /* that was its last byte: the client's address is known */
	PROXY_UNKNOWN, /* that was its last byte: it does not say who the client is */
	PROXY_BAD,     /* no header */
};

/* Judge the first bytes of a connection. Called with one byte more each time, so that nothing of the client's is consumed. */
enum proxy_result proxy_parse(const uint8_t *bytes, size_t length, char address[PROXY_ADDRESS_SIZE]);

#endif
