# SPDX-License-Identifier: GPL-3.0-or-later
"""How the client reaches a server, beside stock's: the words it sends, what it says of failures, and with which code it ends.

Both clients are given the same scripted peers: a remote shell that records its words, a daemon that says its lines and records
the words that it gets, a proxy.
"""
import os
import pty
import re
import select
import socket
import threading
import time

import pytest

import harness
import trees

GREETING = b"@RSYNCD: 31.0 sha1 md5\n"
# What is compared is said in the newest protocol that both know.
BOTH = (harness.STOCK, harness.HUAI)
NEWEST = "--protocol=32"


class Peer:
    """A listener that serves one connection by `script(connection, record)`."""

    def __init__(self, script):
        self.script = script
        self.received = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(10)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self.thread.start()
        return self

    def _serve(self):
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return
        with connection:
            connection.settimeout(10)
            try:
                self.script(self, connection)
            except OSError:
                pass

    def read_more(self, connection, seconds=0.15):
        """Whatever comes until it is quiet for a while."""
        while select.select([connection], [], [], seconds)[0]:
            data = connection.recv(65536)
            if not data:
                return
            self.received += data

    def __exit__(self, *exception):
        self.listener.close()
        self.thread.join(10)


def says(*pieces):
    """A script that says the pieces, waiting for what the client has to say behind each."""
    def script(peer, connection):
        for piece in pieces:
            connection.sendall(piece)
            peer.read_more(connection)
    return script


def talk(program, script, *words, path="mod/", destination="dst", environment=None, cwd=None):
    with Peer(script) as peer:
        operands = [f"rsync://127.0.0.1:{peer.port}/{path}"] + ([destination] if destination else [])
        result = harness.run(program, NEWEST, *words, *operands, environment=environment, cwd=cwd, timeout=20)
    output = harness.normalise(result.stdout + b"--\n" + result.stderr, (str(peer.port), "PORT"))
    # Until a session has begun there is nothing to compare but that there is none.
    output = re.sub(rb"rsync: connection unexpectedly closed.*\n|rsync: \[\w+\] (read error|safe_read).*\n", b"", output)
    return result.code, output, peer.received


# --- a daemon's lines ---

DAEMON_SCRIPTS = {
    "silence": (b"",),
    "half-greeting": (b"@RSYNCD: 3",),
    "other-service": (b"SSH-2.0-\x01\n",),
    "endless-line": (b"x" * 6000,),
    "no-subprotocol": (b"@RSYNCD: 32\n",),
    "no-digests": (b"@RSYNCD: 32.0\n",),
    "greeting-only": (GREETING,),
    "motd-only": (GREETING + b"hello\x01\n\nworld\n",),
    "nul-in-line": (GREETING + b"hel\0lo\n",),
    "long-motd-line": (GREETING, b"x" * 6000 + b"\n"),
    "error": (GREETING, b"hello\n@ERROR: no \x1b[1mway\n"),
    "exit": (GREETING, b"hello\n@RSYNCD: EXIT\n"),
    "nearly-ok": (GREETING, b"@RSYNCD: OKx\n@RSYNCD: FOO\n"),
    "crlf": (GREETING.replace(b"\n", b"\r\n"), b"he\rllo\r\n@RSYNCD: EXIT\r\n"),
    "challenge-no-digest": (b"@RSYNCD: 31.0 foo\n", b"@RSYNCD: AUTHREQD abc\n"),
    "challenge": (GREETING, b"@RSYNCD: AUTHREQD abc\n", b"@ERROR: auth failed on module mod\n"),
    "challenge-no-list": (b"@RSYNCD: 31.0\n", b"@RSYNCD: AUTHREQD abc\n", b"@ERROR: auth failed on module mod\n"),
    "challenge-old": (b"@RSYNCD: 29\n", b"@RSYNCD: AUTHREQD abc\n", b"@ERROR: auth failed on module mod\n"),
}


@pytest.mark.parametrize("name", DAEMON_SCRIPTS)
def test_a_daemons_lines(name, tmp_path):
    script = says(*DAEMON_SCRIPTS[name])
    results = [talk(program, script, cwd=tmp_path, environment={"RSYNC_PASSWORD": "sekrit", "USER": "me"}) for program in BOTH]
    assert results[1] == results[0]


@pytest.mark.parametrize("version", (b"19.0", b"41.0 md5"))
def test_versions_of_no_rsync(version, tmp_path):
    """Stock's words and code; but ours does not go on to the module first."""
    script = says(b"@RSYNCD: " + version + b"\n@RSYNCD: OK\n")
    results = [talk(program, script, cwd=tmp_path) for program in BOTH]
    assert results[1][:2] == results[0][:2]
    assert b"mod" not in results[1][2]


REQUESTS = {
    "plain": ((), "mod/", {}),
    "module": ((), "mod", {}),
    "archive": (("-avH",), "mod/a b*/", {}),
    "blank-module": (("-r",), "mod/a mod/b mod/ c", {}),
    "blank-module-old": (("-r", "--old-args"), "mod/a mod/b", {}),
    "dash": ((), "-mod/x", {}),
    "dash-module": ((), "-mod", {}),
    "secluded": (("-rs", "-M--foo=a b"), "mod/a b", {}),
    "secluded-environment": (("-r",), "mod/a b", {"RSYNC_PROTECT_ARGS": "1"}),
    "escaped": (("-r", "-M--foo=a b*"), "mod/a b*", {}),
    "words": (("-rvv", "-M--foo=a b*"), "mod/a b*", {}),
    "words-secluded": (("-rvvs", "-M--foo=a b*"), "mod/a b*", {}),
    "no-motd": (("--no-motd",), "mod/", {}),
    "quiet": (("-q",), "mod/", {}),
    "user": (("-r",), "mod/", {}),
}


@pytest.mark.parametrize("protocol", (29, 31))
@pytest.mark.parametrize("name", REQUESTS)
def test_what_a_daemon_is_asked(name, protocol, tmp_path):
    words, path, environment = REQUESTS[name]
    if protocol == 29 and "secluded" in name:
        pytest.skip("stock sends a word \"(null)\" here")
    greeting = GREETING if protocol == 31 else b"@RSYNCD: 29\n"
    script = says(greeting, b"message of the day\n@RSYNCD: OK\n")
    results = [talk(program, script, *words, path=path, environment=environment, cwd=tmp_path) for program in BOTH]
    assert results[1][2] == results[0][2]
    assert results[1][0] == results[0][0]
    assert results[1][1] == results[0][1]


def test_secluded_arguments_below_protocol_30(tmp_path):
    script = says(b"@RSYNCD: 29\n", b"@RSYNCD: OK\n")
    received = talk(harness.HUAI, script, "-rs", path="mod/a b", cwd=tmp_path)[2]
    assert received.endswith(b"mod\n--server\n--sender\n-sr\n\nrsync\0.\0mod/a b\0\0")


@pytest.mark.parametrize("content", (b"xx\nyy\n", b"", b"x" * 5120, b"x" * 5121, None))
def test_early_input(content, tmp_path):
    file = tmp_path / "early"
    if content is not None:
        file.write_bytes(content)
    results = [talk(program, says(GREETING), f"--early-input={file}", cwd=tmp_path) for program in BOTH]
    assert results[1] == results[0]


@pytest.mark.parametrize("content,mode,owner", (
    (b"sekrit\nmore\n", 0o600, 0), (b"sekrit\r\n", 0o400, 0), (b"", 0o600, 0), (b"\nx\n", 0o600, 0), (b"sekrit\n", 0o604, 0),
    (b"sekrit\n", 0o602, 0), (b"sekrit\n", 0o640, 0), (b"sekrit\n", 0o600, 1234), (None, 0, 0), (b"s" * 600 + b"\n", 0o600, 0)))
def test_password_files(content, mode, owner, tmp_path):
    if owner and os.geteuid() != 0:
        pytest.skip("needs root")
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
        os.chmod(file, mode)
        os.chown(file, owner, -1) if owner else None
    script = says(GREETING, b"@RSYNCD: AUTHREQD abc\n", b"@ERROR: go\n")
    results = [talk(program, script, f"--password-file={file}", cwd=tmp_path, environment={"RSYNC_PASSWORD": "other"})
               for program in BOTH]
    assert results[1] == results[0]


def test_a_password_is_asked_for_on_the_terminal(tmp_path):
    answers = []
    for program in BOTH:
        with Peer(says(GREETING, b"@RSYNCD: AUTHREQD abc\n", b"@ERROR: go\n")) as peer:
            child, terminal = pty.fork()
            if child == 0:
                os.execve(program, [program, NEWEST, f"rsync://me@127.0.0.1:{peer.port}/mod/", str(tmp_path)], harness.ENVIRONMENT)
            shown, sent, deadline = b"", False, time.monotonic() + 20
            while time.monotonic() < deadline:
                try:
                    if select.select([terminal], [], [], 0.2)[0]:
                        shown += os.read(terminal, 4096)
                except OSError:
                    break
                if b"Password: " in shown and not sent:
                    time.sleep(0.1)
                    os.write(terminal, b"sekrit\n")
                    sent = True
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            os.close(terminal)
        assert b"sekrit" not in shown
        answers.append((code, peer.received))
    assert answers[1] == answers[0]
    assert b"\nme " in answers[0][1]


# --- the way to a daemon ---

def outcome(program, *words, environment=None, cwd=None):
    result = harness.run(program, NEWEST, *words, environment=environment, cwd=cwd, timeout=20)
    return result.code, harness.normalise(result.stdout + b"--\n" + result.stderr)


UNREACHABLE = {
    "refused": (("rsync://127.0.0.1:1/m/", "d"), {}),
    "refused-push": (("/dev/null", "rsync://127.0.0.1:1/m/"), {}),
    "port-option": (("--port=1", "127.0.0.1::m", "d"), {}),
    "wrong-family": (("-4", "rsync://[::1]:1/m/", "d"), {}),
    "unknown-option": (("--sockopts=FOO", "rsync://127.0.0.1:1/m/", "d"), {}),
    "proxy-refused": (("rsync://h/m/", "d"), {"RSYNC_PROXY": "127.0.0.1:1"}),
    "proxy-no-port": (("rsync://h/m/", "d"), {"RSYNC_PROXY": "127.0.0.1"}),
    "proxy-bad-port": (("rsync://h/m/", "d"), {"RSYNC_PROXY": "127.0.0.1:x"}),
    "program-echo": (("rsync://h/m/", "d"), {"RSYNC_CONNECT_PROG": "echo %H %% %x"}),
    "program-unsafe": (("rsync://a b/m/", "d"), {"RSYNC_CONNECT_PROG": "echo %H"}),
    "program-option": (("rsync://~h/m/", "d"), {"RSYNC_CONNECT_PROG": "echo %H"}),
    "program-no-host": (("rsync://a b/m/", "d"), {"RSYNC_CONNECT_PROG": "echo foo"}),
    "slash": (("h::/m", "d"), {}),
}


@pytest.mark.parametrize("name", UNREACHABLE)
def test_what_keeps_from_reaching_a_daemon(name, tmp_path):
    words, environment = UNREACHABLE[name]
    results = [outcome(program, *words, environment=environment, cwd=tmp_path) for program in BOTH]
    assert results[1] == results[0]


def test_an_address_that_is_not_ours(tmp_path):
    """Stock ends in the same way, but without a reason."""
    code, output = outcome(harness.HUAI, "--address=192.0.2.1", "rsync://127.0.0.1:1/m/", "d", cwd=tmp_path)
    assert code == 10
    assert b"failed to connect to 127.0.0.1 (127.0.0.1): Cannot assign requested address (99)\n" in output


def test_a_host_that_does_not_answer(tmp_path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        queue = [socket.socket() for _ in range(4)]
        for waiting in queue:
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        url = f"rsync://127.0.0.1:{listener.getsockname()[1]}/m/"
        results = [outcome(program, "--contimeout=1", url, "d", cwd=tmp_path) for program in BOTH]
        for waiting in queue:
            waiting.close()
    assert results[1] == results[0]
    assert results[0][0] == 35


def test_a_daemon_that_says_nothing(tmp_path):
    def silent(peer, connection):
        while connection.recv(4096):
            pass
    results = [talk(program, silent, "--timeout=1", cwd=tmp_path) for program in BOTH]
    assert results[1] == results[0]
    assert results[0][0] == 30


PROXY_ANSWERS = {
    "good": b"HTTP/1.0 200 ok\r\nfoo: bar\r\n\r\n" + GREETING,
    "good-lf": b"HTTP/1.1  204\nfoo: bar\n\n" + GREETING,
    "denied": b"HTTP/1.0 407 no\r\nfoo: bar\r\n\r\n",
    "not-http": b"FOO\n",
    "long-line": b"HTTP/1.0 200 ok\r\n" + b"x" * 3000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("name", PROXY_ANSWERS)
@pytest.mark.parametrize("login", ("", "user:p@ss@"))
def test_proxies(name, login, tmp_path):
    results = []
    for program in BOTH:
        def script(peer, connection):
            peer.read_more(connection)
            connection.sendall(PROXY_ANSWERS[name])
            peer.read_more(connection)
            if b"200" in PROXY_ANSWERS[name] or b"204" in PROXY_ANSWERS[name]:
                connection.sendall(b"@ERROR: go\n")
        with Peer(script) as peer:
            result = outcome(program, "rsync://far.example:77/m/", "d", cwd=tmp_path,
                             environment={"RSYNC_PROXY": f"{login}127.0.0.1:{peer.port}"})
        results.append((result, peer.received))
    assert results[1] == results[0]


def test_a_program_in_place_of_the_network(tmp_path):
    log = tmp_path / "words"
    lines = 'printf "@RSYNCD: 31.0 md5\\n"; head -n 2 >%s; printf "hello\\n@RSYNCD: EXIT\\n"' % log
    results = []
    for program in BOTH:
        result = outcome(program, "rsync://h.example/", environment={"RSYNC_CONNECT_PROG": lines})
        results.append((result, log.read_bytes()))
    assert results[1] == results[0]
    assert results[0][0][1].startswith(b"hello\n")


# --- module listings ---

CONFIG = """
use chroot = no
motd file = {directory}/motd
[first]
	path = {directory}
	comment = the first one
[a-module-with-a-long-name]
	path = {directory}
[hidden]
	path = {directory}
	list = no
"""


@pytest.mark.parametrize("words", ((), ("--no-motd",), ("-q",), ("-v",), ("--protocol=29",), ("-4",),
		("--sockopts=SO_RCVBUF=65536",)))
def test_module_listings(words, tmp_path):
    (tmp_path / "motd").write_text("Welcome.\n\n  Behave.\n")
    for server in BOTH:
        with harness.Daemon(server, CONFIG.format(directory=tmp_path), str(tmp_path)) as daemon:
            results = [outcome(program, *words, daemon.url()) for program in BOTH]
            assert results[1] == results[0]
            over_shell = [outcome(program, *words, "-e", make_daemon_shell(tmp_path, server, daemon),
		"host::") for program in BOTH]
            assert over_shell[1] == over_shell[0]
    assert (b"first          \tthe first one\n" in results[0][1]) == (words not in (("--no-motd",), ("-q",)))


def make_daemon_shell(directory, server, daemon):
    path = os.path.join(directory, "daemon-shell")
    with open(path, "w") as file:
        file.write(f'#!/bin/sh\nshift; [ "$*" = "rsync --server --daemon ." ] || exit 99\n'
                   f'exec {server} --server --daemon --config={daemon.config_file} .\n')
    os.chmod(path, 0o755)
    return path


# --- the remote shell ---

@pytest.fixture(scope="module")
def recorder(tmp_path_factory):
    """A remote shell that writes its words, NUL-terminated, to $RECORD, and its input, if that is wanted, to $RECORD.in: the
    secluded words, which end with an empty one, or a daemon's greeting."""
    directory = tmp_path_factory.mktemp("shell")
    path = directory / "record"
    (directory / "input.py").write_text(
        "import os, sys\n"
        "data = b''\n"
        "while not data.endswith((b'\\0\\0', b'\\n')):\n"
        "    more = os.read(0, 65536)\n"
        "    if not more:\n"
        "        break\n"
        "    data += more\n"
        "open(sys.argv[1], 'wb').write(data)\n")
    path.write_text('#!/bin/sh\n{ printf "%s\\0" "${0##*/}" "$@"; echo "${RSYNC_PORT-none}"; } >"$RECORD"\n'
                    f'[ "$RECORD_INPUT" ] && timeout 10 /usr/bin/python3 {directory}/input.py "$RECORD.in"\nexit 0\n')
    os.chmod(path, 0o755)
    os.symlink(path, directory / "ssh")
    return directory


def record(program, directory, *words, environment=None, cwd=None):
    target = os.path.join(cwd, "recorded")
    for name in (target, target + ".in"):
        if os.path.exists(name):
            os.unlink(name)
    wanted = {"RECORD": target, "RECORD_INPUT": "1" if "-s" in words else ""}
    result = harness.run(program, NEWEST, *words, environment={**wanted, **(environment or {})}, cwd=cwd, timeout=20)
    if not os.path.exists(target):
        # Stock's parent may come to know of a failed exec before or after its end of the connection has closed.
        return result.code == 1, result.stderr.splitlines()[:1], None
    return "ran", read(target), read(target + ".in")


def read(name):
    if not os.path.exists(name):
        return None
    with open(name, "rb") as file:
        return file.read()


def assert_same_command(recorder, cwd, *words, environment=None):
    results = [record(program, recorder, *words, environment=environment, cwd=cwd) for program in BOTH]
    assert results[1] == results[0]
    return results[0]


COMMANDS = ["{d}/record", "{d}/record  -a   b", "{d}/record 'x y' z", "{d}/record 'it''s'", '{d}/record "a""b"',
		'{d}/record a"b c"d',
            "{d}/record '' z", "{d}/record a\\ b", "{d}/record \"a'b\"", " {d}/record q ", "{d}/record 'a", '{d}/record a"b',
            "{d}/record\ta", "{d}/ssh", "{d}/ssh -p 22", "{d}/record -l other", "{d}/record -l -x"]


@pytest.mark.parametrize("operand", ("h:x", "user@h:x", "@h:x", "u@[::1]:x", "h::m/x", "u@h::m/x", "rsync://u@h:99/m/x"))
@pytest.mark.parametrize("command", COMMANDS)
def test_the_remote_shells_command(command, operand, recorder, tmp_path):
    assert_same_command(recorder, str(tmp_path), "-e", command.format(d=recorder), operand, "d")


@pytest.mark.parametrize("words", ((), ("-4",), ("-6",), ("--rsync-path=sudo rsync",), ("--rsync-path=",), ("--port=77",),
                                   ("--blocking-io",), ("--protocol=29",), ("-s",), ("--old-args",)))
def test_the_shells_own_options(words, recorder, tmp_path):
    for operand in ("h:x", "h::m/x"):
        assert_same_command(recorder, str(tmp_path), "-e", f"{recorder}/ssh", *words, operand, "d")
        assert_same_command(recorder, str(tmp_path), "-e", f"{recorder}/ssh", *words, "recorded-source", operand)


def test_the_shell_of_the_environment(recorder, tmp_path):
    environment = {"RSYNC_RSH": f"{recorder}/record 'a b'"}
    assert assert_same_command(recorder, str(tmp_path), "h:x", "d", environment=environment)[0] == "ran"
    environment = {"PATH": f"{recorder}:{os.environ['PATH']}"}
    assert assert_same_command(recorder, str(tmp_path), "h:x", "d", environment=environment)[0] == "ran"


PATHS = ["a b", "a*b", "a?b", "a[b]", "a\\*b", "a\\b", "a\\", "$HOME", "`x`", "a{b,c}", "a'b", 'a"b', "!x", "#x", "~", "~user",
         "~*", "~/x", "~user/x", "~/./x", "-x", "a=b a,b a%b", "a:b", "\u00e9", "", "(x)", "a\rb", "a\tb", "a;b|c",
		"<&>"]


@pytest.mark.parametrize("words", ((), ("-R",), ("-s",), ("--old-args",), ("--old-args", "--old-args")))
@pytest.mark.parametrize("path", PATHS)
def test_paths_for_the_remote_shell(path, words, recorder, tmp_path):
    shell = ("-e", f"{recorder}/record")
    assert_same_command(recorder, str(tmp_path), *shell, *words, f"h:{path}", "d")
    assert_same_command(recorder, str(tmp_path), *shell, *words, "source", f"h:{path}")
    assert_same_command(recorder, str(tmp_path), *shell, *words, "h:first", f":{path}", "d")


OPTION_SETS = """-v;-vv;-vvvvvvvvvvvv;-q;-q --msgs2stderr;-q --no-msgs2stderr;--stderr=a;-a;-avz;-azHAXS --numeric-ids --delete;-rvn;-R
--no-implied-dirs;-R --no-implied-dirs;-b --suffix=.old;--backup-dir=bk;--append;--append-verify;-d;-r -d;-a --no-r -d
-d --delete;-L;-k;-K;-E;-pE;-A;--devices;-D --no-devices;-a --no-D;-UU;-U --open-noatime;-UU --no-U;-O;-J;-m;-S --inplace
-S --inplace --no-W;--cc=none;--cc=md5,auto;-B 2K;--delete -r;--delete-before -r;--del -r;--delete-after -r
--delete-delay -r;--delete-excluded --delete-after -r;--delete-excluded -r;--max-delete=0 -r;--max-delete=7 -r
--ignore-missing-args;--delete-missing-args --ignore-missing-args;--max-alloc=2G;--partial-dir=.;--partial-dir=/abs/
--partial-dir=./a/../b//c/.;-P;-vP;--delay-updates -r;--chown=u:g;-@ 2;--modify-window=-1;--modify-window=0;-yy
-yy --link-dest=a --link-dest=b;-z;-zz;--zc=zlib;-z --zc=zstd --zl=3;--zl=5;--zc=none -z;-z --no-z;--files-from=source
--files-from=source -a;--files-from=source --no-R;--files-from=:F;--files-from=:F -0;-s;--list-only;--list-only -r;-i;-ii
-iv;--out-format=%n;--out-format=%o;--out-format=%n -v;--progress;--info=progress2;--info=name;-c -W;--bwlimit=1.5M
--timeout=5;--only-write-batch=F;--protocol=29 -a;--protocol=30 -a;--iconv=utf8,latin1;--iconv=-;-M--foo='a*' -M-x
--info=all2,name0;--info=none;--info=none,name,del,skip,backup,copy,misc;--info=backup,copy,del,misc
--info=none,name,del,skip,backup,copy;--stats;-u;-I;--size-only;--existing;--ignore-existing;--remove-source-files
--remove-sent-files;--max-size=1K;--min-size=5;-C;-xx;-HH;--force;--ignore-errors;--safe-links;--copy-unsafe-links
--numeric-ids;--super;--fsync;-T t;--mkpath;--preallocate;--copy-devices;--write-devices;--checksum-seed=5
--skip-compress=gz/mp[34];--trust-sender;--old-args -M--x=a*;--specials;--no-i-r -r;--chmod=u+x;-f -_x;-F;-8;-h
--contimeout=0;--no-motd"""


@pytest.mark.parametrize("words", re.split("[;\n]", OPTION_SETS))
def test_the_words_for_each_option(words, recorder, tmp_path):
    (tmp_path / "source").write_text("x\n")
    options = ["-e", f"{recorder}/record", *words.split(" ")]
    assert_same_command(recorder, str(tmp_path), *options, "source", "h:d")
    assert_same_command(recorder, str(tmp_path), *options, "h:s/", "d")


def test_daemon_options_need_a_daemon(recorder, tmp_path):
    for words in (("--password-file=x",), ("--contimeout=5",)):
        assert_same_command(recorder, str(tmp_path), "-e", f"{recorder}/record", *words, "h:s/", "d")


@pytest.mark.parametrize("words", [("--contimeout=5", "s/", "d"), ("--contimeout=-1", "s/", "d"), ("--contimeout=5", "s/"),
                                   ("--password-file=x", "s/", "d"), ("--contimeout=0", "s/", "d"), ("--contimeout=0", "s/"),
                                   ("--contimeout=-1", "-e", "false", "h:s/", "d"), ("--contimeout=3", "--read-batch=missing", "d")],
                         ids=" ".join)
def test_local_runs_have_no_daemon(words, tmp_path):
    (tmp_path / "s").mkdir()
    stock, ours = (harness.run(program, *words, cwd=tmp_path) for program in BOTH)
    assert ours.code == stock.code and ours.stderr.split(b"\n")[0] == stock.stderr.split(b"\n")[0], stock.text + ours.text


# What a daemon behind a remote shell says (each step after so many seconds), and the code that --contimeout ends with.
SLOW_STARTS = {
    "silent": ([(9, "")], 35), "greeting": ([(0, "@RSYNCD: 31.0 md5\\n"), (9, "")], 35),
    "challenge": ([(0, "@RSYNCD: 31.0 md5\\n"), (0, "@RSYNCD: AUTHREQD abc\\n"), (9, "")], 35),
    "trickle": ([(0, "@RSYNCD: 31.0 md5\\n"), *[(0.3, "line\\n")] * 60], 35),
    "listing": ([(0, "@RSYNCD: 31.0 md5\\n"), (0, "mod\\n@RSYNCD: EXIT\\n")], 0),
    "end": ([], 5), "silent-after-ok": ([(0, "@RSYNCD: 31.0 md5\\n"), (0, "@RSYNCD: OK\\n"), (1.6, "")], 12),
}


def slow_daemon(path, steps):
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexec 2>/dev/null\n")
        file.writelines(f"sleep {seconds}\nprintf '{text}' || exit\n" for seconds, text in steps)
    os.chmod(path, 0o755)


@pytest.mark.parametrize("name", SLOW_STARTS)
def test_contimeout_bounds_the_start_of_a_daemon_behind_a_shell(name, tmp_path):
    """doc/protocol/09-since-3.5.0.md section 4.1: up to the admission, whatever has come by then; a server that is silent later
    is not bounded."""
    steps, code = SLOW_STARTS[name]
    slow_daemon(tmp_path / "shell", steps)
    (tmp_path / "secret").write_text("pass\n")
    (tmp_path / "secret").chmod(0o600)
    for operands, role in ((("u@h::mod/", "d"), b"Receiver"), (("secret", "u@h::mod/"), b"sender")):
        result = harness.run(harness.HUAI, "-e", str(tmp_path / "shell"), "--contimeout=1", f"--password-file={tmp_path}/secret",
                             *operands, cwd=tmp_path)
        assert result.code == code and result.seconds < 8, result.text
        if code == 35:
            assert result.stderr.startswith(b"[%s] connection timed out -- exiting\n"
                                            b"rsync error: timeout waiting for daemon connection (code 35) at " % role), result.text
        assert (b"line\n" in result.stdout) == (name == "trickle"), result.text


@pytest.mark.parametrize("seconds", ["0", "-3"])
def test_no_contimeout_is_none(seconds, tmp_path):
    slow_daemon(tmp_path / "shell", [(1.2, "@RSYNCD: 31.0 md5\\n"), (0, "mod\\n@RSYNCD: EXIT\\n")])
    result = harness.run(harness.HUAI, "-e", str(tmp_path / "shell"), f"--contimeout={seconds}", "h::", cwd=tmp_path)
    assert result.code == 0 and b"mod\n" in result.stdout, result.text


# --- internationalised host names ---

NAME, ASCII = "b\u00fccher.invalid", b"xn--bcher-kva.invalid"


@pytest.fixture(scope="module")
def has_idn():
    if b"no IDN" in harness.run(harness.HUAI, "--version").stdout:
        pytest.skip("built without libidn2")


def test_the_resolver_and_a_proxy_get_ascii(has_idn, tmp_path):
    """doc/protocol/09-since-3.5.0.md section 11.2. In a locale whose bytes these are not, the name stays."""
    result = harness.run(harness.HUAI, "-vv", f"rsync://{NAME}/m/", cwd=tmp_path)
    assert result.code == 10 and b"getaddrinfo: " + ASCII + b" 873: " in result.stderr, result.text
    assert ASCII not in result.stdout, result.text
    result = harness.run(harness.HUAI, f"rsync://{NAME}/m/", cwd=tmp_path, environment={"LC_ALL": "C"})
    assert result.code == 10 and ASCII not in result.stderr, result.text
    with Peer(lambda peer, connection: peer.read_more(connection, 2)) as peer:
        harness.run(harness.HUAI, "--contimeout=3", f"rsync://{NAME}/m/", cwd=tmp_path,
                    environment={"RSYNC_PROXY": f"127.0.0.1:{peer.port}"})
    assert peer.received.startswith(b"CONNECT " + ASCII + b":873 "), peer.received
    result = harness.run(harness.HUAI, f"rsync://{NAME}/m/", cwd=tmp_path, environment={"RSYNC_CONNECT_PROG": "echo %H"})
    assert ASCII not in result.stdout + result.stderr and result.code == 10, result.text


@pytest.mark.parametrize("operand, is_converted", [(f"{NAME}::m/", True), (f"u\u00fc@{NAME}::m/", True), (f"{NAME}:m/", False)])
def test_the_word_for_a_remote_shell(has_idn, operand, is_converted, tmp_path):
    (tmp_path / "shell").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\n')
    os.chmod(tmp_path / "shell", 0o755)
    harness.run(harness.HUAI, "-e", str(tmp_path / "shell"), operand, cwd=tmp_path)
    words = (tmp_path / "words").read_bytes()
    assert (ASCII in words) == is_converted and (NAME.encode() in words) != is_converted, words
    assert (b"u\xc3\xbc" in words) == ("@" in operand)


# --- how a remote shell ends ---

@pytest.mark.parametrize("ending,code", (("exit 0", 12), ("exit 5", 12), ("exit 126", 126), ("exit 127", 127), ("exit 255",
		255),
                                         ("kill -9 $$", 12), ("echo noise from a login script", 2)))
def test_the_end_of_a_remote_shell(ending, code, tmp_path):
    shell = tmp_path / "shell"
    shell.write_text(f"#!/bin/sh\n{ending}\n")
    os.chmod(shell, 0o755)
    result = harness.run(harness.HUAI, "-e", str(shell), "h:s/", "d", cwd=tmp_path)
    assert result.code == code, result.text
    assert result.seconds < 5
    assert (b"(code %d)" % code) in result.stderr


def test_a_remote_shell_that_cannot_be_run(tmp_path):
    result = harness.run(harness.HUAI, "-e", "/no/such/shell", "h:s/", "d", cwd=tmp_path)
    assert result.code == 14
    assert b"rsync: [Receiver] Failed to exec /no/such/shell: No such file or directory (2)\n" in result.stderr


def test_the_shells_own_words_reach_the_user(tmp_path):
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\necho 'Permission denied (publickey).' >&2\nexit 255\n")
    os.chmod(shell, 0o755)
    result = harness.run(harness.HUAI, "-e", str(shell), "h:s/", "d", cwd=tmp_path)
    assert result.code == 255
    assert result.stderr.startswith(b"Permission denied (publickey).\n")


def test_a_command_in_place_of_the_network_has_a_tcp_connection(place):
    """So a daemon that it starts sees a client at 127.0.0.1, which its access lists can name; ours and stock, both ways."""
    os.mkdir(f"{place}/tree")
    trees.write(f"{place}/tree/file", b"content")
    identity = "uid = 0\ngid = 0\n" if os.geteuid() == 0 else ""
    trees.write(f"{place}/d.conf", (f"log file = {place}/log\nuse chroot = no\n{identity}"
                                    f"[mod]\npath = {place}/tree\nhosts allow = 127.0.0.1\n"
                                    f"[closed]\npath = {place}/tree\nhosts deny = 127.0.0.1\n").encode())
    for client in (harness.HUAI, harness.STOCK):
        for daemon in (harness.HUAI, harness.STOCK):
            where = {"RSYNC_CONNECT_PROG": f"{daemon} --daemon --config={place}/d.conf"}
            out = f"{place}/out-{os.path.basename(client)}-{os.path.basename(daemon)}/"
            result = harness.run(client, "-a", "rsync://h/mod/", out, environment=where)
            assert result.code == 0 and os.listdir(out) == ["file"], result.text
            result = harness.run(client, "-a", "rsync://h/closed/", out, environment=where)
            assert result.code == 5 and b"access denied to closed from" in result.stderr, result.text
    with open(f"{place}/log") as file:
        assert "(127.0.0.1)" in file.read()
