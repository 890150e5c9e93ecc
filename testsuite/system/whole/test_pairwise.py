# SPDX-License-Identifier: GPL-3.0-or-later
"""Each pair of options of rsync(1), with their values, between a client and a daemon of either kind: nobody may be able to tell.

A covering array: sets of options in which every two that go together stand side by side at least once. Each set runs as a pull
or as a push, with stock at both ends, and with ours as the client, as the daemon and as both. Exit code, output, destination, source
and blocks have to agree. Which options exclude each other is what stock says, in EXCLUSIVE; a set that it refuses all the same fails.
A sample runs every day, HUAI_PAIRWISE=full (make check-pairwise) all of them, HUAI_PAIRWISE=30-39 these.

Of all 311 sets in 933 cells none differs, but for what is named here, by rule: BY_DESIGN, lines that the manual's list of differences
accounts for; FAULTS, where stock itself fails, so that only ours with ours is asked to end well; LATE, where it sets the time of a
directory too early; and what four runs of stock do differently among themselves.
"""
import contextlib
import itertools
import os
import random
import re
import shutil

import pytest

import harness
import test_pairings as pairings
import test_random_jobs as random_jobs
import trees

SEED, SIZE, SAMPLE, TURNS = 5, 12, 12, 4
# Every value of an option is one of its own; those in one line are not combined with each other.
ITEMS = """-v -vv | -q | --info=name2 --info=all1,progress0 --info=all2,progress0 --info=nonreg0,skip2 | --debug=NONE | --stderr=all --stderr=client
--no-motd | -c | -p --no-p --chmod=go-w,D+x --chmod=F600 | -R --no-R | --no-implied-dirs | -b | --backup-dir=bk | --suffix=.x | -u
--inplace | --append --append-verify | -d --old-d | --mkpath | -l --no-l | -L | --copy-unsafe-links | --safe-links | --insecure-links
--munge-links | -k | -K | -H | -E | -A | -X | -o --no-o | -g --no-g | --devices -D --no-D | --specials | --copy-devices | --drop-D
--no-t | -U | --open-noatime | -O | -J | --super --no-super --fake-super | -S | --preallocate | -n | -W --no-W
--cc=md5 --cc=md4 --cc=xxh64 --cc=sha1 | -x | -B700 --block-size=4096 | --existing | --ignore-existing | --remove-source-files
--del --delete --delete-before --delete-delay --delete-after | --delete-excluded | --ignore-missing-args --delete-missing-args
--ignore-errors | --force | --max-delete=2 | --max-size=5000 | --min-size=2 | --max-alloc=64m | --partial --partial-dir=.pp -P
--delay-updates | -m | --numeric-ids | --usermap=*:2 --chown=3:4 | --groupmap=0:9 | --timeout=90 | --contimeout=20 | -I | --size-only
--modify-window=1 --modify-window=-1 | --temp-dir=temps | -y -yy | --compare-dest=../basis --copy-dest=../basis --link-dest=../basis
-z -zz --zc=zlib --zc=zlibx --zc=lz4 --zc=zstd --zc=none | --zl=1 | --zt=1 | --skip-compress=log/txt --skip-compress= | -C
--filter=P_surplus --filter=R_*.gone --filter=H_x --filter=-s_*.log --filter=:_.rules --filter=-!_*.log | -F -FF | --exclude=d
--include=d/x | --exclude-from={lists}/rules --include-from={lists}/rules | --from0 | -s --old-args | --trust-sender --no-inc-recursive
--sockopts=TCP_NODELAY=1 | --outbuf=L --outbuf=N | -8 | -h -hh --no-h | --out-format=%i_%n%L --out-format=%o_%n_%l --out-format=%M_%U_%G_%B_%n
--list-only | --bwlimit=50m | --fsync | --checksum-seed=5 | -4 | --ignore-non-existing | --no-r | --stop-after=60"""
GROUPS = [group.split() for group in ITEMS.replace("\n", " | ").split("|")]
OPTIONS = [option for group in GROUPS for option in group]
GROUP_OF = {option: number for number, group in enumerate(GROUPS) for option in group}
# Of these nothing is done: what stands beside them is not tested with others.
MASKS = {"-n", "--list-only"}
# Refused by stock, whatever else is asked for.
EXCLUSIVE = {frozenset((one, other)) for ones, others in (line.split("; ") for line in """\
--inplace; --partial-dir=.pp --delay-updates
--append --append-verify; -W --partial-dir=.pp --delay-updates
--chown=3:4; --groupmap=0:9
""".splitlines()) for one in ones.split() for other in others.split()}
# The same file under two names is moved away by the first.
RACES = {frozenset((one, "--remove-source-files")) for one in ("-k", "-L", "--copy-unsafe-links")}
# Pairs of which one is enough for another outcome by design: what is appended to another file than its own, and the order
# in which attributes of a file that is asked for again are reported.
APART = {frozenset((one, other)) for one in ("--append", "--append-verify")
         for other in ("-y", "-yy", "--copy-dest=../basis", "--link-dest=../basis", "--compare-dest=../basis")}
# What stock's own client or daemon breaks off: it refuses the names it has asked for, and takes away what it sends.
BREAKS = {frozenset(("-R", "-s")), frozenset(("--delete-missing-args", "--copy-dest=../basis")), frozenset(("--usermap=*:2", "--no-o")),
          frozenset(("--groupmap=0:9", "--no-g")), frozenset(("--chown=3:4", "--no-o")), frozenset(("--chown=3:4", "--no-g"))}
NOT_TOGETHER = EXCLUSIVE | RACES | APART | BREAKS
NEEDS_30 = {"-A", "-X", "-U"}


def exclude_each_other(one, other):
    return GROUP_OF[one] == GROUP_OF[other] or frozenset((one, other)) in NOT_TOGETHER


def make_sets():
    """Greedy: each set begins with a pair that no set has yet, and takes what brings most others; by the seed, always the same."""
    lot = random.Random(SEED)
    missing = {frozenset(pair) for pair in itertools.combinations(OPTIONS, 2) if not exclude_each_other(*pair)}
    order = sorted(missing, key=sorted)
    lot.shuffle(order)
    sets = []
    for pair in order:
        if pair not in missing:
            continue
        chosen = sorted(pair)
        masked = MASKS & pair
        candidates = OPTIONS[:]
        lot.shuffle(candidates)
        while len(chosen) < SIZE:
            def gain(option):
                others = masked or chosen
                return sum(frozenset((option, other)) in missing for other in others)
            fitting = [option for option in candidates if option not in MASKS and not any(exclude_each_other(option, other) for other in chosen)]
            best = max(fitting, key=gain, default=None)
            if best is None or not gain(best):
                break
            chosen.append(best)
            candidates.remove(best)
        missing -= {frozenset(covered) for covered in itertools.combinations(chosen, 2) if not masked or masked & set(covered)}
        sets.append(chosen)
    return sets


def job_of(number, chosen):
    """(job, way, protocol): letters in the first word, what negates others behind."""
    lot = random.Random(number)
    letters = "".join(option[1:] for option in chosen if re.fullmatch(r"-[a-zA-Z]{1,2}", option))
    words = [option for option in chosen if not re.fullmatch(r"-[a-zA-Z]{1,2}", option)]
    # Without -p a mode is another one by design: of a file with a basis of another name, and of a directory with attributes.
    letters += "p" if {"-X", "-y", "-yy", "--copy-dest=../basis", "--link-dest=../basis"} & set(chosen) and "--no-p" not in words else ""
    letters += "d" if "--no-r" in words else ""
    words.sort(key=lambda word: word.startswith("--no-"))
    way = ("pull-daemon", "push-daemon")[number % 2]
    shape = lot.choice(["mix"] * 6 + ["deep", "names"] + ["attrs"] * 3 * bool({"-A", "-X"} & set(chosen)) + ["hard"] * 3 * ("-H" in chosen))
    protocol = max(30 if {*NEEDS_30} & set(chosen) or shape == "attrs" else 29, lot.choice((32, 32, 32, 32, 31, 30, 29)))
    return pairings.Job(" ".join([f"-rti{letters}", "--stats", *words]), shape=shape, before=lot.choice(("nothing", "old", "old", "old", "same")),
                        own=True), way, protocol


class Site(random_jobs.Site):
    def __init__(self, top):
        super().__init__(top)
        # What daemons refuse unless the configuration says otherwise.
        self.config = self.config.replace("[m]\n", "[m]\nrefuse options = !copy-devices\n")
        trees.write(os.path.join(self.lists, "rules"), b"*.gone\nkd\n")

    def words(self, *which):
        return [word.replace("_", " ") if word.startswith("--out-format=") else word for word in super().words(*which)]

    def prepare(self, job, work):
        super().prepare(job, work)
        letters, link = job.options.split()[0], os.path.join(work, "dest/dl")
        os.makedirs(os.path.join(work, "dest"), exist_ok=True)
        if "--temp-dir" in job.options:  # in the source as well, so that it is not deleted; and where a listing looks for it
            for top in ("own", "dest", "."):
                with unchanged_time(os.path.join(work, top)):
                    os.makedirs(os.path.join(work, top, "temps"))
                os.utime(os.path.join(work, top, "temps"), ns=(pairings.OLD, pairings.OLD))
        # The contents of two directories would go to one: a race.
        if re.search("[kL]", letters) and ("K" in letters or "--ignore-existing" in job.options) and os.path.islink(link):
            with unchanged_time(os.path.join(work, "dest")):
                os.unlink(link)

    def describe(self, work, since, job):
        """Besides, what the files take on disk."""
        tree = super().describe(work, since, job)
        for path, entry in tree.items():
            if "content" in entry:
                entry["blocks"] = os.lstat(os.path.join(os.fsencode(work), path)).st_blocks
        return tree


@contextlib.contextmanager
def unchanged_time(directory):
    before = os.stat(directory)
    yield
    os.utime(directory, ns=(before.st_atime_ns, before.st_mtime_ns))


# Stock ends by an error of its own: of the protocol, or a signal to one of its processes.
BROKEN = {2, 12, 19, 20, -11, 139}
# Or it refuses names that it has asked for (-R with --old-d), fails to skip what is there already (-S with --append), or deletes a
# temporary file before it has got its name.
FAULTS = re.compile(rb"^ERROR: rejecting excluded file-list name|^rsync: \[receiver\] write failed on .*: Not a directory|^(?:\*deleting +|del\. )temps/\S", re.M)


# The heap is that of a process; what is made during the run has its time, and so has what temporary files come into; how many files a
# scan has found is reported from time to time.
MOMENTS = tuple((re.compile(pattern, re.M), replacement) for pattern, replacement in (
    (rb"^\r?[^\n]*\d+% .*\n?", b""), (rb"^ +\w+: +-?\d+ +\(.*\)\n", b""), (rb"^(?:RSYNC|rsync)\[\d+\].*\n", b""),
    (rb"20(?:2[6-9]|[3-9]\d)/\d\d/\d\d[- ]\d\d:\d\d:\d\d", b"NOW"), (rb"(?: \d+ files\.\.\.)? *\r *", b""), (rb" \d+ files\.\.\.", b""),
    (rb"^(?!\*deleting|del\. ).*\btemps/(?: [\d,]+)?\n", b""), (rb"^ +$", b""), (rb"\n\n+", b"\n"), (rb"\A\n", b"")))
MESSAGES = ((re.compile(rb"^(?:default_perms_for_dir: sys_acl_get_file|refusing to follow a symlink owned by).*\n", re.M), b""),
            (re.compile(rb'" \(in m\)'), b'"'))


def settled(run):
    result, tree = random_jobs.settle(run)
    tree.get(b"dest/temps", {}).pop("mtime", None)
    for pattern, replacement in MOMENTS:
        result.stdout = pattern.sub(replacement, result.stdout)
    for pattern, replacement in (*MESSAGES, *MOMENTS):
        result.stderr = pattern.sub(replacement, result.stderr)
    return result, tree


# What differs by design, as the manual says (DIFFERENCES FROM STOCK RSYNC): the options, one out of each group, what stock says then,
# and lines of a report.
BY_DESIGN = [
    ("-K", b"", r"b'dest/(?:kd|real)' (?:mtime|owner|mode):"),
    ("--ignore-existing", b"", r"b'dest/(?:dl|kd|type|lw)' mtime:"),
    # An error stops also the deletions that were found before it.
    ("--ignore-existing & --delete-delay", b"opendir ", r"unexpected b'dest/|b'dest' mtime|-\*deleting|\+IO error encountered|[-+]Number of deleted"),
    # A named user of an ACL is one entry, also where a map makes two of them one.
    ("-A", b"", r"b'dest/f[12]' xattr system.posix_acl_access:"),
    # Owners that nobody has.
    ("-A & --fake-super", b"", r"b'dest/.*' xattr user\.rsync\.%stat: .* (?:\d{6,}:\d+|\d+:\d{6,})'"),
    # A backup has the owner of what it is the backup of.
    ("--append|--append-verify|--inplace|--groupmap=0:9|--chown=3:4", b"", r"b'dest/(?:bk/.*|.*~|.*\.x)' owner:"),
    # The nanoseconds are lost.
    ("-U & -c", b"", r"b'dest/.*' atime: expected 'now', got %d$" % trees.ATIME_NS),
    # The mode of a new file is not that of what its content comes from.
    ("-y|-yy|--copy-dest=../basis|--link-dest=../basis & --no-p", b"", r"b'dest/.*' mode: expected '0o10"),
    # Nothing has been created where no room could be made.
    ("-H & --copy-dest=../basis|--link-dest=../basis|--compare-dest=../basis", b"could not make way", r"[-+]Number of created files"),
]


# Stock sets the time of a directory before the last file in it has got its name, now and then.
LATE = re.compile(r"b'dest[^']*' mtime: expected (?:'now', got 1680000\d+|(?P<stock>1680000\d+), got 'now')$")


def is_late(line, chosen, receives):
    match = LATE.match(line)
    return match and (receives == "stock" or not match["stock"]) and not {"-O", "--no-t"} & set(chosen)


def differences(chosen, job, expected, got, receives):
    """Lines of a report, without those that are by design, nor headlines that nothing follows."""
    patterns = [pattern for groups, said, pattern in BY_DESIGN
                if all(set(group.split("|")) & set(chosen) for group in groups.split(" & ")) and said in expected[0].stdout + expected[0].stderr]
    lines = [line for line in pairings.report(job, expected, got)
             if not is_late(line, chosen, receives) and not any(re.match(pattern, line) for pattern in patterns)]
    return lines if any(not re.match(r"--- expected|\+\+\+ got|@@ ", line) for line in lines) else []


def compare_pairing(run, chosen, job, way, pairing, expected):
    """What differs from each run of stock: what several of them do differently is left to them. `expected` has those that there are."""
    receives = pairing.split("/")[way.startswith("push")]
    got = None
    for turn in range(TURNS):
        if turn == len(expected):
            expected.append(run("stock/stock"))
        if not got or receives == "stock":
            got = run(pairing)
        if receives == "stock" and FAULTS.search(got[0].stdout + got[0].stderr):
            return []
        if any(not differences(chosen, job, one, got, receives) for one in expected):
            return []
    return [f"--- {pairing}:", *differences(chosen, job, expected[0], got, receives)]


class StockWaits(Exception):
    """Stock does not come to an end with itself, at times only on a busy machine."""


def compare(site, number, chosen):
    job, way, protocol = job_of(number, chosen)
    work = os.path.join(site.top, "jobs", str(number))

    def run(pairing):
        try:
            return settled(site.run(job, way, pairing, work, protocol))
        except AssertionError as late:
            raise StockWaits if pairing == "stock/stock" else late

    try:
        expected = [run("stock/stock")]
        if is_broken(expected[0]):
            raise StockWaits
        said = expected[0][0]
        found = ["--- stock refuses this: its pair belongs into EXCLUSIVE"] if said.code == 1 and not said.stdout else []
        for pairing in ("ours/stock", "stock/ours", "ours/ours"):
            found += compare_pairing(run, chosen, job, way, pairing, expected)
        return f"{way} {protocol} {job}\n" + "\n".join([*found, said.text[-700:]]) if found else ""
    except StockWaits:
        shutil.rmtree(work, ignore_errors=True)
        ours = run("ours/ours")
        return f"{way} {protocol} {job}\n{ours[0].text}" if is_broken(ours) else ""
    finally:
        shutil.rmtree(work, ignore_errors=True)


def is_broken(run):
    return run[0].code in BROKEN or bool(FAULTS.search(run[0].stdout + run[0].stderr))


def numbers(count):
    asked = os.environ.get("HUAI_PAIRWISE", "")
    some = re.fullmatch(r"(\d+)-(\d+)", asked)
    if some:
        return range(int(some[1]), min(count, int(some[2]) + 1))
    return range(count) if asked == "full" else range(10, count, max(1, count // SAMPLE))


SETS = make_sets()


@pytest.fixture(scope="module")
def site(workspace):
    with pairings.served_site(Site, os.path.join(workspace, "pairwise")) as result:
        yield result


@pytest.fixture(scope="module")
def reports(request, site):
    with pairings.running_ahead(request, "test_a_set_of_options_agrees", lambda number: compare(site, number, SETS[number]),
                                int(os.environ.get("HUAI_PAIRWISE_THREADS", 0))) as futures:
        yield futures


@pytest.mark.parametrize("number", numbers(len(SETS)))
def test_a_set_of_options_agrees(reports, number):
    difference = reports[number].result()
    if difference:
        pytest.fail(difference, pytrace=False)


def test_every_pair_is_covered():
    covered = {frozenset(pair) for chosen in SETS for pair in itertools.combinations(chosen, 2)
               if not MASKS & set(chosen) or MASKS & set(pair)}
    assert not [pair for pair in itertools.combinations(OPTIONS, 2) if frozenset(pair) not in covered and not exclude_each_other(*pair)
                and not MASKS >= set(pair)]
