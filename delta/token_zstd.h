/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The method zstd of the token stream (doc/protocol/03-transfer.md section 6.5). */
#ifndef DELTA_TOKEN_ZSTD_H
#define DELTA_TOKEN_ZSTD_H

#include "delta/token_codec.h"

const struct token_codec *token_codec_zstd(void);

#endif
