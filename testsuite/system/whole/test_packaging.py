# SPDX-License-Identifier: GPL-3.0-or-later
"""What is installed beside the program: units, hooks, completion, log rotation, fail2ban. Run as their users run them."""
import glob
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import time

import pytest

import harness
import trees

PACKAGING = os.path.join(harness.SOURCE, "packaging")
SECONDS = 60


def tool(name):
    path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    assert path, f"{name} is not installed"
    return path


@pytest.fixture(name="units")
def make_units(tmp_path):
    """The units as they are installed, with our program in the place of the installed one."""
    directory = tmp_path / "units"
    directory.mkdir()
    for name in os.listdir(os.path.join(PACKAGING, "systemd")):
        with open(os.path.join(PACKAGING, "systemd", name)) as file:
            text = file.read().replace("%BINDIR%/rsync-huai", harness.HUAI)
        if name.endswith((".service.in", ".socket", ".timer", ".mount")):
            (directory / name.removesuffix(".in")).write_text(text)
    return directory


def test_units_are_well_formed(units):
    """The mount has its instance only where its directory is; the others are checked with what they refer to."""
    paths = [str(units / name) for name in sorted(os.listdir(units)) if "@" not in name]
    for template in units.glob("*@*"):
        instance = units / template.name.replace("@", "@debian")
        shutil.copy(template, instance)
        paths.append(str(instance))
    result = subprocess.run([tool("systemd-analyze"), "verify", "--man=no", *paths], capture_output=True, timeout=SECONDS,
                            env={**os.environ, "SYSTEMD_UNIT_PATH": f"{units}:"})
    complaints = [line for line in os.fsdecode(result.stderr).splitlines() if str(units) in line or "rsync-huai" in line]
    assert not complaints and result.returncode == 0, result.stderr


def test_the_service_is_hardened(units):
    result = subprocess.run([tool("systemd-analyze"), "security", "--offline=true", "--threshold=30",
                             str(units / "rsync-huai.service")], capture_output=True, timeout=SECONDS)
    level = re.search(rb"Overall exposure level for [^:]+: ([0-9.]+)", result.stdout)
    assert result.returncode == 0 and level and float(level.group(1)) <= 3.0, result.stdout[-500:]


class Hooks:
    """The hooks, with a sudo that only says what it would run."""

    def __init__(self, top):
        self.directory = os.path.join(top, "hooks")
        shutil.copytree(os.path.join(PACKAGING, "hooks"), self.directory)
        self.real, self.snapshot = os.path.join(top, "real"), os.path.join(top, "debian.snapshot")
        os.mkdir(self.real)
        trees.write(os.path.join(self.real, "file"), b"x")
        self.config = os.path.join(top, "rsyncd.conf")
        with open(self.config, "w") as file:
            file.write(f"[debian]\npath = {self.real}\nattr snapshot = {self.snapshot}\n")

    def run(self, name, *words, **environment):
        environment = {**harness.ENVIRONMENT, "RSYNC_HUAI": harness.HUAI, "RSYNC_HUAI_OPTIONS": f"--config={self.config}",
                       **environment}
        return harness.run(os.path.join(self.directory, name), *words, environment=environment)


@pytest.fixture(name="hooks")
def make_hooks(tmp_path):
    os.chmod(tmp_path, 0o755)
    return Hooks(str(tmp_path))


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="other users go through sudo")


@as_root
@pytest.mark.parametrize("name, words, environment", [
    ("refresh", ["debian"], {}), ("refresh", [], {}), ("ftpsync", ["debian"], {}),
    ("tunasync", [], {"TUNASYNC_MIRROR_NAME": "debian"}),
    ("tunasync", ["debian"], {"TUNASYNC_MIRROR_NAME": "other", "TUNASYNC_JOB_EXIT_STATUS": "success"}),
    ("quick-fedora-mirror", ["debian", "--", "-d", "5"], {"QUICK_FEDORA_MIRROR": "true"}),
])
def test_a_hook_refreshes_its_module(hooks, name, words, environment):
    result = hooks.run(name, *words, **environment)
    assert result.code == 0 and result.stdout.startswith(b"debian: 2 entries"), result.text
    assert os.path.exists(hooks.snapshot)


@as_root
@pytest.mark.parametrize("name, words, environment, code, refreshed", [
    ("tunasync", [], {"TUNASYNC_MIRROR_NAME": "debian", "TUNASYNC_JOB_EXIT_STATUS": "failure"}, 0, False),
    ("ftpsync", ["no-such-module"], {}, 1, False),
    ("quick-fedora-mirror", ["debian"], {"QUICK_FEDORA_MIRROR": "false"}, 1, True),
    ("quick-fedora-mirror", ["no-such-module"], {"QUICK_FEDORA_MIRROR": "true"}, 1, False),
])
def test_a_hook_after_a_failure(hooks, name, words, environment, code, refreshed):
    result = hooks.run(name, *words, **environment)
    assert result.code == code, result.text
    assert os.path.exists(hooks.snapshot) == refreshed


FTPSYNC = """MIRRORNAME=mirror.example.org
TO="{real}/"
RSYNC_HOST=127.0.0.1
RSYNC_PATH=m
RSYNC_EXTRA="--port={port}"
LOGDIR="{top}/log"
LOG="{top}/log/ftpsync.log"
TRACEHOST=mirror.example.org
MAILTO=
HOOK4="{hooks}/ftpsync debian"
"""


def tree_names(top):
    """Whatever is in a directory, as --attr-list names it."""
    found = {"."}
    for directory, names, files in os.walk(top):
        found.update(os.path.relpath(os.path.join(directory, name), top) for name in (*names, *files))
    return found


@as_root
def test_ftpsync_runs_its_hook(hooks, tmp_path):
    """The hook is run while ftpsync's lock lies in the mirror, which must not stay in the list: the module leaves it out."""
    upstream = tmp_path / "upstream"
    for name in ("project/trace/master", "dists/sid/Release", "pool/a.deb"):
        (upstream / name).parent.mkdir(parents=True, exist_ok=True)
        (upstream / name).write_text(name)
    with open(hooks.config, "a") as file:
        file.write("exclude = /Archive-Update-*\n")
    settings = tmp_path / ".config/ftpsync/ftpsync.conf"
    settings.parent.mkdir(parents=True)
    with harness.Daemon(harness.STOCK, f"use chroot = no\n[m]\npath = {upstream}\n", str(tmp_path)) as daemon:
        settings.write_text(FTPSYNC.format(real=hooks.real, port=daemon.port, top=tmp_path, hooks=hooks.directory))
        environment = {**harness.ENVIRONMENT, "HOME": str(tmp_path), "RSYNC_HUAI": harness.HUAI, "USER": "tester",
                       "RSYNC_HUAI_OPTIONS": f"--config={hooks.config}", "LOGNAME": "tester"}
        result = harness.run(tool("ftpsync"), "sync:all", environment=environment)
    log = (tmp_path / "log/ftpsync.log.0").read_text()
    assert result.code == 0 and "Back from hook 4, got returncode 0" in log, result.text + log
    listed = harness.run(harness.HUAI, "--attr-list", "-r", hooks.snapshot)
    assert {line.split()[4] for line in os.fsdecode(listed.stdout).splitlines()} == tree_names(hooks.real), listed.text


def crontab_command():
    with open(os.path.join(PACKAGING, "hooks", "cron")) as file:
        line, = [line for line in file.read().splitlines() if line and not line.startswith("#")]
    *times, user, command = line.split(None, 6)
    assert len(times) == 5 and all(re.fullmatch(r"[*/0-9,-]+", field) for field in times) and user == "root"
    return command


@as_root
def test_the_line_for_cron_refreshes_all_modules(hooks):
    """As cron runs it: by /bin/sh, with hardly an environment; a line of output would be a mail."""
    command = crontab_command().replace("/usr/bin/rsync-huai", f"{harness.HUAI} --config={hooks.config}")
    assert "%" not in command and harness.HUAI in command
    for _ in range(2):
        result = subprocess.run(["/bin/sh", "-c", command], env={"PATH": "/usr/bin:/bin"}, capture_output=True, timeout=SECONDS)
        assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
    assert os.path.exists(hooks.snapshot)


@as_root
def test_tunasync_runs_its_hook(hooks):
    """Its worker splits the line of its configuration as a shell would, and adds to the environment what it documents."""
    line = shlex.split(f"{hooks.directory}/tunasync")
    environment = {"TUNASYNC_MIRROR_NAME": "debian", "TUNASYNC_WORKING_DIR": hooks.real, "TUNASYNC_LOG_DIR": "/tmp",
                   "TUNASYNC_UPSTREAM_URL": "rsync://upstream/", "TUNASYNC_LOG_FILE": "/tmp/log",
                   "TUNASYNC_JOB_EXIT_STATUS": "success"}
    result = subprocess.run(line, cwd=hooks.real, capture_output=True, timeout=SECONDS, env={
        **environment, "PATH": "/usr/bin:/bin", "RSYNC_HUAI": harness.HUAI, "RSYNC_HUAI_OPTIONS": f"--config={hooks.config}"})
    assert result.returncode == 0 and result.stdout.startswith(b"debian: 2 entries"), result


def test_a_mirror_user_goes_through_sudo(hooks, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, line in (("sudo", 'echo "sudo $*"'), ("id", "echo 1000")):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    result = harness.run(os.path.join(hooks.directory, "ftpsync"), "debian", "*",
                         environment={**harness.ENVIRONMENT, "PATH": f"{programs}:/usr/bin:/bin"})
    assert result.code == 0
    assert result.stdout == b"sudo -n /usr/bin/rsync-huai --refresh-attrs --no-wait -- debian *\n"


def test_fail2ban_finds_what_the_daemon_writes(tmp_path):
    """Every line of the log that reports a refusal, and no other."""
    os.chmod(tmp_path, 0o755)
    secrets = tmp_path / "secrets"
    secrets.write_text("user:right\n")
    secrets.chmod(0o600)
    config = (f"use chroot = no\nlog file = {tmp_path}/log\n"
              f"[open]\npath = {tmp_path}\n[closed]\npath = {tmp_path}\nhosts deny = *\n"
              f"[secret]\npath = {tmp_path}\nauth users = user\nsecrets file = {secrets}\n")
    with harness.Daemon(harness.HUAI, config, str(tmp_path)) as daemon:
        for module, user in (("open", ""), ("closed", ""), ("nowhere", ""), ("secret", "user@"), ("secret", "else@")):
            harness.run(harness.STOCK, f"rsync://{user}127.0.0.1:{daemon.port}/{module}/",
                        environment={**harness.ENVIRONMENT, "RSYNC_PASSWORD": "wrong"})
        log = daemon.log_file if os.path.exists(daemon.log_file) else f"{tmp_path}/log"
        result = subprocess.run([tool("fail2ban-regex"), log, os.path.join(PACKAGING, "fail2ban", "filter.conf")],
                                capture_output=True, timeout=SECONDS)
    found = re.search(rb"Lines: \d+ lines, \d+ ignored, (\d+) matched", result.stdout)
    assert found and int(found.group(1)) == 4, result.stdout


def test_logrotate_understands_its_file(tmp_path):
    state = tmp_path / "state"
    copy = tmp_path / "rsync-huai"
    shutil.copy(os.path.join(PACKAGING, "logrotate", "rsync-huai"), copy)
    copy.chmod(0o644)
    result = subprocess.run([tool("logrotate"), "--debug", "--state", str(state), str(copy)], capture_output=True,
                            timeout=SECONDS)
    assert result.returncode == 0 and b"error" not in result.stderr, result.stderr


def manual_pages():
    return sorted(glob.glob(os.path.join(harness.SOURCE, "doc", "*.[158]")))


@pytest.mark.parametrize("page", manual_pages(), ids=os.path.basename)
@pytest.mark.parametrize("words", [["man", "--warnings", "--local-file"], ["mandoc", "-T", "lint", "-W", "warning"]],
                         ids=["man", "mandoc"])
def test_a_manual_page_is_clean(page, words):
    if not shutil.which(words[0]):
        pytest.skip(f"no {words[0]}")
    result = harness.run(*words, page, environment={"MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
    assert (result.code, result.stderr) == (0, b"") and b"WARNING" not in result.stdout, result.stdout[:500]


class Shell:
    """An interactive bash with the completion, and a program directory that has ours under its installed name."""

    def __init__(self, top):
        os.makedirs(f"{top}/bin")
        os.symlink(harness.HUAI, f"{top}/bin/rsync-huai")
        self.top = top

    def press_tab(self, line):
        """What the terminal shows after TAB (and, if that adds nothing, the choices), and the line between < and >."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.top)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], {
                **harness.ENVIRONMENT, "PATH": f"{self.top}/bin:/usr/bin:/bin", "TERM": "dumb", "PS1": "", "COLUMNS": "200",
                "HISTFILE": ""})
        try:
            return self._talk(terminal, line)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(terminal)

    def _talk(self, terminal, line):
        completion = os.path.abspath(os.path.join(PACKAGING, "completion", "rsync-huai"))
        settings = "".join(f"bind 'set {setting}'; " for setting in ("enable-bracketed-paste off", "completion-query-items 0",
                                                                     "page-completions off"))
        os.write(terminal, f"{settings}source {completion}; echo rea''dy\n".encode())
        self._read_until(terminal, b"ready\r\n")
        # At the end the line becomes the operand of a command that prints it.
        os.write(terminal, line.encode() + b"\t\t\x01printf '\\074%s\\076' \"\x05\"\n")
        return os.fsdecode(self._read_until(terminal, b">"))

    @staticmethod
    def _read_until(terminal, end):
        said, deadline = b"", time.monotonic() + 20
        while end not in said:
            assert time.monotonic() < deadline and select.select([terminal], [], [], 20)[0], said
            said += os.read(terminal, 4096)
        return said


def test_completion_in_a_shell(tmp_path):
    """As readline calls it, which takes --config=FILE for three words."""
    (tmp_path / "rsyncd.conf").write_text("[debian]\npath = /x\n[fedora]\npath = /y\n")
    shell = Shell(str(tmp_path))
    assert "<rsync-huai --itemize-changes >" in shell.press_tab("rsync-huai --itemi")
    shown = shell.press_tab("rsync-huai --attr-")
    assert "--attr-refresh=" in shown and "--attr-list" in shown
    for line, added in (("--daemon --config=rsy", "ncd.conf"), ("--refresh-attrs --config=rsy", "ncd.conf"),
                        ("--refresh-attrs --config=rsyncd.conf fe", "dora"), ("-a --only-send-attrs rsy", "ncd.conf")):
        assert f"<rsync-huai {line}{added} >" in shell.press_tab(f"rsync-huai {line}")


def complete(words, config=""):
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _rsync_huai; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    environment = {**harness.ENVIRONMENT, "PATH": f"{os.path.dirname(harness.HUAI)}:/usr/bin:/bin"}
    result = harness.run("bash", "-c", script, "complete", os.path.join(PACKAGING, "completion", "rsync-huai"),
                         "rsync-huai", *words, environment=environment)
    return os.fsdecode(result.stdout).split()


def test_completion(tmp_path):
    config = tmp_path / "conf"
    config.write_text("[debian]\npath = /x\n[debian-security]\npath = /y\n[fedora]\npath = /z\n")
    assert complete(["--itemi"]) == ["--itemize-changes"]
    assert "--bwlimit=" in complete(["--bw"])
    assert complete(["--refresh-attrs", f"--config={config}", "deb"]) == ["debian", "debian-security"]
