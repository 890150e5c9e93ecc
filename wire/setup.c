/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The set-up of a session: the greeting of a daemon, versions, compat flags, algorithms, seed, multiplexing
 * (doc/protocol/01-session.md sections 3.1, 3.2, 7 and 9.2).
 */
#include "wire/setup.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "lib/exit.h"
#include "lib/log.h"
#include "lib/strbuf.h"

enum {
	LIST_MAX = 255,          /* a negotiation string */
	ZLIB_LEVEL_DEFAULT = 6,
	ZLIB_LEVEL_MAX = 9,
	ZSTD_LEVEL_DEFAULT = 3,
	ZSTD_LEVEL_MIN = -131072,
	ZSTD_LEVEL_MAX = 22,
	COMPRESS_THREADS_MAX = 8, /* a client chooses those of a server */
	CF_KNOWN = 0x1ff,
	SESSION_ALLOCATIONS = 16,
};

/* --- "@RSYNCD: 33.0 sha512 ...", the greeting of a daemon (3.1, 3.2) --- */

enum {
	LIST_OFFSET = 9,       /* the digest list begins behind the first space from here on */
	SUB_FROM = 30,         /* from this version on the sub-protocol must be there */
	DIGESTS_FROM = 32,     /* and from this one on the digest list */
};

static const char prefix[] = "@RSYNCD:";
static const char our_digests[] = "sha512 sha256 sha1 md5 md4";

const char *greeting_digests(void)
{
	return our_digests;
}

size_t greeting_format(char *buf, size_t size, int our_version)
{
	return (size_t)snprintf(buf, size, "%s %d.0 %s\n", prefix, our_version, our_digests);
}

/* A decimal integer, with a sign if need be; NULL if there is none or it does not fit. */
static const char *parse_integer(const char *text, int *value)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (end == text || errno || number < INT_MIN || number > INT_MAX)
		return NULL;
	*value = (int)number;
	return end;
}

enum greeting_error greeting_parse(struct greeting *greeting, const char *line)
{
	const char *rest, *space;

	*greeting = (struct greeting){ .version = 0, .sub = -1, .digests = NULL };
	if (strncmp(line, prefix, sizeof prefix - 1) != 0)
		return GREETING_MALFORMED;
	rest = parse_integer(line + sizeof prefix - 1, &greeting->version);
	if (!rest)
		return GREETING_MALFORMED;
	if (*rest == '.' && (!parse_integer(rest + 1, &greeting->sub) || greeting->sub < 0))
		greeting->sub = -1;
	if (greeting->sub < 0 && greeting->version >= SUB_FROM)
		return GREETING_NO_SUBPROTOCOL;
	space = strlen(line) > LIST_OFFSET ? strchr(line + LIST_OFFSET, ' ') : NULL;
	if (space)
		greeting->digests = space + 1;
	else if (greeting->version >= DIGESTS_FROM)
		return GREETING_NO_DIGESTS;
	return GREETING_OK;
}

int greeting_negotiate(const struct greeting *theirs, int our_version)
{
	int version = theirs->version;

	if (version < PEER_PROTOCOL_MIN || version > PEER_PROTOCOL_MAX)
		return 0;
	/* A pre-release (sub-protocol not 0) speaks what is certain: the version before. Ours is never one. */
	if (version <= our_version && theirs->sub > 0)
		version--;
	if (version > our_version)
		version = our_version;
	return version < PROTOCOL_MIN ? 0 : version;
}

/* --- the names of algorithms, and how two peers choose one of each (7.5) --- */

struct name { const char *text; int value; };

/* In the order of preference; SUM_MD4_OLD goes by the name of md4 and is never chosen by name. */
static const struct name sum_names[] = {
	{ "xxh128", SUM_XXH128 }, { "xxh3", SUM_XXH3 }, { "xxh64", SUM_XXH64 }, { "md5", SUM_MD5 }, { "md4", SUM_MD4 },
	{ "sha1", SUM_SHA1 }, { "none", SUM_NONE }, { "xxhash", SUM_XXH64 }, { "md4", SUM_MD4_OLD }, { NULL, 0 },
};

static const struct name compress_names[] = {
	{ "zstd", COMPRESS_ZSTD }, { "lz4", COMPRESS_LZ4 }, { "zlibx", COMPRESS_ZLIBX }, { "zlib", COMPRESS_ZLIB },
	{ "none", COMPRESS_NONE }, { NULL, 0 },
};

static const struct choice_kind {
	const char *shown;
	const struct name *names;
	const char *variable, *client_list;
} kinds[] = {
	[CHOICE_CHECKSUM] = { "checksum", sum_names, "RSYNC_CHECKSUM_LIST", "xxh128 xxh3 xxh64 md5 md4 sha1" },
	[CHOICE_COMPRESS] = { "compress", compress_names, "RSYNC_COMPRESS_LIST", "zstd lz4 zlibx zlib" },
};

int algorithm_find(enum choice choice, const char *text, size_t length)
{
	for (const struct name *name = kinds[choice].names; name->text; name++)
		if (strlen(name->text) == length && strncasecmp(name->text, text, length) == 0)
			return name->value;
	return -1;
}

const char *algorithm_name(enum choice choice, int algorithm)
{
	for (const struct name *name = kinds[choice].names; name->text; name++)
		if (name->value == algorithm)
			return name->text;
	return "unknown";
}

/* The next word of a blank-separated list; its length, 0 at the end. */
static size_t next_word(const char **list)
{
	*list += strspn(*list, " \t\r\n");
	return strcspn(*list, " \t\r\n");
}

/* Does the list have the algorithm (enum sum_algorithm or enum compress_algorithm), also by an alias? */
static bool choice_list_has(enum choice choice, const char *list, int value)
{
	size_t length;

	for (; (length = next_word(&list)) > 0; list += length)
		if (algorithm_find(choice, list, length) == value)
			return true;
	return false;
}

/* The first of the client's names that the server has too; -1: nothing in common. */
static int choice_by_client_order(enum choice choice, const char *client_list, const char *server_list)
{
	size_t length;

	for (; (length = next_word(&client_list)) > 0; client_list += length) {
		int value = algorithm_find(choice, client_list, length);

		if (value >= 0 && choice_list_has(choice, server_list, value))
			return value;
	}
	return -1;
}

/*
 * Our names, in order of preference, from RSYNC_CHECKSUM_LIST or RSYNC_COMPRESS_LIST or the default. true: the environment
 * restricts the list; "INVALID" if nothing of it is known.
 */
static bool choice_our_list(struct strbuf *list, enum choice choice, bool is_server)
{
	struct strbuf wanted = STRBUF_INIT;
	const char *word;
	size_t length;

	/* The part of the environment's list that is ours: before "&" for a client, after it for a server. */
	const char *text = getenv(kinds[choice].variable), *ampersand;

	if (text) {
		ampersand = strchr(text, '&');
		if (!ampersand)
			strbuf_add_string(&wanted, text);
		else if (is_server)
			strbuf_add_string(&wanted, ampersand + 1);
		else
			strbuf_add(&wanted, text, (size_t)(ampersand - text));
	}
	word = strbuf_text(&wanted);
	if (!next_word(&word)) {
		strbuf_free(&wanted);
		strbuf_add_string(list, kinds[choice].client_list);
		if (is_server)
			strbuf_add_string(list, " none");
		return false;
	}
	for (; (length = next_word(&word)) > 0; word += length) {
		int value = algorithm_find(choice, word, length);

		if (value < 0 || choice_list_has(choice, strbuf_text(list), value))
			continue;
		strbuf_addf(list, "%s%s", list->length ? " " : "", algorithm_name(choice, value));
	}
	if (!list->length)
		strbuf_add_string(list, "INVALID");
	strbuf_free(&wanted);
	return true;
}

/* "Failed to negotiate a checksum choice." and both lists, EXIT_UNSUPPORTED. */
static _Noreturn void choice_failed(enum choice choice, bool is_server, const char *ours, const char *theirs)
{
	log_error("Failed to negotiate a %s choice.", kinds[choice].shown);
	log_error("%s list: %s", is_server ? "Client" : "Server", theirs);
	log_error("%s list: %s", is_server ? "Server" : "Client", ours);
	exit_with(EXIT_UNSUPPORTED);
}

/* --- versions --- */

struct session_caps session_caps_of(int protocol)
{
	bool from_28 = protocol >= 28, from_29 = protocol >= 29, from_30 = protocol >= 30, from_31 = protocol >= 31;

	return (struct session_caps){
		.extended_flags = from_28, .split_rdev = from_28, .marks_links = from_28, .sums_only_files = from_28,

		.item_flags = from_29, .third_phase = from_29, .modern_filters = from_29, .list_times = from_29,
		.created_counts = from_29, .deleted_messages = from_29, .clean_names = from_29,
		.raw_keep_alive = protocol == 29,
		.sorts_by_path = !from_29, .errors_in_stream = !from_29,

		.compat_flags = from_30, .nul_args = from_30, .varints = from_30, .frames_requests = from_30,
		.no_send_message = from_30, .io_error_message = from_30, .content_flags = from_30, .inline_names = from_30,
		.wide_mtime = from_30, .links_by_index = from_30, .plain_digests = from_30, .md5 = from_30,
		.plain_append = from_30, .deletes_during = from_30, .perishable_rules = from_30, .symlink_times = from_30,
		.omits_parents = !from_30, .byte_minors = !from_30,
		.batch_bits = from_30 ? 0x7fff : from_29 ? 0x1ff : 0x7f,
		.block_length_max = from_30 ? BLOCK_LENGTH_MAX : OLD_BLOCK_LENGTH_MAX,

		.mtime_nsec = from_31, .framed_names = from_31, .goodbye_reply = from_31, .delete_stats = from_31,
		.error_exit = from_31, .io_timeout = from_31,
		.special_rdev = !from_31, .zlib_repeats = !from_31,

		.block_stats = protocol >= 33,
	};
}

void session_set_protocol(struct session *session, int protocol)
{
	session->protocol = protocol;
	session->caps = session_caps_of(protocol);
	if (session->wire)
		wire_settings(session->wire)->protocol = protocol;
}

/* The value of -e: "." or, from a pre-release, "VERSION.SUB", then letters. Returns the letters. */
static const char *parse_client_info(const char *info, int *version, int *sub)
{
	char *end;

	*version = (int)strtol(info, &end, 10);
	*sub = 0;
	if (*end == '.')
		*sub = (int)strtol(end + 1, &end, 10);
	return end;
}

/* To a client of a pre-release the server announces the version before (doc/protocol/01-session.md section 7.1). */
static int version_to_announce(const struct session *session, const struct setup_request *request)
{
	int ours = request->max_protocol, version, sub;

	if (!session->is_server || !request->client_info)
		return ours;
	parse_client_info(request->client_info, &version, &sub);
	if (version <= 0 || sub <= 0 || version > ours)
		return ours;
	return version - 1;
}

void setup_refuse_version(void)
{
	log_error("protocol version mismatch -- is your shell clean?");
	die(EXIT_PROTOCOL, "(see the rsync manpage for an explanation)");
}

void setup_exchange_versions(struct session *session, const struct setup_request *request)
{
	int ours = version_to_announce(session, request), theirs;

	wire_write_int(session->wire, ours);
	wire_flush(session->wire);
	theirs = wire_read_int(session->wire);
	if (theirs < PEER_PROTOCOL_MIN || theirs > PEER_PROTOCOL_MAX)
		setup_refuse_version();
	session_set_protocol(session, theirs < ours ? theirs : ours);
	session->peer_version = theirs;
	if (session->protocol < PROTOCOL_MIN)
		die(EXIT_PROTOCOL, "the peer speaks protocol %d at most, but %d is the least that this side supports",
		    session->protocol, PROTOCOL_MIN);
	wire_reset_counts(session->wire);
}

/* --- what a protocol cannot carry (doc/protocol/01-session.md section 7.2) --- */

static void require(const struct session *session, bool asked, int least, const char *what)
{
	if (asked && session->protocol < least)
		die(EXIT_PROTOCOL, "%s requires protocol %d or higher (negotiated %d).", what, least, session->protocol);
}

static void check_options(const struct session *session, const struct setup_request *request)
{
	require(session, request->acls, 30, "--acls");
	require(session, request->xattrs, 30, "--xattrs");
	require(session, request->fuzzy, 29, "--fuzzy");
	require(session, request->inplace && request->alt_dests, 29,
		"--compare-dest, --copy-dest or --link-dest with --inplace");
	require(session, request->alt_dests > 1, 29, "Using more than one --compare-dest, --copy-dest or --link-dest option");
	require(session, request->prune_empty_dirs, 29, "--prune-empty-dirs");
}

/* --- compat flags (7.3, 7.4) --- */

static bool peer_has(const struct session *session, char letter)
{
	return strchr(session->peer_letters, letter) != NULL;
}

static bool may_inc_recurse(const struct session *session, const struct setup_request *request)
{
	/* A server goes by the letter; what the letter of a client goes by is the same. */
	if (session->is_server && !peer_has(session, 'i'))
		return false;
	return request->recursive && request->allow_inc_recurse && !request->use_qsort &&
	       (session->is_sender || !request->needs_whole_list);
}

static uint32_t choose_compat(const struct session *session, const struct setup_request *request)
{
	static const struct { char letter; enum compat_flag flag; } by_letter[] = {
		{ 'f', CF_SAFE_FLIST }, { 'x', CF_AVOID_XATTR_OPTIM }, { 'C', CF_CHKSUM_SEED_FIX },
		{ 'I', CF_INPLACE_PARTIAL_DIR }, { 'v', CF_VARINT_FLIST_FLAGS }, { 'u', CF_ID0_NAMES },
	};
	uint32_t compat = CF_SYMLINK_TIMES | CF_SYMLINK_ICONV;

	if (may_inc_recurse(session, request))
		compat |= CF_INC_RECURSE;
	for (size_t i = 0; i < sizeof by_letter / sizeof *by_letter; i++)
		if (peer_has(session, by_letter[i].letter))
			compat |= by_letter[i].flag;
	return compat;
}

/* What the flags and the version mean, spelled out; below protocol 30 there are none. */
static void apply_compat(struct session *session, const struct setup_request *request)
{
	uint32_t compat = session->compat;

	session->inc_recurse = compat & CF_INC_RECURSE;
	session->varint_flags = compat & CF_VARINT_FLIST_FLAGS;
	session->safe_flist = compat & CF_SAFE_FLIST || session->protocol >= 31;
	session->id0_names = compat & CF_ID0_NAMES;
	session->inplace_partial = compat & CF_INPLACE_PARTIAL_DIR;
	/* Below 30 only an explicit md5 is concerned, which 3.x peers hash with the seed first (doc/protocol/03-transfer.md
	 * section 4.3). */
	session->seed_first = compat & CF_CHKSUM_SEED_FIX || session->protocol < 30;
	session->avoid_xattr_optim = compat & CF_AVOID_XATTR_OPTIM || session->protocol < 31;
	session->symlink_iconv = request->iconv && session->protocol >= 30 &&
				 (!session->is_sender || (session->is_server ? peer_has(session, 's')
									      : (compat & CF_SYMLINK_ICONV) != 0));
}

/* --- algorithms (7.5) --- */

/* What a batch is read with has nobody to ask: there is one choice only (doc/protocol/03-transfer.md section 12.2). */
static bool our_list(const struct session *session, const struct setup_request *request, struct strbuf *list,
		     enum choice choice)
{
	if (!request->for_batch)
		return choice_our_list(list, choice, session->is_server);
	strbuf_add_string(list, choice == CHOICE_COMPRESS ? "zlib" : session->caps.md5 ? "md5" : "md4");
	return false;
}

static bool is_auto(const char *choice)
{
	return !choice || strcasecmp(choice, "auto") == 0;
}

static enum sum_algorithm parse_sum(const char *name, size_t length)
{
	int algorithm = algorithm_find(CHOICE_CHECKSUM, name, length);

	if (algorithm < 0)
		die(EXIT_UNSUPPORTED, "unknown checksum name: %.*s", (int)(length < 256 ? length : 256), name);
	return (enum sum_algorithm)algorithm;
}

/* An algorithm that was not negotiated must not be one that the environment's list leaves out. */
static void check_against_list(const struct session *session, const struct setup_request *request, enum choice choice,
			       int value, const char *option_value)
{
	struct strbuf list = STRBUF_INIT;
	bool restricted = our_list(session, request, &list, choice);
	/* An explicit choice is the server's to refuse. */
	bool good = !restricted || (option_value && !session->is_server) || choice_list_has(choice, strbuf_text(&list), value);

	if (!good && !option_value)
		choice_failed(choice, session->is_server, strbuf_text(&list), algorithm_name(choice, value));
	if (!good)
		die(EXIT_UNSUPPORTED, "Your --%s-choice value (%s) was refused by the server.", kinds[choice].shown,
		    option_value);
	strbuf_free(&list);
}

static void write_list(struct session *session, const struct setup_request *request, enum choice choice)
{
	struct strbuf ours = STRBUF_INIT;

	our_list(session, request, &ours, choice);
	if (ours.length > LIST_MAX)
		die(EXIT_UNSUPPORTED, "our list of %s names is longer than %d bytes", kinds[choice].shown, LIST_MAX);
	wire_write_vstring(session->wire, ours.data, ours.length);
	strbuf_free(&ours);
}

/* The client's order decides: that is what every client does itself, whatever order it was given. */
static int read_list_and_choose(struct session *session, const struct setup_request *request, enum choice choice)
{
	struct strbuf ours = STRBUF_INIT;
	char theirs[LIST_MAX + 1];
	int value;

	our_list(session, request, &ours, choice);
	wire_read_vstring(session->wire, theirs, sizeof theirs, "list of names");
	if (session->is_server)
		value = choice_by_client_order(choice, theirs, strbuf_text(&ours));
	else
		value = choice_by_client_order(choice, strbuf_text(&ours), theirs);
	if (value < 0)
		choice_failed(choice, session->is_server, strbuf_text(&ours), theirs);
	strbuf_free(&ours);
	return value;
}

static void read_lists(struct session *session, const struct setup_request *request, bool sums, bool compress)
{
	if (sums)
		session->xfer_sum = session->file_sum =
			(enum sum_algorithm)read_list_and_choose(session, request, CHOICE_CHECKSUM);
	if (compress)
		session->compress = (enum compress_algorithm)read_list_and_choose(session, request, CHOICE_COMPRESS);
}

static bool has_own_order(enum choice choice)
{
	struct strbuf list = STRBUF_INIT;
	bool own = choice_our_list(&list, choice, false);

	strbuf_free(&list);
	return own;
}

static void write_name(struct session *session, enum choice choice, int algorithm)
{
	const char *name = algorithm_name(choice, algorithm);

	wire_write_vstring(session->wire, name, strlen(name));
}

/* Both strings go out before one is read, so that neither side waits for the other. */
static void negotiate(struct session *session, const struct setup_request *request, bool sums, bool compress)
{
	if (!session->is_server && !request->for_batch
	    && ((sums && has_own_order(CHOICE_CHECKSUM)) || (compress && has_own_order(CHOICE_COMPRESS)))) {
		/*
		 * Servers differ in whose order decides where both lists have several names. A client with an order of its own
		 * thus waits for the server's list, which comes unasked, and answers with the one name that is its choice.
		 */
		read_lists(session, request, sums, compress);
		if (sums)
			write_name(session, CHOICE_CHECKSUM, (int)session->xfer_sum);
		if (compress)
			write_name(session, CHOICE_COMPRESS, (int)session->compress);
		return;
	}
	if (sums)
		write_list(session, request, CHOICE_CHECKSUM);
	if (compress)
		write_list(session, request, CHOICE_COMPRESS);
	read_lists(session, request, sums, compress);
}

static int clamp(int value, int low, int high)
{
	return value < low ? low : value > high ? high : value;
}

/* doc/protocol/03-transfer.md section 6.7. Level 0 switches zlib off altogether, on both sides. */
static void choose_level(struct session *session, const struct setup_request *request)
{
	int level = request->compress_level;
	bool set = request->compress_level_set;

	session->compress_level = 0;
	switch (session->compress) {
	case COMPRESS_ZLIB:
	case COMPRESS_ZLIBX:
		if (set && level == 0)
			session->compress = COMPRESS_NONE;
		else
			session->compress_level = !set || level == -1 ? ZLIB_LEVEL_DEFAULT : clamp(level, 1, ZLIB_LEVEL_MAX);
		break;
	case COMPRESS_ZSTD:
		session->compress_level = !set || level == 0 ? ZSTD_LEVEL_DEFAULT
							     : clamp(level, ZSTD_LEVEL_MIN, ZSTD_LEVEL_MAX);
		session->compress_threads = clamp(request->compress_threads, 0, COMPRESS_THREADS_MAX);
		break;
	case COMPRESS_LZ4:
	case COMPRESS_NONE:
		break;
	}
}

static void choose_algorithms(struct session *session, const struct setup_request *request)
{
	bool auto_sum = is_auto(request->checksum_choice);
	bool auto_compress = request->compress && is_auto(request->compress_choice);

	session->compress = COMPRESS_NONE;
	if (!auto_sum) {
		const char *choice = request->checksum_choice, *comma = strchr(choice, ',');
		size_t length = comma ? (size_t)(comma - choice) : strlen(choice);

		session->xfer_sum = parse_sum(choice, length);
		session->file_sum = comma ? parse_sum(comma + 1, strlen(comma + 1)) : session->xfer_sum;
		check_against_list(session, request, CHOICE_CHECKSUM, (int)session->xfer_sum, choice);
		check_against_list(session, request, CHOICE_CHECKSUM, (int)session->file_sum, choice);
	}
	if (request->compress && !auto_compress) {
		int found = algorithm_find(CHOICE_COMPRESS, request->compress_choice, strlen(request->compress_choice));

		if (found < 0)
			die(EXIT_UNSUPPORTED, "unknown compress name: %s", request->compress_choice);
		session->compress = (enum compress_algorithm)found;
		check_against_list(session, request, CHOICE_COMPRESS, found, request->compress_choice);
	}
	if (session->varint_flags && !request->from_batch) {
		negotiate(session, request, auto_sum, auto_compress);
	} else {
		if (auto_sum) {
			enum sum_algorithm listed = session->caps.md5 ? SUM_MD5 : SUM_MD4;

			check_against_list(session, request, CHOICE_CHECKSUM, (int)listed, NULL);
			session->xfer_sum = session->file_sum = session->caps.md5 ? SUM_MD5 : SUM_MD4_OLD;
		}
		if (auto_compress)
			check_against_list(session, request, CHOICE_COMPRESS, session->compress = COMPRESS_ZLIB, NULL);
	}
	/* A negotiation may end with "none", too; the choice itself has been checked by the caller where the peer can be
	 * notified. */
	if (request->always_checksum && session->file_sum == SUM_NONE)
		die(EXIT_UNSUPPORTED, "Invalid checksum-choice for --checksum: none (0)");
	choose_level(session, request);
}

/* --- all of it (7.6, 7.7) --- */

void setup_server(struct session *session, const struct setup_request *request)
{
	int version, sub;

	session_set_protocol(session, session->protocol);
	wire_settings(session->wire)->is_server = true;
	check_options(session, request);
	const char *letters = parse_client_info(request->client_info ? request->client_info : "", &version, &sub);

	snprintf(session->peer_letters, sizeof session->peer_letters, "%s", letters);
	session->compat = session->caps.compat_flags ? choose_compat(session, request) : 0;
	apply_compat(session, request);
	if (session->caps.compat_flags)
		wire_write_varint(session->wire, (int32_t)session->compat);
	choose_algorithms(session, request);
	session->seed = request->checksum_seed;
	while (!session->seed)
		if (getrandom(&session->seed, sizeof session->seed, 0) != sizeof session->seed)
			die(EXIT_IPC, "cannot get random bytes for the checksum seed: %s", strerror(errno));
	wire_write_int(session->wire, session->seed);
}

void setup_client(struct session *session, const struct setup_request *request)
{
	session_set_protocol(session, session->protocol);
	check_options(session, request);
	/* Servers before 3.2.0 write one byte, which reads the same. A list in parts is for those who have offered to take
	 * it. */
	session->compat = session->caps.compat_flags ? (uint32_t)wire_read_varint(session->wire) & CF_KNOWN : 0;
	if ((session->compat & CF_INC_RECURSE) && request->from_batch && request->needs_whole_list)
		die(EXIT_SYNTAX, "Incompatible options specified for inc-recursive batch file.");
	if ((session->compat & CF_INC_RECURSE) && !request->from_batch && !may_inc_recurse(session, request))
		die(EXIT_SYNTAX, "the server wants incremental recursion, which this side has not offered");
	apply_compat(session, request);
	choose_algorithms(session, request);
	session->seed = wire_read_int(session->wire);
}

void setup_start_mux(struct session *session, bool remove_source)
{
	/* To the sending side flow requests: framed from protocol 30 on, or because MSG_SUCCESS has to travel. */
	bool framed = session->caps.frames_requests;
	bool requests_framed = framed || remove_source;
	bool to_client_framed = true;
	bool to_server_framed = session->is_server == session->is_sender ? requests_framed : framed;

	wire_settings(session->wire)->is_sender = session->is_sender;
	wire_set_mux_out(session->wire, session->is_server ? to_client_framed : to_server_framed);
	wire_set_mux_in(session->wire, session->is_server ? to_server_framed : to_client_framed);
	wire_reset_counts(session->wire);
}

void session_limit_memory(struct session *session)
{
	size_t ceiling = session->max_alloc ? session->max_alloc : MAX_ALLOC_DEFAULT;

	size_t most = ceiling > SIZE_MAX / SESSION_ALLOCATIONS ? SIZE_MAX : ceiling * SESSION_ALLOCATIONS;

	budget_lower(wire_budget(session->wire), most, "--max-alloc, of which it is 16 times");
}
