# SPDX-License-Identifier: GPL-3.0-or-later
"""A quota that is used up in the middle of a run, by a library that is preloaded: few kernels that tests run on have quotas."""
import os
import subprocess

import pytest

import ends
import harness
import trees

TIME = 1_300_000_000_000_000_000
LIMIT = 100_000


@pytest.fixture(scope="module")
def library(workspace):
    path = os.path.join(workspace, "quota.so")
    source = os.path.join(os.path.dirname(__file__), "quota.c")
    try:
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", path, source, "-ldl"], check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no compiler")
    return path


def make(top):
    os.makedirs(f"{top}/s/d")
    os.mkdir(f"{top}/t")
    for name, size in (("a", 10), ("big", 400_000), ("d/y", 5), ("z", 1000)):
        trees.write(f"{top}/s/{name}", trees.noise(size, 1), 0o644, TIME)
    trees.write(f"{top}/t/big", b"old\n", 0o644, TIME - 10**12)
    trees.set_directory_times(f"{top}/s", TIME)


def run(top, options, way, client, server, library):
    os.mkdir(top)
    make(top)
    environment = {"QUOTA_DIR": f"{top}/t", "QUOTA_BYTES": str(LIMIT), "LD_PRELOAD": library}
    words = ends.words(top, options, ["s/"], way, 32, server)
    return harness.run(client, *words, cwd=top, environment=environment), words


def complaint(result, top):
    """The line on the file, as every way to a client's eyes has it."""
    lines = harness.normalise(result.stderr, (top, "TOP")).split(b"\n")
    return [line for line in lines if b"Disk quota exceeded" in line]


@pytest.mark.parametrize("options", ["-a", "-a --no-W", "-aS", "-ab", "-a --delay-updates", "-a --backup-dir=old -T .", "-a --inplace"])
@pytest.mark.parametrize("way", ends.WAYS)
def test_quota_ends_a_run_like_stocks_and_spoils_nothing(place, library, options, way):
    stock, _ = run(f"{place}/stock", options, way, harness.STOCK, harness.STOCK, library)
    assert stock.code in (11, 12) and complaint(stock, f"{place}/stock"), stock.text
    for number, (client, server) in enumerate(ends.PAIRINGS[way]):
        top = f"{place}/{number}"
        result, words = run(top, options, way, client, server, library)
        assert result.code == stock.code, stock.text + result.text
        assert complaint(result, top) == complaint(stock, f"{place}/stock"), stock.text + result.text
        if "--inplace" not in options:
            with open(f"{top}/t/big", "rb") as file:
                assert file.read() == b"old\n"
        left = [name for _, _, names in os.walk(f"{top}/t") for name in names]
        assert set(left) <= {"a", "big", "y", "z"}, left
        if "--delay-updates" not in options:
            assert trees.describe(f"{top}/t/a") == trees.describe(f"{top}/s/a")
        # Nothing is in the way of a run that has room.
        again = harness.run(client, *words, cwd=top)
        assert again.code == 0, again.text
        for name in ("a", "big", "d/y", "z"):
            assert trees.describe(f"{top}/t/{name}") == trees.describe(f"{top}/s/{name}"), name
