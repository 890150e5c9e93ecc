/* SPDX-License-Identifier: GPL-3.0-or-later */
/* S-039: headers of proxies, good and bad, fed as a connection feeds them (doc/protocol/07-daemon.md section 5.3). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "testsuite/unit/unit.h"

#include "daemon/peer.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V4 "\xc0\0\x02\x09\x7f\0\0\x01\x30\x39\x03\x69"
#define V6 " \x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x09 \x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x30\x39\x03\x69"

/* Feed a prefix that grows; `used` is how many bytes were taken until there was an answer. */
static enum proxy_result feed(const void *bytes, size_t length, char address[PROXY_ADDRESS_SIZE], size_t *used)
{
	enum proxy_result result = PROXY_MORE;

	for (*used = 0; *used < length && result == PROXY_MORE;) {
		/* In memory of its own: a byte too many is a sanitizer's finding. */
		uint8_t *prefix = malloc(*used + 1);

		memcpy(prefix, bytes, *used + 1);
		result = proxy_parse(prefix, ++*used, address);
		free(prefix);
	}
	return result;
}

struct header {
	const char *bytes;
	size_t length;
	const char *address; /* NULL: it is not said */
};
#define HEADER(text, address) { text, sizeof text - 1, address }

static const struct header good[] = {
	HEADER("PROXY TCP4 192.0.2.9 127.0.0.1 12345 873\r\n", "192.0.2.9"),
	HEADER("PROXY TCP6 2001:db8::9 2001:db8::1 12345 873\r\n", "2001:db8::9"),
	HEADER("PROXY TCP4 2001:DB8::9 127.0.0.1 1 1\r\n", "2001:db8::9"),
	HEADER("PROXY TCP6 ::ffff:192.0.2.9 ::1 1 1\r\n", "192.0.2.9"),
	HEADER("PROXY UNKNOWN\r\n", NULL),
	HEADER("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", NULL),
	HEADER("PROXY UNKNOWN a b c d e f g\r\n", NULL),
	HEADER(SIGNATURE "\x21\x11\0\x0c" V4, "192.0.2.9"),
	HEADER(SIGNATURE "\x21\x11\0\x10" V4 "\x04\0\x01x", "192.0.2.9"),
	HEADER(SIGNATURE "\x21\x21\0\x24" V6, "2001:db8::9"),
	HEADER(SIGNATURE "\x20\0\0\0", NULL),
	HEADER(SIGNATURE "\x20\x11\0\x0c" V4, NULL),
	HEADER(SIGNATURE "\x21\0\0\0", NULL),
	HEADER(SIGNATURE "\x21\x12\0\x0c" V4, NULL),
};

static const struct header bad[] = {
	HEADER("@RSYNCD: 31.0\n", NULL), HEADER("PROXX", NULL), HEADER("PROXY TCP4 192.0.2.9 127.0.0.1 1 1\n", NULL),
	HEADER("PROXY TCP4 192.0.2.9 127.0.0.1 0 1\r\n", NULL), HEADER("PROXY TCP4  192.0.2.9 127.0.0.1 1 1\r\n", NULL),
	HEADER("PROXY TCP4 192.0.2.999 127.0.0.1 1 1\r\n", NULL), HEADER("PROXY TCP4 192.0.2.9 127.0.0.1 1 1 1\r\n", NULL),
	HEADER("PROXY TCP4 192.0.2.9 127.0.0.1 1\r\n", NULL), HEADER("PROXY TCP4 192.0.2.9 host 1 1\r\n", NULL),
	HEADER("PROXY TCP4 192.0.2.9 127.0.0.1 x 1\r\n", NULL), HEADER("PROXY TCP4 192.0.2.9 127.0.0.1 -1 1\r\n", NULL),
	HEADER("PROXY UDP4 192.0.2.9 127.0.0.1 1 1\r\n", NULL), HEADER("PROXY TCP4 192.0.2.9\0 127.0.0.1 1 1\r\n", NULL),
	HEADER("PROXY \n", NULL), HEADER("PROXY \r\n", NULL), HEADER(SIGNATURE "\x11\x11\0\x0c", NULL),
	HEADER(SIGNATURE "\x25\x11\0\x0c", NULL), HEADER(SIGNATURE "\x21\x11\0\x0b", NULL),
	HEADER(SIGNATURE "\x21\x21\0\x0c", NULL), HEADER(SIGNATURE "\x21\x11\xff\xff", NULL),
	HEADER(SIGNATURE "\x21\x11\x02\x19", NULL),
};

UNIT_TEST(good_headers_tell_the_client_and_nothing_is_read_behind_them)
{
	char address[PROXY_ADDRESS_SIZE];
	uint8_t bytes[256];
	size_t used;

	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		const struct header *header = &good[i];

		memcpy(bytes, header->bytes, header->length);
		memcpy(bytes + header->length, "@RSYNCD", 7);
		assert_int_equal(feed(bytes, header->length + 7, address, &used),
				 header->address ? PROXY_ADDRESS : PROXY_UNKNOWN);
		assert_int_equal(used, header->length);
		if (header->address)
			assert_string_equal(address, header->address);
		assert_int_equal(feed(bytes, header->length - 1, address, &used), PROXY_MORE);
	}
}

UNIT_TEST(bad_headers_are_refused_as_soon_as_they_are_complete)
{
	char address[PROXY_ADDRESS_SIZE];
	size_t used;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(feed(bad[i].bytes, bad[i].length, address, &used), PROXY_BAD);
}

UNIT_TEST(a_header_without_end_is_bounded)
{
	char address[PROXY_ADDRESS_SIZE];
	uint8_t bytes[PROXY_HEADER_MAX];
	size_t used;

	memset(bytes, 'x', sizeof bytes);
	memcpy(bytes, "PROXY UNKNOWN ", 14);
	assert_int_equal(feed(bytes, sizeof bytes, address, &used), PROXY_BAD);
	assert_int_equal(used, 107);
	memcpy(bytes, SIGNATURE "\x21\x11\x02\x18" V4, 28);
	assert_int_equal(feed(bytes, sizeof bytes, address, &used), PROXY_ADDRESS);
	assert_int_equal(used, PROXY_HEADER_MAX);
}

/* Any bytes get an answer; one byte of a good header changed, too. */
UNIT_TEST(random_headers_are_survived)
{
	char address[PROXY_ADDRESS_SIZE];
	uint32_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		const struct header *header = &good[(size_t)round % (sizeof good / sizeof good[0])];
		uint8_t bytes[128];
		size_t used;

		memcpy(bytes, header->bytes, header->length);
		for (int change = 0; change < 3; change++) {
			seed = seed * 1664525 + 1013904223;
			bytes[(seed >> 16) % header->length] = (uint8_t)(seed >> 8);
		}
		assert_in_range(feed(bytes, header->length, address, &used), PROXY_MORE, PROXY_BAD);
	}
}
