# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that the daemon runs around a session: when, as whom, with which environment (doc/protocol/07-daemon.md
section 5.14)."""
import os
import re
import signal
import socket
import time

import pytest

import harness
import trees
from test_daemon import children_of, server_pids, wait_for

IS_ROOT = os.geteuid() == 0
IDENTITY = "uid = root\ngid = root\n" if IS_ROOT else ""
# A hook that writes down what it is given: NAME.PHASE in the place of its daemon.
NOTE = r"""#!/bin/sh
{ env | grep '^RSYNC_' | grep -v '^RSYNC_PID=[1-9]' | sort; echo "stdin: $(cat | tr '\n' '|')"; } >"$1.part"
mv "$1.part" "$1"
echo "output of $1" | sed 's,/.*/,,'
exit ${2:-0}
"""
FAIL = "#!/bin/sh\nprintf 'first\\r\\nsecond\\n'\nexit 7\n"

# module: its lines; NOTES is the directory of notes, HOOK the script
MODULES = {
    "all": "early exec = HOOK NOTES/early\npre-xfer exec = HOOK NOTES/pre\npost-xfer exec = HOOK NOTES/post",
    "early": "early exec = HOOK NOTES/early 3\npre-xfer exec = HOOK NOTES/pre\npost-xfer exec = HOOK NOTES/post",
    "output": "pre-xfer exec = FAIL",
    "missing": "pre-xfer exec = /nonexistent/command\npost-xfer exec = HOOK NOTES/post",
    "killed": "pre-xfer exec = kill -9 $$",
    "refuse": "refuse options = checksum\npre-xfer exec = HOOK NOTES/pre\npost-xfer exec = HOOK NOTES/post",
    "both": "refuse options = checksum\npre-xfer exec = HOOK NOTES/pre 9",
    "gone": "path = NOTES/nothing\npost-xfer exec = HOOK NOTES/post",
    "user": "auth users = *\nsecrets file = NOTES/secrets\npost-xfer exec = HOOK NOTES/%RSYNC_USER_NAME%.post",
    "quoted": "post-xfer exec = HOOK NOTES/post %HOME% '%RSYNC_MODULE_NAME%' \"%RSYNC_HOST_ADDR%\"; "
              "echo %RSYNC_MODULE_NAME% '%RSYNC_MODULE_NAME%' \"%RSYNC_MODULE_NAME%\" %NOPE% >NOTES/words.part; "
              "mv NOTES/words.part NOTES/words",
}


class Place:
    """A daemon, and where its hooks leave their notes."""

    def __init__(self, program, directory, tree):
        self.directory = directory
        os.makedirs(directory)
        for name, text in (("hook", NOTE), ("fail", FAIL)):
            trees.write(os.path.join(directory, name), text.encode())
            os.chmod(os.path.join(directory, name), 0o755)
        trees.write(os.path.join(directory, "secrets"), b"joe:pw\nbad;rm:pw\ntouc?:pw\n")
        os.chmod(os.path.join(directory, "secrets"), 0o600)
        config = f"use chroot = no\n{IDENTITY}"
        for name, lines in MODULES.items():
            config += f"[{name}]\npath = {tree}\n{lines}\n"
        config = config.replace("NOTES", directory).replace("HOOK", f"{directory}/hook").replace("FAIL", f"{directory}/fail")
        self.daemon = harness.Daemon(program, config, directory)

    def notes(self, expected):
        """What the hooks have noted, once all that is expected is there."""
        deadline = time.monotonic() + 60
        while not all(os.path.exists(os.path.join(self.directory, name)) for name in expected):
            assert time.monotonic() < deadline, (expected, os.listdir(self.directory), self.daemon.log())
            time.sleep(0.01)
        found = {}
        for name in ("early", "pre", "post", "joe.post", "words"):
            path = os.path.join(self.directory, name)
            if os.path.exists(path):
                with open(path, errors="surrogateescape") as file:
                    found[name] = file.read().replace(self.directory, "PLACE")
                os.unlink(path)
        return found


@pytest.fixture(scope="module")
def places(workspace):
    directory = os.path.join(workspace, "exec")
    tree = os.path.join(directory, "tree")
    os.makedirs(os.path.join(tree, "sub dir"))
    for name in ("f1", "f2", "sub dir/g"):
        trees.write(os.path.join(tree, name), b"content of " + name.encode())
    found = [Place(program, os.path.join(directory, os.path.basename(program)), tree) for program in (harness.HUAI, harness.STOCK)]
    with found[0].daemon, found[1].daemon:
        yield found


def compare(places, place, expected, *words, paths, same_code=True):
    """Pull from both daemons with the stock client: outcome, log lines and notes of the hooks are the same."""
    outcomes = []
    for hooked in places:
        before = len(hooked.daemon.log())
        target = os.path.join(place, os.path.basename(hooked.directory)) + "/"
        urls = [hooked.daemon.url(paths[0]), *(f"127.0.0.1::{path}" for path in paths[1:])]
        result = harness.run(harness.STOCK, f"--port={hooked.daemon.port}", *words, *urls, target,
                             environment={"RSYNC_PASSWORD": "pw"})
        notes = hooked.notes(expected)
        text = (result.stdout + result.stderr).decode()
        reported = [line for line in text.splitlines() if re.search("exec|rsync (on|to)|first|second|output|refuse|@ERROR", line)]
        log = [re.sub(r"^.*?\] ", "", line) for line in hooked.daemon.log()[before:].splitlines()
               if re.search("exec|rsync (on|to)|first|second|output", line)]
        # Stock adds the error of a call that had nothing to do with it.
        log = [line.replace("early exec failed: No child processes (10)", "early exec failed") for line in log]
        log = [line.replace(hooked.directory, "PLACE") for line in log]
        outcomes.append((result.code if same_code else None, reported, log, notes))
    assert outcomes[0] == outcomes[1]
    return outcomes[0]


@pytest.mark.core
def test_every_hook_has_the_environment_of_stock(places, place):
    early = os.path.join(place, "early-input")
    trees.write(early, b"line one\nline two\n")
    outcome = compare(places, place, ("early", "pre", "post"), "-av", f"--early-input={early}", paths=["all/f?", "all/sub dir"])
    notes = outcome[3]
    assert outcome[0] == 0 and set(notes) == {"early", "pre", "post"}
    assert "RSYNC_REQUEST=(NONE)" in notes["early"] and "stdin: line one|line two" in notes["early"]
    assert "RSYNC_REQUEST=all/f? all/sub dir" in notes["pre"] and "=sub dir\n" in notes["pre"]
    assert "RSYNC_EXIT_STATUS=0\n" in notes["post"] and "RSYNC_REQUEST" not in notes["post"]


@pytest.mark.parametrize("module, words, expected", [
    ("early", (), ("early", "post")), ("output", (), ()),
    ("missing", (), ("post",)), ("killed", (), ()), ("refuse", ("-c",), ("post",)), ("both", ("-c",), ()), ("gone", (), ("post",)),
    ("quoted", (), ("post", "words")), ("all", ("--protocol=29",), ("early", "pre", "post")),
    ("all", ("-s",), ("early", "pre", "post")),
])
def test_failures_and_their_words_are_those_of_stock(places, place, module, words, expected):
    compare(places, place, expected, "-a", *words, paths=[f"{module}/"], same_code=False)


def log_in_as(hooked, place, user):
    target = os.path.join(place, os.path.basename(hooked.directory)) + "/"
    return harness.run(harness.STOCK, "-a", hooked.daemon.url("user/", f"{user}@"), target, environment={"RSYNC_PASSWORD": "pw"})


@pytest.mark.core
def test_users_are_named_in_commands_and_in_the_environment(places, place):
    notes = []
    for hooked in places:
        assert log_in_as(hooked, place, "joe").code == 0
        notes.append(hooked.notes(("joe.post",)))
    assert notes[0] == notes[1] and "RSYNC_USER_NAME=joe\n" in notes[0]["joe.post"]


@pytest.mark.parametrize("user", ("bad;rm", "touc?"))
def test_a_user_whose_name_a_shell_could_act_on_runs_nothing(places, place, user):
    """S-116"""
    outcomes = []
    for hooked in places:
        before = len(hooked.daemon.log())
        result = log_in_as(hooked, place, user)
        lines = [re.sub(r"^.*?\] ", "", line) for line in hooked.daemon.log()[before:].splitlines() if "metachar" in line]
        outcomes.append((result.code, harness.normalise(result.stderr), lines))
        assert not any(name.endswith(".post") for name in os.listdir(hooked.directory))
    assert outcomes[0] == outcomes[1] and outcomes[0][2]


CHATTER = b"@RSYNCD: 31.0 md5\n"


def hooked_daemon(place, lines, **options):
    config = f"use chroot = no\n{IDENTITY}[m]\npath = {place}\n{lines}\n"
    return harness.Daemon(harness.HUAI, config, place, **options)


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return ""


def test_the_end_of_a_killed_session_is_told_and_frees_its_slot(place):
    """The slot is held by the process that waits; a signal to it reaches the session."""
    lines = f"max connections = 1\nlock file = {place}/lock\npost-xfer exec = echo $RSYNC_EXIT_STATUS $RSYNC_RAW_STATUS >>{place}/ends"
    with hooked_daemon(place, lines) as daemon:
        wait_for(lambda: not server_pids(daemon))
        for number, signum in enumerate((signal.SIGKILL, signal.SIGTERM)):
            with socket.create_connection(("127.0.0.1", daemon.port), timeout=20) as connection:
                connection.sendall(CHATTER + b"m\n")
                stream = connection.makefile("rb")
                stream.readline()
                assert stream.readline() == b"@RSYNCD: OK\n"
                waiting, = server_pids(daemon)
                result = harness.run(harness.STOCK, daemon.url("m/"))
                assert b"max connections (1) reached" in result.stdout + result.stderr, result.text
                os.kill(children_of(waiting)[0] if signum == signal.SIGKILL else waiting, signum)
                assert stream.read() == b""
            wait_for(lambda: len(read(f"{place}/ends").splitlines()) == number + 1)
            wait_for(lambda: not server_pids(daemon))
        assert read(f"{place}/ends") == "-1 9\n20 5120\n"
        assert harness.run(harness.STOCK, daemon.url("m/")).code == 0


def test_commands_inherit_no_descriptor_of_the_session(place):
    lines = "".join(f"{phase} exec = ls /proc/self/fd | tr '\\n' ' ' >{place}/{phase}\n" for phase in ("early", "pre-xfer", "post-xfer"))
    with hooked_daemon(place, lines + "max connections = 2\nlock file = " + place + "/lock\n") as daemon:
        assert harness.run(harness.STOCK, daemon.url("m/")).code == 0
        for phase in ("early", "pre-xfer", "post-xfer"):
            wait_for(lambda: read(f"{place}/{phase}"))
            # 3 is the directory that ls reads
            assert read(f"{place}/{phase}").split() == ["0", "1", "2", "3"], phase


def test_a_hook_may_take_longer_than_the_handshake(place):
    """S-049, with output that no pipe holds, and one that ignores its input."""
    early = os.path.join(place, "early-input")
    trees.write(early, b"x" * 5120)
    lines = "timeout = 1\nearly exec = sleep 1.2\npre-xfer exec = sleep 1.2; head -c 200000 /dev/zero"
    with hooked_daemon(place, lines) as daemon:
        result = harness.run(harness.STOCK, f"--early-input={early}", daemon.url("m/"))
        assert result.code == 0, result.text


def test_hooks_of_a_daemon_over_a_shell_do_not_speak_to_the_client(place):
    shell = harness.make_remote_shell(place)
    path = os.path.join(place, "conf")
    lines = "".join(f"{phase} exec = echo said; cat >{place}/{phase}\n" for phase in ("early", "pre-xfer", "post-xfer"))
    trees.write(path, f"use chroot = no\n{IDENTITY}[m]\npath = {place}\n{lines}".encode())
    result = harness.run(harness.STOCK, f"--rsync-path={harness.HUAI} --config={path}", f"--rsh={shell}", "host::m/")
    assert result.code == 0 and b"said" not in result.stdout, result.text
    wait_for(lambda: os.path.exists(f"{place}/post-xfer"))


def test_no_command_runs_where_the_daemons_environment_says_so(place):
    lines = f"early exec = touch {place}/ran\npre-xfer exec = exit 1\npost-xfer exec = touch {place}/ran\n"
    path = os.path.join(place, "conf")
    trees.write(path, f"use chroot = no\n{IDENTITY}[m]\npath = {place}\n{lines}".encode())
    shell = harness.make_remote_shell(place)
    result = harness.run(harness.STOCK, f"--rsync-path={harness.HUAI} --config={path}", f"--rsh={shell}", "host::m/",
                         environment={"RSYNC_NO_XFER_EXEC": "1"})
    assert result.code == 0 and not os.path.exists(f"{place}/ran"), result.text
