# SPDX-License-Identifier: GPL-3.0-or-later
"""Many clients at once: whoever comes is heard, soon, and long transfers make way for short ones."""
import contextlib
import os
import selectors
import socket
import time

import harness
import pytest
import raw_client
import trees
from test_daemon import server_pids

CROWD = 300
LONG = 8 << 20
OWNER = "uid = 0\ngid = 0\n" if trees.IS_ROOT else ""


@pytest.fixture
def daemon(tmp_path):
    (tmp_path / "data").mkdir()
    trees.write(str(tmp_path / "data" / "long"), bytes(LONG))
    config = f"use chroot = no\nreverse lookup = no\n{OWNER}[mod]\npath = {tmp_path}/data\n"
    with harness.Daemon(harness.HUAI, config, str(tmp_path)) as running:
        yield running


def begin_connection(port, number):
    """From a loopback address of its own: the limits of one client are not what is tested."""
    connection = socket.socket()
    connection.setblocking(False)
    connection.bind((f"127.1.{number // 255}.{number % 255 + 1}", 0))
    connection.connect_ex(("127.0.0.1", port))
    return connection


def test_crowd_that_comes_at_once_is_greeted(daemon):
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for number in range(CROWD):
            connection = stack.enter_context(begin_connection(daemon.port, number))
            selector.register(connection, selectors.EVENT_READ)
        deadline = time.monotonic() + 60
        while selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(1):
                assert key.fileobj.recv(8) == b"@RSYNCD:"
                selector.unregister(key.fileobj)
        assert not selector.get_map(), f"{len(selector.get_map())} connections have no greeting"


def seconds_until_set_up(port):
    """Words in pieces, as clients send them: the client's kernel sends a piece when the one before has been acknowledged."""
    with raw_client.connect(port) as connection, connection.makefile("rb") as lines:
        lines.readline()
        connection.sendall(b"@RSYNCD: 31.0 md5\nmod\n")
        assert lines.readline() == b"@RSYNCD: OK\n"
        began = time.monotonic()
        for piece in (b"--server", b"\0--sender", b"\0-r\0.\0", b"mod/\0", b"\0"):
            connection.sendall(piece)
        assert lines.read(1)
        return time.monotonic() - began


def test_words_in_pieces_are_not_held_up(daemon):
    # A delayed acknowledgement takes 40 ms, always; other work on this machine, only now and then.
    assert any(seconds_until_set_up(daemon.port) < 0.035 for _ in range(100))


@pytest.mark.core
def test_long_transfers_make_way(daemon):
    base = os.getpriority(os.PRIO_PROCESS, daemon.process.pid)
    before = set(server_pids(daemon))
    with raw_client.over_tcp(daemon.port, "mod", ["-r"], ["mod/"]) as long:
        long.send_rules()
        session, = set(server_pids(daemon)) - before
        entry = long.read_list()["long"]
        assert os.getpriority(os.PRIO_PROCESS, session) == base
        long.request(entry)
        while len(long.stream) < LONG // 2:
            long.receive()
        assert os.getpriority(os.PRIO_PROCESS, session) == min(base + 10, 19)
