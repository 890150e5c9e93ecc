# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees with ACLs and extended attributes, and their description."""
import os
import struct

import trees

ACCESS = "system.posix_acl_access"
DEFAULT = "system.posix_acl_default"
NO_ID = 0xffffffff


def acl(user, group, other, mask=None, users=(), groups=()):
    """An ACL as the kernel takes it; users and groups: pairs of id and bits."""
    entries = [(0x01, user, NO_ID), *((0x02, bits, who) for who, bits in users), (0x04, group, NO_ID),
               *((0x08, bits, who) for who, bits in groups)]
    if mask is not None:
        entries.append((0x10, mask, NO_ID))
    entries.append((0x20, other, NO_ID))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def set_xattr(path, name, value):
    os.setxattr(path, name, value, follow_symlinks=False)


def describe(root):
    """As trees.describe, with all extended attributes, ACLs among them."""
    tree = trees.describe(root)
    for path in tree or ():
        full = os.path.normpath(os.path.join(os.fsencode(root), path))
        for name in os.listxattr(full, follow_symlinks=False):
            tree[path]["xattr " + name] = os.getxattr(full, name, follow_symlinks=False)
    return tree


def build(root):
    """Everything that travels in a way of its own: values short, long and shared, ACLs of all forms, on all kinds of objects."""
    os.makedirs(f"{root}/d/e")
    os.makedirs(f"{root}/p")
    for number, name in enumerate(("f0", "f1", "f2", "f3", "f4", "f5", "d/g1", "d/g2", "d/e/h", "p/x", "p/hard", "ro", "suid")):
        trees.write(f"{root}/{name}", b"content %d" % number * (number + 1), 0o640 if number % 2 else 0o664)
    for name in ("f1", "f2"):
        for attribute, value in (("small", b"abc"), ("empty", b""), ("e32", b"B" * 32), ("long33", b"C" * 33)):
            set_xattr(f"{root}/{name}", f"user.{attribute}", value)
        set_xattr(f"{root}/{name}", ACCESS, acl(6, 4, 0 if name == "f1" else 4, 7, ((33, 4), (1000, 7)), ((20, 6),)))
    for attribute, value in (("user.long33", b"C" * 33), ("trusted.t", b"T"), ("security.foo", b"S")):
        set_xattr(f"{root}/f3", attribute, value)
    set_xattr(f"{root}/f3", ACCESS, acl(6, 4, 4, 6))
    set_xattr(f"{root}/f4", "user.big", b"x" * 3000)
    set_xattr(f"{root}/f4", "user.rsync.foo", b"1")
    set_xattr(f"{root}/f4", ACCESS, acl(6, 6, 4, 6))
    set_xattr(f"{root}/f5", ACCESS, acl(7, 5, 5, 5, ((1000, 5),)))
    set_xattr(f"{root}/d", "user.ondir", b"D" * 50)
    set_xattr(f"{root}/d", ACCESS, acl(7, 5, 5, 7, ((1000, 7),)))
    set_xattr(f"{root}/d", DEFAULT, acl(7, 5, 0, 5, ((1000, 5),)))
    set_xattr(f"{root}/d/g1", "user.ondir", b"D" * 50)
    set_xattr(f"{root}/d/e", "user.k", b"v")
    set_xattr(f"{root}/p", DEFAULT, acl(7, 7, 5))
    set_xattr(root, "user.top", b"t" * 40)
    set_xattr(f"{root}/ro", "user.a", b"z" * 100)
    trees.symlink("f1", f"{root}/l")
    set_xattr(f"{root}/l", "trusted.onlink", b"L" * 40)
    os.mkfifo(f"{root}/fifo")
    set_xattr(f"{root}/fifo", "trusted.f", b"F")
    os.utime(f"{root}/fifo", ns=(trees.ATIME_NS, 1_600_000_000_000_000_000))
    os.chmod(f"{root}/ro", 0o444)
    os.chmod(f"{root}/suid", 0o4755)
    set_xattr(f"{root}/suid", ACCESS, acl(7, 5, 5, 5, ((33, 5),)))
    os.chmod(f"{root}/p", 0o1777)
    trees.set_directory_times(root)


def make_older(root):
    """Change a copy of that tree, so that some of everything has to be put right."""
    os.removexattr(f"{root}/f1", "user.small")
    set_xattr(f"{root}/f1", "user.extra", b"E")
    set_xattr(f"{root}/f2", "user.long33", b"D" * 33)
    set_xattr(f"{root}/f3", "trusted.zz", b"1")
    set_xattr(f"{root}/f4", ACCESS, acl(6, 6, 4))
    set_xattr(f"{root}/f0", ACCESS, acl(6, 6, 4, 6, ((33, 4),)))
    os.removexattr(f"{root}/d", DEFAULT)
    set_xattr(f"{root}/d", "user.ondir", b"other")
    set_xattr(f"{root}/d/e", DEFAULT, acl(7, 5, 5))
    os.removexattr(root, "user.top")
    os.unlink(f"{root}/d/g1")
    os.unlink(f"{root}/l")
    os.symlink("nowhere", f"{root}/l")
    set_xattr(f"{root}/l", "trusted.zz", b"1")
    trees.write(f"{root}/d/g2", b"changed")
    set_xattr(f"{root}/d/g2", "user.q", b"q")
    set_xattr(f"{root}/suid", ACCESS, acl(7, 5, 5))
    os.chmod(f"{root}/suid", 0o755)
    trees.write(f"{root}/f5", b"other")
    set_xattr(f"{root}/f5", "user.q", b"q")
    os.chmod(f"{root}/ro", 0o644)
    trees.write(f"{root}/ro", b"other", 0o444)
    trees.write(f"{root}/surplus", b"")
    trees.set_directory_times(root, 1_690_000_000_000_000_000)
