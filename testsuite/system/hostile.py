# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of hostile senders share: a destination that is watched, a module to write to, and lists that no program sends."""
import os
import re
import shutil

import pytest

import harness
import raw_client
import raw_sender
import trees
from raw_client import varint
from raw_sender import DIRECTORY, FILE, HLINK_FIRST, HLINKED, SYMLINK, TOP_DIR, entry
from test_security import end_in_log

IS_ROOT = os.geteuid() == 0
root_only = pytest.mark.skipif(not IS_ROOT, reason="only root may do what is refused here")
IDENTITY = "uid = root\ngid = root\n" if IS_ROOT else ""
PROTOCOL_ERROR, UNSUPPORTED, FILE_ERROR, STREAM_ERROR, MEMORY_ERROR, PARTIAL = 2, 4, 11, 12, 22, 23
IMPATIENCE = 10.0


class Site:
    """A destination, and beside it what may not be touched. A writable module for those that push."""

    def __init__(self, place):
        self.outside = os.path.join(place, "outside")
        self.target = os.path.join(place, "dest")
        os.mkdir(self.outside)
        os.mkdir(self.target)
        trees.write(f"{self.outside}/secret", b"of nobody's concern\n", mode=0o600)
        self.before = trees.describe(self.outside)
        self.names = sorted(os.listdir(place))
        self.place = place

    def path(self, name):
        return os.path.join(self.target, name)

    def pull(self, *options, **keywords):
        return raw_sender.pulled(*(options or ("-rlt",)), target=f"{self.target}/", **keywords)

    def is_unharmed(self):
        """Nothing around the destination has changed, and in it no temporary file is left."""
        assert sorted(os.listdir(self.place)) == self.names
        assert trees.describe(self.outside) == self.before
        for _, _, names in os.walk(self.target):
            assert not [name for name in names if re.fullmatch(r"\..+\.\w{6}", name)], names

    def refuses(self, outcome, code, words):
        assert outcome.code == code, outcome
        assert words in outcome.text, outcome
        assert outcome.seconds < IMPATIENCE, outcome
        self.is_unharmed()


@pytest.fixture
def site(workspace):
    """Always at the same place, so that one daemon can serve it."""
    place = os.path.join(workspace, "hostile")
    os.mkdir(place)
    yield Site(place)
    shutil.rmtree(place)


@pytest.fixture
def asked(site):
    """A pull that waits for the data of "f", of which there is an old form to build it from."""
    old = trees.noise(7000, 1)

    def start(*options, entries=(), basis=old, more=b""):
        if basis:
            trees.write(site.path("f"), basis)
        sender = site.pull(*(options or ["-rlt", "--no-whole-file"]))
        sender.list(entry(b".", DIRECTORY, flags=TOP_DIR, more=more), entry(b"f", size=7001, more=more), *entries)
        return sender, sender.wait_for_request()[0]

    return start


def finish(sender, contents=None):
    try:
        sender.serve(contents)
    except raw_client.Closed:
        pass
    return sender.end()


class Module:
    """The destination of a site, served to everybody who wants to write."""

    def __init__(self, daemon):
        self.daemon = daemon

    def push(self, *options, name="mod", **keywords):
        start = len(self.daemon.log())
        sender = raw_sender.pushing(self.daemon.port, name, *(options or ["-rlt"]), **keywords)
        sender.ask_log = lambda: end_in_log(self.daemon, start)
        return sender

    def run(self, *words, name="mod", path=""):
        return harness.run(harness.HUAI, *words, self.daemon.url(f"{name}/{path}"))


@pytest.fixture(scope="module")
def module(workspace):
    directory = os.path.join(workspace, "hostile-daemon")
    os.mkdir(directory)
    target = os.path.join(workspace, "hostile", "dest")
    common = f"path = {target}\nread only = no\n"
    config = f"""use chroot = no
{IDENTITY}[mod]
{common}munge symlinks = no
[munged]
{common}munge symlinks = yes
[inner]
path = {os.path.dirname(target)}/./dest
read only = no
munge symlinks = no
[hides]
{common}munge symlinks = no
exclude = /hidden
"""
    with harness.Daemon(harness.HUAI, config, directory) as daemon:
        yield Module(daemon)
    shutil.rmtree(directory)


def parents(name):
    parts = name.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


ESCAPES = b"\x1b[31mred\x9b0m\x07\x08"


def is_plain(text):
    return not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\udc80-\udc9f]", text.replace("\r", ""))


LONG = b"n" * 4094
LISTS = {
    # item and what is wrong: (options, entries, exit code, words)
    "s002-varint": ("-rlt", [entry(b"l", SYMLINK, target=b"") [:-1] + b"\xff" * 6], STREAM_ERROR, "Overflow in read_varint()"),
    "s006-long": ("-rlt", [entry(b"n" * 4096)], MEMORY_ERROR, "overflow: xflags="),
    "s006-negative": ("-rlt", [entry(b"n", length=-1)], MEMORY_ERROR, "overflow: xflags="),
    "s006-sum": ("-rlt", [entry(b"n" * 200), entry(LONG, prefix=200)], MEMORY_ERROR, "overflow: xflags="),
    "s007-prefix": ("-rlt", [entry(b"abc"), entry(b"d", prefix=4)], PROTOCOL_ERROR, "shares 4 bytes"),
    "s008-name": ("-rlt", [entry(b"a\0b")], PROTOCOL_ERROR, "NUL byte inside"),
    "s008-target": ("-rlt", [entry(b"l", SYMLINK, target=b"a\0b")], PROTOCOL_ERROR, "NUL byte inside"),
    "s009-none": ("-rlt", [entry(b"a", 0)], PROTOCOL_ERROR, "invalid file mode 00 for a"),
    "s009-type": ("-rlt", [entry(b"a", 0o170644)], PROTOCOL_ERROR, "invalid file mode 0170644 for a"),
    "s009-high": ("-rlt", [entry(b"a", 1 << 16 | FILE)], PROTOCOL_ERROR, "invalid file mode"),
    "s010-length": ("-rlt", [entry(b"a", size=-1)], UNSUPPORTED, "Offset underflow: file-length is negative"),
    "s011-nsec": ("-rlt", [entry(b"a", nsec=10**9)], PROTOCOL_ERROR, "modtime_nsec out of range"),
    "s011-nsec-negative": ("-rlt", [entry(b"a", nsec=-1)], PROTOCOL_ERROR, "modtime_nsec out of range"),
    "s012-empty": ("-rlt", [entry(b"l", SYMLINK, target=b"")], MEMORY_ERROR, "overflow: linkname_len=0"),
    "s012-negative": ("-rlt", [entry(b"l", SYMLINK, target=b"", target_length=-1)], MEMORY_ERROR, "overflow: linkname_len=-1"),
    "s012-long": ("-rlt", [entry(b"l", SYMLINK, target=b"t" * 4096)], MEMORY_ERROR, "overflow: linkname_len=4096"),
    "s013-unknown": ("-rltH", [entry(b"a", flags=HLINKED, link=5)], PROTOCOL_ERROR, "hard-link reference out of range: 5 (1)"),
    "s013-negative": ("-rltH", [entry(b"a", flags=HLINKED, link=-1)], PROTOCOL_ERROR, "hard-link reference out of range: -1 (1)"),
    "s013-itself": ("-rltH", [entry(b"a", flags=HLINKED, link=1)], PROTOCOL_ERROR, "hard-link reference out of range: 1 (1)"),
    "s013-undeclared": ("-rltH", [entry(b"a"), entry(b"b", flags=HLINKED, link=1)], PROTOCOL_ERROR, "hard-link reference"),
    "s013-directory": ("-rltH", [entry(b"a", DIRECTORY, flags=HLINKED | HLINK_FIRST)], PROTOCOL_ERROR, "hard-linked directory"),
    "s014-unasked": ("-rlt", [entry(b"a", flags=HLINKED | HLINK_FIRST)], PROTOCOL_ERROR, "Invalid flist flag: 1204"),
    "s014-checksum": ("-rltc", [entry(b"a", flags=HLINKED | HLINK_FIRST)], PROTOCOL_ERROR, "Invalid flist flag: 1204"),
    "s016-index": ("-rltA", [varint(9)], STREAM_ERROR, "recv_acl_index"),
    "s016-flags": ("-rltA", [varint(0) + b"\xff"], STREAM_ERROR, "recv_acl"),
    "s016-permission": ("-rltA", [varint(0) + b"\x01" + varint(8)], STREAM_ERROR, "value out of range: 8"),
    "s016-count": ("-rltA", [varint(0) + b"\x10" + varint(65537)], PROTOCOL_ERROR, "ACL count out of range"),
    "s016-negative": ("-rltA", [varint(0) + b"\x10" + varint(-1)], PROTOCOL_ERROR, "ACL count out of range"),
    "s017-index": ("-rltX", [varint(9)], STREAM_ERROR, "xattr"),
    "s017-count": ("-rltX", [varint(0) + varint(65537)], PROTOCOL_ERROR, "xattr"),
    "s017-nameless": ("-rltX", [varint(0) + varint(1) + varint(0) + varint(1)], PROTOCOL_ERROR, "xattr"),
    "s017-name": ("-rltX", [varint(0) + varint(1) + varint(4097) + varint(1)], PROTOCOL_ERROR, "xattr"),
    "s017-open": ("-rltX", [varint(0) + varint(1) + varint(6) + varint(1) + b"user.ax"], FILE_ERROR, "missing trailing \\0"),
    "s017-value": ("-rltX", [varint(0) + varint(1) + varint(7) + varint((128 << 20) + 1) + b"user.a\0"], PROTOCOL_ERROR, "xattr"),
}
