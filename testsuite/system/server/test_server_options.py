# SPDX-License-Identifier: GPL-3.0-or-later
"""Every option that stock documents, given to a server alone (-M): ours does with it what a stock server does.

The client is stock's, and its own options are the same each time. What is left out changes the stream, which a server alone
must not, or is about the program itself.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import time

import pytest

import harness
import receiver
import trees

OLD = 1_300_000_000_000_000_000
VALUES = {
    "info": ["all2", "none", "bogus"], "debug": ["none", "bogus"], "stderr": ["a", "c", "x"], "out-format": ["%n", "%i", ""],
    "log-file": ["{job}/log", "{job}/no/log"], "log-file-format": ["%n"], "outbuf": ["L", "x"], "modify-window": ["1", "100000000", "-1", "x"],
    "confine-root": ["{top}", "/none", "relative"], "usermap": ["*:5"], "groupmap": ["0:6"], "chown": ["5:6", "a:b:c"],
    "chmod": ["F600", "D700,Fgo=", "bogus"], "max-size": ["1000", "x"], "min-size": ["1000"],
    "filter": ["- *.o", "P *.o", "merge {top}/lists/names", "!", "bogus", ": .rules"], "exclude": ["*.o", "/d"], "include": ["*.o"],
    "exclude-from": ["{top}/lists/names", "/none"], "include-from": ["{top}/lists/names"], "max-delete": ["1", "0", "x"],
    "backup-dir": ["{job}/kept", ""], "suffix": [".b", "", "a/b"], "compare-dest": ["{top}/src"], "copy-dest": ["{top}/src", "../none"],
    "link-dest": ["{top}/src"], "partial-dir": [".p", "{job}/part"], "temp-dir": ["{job}", "{job}/none"], "compress-threads": ["2"],
    "skip-compress": ["o/c"], "block-size": ["700", "1g"], "bwlimit": ["100000", "x"], "timeout": ["30", "x"], "contimeout": ["3"],
    "stop-after": ["5", "0"], "stop-at": ["2000-01-01T00:00", "2090-01-01T00:00"], "checksum-seed": ["5"], "max-alloc": ["2G", "x"],
    "protocol": ["30", "33"], "write-batch": ["{job}/batch"], "read-batch": ["{job}/batch"], "rsh": ["x"], "rsync-path": ["x"], "remote-option": ["-v"],
    "address": ["127.0.0.1"], "port": ["1"], "sockopts": ["SO_KEEPALIVE"], "password-file": ["/none"], "early-input": ["/none"],
    "copy-as": ["root", "no-such-user"],
}
# Both ends have to know of these.
STREAM = {"checksum", "checksum-choice", "append", "append-verify", "compress", "compress-choice", "compress-level", "dry-run",
          "files-from", "iconv", "acls", "xattrs", "atimes", "fake-super", "secluded-args", "only-write-batch", "copy-devices", "ignore-existing"}
ABOUT_ITSELF = {"version", "help", "daemon"}
MORE = ["-vv", "-ii", "-xx", "-F", "-FF", "-P", "-D", "-hqxuCymdrW0KkLOJESIb48", "-f- *.o", "-M-v", "-e.LsfxCIvu",
        "--no-r", "--no-t", "--no-p", "--no-inc-recursive", "--no-super", "--no-whole-file", "--no-force", "--old-dirs", "--ignore-non-existing",
        "--delete-before --delete-after", "-b --suffix=.x", "-b --backup-dir={job}/kept", "--exclude=*.o --delete-excluded",
        "-0 --exclude-from={top}/lists/nul", "--delay-updates --partial-dir=.p", "--append -W", "--inplace --partial-dir=.p", "--delete --no-r",
        "--log-file={job}/log --log-file-format=%i_%n_%o", "--copy-dest={top}/src --link-dest={top}/src", "--chmod=F600 --chmod=g+w",
        "--usermap=*:5 --groupmap=*:6 --numeric-ids", "--confine-root={top} --insecure-links", "--munge-links --safe-links", "--crtimes",
        "--no-such-option", "-Q", "--stats=x"]
# Which of the two still gets to say that the other has left.
UNSTABLE = re.compile(rb"^(rsync: (connection unexpectedly closed|\[\w+\] (write error|safe_write failed .*): Broken pipe)|rsync error: error in"
                      rb" (rsync protocol data stream|socket IO) \(code 1[02]\)).*\n", re.M)
STAMP = re.compile(rb"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\d+\] ", re.M)
TOTALS = re.compile(rb"^LOG sent \d+ bytes  received \d+ bytes", re.M)
pytestmark = pytest.mark.skipif(not trees.IS_ROOT, reason="owners and devices are root's")


def table():
    """Words of stock's help with a value each, and more of them."""
    found = []
    for name, value in re.findall(r"^(?:--|-\w, --)([\w-]+)(=)?", subprocess.run([harness.STOCK, "--help"], capture_output=True, text=True,
                                                                           check=True).stdout, re.M):
        if name not in STREAM | ABOUT_ITSELF:
            found += [f"--{name}={text}" for text in VALUES[name]] if value else [f"--{name}"]
    return list(dict.fromkeys(found + MORE))


class Site:
    def __init__(self, top):
        self.top = top
        self.shell = harness.make_remote_shell(top)
        for tree in "src", "old", "lists":
            os.mkdir(f"{top}/{tree}")
        for tree in "src", "old":
            for name, content in (("a.o", b"object"), ("b.c", b"text" * 300), ("d/a.o", b"in d"), ("d/e/f", b"f"), ("kd/in", b"in"), ("h1", b"hard"),
                                  (".rules", b"- *.c\n"), (".rsync-filter", b"- b.*\n"), ("core", b"core"), ("wasdir", b"a file")):
                self.write(f"{tree}/{name}", content)
            os.link(f"{top}/{tree}/h1", f"{top}/{tree}/d/h2")
            for target, name in (("a.o", "l"), ("../../lists", "up"), ("/rsyncd-munged/x", "m")):
                trees.symlink(target, f"{top}/{tree}/{name}")
            os.makedirs(f"{top}/{tree}/bare/er")
            os.mkfifo(f"{top}/{tree}/pipe")
            os.utime(f"{top}/{tree}/pipe", ns=(OLD, OLD))
        trees.write(f"{top}/src/b.c", b"text" * 299 + b"TEXT", 0o640)
        os.unlink(f"{top}/old/l")
        os.unlink(f"{top}/old/d/e/f")
        os.unlink(f"{top}/old/wasdir")
        os.rename(f"{top}/old/kd", f"{top}/old/real")
        trees.symlink("real", f"{top}/old/kd")
        for name, mtime in (("extra.o", OLD), ("gone/x", OLD), ("d/old.o", OLD), ("b.c", OLD * 2), ("core", OLD), ("wasdir/y", OLD)):
            self.write(f"old/{name}", b"old " + name.encode(), mtime)
        self.write("lists/names", b"*.o\n")
        self.write("lists/nul", b"a.o\0b.c\0")
        trees.set_directory_times(f"{top}/src")
        trees.set_directory_times(f"{top}/old", OLD)

    def write(self, name, content, mtime=1_700_000_000_000_000_000):
        path = f"{self.top}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        trees.write(path, content, mtime_ns=mtime)

    def outcome(self, job, direction, words, server):
        place = f"{self.top}/{job}"
        shutil.rmtree(place, ignore_errors=True)
        os.mkdir(place)
        source, target = f"{self.top}/src", f"{place}/dst"
        if "remove" in words:
            source = f"{place}/src"
            subprocess.run(["cp", "-a", f"{self.top}/src", source], check=True)
        subprocess.run(["cp", "-a", f"{self.top}/old", target], check=True)
        remote = ["-M" + word.format(top=self.top, job=place) for word in re.split(r" (?=--?\w)", words)]
        ends = [f"h:{source}/", f"{target}/"] if direction == "pull" else [f"{source}/", f"h:{target}/"]
        since = (int(time.time()) - 1) * 1_000_000_000
        result = harness.run(harness.STOCK, "-aHi", "--delete", "-e", self.shell, f"--rsync-path={server}", *remote, *ends, cwd=place)
        log = self.log(f"{place}/log")
        tree = trees.describe(place, since_ns=since)
        shutil.rmtree(place)
        text = harness.normalise(result.stdout + b"\n" + result.stderr + log, (harness.HUAI, "PROGRAM"), (harness.STOCK, "PROGRAM"))
        return result, (result.code, sorted(receiver.TEMP_NAME.sub(rb"/\1" + b'"', UNSTABLE.sub(b"", text)).split(b"\n")), tree)

    @staticmethod
    def log(path):
        if not os.path.exists(path):
            return b""
        with open(path, "rb") as file:
            text = file.read()
        os.unlink(path)
        return TOTALS.sub(b"LOG sent", STAMP.sub(b"LOG ", text))

    def difference(self, job, direction, words):
        (theirs, expected), (ours, got) = [self.outcome(job, direction, words, server) for server in (harness.STOCK, harness.HUAI)]
        if got == expected:
            return ""
        return "\n".join([f"--- {words}", theirs.text, ours.text, *trees.differences(expected[2], got[2])])


@pytest.fixture(scope="module")
def site(top):
    return Site(top)


@pytest.mark.parametrize("direction", ["pull", "push"])
def test_a_server_acts_on_every_option(site, direction):
    with concurrent.futures.ThreadPoolExecutor((os.cpu_count() or 1) + 1) as executor:
        found = executor.map(lambda numbered: site.difference(numbered[0], direction, numbered[1]), enumerate(table()))
        differences = [text for text in found if text]
    assert not differences, "\n".join(differences)


@pytest.mark.core
@pytest.mark.parametrize("word", ["--help", "--version", "--info=help", "--debug=help"])
def test_what_a_server_tells_of_itself_is_no_part_of_the_stream(site, word):
    results = [harness.run(harness.STOCK, "-a", "-e", site.shell, f"--rsync-path={server}", "-M" + word, f"h:{site.top}/src/", f"{site.top}/none/")
               for server in (harness.STOCK, harness.HUAI)]
    assert [result.code for result in results] == [12, 12], results[1].text
    for result in results:
        assert not result.stdout and (b"--recursive" in result.stderr if word == "--help" else b"ACLs" in result.stderr if word == "--version"
                                      else b"FLIST" in result.stderr), result.text
    assert not os.path.exists(f"{site.top}/none")


def strip_owner_letters(site):
    """A remote shell for clients that tell a server of owners by --usermap and --groupmap alone, as those of 3.1 do."""
    path = f"{site.top}/old-shell"
    with open(path, "w") as file:
        file.write('#!/bin/sh\nshift\nexec sh -c "$(echo "$*" | sed "s/ -\\\\([a-zA-Z]*\\\\)og\\\\([a-zA-Z]*e\\\\.\\\\)/ -\\\\1\\\\2/")"\n')
    os.chmod(path, 0o755)
    return path


@pytest.mark.parametrize("protocol", [32, 29])
def test_maps_imply_owners_if_the_client_sends_them(site, protocol):
    found = []
    for server in harness.STOCK, harness.HUAI:
        for shell, words in ((strip_owner_letters(site), ["--chown=5:6"]), (strip_owner_letters(site), ["--usermap=*:7", "--groupmap=*:8"]),
                             (site.shell, ["-M--chown=5:6"]), (site.shell, ["-o", "-M--usermap=*:9"])):
            if protocol == 29 and words[0] == "-M--chown=5:6":
                continue  # the two wait for each other
            target = f"{site.top}/owned"
            result = harness.run(harness.STOCK, "-rt", f"--protocol={protocol}", *words, "-e", shell, f"--rsync-path={server}",
                                 f"{site.top}/src/d/", f"h:{target}/")
            assert result.code == 0, result.text
            found.append([(entry.st_uid, entry.st_gid) for entry in map(os.lstat, (f"{target}/a.o", f"{target}/e"))])
            shutil.rmtree(target)
    half = len(found) // 2
    assert found[:half] == found[half:] and found[0] == [(5, 6)] * 2, found
