# SPDX-License-Identifier: GPL-3.0-or-later
"""What an option promises, as a row: the option, the consequence, a command line, and what shows the consequence.

    Promise("--existing", "makes no new file", "-a --existing", gone("t/d/e/c"), text("t/a", NEW))

Each row is run by stock and by ours in equal trees: what shows the consequence has to hold for both, and everything else
(exit code, output, both trees) has to be the same. `python3 promises.py` prints the table in doc/promises.md.
"""
import dataclasses
import os
import stat

import trees

TIME = 1_600_000_000
NEW, OLD, SAME = "new content\n", "old\n", "the same\n"
LARGEST_TEXT = 100_000


@dataclasses.dataclass(frozen=True)
class Promise:
    option: str
    says: str
    words: object                # options, as a string or as a list; "{top}" is the directory that holds everything
    shows: tuple
    make: object = None          # builds what there is; make_trees without it
    way: str = "local"           # or pull, push: through a remote shell
    sources: tuple = ("s/",)
    destination: str = "t/"
    code: int = 0
    in_order: bool = False       # compare the order of lines, too
    protocol: int = 32
    only_shown: bool = False     # of an error: ours says more of it, or finds it before anything has been done
    apart: tuple = ()            # files that hold times, numbers or the program's name, so that their content differs

    @property
    def name(self):
        return f"{self.option} {self.says}".replace("/", "|").replace("[", "(").replace("]", ")")


class Seen:
    """What a run has left below the directory that held everything."""

    def __init__(self, top, result):
        self.code, self.out, self.err = result.code, result.stdout, result.stderr
        self.info, self.texts = {}, {}
        for path in trees.walk(top):
            full = os.path.join(os.fsencode(top), path)
            self.info[os.fsdecode(path)] = info = os.lstat(full)
            if stat.S_ISLNK(info.st_mode):
                self.texts[os.fsdecode(path)] = os.readlink(full)
            elif stat.S_ISREG(info.st_mode) and info.st_size <= LARGEST_TEXT:
                with open(full, "rb") as file:
                    self.texts[os.fsdecode(path)] = file.read()

    def kind(self, path):
        return stat.S_IFMT(self.info[path].st_mode) if path in self.info else None


# --- what shows a consequence: functions of what was seen that return whether it is so ---

def has(*paths):
    return lambda seen: all(path in seen.info for path in paths)


def gone(*paths):
    return lambda seen: not any(path in seen.info for path in paths)


def text(path, content):
    content = content.encode() if isinstance(content, str) else content
    return lambda seen: seen.kind(path) == stat.S_IFREG and seen.texts.get(path) == content


def link(path, target):
    return lambda seen: seen.kind(path) == stat.S_IFLNK and os.fsdecode(seen.texts[path]) == target


def kind(path, wanted):
    return lambda seen: seen.kind(path) == {"dir": stat.S_IFDIR, "file": stat.S_IFREG, "link": stat.S_IFLNK, "fifo": stat.S_IFIFO,
                                            "char": stat.S_IFCHR}[wanted]


def mode(path, wanted):
    return lambda seen: stat.S_IMODE(seen.info[path].st_mode) == wanted


def mtime(path, wanted):
    return lambda seen: int(seen.info[path].st_mtime) == wanted


def fresh(path):
    """Its time is that of the run."""
    return lambda seen: seen.info[path].st_mtime > seen.info["began"].st_mtime - 1


def owner(path, uid, gid):
    return lambda seen: (seen.info[path].st_uid, seen.info[path].st_gid) == (uid, gid)


def size(path, wanted):
    return lambda seen: seen.info[path].st_size == wanted


def linked(one, other):
    return lambda seen: seen.info[one].st_ino == seen.info[other].st_ino


def separate(one, other):
    return lambda seen: seen.info[one].st_ino != seen.info[other].st_ino


def says(*texts):
    return lambda seen: all(word.encode() in seen.out for word in texts)


def silent(*texts):
    """None of these on either stream; without words nothing at all."""
    return lambda seen: not any(word.encode() in seen.out + seen.err for word in texts) if texts else not seen.out + seen.err


def warns(*texts):
    return lambda seen: all(word.encode() in seen.err for word in texts)


def holes(path):
    return lambda seen: seen.info[path].st_blocks * 512 < seen.info[path].st_size


def solid(path):
    return lambda seen: seen.info[path].st_blocks * 512 >= seen.info[path].st_size


# --- trees ---

def put(path, content, mtime=TIME, mode=0o644):
    trees.write(path, content.encode() if isinstance(content, str) else content, mode, mtime * 10**9)


def settle(top):
    for directory, _, _ in os.walk(top, topdown=False):
        os.utime(directory, (TIME, TIME))


def make_trees(top):
    """A source `s` and an older state of it, `t`."""
    for name in ("s/d/e", "s/empty", "t/d"):
        os.makedirs(f"{top}/{name}")
    put(f"{top}/s/a", NEW, TIME)
    put(f"{top}/t/a", OLD, TIME - 1000)
    put(f"{top}/s/same", SAME)
    put(f"{top}/t/same", SAME)
    put(f"{top}/s/d/b", NEW, TIME - 5000)
    put(f"{top}/t/d/b", OLD, TIME - 100)
    put(f"{top}/s/d/e/c", "only here\n", TIME + 5)
    put(f"{top}/s/x.log", "log\n")
    put(f"{top}/t/d/extra", "surplus\n")
    put(f"{top}/t/extra", "surplus\n")
    os.symlink("a", f"{top}/s/l")
    os.utime(f"{top}/s/l", (TIME, TIME), follow_symlinks=False)
    settle(f"{top}/s")
    for name in ("t", "t/d"):
        os.utime(f"{top}/{name}", (TIME - 77, TIME - 77))
