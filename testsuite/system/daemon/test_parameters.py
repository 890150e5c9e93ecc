# SPDX-License-Identifier: GPL-3.0-or-later
"""Each module parameter of rsyncd.conf with an effect that a client can see: the same from stock rsyncd and from rsync-huai."""
import os
import shutil
import socket

import pytest

import harness
import trees

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

# parameters of the module, options of the client, source below the module
CASES = [
    ("charset = ISO-8859-1", "-rti --iconv=UTF-8", "/"),
    ("charset = ISO-8859-1", "-rtis --iconv=UTF-8", "/latin"),
    ("charset = UTF-8", "-rltz --iconv=.", "/"),
    ("", "-rt --iconv=UTF-8", "/"),
    ("dont compress = *", "-az --zc=zlibx", "/"),
    ("dont compress = *.gz *.iso", "-az --zc=zlib", "/"),
    ("outgoing chmod = D2755,F600", "-api", "/"),
    ("outgoing chmod = a-x,g+w", "-rlpti", "/"),
    ("ignore nonreadable = yes", "-rti --delete", "/"),
    ("ignore nonreadable = no", "-rti --delete", "/"),
    ("munge symlinks = yes", "-rlti", "/"),
    ("munge symlinks = no", "-rlti", "/"),
    ("use chroot = no", "-rlti", "/"),
    ("numeric ids = yes", "-agoi", "/"),
    ("numeric ids = no", "-agoi", "/"),
    ("numeric ids = yes\nuse chroot = no", "-agoi --no-i-r", "/"),
    ("max verbosity = 0", "-rtvv", "/d/"),
    ("max verbosity = 4", "-rtvv", "/d/"),
    ("refuse options = checksum delete compress", "-rc", "/"),
    ("refuse options = checksum delete compress", "-rz", "/"),
    ("refuse options = c*", "-r --checksum", "/"),
    ("refuse options = * !a !v", "-av", "/"),
    ("refuse options = * !a !v", "-av --timeout=9", "/"),
    ("exclude = *.iso /d/deep", "-ri --delete", "/"),
    ("exclude = *.iso /d/deep", "-ri", "/d/deep/"),
    ("include = /d /d/** /plain.txt\nexclude = *", "-ri", "/"),
    ("filter = - *.gz", "-ri --delete", "/"),
    ("exclude from = {place}/rules", "-ri", "/"),
    ("include from = {place}/rules\nexclude = *", "-ri", "/"),
    ("exclude from = {place}/no-such-file", "-ri", "/"),
    ("hosts allow = 127.0.0.0/8", "-r", "/"),
    ("hosts allow = 192.0.2.1", "-r", "/"),
    ("hosts deny = 127.0.0.1", "-r", "/"),
    ("hosts deny = *\nhosts allow = localhost", "-r", "/"),
    ("hosts deny = 127.0.0.1\nlist = no", "-r", "/"),
    ("reverse lookup = no\nhosts deny = localhost", "-r", "/"),
    ("reverse lookup = no\nforward lookup = no\nhosts allow = localhost", "-r", "/"),
    ("timeout = 30", "-rvv --timeout=60", "/d/"),
    ("timeout = 30", "-rvv --timeout=5", "/d/"),
    ("max connections = 1\nlock file = {place}/lock", "-r", "/"),
    ("max connections = -1", "-r", "/"),
    ("uid = nosuchuser", "-r", "/"),
    ("gid = nosuchgroup", "-r", "/"),
    ("path =", "-r", "/"),
    ("path = {place}/nowhere", "-r", "/"),
    ("comment = with % and  blanks", "", None),
    ("list = no", "", None),
]


def make_module(top):
    for name in ("plain.txt", "a.gz", "b.iso", "d/c.gz", "d/e.txt", "d/deep/f.iso"):
        os.makedirs(os.path.dirname(f"{top}/{name}"), exist_ok=True)
        trees.write(f"{top}/{name}", name.encode() * 500)
    trees.write(f"{top}/closed", b"closed", 0o600)
    os.mkdir(f"{top}/latin")
    trees.write(os.fsencode(f"{top}/latin/t") + b"\xe9t", b"latin-1 name")
    trees.write(f"{top}/latin/ascii", b"ascii name")
    trees.symlink("/rsyncd-munged/etc/passwd", f"{top}/munged")
    trees.symlink("d/e.txt", f"{top}/link")
    trees.write(f"{top}/owned", b"owned", 0o644, owner=(33, 33) if os.geteuid() == 0 else None)
    trees.set_directory_times(top)


@pytest.fixture(scope="module")
def module(workspace):
    place = os.path.join(workspace, "parameters")
    os.makedirs(f"{place}/mod")
    os.chmod(place, 0o755)
    make_module(f"{place}/mod")
    trees.write(f"{place}/rules", b"# rules\n*.iso\n/d/\n")
    return place


def configuration(place, parameters):
    identity = f"uid = nobody\ngid = {harness.NOBODY_GROUP}\n" if os.geteuid() == 0 else "use chroot = no\n"
    return (f"motd file = {place}/motd\n[other]\npath = {place}/mod\n[mod]\npath = {place}/mod\ntimeout = 600\n{identity}"
            + parameters.format(place=place) + "\n")


@root_only
@pytest.mark.parametrize("parameters, options, source", CASES, ids=[f"{case[0]}|{case[1]}{case[2] or ''}" for case in CASES])
def test_a_parameter_does_to_a_client_what_stocks_does(module, place, parameters, options, source):
    seen = []
    for program in (harness.STOCK, harness.HUAI):
        os.makedirs(f"{place}/dest")
        trees.write(f"{place}/dest/surplus", b"surplus")
        with harness.Daemon(program, configuration(module, parameters), place) as daemon:
            words = [*options.split(), daemon.url(f"mod{source}"), f"{place}/dest/"] if source else [daemon.url()]
            result = harness.run(harness.STOCK, *words)
        seen.append((result.code, sorted(harness.normalise(result.stdout).splitlines()),
                     sorted(harness.normalise(result.stderr).splitlines()), trees.describe(f"{place}/dest", since_ns=0)))
        shutil.rmtree(f"{place}/dest")
    stock, ours = seen
    # A refusal may be lost to a reset, with stock: then only the failure is compared.
    if stock[0] in (10, 12) or ours[0] in (10, 12):
        assert ours[0] != 0 and stock[0] != 0
        assert ours[3] == stock[3]
        return
    assert ours[:3] == stock[:3]
    assert [line for line in trees.differences(stock[3], ours[3]) if "b'.' mtime" not in line] == []


@root_only
def test_access_times_stay_with_open_noatime(place):
    os.mkdir(f"{place}/mod")
    trees.write(f"{place}/mod/f", b"content")
    os.utime(f"{place}/mod/f", (1_000_000_000, 1_700_000_000))
    config = f"[mod]\npath = {place}/mod\nuid = 0\ngid = 0\nopen noatime = yes\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        assert harness.run(harness.STOCK, "-r", daemon.url("mod/"), f"{place}/out/").code == 0
    assert os.stat(f"{place}/mod/f").st_atime == 1_000_000_000


def test_socket_options_reach_the_connection(place):
    os.mkdir(f"{place}/mod")
    config = f"socket options = TCP_NODELAY,SO_SNDBUF=70000\nuse chroot = no\n[mod]\npath = {place}/mod\n"
    with harness.Daemon(harness.HUAI, config, place) as daemon:
        assert harness.run(harness.STOCK, daemon.url("mod/")).code == 0
    # An unknown one is reported to whoever starts the daemon, and nothing else happens.
    with harness.Daemon(harness.HUAI, config.replace("TCP_NODELAY", "NO_SUCH_OPTION"), place) as daemon:
        with socket.create_connection(("127.0.0.1", daemon.port), 5) as connection:
            assert connection.recv(100).startswith(b"@RSYNCD: ")
