# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages about what cannot be made or deleted: stock's lines, each stream in stock's order."""
import os
import re
import subprocess

import pytest

import harness
import printed

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs files that the one who runs it may not write")


def tree(place, *names):
    for name in names:
        path = os.path.join(place, name)
        os.makedirs(path if name.endswith("/") else os.path.dirname(path), exist_ok=True)
        if not name.endswith("/"):
            with open(path, "w") as file:
                file.write(name)


def output_of(place, program, options, way, who=()):
    """Both streams, and the exit code, of a run into a copy of old/."""
    subprocess.run(["rm", "-rf", "dest"], check=True, cwd=place)
    subprocess.run(["cp", "-a", "old", "dest"], check=True, cwd=place)
    operands = ["src/", "dest"] if way == "local" else ["-e", harness.make_remote_shell(place), f"host:{place}/src/", "dest"]
    result = harness.run(*who, program, *options.split(), *operands, cwd=place)
    streams = [re.sub(rb"\.\w{6}\" failed", b'.XXXXXX" failed', printed.plain(stream)).decode()
               for stream in (result.stdout, result.stderr)]
    streams[1] = re.sub(r" at \S+\(\d+\) \[.*\]", "", streams[1])
    return f"exit code {result.code}\n{streams[0]}-- errors\n{streams[1]}"


def compare(place, options, way, who=(), ordered=True):
    expected, got = (output_of(place, program, options, way, who) for program, _ in printed.PROGRAMS)
    if not ordered:
        expected, got = ("\n".join(sorted(text.split("\n"))) for text in (expected, got))
    report = printed.difference("output", expected.encode(), got.encode())
    if report:
        pytest.fail(report, pytrace=False)


@pytest.fixture
def in_the_way(place):
    """Where directories belong stand a file and a symlink."""
    tree(place, "src/d/f", "src/d/e/g", "src/l/", "src/top", "old/d", "old/extra")
    os.symlink("nowhere", os.path.join(place, "old/l"))
    return place


@pytest.mark.parametrize("way", ["local", "pull"])
@pytest.mark.parametrize("options", ["", "--delete", "--delete -n", "--delete-delay", "--delete-after", "--delete --no-i-r",
                                     "--delete --ignore-errors"])
def test_something_else_in_place_of_a_directory(in_the_way, options, way):
    compare(in_the_way, f"-a --ignore-existing {options}", way)


@as_root
@pytest.mark.parametrize("way", ["local", "pull"])
@pytest.mark.parametrize("options", ["-a --delete", "-av --delete-delay", "-a --delete-after", "-a --delete --ignore-errors"])
def test_unreadable_source_stops_deletions(place, options, way):
    tree(place, "src/a/x", "src/b/", "src/c/y", "old/a/", "old/b/", "old/c/")
    subprocess.run(["chown", "-R", "65534:65534", place], check=True)
    os.chmod(os.path.join(place, "src/a"), 0)
    compare(place, options, way, NOBODY, ordered=False)


@as_root
@pytest.mark.parametrize("way", ["local", "pull"])
@pytest.mark.parametrize("options", ["-rv", "-ri", "-av", "-r --stats"])
def test_unwritable_destination(place, options, way):
    tree(place, "src/a/b/c", "src/a/f", "old/a/")
    for name in ("old/a", "old"):
        os.chmod(os.path.join(place, name), 0o555)
    os.chmod(place, 0o777)
    compare(place, options, way, NOBODY, ordered=False)


@as_root
def test_temp_dir_that_cannot_be_written(place):
    tree(place, "src/f", "old/f", "tmp/")
    subprocess.run(["chown", "-R", "65534:65534", place], check=True)
    os.chmod(os.path.join(place, "tmp"), 0o555)
    compare(place, f"-rvI --temp-dir={place}/tmp", "local", NOBODY, ordered=False)


@pytest.mark.parametrize("options", ["-a", "-av -n", "-ab", "-ai --max-delete=1", "-av --debug=del3"])
def test_protected_names_far_below(place, options):
    tree(place, "src/", "old/a/b/c/d/z", "old/a/b/y", "old/a/b/c/x")
    compare(place, f"{options} --delete --exclude=z", "local")


@as_root
@pytest.mark.parametrize("way", ["local", "pull"])
@pytest.mark.parametrize("options", ["-a --delete", "-a --delete-before", "-a --delete-after", "-a --delete-delay", "-an --delete",
                                     "-a --delete --ignore-errors"])
def test_directory_that_cannot_be_read_to_be_deleted(place, options, way):
    """It counts as an error, and no more is deleted: what is in it is not known."""
    tree(place, "src/x/y/", "src/d/", "src/zz/", "old/gone/below/f", "old/x/y/surplus/", "old/x/gone/f", "old/d/surplus", "old/zz/old/")
    subprocess.run(["chown", "-R", "65534:65534", place], check=True)
    for name in ("gone", "x/gone", "zz"):
        os.chmod(os.path.join(place, "old", name), 0o700)
        subprocess.run(["chown", "-R", "0:0", os.path.join(place, "old", name)], check=True)
    left = []
    for program, _ in printed.PROGRAMS:
        text = output_of(place, program, options, way, NOBODY)
        assert text.startswith("exit code 23\n"), text
        assert f'opendir "{place}/dest/gone" failed: Permission denied' in text, text
        left.append(sorted(os.path.relpath(os.path.join(top, name), place) for top, dirs, names in os.walk(f"{place}/dest") for name in dirs + names))
    assert left[0] == left[1]
