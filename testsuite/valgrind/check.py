#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions of all kinds under Valgrind's memcheck, each side of them: nothing that was never set may be written to a socket or a
file, or be decided on.

Usage: check.py PROGRAM [NAME...]: all sessions, or those whose name has one of these in it. Exits 1 if there is a finding.
What is no defect stands in suppressions.txt, with its reason.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 600
# Leaks of a process that is about to end are none. VALGRIND_FLAGS=--track-origins=yes says where a value was made, in minutes
# per session: the file list reserves much address space, all of which is noted down.
FLAGS = ["--quiet", "--tool=memcheck", "--leak-check=no", "--fair-sched=yes", "--num-callers=25",
         "--error-exitcode=99", "--exit-on-first-error=no", f"--suppressions={HERE}/suppressions.txt", *os.environ.get("VALGRIND_FLAGS", "").split()]


class Site:
    """A directory with trees, a remote shell, a daemon's configuration; and the way to run the program there."""

    def __init__(self, program, root):
        self.program, self.root = program, root
        self.logs = os.path.join(root, "logs")
        os.mkdir(self.logs)
        self.valgrind = ["valgrind", *FLAGS, f"--log-file={self.logs}/%p", program]
        self.failures = []
        self.make_source("src", "first")
        self.make_source("older", "second")
        # The first word behind the host is the name of the program.
        self.write("rsh", "#!/bin/sh\nshift 2\neval \"exec " + " ".join(self.valgrind) + ' $*"\n', 0o755)
        self.write("secrets", "ann:secret\n", 0o600)
        self.write("password", "secret\n", 0o600)
        self.write("names", "plain\nsub/large\n")
        self.port = free_port()
        self.write("conf", f"""
            use chroot = no
            address = 127.0.0.1
            port = {self.port}
            log file = {root}/log
            pid file = {root}/pid
            control socket = {root}/control
            metrics file = {root}/metrics
            transfer logging = yes
            motd file = {root}/names
            [public]
            path = {root}/src
            [secret]
            path = {root}/src
            auth users = ann
            secrets file = {root}/secrets
            [write]
            path = {root}/uploaded
            read only = no
            [fake]
            path = {root}/faked
            read only = no
            fake super = yes
            [snap]
            path = {root}/src
            attr snapshot = {root}/snapshot
            [attrs]
            path = {root}/attrs
            real file prefix = {root}/src
            """)
        for name in ("uploaded", "faked"):
            os.mkdir(os.path.join(root, name), 0o777)
            os.chmod(os.path.join(root, name), 0o777)

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.root, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        os.utime(path, (1600000000, 1600000000))

    def make_source(self, name, word):
        os.makedirs(os.path.join(self.root, name, "sub/deep"))
        os.mkdir(os.path.join(self.root, name, "empty"))
        self.write(f"{name}/plain", f"{word}\n")
        self.write(f"{name}/nothing", "")
        self.write(f"{name}/sub/large", "".join(f"{word if line % 97 == 3 else ''} {line}\n" for line in range(6000)))
        self.write(f"{name}/sub/similar-large", "".join(f"{line}\n" for line in range(6000)))
        self.write(f"{name}/sub/deep/bottom", word)
        os.link(os.path.join(self.root, name, "plain"), os.path.join(self.root, name, "sub/hard"))
        os.symlink("sub/deep", os.path.join(self.root, name, "link"))
        os.mkfifo(os.path.join(self.root, name, "fifo"))
        for attribute, value in (("user.short", b"value"), ("user.long", b"value" * 20)):
            try:
                os.setxattr(os.path.join(self.root, name, "plain"), attribute, value)
            except OSError:
                pass
        subprocess.run(["setfacl", "-m", "u:1:r,g:2:rw", os.path.join(self.root, name, "plain")], check=False,
                       stderr=subprocess.DEVNULL)

    def run(self, name, line, codes=(0,)):
        """One command line; an @ at the beginning of a word stands for the daemon, host: for the remote shell."""
        words = [re.sub("^@", f"rsync://127.0.0.1:{self.port}/", word) for word in line.split()]
        began = time.monotonic()
        environment = {**os.environ, "RSYNC_RSH": os.path.join(self.root, "rsh"), "RSYNC_PASSWORD": "secret"}
        ended = subprocess.run([*self.valgrind, *words], cwd=self.root, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
        good = ended.returncode in codes
        print(f"{'ok' if good else 'FAILED':6} {name:16} {time.monotonic() - began:5.1f} s  {line}", flush=True)
        if not good:
            print(f"       code {ended.returncode}\n" + ended.stdout.decode(errors="replace")[-2000:])
            self.failures.append(name)

    def findings(self):
        """The logs that hold more than Valgrind's own remarks, as on system calls that it does not know."""
        for name in sorted(os.listdir(self.logs), key=int):
            with open(os.path.join(self.logs, name), encoding="utf-8", errors="replace") as file:
                lines = [line for line in file if not line.startswith("--")]
            text = re.sub(r"^==\d+== ?", "", "".join(lines), flags=re.MULTILINE).strip()
            if text:
                yield text


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


# Name, command line, exit codes that are right. They build upon each other.
SESSIONS = [
    ("local", "-aHAX src/ one/"),
    ("local", "-aHAXi --delete --fuzzy --backup --backup-dir=../saved older/ one/"),
    ("local", "-a --only-send-attrs src/ attrs/"),
    ("local", "-a --inplace --no-whole-file --stats -vv src/ one/"),
    ("local", "-aS --preallocate --fake-super src/ faked-here/"),
    ("batch", "-aH --write-batch=batch src/ two/"),
    ("batch", "-aH --read-batch=batch three/"),
    ("pull", "-aHAXz host:{root}/src/ pulled/"),
    ("pull", "-aHAXz --zc=zstd --delete -i --no-inc-recursive host:{root}/older/ pulled/"),
    ("pull", "-az --zc=lz4 -y --partial-dir=.part host:{root}/src/ pulled/"),
    ("pull", "-avvz --protocol=27 host:{root}/older/ pulled/"),
    ("pull", "-rltc --protocol=29 --inplace host:{root}/src/ pulled/"),
    ("pull", "-aR --files-from=names -s host:{root}/src/ named/"),
    ("pull", "-a --write-batch=batch2 --append host:{root}/src/ appended/"),
    ("pull", "-a --only-send-attrs -H host:{root}/src/ attrs2/"),
    ("push", "-aHAXz src/ host:{root}/pushed/"),
    ("push", "-aHAXz --zc=zstd --delete -i older/ host:{root}/pushed/"),
    ("push", "-avvz --protocol=28 src/ host:{root}/pushed/"),
    ("push", "-ac --fuzzy --delay-updates --link-dest={root}/pushed older/ host:{root}/linked/"),
    ("push", "-aX --fake-super -M--fake-super src/ host:{root}/faked-there/"),
    ("snapshot", "-rH --attr-snapshot=snapshot --attr-digests=md5,xxh128 {root}/src/"),
    ("snapshot", "-r --attr-snapshot=other older/"),
    ("snapshot", "-rH --attr-snapshot=snapshot --attr-refresh=dirs --attr-digests=md5,xxh128 {root}/src/"),
    ("snapshot", "--attr-list -vv snapshot"),
    ("snapshot", "--attr-verify snapshot src/", (0, 23)),
    ("snapshot", "--attr-diff other snapshot", (0, 1, 23)),
    ("snapshot", "--attr-to-tree --attr-snapshot=snapshot attrs3"),
    ("snapshot", "--attr-from-tree --attr-snapshot=third attrs3 src/"),
    ("snapshot", "-a --attr-snapshot=local-snapshot --delete src/ one/"),
    ("daemon", "@"),
    ("daemon", "-aHAXz @public/ from-daemon/"),
    ("daemon", "-aHc @snap/ from-snapshot/"),
    ("daemon", "-acH --cc=md5 @snap/sub from-snapshot/"),
    ("daemon", "-a @attrs/ from-attrs/", (0, 23)),
    ("daemon", "-a rsync://ann@127.0.0.1:{port}/secret/ from-secret/"),
    ("daemon", "-aHz --delete src/ @write/", (0, 23)),
    ("daemon", "-aX older/ @fake/", (0, 23)),
    ("daemon", "-a --attr-snapshot=mirror-snapshot @public/ mirror/"),
    ("daemon", "--status --config=conf"),
    ("daemon", "--config-check --config=conf", (0, 23)),
    ("daemon", "--refresh-attrs --config=conf"),
    ("daemon", "-a @nothing/ x/", (5,)),
]


def start_daemon(site):
    daemon = subprocess.Popen([*site.valgrind, "--daemon", "--no-detach", "--no-sandbox", "--config=conf"], cwd=site.root,
                              stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + SECONDS
    while not os.path.exists(os.path.join(site.root, "pid")) and daemon.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    return daemon


def run_all(site, wanted):
    daemon = None
    try:
        for name, line, *codes in SESSIONS:
            if wanted and not any(word in name for word in wanted):
                continue
            if name == "daemon" and not daemon:
                daemon = start_daemon(site)
            site.run(name, line.format(root=site.root, port=site.port), *codes)
    finally:
        if daemon:
            daemon.terminate()
            daemon.wait(SECONDS)


def main(program, *wanted):
    if not shutil.which("valgrind"):
        sys.exit("valgrind is not installed")
    with tempfile.TemporaryDirectory(prefix="rsync-huai-valgrind.") as root:
        os.chmod(root, 0o755)
        site = Site(os.path.abspath(program), root)
        run_all(site, wanted)
        found = list(site.findings())
        for text in found:
            print("== finding\n" + text)
        processes = len(os.listdir(site.logs))
    print(f"{processes} processes, {len(found)} with findings, {len(site.failures)} failed sessions")
    return 1 if found or site.failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
