"""Why launches fail: the recordings, changed ones, and logs that are none of them."""

import random
import re
from pathlib import Path

import pytest

from course_utils.cli import app
from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.failures.explain import (
    ADVICE,
    CAUSES,
    RULES,
    UNKNOWN,
    Cause,
    explain_failure,
    explained,
)
from course_utils.lessons.gpu_nodes.failures.recorded_logs import LOGS, RECORDED, recording
from course_utils.lessons.gpu_nodes.failures.variations import NOISE, OTHERS, interleaved, varied


@pytest.mark.parametrize("failure", RECORDED)
def test_each_recording_is_explained_by_its_cause(failure: str) -> None:
    cause = explain_failure(recording(failure).log)
    assert cause.name == failure and cause.lines[0] in recording(failure).log.splitlines()


@pytest.mark.parametrize("failure", RECORDED)
@pytest.mark.parametrize("seed", range(5))
def test_a_changed_recording_has_the_same_cause(failure: str, seed: int) -> None:
    rng = random.Random(seed)
    log = interleaved(varied(recording(failure).log), rng)
    before, after = (rng.choices(NOISE, k=rng.randrange(2000)) for _ in range(2))
    assert explain_failure("\n".join([*before, log, *after])).name == failure


@pytest.mark.parametrize(("cause", "line"), OTHERS.values(), ids=OTHERS)
def test_other_words_for_the_same_causes(cause: str, line: str) -> None:
    log = "\n".join([*NOISE, line, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", *NOISE])
    assert explain_failure(log) == Cause(cause, (line,))


@pytest.mark.parametrize(
    ("file", "cause", "says"),
    [
        ("out_of_memory_allocator", "out of memory", "DefaultCPUAllocator"),
        ("out_of_memory_gpu", "out of memory", "CUDA out of memory"),
        ("wrong_gpu_binding_ordinal", "wrong GPU binding", "invalid device ordinal"),
    ],
)
def test_a_second_recording_of_the_same_cause_is_known(file: str, cause: str, says: str) -> None:
    found = explain_failure((Path(__file__).parent / "failures" / f"{file}.log").read_text())
    assert found.name == cause and says in found.lines[0]


def test_what_follows_from_a_cause_is_not_taken_for_it() -> None:
    memory, late = recording("out of memory").log, recording("time limit").log
    assert explain_failure(late + memory).name == "out of memory"
    assert explain_failure(memory + late).name == "out of memory"
    waiting = recording("wrong rank count").log
    assert explain_failure(waiting + recording("unreachable node").log).name == "unreachable node"


@pytest.mark.parametrize(
    ("log", "first"),
    [
        ("ModuleNotFoundError: No module named 'torhc'", "ModuleNotFoundError: No module named 'torhc'"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/digts.npz'", "FileNotFoundError"),
        ("loss nan\nRuntimeError: Connection closed by peer [10.0.0.1]:4711\nValueError: bad shape", "ValueError"),
        ("step 1\nChildFailedError:\nSignal 9 (SIGKILL) received by PID 7", "Signal 9"),
        ("step 1\nstep 2", "step 2"),
        (
            "srun: error: c1: task 0: Exited with exit code 2\n"
            "slurmstepd-c1: error: execve(): torchrun: No such file or directory",
            "slurmstepd-c1: error: execve()",
        ),
        ("[rank0]: ValueError: late", "[rank0]: ValueError: late"),
    ],
)
def test_none_of_them_is_unknown_with_the_line_that_says_most(log: str, first: str) -> None:
    cause = explain_failure(log)
    assert cause.name == UNKNOWN and cause.lines[0].startswith(first)


def test_the_first_error_by_time_counts_not_the_first_in_the_file() -> None:
    rank0 = "E1122 01:00:09.000000 7 train.py:1] step failed\nRuntimeError: the other rank sent nothing"
    rank1 = "[E1122 01:00:04.100000000 train.cpp:1]\nKeyError: 'weights'"
    assert explain_failure(f"{rank0}\n{rank1}").lines[0] == "KeyError: 'weights'"
    assert explain_failure(f"{rank1}\n{rank0}").lines[0] == "KeyError: 'weights'"


def test_every_rule_is_used_by_a_log_above() -> None:
    lines = [line for _, line in OTHERS.values()] + "".join(recording(cause).log for cause in RECORDED).splitlines()
    assert [rule for rule in RULES if not any(re.search(rule.shows, line) for line in lines)] == []


def test_an_empty_log_has_no_lines() -> None:
    assert explain_failure("") == explain_failure("\n \n") and explain_failure("").lines == ()


def test_every_cause_has_a_rule_an_advice_and_a_log() -> None:
    assert {rule.cause for rule in RULES} == set(CAUSES) == set(ADVICE) - {UNKNOWN}
    assert {file.stem for file in LOGS.glob("*.log")} == {cause.lower().replace(" ", "_") for cause in RECORDED}
    assert set(CAUSES) - set(RECORDED) <= {cause for cause, _ in OTHERS.values()}


def test_a_line_that_says_why_processors_compute_is_no_failure() -> None:
    line = (
        "2 ranks on 1 node (n1), started by srun: gloo, because n1 has 1 GPU for 2 ranks, and NCCL wants one for each"
    )
    assert explain_failure(f"{line}\nValueError: bad shape").name == UNKNOWN


@pytest.mark.parametrize("failure", RECORDED)
def test_a_recording_says_where_it_comes_from_and_nothing_of_the_machine(failure: str) -> None:
    one = recording(failure)
    assert one.commands and one.origin.startswith("Recorded on 2")
    assert not re.search(r"/(work|tmp|root)/", one.log + " ".join(one.commands))


def test_there_is_no_other_recording() -> None:
    with pytest.raises(CourseError, match="There is no recording of 'rain'"):
        recording("rain")


def doctor(capsys, file: Path) -> tuple[int, str]:
    """Exit status and output of `course doctor --log FILE`."""
    with pytest.raises(SystemExit) as end:
        app(["doctor", "--log", str(file)])
    return end.value.code or 0, capsys.readouterr().out


def test_doctor_says_cause_line_and_what_to_do(capsys) -> None:
    status, said = doctor(capsys, LOGS / "address_in_use.log")
    cause, line, then = said.splitlines()
    assert status == 0 and cause.startswith("address in use: ") and then.startswith("Next: ")
    assert re.fullmatch(r"    line \d+: torch.*EADDRINUSE.*", line)
    number = int(re.search(r"\d+", line)[0])
    assert "EADDRINUSE" in (LOGS / "address_in_use.log").read_text().splitlines()[number - 1]


def test_doctor_does_not_guess(capsys, tmp_path: Path) -> None:
    (tmp_path / "train.out").write_bytes(b"\xff step 1\nZeroDivisionError: division by zero\n")
    status, said = doctor(capsys, tmp_path / "train.out")
    assert status == 1 and said.startswith("unknown: ") and "line 2: ZeroDivisionError" in said


@pytest.mark.parametrize("make", [lambda file: None, lambda file: file.write_text(" \n"), lambda file: file.mkdir()])
def test_doctor_says_when_there_is_no_log_to_read(make, tmp_path: Path) -> None:
    make(tmp_path / "train.out")
    with pytest.raises(CourseError, match=r"train.out (cannot be read|is empty)"):
        app(["doctor", "--log", str(tmp_path / "train.out")])


def test_long_lines_are_shown_in_part() -> None:
    log = "RuntimeError: " + "x" * 9999
    assert max(map(len, explained(explain_failure(log), log).splitlines())) < 300
