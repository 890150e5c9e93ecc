# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a tree is touched, measured from outside the program: fanotify events, and block reads of a cold loop device."""
import collections
import ctypes
import os
import struct
import select
import subprocess
import threading
import time

FAN_CLOEXEC, FAN_NONBLOCK, FAN_CLASS_CONTENT, FAN_UNLIMITED_QUEUE = 1, 2, 4, 0x10
FAN_MARK_ADD, FAN_MARK_MOUNT = 1, 0x10
FAN_ACCESS, FAN_OPEN, FAN_Q_OVERFLOW, FAN_OPEN_PERM, FAN_ONDIR = 1, 0x20, 0x4000, 0x10000, 0x40000000
FAN_ALLOW = 1
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
EVENT = struct.Struct("=IBBHQii")

libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """The kernel or the rights of this user do not allow the measurement."""


def check(result, what):
    if result < 0:
        error = ctypes.get_errno()
        raise Unavailable(f"{what}: {os.strerror(error)}")
    return result


class Watch:
    """Counts opens and reads on the mount that `path` lies on, by path; use as `with Watch(path) as watch`.

    What one process does to one file again and again may be counted once.
    """

    flags, mask = 0, FAN_ACCESS | FAN_OPEN | FAN_ONDIR

    def __init__(self, path):
        self.path = os.fspath(path)
        self.touched = collections.Counter()

    def __enter__(self):
        flags = FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE | self.flags
        self.fd = check(libc.fanotify_init(flags, os.O_RDONLY | os.O_CLOEXEC), "fanotify_init")
        try:
            check(libc.fanotify_mark(self.fd, FAN_MARK_ADD | FAN_MARK_MOUNT, ctypes.c_uint64(self.mask), -100, os.fsencode(self.path)),
                  "fanotify_mark")
        except Unavailable:
            os.close(self.fd)
            raise
        return self

    def collect(self):
        """Read what has been reported so far; returns {path: events}."""
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return self.touched
            position = 0
            while position < len(data):
                length, _, _, _, mask, fd, _ = EVENT.unpack_from(data, position)
                position += length
                if mask & FAN_Q_OVERFLOW:
                    self.touched["queue overflow"] += 1
                    continue
                self.touched[os.readlink(f"/proc/self/fd/{fd}")] += 1
                self.answer(fd)
                os.close(fd)

    def answer(self, fd):
        pass

    def __exit__(self, *exception):
        self.collect()
        os.close(self.fd)


class Opens(Watch):
    """Counts every single open on a mount: the kernel waits until each has been answered, and merges none."""

    flags, mask = FAN_CLASS_CONTENT, FAN_OPEN_PERM | FAN_ONDIR

    def __enter__(self):
        super().__enter__()
        self.ended, self.end = os.pipe()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def run(self):
        while self.ended not in select.select([self.fd, self.ended], [], [])[0]:
            self.collect()

    def answer(self, fd):
        os.write(self.fd, struct.pack("=iI", fd, FAN_ALLOW))

    def __exit__(self, *exception):
        os.close(self.end)
        self.thread.join()
        os.close(self.ended)
        super().__exit__(*exception)


def private_mounts():
    """Give this process mounts of its own: what it mounts is gone with it, even if it is killed."""
    if os.geteuid() != 0:
        raise Unavailable("mounting needs root")
    check(libc.unshare(CLONE_NEWNS), "unshare")
    check(libc.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None), "mount --make-rprivate /")


def run_tool(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        raise Unavailable(f"no {words[0]}") from None
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"{words[0]}: {error.stderr.strip()}") from None


def fewest(measure, tries=3):
    """The blocks that a cold measurement counts. The kernel may read one of its own accord, but not each time."""
    blocks = measure()
    while blocks and tries > 1:
        blocks, tries = measure(), tries - 1
    return blocks


class LoopFileSystem:
    """An ext4 image that can be mounted cold and whose block reads are counted by the kernel."""

    def __init__(self, image, mount_point, megabytes, inodes):
        self.image, self.mount_point, self.device = image, mount_point, None
        with open(image, "wb") as file:
            file.truncate(megabytes << 20)
        self.make(inodes)
        os.makedirs(mount_point, exist_ok=True)

    def make(self, inodes):
        run_tool("mkfs.ext4", "-q", "-F", "-b", "4096", "-N", str(inodes), "-E", "lazy_itable_init=0,lazy_journal_init=0", self.image)

    def mount(self):
        # One block per read, and none by the file system's own thread, so that a read is a block that somebody needed.
        options = "loop,noatime,inode_readahead_blks=1,noinit_itable"
        try:
            run_tool("mount", "-o", options + ",no_prefetch_block_bitmaps", self.image, self.mount_point)
        except Unavailable:  # older kernels neither prefetch nor know the option
            run_tool("mount", "-o", options, self.image, self.mount_point)
        with open("/proc/self/mounts") as mounts:
            self.device = next(line.split()[0] for line in mounts if line.split()[1] == self.mount_point)

    def unmount(self):
        if self.device:
            run_tool("umount", self.mount_point)
            self.device = None

    def cold(self):
        """Nothing of it cached any more but what mounting needs. A process that is about to end may still be in the way."""
        for attempt in range(30):
            try:
                self.unmount()
                break
            except Unavailable:
                if attempt == 29:
                    raise
                time.sleep(0.1)
        self.mount()

    def blocks_read(self):
        with open(f"/sys/block/{os.path.basename(self.device)}/stat") as file:
            return int(file.read().split()[2]) // 8


class SharingFileSystem(LoopFileSystem):
    """An XFS image: files on it can share blocks."""

    def __init__(self, image, mount_point, megabytes):
        super().__init__(image, mount_point, megabytes, 0)

    def make(self, inodes):
        run_tool("mkfs.xfs", "-q", self.image)

    def mount(self):
        run_tool("mount", "-o", "loop,noatime", self.image, self.mount_point)

    def unmount(self):
        run_tool("umount", self.mount_point)
