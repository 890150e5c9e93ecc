# SPDX-License-Identifier: GPL-3.0-or-later
"""Twenty clients pull in a loop while the mirror changes and its snapshot is replaced every second.

Every session has to end well, or to name files that really went away while it ran; in the end everybody has the mirror.
HUAI_LOAD_SECONDS=180 is the full length. The figures are printed (pytest -s).
"""
import collections
import itertools
import os
import random
import re
import shutil
import stat
import threading
import time

import pytest

import harness
import snapshots
import trees

SECONDS = float(os.environ.get("HUAI_LOAD_SECONDS", "15"))
CLIENTS = 20
CHANGES_PER_SECOND = 50
DIRECTORIES, FILES = 50, 25
SETTLED = 2.1  # seconds after which a refresh believes an unchanged directory
OPTIONS = ("-aH --delete", "-r --list-only", "-aHc --delete", "-aH --delete --no-i-r",
           "-a --delete-after --exclude=*.log --exclude=/pool/1*/", "-aHz --delete-delay --include=*/ --exclude=*7", "-aHc --list-only")
PROTOCOLS = (27, 28, 29, 30, 31, 32)
MAKE = ("-aH", "--only-send-attrs", "--attr-digests=xxh128,md5")


def content(version):
    """What a file holds in this version: its size is like no other's, so that nobody takes an old one for a new one."""
    line = b"version %d of some file\n" % version
    size = version + (200_000 if version % 50 == 0 else 100)
    return (line * (size // len(line) + 1))[:size]


def is_whole(data):
    return data == content(int(data.split(b" ", 2)[1]))


class Mirror:
    """A tree that is changed as rsync does it: new files are renamed into place. What goes away is noted with its time.

    Hard links come and go, but each file that has some keeps its first name: if all of them are gone, a stock client waits for
    ever, for a stock daemon as well.
    """

    def __init__(self, root):
        self.root = root
        self.random = random.Random(1)
        self.versions = itertools.count(1)
        self.dirs, self.files = ["."], []
        self.linked = []  # files that stay, and to which others are linked
        self.gone = collections.defaultdict(list)  # path: [(earliest, latest time)]
        self.pending = None  # paths that will be gone from the mirror itself later
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        os.mkdir(root)
        for number in range(DIRECTORIES):
            self.new_directory(f"pool/{number}" if number % 5 else f"dists/{number}/deeper", FILES)
        self.linked = [name for name in self.files if name.endswith("package1")]
        self.files = [name for name in self.files if name not in self.linked]
        for _ in range(100):
            self.link()

    def note(self, path, before):
        path = os.path.normpath(path)
        if self.pending is None:
            self.gone[path].append((before, time.monotonic()))
        else:
            self.pending.append(path)

    def put(self, path, make):
        """Make something under another name beside `path` and rename it there."""
        temp = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{self.random.randrange(10 ** 6):06}")
        full, there = os.path.join(self.root, temp), os.path.join(self.root, path)
        make(full)
        before, existed = time.monotonic(), os.path.lexists(there)
        os.rename(full, there)
        self.note(temp, before)
        if existed:
            self.note(path, before)
        else:
            self.files.append(path)

    def write(self, path):
        version = next(self.versions)
        self.put(path, lambda full: trees.write(full, content(version), self.random.choice((0o644, 0o664, 0o755)),
                                                (1_600_000_000 + version) * 10 ** 9 + self.random.randrange(10 ** 9)))

    def some_name(self):
        return os.path.join(self.random.choice(self.dirs), f"file{self.random.randrange(10 ** 6)}.{self.random.choice(('deb', 'log'))}")

    def new_directory(self, path, files):
        for parent in reversed([path, *itertools.takewhile(bool, iter_parents(path))]):
            if parent not in self.dirs:
                os.mkdir(os.path.join(self.root, parent))
                self.dirs.append(parent)
        for number in range(files):
            self.write(f"{path}/package{number}")

    # The changes. Nothing of them looks at the tree: what is there is known.

    def replace(self):
        self.write(self.random.choice(self.files))

    def create(self):
        self.write(self.some_name())

    def remove(self):
        path, before = self.random.choice(self.files), time.monotonic()
        os.unlink(os.path.join(self.root, path))
        self.files.remove(path)
        self.note(path, before)

    def link(self):
        target = os.path.join(self.root, self.random.choice(self.linked))
        self.put(self.some_name(), lambda full: os.link(target, full))

    def symlink(self):
        name = self.some_name()
        self.put(name, lambda full: trees.symlink(f"target{next(self.versions)}", full))

    def grow(self):
        self.new_directory(f"{self.random.choice(self.dirs)}/new{self.random.randrange(10 ** 6)}", 8)

    def remove_directory(self):
        path = self.random.choice([path for path in self.dirs if os.path.basename(path).startswith("new")] or [None])
        if path is None:
            return
        below = lambda name: name.startswith(path + "/")
        before = time.monotonic()
        shutil.rmtree(os.path.join(self.root, path))
        for name in filter(below, self.files):
            self.note(name, before)
        self.files = [name for name in self.files if not below(name)]
        self.dirs = [name for name in self.dirs if name != path and not below(name)]

    def to_directory(self):
        path = self.random.choice(self.files)
        before = time.monotonic()
        os.unlink(os.path.join(self.root, path))
        self.files.remove(path)
        self.new_directory(path, 2)
        self.note(path, before)

    def change(self):
        kinds = {self.replace: 40, self.create: 14, self.remove: 20, self.link: 8, self.symlink: 4, self.grow: 1,
                 self.remove_directory: 1, self.to_directory: 1}
        with self.lock:
            kind = self.random.choices(list(kinds), kinds.values())[0]
            kind()
            self.counts[kind.__name__] += 1

    def was_gone(self, path, since, until):
        return any(before <= until and after >= since for before, after in self.gone.get(os.path.normpath(path), ()))


def iter_parents(path):
    while path := os.path.dirname(path):
        yield path


# --- who does what ---

class Session:
    """One run of a client."""

    def __init__(self, number, turn, daemon, top):
        self.began = time.monotonic()
        self.options, self.protocol = OPTIONS[number % len(OPTIONS)], PROTOCOLS[(number + turn) % len(PROTOCOLS)]
        words = [harness.STOCK, f"--protocol={self.protocol}", *self.options.split(), daemon.url("mirror/")]
        self.result = harness.run(*words, *([] if "list-only" in self.options else [os.path.join(top, f"target{number}") + "/"]),
                                  timeout=120)
        self.ended = time.monotonic()


class Snapshots:
    """Replaces the snapshot of the mirror in every way there is, and knows when each was begun."""

    def __init__(self, mirror, file, upstream):
        self.mirror, self.file, self.upstream = mirror, file, upstream
        self.made = []  # (begun, in place)
        self.counts = collections.Counter()
        self.longest = collections.Counter()
        self.results = []
        self.full()
        self.turns = itertools.cycle((self.dirs, self.full, self.dirs, self.run))

    def make(self, kind, *words):
        began = time.monotonic()
        result = harness.run(harness.HUAI, *words, timeout=120)
        now = time.monotonic()
        self.made.append((began, now))
        self.results.append((began, now, result))
        self.counts[kind] += 1
        self.longest[kind] = max(self.longest[kind], now - began)

    def full(self):
        self.make("full", *MAKE, f"--attr-snapshot={self.file}", self.mirror.root + "/")

    def dirs(self):
        self.make("dirs", *MAKE, f"--attr-snapshot={self.file}", "--attr-refresh=dirs", self.mirror.root + "/")

    def run(self):
        """The mirror's own update from another one, which has changed."""
        mirror = self.mirror
        with mirror.lock:
            copied = harness.run(harness.HUAI, "-aH", "--delete", mirror.root + "/", self.upstream + "/")
            assert copied.code == 0, copied.text
            mirror.pending, here = [], mirror.root
            mirror.root = self.upstream
        for _ in range(CHANGES_PER_SECOND // 3):
            mirror.change()
        with mirror.lock:
            mirror.root, began = here, time.monotonic()
            self.make("run", "-aH", "--delete", MAKE[-1], f"--attr-snapshot={self.file}", self.upstream + "/", here + "/")
            pending, mirror.pending = mirror.pending, None
            for path in pending:
                mirror.note(path, began)

    def replace(self):
        next(self.turns)()

    def begun(self, moment):
        """When the snapshot was begun that a client gets at this moment."""
        return max(began for began, in_place in self.made if in_place <= moment)


class Load:
    """The clients and the changes, each in a thread of its own, until `seconds` are over."""

    def __init__(self, mirror, snapshot, daemon, top):
        self.mirror, self.snapshot, self.daemon, self.top = mirror, snapshot, daemon, top
        self.deadline = time.monotonic() + SECONDS
        self.sessions, self.failures = [], []

    def guarded(self, work, *words):
        try:
            work(*words)
        except BaseException as error:  # of a thread: to be seen by the test
            self.failures.append(error)

    def client(self, number):
        for turn in itertools.count():
            if time.monotonic() >= self.deadline or self.failures:
                return
            self.sessions.append(Session(number, turn, self.daemon, self.top))

    def changes(self):
        while time.monotonic() < self.deadline and not self.failures:
            self.mirror.change()
            time.sleep(1 / CHANGES_PER_SECOND)

    def refreshes(self):
        due = time.monotonic()
        while time.monotonic() < self.deadline and not self.failures:
            due = max(due + 1, time.monotonic())
            time.sleep(max(0, due - time.monotonic()))
            self.snapshot.replace()

    def run(self):
        works = [(self.client, number) for number in range(CLIENTS)] + [(self.changes,), (self.refreshes,)]
        threads = [threading.Thread(target=self.guarded, args=work) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]


# --- what has to be true of it ---

VANISHED = re.compile(r'file has vanished: "/?(.*)" \(in mirror\)'
                      r'|rsync: \[sender\] send_files failed to open "/?(.*)" \(in mirror\): Is a directory \(21\)')
ENDINGS = re.compile(r"rsync warning: some files vanished before they could be transferred \(code 24\) at .*"
                     r"|rsync error: some files/attrs were not transferred \(see previous errors\) \(code 23\) at .*"
                     r"|IO error encountered -- skipping file deletion")


def complaints(session, mirror, since):
    """What a session should not have said, and how it should not have ended."""
    is_list = "list-only" in session.options
    # Clients with an old protocol have their warnings in the other stream.
    lines = os.fsdecode(session.result.stderr + (b"" if is_list else session.result.stdout)).splitlines()
    names = [match[1] or match[2] for match in map(VANISHED.fullmatch, lines) if match]
    wrong = [line for line in lines if not VANISHED.fullmatch(line) and not ENDINGS.fullmatch(line)]
    wrong += [f"{name} was there all the time" for name in names if not mirror.was_gone(name, since, session.ended)]
    if session.result.code not in (0, 23, 24):
        wrong.append(f"exit code {session.result.code}")
    if session.result.code and not names:
        wrong.append(f"exit code {session.result.code} for nothing")
    if session.result.code and is_list:
        wrong.append("a list asks for no file")
    return wrong


def processes_of(group):
    """The process ids in a process group."""
    result = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if int(file.read().rpartition(") ")[2].split()[2]) == group:
                    result.append(int(pid))
        except OSError:
            pass
    return result


def check_daemon(daemon, load, file):
    """Every session was served to its end; what is left is the listener, with one snapshot and no other."""
    deadline = time.monotonic() + 10
    while processes_of(daemon.process.pid) != [daemon.process.pid] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(daemon.process.pid) == [daemon.process.pid]
    log = daemon.log()
    served = len(re.findall(r"\] rsync on mirror/ from ", log))
    assert (served, len(re.findall(r"\] sent \d+ bytes  received \d+ bytes  total size \d+", log))) == (len(load.sessions),) * 2
    assert re.findall(r".*(?:cannot be used|signal|Sanitizer|broken|refused).*", log) == []
    generations = [int(number) for number in re.findall(r"module mirror: attr snapshot generation (\d+), ", log)]
    assert generations == sorted(set(generations)) and len(generations) > 1
    with open(f"/proc/{daemon.process.pid}/maps") as maps:
        assert len({line.split()[4] for line in maps if file in line}) <= 1
    assert len(os.listdir(f"/proc/{daemon.process.pid}/fd")) < 20
    return len(generations)


def check_targets(mirror, top):
    """Whatever was sent was one version of the file, from its first to its last byte."""
    files = 0
    for path in (os.path.join(os.fsencode(top), path) for path in trees.walk(top)):
        if b"/target" in path and stat.S_ISREG(os.lstat(path).st_mode):
            with open(path, "rb") as file:
                assert is_whole(file.read()), path
            files += 1
    assert files > CLIENTS * 100


def check_snapshots(mirror, snapshot, place):
    """A refresh ends with what a full scan says, and that is what the tree is, to the last digest."""
    time.sleep(SETTLED)
    snapshot.dirs()
    other = os.path.join(place, "other")
    results = [result for _, _, result in snapshot.results]
    results.append(harness.run(harness.HUAI, *MAKE, f"--attr-snapshot={other}", mirror.root + "/"))
    results.append(harness.run(harness.HUAI, "-aHc", "--attr-verify", snapshot.file, mirror.root + "/"))
    assert [result.code for result in results[-3:]] == [0, 0, 0], results[-3:]
    assert snapshots.Snapshot(snapshot.file).same_list(snapshots.Snapshot(other))
    os.unlink(other)
    for began, ended, result in snapshot.results:
        names = re.findall(r'vanished: "(.*)"', os.fsdecode(result.stderr))
        assert result.code in (0, 24) and bool(names) == bool(result.code), result.text
        for name in names:
            assert mirror.was_gone(os.path.relpath(name, mirror.root), began, ended), result.text


def check_pulls(mirror, daemon, top):
    """A pull into nothing, and one into what each client has by now, is the mirror."""
    expected = trees.describe(mirror.root)
    for name in ["fresh", *(name for name in os.listdir(top) if name.startswith("target"))]:
        target = os.path.join(top, name)
        for check in "", "-c":
            result = harness.run(harness.STOCK, "-aH", "--delete", "--modify-window=-1", *filter(None, [check]), daemon.url("mirror/"),
                                 target + "/")
            assert (result.code, result.stdout, result.stderr) == (0, b"", b""), result.text
        assert trees.differences(expected, trees.describe(target)) == []


def figures(load, snapshot, mirror, generations):
    codes = collections.Counter(session.result.code for session in load.sessions)
    made = ", ".join(f"{count} {kind} (at most {snapshot.longest[kind]:.2f} s)" for kind, count in snapshot.counts.items())
    slowest = max(session.ended - session.began for session in load.sessions)
    return (f"{SECONDS:.0f} s: {len(load.sessions)} sessions, by exit code {dict(codes)}, the longest {slowest:.2f} s; "
            f"snapshots: {made}, {generations} served; {sum(mirror.counts.values())} changes; {len(mirror.files) + len(mirror.linked)} files at the end")


def test_clients_are_served_while_the_mirror_changes(place):
    top, file = os.path.join(place, "clients"), os.path.join(place, "snapshots/mirror")
    os.mkdir(top)
    os.mkdir(os.path.dirname(file))
    mirror = Mirror(os.path.join(place, "mirror"))
    snapshot = Snapshots(mirror, file, os.path.join(place, "upstream"))
    identity = f"uid = nobody\ngid = {harness.NOBODY_GROUP}\nuse chroot = yes\n" if trees.IS_ROOT else "use chroot = no\n"
    config = identity + f"[mirror]\npath = {mirror.root}\nattr snapshot = {file}\nattr snapshot fallback = refuse\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        time.sleep(3.1)  # until then the configuration is read again for every client
        load = Load(mirror, snapshot, daemon, top)
        load.run()
        generations = check_daemon(daemon, load, file)
        print("\n" + figures(load, snapshot, mirror, generations))
        for session in load.sessions:
            wrong = complaints(session, mirror, snapshot.begun(session.began))
            assert wrong == [], "\n".join([session.result.text, *wrong])
        check_targets(mirror, top)
        check_snapshots(mirror, snapshot, place)
        check_pulls(mirror, daemon, top)
        assert os.listdir(os.path.dirname(file)) == [os.path.basename(file)]
