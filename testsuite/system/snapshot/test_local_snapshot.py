# SPDX-License-Identifier: GPL-3.0-or-later
"""--attr-snapshot with a destination: what a run says of it afterwards is what a scan of it says, whatever the run has met.

Every case copies, and then has the program scan the destination: the two files have to hold the same bytes, but for the facts
and for how far later refreshes may rely on directories.
"""
import os
import random
import re
import shutil
import signal
import stat
import struct
import subprocess
import time

import pytest

import harness
import snapshots
import trees

needs_root = pytest.mark.skipif(not trees.IS_ROOT, reason="needs root")
DIRECTORY = struct.Struct("<QQqIIIIIIIHH")  # attr-snapshot(5): names, inode, change time, ...
ORIGIN = struct.Struct("<QqII")  # likewise: inode, change time, nanoseconds, digests
OLD_NS = 1_300_000_000_000_000_000


class Place:
    """A source, a destination, and the file beside them."""

    def __init__(self, path):
        self.path = path
        self.source, self.dest = os.path.join(path, "source"), os.path.join(path, "dest")
        self.file, self.other = os.path.join(path, "dest.snap"), os.path.join(path, "other.snap")

    def run(self, *options, code=0, source=None, dest=None, check=True, scan=(), program=(harness.HUAI,), **keywords):
        """Copy, and hold the snapshot against one that is made by a scan."""
        result = harness.run(*program, *options, f"--attr-snapshot={self.file}", source or self.source + "/",
                             dest or self.dest + "/", **keywords)
        assert result.code == code, result.text
        if check:
            self.check(dest or self.dest, *scan, program=program, text=result.text, **keywords)
        return result

    def check(self, dest, *options, program=(harness.HUAI,), text="", **keywords):
        scan = harness.run(*program, "-aH", "--only-send-attrs", *options, f"--attr-snapshot={self.other}", dest + "/", **keywords)
        assert scan.code in (0, 23), scan.text
        left, right = snapshots.Snapshot(self.other), snapshots.Snapshot(self.file)
        lines = trees.differences(without_link_times(left.entries), without_link_times(right.entries))
        assert lines == [], "\n".join([text, *lines])
        assert right.same_list(left, ()) and right.errors == left.errors
        assert {k: v for k, v in right.chunks.items() if k in ("devices", "xxh128", "md5")} \
            == {k: v for k, v in left.chunks.items() if k in ("devices", "xxh128", "md5")}
        same_origins(left.chunks.get("origins", b""), right.chunks.get("origins", b""))
        same_directories(left.chunks["dirs"], right.chunks["dirs"])
        for fact in "root_dev", "root_ino", "root", "options", "io_error", "entry_count", "content_bytes", "dir_count", "flags":
            assert left.facts[fact] == right.facts[fact], fact
        if trees.IS_ROOT and len(program) == 1:
            assert right.entries.keys() == set(trees.walk(dest))


def without_link_times(entries):
    """The access time of a symlink is set by looking where it leads, as both runs do."""
    return {name: {key: value for key, value in entry.items() if key != "atime" or not stat.S_ISLNK(entry["mode"])}
            for name, entry in entries.items()}


def same_origins(left, right):
    """Likewise: a file that had just changed when the run looked at it has no change time there, and may have one in a later scan."""
    assert len(left) == len(right)
    for a, b in zip(ORIGIN.iter_unpack(left), ORIGIN.iter_unpack(right)):
        assert (a[0], a[3]) == (b[0], b[3])
        assert a[1:3] == b[1:3] or a[1:3] == (0, 0) or b[1:3] == (0, 0)


def same_directories(left, right):
    """All of their records; of the change time only that it is no other one, if both can be relied on."""
    assert len(left) == len(right)
    for a, b in zip(DIRECTORY.iter_unpack(left), DIRECTORY.iter_unpack(right)):
        assert a[:2] + a[3:] == b[:2] + b[3:]
        assert a[2] == b[2] or not a[2] or not b[2]


@pytest.fixture
def site(place):
    site = Place(place)
    os.mkdir(site.source)
    trees.build_mirror(site.source)
    return site


@pytest.fixture
def bare(place):
    site = Place(place)
    os.mkdir(site.source)
    return site


def copy_of(source, dest):
    assert subprocess.run(["cp", "-a", source, dest]).returncode == 0


def with_surplus(dest):
    for name in "keep/below", "gone/below", "dir/gone":
        os.makedirs(os.path.join(dest, name))
        trees.write(os.path.join(dest, name, "file"), b"surplus", mtime_ns=OLD_NS)
    for name in "keep.me", "gone.me", "dir/keep.me", "dir/gone.me", "gone/keep.me", "odd names/gone.me":
        trees.write(os.path.join(dest, name), b"surplus", mtime_ns=OLD_NS)
    os.link(os.path.join(dest, "gone.me"), os.path.join(dest, "keep/linked with gone"))
    os.link(os.path.join(dest, "README"), os.path.join(dest, "gone/linked with README"))
    trees.symlink("gone", os.path.join(dest, "gone-link"))


BEFORE = ["nothing", "same", "old", "surplus", "old and surplus"]
OPTIONS = [
    "-aH --delete", "-aH", "-a", "-a --delete", "-r", "-rltp --delete", "-aH --delete-before", "-aH --delete-after", "-a --delete-delay",
    "-aH --delete-delay", "-a --delete-before", "-a --delete-after", "-aH --delete --no-i-r", "-aHi --delete", "-aH --delete --inplace",
    "-a --delete --inplace", "-aH --delete --chmod=D755,F640", "-aH --delete --size-only", "-aHc --delete", "-aHI --delete",
    "-aH --existing", "-aH --ignore-existing --delete", "-aHu", "-aH --max-size=1k --delete", "-aH --omit-dir-times --delete",
    "-aH --delete --filter=P_keep.me --filter=P_keep/ --exclude=*.deb", "-aH --delete --exclude=/dir/ --delete-excluded",
    "-aH --delete --exclude=/dir/ --exclude=*.log", "-a --delete --force --no-links", "-aL --delete --exclude=link-*",
    "-aH --delete -x", "-aH --no-specials --no-devices --delete", "-aH --safe-links --delete", "-d", "-aHP --delete", "-aHE --no-p --delete",
]


def prepare(site, before):
    if before != "nothing":
        copy_of(site.source, site.dest)
    if "old" in before:
        trees.make_older(site.dest)
    if "surplus" in before:
        if "old" in before:
            trees.write(os.path.join(site.dest, "README"), b"another one", mtime_ns=OLD_NS)
        with_surplus(site.dest)


@pytest.mark.core
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("options", OPTIONS)
def test_is_what_a_scan_says(site, options, before):
    prepare(site, before)
    # There is a file in the place of a directory then, and what would lie below it fails, as with stock.
    code = 23 if "--ignore-existing" in options and "old" in before else 0
    first = site.run(*[word.replace("_", " ") for word in options.split()], code=code)
    assert b"snap" not in first.stdout or "v" in options
    site.run(*[word.replace("_", " ") for word in options.split()], code=code)


@pytest.mark.parametrize("options", ["-aH --delete --max-delete=3", "-a --delete-after --max-delete=1", "-aH --delete-delay --max-delete=0"])
def test_keeps_what_a_limit_keeps(site, options):
    prepare(site, "surplus")
    site.run(*options.split(), code=25)


def random_change(generator, root, names):
    """Do one thing to a tree; what cannot be done is not."""
    old, new = (os.path.join(root, *generator.choices(names, k=generator.randint(1, 3))) for _ in range(2))
    try:
        match generator.randint(0, 9):
            case 0 | 1:
                os.makedirs(os.path.dirname(new), exist_ok=True)
                trees.write(new, b"x" * generator.randint(0, 5), mtime_ns=OLD_NS + generator.randint(0, 2) * 10 ** 9)
            case 2 | 3:
                os.link(old, new, follow_symlinks=False)
            case 4:
                os.unlink(old)
            case 5:
                shutil.rmtree(old)
            case 6:
                os.rename(old, new)
            case 7:
                os.symlink(generator.choice(names), new)
            case 8:
                os.chmod(old, generator.choice([0o600, 0o640]) | stat.S_ISDIR(os.lstat(old).st_mode) * 0o100)
            case 9:
                os.makedirs(new)
    except OSError:
        pass


RANDOM_OPTIONS = [
    "-aH --delete", "-aH --delete-delay", "-a --delete", "-aH --delete-after", "-aH", "-a --delete --inplace", "-aH --delete --inplace",
    "-aHi --delete-before", "-a --delete-before --inplace", "-aHc --delete --filter=P_a", "-rl --delete --ignore-times",
    "-rlH --delete --size-only", "-aH --delete --max-delete=2", "-rlp --delete --existing",
]


@pytest.mark.core
@pytest.mark.parametrize("seed", range(40))
def test_is_what_a_scan_says_of_trees_that_change_at_random(bare, seed):
    generator = random.Random(seed)
    os.mkdir(bare.dest)
    for _ in range(6):
        options = generator.choice(RANDOM_OPTIONS).replace("_", "\0").split()
        for _ in range(generator.choice([0, 3, 40])):
            random_change(generator, bare.source, "abcd")
        for _ in range(generator.choice([0, 0, 2, 20])):
            random_change(generator, bare.dest, "abcde")
        result = harness.run(harness.HUAI, *[word.replace("\0", " ") for word in options], f"--attr-snapshot={bare.file}",
                             bare.source + "/", bare.dest + "/")
        assert result.code in (0, 23, 25), result.text
        bare.check(bare.dest, text=result.text)


# --- hard links that change under a name that has been seen ---

def linked(root, *names, content=b"linked"):
    for name in names:
        os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
    trees.write(os.path.join(root, names[0]), content)
    for name in names[1:]:
        os.link(os.path.join(root, names[0]), os.path.join(root, name))


@pytest.mark.parametrize("options", ["-aH --delete", "-a --delete", "-aH --delete-delay", "-aH --delete-after", "-aHi --delete-before"])
@pytest.mark.parametrize("change", ["a name goes", "a name comes", "content", "mode", "split", "joined", "replaced by another",
                                    "the other name of a single one"])
def test_links_that_come_and_go(bare, options, change):
    linked(bare.source, "a/1", "b/2", "c/3")
    linked(bare.source, "a/pair", "z/pair", content=b"a pair")
    linked(bare.source, "single", content=b"just one")
    copy_of(bare.source, bare.dest)
    if change == "a name goes":
        linked(bare.dest, "a/pair-2", "z/pair-2", content=b"surplus")
        os.link(os.path.join(bare.dest, "single"), os.path.join(bare.dest, "z/surplus"))
        os.link(os.path.join(bare.dest, "a/1"), os.path.join(bare.dest, "z/surplus-too"))
    elif change == "a name comes":
        os.link(os.path.join(bare.source, "single"), os.path.join(bare.source, "z/now a pair"))
        os.link(os.path.join(bare.source, "a/pair"), os.path.join(bare.source, "b/now three"))
    elif change == "content":
        trees.write(os.path.join(bare.source, "b/2"), b"changed", mtime_ns=OLD_NS)
    elif change == "mode":
        os.chmod(os.path.join(bare.dest, "z/pair"), 0o600)
        os.chmod(os.path.join(bare.dest, "c/3"), 0o400)
    elif change == "split":
        trees.write(os.path.join(bare.source, "copy"), b"a pair")
        os.rename(os.path.join(bare.source, "copy"), os.path.join(bare.source, "z/pair"))
    elif change == "joined":
        trees.write(os.path.join(bare.dest, "copy"), b"a pair")
        os.rename(os.path.join(bare.dest, "copy"), os.path.join(bare.dest, "z/pair"))
    else:
        os.unlink(os.path.join(bare.dest, "z/pair"))
        os.link(os.path.join(bare.dest, "a/1" if change == "replaced by another" else "single"), os.path.join(bare.dest, "z/pair"))
    bare.run(*options.split())
    bare.run(*options.split())


@pytest.mark.parametrize("options", ["-aH --delete", "-a --delete"])
def test_a_directory_in_the_place_of_another_name(bare, options):
    """The file has been seen under its first name long before, in a directory that is done with."""
    linked(bare.dest, "a/file", "z/directory", content=b"two names")
    linked(bare.source, "a/file", content=b"two names")
    linked(bare.source, "z/directory/file", content=b"in the way")
    for number in range(400):
        os.makedirs(os.path.join(bare.source, f"m/{number}"))
    bare.run(*options.split())
    assert "links" not in snapshots.Snapshot(bare.file).entries[b"a/file"]


def test_a_file_written_in_place_under_two_names(bare):
    """Without -H the two are two files to the run, and one inode to the disk: the name that was seen first has changed as well."""
    for name in "a", "z":
        os.mkdir(os.path.join(bare.source, name))
    trees.write(os.path.join(bare.source, "a/file"), b"12345678")
    trees.write(os.path.join(bare.source, "z/file"), b"other", mtime_ns=OLD_NS)
    linked(bare.dest, "a/file", "z/file", content=b"12345678")
    bare.run("-a", "--inplace", "--delete")
    assert snapshots.Snapshot(bare.file).entries[b"a/file"]["size"] == 5


# --- more than the run's own part of the destination ---

def test_the_rest_of_the_destination_is_scanned(site):
    os.makedirs(os.path.join(site.dest, "beside/below"))
    trees.write(os.path.join(site.dest, "beside/below/file"), b"not part of the run")
    copy_of(site.source, os.path.join(site.dest, "source"))
    result = site.run("-aHv", "--delete", source=site.source)
    assert b"2 directories read" in result.stdout
    assert b"beside/below/file" in snapshots.Snapshot(site.file).entries


@pytest.mark.parametrize("options", ["-aH", "-a", "-aH --delete --filter=P_*", "-a --delete --filter=P_*"])
def test_names_that_are_not_the_runs_in_directories_that_it_leaves_alone(site, options):
    """Nothing has changed for so long that what is known of a directory would be believed."""
    words = [word.replace("_", " ") for word in options.split()]
    prepare(site, "surplus")
    site.run(*words)
    time.sleep(3.1)
    site.run(*words)
    assert b"keep/below/file" in snapshots.Snapshot(site.file).entries


def test_a_single_file_into_a_directory(site):
    copy_of(site.source, site.dest)
    os.unlink(os.path.join(site.dest, "README"))
    site.run("-a", source=os.path.join(site.source, "README"))
    site.run("-a", source=os.path.join(site.source, "dir.x"), dest=os.path.join(site.dest, "dir"), check=False)
    site.check(os.path.join(site.dest, "dir"))


def test_a_directory_under_another_name(bare):
    os.mkdir(os.path.join(bare.source, "empty"))
    result = harness.run(harness.HUAI, "-a", f"--attr-snapshot={bare.file}", os.path.join(bare.source, "empty"), bare.dest)
    assert result.code == 0, result.text
    bare.check(bare.dest)


def test_a_destination_that_is_a_file_is_refused(site):
    result = site.run("-a", source=os.path.join(site.source, "README"), dest=os.path.join(site.path, "README"), code=1, check=False)
    assert b"destination is a file" in result.stderr
    assert not os.path.exists(site.file) and not os.path.exists(os.path.join(site.path, "README"))


def test_big_directories_come_in_slices(bare):
    for number in range(5000):
        with open(os.path.join(bare.source, f"file-{number}"), "w"):
            pass
        if number % 500 == 0:
            os.mkdir(os.path.join(bare.source, f"dir-{number}"))
            os.link(os.path.join(bare.source, f"file-{number}"), os.path.join(bare.source, f"dir-{number}/link"))
            os.symlink("target", os.path.join(bare.source, f"link-{number}"))
    bare.run("-aH", "--delete")
    for number in range(0, 5000, 7):
        os.unlink(os.path.join(bare.dest, f"file-{number}"))
    bare.run("-aHP", "--delete")
    bare.run("-aHP", "--delete")
    bare.run("-a", "--delete")


def test_access_times_and_digests(site):
    site.run("-aHU", "--delete", "--attr-digests=xxh128,md5", scan=["-U", "--attr-digests=xxh128,md5"])
    assert snapshots.Snapshot(site.file).entries[b"README"]["md5"]
    trees.write(os.path.join(site.source, "README"), b"changed", mtime_ns=OLD_NS)
    linked(site.source, "hard-1", "pool/hard-5")
    for _ in range(2):
        site.run("-aH", "--delete", "--attr-digests=md5", scan=["--attr-digests=md5"])


def reads_of(place, words, below):
    """Paths below a directory that a command opens, by strace."""
    trace = os.path.join(place, "trace")
    assert subprocess.run(["strace", "-f", "-y", "-e", "trace=pread64,read", "-o", trace, *words]).returncode == 0
    with open(trace) as file:
        return set(re.findall(r"(?:pread64|read)\(\d+<(%s[^>]*)>" % re.escape(below), file.read()))


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_stored_digests_are_kept(site):
    copy_of(site.source, site.dest)
    time.sleep(3.1)
    site.run("-aH", "--delete", "--attr-digests=md5", scan=["--attr-digests=md5"])
    words = [harness.HUAI, "-aH", "--delete", "--attr-digests=md5", f"--attr-snapshot={site.file}", site.source + "/", site.dest + "/"]
    assert reads_of(site.path, words, site.dest + "/") == set()
    os.utime(os.path.join(site.source, "README"), ns=(OLD_NS, OLD_NS))
    assert reads_of(site.path, words, site.dest + "/") == {site.dest + "/README"}
    site.check(site.dest, "--attr-digests=md5")


# --- refreshes of what a run has left ---

def test_a_refresh_starts_from_it(site):
    copy_of(site.source, site.dest)
    time.sleep(3.1)
    site.run("-aH", "--delete")
    result = harness.run(harness.HUAI, "-aHv", "--only-send-attrs", f"--attr-snapshot={site.file}", "--attr-refresh=dirs", site.dest + "/")
    assert result.code == 0 and b" 0 directories read" in result.stdout, result.text
    trees.write(os.path.join(site.dest, "pool/new"), b"new")
    result = harness.run(harness.HUAI, "-aHv", "--only-send-attrs", f"--attr-snapshot={site.file}", "--attr-refresh=dirs", site.dest + "/")
    assert result.code == 0 and b" 1 directories read" in result.stdout, result.text
    site.check(site.dest)


def test_what_the_run_has_just_changed_is_read_again_by_a_refresh(site):
    site.run("-aH", "--delete")
    assert all(record[2] == 0 for record in DIRECTORY.iter_unpack(snapshots.Snapshot(site.file).chunks["dirs"]))
    trees.write(os.path.join(site.dest, "pool/new"), b"new")
    result = harness.run(harness.HUAI, "-aH", "--only-send-attrs", f"--attr-snapshot={site.file}", "--attr-refresh=dirs", site.dest + "/")
    assert result.code == 0, result.text
    site.check(site.dest)


# --- cost ---

def count_calls(place, words, *names):
    trace = os.path.join(place, "trace")
    assert subprocess.run(["strace", "-f", "-c", "-e", f"trace={','.join(names)}", "-o", trace, *words]).returncode == 0
    with open(trace) as file:
        return sum(int(line.split()[3]) for line in file if line.split()[-1:] and line.split()[-1] in names)


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("options", ["-aH --delete", "-a --delete"])
def test_looks_at_no_file_twice(bare, options):
    directories, files = 20, 100
    for directory in range(directories):
        os.mkdir(os.path.join(bare.source, f"{directory}"))
        for number in range(files):
            with open(os.path.join(bare.source, f"{directory}/{number}"), "w"):
                pass
        os.symlink("x", os.path.join(bare.source, f"{directory}/link"))
        os.link(os.path.join(bare.source, f"{directory}/0"), os.path.join(bare.source, f"{directory}/hard"))
    copy_of(bare.source, bare.dest)
    time.sleep(3.1)
    words = [harness.HUAI, *options.split(), bare.source + "/", bare.dest + "/"]
    stats = "statx", "newfstatat", "fstat", "lstat", "stat"
    without = count_calls(bare.path, words, *stats)
    with_snapshot = count_calls(bare.path, [*words, f"--attr-snapshot={bare.file}"], *stats)
    assert without > directories * files
    assert with_snapshot - without <= directories + 30
    lists, links = (count_calls(bare.path, [*words, f"--attr-snapshot={bare.file}"], name) - count_calls(bare.path, words, name)
                    for name in ("getdents64", "readlinkat"))
    assert lists <= 4 and links == 0
    bare.check(bare.dest)


# --- when it is not written, and when it cannot be ---

def test_a_dry_run_writes_nothing(site):
    site.run("-aHn", "--delete", check=False)
    assert not os.path.exists(site.file) and not os.path.exists(site.dest)


def test_attr_trees_have_none(site):
    result = site.run("-aH", "--only-send-attrs", code=1, check=False)
    assert b"attr tree" in result.stderr and not os.path.exists(site.dest) and not os.path.exists(site.file)


def test_not_inside_of_the_destination(site):
    os.mkdir(site.dest)
    site.file = os.path.join(site.dest, "inside.snap")
    result = site.run("-aH", code=1, check=False)
    assert b"would lie inside" in result.stderr and os.listdir(site.dest) == []


def test_a_place_that_is_not_there(site):
    site.file = os.path.join(site.path, "no/such/place.snap")
    result = site.run("-aH", code=11, check=False)
    assert b"cannot write the snapshot" in result.stderr and not os.path.exists(os.path.join(site.dest, "README"))


@needs_root
def test_a_place_that_cannot_be_written_ends_with_11_after_the_copy(site):
    os.mkdir(site.file)
    result = site.run("-aH", code=11, check=False)
    assert site.file.encode() in result.stderr
    assert trees.differences(trees.describe(site.source), trees.describe(site.dest)) == []


def test_a_source_that_is_not_there_leaves_the_truth_about_the_destination(site):
    copy_of(site.source, site.dest)
    site.run("-aH", "--delete", code=23, source=os.path.join(site.path, "no-such-source/"))


def test_says_what_it_has_written(site):
    silent = site.run("-aH", "--delete")
    assert silent.stdout == silent.stderr == b""
    result = site.run("-aHv", "--delete", "--stats")
    made = snapshots.Snapshot(site.file)
    assert b"wrote %s: generation 2, %d entries, 0 directories read\n" % (site.file.encode(), len(made.entries)) in result.stdout
    assert result.stdout.count(b"Number of files") == 1
    assert made.facts["generation"] == 2


def test_output_and_exit_code_are_those_of_the_run(site):
    prepare(site, "old and surplus")
    copy = site.dest + "-too"
    copy_of(site.dest, copy)
    plain = harness.run(harness.HUAI, "-aHi", "--delete", site.source + "/", copy + "/")
    result = site.run("-aHi", "--delete")
    assert (result.stdout, result.stderr) == (plain.stdout, plain.stderr)
    assert trees.differences(trees.describe(copy), trees.describe(site.dest)) == []


# --- without privileges ---

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]


@pytest.fixture
def theirs(site):
    """A copy of the mirror that belongs to nobody, at work in a place of their own."""
    if not trees.IS_ROOT or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    own = os.path.join(site.path, "own")
    os.mkdir(own)
    os.chown(own, 65534, 65534)
    theirs = Place(own)
    theirs.source = site.source
    os.unlink(os.path.join(site.source, "null-device"))
    return theirs


@pytest.mark.parametrize("options", ["-a --delete", "-aH --delete"])
def test_sources_that_cannot_be_read(theirs, options):
    program = [*NOBODY, harness.HUAI]
    theirs.run("-a", program=program)
    for name in "README", "pool/main/a/a_1.0.deb", "dir/c":
        trees.write(os.path.join(theirs.source, name), b"secret now", mode=0o600)
    os.chmod(os.path.join(theirs.source, "p/q"), 0o700)
    result = theirs.run(*options.split(), "--ignore-errors", program=program, code=23)
    assert b"send_files failed to open" in result.stderr
    assert snapshots.Snapshot(theirs.file).entries[b"README"]["size"] != 10


@pytest.mark.parametrize("mode", ["300", "600", "500", "100"])
def test_directories_that_lose_their_permissions(theirs, mode):
    """The run makes directories that it may not look into any more: they are listed as such, and the exit code says so."""
    program = [*NOBODY, harness.HUAI]
    own = os.path.join(theirs.path, "tree")
    os.makedirs(os.path.join(own, "dir/below"))
    trees.write(os.path.join(own, "dir/below/file"), b"x")
    trees.write(os.path.join(own, "dir/file"), b"x")
    subprocess.run(["chown", "-Rh", "65534:65534", own], check=True)
    theirs.source = own
    theirs.run("-a", program=program)
    result = harness.run(*program, "-a", f"--chmod=D{mode}", f"--attr-snapshot={theirs.file}", os.path.join(own, "dir"),
                         theirs.dest + "/")
    assert result.code == (0 if mode == "500" else 23), result.text
    theirs.check(theirs.dest, program=program, text=result.text)
    subprocess.run(["chmod", "-R", "u+rwx", theirs.dest], check=True)


# --- the end by a signal ---

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_the_old_file(bare, number):
    for directory in range(40):
        os.mkdir(os.path.join(bare.source, f"{directory}"))
        for name in range(200):
            trees.write(os.path.join(bare.source, f"{directory}/{name}"), b"x")
    bare.run("-aH")
    with open(bare.file, "rb") as file:
        old = file.read()
    subprocess.run(["rm", "-r", bare.dest], check=True)
    process = subprocess.Popen([harness.HUAI, "-aH", f"--attr-snapshot={bare.file}", bare.source + "/", bare.dest + "/"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 20
    while not os.path.exists(os.path.join(bare.dest, "1")) and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(number)
    assert process.wait(20) == 20, process.stdout.read()
    process.stdout.close()
    with open(bare.file, "rb") as file:
        assert file.read() == old
    assert sorted(os.listdir(bare.path)) == ["dest", "dest.snap", "other.snap", "source"]
