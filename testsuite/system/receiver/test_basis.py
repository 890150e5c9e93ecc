# SPDX-License-Identifier: GPL-3.0-or-later
"""A sender that names another basis than the one it was asked with, and pushes to our server that use other trees."""
import os
import sys

import pytest

import harness
import receiver
import test_alternates
import test_fuzzy
import test_prune
import trees

# A remote shell that changes bytes of what the server sends: PROXY_CHANGE is FROM:TO, in hexadecimal.
PROXY = """#!{python}
import os, subprocess, sys, threading
words = sys.argv[1:]
while words[0].startswith("-"):
    words.pop(0)
old, new = (bytes.fromhex(part) for part in os.environ["PROXY_CHANGE"].split(":"))
server = subprocess.Popen(["sh", "-c", " ".join(words[1:])], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def forward():
    while data := os.read(0, 65536):
        server.stdin.write(data)
        server.stdin.flush()
    server.stdin.close()
threading.Thread(target=forward, daemon=True).start()
while data := os.read(server.stdout.fileno(), 65536):
    if old in data:
        open(os.environ["PROXY_MARK"], "w").close()
        if os.environ.get("PROXY_REMOVE"):
            os.unlink(os.environ.pop("PROXY_REMOVE"))
    sys.stdout.buffer.write(data.replace(old, new))
    sys.stdout.buffer.flush()
os._exit(server.wait())
"""
DATA = trees.noise(30_000, 4)


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    trees.write(path, data)


@pytest.fixture
def lie(place):
    """A pull of `f-2` from a stock server, whose words are changed."""
    proxy = os.path.join(place, "proxy")
    put(proxy, PROXY.format(python=sys.executable).encode())
    os.chmod(proxy, 0o755)
    put(f"{place}/s/f-2", DATA[:10_000] + b"changed" + DATA[10_000:])
    put(f"{place}/secret", b"nobody may know of this\n" * 2000)

    def pull(change, *options, remove=""):
        result = harness.run(harness.HUAI, "-rt", "--protocol=30", *options, "-e", proxy, f"h:{place}/s/", "d/", cwd=place,
                             environment={"PROXY_CHANGE": change, "PROXY_MARK": f"{place}/mark", "PROXY_REMOVE": remove})
        assert os.path.exists(f"{place}/mark"), result.text
        return result

    return pull


@pytest.mark.core
@pytest.mark.parametrize("basis, text", [
    ("01", b"invalid basis_dir index: 1."), ("7f", b"invalid basis_dir index: 127."),
    ("83", b"refusing malicious fuzzy operation for f-2"), ("85", b"refusing malicious fuzzy operation for f-2"),
])
def test_basis_that_there_is_not(lie, place, basis, text):
    put(f"{place}/old/f-2", DATA)
    os.utime(f"{place}/old/f-2", (5, 5))
    result = lie(f"0c8800:0c88{basis}", "--link-dest=../old")
    assert result.code == 2 and text in result.stderr, result.text


def test_fuzzy_basis_of_an_alternate_that_there_is_not(lie, place):
    put(f"{place}/d/f-1", DATA)
    result = lie("00b88303:00b88403", "-y")
    assert result.code == 2 and b"invalid basis_dir index: 132." in result.stderr, result.text


@pytest.mark.parametrize("name", (b"f-0", b"../"))
def test_fuzzy_basis_of_another_name_is_not_opened(lie, place, name):
    put(f"{place}/d/f-1", DATA)
    put(f"{place}/d/f-0", b"secret" * 5_000)
    os.utime(f"{place}/d/f-0", (5, 5))
    result = lie(f"8303{b'f-1'.hex()}:8303{name.hex()}", "-y")
    assert result.code == 2 and b"got a block match with no basis file for f-2" in result.stderr, result.text
    assert sorted(os.listdir(f"{place}/d")) == ["f-0", "f-1"]


def test_a_basis_that_vanishes_after_it_was_chosen(lie, place):
    """The sender is right about it: the file is asked for once more, as a whole."""
    put(f"{place}/d/f-2", DATA)
    os.utime(f"{place}/d/f-2", (5, 5))
    result = lie("0c80:0c80", remove=f"{place}/d/f-2")
    assert result.code == 0, result.text
    with open(f"{place}/d/f-2", "rb") as got, open(f"{place}/s/f-2", "rb") as wanted:
        assert got.read() == wanted.read()


# --- pushes to our server ---

class Push(receiver.Site):
    """The same trees with the server that is under test at the other end."""

    def __init__(self, place, make, server):
        super().__init__(place, make)
        self.server = server

    def words(self, options, transport, protocol, path):
        return [*options, f"--protocol={protocol}", "-e", self.shell, f"--rsync-path={self.server}", "s/" + path]


JOBS = [
    (test_alternates.make_source, test_alternates.make_alternates, test_alternates.fill_destination, words, protocol)
    for words, protocol in (("-aii --link-dest=../old --link-dest=../older", 32), ("-avv --copy-dest=../old", 28),
                            ("-ai --compare-dest=../old", 30), ("-aic --link-dest=../old --delete", 31))
] + [
    (test_alternates.make_groups, test_alternates.make_group_alternates, None, words, protocol)
    for words, protocol in (("-aHi --link-dest=../old", 32), ("-aHii --copy-dest=../old", 29), ("-aH --link-dest=../old", 30))
] + [
    (test_fuzzy.make_source, None, test_fuzzy.fill, "-aiy --stats", 32),
    (test_prune.make_source, None, test_prune.fill, "-aim --delete --filter=P_l/", 32),
    (test_prune.make_source, None, test_prune.fill, "-avm --exclude=*.o", 29),
]


@pytest.mark.parametrize("make, prepare, fill, words, protocol", JOBS, ids=lambda value: value if isinstance(value, str) else "")
def test_pushes(place, make, prepare, fill, words, protocol):
    outcomes = []
    for server in harness.STOCK, harness.HUAI:
        top = os.path.join(place, os.path.basename(server))
        os.mkdir(top)
        with Push(top, make, server) as site:
            if prepare:
                prepare(top)
            outcome = receiver.run(site, harness.STOCK, words.split(), "push", protocol, before=fill, destination=f"h:{top}/d/",
                                   after=lambda: test_alternates.inodes(top) if prepare else None)
        text = [receiver.lines_of(stream.replace(top.encode(), b"TOP"), server)
                for stream in (outcome.result.stdout, outcome.result.stderr)]
        outcomes.append((outcome.result.code, text, outcome.extra, outcome.tree))
    assert outcomes[0][:3] == outcomes[1][:3]
    assert trees.differences(outcomes[0][3], outcomes[1][3]) == []
