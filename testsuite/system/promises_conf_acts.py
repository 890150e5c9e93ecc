# SPDX-License-Identifier: GPL-3.0-or-later
"""For the rows of promises_conf_rows.py: the sites, and what clients do that is more than to be called with words."""
import glob
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import harness
from promises import TIME, put, settle
from promises_conf import GREETING, admitted, make_site


# --- sites for more than one row ---

def with_(*changes):
    def make(top):
        make_site(top)
        for change in changes:
            change(top)
        for name in ("m", "s"):
            settle(f"{top}/{name}")
    return make


def write(name, content, mtime=TIME, mode=0o644):
    return lambda top: put(f"{top}/{name}", content.replace("{top}", top), mtime, mode)


def directory(name, mode=0o755):
    def make(top):
        os.makedirs(f"{top}/{name}")
        os.chmod(f"{top}/{name}", mode)
    return make


def symlink(name, target):
    def make(top):
        os.symlink(target.replace("{top}", top), f"{top}/{name}")
        os.utime(f"{top}/{name}", (TIME, TIME), follow_symlinks=False)
    return make


def owned(name, uid, gid):
    return lambda top: os.lchown(f"{top}/{name}", uid, gid)


def mode_of(name, bits):
    return lambda top: os.chmod(f"{top}/{name}", bits)


def read_long_ago(name):
    return lambda top: os.utime(f"{top}/{name}", (1_000_000_000, TIME))


# --- what clients do, and what is seen of a session from outside ---

def session(what):
    """What a function of a server's process id returns, while it waits for the arguments of its client."""
    def act(scene):
        with admitted(scene, "m"):
            pid = scene.daemon.process.pid
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                found = what(int(file.read().split()[-1]))
        return harness.Result(["session"], 0, f"{found}\n".encode(), b"")
    return act


def root_of(pid):
    return os.path.basename(os.readlink(f"/proc/{pid}/root")) or "/"


def ids_of(pid):
    with open(f"/proc/{pid}/status") as file:
        found = dict(line.rstrip("\n").split(":\t") for line in file if line.startswith(("Uid", "Gid")))
    return " ".join(f"{name}={value.split()[1]}" for name, value in found.items())


def over_shell(words, user="", environment=None):
    """A client that has its daemon started by a remote shell, perhaps as another user."""
    def act(scene):
        with open(f"{scene.top}/shell.conf", "w") as file:
            file.write(f"log file = {scene.top}/shell.log\n{scene.config}")
        if user:
            os.chmod(scene.top, 0o777)
        prefix = f"setpriv --reuid={user} --regid={user} --clear-groups " if user else ""
        shell = harness.make_remote_shell(scene.top)
        return harness.run(harness.STOCK, "-e", shell, f"--rsync-path={prefix}{scene.program} --config={scene.top}/shell.conf",
                           *words.replace("{top}", scene.top).split(), cwd=scene.top, environment=environment)
    return act


def over_inetd(module):
    """A daemon whose descriptor 0 is the connection."""
    def act(scene):
        ours, theirs = harness.tcp_pair()
        with open(f"{scene.top}/inetd.conf", "w") as file:
            file.write(scene.config)
        process = subprocess.Popen([scene.program, "--daemon", f"--config={scene.top}/inetd.conf"], stdin=theirs, stdout=theirs,
                                   stderr=subprocess.DEVNULL, env=harness.ENVIRONMENT)
        theirs.close()
        answer = b""
        with ours:
            ours.settimeout(30)
            ours.sendall(f"{GREETING}\n{module}\n".encode())
            while not answer.endswith(b"@RSYNCD: OK\n") and b"@ERROR" not in answer:
                piece = ours.recv(4096)
                if not piece:
                    break
                answer += piece
        process.wait(30)
        return harness.Result(["inetd"], 0, answer, b"")
    return act


def started(*words, at="127.0.0.1"):
    """A daemon whose configuration says where to listen: what it lists, once it does or has ended."""
    def act(scene):
        port = harness.free_port()
        with open(f"{scene.top}/started.conf", "w") as file:
            file.write(scene.config.replace("{port}", str(port)) + "\n")
        process = subprocess.Popen([scene.program, "--daemon", "--no-detach", f"--config={scene.top}/started.conf", *words],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env=harness.ENVIRONMENT)
        try:
            deadline = time.monotonic() + 20
            while process.poll() is None and time.monotonic() < deadline:
                try:
                    with socket.create_connection((at, port), timeout=20):
                        break
                except OSError:
                    time.sleep(0.01)
            return harness.run(harness.STOCK, f"rsync://127.0.0.1:{port}/")
        finally:
            process.terminate()
            process.communicate(timeout=30)
    return act


def buffer_of(pid):
    """Is the send buffer of its connection what the rows ask for? The kernel doubles it."""
    for name in os.listdir(f"/proc/{pid}/fd"):
        if os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
            break
    found = subprocess.run(["ss", "-tmnpH", "state", "established"], capture_output=True, text=True).stdout
    return "tb140000" in next(after for line, after in zip(found.split("\n"), found.split("\n")[1:]) if f"pid={pid}," in line)


def backlog(scene):
    found = harness.run("ss", "-ltnH", f"sport = :{scene.port}")
    return harness.Result(["ss"], 0, found.stdout.split()[2] + b"\n", b"")


def reading(name):
    """An extended attribute of a file, or what of it is kept in one."""
    def act(scene):
        try:
            value = os.getxattr(f"{scene.top}/{name}", "user.rsync.%stat")
        except OSError as error:
            value = error.strerror.encode()
        return harness.Result(["getxattr"], 0, value + b"\n", b"")
    return act


def is_closed(seconds):
    """A client that says nothing once it has been admitted is cut off before so many seconds have passed."""
    def act(scene):
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", scene.port), timeout=seconds) as client:
            client.sendall(f"{GREETING}\nm\n".encode())
            try:
                while client.recv(4096):
                    pass
            except ConnectionResetError:
                pass
        assert time.monotonic() - began < seconds
        return harness.Result(["wait"], 0, b"closed", b"")
    return act


def cut_off(words):
    """A client that is killed once its file has begun to come."""
    def act(scene):
        *options, place, target = words.split()
        words_now = [harness.STOCK, *options, f"rsync://127.0.0.1:{scene.port}/{place[1:]}", target]
        process = subprocess.Popen(words_now, cwd=scene.top, env=harness.ENVIRONMENT, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 30
        while not glob.glob(f"{scene.top}/{target}/.big*"):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(f"{scene.top}/{target}")
        return harness.Result(["killed"], 0, b"", b"")
    return act


def spy(content):
    """A pull through somebody who sees all bytes: is the content among them?"""
    def act(scene):
        seen = []
        with socket.create_server(("127.0.0.1", 0)) as listening:
            def pass_on(source, sink):
                try:
                    while piece := source.recv(65536):
                        seen.append(piece)
                        sink.sendall(piece)
                    sink.shutdown(socket.SHUT_WR)
                except OSError:
                    pass

            def serve():
                client, _ = listening.accept()
                with client, socket.create_connection(("127.0.0.1", scene.port), timeout=30) as daemon:
                    threads = [threading.Thread(target=pass_on, args=ends) for ends in ((client, daemon), (daemon, client))]
                    for thread in threads:
                        thread.start()
                    for thread in threads:
                        thread.join()

            server = threading.Thread(target=serve)
            server.start()
            result = harness.run(harness.STOCK, "-r", f"rsync://127.0.0.1:{listening.getsockname()[1]}/m/", "t/", cwd=scene.top)
            server.join()
        return harness.Result(["spy"], result.code, b"seen" if content in b"".join(seen) else b"unseen", b"")
    return act


def pid_in(name):
    """Does a file hold the id of the daemon?"""
    def act(scene):
        with open(f"{scene.top}/{name}") as file:
            return harness.Result(["pid"], int(file.read() != f"{scene.daemon.process.pid}\n"), b"", b"")
    return act


def same_atime(name):
    """A read has not moved its access time; "probe" shows whether this file system has such times."""
    return lambda seen: seen.info[name].st_atime == 1_000_000_000


def moved_atime(name):
    return lambda seen: seen.info[name].st_atime != 1_000_000_000 or seen.info["probe"].st_atime == 1_000_000_000


CONVERTER = """#!/bin/sh
echo "id $(id -u) in $PWD
$RSYNC_MODULE_NAME $RSYNC_MODULE_PATH $RSYNC_HOST_ADDR $RSYNC_REQUEST $RSYNC_ARG0" >TOP/asked
while read -r kind value; do
    case $kind:$value in
        uid:77) echo hermit;; gid:78) echo cave;; uid:0|gid:0) echo root;; usr:daemon) echo 1;; grp:disk) echo 77;; *) echo;;
    esac
done
"""


def converter(top):
    put(f"{top}/converter", CONVERTER.replace("TOP", top), mode=0o755)


def plain_message(message):
    """As a line, without time, process and sizes."""
    message = re.sub(rb"\w{3} [ \d]\d \d\d:\d\d:\d\d ", b"", message)
    return re.sub(rb"\[\d+\]", b"[N]", re.sub(rb"sent \d+ bytes  received \d+", b"sent N bytes  received N", message)) + b"\n"


def syslogged(words):
    """What a client does, and which messages arrive at the socket of syslog in the daemon's root."""
    def act(scene):
        os.makedirs(f"{scene.top}/dev")
        here = os.open(".", os.O_RDONLY)
        os.chdir(f"{scene.top}/dev")  # a socket's path is short
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.bind("log")
            os.fchdir(here)
            os.close(here)
            result = scene.call(words)
            scene.wait()
            end.setblocking(False)
            messages = []
            try:
                while True:
                    messages.append(end.recv(4096).rstrip(b"\n\0"))
            except BlockingIOError:
                pass
        # These two lines stock writes before it has read the file again.
        messages = [plain_message(message) for message in messages if not re.search(rb"connect from|allowed access", message)]
        return harness.Result(result.words, result.code, result.stdout + b"".join(messages), result.stderr)
    return act


def probe(top):
    put(f"{top}/probe", "x")
    os.utime(f"{top}/probe", (1_000_000_000, TIME))
    with open(f"{top}/probe") as file:
        file.read()


def v1(address):
    """A proxy's header for a client of this address."""
    return f"PROXY TCP{6 if ':' in address else 4} {address} {'::1' if ':' in address else '127.0.0.1'} 12345 873\r\n".encode()


def received(seen, number):
    return int(re.search(rb"Total bytes received: ([\d,]+)", seen.results[number].stdout)[1].replace(b",", b""))


PROXY = "reverse lookup = no\nproxy protocol = yes\nproxy protocol hosts = 127.0.0.1"
V1 = b"PROXY TCP4 192.0.2.9 127.0.0.1 12345 873\r\n"
V1_IPV6 = b"PROXY TCP6 2001:db8::9 ::1 12345 873\r\n"
V2 = (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + socket.inet_aton("192.0.2.9") + socket.inet_aton("127.0.0.1")
      + struct.pack(">HH", 12345, 873))
USERS = "[n]\npath = {top}/m\nread only = no\nauth users = joe\nsecrets file = {top}/secrets"

EXEC = "early exec, pre-xfer exec, post-xfer exec"
HOOK = """#!/bin/sh
{
    env | grep '^RSYNC_' | grep -v '^RSYNC_PID=' | sort
    echo "stdin: $(cat)"
    [ "$(cat TOP/pid 2>/dev/null || echo "$RSYNC_PID")" = "$RSYNC_PID" ] && echo same pid
    echo "$RSYNC_PID" >TOP/pid
} >"TOP/$1"
echo "output of $1"
exit ${2:-0}
"""


def make_hook(top):
    make_site(top)
    put(f"{top}/hook", HOOK.replace("TOP", top), mode=0o755)
