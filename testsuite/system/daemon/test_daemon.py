# SPDX-License-Identifier: GPL-3.0-or-later
"""The daemon around its transfers: text phase, admission, confinement, log, start-up and signals
(doc/protocol/07-daemon.md)."""
import grp
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

import harness
import trees

IS_ROOT = os.geteuid() == 0
root_only = pytest.mark.skipif(not IS_ROOT, reason="changes its identity")
GREETING = b"@RSYNCD: 31.0 md5\n"
PATIENCE = 18  # seconds: as long as a busy machine may need for what comes at once; less than talk() waits
IDENTITY = "uid = root\ngid = root\n" if IS_ROOT else ""


def talk(daemon, data, timeout=20, pace=None):
    """Send bytes, return everything the daemon says until it closes, and how long that took."""
    start = time.monotonic()
    answer = b""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=timeout) as connection:
        if pace is None:
            connection.sendall(data)
        while True:
            if pace is not None:
                connection.settimeout(pace)
                try:
                    connection.sendall(data)
                except OSError:
                    break
            try:
                part = connection.recv(65536)
            except TimeoutError:
                if pace is None or time.monotonic() - start > timeout:
                    raise
                continue
            except ConnectionResetError:
                break
            if not part:
                break
            answer += part
    return answer, time.monotonic() - start


def open_session(daemon, module):
    """A connection that has been admitted and now owes its arguments."""
    connection = socket.create_connection(("127.0.0.1", daemon.port), timeout=20)
    connection.sendall(GREETING + module.encode() + b"\n")
    answer = b""
    while not (answer.endswith(b"@RSYNCD: OK\n") or b"@ERROR" in answer):
        part = connection.recv(4096)
        if not part:
            break
        answer += part
    return connection, answer


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("did not happen in time")


def children_of(pid):
    """Those that have ended are among them until they are reaped; the one that has been forked last is the last."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def server_pids(daemon):
    return children_of(daemon.process.pid)


@pytest.fixture(scope="module")
def tree(workspace):
    path = os.path.join(workspace, "daemon-tree")
    for directory in ("", "sub", "dir1", "dir2", "secret"):
        os.makedirs(os.path.join(path, directory), exist_ok=True)
    for name in ("f", "star*", "starx", "b[1]", "b1", "-n", "--version", ".dot", "sub/one two", "dir1/b", "dir2/c", "secret/x",
                 "hidden"):
        trees.write(os.path.join(path, name), name.encode())
    return path


def config_for(tree, lock):
    return f"""
lock file = {lock}
use chroot = no
{IDENTITY}
[mod]
path = {tree}
comment = Public stuff
[averyveryverylongmodulename]
path = {tree}
comment = long %RSYNC_MODULE_NAME%
[unlisted]
path = {tree}
list = no
[closed]
path = {tree}
list = no
hosts allow = 10.9.8.7
[denied]
path = {tree}
hosts deny = nosuch.invalid
[full]
path = {tree}
max connections = -1
[nopath]
[gone]
path = {tree}/nothing/here
[nouser]
path = {tree}
uid = no-such-user
[nogroup]
path = {tree}
gid = no-such-group
[hide]
path = {tree}
exclude = secret/ hidden
[noperm]
path = {tree}
refuse options = checksum delete
[log]
path = {tree}
transfer logging = yes
"""


@pytest.fixture(scope="module")
def pair(workspace, tree):
    """The same configuration, served by this program and by stock."""
    with_lock = [(harness.HUAI, "huai"), (harness.STOCK, "stock")]
    daemons = []
    for program, name in with_lock:
        directory = os.path.join(workspace, f"daemon-{name}")
        os.makedirs(directory, exist_ok=True)
        daemon = harness.Daemon(program, config_for(tree, os.path.join(directory, "lock")), directory)
        daemons.append(daemon.__enter__())
    yield daemons
    for daemon in daemons:
        daemon.__exit__()


TEXT_PHASE = [
    GREETING + b"#list\n",
    GREETING + b"\n",
    b"@RSYNCD: 24\n#list\n",
    b"@RSYNCD: 29\n#list\n",
    b"@RSYNCD: 32.0 sha512 md5\r\n#li\rst\r\n",
    b"@RSYNCD: 32.0\n",
    b"@RSYNCD: 32 md5\n",
    b"@RSYNCD: 30\n",
    b"hello\n",
    b"@RSYNCD: x\n",
    GREETING + b"#frobnicate\n",
    GREETING + b"#early_input=3\nabc#list\n",
    GREETING + b"#early_input=0\n",
    GREETING + b"#early_input=5121\n",
    GREETING + b"nosuch\n",
    GREETING + b"MOD\n",
    GREETING + b"mod/\n",
    GREETING + b" mod\n",
    GREETING + b"mod\0\n",
    GREETING + b"closed\n",
    GREETING + b"denied\n",
    GREETING + b"full\n",
    GREETING + b"nopath\n",
    GREETING + b"gone\n",
    GREETING + b"x" * 1022 + b"\n",
    GREETING + b"x" * 1023 + b"\n",
    b"@RSYNCD: 31.0 " + b"x" * 1008 + b"\n#list\n",
    b"@RSYNCD: 31.0 " + b"x" * 1009 + b"\n#list\n",
]
if IS_ROOT:
    TEXT_PHASE += [GREETING + b"nouser\n", GREETING + b"nogroup\n"]


@pytest.mark.parametrize("data", TEXT_PHASE, ids=range(len(TEXT_PHASE)))
def test_the_text_phase_answers_as_stock_does(pair, data):
    answers = [harness.normalise(talk(daemon, data)[0]) for daemon in pair]
    assert answers[0] == answers[1]


def test_a_hidden_module_that_denies_answers_like_an_unknown_one(pair):  # S-099
    denied = talk(pair[0], GREETING + b"closed\n")[0]
    unknown = talk(pair[0], GREETING + b"nosuch\n")[0]
    assert denied.replace(b"closed", b"nosuch") == unknown


PATH_WORDS = ["mod/", "mod", "mod/f", "mod/sub", "mod/sub/", "mod/../../f", "mod//f", "mod/sub/../f", "mod/./sub", "mod/star*",
              "mod/star\\*", "mod/nope\\*", "mod/no\\pe", "mod/b[1]", "mod/b\\[1]", "mod/dir*/b", "mod/dir?/*", "mod/*d*/*",
              "mod/dir*/", "mod/nosuch", "mod/sub/one two", "hide/", "hide/hidden", "hide/secret", "hide/secret/x",
              "hide/nosuch", "hide/h*", "unlisted/f"]


@pytest.mark.parametrize("word", PATH_WORDS)
def test_paths_mean_what_they_mean_to_stock(pair, word):
    results = [harness.run(harness.STOCK, "-r", "--list-only", daemon.url(word)) for daemon in pair]
    assert results[0].code == results[1].code, results[0].text + results[1].text
    assert results[0].stdout == results[1].stdout
    # Stock leaves out the slash in front where the module is not the root directory of its process.
    ours, stock = (harness.normalise(result.stderr).replace(b' "/', b' "') for result in results)
    assert ours == stock


def test_several_names_in_one_word_are_split(pair):
    results = [harness.run(harness.STOCK, "--old-args", "--list-only", daemon.url("mod/f mod/b1")) for daemon in pair]
    assert results[0].code == 0, results[0].text
    assert results[0].stdout == results[1].stdout


@pytest.mark.parametrize("secluded", [[], ["-s"]], ids=["plain", "secluded"])
def test_names_that_look_like_options_are_files(pair, place, secluded):  # S-109
    result = harness.run(harness.STOCK, "-a", *secluded, pair[0].url("mod/-*"), os.path.join(place, "out/"))
    assert result.code == 0, result.text
    assert sorted(os.listdir(os.path.join(place, "out"))) == ["--version", "-n"]


def test_what_a_module_hides_is_as_if_it_were_not_there(pair, place):  # S-123
    texts = []
    for name in ("hidden", "absent"):
        result = harness.run(harness.STOCK, "-a", pair[0].url(f"hide/{name}"), os.path.join(place, "out/"))
        texts.append((result.code, harness.normalise(result.stderr).replace(name.encode(), b"NAME")))
    assert texts[0] == texts[1]


def test_no_message_shows_a_path_of_the_server(pair, tree, place):  # S-122
    words = [["gone/"], ["mod/nosuch"], ["hide/hidden"], ["mod/f", "--files-from=:nosuch"], ["nopath/"]]
    for word, *options in words:
        result = harness.run(harness.STOCK, "-a", *options, pair[0].url(word), os.path.join(place, "out/"))
        assert result.code != 0
        assert os.fsencode(tree) not in result.stdout + result.stderr, result.text


REFUSALS = [
    ["-ac", "{}noperm/", "{out}/"],
    ["-ac", "--protocol=29", "{}noperm/", "{out}/"],
    ["-a", "--iconv=utf8,latin1", "{}mod/", "{out}/"],
    ["-a", "{file}", "{}mod/"],
    ["-a", "--protocol=29", "{file}", "{}mod/"],
    ["-a", "--remove-source-files", "{}mod/", "{out}/"],
    ["-a", "-M--log-file=/tmp/x", "{}mod/", "{out}/"],
    ["-a", "-M--config=/etc/passwd", "{}mod/", "{out}/"],
    ["-a", "-M--insecure-links", "{}mod/", "{out}/"],
]


@pytest.mark.parametrize("words", REFUSALS, ids=[" ".join(words) for words in REFUSALS])
def test_refusals_reach_the_client(pair, tree, place, words):  # S-106, S-108
    results = []
    for daemon in pair:
        filled = [word.format(daemon.url(), out=os.path.join(place, "out"), file=os.path.join(tree, "f")) for word in words]
        results.append(harness.run(harness.STOCK, *filled))
    ours, stock = ({line for line in harness.normalise(result.stderr).splitlines() if not line.startswith(b"rsync error")}
                   for result in results)
    assert stock <= ours, results[0].text + results[1].text
    assert results[0].code != 0
    assert not os.path.exists(os.path.join(place, "out", "f"))
    assert os.path.exists(os.path.join(tree, "f"))


# --- the log ---

def session_lines(daemon, start):
    text = daemon.log()[start:]
    return [re.sub(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\d+\] ", "", line) for line in text.splitlines()]


def test_a_download_leaves_the_lines_that_stock_leaves(pair, place):
    lines = []
    for daemon in pair:
        start = len(daemon.log())
        result = harness.run(harness.STOCK, "-a", daemon.url("log/sub"), daemon.url("log/f"), os.path.join(place, "out/"))
        assert result.code == 0, result.text
        wait_for(lambda: "total size" in daemon.log()[start:])  # pylint: disable=cell-var-from-loop
        lines.append([re.sub(r"^sent \d+ bytes  received \d+ bytes", "sent N bytes  received N bytes", line)
                      for line in session_lines(daemon, start)])
        harness.run("rm", "-rf", os.path.join(place, "out"))
    assert lines[0] == lines[1]


def test_control_bytes_never_reach_the_log(pair):  # S-117
    daemon = pair[0]
    start = len(daemon.log())
    talk(daemon, GREETING + b"x\x1b[31my\x9bz\x7f\\#033\t\n")
    line = wait_for(lambda: [line for line in session_lines(daemon, start) if line.startswith("unknown module")])[0]
    assert line.startswith("unknown module 'x\\#033[31my\\#233z\\#177\\#134#033\t'")


# --- deadlines and limits ---

@pytest.fixture
def impatient(place, tree):
    config = f"timeout = 2\nuse chroot = no\n{IDENTITY}[mod]\npath = {tree}\n[slow]\npath = {tree}\ntimeout = 3\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        yield daemon


@pytest.mark.parametrize("data", [b"", GREETING, GREETING + b"#early_input=9\n", GREETING + b"mod\n",
                                  GREETING + b"mod\n--server\0--sender\0-s\0\0rsync\0"])
def test_a_silent_client_is_dropped_in_every_phase(impatient, data):  # S-046
    answer, seconds = talk(impatient, data)
    assert 1.9 <= seconds < PATIENCE
    assert b"@ERROR" not in answer
    assert "daemon handshake timeout" in impatient.log()


def test_a_trickle_does_not_extend_the_deadline(impatient):  # S-047
    _, seconds = talk(impatient, b"@", pace=0.3)
    assert 1.9 <= seconds < PATIENCE


def test_the_modules_timeout_counts_once_it_is_known(impatient):  # S-048
    _, seconds = talk(impatient, GREETING + b"slow\n")
    assert 2.9 <= seconds < PATIENCE


def test_slots_are_counted_and_freed_even_by_a_killed_server(place, tree):  # S-055
    config = f"lock file = {place}/lock\nmax connections = 2\nuse chroot = no\n{IDENTITY}[mod]\npath = {tree}\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        held = [open_session(daemon, "mod") for _ in range(2)]
        assert all(answer.endswith(b"@RSYNCD: OK\n") for _, answer in held)
        assert b"@ERROR: max connections (2) reached -- try again later\n" in talk(daemon, GREETING + b"mod\n")[0]
        wait_for(lambda: len(server_pids(daemon)) == 2)  # the one that was turned away has ended
        os.kill(server_pids(daemon)[0], signal.SIGKILL)
        wait_for(lambda: len(server_pids(daemon)) == 1)
        third, answer = open_session(daemon, "mod")
        assert answer.endswith(b"@RSYNCD: OK\n")
        for connection in (third, *(connection for connection, _ in held)):
            connection.close()
        assert os.stat(f"{place}/lock").st_size == 0


def test_handshakes_of_one_address_are_limited(place, tree):  # S-053
    with harness.Daemon(harness.HUAI, f"use chroot = no\n{IDENTITY}[mod]\npath = {tree}\n", place) as daemon:
        wait_for(lambda: not server_pids(daemon))
        held = [socket.create_connection(("127.0.0.1", daemon.port), timeout=20) for _ in range(64)]
        for connection in held:
            assert connection.recv(8) == b"@RSYNCD:"
        assert b"@ERROR: max connections (64) reached -- try again later\n" == talk(daemon, b"")[0]
        with socket.create_connection(("127.0.0.1", daemon.port), source_address=("127.0.0.2", 0), timeout=20) as other:
            assert other.recv(8) == b"@RSYNCD:"
        for connection in held:
            connection.close()


# --- the configuration ---

def check_config(place, text):
    path = os.path.join(place, "check.conf")
    with open(path, "w") as file:
        file.write(text)
    return harness.run(harness.HUAI, "--daemon", "--config-check", f"--config={path}"), path


def test_a_good_configuration_has_no_findings(place, tree):
    result, _ = check_config(place, f"port = 8730\n[m]\npath = {tree}\n{IDENTITY}")
    assert (result.code, result.stderr) == (0, b"")


def test_every_problem_is_named_with_its_place(place, tree):
    result, path = check_config(place, f"""port = 8730
frobnicate = yes
[a]
name = joe
path = {tree}
[b]
path = {tree}
read only = maybe
real file prefix = relative
[c]
path = {tree}
real file prefix = {tree}/nothing
[d]
path = {tree}
real file prefix = {tree}/f
hosts deny = 10.0.0.0/99
""")
    lines = result.stderr.decode().splitlines()
    assert result.code == 1
    lines.sort(key=lambda line: int(line.split(":")[1]))
    assert [line.split(":")[1] for line in lines] == ["2", "4", "8", "9", "12", "15", "16"]
    assert all(line.startswith(f"{path}:") for line in lines)
    assert "cannot be renamed" in lines[1]


@pytest.mark.parametrize("text", ["[m]\npath = /\nreal file prefix = rel\n",
                                  "[m]\npath = /\nreal file prefix = /nonexistent/x\n", "[m]\nstrict modes = maybe\n", "[m/n]\n", "port = x\n"])
def test_a_daemon_does_not_start_with_errors(place, text):
    path = os.path.join(place, "start.conf")
    with open(path, "w") as file:
        file.write(text)
    result = harness.run(harness.HUAI, "--daemon", "--no-detach", f"--config={path}", "--address=127.0.0.1",
                         f"--port={harness.free_port()}")
    assert result.code == 1
    assert f"{path}:".encode() in result.stderr
    assert b"Failed to parse config file" in result.stderr


def test_a_configuration_that_breaks_later_closes_every_connection(place, tree):  # S-115
    with harness.Daemon(harness.HUAI, f"use chroot = no\n{IDENTITY}[mod]\npath = {tree}\n", place) as daemon:
        with open(daemon.config_file) as file:
            good = file.read()
        with open(daemon.config_file, "a") as file:
            file.write("[broken\n")
        assert talk(daemon, GREETING + b"#list\n")[0] == b""
        with open(daemon.config_file, "w") as file:
            file.write(good)
        assert talk(daemon, GREETING + b"#list\n")[0].endswith(b"@RSYNCD: EXIT\n")
        assert daemon.config_file in daemon.log()


def test_a_malformed_value_switches_its_module_off(place, tree):  # S-114
    with harness.Daemon(harness.HUAI, f"use chroot = no\n{IDENTITY}[mod]\npath = {tree}\n", place) as daemon:
        with open(daemon.config_file, "a") as file:
            file.write(f"[bad]\npath = {tree}\nhosts deny = 10.0.0.0/99\n")
        assert b"@ERROR" in talk(daemon, GREETING + b"bad\n")[0]
        assert open_session(daemon, "mod")[1].endswith(b"@RSYNCD: OK\n")
        os.kill(daemon.process.pid, signal.SIGHUP)
        wait_for(lambda: "10.0.0.0/99" in daemon.log())


# --- the listener ---

def test_the_listener_survives_signals_that_are_not_its_end(place, tree):  # S-130
    with harness.Daemon(harness.HUAI, f"pid file = {place}/pid\nuse chroot = no\n{IDENTITY}[mod]\npath = {tree}\n",
                        place) as daemon:
        with open(f"{place}/pid") as file:
            assert int(file.read()) == daemon.process.pid
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE):
            daemon.process.send_signal(number)
        assert open_session(daemon, "mod")[1].endswith(b"@RSYNCD: OK\n")
        daemon.process.terminate()
        assert daemon.process.wait(60) == 0
        assert not os.path.exists(f"{place}/pid")


def test_a_port_that_is_taken_is_an_error_of_the_starter(place, tree):  # S-130
    path = os.path.join(place, "second.conf")
    with open(path, "w") as file:
        file.write(f"log file = {place}/second.log\n[mod]\npath = {tree}\n")
    with harness.Daemon(harness.HUAI, f"use chroot = no\n{IDENTITY}[mod]\npath = {tree}\n", place) as daemon:
        result = harness.run(harness.HUAI, "--daemon", f"--config={path}", "--address=127.0.0.1", f"--port={daemon.port}")
        assert result.code == 10
        assert b"Address already in use" in result.stderr


def test_a_terminated_server_ends_in_good_order(place, tree):
    with harness.Daemon(harness.HUAI, f"use chroot = no\n{IDENTITY}[mod]\npath = {tree}\n", place) as daemon:
        wait_for(lambda: not server_pids(daemon))
        connection, answer = open_session(daemon, "mod")
        assert answer.endswith(b"@RSYNCD: OK\n")
        with connection:
            os.kill(server_pids(daemon)[0], signal.SIGTERM)
            assert connection.recv(100) == b""
        assert "received SIGINT, SIGTERM, or SIGHUP (code 20)" in daemon.log()


def test_a_second_daemon_leaves_the_pid_file_alone(place, tree):
    config = f"pid file = {place}/pid\nuse chroot = no\n{IDENTITY}[mod]\npath = {tree}\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        result = harness.run(harness.HUAI, "--daemon", f"--config={daemon.config_file}", "--address=127.0.0.1",
                             f"--port={harness.free_port()}")
        assert result.code == 11, result.text
        with open(f"{place}/pid") as file:
            assert int(file.read()) == daemon.process.pid


def test_a_detached_daemon_is_ready_when_its_starter_ends(place, tree):
    port = harness.free_port()
    path = os.path.join(place, "detached.conf")
    with open(path, "w") as file:
        file.write(f"log file = {place}/log\npid file = {place}/pid\nuse chroot = no\n{IDENTITY}[mod]\npath = {tree}\n")
    result = harness.run(harness.HUAI, "--daemon", f"--config={path}", "--address=127.0.0.1", f"--port={port}")
    assert result.code == 0, result.text
    with open(f"{place}/pid") as file:
        pid = int(file.read())
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            assert connection.recv(8) == b"@RSYNCD:"
    finally:
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not os.path.exists(f"{place}/pid"))


def test_sockets_of_a_service_manager_are_used_and_readiness_is_told(place, tree):
    path = os.path.join(place, "activated.conf")
    with open(path, "w") as file:
        file.write(f"log file = {place}/log\nuse chroot = no\n{IDENTITY}[mod]\npath = {tree}\n")
    with socket.socket() as listening, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        notified.bind(f"{place}/notify")
        notified.settimeout(20)
        os.chmod(f"{place}/notify", 0o777)
        # Descriptor 3, and the pid that only the new process knows.
        script = ("import os, sys; os.dup2(int(sys.argv[1]), 3); "
                  "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1'); os.execv(sys.argv[2], sys.argv[2:])")
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(listening.fileno()), harness.HUAI, "--daemon", "--no-detach",
             f"--config={path}"],
            pass_fds=[listening.fileno()], stdin=subprocess.DEVNULL,
            env={**harness.ENVIRONMENT, "NOTIFY_SOCKET": f"{place}/notify"})
        try:
            assert b"READY=1" in notified.recv(4096)
            with socket.create_connection(listening.getsockname(), timeout=20) as connection:
                assert connection.recv(8) == b"@RSYNCD:"
        finally:
            process.terminate()
            assert process.wait(60) == 0


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_connection_on_descriptor_0_is_served(place, tree, family):
    path = os.path.join(place, "inetd.conf")
    with open(path, "w") as file:
        file.write(f"log file = {place}/log\nuse chroot = no\n{IDENTITY}[mod]\npath = {tree}\n")
    try:
        ours, theirs = harness.tcp_pair(family)
    except OSError as reason:
        pytest.skip(f"no loopback address of this family: {reason}")
    with ours, theirs:
        process = subprocess.Popen([harness.HUAI, "--daemon", f"--config={path}"], stdin=theirs, env=harness.ENVIRONMENT)
        theirs.close()
        ours.settimeout(20)
        ours.sendall(GREETING + b"#list\n")
        answer = b""
        while part := ours.recv(4096):
            answer += part
        assert process.wait(60) == 0
    assert answer.endswith(b"mod            \t\n@RSYNCD: EXIT\n")
    with open(f"{place}/log") as file:
        assert f" ({'127.0.0.1' if family == socket.AF_INET else '::1'})" in file.read()


@pytest.mark.parametrize("kind", ["unix stream", "unix datagram", "udp", "unconnected tcp", "file"])
def test_what_is_no_connection_of_a_client_is_left_alone(place, tree, kind):
    """Nobody but inetd hands over a connected TCP socket: with anything else the daemon listens."""
    kept = []
    if kind.startswith("unix"):
        kept += socket.socketpair(type=socket.SOCK_STREAM if kind == "unix stream" else socket.SOCK_DGRAM)
    elif kind == "udp":
        kept.append(socket.socket(type=socket.SOCK_DGRAM))
        kept[0].connect(("127.0.0.1", harness.free_port()))
    elif kind == "unconnected tcp":
        kept.append(socket.socket())
    else:
        kept.append(open(f"{tree}/f", "rb"))
    config, port = f"{place}/listens.conf", harness.free_port()
    with open(config, "w") as file:
        file.write(f"use chroot = no\n{IDENTITY}[mod]\npath = {tree}\n")
    process = subprocess.Popen([harness.HUAI, "--daemon", "--no-detach", f"--config={config}", "--address=127.0.0.1",
                                f"--port={port}", f"--log-file={place}/log"], stdin=kept[0], env=harness.ENVIRONMENT)
    try:
        wait_for(lambda: harness.run(harness.STOCK, f"rsync://127.0.0.1:{port}/").stdout.startswith(b"mod"), 20)
    finally:
        process.terminate()
        process.wait(60)
        for item in kept:
            item.close()


def test_a_daemon_over_a_remote_shell_serves_its_modules(place, tree):
    path = os.path.join(place, "shell.conf")
    with open(path, "w") as file:
        file.write(f"log file = {place}/log\nuse chroot = no\n{IDENTITY}[mod]\npath = {tree}\nhosts allow = 192.0.2.9\n")
    shell = harness.make_remote_shell(place)
    words = [harness.STOCK, "-a", "-e", shell, f"--rsync-path={harness.HUAI} --config={path}", "host::mod/f", f"{place}/out/"]
    refused = harness.run(*words, environment={"SSH_CONNECTION": "192.0.2.8 1 192.0.2.1 22"})
    assert refused.code == 5 and b"access denied to mod" in refused.stderr, refused.text
    result = harness.run(*words, environment={"SSH_CONNECTION": "192.0.2.9 1 192.0.2.1 22"})
    assert result.code == 0, result.text
    assert os.listdir(f"{place}/out") == ["f"]


# --- identity and the two sides of a module ---

@root_only
def test_a_server_keeps_no_identity_but_the_modules(place, tree):  # S-111
    config = f"use chroot = no\nuid = 65534\ngid = 65534 10\n[mod]\npath = {tree}\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        wait_for(lambda: not server_pids(daemon))
        connection, answer = open_session(daemon, "mod")
        assert answer.endswith(b"@RSYNCD: OK\n")
        with open(f"/proc/{server_pids(daemon)[0]}/status") as file:
            status = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
        connection.close()
    assert status["Uid"].split() == ["65534"] * 4
    assert status["Gid"].split() == ["65534"] * 4
    assert sorted(status["Groups"].split()) == ["10", "65534"]
    assert status["CapEff"].strip("0") == "" and status["NoNewPrivs"] == "1"


@root_only
def test_a_name_converter_answers_for_the_tables(place):
    os.mkdir(f"{place}/src")
    trees.write(f"{place}/src/file", b"x", owner=(4321, 4321))
    with open(f"{place}/converter", "w") as file:
        file.write(f"""#!/bin/sh
echo "$RSYNC_MODULE_NAME|$RSYNC_REQUEST|$RSYNC_ARG0|$RSYNC_ARG1" > {place}/seen
while read kind value; do
    case $kind:$value in uid:4321) echo daemon;; gid:4321) echo mail;; *) echo;; esac
done
""")
    os.chmod(f"{place}/converter", 0o755)
    os.mkdir(f"{place}/daemon")
    config = f"uid = root\ngid = root\nuse chroot = yes\n[mod]\npath = {place}/src\nname converter = {place}/converter\n"
    with harness.Daemon(harness.HUAI, config, f"{place}/daemon") as daemon:
        result = harness.run(harness.STOCK, "-a", daemon.url("mod/"), f"{place}/out/")
        assert result.code == 0, result.text
    status = os.stat(f"{place}/out/file")
    assert (status.st_uid, status.st_gid) == (pwd.getpwnam("daemon").pw_uid, grp.getgrnam("mail").gr_gid)
    with open(f"{place}/seen") as file:
        assert file.read() == "mod|mod/|rsyncd|--server\n"


def attr_tree(source, target):
    """What --only-send-attrs makes, by hand."""
    for directory, _, names in os.walk(source):
        copy = os.path.join(target, os.path.relpath(directory, source))
        os.makedirs(copy, exist_ok=True)
        for name in names:
            status = os.lstat(os.path.join(directory, name))
            with open(os.path.join(copy, name), "wb") as file:
                file.write(struct.pack("<Q", status.st_size))
            os.chmod(os.path.join(copy, name), status.st_mode & 0o7777)
            os.utime(os.path.join(copy, name), ns=(status.st_atime_ns, status.st_mtime_ns))
    for directory, _, _ in os.walk(source):
        status = os.lstat(directory)
        os.utime(os.path.join(target, os.path.relpath(directory, source)), ns=(status.st_atime_ns, status.st_mtime_ns))


def contents(path):
    found = {}
    for directory, _, names in os.walk(path):
        for name in names:
            with open(os.path.join(directory, name), "rb") as file:
                found[os.path.relpath(os.path.join(directory, name), path)] = file.read()
    return found


@root_only
def test_both_layouts_of_a_module_with_a_prefix(place, tree):
    os.makedirs(f"{place}/storage/mirror-attrs")
    os.makedirs(f"{place}/storage/mirrors")
    tree = shutil.copytree(tree, f"{place}/storage/mirrors/foo", symlinks=True)
    attr_tree(tree, f"{place}/storage/mirror-attrs/foo")
    config = f"""
uid = nobody
gid = {harness.NOBODY_GROUP}
[foo]
path = {place}/storage/./mirror-attrs/foo
real file prefix = /mirrors/foo
use chroot = yes
read only = no
[centos]
path = {place}/storage/mirror-attrs/foo
real file prefix = {tree}
use chroot = no
[barz]
path = {tree}
"""
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        for module in ("foo", "centos", "barz"):
            result = harness.run(harness.STOCK, "-a", daemon.url(f"{module}/"), f"{place}/{module}/")
            assert result.code == 0, result.text
            assert contents(f"{place}/{module}") == contents(tree)
        push = harness.run(harness.STOCK, "-a", f"{tree}/f", daemon.url("foo/"))
        assert push.code != 0 and b"attr tree or snapshot and is read only" in push.stderr, push.text


def test_what_the_attr_tree_missed_is_counted(place):
    os.mkdir(f"{place}/real")
    for name in ("same", "grown", "gone"):
        trees.write(f"{place}/real/{name}", b"content")
    attr_tree(f"{place}/real", f"{place}/attrs")
    trees.write(f"{place}/real/grown", b"more content than before")
    os.unlink(f"{place}/real/gone")
    config = f"use chroot = no\n{IDENTITY}[mod]\npath = {place}/attrs\nreal file prefix = {place}/real\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        result = harness.run(harness.STOCK, "-a", daemon.url("mod/"), f"{place}/out/")
        assert result.code == 24, result.text
        assert contents(f"{place}/out") == contents(f"{place}/real")
        wait_for(lambda: "module mod: 1 stale and 1 missing files" in daemon.log())


def test_a_prefix_that_vanishes_is_an_error_without_its_cause(place, tree):
    os.mkdir(f"{place}/real")
    config = f"use chroot = no\n{IDENTITY}[mod]\npath = {tree}\nreal file prefix = {place}/real\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        os.rmdir(f"{place}/real")
        answer, _ = talk(daemon, GREETING + b"mod\n")
        assert answer.endswith(b"@ERROR: chdir failed\n")
        assert f"{place}/real" in daemon.log() and place.encode() not in answer
