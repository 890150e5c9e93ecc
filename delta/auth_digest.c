/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which digest, what challenge, what response. */
#include "delta/auth_digest.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include <nettle/base64.h>
#include <nettle/md4.h>
#include <nettle/nettle-meta.h>

#include "lib/exit.h"

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

static bool list_has(const char *list, const char *name)
{
	size_t length;

	for (; *list; list += length) {
		list += strspn(list, " ");
		length = strcspn(list, " ");
		if (length == strlen(name) && strncasecmp(list, name, length) == 0)
			return true;
	}
	return false;
}

const char *auth_digest_choose(const char *theirs, bool md5)
{
	if (!theirs)
		return md5 ? "md5" : "";
	for (size_t i = 0; i < DIGEST_COUNT; i++)
		if (list_has(theirs, digests[i].name))
			return digests[i].name;
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
