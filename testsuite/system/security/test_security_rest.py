# SPDX-License-Identifier: GPL-3.0-or-later
"""What the other tests of the checklist leave open. Each test is named by its item of doc/protocol/08-security.md section 10;
doc/security.md has the whole list."""
import hashlib
import os
import re
import resource
import subprocess
import zlib

import pytest

import harness
import raw_client
import trees
from hostile import Module, asked, finish, module, root_only, site
from raw_sender import DIRECTORY, FILE, ROOT, TOP_DIR, entry
from test_client_connect import record, recorder
from test_confinement import STRANGER, foreign
from test_daemon import GREETING, IDENTITY, PATIENCE, talk
from test_daemon_auth import log_in
from test_daemon_parameters import HEADERS, Proxied, say

VALUE_OF_NOTHING = 0


# --- lists and contents ---

@pytest.mark.core
@pytest.mark.parametrize("options", [["--delete-missing-args"], []])
def test_s009_mode_0_deletes_what_is_missing_if_that_was_asked_for(site, module, options):
    for name in ("gone", "stays"):
        trees.write(site.path(name))
    with module.push("-rlt", *options) as sender:
        outcome = sender.behave(ROOT, entry(b"gone", VALUE_OF_NOTHING))
    assert os.listdir(site.target) == ["stays"] if options else sorted(os.listdir(site.target)) == ["gone", "stays"], outcome
    assert outcome.code in (0, None) if options else "invalid file mode 00" in outcome.text, outcome


@pytest.mark.parametrize("length", [1, 16382, 16383])
def test_s024_the_largest_compressed_blocks(site, asked, length):
    content = trees.noise(7001 if length == 1 else 60000, 5)
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = (packer.compress(content) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
    blocks = [packed[at:at + length] for at in range(0, len(packed), length)]
    tokens = b"".join(bytes([0x40 | len(block) >> 8, len(block) & 0xff]) + block for block in blocks)
    sender, ndx = asked("-rltz", "--no-whole-file", "--zc=zlib")
    with sender:
        sender.reply(ndx, tokens=tokens + b"\0", digest=hashlib.md5(content).digest())
        outcome = finish(sender)
    with open(site.path("f"), "rb") as file:
        assert file.read() == content, outcome


# --- deadlines ---

def test_s046_a_silent_proxy_is_dropped(place):
    config = f"use chroot = no\nreverse lookup = no\ntimeout = 1\nproxy protocol = yes\nproxy protocol hosts = 127.0.0.1\n[m]\npath = {place}\n"
    with Proxied(harness.HUAI, config, place) as daemon:
        for data in (b"", HEADERS["tcp4"][:9]):
            answer, seconds = talk(daemon, data)
            assert answer == b"" and 0.9 <= seconds < PATIENCE, (answer, seconds)
        assert b"@RSYNCD: OK" in say(daemon, HEADERS["tcp4"] + GREETING + b"m\n")


# --- operators' paths ---

OPTION_FILES = {
    "include-from": (b"- f\n", "-r --include-from={} --exclude=* s/ t/"), "files-from": (b"f\n", "--files-from={} s/ t/"),
    "copy-dest": (None, "-r --copy-dest={} s/ t/"), "compare-dest": (None, "-r --compare-dest={} s/ t/"),
    "log-file": (b"kept\n", "-r --log-file={} s/ t/"), "write-batch": (b"kept\n", "-r --write-batch={} s/ t/"),
    "only-write-batch": (b"kept\n", "-r --only-write-batch={} s/ t/"), "read-batch": (b"", "-r --read-batch={} t/"),
    "password-file": (b"pw\n", "--password-file={} rsync://joe@127.0.0.1:{port}/closed/ t/"),
    "early-input": (b"input\n", "--early-input={} rsync://127.0.0.1:{port}/m/ t/"),
}


@root_only
@pytest.mark.parametrize("where", ["leaf", "parent"])
@pytest.mark.parametrize("option", OPTION_FILES)
def test_s076_links_of_strangers_in_options(place, option, where):
    """As the kernel reports: the link's target is opened only if the link is the operator's."""
    content, words = OPTION_FILES[option]
    os.makedirs(f"{place}/s")
    trees.write(f"{place}/s/f", b"content")
    os.makedirs(f"{place}/real/dir")
    if content is not None:
        trees.write(f"{place}/real/file", content, mode=0o600)
    target = "dir" if content is None else "file"
    link = f"{place}/link"
    os.symlink(f"real/{target}" if where == "leaf" else "real", link)
    value = link if where == "leaf" else f"{link}/{target}"
    followed = {}
    config = f"use chroot = no\n{IDENTITY}path = {place}/s\n[m]\n[closed]\nauth users = joe\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        for owner in (STRANGER, 0):
            os.lchown(link, owner, owner)
            trace = f"{place}/trace"
            command = [word.format(value, port=daemon.port) for word in words.split()]
            subprocess.run(["strace", "-f", "-y", "-e", "trace=/^open", "-o", trace,
                            harness.HUAI, *command], cwd=place, stdin=subprocess.DEVNULL, capture_output=True, timeout=30,
                           env=harness.ENVIRONMENT, check=False)
            with open(trace) as file:
                opened = re.findall(r"= \d+<([^>]*)>$", file.read(), re.M)
            # What is created beside has a suffix.
            followed[owner] = any(path.startswith(f"{place}/real") for path in opened)
            if content == b"kept\n" and owner == STRANGER:
                with open(f"{place}/real/file", "rb") as file:
                    assert file.read() == content
                assert os.listdir(f"{place}/real/dir") == [] and sorted(os.listdir(f"{place}/real")) == ["dir", "file"]
    assert not followed[STRANGER]
    assert followed[0]


def test_s091_the_clients_own_trust_is_not_forwarded(recorder, tmp_path):
    for words in (["h:s/", "d"], [str(tmp_path), "h:d"]):
        reported = record(harness.HUAI, recorder, "-r", "--insecure-links", "-e", f"{recorder}/record", *words, cwd=str(tmp_path))
        assert reported[0] == "ran" and b"--server" in reported[1] and b"insecure" not in reported[1], reported


@pytest.mark.core
@root_only
@pytest.mark.parametrize("mode, good", [(0o600, True), (0o640, True), (0o400, True), (0o602, False), (0o604, False), (0o644, False)])
def test_s101_modes_of_the_secrets_file(place, mode, good):
    trees.write(f"{place}/secrets", b"joe:joepw\n")
    os.chmod(f"{place}/secrets", mode)
    config = f"use chroot = no\nreverse lookup = no\n{IDENTITY}[m]\npath = {place}\nauth users = joe\nsecrets file = {place}/secrets\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        assert log_in(daemon, "m", "joe", "joepw")[0] == ("@RSYNCD: OK\n" if good else "@ERROR: auth failed on module m\n")


@root_only
def test_s101_links_to_the_secrets_file(place):
    link = foreign(place, "secrets", b"joe:joepw\n")
    os.chmod(f"{place}/files/secrets", 0o600)
    config = f"use chroot = no\nreverse lookup = no\n{IDENTITY}[m]\npath = {place}\nauth users = joe\nsecrets file = {link}\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        assert log_in(daemon, "m", "joe", "joepw")[0] == "@ERROR: auth failed on module m\n"
        os.lchown(link, 0, 0)
        assert log_in(daemon, "m", "joe", "joepw")[0] == "@RSYNCD: OK\n"


@root_only
def test_s104_challenges_without_a_device_of_random_bytes(place):
    """In an empty root no two are the same, either."""
    os.makedirs(f"{place}/jail/tree")
    trees.write(f"{place}/jail/secrets", b"joe:joepw\n")
    os.chmod(f"{place}/jail/secrets", 0o600)
    config = (f"daemon chroot = {place}/jail\nuse chroot = no\nreverse lookup = no\nuid = 0\ngid = 0\n"
              f"[m]\npath = /tree\nauth users = joe\nsecrets file = /secrets\n")
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        answers = [log_in(daemon, "m", "joe", "joepw") for _ in range(30)]
    assert {reported for reported, _ in answers} == {"@RSYNCD: OK\n"}
    assert len({challenge for _, challenge in answers}) == 30


# --- names and owners ---

@pytest.mark.core
@root_only
def test_s117_a_converter_is_given_no_control_bytes(place):
    """A sender whose user is called so that one question becomes two, the second of which would make him root."""
    os.mkdir(f"{place}/inbox")
    with open(f"{place}/converter", "w") as file:
        file.write(f'#!/bin/sh\nwhile read -r kind name; do echo "$kind $name" >>{place}/asked\n'
                   'case $name in root) echo 0;; good) echo 4711;; *) echo;; esac; done\n')
    os.chmod(f"{place}/converter", 0o755)
    config = f"use chroot = no\n{IDENTITY}[mod]\npath = {place}/inbox\nread only = no\nname converter = {place}/converter\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        def owned(name, uid, mode=FILE, flags=0):
            return entry(name, mode, size=0, flags=flags, owner=raw_client.varint(uid))

        names = b"".join(raw_client.varint(uid) + bytes([len(name)]) + name for uid, name in ((1234, b"x\nusr root"), (1235, b"good")))
        with Module(daemon).push("-rlto") as sender:
            sender.list(owned(b".", 0, DIRECTORY, TOP_DIR), owned(b"bad", 1234), owned(b"good", 1235), after=names + b"\0\4root")
            outcome = finish(sender)
    with open(f"{place}/asked") as file:
        asked_for = file.read().splitlines()
    assert "usr good" in asked_for and not [line for line in asked_for if line == "usr x"], (asked_for, outcome)
    assert os.stat(f"{place}/inbox/good").st_uid == 4711 and os.stat(f"{place}/inbox/bad").st_uid == 1234, outcome


@root_only
@pytest.mark.parametrize("way", ["local", "pull"])
@pytest.mark.parametrize("option", ["-og", "-ogX", "--inplace -og"])
def test_s126_set_id_bits_come_after_the_owner(place, way, option):
    """Never a moment at which somebody else's program runs as root."""
    os.mkdir(f"{place}/s")
    for number, mode in enumerate((0o4755, 0o2755, 0o6711)):
        trees.write(f"{place}/s/f{number}", b"program", mode=mode, owner=(1000, 1000))
        os.chmod(f"{place}/s/f{number}", mode)
    words = ["-rtp", *option.split(), f"{place}/s/", f"{place}/t/"]
    if way == "pull":
        words[-2:-2] = ["-e", harness.make_remote_shell(place), f"--rsync-path={harness.HUAI}"]
        words[-2] = f"h:{words[-2]}"
    trace = f"{place}/trace"
    result = harness.run("strace", "-f", "-y", "-o", trace, "-e", "trace=/fchmod|fchown|open",
                         harness.HUAI, *words)
    assert result.code == 0, result.text
    owned, bits = set(), 0
    with open(trace) as file:
        for line in file:
            call = re.search(r"(fchown(?:at)?|fchmod(?:at2?)?)\(\d+<([^>]*)>(?:\(deleted\))?(?:, \"([^\"]*)\")?, ([^,)]*)", line)
            if not call or "= 0" not in line:
                assert not re.search(r"open.*O_CREAT.*, 0[2-7]\d\d\d\)", line), line
                continue
            name = os.path.join(call[2], call[3] or "")
            if call[1].startswith("fchown"):
                owned.add(name)
            elif re.fullmatch(r"0[1-7]\d\d\d", call[4]) and int(call[4], 8) & 0o6000:
                bits += 1
                assert name in owned, line
    assert bits >= 3
    for number, mode in enumerate((0o4755, 0o2755, 0o6711)):
        info = os.stat(f"{place}/t/f{number}")
        assert (info.st_mode & 0o7777, info.st_uid) == (mode, 1000)


# --- lists of names that a client has chosen ---

@pytest.mark.parametrize("way", ["pull", "push"])
@pytest.mark.parametrize("options", [[], ["-0"]])
def test_s064_a_list_of_names_without_lines(place, way, options):
    """Any file of the module can be named as one."""
    size = 32 << 20
    os.makedirs(f"{place}/m")
    with open(f"{place}/m/big", "wb") as file:
        for _ in range(32):
            file.write(b"x" * (1 << 20))
    with harness.Daemon(harness.HUAI, f"use chroot = no\n{IDENTITY}[m]\npath = {place}/m\nread only = no\n", place) as daemon:
        resource.prlimit(daemon.process.pid, resource.RLIMIT_DATA, (size, size))
        words = [daemon.url("m/"), f"{place}/out/"] if way == "pull" else [f"{place}/m/", daemon.url("m/")]
        result = harness.run(harness.HUAI, "-r", *options, "--files-from=:/big", *words)
        assert result.code == 23 and b"longer than" in result.stderr, result.text
        assert "memory" not in daemon.log()


@pytest.mark.core
@root_only
@pytest.mark.parametrize("way", ["pull", "push"])
def test_s063_a_list_of_names_without_an_end(place, way):
    os.makedirs(f"{place}/m")
    os.mknod(f"{place}/m/zero", 0o20666, os.makedev(1, 5))
    with harness.Daemon(harness.HUAI, f"use chroot = no\n{IDENTITY}[m]\npath = {place}/m\nread only = no\n", place) as daemon:
        words = [daemon.url("m/"), f"{place}/out/"] if way == "pull" else [f"{place}/m/", daemon.url("m/")]
        result = harness.run(harness.STOCK, "-r0", "--files-from=:/zero", *words, timeout=20)
        assert result.code != 0 and b"failed to open files-from file" in result.stderr, result.text


@pytest.mark.core
@root_only
@pytest.mark.parametrize("options", [["-M--exclude-from=/zero", "-M-0"], ["-M--include-from=/big"], ["-M--filter=._/big"]])
def test_s064_rules_of_a_file_without_an_end(place, options):
    os.makedirs(f"{place}/m")
    os.mknod(f"{place}/m/zero", 0o20666, os.makedev(1, 5))
    with open(f"{place}/m/big", "wb") as file:
        for number in range(100):
            file.write(b"".join(b"- %d\n" % (number * 10000 + line) for line in range(10000)))
    with harness.Daemon(harness.HUAI, f"use chroot = no\n{IDENTITY}[m]\npath = {place}/m\n", place) as daemon:
        result = harness.run(harness.STOCK, "-r", *options, daemon.url("m/"), f"{place}/out/", timeout=20)
        assert result.code != 0
        assert "too many filter rules" in daemon.log() or "filter file is larger than" in daemon.log(), daemon.log()
