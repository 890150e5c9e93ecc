/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The primitive encodings of the protocol (doc/protocol/01-session.md section 8), bounded where they are read. Included by
 * wire/wire.h, which says how readers end.
 */
#ifndef WIRE_PRIMITIVES_H
#define WIRE_PRIMITIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire;

/* --- writing --- */
void wire_write_byte(struct wire *wire, uint8_t value);
void wire_write_short(struct wire *wire, uint16_t value);
void wire_write_int(struct wire *wire, int32_t value);
void wire_write_varint(struct wire *wire, int32_t value);
void wire_write_vint30(struct wire *wire, int32_t value);                 /* int below protocol 30, else varint */
void wire_write_vlong30(struct wire *wire, int64_t value, int min_bytes); /* longint below 30, else varlong */
void wire_write_vstring(struct wire *wire, const void *bytes, size_t length); /* length <= 32767 */
void wire_write_ndx(struct wire *wire, int32_t ndx);

/* --- reading --- */
uint8_t wire_read_byte(struct wire *wire);
uint16_t wire_read_short(struct wire *wire);
int32_t wire_read_int(struct wire *wire);
int64_t wire_read_longint(struct wire *wire);
int32_t wire_read_varint(struct wire *wire);
int64_t wire_read_varlong(struct wire *wire, int min_bytes);
int32_t wire_read_vint30(struct wire *wire);
int64_t wire_read_vlong30(struct wire *wire, int min_bytes);
/* A field that must lie in low..high, else EXIT_PROTOCOL "wire value FIELD out of range: N not in [LOW,HIGH] [ROLE]". */
int32_t wire_read_varint_range(struct wire *wire, int32_t low, int32_t high, const char *field);
/* Into buf (size bytes, NUL-terminated); longer or with a NUL inside: EXIT_PROTOCOL. Returns the length. */
size_t wire_read_vstring(struct wire *wire, char *buf, size_t size, const char *field);
/* Any ndx value (doc/protocol/01-session.md section 8.7); the caller's role checks what is legal there. */
int32_t wire_read_ndx(struct wire *wire);
/* Bytes of a line up to and without `stop1` or `stop2`, into buf; false at end of file before any stop byte. A NUL inside
 * (unless a stop byte) or a line that does not fit: returns false with *too_bad set. Raw (text phase, arguments). When LF
 * stops and CR does not, CRs are dropped (doc/protocol/01-session.md section 3). -1: no second stop byte. */
bool wire_read_line(struct wire *wire, char *buf, size_t size, int stop1, int stop2, bool *too_bad);

#define NDX_DONE (-1)
#define NDX_FLIST_EOF (-2)
#define NDX_DEL_STATS (-3)
#define NDX_FLIST_OFFSET (-101)

#endif
