# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of the client share."""
import os

import pytest

import harness
import printed


@pytest.fixture(scope="module")
def site(top):
    os.makedirs(os.path.join(top, "daemon"))
    with harness.Daemon(harness.STOCK, printed.Site.config(top), os.path.join(top, "daemon")) as daemon:
        yield printed.Site(top, daemon)
