# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes doc/promises.md: for each option of rsync(1) how much the manual says of it, and how much of that is tested.

    python3 promises_table.py           write it anew, counting the sentences of the installed manual page
    python3 promises_table.py --check   say whether it is current; the sentences are taken from it as they stand
"""
import collections
import glob
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True

import promises_page  # noqa: E402
import promises_rows  # noqa: E402

TABLE = "promises.md"
HEAD = """# What rsync(1) promises, and what shows it

For each option of rsync(1) 3.5.0: how many sentences the manual has on it, how many of their consequences are rows of
`testsuite/system/promises_rows.py`, and how many other lines of the system tests name the option. Each row is run by stock and by
ours, and holds for both; the rest (exit code, output, source and destination) has to be the same. Many sentences have no consequence
of their own: reasons, examples, history. Written by `make promises`; `make format-check` says when it is out of date.

| option | sentences | promises | lines of other tests |
|---|---|---|---|
"""


def count_sentences():
    """{option as its section is headed: sentences} of the installed page."""
    page = subprocess.run("man -P cat rsync | col -b", shell=True, capture_output=True, text=True,
                          env={**os.environ, "MANWIDTH": "10000", "LC_ALL": "C.UTF-8"}).stdout
    sections, current = collections.OrderedDict(), None
    of_options = False
    for line in page.split("\n"):
        if re.match(r"^[A-Z]", line):
            of_options, current = line in ("OPTIONS", "DAEMON OPTIONS"), None
        elif re.match(r"^ {7}-[-\w]", line) and of_options:
            head, *rest = re.split(r"\s{2,}|\t+|(?<=^--help) ", line.strip())
            current = sections.setdefault(head, [])
            current += rest
        elif current is not None:
            current.append(line.strip())
    found = {name: len(re.findall(r"[.!:](?=\s+[A-Z(]|\s*$)", " ".join(lines).strip())) for name, lines in sections.items()}
    return {name: number for name, number in found.items() if number}


def stored_sentences():
    found = promises_page.stored(TABLE, r"^\| `(-.*?)` \| (\d+) \|")
    return {match[1].replace("\\|", "|"): int(match[2]) for match in found}


def names_of(text):
    """The names of an option as the manual or a row heads it: ["--delete-during", "--del"]."""
    return re.findall(r"(?<![\w-])-{1,2}[\w][\w-]*", re.sub(r"[=\[].*?(?=,|$| )", "", text))


def other_lines(names):
    long_names = [name for name in names if name.startswith("--")] or names
    pattern = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in long_names))
    paths = [path for path in glob.glob(os.path.join(promises_page.HERE, "system/**/*.py"), recursive=True) if "promises" not in os.path.basename(path)]
    count = 0
    for path in paths:
        with open(path) as file:
            count += sum(1 for line in file if pattern.search(line))
    return count


def table(sentences):
    rows = collections.Counter(name for promise in promises_rows.ROWS for name in names_of(promise.option)[:1])
    lines = []
    for section, number in sentences.items():
        names = names_of(section)
        lines.append((section, number, sum(rows.pop(name, 0) for name in names), other_lines(names)))
    assert not rows, f"rows of options that the manual does not know: {sorted(rows)}"
    text = HEAD + "".join(f"| `{section.replace('|', chr(92) + '|')}` | {number} | {count} | {others} |\n" for section, number, count, others in lines)
    totals = [sum(line[i] for line in lines) for i in (1, 2, 3)]
    return text + f"| all {len(lines)} | {totals[0]} | {totals[1]} | {totals[2]} |\n"


if __name__ == "__main__":
    # How often other tests name an option changes every day.
    sys.exit(promises_page.main(TABLE, table, count_sentences, stored_sentences, passing=r"\| \d+ \|$"))
