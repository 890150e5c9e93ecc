# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hostile sender may say after its list, and what a client that pulls makes of it. Each test is named by its
item of doc/protocol/08-security.md section 10; doc/security.md has the whole list."""
import concurrent.futures
import os
import re
import struct
import time
import zlib

import pytest

import harness
import raw_client
import raw_sender
import trees
from hostile import (ESCAPES, IMPATIENCE, MEMORY_ERROR, PARTIAL, PROTOCOL_ERROR, STREAM_ERROR, UNSUPPORTED, asked, finish,
                     is_plain, site)
from raw_client import INT_MAX, INT_MIN, varint
from raw_sender import DIRECTORY, ROOT, SAFE_FLIST, SYMLINK, TOP_DIR, entry


# --- what follows the list ---

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
    ("zstd", b"\x40\x04zzzz", "ZSTD"), ("lz4", b"\x40\x04\xff\xff\xff\xff", "uncompress failed"),
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


# --- what never ends ---

@pytest.mark.parametrize("what, code, words", [
    ("names", MEMORY_ERROR, "exceeded the memory of a session, 16777216 bytes, with a file list"),
    ("ids", MEMORY_ERROR, "exceeded the memory of a session, 16777216 bytes, with names of users and groups"),
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


@pytest.mark.parametrize("compat", [SAFE_FLIST, SAFE_FLIST | raw_sender.INC_RECURSE])
def test_s026_an_end_that_comes_too_early(site, compat):
    """All of a session's end at once, with a file that is still wanted; the sender is there, but has nothing more to say."""
    with site.pull(compat=compat) as sender:
        sender.data(ROOT + entry(b"f", size=1) + b"\0" + (sender.write_ndx(-2) if compat & raw_sender.INC_RECURSE else b"")
                    + bytes(3) + bytes(15) + b"\0")
        site.refuses(sender.end(), PROTOCOL_ERROR, "the sender has ended what is not at its end")


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


# --- a sender that has stopped ---

SILENT_IN_LIST = {"before the list": b"", "within the list": raw_client.frame(raw_client.MSG_DATA, raw_sender.ROOT),
                  "within a frame": raw_client.frame(raw_client.MSG_DATA, b"\1", length=100)}
TIMEOUT = 3  # seconds, so that this sender is not late itself where the machine is busy


def silence(place, program, stage):
    with raw_sender.pulled("-rt", f"--timeout={TIMEOUT}", target=f"{place}/{os.path.basename(program)} {stage}", program=program) as sender:
        if stage in SILENT_IN_LIST:
            sender.send(SILENT_IN_LIST[stage])
        else:
            sender.list(raw_sender.ROOT, *([] if stage == "at the end" else [raw_sender.entry(b"f", size=100_000)]))
        if stage == "within a file":
            sender.reply(*sender.wait_for_request(), tokens=struct.pack("<i", 1000) + b"x" * 10)
        return sender.end()


def test_a_silent_server_is_given_up_soon(place):
    """In the list after one time-out, as by stock; later, where stock waits for good, after three."""
    stages = [*SILENT_IN_LIST, "before a file", "within a file", "at the end"]
    with concurrent.futures.ThreadPoolExecutor(len(stages) * 2) as executor:
        ours = {stage: executor.submit(silence, place, harness.HUAI, stage) for stage in stages}
        stock = {stage: executor.submit(silence, place, harness.STOCK, stage) for stage in SILENT_IN_LIST}
    for stage, outcome in ours.items():
        least = TIMEOUT if stage in stock else 3 * TIMEOUT
        said = re.findall(r"io timeout after (\d+) seconds", outcome.result().text)
        assert outcome.result().code == 30 and len(said) == 1 and least <= int(said[0]) < 10 * TIMEOUT, (stage, outcome.result().text)
        assert least - 0.1 < outcome.result().seconds, stage
    for stage, outcome in stock.items():
        assert (outcome.result().code, outcome.result().text.count("io timeout after")) == (30, 1), stage


# --- what the new content may come from ---

BASIS_FOLLOWS, INPLACE_PARTIAL = 1 << 11, 0x40
FORGED = raw_client.ITEM_TRANSFER | BASIS_FOLLOWS


@pytest.mark.parametrize("compat", [SAFE_FLIST, SAFE_FLIST | INPLACE_PARTIAL])
@pytest.mark.parametrize("options", [[], ["--partial"], ["--delay-updates"], ["--copy-dest=alt"], ["--partial-dir=.p"]])
@pytest.mark.parametrize("protocol", [30, 32])
def test_n14_nothing_is_written_in_place_because_a_sender_says_so(site, options, compat, protocol):
    """Type 0x81 where nothing has been kept of the file: what does not verify has replaced nothing."""
    old = trees.noise(7000, 1)
    trees.write(site.path("f"), old, mtime_ns=1)
    with site.pull("-rlt", "--no-whole-file", *options, compat=compat, protocol=protocol) as sender:
        sender.list(ROOT, entry(b"f", size=7001))
        ndx, _ = sender.wait_for_request()
        sender.reply(ndx, tokens=raw_sender.literal(b"forged" * 1000), digest=bytes(16), flags=FORGED, extra=b"\x81")
        sender.abandon()
    with open(site.path("f"), "rb") as file:
        assert file.read() == (b"forged" * 1000 if options == ["--partial"] else old)
    site.is_unharmed()


@pytest.mark.parametrize("options, place, basis", [
    (["--copy-dest=alt"], "alt", 0), (["--link-dest=alt"], "alt", 0), (["--compare-dest=none", "--compare-dest=alt"], "alt", 1),
    (["--partial-dir=.p"], ".p", 0x81), (["--partial-dir=.p", "--delay-updates"], ".p", 0x81), (["--inplace", "--copy-dest=alt"], "alt", 0),
    (["-y", "--copy-dest=alt"], "alt", 0x84), (["-y"], ".", 0x83), (["-b", "--backup-dir=alt", "--inplace"], "alt", 0x82),
])
@pytest.mark.parametrize("compat", [SAFE_FLIST, SAFE_FLIST | INPLACE_PARTIAL])
def test_n14_a_symlink_is_no_basis(site, options, place, basis, compat):
    """Neither in an alternate destination nor as a partial file, and no output either: what it leads to is not read or written."""
    os.makedirs(site.path(place), exist_ok=True)
    name = "f~" if basis == 0x83 else "f"
    os.symlink(f"{site.outside}/secret", site.path(f"{place}/{name}"))
    with site.pull("-rlt", "--no-whole-file", *options, compat=compat) as sender:
        sender.list(ROOT, entry(b"f", size=20))
        ndx, head = sender.wait_for_request()
        assert head[0] == 0
        extra = bytes([basis]) + (bytes([len(name)]) + name.encode() if basis >= 0x83 else b"")
        flags = FORGED | (1 << 12 if basis >= 0x83 else 0)
        sender.reply(ndx, (1, 700, 16, 20), struct.pack("<2i", -1, 0), bytes(16), flags=flags, extra=extra)
        site.refuses(sender.end(), PROTOCOL_ERROR, "got a block match with no basis file for")
    assert not os.path.isfile(site.path("f")) or not os.path.getsize(site.path("f"))
