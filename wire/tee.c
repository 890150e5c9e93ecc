/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bytes that go out, for somebody who writes them down without frames and messages. */
#include "wire/tee.h"

#include <string.h>

#include "wire/internal.h"

static size_t take_header(struct wire *wire, const uint8_t *bytes, size_t length)
{
	size_t step = FRAME_HEADER - wire->tee_header_length;
	uint32_t header;

	if (step > length)
		step = length;
	memcpy(wire->tee_header + wire->tee_header_length, bytes, step);
	wire->tee_header_length += step;
	if (wire->tee_header_length < FRAME_HEADER)
		return step;
	header = get_le32(wire->tee_header);
	wire->tee_left = header & 0xffffff;
	wire->tee_has_data = (int)(header >> 24) - TAG_BASE == MSG_DATA;
	if (!wire->tee_left)
		wire->tee_header_length = 0;
	return step;
}

static size_t take_payload(struct wire *wire, const uint8_t *bytes, size_t length)
{
	size_t step = length < wire->tee_left ? length : wire->tee_left;

	if (wire->tee_has_data)
		wire->tee_out(wire->tee_out_context, bytes, step);
	wire->tee_left -= step;
	if (!wire->tee_left)
		wire->tee_header_length = 0;
	return step;
}

static void take_frames(struct wire *wire, const uint8_t *bytes, size_t length)
{
	size_t step;

	for (; length; bytes += step, length -= step)
		step = wire->tee_header_length < FRAME_HEADER ? take_header(wire, bytes, length)
			: take_payload(wire, bytes, length);
}

void wire_tee_output(struct wire *wire, const struct iovec *iov, int count)
{
	for (int i = 0; i < count; i++)
		if (wire->mux_out)
			take_frames(wire, iov[i].iov_base, iov[i].iov_len);
		else if (iov[i].iov_len)
			wire->tee_out(wire->tee_out_context, iov[i].iov_base, iov[i].iov_len);
}
