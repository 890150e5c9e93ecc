# SPDX-License-Identifier: GPL-3.0-or-later
"""Attr trees and attr snapshots whose source is a stock server: of its list alone, and as what a pull leaves behind.

What comes of them is held against a local run or a scan, which look at the files themselves.
"""
import os
import random
import shutil
import subprocess
import time

import pytest

import harness
import snapshots
import test_attr_tree
import test_local_snapshot
import test_matrix
import trees

PROTOCOLS = test_matrix.PROTOCOLS
NS = 10 ** 9


def module(name, path, *lines):
    return test_matrix.module(name, path, None, "use chroot = no", "munge symlinks = no", *lines)


@pytest.fixture(scope="module")
def upstream(workspace):
    """A stock daemon that serves the whole workspace: as root, and as a user who may not read everything."""
    directory = os.path.join(workspace, "upstream")
    os.mkdir(directory)
    root = ["uid = 0", "gid = 0"] if trees.IS_ROOT else []
    nobody = ["uid = nobody", f"gid = {harness.NOBODY_GROUP}"] if trees.IS_ROOT else []
    config = "transfer logging = yes\nlog format = SENT %f\n" + module("all", workspace, *root) + module("nobody", workspace, *nobody)
    with harness.Daemon(harness.STOCK, config, directory) as daemon:
        daemon.top = workspace
        daemon.shell = harness.make_remote_shell(directory)
        yield daemon


class Place(test_local_snapshot.Place):
    """A source behind a server, a destination, and snapshots beside them."""

    def __init__(self, path, upstream, way="all", protocol=32):
        super().__init__(path)
        self.upstream, self.way, self.protocol = upstream, way, protocol

    def words(self):
        if self.way == "shell":
            return ["-e", self.upstream.shell, f"--rsync-path={harness.STOCK}", f"--protocol={self.protocol}"]
        return [f"--protocol={self.protocol}"]

    def remote(self, source=None):
        source = source or self.source + "/"
        if self.way == "shell":
            return f"host:{source}"
        return self.upstream.url(f"{self.way}/" + os.path.relpath(source, self.upstream.top) + "/" * source.endswith("/"))

    def run(self, *options, source=None, **keywords):
        return super().run(*self.words(), *options, source=self.remote(source), **keywords)

    def set(self, way, protocol):
        self.way, self.protocol = way, protocol
        if protocol < 30:
            os.unlink(os.path.join(self.source, "old-date"))  # Times before 1970 do not travel.

    def as_listed(self, tree):
        """Older lists have whole seconds."""
        if self.protocol < 31:
            for directory, names, files in os.walk(tree, topdown=False):
                for path in [os.path.join(directory, name) for name in names + files] + [directory] * (directory == tree):
                    stamp = os.lstat(path).st_mtime_ns // NS * NS
                    os.utime(path, ns=(stamp, stamp), follow_symlinks=False)
        return tree


def places(*ways):
    return pytest.mark.parametrize("way, protocol", [pytest.param(way, protocol, marks=[pytest.mark.core] if protocol in (28, 32) else [])
                                                     for way in ways for protocol in PROTOCOLS])


@pytest.fixture
def site(place, upstream):
    site = Place(place, upstream)
    os.mkdir(site.source)
    trees.build_mirror(site.source)
    return site


@pytest.fixture
def bare(place, upstream):
    site = Place(place, upstream)
    os.mkdir(site.source)
    return site


# --- the attr tree ---

def write_attrs(site, *options, source=None, **keywords):
    return harness.run(harness.HUAI, "-aH", *site.words(), *options, "--only-send-attrs", site.remote(source), site.dest + "/", **keywords)


def expected(site):
    model = os.path.join(site.path, "model")
    local = harness.run(harness.HUAI, "-aH", "--only-send-attrs", site.source + "/", model + "/")
    assert local.code == 0, local.text
    description = trees.describe(site.as_listed(model))
    shutil.rmtree(model)
    return description


def assert_is_attr_tree(site):
    assert trees.differences(expected(site), trees.describe(site.dest)) == []


@places("all", "shell")
def test_attr_tree_of_a_list(site, way, protocol):
    site.set(way, protocol)
    options = "-i --delete --no-i-r" if way == "shell" else ""
    trees.sparse(os.path.join(site.source, "enormous"), 1 << 40)
    result = write_attrs(site, *options.split())
    assert result.code == 0 and not result.stderr, result.text
    assert_is_attr_tree(site)
    before = test_attr_tree.inodes(site.dest)
    assert write_attrs(site, *options.split()).code == 0
    assert test_attr_tree.inodes(site.dest) == before


def test_attr_tree_asks_for_no_content(site):
    write_attrs(site)
    trees.make_older(site.source)
    write_attrs(site, "--delete")
    assert f"SENT {os.path.relpath(site.source, site.upstream.top)}" not in site.upstream.log()
    assert_is_attr_tree(site)


def change(site):
    trees.write(os.path.join(site.source, "README"), b"longer than it was before", mtime_ns=test_local_snapshot.OLD_NS)
    trees.write(os.path.join(site.source, "new"), b"new" * 1000)
    os.unlink(os.path.join(site.source, "hard-1"))
    shutil.rmtree(os.path.join(site.source, "dir"))
    os.mkdir(os.path.join(site.dest, "surplus"))
    trees.write(os.path.join(site.dest, "surplus/file"), b"12345678")


@pytest.mark.core
@pytest.mark.parametrize("options", ["--delete", "--delete-before", "--delete-after -i", "--delete-delay", "--delete --exclude=/pool"])
def test_attr_tree_follows_its_source(site, options):
    write_attrs(site)
    change(site)
    result = write_attrs(site, *options.split())
    assert result.code == 0, result.text
    assert_is_attr_tree(site)
    assert not any(name.startswith(b"surplus") for name in trees.walk(site.dest))


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_unchanged_attr_files_are_not_read(site):
    write_attrs(site)
    words = [harness.HUAI, "-aH", "--only-send-attrs", site.remote(), site.dest + "/"]
    assert test_local_snapshot.reads_of(site.path, words, site.dest + "/") == set()


def test_output_is_that_of_a_local_run(site):
    local = harness.run(harness.HUAI, "-ai", "--only-send-attrs", site.source + "/", site.dest + "/")
    shutil.rmtree(site.dest)
    remote = write_attrs(site, "-i", "--no-H")
    assert sorted(local.stdout.splitlines()) == sorted(remote.stdout.splitlines()), local.text + remote.text
    assert write_attrs(site, "-i", "--no-H").stdout == b""


def test_attr_tree_of_a_single_file(site):
    result = harness.run(harness.HUAI, "-a", "--only-send-attrs", site.remote(os.path.join(site.source, "README")), site.path + "/one")
    assert result.code == 0 and os.path.getsize(site.path + "/one") == 8, result.text


def test_attr_tree_over_real_files_is_refused(site):
    shutil.copytree(os.path.join(site.source, "pool"), site.dest)
    before = trees.describe(site.dest)
    result = write_attrs(site)
    assert result.code == test_attr_tree.REFUSED and b"not an attr file" in result.stderr, result.text
    assert trees.describe(site.dest) == before


def test_attr_tree_in_its_source_is_refused_by_the_protocol_too(site):
    before = trees.describe(site.source)
    for dest in site.source + "/attrs", site.source:
        result = harness.run(harness.HUAI, "-a", "--no-whole-file", "--force", "--only-send-attrs", site.source + "/", dest + "/")
        assert result.code == test_attr_tree.REFUSED and b"source" in result.stderr, result.text
        assert trees.describe(site.source) == before
    result = harness.run(harness.HUAI, "-aH", "--no-whole-file", "--only-send-attrs", site.source + "/", site.dest + "/")
    assert result.code == 0, result.text
    assert_is_attr_tree(site)


@pytest.mark.parametrize("option", ["--checksum"])
def test_attr_tree_refuses_what_needs_contents(site, option):
    result = write_attrs(site, option)
    assert result.code == 1 and b"--only-send-attrs" in result.stderr and not os.path.exists(site.dest), result.text


# --- the snapshot of a list ---

def comparable(entries):
    """Groups of hard links by their members, for their numbers are not the same everywhere."""
    groups = {}
    for path, entry in entries.items():
        groups.setdefault(entry.get("links"), []).append(path)
    return {path: {**entry, "links": sorted(groups[entry["links"]]) if "links" in entry else None} for path, entry in entries.items()}


def whole_seconds(entries):
    return {path: {**entry, "mtime": entry["mtime"] // NS * NS} for path, entry in entries.items()}


def snapshot_of_list(site, *options, source=None):
    return harness.run(harness.HUAI, *site.words(), *options, f"--attr-snapshot={site.file}", site.remote(source))


def assert_is_of_source(site, *options):
    scan = harness.run(harness.HUAI, "-aH", *options, f"--attr-snapshot={site.other}", site.source + "/")
    assert scan.code == 0, scan.text
    left, right = (comparable(snapshots.Snapshot(file).entries) for file in (site.other, site.file))
    if site.protocol < 31:
        left = whole_seconds(left)
    if site.protocol < 28:
        # A file that has no other name in the list cannot be distinguished from one that has none at all.
        left = {path: {**entry, "links": entry["links"] if len(entry["links"] or []) > 1 else None} for path, entry in left.items()}
    lines = trees.differences(left, right)
    assert lines == [], "\n".join(lines)


@places("all", "shell")
def test_snapshot_of_a_list(site, way, protocol):
    site.set(way, protocol)
    if protocol < 28:
        for name in os.listdir(site.source):
            # Only regular files have groups in such a list.
            if name.startswith(("twin", "hard")) and not os.path.isfile(os.path.join(site.source, name)):
                os.unlink(os.path.join(site.source, name))
    for options in ["-aH"], ["-r", "--no-i-r"]:
        result = snapshot_of_list(site, *options)
        assert result.code == 0 and not result.stderr and not result.stdout, result.text
        assert_is_of_source(site)


@pytest.mark.core
@pytest.mark.parametrize("options", ["-U", "--exclude=*.deb --exclude=/dir", "--chmod=D700,F600", "-L --exclude=link-* --exclude=odd*", "-x"])
def test_snapshot_of_a_list_with_options(site, options):
    result = snapshot_of_list(site, "-aH", *options.split())
    assert result.code == 0, result.text
    assert_is_of_source(site, *options.split())


def test_snapshot_of_a_list_is_bound_to_no_directory(site):
    operand = site.remote()
    result = snapshot_of_list(site, "-aHv", "--exclude=*.deb")
    facts = snapshots.Snapshot(site.file).facts
    assert (facts["root_dev"], facts["root_ino"], facts["root"], facts["options"]) == (0, 0, operand.encode(), b"--exclude=*.deb")
    assert f"wrote {site.file}: generation 1".encode() in result.stdout
    listing = harness.run(harness.HUAI, "-v", "--attr-list", site.file)
    assert b"# root: any, from the list of " + operand.encode() in listing.stdout
    snapshot_of_list(site, "-aH")
    assert snapshots.Snapshot(site.file).facts["generation"] == 2


def test_snapshot_of_a_list_can_be_served(site):
    assert snapshot_of_list(site, "-aH", source=site.source).code == 0
    os.mkdir(site.path + "/daemon")
    config = test_matrix.module("mod", site.source, None, "use chroot = no", f"attr snapshot = {site.file}", "attr snapshot fallback = refuse")
    with harness.Daemon(harness.HUAI, config, site.path + "/daemon") as daemon:
        result = harness.run(harness.STOCK, "-aH", daemon.url("mod/"), site.dest)
    assert result.code == 0, result.text
    assert trees.differences(trees.describe(site.source), trees.describe(site.dest)) == []


@pytest.mark.parametrize("options, word", [("-a --attr-digests=md5", b"contents"), ("-a --delete", b"--delete"), ("-lt", b"--recursive")])
def test_snapshot_of_a_list_refuses_what_it_cannot_do(site, options, word):
    result = snapshot_of_list(site, *options.split())
    assert result.code == 1 and word in result.stderr and not os.path.exists(site.file), result.text


def test_a_refresh_from_a_list_is_refused(site):
    assert snapshot_of_list(site, "-a", "--attr-refresh=dirs").code == 4


@pytest.mark.parametrize("source", ["none/", "README"])
def test_no_snapshot_without_a_directory(site, source):
    result = snapshot_of_list(site, "-aH", source=os.path.join(site.source, source))
    assert result.code in (3, 23) and not os.path.exists(site.file), result.text


def test_a_dry_run_writes_no_snapshot(site):
    result = snapshot_of_list(site, "-aHnv")
    assert result.code == 0 and b"would write" in result.stdout and not os.path.exists(site.file), result.text


@test_local_snapshot.needs_root
def test_snapshot_of_a_list_that_lacks_something(site):
    site.way = "nobody"
    os.mkdir(os.path.join(site.source, "closed"), 0o700)
    result = snapshot_of_list(site, "-aH")
    assert result.code == 23 and snapshots.Snapshot(site.file).facts["io_error"] == 1, result.text


# --- what a pull leaves behind ---

PULLS = [
    "-aH --delete", "-a", "-aH --delete-before", "-aH --delete-after", "-a --delete-delay", "-rltp --delete", "-aHi --delete --no-i-r",
    "-aH --delete --inplace", "-aHc --delete", "-aHI --delete --no-W", "-aHz --delete", "-aH --delete --size-only -W", "-aHu --existing",
    "-aH --delete --chmod=D755,F640", "-aH --delete --exclude=/dir/ --exclude=*.log", "-aH --delete --filter=P_keep.me --filter=P_keep/",
    "-d", "-aHS --delete --omit-dir-times",
]


def pulls():
    for number, options in enumerate(PULLS):
        for turn in (2 * number, 2 * number + 1):
            before = test_local_snapshot.BEFORE[turn % 5]
            marks = [pytest.mark.core] if turn % 8 == 0 else []
            yield pytest.param(options, before, "shell" if turn % 3 == 0 else "all", PROTOCOLS[-1 - turn * 3 // 4 % len(PROTOCOLS)], marks=marks)


@pytest.mark.parametrize("options, before, way, protocol", pulls())
def test_a_pull_leaves_what_a_scan_says(site, options, before, way, protocol):
    site.way, site.protocol = way, protocol
    test_local_snapshot.prepare(site, before)
    words = [word.replace("_", " ") for word in options.split()]
    site.run(*words)
    site.run(*words)


@pytest.mark.core
@pytest.mark.parametrize("protocol", [28, 29, 32])
def test_a_pull_without_a_second_walk(site, protocol):
    site.protocol = protocol
    for what in "fresh", "unchanged", "changed":
        if what == "changed":
            trees.make_older(site.dest)
        result = site.run("-aHv", "--delete", "--no-human-readable")
        assert b" 0 directories read\n" in result.stdout, result.text


@pytest.mark.core
@pytest.mark.parametrize("seed", range(12))
def test_a_pull_of_trees_that_change_at_random(bare, seed):
    generator = random.Random(seed)
    bare.way, bare.protocol = generator.choice(["all", "shell"]), generator.choice(PROTOCOLS)
    os.mkdir(bare.dest)
    for _ in range(5):
        options = [word.replace("_", " ") for word in generator.choice(test_local_snapshot.RANDOM_OPTIONS).split()]
        for _ in range(generator.choice([0, 3, 40])):
            test_local_snapshot.random_change(generator, bare.source, "abcd")
        for _ in range(generator.choice([0, 0, 2, 20])):
            test_local_snapshot.random_change(generator, bare.dest, "abcde")
        result = harness.run(harness.HUAI, *bare.words(), *options, f"--attr-snapshot={bare.file}", bare.remote(), bare.dest + "/")
        assert result.code in (0, 23, 25), result.text
        bare.check(bare.dest, text=result.text)


@pytest.mark.parametrize("protocol", [27, 29, 30, 32])
@test_local_snapshot.needs_root
def test_files_that_the_other_end_cannot_read(site, protocol):
    site.protocol = protocol
    site.run("-aH")
    for name in "README", "pool/main/a/a_1.0.deb":
        trees.write(os.path.join(site.source, name), b"secret now", mode=0o600)
    trees.write(os.path.join(site.source, "new secret"), b"secret", mode=0o600)
    site.way = "nobody"
    site.run("-aH", "--delete", "--ignore-errors", code=23)
    entries = snapshots.Snapshot(site.file).entries
    assert entries[b"README"]["size"] != 10 and b"new secret" not in entries


def test_files_that_have_vanished(site):
    """Of ours, which lists what was there when its snapshot was made."""
    assert harness.run(harness.HUAI, "-aH", f"--attr-snapshot={site.other}", site.source + "/").code == 0
    os.unlink(os.path.join(site.source, "README"))
    os.mkdir(site.path + "/daemon")
    config = test_matrix.module("mod", site.source, None, "use chroot = no", f"attr snapshot = {site.other}")
    with harness.Daemon(harness.HUAI, config, site.path + "/daemon") as daemon:
        result = harness.run(harness.HUAI, "-aH", f"--attr-snapshot={site.file}", daemon.url("mod/"), site.dest + "/")
    assert result.code == 24, result.text
    site.check(site.dest)
    assert b"README" not in snapshots.Snapshot(site.file).entries


@pytest.mark.parametrize("protocol", [28, 32])
@pytest.mark.skipif(not trees.IS_ROOT or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_directories_that_cannot_be_written(bare, protocol):
    bare.protocol = protocol
    for name in "open", "closed":
        os.makedirs(os.path.join(bare.source, name))
        for number in range(5):
            trees.write(os.path.join(bare.source, name, f"{number}"), b"x" * 100)
    own = os.path.join(bare.path, "own")
    subprocess.run(["cp", "-a", bare.source, own], check=True)
    for number in range(5):
        trees.write(os.path.join(bare.source, "closed", f"{number}"), b"changed")
    subprocess.run(["chown", "-Rh", "65534:65534", own], check=True)
    os.chown(os.path.join(own, "closed"), 0, 0)
    os.mkdir(os.path.join(bare.path, "files"))
    os.chown(os.path.join(bare.path, "files"), 65534, 65534)
    bare.file, bare.other = os.path.join(bare.path, "files/dest.snap"), os.path.join(bare.path, "files/other.snap")
    program = [*test_local_snapshot.NOBODY, harness.HUAI]
    bare.run("-rltp", "--delete", dest=own + "/", program=program, code=23)
    assert {snapshots.Snapshot(bare.file).entries[b"closed/%d" % number]["size"] for number in range(5)} == {100}


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_pull_looks_at_no_unchanged_file_twice(bare):
    for number in range(400):
        os.makedirs(os.path.join(bare.source, f"{number % 20}"), exist_ok=True)
        with open(os.path.join(bare.source, f"{number % 20}/{number}"), "w"):
            pass
    test_local_snapshot.copy_of(bare.source, bare.dest)
    time.sleep(3.1)
    words = [harness.HUAI, "-aH", "--delete", bare.remote(), bare.dest + "/"]
    stats = "statx", "newfstatat", "fstat", "lstat", "stat"
    without = test_local_snapshot.count_calls(bare.path, words, *stats)
    assert test_local_snapshot.count_calls(bare.path, [*words, f"--attr-snapshot={bare.file}"], *stats) - without <= 20 + 30
    assert without > 400
