# SPDX-License-Identifier: GPL-3.0-or-later
"""Small cases of the receiving side in which only a comparison with stock shows what is right."""
import os
import subprocess

import pytest

import ends
import harness
import trees

TIME = 1_500_000_000


def put(path, text="text\n", mode=0o644):
    trees.write(path, text.encode(), mode, TIME * 10**9)


# --- listings ---

def make_two(top):
    os.mkdir(f"{top}/s")
    put(f"{top}/s/a")
    os.utime(f"{top}/s", (TIME, TIME))
    put(f"{top}/file")
    os.mkdir(f"{top}/t")


@pytest.mark.parametrize("way", ends.WAYS)
@pytest.mark.parametrize("options", ["--link-dest=none", "--copy-dest={top}/file --copy-dest={top}/t --copy-dest=../file"])
def test_listings_tell_of_missing_alternate_destinations(place, options, way):
    assert b"dest arg" in ends.assert_agree(place, make_two, f"-av --list-only {options}", way)[0].stderr


def test_server_writes_to_standard_error_after_the_header(place):
    make_two(place)
    command = [harness.HUAI, "-av", "--link-dest=none", "-e", harness.make_remote_shell(place), f"--rsync-path={harness.STOCK}"]
    result = subprocess.run([*command, f"{place}/s/", f"h:{place}/t"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env=harness.ENVIRONMENT)
    assert result.stdout.startswith(b"sending incremental file list\n--link-dest arg does not exist"), result.stdout


def test_run_from_a_directory_that_is_gone(place):
    make_two(place)
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    for words in (["../missing", f"{place}/t"], [f"{place}/s/", f"{place}/t"]):
        result = harness.run("sh", "-c", script, "sh", harness.HUAI, "-a", *words, cwd=place)
        assert result.code == (23 if "missing" in words[0] else 0), result.text
    assert os.listdir(f"{place}/t") == ["a"]
