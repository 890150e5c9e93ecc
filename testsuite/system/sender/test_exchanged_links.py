# SPDX-License-Identifier: GPL-3.0-or-later
"""Symlinks on the way of operands and of list entries that are exchanged while a sender is at work: every place that opens something
asks anew where it leads to (doc/protocol/09-since-3.5.0.md sections 6.2 and 6.3.6). The calls themselves:
testsuite/unit/test_fs_anchors.c."""
import ctypes
import os
import struct
import threading

import pytest

import harness
import raw_client
import trees

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes links of another user")
STRANGER = 65534
AT_FDCWD, RENAME_EXCHANGE = -100, 2
libc = ctypes.CDLL(None, use_errno=True)


def exchange(a, b):
    assert libc.renameat2(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), RENAME_EXCHANGE) == 0, os.strerror(ctypes.get_errno())


def make(top, owner=0):
    """way -> one, and other -> out, which is exchanged with it; both hold the same names."""
    for name in ("one", "two", "out"):
        for part in ("x/f", "x/g", "x/y/h"):
            os.makedirs(os.path.dirname(f"{top}/{name}/{part}"), exist_ok=True)
            trees.write(f"{top}/{name}/{part}", name.encode(), 0o644, 1_300_000_000_000_000_000)
    for link, target in (("way", "one"), ("second", "two"), ("other", "out")):
        os.symlink(target, f"{top}/{link}")
    os.lchown(f"{top}/other", owner, owner)


def operands(top):
    return ["-R"], [f"{top}/./way/x/f", f"{top}/./second/x/f"], "way/x/f", "second/x/f"


def directories(top):
    return ["-rR"], [f"{top}/./way/x/", f"{top}/./second/x/"], "way/x/f", "second/x/f"


def many_bases(top):
    """More than are held open: the first one is opened again."""
    for number in range(40):
        os.makedirs(f"{top}/more/{number}")
        trees.write(f"{top}/more/{number}/f{number}", b"two")
    return ["-r"], [f"{top}/way/x/y/"] + [f"{top}/more/{number}/" for number in range(40)], "h", "f39"


def entries(top):
    trees.write(f"{top}/list", b"way/x/f\nsecond/x/f\n")
    return ["-R", f"--files-from={top}/list"], [f"{top}/"], "way/x/f", "second/x/f"


def listed_directories(top):
    trees.write(f"{top}/list", b"way/x/\nsecond/x/\n")
    return ["-rR", f"--files-from={top}/list"], [f"{top}/"], "way/x/f", "second/x/f"


def plain_entries(top):
    trees.write(f"{top}/list", b"way/x/f\nsecond/x/g\n")
    return [f"--files-from={top}/list", "--no-R"], [f"{top}/"], "f", "g"


@needs_root
@pytest.mark.parametrize("way", [operands, directories, many_bases, entries, listed_directories, plain_entries])
@pytest.mark.parametrize("place_of_use", ["open", "remove"])
def test_link_exchanged_after_the_list(place, way, place_of_use):
    """What it leads to now is neither sent nor removed, and the other operand is served."""
    top = f"{place}/top"
    os.mkdir(top)
    make(top, STRANGER if "list" in way.__name__ or "entries" in way.__name__ else 0)
    options, paths, name, other = way(top)
    with raw_client.over_shell(harness.HUAI, [*options, "--remove-source-files"], paths, environment=harness.ENVIRONMENT) as client:
        client.send_rules()
        found = client.read_list()
        client.request(found[other])
        client.read_reply()
        assert client.read_content()[1] == b"two"
        if way is plain_entries:
            # Its base is held open until it is not any more: what was listed is what is sent.
            exchange(f"{top}/way", f"{top}/other")
            client.request(found[name])
            client.read_reply()
            assert client.read_content()[1] == b"one"
            assert client.say_done().code == 0
            return
        exchange(f"{top}/way", f"{top}/other")
        if place_of_use == "open":
            client.request(found[name])
        else:
            client.message(raw_client.MSG_SUCCESS, struct.pack("<i", found[name].ndx))
        outcome = client.say_done()
    assert outcome.code == 23 and "Too many levels of symbolic links" in outcome.text, outcome
    assert ("failed to open" if place_of_use == "open" else "failed to secure-open-parent") in outcome.text, outcome
    assert os.path.exists(f"{top}/out/x/f") and os.path.exists(f"{top}/one/x/f")


# --- while it is exchanged all the time ---

PLACES = {
    "scan": "-r", "checksum": "-rc", "xattrs": "-rX", "ACLs": "-rA", "removal": "-r --remove-source-files", "hard links": "-rH",
    "implied directories": "-rpR --no-recursive", "no implied directories": "-rR --no-implied-dirs", "merge files": "-rF",
    "whole list": "-r --no-inc-recursive", "without --relative": "-r --no-R", "a protocol": "-r --iconv=utf-8,iso-8859-1",
}


def mark(top):
    """Everything in `out` differs from what is in `one`."""
    for name in ("one", "out"):
        for directory, _, files in os.walk(f"{top}/{name}"):
            for path in (directory, *(os.path.join(directory, file) for file in files)):
                os.setxattr(path, "user.side", name.encode())
                os.chown(path, 1000 if name == "out" else 0, 0)
                os.chmod(path, (0o710 if name == "out" else 0o755) if path == directory else 0o604 if name == "out" else 0o644)
        trees.write(f"{top}/{name}/x/only-{name}", name.encode())
        os.link(f"{top}/{name}/x/f", f"{top}/{name}/x/linked")


def assert_nothing_of_the_other_side(destination):
    for directory, _, files in os.walk(destination):
        assert "only-out" not in files
        for path in (directory, *(os.path.join(directory, file) for file in files)):
            assert os.lstat(path).st_mode & 0o7777 not in (0o710, 0o604), path
            if "user.side" in os.listxattr(path):
                assert os.getxattr(path, "user.side") == b"one", path
        for file in files:
            with open(os.path.join(directory, file), "rb") as content:
                assert content.read() in (b"one", b""), file


class Exchanger:
    """A thread that exchanges two names as long as the block lasts."""

    def __init__(self, a, b):
        self.names, self.stopped = (a, b), threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.stopped.is_set():
            exchange(*self.names)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *exception):
        self.stopped.set()
        self.thread.join()


@needs_root
@pytest.mark.parametrize("kind", ["a stranger's link", "out of the confining root"])
@pytest.mark.parametrize("use", PLACES)
def test_link_of_a_list_entry_exchanged_all_the_time(place, use, kind):
    """Every run may fail, but none brings anything of the other side, or removes it."""
    top = f"{place}/top"
    os.mkdir(top)
    os.chmod(top, 0o755)
    make(top, STRANGER if "stranger" in kind else 0)
    mark(top)
    confine = [] if "stranger" in kind else [f"--confine-root={top}/one"]
    names = "way/x/f\nway/x/g\nway/x/y/h\n" if use == "implied directories" else "way/x/\nway/x/y/\n"
    trees.write(f"{top}/list", names.encode())
    base = [f"--files-from={top}/list", f"{top}/"]
    for number in range(12):
        destination = f"{place}/dst{number}"
        os.mkdir(destination)
        with Exchanger(f"{top}/way", f"{top}/other"):
            result = harness.run(harness.HUAI, *PLACES[use].split(), "-p", *confine, *base, f"{destination}/")
        assert result.code in (0, 23, 24), result
        assert result.code in (0, 23, 24), result
        assert_nothing_of_the_other_side(destination)
        assert os.path.exists(f"{top}/out/x/f") and os.path.exists(f"{top}/out/x/y/h") and os.path.exists(f"{top}/out/x/only-out")
        if use == "removal":
            trees.write(f"{top}/one/x/f", b"one")
            trees.write(f"{top}/one/x/g", b"one")
