# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module's parameters need is there inside of the sandbox: the same jobs with it and without, the same trees and logs."""
import os
import re

import pytest

import attribute_trees
import harness
import trees
from test_daemon import root_only, server_pids, wait_for
from test_sandbox import status_of

pytestmark = root_only

NOBODY = f"uid = nobody\ngid = {harness.NOBODY_GROUP}\n"
ROOT = "uid = root\ngid = root\n"
ATTRS = "path = {place}/attrs\nreal file prefix = {place}/tree\n"
SNAPSHOT = "path = {place}/tree\nattr snapshot = {place}/snapshot\nattr snapshot fallback = refuse\n"
TREE, INBOX = "path = {place}/tree\n", "path = {place}/inbox\nread only = no\n"
CHROOT, PLAIN = "use chroot = yes\n", "use chroot = no\n"
COMMANDS = "".join(f"{phase} exec = echo {phase} $RSYNC_MODULE_NAME $RSYNC_REQUEST $RSYNC_EXIT_STATUS >>{{place}}/{{which}}/ran\n"
                   for phase in ("early", "pre-xfer", "post-xfer"))
CONVERTER = "name converter = while read kind name; do case $kind in *id) echo user$name;; *) echo 4711;; esac; done\n"
PULL, PUSH = ("-aAXH", "{url}", "{out}"), ("-aH", "--no-D", "{place}/source/", "{url}")

NOW = 1_750_000_000 * 10**9
# What it is: the module's lines, and jobs one after the other.
MODULES = {
    "compression": (ATTRS + NOBODY + PLAIN, [("-az", f"--zc={kind}", "{url}", "{out}") for kind in ("zlib", "zlibx", "lz4", "zstd")]),
    "digests": (TREE + ROOT + CHROOT, [("-ac", f"--cc={kind}", "{url}", "{out}") for kind in ("md5", "md4", "xxh64", "xxh128", "sha1")]),
    "deltas": (SNAPSHOT + ROOT + CHROOT, [PULL, (*PULL[:1], "-I", "--no-whole-file", *PULL[1:])]),
    "names": (TREE + ROOT + PLAIN + "numeric ids = no\n", [PULL]),
    "names-chroot": (TREE + ROOT + CHROOT + "numeric ids = no\n", [PULL]),
    "converter": (TREE + ROOT + CHROOT + CONVERTER, [PULL]),
    "converter-nobody": (ATTRS + NOBODY + CHROOT + CONVERTER, [PULL]),
    "converter-write": (INBOX + ROOT + CHROOT + CONVERTER, [PUSH]),
    "commands": (SNAPSHOT + NOBODY + CHROOT + COMMANDS, [PULL]),
    "commands-write": (INBOX + ROOT + PLAIN + COMMANDS, [PUSH]),
    "lock": (ATTRS + ROOT + CHROOT + "max connections = 2\nmax connections per host = 2\nlock file = {place}/{which}/lock\n", [PULL]),
    "log": (TREE + NOBODY + CHROOT + "log file = {place}/{which}/own.log\ntransfer logging = yes\n"
            "log format = %o %f %l %i %u %h %a %m %P %B %C %M %U %G\n", [PULL]),
    "log-write": (INBOX + NOBODY + PLAIN + "log file = {place}/{which}/own.log\ntransfer logging = yes\n"
                  "log format = %o %f %l %i %m %B\n", [PUSH, ("-a", "--delete", "{place}/empty/", "{url}")]),
    "charset": (TREE + ROOT + CHROOT + "charset = ISO-8859-1\n", [("-a", "--iconv=UTF-8", "{url}", "{out}")]),
    "charset-write": (INBOX + NOBODY + CHROOT + "charset = ISO-8859-15\n", [("-a", "--no-D", "--iconv=UTF-8", "{place}/source/", "{url}")]),
    "temp": (INBOX + NOBODY + CHROOT + "temp dir = /temp\nexclude = /temp\n", [PUSH, (*PUSH[:2], "-I", "--no-whole-file", *PUSH[2:])]),
    "rules": (TREE + NOBODY + PLAIN + "exclude from = {place}/rules\nfilter = - /many/3*\n", [PULL, ("-aF", "{url}", "{out}")]),
    "fake-super": (INBOX + NOBODY + PLAIN + "fake super = yes\n", [("-aAX", "{place}/source/", "{url}"), PULL]),
    "modes": (TREE + ROOT + CHROOT + "outgoing chmod = Fo-r\nopen noatime = yes\ndont compress = *.z\n", [("-az", "{url}", "{out}")]),
    "modes-write": (INBOX + ROOT + CHROOT + "incoming chmod = Fo-r\nmunge symlinks = yes\n", [("-aAXHS", "{place}/source/", "{url}"), PULL]),
    "kinds": (INBOX + ROOT + PLAIN, [("-aAXHUS", "--preallocate", "--fsync", "{place}/source/", "{url}"),
                                     ("-a", "--inplace", "-I", "{place}/source/", "{url}"),
                                     ("-a", "--append-verify", "{place}/source/", "{url}"),
                                     ("-ab", "--backup-dir=old", "--fuzzy", "--delete-after", "--exclude=/old", "-I", "{place}/source/", "{url}"),
                                     ("-a", "--link-dest=../d", "{place}/source/", "{url}new/"),
                                     ("-a", "--copy-dest=/d", "{place}/source/", "{url}other/"),
                                     ("-a", "--partial-dir=p", "--delay-updates", "-I", "{place}/source/", "{url}")]),
    "removal": (INBOX + NOBODY + CHROOT, [PUSH, ("-a", "--remove-source-files", "{url}", "{out}")]),
    "batches-of-names": (ATTRS + NOBODY + CHROOT, [("-a", "--files-from=:/many/list", "{url}", "{out}"), ("-a", "{url}many/*", "{out}")]),
    "syslog": (TREE + NOBODY + CHROOT + "log file =\nsyslog facility = local3\nsyslog tag = inside\n", [PULL]),
}
WRITES = {name for name, (lines, _) in MODULES.items() if INBOX in lines}


def build(place):
    os.chmod(place, 0o755)
    attribute_trees.build(f"{place}/tree")
    os.makedirs(f"{place}/tree/many")
    for number in range(40):
        trees.write(f"{place}/tree/many/{number}", trees.noise(number * 4000, number))
    trees.write(f"{place}/tree/many/list", b"many/1\nmany/2\n")
    trees.write(f"{place}/tree/gr\u00fcn".encode(), b"gr\xfcn")
    trees.write(f"{place}/tree/.rsync-filter", b"- 1*\n")
    os.mkdir(f"{place}/empty")
    trees.write(f"{place}/rules", b"- 2*\n")
    for directory in ("source", "source/d"):
        os.mkdir(f"{place}/{directory}")
    for number in range(20):
        trees.write(f"{place}/source/d/file{number}", trees.noise(number * 3000, number), mode=0o4755 if number == 7 else 0o644)
    trees.symlink("d/file1", f"{place}/source/link")
    trees.write(f"{place}/source/gr\u00fcn".encode(), b"x")
    os.link(f"{place}/source/d/file3", f"{place}/source/linked")
    trees.set_directory_times(f"{place}/source")
    trees.set_directory_times(f"{place}/tree")
    os.mkdir(f"{place}/attrs")
    for target in (f"{place}/attrs", f"--attr-snapshot={place}/snapshot"):
        made = harness.run(harness.HUAI, "-aH", "--only-send-attrs", f"{place}/tree/", target)
        assert made.code == 0, made.text


@pytest.fixture(scope="module")
def site(top):
    build(top)
    daemons = []
    for which, words in (("inside", []), ("free", ["--no-sandbox"])):
        os.mkdir(f"{top}/{which}")
        config = "".join(f"[{name}]\n{lines.format(place=top, which=which).replace('/inbox', f'/inbox-{which}-{name}')}"
                         for name, (lines, _) in MODULES.items())
        daemons.append(harness.Daemon(harness.HUAI, config, f"{top}/{which}", words))
        for name in WRITES:
            os.mkdir(f"{top}/inbox-{which}-{name}")
            os.mkdir(f"{top}/inbox-{which}-{name}/temp")
            for directory in ("", "/temp"):
                os.chmod(f"{top}/inbox-{which}-{name}{directory}", 0o777)
    with daemons[0] as inside, daemons[1] as free:
        yield top, {"inside": inside, "free": free}


def own_lines(text, place, which):
    """Of a log, but for what differs from run to run."""
    text = text.replace(which, "WHICH").replace(place, "PLACE")
    return sorted(re.sub(r"^\S+ \S+ \[\d+\] ", "", re.sub(r"(sent|received) \d+ bytes", r"\1 N bytes",
                                                     re.sub(r"made \d+ s ago", "made N s ago", line)))
                  for line in text.splitlines() if " connect from " not in line)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.core if name in ("deltas", "kinds", "converter-write") else [])
                                  for name in MODULES])
def test_a_module_works_inside_as_without(site, place, name):
    top, daemons = site
    outcomes = []
    for which, daemon in daemons.items():
        before = len(daemon.log())
        done = []
        for number, words in enumerate(MODULES[name][1]):
            out = f"{place}/{which}{number}/"
            values = {"url": daemon.url(f"{name}/"), "out": out, "place": top}
            result = harness.run(harness.STOCK, *(word.format(**values) for word in words))
            reported = os.fsdecode(harness.normalise(result.stdout + result.stderr)).replace(f"-{which}-", "-WHICH-")
            done.append((result.code, reported, os.path.exists(out) and trees.describe(out, since_ns=NOW)))
        wait_for(lambda: not server_pids(daemon))
        inbox = f"{top}/inbox-{which}-{name}"
        lines = own_lines(daemon.log()[before:], top, which)
        extra = [open(f"{top}/{which}/{file}").read() for file in ("own.log", "ran") if os.path.exists(f"{top}/{which}/{file}")]
        outcomes.append((done, trees.describe(inbox, since_ns=NOW) if name in WRITES else None, lines,
                         [own_lines(text, top, which) for text in extra]))
    assert [code for code, _, _ in outcomes[1][0]] == [code for code, _, _ in outcomes[0][0]], outcomes
    assert all(code == 0 or (code == 23 and "nobody" in MODULES[name][0]) for code, _, _ in outcomes[0][0]), outcomes[0][0]
    assert [text for _, text, _ in outcomes[1][0]] == [text for _, text, _ in outcomes[0][0]]
    for one, other in zip(outcomes[1][0], outcomes[0][0]):
        assert one[2] is other[2] is False or trees.differences(one[2], other[2]) == []
    assert name not in WRITES or trees.differences(outcomes[1][1], outcomes[0][1]) == []
    assert outcomes[1][2:] == outcomes[0][2:]


@pytest.mark.parametrize("name", ["kinds", "converter-write", "lock", "log", "charset", "temp", "fake-super"])
def test_every_one_of_them_is_confined(site, name):
    _, daemons = site
    assert status_of(daemons["inside"], name)["Seccomp"] == "2"
    wait_for(lambda: not server_pids(daemons["inside"]))
