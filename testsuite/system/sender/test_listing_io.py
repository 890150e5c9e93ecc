# SPDX-License-Identifier: GPL-3.0-or-later
"""A listing from an attr tree leaves the real tree alone: no open or read of anything in it, no block of its disk."""
import difflib
import os

import pytest

import harness
import touches
import trees

DIRECTORIES, FILES = 200, 160
LISTINGS = (
    ("-r", "--list-only"),
    ("-aH", "--list-only", "--no-i-r"),
    ("-r", "--list-only", "--protocol=27"),
    ("-a", "--list-only", "--protocol=29", "--exclude=*7"),
)


def build(root):
    for number in range(DIRECTORIES):
        directory = os.path.join(root, f"directory-{number:03}")
        os.mkdir(directory)
        for file in range(FILES):
            path = os.path.join(directory, f"package_{file:04}-1.0.tar.gz")
            with open(path, "wb") as stream:
                stream.write(b"%d %d\n" % (number, file))
            os.utime(path, ns=(trees.ATIME_NS, 1_700_000_000_000_000_000 + file))
        os.symlink("package_0000-1.0.tar.gz", os.path.join(directory, "latest"))
    trees.set_directory_times(root)


@pytest.fixture(scope="module")
def disk(top):
    """The mirror on a file system of its own, and its attr tree beside it."""
    try:
        touches.private_mounts()
        disk = touches.LoopFileSystem(os.path.join(top, "image"), os.path.join(top, "mirror"), 256, 2 * DIRECTORIES * FILES)
        disk.mount()
    except touches.Unavailable as reason:
        pytest.skip(str(reason))
    disk.top = top
    os.rmdir(os.path.join(disk.mount_point, "lost+found"))
    build(disk.mount_point)
    disk.attrs = os.path.join(top, "attrs")
    trees.make_attr_tree(disk.mount_point, disk.attrs)
    yield disk
    disk.unmount()


def config(disk, attr_tree):
    lines = ["use chroot = no", "uid = nobody", f"gid = {harness.NOBODY_GROUP}"]
    if attr_tree and harness.HUAI != harness.STOCK:
        lines += [f"path = {disk.attrs}", f"real file prefix = {disk.mount_point}"]
    else:
        lines += [f"path = {disk.mount_point}"]
    return "[mirror]\n" + "\n".join(lines) + "\n[mirror-chroot]\n" + "\n".join(lines).replace("chroot = no", "chroot = yes") + "\n"


def listing(daemon, *options, module="mirror"):
    result = harness.run(harness.STOCK, *options, daemon.url(f"{module}/"))
    assert result.code == 0, result.text[-2000:]
    return harness.without_directory_sizes(result.stdout)


def assert_same(got, expected):
    """Like ==, but with the first lines that differ and not all 32,000 of them."""
    if got != expected:
        pytest.fail("\n".join(list(difflib.unified_diff(
            os.fsdecode(expected).split("\n"), os.fsdecode(got).split("\n"), "stock", "ours", n=0, lineterm=""))[:20]), pytrace=False)


def others(watch, disk):
    """The first few touched paths other than the root itself."""
    return sorted(set(watch.collect()) - {disk.mount_point})[:5]


@pytest.fixture(scope="module")
def from_stock(disk):
    """What stock prints for each listing, and the blocks it reads for the first one."""
    with harness.Daemon(harness.STOCK, config(disk, False), disk.top) as daemon:
        disk.cold()
        before = disk.blocks_read()
        outputs = {LISTINGS[0]: listing(daemon, *LISTINGS[0])}
        blocks = disk.blocks_read() - before
        outputs.update((options, listing(daemon, *options)) for options in LISTINGS[1:])
    return outputs, blocks


@pytest.mark.core
@pytest.mark.parametrize("module", ["mirror", "mirror-chroot"])
def test_listing_reads_no_block_of_the_real_tree(disk, from_stock, module):
    outputs, blocks = from_stock
    assert blocks > 1000, "stock has to read the tree, or nothing is measured here"

    def measure():
        disk.cold()
        with harness.Daemon(harness.HUAI, config(disk, True), disk.top) as daemon:
            before = disk.blocks_read()
            for options in LISTINGS:
                assert_same(listing(daemon, *options, module=module), outputs[options])
            return disk.blocks_read() - before

    assert touches.fewest(measure) == 0


@pytest.mark.core
@pytest.mark.parametrize("module", ["mirror", "mirror-chroot"])
def test_listing_opens_nothing_in_the_real_tree(disk, from_stock, module):
    outputs, _ = from_stock
    try:
        with harness.Daemon(harness.HUAI, config(disk, True), disk.top) as daemon, touches.Watch(disk.mount_point) as watch:
            for options in LISTINGS:
                assert_same(listing(daemon, *options, module=module), outputs[options])
            # Taking hold of the prefix itself is the only thing that a connection may do.
            assert others(watch, disk) == []
    except touches.Unavailable as reason:
        pytest.skip(str(reason))


def test_watch_sees_what_stock_does(disk):
    """The measurement itself: stock opens each directory, and a file that is pulled."""
    try:
        with harness.Daemon(harness.STOCK, config(disk, False), disk.top) as daemon, touches.Watch(disk.mount_point) as watch:
            listing(daemon, "-r")
            assert len(watch.collect()) >= DIRECTORIES
            assert harness.run(harness.STOCK, "-a", daemon.url("mirror/directory-000/package_0000-1.0.tar.gz"),
                               os.path.join(disk.top, "pulled")).code == 0
            assert os.path.join(disk.mount_point, "directory-000/package_0000-1.0.tar.gz") in watch.collect()
    except touches.Unavailable as reason:
        pytest.skip(str(reason))


def test_unchanged_pull_opens_nothing_but_a_changed_file(disk, from_stock):
    """An up-to-date client costs the real tree nothing; one file that it lacks costs that file."""
    target = os.path.join(disk.top, "copy")
    try:
        with harness.Daemon(harness.HUAI, config(disk, True), disk.top) as daemon:
            pull = lambda: harness.run(harness.STOCK, "-aH", "--delete", daemon.url("mirror/"), target, timeout=300)
            first = pull()
            assert first.code == 0, first.text
            with touches.Watch(disk.mount_point) as watch:
                assert pull().code == 0
                assert others(watch, disk) == []
                lost = "directory-042/package_0007-1.0.tar.gz"
                os.unlink(os.path.join(target, lost))
                assert pull().code == 0
                opened = {path for path in watch.collect() if os.path.isfile(path)}
                assert opened == {os.path.join(disk.mount_point, lost)}
    except touches.Unavailable as reason:
        pytest.skip(str(reason))
