# SPDX-License-Identifier: GPL-3.0-or-later
"""A sample of the faults of testsuite/faults: system calls and allocations that fail, one at a time. `make check-faults` runs many.

A number of faults is drawn by a seed from a few jobs of each kind; the places that once had a defect are among those of SPOTS.
"""
import io
import os
import re
import struct
import subprocess
import sys

import pytest

import harness

sys.path.append(os.path.join(harness.SOURCE, "testsuite", "faults"))

faults = pytest.importorskip("faults")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="the jobs keep owners"),
    pytest.mark.skipif(struct.calcsize("P") != 8, reason="the library takes words of 64 bits"),
]

# Jobs, calls and errors: the places of the job that make the call have this error once.
SPOTS = [
    ("local -aAXH --delete", "openat64", "EIO"), ("local -a --delete-before", "openat64", "EMFILE"), ("local -ai --delete", "fstatat64", "EIO"),
    ("shell-pull -aAXH --delete", "getxattr", "EIO"), ("daemon-push -a --partial-dir=.part", "realloc", "ENOMEM"),
    ("daemon-pull -az --no-W", "writev", "EIO"), ("shell-push -a --inplace --no-W", "malloc", "ENOMEM"),
]
MOST = 25
SAMPLE = int(os.environ.get("HUAI_FAULTS", "5"))
SAMPLED = ["local -a --delay-updates --delete", "shell-pull -ab --backup-dir=.kept --delete --exclude=.kept", "daemon-push -a --remove-source-files",
           "daemon-pull -a --link-dest=../basis --delete", "batch", "attr tree", "snapshot", "shell-push ours/stock -ai --delete"]


@pytest.fixture(scope="module")
def library(workspace):
    if "Sanitizer" in os.environ.get("LD_PRELOAD", "") or is_sanitized(harness.HUAI):
        pytest.skip("a sanitizer has its own allocator; make check-faults knows it")
    try:
        return faults.build_library(workspace)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no compiler")


def is_sanitized(program):
    with open(program, "rb") as file:
        return re.search(rb"__[at]san_init|__ubsan_handle", file.read()) is not None


@pytest.fixture
def site(place, library):
    site = faults.Site(place, harness.HUAI, library)
    yield site
    site.close()


def check(site, name, choose):
    campaign = faults.Campaign(faults.arguments_of(["--program", harness.HUAI]), io.StringIO())
    trial = faults.Trial(site, faults.jobs.find(name))
    for fault in choose([fault for _, fault in trial.faults(faults.random.Random(name))]):
        campaign.try_one(trial, fault)
    assert not campaign.found, campaign.out.getvalue()
    return campaign.runs


@pytest.mark.parametrize("name, call, error", SPOTS)
def test_every_place_that_makes_a_call(site, name, call, error):
    assert check(site, name, lambda all_of_them: [f for f in all_of_them if (f.call, f.error, f.sticky) == (call, error, False)][:MOST])


def test_no_operand_is_lost_without_memory(site):
    """Each call counts here, not each place: popt makes several in one of ours, and goes on without the operands."""
    name = "daemon-pull stock/ours -ab --backup-dir=.kept --delete --exclude=.kept"
    assert check(site, name, lambda _: [faults.Fault("calloc", nth, "ENOMEM") for nth in range(10, 20)]) == 10


@pytest.mark.parametrize("name", SAMPLED)
def test_a_sample_of_faults(site, name):
    assert check(site, name, lambda all_of_them: faults.random.Random(name).sample(all_of_them, SAMPLE))


def test_a_fault_is_seen(site):
    """What the judge would say of a program that swallowed an error: a file that did not come, with exit code 0."""
    trial = faults.Trial(site, faults.jobs.find("local -a"))
    after = faults.jobs.describe(site.template)
    assert any("dst/d/new: missing" in line for line in trial.judge.tree(after, 0, "openat64"))
    assert not list(trial.judge.tree(after, 23, "openat64"))
    del after["dst/same"]
    after["dst/.big.AbCdEf"] = after["dst/changed"]
    assert list(trial.judge.tree(after, 23, "openat64")) == ["dst/.big.AbCdEf: left behind (1170 bytes)", "dst/same: lost"]
