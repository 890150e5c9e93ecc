# SPDX-License-Identifier: GPL-3.0-or-later
"""One table of jobs, with stock and ours as the two ends of the connection in every pairing; nobody may be able to tell.

Each combination of job and way (remote shell or daemon, pull or push) runs with stock at both ends, and then with ours as the
client, as the server and as both. What arrives, what is left of the source, exit code and output have to agree. To look at one:
    pytest testsuite/system/whole/test_pairings.py -k 'backup and push-shell'
Every combination runs in one protocol, in turn; HUAI_PAIRINGS=full: in all of them.
"""
import concurrent.futures
import contextlib
import dataclasses
import difflib
import os
import re
import shutil
import subprocess
import time

import pytest

import attribute_trees
import harness
import receiver
import trees

PROTOCOLS = (27, 28, 29, 30, 31, 32)
WAYS = ("pull-shell", "push-shell", "pull-daemon", "push-daemon")
# Who is the client and who the server.
PAIRINGS = {"stock/stock": (harness.STOCK, harness.STOCK), "ours/stock": (harness.HUAI, harness.STOCK),
            "stock/ours": (harness.STOCK, harness.HUAI), "ours/ours": (harness.HUAI, harness.HUAI)}
LINK_GROUPS = re.compile(r"\b(?:d/h1|h2|d/e/h3|a/g\d|a/second\d|b/c/third\d|z\d)\b|[ /](?:b/sl2|sl)\b")
OLD = 1_300_000_000_000_000_000


@dataclasses.dataclass(frozen=True)
class Job:
    options: str
    shape: str = "mix"           # the source: one of SHAPES
    before: str = "old"          # the destination: nothing, old, same
    sources: tuple = ("",)       # below the source
    target: str = "dest/"
    since: int = 27
    upto: int = 32
    ways: tuple = WAYS
    own: bool = False            # the source is a copy that the run may change
    user: tuple = ()             # who runs it, with what there is already belonging to this user
    core: bool = False

    @property
    def name(self):
        sources = "+".join(self.sources) if self.sources != ("",) else ""
        words = [self.options, self.shape if self.shape != "mix" else "", self.before if self.before != "old" else "", sources,
                 self.target if self.target != "dest/" else "", "nobody" if self.user else ""]
        return re.sub(r"[^\w.,=*+/-]+", "_", " ".join(word for word in words if word))


def jobs(options, **how):
    return [Job(words, **how) for words in options]


NEW = {"before": "nothing"}
SAME = {"before": "same"}
SHELL = ("pull-shell", "push-shell")
NOT_TO_DAEMONS = (*SHELL, "pull-daemon")
NOT_FROM_DAEMONS = (*SHELL, "push-daemon")
JOBS = [
    # Everything, and what is left out.
    *jobs(["-aH", "-aHi", "-avvH --no-i-r", "-aiS", "-r", "-rlt --stats", "-rlptgoDi --size-only", "-aW", "-a --preallocate"], **NEW),
    *jobs(["-aHii --delete", "-avv", "-ai -I", "-aci", "-rci --cc=md5", "-ai --modify-window=2", "-niia", "-rltii -O -J", "-a --info=name2"], **SAME),
    *jobs(["-a --out-format=%n", "-av --out-format=%n", "-a --existing --out-format=%n"], upto=28),
    *jobs(["-aHi --delete", "-avH --delete --stats", "-a --delete --out-format=%i_%n%L_%l_%b_%M", "-aiu", "-ai --existing",
           "-ai --ignore-existing --exclude=kd --exclude=type", "-ai --existing --ignore-existing --delete --exclude=kd --exclude=type", "-ai --size-only", "-aci --delete",
           "-nvaH --delete", "-niaH --delete --stats", "-a --info=all2 -q --delete", "-avhh --delete --info=stats2", "-ai -x"]),
    Job("-aiH --delete", core=True), Job("-ai", shape="deep", core=True), Job("-aHvv --delete", shape="deep"),
    *jobs(["-a --delete --stats --no-i-r", "-ni --delete -a", "-ai --delete-after", "-ai --delete-delay"], shape="deep"),
    Job("-a --list-only --delete", core=True), Job("-rvv --list-only", target="dest/new/er/", **NEW),
    Job("-r --list-only", sources=("gone/",), ways=("pull-shell",)),
    # How files are made.
    *jobs(["-ai --inplace", "-ai --inplace --no-W --backup", "-ai --no-W -B 700", "-a --append -i", "-ai --append-verify",
           "-ai --inplace --delete -S", "-aiS", "-ai --partial", "-ai --partial-dir=.part", "-ai --partial-dir=.part --delete",
           "-ai --delay-updates --delete", "-aHi --delay-updates --delete-after", "-ai --delay-updates -b",
           "-ai --fsync", "-ai --preallocate --no-W", "-ai --whole-file"]),
    Job("-ai --append-verify --no-W --stats", core=True), Job("-ai --delay-updates --partial-dir=p --delete", core=True),
    # What is kept of what was there.
    *jobs(["-abi", "-abi --delete", "-abi --suffix=.bak --delete", "-abi --backup-dir=in --delete",
           "-abi --inplace", "-nabi --delete", "-abi --delete-excluded --exclude=*.log", "-aib --force",
           "-abi --delete-after --delay-updates", "-abiI --suffix=_old", "-abi --backup-dir=deep/er --suffix=.1"]),
    Job("-abHvv --delete", since=29),
    # To a stock daemon a place above the destination is one in it.
    *jobs(["-ai -b --backup-dir=../kept --delete", "-ayyi --link-dest=../other"], ways=NOT_TO_DAEMONS, since=29),
    Job("-abi --backup-dir=../kept --suffix=.b --delete", ways=NOT_TO_DAEMONS, core=True),
    # Other places to take files from.
    *jobs(["-ai --compare-dest=../basis", "-aHi --copy-dest=../basis", "-aHi --link-dest=../basis", "-aHii --link-dest=../basis",
           "-ai --copy-dest=../basis --copy-dest=../other", "-avv --link-dest=../other --link-dest=../basis",
           "-ai --compare-dest=../other --compare-dest=../basis", "-aci --link-dest=../basis",
           "-rlti --link-dest=../basis --chmod=F600", "-nai --copy-dest=../basis", "-ai --size-only --link-dest=../other",
           "-ai --copy-dest=../other --no-W --stats"], since=29, **NEW),
    *jobs(["-ai --link-dest=../basis --delete", "-aHi --copy-dest=../basis --delete", "-ai --compare-dest=../basis --delete",
           "-aib --link-dest=../basis"], since=29),
    Job("-aHi --link-dest=../basis --delete", since=30, core=True), Job("-ai --link-dest=../none", ways=SHELL, **NEW),
    *jobs(["-ayi --delete", "-ay --no-W --stats", "-ay --delete-before -i", "-nayi"], since=29),
    # Deletion.
    *jobs(["-ai --del", "-aHi --delete-before", "-ai --delete-during --force", "-ai --delete-delay --stats", "-aHi --delete-after",
           "-ai --delete --exclude=surplus", "-ai --delete-excluded --exclude=d/", "-ai --delete --filter=P_*.gone",
           "-ai --max-delete=0 --delete-before", "-avv --delete --max-delete=-1", "-ai --force", "-ai --delete --ignore-errors", "-dlti --delete",
           "-ai --delete --max-size=1000", "-ai --delete --exclude=real"]),
    *jobs(["-ai --delete --max-delete=2", "-ai --delete-after --max-delete=1 --no-i-r", "-nai --delete-after --max-delete=2"]),
    Job("-ai --delete-delay --max-delete=3 --no-i-r", core=True), Job("-ai --delete-before --max-delete=5", upto=28),
    *jobs(["-avv --delete-before", "-navv --delete-after"], sources=("d", "kd", "f1")),
    Job("-avvR --delete-before", sources=("./d/e", "./kd"), since=30),
    # Owners, modes and times.
    *jobs(["-ai --chown=5:6", "-ai --usermap=0:7,1000:8", "-ai --groupmap=*:9", "-ai --usermap=*:root --numeric-ids",
           "-ai --chmod=D700,Fgo-w", "-rlti --chmod=u+x", "-rlEi", "-rltpi", "-rlti --perms --chmod=F0444 --inplace", "-ai --no-p --no-o",
           "-ai --super", "-ai --no-super", "-ai -O", "-aiJ", "-ai --numeric-ids", "-rptgi"]),
    *jobs(["-aUi", "-aUUi"], since=30, **NEW), *jobs(["-aUii"], since=30, **SAME),
    Job("-ai --chown=5:6 --chmod=D2750,F640", core=True), Job("-a --usermap=*:2 --no-o", since=30, **NEW),
    *jobs(["-aHi", "-ai --delete --no-i-r", "-abi --chmod=u-w", "-rlti --chmod=D500"], user=receiver.NOBODY, ways=SHELL),
    # Extended attributes and ACLs.
    *jobs(["-aX", "-aXi", "-aA -i", "-aHAXi", "-rltpX", "-rltA", "-aXXi --super"], shape="attrs", since=30, **NEW),
    *jobs(["-aXi", "-aAi --delete", "-aHAXi --delete", "-aXi --link-dest=../basis", "-aAXi --inplace", "-abAXi --delete", "-nAXai",
           "-aXvv --numeric-ids", "-rltAXi", "-aAXi --copy-dest=../basis --delay-updates"],
          shape="attrs", since=30),
    Job("-aAX --chmod=go-w", shape="attrs", since=30, core=True),
    *jobs(["-aAXii --delete", "-ciaAX", "-aAXi --chmod=F600"], shape="attrs", since=30, **SAME),
    Job("-aAXHi --delete", shape="attrs", since=30, core=True),
    Job("-ai", shape="attrs"),
    # Directories without files.
    *jobs(["-ami", "-am --delete -i", "-aim --exclude=x*", "-aimb --delete", "-nami --delete", "-aim --include=*/ --include=x1 --exclude=*"],
          shape="deep", since=29),
    Job("-ami --delete", shape="mix", since=29, core=True),
    # Links and devices. Under -K ours sets the time of the directory, and stock that of the link to it.
    *jobs(["-ai --safe-links", "-ai --munge-links", "-ai --copy-unsafe-links", "-rtLi", "-aki", "-aKOi --delete", "-rti", "-avv --safe-links",
           "-aKOvv --no-i-r", "-aKOi --delete-after", "-ai --no-D", "-rlti --specials", "-rlti --devices", "-ai --drop-D"]),
    *jobs(["-rti --copy-devices", "-ai --copy-devices --no-W"], sources=("f1", "dev"), since=29, ways=SHELL),
    Job("-aKOi --no-W", core=True), Job("-ai --munge-links --safe-links", **NEW),
    *jobs(["-aHi --no-W", "-aHi --inplace", "-aHci", "-aHIi", "-aH --stats"], shape="hard", since=30),
    Job("-aHi --delete", shape="hard", since=30, core=True), Job("-aHvvi --no-i-r", shape="hard", since=30), Job("-aHii", shape="hard", **SAME),
    # Names from files, arguments. Stock's daemon finds no listed files below a module that is not the root of its chroot.
    *jobs(["-ai --files-from={lists}/names", "-ari --files-from={lists}/names --delete", "-0ai --files-from={lists}/names0",
           "-ai --files-from=:{remote_lists}/names", "-ai --no-R --files-from={lists}/names", "-ni --files-from={lists}/names",
           "-ai --files-from={lists}/names --ignore-missing-args", "-ai --files-from={lists}/names --delete-missing-args"],
          ways=NOT_FROM_DAEMONS),
    Job("-0ai --files-from=:{remote_lists}/names0", ways=NOT_FROM_DAEMONS, core=True),
    Job("-ari --files-from={lists}/dots", since=30),
    Job("-ai --no-implied-dirs --files-from={lists}/dots", since=30, ways=NOT_FROM_DAEMONS),  # of which stock's takes the contents for gone
    *jobs(["-ai", "-ai --ignore-missing-args", "-ai --delete-missing-args", "-ai --delete", "-nai --delete-missing-args"],
          sources=("f1", "gone", "d/")),
    *jobs(["-aRi", "-aRi --delete", "-aRi --no-implied-dirs"], sources=("./d/e", "./f1"), since=30),
    *jobs(["-aR", "-dR", "-aR --no-implied-dirs"], sources=("./d/e/",), target="dest/new", since=30),
    Job("-aR", sources=("./d/e/z.log",), target="dest", core=True, **NEW),
    *jobs(["-ai", "-abi", "-ai --partial-dir=.p"], sources=("big",), target="dest/big"),
    *jobs(["-ai", "-nai", "-ai --mkpath"], sources=("f1",), target="dest/new/er", ways=NOT_TO_DAEMONS),
    *jobs(["-ai --mkpath", "-nvai --mkpath"], target="dest/new/er/", **NEW),
    *jobs(["-ai", "-avv"], sources=("d", "f1"), target="dest/f1"), Job("-a --out-format=%f", sources=("./d/./e", ".//f1")),
    *jobs(["-ai --remove-source-files", "-avH --remove-source-files --delay-updates", "-aci --remove-source-files",
           "-nai --remove-source-files"], own=True, since=29),
    Job("-aL --remove-source-files", sources=("l", "lw", "d/e"), own=True, since=29),
    Job("-aiu --remove-source-files", own=True, since=29, core=True),
    # Compression, digests, charsets.
    *jobs(["-azi", "-azi --zc=zlib", "-azi --zc=zlibx --zl=9", "-azi --zc=lz4 --stats", "-azi --zc=zstd --inplace", "-zzai",
           "-azi --skip-compress=txt", "-ai --cc=sha1", "-azci --cc=xxh64", "-azSi --delete", "-ai --checksum-seed=3", "-as"]),
    *jobs(["-azi", "-az --stats"], **NEW), Job("-azi --delay-updates --no-W", core=True),
    *jobs(["-ai --iconv=utf8,latin1", "-a8i --iconv=latin1,utf8", "-ai --iconv=."], shape="names", ways=SHELL),
    Job("-a8i --iconv=latin1,utf8 --delete", shape="names", ways=SHELL[:1]),
    *jobs(["-ai", "-a8i --delete"], shape="names"),
    # Filters at the receiving end.
    *jobs(["-ai --delete -F", "-aFFi --delete", "-aCi --delete"], since=29), Job("-ai --delete --filter=R_surplus --exclude=*"),
    Job("-ai --delete --filter=:_.rules", since=29),
    *jobs(["-ai --exclude-from={lists}/rules --from0 --include-from={lists}/rules0", "-0ai --exclude-from={lists}/rules0 --no-from0"], since=29),
    Job("-ai --max-size=5000 --min-size=10 --delete"), Job("-aiq --outbuf=L"), Job("-ai --bwlimit=90m --timeout=30"),
]


# --- the trees ---

def fill(root, files):
    for number, (name, content) in enumerate(files.items()):
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        trees.write(path, content, (0o644, 0o755, 0o600)[number % 3], 1_600_000_000_000_000_000 + number * 1_000_000_007,
                    (0, 1000, 65534)[number % 3:][:1] * 2)


def make_mix(root):
    fill(root, {"f1": b"one\n", "big": trees.noise(120_000, 1), "words.txt": b"".join(b"line %d\n" % n for n in range(6000)),
                "grown.log": trees.noise(9000, 2), "empty": b"", "d/x": b"x" * 700, "d/y": b"y", "d/e/z.log": b"z" * 3000, "kd/in": b"in",
                "type/was-a-file": b"now below a directory", "was-a-dir": b"a file", "sp ace\nline": b"odd", "d/h1": b"linked" * 100,
                ".rsync-filter": b"- *.log\n", "d/.rules": b"- y\nP old\n", "d/core": b"core", "newer": b"not newer", "held": b"held"})
    os.makedirs(os.path.join(root, "e1/e2"))
    for name in ("h2", "d/e/h3"):
        os.link(os.path.join(root, "d/h1"), os.path.join(root, name))
    trees.sparse(os.path.join(root, "holes"), 300_000, [(100_000, b"data")])
    for name, target in (("l", "f1"), ("up", "../../outside"), ("abs", "/no-such"), ("dl", "d"), ("d/up", "../f1"), ("lw", "f1")):
        trees.symlink(target, os.path.join(root, name))
    os.mkfifo(os.path.join(root, "pipe"))
    trees.finish(os.path.join(root, "pipe"), 0o640, OLD)
    if trees.IS_ROOT:
        os.mknod(os.path.join(root, "dev"), 0o020666, os.makedev(1, 3))
        trees.finish(os.path.join(root, "dev"), 0o660, OLD)
    else:
        trees.write(os.path.join(root, "dev"), b"no device")
    os.chmod(os.path.join(root, "d/e"), 0o2750)
    trees.set_directory_times(root)


def age_mix(root):
    at = lambda name: os.path.join(root, name)
    for name in ("f1", "d/x", "d/e/h3", "type/was-a-file", "was-a-dir", "l", "lw", "pipe"):
        os.unlink(at(name))
    os.rmdir(at("type"))
    big = trees.noise(120_000, 1)
    trees.write(at("big"), big[:40_000] + b"inserted" + big[50_000:], 0o640, OLD)
    trees.write(at("words.txt"), b"".join(b"line %d\n" % n for n in range(0, 6000, 2)), 0o644, OLD)
    trees.write(at("grown.log"), trees.noise(9000, 2)[:4000], 0o644, OLD)
    trees.write(at("newer"), b"newer by far", 0o644, 1_700_000_000_000_000_000)
    trees.write(at("type"), b"a file yet", 0o644, OLD)
    os.mkdir(at("was-a-dir"))
    trees.write(at("was-a-dir/in"), b"in", 0o644, OLD)
    os.mkdir(at("lw"))
    trees.symlink("elsewhere", at("l"))
    trees.write(at("moved"), big, 0o644, OLD)
    os.rename(at("kd"), at("real"))
    trees.symlink("real", at("kd"))
    for name in ("surplus", "a.gone", "d/old", "gone/deep/er", "gone/x", "d/left.log"):
        os.makedirs(os.path.dirname(at(name)), exist_ok=True)
        trees.write(at(name), name.encode(), 0o644, OLD)
    os.chmod(at("d/y"), 0o711)
    os.chmod(at("d"), 0o700)
    os.utime(at("held"), ns=(OLD, OLD))
    trees.write(at("holes"), b"\1" * 200_000, 0o644, OLD)
    for name in ("h2", "d/h1"):
        os.unlink(at(name))
        trees.write(at(name), b"linked" * 100, 0o644, OLD)
    trees.set_directory_times(root, OLD)


def make_deep(root):
    for number in range(24):
        fill(root, {f"n{number % 5}/m{number % 3}/k{number}/x{number % 4}": b"%d" % number})
        os.makedirs(os.path.join(root, f"bare{number % 6}/b{number}"))
    trees.set_directory_times(root)


def age_deep(root):
    shutil.rmtree(os.path.join(root, "n1"))
    for number in range(0, 24, 5):
        fill(root, {f"n0/m{number % 3}/k{number}/old": b"old", f"bare{number % 6}/b{number}/not-bare": b"", f"n7/x{number}": b"gone"})
    trees.set_directory_times(root, OLD)


def make_hard(root):
    for group in range(3):
        fill(root, {f"a/g{group}": trees.noise(3000 + group, group)})
        for name in ("a/second", "b/c/third", "z"):
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            os.link(os.path.join(root, f"a/g{group}"), os.path.join(root, f"{name}{group}"))
    trees.symlink("x", os.path.join(root, "sl"))
    os.link(os.path.join(root, "sl"), os.path.join(root, "b/sl2"), follow_symlinks=False)
    trees.set_directory_times(root)


def age_hard(root):
    at = lambda name: os.path.join(root, name)
    os.unlink(at("a/g0"))
    for name in ("a/second1", "z2"):
        os.unlink(at(name))
        trees.write(at(name), trees.noise(3000, 1)[:2500], 0o644, OLD)
    os.link(at("z0"), at("wrong"))
    os.unlink(at("b/sl2"))
    trees.set_directory_times(root, OLD)


def make_names(root):
    fill(root, {"plain": b"p", "caf\u00e9": b"c", "d\u00e9/\u00e0": b"d", "d\u00e9/x": b"x"})
    trees.symlink("caf\u00e9", os.path.join(root, "l\u00e9"))
    trees.set_directory_times(root)


def age_names(root):
    os.unlink(os.path.join(root, "caf\u00e9"))
    fill(root, {"gon\u00e9": b"", "d\u00e9/\u00e0": b"changed"})
    with open(os.path.join(os.fsencode(root), b"latin-\xe9"), "wb"):
        pass
    trees.set_directory_times(root, OLD)


SHAPES = {"mix": (make_mix, age_mix), "deep": (make_deep, age_deep), "hard": (make_hard, age_hard), "names": (make_names, age_names),
          "attrs": (attribute_trees.build, attribute_trees.make_older)}


# --- the runs ---

class Site:
    """The sources, the prepared destinations, and a daemon of each kind that serves and takes all of them."""

    def __init__(self, top):
        self.top = top
        for shape, (make, age) in SHAPES.items():
            source = os.path.join(top, "src", shape)
            os.makedirs(source)
            make(source)
            for state in ("same", "old"):
                os.makedirs(os.path.join(top, state), exist_ok=True)
                subprocess.run(["cp", "-a", source, os.path.join(top, state, shape)], check=True)
            age(os.path.join(top, "old", shape))
        self.lists = os.path.join(top, "lists")
        os.mkdir(self.lists)
        for name, words in (("names", "f1\n#no\nd/\nd/e/z.log\nno-such\n/kd/in\nsurplus\n\n"), ("names0", "f1\0sp ace\nline\0d/e/h3\0"),
                            ("dots", "./d/./e/\n"), ("rules", "kd\n*.log\n"), ("rules0", "kd\0*.log\0")):
            trees.write(os.path.join(self.lists, name), words.encode())
        self.shell = harness.make_remote_shell(top)
        root = "uid = 0\ngid = 0\n" if trees.IS_ROOT else ""
        self.config = f"use chroot = no\nmunge symlinks = no\ntimeout = 600\n{root}[m]\npath = {top}\nread only = no\n"
        os.mkdir(os.path.join(top, "jobs"))
        os.chmod(os.path.join(top, "jobs"), 0o777)

    def words(self, job, way, client, server, work, protocol):
        direction, transport = way.split("-")
        source = os.path.join(work, "own") if job.own else os.path.join(self.top, "src", job.shape)
        remote = (lambda path: self.daemons[server].url("m" + path[len(self.top):])) if transport == "daemon" else "host:".__add__
        values = {"lists": self.lists, "remote_lists": self.lists if transport == "shell" else "/lists"}
        options = [re.sub("_", " ", word.format(**values), count=1) if "--filter" in word else word.format(**values)
                   for word in job.options.split()]
        sources = [f"{source}/{path}" for path in job.sources]
        if direction == "pull":
            operands = [*map(remote, sources), job.target]
        else:
            operands = [*sources, remote(f"{work}/{job.target}")]
        way_there = ["-e", self.shell, f"--rsync-path={server}"] if transport == "shell" else []
        return [*job.user, client, *options, f"--protocol={protocol}", *way_there, *operands]

    def prepare(self, job, work):
        os.mkdir(work)
        copies = [(os.path.join(self.top, job.before, job.shape), "dest")] if job.before != "nothing" else []
        copies += [(os.path.join(self.top, "src", job.shape), "own")] if job.own else []
        if "-dest=" in job.options:
            copies += [(os.path.join(self.top, "same", job.shape), "basis"), (os.path.join(self.top, "old", job.shape), "other")]
        for source, name in copies:
            subprocess.run(["cp", "-a", source, os.path.join(work, name)], check=True)
        if job.user and trees.IS_ROOT:
            subprocess.run(["chown", "-R", "65534:65534", work], check=True)
        os.utime(work, ns=(OLD, OLD))

    def run(self, job, way, pairing, work, protocol):
        self.prepare(job, work)
        since = (int(time.time()) - 1) * 1_000_000_000  # what has no time of its own is sent with the full second
        result = harness.run(*self.words(job, way, *PAIRINGS[pairing], work, protocol), cwd=work)
        tree = self.describe(work, since, job)
        shutil.rmtree(work)
        return result, tree

    def describe(self, work, since, job):
        return describe(work, since, job)


def describe(work, since, job):
    tree = trees.describe(work, since_ns=since, atimes="U" in job.options.split()[0])
    for path, entry in tree.items():
        full = os.path.normpath(os.path.join(os.fsencode(work), path))
        if job.shape == "attrs":
            for name in os.listxattr(full, follow_symlinks=False):
                entry["xattr " + name] = os.getxattr(full, name, follow_symlinks=False)
        if path.endswith(b"/holes"):
            entry["blocks"] = os.lstat(full).st_blocks * 512 > 150_000
    return tree


# What counts hash collisions, and what only one of two servers still gets to say when the other end has left.
UNSTABLE = ((rb"hash_hits=\d+", b"hash_hits"), (rb"^rsync: connection unexpectedly closed .*\n", b""),
            (rb"^rsync error: error in (?:rsync protocol data stream|socket IO) \(code 1[02]\).*\n", b""),
            (rb"^rsync: \[\w+\] write error: Broken pipe .*\n", b""))


def lines_of(output, job):
    output = harness.normalise(output, (harness.HUAI, "PROGRAM"), (harness.STOCK, "PROGRAM"))
    for pattern, replacement in UNSTABLE:
        output = re.sub(pattern, replacement, output, flags=re.M)
    lines = os.fsdecode(receiver.TEMP_NAME.sub(rb"/\1" + b'"', output)).split("\n")
    if "H" in job.options.split()[0]:
        # Which name of a group gets the content, and so which names become links to it, is the receiver's own business.
        others = [line for line in lines if not LINK_GROUPS.search(line)]
        lines = [*others, f"{len(lines) - len(others)} names of hard-link groups"]
    return sorted(lines)


def report(job, expected, got):
    """What differs between two runs, as lines."""
    (stock, stock_tree), (result, tree) = expected, got
    lines = [f"exit code: expected {stock.code}, got {result.code}"] if stock.code != result.code else []
    lines += trees.differences(stock_tree, tree)[:12]
    for stream in ("stdout", "stderr"):
        left, right = (lines_of(getattr(which, stream), job) for which in (stock, result))
        lines += list(difflib.unified_diff(left, right, f"expected {stream}", f"got {stream}", n=0, lineterm=""))[:24]
    return lines


def compare(site, number, job, way, protocol):
    work = os.path.join(site.top, "jobs", str(number))
    expected, *others = [site.run(job, way, pairing, work, protocol) for pairing in PAIRINGS]
    found = []
    for pairing, got in zip(list(PAIRINGS)[1:], others):
        lines = report(job, expected, got)
        if lines:
            found += [f"--- {pairing}:", *lines]
    return "\n".join([*found, expected[0].text[-1500:]]) if found else ""


def combinations():
    everything = os.environ.get("HUAI_PAIRINGS") == "full"
    turns = (32, 31, 32, 30, 32, 29, 32, 28, 27)
    for number, job in enumerate(JOBS):
        ways = [way for way in job.ways if way in WAYS[number % 2::2] or everything or job.core or len(job.ways) < len(WAYS)]
        for turn, way in enumerate(ways):
            for protocol in PROTOCOLS if everything else (max(turns[(number + 2 * turn) % len(turns)], job.since),):
                if job.since <= protocol <= job.upto:
                    marks = [pytest.mark.core] if job.core and turn == number % len(ways) else []
                    yield pytest.param(job, way, protocol, id=f"{job.name}-{way}-{protocol}", marks=marks)


@contextlib.contextmanager
def served_site(kind, top):
    os.mkdir(top)
    result = kind(top)
    for name in ("stock", "ours"):
        os.mkdir(os.path.join(top, name))
    with harness.Daemon(harness.STOCK, result.config, os.path.join(top, "stock")) as stock, \
            harness.Daemon(harness.HUAI, result.config, os.path.join(top, "ours")) as ours:
        result.daemons = {harness.STOCK: stock, harness.HUAI: ours}
        yield result


@contextlib.contextmanager
def running_ahead(request, test, report, threads=0):
    """{number: its report, to be waited for} of the selected tests of that name, which run ahead in a few threads."""
    selected = [item.callspec.params["number"] for item in request.session.items if item.originalname == test]
    executor = concurrent.futures.ThreadPoolExecutor(threads or (os.cpu_count() or 1) + 1)
    yield {number: executor.submit(report, number) for number in selected}
    executor.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def site(workspace):
    with served_site(Site, os.path.join(workspace, "pairings")) as result:
        yield result


@pytest.fixture(scope="module")
def reports(request, site):
    """{test id: its report, to be waited for}. All selected ones run ahead in a few threads."""
    selected = [item.callspec for item in request.session.items if item.originalname == "test_all_pairings_agree"]
    executor = concurrent.futures.ThreadPoolExecutor((os.cpu_count() or 1) + 1)
    yield {spec.id: executor.submit(compare, site, number, **spec.params) for number, spec in enumerate(selected)}
    executor.shutdown(cancel_futures=True)


@pytest.mark.parametrize("job, way, protocol", combinations())
def test_all_pairings_agree(request, reports, job, way, protocol):
    difference = reports[request.node.callspec.id].result()
    if difference:
        pytest.fail(difference, pytrace=False)
