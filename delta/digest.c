/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Strong checksums through nettle and xxhash (doc/protocol/03-transfer.md section 4). */
#include "delta/digest.h"

#include <errno.h>
#include <nettle/base64.h>
#include <nettle/md4.h>
#include <nettle/md5.h>
#include <nettle/nettle-meta.h>
#include <nettle/sha1.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <xxhash.h>
/* Only a library that chooses its code by processor comes with this header, which puts that code behind the usual names. */
#if __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

#include "lib/alloc.h"
#include "lib/bytes.h"
#include "lib/exit.h"
#include "lib/log.h"

struct file_digest {
	enum sum_algorithm algorithm;
	union {
		struct md4_ctx md4;
		struct md5_ctx md5;
		struct sha1_ctx sha1;
	} state;              /* of nettle's algorithms */
	XXH64_state_t *xxh64; /* made when first needed, kept */
	XXH3_state_t *xxh3;
};

void digest_for_display(enum sum_algorithm algorithm, const uint8_t *digest, int length, uint8_t *shown)
{
	for (int i = 0; i < length; i++)
		shown[i] = digest[algorithm >= SUM_XXH64 ? length - 1 - i : i];
}

int digest_length(enum sum_algorithm algorithm)
{
	static const int lengths[] = {
		[SUM_NONE] = 1, [SUM_MD4_OLD] = 16, [SUM_MD4] = 16, [SUM_MD5] = 16, [SUM_SHA1] = 20,
		[SUM_XXH64] = 8, [SUM_XXH3] = 8, [SUM_XXH128] = 16,
	};

	return lengths[algorithm];
}

/* The algorithm in nettle; NULL for none and those of the xxh family. */
static const struct nettle_hash *nettle_hash_of(enum sum_algorithm algorithm)
{
	switch (algorithm) {
	case SUM_MD4_OLD:
	case SUM_MD4:
		return &nettle_md4;
	case SUM_MD5:
		return &nettle_md5;
	case SUM_SHA1:
		return &nettle_sha1;
	default:
		return NULL;
	}
}

static void put_xxh128(uint8_t *out, XXH128_hash_t hash)
{
	bytes_put(bytes_put(out, hash.low64, 8), hash.high64, 8);
}

/* --- blocks --- */

void block_digest_compute(const struct block_digest *how, const void *data, size_t length, uint8_t *out)
{
	const struct nettle_hash *hash = nettle_hash_of(how->algorithm);
	uint64_t wide_seed = (uint64_t)(int64_t)how->seed;

	if (hash) {
		bool is_first = how->algorithm == SUM_SHA1 || (how->algorithm == SUM_MD5 && how->seed_first);
		struct file_digest digest;
		uint8_t seed[4];

		bytes_put(seed, (uint32_t)how->seed, sizeof seed);
		hash->init(&digest.state);
		if (how->seed && is_first)
			hash->update(&digest.state, sizeof seed, seed);
		hash->update(&digest.state, length, data);
		if (how->seed && !is_first)
			hash->update(&digest.state, sizeof seed, seed);
		hash->digest(&digest.state, hash->digest_size, out);
	} else if (how->algorithm == SUM_XXH64) {
		bytes_put(out, XXH64(data, length, wide_seed), 8);
	} else if (how->algorithm == SUM_XXH3) {
		bytes_put(out, XXH3_64bits_withSeed(data, length, wide_seed), 8);
	} else if (how->algorithm == SUM_XXH128) {
		put_xxh128(out, XXH3_128bits_withSeed(data, length, wide_seed));
	} else {
		out[0] = 0;
	}
}

/* --- whole files --- */

struct file_digest *file_digest_new(void)
{
	return xcalloc(1, sizeof(struct file_digest));
}

void file_digest_free(struct file_digest *digest)
{
	if (!digest)
		return;
	XXH64_freeState(digest->xxh64);
	XXH3_freeState(digest->xxh3);
	free(digest);
}

/* The library's way of saying that there is no memory for a state. */
static void *made(void *state)
{
	if (!state)
		die(EXIT_MALLOC, "[%s] out of memory for a checksum", log_role());
	return state;
}

void file_digest_start_plain(struct file_digest *digest, enum sum_algorithm algorithm)
{
	const struct nettle_hash *hash = nettle_hash_of(algorithm);

	digest->algorithm = algorithm;
	if (hash)
		hash->init(&digest->state);
	if (algorithm == SUM_XXH64 && !digest->xxh64)
		digest->xxh64 = made(XXH64_createState());
	if ((algorithm == SUM_XXH3 || algorithm == SUM_XXH128) && !digest->xxh3)
		digest->xxh3 = made(XXH3_createState());
	if (algorithm == SUM_XXH64)
		XXH64_reset(digest->xxh64, 0);
	else if (algorithm == SUM_XXH3)
		XXH3_64bits_reset(digest->xxh3);
	else if (algorithm == SUM_XXH128)
		XXH3_128bits_reset(digest->xxh3);
}

void file_digest_start(struct file_digest *digest, enum sum_algorithm algorithm, int32_t seed)
{
	uint8_t bytes[4];

	file_digest_start_plain(digest, algorithm);
	if (algorithm != SUM_MD4_OLD)
		return;
	bytes_put(bytes, (uint32_t)seed, sizeof bytes);
	file_digest_update(digest, bytes, sizeof bytes);
}

void file_digest_update(struct file_digest *digest, const void *data, size_t length)
{
	const struct nettle_hash *hash = nettle_hash_of(digest->algorithm);

	if (hash)
		hash->update(&digest->state, length, data);
	else if (digest->algorithm == SUM_XXH64)
		XXH64_update(digest->xxh64, data, length);
	else if (digest->algorithm == SUM_XXH3)
		XXH3_64bits_update(digest->xxh3, data, length);
	else if (digest->algorithm == SUM_XXH128)
		XXH3_128bits_update(digest->xxh3, data, length);
}

int file_digest_finish(struct file_digest *digest, uint8_t out[DIGEST_MAX_LENGTH])
{
	const struct nettle_hash *hash = nettle_hash_of(digest->algorithm);

	if (hash)
		hash->digest(&digest->state, hash->digest_size, out);
	else if (digest->algorithm == SUM_XXH64)
		bytes_put(out, XXH64_digest(digest->xxh64), 8);
	else if (digest->algorithm == SUM_XXH3)
		bytes_put(out, XXH3_64bits_digest(digest->xxh3), 8);
	else if (digest->algorithm == SUM_XXH128)
		put_xxh128(out, XXH3_128bits_digest(digest->xxh3));
	else
		out[0] = 0;
	return digest_length(digest->algorithm);
}

/* --- digests of passwords: which digest, what challenge, what response --- */

enum { DIGEST_MAX = 64, CONTEXT_MAX = 512 };

/* In the order of preference. */
static const struct {
	const char *name;
	const struct nettle_hash *hash;
} digests[] = {
	{ "sha512", &nettle_sha512 }, { "sha256", &nettle_sha256 }, { "sha1", &nettle_sha1 }, { "md5", &nettle_md5 },
	{ "md4", &nettle_md4 },
};

#define DIGEST_COUNT (sizeof digests / sizeof digests[0])

int auth_digest_rank(const char *name)
{
	for (size_t i = 0; i < DIGEST_COUNT; i++)
		if (!strcasecmp(digests[i].name, name))
			return (int)i;
	return -1;
}

const char *auth_digest_choose(const char *theirs, bool md5)
{
	if (!theirs)
		return md5 ? "md5" : "";
	for (size_t i = 0; i < DIGEST_COUNT; i++) {
		size_t length;

		for (const char *at = theirs; *at; at += length) {
			at += strspn(at, " ");
			length = strcspn(at, " ");
			if (length == strlen(digests[i].name) && strncasecmp(at, digests[i].name, length) == 0)
				return digests[i].name;
		}
	}
	return NULL;
}

static const struct nettle_hash *hash_of(const char *digest)
{
	return *digest ? digests[auth_digest_rank(digest)].hash : &nettle_md4;
}

/* Base64 without the padding. */
static void encode(const uint8_t *bytes, size_t length, char text[AUTH_TEXT_MAX])
{
	size_t coded = BASE64_ENCODE_RAW_LENGTH(length);

	base64_encode_raw(text, length, bytes);
	text[coded] = 0;
	text[strcspn(text, "=")] = 0;
}

void auth_challenge(const char *digest, char challenge[AUTH_TEXT_MAX])
{
	uint8_t bytes[DIGEST_MAX];
	size_t length = hash_of(digest)->digest_size;

	if (getrandom(bytes, length, 0) != (ssize_t)length)
		die(EXIT_UNSUPPORTED, "cannot get random bytes: %s", strerror(errno));
	encode(bytes, length, challenge);
}

void auth_response(const char *digest, const char *password, const char *challenge, char response[AUTH_TEXT_MAX])
{
	const struct nettle_hash *hash = hash_of(digest);
	union { uint8_t bytes[CONTEXT_MAX]; uint64_t align; } context;
	static const uint8_t zeros[4];
	uint8_t sum[DIGEST_MAX];

	hash->init(&context);
	if (!*digest)
		hash->update(&context, sizeof zeros, zeros);
	hash->update(&context, strlen(password), (const uint8_t *)password);
	hash->update(&context, strlen(challenge), (const uint8_t *)challenge);
	hash->digest(&context, hash->digest_size, sum);
	explicit_bzero(&context, sizeof context);
	encode(sum, hash->digest_size, response);
}
