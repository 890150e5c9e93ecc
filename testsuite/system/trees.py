# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees for the system tests: build them, write their attr tree, and describe them so that two can be compared.

Paths are bytes throughout: names that are no valid UTF-8 belong to the job.
"""
import hashlib
import os
import random
import stat
import struct

IS_ROOT = os.geteuid() == 0

# Later than any ctime of the tests, so that reading a file never moves its atime (relatime).
ATIME_NS = 1_900_000_000_123_456_789


def write(path, content=b"", mode=0o644, mtime_ns=1_700_000_000_000_000_000, owner=None):
    path = os.fsencode(path)
    with open(path, "wb") as file:
        file.write(content)
    finish(path, mode, mtime_ns, owner)


def finish(path, mode=None, mtime_ns=None, owner=None):
    """Set owner, mode and times of a file or directory, in the order that keeps all of them."""
    if owner is not None and IS_ROOT:
        os.chown(path, *owner)
    if mode is not None:
        os.chmod(path, mode)
    if mtime_ns is not None:
        os.utime(path, ns=(ATIME_NS, mtime_ns))


def symlink(target, path, mtime_ns=1_650_000_000_000_000_000, owner=None):
    path = os.fsencode(path)
    os.symlink(os.fsencode(target), path)
    if owner is not None and IS_ROOT:
        os.lchown(path, *owner)
    os.utime(path, ns=(ATIME_NS, mtime_ns), follow_symlinks=False)


def sparse(path, size, data_at=(), mode=0o644, mtime_ns=1_600_000_000_000_000_000):
    """A file of `size` bytes that is a hole but for `data_at`, pairs of offset and bytes."""
    path = os.fsencode(path)
    with open(path, "wb") as file:
        for offset, data in data_at:
            file.seek(offset)
            file.write(data)
        file.truncate(size)
    finish(path, mode, mtime_ns)


def noise(size, seed):
    """Incompressible bytes, the same ones for the same seed."""
    return random.Random(seed).randbytes(size)


def walk(root):
    """Every path below root, root itself as b"."; a directory before what it holds, in a fixed order."""
    root = os.fsencode(root)
    yield b"."
    stack = [b""]
    while stack:
        directory = stack.pop()
        names = sorted(os.listdir(os.path.join(root, directory)))
        for name in names:
            path = os.path.join(directory, name)
            yield path
        stack.extend(
            os.path.join(directory, name)
            for name in reversed(names)
            if stat.S_ISDIR(os.lstat(os.path.join(root, directory, name)).st_mode)
        )


def set_directory_times(root, mtime_ns=1_680_000_000_000_000_000):
    """Directories get a fixed mtime each, deepest first, after everything in them is made."""
    root = os.fsencode(root)
    directories = [p for p in walk(root) if stat.S_ISDIR(os.lstat(os.path.join(root, p)).st_mode)]
    for number, path in enumerate(reversed(directories)):
        os.utime(os.path.join(root, path), ns=(ATIME_NS, mtime_ns + number * 1_000_000_007))


def copy_metadata(info, path):
    if IS_ROOT:
        os.lchown(path, info.st_uid, info.st_gid)
    if not stat.S_ISLNK(info.st_mode):
        os.chmod(path, stat.S_IMODE(info.st_mode))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns), follow_symlinks=False)


def make_attr_tree(source, target):
    """The attr tree of `source`: same names and metadata; a regular file holds its size, 8 bytes, little-endian.

    Written without the program under test, so that what it serves and what it writes are checked apart.
    """
    source, target = os.fsencode(source), os.fsencode(target)
    first_of_inode = {}
    for path in walk(source):
        info = os.lstat(os.path.join(source, path))
        there = os.path.join(target, path)
        kind = stat.S_IFMT(info.st_mode)
        if kind == stat.S_IFDIR:
            os.makedirs(there, exist_ok=True)
            continue
        inode = (info.st_dev, info.st_ino)
        if inode in first_of_inode:
            os.link(first_of_inode[inode], there, follow_symlinks=False)
            continue
        first_of_inode[inode] = there
        if kind == stat.S_IFREG:
            with open(there, "wb") as file:
                file.write(struct.pack("<Q", info.st_size))
        elif kind == stat.S_IFLNK:
            os.symlink(os.readlink(os.path.join(source, path)), there)
        else:
            os.mknod(there, info.st_mode, info.st_rdev)
    for path in reversed(list(walk(source))):
        copy_metadata(os.lstat(os.path.join(source, path)), os.path.join(target, path))


def digest(path, chunk=1 << 20):
    """A digest of a file's content; stretches of zeros count by their place only, so that huge sparse files are quick."""
    result = hashlib.sha1()
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        position = 0
        while position < size:
            try:
                position = os.lseek(file.fileno(), position, os.SEEK_DATA) // chunk * chunk
            except OSError:  # nothing but a hole up to the end
                break
            data = os.pread(file.fileno(), chunk, position)
            if data.count(0) != len(data):
                result.update(b"%d:" % position)
                result.update(data)
            position += chunk
    return result.hexdigest()


def describe(root, atimes=False, since_ns=None):
    """{path: attributes} of a tree; two trees are the same exactly if their descriptions are equal.

    A time that is not older than `since_ns` becomes "now": it was not preserved from anywhere.
    """
    root = os.fsencode(root)
    if not os.path.lexists(root):
        return None
    first_of_inode = {}
    result = {}
    for path in walk(root):
        full = os.path.normpath(os.path.join(root, path))
        info = os.lstat(full)
        mtime = info.st_mtime_ns
        if since_ns is not None and since_ns <= mtime < ATIME_NS:
            mtime = "now"
        entry = {"mode": oct(info.st_mode), "mtime": mtime, "owner": (info.st_uid, info.st_gid)}
        if atimes:
            entry["atime"] = info.st_atime_ns if info.st_atime_ns >= ATIME_NS or since_ns is None else "now"
        if stat.S_ISREG(info.st_mode):
            entry["content"] = (info.st_size, digest(full))
        elif stat.S_ISLNK(info.st_mode):
            entry["target"] = os.readlink(full)
        elif stat.S_ISCHR(info.st_mode) or stat.S_ISBLK(info.st_mode):
            entry["device"] = (os.major(info.st_rdev), os.minor(info.st_rdev))
        if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
            entry["linked to"] = first_of_inode.setdefault((info.st_dev, info.st_ino), path)
        result[path] = entry
        if path == b"." and not stat.S_ISDIR(info.st_mode):
            break
    return result


def differences(expected, got):
    """Lines that say how one description differs from another; none if they are equal."""
    if expected is None or got is None:
        return [] if expected == got else [f"expected {'a tree' if expected else 'nothing'}, got {'one' if got else 'nothing'}"]
    lines = []
    for path in sorted(expected.keys() | got.keys()):
        left, right = expected.get(path), got.get(path)
        if left is None:
            lines.append(f"unexpected {path!r}: {right}")
        elif right is None:
            lines.append(f"missing {path!r}: {left}")
        else:
            for key in sorted(left.keys() | right.keys()):
                if left.get(key) != right.get(key):
                    lines.append(f"{path!r} {key}: expected {left.get(key)!r}, got {right.get(key)!r}")
    return lines


def build_mirror(root):
    """The small mirror of the matrix: one of everything that a list can hold, and files of every transfer path."""
    root = os.fsdecode(root)
    at = lambda name: os.path.join(root, name)
    for directory in ("dir/sub", "dir/other", "empty", "p/q/r/s/t", "lists", "merge/inner", "pool/main/a", "odd names"):
        os.makedirs(at(directory))
    write(at("README"), b"a mirror of everything\n" * 12, 0o644, 1_700_000_000_123_456_789)
    write(at("dir.x"), b"sorts near dir\n", 0o644, 1_700_000_001_000_000_001)
    write(at("empty-file"), b"", 0o444, 1_400_000_000_000_000_000)
    write(at("big.bin"), noise(300_000, 1), 0o644, 1_710_000_000_500_000_000, (1000, 1000))
    write(at("text.txt"), b"".join(b"line %d of a text that packs well\n" % n for n in range(3000)), 0o644)
    write(at("packed.gz"), noise(20_000, 2), 0o644, 1_700_000_002_000_000_000)
    write(at("old-date"), b"before 1970\n", 0o644, -1_000_000_000_000_000_000)
    write(at("far-date"), b"after 2038\n", 0o644, 2_500_000_000_999_999_999)
    write(at("grown.log"), b"".join(b"%d: something happened\n" % n for n in range(2000)), 0o644, 1_715_000_000_000_000_000)
    write(at("rewritten.log"), b"".join(b"%d: it went differently\n" % n for n in range(2000)), 0o644, 1_715_000_000_000_000_000)
    write(at("same-size"), b"new content, old size\n", 0o644, 1_716_000_000_000_000_000)
    sparse(at("holes.img"), 400_000, [(100_000, b"data in the middle"), (399_990, b"the end...")])
    write(at("dir/c"), b"", 0o755, 1_500_000_000_000_000_000)
    write(at("dir/sub/d.iso"), b"D" * 5000, 0o444, 946_684_800_000_000_000, (65534, 65534))
    write(at("dir/other/e.iso"), noise(70_000, 3), 0o644, 1_700_000_003_000_000_000, (12345, 54321))
    write(at("p/q/r/s/t/deep"), b"deep\n", 0o664)
    write(at("pool/main/a/a_1.0.deb"), noise(30_000, 4), 0o644)
    write(at("pool/main/a/a_1.0.dsc"), b"Format: 3.0\n", 0o644)
    write(at("hard-1"), b"linked four times\n" * 50, 0o644, 1_690_000_000_000_000_000)
    for name in ("dir/hard-2", "dir/sub/hard-3", "pool/hard-4"):
        os.link(at("hard-1"), at(name))
    write(at("pool/twin-a"), noise(3000, 5), 0o644, 1_690_000_001_000_000_000)
    os.link(at("pool/twin-a"), at("pool/main/twin-b"))
    symlink("README", at("link-file"))
    symlink("dir", at("link-dir"))
    symlink("../README", at("dir/link-up"))
    symlink("sub/d.iso", at("dir/link-sub"), owner=(1000, 1000))
    symlink("no-such-target", at("link-dangling"))
    symlink("../../outside-of-the-module", at("link-unsafe"))
    symlink("/no-such-absolute-target", at("link-absolute"))
    symlink("link-file", at("link-chain"))
    # Filters: merge files for -F, -C and dir-merge; the names they are about.
    write(at("merge/.rsync-filter"), b"- *.tmp\n+ keep.o\n- /inner/secret\n")
    write(at("merge/inner/.rsync-filter"), b"+ special.tmp\n")
    write(at("merge/.cvsignore"), b"*.junk\n")
    write(at("merge/.rules"), b"exclude *.o\n# a comment\n+ inner/\nprotect *.junk\n")
    for name in ("a.tmp", "keep.o", "drop.o", "b.junk", "core", "inner/special.tmp", "inner/x.tmp", "inner/secret", "inner/y.o"):
        write(at("merge/" + name), name.encode() + b"\n")
    write(at("lists/files.txt"), b"README\ndir/sub/d.iso\n#comment\npool/main/\np/q/r/s/t/deep\nno-such-file\n")
    write(at("lists/zero.txt"), b"dir.x\0odd names/sp ace\0empty\0")
    for name in (b"sp ace", b"tab\there", b"new\nline", b"-dash", b"#hash", b"star*", b"quest?on", b"br[ack]et", b"back\\slash",
                 b"quo\"te'", b"caf\xc3\xa9", b"latin-\xe9", b"~tilde", b"$HOME", b"x" * 200, b";semi", b"...", b"\x7fdel"):
        write(os.path.join(os.fsencode(at("odd names")), name), name + b"\n", 0o644, 1_600_000_000_000_000_000 + len(name))
    os.mkfifo(at("fifo"))
    finish(at("fifo"), 0o644, 1_600_000_000_000_000_000)
    if IS_ROOT:
        os.mknod(at("null-device"), stat.S_IFCHR | 0o666, os.makedev(1, 3))
        finish(at("null-device"), 0o666, 1_600_000_000_000_000_000)
    os.chmod(at("dir/sub"), 0o2755)
    os.chmod(at("p/q"), 0o1777)
    set_directory_times(root)


def make_older(root):
    """Turn a fresh copy of the mirror into what a client has from last month: things to add, change, retype and delete."""
    root = os.fsdecode(root)
    at = lambda name: os.path.join(root, name)
    old = 1_300_000_000_000_000_000
    for name in ("README", "pool/main/a/a_1.0.deb", "dir/c", "p/q/r/s/t/deep", "link-chain", "fifo"):
        os.unlink(at(name))
    data = noise(300_000, 1)
    write(at("big.bin"), data[:50_000] + b"inserted" + data[50_000:200_000] + noise(777, 9) + data[210_000:], 0o644, old)
    write(at("text.txt"), b"".join(b"line %d of a text that packs well\n" % n for n in range(2900, -1, -1)), 0o600, old)
    write(at("grown.log"), b"".join(b"%d: something happened\n" % n for n in range(900)), 0o644, old)
    write(at("rewritten.log"), b"".join(b"%d: it went one way\n" % n for n in range(900)), 0o644, old)
    write(at("same-size"), b"old content, old size\n", 0o644, 1_716_000_000_000_000_000)
    write(at("packed.gz"), noise(10_000, 2), 0o644, old)
    os.utime(at("dir.x"), ns=(ATIME_NS, old))
    os.chmod(at("empty-file"), 0o777)
    os.unlink(at("pool/hard-4"))
    write(at("pool/hard-4"), b"no longer linked\n", 0o644, old)
    # Retyped: a file where a directory belongs, a directory where a link belongs, a link where a file belongs.
    os.unlink(at("pool/main/a/a_1.0.dsc"))
    os.rmdir(at("pool/main/a"))
    write(at("pool/main/a"), b"once a file\n", 0o644, old)
    os.unlink(at("link-file"))
    os.mkdir(at("link-file"))
    os.unlink(at("dir/other/e.iso"))
    symlink("../../big.bin", at("dir/other/e.iso"))
    # Gone from the mirror since.
    os.makedirs(at("removed/below"))
    write(at("removed/below/file"), b"x", 0o644, old)
    write(at("removed.iso"), b"x" * 1000, 0o644, old)
    write(at("merge/left.junk"), b"x", 0o644, old)
    write(at("merge/left.tmp"), b"x", 0o644, old)
    write(at("empty/not-empty"), b"x", 0o644, old)
    symlink("gone", at("removed-link"))
    set_directory_times(root, old)
