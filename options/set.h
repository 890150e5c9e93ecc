/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions that the option table names (see option_setter). */
#ifndef OPTIONS_SET_H
#define OPTIONS_SET_H

#include "options/parse.h"

/* General: into the field of the spec, a bool, an int or a text. note_only: nothing to set, see the server column of the
 * table. */
option_setter set_flag, set_number, set_text, count_up, note_only;

/* options/set.c */
option_setter set_info, set_debug, set_stderr_mode, set_stderr_number, set_partial_progress, set_out_format,
	set_log_file, set_log_file_format, ask_version, ask_help, ask_daemon_help, set_archive, set_dirs,
	set_relative, set_acls, set_atimes, refuse_crtimes, set_modify_window, set_devices_specials,
	set_write_devices, set_owner_map, set_chown, set_chmod, set_size, set_checksum_choice, add_filter_rule, add_filter_file,
	add_shortcut_f, set_files_from, set_outbuf, set_remove_sent, set_delete, set_max_delete,
	set_backup_dir, add_alt_dest, set_partial_dir;

/* options/attr.c */
option_setter set_confine_root;
option_setter set_attr_file, set_attr_digests, set_attr_mode;

/* options/set_session.c */
option_setter set_block_size, set_bwlimit, clear_bwlimit, set_max_alloc, set_compress, set_zlib_variant,
	set_compress_choice, set_compress_level, set_compress_threads, set_skip_compress, set_timeout, clear_timeout,
	set_stop_after, set_stop_at, set_checksum_seed, set_iconv, clear_iconv, set_protocol, set_rsh, set_secluded,
	set_old_args, add_remote_option, set_append, set_contimeout, set_only_write_batch, become_server,
	become_daemon, see_daemon, set_config, add_dparam, set_port;

#endif
