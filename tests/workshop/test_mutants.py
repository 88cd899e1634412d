"""Mutants: what is changed, that each is a function of its own, that the checks of small exercises reject theirs."""

import re
import subprocess
import sys

import cloudpickle
import pytest

from course_utils.checks.registry import declared, exercises_of, find
from course_utils.errors import CourseError
from course_utils.syllabus import LESSONS
from workshop.mutants import explanations
from workshop.mutants.campaign import Tally, bare, judged, main, mutants_in, originals, report
from workshop.mutants.explanations import FOLDER, explained
from workshop.mutants.mutate import mutants_of, pairs_of

KINDS = [
    ("return a + b", "+ became - in a + b", "return a - b"),
    ("return a < b", "< became <= in a < b", "return a <= b"),
    ("return a < b", "< became > in a < b", "return a > b"),
    ("return a == b", "== became != in a == b", "return a != b"),
    ("return a is None", "is became is not in a is None", "return a is not None"),
    ("return a and b", "and became or in a and b", "return a or b"),
    ("return not a", "not a became a", "return a"),
    ("return a[0]", "0 became 1", "return a[1]"),
    ("return a[0]", "0 became -1", "return a[-1]"),
    ("return True", "True became False", "return False"),
    ("return a[1:b]", "upper b was dropped from the slice 1:b", "return a[1:]"),
    ("return divmod(a, b)", "a and b were swapped", "return divmod(b, a)"),
    ("return a, b", "a and b were swapped in (a, b)", "return (b, a)"),
    ("return sorted(a, key=b)", "key=b was dropped from sorted", "return sorted(a)"),
    ("return a.reduce(b, op=MPI.SUM)", "SUM became MAX in MPI.SUM", "return a.reduce(b, op=MPI.MAX)"),
    ("a *= b", "*= became /= in a *= b", "a /= b"),
    ("a.sort()", "dropped: a.sort()", "pass"),
    ("if a:\n        b()\n    else:\n        a()", "dropped: the else of if a", "if a:\n        b()"),
    ("with a:\n        b()", "no longer inside: with a", "if True:\n        b()"),
]


@pytest.mark.parametrize(("body", "change", "mutated"), KINDS, ids=[change for _, change, _ in KINDS])
def test_a_change_is_made_and_named(body, change, mutated) -> None:
    found = {mutant.change: mutant.source for mutant in mutants_of(f"def f(a, b):\n    {body}\n", "f")}
    assert found[change] == f"def f(a, b):\n    {mutated}"


def test_signature_docstring_annotations_and_texts_of_errors_stay() -> None:
    source = '''
def f(a: int = 0) -> "x + y":
    """One + two."""
    b: list[1] = a
    raise ValueError(f"{a + 1} is too large")
'''
    assert [one.change for one in mutants_of(source.strip(), "f")] == [
        "dropped: b: list[1] = a",
        "dropped: raise ValueError(f'{a + 1} is too large')",
    ]


def test_mutants_that_look_alike_are_counted() -> None:
    changes = [mutant.change for mutant in mutants_of("def f(a):\n    return (a + 1) * (a + 1)\n", "f")]
    assert "+ became - in a + 1" in changes and "+ became - in a + 1 (2)" in changes
    assert len(set(changes)) == len(changes)


def test_a_mutant_names_its_line_by_the_text_so_that_other_lines_may_change() -> None:
    short = "def f(a):\n    return a + 1  # one more\n"
    long = '@cache\ndef f(a):\n    """Add one."""\n    print(a)\n    warnings.warn("a")\n    return  a + 1\n'
    named = [str(mutant) for mutant in mutants_of(short, "f", "short")]
    assert "short | return a + 1 | + became - in a + 1" in named
    assert [str(mutant) for mutant in mutants_of(long, "f", "short")] == named, "what it prints is nobody's business"


def test_a_mutant_differs_in_one_place_and_leaves_the_others_alone() -> None:
    source = "def f(a):\n    return a * 2 + 3\n"
    found = mutants_of(source, "f")
    assert len({mutant.source for mutant in found} | {source.strip()}) == len(found) + 1
    values = {mutant.change: mutant.function()(5) for mutant in found}
    assert values["+ became - in a * 2 + 3"] == 7
    assert values["3 became 4"] == 14


def test_a_mutant_sees_the_names_of_its_module_and_travels_by_value() -> None:
    found = mutants_in(find("fit_alpha_beta"))
    swapped = next(mutant for mutant in found if "float(alpha) and float(beta) were swapped" in mutant.change)
    code = "import cloudpickle, sys; print(cloudpickle.load(sys.stdin.buffer)([0, 1], [1.0, 3.0]))"
    sent = cloudpickle.dumps(swapped.function())
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    beta, alpha = eval(done.stdout)
    assert (alpha, beta) == pytest.approx((1.0, 2.0))


def test_two_changes_stand_apart() -> None:
    source = "def f(a, b):\n    return a + 1, b - 2\n"
    pairs = pairs_of(source, "f", "loop", 5, seed=1)
    assert len(pairs) == 5 == len({pair.source for pair in pairs})
    singles = {one.source for one in mutants_of(source, "f")}
    assert all(pair.source not in singles and "; " in pair.change for pair in pairs)
    again = pairs_of(source, "f", "loop", 5, seed=1)
    assert [pair.source for pair in again] == [pair.source for pair in pairs], "the same seed draws the same pairs"


def test_the_library_is_mutated_too_unless_somebody_writes_the_same() -> None:
    tree = originals(find("tree_broadcast"))
    assert len(tree) >= 4 and len({bare(one.source) for one in tree}) == len(tree)
    one = "import x\ndef f(a: int) -> int:\n    'Says.'\n    return a\n"
    assert bare(one) == bare("def f(a):\n    return a\n") != bare("def f(a):\n    return -a\n")


def test_every_mutant_of_a_right_answer_has_a_name_of_its_own() -> None:
    for exercise in declared():
        found = mutants_in(exercise)
        assert bool(found) != exercise.budgets and len({str(mutant) for mutant in found}) == len(found)


def test_what_is_explained_is_a_mutant_of_a_right_answer() -> None:
    for exercise in declared():
        gone = explained(exercise).keys() - {str(mutant) for mutant in mutants_in(exercise)}
        assert not gone, f"{exercise.name}: no mutants of a right answer are {gone}"


def test_every_file_of_explanations_belongs_to_a_lesson_and_every_heading_to_an_exercise_of_it() -> None:
    lessons = {lesson.stem: {exercise.name for exercise in exercises_of(lesson)} for lesson in LESSONS}
    for file in FOLDER.iterdir():
        headings = re.findall(r"^## (.+)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert headings and {*headings} <= lessons[file.stem], file


@pytest.mark.parametrize(
    "line", ["- `plain | a + b | a and b were swapped`", "- plain: no reason", "- `known`: A product has no order."]
)
def test_a_slip_among_the_explanations_is_said_with_its_line(line, tmp_path, monkeypatch) -> None:
    (tmp_path / "00_first_steps.md").write_text(f"## rank_squared\n\n- `known`: A sum has no order.\n{line}\n")
    monkeypatch.setattr(explanations, "FOLDER", tmp_path)
    with pytest.raises(CourseError, match="00_first_steps.md, line 4: expected"):
        explained(find("rank_squared"))


def test_the_report_names_every_survivor() -> None:
    one, other, third = mutants_of("def f(a):\n    return a + 1\n", "f")[:3]
    tally = Tally("f", killed=[one], survived=[other], not_equivalent=[third])
    text = report([tally])
    assert text.splitlines()[1].split() == ["f", "3", "2", "0", "1"]
    assert f"survived: f: {other}" in text and f"called right, but rejected: f: {third}" in text
    assert not tally.is_explained and tally.share_killed == pytest.approx(200 / 3)


def test_an_exercise_that_does_not_exist_is_said_so() -> None:
    with pytest.raises(CourseError, match="Did you mean"):
        main(["rank_squard"])


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["rank_squared", "who_is_there", "fit_alpha_beta"])
def test_all_mutants_of_a_small_exercise_are_rejected_or_explained(name, four_ranks) -> None:
    tally = judged(name, four_ranks)
    assert tally.is_explained, report([tally])
    assert tally.killed
