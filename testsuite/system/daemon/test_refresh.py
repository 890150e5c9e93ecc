# SPDX-License-Identifier: GPL-3.0-or-later
"""--refresh-attrs: attr trees and attr snapshots brought up to date by the daemon's own configuration."""
import fcntl
import os
import re
import subprocess
import time

import pytest

import harness
import trees

SECONDS = 30


class Site:
    """A mirror with a module for each form of its attributes."""

    def __init__(self, top):
        self.top = top
        self.real = os.path.join(top, "real")
        self.tree = os.path.join(top, "attrs", "mirror")
        self.snapshot = os.path.join(top, "mirror.snap")
        self.config_file = os.path.join(top, "refresh.conf")
        os.mkdir(self.real)
        os.mkdir(os.path.join(top, "attrs"))
        trees.build_mirror(self.real)
        os.mkdir(os.path.join(self.real, "private"))
        trees.write(os.path.join(self.real, "private", "key"), b"x")
        self.write_config(self.modules())

    def modules(self):
        return (f"[snapshot]\npath = {self.real}\nattr snapshot = {self.snapshot}\nexclude = /private\nuse chroot = no\n"
                f"[tree]\npath = {self.tree}\nreal file prefix = {self.real}\nexclude = /private\nuse chroot = no\n"
                f"[live]\npath = {self.real}\nexclude = /private\nuse chroot = no\n")

    def write_config(self, text):
        self.config = text
        with open(self.config_file, "w") as file:
            file.write(text)

    def refresh(self, *words, command=("--refresh-attrs",)):
        return harness.run(harness.HUAI, *command, f"--config={self.config_file}", *words)

    def start(self, *words):
        return subprocess.Popen([harness.HUAI, "--refresh-attrs", f"--config={self.config_file}", *words],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=harness.ENVIRONMENT)


@pytest.fixture(name="site")
def make_site(tmp_path):
    os.chmod(tmp_path, 0o755)
    return Site(str(tmp_path))


def lines(result):
    """Module -> (entries, changed) of the output."""
    found = re.findall(r"^(\w+): ([0-9]+) entries, ([0-9]+) changed, [0-9.]+ seconds$", os.fsdecode(result.stdout), re.M)
    return {name: (int(entries), int(changed)) for name, entries, changed in found}


@pytest.mark.core
def test_every_form_lists_what_is_there_after_each_refresh(site, tmp_path):
    first = site.refresh()
    assert first.code == 0, first.stderr
    assert sorted(lines(first)) == ["snapshot", "tree"]
    entries, changed = lines(first)["snapshot"]
    assert entries > 10 and changed == entries
    os.mkdir(os.path.join(site.real, "new"))
    trees.write(os.path.join(site.real, "new", "file"), b"new")
    second = site.refresh()
    assert second.code == 0, second.stderr
    # The file and its directory are new, the time of the root has changed; the root is no line of the attr tree's count.
    assert lines(second)["snapshot"] == (entries + 2, 3)
    assert lines(second)["tree"][1] == 2
    with harness.Daemon(harness.HUAI, site.config, str(tmp_path)) as daemon:
        listings = [harness.run(harness.STOCK, "-r", daemon.url(f"{module}/")).stdout for module in ("live", "tree", "snapshot")]
    assert b"new/file" in listings[0]
    assert listings[2] == listings[0]
    assert harness.without_directory_sizes(listings[1]) == harness.without_directory_sizes(listings[0])


@pytest.mark.core
def test_nothing_changed(site):
    site.refresh()
    again = site.refresh("--attr-refresh=dirs")
    assert again.code == 0 and [changed for _, changed in lines(again).values()] == [0, 0]
    assert site.refresh("-q").stdout == b""


def test_what_a_module_hides_is_not_kept(site):
    assert site.refresh().code == 0
    assert not os.path.exists(os.path.join(site.tree, "private"))
    assert b"private" not in harness.run(harness.HUAI, "--attr-diff", "-i", site.snapshot, site.snapshot).stdout
    assert harness.run(harness.HUAI, "--attr-list", site.snapshot, "private").code != 0
    site.write_config(site.config.replace("exclude = /private", "exclude = /private /pool"))
    assert site.refresh("tree").code == 0
    assert not os.path.exists(os.path.join(site.tree, "pool"))


def test_only_the_modules_that_are_named(site):
    result = site.refresh("tree")
    assert sorted(lines(result)) == ["tree"] and not os.path.exists(site.snapshot)


@pytest.mark.parametrize("words, text", [
    (["nope"], 'there is no module "nope"'),
    (["live", "tree"], 'module "live" has neither "attr snapshot" nor "real file prefix"'),
])
def test_a_name_that_stands_for_nothing(site, words, text):
    result = site.refresh(*words)
    assert result.code == 1 and text in os.fsdecode(result.stderr)
    assert os.path.exists(site.tree) == ("tree" in words)


def test_a_configuration_without_attributes(site):
    site.write_config(f"[live]\npath = {site.real}\n")
    result = site.refresh()
    assert result.code == 1 and b"no module has" in result.stderr
    os.unlink(site.config_file)
    assert site.refresh().code == 1


def test_one_failure_does_not_keep_the_others_back(site):
    site.write_config(site.config.replace(f"path = {site.real}\nattr", f"path = {site.real}.gone\nattr"))
    result = site.refresh()
    assert result.code == 3 and sorted(lines(result)) == ["tree"]
    assert b'module "snapshot" was not refreshed' in result.stderr


def test_digests_are_kept_from_one_generation_to_the_next(site):
    assert site.refresh("snapshot", "--attr-digests=md5").code == 0
    trees.write(os.path.join(site.real, "new"), b"new")
    assert site.refresh("snapshot").code == 0
    found = harness.run(harness.HUAI, "--attr-list", "-v", site.snapshot)
    assert found.code == 0 and b"# digests: md5" in found.stdout, found.stdout


def test_a_daemon_is_not_quiet(site):
    result = site.refresh("-q", command=["--daemon"])
    assert result.code == 1 and b"--quiet of a daemon goes with" in result.stderr


@pytest.mark.parametrize("words", [["--daemon"], ["--config-check"]])
def test_options_of_the_refresh_alone(site, words):
    result = site.refresh("--no-wait", command=words)
    assert result.code == 1 and b"go with --refresh-attrs only" in result.stderr


def test_a_list_of_paths_is_of_one_module(site):
    listed = os.path.join(site.top, "changed")
    trees.write(listed, b"late\n")
    assert site.refresh().code == 0
    trees.write(os.path.join(site.real, "late"), b"late")
    refused = site.refresh(f"--attr-refresh={listed}")
    assert refused.code == 1 and b"lists paths of one module" in refused.stderr
    assert site.refresh("snapshot", f"--attr-refresh={listed}").code == 0
    assert harness.run(harness.HUAI, "--attr-list", site.snapshot, "late").code == 0


def test_turns(site):
    """While one process is at a module, another leaves it to that or waits for it."""
    assert site.refresh("snapshot").code == 0
    lock = open(site.snapshot + ".lock", "rb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    before = os.fstat(lock.fileno()).st_size
    left = site.refresh("snapshot", "tree", "--no-wait")
    assert left.code == 0 and b"snapshot: left to" in left.stdout and b"tree: " in left.stdout
    waiting = site.start("snapshot")
    try:
        deadline = time.monotonic() + SECONDS
        while os.fstat(lock.fileno()).st_size < before + 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert waiting.poll() is None
        fcntl.flock(lock, fcntl.LOCK_UN)
        output, _ = waiting.communicate(timeout=SECONDS)
        assert waiting.returncode == 0 and b"snapshot: " in output and b"changed" in output
    finally:
        lock.close()
        if waiting.poll() is None:
            waiting.kill()
            waiting.wait()


def test_many_hooks_at_once(site):
    """However many ask, each of them ends well, and the last state is there."""
    site.refresh()
    hooks = [site.start(*(["--no-wait"] if number % 2 else [])) for number in range(6)]
    trees.write(os.path.join(site.real, "late"), b"late")
    hooks += [site.start() for _ in range(2)]
    for hook in hooks:
        output, _ = hook.communicate(timeout=SECONDS)
        assert hook.returncode == 0, output
    assert os.path.exists(os.path.join(site.tree, "late"))
    assert harness.run(harness.HUAI, "--attr-list", site.snapshot, "late").code == 0


def test_paths_with_the_module_name(site):
    """The daemon and the refresh mean the same file, for each module its own."""
    site.write_config(f"attr snapshot = {site.top}/%RSYNC_MODULE_NAME%.attrs\nuse chroot = no\n"
                      f"[one]\npath = {site.real}\n[two]\npath = {site.real}\n")
    result = site.refresh()
    assert result.code == 0 and sorted(lines(result)) == ["one", "two"], result.text
    assert sorted(name for name in os.listdir(site.top) if name.endswith(".attrs")) == ["one.attrs", "two.attrs"]
