# SPDX-License-Identifier: GPL-3.0-or-later
"""bench/seeds on a small mirror: the disk is left alone for a list, and gives no more than the contents for an update."""
import collections
import json
import os
import sys
import xml.etree.ElementTree

import pytest

import harness

BENCH = os.path.join(harness.SOURCE, "bench", "seeds")


@pytest.fixture(scope="module")
def measured(workspace):
    """({job: {form: row}}, what was printed, the chart)"""
    rows, chart = os.path.join(workspace, "seeds.json"), os.path.join(workspace, "seeds.svg")
    result = harness.run(sys.executable, BENCH, "--files=400", f"--directory={workspace}", f"--json={rows}", f"--svg={chart}",
                         environment={"HUAI": harness.HUAI, "STOCK": harness.STOCK}, timeout=120)
    if result.stderr.startswith(b"this needs root and a loop device: "):
        pytest.skip(os.fsdecode(result.stderr).strip())
    assert result.stderr == b"" and result.code in (0, 1), result.text
    jobs = collections.defaultdict(dict)
    with open(rows) as file:
        for row in json.load(file)["rows"]:
            jobs[row["job"]][row["form"]] = row
    return jobs, os.fsdecode(result.stdout), chart


def test_dry_run_reads_nothing_from_an_attr_tree_or_a_snapshot(measured):
    reads = {form: (row["operations"], row["bytes"]) for form, row in measured[0]["dry run"].items()}
    assert reads["stock"][0] >= 10, "stock has to read the tree, or nothing is measured here"
    assert reads["attr tree"] == reads["snapshot"] == (0, 0)


def test_update_reads_what_cat_of_the_files_reads(measured):
    updates = [forms for job, forms in measured[0].items() if job.startswith(("update, ", "back, "))]
    assert len(updates) == 4
    for forms in updates:
        floor = forms["cat of these files"]["operations"]
        assert forms["stock"]["operations"] > floor > 0
        assert all(abs(forms[form]["operations"] - floor) <= 5 for form in ("attr tree", "snapshot")), forms


def test_report_has_every_figure(measured):
    jobs, printed, chart = measured
    text = "".join(xml.etree.ElementTree.parse(chart).getroot().itertext())
    for job, forms in jobs.items():
        assert job in text and f"| {job} |" in printed
        assert all(f"{row['operations']:,} reads" in text for row in forms.values())
