# SPDX-License-Identifier: GPL-3.0-or-later
"""Directories that --files-from names, lists by their contents, or only implies, with and without --no-implied-dirs."""
import os

import pytest

import ends
import harness
import trees

LISTS = ["d/ d/e/z.log", "d/e/z.log d/", "d d/e/z.log", "d/e d/e/f/y", "d/e/f/y d/", "d/ d/e/f/y", "d/e/ d/e/z.log", "./ d/e/z.log",
         "d/./e/z.log d/", "d/e/f/y d/x"]
# Stock's receiver aborts below protocol 30 where a listed file's directory is not listed; ours makes it.
UNLISTED_BELOW_30 = {"d d/e/z.log", "d/e d/e/f/y", "d/e/f/y d/", "d/ d/e/f/y", "d/e/ d/e/z.log", "./ d/e/z.log", "d/./e/z.log d/",
                     "d/e/f/y d/x"}


def make(names, is_old):
    def build(top):
        for name in ("d/x", "d/e/z.log", "d/e/f/y", "d/g/v"):
            os.makedirs(os.path.dirname(f"{top}/s/{name}"), exist_ok=True)
            trees.write(f"{top}/s/{name}", name.encode(), 0o644, 1_300_000_000_000_000_000)
        for name in ("d", "d/e", "d/e/f"):
            os.chmod(f"{top}/s/{name}", 0o750)
        trees.set_directory_times(f"{top}/s", 1_300_000_000_000_000_000)
        os.makedirs(f"{top}/t/d/e/f" if is_old else f"{top}/t")
        for name in ("d", "d/e", "d/e/f") if is_old else ():
            os.chmod(f"{top}/t/{name}", 0o700)
        trees.set_directory_times(f"{top}/t", 1_200_000_000_000_000_000)
        trees.write(f"{top}/names", "\n".join(names.split()).encode())
    return build


def cases():
    for names in LISTS:
        for number, way in enumerate(ends.WAYS):
            for protocol in (32,) if way == "local" else (32, 29) if names not in UNLISTED_BELOW_30 else (32 - 2 * (number % 2),):
                yield pytest.param(names, way, protocol, marks=pytest.mark.core if names == LISTS[0] else [])


@pytest.mark.parametrize("names, way, protocol", cases())
def test_parents_that_are_listed_as_well_are_not_only_implied(place, names, way, protocol):
    is_old = protocol != 29 or way == "pull"
    ends.assert_agree(place, make(names, is_old), "-ai --no-implied-dirs --files-from={top}/names", way, protocol)


@pytest.mark.parametrize("way", ["pull", "push"])
def test_unlisted_parents_are_made_and_not_told(place, way):
    """Ours at both ends: where stock's receiver aborts."""
    result, out, _, tree = ends.run(place, make("d/e/z.log", False), "-ai --no-implied-dirs --files-from={top}/names", way, 29,
                                    harness.HUAI, harness.HUAI)
    assert result.code == 0, result.text
    assert [line.split(b" ")[-1] for line in out if line] == [b"d/e/z.log"]
    assert b"d/e/z.log" in tree and tree[b"d/e"]["mode"] == tree[b"d"]["mode"] == "0o40755"


# Names with "." components: which of them list the top directory as well, and which are cut.
SPELLINGS = ["./d/./e/", "./d/e/", "./d/./e", ".//d/./e", "././d/e/f", "./", ".", "/./d", "./d", "d/.", "d/./", "./.", "d/..", "./../d", "/./d/./e",
             "/d/./e/", "./d/./", "./d/.", "d//./e", "./d/././e/", "d/././e/", "./d/e/./", "./d/./e/./f", "./d/x", "././d/x", "d/./e/../x",
             "./d/../d/e", "d/./.", ".//d/x", "/.//./d/x", "d/.//./x", "./d/e/."]


def spelling_cases():
    everything = os.environ.get("HUAI_PAIRINGS") == "full"
    for number, name in enumerate(SPELLINGS):
        for turn, way in enumerate((*ends.WAYS, *(["operand"] if name[0] != "/" and ".." not in name else []))):
            for protocol in (32, 31, 30, 29, 27) if everything and way in ("pull", "push") else (32,):
                if everything or number == 0 or (number + turn) % 4 == 0:
                    yield name, way, protocol


@pytest.mark.parametrize("options", ["-ari", "-ai --no-implied-dirs"])
@pytest.mark.parametrize("name, way, protocol", list(spelling_cases()))
def test_spellings_of_a_name(place, name, way, protocol, options):
    if way != "operand":
        ends.assert_agree(place, make(name, True), f"{options} --files-from={{top}}/names", way, protocol)
    else:
        ends.assert_agree(place, make(name, True), options + " -R", "push", protocol, sources=(f"s/./{name}",))
