#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a peer can make us spend for each byte that it sends: processor time and memory, for every table that it can fill.

    HUAI=./rsync-huai bench/bench_cost.py [--items N] [--before PROGRAM] [--only NAME...]

The sessions are those of testsuite/system/costs.py, of N, 2 N and 4 N items; what the same session costs with nothing in it is
taken off. If the figures of a row are alike, the cost is in proportion to what was sent; if they double, it is a square of it.
With --before another build of the program (of an earlier commit) is measured as well, and shown above. A session that takes
longer than a minute is left, and counts as that.
"""
import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testsuite", "system"))

import costs  # noqa: E402
import harness  # noqa: E402

ITEMS_MOST = {"split arguments": 3900, "filter rules": 4000}  # so that four times as many are still taken
SECONDS = 60


def measure(program, name, counts):
    """Of each count: nanoseconds of the processor and bytes of memory for each byte sent; None for a session without an end."""
    costs.PROGRAM = program
    costs.raw_client.SECONDS = SECONDS
    with tempfile.TemporaryDirectory() as place:
        none = costs.SCENARIOS[name](place, 0)
        for count in counts:
            try:
                cost = costs.SCENARIOS[name](place, count)
            except (AssertionError, TimeoutError):
                yield None
                return
            sent = max(1, cost.sent - none.sent)
            yield (max(0, cost.cpu - none.cpu) * 1e9 / sent, max(0, cost.memory - none.memory) / sent)


def row(title, figures):
    cells = "".join(f"{figure[0]:10.0f}" if figure else f"{'no end':>10}" for figure in figures).ljust(32)
    cells += "".join(f"{figure[1]:8.1f}" if figure else " " * 8 for figure in figures)
    print(f"{title:34}{cells}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=10000, metavar="N")
    parser.add_argument("--before", metavar="PROGRAM", help="another build, to compare with")
    parser.add_argument("--only", nargs="+", choices=[*costs.SCENARIOS], metavar="NAME")
    options = parser.parse_args()

    print(f"For each byte that the peer sends, of sessions with {options.items} items, twice and four times as many:\n")
    print(f"{'':34}{'CPU, nanoseconds':>30}  {'memory, bytes':>24}")
    for name in options.only or [name for name in costs.SCENARIOS if name != "wildcards"]:
        items = min(options.items, ITEMS_MOST.get(name, options.items))
        counts = [items, 2 * items, 4 * items]
        if options.before:
            row(f"{name}, before", list(measure(options.before, name, counts)))
        row(name, list(measure(harness.HUAI, name, counts)))


if __name__ == "__main__":
    main()
