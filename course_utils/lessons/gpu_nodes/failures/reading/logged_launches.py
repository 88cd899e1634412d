"""Cut a log into launches, and tell how each ended.

A file may hold many launches: Slurm adds to it when a job is queued again, and so does a shell with `>>`. Whatever is
not certainly the beginning of a new launch belongs to the one before it.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple

from course_utils.lessons.gpu_nodes.failures.log_line import Line
from course_utils.lessons.gpu_nodes.failures.reading.launch_size import least_size_of, size_of
from course_utils.lessons.gpu_nodes.failures.reading.log_names import (
    EmptyFile,
    LogContent,
    attempt_of,
    in_natural_order,
    jobs_of,
)
from course_utils.lessons.gpu_nodes.failures.reading.logged_bars import bar_in, last_bars, last_states
from course_utils.lessons.gpu_nodes.failures.reading.piled_tracebacks import launches_of_tracebacks
from course_utils.lessons.gpu_nodes.failures.reading.writers import message_of


class LaunchEnding(Enum):
    """How a launch ended."""

    FAILED = auto()
    CANCELLED = auto()
    """Slurm ended it before any rank had failed: by `scancel`, at its time limit, for a different job, for a node."""
    ENDED_WELL = auto()
    UNKNOWN = auto()
    """It stops without a word."""


@dataclass(frozen=True)
class LoggedLaunch:
    """A launch of a program on its ranks.

    Attributes:
        lines: what it wrote, file by file.
        ending: how it ended.
        world_size: the number of ranks if the log names it, else 0.
        least_size: so many ranks there are at least.
        attempts: how many times torchrun started the ranks.
        silent: ranks whose files are empty, with these files.
    """

    lines: tuple[Line, ...]
    ending: LaunchEnding
    world_size: int
    least_size: int
    attempts: int = 1
    silent: tuple[EmptyFile, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it is in."""
        return tuple(dict.fromkeys(line.file for line in self.lines))


def launches_of(lines: Sequence[Line], empty: Sequence[EmptyFile] = ()) -> list[LoggedLaunch]:
    """The launches in a log, the latest last.

    Files whose names and contents show that they are of one job, such as one for each rank, are taken together.

    Args:
        lines: of all files.
        empty: further files, which hold none.
    """
    files: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        files[line.file].append(line)
    ranks = {of.file: of.rank for of in empty if of.rank is not None}
    contents = {file: _content(of_file) for file, of_file in files.items()}
    jobs = jobs_of(contents | {file: LogContent(frozenset([rank])) for file, rank in ranks.items()})
    launches = []
    for job in jobs:
        written = [files[file] for file in job if file not in ranks]
        silent = tuple(EmptyFile(file, ranks[file]) for file in job if file in ranks)
        launches += [(cut, silent) for cut in _launches_of_job(_with_one_clock(written)) if written]
    return [_launch(cut, silent) for cut, silent in sorted(launches, key=lambda launch: _order(launch[0]))]


def _launch(lines: Sequence[Line], empty: Sequence[EmptyFile]) -> LoggedLaunch:
    heard = {line.rank for line in lines}
    silent = tuple(of for of in empty if of.rank not in heard)
    size = size_of(lines)
    least = max([size, least_size_of(lines), *(of.rank + 1 for of in silent if of.rank is not None)])
    return LoggedLaunch(tuple(lines), _ending(lines), size, least, _attempts(lines), silent)


def _content(lines: Sequence[Line]) -> LogContent:
    times = [line.time for line in lines if line.time is not None]
    ranks = frozenset(line.rank for line in lines if line.rank is not None)
    return LogContent(ranks, min(times, default=None), max(times, default=None))


_HOUR = 3600.0
_SLACK = 120.0
"""By how many seconds the ranks may begin one after the other."""
_APART = 3000.0
"""Nodes in different time zones seem to write at different times, so many seconds or more between their files."""


def _with_one_clock(files: Sequence[Sequence[Line]]) -> list[Sequence[Line]]:
    """The files of a job, with the clocks of nodes in different time zones set to that of the first file.

    The ranks of a launch begin at the same time. So if two files begin whole hours apart, and neither holds anything
    of the time in which the other was written, it is their clocks that differ.
    """
    contents = [_content(lines) for lines in files]
    result = list(files)
    for index, (lines, content) in enumerate(zip(files, contents, strict=True)):
        first = contents[0]
        if None in (content.first, content.last, first.first, first.last) or content.ranks & first.ranks:
            continue
        ahead = (content.first or 0) - (first.first or 0)
        hours = round(ahead / _HOUR) * _HOUR
        silence = max((content.first or 0) - (first.last or 0), (first.first or 0) - (content.last or 0))
        if hours and abs(ahead - hours) < _SLACK and silence > _APART:
            result[index] = [line if line.time is None else replace(line, time=line.time - hours) for line in lines]
    return result


def _order(launch: Sequence[Line]) -> tuple[float, list[tuple[int, str]], int]:
    """By time; without any clock by the names of the files."""
    times = [line.time for line in launch if line.time is not None]
    return max(times, default=0.0), in_natural_order(launch[0].file), launch[0].number


_JOB_NUMBER = re.compile(r"(?<![\da-f])\d{4,}(?![\da-f])")
"""The number of a job grows. A part of a hexadecimal name is none."""


def have_known_order(first: LoggedLaunch, second: LoggedLaunch) -> bool:
    """Whether the log shows which of two launches was earlier: a file with both, clocks, or the numbers of jobs."""
    if set(first.files) & set(second.files):
        return True
    if all(any(line.time is not None for line in launch.lines) for launch in (first, second)):
        return True
    names = [launch.files[0] for launch in (first, second)]
    return len({_JOB_NUMBER.sub("#", name) for name in names}) == 1


def _launches_of_job(files: Sequence[Sequence[Line]]) -> Iterator[list[Line]]:
    """Yield the lines of each launch of a job. The last launch of one file is that of the other files, too."""
    cuts = [[launch for cut in _cut(lines) for launch in launches_of_tracebacks(cut)] for lines in files]
    for back in range(max(map(len, cuts), default=0), 0, -1):
        yield [line for parts in cuts if back <= len(parts) for line in parts[-back]]


# Where a launch begins.

_COMMAND = re.compile(
    r"\++ (?:\S*/)?(?:(?P<batch>srun|mpirun|mpiexec|sbatch)|torchrun|accelerate|deepspeed|python3?)\b"
)
"""The shell repeats its commands after `set -x`. Only the batch script itself calls srun or mpirun."""
_TORCHRUN_BEGINS = re.compile(r"Setting OMP_NUM_THREADS environment variable for each process")
_NOT_STARTED = re.compile(
    r'\s*File "[^"]+", line \d+\s*$|usage: |\S*python\S*: can\'t open file|.*: command not found$'
)
"""A program that Python can't read, or that gets a wrong option, has written nothing before."""
_USAGE = re.compile(r"usage: (\S+)")
_MODULE = re.compile(r"Load(?:ed|ing) (?:module: |dependency \[|[\w.+-]+/v?\d[\w.+-]*$)")
"""What `module load` prints. Only the batch script loads modules, before anything else."""
_CALL = re.compile(r'\s*File "[^"]+", line \d+, in |Traceback \(most recent call last\):')
_RAISED = re.compile(r"(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::|$)")
_ENDS = re.compile(
    r"\S*ChildFailedError:?"
    r"|srun: error: \S+: tasks? .*(?:Exited|Segmentation|Killed|Aborted|Bus error|Terminated|Memory|Floating)"
    r"|.*\*\*\* JOB \S+ ON \S+ CANCELLED|mpirun noticed that|.*BAD TERMINATION"
)
_JOB_ENDS = re.compile(r".*\*\*\* JOB \S+ ON \S+ CANCELLED")
_COMPLAINS = re.compile(r"\[?[EW]\d{4} |\[[EW] ")
"""An error or a warning of PyTorch's C++ code, which may be repeated."""
_TELLING = (
    "rror", "xception", "xit", "nterrupt", "Traceback", 'File "', "usage: ", "+ ", "OMP_NUM", "not found", "can't open",
    "srun", "slurmstepd", "CANCELLED", "DUE TO", "ERMINATION", "terminat", "noticed", "detected", "FATAL", "ABORT",
    "Fatal", "dumped", "fault", "Killed", "illed", "Abort", "oom", "memory", "slots", "Watchdog", "Xid", "Assertion",
    "required", "[E", "(failed", "failed with", "arning", "status", "return code", "unrecognized",
)  # fmt: skip
_RULER = re.compile(r"\W*$")
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")
_OPENING = 5
"""So many lines at the beginning of a launch are known again when they are repeated."""
_OPENING_COUNTS = 1000
"""In so many lines it is counted how many ranks write them."""
_GOING_ON = 5
"""So many lines after the end of a whole job are those of the next one."""


class _Key(NamedTuple):
    """What is the same when a line comes again."""

    text: str
    rank: int | None


@dataclass
class _Refusals:
    """What argparse printed as it refused options: the usage of a program, and then the error, with which it ends.

    All ranks of a launch have the same options but for numbers, so a different error is of a new launch.
    """

    usage: int = -1
    """The line of the last usage after which there is no error yet; -1 if there is none."""
    program: str = ""
    errors: set[str] = field(default_factory=set)

    def note(self, text: str, index: int) -> None:
        """Take a line into account."""
        if found := _USAGE.match(text):
            self.usage, self.program = index, found[1]
        elif self._is_error(text):
            self.usage = -1
            self.errors.add(_NUMBERS.sub("#", text))

    def usage_before(self, text: str) -> int | None:
        """Return the line of the usage that belongs to an error, if this is the error of a new launch."""
        is_new = self._is_error(text) and self.errors and _NUMBERS.sub("#", text) not in self.errors
        return self.usage if is_new else None

    def _is_error(self, text: str) -> bool:
        return self.usage >= 0 and (
            text.startswith("error: ") or (text.startswith(self.program) and ": error: " in text)
        )


@dataclass
class _State:
    """What is known of a launch while its lines are read."""

    start: int
    usual: dict[_Key, int] = field(default_factory=dict)
    """How many times each of the first lines came in the launch before, before its first failure."""
    first: str = ""
    """The first line."""
    is_usual: bool = True
    """Whether all lines so far are among the usual ones."""
    opening: dict[_Key, int] = field(default_factory=dict)
    """How many times each of its first lines came before the first failure."""
    is_opening: bool = True
    again: dict[_Key, list[int]] = field(default_factory=dict)
    """Where these lines came again after the failure."""
    is_in_traceback: bool = False
    ranks_spoke: bool = False
    has_output: bool = False
    """Something besides commands that a shell repeats."""
    has_failed: bool = False
    has_ended: bool = False
    job_ended: bool = False
    after_job: int = 0
    """Ordinary lines after the end of the job."""
    not_started: set[str] = field(default_factory=set)
    refusals: _Refusals = field(default_factory=_Refusals)

    def begins_again(self, line: Line, text: str) -> bool:
        """Whether the first line comes again in a launch that has written nothing else than the one before it did."""
        if not self.is_usual or line.rank is not None or text != self.first:
            return False
        key = _key(line, text)
        if key not in self.usual:
            return False
        # Several processes of a launch may begin with the same line, but after the last line they all have begun.
        expected = [key] if _MODULE.match(text) else self.usual
        return all(self.opening.get(each, 0) >= self.usual[each] for each in expected)

    @property
    def is_calm(self) -> bool:
        """Whether nothing has failed yet."""
        return not (self.has_failed or self.is_in_traceback)


def _cut(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Yield the launches of a file."""
    state, index = _State(0), 0
    while index < len(lines):
        line = lines[index]
        if state.is_calm and index - state.start > _OPENING_COUNTS and not _is_telling(line.text):
            state.ranks_spoke = state.ranks_spoke or line.rank is not None
            index += 1
            continue
        text = message_of(line.text)
        start = _start_of_launch(state, line, text, index)
        if start is not None and start > state.start:
            yield lines[state.start : start]
            state, index = _State(start, usual=state.opening), start
            continue
        _note(state, line, text, index)
        index += 1
    yield lines[state.start :]


def _is_telling(text: str) -> bool:
    """Whether a line may tell of a beginning or an end. Few do, and the patterns that tell them apart take long."""
    return any(word in text for word in _TELLING)


def _start_of_launch(state: _State, line: Line, text: str, index: int) -> int | None:
    """Where a new launch begins, if this line shows that one has begun."""
    if not state.has_output:
        return None
    if found := _COMMAND.match(text):
        return index if found["batch"] or state.has_failed else None
    if _TORCHRUN_BEGINS.search(text):
        # Several launchers of one launch begin before any rank does.
        return index if state.ranks_spoke or state.has_ended else None
    if not state.has_failed:
        return index if state.begins_again(line, text) else None
    if line.rank is None and (usage := state.refusals.usage_before(text)) is not None:
        return usage
    if _NOT_STARTED.match(text) and not state.is_in_traceback:
        return None if text in state.not_started or line.rank is not None else index
    if state.job_ended and state.after_job >= _GOING_ON:
        return index - _GOING_ON
    key = _key(line, text)
    if key not in state.opening or state.is_in_traceback:
        return None
    state.again.setdefault(key, []).append(index)
    # Each rank may write the same line. So the next launch has as many of them as came before the failure.
    is_complete = any(len(found) >= state.opening[other] for other, found in state.again.items())
    if is_complete and (len(state.again) > 1 or state.job_ended or _MODULE.match(text)):
        return min(found[0] for found in state.again.values())
    return None


def _note(state: _State, line: Line, text: str, index: int) -> None:
    """Take a line into account."""
    if index == state.start:
        state.first = text
    is_call = _CALL.match(text) is not None
    is_raised = not is_call and (_RAISED.match(text) is not None or (state.is_in_traceback and not text[:1].isspace()))
    is_not_started = not state.is_in_traceback and _NOT_STARTED.match(text) is not None
    if is_not_started:
        state.not_started.add(text)
    state.refusals.note(text, index)
    if _ENDS.match(text):
        state.has_ended = True
    state.has_failed = state.has_failed or state.has_ended or is_raised or is_not_started
    if is_call or state.has_failed or _COMPLAINS.match(text):
        state.is_opening = False
    if not state.has_failed:
        key = _key(line, text)
        state.is_usual = state.is_usual and (key in state.usual or not key.text)
        if state.is_opening and len(state.opening) < _OPENING and key.text:
            state.opening.setdefault(key, 0)
        if key in state.opening:
            state.opening[key] += 1
    state.ranks_spoke = state.ranks_spoke or line.rank is not None
    state.has_output = state.has_output or not text.startswith("+")
    if _JOB_ENDS.match(text):
        state.job_ended, state.after_job = True, 0
    elif state.job_ended:
        state.after_job = 0 if is_call or is_raised or _OF_AN_END.search(text) else state.after_job + 1
    state.is_in_traceback = is_call or (state.is_in_traceback and text[:1].isspace())


def _key(line: Line, text: str) -> _Key:
    """A line without its numbers, which differ from launch to launch; without a text if every program may print it."""
    is_telling = len(text) >= 8 and not text[0].isspace() and not _RULER.match(text)
    is_telling = is_telling and not (_OF_AN_END.search(text) or _FAREWELL.match(text))
    return _Key(_NUMBERS.sub("#", text[:120]) if is_telling else "", line.rank)


# How a launch ended.

_FAILS = re.compile(
    r"ChildFailedError|failed \(exitcode: -?\d+\)|returned non-zero exit status|exits with return code = [^0]"
    r"|mpirun (?:noticed|detected)|BAD TERMINATION|Primary job +terminated normally, but"
    r"|MPI_ERRORS_ARE_FATAL|MPI_ABORT was invoked|not enough slots|^srun: error: |slurmstepd\S*: error: (?!\*\*\*)"
    r"|core dumped|\bSegmentation fault\b|Fatal Python error|^terminate called|^(?:Killed|Aborted|Bus error)\b"
    r"|oom[-_]kill|Out of memory: Killed|Unexpected bus error|\bXid\b|Assertion `.*failed"
    r"|Watchdog caught collective operation timeout|^\[E\d{4} |^\[E "
    r"|wandb: (?:Waiting for W&B process to finish.*\(failed \d+\)|Program failed with code|ERROR Run \S+ errored)"
    r"|unrecognized arguments|the following arguments are required|: error: argument |command not found$"
)
_HARMLESS = re.compile(r"CommandNotFoundError: Your shell has not been properly configured|.*Warning\b")
_CANCELLED = re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED|srun: Job step aborted|DUE TO TIME LIMIT")
_FAREWELL = re.compile(
    r"(?:\[?\d{1,6}[]:]:? )?(?:(?:wandb|COMET \w+|swanlab|clearml\S*) ?:|\[neptune\]|.*Neptune\b"
    r"|All \d+ operations synced|Shutting down background jobs|\S{0,2} ?View (?:run|experiment|project) )"
)
"""What packages that keep a record of experiments print as a program ends, whether it failed or not."""
_GOES_ON = re.compile(r"(?=.*\d).*\b(?:step|epoch|iter(?:ation)?s?|loss|acc(?:uracy)?|eval\w*)\b", re.IGNORECASE)
_PROGRESS = 2
"""So many lines of progress after an exception show that the program went on."""
_ENDS_WELL = re.compile(
    r"Trainer\.fit. stopped: .*reached|train_runtime"
    r"|\btraining\b.{0,30}\b(?:complete[d]?|finished|done|successful(?:ly)?)\b|\b(?:finished|completed) training\b"
    r"|\b(?:run|job|program|everything|all)\b.{0,30}\bsuccessful(?:ly)?\b"
    r"|exit(?:ed)?(?: with)?(?: exit)? code:? 0\b",
    re.IGNORECASE,
)
_FAREWELL_OF_SUCCESS = re.compile(
    r"wandb: (?:Waiting for W&B process to finish.*\(success\)|Program ended successfully)"
)
_OF_AN_END = re.compile(
    r"^\s|srun: |slurmstepd|CANCELLED|[Ss]ignal|SIG[A-Z]+|terminat|cgroup|exitcode|torch[./]distributed"
    r"|\b[EW]\d{4} |\[[EW] |(?i:error|warning)"
)
_LAST_LINES = 40


def _ending(lines: Sequence[Line]) -> LaunchEnding:
    exceptions: dict[tuple[str, int | None], _Aftermath] = {}
    """Of each writer, the last exception that it may not have survived."""
    in_traceback: set[tuple[str, int | None]] = set()
    is_cancelled = False
    for line in lines:
        if not (exceptions or in_traceback or _is_telling(line.text)):
            continue
        text, writer = message_of(line.text), (line.file, line.rank)
        if _CANCELLED.search(text):
            is_cancelled = True
        elif _FAILS.search(text):
            if not is_cancelled:
                return LaunchEnding.FAILED
        elif _CALL.match(text):
            in_traceback.add(writer)
        elif not text[:1].isspace() and not _FAREWELL.match(text):
            if writer in in_traceback or (_RAISED.match(text) and not _HARMLESS.match(text)):
                in_traceback.discard(writer)
                if not is_cancelled:
                    exceptions[writer] = _Aftermath()
            elif writer in exceptions and exceptions[writer].goes_on_with(line, text):
                del exceptions[writer]
    if exceptions:
        return LaunchEnding.FAILED
    if is_cancelled:
        return LaunchEnding.CANCELLED
    return LaunchEnding.ENDED_WELL if _ends_well(lines) else LaunchEnding.UNKNOWN


@dataclass
class _Aftermath:
    """What a writer prints after an exception."""

    progress: int = 0
    bars: dict[float, float] = field(default_factory=dict)
    """How far a bar of so many steps was: tqdm draws it once more as the program ends."""

    def goes_on_with(self, line: Line, text: str) -> bool:
        """Take a line into account; whether the program has survived the exception."""
        if bar := bar_in(line):
            self.progress += bar.done > self.bars.setdefault(bar.total, bar.done)
        elif _GOES_ON.match(text):
            self.progress += 1
        return self.progress >= _PROGRESS


def is_farewell(line: Line) -> bool:
    """Whether a package that keeps a record of experiments wrote a line, whose own troubles stop no program."""
    return _FAREWELL.match(message_of(line.text)) is not None


def _ends_well(lines: Sequence[Line]) -> bool:
    """Whether a program says that it is done, and no bar stands still before its end."""
    if not all(bar.is_full for bar in last_states(lines)):
        return False
    bars = last_bars(lines)
    says_so = any(
        (_FAREWELL_OF_SUCCESS if is_farewell(line) else _ENDS_WELL).search(line.text) for line in lines[-_LAST_LINES:]
    )
    return says_so or (bool(bars) and all(bar.ends_a_run for bar in bars))


_PROCESS_FAILED = re.compile(r"failed \(exitcode: -?\d+\) local_rank: (\d+) \(pid: (\d+)\)")


def _attempts(lines: Sequence[Line]) -> int:
    """How many times torchrun started the ranks: it writes of each failed process, and each attempt has a folder."""
    processes = defaultdict(set)
    for line in lines:
        if "exitcode" in line.text and (found := _PROCESS_FAILED.search(line.text)):
            processes[line.file, line.node, found[1]].add(found[2])
    folders = max(attempt_of(file) for file in {line.file for line in lines}) + 1
    return max([folders, *map(len, processes.values())])
