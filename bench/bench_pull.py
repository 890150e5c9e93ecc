#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The measurements of the receiving side and of local copies: rsync-huai beside stock rsync, in one run, each as a ratio.

    HUAI=./rsync-huai bench/bench_pull.py [--entries N] [--files N] [--large-mb N] [--only NAME...]

Both clients pull from the same stock daemon; CPU is the kernel's account of the client and of all of its processes (wait4).
Memory is the sum of the proportional set sizes of these processes, sampled in runs of their own. Everything lies on tmpfs and
is warm: each figure is the best of --repeat runs after one that is not counted, stock and ours in turns. "shared", as root, is
the delta once more with the destination on XFS, in a file on the disk, where files can share blocks.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testsuite", "system"))

import bench  # noqa: E402
import generate  # noqa: E402
import harness  # noqa: E402
import touches  # noqa: E402
import trees  # noqa: E402

PROGRAMS = {"stock": harness.STOCK, "ours": harness.HUAI}
PER_DIRECTORY = 100
CHANGE_EVERY, CHANGE_SIZE = 1 << 20, 10486  # 1 %


def descendants(pid):
    """A process and all below it."""
    found = [pid]
    for process in found:
        try:
            with open(f"/proc/{process}/task/{process}/children") as file:
                found += [int(word) for word in file.read().split()]
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


class Sampler:
    """The highest sum of what the processes below one take of the memory, shared pages in parts."""

    def __init__(self, pid):
        self.pid, self.peak, self.over = pid, 0, False
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.over:
            self.peak = max(self.peak, sum(bench.memory_of(pid).get("Pss", 0) for pid in descendants(self.pid)))
            time.sleep(0.02)

    def result(self):
        self.over = True
        self.thread.join()
        return self.peak


def measure(*words, sample=False):
    """Run a client: its (CPU seconds, wall seconds, peak memory or None)."""
    began = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=harness.ENVIRONMENT)
    peak = Sampler(process.pid) if sample else None
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    memory = peak.result() if peak else None
    if process.returncode:
        raise SystemExit(f"{' '.join(words)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, seconds, memory


def write_small_files(root, count):
    rng = random.Random(1)
    for number in range(count):
        directory = os.path.join(root, f"{number // PER_DIRECTORY:05}")
        if number % PER_DIRECTORY == 0:
            os.makedirs(directory)
        trees.write(os.path.join(directory, f"file-{number:06}.dat"), rng.randbytes(rng.randint(1, 8191)))


class Bench(bench.Bench):
    def __init__(self, options):
        super().__init__(options)
        self.small, self.large = (os.path.join(self.memory, name) for name in ("small", "large"))
        self.target = os.path.join(self.memory, "target")

    def prepare(self):
        os.mkdir(self.small)
        os.mkdir(self.large)
        if {"small", "local"} & set(self.options.only):
            write_small_files(self.small, self.options.files)
        if {"large", "delta", "shared"} & set(self.options.only):
            with open(os.path.join(self.large, "image.iso"), "wb") as file:
                for _ in range(self.options.large_mb):
                    file.write(os.urandom(1 << 20))
        if "unchanged" in self.options.only:
            generate.generate(os.path.join(self.memory, "live"), self.options.entries)
            generate.generate(self.copy, self.options.entries)
        owner = "uid = 0\ngid = 0\n" if trees.IS_ROOT else ""
        self.daemon = harness.Daemon(harness.STOCK, f"use chroot = no\n{owner}[mod]\npath = {self.memory}\n", self.disk)
        self.daemon.__enter__()
        print(f"{'':<58}{'stock':>10}{'ours':>10}     {'ratio':>7}{'goal':>9}", flush=True)

    def close(self):
        if hasattr(self, "daemon"):
            self.daemon.__exit__()
        super().close()

    def compare(self, prepare, work, names=("stock", "ours")):
        """The best figure of each; `prepare` and `work` take a name."""
        best = {}
        for turn in range(1 + self.options.repeat):
            for name in names:
                prepare()
                figure = work(name)
                best[name] = min(best.get(name, figure), figure) if turn else figure
        return best

    def no_target(self):
        shutil.rmtree(self.target, ignore_errors=True)

    def pull(self, module, target):
        return lambda name: measure(PROGRAMS[name], "-a", self.daemon.url(f"mod/{module}/"), target + "/")[0]

    def small_files(self):
        cpu = self.compare(self.no_target, self.pull("small", self.target))
        self.row(f"pull of {self.options.files:,} files of about 4 KB, CPU", cpu["stock"], cpu["ours"], 0.6, "s")
        self.no_target()

    def large_file(self):
        cpu = self.compare(self.no_target, self.pull("large", self.target))
        self.row(f"pull of a file of {self.options.large_mb} MiB, CPU", cpu["stock"], cpu["ours"], 0.7, "s")
        self.no_target()

    def unchanged(self):
        cpu = self.compare(lambda: None, self.pull("live", self.copy))
        self.row(f"pull of {self.options.entries:,} entries, up to date, CPU", cpu["stock"], cpu["ours"], 0.5, "s")
        words = ["-a", self.daemon.url("mod/live/"), self.copy + "/"]
        memory = {name: measure(program, *words, sample=True)[2] / 2**20 for name, program in PROGRAMS.items()}
        self.row("the same: peak memory", memory["stock"], memory["ours"], 0.5, "MB")

    def local_copy(self):
        commands = {"stock": [harness.STOCK, "-a"], "ours": [harness.HUAI, "-a"], "cp": ["cp", "-a"]}
        wall = self.compare(self.no_target, lambda name: measure(*commands[name], self.small + ("/." if name == "cp" else "/"),
                                                                 self.target + "/" * (name != "cp"))[1], tuple(commands))
        self.row(f"local copy of {self.options.files:,} files / rsync -a, wall", wall["stock"], wall["ours"], 0.5, "s")
        self.row(f"local copy of {self.options.files:,} files / cp -a, wall", wall["cp"], wall["ours"], 1, "s")
        self.no_target()

    def spoil(self):
        """Make the target's file differ from the source's in one part in a hundred."""
        path = os.path.join(self.target, "image.iso")
        if not os.path.exists(path):
            os.mkdir(self.target)
            shutil.copyfile(os.path.join(self.large, "image.iso"), path)
        with open(path, "r+b") as file:
            for at in range(0, self.options.large_mb << 20, CHANGE_EVERY):
                file.seek(at + 100_000)
                file.write(os.urandom(CHANGE_SIZE))
            file.seek(0)
            while file.read(1 << 20):  # shared blocks are not cached for the file that has not been read
                pass
        os.utime(path, (1, 1))

    def delta(self, where=""):
        cpu = self.compare(self.spoil, self.pull("large", self.target))
        self.row(f"delta of a file of {self.options.large_mb} MiB, 1 % changed{where}, CPU", cpu["stock"], cpu["ours"], 0.6, "s")
        self.no_target()

    def shared_delta(self):
        target = self.target
        try:
            touches.private_mounts()
            disk = touches.SharingFileSystem(os.path.join(self.disk, "image"), os.path.join(self.disk, "xfs"),
                                             3 * self.options.large_mb + 600)
            disk.mount()
        except touches.Unavailable as reason:
            print(f"no file system with shared blocks: {reason}", flush=True)
            return
        try:
            self.target = os.path.join(disk.mount_point, "target")
            self.delta(", on XFS")
        finally:
            self.target = target
            disk.unmount()


ALL = {"small": "small_files", "large": "large_file", "unchanged": "unchanged", "local": "local_copy", "delta": "delta",
       "shared": "shared_delta"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000, help="of the tree that is up to date")
    parser.add_argument("--files", type=int, default=100_000, help="number of small files")
    parser.add_argument("--large-mb", type=int, default=3000, help="size of the single large file, MiB")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=ALL, default=list(ALL))
    parser.add_argument("--directory", help="where the daemon's files go (default: the temporary directory); trees are on /dev/shm")
    parser.add_argument("--json", help="also write the rows to this file")
    return bench.run_all(Bench, parser.parse_args(), ALL)


if __name__ == "__main__":
    sys.exit(main())
