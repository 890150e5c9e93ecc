/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The method lz4 of the token stream (doc/protocol/03-transfer.md section 6.6). */
#ifndef DELTA_TOKEN_LZ4_H
#define DELTA_TOKEN_LZ4_H

#include "delta/token_codec.h"

const struct token_codec *token_codec_lz4(void);

#endif
