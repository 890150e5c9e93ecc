# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine to install packages on: this one, or the tree in MACHINE_ROOT, below a layer of memory that takes all changes.

    machine = Machine("/some/empty/directory")
    machine.run("dpkg", "-i", "/package.deb")    # as in a chroot: without systemd
    machine.boot()
    machine.run("systemctl", "start", "unit")    # with systemd as process 1, in a network of its own
    machine.close()

The caller has a mount namespace of its own (unshare --mount), so that nothing stays mounted whatever happens.
"""
import ctypes
import os
import signal
import subprocess
import time

ROOT = os.environ.get("MACHINE_ROOT", "/")
SECONDS = 120
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive",
               "SYSTEMD_PAGER": "cat"}
# What a real machine has and a container lacks.
LANDLOCK = "landlock_create_ruleset landlock_add_rule landlock_restrict_self"
PR_SET_PDEATHSIG = 1


class NotPossible(Exception):
    """This environment lets nobody mount a layer or start a container."""


def execute(*words, check=True, seconds=SECONDS, **options):
    """Run a command to its end; its output is one text."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT,
                          timeout=seconds, **options)
    done.text = os.fsdecode(done.stdout)
    assert done.returncode == 0 or not check, f"$ {' '.join(words)}\nexit code {done.returncode}\n{done.text}"
    return done


def wait_for(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("did not happen in time")


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Machine:
    def __init__(self, top):
        execute("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", top)
        self.top, self.upper, self.root = top, f"{top}/upper", f"{top}/root"
        self.container = self.first = None
        for directory in (self.upper, f"{top}/work", self.root):
            os.mkdir(directory)
        layers = f"lowerdir={ROOT},upperdir={self.upper},workdir={top}/work"
        mounted = execute("mount", "-t", "overlay", "-o", layers, "overlay", self.root, check=False)
        if mounted.returncode != 0:
            raise NotPossible(mounted.text)
        # An index of all manual pages with each package; and what keeps packages from starting services where no systemd runs.
        for name in ("/var/lib/man-db/auto-update", "/usr/sbin/policy-rc.d"):
            if os.path.lexists(self.path(name)):
                os.unlink(self.path(name))
        if not os.path.exists(self.path("/etc/hosts")):
            self.write("/etc/hosts", "127.0.0.1 localhost\n")
        self.mounted = []
        self._mount_kernel()

    def _mount_kernel(self):
        for name, words in (("proc", ["-t", "proc", "proc"]), ("dev", ["--rbind", "/dev"]), ("run", ["-t", "tmpfs", "tmpfs"]),
                            ("tmp", ["-t", "tmpfs", "tmpfs"])):
            execute("mount", *words, self.path(f"/{name}"))
            self.mounted.append(self.path(f"/{name}"))

    def _unmount_kernel(self):
        while self.mounted:
            execute("umount", "--lazy", self.mounted.pop())

    def path(self, name):
        """Where a file of the machine is found from outside."""
        return f"/proc/{self.first}/root{name}" if self.first else self.root + name

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(text)
        os.chmod(self.path(name), mode)

    def read(self, name):
        with open(self.path(name), errors="surrogateescape") as file:
            return file.read()

    def words(self, *words):
        """The command line that runs a command on the machine."""
        if not self.first:
            return ["chroot", self.root, *words]
        return ["nsenter", f"--target={self.first}", "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd", *words]

    def run(self, *words, **options):
        return execute(*self.words(*words), **options)

    def start(self, *words):
        """Run a command beside the test."""
        return subprocess.Popen(self.words(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=ENVIRONMENT)

    def boot(self):
        """Start systemd and no more than its basic target: what else the machine runs is none of our business."""
        self._unmount_kernel()
        log = open(f"{self.top}/console", "wb")
        with log:
            self.container = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--console=pipe",
                 f"--system-call-filter={LANDLOCK}", f"--directory={self.root}", "--boot", "systemd.unit=basic.target"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT, preexec_fn=die_with_parent)
        self.first = wait_for(self._first_process)
        wait_for(lambda: self.run("systemctl", "is-system-running", check=False).text.strip() in ("running", "degraded"))

    def _first_process(self):
        if self.container.poll() is not None:
            raise NotPossible(self.console())
        with open(f"/proc/{self.container.pid}/task/{self.container.pid}/children") as file:
            for pid in file.read().split():
                with open(f"/proc/{pid}/comm") as name:
                    if name.read() == "systemd\n":
                        return pid
        return None

    def console(self):
        with open(f"{self.top}/console", errors="surrogateescape") as file:
            return file.read()

    def shut_down(self):
        self.container.terminate()
        try:
            self.container.wait(30)
        except subprocess.TimeoutExpired:
            self.container.kill()
            self.container.wait()
        self.container = self.first = None

    def close(self):
        if self.container:
            self.shut_down()
        self._unmount_kernel()
        execute("umount", "--lazy", self.root)
        execute("umount", "--lazy", self.top)

    def changes(self):
        """What differs from the machine below: {path: "new", "gone" or "changed"}, without directories that only lead there."""
        found = {}
        for directory, names, files in os.walk(self.upper):
            for name in (*names, *files):
                path = os.path.join(directory, name)
                inside = path[len(self.upper):]
                below = os.path.join(ROOT, inside.lstrip("/"))
                status = os.lstat(path)
                if not os.path.lexists(below):
                    found[inside] = "new"
                elif status.st_rdev == 0 and (status.st_mode & 0o170000) == 0o020000:
                    found[inside] = "gone"
                elif name in files and not same_file(path, below):
                    found[inside] = "changed"
        return found


def same_file(path, other):
    if os.path.islink(path) or os.path.islink(other):
        return os.path.islink(path) and os.path.islink(other) and os.readlink(path) == os.readlink(other)
    with open(path, "rb") as left, open(other, "rb") as right:
        return left.read() == right.read()
