#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mechanical part of the code style: layout, function length, comments, that only fs/ takes paths, citations of doc/protocol.

See also layout_check.py and format_changed.py.

Usage: format_check.py SOURCE_DIRECTORY; prints FILE:LINE: what, and exits 1 if there is anything to print.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from layout_check import FLOOR_OF  # noqa: E402

COLUMNS = 128
FUNCTION_LINES = 100
# A comment line in the middle of a sentence that leaves this much room although the next word would fit was cut by an edit.
COMMENT_ROOM = 20

# Calls that take a path; only fs/ makes them.
PATH_CALLS = re.compile(
    r"(?<![\w.>])(open|openat|creat|fopen|opendir|stat|lstat|fstatat|statx|access|faccessat|unlink|unlinkat|rename|renameat2?|"
    r"link|linkat|symlink|symlinkat|readlink|readlinkat|mkdir|mkdirat|rmdir|mknod|mknodat|mkfifo|chmod|fchmodat|l?chown|"
    r"fchownat|utimensat|truncate|mkstemp|realpath|chdir|chroot|[lf]?setxattr|l?getxattr|l?listxattr|acl_get_file|acl_set_file)\("
)
# Calls that answer from memory that all threads share, and the rooms whose code runs in threads.
THREADED = {"lib", "fs", "wire", "delta", "filter", "attrs", "flist", "dest", "sender", "receiver", "contents"}
SHARED_CALLS = re.compile(
    r"(?<![\w.>])(get(pw|gr)(nam|uid|gid|ent)|localtime|gmtime|asctime|ctime|strtok|rand|random|setenv|unsetenv|putenv|setlocale|"
    r"gethostby\w+|getserv\w+|getlogin|ttyname|strsignal|tmpnam|basename|dirname|getmntent)\("
)
# The description of the protocol is cited by paths from the top of the tree.
CITED = re.compile(r"\bdoc/protocol/([\w.-]*\w)")
BARE_CITATION = re.compile(r"(?<!doc/)\b[Pp]rotocol/\d")
MADE = re.compile(r"\.|build|deb$|distcheck$|corpus$|captures$|(arch|debian|fresh|rsync-huai)-")
CITING = (".c", ".h", ".py", ".md", ".in", ".ac", ".sh", ".1", ".5", ".8")
SECTION = re.compile(r"/\* --- .* --- \*/$")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def sources(root):
    for directory in ("", *FLOOR_OF, "testsuite/unit", "testsuite/fuzz", "testsuite/faults", "bench"):
        for name in sorted(os.listdir(os.path.join(root, directory)) if os.path.isdir(os.path.join(root, directory)) else []):
            if name.endswith((".c", ".h")):
                yield os.path.join(directory, name)


def layout(lines):
    if not lines or not lines[0].startswith("/* SPDX-License-Identifier: GPL-3.0-or-later */"):
        yield 1, "no SPDX line"
    for number, line in enumerate(lines, 1):
        if len(line.expandtabs(8)) > COLUMNS:
            yield number, f"longer than {COLUMNS} columns"
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
        if line.startswith("        "):
            yield number, "indented with blanks, not tabs"
        if UNFINISHED.search(line):
            yield number, "mark of unfinished work"
        if re.match(r"\s*extern\s+[^(]*;", line):
            yield number, "extern variable"
        if not line and number > 1 and not lines[number - 2]:
            yield number, "a second empty line"
        if SECTION.match(line) and SECTION.match(next(filter(None, lines[number:]), "")):
            yield number, "a section with nothing in it"


def functions(lines):
    """A function's body stands between a "{" and a "}" in the first column."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            if number - start > FUNCTION_LINES:
                yield start, f"function of {number - start} lines, more than {FUNCTION_LINES}"
            start = None


def comment_text(line):
    return re.sub(r"^\s*(/\*|\*(?!/))? ?", "", line).replace("*/", "").rstrip()


def is_prose(text):
    """Neither an example, nor an item of a list, nor a row of a table."""
    return text and not re.match(r"\s|[-*+|]|\d+[.)] |@|\w+(\(\))?:", text) and not re.search(r"\s\s\S|\t|;$", text)


def comments(lines):
    """Comments of more than one line that begin a line: each line with the next one."""
    inside = False
    for number, line in enumerate(lines, 1):
        inside = (inside or re.match(r"\s*/\*", line)) and "*/" not in line
        if not inside or number == len(lines):
            continue
        text, after = comment_text(line), comment_text(lines[number])
        if is_prose(text) and not re.search(r"[.:;?!)]$", text) and is_prose(after):
            if len(line.expandtabs(8).rstrip()) + 1 + len(after.split()[0]) <= COLUMNS - COMMENT_ROOM:
                yield number, "a comment line that the next one's words would fit on"
        if not lines[number].lstrip().startswith("*"):
            yield number + 1, "a line of a comment without its star"


def paths_outside_fs(path, lines):
    room = os.path.dirname(path)
    if room == "fs" or room not in FLOOR_OF and room != "":
        return
    for number, line in enumerate(lines, 1):
        code = re.sub(r'"(\\.|[^"\\])*"', '""', line).split("/*")[0]
        if not code.lstrip().startswith("*") and PATH_CALLS.search(code):
            yield number, f"{PATH_CALLS.search(code).group(1)}() on a path outside fs/"


def shared_calls(path, lines):
    if os.path.splitext(path)[0].split("/")[0] not in THREADED:
        return
    for number, line in enumerate(lines, 1):
        code = re.sub(r'"(\\.|[^"\\])*"', '""', line).split("/*")[0]
        if not code.lstrip().startswith("*") and SHARED_CALLS.search(code):
            yield number, f"{SHARED_CALLS.search(code).group(1)}() where threads run"


def citing_files(root):
    """Every text of the tree; what lies in directories that builds make, or in hidden ones, is left out."""
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not MADE.match(name))
        for name in sorted(files):
            if name.endswith(CITING):
                yield os.path.relpath(os.path.join(directory, name), root)


def citations(root):
    for path in citing_files(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                for cited in CITED.findall(line):
                    if not os.path.exists(os.path.join(root, "doc/protocol", cited)):
                        yield f"{path}:{number}: doc/protocol/{cited} is cited and not there"
                if BARE_CITATION.search(line):
                    yield f"{path}:{number}: a chapter is cited without its path below doc/protocol"


def main(root):
    found = 0
    for problem in citations(root):
        print(problem)
        found += 1
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        lines = text.split("\n")[:-1]
        problems = [*layout(lines), *functions(lines), *comments(lines), *paths_outside_fs(path, lines),
                    *shared_calls(path, lines)]
        if not text.endswith("\n"):
            problems.append((len(lines), "no newline at the end"))
        for number, problem in sorted(problems):
            print(f"{path}:{number}: {problem}")
        found += len(problems)
    print(f"{found} problems of style")
    return found != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
