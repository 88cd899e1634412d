"""The exercise `slurm_script` under a real Slurm: right answers are handed in and run, and sbatch is asked."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from slurm_here import SlurmHere, obstacle, slurm_here, wait_until

from course_utils.checks.registry import find
from course_utils.checks.run_cases import outcomes
from course_utils.lessons.gpu_nodes.checks import batch
from course_utils.lessons.gpu_nodes.checks.slurm_options import SBATCH, SRUN, UnknownOption
from course_utils.lessons.gpu_nodes.checks.slurm_script import EXERCISE
from course_utils.lessons.gpu_nodes.slurm_script import slurm_script

RIGHT = [slurm_script, *(program.function() for program in find("slurm_script").written.right)]
TASK = "sh -c 'echo \"$SLURM_PROCID $SLURM_CPUS_PER_TASK $OMP_NUM_THREADS $MASTER_ADDR:$MASTER_PORT\"; exit {code}'"


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmHere]:
    """Two nodes, c1 and c2; `sbatch` finds them."""
    if why := obstacle():
        assert os.environ.get("CI") != "true", f"under CI=true Slurm must run: {why}"
        pytest.skip(why)
    with slurm_here() as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        yield running


@pytest.fixture(scope="module")
def jobs(slurm, tmp_path_factory) -> dict[str, tuple[str, Path]]:
    """All right answers, handed in at once: answer → number of its job, and its output. The first ends with 75."""
    found = {}
    for function in RIGHT:
        folder = tmp_path_factory.mktemp("job")
        command = TASK.format(code=75 if function is slurm_script else 0)
        (folder / "job.sh").write_text(function(command, nodes=2, tasks_per_node=2, cores_per_task=2))
        number = slurm.call("sbatch", "--parsable", f"--chdir={folder}", str(folder / "job.sh")).strip()
        found[function.__module__] = number, folder / f"train-{number}.out"
    return found


@pytest.mark.parametrize("answer", [function.__module__ for function in RIGHT])
def test_a_right_answer_starts_its_tasks_on_both_nodes(slurm, jobs, answer) -> None:
    number, output = jobs[answer]
    assert wait_until(lambda: len(lines_of_tasks(output)) >= 4, 60), output.exists() and output.read_text()
    lines = sorted(lines_of_tasks(output)[:4])
    assert [line[0] for line in lines] == ["0", "1", "2", "3"]
    assert {(cores, threads) for _, cores, threads, _ in lines} == {("2", "2")}
    assert len({meeting for *_, meeting in lines}) == 1
    ended = "Restarts=1" if answer == slurm_script.__module__ else "JobState=COMPLETED"
    assert wait_until(lambda: ended in slurm.call("scontrol", "show", "job", number), 60), "75 queues it again"


def lines_of_tasks(output: Path) -> list[list[str]]:
    """The words of each line that a task wrote, without `srun --label`'s number of the task.

    srun's own lines come between them when tasks end with 75.
    """
    lines = output.read_text().splitlines() if output.exists() else []
    return [found[1].split() for line in lines if (found := re.match(r"(?:\d: )?(\d .*)", line))]


def test_slurm_itself_is_asked_where_it_answers(slurm) -> None:
    options = {"minutes": 5, "warn_seconds": 30}
    for function in RIGHT:
        assert answer_of_slurm(function, options) == "yes", function.__module__
    words = answer_of_slurm(lambda *_, **__: "\n#!/bin/sh\ntrue", options)
    assert "does not look like a batch script" in words
    words = answer_of_slurm(lambda *_, **__: "#!/bin/sh\n#SBATCH --ndoes=2\ntrue", options)
    assert "unrecognized option" in words


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        (["--ntasks-per-node=2", "--ntasks=4"], ""),
        (["--ntasks-per-node=1", "--ntasks=4"], "more-tasks-than-nodes-take"),
        (["--ntasks-per-node=2", "--gpus-per-node=2", "--gpus-per-task=1"], ""),
        (["--ntasks-per-node=2", "--gpus-per-node=2", "--gpus-per-task=2"], "gpus-contradict"),
        (["--gpus-per-node=2", "--gpus=4"], ""),
        (["--gpus-per-node=2", "--gpus=2"], "gpus-contradict"),
        (["--mem=90M", "--mem-per-cpu=90M"], "memory-twice"),
        (["--ntasks-per-node=two"], "no-number"),
    ],
)
def test_options_that_contradict_each_other_are_rejected_as_by_slurm(slurm, asked, key) -> None:
    text = "".join(f"#SBATCH {option}\n" for option in ["--nodes=2", "--time=1", *asked])
    words = answer_of_slurm(lambda *_, **__: f"#!/bin/sh\n{text}true\n", {})
    try:
        batch.asked_for(f"#!/bin/sh\n{text}")
        found = ""
    except batch.Rejected as rejected:
        found = rejected.key
    assert found == key
    assert (words == "yes") == (key == ""), words


def answer_of_slurm(function, options) -> str:
    """What this Slurm says to a script; asked again, for a minute, where a busy controller gives no answer."""
    asked = []

    def answered() -> bool:
        asked.append(batch.taken_by_slurm(function, "true", options))
        return asked[-1][0]

    assert wait_until(answered, 60), asked
    return asked[-1][1]


def test_a_controller_that_does_not_answer_is_no_fault_of_the_script(monkeypatch) -> None:
    said = iter(["unrecognized option '--ndoes=2'", "no Slurm"])
    monkeypatch.setattr(batch, "said_by_sbatch", lambda text: next(said))
    assert batch.taken_by_slurm(slurm_script, "true", {}) == (False, "no Slurm"), "gone between the two questions"
    monkeypatch.setattr(batch, "said_by_sbatch", lambda text: "no partition specified")
    assert batch.taken_by_slurm(slurm_script, "true", {}) == (False, "no partition specified"), "it rejects all"
    rejected = {"true": None}
    monkeypatch.setattr(batch, "said_by_sbatch", lambda text: rejected.get(text.split()[-1], "bad option"))
    assert batch.taken_by_slurm(lambda *_, **__: "#!/bin/sh\nfalse", "", {}) == (True, "bad option")


@pytest.mark.parametrize(
    "words",
    [
        "sbatch: error: Unable to contact slurm controller (connect failure)",
        "allocation failure: Socket timed out on send/recv operation",
        "sbatch: fatal: Could not establish a configuration source",
        "allocation failure: Protocol authentication error",
    ],
)
def test_words_of_a_broken_link_are_no_opinion_of_the_script(words, tmp_path, monkeypatch) -> None:
    (tmp_path / "sbatch").write_text(f"#!/bin/sh\necho '{words}' >&2\nexit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert batch.said_by_sbatch("#!/bin/sh\ntrue\n") == batch.NO_SLURM


def test_without_a_slurm_the_check_says_so(four_ranks) -> None:
    *_, last = EXERCISE.cases(np.random.default_rng(0), 4)
    said = EXERCISE.praise(*outcomes([(last, slurm_script)], four_ranks))
    assert "there is no Slurm here" in said or "the Slurm here accepts it" in said


@pytest.mark.parametrize(
    ("time", "minutes"),
    [("90", 90), ("90:30", 90.5), ("1:30:00", 90), ("2-0", 2880), ("1-1:30", 1530), ("0-0:1:30", 1.5), ("00:90", 1.5)],
)
def test_times_are_read_as_slurm_reads_them(time, minutes) -> None:
    assert batch.minutes_of(time) == minutes


@pytest.mark.parametrize("time", ["", "1h", "1:2:3:4", "1-", "-5"])
def test_what_is_no_time_of_slurms_is_rejected(time) -> None:
    with pytest.raises(ValueError, match="Invalid --time specification"):
        batch.minutes_of(time)


def test_of_two_options_that_exclude_each_other_the_last_counts() -> None:
    def asked(*options: str) -> dict:
        return batch.asked_for("#!/bin/sh\n" + "".join(f"#SBATCH {option}\n" for option in options))

    assert asked("--requeue", "--no-requeue")[batch.REQUEUE] == "not said"
    assert asked("--no-requeue", "--requeue")[batch.REQUEUE] == "yes"
    assert asked("--nodes=2", "--ntasks-per-node=4", "--ntasks=4")[batch.TASKS] == 2, "--ntasks is the number of all"
    assert asked("--nodes=2", "--tasks-per-node=4", "--ntasks-per-node=2")[batch.TASKS] == 2
    assert asked("--mem-per-cpu=5G", "--cpus-per-task=4", "--ntasks-per-node=2")[batch.MEMORY] == "40G"


def test_options_are_read_up_to_the_first_command() -> None:
    asked = "#SBATCH -N 2 -t5   # short\n\n# a note\n#SBATCH --gres=gpu:a100:4 --requeue\n"
    text = f"#!/bin/sh\n{asked}true\n#SBATCH --nodes=9\n"
    assert batch.options_of(text) == {"nodes": "2", "time": "5", "gres": "gpu:a100:4", "requeue": ""}
    assert batch.asked_for(text)[batch.GPUS] == 4
    with pytest.raises(ValueError, match="option --node not a unique prefix"):
        batch.options_of("#!/bin/sh\n#SBATCH --node=2\n")


@pytest.mark.parametrize("program", [SBATCH, SRUN], ids=lambda program: program.program)
def test_every_option_of_the_installed_slurm_is_known(program, tmp_path, monkeypatch) -> None:
    if why := obstacle():
        assert os.environ.get("CI") != "true", f"under CI=true Slurm must run: {why}"
        pytest.skip(why)
    (tmp_path / "slurm.conf").write_text("ClusterName=x\nSlurmctldHost=h\nAuthType=auth/none\n")
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    told = subprocess.run([program.program, "--help"], capture_output=True, text=True, check=True).stdout
    options = re.findall(r"^  +(?:-(\w),? +)?--([\w-]+)(\[?=)?", told, re.MULTILINE)
    assert len(options) > 70
    for letter, name, sign in options:
        if name in ("container", "mem", "resv-ports", "no-kill", "kill-on-bad-exit"):
            sign = "="  # the help leaves it out; with `=` a value that may be left out is right, too
        words = [f"--{name}=7"] if sign else [f"--{name}"]
        assert program.read(words) == ({name: "7" if sign else ""}, []), words
        if letter:
            assert program.read([f"-{letter}7" if sign else f"-{letter}"]) == ({name: "7" if sign else ""}, [])


def test_options_are_read_as_getopt_long_reads_them() -> None:
    asked = "--exclusive --hint=nomultithread --nice=-5 -k -N2 -n 4 --part=gpu --comment=-x"
    options, rest = SBATCH.read(shlex.split(asked + " train.py -k --nodes=7"))
    assert options == {
        "exclusive": "",
        "hint": "nomultithread",
        "nice": "-5",
        "no-kill": "",
        "nodes": "2",
        "ntasks": "4",
        "partition": "gpu",
        "comment": "-x",
    }
    assert rest == ["train.py", "-k", "--nodes=7"]
    assert SBATCH.read(["-N=2"]) == ({"nodes": "=2"}, [])
    assert SRUN.read(["-W", "30", "-K0", "-l", "python", "-K"]) == (
        {"wait": "30", "kill-on-bad-exit": "0", "label": ""},
        ["python", "-K"],
    )
    for program, word in [(SBATCH, "--ndoes=2"), (SBATCH, "--wait=5"), (SBATCH, "--time"), (SRUN, "--requeue")]:
        with pytest.raises(UnknownOption, match=f"{program.program}: error: option {word.partition('=')[0]} "):
            program.read([word])


def test_a_script_with_rarer_options_is_read() -> None:
    lines = "#SBATCH --exclusive --hint=nomultithread\n#SBATCH --contiguous -k\n#SBATCH --tasks-per-node=3 --nodes=2\n"
    asked = batch.asked_for(f"#!/bin/sh\n{lines}true\n")
    assert (asked[batch.NODES], asked[batch.TASKS]) == (2, 3)
    with pytest.raises(batch.Rejected, match="'nodes=2' is no option"):
        batch.options_of("#!/bin/sh\n#SBATCH nodes=2\ntrue\n")
