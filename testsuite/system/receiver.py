# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that receive, twice: the same job with stock and with ours, into equal destinations, locally and from a stock server.

    with receiver.Site(place, make) as site:
        receiver.assert_same(site, "-ai --chown=5:6", "shell", protocol=29)
"""
import dataclasses
import os
import re
import shutil
import time

import harness
import trees

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
TEMP_NAME = re.compile(rb'/\.([^/"]+)\.[A-Za-z0-9]{6}"')


class Site:
    """A source `s` that `make` builds below `place`, served as module `m` and by a remote shell."""

    def __init__(self, place, make):
        self.place = place
        self.source = os.path.join(place, "s")
        os.mkdir(self.source)
        make(self.source)
        self.shell = harness.make_remote_shell(place)
        config = f"uid = root\ngid = root\nuse chroot = no\n[m]\npath = {self.source}\nread only = no\n" \
            if trees.IS_ROOT else f"use chroot = no\n[m]\npath = {self.source}\nread only = no\n"
        os.mkdir(os.path.join(place, "daemon"))
        self.daemon = harness.Daemon(harness.STOCK, config, os.path.join(place, "daemon"))
        self.began = time.time_ns() - 2_000_000_000

    def __enter__(self):
        self.daemon.__enter__()
        return self

    def __exit__(self, *exception):
        self.daemon.__exit__(*exception)

    def words(self, options, transport, protocol, path):
        if transport == "local":
            return [*options, os.path.join("s", path)]
        if transport == "shell":
            return [*options, f"--protocol={protocol}", "-e", self.shell, f"h:{self.source}/{path}"]
        return [*options, f"--protocol={protocol}", self.daemon.url(f"m/{path}")]


@dataclasses.dataclass
class Outcome:
    result: harness.Result
    tree: dict
    extra: object


def lines_of(text, program):
    text = harness.normalise(text, (program, "PROGRAM"))
    text = TEMP_NAME.sub(rb"/\1" + b'"', text).replace(b'/d/."', b'/d"')
    return sorted(text.split(b"\n"))


def run(site, program, options, transport, protocol=32, *, path="", before=None, after=None, user=(), destination="d/",
        environment=None):
    """One run into a fresh `d` (or into what `before` makes of it); `after` says what else is to be compared."""
    target = os.path.join(site.place, "d")
    shutil.rmtree(target, ignore_errors=True)
    if os.path.lexists(target):
        os.unlink(target)
    if before:
        os.mkdir(target)
        before(target)
        if user and trees.IS_ROOT:
            for directory, _, files in os.walk(target):
                for name in (".", *files):
                    os.chown(os.path.join(directory, name), 65534, 65534, follow_symlinks=False)
    words = [*user, program, *site.words(options, transport, protocol, path), destination]
    result = harness.run(*words, cwd=site.place, environment=environment)
    return Outcome(result, trees.describe(target, since_ns=site.began), after() if after else None)


def assert_same(site, options, transport, protocol=32, **how):
    """Tree, exit code, and the lines of both streams agree; lines may come in another order."""
    how.setdefault("user", ())
    if how["user"]:
        os.chmod(site.place, 0o777)
    options = options.split() if isinstance(options, str) else options
    stock, ours = (run(site, program, options, transport, protocol, **how) for program in (harness.STOCK, harness.HUAI))
    both = stock.result.text + ours.result.text
    assert ours.result.code == stock.result.code, both
    assert lines_of(ours.result.stdout, harness.HUAI) == lines_of(stock.result.stdout, harness.STOCK), both
    assert lines_of(ours.result.stderr, harness.HUAI) == lines_of(stock.result.stderr, harness.STOCK), both
    assert trees.differences(stock.tree, ours.tree) == [], both
    assert ours.extra == stock.extra, both
    return ours
