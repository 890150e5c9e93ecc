# SPDX-License-Identifier: GPL-3.0-or-later
"""Users of the daemon: rules, secrets, challenges, and what the log says of those who are refused (doc/protocol/07-daemon.md
section 5.10)."""
import base64
import hashlib
import os
import re
import socket
import time

import pytest

import harness
import trees

IS_ROOT = os.geteuid() == 0
IDENTITY = "uid = root\ngid = root\n" if IS_ROOT else ""
SECRETS = """# a comment
joe:joepw
ann:ann:pw 
ann:second
empty:
#hash:hashpw
@at:atpw
:nobodypw
long:%s
with space:sp
@root:grouppw
dup:one
dup:two
last:lastpw""" % ("x" * 600)

# module: (auth users, other lines)
RULES = {
    "plain": ("joe ann, dup\tempty last long", ""),
    "any": ("*", ""),
    "deny": ("joe:deny, *", ""),
    "comma": (", with space, joe:DENIED, ann", ""),
    "first": ("j*:ro joe:rw a?n:Rw [d-e]*:x", "read only = no"),
    "group": ("@root @nosuch joe", ""),
    "groupdeny": ("@ro*:d *", ""),
    "nofile": ("joe", "secrets file = /nonexistent/secrets"),
    "unset": ("joe", "secrets file ="),
    "loose": ("joe", "secrets file = %(loose)s"),
    "tolerant": ("joe", "secrets file = %(loose)s\nstrict modes = no"),
    "md5floor": ("joe", "auth digest = MD5"),
    "sha256floor": ("joe", "auth digest = sha256"),
    "mayput": ("joe:rw *", ""),
    "open": ("", ""),
}
USERS = [("joe", "joepw"), ("joe", "wrong"), ("ann", "ann:pw "), ("ann", "ann:pw"), ("ann", "second"), ("nobody-at-all", "x"),
         ("empty", ""), ("empty", "x"), ("#hash", "hashpw"), ("dup", "two"), ("last", "lastpw"), ("long", "x" * 600),
         ("root", "grouppw"), ("Joe", "joepw"), ("joe:joepw", ""), ("a\tb", "x")]


def digest_of(name, password, challenge):
    return base64.b64encode(hashlib.new(name, (password + challenge).encode()).digest()).decode().rstrip("=")


def host_of(*words):
    """An address for these words: who fails more often than this file makes others fail would be kept waiting."""
    return "127." + ".".join(str(byte) for byte in hashlib.sha256(repr(words).encode()).digest()[:3])


def closed_module(place, path):
    """The configuration of a daemon with a module for joe, whose password is joepw."""
    secrets = f"{place}/secrets"
    trees.write(secrets, b"joe:joepw\n", 0o600)
    return (f"use chroot = no\nreverse lookup = no\n{IDENTITY}[closed]\npath = {path}\nauth users = *\n"
            f"secrets file = {secrets}\n")


def log_in(daemon, module, user, password, greeting="31.0 md5", answer=None, host=None):
    """What a client receives from the challenge on, and the challenge itself."""
    host = host or host_of(module, user, password, greeting, answer)
    with socket.create_connection(("127.0.0.1", daemon.port), source_address=(host, 0), timeout=20) as connection:
        connection.sendall(f"@RSYNCD: {greeting}\n{module}\n".encode())
        stream = connection.makefile("rb")
        stream.readline()
        line = stream.readline().decode()
        challenge = re.fullmatch(r"@RSYNCD: AUTHREQD ([A-Za-z0-9+/]+)\n", line)
        if not challenge:
            return line, None
        names = greeting.split()[1:] or ["md5"]
        best = next(name for name in ("sha512", "sha256", "sha1", "md5") if name in names)
        line = answer or f"{user} {digest_of(best, password, challenge[1])}"
        connection.sendall(line.encode() + b"\n")
        return stream.readline().decode(), challenge[1]


@pytest.fixture(scope="module")
def daemons(workspace):
    directory = os.path.join(workspace, "auth")
    tree = os.path.join(directory, "tree")
    os.makedirs(os.path.join(tree, "joe"))
    trees.write(os.path.join(tree, "f"), b"content")
    trees.write(os.path.join(tree, "joe", "own"), b"of joe")
    paths = {name: os.path.join(directory, name) for name in ("secrets", "loose")}
    for name, mode in (("secrets", 0o640), ("loose", 0o604)):
        trees.write(paths[name], SECRETS.encode())
        os.chmod(paths[name], mode)
    config = f"use chroot = no\nreverse lookup = no\n{IDENTITY}secrets file = {paths['secrets']}\ntransfer logging = yes\n"
    for name, (users, lines) in RULES.items():
        config += f"[{name}]\npath = {tree}\nauth users = {users}\n{lines % paths}\n"
    config += f"[home]\npath = {tree}/%RSYNC_USER_NAME%\nauth users = *\n"
    with harness.Daemon(harness.HUAI, config, directory) as huai, harness.Daemon(harness.STOCK, config, directory) as stock:
        yield huai, stock


def refusals(daemon):
    """The log's lines on users."""
    return re.findall(r"\] ((?:auth failed|secrets file|rsync on).*)", daemon.log())


@pytest.mark.core
@pytest.mark.parametrize("module", [name for name in RULES if "floor" not in name])
def test_users_get_the_answers_and_log_lines_of_stock(daemons, module):
    answers = []
    for daemon in daemons:
        before = len(refusals(daemon))
        reported = [log_in(daemon, module, *user)[0] for user in USERS]
        answers.append((reported, refusals(daemon)[before:]))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("module", ("plain", "md5floor", "sha256floor"))
def test_digests_are_chosen_and_refused_as_stock_does(daemons, module):
    greetings = ("32.0 sha512 sha256 sha1 md5 md4", "32.0 md5 sha256", "31.0 sha1", "32.0 md5", "32.0 crc32", "31.0 SHA256",
                 "30.0", "31.0", "32.0 ")
    answers = []
    for daemon in daemons:
        before = len(refusals(daemon))
        reported = [log_in(daemon, module, "joe", "joepw", greeting.lower() if "SHA" in greeting else greeting)
                for greeting in greetings]
        answers.append(([(text, challenge and len(challenge)) for text, challenge in reported], refusals(daemon)[before:]))
    assert answers[0] == answers[1]
    assert len({text for text, _ in answers[0][0]}) >= 2


@pytest.mark.core
@pytest.mark.parametrize("client, options", [(harness.STOCK, ()), (harness.STOCK, ("--protocol=31",)), (harness.HUAI, ()),
                                             (harness.STOCK, ("--protocol=29",)), (harness.STOCK, ("--protocol=27",))])
def test_a_user_pulls_and_is_named_in_the_log(daemons, place, client, options):
    logs = []
    for daemon in daemons:
        before = len(daemon.log())
        result = harness.run(client, "-a", *options, daemon.url("plain/f", "joe@"), place, environment={"RSYNC_PASSWORD": "joepw"})
        assert result.code == 0, result.text
        lines = [line for line in daemon.log()[before:].splitlines() if "joe" in line]
        logs.append([re.sub(r"^.*?\] ", "", line) for line in lines])
        os.unlink(os.path.join(place, "f"))
    assert logs[0] == logs[1]
    assert logs[0] == ["rsync on plain/f from joe@UNDETERMINED (127.0.0.1)", "send UNDETERMINED [127.0.0.1] plain (joe) f 7"]


def test_a_user_without_the_password_pulls_nothing(daemons, place):
    outcomes = []
    for daemon in daemons:
        result = harness.run(harness.STOCK, "-a", daemon.url("plain/", "joe@"), place, environment={"RSYNC_PASSWORD": "no"})
        outcomes.append((result.code, harness.normalise(result.stderr)))
    assert outcomes[0] == outcomes[1] and outcomes[0][0] == 5
    assert not os.listdir(place)


def test_a_path_with_the_users_name_is_only_that_users(daemons, place):
    environment = {"RSYNC_PASSWORD": "joepw"}
    result = harness.run(harness.STOCK, "-a", daemons[0].url("home/", "joe@"), place, environment=environment)
    assert result.code == 0 and os.listdir(place) == ["own"], result.text


def test_a_user_who_may_only_read_removes_nothing(daemons, place):
    """The module can be written; the rule of this user says otherwise."""
    for daemon in daemons:
        result = harness.run(harness.STOCK, "-a", "--remove-source-files", daemon.url("first/f", "joe@"), place,
                             environment={"RSYNC_PASSWORD": "joepw"})
        assert b"--remove-source-files cannot be used with a read-only module" in result.stderr, result.text


@pytest.mark.parametrize("module, user, password, code", [("plain", "joe", "joepw", 1), ("first", "joe", "joepw", 1),
                                                          ("mayput", "joe", "joepw", 0), ("mayput", "ann", "ann:pw ", 1)])
def test_a_users_rule_says_whether_he_may_put_files(daemons, place, module, user, password, code):
    """S-106: in a module that can be written, and in one that cannot."""
    trees.write(f"{place}/put", b"new")
    outcomes = []
    for daemon in daemons:
        before = len(daemon.log())
        result = harness.run(harness.STOCK, "-a", f"{place}/put", daemon.url(f"{module}/", f"{user}@"),
                             environment={"RSYNC_PASSWORD": password})
        lines = [line for line in daemon.log()[before:].splitlines() if user in line]
        outcomes.append(([re.sub(r"^.*?\] ", "", line) for line in lines], b"module is read only" in result.stderr))
        assert (result.code == 0) == (code == 0), result.text
        target = os.path.join(os.path.dirname(daemon.directory), "auth", "tree", "put")
        assert os.path.exists(target) == (code == 0)
        if os.path.exists(target):
            os.unlink(target)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("answer", ("joe", "", " ", " x", "joe ", "joe " + "x" * 200))
def test_odd_answers_are_refused(daemons, answer):
    reported = [log_in(daemon, "any", "", "", answer=answer or "\r")[0] for daemon in daemons]
    assert reported == ["@ERROR: auth failed on module any\n"] * 2


@pytest.mark.parametrize("user, password", [("@at", "atpw"), ("", "nobodypw")])
def test_lines_of_groups_and_of_nobody_are_no_users(daemons, user, password):
    assert log_in(daemons[0], "any", user, password)[0] == "@ERROR: auth failed on module any\n"
    assert f"for {user}: invalid username" in daemons[0].log()


def test_every_failure_is_the_same_to_the_client(daemons):
    reported = {log_in(daemons[0], "deny", *user)[0] for user in USERS if user not in (("ann", "ann:pw "), ("last", "lastpw"))
            and user[0] not in ("empty", "long", "dup", "root", "joe:joepw")}
    assert reported == {"@ERROR: auth failed on module deny\n"}


def test_challenges_are_never_the_same(daemons):
    challenges = {log_in(daemons[0], "plain", "joe", "x", answer="x", host=host_of(number))[1] for number in range(50)}
    assert len(challenges) == 50


@pytest.fixture
def small(place):
    """A daemon whose module has one slot, and little patience."""
    secrets = os.path.join(place, "secrets")
    trees.write(secrets, SECRETS.encode())
    os.chmod(secrets, 0o600)
    config = f"""use chroot = no
{IDENTITY}
[one]
path = {place}
auth users = joe
secrets file = {secrets}
max connections = 1
lock file = {place}/lock
timeout = 1
"""
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        yield daemon


def test_whoever_has_not_logged_in_holds_no_slot_and_is_cut_off(small):
    """S-054, and the handshake's deadline while the answer is waited for (S-046, S-048)."""
    with socket.create_connection(("127.0.0.1", small.port), timeout=20) as connection:
        connection.sendall(b"@RSYNCD: 31.0 md5\none\n")
        stream = connection.makefile("rb")
        stream.readline()
        assert b"AUTHREQD" in stream.readline()
        assert log_in(small, "one", "joe", "joepw")[0] == "@RSYNCD: OK\n"
        assert stream.read() == b""
    assert "daemon handshake timeout" in small.log()


def test_a_long_file_of_secrets_takes_as_long_for_everybody(place):
    """S-062"""
    secrets = os.path.join(place, "secrets")
    trees.write(secrets, b"joe:joepw\n" + b"".join(b"user%d:some password\n" % i for i in range(400000)))
    os.chmod(secrets, 0o600)
    config = f"use chroot = no\n{IDENTITY}[m]\npath = {place}\nauth users = *\nsecrets file = {secrets}\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        times = {}
        for user in ("joe", "stranger") * 4:
            start = time.monotonic()
            log_in(daemon, "m", user, "x")
            times[user] = min(time.monotonic() - start, times.get(user, 60))
    assert times["stranger"] < 3 and 0.3 < times["stranger"] / times["joe"] < 3, times


@pytest.mark.skipif(not IS_ROOT, reason="gives files away")
def test_secrets_of_another_owner_are_not_used(place):
    secrets = os.path.join(place, "secrets")
    trees.write(secrets, SECRETS.encode())
    os.chmod(secrets, 0o600)
    os.chown(secrets, 1, 1)
    config = f"use chroot = no\n[m]\npath = {place}\nauth users = joe\nsecrets file = {secrets}\n"
    logs = []
    for program in (harness.HUAI, harness.STOCK):
        with harness.Daemon(program, config, place) as daemon:
            assert log_in(daemon, "m", "joe", "joepw")[0] == "@ERROR: auth failed on module m\n"
            logs.append(refusals(daemon))
    assert logs[0] == logs[1]


def test_a_digest_that_nobody_has_closes_its_module_only(place):
    os.mkdir(f"{place}/tree")
    closed = closed_module(place, f"{place}/tree")
    config = f"{closed}auth digest = crc32\n[open]\npath = {place}/tree\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        assert harness.run(harness.STOCK, daemon.url("open/")).code == 0
        assert log_in(daemon, "closed", "joe", "joepw")[0] == "@ERROR: auth failed on module closed\n"
        assert "the configured 'auth digest = crc32' is not a supported digest on this build" in daemon.log()
        check = harness.run(harness.HUAI, "--daemon", "--config-check", "-q", f"--config={daemon.config_file}")
    assert check.code == 1 and b'nobody can log in: auth digest "crc32" is no digest that this build has' in check.stderr, check.text
    assert len(check.stderr.splitlines()) == 1
