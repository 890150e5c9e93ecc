# SPDX-License-Identifier: GPL-3.0-or-later
"""--only-send-attrs on the local engine: what the attr tree holds, how it is refreshed, what is refused, how a run ends."""
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

import pytest

import harness
import trees

REFUSED = 3
TEMP_NAME = re.compile(rb"^\..*\.[A-Za-z0-9]{6}$")


@pytest.fixture
def mirror(place):
    root = os.path.join(place, "mirror")
    os.mkdir(root)
    trees.build_mirror(root)
    return root


def write_attrs(source, target, *options, **keywords):
    return harness.run(harness.HUAI, "-aH", *options, "--only-send-attrs", source + "/", target + "/", **keywords)


def expected_of(source, place):
    """The description of the attr tree that `source` must have."""
    model = os.path.join(place, "model")
    trees.make_attr_tree(source, model)
    description = trees.describe(model)
    shutil.rmtree(model)
    return description


def assert_attr_tree_of(source, target, place):
    assert trees.differences(expected_of(source, place), trees.describe(target)) == []


def inodes(root):
    return {path: (os.lstat(os.path.join(os.fsencode(root), path)).st_ino,
                   os.lstat(os.path.join(os.fsencode(root), path)).st_ctime_ns) for path in trees.walk(root)}


def odd_files(root):
    """Regular files that are not 8 bytes, and names that look like temp files."""
    odd = []
    for directory, _, names in os.walk(os.fsencode(root)):
        for name in names:
            info = os.lstat(os.path.join(directory, name))
            if (stat.S_ISREG(info.st_mode) and info.st_size != 8) or TEMP_NAME.match(name):
                odd.append(os.path.join(directory, name))
    return odd


def many_files(root, directories, files):
    for number in range(directories):
        os.makedirs(os.path.join(root, f"d{number}"))
        for name in range(files):
            with open(os.path.join(root, f"d{number}", f"file-{name}"), "wb") as file:
                file.truncate(number * files + name)


# --- what it holds ---

@pytest.mark.core
@pytest.mark.parametrize("options", ["", "-P --delete-after", "-vi --delete", "--no-i-r", "--inplace", "--fsync", "-S",
                                     "--preallocate", "-c", "-I", "--size-only", "-W --info=progress2"])
def test_holds_names_metadata_and_sizes(mirror, place, options):
    target = os.path.join(place, "attrs")
    result = write_attrs(mirror, target, *options.split())
    assert result.code == 0, result.text
    assert_attr_tree_of(mirror, target, place)


def test_size_of_a_huge_file_is_kept(place):
    source, target = os.path.join(place, "source"), os.path.join(place, "attrs")
    os.mkdir(source)
    trees.sparse(os.path.join(source, "huge"), (1 << 42) + 12345)
    assert write_attrs(source, target).code == 0
    with open(os.path.join(target, "huge"), "rb") as file:
        assert struct.unpack("<Q", file.read()) == ((1 << 42) + 12345,)


def test_contents_are_not_read(mirror, place):
    """A file that nobody may read still has attributes."""
    target = os.path.join(place, "attrs")
    closed = [os.path.join(top, "README") for top in (mirror, target)]
    os.chmod(closed[0], 0)
    result = write_attrs(mirror, target)
    assert result.code == 0, result.text
    assert os.stat(closed[1]).st_mode & 0o7777 == 0
    for path in closed:
        os.chmod(path, 0o644)
    assert_attr_tree_of(mirror, target, place)


def test_works_where_files_need_a_name(mirror, place, tmpfs_place):
    """tmpfs has unnamed files; the result is the same on whatever file system the tests run on."""
    for target in os.path.join(place, "attrs"), os.path.join(tmpfs_place, "attrs"):
        assert write_attrs(mirror, target).code == 0
        assert_attr_tree_of(mirror, target, place)


# --- refreshing ---

@pytest.mark.core
def test_unchanged_refresh_touches_nothing(mirror, place):
    target = os.path.join(place, "attrs")
    assert write_attrs(mirror, target).code == 0
    before = inodes(target)
    result = write_attrs(mirror, target, "-i", "--delete")
    assert (result.code, result.stdout) == (0, b""), result.text
    assert inodes(target) == before


@pytest.mark.core
@pytest.mark.parametrize("options", ["", "-c", "--size-only", "-u", "--delete-after -P"])
def test_size_change_with_equal_time_is_noticed(mirror, place, options):
    target, changed = os.path.join(place, "attrs"), os.path.join(mirror, "README")
    assert write_attrs(mirror, target).code == 0
    info = os.stat(changed)
    with open(changed, "ab") as file:
        file.write(b"longer")
    os.utime(changed, ns=(info.st_atime_ns, info.st_mtime_ns))
    result = write_attrs(mirror, target, "-i", *options.split())
    assert result.code == 0 and b"README" in result.stdout, result.text
    assert_attr_tree_of(mirror, target, place)


@pytest.mark.parametrize("hinted", [False, True])
def test_attr_file_with_a_wrong_size_is_noticed(mirror, place, hinted):
    """In a tree of another writer, and in our own where somebody has meddled (then --checksum looks into every file)."""
    target = os.path.join(place, "attrs")
    if hinted:
        assert write_attrs(mirror, target).code == 0
    else:
        trees.make_attr_tree(mirror, target)
    path = os.path.join(target, "README")
    info = os.stat(path)
    with open(path, "r+b") as file:
        file.write(struct.pack("<Q", 4711))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    result = write_attrs(mirror, target, "-i", *(["-c"] if hinted else []))
    assert result.code == 0 and result.stdout.count(b"\n") == 1, result.text
    assert_attr_tree_of(mirror, target, place)


def test_attr_tree_of_another_writer_is_left_alone(mirror, place):
    target = os.path.join(place, "attrs")
    trees.make_attr_tree(mirror, target)
    before = inodes(target)
    result = write_attrs(mirror, target, "-i", "--delete")
    assert (result.code, result.stdout) == (0, b""), result.text
    assert inodes(target) == before


def test_reading_the_tree_does_not_cost_the_next_refresh(mirror, place):
    """An up-to-date attr file is recognised without being opened, also after a daemon has served it."""
    target = os.path.join(place, "attrs")
    assert write_attrs(mirror, target).code == 0
    for directory, _, names in os.walk(target):
        for name in names:
            path = os.path.join(directory, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                with open(path, "rb") as file:
                    file.read()
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    trace = os.path.join(place, "trace")
    traced = subprocess.run(["strace", "-f", "-e", "trace=read,openat", "-o", trace, harness.HUAI, "-aH", "--only-send-attrs",
                             mirror + "/", target + "/"], capture_output=True)
    assert traced.returncode == 0
    with open(trace, "rb") as file:
        assert b"README" not in file.read()


@pytest.mark.core
@pytest.mark.parametrize("when", ["--delete", "--delete-before", "--delete-during", "--delete-delay", "--delete-after"])
def test_refresh_after_changes_equals_a_new_attr_tree(mirror, place, when):
    old, target = os.path.join(place, "old"), os.path.join(place, "attrs")
    subprocess.run([harness.STOCK, "-aHS", mirror + "/", old + "/"], check=True)
    trees.make_older(old)
    assert write_attrs(old, target).code == 0
    result = write_attrs(mirror, target, when, "-v")
    assert result.code == 0, result.text
    assert_attr_tree_of(mirror, target, place)


def test_old_attr_tree_stays_where_it_is(mirror, place):
    """The directory itself is updated in place: somebody may be serving it."""
    target = os.path.join(place, "attrs")
    assert write_attrs(mirror, target).code == 0
    before = os.stat(target).st_ino
    trees.write(os.path.join(mirror, "new"), b"new")
    assert write_attrs(mirror, target, "--delete").code == 0
    assert os.stat(target).st_ino == before


def as_nobody():
    return {"user": 65534, "group": 65534, "extra_groups": []}


@pytest.mark.skipif(not trees.IS_ROOT, reason="needs to become somebody else")
def test_attr_files_of_an_unreadable_directory_stay(mirror, place):
    target = os.path.join(place, "attrs")
    os.chmod(place, 0o777)
    command = [harness.HUAI, "-rlt", "--delete", "--only-send-attrs", mirror + "/", target + "/"]
    first = subprocess.run(command, capture_output=True, **as_nobody())
    assert first.returncode == 0, first.stderr
    os.chmod(os.path.join(mirror, "pool"), 0o700)
    os.unlink(os.path.join(mirror, "dir/c"))
    second = subprocess.run(command, capture_output=True, **as_nobody())
    assert second.returncode == 23
    assert b'opendir "' in second.stderr and b"/pool\" failed: Permission denied" in second.stderr
    assert os.path.exists(os.path.join(target, "pool/main/a/a_1.0.deb"))
    os.chmod(os.path.join(mirror, "pool"), 0o755)
    assert subprocess.run(command, capture_output=True, **as_nobody()).returncode == 0
    assert not os.path.exists(os.path.join(target, "dir/c"))


READER = """
import os, stat, sys, time
root, seen = sys.argv[1], 0
while os.path.exists(root + "/go-on"):
    for directory, _, names in os.walk(root):
        for name in names:
            try:
                fd = os.open(os.path.join(directory, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                continue
            seen += 1
            if stat.S_ISREG(os.fstat(fd).st_mode) and len(os.read(fd, 100)) != 8:
                sys.exit("not 8 bytes: " + os.path.join(directory, name))
            os.close(fd)
print(seen)
"""


def test_reader_never_sees_anything_but_8_bytes(tmpfs_place):
    source, target = os.path.join(tmpfs_place, "source"), os.path.join(tmpfs_place, "attrs")
    many_files(source, 20, 50)
    os.mkdir(target)
    flag = os.path.join(target, "go-on")
    with open(flag, "wb") as file:
        file.write(bytes(8))
    reader = subprocess.Popen([sys.executable, "-c", READER, target], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for number in range(12):
        result = harness.run(harness.HUAI, "-a", "--only-send-attrs", "--delete", "--exclude=/go-on", source + "/",
                             target + "/")
        assert result.code == 0, result.text
        for directory in range(20):
            for name in range(0, 50, 3):
                os.truncate(os.path.join(source, f"d{directory}", f"file-{name}"), 1000 * number + name)
        os.rename(os.path.join(source, f"d{number}"), os.path.join(source, f"renamed-{number}"))
        os.mkdir(os.path.join(source, f"d{number}"))
        for name in range(50):
            open(os.path.join(source, f"d{number}", f"file-{name}"), "wb").close()
    os.unlink(flag)
    stdout, stderr = reader.communicate(timeout=60)
    assert reader.returncode == 0, stderr
    assert int(stdout) > 1000


# --- refusals ---

def assert_refused(result, *untouched):
    assert result.code == REFUSED, result.text
    assert b"refusing to write an attr tree" in result.stderr, result.text
    for path, description in untouched:
        assert trees.differences(description, trees.describe(path)) == []


@pytest.mark.core
@pytest.mark.parametrize("target", ["mirror", "mirror/", "mirror/new", "mirror/dir", "mirror/new/", "mirror/link-dir/new",
                                    "way-in", "way-in/new"])
def test_refuses_the_source_as_destination(mirror, place, target):
    os.symlink("mirror", os.path.join(place, "way-in"))
    before = trees.describe(mirror)
    result = harness.run(harness.HUAI, "-aH", "--force", "--only-send-attrs", "mirror/", target, cwd=place)
    assert_refused(result, (mirror, before))


def test_refuses_the_source_by_its_parent(mirror, place):
    before = trees.describe(mirror)
    for words in (["mirror", "."], ["mirror", place], [mirror, "./"], ["./mirror/../mirror", "way/.."]):
        os.makedirs(os.path.join(place, "way"), exist_ok=True)
        result = harness.run(harness.HUAI, "-a", "--force", "--only-send-attrs", *words, cwd=place)
        assert_refused(result, (mirror, before))


def test_refuses_a_source_inside_its_attr_tree(mirror, place):
    before = trees.describe(mirror)
    result = harness.run(harness.HUAI, "-a", "--force", "--only-send-attrs", "mirror/dir/", "mirror/", cwd=place)
    assert_refused(result, (mirror, before))


def test_refuses_a_file_over_itself(mirror, place):
    before = trees.describe(mirror)
    for words in (["mirror/README", "mirror/README"], ["mirror/README", "mirror/"], ["mirror/README", "mirror/README2"]):
        result = harness.run(harness.HUAI, "-a", "--force", "--only-send-attrs", *words, cwd=place)
        if words[1].endswith("README2"):
            assert result.code == 0, result.text
            os.unlink(os.path.join(mirror, "README2"))
            trees.set_directory_times(mirror)
        else:
            assert_refused(result, (mirror, before))


@pytest.mark.core
@pytest.mark.parametrize("where", ["file", "deep/er/file"])
@pytest.mark.parametrize("options", ["", "--delete", "-n --delete"])
def test_refuses_a_destination_with_other_files(mirror, place, where, options):
    target = os.path.join(place, "precious")
    os.makedirs(os.path.join(target, "deep/er"))
    trees.write(os.path.join(target, "8-bytes"), b"12345678")
    trees.write(os.path.join(target, where), b"not an attr file")
    before = trees.describe(target)
    assert_refused(write_attrs(mirror, target, *options.split()), (target, before))


def test_force_overrides_the_look_at_the_destination(mirror, place):
    target = os.path.join(place, "precious")
    os.makedirs(target)
    trees.write(os.path.join(target, "README"), b"not an attr file")
    result = write_attrs(mirror, target, "--force", "--delete")
    assert result.code == 0, result.text
    assert_attr_tree_of(mirror, target, place)


def test_accepts_an_empty_directory_and_an_attr_tree(mirror, place):
    target = os.path.join(place, "attrs")
    os.makedirs(os.path.join(target, "empty/below"))
    assert write_attrs(mirror, target, "--delete").code == 0
    assert write_attrs(mirror, target, "--delete").code == 0


def test_refuses_later_what_the_first_look_did_not_reach(place):
    """The look is limited; what it missed is still not replaced, nor deleted."""
    source, target = os.path.join(place, "source"), os.path.join(place, "attrs")
    many_files(source, 1, 21000)
    assert write_attrs(source, target).code == 0
    trees.write(os.path.join(source, "d0/file-77"), b"new")
    trees.write(os.path.join(source, "d0/file-1"), b"new")
    names = os.listdir(os.path.join(target, "d0"))
    for name in names:  # whichever the look comes to last
        path = os.path.join(target, "d0", name)
        if name in names[-500:]:
            trees.write(path, b"no attr file", mtime_ns=1_000_000_000)
    last = names[-1]
    trees.write(os.path.join(source, "d0", last), b"something new")
    result = write_attrs(source, target)
    assert result.code == REFUSED and b"is not an attr file" in result.stderr, result.text[-2000:]
    with open(os.path.join(target, "d0", last), "rb") as file:
        assert file.read() == b"no attr file"


# --- ends before the end ---

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("options", [("--only-send-attrs",), (), ("--inplace",)])
def test_signal_ends_cleanly(tmpfs_place, number, options):
    source, target = os.path.join(tmpfs_place, "source"), os.path.join(tmpfs_place, "target")
    many_files(source, 100, 60)
    for delay in (0.005, 0.02, 0.05):
        shutil.rmtree(target, ignore_errors=True)
        process = subprocess.Popen([harness.HUAI, "-a", *options, source + "/", target + "/"], stderr=subprocess.PIPE)
        time.sleep(delay)
        process.send_signal(number)
        stderr = process.communicate(timeout=30)[1]
        assert process.returncode in (20, 0, -number), stderr  # -number: before the program had started
        if process.returncode == 20:
            assert b"received SIGINT, SIGTERM, or SIGHUP (code 20)" in stderr
        all_count = options == ("--only-send-attrs",)
        assert [path for path in odd_files(target) if all_count or TEMP_NAME.match(os.path.basename(path))] == []
    result = harness.run(harness.HUAI, "-a", *options, source + "/", target + "/")
    assert result.code == 0, result.text


def entry_size(directory, name):
    """0 for what has gone in the meantime, too."""
    try:
        return os.lstat(os.path.join(directory, name)).st_size
    except FileNotFoundError:
        return 0


def interrupt_copy(tmpfs_place, *options):
    """Interrupt the copy of one big file after its start; the exit code and the file that is left, if any."""
    source, target = os.path.join(tmpfs_place, "big"), os.path.join(tmpfs_place, "copy")
    with open(source, "wb") as file:
        for _ in range(700):
            file.write(b"x" * 1_000_000)
    process = subprocess.Popen([harness.HUAI, "-a", *options, source, target], stdout=subprocess.DEVNULL)
    # Once a first piece of 64 MiB has been copied: of a file without one nothing is kept.
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None and not any(
            name.startswith(".copy.") and entry_size(tmpfs_place, name) > 64 << 20 for name in os.listdir(tmpfs_place)):
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    code = process.wait(30)
    if code == 0:
        pytest.skip("the copy was faster than the signal")
    return code, target


def test_interrupted_file_is_gone_without_partial(tmpfs_place):
    code, target = interrupt_copy(tmpfs_place)
    assert code == 20
    assert os.listdir(tmpfs_place) == ["big"]


def test_interrupted_file_stays_with_partial(tmpfs_place):
    code, target = interrupt_copy(tmpfs_place, "-P")
    assert code == 20
    assert sorted(os.listdir(tmpfs_place)) == ["big", "copy"]
    info = os.stat(target)
    assert (0 < info.st_size < 700_000_000) and info.st_mtime == 0
    assert stat.S_IMODE(info.st_mode) == stat.S_IMODE(os.stat(os.path.join(tmpfs_place, "big")).st_mode)


@pytest.fixture
def small_tmpfs(place):
    if not trees.IS_ROOT:
        pytest.skip("needs root to mount")
    path = os.path.join(place, "small")
    os.mkdir(path)

    def mount(options):
        if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "huai-test", path], capture_output=True).returncode:
            pytest.skip("cannot mount a tmpfs here")
        return path
    yield mount
    subprocess.run(["umount", path], capture_output=True)


@pytest.mark.parametrize("limit, codes", [("size=256k", (11,)), ("size=64m,nr_inodes=200", (11, 23))])
def test_full_file_system_leaves_a_servable_tree(place, small_tmpfs, limit, codes):
    source, target = os.path.join(place, "source"), small_tmpfs(limit)
    many_files(source, 20, 50)
    result = write_attrs(source, target)
    assert result.code in codes, result.text[-2000:]
    assert b"No space left on device" in result.stderr
    assert odd_files(target) == []
    for directory, _, names in os.walk(target):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                size, = struct.unpack("<Q", file.read())
            assert size == os.path.getsize(os.path.join(source, os.path.relpath(path, target)))


def test_full_file_system_while_copying_contents(place, small_tmpfs):
    source, target = os.path.join(place, "source"), small_tmpfs("size=1m")
    os.mkdir(source)
    trees.write(os.path.join(source, "big"), trees.noise(3_000_000, 1))
    result = harness.run(harness.HUAI, "-a", source + "/", target + "/")
    assert result.code == 11, result.text
    assert b'write failed on "' in result.stderr and b"No space left on device (28)" in result.stderr
    assert os.listdir(target) == []


@pytest.mark.skipif(not trees.IS_ROOT, reason="needs to become somebody else")
@pytest.mark.parametrize("options", ["-aHi", "-aHi --only-send-attrs", "-rltiD", "-ai --delete --no-o --no-g"])
def test_unprivileged_run_does_what_stock_does(mirror, place, options):
    os.chmod(place, 0o777)
    os.chmod(os.path.join(mirror, "empty"), 0o555)
    results = []
    for program in harness.STOCK, harness.HUAI:
        target = os.path.join(place, os.path.basename(program) + "-target")
        words = options.replace(" --only-send-attrs", "" if program == harness.STOCK else " --only-send-attrs").split()
        command = [program, *words, mirror + "/", target + "/"]
        done, again = (subprocess.run(command, capture_output=True, env=harness.ENVIRONMENT, **as_nobody()) for _ in range(2))
        description = trees.describe(target)
        if "--only-send-attrs" in options:
            for entry in description.values():
                entry.pop("content", None)
        lines = []
        for output in done.stdout, again.stdout:
            output = output.replace(os.fsencode(target), b"TARGET").replace(b"\x7f", rb"\#177")
            lines.append(sorted(output.split(b"\n")))
        results.append((done.returncode, again.returncode, *lines, description))
    stock, huai = results
    assert trees.differences(stock[4], huai[4]) == []
    assert stock[:4] == huai[:4]
