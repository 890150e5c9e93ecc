#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Seeds for the fuzzing harnesses from captured sessions: make_corpus.py --captures DIR --output DIR HARNESS...

Every harness gets, from the sessions of ten releases, the client's bytes as they are, without greeting and arguments, and with
the multiplexing taken off; and the same cut at a few places, since a harness usually starts in the middle of a session. The first
byte of a harness's input chooses protocol, role or form, so each seed gets two arbitrary ones in front.
"""
import argparse
import hashlib
import os
import struct

LONGEST = 8192
CUTS = (4, 16, 64, 256)


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("harness", nargs="+")
    options = parser.parse_args()
    unique = {}
    for seed in seeds(options.captures):
        digest = hashlib.sha1(seed).digest()
        for choice in digest[:2]:
            unique[f"{choice:02x}-{digest.hex()}"] = bytes([choice]) + seed
    for harness in options.harness:
        directory = os.path.join(options.output, os.path.basename(harness).removeprefix("fuzz_"))
        os.makedirs(directory, exist_ok=True)
        for name, seed in unique.items():
            with open(os.path.join(directory, name), "wb") as file:
                file.write(seed)
    print(f"{len(unique)} seeds for {len(options.harness)} harnesses")


if __name__ == "__main__":
    main()
