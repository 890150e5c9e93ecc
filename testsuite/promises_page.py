# SPDX-License-Identifier: GPL-3.0-or-later
"""What the programs share that write doc/promises*.md: the rows of the system tests can be imported after this."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "system"))


def path_of(name):
    return os.path.join(HERE, "../doc", name)


def stored(name, pattern):
    """The matches of a pattern in a table as it stands."""
    with open(path_of(name)) as file:
        return list(re.finditer(pattern, file.read(), re.MULTILINE))


def main(name, table, count_sentences, stored_sentences, passing=r"(?!)"):
    """Write doc/NAME anew, counting the sentences of the installed manual page; with --check say whether it is current but for what
    `passing` matches, and take the sentences from it as they stand."""
    if "--check" not in sys.argv[1:]:
        text = table(count_sentences())
        with open(path_of(name), "w") as file:
            file.write(text)
        return 0
    text = table(stored_sentences())
    with open(path_of(name)) as file:
        if re.sub(passing, "", file.read(), flags=re.MULTILINE) == re.sub(passing, "", text, flags=re.MULTILINE):
            return 0
    print(f"doc/{name} is not current: make promises")
    return 1
