# SPDX-License-Identifier: GPL-3.0-or-later
"""The promises of rsync(1), option by option; what the words of a row mean is in promises.py."""
import os
import socket
import subprocess

from promises import (NEW, OLD, SAME, TIME, Promise, fresh, gone, has, holes, kind, link, linked, make_trees, mode, mtime, owner, put,
                      says, separate, settle, silent, size, solid, text, warns)
import trees

# --- trees for more than one row ---


def with_(*changes):
    """make_trees, and then what each function does; the first may be the result of another with_()."""
    def make(top):
        first, *others = changes
        if not getattr(first, "is_whole", False):
            first, others = make_trees, changes
        first(top)
        for change in others:
            change(top)
        settle(f"{top}/s")
        for name in ("t/d", "t"):
            if os.path.isdir(f"{top}/{name}"):
                os.utime(f"{top}/{name}", (TIME - 77, TIME - 77))
    make.is_whole = True
    return make


def write(name, content, mtime=TIME, mode=0o644):
    return lambda top: put(f"{top}/{name}", content, mtime, mode)


def time_of(name, seconds):
    return lambda top: os.utime(f"{top}/{name}", (seconds, seconds), follow_symlinks=False)


def mode_of(name, bits):
    return lambda top: os.chmod(f"{top}/{name}", bits)


def owned(name, uid, gid):
    return lambda top: os.lchown(f"{top}/{name}", uid, gid)


def symlink(name, target):
    def make(top):
        os.symlink(target, f"{top}/{name}")
        os.utime(f"{top}/{name}", (TIME, TIME), follow_symlinks=False)
    return make


def directory(name):
    return lambda top: os.makedirs(f"{top}/{name}")


def hard(name, other):
    return lambda top: os.link(f"{top}/{other}", f"{top}/{name}")


def fifo(name):
    def make(top):
        os.mkfifo(f"{top}/{name}")
        os.utime(f"{top}/{name}", (TIME, TIME))
    return make


def device(name, number=(5, 77)):
    def make(top):
        os.mknod(f"{top}/{name}", 0o20644, os.makedev(*number))
        os.utime(f"{top}/{name}", (TIME, TIME))
    return make


def unix_socket(name):
    def make(top):
        here = os.open(".", os.O_RDONLY)
        os.chdir(os.path.dirname(f"{top}/{name}"))  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(os.path.basename(name))
        os.fchdir(here)
        os.close(here)
        os.utime(f"{top}/{name}", (TIME, TIME))
    return make


def xattr(name, key, value):
    return lambda top: os.setxattr(f"{top}/{name}", key, value, follow_symlinks=False)


def acl(name, entry):
    return lambda top: subprocess.run(["setfacl", "-m", entry, f"{top}/{name}"], check=True)


def settled(top):
    settle(f"{top}/s")


def nothing(top):
    """Only the source."""
    make_trees(top)
    subprocess.run(["rm", "-r", f"{top}/t"], check=True)


BIG = trees.noise(70_000, 9)
GROWING = with_(write("s/log", "one\ntwo\nthree\n"), write("t/log", "one\ntwo\n", TIME - 10), write("s/cut", "x\n"),
                write("t/cut", "longer than its source\n", TIME - 10))
CHANGED_SAME_SIZE = with_(write("s/quick", "AAAA\n"), write("t/quick", "BBBB\n"))
LINKS = with_(symlink("s/abs", "/nonexistent/place"), symlink("s/up", "../outside"), symlink("s/d/in", "../a"), symlink("s/dir", "d"),
              symlink("s/broken", "no-such"), write("outside", "outside\n"), symlink("s/embedded", "d/../../outside"))
HARD = with_(hard("s/h2", "s/a"), hard("s/d/h3", "s/a"))
DEVICES = with_(fifo("s/fifo"), device("s/char"), unix_socket("s/sock"), settled)
MODES = with_(mode_of("s/a", 0o751), mode_of("s/same", 0o600), mode_of("s/d/e/c", 0o6755), mode_of("t/a", 0o604), mode_of("s/d", 0o2775))
OWNERS = with_(owned("s/a", 1234, 4321), owned("s/same", 65534, 65534))
LISTED = with_(write("list", "d/b\n\n# no name\n; nor this\na\n"), write("list0", b"d/b\0a\0"), write("up", "../../a\nd/../same\n"),
               write("slash", "d/\n"), write("dirname", "d\n"), write("abs", "/d/b\n"), write("dos", b"a\r\nd/b\r\n"))
BASIS = with_(directory("basis/d"), write("basis/a", NEW), write("basis/d/b", "other\n", TIME - 5000), write("basis/same", SAME),
              directory("new"))
RULES = with_(write("s/keep.o", "o\n"), write("s/core", "core\n"), write("s/d/y.log", "log\n"), write("s/d/.rsync-filter", "- b\n"),
              write("s/.cvsignore", "x.log\n"), write("rules", "# comment\n; comment\n\n*.log\n+ a\n- same\n"),
              write("rules0", b"*.log\0same\0"), write("clear", "*.log\n!\nsame\n"), write("inc", "y.log\n"), settled)
SPARSE = with_(lambda top: trees.sparse(f"{top}/s/holes", 2_000_000, ((0, b"a"), (1_900_000, b"z")), mtime_ns=TIME * 10**9),
               write("t/holes", b"\0" * 1_000_000, TIME - 9))
# With -L that is an error of reading, the only one that root can have.
UNREADABLE = with_(symlink("s/broken", "no-such"))
BACKUPS = ("t/a~", "t/d/b~")

ROWS = [
    # --- which files are brought up to date ---
    Promise("--ignore-times", "updates what has size and time of the source", "-rti -I", (text("t/quick", "AAAA\n"),), CHANGED_SAME_SIZE),
    Promise("--ignore-times", "without it such a file is taken as unchanged", "-rti", (text("t/quick", "BBBB\n"),), CHANGED_SAME_SIZE),
    Promise("--ignore-times", "updates the unchanged, too", "-ai -I", (says(" same\n"),)),
    Promise("--size-only", "another time alone is no reason to update", "-ai --size-only", (text("t/quick", "BBBB\n"),),
            with_(write("s/quick", "AAAA\n"), write("t/quick", "BBBB\n", TIME - 99))),
    Promise("--size-only", "another size is one", "-ai --size-only", (text("t/a", NEW),)),
    Promise("--modify-window=NUM", "times that differ by no more are equal", "-ai --modify-window=2", (text("t/quick", "BBBB\n"),),
            with_(write("s/quick", "AAAA\n"), write("t/quick", "BBBB\n", TIME - 2))),
    Promise("--modify-window=NUM", "times that differ by more are not", "-ai --modify-window=1", (text("t/quick", "AAAA\n"),),
            with_(write("s/quick", "AAAA\n"), write("t/quick", "BBBB\n", TIME - 2))),
    Promise("--modify-window=NUM", "by default only whole seconds count", "-ai", (text("t/quick", "BBBB\n"),),
            with_(write("s/quick", "AAAA\n"), write("t/quick", "BBBB\n"),
                  lambda top: os.utime(f"{top}/s/quick", ns=(TIME * 10**9, TIME * 10**9 + 500)))),
    Promise("--modify-window=NUM", "a negative one compares nanoseconds", "-ai -@-1", (text("t/quick", "AAAA\n"),),
            with_(write("s/quick", "AAAA\n"), write("t/quick", "BBBB\n"),
                  lambda top: os.utime(f"{top}/s/quick", ns=(TIME * 10**9, TIME * 10**9 + 500)))),
    Promise("--checksum", "content decides where sizes are equal", "-aci", (text("t/quick", "AAAA\n"), says(">fc........ quick")),
            CHANGED_SAME_SIZE),
    Promise("--checksum", "the same content with another time is not sent", "-aci", (says(".f..t...... same"),),
            with_(time_of("t/same", TIME - 9))),
    Promise("--checksum", "another size is sent without reading the file here", "-aci", (text("t/a", NEW),)),
    Promise("--update", "a newer file at the destination stays", "-aui", (text("t/d/b", OLD),)),
    Promise("--update", "an older one is updated", "-aui", (text("t/a", NEW),)),
    Promise("--update", "at the same time another size is updated", "-aui", (text("t/a", NEW),), with_(time_of("t/a", TIME))),
    Promise("--update", "another kind of object is replaced whatever its time", "-aui --delete", (kind("t/d/e", "dir"),),
            with_(write("t/d/e", "a file", TIME + 10**6))),
    Promise("--update", "does not hold back symlinks", "-aui", (link("t/l", "a"),),
            with_(symlink("t/l", "older"), time_of("t/l", TIME + 10**6))),
    Promise("--existing", "makes no new file and no new directory", "-ai --existing", (gone("t/d/e", "t/x.log", "t/empty", "t/l"),)),
    Promise("--existing", "updates what there is", "-ai --existing", (text("t/a", NEW), text("t/d/b", NEW))),
    Promise("--existing", "has a second name", "-ai --ignore-non-existing", (gone("t/x.log"), text("t/a", NEW))),
    Promise("--existing", "is no rule: what it leaves out is not deleted as extraneous", "-ai --existing --delete", (gone("t/extra"), has("t/a"))),
    Promise("--ignore-existing", "leaves files that there are", "-ai --ignore-existing", (text("t/a", OLD), text("t/d/b", OLD))),
    Promise("--ignore-existing", "makes new ones, also in directories that there are", "-ai --ignore-existing",
            (has("t/d/e/c", "t/x.log"),)),
    Promise("--ignore-existing", "with --existing nothing is updated, and --delete still deletes", "-ai --ignore-existing --existing --delete",
            (text("t/a", OLD), gone("t/x.log", "t/extra", "t/d/extra"))),
    Promise("--ignore-existing", "the second level of --info=skip gives the reason", "-a --ignore-existing --info=skip2",
            (says("a exists (file change)", "same exists (uptodate)"),)),
    Promise("--ignore-existing", "the first level of --info=skip names what is left", "-a --ignore-existing --info=skip1",
            (says("a exists\n"), silent("file change"))),
    Promise("--max-size=SIZE", "leaves out what is larger", "-ai --max-size=6", (gone("t/d/e/c"), has("t/x.log"))),
    Promise("--max-size=SIZE", "takes what is as large", "-ai --max-size=10", (has("t/d/e/c"),)),
    Promise("--max-size=SIZE", "is no rule: nothing is deleted for its size", "-ai --max-size=4 --delete", (text("t/a", OLD), gone("t/extra"))),
    Promise("--max-size=SIZE", "takes suffixes, and +1 and -1 after them", "-ai --max-size=1k-1", (gone("t/kilo"), has("t/less")),
            with_(write("s/kilo", "x" * 1024), write("s/less", "x" * 1023))),
    Promise("--max-size=SIZE", "a suffix with B counts in thousands", "-ai --max-size=1KB", (gone("t/kilo"), has("t/thousand")),
            with_(write("s/kilo", "x" * 1024), write("s/thousand", "x" * 1000))),
    Promise("--max-size=SIZE", "takes fractions", "-ai --max-size=.5K", (gone("t/half1"), has("t/half")),
            with_(write("s/half1", "x" * 513), write("s/half", "x" * 512))),
    Promise("--min-size=SIZE", "leaves out what is smaller", "-ai --min-size=7", (gone("t/x.log"), has("t/d/e/c"))),
    Promise("--min-size=SIZE", "takes what is as small", "-ai --min-size=4", (has("t/x.log"),)),
    Promise("--min-size=SIZE", "is no rule: nothing is deleted for its size", "-ai --min-size=1m --delete", (text("t/a", OLD), gone("t/extra"))),

    # --- what an archive is ---
    Promise("--archive", "keeps modes, times, owners, groups and links", "-a",
            (mode("t/a", 0o751), mtime("t/a", TIME), owner("t/a", 1234, 4321), link("t/l", "a")), with_(mode_of("s/a", 0o751), owned("s/a", 1234, 4321), mode_of("s/a", 0o751))),
    Promise("--archive", "makes devices and specials", "-a", (kind("t/char", "char"), kind("t/fifo", "fifo"), has("t/sock")), DEVICES),
    Promise("--archive", "makes no hard links", "-a", (separate("t/h2", "t/a"),), HARD),
    Promise("--archive", "does not recurse for a list of files", "-ai --files-from={top}/dirname", (kind("t/d", "dir"), text("t/d/b", OLD)), LISTED),
    Promise("--archive", "parts of it are taken back one by one", "-ai --no-p --no-t", (mode("t/a", 0o604), fresh("t/a")), MODES),
    Promise("--no-OPTION", "takes short names", "-ai --no-l", (gone("t/l"), says("skipping non-regular file \"l\""))),
    Promise("--no-OPTION", "takes long names", "-ai --no-links", (gone("t/l"),)),
    Promise("--no-OPTION", "the last word counts: taken back", "-a --no-r", (gone("t/x.log"), says("skipping directory")),),
    Promise("--no-OPTION", "the last word counts: asked for again", "--no-r -a", (has("t/d/e/c"),)),
    Promise("--recursive", "copies what is below directories", "-r", (has("t/d/e/c", "t/empty"),)),
    Promise("--recursive", "without it and -d directories are skipped, and that is said", "-lt", (gone("t/x.log"), says("skipping directory .")),),
    Promise("--recursive", "times are those of the run without -t", "-r", (fresh("t/d/e/c"),)),
    Promise("--no-inc-recursive", "gives the same tree", "-aHi --no-inc-recursive", (linked("t/h2", "t/d/h3"),), HARD),
    Promise("--no-inc-recursive", "has a short name", "-aHi --no-i-r", (linked("t/h2", "t/d/h3"),), HARD, way="pull"),
    Promise("--inc-recursive", "gives the same tree", "-aHi --i-r", (linked("t/h2", "t/d/h3"),), HARD, way="push"),
    Promise("--dirs", "copies a directory without its content", "-d", (kind("t/s", "dir"), gone("t/s/a")), sources=("s",)),
    Promise("--dirs", "a trailing slash stands for the content", "-d", (text("t/a", NEW), kind("t/empty", "dir"), gone("t/d/e"))),
    Promise("--dirs", "so does a trailing dot", "-d", (text("t/a", NEW),), sources=("s/.",)),
    Promise("--dirs", "recursion is the stronger one", "-dr", (has("t/d/e/c"),)),
    Promise("--dirs", "deletes in directories whose content is copied", "-d --delete", (gone("t/extra"), has("t/d/extra"))),
    Promise("--old-dirs", "lists one directory", "--old-dirs", (text("t/a", NEW), gone("t/d/e"))),
    Promise("--mkpath", "makes what is missing of the destination's path", "-a --mkpath", (has("p/q/r/x.log"),), destination="p/q/r/"),
    Promise("--mkpath", "without it more than the last part is an error", "-a", (gone("p"), warns("mkdir")), destination="p/q/r/", code=11),
    Promise("--mkpath", "without it the last part is made", "-a", (has("p/x.log"),), destination="p/"),
    Promise("--mkpath", "of a file the last part is its name", "-a --mkpath", (text("p/q/name", NEW),), sources=("s/a",), destination="p/q/name"),
    Promise("--mkpath", "a trailing slash makes it a directory", "-a --mkpath", (text("p/q/a", NEW),), sources=("s/a",), destination="p/q/"),

    # --- paths ---
    Promise("--relative", "sends the whole path", "-aR", (text("t/s/d/e/c", "only here\n"), gone("t/c")), sources=("./s/d/e/c",)),
    Promise("--relative", "a dot and a slash cut what is before them", "-aR", (text("t/e/c", "only here\n"), gone("t/d/e")), sources=("s/d/./e/c",)),
    Promise("--relative", "gives implied directories their attributes", "-aR", (mtime("t/d", TIME),), sources=("s/./d/e/c",)),
    Promise("--relative", "an implied directory that is a symlink arrives as a directory", "-aR", (kind("t/way", "dir"), has("t/way/e/c")),
            with_(symlink("s/way", "d")), sources=("s/./way/e/c",)),
    Promise("--no-implied-dirs", "leaves existing path elements as they are", "-aR --no-implied-dirs", (kind("t/way", "link"), has("t/d/e/c")),
            with_(symlink("s/way", "d"), symlink("t/way", "d")), sources=("s/./way/e/c",)),
    Promise("--no-implied-dirs", "missing ones get default attributes", "-aR --no-implied-dirs", (fresh("t/d/e"),), sources=("s/./d/e/c",)),
    Promise("--no-implied-dirs", "is not needed for the directories that are named", "-aR --no-implied-dirs", (mtime("t/d/e", TIME),),
            sources=("s/./d/e/",)),
    Promise("--backup", "keeps the old file beside the new one", "-ab", (text("t/a~", OLD), text("t/a", NEW))),
    Promise("--backup", "keeps what is deleted", "-ab --delete", (text("t/extra~", "surplus\n"), gone("t/extra"))),
    Promise("--backup", "leaves out times of directories", "-ab", (fresh("t/d"),)),
    Promise("--backup", "protects earlier backups from --delete", "-ab --delete", (text("t/kept~", "kept\n"),), with_(write("t/kept~", "kept\n"))),
    Promise("--backup", "does not with --delete-excluded", "-ab --delete-excluded", (gone("t/kept~"),), with_(write("t/kept~", "kept\n"))),
    Promise("--backup", "an own rule that matches before counts", ["-ab", "--delete", "--filter=R *~"], (gone("t/kept~"),),
            with_(write("t/kept~", "kept\n"))),
    Promise("--backup-dir=DIR", "implies --backup", "-a --backup-dir=../old", (text("old/a", OLD), text("old/d/b", OLD), gone(*BACKUPS))),
    Promise("--backup-dir=DIR", "is relative to the destination", "-a --backup-dir=old", (text("t/old/a", OLD),)),
    Promise("--backup-dir=DIR", "may be absolute", "-a --backup-dir={top}/abs", (text("abs/a", OLD),)),
    Promise("--backup-dir=DIR", "with a suffix has both", "-a --backup-dir=../old --suffix=.1", (text("old/a.1", OLD),)),
    Promise("--backup-dir=DIR", "takes what is deleted", "-a --delete --backup-dir=../old", (text("old/d/extra", "surplus\n"), gone("t/d/extra"))),
    Promise("--backup-dir=DIR", "keeps times of directories", "-a --backup-dir=../old", (mtime("t/d", TIME),)),
    Promise("--suffix=SUFFIX", "replaces the tilde", "-ab --suffix=.orig", (text("t/a.orig", OLD), gone(*BACKUPS))),

    # --- how a file is written ---
    Promise("--inplace", "does not break hard links of the destination", "-a --inplace", (linked("t/a", "t/other"), text("t/other", NEW)),
            with_(hard("t/other", "t/a"))),
    Promise("--inplace", "without it they are broken", "-a", (separate("t/a", "t/other"), text("t/other", OLD)), with_(hard("t/other", "t/a"))),
    Promise("--inplace", "cannot be had with --partial-dir", "-a --inplace --partial-dir=p", (warns("--inplace"), text("t/a", OLD)), code=1),
    Promise("--inplace", "cannot be had with --delay-updates", "-a --inplace --delay-updates", (warns("--inplace"), text("t/a", OLD)), code=1),
    Promise("--inplace", "with --backup copies the old content first", "-a --inplace -b", (text("t/a~", OLD), text("t/a", NEW))),
    Promise("--append", "writes what is missing at the end", "-a --append", (text("t/log", "one\ntwo\nthree\n"),), GROWING),
    Promise("--append", "skips what is not shorter", "-a --append", (text("t/cut", "longer than its source\n"),), GROWING),
    Promise("--append", "does not look at what is there", "-a --append", (text("t/log", "ONE\nTWO\nthree\n"),),
            with_(write("s/log", "one\ntwo\nthree\n"), write("t/log", "ONE\nTWO\n"))),
    Promise("--append", "still sets attributes", "-rp --append", (mode("t/log", 0o600),), with_(GROWING, mode_of("s/log", 0o600))),
    Promise("--append", "makes new files", "-a --append", (has("t/d/e/c"),), GROWING),
    Promise("--append-verify", "repairs a beginning that differs", "-a --append-verify", (text("t/log", "one\ntwo\nthree\n"),),
            with_(write("s/log", "one\ntwo\nthree\n"), write("t/log", "ONE\nTWO\n"))),
    Promise("--append-verify", "skips what is not shorter", "-a --append-verify", (text("t/cut", "longer than its source\n"),), GROWING),
    Promise("--whole-file", "no block of the old file is used", "-a -W --stats", (says("Matched data: 0 bytes"),),
            with_(write("s/big", BIG), write("t/big", BIG + b"x", TIME - 9)), way="pull"),
    Promise("--whole-file", "is the default of a local run", "-a --stats", (says("Matched data: 0 bytes"),),
            with_(write("s/big", BIG), write("t/big", BIG + b"x", TIME - 9))),
    Promise("--whole-file", "is not the default with a peer", "-a --stats", (lambda seen: b"Matched data: 0 bytes" not in seen.out,),
            with_(write("s/big", BIG), write("t/big", BIG + b"x", TIME - 9)), way="push"),
    Promise("--no-whole-file", "uses blocks of the old file in a local run", "-a --no-W --stats",
            (lambda seen: b"Matched data: 0 bytes" not in seen.out,), with_(write("s/big", BIG), write("t/big", BIG + b"x", TIME - 9))),
    Promise("--block-size=SIZE", "fixes the size of blocks", "-a --no-W -B 512 --stats", (lambda seen: b"Matched data: 0 bytes" not in seen.out,),
            with_(write("s/big", BIG), write("t/big", BIG + b"x", TIME - 9))),
    Promise("--block-size=SIZE", "one that is too large is refused", "-a -B 1g", (text("t/a", OLD),), code=1),
    Promise("--sparse", "leaves zeros out", "-aS", (holes("t/holes"), size("t/holes", 2_000_000)), SPARSE),
    Promise("--sparse", "without it zeros are written", "-aI", (solid("t/zeros"),), with_(write("s/zeros", b"\0" * 300_000))),
    Promise("--sparse", "goes with --inplace --whole-file", "-aS --inplace -W", (holes("t/holes"),), SPARSE),
    Promise("--preallocate", "gives the same content", "-a --preallocate", (text("t/a", NEW), size("t/big", 70_000)), with_(write("s/big", BIG))),
    Promise("--fsync", "gives the same tree", "-ai --fsync", (text("t/a", NEW),)),
    Promise("--dry-run", "changes nothing", "-ai -n --delete", (text("t/a", OLD), has("t/extra"), gone("t/d/e", "t/x.log"))),
    Promise("--dry-run", "prints the items of a real run", "-ai -n --delete", (says(">f.st...... a", "*deleting   extra", "cd+++++++++ d/e/"),)),
    Promise("--dry-run", "makes no destination", "-ai -n", (gone("t"), says("x.log")), nothing),
    Promise("--dry-run", "writes no backups", "-abi -n", (gone(*BACKUPS),)),
    Promise("--checksum-choice=STR", "takes each name that --version lists", "-aci --cc=md5", (says(">fc"),), CHANGED_SAME_SIZE),
    Promise("--checksum-choice=STR", "takes two names", "-aci --cc=md4,sha1", (text("t/quick", "AAAA\n"),), CHANGED_SAME_SIZE, way="pull"),
    Promise("--checksum-choice=STR", "none sends whole files", "-a --cc=none --stats", (says("Matched data: 0 bytes"),),
            with_(write("s/big", BIG), write("t/big", BIG + b"x", TIME - 9)), way="push"),
    Promise("--checksum-choice=STR", "none cannot be had with --checksum", "-ac --cc=none", (text("t/a", OLD),), code=4),
    Promise("--checksum-choice=STR", "an unknown name is an error", "-ac --cc=crc32", (warns("crc32"),), code=4),
    Promise("--checksum-seed=NUM", "gives the same result", "-ac --checksum-seed=7", (text("t/quick", "AAAA\n"),), CHANGED_SAME_SIZE, way="pull"),

    # --- symlinks ---
    Promise("--links", "makes symlinks with the same value", "-rl", (link("t/l", "a"), link("t/abs", "/nonexistent/place"), link("t/broken", "no-such")), LINKS),
    Promise("--links", "without it they are skipped, and that is said", "-r", (gone("t/l"), says('skipping non-regular file "l"'))),
    Promise("--links", "the line about it can be silenced", "-r --info=nonreg0", (gone("t/l"), silent())),
    Promise("--copy-links", "copies what symlinks lead to", "-rL", (text("t/l", NEW), kind("t/dir", "dir"), text("t/up", "outside\n")), LINKS, code=23),
    Promise("--copy-links", "a broken one is an error", "-rL", (gone("t/broken"), warns("broken")), LINKS, code=23),
    Promise("--copy-links", "an argument that leads nowhere is missing, and keeps nobody from deleting", "-rL --delete",
            (gone("t/extra"), text("t/b", NEW), warns("link_stat")), LINKS, sources=("s/broken", "s/d/"), code=23),
    Promise("--copy-links", "so it is at the other end", "-rL --delete", (gone("t/extra"), text("t/b", NEW), warns("link_stat")), LINKS,
            way="pull", sources=("s/broken", "s/d/"), code=23),
    Promise("--copy-links", "leaves symlinks at the destination alone", "-rL", (kind("t/d", "dir"), link("t/own", "d")), with_(symlink("t/own", "d"))),
    Promise("--copy-unsafe-links", "copies what unsafe symlinks lead to", "-rl --copy-unsafe-links", (text("t/up", "outside\n"), link("t/d/in", "../a")),
            with_(symlink("s/up", "../outside"), symlink("s/d/in", "../a"), write("outside", "outside\n"))),
    Promise("--copy-unsafe-links", "a target with .. in its middle is unsafe", "-rl --copy-unsafe-links", (text("t/embedded", "outside\n"),),
            with_(symlink("s/embedded", "d/../../outside"), write("outside", "outside\n"))),
    Promise("--copy-unsafe-links", "safe ones need --links", "-r --copy-unsafe-links", (gone("t/d/in"), text("t/up", "outside\n")),
            with_(symlink("s/up", "../outside"), symlink("s/d/in", "../a"), write("outside", "outside\n"))),
    Promise("--copy-unsafe-links", "without a trailing slash the parent is the top", "-rl --copy-unsafe-links", (link("t/s/up", "../outside"),),
            with_(symlink("s/up", "../outside"), write("outside", "outside\n")), sources=("s",)),
    Promise("--safe-links", "ignores what leads out and what is absolute", "-rl --safe-links", (gone("t/up", "t/abs", "t/embedded"), link("t/d/in", "../a")), LINKS),
    Promise("--safe-links", "what is ignored protects the name from deletion", "-rl --safe-links --delete", (text("t/up", "mine\n"),),
            with_(symlink("s/up", "../outside"), write("t/up", "mine\n"))),
    Promise("--safe-links", "--copy-unsafe-links is the stronger one", "-rl --safe-links --copy-unsafe-links", (text("t/up", "outside\n"),),
            with_(symlink("s/up", "../outside"), write("outside", "outside\n"))),
    Promise("--munge-links", "a sender gives munged links their value back", "-rl --munge-links", (link("t/munged", "a"),),
            with_(symlink("s/munged", "/rsyncd-munged/a"))),
    Promise("--munge-links", "a receiver munges", "-rl -M--munge-links", (link("t/l", "/rsyncd-munged/a"),), way="push"),
    Promise("--munge-links", "a pulling client munges", "-rl --munge-links", (link("t/l", "/rsyncd-munged/a"),), way="pull"),
    Promise("--munge-links", "with --safe-links no symlink is left", "-rl --munge-links --safe-links", (gone("t/l"),), way="pull"),
    Promise("--copy-dirlinks", "a symlink to a directory is one", "-rlk", (kind("t/dir", "dir"), has("t/dir/e/c"), link("t/l", "a")), LINKS),
    Promise("--copy-dirlinks", "without it a symlink replaces a directory only with --force or --delete", "-rl", (kind("t/dir", "dir"),),
            with_(symlink("s/dir", "d"), directory("t/dir/full")), code=23),
    Promise("--copy-dirlinks", "without it --force lets the symlink replace a directory", "-rl --force", (link("t/dir", "d"),),
            with_(symlink("s/dir", "d"), directory("t/dir/full"))),
    Promise("--keep-dirlinks", "a symlink to a directory stays one", "-rlK", (link("t/d/e", "../real"), has("t/real/c")),
            with_(directory("t/real"), symlink("t/d/e", "../real"))),
    Promise("--keep-dirlinks", "without it the symlink is replaced", "-rl", (kind("t/d/e", "dir"), gone("t/real/c")),
            with_(directory("t/real"), symlink("t/d/e", "../real"))),
    Promise("--keep-dirlinks", "only where the source has a directory", "-rlK", (text("t/a", NEW), gone("t/real/a")),
            with_(directory("t/real"), lambda top: os.unlink(f"{top}/t/a"), symlink("t/a", "real"))),

    # --- hard links ---
    Promise("--hard-links", "links what is linked in the source", "-aH", (linked("t/a", "t/h2"), linked("t/a", "t/d/h3")), HARD),
    Promise("--hard-links", "without it they are files of their own", "-a", (separate("t/a", "t/h2"),), HARD),
    Promise("--hard-links", "does not part what is linked at the destination alone", "-aH", (linked("t/same", "t/twin"),),
            with_(write("s/twin", SAME), hard("t/twin", "t/same"))),
    Promise("--hard-links", "a change of content parts them", "-aH", (separate("t/a", "t/twin"), text("t/twin", OLD)), with_(hard("t/twin", "t/a"))),
    Promise("--hard-links", "with --inplace it does not", "-aH --inplace", (linked("t/a", "t/twin"),), with_(hard("t/twin", "t/a"))),
    Promise("--hard-links", "links symlinks", "-aH", (linked("t/l", "t/l2"),),
            with_(lambda top: os.link(f"{top}/s/l", f"{top}/s/l2", follow_symlinks=False))),
    Promise("--hard-links", "only what is in the transfer is linked", "-aH --exclude=h2", (gone("t/h2"), linked("t/a", "t/d/h3")), HARD),

    # --- modes ---
    Promise("--perms", "sets the modes of the source", "-rp", (mode("t/a", 0o751), mode("t/same", 0o600), mode("t/d", 0o2775)), MODES),
    Promise("--perms", "without it existing files keep theirs", "-r", (mode("t/a", 0o604), mode("t/same", 0o644)), MODES),
    Promise("--perms", "without it new files get those of the source below the umask", "-r", (mode("t/wide", 0o644),),
            with_(write("s/wide", "x", mode=0o666))),
    Promise("--perms", "without it new files have no special bits", "-r", (mode("t/d/e/c", 0o755),), MODES),
    Promise("--perms", "without it a new directory takes setgid from its parent", "-r", (mode("t/d/e", 0o2755),), with_(mode_of("t/d", 0o2755))),
    Promise("--perms", "without it a default ACL stands for the umask", "-r", (mode("t/d/e/c", 0o660),),
            with_(mode_of("s/d/e/c", 0o666), acl("t/d", "d:g::rwx,d:o::-"))),
    Promise("--executability", "adds x where there is r", "-rE", (mode("t/a", 0o705),), with_(mode_of("s/a", 0o700), mode_of("t/a", 0o604))),
    Promise("--executability", "takes every x", "-rE", (mode("t/a", 0o644),), with_(mode_of("s/a", 0o644), mode_of("t/a", 0o755))),
    Promise("--executability", "-p is the stronger one", "-rpE", (mode("t/a", 0o751),), MODES),
    Promise("--chmod=CHMOD", "changes the modes of the source", "-rp --chmod=go-rwx", (mode("t/a", 0o700), mode("t/same", 0o600)), MODES),
    Promise("--chmod=CHMOD", "D is for directories, F for files", "-rp --chmod=D700,F604", (mode("t/d", 0o700), mode("t/a", 0o604))),
    Promise("--chmod=CHMOD", "takes octal modes", "-rp --chmod=D2775,F664", (mode("t/d", 0o2775), mode("t/a", 0o664))),
    Promise("--chmod=CHMOD", "X is for what is executable already", "-rp --chmod=a+X", (mode("t/a", 0o755), mode("t/same", 0o644)),
            with_(mode_of("s/a", 0o744))),
    Promise("--chmod=CHMOD", "copies from one class to another", "-rp --chmod=g=o,o=", (mode("t/a", 0o640), mode("t/same", 0o640))),
    Promise("--chmod=CHMOD", "several add up", "-rp --chmod=u+x --chmod=go=", (mode("t/a", 0o700),)),
    Promise("--chmod=CHMOD", "without -p existing files keep their modes", "-r --chmod=go-rwx", (mode("t/same", 0o644), mode("t/x.log", 0o600))),
    Promise("--chmod=CHMOD", "a broken one is an error", "-rp --chmod=Q+x", (text("t/a", OLD),), code=1),
    Promise("--acls", "copies ACLs, and with them modes", "-rA", (mode("t/a", 0o660),), with_(mode_of("s/a", 0o600), acl("s/a", "u:33:rw"))),
    Promise("--xattrs", "copies attributes", "-rXi", (says("x a"),), with_(xattr("s/a", "user.note", b"value"))),

    # --- owners ---
    Promise("--owner", "sets owners as root", "-ro", (owner("t/a", 1234, 0),), OWNERS),
    Promise("--owner", "without it files belong to who runs it", "-r", (owner("t/a", 0, 0),), OWNERS),
    Promise("--group", "sets groups", "-rg", (owner("t/a", 0, 4321),), OWNERS),
    Promise("--numeric-ids", "keeps numbers", "-a --numeric-ids", (owner("t/a", 1234, 4321),), OWNERS, way="push"),
    Promise("--usermap=STRING", "maps numbers, the first match counts", "-a --usermap=1234:7,1000-2000:8", (owner("t/a", 7, 4321),), OWNERS),
    Promise("--usermap=STRING", "maps ranges", "-a --usermap=1000-2000:8", (owner("t/a", 8, 4321),), OWNERS),
    Promise("--usermap=STRING", "a star stands for all", "-a --usermap=*:9", (owner("t/a", 9, 4321), owner("t/same", 9, 65534)), OWNERS),
    Promise("--usermap=STRING", "nothing stands for those without a name", "-a --usermap=:9", (owner("t/a", 9, 4321), owner("t/same", 65534, 65534)), OWNERS),
    Promise("--usermap=STRING", "takes names at both ends", "-a --usermap=nobody:daemon", (owner("t/same", 1, 65534),), OWNERS),
    Promise("--usermap=STRING", "with --numeric-ids only numbers match", "-a --numeric-ids --usermap=nobody:7,65534:8", (owner("t/same", 8, 65534),), OWNERS, way="pull"),
    Promise("--usermap=STRING", "implies -o", "-r --usermap=*:9", (owner("t/a", 9, 0),), OWNERS),
    Promise("--groupmap=STRING", "implies -g", "-r --groupmap=*:9", (owner("t/a", 0, 9),), OWNERS),
    Promise("--groupmap=STRING", "maps groups", "-a --groupmap=4321:5", (owner("t/a", 1234, 5),), OWNERS),
    Promise("--chown=USER:GROUP", "is both maps", "-r --chown=5:6", (owner("t/a", 5, 6), owner("t/d", 5, 6)), OWNERS),
    Promise("--chown=USER:GROUP", "a user alone", "-a --chown=5", (owner("t/a", 5, 4321),), OWNERS),
    Promise("--chown=USER:GROUP", "a group alone", "-a --chown=:6", (owner("t/a", 1234, 6),), OWNERS),
    Promise("--chown=USER:GROUP", "cannot be mixed with the map", "-a --chown=5 --usermap=1:2", (owner("t/a", 0, 0),), OWNERS, code=1),
    Promise("--super", "--no-super gives nothing away", "-a --no-super", (owner("t/a", 0, 0),), OWNERS),
    Promise("--fake-super", "keeps owners in attributes of the destination", "-a -M--fake-super", (owner("t/a", 0, 0), gone("t/none")), OWNERS, way="push"),
    Promise("--fake-super", "devices become files", "-a -M--fake-super", (kind("t/char", "file"), size("t/char", 0)), DEVICES, way="push"),
    Promise("--copy-as=USER[:GROUP]", "cannot be had without the right to", "-r --copy-as=no-such-user", (text("t/a", OLD),), code=1, only_shown=True),

    # --- devices and specials ---
    Promise("--devices", "makes devices", "-r --devices", (kind("t/char", "char"), gone("t/fifo", "t/sock")), DEVICES),
    Promise("--devices", "without it a line says so", "-r", (says('skipping non-regular file "char"'),), DEVICES),
    Promise("--devices", "the line about it can be silenced", "-rl --info=nonreg0", (silent(),), DEVICES),
    Promise("--specials", "makes FIFOs and sockets", "-r --specials", (kind("t/fifo", "fifo"), has("t/sock"), gone("t/char")), DEVICES),
    Promise("-D", "is both", "-rD", (kind("t/fifo", "fifo"), kind("t/char", "char")), DEVICES),
    Promise("--drop-D", "makes none, as without -D", "-a --drop-D", (gone("t/fifo", "t/char", "t/sock"),), DEVICES),
    Promise("--drop-D", "is for one end: a remote receiver by -M", "-a -M--drop-D", (gone("t/fifo", "t/char"),), DEVICES, way="push"),
    Promise("--drop-D", "leaves what is there", "-a --drop-D", (kind("t/fifo", "fifo"),), with_(DEVICES, fifo("t/fifo"))),
    Promise("--copy-devices", "copies what a device holds", "-r --copy-devices", (has("t/zero"),),
            with_(device("s/zero", (1, 3)))),

    # --- times ---
    Promise("--times", "sets times, of directories and symlinks, too", "-rlt", (mtime("t/a", TIME), mtime("t/d", TIME), mtime("t/l", TIME))),
    Promise("--times", "without it files are updated each time", "-ri", (says(" same"),), with_(time_of("t/same", TIME - 1))),
    Promise("--times", "takes dates before 1970", "-rt", (mtime("t/old", -86400),), with_(write("s/old", "x", -86400))),
    Promise("--atimes", "sets access times", "-rU", (lambda seen: int(seen.info["t/used"].st_atime) == TIME - 7,),
            with_(write("s/used", "x"), lambda top: os.utime(f"{top}/s/used", (TIME - 7, TIME)))),
    Promise("--open-noatime", "leaves the source's access time", "-r --open-noatime", (lambda seen: int(seen.info["s/used"].st_atime) == TIME - 7,),
            with_(write("s/used", "x"), lambda top: os.utime(f"{top}/s/used", (TIME - 7, TIME)))),
    Promise("--atimes", "twice implies --open-noatime", "-rUU", (lambda seen: int(seen.info["s/used"].st_atime) == TIME - 7,),
            with_(write("s/used", "x"), lambda top: os.utime(f"{top}/s/used", (TIME - 7, TIME)))),
    Promise("--crtimes", "is refused where they cannot be set", "-rN", (text("t/a", OLD),), code=1),
    Promise("--omit-dir-times", "leaves directories their own", "-aO", (fresh("t/d"), mtime("t/a", TIME))),
    Promise("--omit-link-times", "leaves symlinks their own", "-aJ", (fresh("t/l"), mtime("t/a", TIME))),

    # --- deletion ---
    Promise("--delete", "what the source has no longer goes", "-a --delete", (gone("t/extra", "t/d/extra"),)),
    Promise("--delete", "without it nothing goes", "-a", (has("t/extra", "t/d/extra"),)),
    Promise("--delete", "needs -r or -d", "-lt --delete", (has("t/extra"),), code=1),
    Promise("--delete", "only in directories that are synchronised", "-a --delete", (has("t/extra"), gone("t/d/extra")), sources=("s/d",)),
    Promise("--delete", "not for single files", "-a --delete", (has("t/extra", "t/d/extra"),), sources=("s/a", "s/same")),
    Promise("--delete", "what is excluded stays", "-a --delete --exclude=extra", (has("t/extra", "t/d/extra"),)),
    Promise("--delete", "what is hidden at the sender alone goes", ["-a", "--delete", "--filter=H same"], (gone("t/same"),)),
    Promise("--delete", "not after an I/O error of the sender", "-aL --delete", (has("t/extra"), says("IO error encountered")), UNREADABLE, code=23),
    Promise("--delete", "a source that is missing is no such error", "-a --delete", (gone("t/extra"),), sources=("s/", "no-such"), code=23),
    Promise("--delete-before", "deletes first", "-avi --delete-before", (lambda seen: seen.out.index(b"*deleting   extra") < seen.out.index(b" a\n"),), in_order=True),
    Promise("--delete-after", "deletes last", "-avi --delete-after", (lambda seen: seen.out.index(b"*deleting   extra") > seen.out.index(b"x.log"),), in_order=True),
    Promise("--delete-delay", "deletes last", "-avi --delete-delay", (gone("t/extra"), lambda seen: seen.out.index(b"*deleting   extra") > seen.out.index(b"x.log"))),
    Promise("--delete-during", "deletes with each directory", "-ai --delete-during", (gone("t/extra", "t/d/extra"),), way="pull"),
    Promise("--del", "is --delete-during", "-ai --del", (gone("t/extra", "t/d/extra"),), way="push"),
    Promise("--delete-excluded", "what is excluded goes, too", "-a --delete-excluded --exclude=same", (gone("t/same", "t/extra"),)),
    Promise("--delete-excluded", "a protected name stays", ["-a", "--delete-excluded", "--filter=P extra"], (has("t/extra"),)),
    Promise("--ignore-errors", "deletes after an I/O error", "-aL --delete --ignore-errors", (gone("t/extra"),), UNREADABLE, code=23),
    Promise("--force", "a directory that is not empty makes place for a file", "-a --force", (text("t/a", NEW),),
            with_(lambda top: os.unlink(f"{top}/t/a"), directory("t/a/full"))),
    Promise("--force", "without it and --delete it stays", "-a", (kind("t/a", "dir"),),
            with_(lambda top: os.unlink(f"{top}/t/a"), directory("t/a/full")), code=23),
    Promise("--max-delete=NUM", "deletes no more", "-a --delete --max-delete=1", (warns("Deletions stopped due to --max-delete limit"),), code=25),
    Promise("--max-delete=NUM", "0 deletes nothing and warns", "-a --delete --max-delete=0", (has("t/extra", "t/d/extra"),), code=25),
    Promise("--max-delete=NUM", "enough is enough", "-a --delete --max-delete=2", (gone("t/extra", "t/d/extra"),)),
    Promise("--ignore-missing-args", "a missing argument is no error", "-a --ignore-missing-args", (text("t/a", NEW), silent()), sources=("s/a", "s/none")),
    Promise("--delete-missing-args", "deletes what is missing", "-a --delete-missing-args", (gone("t/extra"), text("t/a", NEW)), sources=("s/a", "s/extra")),
    Promise("--delete-missing-args", "does not imply --delete", "-a --delete-missing-args", (has("t/d/extra"),), sources=("s/d", "s/extra")),
    Promise("--remove-source-files", "removes what has arrived", "-a --remove-source-files", (gone("s/a", "s/d/e/c", "s/l"), text("t/a", NEW))),
    Promise("--remove-source-files", "and what was there already", "-a --remove-source-files", (gone("s/same"), text("t/same", SAME))),
    Promise("--remove-source-files", "leaves directories", "-a --remove-source-files", (kind("s/d/e", "dir"), kind("s/empty", "dir"))),
    Promise("--remove-source-files", "not in a dry run", "-an --remove-source-files", (has("s/a", "s/d/e/c"),)),
    Promise("--remove-source-files", "not what is left out", "-a --remove-source-files --exclude=a", (has("s/a"), gone("s/x.log"))),
    Promise("--remove-source-files", "not when source and destination are the same", "-a --remove-source-files", (has("s/a", "s/same"), warns("Skipping sender remove of destination file")), destination="s/", code=23,
            only_shown=True),
    Promise("--prune-empty-dirs", "makes no empty directories", "-am", (gone("t/empty"), has("t/d/e/c"))),
    Promise("--prune-empty-dirs", "nor those that rules have emptied", "-am --exclude=c", (gone("t/d/e"),)),
    Promise("--prune-empty-dirs", "deletes such ones", "-am --delete", (gone("t/empty"),), with_(directory("t/empty"))),

    # --- temporary and partial files ---
    Promise("--partial", "gives the same tree", "-a --partial", (text("t/a", NEW),)),
    Promise("--partial-dir=DIR", "leaves no directory behind", "-a --partial-dir=.part", (gone("t/.part", "t/d/.part"), text("t/a", NEW))),
    Promise("--partial-dir=DIR", "what was kept there is the basis, and goes", "-a --no-W --partial-dir=.part --stats", (gone("t/.part"), size("t/big", 70_000)),
            with_(write("s/big", BIG), directory("t/.part"), write("t/.part/big", BIG[:50_000]))),
    Promise("--partial-dir=DIR", "a relative one is no content of the transfer", "-a --partial-dir=.part --delete", (gone("t/d/.part"), gone("t/extra")),
            with_(directory("s/d/.part"), write("s/d/.part/x", "x"))),
    Promise("--delay-updates", "gives the same tree, and leaves nothing", "-a --delay-updates", (text("t/a", NEW), gone("t/.~tmp~", "t/d/.~tmp~"))),
    Promise("--temp-dir=DIR", "gives the same tree, and leaves nothing", "-a -T {top}/tmp", (text("t/a", NEW), gone("tmp/a")), with_(directory("tmp"))),
    Promise("--temp-dir=DIR", "a missing one is an error", "-a -T {top}/none", (text("t/a", OLD), warns("temp-dir does not exist")), code=1),

    # --- other places ---
    Promise("--compare-dest=DIR", "what is the same there is not made here", "-a --compare-dest=../basis", (gone("new/a"), has("new/d/b")), BASIS, destination="new/"),
    Promise("--compare-dest=DIR", "what differs in attributes is made", "-a --compare-dest=../basis", (mode("new/a", 0o600),),
            with_(BASIS, mode_of("s/a", 0o600)), destination="new/"),
    Promise("--compare-dest=DIR", "removes from the destination what is the same there", "-a --compare-dest=../basis", (gone("new/a"),),
            with_(BASIS, write("new/a", OLD, TIME - 50)), destination="new/"),
    Promise("--copy-dest=DIR", "what is the same there is copied here", "-ai --copy-dest=../basis", (text("new/a", NEW), separate("new/a", "basis/a")), BASIS, destination="new/"),
    Promise("--link-dest=DIR", "what is the same there is linked here", "-a --link-dest=../basis", (linked("new/a", "basis/a"), separate("new/d/b", "basis/d/b")),
            BASIS, destination="new/"),
    Promise("--link-dest=DIR", "attributes have to be the same", "-a --link-dest=../basis", (separate("new/a", "basis/a"),),
            with_(BASIS, mode_of("s/a", 0o600)), destination="new/"),
    Promise("--link-dest=DIR", "may be absolute", "-a --link-dest={top}/basis", (linked("new/a", "basis/a"),), BASIS, destination="new/"),
    Promise("--link-dest=DIR", "with -I nothing is linked", "-aI --link-dest=../basis", (separate("new/a", "basis/a"),), BASIS, destination="new/"),
    Promise("--link-dest=DIR", "several are asked in order", "-a --link-dest=../basis --link-dest=../second", (linked("new/a", "basis/a"), linked("new/x.log", "second/x.log")),
            with_(BASIS, directory("second"), write("second/a", NEW), write("second/x.log", "log\n")), destination="new/"),
    Promise("--link-dest=DIR", "there may be 20 of them", " ".join(["-a", *["--link-dest=../basis"] * 21]), (gone("new/a"),), BASIS, destination="new/", code=1),
    Promise("--fuzzy", "a file of the same size and time is a basis", "-a --no-W -y --stats", (lambda seen: b"Matched data: 0 bytes" not in seen.out,),
            with_(write("s/big.2", BIG), write("t/big.1", BIG))),
    Promise("--fuzzy", "so is one with a similar name", "-a --no-W -y --stats", (lambda seen: b"Matched data: 0 bytes" not in seen.out,),
            with_(write("s/image-1.2.iso", BIG), write("t/image-1.1.iso", BIG[:60_000], TIME - 9))),
    Promise("--fuzzy", "twice looks in other places, too", "-a --no-W -yy --compare-dest=../basis --stats", (lambda seen: b"Matched data: 0 bytes" not in seen.out,),
            with_(BASIS, write("s/image-1.2.iso", BIG), write("basis/image-1.1.iso", BIG[:60_000], TIME - 9)), destination="new/"),

    # --- compression ---
    *[Promise("--compress-choice=STR", f"{name} gives the same tree", f"-az --zc={name}", (size("t/big", 70_000), text("t/a", NEW)), with_(write("s/big", BIG)), way="pull")
      for name in ("zstd", "lz4", "zlibx", "zlib", "none")],
    Promise("--compress-choice=STR", "an unknown name is an error", "-a --zc=bzip2", (text("t/a", OLD),), code=4),
    Promise("--compress-level=NUM", "one that is too large is limited", "-a --zc=zstd --zl=999999999 --debug=nstr", (says("(level 22)"),), way="push"),
    Promise("--compress-level=NUM", "implies --compress", "-a --zc=zlib --zl=9 --debug=nstr", (says("compress: zlib"),), way="pull"),
    Promise("--compress", "gives the same tree", "-az", (text("t/a", NEW), size("t/big", 70_000)), with_(write("s/big", BIG)), way="push"),
    Promise("--compress-threads=NUM", "gives the same tree", "-az --zt=2", (text("t/a", NEW),), way="pull"),
    Promise("--skip-compress=LIST", "gives the same tree", "-az --skip-compress=log/gz", (text("t/x.log", "log\n"),), way="push"),

    # --- rules ---
    Promise("--exclude=PATTERN", "leaves out what matches, at each level", "-a --exclude=*.log", (gone("t/x.log", "t/d/y.log"), has("t/d/e/c")), RULES),
    Promise("--exclude=PATTERN", "a leading slash is the top of the transfer", "-a --exclude=/x.log", (gone("t/x.log"),), RULES),
    Promise("--exclude=PATTERN", "a trailing slash is for directories", "-a --exclude=d/ --exclude=a/", (gone("t/d/e"), text("t/a", NEW)), RULES),
    Promise("--exclude=PATTERN", "two stars match slashes", "-a --exclude=d/**c", (gone("t/d/e/c"), has("t/d/e")), RULES),
    Promise("--exclude=PATTERN", "one star does not", "-a --exclude=/d/*c", (has("t/d/e/c"),), RULES),
    Promise("--exclude=PATTERN", "dir/*** is the directory and all below", "-a --exclude=/d/***", (gone("t/d/e"),), RULES),
    Promise("--include=PATTERN", "the first match counts", "-a --include=x.log --exclude=*.log", (has("t/x.log"), gone("t/d/y.log")), RULES),
    Promise("--include=PATTERN", "does not reach below what is excluded", "-a --include=y.log --exclude=d", (gone("t/d/y.log"),), RULES),
    Promise("--exclude-from=FILE", "reads patterns, comments and kinds of rules", "-a --exclude-from={top}/rules", (gone("t/x.log"), text("t/a", NEW)), RULES),
    Promise("--exclude-from=FILE", "an exclamation mark clears the list", "-a --exclude-from={top}/clear", (has("t/x.log"),), RULES),
    Promise("--exclude-from=FILE", "a missing file is an error", "-a --exclude-from={top}/none", (text("t/a", OLD),), RULES, code=11),
    Promise("--include-from=FILE", "reads patterns", "-a --include-from={top}/inc --exclude=*.log", (has("t/d/y.log"), gone("t/x.log")), RULES),
    Promise("--from0", "names end with a zero byte in files of rules", "-a --from0 --exclude-from={top}/rules0", (gone("t/x.log"),), RULES),
    Promise("--from0", "and in lists of files", "-a -0 --files-from={top}/list0", (text("t/a", NEW), text("t/d/b", NEW), gone("t/x.log")), LISTED),
    Promise("--filter=RULE", "takes short rules", ["-a", "-f", "- *.log"], (gone("t/x.log"),), RULES),
    Promise("--filter=RULE", "an underscore stands for the space", "-a --filter=-_*.log", (gone("t/x.log"),), RULES),
    Promise("--filter=RULE", "takes long rules", ["-a", "--filter=exclude *.log"], (gone("t/x.log"),), RULES),
    Promise("--filter=RULE", "hide is for the sender, protect for the receiver", ["-a", "--delete", "--filter=hide same", "--filter=protect extra"],
            (gone("t/same"), has("t/extra")), RULES),
    Promise("--filter=RULE", "show and risk take rules back", ["-a", "--delete", "--filter=show x.log", "--filter=risk extra", "--exclude=*.log", "--exclude=extra"],
            (has("t/x.log"), gone("t/extra")), RULES),
    Promise("--filter=RULE", "merges files", ["-a", "--filter=merge {top}/rules"], (gone("t/x.log"),), with_(RULES, write("rules", "- *.log\n"))),
    Promise("--filter=RULE", "merges a file of each directory", ["-a", "--filter=dir-merge .rsync-filter"], (text("t/d/b", OLD), has("t/x.log")), RULES),
    Promise("--filter=RULE", "an exclamation mark in a rule turns it round", ["-a", "--filter=-! */", "--exclude=none"], (gone("t/x.log"), has("t/d/e")), RULES),
    Promise("--filter=RULE", "a broken one is an error", ["-a", "--filter=nonsense x"], (text("t/a", OLD), warns("nonsense")), RULES, code=1),
    Promise("-F", "reads .rsync-filter of each directory", "-aF", (text("t/d/b", OLD), has("t/d/.rsync-filter")), RULES),
    Promise("-F", "twice leaves those files out", "-aFF", (text("t/d/b", OLD), gone("t/d/.rsync-filter")), RULES),
    Promise("--cvs-exclude", "leaves out what CVS ignores", "-aC", (gone("t/keep.o", "t/core"),), RULES),
    Promise("--cvs-exclude", "reads .cvsignore of each directory", "-aC", (gone("t/x.log"), has("t/d/y.log")), RULES),
    Promise("--cvs-exclude", "own rules count before", "-aC --include=*.o", (has("t/keep.o"), gone("t/core")), RULES),
    Promise("--files-from=FILE", "sends what is listed, with its path", "-a --files-from={top}/list", (text("t/a", NEW), text("t/d/b", NEW), gone("t/x.log", "t/d/e")), LISTED),
    Promise("--files-from=FILE", "a trailing slash stands for the content", "-a --files-from={top}/slash", (text("t/d/b", NEW), kind("t/d/e", "dir"), gone("t/d/e/c")), LISTED),
    Promise("--files-from=FILE", "with -r all below", "-ar --files-from={top}/slash", (has("t/d/e/c"),), LISTED),
    Promise("--files-from=FILE", "a leading slash is taken off", "-a --files-from={top}/abs", (text("t/d/b", NEW),), LISTED),
    Promise("--files-from=FILE", "no entry gets above the source", "-a --files-from={top}/up", (text("t/a", NEW), gone("a")), LISTED),
    Promise("--files-from=FILE", "--no-R sends last parts only", "-a --no-R --files-from={top}/list", (text("t/b", NEW),), LISTED),
    Promise("--files-from=FILE", "--no-d skips directories", "-a --no-d --files-from={top}/dirname", (says("skipping directory d"),), LISTED),
    Promise("--files-from=FILE", "lines may end as those of DOS", "-a --files-from={top}/dos", (text("t/a", NEW), text("t/d/b", NEW)), LISTED),
    Promise("--files-from=FILE", "a colon means the other end's file", "-a --files-from=:{top}/list", (text("t/a", NEW), gone("t/x.log")), LISTED, way="pull"),
    Promise("--files-from=FILE", "the same with a push", "-a --files-from=:{top}/list", (text("t/a", NEW), gone("t/x.log")),
            with_(write("list", "a\nd/b\n")), way="push"),
    Promise("--files-from=FILE", "takes one source", "-a --files-from={top}/list", (text("t/a", OLD),), LISTED, sources=("s/", "s/d/"), code=1, only_shown=True),
    Promise("--files-from=FILE", "a name that is missing is an error of the run", "-a --files-from={top}/missing", (text("t/a", NEW), warns("nowhere")),
            with_(write("missing", "nowhere\na\n")), code=23),

    # --- limits ---
    Promise("--one-file-system", "gives the same tree within one file system", "-ax", (has("t/d/e/c"),)),
    Promise("--timeout=SECONDS", "does not disturb a run", "-a --timeout=30", (text("t/a", NEW),), way="pull"),
    Promise("--contimeout=SECONDS", "is for daemons", "-a --contimeout=5", (warns("--contimeout"), text("t/a", OLD)), code=1, only_shown=True),
    Promise("--bwlimit=RATE", "0 is no limit", "-a --bwlimit=0", (text("t/a", NEW),)),
    Promise("--bwlimit=RATE", "a broken one is an error", "-a --bwlimit=fast", (text("t/a", OLD),), code=1),
    Promise("--stop-after=MINS", "does not disturb a run that ends before", "-a --stop-after=10", (text("t/a", NEW),)),
    Promise("--stop-after=MINS", "a broken one is an error", "-a --stop-after=soon", (text("t/a", OLD),), code=1),
    Promise("--stop-at=y-m-dTh:m", "a time that is over is an error", "-a --stop-at=2001-01-01", (text("t/a", OLD),), code=1),
    Promise("--max-alloc=SIZE", "one that is too small is an error", "-a --max-alloc=10", (warns("max-alloc"), text("t/a", OLD)), code=1),

    # --- what users see ---
    Promise("--itemize-changes", "says what changes", "-ai", (says(">f.st...... a", ">f+++++++++ x.log", "cd+++++++++ d/e/", "cL+++++++++ l -> a"),)),
    Promise("--itemize-changes", "is --out-format=%i_%n%L", ["-a", "--out-format=%i %n%L"], (says(">f.st...... a", "cL+++++++++ l -> a"),)),
    Promise("--itemize-changes", "twice names what is unchanged", "-aii", (says(".f          same"),)),
    Promise("--itemize-changes", "a push sends", "-ai", (says("<f.st...... a"),), way="push"),
    Promise("--itemize-changes", "T is the time of the run", "-ri --size-only", (says(">f.sT...... a"),)),
    Promise("--out-format=FORMAT", "implies names", "-a --out-format=[%n]", (says("[a]", "[d/e/c]"),)),
    Promise("--out-format=FORMAT", "knows size, mode and target", ["-a", "--out-format=%l %B %L %f"], (says("rw-r--r--"),)),
    Promise("--out-format=FORMAT", "nothing prints empty lines", "-a --out-format=", (lambda seen: set(seen.out) == set(b"\n"),)),
    Promise("--verbose", "names what is sent, and sums up", "-av", (says("a\n", "x.log\n", "total size is"),)),
    Promise("--verbose", "twice names what is up to date", "-avv", (says("same is uptodate"),)),
    Promise("--verbose", "without it nothing is printed", "-a", (silent(),)),
    Promise("--quiet", "is quieter than one -v", "-avq", (silent("total size"),)),
    Promise("--info=FLAGS", "a word with 0 silences", "-av --info=stats0", (silent("total size is"), says("x.log"))),
    Promise("--info=FLAGS", "none silences all", "-avv --info=none", (silent("x.log"),)),
    Promise("--info=FLAGS", "words are counted", "-a --info=name1,del1 --delete", (says("deleting extra", "x.log"),)),
    Promise("--info=FLAGS", "an unknown word is an error", "-a --info=weather", (warns("weather"), text("t/a", OLD)), code=1),
    Promise("--debug=FLAGS", "an unknown word is an error", "-a --debug=weather", (warns("weather"),), code=1),
    Promise("--stderr=e|a|c", "all goes to one stream", "-av --stderr=all", (lambda seen: not seen.out and b"x.log" in seen.err,)),
    Promise("--stderr=e|a|c", "has older names", "-av --msgs2stderr", (lambda seen: not seen.out and b"x.log" in seen.err,)),
    Promise("--stderr=e|a|c", "an unknown word is an error", "-av --stderr=x", (text("t/a", OLD),), code=1),
    Promise("--stats", "counts files by kind", "-a --stats", (says("Number of files: 10 (reg: 5, dir: 4, link: 1)", "Number of created files:", "Number of deleted files: 0"),)),
    Promise("--human-readable", "counts in thousands", "-ah --stats", (says("70.0"),), with_(write("s/big", BIG))),
    Promise("--human-readable", "twice counts in 1024s", "-ahh --stats", (says("K"),), with_(write("s/big", BIG))),
    Promise("--human-readable", "--no-h has no separators", "-a --no-h --stats", (says("700"),), with_(write("s/big", BIG))),
    Promise("--8-bit-output", "leaves bytes as they are", "-a8 --out-format=%n", (lambda seen: b"\xff" in seen.out,), with_(lambda top: put(os.fsencode(f"{top}/s/") + b"byte\xff", "x"))),
    Promise("--8-bit-output", "without it they are escaped", "-a --out-format=%n", (says("byte\\#377"),), with_(lambda top: put(os.fsencode(f"{top}/s/") + b"byte\xff", "x"))),
    Promise("--list-only", "lists instead of copying", "-r --list-only", (says("x.log", "d/e/c"), text("t/a", OLD))),
    Promise("--progress", "says how far it is", "-a --progress", (says("100%", "xfr#"),), only_shown=True),
    Promise("--outbuf=N|L|B", "gives the same lines", "-ai --outbuf=L", (says("x.log"),)),
    Promise("--outbuf=N|L|B", "an unknown word is an error", "-ai --outbuf=X", (text("t/a", OLD),), code=1),
    Promise("--log-file=FILE", "writes items to a file", "-a --log-file={top}/log", (lambda seen: b">f+++++++++ x.log" in seen.texts["log"],), apart=("log",)),
    Promise("--log-file-format=FMT", "has a format of its own", ["-a", "--log-file={top}/log", "--log-file-format=<%n>"], (lambda seen: b"<x.log>" in seen.texts["log"],), apart=("log",)),

    # --- the way to the other end ---
    Promise("--remote-option=OPT", "is for the other end alone", "-ai -M--no-x -x", (has("t/d/e/c"),), way="push"),
    Promise("--secluded-args", "names with spaces and stars arrive", ["-as"], (text("t/odd * name", "odd\n"),), with_(write("s/odd * name", "odd\n")),
            way="pull", sources=("s/odd * name",)),
    Promise("--secluded-args", "without it spaces are escaped", ["-a"], (text("t/odd name", "odd\n"),), with_(write("s/odd name", "odd\n")), way="pull",
            sources=("s/odd name",)),
    Promise("--secluded-args", "wildcards are the other end's", ["-as"], (has("t/x.log"), text("t/a", OLD)), way="pull", sources=("s/*.log",)),
    Promise("--secluded-args", "cannot be had with --old-args", "-as --old-args", (text("t/a", OLD),), way="pull", code=1),
    Promise("--old-args", "arguments are split", ["-a", "--old-args"], (has("t/x.log", "t/same"),), way="pull", sources=("s/x.log",)),
    Promise("--trust-sender", "gives the same tree", "-a --trust-sender", (text("t/a", NEW),), way="pull"),
    Promise("--protocol=NUM", "speaks an older one", "-a --delete", (text("t/a", NEW), gone("t/extra")), way="pull", protocol=29),
    Promise("--protocol=NUM", "one that is too old is an error", "-a --protocol=19", (text("t/a", OLD),), code=2, only_shown=True),
    Promise("--blocking-io", "gives the same tree", "-a --blocking-io", (text("t/a", NEW),), way="pull"),
    Promise("--iconv=CONVERT_SPEC", "converts names", ["-a", "--iconv=UTF-8,ISO-8859-1"], (lambda seen: any("\udce4" in path for path in seen.info),),
            with_(write("s/\u00e4", "x")), way="push"),

    # --- batches ---
    Promise("--write-batch=FILE", "writes a batch beside the run", "-a --write-batch={top}/batch", (has("batch", "batch.sh"), text("t/a", NEW)), apart=("batch", "batch.sh")),
    Promise("--only-write-batch=FILE", "does not touch the destination", "-a --only-write-batch={top}/batch", (has("batch", "batch.sh"), text("t/a", OLD)), apart=("batch", "batch.sh")),
    Promise("--read-batch=FILE", "a missing file is an error", "-a --read-batch={top}/none", (text("t/a", OLD),), sources=(), code=11),

    # --- operators' paths ---
    Promise("--insecure-links", "without it a stranger's symlink is not followed", "-a --exclude-from={top}/foreign/rules", (text("t/a", OLD),),
            with_(directory("theirs"), write("theirs/rules", "*.log\n"), symlink("foreign", "theirs"), owned("foreign", 4321, 4321)), code=11),
    Promise("--insecure-links", "follows it", "-a --insecure-links --exclude-from={top}/foreign/rules", (gone("t/x.log"), text("t/a", NEW)),
            with_(directory("theirs"), write("theirs/rules", "*.log\n"), symlink("foreign", "theirs"), owned("foreign", 4321, 4321))),
    Promise("--confine-root=DIR", "has to be absolute", "-a --confine-root=here", (text("t/a", OLD),), code=1),
    Promise("--confine-root=DIR", "a path that leads out is refused", "-a --confine-root={top}/t --backup-dir=../old -b", (gone("old"), text("t/a", OLD)), code=11, only_shown=True),
    Promise("--confine-root=DIR", "/ confines nothing", "-a --confine-root=/ --backup-dir=../old", (text("old/a", OLD),)),
    Promise("--confine-root=DIR", "is refused beside --insecure-links", "-a --confine-root={top} --insecure-links", (text("t/a", OLD),), code=1),
]
