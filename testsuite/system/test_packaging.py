# SPDX-License-Identifier: GPL-3.0-or-later
"""What is installed beside the program: units, hooks, completion, log rotation, fail2ban. Run as their users run them."""
import os
import re
import shutil
import subprocess

import pytest

import harness
import trees

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PACKAGING = os.path.join(SOURCE, "packaging")
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
    """Every line of the log that tells of a refusal, and no other."""
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
