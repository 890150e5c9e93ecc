/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What --config-check says of a configuration on standard output, but with --quiet. */
#ifndef DAEMON_CHECK_DESCRIBE_H
#define DAEMON_CHECK_DESCRIBE_H

#include "daemon/check_findings.h"

void check_describe_daemon(const struct check *check);
void check_describe_module(const struct subject *subject);

#endif
