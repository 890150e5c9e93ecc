/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names and rules of a run (main thread). */
#ifndef RECEIVER_SOURCES_H
#define RECEIVER_SOURCES_H

struct run;

/* Read the list of --files-from, at most once; ends the program if it cannot be. */
void run_load_names(struct run *run);
/* The sources of a list that is made here. */
void run_add_arguments(struct run *run);
/* A list of names that lies here and is wanted by the peer. */
void run_send_files_from(struct run *run);

/* The filter rules of both sides; at most once. */
void run_read_rules(struct run *run);
/* Which extended attributes are read and kept, by those rules. */
void run_make_xattr_policies(struct run *run);

#endif
