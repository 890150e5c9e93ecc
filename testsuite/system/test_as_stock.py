# SPDX-License-Identifier: GPL-3.0-or-later
"""Small cases of the receiving side in which only a comparison with stock shows what is right."""
import os
import subprocess

import pytest

import ends
import harness
import trees

TIME = 1_500_000_000


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
