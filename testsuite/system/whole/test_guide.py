# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's guide, followed from its beginning to its end: its configuration, its commands, what it says that they print."""
import os
import re
import time

import pytest

import harness
import trees

GUIDE = os.path.join(harness.SOURCE, "doc", "operators-guide.md")
MODULES = ("debian", "fedora")


def guide_blocks():
    """The fenced blocks of the guide: (language, text)."""
    with open(GUIDE) as file:
        return re.findall(r"^```(\w*)\n(.*?)^```$", file.read(), re.M | re.S)


def as_pattern(line):
    """A line of the guide, with any number in the place of a number and any blanks in the place of blanks."""
    def replacement(piece):
        return r"-?[0-9][0-9.,/:]*" if piece[:1].isdigit() else r"[ \t]+" if piece.isspace() else re.escape(piece)

    return "".join(map(replacement, re.split(r"([0-9][0-9.,/:]*|[ \t]+)", line)))


class Machine:
    """A directory with the places that the guide names, and a daemon that serves its configuration."""

    def __init__(self, top):
        self.top = top
        for name in ("srv/attrs", "var/lib/rsync-huai", "var/log", "etc", "bin", "upstream"):
            os.makedirs(os.path.join(top, name))
        for name in MODULES:
            os.makedirs(os.path.join(top, "srv/mirrors", name, "pool"))
            trees.write(os.path.join(top, "srv/mirrors", name, "pool/file"), b"content")
            trees.write(os.path.join(top, "srv/mirrors", name, "README"), b"a mirror")
        harness.run("cp", "-a", self.path("/srv/mirrors/debian"), os.path.join(top, "upstream/debian"))
        self.config_file = self.path("/etc/rsyncd.conf")
        self.configure(f"lock file = {top}/lock\n")
        self._make_commands()

    def add_command(self, name, script):
        path = os.path.join(self.top, "bin", name)
        trees.write(path, f"#!/bin/sh\n{script}\n".encode())
        os.chmod(path, 0o755)
        return path

    def _make_commands(self):
        """The program under its installed name, for its /etc/rsyncd.conf; rsync is the stock one."""
        program = self.add_command("rsync-huai", 'case "$*" in *--daemon*|*--refresh-attrs*)\n'
                                   f'set -- --config={self.config_file} "$@"\nesac\nexec {harness.HUAI} "$@"')
        self.add_command("sudo", 'shift\nexec "$@"')
        os.symlink(harness.STOCK, os.path.join(self.top, "bin/rsync"))
        self.environment = {"PATH": f"{self.top}/bin:{os.environ['PATH']}", "RSYNC_HUAI": program}

    def path(self, text):
        """The text of the guide with this machine's places."""
        text = re.sub(r"(?<![\w/])/(?=(?:srv|var|etc)/)", self.top + "/", text)
        return text.replace("/usr/share/rsync-huai/hooks", os.path.join(harness.SOURCE, "packaging", "hooks"))

    def configure(self, text):
        text = text.replace("nogroup", harness.NOBODY_GROUP)
        with open(self.config_file, "a") as file:
            file.write(self.path(text) + "\n")

    def daemon(self):
        daemon = harness.Daemon(harness.HUAI, "", self.top)
        daemon.config_file, daemon.log_file = self.config_file, self.path("/var/log/rsyncd.log")
        return daemon

    def run(self, script, daemon, upstream):
        script = self.path(script).replace("rsync://localhost/", daemon.url())
        script = script.replace("rsync://upstream.example.org/", upstream.url())
        return harness.run("sh", "-e", "-c", script, environment=self.environment)


@pytest.fixture(name="machine")
def make_machine(tmp_path):
    os.chmod(tmp_path, 0o755)
    return Machine(str(tmp_path))


def follow(machine, daemon, upstream):
    """Do what the guide says. What its commands have printed has the lines that it shows, in that order."""
    printed = None
    for language, text in guide_blocks():
        if language == "ini":
            machine.configure(text)
        elif language == "sh":
            printed = machine.run(text, daemon, upstream)
            assert printed.code == 0, printed.text
        elif language == "text":
            lines = "$.*^".join(as_pattern(machine.path(line)) for line in text.splitlines())
            assert re.search(f"^{lines}$", os.fsdecode(printed.stdout), re.M | re.S), f"{text}\nis not in\n{printed.text}"


def begin(machine):
    """The daemon as the guide finds it: its first piece of configuration."""
    first = next(text for language, text in guide_blocks() if language == "ini")
    machine.configure(first)
    return machine.daemon()


@pytest.mark.core
def test_the_guide_can_be_followed(machine):
    upstream = harness.Daemon(harness.STOCK, f"use chroot = no\n[debian]\npath = {machine.top}/upstream/debian\n", machine.top)
    with begin(machine) as daemon, upstream:
        follow(machine, daemon, upstream)
        check = harness.run(harness.HUAI, "--daemon", "--config-check", f"--config={machine.config_file}")
        assert check.code == 0, check.text
        # Both modules are listed as their real trees are, and that from their attributes.
        for name in MODULES:
            real = machine.path(f"/srv/mirrors/{name}/")
            pulled = harness.run(harness.STOCK, "-a", "--list-only", daemon.url(f"{name}/"))
            assert pulled.stdout == harness.run(harness.STOCK, "-a", "--list-only", real).stdout, pulled.text
        assert os.path.getsize(machine.path("/srv/attrs/fedora/README")) == 8
        assert os.path.getsize(machine.path("/srv/attrs/fedora-again/README")) == 8
        assert os.path.exists(machine.path("/var/lib/rsync-huai/debian.snapshot"))


def provoke(machine, daemon):
    """What goes wrong in "What to do when": everything that clients and the log then say."""
    module, target = daemon.url("debian/"), os.path.join(machine.top, "pulled")
    snapshot = machine.path("/var/lib/rsync-huai/debian.snapshot")

    def client(*words):
        results.append(harness.run(harness.STOCK, *words).text)

    results = []
    assert harness.run(machine.environment["RSYNC_HUAI"], "--refresh-attrs").code == 0
    made = time.time()
    os.unlink(machine.path("/srv/mirrors/debian/pool/file"))
    client("-a", module, target)
    client("-a", target + "/", module)
    with open(snapshot, "rb") as file:
        content = file.read()
    trees.write(snapshot + ".new", content + b"xx")
    os.rename(snapshot + ".new", snapshot)
    client(module)
    rules = os.path.join(machine.top, "rules")
    trees.write(rules, b"".join(b"- /none/%d\n" % number for number in range(16000)))
    machine.configure("[debian]\nmemory limit per session = 1M")
    client("-a", f"--exclude-from={rules}", module, target)
    machine.configure("[debian]\nmax connections = -1")
    client(module)
    machine.configure("[debian]\nmax connections = 0\nattr snapshot max age = 1")
    while time.time() < made + 2.1:
        time.sleep(0.1)
    client(module)
    return "".join(results) + daemon.log()


def test_messages_of_the_guide_are_those_of_the_program(machine):
    with begin(machine) as daemon:
        for language, text in guide_blocks():
            if language == "ini" and "snapshot" in text:
                machine.configure(text)
        said = provoke(machine, daemon)
    lines = [line for language, text in guide_blocks() if language == "log" for line in text.splitlines()]
    assert len(lines) >= 6
    for line in lines:
        assert re.search(as_pattern(line), said), f"{line}\nis not in\n{said}"


def test_sudo_is_allowed_what_the_hooks_run(machine):
    machine.add_command("sudo", 'echo "$*"')
    machine.add_command("id", "echo 1000")
    environment = {"PATH": machine.environment["PATH"]}
    hook = os.path.join(harness.SOURCE, "packaging/hooks/refresh")
    runs = [harness.run(hook, "debian", environment={**environment, "RSYNC_HUAI_OPTIONS": options})
            for options in ("", "--attr-refresh=dirs")]
    rules = "".join(text for _, text in guide_blocks() if "NOPASSWD" in text)
    allowed = [line.split("NOPASSWD: ")[1].replace("\\=", "=") for line in rules.splitlines()]
    assert allowed == [os.fsdecode(run.stdout).strip().removeprefix("-n ") for run in runs]


def test_commands_that_are_not_run_are_few():
    languages = [language for language, _ in guide_blocks()]
    assert languages.count("sh") >= 3 * languages.count("console") > 0
    assert set(languages) <= {"sh", "console", "ini", "text", "log", ""}
