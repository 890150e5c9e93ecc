#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the table of rooms in doc/architecture.md, between its markers: from the tree, and from testsuite/coverage.txt.

    house_map.py SOURCE_DIRECTORY           write it anew
    house_map.py --check SOURCE_DIRECTORY   say whether it is current; numbers of files and lines may be a tenth off; and whether the
                                            functions that the page names, as `file.c`: `name()`, are defined there

What a room does is kept as it stands in the table. It stands on those rooms that it uses and that none of these stand on.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from layout_check import FLOORS, FLOOR_OF, Source, code_lines, room_of  # noqa: E402

MAP = "doc/architecture.md"
COVERAGE = "testsuite/coverage.txt"
BEGIN, END = "<!-- rooms: written by `make map` -->\n", "<!-- end of rooms -->\n"
HEAD = ("| room | what it does | stands on | files | lines of code | tests run |\n|---|---|---|--:|--:|---|\n")


def used_rooms(source):
    """The lower rooms that each room uses, by calls and by includes; what goes upward is for layout_check.py."""
    used = {room: set() for room in FLOOR_OF}
    for path in source.raw:
        room = room_of(path)
        if room:
            others = map(room_of, [*source.uses.get(path, ()), *source.includes[path]])
            used[room] |= {other for other in others if other and FLOOR_OF[other] < FLOOR_OF[room]}
    return used


def nearest(room, used):
    """Of the rooms that a room uses, those that no other one of them rests on."""
    def below(at, seen):
        for other in used[at] - seen:
            seen.add(other)
            below(other, seen)
        return seen
    covered = set().union(*(below(other, set()) for other in used[room]), set())
    return sorted(used[room] - covered, key=lambda other: (FLOOR_OF[other], other))


def coverage(root):
    """Per cent of lines and branches by room, and what was run."""
    figures, tests = {}, ""
    with open(os.path.join(root, COVERAGE), encoding="utf-8") as file:
        for line in file:
            if line.startswith("tests: "):
                tests = line[len("tests: "):].strip()
            elif not line.startswith("#"):
                room, lines, branches = line.split()
                figures[room] = f"{lines} %, {branches} %"
    return figures, tests


def names_of(room, source):
    own = f"`{room}.c`" if f"{room}.c" in source.raw else ""
    return " ".join(filter(None, [own, f"`{room}/`" if any(path.startswith(f"{room}/") for path in source.raw) else ""]))


def table_of(text):
    """What each room does, from the table as it stands."""
    rows = re.findall(r"^\| ((?:`[\w./]+` ?)+) \| (.*?) \|", text, re.M)
    return {re.search(r"`(\w+)", names)[1]: does for names, does in rows}


def table(root, does):
    source = Source(root)
    used, (figures, tests) = used_rooms(source), coverage(root)
    rows = [HEAD]
    for room in (room for floor in FLOORS for room in floor):
        own = [path for path in source.raw if room_of(path) == room]
        stands_on = ", ".join(f"`{other}`" for other in nearest(room, used))
        files = sum(path.endswith(".c") for path in own)
        lines = sum(code_lines(source.text[path]) for path in own)
        rows.append(f"| {names_of(room, source)} | {does.get(room, '')} | {stands_on} | {files} | {lines} | {figures.get(room, '')} |\n")
    total = sum(code_lines(text) for text in source.text.values())
    rows.append(f"| all | | | {len(source.defined)} | {total} | {figures.get('all', '')} |\n")
    rows.append(f"\nTests run so many per cent of the lines, and of the branches: {tests}.\n")
    return "".join(rows)


def are_near(old, new):
    """Equal but for numbers of files and lines, which may be a tenth off."""
    number = re.compile(r"(?<=\| )(\d+)(?= \|)")
    if number.sub("", old) != number.sub("", new):
        return False
    pairs = zip(map(int, number.findall(old)), map(int, number.findall(new)))
    return all(abs(a - b) <= max(2, b / 10) for a, b in pairs)


def misplaced(text, source):
    """Functions that the page looks for in the wrong file."""
    for path, name in re.findall(r"`([\w/]+\.c)`: `(\w+)\(\)`", text):
        if not re.search(rf"^\w[^\n;]*\b{name}\(", source.text.get(path, ""), re.M):
            yield f"{MAP}: {name}() is not defined in {path}"


def main(arguments):
    root = next((word for word in arguments if not word.startswith("--")), ".")
    with open(os.path.join(root, MAP), encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    new = table(root, table_of(old))
    if "--check" not in arguments:
        with open(os.path.join(root, MAP), "w", encoding="utf-8") as file:
            file.write(before + BEGIN + new + END + after)
        return 0
    wrong = list(misplaced(text, Source(root)))
    if not are_near(old, new):
        wrong += [f"{MAP}: the table of rooms is not current (make map): {line}"
                  for line in sorted(set(new.split("\n")) - set(old.split("\n")))]
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
