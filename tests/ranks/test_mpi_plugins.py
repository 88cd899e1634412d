"""How srun tells ranks of each other: by what their MPI speaks; if this Slurm has none of it, a line says so first."""

from collections.abc import Callable
from pathlib import Path

import pytest

from course_utils.errors import CourseError
from course_utils.ranks.slurm import batch_job


@pytest.fixture
def slurm_with(tmp_path: Path, monkeypatch) -> Callable[[str, str], None]:
    """A srun that has these plugins, and an mpi4py that is built with this library."""
    monkeypatch.delenv("COURSE_SRUN_MPI", raising=False)

    def make(plugins: str, library: str) -> None:
        lines = "".join(f"\\t{plugin}\\n" for plugin in plugins.split())
        (tmp_path / "srun").write_text(f"#!/bin/sh\nprintf 'MPI plugin types are...\\n{lines}'\n")
        (tmp_path / "srun").chmod(0o700)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.setattr(batch_job, "mpi_library", lambda: library)

    return make


@pytest.mark.parametrize(
    ("library", "plugins", "chosen"),
    [
        ("MPICH 5.0.2", "none pmix pmi2 cray_shasta", "pmi2"),
        ("Intel(R) MPI 2021.14", "none pmix pmi2", "pmi2"),
        ("MVAPICH Version : 3.0", "none pmix", "pmix"),
        ("Open MPI 4.1.4", "none pmi2 pmix cray_shasta", "pmix"),
        ("Open MPI 4.1.4", "none pmi2", "pmi2"),
        ("Open MPI 5.0.6", "none pmi2 pmix", "pmix"),
        ("Open MPI 5.0.6", "", "pmix"),  # srun does not answer
    ],
)
def test_the_plugin_is_one_that_the_ranks_mpi_speaks(slurm_with, library, plugins, chosen) -> None:
    slurm_with(plugins, library)
    assert batch_job.mpi_plugin() == chosen


@pytest.mark.parametrize(
    ("library", "plugins", "needed"),
    [
        ("Open MPI 5.0.6", "none pmi2", "they need --mpi=pmix, and `srun --mpi=list` names none and pmi2"),
        ("Open MPI 4.1.4", "none", "they need --mpi=pmix or --mpi=pmi2, and"),
        ("MPICH 5.0.2", "none", "--mpi=pmi2 or --mpi=cray_shasta or --mpi=pmix"),
    ],
)
def test_where_no_plugin_fits_a_line_says_so_before_the_job(slurm_with, monkeypatch, library, plugins, needed) -> None:
    slurm_with(plugins, library)
    with pytest.raises(CourseError, match=f"ranks of {library}.*{needed}"):
        batch_job.mpi_plugin()
    monkeypatch.setenv("COURSE_SRUN_MPI", "own")
    assert batch_job.mpi_plugin() == "own", "whoever names one knows better"


def test_where_no_library_is_found_here_it_is_taken_for_mpich(slurm_with, monkeypatch) -> None:
    def none() -> str:
        raise CourseError("mpi4py finds no MPI library")

    slurm_with("none pmi2 pmix", "")
    monkeypatch.setattr(batch_job, "mpi_library", none)
    assert batch_job.mpi_plugin() == "pmi2"
