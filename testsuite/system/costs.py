# SPDX-License-Identifier: GPL-3.0-or-later
"""What a peer can make us spend: sessions whose size is a number, and what they cost in processor time and memory.

    cost = costs.SCENARIOS["directory names"](place, 10000)
    print(cost.sent, cost.cpu, cost.memory)

Each sends as many items of one kind as the number says, chosen so that tables and searches have the hardest time of it, and ends
as soon as they have been taken in. The time is that of the process under test (user and system), not that of the clock; memory
is its largest resident size less that of the same session with nothing in it. For test_costs.py and bench/bench_cost.py.
"""
import contextlib
import dataclasses
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import termios
import time

import harness
import raw_client
import raw_sender
from raw_client import frame, varint
from raw_sender import DIRECTORY, FILE, HLINK_FIRST, HLINKED, ROOT, TOP_DIR, entry

IDENTITY = "uid = root\ngid = root\n" if os.geteuid() == 0 else ""
MASK = 2**64 - 1
LONG_NAMES = 20
BATCH = 500  # items that are sent in one piece
PROGRAM = harness.HUAI


@dataclasses.dataclass
class Cost:
    """Of one session: bytes that the peer has sent, seconds of the processor, bytes of memory, exit code."""

    sent: int
    cpu: float
    memory: int
    code: int
    text: str = ""


# --- sessions ---

def memory_of(pid):
    """What ru_maxrss says of a child may be its parent's, from before it became another program."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def is_waiting(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] in "SZ"


def unread_bytes(connection):
    return struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))[0]


class Session:
    """Sends, and takes what comes back without looking at more of it than it has to."""

    def __init__(self, sender, process):
        self.sender, self.process = sender, process
        self.sent, self.log = 0, None

    def data(self, *items):
        for at in range(0, len(items), BATCH):
            piece = b"".join(items[at:at + BATCH])
            self.sent += len(piece)
            self.sender.data(piece)

    def message(self, code, payload):
        self.sent += 4 + len(payload)
        self.sender.send(frame(code, payload))

    def text(self):
        if not self.log:
            return ""
        with open(self.log, errors="surrogateescape") as file:
            return file.read()

    def settle(self):
        """Wait until the process has taken in everything and waits for more; its largest size so far."""
        deadline, idle, memory = time.monotonic() + raw_client.SECONDS, 0, 0
        while idle < 3 and time.monotonic() < deadline:
            try:
                memory = memory_of(self.process.pid)
                idle = idle + 1 if is_waiting(self.process.pid) and not unread_bytes(self.sender.connection) else 0
            except (FileNotFoundError, ProcessLookupError, StopIteration):
                break
            time.sleep(0.005)
            self.sender.receive(0)
            self.sender.stream.clear()
        return memory

    def end(self, patient=True):
        """Hang up, when everything has been taken in or at once, and read to the end of the process."""
        memory = self.settle() if patient else 0
        with contextlib.suppress(OSError):
            self.sender.connection.shutdown(socket.SHUT_WR)
        while not self.sender.closed:
            self.sender.receive()
            self.sender.stream.clear()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.sender.connection.close()
        for output in getattr(self.sender, "outputs", ()):
            output.close()
        return Cost(self.sent, usage.ru_utime + usage.ru_stime, memory, self.process.returncode, self.text())


def pull(place, *options, **keywords):
    """Our client pulls from what is tested; the list is what it expects next."""
    target = os.path.join(place, "target")
    shutil.rmtree(target, ignore_errors=True)
    os.mkdir(target)
    sender = raw_sender.pulled(*options, target=f"{target}/", program=PROGRAM, **keywords)
    return Session(sender, sender.client)


def serve(place, *options, paths=("mod/",), config="", set_up=True):
    """A session of ours with a module of a daemon that serves one connection, up to where the rules or the list are expected."""
    tree = os.path.join(place, "tree")
    if not os.path.exists(tree):
        make_tree(tree)
    log = os.path.join(place, "log")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(log)
    with open(os.path.join(place, "conf"), "w") as file:
        file.write(f"log file = {log}\nuse chroot = no\nreverse lookup = no\n{IDENTITY}"
                   f"[mod]\npath = {tree}\nread only = no\n{config}")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs = listener.accept()[0]
    ours.settimeout(raw_client.SECONDS)
    process = subprocess.Popen([PROGRAM, "--daemon", "--no-detach", "--address=127.0.0.1", f"--port={harness.free_port()}",
                                f"--config={file.name}"], stdin=theirs, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=harness.ENVIRONMENT)
    theirs.close()
    session = Session(raw_client.Client(ours), process)
    words = raw_client.server_words(options, raw_client.LETTERS, paths)
    session.log, session.sent = log, sum(map(len, words)) + len(words)
    try:
        session.sender.greet("mod", words)
        if set_up:
            session.sender.set_up()
    except raw_client.Closed:
        pass
    return session


def make_tree(tree):
    """A few files, a directory, and in it links to directories: what wildcards can go round in."""
    os.makedirs(f"{tree}/d")
    for name in ("a", "b", "d/f", *("a" * 240 + f"{number:02}" for number in range(LONG_NAMES))):
        with open(f"{tree}/{name}", "w"):
            pass
    for name in ("x", "y"):
        os.symlink(".", f"{tree}/d/{name}")


# --- names and numbers that meet in tables without a key ---

XXH3_SECRET = bytes.fromhex("b8fe6c3923a44bbe")


def letters(number, count):
    return bytes(97 + (number >> 4 * at & 15) for at in range(count))


def alike_names(n):
    """Of 32 bytes each. In XXH3 without a seed the first eight make a factor 0 of what the next eight go into."""
    return [XXH3_SECRET + letters(number, 8) + b"n" * 16 for number in range(n)]


def unshift(value, bits):
    result = value
    for _ in range(64 // bits + 1):
        result = value ^ result >> bits
    return result


def mix(x):
    x = (x + 0x9e3779b97f4a7c15) & MASK
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


def unmix(x):
    x = unshift(x, 31) * pow(0x94d049bb133111eb, -1, 2**64) & MASK
    x = unshift(x, 27) * pow(0xbf58476d1ce4e5b9, -1, 2**64) & MASK
    return (unshift(x, 30) - 0x9e3779b97f4a7c15) & MASK


def alike_inodes(n, device):
    """Whose splitmix64 with the device ends in the same 32 bits."""
    return [unmix(number << 32) ^ mix(device) for number in range(n)]


# --- tables and searches: the session that fills them with n items ---

def directory_names(place, n):
    """Of a list that comes in one piece: each is looked up by its path."""
    session = pull(place, "-r")
    session.data(*(entry(name, DIRECTORY) for name in alike_names(n)))
    return session.end()


def longint(value):
    return struct.pack("<i", value) if 0 <= value < 2**31 else struct.pack("<i", -1) + struct.pack("<Q", value)


def hard_link_keys(place, n):
    """Device and inode of every file, as old releases send them."""
    session = pull(place, "-rH", protocol=29)
    fields = longint(0) + struct.pack("<iI", 1_700_000_000, FILE) + longint(1)
    session.data(*(struct.pack("<HB", 0x204, 8) + letters(number, 8) + fields + longint(inode)
                   for number, inode in enumerate(alike_inodes(n, 1))))
    return session.end()


def files_behind_directories(place, n):
    """Only --relative has them: "/x" behind "!". Their indexes are those of a walk that lists files first."""
    session = pull(place, "-rRn")
    session.data(ROOT, entry(b"!", DIRECTORY), *(entry(b"/" + letters(number, 8)) for number in range(n)), b"\0")
    session.sender.read_until_done()
    return session.end()


def refused_requests(place, n):
    """Files that are asked for, and then refused from the last one to the first."""
    session = pull(place, "-r")
    session.data(ROOT, *(entry(letters(number, 8)) for number in range(n)), b"\0")
    asked = 0
    while asked < n:
        asked += bool(session.sender.read_request()[1] & raw_client.ITEM_TRANSFER)
    for ndx in range(n, 0, -1):
        session.message(raw_client.MSG_NO_SEND, struct.pack("<i", ndx))
    return session.end()


def linked_files(place, n):
    """One group of hard links, the leader of which is the last member."""
    session = pull(place, "-rHin")
    session.data(ROOT, entry(b"a", flags=HLINKED | HLINK_FIRST),
                 *(struct.pack("<HB", 0x204, 9) + b"b" + letters(number, 8) + varint(1) for number in range(n)), b"\0")
    session.sender.read_until_done()
    return session.end()


def listed_files(place, n):
    """A list in one piece, as it waits for its end."""
    session = pull(place, "-r")
    session.data(ROOT, *(entry(letters(number, 8)) for number in range(n)))
    return session.end()


def listed_directories(place, n, *options):
    """Each file lies in a directory of its own, which is listed as well."""
    session = pull(place, "-r", *options)
    session.data(ROOT, *(entry(letters(number, 8), DIRECTORY) + entry(letters(number, 8) + b"/f") for number in range(n)))
    return session.end()


def attributes(place, n, *options):
    """Extended attributes: a short value for every file, and none like another."""
    session = pull(place, "-rX", *options)
    session.data(ROOT + varint(0) + varint(0), *(
        entry(letters(number, 8)) + varint(0) + varint(1) + varint(7) + varint(8) + b"user.a\0" + letters(number, 8)
        for number in range(n)))
    return session.end()


def names_of_owners(place, n):
    """Users, each with a name, behind a list."""
    session = pull(place, "-rlto")
    session.data(entry(b".", DIRECTORY, flags=TOP_DIR, owner=bytes(1)) + b"\0")
    session.data(*(varint(number + 1) + b"\x08" + letters(number, 8) for number in range(n)))
    return session.end()


def names_of_files(place, n, config="", more=()):
    """--files-from: a directory, over and over, which is then listed as often."""
    session = serve(place, "-r", "--files-from=-", "--from0", *more, config=config)
    session.sender.send_rules()
    session.data(*[b"d\0"] * n, b"\0")
    return session.end()


def split_arguments(place, n, config=""):
    """Paths that old clients join into one word."""
    each = 5119 // len(" mod/a")
    return serve(place, "-r", paths=["mod/a" + " mod/a" * (min(each, n - at) - 1) for at in range(0, n, each)], set_up=False,
                 config=config).end()


def rule(number, classes):
    text = b"- *" + b"[zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzza]" * classes + letters(number, 8)
    return struct.pack("<i", len(text)) + text


def rules(place, n, config="", classes=1, patient=True):
    """Wild ones, against the names of a small tree."""
    session = serve(place, "-r", config=config)
    session.data(*(rule(number, classes) for number in range(n)), struct.pack("<i", 0))
    return session.end(patient)


def wildcards(place, n, config="", patient=True):
    """Directories in directories, where links lead back and each path goes on in two ways; none leads anywhere."""
    return serve(place, "-r", paths=["mod/d/" + "*/" * n + "none*"], config=config, set_up=False).end(patient)


def block_sums(place, n, config=""):
    """All alike, for a file that is to be sent."""
    session = serve(place, "-r", "--ignore-times", config=config)
    session.sender.send_rules()
    ndx = session.sender.read_list()["a"].ndx
    session.data(session.sender.request_bytes(ndx, head=(n, 700, 2, 0)))
    session.data(*[bytes(6)] * n)
    return session.end()


SCENARIOS = {
    "directory names": directory_names,
    "hard-link keys": hard_link_keys,
    "files behind directories": files_behind_directories,
    "refused requests": refused_requests,
    "linked files": linked_files,
    "listed files": listed_files,
    "listed directories": listed_directories,
    "extended attributes": attributes,
    "names of owners": names_of_owners,
    "names of files": names_of_files,
    "split arguments": split_arguments,
    "filter rules": rules,
    "block sums": block_sums,
}
