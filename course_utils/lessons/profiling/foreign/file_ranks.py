"""Tells which rank each of several trace files is from: by what the file says, by its name, or by counting.

torch.profiler writes the rank into the file where `torch.distributed` has a group. Older versions did not, nor do
processes that use another library to communicate. TensorBoard's handler names a file after the machine, the process
and the time, which says who is who but not which rank it is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.foreign.profile_notes import Note, NoteKind
from course_utils.lessons.profiling.foreign.trace_files import in_order

_RANK = re.compile(r"(?<![a-z])(?<!local[-_.])(?:global[-_.]?)?rank[-_. =]?(\d{1,6})(?!\d)", re.IGNORECASE)
_RANK_PERHAPS = re.compile(
    r"(?<![a-z0-9])(?:r|trace|prof|profile|profiler|worker|gpu|proc|process|p|local[-_.]?rank)[-_.]?(\d{1,6})(?![0-9a-z])",
    re.IGNORECASE,
)
_TENSORBOARD = re.compile(r"^(?P<worker>.+)\.\d{10,}\.pt\.trace\.json")
_HOST_AND_PROCESS = re.compile(r"^(?P<host>.+)_\d+$")
_NOT_A_HOST = {"", "localhost", "localhost.localdomain"}
_FAR = 6e7
"""Microseconds: files without ranks whose times are a minute apart are not from one run."""


@dataclass(frozen=True)
class TraceFile:
    """A file that was read.

    Attributes:
        name: with the way to it, if it was found in a folder.
        trace: the trace of one rank.
        begin, end: of its profiled steps, or of the whole where no step is marked, on the trace's own clock.
        steps: names of the profiled steps.
        step_times: how long each took, in microseconds.
    """

    name: str
    trace: Trace
    begin: float
    end: float
    steps: tuple[str, ...] = ()
    step_times: tuple[float, ...] = ()

    @property
    def base(self) -> float | None:
        """Microseconds from 1970 to the trace's 0; None if it doesn't say."""
        base = self.trace.get("baseTimeNanoseconds")
        if type(base) in (int, float):
            return base / 1000
        return 0.0 if self.begin > 1e14 else None  # old versions count from 1970 themselves

    @property
    def stated_rank(self) -> int | None:
        """Which rank the trace says it is from."""
        own = self.trace.get("course")
        rank = _rank(own.get("rank")) if isinstance(own, dict) else None
        return rank if rank is not None else _rank((self.trace.get("distributedInfo") or {}).get("rank"))

    @property
    def world_size(self) -> int:
        """How many ranks there were, as the trace says; 0 if it doesn't."""
        return _rank((self.trace.get("distributedInfo") or {}).get("world_size")) or 0

    @property
    def named_rank(self) -> int | None:
        """The rank in the file's name, or else in that of a folder that it is in."""
        for part in reversed(self.name.split("/")):
            if found := _RANK.findall(part):
                return int(found[-1])
        return None

    @property
    def machine(self) -> str:
        """Where it was written; "" if nothing says so."""
        own = self.trace.get("host_name")
        found = _HOST_AND_PROCESS.match(self.worker)
        host = own if isinstance(own, str) and own else found["host"] if found else ""
        return "" if host in _NOT_A_HOST else host

    @property
    def worker(self) -> str:
        """What TensorBoard's handler calls the process: the machine and a number, unless it was given a name."""
        found = _TENSORBOARD.match(self.name.rpartition("/")[2])
        return found["worker"] if found else ""

    @property
    def process(self) -> str:
        """What files of one process have in common: a handler writes one each time the profiler's schedule repeats."""
        folder, _, name = self.name.rpartition("/")
        return f"{folder}/{self.worker or name}"


def ranks_of(files: Sequence[TraceFile]) -> tuple[list[int], list[Note]]:
    """For each file the rank that it is from, and what has to be known about that; two files may be from one rank."""
    stated, named = [file.stated_rank for file in files], [file.named_rank for file in files]
    if len(files) > 1 and len(set(stated)) == 1 and None not in named and len(set(named)) == len(files):
        stated = [None for _ in files]  # each says that it is rank 0, and their names know better
    found = [own if own is not None else by_name for own, by_name in zip(stated, named, strict=True)]
    notes = []
    if by_name := [number for number, own in enumerate(stated) if own is None and found[number] is not None]:
        notes.append(_note(NoteKind.RANKS_FROM_NAMES, by_name, found, files))
    if unknown := [number for number, rank in enumerate(found) if rank is None]:
        kind = _fill_in(found, unknown, files)
        if kind is not None:
            notes.append(_note(kind, unknown, found, files))
    return [rank or 0 for rank in found], notes


def _fill_in(found: list[int | None], unknown: Sequence[int], files: Sequence[TraceFile]) -> NoteKind | None:
    """Find ranks for the files that have none yet, and return how; None where there is only one process."""
    taken = {rank for rank in found if rank is not None}
    processes = sorted({files[number].process for number in unknown}, key=in_order)
    if not taken and (len(processes) == 1 or _are_apart([files[number] for number in unknown])):
        for number in unknown:
            found[number] = 0
        return None
    short = [process.rpartition("/")[2] for process in processes]
    guessed = [[] if _HOST_AND_PROCESS.match(name) else _RANK_PERHAPS.findall(name) for name in short]
    numbers = [int(each[-1]) for each in guessed if each]
    if len(set(numbers)) == len(processes) and not taken & set(numbers) and max(numbers) < max(64, 8 * len(files)):
        of_process = dict(zip(processes, numbers, strict=True))
        kind = NoteKind.RANKS_FROM_NAMES
    else:
        free = (rank for rank in range(len(files) + len(taken)) if rank not in taken)
        of_process = dict(zip(processes, free, strict=False))
        kind = NoteKind.RANKS_COUNTED
    for number in unknown:
        found[number] = of_process[files[number].process]
    return kind


def _are_apart(files: Sequence[TraceFile]) -> bool:
    """Whether no two of the files can be from one run, as one had ended long before the next began."""
    if any(file.base is None for file in files):
        return False
    times = sorted((file.base + file.begin, file.base + file.end) for file in files)
    return all(begin - end > _FAR for (_, end), (begin, _) in zip(times, times[1:], strict=False))


def _note(kind: NoteKind, numbers: Sequence[int], ranks: Sequence[int | None], files: Sequence[TraceFile]) -> Note:
    ordered = sorted((ranks[number] or 0, files[number].name) for number in numbers)
    return Note(kind, tuple(rank for rank, _ in ordered), tuple(name for _, name in ordered))


def _rank(value: Any) -> int | None:
    """A rank, perhaps one that is written as text; None if it is none."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 7:
        value = int(value)
    return value if type(value) is int and 0 <= value < 10**7 else None
