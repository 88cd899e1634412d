"""What `check` finds and says, on ranks that are threads of this process: the true cause, and every bad input."""

import threading
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from fake_ranks import FakeRanks

import course_utils as course
from course_utils.checks import hints, registry, symptoms
from course_utils.checks.compare import describe, difference, kind_of, largest_error
from course_utils.checks.exercise import NO_RESULT, Case, Cost, Exercise
from course_utils.checks.finding import Finding, Kind, own
from course_utils.checks.finding_text import text_of
from course_utils.checks.judge import Options, fresh_seed, verdict_on_these
from course_utils.checks.registry import declared, exercises_of, find
from course_utils.checks.verdict import Result, Verdict
from course_utils.errors import CourseError
from course_utils.ranks.ending import Ending
from course_utils.ranks.engine.reply import Raised, Reply
from course_utils.syllabus import LESSONS, Lesson

SQUARES = [rank**2 for rank in range(4)]


def squares(**changes) -> Exercise:
    """A small exercise: return rank² on four ranks."""
    settings = {
        "name": "squares",
        "library": "course_utils.lessons.first_steps.rank_and_size:squares",
        "lesson": "00_first_steps",
        "number": 1,
        "minutes": 3,
        "difficulty": 1,
        "turn": "square it",
        "cases": lambda rng, world_size: [Case("4 ranks", [()] * 4, SQUARES)],
    }
    return Exercise(**(settings | changes))


def verdict(function, exercise: Exercise | None = None, ranks: FakeRanks | None = None) -> Verdict:
    options = Options(seed=1, patience=0.5, hide=False)
    return verdict_on_these(exercise or squares(), function, ranks or FakeRanks(), options)


def line(function, exercise: Exercise | None = None, ranks: FakeRanks | None = None) -> str:
    return str(verdict(function, exercise, ranks))


class Liar:
    """Claims to be equal to everything, has every attribute's name, and cannot be printed."""

    dtype = np.dtype("float64")
    shape = (3,)

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __repr__(self):
        raise RuntimeError("no")

    def __sub__(self, other):
        return 0.0

    __rsub__ = __sub__


class LyingArray(np.ndarray):
    """An array whose comparisons and differences all say yes."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return np.ones(self.shape, dtype=bool) if ufunc in (np.equal, np.less_equal) else np.zeros(self.shape)


class LyingInt(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class LyingFloat(np.float64):
    def __sub__(self, other):
        return 0.0

    def __eq__(self, other):
        return True

    __hash__ = np.float64.__hash__


LyingFloat.__module__ = "numpy"


@dataclass(frozen=True)
class Point:
    x: int
    y: float


ONES = np.ones(3)
LIARS = [Liar(), np.zeros(3).view(LyingArray), LyingInt(7), LyingFloat(7), [Liar()] * 3, {"a": Liar()}]
TRUTHS = [ONES, np.arange(3), 4, 2.5, True, "text", [1.0, 2.0, 3.0], (1, 2, 3), {"a": 1}, None]


@pytest.mark.parametrize("truth", TRUTHS, ids=repr)
@pytest.mark.parametrize("liar", LIARS, ids=lambda liar: type(liar).__name__)
def test_an_object_that_claims_to_be_equal_fools_nobody(liar, truth):
    assert difference(0, liar, truth)


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        (np.array([10.0, 1]), np.array([2.5, 1]), "rank 2 returned 10.0 at index 0, expected 2.5"),
        (np.array([[1, 2], [3, 4]]), np.array([[1, 2], [9, 4]]), "rank 2 returned 3 at index (1, 0), expected 9"),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0]), "rank 2 returned nan at index 1, expected 2.0"),
        (np.array(3.0), np.array(4.0), "rank 2 returned 3.0, expected 4.0"),
        (np.array([1.0 + 1e-6]), np.array([1.0]), "rank 2 returned 1.000001 at index 0, expected 1.0"),
        (None, np.zeros(3), "rank 2 returned nothing, expected an array of shape (3,)"),
        (None, 4, "rank 2 returned nothing, expected 4"),
        (4, None, "rank 2 returned 4, expected nothing"),
        (np.zeros(2), np.zeros(3), "rank 2 returned numbers of shape (2,), expected shape (3,)"),
        (np.zeros(2, "f4"), np.zeros(2), "rank 2 returned float32 numbers, expected float64"),
        ([1.0, 2.0], np.zeros(2), "rank 2 returned a list, expected an array"),
        (3, 4, "rank 2 returned 3, expected 4"),
        (4.0, 4, "rank 2 returned the float 4.0, expected the integer 4"),
        ("4", 4, "rank 2 returned the string '4', expected the integer 4"),
        (True, 1, "rank 2 returned the truth value True, expected the integer 1"),
        (2.0, 2.5, "rank 2 returned 2.0, expected 2.5"),
        (10**400, 2.5, "rank 2 returned 1000000"),
        ("Ada", "Emmy", "rank 2 returned 'Ada', expected 'Emmy'"),
        (["Ada", "Alan"], ["Ada", "Emmy"], "on rank 2, `result[1]` is 'Alan', expected 'Emmy'"),
        (["Ada"], ["Ada", "Emmy"], "rank 2 returned 1 entry, expected 2"),
        (["Ada", None], ["Ada", "Emmy"], "on rank 2, `result[1]` is None, expected 'Emmy'"),
        ({"a": 1}, {"b": 1}, "rank 2 returned no entry 'b'"),
        ({"a": 1, "b": 2}, {"a": 1}, "rank 2 returned an entry 'b', which does not belong there"),
        (Point(1, 2.5), Point(1, 3.5), "on rank 2, y is 2.5, expected 3.5"),
        ({"x": 1, "y": 2.5}, Point(1, 2.5), "rank 2 returned a dict, expected a Point"),
        (NO_RESULT, 4, "rank 2 returned a _NoResult, expected an integer"),
        (Liar(), 4, "rank 2 returned a Liar, expected an integer"),
    ],
)
def test_a_difference_is_said_plainly(got, expected, said):
    assert text_of(difference(2, got, expected)).startswith(said)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (np.array([1.0 + 1e-12]), np.array([1.0])),
        (np.array([1 + 1e-6], "f4"), np.array([1], "f4")),
        (np.array([np.nan, np.inf]), np.array([np.nan, np.inf])),
        (np.zeros((0, 3)), np.zeros((0, 3))),
        (np.int64(4), 4),
        (np.float64(2.5), 2.5),
        (3, 3.0),
        (np.array(4), 4),
        ((1, 2), [1, 2]),
        (np.str_("a"), "a"),
        (np.bool_(True), True),
        (object(), ...),
        (None, None),
    ],
)
def test_what_is_right_is_left_alone(got, expected):
    assert difference(0, got, expected) is None


def test_integers_are_exact_and_a_tolerance_is_relative_to_the_largest_number():
    assert difference(0, np.array([10**15 + 1]), np.array([10**15]))
    assert difference(0, np.array([1000.0, 1.0]), np.array([1000.0, 5.0]), tolerance=0.01) is None
    assert difference(0, np.array([1000.0, 1.0]), np.array([1000.0, 20.0]), tolerance=0.01)
    assert difference(0, np.array([1.0 + 1e-15]), np.array([1.0]), tolerance=0)
    assert difference(0, np.array([True]), np.array([False]))


def test_tensors_are_compared_by_shape_dtype_and_number():
    torch = pytest.importorskip("torch")
    ones = torch.ones(3)
    assert difference(0, torch.ones(3, requires_grad=True), ones) is None
    assert difference(1, ones * 2, ones) == Finding(Kind.VALUE, 1, (), (0,), 2.0, 1.0)
    assert difference(1, ones.double(), ones) == Finding(Kind.DTYPE, 1, got="float64", expected="float32")
    assert difference(1, ones.numpy(), ones).kind == Kind.TYPE
    assert difference(1, ones.bfloat16(), ones.bfloat16()) is None
    assert largest_error([(ones, ones + 0.5)]) == 0.5


def test_a_description_never_raises_and_stays_short():
    assert kind_of(Liar()) == "Liar"
    assert describe([Liar()]) == "a list"
    assert len(describe("x" * 1000)) <= 60
    assert describe(10**5000) == "an integer"


def test_right_wrong_and_not_begun():
    assert line(lambda comm: comm.rank**2) == "✓ squares: 4 ranks agree"
    assert line(lambda comm: comm.rank) == "✗ squares: rank 2 returned 2, expected 4 (4 ranks)."

    def stub(comm):
        raise NotImplementedError("your turn: square the rank")

    assert line(stub) == "○ squares: not begun. Replace the line `raise NotImplementedError`."


def test_a_stub_behind_a_right_case_is_a_finding_of_its_own():
    def half(comm):
        if comm.size == 4:
            raise NotImplementedError("your turn: square the rank")
        return comm.rank**2

    cases = [Case("1 rank", [()], [0]), Case("4 ranks", [()] * 4, SQUARES)]
    found = verdict(half, squares(cases=lambda rng, n: cases))
    assert (found.result, found.finding.kind, found.case) == (Result.WRONG, Kind.UNFINISHED, "4 ranks")


def test_a_library_that_has_not_implemented_something_is_no_stub():
    def unlucky(comm):
        raise NotImplementedError("this operator has no kernel")

    found = verdict(unlucky)
    assert (found.result, found.finding.kind, found.finding.rank) == (Result.WRONG, Kind.RAISED, 0)


def test_the_rank_that_raised_is_the_cause_even_where_others_wait():
    def one_raises(comm):
        if comm.rank == 2:
            raise ValueError("too\nbad")
        return comm.allgather(comm.rank)

    found = verdict(one_raises)
    assert (found.finding.kind, found.finding.rank, found.case) == (Kind.RAISED, 2, "4 ranks")
    error = found.finding.got
    assert error.type == "ValueError" and f"ValueError: too bad, {error.line} (" in str(found)


def test_a_hang_is_told_in_the_words_of_the_report():
    said = line(lambda comm: comm.recv(source=3) if comm.rank == 0 else comm.rank**2)
    assert said == "✗ squares: no progress for 0.5 s. rank 0 is waiting in recv(source=3) (4 ranks)."


def asking(folder, **symptoms) -> Exercise:
    """The small exercise, with a question for each symptom, in this order."""
    file = folder / "squares.answers.md"
    parts = [f"### {name.capitalize()}?\n\nRecognised when {name}.\n" for name in symptoms]
    file.write_text("\n".join(["## Wrong\n", *parts]))
    return squares(file=file, symptoms=symptoms)


def test_the_first_symptom_that_is_seen_asks_its_question(tmp_path):
    def broken(case, outcome):
        raise KeyError("looked too deep")

    symptoms = {
        "never": lambda case, outcome: False,
        "broken": broken,
        "squared": lambda case, outcome: outcome.results == [0, 1, 2, 3],
        "late": lambda case, outcome: True,
    }
    assert verdict(lambda comm: comm.rank, asking(tmp_path, **symptoms)).question == "Squared?"


def test_a_rank_that_did_not_return_is_not_taken_for_one_that_returned_nothing(tmp_path):
    nothing = asking(tmp_path, nothing=lambda case, outcome: all(result is None for result in outcome.results))
    assert "Nothing?" in line(lambda comm: None, nothing)
    assert "Nothing?" not in line(lambda comm: comm.recv(source=0), nothing)


def test_what_was_changed_in_place_is_looked_at():
    def cases(rng, world_size):
        return [Case("2 ranks", [(np.zeros(2),)] * 2, expected_arguments=[{0: np.full(2, 7.0)}] * 2)]

    def fill(comm, vector):
        vector[:] = 7 if comm.rank == 0 else 8

    found = verdict(fill, squares(cases=cases))
    assert found.finding == Finding(Kind.VALUE, 1, index=(0,), got=8.0, expected=7.0) and found.case == "2 ranks"


@pytest.mark.parametrize(
    ("cost", "counted", "finding"),
    [
        (Cost(rounds=2), {"rounds": 3}, Finding(Kind.ROUNDS, got=3, expected=2)),
        (Cost(messages=1), {"messages": 2}, Finding(Kind.MESSAGES, got=2, expected=1)),
        (
            Cost(bytes_per_rank=1500),
            {"bytes_per_rank": [0, 4000, 0, 0]},
            Finding(Kind.BYTES, 1, got=4000, expected=1500),
        ),
        (Cost(collectives=2), {"collectives": 1}, Finding(Kind.COLLECTIVES, 0, got=1, expected=2)),
        (Cost(collectives=0), {"collectives": 1}, Finding(Kind.COLLECTIVES, 0, got=1, expected=0)),
        (Cost(rounds=3, messages=3, bytes_per_rank=9, collectives=0), {"rounds": 3, "messages": 3}, None),
    ],
)
def test_a_cost_that_was_promised_is_counted(cost, counted, finding):
    exercise = squares(cases=lambda rng, world_size: [Case("4 ranks", [()] * 4, SQUARES, cost=cost)])
    assert verdict(lambda comm: comm.rank**2, exercise, FakeRanks(**counted)).finding == finding


def test_a_cost_is_said_with_what_would_be_enough():
    assert (
        text_of(Finding(Kind.MESSAGES, got=2, expected=1))
        == "the result is right, but it took 2 messages; 1 is enough."
    )
    assert text_of(Finding(Kind.BYTES, 1, got=4000, expected=1499.5)).endswith(
        "rank 1 sent 4,000 bytes; 1,500 are enough."
    )


def test_a_right_result_with_a_request_left_open_is_no_right_answer(four_ranks):
    def ring(comm):
        request = comm.isend(comm.rank, dest=(comm.rank + 1) % comm.size)
        left = comm.recv(source=(comm.rank - 1) % comm.size)
        if comm.rank != 2:
            request.wait()
        return ((left + 1) % comm.size) ** 2

    found = verdict_on_these(squares(), ring, four_ranks, Options(hide=False))
    assert (found.finding.kind, found.finding.rank) == (Kind.NEVER_WAITED_FOR, 2)
    assert "the result is right, but rank 2 never waited for isend(dest=3), line " in str(found)


def a_call_that_is_not_traced(comm):
    request = comm.Irecv(bytearray(8), source=comm.rank)
    comm.Irsend(bytearray(8), dest=comm.rank).Wait()
    request.Wait()
    return comm.rank**2


def a_window(comm):
    from mpi4py import MPI

    MPI.Win.Allocate(8, comm=comm).Free()
    return comm.rank**2


@pytest.mark.parametrize(
    ("function", "call"), [(a_call_that_is_not_traced, "Irsend"), (a_window, "Win.Allocate")], ids=["call", "window"]
)
def test_what_is_not_counted_is_no_right_answer_where_something_is_counted(function, call, four_ranks):
    counting = squares(cases=lambda rng, world_size: [Case("4 ranks", [()] * 4, SQUARES, cost=Cost(messages=0))])
    found = verdict_on_these(counting, function, four_ranks, Options(hide=False))
    assert found.finding == Finding(Kind.UNCOUNTED, 0, words=call)
    assert f"rank 0 uses {call}, and what such a call sends cannot be counted here (4 ranks)." in str(found)
    assert verdict_on_these(squares(), function, four_ranks, Options(hide=False)).passed


def test_a_case_may_judge_for_itself_and_may_wrap_the_function():
    def harness(function, comm, number):
        return function(comm) + number

    def disagree(outcome):
        values = set(outcome.results)
        return own("disagree", "{number} values disagree", number=len(values)) if len(values) > 1 else None

    judged = squares(cases=lambda rng, n: [Case("4 ranks", [()] * 4, judge=disagree)])
    wrapped = Case("2 ranks", [(100,)] * 2, expected=[100, 101], harness=harness)
    assert verdict(lambda comm: comm.rank, judged).finding.name == "disagree"
    assert line(lambda comm: comm.rank, judged) == "✗ squares: 4 values disagree (4 ranks)."
    assert line(lambda comm: comm.rank, squares(cases=lambda rng, n: [wrapped])).startswith("✓")


def test_a_function_without_communicator_runs_on_one_rank():
    exercise = squares(cases=lambda rng, n: [Case("", [(3,)], expected=[9], with_comm=False)])
    assert line(lambda number: number**2, exercise) == "✓ squares: correct"
    wrong = verdict(lambda number: number, exercise)
    assert wrong.finding == Finding(Kind.VALUE, 0, got=3, expected=9) and wrong.case == ""


def test_cases_for_more_ranks_than_there_are_are_left_out_and_it_is_said():
    cases = [Case("1 rank", [()], [0]), Case("4 ranks", [()] * 4, SQUARES)]
    said = line(lambda comm: comm.rank**2, squares(cases=lambda rng, n: cases), FakeRanks(2))
    assert said.startswith("✓") and "course.start(4)" in said
    with pytest.raises(CourseError, match="needs 4 ranks"):
        line(lambda comm: 0, squares(cases=lambda rng, n: cases[1:]), FakeRanks(2))


def test_a_changed_first_line_is_seen_before_anything_runs():
    ranks = FakeRanks()
    found = verdict(lambda comm, vector: 0, ranks=ranks).finding
    assert (found.kind, found.expected, found.got) == (Kind.SIGNATURE, 1, ("comm", "vector"))
    found = verdict(lambda: 0, ranks=ranks).finding
    assert found.got == () and "takes (nothing)" in text_of(found)
    assert ranks.attempts == 0


def test_a_function_that_cannot_travel_is_rejected_before_anything_runs():
    lock, ranks = threading.Lock(), FakeRanks()
    said = line(lambda comm: lock, ranks=ranks)
    assert said.startswith("✗ squares: your function uses `lock` from the notebook, which cannot be sent to the ranks.")
    assert ranks.attempts == 0


def test_each_check_draws_fresh_numbers_and_a_seed_repeats_them(monkeypatch):
    drawn, found = [], []

    def cases(rng, world_size):
        drawn.append(int(rng.integers(10**9)))
        return [Case("", [()], [0])]

    for seed in (None, None, 5, 5):
        options = Options(seed=seed, hide=False)
        found.append(verdict_on_these(squares(cases=cases), lambda comm: comm.rank, FakeRanks(), options).seed)
    assert found[0] != found[1] and found[2] == found[3] == 5 and len(set(drawn)) == 3
    monkeypatch.setenv("COURSE_SEED", "42")
    assert fresh_seed() == 42


def test_what_the_function_printed_is_shown_with_its_rank(capsys):
    from course_utils.checks.verdict_panel import show

    show(Verdict(Result.WRONG, "squares", own("wrong", "wrong"), output=((1, "one\ntwo\n"), (3, "x\n" * 50))))
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == ["✗ squares: wrong.", "[rank 1] one", "[rank 1] two"]
    assert printed[-1] == "… and 32 more lines"


@pytest.fixture
def fake_ranks(monkeypatch, tmp_path):
    """`course.check` on fake ranks, with its own home."""
    from course_utils.ranks import start

    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    monkeypatch.setattr(start, "current", FakeRanks, raising=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rank_squraed", abs), 'There is no exercise "rank_squraed". Did you mean "rank_squared"?'),
        (("Rank Squared", abs), 'Did you mean "rank_squared"?'),
        (("zzzzzzzz", abs), "`course.progress()` lists them all"),
        (("rank_squared", "rank_squared"), 'without quotes: course.check("rank_squared", rank_squared)'),
        (("rank_squared", 4), "4 is not a function"),
        (("rank_squared", None), "nothing is not a function"),
        (("rank_squared",), "Give the check your function as well"),
        ((abs,), "in quotes"),
    ],
)
def test_bad_input_gets_a_plain_line(fake_ranks, arguments, said):
    with pytest.raises(CourseError) as caught:
        course.check(*arguments)
    assert said in str(caught.value) and len(str(caught.value).splitlines()) <= 2


def test_an_exercise_that_is_only_planned_is_named_with_its_lesson(monkeypatch):
    planned = Lesson("91_more", "Is there more?", 30, 4, planned=("more_of_it",))
    monkeypatch.setattr(registry, "LESSONS", (*LESSONS, planned))
    with pytest.raises(CourseError, match='"more_of_it" belongs to lesson 91, which is not written yet.'):
        find("more_of_it")


def test_before_start_the_check_says_what_to_run(fake_ranks, monkeypatch):
    monkeypatch.setattr("course_utils.ranks.start.current", lambda: None)
    with pytest.raises(CourseError, match=r"Run `ranks = course.start\(4\)` first"):
        course.check("average_gradients", lambda comm: 0)


def test_check_prints_one_line(fake_ranks, capsys):
    assert course.check("rank_squared", lambda comm: comm.rank**2) is None
    assert capsys.readouterr().out == (
        "✓ rank_squared: each rank returned the square of its own number "
        "(on 1 to 64 virtual ranks, then on your 4 ranks)\n"
    )


def test_a_hint_is_first_a_question_and_then_nearly_the_answer(fake_ranks, capsys, monkeypatch):
    monkeypatch.setattr(hints, "_given", {})
    course.hint("rank_squared")
    first = capsys.readouterr().out
    assert "?" in first.splitlines()[0] and 'course.hint("rank_squared")' in first
    course.hint("rank_squared")
    second = capsys.readouterr().out
    assert "comm.rank" in second and second != first
    course.hint("rank_squared")
    assert capsys.readouterr().out == second
    with pytest.raises(CourseError, match="rank_squared"):
        course.hint("rank_square")


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_an_exercise_is_declared_once_and_whole(lesson):
    exercises = exercises_of(lesson)
    assert not (lesson.written and lesson.planned), "what is declared is no longer planned: take the names out"
    assert [exercise.number for exercise in exercises] == list(range(1, len(exercises) + 1))
    for exercise in exercises:
        assert exercise.lesson == lesson.stem and exercise.title and exercise.turn and exercise.minutes > 0
        assert 1 <= exercise.difficulty <= 3
        assert find(exercise.name) is exercise, "its module bears its name"
        assert exercise.library.endswith(f":{exercise.name}")


@pytest.mark.parametrize("exercise", declared(), ids=lambda exercise: exercise.name)
def test_every_exercise_can_make_cases_for_every_number_of_ranks(exercise):
    first, second = exercise.hints
    assert first.rstrip().endswith("?") and second, exercise.name
    for world_size in (1, 2, 3, 4):
        for case in exercise.cases(np.random.default_rng(world_size), world_size):
            assert case.arguments and (case.expected is None or len(case.expected) == len(case.arguments))


def test_a_name_is_found_without_loading_later_lessons(monkeypatch):
    loaded = []
    whole = registry.exercises_of
    monkeypatch.setattr(registry, "exercises_of", lambda lesson: loaded.append(lesson.number) or whole(lesson))
    assert find("rank_squared").lesson == "00_first_steps"
    assert loaded == [0]


def test_who_computes_when_others_are_in_a_deadlock_has_raised_nothing_of_its_own() -> None:
    waits, stopped = Reply(0, "interrupted"), Reply(1, "raised", error=Raised("KeyboardInterrupt", ""))
    outcome = SimpleNamespace(attempt=SimpleNamespace(replies=[waits, stopped], ending=Ending.DEADLOCK))
    assert symptoms.hangs(None, outcome)
    outcome.attempt.ending = Ending.RAISED
    assert not symptoms.hangs(None, outcome)
