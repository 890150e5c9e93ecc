# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for names of attributes (modifier x) in per-directory merge files: where stock's sender obeys them, so does ours."""
import os

import pytest

import ends
import trees

TIME = 1_300_000_000_000_000_000
HIDE, KEEP = "-x user.foo\n", "-x user.only-t\n"
# What stands in the merge files of the source, and of the destination.
FILES = {"top of both": ({".r": HIDE}, {".r": HIDE}), "top of source": ({".r": HIDE}, {}), "below in both": ({"d/.r": HIDE}, {"d/.r": HIDE}),
         "below in destination": ({}, {"d/.r": HIDE + KEEP}), "sides": ({".r": "-xr user.only-t\n-xs user.foo\n"}, {".r": KEEP})}
WORDS = ["-aXi", "-aXi --no-i-r --delete-after", "-aXi --delete --inplace -I"]


def attributes(path):
    return {name: os.getxattr(path, name, follow_symlinks=False) for name in sorted(os.listxattr(path, follow_symlinks=False))}


def make(files):
    def build(top):
        for side, rules in zip("st", files):
            for name in ("f", "d/g", "d/e/h", f"new-{side}"):
                os.makedirs(os.path.dirname(f"{top}/{side}/{name}"), exist_ok=True)
                trees.write(f"{top}/{side}/{name}", b"same", 0o644, TIME)
            for name in ("f", "d", "d/g", "d/e", "d/e/h", f"new-{side}"):
                for attribute in ("foo", f"only-{side}", "both"):
                    os.setxattr(f"{top}/{side}/{name}", f"user.{attribute}", side.encode() if attribute == "foo" else b"1")
            for name, text in rules.items():
                trees.write(f"{top}/{side}/{name}", text.encode(), 0o644, TIME)
            trees.set_directory_times(f"{top}/{side}", TIME)
    return build


def cases():
    for number, files in enumerate(FILES):
        for words in WORDS:
            for turn, way in enumerate(ends.WAYS):
                yield pytest.param(files, words, way, marks=[pytest.mark.core] if turn == number % 3 and words == WORDS[1] else [])


@pytest.mark.parametrize("files, words, way", cases())
def test_merged_rules_for_attributes_are_as_stocks(place, files, words, way):
    ends.assert_agree(place, make(FILES[files]), [*words.split(), "--filter=: .r", "--exclude=.r"], way, extra=attributes)
