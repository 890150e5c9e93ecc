/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The options of a command line: a client's, a server's, and a daemon's client's (doc/protocol/06-command-line.md
 * sections 1 to 4).
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "attrs/entry.h"
#include "attrs/snapshot.h"
#include "delta/skip_list.h"
#include "filter/filter.h"
#include "lib/vec.h"
#include "ui/levels.h"
#include "wire/args.h"
#include "wire/session.h"
#include "wire/setup.h"

enum delete_when { DELETE_NEVER, DELETE_DEFAULT, DELETE_BEFORE, DELETE_DURING, DELETE_DELAY, DELETE_AFTER };
/* The operations on attr snapshots that take the place of a transfer. */
enum attr_mode { ATTR_MODE_NONE, ATTR_MODE_LIST, ATTR_MODE_VERIFY, ATTR_MODE_DIFF, ATTR_MODE_FROM_TREE, ATTR_MODE_TO_TREE };
#define INFO_NOT_GIVEN 0xff
/* --super and its kin: the last one counts. */
enum super_mode { SUPER_FAKE = -2, SUPER_NO = -1, SUPER_DEFAULT = 0, SUPER_YES = 1 };
/* The power of a process over attributes (doc/protocol/05-xattrs-acls.md section 5.4.1). */
enum super_level { LEVEL_NORMAL, LEVEL_ROOT, LEVEL_FAKE };
enum stderr_mode { STDERR_ERRORS, STDERR_ALL, STDERR_CLIENT };

/* One filter option, in command-line order; turned into rules by options_add_filters once the protocol is known. */
struct filter_option {
	enum { FOPT_RULE, FOPT_WORDS, FOPT_FILE, FOPT_SHORTCUT_F, FOPT_CVS } kind; /* WORDS: several rules, as in rsyncd.conf */
	enum filter_style style;
	char *text; /* rule, rules or file name */
	int times;  /* FOPT_SHORTCUT_F: which -F this is, 1 or 2 */
	bool from0; /* what --from0 was then: it holds for the files that are named behind it */
};

struct options {
	/* role */
	bool server, sender, daemon;
	bool by_protocol;        /* a local run has to be one of two ends: an option wants what only the protocol does */
	const char *destination; /* the sending half of a local run: where the other half writes, as given; else NULL */
	const char *client_info; /* server: value of -e as sent (".iLsfxCIvu", "31.7iL"), "" if none */
	bool secluded_args;
	int old_args;            /* paths are left to the remote shell to split (1), option values as well (2) */
	int max_protocol;

	/* output */
	int verbose, quiet;
	struct ui_levels levels; /* --info / --debug, after -v */
	uint8_t info_given[INFO_COUNT]; /* levels that --info named itself; INFO_NOT_GIVEN: left to -v */
	enum stderr_mode stderr_mode;
	bool stderr_mode_given;
	bool list_only_given;    /* by the option itself, not by a missing destination */
	bool motd, stats, list_only, dry_run, eight_bit_output;
	int human_readable; /* level of doc/protocol/06-command-line.md section 8.5, starts at 1 */
	bool progress;
	int itemize;              /* -i count; server: %i in --log-format is 1, %I 2 */
	const char *out_format;   /* NULL: none */
	const char *log_file, *log_file_format;
	/* Items without a transfer are reported: log format has %i, doc/protocol/03-transfer.md section 2.7 */
	bool log_format_has_i;

	/* what is transferred and preserved */
	int recursive;            /* 0; 1: implied by -a; 2: explicit -r */
	bool allow_inc_recurse;
	bool dirs, relative, implied_dirs;
	bool dirs_given;          /* by -d, not by what implies it */
	bool links, copy_links, copy_dirlinks, keep_dirlinks, copy_unsafe_links, safe_links, munge_links;
	const char *confine_root; /* where paths of options, and of a --files-from list, have to come out; NULL: anywhere */
	bool insecure_links;      /* every symlink in the operator's paths is followed */
	int hard_links;
	bool perms, executability, acls, owner, group, devices, specials, copy_devices, times;
	int xattrs, atimes;
	bool omit_dir_times, omit_link_times, open_noatime, numeric_ids, sparse, preallocate;
	int one_file_system;
	struct chmod_rules *chmod; /* NULL: none (ui-independent, see fs/chmod.h) */
	struct chmod_rules *incoming_chmod; /* of a daemon's module: changes the modes that all else has led to */
	bool use_qsort;
	const char *usermap, *groupmap; /* also of --chown; NULL: none */
	const char *copy_as;      /* USER[:GROUP] who touches the files; NULL: this process's user */
	int super;                /* enum super_mode */
	bool write_devices, drop_devices;

	/* selection and deletion */
	bool checksum, ignore_times, size_only, update, existing, ignore_existing;
	bool remove_source_files, remove_sent_files; /* the older word sets both */
	int64_t max_size, min_size; /* -1: none */
	int modify_window;
	bool modify_window_given;
	VEC(struct filter_option) filters;
	bool cvs_exclude;
	const char *files_from;     /* file name as given, NULL if none */
	bool files_from_remote;     /* ":path" / "host:path" on a client; on a server: "-" means streamed by the client */
	const char *files_from_path; /* client: the server's file, behind the colon; NULL: the list is a file of ours */
	bool from0, prune_empty_dirs;
	enum delete_when delete_when;
	bool delete_excluded, delete_missing_args, ignore_missing_args, force, ignore_errors;
	int max_delete;             /* -1: no limit */
	bool mkpath;
	bool backup, partial, delay_updates;  /* known to a server sender for protocol behaviour only */
	int fuzzy, alt_dests;
	bool has_partial_dir;
	const char *partial_dir, *backup_dir, *temp_dir; /* NULL: none; see also delay_updates */
	const char *suffix;          /* NULL: the default, "~", or "" with a backup_dir */
	const char *alt_dest_kind;   /* "compare-dest", "copy-dest", "link-dest": what alt_dest_dirs are */
	VEC(const char *) alt_dest_dirs;

	/* mechanics */
	int whole_file;             /* -1 default, 0, 1 */
	bool inplace;
	int append;                 /* 0, 1 append, 2 append-verify */
	bool fsync;
	bool compress;
	const char *compress_choice; /* NULL: negotiate */
	int compress_level;
	bool compress_level_set;
	int compress_threads;        /* as typed, bounded where they are made */
	bool compress_letter;        /* client: requested in a way that is sent to a server as -z */
	const char *skip_compress_text, *max_alloc_text; /* as typed, NULL: not given */
	bool only_write_batch;
	const char *write_batch, *read_batch; /* the files; NULL: none */
	struct skip_list *skip_compress; /* NULL: option not given */
	const char *checksum_choice;
	int32_t checksum_seed;
	uint32_t block_size;
	uint32_t bwlimit;           /* KiB/s */
	int timeout;
	time_t stop_at;             /* 0: none */
	const char *iconv;          /* NULL: none; the local charset spec */
	size_t max_alloc;           /* 0: the built-in ceiling; a server's client can only lower it (S-005) */

	/* the connection of a client */
	const char *rsh;             /* -e; NULL: RSYNC_RSH, else ssh */
	const char *rsync_path;      /* NULL: "rsync" */
	VEC(const char *) remote_options;
	bool trust_sender;
	int contimeout;              /* seconds, 0: not given, below: none, but for a daemon only */
	const char *password_file, *early_input;

	/* ours */
	bool only_send_attrs;
	const char *attr_snapshot;  /* made of SRC (one operand) or of DEST (two); or converted (FROM_TREE, TO_TREE) */
	const char *attr_refresh;   /* "dirs", or the file with the list of paths, "-": standard input; NULL: a full scan */
	unsigned attr_digests;      /* enum attr_digest: which to store */
	enum attr_mode attr_mode;   /* operands are then the mode's own, none of them remote */

	/* a daemon's sockets, and a client's to a daemon */
	const char *address, *sockopts;
	int port;                   /* 0: not given */
	int ip_family;              /* 0, 4, 6 */

	/* daemon mode */
	bool detach;                /* default true */
	bool sandbox;               /* of a daemon's sessions; default true */
	const char *config_file;
	bool config_check;
	bool status;                /* print the status of the running daemon */
	bool refresh_attrs;         /* bring the attr trees and snapshots of modules (the operands; none: all) up to date */
	bool no_wait;               /* ... and leave what another process is refreshing to that */
	VEC(char *) dparams;

	/* operands: what is left after the options; on a server without the "." word that ends the options */
	struct args operands;

	/* The error text of options_parse is printed as it stands, without "rsync: " in front (doc/protocol/06-command-line.md
	 * section 1.6). */
	bool error_is_bare;
	/* Private to options*.c: what was said, -1 if neither an option nor its negation was; what later words may still
	 * change, and the memory behind the strings above. */
	struct { int dirs, relative, secluded, versions; bool old_args; } said;
	struct option_parse *parse;
};

/* The options that a daemon module refuses (options/refuse.h); NULL: none. */
struct refused_options;

enum options_result { OPTIONS_OK, OPTIONS_ERROR, OPTIONS_EXIT };

/*
 * Parse argv (argv[0] is a program name) into *options, which is initialised here and freed with options_free whatever the
 * result. All strings are copied: argv may go away. Positional words go to `operands`.
 * OPTIONS_ERROR: *code and a malloc'ed *error (without "rsync: " prefix and final newline; a second line is a hint to the
 * user); nothing has been printed. What stood before the faulty word has been parsed: doc/protocol/07-daemon.md section 5.22
 * wants no more. OPTIONS_EXIT: help or version has been printed, end with *code. A server's option words end at the first "."
 * (S-109). `refused` non-NULL marks a daemon's client: daemon options are "Attempt to hack rsync thwarted!", --version, --help
 * and --copy-as are refused.
 */
enum options_result options_parse(struct options *options, int argc, char **argv, const struct refused_options *refused,
				  char **error, int *code);

/*
 * A server whose words have set `secluded_args`: parse the block (args_read_secluded) on top of them; argv[0] is again a
 * program name. The final checks are made here and not in options_parse. To be called at most once; an -s or --no-s in the
 * block has no effect (S-110). Results as above.
 */
enum options_result options_parse_secluded(struct options *options, int argc, char **argv,
					   const struct refused_options *refused, char **error, int *code);
void options_free(struct options *options);

/* Does a receiving side with these need the whole list before it starts, which rules out incremental recursion? */
bool options_need_whole_list(const struct options *options);

/* The level of this process with these options. */
enum super_level options_super_level(const struct options *options);

/* Build the filter rules of the command line into `list`. with_cvs: those of -C as well; filter_send adds them itself. */
void options_add_filters(const struct options *options, struct filter_list *list, bool with_cvs);

/* Of a receiving server's options: what to say of the first that this build does not have, malloc'ed; NULL: it has them all.
 * Not an error of the parse, because other refusals of the session come first. */
char *options_receiving_lack(const struct options *options);

/* FS_ANY_LINKS for the operator's paths with --insecure-links, else 0. */
int options_link_flag(const struct options *options);
/* Whether --checksum has no digest to work with, as --checksum-choice=...,none was asked for (doc/protocol/02-file-list.md
 * section 2.11); and the error about it, which a server reports to its client. */
bool options_lack_list_digest(const struct options *options);
#define OPTIONS_NO_LIST_DIGEST "Invalid checksum-choice for --checksum: none (0)"

/* A path of the operator has been opened: `fd` as it is, or -1 with ELOOP (closed) if it came out beside --confine-root. -1
 * passes with its errno. */
int options_confine(const struct options *options, int fd);

/* Is the receiving side to do what only root can? */
bool options_act_as_root(const struct options *options);

/*
 * Then the rules that what the receiving side keeps beside its files needs to outlive a --delete (doc/protocol/03-transfer.md
 * section 7.5, doc/protocol/06-command-line.md section 3). `perishable`: partial files do not keep a directory from being
 * deleted.
 */
void options_protect_leftovers(const struct options *options, struct filter_list *list, bool perishable);
/* The directory of partial and delayed files; NULL: none. */
const char *options_partial_dir(const struct options *options);

/* Returns what the last line of the statistics adds for a run that has changed nothing: " (DRY RUN)", " (BATCH ONLY)" or "". */
const char *options_kind_of_end(const struct options *options);

/* The part of the options that the protocol set-up needs. */
void options_setup_request(const struct options *options, struct setup_request *request);

#endif
