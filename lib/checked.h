/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arithmetic on numbers that may come from a peer: false instead of wrapping. */
#ifndef LIB_CHECKED_H
#define LIB_CHECKED_H

#define checked_add(a, b, result) (!__builtin_add_overflow((a), (b), (result)))
#define checked_sub(a, b, result) (!__builtin_sub_overflow((a), (b), (result)))
#define checked_mul(a, b, result) (!__builtin_mul_overflow((a), (b), (result)))

#endif
