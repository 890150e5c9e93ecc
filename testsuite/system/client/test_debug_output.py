# SPDX-License-Identifier: GPL-3.0-or-later
"""What --debug and -vv tell, beside stock's: the lines of one word, in stock's order where that does not depend on timing."""
import os
import re
import shutil

import pytest

import harness
import printed


def write(path, text="x"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


@pytest.fixture(scope="module")
def doubles(workspace):
    """Two sources with names in common: files, directories, and one that is a file here and a directory there."""
    place = os.path.join(workspace, "doubles")
    for name in ("p/l/x", "p/z", "p/k", "p/r/a", "p/w/b", "q/z", "q/l/x", "q/k/n", "q/r/a", "q/r/b"):
        write(os.path.join(place, name))
    return place


WAYS = {
    "local": ["p/", "q/", "dest"],
    "pull": ["-e", "SHELL", "host:PLACE/p/", ":PLACE/q/", "dest"],
    "push": ["-e", "SHELL", "p/", "q/", "host:PLACE/dest"],
}


def said(program, place, options, way, word):
    """Lines with `word` of a run into an empty destination; a server is of the same kind."""
    shell = harness.make_remote_shell(place)
    shutil.rmtree(os.path.join(place, "dest"), ignore_errors=True)
    words = [text.replace("PLACE", place).replace("SHELL", shell) for text in WAYS[way]]
    far = [] if way == "local" else [f"--rsync-path={program}"]
    result = harness.run(program, *options, *far, *words, cwd=place)
    assert result.code == 0, result.text
    return [line for line in os.fsdecode(result.stdout).split("\n") if word in line]


@pytest.mark.core
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", ["-avv", "-avv --no-i-r", "-avv --protocol=28", "-avv --protocol=29", "-dvv"])
def test_names_given_twice(doubles, way, options):
    if way == "local" and "protocol" in options:
        pytest.skip("a local run has no protocol")
    expected, got = (said(program, doubles, options.split(), way, "duplicate") for program, _ in printed.PROGRAMS)
    assert expected
    # Stock's receiver and its generator read each further list on their own, and both tell of it.
    assert got == list(dict.fromkeys(expected)) if options == "-avv" else got == expected


def test_names_given_twice_come_first(doubles):
    result = harness.run(harness.HUAI, "-avv", "--no-i-r", "p/", "q/", "new", cwd=doubles)
    lines = os.fsdecode(result.stdout).split("\n")
    last = max(number for number, line in enumerate(lines) if "duplicate" in line)
    assert result.code == 0 and lines[last + 1] == "created directory new", result.text
    quiet = harness.run(harness.HUAI, "-avv", "--debug=dup0", "p/", "q/", "dest", cwd=doubles)
    assert quiet.code == 0 and b"duplicate" not in quiet.stdout, quiet.text


@pytest.fixture(scope="module")
def site(top):
    """printed.Site without a daemon."""
    with harness.Daemon(harness.STOCK, printed.Site.config(top), top) as daemon:
        made = printed.Site(top, daemon)
        os.mkfifo(os.path.join(made.source, "sub/pipe"))
        printed.set_times(made.source)
        yield made


def output_of(site, program, options, way, state):
    """The sorted lines that a run prints; a file that has no name before its own is not renamed, and processes are not ours."""
    result = site.run(program, options, site.operands(way), state)
    assert result.code == 0, result.text
    text = re.sub(r"\.\w{6} to ", ".XXXXXX to ", os.fsdecode(result.stdout))
    text = re.sub(r"(set [ug]id of \S*?/?)\.?([^/\s]+?)(\.\w{6})? from", r"\1\2 from", text)
    text = re.sub(r"pid=\d+", "pid=N", text)
    return sorted(line for line in text.split("\n") if not re.match(r"client_run2? waiting|renaming |sent .* bytes/sec|total size is|\[receiver\]", line))


# Options, the ways, and the state of the destination.
JOBS = [
    ("-a --debug=genr,recv,send", "local", "other"), ("-a --debug=genr,recv,send", "local", "none"),
    ("-avv --debug=all0,genr,recv,send", "local", "same"), ("-aH --debug=genr,recv,send --delete-before", "local", "other"),
    ("-a --no-i-r --debug=genr,recv,send", "local", "other"), ("-an --debug=genr,recv,send", "local", "other"),
    ("-a --debug=genr,recv", "pull", "other"), ("-a --protocol=28 --debug=genr,recv", "pull", "other"),
    ("-a --debug=del2 --delete", "local", "other"), ("-a --debug=del3 --delete-after", "local", "other"),
    ("-a --debug=del3 --delete", "pull", "other"), ("-ab --debug=del3 --delete-delay", "local", "other"),
    ("-an --debug=del3 --delete", "local", "other"), ("-a --debug=time2", "local", "other"), ("-a --debug=time2", "pull", "none"),
    ("-r --no-i-r --debug=time2", "pull", "none"), ("-a --no-i-r --debug=flist3", "pull", "none"),
]


@pytest.mark.parametrize("options, way, state", JOBS)
def test_words(site, options, way, state):
    expected, got = ("\n".join(output_of(site, program, options.split(), way, state)) for program, _ in printed.PROGRAMS)
    report = printed.difference("output", expected.encode(), got.encode())
    if report:
        pytest.fail(report, pytrace=False)


def test_temp_names(site):
    """What was there before is replaced by a rename, which --debug=recv reports."""
    expected, got = (site.run(program, ["-a", "--debug=recv"], site.operands("local"), "other") for program, _ in printed.PROGRAMS)
    pattern = rb"^renaming \.big\.\w{6} to big$"
    assert re.search(pattern, expected.stdout, re.M) and re.search(pattern, got.stdout, re.M), got.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("way", ["local", "pull"])
def test_owners(site, way):
    os.chown(os.path.join(site.source, "sub"), 12, 13)
    os.chown(os.path.join(site.source, "a.txt"), 14, 0)
    try:
        for options, state in (("-a --debug=own1", "none"), ("-a --debug=own1 --size-only", "none")):
            expected, got = (output_of(site, program, options.split(), way, state) for program, _ in printed.PROGRAMS)
            assert expected == got and len(got) > 3
    finally:
        os.chown(os.path.join(site.source, "sub"), 0, 0)
        os.chown(os.path.join(site.source, "a.txt"), 0, 0)


# Words of a sending side; what follows "at level 3" of a search for blocks is stock's own.
SENDER_JOBS = [
    ("-a --debug=send,flist3,deltasum2", "none"), ("-a --debug=send,flist3,deltasum2", "other"),
    ("-a --no-i-r --debug=send,flist2", "other"), ("-aH --protocol=29 --debug=send,deltasum2", "other"),
    ("-a --debug=cmd,proto,nstr", "same"), ("-an --debug=send", "other"),
]


@pytest.mark.parametrize("options, state", SENDER_JOBS)
def test_words_of_a_push(site, options, state):
    expected, got = ("\n".join(output_of(site, program, options.split(), "push", state)) for program, _ in printed.PROGRAMS)
    report = printed.difference("output", expected.encode(), got.encode())
    if report:
        pytest.fail(report, pytrace=False)


@pytest.mark.parametrize("options, state", [
    ("-a --debug=send,deltasum2", "other"), ("-a --no-i-r --debug=send", "none"), ("-avv --exclude=b --exclude=sub/deep/", "none"),
    ("-avv -C --filter=-_*.txt", "other"), ("-a --no-i-r --debug=filter2 --exclude=b", "none"), ("-avv --protocol=29 --exclude=b", "other"),
])
def test_words_of_a_server_that_sends(site, options, state):
    """Its names begin with a slash where the operand does."""
    found = []
    for server, _ in printed.PROGRAMS:
        words = [re.sub("^--debug", "-M--debug", word).replace("_", " ") for word in options.split()]
        result = site.run(harness.STOCK, [*words, f"--rsync-path={server}"], site.operands("pull"), state)
        assert result.code == 0, result.text
        lines = re.sub(r"pid=\d+|hash_hits=\d+", "N", os.fsdecode(result.stdout).replace(server, "PROGRAM")).split("\n")
        found.append(sorted(line for line in lines if not re.match(r"sent .* bytes/sec|total size|\[sender\] (add_rule|popping)", line)))
    assert found[1] == found[0]
    assert any(f"{site.source}/" in line for line in found[1]) or "hiding" in "".join(found[1]), found


@pytest.mark.parametrize("way", ["local", "pull", "push", "daemon-pull", "daemon-push"])
def test_commands_and_ends(site, way):
    """What stands for a line of the source may be anything."""
    texts = []
    for program, _ in printed.PROGRAMS:
        lines = output_of(site, program, ["-an", "--debug=cmd2,exit2,proto,connect2,nstr"], way, "same")
        texts.append("\n".join(re.sub(r"file=\S+, line=\d+", "", line) for line in lines if "Server" not in line))
    if way == "local":
        texts[0] = re.sub(r"^(\(Client\)|Client|Server).*\n", "", texts[0], flags=re.M)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("options, state", [
    ("-avv", "none"), ("-avv", "same"), ("-avv --delete", "other"), ("-avvH", "none"), ("-avvH", "same"), ("-avv -b", "other"),
    ("-avv --exclude=*.txt --include=sub/ --include=* --exclude=b", "none"), ("-avv -u --existing", "other"),
    ("-avv --out-format=%n", "same"), ("-avv --out-format=%5i:%n", "other"), ("-d --info=flist2 --exclude=*", "none"),
    ("-avv --no-i-r --delete-before", "other"), ("-avv --max-size=1k", "none"), ("-avvn --delete", "other"),
])
@pytest.mark.parametrize("way", ["local", "pull"])
def test_very_verbose_jobs(site, options, state, way):
    if way == "pull" and "H" in options and state == "none":
        pytest.skip("which name of a group comes first depends on what has arrived")
    expected, got = ("\n".join(output_of(site, program, options.split(), way, state)) for program, _ in printed.PROGRAMS)
    # Stock's generator checks names that come by the rules, and reports that.
    expected, got = (re.sub(r"hash_hits=\d+|(?m:^\[generator\] risking .*\n)", "", text) for text in (expected, got))
    report = printed.difference("output", expected.encode(), got.encode())
    if report:
        pytest.fail(report, pytrace=False)


def test_log_of_a_run_by_the_protocol(site):
    """Two processes, one log: nothing stands in it twice."""
    log = os.path.join(site.place, "log")
    result = site.run(harness.HUAI, ["-avv", "--no-whole-file", f"--log-file={log}"], site.operands("local"), "other")
    with open(log) as file:
        text = file.read()
    os.remove(log)
    failed = harness.run(harness.HUAI, "-aL", "-z", f"--log-file={log}", "src/", "dest", cwd=site.place)
    with open(log) as file:
        assert failed.code == 23 and file.read().count("symlink has no referent") == 1, failed.text
    os.remove(log)
    assert result.code == 0 and text.count("building file list") == 1 and text.count("total: matches") == 1, text


@pytest.mark.parametrize("options", ["-av", "-a", "-aii", "-aqv", "-aHv"])
def test_log_of_a_pull_without_item_strings(site, options):
    logs = []
    for program, name in printed.PROGRAMS:
        log = os.path.join(site.place, f"log.{name}")
        words = [options, f"--log-file={log}", "--log-file-format=%o %n"]
        assert site.run(program, words, site.operands("pull"), "other").code == 0
        with open(log, "rb") as file:
            logs.append(sorted(re.sub(rb"^sent .*\n|^total size.*\n", b"", printed.plain(file.read()), flags=re.M).split(b"\n")))
        os.remove(log)
    assert logs[0] == logs[1]


@pytest.mark.parametrize("way", ["local", "pull", "push"])
@pytest.mark.parametrize("options", ["-P", "--progress --info=del0", "--info=name1", "-v --info=del0", "--info=progress2",
                                     "--info=del", "--out-format=%l", ""])
def test_who_is_told_of_deletions(site, options, way):
    expected, got = (site.run(program, ["-a", "--delete", *options.split()], site.operands(way), "other").stdout
                     for program, _ in printed.PROGRAMS)
    pattern = re.compile(rb"^deleting .*", re.M)
    assert pattern.findall(got) == pattern.findall(expected)
