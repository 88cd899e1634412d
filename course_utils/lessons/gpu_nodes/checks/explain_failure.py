"""The check of `explain_failure`: the recorded logs, the same with other names, other words, and other failures."""

import random
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.lessons.gpu_nodes.failures.explain import (
    CONSEQUENCE,
    ERROR,
    RULES,
    TIME,
    UNKNOWN,
    beside,
    shortened,
)
from course_utils.lessons.gpu_nodes.failures.recorded_logs import RECORDED, recording
from course_utils.lessons.gpu_nodes.failures.variations import NOISE, OTHERS, interleaved, varied

CAUSE, LINES = "the cause", "its lines"
FAILED = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"
SMALL_LETTERS = "ends early, due to time limit of 60 min\nKeyError: 'minutes'"
UNKNOWN_LOGS = (
    "epoch 1 loss 2.30\nModuleNotFoundError: No module named 'torhc'\nepoch 1 done",
    "loss nan\nRuntimeError: Connection closed by peer [10.0.0.1]:4711\nValueError: bad shape\nKeyError: 'x'",
    f"step 1\n{FAILED}\nSignal 9 (SIGKILL) received by PID 7\nstep 2",
    "KeyError: 'a'\nstep 1\nKeyError: 'b'\nKeyError: 'c'\nBroken pipe error: gone\nKeyError: 'd'\nKeyError: 'e'",
    f"rank 0 goes on\n{FAILED}\n{FAILED} again\n{FAILED} and again\n{FAILED} once more",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/digits.npz'\nwrote /data/losses.csv",
    SMALL_LETTERS,
    "KeyError: 'a'\nKeyError: 'a'\nKeyError: 'b'\nKeyError: 'c'",
    "step 1\nstep 2\nstep 3\n \n",
    "",
)
EARLIER = (
    "E1122 01:00:09.000000 7 train.py:1] step failed\nKeyError: 'late'\n"
    "[E1122 01:00:04.100000000 train.cpp:1] step failed\nKeyError: 'early'",
    "[E1122 01:00:09.5 pair.cc:1] late\nOSError: [Errno 98] Address already in use: late\n"
    "[W1122 01:00:04.1 pair.cc:1] early\nOSError: [Errno 98] Address already in use: early",
)
"""Whose order in the file is not that in time."""
MISSING = "FileNotFoundError: [Errno 2] No such file or directory: '{0}'"
TWO_FILES = "\n".join([MISSING.format("/data/digits.npz"), "wrote /mnt/runs/7.pt", MISSING.format("/mnt/runs/7.pt")])
INDENTED = "step 1\n    torch.OutOfMemoryError: CUDA out of memory. \nstep 2", "step 1\n\tKeyError: 'x'  \nstep 2"


def seen(function: Callable, log: str) -> dict[str, Any]:
    """What the learner's function says of a log."""
    cause = function(log)
    return {CAUSE: getattr(cause, "name", cause), LINES: getattr(cause, "lines", None)}


def by_hand(log: str) -> dict[str, Any]:
    """The cause and its lines: of all rules and lines that fit, the first rule, and its earliest line."""
    lines, now = [], ""
    for number, line in enumerate(log.splitlines()):
        if found := TIME.search(line):
            now = " ".join(found.groups())
        if line.strip():
            lines.append((now, number, line))
    fit = [
        (index, *line, rule.cause)
        for index, rule in enumerate(RULES)
        for line in lines
        if (found := re.search(rule.shows, line[-1])) and (not rule.beside or beside(rule, found, log))
    ]
    if fit:
        _, _, _, line, cause = min(fit)
        return {CAUSE: cause, LINES: (line,)}
    in_order = [line for *_, line in sorted(lines)]
    errors = [line for line in in_order if ERROR.search(line)]
    return {CAUSE: UNKNOWN, LINES: tuple((without(errors, CONSEQUENCE) or errors or in_order[-1:])[:3])}


def without(lines: Iterable[str], pattern: re.Pattern[str]) -> list[str]:
    """The lines that a pattern is not found in."""
    return [line for line in lines if not pattern.search(line)]


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(about: str, log: str, key: str = "") -> Case:
        due = by_hand(log)
        telling = " / ".join(f'"{shortened(line.strip(), 90)}"' for line in due[LINES][:1]) or "no line"
        key = key if due[LINES] else "no-lines"
        return Case(f"{about}; what tells is {telling}", [(log,)], [due], with_comm=False, harness=seen, key=key)

    mixed = random.Random(int(rng.integers(2**31)))
    logs = {cause: recording(cause).log for cause in RECORDED}
    for cause, log in logs.items():
        yield case(f'the recorded log of "{cause}"', log)
    for log in UNKNOWN_LOGS:
        yield case("a log of no known cause", log, "small-letters" if log == SMALL_LETTERS else "")
    both = ("out of memory", "time limit"), ("time limit", "out of memory"), ("wrong rank count", "unreachable node")
    for first, second in both:
        yield case(f'the logs of "{first}" and "{second}", one after the other', logs[first] + logs[second])
    for cause, log in logs.items():
        changed = interleaved(varied(log), mixed)
        noise = [mixed.choices(NOISE, k=mixed.randrange(200)) for _ in range(2)]
        about = f'the log of "{cause}" with other names, numbers and order'
        yield case(about, "\n".join([*noise[0], changed, *noise[1]]), "varied")
    for log in EARLIER:
        yield case("a log whose order is not that in time", log)
    yield case("two missing files", TWO_FILES, "two-files")
    for log in INDENTED:
        yield case("a log with indented lines", log)
    for cause, line in OTHERS.values():
        yield case(f'other words for "{cause}"', "\n".join([*NOISE, line, FAILED, *NOISE]))
    known, unknown = (case("the first of two logs", log) for log in (logs["out of memory"], UNKNOWN_LOGS[0]))
    yield in_a_row(known, unknown)
    yield in_a_row(unknown, case("a log of no known cause", UNKNOWN_LOGS[-1]))


def _not_in_the_log(case: Case, outcome: Outcome) -> bool:
    return any(line not in case.arguments[0][0].splitlines() for line in outcome.results[0][LINES])


EXERCISE = Exercise(
    library="failures.explain",
    number=5,
    minutes=15,
    difficulty=2,
    turn="the first rule that fits, with its earliest line; otherwise the earliest errors",
    title="from a log to the cause of a failed launch",
    cases=_cases,
    hints=(
        "When one rank fails, many others complain. The rules are sorted so that a cause is above what follows from "
        "it. So which of your two loops is the outer one, the one over rules or the one over lines?",
        "Start with `lines = in_time(log.splitlines())`. For each rule and each line, let `found = "
        "re.search(rule.shows, line)`. If it found something, and the rule has no `beside` or `beside(rule, found, "
        "log)` is true, `return Cause(rule.cause, (line,))`. After both loops return `Cause(UNKNOWN, …)` with a tuple "
        "of at most three lines.",
    ),
    symptoms={"a line is not in the log": _not_in_the_log},
    praise=lambda outcome: (
        f"{len(RECORDED)} recorded logs, the same with different names and orders, {len(OTHERS)} in different words, "
        f"and {len(UNKNOWN_LOGS)} with none of these causes"
    ),
)
