# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line from outside: texts, exit codes, and the words that the installed stock client sends to a server."""
import json
import os
import re
import stat

import pytest

import harness

MANUAL = os.path.join(harness.SOURCE, "doc", "rsync-huai.1")
TRAILER = rb"rsync error: [^\n]+ \(code %d\) at [^ ]+\(\d+\) \[%s=[^\]]+\]\n$"


def huai(*words, **options):
    return harness.run(harness.HUAI, *words, **options)


def assert_fails(result, code, line, role=b"client"):
    assert result.code == code, result.text
    assert result.stderr.startswith(line + b"\n"), result.text
    assert re.search(TRAILER % (code, role), result.stderr), result.text
    assert result.stdout == b"", result.text


def option_names(text):
    return set(re.findall(r"(?<![\w-])(--[\w-]+|-[A-Za-z0-9])(?![\w-])", text))


def help_names(*words):
    """Each line "--name=VALUE, -x   what it does" and the list of further spellings below."""
    result = huai(*words)
    assert result.code == 0 and result.stderr == b"", result.text
    options, more = result.stdout.decode().split("\nOptions\n")[1].split("\nNegations and other spellings:\n")
    names = set()
    for line in options.splitlines():
        names |= option_names(line[:25].split("  ")[0])
    return names | option_names(more.split("\n\n")[0])


def manual_section(title, until):
    with open(MANUAL, encoding="utf-8") as manual:
        return manual.read().split(f".SH {title}\n")[1].split(f".SH {until}\n")[0]


def manual_names(section):
    """The headings of the entries, and the paragraph of further spellings."""
    names = set()
    for heading in re.findall(r"^\.TP\n\.BI? (.*)$", section, re.M):
        names |= option_names(heading.replace('"', " "))
    for heading in re.findall(r"^\.SS Negations.*?\n(.*?)^\.PP", section, re.M | re.S):
        names |= option_names(heading)
    return names


def test_manual_and_help_have_the_same_options():
    section = manual_section("OPTIONS", "OPTIONS OF A DAEMON")
    assert manual_names(section) == help_names("--help")
    assert len(manual_names(section)) > 100


def test_manual_and_help_of_the_daemon_have_the_same_options():
    section = manual_section("OPTIONS OF A DAEMON", "OPTIONS FOR A SERVER")
    assert manual_names(section) | {"--no-verbose", "--no-v", "--sandbox"} == help_names("--daemon", "--help")


def test_every_stock_option_is_known(place):
    """What stock documents is either in the help or refused by its name; nothing is unknown or accepted in silence."""
    stock = harness.run(harness.STOCK, "--help").stdout.decode().split("\nOptions\n")[1]
    working = help_names("--help")
    for line in stock.splitlines():
        if not line.startswith("-") or line.startswith("--no-OPTION"):
            continue
        value = "=1" if "=" in line.split()[0] else ""
        for name in option_names(line[:24]):
            if name not in working:
                word = name + value if name.startswith("--") else name + value[1:]
                result = huai(word, place, place)
                if name in ("--crtimes", "-N"):  # stock's words, where there are no such times
                    assert_fails(result, 1, b"rsync: This rsync does not support --crtimes (-N)")
                    continue
                assert result.code == 4, result.text
                assert b"is not supported by this build" in result.stderr, result.text


@pytest.mark.core
@pytest.mark.parametrize("words, code, line", [
    ("--foo a b", 1, "rsync: --foo: unknown option"),
    ("-aQ a b", 1, "rsync: -aQ: unknown option"),
    ("--max-size=1x a b", 1, "rsync: --max-size=1x is invalid"),
    ("--info=foo a b", 1, 'Unknown --info item: "foo"'),
    ("--delete a b", 1, "rsync: --delete does not work without --recursive (-r) or --dirs (-d)."),
    ("--chmod=u+q a b", 1, "rsync: Invalid argument passed to --chmod (u+q)"),
    ("--filter=nonsense a b", 1, "Unknown filter rule: nonsense"),
    ("--exclude-from=/nonexistent a b", 11,
     "rsync: [client] failed to open exclude file /nonexistent: No such file or directory (2)"),
    ("--config=x", 1, "Daemon option(s) used without --daemon."),
    ("--daemon -e x", 1, "rsync: -e: unknown option (in daemon mode)"),
    ("--only-send-attrs a h:b", 4, "rsync: --only-send-attrs is not supported by this build in a push"),
])
def test_errors(words, code, line, place):
    assert_fails(huai(*words.split(" "), cwd=place), code, line.encode())


@pytest.mark.parametrize("words, code, line, role", [
    ("a b:c d", 1, "Unexpected remote arg: b:c", b"sender"),
    ("--server --sender --foo . x", 1, "rsync: on remote machine: --foo: unknown option", b"server"),
])
def test_errors_of_others_than_the_client(words, code, line, role, place):
    assert_fails(huai(*words.split(" "), cwd=place), code, line.encode(), role)


def test_a_remote_operand_among_local_ones(place):
    """What has more than one source sends."""
    assert_fails(huai("a", "b:c", "d", cwd=place), 1, b"Unexpected remote arg: b:c", b"sender")


def test_no_operand_is_answered_with_the_usage():
    result = huai()
    assert result.code == 1 and result.stdout == b"" and b"\nUsage: rsync-huai " in result.stderr, result.text
    assert huai("-h").stdout == huai("--help").stdout


def test_version_lines_that_scripts_read():
    result = huai("--version")
    assert result.code == 0, result.text
    assert re.match(rb"rsync-huai +version (\S+) +protocol version 33\n", result.stdout), result.text
    for word in (b"64-bit files", b" symlinks", b" hardlinks", b" IPv6", b"ACLs", b"xattrs", b" inplace", b"optional secluded-args"):
        assert word in result.stdout, word
    assert huai("-qV").stdout == b""


def test_version_as_json():
    result = huai("-VV")
    reported = json.loads(result.stdout)
    assert reported["program"] == "rsync-huai" and reported["protocol"] == "33.0", reported
    assert reported["capabilities"]["file_bits"] == 64 and reported["capabilities"]["only_send_attrs"] is True
    stock = json.loads(harness.run(harness.STOCK, "-VV").stdout or "{}")
    assert isinstance(reported["capabilities"]["IDN"], bool)
    assert (b"no IDN" in huai("--version").stdout) != reported["capabilities"]["IDN"]
    assert set(stock) - {"url"} <= set(reported)
    for part in ("capabilities", "optimizations"):
        assert set(stock.get(part, {})) <= set(reported[part])
    for part in ("checksum_list", "compress_list", "daemon_auth_list"):
        assert reported[part] == stock.get(part, reported[part])
    if reported["capabilities"]["ACLs"]:  # what is said is what is done
        assert huai("-An", "src", "dest").code != 4
    else:
        assert huai("-An", "src", "host:dest").code == 4 or huai("-An", "host:src", "dest").code == 4


def test_info_help_names_the_words_of_stock():
    for option in ("--info=help", "--debug=help"):
        stock = harness.run(harness.STOCK, option).stdout.decode()
        ours = huai(option).stdout.decode()
        words = re.findall(r"^([A-Z]+) ", stock, re.M)
        assert words == re.findall(r"^([A-Z]+) ", ours, re.M)
        assert sorted(re.findall(r"^\d\).*", stock, re.M)) == sorted(re.findall(r"^\d\).*", ours, re.M)) or option != "--info=help"


@pytest.mark.parametrize("value", ["0", "0G", "0b", "", "1", "1048575", "1M", "8191P", "8192P", str(2**63 - 2), str(2**63 - 1), "-1", "x"])
def test_limits_of_allocations_are_stocks(place, value):
    """0 is the largest that there is; so says a release behind 3.5.0 (doc/protocol/09-since-3.5.0.md section 4.2)."""
    os.mkdir(f"{place}/s")
    results = []
    for program in (harness.STOCK, harness.HUAI):
        words, environment = [program, "-r", f"--max-alloc={value}", "s/", "d/"], {"RSYNC_MAX_ALLOC": value}
        by_option = harness.run(*words, cwd=place)
        by_environment = harness.run(*words[:2], *words[3:], cwd=place, environment=environment)
        results.append([(run.code, run.stderr.split(b"\n")[0]) for run in (by_option, by_environment)])
    assert results[1] == results[0]
    assert (results[1][0][0] == 0) == (value in ("0", "0G", "0b", "", "1M", "8191P"))


PULLS = [
    "", "-v", "-vvv", "-q", "--stderr=all", "--stderr=client", "-a", "-avz", "-azHAXS --numeric-ids --delete", "-rvn", "-R",
    "-R --no-implied-dirs", "-b --suffix=.old", "--backup-dir=bk", "--append", "--append-verify", "-d", "-L", "-k", "--devices",
    "-a --no-D", "-UU", "-U --open-noatime", "-S --inplace", "--cc=none", "--cc=md5,auto", "-B 2K", "--delete-after -r",
    "--ignore-missing-args", "--delete-missing-args", "--max-alloc=2G", "-P", "--chown=u:g", "-zz", "--zc=zlib", "-z --zc=zstd --zl=3",
    "--files-from=LIST", "--files-from=LIST -a", "--files-from=LIST --no-R", "--files-from=:LIST -0", "--list-only", "-i", "--stats",
    "--info=all2,name0", "-c -W", "--bwlimit=1.5M", "--timeout=9", "--iconv=utf8,latin1", "--protocol=29 -a", "-M--only-send-attrs",
    "--skip-compress=gz/jpg", "--checksum-seed=7", "--ignore-errors", "--safe-links --copy-unsafe-links", "--max-size=1M",
    "--modify-window=2", "-f -_x -C -F", "--mkpath", "-y --partial-dir=p --delay-updates", "-M--stop-after=5", "-M--no-i-r -r",
]


@pytest.fixture
def recorder(place):
    """A remote shell that notes its command and hangs up."""
    path = os.path.join(place, "shell")
    with open(path, "w", encoding="utf-8") as script:
        script.write(f'#!/bin/sh\nshift 2\nfor word; do printf "%s\\0" "$word"; done >{place}/words\nexit 12\n')
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    with open(os.path.join(place, "LIST"), "w", encoding="utf-8") as names:
        names.write("x\n")
    return path


@pytest.mark.parametrize("options", PULLS)
def test_what_the_stock_client_sends_is_understood(options, recorder, place):
    """The session itself breaks off (there is no client): only what the command line is answered with counts."""
    words = [word.replace("_", " ") for word in options.split()]
    harness.run(harness.STOCK, *words, "-e", recorder, "h:src/", "dst/", cwd=place)
    with open(os.path.join(place, "words"), "rb") as sent:
        server = sent.read().decode().replace("\\", "").split("\0")[:-1]
    assert server[:2] == ["--server", "--sender"], server
    result = huai(*server, cwd=place)
    assert result.code == 12, f"{server}\n{result.text}"
    assert b"unknown option" not in result.stderr and b"not supported" not in result.stderr, result.text


@pytest.mark.core
def test_names_are_shown_escaped(place):
    os.mkdir(os.path.join(place, "src"))
    with open(os.path.join(os.fsencode(place), b"src", b"bad\xff\x1b[0m"), "wb"):
        pass
    result = huai("-rv", "src/", "dst", cwd=place)
    assert b"bad\\#377\\#033[0m\n" in result.stdout, result.text
    result = huai("-rvI8", "src/", "dst", cwd=place)
    assert b"bad\xff\\#033[0m\n" in result.stdout, result.text
    result = huai("-rvI", "--stderr=all", "src/", "dst", cwd=place)
    assert b"bad\\#377" in result.stderr and result.stdout == b"", result.text
    assert huai("-rIvq", "src/", "dst", cwd=place).stdout == b""
