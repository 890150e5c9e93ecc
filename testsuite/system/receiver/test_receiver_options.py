# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of a receiving side that concern links, devices, charsets, sources and limits: what stock does, local runs and pulls do."""
import os
import shutil

import pytest

import harness
import receiver
import trees

LATIN = "caf\u00e9".encode("latin-1")

JOBS = [
    "--old-dirs -i", "--old-d -ai", "-i --old-dirs --delete", "-di", "-dai", "-i -d --no-r", "-ai --no-crtimes --no-N", "-aiN",
    "-ai --drop-D", "-ai --drop-D --no-drop-D", "-ai --drop-D --info=nonreg0", "-ai --open-noatime", "-ai --munge-links",
    "-ai --munge-links --safe-links", "-ai --munge-links --no-munge-links", "-ai --checksum-seed=5 -c",
    "-ai --checksum-seed=5 -I --no-W", "-ai --max-alloc=500M", "-ai --max-alloc=1", "-ai --trust-sender", "-ai --stop-after=5",
    "-ai --time-limit=5", "-ai --stop-at=2050/1/1", "-ai --stop-at=2001-01-01", "-ai --stop-at=xx", "-ai --stop-after=0",
    "-ai --iconv=utf8", "-ai --iconv=.", "-ai --iconv=-", "-ai --iconv=utf8 --no-iconv", "-aic --iconv=utf8,utf8", "-aKi",
]
# A daemon without a charset of its own refuses them, and hangs up on stock before both have said all.
CHARSETS = ["-ai --iconv=latin1,utf8", "-a8i --iconv=utf8,latin1", "-a8i --iconv=latin1,utf8", "-as8i --iconv=latin1,utf8"]


def make(source):
    os.makedirs(f"{source}/dir/sub/deep")
    os.mkdir(f"{source}/d\u00e9")
    for name in ("f0", "caf\u00e9", "dir/x", "dir/sub/y", "dir/sub/deep/z", "d\u00e9/\u00e0", "long"):
        trees.write(f"{source}/{name}", name.encode() * (5000 if name == "long" else 1))
    trees.symlink("caf\u00e9", f"{source}/l\u00e9")
    trees.symlink("/rsyncd-munged/f0", f"{source}/munged")
    trees.symlink("../x", f"{source}/up")
    os.mkfifo(f"{source}/pipe")
    trees.finish(f"{source}/pipe", 0o600, 1_600_000_000_000_000_000)
    if trees.IS_ROOT:
        os.mknod(f"{source}/null", 0o020600, os.makedev(1, 3))
        trees.finish(f"{source}/null", 0o600, 1_600_000_000_000_000_000)
    trees.set_directory_times(source)


@pytest.fixture(scope="module")
def site(top):
    with receiver.Site(top, make) as result:
        yield result


@pytest.mark.core
@pytest.mark.parametrize("options", [options for options in JOBS if "iconv" not in options])
def test_local_runs(site, options):
    receiver.assert_same(site, options, "local")


@pytest.mark.parametrize("number, options", enumerate(JOBS))
def test_pulls(site, number, options):
    receiver.assert_same(site, options, "shell", 30 if "seed" in options else 27 + number % 6)
    if "iconv" not in options and number % 2:
        receiver.assert_same(site, options, "daemon", 32)


@pytest.mark.parametrize("options", CHARSETS)
@pytest.mark.parametrize("protocol", [30, 32])
def test_charsets_of_a_pull(site, options, protocol):
    receiver.assert_same(site, options, "shell", protocol)


def test_charsets_of_a_local_run_are_those_of_source_and_destination(site):
    for options in ("-a --iconv=utf8,latin1", "-a --iconv=latin1,utf8", "-a --iconv=utf8"):
        receiver.assert_same(site, options, "local")
    assert os.path.exists(os.path.join(site.place, "d", "caf\u00e9"))


def test_names_of_a_list_are_converted_with_secluded_arguments(site):
    with open(os.path.join(site.place, "names"), "wb") as file:
        file.write(LATIN + b"\nf0\n")
    outcome = receiver.assert_same(site, "-as8i --iconv=latin1,utf8 --files-from=names", "shell")
    assert b"f0" in outcome.tree and LATIN in outcome.tree


def test_words_of_a_secluded_block_are_converted(site):
    """Both ways: by our client to stock's server and by stock's client to ours."""
    target = os.path.join(site.place, "d")
    operand = b"h:" + os.fsencode(site.source) + b"/" + LATIN
    for client, server in ((harness.HUAI, harness.STOCK), (harness.STOCK, harness.HUAI), (harness.STOCK, harness.STOCK)):
        shutil.rmtree(target, ignore_errors=True)
        result = harness.run(client, "-as", "--iconv=latin1,utf8", "-e", site.shell, f"--rsync-path={server}", operand, target + "/")
        assert result.code == 0, result.text
        assert os.listdir(os.fsencode(target)) == [LATIN]


def test_an_unknown_charset_ends_the_run(site):
    for transport in ("local", "shell"):
        outcome = receiver.run(site, harness.HUAI, ["-a", "--iconv=nosuch"], transport)
        assert outcome.result.code == 4 and b'iconv_open("UTF-8", "nosuch") failed' in outcome.result.stderr, outcome.result.text


def linked(target_of):
    """A destination in which `dir` is a symlink."""
    def before(target):
        place = os.path.dirname(target)
        shutil.rmtree(os.path.join(place, "outside"), ignore_errors=True)
        for directory in (os.path.join(target, "real"), os.path.join(place, "outside")):
            os.makedirs(os.path.join(directory, "sub"))
            trees.write(os.path.join(directory, "x"), b"old")
            trees.write(os.path.join(directory, "own"), b"own")
        os.symlink(target_of(target), os.path.join(target, "dir"))
    return before


INSIDE = linked(lambda target: "real")
OUTSIDE = {"relative": linked(lambda target: "../outside"), "absolute": linked(lambda target: os.path.dirname(target) + "/outside"),
           "over the top": linked(lambda target: "../d/real")}


def without_times(tree):
    return {path: {key: value for key, value in entry.items() if key != "mtime" or path not in (b"dir", b"real")}
            for path, entry in tree.items()}


@pytest.mark.core
@pytest.mark.parametrize("options", ["-aKi", "-aKin --delete", "-rKi", "-aKiH --no-i-r", "-aKi --delete-before --exclude=/real"])
@pytest.mark.parametrize("transport", ["local", "shell", "daemon"])
def test_symlinks_to_directories_are_kept(site, transport, options):
    """The time is given to the directory; stock gives it to the symlink, and leaves the directory with that of its last change."""
    stock, ours = (receiver.run(site, program, options.split(), transport, before=INSIDE)
                   for program in (harness.STOCK, harness.HUAI))
    assert ours.result.code == stock.result.code == 0, ours.result.text
    assert receiver.lines_of(ours.result.stdout, harness.HUAI) == receiver.lines_of(stock.result.stdout, harness.STOCK)
    assert trees.differences(without_times(stock.tree), without_times(ours.tree)) == []
    if "n" not in options.split()[0]:
        assert ours.tree[b"dir"]["target"] == "real".encode() and b"real/sub/y" in ours.tree


@pytest.mark.core
@pytest.mark.parametrize("place", OUTSIDE)
@pytest.mark.parametrize("options", ["-aK", "-aK --delete --exclude=/real", "-aK --delete-before --exclude=/real", "-aK --delete-after", "-aKH --no-i-r", "-aK --inplace -I"])
def test_no_kept_symlink_leads_out_of_the_destination(site, place, options):
    outside = os.path.join(site.place, "outside")
    for transport in ("local", "daemon"):
        fresh = {}
        before = lambda target: (OUTSIDE[place](target), fresh.update(trees.describe(outside)))
        outcome = receiver.run(site, harness.HUAI, options.split(), transport, before=before)
        assert outcome.result.code == 23, outcome.result.text
        assert b'/d/dir": Too many levels of symbolic links (40)\n' in outcome.result.stderr, outcome.result.text
        assert trees.differences(fresh, trees.describe(outside)) == []
        assert "target" in outcome.tree[b"dir"] and b"f0" in outcome.tree


REMOVALS = ["-ai", "-aiH --no-i-r", "-ri", "-aiu", "-ai --existing", "-ai --ignore-existing", "-ai --max-size=1", "-ain", "-aiI",
            "-ai --no-specials --no-links"]


@pytest.fixture
def own(place):
    """A source that may go."""
    with receiver.Site(place, lambda source: None) as result:
        yield result


def build_own(source):
    shutil.rmtree(source)
    os.makedirs(f"{source}/dir")
    os.mkdir(f"{source}/empty")
    for name in ("file", "same", "older", "dir/file"):
        trees.write(f"{source}/{name}", name.encode())
    os.link(f"{source}/file", f"{source}/second")
    for name in ("link", "samelink"):
        trees.symlink("file", f"{source}/{name}")
    for name in ("pipe", "samepipe"):
        os.mkfifo(f"{source}/{name}")
        trees.finish(f"{source}/{name}", 0o600, 1_600_000_000_000_000_000)


def with_what_is_there(target):
    source = os.path.join(os.path.dirname(target), "s")
    harness.run(harness.STOCK, "-a", *(f"{source}/{name}" for name in ("same", "samelink", "samepipe")), target)
    trees.write(f"{target}/older", b"longer and newer", mtime_ns=1_800_000_000_000_000_000)


@pytest.mark.parametrize("transport, protocol", [("local", 32), ("shell", 28), ("shell", 31), ("daemon", 32)])
@pytest.mark.parametrize("word", ["--remove-source-files", "--remove-sent-files"])
def test_sources_that_have_arrived_are_removed(own, transport, protocol, word):
    for options in REMOVALS[:3] if transport == "daemon" or protocol == 28 else REMOVALS:
        outcomes = []
        for program in (harness.STOCK, harness.HUAI):
            build_own(own.source)
            outcomes.append(receiver.run(own, program, [*options.split(), word], transport, protocol, before=with_what_is_there,
                                         after=lambda: sorted(trees.walk(own.source))))
        stock, ours = outcomes
        assert ours.result.code == stock.result.code == 0, ours.result.text
        if "H" not in options or word != "--remove-sent-files":
            assert ours.extra == stock.extra, ours.result.text
        assert trees.differences(stock.tree, ours.tree) == [], ours.result.text


@pytest.mark.parametrize("transport", ["local", "shell"])
@pytest.mark.parametrize("extra", ["", "--no-i-r", "-n"])
def test_what_cannot_be_below_an_existing_file_is_told(own, transport, extra):
    """As with stock, but for the item of the directory that could not be made, and the time that stock gives the file."""
    build_own(own.source)
    os.mkdir(f"{own.source}/dir/sub")
    before = lambda target: trees.write(f"{target}/dir", b"a file")
    stock, ours = (receiver.run(own, program, ["-ai", "--ignore-existing", *extra.split()], transport, before=before)
                   for program in (harness.STOCK, harness.HUAI))
    assert ours.result.code == stock.result.code == 23, ours.result.text
    said = [line for line in receiver.lines_of(stock.result.stderr, harness.STOCK) if b"recv_generator" in line]
    assert said == [line for line in receiver.lines_of(ours.result.stderr, harness.HUAI) if b"recv_generator" in line]
    del stock.tree[b"dir"]["mtime"], ours.tree[b"dir"]["mtime"]
    assert trees.differences(stock.tree, ours.tree) == []


def test_timeout_of_a_server_is_told(place):
    os.mkdir(f"{place}/s")
    trees.write(f"{place}/s/file", b"x")
    with harness.Daemon(harness.STOCK, f"use chroot = no\ntimeout = 40\n[m]\npath = {place}/s\n", place) as daemon:
        for words, reported in (([], True), (["--timeout=60"], True), (["--timeout=20"], False), (["--protocol=30"], False)):
            for program in (harness.STOCK, harness.HUAI):
                result = harness.run(program, "-rvvn", *words, daemon.url("m/"), f"{place}/d/")
                assert result.code == 0 and (b"\nSetting --timeout=40 to match server\n" in result.stdout) == reported, result.text


def test_operand_that_ends_in_dots_means_the_contents_of_a_directory(own):
    build_own(own.source)
    os.mkdir(f"{own.source}/dir/sub")
    config = f"use chroot = no\n[m]\npath = {own.source}\n"
    listed = {}
    for program in (harness.STOCK, harness.HUAI):
        with harness.Daemon(program, config, own.place) as daemon:
            for path in ("dir/sub/..", "dir/..", "dir/sub/../", "dir/sub/../..", ".."):
                result = harness.run(harness.STOCK, "-r", "--trust-sender", "--list-only", daemon.url(f"m/{path}"))
                assert result.code == 0, result.text
                listed.setdefault(path, result.stdout)
                assert result.stdout == listed[path]


needs_root = pytest.mark.skipif(not trees.IS_ROOT, reason="needs root")
DEVICE_JOBS = [
    "-ai --write-devices", "-ai --write-devices -n", "-ai --write-devices -c", "-ai --write-devices --no-W", "-aiu --write-devices",
    "-ri --write-devices", "-ai --write-devices --no-write-devices", "-ai --copy-devices", "-ai --copy-devices -n",
    "-aic --copy-devices", "-ai --copy-devices --write-devices",
]


def make_with_devices(source):
    for name, content in (("null", b"5000" * 1250), ("zero", b"small"), ("new", b"n"), ("empty", b"")):
        trees.write(f"{source}/{name}", content)
    for name, minor in (("device", 3), ("full", 7)):
        os.mknod(f"{source}/{name}", 0o020640, os.makedev(1, minor))
        trees.finish(f"{source}/{name}", mtime_ns=1_600_000_000_000_000_000)
    os.mknod(f"{source}/none", 0o020600, os.makedev(250, 77))
    trees.set_directory_times(source)


def with_devices(target):
    for name, minor in (("null", 3), ("zero", 5), ("empty", 3)):
        os.mknod(f"{target}/{name}", 0o020666, os.makedev(1, minor))
        trees.finish(f"{target}/{name}", mtime_ns=1_600_000_000_000_000_000)
    trees.write(f"{target}/device", b"a file")


@needs_root
@pytest.mark.parametrize("transport, protocol", [("local", 32), ("shell", 29), ("shell", 32)])
def test_devices_are_read_and_written(place, transport, protocol):
    with receiver.Site(place, make_with_devices) as site:
        for options in DEVICE_JOBS:
            receiver.assert_same(site, options, transport, protocol, before=with_devices)


@needs_root
def test_our_server_copies_devices_where_it_may(place):
    with receiver.Site(place, make_with_devices) as site:
        words = ["-aic", "--copy-devices", "-e", site.shell]
        results = []
        for server in (harness.STOCK, harness.HUAI):
            shutil.rmtree(f"{place}/d", ignore_errors=True)
            results.append(harness.run(harness.STOCK, *words, f"--rsync-path={server}", f"h:{site.source}/", f"{place}/d/"))
            assert os.lstat(f"{place}/d/full").st_size == 0
        assert [result.code for result in results] == [23, 23] and results[0].stdout == results[1].stdout, results[1].text
        for refuse, code in (("", 4), ("refuse options = !copy-devices\n", 23)):
            with harness.Daemon(harness.HUAI, f"uid = root\ngid = root\nuse chroot = no\n[m]\npath = {site.source}\n{refuse}",
                                place) as daemon:
                result = harness.run(harness.STOCK, "-a", "--copy-devices", daemon.url("m/"), f"{place}/e/")
                assert result.code == code and os.path.exists(f"{place}/e/full") == (code == 23), result.text


@pytest.mark.core
@pytest.mark.parametrize("when", ["--delete-before", "--delete-after", "--delete-delay"])
@pytest.mark.parametrize("trust", [[], ["--insecure-links"]])
@pytest.mark.parametrize("link", [INSIDE, OUTSIDE["relative"]])
def test_nothing_is_deleted_behind_a_symlink(site, when, trust, link):
    """Without -K it is replaced by a directory."""
    outside = os.path.join(site.place, "outside")
    for transport in ("local", "shell"):
        outcome = receiver.assert_same(site, ["-a", when, "--exclude=/real", *trust], transport, before=link)
        assert "target" not in outcome.tree[b"dir"] and b"real/own" in outcome.tree
        assert sorted(os.listdir(outside)) == ["own", "sub", "x"]


def places(target):
    """Symlinks of root and of somebody else, to a directory and to a file."""
    os.makedirs(f"{target}/real/deep")
    trees.write(f"{target}/real/file", b"old")
    for owner, uid in (("own", 0), ("foreign", 65534)):
        for kind, leads_to in (("", "real"), ("-file", "real/file")):
            os.symlink(leads_to, f"{target}/{owner}{kind}")
            os.lchown(f"{target}/{owner}{kind}", uid, uid)


@needs_root
@pytest.mark.core
@pytest.mark.parametrize("trust", [[], ["--insecure-links"]])
@pytest.mark.parametrize("source, destination", [
    ("", "d/own/"), ("", "d/own/new/"), ("", "d/own/new/one/"), ("f0", "d/own/g"), ("f0", "d/own-file"), ("f0", "d/foreign-file"),
    ("", "d/foreign/"), ("", "d/foreign"), ("", "d/foreign/deep/"), ("f0", "d/foreign/"), ("", "d/absent/new/"),
])
def test_destinations_lead_through_no_symlinks_of_others(site, source, destination, trust):
    options = ["-a", "--mkpath", *trust]
    outcome = receiver.assert_same(site, options, "local", path=source, before=places, destination=destination)
    refused = "foreign" in destination and not destination.endswith("-file") and not trust
    assert outcome.result.code == (3 if refused else 0), outcome.result.text
    assert (b"refusing to follow a symlink owned by an untrusted user" in outcome.result.stderr) == refused


@needs_root
def test_nothing_is_made_behind_symlinks_of_others(site):
    """Stock makes the directory before it refuses to enter it."""
    for destination in ("d/foreign/new", "d/foreign/new/one/"):
        outcome = receiver.run(site, harness.HUAI, ["-a", "--mkpath"], "local", before=places, destination=destination)
        assert outcome.result.code == 11 and b"Too many levels of symbolic links" in outcome.result.stderr, outcome.result.text
        assert b"real/new" not in outcome.tree


@needs_root
@pytest.mark.parametrize("trust", [[], ["--insecure-links"]])
@pytest.mark.parametrize("words", [
    ["-a", "--write-batch=link/new", "s/", "t/"], ["-a", "--only-write-batch=link/new", "s/", "t/"], ["-a", "--write-batch=file", "s/", "t/"],
    ["-a", "--read-batch=link/batch", "t/"], ["-a", "--read-batch=file", "t/"],
    ["-a", "--partial-dir={}/link/new", "--delay-updates", "s/", "t/"], ["-a", "--partial-dir={}/link", "--delay-updates", "s/", "t/"],
])
def test_batches_and_places_that_have_to_be_made_likewise(place, words, trust):
    """Behind a symlink of somebody else, to a directory or to a file."""
    found = []
    for program in (harness.STOCK, harness.HUAI):
        top = f"{place}/{os.path.basename(program)}"
        for name in ("s", "t", "real"):
            os.makedirs(f"{top}/{name}")
        trees.write(f"{top}/s/f", b"content")
        trees.write(f"{top}/t/f", b"old content")
        assert harness.run(harness.STOCK, "-a", "--only-write-batch=real/batch", "s/", "t/", cwd=top).code == 0
        for name, target in (("link", "real"), ("file", "real/batch")):
            os.symlink(target, f"{top}/{name}")
            os.lchown(f"{top}/{name}", 65534, 65534)
        result = harness.run(program, *trust, *(word.format(top) for word in words), cwd=top)
        with open(f"{top}/t/f", "rb") as file:
            found.append((result.code, sorted(os.listdir(f"{top}/real")), file.read()))
    assert found[1][0] == 0 if trust else found[1][0] in (3, 11, 23), result.text
    assert found[1][2] == (b"content" if trust and "only" not in words[1] else b"old content"), result.text
    assert found[1] == found[0] or not trust


@needs_root
@pytest.mark.parametrize("option", ["--exclude-from", "--files-from", "--filter=merge,- ", "--link-dest", "--backup-dir", "--temp-dir",
                                    "--partial-dir"])
def test_files_and_directories_of_options_likewise(site, option):
    link = os.path.join(site.place, "by-somebody")
    os.makedirs(f"{site.place}/option-place", exist_ok=True)
    trees.write(f"{site.place}/option-list", b"f0\n")
    os.symlink("option-list" if "from" in option or "merge" in option else "option-place", link)
    os.lchown(link, 65534, 65534)
    try:
        word = option + link if option.endswith(" ") else f"{option}={link}"
        codes = [receiver.run(site, harness.HUAI, ["-ab" if "backup" in option else "-a", *trust, word], "local",
                              before=lambda target: trees.write(f"{target}/f0", b"older")).result.code
                 for trust in ([], ["--insecure-links"])]
        # An alternate destination that cannot be used is none, and so is a place for parts of files.
        assert (codes[0] != 0 or option in ("--link-dest", "--partial-dir")) and codes[1] == 0, codes
    finally:
        os.remove(link)


@pytest.mark.parametrize("options", [[], ["--inplace"], ["--no-whole-file"], ["--partial"], ["--delay-updates"], ["--sparse"], ["-z"]])
def test_a_file_that_outgrew_max_size_on_the_way_is_not_taken(place, options):
    """The list says that it is small, as that of a file that grows is: what is wanted is decided by what comes, too."""
    for name in ("real", "attrs", "dest"):
        os.mkdir(f"{place}/{name}")
    for name, size in (("small", 900), ("grown", 900), ("slightly", 1000)):
        trees.write(f"{place}/attrs/{name}", size.to_bytes(8, "little"))
        trees.write(f"{place}/real/{name}", trees.noise({"grown": 50_000}.get(name, size), name))
        trees.write(f"{place}/dest/{name}", b"old", mtime_ns=1_500_000_000_000_000_000)
    identity = "uid = 0\ngid = 0\n" if trees.IS_ROOT else ""
    config = f"use chroot = no\n{identity}[m]\npath = {place}/attrs\nreal file prefix = {place}/real\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        result = harness.run(harness.HUAI, "-rt", "--max-size=1000", *options, daemon.url("m/"), f"{place}/dest")
        assert result.code == 23, result.text
        assert b"ERROR: grown was listed with 900 bytes, and more than 1000 have come -- update discarded." in result.stderr, result.text
        for name in ("small", "slightly"):
            with open(f"{place}/real/{name}", "rb") as real, open(f"{place}/dest/{name}", "rb") as got:
                assert got.read() == real.read()
        assert os.path.getsize(f"{place}/dest/grown") <= 1000 and sorted(os.listdir(f"{place}/dest")) == ["grown", "slightly", "small"]
        # Without the limit it is taken as it is now.
        assert harness.run(harness.HUAI, "-rt", *options, daemon.url("m/"), f"{place}/dest").code == 0
        assert os.path.getsize(f"{place}/dest/grown") == 50_000
