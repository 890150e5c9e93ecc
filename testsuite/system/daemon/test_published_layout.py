# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a real file prefix is seen from: the layout of existing deployments, word for word, and every other spelling."""
import os

import pytest

import harness
import trees

IS_ROOT = os.geteuid() == 0
root_only = pytest.mark.skipif(not IS_ROOT, reason="changing the root needs root")

# As published for the earlier implementation of the idea.
PUBLISHED = """\
ignore nonreadable = yes
uid = nobody
gid = nobody
use chroot = yes
read only = true
reverse lookup = no

[foo]
path = /storage/./mirror-attrs/foo
real file prefix = /mirrors/foo

[barz]
path = /storage/mirrors/barz
"""
REFRESH = "cd /storage; rsync-huai -avPH --delete-after --only-send-attrs mirrors/foo/ mirror-attrs/foo/"

# Runs in mounts of its own, as root: $1 is the directory of the test, $2 a free port. The commands of the script run in a root
# that has the programs of this machine, users and groups of its own, and /storage.
CONTAINER = r"""
set -e
root=$1/root; mkdir $root; mount -t tmpfs -o mode=755 tmpfs $root; cd $root
mkdir etc dev tmp storage var var/run out mirrors proc; chmod 1777 tmp
for name in usr bin sbin lib lib64; do
    if [ -L /$name ]; then cp -a /$name $name; elif [ -d /$name ]; then mkdir $name; mount --bind /$name $name; fi
done
cp /etc/ld.so.cache etc/ 2>/dev/null || true
mount -t tmpfs -o mode=755 tmpfs storage; mount --bind $1/out out; mount -t proc proc proc
touch dev/null; mount --bind /dev/null dev/null
printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' > etc/passwd
printf 'root:x:0:\nnobody:x:65534:\n' > etc/group
cp $1/rsyncd.conf etc/rsyncd.conf
mkdir storage/mirrors storage/mirror-attrs storage/mirror-attrs/foo
mount -t tmpfs -o mode=755 tmpfs storage/mirror-attrs/foo
cp -a $1/mirror storage/mirrors/foo; cp -a $1/mirror storage/mirrors/barz
cp -a $1/decoy mirrors/foo
mkdir program; cp $HUAI program/rsync-huai
PATH=/program:$PATH exec chroot . /bin/sh -c "$(cat $1/script)" - $2
"""

SCRIPT = r"""
set -e
(@REFRESH@) > /out/refresh.txt
rsync-huai --daemon --config-check > /out/check.txt 2>&1
rsync-huai --refresh-attrs foo > /out/again.txt 2>&1
rsync-huai --daemon --no-detach --address=127.0.0.1 --port=$1 --log-file=/out/log 2> /out/daemon.txt &
daemon=$!
trap 'kill $daemon; wait $daemon' EXIT
tries=0
until rsync rsync://127.0.0.1:$1/ > /out/modules.txt 2>&1; do
    tries=$((tries + 1)); [ $tries -lt 200 ] || { cat /out/daemon.txt /out/log; exit 3; }; sleep 0.05
done
for module in foo barz; do
    setpriv --reuid=1234 --regid=1234 --clear-groups rsync -avH --no-o --no-g rsync://127.0.0.1:$1/$module/ /out/pulled/$module/
done
mv /storage/mirrors/foo /storage/mirrors/moved
rsync-huai --daemon --config-check > /out/gone.txt 2>&1 || echo "code $?" >> /out/gone.txt
"""


def run_in_container(place, config, script):
    for name, text in (("rsyncd.conf", config), ("script", script)):
        trees.write(os.path.join(place, name), text.encode())
    os.makedirs(os.path.join(place, "out/pulled"))
    os.chown(os.path.join(place, "out/pulled"), 1234, 1234)
    result = harness.run("unshare", "--mount", "--propagation=private", "sh", "-c", CONTAINER, "sh", place,
                         str(harness.free_port()), environment={"HUAI": harness.HUAI})
    if result.code and (b"unshare" in result.stderr or b"mount" in result.stderr):
        pytest.skip("no mounts here: " + result.text)
    assert result.code == 0, result.text


def read(place, name):
    with open(os.path.join(place, "out", name)) as file:
        return file.read()


@root_only
@pytest.mark.core
def test_the_published_layout_word_for_word(place):
    mirror = os.path.join(place, "mirror")
    os.mkdir(mirror)
    trees.build_mirror(mirror)
    trees.write(os.path.join(mirror, "private"), b"not for nobody\n", 0o600)
    os.mkdir(os.path.join(place, "decoy"))
    trees.write(os.path.join(place, "decoy", "README"), b"the host's, not what is inside the root\n")
    run_in_container(place, PUBLISHED, SCRIPT.replace("@REFRESH@", REFRESH))
    assert "README" in read(place, "refresh.txt")
    assert "[foo] /storage/./mirror-attrs/foo, an attr tree of /storage/mirrors/foo\n" in read(place, "check.txt")
    assert "foo: " in read(place, "again.txt") and ", 0 changed, " in read(place, "again.txt")
    assert read(place, "modules.txt").split() == ["foo", "barz"]
    foo, barz = (trees.describe(os.path.join(place, "out/pulled", name)) for name in ("foo", "barz"))
    assert foo[b"README"]["content"] == trees.describe(mirror)[b"README"]["content"]
    assert len(foo) > 30 and b"private" not in foo
    for entry in (*foo.values(), *barz.values()):
        # A stock client now and then touches a directory again after it has set its time.
        if entry["mode"].startswith("0o4"):
            del entry["mtime"]
    assert trees.differences(barz, foo) == []
    gone = read(place, "gone.txt")
    assert ('real file prefix "/mirrors/foo" is /storage/mirrors/foo: No such file or directory; '
            "there is a /mirrors/foo, but the prefix is seen from /storage\n") in gone and gone.endswith("code 1\n"), gone


# --- every spelling ---

class Choice:
    """Four directories that the same prefix could mean, each with its own content and a file of its own name."""

    def __init__(self, top):
        self.top = top
        self.jail = os.path.join(top, "jail")
        for base in ("", self.jail):
            for outer in ("", f"{top}/s"):
                self.fill(f"{base}{outer}{top}/m")
            attrs = f"{base}{top}/s/attrs"
            os.makedirs(attrs)
            trees.write(f"{attrs}/which", (64).to_bytes(8, "little"), mtime_ns=1_600_000_000_000_000_000)

    def fill(self, path):
        os.makedirs(path)
        trees.write(f"{path}/which", self.tag(path), mtime_ns=1_600_000_000_000_000_000)
        trees.write(f"{path}/{self.own_name(path)}", b"")

    def tag(self, path):
        return path.replace(self.top, "TOP").encode().ljust(64)

    def own_name(self, path):
        return path.replace(self.top, "TOP").replace("/", "_")


SPELLINGS = [(chroot, dot, jail) for chroot in ("yes", "unset", "no") for dot in (True, False) for jail in (True, False)]


@root_only
@pytest.mark.parametrize("chroot, dot, jail", SPELLINGS)
def test_one_rule_for_every_spelling_and_every_reader(place, chroot, dot, jail):
    choice = Choice(place)
    base = choice.jail if jail else ""
    expected = base + (f"{place}/s" if dot and chroot != "no" else "") + f"{place}/m"
    config = (f"daemon chroot = {choice.jail}\n" if jail else "") + (
        f"uid = 0\ngid = 0\nuse chroot = {chroot}\n[m]\npath = {place}/s/{'./' if dot else ''}attrs\nreal file prefix = {place}/m\n")
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        assert harness.run(harness.STOCK, "-a", daemon.url("m/"), f"{place}/got/").code == 0, daemon.log()
        with open(f"{place}/got/which", "rb") as file:
            assert file.read() == choice.tag(expected)
        words = [harness.HUAI, f"--config={daemon.config_file}"]
        check = harness.run(*words, "--daemon", "--config-check")
        assert check.code == 0 and f", an attr tree of {expected}\n".encode() in check.stdout, check.text
        refresh = harness.run(*words, "--refresh-attrs")
        assert refresh.code == 0, refresh.text
        assert sorted(os.listdir(f"{base}{place}/s/attrs")) == sorted(os.listdir(expected))
        os.rename(expected, expected + ".moved")
        check = harness.run(*words, "--daemon", "--config-check", "-q")
        assert check.code == 1, check.text
        others = [line for line in check.stderr.decode().splitlines() if "real file prefix" in line]
        assert others and all("No such file or directory" in line for line in others)
        assert all("; there is a " in line for line in others) == (dot or jail), check.text
        answer = harness.run(harness.STOCK, "-a", daemon.url("m/"), f"{place}/not/")
        assert answer.code == 5 and b"chdir failed" in answer.stderr and f'real file prefix "{place}/m"' in daemon.log(), daemon.log()


@root_only
def test_links_are_followed_inside_of_the_new_root(place):
    """As the session does that has changed its root: an absolute link begins there, "..", too, ends there."""
    os.makedirs(f"{place}/s/disk7")
    os.makedirs(f"{place}/s/mirrors")
    os.makedirs(f"{place}/s/attrs")
    trees.write(f"{place}/s/disk7/which", b"inside")
    trees.write(f"{place}/s/attrs/which", (6).to_bytes(8, "little"))
    trees.symlink("/disk7", f"{place}/s/mirrors/absolute")
    trees.symlink("../../../../disk7", f"{place}/s/mirrors/high")
    modules = "".join(f"[{name}]\npath = {place}/s/./attrs\nreal file prefix = /mirrors/{name}\n" for name in ("absolute", "high"))
    with harness.Daemon(harness.HUAI, f"uid = 0\ngid = 0\nuse chroot = yes\n{modules}", place) as daemon:
        for name in ("absolute", "high"):
            result = harness.run(harness.STOCK, "-a", daemon.url(f"{name}/"), f"{place}/got-{name}/")
            assert result.code == 0, result.text + daemon.log()
            with open(f"{place}/got-{name}/which", "rb") as file:
                assert file.read() == b"inside"
            result = harness.run(harness.HUAI, f"--config={daemon.config_file}", "--refresh-attrs", name)
            assert result.code == 0 and f"{name}: 2 entries".encode() in result.stdout, result.text


@root_only
@pytest.mark.parametrize("listener", [True, False])
def test_a_snapshot_is_a_file_of_the_daemon(place, listener):
    """It is seen from the host whatever roots there are, by the listener and by a daemon that is handed a connection."""
    os.makedirs(f"{place}/jail/storage/m")
    trees.write(f"{place}/jail/storage/m/file", b"x")
    config = (f"daemon chroot = {place}/jail\nuid = 0\ngid = 0\n[m]\npath = /storage/./m\nattr snapshot = {place}/m.snap\n"
              "attr snapshot fallback = refuse\n")
    trees.write(f"{place}/first.conf", config.encode())
    refresh = harness.run(harness.HUAI, f"--config={place}/first.conf", "--refresh-attrs")
    assert refresh.code == 0 and os.path.exists(f"{place}/m.snap"), refresh.text
    check = harness.run(harness.HUAI, "--daemon", "--config-check", f"--config={place}/first.conf")
    assert check.code == 0 and b"listed from the snapshot" in check.stdout and b": generation 1, 2 entries" in check.stdout, check.text
    # What is new is not in the list: that comes from the snapshot.
    trees.write(f"{place}/jail/storage/m/later", b"x")
    if listener:
        with harness.Daemon(harness.HUAI, config, place) as daemon:
            result = harness.run(harness.STOCK, "-r", daemon.url("m/"))
    else:
        result = harness.run(harness.STOCK, "-r", "rsync://127.0.0.1/m/", environment={
            "RSYNC_CONNECT_PROG": f"{harness.HUAI} --daemon --config={place}/first.conf --log-file={place}/log"})
    assert result.code == 0 and b" file\n" in result.stdout and b"later" not in result.stdout, result.text


@root_only
def test_the_check_says_where_a_missing_snapshot_lies(place):
    os.makedirs(f"{place}/s/m")
    os.makedirs(f"{place}/s{place}")
    trees.write(f"{place}/s{place}/m.snap", b"")
    trees.write(f"{place}/check.conf", f"uid = 0\ngid = 0\n[m]\npath = {place}/s/./m\nattr snapshot = {place}/m.snap\n".encode())
    check = harness.run(harness.HUAI, "--daemon", "--config-check", "-q", f"--config={place}/check.conf")
    assert f"; there is a {place}/s{place}/m.snap, but an attr snapshot is seen from /\n".encode() in check.stderr, check.text


@pytest.mark.parametrize("name", ["README.md", "packaging/examples/rsyncd.conf", "doc/rsync-huaid.conf.5"])
def test_every_document_has_the_layout_as_published(name):
    with open(os.path.join(harness.SOURCE, name)) as file:
        lines = [line.strip() for line in file]
    assert [line for line in PUBLISHED.splitlines() if line not in lines] == []
    assert any(REFRESH in line for line in lines)
