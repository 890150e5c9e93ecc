# SPDX-License-Identifier: GPL-3.0-or-later
"""File lists that a hostile sender may send, and what a client that pulls makes of them. Each test is named by its
item of doc/protocol/08-security.md section 10; doc/security.md has the whole list."""
import os

import pytest

import raw_client
import raw_sender
import trees
from hostile import FILE_ERROR, LISTS, PARTIAL, PROTOCOL_ERROR, UNSUPPORTED, asked, module, parents, root_only, site
from raw_client import varint
from raw_sender import CHARACTER, DIRECTORY, FIFO, INC_RECURSE, ROOT, SAFE_FLIST, SYMLINK, TOP_DIR, entry


# --- lists: decoding and memory ---

@pytest.mark.core
@pytest.mark.parametrize("name", LISTS)
def test_lists_that_no_program_sends(site, name):
    options, entries, code, words = LISTS[name]
    if name.startswith(("s016", "s017")):
        entries = [entry(b".", DIRECTORY, flags=TOP_DIR, more=entries[0])]
    else:
        entries = [ROOT, *entries]
    with site.pull(options) as sender:
        site.refuses(sender.behave(*entries), code, words)
    assert os.listdir(site.target) == []


def test_s001_first_entries_without_one(site):
    """Fields that an entry takes from the one before, when there is none."""
    with site.pull() as sender:
        site.refuses(sender.behave(entry(b"a", prefix=1)), PROTOCOL_ERROR, "shares 1 bytes")


def test_s006_s012_the_longest_there_may_be(site):
    deep = b"/".join([b"d" * 254] * 16)
    entries = [entry(deep[:255 * depth - 1], DIRECTORY) for depth in range(1, 17)]
    with site.pull() as sender:
        outcome = sender.behave(ROOT, *entries, entry(b"l", SYMLINK, target=b"t" * 4095))
    assert outcome.code in (0, PARTIAL), outcome
    assert len(os.readlink(site.path("l"))) == 4095
    site.is_unharmed()


@pytest.mark.parametrize("mtime", [-2**63, 2**63 - 1])
def test_s011_times_without_a_calendar(site, mtime):
    with site.pull("-rltiv") as sender:
        outcome = sender.behave(ROOT, entry(b"a", DIRECTORY, mtime=mtime))
    assert outcome.code in (0, PARTIAL), outcome
    with raw_sender.pulled("-r", target=None) as sender:
        sender.list(ROOT, entry(b"a", mtime=mtime))
        try:
            sender.serve()
        except raw_client.Closed:
            pass
        outcome = sender.end()
    assert outcome.code in (0, PARTIAL) and " a\n" in outcome.text, outcome


def test_s010_the_longest_file_is_not_made_in_advance(site):
    with site.pull("-rlt", "--preallocate") as sender:
        outcome = sender.behave(ROOT, entry(b"a", size=2**63 - 1), contents={1: b"short"})
    assert outcome.code == FILE_ERROR and "write failed on" in outcome.text, outcome
    assert os.listdir(site.target) == []
    site.is_unharmed()


def test_s014_kinds_that_were_not_asked_for(site):
    with site.pull("-rt") as sender:
        outcome = sender.behave(ROOT, entry(b"f", size=1), entry(b"l", SYMLINK), entry(b"p", FIFO), entry(b"c", CHARACTER),
                                contents={2: b"x"})
    assert outcome.code == 0, outcome
    assert os.listdir(site.target) == ["f"]


@root_only
@pytest.mark.parametrize("numeric", [[], ["--numeric-ids"]])
def test_s015_the_owner_that_means_nobody(site, numeric):
    ids = varint(-1) + varint(-1)
    with site.pull("-rltog", *numeric) as sender:
        sender.list(entry(b".", DIRECTORY, flags=TOP_DIR, owner=varint(0) + varint(0)), entry(b"f", size=0, owner=ids),
                    after=b"" if numeric else b"\0\0")
        try:
            sender.serve()
        except raw_client.Closed:
            pass
        outcome = sender.end()
    assert outcome.code in (0, PARTIAL), outcome
    assert os.stat(site.path("f")).st_uid == os.geteuid()


# --- names ---

@pytest.mark.core
@pytest.mark.parametrize("name, code, words", [
    (b"../x", UNSUPPORTED, "unsafe pathname from sender: ../x"), (b"a/../b", UNSUPPORTED, "unsafe pathname"),
    (b"..", UNSUPPORTED, "unsafe pathname"), (b"/x", UNSUPPORTED, "unsafe pathname"), (b"a/..", UNSUPPORTED, "unsafe pathname"),
    (b"", PROTOCOL_ERROR, "empty file-list name"), (b".", PROTOCOL_ERROR, "rejecting non-directory transfer-root entry: ."),
    (b"./", PROTOCOL_ERROR, "rejecting non-directory transfer-root entry"),
])
@pytest.mark.parametrize("way", ["pull", "push"])
def test_s067_names_that_lead_elsewhere(site, module, way, name, code, words):
    with site.pull() if way == "pull" else module.push() as sender:
        site.refuses(sender.behave(ROOT, entry(name)), code, words)


def test_s067_absolute_names_with_relative_stay_below(site):
    with site.pull("-rltR", "--trust-sender", source="mod/x") as sender:
        outcome = sender.behave(entry(site.outside.encode() + b"/new", size=1), contents={0: b"x"})
    assert outcome.code in (0, PROTOCOL_ERROR, PARTIAL), outcome
    site.is_unharmed()


@pytest.mark.core
@pytest.mark.parametrize("entries", [
    [entry(b"l", SYMLINK, target=b"../outside"), entry(b"l/new", size=1)],
    [entry(b"x"), entry(b"x/y")],
    [entry(b"l", SYMLINK, target=b"../outside"), entry(b"l", DIRECTORY), entry(b"l/new", size=1)],
    [entry(b"l", DIRECTORY), entry(b"l/new", size=1), entry(b"l", SYMLINK, target=b"../outside")],
    [entry(b"l", DIRECTORY), entry(b"l", SYMLINK, target=b"../outside"), entry(b"l/new", size=1)],
    [entry(b"q/r/s", size=1)],
], ids=["link", "file", "link-first", "link-last", "link-between", "none"])
@pytest.mark.parametrize("way", ["pull", "push"])
def test_s069_parents_that_are_none(site, module, way, entries):
    with site.pull("-rlt") if way == "pull" else module.push("-rltK") as sender:
        outcome = sender.behave(ROOT, *entries, contents=dict.fromkeys(range(4), b"x"))
    assert outcome.code in (0, PROTOCOL_ERROR, PARTIAL), outcome
    assert not os.path.exists(f"{site.outside}/new")
    site.is_unharmed()


@pytest.mark.core
@pytest.mark.parametrize("options", ["-rlt", "-rltK"])
@pytest.mark.parametrize("way", ["pull", "push"])
def test_s069_a_planted_link_is_no_directory(site, module, way, options):
    """The destination has a link where the list has a directory."""
    os.symlink(site.outside, site.path("l"))
    os.symlink("../outside", site.path("m"))
    with site.pull(options) if way == "pull" else module.push(options) as sender:
        outcome = sender.behave(ROOT, entry(b"l", DIRECTORY), entry(b"l/new", size=1), entry(b"m", DIRECTORY), entry(b"m/new", size=1),
                                contents=dict.fromkeys(range(5), b"x"))
    assert outcome.code in (0, PARTIAL), outcome
    # What the operator of a client has planted he may follow; a module is not left.
    if way == "push" or options == "-rlt":
        site.is_unharmed()


@pytest.mark.parametrize("name, asked, options", [
    ("other", "mod/file", "-lt"), ("file/other", "mod/file", "-lt"), ("d/deep/x", "mod/d", "-dlt"), ("e", "mod/d", "-rlt"),
    ("fil", "mod/file", "-rlt"), ("files", "mod/file", "-rlt"), ("b", "mod/[ac]", "-rlt"), (".ssh", "mod/*.txt", "-rlt"),
])
def test_s070_names_that_nobody_asked_for(site, name, asked, options):
    entries = [entry(os.fsencode(part), DIRECTORY) for part in parents(name)] + [entry(os.fsencode(name), size=1)]
    with site.pull(options, source=asked) as sender:
        site.refuses(sender.behave(*entries, contents={0: b"x"}), UNSUPPORTED, "rejecting unrequested file-list name")
    with site.pull(options, "--trust-sender", source=asked) as sender:
        outcome = sender.behave(*entries, contents=dict.fromkeys(range(4), b"x"))
    assert outcome.code in (0, PARTIAL), outcome


def test_s070_names_that_were_excluded(site):
    with site.pull("-rlt", "--exclude=*.key") as sender:
        site.refuses(sender.behave(ROOT, entry(b"my.key", size=1)), UNSUPPORTED, "rejecting excluded file-list name: my.key")


def test_s070_a_list_of_names_that_comes_back_longer(site):
    trees.write(f"{site.place}/names", b"one\nd/two\n")
    site.names.append("names")
    site.names.sort()
    with site.pull("-lt", f"--files-from={site.place}/names") as sender:
        site.refuses(sender.behave(ROOT, entry(b"one"), entry(b"three")), UNSUPPORTED, "rejecting unrequested file-list name: three")


@pytest.mark.parametrize("protocol", [30, 32])
@pytest.mark.parametrize("source, options", [("mod/d/./e/f", "-rltR"), ("mod/file", "-rlt"), ("mod/file", "-rltR")])
def test_s071_what_is_only_on_the_way_is_not_swept(site, protocol, source, options):
    """Whatever flags the sender gives to parents and to "." of a single file."""
    trees.write(site.path("precious"), b"kept")
    os.mkdir(site.path("e"))
    trees.write(site.path("e/precious"), b"kept")
    path = source.split("./")[-1] if "./" in source else "file"
    listed = [ROOT] + [entry(os.fsencode(part), DIRECTORY, flags=TOP_DIR) for part in parents(path)]
    with site.pull(options, "--delete", "--force", source=source, protocol=protocol) as sender:
        outcome = sender.behave(*listed, entry(os.fsencode(path), size=1), contents=dict.fromkeys(range(4), b"x"))
    assert outcome.code in (0, UNSUPPORTED, PARTIAL), outcome
    assert os.path.exists(site.path("precious")) and os.path.exists(site.path("e/precious"))


# --- incremental lists ---

@pytest.mark.parametrize("name, lists, words", [
    ("s028", [-101, -101], "second list"), ("s028-later", [-102], "index"), ("s028-far", [-5000], "index"),
])
def test_s028_lists_of_no_directory(site, name, lists, words):
    with site.pull(compat=SAFE_FLIST | INC_RECURSE) as sender:
        sender.list(ROOT, entry(b"d", DIRECTORY))
        for number, ndx in enumerate(lists):
            if name == "s028-later":
                ndx = -103
            sender.data(sender.write_ndx(ndx if name != "s028" else -102) + entry(b"d/x%d" % number) + b"\0")
        site.refuses(sender.end(), PROTOCOL_ERROR, words)


@pytest.mark.core
@pytest.mark.parametrize("name", [b"x", b"e/x", b"d/x/y", b"d", b"dd/x", b"d/../e/x", b"/d/x"])
def test_s068_entries_of_another_directory(site, name):
    with site.pull(compat=SAFE_FLIST | INC_RECURSE) as sender:
        sender.list(ROOT, entry(b"d", DIRECTORY), entry(b"e", DIRECTORY))
        sender.data(sender.write_ndx(-102) + entry(name) + b"\0")
        outcome = sender.end()
    assert outcome.code in (PROTOCOL_ERROR, UNSUPPORTED), outcome
    assert "from sender" in outcome.text, outcome
    site.is_unharmed()


def test_s029_index_of_a_top_that_is_not_listed(site):
    with site.pull("-rlt", source="mod/f", compat=SAFE_FLIST | INC_RECURSE) as sender:
        sender.list(entry(b"f", size=1))
        sender.data(sender.write_ndx(-2))
        ndx, _ = sender.wait_for_request()
        assert ndx == 1
        sender.reply_with(0, b"x")
        outcome = sender.end()
    assert outcome.code == PROTOCOL_ERROR, outcome
