# SPDX-License-Identifier: GPL-3.0-or-later
"""How files are replaced: backups, partial files, delayed updates, appending, temp directories, in place.

Every job is done by stock rsync and by rsync-huai, from the same state, by themselves or as a pull from a stock server; then
trees, exit codes and output must be the same. Lines are compared without their order: stock's come from three processes.
"""
import collections
import concurrent.futures
import os
import re
import shutil
import tempfile

import pytest

import harness
import trees

OLD = 1_300_000_000_000_000_000
NEW = 1_700_000_000_123_456_789
# A redo, for instance, does not always appear in the same words of statistics.
VOLATILE = re.compile(rb"^(total: matches|sent |total size is|opening connection|delta-transmission|generator: |sending daemon)")


def data(size, seed):
    return trees.noise(size, seed)


def build_source(root):
    at = lambda name: os.path.join(root, name)
    os.makedirs(at("sub/deep"))
    os.makedirs(at("kinds"))
    big = data(70_000, 1)
    trees.write(at("big"), big[:20_000] + b"changed" + big[20_000:], 0o644, NEW)
    trees.write(at("new"), data(3000, 2), 0o640, NEW)
    trees.write(at("same"), b"as it was\n", 0o644, OLD)
    trees.write(at("mode"), b"only the mode\n", 0o755, OLD)
    trees.write(at("grown"), data(50_000, 3), 0o644, NEW)
    trees.write(at("shrunk"), data(10_000, 4), 0o600, NEW, (1000, 1000))
    trees.write(at("mixed"), b"Y" * 900 + data(20_000, 5), 0o644, NEW)
    trees.write(at("empty"), b"", 0o644, NEW)
    trees.write(at("sub/file"), b"the new content\n", 0o644, NEW)
    trees.write(at("sub/deep/file"), b"new below\n", 0o664, NEW)
    trees.write(at("hard-1"), b"three names\n" * 9, 0o644, NEW)
    os.link(at("hard-1"), at("hard-2"))
    os.link(at("hard-1"), at("sub/hard-3"))
    trees.symlink("new-target", at("kinds/link"), NEW)
    trees.symlink("../../outside", at("kinds/unsafe"), NEW)
    os.mkfifo(at("kinds/pipe"))
    trees.finish(at("kinds/pipe"), 0o644, NEW)
    trees.write(at("kinds/was-link"), b"a file now\n", 0o644, NEW)
    trees.write(at("kinds/was-dir"), b"a file now\n", 0o644, NEW)
    os.mkdir(at("kinds/was-file"))
    trees.write(at("kinds/was-file/inside"), b"in a new directory\n", 0o644, NEW)
    trees.set_directory_times(root, NEW)


def build_destination(root):
    at = lambda name: os.path.join(root, name)
    os.makedirs(at("sub/deep"))
    os.makedirs(at("kinds/was-dir/below"))
    os.makedirs(at("gone/inner"))
    trees.write(at("big"), data(70_000, 1), 0o600, OLD)
    trees.write(at("same"), b"as it was\n", 0o644, OLD)
    trees.write(at("mode"), b"only the mode\n", 0o644, OLD)
    trees.write(at("grown"), data(50_000, 3)[:18_000], 0o644, OLD)
    trees.write(at("shrunk"), data(10_000, 4) + b"more", 0o644, OLD)
    trees.write(at("mixed"), b"X" * 900 + data(20_000, 5)[:5000], 0o444, OLD)
    trees.write(at("empty"), b"once full\n", 0o644, OLD)
    trees.write(at("sub/file"), b"the old content\n", 0o640, OLD, (1000, 1000))
    trees.write(at("sub/deep/file"), b"old below\n", 0o644, OLD)
    for name in ("hard-1", "hard-2", "sub/hard-3"):
        trees.write(at(name), b"an old file of its own\n", 0o644, OLD)
    trees.symlink("old-target", at("kinds/link"), OLD)
    trees.symlink("../../../elsewhere", at("kinds/unsafe"), OLD)
    os.mkfifo(at("kinds/pipe"))
    trees.finish(at("kinds/pipe"), 0o600, OLD)
    trees.symlink("nowhere", at("kinds/was-link"), OLD)
    trees.write(at("kinds/was-dir/below/file"), b"in the way\n", 0o644, OLD)
    trees.write(at("kinds/was-file"), b"no directory yet\n", 0o644, OLD)
    trees.write(at("gone/file"), b"gone\n", 0o644, OLD)
    trees.write(at("gone/inner/file"), b"gone as well\n", 0o644, OLD)
    trees.write(at("gone/old~"), b"a backup\n", 0o644, OLD)
    trees.write(at("surplus"), b"surplus\n", 0o644, OLD)
    trees.symlink("surplus", at("surplus-link"), OLD)
    trees.finish(at("sub"), 0o2750, OLD, (1000, 1000))
    trees.set_directory_times(root, OLD)


# --- what is there beside the tree before a job ---

def nothing(place):
    pass


def old_backups(place):
    for top in ("dest/", "backups/"):
        os.makedirs(os.path.join(place, top, "sub"), exist_ok=True)
    for name in ("dest/big~", "dest/sub/file~", "backups/big", "backups/sub/file"):
        trees.write(os.path.join(place, name), b"an older backup\n", 0o600, OLD)
    trees.write(os.path.join(place, "backups", "kinds"), b"no directory\n", 0o644, OLD)


def inner_backups(place):
    os.makedirs(os.path.join(place, "dest", "backups", "sub"))
    trees.write(os.path.join(place, "dest/backups/sub/file"), b"an older backup\n", 0o600, OLD)


def directories_in_the_way(place):
    for name in ("dest/big~", "dest/sub/file~", "backups/big", "backups/sub/file"):
        os.makedirs(os.path.join(place, name))


def partial_files(place):
    for directory in ("dest/.part", "dest/sub/.part", "dest/.~tmp~", "dest/sub/.~tmp~", "parts"):
        os.makedirs(os.path.join(place, directory))
        os.chmod(os.path.join(place, directory), 0o700)
        for name, size in (("grown", 30_000), ("new", 1000), ("file", 6), ("same", 5), ("strange", 7)):
            if name == "file" or "sub" not in directory:
                content = {"grown": data(50_000, 3), "new": data(3000, 2), "file": b"the new content\n"}.get(name, b"something")
                trees.write(os.path.join(place, directory, name), content[:size], 0o600, OLD)


def temp_dir(place):
    os.mkdir(os.path.join(place, "dest", ".tmp"))


class Job:
    def __init__(self, name, options, before=nothing, twice=False, protocols=(32,), pulled=True, local=True, source="source/",
                 environment=None):
        self.environment = environment
        self.name = name
        self.options = options
        self.before = before
        self.twice = twice
        self.protocols = protocols
        self.pulled = pulled
        self.local = local
        self.source = source


JOBS = [
    Job("backup", "-abii", protocols=(29, 30, 32)),
    Job("backup-hard-links", "-abiiH --info=backup"),
    Job("backup-vv", "-abvv"),
    Job("backup-debug", "-ab --info=backup --debug=backup2"),
    Job("backup-delete", "-ab --delete --info=backup", protocols=(27, 29, 32)),
    Job("backup-delete-excluded", "-abii --delete-excluded --exclude=surplus --info=backup"),
    Job("backup-delete-before", "-abii --delete-before --info=backup"),
    Job("backup-delete-after", "-abii --delete-after --info=backup"),
    Job("backup-delete-delay", "-abii --delete-delay --info=backup --suffix=.bak"),
    Job("backup-suffix", "-aii --backup --suffix=.orig --info=backup"),
    Job("backup-dry-run", "-abin --delete --info=backup"),
    Job("backup-dir-dry-run", "-ain --delete --exclude=was-file --backup-dir=../backups --info=backup --debug=backup"),
    Job("backup-over-old", "-abi --info=backup", old_backups),
    Job("backup-dir-over-old", "-ai --backup-dir=../backups --delete --info=backup", old_backups),
    Job("backup-dir", "-aii --backup-dir=../backups --info=backup --debug=backup", protocols=(29, 30, 31, 32)),
    Job("backup-dir-no-attributes", "-rlii --backup-dir=../backups"),
    Job("backup-dir-deep", "-aii --backup-dir=../backups/of/today/ --delete --info=backup"),
    Job("backup-dir-suffix", "-aii --backup-dir=../backups --suffix=.yesterday --delete --info=backup", twice=True),
    Job("backup-dir-below", "-aii --backup-dir=backups --delete --info=backup", inner_backups, twice=True),
    Job("backup-dir-below-excluded", "-aii --backup-dir=backups --exclude=/backups --delete --info=backup", twice=True),
    Job("backup-dir-here", "-aii --backup-dir=. --suffix=.x --info=backup --delete"),
    Job("backup-dir-other", "-aii --backup-dir={shm}/x --delete --info=backup --debug=backup"),
    Job("backup-dir-other-no-times", "-rlii --backup-dir={shm}/x --delete --info=backup --debug=backup"),
    Job("backup-safe-links", "-aii --safe-links --backup-dir=../backups --delete --info=backup"),
    Job("backup-directory-in-the-way", "-ab", directories_in_the_way),
    Job("backup-dir-directory-in-the-way", "-a --backup-dir=../backups", directories_in_the_way),
    Job("backup-in-place", "-ab --inplace --info=backup", protocols=(27, 28, 29, 32)),
    Job("backup-in-place-whole", "-abiiW --inplace --info=backup --debug=backup"),
    Job("backup-dir-in-place", "-aii --inplace --backup-dir=kept --info=backup --no-whole-file", local=False),
    Job("backup-checksum", "-abiic"),
    Job("backup-one-file", "-abii --info=backup", source="source/big"),
    Job("temp-dir", "-aii --temp-dir=.tmp", temp_dir, protocols=(27, 29, 32)),
    Job("temp-dir-other", "-aiiH --temp-dir={shm}", protocols=(28, 32)),
    Job("temp-dir-other-partial", "-aii -P --temp-dir={shm} --no-progress"),
    Job("temp-dir-other-backup", "-abii --temp-dir={shm}"),
    Job("temp-dir-missing", "-a --temp-dir=missing", pulled=False),
    Job("temp-dir-no-directory", "-a --temp-dir=big", pulled=False),
    Job("partial", "-aii --partial"),
    Job("partial-dir", "-aii --partial-dir=.part", partial_files, protocols=(27, 28, 29, 30, 31, 32)),
    Job("partial-dir-delete", "-ai --partial-dir=.part --delete", partial_files, protocols=(27, 29, 30, 32)),
    Job("partial-dir-delete-after", "-ai --partial-dir=.part --delete-after --force", partial_files),
    Job("partial-dir-whole", "-aiiW --partial-dir=.part", partial_files),
    Job("partial-dir-absolute", "-aii --partial-dir={place}/parts", partial_files, protocols=(29, 32)),
    Job("partial-dir-dry-run", "-ain --partial-dir=.part", partial_files),
    Job("partial-dir-backup", "-abii --partial-dir=.part --info=backup", partial_files),
    Job("partial-dir-is-a-file", "-ai --partial-dir=big --delay-updates"),
    Job("partial-dir-with-dots", "-aii --partial-dir=a/.././.x// --delay-updates"),
    Job("partial-dir-environment", "-aii --partial", partial_files, environment={"RSYNC_PARTIAL_DIR": ".part"}),
    Job("delay-updates", "-aii --delay-updates", protocols=(27, 28, 29, 30, 31, 32)),
    Job("delay-updates-vv", "-avv --delay-updates"),
    Job("delay-updates-left", "-aii --delay-updates", partial_files, protocols=(27, 29, 32)),
    Job("delay-updates-hard-links", "-aiiH --delay-updates", protocols=(29, 32)),
    Job("delay-updates-delete", "-ai --delay-updates --delete", partial_files, protocols=(27, 32)),
    Job("delay-updates-delete-delay", "-ai --delay-updates --delete-delay"),
    Job("delay-updates-backup", "-abii --delay-updates --info=backup --debug=backup", protocols=(27, 32)),
    Job("delay-updates-partial-dir", "-aii --delay-updates --partial-dir=.part", partial_files),
    Job("delay-updates-temp-dir", "-aii --delay-updates --temp-dir={shm}"),
    Job("delay-updates-existing", "-aii --delay-updates --existing --no-times"),
    Job("delay-updates-one-file", "-aii --delay-updates", source="source/big"),
    Job("in-place", "-aii --inplace", protocols=(27, 32)),
    Job("in-place-partial", "-aii --inplace --partial"),
    Job("append", "-aii --append", protocols=(27, 28, 29, 30, 31, 32)),
    Job("append-stats", "-ai --append --stats"),
    Job("append-verify", "-ai --append-verify", protocols=(29, 30, 32)),
    Job("append-verify-stats", "-a --append-verify --stats --out-format=%n"),
    Job("append-verify-quiet", "-a --append-verify"),
    Job("append-backup", "-ab --append --info=backup"),
    Job("append-verify-backup", "-ab --append-verify --info=backup --suffix=.was"),
    Job("append-dry-run", "-ain --append"),
    Job("append-checksum", "-aic --append"),
    Job("append-partial", "-ai --append --partial"),
    Job("append-whole", "-a --append --whole-file"),
    Job("append-partial-dir", "-a --append --partial-dir=x"),
    Job("in-place-partial-dir", "-a --inplace --partial-dir=x"),
    Job("in-place-delay-updates", "-a --inplace --delay-updates"),
    Job("append-delay-updates", "-a --append-verify --partial-dir=x --delay-updates"),
    Job("suffix-with-slash", "-ab --suffix=a/b"),
    Job("suffix-empty", "-ab --suffix="),
    Job("suffix-empty-here", "-ab --backup-dir=."),
    Job("backup-dir-is-a-file", "-ab --backup-dir=big", pulled=False),
    Job("backup-max-delete", "-abii --delete --max-delete=2 --info=backup"),
]


@pytest.fixture(scope="module")
def site(top):
    build_source(os.path.join(top, "source"))
    build_destination(os.path.join(top, "old"))
    harness.make_remote_shell(top)
    return top


def prepare(site, place, job):
    os.makedirs(place)
    os.symlink(os.path.join(site, "source"), os.path.join(place, "source"))
    harness.run("cp", "-a", os.path.join(site, "old"), os.path.join(place, "dest"))
    job.before(place)


def command(site, place, job, program, protocol, way, shm):
    options = job.options.format(shm=shm, place=place).split()
    if way == "local":
        return [program, *options, job.source, "dest"]
    through = [f"--protocol={protocol}", "-e", os.path.join(site, "remote-shell")]
    if way == "pull":
        return [program, *options, *through, f"--rsync-path={harness.STOCK}", f"host:{place}/{job.source}", "dest"]
    return [harness.STOCK, *options, *through, f"--rsync-path={program}", job.source, f"host:{place}/dest"]


def what_is_there(place, shm, began):
    result = {}
    for top, root in (("dest", os.path.join(place, "dest")), ("backups", os.path.join(place, "backups")), ("other", shm),
                      ("parts", os.path.join(place, "parts"))):
        for path, attributes in (trees.describe(root, since_ns=began) or {}).items():
            result[os.path.join(os.fsencode(top), path)] = attributes
    return result


def lines(text, *hidden):
    text = harness.normalise(text, *hidden).replace(b"cLc.T......", b"cLc.t......")
    return sorted(line for line in text.split(b"\n") if not VOLATILE.match(line))


def do(site, place, job, protocol, way, program):
    shm = tempfile.mkdtemp(prefix="huai-styles-", dir="/dev/shm")
    began = 1_780_000_000_000_000_000
    prepare(site, place, job)
    outcome = []
    try:
        for _ in range(1 + job.twice):
            result = harness.run(*command(site, place, job, program, protocol, way, shm), cwd=place,
                                 environment=job.environment)
            hidden = ((place, "PLACE"), (shm, "SHM"))
            outcome.append((result.code, lines(result.stdout, *hidden), lines(result.stderr, *hidden)))
        return outcome, what_is_there(place, shm, began)
    finally:
        shutil.rmtree(shm, ignore_errors=True)


def compare(site, place, job, protocol, way):
    expected, tree = do(site, os.path.join(place, "stock"), job, protocol, way, harness.STOCK)
    got, our_tree = do(site, os.path.join(place, "ours"), job, protocol, way, harness.HUAI)
    problems = trees.differences(tree, our_tree)
    for number, (theirs, ours) in enumerate(zip(expected, got)):
        for what, left, right in zip(("exit code", "stdout", "stderr"), theirs, ours):
            if left != right and what == "exit code":
                problems.append(f"run {number}: exit code {left}, ours {right}")
            elif left != right:
                theirs, ours = collections.Counter(left), collections.Counter(right)
                problems += [f"run {number} {what}: only stock: {line!r}" for line in (theirs - ours).elements()]
                problems += [f"run {number} {what}: only ours: {line!r}" for line in (ours - theirs).elements()]
    shutil.rmtree(place)
    return "\n".join(problems)


CORE = ("backup-dir", "backup-in-place", "backup-delete", "partial-dir", "delay-updates-backup", "append-verify", "temp-dir-other")


def marks(job, protocol):
    return [pytest.mark.core] if job.name in CORE and protocol == 32 else []


def parameters():
    for job in JOBS:
        if job.local:
            yield pytest.param(job, 0, "local", id=f"{job.name}-local", marks=marks(job, 32))
        for protocol in job.protocols if job.pulled else ():
            yield pytest.param(job, protocol, "pull", id=f"{job.name}-pull-{protocol}", marks=marks(job, protocol))
        for protocol in job.protocols[:1] if job.pulled else ():
            yield pytest.param(job, protocol, "push", id=f"{job.name}-push-{protocol}")


@pytest.fixture(scope="module")
def comparisons(request, site):
    selected = [item.callspec for item in request.session.items if item.originalname == "test_as_stock_does_it"]
    executor = concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1))
    yield {spec.id: executor.submit(compare, site, os.path.join(site, f"job-{number}"), **spec.params)
           for number, spec in enumerate(selected)}
    executor.shutdown(cancel_futures=True)


@pytest.mark.parametrize("job, protocol, way", parameters())
def test_as_stock_does_it(request, comparisons, job, protocol, way):
    difference = comparisons[request.node.callspec.id].result()
    if difference:
        pytest.fail(difference, pytrace=False)


@pytest.mark.parametrize("options", ["--delay-updates", "--temp-dir=../temp", "--partial-dir=.part", "--temp-dir={shm} --delay-updates"])
def test_attr_trees_are_the_same_in_every_style(site, place, options):
    os.mkdir(os.path.join(place, "temp"))
    shm = tempfile.mkdtemp(prefix="huai-styles-", dir="/dev/shm")
    try:
        words = (harness.HUAI, "-aH", "--only-send-attrs")
        for target, more in (("plain", ()), ("other", options.format(shm=shm).split())):
            result = harness.run(*words, *more, os.path.join(site, "source", ""), os.path.join(place, target))
            assert result.code == 0 and result.stderr == b"", result.text
        assert trees.differences(trees.describe(os.path.join(place, "plain")), trees.describe(os.path.join(place, "other"))) == []
        assert os.listdir(shm) == os.listdir(os.path.join(place, "temp")) == []
    finally:
        shutil.rmtree(shm)


def test_appending_to_attr_files_is_refused(place):
    result = harness.run(harness.HUAI, "-a", "--only-send-attrs", "--append", "x", "y", cwd=place)
    assert result.code == 1 and b"--only-send-attrs cannot be used with --append" in result.stderr, result.text
