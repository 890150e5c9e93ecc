/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The sender's loop: requests in, file data out, phases, statistics, goodbye (doc/protocol/03-transfer.md section 1,
 * doc/protocol/01-session.md section 10).
 */
#include "sender.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "delta/block_sums.h"
#include "delta/match.h"
#include "delta/skip_list.h"
#include "delta/token.h"
#include "flist/paths.h"
#include "flist/scan.h"
#include "flist/send.h"
#include "flist/xattr.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/strbuf.h"
#include "lib/vec.h"
#include "wire/request.h"

struct sender {
	struct sender_host *host;
	struct session *session;
	struct session aside;          /* client with a batch: the same session, whose stream is only written down */
	const struct options *options;
	struct flist *list;
	struct flist_sender *list_sender;
	struct token_writer *tokens;
	struct charset *charset;       /* --iconv, or NULL */
	struct match_stats *match;
	uint64_t matched_to;           /* --debug: where the last block that was found in the file at hand ends */
	int phase;
	int append;
	int io_error_sent;             /* what the list has reported to the peer already */
	int32_t current_ndx;           /* last index asked for, -1: none in the lists held */
	int content_fd;
	VEC(uint64_t) sent;            /* a bit for each index whose content has been sent */
	VEC(struct entry) directories; /* by node: what the host may still be notified of, when its list has been dropped */
	bool xattr_items;              /* item messages may carry xattr parts (doc/protocol/05-xattrs-acls.md section 5.3.1) */
	bool xattr_shortcut;           /* ... but not for hard links (5.3.4) */
	uint8_t attr_bytes[ATTR_FILE_SIZE];
};

/*
 * --- which names are wanted ---
 *
 * Arguments, a --files-from list of this side, or one that the peer streams (doc/protocol/04-filters.md section 4.16).
 */

/* One of --files-from; the buffer is cleared. */
static void add_name(struct sender *sender, struct strbuf *name)
{
	struct strbuf local = STRBUF_INIT;

	if (name->length >= PATH_MAX) {
		log_msg(L_ERROR_XFER, "rsync: [sender] a --files-from name is longer than %d bytes", PATH_MAX - 1);
		sender->session->io_error |= IOERR_GENERAL;
	} else if (sender->charset && sender->options->secluded_args && sender->host->names_fd < 0
		   && charset_from_wire(sender->charset, name->data, name->length, PATH_MAX - 1, &local)) {
		/* Names travel in UTF-8 only if the arguments did too (doc/protocol/02-file-list.md section 7.4). */
		flist_add_argument(sender->list, local.data, true);
	} else {
		flist_add_argument(sender->list, name->data, true);
	}
	strbuf_free(&local);
	strbuf_reset(name);
}

/* A list that the peer streams, raw below protocol 31 (doc/protocol/01-session.md section 9.7). */
static void read_streamed_names(struct sender *sender)
{
	struct wire *wire = sender->session->wire;
	const struct session *session = sender->session;
	bool framed = !session->is_server || session->caps.frames_requests || sender->options->remove_source_files;
	bool raw_window = framed && !session->caps.framed_names;
	struct strbuf name = STRBUF_INIT;

	if (raw_window)
		wire_set_mux_in(wire, false);
	for (;;) {
		char byte = (char)wire_read_byte(wire);

		if (!byte && !name.length)
			break;
		if (!byte)
			add_name(sender, &name);
		else if (name.length < PATH_MAX)
			strbuf_add_char(&name, byte);
	}
	if (raw_window)
		wire_set_mux_in(wire, true);
	strbuf_free(&name);
}

static void read_names_of_file(struct sender *sender)
{
	FILE *file = fdopen(sender->host->names_fd, "r");
	struct strbuf line = STRBUF_INIT;
	int byte;

	if (!file)
		die(EXIT_MALLOC, "rsync: [sender] cannot read the files-from file: %s", strerror(errno));
	do {
		byte = getc(file);
		if (byte == EOF || byte == '\0' || (!sender->options->from0 && (byte == '\n' || byte == '\r'))) {
			const char *text = strbuf_text(&line);

			if (*text && *text != '#' && *text != ';')
				add_name(sender, &line);
			strbuf_reset(&line);
		} else if (line.length < PATH_MAX) {
			/* The file is whatever the client has named: a line may be as long as that. */
			strbuf_add_char(&line, (char)byte);
		}
	} while (byte != EOF);
	strbuf_free(&line);
	fclose(file);
}

/*
 * --- which names are removed ---
 *
 * --remove-source-files: unlink what the receiver has confirmed, if it is still what was sent (doc/protocol/03-transfer.md
 * section 7.9).
 */

static bool is_unchanged(const struct sender *sender, const struct entry *entry, const struct fs_stat *st)
{
	if (entry_is_regular(entry) && st->size != entry->size)
		return false;
	return st->mtime == entry->mtime && (!sender->session->caps.mtime_nsec || st->mtime_nsec == entry->mtime_nsec);
}

/*
 * The source's parent directory, held open, and the name in it; -1 with errno. Without following symlinks that lead outside of
 * the source: what they lead to may be read, not removed. But those on the way that an operand or a list entry takes are
 * followed again, if they are root's or the user's (doc/protocol/09-since-3.5.0.md section 6.3), and if no option can have led
 * through others.
 */
static int open_parent(const struct sender *sender, const struct fs_root *source, char *path, const char **name)
{
	struct fs_root root = *source;
	char *slash = strrchr(path, '/');

	root.trusting = sender->options->insecure_links;
	root.owned = source->owned || source->anchors;
	*name = slash ? slash + 1 : path;
	if (slash)
		*slash = '\0';
	int fd = fs_open(&root, slash ? path : "", O_PATH | O_DIRECTORY | FS_FOLLOW, 0);

	if (slash)
		*slash = '/';
	return fd;
}

static bool is_object(const struct fs_root *operator, const char *path, const struct fs_stat *st)
{
	struct fs_stat found;
	int fd = fs_open(operator, path, O_PATH | O_NOFOLLOW | FS_FOLLOW, 0);
	bool is_same = fd >= 0 && fs_stat_at_fd(fd, &found) == 0 && found.dev == st->dev && found.ino == st->ino;

	if (fd >= 0)
		close(fd);
	return is_same;
}

/*
 * Whether what is to be removed is what the other half of a local run has just written or verified, as where both operands lead
 * to the same place (doc/protocol/08-security.md section 4.4). What cannot be found out counts as that.
 */
static bool is_destination(const struct sender *sender, const char *name, const struct fs_stat *st)
{
	const char *destination = sender->options->destination;
	struct strbuf path = STRBUF_INIT;
	struct fs_root operator;

	if (!destination)
		return false;
	if (fs_root_open(&operator, ".") < 0)
		return true;
	operator.trusting = true;
	strbuf_addf(&path, "%s/%s", destination, name);
	bool is_it = is_object(&operator, destination, st) || is_object(&operator, strbuf_text(&path), st);

	strbuf_free(&path);
	fs_root_close(&operator);
	return is_it;
}

/* The peer has the file. */
static void sender_remove_source(struct sender *sender, int32_t ndx)
{
	struct flist_pos pos;
	struct strbuf path = STRBUF_INIT, name = STRBUF_INIT;
	struct fs_stat st;
	const char *leaf;

	if (!sender->list_sender)
		return;
	flist_find(sender->list_sender, ndx, &pos);
	if (pos.gap >= 0 || entry_is_dir(pos.entry))
		return;
	struct attr_source *source = flist_pos_source(sender->list, &pos, &path);

	flist_pos_path(sender->list, &pos, &name);
	int parent = open_parent(sender, &source->attr_root, path.data, &leaf);

	if (parent < 0 && errno != ENOENT) {
		log_errno(L_ERROR_XFER, errno, "sender failed to secure-open-parent %s", strbuf_text(&name));
	} else if (parent < 0 || (sender->options->copy_links ? fs_stat_follow(&source->attr_root, path.data, &st)
				  : fs_lstat_at(parent, leaf, &st)) < 0) {
		if (errno == ENOENT)
			log_info("sender file already removed: %s", strbuf_text(&name));
		else
			log_errno(L_ERROR_XFER, errno, "sender failed to re-lstat %s", strbuf_text(&name));
	} else if (!is_unchanged(sender, pos.entry, &st)) {
		log_msg(L_ERROR_XFER, "ERROR: Skipping sender remove for changed file: %s", strbuf_text(&name));
	} else if (is_destination(sender, strbuf_text(&name), &st)) {
		log_msg(L_ERROR_XFER, "ERROR: Skipping sender remove of destination file: %s", strbuf_text(&name));
	} else if (fs_unlink_at(parent, leaf) < 0) {
		log_errno(L_ERROR_XFER, errno, "sender failed to remove %s", strbuf_text(&name));
	} else if (sender->options->levels.info[INFO_REMOVE] > 0) {
		log_info("sender removed %s", strbuf_text(&name));
	}
	if (parent >= 0)
		close(parent);
	strbuf_free(&path);
	strbuf_free(&name);
}

/* --- the lines of --debug=send and deltasum --- */

static int level_of(const struct sender *sender, enum debug_word word)
{
	return sender->options->levels.debug[word];
}

static bool is_searched(const struct sender *sender, const struct block_sums *sums)
{
	return sums->head.count && sums->weak && level_of(sender, DEBUG_DELTASUM) > 1;
}

static void say_match(void *sender_void, uint64_t at, uint32_t block, uint32_t length)
{
	struct sender *sender = sender_void;

	log_info("match at %llu last_match=%llu j=%u len=%u n=%llu", (unsigned long long)at,
		 (unsigned long long)sender->matched_to, block, length, (unsigned long long)(at - sender->matched_to));
	sender->matched_to = at + length;
}

/* Before the content of a file of this size. */
static void sender_debug_content(struct sender *sender, const struct flist_pos *pos, uint64_t size,
				 const struct block_sums *sums)
{
	struct strbuf path = STRBUF_INIT;

	if (level_of(sender, DEBUG_DELTASUM) < 2)
		return;
	if (level_of(sender, DEBUG_DELTASUM) > 2) {
		const struct sum_head *head = &sums->head;

		log_info("count=%d n=%d rem=%d", head->count, head->block_length, head->remainder);
		for (int32_t i = 0; i < head->count && sums->weak; i++)
			log_info("chunk[%d] len=%d offset=%lld sum1=%08x", i,
				 i == head->count - 1 && head->remainder ? head->remainder : head->block_length,
				 (long long)i * head->block_length, sums->weak[i]);
	}
	sender->matched_to = 0;
	flist_pos_operand_name(sender->list, pos, &path);
	log_info("send_files mapped %s of size %llu", strbuf_text(&path), (unsigned long long)size);
	log_info("calling match_sums %s", strbuf_text(&path));
	if (is_searched(sender, sums) && size) {
		log_info("built hash table");
		log_info("hash search b=%d len=%llu", sums->head.block_length, (unsigned long long)size);
	}
	strbuf_free(&path);
}

/* After the content of a file. `before`: the counts as they were before it. */
static void sender_debug_sent(const struct sender *sender, const struct flist_pos *pos, const struct match_stats *before,
			      const struct block_sums *sums)
{
	const struct match_stats *match = sender->match;
	struct strbuf path = STRBUF_INIT;

	if (level_of(sender, DEBUG_DELTASUM) > 1) {
		if (is_searched(sender, sums))
			log_info("done hash search");
		log_info("sending file_sum");
		log_info("false_alarms=%llu hash_hits=%llu matches=%llu",
			 (unsigned long long)(match->false_alarms - before->false_alarms),
			 (unsigned long long)(match->hash_hits - before->hash_hits),
			 (unsigned long long)(match->matches - before->matches));
	}
	if (level_of(sender, DEBUG_SEND)) {
		flist_pos_operand_name(sender->list, pos, &path);
		log_info("sender finished %s", strbuf_text(&path));
	}
	strbuf_free(&path);
}

/* --- one request --- */

struct request {
	int32_t ndx;
	struct flist_pos pos;
	struct item_attrs item;
	struct block_sums sums;
	bool redo;    /* the entry has been sent before */
	int append;   /* options->append, off in a redo */
};

/* Do xattr parts follow the item (doc/protocol/05-xattrs-acls.md section 5.3.1)? */
static bool has_xattr_part(const struct sender *sender, const struct item_attrs *item)
{
	const uint32_t link = ITEM_XNAME_FOLLOWS | ITEM_LOCAL_CHANGE;

	return sender->xattr_items && (item->flags & ITEM_REPORT_XATTR)
	       && !(sender->xattr_shortcut && (item->flags & link) == link);
}

static void write_item(struct sender *sender, struct request *request)
{
	request_write_attrs(sender->session, request->ndx, &request->item);
	if (has_xattr_part(sender, &request->item))
		xattr_write_answer(sender->list_sender, &request->pos);
}

static void no_send(struct sender *sender, const struct request *request)
{
	if (sender->session->caps.no_send_message)
		wire_send_message_int(sender->session->wire, MSG_NO_SEND, request->ndx);
}

/* error 0: a warning. */
static void complain(struct sender *sender, const struct request *request, int error, const char *what)
{
	struct strbuf quoted = STRBUF_INIT;

	flist_quote(sender->list, request->pos.dir, request->pos.entry, &quoted);
	if (error) {
		log_errno(L_ERROR_XFER, error, "%s %s", what, strbuf_text(&quoted));
		sender->session->io_error |= IOERR_GENERAL;
	} else {
		log_msg(L_WARNING, "%s: %s", what, strbuf_text(&quoted));
	}
	strbuf_free(&quoted);
}

/* The content of the requested file: content_fd, or attr_bytes without one. False, which the peer has been notified of, if
 * there is none to send. */
static bool open_source(struct sender *sender, struct request *request, uint64_t *size)
{
	const struct options *options = sender->options;
	struct strbuf path = STRBUF_INIT;
	struct attr_source *source = flist_pos_source(sender->list, &request->pos, &path);
	bool follow = options->copy_links || options->copy_unsafe_links;
	struct entry_side expanded;
	const struct entry_side *group = NULL;

	if (source->only_attrs) {
		attr_file_encode(sender->attr_bytes, entry_side_of(request->pos.entries, request->pos.entry)->real_size);
		*size = ATTR_FILE_SIZE;
		strbuf_free(&path);
		return true;
	}
	/* What distinguishes the file from others, if other names are going to be linked to it. */
	if (options->hard_links && request->pos.entry->flags & ENTRY_HARD_LINKED)
		group = entry_any_side(request->pos.entries, request->pos.entry, &expanded);
	sender->content_fd = attr_source_open_linked(source, strbuf_text(&path), request->pos.entry, group, follow, size);
	int error = errno;

	strbuf_free(&path);
	if (sender->content_fd >= 0)
		return true;
	if (error == ENOENT) {
		complain(sender, request, 0, "file has vanished");
		sender->session->io_error |= IOERR_VANISHED;
	} else {
		complain(sender, request, error, "send_files failed to open");
	}
	no_send(sender, request);
	return false;
}

/* doc/protocol/03-transfer.md section 5.3. */
static bool is_in_place(const struct sender *sender, const struct request *request)
{
	const struct options *options = sender->options;

	if (!sender->session->caps.item_flags)
		return options->inplace && (!options->backup || request->redo);
	if (request->item.basis == BASIS_PARTIAL)
		return sender->session->inplace_partial;
	return options->inplace && request->item.basis == BASIS_FILE;
}

/* Should the compressor make little effort on this file? */
static bool is_incompressible(const struct sender *sender, const struct request *request)
{
	const char *name = entry_name(request->pos.entries, request->pos.entry);
	const struct skip_list *others = sender->host->dont_compress;

	return (sender->options->skip_compress && skip_list_matches(sender->options->skip_compress, name))
	       || (others && skip_list_matches(others, name));
}

/* --- what the host hears --- */

static void report_item(struct sender *sender, const struct request *request, struct transfer_record *record,
			enum item_stage stage)
{
	struct strbuf name = STRBUF_INIT, shown = STRBUF_INIT;

	if (sender->host->transfer && stage != ITEM_WITHOUT_CONTENT)
		sender->host->transfer(sender->host->context, stage);
	/* Of a directory whose list is gone what was kept of it. */
	record->entry = request->pos.entry;
	if (!record->entry && request->pos.gap > 0 && (size_t)request->pos.gap < sender->directories.count)
		record->entry = &sender->directories.items[request->pos.gap];
	if (!sender->host->item || !record->entry)
		return;
	flist_pos_path(sender->list, &request->pos, &name);
	flist_pos_shown_name(sender->list, &request->pos, &shown);
	record->flags = request->item.flags;
	record->name = strbuf_text(&name);
	record->shown = strbuf_text(&shown);
	record->position = flist_send_position(sender->list_sender, request->ndx);
	/* With a transfer the name is that of a similar file. */
	record->link_is_hard = request->item.xname_length > 0 && !(request->item.flags & ITEM_TRANSFER);
	record->link = record->link_is_hard ? request->item.xname : entry_is_symlink(record->entry)
		       ? entry_target(request->pos.entries, record->entry) : NULL;
	sender->host->item(sender->host->context, record, stage);
	strbuf_free(&name);
	strbuf_free(&shown);
}

/* --- content --- */

/* Where contents go: with --only-write-batch to the batch alone. */
static struct session *content_session(struct sender *sender)
{
	return sender->host->batch && sender->options->only_write_batch ? &sender->aside : sender->session;
}

/* Header, tokens and digest of one file. */
static void send_content(struct sender *sender, struct request *request, uint64_t size)
{
	struct session *session = sender->session, *content = content_session(sender);
	uint8_t digest[DIGEST_MAX_LENGTH], shown[DIGEST_MAX_LENGTH];
	struct match_request match = {
		.fd = sender->content_fd,
		.memory = sender->content_fd < 0 ? sender->attr_bytes : NULL,
		.size = size,
		.sums = &request->sums,
		.block = { session->xfer_sum, session->seed, session->seed_first },
		.file_sum = session->xfer_sum,
		.seed = session->seed,
		.in_place = is_in_place(sender, request),
		.append_from = request->append ? sum_head_size(&request->sums.head) : 0,
		.append_verify = request->append > 1,
		.progress = sender->host->progress,
		.context = sender->host->context,
		.matched = level_of(sender, DEBUG_DELTASUM) > 1 ? say_match : NULL,
		.matched_context = sender,
	};
	struct transfer_record record = { .size = size };
	const struct sum_head *head = &request->sums.head;
	uint64_t before = wire_stream_written(session->wire);
	const struct match_stats counts = *sender->match;

	sender_debug_content(sender, &request->pos, size, match.sums);
	report_item(sender, request, &record, ITEM_BEGINS);

	write_item(sender, request);
	if (content != session)
		wire_flush(session->wire);
	sum_head_write(content, &request->sums.head);
	token_start_file(sender->tokens, is_incompressible(sender, request));
	int length = match_file(&match, sender->tokens, sender->match, digest);

	wire_write(content->wire, digest, (size_t)length);
	if (content != session)
		wire_flush(content->wire);
	if (sender->match->read_error)
		complain(sender, request, sender->match->read_error, "read errors mapping");
	while (sender->sent.count <= (size_t)request->ndx / 64)
		vec_push(&sender->sent, 0);
	sender->sent.items[request->ndx / 64] |= UINT64_C(1) << (request->ndx % 64);
	record.written = wire_stream_written(session->wire) - before;
	record.sums = 16 + (request->append ? 0 : (uint64_t)head->count * (4 + (uint64_t)head->strong_length));
	if (session->caps.plain_digests) { /* before, it is salted and says nothing of the content */
		digest_for_display(session->xfer_sum, digest, length, shown);
		record.digest = shown;
		record.digest_length = length;
	}
	report_item(sender, request, &record, ITEM_ENDS);
	sender_debug_sent(sender, &request->pos, &counts, match.sums);
}

static void transfer(struct sender *sender, struct request *request)
{
	size_t word = (size_t)request->ndx / 64;
	uint64_t size;

	if (request->pos.gap >= 0 || !entry_is_regular(request->pos.entry)) {
		struct strbuf name = STRBUF_INIT;

		flist_pos_path(sender->list, &request->pos, &name);
		die(EXIT_PROTOCOL, "received request to transfer non-regular file: %s", strbuf_text(&name));
	}
	if (sender->phase == 2)
		die(EXIT_PROTOCOL, "got transfer request in phase 2 [%s]", log_role());
	if (sender->options->dry_run) {
		struct transfer_record record = { .size = request->pos.entry->size };

		write_item(sender, request);
		report_item(sender, request, &record, ITEM_WITHOUT_CONTENT);
		return;
	}
	request->redo = word < sender->sent.count && sender->sent.items[word] >> (request->ndx % 64) & 1;
	request->append = request->redo ? 0 : sender->append;
	sum_head_read(sender->session, &request->sums.head, digest_length(sender->session->xfer_sum));
	if (!request->append)
		block_sums_read(sender->session, &request->sums);
	if (open_source(sender, request, &size)) {
		/* With --append it may not have become shorter than it was listed (doc/protocol/03-transfer.md section 3.4). */
		if (request->append && size < request->pos.entry->size) {
			complain(sender, request, 0, "skipped diminished file");
			no_send(sender, request);
		} else {
			send_content(sender, request, size);
		}
		if (sender->content_fd >= 0)
			close(sender->content_fd);
		sender->content_fd = -1;
	}
	block_sums_free(&request->sums);
	if (!request->append)
		budget_give_back(session_budget(sender->session), block_sums_memory(&request->sums.head));
}

static void serve(struct sender *sender, int32_t ndx)
{
	struct request request = { .ndx = ndx };
	struct transfer_record record = { 0 };
	struct strbuf path = STRBUF_INIT;

	flist_find(sender->list_sender, ndx, &request.pos);
	request_read_attrs(sender->session, &request.item);
	if (has_xattr_part(sender, &request.item))
		xattr_read_request(sender->list_sender, &request.pos);
	sender->current_ndx = ndx;
	if (level_of(sender, DEBUG_SEND)) {
		flist_pos_operand_name(sender->list, &request.pos, &path);
		log_info("send_files(%d, %s)", ndx, strbuf_text(&path));
		strbuf_free(&path);
	}
	if (request.item.flags & ITEM_TRANSFER) {
		transfer(sender, &request);
		return;
	}
	write_item(sender, &request);
	report_item(sender, &request, &record, ITEM_WITHOUT_CONTENT);
}

/* --- phases --- */

/* A protocol 29 peer's keep-alive: an index one past the list with nothing but ITEM_IS_NEW (doc/protocol/01-session.md
 * section 9.8). */
static bool is_old_keep_alive(struct sender *sender, int32_t ndx)
{
	struct flist_pos pos;
	struct item_attrs item;

	if (!sender->session->caps.raw_keep_alive || flist_locate(sender->list, ndx, &pos)
	    || !flist_locate(sender->list, ndx - 1, &pos))
		return false;
	request_read_attrs(sender->session, &item);
	if (item.flags != ITEM_IS_NEW)
		die(EXIT_PROTOCOL, "rsync: File-list index %d not in the list", ndx);
	wire_keep_alive(sender->session->wire);
	return true;
}

static void take_delete_stats(struct sender *sender)
{
	delete_stats_read(sender->session);
	/* A client is at home: it is the one who wanted to know. */
	if (sender->session->is_server)
		delete_stats_write(sender->session);
}

/* NDX_DONE: the end of a list, or of a phase. True when the last phase is over. */
static bool end_of_list_or_phase(struct sender *sender)
{
	static const struct entry none;
	struct session *session = sender->session;
	int last_phase = session->caps.third_phase ? 2 : 1;

	int32_t oldest = session->inc_recurse ? flist_send_oldest(sender->list_sender) : -1;

	if (oldest >= 0) {
		const struct flist_dir *dir = flist_dir(sender->list, oldest);
		const bool keeps = sender->host->item && dir->entries;
		const int32_t end = dir->first_child + (int32_t)dir->child_count;

		/* The oldest list is about to be dropped; its directories may be asked about when theirs are worked on. */
		for (int32_t child = dir->first_child; keeps && child < end; child++) {
			while (sender->directories.count <= (size_t)child)
				vec_push(&sender->directories, none);
			sender->directories.items[child] = dir->entries->items[flist_dir(sender->list, child)->parent_entry];
		}
		if (sender->host->list_done && dir->count)
			sender->host->list_done(sender->host->context,
						flist_send_position(sender->list_sender,
								    dir->first_ndx + (int32_t)dir->count - 1));
		flist_send_drop_oldest(sender->list_sender);
		if (flist_send_oldest(sender->list_sender) >= 0) {
			sender->current_ndx = -1;
			wire_write_ndx(session->wire, NDX_DONE);
			return false;
		}
	}
	if (++sender->phase > last_phase)
		return true;
	if (level_of(sender, DEBUG_SEND))
		log_info("send_files phase=%d", sender->phase);
	wire_write_ndx(session->wire, NDX_DONE);
	return false;
}

static void serve_requests(struct sender *sender)
{
	struct session *session = sender->session;

	for (;;) {
		flist_send_ahead(sender->list_sender, sender->current_ndx);
		int32_t ndx = wire_read_ndx(session->wire);

		if (ndx == NDX_DONE) {
			if (end_of_list_or_phase(sender))
				return;
		} else if (ndx == NDX_DEL_STATS && session->caps.delete_stats) {
			take_delete_stats(sender);
		} else if (ndx < 0) {
			die(EXIT_PROTOCOL, "rsync: Invalid file index: %d (%d - %d) [%s]", ndx, NDX_DONE,
			    (int)flist_dir_count(sender->list), log_role());
		} else if (!is_old_keep_alive(sender, ndx)) {
			serve(sender, ndx);
		}
	}
}

static void read_goodbye_ndx(struct sender *sender)
{
	int32_t ndx = wire_read_ndx(sender->session->wire);

	while (ndx == NDX_DEL_STATS && sender->session->caps.delete_stats) {
		take_delete_stats(sender);
		ndx = wire_read_ndx(sender->session->wire);
	}
	if (ndx != NDX_DONE)
		die(EXIT_PROTOCOL, "rsync: Invalid packet at end of run (%d) [%s]", ndx, log_role());
}

static void write_stats(struct sender *sender, struct session *session)
{
	struct wire *wire = session->wire;
	uint64_t read = wire_bytes_read(sender->session->wire), written = wire_bytes_written(sender->session->wire);

	wire_write_vlong30(wire, (int64_t)read, 3);
	wire_write_vlong30(wire, (int64_t)written, 3);
	wire_write_vlong30(wire, (int64_t)flist_totals(sender->list)->size, 3);
	if (!session->caps.list_times)
		return;
	wire_write_vlong30(wire, flist_send_build_ms(sender->list_sender), 3);
	wire_write_vlong30(wire, 0, 3);
}

static void say_goodbye(struct sender *sender)
{
	struct session *session = sender->session;

	if (session->io_error != sender->io_error_sent && session->caps.io_error_message)
		wire_send_message_int(session->wire, MSG_IO_ERROR, session->io_error);
	wire_write_ndx(session->wire, NDX_DONE);
	if (session->is_server)
		write_stats(sender, session);
	wire_flush(session->wire);
	if (sender->host->batch) {
		write_stats(sender, &sender->aside);
		wire_flush(sender->aside.wire);
	}
	read_goodbye_ndx(sender);
	if (session->caps.goodbye_reply) {
		wire_write_ndx(session->wire, NDX_DONE);
		wire_flush(session->wire);
		read_goodbye_ndx(sender);
	}
}

/* --- --remove-source-files --- */

static void handle_message(void *context, enum message_code code, const uint8_t *payload, size_t length)
{
	struct sender *sender = context;

	if (code != MSG_SUCCESS)
		sender->host->message(sender->host->context, code, payload, length);
	else if (sender->options->remove_source_files)
		sender_remove_source(sender, (int32_t)decode_int(payload));
}

/* --- the whole run --- */

static void start_list(struct sender *sender)
{
	struct sender_host *host = sender->host;
	const struct options *options = sender->options;
	struct flist_send_setup setup = { .ids = host->ids, .no_names = host->no_names, .chmod = host->chmod };
	uint64_t before;

	sender->charset = setup.charset = options->iconv ? charset_new(host->charset) : NULL;
	if (options->iconv && !setup.charset)
		die(EXIT_UNSUPPORTED, "iconv_open(\"UTF-8\", \"%s\") failed", host->charset);
	flist_set_charset(sender->list, setup.charset);
	if (options->files_from) {
		flist_set_files_from(sender->list, host->sources->count ? host->sources->items[0] : "");
		if (host->names_fd < 0)
			read_streamed_names(sender);
		else
			read_names_of_file(sender);
	} else {
		for (size_t i = 0; i < host->sources->count; i++)
			flist_add_argument(sender->list, host->sources->items[i], false);
		if (!host->sources->count && (options->recursive || options->dirs || options->list_only))
			flist_add_argument(sender->list, ".", false);
	}
	flist_finish_arguments(sender->list);
	before = wire_bytes_written(sender->session->wire);
	sender->list_sender = flist_send_start(sender->list, sender->session, options, &setup);
	host->list_bytes = wire_bytes_written(sender->session->wire) - before;
	host->list_build_ms = flist_send_build_ms(sender->list_sender);
	if (host->list_sent)
		host->list_sent(host->context);
}

void sender_run(struct sender_host *host, struct flist *list)
{
	const struct options *options = host->options;
	struct session *session = host->session;
	struct match_stats match = { 0 };
	struct sender sender = {
		.host = host, .session = session, .options = options, .list = list, .current_ndx = -1, .content_fd = -1,
		.match = host->match ? host->match : &match,
		/* Before protocol 30 there is only the verifying kind (doc/protocol/03-transfer.md section 3.4). */
		.append = options->append && !session->caps.plain_append ? 2 : options->append,
		.xattr_items = options->xattrs > 0 && !options->dry_run,
		.xattr_shortcut = !session->avoid_xattr_optim,
	};

	wire_set_message_handler(session->wire, handle_message, &sender);
	start_list(&sender);
	sender.io_error_sent = session->io_error;
	/* A client that pulls ends after an empty list; one that pushes goes through all the phases (doc/protocol/01-session.md
	 * section 10.6). */
	if (session->is_server && !flist_dir(list, 0)->count && flist_dir_count(list) == 1) {
		wire_flush(session->wire);
	} else {
		/* A way into the batch that does not lead to the peer. */
		if (host->batch) {
			sender.aside = *session;
			sender.aside.wire = wire_new_file(-1);
			wire_settings(sender.aside.wire)->protocol = session->protocol;
			wire_set_tee_out(sender.aside.wire, batch_write, host->batch);
		}
		sender.tokens = token_writer_new(content_session(&sender));
		if (level_of(&sender, DEBUG_SEND))
			log_info("send_files starting");
		serve_requests(&sender);
		if (level_of(&sender, DEBUG_SEND))
			log_info("send files finished");
		if (level_of(&sender, DEBUG_DELTASUM) > 0)
			log_info("total: matches=%llu  hash_hits=%llu  false_alarms=%llu data=%llu",
				 (unsigned long long)sender.match->matches, (unsigned long long)sender.match->hash_hits,
				 (unsigned long long)sender.match->false_alarms,
				 (unsigned long long)sender.match->literal_bytes);
		say_goodbye(&sender);
		token_writer_free(sender.tokens);
		wire_free(sender.aside.wire);
	}
	flist_sender_free(sender.list_sender);
	vec_free(&sender.sent);
	vec_free(&sender.directories);
	charset_free(sender.charset);
}
