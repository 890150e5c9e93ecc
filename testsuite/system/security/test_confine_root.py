# SPDX-License-Identifier: GPL-3.0-or-later
"""--confine-root: where the paths of a side's options may lead."""
import os
import subprocess
import tempfile

import pytest

import harness
import trees


class Place:
    def __init__(self, top):
        self.top = top
        self.shell = harness.make_remote_shell(top)
        for directory in ("in/src", "in/dst", "in/own", "out"):
            os.makedirs(os.path.join(top, directory))
        for name in ("in/src/a", "in/src/b", "in/dst/b"):
            self.write(name, name)
        self.write("out/rules", "- a\n")
        self.write("in/own/rules", "- a\n")
        os.symlink(os.path.join(top, "out"), os.path.join(top, "in/src/away"))
        os.symlink("../own", os.path.join(top, "in/src/near"))

    def at(self, name):
        return os.path.join(self.top, name)

    def write(self, name, text):
        with open(self.at(name), "w") as file:
            file.write(text)

    def run(self, *words, source="in/src/", target="in/dst/", push=False):
        """A stock client; our server is confined to `in`."""
        there, here = ("", "x:") if push else ("x:", "")
        return harness.run(harness.STOCK, "-r", "-e", self.shell, f"--rsync-path={harness.HUAI}",
                           f"-M--confine-root={self.at('in')}", *words, there + self.at(source), here + self.at(target))


@pytest.fixture(name="place")
def make_place(tmp_path):
    return Place(str(tmp_path))


@pytest.mark.parametrize("list_text, code", [("a\n", 0), ("away/rules\n", 23)])
def test_names_of_a_list(place, list_text, code):
    place.write("list", list_text)
    result = place.run(f"--files-from={place.at('list')}")
    assert result.code == code
    assert os.path.exists(place.at("in/dst/a")) == (code == 0)
    assert not os.path.lexists(place.at("in/dst/away/rules"))


@pytest.mark.parametrize("directory, refused", [("out", True), ("in/own", False)])
def test_the_list_itself(place, directory, refused):
    place.write(f"{directory}/list", "a\n")
    result = place.run(f"--files-from=:{place.at(directory)}/list")
    assert (result.code != 0) == refused, result.text
    assert os.path.exists(place.at("in/dst/a")) != refused


@pytest.mark.parametrize("root, obeyed", [("in/src", False), ("in", True)])
def test_merge_files(place, root, obeyed):
    """One that lies above the source is looked for there, and is none if that is beside the root."""
    place.write("in/rules", "- a\n")
    assert place.run(f"--filter=dir-merge {place.at('in')}/rules", f"-M--confine-root={place.at(root)}").code == 0
    assert os.path.exists(place.at("in/dst/a")) != obeyed


@pytest.mark.parametrize("option, leftover", [
    ("-b --backup-dir={}/kept", "kept"), ("-b --backup-dir={}", "b"), ("--temp-dir={}", None), ("--partial-dir={}/part", "part"),
])
def test_directories_of_the_receiver(place, option, leftover):
    inside = place.run("-I", *option.format(place.at("in/own")).split(), push=True)
    assert inside.code == 0, inside.text
    place.write("in/dst/b", "old")
    outside = place.run("-I", *option.format(place.at("out")).split(), push=True)
    assert os.listdir(place.at("out")) == ["rules"]
    if leftover != "part":
        assert outside.code != 0
        with open(place.at("in/dst/b")) as file:
            assert file.read() == "old"


def test_alternate_destinations(place):
    os.link(place.at("in/src/a"), place.at("out/a"))
    result = place.run("-t", f"--link-dest={place.at('out')}", push=True)
    assert os.stat(place.at("in/dst/a")).st_ino != os.stat(place.at("out/a")).st_ino, result.text


@pytest.mark.parametrize("words, text", [
    (["--confine-root=in"], b"--confine-root must be an absolute path"),
    (["--confine-root=/x", "--insecure-links"], b"--insecure-links cannot be combined with --confine-root"),
])
def test_words_that_make_no_sense(place, words, text):
    results = [harness.run(program, *words, place.at("in/src/"), place.at("in/dst/"))
               for program in (harness.STOCK, harness.HUAI)]
    assert [result.code for result in results] == [1, 1] and all(text in result.stderr for result in results)


def test_it_is_not_forwarded(place):
    log = place.at("words")
    place.write("shell", f'#!/bin/sh\necho "$@" >{log}\nexit 3\n')
    os.chmod(place.at("shell"), 0o755)
    harness.run(harness.HUAI, "-r", "-e", place.at("shell"), f"--confine-root={place.top}", "x:src/", place.at("in/dst/"))
    with open(log) as file:
        assert "confine" not in file.read()


@pytest.mark.skipif(not trees.IS_ROOT, reason="becomes another user, who knows no root user in a namespace of his own")
@pytest.mark.parametrize("inside", [True, False])
def test_descriptors_of_proc_in_a_user_namespace(workspace, inside):
    top = tempfile.mkdtemp(dir=workspace)
    there = os.path.join(top, "in" if inside else "out")
    for name in ("in/src", "out"):
        os.makedirs(os.path.join(top, name))
    trees.write(os.path.join(top, "in/src/a"), b"a\n")
    subprocess.run(["chown", "-R", "65534:65534", top], check=True)
    os.chmod(top, 0o755)
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "-Ur"]
    if subprocess.run([*other, "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    words = [harness.HUAI, f"--confine-root={top}/in", "-r", "--temp-dir=/proc/self/fd/9", f"{top}/in/src/", f"{top}/in/dst"]
    result = harness.run(*other, "sh", "-c", 'exec "$@" 9<"$0"', there, *words)
    assert (result.code == 0) == inside, result.text
    assert os.path.exists(f"{top}/in/dst/a") == inside
