"""Ranks that do not start: each launcher that cannot start them ends the wait at once, and its own words are shown."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from course_utils.errors import CourseError
from course_utils.ranks.processes import launch_ranks
from course_utils.ranks.processes.failed_start import (
    FailedStart,
    Obstacle,
    are_different,
    failed_start,
    failed_start_text,
)
from course_utils.ranks.processes.launch_ranks import ends_of, environment_of, launchers_mpi
from course_utils.ranks.processes.open_mpi import OWN_LAUNCH, remove_own_launch
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.start import start_separate_ranks

SOON = 20.0
"""Seconds: ranks that come up may take four times as long on a busy machine."""

Launcher = Callable[..., Path]


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch) -> Launcher:
    """Make a script the launcher of this test."""

    def make(text: str, mode: int = 0o755) -> Path:
        file = tmp_path / "mpiexec"
        file.write_text(text)
        file.chmod(mode)
        monkeypatch.setenv("COURSE_MPIEXEC", str(file))
        return file

    return make


@pytest.fixture
def obstacles(monkeypatch) -> list[Obstacle]:
    """What is found to keep ranks from starting, as it is found."""
    from course_utils.ranks import launch_sites

    found: list[Obstacle] = []

    def noted(folder: RanksFolder, behind_links: bool) -> FailedStart:
        found.append((failed := failed_start(folder, behind_links)).obstacle)
        return failed

    monkeypatch.setattr(launch_sites, "failed_start", noted)
    return found


def error_of_start(ranks: int = 2) -> str:
    """The line that says why ranks did not start, which takes no longer than to start some."""
    began = time.monotonic()
    with pytest.raises(CourseError) as caught:
        start_separate_ranks(ranks)
    assert time.monotonic() - began < SOON
    return str(caught.value)


SAYS_MUCH = "#!/bin/sh\necho There are not enough slots\nseq 100\necho the end\n"


@pytest.mark.parametrize("status", [0, 1])
def test_what_a_launcher_says_is_shown_from_its_first_line_as_soon_as_it_ends(launcher, obstacles, status) -> None:
    file = launcher(f"{SAYS_MUCH}exit {status}\n")
    text = error_of_start()
    assert obstacles == [Obstacle.LAUNCHER_ENDED]
    assert f"{file}, which starts them, has ended. What it wrote:\nThere are not enough slots\n1\n2\n" in text
    assert text.endswith("\n100\nthe end") and "\n50\n" not in text


def test_a_launcher_may_say_nothing(launcher, obstacles) -> None:
    launcher("#!/bin/sh\nexit 3\n")
    assert error_of_start().endswith("has ended. It wrote nothing.")


@pytest.mark.parametrize(
    ("wrote", "obstacle", "advice"),
    [
        ("ModuleNotFoundError: No module named 'mpi4py'", Obstacle.NO_MPI4PY, "`make setup` installs it"),
        (
            "ImportError: libmpi.so.40: cannot open shared object file: No such file or directory",
            Obstacle.NO_LIBRARY,
            "Load the module of your site's MPI",
        ),
        ("RuntimeError: cannot load MPI library", Obstacle.NO_LIBRARY, "Load the module of your site's MPI"),
    ],
)
def test_what_mpi4py_misses_is_named(launcher, obstacles, wrote, obstacle, advice) -> None:
    launcher(f'#!/bin/sh\necho "{wrote}" >&2\nexit 1\n')
    assert advice in error_of_start()
    assert obstacles == [obstacle]


def test_an_open_mpi_that_links_cut_off_from_its_launcher_is_named(launcher, tmp_path) -> None:
    launcher("#!/bin/sh\n")
    folder = RanksFolder(tmp_path)
    (tmp_path / "ranks.log").write_text("[c1:31317] OPAL ERROR: Unreachable in file pmix3x_client.c at line 112\n")
    (tmp_path / "facts.json").write_text('{"launcher": [1, null]}')
    failed = failed_start(folder, behind_links=True)
    assert failed.obstacle == Obstacle.BEHIND_LINKS and "Leave link, latency and slow out" in failed_start_text(failed)
    assert failed_start(folder).obstacle == Obstacle.LAUNCHER_ENDED


@pytest.mark.parametrize(
    ("mpiexec", "component", "is_obstacle"),
    [
        ("mpiexec (OpenRTE) 4.1.5", "pmix3x", True),
        ("mpiexec (OpenRTE) 4.1.4", "ext3x", False),
        ("mpiexec (Open MPI) 5.0.6", "", False),
        ("HYDRA build details:", "pmix3x", False),
    ],
)
def test_an_open_mpi_with_its_own_pmix_has_no_links(launcher, tmp_path, mpiexec, component, is_obstacle) -> None:
    launcher(f"#!/bin/sh\necho '{mpiexec}'\n")
    (tmp_path / "ompi_info").write_text(f"#!/bin/sh\necho 'mca:pmix:{component}:version:'\n")
    (tmp_path / "ompi_info").chmod(0o755)
    launch_ranks.links_obstacle.cache_clear()
    reason = launch_ranks.links_obstacle()
    launch_ranks.links_obstacle.cache_clear()
    assert (reason is not None) == is_obstacle


EACH_ALONE = """#!/bin/sh
[ "$1" = --version ] && echo "mpiexec (OpenRTE) 4.1.4" && exit
shift 2
for rank in 0 1; do "$@" & done
wait
"""


def test_the_launcher_of_a_different_mpi_is_named_with_both(launcher) -> None:
    file, library = launcher(EACH_ALONE), launch_ranks.mpi_library()
    if library.startswith("Open MPI"):
        pytest.skip("this is a launcher of mpi4py's own MPI")
    assert f"{file} belongs to Open MPI, and mpi4py was built with {library}" in error_of_start()


def test_processes_that_do_not_know_of_each_other_end_the_wait_whatever_started_them(launcher) -> None:
    launcher(EACH_ALONE.replace("mpiexec (OpenRTE) 4.1.4", "a launcher"))
    assert "2 processes started, but they do not know of each other" in error_of_start()


@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_what_cannot_be_run_is_named(launcher, tmp_path, monkeypatch, mode) -> None:
    file = launcher("neither a program nor a script", mode)
    assert str(file) in error_of_start()
    monkeypatch.setenv("COURSE_MPIEXEC", str(tmp_path / "nowhere"))
    assert f"COURSE_MPIEXEC={tmp_path}/nowhere names no program" in error_of_start()


def test_a_launcher_on_the_path_may_be_named_without_its_folder(launcher, tmp_path, monkeypatch) -> None:
    file = launcher("#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("COURSE_MPIEXEC", "mpiexec")
    assert launch_ranks.find_mpiexec() == str(file)


def test_of_a_long_log_both_ends_are_shown_and_of_a_short_one_all() -> None:
    rule = "-" * 74
    assert ends_of(f"{rule}\nfirst\n\nsecond\n{rule}\n") == ["first", "second"]
    ends = ends_of("\n".join(map(str, range(100))))
    assert (ends[0], ends[-1], len(ends)) == ("0", "99", 15) and "…" in ends


@pytest.mark.parametrize(
    ("version", "mpi"),
    [
        ("mpiexec (OpenRTE) 4.1.4", "Open MPI"),
        ("mpirun (Open MPI) 5.0.6", "Open MPI"),
        ("prterun (PRRTE) 3.0.7", "Open MPI"),
        ("HYDRA build details:\n    Version:  5.0.2", "MPICH"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.14", "MPICH"),
        ("srun", ""),
    ],
)
def test_a_launcher_says_which_mpi_it_belongs_to(launcher, version, mpi) -> None:
    assert launchers_mpi(str(launcher(f"#!/bin/sh\necho '{version}'\n"))) == mpi


def test_only_launchers_and_libraries_that_are_known_are_different() -> None:
    assert are_different("Open MPI", "MPICH 5.0.2") and are_different("MPICH", "Open MPI 4.1.4")
    assert not are_different("MPICH", "Intel(R) MPI 2021.14") and not are_different("Open MPI", "Open MPI 5.0.6")
    assert not are_different("", "MPICH 5.0.2") and not are_different("Open MPI", "MVAPICH Version : 3.0")


# --- what the course sets for Open MPI --------------------------------------------------------------------------------


def environment_of_launcher(launcher: Launcher, tmp_path: Path) -> dict[str, str]:
    launcher(f'#!/bin/sh\n[ "$1" = --version ] || env -0 > {tmp_path}/environment\n')
    error_of_start()
    lines = (tmp_path / "environment").read_text().split("\0")
    return dict(line.split("=", 1) for line in lines if line)


def test_the_courses_own_launcher_may_start_more_ranks_than_cores_and_for_root(launcher, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OMPI_MCA_btl", "self,tcp")  # a site's or a learner's own
    environment = environment_of_launcher(launcher, tmp_path)
    assert {name: environment[name] for name in OWN_LAUNCH} == OWN_LAUNCH | {"OMPI_MCA_btl": "self,tcp"}
    assert Path(environment["OMPI_MCA_orte_tmpdir_base"]) == Path(environment["COURSE_RANKS"])
    assert not OWN_LAUNCH.keys() & os.environ.keys() - {"OMPI_MCA_btl"}, "a learner's own mpiexec must not follow them"


def test_the_courses_own_launcher_takes_no_orders_from_a_job_that_the_notebook_runs_in(
    launcher, tmp_path, monkeypatch
) -> None:
    of_the_job = {
        "SLURM_JOB_ID": "7",
        "SLURM_NODELIST": "c[1-2]",
        "PMIX_RANK": "0",
        "PMI_FD": "9",
        "PBS_NODEFILE": "/f",
    }
    for name, value in (of_the_job | {"SLURM_CONF": "/etc/slurm.conf", "CUDA_VISIBLE_DEVICES": "1"}).items():
        monkeypatch.setenv(name, value)
    environment = environment_of_launcher(launcher, tmp_path)
    assert not of_the_job.keys() & environment.keys()
    assert (environment["SLURM_CONF"], environment["CUDA_VISIBLE_DEVICES"]) == ("/etc/slurm.conf", "1")


def test_jobs_of_slurm_and_what_a_learner_starts_on_a_rank_do_not_follow_them(four_ranks, tmp_path) -> None:
    assert not OWN_LAUNCH.keys() & environment_of(RanksFolder(tmp_path), 1).keys()
    assert not OWN_LAUNCH.keys() & set(four_ranks.run(lambda comm: list(os.environ)).results[0])
    environment = OWN_LAUNCH | {"OMPI_MCA_btl": "self,tcp", "HOME": "/"}
    remove_own_launch(environment)
    assert environment == {"OMPI_MCA_btl": "self,tcp", "HOME": "/"}


def test_this_python_has_mpi4pys_own_launcher() -> None:
    assert not are_different(launchers_mpi(launch_ranks.find_mpiexec()), launch_ranks.mpi_library()), sys.executable
