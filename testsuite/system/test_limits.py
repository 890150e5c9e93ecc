# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a client can take before it has been let in: connections, time, memory, processor."""
import os
import re
import signal
import socket

import pytest

import harness
import trees
from test_daemon import GREETING, IDENTITY, PATIENCE, check_config, open_session, server_pids, talk, wait_for

FULL = b"@ERROR: max connections (%d) reached -- try again later\n"


@pytest.fixture
def tree(place):
    os.makedirs(f"{place}/tree")
    trees.write(f"{place}/tree/file", b"content")
    return f"{place}/tree"


def limited(place, tree, *lines):
    return harness.Daemon(harness.HUAI, "\n".join(("use chroot = no", *lines, IDENTITY, f"[mod]\npath = {tree}\n")), place)


def pull(daemon, place):
    return harness.run(harness.STOCK, "-a", daemon.url("mod/"), f"{place}/out")


@pytest.mark.core
def test_connections_of_a_host_are_limited(place, tree):
    with limited(place, tree, "max connections per host = 2") as daemon:
        wait_for(lambda: not server_pids(daemon))
        held = [open_session(daemon, "mod")[0] for _ in range(2)]
        refused = pull(daemon, place)
        assert refused.code == 5
        assert FULL[:-1] % 2 in refused.stderr, refused.text
        assert "max connections per host (2) reached by " in daemon.log()
        assert FULL % 2 in talk(daemon, GREETING + b"#list\n")[0]
        with socket.create_connection(("127.0.0.1", daemon.port), source_address=("127.0.0.2", 0), timeout=20) as other:
            other.sendall(GREETING + b"#list\n")
            assert b"mod" in b"".join(iter(lambda: other.recv(4096), b""))
        held.pop().close()
        wait_for(lambda: len(server_pids(daemon)) == 1)
        assert pull(daemon, place).code == 0
        held.pop().close()


def test_the_rate_of_a_host_is_limited(place, tree):
    with limited(place, tree, "max connection rate = 4") as daemon:
        codes = [pull(daemon, place).code for _ in range(4)]
        # The first connection was the harness's own.
        assert codes == [0, 0, 0, 5]
        assert "max connection rate (4) reached by " in daemon.log()
        assert talk(daemon, GREETING + b"mod\n")[0].endswith(FULL % 4)


def test_limits_are_reread_on_sighup(place, tree):
    with limited(place, tree, "max connection rate = 1") as daemon:
        assert pull(daemon, place).code == 5
        with open(daemon.config_file) as file:
            text = file.read()
        with open(daemon.config_file, "w") as file:
            file.write(text.replace("rate = 1", "rate = 9"))
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "the configuration has no errors" in daemon.log())
        assert pull(daemon, place).code == 0


def test_values_are_checked(place, tree):
    module = f"[mod]\npath = {tree}\n"
    assert check_config(place, f"max connections per host = 3\nmax connection rate = 60\n{module}")[0].code == 0
    for line in ("max connections per host = -1", "max connection rate = often"):
        result, _ = check_config(place, f"{line}\n{module}")
        assert result.code == 1
        assert line.split(" =")[0] in result.text, result.text


def memory_of(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"^RssAnon:\s+(\d+)", file.read(), re.M)[1])


def test_a_stranger_costs_little_memory_and_processor_time(place, tree):
    with limited(place, tree) as daemon:
        wait_for(lambda: not server_pids(daemon))
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=20) as connection:
            assert connection.recv(8) == b"@RSYNCD:"
            pid, = server_pids(daemon)
            before = memory_of(pid)
            connection.sendall(b"@RSYNCD: 31.0 " + b"md5 " * 250 + b"\n#early_input=5120\n" + b"x" * 5120 + b"y" * 1000)
            wait_for(lambda: not waiting_bytes(connection))
            assert memory_of(pid) - before < 1024
            assert limits_of(pid) == "60"
        connection, answer = open_session(daemon, "mod")
        with connection:
            assert answer.endswith(b"@RSYNCD: OK\n")
            wait_for(lambda: [limits_of(pid) for pid in server_pids(daemon)] == ["unlimited"])


def waiting_bytes(connection):
    """What the other end of the connection has not read yet."""
    port = f":{connection.getsockname()[1]:04X}"
    with open("/proc/net/tcp") as file:
        rows = [line.split() for line in file if line.split()[2].endswith(port)]
    return int(rows[0][4].split(":")[1], 16) if rows else 0


def limits_of(pid):
    with open(f"/proc/{pid}/limits") as file:
        return re.search(r"^Max cpu time\s+(\S+)", file.read(), re.M)[1]


def test_the_text_phase_takes_only_so_many_bytes(place, tree):
    with limited(place, tree) as daemon:
        for data in (b"x" * 100000, GREETING + b"m" * 100000, GREETING + b"#early_input=99999\n"):
            _, seconds = talk(daemon, data)
            assert seconds < PATIENCE
