# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the program and stock rsync: clients, daemons on the loopback address, and a stand-in for the remote shell.

    with harness.Daemon(harness.HUAI, config, directory) as daemon:
        result = harness.run(harness.STOCK, "-a", daemon.url("mod/"), target)
        assert result.code == 0, result.text
"""
import dataclasses
import functools
import grp
import os
import re
import shutil
import signal
import socket
import subprocess
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HUAI = os.path.abspath(os.environ.get("HUAI", "./rsync-huai"))
STOCK = os.environ.get("STOCK", shutil.which("rsync", path="/usr/bin:/usr/local/bin") or "rsync")
NOBODY_GROUP = next((name for name in ("nobody", "nogroup") if name in {g.gr_name for g in grp.getgrall()}), "nogroup")
CLIENT_SECONDS = float(os.environ.get("HUAI_TEST_TIMEOUT", "60"))

# A client must not be steered by the developer's own settings.
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("RSYNC_")}
ENVIRONMENT.update(LC_ALL="C.UTF-8", TZ="UTC", COLUMNS="80")


@functools.lru_cache(maxsize=None)
def stock_version():
    try:
        return subprocess.run([STOCK, "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    except (OSError, IndexError):
        return "no stock rsync"


@dataclasses.dataclass
class Result:
    """What a client did: its exit code and what it wrote, as bytes, and how long it took."""

    words: list
    code: int
    stdout: bytes
    stderr: bytes
    seconds: float = 0.0

    @property
    def text(self):
        command = " ".join(os.fsdecode(word) for word in self.words)
        return f"$ {command}\nexit code {self.code}\n{os.fsdecode(self.stdout)}{os.fsdecode(self.stderr)}"


def run(*words, timeout=None, environment=None, **options):
    """Run a command to its end. One that does not end in time is killed with its whole process group and fails the test."""
    began = time.monotonic()
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL if "input" not in options else subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                               env={**ENVIRONMENT, **(environment or {})}, cwd=options.get("cwd"))
    try:
        stdout, stderr = process.communicate(options.get("input"), timeout=timeout or CLIENT_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        raise AssertionError("did not end in time: " + Result(list(words), -1, stdout, stderr).text) from None
    return Result(list(words), process.returncode, stdout, stderr, time.monotonic() - began)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def tcp_pair(family=socket.AF_INET):
    """Two ends of a TCP connection on the loopback interface: what inetd hands over."""
    with socket.create_server(("127.0.0.1" if family == socket.AF_INET else "::1", 0), family=family) as listening:
        ours = socket.create_connection(listening.getsockname()[:2])
        theirs, _ = listening.accept()
    return ours, theirs


class Daemon:
    """An rsync daemon of either kind, for the length of a `with` block."""

    def __init__(self, program, config, directory, arguments=(), environment=None):
        self.program = program
        self.environment = {**ENVIRONMENT, **(environment or {})}
        self.arguments = list(arguments)
        self.directory = directory
        name = os.path.basename(program)
        self.log_file = os.path.join(directory, f"{name}.log")
        self.config_file = os.path.join(directory, f"{name}.conf")
        with open(self.config_file, "w") as file:
            file.write(f"log file = {self.log_file}\n{config}")
        self.port = None
        self.process = None

    def __enter__(self):
        for _ in range(3):  # another process may take the port between the probe and the start
            self.port = free_port()
            self.process = subprocess.Popen(
                [self.program, "--daemon", "--no-detach", "--config", self.config_file, "--address", "127.0.0.1",
                 "--port", str(self.port), *self.arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                env=self.environment)
            if self._answers():
                return self
            output = self._end_silent()
        raise AssertionError(f"{self.program} --daemon did not start: {output}\n{self.log()}")

    def _answers(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=5) as probe:
                    return probe.recv(8) == b"@RSYNCD:"
            except OSError:
                time.sleep(0.02)
        return False

    def _end_silent(self):
        if self.process.poll() is None:
            self.process.kill()
        return os.fsdecode(self.process.communicate()[0])

    def __exit__(self, *exception):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        end_group(self.process.pid)

    def url(self, path="", user=""):
        return f"rsync://{user}127.0.0.1:{self.port}/{path}"

    def log(self):
        try:
            with open(self.log_file, errors="surrogateescape") as file:
                return file.read()
        except FileNotFoundError:
            return ""


def end_group(group, seconds=5):
    """Wait for the connections of a daemon that has ended; end those that hang."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    os.killpg(group, signal.SIGKILL)


def make_remote_shell(directory):
    """A program for -e: drops its options and the host, and runs the command words as a shell would after a login."""
    path = os.path.join(directory, "remote-shell")
    with open(path, "w") as file:
        file.write('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nshift\ncd /\nexec sh -c "$*"\n')
    os.chmod(path, 0o755)
    return path


# A line of --stats that stock, of protocol 32, does not have; test_block_count.py looks after it.
BLOCK_LINE = rb"(?m)^Number of 4 KiB logical blocks touched: [\d,]+\n"

# Output that depends on the moment, the release or the connection, not on what was done.
NORMALISATIONS = [(re.compile(pattern, re.M), replacement) for pattern, replacement in (
    (rb"^sent [\d,.KMG]+ bytes  received [\d,.KMG]+ bytes  [\d,.KMG]+ bytes/sec$", b"sent N bytes  received N bytes  N bytes/sec"),
    (rb"speedup is [\d,.]+", b"speedup is N"),
    (BLOCK_LINE, b""),
    (rb" at \S+\(\d+\) \[([\w ]+)=[^\]]*\]$", rb" at FILE(LINE) [\1=VERSION]"),
    (rb"^(Total bytes (?:sent|received)|File list size): [\d,.KMG]+", rb"\1: N"),
    (rb"^(File list (?:generation|transfer) time): [\d.]+", rb"\1: N"),
    (rb"[\d,.]+[kMG]?B/s +\d+:\d\d:\d\d", b"RATE TIME"),
    (rb"^(opening tcp connection to 127.0.0.1 port) \d+", rb"\1 PORT"),
    # Which of a stock client's processes hears first that the run is over is a race.
    (rb"\(code 19\) at (.*) \[[Rr]eceiver=", rb"(code 19) at \1 [receiver="),
    # Ours names the list file as the client did, never by its place on the server.
    (rb"(failed to open files-from file )\S*(/lists/none\.txt)", rb"\1\2"),
    (rb"\(\d+ bytes received so far\)", b"(N bytes received so far)"),
    # Whether the last words of a server arrive before the end of the connection or are lost to a reset is a race.
    (rb"^rsync: \[\w+\] read error: Connection reset by peer \(104\)\n", b""),
    (rb"rsync://127\.0\.0\.1:\d+/", b"rsync://HOST/"),
    # Ours speaks a newer protocol than the stock that is installed.
    (rb"^@RSYNCD: 33\.0 ", b"@RSYNCD: 32.0 "),
)]


def without_directory_sizes(listing):
    """Two directories with the same names may have different sizes: by their history on a disk, by their names on tmpfs."""
    return re.sub(rb"^(d\S+) +[\d,.]+", rb"\1 SIZE", listing, flags=re.M)


def normalise(output, *replacements):
    for old, new in replacements:
        output = output.replace(os.fsencode(old), os.fsencode(new))
    for pattern, replacement in NORMALISATIONS:
        output = pattern.sub(replacement, output)
    return output
