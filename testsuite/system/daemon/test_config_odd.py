# SPDX-License-Identifier: GPL-3.0-or-later
"""--config-check of odd configurations: whatever keeps a client out is foretold, whatever does not is not."""
import concurrent.futures
import os

import pytest

import harness
import trees

IS_ROOT = os.geteuid() == 0
IDENTITY = "uid = root\ngid = root\n" if IS_ROOT else ""
HEAD = f"use chroot = no\n{IDENTITY}"

# What a module may have besides its path, and whether its clients are served; the last column: stock serves it all the same.
MODULES = [
    ("", True),
    ("PaTh = TOP/tree", True),
    ("re ad\tONLY = y e s", True),
    ("path = TOP\\\n/tree", True),
    ("pa\\  \nth = TOP/tree", True),
    ("path = TOP//tree//  \t", True),
    ("path = TOP/other/../tree", True),
    ("path = TOP/gone\npath = TOP/tree", True),
    ("path = TOP/two words", True),
    ("path = TOP/m\u00fcll", True),
    ('path = "TOP/tree"', False),
    ("path = TOP/tree # not a comment", False),
    ("path =", False),
    ("path = TOP/100%", False),
    ("path = TOP/%NOTSET%", False),
    ("read\u00a0only = no", True),
    ("no equals sign", True),
    ("frobnicate = 1", True),
    ("port = oops", True),
    ("timeout = -5", True),
    ("hosts allow = 127.0.0.0/255.0.255.0", True),
    ("auth users =\nsecrets file = TOP/gone", True),
    ("auth users = joe\nsecrets file = TOP/secrets", True),
    ("auth users = joe:xx\nsecrets file = TOP/secrets", True),
    ("auth users = joe", False),
    ("auth users = joe\nsecrets file = TOP/gone", False),
    ("auth users = joe\nsecrets file = TOP/lax", False),
    ("auth users = joe\nsecrets file = TOP/lax\nstrict modes = no", True),
    ("auth users = joe\nsecrets file = TOP/nobody", False),
    ("auth users = joe\nsecrets file = TOP/directory", False),
    ("filter = - *.tmp", True),
    ("filter = frob x", False),
    ("filter = -", False),
    ("exclude = + a - b", True),
    ("exclude from = TOP/rules", True),
    ("exclude from = TOP/broken", False),
    ("include from = TOP/gone", False),
    ("exclude from = TOP/directory", False, "stock serves it"),
    ("refuse options = nosuchoption", True),
    ("charset = nosuchset", False),
    ("log file = TOP/directory", True),
    ("log file = TOP/gone/log", True),
    ("max connections = 3\nlock file = TOP/gone/lock", False),
    ("early exec = TOP/gone", False),
    ("early exec = true", True),
    ("name converter = TOP/gone", True),
    ("temp dir = TOP/gone", True),
    ("log format = %Q %", True),
]


@pytest.fixture(name="top")
def make_top(tmp_path):
    os.chmod(tmp_path, 0o755)
    for name in ("tree", "other", "two words", "m\u00fcll", "directory"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("content")
    for name, text, mode in (("secrets", "joe:pw\n", 0o600), ("lax", "joe:pw\n", 0o644), ("nobody", "# joe:pw\n\n", 0o600),
                             ("rules", "*.tmp\n", 0o644), ("broken", "- a\n+ \n", 0o644)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    return str(tmp_path)


def check(path, *words):
    return harness.run(harness.HUAI, "--daemon", "--config-check", "-q", f"--config={path}", *words)


def whom_it_serves(program, config, top):
    with harness.Daemon(program, config, top) as daemon:
        def serves(number):
            return harness.run(harness.STOCK, "-r", "--list-only", daemon.url(f"m{number}/", "joe@"),
                               environment={"RSYNC_PASSWORD": "pw"}).code == 0
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return list(pool.map(serves, range(len(MODULES))))


def section(number, row, top):
    path = "" if row[0].lower().startswith("pa") else "path = TOP/tree\n"
    return f"[m{number}]\n{path}{row[0]}\n".replace("TOP", top)


def test_the_check_foretells_which_modules_are_served(top):
    config = HEAD + "".join(section(number, row, top) for number, row in enumerate(MODULES))
    ours, stock = (whom_it_serves(program, config, top) for program in (harness.HUAI, harness.STOCK))
    for number, row in enumerate(MODULES):
        assert ours[number] == row[1], row
        assert stock[number] == (row[1] or len(row) > 2), row
        trees.write(f"{top}/alone.conf", f"{HEAD}{section(number, row, top)}".encode())
        result = check(f"{top}/alone.conf")
        assert result.code == (0 if row[1] else 1), result.text


MODULE = f"{HEAD}[m]\npath = TOP/tree\n"
FILES = [
    # text, exit code, a problem of the file
    (b"", 0, None),
    (b"# nothing", 0, None),
    (MODULE.rstrip("\n"), 0, None),
    (MODULE.rstrip("\n") + "\\", 1, 'module "m": path TOP/tree\\: No such file'),
    (MODULE.replace("\n", "\r\n"), 0, None),
    (MODULE.replace("\n", "\r"), 1, ":1: badly formed boolean"),
    (f"\t{MODULE}".replace("\n[m]", "\n\f [m] \v").replace("path", "\tpath\t"), 0, None),
    ("\ufeff" + MODULE, 0, ":1: the byte order mark is taken for a part of this line"),
    (MODULE.encode("utf-16"), 1, ": the file contains a NUL byte"),
    (bytes(range(256)) * 40, 1, ": the file contains a NUL byte"),
    (MODULE.encode() + b"comment = \xff\xfe\x80\n", 0, None),
    (HEAD + ("#" + "x" * 100 + "\n") * 10000 + MODULE, 0, None),
    (f"{HEAD}comment = {'x' * 500000}\n{MODULE}", 0, None),
    (HEAD + "".join(f"[x{number}]\npath = TOP/tree\n" for number in range(30)), 0, None),
    ("# c \\\n" + MODULE, 0, None),
    (f"garbage\n{MODULE}", 0, ':1: badly formed line: no "="'),
    (f"= x\n{MODULE}", 1, ":1: a parameter without a name"),
    (f"{HEAD}[m\npath = TOP/tree\n", 1, 'badly formed section header: no "]"'),
    (f"{HEAD}[ ]\npath = TOP/tree\n", 1, "empty section name"),
    (f"{HEAD}[a/b]\npath = TOP/tree\n", 1, 'a section name must not contain "/"'),
    (f"{HEAD}[#m]\npath = TOP/tree\n", 1, 'no client can name module "#m"'),
    (f"{HEAD}[{'n' * 1023}]\npath = TOP/tree\n", 1, "no client can name module"),
    (f"{HEAD}[{'n' * 1022}]\npath = TOP/tree\n", 0, None),
    (f"{HEAD}[m] behind\npath = TOP/tree\n[M]\ncomment = again\n", 0, None),
    (f"{MODULE}[global]\n[-x]\npath = TOP/tree\n[.y]\npath = TOP/tree\n", 0, None),
    (f"&include TOP/gone\n{MODULE}", 1, ':1: cannot open "TOP/gone": No such file'),
    (f"&include TOP/directory\n{MODULE}", 0, None),
    (f"&include\n{MODULE}", 0, ":1: badly formed directive: no path"),
    (f"&inclood TOP/directory\n{MODULE}", 1, ':1: unknown directive "&inclood"'),
    (f"{MODULE}&merge TOP/odd.conf\n", 1, "files include each other"),
    (f"{MODULE}timeout = 60s\n", 1, '"60s" is not a number'),
    (f"{MODULE}timeout = 99999999999\n", 1, '"99999999999" is not a number'),
    (f"{MODULE}list = on\n", 1, 'badly formed boolean "on"'),
    (f"port = 70000\n{MODULE}", 1, '"70000" is not a number of the range of "port"'),
    (f"address = ::1%nosuch\n{MODULE}", 1, ":1: address: rsync: getaddrinfo: ::1%nosuch"),
    (f"address = 127.0.0.1\n{MODULE}", 0, None),
    (f"socket options = SO_NOSUCH, SO_KEEPALIVE\n{MODULE}", 0, ":1: Unknown socket option SO_NOSUCH"),
    (f"pid file = TOP/directory\n{MODULE}", 1, ":1: pid file TOP/directory: Is a directory"),
    (f"metrics file = TOP/directory\n{MODULE}", 0, ":1: metrics file TOP/directory: Is a directory"),
    (f"motd file = TOP/gone\n{MODULE}", 0, ":1: motd file TOP/gone: No such file"),
    (f"syslog facility = nosuch\n{MODULE}", 1, 'unknown syslog facility "nosuch"'),
    (f"{MODULE}read only = no\ntemp dir = /gone\n", 0, 'module "m": temp dir /gone in the module: No such file'),
    (f"{MODULE}read only = no\ntemp dir = /file\n", 0, 'module "m": temp dir /file in the module: Not a directory'),
    (f"{MODULE}read only = no\ntemp dir = /\n", 0, None),
    (f"{MODULE}refuse options = nosuchoption compress\n", 0, 'refuse options: No match for refuse-options string "nosuchoption"'),
    (f"{MODULE}auth users = @nosuchgroup @x*\nsecrets file = TOP/secrets\n", 0, 'auth users: there is no group "nosuchgroup"'),
    (f"{MODULE}exclude from = TOP/broken\n", 1, "exclude from: unexpected end of filter rule: <rule from TOP/broken line 2>"),
    (f"{MODULE}filter = - a\nfilter = frob x\n", 1, 'module "m": filter: Unknown filter rule: frob x'),
]


@pytest.mark.core
@pytest.mark.parametrize("row", range(len(FILES)))
def test_the_check_reads_files_as_the_daemon_does(top, row):
    text, code, problem = FILES[row]
    text = text if isinstance(text, bytes) else text.encode()
    trees.write(f"{top}/odd.conf", text.replace(b"TOP", top.encode()))
    result = check(f"{top}/odd.conf")
    assert result.code == code, result.text
    said = result.stderr.decode(errors="surrogateescape").replace(top, "TOP").splitlines()
    if problem is None:
        assert said == []
    else:
        assert any(line.startswith("TOP/odd.conf:") and problem in line for line in said), said
        if code == 0:
            assert len(said) == (2 if text.startswith("\ufeff".encode()) else 1), said


def test_the_command_line_has_the_last_word(top):
    trees.write(f"{top}/odd.conf", f"address = ::1%nosuch\nsocket options = SO_NOSUCH\n{MODULE}".replace("TOP", top).encode())
    result = check(f"{top}/odd.conf", "--address=127.0.0.1", "--sockopts=SO_KEEPALIVE")
    assert (result.code, result.stderr) == (0, b""), result.text
