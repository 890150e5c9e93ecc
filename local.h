/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The local engine: makes a destination tree equal to the sources with worker threads and no protocol. */
#ifndef LOCAL_H
#define LOCAL_H

#include "options.h"

/* Operands: sources and, last, the destination (or one source: list it). Returns the exit code. */
int local_main(struct options *options);

#endif
