# SPDX-License-Identifier: GPL-3.0-or-later
"""What rsync(1) promises of each option, one consequence a row, by stock and by ours: see promises.py."""
import os
import shutil
import time

import pytest

import ends
import harness
import promises
import promises_rows
import trees


def run(place, promise, client, server):
    top = os.path.join(place, "work")
    os.mkdir(top)
    (promise.make or promises.make_trees)(top)
    trees.write(f"{top}/began", b"", mtime_ns=time.time_ns())
    since = (int(time.time()) - 1) * 1_000_000_000
    words = ends.words(top, promise.words, promise.sources, promise.way, promise.protocol, server, promise.destination)
    result = harness.run(client, *words, cwd=top)
    seen = promises.Seen(top, result)
    tree = trees.describe(top, since_ns=since)
    for name in promise.apart:
        tree[name.encode()].pop("content")
    shutil.rmtree(top)
    return result, seen, tree


def printed(result, promise):
    """Both streams; of a local run with two processes only stock's has the end of the other one."""
    errors = [line for line in ends.lines(result.stderr, promise.in_order) if b"received SIGUSR1 (code 19)" not in line]
    return ends.lines(result.stdout, promise.in_order), errors


@pytest.mark.parametrize("promise", promises_rows.ROWS, ids=lambda promise: promise.name)
def test_promise(place, promise):
    result, seen, tree = run(place, promise, harness.STOCK, harness.STOCK)
    assert seen.code == promise.code, result.text
    failed = [number for number, shown in enumerate(promise.shows) if not shown(seen)]
    assert not failed, f"stock does not show {failed}: {result.text}\n{sorted(seen.info)}"
    for client, server in ends.PAIRINGS[promise.way]:
        own, own_seen, own_tree = run(place, promise, client, server)
        both = f"{result.text}\n{own.text}"
        assert own_seen.code == promise.code, both
        assert [number for number, shown in enumerate(promise.shows) if not shown(own_seen)] == [], both
        if not promise.only_shown:
            assert printed(own, promise) == printed(result, promise), both
            assert trees.differences(tree, own_tree) == [], both


def test_no_promise_is_made_twice():
    names = [promise.name for promise in promises_rows.ROWS]
    assert len(names) == len(set(names))
