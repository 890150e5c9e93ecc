/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The weak rolling checksum, doc/protocol/03-transfer.md section 4.1. */
#ifndef DELTA_ROLLING_H
#define DELTA_ROLLING_H

#include <stddef.h>
#include <stdint.h>

/* s1 | s2 << 16 over signed bytes; vectorised where the compiler gives it, and further where the processor has AVX2. */
uint32_t rolling_compute(const void *data, size_t length);
/* The same as any machine does it. */
uint32_t rolling_compute_portably(const void *data, size_t length);

#endif
