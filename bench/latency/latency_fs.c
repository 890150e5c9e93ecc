/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A file system whose operations take a fixed time each, any number of them at once, for bench_latency.py: a network file
 *system without the network.
 *
 *	latency_fs DIRECTORY MOUNTPOINT
 *
 * shows DIRECTORY at MOUNTPOINT until it is unmounted. Nothing is cached: each operation of a client comes here, and waits. The
 * attributes of the mount point steer it and are not operations themselves:
 *
 *	user.latency.microseconds   what each operation takes; 0 at first. Can be set
 *	user.latency.counts         how many of each kind there were since that was set, as a JSON object. Can be read
 *
 * What a client does not wait for in a network file system either takes no time: the end of a file that was read, of a
 *directory, statfs.
 */
#define FUSE_USE_VERSION 312
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 256 /* operations at a time */
#define SECOND_US 1000000
#define DIRECT "/proc/self/fd/%d/%s"
#define LATENCY_ATTRIBUTE "user.latency.microseconds"
#define COUNTS_ATTRIBUTE "user.latency.counts"

enum operation {
	GETATTR,
	READLINK,
	MKNOD,
	MKDIR,
	UNLINK,
	RMDIR,
	SYMLINK,
	RENAME,
	LINK,
	CHMOD,
	CHOWN,
	UTIMENS,
	TRUNCATE,
	OPEN,
	CREATE,
	READ,
	WRITE,
	FLUSH,
	FSYNC,
	SETXATTR,
	GETXATTR,
	LISTXATTR,
	REMOVEXATTR,
	OPENDIR,
	READDIR,
	FALLOCATE,
	SEEK,
	OPERATIONS
};

static const char *const operation_names[OPERATIONS] = {
	"getattr", "readlink", "mknod", "mkdir", "unlink", "rmdir", "symlink", "rename", "link", "chmod", "chown", "utimens",
	"truncate", "open", "create", "read", "write", "flush", "fsync", "setxattr", "getxattr", "listxattr", "removexattr",
	"opendir", "readdir", "fallocate", "seek",
};

struct latency {
	int root; /* DIRECTORY */
	atomic_uint microseconds;
	atomic_ullong counts[OPERATIONS];
};

static struct latency *latency_of_request(void)
{
	return fuse_get_context()->private_data;
}

/* Counts an operation and waits its time. */
static struct latency *begin(enum operation operation)
{
	struct latency *latency = latency_of_request();
	unsigned microseconds = latency->microseconds;
	struct timespec left = { .tv_sec = microseconds / SECOND_US, .tv_nsec = (long)(microseconds % SECOND_US) * 1000 };

	latency->counts[operation]++;
	while (microseconds && clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
	return latency;
}

/* The path below DIRECTORY; "." for the mount point itself. */
static const char *below(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static int result(int value)
{
	return value < 0 ? -errno : value;
}

/* New objects belong to whoever asked. */
static int own(struct latency *latency, const char *path, int value)
{
	struct fuse_context *context = fuse_get_context();

	if (value >= 0 && (context->uid || context->gid)
	    && fchownat(latency->root, below(path), context->uid, context->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return result(value);
}

static int latency_getattr(const char *path, struct stat *st, struct fuse_file_info *file)
{
	struct latency *latency = begin(GETATTR);

	if (file)
		return result(fstat((int)file->fh, st));
	return result(fstatat(latency->root, below(path), st, AT_SYMLINK_NOFOLLOW));
}

static int latency_readlink(const char *path, char *target, size_t size)
{
	ssize_t length = readlinkat(begin(READLINK)->root, below(path), target, size - 1);

	if (length < 0)
		return -errno;
	target[length] = '\0';
	return 0;
}

static int latency_mknod(const char *path, mode_t mode, dev_t device)
{
	struct latency *latency = begin(MKNOD);

	return own(latency, path, mknodat(latency->root, below(path), mode, device));
}

static int latency_mkdir(const char *path, mode_t mode)
{
	struct latency *latency = begin(MKDIR);

	return own(latency, path, mkdirat(latency->root, below(path), mode));
}

static int latency_unlink(const char *path)
{
	return result(unlinkat(begin(UNLINK)->root, below(path), 0));
}

static int latency_rmdir(const char *path)
{
	return result(unlinkat(begin(RMDIR)->root, below(path), AT_REMOVEDIR));
}

static int latency_symlink(const char *target, const char *path)
{
	struct latency *latency = begin(SYMLINK);

	return own(latency, path, symlinkat(target, latency->root, below(path)));
}

static int latency_rename(const char *from, const char *to, unsigned flags)
{
	struct latency *latency = begin(RENAME);

	return result(renameat2(latency->root, below(from), latency->root, below(to), flags));
}

static int latency_link(const char *from, const char *to)
{
	struct latency *latency = begin(LINK);

	return result(linkat(latency->root, below(from), latency->root, below(to), 0));
}

static int latency_chmod(const char *path, mode_t mode, struct fuse_file_info *file)
{
	struct latency *latency = begin(CHMOD);

	return result(file ? fchmod((int)file->fh, mode) : fchmodat(latency->root, below(path), mode, 0));
}

static int latency_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *file)
{
	struct latency *latency = begin(CHOWN);

	return result(file ? fchown((int)file->fh, uid, gid) : fchownat(latency->root, below(path), uid, gid, AT_SYMLINK_NOFOLLOW));
}

static int latency_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *file)
{
	struct latency *latency = begin(UTIMENS);

	return result(file ? futimens((int)file->fh, times) : utimensat(latency->root, below(path), times, AT_SYMLINK_NOFOLLOW));
}

static int latency_truncate(const char *path, off_t size, struct fuse_file_info *file)
{
	struct latency *latency = begin(TRUNCATE);
	int fd, value;

	if (file)
		return result(ftruncate((int)file->fh, size));
	fd = openat(latency->root, below(path), O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	value = result(ftruncate(fd, size));
	close(fd);
	return value;
}

static int latency_open(const char *path, struct fuse_file_info *file)
{
	int fd = openat(begin(OPEN)->root, below(path), (file->flags & ~O_CREAT) | O_CLOEXEC | O_NOFOLLOW);

	file->fh = (uint64_t)fd;
	return fd < 0 ? -errno : 0;
}

static int latency_create(const char *path, mode_t mode, struct fuse_file_info *file)
{
	struct latency *latency = begin(CREATE);
	int fd = openat(latency->root, below(path), file->flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode), value;

	file->fh = (uint64_t)fd;
	value = own(latency, path, fd);
	if (value < 0 && fd >= 0)
		close(fd);
	return value < 0 ? value : 0;
}

static int latency_read(const char *path, char *bytes, size_t size, off_t at, struct fuse_file_info *file)
{
	(void)path;
	begin(READ);
	return result((int)pread((int)file->fh, bytes, size, at));
}

static int latency_write(const char *path, const char *bytes, size_t size, off_t at, struct fuse_file_info *file)
{
	(void)path;
	begin(WRITE);
	return result((int)pwrite((int)file->fh, bytes, size, at));
}

static int latency_flush(const char *path, struct fuse_file_info *file)
{
	(void)path;
	if ((file->flags & O_ACCMODE) != O_RDONLY)
		begin(FLUSH);
	return 0;
}

static int latency_release(const char *path, struct fuse_file_info *file)
{
	(void)path;
	return result(close((int)file->fh));
}

static int latency_fsync(const char *path, int data_only, struct fuse_file_info *file)
{
	(void)path;
	begin(FSYNC);
	return result(data_only ? fdatasync((int)file->fh) : fsync((int)file->fh));
}

static int latency_fallocate(const char *path, int mode, off_t at, off_t length, struct fuse_file_info *file)
{
	(void)path;
	begin(FALLOCATE);
	return result(fallocate((int)file->fh, mode, at, length));
}

static off_t latency_lseek(const char *path, off_t at, int whence, struct fuse_file_info *file)
{
	off_t found;

	(void)path;
	begin(SEEK);
	found = lseek((int)file->fh, at, whence);
	return found < 0 ? -errno : found;
}

static int latency_statfs(const char *path, struct statvfs *st)
{
	(void)path;
	return result(fstatvfs(latency_of_request()->root, st));
}

static int latency_opendir(const char *path, struct fuse_file_info *file)
{
	int fd = openat(begin(OPENDIR)->root, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	file->fh = (uintptr_t)dir;
	return dir ? 0 : -errno;
}

/* The kernel asks again from where its buffer was full: one operation for each buffer, as with NFS. */
static int latency_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t at, struct fuse_file_info *file,
			   enum fuse_readdir_flags flags)
{
	DIR *dir = (DIR *)(uintptr_t)file->fh;
	struct dirent *entry;

	(void)path, (void)flags;
	begin(READDIR);
	seekdir(dir, at);
	while ((entry = readdir(dir))) {
		struct stat st = { .st_ino = entry->d_ino, .st_mode = (mode_t)entry->d_type << 12 };

		if (fill(buffer, entry->d_name, &st, telldir(dir), 0))
			break;
	}
	return 0;
}

static int latency_releasedir(const char *path, struct fuse_file_info *file)
{
	(void)path;
	return result(closedir((DIR *)(uintptr_t)file->fh));
}

/* Attributes are reached by a path of their own, as there are no calls for them below a directory. */
static void direct_path(const struct latency *latency, const char *path, char *direct, size_t size)
{
	snprintf(direct, size, DIRECT, latency->root, below(path));
}

static int set_microseconds(struct latency *latency, const char *value, size_t size)
{
	char text[16] = "";

	if (size >= sizeof text)
		return -ERANGE;
	memcpy(text, value, size);
	latency->microseconds = (unsigned)strtoul(text, NULL, 10);
	for (int i = 0; i < OPERATIONS; i++)
		latency->counts[i] = 0;
	return 0;
}

static int latency_setxattr(const char *path, const char *name, const char *value, size_t size, int flags)
{
	char direct[PATH_MAX + 64];
	struct latency *latency;

	if (!path[1] && !strcmp(name, LATENCY_ATTRIBUTE))
		return set_microseconds(latency_of_request(), value, size);
	latency = begin(SETXATTR);
	direct_path(latency, path, direct, sizeof direct);
	return result(lsetxattr(direct, name, value, size, flags));
}

static int get_counts(struct latency *latency, char *value, size_t size)
{
	char text[1024];
	int length = 0;

	for (int i = 0; i < OPERATIONS; i++)
		if (latency->counts[i])
			length += snprintf(text + length, sizeof text - (size_t)length, "%s\"%s\": %llu", length ? ", " : "{",
					   operation_names[i], (unsigned long long)latency->counts[i]);
	length += snprintf(text + length, sizeof text - (size_t)length, "%s", length ? "}" : "{}");
	if (!size)
		return length;
	if ((size_t)length > size)
		return -ERANGE;
	memcpy(value, text, (size_t)length);
	return length;
}

static int latency_getxattr(const char *path, const char *name, char *value, size_t size)
{
	char direct[PATH_MAX + 64];
	struct latency *latency;

	if (!path[1] && !strcmp(name, COUNTS_ATTRIBUTE))
		return get_counts(latency_of_request(), value, size);
	latency = begin(GETXATTR);
	direct_path(latency, path, direct, sizeof direct);
	return result((int)lgetxattr(direct, name, value, size));
}

static int latency_listxattr(const char *path, char *names, size_t size)
{
	char direct[PATH_MAX + 64];

	direct_path(begin(LISTXATTR), path, direct, sizeof direct);
	return result((int)llistxattr(direct, names, size));
}

static int latency_removexattr(const char *path, const char *name)
{
	char direct[PATH_MAX + 64];

	direct_path(begin(REMOVEXATTR), path, direct, sizeof direct);
	return result(lremovexattr(direct, name));
}

static void *latency_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
	connection->max_background = THREADS_MAX;
	connection->congestion_threshold = THREADS_MAX;
	connection->time_gran = 1;
	config->use_ino = 1;
	config->direct_io = 1;
	config->hard_remove = 1;
	config->entry_timeout = config->attr_timeout = config->negative_timeout = config->ac_attr_timeout = 0;
	return latency_of_request();
}

static const struct fuse_operations operations = {
	.init = latency_init,
	.getattr = latency_getattr,
	.readlink = latency_readlink,
	.mknod = latency_mknod,
	.mkdir = latency_mkdir,
	.unlink = latency_unlink,
	.rmdir = latency_rmdir,
	.symlink = latency_symlink,
	.rename = latency_rename,
	.link = latency_link,
	.chmod = latency_chmod,
	.chown = latency_chown,
	.utimens = latency_utimens,
	.truncate = latency_truncate,
	.open = latency_open,
	.create = latency_create,
	.read = latency_read,
	.write = latency_write,
	.flush = latency_flush,
	.release = latency_release,
	.fsync = latency_fsync,
	.fallocate = latency_fallocate,
	.lseek = latency_lseek,
	.statfs = latency_statfs,
	.opendir = latency_opendir,
	.readdir = latency_readdir,
	.releasedir = latency_releasedir,
	.setxattr = latency_setxattr,
	.getxattr = latency_getxattr,
	.listxattr = latency_listxattr,
	.removexattr = latency_removexattr,
};

int main(int argc, char **argv)
{
	static struct latency latency;
	char *words[] = { argv[0], "-o", "fsname=latency_fs,allow_other,default_permissions", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, words);
	struct fuse_loop_config *loop = fuse_loop_cfg_create();
	struct fuse *fuse;
	int code = 1;

	if (argc != 3) {
		fprintf(stderr, "Usage: latency_fs DIRECTORY MOUNTPOINT\n");
		return 1;
	}
	umask(0);
	latency.root = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (latency.root < 0) {
		fprintf(stderr, "latency_fs: cannot open %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	fuse = fuse_new(&args, &operations, sizeof operations, &latency);
	if (fuse && fuse_mount(fuse, argv[2]) == 0) {
		fuse_loop_cfg_set_max_threads(loop, THREADS_MAX);
		fuse_loop_cfg_set_idle_threads(loop, THREADS_MAX);
		fuse_loop_cfg_set_clone_fd(loop, 1);
		if (fuse_set_signal_handlers(fuse_get_session(fuse)) == 0)
			code = fuse_loop_mt(fuse, loop) != 0;
		fuse_unmount(fuse);
	}
	if (fuse)
		fuse_destroy(fuse);
	fuse_loop_cfg_destroy(loop);
	return code;
}
