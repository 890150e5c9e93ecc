# SPDX-License-Identifier: GPL-3.0-or-later
"""Batches that stock rsync has written are replayed, and stock rsync replays ours: in local runs, pulls and pushes."""
import os
import random
import re
import shutil
import struct
import subprocess

import pytest

import harness
import local_jobs
import trees

STOCK, OURS = harness.STOCK, harness.HUAI
NAMES = {STOCK: "stock", OURS: "ours"}

# What is written with, and, if it is something else, what is read with.
JOBS = """
-a
-avi --delete
-avz
-avz --protocol=29 | -avz
-aHc --protocol=30 --i-r
-aHi --delete --protocol=28
-aii --protocol=27 | -ai
-aiz --protocol=28 --inplace
-avvi --inplace
-av --append-verify
-a --append | -av
-av --no-i-r
-a --no-i-r | -av --delete-before
-av | -avn
-av | -rlpt --specials -v
-av --numeric-ids --chmod=g+w
-av --partial-dir=.part --delay-updates
-avXA --protocol=31 | -av
-av --exclude=*g --filter=P_old | -av --delete --exclude=*g
""".strip().split("\n")
CORE = JOBS[1]


def for_both(program, words):
    """Stock reads batches up to protocol 32."""
    return [*words] if program == STOCK or any(word.startswith("--protocol") for word in words) else ["--protocol=32", *words]


def write_batch(program, top, words, ends=("src/", "dst/")):
    local_jobs.make_trees(top)
    words = for_both(program, words)
    return harness.run(program, *words, f"--write-batch={top}/BATCH", *ends, cwd=top)


def replayed(program, batch, top, words, stdin=None):
    """The outcome of a replay onto the old tree."""
    os.mkdir(top)
    local_jobs.make_trees(top)
    options = {"input": stdin} if stdin is not None else {}
    result = harness.run(program, *words, f"--read-batch={batch}", "dst/", cwd=top, **options)
    lines = local_jobs.stable(result.stdout).split(b"\n")
    # Which of stock's processes says its line first is a race.
    lines.sort(key=lambda line: (b"delta-transmission" not in line, b"deleting" not in line))
    tree = trees.describe(f"{top}/dst")
    shutil.rmtree(top)
    for entry in tree.values():
        if not local_jobs.SOURCE_TIME - 10**9 < entry["mtime"] / 1e9 < 1_600_000_000:
            entry["mtime"] = "now"
    return {"code": result.code, "output": lines, "errors": local_jobs.stable(result.stderr), "tree": tree}


@pytest.mark.parametrize("line", [pytest.param(line, marks=[pytest.mark.core] if line == CORE else []) for line in JOBS])
def test_batches_of_local_runs_replay_across(place, line):
    written_with, _, read_with = (part.strip() for part in line.partition("|"))
    written_with, read_with = written_with.split(), (read_with or written_with).split()
    for writer in (STOCK, OURS):
        top = f"{place}/{NAMES[writer]}"
        os.mkdir(top)
        result = write_batch(writer, top, written_with)
        assert result.code == 0, result.text
        stock, ours = (replayed(reader, f"{top}/BATCH", f"{place}/work", read_with) for reader in (STOCK, OURS))
        assert ours == stock, NAMES[writer]


@pytest.mark.parametrize("options", ["-rt", "-rt --no-i-r"])
def test_a_file_that_was_sent_twice_is_replayed(place, options):
    """Its first version came out wrong: --append-verify found another beginning."""
    data = trees.noise(10_000, 1)
    for number, (writer, reader) in enumerate(((STOCK, OURS), (OURS, OURS), (OURS, STOCK))):
        top = f"{place}/{number}"
        for name in ("s", "a", "b"):
            os.makedirs(f"{top}/{name}")
            wrong = data[:10] + bytes([data[10] ^ 1]) + data[11:5000]
            local_jobs.write(f"{top}/{name}/f", data if name == "s" else wrong, 1_500_000_000 if name == "s" else 1_400_000_000)
        words = [*options.split(), "--append-verify", "--protocol=32"]
        assert harness.run(writer, *words, f"--write-batch={top}/B", f"{top}/s/", f"{top}/a/").code == 0
        result = harness.run(reader, *words[:-1], f"--read-batch={top}/B", f"{top}/b/")
        assert result.code == 0, result.text
        with open(f"{top}/b/f", "rb") as file:
            assert file.read() == data, (NAMES[writer], NAMES[reader])


@pytest.mark.parametrize("writer", [STOCK, OURS], ids=NAMES.get)
def test_protocol_of_a_batch_is_the_writers(place, writer):
    """doc/protocol/09-since-3.5.0.md section 2.4: stock, of protocol 32, refuses a batch of 33."""
    local_jobs.make_trees(place)
    for words, number in (([], 32 if writer == STOCK else 33), (["--protocol=32"], 32), (["--protocol=28"], 28)):
        shutil.rmtree(f"{place}/dst")
        assert harness.run(writer, "-r", *words, "--only-write-batch=B", "src/", "dst/", cwd=place).code == 0
        with open(f"{place}/B", "rb") as file:
            assert struct.unpack("<i", file.read(8)[4:])[0] == number
        for reader in (STOCK, OURS):
            result = harness.run(reader, "-r", "--read-batch=B", "dst/", cwd=place)
            if reader == STOCK and number == 33:
                assert result.code == 2 and b"batch file is too new (33 > 32)." in result.stderr, result.text
            else:
                assert result.code == 0, result.text


@pytest.mark.parametrize("reader", [STOCK, OURS], ids=NAMES.get)
def test_batches_come_through_fifos(place, reader):
    """A named one, whose writer comes late; a pipe by its descriptor; what is neither file nor FIFO is refused."""
    local_jobs.make_trees(place)
    shutil.rmtree(f"{place}/dst")
    assert harness.run(STOCK, "-r", "--only-write-batch=B", "src/", "dst/", cwd=place).code == 0
    os.mkfifo(f"{place}/fifo")
    writer = subprocess.Popen(["sh", "-c", "sleep 0.3; cat B > fifo"], cwd=place)
    result = harness.run(reader, "-r", "--read-batch=fifo", "dst/", cwd=place)
    writer.wait(20)
    assert result.code == 0 and os.path.exists(f"{place}/dst/d/g"), result.text
    for name in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        shutil.rmtree(f"{place}/dst")
        result = harness.run("sh", "-c", f"cat B | {reader} -r --read-batch={name} dst/", cwd=place)
        assert result.code == 0 and os.path.exists(f"{place}/dst/d/g"), result.text
    for name in ("src", "/dev/zero"):
        result = harness.run(reader, "-r", f"--read-batch={name}", "dst/", cwd=place)
        assert result.code == 11 and b'" is neither a regular file nor a FIFO\n' in result.stderr, result.text


def attributes(top):
    return {name: {key: os.getxattr(f"{top}/{name}", key) for key in sorted(os.listxattr(f"{top}/{name}"))}
            for name in ("big", "f", "d", "d/g", "d/e")}


def make_trees_with_attributes(top):
    local_jobs.make_trees(top)
    for number, name in enumerate(("big", "f", "d", "d/g", "d/e")):
        os.setxattr(f"{top}/src/{name}", "user.long", b"%d" % number * 1000)
        os.setxattr(f"{top}/src/{name}", "user.short", b"%d" % number)
    for name, key, value in (("big", "user.long", b"0" * 1000), ("f", "user.long", b"other" * 200), ("d", "user.gone", b"x")):
        os.setxattr(f"{top}/dst/{name}", key, value)


@pytest.mark.parametrize("same", [False, True], ids=["old", "same"])
@pytest.mark.parametrize("writer", [STOCK, OURS], ids=NAMES.get)
def test_extended_attributes_are_replayed(place, writer, same):
    """Long values are in the stream only because the writer asked for them."""
    make_trees_with_attributes(f"{place}/w")
    result = harness.run(writer, *for_both(writer, ["-aX"]), f"--write-batch={place}/B", "src/", "dst/", cwd=f"{place}/w")
    assert result.code == 0, result.text
    for number, reader in enumerate((STOCK, OURS)):
        top = f"{place}/t{number}"
        make_trees_with_attributes(top)
        if same:
            assert harness.run(STOCK, "-aX", "src/", "dst/", cwd=top).code == 0
        result = harness.run(reader, "-aX", f"--read-batch={place}/B", "dst/", cwd=top)
        assert result.code == 0, result.text
        assert attributes(f"{top}/dst") == attributes(f"{top}/src"), NAMES[reader]


HEADERS = ["-rlptgoD", "-rdlogDtcHz --inplace --no-i-r", "-rltH --no-i-r --append-verify", "-d", "", "--append --specials", "-lo --devices -z"]


@pytest.mark.parametrize("protocol", [27, 28, 29, 30, 31, 32])
def test_header_says_the_options(place, protocol):
    for number, words in enumerate(HEADERS):
        headers = []
        for writer in (STOCK, OURS):
            top = f"{place}/{NAMES[writer]}{number}"
            os.mkdir(top)
            result = write_batch(writer, top, [f"--protocol={protocol}", "--checksum-seed=77", *words.split()],
                                 ("src/" if words else "src/f", "new"))
            assert result.code == 0, result.text
            with open(f"{top}/BATCH", "rb") as file:
                headers.append(file.read(14 if protocol >= 30 else 12))
            assert os.stat(f"{top}/BATCH").st_mode & 0o777 == 0o600
        assert headers[1] == headers[0], words


@pytest.fixture(scope="module")
def shell(workspace):
    path = os.path.join(workspace, "rsh-for-batches")
    with open(path, "w") as file:
        file.write('#!/bin/sh\nshift\nexec "$@"\n')
    os.chmod(path, 0o755)
    return path


@pytest.mark.parametrize("only", [False, True], ids=["write", "only"])
@pytest.mark.parametrize("push", [False, True], ids=["pull", "push"])
@pytest.mark.parametrize("server", [STOCK, OURS], ids=NAMES.get)
def test_batches_of_remote_runs_replay_across(place, shell, server, push, only):
    for protocol in range(27, 33):
        top = f"{place}/{protocol}"
        os.mkdir(top)
        local_jobs.make_trees(top)
        before = trees.describe(f"{top}/dst")
        ends = (f"{top}/src/", f"h:{top}/dst/") if push else (f"h:{top}/src/", f"{top}/dst/")
        option = "--only-write-batch" if only else "--write-batch"
        result = harness.run(OURS, "-avH", "--delete", f"--protocol={protocol}", "-e", shell, f"--rsync-path={server}",
                             f"{option}={top}/BATCH", *ends, cwd=top)
        assert result.code == 0, result.text
        assert (b" (BATCH ONLY)\n" in result.stdout) == only
        after = trees.describe(f"{top}/dst")
        if only:
            assert trees.differences(before, after) == []
        expected = trees.describe(f"{top}/src")
        for reader in (STOCK, OURS):
            got = replayed(reader, f"{top}/BATCH", f"{place}/work", ["-aH", "--delete"])
            assert got["code"] == 0, got
            assert {name: entry.get("content") for name, entry in got["tree"].items()} == \
                {name: entry.get("content") for name, entry in expected.items()}, (protocol, NAMES[reader])


def make_trees_with_obstacles(top, has_obstacles):
    """Directories of the old tree are in the way of every third file, among them of leaders of hard links."""
    for name in ("s/a", "s/b", "d/a", "d/b"):
        os.makedirs(f"{top}/{name}")
    for number in range(24):
        path = f"{'ab'[number % 2]}/f{number:02}"
        local_jobs.write(f"{top}/s/{path}", b"new %d" % number, 1_500_000_000)
        if number in (2, 3, 15):
            os.link(f"{top}/s/{path}", f"{top}/s/{path}-linked")
        if number % 3 == 0 and has_obstacles:
            os.makedirs(f"{top}/d/{path}/sub")
        elif number % 3 == 1:
            local_jobs.write(f"{top}/d/{path}", b"old %d" % number, 1_400_000_000)


@pytest.mark.parametrize("way", ["local", "pull", "push"])
@pytest.mark.parametrize("words", ["-r --delete", "-rt --force", "-rtH --delete", "-rt --delete --no-i-r", "-rt --delete --protocol=29"])
def test_contents_are_in_the_order_of_the_list(place, shell, way, words):
    """Also those for which a directory has to go first; a replay onto a tree without it asks in that order."""
    words = for_both(OURS, words.split())
    for number, (writer, option) in enumerate(((OURS, "--write-batch"), (OURS, "--only-write-batch"), (STOCK, "--write-batch"))):
        top = f"{place}/{number}"
        make_trees_with_obstacles(top, True)
        ends = {"local": ["s/", "d/"], "pull": [f"h:{top}/s/", "d/"], "push": ["s/", f"h:{top}/d/"]}[way]
        over = [] if way == "local" else ["-e", shell, f"--rsync-path={OURS}"]
        result = harness.run(writer, *words, *over, f"{option}={top}/B", *ends, cwd=top)
        assert result.code == 0, result.text
        for reader in (STOCK, OURS):
            for has_obstacles in (False, True):
                make_trees_with_obstacles(f"{place}/again", has_obstacles)
                result = harness.run(reader, *words, f"--read-batch={top}/B", "d/", cwd=f"{place}/again")
                assert result.code == 0, (NAMES[writer], NAMES[reader], has_obstacles, result.text)
                contents = [{name: entry.get("content") for name, entry in trees.describe(f"{place}/again/{side}").items()}
                            for side in "sd"]
                assert contents[0] == contents[1]
                shutil.rmtree(f"{place}/again")


@pytest.mark.parametrize("way", ["pull", "push"])
def test_a_link_that_leads_instead_takes_the_place_of_a_directory(place, shell, way):
    """The first name of the group cannot be made; the second one stands in for it, where a directory is in the way."""
    for name in ("s/one", "s/two", "d/one/a", "d/two/b"):
        os.makedirs(f"{place}/{name}")
    for name, text in (("s/one/a", "text"), ("d/one/a/kept", "")):
        with open(f"{place}/{name}", "w") as file:
            file.write(text)
    os.link(f"{place}/s/one/a", f"{place}/s/two/b")
    ends = {"pull": [f"h:{place}/s/", "d/"], "push": ["s/", f"h:{place}/d/"]}[way]
    result = harness.run(OURS, "-rlH", "--write-batch=B", "-e", shell, f"--rsync-path={OURS}", *ends, cwd=place, timeout=60)
    assert result.code == 23, result.text
    assert os.path.exists(f"{place}/d/one/a/kept")
    with open(f"{place}/d/two/b") as file:
        assert file.read() == "text"


def test_only_writing_a_batch_changes_nothing(place):
    outcomes = []
    for program in (STOCK, OURS):
        words = ["-avi", "--delete", "--only-write-batch=B", "src/", "dst/"]
        outcomes.append(local_jobs.outcome(program, f"{place}/work", words, deletes=True))
    assert outcomes[1] == outcomes[0]
    assert b" (BATCH ONLY)\n" in outcomes[1]["output"] and b"surplus" in outcomes[1]["tree"]


SCRIPTS = [
    ["-avi", "--delete", "--exclude=*.o", "--filter=P x y", "--write-batch=B", "src/", "dst/"],
    ["src/", "-v", "--write-batch", "B", "--include", "it's", "-t", "dst/"],
    ["--write-batch=B", "-v", "--", "src/f", "dst/"],
    ["--write-batch=B", "-a", "--rsync-path=a b", "-e", "ssh -x", "src/", "d'st"],
    ["--files-from", "names", "-av", "--write-batch=B", "src", "dst"],
    ["-F", "--cvs-exclude", "--include=*.c", "--filter=:C", "-a", "--write-batch=B", "src/", "dst/"],
    ["-a", "--exclude-from=names", "--bwlimit", "100", "--timeout=5", "--write-batch=B", "src/", "dst/"],
]


@pytest.mark.parametrize("words", SCRIPTS, ids=lambda words: words[0])
def test_script_is_as_stocks(place, words):
    scripts = []
    for program in (STOCK, OURS):
        top = f"{place}/{NAMES[program]}"
        os.mkdir(top)
        local_jobs.make_trees(top)
        result = harness.run(program, *words, cwd=top)
        assert result.code == 0, result.text
        with open(f"{top}/B.sh", "rb") as file:
            scripts.append(file.read().replace(os.fsencode(program), b"rsync"))
        assert os.stat(f"{top}/B.sh").st_mode & 0o777 == 0o700
    assert scripts[1] == scripts[0]


@pytest.mark.core
def test_script_replays_and_runs_nothing_of_its_names(place):
    """Rules and destinations with quotes, ends of here-documents and commands in them."""
    local_jobs.make_trees(place)
    hostile = "x'; touch pwned; '#$(touch pwned)`touch pwned`"
    result = harness.run(OURS, "-a", f"--exclude={hostile}", "--exclude=#E#", "-favoid", "--exclude=$(touch pwned)", "--write-batch=B",
                         "src/", hostile, cwd=place)
    assert result.code == 1, result.text  # "-favoid": an unknown rule
    result = harness.run(OURS, "-a", f"--exclude={hostile}", "--exclude=#E#", "-af- zz", "--write-batch=B", "src/", hostile,
                         cwd=place)
    assert result.code == 0, result.text
    shutil.rmtree(f"{place}/{hostile}")
    result = harness.run("sh", "B.sh", cwd=place)
    assert result.code == 0, result.text
    assert trees.differences(trees.describe(f"{place}/src"), trees.describe(f"{place}/{hostile}")) == [] or \
        os.path.exists(f"{place}/{hostile}/big")
    result = harness.run("sh", "B.sh", "other", cwd=place)
    assert result.code == 0 and os.path.exists(f"{place}/other/d/g"), result.text
    assert not [name for _, _, names in os.walk(place) for name in names if name == "pwned"]


def test_rule_with_a_newline_is_refused(place):
    result = write_batch(OURS, place, ["-a", "--exclude=a\n#E#\ntouch pwned"])
    assert result.code == 1 and b"newline" in result.stderr, result.text


ERRORS = [
    (["-a", "--write-batch=B", "--read-batch=C", "src/", "dst/"], 1),
    (["-a", "--write-batch=/nonexistent/B", "src/", "dst/"], 3),
    (["-a", "--write-batch=" + "x" * 257, "src/", "dst/"], 1),
    (["-a", "--read-batch=nothing", "dst/"], 11),
    (["-a", "--read-batch=" + "x" * 257, "dst/"], 1),
    (["-a", "--read-batch=B", "--files-from=names", "dst/"], 1),
    (["-a", "--read-batch=B", "--remove-source-files", "dst/"], 1),
    (["-a", "--read-batch=B", "--remove-sent-files", "dst/"], 1),
    (["-a", "--read-batch=B", "h:dst/"], 1),
    (["-a", "--read-batch=B", "--delete-before", "dst/"], 1),
    (["-a", "--read-batch=B", "--iconv=utf8,latin1", "dst/"], 1),
    (["-a", "--read-batch=names", "dst/"], 2),
    (["-a", "--read-batch=future", "dst/"], 2),
    (["-an", "--write-batch=N", "src/", "dst/"], 0),
]


@pytest.mark.parametrize("words, code", ERRORS, ids=lambda value: value[1] if isinstance(value, list) else str(value))
def test_errors_are_stocks(place, words, code):
    outcomes = []
    for program in (STOCK, OURS):
        top = f"{place}/work"
        os.mkdir(top)
        assert write_batch(STOCK, top, ["-a"], ("src/", "other/")).code == 0
        os.rename(f"{top}/BATCH", f"{top}/B")
        with open(f"{top}/future", "wb") as file:
            file.write(struct.pack("<ii", 0x9f, 40))
        result = harness.run(program, *words, cwd=top)
        errors = local_jobs.stable(result.stderr).replace(b" > 33)", b" > 32)")
        outcomes.append((result.code, errors, sorted(os.listdir(top))))
        shutil.rmtree(top)
    assert outcomes[1] == outcomes[0]
    assert outcomes[1][0] == code


@pytest.mark.parametrize("words", [["--write-batch=B", "--only-send-attrs", "src/", "dst/"], ["--read-batch=B", "--only-send-attrs", "dst/"],
                                   ["--read-batch=B", "--attr-snapshot=S", "dst/"]], ids=lambda words: " ".join(words[:2]))
def test_attrs_and_batches_do_not_mix(place, words):
    local_jobs.make_trees(place)
    before = sorted(os.listdir(place))
    result = harness.run(OURS, "-a", *words, cwd=place)
    assert result.code == 1 and b"batch" in result.stderr, result.text
    assert sorted(os.listdir(place)) == before


def test_a_directory_is_no_batch(place):
    local_jobs.make_trees(place)
    result = harness.run(OURS, "-a", "--read-batch=src", "dst/", cwd=place, timeout=10)
    assert result.code == 11 and b"is neither a regular file nor a FIFO" in result.stderr, result.text


@pytest.mark.parametrize("writer", [STOCK, OURS], ids=NAMES.get)
def test_what_is_not_wanted_is_skipped_and_what_is_missing_fails(place, writer):
    os.mkdir(f"{place}/w")
    assert write_batch(writer, f"{place}/w", ["-aH"]).code == 0
    with open(f"{place}/w/BATCH", "rb") as file:
        stdin = file.read()
    os.mkdir(f"{place}/t")
    local_jobs.make_trees(f"{place}/t")
    assert harness.run(STOCK, "-aH", "src/", "dst/", cwd=f"{place}/t").code == 0
    os.remove(f"{place}/t/dst/d/g")
    os.utime(f"{place}/t/dst/f", (1, 1))
    result = harness.run(OURS, "-aH", "--read-batch=-", "dst/", cwd=f"{place}/t", input=stdin)
    assert result.code == 23, result.text
    assert b'(No batched update for "f")\n' in result.stderr
    assert b'(Skipping batched update for "big")\n' in result.stdout
    with open(f"{place}/t/src/d/g", "rb") as source, open(f"{place}/t/dst/d/g", "rb") as replayed_file:
        assert source.read() == replayed_file.read()


# Who lacks what in the trees that a batch is replayed onto, and with what: the main thread has to decide on files whose
# directory holds others that the batch has only later.
AHEAD = """
-a --delete | directory
-avi --delete | directory
-a --force --no-i-r | directory
-aH | links
-aHvi | links
-aH --no-i-r | links
-aH --delete | directory links
""".strip().split("\n")


@pytest.mark.core
@pytest.mark.parametrize("line", AHEAD)
def test_files_that_are_decided_late_do_not_stop_the_batch(place, line):
    words, _, states = (part.strip() for part in line.partition("|"))
    source = f"{place}/src"
    os.makedirs(f"{source}/d")
    for name in ("a", "b", "d/a", "d/b", "e"):
        local_jobs.write(f"{source}/{name}", name.encode() * 100, 10**9)
    os.link(f"{source}/b", f"{source}/c")
    os.link(f"{source}/d/b", f"{source}/d/c")
    for writer in (STOCK, OURS):
        batch = f"{place}/B-{NAMES[writer]}"
        result = harness.run(writer, *for_both(writer, words.split()), f"--write-batch={batch}", f"{source}/",
                             f"{place}/first-{NAMES[writer]}/")
        assert result.code == 0, result.text
        for reader in (STOCK, OURS):
            top = f"{place}/{NAMES[writer]}-{NAMES[reader]}"
            os.makedirs(f"{top}/d")
            for name in ("a/x/y", "d/a/x") if "directory" in states else ():
                os.makedirs(f"{top}/{name}")
            for name in ("b", "d/c") if "links" in states else ():
                shutil.copy2(f"{source}/{name}", f"{top}/{name}")
            result = harness.run(reader, *words.split(), f"--read-batch={batch}", f"{top}/", timeout=20)
            assert result.code == 0, (NAMES[writer], NAMES[reader], result.text)
            for name in ("a", "b", "c", "d/a", "d/b", "d/c", "e"):
                with open(f"{top}/{name}", "rb") as copy, open(f"{source}/{name}", "rb") as original:
                    assert copy.read() == original.read(), name
            if "-aH" in words:
                assert os.path.samefile(f"{top}/b", f"{top}/c") and os.path.samefile(f"{top}/d/b", f"{top}/d/c")


LINK_OPTIONS = """
-aH
-aH --no-i-r
-aHi --delete
-aH --delete-after
-aH --delete-delay
-aHv --delay-updates
-aH --inplace
-aHc
-aHX
-aH --protocol=28
-aH --protocol=28 --delete
-aH --protocol=29 --delete-after
-aH --protocol=30
-aH --protocol=31 --delete-during
""".strip().split("\n")
LINK_STATES = ["empty", "equal", "first", "last", "old first", "old last", "split"]


class Groups:
    """Groups of hard links whose names are in several directories, beside files with one name."""

    def __init__(self, rng):
        directories = ["", *rng.sample(["a", "b", "b/x", "c", "c/y", "d"], rng.randint(2, 6))]
        names = [os.path.join(directory, name) for directory in directories for name in "123"]
        rng.shuffle(names)
        self.groups = []
        while names:
            count = min(len(names), rng.choice([1, 1, 2, 3, 5]))
            self.groups.append(sorted(names[:count]))
            del names[:count]
        self.sizes = [rng.choice([1, 10, 2000, 50_000]) for _ in self.groups]

    def content(self, number):
        return trees.noise(self.sizes[number], number)

    def make(self, top, state, rng):
        """In this state, or with "random" each group in any."""
        os.makedirs(top, exist_ok=True)
        for number, group in enumerate(self.groups):
            this = rng.choice(LINK_STATES) if state == "random" else state
            content, time = self.content(number), 1_500_000_000
            if this.startswith("old"):
                content, time = b"old" + content[:-1000], 1_400_000_000
            names = {"empty": [], "first": group[:1], "last": group[-1:]}.get(this.split()[-1], group)
            for name in names:
                os.makedirs(os.path.dirname(f"{top}/{name}"), exist_ok=True)
                if this == "split" or name == names[0]:
                    local_jobs.write(f"{top}/{name}", content, time)
                else:
                    os.link(f"{top}/{names[0]}", f"{top}/{name}")

    def has_all(self, top):
        for number, group in enumerate(self.groups):
            for name in group:
                with open(f"{top}/{name}", "rb") as file:
                    if file.read() != self.content(number) or not os.path.samefile(f"{top}/{name}", f"{top}/{group[0]}"):
                        return False
        return True


def replay_links(place, rng, writer, words, written_onto, read_onto):
    """The codes of stock and ours. A replay that says it has succeeded has, and ours succeeds if stock's does."""
    groups = Groups(rng)
    groups.make(f"{place}/src", "equal", rng)
    groups.make(f"{place}/dst", written_onto, rng)
    old = rng.getstate()
    words = words.split()
    result = harness.run(writer, *for_both(writer, words), f"--write-batch={place}/B", "src/", "dst/", cwd=place, timeout=20)
    assert result.code == 0 and groups.has_all(f"{place}/dst"), result.text
    codes = []
    for reader in (STOCK, OURS):
        rng.setstate(old)
        groups.make(f"{place}/again", read_onto, rng)
        # Stock's generator waits for ever for a group whose content the batch has at another name.
        limit = ["timeout", "-s", "KILL", "3"] if reader == STOCK else []
        result = harness.run(*limit, reader, *words, f"--read-batch={place}/B", "again/", cwd=place, timeout=20)
        codes.append(result.code)
        assert result.code != 0 or groups.has_all(f"{place}/again"), (NAMES[reader], result.text)
        shutil.rmtree(f"{place}/again")
    assert codes[1] in (0, 23) or b"got a block match with no basis file" in result.stderr, (codes, result.text)
    assert codes[0] != 0 or codes[1] == 0, (codes, result.text)
    return codes


@pytest.mark.parametrize("written_onto", ["empty", "old first", "old last"])
@pytest.mark.parametrize("writer", [STOCK, OURS], ids=NAMES.get)
@pytest.mark.parametrize("words", LINK_OPTIONS)
def test_hard_links_across_directories_are_replayed(place, words, writer, written_onto):
    """Whichever of its names has the content of a group in the batch."""
    for number, read_onto in enumerate((written_onto, "equal", "first")):
        os.mkdir(f"{place}/{number}")
        codes = replay_links(f"{place}/{number}", random.Random(number), writer, words, written_onto, read_onto)
        assert codes[1] == 0 or read_onto != written_onto, codes
        if read_onto == written_onto or read_onto == "equal":
            assert codes == [0, 0]


@pytest.mark.parametrize("seed", range(12))
def test_replays_end_whatever_stands_there(place, seed):
    rng = random.Random(seed)
    replay_links(place, rng, rng.choice([STOCK, OURS]), rng.choice(LINK_OPTIONS), rng.choice(["empty", "random"]), "random")


def test_changed_basis_is_not_spoiled(place):
    os.mkdir(f"{place}/w")
    assert write_batch(OURS, f"{place}/w", ["-a"]).code == 0
    os.mkdir(f"{place}/t")
    local_jobs.make_trees(f"{place}/t")
    with open(f"{place}/t/dst/big", "r+b") as file:
        file.seek(100_000)
        file.write(b"changed since")
    with open(f"{place}/t/dst/big", "rb") as file:
        before = file.read()
    result = harness.run(OURS, "-av", f"--read-batch={place}/w/BATCH", "dst/", cwd=f"{place}/t")
    assert result.code == 23, result.text
    assert b"WARNING: big failed verification -- update discarded (may try again)." in result.stdout + result.stderr
    assert b'(No batched update for "big")' in result.stderr
    with open(f"{place}/t/dst/big", "rb") as file:
        assert file.read() == before


def test_many_files_and_directories(place):
    """More directories than are worked on at a time, some without anything to do, some with what the batch lacks."""
    source, old = f"{place}/src", f"{place}/dst"
    for number in range(400):
        os.makedirs(f"{source}/{number % 7}/{number:03}")
        local_jobs.write(f"{source}/{number % 7}/{number:03}/file", b"%d" % number, 10**9)
    for program in (STOCK, OURS):
        shutil.rmtree(old, ignore_errors=True)
        assert harness.run(STOCK, "-a", f"{source}/", f"{old}/").code == 0
        for number in range(0, 400, 3):
            os.remove(f"{old}/{number % 7}/{number:03}/file")
        result = harness.run(program, "-a", f"--only-write-batch={place}/B", f"{source}/", f"{old}/")
        assert result.code == 0, result.text
        for number in range(1, 400, 102):
            os.remove(f"{old}/{number % 7}/{number:03}/file")
        result = harness.run(OURS, "-a", f"--read-batch={place}/B", f"{old}/")
        assert result.code == 23, result.text
        missing = re.findall(rb'\(No batched update for "\d/(\d+)/file"\)', result.stderr)
        assert sorted(int(number) for number in missing) == [1, 103, 205, 307]
        for number in range(0, 400, 3):
            assert os.path.exists(f"{old}/{number % 7}/{number:03}/file")


@pytest.mark.core
def test_damaged_batches_end_in_order(place):
    os.mkdir(f"{place}/w")
    assert write_batch(STOCK, f"{place}/w", ["-a"]).code == 0
    with open(f"{place}/w/BATCH", "rb") as file:
        batch = file.read()
    for bit in range(16):
        damaged = bytearray(batch)
        damaged[bit // 8] ^= 1 << bit % 8
        shutil.rmtree(f"{place}/t", ignore_errors=True)
        os.mkdir(f"{place}/t")
        local_jobs.make_trees(f"{place}/t")
        result = harness.run(OURS, "-a", "--read-batch=-", "dst/", cwd=f"{place}/t", input=bytes(damaged), timeout=20)
        assert result.code in (0, 1, 2, 4, 12, 22, 23), (bit, result.text)
    for length in range(0, len(batch) - 1, 499):
        shutil.rmtree(f"{place}/t", ignore_errors=True)
        os.mkdir(f"{place}/t")
        local_jobs.make_trees(f"{place}/t")
        result = harness.run(OURS, "-a", "--read-batch=-", "dst/", cwd=f"{place}/t", input=batch[:length], timeout=20)
        assert result.code == 12, (length, result.text)
