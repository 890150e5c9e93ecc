# SPDX-License-Identifier: GPL-3.0-or-later
"""What the owner of a writable module decides: stock clients push the same to a stock daemon and to ours.

Trees, exit codes, what the client prints and what the daemon logs have to agree. What must not leave a module is tested at the end.
"""
import contextlib
import os
import pwd
import re
import subprocess
import time

import pytest

import harness
import rules_grid
import trees

NOBODY = pwd.getpwnam("nobody")
FORMAT = "log format = %o|%f|%n|%L|%l|%i|%U|%G"

# Modules: parameters beside the path. Those of LOGGED write transfer lines.
MODULES = {
    "plain": (),
    "items": ("transfer logging = yes", FORMAT),
    "names": ("transfer logging = yes", "log format = [%f]"),
    "usual": ("transfer logging = yes",),
    "hiding": ("exclude = secret *.key /up/d/hid/ /away", "transfer logging = yes", FORMAT),
    "modes": ("incoming chmod = D2755,F640",),
    "munged": ("munge symlinks = yes",),
    "clean": ("munge symlinks = no",),
    "numeric": ("numeric ids = yes",),
    "reading": ("read only = yes",),
    "writing": ("write only = yes",),
    "refusing": ("refuse options = delete compress",),
    "quiet": ("max verbosity = 0",),
    "ignoring": ("ignore errors = yes",),
}
ROOT_MODULES = {
    "chroot": ("use chroot = yes", "transfer logging = yes", FORMAT),
    "inner": ("use chroot = yes", "inner"),
    "nobody": ("uid = nobody", f"gid = {harness.NOBODY_GROUP}"),
}

# module, path, options, source; the pushes of a line go one after the other into the same place.
JOBS = [
    ("plain", [("up/", "-aH", "src/"), ("up/", "-aH --delete -i", "changed/"), ("up2", "-a -i", "src/f")]),
    ("plain", [("no/such/", "-a", "src/"), ("up/", "-a", "src/f"), ("up/f/x/", "-a", "src/"), ("", "-ai", "src/")]),
    ("plain", [("up/", "-an -i --delete", "src/"), ("a/b/up/", "-ai --mkpath", "src/"), ("../../up/", "-ai", "src/")]),
    ("items", [("up/", "-aHi", "src/"), ("up/", "-aH --delete", "changed/"), ("up/", "-aHn --delete", "src/")]),
    ("names", [("up/", "-a", "src/"), ("up/", "-a --delete -v", "changed/")]),
    ("usual", [("up/", "-a", "src/"), ("up/", "-ab --delete --backup-dir=/kept", "changed/")]),
    ("hiding", [("up/", "-aHi", "src/"), ("up/", "-aHi --delete", "changed/"), ("secret/", "-a", "src/"), ("away", "-a", "src/f")]),
    ("hiding", [("up/", "-a --temp-dir=/away", "src/"), ("up/", "-ab --backup-dir=/away", "src/")]),
    ("modes", [("up/", "-a", "src/"), ("up/", "-rlt -i", "changed/")]),
    ("munged", [("up/", "-a", "links/"), ("up/", "-ai", "links/")]),
    ("munged", [("up/", "-a", "links/"), ("up/l0/", "-a", "src/"), ("up/l1", "-a", "src/"), ("up/l8/", "-an", "src/"),
                ("up/l9/d/", "-a", "src/"), ("up/l9/d", "-a", "src/f"), ("up/l2", "-a", "src/f src/l"), ("up/l3/", "-aK", "src/f"),
                ("up/d/e/l0/x/y/", "-an --mkpath", "src/"), ("up/l4", "-a", "src/f")]),
    ("clean", [("up/", "-a", "links/"), ("up/", "-ai", "links/"), ("", "-a", "links/")]),
    ("numeric", [("up/", "-a", "src/")]),
    ("reading", [("up/", "-a", "src/"), ("up/", "-ab --fake-super", "src/")]),
    ("writing", [("up/", "-a", "src/")]),
    ("refusing", [("up/", "-a --delete", "src/"), ("up/", "-az", "src/"), ("up/", "-a", "src/")]),
    ("quiet", [("up/", "-avv", "src/"), ("up/", "-avv --delete", "changed/")]),
    ("ignoring", [("up/", "-a", "src/"), ("up/", "-a --delete", "changed/ nothing")]),
]
ROOT_JOBS = [
    ("chroot", [("up/", "-aHi", "src/"), ("up/", "-aHi --delete", "changed/"), ("no/such/", "-a", "src/"), ("up/f/x", "-a", "src/f")]),
    ("inner", [("up/", "-aHi", "src/"), ("up/", "-aHi --delete", "changed/"), ("l/", "-a", "links/")]),
    ("nobody", [("up/", "-aH", "src/"), ("up/", "-aHi --delete", "changed/"), ("shut/x/", "-a", "src/")]),
]


def build_source(top):
    for name in ("src", "changed"):
        at = os.path.join(top, name)
        for directory in ("d/hid", "e", "secret"):
            os.makedirs(os.path.join(at, directory))
        trees.write(os.path.join(at, "f"), b"hi\n", owner=(12345, 54321))
        trees.write(os.path.join(at, "d/g"), trees.noise(3000, 1), 0o755)
        trees.write(os.path.join(at, "d/my.key"), b"key\n")
        trees.write(os.path.join(at, "secret/t"), b"t\n")
        trees.write(os.path.join(at, "d/hid/z"), b"z\n")
        trees.symlink("f", os.path.join(at, "l"))
    os.link(os.path.join(top, "src/f"), os.path.join(top, "src/h"))
    trees.write(os.path.join(top, "changed/f"), b"ho\n", 0o600)
    trees.write(os.path.join(top, "changed/d/new"), b"n\n")
    os.unlink(os.path.join(top, "changed/d/g"))
    os.makedirs(os.path.join(top, "links/d/e"))
    for number, target in enumerate(("/abs/x", "../x", "../../x", "../../../x", "a/../../b", "./q", "a//b", "x/..", "..", "/", "../")):
        trees.symlink(target, os.path.join(top, f"links/l{number}"))
        trees.symlink(target, os.path.join(top, f"links/d/e/l{number}"))
    for name in ("src", "changed", "links"):
        trees.set_directory_times(os.path.join(top, name))


def module(name, path, parameters):
    owner = ["uid = 0", "gid = 0"] if trees.IS_ROOT and not any(line.startswith("uid") for line in parameters) else []
    if "inner" in parameters:
        path, parameters = os.path.dirname(path) + "/./" + os.path.basename(path), [line for line in parameters if line != "inner"]
    lines = ["read only = no", "use chroot = no", *owner, *parameters]
    return "\n".join([f"[{name}]", f"path = {path}", *lines]) + "\n"


class Site:
    """One daemon, each module with its own directory."""

    def __init__(self, top, program, name, modules):
        self.top = os.path.join(top, name)
        os.mkdir(self.top)
        config = "timeout = 600\n"
        for number, (module_name, parameters) in enumerate(modules):
            path = self.path(number)
            os.mkdir(path)
            if module_name == "nobody":
                os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)
                os.mkdir(os.path.join(path, "shut"), 0o755)
            trees.set_directory_times(path)
            config += module(f"{module_name}{number}", path, parameters)
        self.daemon = harness.Daemon(program, config, self.top)

    def path(self, number):
        return os.path.join(self.top, f"module{number}")


def all_jobs():
    return JOBS + (ROOT_JOBS if trees.IS_ROOT else [])


@pytest.fixture(scope="module")
def sites(top):
    build_source(top)
    modules = [(name, {**MODULES, **ROOT_MODULES}[name]) for name, _ in all_jobs()]
    with contextlib.ExitStack() as stack:
        result = []
        for program, name in ((harness.STOCK, "stock"), (harness.HUAI, "ours")):
            site = Site(top, program, name, modules)
            stack.enter_context(site.daemon)
            result.append(site)
        yield top, result


# Which name of a hard-link group gets the data, and with it the order of lines, is each server's own business. Neither the
# connections nor the counts of bytes belong here.
def log_lines(site, before):
    time.sleep(0.05)  # the last lines of a session come after the client's end
    lines = [re.sub(r"^\S+ \S+ \[\d+\] ", "", line) for line in site.daemon.log()[before:].splitlines()]
    return sorted(re.sub(r" at \S+\(\d+\) \[(\w+)=.*", r" [\1]", line) for line in lines
                  if not line.startswith(("connect from", "rsync allowed", "sent ", "rsyncd version")))


def pushes(top, site, name, number, jobs):
    """What the clients of one module have seen, and what is left of them."""
    log = len(site.daemon.log())
    seen = []
    since = time.time_ns() - 20_000_000
    for path, options, sources in jobs:
        words = [source if source.startswith("/") else os.path.join(top, source) for source in sources.split()]
        result = harness.run(harness.STOCK, *options.split(), *words, site.daemon.url(f"{name}{number}/{path}"))
        text = harness.normalise(result.stdout + result.stderr, (site.path(number), "MODULE"))
        seen.append((path, options, result.code, sorted(os.fsdecode(text).splitlines())))
    tree = trees.describe(site.path(number), since_ns=since)
    return seen, tree, [line.replace(site.path(number), "MODULE") for line in log_lines(site, log)]


@pytest.mark.core
@pytest.mark.parametrize("number", range(len(all_jobs())), ids=[f"{name}-{number}" for number, (name, _) in enumerate(all_jobs())])
def test_module_is_as_stock(sites, number):
    top, (stock, ours) = sites
    name, jobs = all_jobs()[number]
    theirs, their_tree, their_log = pushes(top, stock, name, number, jobs)
    got, tree, log = pushes(top, ours, name, number, jobs)
    assert got == theirs
    if name == "hiding":
        # Stock makes the directories that it refuses.
        their_tree = {path: entry for path, entry in their_tree.items() if not path.endswith((b"/hid", b"/secret"))}
    assert not trees.differences(their_tree, tree)
    # Of sessions that are refused before they start ours does not log what was asked for.
    assert log == their_log or name == "refusing"


# --- what must not leave a module ---

@pytest.fixture
def trap(place):
    """A module beside a directory that nobody may touch, with links that lead there; in the module `in` leads to a directory of it."""
    for name in ("m/real", "out", "src"):
        os.makedirs(os.path.join(place, name))
    for name in ("src/f", "src/g"):
        trees.write(os.path.join(place, name), b"new\n")
    make_old(place)
    trees.write(os.path.join(place, "out/f"), b"secret\n")
    os.symlink("../out", os.path.join(place, "m/rout"))
    os.symlink(os.path.join(place, "out"), os.path.join(place, "m/aout"))
    os.symlink("real", os.path.join(place, "m/in"))
    config = module("m", os.path.join(place, "m"), ["munge symlinks = no"])
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        before = trees.describe(os.path.join(place, "out"))
        yield place, daemon
    assert not trees.differences(before, trees.describe(os.path.join(place, "out")))
    assert sorted(os.listdir(place)) == ["m", "out", "rsync-huai.conf", "rsync-huai.log", "src"]


def make_old(place):
    trees.write(os.path.join(place, "m/real/f"), b"older\n", mtime_ns=1_600_000_000_000_000_000)


def push(trap, path, *options):
    place, daemon = trap
    return harness.run(harness.STOCK, "-a", *options, os.path.join(place, "src/"), daemon.url(f"m/{path}"))


@pytest.mark.core
def test_destination_stays_in_the_module(trap):
    # Whether something is there is not to be seen: stock ends with 11 where a link leads to nothing.
    os.symlink(os.path.join(trap[0], "none"), os.path.join(trap[0], "m/anone"))
    for path, code in (("rout/", 3), ("aout/", 3), ("anone/", 3), ("rout/f", 3), ("in/", 0), ("in/../../out/", 0), ("../out/", 0)):
        result = push(trap, path, "--delete")
        assert result.code == code, result.text


@pytest.mark.core
@pytest.mark.parametrize("option", ["--backup-dir", "--temp-dir", "--partial-dir", "--link-dest", "--copy-dest", "--compare-dest"])
def test_named_places_stay_in_the_module(trap, option):
    for link in ("/rout", "../aout/", "../../out"):
        make_old(trap[0])
        result = push(trap, "real/", "-b" if option == "--backup-dir" else "-i", f"{option}={link}", "--partial", "--no-W")
        with open(os.path.join(trap[0], "m/real/f"), "rb") as file:
            assert file.read() == (b"new\n" if result.code == 0 else b"older\n"), result.text


def test_links_in_the_destination_lead_nowhere_else(trap):
    place = trap[0]
    os.makedirs(os.path.join(place, "src/rout"))
    trees.write(os.path.join(place, "src/rout/f"), b"pwn\n")
    for option, code in (("-K", 23), ("-RK", 0), ("-M--insecure-links", 4), ("--inplace", 0), ("--delay-updates", 0), ("-b", 0)):
        for name, target in (("rout", "../out"), ("g", "../out/f")):
            path = os.path.join(place, "m", name)
            if os.path.isdir(path) and not os.path.islink(path):
                os.unlink(os.path.join(path, "f"))
                os.rmdir(path)
            elif os.path.lexists(path):
                os.unlink(path)
            os.symlink(target, path)
        result = push(trap, "", option, "--force")
        assert result.code == code, result.text


def test_hidden_places_are_not_there(place):
    for name in ("m/away", "src"):
        os.makedirs(os.path.join(place, name))
    trees.write(os.path.join(place, "src/f"), b"x\n")
    config = module("m", os.path.join(place, "m"), ["exclude = /away"])
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        for option in ("--link-dest=/away", "--link-dest=../away", "--partial-dir=/away/x", "--copy-dest=../away", "-T/away"):
            result = harness.run(harness.STOCK, "-a", option, os.path.join(place, "src/"), daemon.url("m/up/"))
            assert result.code == 4 and b"Your options have been rejected by the server." in result.stderr, result.text
    assert os.listdir(os.path.join(place, "m")) == ["away"]


@pytest.mark.parametrize("program", [harness.HUAI, harness.STOCK], ids=["ours", "stock"])
def test_a_merge_file_that_is_hidden_has_no_rules(place, program):
    """What is only missing is an error, as ever."""
    for name in ("m/d", "m/private", "src"):
        os.makedirs(os.path.join(place, name))
    for name in ("d/a", "d/b", "d/c"):
        trees.write(os.path.join(place, "m", name), b"x\n")
    trees.write(os.path.join(place, "m/d/.m"), b". /private/rules\n- b\n")
    trees.write(os.path.join(place, "m/d/.gone"), b". /none\n")
    trees.write(os.path.join(place, "m/private/rules"), b"- a\n")
    config = module("m", os.path.join(place, "m"), ["exclude = /private/"])
    with harness.Daemon(program, config, place) as daemon:
        for number, (rule, kept, code) in enumerate((("--filter=: .m", {"a", "c"}, 0), ("-M--filter=. /private/rules", {"a", "b", "c"}, 0),
                                                     ("--filter=: .gone", set(), 11))):
            out = os.path.join(place, f"out{number}")
            result = harness.run(harness.STOCK, "-a", rule, daemon.url("m/d/"), out)
            assert result.code in (code, code and 12), result.text
            assert not kept or {name for name in os.listdir(out) if "." not in name} == kept, result.text
        result = harness.run(harness.STOCK, "-r", "--delete", "--filter=: .m", os.path.join(place, "src/"), daemon.url("m/d/"))
        assert result.code == 0 and os.listdir(os.path.join(place, "m/d")) == ["b"], result.text


@pytest.mark.parametrize("rule", [": .rules", ": /.rules"])
def test_rule_files_of_directories_hide_from_every_request(place, rule):
    """However deep a request begins: those of the directories above count."""
    os.makedirs(os.path.join(place, "m/d/sub"))
    for name in ("d/hid", "d/sub/hid", "d/f", "d/sub/f"):
        trees.write(os.path.join(place, "m", name), b"x\n")
    trees.write(os.path.join(place, "m/d/.rules"), b"- hid\n")
    config = module("m", os.path.join(place, "m"), [f"filter = {rule}"])
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        for word, code in (("", 0), ("d/", 0), ("./d/sub/", 0), ("d/sub", 0), ("d/hid", 23), ("d/sub/hid", 23), ("d/h*", 23)):
            out = os.path.join(place, "out", word.replace("/", "_"))
            result = harness.run(harness.STOCK, "-a", "--mkpath", daemon.url(f"m/{word}"), out + "/")
            found = {name for _, _, files in os.walk(out) for name in files}
            assert result.code == code and "hid" not in found and ("f" in found) == (not code), result.text
        result = harness.run(harness.STOCK, "-a", os.path.join(place, "m/d/f"), daemon.url("m/d/sub/hid"))
        assert result.code == 3, result.text


def test_a_destination_is_hidden_as_what_it_is(place):
    """Stock accepts no directory here: it tests every destination as a file and as a directory."""
    for name in ("m/dir", "src"):
        os.makedirs(os.path.join(place, name))
    trees.write(os.path.join(place, "src/evil.bin"), b"x\n")
    trees.write(os.path.join(place, "src/a.txt"), b"x\n")
    config = module("m", os.path.join(place, "m"), ["include = */ *.txt", "exclude = *"])
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        for source, target, code in (("evil.bin", "evil.bin", 3), ("evil.bin", "./dir/evil.bin", 3), ("a.txt", "dir/evil.bin", 3),
                                     ("a.txt", "dir", 0), ("a.txt", "b.txt", 0), ("", "new", 23)):
            result = harness.run(harness.STOCK, "-a", os.path.join(place, "src", source), daemon.url(f"m/{target}"))
            assert result.code == code, result.text
            assert code != 3 or b"ERROR: daemon has excluded destination " in result.stderr, result.text
    assert sorted(trees.describe(os.path.join(place, "m"))) == [b".", b"b.txt", b"dir", b"dir/a.txt", b"new", b"new/a.txt"]


def test_hidden_files_are_no_basis(place):
    """Neither an alternate destination nor a similar name makes a client see what it may not."""
    for name in ("m/up", "m/alt/d", "src/d"):
        os.makedirs(os.path.join(place, name))
    for name in ("m/alt/secret", "m/alt/d/x.key", "src/secret", "src/d/x.key", "src/d/y", "m/up/z.key"):
        trees.write(os.path.join(place, name), trees.noise(5000, 1))
    config = module("m", os.path.join(place, "m"), ["exclude = /alt/secret /alt/d/ *.key"])
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        result = harness.run(harness.STOCK, "-ayy", "--no-W", "--stats", "--copy-dest=../alt", os.path.join(place, "src/"),
                             daemon.url("m/up/"))
    assert result.code == 23 and result.stderr.startswith(b'ERROR: daemon refused to receive file "d/x.key"\n'), result.text
    assert b"Matched data: 0 bytes" in result.stdout and b"Literal data: 10,000 bytes" in result.stdout, result.text


def test_module_of_an_attr_tree_is_never_written(place):
    for name in ("attrs", "real", "src"):
        os.makedirs(os.path.join(place, name))
    trees.write(os.path.join(place, "src/f"), b"x\n")
    config = module("m", os.path.join(place, "attrs"), [f"real file prefix = {place}/real"])
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        result = harness.run(harness.STOCK, "-a", os.path.join(place, "src/"), daemon.url("m/"))
    assert result.code == 1 and b"ERROR: module is listed from an attr tree or snapshot and is read only" in result.stderr, result.text
    assert os.listdir(os.path.join(place, "attrs")) == os.listdir(os.path.join(place, "real")) == []


@pytest.mark.parametrize("options", [["--no-W"], ["--no-W", "--partial-dir=parts"], ["--append-verify"], ["--no-W", "--fuzzy"],
                                     ["--no-W", "--copy-dest=/alt"], ["--no-W", "--inplace", "-b"]])
def test_a_write_only_module_sends_no_sums(place, options):
    for name in ("m/up/parts", "m/alt", "src"):
        os.makedirs(os.path.join(place, name))
    secret, new = b"unknown to who may only write\n" * 20, trees.noise(700, 5)
    for name in ("up/f", "up/parts/f", "up/near", "alt/nearby"):
        trees.write(os.path.join(place, "m", name), secret)
    for name in ("f", "nearby"):
        trees.write(os.path.join(place, "src", name), new, mtime_ns=1_750_000_000_000_000_000)
    config = module("m", os.path.join(place, "m"), ["write only = yes"])
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        tap = rules_grid.Tap(daemon.port)
        result = harness.run(harness.STOCK, "-a", *options, os.path.join(place, "src/"), f"rsync://127.0.0.1:{tap.port}/m/up/")
        heard = tap.take()
        tap.close()
    assert result.code == 0, result.text
    assert rules_grid.weak_sum(secret) not in heard
    with open(os.path.join(place, "m/up/f"), "rb") as file:
        assert file.read() == new


def test_a_write_only_module_sends_no_list_of_names(place):
    for name in ("m", "src"):
        os.makedirs(os.path.join(place, name))
    trees.write(os.path.join(place, "m/list"), b"unknown to who may only write\n")
    config = module("m", os.path.join(place, "m"), ["write only = yes"])
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        tap = rules_grid.Tap(daemon.port)
        result = harness.run(harness.STOCK, "-a", "--files-from=:/list", os.path.join(place, "src"), f"rsync://127.0.0.1:{tap.port}/m/")
        heard = tap.take()
        tap.close()
    assert result.code != 0 and b"ERROR: module is write only" in result.stderr, result.text
    assert b"unknown" not in heard + result.stdout + result.stderr


@pytest.mark.parametrize("rules", [[], ["exclude = /tmp"]])
def test_temp_dir_of_the_owner(place, rules):
    for name in ("m/tmp", "src"):
        os.makedirs(os.path.join(place, name))
    trees.write(os.path.join(place, "src/f"), trees.noise(2_000_000, 1))
    config = module("m", os.path.join(place, "m"), ["temp dir = /tmp", *rules])
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        client = subprocess.Popen([harness.STOCK, "-a", "--bwlimit=1000", os.path.join(place, "src/"), daemon.url("m/up/")],
                                  env=harness.ENVIRONMENT)
        deadline = time.monotonic() + 20
        while not os.listdir(os.path.join(place, "m/tmp")):
            assert time.monotonic() < deadline and client.poll() is None
            time.sleep(0.01)
        assert os.listdir(os.path.join(place, "m/up")) == []
        assert client.wait(harness.CLIENT_SECONDS) == 0
    assert os.listdir(os.path.join(place, "m/up")) == ["f"] and os.listdir(os.path.join(place, "m/tmp")) == []
