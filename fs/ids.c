/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Read permission, asked of the kernel or of mode bits; names of ids and ids of names, each asked once. */
#include "fs/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/error.h"
#include "lib/alloc.h"
#include "lib/hashmap.h"
#include "lib/vec.h"

/* --- permission --- */

bool fs_is_readable_at(int dir_fd, const char *name)
{
	return faccessat(dir_fd, name, R_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) == 0;
}

bool fs_is_readable(const struct fs_root *root, const char *path)
{
	int fd = fs_open(root, path, O_PATH, 0);
	bool readable = fd >= 0 && faccessat(fd, "", R_OK, AT_EACCESS | AT_EMPTY_PATH) == 0;

	fs_close(fd);
	return readable;
}

void fs_credentials_read(struct fs_credentials *who)
{
	int count = getgroups(0, NULL);

	fs_credentials_free(who);
	who->uid = geteuid();
	who->gid = getegid();
	who->superuser = who->uid == 0;
	if (count > 0) {
		who->groups = xcalloc((size_t)count, sizeof *who->groups);
		count = getgroups(count, who->groups);
		who->group_count = count > 0 ? (size_t)count : 0;
	}
	who->known = true;
}

void fs_credentials_free(struct fs_credentials *who)
{
	free(who->groups);
	memset(who, 0, sizeof *who);
}

static bool is_member(const struct fs_credentials *who, uint32_t gid)
{
	for (size_t i = 0; i < who->group_count; i++)
		if (who->groups[i] == gid)
			return true;
	return who->gid == gid;
}

/* The first class that fits decides, even if it grants less than the next one. */
bool fs_permits(const struct fs_credentials *who, uint32_t mode, uint32_t uid, uint32_t gid, unsigned wanted)
{
	int shift = who->uid == uid ? 6 : is_member(who, gid) ? 3 : 0;

	return who->superuser || (mode >> shift & wanted) == wanted;
}

/* --- names --- */

#define NAME_LIMIT 255
#define RECORD_LIMIT (1 << 20) /* a group with very many members */

/* An answer about a name. */
struct named {
	char *name;
	bool is_group;
	bool found;
	uint32_t id;
};

struct fs_ids {
	char *(*convert)(void *context, const char *kind, const char *text);
	void *context;
	const char *(*fallback)(const void *context, bool group, uint32_t id);
	const void *fallback_context;
	struct hashmap names; /* (is_group, id) -> char *, 0 for none */
	struct hashmap ids;   /* (hash of the name, attempt): index into answers; users and groups share it */
	VEC(struct named) answers;
};

struct fs_ids *fs_ids_new(char *(*convert)(void *context, const char *kind, const char *text), void *context)
{
	struct fs_ids *ids = xcalloc(1, sizeof *ids);

	ids->convert = convert;
	ids->context = context;
	return ids;
}

void fs_ids_set_fallback(struct fs_ids *ids, const char *(*name)(const void *context, bool group, uint32_t id),
			 const void *context)
{
	ids->fallback = name;
	ids->fallback_context = context;
}

void fs_ids_free(struct fs_ids *ids)
{
	if (!ids)
		return;
	for (size_t i = 0; i < ids->names.capacity; i++)
		if (ids->names.slots[i].used)
			free((char *)(uintptr_t)ids->names.slots[i].value);
	for (size_t i = 0; i < ids->answers.count; i++)
		free(ids->answers.items[i].name);
	vec_free(&ids->answers);
	hashmap_free(&ids->names);
	hashmap_free(&ids->ids);
	free(ids);
}

/* A record of the system's tables. `name` NULL: look for `id`. */
struct query {
	bool is_group;
	const char *name;
	uint32_t id;
	char *found_name; /* malloc'ed */
	uint32_t found_id;
};

static int ask_users(struct query *query, char *buffer, size_t size)
{
	struct passwd record, *found = NULL;
	int error = query->name ? getpwnam_r(query->name, &record, buffer, size, &found)
				: getpwuid_r(query->id, &record, buffer, size, &found);

	if (found) {
		query->found_name = xstrdup(found->pw_name);
		query->found_id = found->pw_uid;
	}
	return error;
}

static int ask_groups(struct query *query, char *buffer, size_t size)
{
	struct group record, *found = NULL;
	int error = query->name ? getgrnam_r(query->name, &record, buffer, size, &found)
				: getgrgid_r(query->id, &record, buffer, size, &found);

	if (found) {
		query->found_name = xstrdup(found->gr_name);
		query->found_id = found->gr_gid;
	}
	return error;
}

static bool ask_system(struct query *query)
{
	size_t size = 1024;
	char *buffer = NULL;
	int error;

	do {
		buffer = xrealloc_array(buffer, size, 1);
		error = query->is_group ? ask_groups(query, buffer, size) : ask_users(query, buffer, size);
		size *= 2;
	} while (error == EINTR || (error == ERANGE && size <= RECORD_LIMIT));
	free(buffer);
	return query->found_name != NULL;
}

/* Fit for the wire: not empty, not too long, nothing that a terminal or a line protocol would act on. */
static bool is_presentable(const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			return false;
	return length > 0 && length <= NAME_LIMIT;
}

static char *look_up_name(struct fs_ids *ids, bool is_group, uint32_t id)
{
	struct query query = { .is_group = is_group, .id = id };
	char text[16], *name = NULL;

	if (ids->convert) {
		snprintf(text, sizeof text, "%u", id);
		name = ids->convert(ids->context, is_group ? "gid" : "uid", text);
	} else if (ask_system(&query)) {
		name = query.found_name;
	}
	if (name && is_presentable(name))
		return name;
	free(name);
	const char *fallback = ids->fallback ? ids->fallback(ids->fallback_context, is_group, id) : NULL;

	return fallback && is_presentable(fallback) ? xstrdup(fallback) : NULL;
}

const char *fs_id_name(struct fs_ids *ids, bool is_group, uint32_t id)
{
	const uint64_t *known = hashmap_get(&ids->names, is_group, id);

	if (!known)
		known = hashmap_put(&ids->names, is_group, id, (uint64_t)(uintptr_t)look_up_name(ids, is_group, id), NULL);
	return (const char *)(uintptr_t)*known;
}

/* A converter's answer: decimal digits that fit an id, else nothing; "" must not become 0. */
static bool parse_id(const char *text, uint32_t *id)
{
	uint64_t value = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		value = value * 10 + (uint64_t)(*text - '0');
		if (value >= UINT32_MAX) /* the last one means "leave alone" to chown */
			return false;
	}
	*id = (uint32_t)value;
	return true;
}

static bool look_up_id(struct fs_ids *ids, bool is_group, const char *name, uint32_t *id)
{
	struct query query = { .is_group = is_group, .name = name };
	bool found;

	if (!is_presentable(name))
		return false;
	if (ids->convert) {
		char *answer = ids->convert(ids->context, is_group ? "grp" : "usr", name);
		found = answer && parse_id(answer, id);
		free(answer);
		return found;
	}
	found = ask_system(&query);
	free(query.found_name);
	*id = query.found_id;
	return found;
}

bool fs_id_find(struct fs_ids *ids, bool is_group, const char *name, uint32_t *id)
{
	uint64_t hash = hashmap_hash(&ids->ids, name, strlen(name)), attempt;
	const struct named *known = NULL;
	const uint64_t *index;

	for (attempt = 0; !known && (index = hashmap_get(&ids->ids, hash, attempt)); attempt++) {
		known = &ids->answers.items[*index];
		if (known->is_group != is_group || strcmp(known->name, name))
			known = NULL;
	}
	if (!known) {
		struct named answer = { .name = xstrdup(name), .is_group = is_group };

		answer.found = look_up_id(ids, is_group, name, &answer.id);
		hashmap_put(&ids->ids, hash, attempt, ids->answers.count, NULL);
		vec_push(&ids->answers, answer);
		known = &ids->answers.items[ids->answers.count - 1];
	}
	if (known->found)
		*id = known->id;
	return known->found;
}
