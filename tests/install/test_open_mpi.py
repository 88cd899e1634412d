"""A site's Open MPI: ranks start, links, messages, checks, marks and jobs work as with MPICH.

The Python of these tests has an mpi4py that is built against Open MPI (tools/set-up-openmpi).
"""

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_here import obstacle as slurm_obstacle
from slurm_here import slurm_here

from course_utils.ranks.links import network
from course_utils.ranks.processes.launch_ranks import find_mpiexec
from course_utils.syllabus import ROOT
from tests.teacher.submissions import needs_a_box

BESIDE = Path(sys.prefix) / "openmpi" / "bin" / "python"
LESSONS = ("04_messages", "05_allreduce")

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Iterator[dict[str, str]]:
    """The environment of a site's user, in which nothing of .venv is on the PATH."""
    if not BESIDE.exists():
        line = "Open MPI's mpi4py is not installed: tools/set-up-openmpi puts it beside the course"
        assert os.environ.get("CI") != "true", line
        pytest.skip(line)
    own = tmp_path_factory.mktemp("own")
    path = [part for part in os.environ["PATH"].split(os.pathsep) if Path(part) != Path(sys.prefix, "bin")]
    folders = {f"COURSE_{name}": str(own / name.lower()) for name in ("HOME", "RUNTIME", "SHARED")}
    more = {"PATH": os.pathsep.join(path), "PYTHONPATH": str(ROOT), "TQDM_DISABLE": "1", "TMPDIR": str(own)}
    yield os.environ | folders | more
    assert not list(own.glob("ompi.*")), "Open MPI's files are in the ranks' folder, and go with it"


def run(environment: dict[str, str], *arguments: str | Path, seconds: float = 380.0) -> str:
    """What Open MPI's Python prints, which must end well."""
    done = subprocess.run(
        [BESIDE, *arguments], env=environment, capture_output=True, text=True, timeout=seconds, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


PROGRAM = """
    import json, os, sys
    import course_utils as course

    found = {}

    def call(name, function, **options):
        try:
            found[name] = ranks.run(function, **options).results
        except course.CourseError as error:
            found[name] = str(error)

"""


def found_by(environment: dict[str, str], program: str, **more: str) -> dict:
    """What a program has found: each call's results, or the line of its error."""
    code = textwrap.dedent(PROGRAM) + textwrap.dedent(program) + "\nranks.stop()\nprint(json.dumps(found))\n"
    return json.loads(run(environment | more, "-c", code).splitlines()[-1])


def shared_memory() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if name.startswith("vader_segment")}


EIGHT = """
    ranks = course.start(8)
    found["line"] = str(ranks)

    def cores(comm):
        return sorted(os.sched_getaffinity(0)), comm.allreduce(1), course_variables(os.environ)

    def course_variables(environment):
        from course_utils.ranks.processes.open_mpi import OWN_LAUNCH

        return sorted(OWN_LAUNCH.keys() & environment.keys())

    def waits_for_the_next(comm):
        comm.recv(source=(comm.rank + 1) % comm.size)

    def puts_to_the_next(comm):
        import numpy as np
        from mpi4py import MPI

        memory = np.zeros(1)
        window = MPI.Win.Create(memory, comm=comm)
        window.Fence()
        window.Put(np.full(1, float(comm.rank)), (comm.rank + 1) % comm.size)
        window.Fence()
        window.Free()
        return memory[0]

    def ends(comm):
        if comm.rank == 3:
            os._exit(7)
        comm.barrier()

    def crashes(comm):
        if comm.rank == 1:
            os.kill(os.getpid(), 11)
        comm.barrier()

    call("cores", cores)
    call("deadlock", waits_for_the_next)
    call("after", lambda comm: comm.allreduce(1))
    call("window", puts_to_the_next)
    call("end", ends)
    ranks.restart()
    call("again", lambda comm: comm.allreduce(1))
    call("crash", crashes)
"""


@pytest.mark.parametrize("fork", ["1", "0"])
def test_eight_ranks_start_whatever_the_cores_and_their_ends_are_named(environment, fork) -> None:
    before = shared_memory()
    found = found_by(environment, EIGHT, COURSE_FORK=fork)
    assert "8 ranks on this machine: Open MPI" in found["line"]
    assert found["cores"] == [[sorted(os.sched_getaffinity(0)), 8, []]] * 8, "not bound, and nothing left to inherit"
    assert found["deadlock"].startswith("deadlock: rank 0 is waiting for 1, 1 for 2,")
    assert found["after"] == found["again"] == [8] * 8
    assert found["window"] == [7, *range(7)]
    assert found["end"].startswith("rank 3 ended itself, with exit code 7.")
    assert found["crash"].startswith("rank 1 was ended by signal 11, SIGSEGV")
    assert shared_memory() <= before


LINKS = """
    import time

    ranks = course.start(4, link="50 Mbit/s", latency="1 ms")
    found["line"] = str(ranks)

    def message(comm):
        import numpy as np

        buffer = np.zeros(500_000, np.uint8)
        comm.Barrier()
        began = time.monotonic()
        if comm.rank == 0:
            comm.Send(buffer, dest=1)
        elif comm.rank == 1:
            comm.Recv(buffer, source=0)
        return time.monotonic() - began

    def window(comm):
        import numpy as np
        from mpi4py import MPI

        memory = MPI.Win.Allocate(500_000, comm=comm)
        memory.Fence()
        began = time.monotonic()
        if comm.rank == 0:
            memory.Put(np.zeros(500_000, np.uint8), 1)
        memory.Fence()
        seconds = time.monotonic() - began
        memory.Free()
        return seconds

    call("message", message)
    call("window", window)
"""


def test_messages_and_windows_go_over_the_links(environment) -> None:
    if reason := network.obstacle():
        pytest.skip(f"no nodes here: {reason}")
    found = found_by(environment, LINKS)
    assert "Open MPI" in found["line"]
    assert found["message"][1] > 0.075 and found["window"][1] > 0.075, "500 KB take 80 ms at 50 Mbit/s"


@pytest.mark.parametrize("lesson", LESSONS)
def test_pages_run(environment, lesson) -> None:
    said = run(environment, ROOT / "tests" / "run_notebook.py", ROOT / "notebooks" / f"{lesson}.ipynb")
    assert "passed" in said


@pytest.mark.parametrize("lesson", LESSONS)
@pytest.mark.parametrize("ranks", ["4", "8"])
def test_right_answers_are_right(environment, lesson, ranks) -> None:
    solution = ROOT / "exercises" / "solutions" / f"{lesson}.ipynb"
    line, *verdicts = run(environment, "-m", "course_utils.cli", "check", "--ranks", ranks, solution).splitlines()
    assert f"{ranks} ranks on this machine: Open MPI" in line
    assert [verdict[0] for verdict in verdicts] == ["✓"] * {"04_messages": 5, "05_allreduce": 6}[lesson], verdicts


@needs_a_box
def test_right_answers_get_their_marks_in_a_sandbox(environment, tmp_path) -> None:
    solutions = [ROOT / "exercises" / "solutions" / f"{lesson}.ipynb" for lesson in LESSONS]
    said = run(environment, "-m", "course_utils.cli", "grade", *solutions, "--out", tmp_path / "marks.csv")
    assert "11 of 11 marks." in said, said


# --- two MPIs ---------------------------------------------------------------------------------------------------------

START = """
    try:
        ranks = course.start(2)
    except course.CourseError as error:
        print(error)
"""


@pytest.mark.parametrize("mpi4py", ["Open MPI", "MPICH"])
def test_the_mpiexec_of_the_other_mpi_is_named(environment, mpi4py) -> None:
    of_mpich, of_open_mpi = find_mpiexec(), str(BESIDE.with_name("mpiexec"))
    python, mpiexec = (BESIDE, of_mpich) if mpi4py == "Open MPI" else (sys.executable, of_open_mpi)
    own = environment | {"COURSE_MPIEXEC": mpiexec}
    command = [python, "-c", textwrap.dedent(PROGRAM) + textwrap.dedent(START)]
    said = subprocess.run(command, env=own, capture_output=True, text=True, timeout=60, check=False).stdout
    belongs = f"{mpiexec} belongs to {'MPICH' if mpi4py == 'Open MPI' else 'Open MPI'}, and mpi4py was built with"
    assert f"{belongs} {mpi4py}" in said


@needs_a_box
def test_marks_need_mpi4pys_own_mpiexec_and_say_so_at_once(environment, tmp_path) -> None:
    solution = ROOT / "exercises" / "solutions" / "04_messages.ipynb"
    command = [BESIDE, "-m", "course_utils.cli", "grade", solution, "--out", tmp_path / "marks.csv"]
    own = environment | {"COURSE_MPIEXEC": str(Path(find_mpiexec()).resolve()), "COLUMNS": "1000"}
    done = subprocess.run(command, env=own, capture_output=True, text=True, timeout=200, cwd=ROOT, check=False)
    said = " ".join((done.stdout + done.stderr).split())
    assert "belongs to MPICH, and mpi4py was built with Open MPI" in said


# --- a job of Slurm's -------------------------------------------------------------------------------------------------

JOB = """
    ranks = course.start(4, where="slurm", nodes=2)
    found["line"] = str(ranks)
    call("sum", lambda comm: (comm.allreduce(1), os.environ["SLURMD_NODENAME"]))
    call("deadlock", lambda comm: comm.recv(source=(comm.rank + 1) % comm.size))
"""
ONE_ADDRESS = "ip addr del $(ip -o -4 addr show dev eth0 secondary | awk '{print $4}') dev eth0"
"""Each node here has two addresses on one interface, of which Open MPI believes but one."""


def test_ranks_of_a_job_on_two_nodes_find_each_other_by_pmix(environment, tmp_path_factory) -> None:
    if why := slurm_obstacle():
        assert os.environ.get("CI") != "true", f"under CI=true Slurm must run: {why}"
        pytest.skip(why)
    with slurm_here([tmp_path_factory.getbasetemp()]) as slurm, pytest.MonkeyPatch.context() as patch:
        if slurm.apart:
            slurm.call("srun", "--nodes=2", "sh", "-c", ONE_ADDRESS)
        slurm.set_variables(patch)
        own = {name: os.environ[name] for name in ("SLURM_CONF", "COURSE_ADDRESS")}
        patch.delenv("COURSE_SRUN_MPI", raising=False)
        found = found_by(environment, JOB, **own, **{"PATH": f"{environment['PATH']}:/usr/sbin:/sbin"})
    assert re.search(r"4 ranks on 2 nodes \(c1, c2\) of Slurm's job: Open MPI", found["line"])
    assert found["sum"] == [[4, "c1"], [4, "c1"], [4, "c2"], [4, "c2"]]
    assert found["deadlock"].startswith("deadlock: rank 0 is waiting for 1")
