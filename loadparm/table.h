/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parameters this build knows, their types, defaults and places (doc/protocol/07-daemon.md section 3). */
#ifndef LOADPARM_TABLE_H
#define LOADPARM_TABLE_H

#include "loadparm.h"

struct parameter {
	const char *name;
	enum {
		P_STRING, P_PATH, P_BOOL, P_TRISTATE, P_INTEGER, P_FACILITY, P_FALLBACK,
		P_SIZE,        /* bytes, at least a mebibyte; K, M or G behind the number count in powers of 1024 */
		P_REFUSED,     /* in no manual; renames a module behind the back of its own header */
	} type;
	bool global;   /* belongs to the daemon as a whole, not to a module */
	bool listener; /* counts only before the first section */
	size_t offset; /* in struct config_globals or struct module */
	int low, high; /* P_INTEGER */
};

/* By rsyncd.conf's comparison of names, as it is meant inside of a module's section or outside; NULL if nobody knows it. */
const struct parameter *parameter_find(const char *name, bool in_module);

/* All defaults, the strings owned by `config`. */
void parameters_set_defaults(struct config *config);

/*
 * Set the parameter in `base` (the globals or a module) from its text. On a malformed value nothing changes, false is returned
 * and `why` says what is wrong with it.
 */
bool parameter_set(struct config *config, void *base, const struct parameter *parameter, const char *text, struct strbuf *why);

/* A copy of the text that lives as long as the configuration. */
char *config_keep(struct config *config, const char *text);

#endif
