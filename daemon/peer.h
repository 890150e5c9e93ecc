/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The other end of a connection: its address and its name, and the proxy that may stand before it. */
#ifndef DAEMON_PEER_H
#define DAEMON_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadparm.h"
#include "wire/wire.h"

struct peer {
	char address[64];     /* numeric; "0.0.0.0" if the connection has none */
	char real_name[101];  /* looked up and confirmed, "UNKNOWN", or "UNDETERMINED" if nobody wants to know */
	char name[101];       /* what is shown and matched at this stage */
};

void peer_from_socket(struct peer *peer, int fd);
void peer_from_shell(struct peer *peer);     /* the remote shell's environment, else descriptor 0 */
/* The proxy in front is allowed to speak and says who is there. false: the connection is to be closed. */
bool peer_from_proxy(struct peer *peer, const struct config_globals *globals, struct wire *wire);
void peer_look_up_name(struct peer *peer);   /* forward-confirmed; logs what is wrong */

/* --- the header with which a proxy says for whom it connects, versions 1 and 2 (doc/protocol/07-daemon.md section 5.3) --- */

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
