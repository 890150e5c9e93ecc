# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon among other users of its machine: what its commands inherit, and files and sockets that somebody else has put where
it looks for its own."""
import array
import json
import os
import re
import resource
import signal
import socket
import sys
import threading

import pytest

import harness
import trees
from test_daemon import GREETING, IDENTITY, open_session, root_only, server_pids, talk, wait_for
from test_daemon_auth import closed_module

STRANGER = 65534
CORE_SIZE = 4096


def allow_core_files(daemon):
    """To the daemon, and so to what it starts."""
    resource.prlimit(daemon.process.pid, resource.RLIMIT_CORE, (CORE_SIZE, 2 * CORE_SIZE))


# --- commands ---

TELL = """#!{python} -SE
import json, os, resource, sys
descriptors = [fd for fd in range(4096) if os.path.lexists(f"/proc/self/fd/{{fd}}")]
with open("{place}/" + sys.argv[1] + ".json", "w") as file:
    json.dump(dict(descriptors=descriptors, environment=dict(os.environ), core=resource.getrlimit(resource.RLIMIT_CORE)[0]), file)
if sys.argv[1] == "convert":
    for line in sys.stdin:
        print(7, flush=True)
"""


@pytest.mark.core
@root_only
def test_commands_inherit_three_descriptors_and_no_more(place, tree):
    """With everything open that a daemon can have open."""
    os.makedirs(f"{place}/attrs")
    for target in (f"{place}/attrs", f"--attr-snapshot={place}/snapshot"):
        assert harness.run(harness.HUAI, "-aH", "--only-send-attrs", f"{tree}/", target).code == 0
    script = f"{place}/tell"
    with open(script, "w") as file:
        file.write(TELL.format(python=sys.executable, place=place))
    os.chmod(script, 0o755)
    secrets = f"{place}/secrets"
    trees.write(secrets, b"joe:joe's password\n")
    os.chmod(secrets, 0o600)
    config = (f"pid file = {place}/pid\nmetrics file = {place}/metrics\ncontrol socket = {place}/control\n"
              f"max connections = 4\nmax connections per host = 50\nlock file = {place}/lock\n{IDENTITY}"
              f"early exec = {script} early\npre-xfer exec = {script} pre\npost-xfer exec = {script} post\n"
              f"name converter = {script} convert\nauth users = joe\nsecrets file = {secrets}\n"
              f"[attrs]\npath = {place}/attrs\nreal file prefix = {tree}\nlog file = {place}/modules.log\n"
              f"[snapshot]\npath = {tree}\nattr snapshot = {place}/snapshot\nattr snapshot fallback = refuse\n")
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        allow_core_files(daemon)
        for module in ("attrs", "snapshot"):
            result = harness.run(harness.STOCK, "-a", daemon.url(f"{module}/", "joe@"), f"{place}/out",
                                 environment={"RSYNC_PASSWORD": "joe's password"})
            assert result.code == 0, result.text
            wait_for(lambda: not server_pids(daemon))
            for command in ("early", "pre", "post", "convert"):
                with open(f"{place}/{command}.json") as file:
                    reported = json.load(file)
                os.unlink(f"{place}/{command}.json")
                assert reported["descriptors"] == [0, 1, 2], command
                assert "password" not in str(reported["environment"])  # S-125
                assert reported["core"] == CORE_SIZE, command
        assert "joe's password" not in daemon.log()


@pytest.mark.core
@root_only
def test_s125_no_core_file_holds_a_password(place, tree):
    with harness.Daemon(harness.HUAI, closed_module(place, tree), place) as daemon:
        allow_core_files(daemon)
        wait_for(lambda: not server_pids(daemon))
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=20) as connection:
            connection.sendall(GREETING + b"closed\n")
            wait_for(lambda: b"AUTHREQD" in connection.recv(4096, socket.MSG_PEEK))
            with open(f"/proc/{server_pids(daemon)[0]}/limits") as file:
                assert re.search(r"^Max core file size\s+0\s", file.read(), re.M)


# --- files of others where the daemon's own should be ---

@root_only
@pytest.mark.parametrize("kind", ["foreign", "linked"])
def test_a_pid_file_is_the_daemons_own(place, tree, kind):
    """One of somebody else's could be given another content later; another name of a file would be written over."""
    trees.write(f"{place}/precious", b"precious\n")
    if kind == "foreign":
        trees.write(f"{place}/pid", b"1\n", mode=0o666, owner=(STRANGER, STRANGER))
    else:
        os.link(f"{place}/precious", f"{place}/pid")
    with harness.Daemon(harness.HUAI, f"pid file = {place}/pid\n[m]\npath = {tree}\n", place) as daemon:
        info = os.stat(f"{place}/pid")
        assert (info.st_uid, info.st_nlink, info.st_mode & 0o022) == (0, 1, 0)
        with open(f"{place}/pid") as file:
            assert int(file.read()) == daemon.process.pid
    with open(f"{place}/precious") as file:
        assert file.read() == "precious\n"


@pytest.mark.core
def test_a_fifo_in_place_of_a_file_keeps_nobody_waiting(place, tree):
    for name in ("motd", "rules", "log"):
        os.mkfifo(f"{place}/{name}")
    config = (f"use chroot = no\nmotd file = {place}/motd\n{IDENTITY}[open]\npath = {tree}\n"
              f"[ruled]\npath = {tree}\nexclude from = {place}/rules\n[logged]\npath = {tree}\nlog file = {place}/log\n")
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        # Somebody holds the other ends and says nothing.
        ends = [os.open(f"{place}/{name}", os.O_RDWR | os.O_NONBLOCK) for name in ("motd", "rules")]
        for module, code in (("open", 0), ("logged", 0)):
            result = harness.run(harness.STOCK, "-r", "--list-only", daemon.url(f"{module}/"), timeout=15)
            assert result.code == code, result.text
        assert harness.run(harness.STOCK, "-r", "--list-only", daemon.url("ruled/"), timeout=15).code != 0
        for end in ends:
            os.close(end)
        wait_for(lambda: not server_pids(daemon))


def test_what_a_foreign_socket_says_is_shown_plainly(place, tree):
    """Somebody else listens where the control socket should be."""
    config = f"{place}/rsyncd.conf"
    with open(config, "w") as file:
        file.write(f"control socket = {place}/control\n[m]\npath = {tree}\n")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{place}/control")
        listener.listen(1)
        listener.settimeout(20)

        def answer():
            with listener.accept()[0] as connection:
                answer_fd = os.memfd_create("answer")
                os.write(answer_fd, b"\x1b[31mred\x07\x7f\nplain\n")
                connection.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [answer_fd]))])
                os.close(answer_fd)

        thread = threading.Thread(target=answer)
        thread.start()
        result = harness.run(harness.HUAI, "--status", f"--config={config}")
        thread.join()
    assert (result.code, result.stdout) == (0, b"?[31mred??\nplain\n"), result.text


@root_only
@pytest.mark.parametrize("parameter", ["real file prefix", "attr snapshot"])
def test_an_anonymous_client_gets_no_users_place(place, tree, parameter):
    """Without a name the parent of all users' directories would be meant."""
    os.makedirs(f"{place}/attrs")
    for target in (f"{place}/attrs", f"--attr-snapshot={place}/snapshot"):
        assert harness.run(harness.HUAI, "-aH", "--only-send-attrs", f"{tree}/", target).code == 0
    lines = {"real file prefix": f"path = {place}/attrs\nreal file prefix = {tree}/%RSYNC_USER_NAME%\n",
             "attr snapshot": f"path = {tree}\nattr snapshot = {place}/%RSYNC_USER_NAME%snapshot\n"}[parameter]
    with harness.Daemon(harness.HUAI, f"{IDENTITY}[m]\n{lines}", place) as daemon:
        assert talk(daemon, GREETING + b"m\n")[0].endswith(b"@ERROR: no path setting.\n")


# --- crashes ---

@pytest.mark.core
def test_a_crash_frees_all_that_the_session_held(place, tree):
    """Its line on the board, its slots, and its share of the limits of its host."""
    config = (f"use chroot = no\ncontrol socket = {place}/control\nlock file = {place}/lock\nmax connections per host = 1\n"
              f"{IDENTITY}[mod]\npath = {tree}\nmax connections = 1\nmax connections per host = 1\n")
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        def status():
            result = harness.run(harness.HUAI, "--status", f"--config={daemon.config_file}")
            assert result.code == 0, result.text
            return result.stdout.decode()

        wait_for(lambda: not server_pids(daemon))
        for number in (signal.SIGSYS, signal.SIGKILL):
            connection, answer = open_session(daemon, "mod")
            with connection:
                assert answer.endswith(b"@RSYNCD: OK\n"), answer
                pid, = server_pids(daemon)
                assert f"{pid} handshake since" in status()
                assert b"max connections" in talk(daemon, GREETING + b"mod\n")[0]
                os.kill(pid, number)
                wait_for(lambda: f"server process {pid} died of signal {int(number)}" in daemon.log())
                wait_for(lambda: status().startswith("total: connections 0,"))
        assert harness.run(harness.STOCK, "-a", daemon.url("mod/"), f"{place}/out").code == 0
