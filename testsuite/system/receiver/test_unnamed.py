# SPDX-License-Identifier: GPL-3.0-or-later
"""Small new files have no name before they are complete; where the system does not let them be named they get temp names."""
import os
import shutil
import subprocess

import pytest

import harness
import trees

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


def traced(place, inject, *words):
    """Run the program with a system call that fails; its result and the calls."""
    trace = os.path.join(place, "trace")
    fault = ["-e", f"inject={inject}"] if inject else []
    result = harness.run("strace", "-f", "-e", "trace=linkat,renameat,renameat2", *fault, "-o", trace, harness.HUAI, *words)
    with open(trace) as file:
        return result, file.read()


@pytest.fixture
def source(place):
    source = os.path.join(place, "source")
    os.makedirs(os.path.join(source, "below"))
    for number in range(20):
        trees.write(os.path.join(source, "below", f"{number}"), trees.noise(number * 300, number), mode=0o4755 if number % 2 else 0o644,
                    owner=(1234, 2345) if trees.IS_ROOT else None)
    trees.write(os.path.join(source, "large"), bytes(3 << 20))
    trees.set_directory_times(source)
    return source


def words(place, source, way):
    if way == "local":
        return ["-a", source + "/"]
    return ["-a", "-e", harness.make_remote_shell(place), f"--rsync-path={harness.STOCK}", f"host:{source}/"]


@pytest.mark.core
@pytest.mark.parametrize("way", ["local", "pull"])
@pytest.mark.parametrize("fault, renames", [
    (None, [1]), ("linkat:error=EPERM", [21]), ("linkat:error=ENOENT", [21]), ("linkat:error=EEXIST:when=3", [2]),
    ("linkat:error=EXDEV:when=5", range(2, 21)),
])
def test_the_tree_is_the_same_whatever_a_link_comes_to(place, source, way, fault, renames):
    dest = os.path.join(place, "dest")
    result, calls = traced(place, fault, *words(place, source, way), dest + "/")
    assert result.code == 0 and not result.stderr, result.text
    assert trees.differences(trees.describe(source), trees.describe(dest)) == []
    # The large one has a temp name in any case.
    assert calls.count("renameat(") in renames


@pytest.mark.parametrize("options", ["--partial", "--delay-updates", "--partial-dir=.part", "--inplace"])
def test_what_may_have_to_be_kept_has_a_name(place, source, options):
    dest = os.path.join(place, "dest")
    result, calls = traced(place, None, "-a", options, source + "/", dest + "/")
    assert result.code == 0 and "linkat" not in calls, result.text
    assert trees.differences(trees.describe(source), trees.describe(dest)) == []


def test_a_directory_that_cannot_be_written_is_told_as_before(place, source):
    if not trees.IS_ROOT or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    ends = {}
    for name, program in ("ours", harness.HUAI), ("stock", harness.STOCK):
        dest = os.path.join(place, "dest")
        os.makedirs(os.path.join(dest, "below"), 0o755)
        subprocess.run(["chown", "65534:65534", dest], check=True)
        result = harness.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", program, "-r", "--exclude=*[13579]",
                             source + "/below", dest + "/")
        ends[name] = result.code, sum(b'mkstemp "' in line and b"Permission denied (13)" in line for line in result.stderr.split(b"\n"))
        shutil.rmtree(dest)
    assert ends["ours"] == ends["stock"] == (23, 10)
