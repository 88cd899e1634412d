"""Reads the files that torch.profiler wrote, for whomever and wherever, as a profile of all ranks."""

import re
from collections.abc import Sequence
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.lessons.profiling.chrome_trace import Trace, read_trace
from course_utils.lessons.profiling.merged_trace import STEP
from course_utils.lessons.profiling.profile_notes import Note, NoteKind
from course_utils.lessons.profiling.profiled_ranks import Profile

_RANK_IN_NAME = re.compile(r"(?:rank|trace|r)[-_.]?(\d+)", re.IGNORECASE)


def read_profile(files: str | Path | Sequence[str | Path]) -> Profile:
    """Read traces, one or several, files or folders of them, as a profile."""
    paths = [files] if isinstance(files, (str, Path)) else list(files)
    found = [file for path in map(Path, paths) for file in (sorted(path.rglob("*.json*")) if path.is_dir() else [path])]
    traces = [(file, read_trace(file)) for file in found]
    by_rank: dict[int, Trace] = {}
    notes = []
    for number, (file, trace) in enumerate(traces):
        rank = (trace.get("distributedInfo") or {}).get("rank")
        if rank is None and (match := _RANK_IN_NAME.search(file.name)):
            rank = int(match[1])
            notes.append(Note(NoteKind.RANKS_FROM_NAMES, (rank,), (file.name,)))
        by_rank[number if rank is None else rank] = trace
    if not by_rank:
        raise CourseError("read_profile: no traces were found.")
    first = min(trace.get("baseTimeNanoseconds", 0) for trace in by_rank.values())
    marked = []
    for rank, trace in sorted(by_rank.items()):
        shift = (trace.get("baseTimeNanoseconds", 0) - first) / 1000
        trace.setdefault("course", {"rank": rank, "shift": shift, "error": None, "machine": trace.get("host_name", "")})
        if any(str(event.get("name", "")).startswith(STEP) for event in trace["traceEvents"]):
            marked.append(rank)
    if unmarked := tuple(sorted(by_rank.keys() - marked)):
        notes.append(Note(NoteKind.NO_STEPS, unmarked))
    if len(by_rank) > 1:
        notes.append(Note(NoteKind.CLOCKS_NOT_ALIGNED, tuple(sorted(by_rank))))
    return Profile([by_rank[rank] for rank in sorted(by_rank)], notes=tuple(notes))
