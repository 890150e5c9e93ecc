/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --copy-as: who touches the files, when root makes the connection. */
#ifndef OPTIONS_COPY_AS_H
#define OPTIONS_COPY_AS_H

#include "options.h"

/* Become that user, for good and in every thread; nothing without the option. Ends the process with EXIT_SYNTAX if there is no
 * such user or group, or this one may not. To be called when the files of the command line have been read. */
void copy_as_assume(const struct options *options);

#endif
