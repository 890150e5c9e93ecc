# SPDX-License-Identifier: GPL-3.0-or-later
"""What rsyncd.conf(5) says, as a row: section, sentences, the consequence, a configuration, what clients do, what shows it.

    Promise("read only", "1 2", "a push is refused", "read only = yes", "-r s/ @m/", (text("m/a", A),), codes=(1,))

Each row is run with a stock daemon and with ours, with equal trees and stock clients: what shows the consequence has to hold
for both, and everything else (exit codes, output, the daemon's log, all files) has to be the same. Both daemons read their file
anew for every connection, so one of each kind serves nearly all rows.
"""
import contextlib
import dataclasses
import os
import re
import shutil
import socket
import time

import harness
import promises
import trees
from promises import TIME, put, settle

IS_ROOT = os.geteuid() == 0
HEAD = "use chroot = no\ntimeout = 0\nlock file = {top}/lock\n" + ("uid = 0\ngid = 0\n" if IS_ROOT else "")
GREETING = "@RSYNCD: 31.0 sha512 sha256 sha1 md5 md4"
A, B, C = "content of a\n", "content of b\n", "content of c\n"
NEW = "new content of a\n"


@dataclasses.dataclass(frozen=True)
class Promise:
    section: str
    sentences: str              # their numbers: "1 3-5"
    says: str
    module: str                 # lines of the module m; "{top}" is the directory that holds everything
    acts: object                # one or more: what a client is called with ("-r joe:password@m/ t/"), or functions of the Scene
    shows: tuple
    make: object = None         # builds what there is; make_site without it
    codes: tuple = (0,)         # of each act; the last one holds for those that follow
    before: str = ""            # lines of the global part
    bare: bool = False          # without HEAD
    root: bool = False          # needs to be root
    own: bool = False           # has a daemon of its own
    words: tuple = ()           # its arguments
    environment: dict = None    # what it has in its environment
    alone: bool = False         # the row starts what it needs
    needs: str = ""             # a program that may be missing
    only_shown: str = ""        # why only what is shown has to agree
    stock_shows: tuple = None   # what stock does in its place, for the reason in only_shown
    apart: tuple = ()           # files whose content differs from run to run

    @property
    def name(self):
        return f"{self.section} {self.says}".replace("/", "|").replace("[", "(").replace("]", ")")

    def config(self, top):
        head = "" if self.bare else HEAD
        return f"{head}{self.before}\n[m]\npath = {{top}}/m\n{self.module}\n".replace("{top}", top)


def make_site(top):
    """The module `m`, which has a symlink to `outside`; and `s`, which is pushed to it."""
    for name in ("m/d/e", "s/d"):
        os.makedirs(f"{top}/{name}")
    for name, content in (("m/a", A), ("m/d/b", B), ("m/d/e/c", C), ("m/x.log", "log\n"), ("outside", "outside\n"),
                          ("s/new", "new\n"), ("s/a", NEW), ("s/d/b", B)):
        put(f"{top}/{name}", content, TIME - (1000 if name == "m/a" else 0))
    for name, target in (("m/l", "a"), ("m/out", "../outside"), ("s/in", "d/b")):
        os.symlink(target, f"{top}/{name}")
        os.utime(f"{top}/{name}", (TIME, TIME), follow_symlinks=False)
    put(f"{top}/secrets", "# a comment\njoe:pw\nann:a:b c\n@root:group\n@nosuchgroup:group\nroot:own\n", mode=0o600)
    for name in ("m", "s"):
        settle(f"{top}/{name}")


class Scene:
    """A daemon, and the directory that one row of it is played in."""

    def __init__(self, program, top, config, daemon=None):
        self.program, self.top, self.config, self.daemon = program, top, config, daemon
        self.port = daemon.port if daemon else None

    def call(self, words, environment=None):
        """Stock's client, in the row's directory; "@m/" and "joe:password@m/" are places in the daemon."""
        environment, found = {"RSYNC_PASSWORD": "", **(environment or {})}, []
        for word in words.replace("{top}", self.top).split():
            match = re.fullmatch(r"(?:([^@:/]*):([^@]*)@|@)([^@]*)", word)
            if match:
                user = f"{match[1]}@" if match[1] else ""
                if user:
                    environment["RSYNC_PASSWORD"] = match[2].replace("_", " ")
                word = f"rsync://{user}127.0.0.1:{self.port}/{match[3]}"
            found.append(word)
        return harness.run(harness.STOCK, *found, cwd=self.top, environment=environment)

    def wait(self):
        """Until every session has ended, and has logged what it had to."""
        if not self.daemon:
            return
        deadline = time.monotonic() + 30
        pid = self.daemon.process.pid
        while time.monotonic() < deadline:
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                if not file.read().strip():
                    return
            time.sleep(0.005)
        raise AssertionError("sessions did not end")


class Seen(promises.Seen):
    def __init__(self, top, results, log):
        super().__init__(top, results[-1] if results else harness.Result([], 0, b"", b""))
        self.results, self.log = results, log
        self.codes = tuple(result.code for result in results)
        self.out, self.err = b"".join(result.stdout for result in results), b"".join(result.stderr for result in results)

    @property
    def report(self):
        return "".join(result.text for result in self.results) + f"log:\n{self.log}\n"


# --- what clients do, other than to be called with words ---

def ask(module="m", source="127.0.0.1", greeting=GREETING, header=b"", more=b""):
    """Comes to the daemon from an address, with a proxy's header or without, and says what it answers up to its decision."""
    def act(scene):
        answer = b""
        with socket.create_connection(("127.0.0.1", scene.port), source_address=(source, 0), timeout=30) as client:
            client.sendall(header + f"{greeting}\n{module}\n".encode() + more)
            while not re.search(rb"^@(ERROR|RSYNCD: (OK|AUTHREQD|EXIT))", answer, re.M) or not answer.endswith(b"\n"):
                try:
                    piece = client.recv(4096)
                except ConnectionResetError:
                    piece = b""
                if not piece:
                    break
                answer += piece
        answer = re.sub(rb"AUTHREQD \S+", b"AUTHREQD", answer)
        code = 0 if b"@RSYNCD: OK" in answer else 10 if not answer else 1 if b"AUTHREQD" in answer else 5
        return harness.Result([f"ask {module} from {source}"], code, answer, b"")
    return act


@contextlib.contextmanager
def admitted(scene, module):
    """A connection that has been admitted to a module, as long as the block lasts."""
    with socket.create_connection(("127.0.0.1", scene.port), timeout=30) as client:
        client.sendall(f"{GREETING}\n{module}\n".encode())
        answer = b""
        while b"@RSYNCD: OK" not in answer:
            piece = client.recv(4096)
            assert piece, answer
            answer += piece
        yield


def during(first, *acts):
    """The acts while `first`, a connection that has been admitted to a module, stays open."""
    def act(scene):
        with admitted(scene, first):
            results = [act(scene) if callable(act) else scene.call(act) for act in acts]
        return harness.Result(["during a session:", *results[-1].words], results[-1].code,
                              b"".join(result.stdout for result in results), b"".join(result.stderr for result in results))
    return act


def calling(words, environment):
    return lambda scene: scene.call(words, environment)


def edit(function):
    """Changes something between two acts."""
    def act(scene):
        function(scene)
        return harness.Result(["edit"], 0, b"", b"")
    return act


# --- what shows a consequence ---

def logs(*texts):
    return lambda seen: all(text in seen.log for text in texts)


def unlogged(*texts):
    return lambda seen: not any(text in seen.log for text in texts)


def file_says(path, *texts):
    return lambda seen: all(text.encode() in seen.texts[path] for text in texts)


def file_lacks(path, *texts):
    return lambda seen: not any(text.encode() in seen.texts.get(path, b"") for text in texts)


def output(number, *texts):
    """What the act of that number wrote, on both streams."""
    return lambda seen: all(text.encode() in seen.results[number].stdout + seen.results[number].stderr for text in texts)


def codes(*wanted):
    return lambda seen: seen.codes == wanted


# --- one row with one daemon ---

# What rows leave in files that hold ports, numbers of processes or the name of the program.
APART = ("pid", "shell.log", "shell.conf", "started.conf", "inetd.conf", "remote-shell")

STAMP = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\d+\] ", re.M)
LOG_NOISE = [(re.compile(pattern, re.M), replacement) for pattern, replacement in (
    (r"sent \d+ bytes  received \d+ bytes", "sent N bytes  received N bytes"),
    (r'"/(?=[^"\n]*" \(in )', '"'),
    (r'(mkstemp "(?:[^"\n]*/)?)\.([^"\n]+)\.\w{6}"', r'\1\2"'),
    (r" at \S+\(\d+\) \[([\w ]+)=[^\]]*\]$", r" at FILE(LINE) [\1]"),
)]


# What becomes of a session whose client has gone after the daemon's decision is of no interest.
GONE = re.compile(r"connection unexpectedly closed|safe_(read|write) failed|error in rsync protocol data stream"
                  r"|Connection reset by peer|requested action not supported \(code 4\)|invalid challenge response")


def log_lines(text):
    text = STAMP.sub("", text)
    for pattern, replacement in LOG_NOISE:
        text = pattern.sub(replacement, text)
    return sorted(line for line in text.splitlines() if not GONE.search(line))


def play(promise, program, top, shared):
    """Seen, and the description of all files."""
    os.mkdir(top)
    (promise.make or make_site)(top)
    trees.write(f"{top}/began", b"", mtime_ns=time.time_ns())
    since = (int(time.time()) - 1) * 1_000_000_000
    own, before, config = None, 0, promise.config(top)
    try:
        if promise.alone:
            scene = Scene(program, top, config)
        elif promise.own or promise.words or promise.environment:
            os.mkdir(f"{top}/daemon")
            own = harness.Daemon(program, config, f"{top}/daemon", [word.replace("{top}", top) for word in promise.words],
                                 {key: value.replace("{top}", top) for key, value in (promise.environment or {}).items()})
            scene = Scene(program, top, config, own.__enter__())
            scene.wait()
            before = len(own.log())
        else:
            before = len(shared.log())
            trees.write(shared.config_file, f"log file = {shared.log_file}\n{config}".encode())
            scene = Scene(program, top, config, shared)
        acts = promise.acts if isinstance(promise.acts, (tuple, list)) else (promise.acts,)
        results = []
        for act in acts:
            results.append(act(scene) if callable(act) else scene.call(act))
            scene.wait()
        log = scene.daemon.log()[before:] if scene.daemon else ""
        if own:
            own.__exit__(None, None, None)
            shutil.rmtree(f"{top}/daemon")
            own = None
        seen = Seen(top, results, log)
        tree = trees.describe(top, since_ns=since)
        for name in (*promise.apart, *APART):
            tree.get(name.encode(), {}).pop("content", None)
        return seen, tree
    finally:
        if own:
            own.__exit__(None, None, None)
        shutil.rmtree(top)
