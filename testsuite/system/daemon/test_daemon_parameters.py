# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters of the daemon as a whole: who a proxy speaks for, and what the daemon itself is (doc/protocol/07-daemon.md
sections 3.1, 5.3)."""
import os
import re
import shutil
import socket
import struct
import time

import pytest

import harness
import trees
from test_daemon import server_pids

IS_ROOT = os.geteuid() == 0
root_only = pytest.mark.skipif(not IS_ROOT, reason="changes its identity")
IDENTITY = "uid = root\ngid = root\n" if IS_ROOT else ""
GREETING = b"@RSYNCD: 31.0 md5\n"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
V4 = socket.inet_aton("192.0.2.9") + socket.inet_aton("127.0.0.1") + struct.pack(">HH", 12345, 873)
V6 = socket.inet_pton(socket.AF_INET6, "2001:db8::9") * 2 + struct.pack(">HH", 12345, 873)


def version2(command, family, payload):
    return SIGNATURE + bytes([command, family]) + struct.pack(">H", len(payload)) + payload


# Of these both daemons think the same.
HEADERS = {
    "tcp4": b"PROXY TCP4 192.0.2.9 127.0.0.1 12345 873\r\n",
    "tcp6": b"PROXY TCP6 2001:db8::9 2001:db8::1 12345 873\r\n",
    "mixed": b"PROXY TCP4 2001:db8::9 2001:db8::1 12345 873\r\n",
    "v2-tcp4": version2(0x21, 0x11, V4),
    "v2-tcp6": version2(0x21, 0x21, V6),
    "none": b"",
    "line feed": b"PROXY TCP4 192.0.2.9 127.0.0.1 12345 873\n",
    "port 0": b"PROXY TCP4 192.0.2.9 127.0.0.1 0 873\r\n",
    "two blanks": b"PROXY TCP4  192.0.2.9 127.0.0.1 12345 873\r\n",
    "address": b"PROXY TCP4 192.0.2.999 127.0.0.1 12345 873\r\n",
    "long": b"PROXY UNKNOWN " + b"x" * 100 + b"\r\n",
    "trailing": b"PROXY TCP4 192.0.2.9 127.0.0.1 12345 873 1\r\n",
    "v2-version": version2(0x11, 0x11, V4),
    "v2-command": version2(0x25, 0x11, V4),
    "v2-short": version2(0x21, 0x11, V4[:-1]),
    "v2-huge": SIGNATURE + b"\x21\x11\xff\xff" + V4,
}


def say(daemon, data, address="127.0.0.1"):
    """Everything that the daemon answers until it closes."""
    answer = b""
    with socket.create_connection((address, daemon.port), timeout=20) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(4096):
                answer += part
        except OSError as error:  # it may have closed at once
            if isinstance(error, TimeoutError):
                raise
    return answer


def lines_of(log):
    return [re.sub(r"^.*?\] ", "", line) for line in log.splitlines()]


class Proxied(harness.Daemon):
    """A daemon that answers nobody but a proxy."""

    def _answers(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                return say(self, HEADERS["tcp4"] + GREETING + b"\n").startswith(b"@RSYNCD:")
            except OSError:
                time.sleep(0.02)
        return False


@pytest.fixture(scope="module")
def proxied(workspace):
    directory = os.path.join(workspace, "proxied")
    os.makedirs(directory)
    config = f"""use chroot = no
proxy protocol = yes
proxy protocol hosts = 127.0.0.1
reverse lookup = no
{IDENTITY}[m]
path = {directory}
hosts allow = 192.0.2.0/24 2001:db8::/32
[local]
path = {directory}
hosts allow = 127.0.0.0/8
"""
    with Proxied(harness.HUAI, config, directory) as huai, Proxied(harness.STOCK, config, directory) as stock:
        yield huai, stock


@pytest.mark.core
@pytest.mark.parametrize("name", HEADERS)
def test_a_proxy_says_who_is_there(proxied, name):
    outcomes = []
    for daemon in proxied:
        before = len(daemon.log())
        answer = harness.normalise(say(daemon, HEADERS[name] + GREETING + b"m\n"))
        outcomes.append((answer.partition(b"OK\n")[0], lines_of(daemon.log()[before:])[:2]))
    assert outcomes[0] == outcomes[1]
    assert not outcomes[0][0] or outcomes[0][0].endswith(b"md4\n@RSYNCD: ")


@pytest.mark.parametrize("header", [b"PROXY UNKNOWN\r\n", version2(0x20, 0, b""), version2(0x21, 0x12, V4)])
def test_a_client_without_a_name_has_not_the_rights_of_the_proxy(proxied, header):
    """S-095"""
    answer = say(proxied[0], header + GREETING + b"local\n")
    assert b"@ERROR: access denied to local from UNKNOWN (0.0.0.0)\n" in answer


def test_what_follows_the_addresses_is_skipped(proxied):
    assert b"@RSYNCD: OK" in say(proxied[0], version2(0x21, 0x11, V4 + b"\x04\0\x03abc") + GREETING + b"m\n")


def test_nobody_else_speaks_for_clients(proxied):
    """S-094"""
    for daemon in proxied:
        with socket.socket() as connection:
            connection.bind(("127.0.0.2", 0))
            connection.connect(("127.0.0.1", daemon.port))
            connection.sendall(HEADERS["tcp4"] + GREETING)
            try:
                assert connection.recv(100) == b""
            except ConnectionResetError:
                pass
        assert lines_of(daemon.log())[-1] == "proxy protocol rejected from untrusted peer UNDETERMINED (127.0.0.2)"


def status_of_server(daemon, module):
    """Ids and groups of the process that has just admitted a client."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=20) as connection:
        connection.sendall(GREETING + module.encode() + b"\n")
        stream = connection.makefile("rb")
        stream.readline()
        answer = stream.readline()
        pid = server_pids(daemon)[-1]
        with open(f"/proc/{pid}/status") as file:
            found = dict(line.rstrip("\n").split(":\t") for line in file if line.startswith(("Uid", "Gid", "Groups")))
        return answer, {key: value.split() for key, value in found.items()}, os.readlink(f"/proc/{pid}/root")


@root_only
def test_the_daemon_itself_gives_up_its_rights(place):
    """S-111: a group that is kept would be what stock has."""
    config = f"daemon uid = daemon\ndaemon gid = 65534\nlog file = {place}/log\n[m]\npath = {place}\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        answer, status, _ = status_of_server(daemon, "m")
        assert answer == b"@RSYNCD: OK\n"
        assert status == {"Uid": ["1"] * 4, "Gid": ["65534"] * 4, "Groups": ["65534"]}
        assert harness.run(harness.STOCK, daemon.url("m/")).code == 0


@root_only
def test_everything_of_modules_lies_in_the_daemons_root(place):
    for name in ("root/mod", "root/etc"):
        os.makedirs(os.path.join(place, name))
    trees.write(f"{place}/root/mod/f", b"content")
    trees.write(f"{place}/root/secrets", b"joe:pw\n")
    os.chmod(f"{place}/root/secrets", 0o600)
    config = f"daemon chroot = {place}/root\nuid = 0\ngid = 0\n[m]\npath = /mod\nauth users = joe\nsecrets file = /secrets\n"
    for chroot in ("yes", "no"):
        for program in (harness.STOCK, harness.HUAI):
            with harness.Daemon(program, config + f"use chroot = {chroot}\n", place) as daemon:
                result = harness.run(harness.STOCK, "-a", daemon.url("m/", "joe@"), f"{place}/{chroot}/",
                                     environment={"RSYNC_PASSWORD": "pw"})
                assert result.code == 0 and os.listdir(f"{place}/{chroot}") == ["f"], result.text + daemon.log()
                os.unlink(f"{place}/{chroot}/f")
                assert "rsync on m/ from joe@localhost (127.0.0.1)" in daemon.log()


@root_only
@pytest.mark.parametrize("line", ["daemon uid = no-such-user", "daemon gid = no-such-group", "daemon chroot = /nonexistent/huai"])
def test_a_daemon_that_cannot_become_itself_serves_nobody(place, line):
    outcomes = []
    for program in (harness.HUAI, harness.STOCK):
        with Mute(program, f"{line}\n[m]\npath = {place}\n", place) as daemon:
            answer = say(daemon, GREETING + b"m\n")
            outcomes.append((answer, [text for text in lines_of(daemon.log()) if "aemon " in text][-1:]))
    assert outcomes[0] == outcomes[1] and outcomes[0][0] == b"" and outcomes[0][1]


class Mute(harness.Daemon):
    """A daemon whose every connection fails."""

    def _answers(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                say(self, b"")
                return True
            except OSError:
                time.sleep(0.02)
        return False


@root_only
@pytest.mark.parametrize("lines, served", [("", False), ("insecure links = yes", True)])
def test_links_of_others_are_followed_out_of_a_module_only_where_that_is_allowed(place, lines, served):
    os.makedirs(f"{place}/tree")
    os.makedirs(f"{place}/outside")
    trees.write(f"{place}/outside/f", b"content")
    os.symlink("../outside", f"{place}/tree/link")
    os.lchown(f"{place}/tree/link", 1, 1)
    trees.write(f"{place}/new", b"new")
    config = f"use chroot = no\nuid = 0\ngid = 0\nread only = no\n[m]\npath = {place}/tree\n{lines}\n"
    for program in (harness.HUAI, harness.STOCK):
        target = f"{place}/{os.path.basename(program)}.got"
        with harness.Daemon(program, config, place) as daemon:
            harness.run(harness.STOCK, "-a", daemon.url("m/link/f"), target + "/")
            harness.run(harness.STOCK, "-aL", daemon.url("m/"), target + "/")
            harness.run(harness.STOCK, "-a", f"{place}/new", daemon.url(f"m/link/{os.path.basename(program)}.put"))
        assert os.path.exists(f"{target}/f") == served and os.path.exists(f"{target}/link/f") == served, program
        assert os.path.exists(f"{place}/outside/{os.path.basename(program)}.put") == served, program


def test_odd_proxies_are_named_by_the_check(place):
    path = os.path.join(place, "conf")
    trees.write(path, b"proxy protocol = yes\n[m]\npath = /tmp\n")
    result = harness.run(harness.HUAI, "--daemon", "--config-check", f"--config={path}")
    assert result.code == 1 and b'without "proxy protocol hosts" every connection is rejected' in result.stderr, result.text
    trees.write(path, b"proxy protocol = yes\nproxy protocol hosts = 10.0.0.0/99\n[m]\npath = /tmp\n")
    result = harness.run(harness.HUAI, "--daemon", "--config-check", f"--config={path}")
    assert result.code == 1 and b"conf:2: " in result.stderr, result.text


def open_session(daemon):
    """A connection that holds a slot, and the answer to the name of its module."""
    connection = socket.create_connection(("127.0.0.1", daemon.port), timeout=20)
    connection.sendall(GREETING + b"m\n")
    stream = connection.makefile("rb")
    stream.readline()
    return connection, stream.readline()


@pytest.mark.core
def test_slots_are_shared_with_daemons_of_another_kind(place):
    config = f"use chroot = no\n{IDENTITY}max connections = 2\nlock file = {place}/lock\n[m]\npath = {place}\n"
    with harness.Daemon(harness.HUAI, config, place) as huai, harness.Daemon(harness.STOCK, config, place) as stock:
        held = [open_session(stock), open_session(huai)]
        refused = [open_session(huai), open_session(stock)]
        assert [answer for _, answer in held] == [b"@RSYNCD: OK\n"] * 2
        assert [answer for _, answer in refused] == [b"@ERROR: max connections (2) reached -- try again later\n"] * 2
        for connection, _ in held + refused:
            connection.close()
        for daemon in (huai, stock):
            deadline = time.monotonic() + 60
            while (again := open_session(daemon))[1] != b"@RSYNCD: OK\n":
                assert time.monotonic() < deadline
            again[0].close()


def test_included_files_and_overrides_mean_what_they_mean_to_stock(place):
    """Seen in what clients receive of the modules, again for every connection."""
    for name, text in (("d/20.conf", "[late]\npath = /tmp\n[a]\npath = /tmp\n"), ("d/10.conf", "comment = of 10\n[early]\n"),
                       ("d/not.inc", "[never]\n"), ("e/x.inc", "comment = merged\n[merged]\ncomment = in x\n"),
                       ("one.inc", "list = no\n")):
        os.makedirs(os.path.dirname(f"{place}/{name}"), exist_ok=True)
        trees.write(f"{place}/{name}", text.encode())
    config = f"""comment = outer %RSYNC_MODULE_NAME% %HOME%
use chroot = no
[c]
comment = x
&include {place}/d
comment = after include
[d]
&merge {place}/one.inc
[E F]
&Merge = {place}/e
list = yes
[global]
comment = second
[g]
[D]
list = yes
"""
    reported = []
    for program in (harness.HUAI, harness.STOCK):
        with harness.Daemon(program, config, place, ["--dparam=comment=from outside", "-M", "max verbosity=2"]) as daemon:
            first = harness.run(harness.STOCK, daemon.url()).stdout
            trees.write(f"{place}/d/30.conf", b"[added]\n")
            reported.append((first, harness.run(harness.STOCK, daemon.url()).stdout))
            os.unlink(f"{place}/d/30.conf")
    assert reported[0] == reported[1]
    assert b"from outside" in reported[0][0] and b"added" in reported[0][1] and b"added" not in reported[0][0]


@pytest.mark.skipif(not shutil.which("ss"), reason="needs ss")
def test_the_listen_backlog_is_what_is_configured(place):
    for program in (harness.STOCK, harness.HUAI):
        with harness.Daemon(program, f"listen backlog = 9\n[m]\npath = {place}\n", place) as daemon:
            listening = harness.run("ss", "-ltnH", f"sport = :{daemon.port}").stdout.split()
            assert listening[2] == b"9", program
