# SPDX-License-Identifier: GPL-3.0-or-later
"""What --debug and -vv tell, beside stock's: the lines of one word, in stock's order where that does not depend on timing."""
import os
import shutil

import pytest

import harness
import printed


def write(path, text="x"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


@pytest.fixture(scope="module")
def doubles(workspace):
    """Two sources with names in common: files, directories, and one that is a file here and a directory there."""
    place = os.path.join(workspace, "doubles")
    for name in ("p/l/x", "p/z", "p/k", "p/r/a", "p/w/b", "q/z", "q/l/x", "q/k/n", "q/r/a", "q/r/b"):
        write(os.path.join(place, name))
    return place


WAYS = {
    "local": ["p/", "q/", "dest"],
    "pull": ["-e", "SHELL", "host:PLACE/p/", ":PLACE/q/", "dest"],
    "push": ["-e", "SHELL", "p/", "q/", "host:PLACE/dest"],
}


def said(program, place, options, way, word):
    """Lines with `word` of a run into an empty destination; a server is of the same kind."""
    shell = harness.make_remote_shell(place)
    shutil.rmtree(os.path.join(place, "dest"), ignore_errors=True)
    words = [text.replace("PLACE", place).replace("SHELL", shell) for text in WAYS[way]]
    far = [] if way == "local" else [f"--rsync-path={program}"]
    result = harness.run(program, *options, *far, *words, cwd=place)
    assert result.code == 0, result.text
    return [line for line in os.fsdecode(result.stdout).split("\n") if word in line]


@pytest.mark.core
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", ["-avv", "-avv --no-i-r", "-avv --protocol=28", "-avv --protocol=29", "-dvv"])
def test_names_given_twice(doubles, way, options):
    if way == "local" and "protocol" in options:
        pytest.skip("a local run has no protocol")
    expected, got = (said(program, doubles, options.split(), way, "duplicate") for program, _ in printed.PROGRAMS)
    assert expected
    # Stock's receiver and its generator read each further list on their own, and both tell of it.
    assert got == list(dict.fromkeys(expected)) if options == "-avv" else got == expected


def test_names_given_twice_come_first(doubles):
    result = harness.run(harness.HUAI, "-avv", "--no-i-r", "p/", "q/", "new", cwd=doubles)
    lines = os.fsdecode(result.stdout).split("\n")
    last = max(number for number, line in enumerate(lines) if "duplicate" in line)
    assert result.code == 0 and lines[last + 1] == "created directory new", result.text
    quiet = harness.run(harness.HUAI, "-avv", "--debug=dup0", "p/", "q/", "dest", cwd=doubles)
    assert quiet.code == 0 and b"duplicate" not in quiet.stdout, quiet.text
