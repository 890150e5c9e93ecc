# SPDX-License-Identifier: GPL-3.0-or-later
"""The demonstration: succeeds, counts no touch of the real tree, fails when something is wrong, and leaves nothing behind."""
import glob
import os
import re
import sys

import pytest

import harness

TRY = os.path.join(harness.SOURCE, "testsuite", "try.py")


def run_try(program, files):
    if os.geteuid() != 0:
        pytest.skip("serving as nobody in a chroot needs root")
    result = harness.run(sys.executable, "-B", TRY, f"--files={files}", environment={"HUAI": program}, timeout=500)
    if b"not counted" in result.stdout or b"no block is counted" in result.stdout:
        pytest.skip(os.fsdecode(result.stdout))
    return result


def leftovers():
    with open("/proc/self/mounts") as mounts:
        return glob.glob("/tmp/rsync-huai-try.*") + glob.glob("/dev/shm/rsync-huai-try.*") + [m for m in mounts if "rsync-huai-try" in m]


def test_try_shows_an_untouched_tree_and_equal_copies():
    before = leftovers()
    result = run_try(harness.HUAI, 2000)
    assert result.code == 0, result.text
    text = os.fsdecode(result.stdout)
    assert "All pulled trees equal the mirror." in text
    rows = re.findall(r"^list everything +(\S.*?)  +([\d,]+) +([\d.]+) +([\d,]+) +([\d,]+) +([\d,]+)$", text, re.M)
    assert [row[0] for row in rows] == ["stock rsyncd", "layout 1, chroot", "layout 2, no chroot"]
    assert len({row[1] for row in rows}) == 1, "every server lists as many entries"
    assert int(rows[0][5].replace(",", "")) > 100
    assert [row[4:] for row in rows[1:]] == [("0", "0"), ("0", "0")]
    assert leftovers() == before


def test_try_fails_with_a_program_that_cannot_do_it():
    before = leftovers()
    result = run_try(harness.STOCK, 200)
    assert result.code == 1, result.text
    assert leftovers() == before
