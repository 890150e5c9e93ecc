# SPDX-License-Identifier: GPL-3.0-or-later
"""SIGVTALRM: how far a run is that shows no progress, when the file at hand is done."""
import os
import re
import signal
import subprocess
import time

import pytest

import harness

LINE = rb"\r +400,000  [34]\d% +[\d.]+[kM]B/s +\d:\d\d:\d\d \(xfr#1, to-chk=3/5\)\n"


@pytest.fixture(scope="module")
def source(workspace):
    top = os.path.join(workspace, "request")
    os.makedirs(os.path.join(top, "src"))
    for name, size in (("a", 400_000), ("b", 200_000), ("c", 400_000), ("d", 0)):
        with open(os.path.join(top, "src", name), "wb") as file:
            file.write(os.urandom(size))
    return top


def output_with_signal(top, way, *options):
    """Of a slow run that is sent the signal while its first file is on the way."""
    target = os.path.join(top, "dest")
    subprocess.run(["rm", "-rf", target], check=True)
    shell = harness.make_remote_shell(top)
    words = {"local": ["src/", "dest"], "pull": ["-e", shell, f"host:{top}/src/", "dest"],
             "push": ["-e", shell, "src/", f"host:{target}"]}[way]
    process = subprocess.Popen([harness.HUAI, "-a", "--bwlimit=2000", *options, *words], cwd=top, env=harness.ENVIRONMENT,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 20
    while not os.path.isdir(target):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGVTALRM)
    output = process.communicate(timeout=30)[0]
    assert process.returncode == 0, output
    return output


@pytest.mark.parametrize("way", ["local", "pull", "push"])
def test_one_line_with_the_name(source, way):
    output = output_with_signal(source, way)
    assert re.fullmatch(rb"a\n" + LINE, output), output


@pytest.mark.parametrize("options, lines", [
    ("-v --info=flist0,stats0", rb"created directory dest\n\./\na\n" + LINE + rb"b\nc\nd\n"), ("-q", b""),
    ("--out-format=%i", rb"created directory dest\ncd\+{9}\n>f\+{9}\n" + LINE + rb"(>f\+{9}\n){3}"),
    ("--out-format=%l", rb"\d+\n400000\na\n" + LINE + rb"200000\n400000\n0\n"),
])
def test_beside_other_output(source, options, lines):
    output = output_with_signal(source, "local", *options.split())
    assert re.fullmatch(lines, output), output
