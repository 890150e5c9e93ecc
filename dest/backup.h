/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * --backup: what is replaced or deleted stays under another name (doc/protocol/03-transfer.md section 7.7,
 * doc/protocol/06-command-line.md section 11.7): NAME with a suffix in its own directory, or its path below --backup-dir. Any
 * thread, once dest_backups_begin is through.
 */
#ifndef DEST_BACKUP_H
#define DEST_BACKUP_H

#include <stdbool.h>

struct dest;
struct task;

/* After the destination has been chosen: look at the backup directory. Ends the process where it cannot be one. */
void dest_backups_begin(struct dest *dest);
void dest_backups_free(struct dest *dest);

/* LINK: the old name stays until it is replaced. RENAME: it may go at once. COPY: the old file itself will be written to. */
enum backup_way { BACKUP_LINK, BACKUP_RENAME, BACKUP_COPY };

/* An object of a directory of the destination. */
struct backup_of {
	struct dest *dest;
	struct task *task;    /* messages are events of it; NULL: the main thread says them */
	const char *role;
	int dir_fd;
	const char *dir_path; /* in the transfer */
	const char *name;
};

/* Without --backup, or where there is nothing, or a directory: nothing to do. false: there is no backup, said so; errno. */
bool dest_back_up(const struct backup_of *of, enum backup_way way);
/* Would the backup be the object's own directory's, and is it one itself by its name? Such a one is just deleted. */
bool dest_is_backup_name(const struct dest *dest, const char *name);
/* The backup of a regular file, open for reading; -1 with errno. */
int dest_backup_open(const struct backup_of *of);

#endif
