"""What has to be known about a profile that was read from files, in sentences."""

from collections.abc import Sequence
from pathlib import Path

from course_utils.lessons.profiling.foreign.profile_notes import Note, NoteKind
from course_utils.lessons.profiling.foreign.trace_files import MOST_FILES, FileKind, PathProblem
from course_utils.words import count, join, printable, rank_ranges
from course_utils.words import ranks as so_many_ranks

_SHOWN = 3
"""Names of files that are listed; of more, only the number is told."""
GIVE = "Give a file that `export_chrome_trace` or `tensorboard_trace_handler` wrote, with a name like trace.json.gz."
_IS = {
    FileKind.EMPTY: "is empty",
    FileKind.PICKLE: "is a pickle, which holds Python's objects",
    FileKind.CHECKPOINT: "is a checkpoint that `torch.save` wrote, or another archive",
    FileKind.DATABASE: "is an SQLite database, as Nsight Systems exports it",
    FileKind.NSYS: "is a report of NVIDIA's Nsight tools",
    FileKind.PERFETTO: "is a trace in Perfetto's binary format",
    FileKind.WEB_PAGE: "is a web page",
    FileKind.LFS_POINTER: "is not the file itself but Git LFS's note about it",
    FileKind.ZSTD: "is packed with zstd",
    FileKind.PICTURE: "is a picture or a document",
    FileKind.BINARY: "is a binary file of a kind that is unknown here",
    FileKind.TEXT: "is text, but not JSON",
    FileKind.BROKEN: "cannot be unpacked",
    FileKind.LOCKED: "cannot be opened, because you may not read it or it needs a password",
    FileKind.NO_EVENTS: "has no events",
    FileKind.CUT_BEFORE_EVENTS: "ends before its first event",
    FileKind.JSON: "is JSON, but not a trace, which has a list `traceEvents`",
    FileKind.NO_READABLE_EVENTS: "has a list, but nothing in it is an event whose time and duration are numbers",
    FileKind.ROCPROF: "was written by rocprofv3, ROCm's own profiler",
    FileKind.EXECUTION_TRACE: "is an execution trace, which lists operators but not when they ran",
    FileKind.MEMORY_TIMELINE: "is a timeline of the memory alone",
    FileKind.FLIGHT_RECORDER: "is a dump of torch's Flight Recorder",
    FileKind.NOTEBOOK: "is a notebook",
    FileKind.BROWSER_TRACE: "is a trace that a browser recorded",
    FileKind.TENSORFLOW_TRACE: "is a trace that TensorFlow or JAX recorded",
    FileKind.VIZTRACER_TRACE: "is a trace that VizTracer recorded",
    FileKind.OTHER_TRACE: "is a Chrome trace, but none of its events is of torch.profiler",
}
_DO = {
    FileKind.EMPTY: "The profiler writes its file when it stops, and a job that was killed before leaves an empty one.",
    FileKind.NSYS: "Nsight's own programs open it. Here, profile the run with torch.profiler.",
    FileKind.DATABASE: "Nsight's own programs read it. Here, profile the run with torch.profiler.",
    FileKind.PERFETTO: "Open it at ui.perfetto.dev.",
    FileKind.WEB_PAGE: "Perhaps a download gave you the page around the file. Download the raw file.",
    FileKind.LFS_POINTER: "`git lfs pull` fetches the file.",
    FileKind.ZSTD: "Unpack it first: `unzstd FILE`.",
    FileKind.TEXT: "If it is the log of a run that failed, `course doctor --log FILE` explains it.",
    FileKind.BROKEN: "Was the download complete? Copy it again.",
    FileKind.LOCKED: "Make it readable, or unpack it.",
    FileKind.NO_EVENTS: "With a `schedule`, the profiler keeps only its active steps: did the run reach them?",
    FileKind.CUT_BEFORE_EVENTS: "Was the run killed while it wrote the file, or was the disk full? Record it again.",
    FileKind.EXECUTION_TRACE: "Give the file of the same run that `export_chrome_trace` wrote.",
    FileKind.ROCPROF: (
        "Profile the run with torch.profiler, or let rocprofv3 write `--output-format pftrace` and open it at "
        "ui.perfetto.dev."
    ),
    FileKind.MEMORY_TIMELINE: "Give the file of the same run that `export_chrome_trace` wrote.",
    FileKind.FLIGHT_RECORDER: "It shows why a run hangs; Further of lesson 14 reads it.",
}


def note_text(note: Note) -> str:
    """Return a note as a sentence or two."""
    ranks, files = rank_ranges(note.ranks), files_text(note.files)
    has = "has" if len(note.ranks) == 1 else "have"
    match note.kind:
        case NoteKind.RANKS_FROM_NAMES:
            return f"Which rank a file is from was taken from its name: {_pairs_text(note)}."
        case NoteKind.RANKS_COUNTED:
            return (
                "Nothing says which rank a file is from, so they were counted in the order of their names: "
                f"{_pairs_text(note)}."
            )
        case NoteKind.RANKS_MISSING:
            return f"The run had {so_many_ranks(note.number)}, of which {ranks} {has} no file here."
        case NoteKind.SEVERAL_RUNS:
            return (
                "The files don't agree on how many ranks there were, so they are from different runs. Each row of the "
                "table is right by itself, but don't compare them. Read the files of each run by themselves."
            )
        case NoteKind.HOURS_APART:
            return (
                "The files were recorded hours apart, so they are from different runs, or from different parts of one. "
                "Each row of the table is right by itself, but don't compare them. Read the files one by one."
            )
        case NoteKind.NO_STEPS:
            return (
                f"In {files}, no event marks a step, as calls of `profiler.step()` do. So the whole file counts, "
                "with whatever comes before the steps and after them."
            )
        case NoteKind.CALLS_MISSING:
            return (
                f"In {files}, the calls that asked for most of the GPU's work are missing, as if the file had been "
                "filtered. So what the GPU did counts as part of the step during which it ran."
            )
        case NoteKind.CLOCKS_NOT_ALIGNED:
            return (
                "Each machine has its own clock, and nobody has compared them. Durations are right, but moments on "
                "different ranks may be off by milliseconds or more."
            )
        case NoteKind.CLOCKS_UNKNOWN:
            return (
                f"The steps of {ranks} are not from the same time as the others', or no file says when they were. They "
                "are shown as if the first ones had begun together. If the files are from different runs, read them "
                "one by one."
            )
        case NoteKind.SEVERAL_FILES:
            return (
                f"There are up to {note.number} files of {ranks}. A profiler writes one each time its schedule "
                "repeats. The last one with the most complete steps was taken, and if possible the same steps on all "
                f"ranks: {files}."
            )
        case NoteKind.LEFT_OUT:
            return f"Left out, because torch.profiler has not written it: {files}."
        case NoteKind.CUT_SHORT:
            return (
                f"The end is missing: {files}. torch.profiler writes a GPU's work last, so that is missing "
                "before anything else, and the numbers don't show where the time went. Record it again."
            )
        case NoteKind.MENDED:
            return f"{count(note.number, 'event')} could not be read and {_was(note.number)} left out: {files}."


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _pairs_text(note: Note) -> str:
    """Return which rank the first files are from."""
    pairs = [f"{printable(file)} is rank {rank}" for rank, file in zip(note.ranks, note.files, strict=True)]
    if len(pairs) > _SHOWN + 1:
        pairs[_SHOWN:] = ["so on"]
    return join(pairs)


def not_a_trace_text(files: Sequence[tuple[str, FileKind]]) -> str:
    """What is wrong if no file is a trace: what the first one is, and what to give instead."""
    name, kind = files[0]
    more = f" None of the {count(len(files) - 1, 'other file')} is a trace either." if len(files) > 1 else ""
    return f"{printable(name)} {_IS[kind]}.{more} {_DO.get(kind, GIVE)}"


def path_text(problem: PathProblem, path: Path, near: str) -> str:
    """What is wrong with a path; `near` asks whether another one was meant."""
    name = printable(str(path))
    match problem:
        case PathProblem.MISSING:
            return f"There is no file {name}.{near}"
        case PathProblem.NOT_ALLOWED:
            return f"You may not read {name}."
        case PathProblem.NO_FILE:
            return f"{name} is neither a file nor a folder."
        case PathProblem.NO_TRACES_IN_FOLDER:
            return f"The folder {name} has no files that are named like traces, such as trace.json or trace.json.gz."
        case PathProblem.TOO_MANY:
            return f"{name} has more than {MOST_FILES} files. Give the folder of a single profile."


def files_text(files: Sequence[str]) -> str:
    """Return the names of a few files; of many, the first ones and how many more."""
    names = [printable(name) for name in dict.fromkeys(files)]
    if len(names) > _SHOWN + 1:
        names[_SHOWN:] = [f"{len(names) - _SHOWN} more"]
    return join(names)
