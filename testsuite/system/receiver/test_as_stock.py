# SPDX-License-Identifier: GPL-3.0-or-later
"""Small cases of the receiving side in which only a comparison with stock shows what is right."""
import os
import shutil
import subprocess

import pytest

import ends
import harness
import trees

TIME = 1_500_000_000
NO_ACL = rb"^default_perms_for_dir: sys_acl_get_file"  # stock also looks at what is not there


def put(path, text="text\n", mode=0o644):
    trees.write(path, text.encode(), mode, TIME * 10**9)


# --- listings ---

def make_two(top):
    os.mkdir(f"{top}/s")
    put(f"{top}/s/a")
    os.utime(f"{top}/s", (TIME, TIME))
    put(f"{top}/file")
    os.mkdir(f"{top}/t")


@pytest.mark.parametrize("way", ends.WAYS)
@pytest.mark.parametrize("options", ["--link-dest=none", "--copy-dest={top}/file --copy-dest={top}/t --copy-dest=../file"])
def test_listings_tell_of_missing_alternate_destinations(place, options, way):
    assert b"dest arg" in ends.assert_agree(place, make_two, f"-av --list-only {options}", way)[0].stderr


def test_server_writes_to_standard_error_after_the_header(place):
    make_two(place)
    command = [harness.HUAI, "-av", "--link-dest=none", "-e", harness.make_remote_shell(place), f"--rsync-path={harness.STOCK}"]
    result = subprocess.run([*command, f"{place}/s/", f"h:{place}/t"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env=harness.ENVIRONMENT)
    assert result.stdout.startswith(b"sending incremental file list\n--link-dest arg does not exist"), result.stdout


def test_run_from_a_directory_that_is_gone(place):
    make_two(place)
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    for words in (["../missing", f"{place}/t"], [f"{place}/s/", f"{place}/t"]):
        result = harness.run("sh", "-c", script, "sh", harness.HUAI, "-a", *words, cwd=place)
        assert result.code == (23 if "missing" in words[0] else 0), result.text
    assert os.listdir(f"{place}/t") == ["a"]


# --- modes ---

def make_setid(top):
    """In the name: old mode, new mode, whose it was."""
    for side in ("s", "t"):
        os.mkdir(f"{top}/{side}")
        for old in (0o4755, 0o2755, 0o6711, 0o2644, 0o755):
            for new in (0o6755, 0o700):
                for owner in ((0, 0), (77, 0), (0, 77), (77, 77)):
                    name = f"{top}/{side}/{old:o}-{new:o}-{owner[0]}-{owner[1]}"
                    put(name)
                    os.mkfifo(f"{name}.fifo")
                    for path in (name, f"{name}.fifo"):
                        os.chown(path, *((0, 0) if side == "s" else owner))
                        os.chmod(path, new if side == "s" else old)
                        os.utime(path, (TIME, TIME))
        os.utime(f"{top}/{side}", (TIME, TIME))


@pytest.mark.skipif(not trees.IS_ROOT, reason="gives files away")
@pytest.mark.parametrize("way", ends.WAYS)
@pytest.mark.parametrize("options", ["-ai", "-ai --no-p", "-ain"])
def test_items_of_setid_files_that_change_hands(place, options, way):
    ends.assert_agree(place, make_setid, options, way)


def make_executables(top):
    for side, mode in (("s", 0o600), ("t", 0o755)):
        os.makedirs(f"{top}/{side}/d")
        put(f"{top}/{side}/f")
        os.mkfifo(f"{top}/{side}/p")
        for name in "dfp":
            os.chmod(f"{top}/{side}/{name}", mode)
            os.utime(f"{top}/{side}/{name}", (TIME, TIME))
        os.utime(f"{top}/{side}", (TIME, TIME))


@pytest.mark.parametrize("way", ends.WAYS)
def test_executability_is_one_of_files(place, way):
    ends.assert_agree(place, make_executables, "-rtDi -E", way)


# --- deletions ---

def make_surplus(top):
    """Directories that can go, and some that have to stay because something deep inside is kept."""
    os.mkdir(f"{top}/s")
    for name in ("x/y/z/a", "x/y/keep", "x/f", "x/keepd/a", "only/keep", "only/f", "deep/a/b/f.bak", "mix/k/l/keep", "mix/m/n", "g"):
        os.makedirs(os.path.dirname(f"{top}/t/{name}"), exist_ok=True)
        put(f"{top}/t/{name}")
    os.mkdir(f"{top}/t/empty")
    for side in "st":
        os.utime(f"{top}/{side}", (TIME, TIME))


@pytest.mark.parametrize("way", ends.WAYS)
@pytest.mark.parametrize("when", ["--del", pytest.param("--delete-before", marks=pytest.mark.core)])
@pytest.mark.parametrize("options", ["--exclude=keep", "--exclude=keep --debug=del3", "--filter=P_keepd/", "--max-delete=5 --exclude=keep",
                                     "--max-delete=2 --exclude=keep", "--backup --suffix=.bak --debug=del3"])
def test_dry_runs_of_deletions(place, options, when, way):
    ends.assert_agree(place, make_surplus, f"-rni --stats {when} {options}", way, in_order=True)


def make_temp_dir(top):
    make_two(top)
    os.mkdir(f"{top}/t/tmp")
    put(f"{top}/t/tmp/left")


@pytest.mark.parametrize("way", ends.WAYS)
@pytest.mark.parametrize("options", ["--delete --temp-dir=tmp", "--delete-after --temp-dir=tmp", "--del --temp-dir=tmp --filter=P_tmp/"])
def test_deletions_and_a_temp_dir_in_the_destination(place, options, way):
    ends.assert_agree(place, make_temp_dir, f"-rt {options}", way)


# --- what a run leaves alone ---

def make_kinds(top):
    """One of each kind as new, as changed and as it was, two groups of hard links, and surplus names."""
    for name in ("new", "changed", "same", "d/new", "d/changed", "e/f/g"):
        os.makedirs(os.path.dirname(f"{top}/s/{name}"), exist_ok=True)
        put(f"{top}/s/{name}", name * 300)
    for first, second in (("new", "new2"), ("changed", "d/changed2"), ("d/new", "d/new2")):
        os.link(f"{top}/s/{first}", f"{top}/s/{second}")
    for name in ("changed", "same", "d/changed", "gone", "d/gone", "left/gone"):
        os.makedirs(os.path.dirname(f"{top}/t/{name}"), exist_ok=True)
        put(f"{top}/t/{name}", (name if name == "same" else "gone") * 300)
    for name, kind in (("link", os.symlink), ("pipe", None)):
        for path in (f"{top}/s/{name}", f"{top}/s/d/{name}", f"{top}/t/d/{name}"):
            os.symlink("same" if "/s/" in path else "elsewhere", path) if kind else os.mkfifo(path, 0o644 if "/s/" in path else 0o600)
            os.utime(path, (TIME, TIME), follow_symlinks=False)
    for side in "st":
        trees.set_directory_times(f"{top}/{side}")
    trees.set_directory_times(top)


NOTHING_CHANGES = ["-aH --remove-source-files -b --backup-dir=kept", "-rHD --remove-source-files --delete-before --no-i-r",
                   "-aH --remove-source-files --delete --delay-updates", "-rH --inplace --remove-source-files --no-W",
                   "-acH --remove-source-files --link-dest=../s --partial-dir=.p -y"]


@pytest.mark.parametrize("options", NOTHING_CHANGES)
def test_batch_that_is_only_written_changes_nothing(place, options):
    """At neither end, whoever they are."""
    for way in ends.WAYS:
        protocol = (32, 27, 30, 29, 31)[NOTHING_CHANGES.index(options)]
        for client, server in (*ends.PAIRINGS[way], *([(harness.HUAI, harness.HUAI)] if way != "local" else [])):
            top = f"{place}/work"
            os.mkdir(top)
            make_kinds(top)
            before = trees.describe(top)
            words = ends.words(top, f"{options} --only-write-batch={place}/batch", ("s/",), way, protocol, server)
            result = harness.run(client, *words, cwd=top)
            assert result.code == 0, result.text
            after = trees.describe(top)
            after.pop(b"remote-shell", None)
            before[b"."] = after[b"."]
            assert trees.differences(before, after) == [], result.text
            shutil.rmtree(top)


@pytest.mark.parametrize("way", ends.WAYS)
@pytest.mark.parametrize("options, protocol", [("-rtHi --no-i-r --stats", 29), ("-aHi --no-i-r", 32), ("-aHi --no-i-r", 31), ("-nrtHi --stats", 28),
                                               ("-rHi --no-i-r --stats -n", 31)])
def test_items_of_links_in_a_batch_that_is_only_written(place, options, protocol, way):
    """Those to a file whose content goes into the batch are left to the run that reads it, as ours writes it without incremental recursion."""
    ends.assert_agree(place, make_kinds, f"{options} --only-write-batch=B", way, protocol, at_both=True)


# --- directories that the run makes although nothing lists them ---

def make_below_default_acl(acl):
    def make(top):
        os.makedirs(f"{top}/s/d/e")
        for name in ("d/e/f", "g"):
            put(f"{top}/s/{name}", mode=0o666)
        trees.set_directory_times(f"{top}/s")
        os.mkdir(f"{top}/t")
        subprocess.run(["setfacl", "-d", "-m", acl, f"{top}/t"], check=True)
    return make


def acls_of(path):
    return {name: os.getxattr(path, name, follow_symlinks=False) for name in os.listxattr(path, follow_symlinks=False)}


UNLISTED = (("-r", "t/new/", "s/"), ("-ai", "t/new", "s/"), ("-r --mkpath", "t/a/b/new", "s/g"), ("-ai --mkpath", "t/a/b/new/", "s/g"),
            ("-aAi --mkpath", "t/a/b/", "s/"), ("-rR --no-implied-dirs", "t/new/", "s/./d/e/f"), ("-aRi", "t/new/", "s/./d/e/f"),
            ("-rib --backup-dir={top}/t/kept/er --delete", "t/old/", "s/"), ("-n -ri --mkpath", "t/a/b/new/", "s/"))


ACLS = ("u::rwx,g::rwx,o::---", "u::rwx,u:77:rwx,g::---,m::rwx,o::rwx", "u::rwx,g::rx,o::rwx")


@pytest.mark.skipif(not shutil.which("setfacl"), reason="no setfacl")
@pytest.mark.parametrize("options, destination, source, acl, way", [(*job, acl, ends.WAYS[(row + column) % 3])
                         for row, job in enumerate(UNLISTED) for column, acl in enumerate(ACLS)])
def test_modes_of_unlisted_directories_below_a_default_acl(place, options, destination, source, acl, way):
    def make(top):
        make_below_default_acl(acl)(top)
        if "old" in destination:
            os.mkdir(f"{top}/t/old")
            put(f"{top}/t/old/g", "older\n", 0o600)
            put(f"{top}/t/old/gone")
    ends.assert_agree(place, make, options, way, at_both=True, sources=(source,), destination=destination, extra=acls_of)


# --- path elements that only names imply ---

def make_path_to(kind):
    """Names below d/e, and what there is of `d` at the destination: a symlink with this target, or one of these words."""
    def make(top):
        for name in ("d/e/f", "d/e/sub/q", "d/top"):
            os.makedirs(os.path.dirname(f"{top}/s/{name}"), exist_ok=True)
            put(f"{top}/s/{name}")
        os.symlink("x", f"{top}/s/d/e/l")
        os.mkfifo(f"{top}/s/d/e/p")
        os.utime(f"{top}/s/d/e/l", (TIME, TIME), follow_symlinks=False)
        os.utime(f"{top}/s/d/e/p", (TIME, TIME))
        os.makedirs(f"{top}/t/real/old")
        os.makedirs(f"{top}/out/e")
        put(f"{top}/t/file")
        below = "d/e" if kind.startswith("../") else "d"
        if kind == "directory":
            os.mkdir(f"{top}/t/d", 0o700)
        elif kind == "plain":
            put(f"{top}/t/d")
        else:
            os.makedirs(os.path.dirname(f"{top}/t/{below}"), exist_ok=True)
            trees.symlink(kind.format(top=top), f"{top}/t/{below}")
        trees.set_directory_times(top)
    return make


PATH_KINDS = ["real", "../out", "{top}/t/real", "nowhere", "plain", "file", "directory", "./real/../real", "../real", "../../out", "d"]
PATH_OPTIONS = ["-aRi", "-aRHi --delay-updates", "-rRi --inplace --delete", "-aRni", "-aRiK --delete-after", "-rRi --existing -l"]


@pytest.mark.parametrize("kind", PATH_KINDS)
@pytest.mark.parametrize("names", ["d/e/f d/e/l d/e/p d/top", "d/e", "d/e/sub/q"])
def test_path_elements_stay_as_they_are(place, kind, names):
    """A symlink to a directory inside the destination is as good as one; whatever else there is ends in an error, and stays."""
    turn = PATH_KINDS.index(kind) + len(names)
    options, way, protocol = PATH_OPTIONS[turn % len(PATH_OPTIONS)], ends.WAYS[turn // 2 % 3], (32, 31, 30)[turn // 3 % 3]
    ends.assert_agree(place, make_path_to(kind), f"{options} --no-implied-dirs", way, protocol, at_both=True, noise=NO_ACL,
                      sources=tuple(f"s/./{name}" for name in names.split()))


# --- holes ---

def make_zeros(top):
    """Files with zeros at each place, as new ones and over older ones whose data or zeros are elsewhere, or match."""
    data, zeros = trees.noise(40_000, 3), bytes(200_000)
    news = {"new": data + zeros + data + zeros, "zeros": zeros, "small": bytes(9000), "middle": data[:5000] + zeros + data[:100],
            "first": zeros + data, "runs": (data[:5000] + bytes(1500) + data[:300] + bytes(900)) * 30}
    both = data + zeros + data + zeros + data
    olds = {"end": (both, data + zeros + data + zeros + b"x" * 40_000), "full": (both, data + b"\1" * 200_000 + data + zeros),
            "moved": (both, zeros + data + zeros + data + zeros), "same": (zeros + b"e", zeros + b"f"), "longer": (data + zeros, data + zeros + data),
            "filled": (zeros, data * 5)}
    for side in "st":
        os.mkdir(f"{top}/{side}")
    for name, content in news.items():
        trees.write(f"{top}/s/{name}", content)
    for name, (content, old) in olds.items():
        trees.write(f"{top}/s/{name}", content)
        trees.write(f"{top}/t/{name}", old, mtime_ns=TIME * 10**9)
    trees.sparse(f"{top}/s/holes", 700_000, [(300_000, data)])


HOLES = ["-S", "--preallocate -S", "--inplace -S", "--inplace -S --no-W", "--inplace --preallocate -S --no-W -B 1000", "-S --no-W", "--preallocate -S --no-W",
         "-b --inplace -S --no-W", "-S --partial-dir=.p --no-W", "-zS --inplace --no-W", "--delay-updates --preallocate -S"]


@pytest.mark.parametrize("options", HOLES)
def test_zeros_end_as_holes(place, options):
    """Right contents, and nowhere more blocks than stock needs."""
    way = ends.WAYS[HOLES.index(options) % 3]

    def run(client, server):
        result, _, _, tree = ends.run(place, make_zeros, f"-rt {options}", way, 32, client, server, extra=lambda path: os.lstat(path).st_blocks)
        assert result.code == 0, result.text
        return tree, {path: entry.pop("extra") for path, entry in tree.items()}
    expected, most = run(harness.STOCK, harness.STOCK)
    receivers = {"local": [(harness.HUAI, None)], "pull": [(harness.HUAI, harness.STOCK)], "push": [(harness.STOCK, harness.HUAI)]}[way]
    for client, server in receivers + ([(harness.HUAI, harness.HUAI)] if way != "local" else []):
        got, blocks = run(client, server)
        assert trees.differences(expected, got) == []
        assert {path: (count, most[path]) for path, count in blocks.items() if count > most[path]} == {}


# --- hard links ---

def put_kind(kind, path):
    """A file, symlink, pipe, device, socket or directory; "n": nothing."""
    if kind == "l":
        trees.symlink("x", path)
    elif kind == "f":
        put(path)
    elif kind != "n":
        os.mkdir(path) if kind == "d" else os.mknod(path, {"p": 0o010600, "c": 0o020600, "k": 0o140600}[kind], os.makedev(1, 3))
        trees.finish(path, 0o640, TIME * 10**9)


def make_groups(top):
    """For each kind a pair of names, of which one has each kind at the destination already, and the other is as it should be."""
    for side in "st":
        os.mkdir(f"{top}/{side}")
    for kind in "flpck":
        for old in "flpckdn":
            for number in (1, 2):
                names = [f"{kind}{old}{number}_1", f"{kind}{old}{number}_2"]
                put_kind(kind, f"{top}/s/{names[0]}")
                os.link(f"{top}/s/{names[0]}", f"{top}/s/{names[1]}", follow_symlinks=False)
                put_kind(old, f"{top}/t/{names[number - 1]}")
                put_kind(kind, f"{top}/t/{names[2 - number]}")
    for side in "st":
        os.utime(f"{top}/{side}", (TIME, TIME))


def make_linked_objects(top):
    """Groups of three in two directories; of some, one or two names are at the destination, right or with another mode."""
    for side in "st":
        os.makedirs(f"{top}/{side}/d")
    for kind in "flpck":
        for state in ("new", "one", "two", "other"):
            names = [f"{kind}{state}1", f"{kind}{state}2", f"d/{kind}{state}3"]
            put_kind(kind, f"{top}/s/{names[0]}")
            for name in names[1:]:
                os.link(f"{top}/s/{names[0]}", f"{top}/s/{name}", follow_symlinks=False)
            for name in {"new": (), "one": names[1:2], "two": names[:2], "other": names[:1]}[state]:
                put_kind(kind, f"{top}/t/{name}")
                if state == "other" and kind != "l":
                    os.chmod(f"{top}/t/{name}", 0o604)
    for side in "st":
        trees.set_directory_times(f"{top}/{side}")


LINKED = [("-aHi --no-i-r", 32), ("-rlHDi --no-i-r", 30), ("-rlHDni --no-i-r", 31), ("-abHi --no-i-r", 32), ("-rHi --no-i-r --specials", 30), ("-rlHDii", 29),
          ("-rlHD --no-i-r --stats --delete", 27)]


@pytest.mark.skipif(not trees.IS_ROOT, reason="makes devices")
@pytest.mark.parametrize("make", [make_groups, make_linked_objects])
@pytest.mark.parametrize("way, options, protocol", [(ends.WAYS[(row + column) % 3], *job) for row, job in enumerate(LINKED) for column in (0, 1)])
def test_items_and_order_of_hard_links(place, make, way, options, protocol):
    ends.assert_agree(place, make, options, way, protocol, at_both=True)


@pytest.mark.skipif(not trees.IS_ROOT, reason="makes devices")
@pytest.mark.parametrize("way", ends.WAYS)
def test_the_first_name_of_an_object_is_made_and_others_are_linked_to_it(place, way):
    def make(top):
        make_linked_objects(top)
        for name in os.listdir(f"{top}/s") + os.listdir(f"{top}/s/d"):
            for path in (f"{top}/s/{name}", f"{top}/s/d/{name}"):
                if name[0] == "f" and os.path.lexists(path):
                    os.unlink(path)
        trees.set_directory_times(f"{top}/s")
    ends.assert_agree(place, make, "-aHi", way, at_both=True, in_order=way == "local")


# --- what is no directory where one belongs ---

def make_in_the_way(kind):
    def make(top):
        for name in ("s/d/f", "s/d/e/g", "s/z", "t/file", "out/file"):
            os.makedirs(os.path.dirname(f"{top}/{name}"), exist_ok=True)
            put(f"{top}/{name}")
        if kind in ("plain", "pipe"):
            put_kind("p" if kind == "pipe" else "f", f"{top}/t/d")
        else:
            trees.symlink(kind.format(top=top), f"{top}/t/d")
        trees.set_directory_times(top)
    return make


IN_THE_WAY = ["file", "{top}/t/file", "../out/file", "nowhere", "d", "plain", "pipe"]
KEPT_LINKS = ["-aKi", "-aKOi --delete --no-i-r", "-aKib --delay-updates", "-rKi --delete-after", "-naKi", "-aKi --link-dest=../s --existing", "-aKHi --inplace"]


@pytest.mark.parametrize("kind", IN_THE_WAY)
@pytest.mark.parametrize("row", [0, 1])
def test_symlinks_to_files_are_no_directories(place, kind, row):
    """Under -K either: they give way, and the contents of the directory arrive."""
    turn = IN_THE_WAY.index(kind) + 3 * row
    ends.assert_agree(place, make_in_the_way(kind), KEPT_LINKS[turn % len(KEPT_LINKS)], ends.WAYS[turn % 3], (32, 30, 31)[row], at_both=True)


@pytest.mark.parametrize("way", ends.WAYS)
@pytest.mark.parametrize("options", ["-ai --ignore-existing", "-ai --ignore-existing --no-i-r --delete", "-aKi --ignore-existing"])
def test_existing_things_in_the_way_stay_untouched(place, options, way):
    client, server = (harness.STOCK, harness.HUAI) if way == "push" else (harness.HUAI, harness.STOCK)
    for kind in IN_THE_WAY:
        top = f"{place}/work"
        os.mkdir(top)
        make_in_the_way(kind)(top)
        before = trees.describe(f"{top}/t")[b"d"]
        result = harness.run(client, *ends.words(top, options, ("s/",), way, 32, server), cwd=top)
        after = trees.describe(f"{top}/t")
        assert result.code == 23, result.text
        assert after[b"d"] == before and b"z" in after, result.text
        shutil.rmtree(top)


def make_below_existing(kind):
    def make(top):
        make_in_the_way(kind)(top)
        for name in ("s/d/sub/deep/x", "s/real/own", "t/real/own", "t/real/e/old", "out/dir/y"):
            os.makedirs(os.path.dirname(f"{top}/{name}"), exist_ok=True)
            put(f"{top}/{name}")
        put_kind("l", f"{top}/s/d/l")
        put_kind("p", f"{top}/s/d/p")
        trees.set_directory_times(top)
    return make


BELOW_EXISTING = ["-rlDi --ignore-existing", "-rHi --ignore-existing --no-i-r --stats", "-nri --ignore-existing", "-rlib --ignore-existing --delay-updates",
                  "-rlii --ignore-existing --existing --info=skip2", "-ri --ignore-existing --inplace --info=skip2", "-rlDi --ignore-existing --link-dest=../s/d"]


@pytest.mark.parametrize("kind", [*IN_THE_WAY, "real", "./real/../real", "{top}/t/real", "../out/dir"])
@pytest.mark.parametrize("row", [0, 1])
def test_what_is_to_be_below_existing_things(place, kind, row):
    """A symlink to a directory in the destination is gone through; below all else that stands where a directory belongs nothing is made."""
    turn = len(kind) + 3 * row
    ends.assert_agree(place, make_below_existing(kind), BELOW_EXISTING[turn % len(BELOW_EXISTING)], ends.WAYS[turn % 3], (32, 30, 31)[row], at_both=True,
                      noise=NO_ACL)


def make_below_existing_and_elsewhere(top):
    """An alternate destination has the same file, one with another mode, and other content."""
    make_in_the_way("plain")(top)
    for name in ("s/d/f", "b/d/f", "b/d/g", "b/d/h", "t/surplus"):
        os.makedirs(os.path.dirname(f"{top}/{name}"), exist_ok=True)
        put(f"{top}/{name}")
    put(f"{top}/s/d/g", mode=0o600)
    put(f"{top}/s/d/h", "something else\n")
    trees.set_directory_times(top)


@pytest.mark.parametrize("kind", ["compare", "copy", "link"])
@pytest.mark.parametrize("options", ["-rpi --ignore-existing", "-rpi --ignore-existing --inplace", "-nrpiH --ignore-existing", "-rpix --ignore-existing --del",
                                     "-rpi --ignore-existing --delete-before --stats"])
def test_alternate_destinations_of_what_is_to_be_below_a_file(place, options, kind):
    way = ends.WAYS[len(options + kind) % 3]
    ends.assert_agree(place, make_below_existing_and_elsewhere, f"{options} --{kind}-dest=../b", way, at_both=True, noise=NO_ACL)


@pytest.mark.parametrize("way", ends.WAYS)
@pytest.mark.parametrize("options", ["--del", "--delete-before", "--delete-delay", "--delete-after --no-i-r"])
def test_nothing_is_deleted_behind_an_existing_symlink(place, options, way):
    """Stock takes away there what belongs to the directory that it leads to."""
    make_below_existing("real")(place)
    for name in ("e/old", "e/g", "f", "sub/deep/x"):
        os.makedirs(os.path.dirname(f"{place}/s/real/{name}"), exist_ok=True)
        put(f"{place}/s/real/{name}")
    client, server = (harness.STOCK, harness.HUAI) if way == "push" else (harness.HUAI, harness.STOCK)
    result = harness.run(client, *ends.words(place, f"-ri --ignore-existing {options}", ("s/",), way, 32, server), cwd=place)
    assert result.code == 0 and b"deleting   d/" not in result.stdout, result.text
    for name in ("real/own", "real/e/old", "d/f", "d/e/g"):
        assert os.path.exists(f"{place}/t/{name}"), (name, result.text)


def make_types(top):
    """Each kind where each other one is, three times: as it is to be, with another mode, with another owner."""
    for side in "st":
        os.mkdir(f"{top}/{side}")
    for wanted in "flpck":
        for old in "flpck":
            for mode, owner in ((0o640, 0), (0o600, 0), (0o640, 77)):
                name = f"{wanted}{old}{mode:o}{owner}"
                put_kind(wanted, f"{top}/s/{name}")
                put_kind(old, f"{top}/t/{name}")
                os.chown(f"{top}/t/{name}", owner, owner, follow_symlinks=False)
                if old != "l":
                    os.chmod(f"{top}/t/{name}", mode)
                    os.utime(f"{top}/t/{name}", (TIME, TIME))
    for side, target in (("s", "x"), ("t", "y")):
        trees.symlink(target, f"{top}/{side}/elsewhere")
        os.utime(f"{top}/{side}", (TIME, TIME))


@pytest.mark.skipif(not trees.IS_ROOT, reason="makes devices")
@pytest.mark.parametrize("options", ["-r", "-rlt", "-rD", "-rpo", "-rc", "-a --no-D", "-rDp --drop-D", "-rlp --specials", "-an"])
def test_what_is_told_of_existing_kinds(place, options):
    """Also of those that are not kept at all: what would change."""
    for protocol, way in ((32, "local"), (30, "pull"), (31, "push")):
        ends.assert_agree(place, make_types, f"{options} --ignore-existing --info=skip2", way, protocol)


def make_appended(top):
    for side, text in (("s", "what is new, and longer\n"), ("t", "something else\n")):
        os.mkdir(f"{top}/{side}")
        for name in ("f", "plain"):
            put(f"{top}/{side}/{name}", text)
        os.utime(f"{top}/{side}", (TIME, TIME))
    for name in ("user.short", "user.long"):
        os.setxattr(f"{top}/s/f", name, name.encode() * len(name))


@pytest.mark.parametrize("way, options", [("pull", "-rtXi --append-verify"), ("push", "-rtpXi --append-verify --inplace"), ("push", "-rtAXi --append-verify")])
def test_items_of_a_second_attempt(place, way, options):
    """The attributes are there since the first one."""
    ends.assert_agree(place, make_appended, options, way, at_both=True)


# --- statistics ---

@pytest.mark.parametrize("protocol", [27, 28, 30])
def test_statistics_of_a_local_run_by_an_old_protocol(place, protocol):
    ends.assert_agree(place, make_two, f"-r --stats --protocol={protocol}", "local")


# --- ordinary users ---

@pytest.mark.skipif(not trees.IS_ROOT, reason="becomes another user")
@pytest.mark.parametrize("by_protocol", [[], ["--no-whole-file"]])
@pytest.mark.parametrize("is_old", [False, True])
def test_modes_of_files_that_could_not_be_given_away(place, is_old, by_protocol):
    modes = (0o644, 0o4755, 0o2711, 0o600, 0o6777)
    found = []
    for program in (harness.STOCK, harness.HUAI):
        top = f"{place}/{os.path.basename(program)}"
        os.makedirs(f"{top}/s")
        os.mkdir(f"{top}/t")
        os.chown(f"{top}/t", 65534, 65534)
        for mode in modes:
            put(f"{top}/s/{mode:o}")
            os.chown(f"{top}/s/{mode:o}", 1, 1)
            os.chmod(f"{top}/s/{mode:o}", mode)
            if is_old:
                trees.write(f"{top}/t/{mode:o}", b"old\n", 0o755, TIME * 10**9, (65534, 65534))
        words = [program, "-rtpo", "--super", *by_protocol, f"{top}/s/", f"{top}/t"]
        result = harness.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *words)
        assert result.code == 23, result.text
        found.append({mode: os.stat(f"{top}/t/{mode:o}").st_mode for mode in modes if os.path.exists(f"{top}/t/{mode:o}")})
    assert found[0] == found[1] and len(found[0]) > 2


# --- which rule ---

def make_filtered(top):
    for name in ("a", "b.o", "d/c.o", "d/x", "q.tmp", "CVS/f"):
        os.makedirs(os.path.dirname(f"{top}/s/{name}"), exist_ok=True)
        put(f"{top}/s/{name}")
    os.mkdir(f"{top}/t")
    put(f"{top}/t/k")
    for name, text in (("s/.cvsignore", "*.tmp\n"), ("s/d/.r", "- x\n")):
        put(f"{top}/{name}", text)


@pytest.mark.parametrize("way, extra", [("local", ""), ("local", "--no-whole-file"), ("pull", "-M--debug=filter"), ("push", "-M--debug=filter")])
@pytest.mark.parametrize("options", ["-C --del", "--exclude=k --include=a --exclude=* --del", ["--filter=: .r", "--filter=-C"],
                                     ["--filter=-! a"], ["--filter=P k", "--filter=-s x", "--del"]])
def test_rules_that_hide_and_protect_are_named(place, options, way, extra):
    words = options.split() if isinstance(options, str) else options
    result = ends.assert_agree(place, make_filtered, ["-r", "--debug=filter", *extra.split(), *words], way)
    assert b" because of pattern " in result[0].stdout


# --- where stock is wrong ---

@pytest.mark.core
@pytest.mark.parametrize("way", ["local", "pull"])
@pytest.mark.parametrize("mode", ["--append", "--append-verify"])
@pytest.mark.parametrize("options", ["-y", "--copy-dest=../other", "-yy --link-dest=../other"])
def test_nothing_else_is_appended_to(place, options, mode, way):
    for name in ("s/file-1", "s/file-2", "s/same"):
        os.makedirs(os.path.dirname(f"{place}/{name}"), exist_ok=True)
        put(f"{place}/{name}", f"what is in {name}\n")
    for directory in ("t", "other"):
        os.mkdir(f"{place}/{directory}")
        for name, text in (("file-0", "what is in s/file-0\n"), ("file-1", "short\n"), ("file-2", "much longer " * 9)):
            if directory == "other" or name == "file-0":
                put(f"{place}/{directory}/{name}", text)
    put(f"{place}/s/file-3", "what is in s/file-3\n")
    os.symlink("nowhere", f"{place}/t/file-3")
    os.utime(f"{place}/other/file-1", (1, 1))
    words = ends.words(place, f"-rt {mode} {options}", ["s/"], way, 32, harness.STOCK)
    result = harness.run(harness.HUAI, *words, cwd=place)
    assert result.code == 0, result.text
    for name in os.listdir(f"{place}/s"):
        with open(f"{place}/s/{name}") as expected, open(f"{place}/t/{name}") as got:
            assert got.read() == expected.read(), name


# --- words for servers ---

@pytest.mark.parametrize("way", ["pull", "push"])
def test_qsort_stays_at_the_client(place, way):
    """No server of stock knows the option that its own clients send for it (doc/protocol/09-since-3.5.0.md section 13)."""
    for client, code in ((harness.STOCK, 12), (harness.HUAI, 0)):
        result, _, _, tree = ends.run(place, make_two, "-a --qsort", way, 32, client, harness.STOCK)
        assert result.code == code and (b"a" in tree) == (code == 0), result.text
