# SPDX-License-Identifier: GPL-3.0-or-later
"""Stock clients pull the same tree from stock rsync and from rsync-huai; nobody may be able to tell the two apart.

Each combination of protocol, way of serving and case runs twice: result tree, exit code, stdout and stderr have to agree. To look at one:
    pytest testsuite/system/sender/test_matrix.py -k 'layout1 and 31 and delta'
HUAI=/usr/bin/rsync checks the table itself (a stock daemon then lists the real tree in place of the attr tree).
"""
import concurrent.futures
import dataclasses
import difflib
import os
import shutil
import subprocess
import time

import pytest

import harness
import trees

PROTOCOLS = (27, 28, 29, 30, 31, 32)
SERVED = ("plain", "layout1", "layout2", "snapshot1", "snapshot2", "shell")
MODULES = SERVED[:-1]


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    options: str
    sources: tuple = ("/",)      # appended to the module or directory
    before: str = "nothing"      # the destination: nothing, old (last month's tree), same (up to date)
    target: str = "dest/"        # "" for a listing
    core: bool = False           # also under the sanitizers
    served: tuple = SERVED
    ordered: bool = False        # the order of the output lines is the file list's, so it is compared too
    atimes: bool = False
    since: int = 27              # the client itself refuses older protocols


CASES = [
    # First pulls.
    Case("archive", "-aH --delete", core=True),
    Case("archive-no-inc-recurse", "-aH --no-i-r", core=True),
    Case("archive-verbose", "-avH"),
    Case("archive-two-verbose", "-avvH"),
    Case("archive-itemize", "-aiH"),
    Case("archive-stats", "-aH --stats"),
    Case("archive-stats-human", "-aHhh --stats -v"),
    Case("archive-info", "-aH --info=name1,stats2,flist2,misc2"),
    Case("archive-progress", "-aH --info=progress2 --no-i-r --outbuf=L -q"),
    Case("archive-out-format", "-aH --out-format=%o:%i:%n%L:%l:%M:%B:%C", ordered=False),
    Case("recursive-only", "-r"),
    Case("recursive-links-times", "-rlt"),
    Case("no-perms", "-rlptD --chmod=ugo=rwX"),
    Case("numeric-ids", "-aH --numeric-ids", core=True),
    Case("no-owner", "-a --no-o --no-g"),
    Case("specials-only", "-rlpt --specials"),
    Case("devices-only", "-rlpt --devices"),
    Case("atimes", "-aU", atimes=True, since=30),
    Case("omit-dir-times", "-aO"),
    Case("sparse", "-aS"),
    Case("whole-file", "-aW"),
    Case("dry-run", "-anv"),
    Case("dry-run-itemize", "-aniiH", before="same"),
    Case("quiet", "-aq"),
    Case("checksum-first", "-ac"),
    Case("secluded-args", "-as"),
    Case("old-args", "-a --old-args"),
    Case("block-size", "-a -B 3000", before="old"),
    Case("bwlimit", "-a --bwlimit=20m"),
    Case("iconv", "-a --iconv=UTF-8,UTF-8", sources=("/dir/",), served=("shell",)),
    Case("iconv-latin", "-av --iconv=UTF-8,ISO-8859-1", served=("shell",)),
    Case("outbuf-eight-bit", "-av8", sources=("/odd names/",)),
    # Up-to-date and older destinations.
    Case("unchanged", "-aH --delete", before="same", core=True),
    Case("unchanged-itemize", "-aHii", before="same"),
    Case("unchanged-verbose", "-aHvv", before="same"),
    Case("unchanged-checksum", "-aHc", before="same"),
    Case("unchanged-ignore-times", "-aHI", before="same"),
    Case("delta", "-aH --delete", before="old", core=True),
    Case("delta-itemize", "-aHi --delete --stats", before="old"),
    Case("delta-checksum", "-aHc --delete -i", before="old", core=True),
    Case("delta-no-inc-recurse", "-aH --no-i-r --delete -v", before="old"),
    Case("delta-inplace", "-a --inplace --delete -i", before="old"),
    Case("delta-append", "-a --append -i", before="old", core=True),
    Case("delta-append-verify", "-a --append-verify -i", before="old", core=True),
    Case("delta-whole-file", "-aW --delete", before="old"),
    Case("size-only", "-a --size-only -i", before="old"),
    Case("update", "-au -i", before="old"),
    Case("existing", "-a --existing -i", before="old"),
    Case("ignore-existing", "-a --ignore-existing -i", before="old"),
    Case("backup", "-ab --suffix=.bak -i", before="old"),
    Case("partial", "-aP --no-progress --partial-dir=.part", before="old"),
    Case("delay-updates", "-a --delay-updates", before="old"),
    Case("fuzzy", "-ay", before="old", since=29),
    Case("modify-window", "-ai --modify-window=1", before="same"),
    Case("compare-dest", "-a --compare-dest=../basis", before="nothing"),
    Case("copy-dest", "-aH --copy-dest=../basis -i", before="nothing"),
    Case("link-dest", "-a --link-dest=../basis -i", before="nothing"),
    # Deletion.
    Case("delete-before", "-aHi --delete-before", before="old", core=True),
    Case("delete-during", "-aHi --delete-during", before="old"),
    Case("delete-delay", "-aHi --delete-delay", before="old"),
    Case("delete-after", "-aHi --delete-after", before="old"),
    Case("delete-excluded", "-ai --delete-excluded --exclude=*.iso", before="old"),
    Case("delete-max", "-ai --delete --max-delete=1 --no-i-r --delete-before", before="old"),
    Case("delete-missing-args", "-ai -R --delete-missing-args", sources=("/./removed.iso", "/./README"), before="old"),
    Case("ignore-missing-args", "-ai --ignore-missing-args", sources=("/no-such", "/README")),
    Case("delete-force", "-ai --force", before="old"),
    Case("prune-empty", "-aim", sources=("/",), since=29),
    # Compression.
    Case("compress", "-az", core=True),
    Case("compress-zlib", "-a --zc=zlib", core=True),
    Case("compress-zlibx", "-a --zc=zlibx"),
    Case("compress-lz4", "-a --zc=lz4", core=True),
    Case("compress-zstd", "-a --zc=zstd", core=True),
    Case("compress-delta", "-azi", before="old", core=True),
    Case("compress-zlib-delta", "-ai --zc=zlib --zl=9", before="old", core=True),
    Case("compress-zlibx-delta", "-ai --zc=zlibx", before="old"),
    Case("compress-lz4-delta", "-ai --zc=lz4", before="old"),
    Case("compress-zstd-delta", "-ai --zc=zstd --zl=19", before="old"),
    Case("compress-skip", "-az --skip-compress=gz/deb/bin", before="old"),
    Case("compress-checksum", "-aczi", before="old"),
    # Digests.
    *(Case(f"digest-{name}", f"-aci --cc={name}", before="old") for name in ("md4", "md5", "sha1", "xxh64", "xxh3", "xxh128")),
    # Below 31 a stock daemon closes without a word; ours says why.
    Case("digest-none", "-aci --cc=none", before="old", since=31),
    Case("digest-two", "-aci --cc=md5,xxh64", before="old"),
    # What is asked for.
    Case("no-slash", "-av", sources=("",)),
    Case("subdirectory", "-aHi --delete", sources=("/dir",), core=True),
    Case("subdirectory-slash", "-aHi --delete", sources=("/dir/",), before="old"),
    Case("deep-directory", "-ai", sources=("/p/q/r",)),
    Case("single-file", "-ai", sources=("/README",), core=True),
    Case("single-file-renamed", "-ai", sources=("/big.bin",), target="copy.bin"),
    Case("single-file-delta", "-ai", sources=("/big.bin",), before="old"),
    Case("single-link", "-ai", sources=("/link-file",)),
    Case("several", "-ai", sources=("/README", "/dir/sub", "/pool/")),
    Case("duplicates", "-avv", sources=("/README", "/dir/", "/README", "/dir/c")),
    Case("wildcard", "-ai", sources=("/*.log",), core=True),
    Case("wildcard-directories", "-ai", sources=("/d*", "/p*/q")),
    Case("wildcard-class", "-ai", sources=("/[a-h]*",)),
    Case("wildcard-none", "-ai", sources=("/nothing-like-*",)),
    Case("odd-names", "-ai", sources=("/odd names/",)),
    Case("one-odd-name", "-ai", sources=("/odd names/sp ace", "/odd names/-dash")),
    Case("dot-dot", "-ai", sources=("/dir/../README",)),
    Case("above", "-ai", sources=("/../README",), served=MODULES),
    Case("missing", "-ai", sources=("/no-such-file",), core=True),
    Case("missing-below", "-ai", sources=("/no-such/below", "/dir/./none/below", "/README/below", "/dir/c")),
    Case("missing-and-there", "-ai --delete", sources=("/no-such-file", "/dir/"), before="old"),
    Case("empty-directory", "-ai", sources=("/empty/",), core=True),
    Case("empty-directory-delete", "-ai --delete", sources=("/empty/",), before="old"),
    Case("not-recursive", "-lt", sources=("/README", "/dir")),
    Case("dirs", "-dlpti", sources=("/",)),
    Case("dirs-named", "-dlti", sources=("/dir", "/pool/")),
    Case("dirs-delete", "-dlti --delete", sources=("/",), before="old"),
    Case("one-file-system", "-axi"),
    Case("two-file-systems", "-axxi"),
    Case("relative", "-aRi", sources=("/dir/sub",), core=True, served=MODULES),
    Case("relative-dot", "-aRi", sources=("/dir/./sub/d.iso", "/./p/q")),
    # At 29 a stock client gives up on such a list, sooner or later.
    Case("relative-no-implied", "-aRi --no-implied-dirs", sources=("/./dir/sub/d.iso", "/./p/q/r/s"), since=30),
    Case("relative-through-link", "-aRi", sources=("/./link-dir/sub/",)),
    Case("relative-several", "-aRv", sources=("/./pool/main", "/./pool/twin-a", "/./dir/c")),
    Case("max-size", "-ai --max-size=20k", core=True),
    Case("min-size", "-ai --min-size=20k", before="old"),
    Case("max-size-verbose", "-av --max-size=5000b"),
    # Links.
    Case("copy-links", "-rtL"),
    Case("copy-links-verbose", "-avL --delete", before="old"),
    Case("copy-dirlinks", "-aki", core=True),
    Case("copy-unsafe-links", "-avH --copy-unsafe-links"),
    Case("safe-links", "-avH --safe-links"),
    Case("keep-dirlinks", "-aKi", before="old"),
    Case("munge-links", "-ai --munge-links"),
    Case("no-links", "-rtv"),
    Case("hard-links-partial", "-aHi", sources=("/dir/", "/pool/")),
    Case("hard-links-delta", "-aHi --delete --size-only", before="old"),
    # Filters.
    Case("exclude", "-ai --exclude=*.iso --exclude=/pool/ --exclude=core", core=True),
    Case("exclude-anchored", "-ai --exclude=/dir/sub/ --exclude=q/r", before="old"),
    Case("include-exclude", "-ai --include=*/ --include=*.deb --exclude=*", core=True),
    Case("include-empty-dirs", "-aim --include=*/ --include=*.iso --exclude=*", since=29),
    Case("exclude-double-star", "-ai --exclude=/p/**/t --exclude=pool/***"),
    Case("exclude-class", "-ai --exclude=[a-d]*.bin --exclude=hard-[!1]"),
    Case("exclude-delete", "-ai --delete --exclude=*.iso", before="old", core=True),
    Case("exclude-from", "-ai --exclude-from={lists}/excludes", before="old"),
    Case("include-from", "-ai --include-from={lists}/includes --exclude=*"),
    Case("cvs-exclude", "-aCi", core=True),
    Case("cvs-exclude-delete", "-aCi --delete", before="old"),
    Case("shortcut-f", "-aFi", core=True, since=29),
    Case("shortcut-ff", "-aFFi --delete", before="old", since=29),
    Case("dir-merge", "-ai --delete --filter=:_.rules", before="old", core=True, since=29),
    Case("dir-merge-modifiers", "-ai --filter=:n-e_.rsync-filter", since=29),
    Case("dir-merge-anchored", "-ai --filter=:/_/.rsync-filter --delete", before="old", since=29),
    Case("filter-sides", "-ai --delete --filter=H_*.iso --filter=P_removed.iso --filter=R_*.junk", before="old"),
    Case("filter-hide-show", "-ai --filter=show_/dir/ --filter=hide_/d*"),
    Case("filter-clear", "-ai --exclude=* --filter=! --exclude=p*"),
    Case("filter-perishable", "-ai --delete --filter=-p_*.junk", before="old"),
    Case("filter-negated", "-ai --filter=-!_*/", since=29),
    Case("filter-xattr", "-ai --filter=-x_user.*", since=29),
    # Lists of files.
    Case("files-from-local", "-ai --files-from={lists}/files", core=True),
    Case("files-from-zero", "-ai -0 --files-from={lists}/files-zero"),
    Case("files-from-recursive", "-ari --files-from={lists}/files", before="old"),
    Case("files-from-remote", "-ai --files-from=:{module}/lists/files.txt", core=True),
    Case("files-from-remote-zero", "-ai -0 --files-from=:{module}/lists/zero.txt"),
    Case("files-from-remote-missing", "-ai --files-from=:{module}/lists/none.txt"),
    # Stock 3.5.0 finds none of these files when the module does not lie at the root of its chroot.
    Case("files-from-subdirectory", "-ai --files-from={lists}/files-below", sources=("/pool",), served=("plain", "shell")),
    Case("files-from-no-relative", "-ai --no-R --files-from={lists}/files-below", sources=("/pool",), served=("plain", "shell")),
    Case("files-from-empty", "-ai --files-from={lists}/files-empty"),
    # Listings.
    Case("list", "--list-only -aH", target="", ordered=True, core=True),
    Case("list-one-level", "", target="", ordered=True),
    Case("list-recursive", "-r", target="", ordered=True),
    Case("list-no-inc-recurse", "-rv --no-i-r", target="", ordered=True),
    Case("list-directory", "-r", sources=("/pool/",), target="", ordered=True, core=True),
    Case("list-file", "", sources=("/README",), target="", ordered=True),
    Case("list-wildcard", "-l", sources=("/link*",), target="", ordered=True),
    Case("list-missing", "", sources=("/no-such",), target="", ordered=True),
    Case("list-checksum", "-rc --list-only", target="", ordered=True),
    Case("list-excluded", "-r --exclude=*.iso --exclude=/pool", target="", ordered=True),
    Case("list-human", "-rhh --list-only", target="", ordered=True),
    Case("list-target", "-a --list-only", target="dest/", before="old", ordered=True),
]

# How a daemon answers before a module is served does not depend on the way of serving.
SPECIAL = [
    ("modules", "", ""),
    ("unknown-module", "-a", "no-such-module/"),
    ("hidden-module", "-r", "hidden/README"),
    ("refused-option", "-az", "refusing/"),
    ("refused-delete", "-a --checksum", "refusing/"),
    ("denied", "-a", "denied/"),
    ("numeric", "-a", "numeric/"),
    ("excluding", "-a", "excluding/"),
    ("excluding-named", "-a", "excluding/pool/main"),
    ("broken-path", "-a", "broken/"),
]


def module(name, path, prefix, *parameters):
    lines = [f"[{name}]", f"path = {path}", *(f"real file prefix = {prefix}" for _ in range(1) if prefix), *parameters]
    return "\n".join(lines) + "\n"


class Site:
    """The served tree, the prepared destinations and both daemons."""

    def __init__(self, top):
        self.top = top
        self.mirror = os.path.join(top, "storage/mirrors/foo")
        self.lists = os.path.join(top, "lists")
        self.nobody = [f"uid = nobody", f"gid = {harness.NOBODY_GROUP}"] if trees.IS_ROOT else []
        os.makedirs(os.path.dirname(self.mirror))
        os.mkdir(self.mirror)
        trees.build_mirror(self.mirror)
        self.same = self._copy("same")
        self.old = self._copy("old")
        trees.make_older(self.old)
        os.makedirs(os.path.join(top, "storage/mirror-attrs"))
        self.attrs = os.path.join(top, "storage/mirror-attrs/foo")
        trees.make_attr_tree(self.mirror, self.attrs)
        self.snapshots = [os.path.join(top, "snapshot1"), os.path.join(top, "snapshot2")]
        if harness.HUAI != harness.STOCK:
            self._make_snapshot(self.snapshots[0], "-U", "--attr-digests=xxh128,md5")
            self._make_snapshot(self.snapshots[1], "-U")
        # Where a module's root is called by its path in a message, it has another path in ours.
        self.same_place = [(self.attrs, self.mirror), ("/mirror-attrs/foo", "/mirrors/foo")]
        self.remote_shell = harness.make_remote_shell(top)
        self._write_lists()

    def _copy(self, name):
        target = os.path.join(self.top, name)
        subprocess.run(["cp", "-a", self.mirror, target], check=True)
        return target

    def _make_snapshot(self, path, *words):
        result = harness.run(harness.HUAI, "-aH", "--only-send-attrs", f"--attr-snapshot={path}", *words, self.mirror + "/")
        assert result.code == 0, result.text

    def _write_lists(self):
        os.mkdir(self.lists)
        for name, content in (
            ("files", "README\ndir/sub\n/dir/sub/d.iso\npool/./main/a\n\nno-such-file\np/q/\nodd names/caf\u00e9\n"),
            ("files-zero", "README\0odd names/new\nline\0#comment\0link-file\0"),
            ("files-below", "main/a/a_1.0.deb\nmain\ntwin-a\n../README\n"),
            ("files-empty", ""),
            ("excludes", "# comment\n; comment\n*.iso\n/pool/main\n\n+ core\n- merge/*\n"),
            ("includes", "*/\nREADME\n*.deb\n+ d*\n"),
        ):
            trees.write(os.path.join(self.lists, name), content.encode())

    def config(self, ours):
        """The same modules for both daemons; ours lists layout1 and layout2 from the attr tree, two others from snapshots."""
        real = ours and harness.HUAI != harness.STOCK
        chroot = "use chroot = yes" if trees.IS_ROOT else "use chroot = no"
        layout1 = f"{self.top}/storage/./mirror-attrs/foo" if real else f"{self.top}/storage/./mirrors/foo"
        inside = "/mirrors/foo" if trees.IS_ROOT else self.mirror
        layout2 = self.attrs if real else self.mirror
        prefix = self.mirror if real else None
        snapshots = [[f"attr snapshot = {path}", "attr snapshot fallback = refuse"] if real else [] for path in self.snapshots]
        root = ["uid = 0", "gid = 0"] if trees.IS_ROOT else []
        # Ours has a time-out by default, and sends it to clients; so that outputs agree, stock gets the same.
        return "timeout = 600\n" + "".join((
            module("plain", self.mirror, None, chroot, "comment = the live tree", *root),
            module("layout1", layout1, inside if real else None, chroot, "comment = attr tree, chroot", *self.nobody),
            module("layout2", layout2, prefix, "use chroot = no", *self.nobody),
            module("snapshot1", f"{self.top}/storage/./mirrors/foo", None, chroot, "comment = chroot", *self.nobody, *snapshots[0]),
            module("snapshot2", self.mirror, None, "use chroot = no", *self.nobody, *snapshots[1]),
            module("hidden", layout2, prefix, "use chroot = no", "list = no", *self.nobody),
            module("refusing", layout2, prefix, "use chroot = no", "refuse options = compress checksum", *self.nobody),
            module("denied", layout2, prefix, "use chroot = no", "hosts deny = *"),
            module("numeric", layout2, prefix, "use chroot = no", "numeric ids = yes", *self.nobody),
            module("excluding", layout2, prefix, "use chroot = no", "exclude = /pool/main *.iso", *self.nobody),
            module("broken", f"{self.top}/no-such-directory", None, "use chroot = no", *self.nobody),
        ))


@pytest.fixture(scope="module")
def site(top):
    result = Site(top)
    for name in ("stock", "ours"):
        os.mkdir(os.path.join(top, name))
    with harness.Daemon(harness.STOCK, result.config(ours=False), os.path.join(top, "stock")) as result.stock, \
            harness.Daemon(harness.HUAI, result.config(ours=True), os.path.join(top, "ours")) as result.ours:
        yield result


def command(site, case, served, protocol, daemon, program):
    words = [harness.STOCK, f"--protocol={protocol}"]
    module_path = "" if served != "shell" else site.mirror
    options = case.options.replace("{lists}", site.lists).replace("{module}", module_path)
    words += [word.replace("_", " ") if word.startswith("--filter=") else word for word in options.split()]
    if served == "shell":
        words += ["-e", site.remote_shell, f"--rsync-path={program}"]
        base = f"host:{site.mirror}"
    else:
        base = daemon.url(served)
    words.append(base + case.sources[0])
    # Further sources are named the short way, as users do.
    for source in case.sources[1:]:
        words.append(f":{site.mirror}{source}" if served == "shell" else f"::{served}{source}")
    return words + ([case.target] if case.target else [])


def pull(site, place, case, words, name):
    """Run one client in a directory that has the same name for both; returns what it did and what it left."""
    work = os.path.join(place, "work")
    os.mkdir(work)
    if case.before != "nothing":
        subprocess.run(["cp", "-a", site.old if case.before == "old" else site.same, os.path.join(work, "dest")], check=True)
    if "-dest=" in case.options:
        os.symlink(site.same, os.path.join(work, "basis"))
    since = time.time_ns() - 20_000_000  # file times come from a clock that ticks more slowly
    result = harness.run(*words, cwd=work)
    target = case.target or "dest/"
    tree = trees.describe(os.path.join(work, target.rstrip("/")), atimes=case.atimes, since_ns=since)
    shutil.move(work, os.path.join(place, name))
    return result, tree


def output_lines(output, ordered, lost, *replacements):
    lines = os.fsdecode(harness.normalise(output, *replacements)).split("\n")
    if lost:
        lines = [line for line in lines if not line.startswith(("rsync error: ", "rsync: connection unexpectedly closed"))]
    return lines if ordered else sorted(lines)


def report(expected, expected_tree, got, got_tree, ordered, log, *replacements):
    """What differs between two pulls, as text; empty if nothing does."""
    # Stock often ends a refused session with a reset, in which the last words and the exit code get lost.
    lost = b"Connection reset by peer (104)" in expected.stderr
    lines = [f"exit code: expected {expected.code}, got {got.code}"] if expected.code != got.code and not lost else []
    lines += trees.differences(expected_tree, got_tree)[:40]
    for stream in ("stdout", "stderr"):
        left = output_lines(getattr(expected, stream), ordered, lost)
        right = output_lines(getattr(got, stream), ordered, lost, *replacements)
        lines += list(difflib.unified_diff(left, right, f"expected {stream}", f"got {stream}", n=1, lineterm=""))[:60]
    if not lines:
        return ""
    return "\n".join([*lines, "", "-- stock:", expected.text[-1500:], "-- ours:", got.text[-1500:], "-- our log:", log()[-1500:]])


def compare_pulls(site, place, case, served, protocol):
    os.mkdir(place)
    try:
        pulls = []
        for daemon, program, name in ((site.stock, harness.STOCK, "stock"), (site.ours, harness.HUAI, "ours")):
            pulls += pull(site, place, case, command(site, case, served, protocol, daemon, program), name)
        return report(*pulls, case.ordered, site.ours.log, (harness.HUAI, harness.STOCK), *site.same_place)
    finally:
        shutil.rmtree(place)


def combinations():
    """Cases marked core in every protocol and way of serving; of the others the newest and a rotating older protocol each."""
    everything = os.environ.get("HUAI_MATRIX") == "full"
    for number, case in enumerate(CASES):
        for turn, served in enumerate(case.served):
            older = max(PROTOCOLS[(number + turn) % (len(PROTOCOLS) - 1)], case.since)
            for protocol in PROTOCOLS if case.core or everything else (older, PROTOCOLS[-1]):
                if protocol < case.since:
                    continue
                marks = [pytest.mark.core] if case.core and protocol in (28, 30, 32) else []
                yield pytest.param(case, served, protocol, id=f"{case.name}-{served}-{protocol}", marks=marks)


@pytest.fixture(scope="module")
def pulls(request, site):
    """{test id: its report, to be waited for}. A session mostly sleeps, so all selected ones run ahead in a few threads."""
    selected = [item.callspec for item in request.session.items if item.originalname == "test_pull_is_the_same_as_from_stock"]
    executor = concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1) + 2)
    yield {
        spec.id: executor.submit(compare_pulls, site, os.path.join(site.top, f"pull-{number}"), **spec.params)
        for number, spec in enumerate(selected)
    }
    executor.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case, served, protocol", combinations())
def test_pull_is_the_same_as_from_stock(request, pulls, case, served, protocol):
    difference = pulls[request.node.callspec.id].result()
    if difference:
        pytest.fail(difference, pytrace=False)


@pytest.mark.core
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name, options, path", SPECIAL, ids=[special[0] for special in SPECIAL])
def test_daemon_answers_the_same_as_stock(site, place, name, options, path, protocol):
    case = Case(name, options, target="dest/" if options else "", ordered=True)
    results = []
    for daemon, label in ((site.stock, "stock"), (site.ours, "ours")):
        words = [harness.STOCK, f"--protocol={protocol}", *options.split(), daemon.url(path), *([case.target] if case.target else [])]
        results += pull(site, place, case, words, label)
    difference = report(*results, True, site.ours.log)
    if difference:
        pytest.fail(difference, pytrace=False)
