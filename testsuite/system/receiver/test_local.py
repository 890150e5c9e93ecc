# SPDX-License-Identifier: GPL-3.0-or-later
"""The local engine beside stock rsync: the same job done twice, from the same sources to equal destinations.

Result tree, exit code, stdout and stderr have to agree; lines are compared in order where stock's own order does not depend
on how far one of its processes is ahead of the other. To look at one case:
    pytest testsuite/system/receiver/test_local.py -k delete-after
"""
import dataclasses
import difflib
import os
import re
import shutil
import subprocess
import time

import pytest

import harness
import trees


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    options: str
    arguments: str = "src/ dest/"
    before: str = "nothing"      # the destination: nothing, old, same
    ordered: bool = False        # stock's order of lines is certain
    core: bool = False
    stdin: bytes = b""
    now: bool = False            # times are not preserved
    root: bool = False           # only as root
    change: object = None        # applied to the destination before the run


def fix_times(dest):
    for name in "extra-dir/inner", "extra-dir", ".":
        os.utime(os.path.join(dest, name), ns=(trees.ATIME_NS, 1_600_000_000_000_000_000))


def many_extras(dest):
    for number in range(6):
        trees.write(os.path.join(dest, f"extra-{number}"), b"x")
    os.makedirs(os.path.join(dest, "extra-dir/inner"))
    trees.write(os.path.join(dest, "extra-dir/inner/file"), b"x")
    fix_times(dest)


def without_file_for_directory(dest):
    """Stock goes on below a file that it left standing where a directory should be, and fails."""
    os.unlink(os.path.join(dest, "pool/main/a"))


def protected(dest):
    many_extras(dest)
    trees.write(os.path.join(dest, "extra-dir/keep.me"), b"x")
    fix_times(dest)


CASES = [
    # First copies.
    Case("archive", "-aH", core=True, ordered=True),
    Case("archive-no-slash", "-av", "src dest", ordered=True, now=True),
    Case("archive-verbose", "-av", core=True, ordered=True),
    Case("archive-verbose-links", "-avH", ordered=True),
    Case("archive-two-verbose", "-avv", ordered=True),
    Case("archive-itemize", "-ai", ordered=True),
    Case("archive-itemize-links", "-aiH", ordered=True),
    Case("archive-dry-run", "-ain", ordered=True),
    Case("archive-quiet", "-avq"),
    Case("archive-stats", "-aH --stats"),
    Case("archive-stats-human", "-ahh --stats -v"),
    Case("archive-stats-plain", "-a --no-h --stats -v"),
    Case("archive-stats-dry-run", "-an --stats"),
    Case("archive-progress", "-a --progress", ordered=True),
    Case("archive-P", "-aP --no-i-r", ordered=True),
    Case("archive-names-only", "-a --info=name", ordered=True),
    Case("archive-no-inc-recurse", "-avH --no-i-r", ordered=True),
    Case("recursive-only", "-rv", now=True),
    Case("recursive-links-times", "-rltv"),
    Case("recursive-links-perms", "-rlpi", now=True),
    Case("devices-only", "-rlti --devices", root=True),
    Case("specials-only", "-rlti --specials"),
    Case("no-owner", "-ai --no-o --no-g"),
    Case("numeric-ids", "-ai --numeric-ids", ordered=True),
    Case("one-file-system", "-aix", ordered=True),
    Case("omit-dir-times", "-aiO", now=True),
    Case("omit-link-times", "-aiJ", now=True),
    Case("executability", "-rltiE"),
    Case("atimes", "-aiU"),
    Case("copy-links", "-aiL"),
    Case("copy-dirlinks", "-aik", "src/dir src/link-dir dest/", now=True),
    Case("copy-unsafe-links", "-avv --copy-unsafe-links"),
    Case("safe-links", "-av --safe-links"),
    Case("chmod", "-ai --chmod=D2775,F640", ordered=True),
    Case("chmod-no-perms", "-rlti --chmod=a+rwX"),
    Case("whole-file", "-aiW", ordered=True),
    Case("sparse", "-aiS", ordered=True),
    Case("preallocate", "-ai --preallocate", ordered=True),
    Case("fsync", "-ai --fsync", "src/dir dest/", ordered=True, now=True),
    Case("inplace-new", "-ai --inplace", ordered=True),
    Case("out-format", "-a --out-format=%i:%n%L:%l:%o:%B:%M:%U:%G:%f", ordered=True),
    Case("out-format-name", "-a --out-format=%n", ordered=True),
    # Second copies.
    Case("same-archive", "-aHi", before="same", ordered=True, core=True),
    Case("same-itemize-all", "-aHii", before="same", ordered=True),
    Case("same-two-verbose", "-aHvv", before="same"),
    Case("same-ignore-times", "-aiI", before="same", ordered=True),
    Case("same-checksum", "-aic", before="same", ordered=True),
    Case("same-stats", "-aH --stats", before="same"),
    Case("old-archive", "-aHi --delete", before="old", core=True),
    Case("old-verbose", "-av --delete", before="old"),
    Case("old-two-verbose", "-avv --delete", before="old"),
    Case("old-dry-run", "-ain --delete", before="old"),
    Case("old-no-delete", "-ai", before="old"),
    Case("old-no-delete-force", "-ai --force", before="old"),
    Case("old-size-only", "-ai --size-only --delete", before="old"),
    Case("old-checksum", "-aic --delete", before="old"),
    Case("old-ignore-times", "-aiI --delete", before="old"),
    Case("old-update", "-avu --delete", before="old"),
    Case("old-update-skip", "-avvu --delete --force", before="old"),
    Case("nothing-existing-dry", "-anvvi --existing"),
    Case("old-existing", "-av --existing --delete", before="old"),
    Case("old-existing-skip", "-av --info=skip --existing --force", before="old"),
    Case("old-ignore-existing", "-av --info=skip --ignore-existing", before="old", change=without_file_for_directory),
    Case("old-no-times", "-rlpi --delete", before="old", now=True),
    Case("old-no-perms", "-rlti --delete", before="old"),
    Case("old-inplace", "-ai --inplace --delete", before="old"),
    Case("old-sparse", "-aiS --delete", before="old"),
    Case("old-modify-window", "-ai --modify-window=2 --delete", before="old"),
    Case("old-nanoseconds", "-ai -@-1 --delete", before="old"),
    Case("old-delete-before", "-av --delete-before", before="old"),
    Case("old-delete-during", "-av --delete-during", before="old"),
    Case("old-delete-delay", "-av --delete-delay", before="old"),
    Case("old-delete-after", "-aHv --delete-after", before="old"),
    Case("old-delete-excluded", "-av --delete-excluded --exclude=*.iso --exclude=/pool/", before="old"),
    Case("old-delete-exclude", "-av --delete --exclude=*.iso --exclude=/pool/", before="old"),
    Case("delete-stats", "-a --delete --stats", before="same", change=many_extras),
    Case("delete-order", "-ai --delete", before="same", change=many_extras),
    Case("delete-format", "-a --delete --out-format=%o:%n", before="same", change=many_extras),
    Case("delete-protected", "-ai --delete -f", "protect_keep.me src/ dest/", before="same", change=protected, now=True),
    Case("delete-max", "-av --delete --max-delete=3", before="same", change=many_extras),
    Case("delete-max-zero", "-av --delete --max-delete=0", before="same", change=many_extras),
    Case("delete-error", "-av --delete", "src/ no-such-source dest/", before="same", change=many_extras),
    Case("delete-error-ignored", "-av --delete --ignore-errors", "src/ no-such-source dest/", before="same",
         change=many_extras),
    Case("delete-missing-args", "-ar --delete-missing-args -i", "src/README src/removed.iso dest/", before="old", now=True),
    Case("ignore-missing-args", "-ai --ignore-missing-args", "src/README src/nothing-there dest/", now=True),
    # Filters.
    Case("exclude", "-av --exclude=*.iso --exclude=/dir/sub/ --include=*/ --exclude=README", ordered=True),
    Case("include-only", "-av --include=*/ --include=*.deb --exclude=*", ordered=True),
    Case("cvs-exclude", "-avC", ordered=True),
    Case("merge-files", "-avF --delete", before="old"),
    Case("merge-files-twice", "-avFF --delete-after", before="old"),
    Case("dir-merge", "-av --delete --filter=:_.rules", before="old"),
    Case("exclude-from-stdin", "-av --delete --exclude-from=-", before="old", stdin=b"*.iso\n- left.*\n+ *\n"),
    Case("size-limits", "-av --max-size=20K --min-size=10", ordered=True),
    Case("size-limits-said", "-av --max-size=20K --min-size=10 --info=skip"),
    # What is copied, and where to.
    Case("dirs", "-dv", now=True),
    Case("relative", "-avR", "src/./dir/sub src/pool/main dest/", ordered=True, now=True),
    Case("relative-no-implied", "-aiR --no-implied-dirs", "src/p/q/r src/dir/other/e.iso dest/", now=True),
    Case("files-from", "-av --files-from=src/lists/files.txt", "src dest/", now=True),
    Case("files-from-recursive", "-avr --files-from=src/lists/files.txt", "src dest/", now=True),
    Case("files-from-zero", "-av0 --files-from=src/lists/zero.txt", "src dest/", now=True),
    Case("files-from-stdin", "-av --files-from=-", "src dest/", stdin=b"dir/\nREADME\n", now=True),
    Case("files-from-no-base", "-av --files-from=src/lists/files.txt", "nowhere dest/"),
    Case("two-sources", "-av", "src/dir/ src/pool/ dest/", ordered=True),
    Case("two-sources-missing", "-av", "src/nope src/dir dest/", now=True),
    Case("missing-source", "-av", "src/nope dest/", now=True),
    Case("single-file", "-av", "src/README dest", ordered=True),
    Case("single-file-into", "-av", "src/README dest/", ordered=True, now=True),
    Case("single-link", "-av", "src/link-file dest", ordered=True),
    Case("single-empty-dir", "-dv", "src/empty dest", ordered=True, now=True),
    Case("single-empty-contents", "-av", "src/empty/ dest", ordered=True),
    Case("no-parent", "-av", "src/README dest/x/y"),
    Case("no-parent-slash", "-av", "src/README dest/x/y/"),
    Case("mkpath-file", "-av --mkpath", "src/README dest/x/y", ordered=True, now=True),
    Case("mkpath-dir", "-ai --mkpath", "src/README dest/x/y/", ordered=True, now=True),
    Case("mkpath-tree-dry-run", "-avn --mkpath", "src/dir dest/x/y"),
    Case("over-a-file", "-av", "src/dir dest/README", before="same"),
    Case("empty-over-a-file", "-av", "src/empty dest/README", before="same"),
    Case("no-recursion", "-tv", "src/dir src/README dest/", now=True),
    Case("into-itself", "-av", "dest/ dest/", before="same"),
    # Listings.
    Case("list", "-r", "src/", ordered=True),
    Case("list-links", "-rlv", "src/", ordered=True),
    Case("list-one", "", "src/README", ordered=True),
    Case("list-dir", "-v", "src", ordered=True),
    Case("list-human", "-rhh", "src/pool", ordered=True),
    Case("list-plain", "-r --no-h", "src/pool", ordered=True),
    Case("list-atimes", "-rU", "src/dir", ordered=True),
    Case("list-only", "-r --list-only", "src/dir dest/", ordered=True),
]


@pytest.fixture(scope="module")
def templates(workspace):
    """The mirror, once for each program, and what a destination may hold before the run."""
    return make_templates(os.path.join(workspace, "local-templates"))


def make_templates(place):
    os.mkdir(place)
    os.chmod(place, 0o755)
    first, second, old = (os.path.join(place, name) for name in ("a/src", "b/src", "old"))
    trees.build_mirror(first)
    for copy in second, old:
        os.makedirs(copy)
        subprocess.run([harness.STOCK, "-aHSU", first + "/", copy + "/"], check=True)
    trees.make_older(old)
    return {"a": os.path.dirname(first), "b": os.path.dirname(second), "old": old, "same": first}


def words_of(case):
    return [word.replace("_", " ") if word.startswith(("protect_", "--filter=")) else word
            for word in (case.options + " " + case.arguments).split()]


def do_job(program, case, place, templates):
    """Run the case with `program` beside a source of its own; returns what it did, the tree it left, and where."""
    dest = os.path.join(place, "dest")
    if case.before != "nothing":
        subprocess.run([harness.STOCK, "-aHS", templates[case.before] + "/", dest + "/"], check=True)
    if case.change:
        case.change(dest)
    started = time.time_ns() - 1_000_000_000
    result = harness.run(program, *words_of(case), cwd=place, input=case.stdin)
    tree = trees.describe(dest, since_ns=started if case.now else None)
    if os.path.isdir(dest):
        shutil.rmtree(dest)
    elif os.path.lexists(dest):
        os.unlink(dest)
    return result, tree, place


def lines_of(output, place):
    text = harness.normalise(output, (place + "/", "/PLACE/"))
    return re.split(rb"[\r\n]+", re.sub(rb" +RATE", b" RATE", text.replace(b"\x7f", rb"\#177")))


# What only several processes say, and a remark of 3.5.0 about links that the case does not have.
NOT_OURS = (b"rsync error: received SIGUSR1", b"rsync: [sender] write error: Broken pipe",
            b"refusing to follow a symlink owned")


def compare_lines(kind, case, stock, huai, complaints):
    expected, got = lines_of(getattr(stock[0], kind), stock[2]), lines_of(getattr(huai[0], kind), huai[2])
    if kind == "stderr":
        expected = [line for line in expected if not line.startswith(NOT_OURS)]
    if not case.ordered or kind == "stderr":
        expected, got = sorted(expected), sorted(got)
    if expected != got:
        complaints.append(f"{kind}:")
        complaints.extend(difflib.unified_diff([os.fsdecode(line) for line in expected], [os.fsdecode(line) for line in got],
                                               "stock", "huai", lineterm="", n=1))


def compare(case, templates):
    """Do the job twice; complaints about what differs, and what our program did."""
    stock = do_job(harness.STOCK, case, templates["a"], templates)
    huai = do_job(harness.HUAI, case, templates["b"], templates)
    complaints = trees.differences(stock[1], huai[1])
    if stock[0].code != huai[0].code:
        complaints.append(f"exit code: stock {stock[0].code}, huai {huai[0].code}")
    compare_lines("stdout", case, stock, huai, complaints)
    compare_lines("stderr", case, stock, huai, complaints)
    return complaints, huai[0]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name, marks=[pytest.mark.core] if case.core else [])
                                  for case in CASES])
def test_like_stock(case, templates):
    if case.root and not trees.IS_ROOT:
        pytest.skip("needs root")
    complaints, huai = compare(case, templates)
    assert not complaints, "\n".join([huai.text, *complaints])
