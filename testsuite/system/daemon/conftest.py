# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of the daemon share."""
import os

import pytest

import trees


@pytest.fixture
def tree(place):
    """A module of one file."""
    os.makedirs(f"{place}/tree")
    trees.write(f"{place}/tree/file", b"content")
    return f"{place}/tree"
