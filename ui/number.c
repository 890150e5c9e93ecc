/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers as the four levels of --human-readable write them. */
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "ui/number.h"

static char group_separator(void)
{
	const char *point = localeconv()->decimal_point;

	return point && point[0] != '.' ? '.' : ',';
}

/* Copy `digits` (an optional sign, digits, any tail from the first other character) with separators between thousands. */
static void copy_grouped(char *buf, size_t size, const char *digits)
{
	size_t sign = digits[0] == '-' ? 1 : 0;
	size_t whole = strspn(digits + sign, "0123456789");
	char separator = group_separator();
	size_t used = 0;

	for (size_t i = 0; digits[i] && used + 2 < size; i++) {
		if (i > sign && i < sign + whole && (sign + whole - i) % 3 == 0)
			buf[used++] = separator;
		buf[used++] = digits[i];
	}
	buf[used] = '\0';
}

/* Write `value` with a unit letter if it is at least one unit; false if it is not. */
static int format_with_unit(char *buf, size_t size, double value, int level)
{
	static const char units[] = "KMGTP";
	double base = level == 2 ? 1000.0 : 1024.0;
	double magnitude = value < 0 ? -value : value;
	int unit = -1;

	while (magnitude >= base && unit + 1 < (int)sizeof units - 1) {
		magnitude /= base;
		unit++;
	}
	if (unit < 0)
		return 0;
	snprintf(buf, size, "%s%.2f%c", value < 0 ? "-" : "", magnitude, units[unit]);
	return 1;
}

const char *number_format(char *buf, size_t size, int64_t value, int level)
{
	char digits[32];

	if (level >= 2 && format_with_unit(buf, size, (double)value, level))
		return buf;
	snprintf(digits, sizeof digits, "%" PRId64, value);
	if (level <= 0)
		snprintf(buf, size, "%s", digits);
	else
		copy_grouped(buf, size, digits);
	return buf;
}

const char *number_format_fraction(char *buf, size_t size, double value, int level)
{
	char digits[512];

	if (level >= 2 && format_with_unit(buf, size, value, level))
		return buf;
	snprintf(digits, sizeof digits, "%.2f", value);
	if (level <= 0)
		snprintf(buf, size, "%s", digits);
	else
		copy_grouped(buf, size, digits);
	return buf;
}
