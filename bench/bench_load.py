#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon under the load of a thousand connections, beside stock rsyncd under the same load, in one run.

    HUAI=./rsync-huai bench/bench_load.py [--seconds N] [--entries N] [--listing N] [--idle N] [--trickle N] [--only NAME...]

`load_clients` (beside this file) makes the connections, in one process; each comes from a loopback address of its own, so that
no limit of one client's counts them together. Meanwhile a well-behaved client, the stock one, lists a small directory and pulls
a small file, over and over; before that it does the same without the load. Both daemons serve the same tree, everything warm:
stock from the live tree, ours from an attr snapshot. CPU is that of the daemon and all of its processes; memory is sampled.

`arrival`: as many connections at once with the configuration's own `listen backlog`, which the load has at 1024 for both.
`limits`: the same clients against `max connections`, `max connections per host` and `max connection rate`, and what the
metrics file counts.
"""
import argparse
import json
import multiprocessing
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testsuite", "system"))

import bench  # noqa: E402
import bench_pull  # noqa: E402
import bench_snapshot  # noqa: E402
import harness  # noqa: E402

CLIENTS = os.path.join(os.path.dirname(harness.HUAI), "bench", "load_clients")
PROBE_SECONDS = 120
UNLOADED_PROBES = 25
MEMORY_KEPT_FREE = 1 << 30
GLOBALS = "reverse lookup = no\n"
LIMITED = 60  # clients that run into a limit
TOLD = r"@ERROR: max connections \(\d+\) reached -- try again later"
BACKLOG = "listen backlog = 1024\n"


class Watch(multiprocessing.Process):
    """Memory of a daemon and its processes. To look at a thousand of them is work: it is done now and then, by a process of
    its own, at the lowest priority. Ends the load if the machine runs out of memory."""

    def __init__(self, pid, load):
        super().__init__()
        self.pids = pid, load.pid
        self.figures = multiprocessing.Array("d", 3)
        self.over = multiprocessing.Event()

    def run(self):
        daemon, load = self.pids
        os.nice(19)
        wait = 1
        while not self.over.wait(wait):
            began = time.monotonic()
            found = [bench.memory_of(pid) for pid in bench_pull.descendants(daemon)]
            figures = (sum(kinds.get("Pss", 0) for kinds in found), len(found),
                       max(kinds.get("Private_Dirty", 0) for kinds in found[1:] or [{}]))
            self.figures[:] = list(map(max, figures, self.figures))
            wait = max(2, 9 * (time.monotonic() - began))
            if available_memory() < MEMORY_KEPT_FREE:
                print("The memory of this machine is nearly used up: the load ends here.", flush=True)
                os.kill(load, signal.SIGKILL)
                return

    def end(self):
        self.over.set()
        self.join()
        return tuple(self.figures)


def available_memory():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))


class Probe:
    """The well-behaved client: how long its jobs take, and what went wrong."""

    def __init__(self, url, directory, file, target):
        self.jobs = {"listing of a small directory": ["--list-only", url + directory + "/"],
                     "pull of a small file": ["-a", url + file, target + "/"]}
        self.target = target
        self.times = {what: [] for what in self.jobs}
        self.failures = []

    def once(self):
        for what, words in self.jobs.items():
            shutil.rmtree(self.target, ignore_errors=True)
            result = harness.run(harness.STOCK, *words, timeout=PROBE_SECONDS)
            self.times[what].append(result.seconds)
            if result.code:
                self.failures.append(result.text)

    def figures(self, what):
        times = sorted(self.times[what]) or [float("nan")]
        return statistics.median(times), times[len(times) * 95 // 100], times[-1]


def small_things(root):
    """Of the tree, relative to it: a directory with a handful of entries, and a small file."""
    for path, directories, names in os.walk(root):
        small = [name for name in names if 0 < os.lstat(os.path.join(path, name)).st_size < 65536]
        if not directories and 10 <= len(names) <= 40 and small:
            directory = os.path.relpath(path, root)
            return directory, os.path.join(directory, small[0])
    raise SystemExit(f"{root}: no small directory")


class Bench(bench_snapshot.Bench):
    def prepare(self):
        self.live = self.options.live or self.live
        self.make_tree()
        self.small_directory, self.small_file = small_things(self.live)

    def start_load(self, server, seconds, listing, idle, trickle, hosts=None):
        words = [CLIENTS, server.daemon.port, "mod", seconds, listing, idle, trickle, hosts or listing + idle + trickle]
        load = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)
        load.stdout.readline()
        return load

    def finish_load(self, load):
        text = load.communicate()[0]
        return json.loads(text) if text else {"entries": 0, "bytes": 0, "open": 0, "greetings": 0, "greeting": [], "outcomes": []}

    def probe(self, server):
        return Probe(server.url, self.small_directory, self.small_file, os.path.join(self.place, "pulled"))

    def measure(self, server):
        # What lies in the cache must not depend on who came first.
        subprocess.run(["find", self.live, "-size", "-1"], stdout=subprocess.DEVNULL, check=True)
        unloaded, loaded = self.probe(server), self.probe(server)
        for _ in range(UNLOADED_PROBES):
            unloaded.once()
        options = self.options
        before = server.seconds_of_children(listener=True)
        began = time.monotonic()
        load = self.start_load(server, options.seconds, options.listing, options.idle, options.trickle)
        ready = time.monotonic() - began
        watch = Watch(server.pid, load)
        watch.start()
        while load.poll() is None:
            loaded.once()
        memory = watch.end()
        result = self.finish_load(load)
        result.update(ready=ready, unloaded=unloaded, loaded=loaded, memory=memory,
                      cpu=server.seconds_of_children(listener=True) - before, log=os.path.getsize(server.daemon.log_file))
        return result

    def arrival(self):
        """Everybody comes at the same moment."""
        count = self.options.listing + self.options.idle + self.options.trickle

        def measure(server):
            result = self.finish_load(self.start_load(server, 1, 0, count, 0))
            return result["open"], (result["greeting"] or [float("nan")])[-1]

        stock, ours = self.both(self.live, self.snapshot, measure, GLOBALS)
        self.row(f"{count} connections at once, default backlog: with a greeting", stock[0], ours[0], None, "")
        self.row("the longest time until a greeting", stock[1], ours[1], None, "s")

    def load(self):
        stock, ours = self.both(self.live, self.snapshot, self.measure, GLOBALS + BACKLOG)
        self.load_rows(stock, ours)
        for what, result in (("stock", stock), ("ours", ours)):
            for kind, outcome, why, count in result["outcomes"]:
                print(f"  {what}: {kind} {outcome} {count:,}{' (' + why + ')' if why else ''}")
            for text in (result["unloaded"].failures + result["loaded"].failures)[:3]:
                print(f"  {what}: the well-behaved client: {text}")

    def load_rows(self, stock, ours):
        def row(what, value, unit, goal=None):
            self.row(what, value(stock), value(ours), goal, unit, absolute=goal is not None)

        def outcomes(name, kind=None):
            return lambda result: sum(count for of, what, _, count in result["outcomes"] if what == name and kind in (None, of))

        def delay(result, which):
            return (result["greeting"] or [float("nan")])[which]

        connections = self.options.listing + self.options.idle + self.options.trickle
        row(f"{connections} connections: until all have a greeting", lambda result: result["ready"], "s")
        row("greeting of a connection, median", lambda result: delay(result, 0), "s")
        row("greeting of a connection, longest", lambda result: delay(result, -1), "s")
        row("entries listed", lambda result: result["entries"] / 1e6, "M")
        row("whole listings", outcomes("completed"), "")
        row("server CPU", lambda result: result["cpu"], "s")
        row("server CPU for a million entries listed", lambda result: result["cpu"] / max(result["entries"] / 1e6, 1e-9), "s")
        row("peak memory, all processes", lambda result: result["memory"][0] / 2**20, "MiB")
        row("peak anonymous memory of one process", lambda result: result["memory"][2] / 2**20, "MiB")
        row("most processes at a time", lambda result: result["memory"][1], "")
        row("log of one connection", lambda result: result["log"] / max(result["greetings"], 1), "B")
        row("connections cut by the handshake's deadline", outcomes("cut"), "")
        row("connections refused", outcomes("refused"), "", 0)
        row("connections lost", outcomes("lost"), "", 0)
        row("runs of the well-behaved client that failed", lambda result: len(result["loaded"].failures), "", 0)
        for what in stock["loaded"].jobs:
            for i, statistic in enumerate(("median", "95 %", "longest")):
                for state in ("unloaded", "loaded"):
                    row(f"{what}, {statistic}, {state}", lambda result: result[state].figures(what)[i], "s")

    def limits(self):
        """Who is over a limit is told so, in stock's words, and counted."""
        for parameter, of_module, hosts in (("max connections = 20", True, 60), ("max connections per host = 3", False, 10),
                                            ("max connection rate = 2", False, 10)):
            result, counted = self.run_into(parameter, of_module, hosts)
            told = {why: count for _, what, why, count in result["outcomes"] if what == "refused"}
            others = [outcome for outcome in result["outcomes"] if outcome[1] not in ("refused", "completed")]
            heard = sum(told.values())
            # The last of them are counted, but the clients have stopped listening.
            kept = 0 < heard <= counted <= heard + LIMITED and not others and all(re.fullmatch(TOLD, why) for why in told)
            print(f"{parameter}: {heard} clients refused, {counted} in the metrics, {told}{others or ''}: "
                  f"{'ok' if kept else 'MISSED'}", flush=True)
            self.rows.append({"what": parameter, "told": told, "counted": counted, "others": others, "kept": kept})

    def run_into(self, parameter, of_module, hosts):
        place = os.path.join(self.place, "limits")
        os.makedirs(place, exist_ok=True)
        module = f"path = {self.live}\nattr snapshot = {self.snapshot}\nlock file = {place}/lock\n"
        head = f"{GLOBALS}metrics file = {place}/metrics\n"
        lines = (module + parameter, head) if of_module else (module, head + parameter + "\n")
        with bench_snapshot.Server(harness.HUAI, place, *lines) as server:
            result = self.finish_load(self.start_load(server, self.options.limit_seconds, LIMITED, 0, 0, hosts))
            server.seconds_of_children()
        with open(f"{place}/metrics") as file:
            return result, sum(map(int, re.findall(r'connections_total\{.*outcome="refused"\} (\d+)', file.read())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=120, help="of the load on each daemon")
    parser.add_argument("--listing", type=int, default=200, help="connections that list the module")
    parser.add_argument("--idle", type=int, default=700, help="connections that say nothing")
    parser.add_argument("--trickle", type=int, default=100, help="connections that say a byte now and then")
    parser.add_argument("--limit-seconds", type=int, default=5, help="of the load for each limit")
    parser.add_argument("--live", help="serve this tree instead of a generated one")
    parser.add_argument("--only", nargs="+", choices=("arrival", "load", "limits"), default=("arrival", "load", "limits"))
    parser.add_argument("--directory", help="where the live tree goes (default: the temporary directory)")
    parser.add_argument("--json", help="also write the rows to this file")
    return bench.run_all(Bench, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
