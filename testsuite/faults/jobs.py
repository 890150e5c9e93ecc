# SPDX-License-Identifier: GPL-3.0-or-later
"""The jobs that faults are let into: what is in their directory before, and which commands are run there.

A job works in a directory of its own: src/ is copied into dst/, an older state of it; basis/ is another old state.
"""
import dataclasses
import os
import stat
import struct

import harness
import trees

NEW, OLD = 1_600_000_000_000_000_000, 1_300_000_000_000_000_000
BIG = 70_000


@dataclasses.dataclass
class Job:
    """`way`: local, shell-pull, shell-push, daemon-pull, daemon-push, pipe-pull, pipe-push, or a name of STEPS. `pairing`: the
    client and the server, of which only ours gets faults. `module`: lines of the daemon's module."""

    name: str
    way: str
    options: tuple
    pairing: str = "ours/ours"
    module: str = ""
    daemon_options: tuple = ()
    sources: tuple = ("src/",)
    target: str = "dst/"
    steps: str = ""

    @property
    def has_listener(self):
        return self.way.startswith("daemon-")

    def has(self, *words):
        return any(option.startswith(word) for option in self.options for word in words)


# --- the trees ---

def acl(user):
    entries = [(0x01, 6, 0xffffffff), (0x02, 4, user), (0x04, 4, 0xffffffff), (0x10, 6, 0xffffffff), (0x20, 4, 0xffffffff)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def with_attributes(path, user):
    os.setxattr(path, "user.note", b"a note of %d bytes" % user * 3)
    os.setxattr(path, "system.posix_acl_access", acl(user))


def make_source(top):
    for name in ("d/e", "empty", "type"):
        os.makedirs(f"{top}/{name}")
    trees.write(f"{top}/big", trees.noise(BIG, 1), 0o644, NEW)
    trees.write(f"{top}/changed", b"a new state\n" * 100, 0o600, NEW + 1)
    trees.write(f"{top}/same", b"it stays\n", 0o644, NEW)
    trees.write(f"{top}/mode", b"only the mode\n", 0o755, NEW)
    trees.write(f"{top}/d/new", b"not there yet\n" * 9, 0o644, NEW)
    trees.write(f"{top}/d/e/none", b"", 0o444, NEW)
    trees.write(f"{top}/d/grown.log", b"0123456789" * 300, 0o644, NEW)
    trees.write(f"{top}/type/file", b"below what was a file\n", 0o644, NEW)
    trees.write(f"{top}/retyped", b"was a directory\n", 0o644, NEW)
    trees.symlink("changed", f"{top}/link", NEW)
    os.link(f"{top}/changed", f"{top}/d/linked")
    os.mkfifo(f"{top}/d/fifo")
    trees.finish(f"{top}/d/fifo", 0o600, NEW)
    with_attributes(f"{top}/changed", 7)
    with_attributes(f"{top}/d", 8)
    trees.write(f"{top}/.rules", b"- *.tmp\n", 0o644, NEW)
    trees.set_directory_times(top, NEW)


def make_older(top):
    for name in ("d/e", "gone/below", "retyped"):
        os.makedirs(f"{top}/{name}")
    big = trees.noise(BIG, 1)
    trees.write(f"{top}/big", big[:20_000] + b"inserted" + big[25_000:50_000], 0o644, OLD)
    trees.write(f"{top}/changed", b"an old state\n" * 90, 0o640, OLD)
    trees.write(f"{top}/same", b"it stays\n", 0o644, NEW)
    trees.write(f"{top}/mode", b"only the mode\n", 0o644, NEW)
    trees.write(f"{top}/d/grown.log", b"0123456789" * 200, 0o644, OLD)
    trees.write(f"{top}/type", b"once a file\n", 0o644, OLD)
    trees.write(f"{top}/surplus", b"nobody has this\n", 0o644, OLD)
    trees.write(f"{top}/gone/below/file", b"nor this\n", 0o644, OLD)
    trees.write(f"{top}/d/linked", b"by itself\n", 0o644, OLD)
    trees.symlink("nowhere", f"{top}/link", OLD)
    with_attributes(f"{top}/changed", 9)
    trees.set_directory_times(top, OLD)


def make_basis(top):
    os.makedirs(f"{top}/d")
    trees.write(f"{top}/same", b"it stays\n", 0o644, NEW)
    trees.write(f"{top}/big", trees.noise(BIG, 1), 0o644, NEW)
    trees.write(f"{top}/changed", b"an old state\n" * 90, 0o640, OLD)
    trees.write(f"{top}/d/new", b"not there yet\n" * 9, 0o600, NEW)
    trees.set_directory_times(top, OLD)


def make(top):
    os.makedirs(top)
    for name in ("tmp", "log", "other"):
        os.mkdir(f"{top}/{name}")
    for name, maker in (("src", make_source), ("dst", make_older), ("basis", make_basis)):
        os.mkdir(f"{top}/{name}")
        maker(f"{top}/{name}")
    trees.write(f"{top}/names", b"big\nd/new\nd/e/\nlink\n", 0o644, OLD)
    os.chmod(f"{top}/tmp", 0o777)
    for name in ("tmp", "log", "other", "."):
        os.utime(f"{top}/{name}", ns=(OLD, OLD))


# --- the jobs ---

EVERYWHERE = """-a | -ai --delete | -a --delete-before | -a --delete-after --no-i-r | -ai --delete-delay -b --suffix=.old
    | -ab --backup-dir=.kept --delete --exclude=.kept | -aH --delete | -a --inplace --no-W | -a --partial --no-W | -a --partial-dir=.part
    | -a --delay-updates --delete | -aAXH --delete | -a --remove-source-files | -aS --fake-super -X | -az --no-W
    | -a --copy-dest=../basis | -a --link-dest=../basis --delete""".split("|")
ONE_WAY = """-rlt | -ac --delete | -aiR --files-from=names | -a --append --no-W | -aI --append-verify | -a --fuzzy --no-W --delete | -aT ../tmp
    | -a --fsync --delete-during | -an --delete -i | -a --existing --exclude=type | -a --ignore-existing -i --exclude=type --exclude=retyped | -a --chmod=F600,D700 | -a --compare-dest=../basis
    | -aF --filter=:_.rules --delete | -am --delete --force | -aL | -a --preallocate | -ai --stats | -avv --log-file=log/run
    | -a --inplace --partial --delete-delay --backup | -a --zc=zstd --cc=xxh64 -c --no-W | -a --numeric-ids --delete --no-i-r
    | -aX --inplace -H | -a --delay-updates --partial-dir=.part -b | -a --delete --max-size=2000 | -a --no-o --no-g --chown=3:4
    | -au --existing --delete-excluded --exclude=surplus | -a --link-dest=../basis -b --backup-dir=.kept | -a --copy-dest=../basis -X
    | -a --munge-links --safe-links | -aq --delete --ignore-errors | -a --progress --no-W""".split("|")
MODULE = "use chroot = no\n"
MODULES = {"daemon": MODULE, "daemon-chroot": "use chroot = yes\n", "daemon-open": MODULE,
           "daemon-nobody": "use chroot = yes\nuid = nobody\ngid = *\nfake super = yes\n",
           "daemon-log": "use chroot = no\ntransfer logging = yes\nmax connections = 3\nlock file = {place}/lock\n"
                         "early exec = true\npre-xfer exec = true\npost-xfer exec = true\n"}


def split(text):
    return tuple(word.replace("_", " ") if word.startswith("--filter") else word for word in text.split())


def remote_jobs(options, ways, pairings):
    for way in ways:
        transport, direction = way.rsplit("-", 1)
        for pairing in pairings:
            name = " ".join((way, *(() if pairing == "ours/ours" else (pairing,)), *options))
            if transport in ("shell", "pipe"):
                yield Job(name, way, options, pairing, MODULE)
            else:
                yield Job(name, f"daemon-{direction}", options, pairing, MODULES[transport],
                          ("--no-sandbox",) if transport == "daemon-open" else ())


PAIRINGS = ("ours/ours", "ours/stock", "stock/ours")
WAYS = ("shell-pull", "shell-push", "daemon-pull", "daemon-push")
MORE_WAYS = ("daemon-chroot-pull", "daemon-chroot-push", "daemon-open-push", "daemon-open-pull", "daemon-log-pull", "daemon-log-push",
             "daemon-nobody-push", "pipe-pull", "pipe-push")


def all_jobs():
    for text in (*EVERYWHERE, *ONE_WAY):
        options = split(text)
        yield Job(" ".join(("local", *options)), "local", options)
    for number, text in enumerate(EVERYWHERE):
        options = split(text)
        yield from remote_jobs(options, WAYS, ("ours/ours",))
        yield from remote_jobs(options, (WAYS[number % 4],), ("ours/stock",))
        yield from remote_jobs(options, (WAYS[(number + 1) % 4],), ("stock/ours",))
        yield from remote_jobs(options, (MORE_WAYS[number % 9],), ("ours/ours",))
    for number, text in enumerate(ONE_WAY):
        yield from remote_jobs(split(text), (WAYS[number % 4],), (PAIRINGS[number % 3],))
    for name, module, options in STARTS:
        yield Job(name, "start", (), "stock/ours", module, options)
    for name, steps in STEPS.items():
        yield Job(name, "steps", (), steps=steps)


# A daemon that is started, serves a stock client, and is ended.
STARTS = (("start", MODULE, ()), ("start --no-sandbox", MODULE, ("--no-sandbox",)), ("start chroot", MODULES["daemon-chroot"], ()),
          ("start log", MODULES["daemon-log"], ()))


# Commands, one a line; the words after "stock" are run by stock rsync, without faults.
STEPS = {
    "batch": "-a --write-batch=batch src/ other/\n-a --read-batch=batch tmp/",
    "batch only": "-a --no-W --only-write-batch=batch --exclude=retyped src/ dst/\n-a --exclude=retyped --read-batch=batch dst/",
    "batch delete": "-aH --delete --no-W --write-batch=batch src/ dst/",
    "batch of stock": "stock -a --no-W --only-write-batch=batch src/ dst/\n-a --read-batch=batch dst/",
    "attr tree": "-aH --delete --only-send-attrs src/ other/",
    "attr tree again": "-aH --only-send-attrs src/ other/\n-aH --delete --only-send-attrs basis/ other/",
    "snapshot": "-aH --attr-snapshot=snap src/\n--attr-list snap",
    "snapshot digests": "-aH --attr-snapshot=snap --attr-digests=md5,xxh128 src/\n--attr-verify snap src/",
    "snapshot refresh": "-aH --attr-snapshot=snap src/\n-aH --attr-refresh=dirs --attr-snapshot=snap src/\n--attr-list snap",
    "snapshot and tree": "-aH --attr-snapshot=snap src/\n--attr-to-tree other/ --attr-snapshot=snap",
    "snapshot from tree": "-aH --only-send-attrs src/ other/\n--attr-from-tree other/ src/ --attr-snapshot=snap\n--attr-list snap",
    "snapshot of dest": "-aH --delete --attr-snapshot=snap src/ dst/\n--attr-list snap",
    "snapshot diff": "-aH --attr-snapshot=one src/\n-aH --attr-snapshot=two dst/\n--attr-diff one two",
    "listing": "--list-only -r src/",
    "one file": "-a src/big dst/big",
    "one file new": "-a src/big other/named",
    "many operands": "-aR src/./d src/big names dst/",
    "mkpath": "-a --mkpath src/d/ other/one/two/three/",
    "moved twice": "-a --remove-source-files src/d/ other/\n-a --delete src/ dst/",
}


def find(name):
    return next(job for job in all_jobs() if job.name == name)


def commands(job, site):
    """The commands of a job: (words, are faults let in)."""
    if job.steps:
        for line in job.steps.split("\n"):
            words = line.split()
            yield [harness.STOCK, *words[1:]] if words[0] == "stock" else [site.program, *words]
        return
    client, server = (site.program if end == "ours" else harness.STOCK for end in job.pairing.split("/"))
    options = list(job.options)
    if job.way == "local":
        yield [client, *options, *job.sources, job.target]
        return
    transport, direction = job.way.rsplit("-", 1)
    if transport == "shell":
        way_there, remote = ["-e", site.shell, f"--rsync-path={server}"], f"h:{site.work}/"
    elif transport == "pipe":
        way_there, remote = ["-e", site.shell, f"--rsync-path={server} --config={site.config(job)}"], "h::m/"
    else:
        way_there, remote = [], site.daemon(job).url("m/")
    if direction == "pull":
        yield [client, *options, *way_there, *(remote + source for source in job.sources), job.target]
    else:
        yield [client, *options, *way_there, *job.sources, remote + job.target]


# --- what is there ---

def describe(top):
    """{path: (kind, content, attributes)}; a file's content as it is, as none is large."""
    result, links = {}, {}

    def visit(directory, prefix):
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
            path, info = prefix + entry.name, entry.stat(follow_symlinks=False)
            kind, content = stat.S_IFMT(info.st_mode), None
            attributes = {"mode": stat.S_IMODE(info.st_mode), "owner": (info.st_uid, info.st_gid), "mtime": info.st_mtime_ns}
            if kind == stat.S_IFREG:
                with open(entry.path, "rb") as file:
                    content = file.read()
            elif kind == stat.S_IFLNK:
                content = os.fsencode(os.readlink(entry.path))
            if kind != stat.S_IFLNK:
                for name in os.listxattr(entry.path):
                    attributes["xattr " + name] = os.getxattr(entry.path, name)
            if kind != stat.S_IFDIR and info.st_nlink > 1:
                attributes["links"] = links.setdefault(info.st_ino, path)
            result[path] = (kind, content, attributes)
            if kind == stat.S_IFDIR:
                visit(entry.path, path + "/")

    visit(top, "")
    return result


def put_back(top, tree):
    """Make what describe() has seen, in a directory that is not there."""
    os.mkdir(top)
    for path, (kind, content, attributes) in tree.items():
        full = f"{top}/{path}"
        first = attributes.get("links", path)
        if first != path:
            os.link(f"{top}/{first}", full, follow_symlinks=False)
        elif kind == stat.S_IFDIR:
            os.mkdir(full)
        elif kind == stat.S_IFREG:
            with open(full, "wb") as file:
                file.write(content)
        elif kind == stat.S_IFLNK:
            os.symlink(content, full)
        else:
            os.mknod(full, kind | 0o600)
    for path, (kind, _, attributes) in reversed(tree.items()):
        full = f"{top}/{path}"
        os.chown(full, *attributes["owner"], follow_symlinks=False)
        if kind != stat.S_IFLNK:
            os.chmod(full, attributes["mode"])
            for name, value in attributes.items():
                if name.startswith("xattr "):
                    os.setxattr(full, name[6:], value)
        os.utime(full, ns=(attributes["mtime"], attributes["mtime"]), follow_symlinks=False)
