/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The run that makes an attr snapshot of a directory, or refreshes one: --attr-snapshot=FILE SRC/. */
#ifndef SNAPSHOT_MAKE_H
#define SNAPSHOT_MAKE_H

struct options;

/* The exit code: 23 and 24 as of a transfer (the snapshot has been written all the same), 11 if it could not be written. */
int snapshot_make_main(struct options *options);

#endif
