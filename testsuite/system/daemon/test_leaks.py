# SPDX-License-Identifier: GPL-3.0-or-later
"""The listener forgets nothing that it has allocated: in a build with AddressSanitizer, which looks when the process ends."""
import glob
import os
import signal

import pytest

import harness
import trees
from test_daemon import IDENTITY, wait_for
from test_snapshot_daemon import make_snapshot

RELOADED = "the configuration has no errors"


def has_sanitizer():
    with open(harness.HUAI, "rb") as file:
        return b"__asan_init" in file.read()


@pytest.mark.core
@pytest.mark.skipif(not has_sanitizer(), reason="not a build with AddressSanitizer")
def test_a_listener_that_served_and_reloaded_leaves_no_leak(place):
    """Only of the listener: a session that ends by an error leaves its memory to the kernel."""
    os.mkdir(f"{place}/tree")
    trees.write(f"{place}/tree/file", b"content")
    snapshot = make_snapshot(f"{place}/tree", f"{place}/tree.snap")
    config = (f"use chroot = no\n{IDENTITY}control socket = {place}/control\nmetrics file = {place}/metrics\npid file = {place}/pid\n"
              f"max connection rate = 1000\n[live]\npath = {place}/tree\n"
              f"[snap]\npath = {place}/tree\nattr snapshot = {snapshot}\n")
    leaks = "detect_leaks=1:use_sigaltstack=0:exitcode=77:log_path=" + f"{place}/report"
    before = dict(harness.ENVIRONMENT)
    harness.ENVIRONMENT["ASAN_OPTIONS"] = leaks
    try:
        with harness.Daemon(harness.HUAI, config, place) as daemon:
            harness.ENVIRONMENT.update(before)
            for reload in range(3):
                for module in ("live/", "snap/", "nothing/", ""):
                    harness.run(harness.STOCK, "-r", daemon.url(module))
                assert harness.run(harness.HUAI, "--status", f"--config={daemon.config_file}").code == 0
                # Another generation of the snapshot, and modules that come and go.
                trees.write(f"{place}/tree/file{reload}", b"x")
                make_snapshot(f"{place}/tree", f"{place}/tree.snap")
                trees.write(daemon.config_file, f"log file = {daemon.log_file}\n{config}[new{reload}]\npath = {place}/tree\n".encode())
                daemon.process.send_signal(signal.SIGHUP)
                wait_for(lambda: daemon.log().count(RELOADED) == reload + 1)
            daemon.process.terminate()
            code = daemon.process.wait(60)
    finally:
        harness.ENVIRONMENT.clear()
        harness.ENVIRONMENT.update(before)
    reports = "".join(open(name).read() for name in glob.glob(f"{place}/report.{daemon.process.pid}"))
    if "LeakSanitizer has encountered a fatal error" in reports:
        pytest.skip("no leaks can be looked for here (ptrace): " + reports[:500])
    assert (code, reports) == (0, ""), reports
