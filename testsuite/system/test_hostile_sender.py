# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hostile sender may say, and what a client that pulls and a server that receives make of it. Each test is named by its
item of protocol/08 section 10; doc/security.md has the whole list."""
import os
import re
import shutil
import struct
import time
import zlib

import pytest

import harness
import raw_client
import raw_sender
import trees
from raw_client import INT_MAX, INT_MIN, ITEM_TRANSFER, varint
from raw_sender import (CHARACTER, DIRECTORY, FIFO, FILE, HLINK_FIRST, HLINKED, INC_RECURSE, ROOT, SAFE_FLIST, SYMLINK,
                        TOP_DIR, entry, literal)
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


# --- lists: decoding and memory ---

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


@pytest.mark.core
@pytest.mark.parametrize("name", LISTS)
def test_lists_that_no_program_sends(site, name):
    options, entries, code, words = LISTS[name]
    if name.startswith(("s016", "s017")):
        entries = [entry(b".", DIRECTORY, flags=TOP_DIR, more=entries[0])]
    else:
        entries = [ROOT, *entries]
    with site.pull(options) as sender:
        site.refuses(sender.behave(*entries), code, words)
    assert os.listdir(site.target) == []


def test_s001_first_entries_without_one(site):
    """Fields that an entry takes from the one before, when there is none."""
    with site.pull() as sender:
        site.refuses(sender.behave(entry(b"a", prefix=1)), PROTOCOL_ERROR, "shares 1 bytes")


def test_s006_s012_the_longest_there_may_be(site):
    deep = b"/".join([b"d" * 254] * 16)
    entries = [entry(deep[:255 * depth - 1], DIRECTORY) for depth in range(1, 17)]
    with site.pull() as sender:
        outcome = sender.behave(ROOT, *entries, entry(b"l", SYMLINK, target=b"t" * 4095))
    assert outcome.code in (0, PARTIAL), outcome
    assert len(os.readlink(site.path("l"))) == 4095
    site.is_unharmed()


@pytest.mark.parametrize("mtime", [-2**63, 2**63 - 1])
def test_s011_times_without_a_calendar(site, mtime):
    with site.pull("-rltiv") as sender:
        outcome = sender.behave(ROOT, entry(b"a", DIRECTORY, mtime=mtime))
    assert outcome.code in (0, PARTIAL), outcome
    with raw_sender.pulled("-r", target=None) as sender:
        sender.list(ROOT, entry(b"a", mtime=mtime))
        try:
            sender.serve()
        except raw_client.Closed:
            pass
        outcome = sender.end()
    assert outcome.code in (0, PARTIAL) and " a\n" in outcome.text, outcome


def test_s010_the_longest_file_is_not_made_in_advance(site):
    with site.pull("-rlt", "--preallocate") as sender:
        outcome = sender.behave(ROOT, entry(b"a", size=2**63 - 1), contents={1: b"short"})
    assert outcome.code == FILE_ERROR and "write failed on" in outcome.text, outcome
    assert os.listdir(site.target) == []
    site.is_unharmed()


def test_s014_kinds_that_were_not_asked_for(site):
    with site.pull("-rt") as sender:
        outcome = sender.behave(ROOT, entry(b"f", size=1), entry(b"l", SYMLINK), entry(b"p", FIFO), entry(b"c", CHARACTER),
                                contents={2: b"x"})
    assert outcome.code == 0, outcome
    assert os.listdir(site.target) == ["f"]


@root_only
@pytest.mark.parametrize("numeric", [[], ["--numeric-ids"]])
def test_s015_the_owner_that_means_nobody(site, numeric):
    ids = varint(-1) + varint(-1)
    with site.pull("-rltog", *numeric) as sender:
        sender.list(entry(b".", DIRECTORY, flags=TOP_DIR, owner=varint(0) + varint(0)), entry(b"f", size=0, owner=ids),
                    after=b"" if numeric else b"\0\0")
        try:
            sender.serve()
        except raw_client.Closed:
            pass
        outcome = sender.end()
    assert outcome.code in (0, PARTIAL), outcome
    assert os.stat(site.path("f")).st_uid == os.geteuid()


# --- names ---

@pytest.mark.core
@pytest.mark.parametrize("name, code, words", [
    (b"../x", UNSUPPORTED, "unsafe pathname from sender: ../x"), (b"a/../b", UNSUPPORTED, "unsafe pathname"),
    (b"..", UNSUPPORTED, "unsafe pathname"), (b"/x", UNSUPPORTED, "unsafe pathname"), (b"a/..", UNSUPPORTED, "unsafe pathname"),
    (b"", PROTOCOL_ERROR, "empty file-list name"), (b".", PROTOCOL_ERROR, "rejecting non-directory transfer-root entry: ."),
    (b"./", PROTOCOL_ERROR, "rejecting non-directory transfer-root entry"),
])
@pytest.mark.parametrize("way", ["pull", "push"])
def test_s067_names_that_lead_elsewhere(site, module, way, name, code, words):
    with site.pull() if way == "pull" else module.push() as sender:
        site.refuses(sender.behave(ROOT, entry(name)), code, words)


def test_s067_absolute_names_with_relative_stay_below(site):
    with site.pull("-rltR", "--trust-sender", source="mod/x") as sender:
        outcome = sender.behave(entry(site.outside.encode() + b"/new", size=1), contents={0: b"x"})
    assert outcome.code in (0, PROTOCOL_ERROR, PARTIAL), outcome
    site.is_unharmed()


@pytest.mark.core
@pytest.mark.parametrize("entries", [
    [entry(b"l", SYMLINK, target=b"../outside"), entry(b"l/new", size=1)],
    [entry(b"x"), entry(b"x/y")],
    [entry(b"l", SYMLINK, target=b"../outside"), entry(b"l", DIRECTORY), entry(b"l/new", size=1)],
    [entry(b"l", DIRECTORY), entry(b"l/new", size=1), entry(b"l", SYMLINK, target=b"../outside")],
    [entry(b"l", DIRECTORY), entry(b"l", SYMLINK, target=b"../outside"), entry(b"l/new", size=1)],
    [entry(b"q/r/s", size=1)],
], ids=["link", "file", "link-first", "link-last", "link-between", "none"])
@pytest.mark.parametrize("way", ["pull", "push"])
def test_s069_parents_that_are_none(site, module, way, entries):
    with site.pull("-rlt") if way == "pull" else module.push("-rltK") as sender:
        outcome = sender.behave(ROOT, *entries, contents=dict.fromkeys(range(4), b"x"))
    assert outcome.code in (0, PROTOCOL_ERROR, PARTIAL), outcome
    assert not os.path.exists(f"{site.outside}/new")
    site.is_unharmed()


@pytest.mark.core
@pytest.mark.parametrize("options", ["-rlt", "-rltK"])
@pytest.mark.parametrize("way", ["pull", "push"])
def test_s069_a_planted_link_is_no_directory(site, module, way, options):
    """The destination has a link where the list has a directory."""
    os.symlink(site.outside, site.path("l"))
    os.symlink("../outside", site.path("m"))
    with site.pull(options) if way == "pull" else module.push(options) as sender:
        outcome = sender.behave(ROOT, entry(b"l", DIRECTORY), entry(b"l/new", size=1), entry(b"m", DIRECTORY), entry(b"m/new", size=1),
                                contents=dict.fromkeys(range(5), b"x"))
    assert outcome.code in (0, PARTIAL), outcome
    # What the operator of a client has planted he may follow; a module is not left.
    if way == "push" or options == "-rlt":
        site.is_unharmed()


@pytest.mark.parametrize("name, asked, options", [
    ("other", "mod/file", "-lt"), ("file/other", "mod/file", "-lt"), ("d/deep/x", "mod/d", "-dlt"), ("e", "mod/d", "-rlt"),
    ("fil", "mod/file", "-rlt"), ("files", "mod/file", "-rlt"), ("b", "mod/[ac]", "-rlt"), (".ssh", "mod/*.txt", "-rlt"),
])
def test_s070_names_that_nobody_asked_for(site, name, asked, options):
    entries = [entry(os.fsencode(part), DIRECTORY) for part in parents(name)] + [entry(os.fsencode(name), size=1)]
    with site.pull(options, source=asked) as sender:
        site.refuses(sender.behave(*entries, contents={0: b"x"}), UNSUPPORTED, "rejecting unrequested file-list name")
    with site.pull(options, "--trust-sender", source=asked) as sender:
        outcome = sender.behave(*entries, contents=dict.fromkeys(range(4), b"x"))
    assert outcome.code in (0, PARTIAL), outcome


def parents(name):
    parts = name.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def test_s070_names_that_were_excluded(site):
    with site.pull("-rlt", "--exclude=*.key") as sender:
        site.refuses(sender.behave(ROOT, entry(b"my.key", size=1)), UNSUPPORTED, "rejecting excluded file-list name: my.key")


def test_s070_a_list_of_names_that_comes_back_longer(site):
    trees.write(f"{site.place}/names", b"one\nd/two\n")
    site.names.append("names")
    site.names.sort()
    with site.pull("-lt", f"--files-from={site.place}/names") as sender:
        site.refuses(sender.behave(ROOT, entry(b"one"), entry(b"three")), UNSUPPORTED, "rejecting unrequested file-list name: three")


@pytest.mark.parametrize("protocol", [30, 32])
@pytest.mark.parametrize("source, options", [("mod/d/./e/f", "-rltR"), ("mod/file", "-rlt"), ("mod/file", "-rltR")])
def test_s071_what_is_only_on_the_way_is_not_swept(site, protocol, source, options):
    """Whatever flags the sender gives to parents and to "." of a single file."""
    trees.write(site.path("precious"), b"kept")
    os.mkdir(site.path("e"))
    trees.write(site.path("e/precious"), b"kept")
    path = source.split("./")[-1] if "./" in source else "file"
    listed = [ROOT] + [entry(os.fsencode(part), DIRECTORY, flags=TOP_DIR) for part in parents(path)]
    with site.pull(options, "--delete", "--force", source=source, protocol=protocol) as sender:
        outcome = sender.behave(*listed, entry(os.fsencode(path), size=1), contents=dict.fromkeys(range(4), b"x"))
    assert outcome.code in (0, UNSUPPORTED, PARTIAL), outcome
    assert os.path.exists(site.path("precious")) and os.path.exists(site.path("e/precious"))


# --- what follows the list ---

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


@pytest.mark.core
@pytest.mark.parametrize("head, words", [
    ((-1, 700, 16, 0), "Invalid checksum count -1"), ((INT_MIN, 700, 16, 0), "Invalid checksum count"),
    ((1, -1, 16, 0), "Invalid block length -1"), ((1, 131073, 16, 0), "Invalid block length 131073"),
    ((1, 0, 16, 0), "Invalid zero block length"), ((1, 700, 17, 0), "Invalid checksum length 17"),
    ((1, 700, -1, 0), "Invalid checksum length -1"), ((1, 700, 16, -1), "Invalid remainder length -1"),
    ((1, 700, 16, 701), "Invalid remainder length 701"),
])
def test_s019_heads_of_data(site, asked, head, words):
    sender, ndx = asked()
    with sender:
        sender.reply(ndx, head)
        site.refuses(sender.end(), PROTOCOL_ERROR, words)
    assert os.stat(site.path("f")).st_size == 7000


@pytest.mark.core
@pytest.mark.parametrize("token, count", [(-1, 0), (-2, 1), (INT_MIN, 1), (-INT_MAX, 0)])
def test_s021_blocks_that_there_are_not(site, asked, token, count):
    sender, ndx = asked()
    with sender:
        sender.reply(ndx, (count, 700 * count, 16, 0), struct.pack("<i", token))
        site.refuses(sender.end(), PROTOCOL_ERROR, "Invalid block index")


def test_s022_a_block_of_nothing(site, asked):
    sender, ndx = asked(basis=None)
    with sender:
        sender.reply(ndx, (10, 700, 16, 0), struct.pack("<2i", -1, 0), bytes(16))
        outcome = sender.end() if sender.closed else finish(sender)
    site.refuses(outcome, PROTOCOL_ERROR, "got a block match with no basis file for")


def test_s021_more_blocks_than_the_basis_has(site, asked):
    sender, ndx = asked()
    with sender:
        sender.reply(ndx, (1000, 700, 16, 0), struct.pack("<2i", -900, 0), bytes(16))
        outcome = finish(sender, {ndx: b"at last"})
    assert outcome.code == 0, outcome
    with open(site.path("f"), "rb") as file:
        assert file.read() == b"at last"
    site.is_unharmed()


@pytest.mark.parametrize("token", [1, 32 << 10, 1 << 20, INT_MAX])
def test_s023_announced_and_not_sent(site, asked, token):
    sender, ndx = asked()
    with sender:
        sender.reply(ndx, tokens=struct.pack("<i", token) + b"x" * min(token - 1, 70000))
        outcome = sender.abandon()
    site.refuses(outcome, STREAM_ERROR, "connection unexpectedly closed")


@pytest.mark.parametrize("compress, tokens, words", [
    ("zlib", b"\x40\x04\xff\xff\xff\xff", "inflate"), ("zlib", b"\x20\xff\xff\xff\xff", "token"),
    ("zlib", b"\x20\x09\0\0\x7f", "block index"), ("zlib", b"\xa0", "block index"), ("zlib", b"\xbf" * 9, "block index"),
    ("zstd", b"\x40\x04zzzz", "ZSTD"), ("lz4", b"\x40\x04\xff\xff\xff\xff", "LZ4"),
])
def test_s024_damaged_compression(site, asked, compress, tokens, words):
    sender, ndx = asked("-rltz", "--no-whole-file", f"--zc={compress}")
    with sender:
        sender.reply(ndx, (10, 700, 16, 0), tokens)
        outcome = sender.abandon()
    assert outcome.code in (PROTOCOL_ERROR, STREAM_ERROR), outcome
    assert words.lower() in outcome.text.lower(), outcome
    site.is_unharmed()


@pytest.mark.parametrize("counts", [(-1, 0, 0, 0, 0), (0, (1 << 28) + 1, 0, 0, 0), (0, 0, 0, 0, INT_MIN)])
def test_s025_statistics_of_deletions(site, asked, counts):
    sender, _ = asked()
    with sender:
        sender.data(sender.write_ndx(raw_client.NDX_DEL_STATS) + b"".join(varint(count) for count in counts))
        site.refuses(sender.end(), PROTOCOL_ERROR, "out of range")


@pytest.mark.core
@pytest.mark.parametrize("ndx", [2, 99, INT_MAX, 0, -3 - 1, -50, -101, -150])
def test_s026_indices_of_nothing(site, asked, ndx):
    sender, _ = asked()
    with sender:
        sender.reply(ndx) if ndx >= 0 else sender.data(sender.write_ndx(ndx) + bytes(64))
        outcome = sender.end()
    assert outcome.code == PROTOCOL_ERROR and "index" in outcome.text, outcome
    site.is_unharmed()


@pytest.mark.parametrize("what", ["twice", "unasked"])
def test_s030_data_that_nobody_waits_for(site, asked, what):
    same = b"the same"
    trees.write(site.path("same"), same, mtime_ns=raw_sender.TIME * 10**9)
    sender, ndx = asked(entries=[entry(b"same", size=len(same))])
    with sender:
        if what == "twice":
            sender.reply_with(ndx, b"x" * 7001)
        sender.reply_with(ndx if what == "twice" else 2, b"y" * 7001)
        site.refuses(sender.end(), PROTOCOL_ERROR, "was not asked for")
    assert open(site.path("same"), "rb").read() == same


def test_s027_a_name_that_comes_twice(site):
    """The entry that has lost cannot be named."""
    with site.pull() as sender:
        sender.list(ROOT, entry(b"f", size=1), entry(b"f", size=2))
        ndx, _ = sender.wait_for_request()
        sender.reply_with(3 - ndx, b"no")
        outcome = sender.end()
    assert outcome.code == PROTOCOL_ERROR, outcome
    assert os.listdir(site.target) == []


# --- incremental lists ---

@pytest.mark.parametrize("name, lists, words", [
    ("s028", [-101, -101], "second list"), ("s028-later", [-102], "index"), ("s028-far", [-5000], "index"),
])
def test_s028_lists_of_no_directory(site, name, lists, words):
    with site.pull(compat=SAFE_FLIST | INC_RECURSE) as sender:
        sender.list(ROOT, entry(b"d", DIRECTORY))
        for number, ndx in enumerate(lists):
            if name == "s028-later":
                ndx = -103
            sender.data(sender.write_ndx(ndx if name != "s028" else -102) + entry(b"d/x%d" % number) + b"\0")
        site.refuses(sender.end(), PROTOCOL_ERROR, words)


@pytest.mark.core
@pytest.mark.parametrize("name", [b"x", b"e/x", b"d/x/y", b"d", b"dd/x", b"d/../e/x", b"/d/x"])
def test_s068_entries_of_another_directory(site, name):
    with site.pull(compat=SAFE_FLIST | INC_RECURSE) as sender:
        sender.list(ROOT, entry(b"d", DIRECTORY), entry(b"e", DIRECTORY))
        sender.data(sender.write_ndx(-102) + entry(name) + b"\0")
        outcome = sender.end()
    assert outcome.code in (PROTOCOL_ERROR, UNSUPPORTED), outcome
    assert "from sender" in outcome.text, outcome
    site.is_unharmed()


def test_s029_index_of_a_top_that_is_not_listed(site):
    with site.pull("-rlt", source="mod/f", compat=SAFE_FLIST | INC_RECURSE) as sender:
        sender.list(entry(b"f", size=1))
        sender.data(sender.write_ndx(-2))
        ndx, _ = sender.wait_for_request()
        assert ndx == 1
        sender.reply_with(0, b"x")
        outcome = sender.end()
    assert outcome.code == PROTOCOL_ERROR, outcome


# --- messages ---

@pytest.mark.core
@pytest.mark.parametrize("code, length", [
    (9, 4), (10, 8), (6, 9), (50, 0), (42, 1), (22, 3), (86, 3), (33, 3), (102, 5), (101, 6000), (2, 5120),
])
def test_s033_s034_messages_with_no_sense(site, asked, code, length):
    sender, _ = asked()
    with sender:
        sender.message(code, b"\1" * length)
        outcome = sender.end()
    assert outcome.code == STREAM_ERROR, outcome
    assert re.search(r"unexpected tag|invalid multi-message|multiplexing overflow", outcome.text), outcome
    site.is_unharmed()


@pytest.mark.parametrize("value, code", [(0, STREAM_ERROR), (256, STREAM_ERROR), (0x117, PARTIAL), (-1, 255)])
def test_s035_codes_of_the_peer(site, asked, value, code):
    sender, _ = asked()
    with sender:
        sender.message(raw_client.MSG_ERROR_EXIT, struct.pack("<i", value))
        assert sender.end().code == code


def test_s051_timeouts_may_only_shorten(site, asked):
    sender, _ = asked("-rlt", "--timeout=20", "--info=misc2")
    with sender:
        for seconds in (0, -1, INT_MIN, 86401, INT_MAX, 30, 20, 7):
            sender.message(raw_client.MSG_IO_TIMEOUT, struct.pack("<i", seconds))
        outcome = sender.abandon()
    assert re.findall("Setting --timeout=.*", outcome.text) == ["Setting --timeout=7 to match server"], outcome


def test_s058_floods_of_small_messages(site, asked):
    sender, ndx = asked()
    with sender:
        sender.send(raw_client.frame(raw_client.MSG_NOOP) * 200_000)
        sender.send(raw_client.frame(raw_client.MSG_IO_ERROR, b"\1\0\0\0") * 50_000)
        sender.reply_with(ndx, b"x" * 7001)
        outcome = finish(sender)
    assert outcome.code == PARTIAL, outcome
    assert os.stat(site.path("f")).st_size == 7001


# --- what a client is shown ---

ESCAPES = b"\x1b[31mred\x9b0m\x07\x08"


def is_plain(text):
    return not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\udc80-\udc9f]", text.replace("\r", ""))


@pytest.mark.core
@pytest.mark.parametrize("code", [1, 2, 3, 4])
def test_s117_escapes_in_messages(site, asked, code):
    sender, ndx = asked()
    with sender:
        sender.message(code, ESCAPES + b"\n")
        sender.reply_with(ndx, b"x" * 7001)
        outcome = finish(sender)
    assert "red" in outcome.text and is_plain(outcome.text), outcome


@pytest.mark.parametrize("options", ["-rltv", "-rlti"])
def test_s117_escapes_in_names(site, options):
    with site.pull(options) as sender:
        outcome = sender.behave(ROOT, entry(ESCAPES, size=1), entry(b"l" + ESCAPES, SYMLINK, target=ESCAPES), contents={1: b"x"})
    assert outcome.code == 0, outcome
    assert "red" in outcome.text and is_plain(outcome.text), outcome


def test_s117_escapes_before_the_list(site):
    with site.pull(motd=ESCAPES + b"\n") as sender:
        outcome = sender.behave(ROOT)
    assert outcome.code == 0 and "red" in outcome.text and is_plain(outcome.text), outcome
    with site.pull(motd=b"@ERROR: " + ESCAPES + b"\n") as sender:
        outcome = sender.end()
    assert outcome.code == 5 and "red" in outcome.text and is_plain(outcome.text), outcome


# --- contents ---

@pytest.mark.core
def test_s127_a_digest_that_never_agrees(site):
    with site.pull() as sender:
        sender.list(ROOT, entry(b"f", size=7001))
        sender.serve({1: b"x" * 7001}, digest=bytes(16))
        outcome = sender.end()
    site.refuses(outcome, PARTIAL, "ERROR: f failed verification")
    assert os.listdir(site.target) == []


@pytest.mark.parametrize("option", ["-rlt", "-rltp"])
def test_s126_what_is_not_complete_is_nobody_elses(site, option):
    trees.write(site.path("f"), b"old")
    with site.pull(option) as sender:
        sender.list(ROOT, entry(b"f", 0o106755, size=200_000))
        ndx, _ = sender.wait_for_request()
        sender.reply(ndx, tokens=struct.pack("<i", 200_000) + b"x" * 100_000)
        deadline = time.monotonic() + 5
        while len(names := os.listdir(site.target)) < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        modes = [oct(os.stat(site.path(name)).st_mode) for name in names if name != "f"]
        assert modes == ["0o100600"], names
        sender.abandon()
    site.is_unharmed()


@pytest.mark.parametrize("target, safe", [
    (b"/etc/passwd", False), (b"../x", False), (b"a/../../b", False), (b"a/../b", False), (b"x/..", False), (b"a/b", True),
])
def test_s087_links_that_lead_out(site, target, safe):
    with site.pull("-rlt", "--safe-links") as sender:
        sender.behave(ROOT, entry(b"l", SYMLINK, target=target))
    assert os.path.lexists(site.path("l")) == safe


# --- uploads ---

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


@pytest.mark.core
@pytest.mark.parametrize("name", ["s006-long", "s008-name", "s009-type", "s013-unknown", "s016-count", "s017-value"])
def test_lists_that_no_program_sends_to_a_module(site, module, name):
    options, entries, code, words = LISTS[name]
    entries = [entry(b".", DIRECTORY, flags=TOP_DIR, more=entries[0])] if options in ("-rltA", "-rltX") else [ROOT, *entries]
    with module.push(options) as sender:
        site.refuses(sender.behave(*entries), code, words)
    assert os.listdir(site.target) == []


@pytest.mark.parametrize("basis, xname, words", [
    (0x83, b"../../x", "refusing malicious fuzzy operation for f"), (0, None, "invalid basis_dir index: 0."),
    (0x84, b"x", "fuzzy"), (0x80, b"n" * 4096, "over-long vstring received (4096 > 4095)"),
])
def test_s080_basis_that_the_sender_chooses(site, module, basis, xname, words):
    trees.write(site.path("f"), b"old")
    with module.push("-rlt") as sender:
        sender.list(ROOT, entry(b"f", size=1))
        ndx, _ = sender.wait_for_request()
        flags = ITEM_TRANSFER | raw_client.ITEM_BASIS | (raw_client.ITEM_XNAME if xname else 0)
        extra = bytes([basis]) + (raw_client.vstring(xname) if xname else b"")
        sender.reply(ndx, tokens=literal(b"x"), flags=flags, extra=extra)
        site.refuses(sender.end(), PROTOCOL_ERROR, words)


def test_s081_a_partial_basis_does_not_redirect(site, module):
    """A link in place of the partial directory, and a sender that says that this is what it goes by."""
    trees.write(site.path("f"), b"old")
    os.symlink("../outside", site.path("partial"))
    with module.push("-rlt", "--partial-dir=partial", "--no-whole-file") as sender:
        sender.list(ROOT, entry(b"f", size=1))
        ndx, _ = sender.wait_for_request()
        extra = b"\x81" + raw_client.vstring(b"secret")
        sender.reply(ndx, (1, 700, 16, 20), struct.pack("<2i", -1, 0), bytes(16),
                     ITEM_TRANSFER | raw_client.ITEM_BASIS | raw_client.ITEM_XNAME, extra)
        finish(sender)
    with open(site.path("f"), "rb") as file:
        assert b"concern" not in file.read()
    site.is_unharmed()


@pytest.mark.core
@pytest.mark.parametrize("option", ["--backup-dir", "--temp-dir", "--partial-dir", "--link-dest", "--copy-dest", "--compare-dest"])
@pytest.mark.parametrize("name, value", [("mod", "rout"), ("inner", "rout"), ("mod", "/rout/../rout"), ("inner", "../outside"),
                                         ("mod", "/absolute")])
def test_s077_s078_s079_places_outside(site, module, name, option, value):
    """The sender behaves; what it names lies outside, or would without the module."""
    os.symlink("../outside", site.path("rout"))
    os.symlink(site.outside, site.path("absolute"))
    trees.write(site.path("secret"), b"old", mode=0o600)
    try:
        with module.push("-rltb" if option == "--backup-dir" else "-rlt", f"{option}={value}", "--no-whole-file", name=name) as sender:
            outcome = sender.behave(ROOT, entry(b"secret", size=20), contents=dict.fromkeys(range(2), b"x" * 20))
            assert "nobody" not in outcome.text and site.place not in "".join(words_of(sender)), outcome
    except raw_client.Closed as closed:
        assert site.place not in str(closed)
    with open(site.path("secret"), "rb") as file:
        assert b"concern" not in file.read()
    assert os.stat(site.path("secret")).st_ino != os.stat(f"{site.outside}/secret").st_ino
    site.is_unharmed()


def words_of(sender):
    return [payload.decode(errors="replace") for code, payload in sender.messages if code in raw_client.TEXTS]


@pytest.mark.parametrize("option", ["--write-devices", "--copy-as=root", "--insecure-links", "--copy-devices", "--log-file=x",
                                    "--daemon"])
def test_s091_s108_options_that_no_client_has(site, module, option):
    with module.push("-rlt", option) as sender:
        outcome = sender.behave(ROOT, entry(b"f", size=1), contents={1: b"x"})
    assert outcome.code, outcome
    assert os.listdir(site.target) == []
    site.is_unharmed()


@pytest.mark.parametrize("target", [b"../outside", b"/rsyncd-munged/x"])
def test_s088_links_are_munged_on_the_way_in(site, module, target):
    for options in (["-rlt"], ["-rlt", "--no-munge-links"]):
        with module.push(*options, name="munged") as sender:
            sender.behave(ROOT, entry(b"l", SYMLINK, target=target))
        if options == ["-rlt"]:
            assert os.fsencode(os.readlink(site.path("l"))) == b"/rsyncd-munged/" + target
        assert os.readlink(site.path("l")).startswith("/rsyncd-munged/")


@pytest.mark.parametrize("name", [b"hidden", b"hidden/x"])
def test_s113_s123_what_a_module_hides_is_not_written(site, module, name):
    os.mkdir(site.path("hidden"))
    trees.finish(site.path("hidden"), mode=0o700)
    before = trees.describe(site.path("hidden"))
    with module.push("-rltp", "--delete-excluded" if name == b"x" else "--force", name="hides") as sender:
        sender.behave(ROOT, entry(b"hidden", DIRECTORY), *([entry(name, size=1)] if b"/" in name else []),
                      contents=dict.fromkeys(range(3), b"x"))
    assert trees.describe(site.path("hidden")) == before


@root_only
@pytest.mark.parametrize("mode", [CHARACTER, FIFO])
def test_s014_devices_that_were_not_asked_for(site, module, mode):
    with module.push("-rlt") as sender:
        outcome = sender.behave(ROOT, entry(b"c", mode))
    assert outcome.code in (0, None, PARTIAL), outcome
    assert os.listdir(site.target) == []


def test_s013_hard_links_to_what_is_a_link(site, module):
    """The first of a group gives way to a link that leads out before the second is made."""
    os.symlink("../outside/secret", site.path("a"))
    with module.push("-rltH") as sender:
        sender.behave(ROOT, entry(b"a", SYMLINK, flags=HLINKED | HLINK_FIRST, target=b"../outside/secret"),
                      entry(b"b", flags=HLINKED, link=1, size=1)[:6])
    for name in os.listdir(site.target):
        assert os.lstat(site.path(name)).st_ino != os.stat(f"{site.outside}/secret").st_ino
    site.is_unharmed()


def test_s089_names_of_fake_super(site, module):
    """An attribute that would make a file somebody's is dropped."""
    value, name = b"100755 0,0 0:0", b"user.rsync.%stat\0"
    lists = varint(0) + varint(1) + varint(len(name)) + varint(len(value)) + name + value
    with module.push("-rltX") as sender:
        outcome = sender.behave(entry(b".", DIRECTORY, flags=TOP_DIR, more=varint(0) + varint(0)),
                                entry(b"f", size=1, more=lists), contents={1: b"x"})
    assert outcome.code in (0, None, PARTIAL), outcome
    assert not any(part.startswith("user.rsync.") for part in os.listxattr(site.path("f")))


def test_s083_temporary_files_are_gone_after_a_cut(site, module):
    trees.write(site.path("f"), b"old" * 1000)
    with module.push("-rlt", "--no-whole-file") as sender:
        sender.list(ROOT, entry(b"f", size=2_000_000))
        ndx, _ = sender.wait_for_request()
        sender.reply(ndx, tokens=struct.pack("<i", 1_000_000) + b"x" * 500_000)
        sender.abandon()
    site.is_unharmed()
    assert os.stat(site.path("f")).st_size == 3000


# --- links that come with the list, and places that lie in the destination ---

PLACES = {
    "delay": (["--delay-updates"], b".~tmp~"), "partial": (["--partial-dir=p", "--delay-updates"], b"p"),
    "backup": (["-b", "--backup-dir=p"], b"p"), "backup-deep": (["-b", "--backup-dir=p/q"], b"p"), "temp": (["--temp-dir=p"], b"p"),
    "link": (["--link-dest=p"], b"p"), "copy": (["--copy-dest=p"], b"p"),
}


@pytest.mark.core
@pytest.mark.parametrize("way", ["pull", "push"])
@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_s069_s077_a_link_sent_in_place_of_a_directory_that_is_used(site, module, way, is_there, place):
    """What a run keeps in its destination goes by no link that the sender has put there in the same run."""
    options, name = PLACES[place]
    trees.write(site.path("secret"), b"old", mode=0o600)
    if is_there:
        os.mkdir(site.path(os.fsdecode(name)))
    with site.pull("-rlt", "--trust-sender", *options) if way == "pull" else module.push("-rlt", *options) as sender:
        outcome = sender.behave(ROOT, entry(name, SYMLINK, target=b"../outside"), entry(b"secret", size=20),
                                contents=dict.fromkeys(range(4), b"x" * 20))
    assert outcome.seconds < IMPATIENCE
    site.is_unharmed()
    with open(site.path("secret"), "rb") as file:
        assert file.read() in (b"old", b"x" * 20), outcome


@pytest.mark.core
@pytest.mark.parametrize("way", ["pull", "push"])
@pytest.mark.parametrize("options", [[], ["--inplace"], ["--append"], ["--inplace", "-b"]])
def test_s069_a_planted_link_is_no_file(site, module, way, options):
    os.symlink("../outside/secret", site.path("f"))
    os.symlink("../outside/new", site.path("g"))
    with site.pull("-rlt", *options) if way == "pull" else module.push("-rlt", *options) as sender:
        sender.behave(ROOT, entry(b"f", size=30), entry(b"g", size=30), contents=dict.fromkeys(range(3), b"x" * 30))
    site.is_unharmed()


@pytest.mark.core
@pytest.mark.parametrize("way", ["pull", "push"])
@pytest.mark.parametrize("options", [[], ["--inplace"], ["--delay-updates"], ["-b"]])
def test_s069_s075_a_directory_swapped_while_data_comes(site, module, way, options):
    """The request has been made; then the directory becomes a link that leads out."""
    os.mkdir(site.path("d"))
    trees.write(site.path("d/secret"), b"old", mode=0o600)
    with site.pull("-rlt", *options) if way == "pull" else module.push("-rlt", *options) as sender:
        sender.list(ROOT, entry(b"d", DIRECTORY), entry(b"d/secret", size=20))
        ndx, _ = sender.wait_for_request()
        os.rename(site.path("d"), site.path("away"))
        os.symlink("../outside", site.path("d"))
        sender.reply_with(ndx, b"x" * 20)
        outcome = finish(sender)
    assert outcome.code in (0, None, PARTIAL), outcome
    site.is_unharmed()


# --- what never ends ---

@pytest.mark.parametrize("what, code, words", [
    ("names", MEMORY_ERROR, "exceeded the memory for a file list"), ("ids", MEMORY_ERROR, "too many user and group names"),
])
def test_s064_lists_without_an_end(site, what, code, words):
    def part(first):
        if what == "names":
            return b"".join(entry(b"%d" % (first + number) + b"n" * 240) for number in range(1000))
        return b"".join(varint(first + number + 1) + b"\0" for number in range(1000))

    with site.pull("-rltog" if what == "ids" else "-rlt", "--max-alloc=1M") as sender:
        sender.data(entry(b".", DIRECTORY, flags=TOP_DIR, owner=bytes(2)) + b"\0" if what == "ids" else ROOT)
        first = 0
        while not sender.closed and first < 1 << 21:
            sender.data(part(first))
            first += 1000
        site.refuses(sender.end(), code, words)


def test_s064_data_that_unpacks_without_an_end(site, asked):
    """The file was announced with a few bytes: it takes disk as it comes, but no memory."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    part = packer.compress(bytes(64 << 20)) + packer.flush(zlib.Z_SYNC_FLUSH)
    sender, ndx = asked("-rltz", "--zc=zlib", "--whole-file", basis=None)
    with sender:
        sender.reply(ndx, tokens=b"")
        for at in range(0, len(part), 16000):
            piece = part[at:at + 16000]
            sender.data(bytes([0x40 | len(piece) >> 8, len(piece) & 255]) + piece)
        with open(f"/proc/{sender.client.pid}/status") as file:
            assert int(re.search(r"VmHWM:\s*(\d+) kB", file.read())[1]) < 48 << 10
        site.refuses(sender.abandon(), STREAM_ERROR, "connection unexpectedly closed")
    assert os.listdir(site.target) == []


# --- items and messages that fit nothing ---

@pytest.mark.core
@pytest.mark.parametrize("index", [-1, 5, INT_MAX, 0])
def test_s001_s026_files_that_will_not_come(site, asked, index):
    sender, ndx = asked()
    with sender:
        sender.message(raw_client.MSG_NO_SEND, struct.pack("<i", index))
        sender.reply_with(ndx, b"x" * 7001)
        outcome = finish(sender)
    assert outcome.code in (0, PROTOCOL_ERROR, PARTIAL), outcome
    site.is_unharmed()


@pytest.mark.parametrize("what", ["done", "all-done", "statistics", "attributes", "values"])
def test_s026_things_out_of_turn(site, asked, what):
    more = varint(0) + varint(0) if what == "values" else b""
    sender, ndx = asked("-rltX" if more else "-rlt", more=more)
    with sender:
        if what == "done":
            sender.data(b"\0")
        elif what == "all-done":
            sender.data(b"\0" * 6)
        elif what == "statistics":
            sender.data(b"\0" * 3 + b"\xff" * 60)
        else:
            sender.data(sender.write_ndx(ndx) + struct.pack("<H", raw_client.ITEM_XATTR) + b"\1\1\1\1")
        outcome = sender.abandon()
    assert outcome.code in (PROTOCOL_ERROR, STREAM_ERROR, PARTIAL), outcome
    assert outcome.seconds < IMPATIENCE and outcome.text, outcome
    assert os.stat(site.path("f")).st_size == 7000
    site.is_unharmed()


@pytest.mark.parametrize("name", [b"d", b"d/e"])
def test_s070_implied_parents_are_directories(site, name):
    with site.pull("-rltR", source="mod/./d/e/f") as sender:
        site.refuses(sender.behave(ROOT, *([entry(b"d", DIRECTORY)] if name != b"d" else []), entry(name, SYMLINK, target=b"../outside")),
                     UNSUPPORTED, "rejecting unrequested file-list name")


@pytest.mark.parametrize("names, code", [(b"", UNSUPPORTED), (b"bogus", UNSUPPORTED), (b"a " * 200, PROTOCOL_ERROR),
                                         (ESCAPES, UNSUPPORTED)])
def test_s003_names_of_checksums(site, names, code):
    """A server that has another list of checksums than anybody knows."""
    with site.pull("--debug=nstr", "-rlt", compat=SAFE_FLIST | raw_sender.VARINT_FLAGS, checksums=names) as sender:
        outcome = sender.end()
    assert outcome.code == code and is_plain(outcome.text), outcome
    site.is_unharmed()


def test_s117_escapes_in_listings_and_logs(site):
    with raw_sender.pulled("-r", target=None) as sender:
        outcome = sender.behave(ROOT, entry(ESCAPES))
    assert outcome.code == 0 and "red" in outcome.text and is_plain(outcome.text), outcome
    log = os.path.join(site.target, "log")
    with site.pull("-rlt", f"--log-file={log}", "--log-file-format=%n %L") as sender:
        sender.behave(ROOT, entry(b"a\nb" + ESCAPES, size=1), contents={1: b"x"})
    with open(log, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    assert "red" in text and is_plain(text) and "\nb" not in text, text
    with raw_sender.pulled("-r", target=None, source="", motd=ESCAPES + b"\tcomment\n@RSYNCD: EXIT\n") as sender:
        outcome = sender.end()
    assert outcome.code == 0 and "red" in outcome.text and is_plain(outcome.text), outcome
