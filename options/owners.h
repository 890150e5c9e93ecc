/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The rules of --usermap and --groupmap, to which --chown amounts: FROM:TO pairs between commas, of which the first that
 * matches counts (doc/protocol/02-file-list.md section 4.4). FROM is an id, a range of ids, a name with or without wildcards,
 * or empty for ids that have no name; TO is an id or a name of this machine.
 */
#ifndef OPTIONS_OWNERS_H
#define OPTIONS_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/ids.h"

struct id_rules;
struct option_parse;
struct options;

/*
 * `text`: the option's value; NULL gives NULL. Pairs with a TO that is no name of this machine (as `ids` knows it) are
 * reported and left out; text that is no list of pairs ends the process with EXIT_SYNTAX.
 */
struct id_rules *id_rules_new(bool groups, const char *text, struct fs_ids *ids);
void id_rules_free(struct id_rules *rules);
/* Does a rule match the id whose name is `name` ("": none)? Then *mapped is what it becomes. NULL rules match nothing. */
bool id_rules_apply(const struct id_rules *rules, uint32_t id, const char *name, uint32_t *mapped);

/* The setters of these options (option_setter). */
bool set_owner_map(struct option_parse *parse); /* value: is it the groups'? */
bool set_chown(struct option_parse *parse);

/*
 * --copy-as: become that user, for good and in every thread; nothing without the option. Ends the process with EXIT_SYNTAX if
 * there is no such user or group, or this one may not. To be called when the files of the command line have been read.
 */
void copy_as_assume(const struct options *options);

#endif
