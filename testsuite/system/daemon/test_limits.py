# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a client can take before it has been let in: connections, time, memory, processor."""
import contextlib
import os
import re
import signal
import socket

import pytest

import harness
import raw_client
import trees
from test_daemon import GREETING, IDENTITY, PATIENCE, check_config, open_session, server_pids, talk, wait_for

FULL = b"@ERROR: max connections (%d) reached -- try again later\n"


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


@pytest.mark.parametrize("lines, limit", [([], 100), (["max connections per host = 0"], None)])
def test_one_address_does_not_get_all_places(place, tree, lines, limit):
    """By default: more than a network behind one address has, and a tenth of what there is."""
    with limited(place, tree, *lines) as daemon, contextlib.ExitStack() as stack:
        wait_for(lambda: not server_pids(daemon))
        for _ in range(limit or 110):
            connection, answer = open_session(daemon, "mod")
            stack.enter_context(connection)
            assert answer.endswith(b"@RSYNCD: OK\n")
            # The request is a listing that is not read: the handshake is over.
            connection.sendall(b"--server\0--sender\0-r\0.\0mod/\0\0")
            assert connection.recv(1)
        last, answer = open_session(daemon, "mod")
        last.close()
        assert answer.endswith(FULL % limit if limit else b"@RSYNCD: OK\n"), answer
        with socket.create_connection(("127.0.0.1", daemon.port), source_address=("127.0.0.2", 0), timeout=20) as other:
            other.sendall(GREETING + b"#list\n")
            assert b"mod" in b"".join(iter(lambda: other.recv(4096), b""))


@pytest.mark.parametrize("way", ["silent", "deaf"])
def test_a_session_that_makes_room_ends(place, tree, way):
    """A slow one does what the listener asks: whether it waits for words or for the socket to take some."""
    trees.write(f"{tree}/long", bytes(16 << 20))
    config = f"use chroot = no\ncontrol socket = {place}/control\n{IDENTITY}[mod]\npath = {tree}\npost-xfer exec = touch {place}/done\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        wait_for(lambda: not server_pids(daemon))
        with raw_client.over_tcp(daemon.port, "mod", ["-r"]) as client:
            client.send_rules()
            entries = client.read_list()
            if way == "deaf":
                client.request(entries["long"], head=(0, 0, 0, 0))
                wait_for(lambda: "sending" in harness.run(harness.HUAI, "--status", f"--config={daemon.config_file}").text)
            pid, = server_pids(daemon)
            os.kill(pid, signal.SIGTERM)
            wait_for(lambda: not server_pids(daemon), 20)
        assert os.path.exists(f"{place}/done")


def test_the_minimum_rate_is_a_number_of_bytes(place, tree):
    assert check_config(place, f"minimum rate = 0\nuse chroot = no\n{IDENTITY}[mod]\npath = {tree}\n")[0].code == 0
    result, _ = check_config(place, f"minimum rate = -1\n{IDENTITY}[mod]\npath = {tree}\n")
    assert result.code == 1 and 'is not a number of the range of "minimum rate"' in result.text, result.text


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
