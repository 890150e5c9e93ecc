# SPDX-License-Identifier: GPL-3.0-or-later
"""A listing with nothing in memory, from a disk that does so many reads a second: a loop device, slowed down by blkio.

Part of bench_snapshot.py (--only cold). Needs root, ext4, a loop device and version 1 of the blkio controller.
"""
import contextlib
import os
import subprocess
import time

import generate
import harness

CONTROLLER = "/sys/fs/cgroup/blkio"


class SlowDisk:
    """An ext4 file system in a file, and a control group whose processes read from it slowly."""

    def __init__(self, place, megabytes, reads):
        self.image = os.path.join(place, "disk")
        self.mounted_at = os.path.join(place, "mounted")
        self.group = os.path.join(CONTROLLER, f"rsync-huai-bench-{os.getpid()}")
        self.reads = reads
        os.mkdir(self.mounted_at)
        with open(self.image, "wb") as file:
            file.truncate(megabytes << 20)
        subprocess.run(["mkfs.ext4", "-q", "-N", str(megabytes * 128), self.image], check=True)

    def __enter__(self):
        os.mkdir(self.group)
        return self

    def __exit__(self, *exception):
        os.rmdir(self.group)
        os.unlink(self.image)

    @contextlib.contextmanager
    def mounted(self):
        """Mounted anew each time, so that nothing of it is in memory."""
        subprocess.run(["mount", "-o", "loop,noatime", self.image, self.mounted_at], check=True)
        try:
            device = os.stat(self.mounted_at).st_dev
            with open(os.path.join(self.group, "blkio.throttle.read_iops_device"), "w") as file:
                file.write(f"{os.major(device)}:{os.minor(device)} {self.reads}")
            yield self.mounted_at
        finally:
            subprocess.run(["umount", self.mounted_at], check=True)

    def slow_down(self, pid):
        with open(os.path.join(self.group, "cgroup.procs"), "w") as file:
            file.write(str(pid))


def measure(bench, server_class):
    """Rows for Bench.row."""
    if os.geteuid() != 0 or not os.path.exists(os.path.join(CONTROLLER, "blkio.throttle.read_iops_device")):
        raise SystemExit("the cold listing needs root and version 1 of the blkio controller")
    entries, reads = bench.options.cold_entries, bench.options.cold_reads
    seconds = {}
    with SlowDisk(bench.place, max(64, entries // 50), reads) as disk:
        with disk.mounted() as top:
            generate.generate(os.path.join(top, "live"), entries)
            bench.make(os.path.join(top, "live"), os.path.join(top, "snapshot"))
        for name, program, extra in (("stock", harness.STOCK, ""), ("ours", harness.HUAI, "attr snapshot = {}/snapshot")):
            with disk.mounted() as top:
                place = os.path.join(bench.place, name)
                with server_class(program, place, f"path = {top}/live\n" + extra.format(top)) as server:
                    disk.slow_down(server.pid)
                    began = time.monotonic()
                    server.finish([server.client(["-a", "--list-only"])])
                    seconds[name] = time.monotonic() - began
    return [(f"cold listing of {entries:,} entries at {reads} reads a second, wall", seconds["stock"], seconds["ours"], None, "s")]
