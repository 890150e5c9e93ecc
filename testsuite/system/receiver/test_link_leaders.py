# SPDX-License-Identifier: GPL-3.0-or-later
"""Which name of a group of hard links is transferred or made, and which names stay what they are."""
import os

import pytest

import ends
import test_pairings


def make(state):
    def build(top):
        source, target = test_pairings.SHAPES["hard"]
        os.mkdir(f"{top}/s")
        source(f"{top}/s")
        if state != "nothing":
            os.mkdir(f"{top}/t")
            source(f"{top}/t")
        if state == "old":
            target(f"{top}/t")
    return build


@pytest.mark.parametrize("protocol", [27, 28, 29])
@pytest.mark.parametrize("way", ["pull", "push"])
@pytest.mark.parametrize("options, state", [("-aHi", "nothing"), ("-aHi", "old"), ("-aHi --no-W --delete", "old"), ("-aHcib", "old")])
def test_leaders_without_incremental_recursion_are_stocks(place, options, state, way, protocol):
    ends.assert_agree(place, make(state), options, way, protocol)


@pytest.mark.core
@pytest.mark.parametrize("way, protocol", [("local", 32), *((way, protocol) for way in ("pull", "push") for protocol in (28, 29, 32))])
@pytest.mark.parametrize("options", ["-aHvi --existing", "-aHi --ignore-existing", "-aHi --existing --ignore-existing --delete"])
def test_names_that_are_skipped_do_not_become_links(place, options, way, protocol):
    ends.assert_agree(place, make("old"), options, way, protocol)
