# SPDX-License-Identifier: GPL-3.0-or-later
"""--fake-super into a destination that has real symlinks, devices and specials already."""
import os

import pytest

import ends
import trees

TIME = 1_300_000_000_000_000_000


def make(top):
    for side in "st":
        os.makedirs(f"{top}/{side}/d")
        for name in ("l", "d/l"):
            trees.symlink("f", f"{top}/{side}/{name}")
        os.mkfifo(f"{top}/{side}/p")
        trees.finish(f"{top}/{side}/p", 0o640, TIME)
        if trees.IS_ROOT:
            os.mknod(f"{top}/{side}/dev", 0o020600, os.makedev(1, 3))
            trees.finish(f"{top}/{side}/dev", 0o660, TIME)
        trees.set_directory_times(f"{top}/{side}", TIME)
    trees.symlink("f", f"{top}/s/new")


@pytest.mark.core
@pytest.mark.parametrize("way", ends.WAYS)
@pytest.mark.parametrize("options", ["-ai --fake-super", "-rlti --fake-super -M--fake-super", "-ai --fake-super -I"])
def test_real_symlinks_become_kept_ones_and_devices_stay(place, options, way):
    ends.assert_agree(place, make, options, way)
