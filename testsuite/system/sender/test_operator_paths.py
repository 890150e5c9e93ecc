# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths that the operator names, beside stock: descriptors as files, operands and list entries through symlinks, and directories that
may be searched but not read (doc/protocol/09-since-3.5.0.md sections 5 to 7 and 9)."""
import os
import re
import shutil

import pytest

import harness

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes links of another user")
NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups"
BOTH = (harness.STOCK, harness.HUAI)


def run(place, program, script, make):
    """The script in a fresh place, with $P the program: exit code, lines of both streams, what has come to dst."""
    top = f"{place}/work"
    os.mkdir(top)
    make(top)
    os.makedirs(f"{top}/dst", exist_ok=True)
    result = harness.run("bash", "-c", script, cwd=top, environment={"P": program, "B": top})
    text = harness.normalise(result.stdout + result.stderr, (program, "PROGRAM"))
    text = re.sub(rb"(?m)^\d{4}/\S+ \S+ \[\d+\] ", b"", re.sub(rb"(?m)^building file list.*\n", b"", text))
    found = sorted(os.path.relpath(os.path.join(directory, name), f"{top}/dst") for directory, names, files in os.walk(f"{top}/dst")
                   for name in names + files)
    shutil.rmtree(top)
    return result.code, sorted(line for line in text.split(b"\n") if line and not line.startswith((b"sent ", b"total size"))), found


def assert_same(place, script, make):
    stock, ours = (run(place, program, script, make) for program in BOTH)
    assert ours == stock, script
    return ours


# --- descriptors ---

def make_files(top):
    os.mkdir(f"{top}/src")
    os.mkdir(f"{top}/dst")
    for name in ("a", "b", "c.o"):
        with open(f"{top}/src/{name}", "w", encoding="utf-8") as file:
            file.write(name)
    os.makedirs(f"{top}/dev/fd")
    with open(f"{top}/dev/fd/9", "w", encoding="utf-8") as file:
        file.write("a\n")
    if os.geteuid() == 0:
        for directory, _, names in os.walk(top):
            for name in (".", *names):
                os.chown(os.path.join(directory, name), 65534, 65534)


DESCRIPTORS = (
    "echo a | $P -r --files-from=/dev/stdin src/ dst/", "$P -r --files-from=<(echo a) src/ dst/",
    "echo a | $P -r --files-from=/proc/self/fd/0 src/ dst/", "$P -r --files-from=/dev/stdin src/ dst/ < dev/fd/9",
    "$P -r --files-from=dev/fd/9 src/ dst/", "$P -r --files-from=/dev/stdin src/ dst/ < /dev/null",
    "echo '*.o' | $P -r --exclude-from=/dev/stdin src/ dst/", "echo '*.o' | $P -r --include-from=/dev/fd/0 --exclude='*' src/ dst/",
    "echo '- *.o' | $P -r --filter='merge /dev/stdin' src/ dst/", "(sleep 0.3; echo '- *.o') | $P -r --filter='merge /dev/stdin' src/ dst/",
    "(sleep 0.3; echo a) | $P -r --files-from=/dev/stdin src/ dst/", "(sleep 0.3; echo '*.o') | $P -r --exclude-from=/dev/fd/0 src/ dst/", "$P -r --filter='merge '<(echo '- *.o') src/ dst/",
    "$P -r --log-file=/dev/stderr --log-file-format=%n src/ dst/ 2>&1 | cat",
    "$P -r --log-file=/dev/fd/5 --log-file-format=%n src/ dst/ 5>&1 | cat",
    "echo a | $P -r --files-from=/dev/fd/0/x src/ dst/", "echo a | $P -r --confine-root=$B/src --files-from=/dev/stdin src/ dst/",
    "echo a | $P -r --confine-root=$B --exclude-from=/dev/stdin src/ dst/",
    "$P -r --confine-root=$B --log-file=/dev/stderr src/ dst/ 2>&1 | cat", "$P -r --write-batch=/dev/fd/5 src/ dst/ 5>o",
    "$P -r --files-from=missing src/ dst/", "$P -r --files-from=dev/fd/9/x src/ dst/",
)


@pytest.mark.parametrize("script", DESCRIPTORS)
def test_descriptors_are_paths(place, script):
    assert_same(place, script, make_files)


@needs_root
@pytest.mark.parametrize("option", ["--files-from=/dev/stdin", "--exclude-from=/dev/fd/0", "--filter='merge /proc/self/fd/0'"])
def test_descriptors_in_a_user_namespace(place, option):
    """There /dev/fd and /proc/self belong to a user that is not known."""
    if harness.run("bash", "-c", f"{NOBODY} unshare -Ur true").code:
        pytest.skip("no user namespaces here")
    os.chmod(place, 0o755)
    code, lines, _ = assert_same(place, f"{NOBODY} unshare -Ur bash -c 'echo - a | $P -r {option.replace(chr(39), chr(34))} src/ dst/'",
                                 make_files)
    assert not any(b"symbolic links" in line for line in lines), lines
    assert code == (23 if "files" in option else 0), lines  # "- a" is no file


# --- operands and entries through symlinks ---

def make_links(top):
    for name in ("real/docs", "out/dd", "list"):
        os.makedirs(f"{top}/{name}")
    for name in ("real/docs/marker", "out/secret", "out/dd/x", "real/sfile"):
        with open(f"{top}/{name}", "w", encoding="utf-8") as file:
            file.write(name)
    with open(f"{top}/list/l", "w", encoding="utf-8") as file:
        file.write("docs/marker\n")
    for name, target in (("home", f"{top}/real"), ("rhome", "real"), ("bad", f"{top}/real"), ("bl", f"{top}/list"),
                         ("real/toout", "../out"), ("real/todocs", "docs"), ("real/anc", ".."), ("real/docs/flink", "../docs/marker")):
        os.symlink(target, f"{top}/{name}")
    for name in ("bad", "bl"):
        os.lchown(f"{top}/{name}", 65534, 65534)


OPERANDS = ("-r home/docs/", "-r home/docs/marker", "-rR home/docs/", "-rR $B/./home/docs/", "-R home/docs/marker", "-rR home/",
            "-rR bad/docs/", "-aR bad/docs/marker", "-rR rhome/docs/", "-R home/docs/flink", "-rlR home/docs/", "-rR home/toout/",
            "-rRc bad/docs/", "-rRX bad/docs", "-rR --no-implied-dirs bad/docs/", "-rR --no-i-r --delete bad/docs/")


@needs_root
def test_operands_lead_through_every_link(place):
    for operand in OPERANDS:
        code, _, found = assert_same(place, f"$P {operand} dst/", make_links)
        assert code == 0 and (found or "flink" in operand), operand


@needs_root
@pytest.mark.parametrize("mode", ["-aRA", "-aRX", "-aRAX"])
def test_attributes_of_directories_that_operands_lead_through(place, mode):
    """ACLs are those of the directory, extended attributes those of the link, of which there are none."""
    script = f"setfacl -m u:4242:r real real/docs; setfattr -n user.x -v 1 real real/docs; $P {mode} rhome/docs/marker dst/; " \
             "$P -dRAX rhome/ dst/; getfacl -R dst; getfattr -dR dst"
    _, lines, _ = assert_same(place, script, make_links)
    assert b"user:4242:r--" in lines and lines.count(b'user.x="1"') == 1, lines


ENTRIES = ("home/docs/marker", "home/docs/", "home/docs", "home/", "home", "bad", "rhome/docs/marker", "home/toout/secret",
           "bad/docs/marker", "bad/docs/", "bad/", "bad/docs", "./bad/docs/marker", "rhome/../bad/docs/marker", "bad/missing")
MODES = ("", "-r", "-L", "-k", "--insecure-links", "--no-R", "--remove-source-files", "--remove-source-files --insecure-links")
HINT = b"refusing to follow a symlink owned by an untrusted user; use --insecure-links locally or \"insecure links = yes\" in a " \
       b"daemon module ONLY if every path component is trusted"


@needs_root
@pytest.mark.parametrize("mode", MODES)
def test_entries_lead_through_trusted_links_only(place, mode):
    """Stock enters them without the test when --no-relative is given."""
    for entry in ENTRIES:
        script = f"echo {entry} | $P {mode} --files-from=- $B/ dst/"
        is_foreign = "bad" in entry and entry != "bad"
        if mode == "--no-R" and is_foreign:
            code, lines, found = run(place, harness.HUAI, script, make_links)
        else:
            code, lines, found = assert_same(place, script, make_links)
        refused = is_foreign and mode in ("", "-r", "--no-R", "--remove-source-files")
        assert (HINT in lines) == refused and (found == [] if refused else code == 0 or "missing" in entry), (entry, lines)


@needs_root
@pytest.mark.parametrize("mode", ["", "-r", "-L", "-k", "--copy-unsafe-links", "-r --remove-source-files"])
def test_entries_do_not_leave_the_confine_root(place, mode):
    """Nor with options that follow links, where stock lets them."""
    for entry in ("toout/secret", "toout/", "toout/dd/", "todocs/marker", "anc/", "docs/marker"):
        script = f"echo {entry} | $P {mode} --files-from=- --confine-root=$B/real $B/real/ dst/"
        refused = "docs" not in entry
        code, _, found = run(place, harness.HUAI, script, make_links) if refused and mode.startswith(("-L", "-k", "--copy")) \
            else assert_same(place, script, make_links)
        assert (code, found == []) == ((23, True) if refused else (0, False)), entry


def make_scope(top):
    for name in ("top", "sub/a", "dst/other", "dst/sub/b", "dst/sub/x/y"):
        os.makedirs(os.path.dirname(f"{top}/src/{name}" if "dst" not in name else f"{top}/{name}"), exist_ok=True)
        with open(f"{top}/src/{name}" if "dst" not in name else f"{top}/{name}", "w", encoding="utf-8") as file:
            file.write(name)


@pytest.mark.parametrize("entry, options, is_deleted", [
    ("top", "", False), ("sub/a", "", False), ("sub", "", False), ("sub/", "", True),
    ("top", "-r", False), ("sub/a", "-r", False), ("sub", "-r", True), ("sub/", "-r", True),
])
def test_only_listed_directories_lose_what_is_surplus(place, entry, options, is_deleted):
    """doc/protocol/09-since-3.5.0.md section 6.5."""
    _, _, found = assert_same(place, f"echo {entry} | $P {options} --delete --files-from=- src/ dst/", make_scope)
    assert "other" in found and ("sub/b" in found, "sub/x/y" in found) == ((False, False) if is_deleted else (True, True)), found


@needs_root
@pytest.mark.parametrize("script, stock_removes, ours_removes", [
    ("$P -r --remove-source-files home/docs/ dst/", True, True), ("$P -R --remove-source-files home/docs/marker dst/", False, True),
    ("$P -rR --remove-source-files home/docs/ dst/", False, True), ("$P -aR --remove-source-files $B/./home/docs/ dst/", False, True),
    ("echo home/docs/marker | $P --files-from=- --remove-source-files . dst/", True, True),
    ("$P -rR --remove-source-files bad/docs/ dst/", False, False), ("$P -rRL --remove-source-files home/docs/ dst/", False, False),
])
def test_sources_behind_the_operators_links_are_removed(place, script, stock_removes, ours_removes):
    """Ours does with -R what stock only does for list entries (doc/protocol/09-since-3.5.0.md section 6.1); what -L alone leads
    to stays."""
    for program, removes in zip(BOTH, (stock_removes, ours_removes)):
        code, text, found = run(place, program, f"{script}; r=$?; test -e real/docs/marker && echo LEFT; exit $r", make_links)
        assert any(name.endswith("marker") for name in found), (program, script)
        assert (b"LEFT" in text, code) == (not removes, 0 if removes else 23), (program, script, text)


@needs_root
@pytest.mark.parametrize("script", [
    "echo docs/marker | $P --files-from=- --confine-root=$B/dst $B/real/ dst/",
    "$P --files-from=list/l --confine-root=$B/real $B/real/ dst/", "$P --files-from=bl/l $B/real/ dst/",
    "$P -r --exclude-from=bl/l $B/real/ dst/", "$P -r --log-file=bl/log $B/real/docs dst/",
    "mkdir dd; ln -s $B/dd bd; chown -h 65534 bd; $P -r $B/real/docs bd/",
])
def test_files_of_options_and_the_hint(place, script):
    assert_same(place, script, make_links)


# --- directories that may be searched but not read ---

def make_dark(top):
    os.chmod(top, 0o755)
    for name in ("x/d", "x/s/sub", "w/in", "src/in"):
        os.makedirs(f"{top}/{name}")
    for name in ("x/f", "x/s/f", "x/s/sub/g", "src/in/f", "x/list"):
        with open(f"{top}/{name}", "w", encoding="utf-8") as file:
            file.write("in/f\n")
    os.mkdir(f"{top}/dst")
    for name in ("x/d", "w", "w/in", "dst"):
        os.chown(f"{top}/{name}", 65534, 65534)
    os.chmod(f"{top}/w/in", 0o333)
    os.chmod(f"{top}/x", 0o711)


@needs_root
@pytest.mark.parametrize("script", [
    "$P -r src/ x/d/", "$P -R x/f dst/", "$P -rR x/s dst/", "$P -aR x/s dst/", "$P -a x dst/",
    "$P -tR --no-implied-dirs in/f ../w/", "$P -r --files-from=x/list src/ dst/", "$P -r --log-file=x/d/log src/ dst/",
    "$P -r src/ x/d/new/deep/ --mkpath", "chmod 111 x; $P -R x/f dst/", "chmod 111 x; $P -aR x/s dst/",
])
def test_directories_that_may_only_be_searched(place, script):
    setup, _, command = script.rpartition("; ")
    command = command.replace("$P -tR", "cd src; $P -tR")
    assert_same(place, f"{setup or ':'}; {NOBODY} bash -c '{command}; r=$?; exit $r'", make_dark)
