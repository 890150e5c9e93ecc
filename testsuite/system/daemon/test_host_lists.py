# SPDX-License-Identifier: GPL-3.0-or-later
"""hosts allow and hosts deny: forms of tokens x clients x lookups x lists, beside stock. What cannot be decided lets nobody in."""
import json
import os
import socket
import subprocess

import pytest

import harness
import touches
import trees

IDENTITY = "uid = root\ngid = root\n"
CLIENTS = {"host4": "TCP4 192.0.2.7 192.0.2.1", "host6": "TCP6 2001:db8::7 2001:db8::1"}
LOOKUPS = ("works", "fails", "off")

# m: it matches, n: it does not, u: nobody can tell; a letter for each state of lookups.
GRID = {
    "192.0.2.7": ("mmm", "nnn"),
    "192.0.2.0/24": ("mmm", "nnn"),
    "2001:db8::/32": ("nnn", "mmm"),
    "::/0": ("nnn", "mmm"),
    "::ffff:192.0.2.7": ("uuu", "nnn"),
    "::ffff:0:0/96": ("uuu", "nnn"),
    "192.0.2.7/x": ("uuu", "uuu"),
    "*": ("mmm", "mmm"),
    "HOST.example": ("muu", "muu"),
    "other.example": ("nuu", "nuu"),
    "nosuch.example": ("uuu", "uuu"),
    "*.example": ("muu", "muu"),
    "*.invalid": ("nuu", "nuu"),
    "b\u00fc*.example": ("uuu", "uuu"),
    "@group": ("muu", "muu"),
    "@nosuch": ("uuu", "uuu"),
}
# Where a client's own family of addresses is asked for, stock asks for IPv4 only.
OWN_WAY = {("other.example", "host6", "works")}


def hide_etc(place, lookups):
    """In a process with mounts of its own: an /etc that knows host.example, other.example and the netgroup, or nobody."""
    etc = os.path.join(place, "etc-" + lookups)
    subprocess.run(["cp", "-a", "/etc/.", etc], check=True, stderr=subprocess.DEVNULL)
    works = lookups == "works"
    for name, text in (("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nnetgroup: files\n"),
                       ("netgroup", "group (host.example,,)\n" if works else ""),
                       ("hosts", "127.0.0.1 localhost\n" + (
                           "192.0.2.7 host.example\n2001:db8::7 host.example\n192.0.2.8 other.example\n"
                           "2001:db8::8 other.example\n" if works else ""))):
        path = os.path.join(etc, name)
        if os.path.lexists(path):
            os.unlink(path)
        trees.write(path, text.encode())
    touches.run_tool("mount", "--bind", etc, "/etc")


def ask(port, header, module):
    """Is the client let in?"""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(f"PROXY {header} 1000 873\r\n@RSYNCD: 31.0 md5\n{module}\n".encode())
        answer = b""
        while b"@ERROR" not in answer and b"@RSYNCD: OK" not in answer:
            piece = client.recv(4096)
            if not piece:
                return None
            answer += piece
        return b"@RSYNCD: OK" in answer


def decisions(program, place, lookups):
    off = "reverse lookup = no\nforward lookup = no\n" if lookups == "off" else ""
    config = f"{IDENTITY}use chroot = no\n{off}proxy protocol = yes\nproxy protocol hosts = 127.0.0.1\n"
    for number, token in enumerate(GRID):
        for kind in ("allow", "deny"):
            config += f"[{kind}{number}]\npath = {place}\nhosts {kind} = {token}\n"
    with harness.Daemon(program, f"{IDENTITY}[m]\npath = {place}\n", place) as daemon:
        # With a header to wait for the daemon would not seem to have started.
        trees.write(daemon.config_file, f"log file = {daemon.log_file}\n{config}".encode())
        return {f"{kind} {token} {client}": ask(daemon.port, header, f"{kind}{number}")
                for number, token in enumerate(GRID) for kind in ("allow", "deny") for client, header in CLIENTS.items()}


def in_own_mounts(place, lookups, work):
    """What `work` returns, as JSON, from a process that sees another /etc."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            touches.private_mounts()
            hide_etc(place, lookups)
            answer = {"result": work()}
        except touches.Unavailable as reason:
            answer = {"skip": str(reason)}
        except BaseException as error:
            answer = {"error": repr(error)}
        with os.fdopen(writing, "w") as file:
            json.dump(answer, file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        answer = json.load(file)
    os.waitpid(pid, 0)
    if "skip" in answer:
        pytest.skip(answer["skip"])
    assert "error" not in answer, answer
    return answer["result"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize("lookups", LOOKUPS)
def test_the_grid_beside_stock(place, lookups):
    for name in ("ours", "stock"):
        os.mkdir(os.path.join(place, name))
    ours, stock = in_own_mounts(place, "fails" if lookups == "fails" else "works", lambda: [
        decisions(harness.HUAI, os.path.join(place, "ours"), lookups), decisions(harness.STOCK, os.path.join(place, "stock"), lookups)])
    problems = []
    for token, letters in GRID.items():
        for client, states in zip(CLIENTS, letters):
            letter = states[LOOKUPS.index(lookups)]
            expected = {"allow": letter == "m", "deny": letter == "n"}
            for kind in expected:
                cell = f"{kind} {token} {client}"
                if ours[cell] is not expected[kind]:
                    problems.append(f"{cell}, lookups {lookups}: {ours[cell]}")
                # Where there is something to decide by stock decides so; else ours is never the one that lets somebody in.
                if (stock[cell] != ours[cell] and letter != "u" and (token, client, lookups) not in OWN_WAY) or (
                        ours[cell] and not stock[cell]):
                    problems.append(f"{cell}, lookups {lookups}: {ours[cell]}, stock {stock[cell]}")
    assert not problems, "\n".join(problems)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_the_check_names_what_cannot_be_decided(place):
    def check():
        trees.write(f"{place}/check.conf", (
            f"{IDENTITY}use chroot = no\nreverse lookup = no\n"
            f"[a]\npath = {place}\nreverse lookup = yes\nhosts deny = @nosuch other.example nosuch.example *.example\n"
            f"[b]\npath = {place}\nhosts deny = *.example @group host.example\n"
            f"[c]\npath = {place}\nhosts allow = 10.0.0.0/8\nhosts deny = ::ffff:192.0.2.7\n"
            f"[d]\npath = {place}\nreverse lookup = yes\nhosts allow = @nosuch *.example\n").encode())
        result = harness.run(harness.HUAI, "--daemon", "--config-check", "-q", f"--config={place}/check.conf")
        return [result.code, result.stderr.decode()]

    code, text = in_own_mounts(place, "works", check)
    lines = [line.split(": ", 1)[1] for line in text.splitlines()]
    assert code == 1 and sorted(lines) == sorted([
        'module "a": hosts deny: "@nosuch" cannot be decided and denies: there is no such netgroup, or nobody who knows it',
        'module "a": hosts deny: "nosuch.example" cannot be decided and denies: it cannot be resolved',
        'module "b": hosts deny: "*.example" cannot be decided and denies: clients have no names without "reverse lookup"',
        'module "b": hosts deny: "@group" cannot be decided and denies: clients have no names without "reverse lookup"',
        'module "c": hosts deny: "::ffff:192.0.2.7" cannot be decided and denies: write it as an IPv4 address',
        'module "d": hosts allow: "@nosuch" cannot be decided and lets nobody in: there is no such netgroup, or nobody who knows it',
    ]), text
