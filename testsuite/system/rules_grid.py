# SPDX-License-Identifier: GPL-3.0-or-later
"""The grid of a module's rules: rule x spelling x place where a client names a path x form of the module.

A cell is one run of a stock client. Its verdict is what a client got to see or to change of what the rule hides: the bytes of the
hidden file anywhere (in output, in trees, on the wire), the name of an entry inside, a block sum of it, any change of the hidden
tree. The same cell is asked of a stock daemon.
"""
import contextlib
import itertools
import os
import shutil
import socket
import stat
import threading

import harness
import trees

SECRET_NAME = "kxsecret"                       # lies in the hidden directory
UNKNOWN_NAME = b"kxunknown"                    # the same; nobody who does not see that knows it
SECRET = (b"- probe\n- " + b"the bytes that nobody may see " * 20)[:600] # also rules, that hide something from who reads them
SECRET_TIME = 920_000_000                      # 1999: shows where attributes of something hidden have got to
OTHER = trees.noise(600, 7)

# name: parameters of the module; the directory in which "private" lies; what it may be.
ONLY = "/d /d/probe /d/f /d/priv /up /up/** /lists /lists/** /top /priv /f /probe"
RULES = {
    "x": ("exclude = private", "", ("dir", "file")),
    "/x": ("exclude = /private", "", ("dir",)),
    "/x/": ("exclude = /private/", "", ("dir",)),
    "/x/***": ("exclude = /private/***", "", ("dir",)),
    "*/x": ("exclude = */private", "d", ("dir", "file")),
    "only": (f"include = {ONLY}\nexclude = *", "", ("dir", "file")),
    "files": ("include = */ *.txt\nexclude = *", "d", ("file",)),
    "none": ("", "", ("dir", "file")),         # hides nothing: shows that each place can betray something
}


# Each leads to the same place below the module's root.
SPELLINGS = {
    "plain": lambda path: path,
    "dot": lambda path: "./" + path,
    "dotdot": lambda path: "./d/../" + path,
    "above": lambda path: "../" + path,
    "slashes": lambda path: "//" + path.replace("/", "//"),
    "wildcard": lambda path: "./" + path.replace("private", "priv[a]te"),
    "trailing": lambda path: path + "/",
}


class Cell:
    """Where, how spelled, under which rule: and the paths that follow from that."""

    def __init__(self, place, rule, kind, spelling, form, chroot):
        self.place, self.rule, self.kind, self.spelling, self.form, self.chroot = place, rule, kind, spelling, form, chroot
        self.key = "|".join((place, rule, kind, spelling, form, chroot))
        self.home = RULES[rule][1]
        self.hidden = f"{self.home}/private".lstrip("/")
        self.secret = f"{self.hidden}/{SECRET_NAME}" if kind == "dir" else self.hidden

    def spell(self, path):
        return SPELLINGS[self.spelling](path)

    def below_home(self, path=""):
        return f"{self.home}/{path}" if self.home else path


# --- places ---

class Run:
    """What a place may use: the module's address, the client's source directories, a fresh directory to write to."""

    def __init__(self, cell, base_url, site):
        self.cell, self.base_url, self.site = cell, base_url, site
        self.out = site.out

    def url(self, path=""):
        return f"{self.base_url}/{path}"

    def source(self, name):
        return os.path.join(self.site.sources[self.cell.kind], name)

    def names_file(self, *names):
        path = os.path.join(self.site.top, "names")
        with open(path, "w") as file:
            file.writelines(name + "\n" for name in names)
        return path


PULLS, PUSHES = {}, {}
SPELLED_ONCE = set() # places whose paths no client can spell in other ways


def pull(name, kinds=("dir", "file"), spelled=True):
    def register(function):
        PULLS[name] = (function, kinds)
        if not spelled:
            SPELLED_ONCE.add(name)
        return function
    return register


def push(name, kinds=("dir", "file"), spelled=True):
    def register(function):
        PUSHES[name] = (function, kinds)
        if not spelled:
            SPELLED_ONCE.add(name)
        return function
    return register


def operands():
    pull("list")(lambda r, c: ["-r", r.url(c.spell(c.hidden))])
    pull("list contents", ("dir",))(lambda r, c: ["-r", r.url(c.spell(c.hidden) + "/")])
    pull("list -d", ("dir",))(lambda r, c: ["-d", r.url(c.spell(c.hidden) + "/")])
    for name, options in (("-a", ["-a"]), ("-s", ["-as"]), ("-R", ["-aR"]), ("old", ["-a", "--old-args"]), ("L", ["-rL"])):
        pull(f"read {name}")(lambda r, c, o=options: [*o, r.url(c.spell(c.secret)), r.out])
        pull(f"contents {name}", ("dir",))(lambda r, c, o=options: [*o, r.url(c.spell(c.hidden) + "/"), r.out])
    pull("cut")(lambda r, c: ["-aR", "--trust-sender", r.url("d/./../" + c.spell(c.secret)), r.out])
    pull("cut behind", ("dir",))(lambda r, c: ["-aR", r.url(c.spell(c.hidden) + "/./" + SECRET_NAME), r.out])
    pull("above it", spelled=False)(lambda r, c: ["-a", r.url(c.below_home()), r.out])
    pull("above it, dot", spelled=False)(lambda r, c: ["-a", r.url("./" + c.below_home()), r.out])
    pull("above it, wildcard", spelled=False)(lambda r, c: ["-a", r.url("./" + c.below_home("*")), r.out])
    pull("missing below it", ("dir",))(lambda r, c: ["-dR", "--delete-missing-args", r.url(c.spell(c.hidden + "/none"))])
    pull("remove")(lambda r, c: ["-a", "--remove-source-files", r.url(c.spell(c.secret)), r.out])


def lists_of_names():
    pull("names")(lambda r, c: ["-a", "--files-from", r.names_file(c.spell(c.secret)), r.url(), r.out])
    pull("names -r", ("dir",))(lambda r, c: ["-ar", "--files-from", r.names_file(c.spell(c.hidden)), r.url(), r.out])
    pull("names -0R")(lambda r, c: ["-a", "--no-R", "--files-from", r.names_file(c.spell(c.secret)), r.url("./"), r.out])
    pull("names below it", ("dir",))(
        lambda r, c: ["-a", "--files-from", r.names_file(SECRET_NAME, "f"), r.url(c.spell(c.hidden)), r.out])
    pull("names of the module")(lambda r, c: ["-a", f"--files-from=:/lists/{c.spelling}", r.url(), r.out])
    pull("hidden names")(lambda r, c: ["-a", "--files-from=:/" + c.spell(c.secret), r.url(), r.out])
    push("hidden names, pushed")(lambda r, c: ["-a", "--files-from=:/" + c.spell(c.secret), r.source("plain"), r.url("up/")])


def rule_files():
    def home(r, c):
        return r.url(c.below_home("/") if c.home else "./")

    pull("dir-merge", ("file",), False)(lambda r, c: ["-a", "--filter=: private", home(r, c), r.out])
    pull("dir-merge inside")(lambda r, c: ["-a", f"--filter=: .merge-{c.spelling}", r.url("d/"), r.out])
    pull("exclude-from")(lambda r, c: ["-a", f"-M--exclude-from=/{c.spell(c.secret)}", r.url("d/"), r.out])
    pull("merge")(lambda r, c: ["-a", f"-M--filter=. /{c.spell(c.secret)}", r.url("d/"), r.out])
    push("dir-merge, pushed", ("file",), False)(
        lambda r, c: ["-r", "--delete", "--filter=: private", r.source("empty/"), home(r, c)])
    push("dir-merge inside, pushed")(
        lambda r, c: ["-r", "--delete", f"--filter=: .merge-{c.spelling}", r.source("empty/"), r.url("d/")])
    push("exclude-from, pushed")(
        lambda r, c: ["-r", "--delete", f"-M--exclude-from=/{c.spell(c.secret)}", r.source("empty/"), r.url("d/")])


def destinations():
    push("into it", ("dir",))(lambda r, c: ["-a", r.source("plain/"), r.url(c.spell(c.hidden) + "/")])
    push("deltas into it", ("dir",))(lambda r, c: ["-aI", "--no-W", r.source("plain/"), r.url(c.spell(c.hidden) + "/")])
    push("onto it")(lambda r, c: ["-aI", "--no-W", r.source("plain/f"), r.url(c.spell(c.secret))])
    push("new in it", ("dir",))(lambda r, c: ["-a", r.source("plain/f"), r.url(c.spell(c.hidden + "/new"))])
    push("mkpath", ("dir",))(lambda r, c: ["-a", "--mkpath", r.source("plain/f"), r.url(c.spell(c.hidden + "/p/q") + "/")])
    push("delete in it", ("dir",))(lambda r, c: ["-r", "--delete", r.source("empty/"), r.url(c.spell(c.hidden) + "/")])
    push("append to it")(lambda r, c: ["-a", "--append-verify", r.source("long/f"), r.url(c.spell(c.secret))])
    push("inplace")(lambda r, c: ["-aI", "--inplace", "--no-W", r.source("plain/f"), r.url(c.spell(c.secret))])
    once = {"spelled": False}
    push("entries", **once)(lambda r, c: ["-a", r.source("same/"), r.url(c.below_home())])
    push("entries, dot", **once)(lambda r, c: ["-a", r.source("same/"), r.url("./" + c.below_home())])
    push("entries -R", **once)(lambda r, c: ["-aR", r.source("same/./private"), r.url("./" + c.below_home())])
    push("checksums", **once)(lambda r, c: ["-acin", r.source("guess/"), r.url("./" + c.below_home())])
    push("delete around it", **once)(lambda r, c: ["-r", "--delete", r.source("empty/"), r.url("./" + c.below_home())])
    push("delete with backups", **once)(
        lambda r, c: ["-rb", "--delete", "--backup-dir=/up/kept", r.source("empty/"), r.url("./" + c.below_home())])
    push("delete missing", **once)(
        lambda r, c: ["-r", "--force", "--delete-missing-args", r.source("empty/private"), r.url("./" + c.below_home())])
    push("another kind", **once)(lambda r, c: ["-a", "--force", r.source("other/"), r.url("./" + c.below_home())])
    push("leader", **once)(lambda r, c: ["-aH", r.source("linked/"), r.url("./" + c.below_home())])
    push("fuzzy", ("file",), False)(lambda r, c: ["-ay", "--no-W", r.source("alike/"), r.url("./" + c.below_home())])


def directories():
    """Options that name one: absolute, from the destination, from the parent of the one name that is written."""
    ways = (("abs", "/", "up/", "/"), ("rel", "../", "up/", "/"), ("one", "../", "up/", "f"), ("top", "", "", "f"))
    uses = (("--backup-dir", "plain", ["-abI"]), ("--temp-dir", "plain", ["-aI"]), ("--partial-dir", "plain", ["-aI", "--no-W"]),
            ("--partial-dir", "plain", ["-aI", "--no-W", "--delay-updates"]), ("--compare-dest", "stolen", ["-ai"]),
            ("--copy-dest", "stolen", ["-a"]), ("--link-dest", "stolen", ["-a"]), ("--link-dest", "plain", ["-aI", "--no-W"]),
            ("--copy-dest", "plain", ["-ayy", "--no-W"]), ("--copy-dest", "linked", ["-aH"]))
    for (option, source, options), (way, before, target, leaf) in itertools.product(uses, ways):
        name = " ".join((option, source, *options[1:], way))
        if leaf and source == "linked" or way in ("rel", "one") and option == "--partial-dir":
            continue # a relative partial directory lies in the destination's
        one, leaf = ("gg", "gg") if leaf and option.endswith("-dest") else (SECRET_NAME, "f") if leaf else ("", "")

        def words(r, c, option=option, source=source, options=options, before=before, target=target, one=one, leaf=leaf):
            return [*options, f"{option}={before}{c.spell(c.hidden)}", r.source(f"{source}/{one}"), r.url(target + leaf)]
        push(name, ("dir",))(words)
        if way == "abs" and option == "--partial-dir":
            push(name + ", below", ("dir",))(
                lambda r, c, options=options: [*options, f"--partial-dir={c.spell('private')}", r.source("plain/"),
                                               r.url(c.below_home())])


def names_made():
    once = {"spelled": False}
    push("suffix", **once)(lambda r, c: ["-abI", "--suffix=ate", r.source("suffix/"), r.url(c.below_home())])
    push("suffix, deleted", **once)(lambda r, c: ["-rb", "--delete", "--suffix=ate", r.source("empty/"), r.url("./" + c.below_home())])
    push("suffix, apart", **once)(
        lambda r, c: ["-abI", f"--backup-dir=/{c.below_home()}", "--suffix=ate", r.source("suffix/"), r.url("up/")])
    push("suffix, in place", **once)(
        lambda r, c: ["-abI", "--inplace", "--no-W", "--suffix=ate", r.source("suffix/"), r.url(c.below_home())])
    push("backup onto it", ("file",), False)(
        lambda r, c: ["-abI", f"--backup-dir=/{c.below_home()}", r.source("same/"), r.url("up/")])
    push("backup below it", **once)(
        lambda r, c: ["-abI", f"--backup-dir=/{c.below_home()}", r.source("nested/"), r.url("up/")])


operands()
lists_of_names()
rule_files()
destinations()
directories()
names_made()

CHROOTS = ("plain", "chroot") if trees.IS_ROOT else ("plain",)
# Where a tree comes from does not depend on the root directory: each with one of both.
FORMS = [form for form in (("live", "plain"), ("live", "chroot"), ("attrs", "chroot"), ("snapshot", "plain")) if form[1] in CHROOTS]


def all_cells():
    for places, forms in ((PULLS, FORMS), (PUSHES, [form for form in FORMS if form[0] == "live"])):
        for place, (_, kinds) in places.items():
            spellings = ("plain",) if place in SPELLED_ONCE else SPELLINGS
            for rule, spelling, (form, chroot) in itertools.product(RULES, spellings, forms):
                for kind in RULES[rule][2]:
                    if kind in kinds:
                        yield Cell(place, rule, kind, spelling, form, chroot)


# --- trees ---

def write_secret(path):
    trees.write(path, SECRET, mtime_ns=SECRET_TIME * 10 ** 9)


def build_module(top, kind, home):
    for name in ("d", "up/sub", "lists"):
        os.makedirs(os.path.join(top, name))
    for directory in ("", "d", "up"):
        for name in ("f", "priv", "probe"):
            trees.write(os.path.join(top, directory, name), b"old " + name.encode() * 140)
    trees.write(os.path.join(top, "top"), b"visible\n")
    trees.write(os.path.join(top, "up", SECRET_NAME), b"old visible file\n" * 20)
    trees.write(os.path.join(top, "up/private"), b"- visible unless its name is hidden\n")
    trees.write(os.path.join(top, "up/sub/private"), b"- visible unless its name is hidden\n")
    hidden = os.path.join(top, home, "private")
    cell = Cell("", next(rule for rule in RULES if RULES[rule][1] == home), kind, "plain", "", "")
    if kind == "file":
        write_secret(hidden)
    else:
        os.makedirs(os.path.join(hidden, "deep"))
        for name in (SECRET_NAME, UNKNOWN_NAME.decode(), "f", "gg", "deep/" + SECRET_NAME):
            write_secret(os.path.join(hidden, name))
        for name in ("deep", ""):
            os.utime(os.path.join(hidden, name), (SECRET_TIME, SECRET_TIME))
    for name, spell in SPELLINGS.items():
        trees.write(os.path.join(top, "lists", name), spell(cell.secret).encode() + b"\n")
        trees.write(os.path.join(top, "d/.merge-" + name), f". /{spell(cell.secret)}\n".encode())


def build_sources(top, kind):
    """What clients push. private, kxsecret: as if its owner knew the names."""
    for name in ("plain", "same", "empty", "other", "linked", "alike", "suffix", "nested/private", "nested/sub", "long", "stolen", "guess"):
        os.makedirs(os.path.join(top, name))
    for name in ("plain/f", "plain/new", "plain/gg", f"plain/{SECRET_NAME}", "alike/privatf", "suffix/priv", "nested/sub/private",
                 "nested/private/f"):
        trees.write(os.path.join(top, name), OTHER)
    trees.write(os.path.join(top, "long/f"), OTHER * 2)
    trees.write(os.path.join(top, "stolen/gg"), OTHER, mtime_ns=SECRET_TIME * 10 ** 9)
    if kind == "file":
        trees.write(os.path.join(top, "same/private"), OTHER)
        trees.write(os.path.join(top, "guess/private"), SECRET)
        os.mkdir(os.path.join(top, "other/private"))
        trees.write(os.path.join(top, "linked/private"), OTHER, mtime_ns=SECRET_TIME * 10 ** 9)
        os.link(os.path.join(top, "linked/private"), os.path.join(top, "linked/zz"))
    else:
        os.mkdir(os.path.join(top, "same/private"))
        os.mkdir(os.path.join(top, "guess/private"))
        trees.write(os.path.join(top, "guess/private", SECRET_NAME), SECRET)
        for name in (SECRET_NAME, "f", "new"):
            trees.write(os.path.join(top, "same/private", name), OTHER)
        trees.write(os.path.join(top, "other/private"), OTHER)
        os.mkdir(os.path.join(top, "linked/private"))
        for name in (f"private/{SECRET_NAME}", "gg"):
            trees.write(os.path.join(top, "linked", name), OTHER, mtime_ns=SECRET_TIME * 10 ** 9)
        os.link(os.path.join(top, "linked/private", SECRET_NAME), os.path.join(top, "linked/zz"))
        os.link(os.path.join(top, "linked/gg"), os.path.join(top, "linked/zy"))


# --- the wire ---

class Tap:
    """Passes connections on to a daemon and keeps what the daemon says."""

    def __init__(self, port):
        self.upstream = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.heard, self.threads = [], []
        self.acceptor = threading.Thread(target=self._accept, daemon=True)
        self.acceptor.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.upstream))
                self._start(client, server, None)
                self._start(server, client, self.heard)

    def _start(self, source, sink, kept):
        thread = threading.Thread(target=self._pump, args=(source, sink, kept), daemon=True)
        self.threads.append(thread)
        thread.start()

    @staticmethod
    def _pump(source, sink, kept):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if kept is not None:
                    kept.append(data)
                with contextlib.suppress(OSError):
                    sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def take(self):
        """What the daemon has said in the connections since the last call. They have ended."""
        for thread in self.threads:
            thread.join(harness.CLIENT_SECONDS)
        heard = b"".join(self.heard)
        self.threads.clear()
        self.heard.clear()
        return heard

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.acceptor.join()


# --- sites ---

def weak_sum(block):
    """The first sum of a block, as it stands on the wire."""
    a = b = 0
    for byte in block:
        a += byte - 256 if byte > 127 else byte
        b += a
    return (a & 0xffff | (b & 0xffff) << 16).to_bytes(4, "little")


SECRET_SUM = weak_sum(SECRET)


class Site:
    """A daemon of one kind with a module for each rule, form and way to confine it."""

    def __init__(self, top, program):
        self.top, self.program = top, program
        self.is_ours = program == harness.HUAI
        os.makedirs(top)
        os.chmod(top, 0o755)
        self.out = os.path.join(top, "out")
        self.sources, self.reference = {}, {}
        for kind in ("dir", "file"):
            self.sources[kind] = os.path.join(top, f"sources-{kind}")
            build_sources(self.sources[kind], kind)
        config = self._build_modules()
        self.daemon = harness.Daemon(program, config, top)

    def _tree(self, kind, home):
        path = os.path.join(self.top, f"read-{kind}-{home}")
        if not os.path.exists(path):
            build_module(path, kind, home)
            if self.is_ours:
                trees.make_attr_tree(path, path + ".attrs")
                result = harness.run(harness.HUAI, "-a", f"--attr-snapshot={path}.snapshot", path + "/")
                assert result.code == 0, result.text
        return path

    def _build_modules(self):
        owner = "uid = 0\ngid = 0\n" if trees.IS_ROOT else ""
        config = ""
        for rule, (parameters, home, kinds) in RULES.items():
            for kind, chroot in itertools.product(kinds, CHROOTS):
                read, write = self._tree(kind, home), os.path.join(self.top, f"write-{self._number(rule)}-{kind}-{chroot}")
                build_module(write, kind, home)
                places = {"live": f"path = {read}", "write": f"path = {write}\nread only = no"}
                if self.is_ours:
                    places["attrs"] = f"path = {read}.attrs\nreal file prefix = {read}"
                    places["snapshot"] = f"path = {read}\nattr snapshot = {read}.snapshot"
                for form, place in places.items():
                    config += (f"[{self.module(rule, kind, form, chroot)}]\n{place}\n{owner}munge symlinks = no\n"
                               f"use chroot = {'yes' if chroot == 'chroot' else 'no'}\n{parameters}\n")
        return config

    @staticmethod
    def _number(rule):
        return list(RULES).index(rule)

    def module(self, rule, kind, form, chroot):
        return f"m{self._number(rule)}-{kind}-{form}-{chroot}"

    def __enter__(self):
        self.daemon.__enter__()
        self.tap = Tap(self.daemon.port)
        return self

    def __exit__(self, *exception):
        self.tap.close()
        self.daemon.__exit__(*exception)

    # --- one cell ---

    def run(self, cell):
        """(exit code, what has been betrayed or changed, the client's words)"""
        writes = cell.place in PUSHES or cell.place == "remove"
        form = "write" if writes else cell.form
        shutil.rmtree(self.out, ignore_errors=True)
        os.mkdir(self.out)
        function = (PULLS.get(cell.place) or PUSHES[cell.place])[0]
        base = f"rsync://127.0.0.1:{self.tap.port}/{self.module(cell.rule, cell.kind, form, cell.chroot)}"
        words = function(Run(cell, base, self), cell)
        top = os.path.join(self.top, f"write-{self._number(cell.rule)}-{cell.kind}-{cell.chroot}") if writes else None
        before = describe_module(top, cell) if top else None
        result = harness.run(harness.STOCK, "--no-motd", *words)
        heard = self.tap.take()
        betrayed = self._betrayed(cell, result, heard)
        if top:
            betrayed |= self._changed(cell, top, before)
            if describe_module(top, cell) != before:
                shutil.rmtree(top)
                build_module(top, cell.kind, cell.home)
        return result.code, betrayed, result

    def _betrayed(self, cell, result, heard):
        found = set()
        said = result.stdout + result.stderr + heard
        if SECRET[:31] in said or SECRET[-31:] in said or any(SECRET[:31] in content for content in contents_of(self.out)):
            found.add("content")
        if UNKNOWN_NAME in said:
            found.add("name")
        if b"1999/02/26" in result.stdout or any(int(info.st_mtime) == SECRET_TIME for info in entries_of(self.out)):
            found.add("attributes")
        if SECRET_SUM in heard:
            found.add("sum")
        if cell.place == "checksums" and any(line.startswith(b".f") for line in result.stdout.splitlines()):
            found.add("checksum")
        if cell.place.startswith("--compare-dest") and result.code == 0 and b"gg" not in result.stdout:
            found.add("attributes")
        if cell.place in ("dir-merge", "dir-merge inside", "exclude-from", "merge") and result.code == 0 and \
                os.path.exists(os.path.join(self.out, "f")) and not os.path.exists(os.path.join(self.out, "probe")):
            found.add("rules")
        return found

    def _changed(self, cell, top, before):
        found, after = set(), describe_module(top, cell)
        for path, entry in before.items():
            if is_hidden(cell, path) and after.get(path) != entry:
                found.add("changed")
        if any(is_hidden(cell, path) for path in after if path not in before):
            found.add("created")
        for path in after:
            if not is_hidden(cell, path) and after[path][0] == "file" and after[path][-1] == SECRET:
                found.add("copied")
        if cell.place in ("dir-merge, pushed", "dir-merge inside, pushed", "exclude-from, pushed"):
            home = cell.home if cell.place == "dir-merge, pushed" else "d"
            if os.path.join(home, "probe") in after and os.path.join(home, "f") not in after:
                found.add("rules")
        return found


def is_hidden(cell, path):
    """By the rule, without the program under test. A module without rules is asked as if it had the first one."""
    if cell.rule == "files":
        return not path.endswith(".txt") and not os.path.basename(path) in ("d", "up", "lists", "sub", "kept") and path != "."
    return path == cell.hidden or path.startswith(cell.hidden + "/")


def entries_of(top):
    for path, directories, files in os.walk(top):
        for name in directories + files:
            yield os.lstat(os.path.join(path, name))


def contents_of(top):
    for path, _, files in os.walk(top):
        for name in files:
            if stat.S_ISREG(os.lstat(os.path.join(path, name)).st_mode):
                with open(os.path.join(path, name), "rb") as file:
                    yield file.read()


def describe_module(top, cell):
    """{path: kind, mode, mtime, content}. Directories that are not hidden may be touched: what lies in them counts."""
    found = {}
    for path, directories, files in os.walk(top):
        for name in directories + files:
            whole = os.path.join(path, name)
            info, below = os.lstat(whole), os.path.relpath(whole, top)
            if stat.S_ISDIR(info.st_mode):
                found[below] = ("dir", info.st_mode, info.st_mtime_ns if is_hidden(cell, below) else 0)
            else:
                with open(whole, "rb") as file:
                    found[below] = ("file", info.st_mode, info.st_mtime_ns, info.st_nlink, info.st_ino, file.read())
    return found
