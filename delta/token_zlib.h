/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The methods zlib and zlibx of the token stream (doc/protocol/03-transfer.md sections 6.3 and 6.4). */
#ifndef DELTA_TOKEN_ZLIB_H
#define DELTA_TOKEN_ZLIB_H

#include "delta/token_codec.h"

/* zlib is the old method, which has blocks in its history, too. */
const struct token_codec *token_codec_zlib(void);
const struct token_codec *token_codec_zlibx(void);

#endif
