# SPDX-License-Identifier: GPL-3.0-or-later
"""rsync-huai pushes to stock servers what stock rsync pushes; nobody may be able to tell the two clients apart.

Each combination of case, transport and protocol runs twice: what arrives, what is left of the source, exit code, stdout and stderr
have to agree. To look at one:
    pytest testsuite/system/client/test_push.py -k 'delta and shell and 31'
HUAI=/usr/bin/rsync checks the table itself.
"""
import concurrent.futures
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

import harness
import test_matrix
import trees

PROTOCOLS = (27, 28, 29, 30, 31, 32)
TRANSPORTS = ("shell", "daemon")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    options: str
    sources: tuple = ("{mirror}/",)
    before: str = "nothing"      # the destination: nothing, old (last month's tree), same (up to date)
    target: str = "dest/"
    core: bool = False           # also under the sanitizers
    transports: tuple = TRANSPORTS
    ordered: bool = False        # the order of the output lines is compared too
    own: bool = False            # the source is a copy that may be changed: {own}
    since: int = 27
    upto: int = 32
    xattrs: bool = False


ONE = ("{mirror}/README",)

CASES = [
    # First pushes.
    Case("archive", "-aH --delete", core=True),
    Case("archive-no-inc-recurse", "-aH --no-i-r", core=True),
    Case("archive-verbose", "-avH", since=29),
    Case("archive-verbose-old", "-av", upto=28),
    Case("archive-two-verbose", "-avvH"),
    Case("archive-itemize", "-aiH", core=True),
    Case("archive-itemize-verbose", "-aivv"),
    Case("archive-stats", "-aH --stats", core=True),
    Case("archive-stats-human", "-aHhh --stats -v"),
    Case("archive-info", "-aH --info=name1,stats2,misc2"),
    Case("archive-info-flist", "-a --info=flist2 --no-i-r"),
    Case("archive-progress-quiet", "-aH --info=progress2 --no-i-r --outbuf=L -q"),
    Case("archive-progress", "-a --progress --no-i-r --exclude=big.bin --exclude=holes.img --exclude=text.txt", since=29, ordered=True),
    Case("archive-out-format", "-aH --out-format=%o:%i:%n%L:%l:%M:%B:%f:%U:%G"),
    Case("archive-out-format-late", "-r --out-format=%o:%n:%c:%C --no-i-r", since=30),
    Case("archive-out-format-empty", "-av --out-format="),
    Case("archive-human", "-avh"),
    Case("recursive-only", "-r"),
    Case("recursive-links-times", "-rlt"),
    Case("chmod", "-rlptD --chmod=D2755,F640 -i", core=True),
    Case("numeric-ids", "-aH --numeric-ids", core=True),
    Case("no-owner", "-a --no-o --no-g"),
    Case("specials-only", "-rlpt --specials"),
    Case("devices-only", "-rlpt --devices"),
    Case("atimes", "-aU", since=30),
    Case("omit-times", "-aOJi", before="same"),
    Case("sparse", "-aS"),
    Case("preallocate", "-a --preallocate"),
    Case("whole-file", "-aW", before="old"),
    Case("dry-run", "-anv"),
    Case("dry-run-itemize", "-aniiH", before="same"),
    Case("dry-run-delete", "-ani --delete --stats", before="old", core=True),
    Case("quiet", "-aq"),
    Case("checksum-first", "-ac"),
    Case("checksum-unchanged", "-aci", before="same", core=True),
    Case("secluded-args", "-as"),
    Case("old-args", "-a --old-args"),
    Case("block-size", "-a -B 3000", before="old"),
    Case("bwlimit", "-a --bwlimit=20m"),
    Case("timeout", "-a --timeout=20"),
    Case("max-alloc", "-a --max-alloc=100m", before="old"),
    Case("iconv", "-av --iconv=UTF-8,ISO-8859-1", transports=("shell",)),
    Case("eight-bit", "-av8", sources=("{mirror}/odd names/",)),
    Case("outbuf-none", "-av --outbuf=N"),
    Case("stderr-all", "-av --stderr=all", transports=("shell",)),
    Case("stderr-client", "-av --stderr=client", sources=("{mirror}/dir", "{mirror}/no-such")),
    Case("fsync", "-a --fsync"),
    Case("mkpath", "-av --mkpath", target="dest/a/b/"),
    Case("super", "-a --super"),
    Case("fake-super", "-a -M--fake-super", xattrs=True),
    Case("chown", "-ai --chown=12:34"),
    Case("usermap", "-ai --usermap=1000:12 --groupmap=*:34"),
    Case("xattrs", "-aX -i", xattrs=True, since=30, core=True),
    Case("xattrs-delta", "-aXi", before="old", xattrs=True, since=30),
    Case("acls", "-aA -i", xattrs=True, since=30),
    Case("acls-xattrs-links", "-aHAX", before="same", xattrs=True, since=30),
    Case("inc-recursive", "-a --i-r"),
    # Up-to-date and older destinations.
    Case("unchanged", "-aH --delete", before="same", core=True),
    Case("unchanged-itemize", "-aHii", before="same"),
    Case("unchanged-verbose", "-aHvv", before="same"),
    Case("unchanged-ignore-times", "-aHI", before="same"),
    Case("unchanged-not-perms", "-rltD -i", before="same"),
    Case("delta", "-aH --delete", before="old", core=True),
    Case("delta-verbose", "-avH --delete", before="old"),
    Case("delta-itemize", "-aHi --delete --stats", before="old"),
    Case("delta-checksum", "-aHc --delete -i", before="old", core=True),
    Case("delta-no-inc-recurse", "-aH --no-i-r --delete -v", before="old"),
    Case("delta-inplace", "-a --inplace --delete -i", before="old"),
    Case("delta-no-whole-file", "-a --no-whole-file --inplace -i", before="old"),
    Case("delta-append", "-a --append -i", before="old", core=True),
    Case("delta-append-verify", "-a --append-verify -i", before="old", core=True),
    Case("size-only", "-a --size-only -i", before="old"),
    Case("update", "-au -i", before="old"),
    Case("existing", "-av --existing", before="old"),
    Case("ignore-existing", "-av --ignore-existing", before="old"),
    Case("backup", "-ab --suffix=.bak -i", before="old"),
    Case("backup-delete", "-ab --delete -v", before="old", core=True),
    Case("backup-dir", "-av --delete --backup-dir=../kept", before="old", transports=("shell",)),
    Case("partial-dir", "-a --partial-dir=.part --delete -i", before="old"),
    Case("partial-progress", "-aP --no-progress", before="old"),
    Case("delay-updates", "-a --delay-updates --delete -i", before="old", core=True),
    Case("fuzzy", "-ay --delete -i", before="old", since=29),
    Case("modify-window", "-ai --modify-window=1", before="same"),
    Case("compare-dest", "-a --compare-dest=../basis"),
    Case("copy-dest", "-aH --copy-dest=../basis -i"),
    Case("link-dest", "-aH --link-dest=../basis -ii", core=True),
    Case("link-dest-two", "-a --link-dest=../basis --link-dest=../other", since=29),
    Case("temp-dir", "-a -T ../basis", before="old"),
    Case("keep-dirlinks", "-aK", before="old"),
    # Deletion.
    Case("delete-before", "-aHi --delete-before", before="old", core=True),
    Case("delete-during", "-aHv --delete-during", before="old"),
    Case("delete-delay", "-aHi --delete-delay", before="old"),
    Case("delete-after", "-aHi --delete-after --stats", before="old"),
    Case("delete-excluded", "-ai --delete-excluded --exclude=*.iso", before="old", core=True),
    Case("delete-max", "-ai --delete --max-delete=1 --no-i-r --delete-before", before="old"),
    Case("delete-out-format", "-a --delete --out-format=%o_%n", before="old"),
    Case("delete-out-format-name", "-a --delete --out-format=%n", before="old"),
    Case("delete-missing-args", "-ai -R --delete-missing-args", sources=("{mirror}/./removed.iso", "{mirror}/./README"), before="old"),
    Case("ignore-missing-args", "-ai --ignore-missing-args", sources=("{mirror}/no-such", "{mirror}/README")),
    Case("delete-force", "-ai --force", before="old"),
    Case("prune-empty", "-aim --exclude=*.iso", since=29, core=True),
    # Compression.
    Case("compress", "-az", core=True),
    Case("compress-zlib", "-a --zc=zlib", core=True),
    Case("compress-lz4", "-a --zc=lz4"),
    Case("compress-delta", "-azi", before="old", core=True),
    Case("compress-zlib-delta", "-ai --zc=zlib --zl=9", before="old", core=True),
    Case("compress-zlibx-delta", "-ai --zc=zlibx", before="old"),
    Case("compress-lz4-delta", "-ai --zc=lz4", before="old"),
    Case("compress-zstd-delta", "-ai --zc=zstd --zl=19", before="old"),
    Case("compress-skip", "-az --skip-compress=gz/deb/bin", before="old"),
    # Digests.
    *(Case(f"digest-{name}", f"-aci --cc={name}", before="old") for name in ("md4", "md5", "sha1", "xxh64", "xxh3", "xxh128")),
    Case("digest-two", "-aci --cc=md5,xxh64", before="old"),
    Case("digest-seed", "-a --checksum-seed=7", before="old"),
    # What is sent.
    Case("no-slash", "-av", sources=("{mirror}",)),
    Case("subdirectory", "-aHi --delete", sources=("{mirror}/dir",), core=True),
    Case("subdirectory-slash", "-aHi --delete", sources=("{mirror}/dir/",), before="old"),
    Case("single-file", "-ai", sources=ONE, core=True),
    Case("single-file-renamed", "-ai", sources=("{mirror}/big.bin",), target="copy.bin"),
    Case("single-file-delta", "-av", sources=("{mirror}/big.bin",), before="old"),
    Case("single-link", "-ai", sources=("{mirror}/link-file",)),
    Case("several", "-ai", sources=("{mirror}/README", "{mirror}/dir/sub", "{mirror}/pool/")),
    Case("duplicates", "-av", sources=("{mirror}/README", "{mirror}/dir/", "{mirror}/README", "{mirror}/dir/c")),
    Case("odd-names", "-ai", sources=("{mirror}/odd names/",)),
    Case("missing", "-ai", sources=("{mirror}/no-such-file",), core=True),
    Case("missing-verbose", "-av", sources=("{mirror}/no-such-file",)),
    Case("missing-and-there", "-ai --delete", sources=("{mirror}/no-such-file", "{mirror}/dir/"), before="old"),
    Case("empty-directory", "-ai", sources=("{mirror}/empty/",)),
    Case("not-recursive", "-ltv", sources=("{mirror}/README", "{mirror}/dir")),
    Case("dirs", "-dlptv"),
    Case("dirs-delete", "-dlti --delete", before="old"),
    Case("one-file-system", "-axi"),
    Case("relative", "-aRi", sources=("{mirror}/./dir/sub/d.iso", "{mirror}/./p/q"), core=True),
    Case("relative-whole", "-rlRi", sources=("{mirror}/dir/sub",)),
    Case("relative-no-implied", "-aRi --no-implied-dirs", sources=("{mirror}/./dir/sub/d.iso", "{mirror}/./p/q/r/s"), since=30),
    Case("max-size", "-ai --max-size=20k", core=True),
    Case("min-size", "-av --min-size=20k", before="old"),
    # Links.
    Case("copy-links", "-rtLv"),
    Case("copy-dirlinks", "-aki"),
    Case("copy-unsafe-links", "-avH --copy-unsafe-links"),
    Case("safe-links", "-avH --safe-links"),
    Case("munge-links", "-ai --munge-links"),
    Case("no-links", "-rtv"),
    Case("hard-links-delta", "-aHi --delete --size-only", before="old"),
    # Filters.
    Case("exclude", "-ai --exclude=*.iso --exclude=/pool/ --exclude=core", core=True),
    Case("exclude-delete", "-ai --delete --exclude=*.iso", before="old", core=True),
    Case("exclude-from", "-ai --exclude-from={lists}/excludes --delete", before="old"),
    Case("include-from", "-ai --include-from={lists}/includes --exclude=*"),
    Case("cvs-exclude", "-aCi"),
    Case("cvs-exclude-delete", "-aCi --delete", before="old"),
    Case("shortcut-ff", "-aFFi --delete", before="old", since=29, core=True),
    Case("dir-merge", "-ai --delete --filter=:_.rules", before="old", core=True, since=29),
    Case("filter-sides", "-ai --delete --filter=H_*.iso --filter=P_removed.iso --filter=R_*.junk", before="old"),
    Case("filter-perishable", "-ai --delete --filter=-p_*.junk", before="old", since=30),
    Case("filter-verbose", "-avv --exclude=*.iso --no-i-r"),
    # Over a shell both ends speak to the same standard error, and cut each other short.
    Case("filter-too-modern", "-ai --filter=-p_*.junk", upto=29, transports=TRANSPORTS[1:]),
    # Lists of files.
    Case("files-from-local", "-ai --files-from={lists}/files", core=True),
    Case("files-from-zero", "-ai -0 --files-from={lists}/files-zero"),
    Case("files-from-recursive", "-ari --files-from={lists}/files --delete", before="old"),
    Case("files-from-server", "-ai --files-from=:{remote_lists}/files", core=True),
    Case("files-from-server-zero", "-ai -0 --files-from=:{remote_lists}/files-zero"),
    Case("files-from-server-missing", "-ai --files-from=:{remote_lists}/none.txt", transports=("shell",)),
    Case("files-from-no-relative", "-ai --no-R --files-from={lists}/files-below", sources=("{mirror}/pool",)),
    Case("files-from-empty", "-ai --files-from={lists}/files-empty"),
    Case("files-from-missing", "-ai --files-from={lists}/none"),
    # Over a shell, whether its server has something to say about that is a race.
    Case("files-from-missing-base", "-ai --files-from={lists}/files", sources=("{mirror}/no-such",), transports=("daemon",)),
    # The source is changed.
    Case("remove-source-files", "-ai --remove-source-files", sources=("{own}/",), own=True, core=True, since=29),
    Case("remove-source-files-old", "-av --remove-source-files", sources=("{own}/",), own=True, before="old", since=29),
    Case("remove-source-files-delay", "-aHi --remove-source-files --delay-updates", sources=("{own}/",), own=True, since=29),
    Case("remove-sent-files", "-ai --remove-sent-files", sources=("{own}/",), own=True, before="same", since=29),
    Case("remove-source-files-dry", "-ain --remove-source-files", sources=("{own}/",), own=True, since=29),
    # What goes wrong.
    Case("no-such-directory", "-av", target="no/such/dest/"),
    Case("over-a-file", "-av", sources=("{mirror}/README", "{mirror}/dir"), before="old", target="dest/dir.x"),
    Case("no-such-module", "-av", transports=("daemon",), target="::no-such-module/x"),
    Case("read-only-module", "-av", transports=("daemon",), target="::reading/x"),
    Case("refusing-module", "-av --delete", transports=("daemon",), target="::refusing/x"),
    Case("password", "-av", transports=("daemon",), target="::secret/x"),
    Case("not-an-rsync", "-av", transports=("shell",), target="!echo"),
    Case("silent-program", "-av", transports=("shell",), target="!sleep 0.5; :"),
    Case("failing-program", "-av", transports=("shell",), target="!test $(head -c 4 | wc -c) = 4; exit 7;"),
]


def module(name, path, *parameters):
    root = ["uid = 0", "gid = 0"] if trees.IS_ROOT else []
    return "\n".join([f"[{name}]", f"path = {path}", "use chroot = no", *root, *parameters]) + "\n"


class Site:
    """The tree to send, the prepared destinations, and a stock daemon that takes uploads."""

    def __init__(self, top):
        self.top = top
        self.mirror = os.path.join(top, "foo")
        self.lists = os.path.join(top, "lists")
        os.mkdir(self.mirror)
        trees.build_mirror(self.mirror)
        self._mark()
        self.same = self._copy("same")
        self.old = self._copy("old")
        trees.make_older(self.old)
        self.remote_shell = harness.make_remote_shell(top)
        test_matrix.Site._write_lists(self)

    def _copy(self, name):
        target = os.path.join(self.top, name)
        subprocess.run(["cp", "-a", self.mirror, target], check=True)
        return target

    def _mark(self):
        """Extended attributes, short and long, where the file system has them."""
        for name, size in (("README", 10), ("big.bin", 300), ("dir", 50)):
            try:
                os.setxattr(os.path.join(self.mirror, name), "user.note", trees.noise(size, size).hex().encode())
            except OSError:
                pass

    def config(self):
        return "timeout = 600\n" + "".join((
            module("up", self.top, "read only = no"),
            module("reading", self.top),
            module("refusing", self.top, "read only = no", "refuse options = delete"),
            module("secret", self.top, "read only = no", "auth users = joe", f"secrets file = {self.top}/none"),
        ))


@pytest.fixture(scope="module")
def site(top):
    result = Site(top)
    os.mkdir(os.path.join(top, "stock"))
    with harness.Daemon(harness.STOCK, result.config(), os.path.join(top, "stock")) as daemon:
        result.daemons = {harness.STOCK: daemon}
        yield result


def destination(site, case, transport, work, server):
    """The remote operand, and the --rsync-path if it is another than the server."""
    if case.target.startswith("::"):
        return site.daemons[server].url(case.target[2:]), server
    if case.target.startswith("!"):
        return f"host:{work}/dest", case.target[1:]
    if transport == "shell":
        return f"host:{work}/{case.target}", server
    return site.daemons[server].url(f"up/{os.path.relpath(work, site.top)}/{case.target}"), server


def command(site, case, transport, protocol, theirs, program, work, server):
    """theirs: the older protocol is the server's, not the client's."""
    operand, remote_program = destination(site, case, transport, work, server)
    lists = site.lists if transport == "shell" else "/lists"
    values = {"mirror": site.mirror, "lists": site.lists, "remote_lists": lists, "own": os.path.join(work, "own")}
    words = [program]
    if transport == "shell":
        if theirs and not case.target.startswith("!"):
            remote_program += f" --protocol={protocol}"
        words += ["-e", site.remote_shell, f"--rsync-path={remote_program}"]
    if not theirs:
        words.append(f"--protocol={protocol}")
    for word in case.options.split():
        word = word.format(**values) if "{" in word else word
        words.append(word.replace("_", " ", 1) if word.startswith("--filter=") else word)
    return words + [source.format(**values) for source in case.sources] + [operand]


def push(site, place, case, transport, protocol, theirs, program, name, server=harness.STOCK):
    """Run one client; the place has the same name for both. What it did, and what it left on either side."""
    work = os.path.join(place, "work")
    since = time.time_ns() - 20_000_000  # file times come from a clock that ticks more slowly
    os.mkdir(work)
    if case.before != "nothing":
        subprocess.run(["cp", "-a", site.old if case.before == "old" else site.same, os.path.join(work, "dest")], check=True)
    if case.own:
        subprocess.run(["cp", "-a", site.mirror, os.path.join(work, "own")], check=True)
    if "../basis" in case.options:
        # Relative ones: absolute links lead out of a module.
        if "-T" in case.options:
            os.mkdir(os.path.join(work, "basis"))
        else:
            os.symlink(os.path.relpath(site.same, work), os.path.join(work, "basis"))
        os.symlink(os.path.relpath(site.old, work), os.path.join(work, "other"))
    words = command(site, case, transport, protocol, theirs, program, work, server)
    result = harness.run(*words, cwd=work, environment={"RSYNC_PASSWORD": "wrong", "USER": "joe"})
    tree = trees.describe(work, since_ns=since)
    if case.xattrs:
        note_xattrs(work, tree)
    shutil.move(work, os.path.join(place, name))
    return result, tree


def note_xattrs(root, tree):
    for path, entry in tree.items():
        full = os.path.join(os.fsencode(root), path)
        try:
            entry["xattrs"] = {name: os.getxattr(full, name, follow_symlinks=False)
                               for name in os.listxattr(full, follow_symlinks=False)}
        except OSError:
            pass


def compare_pushes(site, place, case, transport, protocol, theirs):
    os.mkdir(place)
    try:
        results = []
        for program, name in ((harness.STOCK, "stock"), (harness.HUAI, "ours")):
            results += push(site, place, case, transport, protocol, theirs, program, name)
        for result in results[::2]:
            result.stdout = re.sub(rb"/s +", b"/s ", re.sub(rb" +([\d.]+[kM]?B/s)", rb" \1", result.stdout))
        # Stock lets one control character through to the terminal.
        return test_matrix.report(*results, case.ordered, lambda: "", (harness.HUAI, harness.STOCK), ("\\#177", "\x7f"))
    finally:
        shutil.rmtree(place)


def combinations():
    """Cases marked core in every protocol; of the others the newest and a rotating older one. The older side alternates."""
    everything = os.environ.get("HUAI_MATRIX") == "full"
    for number, case in enumerate(CASES):
        for turn, transport in enumerate(case.transports):
            older = min(max(PROTOCOLS[(number + turn) % (len(PROTOCOLS) - 1)], case.since), case.upto)
            for protocol in PROTOCOLS if case.core or everything else sorted({older, case.upto}):
                if not case.since <= protocol <= case.upto:
                    continue
                theirs = transport == "shell" and (number + protocol) % 2 == 0
                marks = [pytest.mark.core] if case.core and protocol in (28, 30, 32) else []
                yield pytest.param(case, transport, protocol, theirs, id=f"{case.name}-{transport}-{protocol}", marks=marks)


@pytest.fixture(scope="module")
def pushes(request, site):
    """{test id: its report, to be waited for}. A session mostly sleeps, so all selected ones run ahead in a few threads."""
    selected = [item.callspec for item in request.session.items if item.originalname == "test_push_is_the_same_as_by_stock"]
    executor = concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1) + 2)
    yield {
        spec.id: executor.submit(compare_pushes, site, os.path.join(site.top, f"push-{number}"), **spec.params)
        for number, spec in enumerate(selected)
    }
    executor.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case, transport, protocol, theirs", combinations())
def test_push_is_the_same_as_by_stock(request, pushes, case, transport, protocol, theirs):
    difference = pushes[request.node.callspec.id].result()
    if difference:
        pytest.fail(difference, pytrace=False)


# --- what needs a tree or a moment of its own ---

@pytest.fixture
def shell(place):
    return ["-e", harness.make_remote_shell(place), f"--rsync-path={harness.STOCK}"]


def start(place, *words):
    return subprocess.Popen([harness.HUAI, *words], cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, start_new_session=True, env=harness.ENVIRONMENT)


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def make_slow_source(place):
    """One file that keeps the connection busy for a while under --bwlimit=1000, between two small ones."""
    source = os.path.join(place, "src")
    os.mkdir(source)
    trees.write(os.path.join(source, "a"), b"first\n")
    trees.write(os.path.join(source, "big"), trees.noise(2_000_000, 3))
    trees.write(os.path.join(source, "last"), b"last\n")
    return source


@pytest.mark.core
@pytest.mark.parametrize("options", ["-ai", "-a --out-format=%i|%n|%B|%M|%l|%f", "-av --delete --stats"])
@pytest.mark.parametrize("protocol", [30, 32])
def test_long_lists(place, shell, options, protocol):
    """Lists that are done with have been dropped by the time their directories are reported."""
    source = os.path.join(place, "src")
    for number in range(80):
        directory = os.path.join(source, f"d{number % 8}", f"sub{number}")
        os.makedirs(directory)
        for name in range(30):
            trees.write(os.path.join(directory, f"file{name}"), b"%d" % name)
        os.chmod(directory, 0o700 + number % 8)
    trees.set_directory_times(source)
    results = []
    for program in (harness.STOCK, harness.HUAI):
        shutil.rmtree(os.path.join(place, "dest"), ignore_errors=True)
        os.makedirs(os.path.join(place, "dest/src/d1/sub9/extra"))
        results.append(harness.run(program, f"--protocol={protocol}", *shell, *options.split(), "src", f"host:{place}/dest",
                                   cwd=place))
        differences = trees.differences(trees.describe(source), trees.describe(os.path.join(place, "dest/src")))
        assert "--delete" not in options.split() or protocol < 31 or not differences
    stock, ours = results
    assert (ours.code, ours.stderr) == (stock.code, stock.stderr) == (0, b"")
    assert test_matrix.output_lines(ours.stdout, False, False) == test_matrix.output_lines(stock.stdout, False, False)


def test_names_from_standard_input(place, shell, site):
    words = [*shell, "-ai", "--files-from=-", site.mirror, f"host:{place}/dest"]
    result = harness.run(harness.HUAI, *words, input=b"README\n#no name\ndir/c\n", cwd=place)
    assert result.code == 0, result.text
    assert sorted(path for path in trees.describe(os.path.join(place, "dest"))) == [b".", b"README", b"dir", b"dir/c"]


def test_rules_from_standard_input(place, shell, site):
    words = [*shell, "-ai", "--exclude-from=-", site.mirror + "/dir/", f"host:{place}/dest"]
    result = harness.run(harness.HUAI, *words, input=b"c\n*.iso\n", cwd=place)
    assert result.code == 0, result.text
    assert sorted(os.listdir(os.path.join(place, "dest/sub")) + os.listdir(os.path.join(place, "dest/other"))) == ["hard-3"]


@pytest.mark.core
def test_vanished_file(place, shell):
    source = make_slow_source(place)
    process = start(place, *shell, "-a", "--bwlimit=1000", source + "/", f"host:{place}/dest")
    wait_until(lambda: os.path.exists(os.path.join(place, "dest/a")))
    os.unlink(os.path.join(source, "last"))
    stdout, stderr = process.communicate(timeout=harness.CLIENT_SECONDS)
    assert process.returncode == 24, stderr
    assert stdout == b"" and stderr.startswith(b'file has vanished: "%s"\nrsync warning: ' % os.fsencode(source + "/last")), stderr
    assert sorted(os.listdir(os.path.join(place, "dest"))) == ["a", "big"]


def test_source_that_changes_is_not_removed(place, shell):
    source = make_slow_source(place)
    process = start(place, *shell, "-av", "--bwlimit=1000", "--remove-source-files", "--delay-updates", source + "/",
                    f"host:{place}/dest")
    wait_until(lambda: os.path.exists(os.path.join(place, "dest/.~tmp~/a")))
    trees.write(os.path.join(source, "a"), b"changed meanwhile\n")
    stdout, stderr = process.communicate(timeout=harness.CLIENT_SECONDS)
    assert process.returncode == 23, stderr
    assert stderr.startswith(b"ERROR: Skipping sender remove for changed file: a\nrsync error: "), stderr
    assert stdout.startswith(b"building file list ... done\n") and os.listdir(source) == ["a"], stdout


@pytest.mark.core
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("protocol", [29, 32])
def test_signal_ends_both_sides(place, shell, number, protocol):
    source = make_slow_source(place)
    process = start(place, *shell, f"--protocol={protocol}", "-a", "--bwlimit=500", source + "/", f"host:{place}/dest")
    dest = os.path.join(place, "dest")
    wait_until(lambda: os.path.isdir(dest) and any(name.startswith(".big.") for name in os.listdir(dest)))
    process.send_signal(number)
    stderr = process.communicate(timeout=harness.CLIENT_SECONDS)[1]
    assert process.returncode == 20, stderr
    assert b"rsync error: received SIGINT, SIGTERM, or SIGHUP (code 20) at " in stderr, stderr
    wait_until(lambda: sorted(os.listdir(dest)) == ["a"])
    harness.end_group(process.pid)


def test_silent_server_times_out(place, shell, site):
    shell = [*shell[:2], "--rsync-path=sleep 8; :"]
    process = start(place, *shell, "-a", "--timeout=1", site.mirror + "/dir", f"host:{place}/dest")
    assert process.wait(6) == 30
    assert process.communicate()[1].startswith(b"[sender] io timeout after 1 seconds -- exiting\nrsync error: ")


def test_bandwidth_limit(place, shell):
    source = make_slow_source(place)
    result = harness.run(harness.HUAI, *shell, "-a", "--bwlimit=1000", source + "/", f"host:{place}/dest")
    assert result.code == 0 and 1.5 < result.seconds < 10, result.text


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_server_that_cannot_write(place, shell, protocol):
    """The server's own words and code arrive, and what had been written stays."""
    source = make_slow_source(place)
    shell = [*shell[:2], f"--rsync-path=ulimit -f 100; {harness.STOCK}"]
    result = harness.run(harness.HUAI, *shell, f"--protocol={protocol}", "-a", source + "/", f"host:{place}/dest")
    assert result.code in (11, 12), result.text
    assert b'write failed on "' in result.stderr and b"rsync error: " in result.stderr, result.text
    assert os.listdir(os.path.join(place, "dest")) == ["a"]


def test_server_that_is_killed(place, shell):
    source = make_slow_source(place)
    shell = [*shell[:2], f"--rsync-path=echo $$ > {place}/pid; exec {harness.STOCK}"]
    process = start(place, *shell, "-a", "--bwlimit=500", source + "/", f"host:{place}/dest")
    wait_until(lambda: os.path.exists(os.path.join(place, "dest/a")))
    with open(os.path.join(place, "pid")) as file:
        os.kill(int(file.read()), signal.SIGKILL)
    stderr = process.communicate(timeout=harness.CLIENT_SECONDS)[1]
    assert process.returncode in (10, 12), stderr
    assert b"rsync error: error in " in stderr, stderr
    harness.end_group(process.pid)


def test_dry_run_leaves_nothing(place, shell, site):
    result = harness.run(harness.HUAI, *shell, "-anv", "--delete", site.mirror + "/", f"host:{place}/dest")
    assert result.code == 0 and result.stdout.endswith(b" (DRY RUN)\n") and b"\ndir/c\n" in result.stdout, result.text
    assert not os.path.exists(os.path.join(place, "dest"))


def test_progress_of_a_large_file(place, shell):
    source = make_slow_source(place)
    result = harness.run(harness.HUAI, *shell, "-a", "--bwlimit=600", "--progress", source + "/big", f"host:{place}/dest")
    done = [int(number.replace(b",", b"")) for number in re.findall(rb"\r +([\d,]+) +\d+%", result.stdout)]
    assert result.code == 0 and len(done) >= 4 and done == sorted(done) and done[0] == 32768 and done[-1] == 2_000_000, result.text
    assert result.stdout.startswith(b"sending incremental file list\nbig\n\r") and result.stdout.endswith(b"(xfr#1, to-chk=0/1)\n")
