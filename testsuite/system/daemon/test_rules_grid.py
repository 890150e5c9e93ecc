# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module's rules hide stays hidden, wherever a client names a path and however it spells it (rules_grid.py).

By default a sample of the grid runs, by lot, and every cell that has ever failed. HUAI_RULES_GRID=full: all of it;
HUAI_RULES_ONLY: the cells that match this; HUAI_RULES_SEED repeats a sample; HUAI_RULES_LIST: where to list what is not as
stock does it.
"""
import os
import random
import re

import pytest

import harness
import rules_grid

FULL = os.environ.get("HUAI_RULES_GRID") == "full"
SEED = int(os.environ.get("HUAI_RULES_SEED", random.SystemRandom().randrange(10 ** 6)))
ONLY = os.environ.get("HUAI_RULES_ONLY", "")
LIST = os.environ.get("HUAI_RULES_LIST", "")
SAMPLE = {"pull": 20, "push": 20}
KINDS = ("stock shows or changes it", "only ours refuses", "only stock refuses")


@pytest.fixture(scope="module")
def sites(workspace):
    top = os.path.join(workspace, "rules-grid")
    with rules_grid.Site(os.path.join(top, "ours"), harness.HUAI) as ours, \
            rules_grid.Site(os.path.join(top, "stock"), harness.STOCK) as stock:
        yield ours, stock


def cells_that_failed():
    with open(os.path.join(os.path.dirname(__file__), "rules_grid_failed.txt")) as file:
        return {line.strip() for line in file if line.strip() and not line.startswith("#")}


def chosen(places, sample):
    cells = [cell for cell in rules_grid.all_cells() if cell.place in places and cell.rule != "none" and re.search(ONLY, cell.key)]
    if FULL or ONLY:
        return cells
    lot, failed = random.Random(SEED), cells_that_failed()
    picked = {cell.key for cell in lot.sample(cells, sample)}
    return [cell for cell in cells if cell.key in picked or cell.key in failed]


def stricter(cell, result):
    """What ours accepts, though stock does not: rsync-huaid.conf(5) says why."""
    # It tests a destination as a file and as a directory, whichever it is.
    as_file = cell.rule == "files" and b"daemon has excluded destination" in result.stderr
    # It takes "./" for a name in a chroot, which "*" matches.
    as_name = cell.rule == "only" and cell.chroot == "chroot" and any("-chroot/./" in word for word in result.words)
    return as_file or (as_name and cell.place.startswith(("above it", "dir-merge")))


class Stock:
    """A stock daemon has live trees only, and need be asked once for each."""

    def __init__(self, site):
        self.site, self.known = site, {}

    def run(self, cell):
        cell = rules_grid.Cell(cell.place, cell.rule, cell.kind, cell.spelling, "live", cell.chroot)
        if cell.key not in self.known:
            code, betrayed, result = self.site.run(cell)
            self.known[cell.key] = code, betrayed, stricter(cell, result)
        return self.known[cell.key]


@pytest.mark.parametrize("direction", ["pull", "push"])
def test_what_is_hidden_stays_hidden(sites, direction, capsys):
    ours, stock = sites[0], Stock(sites[1])
    places = rules_grid.PULLS if direction == "pull" else rules_grid.PUSHES
    cells, failures, differences = chosen(places, SAMPLE[direction]), [], {kind: [] for kind in KINDS}
    for cell in cells:
        code, betrayed, result = ours.run(cell)
        their_code, their_betrayed, accepted = stock.run(cell)
        if betrayed:
            failures.append(f"{cell.key}: {sorted(betrayed)}; stock: {their_code} {sorted(their_betrayed)}\n{result.text}")
        elif their_code not in (0, 24) and not code and not their_betrayed and not accepted: # 24: a warning
            failures.append(f"{cell.key}: stock refuses it with {their_code}\n{result.text}")
        if their_betrayed and not betrayed:
            differences[KINDS[0]].append(f"{cell.key}: {sorted(their_betrayed)}")
        elif bool(code) != bool(their_code):
            differences[KINDS[1 if code else 2]].append(f"{cell.key}: {code}, stock {their_code}")
    count = ", ".join(f"{len(keys)}: {kind}" for kind, keys in differences.items())
    with capsys.disabled():
        print(f"\n{direction}: {len(cells)} cells, {len(failures)} failed, {sum(map(len, differences.values()))} differ from stock "
              f"({count}); HUAI_RULES_SEED={SEED}")
    if LIST:
        with open(LIST + direction, "w") as file:
            file.writelines("failed: " + failure.replace("\n", "\n\t") + "\n" for failure in failures)
            file.writelines(f"{kind}: {key}\n" for kind, keys in differences.items() for key in keys)
    assert not failures, f"{len(failures)} cells failed; HUAI_RULES_SEED={SEED}\n" + "\n".join(failures[:20])


def test_each_place_can_betray_what_is_not_hidden(sites):
    """Where nothing is hidden, every place shows or changes something in one spelling at least: the cells above test something."""
    silent = []
    for place, (_, kinds) in {**rules_grid.PULLS, **rules_grid.PUSHES}.items():
        for kind in kinds:
            spellings = ("plain", "trailing")
            cells = (rules_grid.Cell(place, "none", kind, spelling, "live", "plain") for spelling in spellings)
            if not any(sites[0].run(cell)[1] for cell in cells):
                silent.append(f"{place}|{kind}")
    assert silent == []
