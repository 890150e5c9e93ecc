# SPDX-License-Identifier: GPL-3.0-or-later
"""--status: who is connected to the running daemon, doing what, since when, how fast."""
import concurrent.futures
import os
import re
import socket
import stat
import subprocess

import pytest

import harness
import trees
from test_daemon import GREETING, IDENTITY, open_session, server_pids, talk, wait_for

root_only = pytest.mark.skipif(not trees.IS_ROOT, reason="changes its identity")
LINE = re.compile(r"(\d+) ([a-z]+) since \d{4}/\d\d/\d\d \d\d:\d\d:\d\d \((\d+) s\): (\S+) module (.*), received (\d+), sent (\d+), "
                  r"files (\d+), (\d+) bytes/s")
TOTAL = re.compile(r"total: connections (\d+), received (\d+), sent (\d+), files (\d+), (\d+) bytes/s")


class Controlled(harness.Daemon):
    def __init__(self, place, modules):
        self.socket = f"{place}/control"
        super().__init__(harness.HUAI, f"use chroot = no\ncontrol socket = {self.socket}\n{IDENTITY}{modules}", place)

    def ask(self, **identity):
        return subprocess.run([harness.HUAI, "--status", f"--config={self.config_file}"], capture_output=True, timeout=30,
                              env=harness.ENVIRONMENT, check=False, **identity)

    def status(self):
        result = self.ask()
        assert result.returncode == 0, result.stderr
        *lines, total = result.stdout.decode().splitlines()
        return [LINE.fullmatch(line).groups() for line in lines], [int(word) for word in TOTAL.fullmatch(total).groups()]


@pytest.fixture
def tree(place):
    os.makedirs(f"{place}/tree")
    trees.write(f"{place}/tree/file", b"x" * 3000000)
    return f"{place}/tree"


def start_pull(*words):
    return subprocess.Popen([harness.STOCK, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            env=harness.ENVIRONMENT)


def module(tree):
    return f"[mod]\npath = {tree}\n"


@pytest.mark.core
def test_everybody_has_a_line(place, tree):
    with Controlled(place, module(tree)) as daemon:
        wait_for(lambda: not server_pids(daemon))
        assert stat.S_IMODE(os.stat(daemon.socket).st_mode) == 0o600
        assert daemon.status() == ([], [0, 0, 0, 0, 0])
        waiting = socket.create_connection(("127.0.0.1", daemon.port), timeout=20)
        admitted = open_session(daemon, "mod")[0]
        wait_for(lambda: all(line[3] != "-" for line in daemon.status()[0]))
        lines, total = daemon.status()
        assert sorted(line[4] for line in lines) == ["-", "mod"]
        assert {int(line[0]) for line in lines} == set(server_pids(daemon))
        assert all(line[1] == "handshake" and line[3] == "127.0.0.1" and int(line[2]) < 60 for line in lines)
        assert {line[5] for line in lines} == {"0", str(len(GREETING) + 4)}
        assert total[0] == 2 and total[1] == sum(int(line[5]) for line in lines)
        waiting.close()
        admitted.close()
        wait_for(lambda: daemon.status()[1][0] == 0)


def test_a_transfer_is_seen_to_go_on(place, tree):
    with Controlled(place, module(tree)) as daemon:
        pull = start_pull( "-a", "--bwlimit=500", daemon.url("mod/"), f"{place}/out")
        wait_for(lambda: [line for line in daemon.status()[0] if line[1] == "sending" and int(line[6]) > 100000])
        first = int(daemon.status()[0][0][6])
        line = wait_for(lambda: [line for line in daemon.status()[0] if int(line[6]) > first])[0]
        assert line[4] == "mod" and line[7] == "0" and int(line[8]) > 0
        pull.terminate()
        pull.wait(60)


def test_a_user_is_named(place, tree):
    with open(f"{place}/secrets", "w") as file:
        file.write("anna:word\n")
    os.chmod(f"{place}/secrets", 0o600)
    with open(f"{place}/password", "w") as file:
        file.write("word\n")
    os.chmod(f"{place}/password", 0o600)
    with Controlled(place, f"{module(tree)}auth users = anna\nsecrets file = {place}/secrets\n") as daemon:
        connection = socket.create_connection(("127.0.0.1", daemon.port), timeout=20)
        connection.sendall(GREETING + b"mod\n")
        wait_for(lambda: [line for line in daemon.status()[0] if line[1] == "authentication"])
        connection.close()
        pull = start_pull( "-a", "--bwlimit=500", f"--password-file={place}/password",
                             daemon.url("mod/", "anna@"), f"{place}/out")
        wait_for(lambda: [line for line in daemon.status()[0] if line[3] == "anna@127.0.0.1"])
        pull.terminate()
        pull.wait(60)


def test_many_may_ask_while_others_say_nothing(place, tree):
    with Controlled(place, module(tree)) as daemon:
        silent = []
        for _ in range(12):
            silent.append(socket.socket(socket.AF_UNIX))
            silent[-1].connect(daemon.socket)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert [result.returncode for result in pool.map(lambda _: daemon.ask(), range(16))] == [0] * 16
        assert b"mod" in talk(daemon, GREETING + b"#list\n")[0]
        for connection in silent:
            connection.close()


def test_without_a_socket_or_a_daemon_there_is_no_answer(place, tree):
    daemon = Controlled(place, module(tree))
    result = daemon.ask()
    assert result.returncode == 1 and not result.stdout
    assert f"no daemon answers at the control socket {daemon.socket}: No such file".encode() in result.stderr
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(daemon.socket)
    stale.close()
    assert daemon.ask().returncode == 1
    with daemon:
        assert daemon.ask().returncode == 0  # the name was taken over
        other = harness.run(harness.HUAI, "--daemon", "--no-detach", f"--config={daemon.config_file}", "--port",
                            str(harness.free_port()))
        assert other.code == 11 and b"Address already in use" in other.stderr
        assert daemon.ask().returncode == 0
    assert not os.path.exists(daemon.socket)
    trees.write(daemon.socket, b"precious")
    other = harness.run(harness.HUAI, "--daemon", "--no-detach", f"--config={daemon.config_file}", "--port",
                        str(harness.free_port()))
    assert other.code == 11 and b"File exists" in other.stderr
    result = harness.run(harness.HUAI, "--status", "--config=/dev/null")
    assert result.code == 1 and b"names no control socket" in result.stderr


@root_only
def test_others_are_not_told(place, tree):
    with Controlled(place, module(tree)) as daemon:
        for mode, reason in ((0o600, b"Permission denied"), (0o666, b"Connection reset")):
            os.chmod(daemon.socket, mode)
            result = daemon.ask(user=65534, group=65534, extra_groups=[])
            assert result.returncode == 1 and reason in result.stderr and not result.stdout, result.stderr
