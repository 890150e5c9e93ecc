#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Local copies where each operation takes a fixed time, as on a network file system: rsync-huai beside stock rsync, in one run.

    HUAI=./rsync-huai bench/bench_latency.py --program latency_fs [--files N] [--latency MS...] [--side SIDE...] [--tool NAME...]

bench/latency/latency_fs.c shows a directory with that delay, any number of operations at once, nothing cached; "source",
"destination" and "both" say what is behind it. The wall time of each run is printed with the operations for each file; those of
getattr and lookup count together. As root, as the destination keeps owners.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testsuite", "system"))

import harness  # noqa: E402
import trees  # noqa: E402

LATENCY, COUNTS = "user.latency.microseconds", "user.latency.counts"
PER_DIRECTORY = 100
JOBS = ("first", "nothing", "update")


class Disk:
    """A directory behind latency_fs."""

    def __init__(self, program, place, name):
        self.below, self.path = os.path.join(place, name + ".below"), os.path.join(place, name)
        os.mkdir(self.below)
        os.mkdir(self.path)
        self.process = subprocess.Popen([program, self.below, self.path])
        deadline = time.monotonic() + 20
        while not os.path.ismount(self.path):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("latency_fs cannot be mounted")
            time.sleep(0.01)

    def set_latency(self, milliseconds):
        os.setxattr(self.path, LATENCY, b"%d" % round(milliseconds * 1000))

    def counts(self):
        return json.loads(os.getxattr(self.path, COUNTS))

    def close(self):
        subprocess.run(["umount", self.path], check=False)
        self.process.wait(timeout=20)


PROGRAMS = {"rsync": harness.STOCK, "ours": harness.HUAI}


class Bench:
    def __init__(self, options):
        self.options = options
        self.place = tempfile.mkdtemp(prefix="rsync-huai-bench.", dir="/dev/shm")
        self.disks = {name: Disk(options.program, self.place, name) for name in ("source", "destination")}
        self.rows = []

    def close(self):
        for disk in self.disks.values():
            disk.close()
        shutil.rmtree(self.place)

    def below(self, name):
        return self.disks[name].below

    def write_source(self):
        for number in range(self.options.files):
            directory = os.path.join(self.below("source"), f"{number // PER_DIRECTORY:05}")
            if number % PER_DIRECTORY == 0:
                os.makedirs(directory)
            trees.write(os.path.join(directory, f"file-{number:06}.dat"), os.urandom(4000))

    def prepare(self, job):
        """The destination as the job finds it."""
        target = os.path.join(self.below("destination"), "tree")
        shutil.rmtree(target, ignore_errors=True)
        if job == "first":
            return
        subprocess.run(["cp", "-a", self.below("source"), target], check=True)
        if job == "update":  # one file in ten is older, one in ten is gone from the source
            for number, (directory, _, names) in enumerate(sorted(os.walk(target))):
                for name in sorted(names)[number % 10::10]:
                    trees.write(os.path.join(directory, name), b"older")
                    trees.write(os.path.join(directory, "gone-" + name), b"gone")

    def run(self, tool, job, side, latency):
        self.prepare(job)
        paths = {name: disk.path if side in (name, "both") else disk.below for name, disk in self.disks.items()}
        for name, disk in self.disks.items():
            disk.set_latency(latency if side in (name, "both") else 0)
        began = time.monotonic()
        result = harness.run(PROGRAMS[tool], "-a", "--delete", paths["source"] + "/",
                             os.path.join(paths["destination"], "tree") + "/", timeout=3600)
        seconds = time.monotonic() - began
        if result.code:
            raise SystemExit(result.text[-2000:])
        counts = {name: self.disks[name].counts() for name in self.disks if side in (name, "both")}
        for disk in self.disks.values():
            disk.set_latency(0)
        if subprocess.run(["diff", "-r", self.below("source"), os.path.join(self.below("destination"), "tree")],
                          stdout=subprocess.DEVNULL).returncode:
            raise SystemExit(f"{tool}: the copy differs")
        return seconds, counts

    def compare(self, side, latency):
        for job in JOBS:
            for tool in self.options.tool:
                seconds, counts = self.run(tool, job, side, latency)
                each = {name: sum(kinds.values()) / self.options.files for name, kinds in counts.items()}
                self.rows.append({"side": side, "latency_ms": latency, "job": job, "tool": tool, "seconds": seconds,
                                  "operations": counts})
                print(f"{side:<12}{latency:>5} ms  {job:<8}{tool:<8}{seconds:>9.2f} s  "
                      + ", ".join(f"{name} {count:.2f}" for name, count in each.items()) + " operations a file", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="latency_fs")
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--latency", type=float, nargs="+", default=[0.2, 1, 5], help="milliseconds")
    parser.add_argument("--side", nargs="+", choices=("source", "destination", "both"), default=["source", "destination", "both"])
    parser.add_argument("--tool", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--json", help="also write the rows to this file")
    options = parser.parse_args()
    bench = Bench(options)
    try:
        bench.write_source()
        for side in options.side:
            for latency in options.latency:
                bench.compare(side, latency)
    finally:
        bench.close()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(bench.rows, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
