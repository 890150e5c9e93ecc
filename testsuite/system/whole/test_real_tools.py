# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run rsync for their users, for real: a rotation of backups, rsnapshot, ftpsync.

Each runs twice against the same stock server, with stock and with ours as the `rsync` of its PATH; what is left is compared.
"""
import collections
import os
import re
import shutil
import subprocess

import pytest

import harness
import trees

FIRST_DAY = 1_600_000_000


def needs(program):
    return pytest.mark.skipif(not shutil.which(program), reason=f"needs {program}")


def at_day(top, day):
    """Whatever is new in the tree gets a time of that day."""
    fresh = (FIRST_DAY + 1_000_000) * 10**9
    moment = (FIRST_DAY + 86_400 * day) * 10**9 + 123_456_789
    for directory, names, files in os.walk(top, topdown=False):
        for name in (*files, *names, "."):
            path = os.path.join(directory, name)
            if os.lstat(path).st_mtime_ns > fresh:
                os.utime(path, ns=(moment, moment), follow_symlinks=False)


def write(top, name, text):
    path = os.path.join(top, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
    with open(path, "w") as file:
        file.write(text)


def change(top, day):
    """What happens to a home directory from one day to the next."""
    at = lambda name: os.path.join(top, name)
    if day == 0:
        for number in range(40):
            write(top, f"mail/{number % 4}/message-{number}", f"message {number}\n" * number)
        for name in ("notes.txt", "work/a.c", "work/b.c", "work/old.c", "odd names/sp ace & $x", "work/.cache/junk", "work/x.o"):
            write(top, name, name * 100)
        os.symlink("notes.txt", at("current"))
        os.link(at("work/a.c"), at("work/a-too.c"))
        os.mkfifo(at("work/pipe"))
        os.makedirs(at("empty/below"))
    elif day == 1:
        write(top, "notes.txt", "rewritten\n")
        write(top, "mail/1/message-new", "new\n")
        os.unlink(at("mail/0/message-4"))
        os.rename(at("work/old.c"), at("work/renamed.c"))
    elif day == 2:
        os.chmod(at("notes.txt"), 0o600)
        os.chmod(at("work"), 0o750)
        os.unlink(at("current"))
        os.symlink("work/a.c", at("current"))
        os.link(at("work/b.c"), at("work/b-too.c"))
        os.rename(at("mail/2"), at("mail/archive"))
    elif day == 3:
        shutil.rmtree(at("empty"))
        write(top, "empty", "a file now")
        os.unlink(at("work/a-too.c"))
        write(top, "work/a-too.c", "work/a.c" * 100)
        if trees.IS_ROOT:
            os.chown(at("work/b.c"), 1234, 4321)
        os.utime(at("work/renamed.c"), (1, 1))
    elif day == 4:
        os.unlink(at("empty"))
        os.makedirs(at("empty/again"))
        with open(at("mail/3/message-39"), "r+") as file:
            file.write("MESSAGE")
    at_day(top, day)


def home_of(program, place):
    """A home with the program as its rsync; returns its environment."""
    home = os.path.join(place, os.path.basename(program))
    os.makedirs(os.path.join(home, "bin"))
    os.symlink(program, os.path.join(home, "bin/rsync"))
    return {"HOME": home, "PATH": f"{home}/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8", "TZ": "UTC", "USER": "tester",
            "LOGNAME": "tester"}


def run(environment, *words, codes=(0,)):
    result = subprocess.run(words, env=environment, cwd=environment["HOME"], stdin=subprocess.DEVNULL, capture_output=True,
                            timeout=harness.CLIENT_SECONDS)
    assert result.returncode in codes, (words, result.returncode, result.stdout, result.stderr)
    return result


def assert_same_backups(environments, name):
    """Trees by everything that a tree has; hard links across them are part of that."""
    stock, ours = (trees.describe(os.path.join(environment["HOME"], name), since_ns=(FIRST_DAY + 10_000_000) * 10**9)
                   for environment in environments)
    assert len(stock) > 50
    assert trees.differences(stock, ours) == []


def make_ssh(place):
    """As harness.make_remote_shell, for callers who name a user."""
    path = os.path.join(place, "ssh")
    with open(path, "w") as file:
        file.write('#!/bin/sh\n[ "$1" = -l ] && shift 2\nshift\ncd /\nexec sh -c "$*"\n')
    os.chmod(path, 0o755)
    return path


@pytest.fixture
def site(place):
    """A source, served by a stock daemon as `m` and by a stand-in for ssh."""
    source = os.path.join(place, "source")
    os.mkdir(source)
    owner = "uid = root\ngid = root\n" if trees.IS_ROOT else ""
    os.mkdir(os.path.join(place, "daemon"))
    config = f"use chroot = no\n{owner}[m]\npath = {source}\n"
    with harness.Daemon(harness.STOCK, config, os.path.join(place, "daemon")) as daemon:
        yield {"source": source, "daemon": daemon, "shell": make_ssh(place), "place": place,
               "homes": [home_of(program, place) for program in (harness.STOCK, harness.HUAI)]}


# --- a rotation as it stands in many a crontab ---

ROTATION = """#!/bin/sh
# backup SOURCE NAME: into backups/NAME, sharing with the one before; the three last are kept
set -e
mkdir -p backups
cd backups
rsync -aH --numeric-ids --delete --delete-excluded --exclude='*.o' --exclude=.cache/ $RSYNC_WORDS \\
    --link-dest=../latest "$1/" "incomplete-$2/"
mv "incomplete-$2" "$2"
rm -f latest
ln -s "$2" latest
ls -d day-* | sort -r | tail -n +4 | while read old; do rm -rf "$old"; done
"""


@pytest.mark.parametrize("way", [
    pytest.param("local", marks=[pytest.mark.core]), "daemon", "daemon --no-W", "shell --protocol=29",
    "shell --no-i-r --delete-after",
])
def test_rotation_of_backups_that_share_what_is_the_same(site, way):
    transport, *words = way.split()
    source = {"local": site["source"], "shell": f"host:{site['source']}", "daemon": site["daemon"].url("m")}[transport]
    script = os.path.join(site["place"], "backup")
    with open(script, "w") as file:
        file.write(ROTATION)
    for day in range(5):
        change(site["source"], day)
        for environment in site["homes"]:
            run({**environment, "RSYNC_RSH": site["shell"], "RSYNC_WORDS": " ".join(words)}, "sh", script, source, f"day-{day}")
        assert_same_backups(site["homes"], "backups")
    kept = sorted(os.listdir(os.path.join(site["homes"][1]["HOME"], "backups")))
    assert kept == ["day-2", "day-3", "day-4", "latest"]
    same, changed = (os.stat(os.path.join(site["homes"][1]["HOME"], "backups/day-4", name)) for name in
                     ("mail/0/message-0", "mail/3/message-39"))
    assert same.st_nlink >= 3 and changed.st_nlink == 1


# --- rsnapshot ---

RSNAPSHOT = """config_version	1.2
snapshot_root	{home}/snapshots/
cmd_cp	/bin/cp
cmd_rm	/bin/rm
cmd_rsync	{home}/bin/rsync
cmd_ssh	{shell}
retain	alpha	3
retain	beta	2
verbose	3
loglevel	3
logfile	{home}/log
lockfile	{home}/lock
link_dest	{link_dest}
sync_first	{sync_first}
{more}
exclude	*.o
backup	{source}/work/	here/
backup	tester@host:{source}/	there/
backup	rsync://127.0.0.1:{port}/m/	module/
"""


@needs("rsnapshot")
@pytest.mark.parametrize("link_dest, sync_first, more", [
    (0, 0, ""), (1, 1, "rsync_short_args\t-aHv\nrsync_long_args\t--delete --numeric-ids --relative --delete-excluded --stats"),
])
def test_rsnapshot(site, link_dest, sync_first, more):
    logs = []
    for environment in site["homes"]:
        with open(os.path.join(environment["HOME"], "rsnapshot.conf"), "w") as file:
            file.write(RSNAPSHOT.format(home=environment["HOME"], shell=site["shell"], source=site["source"], link_dest=link_dest,
                                        sync_first=sync_first, more=more, port=site["daemon"].port))
    for day in range(5):
        change(site["source"], day)
        for environment in site["homes"]:
            words = [["sync"]] if sync_first else []
            for level in (*words, ["alpha"], *([["beta"]] if day == 3 else [])):
                run(environment, "rsnapshot", "-c", os.path.join(environment["HOME"], "rsnapshot.conf"), *level)
    assert_same_backups(site["homes"], "snapshots")
    for environment in site["homes"]:
        with open(os.path.join(environment["HOME"], "log")) as file:
            text = file.read().replace(environment["HOME"], "HOME")
        text = re.sub(r"^\[[^]]*\] |\b[\d,.]+ bytes.*|speedup is .*|Number of 4 KiB.*\n|(File list|Total bytes).*|echo \d+", "", text, flags=re.M)
        # Others write to the directories above.
        logs.append(collections.Counter(line for line in text.split("\n") if "source" in line or not line.endswith("/")))
    assert (logs[0] - logs[1], logs[1] - logs[0]) == ({}, {})


# --- ftpsync, of the Debian archive's mirrors ---

FTPSYNC = """MIRRORNAME=mirror.example.org
TO="{home}/mirror/"
RSYNC_HOST=127.0.0.1
RSYNC_PATH=m
RSYNC_EXTRA="--port={port}"
ARCH_INCLUDE="amd64 source"
LOGDIR="{home}/log"
LOG="{home}/log/ftpsync.log"
TRACEHOST=mirror.example.org
MAILTO=
"""


def change_archive(top, day):
    """A small archive of packages, before and after a release of new ones."""
    version = f"1.{day}"
    for arch in "amd64", "arm64":
        write(top, f"dists/sid/main/binary-{arch}/Packages", f"Package: a\nVersion: {version}\nArchitecture: {arch}\n")
        write(top, f"dists/sid/main/binary-{arch}/Release", f"Version: {version}\n")
        for name in "a", "b":
            write(top, f"pool/main/{name}/{name}_{version}_{arch}.deb", f"{name} {version} {arch}\n" * 500)
    write(top, "dists/sid/main/source/Sources", f"Package: a\nVersion: {version}\n")
    write(top, f"pool/main/a/a_{version}.dsc", f"Source: a {version}\n")
    for name in "dists/sid/Release", "dists/sid/InRelease", "ls-lR.gz", "README":
        write(top, name, f"{name} {version}\n")
    if day:
        for arch in "amd64", "arm64":
            os.unlink(os.path.join(top, f"pool/main/b/b_1.{day - 1}_{arch}.deb"))
    else:
        write(top, "project/trace/master", "Sat Nov 21 00:00:00 UTC 2026\n")
        os.symlink("sid", os.path.join(top, "dists/unstable"))
        os.link(os.path.join(top, "pool/main/a/a_1.0.dsc"), os.path.join(top, "pool/main/a/same.dsc"))
        os.symlink("/etc/passwd", os.path.join(top, "unsafe"))
    at_day(top, day)


@needs("ftpsync")
def test_ftpsync(site):
    for environment in site["homes"]:
        os.makedirs(os.path.join(environment["HOME"], ".config/ftpsync"))
        with open(os.path.join(environment["HOME"], ".config/ftpsync/ftpsync.conf"), "w") as file:
            file.write(FTPSYNC.format(home=environment["HOME"], port=site["daemon"].port))
    for day in range(3):
        change_archive(site["source"], day)
        found = []
        for environment in site["homes"]:
            run(environment, "ftpsync", *(["sync:all"] if day else []))
            mirror = os.path.join(environment["HOME"], "mirror")
            with open(os.path.join(mirror, "project/trace/mirror.example.org")) as file:
                trace = re.sub(r"^(Date|Running on host|.*UTC \d+$|Total|Average).*\n", "", file.read(), flags=re.M)
            with open(os.path.join(environment["HOME"], "log/ftpsync.log.0")) as file:
                log = file.read()
            assert "returncode 0" in log and "ERROR" not in log, log
            tree = trees.describe(mirror, since_ns=(FIRST_DAY + 10_000_000) * 10**9)
            for name in [name for name in tree if name.startswith(b"project/trace/")]:
                tree[name].pop("content", None)
            found.append((trace, tree))
        assert found[0][0] == found[1][0] != ""
        assert trees.differences(found[0][1], found[1][1]) == []
        assert b"pool/main/a/a_1.0_amd64.deb" in found[1][1] and b"pool/main/a/a_1.0_arm64.deb" not in found[1][1]
