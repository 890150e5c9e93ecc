# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hostile client may send, and what a sending server makes of it. Each test is named by its item of
doc/protocol/08-security.md section 10; doc/security.md has the whole list."""
import contextlib
import hashlib
import itertools
import os
import re
import shutil
import signal
import socket
import struct
import threading
import time

import pytest

import harness
import raw_client
import trees
from raw_client import INT_MAX, INT_MIN, ITEM_TRANSFER, NDX_DEL_STATS, NDX_DONE, frame, varint
from test_daemon import PATIENCE, server_pids

IS_ROOT = os.geteuid() == 0
root_only = pytest.mark.skipif(not IS_ROOT, reason="changes its identity")
IDENTITY = "uid = root\ngid = root\n" if IS_ROOT else ""
BIG_SIZE = 3_000_000
PROTOCOL_ERROR, STREAM_ERROR, MEMORY_ERROR = 2, 12, 22


@pytest.fixture(scope="module")
def tree(workspace):
    path = os.path.join(workspace, "security-tree")
    for directory in ("", "d", "e", "hidden", "deep"):
        os.mkdir(os.path.join(path, directory))
    for name, content in (("f", b"hello, world\n"), ("empty", b""), ("big", b"a" * BIG_SIZE),
                          ("d/x", b"x in d"), ("e/x", b"x in e"),
                          ("d/only", b"only"), ("hidden/rules", b"- f\n"), ("hiderules", b"- f\n"), ("hidden/names", b"f\n"),
                          ("secretive", b"frobnicate the-secret-word\n"), ("names", b"f\n"),
                          ("loop", b". loop\n"), ("circle", b"- f\n. d/half\n"),
                          ("d/half", b". circle\n"), ("e/.inner", b"- x\n. the-secret-name\n"),
                          ("a" * 250, b"long name"), ("deep/" + "a" * 200, b"long name")):
        trees.write(os.path.join(path, name), content)
    trees.symlink("f", os.path.join(path, "link"))
    os.mkfifo(os.path.join(path, "fifo"))
    return path


@pytest.fixture(scope="module")
def daemon(workspace, tree):
    directory = os.path.join(workspace, "security-daemon")
    os.mkdir(directory)
    config = f"""use chroot = no
{IDENTITY}[mod]
path = {tree}
[hide]
path = {tree}
exclude = /hidden /phantom /hiderules
[hasty]
path = {tree}
timeout = 1
"""
    with harness.Daemon(harness.HUAI, config, directory) as running:
        yield running


class Opener:
    """Sessions of one kind: with the daemon, or with a server behind a remote shell."""

    def __init__(self, kind, daemon, tree):
        self.kind, self.daemon, self.tree = kind, daemon, tree

    def __call__(self, *options, names=("",), **setup):
        if self.kind == "daemon":
            start = len(self.daemon.log())
            client = raw_client.over_tcp(self.daemon.port, "mod", options, [f"mod/{name}" for name in names], **setup)
            client.ask_log = lambda: end_in_log(self.daemon, start)
            return client
        return raw_client.over_shell(harness.HUAI, options, [f"{self.tree}/{name}" for name in names],
                                     environment=harness.ENVIRONMENT, **setup)

    def listed(self, *options, **setup):
        """A session whose list has been read."""
        client = self(*options, **setup)
        client.send_rules()
        return client, client.read_list()


@pytest.fixture(params=["daemon", "shell"])
def opened(request, daemon, tree):
    return Opener(request.param, daemon, tree)


def end_in_log(daemon, start):
    """How the first session in this part of the log ended: of a broken stream, as by stock, only the log has it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        text = daemon.log()[start:]
        began = re.search(r"\[(\d+)\] connect from", text)
        if began and not os.path.exists(f"/proc/{began[1]}"):
            text = "\n".join(line for line in daemon.log()[start:].splitlines() if f"[{began[1]}]" in line)
            end = re.search(r"\(code (\d+)\)", text)
            return int(end[1]) if end else 0, text
        time.sleep(0.005)
    raise AssertionError("the server has not ended: " + text)


def server_process(client, daemon):
    """The pid of the server of a session that is still open."""
    if client.process:
        return client.process.pid
    return server_pids(daemon)[-1]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def refused(outcome, code, words=""):
    assert outcome.code == code, outcome
    assert words in outcome.text, outcome
    return outcome


# --- what the tests stand on: the client that they use is understood when it behaves ---

@pytest.mark.core
@pytest.mark.parametrize("protocol", [30, 31, 32])
@pytest.mark.parametrize("letters", [".LsfxCIu", ".iLsfxCIu"])
def test_a_well_behaved_raw_client_gets_its_files(opened, protocol, letters):
    client, entries = opened.listed("-rlD", protocol=protocol, letters=letters, names=["d/"])
    with client:
        assert set(entries) == {".", "x", "only", "half"}
        if client.compat & 1:
            assert client.ndx() == raw_client.NDX_FLIST_EOF
        for name, content in (("x", b"x in d"), ("only", b"only")):
            client.request(entries[name])
            assert client.read_reply()[0] == entries[name].ndx
            assert client.read_content()[1] == content
        outcome = client.say_done()
    assert outcome.code == 0 and outcome.text == "", outcome


# --- decoding and memory ---

BAD_HEADERS = [
    ((-1, 700, 2, 0), "Invalid checksum count -1"), ((INT_MIN, 700, 2, 0), "Invalid checksum count"),
    ((1, -1, 2, 0), "Invalid block length -1"), ((1, INT_MIN, 2, 0), "Invalid block length"),
    ((1, 131073, 2, 0), "Invalid block length 131073"), ((1, INT_MAX, 2, 0), "Invalid block length"),
    ((1, 700, -1, 0), "Invalid checksum length -1"), ((1, 700, INT_MIN, 0), "Invalid checksum length"),
    ((1, 700, 17, 0), "Invalid checksum length 17"), ((1, 700, INT_MAX, 0), "Invalid checksum length"),
    ((1, 700, 2, -1), "Invalid remainder length -1"), ((1, 700, 2, INT_MIN), "Invalid remainder length"),
    ((1, 700, 2, 701), "Invalid remainder length 701"), ((1, 0, 2, 0), "Invalid zero block length"),
    ((0, 0, 0, 1), "Invalid remainder length 1"),
]


@pytest.mark.core
@pytest.mark.parametrize("head, words", BAD_HEADERS, ids=[str(head) for head, _ in BAD_HEADERS])
def test_s001_s019_bounds_of_the_checksum_header(opened, head, words):
    client, entries = opened.listed("-r")
    with client:
        client.request(entries["f"], head=head)
        refused(client.end(), PROTOCOL_ERROR, words)


@pytest.mark.parametrize("length, good", [(131073, True), (2**29, True), (2**29 + 1, False)])
def test_s019_old_protocols_have_longer_blocks(opened, length, good):
    """At protocol 29 there is no code in the stream: the words tell."""
    with opened("-d", protocol=29, names=["f"]) as client:
        client.send_rules()
        client.request(0, head=(1, length, 2, 0), sums=b"\0" * 6)
        while good and b"hello, world" not in client.stream:
            client.receive()
        outcome = client.abandon()
        assert ("Invalid block length" in outcome.text) != good, outcome


@pytest.mark.core
@pytest.mark.parametrize("value", [-1, INT_MIN])
def test_s001_negative_lengths_and_indices(opened, value):
    with opened("-r") as client:  # the length of a rule
        client.data(struct.pack("<i", value))
        refused(client.end(), MEMORY_ERROR)
    client, _ = opened.listed("-r")
    with client:  # a statistic of deletions
        client.data(client.write_ndx(NDX_DEL_STATS) + varint(0) + varint(value))
        refused(client.end(), PROTOCOL_ERROR, "deleted_dirs")
    client, _ = opened.listed("-r")
    with client:  # an index: -1 would be NDX_DONE; -(2^31 - 1) is the least that can be said
        client.data(client.write_ndx(-INT_MAX if value == INT_MIN else -4))
        refused(client.end(), PROTOCOL_ERROR, "Invalid file index")
    client, _ = opened.listed("-r")
    with client:  # the index in a message
        client.message(raw_client.MSG_SUCCESS, struct.pack("<i", value))
        refused(client.end(), PROTOCOL_ERROR)


@pytest.mark.core
@pytest.mark.parametrize("lead", range(0xf8, 0x100))
def test_s002_varint_with_more_than_four_extra_bytes(opened, lead):
    client, _ = opened.listed("-r")
    with client:
        client.data(client.write_ndx(NDX_DEL_STATS) + bytes([lead]) + b"\xff" * 8)
        refused(client.end(), STREAM_ERROR)


@pytest.mark.core
@pytest.mark.parametrize("length", [4096, 4097, 32767])
def test_s003_a_string_longer_than_its_buffer(opened, length):
    client, entries = opened.listed("-r")
    with client:
        client.request(entries["f"], xname=b"n" * length)
        refused(client.end(), PROTOCOL_ERROR, "over-long vstring")
    client, entries = opened.listed("-r")
    with client:
        client.request(entries["f"], flags=0, xname=b"n" * 4095)
        assert client.read_reply()[3] == b"n" * 4095
        client.say_done()


def test_s003_a_list_of_names_longer_than_its_buffer(opened):
    with opened("-r", letters=".LsfxCIvu", set_up=False) as client:
        if opened.kind == "shell":
            client.exchange_versions()
        client.set_up([b"md5 " * 63 + b"md5"])  # 255 bytes
        client.send_rules()
        client.read(1)
    with opened("-r", letters=".LsfxCIvu", set_up=False) as client:
        if opened.kind == "shell":
            client.exchange_versions()
        with pytest.raises(raw_client.Closed):
            client.set_up([b"md5 " * 64])
        refused(client.end(), PROTOCOL_ERROR)


@pytest.mark.core
@pytest.mark.parametrize("options", [[], ["--max-alloc=0"], ["--max-alloc=100T"], ["--max-alloc=100G"]])
@pytest.mark.parametrize("count", [2**26, INT_MAX])
def test_s004_s005_huge_counts(opened, count, options):
    client, entries = opened.listed("-r", *options)
    with client:
        began = time.monotonic()
        pid = server_process(client, opened.daemon)
        client.request(entries["f"], head=(count, 700, 16, 0))
        while client.code is None and not client.closed:
            client.receive()
        assert time.monotonic() - began < PATIENCE
        if os.path.exists(f"/proc/{pid}/status") and client.code is not None:
            with open(f"/proc/{pid}/status") as file:
                peak = re.search(r"VmHWM:\s+(\d+)", file.read())
            assert not peak or int(peak[1]) < 200_000
        refused(client.end(), MEMORY_ERROR, "exceeded --max-alloc=1073741824 setting")


def test_s005_a_client_may_lower_the_ceiling(opened):
    client, entries = opened.listed("-r", "--max-alloc=1M")
    with client:
        client.request(entries["f"], head=(2**16, 700, 16, 0))
        refused(client.end(), MEMORY_ERROR, "exceeded --max-alloc=1048576 setting")


@pytest.mark.parametrize("name", [b"mo\0d", b"mod\0", b"\0mod"])
def test_s008_nul_in_a_module_name(daemon, name):
    with raw_client.connect(daemon.port) as connection:
        connection.sendall(b"@RSYNCD: 32.0 md5\n" + name + b"\n")
        answer = b""
        while part := connection.recv(4096):
            answer += part
    assert answer.count(b"\n") == 1  # nothing but the greeting


def test_s008_nul_in_an_argument_of_an_old_client(daemon):
    client = raw_client.over_tcp(daemon.port, "mod", ["-r\0x"], protocol=29, set_up=False)
    with client:
        assert client.end().text == "" and not client.stream


def test_s008_nul_in_names_of_the_stream(opened):
    client, entries = opened.listed("-r")
    with client:
        client.request(entries["f"], xname=b"a\0b")
        refused(client.end(), PROTOCOL_ERROR)
    with opened("-r", letters=".LsfxCIvu", set_up=False) as client:
        if opened.kind == "shell":
            client.exchange_versions()
        with pytest.raises(raw_client.Closed):
            client.set_up([b"md5\0xxh64"])
        refused(client.end(), PROTOCOL_ERROR)


@pytest.mark.core
@pytest.mark.parametrize("wanted", [b"\x02\0", b"\x7f\0", varint(-1) + b"\0", varint(INT_MAX) + varint(INT_MAX) + b"\0",
                                    varint(1) + varint(INT_MAX) + b"\0", varint(INT_MIN) + b"\0", b"\xff" * 9])
def test_s017_requests_for_xattr_values_that_are_not_there(opened, place, wanted):
    """One long value is there, number 1, and may be asked for."""
    trees.write(f"{place}/f", b"content")
    os.chmod(place, 0o755)
    try:
        os.setxattr(f"{place}/f", "user.long", b"v" * 100)
    except OSError:
        pytest.skip("no user xattrs here")
    opened.tree = place
    if opened.kind == "daemon":
        config = f"use chroot = no\n{IDENTITY}[mod]\npath = {place}\n"
        with harness.Daemon(harness.HUAI, config, place) as own:
            opened.daemon = own
            ask_for_xattrs(opened, wanted)
    else:
        ask_for_xattrs(opened, wanted)


def ask_for_xattrs(opened, wanted):
    client, entries = opened.listed("-X", names=["f"])
    with client:
        client.data(client.request_bytes(entries["f"], raw_client.ITEM_XATTR) + b"\x01\0")
        assert client.read_reply()[1] == raw_client.ITEM_XATTR
        assert client.varint() == 1 and client.read(client.varint()) == b"v" * 100 and client.byte() == 0
        client.data(client.request_bytes(entries["f"], raw_client.ITEM_XATTR) + wanted)
        outcome = client.end()
        assert outcome.code in (PROTOCOL_ERROR, STREAM_ERROR), outcome


DIGESTS = {"md5": 16, "sha1": 20, "xxh64": 8, "xxh3": 8, "xxh128": 16, "md4": 16}


@pytest.mark.parametrize("digest", DIGESTS)
def test_s020_strong_sums_as_long_as_the_digest(opened, digest):
    length = DIGESTS[digest]
    client, entries = opened.listed("-r", f"--checksum-choice={digest}")
    with client:
        client.request(entries["f"], head=(1, 700, length, 0), sums=b"\0" * (4 + length))
        client.read_reply()
        assert client.read_content(digest=length) == ((1, 700, length, 0), b"hello, world\n")
        client.request(entries["f"], head=(1, 700, length + 1, 0), sums=b"\0" * (5 + length))
        refused(client.end(), PROTOCOL_ERROR, f"Invalid checksum length {length + 1}")


@pytest.mark.parametrize("position", range(5))
@pytest.mark.parametrize("value", [2**28 + 1, -1, INT_MIN, INT_MAX])
def test_s025_statistics_of_deletions(opened, position, value):
    client, _ = opened.listed("-r")
    with client:
        client.data(client.write_ndx(NDX_DEL_STATS) + b"\0" * position + varint(value))
        refused(client.end(), PROTOCOL_ERROR, "out of range")


def test_s025_the_largest_statistics_are_echoed(opened):
    client, _ = opened.listed("-r")
    with client:
        client.data(client.write_ndx(NDX_DEL_STATS) + varint(2**28) * 5)
        assert client.ndx() == NDX_DEL_STATS
        assert [client.varint() for _ in range(5)] == [2**28] * 5
        client.abandon()


@pytest.mark.core
@pytest.mark.parametrize("letters", [".LsfxCIu", ".iLsfxCIu"])
@pytest.mark.parametrize("ndx", [99, 70000, INT_MAX, -2, -4, -50, -100, -101, -102, -INT_MAX])
def test_s026_indices_of_nothing(opened, ndx, letters):
    client, _ = opened.listed("-r", letters=letters, names=["d/"])
    with client:
        client.request(ndx, head=None)
        refused(client.end(), PROTOCOL_ERROR)


def test_s026_an_index_above_the_range(opened):
    client, _ = opened.listed("-r")
    with client:
        client.data(b"\xfe\xff\xff\xff\xff\xfe\x7f\xff\0\0")  # 2^31 - 1, then 32767 more
        refused(client.end(), PROTOCOL_ERROR)


def test_s026_an_index_of_a_list_that_is_done(opened):
    client, entries = opened.listed("-r", letters=".iLsfxCIu", names=["d/"])
    with client:
        assert client.ndx() == raw_client.NDX_FLIST_EOF
        client.data(client.write_ndx(NDX_DONE))
        client.request(entries["x"])
        refused(client.end(), PROTOCOL_ERROR)


@pytest.mark.core
@pytest.mark.parametrize("letters", [".LsfxCIu", ".iLsfxCIu"])
@pytest.mark.parametrize("names", [["d/x", "e/x"], ["d/", "e/"], ["d", "e/../d"]])
def test_s027_dead_entries(opened, names, letters):
    """Names that occur twice: one of the two indices is dead, whatever the way in which it is asked for."""
    dead = 0
    for ndx in range(8):
        for flags in (ITEM_TRANSFER, 0):
            with opened("-r", letters=letters, names=names) as client:
                client.send_rules()
                client.request(ndx, flags)
                outcome = client.abandon()
                assert outcome.code in (0, PROTOCOL_ERROR, STREAM_ERROR), outcome
                dead += "cleared file index" in outcome.text
    assert dead, "no index was refused as that of a dead entry"


@pytest.mark.core
@pytest.mark.parametrize("flags", [0, ITEM_TRANSFER, 0x2000, 0x4008])
def test_s029_the_parent_of_a_list_without_a_parent(opened, flags):
    client, entries = opened.listed("-r", letters=".iLsfxCIu", names=["d"])
    with client:
        assert "." not in entries
        client.request(0, flags)
        refused(client.end(), PROTOCOL_ERROR)


@pytest.mark.core
@pytest.mark.parametrize("letters", [".LsfxCIu", ".iLsfxCIu"])
@pytest.mark.parametrize("name", [".", "d", "link", "fifo"])
def test_s030_transfer_of_what_is_no_regular_file(opened, name, letters):
    client, entries = opened.listed("-rl", "--specials", letters=letters)
    with client:
        client.request(entries[name])
        refused(client.end(), PROTOCOL_ERROR, "received request to transfer non-regular file")


def test_s030_transfer_in_the_last_phase(opened):
    client, entries = opened.listed("-r")
    with client:
        client.data(client.write_ndx(NDX_DONE) * 2)
        client.request(entries["f"])
        refused(client.end(), PROTOCOL_ERROR, "got transfer request in phase 2")


@pytest.mark.core
@pytest.mark.parametrize("option", ["--append", "--append-verify"])
@pytest.mark.parametrize("head", [(1, 700, 2, 0), (1, 700, 2, 13), (INT_MAX, 131072, 16, 1), (20000, 1, 2, 0)])
def test_s031_append_to_more_than_there_is(opened, option, head):
    client, entries = opened.listed("-r", *[option] * (2 if option == "--append-verify" else 1))
    with client:
        for name in ("empty", "f"):
            client.request(entries[name], head=head)
            client.read_reply()
            echoed, content = client.read_content()
            assert echoed == head and content == b"", "what is there already is not sent again"
        outcome = client.say_done()
    assert outcome.code == 0, outcome


@pytest.mark.core
@pytest.mark.parametrize("remainder", [0, 1, 350, 699, 700])
@pytest.mark.parametrize("strong", [0, 1, 2])
def test_s032_forged_weak_sums(opened, strong, remainder):
    client, entries = opened.listed("-r")
    with client:
        forged = (weak_sum(b"a" * 700) + b"\0" * strong) * 7 + weak_sum(b"a" * (remainder or 700)) + b"\0" * strong
        client.request(entries["big"], head=(8, 700, strong, remainder), sums=forged)
        if strong == 0:
            refused(client.end(), PROTOCOL_ERROR, "Invalid checksum length 0")
            return
        client.read_reply()
        assert client.read_content(basis=b"b" * 6000)[1].replace(b"b", b"a")[:1000] == b"a" * 1000
        assert client.say_done().code == 0


def weak_sum(block):
    """doc/protocol/03-transfer.md section 4.1"""
    first = second = 0
    for byte in block:
        first += byte - 256 if byte > 127 else byte
        second += first
    return struct.pack("<I", (first & 0xffff) | (second & 0xffff) << 16)


# What a sender may receive, and how long it may be; index and code messages have exactly these lengths.
TEXT_LENGTHS = (0, 1, 3, 4, 5, 8, 20, 5119)
ACCEPTED = {0: None, **{code: TEXT_LENGTHS for code in (1, 2, 3, 4, 101)}, 22: (4,), 42: (0,), 86: (0, 4), 100: (4,), 102: (4,)}
LENGTHS = (0, 1, 3, 4, 5, 8, 20, 5119, 5120, 2**24 - 1)


def check_frame(opened, tag, length):
    code = tag - 7
    with opened("-r", names=["d/"]) as client:
        client.send(frame(code, b"\0" * min(length, 5120), length))
        good = code in ACCEPTED and (ACCEPTED[code] is None or length in ACCEPTED[code])
        if good and code != raw_client.MSG_ERROR_EXIT and code != 0:
            client.send_rules()
            client.read_list()
            client.abandon()
            return
        if code == 0:  # zero bytes are rules and phases; the session may come to its end or wait for more
            client.send(b"\0" * max(0, length - 5120))
            outcome = client.abandon()
            assert outcome.code in (0, PROTOCOL_ERROR, STREAM_ERROR), (tag, length, outcome)
            return
        outcome = client.end()
        assert outcome.code not in (0, 139, 134, -11, -6), (tag, length, outcome)
        if code != raw_client.MSG_ERROR_EXIT or not good:
            refused(outcome, STREAM_ERROR, f" {code}" if code in ACCEPTED else "")
            assert re.search("unexpected tag|invalid multi-message|multiplexing overflow", outcome.text), (tag, length, outcome)


@pytest.mark.parametrize("length", LENGTHS)
def test_s033_every_tag_with_every_length(daemon, tree, length):
    """All tags against the daemon; nothing but a refusal with its reason, or what follows a good message, may happen."""
    for tag in range(256):
        check_frame(Opener("daemon", daemon, tree), tag, length)


@pytest.mark.core
@pytest.mark.parametrize("length", (0, 4, 8, 5120))
def test_s033_every_known_tag_over_a_remote_shell(daemon, tree, length):
    for code in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 22, 33, 42, 50, 86, 100, 101, 102, -7, 200):
        check_frame(Opener("shell", daemon, tree), code + 7, length)


@pytest.mark.core
@pytest.mark.parametrize("code, payload", [(9, 4), (10, 8), (5, 3), (6, 3), (7, 3), (8, 3)])
def test_s034_messages_that_never_cross_a_network(opened, code, payload):
    client, _ = opened.listed("-r")
    with client:
        client.message(code, b"x" * payload)
        refused(client.end(), STREAM_ERROR)


@pytest.mark.parametrize("value", [-1, INT_MIN, INT_MAX, 8, 0xf8])
def test_s035_io_errors_are_three_bits(opened, value):
    client, _ = opened.listed("-r")
    with client:
        client.message(raw_client.MSG_IO_ERROR, struct.pack("<i", value))
        outcome = client.say_done()
        reported = [struct.unpack("<i", payload)[0] for code, payload in client.messages if code == raw_client.MSG_IO_ERROR]
    assert reported in ([], [value & 7]), outcome
    if opened.kind == "shell":
        assert outcome.code == (23 if value & 1 else 0), outcome


@pytest.mark.parametrize("value, code", [(0x1ff, 255), (0x100 + 23, 23), (-1, 255), (0x7fffff00, None), (INT_MIN, None)])
def test_s035_exit_codes_are_eight_bits(daemon, tree, value, code):
    client, _ = Opener("shell", daemon, tree).listed("-r")
    with client:
        client.message(raw_client.MSG_ERROR_EXIT, struct.pack("<i", value))
        outcome = client.end()
    assert outcome.code == code if code else 0 < outcome.code < 128, outcome


@pytest.mark.core
@pytest.mark.parametrize("length, good", [(5119, True), (5120, False), (-1, False), (INT_MIN, False), (INT_MAX, False)])
def test_s036_the_length_of_a_rule(opened, length, good):
    with opened("-r") as client:
        rule = b"- " + b"n" * 5117
        client.data(struct.pack("<i", length) + (rule + struct.pack("<i", 0) if good else b""))
        if good:
            assert "f" in client.read_list()
            client.abandon()
        else:
            refused(client.end(), MEMORY_ERROR)


@pytest.mark.parametrize("count, good", [(15_998, True), (15_999, False), (40_000, False)])
def test_s037_the_number_of_arguments(daemon, count, good):
    words = raw_client.server_words(["-d"], raw_client.LETTERS, [])
    paths = ["mod/d"] * (count - len(words))
    with raw_client.over_tcp(daemon.port, "mod", ["-d"], paths, set_up=False) as client:
        if good:
            client.set_up()
            client.send_rules()
            assert "d" in client.read_list()
            client.abandon()
        else:
            client.end()
            assert not client.stream
    if not good:
        assert "too many daemon arguments" in daemon.log()


@pytest.mark.parametrize("count", [14, 15, 16, 17, 1000, 1021, 1022, 1023, 1024, 4096])
def test_s037_expansions_that_fill_the_vector(daemon, tree, count):
    """With the words before them the names come to each number around a power of two."""
    directory = os.path.join(tree, "deep", f"many{count}")
    os.makedirs(directory, exist_ok=True)
    for number in range(count):
        open(os.path.join(directory, str(number)), "w").close()
    with raw_client.over_tcp(daemon.port, "mod", ["-d"], [f"mod/deep/many{count}/*"]) as client:
        client.send_rules()
        assert len(client.read_list()) == count
        client.abandon()


NINES = "9" * 40
ABSURD = [f"--max-size={NINES * 8}", f"--min-size={NINES * 8}", f"--max-size={NINES * 8}T", "--max-size=-1",
          f"--block-size={NINES}", f"-B{NINES}", "-B2147483648", "--info=NAME9999999999", f"--info={NINES * 5}",
          "--debug=ALL99999999999999", "-" + "v" * 60, "-" + "v" * 5000, "--timeout=99999999999",
          "--compress-level=99999999999", f"--bwlimit={NINES}", f"--modify-window={NINES}", f"--checksum-seed={NINES}",
          f"--max-size={NINES * 125}", "--skip-compress=" + "[" * 5000, f"--stop-at={NINES}"]


@pytest.mark.core
@pytest.mark.parametrize("option", ABSURD, ids=[option[:24] for option in ABSURD])
def test_s038_absurd_values(opened, option):
    with opened("-r", option, set_up=False) as client:
        try:
            if opened.kind == "shell":
                client.exchange_versions()
            client.set_up()
            client.send_rules()
            outcome = client.abandon()
        except raw_client.Closed:
            outcome = client.end()
    assert outcome.code in (0, 1, 2, 4, 12, 22), outcome
    assert outcome.code != 0 or opened.kind == "daemon" or option[1] != "-" or outcome.text == "", outcome


# --- exhaustion ---

def test_s046_s047_s048_the_handshake_ends_after_a_minute_whatever_is_configured(place, tree):
    """A silent client and one that sends a byte a second, in every phase, all at the same time."""
    greeting = b"@RSYNCD: 32.0 md5\n"
    beginnings = [b"", greeting, greeting + b"mod\n", greeting + b"mod\n--server\0--sender\0-s\0\0rsync\0"]
    with contextlib.ExitStack() as stack:
        daemons = []
        for number, option in enumerate(("timeout = 0", "timeout = 500", "timeout = -5")):
            directory = os.path.join(place, str(number))
            os.mkdir(directory)
            config = f"{option}\nuse chroot = no\n{IDENTITY}[mod]\npath = {tree}\n{option}\n"
            daemons.append(stack.enter_context(harness.Daemon(harness.HUAI, config, directory)))
        times = time_until_closed(daemons, beginnings)
    assert all(58 <= value < 70 for value in times), times


def time_until_closed(daemons, beginnings):
    times = []

    def run(daemon, data, drip):
        began = time.monotonic()
        with raw_client.connect(daemon.port) as connection:
            connection.sendall(data)
            connection.settimeout(1)
            while time.monotonic() - began < 70:
                try:
                    if drip:
                        connection.send(b"x")
                    if not connection.recv(4096):
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
        times.append(time.monotonic() - began)

    threads = [threading.Thread(target=run, args=words) for words in itertools.product(daemons, beginnings, (False, True))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(times) == len(threads)
    return times


@pytest.mark.parametrize("where", ["rules", "requests"])
def test_s050_an_idle_transfer_is_closed(daemon, where):
    """A client that takes keep-alives may be busy for longer than the limit, but not for ever."""
    with raw_client.over_tcp(daemon.port, "hasty", ["-r"]) as client:
        if where == "requests":
            client.send_rules()
            client.read_list()
        began = time.monotonic()
        while not client.closed:
            client.receive()
        assert 8 < time.monotonic() - began < 8 + PATIENCE # what came before may have taken a moment


def test_s050_a_client_that_does_not_read_is_dropped(daemon):
    with raw_client.over_tcp(daemon.port, "hasty", ["-r"], buffer=4096) as client:
        client.send_rules()
        entries = client.read_list()
        pid = server_process(client, daemon)
        client.data(client.request_bytes(entries["big"]) * 5)
        began = time.monotonic()
        while os.path.exists(f"/proc/{pid}"):
            assert time.monotonic() - began < PATIENCE
            time.sleep(0.05)
        assert time.monotonic() - began > 0.5


def test_s050_s129_the_default_timeout_is_told(daemon):
    with raw_client.over_tcp(daemon.port, "mod", ["-r"]) as client:
        client.send_rules()
        client.read_list()
        assert (raw_client.MSG_IO_TIMEOUT, struct.pack("<i", 600)) in client.messages
        client.abandon()


@pytest.mark.parametrize("value", [0, -1, 86401, INT_MAX, INT_MIN, 1, 86400])
def test_s051_a_client_cannot_set_the_time_limit(opened, value):
    client, _ = opened.listed("-r")
    with client:
        client.message(raw_client.MSG_IO_TIMEOUT, struct.pack("<i", value))
        refused(client.end(), STREAM_ERROR, "invalid multi-message 33:4")


@pytest.mark.parametrize("option", ["--timeout=0", "--timeout=500", "--timeout=2147483647"])
def test_s051_the_option_cannot_lengthen_the_modules_limit(daemon, option):
    with raw_client.over_tcp(daemon.port, "hasty", ["-r", option]) as client:
        client.send_rules()
        client.read_list()
        assert (raw_client.MSG_IO_TIMEOUT, struct.pack("<i", 1)) in client.messages
        client.abandon()


def test_s052_an_endless_time_limit_does_not_spin(opened):
    client, _ = opened.listed("-r", "--timeout=2147483647")
    with client:
        pid = server_process(client, opened.daemon)
        before = cpu_seconds(pid)
        time.sleep(1.5)
        assert cpu_seconds(pid) - before < 0.1
        assert not client.closed
        client.abandon()


def test_s054_handshakes_do_not_take_the_slots_of_sessions(place, tree):
    config = f"lock file = {place}/lock\nmax connections = 1\nuse chroot = no\n{IDENTITY}[mod]\npath = {tree}\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        idle = [raw_client.connect(daemon.port) for _ in range(10)]
        for connection in idle:
            connection.sendall(b"@RSYNCD: 32.0 md5\n")
        with raw_client.over_tcp(daemon.port, "mod", ["-r"]) as client:
            client.send_rules()
            assert "f" in client.read_list()
            client.abandon()
        for connection in idle:
            connection.close()


@pytest.mark.parametrize("length", [700, 1])
def test_s056_a_chain_of_equal_weak_sums(opened, length):
    client, entries = opened.listed("-r")
    with client:
        pid = server_process(client, opened.daemon)
        before = cpu_seconds(pid)
        sums = (weak_sum(b"a" * length) + bytes(16)) * 20_000
        client.request(entries["big"], head=(20_000, length, 16, 0), sums=sums)
        client.read_reply()
        assert client.read_content()[1] == b"a" * BIG_SIZE
        assert cpu_seconds(pid) - before <= 2
        client.say_done()


@pytest.mark.parametrize("option", ["--compress-threads=256", "--zt=256"])
def test_s057_compression_threads_are_few(opened, option):
    with opened("-r", "-z", "--compress-choice=zstd", option, set_up=False) as client:
        try:
            if opened.kind == "shell":
                client.exchange_versions()
            client.set_up()
            client.send_rules()
            entries = client.read_list()
        except raw_client.Closed:
            assert "not supported" in client.end().text  # as good
            return
        pid = server_process(client, opened.daemon)
        client.request(entries["big"])
        client.read_reply()
        with open(f"/proc/{pid}/status") as file:
            assert int(re.search(r"Threads:\s+(\d+)", file.read())[1]) <= 9
        client.abandon()


@pytest.mark.core
@pytest.mark.parametrize("code, payload", [(raw_client.MSG_NOOP, b""), (raw_client.MSG_NO_SEND, struct.pack("<i", 1)),
                                           (raw_client.MSG_IO_ERROR, struct.pack("<i", 0))])
def test_s058_floods_of_small_frames_while_output_is_blocked(opened, code, payload):
    client, entries = opened.listed("-r", buffer=4096)
    with client:
        pid = server_process(client, opened.daemon)
        for _ in range(3):  # the content of three big files fills every buffer on the way
            client.data(client.request_bytes(entries["big"]))
        before = stack_kilobytes(pid)
        client.send_blindly(frame(code, payload) * 200_000)
        assert stack_kilobytes(pid) <= before + 64
        for _ in range(3):
            client.read_reply()
            assert client.read_content()[1] == b"a" * BIG_SIZE
        client.abandon()


def stack_kilobytes(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmStk:\s+(\d+)", file.read())[1])


def test_s058_queues_do_not_grow_without_bound(opened):
    """Requests that cannot be answered yet stay with the client, not in the server's memory."""
    client, entries = opened.listed("-r", buffer=4096)
    with client:
        pid = server_process(client, opened.daemon)
        client.data(client.request_bytes(entries["big"]))
        sent = client.send_blindly(frame(0, client.request_bytes(entries["f"]) * 1000) * 2000)
        with open(f"/proc/{pid}/status") as file:
            assert int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) < 100_000, sent
        client.connection.close()


@pytest.mark.core
@pytest.mark.parametrize("name", ["loop", "circle"])
def test_s059_a_merge_file_that_includes_itself(opened, name):
    with opened("-r") as client:
        client.send_rules(b": " + name.encode())
        outcome = client.end()
    assert outcome.code == 11 and "32" in outcome.text, outcome


@pytest.mark.core
@pytest.mark.parametrize("pattern", [b"*a" * 60 + b"b", b"**a" * 60 + b"b", b"*" * 2000 + b"b", b"a" + b"*?" * 120 + b"b",
                                     b"[[:alpha:]]*" * 60 + b"1", b"**/" * 300 + b"b", b"/**" + b"*a" * 500 + b"/b",
                                     b"a*[!a]" * 300])
def test_s061_pathological_wildcards(opened, pattern):
    with opened("-r") as client:
        began = time.monotonic()
        client.send_rules(b"- " + pattern, b"+ " + pattern)
        client.read_list()
        assert time.monotonic() - began < PATIENCE
        client.abandon()


def test_s061_pathological_wildcards_in_path_arguments(daemon, tree):
    for name in ("*a" * 60 + "b", "*" * 1000 + "b", "?*" * 120 + "b", "/".join(["*"] * 12)):
        began = time.monotonic()
        with raw_client.over_tcp(daemon.port, "mod", ["-d"], [f"mod/{name}"]) as client:
            client.send_rules()
            client.abandon()
        assert time.monotonic() - began < PATIENCE


STRANGER = "setpriv --reuid=41234 --regid=41234 --clear-groups"


def limit_processes(pid, most):
    """Only its own user may set the limits of a process without further capabilities."""
    result = harness.run(*STRANGER.split(), "prlimit", f"--pid={pid}", f"--nproc={most}:")
    assert result.code == 0, result.text


@root_only
def test_s065_a_listener_that_cannot_fork_goes_on(place, tree):
    wrapper = os.path.join(place, "unprivileged")
    with open(wrapper, "w") as file:
        file.write(f"#!/bin/sh\nexec {STRANGER} {place}/program \"$@\"\n")
    os.chmod(wrapper, 0o755)
    os.chmod(place, 0o777)
    shutil.copy(harness.HUAI, f"{place}/program")
    with harness.Daemon(wrapper, f"use chroot = no\n[mod]\npath = {tree}\n", place) as daemon:
        pid = daemon.process.pid
        limit_processes(pid, 0)
        cpu = cpu_seconds(pid)
        for _ in range(5):
            with raw_client.connect(daemon.port) as connection:
                connection.settimeout(1)
                try:
                    assert b"@RSYNCD: OK" not in connection.recv(100)
                except (TimeoutError, ConnectionError):
                    pass
        assert daemon.process.poll() is None
        assert cpu_seconds(pid) - cpu < 0.5
        limit_processes(pid, 1000)
        deadline = time.monotonic() + 60
        while True:
            try:
                with raw_client.over_tcp(daemon.port, "mod", ["-r"]) as client:
                    client.send_rules()
                    assert "f" in client.read_list()
                    client.abandon()
                break
            except (OSError, raw_client.Closed):
                assert time.monotonic() < deadline
                time.sleep(0.2)


@pytest.mark.core
def test_s066_an_empty_field_at_the_end_of_a_frame(opened):
    client, entries = opened.listed("-r")
    with client:
        client.data(client.request_bytes(entries["f"], 0, xname=b""))
        assert client.read_reply() == (entries["f"].ndx, raw_client.ITEM_XNAME, None, b"")
        client.message(raw_client.MSG_DATA)
        client.data(client.request_bytes(entries["f"], 0))
        assert client.read_reply()[0] == entries["f"].ndx
        client.abandon()


# --- paths ---

@pytest.mark.core
@pytest.mark.parametrize("length", [4094, 4095, 4096, 4097])
def test_s043_paths_as_long_as_a_buffer(place, length):
    """A tree whose longest path has this many bytes: it is listed as what it is, or not at all."""
    parts = ["p" * 200] * ((length - 1) // 201)
    leaf = "q" * (length - 201 * len(parts))
    assert 0 < len(leaf) <= 201
    here = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    for part in parts:
        os.mkdir(part, dir_fd=here)
        below = os.open(part, os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open(leaf, os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    with raw_client.over_shell(harness.HUAI, ["-r"], [f"{place}/"], environment=harness.ENVIRONMENT) as client:
        client.send_rules()
        names = client.read_list()
        longest = max(names, key=len)
        assert all(set(name) <= set("p/q.") for name in names)
        if length <= 4095:
            assert longest == "/".join(parts + [leaf])
        else:
            assert longest == "/".join(parts)
        outcome = client.say_done()
        assert outcome.code == (0 if length <= 4095 else 23), outcome


def test_s085_success_for_what_cannot_be_removed(opened, place):
    """Over a remote shell sources may be removed: only those of the list, and only if they are what was sent."""
    os.mkdir(f"{place}/src")
    os.mkdir(f"{place}/src/sub")
    for name in ("src/a", "src/b", "outside"):
        trees.write(f"{place}/{name}", b"content")
    os.symlink("../outside", f"{place}/src/link")
    if opened.kind == "daemon":
        client = opened("-r", "--remove-source-files")
        with client:
            client.send_rules()
            outcome = client.end()
        assert outcome.code != 0 and "read-only module" in outcome.text, outcome
        return
    opened.tree = f"{place}/src"
    client, entries = opened.listed("-rl", "--remove-source-files")
    with client:
        os.utime(f"{place}/src/b", (1, 1))
        for name in ("a", "b", "sub", "."):
            client.message(raw_client.MSG_SUCCESS, struct.pack("<i", entries[name].ndx))
        outcome = client.say_done()
    assert "Skipping sender remove for changed file: b" in outcome.text, outcome
    assert sorted(os.listdir(f"{place}/src")) == ["b", "link", "sub"]
    for ndx in (99, -1, INT_MIN, INT_MAX):
        client, _ = opened.listed("-rl", "--remove-source-files")
        with client:
            client.message(raw_client.MSG_SUCCESS, struct.pack("<i", ndx))
            refused(client.end(), PROTOCOL_ERROR)
    client, entries = opened.listed("-rl", "--remove-source-files")
    with client:
        os.rename(f"{place}/src/sub", f"{place}/src/gone")
        client.message(raw_client.MSG_SUCCESS, struct.pack("<i", entries["link"].ndx))
        client.say_done()
    assert os.path.exists(f"{place}/outside") and not os.path.lexists(f"{place}/src/link")


def test_s085_success_without_the_option_removes_nothing(opened, place):
    client, entries = opened.listed("-r")
    with client:
        client.message(raw_client.MSG_SUCCESS, struct.pack("<i", entries["f"].ndx))
        client.say_done()
    assert os.path.exists(os.path.join(opened.tree, "f"))


@pytest.mark.parametrize("word", ["--no-munge-links", "--munge-links"])
def test_s088_munging_is_not_the_clients_choice(place, word):
    os.mkdir(f"{place}/m")
    trees.symlink("/rsyncd-munged//etc/passwd", f"{place}/m/once")
    trees.symlink("/rsyncd-munged//rsyncd-munged/x", f"{place}/m/twice")
    trees.symlink("plain", f"{place}/m/plain")
    config = f"use chroot = no\n{IDENTITY}[on]\npath = {place}/m\nmunge symlinks = yes\n"
    config += f"[off]\npath = {place}/m\nmunge symlinks = no\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        expected = {"on": [b"/etc/passwd", b"/rsyncd-munged/x", b"plain"],
                    "off": [b"/rsyncd-munged//etc/passwd", b"/rsyncd-munged//rsyncd-munged/x", b"plain"]}
        for module, targets in expected.items():
            with raw_client.over_tcp(daemon.port, module, ["-rl"]) as client:
                client.send_rules()
                entries = client.read_list()
                assert [entries[name].target for name in ("once", "twice", "plain")] == targets
                client.abandon()
            with raw_client.over_tcp(daemon.port, module, ["-rl", word], set_up=False) as client:
                try:
                    client.set_up()
                    client.send_rules()
                    entries = client.read_list()
                    assert [entries[name].target for name in ("once", "twice", "plain")] == targets
                    client.abandon()
                except raw_client.Closed:
                    pass


FORBIDDEN = ["--insecure-links", "--log-file={made}", "--log-file-format=x", "--daemon", "--config=/etc/passwd", "--detach",
             "--no-detach", "--dparam=path=/", "--copy-as=root", "--version", "--help", "--iconv=utf-8"]
# Without meaning to a server: taken or refused, but not acted upon.
MEANINGLESS = ["-h", "--only-write-batch={made}", "--write-batch={made}", "--read-batch=/etc/passwd", "-M--log-file={made}",
               "--password-file=/etc/shadow", "--confine-root=/"]


@pytest.mark.parametrize("word", FORBIDDEN + MEANINGLESS)
def test_s091_s108_words_that_no_client_may_say(daemon, place, word):
    os.chmod(place, 0o777)
    with raw_client.over_tcp(daemon.port, "mod", ["-r", word.format(made=f"{place}/made")], set_up=False) as client:
        try:
            client.set_up()
            client.send_rules()
            names = client.read_list()
        except raw_client.Closed:
            names = {}
        client.abandon()
    assert word in MEANINGLESS or not names
    assert not os.listdir(place)


# --- access ---

@pytest.mark.parametrize("chroot", ["no"] + ["yes"] * IS_ROOT)
def test_s096_s098_names_are_looked_up_before_the_root_changes(place, tree, chroot):
    try:
        name = socket.gethostbyaddr("127.0.0.1")[0]
        assert socket.gethostbyname(name).startswith("127.")
    except (OSError, AssertionError):
        pytest.skip("the loopback address has no name here")
    config = f"""use chroot = {chroot}
{IDENTITY}[allowed]
path = {tree}
hosts allow = {name}
[denied]
path = {tree}
hosts deny = {name}
[other]
path = {tree}
hosts allow = other.invalid
"""
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        with raw_client.over_tcp(daemon.port, "allowed", ["-r"]) as client:
            client.send_rules()
            assert "f" in client.read_list()
            client.abandon()
        for module in ("denied", "other"):
            with pytest.raises(raw_client.Closed, match="access denied"):
                raw_client.over_tcp(daemon.port, module, ["-r"])


@pytest.mark.parametrize("token", ["nosuch.invalid", "10.0.0.0/99", "127.0.0.1/x", "[::1",
                                   "127.0.0.0/255.255.256.0", "127.0.0.1/"])
def test_s097_deny_tokens_that_mean_nothing_deny(place, tree, token):
    config = f"use chroot = no\n{IDENTITY}[ok]\npath = {tree}\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        with open(daemon.config_file, "a") as file:
            file.write(f"[bad]\npath = {tree}\nhosts deny = {token}\n")
        with pytest.raises(raw_client.Closed):
            raw_client.over_tcp(daemon.port, "bad", ["-r"])


@pytest.mark.parametrize("option", ["--remove-source-files", "--remove-sent-files"])
def test_s106_s107_removal_in_every_spelling(daemon, tree, option):
    for extra in ([option], [option, "--list-only"], [option, "-n"]):
        with raw_client.over_tcp(daemon.port, "mod", ["-r", *extra]) as client:
            client.send_rules()
            client.message(raw_client.MSG_SUCCESS, struct.pack("<i", 1))
            outcome = client.end()
        assert outcome.code not in (0, None) and "read-only module" in outcome.text, outcome
    assert os.path.exists(os.path.join(tree, "f"))


def test_s106_a_push_is_refused(daemon, tree):
    words = ["--server", "-re.LsfxCIu", ".", "mod/"]
    client = raw_client.Client(raw_client.connect(daemon.port))
    with client:
        client.greet("mod", words)
        client.set_up()
        outcome = client.end()
    assert outcome.code not in (0, None) and "read only" in outcome.text, outcome


REFUSED_WORDS = {"checksum": ["-c", "--checksum", "-rc"],
                 "compress": ["-z", "--compress", "--compress-choice=zstd", "--zc=lz4"],
                 "remove-source-files": ["--remove-source-files", "--remove-sent-files"], "links": ["-l", "--links"],
                 "delete": ["--delete", "--del", "--delete-during"], "compress-threads": ["--compress-threads=2", "--zt=2"],
                 "copy-links": ["-L", "--copy-links"]}


@pytest.mark.parametrize("secluded", [False, True])
@pytest.mark.parametrize("option", REFUSED_WORDS)
def test_s107_every_spelling_in_both_lists(place, tree, option, secluded):
    config = f"use chroot = no\n{IDENTITY}[mod]\npath = {tree}\nread only = no\nrefuse options = {option}\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        for word in REFUSED_WORDS[option]:
            client = raw_client.Client(raw_client.connect(daemon.port))
            with client:
                if secluded:
                    client.greet("mod", ["--server", "--sender", "-se.LsfxCIu"])
                    client.send(b"rsync\0" + word.encode() + b"\0-r\0.\0mod/\0\0")
                else:
                    client.greet("mod", ["--server", "--sender", "-re.LsfxCIu", word, ".", "mod/"])
                client.set_up()
                outcome = client.end()
            assert "refuse" in outcome.text or "unknown option" in outcome.text, (word, outcome)
            assert not client.stream, word


def test_s109_files_with_the_names_of_options(place):
    os.mkdir(f"{place}/m")
    for name in ("-n", "--version", "--daemon", "-r", "--no-relative"):
        trees.write(f"{place}/m/{name}", b"a file")
    with harness.Daemon(harness.HUAI, f"use chroot = no\n{IDENTITY}[mod]\npath = {place}/m\n", place) as daemon:
        with raw_client.over_tcp(daemon.port, "mod", ["-d"], ["mod/*"]) as client:
            client.send_rules()
            entries = client.read_list()
            assert sorted(entries) == sorted(os.listdir(f"{place}/m"))
            client.request(entries["-n"])
            client.read_reply()
            assert client.read_content()[1] == b"a file"
            client.abandon()


def test_s110_the_second_list_is_the_last(daemon):
    """A marker inside the second list must not open a third one that nobody has judged."""
    client = raw_client.Client(raw_client.connect(daemon.port))
    with client:
        client.greet("mod", ["--server", "--sender", "-s"])
        client.send(b"rsync\0-s\0-re.LsfxCIu\0.\0mod/../../etc\0\0rsync\0--daemon\0.\0/etc\0\0")
        try:
            client.set_up()
            client.send_rules()
            client.read_list()
        except raw_client.Closed:
            pass
        outcome = client.abandon()
    assert "passwd" not in outcome.text and outcome.code != 0, outcome


def test_s112_a_converter_that_answers_badly_maps_nobody_to_root(place):
    """The names of the list are those of the converter, and an answer that is no name is no name."""
    trees.write(f"{place}/f", b"x", owner=(4321, 4321))
    with open(f"{place}/converter", "w") as file:
        file.write('#!/bin/sh\nwhile read line; do printf "%s\\n" "$(head -c 400 /dev/zero | tr "\\0" r)"; done\n')
    os.chmod(f"{place}/converter", 0o755)
    config = f"use chroot = no\n{IDENTITY}numeric ids = no\n[mod]\npath = {place}\nname converter = {place}/converter\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        result = harness.run(harness.STOCK, "-a", daemon.url("mod/f"), f"{place}/out/", timeout=20)
        if result.code == 0 and IS_ROOT:
            assert os.stat(f"{place}/out/f").st_uid == 4321
        assert b"rrrr" not in result.stdout + result.stderr


@pytest.mark.parametrize("option", ["--files-from=/hidden/names", "--files-from=hidden/names",
                                    "--files-from=d/../hidden/names"])
def test_s113_option_paths_that_the_module_hides(daemon, option):
    with raw_client.over_tcp(daemon.port, "hide", ["-r", option, "--no-relative"], set_up=False) as client:
        try:
            client.set_up()
            client.send_rules()
            names = client.read_list()
        except raw_client.Closed:
            names = {}
        outcome = client.abandon()
    assert "f" not in names and outcome.code != 0, outcome


@pytest.mark.parametrize("rule", [b": hiderules", b": /hiderules", b":n hiderules"])
def test_s113_merge_files_that_the_module_hides(daemon, rule):
    with raw_client.over_tcp(daemon.port, "mod", ["-r"]) as client:
        client.send_rules(rule)
        assert "f" not in client.read_list(), "where nothing is hidden the rules are in force"
        client.abandon()
    with raw_client.over_tcp(daemon.port, "hide", ["-r"]) as client:
        client.send_rules(rule)
        assert "f" in client.read_list(), "the rules of a hidden file are not in force"
        client.abandon()


@pytest.mark.core
@pytest.mark.parametrize("rule", [b". /hidden/rules", b". hidden/rules", b"merge d/../hidden/rules", b".e /etc/passwd"])
def test_s113_merge_rules_are_for_the_client_to_read(opened, rule):
    with opened("-r") as client:
        client.send_rules(rule)
        refused(client.end(), 1)


# --- leaks ---

@pytest.mark.core
@pytest.mark.parametrize("rule", [b". /secretive", b": secretive", b". secretive", b":C secretive", b".e /secretive",
                                  b".- secretive"])
def test_s121_text_of_files_is_not_told(opened, rule):
    if opened.kind == "shell":
        rule = rule.replace(b"/secretive", os.fsencode(f"{opened.tree}/secretive"))
    with opened("-r") as client:
        client.send_rules(rule)
        outcome = client.abandon()
    assert "frobnicate" not in outcome.text and "the-secret-word" not in outcome.text, outcome


def test_s121_names_of_merge_files_in_merge_files_are_not_told(opened):
    with opened("-r") as client:
        client.send_rules(b": .inner")
        outcome = client.abandon()
    assert "the-secret-name" not in outcome.text, outcome


LEAKY = [(["-r"], ["absent"], [b". /absent"]), (["-r"], ["fifo/x"], [b". absent"]), (["-r", "--files-from=absent"], [""], []),
         (["-r", "--files-from=d"], [""], []), (["-r"], ["d/x/y"], [b": d"]), (["-r", "--temp-dir=absent"], [""], []),
         (["-r", "--partial-dir=/absent"], [""], []), (["-r", "--link-dest=absent"], [""], []),
         (["-r"], ["link/x"], [b". link/x"]),
         (["-r"], ["a" * 300], [b". " + b"a" * 300])]


@pytest.mark.parametrize("options, names, rules", LEAKY, ids=[str(number) for number in range(len(LEAKY))])
def test_s122_no_word_shows_where_the_module_is(daemon, tree, options, names, rules):
    with raw_client.over_tcp(daemon.port, "mod", options, [f"mod/{name}" for name in names], set_up=False) as client:
        try:
            client.set_up()
            client.send_rules(*rules)
        except raw_client.Closed:
            pass
        outcome = client.abandon()
    assert tree not in outcome.text and os.path.dirname(tree) not in outcome.text, outcome


@pytest.mark.parametrize("options, path", [(["-r"], "{}"), (["-r", "--files-from={}/names"], ""), (["-r"], "{}/rules"),
                                           (["-d"], "{}/r*")])
def test_s123_hidden_is_absent(daemon, options, path):
    outcomes = []
    for name in ("hidden", "phantom" if "{}" in options[-1] else "absent"):  # option paths: refused by their name alone
        words = [option.format(name) for option in options]
        with raw_client.over_tcp(daemon.port, "hide", words, [f"hide/{path.format(name)}"], set_up=False) as client:
            try:
                client.set_up()
                client.send_rules()
            except raw_client.Closed:
                pass
            outcome = client.abandon()
            outcomes.append((outcome.code, outcome.text.replace(name, "NAME"), [code for code, _ in client.messages]))
    assert outcomes[0] == outcomes[1]


def test_s117_control_bytes_of_a_session_are_escaped_in_the_log(daemon, tree):
    start = len(daemon.log())
    with raw_client.over_tcp(daemon.port, "mod", ["-r"], ["mod/no\x1b[31msuch\x9b\r\nname"]) as client:
        client.send_rules()
        client.message(raw_client.MSG_INFO, b"forged\n\x1b]0;title\x07line\n")
        client.message(raw_client.MSG_ERROR, b"\x1b[2J")
        client.abandon()
    with raw_client.connect(daemon.port) as connection:
        connection.sendall(b"@RSYNCD: \x1b[31m\n")
        while connection.recv(4096):
            pass
    with open(daemon.log_file, "rb") as file:
        text = file.read()[start:]
    assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", text), text
    assert b"\x9b" not in text


def test_s127_seeds_are_not_to_be_guessed(opened):
    seeds, began = [], time.time()
    for _ in range(24):
        with opened("-r", names=["d/"]) as client:
            seeds.append(client.seed & 0xffffffff)
            client.abandon()
    assert len(set(seeds)) == len(seeds)
    assert max(seeds) - min(seeds) > 2**28, seeds  # from one moment and neighbouring processes they would lie close together
    assert sum(abs(seed - int(began)) < 2**16 for seed in seeds) < 2


@pytest.mark.parametrize("chroot", ["no"] + ["yes"] * IS_ROOT)
def test_s129_an_empty_module_has_the_defaults(place, tree, chroot):
    os.mkdir(f"{place}/m")
    trees.write(f"{place}/m/f", b"x")
    trees.symlink("/rsyncd-munged/target", f"{place}/m/link")
    config = f"[mod]\npath = {place}/m\n" + ("use chroot = no\n" if chroot == "no" else "")
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        with raw_client.connect(daemon.port) as connection:  # listed
            connection.sendall(b"@RSYNCD: 32.0 md5\n#list\n")
            answer = b""
            while part := connection.recv(4096):
                answer += part
        assert b"mod" in answer.split(b"\n")[1]
        with raw_client.over_tcp(daemon.port, "mod", ["-rlvvvv"]) as client:
            client.send_rules()
            entries = client.read_list()
            assert (raw_client.MSG_IO_TIMEOUT, struct.pack("<i", 600)) in client.messages
            # In a chroot what is written is what is read; elsewhere links are munged.
            assert entries["link"].target == (b"target" if chroot == "no" else b"/rsyncd-munged/target")
            assert len(client.words().splitlines()) < 5, client.words()  # verbosity 1
            with open(f"/proc/{server_process(client, daemon)}/status") as file:
                status = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
            if IS_ROOT:
                assert status["Uid"].split() == ["65534"] * 4 and status["Gid"].split() == ["65534"] * 4
                assert status["Groups"].split() in ([], ["65534"]) and status["NoNewPrivs"] == "1"
            with open(f"/proc/{server_process(client, daemon)}/limits") as file:
                assert re.search(r"Max core file size +0 +0 ", file.read())
            client.abandon()
        client = raw_client.Client(raw_client.connect(daemon.port))
        with client:
            client.greet("mod", ["--server", "-re.LsfxCIu", ".", "mod/"])
            client.set_up()
            assert "read only" in client.end().text


def test_s130_a_listener_lives_through_hostile_connections(daemon):
    """Connections that end in every phase, with a reset: the listener serves the next one."""
    greeting = b"@RSYNCD: 32.0 md5\n"
    for data in (b"", b"\0" * 2000, greeting, greeting + b"mod\n", greeting + b"mod\n--server\0--sender\0-r\0.\0mod/\0\0",
                 os.urandom(5000)):
        connection = raw_client.connect(daemon.port)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(data)
        connection.close()
    daemon.process.send_signal(signal.SIGPIPE)
    with raw_client.over_tcp(daemon.port, "mod", ["-r"], ["mod/d/"]) as client:
        client.send_rules()
        entries = client.read_list()
        client.request(entries["x"])
        client.read_reply()
        assert hashlib.md5(client.read_content()[1]).hexdigest() == hashlib.md5(b"x in d").hexdigest()
        assert client.say_done().text == ""
