"""The story of a failed launch: the cause among the reports of all ranks, who shares it, who is silent; its picture."""

import random

import pytest

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes import pictures
from course_utils.lessons.gpu_nodes.failures.line_reports import reports_of
from course_utils.lessons.gpu_nodes.failures.log_line import Line
from course_utils.lessons.gpu_nodes.failures.reading.log_parser import lines_of
from course_utils.lessons.gpu_nodes.failures.story import FailureReport, ReportKind, explain_failure
from course_utils.lessons.gpu_nodes.sentences import span_text, story_text

CAUSE, SIGN, CONSEQUENCE = ReportKind


def report(failure: str, kind: ReportKind, rank: int | None, time: float) -> FailureReport:
    return FailureReport(failure, kind, rank, time, Line(failure, 1, "train.out", rank, "", time))


def timeouts(*ranks: int) -> list[FailureReport]:
    return [report("collective timeout", CONSEQUENCE, rank, 600 + rank) for rank in ranks]


KEY_ERROR = report("KeyError", CAUSE, 2, 7)
KILLED = [
    report("connection closed", CONSEQUENCE, 0, 5),
    report("killed", SIGN, 1, 6),
    report("out of memory", CAUSE, None, 7),
]
EQUAL = [report("ValueError", CAUSE, 1, 3), report("KeyError", CAUSE, 0, 3), report("exit code", SIGN, 0, 3)]


def test_a_cause_explains_complaints_wherever_it_is_in_the_log() -> None:
    for reports in ([KEY_ERROR, *timeouts(0, 1, 3)], [*timeouts(0, 1, 3), KEY_ERROR]):
        story = explain_failure(reports, 4)
        assert story and (story.cause, story.ranks, story.silent) == (KEY_ERROR, (2,), ())
        assert story.others == tuple(timeouts(0, 1, 3))


def test_all_ranks_alike_are_different_from_one() -> None:
    story = explain_failure([report("KeyError", CAUSE, rank, 9 - rank) for rank in range(4)], 4)
    assert story and story.ranks == (0, 1, 2, 3) and story.cause.rank == 3 and story.others == ()


def test_a_silent_rank_is_named_where_all_others_only_complain() -> None:
    story = explain_failure(timeouts(3, 0, 1), 4)
    assert story and story.cause.rank == 0 and story.silent == (2,)


def test_a_report_of_the_whole_job_can_be_the_cause_and_is_no_rank() -> None:
    story = explain_failure(KILLED, 2)
    assert story and story.cause == KILLED[2] and story.ranks == () and story.silent == ()
    assert story.others == tuple(KILLED[:2])


def test_of_equal_reports_the_first_in_the_list_counts() -> None:
    story = explain_failure(EQUAL, 2)
    assert story and story.cause == EQUAL[0] and story.others == tuple(EQUAL[1:])


def test_without_reports_there_is_no_story() -> None:
    assert explain_failure([], 4) is None


SUMMARY = """Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_01:26:37
  host      : node02
  rank      : 5 (local_rank: 1)
  exitcode  : -9 (pid: 4711)  (SIGKILL)
  error_file: <N/A>
======================
"""


@pytest.mark.parametrize(
    ("line", "failure", "ranks"),
    [
        ("[77.1] Memory cgroup out of memory: Killed process 4711 (python3) total-vm:7kB", "out of memory", (5,)),
        ("[77.1] Memory cgroup out of memory: Killed process 4712 (python3) total-vm:7kB", "out of memory", ()),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0.", "out of memory", ()),
        (
            "[77.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has fallen off the bus.",
            "broken GPU",
            (5,),
        ),
    ],
)
def test_a_process_that_the_kernel_names_is_a_rank_if_torchrun_tells(
    line: str, failure: str, ranks: tuple[int, ...]
) -> None:
    story = explain_failure(reports_of(lines_of(SUMMARY + line)), 8)
    assert story and story.cause.failure == failure and story.ranks == ranks and story.cause.line.text == line


def test_a_number_that_two_nodes_gave_to_processes_names_no_rank() -> None:
    log = (
        SUMMARY
        + SUMMARY.replace("node02", "node03").replace(": 5", ": 9")
        + "[7.1] Out of memory: Killed process 4711 (a)"
    )
    story = explain_failure(reports_of(lines_of(log)), 16)
    assert story and story.cause.failure == "out of memory" and story.ranks == ()


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_reports_of_different_times_plays_no_part(seed: int) -> None:
    rng = random.Random(seed)
    reports = [
        report(f"failure {rng.randrange(4)}", rng.choice([*ReportKind]), rng.choice([None, *range(9)]), time)
        for time in range(rng.randrange(1, 30))
    ]
    story = explain_failure(reports, 9)
    assert explain_failure(rng.sample(reports, len(reports)), 9) == story
    assert story and not {*story.ranks} & {*story.silent}
    assert len(story.others) + sum(each.failure == story.cause.failure for each in reports) == len(reports)


@pytest.mark.parametrize(
    ("reports", "world_size", "finding"),
    [
        ([], 2, "No rank reports a failure"),
        ([KEY_ERROR], 3, "KeyError on rank 2 explains the most; ranks 0 and 1 report nothing"),
        (
            [KEY_ERROR, *timeouts(0, 1)],
            3,
            "KeyError on rank 2 explains the most; there are 2 other reports, the last of them 10 minutes later",
        ),
        (KILLED, 2, "Out of memory explains the most; there are 2 other reports, 2 of them earlier"),
        (
            KILLED[:2],
            2,
            "Killed on rank 1 explains the most, but gives no reason; there is 1 other report, which is earlier",
        ),
        (EQUAL[1:], 1, "KeyError on rank 0 explains the most; there is 1 other report"),
        (timeouts(0, 1, 3), 4, "All reports complain about other ranks, and rank 2 reports nothing"),
        (timeouts(0, 1), 2, "All reports complain about other ranks"),
        ([report("no GPU", CAUSE, rank, 1) for rank in (0, 1)], 2, "No GPU on both ranks explains the most"),
        (
            [report("no GPU", CAUSE, rank, 1) for rank in range(9)],
            16,
            "No GPU on 9 of 16 ranks explains the most; 7 of 16 ranks report nothing",
        ),
    ],
)
def test_the_picture_states_the_finding(reports: list[FailureReport], world_size: int, finding: str) -> None:
    assert story_text(explain_failure(reports, world_size), world_size) == finding
    picture = pictures.story(reports, world_size)
    assert finding in picture.alt_text and picture._repr_png_().startswith(b"\x89PNG")


def test_the_picture_lists_all_reports_in_the_order_of_time() -> None:
    text = pictures.story([*timeouts(1), KEY_ERROR], 3, "Title").alt_text
    assert text.endswith("rank 2: KeyError, first; rank 1: collective timeout, 10 minutes after the first report")
    with pytest.raises(CourseError, match="between 1 and 128 ranks"):
        pictures.story([], 129)


def test_names_of_failures_are_written_once_and_not_over_marks() -> None:
    reports = [report("a long name of a failure", CONSEQUENCE, rank, time) for rank in (0, 1) for time in (0, 1, 100)]
    [ax] = pictures.story([*reports, report("KeyError", CAUSE, 1, 100)], 2).axes
    names = [text.get_text() for text in ax.texts]
    assert names.count("a long name of a failure") == 1 and any("KeyError" in name for name in names)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0015, "1.5 ms"), (45, "45 s"), (600, "10 minutes"), (3 * 3600, "3 hours")]
)
def test_long_times_are_in_minutes_and_hours(seconds: float, text: str) -> None:
    assert span_text(seconds) == text
