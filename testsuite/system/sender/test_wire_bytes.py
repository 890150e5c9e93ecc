# SPDX-License-Identifier: GPL-3.0-or-later
"""What our side sends, byte by byte beside stock at every protocol: the file list and the answers of a dry or a real run.

Stock is the peer of both. A relay in the place of the remote shell records the stream, and gives the server the capability letters
of the release that a protocol stands for. The trees lie on tmpfs, where stock reads a directory in the order of the list.
"""
import os
import shutil
import stat
import struct

import pytest

import harness
import trees

TIME = 1_300_000_000_000_000_000
# What 3.0 and 3.1 say of themselves; later ones as they are.
LETTERS = {"27": "", "28": "", "29": "", "30": "", "30 of 3.0.0": "L", "31 of 3.1.0": "Ls", "31": "", "32": ""}
# In the order of the list. Names with the same letter are one file; each regular file has two names, so that each has a link key.
# Below a directory there is one more at most, and the devices come last: there stock's order and numbers are ours.
NAMES = """f f.1 p p.1 q s s.1 y y.1 d/f.2 d/g d/g.1 d/p.2 d/r d/s.2 d/t d/y.2 d/e/f.3 d/e/p.3 d/e/r.1 d/e/s.3 d/e/y.3
    d/e/z/a d/e/z/a.1 d/e/z/b d/e/z/b.1 d/e/z/c d/e/z/c.1 d/e/z/p.4 d/e/z/v d/e/z/v.1 d/e/z/w d/e/z/x d/e/z/x.1""".split()
# More directories side by side, each with links to what has been sent in a list before.
BUSH = [*NAMES[:9], "a/k/f.4", "a/k/p.5", "a/k/r.2", "a/o", "b/g.2", "b/p.6", "b/r.3", *NAMES[9:]]
DEVICES = {"v": (stat.S_IFCHR, 10, 200), "w": (stat.S_IFCHR, 10, 300), "x": (stat.S_IFBLK, 7, 3)}

RELAY = """#!/usr/bin/python3 -SE
import os, re, select, subprocess, sys
words = sys.argv[1:]
while words[0].startswith("-"):
    words.pop(0)
if os.environ["LETTERS"]:
    words = [re.sub(r"^(-\\w*e\\.i?)\\w*$", r"\\1" + os.environ["LETTERS"], word) for word in words]
os.chdir("/")
child = subprocess.Popen(["sh", "-c", " ".join(words[1:])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
out = child.stdout.fileno()
ways = {0: (child.stdin.fileno(), open(os.environ["RECORD"] + ".c2s", "wb", 0)), out: (1, open(os.environ["RECORD"] + ".s2c", "wb", 0))}
while out in ways:
    for fd in select.select(list(ways), [], [])[0]:
        to, log = ways[fd]
        data = os.read(fd, 65536)
        log.write(data)
        try:
            if not data:
                raise BrokenPipeError
            while data:
                data = data[os.write(to, data):]
        except BrokenPipeError:
            del ways[fd]
            if fd == 0:
                child.stdin.close()
os._exit(child.wait() & 255)
"""


def make_one(path, letter):
    if letter in "pqrst" or letter in DEVICES and not trees.IS_ROOT:
        os.mknod(path, (stat.S_IFSOCK if letter in "st" else stat.S_IFIFO) | 0o644)
    elif letter in DEVICES:
        kind, major, minor = DEVICES[letter]
        os.mknod(path, kind | 0o600, os.makedev(major, minor))
    elif letter == "y":
        os.symlink("f", path)
    else:
        trees.write(path, letter.encode() * 100)


def make(top, names, mtime):
    """tmpfs lists what was made last first."""
    first = {}
    os.makedirs(top)
    for directory in sorted({os.path.dirname(name) for name in names if "/" in name}, reverse=True):
        os.makedirs(f"{top}/{directory}", exist_ok=True)
    for name in reversed(names):
        letter = os.path.basename(name)[0]
        path = f"{top}/{name}"
        if letter in first:
            os.link(first[letter], path, follow_symlinks=False)
        else:
            first[letter] = path
            make_one(path, letter)
    for directory, _, found in os.walk(top, topdown=False):
        for name in found:
            os.utime(f"{directory}/{name}", ns=(trees.ATIME_NS, mtime), follow_symlinks=False)
        os.utime(directory, ns=(trees.ATIME_NS, mtime))


def stream(raw, from_client, protocol):
    """The bytes of the stream after the setup, and the messages beside them."""
    at = 4
    negotiates = False
    if protocol >= 30 and not from_client:
        negotiates = raw[at] & 0x80 and raw[at + 1] & 0x80
        at += 2 if raw[at] & 0x80 else 1
    elif protocol >= 30:
        negotiates = raw[at + 3:at + 4] != b"\x07"  # otherwise the first frame
    if negotiates:
        at += 1 + raw[at] if not raw[at] & 0x80 else 2 + ((raw[at] & 0x7f) << 8 | raw[at + 1])
    at += 0 if from_client else 4
    if from_client and protocol < 30:
        return raw[at:], []
    data, messages = b"", []
    while at + 4 <= len(raw):
        head = struct.unpack_from("<I", raw, at)[0]
        payload = raw[at + 4:at + 4 + (head & 0xffffff)]
        at += 4 + len(payload)
        if head >> 24 == 7:
            data += payload
        else:
            messages.append((head >> 24, payload))
    return data, messages


def record(place, way, release, options, ours, older, look=lambda: None):
    """The stream from the side that sends files, which is ours or stock, to stock as the one that receives them."""
    target = f"{place}/t"
    os.mkdir(target)
    if older:
        os.rmdir(target)
        make(target, NAMES, TIME - 500 * 10**9)
    sender = harness.HUAI if ours else harness.STOCK
    client, server = (harness.STOCK, sender) if way == "pull" else (sender, harness.STOCK)
    operands = [f"h:{place}/s/", target] if way == "pull" else [f"{place}/s/", f"h:{target}"]
    result = harness.run(client, *options, "-e", f"{place}/relay", f"--rsync-path={server}", f"--protocol={release.split()[0]}",
                         "--checksum-seed=1", *operands, environment={"RECORD": f"{place}/record", "LETTERS": LETTERS[release]})
    with open(f"{place}/record." + ("s2c" if way == "pull" else "c2s"), "rb") as file:
        data, messages = stream(file.read(), way == "push", int(release.split()[0]))
    look()
    shutil.rmtree(target)
    return result, data, messages


def listed_by_stock(place):
    return [name for name in os.listdir(f"{place}/s") if not os.path.isdir(f"{place}/s/{name}")]


@pytest.fixture
def relay(tmpfs_place):
    with open(f"{tmpfs_place}/relay", "w") as file:
        file.write(RELAY)
    os.chmod(f"{tmpfs_place}/relay", 0o755)
    return tmpfs_place


# In every release, and in two of the releases each; HUAI_PAIRINGS=full: all in all of them.
OFTEN = ["-rlD -n", "-aHni --delete"]
IN_TURN = ["-aH --delete", "-aHni --no-i-r", "-rlHni --specials", "-rlHni --devices", "-aHXni --numeric-ids", "-rptH -ni", "-aHcni", "-dlDni"]


def rows():
    everything = os.environ.get("HUAI_PAIRINGS") == "full"
    for number, options in enumerate([*OFTEN, *IN_TURN]):
        for turn, release in enumerate(LETTERS):
            if ("X" not in options or int(release.split()[0]) >= 30) and (options in OFTEN or everything or (turn + number) % 4 == 0):
                yield from ((options, release, way) for way in ("pull", "push"))


@pytest.mark.parametrize("options, release, way", list(rows()))
def test_lists_and_answers_are_stocks(relay, options, release, way):
    shapes = [NAMES, BUSH] if int(release.split()[0]) >= 30 and "--no-i-r" not in options else [NAMES]
    for number, names in enumerate(shapes):
        make(f"{relay}/s", names, TIME)
        if listed_by_stock(relay) != sorted(listed_by_stock(relay)):
            pytest.skip("this tmpfs does not list the last first")
        older = number == len(shapes) - 1
        stock, expected, said = record(relay, way, release, options.split(), False, older)
        ours, got, reported = record(relay, way, release, options.split(), True, older)
        assert ours.code == stock.code == 0, stock.text + ours.text
        assert sorted(ours.stdout.split(b"\n")) == sorted(stock.stdout.split(b"\n")), stock.text + ours.text
        # Behind the answers come the statistics, with times.
        end = -24 if way == "pull" else None
        assert got[:end].hex(" ") == expected[:end].hex(" ")
        assert reported == said
        assert len(got) > 100
        shutil.rmtree(f"{relay}/s")


# --- device numbers before protocol 31, where a special has one as well ---

# A device, then specials, of which two are one, then devices with the same major number and with others.
MIXED = "v p p.1 p.2 s s.1 t w x z/p.3 z/q z/s.2 z/v.1 z/x.1".split()


def device_numbers(data, protocol):
    """{name: device number} as a receiver of that time reads an -rlD list (doc/protocol/02-file-list.md section 2), without its
    first rules."""
    found, name, mode, rdev, at = {}, b"", 0, 0, 0

    def take(form):
        nonlocal at
        at += struct.calcsize(form)
        return struct.unpack_from(form, data, at - struct.calcsize(form))[0]

    def varint():
        """Up to three bytes, doc/protocol/01-session.md section 8."""
        lead = take("<B")
        if lead < 0x80:
            return lead
        return (lead & 0x3f) << 8 | take("<B") if lead < 0xc0 else (lead & 0x1f) << 16 | take("<H")

    while flags := take("<B"):
        if flags & 0x04 and protocol >= 28:
            flags |= take("<B") << 8
        prefix = take("<B") if flags & 0x20 else 0
        length = take("<B")
        name = name[:prefix] + data[at:at + length]
        at += length
        if protocol < 30:
            at += 4 + (0 if flags & 0x80 else 4)
        else:
            at += 3 + (0 if flags & 0x80 else 4)
        mode = mode if flags & 0x02 else take("<I")
        kind = stat.S_IFMT(mode)
        if kind in (stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK):
            if protocol < 28:
                rdev = rdev if flags & 0x04 else take("<I")
            else:
                major = os.major(rdev) if flags & 0x0100 else take("<I") if protocol < 30 else varint()
                rdev = os.makedev(major, varint() if protocol >= 30 else take("<B") if flags & 0x0800 else take("<I"))
            found[name.decode()] = rdev
        elif protocol < 28:
            rdev = 0
    return found


@pytest.mark.skipif(not trees.IS_ROOT, reason="makes devices")
@pytest.mark.parametrize("way", ["pull", "push"])
@pytest.mark.parametrize("release", ["27", "28", "29", "30 of 3.0.0"])
def test_a_special_has_the_number_0(relay, release, way):
    """An old receiver compares the number with that of its own FIFO or socket, and makes what differs anew in each run."""
    make(f"{relay}/s", MIXED, TIME)
    result, data, _ = record(relay, way, release, ["-rlDn", "--no-i-r"], True, False)
    assert result.code == 0, result.text
    numbers = device_numbers(data, int(release.split()[0]))
    assert set(numbers) == set(MIXED)
    for name, number in numbers.items():
        assert number == os.lstat(f"{relay}/s/{name}").st_rdev, name


@pytest.mark.skipif(not trees.IS_ROOT, reason="makes devices")
@pytest.mark.parametrize("release", LETTERS)
def test_devices_among_linked_specials_keep_their_numbers(relay, release):
    """For receivers that take a link's number over from its first name, and for those that do not."""
    for way in ("pull", "push"):
        make(f"{relay}/s", MIXED, TIME)
        seen = []
        result = record(relay, way, release, ["-a" if release == "27" else "-aH"], True, False, lambda: seen.append(trees.describe(f"{relay}/t")))[0]
        assert result.code == 0, result.text
        expected = trees.describe(f"{relay}/s")
        for path in expected if release == "27" else ():  # nothing but regular files is linked
            expected[path].pop("linked to", None)
        assert trees.differences(expected, seen[0]) == []
        shutil.rmtree(f"{relay}/s")
