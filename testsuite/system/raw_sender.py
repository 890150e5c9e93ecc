# SPDX-License-Identifier: GPL-3.0-or-later
"""A sender that may say anything: a daemon that our client pulls from, or a client that pushes to our server
(doc/protocol/01-session.md to 03-transfer.md).

    with raw_sender.pulled("-r", target=d) as sender:
        sender.list(entry(b"../x"))
        assert sender.end().code == 4
"""
import hashlib
import os
import select
import socket
import struct
import subprocess
import tempfile
import time

import harness
import raw_client
from raw_client import NDX_DONE, frame, varint

FILE, DIRECTORY, SYMLINK, FIFO, CHARACTER = 0o100644, 0o40755, 0o120777, 0o10644, 0o20644
TOP_DIR, SAME_NAME, LONG_NAME, SAME_TIME, HLINKED, HLINK_FIRST, MOD_NSEC = 0x1, 0x20, 0x40, 0x80, 0x200, 0x1000, 0x2000
INC_RECURSE, SAFE_FLIST, VARINT_FLAGS = 0x01, 0x08, 0x80
TIME = 1_700_000_000


def varlong(value, least):
    """doc/protocol/01-session.md section 8."""
    low = struct.pack("<q", value)
    size = 8
    while size > least and low[size - 1] == 0:
        size -= 1
    bit = 1 << (7 - size + least)
    top = low[size - 1]
    if top >= bit:
        return bytes([bit | ~(bit - 1) & 0xff]) + low[:size]
    if size > least:
        return bytes([top | (~(bit * 2 - 1) & 0xff)]) + low[:size - 1]
    return low[size - 1:size] + low[:size - 1]


def entry(name, mode=FILE, size=0, mtime=TIME, flags=0, *, length=None, prefix=None, nsec=None, link=None, owner=b"", rdev=b"",
          target=None, target_length=None, more=b""):
    """One entry as it is sent at protocol 30 to 32, all of its fields in full. Fields that options bring are given as bytes:
    `link` the reference of a hard link, `owner` ids and names, `rdev` device numbers, `more` what follows (digest, attributes)."""
    length = len(name) if length is None else length
    is_long = not 0 <= length < 256
    flags |= (LONG_NAME if is_long else 0) | (SAME_NAME if prefix is not None else 0) | (0 if nsec is None else MOD_NSEC) | 0x04
    text = struct.pack("<H", flags)
    text += b"" if prefix is None else bytes([prefix])
    text += (varint(length) if is_long else bytes([length])) + name
    if link is not None and not flags & HLINK_FIRST:
        text += varint(link)
    text += varlong(size, 3)
    text += b"" if flags & SAME_TIME else varlong(mtime, 4)
    text += b"" if nsec is None else varint(nsec)
    text += struct.pack("<I", mode) + owner + rdev
    if target is not None:
        text += varint(len(target) if target_length is None else target_length) + target
    return text + more


ROOT = entry(b".", DIRECTORY, flags=TOP_DIR)


class Sender(raw_client.Client):
    """One session. `client` is the process that pulls, if it is one; of it the output is kept in files."""

    def __init__(self, connection, client=None, outputs=()):
        super().__init__(connection)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client, self.outputs = client, outputs
        self.words_received = []

    def __exit__(self, *exception):
        super().__exit__(*exception)
        if self.client:
            try:
                self.client.wait(raw_client.SECONDS)
            except subprocess.TimeoutExpired:
                self.client.kill()
                self.client.wait()
        for output in self.outputs:
            output.close()

    # --- as a daemon ---

    def read_line(self, end=b"\n"):
        line = b""
        while not line.endswith(end):
            line += self.read(1)
        return line[:-1]

    def be_a_daemon(self, motd, compat, checksums):
        """Up to where the rules of the client are expected."""
        self.send(b"@RSYNCD: %d.0 md5\n" % self.protocol)
        version = self.read_line().split()[1]
        self.protocol = min(self.protocol, int(float(version)))
        self.read_line()
        self.send(motd + b"@RSYNCD: OK\n")
        while word := self.read_line(b"\0" if self.protocol >= 30 else b"\n"):
            self.words_received.append(word)
        if self.protocol >= 30:
            self.send(varint(compat))
            if compat & VARINT_FLAGS:
                self.send(raw_client.vstring(checksums))
                self.vstring()
        self.send(struct.pack("<i", 12345))
        self.compat = compat
        if self.protocol >= 30:
            self.raw, self.stream = self.stream, bytearray()
            self.mux = True
            self.take_frames()
        while length := self.int():
            self.read(length)

    # --- the stream ---

    def data(self, payload):
        """Framed as a server's at any protocol."""
        self.send(b"".join(frame(raw_client.MSG_DATA, payload[at:at + 0xffff]) for at in range(0, len(payload), 0xffff)))

    def list(self, *entries, end=b"\0", after=b""):
        """The (first) list in one piece. `after`: id lists."""
        self.data(b"".join(entries) + end + after)

    def read_request(self):
        """The next index, its item and, of a request for data, the head of its checksums; those are skipped."""
        ndx = self.ndx()
        if ndx < 0:
            return ndx, 0, (0, 0, 0, 0)
        flags = self.short()
        if flags & raw_client.ITEM_BASIS:
            self.byte()
        if flags & raw_client.ITEM_XNAME:
            self.vstring()
        head = (0, 0, 0, 0)
        if flags & raw_client.ITEM_TRANSFER:
            head = struct.unpack("<4i", self.read(16))
            self.read(head[0] * (4 + head[2]))
        return ndx, flags, head

    def wait_for_request(self):
        """The first request for data; everything before it is agreed to."""
        while True:
            ndx, flags, head = self.read_request()
            if flags & raw_client.ITEM_TRANSFER:
                return ndx, head
            self.echo(ndx, flags)

    def echo(self, ndx, flags):
        self.data(self.write_ndx(ndx) + (struct.pack("<H", flags) if ndx >= 0 else b""))

    def reply(self, ndx, head=(0, 700, 16, 0), tokens=b"\0\0\0\0", digest=b"", flags=raw_client.ITEM_TRANSFER, extra=b""):
        """An item with data as is; `extra` follows its flags."""
        self.data(self.write_ndx(ndx) + struct.pack("<H", flags) + extra + struct.pack("<4i", *head) + tokens + digest)

    def reply_with(self, ndx, content, digest=None):
        self.reply(ndx, tokens=literal(content), digest=digest or hashlib.md5(content).digest())

    def serve(self, contents=None, digest=None):
        """Behave to the end of the session: give each request the content of its index, and agree to the rest."""
        phases = 0
        while phases < 3:
            ndx, flags, _ = self.read_request()
            if flags & raw_client.ITEM_TRANSFER:
                self.reply_with(ndx, (contents or {}).get(ndx, b""), digest)
            else:
                self.echo(ndx, flags)
                phases += ndx == NDX_DONE
        if self.client:
            self.data(bytes(15))  # statistics
        self.read_until_done()
        if self.protocol >= 31:
            self.data(self.write_ndx(NDX_DONE))
            self.read_until_done()

    def read_until_done(self):
        while self.read_request()[0] != NDX_DONE:
            pass

    def end(self, seconds=raw_client.SECONDS):
        """Read until the peer is gone; of a client its code and words."""
        if not self.client:
            return super().end(seconds)
        deadline = time.monotonic() + seconds
        while not self.closed:
            self.receive(max(0.01, deadline - time.monotonic()))
        code = self.await_client(seconds)
        text = ""
        for output in self.outputs:
            output.seek(0)
            text += os.fsdecode(output.read())
        return raw_client.Outcome(code, text, time.monotonic() - self.began)

    def await_client(self, seconds):
        """Its exit code, without the naps of wait(timeout)."""
        descriptor = os.pidfd_open(self.client.pid)
        ended = select.select([descriptor], [], [], seconds)[0]
        os.close(descriptor)
        assert ended, "the client has not ended"
        return self.client.wait()

    def behave(self, *entries, contents=None):
        """A whole session with this list, and its outcome: whatever was refused is among the words."""
        try:
            self.list(*entries)
            self.serve(contents)
        except raw_client.Closed:
            pass
        return self.end()


def literal(content):
    return (struct.pack("<i", len(content)) + content if content else b"") + b"\0\0\0\0"


def pulled(*options, target, source="mod/", protocol=32, compat=SAFE_FLIST, motd=b"", checksums=b"md5", program=None):
    """Our client pulls from what is tested; the list is what it expects next."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        listener.settimeout(raw_client.SECONDS)
        outputs = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
        url = f"rsync://127.0.0.1:{listener.getsockname()[1]}/{source}"
        client = subprocess.Popen([program or harness.HUAI, *options, url, *([target] if target else [])], stdin=subprocess.DEVNULL,
                                  stdout=outputs[0], stderr=outputs[1], env=harness.ENVIRONMENT)
        connection = listener.accept()[0]
    connection.settimeout(raw_client.SECONDS)
    sender = Sender(connection, client, outputs)
    sender.protocol = protocol
    try:
        sender.be_a_daemon(motd, compat, checksums)
    except raw_client.Closed:
        pass
    return sender


def pushing(port, module, *options, path="", letters=raw_client.LETTERS, protocol=32):
    """A session that sends to a module of a daemon of ours, up to where the list is expected."""
    sender = Sender(raw_client.connect(port))
    sender.protocol = protocol
    try:
        sender.greet(module, raw_client.server_words(options, letters, [f"{module}/{path}"], sender=False))
        sender.set_up()
    except BaseException:
        sender.__exit__()
        raise
    return sender
