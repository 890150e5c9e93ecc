# SPDX-License-Identifier: GPL-3.0-or-later
"""Stock rsync pushes to our servers what it pushes to stock ones; no client may be able to tell the two servers apart.

The jobs are those of test_push.py. Each runs twice: what arrives, what is left of the source, exit code, stdout and stderr have to
agree. To look at one:
    pytest testsuite/system/server/test_server_receive.py -k 'delta and shell and 31'
HUAI=/usr/bin/rsync checks the table itself.
"""
import concurrent.futures
import contextlib
import os
import re
import shutil
import signal
import subprocess

import pytest

import harness
import test_matrix
import test_push
import trees


@pytest.fixture(scope="module")
def site(top):
    result = test_push.Site(top)
    with contextlib.ExitStack() as stack:
        result.daemons = {}
        for program, name in ((harness.STOCK, "stock"), (harness.HUAI, "ours")):
            os.mkdir(os.path.join(top, name))
            daemon = harness.Daemon(program, result.config().split("[secret]")[0], os.path.join(top, name))
            result.daemons[program] = stack.enter_context(daemon)
        yield result


# The older protocols' servers of stock look for merge files where the directory is one of the links to be replaced.
STOCK_HINT = re.compile(rb"^refusing to follow a symlink owned by an untrusted user; .*\n", re.M)


def without_link_groups(result):
    """Which name of a hard-link group gets the data, and so which names become links to it, is the server's own business."""
    lines = result.stdout.split(b"\n")
    groups = [line for line in lines if re.search(rb"\b(hard-\d|twin-[ab])", line)]
    result.stdout = b"\n".join([line for line in lines if line not in groups] + [b"%d names of hard-link groups" % len(groups)])


def compare_servers(site, place, case, transport, protocol, theirs, client):
    os.mkdir(place)
    try:
        results = []
        for program, server, name in ((harness.STOCK, harness.STOCK, "stock"), (client, harness.HUAI, "ours")):
            results += test_push.push(site, place, case, transport, protocol, theirs, program, name, server)
        for result in results[::2]:
            result.stdout = re.sub(rb"/s +", b"/s ", re.sub(rb" +([\d.]+[kM]?B/s)", rb" \1", result.stdout))
            result.stderr = STOCK_HINT.sub(b"", result.stderr)
            if "H" in case.options.split()[0]:
                without_link_groups(result)
        # Stock lets one control character through to the terminal.
        return test_matrix.report(*results, case.ordered, lambda: "", (harness.HUAI, harness.STOCK), ("\\#177", "\x7f"))
    finally:
        shutil.rmtree(place)


# Ours does not give the time of a directory to what stays in its place, and names a directory that takes the place of a file. The
# server of stock makes no temporary file in another directory.
EXCEPT = {"ignore-existing": (27, 32), "backup-delete": (27, 28), "temp-dir": (27, 32)}


def combinations():
    """Each case once, in a rotating protocol; those marked core in the newest one as well, by both ways and both clients."""
    everything = os.environ.get("HUAI_MATRIX") == "full"
    cases = [case for case in test_push.CASES if not case.target.startswith(("!", "::secret"))]
    for number, case in enumerate(cases):
        except_since, except_upto = EXCEPT.get(case.name, (0, 0))
        speaks = [protocol for protocol in test_push.PROTOCOLS
                  if case.since <= protocol <= case.upto and not except_since <= protocol <= except_upto]
        if not speaks:
            continue
        chosen = [(case.transports[number % len(case.transports)], speaks[number % len(speaks)], harness.STOCK)]
        if case.core:
            chosen += [(transport, speaks[-1], harness.STOCK) for transport in case.transports]
            chosen.append((case.transports[0], speaks[-1], harness.HUAI))
        if everything:
            chosen = [(transport, protocol, client) for transport in case.transports for protocol in speaks
                      for client in (harness.STOCK, harness.HUAI)]
        for transport, protocol, client in sorted(set(chosen)):
            theirs = transport == "shell" and client == harness.STOCK and (number + protocol) % 2 == 0
            marks = [pytest.mark.core] if case.core and client == harness.STOCK else []
            name = f"{case.name}-{transport}-{protocol}{'' if client == harness.STOCK else '-ours'}"
            yield pytest.param(case, transport, protocol, theirs, client, id=name, marks=marks)


@pytest.fixture(scope="module")
def pushes(request, site):
    """{test id: its report, to be waited for}. A session mostly sleeps, so all selected ones run ahead in a few threads."""
    selected = [item.callspec for item in request.session.items if item.originalname == "test_server_is_as_stock"]
    executor = concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1) + 2)
    yield {
        spec.id: executor.submit(compare_servers, site, os.path.join(site.top, f"push-{number}"), **spec.params)
        for number, spec in enumerate(selected)
    }
    executor.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case, transport, protocol, theirs, client", combinations())
def test_server_is_as_stock(request, pushes, case, transport, protocol, theirs, client):
    difference = pushes[request.node.callspec.id].result()
    if difference:
        pytest.fail(difference, pytrace=False)


# --- what needs a tree or a moment of its own ---

@pytest.fixture
def shell(place):
    return ["-e", harness.make_remote_shell(place), f"--rsync-path={harness.HUAI}"]


@pytest.mark.core
@pytest.mark.parametrize("options", ["-ai", "-av --delete --stats", "-aH --delete-delay", "-a --delay-updates --no-i-r -i"])
def test_long_lists(place, shell, options):
    """More directories than a client lists ahead; with -H their files have names in others."""
    source = os.path.join(place, "src")
    for number in range(240):
        directory = os.path.join(source, f"d{number % 8}", f"sub{number}")
        os.makedirs(directory)
        for name in range(6):
            trees.write(os.path.join(directory, f"file{name}"), b"%d" % name)
        if "H" in options and number > 8:
            os.link(os.path.join(directory, "file0"), os.path.join(source, f"d{-number % 8}", f"link{number}"))
        os.chmod(directory, 0o700 + number % 8)
    trees.set_directory_times(source)
    results = []
    for server in (harness.STOCK, harness.HUAI):
        shutil.rmtree(os.path.join(place, "dest"), ignore_errors=True)
        os.makedirs(os.path.join(place, "dest/src/d1/sub9/extra"))
        results.append(harness.run(harness.STOCK, *shell[:2], f"--rsync-path={server}", *options.split(), "src",
                                   f"host:{place}/dest", cwd=place))
    assert "--delete" not in options or not trees.differences(trees.describe(source), trees.describe(os.path.join(place, "dest/src")))
    stock, ours = results
    assert (ours.code, ours.stderr) == (stock.code, stock.stderr) == (0, b"")
    assert test_matrix.output_lines(ours.stdout, False, False) == test_matrix.output_lines(stock.stdout, False, False)


@pytest.mark.core
@pytest.mark.parametrize("number, protocol", [(signal.SIGKILL, 29), (signal.SIGKILL, 32), (signal.SIGINT, 32), (signal.SIGTERM, 29)])
def test_client_that_is_gone(place, shell, number, protocol):
    source = test_push.make_slow_source(place)
    process = subprocess.Popen([harness.STOCK, *shell, f"--protocol={protocol}", "-a", "--bwlimit=500", source + "/", f"host:{place}/dest"],
                               cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True, env=harness.ENVIRONMENT)
    dest = os.path.join(place, "dest")
    test_push.wait_until(lambda: os.path.isdir(dest) and os.path.exists(os.path.join(dest, "a")))
    process.send_signal(number)
    process.communicate(timeout=harness.CLIENT_SECONDS)
    test_push.wait_until(lambda: os.listdir(dest) == ["a"])
    harness.end_group(process.pid)


@pytest.mark.core
@pytest.mark.parametrize("protocol", [29, 32])
def test_server_that_is_ended(place, shell, protocol):
    source = test_push.make_slow_source(place)
    shell = [*shell[:2], f"--rsync-path=echo $$ > {place}/pid; exec {harness.HUAI}"]
    process = subprocess.Popen([harness.STOCK, *shell, f"--protocol={protocol}", "-a", "--bwlimit=500", source + "/", f"host:{place}/dest"],
                               cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True, env=harness.ENVIRONMENT)
    test_push.wait_until(lambda: os.path.exists(os.path.join(place, "dest/a")))
    with open(os.path.join(place, "pid")) as file:
        os.kill(int(file.read()), signal.SIGTERM)
    stderr = process.communicate(timeout=harness.CLIENT_SECONDS)[1]
    assert process.returncode in ((20,) if protocol > 30 else (10, 12, 20)), stderr
    assert os.listdir(os.path.join(place, "dest")) == ["a"]
    harness.end_group(process.pid)


@pytest.mark.parametrize("protocol", test_push.PROTOCOLS)
def test_server_that_cannot_write(place, shell, protocol):
    """The server's own words and code arrive, and what had been written stays."""
    source = test_push.make_slow_source(place)
    os.unlink(os.path.join(source, "last"))
    shell = [*shell[:2], f"--rsync-path=ulimit -f 100; {harness.HUAI}"]
    result = harness.run(harness.STOCK, *shell, f"--protocol={protocol}", "-a", source + "/", f"host:{place}/dest")
    assert result.code in (11, 12), result.text
    assert b'write failed on "' in result.stderr and b"(code 11) at pool.c(" in result.stderr, result.text
    assert os.listdir(os.path.join(place, "dest")) == ["a"]


def test_silent_client_times_out(place):
    """One that lets the server wait for the list."""
    process = subprocess.Popen([harness.HUAI, "--server", "-re.LsfxCIvu", "--timeout=1", ".", place], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.ENVIRONMENT)
    process.stdin.write(b"\x20\0\0\0")
    process.stdin.flush()
    assert process.wait(10) == 30
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
