# SPDX-License-Identifier: GPL-3.0-or-later
"""The installed units under a real systemd: everything that the daemon offers, inside of what its unit takes away."""
import os
import re
import subprocess
import sys
import time

import pytest

from machine import wait_for

SLOW = 24 << 20
UNITS = "/lib/systemd/system"
CONFIG = """
uid = nobody
gid = nogroup
log file = /var/log/rsyncd.log
pid file = /run/rsyncd.pid
lock file = /run/rsyncd.lock
metrics file = /run/rsync-huai/rsync-huai.prom
control socket = /run/rsync-huai/control
max connections = 20
use chroot = yes

[plain]
    path = /srv/mirrors/plain
    comment = an ordinary module

[outside]
    path = /srv/mirrors/plain
    use chroot = no

[tree]
    path = /srv/attrs/tree
    real file prefix = /srv/mirrors/plain

[snapshot]
    path = /srv/mirrors/plain
    attr snapshot = /var/lib/rsync-huai/%RSYNC_MODULE_NAME%.snapshot
    attr snapshot fallback = refuse
    numeric ids = no

[own]
    path = /srv/mirrors/plain
    uid = rsync-huai
    gid = rsync-huai

[all]
    path = /srv/mirrors/private
    uid = root
    gid = root

[hooked]
    path = /srv/mirrors/plain
    early exec = /usr/local/bin/hook early
    pre-xfer exec = /usr/local/bin/hook pre
    post-xfer exec = /usr/local/bin/hook post

[converted]
    path = /srv/mirrors/plain
    name converter = /usr/local/bin/converter
    numeric ids = no

[secret]
    path = /srv/mirrors/plain
    auth users = user
    secrets file = /etc/rsyncd.secrets

[incoming]
    path = /srv/incoming
    read only = no
    uid = rsync-huai
    gid = rsync-huai
"""
HOOK = """#!/bin/sh
echo "$1 $RSYNC_MODULE_NAME ${RSYNC_EXIT_STATUS-none} $(id -u)" >>/var/log/rsync-huai/hooks
"""
CONVERTER = """#!/bin/sh
while read -r what value; do
    case $what in
    uid) echo "user-$value" ;;
    gid) echo "group-$value" ;;
    *) echo ;;
    esac
done
"""
DROP_IN = """[Service]
ReadWritePaths=/srv/incoming
CapabilityBoundingSet=CAP_CHOWN CAP_FOWNER CAP_FSETID CAP_DAC_OVERRIDE
"""
# Connects again and again, and says how often it was refused.
KNOCK = """
import socket, sys, time
end, refused, served = time.monotonic() + float(sys.argv[1]), 0, 0
while time.monotonic() < end:
    try:
        with socket.create_connection(("127.0.0.1", 873), timeout=20) as client:
            greeting = client.recv(8)
            served += greeting == b"@RSYNCD:"
            refused += greeting != b"@RSYNCD:"
    except OSError:
        refused += 1
    time.sleep(0.02)
print(refused, served)
"""


@pytest.fixture(scope="module")
def service(booted):
    """The machine with the package installed, and its daemon at work."""
    booted.run("dpkg", "-i", "/root/package.deb")
    booted.run("mkdir", "-p", "/srv/mirrors")
    booted.run("mount", "-t", "tmpfs", "tmpfs", "/srv/mirrors")  # one file system for files and directories, unlike an overlay
    booted.write("/srv/mirrors/plain/pool/file", "content\n")
    booted.write("/srv/mirrors/plain/README", "a mirror\n")
    os.symlink("pool/file", booted.path("/srv/mirrors/plain/current"))
    os.link(booted.path("/srv/mirrors/plain/README"), booted.path("/srv/mirrors/plain/pool/README"))
    booted.write("/srv/mirrors/private/hidden", "for root's eyes\n", 0o600)
    os.chmod(booted.path("/srv/mirrors/private"), 0o700)
    os.chown(booted.path("/srv/mirrors/private/hidden"), 12345, 12345)
    booted.write("/usr/local/bin/hook", HOOK, 0o755)
    booted.write("/usr/local/bin/converter", CONVERTER, 0o755)
    booted.write("/etc/rsyncd.secrets", "user:word\n", 0o600)
    booted.write("/etc/rsyncd.conf", CONFIG)
    booted.run("install", "-d", "-o", "rsync-huai", "-g", "rsync-huai", "/srv/incoming")
    booted.write("/etc/systemd/system/rsync-huai.service.d/writable.conf", DROP_IN)
    with open(booted.path("/srv/mirrors/plain/large"), "wb") as file:
        file.write(os.urandom(SLOW))
    booted.run("systemctl", "daemon-reload")
    booted.run("systemctl", "enable", "--now", "srv-attrs.mount", "rsync-huai.socket", "rsync-huai.service")
    os.mkdir(booted.path("/root/pulled"))
    return booted


def pull(machine, module, source, *options):
    """Pull a module with the stock client; then nothing is left to do between its source and the copy."""
    target = f"/root/pulled/{module}/"
    result = machine.run("rsync", "-aH", *options, f"rsync://localhost/{module}/", target, check=False)
    assert result.returncode == 0, result.text + machine.read("/var/log/rsyncd.log")
    assert machine.run("rsync", "-anHic", "--delete", "--no-owner", "--no-group", source, target).text == ""


def main_pid(machine):
    pid = int(machine.run("systemctl", "show", "--value", "--property=MainPID", "rsync-huai.service").text)
    assert pid > 0, machine.run("systemctl", "status", "--no-pager", "rsync-huai.service", check=False).text
    return pid


def slow_client(machine, name, rate=6000):
    """A session that takes some seconds."""
    target = f"/root/pulled/{name}"
    client = machine.start("rsync", "-a", "--inplace", f"--bwlimit={rate}", "rsync://localhost/plain/large", target)
    wait_for(lambda: os.path.exists(machine.path(target)))
    return client


def finish(machine, client, name):
    said = client.communicate(timeout=60)[0]
    assert client.returncode == 0, said
    machine.run("cmp", "/srv/mirrors/plain/large", f"/root/pulled/{name}")


def knock(machine, seconds):
    return subprocess.Popen(["nsenter", f"--target={machine.first}", "--net", sys.executable, "-c", KNOCK, str(seconds)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def test_units_are_well_formed_where_they_are_installed(service):
    units = [name for name in os.listdir(service.path(UNITS)) if name.startswith(("rsync-huai", "srv-attrs"))]
    assert len(units) == 5
    said = service.run("systemd-analyze", "verify", "--man=no", *(f"{UNITS}/{name.replace('@.', '@plain.')}" for name in units))
    assert "huai" not in said.text and "attrs" not in said.text, said.text


def test_the_installed_service_is_hardened(service):
    """The unit as it is shipped: under another name, for which there is no drop-in."""
    service.run("cp", f"{UNITS}/rsync-huai.service", "/root/shipped.service")
    said = service.run("systemd-analyze", "security", "--offline=true", "--threshold=30", "/root/shipped.service").text
    assert float(re.search(r"Overall exposure level for [^:]+: ([0-9.]+)", said).group(1)) <= 3.0


def test_it_is_ready_and_leaves_its_marks(service):
    shown = service.run("systemctl", "show", "rsync-huai.service", "--property=ActiveState,StatusText,NotifyAccess,Result").text
    assert "ActiveState=active" in shown and "StatusText=listening" in shown and "Result=success" in shown
    assert int(service.run("cat", "/run/rsyncd.pid").text) == main_pid(service)
    marks = [service.path(f"/run/rsync-huai/{name}") for name in ("rsync-huai.prom", "control")]
    wait_for(lambda: all(map(os.path.exists, marks)))


@pytest.mark.parametrize("module, source", [
    ("plain", "plain"), ("outside", "plain"), ("own", "plain"), ("all", "private"), ("converted", "plain")])
def test_a_module_is_served(service, module, source):
    pull(service, module, f"/srv/mirrors/{source}/")


def test_a_name_converter_works(service):
    words = ["rsync://localhost/converted/README", "/root/pulled/named"]
    service.run("rsync", "-a", *words)
    listed = service.run("rsync", "-n", "-ai", "--usermap=user-0:12,*:13", *words)
    assert listed.text.startswith(".f....o"), listed.text


def test_refresh_units_write_what_is_served(service):
    """A tree on the mounted tmpfs and a snapshot, each by its unit; both are listed without a look at the real tree."""
    assert "tmpfs" in service.run("findmnt", "--noheadings", "/srv/attrs").text
    service.run("mkdir", "-p", "/srv/attrs/tree")
    service.run("rsync-huai", "-aH", "--only-send-attrs", "/srv/mirrors/plain/", "/srv/attrs/tree/")
    for module in ("tree", "snapshot"):
        service.run("systemctl", "start", f"rsync-huai-refresh@{module}.service")
        pull(service, module, "/srv/mirrors/plain/")
    service.write("/srv/mirrors/plain/new", "new\n")
    for module in ("tree", "snapshot"):
        assert " new" not in service.run("rsync", f"rsync://localhost/{module}/").text
        service.run("systemctl", "start", f"rsync-huai-refresh@{module}.service")
        assert " new" in service.run("rsync", f"rsync://localhost/{module}/").text
        pull(service, module, "/srv/mirrors/plain/")
    assert "2 changed" in service.run("journalctl", "--no-pager", "--unit=rsync-huai-refresh@snapshot.service").text


def test_a_refresh_that_fails_is_a_failed_unit(service):
    assert service.run("systemctl", "start", "rsync-huai-refresh@nowhere.service", check=False).returncode != 0
    assert service.run("systemctl", "is-failed", "rsync-huai-refresh@nowhere.service").text.strip() == "failed"
    service.run("systemctl", "reset-failed", "rsync-huai-refresh@nowhere.service")


def test_a_timer_runs_the_refresh(service):
    service.write("/etc/systemd/system/rsync-huai-refresh@.timer.d/soon.conf",
                  "[Timer]\nOnBootSec=\nOnActiveSec=0\nRandomizedDelaySec=0\nAccuracySec=10ms\n")
    service.run("systemctl", "daemon-reload")
    service.write("/srv/mirrors/plain/by-timer", "x\n")
    service.run("systemctl", "enable", "--now", "rsync-huai-refresh@snapshot.timer")
    wait_for(lambda: "by-timer" in service.run("rsync", "rsync://localhost/snapshot/").text)
    service.run("systemctl", "disable", "--now", "rsync-huai-refresh@snapshot.timer")


def test_commands_of_a_module_run(service):
    pull(service, "hooked", "/srv/mirrors/plain/")
    lines = ["early hooked none 0", "pre hooked none 0", "post hooked 0 0"]
    wait_for(lambda: service.read("/var/log/rsync-huai/hooks").splitlines() == lines)


def test_passwords_are_asked_for(service):
    service.write("/etc/word", "word\n", 0o600)
    assert "README" in service.run("rsync", "--password-file=/etc/word", "rsync://user@localhost/secret/").text
    service.write("/etc/word", "other\n", 0o600)
    bad = service.run("rsync", "--password-file=/etc/word", "rsync://user@localhost/secret/", check=False)
    assert bad.returncode == 5 and "auth failed on module secret" in bad.text


def test_a_writable_module_needs_its_drop_in_only(service):
    service.run("rsync", "-a", "/srv/mirrors/plain/pool", "rsync://localhost/incoming/")
    assert service.read("/srv/incoming/pool/file") == "content\n"
    owner = service.run("stat", "--format=%U", "/srv/incoming/pool/file").text.strip()
    assert owner == "rsync-huai"


def test_a_session_is_confined(service):
    """Its user's, without a capability, behind the filter of the unit and its own; the log misses nothing."""
    client = slow_client(service, "confined")
    sessions = service.run("pgrep", "--parent", str(main_pid(service))).text.split()
    status = dict(re.findall(r"^(\w+):\t(.*)$", service.run("cat", f"/proc/{sessions[0]}/status").text, re.M))
    assert len(sessions) == 1 and status["Uid"].split() == ["65534"] * 4
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" and int(status["Seccomp_filters"]) >= 2
    assert "sandbox" not in service.read("/var/log/rsyncd.log")
    shown = service.run("rsync-huai", "--status").text
    assert re.search(r"^\d+ sending since .*: \S+ module plain, ", shown, re.M), shown
    finish(service, client, "confined")
    counted = r'connections_total{module="plain",outcome="ok"} [1-9]'
    wait_for(lambda: re.search(counted, service.read("/run/rsync-huai/rsync-huai.prom")))


def test_a_reload_keeps_the_sessions_and_takes_the_new_settings(service):
    pid, client = main_pid(service), slow_client(service, "reloaded")
    service.write("/etc/rsyncd.conf", "max connections per host = 1\n" + CONFIG)
    service.run("systemctl", "reload", "rsync-huai.service")
    wait_for(lambda: "max connections" in service.run("rsync", "rsync://localhost/plain/", check=False).text)
    service.write("/etc/rsyncd.conf", CONFIG)
    service.run("systemctl", "reload", "rsync-huai.service")
    wait_for(lambda: service.run("rsync", "rsync://localhost/plain/", check=False).returncode == 0)
    assert main_pid(service) == pid and client.poll() is None
    finish(service, client, "reloaded")


@pytest.mark.parametrize("command", [["systemctl", "restart", "rsync-huai.service"], ["dpkg", "-i", "/root/newer.deb"]],
                         ids=["restart", "upgrade"])
def test_no_client_notices(service, command):
    """Sessions are finished, nobody is refused, the attr trees stay where they are."""
    pid, client, knocking = main_pid(service), slow_client(service, "restarted", 2000), knock(service, 3)
    time.sleep(0.2)
    service.run(*command)
    assert main_pid(service) != pid and client.poll() is None
    refused, served = map(int, knocking.communicate(timeout=60)[0].split())
    assert refused == 0 and served > 5
    finish(service, client, "restarted")
    service.run("test", "-e", "/srv/attrs/tree/README")
    assert "README" in service.run("rsync", "rsync://localhost/tree/").text
    os.unlink(service.path("/root/pulled/restarted"))


def test_a_stopped_service_is_started_by_the_next_client(service):
    service.run("systemctl", "stop", "rsync-huai.service")
    assert "README" in service.run("rsync", "rsync://localhost/plain/").text
    assert service.run("systemctl", "is-active", "rsync-huai.service").text.strip() == "active"


def test_a_crash_is_mended(service):
    pid = main_pid(service)
    service.run("kill", "-SEGV", str(pid))
    wait_for(lambda: f"MainPID={pid}\n" not in (shown := service.run("systemctl", "show", "rsync-huai.service").text)
             and "ActiveState=active" in shown)
    assert main_pid(service) != pid
    assert "README" in service.run("rsync", "rsync://localhost/plain/").text


def test_a_wrong_configuration_has_only_to_be_mended(service):
    """Clients wait meanwhile, for longer than systemd would try without a setting."""
    service.write("/etc/rsyncd.conf", "[header\n" + CONFIG)
    assert service.run("systemctl", "restart", "rsync-huai.service", check=False).returncode != 0
    client = service.start("rsync", "rsync://localhost/plain/")

    def restarts():
        return int(service.run("systemctl", "show", "--value", "--property=NRestarts", "rsync-huai.service").text)

    wait_for(lambda: restarts() > 5)
    assert client.poll() is None
    service.write("/etc/rsyncd.conf", CONFIG)
    assert b"README" in client.communicate(timeout=60)[0] and client.returncode == 0


def test_logs_are_turned_under_the_daemon(service):
    service.run("logrotate", "--force", "/etc/logrotate.d/rsync-huai")
    service.run("rsync", "rsync://localhost/plain/")
    assert "connect from localhost" in service.read("/var/log/rsyncd.log")
    assert "connect from localhost" in service.read("/var/log/rsyncd.log.1")


def test_removing_the_package_stops_everything(service):
    service.run("systemctl", "enable", "--now", "rsync-huai-refresh@snapshot.timer")
    service.run("dpkg", "--remove", "rsync-huai")
    for unit in ("rsync-huai.service", "rsync-huai.socket", "srv-attrs.mount", "rsync-huai-refresh@snapshot.timer"):
        assert service.run("systemctl", "is-active", unit, check=False).text.strip() in ("inactive", "failed"), unit
    refused = service.run("rsync", "rsync://localhost/", check=False)
    assert refused.returncode == 10 and "refused" in refused.text
    service.run("dpkg", "--purge", "rsync-huai")
    listed = service.run("systemctl", "list-units", "--all", "--no-legend", "*huai*", "srv-attrs*").text
    assert "running" not in listed and "mounted" not in listed
    assert os.path.exists(service.path("/var/lib")) and not os.path.lexists(service.path("/var/lib/rsync-huai"))
