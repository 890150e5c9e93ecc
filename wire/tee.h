/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tee of what goes out; that of what comes in needs no more than a call (wire.c). Only wire/ includes this. */
#ifndef WIRE_TEE_H
#define WIRE_TEE_H

#include <sys/uio.h>

#include "wire/wire.h"

/* Hand on the data among bytes that go out, frames and all if there are any. */
void wire_tee_output(struct wire *wire, const struct iovec *iov, int count);

#endif
