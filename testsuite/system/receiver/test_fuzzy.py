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


# What lies in the destination, the file that is to come, and the line of --debug=fuzzy2, of several for the first of them.
DISTANCES = (
    ("file-1.1.tar.gz", "file-1.2.tar.gz", "1.00001"), ("file-1.22.tar.gz", "file-1.2.tar.gz", "1.00050"),
    ("file-1.2.tar.gz~", "file-1.2.tar.gz", "1.00126"), ("file-1.2.tar.bz2", "file-1.2.tar.gz", "22.00605"),
    ("README", "file-1.2.tar.gz", "45.02922"), ("README", "renamed", "7.00188"), ("moved-long-other-name", "only.bin", "58.04168"),
    # Of two ways the one is taken that is better before bytes count.
    (".old", "a9~.so", "36.02827"), (".9~..deb..gz", "oldgz.9~tar", "62.03370"),
    # A suffix that the other name has not, with bytes above 127.
    ("soa", ".lib.-1.21.\u00e9.bak", "45.64705"))
# Too far by their lengths alone, beside one that is nearer, and just not too far.
LENGTHS = ((("aab", "c"), "aaa", ("1.00001", "65535.00001")), (("!!a", "c"), "aaa", ("2.00128", None)))
SUFFIXES = {
    "a.gz": ".gz", "a.tar.gz": ".gz", "a": "", ".bashrc": "", "...a": "", ".a.b": ".b", "a.gz~": ".gz", "a.gz.bak": ".gz",
    "a.gz.old": ".gz", "a.gz.orig": ".gz", "a.gz.~7~": ".gz", "a.bak": "", "a.so.1": ".so", "a.so.1.2": ".so", "a.1": ".1",
    "a.1.2": ".1", "a.txt.orig.1": ".orig", "a.orig.orig": ".orig", "a.~x~": ".~x", "a.": ".", "~": ""}


def distance(first, second):
    """Of two names without regard to their suffixes: changes and differences of bytes, as --debug=fuzzy2 adds them up."""
    unit = 1 << 16
    if not first or not second:
        return sum(unit + ord(byte) for byte in first + second)
    row = [column * unit for column in range(len(second) + 1)]
    for number, byte in enumerate(first):
        diagonal, row[0] = row[0], (number + 1) * unit
        for column, other in enumerate(second):
            near = (row[column + 1] + ord(byte) if row[column + 1] <= row[column] else row[column] + ord(other)) + unit
            change = diagonal + (unit + abs(ord(byte) - ord(other)) if byte != other else 0)
            diagonal, row[column + 1] = row[column + 1], min(near, change)
    return row[-1]


def printed_distances(program, place, cases):
    """Of the names in the destination and the one in the source of each case, in a directory of its own."""
    for number, (there, name) in enumerate(cases):
        put(f"{place}/s/{number}", name, b"new", NEW)
        for other in there:
            put(f"{place}/d/{number}", other)
    result = harness.run(program, "-rny", "--debug=fuzzy2", "s/", "d/", cwd=place)
    assert result.code == 0, result.text
    found = [[] for _ in cases]
    for line in result.stdout.split(b"\n"):
        if line.startswith(b"fuzzy distance for "):
            path, value = line[len(b"fuzzy distance for "):].decode().rsplit(" = ", 1)
            found[int(path.rsplit("/", 2)[-2])].append(value)
    return found


@pytest.mark.core
def test_distances_are_those_of_stock(place):
    cases = [((there,), name) for there, name, _ in DISTANCES] + [(there, name) for there, name, _ in LENGTHS]
    cases += [((name,), "x.gz") for name in SUFFIXES]
    ours, stock = (printed_distances(program, place, cases) for program in (harness.HUAI, harness.STOCK))
    assert ours == stock
    expected = [(value,) for *_, value in DISTANCES] + [values for *_, values in LENGTHS]
    for name, suffix in SUFFIXES.items():
        whole = distance(name, "x.gz") + 10 * distance(suffix, ".gz")
        expected.append((f"{whole >> 16}.{whole & 0xffff:05}",))
    for case, got, values in zip(cases, ours, expected, strict=True):
        assert all(value in (None, one) for one, value in zip(got, values, strict=True)), (case, got, values)
    assert "65535.00001" not in ours[len(DISTANCES) + 1], ours
