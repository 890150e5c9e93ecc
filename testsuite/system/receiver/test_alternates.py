# SPDX-License-Identifier: GPL-3.0-or-later
"""--compare-dest, --copy-dest and --link-dest beside stock: tree, links into the alternate destinations, output, exit code."""
import os
import shutil
import subprocess

import pytest

import harness
import receiver
import trees

OLD, NEW = 1_500_000_000, 1_600_000_000


def put(top, name, text, mtime=OLD, mode=0o644):
    path = os.path.join(top, name)
    trees.write(path, text.encode() if isinstance(text, str) else text, mode, mtime * 10**9)


def settle(top, mtime=OLD):
    for directory, _, _ in os.walk(top, topdown=False):
        os.utime(directory, (mtime, mtime))


def make_source(top):
    """Of each kind one for each way in which an alternate destination may differ from it."""
    at = lambda name: os.path.join(top, name)
    for name in ("d/e", "dt", "dm", "only/here"):
        os.makedirs(at(name))
    for name in ("same", "time", "mode", "size", "text", "new", "dst-same", "dst-old", "dst-new", "d/f", "d/e/g", "only/here/h"):
        put(top, name, f"content of {name}\n" * 50)
    put(top, "big", trees.noise(150_000, 1), NEW)
    put(top, "empty", "")
    for name in ("l-same", "l-time", "l-else", "l-new", "l-dst"):
        trees.symlink("same", at(name))
        os.utime(at(name), (OLD, OLD), follow_symlinks=False)
    for name in ("p-same", "p-time", "p-new"):
        os.mkfifo(at(name))
        os.utime(at(name), (OLD, OLD))
    if trees.IS_ROOT:
        for name in ("c-same", "c-else", "c-new"):
            os.mknod(at(name), 0o020644, os.makedev(1, 3))
            os.utime(at(name), (OLD, OLD))
    settle(top)


def make_alternates(place):
    """old: the state of yesterday; older: what is found there comes second."""
    at = lambda name: os.path.join(place, name)
    source, old, older = at("s"), at("old"), at("older")
    shutil.copytree(source, old, symlinks=True, ignore=lambda _, names: [n for n in names if n[:2] in ("p-", "c-")])
    for name in os.listdir(source):
        if name[:2] in ("p-", "c-"):
            info = os.lstat(os.path.join(source, name))
            os.mknod(os.path.join(old, name), info.st_mode, info.st_rdev)
            os.utime(os.path.join(old, name), (OLD, OLD))
    os.utime(os.path.join(old, "time"), (NEW, NEW))
    os.chmod(os.path.join(old, "mode"), 0o600)
    put(old, "size", "shorter\n")
    put(old, "text", "CONTENT of text\n" * 50)
    data = bytearray(trees.noise(150_000, 1))
    data[70_000:70_010] = b"**********"
    put(old, "big", bytes(data[:140_000]))
    for name in ("l-time", "p-time"):
        os.utime(os.path.join(old, name), (NEW, NEW), follow_symlinks=False)
    for name in ("new", "l-new", "p-new", "c-new"):
        if os.path.lexists(os.path.join(old, name)):
            os.unlink(os.path.join(old, name))
    os.unlink(os.path.join(old, "l-else"))
    trees.symlink("other", os.path.join(old, "l-else"))
    if trees.IS_ROOT:
        os.unlink(os.path.join(old, "c-else"))
        os.mknod(os.path.join(old, "c-else"), 0o020644, os.makedev(1, 5))
    shutil.rmtree(os.path.join(old, "only"))
    os.makedirs(older)
    for name in ("time", "size", "mode"):
        shutil.copy2(os.path.join(source, name), os.path.join(older, name))
    os.makedirs(os.path.join(older, "only/here"))
    shutil.copy2(os.path.join(source, "only/here/h"), os.path.join(older, "only/here/h"))
    settle(old)
    os.utime(os.path.join(old, "dt"), (NEW, NEW))
    os.chmod(os.path.join(old, "dm"), 0o700)
    settle(older)


def fill_destination(target):
    """Some of it is there already: as wanted, older, of another type, and what only a former run can have left."""
    source = os.path.join(target, "../s")
    shutil.copy2(os.path.join(source, "dst-same"), os.path.join(target, "dst-same"))
    put(target, "dst-old", "something else\n", NEW)
    put(target, "dst-new", "much\n" * 200, OLD + 1)
    put(target, "size", "shortest", NEW)
    os.mkdir(os.path.join(target, "text"))
    trees.symlink("elsewhere", os.path.join(target, "l-dst"))
    os.mkfifo(os.path.join(target, "same"), 0o644)
    os.mkfifo(os.path.join(target, "l-same"))
    for name in ("l-dst", "same", "l-same", "text", "."):
        os.utime(os.path.join(target, name), (OLD, OLD), follow_symlinks=False)


def inodes(place, alternates=("old", "older")):
    """Which names of the destination are which of the alternates."""
    found = {}
    for top in (*alternates, "d"):
        for directory, _, files in os.walk(os.path.join(place, top)):
            for name in files:
                path = os.path.join(directory, name)
                info = os.lstat(path)
                found.setdefault(info.st_ino, set()).add(os.path.relpath(path, place))
    return sorted(sorted(names) for names in found.values())


@pytest.fixture(scope="module")
def site(workspace):
    top = os.path.join(workspace, "alternates")
    os.mkdir(top)
    with receiver.Site(top, make_source) as result:
        make_alternates(top)
        yield result


KINDS = ("compare", "copy", "link")
OPTIONS = ("-ai", "-aii", "-avv", "-rlii", "-rii", "-rlpii", "-ani", "-aci", "-aiI", "-aii --size-only", "-aiu", "-aii --existing",
           "-avv --ignore-existing", "-aiiO", "-aiiJ", "-a --delete -i", "-aiiU", "-rltiiE", "-ai --inplace", "-aW -i",
           "-a --stats", "-aii --chmod=F640", "-ai --modify-window=-1", "-ai --no-i-r --delete-before")
TRANSPORTS = [("shell", protocol) for protocol in (27, 28, 29, 30, 31, 32)] + [("daemon", 28), ("daemon", 32)]


def jobs():
    """The table, each line in turn with an empty destination and with a full one, locally and in a pull."""
    for place, options in enumerate(OPTIONS):
        for number, kind in enumerate(KINDS):
            full = bool((place + number) % 2)
            transport, protocol = TRANSPORTS[(3 * place + number + 2 * full) % len(TRANSPORTS)]
            core = [pytest.mark.core] if options in ("-aii", "-aci") else []
            yield pytest.param(options, kind, full, "local", 32, marks=core, id=f"{options}-{kind}-{full}-local")
            if options in OPTIONS[:3]:
                yield pytest.param(options, kind, not full, "local", 32, id=f"{options}-{kind}-{not full}-local")
            if place % 2 or protocol < (29 if "inplace" in options else 28 if "U" in options else 27):
                continue
            yield pytest.param(options, kind, not full, transport, protocol, id=f"{options}-{kind}-{transport}-{protocol}")


@pytest.mark.parametrize("options, kind, full, transport, protocol", jobs())
def test_alternates_are_used_as_stock_uses_them(site, options, kind, full, transport, protocol):
    several = [] if protocol < 29 else [f"--{kind}-dest=../older"]
    receiver.assert_same(site, [*options.split(), f"--{kind}-dest=../old", *several], transport, protocol,
                         before=fill_destination if full else None, after=lambda: inodes(site.place))


@pytest.mark.parametrize("transport, protocol", [("local", 32), ("shell", 28), ("shell", 32)])
@pytest.mark.parametrize("options, before", [("-aii", None), ("-avv", None), ("-nai", None), ("-aii --existing", None),
                                             ("-ab -i", fill_destination), ("-abn -i", fill_destination)])
def test_alternates_that_are_not_there(site, options, before, transport, protocol):
    words = [f"--link-dest={name}" for name in ("../nowhere", "../s/same", "../old")][0 if protocol > 28 else 2:]
    receiver.assert_same(site, [*options.split(), *words], transport, protocol, before=before,
                         after=lambda: inodes(site.place))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path, alternate, destination", [("same", "old", "d"), ("d", "../old", "d/"), ("", "../old", "d")])
def test_other_operands(site, kind, path, alternate, destination):
    for transport in "local", "shell":
        receiver.assert_same(site, ["-aii", f"--{kind}-dest={alternate}"], transport, path=path, destination=destination,
                             after=lambda: inodes(site.place))


@pytest.mark.parametrize("kind", KINDS)
def test_alternate_by_absolute_path(site, kind):
    receiver.assert_same(site, ["-aii", f"--{kind}-dest={site.place}/old"], "local", after=lambda: inodes(site.place))


def make_groups(top):
    """Hard-link groups of three: what the alternate destinations have of them is in the name."""
    for group in ("all", "b-c", "a-b", "b", "none", "old-b", "apart"):
        put(top, f"{group}:a", group)
        for member in "b", "d/c":
            # Of a group that spreads over several lists stock takes the last member that it has heard of so far.
            path = os.path.join(top, f"{group}:{member}" if member == "b" else f"d/{group}:c" if group != "none" else "none:c")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.link(os.path.join(top, f"{group}:a"), path)
    settle(top)


def make_group_alternates(place):
    copy_with_links(os.path.join(place, "s"), os.path.join(place, "old"))
    old = os.path.join(place, "old")
    for name in ("b-c:a", "d/a-b:c", "b:a", "d/b:c", "none:a", "none:b", "none:c", "old-b:a", "d/old-b:c", "old-b:b", "apart:a"):
        os.unlink(os.path.join(old, name))
    put(old, "old-b:b", "something older", OLD - 1)
    put(old, "apart:a", "apart")
    settle(old)


def copy_with_links(source, target):
    """With its hard links."""
    first = {}
    shutil.copytree(source, target, symlinks=True)
    for directory, _, files in os.walk(source):
        for name in files:
            path = os.path.join(directory, name)
            there = os.path.join(target, os.path.relpath(path, source))
            known = first.setdefault(os.lstat(path).st_ino, there)
            if known != there:
                os.unlink(there)
                os.link(known, there)


@pytest.fixture(scope="module")
def groups(workspace):
    top = os.path.join(workspace, "groups")
    os.mkdir(top)
    with receiver.Site(top, make_groups) as result:
        make_group_alternates(top)
        yield result


@pytest.mark.parametrize("transport, protocol", [("local", 32), ("shell", 32), ("shell", 29), ("daemon", 30)])
@pytest.mark.parametrize("options", ["-aHi", "-aHii", "-aHi --no-i-r", "-aH", "-aH --no-i-r"])
@pytest.mark.parametrize("kind", ["copy", "link"])
def test_hard_links_of_alternates(groups, kind, options, transport, protocol):
    receiver.assert_same(groups, [*options.split(), f"--{kind}-dest=../old"], transport, protocol,
                         after=lambda: inodes(groups.place, ("old",)))


@pytest.mark.parametrize("kind", KINDS)
def test_sources_that_alternates_have_are_removed_as_by_stock(place, kind):
    left = []
    for program in harness.STOCK, harness.HUAI:
        top = os.path.join(place, os.path.basename(program))
        os.mkdir(top)
        with receiver.Site(top, make_source) as site:
            make_alternates(top)
            result = receiver.run(site, program, ["-a", "--remove-source-files", f"--{kind}-dest=../old"], "shell",
                                  before=fill_destination).result
        assert result.code == 0, result.text
        left.append(sorted(trees.describe(site.source)))
    assert left[0] == left[1]


def make_attributed(top):
    """What differs in extended attributes alone, or in ACLs, is in the name."""
    os.makedirs(os.path.join(top, "d-xattr"))
    os.makedirs(os.path.join(top, "d-acl"))
    for name in ("same", "xattr", "value", "acl", "content"):
        put(top, name, name)
    for name in ("xattr", "value", "content", "d-xattr"):
        os.setxattr(os.path.join(top, name), "user.a", name.encode() * 20)
    for name in ("acl", "d-acl"):
        subprocess.run(["setfacl", "-m", "u:12:rx", os.path.join(top, name)], check=True)
    settle(top)


@pytest.mark.parametrize("transport", ("local", "shell"))
@pytest.mark.parametrize("options", ("-aAXii", "-aAXvv", "-aii", "-aXi", "-aAi"))
@pytest.mark.parametrize("kind", KINDS)
def test_acls_and_xattrs_count_where_they_are_kept(attributed, kind, options, transport):
    top = attributed.place
    read = lambda: subprocess.run("find . | sort | xargs getfattr -d; find . | sort | xargs getfacl -n", shell=True, cwd=f"{top}/d",
                                  capture_output=True, check=True).stdout
    receiver.assert_same(attributed, [*options.split(), f"--{kind}-dest=../old"], transport,
                         after=lambda: (read(), inodes(top, ("old",))))


@pytest.fixture(scope="module")
def attributed(workspace):
    top = os.path.join(workspace, "attributed")
    os.mkdir(top)
    with receiver.Site(top, make_attributed) as site:
        subprocess.run(["cp", "-a", f"{top}/s", f"{top}/old"], check=True)
        for name in "xattr", "d-xattr":
            os.removexattr(f"{top}/old/{name}", "user.a")
        os.setxattr(f"{top}/old/value", "user.a", b"another")
        subprocess.run(["setfacl", "-b", f"{top}/old/acl", f"{top}/old/d-acl"], check=True)
        put(f"{top}/old", "content", "longer content")
        settle(f"{top}/old")
        yield site
