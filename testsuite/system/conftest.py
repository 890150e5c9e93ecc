# SPDX-License-Identifier: GPL-3.0-or-later
"""What every system test shares: where the program is, a place to work in, and no process left behind."""
import os
import shutil
import sys
import tempfile

import pytest

# Helpers lie here, tests in a directory for each room; some tests use what another test's file defines.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, *sorted(entry.path for entry in os.scandir(HERE) if entry.is_dir() and not entry.name.startswith("_"))]

import harness  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "core: also run under the sanitizers, which are several times slower")


def pytest_report_header(config):
    return f"program under test: {harness.HUAI}; compared with {harness.stock_version()}"


@pytest.fixture(scope="session")
def workspace():
    """A directory that every user may enter (a module may be served as nobody), gone at the end."""
    path = tempfile.mkdtemp(prefix="rsync-huai-test.")
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def top(workspace, request):
    """The same for the tests of one file, with the file's name; anew if tests of another file come in between."""
    path = os.path.join(workspace, request.module.__name__.removeprefix("test_").replace("_", "-"))
    os.mkdir(path)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def place(workspace):
    """The same for one test."""
    path = tempfile.mkdtemp(dir=workspace)
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def tmpfs_place():
    """A directory on tmpfs for one test, where this machine has one."""
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no writable /dev/shm")
    path = tempfile.mkdtemp(prefix="rsync-huai-test.", dir="/dev/shm")
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)
