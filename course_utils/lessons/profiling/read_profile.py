"""Reads the files that torch.profiler wrote, for whomever and wherever, as a profile of all ranks.

A file may be from one rank or from several that were merged, packed or not, in a folder or in an archive. Whatever the
reader of its numbers has to know, such as ranks that are missing or clocks that nobody compared, becomes a note of the
profile.
"""

import gc
import math
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError, nearest
from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.event_kinds import NOT_SHOWN, is_step, kind_of
from course_utils.lessons.profiling.foreign.file_ranks import TraceFile, ranks_of
from course_utils.lessons.profiling.foreign.lenient_json import TraceText
from course_utils.lessons.profiling.foreign.note_sentences import not_a_trace_text, path_text
from course_utils.lessons.profiling.foreign.profile_notes import Note, NoteKind
from course_utils.lessons.profiling.foreign.torch_events import KEPT_HEAD, EventKeeper, number_of, traces_of_ranks
from course_utils.lessons.profiling.foreign.trace_files import FileKind, NoFiles, NotATrace, Source, sources, text_of
from course_utils.lessons.profiling.lanes import Lanes
from course_utils.lessons.profiling.merged_trace import lacks_calls
from course_utils.lessons.profiling.profiled_ranks import Profile
from course_utils.lessons.profiling.sentences import profile_report
from course_utils.progress_bar import ProgressBar

Paths = str | os.PathLike[str]
_BEGUN = 0.05
"""A step that took less than this share of the longest one had only just begun when the profiler stopped."""
_bars: list[ProgressBar] = []
"""The bar that is shown now, if any."""
_HOUR = 3.6e9
"""Microseconds: no clock of a machine in a cluster is so wrong."""
_TORCHS_HEAD = {"deviceProperties", "distributedInfo", "schemaVersion"}


class ReadProfile(Profile):
    """A profile that was read from files; printed, it is a report."""

    @cached_property
    def trace(self) -> Trace:
        """All ranks on one clock, as of every profile; shows that time passes if it takes long."""
        with _patiently("Putting the ranks on one clock"):
            return super().trace

    @cached_property
    def lanes(self) -> list[Lanes]:
        """When each rank computed and communicated, as of every profile; shows that time passes if it takes long."""
        with _patiently("Counting computing and communication"):
            return super().lanes

    def __str__(self) -> str:
        with _patiently("Finding out where the time went"):
            return profile_report(self)

    __repr__ = __str__


def read_profile(files: Paths | Iterable[Paths]) -> ReadProfile:
    """Read what torch.profiler wrote on one rank or several.

    Args:
        files: one path or several, of files, or of folders and archives with files, as `export_chrome_trace` or
            `tensorboard_trace_handler` write them; packed by gzip, bzip2, xz, ZIP or tar, or not.

    Raises:
        CourseError: a path leads to nothing, or no file is a trace of torch.profiler.
    """
    paths = _as_paths(files)
    with _patiently("Looking for files") as bar:
        try:
            found = sources(paths)
        except NoFiles as error:
            raise CourseError(path_text(error.problem, error.path, _near(error.path))) from None
        read, left_out, notes = _read_all(found, bar)
    if not read:
        raise CourseError(not_a_trace_text(left_out))
    if left_out:
        notes.append(Note(NoteKind.LEFT_OUT, files=tuple(name for name, _ in left_out)))
    return _profile_of(read, notes)


def _as_paths(files: Any) -> list[Path]:
    """One path or several as a list."""
    several = [files] if isinstance(files, (str, os.PathLike)) else files
    try:
        paths = [Path(file) for file in several]
    except TypeError:
        raise CourseError(
            "read_profile takes the path of a file or of a folder, or a list of paths: course.read_profile('traces')."
        ) from None
    if not paths:
        raise CourseError("read_profile was given an empty list. Give the path of at least one file or folder.")
    return paths


def _near(path: Path) -> str:
    """ " Did you mean …?" for a path that leads nowhere."""
    try:
        return nearest(path.name, os.listdir(path.parent))
    except (OSError, ValueError):
        return ""


@contextmanager
def _patiently(text: str) -> Iterator[ProgressBar]:
    """Show that time passes while a million events are read or counted.

    Meanwhile Python's collector does not walk through all of them again and again, as none is garbage. What is part of
    something longer has no bar of its own.
    """
    if _bars:
        yield _bars[-1]
        return
    was_enabled, done = gc.isenabled(), threading.Event()

    def refresh() -> None:
        while not done.wait(0.5):
            bar.refresh()

    with ProgressBar(text) as bar:
        gc.disable()
        _bars.append(bar)
        thread = threading.Thread(target=refresh, daemon=True)
        thread.start()
        try:
            yield bar
        finally:
            done.set()
            thread.join()
            _bars.pop()
            if was_enabled:
                gc.enable()


def _read_all(
    found: Sequence[Source], bar: ProgressBar
) -> tuple[list[TraceFile], list[tuple[str, FileKind]], list[Note]]:
    """What was read, what is no trace, and what has to be known about the files."""
    read, left_out, notes, cut, lost = [], [], [], [], Counter()
    for source in found:
        bar.say(f"Reading {source.name}")
        try:
            trace, is_cut, lost[source.name] = _read(source)
        except NotATrace as error:
            left_out.append((source.name, error.kind))
            continue
        if is_cut:
            cut.append(source.name)
        split = {rank: own for rank, own in traces_of_ranks(trace).items() if any(map(_is_shown, own["traceEvents"]))}
        ranks = split or {None: trace}
        read += [_trace_file(source.name, own, rank) for rank, own in ranks.items()]
    if cut:
        notes.append(Note(NoteKind.CUT_SHORT, files=tuple(cut)))
    if lossy := tuple(name for name, number in lost.items() if number):
        notes.append(Note(NoteKind.MENDED, files=lossy, number=lost.total()))
    return read, left_out, notes


def _read(source: Source) -> tuple[Trace, bool, int]:
    """A file's trace, whether it ends too early, and how many events could not be read.

    Raises:
        NotATrace: it is something else.
    """
    keeper = EventKeeper()
    with text_of(source) as pieces:
        text = TraceText(pieces, keeper.take)
        text.read()
    events = keeper.kept()
    if not any(_is_shown(event) for event in events):
        raise NotATrace(_kind_without_events(source.name, text, keeper))
    if not (keeper.is_torchs or _TORCHS_HEAD & text.head.keys()):
        raise NotATrace(_kind_of_others(text.head, keeper.kinds))
    head = {key: text.head[key] for key in text.head if key in KEPT_HEAD}
    if not isinstance(head.get("distributedInfo", {}), dict):
        del head["distributedInfo"]
    return head | {"traceEvents": events}, text.is_cut, text.lost + keeper.lost


def _kind_without_events(name: str, text: TraceText, keeper: EventKeeper) -> FileKind:
    """What JSON is that has no events."""
    keys = text.head.keys()
    if not text.is_json:
        return FileKind.TEXT
    if text.is_cut and not keeper.lost:
        return FileKind.CUT_BEFORE_EVENTS
    if text.has_events and not keeper.lost:
        return FileKind.NO_EVENTS
    if text.has_events and "memory" in name.lower():
        return FileKind.MEMORY_TIMELINE
    if text.has_events:
        return FileKind.NO_READABLE_EVENTS
    if "rocprofiler-sdk-tool" in keys:
        return FileKind.ROCPROF
    if {"nodes", "schema"} <= keys:
        return FileKind.EXECUTION_TRACE
    if "entries" in keys and keys & {"pg_config", "pg_status", "nccl_version", "version"}:
        return FileKind.FLIGHT_RECORDER
    if {"cells", "nbformat"} <= keys:
        return FileKind.NOTEBOOK
    return FileKind.JSON


def _kind_of_others(head: dict[str, Any], kinds: set[str]) -> FileKind:
    """Which program wrote a Chrome trace that is not torch's."""
    metadata = head.get("metadata")
    metadata = metadata.keys() if isinstance(metadata, dict) else set()
    if "viztracer_metadata" in head or "FEE" in kinds:
        return FileKind.VIZTRACER_TRACE
    if "highres-ticks" in metadata:
        return FileKind.TENSORFLOW_TRACE
    browsers = ("devtools.", "disabled-by-default-", "blink", "v8", "loading", "toplevel")
    if metadata & {"os-name", "user-agent", "product-version", "chrome-bitness"} or any(
        kind.startswith(browsers) for kind in kinds
    ):
        return FileKind.BROWSER_TRACE
    return FileKind.OTHER_TRACE


def _is_shown(event: dict[str, Any]) -> bool:
    """Whether an event takes time, and is not only a mark around others."""
    return event["ph"] == "X" and kind_of(event) not in NOT_SHOWN


def _trace_file(name: str, trace: Trace, rank: int | None) -> TraceFile:
    """A trace with what has to be known of it; the rank is one that it was split by."""
    if rank is not None:
        stated = trace.get("distributedInfo") or {}
        trace = trace | {"distributedInfo": stated | {"rank": rank}}
    shown = [event for event in trace["traceEvents"] if _is_shown(event)]
    steps = [event for event in shown if is_step(event)]
    around = steps or shown
    begin, end = min(event["ts"] for event in around), max(event["ts"] + event["dur"] for event in around)
    names, times = tuple(sorted({event["name"] for event in steps})), tuple(event["dur"] for event in steps)
    return TraceFile(name, trace, begin, end, names, times)


def _profile_of(files: Sequence[TraceFile], notes: list[Note]) -> ReadProfile:
    """The profile that the files are."""
    ranks, about_ranks = ranks_of(files)
    chosen, about_choice = _one_for_each_rank(ranks, files)
    notes = [*about_ranks, *about_choice, *notes]
    worlds = {file.world_size for file in chosen.values() if file.world_size}
    if len(worlds) > 1 or max(chosen) >= min(worlds, default=math.inf):
        notes.append(Note(NoteKind.SEVERAL_RUNS, tuple(chosen)))
    elif missing := tuple(rank for rank in range(max(worlds, default=0)) if rank not in chosen):
        notes.append(Note(NoteKind.RANKS_MISSING, missing, number=max(worlds)))
    if unmarked := tuple(rank for rank, file in chosen.items() if not file.steps):
        notes.append(Note(NoteKind.NO_STEPS, unmarked, tuple(chosen[rank].name for rank in unmarked)))
    if lacking := tuple(rank for rank, file in chosen.items() if file.steps and lacks_calls(file.trace["traceEvents"])):
        notes.append(Note(NoteKind.CALLS_MISSING, lacking, tuple(chosen[rank].name for rank in lacking)))
    clocks, about_clocks = clocks_of(chosen)
    if hours_apart(chosen.values()):
        notes.append(Note(NoteKind.HOURS_APART, tuple(chosen)))
    if any(note.kind in (NoteKind.SEVERAL_RUNS, NoteKind.HOURS_APART) for note in notes):
        about_clocks = []  # their moments have nothing in common
    traces = [chosen[rank].trace | {"course": clocks[rank]} for rank in chosen]
    return ReadProfile(traces, notes=(*notes, *about_clocks))


def hours_apart(files: Iterable[TraceFile]) -> bool:
    """Whether more than an hour lies between what some of the files and the others recorded, by their clocks."""
    known = [file for file in files if file.base is not None]
    times = sorted(((file.base or 0.0) + file.begin, (file.base or 0.0) + file.end) for file in known)
    return any(begin - end > _HOUR for (_, end), (begin, _) in zip(times, times[1:], strict=False))


def _one_for_each_rank(ranks: Sequence[int], files: Sequence[TraceFile]) -> tuple[dict[int, TraceFile], list[Note]]:
    """Rank → its file, in the ranks' order.

    A profiler writes a file each time its schedule repeats. Of several files of a rank the last one with the most
    complete steps is taken, and if possible the same steps on all ranks. A run seldom ends together with the schedule,
    so its last file often has fewer steps, and at its end one that has only just begun.
    """
    by_rank: dict[int, list[TraceFile]] = {rank: [] for rank in sorted(set(ranks))}
    for rank, file in sorted(zip(ranks, files, strict=True), key=lambda pair: (pair[1].base or 0) + pair[1].begin):
        by_rank[rank].append(file)
    having = Counter(steps for own in by_rank.values() for steps in {file.steps for file in own})
    chosen = {}
    for rank, own in by_rank.items():
        longest = max((time for file in own for time in file.step_times), default=0.0)
        complete = [sum(time >= _BEGUN * longest for time in file.step_times) for file in own]
        best = max(range(len(own)), key=lambda number: (having[own[number].steps], complete[number], number))
        chosen[rank] = own[best]
    several = tuple(rank for rank, own in by_rank.items() if len(own) > 1)
    if not several:
        return chosen, []
    number = max(len(by_rank[rank]) for rank in several)
    return chosen, [Note(NoteKind.SEVERAL_FILES, several, tuple(chosen[rank].name for rank in several), number)]


def clocks_of(files: dict[int, TraceFile]) -> tuple[dict[int, dict[str, Any]], list[Note]]:
    """For each rank what has to be added to its times, by how much that may be wrong, and its machine.

    The ranks of one machine have one clock. Those of several have one each, which nobody has compared, unless the
    course made the profile. If times have nothing in common, the ranks' steps begin together.
    """
    if known := _clocks_of_the_course(files):
        unaligned = tuple(rank for rank, clock in known.items() if clock["error"] is None)
        return known, [Note(NoteKind.CLOCKS_NOT_ALIGNED, tuple(files))] if unaligned and len(files) > 1 else []
    bases = {rank: file.base for rank, file in files.items()}
    first = min((base for base in bases.values() if base is not None), default=0.0)
    shifts = {rank: 0.0 if base is None else base - first for rank, base in bases.items()}
    begins = {rank: file.begin + shifts[rank] for rank, file in files.items()}
    ends = {rank: file.end + shifts[rank] for rank, file in files.items()}
    common = max(begins.values(), key=lambda moment: sum(begins[rank] <= moment <= ends[rank] for rank in files))
    apart = tuple(rank for rank in files if not begins[rank] <= common <= ends[rank])
    together = min(begins[rank] for rank in files if rank not in apart)
    for rank in apart:
        shifts[rank] += together - begins[rank]
    machines = {file.machine for file in files.values()}
    is_one_clock = len(files) == 1 or len(machines) == 1 and machines != {""}
    clocks = {
        rank: {
            "rank": rank,
            "shift": shifts[rank],
            "error": 0.0 if is_one_clock and rank not in apart else None,
            "machine": file.machine,
        }
        for rank, file in files.items()
    }
    notes = [Note(NoteKind.CLOCKS_UNKNOWN, apart)] if apart else []
    if not is_one_clock and len(apart) < len(files) - 1:
        notes.append(Note(NoteKind.CLOCKS_NOT_ALIGNED, tuple(rank for rank in files if rank not in apart)))
    return clocks, notes


def _clocks_of_the_course(files: dict[int, TraceFile]) -> dict[int, dict[str, Any]]:
    """Clocks as `profile_steps` and `merge` wrote them into the files; none unless each has one."""
    found = {}
    for position, (rank, file) in enumerate(files.items()):
        own = file.trace.get("course")
        if not isinstance(own, dict):
            return {}
        errors = own.get("error")
        if isinstance(errors, list) and len(errors) == len(files):  # merged: on one clock
            shift, error = 0.0, number_of(errors[position])
        else:
            shift, error = number_of(own.get("shift")), number_of(errors)
        if shift is None:
            return {}
        machine = own.get("machine")
        machine = machine if isinstance(machine, str) else file.machine
        found[rank] = {"rank": rank, "shift": shift, "error": error, "machine": machine}
    return found
