#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The measurements of the README: rsync-huai beside stock rsync, in one run, each as a ratio.

    HUAI=./rsync-huai bench/bench.py [--entries N] [--only NAME...]

Both daemons run one process per connection, started here on an accepted socket (as inetd does), so that the kernel's own
account of that process (wait4) is the server's CPU time. Private memory is sampled from /proc in runs of their own.
Everything is warm: each measurement is the best of --repeat runs after one that is not counted.
"""
import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testsuite", "system"))

import generate  # noqa: E402
import harness  # noqa: E402
import trees  # noqa: E402


class Server:
    """One module on a socket; each connection is served by a process of its own that is accounted for."""

    def __init__(self, program, place, parameters):
        self.program = program
        self.config = os.path.join(place, "rsyncd.conf")
        owner = "uid = 0\ngid = 0\n" if trees.IS_ROOT else ""
        with open(self.config, "w") as file:
            file.write(f"log file = {place}/log\nuse chroot = no\n{owner}[mod]\n{parameters}\n")

    def __enter__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"rsync://127.0.0.1:{self.socket.getsockname()[1]}/mod/"
        return self

    def __exit__(self, *exception):
        self.socket.close()

    def serve(self, *client, sample=False):
        """Run one client; returns the server's (CPU seconds, peak private bytes or None)."""
        process = subprocess.Popen([harness.STOCK, *client], stdout=subprocess.DEVNULL, env=harness.ENVIRONMENT)
        connection = self.socket.accept()[0]
        server = subprocess.Popen([self.program, "--daemon", "--config", self.config], stdin=connection, stdout=connection,
                                  stderr=subprocess.DEVNULL, env=harness.ENVIRONMENT)
        connection.close()
        peak = Sampler(server.pid) if sample else None
        _, status, usage = os.wait4(server.pid, 0)
        server.returncode = os.waitstatus_to_exitcode(status)
        if process.wait() != 0 or server.returncode != 0:
            raise SystemExit(f"{self.program}: client exit code {process.returncode}, server {server.returncode}")
        return usage.ru_utime + usage.ru_stime, peak.result() if peak else None


def memory_of(pid):
    """What the kernel accounts to a process, in bytes by kind; nothing if it has ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return {line.split()[0][:-1]: int(line.split()[1]) * 1024 for line in file.readlines()[1:]}
    except (FileNotFoundError, ProcessLookupError):
        return {}


def private_bytes(pid):
    kinds = memory_of(pid)
    return sum(kinds.get(kind, 0) for kind in ("Private_Clean", "Private_Dirty", "Swap"))


class Sampler:
    """The highest sum of private pages of a process, looked at every few milliseconds for as long as it lives."""

    def __init__(self, pid):
        self.pid, self.peak = pid, 0
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while private := private_bytes(self.pid):
            self.peak = max(self.peak, private)
            time.sleep(0.01)

    def result(self):
        self.thread.join()
        return self.peak


class Bench:
    def __init__(self, options):
        self.options = options
        self.disk = tempfile.mkdtemp(prefix="rsync-huai-bench.", dir=options.directory)
        self.memory = tempfile.mkdtemp(prefix="rsync-huai-bench.", dir="/dev/shm")
        self.live = os.path.join(self.disk, "live")
        self.attrs = os.path.join(self.memory, "attrs")
        self.copy = os.path.join(self.memory, "copy")
        self.rows = []

    def close(self):
        shutil.rmtree(self.disk, ignore_errors=True)
        shutil.rmtree(self.memory, ignore_errors=True)

    def row(self, what, stock, ours, goal, unit):
        ratio = ours / stock if stock else float("nan")
        # A goal in MiB is one for our own figure, the others are for the ratio.
        kept = ours <= goal if unit == "MiB" else ratio <= goal
        self.rows.append({"what": what, "stock": stock, "ours": ours, "ratio": ratio, "goal": goal, "unit": unit, "kept": kept})
        aim = f"{goal:g} MiB" if unit == "MiB" else f"{goal:g}"
        print(f"{what:<58}{stock:>10.2f}{ours:>10.2f} {unit:<4}{ratio:>7.2f}{aim:>9}  {'ok' if kept else 'MISSED'}", flush=True)

    def prepare(self):
        began = time.monotonic()
        generate.generate(self.live, self.options.entries)
        generate.generate(self.copy, self.options.entries)
        print(f"Generated a mirror of {self.options.entries:,} entries in {time.monotonic() - began:.0f} s.", flush=True)
        print(f"{'':<58}{'stock':>10}{'ours':>10}     {'ratio':>7}{'goal':>9}")

    def best(self, work):
        work()
        return min(work() for _ in range(self.options.repeat))

    def wall(self, *words):
        began = time.monotonic()
        result = harness.run(*words, timeout=3600)
        if result.code != 0:
            raise SystemExit(result.text[-2000:])
        return time.monotonic() - began

    def writing(self):
        """An attr tree written and refreshed, against stock's copy of as many 8-byte files and its run that finds nothing."""
        huai = [harness.HUAI, "-a", "--delete", "--only-send-attrs", self.live + "/", self.attrs + "/"]
        other = os.path.join(self.memory, "stock-copy")
        best = {"ours": float("inf"), "stock": float("inf")}
        # Once without counting, which also warms the sources; the attr tree of the last run stays.
        for turn in range(1 + self.options.repeat):
            for kind, words, target in (("ours", huai, self.attrs),
                                        ("stock", [harness.STOCK, "-a", self.attrs + "/", other + "/"], other)):
                shutil.rmtree(target, ignore_errors=True)
                seconds = self.wall(*words)
                best[kind] = min(best[kind], seconds) if turn else best[kind]
        shutil.rmtree(other, ignore_errors=True)
        self.row("writing the attr tree / copying 8-byte files, wall", best["stock"], best["ours"], 0.35, "s")
        stock = self.best(lambda: self.wall(harness.STOCK, "-a", "--delete", self.live + "/", self.copy + "/"))
        ours = self.best(lambda: self.wall(*huai))
        self.row("refreshing it unchanged / stock's run with nothing to do", stock, ours, 0.5, "s")

    def serving(self):
        forms = (("stock", harness.STOCK, f"path = {self.live}"),
                 ("live tree", harness.HUAI, f"path = {self.live}"),
                 ("attr tree", harness.HUAI, f"path = {self.attrs}\nreal file prefix = {self.live}"))
        if not os.path.isdir(self.attrs):
            self.wall(harness.HUAI, "-a", "--only-send-attrs", self.live + "/", self.attrs + "/")
        for what, client in (("-a --list-only", ["-a", "--list-only"]), ("-an, up to date", ["-an"])):
            cpu, memory = {}, {}
            for form, program, parameters in forms:
                with Server(program, self.disk, parameters) as server:
                    words = [*client, server.url, *([self.copy + "/"] if what.startswith("-an") else [])]
                    cpu[form] = self.best(lambda: server.serve(*words)[0])
                    memory[form] = server.serve(*words, sample=True)[1] / 2**20
            for form, goal in (("live tree", 0.8), ("attr tree", 1.5)):
                self.row(f"{what}: {form}, server CPU", cpu["stock"], cpu[form], goal, "s")
                self.row(f"{what}: {form}, peak private memory", memory["stock"], memory[form], 16, "MiB")

    def sending(self):
        """One large file as a whole."""
        source = os.path.join(self.disk, "large")
        os.mkdir(source)
        with open(os.path.join(source, "image.iso"), "wb") as file:
            for _ in range(self.options.large_mb):
                file.write(os.urandom(1 << 20))
        cpu = {}
        target = os.path.join(self.memory, "received")
        for name, program in (("stock", harness.STOCK), ("ours", harness.HUAI)):
            with Server(program, self.disk, f"path = {source}") as server:
                def once():
                    shutil.rmtree(target, ignore_errors=True)
                    return server.serve("-a", server.url, target + "/")[0]
                cpu[name] = self.best(once)
        shutil.rmtree(target, ignore_errors=True)
        shutil.rmtree(source)
        self.row(f"one file of {self.options.large_mb} MiB, server CPU", cpu["stock"], cpu["ours"], 0.9, "s")


def run_all(bench_class, options, methods=None):
    """Run what was asked for; 0 if every goal was kept."""
    print(f"{harness.HUAI} beside {harness.stock_version()}, {os.cpu_count()} processors")
    bench = bench_class(options)
    try:
        bench.prepare()
        for name in options.only:
            getattr(bench, methods[name] if methods else name)()
    finally:
        bench.close()
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"entries": options.entries, "rows": bench.rows}, file, indent=1)
    return 0 if all(row["kept"] for row in bench.rows) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--large-mb", type=int, default=3000, help="size of the single large file, MiB")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=("writing", "serving", "sending"), default=("sending", "writing", "serving"))
    parser.add_argument("--directory", help="where the live tree goes (default: the temporary directory); the rest is on /dev/shm")
    parser.add_argument("--json", help="also write the rows to this file")
    return run_all(Bench, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
