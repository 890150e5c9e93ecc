# SPDX-License-Identifier: GPL-3.0-or-later
"""--fake-super: what is kept in attributes, and read from there, beside stock rsync; at either end."""
import os
import shutil
import subprocess

import pytest

import attribute_trees
import harness
import trees
from test_acls_xattrs import AS_NOBODY, NOBODY, assert_same

pytestmark = pytest.mark.skipif(not trees.IS_ROOT, reason="a source with owners and devices needs root")

# Of a directory, stock loses the ACLs as soon as it sets a long attribute.
LOST = (b"d", "xattr user.rsync.%aacl", "xattr user.rsync.%dacl")
JOBS = ("-aAXi", "-ai", "-aHAi --no-i-r", "-aAXi --inplace")
WRITES = ("local-dest", "local-both", "pull", "push")
READS = ("local-source", "pull-source", "push-source")


class Site:
    def __init__(self, top):
        self.top, self.source, self.store, self.old = top, f"{top}/src", f"{top}/store", f"{top}/old"
        attribute_trees.build(self.source)
        os.mknod(f"{self.source}/chr", 0o20644, os.makedev(1, 3))
        os.mknod(f"{self.source}/blk", 0o60640, os.makedev(8, 300))
        os.chown(f"{self.source}/f0", 1234, 4321)
        os.chmod(f"{self.source}/f0", 0o4755)
        trees.write(f"{self.source}/m0", b"x", 0)
        os.chown(f"{self.source}/d/e", 5, 6)
        os.chmod(f"{self.source}/d/e", 0o1777)
        os.lchown(f"{self.source}/l", 7, 8)
        for name in ("chr", "blk"):
            os.utime(f"{self.source}/{name}", ns=(trees.ATIME_NS, 1_600_000_000_000_000_000))
        trees.set_directory_times(self.source)
        subprocess.run([harness.STOCK, "-aHAX", "-M--fake-super", f"{self.source}/", self.store], check=True)
        subprocess.run(["cp", "-a", self.store, self.old], check=True)
        os.setxattr(f"{self.old}/f0", "user.rsync.%stat", b"100644 0,0 1:2")
        os.setxattr(f"{self.old}/blk", "user.rsync.%stat", b"60640 8,301 0:0")
        os.removexattr(f"{self.old}/chr", "user.rsync.%stat")
        os.removexattr(f"{self.old}/f2", "user.rsync.%aacl")
        os.unlink(f"{self.old}/fifo")
        with open(f"{self.old}/l", "w") as file:
            file.write("other")
        self.shell = harness.make_remote_shell(top)

    def words(self, way, job, program, target):
        """The command whose one end is the program, and the other one stock's where there are two."""
        remote = ["-e", self.shell, "--rsync-path"]
        fake, far = "--fake-super", "-M--fake-super"
        return {
            "local-dest": [program, *job, far, f"{self.source}/", target],
            "local-both": [program, *job, fake, f"{self.store}/", target],
            "local-source": [program, *job, fake, "-M--super", f"{self.store}/", target],
            "pull": [program, *job, fake, *remote, harness.STOCK, f"h:{self.source}/", target],
            "push": [harness.STOCK, *job, far, *remote, program, f"{self.source}/", f"h:{target}"],
            "pull-source": [harness.STOCK, *job, far, *remote, program, f"h:{self.store}/", target],
            "push-source": [program, *job, fake, *remote, harness.STOCK, f"{self.store}/", f"h:{target}"],
        }[way]


@pytest.fixture(scope="module")
def site(top):
    return Site(top)


def without_lost(tree):
    for name in LOST[1:]:
        tree.get(LOST[0], {}).pop(name, None)
    return tree


def both(site, place, way, job, start, who="root"):
    results = []
    for program in (harness.STOCK, harness.HUAI):
        target = os.path.join(place, "dest")
        if start == "new":
            os.mkdir(target)
        else:
            subprocess.run(["cp", "-a", getattr(site, start), target], check=True)
        if who != "root":
            subprocess.run(["chown", "-hR", f"{NOBODY}:{NOBODY}", target], check=True)
        result = harness.run(*(AS_NOBODY if who != "root" else ()), *site.words(way, job.split(), program, f"{target}/"))
        results.append((result, without_lost(attribute_trees.describe(target))))
        shutil.rmtree(target)
    return results


@pytest.mark.parametrize("start", ("new", "old", "store"))
@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize("job", [pytest.param(job, marks=[pytest.mark.core] if job == "-aAXi" else []) for job in JOBS])
def test_what_needs_root_is_kept_as_stock_keeps_it(site, place, way, job, start):
    assert_same(both(site, place, way, job, start))


@pytest.mark.parametrize("way", READS)
@pytest.mark.parametrize("job", ("-aAXi", "-ai", "-aAXi --no-i-r"))
def test_what_is_kept_comes_back(site, place, way, job):
    assert_same(both(site, place, way, job, "new"))


def test_nobody_keeps_everything(site, place):
    """A store that is written by nobody gives root back what there was."""
    target, back = os.path.join(place, "store"), os.path.join(place, "back")
    os.mkdir(target)
    os.chown(target, NOBODY, NOBODY)
    config = f"use chroot = no\nuid = 0\ngid = 0\n[m]\npath = {site.source}\n"
    with harness.Daemon(harness.STOCK, config, place) as daemon:
        result = harness.run(*AS_NOBODY, harness.HUAI, "-aHAX", "--fake-super", daemon.url("m/"), f"{target}/")
    assert result.code == 0, result.text
    assert all(os.lstat(os.path.join(target, name)).st_uid == NOBODY for name in os.listdir(target))
    result = harness.run(harness.HUAI, "-aHAX", "--fake-super", "-M--super", f"{target}/", f"{back}/")
    # What it takes for an attribute that it has kept cannot be set: "foo" is no name.
    expected = attribute_trees.describe(site.source)
    expected[b"f4"].pop("xattr user.rsync.foo")
    assert trees.differences(expected, attribute_trees.describe(back)) == [], result.text


@pytest.mark.parametrize("client", (harness.STOCK, harness.HUAI), ids=("stock", "ours"))
def test_module_with_fake_super(site, place, client):
    config = f"use chroot = no\nuid = 0\ngid = 0\n[m]\npath = {site.store}\nfake super = yes\n"
    trees_made = []
    for number, server in enumerate((harness.STOCK, harness.HUAI)):
        directory = os.path.join(place, str(number))
        os.mkdir(directory)
        with harness.Daemon(server, config, directory) as daemon:
            # A second X is taken back.
            result = harness.run(client, "-aAXX", daemon.url("m/"), f"{directory}/dest")
        trees_made.append((result.code, attribute_trees.describe(f"{directory}/dest")))
    assert trees_made[0][0] == trees_made[1][0]
    assert trees.differences(trees_made[0][1], trees_made[1][1]) == []


def test_push_to_a_module_with_fake_super(site, place):
    """Nobody writes there, and everything is kept; whether the client says so or not."""
    kept = []
    for number, server in enumerate((harness.STOCK, harness.HUAI)):
        directory = os.path.join(place, str(number))
        os.makedirs(f"{directory}/dest")
        os.chown(f"{directory}/dest", NOBODY, NOBODY)
        config = (f"use chroot = no\nuid = {NOBODY}\ngid = {NOBODY}\n[m]\npath = {directory}/dest\n"
                  "read only = no\nfake super = yes\nmunge symlinks = no\n")
        with harness.Daemon(server, config, directory) as daemon:
            result = harness.run(harness.STOCK, "-aAXi", f"{site.source}/", daemon.url("m/"))
        kept.append((result, without_lost(attribute_trees.describe(f"{directory}/dest"))))
    assert_same(kept)


@pytest.mark.parametrize("words, text", (
    (("-aXX", "--fake-super", "a/", "b/"), b"--fake-super conflicts with -XX"),
    (("-a", "--fake-super", "--only-send-attrs", "a/", "b/"), b"--fake-super cannot be used with --only-send-attrs"),
    (("-a", "--fake-super", "--attr-snapshot=f", "a/"), b"--fake-super cannot be used with snapshots of attributes"),
))
def test_what_fake_super_conflicts_with(place, words, text):
    result = harness.run(harness.HUAI, *words, cwd=place)
    assert result.code == 1 and text in result.stderr, result.text


def test_broken_records_are_told(place):
    """No file is taken for what a record says that cannot be read."""
    source = os.path.join(place, "src")
    os.mkdir(source)
    for name in ("good", "bad"):
        trees.write(f"{source}/{name}", b"x")
    os.setxattr(f"{source}/bad", "user.rsync.%stat", b"104755 0,0 0:0 and more")
    result = harness.run(harness.HUAI, "-a", "--fake-super", "-M--super", f"{source}/", f"{place}/dest/")
    assert result.code == 23 and b"src/bad" in result.stderr, result.text
    assert os.listdir(f"{place}/dest") == ["good"]
