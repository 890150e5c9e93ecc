# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs that nobody thought of: options, trees, operands and ways drawn by lot, compared with stock as in test_pairings.

A number is a job, always the same one. Failures name it; HUAI_RANDOM_JOBS=2000-2499 runs others than those of every day.
What the manual lists as different from stock is not drawn, nor what two runs of stock do differently.
"""
import os
import random
import re
import shutil
import tempfile

import pytest

import harness
import test_pairings as pairings

EVERY_DAY = range(1, 101)
LOCAL = "local"
FIRST = ["-a"] * 4 + ["-aH", "-r", "-rlt", "-rtp", "-rlptgoD", "-d", "-dlt", "-rL", "-ak", "-aR", "-av", "-avv", "-aAX", "-rc", "-aq",
                      "-lt", "-rE", "-aE", "-rg", "-ro", "-rD"]
OPTIONS = """-i -ii -v -n -u -c -I --size-only -W --no-W --inplace -S -b --suffix=.x --backup-dir=bk -z --zc=lz4 --zc=zstd --zc=zlibx
    --zc=none --zl=1 --delete --delete-before --delete-after --delete-delay --delete-excluded --max-delete=2 --force --ignore-errors
    --existing --ignore-existing --partial --partial-dir=.pp --delay-updates --append --append-verify -m -O -J -N --chmod=go-w,D+x
    --chmod=F600 --chmod=u=rwX,go= --numeric-ids --chown=3:4 --usermap=*:2 --groupmap=0:9 -x --safe-links --copy-unsafe-links
    --munge-links -k -L --no-i-r --inc-recursive -s --old-args --exclude=d --exclude=*.log --filter=P_surplus --filter=R_*.gone
    --filter=H_x --filter=-,r_*.gone --filter=-s_*.log -F -FF -C --filter=:_.rules --filter=:n_.rules --filter=-!_*.log
    --max-size=2000 --min-size=2 --modify-window=1 --modify-window=-1 --stats --info=name2 --info=del,skip --info=all1,progress0
    --info=all2,progress0 --info=nonreg0 --info=backup,remove,copy,mount,symsafe --out-format=%i_%n%L --out-format=%o_%n_%l
    --out-format=%M_%U_%G_%B_%n -h -hh --no-h -8 --no-p --no-t --no-o --no-g --no-D --no-l --no-r --no-implied-dirs --no-dirs --super
    --no-super -X -A -H -E -p -t --specials --devices --remove-source-files --list-only --ignore-missing-args
    --delete-missing-args --mkpath --compare-dest=../basis --copy-dest=../basis --link-dest=../basis --link-dest=../other --fsync
    --preallocate --checksum-seed=5 --cc=md5 --cc=md4 --cc=xxh64 --bwlimit=50m --timeout=40 --trust-sender -B1000
    --drop-D --outbuf=L --open-noatime --skip-compress=log/txt --relative --no-R""".split()
SOURCES = {"mix": [("",)] * 8 + [("d", "f1"), ("./d/e", "./f1"), ("gone", "f1"), ("f1",), ("big",), ("dl",), ("dl/",), ("d/e/../y",),
                                 ("was-a-dir", "type"), ("l", "lw")],
           "deep": [("",), ("n0", "bare1/"), ("n1/m0/",)]}
SHAPES = ["mix"] * 6 + ["deep", "hard", "names", "attrs", "attrs"]
NEW_IN = {30: {"-A", "-X", "-aAX", "-N"}, 29: {option for option in OPTIONS if "-dest=" in option}}


def draw(number):
    """(job, way, protocol)"""
    lot = random.Random(number)
    shape = lot.choice(SHAPES)
    options = [lot.choice(FIRST), *lot.sample(OPTIONS, lot.choice((1, 2, 2, 3, 3, 4, 5, 6)))]
    way = lot.choice((*pairings.WAYS, LOCAL))
    since = max([30 if shape == "attrs" else 27, *(new for new, names in NEW_IN.items() if names & set(options))])
    protocol = max(since, lot.choice((32, 32, 32, 32, 31, 30, 29, 28, 27)))
    job = pairings.Job(" ".join(options), shape=shape, before=lot.choice(("nothing", "old", "old", "old", "same")),
                       sources=lot.choice(SOURCES.get(shape, [("",)])), target=lot.choice(["dest/"] * 6 + ["dest", "dest/d", "dest/new/"]),
                       own="--remove-source-files" in options)
    return job, way, protocol


class Site(pairings.Site):
    def words(self, job, way, *rest):
        if way != LOCAL:
            return super().words(job, way, *rest)
        words = super().words(job, "pull-shell", *rest)
        transport = words.index("-e")
        del words[transport - 1:transport + 3]  # and the protocol
        return [word.removeprefix("host:") for word in words]


# With -R the directories above the job's own come along, which other programs, and other jobs, change meanwhile.
ABOVE = tuple(os.fsencode(os.path.realpath(tempfile.gettempdir())[:end.start()])[1:]
              for end in re.finditer(r"(?<=[^/])(?:/|$)", os.path.realpath(tempfile.gettempdir()))) + (b"jobs",)
MOMENT_ABOVE = re.compile(rb"20\d\d/\d\d/\d\d[- ]\d\d:\d\d:\d\d(?=[^\n]*[ _/](?:%s)/?$)" % b"|".join(map(re.escape, ABOVE)), re.M)


# Our daemon names places as its clients do; how a daemon's last words reach a client that still sends is a race.
def settle(run):
    result, tree = run
    for path, entry in tree.items():
        if path.startswith(b"dest/") and path.endswith(tuple(b"/" + name for name in ABOVE)):
            entry.pop("mtime", None)
    result.stdout = MOMENT_ABOVE.sub(b"NOW", result.stdout)
    result.stderr = re.sub(rb"(--\w+-dest arg does not exist: )\S+", rb"\1PLACE", result.stderr)
    result.code = 12 if result.code == 10 else result.code
    return result, tree


def compare(site, number):
    job, way, protocol = draw(number)
    work = os.path.join(site.top, "jobs", str(number))
    try:
        expected = settle(site.run(job, way, "stock/stock", work, protocol))
        found = []
        for pairing in ("ours/ours",) if way == LOCAL else ("ours/stock", "stock/ours", "ours/ours"):
            lines = pairings.report(job, expected, settle(site.run(job, way, pairing, work, protocol)))
            found += [f"--- {pairing}:", *lines] if lines else []
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return f"{way} {protocol} {job}\n" + "\n".join(found) if found else ""


def numbers():
    asked = re.fullmatch(r"(\d+)-(\d+)", os.environ.get("HUAI_RANDOM_JOBS", ""))
    return range(int(asked[1]), int(asked[2]) + 1) if asked else EVERY_DAY


@pytest.fixture(scope="module")
def site(workspace):
    with pairings.served_site(Site, os.path.join(workspace, "random")) as result:
        yield result


@pytest.fixture(scope="module")
def reports(request, site):
    with pairings.running_ahead(request, "test_a_random_job_agrees", lambda number: compare(site, number)) as futures:
        yield futures


@pytest.mark.parametrize("number", numbers())
def test_a_random_job_agrees(reports, number):
    difference = reports[number].result()
    if difference:
        pytest.fail(difference, pytrace=False)
