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


def lines(text, in_order=False, noise=None):
    """Of what was printed, without what no two runs have in common, nor lines that `noise` matches."""
    text = harness.normalise(text, (harness.HUAI, "PROGRAM"), (harness.STOCK, "PROGRAM"))
    found = re.sub(rb"hash_hits=\d+", b"hash_hits", receiver.TEMP_NAME.sub(rb"/\1" + b'"', text)).split(b"\n")
    found = [line for line in found if not noise or not re.match(noise, line)]
    return found if in_order else sorted(found)


def run(place, make, options, way, protocol, client, server, sources=("s/",), in_order=False, extra=None, destination="t/", root="t",
        noise=None):
    """Exit code, both streams as lines (but for those that `noise` matches), and all below `root` (the destination), with what
    `extra` finds in it."""
    top = os.path.join(place, "work")
    os.mkdir(top)
    make(top)
    since = (int(time.time()) - 1) * 1_000_000_000
    result = harness.run(client, *words(top, options, sources, way, protocol, server, destination), cwd=top)
    tree = trees.describe(f"{top}/{root}", since_ns=since)
    if extra:
        for path, entry in tree.items():
            entry["extra"] = extra(os.path.normpath(os.path.join(os.fsencode(f"{top}/{root}"), path)))
    shutil.rmtree(top)

    return result, lines(result.stdout, in_order, noise), lines(result.stderr, in_order, noise), tree


def assert_agree(place, make, options, way, protocol=32, at_both=False, **how):
    """`at_both`: ours at both ends as well."""
    expected = run(place, make, options, way, protocol, harness.STOCK, harness.STOCK, **how)
    for client, server in PAIRINGS[way] + (((harness.HUAI, harness.HUAI),) if at_both and way != "local" else ()):
        got = run(place, make, options, way, protocol, client, server, **how)
        both = expected[0].text + got[0].text
        assert got[0].code == expected[0].code, both
        assert got[1] == expected[1], both
        assert got[2] == expected[2], both
        assert trees.differences(expected[3], got[3]) == [], both
    return expected
