# SPDX-License-Identifier: GPL-3.0-or-later
"""Protocol 27 and 28 have their lists in the order of whole paths: listings, requests, and with them batches, keep to it."""
import os

import pytest

import ends
import harness
import trees

TIME = 1_300_000_000_000_000_000
NAMES = ["a/x", "a/y/z", "a/b-c/q", "a/b/q", "a-b/k", "a-b.c", "a.b/m", "a.c", "a0/n", "b", "a/b.x", "A/z", ".h/i", "zz"]


def make(top):
    for name in NAMES:
        os.makedirs(os.path.dirname(f"{top}/s/{name}"), exist_ok=True)
        trees.write(f"{top}/s/{name}", name.encode() * 100, 0o644, TIME)
    os.makedirs(f"{top}/s/empty")
    os.mkdir(f"{top}/s/a-")
    for target, name in (("a/x", "a.lnk"), ("a/x", "a-b/lnk"), ("a.c", "a/lnk2")):
        os.link(f"{top}/s/{target}", f"{top}/s/{name}")
    trees.set_directory_times(f"{top}/s", TIME)
    for name in ("a/x", "a/b/q", "a.b/old", "b", "a-b.c"):
        os.makedirs(os.path.dirname(f"{top}/t/{name}"), exist_ok=True)
        trees.write(f"{top}/t/{name}", b"old", 0o644, TIME - 10**12)
    trees.set_directory_times(f"{top}/t", TIME - 10**12)


@pytest.mark.parametrize("protocol", [27, 28, 29])
@pytest.mark.parametrize("way", ["pull", "push"])
@pytest.mark.parametrize("options", ["-r --list-only", "-rt --list-only --exclude=b", "-d --list-only", "-rlH --list-only --delete"])
def test_listings_have_the_order_of_stocks(place, options, way, protocol):
    expected = ends.assert_agree(place, make, options, way, protocol, in_order=True)
    assert len(expected[1]) > 3


@pytest.mark.core
@pytest.mark.parametrize("options", ["-ai", "-aHi", "-ai --inplace --no-W", "-aHi --delete-during", "-aHi --delete --partial-dir=.p",
                                     "-ai --exclude=/a/b* -u", "-aHi --delete-delay -b", "-aHi --delay-updates"])
@pytest.mark.parametrize("way", ["pull", "push"])
def test_contents_come_in_the_order_of_the_list(place, options, way):
    """What is done without a transfer may be reported before or after."""
    outcomes, first = [], None
    for client, server in ((harness.STOCK, harness.STOCK), *ends.PAIRINGS[way]):
        result, lines, errors, tree = ends.run(place, make, options, way, 28, client, server, in_order=True)
        outcomes.append((result.code, [line for line in lines if line[1:2] == b"f"], errors))
        if len(outcomes) > 1:
            assert outcomes[-1] == outcomes[0], result.text
            assert trees.differences(first, tree) == []
        first = tree if len(outcomes) == 1 else first


def test_many_directories_and_files(place):
    """More files than one task takes, with directories among them in the list."""
    def build(top):
        os.makedirs(f"{top}/s/m")
        os.mkdir(f"{top}/t")
        for number in range(1500):
            trees.write(f"{top}/s/{'m/' * (number % 2)}f{number:04}", b"%d" % number, 0o644, TIME)
            if number % 100 == 0:
                os.makedirs(f"{top}/s/f{number:04}-d/deep/er")
                trees.write(f"{top}/s/f{number:04}-d/deep/in", b"in", 0o644, TIME)
        trees.set_directory_times(f"{top}/s", TIME)
    ends.assert_agree(place, build, "-ai", "pull", 28)


@pytest.mark.parametrize("options", ["-avO", "-avb", "-rvvO --chmod=D700", "-niaO"])
@pytest.mark.parametrize("way", ["pull", "push"])
def test_directories_are_named_for_what_is_set(place, options, way):
    ends.assert_agree(place, make, options, way, 28)
