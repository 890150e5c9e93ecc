#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A mirror as public ones look: generate.py DIRECTORY [--entries N]. The same N gives the same tree, times included.

Directories hold 25 entries on average and up to several hundred, names are 30 to 60 bytes long, 2 % are symlinks. Regular
files have sizes as packages have, but no blocks: listing them reads no content.
"""
import argparse
import os
import random

WORDS = ("core", "python3", "runtime", "headers", "x86", "common", "plugin", "server", "client", "fonts", "devel", "doc", "static")
SUFFIXES = (".x86_64.rpm", "_amd64.deb", ".tar.xz", ".tar.gz.asc", "-py3-none-any.whl", ".src.rpm")
START_NS = 1_500_000_000_000_000_000


def name(rng, number):
    text = f"{rng.choice(WORDS)}-{rng.choice(WORDS)}-{number:08x}-{rng.randrange(20)}.{rng.randrange(40)}.{rng.randrange(9)}"
    suffix = rng.choice(SUFFIXES)
    wanted = rng.randint(30, 60)
    return text + "+" + "b" * max(1, min(wanted - len(text) - len(suffix) - 1, 20)) + suffix


def entries_of(rng):
    """Most directories are small, a few hold hundreds; 25 on average."""
    return min(int(rng.paretovariate(1.25) * 6), 700)


def items(entries, seed=1):
    """What the mirror consists of, in the order in which it is made: (kind, path, mtime, size or target), paths below the root.

    At the end, in an order in which none spoils another, come the "times" of the directories.
    """
    rng = random.Random(seed)
    open_directories, made, number = [""], 1, 0
    directory_times = []
    while made < entries:
        # Directories fan out in breadth, so that few lie deeper than five levels, and are filled when their turn comes.
        directory = open_directories[number]
        number += 1
        last = None
        count = max(entries_of(rng), 2)
        subdirectories = min(count // 2, rng.randint(4, 16)) if number > 1 else 12
        if (len(open_directories) - number) * 25 > entries - made:
            subdirectories = 0
        for _ in range(min(count + subdirectories, entries - made)):
            path = os.path.join(directory, name(rng, made))
            made += 1
            if subdirectories > 0:
                subdirectories -= 1
                open_directories.append(path)
                yield "directory", path, None, None
                continue
            mtime = START_NS + rng.randrange(200_000_000) * 1_000_000_000
            if last and rng.random() < 0.0208:
                yield "link", path, mtime, last
            else:
                last = os.path.basename(path)
                yield "file", path, mtime, int(rng.lognormvariate(10, 2.2))
        directory_times.append((directory, START_NS + number * 1_000_000_000))
    for directory in open_directories[number:]:
        directory_times.append((directory, START_NS))
    for directory, mtime in reversed(directory_times):
        yield "times", directory, mtime, None


def make(root, kind, path, mtime, detail):
    """Make one item; files have no blocks."""
    path = os.path.join(root, path)
    if kind == "directory":
        os.mkdir(path)
        return
    if kind == "link":
        os.symlink(detail, path)
    elif kind == "file":
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.ftruncate(fd, detail)
        os.close(fd)
    os.utime(path, ns=(mtime, mtime), follow_symlinks=False)


def generate(root, entries, seed=1):
    os.makedirs(root)
    for item in items(entries, seed):
        make(root, *item)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--entries", type=int, default=1_000_000)
    options = parser.parse_args()
    generate(options.directory, options.entries)


if __name__ == "__main__":
    main()
