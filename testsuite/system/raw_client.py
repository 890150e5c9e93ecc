# SPDX-License-Identifier: GPL-3.0-or-later
"""A client that pulls and may say anything: for what no well-behaved program would send (doc/protocol/01-session.md,
02-file-list.md and 03-transfer.md).

    with raw_client.over_tcp(port, "mod", ["-r"], ["mod/"]) as client:
        client.send_rules()
        entries = client.read_list()
        client.request(entries["f"], head=(1, 0, 2, 0))
        assert client.end().code == 2
"""
import dataclasses
import os
import select
import socket
import stat
import struct
import subprocess
import tempfile
import time

SECONDS = 20.0

MSG_DATA, MSG_ERROR_XFER, MSG_INFO, MSG_ERROR, MSG_WARNING = range(5)
MSG_IO_ERROR, MSG_IO_TIMEOUT, MSG_NOOP, MSG_ERROR_EXIT, MSG_SUCCESS, MSG_DELETED, MSG_NO_SEND = 22, 33, 42, 86, 100, 101, 102
TEXTS = (MSG_ERROR_XFER, MSG_INFO, MSG_ERROR, MSG_WARNING)
TAG_BASE = 7

NDX_DONE, NDX_FLIST_EOF, NDX_DEL_STATS, NDX_FLIST_OFFSET = -1, -2, -3, -101
ITEM_XATTR, ITEM_BASIS, ITEM_XNAME, ITEM_LOCAL_CHANGE, ITEM_TRANSFER = 0x0100, 0x0800, 0x1000, 0x4000, 0x8000

# Without "v": the checksum of the session is md5 and nothing is negotiated. Without "i": one list.
LETTERS = ".LsfxCIu"
INT_MIN, INT_MAX = -2**31, 2**31 - 1


class Closed(Exception):
    """The server has ended the connection where more was expected of it."""


@dataclasses.dataclass
class Outcome:
    """How a session ended: the code that the server sent (or ended with), its words, and the time that it took."""

    code: int
    text: str
    seconds: float


# --- encodings (doc/protocol/01-session.md section 8) ---

def varint(value):
    low = struct.pack("<I", value & 0xffffffff)
    size = 4
    while size > 1 and low[size - 1] == 0:
        size -= 1
    limit = 1 << (8 - size)
    top = low[size - 1]
    if top >= limit:
        return bytes([~(limit - 1) & 0xff]) + low[:size]
    if size > 1:
        return bytes([top | (~(limit * 2 - 1) & 0xff)]) + low[:size - 1]
    return low[:1]


def vstring(text):
    length = len(text)
    return (bytes([length]) if length < 128 else bytes([0x80 | length >> 8, length & 255])) + text


def frame(code, payload=b"", length=None):
    return struct.pack("<I", (len(payload) if length is None else length) | (code + TAG_BASE & 0xff) << 24) + payload


class NdxWriter:
    def __init__(self):
        self.last = [-1, 1]

    def __call__(self, value):
        if value == NDX_DONE:
            return b"\0"
        negative = value < 0
        value = abs(value)
        step = value - self.last[negative]
        self.last[negative] = value
        if 0 < step < 0xfe:
            text = bytes([step])
        elif 0 <= step <= 0x7fff:
            text = b"\xfe" + struct.pack(">H", step)
        else:
            text = b"\xfe" + bytes([value >> 24 & 0xff | 0x80]) + struct.pack("<I", value & 0xffffff)[:3]
        return (b"\xff" if negative else b"") + text


@dataclasses.dataclass
class Entry:
    name: bytes
    ndx: int
    size: int
    mtime: int
    mode: int
    target: bytes = b""

    @property
    def is_dir(self):
        return stat.S_ISDIR(self.mode)


class Client:
    """One session. What is sent is not checked; what comes back is taken apart as far as a test looks at it."""

    def __init__(self, connection, process=None, errors=None):
        self.connection = connection
        self.process = process
        self.errors = errors
        self.protocol = 32
        self.began = time.monotonic()
        self.raw = bytearray()      # as received
        self.stream = bytearray()   # payload of DATA frames, or everything before multiplexing
        self.messages = []          # (code, payload)
        self.mux = False
        self.closed = False
        self.write_ndx = NdxWriter()
        self.seen_ndx = [-1, 1]
        self.previous = Entry(b"", 0, 0, 0, 0)
        self.compat = self.seed = 0
        self.xattrs = False
        self.links = False
        self.code = None
        self.ask_log = None         # how the session ended, if it was not sent

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.connection.close()
        if self.process:
            try:
                self.process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.errors.close()

    # --- bytes out ---

    def send(self, data):
        """All of it, reading what arrives meanwhile; a server that has gone does not matter here."""
        data = memoryview(bytes(data))
        deadline = time.monotonic() + SECONDS
        while data and not self.closed:
            readable, writable, _ = select.select([self.connection], [self.connection], [], 1)
            if readable:
                self.receive(0)
            if writable:
                try:
                    data = data[self.connection.send(data[:65536], socket.MSG_DONTWAIT):]
                except BlockingIOError:
                    pass
                except OSError:
                    return
            assert time.monotonic() < deadline, "the server does not read"

    def send_blindly(self, data):
        """As much as the server takes without anything being read from it."""
        data = memoryview(data)
        sent = 0
        while sent < len(data):
            if not select.select([], [self.connection], [], 2)[1]:
                break
            try:
                sent += self.connection.send(data[sent:sent + 65536], socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
        return sent

    def data(self, payload):
        """Stream bytes, framed where the protocol frames them."""
        if self.protocol >= 30:
            payload = b"".join(frame(MSG_DATA, payload[at:at + 0xffff]) for at in range(0, len(payload), 0xffff))
        self.send(payload)

    def message(self, code, payload=b"", length=None):
        self.send(frame(code, payload, length))

    # --- bytes in ---

    def receive(self, seconds=SECONDS):
        if not select.select([self.connection], [], [], seconds)[0]:
            if seconds == 0:
                return
            raise TimeoutError(f"no word from the server; so far: {self.words()}")
        try:
            part = self.connection.recv(1 << 18)
        except ConnectionError:
            part = b""
        self.closed = self.closed or not part
        self.raw += part
        self.take_frames()

    def take_frames(self):
        if not self.mux:
            self.stream += self.raw
            self.raw.clear()
        while self.mux and len(self.raw) >= 4:
            word = struct.unpack_from("<I", self.raw)[0]
            length, code = word & 0xffffff, (word >> 24) - TAG_BASE
            if len(self.raw) < 4 + length:
                return
            payload = bytes(self.raw[4:4 + length])
            del self.raw[:4 + length]
            if code == MSG_DATA:
                self.stream += payload
            else:
                self.messages.append((code, payload))
                if code == MSG_ERROR_EXIT and length == 4:
                    self.code = struct.unpack("<i", payload)[0]

    def read(self, length):
        while len(self.stream) < length:
            if self.closed or self.code is not None:
                raise Closed(self.words())
            self.receive()
        taken = bytes(self.stream[:length])
        del self.stream[:length]
        return taken

    def words(self):
        return "".join(payload.decode(errors="surrogateescape") for code, payload in self.messages if code in TEXTS)

    def int(self):
        return struct.unpack("<i", self.read(4))[0]

    def short(self):
        return struct.unpack("<H", self.read(2))[0]

    def byte(self):
        return self.read(1)[0]

    def varlong(self, least):
        lead = self.byte()
        extra = next((count for count in range(6) if not lead & 0x80 >> count), 6)
        low = self.read(least - 1 + extra)
        masked = lead & (0xff >> min(extra + 1, 6))
        return int.from_bytes(low + bytes([masked]), "little") & (1 << 64) - 1

    def varint(self):
        return self.varlong(1) & 0xffffffff

    def vstring(self):
        length = self.byte()
        if length & 0x80:
            length = (length & 0x7f) << 8 | self.byte()
        return self.read(length)

    def ndx(self):
        if self.protocol < 30:
            return self.int()
        lead = self.byte()
        negative = lead == 0xff
        if negative:
            lead = self.byte()
        elif lead == 0:
            return NDX_DONE
        if lead == 0xfe:
            high, low = self.read(2)
            if high & 0x80:
                value = (high & 0x7f) << 24 | low | int.from_bytes(self.read(2), "little") << 8
            else:
                value = self.seen_ndx[negative] + (high << 8 | low)
        else:
            value = self.seen_ndx[negative] + lead
        self.seen_ndx[negative] = value
        return -value if negative else value

    # --- the session ---

    def greet(self, module, words):
        greeting = b"@RSYNCD: %d.0 md5\n" % self.protocol
        self.send(greeting + os.fsencode(module) + b"\n")
        line = b""
        while line != b"@RSYNCD: OK":
            if line.startswith(b"@ERROR"):
                raise Closed(os.fsdecode(line))
            line = b""
            while not line.endswith(b"\n"):
                line += self.read(1)
            line = line[:-1]
        end = b"\0" if self.protocol >= 30 else b"\n"
        self.send(b"".join(os.fsencode(word) + end for word in words) + end)

    def exchange_versions(self):
        self.send(struct.pack("<i", self.protocol))
        self.protocol = min(self.protocol, self.int())

    def set_up(self, names=(b"md5",)):
        if self.protocol >= 30:
            self.compat = self.varint()
            if self.compat & 0x80:
                for ours in names:
                    self.vstring()
                    self.send(vstring(ours))
        self.seed = self.int()
        self.raw, self.stream = self.stream, bytearray()
        self.mux = True
        self.take_frames()

    def send_rules(self, *rules):
        self.data(b"".join(struct.pack("<i", len(rule)) + rule for rule in rules) + struct.pack("<i", 0))

    def request(self, ndx, flags=ITEM_TRANSFER, basis=None, xname=None, head=(0, 0, 0, 0), sums=b""):
        """One request as bytes of the stream, sent at once."""
        self.data(self.request_bytes(ndx, flags, basis, xname, head, sums))

    def request_bytes(self, ndx, flags=ITEM_TRANSFER, basis=None, xname=None, head=(0, 0, 0, 0), sums=b""):
        if isinstance(ndx, Entry):
            ndx = ndx.ndx
        if self.protocol < 30:
            text = struct.pack("<i", ndx)
        else:
            text = self.write_ndx(ndx)
        if self.protocol >= 29:
            if basis is not None:
                flags |= ITEM_BASIS
            if xname is not None:
                flags |= ITEM_XNAME
            text += struct.pack("<H", flags)
            text += b"" if basis is None else bytes([basis])
            text += b"" if xname is None else vstring(xname)
        if flags & ITEM_TRANSFER and head is not None:
            text += struct.pack("<4i", *head) + sums
        return text

    def read_entry(self, flags, ndx):
        name = self.previous.name[:self.byte() if flags & 0x20 else 0]
        name += self.read(self.varint() if flags & 0x40 else self.byte())
        size = self.varlong(3)
        mtime = self.previous.mtime if flags & 0x80 else self.varlong(4)
        if flags & 0x2000:
            self.varint()
        mode = self.previous.mode if flags & 0x02 else self.int() & 0xffff
        target = self.read(self.varint()) if stat.S_ISLNK(mode) and self.links else b""
        self.previous = Entry(name, ndx, size, mtime, mode, target)
        return self.previous

    def read_part(self, first):
        """The entries of one list, as sent. Only for sessions without -o, -g, -D, -H, -c and -U."""
        assert self.protocol >= 30 and not self.compat & 0x80
        found = []
        while True:
            flags = self.byte()
            if flags & 0x04:
                flags |= self.byte() << 8
            if flags == 0:
                break
            if flags == 0x1004:
                self.varint()
                break
            found.append(self.read_entry(flags, first + len(found)))
            if self.xattrs:
                self.read_xattr_list()
        return found

    def read_xattr_list(self):
        assert self.varint() == 0, "only lists that have not been sent before"
        for _ in range(self.varint()):
            name, value = self.varint(), self.varint()
            self.read(name + (16 if value > 32 else value))

    def read_list(self):
        """The first list; entries by name, indices as the generator has to name them."""
        incremental = self.compat & 1
        entries = self.read_part(1 if incremental else 0)
        if not incremental:
            order = sorted(entries, key=lambda entry: sort_key(entry.name, entry.is_dir))
            for ndx, entry in enumerate(order):
                entry.ndx = ndx
        else:
            for ndx, entry in enumerate(sorted(entries, key=lambda entry: sort_key(entry.name, entry.is_dir))):
                entry.ndx = 1 + ndx
        return {os.fsdecode(entry.name): entry for entry in entries}

    def read_reply(self):
        """Index and item of a reply, before any file data."""
        ndx = self.ndx()
        flags = self.short() if self.protocol >= 29 else ITEM_TRANSFER
        basis = self.byte() if flags & ITEM_BASIS else None
        xname = self.vstring() if flags & ITEM_XNAME else None
        return ndx, flags, basis, xname

    def read_content(self, basis=b"", digest=16):
        """The header that is echoed and the file that uncompressed tokens describe."""
        head = struct.unpack("<4i", self.read(16))
        content = bytearray()
        while token := self.int():
            if token > 0:
                content += self.read(token)
            else:
                content += basis[head[1] * (-token - 1):][:head[1]]
        self.read(digest)
        return head, bytes(content)

    def say_done(self, lists=1):
        """What is left of a session after its last request, and its end."""
        extra = {27: 1, 28: 1, 29: 2, 30: 2}.get(self.protocol, 3)
        done = self.write_ndx(NDX_DONE) if self.protocol >= 30 else struct.pack("<i", NDX_DONE)
        self.data(done * (lists + extra + 1))
        return self.end()

    def end(self, seconds=SECONDS):
        """Read until the server is gone."""
        deadline = time.monotonic() + seconds
        answered = False
        while not self.closed:
            if self.code is not None and not answered:
                answered = True
                self.send(frame(MSG_ERROR_EXIT))
                try:
                    self.connection.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
            self.receive(max(0.01, deadline - time.monotonic()))
        words = self.words()
        if self.process:
            self.code = self.process.wait(SECONDS)
            self.errors.seek(0)
            words += os.fsdecode(self.errors.read())
        elif self.code is None and self.ask_log:
            self.code, log = self.ask_log()
            words += log if self.code else ""
        return Outcome(self.code, words, time.monotonic() - self.began)

    def abandon(self):
        """Say that nothing more will come, and read until the server is gone."""
        try:
            self.connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return self.end()


def sort_key(name, is_dir):
    """The order of the list from protocol 29 on: files of a directory before its directories, "." first."""
    if name == b".":
        return ()
    *parents, leaf = name.split(b"/")
    return tuple((1, parent + b"/") for parent in parents) + ((1, leaf + b"/") if is_dir else (0, leaf),)


def server_words(options, letters, paths, sender=True):
    return ["--server"] + ["--sender"] * sender + [f"-e{letters}"] * bool(letters) + list(options) + ["."] + list(paths)


def connect(port, buffer=None):
    connection = socket.socket()
    if buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(SECONDS)
    connection.connect(("127.0.0.1", port))
    return connection


def over_tcp(port, module, options=(), paths=None, protocol=32, letters=LETTERS, set_up=True, buffer=None):
    """A session with a module, up to where the rules are expected."""
    client = Client(connect(port, buffer))
    client.protocol = protocol
    client.links = any(word.startswith("-") and not word.startswith("--") and "l" in word for word in options)
    client.xattrs = "-X" in options
    paths = [f"{module}/"] if paths is None else paths
    try:
        client.greet(module, server_words(options, letters if protocol >= 30 else "", paths))
        if set_up:
            client.set_up()
    except BaseException:
        client.__exit__()
        raise
    return client


def over_shell(program, options=(), paths=(), protocol=32, letters=LETTERS, set_up=True, buffer=None, environment=None):
    """The same with a server on two pipes, as behind a remote shell."""
    ours, theirs = socket.socketpair()
    if buffer:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
    ours.settimeout(SECONDS)
    errors = tempfile.TemporaryFile()
    process = subprocess.Popen([program, *server_words(options, letters if protocol >= 30 else "", paths)], stdin=theirs,
                               stdout=theirs, stderr=errors, env=environment, cwd="/")
    theirs.close()
    client = Client(ours, process, errors)
    client.protocol = protocol
    client.links = any(word.startswith("-") and not word.startswith("--") and "l" in word for word in options)
    client.xattrs = "-X" in options
    try:
        if set_up:
            client.exchange_versions()
            client.set_up()
    except BaseException:
        client.__exit__()
        raise
    return client
