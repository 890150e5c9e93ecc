# SPDX-License-Identifier: GPL-3.0-or-later
"""rsync-huai and stock rsync pull the same from stock servers: result tree, exit code and output agree.

The jobs are those of test_matrix.py.
"""
import concurrent.futures
import os
import re
import shutil

import pytest

import harness
import test_matrix
import trees

PROTOCOLS = test_matrix.PROTOCOLS
# Lines that are ours on purpose: DEL is escaped, another member of a hard-link group comes first, what a connection reports at -vv.
DIFFERENT = re.compile(rb"hard-|twin-|(\\#177|\x7f)del|^opening (tcp|connection)|refusing to follow a symlink|write error: Broken pipe|^sending daemon args|"
                       rb"^removing duplicate name|^total: matches", re.M)
LEFT_OUT = {
    "digest-none": "both refuse it, and each says so from its own end",
    "ignore-existing": "stock gives the time of the directory to what stands in its place",
    "delete-max": "which of the surplus names go first",
    "archive-info": "the running count of the list below protocol 30",
    "cvs-exclude-delete": "stock daemons refuse a .cvsignore that is a symlink of another user",
}


def jobs():
    for number, case in enumerate(test_matrix.CASES):
        if case.name in LEFT_OUT:
            continue
        for turn, served in enumerate(("plain", "shell")):
            if served not in case.served:
                continue
            older = max(PROTOCOLS[(number + turn) % (len(PROTOCOLS) - 1)], case.since)
            for protocol in PROTOCOLS if case.core else (older, PROTOCOLS[-1]):
                # Names that an old list has before "." make stock forget that it has just made the destination.
                if protocol < case.since or (case.name == "odd-names" and protocol < 29):
                    continue
                marks = [pytest.mark.core] if case.core and protocol in (28, 32) and served == "plain" else []
                yield pytest.param(case, served, protocol, id=f"{case.name}-{served}-{protocol}", marks=marks)


@pytest.fixture(scope="module")
def site(top):
    result = test_matrix.Site(top)
    os.mkdir(os.path.join(top, "stock"))
    with harness.Daemon(harness.STOCK, result.config(ours=False), os.path.join(top, "stock")) as result.stock:
        yield result


def without_differences(result):
    for stream in ("stdout", "stderr"):
        lines = getattr(result, stream).split(b"\n")
        setattr(result, stream, b"\n".join(line for line in lines if not DIFFERENT.search(line)))
    return result


def compare(site, place, case, served, protocol):
    os.mkdir(place)
    try:
        pulls = []
        for program, name in ((harness.STOCK, "stock"), (harness.HUAI, "ours")):
            words = test_matrix.command(site, case, served, protocol, site.stock, harness.STOCK)
            words[0] = program
            result, tree = test_matrix.pull(site, place, case, words, name)
            pulls += [without_differences(result), tree]
        return test_matrix.report(*pulls, case.ordered and protocol >= 29, site.stock.log, (harness.HUAI, harness.STOCK))
    finally:
        shutil.rmtree(place)


@pytest.fixture(scope="module")
def pulls(request, site):
    selected = [item.callspec for item in request.session.items if item.originalname == "test_pull_is_the_same_as_stock_makes_it"]
    executor = concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1))
    yield {spec.id: executor.submit(compare, site, os.path.join(site.top, f"pull-{number}"), **spec.params)
           for number, spec in enumerate(selected)}
    executor.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case, served, protocol", jobs())
def test_pull_is_the_same_as_stock_makes_it(request, pulls, case, served, protocol):
    difference = pulls[request.node.callspec.id].result()
    if difference:
        pytest.fail(difference, pytrace=False)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pull_from_our_own_daemon(site, place, protocol):
    config = site.config(ours=True)
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        for served in ("plain", "layout2", "snapshot2"):
            left = []
            for program in (harness.STOCK, harness.HUAI):
                target = os.path.join(place, "left")
                result = harness.run(program, f"--protocol={protocol}", "-aH", daemon.url(served + "/"), target)
                assert result.code == 0, result.text
                left.append(trees.describe(target))
                shutil.rmtree(target)
            assert trees.differences(*left) == []


def test_preallocated_space_is_given_back(site, place):
    result = harness.run(harness.HUAI, "-a", "--preallocate", site.stock.url("plain/"), os.path.join(place, "dest"))
    assert result.code == 0, result.text
    expected = os.stat(os.path.join(site.mirror, "big.bin"))
    got = os.stat(os.path.join(place, "dest", "big.bin"))
    assert (got.st_size, got.st_blocks > 0) == (expected.st_size, True)
    calls = harness.run("strace", "-f", "-e", "trace=fallocate", harness.HUAI, "-a", "--preallocate",
                        site.stock.url("plain/big.bin"), os.path.join(place, "copy"))
    assert calls.code == 0 and b"fallocate(" in calls.stderr, calls.text
