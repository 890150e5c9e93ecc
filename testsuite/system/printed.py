# SPDX-License-Identifier: GPL-3.0-or-later
"""What a client prints and logs, stock's beside ours, in local runs, pulls and pushes of one small tree."""
import difflib
import os
import re
import shutil
import subprocess

import harness

STAMP = re.compile(rb"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\d+\] ", re.M)
CLOSING = re.compile(rb"^sent [\d,]+ bytes  received [\d,]+ bytes  total size", re.M)
PROGRAMS = ((harness.STOCK, "stock"), (harness.HUAI, "ours"))


def set_times(top):
    for directory, names, files in os.walk(top, topdown=False):
        for name in names + files:
            os.utime(os.path.join(directory, name), (1_700_000_000, 1_700_000_000), follow_symlinks=False)
    os.utime(top, (1_700_000_000, 1_700_000_000))


def make_source(top):
    os.makedirs(os.path.join(top, "sub/deep"))
    os.makedirs(os.path.join(top, "foo bar"))
    os.mkdir(os.path.join(top, "empty"))
    for name, text in (("a.txt", "hello\n"), ("big", "x" * 70_000), ("sub/b", "b\n"), ("sub/deep/c", "c\n"), ("\u00e9", "e"),
                       ("new\nline", "n"), ("foo bar/x y", "xy")):
        with open(os.path.join(top, name), "w") as file:
            file.write(text)
    os.symlink("a.txt", os.path.join(top, "link"))
    os.symlink("../../etc/passwd", os.path.join(top, "sub/unsafe"))
    os.link(os.path.join(top, "big"), os.path.join(top, "sub/hard"))
    os.mkfifo(os.path.join(top, "fifo"))
    set_times(top)


def make_destination(source, top, state):
    """"none": it is not there; "same": nothing to do; "other": something of everything to do."""
    if state == "none":
        return
    subprocess.run(["cp", "-a", source, top], check=True)
    if state == "same":
        return
    with open(os.path.join(top, "a.txt"), "w") as file:
        file.write("other\n")
    with open(os.path.join(top, "big"), "a") as file:
        file.write("yy")
    os.chmod(os.path.join(top, "sub/b"), 0o600)
    os.utime(os.path.join(top, "sub/deep"), (1, 1))
    os.remove(os.path.join(top, "link"))
    os.symlink("elsewhere", os.path.join(top, "link"))
    os.remove(os.path.join(top, "sub/hard"))
    os.remove(os.path.join(top, "\u00e9"))
    os.makedirs(os.path.join(top, "surplus/x"))
    with open(os.path.join(top, "surplus/x/y"), "w"):
        pass


class Site:
    """One source, a place for destinations, a stock daemon and a remote shell: the ways in which files can go."""

    def __init__(self, place, daemon):
        self.place = place
        self.source = os.path.join(place, "src")
        self.shell = harness.make_remote_shell(place)
        self.daemon = daemon
        make_source(self.source)

    @staticmethod
    def config(place):
        owner = "uid = root\ngid = root\n" if os.geteuid() == 0 else ""
        return f"use chroot = no\n{owner}[m]\npath = {place}\nread only = no\n"

    def operands(self, way, source="src/"):
        at_shell, at_daemon = f"host:{self.place}/", self.daemon.url("m/")
        return {"local": [source, "dest"], "pull": ["-e", self.shell, at_shell + source, "dest"],
                "push": ["-e", self.shell, source, at_shell + "dest"], "daemon-pull": [at_daemon + source, "dest"],
                "daemon-push": [source, at_daemon + "dest"]}[way]

    def run(self, program, options, operands, state, environment=None):
        target = os.path.join(self.place, "dest")
        shutil.rmtree(target, ignore_errors=True)
        make_destination(self.source, target, state)
        return harness.run(program, *options, *operands, cwd=self.place, environment=environment)


def plain(output):
    return CLOSING.sub(b"sent N bytes  received N bytes  total size", harness.normalise(STAMP.sub(b"", output)))


def difference(label, expected, got):
    lines = [os.fsdecode(output).split("\n") for output in (expected, got)]
    return "\n".join(difflib.unified_diff(*lines, f"stock's {label}", f"our {label}", lineterm="", n=2))
