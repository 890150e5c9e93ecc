# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that do not get to their end: killed, interrupted, cut off, out of space, without permission.

A proxy between client and daemon lets so many bytes pass, then the client gets a signal or loses its connection: moments are
places in the stream, and the same for the same seed. HUAI_INTERRUPTS sets their number for each style.
"""
import concurrent.futures
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import pytest

import harness
import trees
from test_daemon import wait_for
from test_limits import waiting_bytes

INTERRUPTS = int(os.environ.get("HUAI_INTERRUPTS", "20"))
OLD, NEW = 1_300_000_000_000_000_000, 1_700_000_000_000_000_000
TEMP_NAME = re.compile(rb"^\..+\.[A-Za-z0-9]{6}$")
STYLES = {"default": [], "inplace": ["--inplace"], "partial-dir": ["--partial-dir=.part"], "delay-updates": ["--delay-updates"],
          "append": ["--append"], "backup": ["--backup", "--backup-dir=../kept", "--delete"]}
IN_PLACE = ("inplace", "append")
ENDINGS = ("kill", "interrupt", "terminate", "cut")
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


# --- the trees ---

def names_and_contents():
    for number in range(3):
        yield f"large-{number}", trees.noise(250_000 + number, 10 + number)
    for number in range(12):
        yield f"sub/small-{number}", trees.noise(4000 + number * 700, 30 + number)
    yield "sub/deep/medium", trees.noise(90_000, 50)


def build(root, change):
    os.makedirs(os.path.join(root, "sub/deep"))
    for index, (name, content) in enumerate(names_and_contents()):
        if change is None or change(index, content) is not None:
            trees.write(os.path.join(root, name), content if change is None else change(index, content), 0o644,
                        NEW if change is None else OLD)
    trees.set_directory_times(root, NEW if change is None else OLD)


def older(index, content):
    """A tree to update: of every third file there is nothing, the others differ here and there."""
    return None if index % 3 == 2 else content[:len(content) // 3] + b"once" + content[len(content) // 2:]


def shorter(index, content):
    return None if index % 3 == 2 else content[:len(content) // 2]


class Proxy:
    """One connection to the daemon; after `limit` bytes from there nothing more comes, and `then` is called."""

    def __init__(self, port, limit, then):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.server_port, self.limit, self.then = port, limit, then
        self.passed = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        self.listener.settimeout(20)
        try:
            client, _ = self.listener.accept()
        except OSError:
            return
        with client, socket.create_connection(("127.0.0.1", self.server_port)) as server:
            back = threading.Thread(target=self.pump, args=(client, server, None))
            back.start()
            if self.pump(server, client, self.limit):
                self.then(client)
                self.over.wait(20)
            for end in (client, server):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            back.join()

    def pump(self, source, target, limit):
        """True if the limit was reached."""
        try:
            while limit is None or self.passed < limit:
                data = source.recv(4096 if limit is None else min(4096, limit - self.passed))
                if not data:
                    break
                target.sendall(data)
                if limit is not None:
                    self.passed += len(data)
        except OSError:
            pass
        return limit is not None and self.passed >= limit

    def close(self):
        self.over.set()
        self.listener.close()
        self.thread.join()


@pytest.fixture(scope="module")
def site(workspace):
    top = os.path.join(workspace, "interrupts")
    os.makedirs(os.path.join(top, "stock"))
    build(os.path.join(top, "source"), None)
    build(os.path.join(top, "older"), older)
    build(os.path.join(top, "shorter"), shorter)
    config = f"use chroot = no\n[source]\npath = {top}/source\n"
    with harness.Daemon(harness.STOCK, config, os.path.join(top, "stock")) as daemon:
        yield top, daemon


class Pull:
    """A pull through the proxy into a copy of the old tree."""

    def __init__(self, site, style, place):
        self.top, self.daemon = site
        self.style = style
        self.place = place
        self.target = os.path.join(place, "dest")
        shutil.copytree(os.path.join(self.top, self.old), self.target)
        trees.set_directory_times(self.target, OLD)

    @property
    def old(self):
        return "shorter" if self.style == "append" else "older"

    def words(self, port, *more):
        return [harness.HUAI, "-rlptD", *STYLES[self.style], *more, f"rsync://127.0.0.1:{port}/source/", "dest"]

    def interrupted(self, limit, ending, *more):
        process, started = None, threading.Event()

        def end(client):
            started.wait(20)
            if ending == "cut":
                wait_for(lambda: not waiting_bytes(client))  # what has been sent shall arrive
                client.shutdown(socket.SHUT_RDWR)
            elif ending != "stall":
                process.send_signal({"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}[ending])

        proxy = Proxy(self.daemon.port, limit, end)
        process = subprocess.Popen(self.words(proxy.port, *more), cwd=self.place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env=harness.ENVIRONMENT)
        started.set()
        try:
            output = process.communicate(timeout=harness.CLIENT_SECONDS)[0]
        finally:
            process.kill()
            proxy.close()
        return process.returncode, output, proxy.passed

    def whole(self):
        return harness.run(*self.words(self.daemon.port), cwd=self.place)


def files_below(root):
    for path in trees.walk(root):
        full = os.path.join(os.fsencode(root), path)
        if os.path.isfile(full):
            yield os.path.normpath(path), full


def read(path):
    with open(path, "rb") as file:
        return file.read()


def check_names_and_contents(pull, ending):
    """Every file is as it was or as it shall be, and nothing lies about."""
    allowed = {"partial-dir": b".part", "delay-updates": b".~tmp~"}.get(pull.style)
    sources = dict(files_below(os.path.join(pull.top, "source")))
    olds = dict(files_below(os.path.join(pull.top, pull.old)))
    for path, full in files_below(pull.target):
        parent, name = os.path.split(path)
        if os.path.basename(parent) == allowed:
            continue
        if path not in sources:
            assert ending == "kill" and TEMP_NAME.match(name), f"{path!r} was left behind"
        elif pull.style not in IN_PLACE:
            assert read(full) in [read(known[path]) for known in (sources, olds) if path in known], f"{path!r} is neither old nor new"


def check_repair(pull, ending):
    if ending == "kill":  # nobody could take these away
        for path, full in list(files_below(pull.target)):
            if TEMP_NAME.match(os.path.basename(path)):
                os.unlink(full)
    source = trees.describe(os.path.join(pull.top, "source"))
    before = trees.describe(pull.target)
    result = pull.whole()
    assert result.code == 0 and result.stderr == b"", result.text
    target = trees.describe(pull.target)
    for path, attributes in source.items() if pull.style == "append" else ():
        # What ended between the last byte and the time is long enough, and is skipped: as by stock.
        if before.get(path, {}).get("content", b"") == attributes.get("content"):
            attributes["mtime"] = target[path]["mtime"]
    assert trees.differences(source, target) == []


def interrupt_once(site, style, total, number):
    chance = random.Random(f"{style} {number}")
    ending = ENDINGS[number % len(ENDINGS)]
    place = tempfile.mkdtemp(dir=site[0])
    pull = Pull(site, style, place)
    code, output, passed = pull.interrupted(chance.randrange(1, total), ending)
    expected = {"kill": (-signal.SIGKILL,), "interrupt": (20,), "terminate": (20,), "cut": (5, 10, 12)}[ending]
    assert code in expected, f"{ending} after {passed} of {total} bytes: exit code {code}\n{os.fsdecode(output)}"
    check_names_and_contents(pull, ending)
    check_repair(pull, ending)
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def executor():
    with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as result:
        yield result


@pytest.mark.parametrize("style", [pytest.param(name, marks=[pytest.mark.core] * (name in ("default", "partial-dir"))) for name in STYLES])
def test_interrupted_pull(site, executor, place, style):
    pull = Pull(site, style, os.path.join(place))
    code, output, total = pull.interrupted(1 << 40, "cut")
    assert code == 0, output
    assert trees.differences(trees.describe(os.path.join(site[0], "source")), trees.describe(pull.target)) == []
    for future in [executor.submit(interrupt_once, site, style, total, number) for number in range(INTERRUPTS)]:
        future.result()


# --- what is kept ---

@pytest.mark.parametrize("options, kept, endings", [
    ([], None, "interrupt cut stall"), (["--partial"], "large-2", "interrupt cut stall"),
    (["--partial-dir=.part"], ".part/large-2", "interrupt cut stall"), (["--delay-updates"], ".~tmp~/large-2", "interrupt cut"),
    (["--partial", "--temp-dir=../temp"], "large-2", "cut"), (["--partial", "--temp-dir={shm}"], "large-2", "interrupt cut"),
    (["--partial-dir={place}/parts"], "../parts/large-2", "cut"), (["--inplace", "--partial"], "large-2", "interrupt cut"),
])
def test_what_stays_of_an_interrupted_file(site, place, options, kept, endings):
    """The third large file has come half; it was not there before."""
    for number, ending in enumerate(endings.split()):
        inner = os.path.join(place, str(number))
        os.makedirs(os.path.join(inner, "temp"))
        shm = tempfile.mkdtemp(prefix="huai-interrupt-", dir="/dev/shm")
        try:
            check_what_stays(Pull(site, "default", inner), [word.format(place=inner, shm=shm) for word in options], kept, ending)
            assert os.listdir(shm) == os.listdir(os.path.join(inner, "temp")) == []
        finally:
            shutil.rmtree(shm)


def check_what_stays(pull, options, kept, ending):
    timeout = ["--timeout=1"] if ending == "stall" else []
    code, output, _ = pull.interrupted(150_000, ending, *options, "--include=large-2", "--exclude=*", *timeout)
    assert code == {"interrupt": 20, "cut": 12, "stall": 30}[ending], output
    found = [path for path, _ in files_below(pull.place) if path.endswith(b"large-2") or TEMP_NAME.match(os.path.basename(path))]
    if kept is None:
        assert found == []
        return
    path = os.path.join(pull.target, kept)
    assert found == [os.fsencode(os.path.relpath(os.path.normpath(path), pull.place))]
    part = read(path)
    whole = read(os.path.join(pull.top, "source", "large-2"))
    assert 100_000 < len(part) < len(whole) and whole.startswith(part)
    if "--partial" in options and "--inplace" not in options:
        assert int(os.stat(path).st_mtime) == 0 and os.stat(path).st_mode & 0o777 == 0o644


def test_a_partial_file_is_gone_on_from(site, place):
    pull = Pull(site, "partial-dir", place)
    os.mkdir(os.path.join(pull.target, ".part"))
    whole = read(os.path.join(site[0], "source", "large-2"))
    trees.write(os.path.join(pull.target, ".part", "large-2"), whole[:200_000], 0o600, OLD)
    result = harness.run(*pull.words(pull.daemon.port, "--stats"), cwd=place)
    assert result.code == 0, result.text
    assert int(re.search(rb"Matched data: ([\d,]+)", result.stdout)[1].replace(b",", b"")) > 199_000
    assert read(os.path.join(pull.target, "large-2")) == whole
    assert not os.path.exists(os.path.join(pull.target, ".part"))


def is_stopped_early(process, target):
    """Stop it with less than half of the file written. A busy machine may be too late for that: then it ends as it likes."""
    while True:
        process.send_signal(signal.SIGSTOP)
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT).si_code != os.CLD_STOPPED:
            break
        written = sum(os.stat(path).st_blocks * 512 for _, path in files_below(target)) if os.path.isdir(target) else 0
        if 0 < written < 200_000_000:
            return True
        process.send_signal(signal.SIGCONT)
        if written:
            break
        time.sleep(0.001)
    assert process.wait(60) == 0
    return False


@pytest.mark.parametrize("options, kept", [([], None), (["--partial-dir=.part"], ".part/big"), (["--delay-updates"], ".~tmp~/big")])
def test_interrupted_local_copy(tmpfs_place, options, kept):
    source, target = os.path.join(tmpfs_place, "source"), os.path.join(tmpfs_place, "dest")
    os.mkdir(source)
    with open(os.path.join(source, "big"), "wb") as file:
        for _ in range(400):
            file.write(b"x" * 1_000_000)
    for _ in range(10):
        process = subprocess.Popen([harness.HUAI, "-a", *options, source + "/", target], stderr=subprocess.DEVNULL)
        if is_stopped_early(process, target):
            break
        shutil.rmtree(target)
    else:
        pytest.skip("each copy was faster than the signal")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    assert process.wait(60) == 20
    assert [path for path, _ in files_below(target)] == ([os.fsencode(kept)] if kept else [])
    assert not kept or 0 < os.stat(os.path.join(target, kept)).st_size < 400_000_000


# --- what cannot be written ---

def result_of(program, place, words, source, cwd="."):
    target = os.path.join(place, "dest")
    result = harness.run(*words, program, "-rlpt", source, target, cwd=place)
    return result, {path: attributes["content"] for path, attributes in (trees.describe(target) or {}).items()
                    if "content" in attributes}


@pytest.fixture
def small_disk(place):
    target = os.path.join(place, "dest")
    os.mkdir(target)
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k,mode=755", "tmpfs", target]).returncode:
        pytest.skip("mounting takes root")
    yield target
    subprocess.run(["umount", "-l", target], check=True)


@pytest.mark.parametrize("way", ["local", "pull"])
@pytest.mark.parametrize("options, kept", [((), False), (("--partial",), True), (("--inplace",), True), (("--delay-updates",), True),
                                           (("--backup",), False)])
def test_disk_is_full(site, place, small_disk, way, options, kept):
    source = os.path.join(site[0], "source", "") if way == "local" else site[1].url("source/")
    result = harness.run(harness.HUAI, "-rlpt", *options, source, small_disk, cwd=place)
    assert result.code == 11 and b"No space left on device (28)" in result.stderr, result.text
    found = dict(files_below(small_disk))
    assert not [path for path in found if TEMP_NAME.match(os.path.basename(path))]
    sources = dict(files_below(os.path.join(site[0], "source")))
    wrong = [path for path, full in found.items() if path not in sources or read(full) != read(sources[path])]
    assert bool(wrong) <= kept, wrong
    stock = harness.run(harness.STOCK, "-rlpt", *options, source, small_disk, cwd=place)
    assert stock.code == result.code, stock.text


def test_read_only_destination(site, place, small_disk):
    build(os.path.join(small_disk, "x"), lambda index, content: content[:100] if index % 3 else None)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    before = trees.describe(small_disk)
    for source in (os.path.join(site[0], "source", ""), site[1].url("source/")):
        results = [harness.run(program, "-rlpt", source, os.path.join(small_disk, "x"), cwd=place)
                   for program in (harness.STOCK, harness.HUAI)]
        assert results[0].code == results[1].code == 23, results[1].text
        assert results[1].stderr.count(b"Read-only file system (30)") >= 16, results[1].text
    assert trees.describe(small_disk) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else takes root")
@pytest.mark.parametrize("options", [(), ("--inplace",), ("--delay-updates",), ("--partial-dir=.part",), ("--delete",), ("--append",)])
@pytest.mark.parametrize("way", ["local", "pull"])
def test_without_permission_the_others_are_transferred(site, place, way, options):
    source = os.path.join(site[0], "source", "") if way == "local" else site[1].url("source/")
    os.chmod(place, 0o755)
    outcomes = []
    for program, name in ((harness.STOCK, "stock"), (harness.HUAI, "ours")):
        target = os.path.join(place, name)
        shutil.copytree(os.path.join(site[0], "shorter"), target)
        for path in trees.walk(target):
            full = os.path.join(os.fsencode(target), path)
            if not path.startswith(b"sub/deep") and path != b"large-1":
                os.chown(full, 65534, 65534)
        result = harness.run(*AS_NOBODY, program, "-rlp", *options, source, target, cwd=place)
        outcomes.append((result.code, {path: attributes.get("content") for path, attributes in trees.describe(target).items()}))
        assert b"Permission denied (13)" in result.stderr or b"Operation not permitted (1)" in result.stderr, result.text
    assert outcomes[0] == outcomes[1]
    assert outcomes[1][0] == 23
