# SPDX-License-Identifier: GPL-3.0-or-later
"""The Debian package: what is in it, and that it is installed, upgraded, removed and purged, where no systemd runs."""
import glob
import os
import re
import stat
import subprocess

import conftest

INSTALL = ["apt-get", "install", "-y", "-q", "--no-install-recommends"]
CONFFILES = ["/etc/fail2ban/filter.d/rsync-huai.conf", "/etc/fail2ban/jail.d/rsync-huai.conf", "/etc/logrotate.d/rsync-huai"]
# Whatever dpkg and apt keep for themselves; and users, which Debian never takes away.
BOOKKEEPING = re.compile(r"/var/(lib/(dpkg|apt|systemd)|log|cache)(/|$)|/etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$"
                         r"|/root(/|$)|/etc/\.pwd\.lock$")


def install(machine, package, *options):
    return machine.run(*INSTALL, *options, f"/root/{package}")


def status(machine):
    return machine.run("dpkg-query", "-W", "-f=${db:Status-Abbrev}${Version}", "rsync-huai", check=False).text


def left(machine):
    return {path: change for path, change in machine.changes().items() if not BOOKKEEPING.match(path)}


def files(machine, package):
    return [path for path in machine.run("dpkg", "-L", package).text.split() if not os.path.isdir(machine.path(path))]


def test_lintian_has_nothing_to_say():
    changes, = glob.glob(os.path.join(os.path.dirname(conftest.PACKAGE), "*.changes"))
    result = subprocess.run(["lintian", "--allow-root", "--fail-on=error,warning", changes], capture_output=True, text=True,
                            timeout=300)
    assert result.returncode == 0 and not re.search("^[EW]: ", result.stdout, re.M), result.stdout + result.stderr


def test_it_is_installed_without_systemd(machine):
    said = install(machine, "package.deb").text
    assert status(machine).startswith("ii "), said
    assert "rsync-huai" in machine.run("rsync-huai", "--version").text
    for path in files(machine, "rsync-huai"):
        found = os.lstat(machine.path(path))
        expected = 0o755 if "/bin/" in path or ("/hooks/" in path and not path.endswith("/cron")) else 0o644
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (0, 0, expected), path
    for page in ("1/rsync-huai.1", "5/rsync-huaid.conf.5", "5/attr-snapshot.5", "8/rsync-huai-refresh.8"):
        assert os.path.exists(machine.path(f"/usr/share/man/man{page}.gz"))
    # Its user, its place for snapshots, its place for sockets; and nothing is switched on.
    assert re.search(r"^rsync-huai:[^:]*:\d+:\d+:[^:]*:/var/lib/rsync-huai:\S+nologin$", machine.read("/etc/passwd"), re.M)
    for path in ("/var/lib/rsync-huai", "/run/rsync-huai"):
        found = os.stat(machine.path(path))
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (0, 0o755), path
    assert machine.run("systemctl", "is-enabled", "rsync-huai.service", check=False).text.strip() == "disabled"
    assert machine.run("systemctl", "is-enabled", "rsync-huai.socket", check=False).text.strip() == "disabled"
    conffiles = machine.run("dpkg-query", "-W", "-f=${Conffiles}", "rsync-huai").text
    assert sorted(re.findall(r"(/\S+)", conffiles)) == CONFFILES


def test_it_stands_beside_stock_rsync(machine):
    own = machine.run("rsync", "--version").text
    unit = machine.read("/lib/systemd/system/rsync.service")
    install(machine, "package.deb")
    assert machine.run("rsync", "--version").text == own and "huai" not in own
    assert machine.read("/lib/systemd/system/rsync.service") == unit
    assert not set(files(machine, "rsync")) & set(files(machine, "rsync-huai"))
    assert machine.run("dpkg", "-S", "/etc/rsyncd.conf", check=False).returncode == 1
    machine.run("logrotate", "--debug", "/etc/logrotate.conf")


def test_an_upgrade_keeps_what_was_changed(machine):
    install(machine, "package.deb")
    changed = machine.read(CONFFILES[1]) + "# changed\n"
    machine.write(CONFFILES[1], changed)
    install(machine, "newer.deb")
    assert "1:" in status(machine)
    assert machine.read(CONFFILES[1]) == changed and "rotate 13" in machine.read(CONFFILES[2])


def test_an_upgrade_keeps_what_was_changed_on_both_sides(machine):
    install(machine, "package.deb")
    machine.write(CONFFILES[2], "# mine\n")
    install(machine, "newer.deb", "-o", "Dpkg::Options::=--force-confold")
    assert machine.read(CONFFILES[2]) == "# mine\n" and "rotate 13" in machine.read(CONFFILES[2] + ".dpkg-dist")


def test_an_installed_package_goes_without_a_trace(machine):
    """Removed, its configuration and its snapshots stay; purged, nothing does but its user. rsyncd.conf is not its own."""
    machine.write("/etc/rsyncd.conf",
                  "[debian]\npath = /srv/mirrors/debian\nattr snapshot = /var/lib/rsync-huai/debian.snapshot\n")
    os.makedirs(machine.path("/srv/mirrors/debian"))
    machine.write("/srv/mirrors/debian/file", "content\n")
    before = left(machine)
    install(machine, "package.deb")
    machine.run("rsync-huai", "--refresh-attrs", "debian")
    machine.run("systemctl", "enable", "rsync-huai.service", "srv-attrs.mount", "rsync-huai-refresh@debian.timer")
    assert os.path.lexists(machine.path("/etc/systemd/system/timers.target.wants/rsync-huai-refresh@debian.timer"))
    machine.run("apt-get", "remove", "-y", "-q", "rsync-huai")
    assert status(machine).startswith("rc ")
    assert not os.path.exists(machine.path("/usr/bin/rsync-huai"))
    kept = {path for path in left(machine) if not os.path.isdir(machine.path(path)) and path not in before}
    assert {*CONFFILES, "/var/lib/rsync-huai/debian.snapshot"} <= kept
    machine.run("apt-get", "purge", "-y", "-q", "rsync-huai")
    assert not status(machine).startswith(("ii", "rc"))
    assert left(machine) == before
    assert "rsync-huai" in machine.read("/etc/passwd")
