# SPDX-License-Identifier: GPL-3.0-or-later
"""Stock rsync pushes to our servers what it pushes to stock ones; no client may be able to tell the two servers apart.

The jobs are those of test_push.py. Each runs twice: what arrives, what is left of the source, exit code, stdout and stderr have to
agree. To look at one:
    pytest testsuite/system/test_server_receive.py -k 'delta and shell and 31'
HUAI=/usr/bin/rsync checks the table itself.
"""
import concurrent.futures
import contextlib
import os
import re
import shutil

import pytest

import harness
import test_matrix
import test_push

# Options that a receiving side of ours does not have yet.
NOT_BUILT = re.compile(rb"on remote machine: \S+ is not supported by this build")


@pytest.fixture(scope="module")
def site(workspace):
    top = os.path.join(workspace, "server-receive")
    os.mkdir(top)
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
        if harness.HUAI != harness.STOCK and NOT_BUILT.search(results[2].stderr):
            return None if results[2].code else results[2].text
        for result in results[::2]:
            result.stdout = re.sub(rb"/s +", b"/s ", re.sub(rb" +([\d.]+[kM]?B/s)", rb" \1", result.stdout))
            result.stderr = STOCK_HINT.sub(b"", result.stderr)
            if "H" in case.options.split()[0]:
                without_link_groups(result)
        # Stock lets one control character through to the terminal.
        return test_matrix.report(*results, case.ordered, lambda: "", (harness.HUAI, harness.STOCK), ("\\#177", "\x7f"))
    finally:
        shutil.rmtree(place)


# Ours leaves alone what lies below a directory that it does not make, and names a directory that takes the place of a file. The
# server of stock makes no temporary file in another directory, and does not know the word that its client sends for --qsort.
EXCEPT = {"ignore-existing": (27, 32), "backup-delete": (27, 28), "temp-dir": (27, 32), "inc-recursive": (27, 32)}


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
    if difference is None:
        pytest.skip("not built yet")
    if difference:
        pytest.fail(difference, pytrace=False)
