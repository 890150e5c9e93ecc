# SPDX-License-Identifier: GPL-3.0-or-later
"""--fuzzy beside stock: which file is chosen as a basis, and how much of it is used."""
import os

import pytest

import harness
import receiver
import trees

OLD, NEW = 1_500_000_000, 1_600_000_000
DATA = trees.noise(40_000, 7)


def put(top, name, data=DATA, mtime=OLD):
    os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
    trees.write(os.path.join(top, name), data, 0o644, mtime * 10**9)


def settle(top):
    for directory, _, _ in os.walk(top):
        os.utime(directory, (OLD, OLD))


def make_source(top):
    for number, name in enumerate(("file-1.2.tar.gz", "new.txt", "pkg_1.1_amd64.deb", "renamed", "d/exact.iso", "d/e/lib.so.2",
                                   "zz-2.dat", "a-log.2", "no-such-thing-anywhere-at-all.bin", "empty")):
        put(top, name, b"" if name == "empty" else DATA[:20_000] + name.encode() + DATA[20_000:30_000 + 10 * number], NEW)
    settle(top)


def fill(target):
    for name in ("file-1.1.tar.gz", "file-1.22.tar.gz", "file-1.2.tar.gz~", "pkg_1.0_amd64.deb", "README", "a-log.1", "a-log.3", "d/e/lib.so.1", "d/e/lib.so.1.0"):
        put(target, name)
    for name in ("new.tx", "renamed.old"):
        os.mkdir(os.path.join(target, name))
    put(target, "renamef", b"")
    os.symlink("README", os.path.join(target, "new.txu"))
    put(target, "d/moved-somewhere-else", DATA[:20_000] + b"d/exact.iso" + DATA[20_000:30_040], NEW)
    settle(target)


@pytest.fixture(scope="module")
def site(top):
    with receiver.Site(top, make_source) as result:
        for name in ("old/new.text", "old/zz-1.dat", "old2/renamer", "old2/d/e/lib.so.2.0", "old2/pkg_1.1_amd64.deb.bak"):
            put(top, name)
        os.symlink("zz-1.dat", os.path.join(top, "old/zz-2.dau"))
        settle(os.path.join(top, "old"))
        settle(os.path.join(top, "old2"))
        yield result


CASES = ("-aiy", "-aiyy --compare-dest=../old --compare-dest=../old2", "-aiyy --link-dest=../old --copy-links",
         "-aiy --copy-dest=../old", "-ayin", "-aiyW", "-aiyc", "-aiy --inplace", "-aiy --size-only", "-aiyI", "-aiy --delete-after",
         "-aiy --no-i-r", "-aiyb", "-aiy --no-y", "-aiy --existing")


def jobs():
    for number, options in enumerate(CASES):
        for place, way in enumerate((("local", 32), ("delta", 32), ("shell", 29), ("shell", 32), ("daemon", 31))):
            for full in (False, True):
                if number < 2 and full or (number + place + full) % 4 == 0:
                    yield pytest.param(options, *way, full, id=f"{options}-{way[0]}-{way[1]}-{full}")


@pytest.mark.parametrize("options, transport, protocol, full", jobs())
def test_basis_is_the_one_that_stock_chooses(site, options, transport, protocol, full):
    words = options.split() + ["--debug=fuzzy2", *(["--no-whole-file"] if transport == "delta" else [])]
    receiver.assert_same(site, words, "local" if transport == "delta" else transport, protocol,
                                before=fill if full else None)


@pytest.mark.core
def test_basis_saves_what_stock_saves(site):
    saved = []
    for program in (harness.STOCK, harness.HUAI):
        result = receiver.run(site, program, ["-ayy", "--stats", "--link-dest=../old", "--link-dest=../old2"], "shell",
                              before=fill).result
        saved.append([line for line in result.stdout.split(b"\n") if line.startswith((b"Matched", b"Literal"))])
    assert saved[0] == saved[1] and b" 0 bytes" not in saved[0][1], saved


def test_file_that_is_replaced_itself_is_no_basis(site, place):
    """By the time that the reply comes it is another file: stock has to ask twice."""
    source, dest = os.path.join(place, "source"), os.path.join(place, "dest")
    put(dest, "a-1")
    put(source, "a-1", trees.noise(50_000, 8), NEW)
    put(source, "a-2", b"++" + DATA, NEW)
    result = harness.run(harness.HUAI, "-ay", "-e", site.shell, f"h:{source}/", dest + "/")
    assert (result.code, result.stdout, result.stderr) == (0, b"", b""), result.text
    assert trees.differences(trees.describe(source), trees.describe(dest)) == []


@pytest.mark.parametrize("options", [["-rty"], ["-rt", "--copy-dest=../other"]])
@pytest.mark.parametrize("mode", [0o600, 0o755])
def test_new_file_has_the_mode_of_its_source(place, options, mode):
    """And not that of what it was made from, which others may be allowed to read."""
    source, dest, other = (os.path.join(place, name) for name in ("source", "dest", "other"))
    put(source, "file-2", DATA + b"more", NEW)
    os.chmod(f"{source}/file-2", mode)
    put(dest, "file-1")
    put(other, "file-2")
    result = harness.run(harness.HUAI, *options, "--no-W", "--stats", source + "/", dest + "/")
    assert result.code == 0 and b"Matched data: 0 bytes" not in result.stdout, result.text
    assert os.stat(f"{dest}/file-2").st_mode & 0o777 == mode & ~0o022
