# SPDX-License-Identifier: GPL-3.0-or-later
"""What a client shows: standard output, standard error and exit code are those of stock, line for line."""
import os
import re
import signal
import subprocess

import pytest

import harness
import printed

WAYS = ("local", "pull", "daemon-push")
# Options, and the states of the destination to run them for.
JOBS = [
    ("-av", "none other"), ("-avv", "same"), ("-ai", "none"), ("-aii", "same"), ("-aqv", "none"), ("-anv", "other"),
    ("-rv", "same"), ("-dv", "same"), ("--old-dirs -v", "none"), ("-av --old-d --delete", "other"),
    ("-av --delete", "other"), ("-ai --delete -n", "other"), ("-av --stats", "other"), ("-a --stats -h", "none"),
    ("-a --stats --no-h", "none"), ("-av -hh", "none"), ("-av --no-i-r", "none"), ("-av --no-i-r --info=flist2", "none"),
    ("-av --info=flist0", "other"), ("-av --info=name0", "other"), ("-av --info=stats0", "other"),
    ("-av --out-format=", "none"), ("-ai --out-format=%n", "other"), ("-a --out-format=%i:%n%L:%l:%B:%M:%o:%f", "other"),
    ("-a --out-format=%-12n|%12l|%'l|%''l|%U:%G|%m|%%|%Q", "none"), ("-av --zc=zstd --zt=4", "none"),
    ("-av --no-crtimes --stderr=client", "none"), ("-av --stderr=all", "none"), ("-av --msgs2stderr", "other"),
    ("-av -8", "none"), ("-av --existing", "other"), ("-avv --ignore-existing", "same"),
    ("-av --ignore-existing --info=skip2", "same"), ("-ac --ignore-existing --info=skip2", "other"),
    ("-av --outbuf=L", "none"), ("-a --list-only", "none"), ("--list-only", "none"), ("-r --list-only -v", "none"),
    ("-a --list-only --no-h", "none"), ("-a --list-only -hh", "none"), ("-aU --list-only", "none"), ("-aq --list-only", "none"),
]
JOBS += [(f"{options} --out-format=%b:%c:%C:%n", "other") for options in ("-a", "-an", "-az", "-aI --no-W", "-a --append-verify")]
JOBS += [("-ac --out-format=%C:%n --exclude=sub/b", "other")]
CORE = ("-av", "-ai", "-a --stats -h", "-a --list-only")


def test_push_hears_a_talkative_server_to_the_end(site):
    result = site.run(harness.HUAI, ["-a", "-vvvv"], site.operands("push"), "other")
    assert result.code == 0 and b"error" not in result.stderr and b"generate_files finished\n" in result.stdout, result.text


@pytest.mark.parametrize("way, options", [("push", []), ("pull", [f"--rsync-path={harness.HUAI}", "-M--compress-threads=3"])])
def test_threads_compress_what_arrives_whole(site, way, options):
    result = site.run(harness.HUAI, ["-a", "--zc=zstd", "--compress-threads=3", *options], site.operands(way), "none")
    assert result.code == 0, result.text
    with open(os.path.join(site.place, "dest/big")) as file:
        assert file.read() == "x" * 70_000


def seen(site, program, options, way, states, environment=None):
    results = [site.run(program, options, site.operands(way), state, environment) for state in states]
    return b"".join(b"-- exit code %d\n%s-- errors\n%s" % (result.code, printed.plain(result.stdout), printed.plain(result.stderr))
                    for result in results)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options, states", [pytest.param(*job, marks=[pytest.mark.core] if job[0] in CORE else []) for job in JOBS])
def test_output_is_that_of_stock(site, options, states, way):
    if "--list-only" in options and way == "daemon-push":
        pytest.skip("only sources are listed")
    expected, got = (seen(site, program, options.split(), way, states.split()) for program, _ in printed.PROGRAMS)
    report = printed.difference("output", expected, got)
    if report:
        pytest.fail(report, pytrace=False)


def test_charsets_of_the_environment(site):
    environment = {"RSYNC_ICONV": "UTF-8,ISO-8859-1"}
    for program, _ in printed.PROGRAMS:
        result = site.run(program, ["-a", "--delete"], site.operands("push"), "none", environment)
        assert result.code == 0, result.text
        assert b"\xe9" in os.listdir(os.fsencode(os.path.join(site.place, "dest")))
    environment["RSYNC_ICONV"] = "no-such-charset"
    assert site.run(harness.HUAI, ["-a", "--no-iconv"], site.operands("push"), "none", environment).code == 0


@pytest.mark.parametrize("way", ("pull", "push", "daemon-pull"))
@pytest.mark.parametrize("options, environment", [
    ("-az", {}), ("-az --zc=lz4", {}), ("-a --cc=md5", {}), ("-az --protocol=29", {}), ("-az --zl=9", {}),
    ("-az", {"RSYNC_CHECKSUM_LIST": "md5 sha1", "RSYNC_COMPRESS_LIST": "lz4 zlib"}),
])
def test_choices_are_told_as_stock_tells_them(site, options, environment, way):
    expected, got = (seen(site, program, ["--debug=nstr", *options.split()], way, ["none"], environment)
                     for program, _ in printed.PROGRAMS)
    assert got == expected and b"Client " in got


@pytest.mark.parametrize("options", ["-av", "-a --list-only", "-a --out-format=%M:%n"])
@pytest.mark.parametrize("environment", [{"LC_ALL": "C"}, {"TZ": "Asia/Tokyo"}, {"CVSIGNORE": "a.txt big"}])
def test_surroundings_show_as_with_stock(site, options, environment):
    cvs = ["-C"] if "CVSIGNORE" in environment else []
    expected, got = (seen(site, program, [*options.split(), *cvs], "local", ["none"], environment)
                     for program, _ in printed.PROGRAMS)
    assert got == expected


@pytest.mark.parametrize("way", ("local", "pull", "push"))
@pytest.mark.parametrize("options", ["-a --progress", "-a --progress --no-i-r -hh", "-aq --progress", "-an --progress"])
def test_progress_is_that_of_stock(site, options, way):
    # How fast it goes decides on the width of two columns.
    expected, got = (re.sub(rb" +RATE", b" RATE", seen(site, program, options.split(), way, ["none"]))
                     for program, _ in printed.PROGRAMS)
    report = printed.difference("progress", expected, got)
    if report:
        pytest.fail(report, pytrace=False)


def begin_slowly(site, way, *options):
    """A run that takes some seconds, and has got as far as its first name."""
    process = subprocess.Popen([harness.HUAI, "-av", "--delete", "--bwlimit=40", "--outbuf=L", *options, *site.operands(way)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.ENVIRONMENT, cwd=site.place)
    lines = []
    while b"a.txt\n" not in lines:
        lines.append(process.stdout.readline())
        assert lines[-1], (lines, process.stderr.read())
    return process


@pytest.mark.parametrize("way", ("local", "pull", "push"))
@pytest.mark.parametrize("number, code, words", [
    (signal.SIGUSR1, 19, b"received SIGUSR1 (code 19)"), (signal.SIGINT, 20, b"received SIGINT, SIGTERM, or SIGHUP (code 20)"),
])
def test_signals_end_a_run(site, way, number, code, words):
    site.run(harness.STOCK, ["--version"], [], "none")
    with begin_slowly(site, way) as process:
        process.send_signal(number)
        assert words in process.communicate(timeout=20)[1] and process.returncode == code
    assert not [name for name in os.listdir(os.path.join(site.place, "dest")) if name.startswith(".")]


@pytest.mark.parametrize("number", (signal.SIGUSR2, signal.SIGVTALRM))
def test_other_signals_do_not(site, number):
    site.run(harness.STOCK, ["--version"], [], "none")
    with begin_slowly(site, "pull", "--exclude=big", "--exclude=hard") as process:
        process.send_signal(number)
        process.communicate(timeout=20)
        assert process.returncode == 0
