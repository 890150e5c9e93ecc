/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The other end of a connection: its address and its name, and the proxy that may stand before it. Clients as a listener
 * distinguishes them before they have sent anything; how often each connects, and fails to log in.
 */
#ifndef DAEMON_PEER_H
#define DAEMON_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "loadparm.h"
#include "wire/wire.h"

struct guesses;
struct rates;

/*
 * What one client is counted by: an IPv4 address, or an IPv6 /64, which is what one household or server has; of link-local
 * addresses, which all have the same, the other half.
 */
struct origin {
	sa_family_t family; /* AF_UNSPEC: nobody knows */
	uint8_t network[8];
};

/* peer NULL: one of many behind a proxy. */
struct origin origin_of(const struct sockaddr *peer);
/* Of a numeric address; of what is none, or 0.0.0.0: nobody knows. */
struct origin origin_of_address(const char *address);
bool origin_is_same(const struct origin *a, const struct origin *b);
/* For tables of clients: with a seed that nobody knows, nobody can choose who shares a place with whom. */
uint64_t origin_hash(const struct origin *origin, uint64_t seed);

/* When each client came last. Of a fixed size: if very many come, those that have come least are forgotten first. */
struct rates *rates_new(void);
/* Begin anew: what has been counted means nothing at another rate. */
void rates_forget(struct rates *rates);
/*
 * Count a connection at `now` (nanoseconds of a clock that only goes forward). false, and not counted: it would be one too
 * many for `per_minute`. Short bursts may use a minute's connections at once.
 */
bool rates_take(struct rates *rates, const struct origin *origin, int per_minute, int64_t now);

/*
 * Failed logins, by client: memory that a listener shares with its server processes. Who fails too often waits for the answer,
 * and only the one who fails: right passwords are never kept waiting.
 */
#define GUESSES_AT_ONCE 20        /* that are answered at once; one more is forgiven each second */
#define GUESS_SECONDS 1
#define GUESS_WAIT_MAX_SECONDS 30 /* less than a silent client may stay */

/* Ends the process if there is no memory. Lives as long as the process. */
struct guesses *guesses_new(void);
/*
 * A login from there has failed at `now` (nanoseconds of a clock that only goes forward): how many nanoseconds its answer has
 * to wait. Any number of processes may ask at once. guesses NULL: there is no listener that would remember; 0.
 */
int64_t guesses_failed(struct guesses *guesses, const struct origin *origin, int64_t now);

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
