/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading a proxy's header from memory. */
#include "daemon/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define LINE_MAX_LENGTH 107
#define FIXED_LENGTH 16 /* of version 2 */
#define IPV4_LENGTH 12  /* two addresses, two ports */
#define IPV6_LENGTH 36
#define FIELDS 6

static const uint8_t signature[12] = { 0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a };
static const char word[] = "PROXY ";

static size_t shorter(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void show_ipv6(const uint8_t bytes[16], char address[PROXY_ADDRESS_SIZE])
{
	struct in6_addr v6;

	memcpy(&v6, bytes, sizeof v6);
	if (IN6_IS_ADDR_V4MAPPED(&v6))
		inet_ntop(AF_INET, bytes + 12, address, PROXY_ADDRESS_SIZE);
	else
		inet_ntop(AF_INET6, bytes, address, PROXY_ADDRESS_SIZE);
}

/* --- version 1: a line --- */

static bool read_address(const char *text, char address[PROXY_ADDRESS_SIZE])
{
	uint8_t bytes[16];

	if (inet_pton(AF_INET, text, bytes) == 1)
		inet_ntop(AF_INET, bytes, address, PROXY_ADDRESS_SIZE);
	else if (inet_pton(AF_INET6, text, bytes) == 1)
		show_ipv6(bytes, address);
	else
		return false;
	return true;
}

static bool is_port(const char *text)
{
	return *text && strlen(text) <= 5 && text[strspn(text, "0123456789")] == 0 && atoi(text) > 0;
}

/* The words between single spaces; their number, more than FIELDS if there are too many. */
static int split(char *line, char *fields[FIELDS])
{
	int count = 0;
	char *rest = line, *field;

	while ((field = strsep(&rest, " ")) && count < FIELDS)
		fields[count++] = field;
	return field ? FIELDS + 1 : count;
}

static enum proxy_result parse_line(const uint8_t *bytes, size_t length, char address[PROXY_ADDRESS_SIZE])
{
	char line[LINE_MAX_LENGTH + 1], destination[PROXY_ADDRESS_SIZE], *fields[FIELDS];
	int count;

	if (bytes[length - 1] == 0 || (bytes[length - 1] != '\n' && length == LINE_MAX_LENGTH))
		return PROXY_BAD;
	if (bytes[length - 1] != '\n')
		return PROXY_MORE;
	if (bytes[length - 2] != '\r')
		return PROXY_BAD;
	memcpy(line, bytes, length - 2);
	line[length - 2] = 0;
	count = split(line, fields);
	if (count >= 2 && !strcmp(fields[1], "UNKNOWN"))
		return PROXY_UNKNOWN;
	if (count != FIELDS || (strcmp(fields[1], "TCP4") && strcmp(fields[1], "TCP6")) || !read_address(fields[2], address) ||
	    !read_address(fields[3], destination) || !is_port(fields[4]) || !is_port(fields[5]))
		return PROXY_BAD;
	return PROXY_ADDRESS;
}

/* --- version 2: binary --- */

static bool fixed_part_is_good(const uint8_t *bytes, size_t payload)
{
	int command = bytes[12] & 0x0f, family = bytes[13];
	size_t least = command != 1 ? 0 : family == 0x11 ? IPV4_LENGTH : family == 0x21 ? IPV6_LENGTH : 0;

	return bytes[12] >> 4 == 2 && command <= 1 && payload >= least && FIXED_LENGTH + payload <= PROXY_HEADER_MAX;
}

/* What stands behind the addresses is of no interest here. */
static enum proxy_result parse_binary(const uint8_t *bytes, size_t length, char address[PROXY_ADDRESS_SIZE])
{
	size_t payload;

	if (length < FIXED_LENGTH)
		return PROXY_MORE;
	payload = (size_t)bytes[14] << 8 | bytes[15];
	if (!fixed_part_is_good(bytes, payload))
		return PROXY_BAD;
	if (length < FIXED_LENGTH + payload)
		return PROXY_MORE;
	if ((bytes[12] & 0x0f) == 0 || (bytes[13] != 0x11 && bytes[13] != 0x21))
		return PROXY_UNKNOWN;
	if (bytes[13] == 0x11)
		inet_ntop(AF_INET, bytes + FIXED_LENGTH, address, PROXY_ADDRESS_SIZE);
	else
		show_ipv6(bytes + FIXED_LENGTH, address);
	return PROXY_ADDRESS;
}

enum proxy_result proxy_parse(const uint8_t *bytes, size_t length, char address[PROXY_ADDRESS_SIZE])
{
	size_t text_length = sizeof word - 1;

	if (!memcmp(bytes, signature, shorter(length, sizeof signature)))
		return parse_binary(bytes, length, address);
	if (memcmp(bytes, word, shorter(length, text_length)))
		return PROXY_BAD;
	return length <= text_length ? PROXY_MORE : parse_line(bytes, length, address);
}
