# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module with an attr snapshot costs the real tree: nothing for a list, nothing for stored digests, and one open for each
content that is sent. Measured by the kernel: opens and reads by fanotify, every other look by the block reads of a cold disk.
"""
import concurrent.futures
import os
import shutil
import subprocess

import pytest

import harness
import test_listing_io as listing_io
import touches
import trees

PROTOCOLS = (27, 28, 29, 30, 31, 32)
DIRECTORIES, FILES = 60, 40
MODULES = ("mirror", "mirror-chroot")

# Options, what is asked for, and the oldest protocol in which a client can ask for it. {list}: names, one a line.
LISTINGS = (
    ("-a", ["/"], 27),
    ("-aH --no-i-r", ["/"], 27),
    ("-aHU", ["/"], 30),
    ("-aHx", ["/"], 27),
    ("-rt", ["/"], 27),
    ("-d", ["/"], 27),
    ("-aL --exclude=link-*", ["/"], 27),
    ("-ak", ["/"], 27),
    ("-a --copy-unsafe-links --exclude=link-*", ["/"], 27),
    ("-am --include=*/ --include=*.iso --exclude=*", ["/"], 29),
    ("-a --exclude=*.iso --exclude=/bulk/1*/ --exclude=/pool/", ["/"], 27),
    ("-a --include=*/ --include=*.deb --exclude=*", ["/"], 27),
    ("-a --filter=H_*7 --filter=-!_*/", ["/"], 29),
    ("-a", ["/bulk/17"], 27),
    ("-aH", ["/bulk/17/"], 27),
    ("-a", ["/p/q/../q"], 27),
    ("-a", ["/README"], 27),
    ("-a", ["/bulk/03/package_7"], 27),
    ("-a", ["/link-file", "/link-dir/"], 27),
    ("-a", ["/*.log", "/d*", "/b*/33/package_[12]*"], 27),
    ("-aR", ["/./dir/sub", "/./p/q/", "/./bulk/*/latest"], 27),
    ("-aR --no-implied-dirs", ["/./p/q/r/s"], 29),
    ("-a --files-from={list}", ["/"], 27),
    ("-ar --files-from={list}", ["/"], 27),
    ("-a", ["/no-such-name", "/no-such/below", "/none*"], 27),
)


def build(root):
    trees.build_mirror(root)
    for number in range(DIRECTORIES):
        directory = os.path.join(root, f"bulk/{number:02}")
        os.makedirs(directory)
        for file in range(FILES):
            trees.write(os.path.join(directory, f"package_{file}"), b"%d %d\n" % (number, file), 0o644, 1_700_000_000_000_000_000 + file)
        trees.symlink("package_0", os.path.join(directory, "latest"))
        os.link(os.path.join(directory, "package_1"), os.path.join(directory, "package_1-again"))
    trees.set_directory_times(root)


@pytest.fixture(scope="module")
def disk(top):
    """The mirror on a file system of its own; an equal copy, the list of names and the snapshots beside it."""
    try:
        touches.private_mounts()
        disk = touches.LoopFileSystem(os.path.join(top, "image"), os.path.join(top, "mirror"), 128, 8 * DIRECTORIES * FILES)
        disk.mount()
    except touches.Unavailable as reason:
        pytest.skip(str(reason))
    disk.top = top
    os.rmdir(os.path.join(disk.mount_point, "lost+found"))
    build(disk.mount_point)
    disk.copy, disk.list = os.path.join(top, "copy"), os.path.join(top, "list")
    assert subprocess.run(["cp", "-a", disk.mount_point, disk.copy]).returncode == 0
    trees.write(disk.list, b"README\ndir/sub\n/bulk/07/package_3\nbulk/./08/latest\n\nno-such-name\np/q/\nodd names/caf\xc3\xa9\n")
    yield disk
    disk.unmount()


def config(disk, *lines):
    lines = [f"path = {disk.mount_point}", "uid = nobody", f"gid = {harness.NOBODY_GROUP}", *lines]
    return "timeout = 600\n" + "".join(
        "\n".join([f"[{name}]", f"use chroot = {chroot}", *lines]) + "\n" for name, chroot in zip(MODULES, ("no", "yes")))


def cold_with_snapshot(disk, *options):
    """A new snapshot, and nothing cached. After another mount the device may be another one, and the snapshot of another root."""
    file = os.path.join(disk.top, "snapshot")
    for _ in range(10):
        made = harness.run(harness.HUAI, "-aHU", "--only-send-attrs", f"--attr-snapshot={file}", *options, disk.mount_point + "/")
        assert made.code == 0, made.text
        device = os.stat(disk.mount_point).st_dev
        disk.cold()
        if os.stat(disk.mount_point).st_dev == device:
            return [f"attr snapshot = {file}", "attr snapshot fallback = refuse"]
    pytest.skip("others mount and unmount loop devices all the time")


def regular_files(disk):
    """{inode: names} of the mirror."""
    result = {}
    for path in map(os.fsdecode, trees.walk(disk.mount_point)):
        path = os.path.join(disk.mount_point, path)
        if os.path.isfile(path) and not os.path.islink(path):
            result.setdefault(os.stat(path).st_ino, []).append(path)
    return result


def assert_same_trees(*roots):
    """Times count as older protocols know them, in seconds and 32 bits."""
    left, right = ({path: {**entry, "mtime": entry["mtime"] // 10 ** 9 % 2 ** 32} for path, entry in trees.describe(root).items()}
                   for root in roots)
    assert trees.differences(left, right) == []


@pytest.fixture
def measured(disk):
    """Skips what this kernel cannot measure."""
    try:
        with touches.Opens(disk.mount_point), touches.Watch(disk.mount_point):
            pass
    except touches.Unavailable as reason:
        pytest.skip(str(reason))


# --- lists ---

def listing(disk, daemon, module, protocol, options, sources):
    words = [harness.STOCK, "--list-only", f"--protocol={protocol}", *options.replace("{list}", disk.list).split()]
    words = [word.replace("_", " ") if word.startswith("--filter=") else word for word in words]
    words += [daemon.url(module + sources[0]), *(f"::{module}{source}" for source in sources[1:])]
    result = harness.run(*words)
    return result.code, result.stdout, b"\n".join(sorted(harness.normalise(result.stderr).splitlines()))


def listings(disk, daemon):
    """What clients get in each case; they mostly sleep, so several run at once."""
    cases = [(MODULES[(number + protocol) % 2], protocol, options, sources)
             for number, (options, sources, since) in enumerate(LISTINGS) for protocol in PROTOCOLS if protocol >= since]
    with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1) + 2) as executor:
        return [(case, *result) for case, result in zip(cases, executor.map(lambda case: listing(disk, daemon, *case), cases))]


def test_no_list_touches_the_real_tree(disk, measured):
    """Whatever is asked for, in any protocol; and what clients get is what stock sends from the tree itself."""
    disk.cold()
    with harness.Daemon(harness.STOCK, config(disk), disk.top) as daemon:
        before = disk.blocks_read()
        listing(disk, daemon, "mirror", 32, *LISTINGS[0][:2])
        assert disk.blocks_read() - before > 150, "stock has to read the tree, or nothing is measured here"
        expected = listings(disk, daemon)

    def measure():
        snapshot = cold_with_snapshot(disk)
        with harness.Daemon(harness.HUAI, config(disk, *snapshot), disk.top) as daemon, touches.Watch(disk.mount_point) as watch:
            before = disk.blocks_read()
            got = listings(disk, daemon)
            blocks = disk.blocks_read() - before
            # Taking hold of the root itself is the only thing that a connection may do.
            assert listing_io.others(watch, disk) == []
        for left, right in zip(expected, got):
            assert left == right
        return blocks

    assert touches.fewest(measure) == 0


@pytest.mark.parametrize("module", MODULES)
def test_rule_files_are_all_that_a_list_with_rule_files_opens(disk, measured, module):
    snapshot = cold_with_snapshot(disk)
    with harness.Daemon(harness.HUAI, config(disk, *snapshot), disk.top) as daemon, touches.Opens(disk.mount_point) as opens:
        code, stdout, _ = listing(disk, daemon, module, 32, "-aFF", ["/"])
        assert code == 0 and b"merge/keep.o" in stdout and b"merge/a.tmp" not in stdout
        opens.touched.pop(disk.mount_point, None)
        merge = os.path.join(disk.mount_point, "merge")
        assert opens.touched == {f"{merge}/.rsync-filter": 1, f"{merge}/inner/.rsync-filter": 1}


# --- digests ---

DIGESTS = [(sum, protocol) for sum in ("md5", "xxh128") for protocol in (30, 31, 32)]

# Options, what is compared, and with which part of the copy.
COMPARISONS = (
    ("--delete", ["/"], "/"),
    ("--no-i-r", ["/"], "/"),
    ("-x --no-H --exclude=*.iso --exclude=README --exclude=package_1*", ["/"], "/"),
    ("-R", ["/./bulk/07", "/./dir/sub/d.iso"], "/"),
    ("--list-only --files-from={list}", ["/"], "/"),
    ("", ["/bulk/17/"], "/bulk/17/"),
    ("", ["/README", "/*.log", "/p*"], "/"),
    ("", ["/link-dir/sub", "/link-dir/c"], "/dir/"),
    ("--list-only -L --exclude=link-*", ["/"], "/"),
    ("--list-only -k", ["/"], "/"),
    ("--list-only --copy-unsafe-links --exclude=link-*", ["/"], "/"),
)


def compare(disk, daemon, module, sum, protocol, options="", sources=("/",), target="/", copy=None):
    """Have a client compare its copy by checksums; what it itemizes."""
    words = [daemon.url(module + sources[0]), *(f"::{module}{source}" for source in sources[1:]), (copy or disk.copy) + target]
    result = harness.run(harness.STOCK, "-aHci", f"--cc={sum}", f"--protocol={protocol}", *options.replace("{list}", disk.list).split(),
                         *words)
    assert result.code == (23 if "{list}" in options else 0), result.text
    return result.stdout


def test_stored_digests_are_all_that_a_comparison_reads(disk, measured):
    def measure():
        snapshot = cold_with_snapshot(disk, "--attr-digests=xxh128,md5")
        with harness.Daemon(harness.HUAI, config(disk, *snapshot), disk.top) as daemon, touches.Watch(disk.mount_point) as watch:
            before = disk.blocks_read()
            for turn, (sum, protocol) in enumerate(DIGESTS):
                for number, comparison in enumerate(COMPARISONS):
                    lines = compare(disk, daemon, MODULES[(turn + number) % 2], sum, protocol, *comparison)
                    assert lines == b"" or "list-only" in comparison[0], (comparison, lines)
                    assert (comparison, listing_io.others(watch, disk)) == (comparison, [])
            return disk.blocks_read() - before

    assert touches.fewest(measure) == 0


@pytest.mark.parametrize("sum,stored", [("md5", None), ("xxh128", None), ("md5", "xxh128"), ("xxh128", "md5"), ("xxh64", "xxh128,md5")])
def test_contents_are_read_where_no_digest_is_stored(disk, measured, sum, stored):
    """The measurement itself; and a digest of another kind helps nobody."""
    snapshot = cold_with_snapshot(disk, *([f"--attr-digests={stored}"] if stored else []))
    with harness.Daemon(harness.HUAI, config(disk, *snapshot), disk.top) as daemon, touches.Watch(disk.mount_point) as watch:
        before = disk.blocks_read()
        assert compare(disk, daemon, "mirror", sum, 32) == b""
        assert disk.blocks_read() - before > DIRECTORIES * FILES
        touched = set(watch.collect())
        assert [names for names in regular_files(disk).values() if os.path.getsize(names[0]) and not touched.intersection(names)] == []


@pytest.mark.parametrize("sum,protocol", DIGESTS)
def test_a_comparison_opens_only_what_differs(disk, place, measured, sum, protocol):
    """Content of the same size and time: only the digest differs. The file is opened once, to be sent."""
    copy, path = os.path.join(place, "copy"), "bulk/05/package_7"
    assert subprocess.run(["cp", "-a", disk.copy, copy]).returncode == 0
    trees.write(os.path.join(copy, path), b"X XX"[:3] + b"\n", 0o644, 1_700_000_000_000_000_007)
    snapshot = cold_with_snapshot(disk, "--attr-digests=xxh128,md5")
    with harness.Daemon(harness.HUAI, config(disk, *snapshot), disk.top) as daemon, touches.Opens(disk.mount_point) as opens:
        assert compare(disk, daemon, "mirror", sum, protocol, copy=copy).split() == [b">fc........", os.fsencode(path)]
        opens.touched.pop(disk.mount_point, None)
        assert opens.touched == {os.path.join(disk.mount_point, path): 1}
    assert_same_trees(disk.mount_point, copy)


@pytest.mark.core
@pytest.mark.skipif(not trees.IS_ROOT, reason="changes its identity")
@pytest.mark.parametrize("chroot", ["no", "yes"])
@pytest.mark.parametrize("options", ["", "--no-i-r", "--exclude=nothing*"])
def test_a_stored_digest_is_for_those_who_may_read_the_file(place, chroot, options):
    """What a content is like is as good as the content: a client hears of it what the module's user can find out."""
    root, file, results = os.path.join(place, "mirror"), os.path.join(place, "snapshot"), []
    os.makedirs(os.path.join(root, "below"))
    for name in "secret", "below/secret", "below/open":
        trees.write(os.path.join(root, name), b"a good guess", 0o644 if name.endswith("open") else 0o600)
    trees.set_directory_times(root)
    made = harness.run(harness.HUAI, "-aH", "--only-send-attrs", f"--attr-snapshot={file}", "--attr-digests=xxh128,md5", root + "/")
    assert made.code == 0, made.text
    common = f"path = {root}\nuse chroot = {chroot}\nuid = nobody\ngid = {harness.NOBODY_GROUP}\n"
    with harness.Daemon(harness.HUAI, f"[live]\n{common}[snap]\n{common}attr snapshot = {file}\n", place) as daemon:
        for module in "live", "snap":
            target = os.path.join(place, module)
            assert subprocess.run(["cp", "-a", root, target]).returncode == 0
            result = harness.run(harness.STOCK, "-aci", *options.split(), daemon.url(f"{module}/"), target + "/")
            results.append((result.code, result.stdout, harness.normalise(result.stderr, (f"(in {module})", "(in M)"))))
    assert results[0] == results[1]
    assert results[0][0] == 23 and results[0][2].count(b"Permission denied") == 2 and b"open" not in results[0][1], results[0]


# --- contents ---

@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_contents_that_are_sent_are_opened_once_each(disk, place, measured, protocol):
    module = MODULES[protocol % 2]
    target = os.path.join(place, "target")
    files = regular_files(disk)
    snapshot = cold_with_snapshot(disk)

    def pull(daemon):
        """A pull, and how often each inode was opened for it; nothing but contents and the root may be."""
        with touches.Opens(disk.mount_point) as opens:
            result = harness.run(harness.STOCK, "-aH", "--delete", f"--protocol={protocol}", daemon.url(f"{module}/"), target + "/")
        assert result.code == 0, result.text
        opens.touched.pop(disk.mount_point, None)
        counts = {inode: sum(opens.touched.pop(name, 0) for name in names) for inode, names in files.items()}
        assert opens.touched == {}
        return counts

    with harness.Daemon(harness.HUAI, config(disk, *snapshot), disk.top) as daemon:
        assert pull(daemon) == {inode: 1 for inode in files}
        assert_same_trees(disk.mount_point, target)
        assert set(pull(daemon).values()) == {0}
        for lost in "bulk/42", "big.bin":
            path = os.path.join(target, lost)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        trees.write(os.path.join(target, "text.txt"), b"line 0 of a text that packs well\n" * 900)
        again = {os.stat(os.path.join(disk.mount_point, name)).st_ino
                 for name in ("big.bin", "text.txt", *(f"bulk/42/package_{file}" for file in range(FILES)))}
        assert pull(daemon) == {inode: int(inode in again) for inode in files}
    assert_same_trees(disk.mount_point, target)


# --- contents that are not where they were ---

def stale_links(place, change, *options):
    """A pull of -H from a snapshot that has not seen `change`, of two names of a file in directories far from each other."""
    root, file, target = os.path.join(place, "mirror"), os.path.join(place, "snapshot"), os.path.join(place, "target")
    for number in range(40):
        os.makedirs(os.path.join(root, f"{number:02}"))
        for name in range(25):
            trees.write(os.path.join(root, f"{number:02}/{name}"), b"x")
    trees.write(os.path.join(root, "18/first"), b"listed")
    os.link(os.path.join(root, "18/first"), os.path.join(root, "37/second"))
    made = harness.run(harness.HUAI, "-aH", "--only-send-attrs", f"--attr-snapshot={file}", root + "/")
    assert made.code == 0, made.text
    change(root)
    with harness.Daemon(harness.HUAI, f"[snap]\npath = {root}\nuse chroot = no\nattr snapshot = {file}\n", place) as daemon:
        result = harness.run(harness.STOCK, *options, daemon.url("snap/"), target + "/", timeout=20)
    content = {}
    for name in "18/first", "37/second":
        if os.path.exists(os.path.join(target, name)):
            with open(os.path.join(target, name), "rb") as stream:
                content[name] = stream.read()
    return result, content


def first_removed(root):
    os.unlink(os.path.join(root, "18/first"))


def first_replaced(root):
    """By a file that only differs in its content."""
    trees.write(os.path.join(root, "new"), b"LISTED", mtime_ns=1_700_000_000_000_000_001)
    os.rename(os.path.join(root, "new"), os.path.join(root, "18/first"))


def first_made_a_directory(root):
    os.unlink(os.path.join(root, "18/first"))
    os.mkdir(os.path.join(root, "18/first"))


def second_replaced_by_a_copy(root):
    """As an update does that makes the group anew; the first name is gone as well."""
    first_removed(root)
    trees.write(os.path.join(root, "new"), b"listed")
    os.rename(os.path.join(root, "new"), os.path.join(root, "37/second"))


@pytest.mark.core
@pytest.mark.parametrize("change", [first_removed, first_replaced, first_made_a_directory, second_replaced_by_a_copy])
@pytest.mark.parametrize("options", ["-aH", "-aH --no-i-r", "-aH --protocol=29"])
def test_another_name_of_a_hard_link_is_sent_if_this_one_is_not_there(place, change, options):
    """Every name gets what was listed. A stock client waits for ever if its first one is refused while it hears of the second."""
    result, content = stale_links(place, change, *options.split())
    assert result.code == 0 and result.stderr == b"", result.text
    assert content == {"18/first": b"listed", "37/second": b"listed"}


def test_without_hard_links_a_name_is_what_it_is_now(place):
    result, content = stale_links(place, first_replaced, "-a")
    assert result.code == 0 and content == {"18/first": b"LISTED", "37/second": b"listed"}, result.text


def test_a_name_that_is_gone_with_its_group_has_vanished(place):
    def both_removed(root):
        first_removed(root)
        os.unlink(os.path.join(root, "37/second"))

    result, content = stale_links(place, both_removed, "-aH", "--no-i-r")
    assert result.code == 24 and content == {} and result.stderr.count(b"file has vanished: ") == 2, result.text
