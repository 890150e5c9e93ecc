#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A remote shell that looks at the frames of a session, and may add, change or leave out some (doc/protocol/01-session.md
sections 7 and 9).

    rsync -e "frame_proxy.py PLAN.json" ...

The plan: "log", a file that gets one JSON list per frame, [direction, code, payload in hex]; and, for "down" (from the server) and "up",
{"first": bytes in front of the first frame, "instead": bytes in place of each block-count message, "last": bytes behind the end},
all in hex.
"""
import json
import os
import struct
import subprocess
import sys
import threading

TAG_BASE, BLOCK_STATS = 7, 11


def take(stream, length):
    data = b""
    while len(data) < length:
        part = stream.read(length - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def take_vstring(stream):
    head = take(stream, 1)
    if head[0] & 0x80:
        head += take(stream, 1)
    length = head[0] if len(head) == 1 else (head[0] & 0x7f) << 8 | head[1]
    return head + take(stream, length)


class Direction:
    """Copies one of the two, set-up first."""

    def __init__(self, name, source, target, plan, log):
        self.name, self.source, self.target, self.log = name, source, target, log
        self.plan = {key: bytes.fromhex(value) for key, value in plan.get(name, {}).items()}

    def send(self, data):
        self.target.write(data)
        self.target.flush()

    def pass_set_up(self):
        self.send(take(self.source, 4))
        if self.name == "down":
            compat = take(self.source, 1)
            compat += take(self.source, 1) if compat[0] & 0x80 else b""
            self.send(compat)
            self.send(take_vstring(self.source))
            self.send(take(self.source, 4))
        else:
            self.send(take_vstring(self.source))

    def run(self):
        try:
            self.pass_set_up()
            self.send(self.plan.get("first", b""))
            while True:
                head = take(self.source, 4)
                length, code = struct.unpack("<I", head)[0] & 0xffffff, head[3] - TAG_BASE
                payload = take(self.source, length)
                self.log(self.name, code, payload)
                is_replaced = code == BLOCK_STATS and "instead" in self.plan
                self.send(self.plan["instead"] if is_replaced else head + payload)
        except (EOFError, OSError):
            pass
        try:
            self.send(self.plan.get("last", b""))
            self.target.close()
        except OSError:
            pass


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    words = [word for word in sys.argv[2:] if not word.startswith("-")] if sys.argv[2].startswith("-") else sys.argv[2:]
    server = subprocess.Popen(["sh", "-c", " ".join(words[1:])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
    lock = threading.Lock()
    with open(plan["log"], "w", encoding="utf-8") as out:
        def log(*frame):
            with lock:
                out.write(json.dumps([frame[0], frame[1], frame[2].hex()]) + "\n")

        client_in, client_out = os.fdopen(0, "rb", buffering=0), os.fdopen(1, "wb", buffering=0)
        up = Direction("up", client_in, server.stdin, plan, log)
        threading.Thread(target=up.run, daemon=True).start()
        Direction("down", server.stdout, client_out, plan, log).run()
        server.wait()
    os._exit(0)


if __name__ == "__main__":
    main()
