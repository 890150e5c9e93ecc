# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands on attr snapshots: listed, compared and converted, beside what stock rsync says of the trees themselves."""
import os
import re
import shutil
import struct
import subprocess

import pytest

import harness
import snapshots
import trees



def huai(*words, code=0, **keywords):
    result = harness.run(harness.HUAI, *words, **keywords)
    assert result.code == code, result.text
    return result


def stock(*words, code=0, **keywords):
    result = harness.run(harness.STOCK, *words, **keywords)
    assert result.code == code, result.text
    return result


def make(tree, file, *options):
    huai("-aH", *options, f"--attr-snapshot={file}", tree + "/")
    return file


def change(tree):
    """One of every kind of change."""
    at = lambda name: os.path.join(tree, name)
    shutil.rmtree(at("p/q"))
    trees.write(at("p/new"), b"new\n")
    os.makedirs(at("new dir/below"))
    trees.write(at("new dir/below/file"), b"1\n")
    trees.symlink("file", at("new dir/below/link"))
    os.unlink(at("dir.x"))
    os.mkdir(at("dir.x"))
    trees.write(at("dir.x/inside"), b"a directory where a file was\n")
    shutil.rmtree(at("merge"))
    trees.write(at("merge"), b"a file where a directory was\n")
    os.unlink(at("link-file"))
    trees.symlink("elsewhere", at("link-file"))
    os.unlink(at("fifo"))
    trees.write(at("fifo"), b"no longer one\n")
    os.chmod(at("README"), 0o600)
    os.utime(at("text.txt"), ns=(1, 1_580_000_000_000_000_000))
    os.utime(at("packed.gz"), ns=(1, os.stat(at("packed.gz")).st_mtime_ns + 1))
    trees.write(at("grown.log"), b"shorter\n")
    trees.write(at("#comment"), b"for --files-from\n")
    os.link(at("hard-1"), at("hard-0"))
    os.link(at("README"), at("new dir/readme"))
    trees.write(at("dir/new-1"), b"two links\n")
    os.link(at("dir/new-1"), at("dir/new-2"))
    if trees.IS_ROOT:
        os.chown(at("big.bin"), 5, 6)
    trees.set_directory_times(tree, 1_690_000_000_000_000_000)


@pytest.fixture
def pair(place):
    """Two trees, the second one is the first after some changes; and their snapshots."""
    old, new = (os.path.join(place, name) for name in ("old", "new"))
    os.mkdir(old)
    trees.build_mirror(old)
    stock("-aH", old + "/", new + "/")
    change(new)
    return old, new, make(old, old + ".snap"), make(new, new + ".snap")


@pytest.fixture(scope="module")
def listed(workspace):
    tree = os.path.join(workspace, "listed")
    os.mkdir(tree)
    trees.build_mirror(tree)
    os.unlink(os.path.join(tree, "odd names/\x7fdel"))  # stock prints it as it is
    return tree, make(tree, tree + ".snap")


# --- --attr-list ---

@pytest.mark.parametrize("options", ["", "-r", "-a", "-d", "-rl", "-r8", "-rh", "-rhh", "-r --no-h", "-r --exclude=d*",
                                     "-r --include=*/ --include=*.gz --exclude=*", "-rR", "-r --chmod=a-w"])
@pytest.mark.parametrize("path", ["", "dir", "dir/", "README", "dir/sub", "dir/sub/", "odd names/", "link-dir", "link-dir/"])
def test_a_listing_is_that_of_the_tree(listed, options, path):
    tree, file = listed
    words = options.split() + ([file, path] if path else [file])
    source = f"{tree}/./{path}" if "R" in options else f"{tree}/{path}"
    expected = stock(*options.split(), "--list-only", source)
    assert huai("--attr-list", *words).stdout == expected.stdout


def test_a_listing_shows_stored_access_times(listed, place):
    tree, _ = listed
    file = make(tree, os.path.join(place, "with-atimes.snap"), "-U")
    assert huai("-rU", "--attr-list", file).stdout == stock("-rU", "--list-only", tree + "/").stdout


def test_a_path_is_cleaned(listed):
    tree, file = listed
    expected = stock("-r", "--list-only", tree + "/dir/").stdout
    for path in "/dir/", "./dir/../dir/.", "../dir//.":
        assert huai("-r", "--attr-list", file, path).stdout == expected


@pytest.mark.parametrize("path", ["nothing", "dir/nothing", "README/x", "nothing/"])
def test_a_path_that_is_not_there_is_reported_as_in_the_tree(listed, path):
    tree, file = listed
    expected = stock("--list-only", f"{tree}/{path}", code=23)
    result = huai("--attr-list", file, path, code=23)
    assert result.stdout == b""
    first = result.stderr.splitlines()[0]
    assert first == expected.stderr.splitlines()[0].replace(os.fsencode(tree + "/"), os.fsencode(file + ":/"))


def test_a_listing_needs_nothing_but_the_file(listed, place):
    tree, file = listed
    copy = shutil.copy(file, os.path.join(place, "copy.snap"))
    away = tree + ".away"
    os.rename(tree, away)
    try:
        lines = huai("-r", "--attr-list", copy).stdout
    finally:
        os.rename(away, tree)
    assert lines == stock("-r", "--list-only", tree + "/").stdout


def test_the_header_says_what_the_file_is(listed):
    tree, file = listed
    facts = snapshots.Snapshot(file).facts
    for option in "-v", "--stats":
        text = huai(option, "--attr-list", file, "README").stdout.decode()
        head = [line for line in text.splitlines() if line.startswith("#")]
        assert head[0] == f"# attr snapshot {file}"
        assert head[1].startswith(f"# generation {facts['generation']} of 20")
        assert head[2] == f"# root: {tree}, device {facts['root_dev']}, inode {facts['root_ino']}"
        assert head[4].startswith(f"# {facts['entry_count']} entries in {facts['dir_count']} directories, {facts['content_bytes']:,} bytes")
        assert text.splitlines()[-1] == stock("--list-only", tree + "/README").stdout.decode().rstrip("\n")


# --- --attr-diff ---

def lines_of(output):
    return sorted(output.splitlines())


def test_items_are_those_of_a_transfer(pair):
    old, new, old_file, new_file = pair
    for first, second, files in (old, new, (old_file, new_file)), (new, old, (new_file, old_file)):
        expected = stock("-aHni", "--delete", "--modify-window=-1", second + "/", first + "/").stdout
        assert lines_of(huai("-i", "--attr-diff", *files).stdout) == lines_of(expected)


def test_a_format_shows_what_the_newer_entry_is(pair):
    _, new, old_file, new_file = pair
    output = huai("--out-format=%i|%n|%l|%B|%M|%U:%G", "--attr-diff", old_file, new_file).stdout.decode()
    info = os.lstat(os.path.join(new, "README"))
    assert f".f...p.....|README|{info.st_size}|rw-------|2023/11/14-22:13:20|{info.st_uid}:{info.st_gid}\n" in output
    assert "*deleting  |p/q/r/s/t/deep|0|---------|1970/01/01-00:00:00|" in output


def test_nothing_is_said_of_equal_snapshots(pair):
    old, _, old_file, _ = pair
    again = make(old, old + ".again")
    for options in (), ("-i",), ("--delete",):
        assert huai(*options, "--attr-diff", old_file, again).stdout == b""


def update(pair, copy):
    """What an operator would do with the two lists."""
    _, new, old_file, new_file = pair
    changed = huai("-0", "--attr-diff", old_file, new_file).stdout
    gone = huai("-0", "--delete", "--attr-diff", old_file, new_file).stdout
    removed = subprocess.run(["xargs", "-0r", "rm", "-d", "--"], input=gone, cwd=copy, capture_output=True)
    assert removed.returncode == 0, removed.stderr
    stock("-aH", "--modify-window=-1", "-0", "--files-from=-", new + "/", copy + "/", input=changed)


def test_the_lists_make_the_one_tree_of_the_other(pair, place):
    old, new, _, _ = pair
    copy = os.path.join(place, "copy")
    stock("-aH", old + "/", copy + "/")
    update(pair, copy)
    assert trees.differences(trees.describe(new), trees.describe(copy)) == []


def test_the_lists_name_what_changed_and_nothing_else(pair):
    old, new, old_file, new_file = pair
    before, after = snapshots.Snapshot(old_file).entries, snapshots.Snapshot(new_file).entries
    changed = huai("-0", "--attr-diff", old_file, new_file).stdout.rstrip(b"\0").split(b"\0")
    gone = huai("-0", "--delete", "--attr-diff", old_file, new_file).stdout.rstrip(b"\0").split(b"\0")
    plain = lambda entry: {key: value for key, value in entry.items() if key != "links"} if entry else None
    expected = {path for path, entry in after.items() if plain(before.get(path)) != plain(entry)} - {b"."}
    linked = {path for path, entry in after.items() if "links" in entry}
    assert set(changed) - linked == {b"./#comment" if path == b"#comment" else path for path in expected} - linked
    assert set(gone) == before.keys() - after.keys()
    for number, path in enumerate(gone):
        assert not any(other.startswith(path + b"/") for other in gone[number:]), "a directory comes after what is in it"


def test_a_group_of_links_is_listed_as_a_whole(pair):
    _, _, old_file, new_file = pair
    changed = set(huai("--attr-diff", old_file, new_file).stdout.splitlines())
    assert {b"hard-0", b"hard-1", b"dir/hard-2", b"dir/sub/hard-3", b"pool/hard-4"} <= changed
    assert {b"README", b"new dir/readme"} <= changed


def test_links_that_were_cut_are_a_change(place):
    tree = os.path.join(place, "tree")
    os.mkdir(tree)
    for name in "a", "b", "c":
        trees.write(os.path.join(tree, name), b"x")
    for name in "a2", "b2":
        os.link(os.path.join(tree, name[0]), os.path.join(tree, name))
    trees.set_directory_times(tree)
    old = make(tree, tree + ".old")
    os.unlink(os.path.join(tree, "a2"))
    trees.write(os.path.join(tree, "a2"), b"x")
    os.unlink(os.path.join(tree, "b2"))
    trees.set_directory_times(tree)
    assert huai("--attr-diff", old, make(tree, tree + ".new")).stdout == b"a2\n"


def test_a_name_with_a_line_break_needs_nul(place):
    tree = os.path.join(place, "tree")
    os.mkdir(tree)
    old = make(tree, tree + ".old")
    for name in "two\nlines", "plain", ";semicolon":
        trees.write(os.path.join(tree, name), b"x")
    new = make(tree, tree + ".new")
    result = huai("--attr-diff", old, new, code=23)
    assert result.stdout == b"./;semicolon\nplain\n"
    assert b"1 name with line breaks" in result.stderr
    assert huai("-0", "--attr-diff", old, new).stdout == b"./;semicolon\0plain\0two\nlines\0"
    assert b">f+++++++++ two\\#012lines\n" in huai("-i", "--attr-diff", old, new).stdout


def as_nobody():
    return {"user": 65534, "group": 65534, "extra_groups": []} if trees.IS_ROOT else {}


def test_nothing_counts_as_deleted_if_the_newer_snapshot_may_lack_something(place):
    tree = os.path.join(place, "tree")
    os.makedirs(os.path.join(tree, "closed"))
    trees.write(os.path.join(tree, "closed/file"), b"x")
    trees.write(os.path.join(tree, "gone"), b"x")
    if trees.IS_ROOT:
        shutil.chown(place, 65534)
        for path in trees.walk(tree):
            os.chown(os.path.join(os.fsencode(tree), path), 65534, 65534)

    def run(*words):
        return subprocess.run([harness.HUAI, *words], capture_output=True, env=harness.ENVIRONMENT, **as_nobody())

    assert run("-aH", f"--attr-snapshot={place}/old", tree + "/").returncode == 0
    os.unlink(os.path.join(tree, "gone"))
    os.chmod(os.path.join(tree, "closed"), 0)
    try:
        assert run("-aH", f"--attr-snapshot={place}/new", tree + "/").returncode == 23
    finally:
        os.chmod(os.path.join(tree, "closed"), 0o755)
    files = f"{place}/old", f"{place}/new"
    result = run("--delete", "--attr-diff", *files)
    assert (result.returncode, result.stdout) == (23, b"")
    assert b"skipping deletions" in result.stderr
    result = run("--delete", "--ignore-errors", "--attr-diff", *files)
    assert (result.returncode, result.stdout) == (0, b"gone\n"), "what is below a closed directory is never gone"
    assert run("--attr-diff", *files).stdout == b"closed\n"


def same_size_and_time(path):
    info = os.stat(path)
    with open(path, "r+b") as file:
        file.write(b"#")
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def test_stored_digests_tell_contents_apart(place):
    tree = os.path.join(place, "tree")
    os.mkdir(tree)
    trees.write(os.path.join(tree, "file"), b"content")
    old = make(tree, tree + ".old", "--attr-digests=xxh128,md5")
    same_size_and_time(os.path.join(tree, "file"))
    new = make(tree, tree + ".new", "--attr-digests=md5")
    assert huai("-i", "--attr-diff", old, new).stdout == b">fc........ file\n"
    assert huai("-i", "--attr-diff", old, make(tree, tree + ".without")).stdout == b""
    digest = subprocess.run(["md5sum", os.path.join(tree, "file")], capture_output=True, check=True).stdout.split()[0]
    assert huai("--out-format=%C", "--attr-diff", old, new).stdout.strip() == digest


def test_rules_that_would_have_no_effect_are_refused(pair):
    _, _, *files = pair
    assert b"no effect" in huai("--exclude=x", "--attr-diff", *files, code=1).stderr


@pytest.mark.parametrize("mode", ["--attr-list", "--attr-verify", "--attr-diff"])
def test_a_damaged_file_is_refused_with_the_reason(listed, place, mode):
    _, file = listed
    damaged = shutil.copy(file, os.path.join(place, "damaged"))
    size = os.path.getsize(damaged)
    with open(damaged, "r+b") as handle:
        handle.seek(size - 100)
        byte = handle.read(1)
        handle.seek(size - 100)
        handle.write(bytes([byte[0] ^ 1]))
    words = [mode, file, damaged] if mode == "--attr-diff" else [mode, damaged]
    result = huai(*words, code=11)
    assert re.search(rb'attr snapshot ".*/damaged": chunk \w+: ', result.stderr)
    assert result.stdout == b""


# --- --attr-verify ---

def test_a_whole_file_is_said_to_be_so(listed):
    _, file = listed
    facts = snapshots.Snapshot(file).facts
    line = huai("--attr-verify", file).stdout.decode()
    assert line.startswith(f"{file}: generation {facts['generation']}, entries: {facts['entry_count']}, ")
    assert line.endswith(": whole\n") and line.count("\n") == 1


def test_verification_names_the_differences_from_the_tree(pair):
    old, new, old_file, new_file = pair
    same = huai("--attr-verify", new_file, new + "/")
    assert same.stdout.decode().splitlines()[1:] == [f"{new_file}: the same as {new}/"]
    assert same.stderr == b""
    expected = lines_of(stock("-aHni", "--delete", "--modify-window=-1", new + "/", old + "/").stdout)
    change_back = huai("--attr-verify", old_file, new + "/", code=23)
    lines = change_back.stdout.splitlines()
    assert lines_of(b"\n".join(lines[1:-1])) == expected
    assert lines[-1] == os.fsencode(f"{old_file}: differences from {new}/: {len(expected)}")
    assert os.fsencode(f"is of another directory, {old}") in change_back.stderr


def test_verification_uses_the_filters_of_the_making(pair):
    _, new, _, _ = pair
    file = make(new, new + ".filtered", "--exclude=dir")
    assert huai("--attr-verify", "--exclude=dir", file, new + "/").stderr == b""
    result = huai("--attr-verify", file, new + "/", code=23)
    assert b"cd+++++++++ dir/\n" in result.stdout
    assert b"made with other options" in result.stderr


def test_contents_are_read_only_on_demand(place):
    tree = os.path.join(place, "tree")
    os.mkdir(tree)
    trees.write(os.path.join(tree, "file"), b"content")
    file = make(tree, tree + ".snap", "--attr-digests=xxh128")
    same_size_and_time(os.path.join(tree, "file"))
    huai("--attr-verify", file, tree + "/")
    assert b">fc........ file\n" in huai("-c", "--attr-verify", file, tree + "/", code=23).stdout
    assert b"no digests" in huai("-c", "--attr-verify", make(tree, file), tree + "/", code=1).stderr


# --- --attr-to-tree and --attr-from-tree ---

def hints(tree):
    """The access time of every attr file, by path."""
    result = {}
    for path in trees.walk(tree):
        info = os.lstat(os.path.join(os.fsencode(tree), path))
        if info.st_mode & 0o170000 == 0o100000:
            result[path] = info.st_atime_ns
    return result


def test_a_tree_from_a_snapshot_is_the_one_that_a_scan_writes(pair, place):
    old, new, old_file, new_file = pair
    ours, scanned = os.path.join(place, "ours"), os.path.join(place, "scanned")
    for tree, file in (old, old_file), (new, new_file):
        huai("-aH", "--delete", "--only-send-attrs", tree + "/", scanned + "/")
        items = huai("-i", "--delete", "--attr-to-tree", ours, f"--attr-snapshot={file}").stdout
        assert items
        assert trees.differences(trees.describe(scanned), trees.describe(ours)) == []
        assert hints(scanned) == hints(ours)
        assert huai("-i", "--delete", "--attr-to-tree", ours, f"--attr-snapshot={file}").stdout == b""


def test_a_dry_run_makes_nothing(pair, place):
    _, _, file, _ = pair
    tree = os.path.join(place, "attrs")
    assert b"cd+++++++++ dir/\n" in huai("-ni", "--attr-to-tree", tree, f"--attr-snapshot={file}").stdout
    assert not os.path.exists(tree)
    huai("-n", "--attr-from-tree", pair[0], f"--attr-snapshot={place}/none", code=23)
    assert not os.path.exists(f"{place}/none")


def test_no_real_tree_is_overwritten(pair):
    old, _, old_file, _ = pair
    before = trees.describe(old)
    refused = huai("--attr-to-tree", old, f"--attr-snapshot={old_file}", code=3)
    assert b"refusing to write an attr tree" in refused.stderr
    for target in old, old + "/inside":
        assert b"its own source" in huai("--force", "--attr-to-tree", target, f"--attr-snapshot={old_file}", code=3).stderr
    assert trees.describe(old) == before


def test_a_snapshot_of_an_attr_tree_is_that_of_the_real_one(pair, place):
    old, _, old_file, _ = pair
    attrs, file = os.path.join(place, "attrs"), os.path.join(place, "attrs.snap")
    trees.make_attr_tree(old, attrs)
    huai("--attr-from-tree", attrs, f"--attr-snapshot={file}")
    assert huai("-i", "--attr-diff", old_file, file).stdout == b""
    assert huai("-r", "--attr-list", file).stdout == huai("-r", "--attr-list", old_file).stdout
    assert "atimes" not in snapshots.Snapshot(file).chunks


def test_there_and_back_again(pair, place):
    _, _, _, new_file = pair
    attrs, file = os.path.join(place, "attrs"), os.path.join(place, "again.snap")
    huai("--attr-to-tree", attrs, f"--attr-snapshot={new_file}")
    huai("--attr-from-tree", attrs, f"--attr-snapshot={file}")
    before, after = snapshots.Snapshot(new_file), snapshots.Snapshot(file)
    assert before.chunks["entries"] == after.chunks["entries"]
    assert before.chunks["names"] == after.chunks["names"]
    assert before.facts["content_bytes"] == after.facts["content_bytes"]
    again = os.path.join(place, "attrs-again")
    huai("--attr-to-tree", again, f"--attr-snapshot={file}")
    assert trees.differences(trees.describe(attrs), trees.describe(again)) == []


def test_a_snapshot_of_an_attr_tree_is_bound_to_the_real_root(pair, place):
    old, _, _, _ = pair
    attrs, file = os.path.join(place, "attrs"), os.path.join(place, "attrs.snap")
    huai("-aH", "--only-send-attrs", old + "/", attrs + "/")
    huai("--attr-from-tree", attrs, f"--attr-snapshot={file}")
    facts = snapshots.Snapshot(file).facts
    assert (facts["root_dev"], facts["root_ino"], facts["root"], facts["generation"]) == (0, 0, b"", 1)
    huai("--attr-from-tree", attrs, old + "/", f"--attr-snapshot={file}")
    facts, info = snapshots.Snapshot(file).facts, os.stat(old)
    assert (facts["root_dev"], facts["root_ino"], facts["generation"]) == (info.st_dev, info.st_ino, 2)
    assert facts["root"] == os.fsencode(os.path.realpath(old))
    # Inodes of the one tree mean nothing in the other: a refresh of the real tree starts anew.
    assert b"full scan" in huai("-aH", "--attr-refresh=dirs", f"--attr-snapshot={file}", old + "/").stdout


def test_what_is_no_attr_file_is_left_out(place):
    attrs, file = os.path.join(place, "attrs"), os.path.join(place, "attrs.snap")
    os.mkdir(attrs)
    trees.write(os.path.join(attrs, "good"), struct.pack("<Q", 12345))
    trees.write(os.path.join(attrs, "bad"), b"not a size at all")
    result = huai("--attr-from-tree", attrs, f"--attr-snapshot={file}", code=23)
    assert b"is not 8 bytes long" in result.stderr
    entries = snapshots.Snapshot(file).entries
    assert entries.keys() == {b".", b"good"} and entries[b"good"]["size"] == 12345
