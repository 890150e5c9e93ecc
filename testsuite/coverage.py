#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which part of each room the tests run: lines and branches, from the profiles of a build for clang's coverage (make coverage).

Usage: coverage.py --profiles DIRECTORY --program PROGRAM --tests WORDS [--files] SOURCE_DIRECTORY

Prints the figures, and keeps them with WORDS, which say what was run, in testsuite/coverage.txt, for the table of rooms in
doc/architecture.md (house_map.py). The profiles of all programs are read with PROGRAM's map of its functions, as it has all of
them. A process writes its counters while it runs, so sessions count that end in a sandbox, by a signal or below a chroot.
"""
import argparse
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from layout_check import FLOORS, room_of  # noqa: E402

KEPT = "testsuite/coverage.txt"
KINDS = ("lines", "branches")


def measured(program, profiles):
    with tempfile.TemporaryDirectory() as directory:
        merged = os.path.join(directory, "merged")
        subprocess.run(["llvm-profdata", "merge", "-sparse", "-o", merged, *profiles], check=True)
        export = subprocess.run(["llvm-cov", "export", "-summary-only", "-instr-profile", merged, program], check=True,
                                stdout=subprocess.PIPE)
    return json.loads(export.stdout)["data"][0]["files"]


def percent(counts, kind):
    return round(100 * counts[kind, "covered"] / max(counts[kind, "count"], 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiles", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--tests", required=True)
    parser.add_argument("--files", action="store_true", help="each file, too")
    parser.add_argument("source")
    options = parser.parse_args()
    rooms, source = collections.defaultdict(collections.Counter), os.path.realpath(options.source)
    for file in measured(options.program, glob.glob(os.path.join(options.profiles, "*.profraw"))):
        path = os.path.relpath(os.path.realpath(file["filename"]), source)
        room = room_of(path)
        if room:
            counts = {(kind, what): file["summary"][kind][what] for kind in KINDS for what in ("covered", "count")}
            rooms[room].update(counts)
            rooms["all"].update(counts)
            if options.files:
                print(f"{path:32} {percent(counts, 'lines'):4} % of lines {percent(counts, 'branches'):4} % of branches")
    with open(os.path.join(source, KEPT), "w", encoding="utf-8") as kept:
        kept.write("# Per cent of lines and of branches that tests have run, by room: testsuite/coverage.py, `make coverage`.\n"
                   f"tests: {options.tests}\n")
        for room in [*(room for floor in FLOORS for room in floor), "all"]:
            line = f"{room} {percent(rooms[room], 'lines')} {percent(rooms[room], 'branches')}"
            kept.write(line + "\n")
            print(line)


if __name__ == "__main__":
    main()
