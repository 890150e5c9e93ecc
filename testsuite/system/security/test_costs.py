# SPDX-License-Identifier: GPL-3.0-or-later
"""What a peer sends costs in proportion to its length: processor time and memory at n, 2n and 4n items of each kind."""
import os
import struct

import pytest

import costs
import raw_client
from hostile import site  # noqa: F401
from raw_sender import ROOT, entry

# n, large enough that its cost can be distinguished from that of the session itself.
SIZES = {
    "directory names": 5000,
    "hard-link keys": 8000,
    "files behind directories": 10000,
    "refused requests": 8000,
    "linked files": 20000,
    "listed files": 10000,
    "listed directories": 3000,
    "extended attributes": 8000,
    "names of owners": 1000,
    "names of files": 10000,
    "split arguments": 3500,
    "filter rules": 500,
    "block sums": 20000,
}
MOST = 6          # times what n costs, for 4n; a square would be 16
GRAIN = 0.01      # seconds: below that, the clock and the machine's other work decide
PAGES = 1 << 20   # bytes of memory, likewise
ATTEMPTS = 3      # on a busy machine the caches are others', too


def is_linear(small, large, grain):
    return large <= MOST * max(small, grain)


@pytest.mark.parametrize("name", SIZES)
def test_costs_grow_with_what_is_sent(place, name):
    n = SIZES[name]
    for _ in range(ATTEMPTS):
        none, *some = [costs.SCENARIOS[name](place, count) for count in (0, n, 2 * n, 4 * n)]
        cpu = [cost.cpu - none.cpu for cost in some]
        memory = [cost.memory - none.memory for cost in some]
        if is_linear(cpu[0], cpu[2], GRAIN) and is_linear(memory[0], memory[2], PAGES):
            return
    raise AssertionError(f"{name}: {cpu} s, {memory} bytes for {n}, {2 * n} and {4 * n}")


MEMORY = 'exceeded the memory of a session, 1048576 bytes, with {} (see "memory limit per session" in rsyncd.conf)'


@pytest.mark.parametrize("name, n, what", [
    ("names of files", 50000, "a file list"), ("split arguments", 15000, "arguments"), ("filter rules", 12000, "filter rules"),
    ("block sums", 40000, "block sums"),
])
def test_a_client_cannot_make_a_module_remember_more_than_its_limit(place, name, n, what):
    cost = costs.SCENARIOS[name](place, n, config="memory limit per session = 1M\n")
    assert cost.code == 22 and MEMORY.format(what) in cost.text, cost
    assert cost.memory < 8 << 20


def test_a_client_may_lower_the_limit(place):
    cost = costs.names_of_files(place, 300000, more=["--max-alloc=1M"])
    assert cost.code == 22 and "exceeded the memory of a session, 16777216 bytes, with" in cost.text, cost


def test_a_receiver_counts_what_is_listed_attributes_included(place):
    for name, n in (("listed directories", 16000), ("extended attributes", 40000)):
        assert costs.SCENARIOS[name](place, n, "--max-alloc=1M").code == 22, name


def test_splitting_does_not_make_more_arguments_than_may_be_sent(place):
    assert "too many daemon arguments" in costs.split_arguments(place, 16500).text


CPU = 'matching names has taken 1 seconds of the processor (see "cpu limit per session" in rsyncd.conf)'
ENDLESS = {
    "wildcards": lambda place, **keywords: costs.wildcards(place, 25, **keywords),
    "rules": lambda place, **keywords: costs.rules(place, 1000, classes=100, **keywords),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_matching_names_ends_at_the_limit(place, name):
    cost = ENDLESS[name](place, config="cpu limit per session = 1\n")
    assert cost.code == 30 and CPU in cost.text, cost
    assert cost.cpu < 3, cost


@pytest.mark.parametrize("name", ENDLESS)
def test_nobody_works_for_a_client_that_has_gone(place, name):
    cost = ENDLESS[name](place, patient=False)
    assert cost.code == 12 and "connection unexpectedly closed" in cost.text, cost
    assert cost.cpu < 2, cost


def test_wildcards_are_held_against_so_many_names(place):
    """Four million; the limit of time is further away."""
    tree = os.path.join(place, "tree")
    costs.make_tree(tree)
    for name in range(3000):
        os.link(f"{tree}/a", f"{tree}/d/{name}")
    cost = costs.wildcards(place, 12, config="cpu limit per session = 0\n")
    assert cost.code == 2 and "the wildcards of the arguments lead to more than 4000000 names" in cost.text, cost


@pytest.mark.parametrize("ndx", [0, 2, 5000, 2**31 - 1])
def test_nobody_refuses_what_was_not_asked_for(site, ndx):  # noqa: F811
    with site.pull("-r") as sender:
        sender.list(ROOT, entry(b"f", size=1))
        assert sender.wait_for_request()[0] == 1
        sender.message(raw_client.MSG_NO_SEND, struct.pack("<i", ndx))
        site.refuses(sender.end(), 2, f"the sender refuses what was not asked for: index {ndx}")


def test_nobody_refuses_twice(site):  # noqa: F811
    with site.pull("-r") as sender:
        sender.list(ROOT, entry(b"f", size=1), entry(b"g", size=1))
        sender.wait_for_request()
        sender.wait_for_request()
        for _ in range(2):
            sender.message(raw_client.MSG_NO_SEND, struct.pack("<i", 1))
        site.refuses(sender.end(), 2, "the sender refuses what was not asked for: index 1")
