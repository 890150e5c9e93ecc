# SPDX-License-Identifier: GPL-3.0-or-later
"""A delta on a file system that can share blocks: what has not changed is shared with the old file, not written again."""
import os
import subprocess

import pytest

import harness
import touches
import trees

SIZE = 4 << 20
OLD = trees.noise(SIZE, 1)
CHANGED = OLD[:1_000_000] + b"changed" * 100 + OLD[1_000_700:]
CASES = {  # the new content, and the least and most of it that is shared with the old one
    "changed": (CHANGED, 0.95, 1),
    "grown": (OLD + trees.noise(100_000, 2), 0.9, 0.99),
    "cut": (CHANGED[:3_000_001], 0.95, 1),
    "shifted": (b"new" + OLD, 0, 0.01),
    "swapped": (OLD[SIZE // 4:SIZE // 2] + OLD[:SIZE // 4] + OLD[SIZE // 2:], 0.45, 0.55),
    "new": (trees.noise(SIZE, 3), 0, 0.01),
}


@pytest.fixture(scope="module")
def disk(top):
    try:
        touches.private_mounts()
        disk = touches.SharingFileSystem(os.path.join(top, "image"), os.path.join(top, "disk"), 512)
        disk.mount()
    except touches.Unavailable as reason:
        pytest.skip(str(reason))
    yield disk.mount_point
    disk.unmount()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def shared_part(path):
    """How much of a file lies in blocks that another one has as well."""
    extents = subprocess.run(["filefrag", "-s", "-v", "-b4096", path], capture_output=True, text=True, check=True).stdout
    fields = [line.split(":") for line in extents.splitlines() if line.strip()[:1].isdigit()]
    lengths = [(int(field[3]), "shared" in field[-1]) for field in fields]
    return sum(length for length, shared in lengths if shared) / sum(length for length, _ in lengths)


def update(disk, place, content, *options):
    """A pull over an old file, which keeps a second name; what is then there."""
    source, target = os.path.join(place, "source"), os.path.join(disk, os.path.basename(place))
    for directory in (source, target):
        os.mkdir(directory)
    trees.write(os.path.join(source, "file"), content, 0o644, 1_700_000_000_000_000_000)
    trees.write(os.path.join(target, "file"), OLD, 0o644, 1_600_000_000_000_000_000)
    os.link(os.path.join(target, "file"), os.path.join(target, "old"))
    with harness.Daemon(harness.STOCK, f"use chroot = no\n[mod]\npath = {source}\n", place) as daemon:
        result = harness.run(harness.HUAI, "-a", *options, daemon.url("mod/"), target + "/")
    assert result.code == 0, result.text
    os.sync()
    assert read(os.path.join(target, "old")) == OLD
    assert read(os.path.join(target, "file")) == content
    assert os.stat(os.path.join(target, "file")).st_mtime == 1_700_000_000
    return shared_part(os.path.join(target, "file"))


@pytest.mark.parametrize("case", CASES)
def test_what_stays_is_shared(disk, place, case):
    content, least, most = CASES[case]
    assert least <= update(disk, place, content) <= most


@pytest.mark.parametrize("options", (["--partial"], ["--sparse"], ["--preallocate"], ["--whole-file"]))
def test_what_has_to_be_written_is_not_shared(disk, place, options):
    assert update(disk, place, CHANGED, *options) == 0
