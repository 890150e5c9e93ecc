/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --attr-verify */
#ifndef SNAPSHOT_VERIFY_H
#define SNAPSHOT_VERIFY_H

struct options;

int snapshot_verify_main(struct options *options);

#endif
