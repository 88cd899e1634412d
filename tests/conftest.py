"""Fixtures of all tests: a home and a runtime folder of their own, four ranks that heal, and a seed one can repeat.

With `--numprocesses=2` (pytest-xdist) each process has its own folders and ranks, and takes whole files.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from course_utils.cluster.folder import RanksFolder

ONE_BY_ONE = {"tests/test_decks.py", "tests/test_notebooks.py"}
"""Files with long tests that share nothing: dealt out test by test, and last, so that all processes end together."""

_OWN = Path(tempfile.mkdtemp(prefix="course-tests-"))
for _variable, _name in {"COURSE_HOME": "home", "COURSE_RUNTIME": "runtime", "COURSE_SHARED": "shared"}.items():
    (_OWN / _name).mkdir(mode=0o700)
    os.environ[_variable] = str(_OWN / _name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """Deal out whole files, those with most tests first: tests of a file share ranks, servers and decks."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return nodeid if file in ONE_BY_ONE else file

    return ByFile(config, log)


def pytest_sessionfinish() -> None:
    """Remove the folders; the process that deals out the tests has made some too."""
    for folder in RanksFolder.all():  # of a test that failed before it could stop its ranks
        folder.end()
    shutil.rmtree(_OWN, ignore_errors=True)


@pytest.fixture(scope="session")
def _shared_ranks() -> Iterator[list]:
    kept: list = []
    yield kept
    for ranks in kept:
        ranks.stop()


@pytest.fixture
def four_ranks(_shared_ranks):
    """Four ranks, the same ones for all tests; where an earlier test has ended them, new ones."""
    import course_utils as course
    from course_utils.cluster import current

    running = current()
    if running is None or running not in _shared_ranks or not running.healthy or running.world_size != 4:
        _shared_ranks[:] = [course.start(4)]
    return _shared_ranks[0]


@pytest.fixture
def seed() -> int:
    """A fresh seed each time, or COURSE_SEED to repeat a run; a failing test shows it among its values."""
    return int(os.environ.get("COURSE_SEED") or int.from_bytes(os.urandom(4), "big"))
