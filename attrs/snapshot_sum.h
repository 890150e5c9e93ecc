/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sums of an attr snapshot, XXH3 of 64 bits, as fast as the processor can. For reader and writer. */
#ifndef ATTRS_SNAPSHOT_SUM_H
#define ATTRS_SNAPSHOT_SUM_H

#include <xxhash.h>
/* Only a library that chooses its code by processor comes with this header, which puts that code behind the usual names. */
#if __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

#endif
