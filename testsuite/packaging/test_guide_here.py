# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's guide on a machine that serves with Debian's rsyncd until then: its commands, its units and drop-ins."""
import os
import re

from machine import wait_for

GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", "operators-guide.md")
DROP_IN = re.compile(r"`systemctl edit ([\w.@-]+)`")
UPSTREAM = "use chroot = no\npid file = /run/upstream.pid\n[debian]\npath = /srv/upstream\n"


def blocks():
    """The fenced blocks of the guide: (what stands before, language, text)."""
    with open(GUIDE) as file:
        pieces = re.split(r"^```(\w*)\n(.*?)^```$", file.read(), flags=re.M | re.S)
    return list(zip(pieces[0::3], pieces[1::3], pieces[2::3]))


def prepare(machine):
    """The mirror as the guide finds it, served by stock rsync."""
    machine.run("mkdir", "-p", "/srv/mirrors")
    machine.run("mount", "-t", "tmpfs", "tmpfs", "/srv/mirrors")
    for name in ("mirrors/debian", "mirrors/fedora", "upstream"):
        machine.write(f"/srv/{name}/pool/file", f"content of {name}\n")
        machine.write(f"/srv/{name}/README", "a mirror\n")
    machine.write("/etc/rsyncd.conf", next(text for _, language, text in blocks() if language == "ini"))
    machine.write("/etc/upstream.conf", UPSTREAM)
    machine.run("rsync", "--daemon", "--config=/etc/upstream.conf", "--port=8730")
    machine.run("cp", "/root/package.deb", "/root/rsync-huai_0.1.0-1_amd64.deb")
    machine.run("systemctl", "enable", "--now", "rsync.service")
    wait_for(lambda: "Debian packages" in machine.run("rsync", "rsync://localhost/", check=False).text)


def settle(machine, before, text):
    """A block that is no command becomes a drop-in where the text says so, or goes to the head of the configuration."""
    unit = DROP_IN.findall(before.rsplit("\n\n", 2)[-2] if before.endswith("\n\n") else before)
    if unit and text.startswith("["):
        name = unit[-1] if "." in unit[-1] else f"{unit[-1]}.service"
        machine.write(f"/etc/systemd/system/{name}.d/override.conf", text)
        machine.run("systemctl", "daemon-reload")
    elif re.match(r"(metrics file|control socket) = ", text):
        machine.write("/etc/rsyncd.conf", text + machine.read("/etc/rsyncd.conf"))
        machine.run("systemctl", "restart", "rsync-huai.service")
    return text.startswith("[")


def command(text):
    text = re.sub(r"^# ", "", text, flags=re.M)
    return text.replace("rsync://upstream.example.org/", "rsync://localhost:8730/").replace("apt install", "apt-get install -y")


def follow(machine):
    """Returns how many of the guide's commands were run and how many drop-ins written."""
    commands = drop_ins = 0
    configured = False
    for before, language, text in blocks():
        if language == "ini":
            machine.write("/etc/rsyncd.conf", machine.read("/etc/rsyncd.conf") + text if configured else text)
            configured = True
        elif language in ("sh", "console") and "make install" not in text:
            machine.run("sh", "-e", "-c", "cd /root\n" + command(text))
            commands += 1
        elif language == "":
            drop_ins += settle(machine, before, text)
    return commands, drop_ins


def listed(machine, module):
    result = machine.run("rsync", "-r", f"rsync://localhost/{module}/", check=False)
    assert result.returncode == 0, result.text + machine.read("/var/log/rsyncd.log")
    return result.text


def test_the_guide_can_be_followed_with_systemd(booted):
    prepare(booted)
    commands, drop_ins = follow(booted)
    assert commands >= 20 and drop_ins == 2
    assert booted.run("systemctl", "is-active", "rsync.service", check=False).text.strip() != "active"
    booted.run("rsync-huai", "--daemon", "--config-check")
    assert "total: connections 0" in booted.run("rsync-huai", "--status").text
    assert "rsync_huai_snapshot_usable" in booted.run("cat", "/run/rsync-huai/rsync-huai.prom").text
    for module in ("debian", "fedora"):
        before = listed(booted, module)
        booted.write(f"/srv/mirrors/{module}/later", "not refreshed\n")
        assert listed(booted, module) == before and "README" in before


def test_after_a_reboot_the_attr_tree_is_there_before_the_daemon(booted):
    """The tmpfs is empty then: the first client waits in the socket until the tree is there, however long that takes."""
    booted.run("cp", "-a", "/srv/mirrors", "/srv/kept")
    booted.shut_down()
    booted.boot()
    assert booted.run("ls", "/srv/attrs").text == ""
    assert booted.run("systemctl", "is-active", "rsync-huai.service", check=False).text.strip() == "inactive"
    client = booted.start("rsync", "-r", "rsync://localhost/fedora/")
    wait_for(lambda: "was not refreshed" in booted.run(
        "journalctl", "--no-pager", "--boot", "--unit=rsync-huai-refresh@fedora.service").text)
    assert client.poll() is None
    booted.run("sh", "-c", "cp -a /srv/kept/. /srv/mirrors/")
    assert b"later" in client.communicate(timeout=60)[0] and client.returncode == 0
    assert os.path.getsize(booted.path("/srv/attrs/fedora/later")) == 8
    # The mirror has come to another disk meanwhile, which a snapshot notices.
    assert "another directory" in booted.run("rsync-huai", "--daemon", "--config-check", check=False).text
    booted.run("rsync-huai", "--refresh-attrs", "debian")
    assert "later" in listed(booted, "debian")


def test_the_way_back(booted):
    """Without the parameters that stock rsync does not know, Debian's unit serves the same file again."""
    booted.write("/etc/rsyncd.conf", next(text for _, language, text in blocks() if language == "ini"))
    with open(GUIDE) as file:
        commands = re.search(r"To go back: `([^`]+)`,\s+`([^`]+)`", file.read()).groups()
    for words in commands:
        booted.run("sh", "-c", words)
    wait_for(lambda: booted.run("rsync", "rsync://localhost/", check=False).returncode == 0)
    booted.run("dpkg", "--purge", "rsync-huai")
    assert "later" in listed(booted, "fedora") and "later" in listed(booted, "debian")
