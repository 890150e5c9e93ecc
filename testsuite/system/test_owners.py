# SPDX-License-Identifier: GPL-3.0-or-later
"""--usermap, --groupmap, --chown, --super: owners of local runs and pulls are those that stock gives."""
import os

import pytest

import receiver
import trees

pytestmark = pytest.mark.skipif(not trees.IS_ROOT, reason="needs root")

OWNERS = (("f0", (0, 0)), ("f33", (33, 33)), ("f1234", (1234, 4321)), ("dir/f65534", (65534, 65534)), ("dir/set", (33, 33)))

MAPS = [
    "-ai --usermap=33:1", "-ai --usermap=www-data:1,*:2", "-ai --usermap=w*:1 --groupmap=[a-w]*:7",
    "-ai --usermap=*:daemon", "-ai --usermap=:daemon --groupmap=:adm", "-ai --usermap=0-99:nobody",
    "-ai --usermap=33:nosuch,34:other,1:5x", "-ai --usermap=99-0:1,-5:1", "-ai --usermap=33:1:2", "-ai --usermap=0:5",
    "-ai --usermap=root:5 --groupmap=r?ot:6", "-ai --usermap=r*t:5 --numeric-ids", "-ai --usermap=*:5 --numeric-ids",
    "-ai --usermap=:5 --groupmap=:6 --numeric-ids", "-ai --usermap=root:5 --numeric-ids", "-ri --usermap=33:5",
    "-ai --usermap=33:5 --no-o", "-ai --usermap=33:4294967295", "-ai --chown=4294967295:4294967295",
    "-ai --chown=bin:adm", "-ai --chown=bin", "-ai --chown=:adm", "-ai --chown=:", "-ain --chown=nosuch:nosuch",
    "-ai --super", "-ai --no-super", "-ai --no-super --chown=bin:adm", "-a --usermap=33:5 --groupmap=33:7 --out-format=%n|%U|%G",
]
NOT_MAPS = ["33", "", "33:", "33:1,", ",33:1", "1-:1", "1-2-3:1", "3x:1", "3*:1", "33:99999999999", "4294967296:1", "1-4294967296:1"]


def make(source):
    os.mkdir(f"{source}/dir")
    for name, owner in OWNERS:
        trees.write(f"{source}/{name}", name.encode(), 0o6755 if name == "dir/set" else 0o644, owner=owner)
    trees.symlink("f0", f"{source}/link", owner=(7, 8))
    os.mkfifo(f"{source}/pipe")
    trees.finish(f"{source}/pipe", 0o600, 1_600_000_000_000_000_000, (33, 2))
    trees.finish(f"{source}/dir", 0o755, owner=(1, 2))
    trees.set_directory_times(source)


@pytest.fixture(scope="module")
def site(workspace):
    top = os.path.join(workspace, "owners")
    os.mkdir(top)
    os.chmod(top, 0o777)
    with receiver.Site(top, make) as result:
        yield result


@pytest.mark.core
@pytest.mark.parametrize("options", MAPS)
def test_owners_of_a_local_run(site, options):
    receiver.assert_same(site, options, "local")


@pytest.mark.parametrize("number, options", enumerate(MAPS))
def test_owners_of_a_pull(site, number, options):
    transport = ("shell", "daemon")[number % 2]
    receiver.assert_same(site, options, transport, 27 + number % 6)


@pytest.mark.parametrize("options", ["-ai --super", "-ai --super --chown=nobody:adm", "-ai --chown=:adm", "-ai --chown=:nogroup",
                                     "-ai --usermap=33:nosuch", "-a --groupmap=33:7 --out-format=%n|%G"])
@pytest.mark.parametrize("transport", ["local", "daemon"])
def test_owners_without_root(site, transport, options):
    if "--super" in options:
        # What follows a refused change of a directory's owner is ours: its mode is still set. So is the mode of a file
        # that nobody may own: read and write by its owner.
        outcome = receiver.run(site, receiver.harness.HUAI, options.split(), transport, user=receiver.NOBODY)
        assert outcome.result.code == 23 and b"Operation not permitted" in outcome.result.stderr, outcome.result.text
        stock = receiver.run(site, receiver.harness.STOCK, options.split(), transport, user=receiver.NOBODY)
        files = [path for path, entry in stock.tree.items() if not entry["mode"].startswith("0o4") and path != b"dir/set"]
        assert trees.differences(*({path: tree.get(path) for path in files} for tree in (stock.tree, outcome.tree))) == []
    else:
        receiver.assert_same(site, options, transport, user=receiver.NOBODY)


@pytest.mark.parametrize("value", NOT_MAPS)
@pytest.mark.parametrize("option", ["--usermap", "--groupmap"])
def test_what_is_no_map_ends_the_run(site, option, value):
    receiver.assert_same(site, ["-av", f"{option}={value}"], "local")
    if option == "--groupmap":
        receiver.assert_same(site, ["-av", f"{option}={value}"], "daemon", 30)


def test_an_owner_that_is_as_mapped_is_left_alone(site):
    before = lambda target: receiver.harness.run(receiver.harness.STOCK, "-a", "--chown=5:6", "s/", "d/", cwd=site.place)
    for transport in ("local", "daemon"):
        outcome = receiver.assert_same(site, "-ai --chown=5:6", transport, before=before)
        assert outcome.result.stdout == b"", outcome.result.text
