# SPDX-License-Identifier: GPL-3.0-or-later
"""-A and -X: what local runs and pulls make of ACLs and extended attributes, beside stock rsync doing the same."""
import os
import re
import shutil
import subprocess

import pytest

import attribute_trees
import harness
import trees

NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
TEMP_NAME = re.compile(rb"\.([^./\"]+)\.[A-Za-z0-9]{6}(?=[\",])")

JOBS = (
    "-aAXi", "-aAi", "-aXi", "-aXXi", "-aAXii", "-rltAXi", "-aAXi --no-perms", "-aAXni", "-aAXi --delete", "-aAXi --inplace",
    "-aAXic", "-aAXvv", "-aHAXi", "-aAXi --numeric-ids", "-aAXiI", "-aXi -f-x_user.long33", "-aXi -f+x_user.* -f-x_*",
    "-aAXi --no-i-r", "-aAXi --existing", "-aAXi --chmod=g-w,o=", "-aAXiL", "-ai", "-aAXi -W", "-aAXi --super", "-aAXi --no-super",
    "-aAXi --backup --backup-dir=bak", "-aAXi --link-dest=../alt", "-aAXi --compare-dest=../alt", "-aAXi --delay-updates",
)
WAYS = ("local", "shell 30", "shell 31", "shell 32", "daemon 32", "own 32")
CORE = ("-aAXi", "-aHAXi", "-aAXi --no-i-r")

needs_root = pytest.mark.skipif(not trees.IS_ROOT, reason="attributes of all name spaces need root")
pytestmark = needs_root


class Site:
    def __init__(self, top):
        self.top, self.source, self.old = top, f"{top}/src", f"{top}/old"
        attribute_trees.build(self.source)
        subprocess.run(["cp", "-a", self.source, self.old], check=True)
        attribute_trees.make_older(self.old)
        self.shell = harness.make_remote_shell(top)
        self.config = f"use chroot = no\nuid = 0\ngid = 0\n[m]\npath = {self.source}\n"

    def arguments(self, way, target):
        kind, _, protocol = way.partition(" ")
        if kind == "local":
            return [f"{self.source}/", target]
        words = [f"--protocol={protocol}"]
        if kind == "daemon":
            return [*words, self.daemon.url("m/"), target]
        server = harness.HUAI if kind == "own" else harness.STOCK
        return [*words, "-e", self.shell, f"--rsync-path={server}", f"host:{self.source}/", target]


@pytest.fixture(scope="module")
def site(top):
    result = Site(top)
    with harness.Daemon(harness.STOCK, result.config, top) as result.daemon:
        yield result


def lines(stream):
    """Attributes are set by either of stock's processes, in no order; what stock calls by a temp name may not have one here."""
    text = TEMP_NAME.sub(rb"\1", harness.normalise(stream))
    return sorted(line for line in text.split(b"\n") if not line.startswith(b"total: matches"))


def options_of(job):
    return [word.replace("_", " ") if word.startswith("-f") else word for word in job.split()]


def both(site, place, job, start, way, who="root"):
    results = []
    if "../alt" in job:
        subprocess.run(["cp", "-a", site.old, os.path.join(place, "alt")], check=True)
    for program in (harness.STOCK, harness.HUAI):
        target = os.path.join(place, "dest")
        if start == "old":
            subprocess.run(["cp", "-a", site.old, target], check=True)
        else:
            os.mkdir(target)
        os.utime(target, ns=(trees.ATIME_NS, 1_690_000_000_000_000_000))
        if who != "root":
            subprocess.run(["chown", "-hR", f"{NOBODY}:{NOBODY}", target], check=True)
        result = harness.run(*(AS_NOBODY if who != "root" else ()), program, *options_of(job), *site.arguments(way, f"{target}/"))
        results.append((result, attribute_trees.describe(target)))
        shutil.rmtree(target)
    return results


def assert_same(results):
    (stock, expected), (ours, got) = results
    for tree in (expected, got):  # made by the run, never given a time; stock loses long values there
        for path, *names in ((b"bak", "mtime"), (b"bak/d", "mtime", "xattr user.ondir")):
            for name in names:
                tree.get(path, {}).pop(name, None)
    assert ours.code == stock.code, stock.text + ours.text
    assert (lines(ours.stdout), lines(ours.stderr)) == (lines(stock.stdout), lines(stock.stderr)), stock.text + ours.text
    assert trees.differences(expected, got) == [], ours.text


def cases():
    for number, job in enumerate(JOBS):
        for start in ("new", "old"):
            for way in ("local", WAYS[1 + (2 * number + (start == "old")) % 5]):
                marks = [pytest.mark.core] if job in CORE and start == "old" else []
                yield pytest.param(job, start, way, marks=marks, id=f"{job}-{start}-{way}")


@pytest.mark.parametrize("job, start, way", cases())
def test_attributes_become_what_stock_makes_of_them(site, place, job, start, way):
    assert_same(both(site, place, job, start, way))


@pytest.mark.parametrize("job", ("-rlptAXi", "-aAXi --no-i-r", "-aXi -f-x_zz"))
@pytest.mark.parametrize("start", ("new", "old"))
def test_nobody_keeps_what_nobody_may(site, place, job, start):
    assert_same(both(site, place, job, start, "daemon 32", who="nobody"))


@pytest.mark.parametrize("protocol", (30, 31, 32))
@pytest.mark.parametrize("start", ("new", "old"))
def test_stock_client_pushes_attributes_to_our_server(site, place, start, protocol):
    """Values travel only when they are asked for; what the client shows comes from the server."""
    results = []
    for server in (harness.STOCK, harness.HUAI):
        target = os.path.join(place, "dest")
        if start == "old":
            subprocess.run(["cp", "-a", site.old, target], check=True)
        result = harness.run(harness.STOCK, "-aHAXi", f"--protocol={protocol}", "-e", site.shell, f"--rsync-path={server}",
                             f"{site.source}/", f"host:{target}/")
        results.append((result, attribute_trees.describe(target)))
        shutil.rmtree(target)
    assert_same(results)


@pytest.mark.parametrize("way", WAYS)
def test_second_run_finds_nothing_to_do(site, place, way):
    for _ in range(2):
        result = harness.run(harness.HUAI, "-aAXi", *site.arguments(way, f"{place}/dest/"))
        assert result.code == 0, result.text
    assert result.stdout == b"", result.text


def test_link_at_the_place_of_a_file_is_never_followed(site, place):
    """The victim is what an attribute would land on that is set through a name."""
    victim = os.path.join(place, "victim")
    trees.write(victim, b"", 0o600)
    before = attribute_trees.describe(victim)
    target = os.path.join(place, "dest")
    os.mkdir(target)
    for name in ("f1", "f4", "d", "fifo"):
        os.symlink(victim, os.path.join(target, name))
    result = harness.run(harness.HUAI, "-aAXi", *site.arguments("shell 32", f"{target}/"))
    assert result.code == 0, result.text
    assert attribute_trees.describe(victim) == before
    assert trees.differences(attribute_trees.describe(site.source), attribute_trees.describe(target)) == []


def test_file_system_without_attributes(site, place):
    """What cannot be kept is reported, the rest arrives; exit code 23 as of stock."""
    mounted = os.path.join(place, "ram")
    os.mkdir(mounted)
    if subprocess.run(["mount", "-t", "ramfs", "none", mounted], capture_output=True).returncode:
        pytest.skip("cannot mount a file system without attributes")
    try:
        results = []
        for program in (harness.STOCK, harness.HUAI):
            target = f"{mounted}/dest"
            result = harness.run(program, "-aAX", f"{site.source}/", target)
            reported = {line for line in lines(result.stderr) if b"set_acl" in line or b"xal_set" in line}
            # Stock says of directories' default ACLs twice: once from each of its processes.
            results.append((result.code, {line.replace(b"[receiver] set_acl", b"[generator] set_acl") for line in reported},
                            trees.describe(target)))
            shutil.rmtree(target)
        assert results[0][:2] == results[1][:2]
        assert trees.differences(results[0][2], results[1][2]) == []
    finally:
        subprocess.run(["umount", mounted], check=True)


def test_acls_of_system_names_are_not_taken_as_attributes(site, place):
    """A peer that sends system.posix_acl_access without being asked changes no ACL: stock's sender does under any rule."""
    shell = harness.make_remote_shell(place)
    result = harness.run(harness.HUAI, "-aX", "-M", "-f-x zz", "-e", shell, f"--rsync-path={harness.STOCK}",
                         f"host:{site.source}/", f"{place}/dest/")
    assert result.code == 0, result.text
    assert attribute_trees.ACCESS not in os.listxattr(f"{place}/dest/f1")


@pytest.mark.parametrize("words, text", (
    (("-aA", "--only-send-attrs", "a/", "b/"), b"--acls cannot be used with --only-send-attrs"),
    (("-aX", "--attr-snapshot=f", "a/"), b"--xattrs cannot be used with snapshots of attributes"),
))
def test_attr_trees_have_no_attributes_of_their_own(place, words, text):
    result = harness.run(harness.HUAI, *words, cwd=place)
    assert result.code == 1 and text in result.stderr, result.text
