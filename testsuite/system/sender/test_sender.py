# SPDX-License-Identifier: GPL-3.0-or-later
"""What the sender says and does beyond plain pulls: ACLs and xattrs, source trouble, redo, removal, attr trees, old clients."""
import os
import re
import shutil
import struct

import pytest

import harness
import raw_client
import trees

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
CAPTURES = os.path.join(harness.SOURCE, "testsuite", "captures")
NOBODY = "uid = nobody\ngid = " + harness.NOBODY_GROUP + "\n" if os.geteuid() == 0 else ""


def write(path, *arguments):
    """A file, with the directories that it stands in."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    trees.write(path, *arguments)


def pull(program, shell, words, source, target):
    """Stock pulls over a remote shell from `program`."""
    result = harness.run(harness.STOCK, "-e", shell, f"--rsync-path={program}", *words, f"host:{source}", target)
    return result.code, harness.normalise(result.stdout), harness.normalise(result.stderr)


# --- ACLs and extended attributes (doc/protocol/05-xattrs-acls.md) ---

def acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def make_attributed_tree(top):
    none = 0xffffffff
    os.makedirs(f"{top}/d")
    for name in ("f1", "f2", "big", "d/in", "d/in2"):
        write(f"{top}/{name}", name.encode())
    os.symlink("f1", f"{top}/ln")
    for name in ("f1", "f2"):
        os.setxattr(f"{top}/{name}", "user.small", b"abc")
        os.setxattr(f"{top}/{name}", "user.long", b"C" * 300)
        os.setxattr(f"{top}/{name}", "user.empty", b"")
    os.setxattr(f"{top}/big", "user.v", bytes(range(256)) * 8)
    os.setxattr(f"{top}/big", "trusted.t", b"T" * 40)
    os.setxattr(f"{top}/d", "user.dirlong", b"D" * 100)
    os.setxattr(f"{top}/d/in", "user.long", b"C" * 300)
    os.setxattr(f"{top}/ln", "trusted.onlink", b"L", follow_symlinks=False)
    os.setxattr(f"{top}/f1", "system.posix_acl_access",
                acl((1, 6, none), (2, 4, 33), (2, 7, 1000), (4, 4, none), (8, 6, 20), (0x10, 7, none), (0x20, 0, none)))
    os.setxattr(f"{top}/f2", "system.posix_acl_access", acl((1, 6, none), (4, 4, none), (0x10, 6, none), (0x20, 4, none)))
    os.setxattr(f"{top}/d", "system.posix_acl_access",
                acl((1, 7, none), (2, 7, 1000), (4, 5, none), (0x10, 7, none), (0x20, 5, none)))
    os.setxattr(f"{top}/d", "system.posix_acl_default",
                acl((1, 7, none), (2, 5, 1000), (4, 5, none), (0x10, 5, none), (0x20, 0, none)))
    os.link(f"{top}/f1", f"{top}/hard")


def attributes(top):
    found = {}
    for path, _, names in os.walk(top):
        for name in names + ["."]:
            at = os.path.join(path, name)
            found[os.path.relpath(at, top)] = {
                attribute: os.getxattr(at, attribute, follow_symlinks=False) for attribute in os.listxattr(at, follow_symlinks=False)}
    return found


def modes(top):
    return {os.path.relpath(os.path.join(path, name), top): os.lstat(os.path.join(path, name)).st_mode
            for path, _, names in os.walk(top) for name in names + ["."]}


@root_only
@pytest.mark.parametrize("protocol", (30, 31, 32))
@pytest.mark.parametrize("options", ("-aAX", "-aAXH", "-aAX --no-i-r", "-aXX", "-rA", "-rtX", "-aAXH --numeric-ids", "-aAXc",
                                     "-aX --filter=-x_user.small"))
def test_acls_and_xattrs_arrive_as_from_stock(place, options, protocol):
    try:
        make_attributed_tree(f"{place}/source")
    except OSError as error:
        pytest.skip(f"this file system has no such attributes: {error}")
    shell = harness.make_remote_shell(place)
    words = [f"--protocol={protocol}", "-ii", *options.split()]
    os.mkdir(f"{place}/out")
    outcome = {}
    for name, program in (("stock", harness.STOCK), ("ours", harness.HUAI)):
        target = f"{place}/out/dest"
        first = pull(program, shell, words, f"{place}/source/", target)
        os.setxattr(f"{target}/big", "user.v", b"changed here")
        again = pull(program, shell, words, f"{place}/source/", target)
        outcome[name] = first, again, attributes(target), modes(target)
        shutil.rmtree(target)
    assert outcome["ours"] == outcome["stock"]


# --- source trouble (doc/protocol/03-transfer.md section 7.8) ---

def requests_after(program, place, change, protocol=32, name="b"):
    """List a module, change its tree, ask for file `name`: what is said, and how the session ends."""
    tree = f"{place}/tree"
    shutil.rmtree(tree, ignore_errors=True)
    os.mkdir(tree)
    for file in "abc":
        write(f"{tree}/{file}", b"content of " + file.encode() * 3000)
    config = f"use chroot = no\ntimeout = 20\n{NOBODY}[mod]\npath = {tree}\n"
    with harness.Daemon(program, config, place) as daemon:
        with raw_client.over_tcp(daemon.port, "mod", ["-r"], protocol=protocol) as client:
            client.send_rules()
            entries = client.read_list()
            change(f"{tree}/{name}")
            client.request(entries[name])
            outcome = client.say_done()
    return outcome, [message for message in client.messages if message[0] != raw_client.MSG_IO_TIMEOUT], bytes(client.stream)


TROUBLES = {
    "vanished": os.unlink,
    "became a symlink": lambda path: (os.unlink(path), os.symlink("/etc/hostname", path)),
    "grown": lambda path: write(path, b"much more" * 10000),
    "shrunken": lambda path: write(path, b"less"),
    "unreadable": lambda path: os.chmod(path, 0),
}


@root_only
@pytest.mark.parametrize("trouble", TROUBLES)
def test_source_trouble_is_told_as_by_stock(place, trouble):
    stock = requests_after(harness.STOCK, place, TROUBLES[trouble])
    ours = requests_after(harness.HUAI, place, TROUBLES[trouble])
    assert sorted(ours[1]) == sorted(stock[1])
    assert len(ours[2]) == len(stock[2]) or trouble not in ("grown", "shrunken")


def test_file_that_became_a_directory_is_not_read(place):
    _, messages, _ = requests_after(harness.HUAI, place, lambda path: (os.unlink(path), os.mkdir(path)))
    assert (raw_client.MSG_NO_SEND, struct.pack("<i", 2)) in messages
    assert any(b"Is a directory" in text for _, text in messages)


def test_append_to_a_damaged_file_is_sent_again(place):
    """The first answer fails verification, so the generator asks a second time (redo)."""
    shell = harness.make_remote_shell(place)
    outcome = {}
    write(f"{place}/source/file", trees.noise(30000, 1))
    for name, program in (("stock", harness.STOCK), ("ours", harness.HUAI)):
        for protocol in (29, 30, 32):
            write(f"{place}/{name}/file", b"damaged" + trees.noise(30000, 1)[7:10000])
            words = ["--append-verify", "-v", "-t", f"--protocol={protocol}"]
            outcome[name, protocol] = pull(program, shell, words, f"{place}/source/file", f"{place}/{name}/")
            with open(f"{place}/{name}/file", "rb") as file:
                assert file.read() == trees.noise(30000, 1)
    for protocol in (29, 30, 32):
        assert outcome["ours", protocol] == outcome["stock", protocol]


def contents(top):
    return sorted(os.path.relpath(os.path.join(path, name), top) for path, _, names in os.walk(top) for name in names)


@pytest.mark.parametrize("option", ("--remove-source-files", "--remove-sent-files"))
@pytest.mark.parametrize("protocol", (29, 30, 31, 32))
def test_sent_source_files_are_removed(place, option, protocol):
    shell = harness.make_remote_shell(place)
    outcome = {}
    for name, program in (("stock", harness.STOCK), ("ours", harness.HUAI)):
        source, target = f"{place}/source", f"{place}/dest"
        for directory in (source, target):
            shutil.rmtree(directory, ignore_errors=True)
        for file in ("a", "b", "d/c", "d/e/f"):
            write(f"{source}/{file}", file.encode())
        os.symlink("a", f"{source}/link")
        write(f"{target}/b", b"b")
        os.utime(target, (1, 1))  # or it may have the source's time, or not
        words = ["-rlti", "--info=remove", option, f"--protocol={protocol}"]
        code, said, complained = pull(program, shell, words, f"{source}/", f"{target}/")
        # When the sender hears of a success is a matter of timing.
        outcome[name] = code, sorted(said.splitlines()), complained, contents(source), contents(target)
    assert outcome["ours"] == outcome["stock"]


# --- attr trees served and made ---

def attr_module(place, *parameters):
    mirror, attrs = f"{place}/mirror", f"{place}/attrs"
    result = harness.run(harness.HUAI, "-aH", "--only-send-attrs", f"{mirror}/", f"{attrs}/")
    assert result.code == 0, result.text
    return f"use chroot = no\n{NOBODY}" + "".join(f"{line}\n" for line in parameters) + \
        f"[mod]\npath = {attrs}\nreal file prefix = {mirror}\n"


BAD_ATTR_FILES = {"short": b"1234567", "long": b"123456789", "empty": b"", "negative": struct.pack("<Q", 1 << 63)}


@pytest.mark.parametrize("kind", BAD_ATTR_FILES)
def test_bad_attr_file_is_logged_and_left_out_and_nothing_is_deleted(place, kind):
    for name in ("good", "bad"):
        write(f"{place}/mirror/d/{name}", name.encode())
    config = attr_module(place)
    write(f"{place}/attrs/d/bad", BAD_ATTR_FILES[kind])
    write(f"{place}/dest/d/bad", b"from before")
    write(f"{place}/dest/d/surplus", b"from before")
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        result = harness.run(harness.STOCK, "-r", "--delete", daemon.url("mod/"), f"{place}/dest/")
        assert result.code == 23, result.text
        assert re.search(rb'attr file "d/bad" \(in mod\)', result.stderr), result.text
        assert 'd/bad" (in mod)' in daemon.log()
    assert sorted(os.listdir(f"{place}/dest/d")) == ["bad", "good", "surplus"]


@root_only
@pytest.mark.parametrize("extra", ("", "ignore nonreadable = yes"))
def test_files_nobody_may_read_are_listed_as_from_the_live_tree(place, extra):
    for name in ("open", "closed", "d/closed"):
        write(f"{place}/mirror/{name}", name.encode() * 100)
        if "closed" in name:
            os.chmod(f"{place}/mirror/{name}", 0o600)
    trees.set_directory_times(f"{place}/mirror")
    config = attr_module(place, extra)
    said = []
    for program, text in ((harness.STOCK, f"use chroot = no\ntimeout = 600\n{NOBODY}{extra}\n[mod]\npath = {place}/mirror\n"),
                          (harness.HUAI, config)):
        with harness.Daemon(program, text, place) as daemon:
            listed = harness.run(harness.STOCK, "-r", daemon.url("mod/"))
            write(f"{place}/dest/surplus", b"surplus")
            pulled = harness.run(harness.STOCK, "-rti", "--delete", daemon.url("mod/"), f"{place}/dest/")
        said.append((listed.code, listed.stdout, pulled.code, sorted(pulled.stdout.splitlines()), harness.normalise(pulled.stderr),
                     contents(f"{place}/dest")))
        shutil.rmtree(f"{place}/dest")
    assert said[1] == said[0]


def test_rules_lists_and_digests_are_read_from_the_real_side(place):
    write(f"{place}/mirror/.rules", b"- *.junk\n")
    write(f"{place}/mirror/a.junk", b"junk")
    write(f"{place}/mirror/a.txt", b"text")
    write(f"{place}/mirror/names", b"a.txt\n")
    config = attr_module(place)
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        merged = harness.run(harness.STOCK, "-r", "--filter=: .rules", daemon.url("mod/"), f"{place}/one/")
        assert merged.code == 0 and sorted(os.listdir(f"{place}/one")) == [".rules", "a.txt", "names"], merged.text
        listed = harness.run(harness.STOCK, "-r", "--files-from=:/names", daemon.url("mod/"), f"{place}/two/")
        assert listed.code == 0 and os.listdir(f"{place}/two") == ["a.txt"], listed.text
        write(f"{place}/one/a.txt", b"TEXT")
        again = harness.run(harness.STOCK, "-rci", daemon.url("mod/a.txt"), f"{place}/one/")
        assert again.stdout.startswith(b">fc"), again.text
        equal = harness.run(harness.STOCK, "-rci", daemon.url("mod/a.txt"), f"{place}/one/")
        assert equal.code == 0 and equal.stdout == b"", equal.text


@pytest.mark.parametrize("how", (["--rsync-path=HUAI --only-send-attrs"], ["--rsync-path=HUAI", "-M--only-send-attrs"]))
@pytest.mark.parametrize("protocol", (27, 29, 30, 32))
def test_attr_tree_can_be_made_from_another_host(place, how, protocol):
    for size in (0, 8, 70000):
        write(f"{place}/mirror/d/f{size}", b"x" * size)
    os.link(f"{place}/mirror/d/f8", f"{place}/mirror/hard")
    os.symlink("d", f"{place}/mirror/link")
    os.utime(f"{place}/mirror/link", (1_600_000_000, 1_600_000_000), follow_symlinks=False)
    trees.set_directory_times(f"{place}/mirror")
    shell = harness.make_remote_shell(place)
    words = ["-aH", f"--protocol={protocol}", "-e", shell, *(word.replace("HUAI", harness.HUAI) for word in how)]
    result = harness.run(harness.STOCK, *words, f"host:{place}/mirror/", f"{place}/attrs/")
    assert result.code == 0, result.text
    local = harness.run(harness.HUAI, "-aH", "--only-send-attrs", f"{place}/mirror/", f"{place}/local/")
    assert local.code == 0, local.text
    different = trees.differences(trees.describe(f"{place}/local"), trees.describe(f"{place}/attrs"))
    assert [line for line in different if protocol > 30 or "mtime" not in line] == []
    with open(f"{place}/attrs/d/f70000", "rb") as file:
        assert file.read() == struct.pack("<Q", 70000)


def test_remote_refresh_notices_sizes_with_checksums(place):
    """Equal times and 8 bytes on both sides: the receiver of another release needs -c to see it, which reads no content."""
    write(f"{place}/mirror/f", b"12345")
    shell = harness.make_remote_shell(place)
    words = ["-a", "-e", shell, f"--rsync-path={harness.HUAI} --only-send-attrs", f"host:{place}/mirror/", f"{place}/attrs/"]
    assert harness.run(harness.STOCK, *words).code == 0
    write(f"{place}/mirror/f", b"123456")
    result = harness.run(harness.STOCK, "-ci", *words)
    assert result.code == 0 and result.stdout.startswith(b">fc"), result.text
    with open(f"{place}/attrs/f", "rb") as file:
        assert file.read() == struct.pack("<Q", 6)


# --- whole sessions of old clients ---

def captured_module(top):
    """The module of the captures, as their README describes it."""
    write(f"{top}/a.txt", b"hello\n", 0o644, 1_700_000_000 * 10**9)
    write(f"{top}/b.bin", bytes((7 * i + i // 256) % 256 for i in range(70000)), 0o600, 1_700_000_001 * 10**9)
    write(f"{top}/caf\u00e9", b"utf8 name\n", 0o644, 1_700_000_000 * 10**9)
    write(f"{top}/dir.x", b"sorts near dir\n", 0o644, 1_700_000_000 * 10**9)
    write(f"{top}/dir/c", b"", 0o755, 1_500_000_000 * 10**9)
    write(f"{top}/dir/sub/d.iso", b"D" * 5000, 0o444, 946_684_800 * 10**9)
    os.mkdir(f"{top}/empty")
    os.symlink("../a.txt", f"{top}/dir/link")
    os.link(f"{top}/a.txt", f"{top}/dir/hardlink")
    trees.set_directory_times(top, 1_600_000_000 * 10**9)


def demultiplexed(stream):
    """Length of the data and the other messages of a server's stream, which starts with text and set-up of unknown length."""
    for start in range(len(stream)):
        at, data, messages = start, 0, []
        while at + 4 <= len(stream):
            word = struct.unpack_from("<I", stream, at)[0]
            length, code = word & 0xffffff, (word >> 24) - raw_client.TAG_BASE
            if code not in (0, 1, 2, 3, 4, 22, 33, 102) or at + 4 + length > len(stream):
                break
            if code == 0:
                data += length
            else:
                messages.append((code, stream[at + 4:at + 4 + length]))
            at += 4 + length
        if at == len(stream) and data:
            return data, messages
    return None


def captured_sessions():
    with open(os.path.join(CAPTURES, "manifest.tsv"), encoding="utf-8") as manifest:
        names = [line.split("\t")[0] for line in manifest.readlines()[1:]]
    return [name for name in names if "-push" not in name and os.path.exists(os.path.join(CAPTURES, f"{name}.c2s"))]


@pytest.fixture(scope="module")
def captured_daemon(top):
    captured_module(f"{top}/mod")
    config = f"use chroot = no\ntimeout = 0\nuid = 0\ngid = 0\n[mod]\npath = {top}/mod\n"
    with harness.Daemon(harness.HUAI, config, top) as daemon:
        yield daemon


@root_only
@pytest.mark.parametrize("name", captured_sessions())
def test_captured_session_is_answered_to_its_end(captured_daemon, name):
    """Every byte that a client of a release said, said again: the answer is as long as stock's was, and ends in good order."""
    with open(os.path.join(CAPTURES, f"{name}.c2s"), "rb") as file:
        said = file.read()
    before = len(captured_daemon.log())
    with raw_client.Client(raw_client.connect(captured_daemon.port)) as client:
        client.send(said)
        client.end()
        answer = bytes(client.stream)
    answered = os.path.join(CAPTURES, f"{name}.s2c")
    assert answer, "no answer"
    log = captured_daemon.log()[before:]
    assert "rsync error" not in log, log
    # The seed is another one, so blocks of a basis do not match; compressed data may differ by library.
    if os.path.exists(answered) and not re.search("delta|compress|filter-delete", name):
        with open(answered, "rb") as file:
            expected = file.read()
        assert demultiplexed(answer) is not None
        assert abs(demultiplexed(answer)[0] - demultiplexed(expected)[0]) <= 16, "statistics may differ by some bytes, no more"


# --- the log of a daemon ---

def test_transfer_lines_are_stocks(place):
    """Every escape that does not name a process, a moment or a peer; %b counts frame headers, which fall as they may."""
    for name in ("a", "d/b"):
        write(f"{place}/mirror/{name}", name.encode() * 1000)
    os.link(f"{place}/mirror/a", f"{place}/mirror/hard")
    os.symlink("a", f"{place}/mirror/link")
    lines = {}
    for name, program in (("stock", harness.STOCK), ("ours", harness.HUAI)):
        os.mkdir(f"{place}/{name}")
        config = (f"use chroot = no\ntimeout = 600\n{NOBODY}transfer logging = yes\n"
                  f"log format = %o|%f|%l|%n|%L|%i|%c|%U|%G|%C|%M|%B|%m\n[mod]\npath = {place}/mirror\n")
        with harness.Daemon(program, config, f"{place}/{name}") as daemon:
            for options in ("-rltH", "-rltHn", "-rltHI", "-rltpH"):
                assert harness.run(harness.STOCK, *options.split(), daemon.url("mod/"), f"{place}/{name}/dest/").code == 0
            assert harness.run(harness.STOCK, "-r", daemon.url("mod/d"), f"{place}/{name}/dest/").code == 0
            log = daemon.log()
        lines[name] = [line.split("] ", 1)[1] for line in log.splitlines() if line.endswith("|mod")]
    assert len(lines["stock"]) > 5
    assert lines["ours"] == lines["stock"]
