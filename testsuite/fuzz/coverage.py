#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kept corpus of the fuzzing harnesses reaches: lines and branches, by room and in all, without the tests themselves.

Usage: coverage.py --corpus DIRECTORY [--corpus ...] --source DIRECTORY HARNESS...: the harnesses are built for clang's coverage
(configure --with-sanitizer=fuzz-coverage). Each runs once over DIRECTORY/TOPIC of fuzz_TOPIC.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile


def replay(harness, corpora, directory):
    """One harness over its corpus; the path of its profile, or None."""
    name = os.path.basename(harness)
    seeds = [path for path in (os.path.join(corpus, name.removeprefix("fuzz_")) for corpus in corpora) if os.path.isdir(path)]
    profile = os.path.join(directory, name + ".profraw")
    if not seeds:
        print(f"{name}: no corpus", file=sys.stderr)
        return None
    run = subprocess.run([harness, "-runs=0", "-timeout=120", f"-artifact_prefix={directory}/", *seeds], cwd=directory,
                         env={**os.environ, "LLVM_PROFILE_FILE": profile}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         check=False)
    if run.returncode:
        sys.exit(f"{name} failed:\n{run.stdout.decode(errors='replace')[-3000:]}")
    return profile


def measured(harnesses, corpora):
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        profiles = [path for path in pool.map(lambda harness: replay(os.path.abspath(harness), corpora, directory), harnesses) if path]
        merged = os.path.join(directory, "merged")
        subprocess.run(["llvm-profdata", "merge", "-sparse", "-o", merged, *profiles], check=True)
        objects = [argument for harness in harnesses[1:] for argument in ("-object", harness)]
        export = subprocess.run(["llvm-cov", "export", "-summary-only", "-instr-profile", merged, harnesses[0], *objects],
                                check=True, stdout=subprocess.PIPE)
    return json.loads(export.stdout)["data"][0]["files"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", action="append", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--files", action="store_true", help="each file, too")
    parser.add_argument("harness", nargs="+")
    options = parser.parse_args()
    rooms = collections.defaultdict(collections.Counter)
    source = os.path.realpath(options.source)
    for file in measured(options.harness, [os.path.abspath(corpus) for corpus in options.corpus]):
        path = os.path.relpath(os.path.realpath(file["filename"]), source)
        if path.startswith(("..", "testsuite/")):
            continue
        counts = {(kind, what): file["summary"][kind][what] for kind in ("lines", "branches") for what in ("covered", "count")}
        # At the top level a role is the first word of its files' names.
        rooms[path.split("/")[0] + "/" if "/" in path else path.split(".")[0].split("_")[0]].update(counts)
        rooms["in all"].update(counts)
        if options.files:
            print(f"{path:32} {counts['lines', 'covered']:6} of {counts['lines', 'count']:6} lines")
    print(f"{'room':12} {'lines':>24} {'branches':>24}")
    for room, counts in sorted(rooms.items(), key=lambda item: (item[0] == "in all", item[0])):
        cells = []
        for kind in ("lines", "branches"):
            covered, count = counts[kind, "covered"], counts[kind, "count"]
            cells.append(f"{covered:7} of {count:6} {100 * covered / max(count, 1):4.0f} %")
        print(f"{room:12} {cells[0]:>24} {cells[1]:>24}")


if __name__ == "__main__":
    main()
