# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter rules do what they do in stock rsync: random rules over random trees, locally and through a server.

Each trial makes a source tree with rule files in it, a destination tree with other names, and a command line; stock rsync
and the program under test carry it out on copies of their own. The results have to hold the same names. A failure shows its
seed and command: pytest 'testsuite/system/filter/test_filters.py::test_local_copies_take_the_same_names[17]'.
"""
import os
import random
import re
import shutil

import pytest

import harness

DIRECTORIES = ["a", "b", "s", "t", "foo", "sub dir", "CVS", ".git"]
FILES = ["f1", "f2", "x.o", "core", "foo", ".hid", "f?", "a[b]", "back\\slash", "\u00e9", "long.name.txt", "x~", "#tmp",
         "- f1"]
PATTERNS = ["f1", "f*", "*.o", "*", "foo", "foo/", "a/", "a", "b/", "*/", "**", "a/**", "a/***", "/a", "/a/f1", "/*/f2",
            "a/b/*", "**/foo", "s/**/f1", "[a-f]*", "[!a]*", "f[?]", "f\\?", "a\\[b]", "a[[]b]", "*[[:digit:]]", "??", "*.txt",
            "sub dir", "sub?dir/f1", "/", "a//", "./f1", "core", "**o", "b**1", "foo/***", "/**/f1", "*/a/*", "x.?", "\u00e9",
            "back\\slash", "a?b/f1", "[[:alpha:]", "[", "t/f2", "/s/t", "/t/", "***", "s/***/", "#*", "- f1"]
FILTER_FILES = [".r", ".q", ".rsync-filter", ".cvsignore"]


class Trial:
    """Trees and words of one random trial."""

    def __init__(self, seed, place):
        self.random = random.Random(seed)
        self.place = place
        self.source = os.path.join(place, "work", "source")
        self.make_tree(self.source, with_rules=True)

    def make_tree(self, root, with_rules, depth=0):
        os.makedirs(root)
        for name in ["f1", *self.random.sample(FILES, self.random.randint(2, 6))]:
            self.write(os.path.join(root, name), "x")
        if with_rules:
            self.make_rule_files(root, depth)
        if depth < 3:
            some = self.random.sample(DIRECTORIES, self.random.randint(0, 3))
            for name in some if depth else {"a": 0, "b": 0, **dict.fromkeys(some)}:
                if not os.path.exists(os.path.join(root, name)):
                    self.make_tree(os.path.join(root, name), with_rules, depth + 1)

    @staticmethod
    def write(path, text):
        with open(path, "w") as file:
            file.write(text)
        os.utime(path, (1_700_000_000, 1_700_000_000))

    def make_rule_files(self, root, depth):
        for name in FILTER_FILES:
            if self.random.random() > (0.6 if depth else 0.9):
                continue
            if name == ".cvsignore":
                text = " ".join(self.random.choice(PATTERNS) for _ in range(3))
            else:
                text = "".join(self.rule(in_file=name) + "\n" for _ in range(self.random.randint(0, 3)))
            self.write(os.path.join(root, name), text)

    def rule(self, in_file=None):
        """One rule of the new style."""
        chance = self.random.random()
        if in_file and chance < 0.08:
            return "!"
        if in_file != ".q" and chance < 0.18:
            return self.random.choice([":", ":n", ":-", ":e", ":s", ":r", ":p"] if not in_file else [":", ":n"]) + " .q"
        action = self.random.choice(["-", "-", "-", "-", "+", "+", "H", "S", "P", "R"])
        modifiers = "".join(letter for letter in "!p/" if self.random.random() < 0.07)
        if action in "-+":
            modifiers += "".join(letter for letter in "sr" if self.random.random() < 0.07)
        return f"{action}{',' if modifiers else ''}{modifiers} {self.random.choice(PATTERNS)}"

    def rule_options(self):
        options = []
        for _ in range(self.random.randint(1, 5)):
            kind = self.random.random()
            if kind < 0.5:
                options.append("--filter=" + self.rule())
            elif kind < 0.7:
                options.append("--exclude=" + self.random.choice(PATTERNS))
            elif kind < 0.85:
                options.append("--include=" + self.random.choice(["", "- ", "+ "]) + self.random.choice(PATTERNS))
            else:
                options.append(self.random.choice(["--filter=: .r", "-F", "-FF", "-C", "--filter=:C", "--filter=-C",
                                                   "--filter=: /.r", "--filter=:n .r", "--filter=dir-merge,- .cvsignore",
                                                   "--filter=: ../.r"]))
        return options

    def target(self, name):
        return os.path.join(self.place, name)


def names(root):
    found = set()
    for directory, directories, files in os.walk(root):
        for name in directories:
            found.add(os.path.relpath(os.path.join(directory, name), root) + "/")
        for name in files:
            found.add(os.path.relpath(os.path.join(directory, name), root))
    return found


def agree(trial, words, prepare=None, prefixes=None):
    """Run `words` with both programs, each into a destination of its own; compare codes and names."""
    results = {}
    environment = {"HOME": trial.place, "CVSIGNORE": ""}
    for kind, program in (("stock", harness.STOCK), ("huai", harness.HUAI)):
        target = trial.target(kind)
        if prepare:
            shutil.copytree(prepare, target, symlinks=True)
        prefix = prefixes[kind] if prefixes else [program]
        result = harness.run(*prefix, *words, target + "/", cwd=os.path.join(trial.place, "work"), environment=environment)
        results[kind] = (result, names(target) if os.path.isdir(target) else set())
    stock, huai = results["stock"], results["huai"]
    # A server that ends with an error may take the connection down before the client has read which: then the code is 12.
    fatal = not {stock[0].code, huai[0].code} & {0, 23, 24, 25}
    assert fatal or huai[0].code == stock[0].code, f"{stock[0].text}\n{huai[0].text}"
    if not fatal:
        missing, extra = sorted(stock[1] - huai[1]), sorted(huai[1] - stock[1])
        assert not missing and not extra, f"missing {missing}, extra {extra}\n{huai[0].text}"


@pytest.mark.parametrize("seed", range(60))
def test_local_copies_take_the_same_names(seed, place):
    trial = Trial(seed, place)
    form = trial.random.choice([["-r", "source/"], ["-r", "source"], ["-rR", "source/"], ["-rR", "./source/a", "source/f1"],
                                ["-rR", trial.source + "/"], ["-r", "source/a", "source/f1", "source/b"], ["-d", "source/"]])
    agree(trial, form + trial.rule_options())


@pytest.mark.parametrize("seed", range(1000, 1060))
def test_local_deletions_spare_the_same_names(seed, place):
    trial = Trial(seed, place)
    before = os.path.join(place, "before")
    trial.make_tree(before, with_rules=True)
    rules = trial.rule_options()
    modes = ["--delete", "--delete-before", "--delete-during"]
    # Stock applies per-directory rules of other directories, or none, when it removes what is in a doomed directory late.
    if not any(rule.startswith(("--filter=:", "--filter=dir-merge", "-F")) or rule == "-C" for rule in rules):
        modes += ["--delete-delay", "--delete-after"]
    options = ["-r", "-t", trial.random.choice(modes)] + (["--delete-excluded"] if trial.random.random() < 0.3 else [])
    agree(trial, options + rules + ["source/"], prepare=before)


@pytest.mark.parametrize("seed", range(2000, 2040))
def test_stock_clients_pull_the_same_names_from_a_server(seed, place):
    trial = Trial(seed, place)
    shell = harness.make_remote_shell(place)
    protocol = trial.random.choice([29, 30, 31, 32, 32])
    client = [harness.STOCK, f"--protocol={protocol}", "-e", shell]
    prefixes = {"stock": client + [f"--rsync-path={harness.STOCK}"], "huai": client + [f"--rsync-path={harness.HUAI}"]}
    form = trial.random.choice([["-r", f"h:{trial.source}/"], ["-r", f"h:{trial.source}"], ["-rR", f"h:{trial.source}/"],
                                ["-r", "--no-inc-recursive", f"h:{trial.source}/"], ["-rR", f"h:{trial.place}/work/./source/a"],
                                ["-r", f"h:{trial.source}/a", f"h:{trial.source}/b"]])
    agree(trial, form + trial.rule_options(), prefixes=prefixes)


@pytest.mark.parametrize("seed", range(3000, 3015))
def test_modules_show_the_same_names(seed, place):
    trial = Trial(seed, place)
    # Stock drops or turns rules of one side, and misreads negated ones.
    rules = [rule for rule in (trial.rule(in_file=".q") for _ in range(4)) if re.fullmatch(r"[-+](,[p/]*)? [^ ]+", rule)]
    excludes = [pattern for pattern in trial.random.sample(PATTERNS, 3) if " " not in pattern]
    config = (f"use chroot = no\n[mod]\npath = {trial.source}\nexclude = {' '.join(excludes)}\n"
              f"filter = {' '.join(rules)}\n")
    # No name that starts with a dash: what it is differs on purpose (doc/protocol/07-daemon.md section 5.18).
    sources = trial.random.choice([["mod/"], ["mod"], ["mod/a/"], ["mod/a", "mod/b"], ["mod/[a-z]*"], ["mod/?"]])
    with harness.Daemon(harness.STOCK, config, place) as stock, harness.Daemon(harness.HUAI, config, place) as huai:
        words = ["-r"] + trial.rule_options()
        prefixes = {kind: [harness.STOCK] + [daemon.url(source) for source in sources]
                    for kind, daemon in (("stock", stock), ("huai", huai))}
        agree(trial, words, prefixes=prefixes)


# --- single behaviours ---

def copied(place, *words, program=None, cwd=None):
    target = os.path.join(place, "target")
    shutil.rmtree(target, ignore_errors=True)
    result = harness.run(program or harness.HUAI, *words, target + "/", cwd=cwd)
    return result, names(target) if os.path.isdir(target) else set()


@pytest.mark.core
def test_directory_names_are_no_patterns(place):
    """An anchored rule of a per-directory file counts in a directory whose name has wildcards (stock gets this wrong)."""
    source = os.path.join(place, "source")
    for directory in ("a[b]c", "abc"):
        os.makedirs(os.path.join(source, directory))
        for name in ("foo", "bar"):
            Trial.write(os.path.join(source, directory, name), "x")
    Trial.write(os.path.join(source, "a[b]c", ".r"), "- /foo\n")
    result, found = copied(place, "-r", "--filter=: .r", source + "/")
    assert result.code == 0, result.text
    assert found == {"a[b]c/", "a[b]c/.r", "a[b]c/bar", "abc/", "abc/foo", "abc/bar"}


@pytest.mark.core
def test_text_of_a_rule_file_never_reaches_the_client(place):
    source = os.path.join(place, "source")
    os.makedirs(source)
    Trial.write(os.path.join(source, "password"), "top-secret-line\n")
    Trial.write(os.path.join(source, ".inner"), ". /etc/no-such-name\n")
    with harness.Daemon(harness.HUAI, f"use chroot = no\n[mod]\npath = {source}\n", place) as daemon:
        for rule in (": password", ": .inner"):
            result, _ = copied(place, "-r", "--filter=" + rule, daemon.url("mod/"), program=harness.STOCK)
            assert result.code != 0, result.text
            assert b"line 1>" in result.stderr, result.text
            for secret in (b"top-secret", b"no-such-name", os.fsencode(source)):
                assert secret not in result.stdout + result.stderr, result.text


@pytest.mark.core
@pytest.mark.parametrize("link", ["outside", "/outside-absolute"])
def test_merge_files_stay_inside_the_module(place, link):
    """A per-directory file that is a symlink out of the module counts as absent, even as an exclude-only list."""
    source = os.path.join(place, "source")
    os.makedirs(source)
    outside = os.path.join(place, "outside-rules")
    Trial.write(outside, "visible\n")
    Trial.write(os.path.join(source, "visible"), "x")
    os.symlink(outside if link.startswith("/") else "../outside-rules", os.path.join(source, ".m"))
    with harness.Daemon(harness.HUAI, f"use chroot = no\n[mod]\npath = {source}\n", place) as daemon:
        for rule in (":- .m", ":- /../outside-rules", ":- ../outside-rules"):
            result, found = copied(place, "-r", "--filter=" + rule, daemon.url("mod/"), program=harness.STOCK)
            assert result.code == 0, result.text
            assert "visible" in found, rule
