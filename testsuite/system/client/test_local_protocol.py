# SPDX-License-Identifier: GPL-3.0-or-later
"""A local run that needs the protocol (a delta, compression, a digest by name) looks like one to users, too: as stock's."""
import os

import pytest

import harness
import local_jobs

JOBS = """
-av --no-W src/ dst/
-avi --no-W --delete src/ dst/
-avvi --no-W src/ dst/
-avv --no-whole-file src/ dst/
-aH --no-W -vi src/ dst/
-ai --no-W --stats src dst/
-a --no-W --inplace -vi src/ dst/
-rtv --info=nonreg0 --no-W src/ dst/
-av --no-W --files-from=names src/ dst/
-avn --no-W src/ dst/
-a --no-W -v nothere src/ dst/
-avc --no-W --delete-before src/ dst/
-av --no-W --delete-after --exclude=*e* src/ dst/
-avi --no-W --protocol=30 -H src/ dst/
-avi --no-W --protocol=29 src/ dst/
-avz --stats src/ dst/
-az --zc=zlib -v src/ dst/
-ac --cc=xxh64 -v src/ dst/
-a -B 700 --no-W --stats src/ dst/
-a --no-W src/f newname
-av --no-W src/f src/big dst
-avR --no-W ./src/d/ dst
-a --no-W -q src/ dst/
-a --no-W --chmod=g+w -vi src/ dst/
-a --no-W --max-delete=1 --delete -v src/ dst/
-av --no-W --debug=deltasum src/ dst/
-a --no-compress -v src/ dst/
--no-W src/f
-av --no-W --mkpath src/ a/b/c
-av --no-W src/ a/b/c
""".strip().split("\n")
CORE = {JOBS[1], JOBS[4]}


@pytest.mark.parametrize("line", [pytest.param(line, marks=[pytest.mark.core] if line in CORE else []) for line in JOBS])
def test_local_run_by_the_protocol_is_as_stocks(place, line):
    top = os.path.join(place, "work")
    stock, ours = (local_jobs.outcome(program, top, line.split(), deletes="--delete" in line)
                   for program in (harness.STOCK, harness.HUAI))
    assert ours == stock


def test_blocks_are_looked_for_only_where_asked(place):
    local_jobs.make_trees(place)
    copies = {}
    for words in (["--no-W"], ["-z"]):
        result = harness.run(harness.HUAI, "-a", *words, "--stats", f"{place}/src/", f"{place}/copy{len(copies)}/")
        assert result.code == 0, result.text
        os.utime(f"{place}/copy{len(copies)}/big", (1, 1))
        result = harness.run(harness.HUAI, "-a", *words, "--stats", f"{place}/src/", f"{place}/copy{len(copies)}/")
        copies[words[0]] = b"Matched data: 200,000 bytes" in result.stdout
    assert copies == {"--no-W": True, "-z": False}


def test_what_a_pull_cannot_do_is_refused(place):
    local_jobs.make_trees(place)
    result = harness.run(harness.HUAI, "-a", "--no-W", f"--attr-snapshot={place}/file", "--attr-refresh=dirs", f"{place}/src/")
    assert result.code == 4 and b"--no-W and --attr-refresh together are not supported" in result.stderr, result.text
