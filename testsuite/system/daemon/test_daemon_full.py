# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon that has as many server processes as it may have: who only connects, or only holds a place, makes room."""
import contextlib
import os
import resource
import socket
import subprocess
import time

import pytest

import harness
import trees
from test_daemon import GREETING, open_session, server_pids, wait_for
from test_daemon_auth import closed_module

PLACES = 1024
FULL = b"@ERROR: max connections (1024) reached -- try again later"


@pytest.fixture(autouse=True)
def descriptors():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[1] < PLACES + 200:
        pytest.skip("too few file descriptors for this many clients")
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def connect(daemon, number):
    """From an address for every few of them: how many one client may have is tested elsewhere."""
    connection = socket.create_connection(("127.0.0.1", daemon.port), source_address=(f"127.2.0.{number // 8 + 1}", 0), timeout=60)
    assert connection.recv(8) == b"@RSYNCD:"
    return connection


def send_all(connections, data, answer):
    """To all of them first, so that their processes need not wait for each other."""
    for connection in connections:
        connection.sendall(data)
    for connection in connections:
        seen = b""
        while not seen.endswith(answer):
            part = connection.recv(4096)
            assert part, seen
            seen += part


def was_ended(connection):
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(4096):
            pass
    return True


def pull(daemon, place):
    return harness.run(harness.STOCK, "-a", daemon.url("open/"), f"{place}/out")


def counts(daemon, place):
    daemon.process.terminate()
    daemon.process.wait(60)
    with open(f"{place}/metrics") as file:
        return dict(line.rsplit(" ", 1) for line in file.read().splitlines() if not line.startswith("#"))


def test_who_names_no_module_makes_room(place):
    os.makedirs(f"{place}/tree")
    trees.write(f"{place}/tree/file", b"content")
    config = f"metrics file = {place}/metrics\n{closed_module(place, place + '/tree')}[open]\npath = {place}/tree\n"
    with contextlib.ExitStack() as stack, harness.Daemon(harness.HUAI, config, place) as daemon:
        wait_for(lambda: not server_pids(daemon))
        chosen, answer = open_session(daemon, "open")
        stack.enter_context(chosen)
        assert answer.endswith(b"@RSYNCD: OK\n")
        asked = stack.enter_context(connect(daemon, PLACES))
        asked.sendall(GREETING + b"closed\n")
        idle = [stack.enter_context(connect(daemon, number)) for number in range(3)]
        came = time.monotonic()
        idle += [stack.enter_context(connect(daemon, number)) for number in range(3, PLACES - 2)]
        assert len(server_pids(daemon)) == PLACES
        # Each of them has a second.
        wait_for(lambda: time.monotonic() - came > 1.1)
        for number in range(2):
            result = pull(daemon, place)
            assert result.code == 0, result.text
            assert was_ended(idle[number])
            wait_for(lambda: len(server_pids(daemon)) < PLACES)
            idle.append(stack.enter_context(connect(daemon, PLACES + 8 + number)))
        send_all([asked], b"joe guess\n", b"@ERROR: auth failed on module closed\n")
        # Nobody is ended any more.
        send_all(idle[2:], GREETING + b"open\n", b"@RSYNCD: OK\n")
        wait_for(lambda: len(server_pids(daemon)) < PLACES)
        send_all([stack.enter_context(connect(daemon, PLACES))], GREETING + b"open\n", b"@RSYNCD: OK\n")
        result = pull(daemon, place)
        assert result.code == 5 and FULL in result.stderr, result.text
        send_all([chosen], b"--server\0--sender\0-r\0.\0open/nothing\0\0", b"")
        assert chosen.recv(1)
        found = counts(daemon, place)
    assert found['rsync_huai_connections_total{module="",outcome="crowded_out"}'] == "2"
    assert found['rsync_huai_connections_total{module="",outcome="signal"}'] == "0"
    lines = [line for line in daemon.log().splitlines() if "too many server processes: ended " in line]
    assert [line.split("processes: ", 1)[1] for line in lines] == 2 * [
        "ended 1 of clients that had not been let in, the last that of 127.2.0.1"]
    assert "died of signal" not in daemon.log()


@pytest.mark.skipif(os.environ.get("HUAI_CROWD") != "full", reason="waits two minutes: HUAI_CROWD=full")
def test_who_moves_next_to_nothing_makes_room(place):
    """All places taken by sessions that were let in: those that send a byte now and then go, one that is at work stays."""
    os.makedirs(f"{place}/tree")
    trees.write(f"{place}/tree/file", b"content")
    trees.write(f"{place}/tree/long", bytes(8 << 20))
    # A frame with a filter rule of a thousand bytes follows, one by one.
    request = b"--server\0--sender\0-r\0.\0open/\0\0" + (7 << 24 | 1004).to_bytes(4, "little") + (1000).to_bytes(4, "little")
    config = f"use chroot = no\nreverse lookup = no\nmetrics file = {place}/metrics\n[open]\npath = {place}/tree\n"
    with contextlib.ExitStack() as stack, harness.Daemon(harness.HUAI, config, place) as daemon:
        wait_for(lambda: not server_pids(daemon))
        slow = subprocess.Popen(
            [harness.STOCK, "--bwlimit=40", daemon.url("open/long"), f"{place}/slow"], env=harness.ENVIRONMENT)
        stack.callback(slow.wait)
        stack.callback(slow.kill)
        wait_for(lambda: [name for name in os.listdir(place) if name.startswith(".slow")])
        idle = [stack.enter_context(connect(daemon, number)) for number in range(PLACES - 1)]
        send_all(idle, GREETING + b"open\n", b"@RSYNCD: OK\n")
        for connection in idle:
            connection.sendall(request)
        assert FULL in pull(daemon, place).stderr
        began = time.monotonic()
        while time.monotonic() - began < 130:
            for connection in idle:
                with contextlib.suppress(OSError):
                    connection.sendall(b"-")
            time.sleep(5)
        result = pull(daemon, place)
        assert result.code == 0, result.text
        assert slow.poll() is None
        # It is given time to hear why.
        wait_for(lambda: len(server_pids(daemon)) < PLACES)
        found = counts(daemon, place)
    assert int(found['rsync_huai_connections_total{module="open",outcome="crowded_out"}']) == 1
    assert "of sessions below the minimum rate, the last that of 127.2.0." in daemon.log()
