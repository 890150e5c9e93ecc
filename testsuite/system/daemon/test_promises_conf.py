# SPDX-License-Identifier: GPL-3.0-or-later
"""What rsyncd.conf(5) says, one consequence a row, with a daemon of stock and with ours: see promises_conf.py."""
import difflib
import os
import re
import shutil

import pytest

import ends
import harness
import promises_conf
import promises_conf_rows
import trees


@pytest.fixture(scope="module")
def daemons(workspace):
    """Of both kinds, with a configuration that each row replaces."""
    started = []
    for program, name in ((harness.STOCK, "stock"), (harness.HUAI, "huai")):
        directory = os.path.join(workspace, f"promises-{name}")
        os.mkdir(directory)
        started.append(harness.Daemon(program, "[none]\npath = /\n", directory).__enter__())
    yield started
    for daemon in started:
        daemon.__exit__()


REFUSED = (1, 4, 5)


def printed(seen):
    """Without the last line of a client that was refused, as that depends on whether the connection was reset."""
    found = []
    for result in seen.results:
        was_refused = result.code in (*REFUSED, 10, 12)
        error = re.sub(rb"^rsync error: .*\n", b"", result.stderr, flags=re.M) if was_refused else result.stderr
        # Below the root of a module stock writes names with a leading slash or without.
        error = re.sub(rb'(mkstemp "(?:[^"\n]*/)?)\.([^"\n]+)\.\w{6}"', rb'\1\2"', error)
        error = re.sub(rb'"/(?=[^"\n]*" \(in )', b'"', error)
        found.append((ends.lines(result.stdout), ends.lines(error)))
    return found


def fits(promise, codes):
    wanted = promise.codes + promise.codes[-1:] * (len(codes) - len(promise.codes))
    return all(expected in (None, code) or (expected in REFUSED and code in (10, 12)) for code, expected in zip(codes, wanted))


@pytest.mark.parametrize("promise", promises_conf_rows.ROWS, ids=lambda promise: promise.name)
def test_promise(place, daemons, promise):
    if promise.root and not promises_conf.IS_ROOT:
        pytest.skip("needs root")
    if promise.needs and not shutil.which(promise.needs):
        pytest.skip(f"needs {promise.needs}")
    top = os.path.join(place, "w")
    seen, tree = promises_conf.play(promise, harness.STOCK, top, daemons[0])
    shows = promise.shows if promise.stock_shows is None else promise.stock_shows
    failed = [number for number, shown in enumerate(shows) if not shown(seen)]
    as_stock = promise.stock_shows is not None or fits(promise, seen.codes)
    assert not failed and as_stock, f"stock does not show {failed}: {seen.report}{sorted(seen.info)}"
    own, own_tree = promises_conf.play(promise, harness.HUAI, top, daemons[1])
    both = f"{seen.report}---\n{own.report}"
    failed = [number for number, shown in enumerate(promise.shows) if not shown(own)]
    assert not failed and fits(promise, own.codes), f"ours does not show {failed}: {both}{sorted(own.info)}"
    if not promise.only_shown:
        assert printed(own) == printed(seen), both
        logs = promises_conf.log_lines(seen.log), promises_conf.log_lines(own.log)
        difference = "\n".join(difflib.unified_diff(*logs, "stock", "ours", n=0))
        assert not difference, f"{difference}\n{both}"
        assert trees.differences(tree, own_tree) == [], both


def test_no_promise_is_made_twice():
    names = [promise.name for promise in promises_conf_rows.ROWS]
    assert len(names) == len(set(names))
