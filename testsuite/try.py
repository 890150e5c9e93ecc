#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The demonstration behind ./try: one sample mirror, served by stock rsyncd and by rsync-huai in both layouts.

The mirror lies on a file system of its own, unmounted and mounted again before each measurement, so that nothing of it is
cached. Touches are counted by the kernel: opens and reads by fanotify, blocks by the loop device. Where this machine allows
no mounts (a container), the mirror is an ordinary directory and the touches are shown as "-".
"""
import argparse
import os
import random
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "system"))

import harness  # noqa: E402
import touches  # noqa: E402
import trees  # noqa: E402

BIG_FILE = (4 << 30) + 12345
COLUMNS = "{:<26}{:<24}{:>9}{:>9}{:>15}{:>13}{:>13}"


def build(root, files):
    """A few hundred directories of packages, with the things that mirrors hold besides plain files."""
    rng = random.Random(20)
    directories = [root]
    for number in range(max(4, files // 60)):
        parent = rng.choice(directories[-40:])
        directory = os.path.join(parent, rng.choice(("pool", "dists", "release", "x86_64", "source")) + f"-{number:03}")
        os.mkdir(directory)
        directories.append(directory)
    for number in range(files):
        directory = rng.choice(directories)
        name = f"{rng.choice(('lib', 'python3-', 'fonts-', ''))}package{number:05}_{number % 7}.{number % 13}-1_amd64.deb"
        trees.write(os.path.join(directory, name), rng.randbytes(int(rng.expovariate(1 / 4000))), 0o644,
                    1_600_000_000_000_000_000 + number * 1_000_000_007)
        if number % 50 == 0:
            trees.symlink(name, os.path.join(directory, f"latest-{number}"))
        elif number % 99 == 0:
            os.link(os.path.join(directory, name), os.path.join(rng.choice(directories), f"same-{number}"))
    for number, name in enumerate((b"with space", b"caf\xc3\xa9", b"latin-\xe9", b"new\nline", b"-dash", b"st*r", b"back\\slash")):
        trees.write(os.path.join(os.fsencode(directories[-1]), name), b"odd name\n", 0o600 + number % 2 * 0o44 | 0o044)
    trees.sparse(os.path.join(directories[1], "disk.img"), BIG_FILE, [(0, b"boot"), (BIG_FILE - 4, b"last")])
    trees.set_directory_times(root)


def change(root):
    """A day later: 1 % of the files are new, changed (some with size and time as before, some with another size) or gone."""
    rng = random.Random(21)
    paths = [path for path in trees.walk(root) if path.endswith(b".deb")]
    for number, path in enumerate(rng.sample(paths, max(8, len(paths) // 100))):
        full = os.path.join(os.fsencode(root), path)
        info = os.stat(full)
        if number % 4 == 0:
            os.unlink(full)
        elif number % 4 == 1:
            trees.write(full + b".new", rng.randbytes(3000))
            os.rename(full + b".new", full)
        elif number % 4 == 2:
            trees.write(full + b".1", rng.randbytes(500))
        else:
            # Only the size differs: the time stays.
            trees.write(full, rng.randbytes(info.st_size + 17), mtime_ns=info.st_mtime_ns)
    trees.set_directory_times(root, 1_690_000_000_000_000_000)


class PlainDirectory:
    """Stands in for a LoopFileSystem where nothing can be mounted: always warm, nothing counted."""

    def __init__(self, path):
        self.mount_point = path
        os.makedirs(path)

    def mount(self):
        pass

    unmount = cold = mount

    def blocks_read(self):
        return None


class NoWatch:
    """Stands in for touches.Watch."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def collect(self):
        return None


def make_disk(place, files):
    mount_point = os.path.join(place, "storage/mirrors/foo")
    try:
        disk = touches.LoopFileSystem(os.path.join(place, "image"), mount_point, 256 + files * 12 // 1024, files * 2 + 1000)
        disk.mount()
        os.rmdir(os.path.join(mount_point, "lost+found"))
        return disk
    except touches.Unavailable as reason:
        print(f"No file system of its own for the mirror, so nothing is cold and no block is counted: {reason}")
        shutil.rmtree(mount_point, ignore_errors=True)
        return PlainDirectory(mount_point)


def make_watch(path):
    try:
        with touches.Watch(path):
            return lambda: touches.Watch(path)
    except touches.Unavailable as reason:
        print(f"Opens and reads are not counted: {reason}")
        return NoWatch


class Show:
    """The sample, its attr tree, the copies that are pulled, and the table."""

    def __init__(self, place, files):
        self.place, self.storage = place, os.path.join(place, "storage")
        self.disk = make_disk(place, files)
        self.mirror = self.disk.mount_point
        os.chmod(self.mirror, 0o755)
        build(self.mirror, files)
        self.watch = make_watch(self.mirror)
        self.attrs = os.path.join(self.storage, "mirror-attrs/foo")
        put_in_memory(self.attrs)
        self.problems = []
        self.totals = {}

    def config(self, served):
        nobody = (f"ignore nonreadable = yes\nuid = nobody\ngid = {harness.NOBODY_GROUP}\nuse chroot = yes\nread only = true\n"
                  "reverse lookup = no\n")
        if served == "stock rsyncd":
            return f"{nobody}[foo]\npath = {self.mirror}\n"
        if served == "layout 1, chroot":
            return f"{nobody}[foo]\npath = {self.storage}/./mirror-attrs/foo\nreal file prefix = /mirrors/foo\n"
        return f"{nobody}[foo]\npath = {self.attrs}\nreal file prefix = {self.mirror}\nuse chroot = no\n"

    def measure(self, what, who, work):
        """Run `work`, which returns a client's Result, on the cold mirror and print its row."""
        self.disk.cold()
        before = self.disk.blocks_read()
        with self.watch() as watch:
            result = work()
            touched = watch.collect()
        blocks = self.disk.blocks_read()
        # Taking hold of the root, which every connection does, is no touch of anything in the tree.
        counts = (None if touched is None else sum(count for path, count in touched.items() if path != self.mirror),
                  None if blocks is None else blocks - before)
        self.totals[what, who] = counts
        if result.code != 0:
            self.problems.append(result.text[-3000:])
        received = None if who == "rsync-huai" else number(rb"Total bytes received: ([\d,]+)", result.stdout)
        print(COLUMNS.format(what, who, shown(number(rb"Number of files: ([\d,]+)", result.stdout)), f"{result.seconds:.2f}",
                             shown(received, ""), *map(shown, counts)), flush=True)

    def write_attrs(self):
        return harness.run(harness.HUAI, "-aH", "--delete-after", "--only-send-attrs", "--stats", self.mirror + "/",
                           self.attrs + "/", timeout=600)

    def with_daemon(self, served, *options, target=None):
        program = harness.STOCK if served == "stock rsyncd" else harness.HUAI

        def work():
            with harness.Daemon(program, self.config(served), self.place) as daemon:
                return harness.run(harness.STOCK, *options, "--stats", daemon.url("foo/"), *([target] if target else []), timeout=900)
        return work

    def compare(self, when):
        expected = trees.describe(self.mirror)
        for name in SERVED:
            self.problems += [f"{when}, {name}: {line}" for line in
                              trees.differences(expected, trees.describe(os.path.join(self.place, "copy of " + name)))[:10]]

    def run(self):
        print(COLUMNS.format("", "", "entries", "seconds", "bytes received", "opens+reads", "blocks read"))
        self.measure("write the attr tree", "rsync-huai", self.write_attrs)
        for served in SERVED:
            self.measure("list everything", served, self.with_daemon(served, "-r", "--list-only"))
        for when in ("first pull", "pull, nothing new", "pull after a change"):
            if when == "pull after a change":
                change(self.mirror)
                self.measure("refresh the attr tree", "rsync-huai", self.write_attrs)
            for served in SERVED:
                target = os.path.join(self.place, "copy of " + served)
                self.measure(when, served, self.with_daemon(served, "-aHS", "--delete", target=target))
            self.compare(when)
        for what in ("list everything", "pull, nothing new"):
            for served in SERVED[1:]:
                if any(self.totals[what, served]):
                    self.problems.append(f"{what}, {served}: the real tree was touched")


SERVED = ("stock rsyncd", "layout 1, chroot", "layout 2, no chroot")


def shown(count, nothing="-"):
    return nothing if count is None else f"{count:,}"


def put_in_memory(attrs):
    os.makedirs(attrs)
    try:
        touches.run_tool("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", attrs)
    except touches.Unavailable as reason:
        print(f"No tmpfs for the attr tree, so it goes to disk: {reason}")


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found.group(1).replace(b",", b"")) if found else 0


def main():
    parser = argparse.ArgumentParser(description="Serve a sample mirror by stock rsyncd and by rsync-huai, side by side.")
    parser.add_argument("--files", type=int, default=20000, help="regular files of the sample (default: 20000)")
    options = parser.parse_args()
    try:
        touches.private_mounts()
    except touches.Unavailable as reason:
        print(f"No mounts of its own: {reason}")
    place = tempfile.mkdtemp(prefix="rsync-huai-try.")
    try:
        os.chmod(place, 0o755)
        print(f"Making a sample mirror of {options.files:,} files ...", flush=True)
        show = Show(place, options.files)
        show.run()
    finally:
        # Detaches what is a mount of ours, and does nothing to what is not.
        for mount in ("mirrors/foo", "mirror-attrs/foo"):
            touches.libc.umount2(os.fsencode(os.path.join(place, "storage", mount)), 2)
        shutil.rmtree(place, ignore_errors=True)
    for problem in show.problems:
        print(problem)
    print("All pulled trees equal the mirror." if not show.problems else "NOT as it should be, see above.")
    return 1 if show.problems else 0


if __name__ == "__main__":
    sys.exit(main())
