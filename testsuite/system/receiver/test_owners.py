# SPDX-License-Identifier: GPL-3.0-or-later
"""--usermap, --groupmap, --chown, --super: owners of local runs and pulls are those that stock gives."""
import os

import pytest

import ends
import harness
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


COPIES = ["-ai --copy-as=nobody", "-ai --copy-as=nobody:daemon", "-ai --copy-as=65534:1", "-ai --copy-as=root",
          "-ai --copy-as=root --copy-as=nobody", "-ai --copy-as=nobody --exclude-from=only-root", "-ai --copy-as=nobody --super",
          "-ai --copy-as=nobody --files-from=only-root", "-aiz --copy-as=nobody --delete"]
NOT_COPIERS = {"nosuch": b"Invalid copy-as user: nosuch", "nobody:nosuch": b"Invalid copy-as group: nosuch", "": b"Invalid copy-as user: ",
               ":daemon": b"Invalid copy-as user: ", "nobody:": b"Invalid copy-as group: ", "12345": b"] getpwuid failed: Success (0)"}


def make_secrets(source):
    os.mkdir(f"{source}/dir")
    trees.write(f"{source}/f0", b"public")
    trees.write(f"{source}/secret", b"of root", 0o600)
    trees.write(f"{source}/dir/group", b"x", 0o664, owner=(0, 65534))
    os.mknod(f"{source}/null", 0o020600, os.makedev(1, 3))
    trees.finish(f"{source}/null", 0o600, 1_600_000_000_000_000_000)
    trees.write(os.path.join(os.path.dirname(source), "only-root"), b"f0\n", 0o600)
    trees.set_directory_times(source)


@pytest.fixture(scope="module")
def secrets(workspace):
    top = os.path.join(workspace, "secrets")
    os.mkdir(top)
    os.chmod(top, 0o755)
    with receiver.Site(top, make_secrets) as result:
        yield result


@pytest.mark.parametrize("options", COPIES)
def test_copies_as_another_user(secrets, options):
    of_nobody = lambda target: os.chown(target, 65534, 65534)
    for transport, protocol in (("local", 32), ("shell", 29), ("daemon", 32)):
        outcome = receiver.assert_same(secrets, options, transport, protocol, before=of_nobody)
        if "=nobody" in options and "exclude" not in options:
            assert outcome.tree[b"f0"]["owner"][0] == 65534
            assert transport != "local" or b"secret" not in outcome.tree


@pytest.mark.parametrize("user", NOT_COPIERS)
@pytest.mark.parametrize("transport", ["local", "daemon"])
def test_nobody_copies_as_an_unknown_user(secrets, transport, user):
    for program in (receiver.harness.STOCK, receiver.harness.HUAI):
        outcome = receiver.run(secrets, program, ["-a", f"--copy-as={user}"], transport)
        assert outcome.result.code == 1 and NOT_COPIERS[user] + b"\n" in outcome.result.stderr, outcome.result.text
        assert outcome.tree is None


def test_only_root_copies_as_another_user(secrets):
    for program in (receiver.harness.STOCK, receiver.harness.HUAI):
        outcome = receiver.run(secrets, program, ["-a", "--copy-as=root"], "local", user=receiver.NOBODY)
        assert outcome.result.code == 1 and b"setgid failed: Operation not permitted (1)" in outcome.result.stderr


def test_server_and_pushing_client_copy_as_another_user(secrets):
    """The secret is read by nobody who may not."""
    for program in (receiver.harness.STOCK, receiver.harness.HUAI):
        for words in (["-M--copy-as=nobody", f"--rsync-path={program}", f"h:{secrets.source}/", "d/"],
                      ["--copy-as=nobody", f"--rsync-path={receiver.harness.STOCK}", "s/", f"h:{secrets.place}/d/"]):
            receiver.shutil.rmtree(f"{secrets.place}/d", ignore_errors=True)
            client = receiver.harness.STOCK if words[0].startswith("-M") else program
            result = receiver.harness.run(client, "-a", "-e", secrets.shell, *words, cwd=secrets.place)
            assert result.code == 23 and b"secret" in result.stderr and b"Permission denied (13)" in result.stderr, result.text
            assert sorted(os.listdir(f"{secrets.place}/d")) == ["dir", "f0", "null"]


@pytest.mark.parametrize("options", ["-r --usermap=*:2 --no-o", "-r --groupmap=*:2 --no-g", "-r --chown=2:3 --no-o", "-r --chown=2:3 --no-g"])
@pytest.mark.parametrize("protocol", [29, 32])
def test_a_map_of_ids_that_are_not_sent_holds_up_no_server(place, options, protocol):
    """Stock's client lets its server wait for their names for ever below protocol 30; at 32 there is nothing to map either."""
    def make(top):
        os.makedirs(f"{top}/s")
        os.mkdir(f"{top}/t")
        trees.write(f"{top}/s/f", b"f", owner=(33, 44))
    expected = ends.run(place, make, options, "push", 32, harness.STOCK, harness.STOCK)[3]
    for server in (harness.STOCK, harness.HUAI):
        result, _, _, tree = ends.run(place, make, options, "push", protocol, harness.HUAI, server)
        assert result.code == 0, result.text
        assert trees.differences(expected, tree) == []
