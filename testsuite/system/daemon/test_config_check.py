# SPDX-License-Identifier: GPL-3.0-or-later
"""--config-check: what is wrong with a configuration, and what each of its modules would do."""
import os
import re
import signal
import time

import pytest

import harness
import trees

IS_ROOT = os.geteuid() == 0
root_only = pytest.mark.skipif(not IS_ROOT, reason="needs chroot or other users' files")
IDENTITY = "uid = root\ngid = root\n" if IS_ROOT else ""
NOBODY = 65534


class Site:
    """A tree with each form of its list, and a configuration that may be checked."""

    def __init__(self, top):
        self.top = top
        for name in ("real", "attrs"):
            os.mkdir(self.path(name))
        trees.write(self.path("real/file"), b"content")
        self.config_file = self.path("check.conf")

    def path(self, name):
        return os.path.join(self.top, name)

    def snapshot(self):
        made = harness.run(harness.HUAI, "-aH", "--only-send-attrs", f"--attr-snapshot={self.path('snap')}", self.path("real/"))
        assert made.code == 0, made.text
        return self.path("snap")

    def check(self, text, *words):
        trees.write(self.config_file, text.encode())
        return harness.run(harness.HUAI, "--daemon", "--config-check", f"--config={self.config_file}", *words)

    def problems(self, text, code):
        """(line, text) of each problem; the exit code must be as given. Without --quiet they are the same."""
        result = self.check(text)
        assert result.code == code, result.text
        quiet = self.check(text, "-q")
        assert (quiet.code, quiet.stdout, quiet.stderr) == (code, b"", result.stderr), quiet.text
        found = re.findall(f"^{re.escape(self.config_file)}:([0-9]+): (.*)$", result.stderr.decode(), re.M)
        assert len(found) == len(result.stderr.splitlines()), result.text
        return [(int(line), text) for line, text in found]


@pytest.fixture(name="site")
def make_site(tmp_path):
    os.chmod(tmp_path, 0o755)
    return Site(str(tmp_path))


def said_of(result, module):
    lines = result.stdout.decode().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"[{module}] "))
    return lines[at], lines[at + 1]


COSTS = "per session 4G of memory and 600 s of the processor"


@pytest.mark.parametrize("value, good", [
    ("1M", True), ("1048576", True), ("1024k", True), ("2G", True), ("1K", False), ("0", False), ("1T", False), ("M", False),
    ("-1M", False), ("1MB", False), ("1 M", False), ("99999999999G", False), ("20000000000000G", False),
])
def test_the_limit_of_memory_is_a_size(site, value, good):
    result = site.check(f"use chroot = no\n{IDENTITY}[mod]\npath = {site.top}/real\nmemory limit per session = {value}\n")
    assert result.code == (0 if good else 1), result.text
    assert good or f'"{value}" is not a size of the range of "memory limit per session"' in result.text


@pytest.mark.core
def test_what_each_module_would_do(site):
    snapshot = site.snapshot()
    trees.write(site.path("secrets"), b"joe:x\n")
    os.chmod(site.path("secrets"), 0o600)
    result = site.check(f"""port = 8730
max connections per host = 5
{IDENTITY}lock file = {site.top}/lock
use chroot = no
[live]
path = {site.top}/real
read only = no
max connections = 4
timeout = 60
memory limit per session = 256m
cpu limit per session = 0
list = no
[tree]
path = {site.top}/attrs
real file prefix = {site.top}/real
read only = no
[snap]
path = {site.top}/real
attr snapshot = {site.top}/%RSYNC_MODULE_NAME%
auth users = joe
secrets file = {site.top}/secrets
[none]
path = {site.top}/real
attr snapshot = {site.top}/none
[user]
path = {site.top}/%RSYNC_USER_NAME%
auth users = joe
secrets file = {site.top}/secrets
""")
    assert result.code == 0, result.text
    assert result.stdout.startswith(f"{site.config_file}: 5 modules, port 8730, at most 5 connections per host, "
                                    "sessions below 16384 bytes a minute make room\n".encode())
    form, rights = said_of(result, "live")
    assert form == f"[live] {site.top}/real, listed from the tree itself"
    ids = rf"uid {os.geteuid()}, gid [0-9,]+"
    assert re.fullmatch(rf"    writable, no chroot, {ids}, at most 4 connections, timeout 60 s, "
                        "per session 256M of memory, not in the list of modules", rights)
    form, rights = said_of(result, "tree")
    assert form == f"[tree] {site.top}/attrs, an attr tree of {site.top}/real"
    assert re.fullmatch(rf"    read only, no chroot, {ids}, timeout 600 s, {COSTS}", rights)
    form, rights = said_of(result, "snap")
    assert re.fullmatch(rf"\[snap\] {site.top}/real, listed from the snapshot {snapshot}: generation 1, 2 entries, made \d+ s ago", form)
    assert re.fullmatch(rf"    read only, no chroot, {ids}, auth users, timeout 600 s, {COSTS}", rights)
    assert said_of(result, "none")[0].endswith("/none: cannot be used, the tree itself is listed")
    assert said_of(result, "user")[0].endswith(", which depends on the client")
    # Both are reported although neither keeps a client out.
    assert b"module \"tree\": the attr tree lies on the file system of its real tree" in result.stderr
    assert b"attr snapshot of module \"none\"" in result.stderr and len(result.stderr.splitlines()) == 2, result.text
    assert sorted(os.listdir(site.top)) == ["attrs", "check.conf", "real", "secrets", "snap"]


CASES = [
    # lines of a module, exit code, the line of the configuration with the problem, what it says
    ("comment = x", 1, 1, 'module "m" has no path'),
    ("path = TOP/gone", 1, 2, "path TOP/gone: No such file or directory"),
    ("path = TOP/real/file", 1, 2, "path TOP/real/file: Not a directory"),
    ("path = TOP/attrs\nreal file prefix = TOP/gone", 1, 3, 'real file prefix "TOP/gone": No such file'),
    ("path = TOP/attrs\nreal file prefix = TOP/gone/%RSYNC_MODULE_NAME%", 1, 3, 'real file prefix "TOP/gone/m": No such file'),
    ("path = TOP/attrs\nreal file prefix = TOP/real", 0, 2, "the attr tree lies on the file system of its real tree"),
    ("path = TOP/real\nattr snapshot = TOP/none\nattr snapshot fallback = refuse", 1, 3, "it cannot be opened: No such file"),
    ("path = TOP/real\nattr snapshot = TOP/none", 0, 3, "it cannot be opened: No such file"),
    ("path = TOP/real\nuid = nosuchuser", 1, 3, "Invalid uid nosuchuser"),
    ("path = TOP/real\ngid = nosuchgroup", 1, 3, "Invalid gid nosuchgroup"),
    ("path = TOP/real\nauth users = joe", 1, 1, "nobody can log in: secrets file: there is none"),
    ("path = TOP/real\nauth users = joe\nsecrets file = TOP/gone", 1, 4, "secrets file TOP/gone: No such file"),
    ("path = TOP/real\nauth users = joe\nsecrets file = TOP/lax", 1, 4, "must not be other-accessible"),
    ("path = TOP/real\nearly exec = TOP/gone x", 1, 3, "early exec TOP/gone: No such file"),
    ("path = TOP/real\npre-xfer exec = TOP/lax", 1, 3, "pre-xfer exec TOP/lax: Permission denied"),
    ("path = TOP/real\npost-xfer exec = TOP/gone", 0, 3, "post-xfer exec TOP/gone: No such file"),
    ("path = TOP/real\nexclude from = TOP/gone", 1, 3, "exclude from TOP/gone: No such file"),
    ("path = TOP/real\nmax connections = 2\nlock file = TOP/gone/lock", 1, 4, "lock file TOP/gone/lock: No such file"),
    ("path = TOP/real\nmax connections per host = 2\nlock file = TOP/gone/lock", 1, 4, "lock file TOP/gone/lock: No such file"),
    ("path = TOP/real\nlog file = TOP/gone/log", 0, 3, "log file TOP/gone/log: No such file"),
    ("path = TOP/real\ncharset = nosuchset", 1, 3, 'charset "nosuchset" is not known'),
    ("path = TOP/real\nfrobnicate = yes", 0, 3, 'unknown parameter "frobnicate"'),
    ("path = TOP/real\nread only = maybe", 1, 3, "badly formed boolean"),
]


@pytest.mark.parametrize("lines, code, line, text", CASES)
def test_a_problem_of_a_module_has_its_line(site, lines, code, line, text):
    trees.write(site.path("lax"), b"joe:x\n")
    os.chmod(site.path("lax"), 0o644)
    config = "[m]\n" + lines.replace("TOP", site.top) + "\nuse chroot = no\n"
    if IS_ROOT and "id =" not in lines:
        config += IDENTITY
    found = site.problems(config, code)
    assert [number for number, _ in found] == [line] and text.replace("TOP", site.top) in found[0][1], found


def test_problems_of_the_daemon_and_of_included_files(site):
    trees.write(site.path("part.conf"), f"\n\n[part]\npath = {site.top}/gone\nuse chroot = no\n{IDENTITY}".encode())
    result = site.check(f"pid file = {site.top}/gone/pid\nmotd file = {site.top}/motd\nlog file = {site.top}/gone/log\n"
                        f"control socket = {site.top}/gone/socket\nmetrics file = {site.top}/gone/metrics\n"
                        f"use chroot = no\n{IDENTITY}[m]\npath = {site.top}/real\n&include {site.top}/part.conf\n")
    lines = result.stderr.decode().splitlines()
    missing = "No such file or directory"
    assert result.code == 1 and lines == [
        f"{site.config_file}:1: pid file {site.top}/gone/pid: {missing}",
        f"{site.config_file}:4: control socket {site.top}/gone/socket: {missing}",
        f"{site.config_file}:3: log file {site.top}/gone/log: {missing}",
        f"{site.config_file}:5: metrics file {site.top}/gone/metrics: {missing}",
        f"{site.config_file}:2: motd file {site.top}/motd: {missing}",
        f'{site.top}/part.conf:4: module "part": path {site.top}/gone: {missing}',
    ], result.text


@root_only
@pytest.mark.parametrize("chroot", ["yes", "no"])
def test_paths_are_tried_as_the_modules_user(site, chroot):
    trees.write(site.path("secrets"), b"joe:x\n")
    os.chmod(site.path("secrets"), 0o600)
    os.chmod(site.path("real"), 0o700)
    settings = f"use chroot = {chroot}\nauth users = joe\nsecrets file = {site.top}/secrets\ngid = {NOBODY}\n[m]\npath = {site.top}/real\n"
    assert site.problems(settings + f"uid = {NOBODY}\n", 1) == [
        (6, f'module "m": uid {NOBODY} cannot read {site.top}/real: Permission denied')]
    assert site.problems(settings + "uid = 0\n", 0) == []
    os.chown(site.path("real"), NOBODY, NOBODY)
    assert site.problems(settings + f"uid = {NOBODY}\n", 0) == []
    os.chmod(site.path("real"), 0o500)
    assert site.problems(settings + f"uid = {NOBODY}\nread only = no\n", 0) == [
        (6, f'module "m": uid {NOBODY} cannot write to {site.top}/real: Permission denied')]
    os.chmod(site.path("real"), 0o600)
    os.chmod(site.path("attrs"), 0o755)
    config = settings.replace("/real\n", "/attrs\n") + f"uid = {NOBODY}\nreal file prefix = {site.top}/real\n"
    assert site.problems(config, 1)[1] == (
        8, f'module "m": uid {NOBODY} cannot open files in {site.top}/real: Permission denied')


@root_only
def test_a_daemon_root_is_where_paths_begin(site):
    settings = f"daemon chroot = {site.top}\nuid = 0\ngid = 0\n[m]\npath = /PATH\n"
    assert site.problems(settings.replace("PATH", "real"), 0) == []
    assert site.problems(settings.replace("PATH", "gone"), 1) == [(5, 'module "m": path /gone: No such file or directory')]
    result = site.check(settings.replace(f"{site.top}", f"{site.top}/gone"))
    assert result.code == 1 and b'daemon chroot("' in result.stderr, result.text


@root_only
def test_a_mounted_attr_tree_is_not_on_the_disk(site):
    config = f"{IDENTITY}use chroot = no\n[m]\npath = {site.top}/attrs\nreal file prefix = {site.top}/real\n"
    trees.write(site.config_file, config.encode())
    script = ('mount -t tmpfs none "$1/attrs" || exit 77; "$0" --config-check --config="$1/check.conf" -q || exit 1; '
              '"$0" --refresh-attrs --config="$1/check.conf" -q')
    result = harness.run("unshare", "--mount", "sh", "-c", script, harness.HUAI, site.top)
    if b"unshare" in result.stderr or result.code == 77:
        pytest.skip("no mounts here")
    assert (result.code, result.stderr) == (0, b""), result.text


def test_a_refresh_warns_of_a_tree_on_the_disk(site):
    trees.write(site.config_file, f"[m]\npath = {site.top}/new\nreal file prefix = {site.top}/real\n".encode())
    result = harness.run(harness.HUAI, "--refresh-attrs", f"--config={site.config_file}")
    assert result.code == 0 and result.stdout.startswith(b"m: 2 entries"), result.text
    assert result.stderr.startswith(b'module "m": the attr tree lies on the file system of its real tree'), result.text


def test_the_check_writes_and_waits_for_nothing(site):
    """A lock file and a log are not made, a FIFO in the place of a file does not hold it up."""
    os.mkfifo(site.path("fifo"))
    result = site.check(f"log file = {site.top}/log\npid file = {site.top}/pid\nmotd file = {site.top}/fifo\nuse chroot = no\n"
                        f"{IDENTITY}lock file = {site.top}/lock\nmax connections = 3\n[m]\npath = {site.top}/real\n"
                        f"exclude from = {site.top}/fifo\n")
    assert (result.code, result.stderr) == (0, b""), result.text
    assert sorted(os.listdir(site.top)) == ["attrs", "check.conf", "fifo", "real"]


@pytest.mark.core
def test_a_running_daemon_and_the_check_agree(site):
    """After SIGHUP the log says that there are no errors where the check ends with 0, and only there."""
    snapshot = site.snapshot()
    config = f"use chroot = no\n{IDENTITY}[m]\npath = {site.top}/real\nattr snapshot = {snapshot}\n"
    verdict = re.compile("the configuration has no errors|the configuration is in use, but not every module .*")
    with harness.Daemon(harness.HUAI, config, site.top) as daemon:
        for mode, code in ((0o644, 0), (0o666, 1), (0o644, 0)):
            os.chmod(snapshot, mode)
            before = len(verdict.findall(daemon.log()))
            daemon.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + 20
            while len(verdict.findall(daemon.log())) == before and time.monotonic() < deadline:
                time.sleep(0.01)
            assert (verdict.findall(daemon.log())[before] == "the configuration has no errors") == (code == 0), daemon.log()
            result = harness.run(harness.HUAI, "--daemon", "--config-check", f"--config={daemon.config_file}")
            assert result.code == code, result.text


def test_quiet_belongs_to_the_check_and_the_refresh(site):
    trees.write(site.config_file, b"[m]\n")
    result = harness.run(harness.HUAI, "--daemon", "--quiet", f"--config={site.config_file}")
    assert result.code == 1 and b"--refresh-attrs and --config-check only" in result.stderr, result.text
