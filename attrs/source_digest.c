/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Digests of contents that need not be read: those that a snapshot holds, for who may read the file. */
#include "attrs/snapshot_lookup.h"
#include "attrs/source.h"

const uint8_t *attr_source_view_digest(struct attr_source *source, const struct entries *view, const struct entry *entry,
				       enum attr_digest which)
{
	if (!source->who.known)
		fs_credentials_read(&source->who);
	if (!fs_permits(&source->who, entry->mode, entry->uid, entry->gid, FS_MAY_READ))
		return NULL;
	return attr_snapshot_digest(view, entry, which);
}

const uint8_t *attr_source_digest(struct attr_source *source, const char *path, bool follow, enum attr_digest which)
{
	struct snapshot_place place;

	if (source->kind != ATTRS_SNAPSHOT)
		return NULL;
	if (!source->who.known)
		fs_credentials_read(&source->who);
	if (snapshot_lookup(source->snapshot, &source->who, source->attr_root.trusting, path, follow, &place) < 0)
		return NULL;
	return entry_is_regular(place.entry) ? attr_source_view_digest(source, &place.view, place.entry, which) : NULL;
}
