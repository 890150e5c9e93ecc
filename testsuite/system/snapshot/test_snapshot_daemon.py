# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that are served from an attr snapshot: what clients get, when a new file counts, what happens without a good one."""
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

import harness
import test_listing_io as listing_io
import touches
import trees

root_only = pytest.mark.skipif(not trees.IS_ROOT, reason="changes its identity")
IDENTITY = f"uid = nobody\ngid = {harness.NOBODY_GROUP}\n" if trees.IS_ROOT else ""
CHROOTS = ("no", "yes") if trees.IS_ROOT else ("no",)
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
UNUSABLE = "attr snapshot cannot be used: "


def make_snapshot(source, path, *options):
    result = harness.run(harness.HUAI, "-aH", "--only-send-attrs", f"--attr-snapshot={path}", *options, source + "/")
    assert result.code == 0, result.text
    return path


@pytest.fixture
def mirror(place):
    """A small mirror; what lies in it is old enough to be distinguished from what a test adds."""
    root = os.path.join(place, "mirror")
    os.mkdir(root)
    trees.write(os.path.join(root, "README"), b"hello\n")
    for directory in ("a", "a/b", "empty"):
        os.mkdir(os.path.join(root, directory))
    for name in ("a/one", "a/two", "a/b/three"):
        trees.write(os.path.join(root, name), name.encode() * 100)
    os.link(os.path.join(root, "a/one"), os.path.join(root, "a/b/one-again"))
    trees.symlink("README", os.path.join(root, "a-link"))
    trees.set_directory_times(root)
    return root


@pytest.fixture
def snapshot(mirror, place):
    return make_snapshot(mirror, os.path.join(place, "mirror.snapshot"))


def module(name, path, *lines, chroot="no"):
    return f"[{name}]\npath = {path}\nuse chroot = {chroot}\n" + "".join(line + "\n" for line in lines)


def serve(place, config, **keywords):
    return harness.Daemon(harness.HUAI, IDENTITY + config, place, **keywords)


def names(daemon, name="snap"):
    """What a client lists, without directories; the text of its error if there is one."""
    result = harness.run(harness.STOCK, "-r", "--list-only", daemon.url(f"{name}/"))
    if result.code:
        return result.stderr.decode()
    return sorted(line.split()[4] for line in result.stdout.decode().splitlines() if not line.startswith("d"))


ALL = ["README", "a-link", "a/b/one-again", "a/b/three", "a/one", "a/two"]


def lines_of(daemon, text):
    return [line.split("] ", 1)[1] for line in daemon.log().splitlines() if text in line]


def replace(source, target):
    """Another file in the place of this one, with the owner and mode that a snapshot has to have."""
    shutil.copyfile(source, target + ".new")
    os.chmod(target + ".new", 0o644)
    os.rename(target + ".new", target)


def damage(path):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    data[len(data) // 2] ^= 0x10
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.rename(path + ".new", path)


def use_line(daemon, name="snap"):
    """(generation, entries) of each line about a snapshot that is in use now."""
    return [(int(a), int(b)) for a, b in
            re.findall(rf"module {name}: attr snapshot generation (\d+), (\d+) entries, made \d+ s ago", daemon.log())]


# --- what clients get ---

@pytest.fixture(scope="module")
def big_mirror(workspace):
    root = os.path.join(workspace, "snapshot-mirror")
    os.mkdir(root)
    trees.build_mirror(root)
    return root


@pytest.fixture(scope="module")
def big_daemon(workspace, big_mirror):
    """Modules live-no, snap-no, live-yes, snap-yes: by chroot."""
    top = os.path.join(workspace, "snapshot-modules")
    os.mkdir(top)
    file = make_snapshot(big_mirror, os.path.join(top, "file"))
    config = "".join(module(f"live-{chroot}", big_mirror, chroot=chroot) +
                     module(f"snap-{chroot}", big_mirror, f"attr snapshot = {file}", chroot=chroot) for chroot in CHROOTS)
    with serve(top, config) as daemon:
        yield daemon


@pytest.mark.core
@pytest.mark.parametrize("chroot", CHROOTS)
@pytest.mark.parametrize("options", ["-aH", "-aHi --no-i-r", "-aH --protocol=27", "-rlt --exclude=*.iso", "-aHc", "-rLt",
                                     "-aFF", "-rtR", "-aHv --stats"])
def test_a_pull_is_that_of_a_live_module(big_daemon, place, chroot, options):
    seen = []
    for kind in "live", "snap":
        target = os.path.join(place, kind)
        result = harness.run(harness.STOCK, *options.split(), big_daemon.url(f"{kind}-{chroot}/"), target + "/")
        output = [sorted(harness.normalise(text, (f"{kind}-{chroot}", "MODULE"), (target, "TARGET")).splitlines())
                  for text in (result.stdout, result.stderr)]
        seen.append((result.code, output, trees.describe(target)))
    assert seen[0][:2] == seen[1][:2]
    assert trees.differences(seen[0][2], seen[1][2]) == []
    assert seen[0][2]


@pytest.mark.core
def test_the_log_tells_each_generation_once(place, mirror, snapshot):
    with serve(place, module("snap", mirror, f"attr snapshot = {snapshot}")) as daemon:
        for _ in range(4):
            assert names(daemon) == ALL
        assert [generation for generation, _ in use_line(daemon)] == [1]
        make_snapshot(mirror, snapshot)
        for _ in range(3):
            assert names(daemon) == ALL
        assert [generation for generation, _ in use_line(daemon)] == [1, 2]
        assert lines_of(daemon, UNUSABLE) == []


def test_the_list_is_the_snapshots_and_contents_are_the_trees(place, mirror, snapshot):
    trees.write(os.path.join(mirror, "new"), b"new")
    trees.write(os.path.join(mirror, "a/two"), b"changed since", mtime_ns=1_750_000_000_000_000_000)
    os.unlink(os.path.join(mirror, "a/b/three"))
    target = os.path.join(place, "target")
    with serve(place, module("snap", mirror, f"attr snapshot = {snapshot}")) as daemon:
        result = harness.run(harness.STOCK, "-aH", daemon.url("snap/"), target + "/")
        assert result.code == 24, result.text
        assert not os.path.exists(os.path.join(target, "new"))
        assert not os.path.exists(os.path.join(target, "a/b/three"))
        with open(os.path.join(target, "a/two"), "rb") as file:
            assert file.read() == b"changed since"
        wait_for(lambda: lines_of(daemon, "needs a refresh"))
        assert lines_of(daemon, "needs a refresh") == [
            "module snap: 1 stale and 1 missing files, the attr snapshot needs a refresh"]


def wait_for(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


def test_nothing_can_be_removed_from_a_snapshot_module(place, mirror, snapshot):
    """Whatever `read only` says, and also while the tree itself is listed."""
    config = "".join(module(name, mirror, f"attr snapshot = {file}", "read only = no")
                     for name, file in (("snap", snapshot), ("walked", place + "/none")))
    before = trees.describe(mirror)
    with serve(place, config) as daemon:
        for name in "snap", "walked":
            result = harness.run(harness.STOCK, "-a", "--remove-source-files", daemon.url(f"{name}/"), place + "/target/")
            assert result.code != 0 and b"cannot be used with a read-only module" in result.stderr, result.text
            result = harness.run(harness.STOCK, "-a", mirror + "/", daemon.url(f"{name}/"))
            assert b"and is read only" in result.stderr, result.text
    assert trees.differences(before, trees.describe(mirror)) == []


@root_only
@pytest.mark.parametrize("options", ["-a", "-a --no-i-r", "-a --protocol=29"])
def test_what_the_scan_could_not_read_deletes_nothing(place, mirror, options):
    """The snapshot of somebody who may not look everywhere: clients hear of it as from a live walk by the same user."""
    os.chmod(os.path.join(mirror, "a/b"), 0o700)
    os.mkdir(os.path.join(place, "made"))
    os.chmod(os.path.join(place, "made"), 0o777)
    file = os.path.join(place, "made/snapshot")
    made = subprocess.run([harness.HUAI, "-a", "--only-send-attrs", f"--attr-snapshot={file}", mirror + "/"],
                          capture_output=True, **NOBODY)
    assert made.returncode == 23, made.stderr
    os.chown(file, 0, 0)
    outcomes = []
    with serve(place, module("live", mirror) + module("snap", mirror, f"attr snapshot = {file}")) as daemon:
        for name in "live", "snap":
            target = os.path.join(place, name)
            os.mkdir(target)
            trees.write(os.path.join(target, "extraneous"), b"x")
            result = harness.run(harness.STOCK, *options.split(), "--delete-after", daemon.url(f"{name}/"), target + "/")
            outcomes.append((result.code, sorted(result.stderr.replace(b"in " + name.encode(), b"in M").splitlines())))
            assert os.path.exists(os.path.join(target, "extraneous"))
        assert use_line(daemon)
        # What lacks where is not known: no part of the list can be trusted to be all there is.
        os.mkdir(os.path.join(place, "part"))
        trees.write(os.path.join(place, "part/extraneous"), b"x")
        result = harness.run(harness.STOCK, *options.split(), "--delete-after", daemon.url("snap/empty/"), place + "/part/")
        assert result.code == 23 and os.path.exists(os.path.join(place, "part/extraneous")), result.text
    assert outcomes[0][0] == 23
    assert outcomes[0] == outcomes[1]


@root_only
def test_names_of_owners_come_from_the_snapshot_where_the_process_has_none(place, mirror):
    """In a chroot without a user table; the client maps by the names that it received."""
    os.chown(os.path.join(mirror, "README"), 1, 1)  # "daemon" wherever there are users at all
    file = make_snapshot(mirror, os.path.join(place, "snapshot"))
    config = "numeric ids = no\n" + module("live", mirror, chroot="yes") + \
        module("snap", mirror, f"attr snapshot = {file}", chroot="yes")
    owners = {}
    with serve(place, config) as daemon:
        for name in "live", "snap":
            target = os.path.join(place, name)
            result = harness.run(harness.STOCK, "-a", "--usermap=daemon:4321", "--groupmap=daemon:4322", daemon.url(f"{name}/"),
                                 target + "/")
            assert result.code == 0, result.text
            info = os.stat(os.path.join(target, "README"))
            owners[name] = info.st_uid, info.st_gid
    assert owners == {"live": (1, 1), "snap": (4321, 4322)}


# --- when a new file counts ---

def relay(daemon, ready, go):
    """A port whose next connection is one that the daemon has accepted before; it is passed on once `go` is set."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(30)

    def copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def run():
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=30) as inner:
            greeting = inner.recv(1)  # the server process is there
            ready.set()
            go.wait(30)
            client, _ = server.accept()
            with client, server:
                client.sendall(greeting)
                other = threading.Thread(target=copy, args=(client, inner))
                other.start()
                copy(inner, client)
                other.join(30)

    thread = threading.Thread(target=run)
    thread.start()
    return server.getsockname()[1], thread


@pytest.mark.core
def test_a_session_stays_with_its_generation(place, mirror, snapshot):
    with serve(place, module("snap", mirror, f"attr snapshot = {snapshot}")) as daemon:
        ready, go = threading.Event(), threading.Event()
        port, thread = relay(daemon, ready, go)
        assert ready.wait(30)
        trees.write(os.path.join(mirror, "later"), b"later")
        make_snapshot(mirror, snapshot)
        assert names(daemon) == sorted([*ALL, "later"])
        os.unlink(snapshot)
        go.set()
        result = harness.run(harness.STOCK, "-r", "--list-only", f"rsync://127.0.0.1:{port}/snap/")
        thread.join(30)
        assert result.code == 0 and b"later" not in result.stdout and b"a/b/three" in result.stdout, result.text


def test_a_transfer_survives_the_replacement(place, mirror, snapshot):
    """Contents are still asked for after the file, and the one after it, have been replaced."""
    trees.write(os.path.join(mirror, "large"), trees.noise(3_000_000, 3))
    make_snapshot(mirror, snapshot)
    target = os.path.join(place, "target")
    with serve(place, module("snap", mirror, f"attr snapshot = {snapshot}")) as daemon:
        client = subprocess.Popen([harness.STOCK, "-aH", "--bwlimit=1500", daemon.url("snap/"), target + "/"],
                                  env=harness.ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        wait_for(lambda: os.path.isdir(target))
        for _ in range(3):
            make_snapshot(mirror, snapshot)
            assert "large" in names(daemon)
        assert client.wait(60) == 0, client.stdout.read()
        client.stdout.close()
    assert trees.differences(trees.describe(mirror), trees.describe(target)) == []


@pytest.mark.core
def test_a_damaged_replacement_leaves_the_one_before_in_use(place, mirror, snapshot):
    with serve(place, module("snap", mirror, f"attr snapshot = {snapshot}", "attr snapshot fallback = refuse")) as daemon:
        assert names(daemon) == ALL
        trees.write(os.path.join(mirror, "later"), b"later")
        damage(snapshot)
        for _ in range(3):
            assert names(daemon) == ALL
        kept = lines_of(daemon, "the new attr snapshot cannot be used")
        assert len(kept) == 1 and "generation 1" in kept[0] and "stays in use" in kept[0] and "chunk" in kept[0], kept
        os.unlink(snapshot)
        make_snapshot(mirror, snapshot)
        assert names(daemon) == sorted([*ALL, "later"])


@pytest.mark.core
def test_a_snapshot_can_be_added_and_taken_away(place, mirror):
    """The configuration and the file, while the daemon runs."""
    file = os.path.join(place, "snapshot")
    trees.write(os.path.join(mirror, "unlisted"), b"x")
    make_snapshot(mirror, file, "--exclude=unlisted")
    with serve(place, module("snap", mirror)) as daemon:
        everything = sorted([*ALL, "unlisted"])
        with open(daemon.config_file) as config:
            before = config.read()
        assert names(daemon) == everything
        with open(daemon.config_file, "a") as config:
            config.write(f"attr snapshot = {file}\n")
        for _ in range(3):
            assert names(daemon) == ALL
        assert len(use_line(daemon)) == 1
        os.rename(file, file + ".away")
        assert names(daemon) == everything
        os.rename(file + ".away", file)
        assert names(daemon) == ALL
        with open(daemon.config_file, "w") as config:
            config.write(before)
        assert names(daemon) == everything


def test_the_modules_name_is_part_of_the_path(place, mirror, snapshot):
    shutil.copyfile(snapshot, os.path.join(place, "one.snap"))
    config = f"attr snapshot = {place}/%RSYNC_MODULE_NAME%.snap\n" + module("one", mirror) + module("two", mirror)
    with serve(place, config) as daemon:
        for _ in range(3):
            assert names(daemon, "one") == names(daemon, "two") == ALL
        assert len(use_line(daemon, "one")) == 1
        assert len(lines_of(daemon, "module two: " + UNUSABLE)) == 1


def test_a_path_that_depends_on_the_client_is_opened_for_it(place, mirror, snapshot):
    trees.write(os.path.join(mirror, "unlisted"), b"x")
    os.rename(snapshot, os.path.join(place, "127.0.0.1.snap"))
    with serve(place, module("snap", mirror, f"attr snapshot = {place}/%RSYNC_HOST_ADDR%.snap")) as daemon:
        assert names(daemon) == names(daemon) == ALL
        assert len(use_line(daemon)) == 2


def test_without_a_listener_the_session_opens_it(place, mirror, snapshot):
    """A daemon over a remote shell."""
    trees.write(os.path.join(mirror, "unlisted"), b"x")
    path = os.path.join(place, "shell.conf")
    log = os.path.join(place, "shell.log")
    with open(path, "w") as file:
        file.write(f"log file = {log}\n" + IDENTITY + module("snap", mirror, f"attr snapshot = {snapshot}"))
    words = [harness.STOCK, "-r", "--list-only", "-e", harness.make_remote_shell(place),
             f"--rsync-path={harness.HUAI} --config={path}", "host::snap/"]
    for _ in range(2):
        result = harness.run(*words)
        assert result.code == 0 and b"README" in result.stdout and b"unlisted" not in result.stdout, result.text
    with open(log) as file:
        assert file.read().count("attr snapshot generation 1, ") == 2


# --- what happens without a good one ---

def nothing_there(mirror, file, place):
    os.unlink(file)


def damaged(mirror, file, place):
    damage(file)


def cut_short(mirror, file, place):
    os.truncate(file, os.path.getsize(file) - 100)


def empty(mirror, file, place):
    os.truncate(file, 0)


def writable_by_others(mirror, file, place):
    os.chmod(file, 0o666)


def somebody_elses(mirror, file, place):
    os.chown(file, 1234, 1234)


def a_pipe(mirror, file, place):
    os.unlink(file)
    os.mkfifo(file, 0o644)


def of_another_root(mirror, file, place):
    other = os.path.join(place, "other")
    shutil.copytree(mirror, other, symlinks=True)
    make_snapshot(other, file)


def too_old(mirror, file, place):
    time.sleep(2.1)


REASONS = [(nothing_there, "No such file"), (damaged, "chunk "), (cut_short, "header"), (empty, "header"),
           (writable_by_others, "666"), (a_pipe, "not a regular file"), (of_another_root, "another directory"),
           (too_old, "more than the max age of 1 s")] + ([(somebody_elses, "uid 1234")] if trees.IS_ROOT else [])


@pytest.mark.core
@pytest.mark.parametrize("spoil,reason", REASONS, ids=[spoil.__name__ for spoil, _ in REASONS])
def test_the_fallback_takes_its_place(place, mirror, snapshot, spoil, reason):
    """Each client gets what the module says; the log has one line for each module."""
    trees.write(os.path.join(mirror, "unlisted"), b"x")
    make_snapshot(mirror, snapshot, "--exclude=unlisted")
    spoil(mirror, snapshot, place)
    age = "attr snapshot max age = " + ("1" if spoil is too_old else "3600")
    config = module("walked", mirror, f"attr snapshot = {snapshot}", age) + \
        module("refused", mirror, f"attr snapshot = {snapshot}", age, "attr snapshot fallback = refuse")
    with serve(place, config) as daemon:
        for _ in range(3):
            assert names(daemon, "walked") == sorted([*ALL, "unlisted"])
            assert "@ERROR: the file list of refused is not available" in names(daemon, "refused")
        walked, refused = (lines_of(daemon, f"module {name}: {UNUSABLE}") for name in ("walked", "refused"))
        assert len(walked) == len(refused) == 1
        assert reason in walked[0] and walked[0].endswith("; the tree itself is listed")
        assert reason in refused[0] and refused[0].endswith("; clients are refused")
        if spoil in (nothing_there, damaged, of_another_root):
            if os.path.exists(snapshot):
                os.unlink(snapshot)
            make_snapshot(mirror, snapshot, "--exclude=unlisted")
            assert names(daemon, "walked") == names(daemon, "refused") == ALL


def test_a_snapshot_grows_too_old_while_the_daemon_runs(place, mirror, snapshot):
    trees.write(os.path.join(mirror, "unlisted"), b"x")
    make_snapshot(mirror, snapshot, "--exclude=unlisted")
    with serve(place, module("snap", mirror, f"attr snapshot = {snapshot}", "attr snapshot max age = 4")) as daemon:
        assert names(daemon) == ALL
        wait_for(lambda: "unlisted" in names(daemon), 20)
        assert names(daemon) == sorted([*ALL, "unlisted"])
        assert len(lines_of(daemon, "more than the max age of 4 s")) == 1
        make_snapshot(mirror, snapshot, "--exclude=unlisted")
        assert names(daemon) == ALL


def test_the_listener_survives_what_it_finds(place, mirror, snapshot):
    """Directories, pipes, a broken configuration, files that come and go, all between two clients."""
    with serve(place, module("snap", mirror, f"attr snapshot = {snapshot}")) as daemon:
        with open(daemon.config_file) as file:
            config = file.read()
        for spoil in (nothing_there, a_pipe, damaged, empty, cut_short, writable_by_others):
            make_snapshot(mirror, snapshot)
            assert names(daemon) == ALL
            spoil(mirror, snapshot, place)
            assert names(daemon) == ALL
            if os.path.lexists(snapshot):
                os.unlink(snapshot)
        os.mkdir(snapshot)
        assert names(daemon) == ALL
        os.rmdir(snapshot)
        with open(daemon.config_file, "a") as file:
            file.write("[broken\n")
        assert "rsync error" in names(daemon)
        with open(daemon.config_file, "w") as file:
            file.write(config)
        make_snapshot(mirror, snapshot)
        assert names(daemon) == ALL
        assert daemon.process.poll() is None


# --- what the operator sees ---

def check(place, config):
    path = os.path.join(place, "check.conf")
    with open(path, "w") as file:
        file.write(config)
    result = harness.run(harness.HUAI, "--daemon", "--config-check", f"--config={path}")
    return result.code, result.stderr.decode()


def test_the_check_of_the_configuration_names_what_is_wrong(place, mirror, snapshot):
    settings = module("snap", mirror, f"attr snapshot = {snapshot}")
    assert check(place, settings) == (0, "")
    code, text = check(place, settings + "read only = no\n")
    assert code == 0 and '"read only = no" is ignored' in text
    code, text = check(place, settings + f"real file prefix = {mirror}\n")
    assert code == 1 and 'module "snap" has both an attr snapshot and a real file prefix' in text
    code, text = check(place, module("snap", mirror, "attr snapshot = here"))
    assert code == 1 and 'attr snapshot "here" is not an absolute path' in text
    # What a later run may make, or make anew, is no reason not to start.
    for spoil, reason in ((of_another_root, "another directory"), (nothing_there, "No such file")):
        spoil(mirror, snapshot, place)
        code, text = check(place, settings)
        assert code == 0 and f'attr snapshot of module "snap": ' in text and reason in text
    make_snapshot(mirror, snapshot)
    damage(snapshot)
    code, text = check(place, settings)
    assert code == 1 and "chunk " in text


def test_a_daemon_starts_without_its_snapshot(place, mirror):
    with serve(place, module("snap", mirror, f"attr snapshot = {place}/none")) as daemon:
        assert len(lines_of(daemon, 'attr snapshot of module "snap": it cannot be opened')) == 1
        assert names(daemon) == ALL


def test_a_signal_has_the_snapshots_looked_at(place, mirror, snapshot):
    with serve(place, module("snap", mirror, f"attr snapshot = {snapshot}")) as daemon:
        damage(snapshot)
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: lines_of(daemon, "the configuration has no errors"))
        assert len(lines_of(daemon, 'attr snapshot of module "snap": chunk')) == 1
        assert names(daemon) == ALL


# --- a listing leaves the disks alone ---

@root_only
@pytest.mark.parametrize("kind", ["live", "snap"])
def test_nothing_is_looked_for_inside_the_chroot(place, mirror, snapshot, kind):
    """Names of ids are asked for last: no code is loaded for that from what the process is rooted in, whatever lies there."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    trace = os.path.join(place, "trace")
    config = "numeric ids = no\n" if kind == "live" else ""
    config += module(kind, mirror, *([f"attr snapshot = {snapshot}"] if kind == "snap" else []), chroot="yes")
    os.chown(os.path.join(mirror, "README"), 3_999_999_999, 3_999_999_999)
    with serve(place, config) as daemon:
        tracer = subprocess.Popen(["strace", "-f", "-qq", "-e", "trace=%file", "-o", trace, "-p", str(daemon.process.pid)])
        try:
            time.sleep(1)
            result = harness.run(harness.STOCK, "-aH", "--no-i-r", "--list-only", daemon.url(f"{kind}/"))
        finally:
            tracer.terminate()
            tracer.wait(10)
    assert result.code == 0, result.text
    with open(trace) as file:
        _, entered, after = file.read().partition("chroot(")
    if not entered:
        pytest.skip("processes cannot be traced here")
    calls = [line for line in after.splitlines() if re.search(r'[(,] ?"/[^"]', line)]
    if kind == "snap":
        assert calls == []
    assert [line for line in calls if '"/etc/' not in line or "ld.so" in line] == []

@pytest.fixture(scope="module")
def disk(top):
    """The mirror on a file system of its own, and its snapshot beside it."""
    try:
        touches.private_mounts()
        disk = touches.LoopFileSystem(os.path.join(top, "image"), os.path.join(top, "mirror"), 256,
                                      2 * listing_io.DIRECTORIES * listing_io.FILES)
        disk.mount()
    except touches.Unavailable as reason:
        pytest.skip(str(reason))
    disk.top = top
    os.rmdir(os.path.join(disk.mount_point, "lost+found"))
    listing_io.build(disk.mount_point)
    yield disk
    disk.unmount()


def cold_with_snapshot(disk):
    """The loop device may be another one after each mount, and then the snapshot is of another root."""
    for _ in range(10):
        snapshot, device = make_snapshot(disk.mount_point, os.path.join(disk.top, "snapshot")), os.stat(disk.mount_point).st_dev
        disk.cold()
        if os.stat(disk.mount_point).st_dev == device:
            return snapshot
    pytest.skip("others mount and unmount loop devices all the time")


@pytest.mark.parametrize("chroot", CHROOTS)
def test_a_listing_touches_nothing_of_the_real_tree(disk, chroot):
    """No block of its disk, and no open or read of anything in it."""
    expected = {}
    disk.cold()
    with serve(disk.top, module("live", disk.mount_point, chroot=chroot)) as daemon:
        before = disk.blocks_read()
        for options in listing_io.LISTINGS:
            expected[options] = listing_io.listing(daemon, *options, module="live")
        assert disk.blocks_read() - before > 1000, "a live module has to read the tree, or nothing is measured here"

    def measure():
        snapshot = cold_with_snapshot(disk)
        config = module("snap", disk.mount_point, f"attr snapshot = {snapshot}", chroot=chroot)
        with serve(disk.top, config) as daemon, touches.Watch(disk.mount_point) as watch:
            before = disk.blocks_read()
            for options in listing_io.LISTINGS:
                listing_io.assert_same(listing_io.listing(daemon, *options, module="snap"), expected[options])
            assert lines_of(daemon, "module snap: attr snapshot generation") and not lines_of(daemon, UNUSABLE)
            assert listing_io.others(watch, disk) == []
            return disk.blocks_read() - before

    try:
        assert touches.fewest(measure) == 0
    except touches.Unavailable as reason:
        pytest.skip(str(reason))
