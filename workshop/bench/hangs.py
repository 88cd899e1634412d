"""Programs with the mistakes that people make (`tests/ranks/hangs`): which are told, where, why and how soon.

Each says in its docstring what a report should find: "deadlock", "luck" (it ends, and need not have), "error", "soft"
(it may still go on, so that the learner is told of it and the run is not broken off), or nothing ("correct"). It is run
as a cell would run it, and if it says "Where: both", on virtual ranks too. The stop button is pressed `READ_SECONDS`
after a notice, and where nothing is told for `STOP_SECONDS`. The notice for what cannot be known comes after `SOON`
seconds here, and after half a minute in a notebook.
"""

import _thread
import contextlib
import importlib.util
import inspect
import io
import re
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

import course_utils as course
from course_utils.errors import CourseError, RankError, RanksGone
from course_utils.ranks import quiet_notice
from course_utils.ranks.ending import Ending
from course_utils.ranks.virtual.virtual_ranks import VirtualRanks
from course_utils.words import count
from workshop.bench import healthy
from workshop.bench.parts import chosen_parts
from workshop.bench.ranks import add_ones
from workshop.bench.rows import Row, seconds_row, value_row

RANKS = 4
PROGRAMS = Path(__file__).parents[2] / "tests" / "ranks" / "hangs"
STOP_SECONDS = 30.0
READ_SECONDS = 0.5
SOON = 4.0
AT_ONCE = 0.3
"""Seconds after which a deadlock is told."""
AGAIN = 0.1
"""Seconds after which the ranks work again, where they had not to be ended."""
HEALTHY = "healthy"
"""The part of the bench in which nothing is wrong (see `healthy`); it takes some minutes."""
_HERE = "# here"
_FIELD = r"^\s*(Finding|Words|Unsaid|Ranks|Group|Where): *(.+?) *$"


@dataclass(frozen=True)
class HangProgram:
    """A program of `tests/ranks/hangs`.

    Attributes:
        finding: "deadlock", "luck", "error", "soft" or "correct".
        words: must stand in a good report.
        unsaid: must not stand in it, because it is not true.
        ranks: how many it is for.
        backend: "gloo" for torch.distributed.
        own_group: it makes a process group itself, which it may leave behind.
        virtual: it runs on virtual ranks.
        lines: those of which a report should name one.
    """

    name: str
    function: Callable
    finding: str
    words: tuple[str, ...]
    unsaid: tuple[str, ...]
    ranks: int
    backend: str | None
    own_group: bool
    virtual: bool
    lines: tuple[int, ...]


@dataclass(frozen=True)
class Observed:
    """What was said of a program.

    Attributes:
        text: the report and the notices; only the latter where the stop button had to be pressed.
        after_stop: what was reported when it had been pressed.
        seconds: until there was a text, or until it was pressed.
        again: from then until the ranks worked again; None where new ones had to come.
        ending: why the run came to its end.
        noticed: whether the course printed something meanwhile.
    """

    text: str
    after_stop: str
    seconds: float
    again: float | None
    ending: str
    noticed: bool


def modules() -> Iterator[ModuleType]:
    """The modules of programs, one for each class of mistakes, sent to the ranks by value."""
    for file in sorted(PROGRAMS.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"hangs_{file.stem}", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        cloudpickle.register_pickle_by_value(module)
        yield module


def programs(module: ModuleType) -> list[HangProgram]:
    """What a module holds, in its order."""
    own = [function for function in vars(module).values() if inspect.isfunction(function)]
    return [program for function in own if "Finding:" in (function.__doc__ or "") for program in _programs(function)]


def _programs(function: Callable) -> Iterator[HangProgram]:
    """The program on real ranks and, if it is for both, the same on virtual ones."""
    fields = dict(re.findall(_FIELD, function.__doc__, re.MULTILINE))
    source, first = inspect.getsourcelines(function)
    group = fields.get("Group")
    program = HangProgram(
        name=function.__name__,
        function=function,
        finding=fields["Finding"],
        words=_listed(fields.get("Words", "")),
        unsaid=_listed(fields.get("Unsaid", "")),
        ranks=int(fields.get("Ranks", 2)),
        backend=group if group == "gloo" else None,
        own_group=group == "own",
        virtual=False,
        lines=tuple(first + offset for offset, line in enumerate(source) if _HERE in line),
    )
    yield program
    if fields.get("Where") == "both":
        yield replace(program, name=f"{program.name}_on_virtual_ranks", virtual=True)


def _listed(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


class _Notices(io.StringIO):
    """What is printed, when that began (`first`), and what it was when the stop button was pressed (`before_stop`)."""

    first: float | None = None
    before_stop: str | None = None

    def write(self, text: str) -> int:
        self.first = self.first or time.perf_counter()
        return super().write(text)


def _press_stop(printed: _Notices, over: threading.Event) -> None:
    until = time.monotonic() + STOP_SECONDS
    while not printed.first and time.monotonic() < until:
        if over.wait(0.05):
            return
    if not over.wait(READ_SECONDS):
        printed.before_stop = printed.getvalue()
        _thread.interrupt_main()


def observe(ranks: "course.Ranks", program: HangProgram) -> Observed:
    """Run a program and gather what is told of it."""
    if program.virtual:
        return _observe_virtually(program)
    if program.own_group:
        ranks.run(destroy_group)
    printed, over = _Notices(), threading.Event()
    begin, gone, report, ending = time.perf_counter(), False, "", str(Ending.RETURNED)
    threading.Thread(target=_press_stop, args=(printed, over), daemon=True).start()
    try:
        with contextlib.redirect_stdout(printed):
            ranks.run(program.function, ranks=program.ranks, backend=program.backend)
    except CourseError as error:
        report, gone, ending = str(error), isinstance(error, RanksGone), getattr(error, "ending", "")
    seconds = (printed.first or time.perf_counter()) - begin
    over.set()
    pressed = printed.before_stop is not None
    lines = (printed.before_stop if pressed else printed.getvalue()).splitlines()
    notices = [line for line in lines if not line.startswith("[rank ") or "Warning" in line]
    noticed = any(not line.startswith("[rank ") for line in lines)
    begin = time.perf_counter()
    if gone or not ranks.healthy:
        with contextlib.redirect_stdout(printed):
            ranks.restart()
            if program.backend or program.own_group:
                ranks.run(torch_is_there)
        gone = True
    if ranks.run(add_ones).results != [RANKS] * RANKS:
        raise CourseError(f"{program.name}: the ranks cannot add any more")
    again = None if gone else time.perf_counter() - begin
    if program.own_group and any(ranks.run(has_group).results):
        with contextlib.redirect_stdout(printed):
            ranks.restart()
            ranks.run(torch_is_there)
    text = " ".join(notices if pressed else [report, *notices]).strip()
    return Observed(text, report if pressed else "", seconds, again, ending, noticed)


def _observe_virtually(program: HangProgram) -> Observed:
    """Run a program on virtual ranks, where a deadlock is known at once; what they cannot do is no fault of it."""
    report, ending, begin = "", str(Ending.RETURNED), time.perf_counter()
    try:
        report = " ".join(VirtualRanks(program.ranks).run(program.function).notes)
    except RankError as error:
        report, ending = str(error), error.ending
    except CourseError as error:
        report = str(error) if program.finding != "correct" else ""
    except Exception as error:  # a fault of the virtual ranks, which is worth a line and ends no bench
        report, ending = repr(error), str(Ending.RAISED)
    seconds = time.perf_counter() - begin
    return Observed(report, "", seconds, 0.0, ending, noticed=False)


def reaches_the_learner(program: HangProgram, observed: Observed) -> bool:
    """Does the learner hear that this program is wrong?"""
    if program.finding == "error":
        return bool(observed.text) and observed.ending in (Ending.RAISED, Ending.DEADLOCK)
    if program.finding == "luck":
        return bool(observed.text) and observed.ending != Ending.STOPPED
    if program.finding == "soft":
        return bool(observed.text) and not broken_off(observed)
    return bool(observed.text)


def undisturbed(observed: Observed) -> bool:
    """Did the program come to its own end, without a word?"""
    return not observed.text and observed.ending == Ending.RETURNED


def broken_off(observed: Observed) -> bool:
    """Did the course end the run, because it took it for hopeless?"""
    return observed.ending in (Ending.DEADLOCK, Ending.NO_PROGRESS)


def names_the_line(program: HangProgram, observed: Observed) -> bool:
    """Is one of the lines told at which the program goes wrong?"""
    return not program.lines or any(
        re.search(rf"\blines? (\d+(, | and ))*{line}\b", observed.text) for line in program.lines
    )


def names_the_cause(program: HangProgram, observed: Observed) -> bool:
    """Are the words told that a good report has, and none that are not true?"""

    def stands(word: str) -> bool:
        return bool(re.search(rf"\b{re.escape(word)}\b", observed.text, re.IGNORECASE))

    return all(map(stands, program.words)) and not any(map(stands, program.unsaid))


def run(runs: int, only: list[str] | None = None) -> list[Row]:
    """Each program `runs` times; rows for each class of mistakes, and for all."""
    found = {module.__name__.removeprefix("hangs_"): programs(module) for module in modules()}
    found = chosen_parts("hangs", {**found, HEALTHY: []}, only or [])
    long = _healthy() if found.pop(HEALTHY, None) is not None else []
    if not found:
        return long
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell's background jobs ignore it: no button would stop
    ranks, before = course.start(RANKS), quiet_notice.QUIET_SECONDS
    ranks.run(torch_is_there)
    torch_is_there()
    quiet_notice.QUIET_SECONDS = SOON
    results: dict[str, list[tuple[HangProgram, Observed]]] = {}
    try:
        for name, own in found.items():
            results[name] = [(program, observe(ranks, program)) for program in own for _ in range(runs)]
            _say(name, results[name])
    finally:
        quiet_notice.QUIET_SECONDS = before
        ranks.stop()
    everything = [pair for pairs in results.values() for pair in pairs]
    rows = [row for name, pairs in results.items() for row in _shares(name, pairs)]
    return [*rows, *_shares("all", everything, targets=True), *_seconds(everything), *long]


def _healthy() -> list[Row]:
    """What takes long and is well: transfers behind slow links, and work of ten seconds."""

    def say(name: str, text: str) -> None:
        print(f"{HEALTHY}.{name}: noise: {text}", file=sys.stderr)

    disturbed = list(healthy.disturbed(say))
    label = f"{HEALTHY}: disturbed, of {count(len(disturbed), 'long program')}"
    return [value_row("hangs", label, [float(sum(disturbed))], "", target=0)]


def _say(name: str, pairs: list[tuple[HangProgram, Observed]]) -> None:
    """What was missed, for who watches."""
    for program, observed in pairs:
        wrong = program.finding != "correct"
        judged = [
            reaches_the_learner(program, observed),
            names_the_line(program, observed),
            names_the_cause(program, observed),
        ]
        if not wrong and not undisturbed(observed):
            print(f"{name}.{program.name}: noise: {observed.text} {observed.after_stop}", file=sys.stderr)
        elif wrong and not all(judged):
            missed = [word for word, well in zip(("told", "line", "cause"), judged, strict=True) if not well]
            missed += ["ranks"] if observed.again is None else []
            print(
                f"{name}.{program.name}: missed {', '.join(missed)} ({program.finding}): {observed.text}"
                f" After the stop button: {observed.after_stop}",
                file=sys.stderr,
            )


def _shares(name: str, pairs: list[tuple[HangProgram, Observed]], *, targets: bool = False) -> Iterator[Row]:
    wrong = [pair for pair in pairs if pair[0].finding != "correct"]
    reached = [pair for pair in wrong if reaches_the_learner(*pair)]
    noise = [pair for pair in pairs if pair[0].finding == "correct" and not undisturbed(pair[1])]

    def share(what: str, part: list, whole: list) -> Row:
        percent = [100.0 * len(part) / len(whole)] if whole else [100.0]
        label = f"{name}: {what} of {count(len(whole), 'program')}"
        return value_row("hangs", label, percent, "%", better="higher", target=95 if targets else None)

    yield share("told", reached, wrong)
    yield share("line named", [pair for pair in reached if names_the_line(*pair)], reached)
    yield share("cause named", [pair for pair in reached if names_the_cause(*pair)], reached)
    correct = f"{name}: noise, of {count(len(pairs) - len(wrong), 'correct program')}"
    yield value_row("hangs", correct, [float(len(noise))], "", target=0 if targets else None)
    harmed = [pair for pair in pairs if pair[0].finding in ("correct", "soft") and broken_off(pair[1])]
    may_go_on = len([pair for pair in pairs if pair[0].finding in ("correct", "soft")])
    label = f"{name}: broken off, of {count(may_go_on, 'program')} that may go on"
    yield value_row("hangs", label, [float(len(harmed))], "", target=0 if targets else None)


def _seconds(pairs: list[tuple[HangProgram, Observed]]) -> Iterator[Row]:
    deadlocks = [
        observed for program, observed in pairs if program.finding == "deadlock" and "deadlock:" in observed.text
    ]
    seconds = sorted(observed.seconds for observed in deadlocks)
    again = sorted(observed.again for observed in deadlocks if observed.again is not None)
    if len(seconds) > 1 and len(again) > 1:
        yield seconds_row("hangs", "deadlock told, median", seconds)
        yield seconds_row(
            "hangs", "deadlock told, 95% within", [statistics.quantiles(seconds, n=20)[-1]], target=AT_ONCE
        )
        yield seconds_row(
            "hangs", "ranks work again, 95% within", [statistics.quantiles(again, n=20)[-1]], target=AGAIN
        )
    ended = sum(observed.again is None for program, observed in pairs if program.finding != "error")
    yield value_row("hangs", "programs after which new ranks had to come", [float(ended)], "")


def has_group(comm: Any) -> bool:
    """Has the rank a process group of torch, such as one that a program has left behind?"""
    import torch.distributed as dist

    return dist.is_initialized()


def destroy_group(comm: Any) -> None:
    """Destroy the process group of earlier programs, so that the next one can make its own."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def torch_is_there(comm: Any = None) -> None:
    """Import what programs with torch need, which takes seconds the first time; here, too, for their results."""
    import torch._dynamo  # noqa: F401 - for the first model that is trained
    import torch.distributed.checkpoint
    import torch.distributed.fsdp
    import torch.distributed.pipelining  # noqa: F401
