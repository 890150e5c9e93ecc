# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hostile sender may do to a module that it may write to, or to both ends. Each test is named by its
item of doc/protocol/08-security.md section 10; doc/security.md has the whole list."""
import os
import struct

import pytest

import raw_client
import trees
from hostile import IMPATIENCE, LISTS, PARTIAL, PROTOCOL_ERROR, finish, module, root_only, site
from raw_client import ITEM_TRANSFER, varint
from raw_sender import CHARACTER, DIRECTORY, FIFO, HLINK_FIRST, HLINKED, ROOT, SYMLINK, TOP_DIR, entry, literal


# --- uploads ---

def words_of(sender):
    return [payload.decode(errors="replace") for code, payload in sender.messages if code in raw_client.TEXTS]


@pytest.mark.core
@pytest.mark.parametrize("name", ["s006-long", "s008-name", "s009-type", "s013-unknown", "s016-count", "s017-value"])
def test_lists_that_no_program_sends_to_a_module(site, module, name):
    options, entries, code, words = LISTS[name]
    entries = [entry(b".", DIRECTORY, flags=TOP_DIR, more=entries[0])] if options in ("-rltA", "-rltX") else [ROOT, *entries]
    with module.push(options) as sender:
        site.refuses(sender.behave(*entries), code, words)
    assert os.listdir(site.target) == []


@pytest.mark.parametrize("basis, xname, words", [
    (0x83, b"../../x", "refusing malicious fuzzy operation for f"), (0, None, "invalid basis_dir index: 0."),
    (0x84, b"x", "fuzzy"), (0x80, b"n" * 4096, "over-long vstring received (4096 > 4095)"),
])
def test_s080_basis_that_the_sender_chooses(site, module, basis, xname, words):
    trees.write(site.path("f"), b"old")
    with module.push("-rlt") as sender:
        sender.list(ROOT, entry(b"f", size=1))
        ndx, _ = sender.wait_for_request()
        flags = ITEM_TRANSFER | raw_client.ITEM_BASIS | (raw_client.ITEM_XNAME if xname else 0)
        extra = bytes([basis]) + (raw_client.vstring(xname) if xname else b"")
        sender.reply(ndx, tokens=literal(b"x"), flags=flags, extra=extra)
        site.refuses(sender.end(), PROTOCOL_ERROR, words)


def test_s081_a_partial_basis_does_not_redirect(site, module):
    """A link in place of the partial directory, and a sender that says that this is what it goes by."""
    trees.write(site.path("f"), b"old")
    os.symlink("../outside", site.path("partial"))
    with module.push("-rlt", "--partial-dir=partial", "--no-whole-file") as sender:
        sender.list(ROOT, entry(b"f", size=1))
        ndx, _ = sender.wait_for_request()
        extra = b"\x81" + raw_client.vstring(b"secret")
        sender.reply(ndx, (1, 700, 16, 20), struct.pack("<2i", -1, 0), bytes(16),
                     ITEM_TRANSFER | raw_client.ITEM_BASIS | raw_client.ITEM_XNAME, extra)
        finish(sender)
    with open(site.path("f"), "rb") as file:
        assert b"concern" not in file.read()
    site.is_unharmed()


@pytest.mark.core
@pytest.mark.parametrize("option", ["--backup-dir", "--temp-dir", "--partial-dir", "--link-dest", "--copy-dest", "--compare-dest"])
@pytest.mark.parametrize("name, value", [("mod", "rout"), ("inner", "rout"), ("mod", "/rout/../rout"), ("inner", "../outside"),
                                         ("mod", "/absolute")])
def test_s077_s078_s079_places_outside(site, module, name, option, value):
    """The sender behaves; what it names lies outside, or would without the module."""
    os.symlink("../outside", site.path("rout"))
    os.symlink(site.outside, site.path("absolute"))
    trees.write(site.path("secret"), b"old", mode=0o600)
    try:
        with module.push("-rltb" if option == "--backup-dir" else "-rlt", f"{option}={value}", "--no-whole-file", name=name) as sender:
            outcome = sender.behave(ROOT, entry(b"secret", size=20), contents=dict.fromkeys(range(2), b"x" * 20))
            assert "nobody" not in outcome.text and site.place not in "".join(words_of(sender)), outcome
    except raw_client.Closed as closed:
        assert site.place not in str(closed)
    with open(site.path("secret"), "rb") as file:
        assert b"concern" not in file.read()
    assert os.stat(site.path("secret")).st_ino != os.stat(f"{site.outside}/secret").st_ino
    site.is_unharmed()


@pytest.mark.parametrize("option", ["--write-devices", "--copy-as=root", "--insecure-links", "--copy-devices", "--log-file=x",
                                    "--daemon"])
def test_s091_s108_options_that_no_client_has(site, module, option):
    with module.push("-rlt", option) as sender:
        outcome = sender.behave(ROOT, entry(b"f", size=1), contents={1: b"x"})
    assert outcome.code, outcome
    assert os.listdir(site.target) == []
    site.is_unharmed()


@pytest.mark.parametrize("target", [b"../outside", b"/rsyncd-munged/x"])
def test_s088_links_are_munged_on_the_way_in(site, module, target):
    for options in (["-rlt"], ["-rlt", "--no-munge-links"]):
        with module.push(*options, name="munged") as sender:
            sender.behave(ROOT, entry(b"l", SYMLINK, target=target))
        if options == ["-rlt"]:
            assert os.fsencode(os.readlink(site.path("l"))) == b"/rsyncd-munged/" + target
        assert os.readlink(site.path("l")).startswith("/rsyncd-munged/")


@pytest.mark.parametrize("name", [b"hidden", b"hidden/x"])
def test_s113_s123_what_a_module_hides_is_not_written(site, module, name):
    os.mkdir(site.path("hidden"))
    trees.finish(site.path("hidden"), mode=0o700)
    before = trees.describe(site.path("hidden"))
    with module.push("-rltp", "--delete-excluded" if name == b"x" else "--force", name="hides") as sender:
        sender.behave(ROOT, entry(b"hidden", DIRECTORY), *([entry(name, size=1)] if b"/" in name else []),
                      contents=dict.fromkeys(range(3), b"x"))
    assert trees.describe(site.path("hidden")) == before


@root_only
@pytest.mark.parametrize("mode", [CHARACTER, FIFO])
def test_s014_devices_that_were_not_asked_for(site, module, mode):
    with module.push("-rlt") as sender:
        outcome = sender.behave(ROOT, entry(b"c", mode))
    assert outcome.code in (0, None, PARTIAL), outcome
    assert os.listdir(site.target) == []


def test_s013_hard_links_to_what_is_a_link(site, module):
    """The first of a group gives way to a link that leads out before the second is made."""
    os.symlink("../outside/secret", site.path("a"))
    with module.push("-rltH") as sender:
        sender.behave(ROOT, entry(b"a", SYMLINK, flags=HLINKED | HLINK_FIRST, target=b"../outside/secret"),
                      entry(b"b", flags=HLINKED, link=1, size=1)[:6])
    for name in os.listdir(site.target):
        assert os.lstat(site.path(name)).st_ino != os.stat(f"{site.outside}/secret").st_ino
    site.is_unharmed()


def test_s089_names_of_fake_super(site, module):
    """An attribute that would make a file somebody's is dropped."""
    value, name = b"100755 0,0 0:0", b"user.rsync.%stat\0"
    lists = varint(0) + varint(1) + varint(len(name)) + varint(len(value)) + name + value
    with module.push("-rltX") as sender:
        outcome = sender.behave(entry(b".", DIRECTORY, flags=TOP_DIR, more=varint(0) + varint(0)),
                                entry(b"f", size=1, more=lists), contents={1: b"x"})
    assert outcome.code in (0, None, PARTIAL), outcome
    assert not any(part.startswith("user.rsync.") for part in os.listxattr(site.path("f")))


def test_s083_temporary_files_are_gone_after_a_cut(site, module):
    trees.write(site.path("f"), b"old" * 1000)
    with module.push("-rlt", "--no-whole-file") as sender:
        sender.list(ROOT, entry(b"f", size=2_000_000))
        ndx, _ = sender.wait_for_request()
        sender.reply(ndx, tokens=struct.pack("<i", 1_000_000) + b"x" * 500_000)
        sender.abandon()
    site.is_unharmed()
    assert os.stat(site.path("f")).st_size == 3000


# --- links that come with the list, and places that lie in the destination ---

PLACES = {
    "delay": (["--delay-updates"], b".~tmp~"), "partial": (["--partial-dir=p", "--delay-updates"], b"p"),
    "backup": (["-b", "--backup-dir=p"], b"p"), "backup-deep": (["-b", "--backup-dir=p/q"], b"p"), "temp": (["--temp-dir=p"], b"p"),
    "link": (["--link-dest=p"], b"p"), "copy": (["--copy-dest=p"], b"p"),
}


@pytest.mark.core
@pytest.mark.parametrize("way", ["pull", "push"])
@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_s069_s077_a_link_sent_in_place_of_a_directory_that_is_used(site, module, way, is_there, place):
    """What a run keeps in its destination goes by no link that the sender has put there in the same run."""
    options, name = PLACES[place]
    trees.write(site.path("secret"), b"old", mode=0o600)
    if is_there:
        os.mkdir(site.path(os.fsdecode(name)))
    with site.pull("-rlt", "--trust-sender", *options) if way == "pull" else module.push("-rlt", *options) as sender:
        outcome = sender.behave(ROOT, entry(name, SYMLINK, target=b"../outside"), entry(b"secret", size=20),
                                contents=dict.fromkeys(range(4), b"x" * 20))
    assert outcome.seconds < IMPATIENCE
    site.is_unharmed()
    with open(site.path("secret"), "rb") as file:
        assert file.read() in (b"old", b"x" * 20), outcome


@pytest.mark.core
@pytest.mark.parametrize("way", ["pull", "push"])
@pytest.mark.parametrize("options", [[], ["--inplace"], ["--append"], ["--inplace", "-b"]])
def test_s069_a_planted_link_is_no_file(site, module, way, options):
    os.symlink("../outside/secret", site.path("f"))
    os.symlink("../outside/new", site.path("g"))
    with site.pull("-rlt", *options) if way == "pull" else module.push("-rlt", *options) as sender:
        sender.behave(ROOT, entry(b"f", size=30), entry(b"g", size=30), contents=dict.fromkeys(range(3), b"x" * 30))
    site.is_unharmed()


@pytest.mark.core
@pytest.mark.parametrize("way", ["pull", "push"])
@pytest.mark.parametrize("options", [[], ["--inplace"], ["--delay-updates"], ["-b"]])
def test_s069_s075_a_directory_swapped_while_data_comes(site, module, way, options):
    """The request has been made; then the directory becomes a link that leads out."""
    os.mkdir(site.path("d"))
    trees.write(site.path("d/secret"), b"old", mode=0o600)
    with site.pull("-rlt", *options) if way == "pull" else module.push("-rlt", *options) as sender:
        sender.list(ROOT, entry(b"d", DIRECTORY), entry(b"d/secret", size=20))
        ndx, _ = sender.wait_for_request()
        os.rename(site.path("d"), site.path("away"))
        os.symlink("../outside", site.path("d"))
        sender.reply_with(ndx, b"x" * 20)
        outcome = finish(sender)
    assert outcome.code in (0, None, PARTIAL), outcome
    site.is_unharmed()
