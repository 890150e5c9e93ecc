# SPDX-License-Identifier: GPL-3.0-or-later
"""What protocol 33 has brought: the count of blocks that a receiving server sends, and nothing else
(doc/protocol/09-since-3.5.0.md section 2).

Sessions of 3.5.1, captured, are said again to our server; our own sessions go through a proxy that sees and changes frames.
"""
import json
import os
import re
import shutil
import struct
import sys

import pytest

import harness
import local_jobs
import raw_client
import test_sender
import trees

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="files get the owners of the captured tree")
PROXY = os.path.join(harness.SOURCE, "testsuite", "system", "frame_proxy.py")
BLOCK_STATS = 11


# --- pushes of 3.5.1 ---

def frames_of(stream):
    """Set-up and frames of a server's stream, which starts with text of unknown length."""
    for start in range(len(stream)):
        at, frames = start, []
        while at + 4 <= len(stream):
            word = struct.unpack_from("<I", stream, at)[0]
            length, code = word & 0xffffff, (word >> 24) - raw_client.TAG_BASE
            if code not in (0, 1, 2, 3, 4, BLOCK_STATS, 22, 33, 101, 102) or at + 4 + length > len(stream):
                break
            frames.append((code, stream[at + 4:at + 4 + length]))
            at += 4 + length
        if at == len(stream) and sum(len(payload) for _, payload in frames) > 8:
            return start, frames
    return None


def data_of(frames):
    return b"".join(payload for code, payload in frames if code == 0)


class Reader(raw_client.Client):
    """Takes units out of a stream that has come already."""

    def __init__(self, data):
        super().__init__(None)
        self.stream += data
        self.closed = True


def read_unit(client, has_data):
    """(kind, index, flags, head) of what a receiving server says next; deletion statistics are left out."""
    ndx = client.ndx()
    if ndx == raw_client.NDX_DEL_STATS:
        for _ in range(5):
            client.varint()
        return read_unit(client, has_data)
    if ndx < 0:
        return ndx, 0, b""
    flags = client.short()
    basis = bytes([client.byte()]) if flags & raw_client.ITEM_BASIS else b""
    name = client.vstring() if flags & raw_client.ITEM_XNAME else b""
    head = b""
    if flags & raw_client.ITEM_TRANSFER and has_data:
        head = client.read(16)
        count, _, strong, _ = struct.unpack("<4i", head)
        client.read(count * (4 + strong))
    return ndx, flags, basis + name + head


def take_reply(client, unit, has_data):
    """The bytes behind the index of a client's answer to that unit, out of what it said."""
    ndx = client.ndx()
    assert ndx == unit[0]
    before = bytes(client.stream)
    if ndx >= 0:
        flags = client.short()
        assert flags == unit[1]
        client.read(len(unit[2]) + bool(flags & raw_client.ITEM_XNAME))
        if flags & raw_client.ITEM_TRANSFER and has_data:
            while token := client.int():
                client.read(max(token, 0))
            client.read(16)
    return before[:len(before) - len(client.stream)]


class CapturedPush:
    """One session, taken apart: what the client says at first, the server's units, and the client's answers to them."""

    def __init__(self, name):
        streams = {}
        for side in ("c2s", "s2c"):
            with open(os.path.join(test_sender.CAPTURES, f"3.5.1-{name}.{side}"), "rb") as file:
                streams[side] = file.read()
        self.has_data = name != "push-dry"
        _, self.answer = frames_of(streams["s2c"])
        start = streams["c2s"].index(b"\x1exxh128") + 31
        self.greeting = streams["c2s"][:start]
        self.said = b""
        while start < len(streams["c2s"]):
            length = struct.unpack_from("<I", streams["c2s"], start)[0] & 0xffffff
            self.said += streams["c2s"][start + 4:start + 4 + length]
            start += 4 + length
        reader = Reader(data_of(self.answer))
        self.units = []
        while reader.stream:
            self.units.append(read_unit(reader, self.has_data))
        # The lists end where the first item is answered.
        first = next(number for number, unit in enumerate(self.units) if unit[1] & raw_client.ITEM_TRANSFER)
        echo = raw_client.NdxWriter()
        sign = b"".join(echo(ndx) + struct.pack("<H", flags) + rest for ndx, flags, rest in self.units[:first + 1])
        self.lists = self.said[:self.said.index(sign)]
        answers = Reader(self.said[len(self.lists):])
        # The goodbye is not answered.
        self.replies = [(unit[0], take_reply(answers, unit, self.has_data)) for unit in self.units[:-1]]
        assert not answers.stream

    def say_again(self, port):
        """Answer each unit of our server as 3.5.1 answered its own; returns units and messages."""
        with raw_client.Client(raw_client.connect(port)) as client:
            client.protocol = int(self.greeting[9:11])
            client.send(self.greeting)
            line = b""
            while line != b"@RSYNCD: OK\n":
                line = b""
                while not line.endswith(b"\n"):
                    line += client.read(1)
            client.compat = client.varint()
            client.vstring()
            client.seed = client.int()
            client.raw, client.stream, client.mux = client.stream, bytearray(), True
            client.take_frames()
            client.data(self.lists)
            units, replies = [], list(self.replies)
            while replies:
                ndx, *rest = read_unit(client, self.has_data)
                # The top directory has two indices; which of several files comes first is the receiver's business.
                units.append((0 if ndx == 1 and client.compat & 1 else ndx, *rest))
                reply = next((reply for reply in replies if reply[0] == units[-1][0]), None)
                assert reply, units
                replies.remove(reply)
                client.data(client.write_ndx(ndx) + reply[1])
            units.append(read_unit(client, self.has_data))
            client.end()
            return units, client.messages


def contents(top):
    found = {}
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            if not os.path.islink(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = (file.read(), int(os.stat(path).st_mtime), os.stat(path).st_mode)
    return found


@root_only
@pytest.mark.parametrize("name, count", [("push-delta-delete", 24), ("push-inplace-late", 16), ("push-dry", 0)])
def test_captured_push_is_received_as_by_its_own_server(place, name, count):
    """Requests, flags and messages are those of the session, and so is what has come. (With -H, as in the other two, which member of
    a group is asked for is the receiver's choice, and the client's answer is not to be had.)"""
    up = f"{place}/up"
    os.mkdir(up)
    if name != "push-dry":
        new = bytes((7 * i + i // 256) % 256 for i in range(70000))
        trees.write(f"{up}/b.bin", new[:35000] + b"!" + new[35000:], 0o644, 10**9)
        trees.write(f"{up}/extra", b"x", 0o644, 10**9)
    capture = CapturedPush(name)
    config = f"use chroot = no\ntimeout = 0\nuid = 0\ngid = 0\nread only = no\n[up]\npath = {up}\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        units, messages = capture.say_again(daemon.port)
    assert sorted(units) == sorted(capture.units), daemon.log()
    assert sorted(messages) == sorted((code, payload) for code, payload in capture.answer if code)
    assert [payload for code, payload in messages if code == BLOCK_STATS] == [struct.pack("<q", count)]
    assert "rsync error" not in daemon.log()
    if name == "push-dry":
        assert os.listdir(up) == []
        return
    test_sender.captured_module(f"{place}/mod")
    assert contents(up) == contents(f"{place}/mod")


# --- our sessions, frame by frame ---

class Proxied:
    """A source, and runs of ours through the proxy."""

    def __init__(self, place):
        self.place = place
        local_jobs.make_trees(place)

    def run(self, way, *options, down=None, up=None, client=harness.HUAI, server=harness.HUAI):
        with open(f"{self.place}/plan", "w", encoding="utf-8") as file:
            json.dump({"log": f"{self.place}/frames", "down": down or {}, "up": up or {}}, file)
        shell = ["-e", f"{sys.executable} {PROXY} {self.place}/plan", f"--rsync-path={server}"]
        ends = {"push": [f"{self.place}/src/", f"h:{self.place}/dst/"], "pull": [f"h:{self.place}/src/", f"{self.place}/dst/"]}[way]
        return harness.run(client, "-r", *options, *shell, *ends, cwd=self.place)

    def frames(self):
        with open(f"{self.place}/frames", encoding="utf-8") as file:
            return [(direction, code, bytes.fromhex(payload)) for direction, code, payload in map(json.loads, file)]

    def counts(self):
        return [(direction, payload) for direction, code, payload in self.frames() if code == BLOCK_STATS]


@pytest.fixture
def proxied(place):
    return Proxied(place)


@pytest.mark.parametrize("options, count", [
    ("", 52), ("--delete-after --stats -vv", 52), ("--delay-updates --no-i-r", 52), ("-n", 0), ("--list-only", 0),
    ("--only-write-batch=B", 0), ("--exclude=* --delete", 0),
])
def test_push_gets_one_count_before_the_goodbye(proxied, options, count):
    result = proxied.run("push", *options.split())
    assert result.code == 0, result.text
    assert proxied.counts() == [("down", struct.pack("<q", count))], result.text
    down = [(code, payload) for direction, code, payload in proxied.frames() if direction == "down"]
    behind = data_of(down[[code for code, _ in down].index(BLOCK_STATS):])
    assert behind.endswith(b"\0") and len(behind) <= 9, behind


def test_push_that_fails_in_part_gets_its_count(proxied):
    with open(f"{proxied.place}/names", "wb") as names:
        names.write(b"f\nmissing\n")
    result = proxied.run("push", "-I", "--files-from=names")
    assert result.code == 23, result.text
    assert proxied.counts() == [("down", struct.pack("<q", 1))]


def test_pull_has_no_count_in_either_direction(proxied):
    result = proxied.run("pull", "--stats")
    assert result.code == 0 and proxied.counts() == [], result.text
    assert b"\nNumber of 4 KiB logical blocks touched: 52\n" in result.stdout


@pytest.mark.parametrize("way, options, client, server", [
    ("push", "--protocol=32", harness.HUAI, harness.HUAI), ("push", "", harness.STOCK, harness.HUAI),
    ("push", "", harness.HUAI, harness.STOCK), ("pull", "--protocol=32", harness.HUAI, harness.HUAI),
    ("push", "--protocol=29", harness.HUAI, harness.HUAI),
])
def test_older_sessions_have_neither_count_nor_line(proxied, way, options, client, server):
    if options == "--protocol=29":  # the proxy knows the set-up of 30 and later
        shell = harness.make_remote_shell(proxied.place)
        result = harness.run(client, "-r", "--stats", options, "-e", shell, f"--rsync-path={server}", f"{proxied.place}/src/",
                             f"h:{proxied.place}/dst/")
    else:
        result = proxied.run(way, *options.split(), "--stats", client=client, server=server)
        assert proxied.counts() == []
    assert result.code == 0 and b"Literal data" in result.stdout and b"4 KiB" not in result.stdout, result.text


def count_frame(payload, code=BLOCK_STATS):
    return raw_client.frame(code, payload).hex()


GOOD = struct.pack("<q", 7)


@pytest.mark.parametrize("plan, shown", [
    ({"instead": ""}, b"0"), ({"instead": count_frame(GOOD) * 2}, b"7"),
    ({"instead": count_frame(struct.pack("<q", 3)) + count_frame(GOOD)}, b"7"),
    ({"first": count_frame(GOOD), "instead": ""}, b"7"), ({"instead": count_frame(struct.pack("<q", -1))}, b"0"),
    ({"instead": count_frame(struct.pack("<q", 2**63 - 1))}, b"9,223,372,036,854,775,807"), ({"last": count_frame(GOOD)}, None),
])
def test_pushing_client_takes_what_count_it_gets(proxied, plan, shown):
    """None, several, early, late, out of all proportion: the session ends well, and the last one is shown."""
    result = proxied.run("push", "--stats", down=plan)
    assert result.code == 0, result.text
    line = re.search(rb"^Number of 4 KiB logical blocks touched: (.*)$", result.stdout, re.M).group(1)
    assert line == shown or (shown is None and line in (b"7", b"52")), result.text


@pytest.mark.parametrize("payload", [b"", b"1234", b"1234567", b"123456789"])
def test_counts_of_another_length_end_a_push(proxied, payload):
    result = proxied.run("push", down={"first": count_frame(payload)})
    assert result.code == 12 and b"invalid multi-message 11:%d [sender]" % len(payload) in result.stderr, result.text


@pytest.mark.parametrize("way, options, plan, code, words", [
    ("pull", "", {"down": {"first": count_frame(GOOD)}}, 12, b"invalid multi-message 11:8 ["),
    ("push", "", {"up": {"first": count_frame(GOOD)}}, 12, b"invalid multi-message 11:8 ["),
    ("pull", "", {"up": {"first": count_frame(GOOD)}}, 0, b""),
    ("push", "--protocol=32", {"down": {"first": count_frame(GOOD)}}, 12, b"unexpected tag 11 ["),
    ("pull", "--protocol=32", {"up": {"first": count_frame(GOOD)}}, 12, b"unexpected tag 11 ["),
])
def test_who_may_get_a_count(proxied, way, options, plan, code, words):
    """A sending side of protocol 33; others end the session."""
    result = proxied.run(way, *options.split(), **plan)
    # A client that is writing to the server when that ends the session may hear of the pipe first.
    is_the_servers = way == "pull" and "up" in plan and code
    assert result.code in ((code, 10) if is_the_servers else (code,)) and words in result.stderr, result.text
