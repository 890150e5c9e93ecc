#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the attr snapshot costs and saves, beside stock rsync on the warm live tree, in one run.

    HUAI=./rsync-huai bench/bench_snapshot.py [--entries N] [--only NAME...] [--growth N...]

Both daemons listen as they do in service. Server CPU is what the kernel has counted for the daemon's ended children (a fresh
snapshot has been checked before); memory is sampled from /proc. `cold` needs root, a loop device and the blkio controller.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testsuite", "system"))

import bench  # noqa: E402
import generate  # noqa: E402
import harness  # noqa: E402
import trees  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
LISTINGS = (("--list-only", ["-a", "--list-only"]), ("--list-only --no-i-r", ["-a", "--list-only", "--no-inc-recursive"]))


class Server:
    """A listening daemon with one module, whose ended children are accounted for."""

    def __init__(self, program, place, parameters, head=""):
        owner = "uid = 0\ngid = 0\n" if trees.IS_ROOT else ""
        os.makedirs(place, exist_ok=True)
        # All clients of a crowd come from one address; a later line of `head` counts.
        hosts = "max connections per host = 0\n" if program == harness.HUAI else ""
        self.config = f"use chroot = no\n{owner}max verbosity = 1\n{hosts}{head}[mod]\n{parameters}\n"
        self.daemon = harness.Daemon(program, self.config, place)

    def __enter__(self):
        self.daemon.__enter__()
        self.pid = self.daemon.process.pid
        self.url = self.daemon.url("mod/")
        return self

    def __exit__(self, *exception):
        self.daemon.__exit__(*exception)

    def children(self):
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as file:
            return [int(pid) for pid in file.read().split()]

    def seconds_of_children(self, listener=False):
        """CPU time of all children that have ended, with the listener's own if that is asked for; waits until none is left."""
        deadline = time.monotonic() + 30
        while self.children() and time.monotonic() < deadline:
            time.sleep(0.005)
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11 if listener else 13:15])) / TICKS

    def client(self, words):
        return subprocess.Popen([harness.STOCK, *words, self.url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env=harness.ENVIRONMENT)

    def cpu(self, words, runs):
        """CPU seconds of one connection, the mean of several."""
        self.finish([self.client(words)])
        before = self.seconds_of_children()
        for _ in range(runs):
            self.finish([self.client(words)])
        return (self.seconds_of_children() - before) / runs

    def finish(self, clients):
        for client in clients:
            if client.wait() != 0:
                raise SystemExit(f"{self.daemon.program}: a client ended with exit code {client.returncode}")

    def private_bytes(self, clients):
        """The highest sum over all children of private pages, while these clients run."""
        peak = 0
        while any(client.poll() is None for client in clients):
            peak = max(peak, sum(bench.private_bytes(pid) for pid in self.children()))
            time.sleep(0.02)
        self.finish(clients)
        return peak


def kernel_bytes():
    """Page cache of memory file systems, and what the kernel holds for names and inodes."""
    with open("/proc/meminfo") as file:
        values = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file}
    return values["Shmem"] + values["Slab"]


class Bench:
    def __init__(self, options):
        self.options = options
        self.place = tempfile.mkdtemp(prefix="rsync-huai-bench.", dir=options.directory)
        self.memory = tempfile.mkdtemp(prefix="rsync-huai-bench.", dir="/dev/shm")
        self.live = os.path.join(self.place, "live")
        self.snapshot = os.path.join(self.memory, "snapshot")
        self.rows = []

    def close(self):
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.rmtree(self.memory, ignore_errors=True)

    def row(self, what, stock, ours, goal, unit, absolute=False):
        ratio = ours / stock if stock else float("nan")
        kept = goal is None or (ours <= goal if absolute else ratio <= goal)
        self.rows.append({"what": what, "stock": stock, "ours": ours, "ratio": ratio, "goal": goal, "unit": unit, "kept": kept})
        aim = "" if goal is None else f"{goal:g} {unit}" if absolute else f"1/{1 / goal:.3g}" if goal < 0.5 else f"{goal:g}"
        inverse = f"1/{1 / ratio:.1f}" if 0 < ratio < 0.5 else f"{ratio:.2f}"
        print(f"{what:<62}{stock:>10.3f}{ours:>10.3f} {unit:<4}{inverse:>8}{aim:>10}  {'' if goal is None else 'ok' if kept else 'MISSED'}",
              flush=True)

    def run(self, *words):
        began = time.monotonic()
        result = harness.run(*words, timeout=3600)
        if result.code != 0:
            raise SystemExit(result.text[-2000:])
        return time.monotonic() - began

    def make(self, live, snapshot, *words):
        return self.run(harness.HUAI, "-aH", "--only-send-attrs", f"--attr-snapshot={snapshot}", *words, live + "/")

    def prepare(self):
        self.make_tree()
        size = os.path.getsize(self.snapshot)
        self.row("bytes of the snapshot for each entry", 0, size / self.options.entries, 100, "B", absolute=True)

    def make_tree(self):
        began = time.monotonic()
        if not os.path.isdir(self.live):
            generate.generate(self.live, self.options.entries)
            print(f"Generated a mirror of {self.options.entries:,} entries in {time.monotonic() - began:.0f} s.", flush=True)
        print(f"{'':<62}{'stock':>10}{'ours':>10}     {'ratio':>8}{'goal':>10}")
        self.make(self.live, self.snapshot)

    def servers(self, live, snapshot, head):
        ours = f"path = {live}\nattr snapshot = {snapshot}"
        return (("stock", Server(harness.STOCK, os.path.join(self.place, "stock"), f"path = {live}", head)),
                ("ours", Server(harness.HUAI, os.path.join(self.place, "ours"), ours, head)))

    def both(self, live, snapshot, measure, head=""):
        result = {}
        for name, server in self.servers(live, snapshot, head):
            with server:
                result[name] = measure(server)
        return result["stock"], result["ours"]

    def serving(self):
        for what, words in LISTINGS:
            stock, ours = self.both(self.live, self.snapshot, lambda server: server.cpu(words, self.options.repeat))
            self.row(f"{what}: server CPU", stock, ours, 1 / 16, "s")
            stock, ours = self.both(self.live, self.snapshot, lambda server: server.private_bytes([server.client(words)]))
            self.row(f"{what}: peak private memory", stock / 2**20, ours / 2**20, 8, "MiB", absolute=True)

    def crowd(self):
        """Many clients at once."""
        words, count = LISTINGS[0][1], self.options.clients

        def measure(server):
            self_before = server.seconds_of_children()
            began = time.monotonic()
            memory = server.private_bytes([server.client(words) for _ in range(count)])
            return server.seconds_of_children() - self_before, memory / 2**20, time.monotonic() - began

        stock, ours = self.both(self.live, self.snapshot, measure)
        self.row(f"{count} clients at once, --list-only: server CPU", stock[0], ours[0], None, "s")
        self.row(f"{count} clients at once, --list-only: private memory", stock[1], ours[1], None, "MiB")
        self.row(f"{count} clients at once, --list-only: until all have ended", stock[2], ours[2], None, "s")

    def growth(self):
        for entries in self.options.growth:
            live, snapshot = os.path.join(self.place, f"live-{entries}"), os.path.join(self.memory, f"snapshot-{entries}")
            generate.generate(live, entries)
            self.make(live, snapshot)
            for what, words in LISTINGS:
                runs = max(1, min(50, 2_000_000 // entries))
                stock, ours = self.both(live, snapshot, lambda server: server.cpu(words, runs))
                self.row(f"{entries:>9,} entries, {what}: server CPU", stock, ours, None, "s")
                stock, ours = self.both(live, snapshot, lambda server: server.private_bytes([server.client(words)]))
                self.row(f"{entries:>9,} entries, {what}: private memory", stock / 2**20, ours / 2**20, None, "MiB")
            shutil.rmtree(live)
            os.unlink(snapshot)

    def form(self):
        """Memory of an attr tree on tmpfs against that of the snapshot."""
        attrs = os.path.join(self.memory, "attrs")
        before = kernel_bytes()
        self.run(harness.HUAI, "-aH", "--only-send-attrs", self.live + "/", attrs + "/")
        tree = kernel_bytes() - before
        shutil.rmtree(attrs)
        size = os.path.getsize(self.snapshot)
        self.row("memory of the form: attr tree / snapshot", tree / 2**20, size / 2**20, 1 / 45, "MiB")

    def making(self):
        """A full scan against find, which looks at as much; and a quick refresh against the full scan."""
        find = ["find", self.live, "-printf", "%s %T@ %m %U %G %p\\n"]

        def find_seconds():
            began = time.monotonic()
            subprocess.run(find, stdout=subprocess.DEVNULL, check=True, env=harness.ENVIRONMENT)
            return time.monotonic() - began

        target = os.path.join(self.memory, "made")
        self.make(self.live, target)
        finds, scans = [], []
        for _ in range(self.options.repeat):
            finds.append(find_seconds())
            scans.append(self.make(self.live, target))
        self.row("full scan, snapshot written / find -printf, wall", min(finds), min(scans), 1, "s")
        refreshes = []
        for turn in range(self.options.repeat):
            self.change_directories(0.001, turn)
            refreshes.append(self.make(self.live, target, "--attr-refresh=dirs"))
        self.row("refresh of 0.1 % of the directories / full scan, wall", min(scans), min(refreshes), 1 / 10, "s")

    def change_directories(self, share, turn):
        directories = [path for path, _, _ in os.walk(self.live)]
        step = max(1, int(1 / share))
        for path in directories[turn % step::step]:
            with open(os.path.join(path, f"new-{turn}"), "w") as file:
                file.write("x" * turn)
        # The refresh does not trust what has changed in the last moments.
        time.sleep(2.5)

    def cold(self):
        """A listing when nothing is in memory, from a disk that does so many reads a second."""
        import bench_cold

        for row in bench_cold.measure(self, Server):
            self.row(*row)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--growth", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--cold-entries", type=int, default=20_000)
    parser.add_argument("--cold-reads", type=int, default=150, help="reads a second of the slow disk")
    parser.add_argument("--only", nargs="+", choices=("serving", "crowd", "form", "making", "growth", "cold"),
                        default=("serving", "crowd", "form", "making", "growth"))
    parser.add_argument("--directory", help="where the live tree goes (default: the temporary directory)")
    parser.add_argument("--json", help="also write the rows to this file")
    return bench.run_all(Bench, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
