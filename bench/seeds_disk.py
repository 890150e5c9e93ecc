# SPDX-License-Identifier: GPL-3.0-or-later
"""A file system of its own in a file, whose read operations the kernel counts, and which can be had cold.

Part of bench/seeds. Whatever way the process ends, the mount and the loop device end with it: the mount lies in a private mount
namespace, and the device is detached as soon as nobody has it open.
"""
import fcntl
import os
import time

import touches

BLKFLSBUF = 0x1261


class Disk(touches.LoopFileSystem):
    """Ext4 or XFS. The device stays the same over all mounts: a snapshot knows its tree by the device, too."""

    def __init__(self, place, kind, megabytes, inodes):
        touches.private_mounts()
        self.kind = kind
        super().__init__(os.path.join(place, "image"), os.path.join(place, "mirror"), megabytes, inodes)
        self.device = touches.run_tool("losetup", "--find", "--show", "--direct-io=on", self.image).strip()
        try:
            self.held = os.open(self.device, os.O_RDONLY | os.O_CLOEXEC)
        finally:
            touches.run_tool("losetup", "--detach", self.device)
        self.mounted = False

    def make(self, inodes):
        if self.kind == "ext4":
            super().make(inodes)
        else:
            touches.run_tool("mkfs.xfs", "-q", self.image)

    def mount(self, options="ro,noatime"):
        """For a measurement read-only: the file system itself then has nothing to do and reads nothing."""
        touches.run_tool("mount", "-o", options, self.device, self.mount_point)
        self.mounted = True

    def writable(self):
        self.unmount()
        self.mount("rw,noatime")

    def empty(self):
        """The mirror is the root of the file system; nothing else is to be in it."""
        for name in os.listdir(self.mount_point):
            os.rmdir(os.path.join(self.mount_point, name))

    def unmount(self):
        if self.mounted:
            touches.run_tool("umount", self.mount_point)
            self.mounted = False
        fcntl.ioctl(self.held, BLKFLSBUF)

    def reads(self):
        """(operations, bytes) since the device was attached; waits for what is under way."""
        place = f"/sys/block/{os.path.basename(self.device)}"
        while True:
            with open(os.path.join(place, "inflight")) as file:
                if file.read().split() == ["0", "0"]:
                    break
            time.sleep(0.01)
        with open(os.path.join(place, "stat")) as file:
            fields = file.read().split()
        return int(fields[0]), int(fields[2]) * 512

    def close(self):
        for _ in range(100):
            try:
                self.unmount()
                break
            except touches.Unavailable:  # a server that is about to end
                time.sleep(0.1)
        os.close(self.held)
