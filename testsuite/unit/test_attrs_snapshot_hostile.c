/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * 20,000 damaged and forged attr snapshots: each is refused with a message, or everything that can be reached in it is as
 * attrs/snapshot.h promises (snapshot_walk.h aborts if not, sanitizers if more is read than there is).
 */
#include <stdint.h>

#include "testsuite/unit/unit.h"
#include <errno.h>

#include "attrs/snapshot_write.h"
#include "snapshot_support.h"
#include "snapshot_walk.h"

enum { ROUNDS = 20000 };

/* xorshift64*: the same forgeries in every run. */
static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 0x2545f4914f6cdd1du;
}

static uint64_t below(uint64_t *seed, uint64_t limit)
{
	return limit ? (next_random(seed) >> 11) % limit : 0;
}

/* The numbers of the format. */
static const struct field {
	const char *tag;
	size_t record, offset, size;
} fields[] = {
#define FIELD(tag, type, name) { tag, sizeof(struct type), offsetof(struct type, name), sizeof ((struct type *)NULL)->name }
	FIELD("entries", entry, size), FIELD("entries", entry, mtime), FIELD("entries", entry, mtime_nsec),
	FIELD("entries", entry, mode), FIELD("entries", entry, flags), FIELD("entries", entry, uid),
	FIELD("entries", entry, name), FIELD("entries", entry, name_length), FIELD("entries", entry, root),
	FIELD("entries", entry, side), FIELD("entries", entry, dir),
	FIELD("dirs", snapshot_dir, first_entry), FIELD("dirs", snapshot_dir, names), FIELD("dirs", snapshot_dir, ino),
	FIELD("dirs", snapshot_dir, ctime), FIELD("dirs", snapshot_dir, count), FIELD("dirs", snapshot_dir, leading),
	FIELD("dirs", snapshot_dir, parent), FIELD("dirs", snapshot_dir, parent_entry),
	FIELD("dirs", snapshot_dir, subtree_end), FIELD("dirs", snapshot_dir, first_side),
	FIELD("dirs", snapshot_dir, device), FIELD("dirs", snapshot_dir, error),
	FIELD("sides", snapshot_side, a), FIELD("sides", snapshot_side, b), FIELD("sides", snapshot_side, ino),
	FIELD("facts", snapshot_facts, flags), FIELD("facts", snapshot_facts, made_nsec),
	FIELD("facts", snapshot_facts, entry_count), FIELD("facts", snapshot_facts, content_bytes),
	FIELD("facts", snapshot_facts, dir_count), FIELD("facts", snapshot_facts, io_error),
	FIELD("facts", snapshot_facts, root_length), FIELD("facts", snapshot_facts, version_length),
	FIELD("facts", snapshot_facts, options_length),
	FIELD("origins", snapshot_origin, ino), FIELD("origins", snapshot_origin, ctime_nsec),
	FIELD("origins", snapshot_origin, digests),
	FIELD("owners", snapshot_owner, id), FIELD("owners", snapshot_owner, is_group), FIELD("owners", snapshot_owner, length),
	{ "atimes", 8, 0, 8 }, { "devices", 8, 0, 8 }, { "names", 1, 0, 1 }, { "owners", 1, 0, 1 },
#undef FIELD
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* A number that is worth trying in the place of `old`; `other` is one of the same kind. */
static uint64_t forged_number(uint64_t *seed, uint64_t old, uint64_t other)
{
	switch (below(seed, 10)) {
	case 0:
		return old + 1;
	case 1:
		return old - 1;
	case 2:
		return 0;
	case 3:
		return UINT64_MAX;
	case 4:
		return other;
	case 5:
		return old ^ (uint64_t)1 << below(seed, 64);
	case 6:
		return below(seed, 100);
	case 7:
		return '/';
	case 8:
		return (uint64_t)1 << below(seed, 64);
	default:
		return next_random(seed);
	}
}

static void forge_at(uint64_t *seed, unsigned char *place, const unsigned char *other_place, size_t size)
{
	uint64_t old = 0, other = 0;
	size_t lower = lower_bytes(sizeof old, size);

	memcpy((char *)&old + lower, place, size);
	memcpy((char *)&other + lower, other_place, size);
	old = forged_number(seed, old, other);
	memcpy(place, (char *)&old + lower, size);
}

static void forge_field(uint64_t *seed, const struct sample *sample)
{
	const struct field *field = &fields[below(seed, FIELDS)];
	const struct snapshot_chunk *chunk = sample_chunk(sample, field->tag);
	uint64_t count = chunk ? chunk->length / field->record : 0;

	if (!count || chunk->offset > sample->length || chunk->length > sample->length - chunk->offset)
		return;
	unsigned char *first = sample->bytes + chunk->offset + field->offset;

	forge_at(seed, first + below(seed, count) * field->record, first + below(seed, count) * field->record, field->size);
}

/* Length of header and table of contents; 0 if they are not all there. */
static size_t front_length(const struct sample *sample)
{
	size_t length = sizeof(struct snapshot_header);

	if (sample->length >= length)
		length += sample_header(sample)->chunk_count * sizeof(struct snapshot_chunk);
	return length <= sample->length ? length : 0;
}

/* Header and table of contents: words of 4 or 8 bytes. */
static void forge_front(uint64_t *seed, const struct sample *sample)
{
	size_t length = front_length(sample), size = below(seed, 2) ? 8 : 4;

	forge_at(seed, sample->bytes + below(seed, length / size) * size, sample->bytes + below(seed, length / size) * size,
		 size);
}

/* Two records of a chunk change places. */
static void swap_records(uint64_t *seed, const struct sample *sample)
{
	const struct field *field = &fields[below(seed, FIELDS)];
	const struct snapshot_chunk *chunk = sample_chunk(sample, field->tag);
	uint64_t count = chunk ? chunk->length / field->record : 0;
	unsigned char kept[sizeof(struct snapshot_facts)];

	if (!count || chunk->offset > sample->length || chunk->length > sample->length - chunk->offset)
		return;
	unsigned char *a = sample->bytes + chunk->offset + below(seed, count) * field->record;
	unsigned char *b = sample->bytes + chunk->offset + below(seed, count) * field->record;

	memcpy(kept, a, field->record);
	memmove(a, b, field->record);
	memcpy(b, kept, field->record);
}

static void flip_bits(uint64_t *seed, const struct sample *sample)
{
	for (uint64_t i = 1 + below(seed, 4); i > 0; i--)
		sample->bytes[below(seed, sample->length)] ^= (unsigned char)(1 << below(seed, 8));
}

/* One change, as long as the table of contents is there to find the way. */
static void forge(uint64_t *seed, const struct sample *sample)
{
	uint64_t kind = below(seed, 16);

	if (!front_length(sample))
		return;
	if (kind < 11)
		forge_field(seed, sample);
	else if (kind < 13)
		swap_records(seed, sample);
	else if (kind < 14)
		forge_front(seed, sample);
	else
		flip_bits(seed, sample);
}

static struct sample forgery_of(uint64_t *seed, const struct sample *whole)
{
	bool is_cut = below(seed, 20) == 0, is_repaired = below(seed, 8) != 0;
	struct sample sample = sample_copy(whole, is_cut ? below(seed, whole->length) : whole->length);

	for (uint64_t i = below(seed, 8) ? 1 : below(seed, 4); i > 0; i--)
		forge(seed, &sample);
	if (is_cut && is_repaired && sample.length >= sizeof(struct snapshot_header))
		sample_header(&sample)->file_size = sample.length;
	if (is_repaired)
		sample_repair(&sample);
	return sample;
}

/* A chain of directories that is as deep as paths can be. */
static struct sample deep_chain(void)
{
	struct image *image = image_new();
	struct sample sample;

	for (uint32_t i = 0; i < PATH_MAX / 2 - 1; i++) {
		entries_add(&image->dirs.items[i]->entries, "d", 1)->mode = 040755;
		image_add_children(image, i);
	}
	image_add_children(image, PATH_MAX / 2 - 1);
	sample.bytes = snapshot_bytes(image, 1, NULL, &sample.length);
	image_free(image);
	return sample;
}

UNIT_TEST(a_forged_snapshot_is_refused_or_harmless)
{
	struct sample wholes[] = { sample_new(ATTR_DIGEST_XXH128 | ATTR_DIGEST_MD5, false), sample_new(0, true),
				   sample_new(ATTR_DIGEST_MD5, false) };
	uint64_t seed = 20240229;
	int accepted = 0, refused = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct strbuf why = STRBUF_INIT;
		struct sample sample = forgery_of(&seed, &wholes[i % 3]);
		struct attr_snapshot *snapshot = snapshot_from_memory(sample.bytes, sample.length, &why);

		if (snapshot) {
			accepted++;
			assert_int_equal(why.length, 0);
			snapshot_walk_all(snapshot);
		} else {
			refused++;
			assert_int_equal(errno, EINVAL);
			assert_true(!strncmp(strbuf_text(&why), "chunk ", 6) || !strncmp(strbuf_text(&why), "header: ", 8));
		}
		attr_snapshot_close(snapshot);
		strbuf_free(&why);
		free(sample.bytes);
	}
	/* Both happened often enough to say something. */
	assert_true(accepted > ROUNDS / 50);
	assert_true(refused > ROUNDS / 2);
	for (int i = 0; i < 3; i++)
		free(wholes[i].bytes);
}

UNIT_TEST(a_forged_chain_of_directories_does_not_overflow_anything)
{
	struct sample whole = deep_chain();
	uint64_t seed = 42;

	for (int i = 0; i < 100; i++) {
		struct strbuf why = STRBUF_INIT;
		struct sample sample = i ? forgery_of(&seed, &whole) : sample_copy(&whole, whole.length);
		struct attr_snapshot *snapshot = snapshot_from_memory(sample.bytes, sample.length, &why);

		assert_true(i > 0 || snapshot);
		if (snapshot && i < 10)
			snapshot_walk_all(snapshot);
		attr_snapshot_close(snapshot);
		strbuf_free(&why);
		free(sample.bytes);
	}
	free(whole.bytes);
}
