# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of the Debian package share: the package, a later version of it, and machines to install them on."""
import os
import shutil
import subprocess

import pytest

import machine as machines

PACKAGE = os.environ.get("DEB", "")


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """The package, and one of a higher number with another log rotation: (path, path)."""
    top = tmp_path_factory.mktemp("packages")
    newer = top / "unpacked"
    subprocess.run(["dpkg-deb", "-R", PACKAGE, newer], check=True)
    control = (newer / "DEBIAN/control").read_text()
    (newer / "DEBIAN/control").write_text(control.replace("Version: ", "Version: 1:"))
    rotation = (newer / "etc/logrotate.d/rsync-huai").read_text()
    (newer / "etc/logrotate.d/rsync-huai").write_text(rotation.replace("rotate 12", "rotate 13"))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", newer, top / "newer.deb"], check=True, stdout=subprocess.DEVNULL)
    shutil.copy(PACKAGE, top / "package.deb")
    return top / "package.deb", top / "newer.deb"


def make_machine(directory, packages):
    try:
        machine = machines.Machine(str(directory))
    except machines.NotPossible as reason:
        pytest.skip(f"no machine can be made here: {reason}")
    for package in packages:
        shutil.copy(package, machine.path("/root"))
    machine.before = machine.changes()
    return machine


@pytest.fixture
def machine(tmp_path, packages):
    """A machine of its own for one test, not booted."""
    machine = make_machine(tmp_path, packages)
    yield machine
    machine.close()


@pytest.fixture(scope="module")
def booted(tmp_path_factory, packages):
    """A machine that runs, for all tests of a file."""
    machine = make_machine(tmp_path_factory.mktemp("machine"), packages)
    try:
        machine.boot()
        yield machine
    except machines.NotPossible as reason:
        pytest.skip(f"no machine can be booted here: {reason}")
    finally:
        machine.close()
