"""Which sample answers decide nothing: those that another program, or a line "Recognised …", finds as well."""

import pytest
from fake_ranks import FakeRanks

from course_utils.checks.exercise import Case, Exercise
from workshop.redundant_answers import redundant, without

FILE = """
## Right
`plain`:
```python
def twice(x):
    return 2 * x
```

## Wrong
### Is nothing returned?
Recognised when nothing is returned.
`silent` is `plain` with `return 2 * x` → `2 * x`.

`silent_again` is `plain` with `return 2 * x` → `return None`.

### Which power?
`squared` is `plain` with `2 * x` → `x * x`.

`squared_too` is `plain` with `2 * x` → `x**2`.

`to_the_x` is `plain` with `2 * x` → `x**x`. Like a square, for 2.

### Is a third of it asked for?
`thrice` is `plain` with `2 * x` → `3 * x`.

`thrice_for_2` is `plain` with `2 * x` → `3 * x if x == 2 else 17`.

`thrice_for_3` is `plain` with `2 * x` → `3 * x if x == 3 else 2 * x`.
"""


@pytest.fixture
def exercise(tmp_path) -> Exercise:
    file = tmp_path / "twice.answers.md"
    file.write_text(FILE)
    cases = [Case(f"the number {number}", [(number,)], [2 * number], with_comm=False) for number in (1, 2, 3)]
    return Exercise(
        library="course_utils.words:count",
        number=1,
        minutes=1,
        difficulty=1,
        turn="",
        cases=lambda *_: cases,
        name="twice",
        file=file,
    )


def test_an_answer_that_another_program_or_a_line_finds_is_redundant(exercise) -> None:
    assert [program.name for program, _ in redundant(exercise, FakeRanks(1))] == [
        "silent_again",
        "to_the_x",
        "squared_too",
    ]


def test_a_question_keeps_an_example(exercise) -> None:
    fewer = without(without(exercise.written, "silent"), "squared")
    assert [len(question.programs) for question in fewer.questions] == [1, 2, 3]
