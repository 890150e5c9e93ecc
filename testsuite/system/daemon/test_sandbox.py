# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions in their sandbox: every form of module works in it, and what the kernel lacks is logged and missed.

What a confined process cannot do is tested inside of one: testsuite/unit/test_daemon_sandbox.c."""
import os
import pwd
import sys

import pytest

import attribute_trees
import harness
import trees
from test_daemon import open_session, root_only, server_pids, wait_for

pytestmark = root_only

FORMS = {
    "plain": "path = {place}/site/tree\nuse chroot = no\n",
    "chroot": "path = {place}/site/tree\nuse chroot = yes\n",
    "inner": "path = {place}/site/./tree\nuse chroot = yes\n",
    "attr-tree": "path = {place}/attrs\nreal file prefix = {place}/site/tree\nuse chroot = yes\n",
    "snapshot": "path = {place}/site/tree\nattr snapshot = {place}/snapshot\nattr snapshot fallback = refuse\nuse chroot = yes\n",
}
USERS = {"root": "root", "nobody": harness.NOBODY_GROUP}
# The two calls by which a process confines itself; the second one's number differs.
LANDLOCK, SECCOMP = 444, {"x86_64": 317, "aarch64": 277}.get(os.uname().machine)


def config_of(place):
    lines = []
    for user, group in USERS.items():
        for form, text in FORMS.items():
            lines.append(f"[{form}-{user}]\nuid = {user}\ngid = {group}\n{text.format(place=place)}")
    return "".join(lines)


@pytest.fixture(scope="module")
def site(workspace):
    place = os.path.join(workspace, "sandbox")
    os.makedirs(f"{place}/site")
    os.chmod(place, 0o755)
    attribute_trees.build(f"{place}/site/tree")
    os.makedirs(f"{place}/site/tree/many")
    for number in range(40):
        trees.write(f"{place}/site/tree/many/{number}", trees.noise(number * 40, number))
    trees.set_directory_times(f"{place}/site/tree")
    os.makedirs(f"{place}/attrs")
    for target in (f"{place}/attrs", f"--attr-snapshot={place}/snapshot"):
        made = harness.run(harness.HUAI, "-aH", "--only-send-attrs", f"{place}/site/tree/", target)
        assert made.code == 0, made.text
    with harness.Daemon(harness.HUAI, config_of(place), place) as confined:
        os.makedirs(f"{place}/without")
        with harness.Daemon(harness.HUAI, config_of(place), f"{place}/without", ["--no-sandbox"]) as free:
            yield confined, free


def status_of(daemon, module):
    wait_for(lambda: not server_pids(daemon))
    connection, answer = open_session(daemon, module)
    with connection:
        assert answer.endswith(b"@RSYNCD: OK\n"), answer
        wait_for(lambda: "NoNewPrivs:\t1" in open(f"/proc/{server_pids(daemon)[0]}/status").read())
        # It waits for the client's words once it sleeps on the socket.
        wait_for(lambda: open(f"/proc/{server_pids(daemon)[0]}/wchan").read() not in ("", "0"))
        with open(f"/proc/{server_pids(daemon)[0]}/status") as file:
            return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


@pytest.mark.core
@pytest.mark.parametrize("module", ["plain-root", "plain-nobody", "chroot-nobody", "inner-root", "attr-tree-nobody",
                                    "snapshot-root"])
def test_forms_of_modules_work_as_without(site, place, module):
    words = ("-aAXHz", "--numeric-ids", "--chmod=D755")
    results = []
    for number, daemon in enumerate(site):
        target = f"{place}/{number}"
        listed = harness.run(harness.STOCK, "-rlc", daemon.url(f"{module}/"))
        result = harness.run(harness.STOCK, *words, daemon.url(f"{module}/"), target)
        results.append((listed.code, listed.stdout, result.code, harness.normalise(result.stderr), attribute_trees.describe(target)))
    assert results[0][:4] == results[1][:4]
    assert trees.differences(results[1][4], results[0][4]) == []
    assert results[0][2] == 0 or module.endswith("nobody")


def test_sessions_are_confined_unless_told_otherwise(site):
    confined, free = site
    for module in ("plain-root", "chroot-nobody"):
        assert status_of(confined, module)["Seccomp"] == "2"
        assert status_of(free, module)["Seccomp"] == "0"


@pytest.mark.parametrize("use_chroot", ["yes", "no"])
@pytest.mark.parametrize("user", USERS)
def test_a_writable_module_receives(place, user, use_chroot):
    attribute_trees.build(f"{place}/source")
    os.makedirs(f"{place}/source/dd")
    trees.write(f"{place}/source/dd/file", b"new" * 9999)
    os.makedirs(f"{place}/module")
    account = pwd.getpwnam(user)
    os.chown(f"{place}/module", account.pw_uid, account.pw_gid)
    config = (f"uid = {user}\ngid = {USERS[user]}\nread only = no\nuse chroot = {use_chroot}\nmunge symlinks = no\n"
              f"[in]\npath = {place}/module\n")
    options = ["-aH", "--delay-updates", "--backup", "--backup-dir=old", "--temp-dir=t", "--no-o", "--no-g", "--delete",
               "--exclude=t", "--exclude=old", *(["-AX"] if user == "root" else ["--no-D"])]
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        os.makedirs(f"{place}/module/t")
        os.chown(f"{place}/module/t", account.pw_uid, account.pw_gid)
        for _ in range(2):
            result = harness.run(harness.STOCK, *options, f"{place}/source/", daemon.url("in/"))
            assert result.code == 0, result.text
            trees.write(f"{place}/source/dd/file", b"newer" * 9999)
        again = harness.run(harness.STOCK, *options, f"{place}/source/", daemon.url("in/"))
        assert again.code == 0, again.text
        gone = harness.run(harness.STOCK, "-r", "--remove-source-files", daemon.url("in/dd/"), f"{place}/taken")
        assert gone.code == 0 and not os.path.exists(f"{place}/module/dd/file"), gone.text
    with open(f"{place}/module/old/dd/file", "rb") as file:
        assert file.read() == b"new" * 9999
    with open(f"{place}/taken/file", "rb") as file:
        assert file.read() == b"newer" * 9999


def test_names_of_users_are_known_inside(place):
    os.makedirs(f"{place}/tree")
    trees.write(f"{place}/tree/file", b"x", owner=(1, 1))
    with harness.Daemon(harness.HUAI, f"use chroot = no\n[m]\npath = {place}/tree\n", place) as daemon:
        name = pwd.getpwuid(1).pw_name
        result = harness.run(harness.STOCK, "-a", f"--usermap={name}:4321", daemon.url("m/"), f"{place}/out/")
    assert result.code == 0, result.text
    assert os.lstat(f"{place}/out/file").st_uid == 4321


def test_insecure_links_reach_as_far_as_the_root(place):
    os.makedirs(f"{place}/tree")
    os.makedirs(f"{place}/else")
    trees.write(f"{place}/else/file", b"outside")
    os.symlink(f"{place}/else/file", f"{place}/tree/link")
    config = f"use chroot = no\nmunge symlinks = no\ninsecure links = yes\n[m]\npath = {place}/tree\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        result = harness.run(harness.STOCK, "-rL", daemon.url("m/"), f"{place}/out/")
    assert result.code == 0, result.text
    with open(f"{place}/out/link", "rb") as file:
        assert file.read() == b"outside"


# --- kernels that lack it ---

OLDER_KERNEL = """#!{python}
import ctypes, struct, sys, os
def step(code, value, true=0, false=0):
    return struct.pack("<HBBI", code, true, false, value)
steps = [step(0x20, 0)]
for number in {numbers}:
    steps += [step(0x15, number, 0, 1), step(0x06, 0x50000 | 38)]
steps.append(step(0x06, 0x7fff0000))
code = ctypes.create_string_buffer(b"".join(steps))
program = struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.create_string_buffer(program), 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv({huai!r}, [{huai!r}, *sys.argv[1:]])
"""


@pytest.mark.skipif(SECCOMP is None, reason="no filter for this architecture")
@pytest.mark.parametrize("missing, lines", [
    ((LANDLOCK,), ["no Landlock"]),
    ((SECCOMP,), ["no seccomp filter"]),
    ((LANDLOCK, SECCOMP), ["no Landlock", "no seccomp filter"]),
])
def test_what_the_kernel_lacks_is_logged_once_and_missed(place, missing, lines):
    wrapper = os.path.join(place, "older")
    with open(wrapper, "w") as file:
        file.write(OLDER_KERNEL.format(python=sys.executable, numbers=missing, huai=harness.HUAI))
    os.chmod(wrapper, 0o755)
    os.makedirs(f"{place}/tree")
    trees.write(f"{place}/tree/file", b"x")
    with harness.Daemon(wrapper, f"[m]\npath = {place}/tree\n", place) as daemon:
        for number in range(2):
            result = harness.run(harness.STOCK, "-a", daemon.url("m/"), f"{place}/{number}")
            assert result.code == 0, result.text
        found = [line for line in daemon.log().splitlines() if "] sandbox: " in line]
        assert len(found) == len(lines), found
        assert all(words in line for words, line in zip(lines, found)), found


def test_a_kernel_that_has_all_is_not_mentioned(site):
    confined, free = site
    assert "sandbox: no seccomp" not in confined.log()
    assert "sandbox:" not in free.log()
