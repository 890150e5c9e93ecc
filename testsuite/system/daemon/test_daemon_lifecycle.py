# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals, crashes and restarts of a daemon while clients are at work."""
import os
import resource
import signal
import socket
import subprocess
import sys

import pytest

import harness
import trees
from test_daemon import IDENTITY, open_session, server_pids, wait_for

# Descriptor 3, and the pid that only the new process knows.
ACTIVATE = ("import os, sys; os.dup2(int(sys.argv[1]), 3); "
            "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1'); os.execv(sys.argv[2], sys.argv[2:])")


@pytest.fixture
def tree(place):
    os.makedirs(f"{place}/tree")
    trees.write(f"{place}/tree/small", b"content")
    trees.write(f"{place}/tree/large", trees.noise(3 << 20, 1))
    return f"{place}/tree"


def start_slow_pull(url, place):
    """A client that holds its connection until it may go on."""
    client = subprocess.Popen([harness.STOCK, "-a", "--partial", "--inplace", url, f"{place}/slow/"], env=harness.ENVIRONMENT,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_for(lambda: os.path.exists(f"{place}/slow/large") or client.poll() is not None)
    return client


def finish(client, tree, place):
    assert client.wait(60) == 0, client.stderr.read()
    client.stderr.close()
    with open(f"{tree}/large", "rb") as left, open(f"{place}/slow/large", "rb") as right:
        assert left.read() == right.read()


@pytest.mark.core
def test_running_sessions_outlive_their_listener(place, tree):
    with harness.Daemon(harness.HUAI, f"use chroot = no\n{IDENTITY}[mod]\npath = {tree}\n", place,
                        ["--bwlimit=3000"]) as daemon:
        client = start_slow_pull(daemon.url("mod/"), place)
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "the configuration has no errors" in daemon.log())
        assert client.poll() is None
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(60) == 0
        assert client.poll() is None
        finish(client, tree, place)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_a_crash_of_one_session_is_logged_and_no_others_end(place, tree, number):
    with harness.Daemon(harness.HUAI, f"use chroot = no\nmax connections = 2\nlock file = {place}/lock\n{IDENTITY}"
                                      f"[mod]\npath = {tree}\n", place) as daemon:
        wait_for(lambda: not server_pids(daemon))
        crashing, _ = open_session(daemon, "mod")
        pid, = server_pids(daemon)
        other, answer = open_session(daemon, "mod")
        with crashing, other:
            os.kill(pid, number)
            wait_for(lambda: f"server process {pid} died of signal {int(number)}" in daemon.log())
            assert len(server_pids(daemon)) == 1
            # The slot of the crashed one is free.
            assert harness.run(harness.STOCK, "-a", daemon.url("mod/small"), f"{place}/out/").code == 0
            other.settimeout(0.1)
            with pytest.raises(TimeoutError):
                other.recv(1)
        assert daemon.process.poll() is None


def activate(listening, config, notify):
    return subprocess.Popen([sys.executable, "-c", ACTIVATE, str(listening.fileno()), harness.HUAI, "--daemon", "--no-detach",
                             f"--config={config}", "--bwlimit=3000"], pass_fds=[listening.fileno()],
                            stdin=subprocess.DEVNULL, env={**harness.ENVIRONMENT, "NOTIFY_SOCKET": notify})


def test_a_restart_with_socket_activation_refuses_nobody(place, tree):
    config = os.path.join(place, "activated.conf")
    with open(config, "w") as file:
        file.write(f"log file = {place}/log\nuse chroot = no\n{IDENTITY}[mod]\npath = {tree}\n")
    with socket.socket() as listening, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        listening.bind(("127.0.0.1", 0))
        listening.listen(50)
        notified.bind(f"{place}/notify")
        notified.settimeout(20)
        os.chmod(f"{place}/notify", 0o777)
        url = f"rsync://127.0.0.1:{listening.getsockname()[1]}/mod/"
        daemons = [activate(listening, config, f"{place}/notify")]
        clients = []
        try:
            assert b"READY=1" in notified.recv(4096)
            slow = start_slow_pull(url, place)
            for turn in range(2):
                # Some come before the end, some while nobody is there to accept them.
                for moment in range(3):
                    if moment == 1:
                        daemons[-1].send_signal(signal.SIGTERM)
                    if moment == 2:
                        assert daemons[-1].wait(60) == 0
                    clients.append(subprocess.Popen([harness.STOCK, "-a", f"{url}small", f"{place}/{turn}-{moment}/"],
                                                    env=harness.ENVIRONMENT, stdin=subprocess.DEVNULL))
                assert b"STOPPING=1" in notified.recv(4096)
                daemons.append(activate(listening, config, f"{place}/notify"))
                assert b"READY=1" in notified.recv(4096)
            assert [client.wait(60) for client in clients] == [0] * len(clients)
            finish(slow, tree, place)
        finally:
            for process in (*daemons, *clients):
                if process.poll() is None:
                    process.terminate()
                process.wait(60)


def test_listener_waits_for_memory(place):
    """It reads a configuration that has grown, for which there is no memory at first."""
    os.mkdir(f"{place}/tree")
    modules = "".join(f"[m{number}]\npath = {place}/tree\ncomment = {'x' * 400}\n" for number in range(10_000))
    with harness.Daemon(harness.HUAI, f"use chroot = no\n{IDENTITY}[mod]\npath = {place}/tree\n", place) as daemon:
        assert harness.run(harness.STOCK, daemon.url("mod/")).code == 0
        pid = daemon.process.pid
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        before = resource.prlimit(pid, resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
        with open(daemon.config_file, "a", encoding="utf-8") as file:
            file.write(modules)
        client = subprocess.Popen([harness.STOCK, daemon.url("mod/")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: "out of memory: cannot allocate" in daemon.log())
        finally:
            resource.prlimit(pid, resource.RLIMIT_AS, before)
        client.wait(30)
        assert "trying again" in daemon.log()
        assert harness.run(harness.STOCK, daemon.url("m9999/")).code == 0
        assert daemon.process.poll() is None
