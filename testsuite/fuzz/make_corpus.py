#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Seeds for the fuzzing harnesses from captured sessions: make_corpus.py --captures DIR --output DIR HARNESS...

Every harness gets, from the sessions of eleven releases, the client's bytes as they are, without greeting and arguments, and with
the multiplexing taken off; and the same cut at a few places, since a harness usually starts in the middle of a session. The first
byte of a harness's input chooses protocol, role or form, so each seed gets two arbitrary ones in front.

The reader of attr snapshots gets snapshots instead, whose sums the harness sets right; the reader of tokens gets streams of all
methods (two bytes of shape, then what a sender writes); that of file lists gets the lists. Harnesses that run the whole program
record their own seeds (`make fuzz-record`); but a daemon is given the captured sessions.
"""
import argparse
import hashlib
import os
import struct
import zlib

LONGEST = 8192
CUTS = (4, 16, 64, 256)
RECORDED = {"fuzz_" + topic for topic in ("batch", "client_daemon", "client_pull", "client_push", "command", "config", "local_rules",
                                          "server_receive", "server_send", "snapshot_use")}


def after_arguments(data):
    """What a client sends once its greeting, the module and the arguments are through; None if it never gets there."""
    line = data.find(b"\n")
    if not data.startswith(b"@RSYNCD: ") or line < 0:
        return None
    protocol = int(data[9:line].split(b".")[0])
    position = data.index(b"\n", line + 1) + 1
    end = b"\0\0" if protocol >= 30 else b"\n\n"
    found = data.find(end, position)
    return data[found + 2:] if found >= 0 else None


def arguments(data):
    rest = after_arguments(data)
    return data[: len(data) - len(rest)] if rest is not None else None


def demultiplexed(data):
    """The payload of a stream of frames, from the first place where frames fit up to the end; None if there is none."""
    for start in range(min(200, len(data))):
        position, payload = start, b""
        while position + 4 <= len(data):
            (header,) = struct.unpack_from("<I", data, position)
            length, tag = header & 0xFFFFFF, (header >> 24) - 7
            if tag < 0 or tag > 110 or position + 4 + length > len(data):
                break
            payload += data[position + 4:position + 4 + length] if tag == 0 else b""
            position += 4 + length
        if position == len(data) and payload:
            return payload
    return None


def seeds(captures):
    for name in sorted(os.listdir(captures)):
        if not name.endswith((".c2s", ".s2c")):
            continue
        with open(os.path.join(captures, name), "rb") as file:
            data = file.read()
        forms = [data, demultiplexed(data)]
        if name.endswith(".c2s"):
            rest = after_arguments(data)
            forms += [arguments(data), rest, demultiplexed(rest) if rest else None]
        for form in forms:
            if form:
                yield form[:LONGEST]
                yield from (form[cut:cut + LONGEST] for cut in CUTS if cut < len(form))


def snapshot_entry(mode, name, text, size=0, flags=0, side=0, number=0):
    return struct.pack("<QqIHHIIIHHII", size, 1700000000, 5, mode, flags, 1000, 100, name, len(text), 0, side, number)


def snapshot_directories(levels):
    """One chain of directories with a file, a symlink, a device and a hard link in each: dirs, entries, sides, names."""
    dirs, entries, sides, names = b"", snapshot_entry(0o040755, 0, b"."), b"", b".\0"
    for level in range(levels):
        is_last = level == levels - 1
        dirs += struct.pack("<QQqIIIIIIIHH", len(names), level + 2, 1600000000 * 10**9, len(entries) // 48, 4 if is_last else 5, 4,
                            max(level - 1, 0), 4 if level else 0, levels, level * 3, 0, 0)
        entries += snapshot_entry(0o020666, 0, b"dev", side=1) + snapshot_entry(0o100644, 4, b"file", size=7)
        entries += snapshot_entry(0o100600, 9, b"hard", size=1, flags=8, side=2) + snapshot_entry(0o120777, 14, b"link", side=3)
        sides += struct.pack("<IIQ", 1, 3, 0) + struct.pack("<IIQ", 0, 0, 99)
        sides += struct.pack("<IIQ", 19 if is_last else 23, 4, 0)
        names += b"dev\0file\0hard\0link\0"
        if not is_last:
            entries += snapshot_entry(0o040755, 19, b"sub", size=4096, number=level + 1)
            names += b"sub\0"
        names += b"file\0"
    return dirs, entries, sides, names


def snapshot(levels, is_plain):
    """An attr snapshot, attr-snapshot(5), but for the sums."""
    dirs, entries, sides, names = snapshot_directories(levels)
    count = len(entries) // 48
    facts = struct.pack("<QqIIQQQQIIHHHH", 3, 1700000000, 0, 0, 77, 2, count, 8 * levels, levels, 0, 4, 1, 0, 0)
    chunks = {b"facts": facts + b"/srv\0v\0\0", b"dirs": dirs, b"entries": entries, b"sides": sides, b"names": names,
              b"devices": struct.pack("<Q", 77)}
    if not is_plain:
        is_file = [entry * 48 + 21 < len(entries) and entries[entry * 48 + 21] >> 4 == 8 for entry in range(count)]
        chunks[b"owners"] = struct.pack("<IHH", 1000, 0, 3) + b"ann\0" + struct.pack("<IHH", 100, 1, 5) + b"users\0\0\0"
        chunks[b"atimes"] = b"".join(struct.pack("<q", 1 if file else 0) for file in is_file)
        chunks[b"origins"] = b"".join(struct.pack("<QqII", 5, 6, 7, 3 if file else 0) for file in is_file)
        chunks[b"xxh128"] = chunks[b"md5"] = b"0123456789abcdef" * count
    table, content, start = b"", b"", 32 + 40 * len(chunks)
    for tag, chunk in chunks.items():
        content += bytes(-(start + len(content)) % 64)
        table += struct.pack("<8sQQQII", tag, start + len(content), len(chunk), 0, 1, 0)
        content += chunk
    return struct.pack("<8sIIQQ", b"attrsnap", 1, len(chunks), start + len(content), 0) + table + content


def snapshot_seeds():
    """By the first byte, the harness sets sums and length right."""
    for levels in (1, 2, 5):
        for is_plain in (False, True):
            yield b"\3" + snapshot(levels, is_plain)


def token_streams():
    """By method as the harness numbers them: literals, blocks, runs of blocks, two files."""
    digest = b"digest.."
    blocks = b"\x80\x20\x40\0\0\0\x21\x82\0\0\0\1\0\xc5\2\0"
    text = b"abcabcabcabcdefg" * 40
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    first = (packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
    second = (packer.compress(text[5:]) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
    deflated = b"\x40" + bytes([len(first)]) + first + blocks + b"\x40" + bytes([len(second)]) + second + b"\0" + digest
    yield 0, struct.pack("<i5siiii", 5, b"abcde", -1, -2, -100, 0) + digest + struct.pack("<i3si", 3, b"xyz", 0) + digest
    yield 1, deflated * 2
    yield 2, deflated * 2
    yield 3, (b"\x40\x0c\x28\xb5\x2f\xfd\0\x58\x18\0\0abc" + blocks + b"\0" + digest + b"\x40\x09\x30\0\0abcdef\0" + digest)
    yield 4, b"\x40\4\x30abc" + blocks + b"\x40\7\x60abcdef\0" + digest


def token_seeds():
    for method, stream in token_streams():
        for shape in (0, 0x20, 0x40, 0x80, 0xa0):
            choice = next(choice for choice in range(shape & 0xe0, 256) if choice % 5 == method and choice & 0xf0 == shape)
            yield from (bytes([1, choice, kind]) + stream for kind in (0, 3, 5, 11, 0x4d, 0xa5))
    yield from (bytes([0, choice, 5]) + bytes(range(1, 255, 2)) * 3 for choice in range(10))


def list_seeds(captures):
    """Whole lists of captured sessions, under the session and the options that they were made with."""
    for name in sorted(os.listdir(captures)):
        if not name.endswith(".s2c"):
            continue
        job = name[:-4].split("-", 1)[1]
        with open(os.path.join(captures, name[:-4] + ".c2s"), "rb") as file:
            said = file.read()
        protocol = int(said[9:11])
        with open(os.path.join(captures, name), "rb") as file:
            payload = demultiplexed(said if job.startswith("push") else file.read())
        is_varint = name.split("-")[0] >= "3.2"
        first = protocol - 27 | (8 if protocol >= 30 else 0) | (0x10 if is_varint else 0) | (0x20 if job == "relative-file" else 0)
        second = {"list": 0, "archive": 0x0F, "push": 0x0F, "push-p32": 0x0F, "checksum-numeric": 0x97}.get(job, 7)
        if payload:
            yield bytes([first, second, 0]) + payload[:LONGEST]
    yield from attribute_list_seeds()


def attribute_list_seeds():
    """Two entries with an ACL of two named entries and one attribute each of a short and a long value."""
    dot = bytes.fromhex("19012e0000106500f153ed410000")
    file = bytes.fromhex("8098026631000600a4810000")
    acls = b"\0\x12\4\2\x21\x12\x14\x18"
    xattrs = b"\0\2\7\2user.s\0ab\7\x21user.l\0" + bytes(16)
    for kept, choice in ((1, 1), (2, 2), (3, 3)):
        first = (acls if kept & 1 else b"") + (b"\0\0" if kept & 1 else b"") + (xattrs if kept & 2 else b"")
        second = (b"\1" if kept & 1 else b"") + (b"\1" if kept & 2 else b"")
        for level in (0, 8, 0x10, 0x18):
            yield bytes([0x1d, 6, choice | level]) + dot + first + file + second + b"\0\0" + b"\2\x21" + bytes(33) + b"\0"


def session_seeds(captures):
    """Captured clients from their first byte on, without pauses."""
    for name in sorted(os.listdir(captures)):
        if name.endswith(".c2s"):
            with open(os.path.join(captures, name), "rb") as file:
                yield b"\1\0" + file.read()[:LONGEST]


def write_seeds(harness, output, found):
    directory = os.path.join(output, os.path.basename(harness).removeprefix("fuzz_"))
    os.makedirs(directory, exist_ok=True)
    for seed in found:
        with open(os.path.join(directory, hashlib.sha1(seed).hexdigest()), "wb") as file:
            file.write(seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("harness", nargs="+")
    options = parser.parse_args()
    unique = set()
    for seed in seeds(options.captures):
        unique.update(bytes([choice]) + seed for choice in hashlib.sha1(seed).digest()[:2])
    special = {"fuzz_attrs_snapshot": snapshot_seeds, "fuzz_daemon": lambda: session_seeds(options.captures), "fuzz_delta_tokens": token_seeds,
               "fuzz_flist_receive": lambda: list_seeds(options.captures)}
    for harness in options.harness:
        if os.path.basename(harness) in RECORDED:
            continue
        own = special.get(os.path.basename(harness))
        write_seeds(harness, options.output, own() if own else unique)
    print(f"{len(unique)} seeds for {len(options.harness)} harnesses")


if __name__ == "__main__":
    main()
