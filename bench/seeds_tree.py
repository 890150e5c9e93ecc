# SPDX-License-Identifier: GPL-3.0-or-later
"""A mirror with contents, written as one that has been updated for years, and what lies between it and an older copy of it.

Part of bench/seeds. Contents follow from a path and a version, so that what arrived can be checked without a second copy.
"""
import collections
import os
import random
import subprocess
import zlib

import generate

POOL = 32 << 20
EPOCHS = 12
REPLACED = 0.2  # share of the files that have taken the place of an earlier version

OLDER_NS = 10**15

Version = collections.namedtuple("Version", "size mtime")


class Contents:
    """The bytes of every version of every file: pieces of one pool that does not compress."""

    def __init__(self):
        self.pool = memoryview(random.Random(1).randbytes(POOL))

    def pieces(self, path, version):
        at = zlib.crc32(f"{path} {version.mtime}".encode()) % (POOL // 2)
        left = version.size
        while left > 0:
            piece = self.pool[at:at + left]
            left -= len(piece)
            yield piece

    def write(self, root, path, version):
        """Put a version of a file in place as rsync does: written beside, then renamed."""
        target = os.path.join(root, path)
        temporary = os.path.join(root, os.path.dirname(path), ".temporary")
        with open(temporary, "wb", buffering=0) as file:
            for piece in self.pieces(path, version):
                file.write(piece)
        os.utime(temporary, ns=(version.mtime, version.mtime))
        os.rename(temporary, target)

    def equal(self, root, path, version):
        with open(os.path.join(root, path), "rb", buffering=0) as file:
            return (os.fstat(file.fileno()).st_mtime_ns == version.mtime
                    and all(file.read(len(piece)) == piece for piece in self.pieces(path, version)) and not file.read(1))


class Tree:
    """The mirror: its items, with sizes that are `scale` times those of packages."""

    def __init__(self, entries, scale):
        self.items = [(kind, path, mtime, max(1, int(detail * scale)) if kind == "file" else detail)
                      for kind, path, mtime, detail in generate.items(entries)]
        self.files = {path: Version(size, mtime) for kind, path, mtime, size in self.items if kind == "file"}
        self.directory_times = {path: mtime for kind, path, mtime, _ in self.items if kind == "times"}
        self.bytes = sum(version.size for version in self.files.values())
        self.contents = Contents()

    def write_sparse(self, root):
        """Without contents: a copy that is looked at, and never read."""
        for item in self.items:
            generate.make(root, *item)

    def write_aged(self, root):
        """In epochs, each of which adds files everywhere and replaces older ones: neighbours by name are none on the disk."""
        for item in self.items:
            if item[0] == "directory":
                generate.make(root, *item)
        rng, writes = random.Random(2), []
        for number, (path, version) in enumerate(self.files.items()):
            epoch = rng.randrange(EPOCHS)
            writes.append((epoch, number, path, version))
            if epoch and rng.random() < REPLACED:
                earlier = Version(int(version.size * rng.uniform(0.5, 1)), version.mtime - 1)
                writes.append((rng.randrange(epoch), number, path, earlier))
        last = 0
        for epoch, _, path, version in sorted(writes):
            if epoch != last:
                # Blocks are given when they are written out.
                subprocess.run(["sync", "-f", root], check=True)
                last = epoch
            self.contents.write(root, path, version)
        for item in self.items:
            if item[0] in ("link", "times"):
                generate.make(root, *item)


class Change:
    """What lies between the mirror and an older copy: {path: (its version in the mirror, in the copy)}, None where it is not.

    added, changed, removed: shares of the files. Updates concern some directories, and half of the files in each of those.
    """

    def __init__(self, tree, seed, added, changed, removed):
        self.tree, self.versions = tree, {}
        rng = random.Random(seed)
        below = collections.defaultdict(list)
        for path in tree.files:
            below[os.path.dirname(path)].append(path)
        directories = sorted(below)
        rng.shuffle(directories)
        chosen = (path for directory in directories for path in below[directory] if rng.random() < 0.5)
        # What the mirror has no more lay beside what it still has.
        for share, suffix, in_mirror, in_older in ((added, "", True, False), (changed, "", True, True),
                                                   (removed, ".superseded", False, True)):
            for _ in range(max(1, round(share * len(tree.files)))):
                path = next(chosen)
                newer = tree.files[path]
                older = Version(max(1, newer.size * 9 // 10), newer.mtime - OLDER_NS)
                self.versions[path + suffix] = (newer if in_mirror else None, older if in_older else None)

    def apply(self, root, older):
        """Make the tree at root the mirror, or the older copy, whichever of them it was."""
        for path, pair in self.versions.items():
            if pair[older]:
                self.tree.contents.write(root, path, pair[older])
            elif os.path.lexists(os.path.join(root, path)):
                os.unlink(os.path.join(root, path))
        for directory in {os.path.dirname(path) for path in self.versions}:
            mtime = self.tree.directory_times[directory] - older * OLDER_NS
            os.utime(os.path.join(root, directory), ns=(mtime, mtime))

    def sent(self, older):
        """{path: size} of what a server sends that has the older copy, or the mirror, to a client that has the other."""
        return {path: pair[older].size for path, pair in sorted(self.versions.items()) if pair[older]}

    def differences(self, root, older):
        """Paths of which the tree at root does not have what it should."""
        return [path for path, pair in self.versions.items()
                if (not self.tree.contents.equal(root, path, pair[older]) if pair[older]
                    else os.path.lexists(os.path.join(root, path)))]
