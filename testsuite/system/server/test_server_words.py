# SPDX-License-Identifier: GPL-3.0-or-later
"""What -M puts on a server's own command line: filter rules, --chmod, --old-dirs. Ours does what a stock server does.

The client is stock's, the server either of the two.
"""
import os
import shutil

import pytest

import harness
import trees

OLD = b"old"
PULLS = [
    "-M--exclude=*.o", "-M--exclude=a.o --include=a.o", "--include=a.o -M--exclude=a.o", "-M--include=a.o -M--exclude=*.o",
    "-M--exclude=*.o --delete", "-M-F", "-M-FF --delete", "-M-f-_*.o", "-M--filter=._/merged", "-M--filter=:_.sides",
    "-M--exclude-from={lists}/names", "-M--include-from={lists}/wanted -M--exclude-from={lists}/names", "-M-0 -M--exclude-from={lists}/nul",
    "-M--filter=P_*.o", "-M--filter=R_a.o -M--exclude=*.o", "-M--filter=-rC", "-M--exclude=/d", "-M--filter=-/_{top}/src/d",
    "-M--exclude=*.o -M--filter=!", "-M--chmod=F600 -p", "-M--chmod=F600,Dg+s", "-M--chmod=F600 --chmod=Fg+w -p", "-M--old-dirs",
    "-M--exclude-from={lists}/none", "-M--filter=nonsense", "-M--chmod=nonsense", "-M--exclude-from=-",
]
PUSHES = [
    "-M--exclude=*.o", "-M--exclude=*.o --delete", "-M--exclude=*.o --delete-after", "-M--exclude=*.o --delete-excluded",
    "--include=extra.c -M--exclude=extra.* --delete", "-M--include=extra.* --exclude=extra.c --delete",
    "--exclude=extra.c -M--filter=! --delete", "-M--filter=H_*.o --delete", "-M--filter=S_extra.o -M--exclude=*.o --delete",
    "-M--filter=-sC --delete", "-M--filter=:_.sides --delete", "-M--filter=:s_merged --delete", "-M-F --delete-excluded",
    "-M--filter=:_.sides --delete-excluded", "-M--exclude-from={lists}/names --delete", "-M--filter=._/merged --delete",
    "-M--filter=-/_{top}/dst/e --delete", "-M--old-dirs --delete", "-M--chmod=F600 -p", "-M--chmod=F600,Dg+s",
    "-M--chmod=F600 --chmod=Fg+w -p", "-M--exclude-from={lists}/none", "-M--filter=nonsense --delete", "-M--chmod=nonsense",
]


class Site:
    def __init__(self, top):
        self.top = top
        self.source, self.target, self.lists = (os.path.join(top, name) for name in ("src", "dst", "lists"))
        self.shell = harness.make_remote_shell(top)
        self.plain = {}
        self.build()

    def build(self):
        for tree in self.source, self.target, self.lists:
            shutil.rmtree(tree, ignore_errors=True)
            os.mkdir(tree)
        for name in "a.o", "a.c", "b.o", "d/a.o", "d/k.c", "x/deep/f":
            self.write(self.source, name, b"new " + name.encode())
        for name in "extra.o", "extra.c", "b.o", "d/old.o", "d/k.c", "e/f.o", "x/keep":
            self.write(self.target, name, OLD)
        for tree in self.source, self.target:
            self.write(tree, ".rsync-filter", b"- b.*\n")
            self.write(tree, ".sides", b"P *.o\nH *.c\n")
            self.write(tree, "merged", b"- *.o\n")
            self.write(tree, "names", b"*.o\n")
        self.write(self.source, "d/.rsync-filter", b"- k.*\n")
        self.write(self.lists, "names", b"*.o\n")
        self.write(self.lists, "wanted", b"a.o\n")
        self.write(self.lists, "nul", b"a.o\0b.*\0")
        for tree in self.source, self.target:
            trees.set_directory_times(tree)

    @staticmethod
    def write(tree, name, content):
        os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
        trees.write(os.path.join(tree, name), content)

    def words(self, case):
        """_ stands for a blank; "._/merged" is a merge file that lies beside the lists."""
        case = case.replace("._/merged", "._{top}/src/merged") if "{" not in case else case
        return [word.replace("_", " ").format(top=self.top, lists=self.lists) if "-f" in word else word.format(lists=self.lists)
                for word in case.split()]

    def remote(self, direction, case, server, protocol, *options, client=harness.STOCK):
        ends = [f"host:{self.source}/", self.target + "/"] if direction == "pull" else [self.source + "/", f"host:{self.target}/"]
        return harness.run(client, "-e", self.shell, f"--rsync-path={server}", f"--protocol={protocol}", "-rtO", *options,
                           *self.words(case), *ends)

    def result(self, run):
        self.build()
        result = run()
        # The lines of two processes mix; stock and we differ in when a directory is looked at for what is to be deleted.
        lines = sorted(harness.normalise(result.stdout + result.stderr).splitlines())
        return result, (result.code, lines, trees.describe(self.target, since_ns=1_710_000_000_000_000_000))


@pytest.fixture(scope="module")
def site(top):
    return Site(top)


def cases():
    for protocol in 32, 29:
        for direction, words in (("pull", PULLS), ("push", PUSHES)):
            for number, case in enumerate(words):
                if protocol == 29 and number % 6 != 1:
                    continue
                core = [pytest.mark.core] if protocol == 32 and number % 3 == 0 else []
                yield pytest.param(direction, case, protocol, marks=core, id=f"{direction}-{case}-{protocol}")


@pytest.mark.parametrize("direction, case, protocol", cases())
def test_words_for_a_server_alone(site, direction, case, protocol):
    theirs, expected = site.result(lambda: site.remote(direction, case, harness.STOCK, protocol, "-i"))
    ours, got = site.result(lambda: site.remote(direction, case, harness.HUAI, protocol, "-i"))
    assert got == expected, theirs.text + ours.text + "\n".join(trees.differences(expected[2], got[2]))
    if without_effect(direction, case):
        assert got[2] == without(site, direction, case, protocol), ours.text
    else:
        assert got[2] != without(site, direction, case, protocol), "the words say nothing: " + ours.text


def without(site, direction, case, protocol):
    """The tree without the words."""
    options = tuple(word for word in case.split() if not word.startswith("-M"))
    key = direction, protocol, options
    if key not in site.plain:
        result, (code, _, tree) = site.result(lambda: site.remote(direction, "", harness.STOCK, protocol, *options))
        assert code == 0, result.text
        site.plain[key] = tree
    return site.plain[key]


def without_effect(direction, case):
    return case in ("-M--exclude=*.o -M--filter=!", "-M-F --delete-excluded") or (direction == "push" and case in (
        "-M--exclude=*.o", "--exclude=extra.c -M--filter=! --delete", "-M--filter=:s_merged --delete"))


@pytest.mark.core
@pytest.mark.parametrize("direction", ["pull", "push"])
def test_rules_for_extended_attributes(site, direction):
    got = []
    for server in harness.STOCK, harness.HUAI:
        site.build()
        try:
            for name in "user.kept", "user.left":
                os.setxattr(os.path.join(site.source, "a.c"), name, b"value")
        except OSError:
            pytest.skip("no extended attributes here")
        result = site.remote(direction, "-M--filter=-x_user.left", server, 32, "-X")
        assert result.code == 0, result.text
        got.append(sorted(os.listxattr(os.path.join(site.target, "a.c"))))
    assert got == [["user.kept"]] * 2


# --- in a daemon ---

def config(site, *lines):
    owner = ["uid = 0", "gid = 0"] if trees.IS_ROOT else []
    parameters = ["use chroot = no", "exclude = /secret", *owner, *lines]
    return "".join(f"[{name}]\npath = {path}\nread only = no\n" + "".join(f"{line}\n" for line in parameters)
                   for name, path in (("src", site.source), ("dst", site.target)))


class Daemons:
    def __init__(self, site, place, *lines, arguments=()):
        self.site, self.daemons = site, {}
        for program in harness.STOCK, harness.HUAI:
            directory = os.path.join(place, os.path.basename(program))
            os.mkdir(directory)
            self.daemons[program] = harness.Daemon(program, config(site, *lines), directory, arguments)

    def __enter__(self):
        for daemon in self.daemons.values():
            daemon.__enter__()
        return self

    def __exit__(self, *exception):
        for daemon in self.daemons.values():
            daemon.__exit__(*exception)

    def run(self, direction, case, server):
        ends = [self.daemons[server].url("src/"), self.site.target + "/"]
        if direction == "push":
            ends = [self.site.source + "/", self.daemons[server].url("dst/")]
        return self.site.result(lambda: harness.run(harness.STOCK, "-rtOi", *self.site.words(case), *ends))

    def both(self, direction, case):
        theirs, expected = self.run(direction, case, harness.STOCK)
        ours, got = self.run(direction, case, harness.HUAI)
        assert got == expected, theirs.text + ours.text
        return ours


@pytest.mark.core
def test_words_for_a_module(site, place):
    with Daemons(site, place) as daemons:
        for case in ("-M--exclude=*.o", "-M-F", "-M--exclude-from=names", "-M--exclude-from=/names", "-M--filter=._merged",
                     "-M--chmod=F600 -p"):
            assert daemons.both("pull", case).code == 0, case
        for case in "-M--exclude=*.o --delete", "-M--exclude-from=names --delete", "-M--filter=-/_/e --delete", "-M--chmod=F600 -p":
            assert daemons.both("push", case).code == 0, case


@pytest.mark.core
def test_a_module_has_the_last_word_on_modes(site, place):
    with Daemons(site, place, "outgoing chmod = Fo=", "incoming chmod = Fg=") as daemons:
        daemons.both("pull", "-M--chmod=F666 -p")
        assert os.stat(os.path.join(site.target, "a.c")).st_mode & 0o7777 == 0o660
        daemons.both("push", "-M--chmod=F666 -p")
        assert os.stat(os.path.join(site.target, "a.c")).st_mode & 0o7777 == 0o606


@pytest.mark.core
def test_files_that_a_client_cannot_name(site, place):
    """Neither what the module hides nor what lies outside of it is read. A hidden merge file has no rules, as with stock,
    whether it is there or not; everything else is refused."""
    outside = os.path.join(site.top, "outside")
    trees.write(outside, b"*.o\n")
    with Daemons(site, place) as daemons:
        for direction, more in (("pull", ""), ("push", " --delete")):
            for name in "secret", "/d/../secret", "../outside", outside, "link", "none":
                for option in ("-M--exclude-from=", "-M--include-from=", "-M--filter=._")[direction == "push":]:
                    site.build()
                    for tree in site.source, site.target:
                        trees.write(os.path.join(tree, "secret"), b"- *.o\n")
                        os.symlink("../outside", os.path.join(tree, "link"))
                    before = trees.describe(site.target)
                    url = daemons.daemons[harness.HUAI].url("src/" if direction == "pull" else "dst/")
                    ends = [url, site.target + "/"] if direction == "pull" else [site.source + "/", url]
                    result = harness.run(harness.HUAI, "-rt", *site.words(option + name + more), *ends)
                    if name.endswith("secret") and "filter" in option:
                        assert result.code == (0 if direction == "pull" else 23), result.text  # it is not taken either
                        # A rule of the file would have held back the one and protected the other.
                        assert os.path.exists(f"{site.target}/a.o") and (not more or not os.path.exists(f"{site.target}/extra.o"))
                    else:
                        assert result.code in (4, 11), result.text
                        assert trees.describe(site.target) == before, result.text
                    assert b"*.o" not in result.stdout + result.stderr, result.text


def test_refused_words(site, place):
    with Daemons(site, place, "refuse options = chmod exclude*") as daemons:
        for word, name in (("--chmod=F600", "--chmod"), ("--exclude=x", "--exclude"), ("--exclude-from=x", "--exclude-from")):
            _, (code, lines, _) = daemons.run("push", "-M" + word, harness.HUAI)
            assert code == 4 and any(b"refuse " + name.encode() in line for line in lines), lines


@pytest.mark.parametrize("arguments", [["--temp-dir=d"], ["-T", "missing"]])
def test_temp_dir_of_a_daemon(site, place, arguments):
    # Where temp files lie in the destination, a deletion during the transfer may come across them.
    with Daemons(site, place, arguments=arguments) as daemons:
        assert daemons.both("push", "--delete-before").code == (1 if "missing" in arguments else 0)
        daemons.both("push", "-T x")
    os.mkdir(os.path.join(place, "own"))
    with Daemons(site, os.path.join(place, "own"), "temp dir = d", arguments=arguments) as daemons:
        assert daemons.both("push", "--delete-before").code == 0


# --- attr trees of what is pushed ---

@pytest.mark.parametrize("client", [harness.STOCK, harness.HUAI])
@pytest.mark.parametrize("protocol", [27, pytest.param(32, marks=pytest.mark.core)])
def test_attr_tree_of_what_is_pushed(site, client, protocol):
    model = os.path.join(site.top, "model")
    site.build()
    shutil.rmtree(site.target)
    shutil.rmtree(model, ignore_errors=True)
    for directory, _, _ in os.walk(site.source):
        os.utime(directory, (1_680_000_000, 1_680_000_000))
    assert harness.run(harness.HUAI, "-rtp", "--only-send-attrs", site.source + "/", model + "/").code == 0
    for _ in range(2):
        result = site.remote("push", "-M--only-send-attrs -p --no-O", harness.HUAI, protocol, client=client)
        assert result.code == 0, result.text
        assert not trees.differences(trees.describe(model), trees.describe(site.target)), result.text


def test_contents_are_not_given_for_attributes(site):
    site.build()
    shutil.rmtree(site.target)
    before = trees.describe(site.source)
    for options in ["-M--only-send-attrs", "--remove-source-files"], ["-M--only-send-attrs", "--append"], ["--only-send-attrs"]:
        result = site.remote("push", "", harness.HUAI, 32, *options, client=harness.HUAI)
        assert result.code == 4 and b"--only-send-attrs" in result.stderr, result.text
        assert trees.describe(site.source) == before and not os.path.exists(site.target), result.text


PATTERNS = ["*", ".*", "d/*", "*/f", "?.o", "[ab].o", "[!a].o", "[^a].o", "a.*[co]", "none*", "a\\.o", "\\*", "x/../*.c", ".//*.o",
            "**", "*/*", "[", "{a,b}.o", "~", "*/", "d*/.", "*.o d/*"]


@pytest.mark.core
@pytest.mark.parametrize("absolute", [True, False])
def test_wildcards_of_secluded_words_are_the_servers(site, absolute):
    """In sources as in destinations."""
    site.build()
    outcomes = []
    for server in (harness.STOCK, harness.HUAI):
        def run(*words):
            result = harness.run(harness.STOCK, "-rts", "-e", site.shell, f"--rsync-path=cd {site.top}; {server}", *words)
            # Stock looks at them in the order of the directory.
            missing = sorted(line for line in result.stderr.splitlines() if b"link_stat" in line)
            return result.code, missing, sorted(os.listdir(f"{site.top}/out"))
        found = []
        for pattern in PATTERNS:
            shutil.rmtree(f"{site.top}/out", ignore_errors=True)
            os.mkdir(f"{site.top}/out")
            start = site.source if absolute else "src"
            found.append(run(*(f"h:{start}/{word}" for word in pattern.split(" ")), f"{site.top}/out/"))
        for pattern in ("o*", "ou?/", "[o]ut/d1*", "ou?/new*", "none*/"):
            start = f"{site.top}/" if absolute else ""
            shutil.rmtree(f"{site.top}/out")
            os.makedirs(f"{site.top}/out/d1")
            os.mkdir(f"{site.top}/out/d2")
            code, _, names = run(f"{site.source}/a.o", f"h:{start}{pattern}")
            found.append((code, names, os.listdir(f"{site.top}/out/d1"), os.path.exists(f"{site.top}/none*")))
            shutil.rmtree(f"{site.top}/none*", ignore_errors=True)
        shutil.rmtree(f"{site.top}/out")
        outcomes.append(found)
    assert outcomes[1] == outcomes[0]
