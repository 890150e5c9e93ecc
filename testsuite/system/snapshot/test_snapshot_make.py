# SPDX-License-Identifier: GPL-3.0-or-later
"""--attr-snapshot without a destination: what the file holds, how it is refreshed, what is refused, how a run ends."""
import hashlib
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import time

import pytest

import harness
import snapshots
import trees

needs_root = pytest.mark.skipif(not trees.IS_ROOT, reason="needs root")
SETTLED = 2.1  # seconds after which an unchanged directory, or the digest of an unchanged file, is believed


@pytest.fixture
def mirror(place):
    root = os.path.join(place, "mirror")
    os.mkdir(root)
    trees.build_mirror(root)
    return root


@pytest.fixture
def file(place):
    return os.path.join(place, "mirror.snap")


def make(mirror, file, *options, code=0, **keywords):
    result = harness.run(harness.HUAI, "-aH", *options, "--only-send-attrs", f"--attr-snapshot={file}", mirror + "/", **keywords)
    assert result.code == code, result.text
    return result


def refresh(mirror, file, how="dirs", *options, code=0, **keywords):
    return make(mirror, file, f"--attr-refresh={how}", *options, code=code, **keywords)


def expected_entries(root):
    """What a snapshot of a tree must say, from looking at the tree."""
    result = {}
    for path in trees.walk(root):
        info = os.lstat(os.path.normpath(os.path.join(os.fsencode(root), path)))
        entry = {"mode": info.st_mode, "mtime": info.st_mtime_ns, "owner": (info.st_uid, info.st_gid), "size": info.st_size}
        if stat.S_ISLNK(info.st_mode):
            entry["target"] = os.readlink(os.path.join(os.fsencode(root), path))
        elif stat.S_ISCHR(info.st_mode):
            entry["device"] = (os.major(info.st_rdev), os.minor(info.st_rdev))
        if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
            entry["links"] = (info.st_dev, info.st_ino)
        result[path] = entry
    return result


def without(entries, *keys):
    return {path: {key: value for key, value in entry.items() if key not in keys} for path, entry in entries.items()}


# --- what it holds ---

@pytest.mark.core
def test_holds_the_whole_tree(mirror, file):
    began = time.time()
    result = make(mirror, file)
    assert result.stdout == result.stderr == b""
    made = snapshots.Snapshot(file)
    assert trees.differences(expected_entries(mirror), made.entries) == []
    info = os.stat(mirror)
    facts = made.facts
    assert (facts["root_dev"], facts["root_ino"], facts["root"]) == (info.st_dev, info.st_ino, os.fsencode(mirror))
    assert facts["entry_count"] == len(made.entries) and facts["io_error"] == 0 and facts["generation"] == 1
    assert facts["options"] == b"" and facts["flags"] == 0
    assert began - 1 < facts["made"] <= time.time()
    assert facts["content_bytes"] == sum(e["size"] for e in made.entries.values() if stat.S_ISREG(e["mode"]))
    umask = os.umask(0)
    os.umask(umask)
    assert os.stat(file).st_mode & 0o777 == 0o644 & ~umask


def test_holds_everything_whatever_is_to_be_kept(mirror, file, place):
    make(mirror, file)
    other = os.path.join(place, "other.snap")
    result = harness.run(harness.HUAI, "-r", f"--attr-snapshot={other}", mirror)
    assert result.code == 0, result.text
    assert snapshots.Snapshot(other).same_list(snapshots.Snapshot(file))


def test_generations_count(mirror, file):
    for generation in 1, 2, 3:
        inode = os.stat(file).st_ino if generation > 1 else None
        make(mirror, file)
        assert snapshots.Snapshot(file).facts["generation"] == generation
        assert os.stat(file).st_ino != inode


def test_names_of_owners_unless_numeric(mirror, file):
    make(mirror, file)
    owners = snapshots.Snapshot(file).owners()
    assert owners[os.stat(mirror).st_uid, False] == subprocess.check_output(["id", "-un"]).strip()
    if trees.IS_ROOT:
        assert owners[65534, False] == b"nobody" and (12345, False) not in owners and (12345, True) not in owners
    make(mirror, file, "--numeric-ids")
    assert snapshots.Snapshot(file).owners() == {}


def test_access_times_if_asked_for(mirror, file):
    make(mirror, file, "-U")
    made = snapshots.Snapshot(file)
    for path, entry in made.entries.items():
        info = os.lstat(os.path.join(os.fsencode(mirror), path))
        assert entry["atime"] == (0 if stat.S_ISDIR(info.st_mode) else info.st_atime_ns // 10 ** 9)
    assert made.facts["options"] == b"-U"


def test_relative_names_and_a_current_directory(mirror, place):
    for cwd, file, source in ((place, "a.snap", "mirror/"), (mirror, "../b.snap", "."), (mirror + "/dir", "../../c.snap", "..")):
        result = harness.run(harness.HUAI, "-a", f"--attr-snapshot={file}", source, cwd=cwd)
        assert result.code == 0, result.text
        made = snapshots.Snapshot(os.path.join(cwd, file))
        assert made.facts["root"] == os.fsencode(mirror)
        assert made.entries.keys() == expected_entries(mirror).keys()


# --- what changes the list ---

LISTS = [
    "--exclude=*.o", "--exclude=/dir/", "--include=*/ --include=*.deb --exclude=*", "-F", "-FF", "-C", "--filter=:_.rules",
    "--filter=dir-merge_/merge/.rules", "--filter=-_/pool/main/ --filter=-_hard-*", "--filter=H_*.iso --filter=P_README",
    "--exclude-from=FILE", "--exclude-from=- ", "--include-from=FILE --exclude=*", "-0 --exclude-from=ZERO",
    "--chmod=Dg+s,ug+w,Fo-rwx,F-x", "-k", "-L --exclude=link-dangling --exclude=link-absolute --exclude=link-unsafe",
    "--copy-unsafe-links --exclude=link-absolute --exclude=link-unsafe --exclude=link-dangling", "-xx", "-F --chmod=a-w --exclude=*.junk",
]


@pytest.mark.parametrize("options", LISTS)
def test_list_is_that_of_a_stock_copy(mirror, place, file, options):
    """Stock's copy with the same options has exactly what the snapshot says."""
    rules, zero, target = (os.path.join(place, name) for name in ("rules", "zero", "target"))
    trees.write(rules, b"*.log\n# comment\n+ *.iso\n/p/q\n")
    trees.write(zero, b"*.log\0odd names/sp*\0")
    words = [word.replace("_", " ").replace("FILE", rules).replace("ZERO", zero) for word in options.split()]
    with open(rules, "rb") as stream:
        text = stream.read()
    stock = harness.run(harness.STOCK, "-aH", *words, mirror + "/", target + "/", input=text)
    assert stock.code == 0, stock.text
    make(mirror, file, *words, input=text)
    made, copy = snapshots.Snapshot(file), expected_entries(target)
    drop = ["links"] + ([] if trees.IS_ROOT else ["owner"])
    for entries in copy, made.entries:
        for entry in entries.values():
            if not stat.S_ISREG(entry["mode"]) and not stat.S_ISLNK(entry["mode"]):
                entry["size"] = 0
    assert trees.differences(without(copy, *drop), without(made.entries, *drop)) == []
    follows = options.split()[0] in ("-k", "-L", "--copy-unsafe-links")
    assert made.facts["flags"] == (1 if follows else 0)


def test_rules_may_come_from_a_pipe(mirror, place, file):
    """Each thread wants them, and a pipe gives them once."""
    script = f'exec "$@" --exclude-from=<(printf "%s\\n" "*.iso" "/pool") --attr-snapshot={file} {mirror}/'
    result = harness.run("bash", "-c", script, "sh", harness.HUAI, "-a")
    assert result.code == 0, result.text
    expected = {path for path in expected_entries(mirror) if not path.endswith(b".iso") and path.split(b"/")[0] != b"pool"}
    assert snapshots.Snapshot(file).entries.keys() == expected


@needs_root
@pytest.mark.parametrize("option", ["", "-x", "-xx"])
def test_mount_points(mirror, place, file, option):
    """In a mount namespace of its own, so that nothing is left mounted."""
    script = ("mount -t tmpfs huai-test \"$1/empty\" && echo x > \"$1/empty/inside\" && "
              "\"$2\" -a $4 --attr-snapshot=\"$3\" \"$1/\"; code=$?; umount \"$1/empty\"; exit $code")
    result = harness.run("unshare", "-m", "sh", "-c", script, "sh", mirror, harness.HUAI, file, option)
    if b"unshare" in result.stderr or b"mount:" in result.stderr:
        pytest.skip("cannot mount a tmpfs here")
    assert result.code == 0, result.text
    entries = snapshots.Snapshot(file).entries
    assert (b"empty/inside" in entries) == (option == "")
    assert (b"empty" in entries) == (option != "-xx")


# --- refreshing ---

def assert_is_a_full_scan(mirror, file, place, *options):
    full = os.path.join(place, "full.snap")
    make(mirror, full, *options)
    fresh, refreshed = snapshots.Snapshot(full), snapshots.Snapshot(file)
    assert trees.differences(fresh.entries, refreshed.entries) == []
    assert refreshed.same_list(fresh)
    assert refreshed.errors == fresh.errors
    os.unlink(full)


def counts(result):
    """(directories read, taken over, digests computed, taken over) of --stats."""
    read, kept = re.search(rb"^Directories: ([\d,]+) read, ([\d,]+) taken over$", result.stdout, re.M).groups()
    digests = re.search(rb"^Digests: ([\d,]+) computed, ([\d,]+) taken over$", result.stdout, re.M)
    return tuple(int(number.replace(b",", b"")) for number in (read, kept, *(digests.groups() if digests else ())))


def grow_tree(root, chance):
    os.mkdir(root)
    for i in range(30):
        directory = os.path.join(root, f"d{i % 6}", f"e{i}")
        os.makedirs(directory)
        for j in range(chance.randrange(12)):
            trees.write(os.path.join(directory, f"f{j}"), b"x" * chance.randrange(100), mtime_ns=chance.randrange(2 ** 60))
    os.symlink("nowhere", os.path.join(root, "d0/link"))
    os.link(os.path.join(root, "d0/link"), os.path.join(root, "d1/link"))


def change_tree(root, chance):
    """What an update by rsync does: files are renamed into place, directories made, moved and removed. The changed paths."""
    directories = [d for d, _, _ in os.walk(root)]
    touched = []
    for _ in range(8):
        at = chance.choice([d for d in directories if os.path.isdir(d)])
        path = os.path.join(at, f"f{chance.randrange(12)}")
        action = chance.choice(("replace", "replace", "delete", "mkdir", "move", "link", "chmod dir"))
        if action == "replace" and not os.path.isdir(path):
            trees.write(path + ".tmp", b"y" * chance.randrange(200), mtime_ns=chance.randrange(2 ** 60))
            os.rename(path + ".tmp", path)
        elif action == "delete" and os.path.isfile(path):
            os.unlink(path)
        elif action == "mkdir" and not os.path.lexists(path):
            os.mkdir(path)
            trees.write(os.path.join(path, "new"), b"new")
        elif action == "move" and os.path.isdir(path):
            target = os.path.join(root, f"moved-{chance.random()}")
            os.rename(path, target)
            touched.append(target)
        elif action == "link" and not os.path.lexists(path):
            trees.write(path, b"linked")
            os.link(path, path + "-2")
            touched.append(path + "-2")
        elif action == "chmod dir":
            path = at
            os.chmod(at, chance.choice((0o755, 0o700, 0o711)))
        else:
            continue
        touched.append(path)
    return touched


@pytest.mark.core
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("how", ("dirs", "list"))
@pytest.mark.parametrize("options", ("", "--exclude=f3 --chmod=g+w", "-F"))
def test_refresh_equals_a_full_scan(place, file, seed, how, options):
    chance = random.Random(seed)
    root, names = os.path.join(place, "tree"), os.path.join(place, "names")
    grow_tree(root, chance)
    if options == "-F":
        trees.write(os.path.join(root, ".rsync-filter"), b"- f3\n")
        trees.write(os.path.join(root, "d1/.rsync-filter"), b"- f4\n")
    make(root, file, *options.split())
    for _ in range(4):
        touched = change_tree(root, chance)
        with open(names, "w") as stream:
            stream.writelines(os.path.relpath(path, root) + "\n" for path in touched)
        result = refresh(root, file, "dirs" if how == "dirs" else names, *options.split())
        assert result.stdout + result.stderr == b""
        assert_is_a_full_scan(root, file, place, *options.split())


def test_refresh_reads_only_changed_directories(place, file):
    root = os.path.join(place, "tree")
    grow_tree(root, random.Random(1))
    time.sleep(SETTLED)
    assert counts(make(root, file, "--stats")) == (37, 0)
    assert counts(refresh(root, file, "dirs", "--stats")) == (0, 37)
    trees.write(os.path.join(root, "d2/e8/new"), b"new")
    assert counts(refresh(root, file, "dirs", "--stats")) == (1, 36)
    assert b"d2/e8/new" in snapshots.Snapshot(file).entries
    # A file that is written into leaves no trace in its directory: that is what the manual warns of.
    trees.write(os.path.join(root, "d2/e14/other"), b"new")
    time.sleep(SETTLED)
    refresh(root, file)
    with open(os.path.join(root, "d2/e14/other"), "ab") as stream:
        stream.write(b", and longer")
    refresh(root, file)
    assert snapshots.Snapshot(file).entries[b"d2/e14/other"]["size"] == 3
    refresh(root, file, "-", input=b"d2/e14/other\n")
    assert snapshots.Snapshot(file).entries[b"d2/e14/other"]["size"] == 15


def test_list_in_every_spelling(mirror, place, file):
    make(mirror, file)
    trees.write(os.path.join(mirror, "odd names/new\nline"), b"another size")
    trees.write(os.path.join(mirror, "dir/sub/d.iso"), b"D")
    os.makedirs(os.path.join(mirror, "brand/new/tree"))
    trees.write(os.path.join(mirror, "brand/new/tree/leaf"), b"leaf")
    shutil.rmtree(os.path.join(mirror, "p"))
    result = refresh(mirror, file, "-", "-0", input=b"./odd names/new\nline\0/dir//sub/d.iso\0brand/new/tree/leaf\0p/q/r/\0no/such\0")
    assert result.stdout + result.stderr == b""
    assert_is_a_full_scan(mirror, file, place)
    trees.write(os.path.join(mirror, "dir/sub/d.iso"), b"DD")
    names = os.path.join(place, "dirs")  # "./dirs" is a file, "dirs" is not
    trees.write(names, b"# comment\n; comment\r\n\ndir/\r\n")
    refresh(mirror, file, "./dirs", cwd=place)
    assert_is_a_full_scan(mirror, file, place)
    trees.write(os.path.join(mirror, "dir/sub/d.iso"), b"DDD")
    refresh(mirror, file, "-", input=b".\n")
    assert_is_a_full_scan(mirror, file, place)


def test_excluded_names_in_a_list_stay_out(mirror, place, file):
    make(mirror, file, "--exclude=/pool", "--exclude=*.iso")
    os.mkdir(os.path.join(mirror, "fresh"))
    trees.write(os.path.join(mirror, "fresh/x.iso"), b"x")
    refresh(mirror, file, "-", "--exclude=/pool", "--exclude=*.iso", input=b"pool/main/a/a_1.0.deb\npool\nfresh/x.iso\n")
    assert_is_a_full_scan(mirror, file, place, "--exclude=/pool", "--exclude=*.iso")
    assert b"fresh" in snapshots.Snapshot(file).entries


def test_first_refresh_is_a_full_scan(mirror, place, file):
    result = harness.run(harness.HUAI, f"--attr-snapshot={file}", "--attr-refresh=dirs", mirror + "/")
    assert result.code == 0 and result.stderr == b""
    assert result.stdout == b"full scan: there is no old snapshot that can be read\n"
    assert trees.differences(expected_entries(mirror), snapshots.Snapshot(file).entries) == []


@pytest.mark.parametrize("how", ("dirs", "-"))
def test_what_is_no_start_leads_to_a_full_scan(mirror, place, file, how):
    """The reason is printed, and what the refresh would not have seen is in the new snapshot."""
    def full_scan_for(reason, *options, source=mirror, warning=b""):
        with open(os.path.join(source, "README"), "ab") as stream:
            stream.write(b"more")
        result = refresh(source, file, how, *options, input=b"")
        assert result.stdout == b"full scan: " + reason + b"\n"
        assert (warning in result.stderr) if warning else result.stderr == b""
        made = snapshots.Snapshot(file)
        assert made.entries[b"README"]["size"] == os.path.getsize(os.path.join(source, "README"))

    make(mirror, file)
    full_scan_for(b"the old snapshot was made with other options", "--exclude=*.o")
    full_scan_for(b"the old snapshot was made with other options", "--exclude=*.o", "--chmod=F-w")
    full_scan_for(b"the old snapshot was made with other options", "--exclude=*.o", "--chmod=F-x")
    assert snapshots.Snapshot(file).facts["generation"] == 4
    rules = os.path.join(place, "rules")
    for text in b"*.o\n", b"*.iso\n":
        trees.write(rules, text)
        full_scan_for(b"the old snapshot was made with other options", f"--exclude-from={rules}")
    other = os.path.join(place, "other")
    os.mkdir(other)
    trees.write(os.path.join(other, "README"), b"another tree\n")
    full_scan_for(b"the old snapshot is of another directory", f"--exclude-from={rules}", source=other)
    with open(file, "r+b") as stream:
        stream.seek(-5, os.SEEK_END)
        stream.write(b"\xff\xfe")
    full_scan_for(b"there is no old snapshot that can be read", warning=b"the old snapshot %s is of no use: " % os.fsencode(file))
    os.chmod(file, 0o666)
    full_scan_for(b"there is no old snapshot that can be read", warning=b"is of no use: ")
    make(mirror, file)
    before = os.stat(os.path.join(mirror, "README")).st_size
    with open(os.path.join(mirror, "README"), "ab") as stream:
        stream.write(b"more")
    assert refresh(mirror, file, how, input=b"").stdout == b""
    assert snapshots.Snapshot(file).entries[b"README"]["size"] in (before, before + 4)


@pytest.mark.parametrize("option, reason", [("-U", b"access times change"), ("-L", b"what symlinks point to changes")])
def test_dirs_are_not_believed_where_they_say_nothing(mirror, place, file, option, reason):
    for name in "link-dangling", "link-absolute", "link-unsafe":
        os.unlink(os.path.join(mirror, name))
    make(mirror, file, option)
    assert b"full scan: " + reason in refresh(mirror, file, "dirs", option).stdout
    assert refresh(mirror, file, "-", option, input=b"").stdout == b""


# --- digests ---

def regular(entries):
    return {path: entry for path, entry in entries.items() if stat.S_ISREG(entry["mode"])}


def md5_of(mirror, path):
    with open(os.path.join(os.fsencode(mirror), path), "rb") as stream:
        return hashlib.md5(stream.read()).digest()


@pytest.mark.core
def test_digests_are_computed_once(mirror, file):
    files = len({os.lstat(os.path.join(os.fsencode(mirror), path)).st_ino for path in regular(expected_entries(mirror))})
    time.sleep(SETTLED)
    result = make(mirror, file, "--attr-digests=xxh128,md5", "--stats")
    made = snapshots.Snapshot(file)
    for path, entry in regular(made.entries).items():
        assert entry["md5"] == md5_of(mirror, path)
    same = {}
    for entry in regular(made.entries).values():
        assert same.setdefault(entry["md5"], entry["xxh128"]) == entry["xxh128"]
    assert len(set(same.values())) == len(same)
    computed = counts(result)[2]
    assert files <= computed <= len(regular(made.entries))
    for how in (), ("--attr-refresh=dirs",), ("--attr-refresh=-",):
        again = make(mirror, file, "--attr-digests=xxh128,md5", "--stats", *how, input=b"dir\n")
        assert counts(again)[2:] == (0, len(regular(made.entries)))
        assert snapshots.Snapshot(file).chunks["md5"] == made.chunks["md5"]
        assert snapshots.Snapshot(file).chunks["xxh128"] == made.chunks["xxh128"]


def test_digest_of_a_change_that_size_and_time_hide(mirror, file):
    time.sleep(SETTLED)
    make(mirror, file, "--attr-digests=md5")
    path = os.path.join(mirror, "README")
    info = os.stat(path)
    with open(path, "r+b") as stream:
        stream.write(b"A")
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert counts(make(mirror, file, "--attr-digests=md5", "--stats"))[2] == 1
    assert snapshots.Snapshot(file).entries[b"README"]["md5"] == md5_of(mirror, b"README")


def test_digests_are_those_asked_for(mirror, file):
    make(mirror, file, "--attr-digests=md5")
    assert "md5" in snapshots.Snapshot(file).chunks and "xxh128" not in snapshots.Snapshot(file).chunks
    make(mirror, file, "--attr-digests=xxh128,md5")
    made = snapshots.Snapshot(file)
    assert all("md5" in entry and "xxh128" in entry for entry in regular(made.entries).values())
    refresh(mirror, file)
    assert "md5" not in snapshots.Snapshot(file).chunks


# --- errors ---

def as_nobody():
    return {"user": 65534, "group": 65534, "extra_groups": []}


def run_as_nobody(*words):
    done = subprocess.run([harness.HUAI, *words], capture_output=True, env=harness.ENVIRONMENT, **as_nobody())
    return harness.Result(list(words), done.returncode, done.stdout, done.stderr)


@needs_root
def test_what_cannot_be_read_is_recorded(mirror, place, file):
    os.chmod(place, 0o777)
    words = ["-aH", f"--attr-snapshot={file}"]
    os.chmod(os.path.join(mirror, "pool"), 0o700)
    result = run_as_nobody(*words, mirror + "/")
    assert result.code == 23, result.text
    assert b'opendir "' in result.stderr and b"/pool\" failed: Permission denied" in result.stderr
    made = snapshots.Snapshot(file)
    assert made.facts["io_error"] == 1 and made.errors == {b"pool": 13}
    assert b"pool" in made.entries and b"pool/main" not in made.entries and b"README" in made.entries
    # Such a snapshot is no start for a refresh.
    os.chmod(os.path.join(mirror, "pool"), 0o755)
    result = run_as_nobody(*words, "--attr-refresh=dirs", mirror + "/")
    assert (result.code, result.stdout) == (0, b"full scan: the old snapshot lacks what could not be read then\n"), result.text
    assert trees.differences(expected_entries(mirror), snapshots.Snapshot(file).entries) == []


@needs_root
def test_unreadable_contents_are_left_without_a_digest(mirror, place, file):
    os.chmod(place, 0o777)
    os.chmod(os.path.join(mirror, "README"), 0o600)
    result = run_as_nobody("-aH", f"--attr-snapshot={file}", "--attr-digests=md5", mirror + "/")
    assert result.code == 23 and b"README" in result.stderr, result.text
    made = snapshots.Snapshot(file)
    assert "md5" not in made.entries[b"README"] and "md5" in made.entries[b"dir.x"]
    assert made.facts["io_error"] == 0


@needs_root
def test_nothing_is_written_of_a_tree_that_cannot_be_read(mirror, place, file):
    os.chmod(place, 0o777)
    assert run_as_nobody("-aH", f"--attr-snapshot={file}", mirror + "/").code == 0
    before = snapshots.Snapshot(file)
    os.chmod(mirror, 0o711)
    for options in [], ["--attr-refresh=dirs"]:
        result = run_as_nobody("-aH", f"--attr-snapshot={file}", *options, mirror + "/")
        assert result.code == 23 and b"Permission denied" in result.stderr, result.text
        assert snapshots.Snapshot(file).chunks == before.chunks


@needs_root
def test_directory_that_cannot_be_written(mirror, place):
    os.chmod(place, 0o755)
    result = run_as_nobody("-aH", f"--attr-snapshot={place}/x.snap", mirror + "/")
    assert result.code == 11 and b"x.snap" in result.stderr and b"Permission denied" in result.stderr, result.text
    assert not os.path.exists(os.path.join(place, "x.snap"))


def test_full_disk_leaves_the_old_one(mirror, place):
    if not trees.IS_ROOT:
        pytest.skip("needs root to mount")
    small = os.path.join(place, "small")
    os.mkdir(small)
    grow = "for i in $(seq 2000); do : > \"$1/$(printf '%0200d' $i)\"; done"
    script = ("mount -t tmpfs -o size=200k huai-test \"$3\" || exit 99; \"$2\" -aH --attr-snapshot=\"$3/x.snap\" \"$1/\" || exit 98; "
              f"cp \"$3/x.snap\" \"$4/before\"; {grow}; \"$2\" -aH --attr-snapshot=\"$3/x.snap\" \"$1/\"; code=$?; "
              "cmp \"$3/x.snap\" \"$4/before\" || code=97; ls -A \"$3\" > \"$4/names\"; umount \"$3\"; exit $code")
    result = harness.run("unshare", "-m", "sh", "-c", script, "sh", mirror, harness.HUAI, small, place)
    if result.code == 99 or b"unshare:" in result.stderr:
        pytest.skip("cannot mount a tmpfs here")
    assert result.code == 11 and b"No space left on device" in result.stderr, result.text
    with open(os.path.join(place, "names")) as stream:
        assert stream.read() == "x.snap\n"


@pytest.mark.parametrize("words, code, text", [
    (["--attr-refresh=dirs", "MIRROR/"], 1, b"--attr-refresh needs --attr-snapshot=FILE"),
    (["--attr-digests=md5", "MIRROR/"], 1, b"--attr-digests needs --attr-snapshot=FILE"),
    (["SNAP", "--attr-digests=md4", "MIRROR/"], 1, b'"md4" is not one of xxh128 and md5'),
    (["SNAP", "--attr-digests=", "MIRROR/"], 1, b'"" is not one of xxh128 and md5'),
    (["--attr-snapshot=", "MIRROR/"], 1, b"--attr-snapshot needs the name of a file"),
    (["SNAP", "--no-r", "MIRROR/"], 1, b"it needs --recursive"),
    (["SNAP", "-d", "MIRROR/"], 1, b"--dirs cannot be used with --attr-snapshot"),
    (["SNAP", "-R", "MIRROR/"], 1, b"--attr-snapshot cannot be used with --relative"),
    (["SNAP", "--files-from=-", "MIRROR/", "x"], 1, b"--attr-snapshot cannot be used with --files-from"),
    (["SNAP", "--list-only", "MIRROR/"], 1, b"--attr-snapshot cannot be used with --list-only"),
    (["SNAP", "--delete", "MIRROR/"], 1, b"--delete cannot be used with --attr-snapshot"),
    (["SNAP", "-c", "MIRROR/"], 1, b"--checksum cannot be used with --attr-snapshot"),
    (["SNAP", "--max-size=1k", "MIRROR/"], 1, b"--max-size cannot be used with --attr-snapshot"),
    (["SNAP", "--min-size=1k", "MIRROR/"], 1, b"--min-size cannot be used with --attr-snapshot"),
    (["SNAP", "-i", "MIRROR/"], 1, b"cannot be used with --attr-snapshot"),
    (["SNAP", "MIRROR/dir", "MIRROR/pool", "x"], 1, b"--attr-snapshot is of one directory"),
    (["SNAP"], 1, b"--attr-snapshot is of one directory"),
    (["SNAP", "--attr-refresh=dirs", "MIRROR/", "x"], 1, b"--attr-refresh is for runs without a destination"),
    (["SNAP", "--attr-refresh=-", "--exclude-from=-", "MIRROR/"], 1, b"cannot both be read from standard input"),
    (["--attr-snapshot=MIRROR/pool/x.snap", "MIRROR/"], 1, b"would lie inside the tree"),
    (["--attr-snapshot=MIRROR/x.snap", "MIRROR/"], 1, b"would lie inside the tree"),
    (["SNAP", "MIRROR/nowhere/"], 3, b"nowhere"),
    (["SNAP", "MIRROR/README"], 3, b"Not a directory"),
    (["--attr-snapshot=MIRROR/../nowhere/x.snap", "MIRROR/"], 11, b"cannot write the snapshot"),
    (["SNAP", "--attr-refresh=nowhere", "MIRROR/"], 11, b"failed to open attr-refresh file nowhere"),
    (["SNAP", "--exclude-from=nowhere", "MIRROR/"], 11, b"nowhere"),
    (["SNAP", "--attr-list", "x"], 1, b"--attr-snapshot cannot be used with --attr-list"),
    (["--attr-list", "--attr-verify", "x"], 1, b"--attr-list and --attr-verify cannot be used together"),
    (["--attr-digests=md5", "--attr-verify", "x"], 1, b"--attr-digests cannot be used with --attr-verify"),
    (["--attr-diff", "x"], 1, b"usage: rsync-huai --attr-diff OLD NEW"),
    (["--attr-list"], 1, b"usage: rsync-huai --attr-list FILE [PATH]"),
    (["--attr-from-tree", "x"], 1, b"--attr-from-tree needs --attr-snapshot=FILE"),
    (["SNAP", "--attr-to-tree", "x", "y"], 1, b"usage: rsync-huai --attr-to-tree --attr-snapshot=FILE TREE"),
    (["--server", "--sender", "SNAP", ".", "MIRROR/"], 4, b"--attr-snapshot is not supported"),
    (["--server", "SNAP", ".", "MIRROR/"], 4, b"--attr-snapshot is not supported"),
])
def test_is_refused(mirror, place, file, words, code, text):
    words = [word.replace("MIRROR", mirror).replace("SNAP", f"--attr-snapshot={file}") for word in words]
    words = words if "--server" in words else ["-a", *words]
    result = harness.run(harness.HUAI, *words, cwd=place, input=b"")
    assert result.code == code and text in result.stderr, result.text
    assert sorted(os.listdir(place)) == ["mirror"]


def test_no_client_makes_a_daemon_write_one(mirror, place, file):
    config = f"[mod]\npath = {mirror}\nuse chroot = no\nread only = no\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        result = harness.run(harness.STOCK, "-a", f"-M--attr-snapshot={file}", daemon.url("mod/"), os.path.join(place, "copy"))
    assert result.code == 4 and b"--attr-snapshot is not supported" in result.stderr, result.text
    assert not os.path.exists(file)


# --- what it prints, and how it ends ---

def what_is_written(file):
    """Reading it may set its access time."""
    st = os.stat(file)
    return st.st_ino, st.st_mode, st.st_size, st.st_mtime_ns, st.st_ctime_ns


def test_dry_run_writes_nothing(mirror, place, file):
    result = make(mirror, file, "-nv", "--stats")
    assert b"would write " + os.fsencode(file) + b": generation 1, " in result.stdout and b"(DRY RUN)" in result.stdout
    assert not os.path.exists(file)
    make(mirror, file)
    before = what_is_written(file)
    trees.write(os.path.join(mirror, "new"), b"new")
    refresh(mirror, file, "dirs", "-n")
    assert what_is_written(file) == before


def test_what_is_told(mirror, file):
    entries = expected_entries(mirror)
    result = make(mirror, file, "-v")
    dirs = sum(stat.S_ISDIR(entry["mode"]) for entry in entries.values())
    assert result.stdout == b"wrote %s: generation 1, %d entries, %d directories read\n" % (os.fsencode(file), len(entries), dirs)
    lines = make(mirror, file, "--stats").stdout.decode().splitlines()
    count = lambda kind: sum(kind(entry["mode"]) for entry in entries.values())
    size = sum(entry["size"] for entry in entries.values() if stat.S_ISREG(entry["mode"]))
    assert lines[1].startswith(f"Number of files: {len(entries)} (reg: {count(stat.S_ISREG)}, dir: {dirs}, link: {count(stat.S_ISLNK)}, ")
    assert lines[2:4] == [f"Total file size: {size:,} bytes", f"Directories: {dirs} read, 0 taken over"]
    assert re.fullmatch(r"Threads: \d", lines[4]) and lines[5] == f"Snapshot size: {os.path.getsize(file):,} bytes"
    assert re.fullmatch(r"Time: \d+\.\d{3} seconds", lines[6]) and len(lines) == 7
    assert make(mirror, file, "-vvq", "--stats", "--progress").stdout == b""
    shown = make(mirror, file, "--info=progress2,name0").stdout
    assert re.search(rb"\r +%d files\.\.\.\n" % (len(entries)), shown) or re.search(rb"\r +%d files\.\.\.\n" % (len(entries) - 1), shown)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_cleanly(tmpfs_place, number):
    source, file = os.path.join(tmpfs_place, "source"), os.path.join(tmpfs_place, "x.snap")
    for i in range(300):
        os.makedirs(os.path.join(source, f"d{i}"))
        for j in range(60):
            os.mknod(os.path.join(source, f"d{i}", f"some-file-{j}"))
    duration = make(source, file, "--attr-digests=md5").seconds
    os.unlink(file)
    make(source, file)
    before = snapshots.Snapshot(file)
    ended = 0
    for delay in (duration * part / 10 for part in range(1, 10)):
        process = subprocess.Popen([harness.HUAI, "-a", f"--attr-snapshot={file}", "--attr-digests=md5", source + "/"],
                                   stderr=subprocess.PIPE)
        time.sleep(delay)
        process.send_signal(number)
        stderr = process.communicate(timeout=30)[1]
        assert process.returncode in (20, 0, -number), stderr  # -number: before the program had started
        if process.returncode == 20:
            ended += 1
            assert b"received SIGINT, SIGTERM, or SIGHUP (code 20)" in stderr
        assert sorted(os.listdir(tmpfs_place)) == ["source", "x.snap"]
        assert snapshots.Snapshot(file).entries.keys() == before.entries.keys()
    assert ended
