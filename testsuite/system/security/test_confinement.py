# SPDX-License-Identifier: GPL-3.0-or-later
"""No request leads outside its module: links, "..", option paths, files that change while they are read
(doc/protocol/08-security.md section 4)."""
import os
import subprocess
import sys
import time

import pytest

import harness
import trees

IS_ROOT = os.geteuid() == 0
root_only = pytest.mark.skipif(not IS_ROOT, reason="needs chroot or other users' files")
IDENTITY = "uid = root\ngid = root\n" if IS_ROOT else ""
STRANGER = 12345
SECRET = b"the secret of another tree"


def make_outer(outer):
    """outer/m is the module, outer/out what must not be reached from it."""
    module, out = os.path.join(outer, "m"), os.path.join(outer, "out")
    for directory in (outer, module, out, f"{module}/real", f"{module}/real/deep", f"{module}/x", f"{module}/x/y", f"{out}/dir"):
        os.mkdir(directory)
        os.chmod(directory, 0o755)
    trees.write(f"{module}/real/f", b"inside")
    trees.write(f"{module}/real/deep/g", b"deep inside")
    trees.write(f"{module}/top", b"top")
    trees.write(f"{out}/secret", SECRET)
    trees.write(f"{out}/dir/secret", SECRET)
    for directory in (out, f"{module}/real"):
        trees.write(f"{directory}/list", b"top\n")
        trees.write(f"{directory}/rules", b"- top\n")
    for target, name in (("real", "rin"), ("../out", "rout"), (f"{module}/real", "ain"), (out, "aout"), ("../m/real", "transit"),
                         ("../real", "x/jump"), ("../../../out", "x/y/far"), ("../out/secret", "fout"), ("real/f", "fin"),
                         ("loop", "loop"), ("nothing", "dangling"), ("../out/list", "list-link"), ("../out/rules", ".rules"),
                         ("real/list", "list-in"), ("real/rules", ".rules-in")):
        trees.symlink(target, f"{module}/{name}")
    return module


def modules(outer):
    """The kinds of the matrix: how a module is confined."""
    kinds = {"plain": f"path = {outer}/m\nuse chroot = no\nmunge symlinks = no",
             "munged": f"path = {outer}/m\nuse chroot = no\nmunge symlinks = yes"}
    if IS_ROOT:
        kinds["chroot"] = f"path = {outer}/m\nuse chroot = yes"
        kinds["inner"] = f"path = {outer}/./m\nuse chroot = yes"
    return kinds


KINDS = ["plain", "munged", "chroot", "inner"] if IS_ROOT else ["plain", "munged"]


@pytest.fixture(scope="module")
def outer(workspace):
    path = os.path.join(workspace, "confinement")
    make_outer(path)
    return path


@pytest.fixture(scope="module")
def pair(workspace, outer):
    """The same modules, served by this program and by stock."""
    daemons = []
    for program, name in ((harness.HUAI, "huai"), (harness.STOCK, "stock")):
        directory = os.path.join(workspace, f"confinement-{name}")
        os.makedirs(directory)
        config = IDENTITY + "".join(f"[{kind}]\n{text}\n" for kind, text in modules(outer).items())
        daemons.append(harness.Daemon(program, config, directory).__enter__())
    yield daemons
    for daemon in daemons:
        daemon.__exit__()


def holds_secret(path):
    for directory, _, names in os.walk(path):
        for name in names:
            file = os.path.join(directory, name)
            if not os.path.islink(file) and os.path.isfile(file):
                with open(file, "rb") as content:
                    if SECRET[:10] in content.read():
                        return True
    return False


def names_below(path):
    """What was received: each name, with the target of a link and the content of a file."""
    found = {}
    for directory, directories, names in os.walk(path):
        for name in directories + names:
            full = os.path.join(directory, name)
            value = None
            if os.path.islink(full):
                value = os.readlink(full)
            elif os.path.isfile(full):
                with open(full, "rb") as content:
                    value = content.read()
            found[os.path.relpath(full, path)] = value
    return found


def pull(daemon, target, words, *options):
    os.makedirs(target)
    result = harness.run(harness.STOCK, "-rlt", *options, *(daemon.url(word) for word in words), f"{target}/")
    assert not holds_secret(target), result.text
    return result


def compare(pair, place, word, *options):
    """Pull from both daemons; the same files arrive and the exit code is the same."""
    huai, stock = (pull(daemon, os.path.join(place, name), [word], *options) for daemon, name in zip(pair, ("huai", "stock")))
    assert names_below(f"{place}/huai") == names_below(f"{place}/stock"), huai.text + stock.text
    assert huai.code == stock.code, huai.text + stock.text
    return huai


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["rin/", "rin/f", "x/jump/", "x/jump/deep/g", "rin/deep/", "x/../rin/f", "fin", "rin"])
def test_links_inside_the_module_are_served(pair, place, kind, word):  # S-072, S-092
    result = compare(pair, place, f"{kind}/{word}")
    assert result.code == 0, result.text
    assert names_below(f"{place}/huai")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["rout/", "rout/secret", "aout/", "aout/secret", "transit/", "transit/f", "ain/", "ain/f", "x/y/far/",
                                  "x/y/far/secret", "loop/", "dangling/"])
def test_links_that_lead_out_are_refused(pair, place, kind, word):  # S-072
    result = compare(pair, place, f"{kind}/{word}")
    assert result.code != 0, result.text
    assert not names_below(f"{place}/huai")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["../out/secret", "..", "../out/", "x/../../out/secret", "/../out/secret", "real/../../../out/"])
def test_parents_are_those_inside_the_module(pair, place, kind, word):  # S-079
    compare(pair, place, f"{kind}/{word}")


LEAD_OUT = {"ain", "aout", "rout", "transit", "x/y/far", "fout", "list-link", ".rules"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [["-L"], ["-k"], ["--copy-unsafe-links"], ["--safe-links"], ["-k", "--no-inc-recursive"],
                                     ["-L", "--no-inc-recursive"], ["-L", "--protocol=29"], ["-kc"]])
def test_following_links_ends_at_the_border(pair, place, kind, options):  # S-086
    """Stock looks at what lies outside, lists it, and fails to open it; here it is not even looked at.

    So a link that leads out is an error where it was to be followed whatever it leads to, and stays a link under -k, which
    follows links to directories only: whether it is one, nobody knows.
    """
    huai, stock = (pull(daemon, os.path.join(place, name), [f"{kind}/"], *options) for daemon, name in zip(pair, ("huai", "stock")))
    received, expected = names_below(f"{place}/huai"), names_below(f"{place}/stock")
    for name in LEAD_OUT:
        got = received.pop(name, "missing")
        expected.pop(name, None)
        assert isinstance(got, str), huai.text  # no directory, no content
    assert received == expected, huai.text + stock.text
    assert received["real/f"] == b"inside"
    if not any(option.startswith("-k") for option in options):
        assert huai.code == stock.code, huai.text + stock.text
    if "-L" in options:
        assert received["rin/f"] == b"inside" and received["x/jump/f"] == b"inside", huai.text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["rout/list", "../out/list", "/../out/list", "aout/list", "list-link", "x/y/far/list"])
def test_files_from_reads_inside_only(pair, place, kind, name):  # S-077, S-078, S-079
    target = os.path.join(place, "t")
    os.makedirs(target)
    result = harness.run(harness.STOCK, "-rlt", f"--files-from=:{name}", pair[0].url(f"{kind}/"), f"{target}/")
    assert result.code != 0, result.text
    assert not names_below(target)


@pytest.mark.parametrize("kind", KINDS)
def test_option_paths_inside_the_module_work(pair, place, kind):  # S-077: what the refusals above and below are compared with
    for name in ("list-in", "rin/list", "/real/../rin/list"):
        target = os.path.join(place, name.replace("/", "-"))
        result = harness.run(harness.STOCK, "-rlt", f"--files-from=:{name}", pair[0].url(f"{kind}/"), f"{target}/")
        assert result.code == 0 and list(names_below(target)) == ["top"], result.text
    result = harness.run(harness.STOCK, "-rlt", "--filter=: .rules-in", pair[0].url(f"{kind}/"), f"{place}/rules/")
    assert result.code == 0 and "top" not in names_below(f"{place}/rules"), result.text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", [": .rules", ": rout/rules", ": ../out/rules", ": /../out/rules", ": aout/rules"])
def test_merge_files_are_read_inside_only(pair, place, kind, rule):  # S-077, S-078, S-079
    """A stock client reads plain merge files itself; per-directory ones are the server's to read."""
    target = os.path.join(place, "t")
    os.makedirs(target)
    result = harness.run(harness.STOCK, "-rlt", f"--filter={rule}", pair[0].url(f"{kind}/"), f"{target}/")
    # Had the rules been read, "top" would be left out.
    assert "top" in names_below(target) or result.code != 0, result.text


SAFE_LINK_VECTORS = ["/etc/passwd", "../x", "a/../../b", "a/../b", "x/..", "a/b", "..", "../..", "../../x", "./../x", "../a/..", "a//../b",
                     "..a", "../", "../../", ".", "./x", "..//x"]


def test_safe_links_judges_as_stock_does(place):  # S-087
    source = os.path.join(place, "source")
    for depth, directory in enumerate(("", "d", "d/e")):
        os.mkdir(os.path.join(source, directory))
        for number, target in enumerate(SAFE_LINK_VECTORS):
            trees.symlink(target, os.path.join(source, directory, f"l{number}"))
    received = []
    for program, name in ((harness.HUAI, "huai"), (harness.STOCK, "stock")):
        with harness.Daemon(program, f"use chroot = no\nmunge symlinks = no\n{IDENTITY}[m]\npath = {source}\n", place) as daemon:
            result = harness.run(harness.STOCK, "-rl", "--safe-links", daemon.url("m/"), f"{place}/{name}/")
            assert result.code == 0, result.text
            received.append(names_below(f"{place}/{name}"))
    assert received[0] == received[1]
    assert "l5" in received[0] and "l0" not in received[0] and "l1" not in received[0] and "d/l1" in received[0]


# --- the two sides of a module with a real file prefix ---

def attr_pair(place, **real):
    """An attr tree with the regular files a and d/b, and a real tree that the test fills otherwise."""
    attrs, contents = os.path.join(place, "attrs"), os.path.join(place, "contents")
    for directory in (attrs, f"{attrs}/d", contents):
        os.mkdir(directory)
        os.chmod(directory, 0o755)
    for name in ("a", "d/b"):
        trees.write(f"{attrs}/{name}", len(SECRET).to_bytes(8, "little"))
    os.mkdir(f"{place}/out")
    trees.write(f"{place}/out/secret", SECRET)
    trees.write(f"{place}/out/b", SECRET)
    return attrs, contents


def attr_config(attrs, contents):
    chroot = "yes" if IS_ROOT else "no"
    return (f"{IDENTITY}[chroot]\npath = {attrs}\nreal file prefix = {contents}\nuse chroot = {chroot}\n"
            f"[plain]\npath = {attrs}\nreal file prefix = {contents}\nuse chroot = no\n")


@pytest.mark.core
@pytest.mark.parametrize("kind", ["plain", "chroot"])
def test_contents_are_not_read_through_links(place, kind):  # S-072, S-086
    attrs, contents = attr_pair(place)
    trees.symlink("../out/secret", f"{contents}/a")
    trees.symlink("../out", f"{contents}/d")
    with harness.Daemon(harness.HUAI, attr_config(attrs, contents), place) as daemon:
        for options in ([], ["-L"], ["--copy-unsafe-links"], ["-c"]):
            result = pull(daemon, os.path.join(place, "t" + "".join(options)), [f"{kind}/"], *options)
            assert result.code in (23, 24), result.text
        result = harness.run(harness.STOCK, "-r", "--list-only", daemon.url(f"{kind}/"))
        assert result.code == 0 and b" d/b\n" in result.stdout, result.text


@pytest.mark.parametrize("kind", ["plain", "chroot"])
def test_a_content_that_is_no_regular_file_does_not_hang(place, kind):  # S-063
    attrs, contents = attr_pair(place)
    os.mkfifo(f"{contents}/a")
    os.mkdir(f"{contents}/d")
    if IS_ROOT:
        os.mknod(f"{contents}/d/b", 0o20666, os.makedev(1, 5))  # /dev/zero never ends
    with harness.Daemon(harness.HUAI, attr_config(attrs, contents), place) as daemon:
        for options in ([], ["-c"]):
            result = pull(daemon, os.path.join(place, "t" + "".join(options)), [f"{kind}/"], *options)
            assert result.code in (23, 24), result.text
            assert result.seconds < 20


SWAPPER = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
a, b = (os.fsencode(word) for word in sys.argv[1:3])
end = time.monotonic() + 100
while time.monotonic() < end:
    for _ in range(1000):
        if libc.renameat2(-100, a, -100, b, 2):
            sys.exit("renameat2: " + os.strerror(ctypes.get_errno()))
    os.getppid() == int(sys.argv[3]) or sys.exit()
"""


class Swapper:
    """Exchanges two names as fast as it can for the length of a `with` block."""

    def __init__(self, first, second):
        self.words = [sys.executable, "-c", SWAPPER, first, second, str(os.getpid())]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stderr=subprocess.PIPE)
        time.sleep(0.3)
        return self

    def __exit__(self, *exception):
        running = self.process.poll() is None
        self.process.kill()
        error = self.process.communicate()[1]
        assert running, error


def fill_race(module):
    for number in range(40):
        trees.write(f"{module}/d/f{number}", b"inside %d" % number)
        trees.write(f"{os.path.dirname(module)}/out/f{number}", SECRET)


@pytest.mark.parametrize("chroot", ["no"] + ["yes"] * IS_ROOT)
@pytest.mark.parametrize("what", ["live", "contents"])
def test_a_directory_swapped_for_a_link_while_it_is_read(place, chroot, what):  # S-075, S-086
    os.makedirs(f"{place}/m/d")
    os.makedirs(f"{place}/out")
    fill_race(f"{place}/m")
    trees.symlink("../out", f"{place}/m/trap")
    config = f"{IDENTITY}use chroot = {chroot}\n[m]\npath = {place}/m\nexclude = trap\n"
    if what == "contents":
        os.makedirs(f"{place}/attrs/d")
        for number in range(40):
            trees.write(f"{place}/attrs/d/f{number}", len(b"inside %d" % number).to_bytes(8, "little"))
        config = f"{IDENTITY}use chroot = {chroot}\n[m]\npath = {place}/attrs\nreal file prefix = {place}/m\n"
    received = set()
    with harness.Daemon(harness.HUAI, config, place) as daemon, Swapper(f"{place}/m/d", f"{place}/m/trap"):
        for number in range(6):
            for options in ([], ["-L"], ["-k", "--no-inc-recursive"]):
                target = os.path.join(place, f"t{number}{''.join(options)}")
                result = pull(daemon, target, ["m/"], *options)
                assert result.code in (0, 23, 24), result.text
                received.update(names_below(target))
    assert any(name.startswith("d/f") for name in received)  # the swapper lets some through


@pytest.mark.parametrize("chroot", ["no"] + ["yes"] * IS_ROOT)
def test_removing_source_files_stays_inside(place, chroot):  # S-085
    outer = os.path.join(place, "tree")
    module = make_outer(outer)
    with harness.Daemon(harness.HUAI, f"{IDENTITY}use chroot = {chroot}\n[m]\npath = {module}\nread only = no\n", place) as daemon:
        for number, word in enumerate(("rout/secret", "x/y/far/secret", "aout/secret", "../out/secret", "fout")):
            result = harness.run(harness.STOCK, "-t", "--remove-source-files", "-L", daemon.url(f"m/{word}"), f"{place}/t{number}/")
            assert not holds_secret(f"{place}/t{number}"), result.text
        assert os.path.exists(f"{outer}/out/secret")
        result = harness.run(harness.STOCK, "-t", "--remove-source-files", daemon.url("m/rin/f"), f"{place}/good/")
        assert result.code == 0 and not os.path.exists(f"{module}/real/f"), result.text


@pytest.mark.parametrize("chroot", ["no"] + ["yes"] * IS_ROOT)
def test_removing_source_files_while_their_directory_is_swapped(place, chroot):  # S-075, S-085
    os.makedirs(f"{place}/m/d")
    os.makedirs(f"{place}/out")
    trees.symlink("../out", f"{place}/m/trap")
    config = f"{IDENTITY}use chroot = {chroot}\n[m]\npath = {place}/m\nread only = no\nexclude = trap\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        for number in range(5):
            fill_race(f"{place}/m")
            for name in os.listdir(f"{place}/out"):  # of the same size and age as inside, so that nothing but the place differs
                trees.write(f"{place}/out/{name}", b"i" * len(b"inside %d" % int(name[1:])))
            with Swapper(f"{place}/m/d", f"{place}/m/trap"):
                harness.run(harness.STOCK, "-rt", "--remove-source-files", daemon.url("m/"), f"{place}/t{number}/")
            assert len(os.listdir(f"{place}/out")) == 40
            if os.path.islink(f"{place}/m/d"):
                os.rename(f"{place}/m/d", f"{place}/m/swap")
                os.rename(f"{place}/m/trap", f"{place}/m/d")
                os.rename(f"{place}/m/swap", f"{place}/m/trap")


# --- what the operator names ---

def foreign(place, name, content):
    """A file and a stranger's symlink to it."""
    os.makedirs(f"{place}/files", exist_ok=True)
    trees.write(f"{place}/files/{name}", content)
    trees.symlink(f"files/{name}", f"{place}/{name}", owner=(STRANGER, STRANGER))
    return f"{place}/{name}"


@root_only
@pytest.mark.parametrize("parameter", ["exclude from", "include from"])
def test_a_strangers_link_to_rules_closes_the_module(place, parameter):  # S-076
    make_outer(f"{place}/tree")
    rules = foreign(place, "rules", b"- top\n")
    with harness.Daemon(harness.HUAI, f"{IDENTITY}use chroot = no\n[m]\npath = {place}/tree/m\n{parameter} = {rules}\n", place) as daemon:
        result = harness.run(harness.STOCK, "-r", "--list-only", daemon.url("m/"))
        assert result.code != 0, result.text
        os.lchown(rules, 0, 0)
        result = harness.run(harness.STOCK, "-r", "--list-only", daemon.url("m/"))
        assert result.code == 0, result.text


@root_only
def test_a_strangers_link_to_the_motd_is_not_read(place):  # S-076
    motd = foreign(place, "motd", SECRET + b"\n")
    with harness.Daemon(harness.HUAI, f"motd file = {motd}\n[m]\npath = {place}\n", place) as daemon:
        assert SECRET not in harness.run(harness.STOCK, daemon.url()).stdout
        os.lchown(motd, 0, 0)
        assert SECRET in harness.run(harness.STOCK, daemon.url()).stdout


@root_only
@pytest.mark.parametrize("parameter", ["path", "real file prefix"])
def test_a_strangers_link_in_a_modules_path_is_refused(place, parameter):  # S-076
    make_outer(f"{place}/tree")
    trees.symlink("tree", f"{place}/via", owner=(STRANGER, STRANGER))
    os.mkdir(f"{place}/attrs")
    trees.write(f"{place}/attrs/top", (3).to_bytes(8, "little"))
    config = {"path": f"path = {place}/via/m\n", "real file prefix": f"path = {place}/attrs\nreal file prefix = {place}/files/m\n"}
    trees.symlink("tree", f"{place}/files")
    with harness.Daemon(harness.HUAI, f"{IDENTITY}use chroot = no\n[m]\n{config[parameter]}", place) as daemon:
        if parameter == "path":
            link = f"{place}/via"
        else:
            link = f"{place}/files"
            os.lchown(link, STRANGER, STRANGER)  # at start-up it was the operator's: else the daemon would not have started
        result = harness.run(harness.STOCK, "-r", daemon.url("m/top"), f"{place}/t/")
        assert result.code != 0 and not os.path.exists(f"{place}/t/top"), result.text
        os.lchown(link, 0, 0)
        result = harness.run(harness.STOCK, "-r", daemon.url("m/top"), f"{place}/t/")
        assert result.code == 0 and os.path.exists(f"{place}/t/top"), result.text


@root_only
@pytest.mark.parametrize("parameter, content", [("lock file", b""), ("log file", b"kept\n")])
def test_a_strangers_link_is_never_written_through(place, parameter, content):  # S-076
    make_outer(f"{place}/tree")
    link = foreign(place, "written", content)
    config = f"{IDENTITY}use chroot = no\n[m]\npath = {place}/tree/m\nmax connections = 2\n{parameter} = {link}\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        result = harness.run(harness.STOCK, "-r", "--list-only", daemon.url("m/"))
        if parameter == "lock file":
            assert result.code != 0 and b"failed to open lock file" in result.stdout + result.stderr, result.text
    with open(f"{place}/files/written", "rb") as file:
        assert file.read() == content


@root_only
@pytest.mark.parametrize("leaf", [True, False])
def test_a_strangers_link_to_the_configuration_is_not_read(place, leaf):  # S-076
    os.mkdir(f"{place}/etc")
    trees.write(f"{place}/etc/real.conf", f"[m]\npath = {place}\n".encode())
    trees.symlink("real.conf" if leaf else "etc", f"{place}/etc/link.conf" if leaf else f"{place}/link", owner=(STRANGER, STRANGER))
    path = f"{place}/etc/link.conf" if leaf else f"{place}/link/real.conf"
    refused = harness.run(harness.HUAI, "--daemon", "--config-check", f"--config={path}")
    assert refused.code != 0, refused.text
    os.lchown(f"{place}/etc/link.conf" if leaf else f"{place}/link", 0, 0)
    accepted = harness.run(harness.HUAI, "--daemon", "--config-check", f"--config={path}")
    assert accepted.code == 0, accepted.text


@root_only
def test_a_link_in_place_of_the_pid_file_is_replaced(place):  # S-076, S-130
    trees.write(f"{place}/precious", b"precious")
    trees.symlink("precious", f"{place}/pid")
    with harness.Daemon(harness.HUAI, f"pid file = {place}/pid\n[m]\npath = {place}\n", place) as daemon:
        with open(f"{place}/pid") as file:
            assert int(file.read()) == daemon.process.pid
    with open(f"{place}/precious", "rb") as file:
        assert file.read() == b"precious"
    assert not os.path.exists(f"{place}/pid")
