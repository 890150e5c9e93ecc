#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The floor plan of the source: which room may use which, no circle between files, one header for each file.

Usage: layout_check.py [--write | --metrics | --circles] SOURCE_DIRECTORY

Prints every offence that testsuite/layout_known.txt does not list, and every line there that is no longer true: the list only
shrinks. --write removes such lines (and refuses to add any, but for offences that only a file's new name makes look new).
--metrics prints the figures of the source. --circles prints each circle with the functions that close it.

A function of a file is *used* by another file that names it. The offences are:

    up FILE FILE        a file uses, or includes, what belongs to a room that its own room does not stand on
    circle FILE         a file that uses itself by way of others
    header FILE NAME    an exported function that is not declared in the header with its file's name
    top FILE            a file that lies at the top level and is not the story of a role
    protocol FILE       a file outside of wire/ that compares a protocol number: struct session_caps (wire/session.h) has a name
                        for each difference. Allowed: to check against the range that is spoken, and to print the number
    alone FILE NAME     an exported function that no other file of the program uses: tests only, or nobody
    long FILE           a C file of more than 900 lines
    short FILE          a C file of less than 150 lines for which testsuite/layout_short.txt has no reason

The list also has a ceiling, which --write lowers: how many exported functions have one other file that uses them.
"""
import os
import re
import sys
from collections import defaultdict

# Lowest first. A room stands on the rooms of earlier lines, never on one of its own line.
FLOORS = (
    ("lib",),
    ("fs", "wire"),
    ("delta", "filter", "attrs"),
    ("ui",),
    ("options", "loadparm"),
    ("flist",),
    ("dest", "sender"),
    ("snapshot",),
    ("receiver",),
    ("contents",),
    ("server",),
    ("client", "daemon"),
    ("rsync",),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# One file per role may lie at the top level: it is part of the room of its name.
TOP = {"rsync", "options", "loadparm", "flist", "sender", "receiver", "snapshot", "client", "server", "daemon"}
KNOWN = "testsuite/layout_known.txt"
SHORT = "testsuite/layout_short.txt"
SHORTEST, LONGEST = 150, 900
CEILING = "most-with-one-user"

COMMENT_OR_STRING = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
DEFINITION = re.compile(r"^(?!static\b|typedef\b|#|\s|\}|\{)[\w \*]*?\b(\w+)\(([^;{}]|\n)*?\)\s*\n\{", re.M)
STATIC_DEFINITION = re.compile(r"^static\b[^;{}=]*?\b(\w+)\([^;{}]*?\)\s*\n\{", re.M)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
TAG = re.compile(r"\b(struct|enum|union)\s+\w+")
# The limits of the range may be compared with, anywhere.
RANGE = r"(?:PEER_)?PROTOCOL_(?:MIN|MAX)\b"
OPERATOR = r"\s*(?:[<>]=?|[!=]=)\s*"
COMPARISON = re.compile(rf"protocol\)?{OPERATOR}(?!{RANGE})[\dA-Z]|\b(?!{RANGE})[\dA-Z]\w*{OPERATOR}[\w.>-]*protocol\b")
WORD = re.compile(r"\b[A-Za-z_]\w*\b")


def room_of(path):
    """The room of a file; None for what stands beside the house."""
    directory, name = os.path.split(path)
    if directory:
        return directory if directory in FLOOR_OF else None
    stem = os.path.splitext(name)[0]
    return stem if stem in TOP else None


def sources(root):
    for directory in ("", *FLOOR_OF):
        where = os.path.join(root, directory)
        for name in sorted(os.listdir(where) if os.path.isdir(where) else ()):
            if name.endswith((".c", ".h")):
                yield os.path.join(directory, name)


class Source:
    """All files of the program: what each one defines, declares, includes and uses."""

    def __init__(self, root):
        self.raw, self.text, self.defined, self.owner = {}, {}, {}, {}
        for path in sources(root):
            with open(os.path.join(root, path), encoding="utf-8") as file:
                self.raw[path] = file.read()
            text = COMMENT_OR_STRING.sub(lambda m: '""' if m[0][0] in "\"'" else "\n" * m[0].count("\n"), self.raw[path])
            self.text[path] = TAG.sub(r"\1", ATTRIBUTE.sub("", text))
        for path, text in self.text.items():
            if path.endswith(".c"):
                self.defined[path] = {m[1] for m in DEFINITION.finditer(text)} - {"main"}
                self.owner.update(dict.fromkeys(self.defined[path], path))
        words = {path: set(WORD.findall(text)) for path, text in self.text.items()}
        self.declared = {path: words[path] & set(self.owner) for path in self.text if path.endswith(".h")}
        # uses[a][b]: the functions of b that a names.
        self.uses = {path: defaultdict(set) for path in self.defined}
        for path in self.defined:
            local = {m[1] for m in STATIC_DEFINITION.finditer(self.text[path])}
            for name in words[path] & set(self.owner) - local:
                if self.owner[name] != path:
                    self.uses[path][self.owner[name]].add(name)
        self.includes = {path: re.findall(r'^#include "([^"]+)"', raw, re.M) for path, raw in self.raw.items()}

    def circles(self):
        """The strongly connected components of more than one file (Tarjan)."""
        index, low, stack, on_stack, found = {}, {}, [], set(), []

        def visit(path):
            index[path] = low[path] = len(index)
            stack.append(path)
            on_stack.add(path)
            for other in sorted(self.uses[path]):
                if other not in index:
                    visit(other)
                    low[path] = min(low[path], low[other])
                elif other in on_stack:
                    low[path] = min(low[path], index[other])
            if low[path] == index[path]:
                circle = []
                while not circle or circle[-1] != path:
                    circle.append(stack.pop())
                    on_stack.discard(circle[-1])
                if len(circle) > 1:
                    found.append(sorted(circle))

        sys.setrecursionlimit(10000)
        for path in sorted(self.uses):
            if path not in index:
                visit(path)
        return sorted(found, key=lambda circle: (-len(circle), circle))

    def upward(self):
        for path in self.uses:
            for other, names in self.uses[path].items():
                if goes_up(path, other):
                    yield path, other, sorted(names)
        for path, headers in self.includes.items():
            for header in headers:
                if goes_up(path, header):
                    yield path, header, ["#include"]

    def misplaced(self):
        """Exported functions that the header of their file's name does not declare."""
        for path, names in self.defined.items():
            header = path[:-2] + ".h"
            for name in sorted(names - self.declared.get(header, set())):
                yield path, name

    def comparisons(self):
        """Where a protocol number is compared outside of wire/."""
        for path, text in self.text.items():
            if room_of(path) != "wire":
                yield from (path for _ in COMPARISON.finditer(text))

    def users(self):
        """How many other files use each exported function; a header that has it in a macro or an inline function counts as one."""
        count = dict.fromkeys(self.owner, 0)
        for others in self.uses.values():
            for names in others.values():
                for name in names:
                    count[name] += 1
        for path, names in self.declared.items():
            mentioned = WORD.findall(self.text[path])
            for name in names:
                count[name] += mentioned.count(name) > 1
        return count


def goes_up(path, other):
    room, target = room_of(path), room_of(other)
    return room and target and room != target and FLOOR_OF[target] >= FLOOR_OF[room]


def short_files_with_a_reason(root):
    """Lines of "FILE: reason"; of files that are not there or are not short any more the reason has to go."""
    with open(os.path.join(root, SHORT), encoding="utf-8") as file:
        return dict(line.strip().split(": ", 1) for line in file if line.strip() and not line.startswith("#"))


def lengths(source, reasons):
    for path in source.defined:
        lines = source.raw[path].count("\n")
        if lines > LONGEST:
            yield f"long {path}"
        if lines < SHORTEST and path not in reasons:
            yield f"short {path}"


def offences(source):
    found = {f"up {path} {other}" for path, other, _ in source.upward()}
    found |= {f"circle {path}" for circle in source.circles() for path in circle}
    found |= {f"header {path} {name}" for path, name in source.misplaced()}
    found |= {f"top {path}" for path in source.text if "/" not in path and os.path.splitext(path)[0] not in TOP}
    found |= {f"protocol {path}" for path in source.comparisons()}
    found |= {f"alone {source.owner[name]} {name}" for name, users in source.users().items() if users == 0}
    return found


def code_lines(text):
    return sum(1 for line in text.split("\n") if line.strip())


def metrics(source):
    """The figures of the house, as name and value."""
    files = [path for path in source.raw if path.endswith(".c")]
    lines = [source.raw[path].count("\n") for path in files]
    yield "C files at the top level", sum("/" not in path for path in files)
    yield "C files", len(files)
    yield "mean lines of a C file", sum(lines) // len(files)
    yield "C files under 150 lines", sum(n < 150 for n in lines)
    yield "C files over 900 lines", sum(n > 900 for n in lines)
    yield "circles between files", len(source.circles())
    yield "files in circles", sum(map(len, source.circles()))
    yield "uses and includes upward", len({(a, b) for a, b, _ in source.upward()})
    yield "exported functions", len(source.owner)
    users = list(source.users().values())
    yield "exported with one using file", users.count(1)
    yield "exported with none", users.count(0)
    yield "exported, declared elsewhere than in the file's header", len(list(source.misplaced()))
    yield "lines of code (no comments, no blank lines)", sum(code_lines(text) for text in source.text.values())
    yield "comparisons of a protocol number outside of wire/", len(list(source.comparisons()))


def print_circles(source):
    for circle in source.circles():
        print(f"{len(circle)} files: {' '.join(circle)}")
        for path in circle:
            for other in sorted(set(source.uses[path]) & set(circle)):
                print(f"    {path} -> {other}: {' '.join(sorted(source.uses[path][other]))}")
    for path, other, names in sorted(source.upward()):
        print(f"up {path} -> {other}: {' '.join(names)}")


def read_known(root):
    """The known offences, and the ceiling for exported functions with one user."""
    known, ceiling = set(), sys.maxsize
    with open(os.path.join(root, KNOWN), encoding="utf-8") as file:
        for line in map(str.strip, file):
            if line.startswith(CEILING):
                ceiling = int(line.split()[1])
            elif line and not line.startswith("#"):
                known.add(line)
    return known, ceiling


def main(arguments):
    root = next((word for word in arguments if not word.startswith("--")), ".")
    source = Source(root)
    if "--metrics" in arguments:
        for name, value in metrics(source):
            print(f"{value:7}  {name}")
        return 0
    if "--circles" in arguments:
        print_circles(source)
        return 0
    reasons = short_files_with_a_reason(root)
    found = offences(source) | set(lengths(source, reasons))
    one_user = list(source.users().values()).count(1)
    known, ceiling = read_known(root)
    if "--write" in arguments:
        if len(found) > len(known) and "--begin" not in arguments:
            print(f"{len(found)} offences, {len(known)} known: the list only shrinks")
            return 1
        with open(os.path.join(root, KNOWN), "w", encoding="utf-8") as file:
            file.write("# What does not follow the floor plan yet: see testsuite/layout_check.py. This list only shrinks.\n")
            file.writelines(line + "\n" for line in sorted(found | {f"{CEILING} {min(ceiling, one_user)}"}))
        return 0
    needless = [path for path in reasons if path not in source.raw or source.raw[path].count("\n") >= SHORTEST]
    for path in needless:
        print(f"{SHORT}: no longer a short file, take it out: {path}")
    for line in sorted(found - known):
        print(f"{line.split()[1]}: not in the floor plan: {line}")
    for line in sorted(known - found):
        print(f"{KNOWN}: no longer true, take it out (--write): {line}")
    if one_user > ceiling:
        print(f"{one_user} exported functions have one other file that uses them, not {ceiling}: {KNOWN}")
    print(f"{len(found - known)} new offences against the floor plan, {len(found)} known")
    return found != known or one_user > ceiling or bool(needless)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
