# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of doc/security.md: every item of the checklist is in it, and every test that it names is there."""
import glob
import os
import re

import pytest

import harness

TESTSUITE = os.path.join(harness.SOURCE, "testsuite")
# What no system test shows; the table says what does.
OTHERWISE = {"S-044", "S-045", "S-124", "S-128"}
SHORT = {"hostile": "test_hostile_*.py", "client": "test_security_client.py", "rest": "test_security_rest.py"}


def table():
    with open(os.path.join(harness.SOURCE, "doc", "security.md")) as file:
        return dict(re.findall(r"^\| (S-\d{3}) \| [^|]+ \| ([^|]+) \|$", file.read(), re.M))


def files(pattern):
    return glob.glob(os.path.join(TESTSUITE, "system", "**", pattern), recursive=True)


def text_of(pattern):
    return "".join(open(path).read() for path in files(pattern))


def functions(pattern):
    return set(re.findall(r"^def (test_\w+)", text_of(pattern), re.M))


def test_every_item_is_in_the_table():
    assert sorted(table()) == [f"S-{number:03}" for number in range(1, 131)]


@pytest.mark.parametrize("item", sorted(table()))
def test_the_tests_of_an_item_are_there(item):
    state, own = table()[item], item.lower().replace("-", "")
    named = 0
    for word, pattern in SHORT.items():
        if re.search(rf"(?:^|; |: |, ){word}(?=$|;| \(S-)", state.strip()):
            other = re.search(rf"{word} \(S-(\d+)\)", state)
            mark = f"s{other[1]}" if other else own
            assert any(mark in name for name in functions(pattern)) or f'"{mark}-' in text_of("hostile.py"), (word, state)
            named += 1
    for names in re.findall(r"unit: ([a-z_]\w*(?:, [a-z_]\w*)*)(?![\w.:])", state):
        for name in names.split(", "):
            if name not in SHORT:
                assert os.path.exists(os.path.join(TESTSUITE, "unit", f"test_{name}.c")), name
                named += 1
    for names in re.findall(r"fuzz: (\w+)", state):
        assert names == "all" or os.path.exists(os.path.join(TESTSUITE, "fuzz", f"fuzz_{names}.c")), names
        named += 1
    for file, names in re.findall(r"\b(test_\w+\.py)(?::((?: (?!system)[a-z]\w+(?: \([^)]*\))?,?)+))?", state):
        assert files(file), file
        for name in re.findall(r"[a-z]\w+(?= \(|,|$|(?= ))", re.sub(r"\([^)]*\)", "", names)):
            is_there = any(found.startswith(f"test_{name}") for found in functions(file))
            assert "tests" in names or name.startswith("test_") or is_there, (file, name)
        assert "tests" not in names or item in text_of(file), state
        named += 1
    for name in re.findall(r"\b(test_s\d[\w]*)\*?", state):
        assert any(found.startswith(name) for found in functions("test_security.py")), name
        named += 1
    assert named or item in OTHERWISE, state
