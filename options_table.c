/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every option of rsync(1), and ours: its spellings, where it works, what it sets (protocol/06 section 2). */
#include "options_parse.h"

#include <stdio.h>

#include "options_set.h"

#define F(member) offsetof(struct options, member)

/* Which note_only rows are spellings of one option. */
enum { NO_CRTIMES, BLOCKING };

/* The recurring shapes of a row. */
#define ON(name, letter, member, client, server, help) \
	{ name, letter, NO_ARG, set_flag, F(member), true, client, server, NULL, help }
#define OFF(name, letter, member, client, server) \
	{ name, letter, NO_ARG, set_flag, F(member), false, client, server, NULL, NULL }
#define COUNT(name, letter, member, client, server, help) \
	{ name, letter, NO_ARG, count_up, F(member), 0, client, server, NULL, help }
#define NUMBER(name, letter, member, value, client, server, help) \
	{ name, letter, NO_ARG, set_number, F(member), value, client, server, NULL, help }
#define PLAIN(name, letter, setter, value, client, server, help) \
	{ name, letter, NO_ARG, setter, 0, value, client, server, NULL, help }
#define TEXT(name, letter, setter, value, client, server, value_name, help) \
	{ name, letter, TEXT_ARG, setter, 0, value, client, server, value_name, help }
#define WORD(name, member, client, server, value_name, help) \
	{ name, 0, TEXT_ARG, set_text, F(member), 0, client, server, value_name, help }
#define INT(name, letter, setter, client, server) \
	{ name, letter, INT_ARG, setter, 0, 0, client, server, NULL, NULL }
#define END { NULL, 0, NO_ARG, NULL, 0, 0, HIDDEN, NOT_BUILT, NULL, NULL }

static const struct option_spec options[] = {
	/* output and control */
	COUNT("verbose", 'v', verbose, WORKS, ACTS, "say more; repeat for more still"),
	NUMBER("no-verbose", 0, verbose, 0, WORKS, ACTS, NULL),
	NUMBER("no-v", 0, verbose, 0, WORKS, ACTS, NULL),
	TEXT("info", 0, set_info, 0, WORKS, ACTS, "FLAGS", "choose what is told, word by word (--info=help)"),
	TEXT("debug", 0, set_debug, 0, WORKS, ACTS, "FLAGS", "choose what is traced, word by word (--debug=help)"),
	TEXT("stderr", 0, set_stderr_mode, 0, WORKS, ACTS, "e|a|c", "what goes to standard error: errors, all, client's way"),
	PLAIN("msgs2stderr", 0, set_stderr_number, STDERR_ALL, WORKS, ACTS, "same as --stderr=all"),
	PLAIN("no-msgs2stderr", 0, set_stderr_number, STDERR_CLIENT, WORKS, ACTS, NULL),
	COUNT("quiet", 'q', quiet, WORKS, ACTS, "tell errors only"),
	ON("motd", 0, motd, WORKS, USER_END, NULL),
	{ "no-motd", 0, NO_ARG, set_flag, F(motd), false, WORKS, USER_END, NULL,
	  "do not print what a daemon says on connecting" },
	ON("stats", 0, stats, WORKS, ACTS, "close with statistics"),
	COUNT("human-readable", 'h', human_readable, WORKS, USER_END, "numbers with units (-h alone: this help)"),
	NUMBER("no-human-readable", 0, human_readable, 0, WORKS, USER_END, NULL),
	NUMBER("no-h", 0, human_readable, 0, WORKS, USER_END, NULL),
	ON("progress", 0, progress, WORKS, USER_END, "show how far each file is"),
	OFF("no-progress", 0, progress, WORKS, USER_END),
	PLAIN(NULL, 'P', set_partial_progress, 0, WORKS, USER_END, "--partial and --progress"),
	COUNT("itemize-changes", 'i', itemize, WORKS, ACTS, "one line for each change, with what changed"),
	NUMBER("no-itemize-changes", 0, itemize, 0, WORKS, ACTS, NULL),
	NUMBER("no-i", 0, itemize, 0, WORKS, ACTS, NULL),
	TEXT("out-format", 0, set_out_format, 0, WORKS, ACTS, "FORMAT", "one line in this format for each change"),
	TEXT("log-format", 0, set_out_format, 0, WORKS, ACTS, NULL, NULL),
	TEXT("log-file", 0, set_log_file, 0, WORKS, ACTS, "FILE", "write to FILE what is done"),
	TEXT("log-file-format", 0, set_log_file_format, 0, WORKS, ACTS, "FORMAT", "... each change in this format"),
	ON("8-bit-output", '8', eight_bit_output, WORKS, USER_END, "print bytes above 127 in names as they are"),
	OFF("no-8-bit-output", 0, eight_bit_output, WORKS, USER_END),
	OFF("no-8", 0, eight_bit_output, WORKS, USER_END),
	ON("list-only", 0, list_only, WORKS, ACTS, "list the source instead of copying it"),
	ON("dry-run", 'n', dry_run, WORKS, ACTS, "change nothing, show what would be done"),
	TEXT("outbuf", 0, set_outbuf, 0, WORKS, USER_END, "N|L|B", "buffer the output: not, by lines, by blocks"),
	PLAIN("version", 'V', ask_version, 0, WORKS, USER_END, "show version and features (-VV: as JSON)"),
	PLAIN("help", 0, ask_help, 0, WORKS, USER_END, "show this"),

	/* what is transferred, and what of it is kept */
	PLAIN("archive", 'a', set_archive, 0, WORKS, ACTS, "-rlptgoD"),
	NUMBER("recursive", 'r', recursive, 2, WORKS, ACTS, "descend into directories"),
	NUMBER("no-recursive", 0, recursive, 0, WORKS, ACTS, NULL),
	NUMBER("no-r", 0, recursive, 0, WORKS, ACTS, NULL),
	ON("inc-recursive", 0, allow_inc_recurse, WORKS, ACTS, "list directory by directory (the default)"),
	ON("i-r", 0, allow_inc_recurse, WORKS, ACTS, NULL),
	OFF("no-inc-recursive", 0, allow_inc_recurse, WORKS, ACTS),
	OFF("no-i-r", 0, allow_inc_recurse, WORKS, ACTS),
	PLAIN("dirs", 'd', set_dirs, 1, WORKS, ACTS, "take directories themselves, do not descend"),
	PLAIN("no-dirs", 0, set_dirs, 0, WORKS, ACTS, NULL),
	PLAIN("no-d", 0, set_dirs, 0, WORKS, ACTS, NULL),
	PLAIN("old-dirs", 0, set_dirs, 2, WORKS, ACTS, "the same by -r and an exclude rule, for old servers"),
	PLAIN("old-d", 0, set_dirs, 2, WORKS, ACTS, NULL),
	PLAIN("relative", 'R', set_relative, 1, WORKS, ACTS, "keep the whole path of each source argument"),
	PLAIN("no-relative", 0, set_relative, 0, WORKS, ACTS, NULL),
	PLAIN("no-R", 0, set_relative, 0, WORKS, ACTS, NULL),
	ON("implied-dirs", 0, implied_dirs, WORKS, ACTS, "with -R, give the path's directories their attributes (default)"),
	ON("i-d", 0, implied_dirs, WORKS, ACTS, NULL),
	OFF("no-implied-dirs", 0, implied_dirs, WORKS, ACTS),
	OFF("no-i-d", 0, implied_dirs, WORKS, ACTS),
	ON("perms", 'p', perms, WORKS, ACTS, "keep permissions"),
	OFF("no-perms", 0, perms, WORKS, ACTS),
	OFF("no-p", 0, perms, WORKS, ACTS),
	ON("executability", 'E', executability, WORKS, RECEIVES, "keep whether files are executable"),
	PLAIN("acls", 'A', set_acls, 0, WORKS, ACTS, "keep ACLs"),
	OFF("no-acls", 0, acls, WORKS, ACTS),
	OFF("no-A", 0, acls, WORKS, ACTS),
	COUNT("xattrs", 'X', xattrs, WORKS, ACTS, "keep extended attributes"),
	NUMBER("no-xattrs", 0, xattrs, 0, WORKS, ACTS, NULL),
	NUMBER("no-X", 0, xattrs, 0, WORKS, ACTS, NULL),
	ON("times", 't', times, WORKS, ACTS, "keep modification times"),
	OFF("no-times", 0, times, WORKS, ACTS),
	OFF("no-t", 0, times, WORKS, ACTS),
	PLAIN("atimes", 'U', set_atimes, 0, WORKS, ACTS, "keep access times"),
	NUMBER("no-atimes", 0, atimes, 0, WORKS, ACTS, NULL),
	NUMBER("no-U", 0, atimes, 0, WORKS, ACTS, NULL),
	ON("open-noatime", 0, open_noatime, WORKS, ACTS, "leave access times of sources alone"),
	OFF("no-open-noatime", 0, open_noatime, WORKS, ACTS),
	PLAIN("crtimes", 'N', refuse_crtimes, 0, HIDDEN, ACTS, NULL),
	/* Nobody keeps creation times on Linux. */
	PLAIN("no-crtimes", 0, note_only, NO_CRTIMES, WORKS, ACTS, NULL),
	PLAIN("no-N", 0, note_only, NO_CRTIMES, WORKS, ACTS, NULL),
	ON("omit-dir-times", 'O', omit_dir_times, WORKS, RECEIVES, "leave times of directories alone"),
	OFF("no-omit-dir-times", 0, omit_dir_times, WORKS, RECEIVES),
	OFF("no-O", 0, omit_dir_times, WORKS, RECEIVES),
	ON("omit-link-times", 'J', omit_link_times, WORKS, RECEIVES, "leave times of symlinks alone"),
	OFF("no-omit-link-times", 0, omit_link_times, WORKS, RECEIVES),
	OFF("no-J", 0, omit_link_times, WORKS, RECEIVES),
	{ "modify-window", '@', INT_ARG, set_modify_window, 0, 0, WORKS, RECEIVES, "SECONDS",
			"times so close are equal (-1: nanoseconds count)" },
	ON("owner", 'o', owner, WORKS, ACTS, "keep owners (needs root)"),
	OFF("no-owner", 0, owner, WORKS, ACTS),
	OFF("no-o", 0, owner, WORKS, ACTS),
	ON("group", 'g', group, WORKS, ACTS, "keep groups"),
	OFF("no-group", 0, group, WORKS, ACTS),
	OFF("no-g", 0, group, WORKS, ACTS),
	PLAIN(NULL, 'D', set_devices_specials, 1, WORKS, ACTS, "--devices and --specials"),
	PLAIN("no-D", 0, set_devices_specials, 0, WORKS, ACTS, NULL),
	ON("devices", 0, devices, WORKS, ACTS, "keep device files (needs root)"),
	OFF("no-devices", 0, devices, WORKS, ACTS),
	ON("specials", 0, specials, WORKS, ACTS, "keep FIFOs and sockets"),
	OFF("no-specials", 0, specials, WORKS, ACTS),
	ON("drop-D", 0, drop_devices, WORKS, RECEIVES, "make no devices, FIFOs or sockets here"),
	OFF("no-drop-D", 0, drop_devices, WORKS, RECEIVES),
	ON("copy-devices", 0, copy_devices, REMOTE, ACTS, "copy what devices hold, as files"),
	PLAIN("write-devices", 0, set_write_devices, 1, REMOTE, RECEIVES, "write into devices, do not replace them"),
	PLAIN("no-write-devices", 0, set_write_devices, 0, REMOTE, RECEIVES, NULL),
	ON("links", 'l', links, WORKS, ACTS, "copy symlinks as symlinks"),
	OFF("no-links", 0, links, WORKS, ACTS),
	OFF("no-l", 0, links, WORKS, ACTS),
	ON("copy-links", 'L', copy_links, WORKS, ACTS, "copy what symlinks point to"),
	ON("copy-dirlinks", 'k', copy_dirlinks, WORKS, ACTS, "copy the directories that symlinks point to"),
	ON("keep-dirlinks", 'K', keep_dirlinks, WORKS, RECEIVES, "take symlinks to directories there for directories"),
	ON("copy-unsafe-links", 0, copy_unsafe_links, WORKS, ACTS, "copy what unsafe symlinks point to"),
	ON("safe-links", 0, safe_links, WORKS, ACTS, "leave out symlinks that point outside the tree"),
	ON("insecure-links", 0, insecure_links, WORKS, ACTS, "follow symlinks of anybody in paths of the command line"),
	OFF("no-insecure-links", 0, insecure_links, WORKS, ACTS),
	ON("munge-links", 0, munge_links, WORKS, ACTS, "make received symlinks harmless, take that off sent ones"),
	OFF("no-munge-links", 0, munge_links, WORKS, ACTS),
	TEXT("confine-root", 0, set_confine_root, 0, WORKS, ACTS, "DIR", "refuse paths of options that lead out of DIR"),
	COUNT("hard-links", 'H', hard_links, WORKS, ACTS, "keep hard links"),
	NUMBER("no-hard-links", 0, hard_links, 0, WORKS, ACTS, NULL),
	NUMBER("no-H", 0, hard_links, 0, WORKS, ACTS, NULL),
	ON("numeric-ids", 0, numeric_ids, WORKS, ACTS, "keep ids by number, not by name"),
	OFF("no-numeric-ids", 0, numeric_ids, WORKS, ACTS),
	TEXT("usermap", 0, set_owner_map, 1, WORKS, RECEIVES, "MAP", "change owners by name or number"),
	TEXT("groupmap", 0, set_owner_map, 2, WORKS, RECEIVES, "MAP", "change groups likewise"),
	TEXT("chown", 0, set_chown, 0, WORKS, RECEIVES, "USER:GROUP", "give files to these"),
	TEXT("chmod", 0, set_chmod, 0, WORKS, ACTS, "CHMOD", "change permissions on the way"),
	NUMBER("super", 0, super, SUPER_YES, WORKS, RECEIVES, "let the receiving side try what needs root"),
	NUMBER("no-super", 0, super, SUPER_NO, WORKS, RECEIVES, NULL),
	NUMBER("fake-super", 0, super, SUPER_FAKE, WORKS, ACTS, "keep in attributes what only root can do, and read it there"),
	WORD("copy-as", copy_as, WORKS, ACTS, "USER:GROUP", "touch files as this user"),
	COUNT("one-file-system", 'x', one_file_system, WORKS, ACTS, "stay on the file system of each source argument"),
	NUMBER("no-one-file-system", 0, one_file_system, 0, WORKS, ACTS, NULL),
	NUMBER("no-x", 0, one_file_system, 0, WORKS, ACTS, NULL),
	ON("sparse", 'S', sparse, WORKS, RECEIVES, "write runs of zeros as holes"),
	OFF("no-sparse", 0, sparse, WORKS, RECEIVES),
	OFF("no-S", 0, sparse, WORKS, RECEIVES),
	ON("preallocate", 0, preallocate, WORKS, RECEIVES, "allocate the space of a file before writing it"),

	/* selection, deletion */
	ON("checksum", 'c', checksum, WORKS, ACTS, "compare contents, not size and time"),
	OFF("no-checksum", 0, checksum, WORKS, ACTS),
	OFF("no-c", 0, checksum, WORKS, ACTS),
	TEXT("checksum-choice", 0, set_checksum_choice, 0, REMOTE, ACTS, "NAME", "digest to compare contents with"),
	TEXT("cc", 0, set_checksum_choice, 0, REMOTE, ACTS, NULL, NULL),
	ON("ignore-times", 'I', ignore_times, WORKS, ACTS, "copy files of equal size and time as well"),
	ON("size-only", 0, size_only, WORKS, RECEIVES, "leave files of equal size alone"),
	ON("update", 'u', update, WORKS, RECEIVES, "leave files alone that are newer at the destination"),
	ON("existing", 0, existing, WORKS, RECEIVES, "create nothing that is not there"),
	ON("ignore-non-existing", 0, existing, WORKS, RECEIVES, NULL),
	ON("ignore-existing", 0, ignore_existing, WORKS, RECEIVES, "update nothing that is there"),
	ON("remove-source-files", 0, remove_source_files, REMOTE, ACTS, "remove sources that have arrived"),
	PLAIN("remove-sent-files", 0, set_remove_sent, 0, REMOTE, ACTS, NULL),
	{ "max-size", 0, TEXT_ARG, set_size, F(max_size), 0, WORKS, RECEIVES, "SIZE", "leave out larger files" },
	{ "min-size", 0, TEXT_ARG, set_size, F(min_size), 0, WORKS, RECEIVES, "SIZE", "leave out smaller files" },
	TEXT("filter", 'f', add_filter_rule, FILTER_NEW_STYLE, WORKS, ACTS, "RULE", "add a filter rule"),
	PLAIN(NULL, 'F', add_shortcut_f, 0, WORKS, ACTS, "obey .rsync-filter files (-FF: and leave them out)"),
	TEXT("exclude", 0, add_filter_rule, FILTER_OLD_EXCLUDE, WORKS, ACTS, "PATTERN", "leave out what matches"),
	TEXT("include", 0, add_filter_rule, FILTER_OLD_INCLUDE, WORKS, ACTS, "PATTERN", "do not leave out what matches"),
	TEXT("exclude-from", 0, add_filter_file, FILTER_OLD_EXCLUDE, WORKS, ACTS, "FILE", "read such patterns from FILE"),
	TEXT("include-from", 0, add_filter_file, FILTER_OLD_INCLUDE, WORKS, ACTS, "FILE", "read such patterns from FILE"),
	ON("cvs-exclude", 'C', cvs_exclude, WORKS, ACTS, "leave out what CVS would"),
	TEXT("files-from", 0, set_files_from, 0, WORKS, ACTS, "FILE", "copy the names that FILE lists"),
	ON("from0", '0', from0, WORKS, ACTS, "names and rules in files end in NUL, not in newline"),
	OFF("no-from0", 0, from0, WORKS, ACTS),
	ON("prune-empty-dirs", 'm', prune_empty_dirs, WORKS, RECEIVES, "leave out directories without files"),
	OFF("no-prune-empty-dirs", 0, prune_empty_dirs, WORKS, RECEIVES),
	OFF("no-m", 0, prune_empty_dirs, WORKS, RECEIVES),
	PLAIN("delete", 0, set_delete, SAID_DELETE, WORKS, RECEIVES, "delete what the source does not have"),
	PLAIN("del", 0, set_delete, SAID_DURING, WORKS, RECEIVES, NULL),
	PLAIN("delete-before", 0, set_delete, SAID_BEFORE, WORKS, RECEIVES, "... before copying"),
	PLAIN("delete-during", 0, set_delete, SAID_DURING, WORKS, RECEIVES, "... directory by directory while copying"),
	PLAIN("delete-delay", 0, set_delete, SAID_DELAY, WORKS, RECEIVES, "... found while copying, deleted at the end"),
	PLAIN("delete-after", 0, set_delete, SAID_AFTER, WORKS, RECEIVES, "... after copying"),
	ON("delete-excluded", 0, delete_excluded, WORKS, RECEIVES, "delete what is excluded as well"),
	ON("delete-missing-args", 0, delete_missing_args, WORKS, ACTS, "delete what missing arguments name"),
	ON("ignore-missing-args", 0, ignore_missing_args, WORKS, ACTS, "say nothing about missing arguments"),
	ON("force", 0, force, WORKS, RECEIVES, "delete directories that are in the way, even if not empty"),
	OFF("no-force", 0, force, WORKS, RECEIVES),
	ON("ignore-errors", 0, ignore_errors, WORKS, ACTS, "delete even after read errors"),
	OFF("no-ignore-errors", 0, ignore_errors, WORKS, ACTS),
	{ "max-delete", 0, INT_ARG, set_max_delete, 0, 0, WORKS, RECEIVES, "NUM", "delete at most NUM files" },
	ON("backup", 'b', backup, WORKS, RECEIVES, "keep what is replaced or deleted"),
	OFF("no-backup", 0, backup, WORKS, RECEIVES),
	TEXT("backup-dir", 0, set_backup_dir, 0, WORKS, RECEIVES, "DIR", "... in this directory"),
	WORD("suffix", suffix, WORKS, RECEIVES, "SUFFIX", "... under a name with this end (~)"),
	TEXT("compare-dest", 0, add_alt_dest, 0, WORKS, RECEIVES, "DIR", "leave out what is the same in DIR"),
	TEXT("copy-dest", 0, add_alt_dest, 1, WORKS, RECEIVES, "DIR", "... and copy it from there"),
	TEXT("link-dest", 0, add_alt_dest, 2, WORKS, RECEIVES, "DIR", "... and link to it"),
	COUNT("fuzzy", 'y', fuzzy, WORKS, RECEIVES, "look for a similar file to start from"),
	NUMBER("no-fuzzy", 0, fuzzy, 0, WORKS, RECEIVES, NULL),
	NUMBER("no-y", 0, fuzzy, 0, WORKS, RECEIVES, NULL),
	ON("mkpath", 0, mkpath, WORKS, RECEIVES, "make the missing directories of the destination's path"),
	OFF("no-mkpath", 0, mkpath, WORKS, RECEIVES),

	/* mechanics */
	NUMBER("whole-file", 'W', whole_file, 1, WORKS, RECEIVES, "copy files whole, no delta (the default of a local run)"),
	NUMBER("no-whole-file", 0, whole_file, 0, REMOTE, RECEIVES, "look for blocks that the other end has"),
	NUMBER("no-W", 0, whole_file, 0, REMOTE, RECEIVES, NULL),
	ON("inplace", 0, inplace, WORKS, ACTS, "write into files, do not replace them"),
	OFF("no-inplace", 0, inplace, WORKS, ACTS),
	PLAIN("append", 0, set_append, 0, REMOTE, ACTS, "send only the end of files that have grown"),
	NUMBER("append-verify", 0, append, 2, REMOTE, ACTS, "... after comparing the beginning"),
	NUMBER("no-append", 0, append, 0, WORKS, ACTS, NULL),
	ON("partial", 0, partial, WORKS, RECEIVES, "keep what has come of interrupted files"),
	OFF("no-partial", 0, partial, WORKS, RECEIVES),
	TEXT("partial-dir", 0, set_partial_dir, 0, WORKS, RECEIVES, "DIR", "keep interrupted files there"),
	ON("delay-updates", 0, delay_updates, WORKS, RECEIVES, "put all new files in place at the end"),
	OFF("no-delay-updates", 0, delay_updates, WORKS, RECEIVES),
	{ "temp-dir", 'T', TEXT_ARG, set_text, F(temp_dir), 0, WORKS, RECEIVES, "DIR", "write new files there first" },
	ON("fsync", 0, fsync, WORKS, RECEIVES, "flush every written file to the disk"),
	PLAIN("compress", 'z', set_compress, 1, REMOTE, ACTS, "compress what travels"),
	PLAIN("no-compress", 0, set_compress, 0, WORKS, ACTS, NULL),
	PLAIN("no-z", 0, set_compress, 0, WORKS, ACTS, NULL),
	PLAIN("new-compress", 0, set_zlib_variant, 1, REMOTE, ACTS, NULL),
	PLAIN("old-compress", 0, set_zlib_variant, 0, REMOTE, ACTS, NULL),
	TEXT("compress-choice", 0, set_compress_choice, 0, REMOTE, ACTS, "NAME", "how to"),
	TEXT("zc", 0, set_compress_choice, 0, REMOTE, ACTS, NULL, NULL),
	{ "compress-level", 0, INT_ARG, set_compress_level, 0, 0, REMOTE, ACTS, "NUM", "how much" },
	INT("zl", 0, set_compress_level, REMOTE, ACTS),
	{ "compress-threads", 0, INT_ARG, set_compress_threads, 0, 0, WORKS, ACTS, "NUM", "threads of zstd (at most 8)" },
	INT("zt", 0, set_compress_threads, WORKS, ACTS),
	TEXT("skip-compress", 0, set_skip_compress, 0, REMOTE, ACTS, "SUFFIXES", "but hardly what ends in these"),
	TEXT("block-size", 'B', set_block_size, 0, REMOTE, RECEIVES, "SIZE", "size of the blocks that are looked for"),
	TEXT("bwlimit", 0, set_bwlimit, 0, REMOTE, ACTS, "RATE", "use no more bandwidth than this, in KiB a second"),
	PLAIN("no-bwlimit", 0, clear_bwlimit, 0, WORKS, ACTS, NULL),
	{ "timeout", 0, INT_ARG, set_timeout, 0, 0, WORKS, ACTS, "SECONDS", "end when nothing has come for so long" },
	PLAIN("no-timeout", 0, clear_timeout, 0, WORKS, ACTS, NULL),
	{ "contimeout", 0, INT_ARG, set_contimeout, 0, 0, WORKS, USER_END, "SECONDS",
	  "... when a daemon has not let us in for so long" },
	NUMBER("no-contimeout", 0, contimeout, 0, WORKS, USER_END, NULL),
	TEXT("stop-after", 0, set_stop_after, 0, REMOTE, ACTS, "MINUTES", "end after so long"),
	TEXT("time-limit", 0, set_stop_after, 0, REMOTE, ACTS, NULL, NULL),
	TEXT("stop-at", 0, set_stop_at, 0, REMOTE, ACTS, "TIME", "end at this time"),
	{ "checksum-seed", 0, INT_ARG, set_checksum_seed, 0, 0, REMOTE, ACTS, "NUM", "seed of block sums" },
	TEXT("max-alloc", 0, set_max_alloc, 0, WORKS, ACTS, "SIZE", "take no more memory than this at once"),
	TEXT("iconv", 0, set_iconv, 0, REMOTE, ACTS, "CHARSETS", "convert names: LOCAL,REMOTE"),
	PLAIN("no-iconv", 0, clear_iconv, 0, WORKS, ACTS, NULL),
	ON("qsort", 0, use_qsort, WORKS, ACTS, NULL),
	ON("use-qsort", 0, use_qsort, WORKS, ACTS, NULL),
	{ "protocol", 0, INT_ARG, set_protocol, 0, 0, WORKS, ACTS, "NUM", "speak no newer protocol than this" },
	WORD("write-batch", write_batch, REMOTE, USER_END, "FILE", "write down what was sent, to be replayed elsewhere"),
	TEXT("only-write-batch", 0, set_only_write_batch, 0, REMOTE, RECEIVES, "FILE",
	     "... and leave the destination as it is"),
	WORD("read-batch", read_batch, WORKS, USER_END, "FILE", "replay it"),

	/* connection */
	TEXT("rsh", 'e', set_rsh, 0, WORKS, ACTS, "COMMAND", "the remote shell to use"),
	WORD("rsync-path", rsync_path, WORKS, USER_END, "PROGRAM", "the rsync to run at the other end"),
	/* The two ends of the connection to a remote shell block or not each for itself: there is nothing to choose. */
	PLAIN("blocking-io", 0, note_only, BLOCKING, WORKS, USER_END, NULL),
	PLAIN("no-blocking-io", 0, note_only, BLOCKING, WORKS, USER_END, NULL),
	PLAIN("secluded-args", 's', set_secluded, 1, WORKS, ACTS, "send arguments past the remote shell"),
	PLAIN("protect-args", 0, set_secluded, 1, WORKS, ACTS, NULL),
	PLAIN("no-secluded-args", 0, set_secluded, 0, WORKS, ACTS, NULL),
	PLAIN("no-protect-args", 0, set_secluded, 0, WORKS, ACTS, NULL),
	PLAIN("no-s", 0, set_secluded, 0, WORKS, ACTS, NULL),
	PLAIN("old-args", 0, set_old_args, 1, WORKS, USER_END, "let the remote shell split arguments at blanks"),
	PLAIN("no-old-args", 0, set_old_args, 0, WORKS, USER_END, NULL),
	ON("trust-sender", 0, trust_sender, WORKS, USER_END, "take whatever names a server sends, asked for or not"),
	TEXT("remote-option", 'M', add_remote_option, 0, WORKS, USER_END, "OPT", "an option for the other end only"),
	NUMBER("ipv4", '4', ip_family, 4, WORKS, USER_END, "reach the other end by IPv4"),
	NUMBER("ipv6", '6', ip_family, 6, WORKS, USER_END, "reach the other end by IPv6"),
	WORD("address", address, WORKS, USER_END, "ADDRESS", "reach a daemon from this address of ours"),
	{ "port", 0, INT_ARG, set_port, 0, 0, WORKS, USER_END, "PORT", "a daemon's port, if not 873" },
	WORD("sockopts", sockopts, WORKS, USER_END, "OPTIONS", "TCP options of the connection to a daemon"),
	WORD("password-file", password_file, WORKS, USER_END, "FILE", "read the password for a daemon from FILE"),
	WORD("early-input", early_input, WORKS, USER_END, "FILE", "data for a daemon's early exec command"),
	PLAIN("server", 0, become_server, 0, HIDDEN, ACTS, NULL),
	ON("sender", 0, sender, HIDDEN, ACTS, NULL),

	/* ours */
	ON("only-send-attrs", 0, only_send_attrs, LOCAL | PULL, ACTS,
	   "take each regular file's size, as 8 bytes, for its content"),
	{ "attr-snapshot", 0, TEXT_ARG, set_attr_file, F(attr_snapshot), 0, LOCAL | PULL, NOT_BUILT, "FILE",
			"write the attributes of SRC/ (or of DEST) to FILE" },
	{ "attr-refresh", 0, TEXT_ARG, set_attr_file, F(attr_refresh), 0, LOCAL, NOT_BUILT, "HOW",
			"... after looking again only at changed dirs, or at the names in a file" },
	TEXT("attr-digests", 0, set_attr_digests, 0, LOCAL | PULL, NOT_BUILT, "NAMES",
	     "... with digests of contents: xxh128,md5"),
	PLAIN("attr-list", 0, set_attr_mode, ATTR_MODE_LIST, LOCAL, NOT_BUILT, "FILE [PATH]: list a snapshot"),
	PLAIN("attr-verify", 0, set_attr_mode, ATTR_MODE_VERIFY, LOCAL, NOT_BUILT, "FILE [SRC/]: check one"),
	PLAIN("attr-diff", 0, set_attr_mode, ATTR_MODE_DIFF, LOCAL, NOT_BUILT, "OLD NEW: list what differs between two"),
	PLAIN("attr-from-tree", 0, set_attr_mode, ATTR_MODE_FROM_TREE, LOCAL, NOT_BUILT, "TREE [REAL/]: from an attr tree"),
	PLAIN("attr-to-tree", 0, set_attr_mode, ATTR_MODE_TO_TREE, LOCAL, NOT_BUILT, "TREE: to an attr tree"),

	/* a daemon's own: they change to the other table */
	PLAIN("daemon", 0, become_daemon, 0, HIDDEN, ACTS, NULL),
	TEXT("config", 0, become_daemon, 0, HIDDEN, ACTS, NULL, NULL),
	TEXT("dparam", 0, become_daemon, 0, HIDDEN, ACTS, NULL, NULL),
	PLAIN("detach", 0, become_daemon, 0, HIDDEN, ACTS, NULL),
	PLAIN("no-detach", 0, become_daemon, 0, HIDDEN, ACTS, NULL),
	PLAIN("no-sandbox", 0, become_daemon, 0, HIDDEN, ACTS, NULL),
	PLAIN("config-check", 0, become_daemon, 0, HIDDEN, ACTS, NULL),
	PLAIN("status", 0, become_daemon, 0, HIDDEN, ACTS, NULL),
	PLAIN("refresh-attrs", 0, become_daemon, 0, HIDDEN, ACTS, NULL),
	PLAIN("no-wait", 0, become_daemon, 0, HIDDEN, ACTS, NULL),
	END
};

static const struct option_spec daemon_options[] = {
	PLAIN("daemon", 0, see_daemon, 0, WORKS, ACTS, "run as a daemon"),
	ON("refresh-attrs", 0, refresh_attrs, WORKS, ACTS,
			"[MODULE]...: bring the attr trees and snapshots of these modules (of all) up to date"),
	COUNT("quiet", 'q', quiet, WORKS, ACTS, "... without a line for each of them; config-check: only what is wrong"),
	ON("no-wait", 0, no_wait, WORKS, ACTS, "... and leave a module to the refresh that is at it"),
	{ "attr-refresh", 0, TEXT_ARG, set_attr_file, F(attr_refresh), 0, WORKS, ACTS, "HOW",
			"... snapshots: after looking again only at changed dirs, or at the names in a file" },
	TEXT("attr-digests", 0, set_attr_digests, 0, WORKS, ACTS, "NAMES", "... with digests of contents (default: as before)"),
	ON("status", 0, status, WORKS, ACTS, "ask the running daemon who is connected, doing what, since when, how fast"),
	ON("config-check", 0, config_check, WORKS, ACTS, "only check the configuration: what is wrong, what each module does"),
	{ "address", 0, TEXT_ARG, set_text, F(address), 0, WORKS, ACTS, "ADDRESS", "listen on this address" },
	TEXT("bwlimit", 0, set_bwlimit, 0, WORKS, ACTS, "RATE", "upper bound of every session's bandwidth"),
	TEXT("config", 0, set_config, 0, WORKS, ACTS, "FILE", "read this configuration, not /etc/rsyncd.conf"),
	TEXT("dparam", 'M', add_dparam, 0, WORKS, ACTS, "NAME=VALUE", "set a global parameter over the configuration"),
	ON("detach", 0, detach, WORKS, ACTS, "go to the background (default)"),
	{ "no-detach", 0, NO_ARG, set_flag, F(detach), false, WORKS, ACTS, NULL, "stay in the foreground" },
	ON("sandbox", 0, sandbox, WORKS, ACTS, NULL),
	{ "no-sandbox", 0, NO_ARG, set_flag, F(sandbox), false, WORKS, ACTS, NULL,
			"do not confine sessions by Landlock and seccomp" },
	{ "port", 0, INT_ARG, set_port, 0, 0, WORKS, ACTS, "PORT", "listen on this port, not on 873" },
	TEXT("log-file", 0, set_log_file, 0, WORKS, ACTS, "FILE", "write the log there"),
	TEXT("log-file-format", 0, set_log_file_format, 0, WORKS, ACTS, "FORMAT", "format of the log's transfer lines"),
	{ "sockopts", 0, TEXT_ARG, set_text, F(sockopts), 0, WORKS, ACTS, "OPTIONS", "TCP options of the sockets" },
	{ "protocol", 0, INT_ARG, set_protocol, 0, 0, WORKS, ACTS, "NUM", "speak no newer protocol than this" },
	{ "temp-dir", 'T', TEXT_ARG, set_text, F(temp_dir), 0, WORKS, ACTS, "DIR", "temp dir of modules that name none" },
	COUNT("verbose", 'v', verbose, WORKS, ACTS, "log more"),
	NUMBER("no-verbose", 0, verbose, 0, WORKS, ACTS, NULL),
	NUMBER("no-v", 0, verbose, 0, WORKS, ACTS, NULL),
	NUMBER("ipv4", '4', ip_family, 4, WORKS, ACTS, "listen with IPv4 only"),
	NUMBER("ipv6", '6', ip_family, 6, WORKS, ACTS, "listen with IPv6 only"),
	ON("server", 0, server, HIDDEN, ACTS, NULL),
	PLAIN("help", 'h', ask_daemon_help, 0, WORKS, ACTS, "show this"),
	END
};

const struct option_spec *option_table(enum parse_mode mode)
{
	return mode == MODE_DAEMON ? daemon_options : options;
}

size_t option_table_count(const struct option_spec *table)
{
	size_t count = 0;

	while (table[count].set)
		count++;
	return count;
}

bool option_is_same(const struct option_spec *a, const struct option_spec *b)
{
	return a == b || (a->set == b->set && a->field == b->field && a->value == b->value);
}

const char *option_label(const struct option_spec *spec, char label[OPTION_LABEL_SIZE])
{
	if (spec->name)
		snprintf(label, OPTION_LABEL_SIZE, "--%s", spec->name);
	else
		snprintf(label, OPTION_LABEL_SIZE, "-%c", spec->letter);
	return label;
}
