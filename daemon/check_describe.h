/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The description of a configuration that --config-check prints on standard output, unless --quiet is given. */
#ifndef DAEMON_CHECK_DESCRIBE_H
#define DAEMON_CHECK_DESCRIBE_H

#include "daemon/check_findings.h"

void check_describe_daemon(const struct check *check);
void check_describe_module(const struct subject *subject);

#endif
