# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures that the daemon publishes: the metrics file."""
import os
import re
import signal
import stat
import subprocess

import pytest

import harness
import trees
from test_daemon import GREETING, IDENTITY, open_session, server_pids, talk, wait_for
from test_snapshot_daemon import make_snapshot

SAMPLE = re.compile(r'rsync_huai_([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\d+)')


class Metered(harness.Daemon):
    def __init__(self, place, modules, *lines):
        self.file = f"{place}/metrics.prom"
        super().__init__(harness.HUAI, "\n".join(("use chroot = no", f"metrics file = {self.file}", *lines, IDENTITY, modules)),
                         place)

    def samples(self):
        """Of the whole file, every line of which must be well formed."""
        with open(self.file) as file:
            lines = file.read().splitlines()
        found = {}
        kinds = {line.split()[2] for line in lines if line.startswith("# TYPE ")}
        for line in lines:
            if line.startswith("# "):
                continue
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert f"rsync_huai_{match[1]}" in kinds, line
            found[match[1] + (f"{{{match[2]}}}" if match[2] else "")] = int(match[3])
        return found

    def fresh(self):
        before = os.stat(self.file).st_ino
        os.kill(self.process.pid, signal.SIGHUP)
        wait_for(lambda: os.stat(self.file).st_ino != before)
        return self.samples()

    def until(self, name, value):
        wait_for(lambda: self.fresh().get(name) == value)
        return self.samples()


@pytest.fixture
def tree(place):
    os.makedirs(f"{place}/tree")
    for name in "abc":
        trees.write(f"{place}/tree/{name}", name.encode() * 100000)
    return f"{place}/tree"


def pull(daemon, path, *words):
    return harness.run(harness.STOCK, "-a", *words, daemon.url(path), f"{daemon.directory}/out").code


@pytest.mark.core
def test_connections_bytes_and_files_are_counted_by_module(place, tree):
    modules = f"[mod]\npath = {tree}\n[other]\npath = {tree}\n[in]\npath = {place}/in\nread only = no\n"
    os.mkdir(f"{place}/in")
    with Metered(place, modules) as daemon:
        wait_for(lambda: not server_pids(daemon))
        assert stat.S_IMODE(os.stat(daemon.file).st_mode) == 0o644
        assert pull(daemon, "mod/") == 0
        assert pull(daemon, "mod/nothing") == 23
        assert harness.run(harness.STOCK, "-a", f"{tree}/", daemon.url("mod/")).code != 0
        assert harness.run(harness.STOCK, "-a", f"{tree}/a", daemon.url("in/")).code == 0
        assert b"Unknown module" in talk(daemon, GREETING + b"nonsense\n")[0]
        wait_for(lambda: not server_pids(daemon))
        found = daemon.fresh()
        outcomes = {name: found[f'connections_total{{module="mod",outcome="{name}"}}'] for name in
                    ("ok", "partial", "refused", "error", "signal")}
        assert outcomes == {"ok": 1, "partial": 1, "refused": 1, "error": 0, "signal": 0}
        assert found['files_total{module="mod"}'] == 3 and found['files_total{module="in"}'] == 1
        assert 300000 < found['bytes_total{module="mod",direction="sent"}'] < 320000
        assert 100000 < found['bytes_total{module="in",direction="received"}'] < 110000
        assert found['connections_total{module="",outcome="refused"}'] == 2  # the harness looked in once
        assert not any("nonsense" in name for name in found)
        assert 0 < found["start_time_seconds"]


def test_dry_runs_transfer_no_files(place, tree):
    with Metered(place, f"[mod]\npath = {tree}\n") as daemon:
        assert pull(daemon, "mod/", "-n") == 0
        daemon.until('connections_total{module="mod",outcome="ok"}', 1)
        assert daemon.samples()['files_total{module="mod"}'] == 0


def test_what_is_received_is_counted_without_being_logged(place, tree):
    os.mkdir(f"{place}/in")
    trees.write(f"{place}/in/surplus", b"surplus")
    with Metered(place, f"[in]\npath = {place}/in\nread only = no\n") as daemon:
        for options in ("-an", "-a", "-a"):
            assert harness.run(harness.STOCK, options, "--delete", f"{tree}/", daemon.url("in/")).code == 0
        assert not os.path.exists(f"{place}/in/surplus")
        found = daemon.until('connections_total{module="in",outcome="ok"}', 3)
        assert found['files_total{module="in"}'] == 3
        assert "surplus" not in daemon.log() and " recv " not in daemon.log()


def test_current_connections_and_crashes_are_seen(place, tree):
    with Metered(place, f"[mod]\npath = {tree}\n") as daemon:
        wait_for(lambda: not server_pids(daemon))
        connection = open_session(daemon, "mod")[0]
        before = daemon.until('connections{module="mod"}', 1)
        assert before['bytes_total{module="mod",direction="received"}'] == len(GREETING) + 4
        os.kill(server_pids(daemon)[0], signal.SIGKILL)
        after = daemon.until('connections_total{module="mod",outcome="signal"}', 1)
        assert after['connections{module="mod"}'] == 0
        connection.close()


def test_counts_of_processes_with_a_command_at_their_end(place, tree):
    with Metered(place, f"[mod]\npath = {tree}\npost-xfer exec = true\n") as daemon:
        assert pull(daemon, "mod/") == 0
        daemon.until('connections_total{module="mod",outcome="ok"}', 1)
        assert daemon.samples()['files_total{module="mod"}'] == 3


def test_the_file_is_left_complete_at_the_end(place, tree):
    with Metered(place, f"[mod]\npath = {tree}\n") as daemon:
        assert pull(daemon, "mod/") == 0
        wait_for(lambda: not server_pids(daemon))
        daemon.process.terminate()
        daemon.process.wait(60)
        assert daemon.samples()['files_total{module="mod"}'] == 3
        assert not [name for name in os.listdir(place) if name.startswith(".metrics")]


def test_a_session_without_a_listener_leaves_the_file_alone(place, tree):
    with Metered(place, f"[mod]\npath = {tree}\n", f"control socket = {place}/control") as daemon:
        wait_for(lambda: not server_pids(daemon))
        before = daemon.fresh()
        shell = [harness.STOCK, "-a", "-e", harness.make_remote_shell(place), f"--rsync-path={harness.HUAI} "
                 f"--config={daemon.config_file}", "host::mod/", f"{place}/shell/"]
        assert harness.run(*shell).code == 0
        ours, theirs = harness.tcp_pair()
        with ours, theirs:
            process = subprocess.Popen([harness.HUAI, "--daemon", f"--config={daemon.config_file}"], stdin=theirs,
                                       env=harness.ENVIRONMENT)
            theirs.close()
            ours.settimeout(20)
            ours.sendall(GREETING + b"mod\n")
            stream = ours.makefile("rb")
            assert (stream.readline(), stream.readline())[1] == b"@RSYNCD: OK\n"
            status = harness.run(harness.HUAI, "--status", f"--config={daemon.config_file}")
            assert status.stdout.startswith(b"total: connections 0,"), status.text
            stream.close()
        process.wait(60)
        assert daemon.fresh() == before
        assert pull(daemon, "mod/") == 0
        assert daemon.until('connections_total{module="mod",outcome="ok"}', 1)['files_total{module="mod"}'] == 3


def test_names_are_escaped(place, tree):
    with Metered(place, f'[a"b\\c]\npath = {tree}\n') as daemon:
        assert pull(daemon, 'a"b\\c/') == 0
        daemon.until('connections_total{module="a\\"b\\\\c",outcome="ok"}', 1)


@pytest.mark.core
def test_snapshots_are_described(place, tree):
    snapshot = make_snapshot(tree, f"{place}/tree.snapshot")
    modules = (f"[mod]\npath = {tree}\nattr snapshot = {snapshot}\n[lost]\npath = {tree}\nattr snapshot = {place}/none\n"
               f"[old]\npath = {tree}\nattr snapshot = {snapshot}\nattr snapshot max age = 1\n")
    with Metered(place, modules) as daemon:
        found = daemon.fresh()
        assert found['snapshot_usable{module="mod"}'] == 1 and found['snapshot_usable{module="lost"}'] == 0
        assert found['snapshot_generation{module="mod"}'] == 1 and 'snapshot_generation{module="lost"}' not in found
        assert found['snapshot_entries{module="mod"}'] == 4
        made = found['snapshot_made_timestamp_seconds{module="mod"}']
        assert 0 <= os.stat(snapshot).st_mtime - made < 60
        assert found['snapshot_age_seconds{module="mod"}'] < 60
        os.unlink(f"{tree}/a")
        trees.write(f"{tree}/b", b"shorter")
        pull(daemon, "mod/")
        wait_for(lambda: not server_pids(daemon))
        found = daemon.fresh()
        assert found['missing_contents_total{module="mod"}'] == 1
        assert found['stale_contents_total{module="mod"}'] == 1
        make_snapshot(tree, snapshot)
        found = daemon.until('snapshot_usable{module="old"}', 0)
        assert found['snapshot_generation{module="mod"}'] == 2 and found['snapshot_entries{module="mod"}'] == 3


def test_a_file_that_cannot_be_written_is_said_once(place, tree):
    with harness.Daemon(harness.HUAI, f"metrics file = {place}/none/metrics\n[mod]\npath = {tree}\n", place) as daemon:
        for count in (1, 2):
            os.kill(daemon.process.pid, signal.SIGHUP)
            wait_for(lambda: daemon.log().count("the configuration has no errors") == count)
        assert talk(daemon, GREETING + b"#list\n")[0]
        assert daemon.log().count("cannot write metrics file") == 1
