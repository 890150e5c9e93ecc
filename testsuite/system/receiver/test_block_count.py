# SPDX-License-Identifier: GPL-3.0-or-later
"""The 4 KiB blocks that a receiving side has written to, as --stats shows them at protocol 33 (doc/protocol/09-since-3.5.0.md
section 3)."""
import collections
import os
import re
import shutil
import stat
import tempfile

import pytest

import harness
import trees

OLD, NEW = 1_300_000_000, 1_700_000_000
LINE = re.compile(rb"^Literal data: .*\nNumber of 4 KiB logical blocks touched: (.*)\nMatched data: ", re.M)
WAYS = ("local", "pull", "push", "replay")
BLOCK = 4096


def noise(size, seed=1):
    """Bytes without a zero among them."""
    return trees.noise(size, seed).replace(b"\0", b"\1")


R = noise(70_000)


def changed(data, *offsets):
    data = bytearray(data)
    for offset in offsets:
        data[offset] = data[offset] % 255 + 1
    return bytes(data)


def zeros(blocks):
    return bytes(blocks * BLOCK)


# name, options, what the source has, what the destination has, the count; `also`: further files beside the destination.
Case = collections.namedtuple("Case", "name options source before count also", defaults=({},))
FOUR = noise(4 * BLOCK, 7)
HOLED = noise(BLOCK, 2) + zeros(2) + noise(BLOCK, 3)
ALTERNATELY = b"".join(b"a" + bytes(BLOCK - 1) if number % 2 == 0 else zeros(1) for number in range(32))
TEN = noise(10_000, 4)
IN_PLACE = "-I --inplace --no-W"

CASES = (
    *(Case(f"new-{size}", "", noise(size), None, count)
      for size, count in ((0, 0), (1, 1), (4095, 1), (4096, 1), (4097, 2), (8192, 2), (8193, 3), (70_000, 18))),
    Case("identical", "-I --no-W", R, R, 18),
    Case("identical-in-place", IN_PLACE, R, R, 0),
    Case("identical-in-place-whole", "-I --inplace -W", R, R, 18),
    Case("one-byte", "-I --no-W", changed(R, 5000), R, 18),
    Case("one-byte-in-place", IN_PLACE, changed(R, 5000), R, 1),
    Case("straddling-literal", f"{IN_PLACE} -B700", changed(R, 4095), R, 2),
    Case("literal-block", f"{IN_PLACE} -B4096", changed(R, 4095), R, 1),
    Case("ten-bytes", f"{IN_PLACE} -B4096", changed(R, *(number * BLOCK + 17 * number for number in range(1, 11))), R, 10),
    Case("twice-in-one", f"{IN_PLACE} -B512", changed(R, 0, 3000), R, 1),
    Case("one-long-literal", f"{IN_PLACE} -B131072", changed(R, 0), R, 18),
    Case("byte-in-front", IN_PLACE, b"+" + R, R, 18),
    Case("cut", f"{IN_PLACE} -B700", R[:7000], R, 0),
    Case("moved-blocks", f"{IN_PLACE} -B4096", FOUR[BLOCK:], FOUR, 3),
    Case("in-place-backup", f"{IN_PLACE} --backup", changed(R, 5000), R, 1),
    Case("backup", "-I --no-W --backup", changed(R, 5000), R, 18),
    *(Case(f"append-{size}", "--append", TEN, TEN[:size], count) for size, count in ((5000, 2), (4096, 2), (4095, 3), (9999, 1))),
    Case("append-verify", "--append-verify", TEN, TEN[:5000], 2),
    Case("append-verify-wrong", "--append-verify", TEN, changed(TEN[:5000], 10), 3),
    Case("zeros", "", bytes(70_000), None, 18),
    Case("zeros-sparse", "-S", bytes(70_000), None, 0),
    Case("zeros-and-a-byte", "-S", zeros(1) + b"x", None, 1),
    Case("long-hole", "-S", noise(BLOCK) + zeros(100) + noise(BLOCK), None, 2),
    Case("unaligned-hole", "-S", noise(100) + zeros(3) + noise(100), None, 2),
    Case("short-hole", "-S", noise(5000) + bytes(1000) + noise(5000), None, 3),
    Case("alternately", "-S", ALTERNATELY, None, 16),
    Case("sparse-in-place", f"-S {IN_PLACE}", HOLED, HOLED, 0),
    Case("sparse-in-place-byte", f"-S {IN_PLACE} -B4096", changed(HOLED, 4095), HOLED, 1),
    Case("becomes-zero-sparse", f"-S {IN_PLACE} -B4096", FOUR[:BLOCK] + zeros(1) + FOUR[2 * BLOCK:], FOUR, 0),
    Case("becomes-zero", f"{IN_PLACE} -B4096", FOUR[:BLOCK] + zeros(1) + FOUR[2 * BLOCK:], FOUR, 1),
    Case("preallocate", "--preallocate", R, None, 18),
    Case("preallocate-sparse", "--preallocate -S", HOLED, None, 2),
    Case("two-files", "", {"f": noise(BLOCK), "g": noise(BLOCK, 9)}, None, 2),
    Case("compressed", "-z", R, None, 18),
    Case("delayed", "--delay-updates", R, None, 18),
    Case("fuzzy", "-y --no-W", {"file.new": R}, {"file.old": changed(R, 9)}, 18),
    Case("link-dest", "--link-dest=../alt", R, None, 0, {"alt/f": R}),
    Case("copy-dest", "--copy-dest=../alt", R, None, 0, {"alt/f": R}),
    Case("link-dest-basis", "-I --no-W --link-dest=../alt", changed(R, 5000), None, 18, {"alt/f": R}),
    Case("partial-file", "--partial-dir=.p --no-W", R, None, 6, {"dst/.p/f": R[:50_000]}),
    Case("partial-file-whole", "--partial-dir=.p -W", R, None, 18, {"dst/.p/f": R[:50_000]}),
    Case("dry-run", "-n", R, None, 0),
    Case("listing", "--list-only", R, None, 0),
    Case("large-clone", "-I --no-W", changed(R * 20, 5), R * 20, 342),
)


def contents(files):
    return files if isinstance(files, dict) else {"f": files} if files is not None else {}


def write(path, data, time):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    os.utime(path, (time, time))


def make(top, case):
    os.mkdir(f"{top}/src")
    os.mkdir(f"{top}/dst")
    for name, data in contents(case.source).items():
        write(f"{top}/src/{name}", data, NEW)
    for name, data in contents(case.before).items():
        write(f"{top}/dst/{name}", data, OLD)
    for name, data in case.also.items():
        write(f"{top}/{name}", data, NEW)


class Site:
    """A remote shell and a daemon of ours that take and give files below `place`."""

    def __init__(self, place, program=harness.HUAI):
        self.place = place
        self.program = program
        self.shell = harness.make_remote_shell(place)
        owner = "uid = root\ngid = root\n" if trees.IS_ROOT else ""
        self.daemon = harness.Daemon(program, f"use chroot = no\n{owner}[m]\npath = {place}\nread only = no\n", place)

    def fresh(self):
        return tempfile.mkdtemp(dir=self.place)

    def operands(self, way, top):
        at_shell = ["-e", self.shell, f"--rsync-path={self.program}"]
        under = os.path.relpath(top, self.place)
        return {"local": [f"{top}/src/", f"{top}/dst/"], "pull": [*at_shell, f"h:{top}/src/", f"{top}/dst/"],
                "push": [*at_shell, f"{top}/src/", f"h:{top}/dst/"], "daemon-push": [f"{top}/src/", self.daemon.url(f"m/{under}/dst/")],
                "daemon-pull": [self.daemon.url(f"m/{under}/src/"), f"{top}/dst/"]}[way]

    def run(self, way, options, top, program=harness.HUAI):
        return harness.run(program, "-rt", "--stats", *options, *self.operands(way, top), cwd=top)


@pytest.fixture(scope="module")
def site(top):
    site = Site(top)
    with site.daemon:
        yield site
    shutil.rmtree(top)


def blocks(result):
    assert result.code == 0, result.text
    found = LINE.findall(result.stdout)
    assert len(found) == 1, result.text
    return int(found[0].replace(b",", b""))


def check_result(case, top):
    for name, data in contents(case.source).items():
        with open(f"{top}/dst/{name}", "rb") as file:
            assert file.read() == data, name


def count_by_replay(site, case, top):
    """Written by a run into an equal destination."""
    copy = site.fresh()
    make(copy, case)
    result = site.run("local", [*case.options.split(), f"--write-batch={top}/B"], copy)
    assert blocks(result) == case.count, result.text
    return harness.run(harness.HUAI, "-rt", "--stats", *case.options.split(), f"--read-batch={top}/B", f"{top}/dst/", cwd=top)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_blocks_of_every_kind_of_update(site, case):
    counts = {}
    # A replay of a listing or a dry run has nothing to read.
    for way in WAYS if case.name not in ("dry-run", "listing") else WAYS[:-1]:
        top = site.fresh()
        make(top, case)
        result = count_by_replay(site, case, top) if way == "replay" else site.run(way, case.options.split(), top)
        counts[way] = blocks(result)
        if case.name not in ("dry-run", "listing"):
            check_result(case, top)
    assert counts == dict.fromkeys(counts, case.count)


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a device")
@pytest.mark.parametrize("way", ["local", "push", "daemon-pull"])
def test_blocks_of_a_device(site, way):
    """A null device of the test's own."""
    top = site.fresh()
    make(top, Case("device", "", R, None, 18))
    os.mknod(f"{top}/dst/f", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    assert blocks(site.run(way, ["--write-devices", "--no-W"], top)) == 18


@pytest.mark.parametrize("way", ["local", "pull", "push", "daemon-pull", "daemon-push"])
def test_nothing_is_written_for_a_batch_only(site, way):
    top = site.fresh()
    make(top, CASES[7])
    assert blocks(site.run(way, [f"--only-write-batch={top}/B"], top)) == 0
    assert blocks(harness.run(harness.HUAI, "--stats", f"--read-batch={top}/B", f"{top}/dst/")) == 18


@pytest.mark.parametrize("way", ["local", "pull", "push", "replay"])
def test_the_line_follows_the_protocol(site, way):
    """Its form and place at 33, and nothing of it at 32 (where stock has none) or without --stats."""
    top = site.fresh()
    make(top, Case("large", "", noise(5_000_000), None, 1221))
    for options, shown in (("--stats", b"1,221"), ("--stats -hh", b"1,221"), ("--stats --no-h", b"1221"), ("--info=stats2", b"1,221"),
                           ("--stats --protocol=32", None), ("--stats --protocol=29", None), ("-vvv", None)):
        shutil.rmtree(f"{top}/dst")
        operands = site.operands(way if way != "replay" else "local", top)
        log = f"{top}/log"
        words = ["-rt", *options.split()]
        if way == "replay":
            protocol = [word for word in words if word.startswith("--protocol")]
            assert harness.run(harness.HUAI, "-rt", *protocol, f"--only-write-batch={top}/B", *operands).code == 0
            operands = [f"--read-batch={top}/B", operands[-1]]
            words = [word for word in words if word not in protocol]
        result = harness.run(harness.HUAI, *words, f"--log-file={log}", *operands)
        assert result.code == 0, result.text
        assert (LINE.findall(result.stdout) or [None]) == [shown], result.text
        with open(log, "rb") as file:
            assert (b"] Number of 4 KiB logical blocks touched: " + (shown or b"")) in file.read() or shown is None
        os.remove(log)
