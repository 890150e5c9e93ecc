# SPDX-License-Identifier: GPL-3.0-or-later
"""What one client may take of one module, and how long it waits after wrong passwords."""
import contextlib
import os
import selectors
import signal
import socket
import time

import pytest

import harness
from test_daemon import GREETING, IDENTITY, PATIENCE, check_config, open_session, server_pids, wait_for
from test_daemon_auth import closed_module, log_in
from test_daemon_lifecycle import activate
from test_daemon_parameters import Proxied

FULL = b"@ERROR: max connections (%d) reached -- try again later\n"
WRONG = "@ERROR: auth failed on module closed\n"


def from_host(daemon, host, module):
    """A session of another client of this machine, and the last line that it receives."""
    connection = socket.create_connection(("127.0.0.1", daemon.port), source_address=(host, 0), timeout=20)
    connection.sendall(GREETING + module.encode() + b"\n")
    answer = b""
    while not (answer.endswith(b"@RSYNCD: OK\n") or b"@ERROR" in answer):
        answer += connection.recv(4096)
    return connection, answer


@pytest.mark.core
def test_connections_of_a_host_to_a_module_are_limited(place, tree):
    config = (f"use chroot = no\nlock file = {place}/lock\nmetrics file = {place}/metrics\n{IDENTITY}"
              f"[few]\npath = {tree}\nmax connections per host = 2\nmax connections = 3\n"
              f"[too]\npath = {tree}\nmax connections per host = 1\n[any]\npath = {tree}\n")
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        wait_for(lambda: not server_pids(daemon))
        held = [open_session(daemon, "few")[0] for _ in range(2)]
        crashing = server_pids(daemon)[0]
        refused = harness.run(harness.STOCK, "-a", daemon.url("few/"), f"{place}/out")
        assert refused.code == 5 and FULL[:-1] % 2 in refused.stderr, refused.text
        assert "max connections per host (2) reached by localhost (127.0.0.1)" in daemon.log()
        # Neither other modules nor other clients have less for it.
        for module, answer in (("too", b"@RSYNCD: OK\n"), ("too", FULL % 1), ("any", b"@RSYNCD: OK\n")):
            connection, reported = open_session(daemon, module)
            held.append(connection)
            assert reported.endswith(answer), reported
        for answer in (b"@RSYNCD: OK\n", FULL % 3):
            connection, reported = from_host(daemon, "127.0.0.2", "few")
            held.append(connection)
            assert reported.endswith(answer), reported
        # A slot is free again, however its process ends.
        os.kill(crashing, signal.SIGSYS)
        wait_for(lambda: f"server process {crashing} died of signal {int(signal.SIGSYS)}" in daemon.log())
        held.append(open_session(daemon, "few")[0])
        assert FULL % 2 in open_session(daemon, "few")[1]
        for connection in held:
            connection.close()
        wait_for(lambda: not server_pids(daemon))
        assert harness.run(harness.STOCK, "-a", daemon.url("few/"), f"{place}/out").code == 0
        daemon.process.terminate()
        daemon.process.wait(60)
    with open(f"{place}/metrics") as file:
        counts = file.read()
    assert 'rsync_huai_connections_total{module="few",outcome="refused"} 3\n' in counts
    assert 'rsync_huai_connections_total{module="too",outcome="refused"} 1\n' in counts


def test_the_client_behind_a_proxy_is_the_one_that_is_counted(place, tree):
    config = (f"use chroot = no\nlock file = {place}/lock\nreverse lookup = no\n"
              f"proxy protocol = yes\nproxy protocol hosts = 127.0.0.1\n{IDENTITY}"
              f"[one]\npath = {tree}\nmax connections per host = 1\n")
    held = []

    def answer_to(daemon, client):
        connection = socket.create_connection(("127.0.0.1", daemon.port), timeout=20)
        connection.sendall(f"PROXY TCP{6 if ':' in client else 4} {client} {client} 1 873\r\n".encode() + GREETING + b"one\n")
        stream = connection.makefile("rb")
        held.append((connection, stream))
        stream.readline()
        return stream.readline()

    with Proxied(harness.HUAI, config, place) as daemon:
        assert answer_to(daemon, "192.0.2.1") == b"@RSYNCD: OK\n"
        assert answer_to(daemon, "192.0.2.2") == b"@RSYNCD: OK\n"
        assert answer_to(daemon, "2001:db8::1") == b"@RSYNCD: OK\n"
        assert answer_to(daemon, "192.0.2.1") == FULL % 1
        assert answer_to(daemon, "2001:db8::2") == FULL % 1  # of the same network
        assert answer_to(daemon, "2001:db8:0:1::1") == b"@RSYNCD: OK\n"
        for connection, stream in held:
            stream.close()
            connection.close()


def test_the_check_knows_both_limits(place, tree):
    text = "max connections per host = %s\n[mod]\npath = {}\nuse chroot = no\nlock file = {}/lock\n%s".format(tree, place)
    result, _ = check_config(place, text % (7, "max connections per host = 4\n"))
    assert result.code == 0, result.text
    assert [line.count("at most 7 connections per host") for line in result.text.splitlines() if "port 873" in line] == [1]
    assert [line.count("at most 4 connections per host") for line in result.text.splitlines() if "read only" in line] == [1]
    result, _ = check_config(place, text % (7, ""))
    assert "at most 7" in result.text and result.text.count("per host") == 1, result.text
    result, _ = check_config(place, text % (7, "max connections per host = -4\n"))
    assert result.code == 1 and 'is not a number of the range of "max connections per host"' in result.text, result.text


@pytest.mark.core
def test_ipv4_clients_of_a_socket_for_both_families_are_told_apart(place, tree):
    with open(f"{place}/both.conf", "w") as file:
        file.write(f"log file = {place}/log\nuse chroot = no\nmax connections per host = 1\n{IDENTITY}[mod]\npath = {tree}\n")
    with socket.socket(socket.AF_INET6) as listening, contextlib.ExitStack() as stack:
        listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind(("::ffff:127.0.0.1", 0))
        listening.listen(20)

        def answer_to(host):
            """The last words to a client, whose session is held."""
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", listening.getsockname()[1]), timeout=20,
                                                                      source_address=(host, 0)))
            connection.sendall(GREETING + b"mod\n")
            stream = stack.enter_context(connection.makefile("rb"))
            stream.readline()
            return stream.readline()

        daemon = activate(listening, f"{place}/both.conf", "")
        try:
            for host in ("127.0.0.1", "127.0.0.2"):
                assert answer_to(host) == b"@RSYNCD: OK\n", host
            for host in ("127.0.0.1", "127.0.0.2"):
                assert answer_to(host) == FULL % 1, host
            stack.close()
        finally:
            daemon.terminate()
            daemon.wait(60)


def end_servers(daemon):
    """A process that waits can be ended."""
    for pid in server_pids(daemon):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not server_pids(daemon))


def guess(stack, daemon):
    """A failed login, whose answer is not waited for."""
    guesser = stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port), source_address=("127.0.0.7", 0), timeout=60))
    guesser.sendall(GREETING + b"closed\n")
    stream = stack.enter_context(guesser.makefile("rb"))
    while not stream.readline().startswith(b"@RSYNCD: AUTHREQD "):
        pass
    before = daemon.log().count("password mismatch")
    guesser.sendall(b"joe guess\n")
    wait_for(lambda: daemon.log().count("password mismatch") > before)
    return stream


@pytest.mark.core
def test_guessing_becomes_slow_for_who_guesses(place, tree):
    with harness.Daemon(harness.HUAI, closed_module(place, tree), place) as daemon, contextlib.ExitStack() as stack:
        began = time.monotonic()
        for number in range(20):
            assert log_in(daemon, "closed", "joe", f"guess {number}", host="127.0.0.7")[0] == WRONG
        assert time.monotonic() - began < PATIENCE
        answers = [guess(stack, daemon) for _ in range(20)]
        # The last of them waits for many seconds. Everybody who knows the password is let in, even from there; others may err.
        assert log_in(daemon, "closed", "joe", "joepw", host="127.0.0.7")[0] == "@RSYNCD: OK\n"
        assert log_in(daemon, "closed", "joe", "joepw", host="127.0.0.8")[0] == "@RSYNCD: OK\n"
        assert log_in(daemon, "closed", "joe", "wrong", host="127.0.0.8")[0] == WRONG
        with selectors.DefaultSelector() as selector:
            selector.register(answers[-1], selectors.EVENT_READ)
            assert not selector.select(0)
        assert answers[0].readline() == WRONG.encode()
        # For each of the twenty-one a second is owed from the first one on, of which twenty are free.
        assert time.monotonic() - began > 0.95
        end_servers(daemon)


def test_who_goes_away_after_a_guess_has_not_saved_the_time(place, tree):
    with harness.Daemon(harness.HUAI, closed_module(place, tree), place) as daemon:
        wait_for(lambda: not server_pids(daemon))
        for number in range(40):
            with socket.create_connection(("127.0.0.1", daemon.port), source_address=("127.0.0.7", 0), timeout=20) as guesser:
                guesser.sendall(GREETING + b"closed\njoe guess\n")
                wait_for(lambda: daemon.log().count("password mismatch") == number + 1)
        assert len(server_pids(daemon)) > 10
        end_servers(daemon)
