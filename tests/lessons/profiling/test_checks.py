"""The races of lesson 14: when one ends, that every round has fresh inputs, and what is seen of a program."""

import functools
import itertools
import subprocess
import sys

import pytest

from course_utils.lessons.overlap import played_hardware
from course_utils.lessons.profiling.checks import races
from course_utils.lessons.profiling.checks.races import FEWEST, HOPELESS_AFTER, SLOW, YOURS, processor_seconds, race

TARGET = 1.5


@pytest.fixture(autouse=True)
def _races_of_any_length(monkeypatch) -> None:
    """The seconds of these clocks are not those of a busy machine."""
    monkeypatch.setattr(races, "LONG", float("inf"))


def ticking(slow: float, own: float):
    """A clock, and two programs that move it on by so much."""
    now = [0.0]

    def program(seconds: float):
        def run(number: int) -> list[float]:
            now[0] += seconds
            return [float(number)]

        return run

    return lambda: now[0], program(slow), program(own)


def raced(slow: float, own: float, rounds: int = 9) -> dict:
    """A race of programs that take this many seconds."""
    clock, first, second = ticking(slow, own)
    return race(first, second, lambda number: (number,), TARGET, rounds=rounds, clock=clock, meet=float)


@pytest.mark.parametrize(
    ("slow", "own", "rounds"),
    [(4.0, 1.0, FEWEST), (1.0, 1.0, HOPELESS_AFTER), (1.4, 1.0, 9), (1.55, 1.0, 9)],
    ids=["clearly reached", "out of reach", "nearly reached", "just reached"],
)
def test_a_race_ends_when_more_rounds_would_not_change_the_verdict(slow, own, rounds) -> None:
    seconds = raced(slow, own)["seconds"]
    assert len(seconds[SLOW]) == len(seconds[YOURS]) == rounds
    assert min(seconds[SLOW]) / min(seconds[YOURS]) == pytest.approx(slow / own)


def test_a_race_goes_on_while_a_round_misses_the_factor() -> None:
    now, tick = [0.0], itertools.chain([1, 1], [1, 9, 1, 9, 1, 1], itertools.cycle([1, 1]))

    def run(number: int) -> list[float]:
        now[0] += next(tick)
        return [0.0]

    found = race(run, run, lambda number: (number,), TARGET, clock=lambda: now[0], rounds=9)
    assert found["seconds"][SLOW] == [9, 9, 1, 1, 1] and found["seconds"][YOURS] == [1] * 5


def test_the_first_round_does_not_count_and_may_be_the_only_one() -> None:
    assert raced(4.0, 1.0, rounds=0)["seconds"] == {SLOW: [], YOURS: []}


def test_what_was_kept_from_the_last_call_is_wrong_in_the_next() -> None:
    kept = functools.cache(lambda: next(itertools.count()))
    found = race(lambda n: [float(n)], lambda n: [float(kept())], lambda n: (n,), TARGET, clock=float, meet=float)
    assert (found["round"], found["wanted"], found["found"]) == (1, [1.0], [0.0])


def test_no_program_finds_the_results_that_are_expected_of_it() -> None:
    def program(number: int) -> list[float]:
        frame, seen = sys._getframe(1), []
        while frame:
            seen += [str(value) for value in frame.f_locals.values()]
            frame = frame.f_back
        return [float(any(str(secret(number)) in text for text in seen))]

    def secret(number: int) -> float:
        return (number + 1) * 0.123456789

    found = race(lambda number: [secret(number)], program, lambda n: (n,), TARGET, rounds=0)
    assert found["wanted"] == [secret(0)] and found["found"] == [0.0]


def test_an_argument_that_was_changed_is_named() -> None:
    def program(steps: int, batch: list[int]) -> list[float]:
        return [float(sum(batch.pop() for _ in range(steps)))]

    found = race(lambda steps, batch: [float(sum(batch))], program, lambda n: (3, [n, 1, 2]), TARGET, rounds=0)
    assert found["changed"] == "batch" and found["found"] == found["wanted"]


def test_the_seconds_of_helpers_that_have_ended_count() -> None:
    before = processor_seconds()
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert processor_seconds() - before > 0.02


def test_played_computing_is_seen_and_the_function_is_put_back() -> None:
    plain = played_hardware.compute

    def program(number: int) -> list[float]:
        played_hardware.compute(1e-4)
        played_hardware.compute(2e-4)
        return [0.0]

    found = race(program, program, lambda n: (n,), TARGET, rounds=0, meet=float)
    seen = found["lanes"][YOURS]
    assert seen["asked"] == pytest.approx(3e-4) and len(seen["computing"]) == 2
    assert seen["begin"] <= seen["computing"][0][0] <= seen["computing"][-1][1] <= seen["end"]
    assert played_hardware.compute is plain


def test_the_parts_of_a_run_add_up_to_it() -> None:
    def work(number: int) -> list[float]:
        return [float(len(sorted(range(20_000))))]

    places = {"sorting": [("~", "<built-in method builtins.sorted>")]}
    found = race(work, work, lambda n: (n,), 1e-9, rounds=3, meet=float, places=places)
    assert set(found["parts"][YOURS]) == {"sorting", ""} and found["parts"][YOURS]["sorting"] > 0
