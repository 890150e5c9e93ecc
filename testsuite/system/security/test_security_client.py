# SPDX-License-Identifier: GPL-3.0-or-later
"""What surrounds a client and a receiving side: proxies, helpers, remote shells, names that were asked for, and files that
others swap. Each test is named by its item of doc/protocol/08-security.md section 10; doc/security.md has the whole list."""
import contextlib
import itertools
import os
import shutil
import socket
import threading

import pytest

import harness
import trees
from hostile import IMPATIENCE, PARTIAL, UNSUPPORTED, finish, module, site
from raw_sender import DIRECTORY, ROOT, entry
from test_client_connect import Peer, outcome
from test_confinement import SAFE_LINK_VECTORS, Swapper

SOCKET_ERROR, VANISHED = 10, 24


# --- the proxy ---

@pytest.mark.core
@pytest.mark.parametrize("before", [b"", b"HTTP/1.0 200 ok\r\n"])
@pytest.mark.parametrize("length", [1022, 1023, 1024, 100000])
def test_s040_lines_of_a_proxy_without_an_end(before, length, tmp_path):
    def script(peer, connection):
        peer.read_more(connection)
        connection.sendall(before + b"HTTP/1.0 200 ".ljust(length, b"x"))
    with Peer(script) as peer:
        code, text = outcome(harness.HUAI, "rsync://far.example/m/", "d", cwd=tmp_path,
                             environment={"RSYNC_PROXY": f"127.0.0.1:{peer.port}"})
    assert code == SOCKET_ERROR
    assert (b"proxy response " + (b"header " if before else b"") + b"line too long" in text) == (length > 1023), text
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("length", range(1019, 1026))
def test_s040_the_longest_line_of_a_proxy(length, tmp_path):
    """With its end, in the status and behind it: as stock has it."""
    def script(peer, connection):
        peer.read_more(connection)
        connection.sendall(lines + b"\r\n@ERROR: through\n")
    results = []
    for lines in (b"HTTP/1.0 200 ".ljust(length, b"x") + b"\r\n", b"HTTP/1.0 200 ok\r\n" + b"X:".ljust(length, b"x") + b"\r\n"):
        for program in (harness.STOCK, harness.HUAI):
            with Peer(script) as peer:
                results.append(outcome(program, "rsync://far.example/m/", "d", cwd=tmp_path,
                                       environment={"RSYNC_PROXY": f"127.0.0.1:{peer.port}"}))
    assert results[0] == results[1] and results[2] == results[3]
    assert length > 1020 or b"through" in results[1][1]


def test_s040_headers_of_a_proxy_without_an_end(tmp_path):
    def script(peer, connection):
        peer.read_more(connection)
        connection.sendall(b"HTTP/1.0 200 ok\r\n" + b"X: y\r\n" * 100000)
    with Peer(script) as peer:
        code, text = outcome(harness.HUAI, "rsync://far.example/m/", "d", cwd=tmp_path,
                             environment={"RSYNC_PROXY": f"127.0.0.1:{peer.port}"})
    assert code == SOCKET_ERROR and b"more than 100 lines" in text, text


# --- hosts ---

BAD_HOSTS = ["$(touch${IFS}made)", "`touch made`", "a;touch made", "a'b", "-oProxyCommand=x", "~h", "+h", "%h", "a b", "a\nb", "a\rb",
             "a|b", "a>made", "a&b"]


@pytest.mark.core
@pytest.mark.parametrize("host", BAD_HOSTS)
def test_s119_hosts_in_a_connecting_program(host, tmp_path):
    code, text = outcome(harness.HUAI, f"rsync://{host}/m/", "d", cwd=tmp_path,
                         environment={"RSYNC_CONNECT_PROG": "echo @ERROR: ran %H; touch made"})
    assert code != 0 and b"ran" not in text.replace(b"rsync://", b""), text
    assert os.listdir(tmp_path) == []


def test_s119_hosts_that_a_connecting_program_gets(tmp_path):
    for host in ("h", "h.example", "a_b-c", "192.0.2.1", "x%y+z~"):
        code, text = outcome(harness.HUAI, f"rsync://{host}/m/", "d", cwd=tmp_path,
                             environment={"RSYNC_CONNECT_PROG": "echo @RSYNCD: 31.0 md5; read a; read b; echo @ERROR: at %H"})
        assert f"@ERROR: at {host}\n".encode() in text, text


@pytest.mark.parametrize("host", ["a\r\nX-Evil", "a\nb", "a b", "a\tb", "a\x7fb", "h" * 1020])
def test_s119_hosts_in_a_request_to_a_proxy(host, tmp_path):
    """Whoever is not asked for in good form is not asked for at all."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5)
        code, text = outcome(harness.HUAI, f"rsync://{host}/m/", "d", cwd=tmp_path,
                             environment={"RSYNC_PROXY": f"127.0.0.1:{listener.getsockname()[1]}"})
        listener.setblocking(False)
        try:
            connection = listener.accept()[0]
        except BlockingIOError:
            connection = None
        if connection:
            with connection:
                assert connection.recv(4096) == b""
    assert code == SOCKET_ERROR, text


# --- the remote shell ---

@pytest.mark.core
@pytest.mark.parametrize("operand", ["-oProxyCommand=touch made:x", "-l@h:x", "user@-oProxyCommand=touch made:x", "-l@h::x"])
def test_s118_hosts_and_users_that_look_like_options(operand, tmp_path):
    shell = tmp_path / "shell"
    shell.write_text('#!/bin/sh\ntouch made\n')
    shell.chmod(0o755)
    for words in ([operand, "d"], ["source", operand]):
        result = harness.run(harness.HUAI, "-e", str(shell), "--", *words, cwd=tmp_path)
        assert result.code == 1 and b"may not start with '-'" in result.stderr, result.text
        assert "made" not in os.listdir(tmp_path), result.text


# Over the network they are a name that does not resolve, and a user like others.
@pytest.mark.parametrize("operand", ["-h::m", "u@-h::m", "rsync://-h/m", "rsync://u@-h:873/m", "rsync://-h/", "rsync://[-h]/m", "-h::", "-h::/m",
                                     "rsync://-u@127.0.0.1:1/m", "-h:m", "u@-h:m", "[-h]:m", "-h:"])
@pytest.mark.parametrize("words", [["--"], ["-e", "false", "--"]])
def test_s118_hosts_and_users_are_refused_as_by_stock(operand, words, tmp_path):
    for operands in ([operand, "d"], ["source", operand]):
        ours, stock = (harness.run(program, *words, *operands, cwd=tmp_path) for program in (harness.HUAI, harness.STOCK))
        if "-u@" not in operand or "-e" not in words:
            assert (ours.code, harness.normalise(ours.stderr)) == (stock.code, harness.normalise(stock.stderr)), stock.text + ours.text


@pytest.mark.core
@pytest.mark.parametrize("options", [[], ["-s"], ["-R"]])
def test_s118_every_byte_of_a_name_goes_through_a_remote_shell(options, tmp_path):
    """As an argument, in both directions, with a real shell in between."""
    shell = harness.make_remote_shell(tmp_path)
    source = os.fsencode(tmp_path / "source")
    os.mkdir(source)
    # Three more of each, so that a byte stands at the start, inside and at the end of a name.
    names = [name for byte in range(1, 256) if bytes([byte]) not in b"/" for name in (b"%c" % byte, b"x%cy" % byte, b"x%c" % byte)
             if name != b"."]
    names += [b"$(touch made)", b"`touch made`", b"; touch made", b"a\\", b"a\\\\", b"\\", b"-rf", b"~root", b"'", b'"']
    for name in names:
        trees.write(os.path.join(source, name), name)
    # What would be a pattern is escaped.
    asked = [b"".join(b"\\" + bytes([c]) if bytes([c]) in b"*?[" else bytes([c]) for c in name) for name in names]
    words = [b"h:" + os.path.join(source, b"." if options == ["-R"] else b"", name) for name in asked]
    result = harness.run(harness.HUAI, "-t", *options, "-e", shell, f"--rsync-path={harness.HUAI}", *words,
                         str(tmp_path / "pulled/"), cwd=tmp_path)
    assert result.code == 0, result.text
    assert contents(tmp_path / "pulled") == {name: name for name in names}
    for name in names[::37] + names[-11:]:
        target = os.path.join(os.fsencode(tmp_path / "pushed"), name)
        result = harness.run(harness.HUAI, "-t", *[word for word in options if word != "-R"], "-e", shell, "--mkpath",
                             f"--rsync-path={harness.HUAI}", os.path.join(source, b"x"), b"h:" + target, cwd=tmp_path)
        assert result.code == 0 and os.path.isfile(target), (name, result.text)
    assert not os.path.exists(tmp_path / "made") and not os.path.exists("/made")


def contents(directory):
    found = {}
    for name in os.listdir(os.fsencode(directory)):
        with open(os.path.join(os.fsencode(directory), name), "rb") as file:
            found[name] = file.read()
    return found


# --- names that were asked for ---

@pytest.mark.core
@pytest.mark.parametrize("tail", ["".join(tail) for length in range(1, 5) for tail in itertools.product("\\*", repeat=length)])
def test_s042_backslashes_at_the_end_of_what_is_asked_for(site, tail):
    """A name that ends like the argument is taken; one that has not been asked for is not."""
    source = f"mod/d\\x{tail}"
    with site.pull("-rlt", source=source) as sender:
        site.refuses(sender.behave(entry(b"other", size=1), contents={0: b"x"}), UNSUPPORTED, "rejecting unrequested file-list name: other")
    with site.pull("-rlt", source=source) as sender:
        good = sender.behave(entry(os.fsencode(f"d\\x{tail}"), size=1), contents={0: b"x"})
    wild = "*" in tail
    assert good.code == 0 or (wild and good.code == UNSUPPORTED), good
    site.is_unharmed()


@pytest.mark.parametrize("name", ["a\\b\\", "\\", "a\\\\", "a\\b\\/c\\"])
def test_s042_backslashes_at_the_end_of_listed_names(place, name):
    """A list of names holds no patterns: each is itself."""
    for path in ("s", "s/a\\b\\"):
        os.makedirs(f"{place}/{path}")
    trees.write(f"{place}/s/{name}" if name != "a\\b\\" else f"{place}/s/{name}/c\\", b"content")
    trees.write(f"{place}/list", f"{name}\n".encode())
    with harness.Daemon(harness.HUAI, f"use chroot = no\n[m]\npath = {place}/s\n", place) as daemon:
        result = harness.run(harness.HUAI, "-rt", f"--files-from={place}/list", daemon.url("m/"), f"{place}/t/")
    assert result.code == 0, result.text
    expected = {path: facts for path, facts in trees.describe(f"{place}/s/{name}").items() if path != b"."}
    found = {path: facts for path, facts in trees.describe(f"{place}/t/{name}").items() if path != b"."}
    assert found == expected and os.path.exists(f"{place}/t/{name}")


# --- what is swapped while it is used ---

@pytest.mark.core
@pytest.mark.parametrize("where", ["dest", "alt", "part"])
def test_s063_a_basis_that_becomes_a_fifo(place, where):
    """Files and FIFOs change places while files are looked for to build others from: nobody waits for a FIFO's other end."""
    for directory in ("s", "dest", "one", "two"):
        os.mkdir(f"{place}/{directory}")
    for number in range(60):
        trees.write(f"{place}/s/f{number}", trees.noise(3000, number) + b"new")
        trees.write(f"{place}/one/f{number}", trees.noise(3000, number) + b"old", mtime_ns=10**18)
        os.mkfifo(f"{place}/two/f{number}")
    live = {"dest": "dest/d", "alt": "alt", "part": "dest/d/part"}[where]
    os.makedirs(f"{place}/s/d")
    for number in range(60):
        os.rename(f"{place}/s/f{number}", f"{place}/s/d/f{number}")
    os.makedirs(os.path.dirname(f"{place}/{live}"), exist_ok=True)
    # What still holds something is not removed when it has been used.
    for directory in ("one", "two"):
        trees.write(f"{place}/{directory}/stays")
    os.rename(f"{place}/one", f"{place}/{live}")
    options = {"dest": ["--inplace"], "alt": [f"--copy-dest={place}/alt"], "part": ["--partial-dir=part"]}[where]
    shell = harness.make_remote_shell(place)
    with Swapper(f"{place}/{live}", f"{place}/two"):
        for turn in range(4):
            source = f"h:{place}/s/d/" if where == "alt" else f"h:{place}/s/"
            target = f"{place}/t{turn}/" if where == "alt" else f"{place}/dest/"
            result = harness.run(harness.HUAI, "-rtI", "--no-whole-file", *options, "-e", shell, f"--rsync-path={harness.HUAI}",
                                 source, target, timeout=15)
            assert result.code in (0, 23, 24), result.text


ABSOLUTE = {"temp": ["--temp-dir={}"], "copy": ["--copy-dest={}"], "backup": ["-b", "--backup-dir={}"],
            "partial": ["--partial-dir={}", "--delay-updates"]}


@pytest.mark.core
@pytest.mark.parametrize("way", ["pull", "push"])
@pytest.mark.parametrize("option", ABSOLUTE)
def test_s082_a_place_elsewhere_does_not_open_the_destination(site, module, way, option):
    """One side of each rename and link is absolute; the directory at the other becomes a link that leads out meanwhile."""
    elsewhere = f"{site.place}/elsewhere" if way == "pull" else site.path("elsewhere")
    os.makedirs(f"{elsewhere}/d")
    trees.write(f"{elsewhere}/d/secret", b"y" * 20)
    if way == "pull":
        site.names = sorted(site.names + ["elsewhere"])
    os.mkdir(site.path("d"))
    trees.write(site.path("d/secret"), b"old", mode=0o600)
    words = [word.format(elsewhere if way == "pull" else "/elsewhere") for word in ABSOLUTE[option]]
    with site.pull("-rlt", *words) if way == "pull" else module.push("-rlt", *words) as sender:
        sender.list(ROOT, entry(b"d", DIRECTORY), entry(b"d/secret", size=20))
        ndx, _ = sender.wait_for_request()
        os.rename(site.path("d"), site.path("away"))
        os.symlink("../outside", site.path("d"))
        sender.reply_with(ndx, b"x" * 20)
        result = finish(sender)
    assert result.code in (0, None, PARTIAL) and result.seconds < IMPATIENCE, result
    assert os.stat(f"{site.outside}/secret").st_nlink == 1
    site.is_unharmed()


@contextlib.contextmanager
def replaced_by_a_link(directory, target):
    """Again and again the directory is a symlink for a moment, whatever is done to it meanwhile."""
    away, ended = f"{directory}.away", threading.Event()

    def swap():
        while not ended.is_set():
            with contextlib.suppress(OSError):
                os.rename(directory, away)
            with contextlib.suppress(OSError):
                os.symlink(target, directory)
            with contextlib.suppress(OSError):
                os.unlink(directory)
            shutil.rmtree(directory, ignore_errors=True)
            with contextlib.suppress(OSError):
                os.rename(away, directory)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.core
@pytest.mark.parametrize("way", ["local", "push"])
def test_s082_links_made_while_the_destination_is_swapped(site, module, way):
    """--link-dest with an absolute value, while the directory that gets the links is replaced by a link that leads out."""
    for directory in (f"{site.place}/source/d", site.path("ref/d")):
        os.makedirs(directory)
        for number in range(40):
            trees.write(f"{directory}/f{number}", b"same")
    os.mkdir(site.path("d"))
    words, target = ([f"--link-dest={site.path('ref')}"], f"{site.target}/") if way == "local" else \
        (["--link-dest=/ref"], module.daemon.url("mod/"))
    with replaced_by_a_link(site.path("d"), "../outside"):
        for _ in range(8):
            result = harness.run(harness.HUAI, "-rt", *words, f"{site.place}/source/", target)
            assert result.code in (0, PARTIAL, VANISHED), result.text
            shutil.rmtree(site.path("d"), ignore_errors=True)
    assert trees.describe(site.outside) == site.before


# --- links ---

@pytest.mark.core
@pytest.mark.parametrize("way", ["local", "pull", "push"])
@pytest.mark.parametrize("options", [["-b"], ["--backup-dir=kept"], ["--backup-dir=kept", "--delete"]])
def test_s087_unsafe_links_are_not_kept_as_backups(place, way, options):
    """The destination has links of all kinds, which make way for files, or go."""
    kept = {}
    for program in (harness.STOCK, harness.HUAI):
        name = os.path.basename(program)
        os.makedirs(f"{place}/{name}/source")
        for depth, directory in enumerate(("", "d", "d/e")):
            for side in ("source", "dest"):
                os.makedirs(f"{place}/{name}/{side}/{directory}", exist_ok=True)
            for number, target in enumerate(SAFE_LINK_VECTORS):
                trees.symlink(target, f"{place}/{name}/dest/{directory}/l{number}")
                if "--delete" not in options:
                    trees.write(f"{place}/{name}/source/{directory}/l{number}", b"new")
        words = ["-rltb", "--safe-links", *options]
        source, target = f"{place}/{name}/source/", f"{place}/{name}/dest/"
        if way != "local":
            shell = harness.make_remote_shell(place)
            words += ["-e", shell, f"--rsync-path={program}"]
            source, target = (f"h:{source}", target) if way == "pull" else (source, f"h:{target}")
        result = harness.run(program, *words, source, target)
        assert result.code == 0, result.text
        kept[name] = {path: os.readlink(f"{place}/{name}/dest/{path}") for path in links_below(f"{place}/{name}/dest")}
    ours, stocks = (kept[os.path.basename(program)] for program in (harness.HUAI, harness.STOCK))
    assert ours == stocks
    assert "a/b" in ours.values() and not {"/etc/passwd", "a/../../b", "x/.."} & set(ours.values()), ours


def links_below(root):
    return [os.path.relpath(os.path.join(directory, name), root) for directory, subdirectories, names in os.walk(root)
            for name in [*subdirectories, *names] if os.path.islink(os.path.join(directory, name))]
