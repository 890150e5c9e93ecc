# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing an attr snapshot when something goes wrong: there is always the whole old file or the whole new one, nothing else."""
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

import pytest

import harness
import trees

KILLS = 200
DIRECTORIES, FILES = 60, 100
SETTLED = 2.1  # seconds after which the state of an unchanged directory is recorded, and so the same in every snapshot
FACTS = b"facts"

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
needs_root = pytest.mark.skipif(not trees.IS_ROOT, reason="needs root")


@pytest.fixture(scope="module")
def tree(workspace):
    """Large enough that writing its snapshot takes several steps."""
    path = os.path.join(workspace, "many")
    for number in range(DIRECTORIES):
        os.makedirs(os.path.join(path, f"d{number}"))
        for name in range(FILES):
            os.mknod(os.path.join(path, f"d{number}", f"a-file-with-a-name-{name:030}"))
    time.sleep(SETTLED)
    yield path
    shutil.rmtree(path)


def words(tree, file, options=()):
    return [harness.HUAI, "-aH", *options, f"--attr-snapshot={file}", tree + "/"]


def contents(file):
    """The chunks of a snapshot, each whole, and its generation; the facts, which differ from run to run, are not compared."""
    with open(file, "rb") as stream:
        data = stream.read()
    magic, _, count, size, _ = struct.unpack_from("<8sIIQQ", data)
    assert magic == b"attrsnap" and size == len(data)
    chunks = {}
    for i in range(count):
        tag, offset, length = struct.unpack_from("<8sQQ", data, 32 + 40 * i)
        chunks[tag.rstrip(b"\0")] = data[offset:offset + length]
    generation = struct.unpack_from("<Q", chunks.pop(FACTS))[0]
    return chunks, generation


def assert_whole(file):
    result = harness.run(harness.HUAI, "--attr-verify", file)
    assert result.code == 0, result.text


class Pair:
    """A snapshot file alone in its directory. Of two lists of one tree it holds one, and a run writes the other."""

    OPTIONS = (("--exclude=d1*",), ())

    def __init__(self, tree, directory):
        self.tree, self.directory = tree, directory
        self.file = os.path.join(directory, "mirror.snap")
        self.lists = []
        for self.holds in 1, 0:
            result = harness.run(*self.words(self.holds))
            assert result.code == 0, result.text
            chunks, self.generation = contents(self.file)
            self.lists.insert(0, chunks)
        assert self.lists[0] != self.lists[1] and self.generation == 2

    def words(self, which=None, file=None):
        """The command that writes the list that the file does not hold."""
        return words(self.tree, file or self.file, self.OPTIONS[1 - self.holds if which is None else which])

    def is_new(self):
        """Has the last run replaced the file? It holds one of the lists, whole, and its generation says which."""
        chunks, generation = contents(self.file)
        replaced = generation != self.generation
        self.holds ^= replaced
        self.generation += replaced
        assert generation == self.generation
        assert chunks == self.lists[self.holds]
        return replaced

    def names(self):
        return sorted(os.listdir(self.directory))


@pytest.fixture
def pair(tree, place):
    directory = os.path.join(place, "snapshots")
    os.mkdir(directory)
    return Pair(tree, directory)


# --- ended from outside ---

def start(pair):
    return subprocess.Popen(pair.words(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=harness.ENVIRONMENT)


def is_writing(process, directory):
    """Has the process a file without a name, or with a temp name, in the directory?"""
    descriptors = f"/proc/{process.pid}/fd"
    try:
        for number in os.listdir(descriptors):
            target = os.readlink(os.path.join(descriptors, number))
            if target.startswith(directory + "/") and not target.endswith(".snap"):
                return True
    except OSError:
        pass
    return False


def until_it_writes(process, directory):
    """Seconds from its start until it writes, or ends."""
    began = time.monotonic()
    while process.poll() is None and not is_writing(process, directory):
        pass
    return time.monotonic() - began


def measure(pair):
    """How long a run scans, and how long it writes."""
    process = start(pair)
    scan = until_it_writes(process, pair.directory)
    began = time.monotonic()
    assert process.communicate(timeout=30) == (None, b"") and process.returncode == 0
    assert pair.is_new()
    return scan, time.monotonic() - began


def end_at_random(pair, count, number):
    """Send the signal at random moments of the whole run, and as often at random moments of the writing; yield each process."""
    chance = random.Random(number)
    scan, write = measure(pair)
    for i in range(count):
        process = start(pair)
        if i % 2:
            until_it_writes(process, pair.directory)
            time.sleep(chance.uniform(0, 1.2 * write))
        else:
            time.sleep(chance.uniform(0, 1.2 * (scan + write)))
        process.send_signal(number)
        process.stderr_text = process.communicate(timeout=30)[1]
        yield process


def test_killed_writer_leaves_a_whole_file(pair):
    """Not even a killed one leaves a temp file, as long as the file system can do without."""
    outcomes = {True: 0, False: 0}
    for process in end_at_random(pair, KILLS, signal.SIGKILL):
        assert process.returncode in (0, -signal.SIGKILL)
        outcomes[pair.is_new()] += 1
    assert outcomes[False] > KILLS / 10, "no moment was before the end of the writing"
    strays = [name for name in pair.names() if name != "mirror.snap"]
    assert len(strays) <= KILLS / 50  # killed in the moment between naming and renaming
    assert_whole(pair.file)
    assert harness.run(*pair.words()).code == 0 and pair.is_new()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ended_writer_leaves_nothing_behind(pair, number):
    ended = 0
    for process in end_at_random(pair, 30, number):
        # -number: before the program had begun to listen to signals
        assert process.returncode in (0, 20, -number), process.stderr_text
        if process.returncode == 20:
            ended += 1
            assert process.stderr_text.count(b"\n") == 1 and b"(code 20)" in process.stderr_text, process.stderr_text
        pair.is_new()
        assert pair.names() == ["mirror.snap"]
    assert ended


# --- single system calls ---

def traced(pair, *options, code):
    """A run whose system calls are listed, and made to fail; returns the result and the calls of the writing itself."""
    trace = os.path.join(os.path.dirname(pair.directory), "trace")
    result = harness.run("strace", "-f", "-y", "-o", trace, "-e", "trace=pwrite64,fsync,fchmod,linkat,renameat,renameat2,unlinkat",
                         *options, *pair.words())
    assert result.code == code, result.text
    with open(trace) as stream:
        return result, [line for line in stream if pair.directory in line]


def killed_at(pair, call, number, *options):
    """A run that is killed before it makes a system call."""
    traced(pair, *options, "-e", f"inject={call}:signal=KILL:when={number}", code=-signal.SIGKILL)


def call_name(line):
    return re.match(r"\d+ +(\w+)\(", line).group(1)


def writes_of_the_other(pair):
    """In how many calls the list that the file does not hold is written."""
    _, calls = traced(pair, code=0)
    assert pair.is_new()
    assert harness.run(*pair.words()).code == 0 and pair.is_new()
    return sum(call_name(line) == "pwrite64" for line in calls)


@needs_strace
def test_new_file_is_on_the_disk_before_it_has_the_name(pair):
    _, calls = traced(pair, code=0)
    names = [call_name(line) for line in calls]
    assert names.count("pwrite64") > 4
    last_write = len(names) - 1 - names[::-1].index("pwrite64")
    assert names[last_write + 1:] == ["fchmod", "fsync", "linkat", "renameat", "fsync"], calls
    assert f"<{pair.directory}>" in calls[-1], "the directory is not synced"
    assert pair.is_new()


@needs_strace
def test_killed_at_any_system_call_of_the_writing(pair):
    outcomes = [("pwrite64", n + 1, False, 0) for n in range(writes_of_the_other(pair))]
    # Between naming and renaming there are two names.
    outcomes += [("fchmod", 1, False, 0), ("fsync", 1, False, 0), ("linkat", 1, False, 0), ("renameat", 1, False, 1),
                 ("fsync", 2, True, 0)]
    for call, number, is_new, strays in outcomes:
        killed_at(pair, call, number)
        assert pair.is_new() == is_new, (call, number)
        names = pair.names()
        assert len(names) == 1 + strays, (call, number)
        for name in names[:strays]:
            os.unlink(os.path.join(pair.directory, name))
    assert_whole(pair.file)


@needs_strace
@pytest.mark.parametrize("call, error, text", [
    ("pwrite64", "EDQUOT", "cannot write it: Disk quota exceeded (122)"),
    ("fchmod", "EPERM", "cannot set its mode: Operation not permitted (1)"),
    ("fsync", "EIO", "cannot bring it to the disk: Input/output error (5)"),
    ("renameat", "ENOSPC", "cannot put the new file in its place: No space left on device (28)"),
])
def test_any_call_that_fails_leaves_the_old_file(pair, call, error, text):
    for number in range(writes_of_the_other(pair) if call == "pwrite64" else 1):
        result, _ = traced(pair, "-e", f"inject={call}:error={error}:when={number + 1}", code=11)
        assert f"{pair.file}: {text}\n".encode() in result.stderr and b" file IO (code 11)" in result.stderr, result.text
        assert not pair.is_new()
        assert pair.names() == ["mirror.snap"]


@needs_strace
def test_directory_that_cannot_be_synced_is_told(pair):
    result, _ = traced(pair, "-e", "inject=fsync:error=EIO:when=2", code=11)
    assert b"it is written, but its directory cannot be brought to the disk: Input/output error (5)" in result.stderr
    assert pair.is_new()
    assert pair.names() == ["mirror.snap"]


@needs_strace
def test_file_system_that_gives_no_names_to_complete_files(pair):
    """Then there is a temp file, which does not disturb the next run if it stays behind."""
    inject = ["-e", "inject=linkat:error=EPERM"]
    traced(pair, *inject, code=0)
    assert pair.is_new()
    assert pair.names() == ["mirror.snap"]
    for strays in 1, 2:
        killed_at(pair, "renameat", 1, *inject)
        assert not pair.is_new()
        assert len(pair.names()) == 1 + strays
    traced(pair, *inject, code=0)
    assert pair.is_new()
    assert len(pair.names()) == 3


# --- disks and directories that refuse ---

def size_steps(size):
    """Room that ends within each part of a file of this size."""
    return [0, 1, *(size * part // 8 for part in range(1, 8)), size - 1]


def test_file_size_limit_leaves_the_old_file(pair):
    size = sum(len(chunk) for chunk in pair.lists[1].values())
    for limit in size_steps(size):
        process = subprocess.run(pair.words(), capture_output=True, env=harness.ENVIRONMENT,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        assert process.returncode == 11, process.stderr
        assert f"{pair.file}: cannot write it: File too large (27)\n".encode() in process.stderr
        assert not pair.is_new()
        assert pair.names() == ["mirror.snap"]


# $1: directory, $2: copy of the old snapshot, $3: sizes in KiB, the rest: the command. It says for each size the exit code,
# whether the old file stands, and what names there are.
FULL_DISK = """
mount -t tmpfs -o size=100m huai-test "$1" || exit 99
directory=$1 old=$2 sizes=$3
shift 3
cp "$old" "$directory/mirror.snap" || exit 98
used=$(df -k --output=used "$directory" | tail -n 1)
for size in $sizes; do
    mount -o remount,size=$((used + size))k "$directory" || exit 97
    "$@"
    echo "$size $? $(cmp -s "$old" "$directory/mirror.snap" && echo old || echo new) $(ls -A "$directory")"
done
umount "$directory"
"""


@needs_root
def test_full_disk_leaves_the_old_file(pair, place):
    size = sum(len(chunk) for chunk in pair.lists[1].values()) // 1024
    disk = os.path.join(place, "disk")
    os.mkdir(disk)
    steps = size_steps(size - 8)  # what a file takes is counted in pages
    result = harness.run("unshare", "-m", "sh", "-c", FULL_DISK, "sh", disk, pair.file, " ".join(map(str, [*steps, size + 64])),
                         *pair.words(file=os.path.join(disk, "mirror.snap")))
    if result.code == 99 or b"unshare:" in result.stderr:
        pytest.skip("cannot mount a tmpfs here")
    assert result.code == 0, result.text
    lines = result.stdout.decode().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == [*["11 old mirror.snap"] * len(steps), "0 new mirror.snap"], result.text
    assert result.stderr.count(b"mirror.snap: cannot write it: No space left on device (28)\n") == len(steps), result.text
    assert not os.path.ismount(disk) and os.listdir(disk) == []


@needs_root
def test_read_only_file_system_leaves_the_old_file(pair):
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 99; shift; "$@"'
    result = harness.run("unshare", "-m", "sh", "-c", script, "sh", pair.directory, *pair.words())
    if result.code == 99 or b"unshare:" in result.stderr:
        pytest.skip("cannot mount anything here")
    assert result.code == 11, result.text
    assert b"mirror.snap: cannot make a temp file in its directory: Read-only file system (30)\n" in result.stderr, result.text
    assert not pair.is_new()
    assert pair.names() == ["mirror.snap"]


def test_read_only_directory_leaves_the_old_file(pair):
    user = {"user": 65534, "group": 65534, "extra_groups": []} if trees.IS_ROOT else {}
    os.chmod(pair.directory, 0o555)
    process = subprocess.run(pair.words(), capture_output=True, env=harness.ENVIRONMENT, **user)
    os.chmod(pair.directory, 0o755)
    assert process.returncode == 11, process.stderr
    assert b"mirror.snap: cannot make a temp file in its directory: Permission denied (13)\n" in process.stderr, process.stderr
    assert not pair.is_new()
    assert pair.names() == ["mirror.snap"]


@pytest.mark.parametrize("make_it, text", [
    (os.mkdir, b"only a regular file is replaced: Is a directory (21)"),
    (os.mkfifo, b"only a regular file is replaced: Invalid argument (22)"),
    (lambda path: os.symlink("nowhere/at/all", path), b"No such file or directory (2)"),
])
def test_what_is_no_file_is_not_replaced(tree, place, make_it, text):
    file = os.path.join(place, "other")
    make_it(file)
    before = os.lstat(file)
    result = harness.run(*words(tree, file))
    assert result.code == 11 and text in result.stderr, result.text
    after = os.lstat(file)
    assert (after.st_ino, after.st_mode, after.st_ctime_ns) == (before.st_ino, before.st_mode, before.st_ctime_ns)
    assert os.listdir(place) == ["other"]
