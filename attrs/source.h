/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where a file list comes from: a live tree, an attr tree (its regular files hold sizes, contents lie below another root),
 * or a snapshot (attrs/snapshot.h). flist.c asks for the entries of one directory or one object; sender.c and receiver.c ask
 * for content. Neither can see which kind it is.
 */
#ifndef ATTRS_SOURCE_H
#define ATTRS_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "attrs/source_content.h"
#include "fs/file.h"
#include "lib/strbuf.h"

/* What stands before the target of a symlink that is to lead nowhere (doc/protocol/08-security.md section 4.6). */
#define MUNGE_PREFIX "/rsyncd-munged/"
#define MUNGE_UNSAFE "Symlink munging is unsafe when a /rsyncd-munged directory exists."
/* Is there such a directory, so that munged symlinks would lead somewhere? */
bool attrs_munging_is_unsafe(void);

/* Options of a scan, fixed for a session. */
struct scan_options {
	bool links;              /* -l: read symlink targets */
	bool hard_links;         /* -H: note dev and ino */
	bool origins;            /* note dev, ino and ctime of every regular file (images) */
	bool atimes;             /* -U */
	bool copy_links;         /* -L */
	bool copy_dirlinks;      /* -k */
	bool copy_unsafe_links;
	bool copy_devices;
	int one_file_system;     /* -x count */
	bool ignore_nonreadable; /* daemon parameter */
	bool munge_symlinks;     /* strip the /rsyncd-munged/ prefix from targets */
	bool log_copied_unsafe;  /* INFO_SYMSAFE: "copying unsafe symlink" */
	bool log_mounts;         /* INFO_MOUNT: "skipping mount-point dir" */
	/* Is this name left out? Called before any stat; is_dir is known from the directory or a stat. */
	bool (*excluded)(void *context, const char *path, bool is_dir);
	void *context;
};

enum scan_result {
	SCAN_OK,
	SCAN_ERROR,    /* logged; IOERR_GENERAL */
	SCAN_VANISHED, /* logged; IOERR_VANISHED */
	SCAN_MISSING,  /* attr_source_entry only: it cannot be looked at, errno says why; not logged */
};

/*
 * Append the entries of directory `path` (below attr_root) to `list`, unsorted. `transfer_dir` is its name in the transfer
 * ("" for the root), used for filters and messages. Errors of single names are logged and collected in *io_error (IOERR_*).
 */
enum scan_result attr_source_scan(struct attr_source *source, const struct scan_options *options, const char *path,
				  const char *transfer_dir, struct entries *list, int *io_error);

/* The same of a directory that the caller has opened, and which is closed; dir_fd < 0: errno says why it could not be opened.
 * With SCAN_ERROR and SCAN_VANISHED errno says why. Not for a snapshot. */
enum scan_result attr_source_scan_at(struct attr_source *source, const struct scan_options *options, int dir_fd,
				     const char *path, const char *transfer_dir, struct entries *list, int *io_error);

/* One object named `name` (entry name) at `path`; `transfer`: its name in the transfer. follow: as for dot arguments and
 * implied parents. */
enum scan_result attr_source_entry(struct attr_source *source, const struct scan_options *options, const char *path,
				   const char *transfer, const char *name, bool follow, struct entries *list, int *io_error);

/*
 * What a path below attr_root is, for arguments and their wildcards: from the snapshot where there is one, and then with
 * size, times, owner, mode and nothing else. follow: a symlink stands for its target. 0, or -1 with errno.
 */
int attr_source_stat(struct attr_source *source, const char *path, bool follow, struct fs_stat *st);

/* Names of one directory, for wildcards. */
struct attr_names {
	struct fs_dir live;      /* not a snapshot */
	struct entries view;
	uint32_t next;
	bool is_view;
};
int attr_source_names(struct attr_source *source, const char *path, struct attr_names *names); /* 0, or -1 with errno */
/* As fs_dir_next; of a snapshot in wire order. */
int attr_names_next(struct attr_names *names, struct fs_dirent *name);
void attr_names_finish(struct attr_names *names);

/*
 * Entries of a directory without copying them: with a snapshot, if every one of them is wanted as it stands. false, *view
 * as it was and nothing said: attr_source_scan does it. dir: its number in the snapshot if the caller knows it (then nobody
 * needs `path`), else SNAPSHOT_DIR_UNKNOWN. transfer_dir is only for filters. What the options do not ask for
 * (ENTRY_HARD_LINKED, ENTRY_MOUNT, targets) is in the view nevertheless.
 */
#define SNAPSHOT_DIR_UNKNOWN UINT32_MAX
bool attr_source_view(struct attr_source *source, const struct scan_options *options, uint32_t dir, const char *path,
		      const char *transfer_dir, struct entries *view);

/* Append the path as messages quote it: "/x/y" in double quotes, and (in MODULE) on a daemon. */
void attr_source_quote(const struct attr_source *source, const char *path, struct strbuf *out);

#define ATTR_FILE_SIZE 8
void attr_file_encode(uint8_t out[ATTR_FILE_SIZE], uint64_t size); /* unsigned little-endian */
uint64_t attr_file_decode(const uint8_t in[ATTR_FILE_SIZE]);

#endif
