# SPDX-License-Identifier: GPL-3.0-or-later
"""--prune-empty-dirs beside stock, locally and in pulls."""
import os

import pytest

import harness
import receiver
import trees

OLD = 1_500_000_000


def settle(top):
    for directory, names, files in os.walk(top, topdown=False):
        for name in (*files, "."):
            os.utime(os.path.join(directory, name), (OLD, OLD), follow_symlinks=False)


def make_source(top):
    for name in ("e1/e2", "f/g", "h/i", "k/l/m", "only/links", "gone", "s/k/q", "z.d"):
        os.makedirs(os.path.join(top, name))
    for name in ("f/g/file", "h/i/x.o", "z.d/y.o", "plain"):
        trees.write(os.path.join(top, name), name.encode())
    trees.symlink("file", os.path.join(top, "only/links/l"))
    settle(top)


def fill(target):
    for name in ("e1", "k/l/m", "old/empty", "h"):
        os.makedirs(os.path.join(target, name))
    trees.write(os.path.join(target, "k/l/here"), b"1")
    settle(target)


@pytest.fixture(scope="module")
def site(top):
    with receiver.Site(top, make_source) as result:
        yield result


CASES = (
    ("-aim", ""), ("-avvm", ""), ("-aim --delete", ""), ("-avm --delete-before --stats", ""), ("-aim --delete-after", ""),
    ("-aim --delete-delay", ""), ("-amn --delete -i", ""), ("-aim --exclude=*.o", ""),
    ("-aim --exclude=*.o --delete --delete-excluded", ""), ("-aim|-fP l/", ""), ("-aim|-fP l/|--delete", ""),
    ("-aim|-f-r /k/l/m/", ""), ("-aim|-fP k/", ""), ("-aim|-fH l/", ""), ("-dim", ""), ("-aim --max-size=0", ""),
    ("-aim --existing", ""), ("-aimR", "./k"), ("-aim", "k"), ("-aim", "e1/"), ("-am --list-only", ""), ("-aim --no-m", ""),
    ("-aimH --delete", ""), ("-aim --force --delete", "h"),
)


def jobs():
    transports = [("shell", 29), ("shell", 30), ("shell", 32), ("daemon", 31)]
    for number, (options, path) in enumerate(CASES):
        core = [pytest.mark.core] if number in (2, 10) else []
        yield pytest.param(options, path, number % 3 == 0, "local", 32, id=f"{options}-{path}-local")
        transport, protocol = transports[number % 4]
        yield pytest.param(options, path, number % 3 > 0, transport, protocol, marks=core,
                           id=f"{options}-{path}-{transport}-{protocol}")


@pytest.mark.parametrize("options, path, full, transport, protocol", jobs())
def test_empty_directories_are_left_out_as_stock_does(site, options, path, full, transport, protocol):
    receiver.assert_same(site, options.split("|") if "|" in options else options, transport, protocol, path=path,
                         before=fill if full else None)


@pytest.mark.parametrize("program", (harness.STOCK, harness.HUAI))
def test_old_protocols_do_not_know_it(site, program):
    result = receiver.run(site, program, ["-am"], "shell", 28).result
    assert result.code == 2 and b"--prune-empty-dirs" in result.stderr, result.text


def test_snapshot_of_a_destination_with_pruned_names(site, place):
    """What is not in the list any more is in the snapshot if it is at the destination."""
    dest, snapshot = os.path.join(place, "dest"), os.path.join(place, "snapshot")
    os.mkdir(dest)
    fill(dest)
    result = harness.run(harness.HUAI, "-am", f"--attr-snapshot={snapshot}", site.source + "/", dest + "/")
    assert result.code == 0, result.text
    result = harness.run(harness.HUAI, "--attr-verify", snapshot, dest + "/")
    assert result.code == 0, result.text
