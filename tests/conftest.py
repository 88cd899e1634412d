"""Fixtures of all tests: a home and a runtime folder of their own, four ranks that heal, and a seed one can repeat.

With `--numprocesses=3` (pytest-xdist) each process has its own folders and ranks, and takes whole files.
"""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest

from course_utils import settings
from course_utils.ranks.processes import forking
from course_utils.ranks.processes.ranks_folder import RanksFolder

ONE_BY_ONE = ("tests/pages/test_notebooks.py", "tests/workshop/test_decks.py")
"""Files of long tests that share nothing: dealt out test by test, by turns with whole files."""

LONG = [
    "checks/test_answers",
    "install/test_as_on_a_mac",
    "teacher/test_nbgrader",
    "gpu/test_gpu_script",
    "workshop/test_site",
    "lessons/gpu_nodes/test_jobs",
    "pages/test_browser",
    "install/test_ondemand",
    "install/test_open_mpi",
    "ranks/test_slurm",
    "lessons/gpu_nodes/test_gpu_nodes",
    "ranks/test_leftovers",
    "ranks/test_ranks",
    "ranks/test_installations",
    "ranks/test_links",
    "teacher/test_teacher",
]
"""Files that take more than half a minute, whatever the number of their tests: dealt out before the others."""

_OWN = Path(tempfile.mkdtemp(prefix="course-tests-"))
for _variable, _name in {"COURSE_HOME": "home", "COURSE_RUNTIME": "runtime", "COURSE_SHARED": "shared"}.items():
    (_OWN / _name).mkdir(mode=0o700)
    os.environ[_variable] = str(_OWN / _name)


def unit_of(nodeid: str) -> str:
    """What is dealt out as one: a file, for its tests share ranks, servers and decks; or one long test."""
    file = nodeid.partition("::")[0]
    return nodeid if file in ONE_BY_ONE else file


def by_turns(nodeids: list[str]) -> list[str]:
    """The units in the order in which processes take them: a long test, then a file, which mostly waits.

    Long files come first, then those with most tests: what is left at the end is short, and all processes end together.
    """
    tests_in: dict[str, int] = {}
    for nodeid in nodeids:
        tests_in[unit_of(nodeid)] = tests_in.get(unit_of(nodeid), 0) + 1
    long = {f"tests/{name}.py": -position for position, name in enumerate(LONG)}
    files = [unit for unit in tests_in if "::" not in unit]
    files.sort(key=lambda unit: (long.get(unit, -len(LONG)), tests_in[unit]), reverse=True)
    kind = {unit: ONE_BY_ONE.index(unit.partition("::")[0]) for unit in tests_in if "::" in unit}
    pairs = itertools.zip_longest(files, sorted(kind, key=kind.__getitem__))
    return [unit for pair in pairs for unit in pair if unit]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests in that order where several processes share them."""
    if hasattr(config, "workerinput"):
        position = {unit: number for number, unit in enumerate(by_turns([item.nodeid for item in items]))}
        items.sort(key=lambda item: position[unit_of(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """Deal out units in the order in which they were collected."""
    from xdist.scheduler import LoadScopeScheduling

    class ByUnit(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    config.option.loadscopereorder = False
    return ByUnit(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function):
    """A stop button that a test pressed too early or too late fails this test; it would end the process of them all."""
    try:
        return (yield)
    except KeyboardInterrupt:
        if not hasattr(pyfuncitem.config, "workerinput"):  # then a person pressed it
            raise
        pytest.fail("KeyboardInterrupt, outside of what was to be interrupted")


def pytest_sessionfinish() -> None:
    """Remove the folders; the process that deals out the tests has made some too."""
    for folder in RanksFolder.all():  # of a test that failed before it could stop its ranks
        folder.end()
    shutil.rmtree(_OWN, ignore_errors=True)


_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    """Note at the test that it failed, for its fixtures."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture(scope="session")
def _shared_ranks() -> Iterator[list]:
    forking.fork_server(torch=True)
    kept: list = []
    yield kept
    for ranks in kept:
        ranks.stop()


@pytest.fixture
def four_ranks(_shared_ranks, request):
    """Four ranks, the same ones for all tests; where an earlier test has failed or has ended them, new ones.

    What a test sends them travels by value, so that they need not import its module, with pytest and all.
    """
    import course_utils as course
    from course_utils.ranks.start import current

    cloudpickle.register_pickle_by_value(request.module)
    running = current()
    if running is None or running not in _shared_ranks or not running.healthy or running.world_size != 4:
        _shared_ranks[:] = [course.start(4)]
    yield _shared_ranks[0]
    if request.node.stash.get(_FAILED, False):  # whatever has hung in them would hang in all tests to come
        _shared_ranks.pop().stop()


@pytest.fixture
def seed() -> int:
    """A fresh seed each time, or COURSE_SEED to repeat a run; a failing test shows it among its values."""
    given = settings.SEED.value()
    return int.from_bytes(os.urandom(4), "big") if given is None else given
