#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets the system calls and allocations of many jobs fail, one at a time, and judges what becomes of it.

    faults.py --seconds 600 --seed 3             as many as fit, those first that no job has had yet
    faults.py --job "local -a" --fault openat2#3=EMFILE
                                                 one of them again; "+" behind it: and all that come later
    faults.py --list                             the jobs

A job is run without faults first: that counts its calls, by name, and the places of the program that they come from. A fault is
the Nth call of a name in a run, and an error: a number of the system, or SHORT for a part of what was asked for.
"""
import argparse
import collections
import dataclasses
import errno
import json
import mmap
import os
import random
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "system")]

import harness  # noqa: E402
import jobs  # noqa: E402
import judge  # noqa: E402

SHORT = -1
SECONDS = float(os.environ.get("FAULTS_TIMEOUT", "40"))

# What a call may fail with. A run goes on to its end in spite of those that are in TRANSPARENT.
FILES = ("EACCES", "EIO")
DESCRIPTORS = ("EMFILE", "ENFILE", "ENOMEM", "EACCES", "EIO")
ERRORS = {
    "malloc": ("ENOMEM",), "calloc": ("ENOMEM",), "realloc": ("ENOMEM",), "aligned_alloc": ("ENOMEM",), "mmap64": ("ENOMEM",),
    "mprotect": ("ENOMEM",), "madvise": ("ENOMEM",), "setenv": ("ENOMEM",), "iconv_open": ("ENOMEM", "EINVAL"),
    "read": ("EIO", "EINTR", "SHORT"), "pread64": ("EIO", "EINTR", "SHORT"), "recv": ("ECONNRESET", "EINTR", "SHORT"),
    "recvmsg": ("ECONNRESET", "EINTR"), "send": ("EPIPE", "EINTR", "SHORT"), "sendto": ("EPIPE", "EINTR"),
    "sendmsg": ("EPIPE", "EINTR", "SHORT"),
    "write": ("ENOSPC", "EIO", "EINTR", "SHORT"), "writev": ("ENOSPC", "EIO", "EINTR", "SHORT"), "pwrite64": ("ENOSPC", "EIO", "EINTR", "SHORT"),
    "pwritev64v2": ("ENOSPC", "EIO", "EINTR", "SHORT"), "copy_file_range": ("ENOSPC", "EIO", "EINTR", "SHORT"), "fwrite": ("ENOSPC",),
    "fflush": ("ENOSPC",), "fclose": ("EIO",), "close": ("EIO",), "poll": ("EINTR", "ENOMEM"), "waitpid": ("EINTR",), "nanosleep": ("EINTR",),
    "open64": DESCRIPTORS, "openat64": (*DESCRIPTORS, "ENOSPC"), "openat2": (*DESCRIPTORS, "EAGAIN", "ENOSPC"), "fopen64": DESCRIPTORS, "dup": ("EMFILE",),
    "dup2": ("EMFILE",), "pipe": ("EMFILE", "ENFILE"), "pipe2": ("EMFILE", "ENFILE"), "socket": ("EMFILE", "ENOMEM"),
    "socketpair": ("EMFILE", "ENOMEM"), "accept4": ("EMFILE", "ENFILE", "ECONNABORTED", "EINTR", "ENOMEM"), "connect": ("ECONNREFUSED", "ENOMEM"),
    "fdopen": ("ENOMEM",), "memfd_create": ("EMFILE", "ENOMEM"), "signalfd": ("EMFILE",), "bind": ("EADDRINUSE",),
    "listen": ("EADDRINUSE",), "fork": ("EAGAIN", "ENOMEM"), "pthread_create": ("EAGAIN",), "execvp": ("ENOENT", "ENOMEM"),
    "mkdirat": ("ENOSPC", "EACCES", "EIO"), "mknodat": ("ENOSPC", "EACCES"), "symlinkat": ("ENOSPC", "EACCES"),
    "linkat": ("ENOSPC", "EMLINK", "EACCES"), "renameat": ("EIO", "ENOSPC", "EACCES"), "ftruncate64": ("EIO", "ENOSPC"),
    "fallocate64": ("ENOSPC", "EOPNOTSUPP"), "fsync": ("EIO", "ENOSPC"), "setxattr": ("ENOSPC", "EIO"), "fsetxattr": ("ENOSPC", "EIO"),
    "getdents64": ("EIO", "ENOMEM"), "flock": ("EINTR", "ENOLCK"), "ioctl": ("EOPNOTSUPP", "ENOTTY"), "getrandom": ("ENOSYS",),
    "landlock_create_ruleset": ("ENOSYS", "EPERM"), "landlock_add_rule": ("EINVAL", "ENOMEM"), "landlock_restrict_self": ("EPERM",),
    "seccomp": ("EINVAL", "ENOMEM"), "prctl": ("EINVAL",), "setgroups": ("EPERM",), "setresgid": ("EPERM",), "setresuid": ("EAGAIN",),
    "setuid": ("EPERM",), "fcntl64": ("EMFILE",), "getpwnam": ("EMFILE",), "getpwuid": ("EMFILE",), "getgrnam": ("EMFILE",), "getgrgid": ("EMFILE",),
    "chroot": ("EPERM",), "chdir": FILES, "getsockopt": ("ENOTSOCK",), "setsockopt": ("ENOPROTOOPT",), "fchmodat2": ("ENOSYS", "EPERM", "EIO"),
    "lseek64": ("EINVAL",), "unlinkat": ("EACCES", "EIO", "EBUSY"), "fchown": ("EPERM", "EIO"), "fchownat": ("EPERM", "EIO"),
}
TRANSPARENT = {"SHORT", "EINTR"}
# What can be so from one call on; that connections or signals cannot be waited for any more is no state to live in.
STICKY = {"ENOSPC", "EMFILE", "ENOMEM", "EIO", "EACCES", "EOPNOTSUPP", "ENOSYS"}


NEVER_STICKY = {"read", "pread64", "accept4", "poll"}
ALLOCATIONS = {"malloc", "calloc", "realloc"}


def call_names():
    with open(os.path.join(HERE, "calls.h")) as file:
        return re.findall(r"^(?:CALL|OWN|RAW)\((\w+),", file.read(), re.M)


NAMES = call_names()


@dataclasses.dataclass(frozen=True)
class Fault:
    call: str
    nth: int
    error: str
    sticky: bool = False

    def __str__(self):
        return f"{self.call}#{self.nth}={self.error}{'+' * self.sticky}"

    @classmethod
    def parse(cls, text):
        call, nth, error, sticky = re.fullmatch(r"(\w+)#(\d+)=(\w+)(\+?)", text).groups()
        return cls(call, int(nth), error, bool(sticky))


class State:
    """struct state of inject.c: what is to fail, and what was counted."""

    HEAD = struct.Struct("<IIIIIiII")
    FRAMES, CALLS, ENTRIES = 24, 160, 400_000
    TRACE, LOGGED, COUNTS = HEAD.size, HEAD.size + 8 * FRAMES, HEAD.size + 8 * FRAMES + 8
    LOG = COUNTS + 4 * CALLS
    SIZE = LOG + 16 * ENTRIES

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as file:
            file.truncate(self.SIZE)
        os.chmod(path, 0o666)
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), self.SIZE)

    def reset(self, fault=None, recording=False):
        self.map[self.COUNTS:self.LOG] = bytes(4 * self.CALLS)
        struct.pack_into("<Q", self.map, self.LOGGED, 0)
        call = NAMES.index(fault.call) + 1 if fault else 0
        error = 0 if not fault else SHORT if fault.error == "SHORT" else getattr(errno, fault.error)
        self.HEAD.pack_into(self.map, 0, 0, recording, call, fault.nth if fault else 0, fault.sticky if fault else 0, error, 0, 0)
        struct.pack_into("<I", self.map, 0, 1 if fault else 0)

    def fired(self):
        return struct.unpack_from("<I", self.map, 24)[0]

    def trace(self):
        frames = struct.unpack_from("<I", self.map, 28)[0]
        return struct.unpack_from(f"<{frames}Q", self.map, self.TRACE)

    def calls(self):
        """(name, number of the call among those of its name, place) of every call that was recorded."""
        logged = min(struct.unpack_from("<Q", self.map, self.LOGGED)[0], self.ENTRIES)
        for at in range(self.LOG, self.LOG + 16 * logged, 16):
            call, nth, site = struct.unpack_from("<IIQ", self.map, at)
            if call:
                yield NAMES[call - 1], nth, site


@dataclasses.dataclass
class Run:
    code: int
    stdout: bytes
    stderr: bytes
    hung: bool = False


def answers(port, process):
    """Wait for a daemon to take a connection and to greet or to end it, or for its own end; False if neither comes."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return True
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as probe:
                probe.recv(8)
                return True
        except OSError:
            pass
        time.sleep(0.01)
    return False


def is_alive(process):
    """Does it do anything any more? One that has ended may wait for its parent to look after it."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def end_children(parent):
    try:
        with open(f"/proc/{parent}/task/{parent}/children") as file:
            children = [int(word) for word in file.read().split()]
    except OSError:
        return
    for child in children:
        os.kill(child, signal.SIGKILL)


def stable(output):
    """Output without what differs from run to run, its lines sorted."""
    for pattern, text in ((rb"[\d.,]+[kMG]?B/s|\d+:\d\d:\d\d|[\d.,]+ bytes/sec|speedup is [\d.,]+|\(xfr#\d+.*?\)", b"N"),
                          (rb"(sent|received) [\d,]+|(time|sent|received): [\d.,]+|size: [\d,]+", b"N"), (rb"hash_hits=\d+", b""),
                          (rb"(?m)^.*\r", b""), (rb"\d{4}/\d\d/\d\d[ -]\d\d:\d\d:\d\d", b"T"), (rb"\[\d+\]", b"")):
        output = re.sub(pattern, text, output)
    return sorted(output.split(b"\n"))


class Site:
    """Where jobs are run, one at a time: a directory that is made anew for each run, and the daemons that serve it."""

    def __init__(self, place, program, library, sanitized=False):
        self.place, self.program, self.sanitized = place, os.path.realpath(program), sanitized
        self.work, self.template = f"{place}/work", f"{place}/template"
        self.state = State(f"{place}/state")
        self.shell = harness.make_remote_shell(place)
        self.environment = {"LD_PRELOAD": library, "FAULTS_STATE": self.state.path, "FAULTS_PROGRAM": self.program, "RSYNC_PASSWORD": "x",
                            "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0:allocator_may_return_null=1:use_sigaltstack=0"}
        self.daemons = {}
        jobs.make(self.template)
        self.before = jobs.describe(self.template)

    def fresh(self):
        shutil.rmtree(self.work, ignore_errors=True)
        jobs.put_back(self.work, self.before)

    def config(self, job):
        number = sum(map(ord, job.module))
        path = f"{self.place}/pipe-{number}.conf"
        with open(path, "w") as file:
            file.write(f"log file = {self.place}/pipe.log\n" + self.module(job))
        return path

    def module(self, job):
        root = "" if "uid" in job.module or os.geteuid() else "uid = 0\ngid = 0\n"
        return f"timeout = 30\n[m]\npath = {self.work}\nread only = no\n{root}{job.module.format(place=self.place)}"

    def daemon(self, job):
        key = (job.module, job.pairing.split("/")[1], job.daemon_options)
        if key in self.daemons and self.daemons[key].process.poll() is not None:
            del self.daemons[key]
        if key not in self.daemons:
            directory = f"{self.place}/daemon-{len(os.listdir(self.place))}"
            os.makedirs(directory)
            ours = key[1] == "ours"
            os.makedirs(self.work, exist_ok=True)
            daemon = harness.Daemon(self.program if ours else harness.STOCK, self.module(job), directory, job.daemon_options,
                                    self.environment if ours else None)
            self.state.reset()
            self.daemons[key] = daemon.__enter__()
        return self.daemons[key]

    def settle(self, job):
        """Wait for the sessions of a daemon to end; False if one does not."""
        if not job.has_listener:
            return True
        process = self.daemon(job).process
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
                    if not any(map(is_alive, file.read().split())):
                        return True
            except OSError:
                return True
            time.sleep(0.002)
        return False

    def one(self, words):
        environment = {**harness.ENVIRONMENT, **self.environment}
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                   env=environment, cwd=self.work)
        hung = False
        try:
            stdout, stderr = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            hung = True
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
        if not hung:
            hung = not self.group_ends(process.pid)
        return Run(process.returncode, stdout, stderr, hung)

    @staticmethod
    def group_ends(group):
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                os.killpg(group, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.005)
        os.killpg(group, signal.SIGKILL)
        return False

    def run(self, job, stages=None):
        """All commands of a job, up to the first that fails. What there is after each is added to `stages`."""
        if job.way == "start":
            return self.start(job)
        total = Run(0, b"", b"")
        for words in jobs.commands(job, self):
            last = self.one(words)
            total = Run(last.code, total.stdout + last.stdout, total.stderr + last.stderr, last.hung)
            if stages is not None:
                stages.append(jobs.describe(self.work))
            if last.code or last.hung:
                break
        if not self.settle(job):
            total.hung = True
            total.stderr += b"(a session of the daemon does not end)"
            self.end_daemons()
        return total

    def start(self, job):
        """A daemon from its start to its end, with a client in between. The code is the client's, or the daemon's if it has failed."""
        log, config, port = f"{self.place}/start.log", f"{self.place}/start.conf", harness.free_port()
        with open(log, "w"), open(config, "w") as file:
            file.write(f"log file = {log}\npid file = {self.place}/start.pid\n" + self.module(job))
        words = [self.program, "--daemon", "--no-detach", "--config", config, "--address", "127.0.0.1", "--port", str(port), *job.daemon_options]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                   env={**harness.ENVIRONMENT, **self.environment})
        result = Run(0, b"", b"", not answers(port, process))
        if process.poll() is None and not result.hung:
            client = [harness.STOCK, "-a", "--timeout=15", f"rsync://127.0.0.1:{port}/m/src/", "other/"]
            pull = subprocess.run(client, cwd=self.work, env=harness.ENVIRONMENT, capture_output=True)
            result = Run(pull.returncode, b"", pull.stderr)
        process.terminate()
        try:
            output = process.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            output, result.hung = process.communicate()[0], True
        harness.end_group(process.pid)
        code = process.returncode
        with open(log, "rb") as file:
            result.stderr += output + (file.read() if code or result.code else b"")
        result.code = code if code not in (0, -signal.SIGTERM) else result.code
        return result

    def end_daemons(self):
        for daemon in self.daemons.values():
            end_children(daemon.process.pid)
            daemon.__exit__()
        self.daemons = {}

    def close(self):
        self.end_daemons()


class Trial:
    """A job that has run without faults: what it comes to, and the calls that can fail."""

    def __init__(self, site, job):
        self.site, self.job = site, job
        site.fresh()
        before = jobs.describe(site.work)
        stages = []
        clean, expected = self.clean(stages)
        again, second = self.clean([])
        if clean.code or again.code:
            raise RuntimeError(f"{job.name}: exit code {clean.code} without faults: {os.fsdecode(clean.stderr)}")
        unstable = judge.unstable_parts(expected, second)
        only = list(judge.differences(judge.without(expected, unstable), judge.without(second, unstable)))
        if only:
            raise RuntimeError(f"{job.name}: two runs differ: {only}")
        self.stdout = None if job.has("--progress", "--log-file") else stable(clean.stdout) if stable(clean.stdout) == stable(again.stdout) else None
        self.judge = judge.Judge(job, before, expected, unstable, stages[:-1])
        site.fresh()
        if job.has_listener:
            site.daemon(job)
        site.state.reset(recording=True)
        site.run(job)
        self.calls = list(site.state.calls())
        site.state.reset()
        twice = site.run(job)
        self.repeated = jobs.describe(site.work) if twice.code == 0 else None

    def clean(self, stages):
        self.site.fresh()
        self.site.state.reset()
        return self.site.run(self.job, stages), jobs.describe(self.site.work)

    def faults(self, lot):
        """[(place, fault)]: for each place one call that is drawn by lot, with every error; and the first, with one."""
        by_site = collections.defaultdict(list)
        may_run_out = not self.site.sanitized  # a sanitizer that has no memory left for a new thread ends the process itself
        for call, nth, site in self.calls:
            by_site[call, site].append(nth)
        for (call, site), numbers in by_site.items():
            for error in ERRORS.get(call, FILES):
                yield (call, site, error), Fault(call, lot.choice(numbers), error)
                if error in STICKY and call not in NEVER_STICKY and (call not in ALLOCATIONS or may_run_out and lot.random() < 0.3):
                    yield (call, site, error, "+"), Fault(call, lot.choice(numbers), error, True)

    def violations(self, fault):
        """What is wrong after a run with this fault; None if the call did not take place. And the run."""
        site, job = self.site, self.job
        site.fresh()
        if job.has_listener:
            site.daemon(job)
        site.state.reset(fault)
        run = site.run(job)
        fired, self.trace = site.state.fired(), site.state.trace()
        site.state.reset()
        if not fired:
            return None, run
        found = list(self.judged(fault, run))
        # A listener waits for memory; only if there is none for a while it ends, and is started again by who has started it.
        deadline = time.monotonic() + 0.5  # the session or the listener: who has ended is not to be seen at once
        while b"did not see server greeting" in run.stderr and fault.call in ALLOCATIONS and time.monotonic() < deadline and all(
                daemon.process.poll() is None for daemon in site.daemons.values()):
            time.sleep(0.02)
        ended = [daemon.process.returncode for daemon in site.daemons.values() if daemon.process.poll() is not None]
        if any(code != 22 or fault.call not in ALLOCATIONS or not fault.sticky for code in ended):
            found.append(f"the daemon has ended: {ended}")
        # A tree that is whole is one to a second run, too.
        if not run.hung and (run.code or found):
            found += self.after(fault)
        return found, run

    def judged(self, fault, run):
        if run.hung:
            # Stock's receiving side waits for ever for a group of hard links of which no member can be read.
            stock_receives = (self.job.pairing, self.job.way[-4:]) in (("stock/ours", "pull"), ("ours/stock", "push"))
            if not (stock_receives and self.job.has("-H", "-aH", "-aAXH")):
                yield "does not end"
            return
        transparent = fault.error in TRANSPARENT and not fault.sticky
        ours_in_front = self.job.pairing.startswith("ours")
        if ours_in_front or run.code >= 0:
            yield from self.judge.result(run.code, run.stdout, run.stderr, transparent)
        # A file whose basis is gone comes twice; stock does not ask either what becomes of its standard output.
        is_excused = b"will try again" in run.stderr or fault.call in ("fwrite", "fflush")
        if run.code == 0 and self.stdout and stable(run.stdout) != self.stdout and not is_excused:
            yield "exit code 0 with another output"
        yield from self.judge.tree(jobs.describe(self.site.work), run.code, fault.call)

    def is_of_popt(self, fault, run, places):
        """The library reads its own configuration, and does not look whether there was memory for it."""
        crashed = run.code in (-signal.SIGSEGV, 128 + signal.SIGSEGV)
        return crashed and fault.call in ALLOCATIONS and places[:1] and places[0].startswith(("read_line ", "take_words "))

    def after(self, fault):
        """Violations in a second run, without a fault, that follows."""
        # What is longer than its source is skipped by --append; a batch has only what was not there yet.
        if self.repeated is None or self.job.has("--append") or "-batch" in self.job.steps:
            return
        second = self.site.run(self.job)
        if second.hung:
            yield "second run: does not end"
        elif second.code:
            yield f"second run: exit code {second.code}: {os.fsdecode(second.stderr)[:300]}"
        else:
            tree = jobs.describe(self.site.work)
            for line in self.after_tree(tree, fault):
                yield f"second run: {line}"

    def after_tree(self, tree, fault):
        """What is in the source is in the destination; what is left over is what a first run leaves."""
        unstable = self.judge.unstable
        for line in judge.differences(judge.without(self.judge.expected, unstable), judge.without(tree, unstable)):
            path = line.split(": ")[0]
            if not self.is_allowed_later(path, tree, fault):
                yield line

    def is_allowed_later(self, path, tree, fault):
        """Backups are made by each run; a destination that was made whole by the first run is another one to the second."""
        names = path.split("/")
        job, repeated, wanted = self.job, self.repeated, self.judge.expected.get(path)
        if tree.get(path) == repeated.get(path) or job.has("--ignore-existing"):
            return True
        if names[-1] in self.judge.kept and fault.call == "unlinkat":  # nothing is put there in the second run, nor taken away
            return True
        if wanted and path in tree and not job.has("-aAX") and tree[path][:2] == wanted[:2]:
            changed = {key for key in tree[path][2] | wanted[2] if tree[path][2].get(key) != wanted[2].get(key)}
            if changed <= {"xattr system.posix_acl_access"}:  # an older one stays where it is
                return True
        # A source that is gone is not there to give its attributes again, and its directory has another time.
        if "--remove-source-files" in (*job.options, *job.steps.split()) and path in tree and path in self.judge.expected:
            return stat.S_ISDIR(tree[path][0]) or tree[path][:2] == wanted[:2]
        # What had to go for something of another kind that then did not come does not exist any more.
        if job.has("--existing") and path not in tree and self.judge.before.get(path, (0,))[0] != wanted[0]:
            return True
        if any(name == ".kept" or name.endswith(("~", ".old")) for name in names):
            return True
        if fault.call == "unlinkat" and judge.TEMP_NAME.match(names[-1]):
            return True
        return names[0] in ("log", "snap", "one", "two", "batch", "batch.sh")


def symbolise(program, trace):
    if not trace:
        return []
    words = ["addr2line", "-f", "-s", "-e", program, *(hex(address - 1) for address in trace)]
    lines = subprocess.run(words, capture_output=True, text=True).stdout.split("\n")
    return [f"{lines[i]} ({lines[i + 1]})" for i in range(0, len(lines) - 1, 2)]


def build_library(place, sanitized=False):
    path = os.path.join(place, "inject.so")
    words = [*os.environ.get("CC", "cc").split(), "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-shared", "-fPIC", "-fvisibility=hidden",
             *(["-DFAULTS_SANITIZED"] if sanitized else []), "-o", path, os.path.join(HERE, "inject.c"), "-ldl"]
    subprocess.run(words, check=True)
    return path


class Campaign:
    """Many faults, drawn by a seed, until the time or their number is used up."""

    def __init__(self, arguments, out=sys.stdout):
        self.arguments, self.out = arguments, out
        self.deadline = time.monotonic() + arguments.seconds if arguments.seconds else None
        self.had, self.runs, self.jobs, self.found = set(), 0, 0, []
        self.lock, self.stopped = threading.Lock(), False

    def is_over(self):
        return self.stopped or (self.deadline and time.monotonic() > self.deadline) or (self.arguments.count and self.runs >= self.arguments.count)

    def run(self):
        place = tempfile.mkdtemp(prefix="rsync-huai-faults.", dir=self.arguments.place)
        os.chmod(place, 0o755)
        try:
            library = build_library(place, self.arguments.sanitized)
            chosen = [job for job in jobs.all_jobs() if self.arguments.job in (None, job.name)]
            random.Random(self.arguments.seed).shuffle(chosen)
            shares = [chosen[i::self.arguments.processes] for i in range(self.arguments.processes)]
            threads = [threading.Thread(target=self.guarded_share, args=(f"{place}/{i}", library, share, i)) for i, share in enumerate(shares)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:
            self.stopped = True
            for thread in threads:
                thread.join()
            raise
        finally:
            shutil.rmtree(place, ignore_errors=True)
        print(f"{self.jobs} jobs, {self.runs} faults, {len(self.had)} places and errors, {len(self.found)} with violations", file=self.out)
        return not self.found

    def guarded_share(self, *arguments):
        try:
            self.share(*arguments)
        except Exception:
            self.found.append(("", "", ["the test itself failed"]))
            raise

    def share(self, place, library, chosen, number):
        os.mkdir(place)
        site = Site(place, self.arguments.program, library, self.arguments.sanitized)
        lot = random.Random(f"{self.arguments.seed} {number}")
        trials = []
        try:
            if self.arguments.fault:
                for job in chosen:
                    trial = Trial(site, job)
                    self.jobs += 1
                    self.try_one(trial, Fault.parse(self.arguments.fault))
                return
            quantum = self.arguments.share
            while not self.is_over() and chosen:
                for job in list(chosen):
                    if self.is_over():
                        break
                    self.some_of(site, job, lot, quantum, trials)
        finally:
            site.close()

    def some_of(self, site, job, lot, quantum, trials):
        try:
            trial = Trial(site, job)
        except (RuntimeError, AssertionError) as problem:
            self.report(job, None, [str(problem)], None, ())
            return
        self.jobs += job.name not in trials
        trials.append(job.name)
        faults = list(trial.faults(lot))
        lot.shuffle(faults)
        faults.sort(key=lambda item: item[0] in self.had)
        fresh = sum(item[0] not in self.had for item in faults)
        for key, fault in faults[:max(quantum, min(fresh, 3 * quantum))]:
            if self.is_over():
                return
            with self.lock:
                if key in self.had and lot.random() < 0.5:
                    continue
                self.had.add(key)
            self.try_one(trial, fault)

    def try_one(self, trial, fault):
        found, run = trial.violations(fault)
        if found is None:
            if self.arguments.fault:
                print("the call did not take place", file=self.out)
            return
        self.runs += 1
        if self.arguments.fault:
            print(f"exit code {run.code}\n{os.fsdecode(run.stdout)}{os.fsdecode(run.stderr)}", file=self.out)
            print("  " + "\n  ".join(symbolise(self.arguments.program, trial.trace)), file=self.out)
        if found and not trial.is_of_popt(fault, run, symbolise(self.arguments.program, trial.trace[:1])):
            self.report(trial.job, fault, found, run, trial.trace)

    def report(self, job, fault, found, run, trace):
        self.found.append((job.name, str(fault), found))
        places = symbolise(self.arguments.program, trace)
        if self.arguments.log:
            with self.lock, open(self.arguments.log, "a") as file:
                json.dump({"job": job.name, "fault": str(fault), "found": found, "code": run and run.code, "trace": places,
                           "stderr": run and os.fsdecode(run.stderr)[-1500:]}, file)
                file.write("\n")
        print(f"--job '{job.name}' --fault '{fault}'", *(f"    {line}" for line in found[:8]), *(f"      at {line}" for line in places[:6]),
              *(["    " + os.fsdecode(run.stderr).strip().replace("\n", "\n    ")[-600:]] if run else []), sep="\n", file=self.out, flush=True)


def arguments_of(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=harness.HUAI)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--count", type=int, default=0, help="end after so many faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--job")
    parser.add_argument("--fault")
    parser.add_argument("--share", type=int, default=12, help="faults of each job in a row; those at new places are more")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--sanitized", action="store_true", help="the program is built with AddressSanitizer")
    parser.add_argument("--place", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    parser.add_argument("--log", help="violations, as JSON, one a line")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args(words)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = arguments_of(sys.argv[1:])
    if arguments.list:
        print("\n".join(job.name for job in jobs.all_jobs()))
        return 0
    if not arguments.seconds and not arguments.count and not arguments.fault:
        arguments.seconds = 60
    return 0 if Campaign(arguments).run() else 1


if __name__ == "__main__":
    sys.exit(main())
