"""The clocks of a log: many forms, without a year, without a date, with and without a time zone."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.lessons.gpu_nodes.failures.reading.clocks import stamp_of, times_of


def shown(lines: list[str], near: str | None = None) -> list[str | None]:
    """The times of lines, as text."""
    times = times_of([stamp_of(line) for line in lines], near and datetime.fromisoformat(near + "+00:00").timestamp())
    return [None if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S") for time in times]


@pytest.mark.parametrize(
    "line",
    [
        "E1122 01:12:31.798000 13519 torch/distributed/elastic/multiprocessing/api.py:1002] failed",
        "[W1122 01:12:31.676374159 ProcessGroupGloo.cpp:524] Warning",
        "I20261122 01:12:31.798 13519 x.cc:1]",
        "W0000 00:00:1795309951.993878 1917530 op_level_cost_estimator.cc:699]",
        "[1795309951.400000] [gpu07:4711:0]  debug.c:77 UCX  DEBUG",
        "1795309951 started",
        "2026-11-22 01:12:31,818 [INFO] go",
        "[2026-11-22 01:12:31,818][train][rank0] go",
        "2026-11-22T03:12:31.818+02:00 go",
        "2026-11-22T01:12:31Z go",
        "[2026-11-22T01:12:31.818] error: node n1 not responding",
        "20261122-01:12:31.627 Scheduler INFO: go",
        'time="2026-11-22T02:12:31+01:00" level=warning msg="go"',
        "[11/22/2026-01:12:31] go",
        "11/22/2026 01:12:31 - INFO - __main__ - go",
        "22/11/2026 01:12:31 go",
        "Nov 22 01:12:31 n1 kernel: go",
        "Sun Nov 22 01:12:31 UTC 2026",
        "Sun Nov 22 01:12:31 2026",
        "Sun 22 Nov 2026 01:12:31 AM CET",
        "11/22 [01:12:31] INFO  go",
        "INFO 11-22 01:12:31 [llm.py:1] go",
        "INFO:2026-11-22 01:12:31,818:go",
        "[INFO|trainer.py:12] 2026-11-22 01:12:31,818 >> go",
        "[01:12:31] go",
        "01:12:31.818 go",
        "  time      : 2026-11-22_01:12:31",
        "slurmstepd: error: *** JOB 25883692 ON n15 CANCELLED AT 2026-11-22T01:12:31 DUE TO NODE FAILURE ***",
    ],
)
def test_forms(line: str) -> None:
    assert shown([line], near="2026-11-22 03:00:00") == ["2026-11-22 01:12:31"]


@pytest.mark.parametrize(
    "line",
    [
        "[12345.678901] NVRM: since boot",
        "99:99:99 x",
        "2026-13-45 01:02:03",
        "E0231 01:02:03.4 x",
        " 10%|# | 1/10 [01:02:03<01:02:04]",
        "/runs/2026-11-22_01:12:31/model.pt",
        "00000000:D1:00.0 Off",
        "step 7",
        "",
    ],
)
def test_what_is_no_time(line: str) -> None:
    assert shown([line], near="2026-11-22 03:00:00") == [None]


def test_the_turn_of_the_year() -> None:
    assert shown(["E1231 23:59:58.1 a", "E0101 00:00:09.1 b"]) == ["2000-12-31 23:59:58", "2001-01-01 00:00:09"]
    assert shown(["E0101 00:00:09.1 b", "E1231 23:59:58.1 a"], "2027-01-01 00:01:00") == [
        "2027-01-01 00:00:09",
        "2026-12-31 23:59:58",
    ]


def test_the_year_and_the_date_are_those_of_the_other_lines() -> None:
    lines = ["23:59:59 a", "E0105 00:00:01.0 b", "2024-01-05 00:00:02 c", "00:00:03 d"]
    assert shown(lines, near="2026-11-22 01:00:00") == [
        "2024-01-04 23:59:59",
        "2024-01-05 00:00:01",
        "2024-01-05 00:00:02",
        "2024-01-05 00:00:03",
    ]


def test_a_date_that_a_line_is_about_is_not_its_time() -> None:
    lines = ["2026-11-22 01:00:00 a", "Loaded the checkpoint of 2025-01-01 10:00:00", "2026-11-22 01:00:05 b"]
    assert shown(lines)[1] is None


def test_the_29th_of_february() -> None:
    assert shown(["E0229 01:00:00.0 a"], near="2028-03-01 00:00:00") == ["2028-02-29 01:00:00"]
    assert shown(["E0229 01:00:00.0 a"], near="2026-03-01 00:00:00") == [None]


def test_clocks_in_different_time_zones_are_set_to_one() -> None:
    lines = ["2026-08-21 02:37:18 a", "W0000 00:00:1787251039.9 1 b", "CANCELLED AT 2026-08-21T02:53:05"]
    assert shown(lines) == ["2026-08-20 18:37:18", "2026-08-20 18:37:19", "2026-08-20 18:53:05"]


def test_a_long_silence_is_no_time_zone() -> None:
    """A watchdog ends a collective after half an hour, in a line with a different clock."""
    lines = ["2026-11-20 10:00:00 a", "2026-11-20 10:00:01 b", "E1120 10:30:01.0 c", "E1120 10:30:02.0 d"]
    assert shown(lines)[2:] == ["2026-11-20 10:30:01", "2026-11-20 10:30:02"]


@given(st.lists(st.text("0123456789:-/T.,[]EWNov ", max_size=40), max_size=8), st.none() | st.floats(0, 4e9))
def test_any_text_has_times_or_none(lines: list[str], near: float | None) -> None:
    times = times_of([stamp_of(line) for line in lines], near)
    assert len(times) == len(lines)
