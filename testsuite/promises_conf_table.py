# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes doc/promises-conf.md: for each section of rsyncd.conf(5) which of its sentences are shown by which kind of test.

    python3 promises_conf_table.py           write it anew, counting the sentences of the installed manual page
    python3 promises_conf_table.py --check   say whether it is current; the sentences are taken from it as they stand
"""
import collections
import gzip
import glob
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True

import promises_page  # noqa: E402
import promises_conf_rest  # noqa: E402
import promises_conf_rows  # noqa: E402

TABLE = "promises-conf.md"
HEAD = """# What rsyncd.conf(5) promises, and what shows it

For each section of rsyncd.conf(5) 3.5.0: how many sentences it has, how many rows of `testsuite/system/promises_conf_rows.py` it
has, and the numbers of the sentences that these show, that another test shows, that promise nothing (advice, reasons, history,
references, examples), and that nothing shows. Each row is played with a stock daemon and with ours, and what shows it holds for
both; the rest (exit codes, output, logs, files) is the same, or the row says why not. The items of a list are a sentence each, what
is set as an example is none. Written by `make promises`; `make format-check` says when it is out of date.

| section | sentences | rows | shown | by other tests | no promise | not shown |
|---|---|---|---|---|---|---|
"""
SENTENCE = re.compile(r"\S.*?(?:(?<!e\.g)(?<!i\.e)[.!?][)\"]*(?=\s+[A-Z(\"]|\s*$)|$)")


def read_page():
    path = subprocess.run(["man", "-w", "rsyncd.conf"], capture_output=True, text=True, check=True).stdout.strip()
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        return file.read().split("\n")


def count_sentences():
    """{section: sentences} of the installed page, by its markup: .SH and .IP head a section, .P goes back to that of .SH."""
    found, paragraph = collections.OrderedDict(), []
    chapter = section = None
    is_example = False
    for line in [*read_page(), ".P"]:
        if line in (".nf", ".fi"):
            is_example = line == ".nf"
        elif is_example:
            continue
        elif not line.startswith("."):
            paragraph.append(re.sub(r"\\f.|\\&", "", line.replace("\\ ", " ").replace("\\-", "-")))
        else:
            if section:
                found[section] = found.get(section, 0) + len(SENTENCE.findall(" ".join(paragraph).strip()))
            paragraph.clear()
            head = re.match(r'\.(SH|IP)\s+"(.*?)"$', line)
            if line == ".P":
                section = chapter
            elif head and head[2] != "o":
                section = re.sub(r"\\f.|\\$", "", head[2].replace("\\ ", " ").replace("\\-", "-")).strip()
                chapter = section if head[1] == "SH" else chapter
    return {name: number for name, number in found.items() if number}


def stored_sentences():
    found = promises_page.stored(TABLE, r"^\| (?!section|all )([^|]*?) \| (\d+) \|")
    return {match[1]: int(match[2]) for match in found}


def numbers(text):
    """{1, 3, 4, 5} of "1 3-5"."""
    found = set()
    for word in text.split():
        first, _, last = word.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def spelled(found):
    """"1 3-5" of {1, 3, 4, 5}."""
    words = []
    for number in sorted(found):
        if words and words[-1][1] == number - 1:
            words[-1][1] = number
        else:
            words.append([number, number])
    return " ".join(str(first) if first == last else f"{first}{'-' if last > first + 1 else ' '}{last}" for first, last in words)


def account(section, count):
    """Of one section: the numbers in each column, and why what is not shown is not."""
    shown, others, silent, missing = set(), set(), set(), {}
    for promise in promises_conf_rows.ROWS:
        shown |= numbers(promise.sentences) if promise.section == section else set()
    for words, why in promises_conf_rest.REST.get(section, {}).items():
        if why in promises_conf_rest.NO_PROMISE:
            silent |= numbers(words)
        elif re.fullmatch(r"test_\w+\.py", why):
            assert glob.glob(os.path.join(promises_page.HERE, "system/**", why), recursive=True), why
            others |= numbers(words)
        else:
            missing.update(dict.fromkeys(numbers(words), why))
    listed = [shown, others, silent, set(missing)]
    every = set().union(*listed)
    assert sum(map(len, listed)) == len(every), f"{section}: sentences that are listed twice: {listed}"
    wrong = sorted(every ^ set(range(1, count + 1)))
    assert not wrong, f"{section}: {wrong} of its sentences are not accounted for, or are none"
    return listed, missing


def table(sentences):
    rows = collections.Counter(promise.section for promise in promises_conf_rows.ROWS)
    unknown = (set(rows) | set(promises_conf_rest.REST)) - set(sentences)
    assert not unknown, f"rows of sections that the manual does not have: {sorted(unknown)}"
    text, notes, sums = HEAD, "", [0] * 4
    for section, count in sentences.items():
        listed, missing = account(section, count)
        sums = [total + len(part) for total, part in zip(sums, listed)]
        text += f"| {section} | {count} | {rows[section]} | {' | '.join(map(spelled, listed))} |\n"
        notes += "".join(f"- {section} {number}: {why}\n" for number, why in sorted(missing.items()))
    text += f"| all {len(sentences)} | {sum(sentences.values())} | {sum(rows.values())} | {' | '.join(map(str, sums))} |\n"
    return re.sub(r"\|  (?=\|)", "| ", text) + f"\nWhat is not shown:\n\n{notes}"


if __name__ == "__main__":
    sys.exit(promises_page.main(TABLE, table, count_sentences, stored_sentences))
