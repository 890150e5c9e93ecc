# SPDX-License-Identifier: GPL-3.0-or-later
"""A small pair of trees for runs within one machine, and what two programs make of it."""
import os
import re
import shutil

import harness
import trees

SOURCE_TIME, OLD_TIME = 1_300_000_000, 1_200_000_000


def write(path, data, mtime):
    with open(path, "wb") as file:
        file.write(data)
    os.utime(path, ns=(mtime * 10**9 + 7,) * 2)


def settle(top, mtime):
    for directory, _, names in os.walk(top, topdown=False):
        for name in names:
            path = os.path.join(directory, name)
            if not os.path.isfile(path) or os.path.islink(path):
                os.utime(path, (mtime, mtime), follow_symlinks=False)
        os.utime(directory, (mtime, mtime))


def make_trees(top):
    """top/src, and top/dst as an older state of it: a large file differs in the middle, names are missing and left over."""
    big = bytes((i * i * 7 + i // 251) % 256 for i in range(200_000))
    old = bytearray(big)
    old[1000] ^= 1
    old[150_000:150_000] = b"insert"
    os.makedirs(f"{top}/src/d/e")
    os.mkdir(f"{top}/src/empty")
    os.makedirs(f"{top}/dst/d")
    write(f"{top}/src/big", big, 1_500_000_000)
    write(f"{top}/src/f", b"hello\n", 1_500_000_001)
    write(f"{top}/src/d/g", b"x" * 5000, 1_500_000_002)
    write(f"{top}/src/d/e/h", b"", 1_500_000_003)
    os.symlink("f", f"{top}/src/l")
    os.link(f"{top}/src/f", f"{top}/src/z")
    os.mkfifo(f"{top}/src/d/p")
    write(f"{top}/dst/big", bytes(old), 1_400_000_000)
    write(f"{top}/dst/f", b"hello\n", 1_500_000_001)
    write(f"{top}/dst/d/old", b"1", 1)
    write(f"{top}/dst/surplus", b"1", 1)
    write(f"{top}/names", b"f\n#c\nd/g\nbig\n", 1)
    settle(f"{top}/src", SOURCE_TIME)
    settle(f"{top}/dst", OLD_TIME)


# What depends on time, on the number of bytes of an exchange that need not be the same, and on the program's build.
UNSTABLE = (
    (harness.BLOCK_LINE, b""),
    (rb"[\d,.]+ bytes/sec", b"N bytes/sec"), (rb"(File list (?:generation|transfer) time): .*", rb"\1"),
    (rb"sent [\d,]+ bytes  received [\d,]+", b"sent N received N"), (rb"(Total bytes (?:sent|received)): .*", rb"\1"),
    (rb"speedup is [\d.,]+", b"speedup"), (rb"hash_hits=\d+", b"hash_hits"), (rb"at \S+\.c\(\d+\) \[(\w+)=[^\]]*\]", rb"at X [\1]"),
)


def stable(text):
    for pattern, replacement in UNSTABLE:
        text = re.sub(pattern, replacement, text)
    return text


def outcome(program, top, words, deletes=False):
    """Exit code, output and resulting tree of one run in fresh trees. `deletes`: when in between is a matter of timing."""
    os.makedirs(top)
    make_trees(top)
    result = harness.run(program, *words, cwd=top)
    lines = stable(result.stdout).split(b"\n")
    if deletes:
        lines.sort(key=lambda line: b"deleting" not in line)
    tree = trees.describe(f"{top}/dst")
    tree.get(b".", {}).pop("mtime", None)
    names = sorted(os.listdir(top))
    shutil.rmtree(top)
    return {"code": result.code, "output": b"\n".join(lines), "errors": stable(result.stderr), "tree": tree, "names": names}
