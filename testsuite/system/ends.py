# SPDX-License-Identifier: GPL-3.0-or-later
"""One job with stock at both ends, and again with ours at either one, or at the only one of a local run; nobody may be able to tell.

    ends.assert_agree(place, make, "-ai --delete", "push", 29)

`make` builds the source `s`, and what there is already of the destination `t`, in an empty directory.
"""
import os
import re
import shutil
import time

import harness
import receiver
import trees

WAYS = ("local", "pull", "push")
PAIRINGS = {"local": ((harness.HUAI, None),), "pull": ((harness.HUAI, harness.STOCK), (harness.STOCK, harness.HUAI))}
PAIRINGS["push"] = PAIRINGS["pull"]


def words(top, options, sources, way, protocol, server, destination="t/"):
    """The operands, and the options that have `server` at the other end."""
    names = [f"{top}/{source}" for source in sources]
    options = [word.format(top=top) for word in (options.split() if isinstance(options, str) else options)]
    if way == "local":
        return [*options, *names, f"{top}/{destination}"]
    shell = ["-e", harness.make_remote_shell(top), f"--rsync-path={server}", f"--protocol={protocol}"]
    if way == "pull":
        return [*options, *shell, *[f"h:{name}" for name in names], f"{top}/{destination}"]
    return [*options, *shell, *names, f"h:{top}/{destination}"]


def run(place, make, options, way, protocol, client, server, sources=("s/",), in_order=False, extra=None):
    """Exit code, both streams as lines, and the destination, with what `extra` finds in it."""
    top = os.path.join(place, "work")
    os.mkdir(top)
    make(top)
    since = (int(time.time()) - 1) * 1_000_000_000
    result = harness.run(client, *words(top, options, sources, way, protocol, server), cwd=top)
    tree = trees.describe(f"{top}/t", since_ns=since)
    if extra:
        for path, entry in tree.items():
            entry["extra"] = extra(os.path.normpath(os.path.join(os.fsencode(f"{top}/t"), path)))
    shutil.rmtree(top)

    def lines(text):
        text = harness.normalise(text, (harness.HUAI, "PROGRAM"), (harness.STOCK, "PROGRAM"))
        found = re.sub(rb"hash_hits=\d+", b"hash_hits", receiver.TEMP_NAME.sub(rb"/\1" + b'"', text)).split(b"\n")
        return found if in_order else sorted(found)
    return result, lines(result.stdout), lines(result.stderr), tree


def assert_agree(place, make, options, way, protocol=32, **how):
    expected = run(place, make, options, way, protocol, harness.STOCK, harness.STOCK, **how)
    for client, server in PAIRINGS[way]:
        got = run(place, make, options, way, protocol, client, server, **how)
        both = expected[0].text + got[0].text
        assert got[0].code == expected[0].code, both
        assert got[1] == expected[1], both
        assert got[2] == expected[2], both
        assert trees.differences(expected[3], got[3]) == [], both
    return expected
