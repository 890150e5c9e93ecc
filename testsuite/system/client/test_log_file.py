# SPDX-License-Identifier: GPL-3.0-or-later
"""--log-file of a client: the lines that stock writes, for local runs, pulls and pushes."""
import os
import re

import pytest

import harness
import printed

JOBS = [
    "-a", "-av", "-ai", "-aii", "-aq", "-aqi", "-an", "-anv", "-ai --delete", "-an --delete", "-aH --stats",
    "-a --delete --log-file-format=%n", "-ai --log-file-format=%n", "-ai --delete --out-format=%n --log-file-format=%o:%n",
    "-a --log-file-format=", "-a --log-file-format=%n%L:%f:%l:%o:%m:%B:%M:%U:%G:%%:%h:%a:%P:%u:%i",
    "-av --no-i-r --info=flist2", "-a --out-format=%n -I", "-aq --stats",
]
CORE = ("-a", "-ai --delete", "-an")
# Another member of a hard-link group comes first in a pull.
JOBS_AND_WAYS = [
    *((job, way) for job in JOBS for way in ("local", "daemon-pull", "daemon-push") if "H" not in job or way != "daemon-pull"),
    *((job, way) for job in CORE for way in ("pull", "push")),
]


def logged(site, program, words, states):
    path = os.path.join(site.place, "log")
    if os.path.exists(path):
        os.remove(path)
    results = []
    for state in states:
        result = site.run(program, [f"--log-file={path}", *words[0]], words[1], state)
        results.append(f"exit code {result.code}\n".encode() + printed.plain(result.stdout) + printed.plain(result.stderr))
    with open(path, "rb") as file:
        return file.read(), b"".join(results)


@pytest.mark.parametrize("job, way", [pytest.param(job, way, marks=[pytest.mark.core] if job in CORE else [])
                                      for job, way in JOBS_AND_WAYS])
def test_log_is_the_one_that_stock_writes(site, job, way):
    states = ("none", "other", "same") if job in CORE else ("other",)
    expected, got = (logged(site, program, (job.split(), site.operands(way)), states) for program, _ in printed.PROGRAMS)
    assert re.fullmatch(rb"(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\d+\] [^\n]*\n)+", got[0]), got[0]
    report = printed.difference("log", printed.plain(expected[0]), printed.plain(got[0]))
    report += printed.difference("output", expected[1], got[1])
    if report:
        pytest.fail(report, pytrace=False)


@pytest.mark.parametrize("words", [
    ["--bogus", "src/", "dest"], ["-a", "host:src", "module::dest"], ["-a", "missing/", "dest"],
    ["-a", "--contimeout=5", "rsync://127.0.0.1:1/m/", "dest"],
])
def test_errors_are_logged(site, words):
    path = os.path.join(site.place, "log")
    logs = []
    for program, _ in printed.PROGRAMS:
        if os.path.exists(path):
            os.remove(path)
        result = site.run(program, [f"--log-file={path}"], words, "none")
        assert result.code
        with open(path, "rb") as file:
            logs.append([line for line in printed.plain(file.read()).split(b"\n") if b"rror" in line or b"failed" in line])
    assert logs[0] and len(logs[0]) == len(logs[1])
    # Which half of itself stock names is of no interest.
    role = re.compile(rb"\[\w+(=VERSION)?\]")
    assert [role.sub(b"", line) for line in logs[0]] == [role.sub(b"", line) for line in logs[1]]


@pytest.mark.parametrize("way", ("pull", "push"))
@pytest.mark.parametrize("options", ["-a", "-ai --delete", "-an", "-as", "-a -M--log-file-format=%n:%l:%o", "-a -M--log-file-format="])
def test_log_of_a_server(site, options, way):
    path = os.path.join(site.place, "log")
    logs = []
    for program, _ in printed.PROGRAMS:
        if os.path.exists(path):
            os.remove(path)
        words = [f"--rsync-path={program}", f"-M--log-file={path}", *options.split()]
        for state in ("none", "other"):
            result = site.run(harness.STOCK, words, site.operands(way), state)
            assert result.code == 0, result.text
        with open(path, "rb") as file:
            logs.append(printed.plain(file.read()))
    report = printed.difference("server's log", *logs)
    if report:
        pytest.fail(report, pytrace=False)


@pytest.mark.parametrize("options", [[], ["-q"]])
def test_log_that_cannot_be_opened_ends_nothing(site, options):
    expected, got = (site.run(program, ["-a", *options, "--log-file=/nonexistent/log"], ["src/", "dest"], "none")
                     for program, _ in printed.PROGRAMS)
    assert (got.code, got.stdout, got.stderr) == (expected.code, expected.stdout, expected.stderr)


def test_log_file_is_not_readable_by_more_than_the_umask_allows(site):
    path = os.path.join(site.place, "log-mode")
    old = os.umask(0)
    try:
        site.run(harness.HUAI, ["-a", f"--log-file={path}"], ["src/", "dest"], "none")
    finally:
        os.umask(old)
    assert os.stat(path).st_mode & 0o777 == 0o644
