"""Where a thread's code stands: the learner's line that it is in, what that line has called, or what is imported."""

import dis
import sys
import threading
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import NamedTuple

from course_utils.trace.call_texts import function_text
from course_utils.trace.recorder import is_learner_code, is_machinery, is_taught_library, learner_frame, line_text

_NAMES = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE", "LOAD_ATTR", "LOAD_METHOD")
_NO_VALUE = ("PUSH_NULL", "PRECALL", "KW_NAMES", "CACHE", "COPY", "RESUME", "EXTENDED_ARG")
"""Instructions that belong to a call, and are no part of what is called."""
_IMPORTER = "<frozen importlib"


class Standing(NamedTuple):
    """Where the main thread of a rank is.

    Attributes:
        line: the innermost line of the learner's code: "line 7 of your cell"; "" where none is being run.
        call: what that line has called: "Queue.get", "time.sleep"; "" where that cannot be known.
        importing: the module that is being imported: "torch"; "" for none.
    """

    line: str = ""
    call: str = ""
    importing: str = ""


def standing_of_rank() -> Standing:
    """Where this process's main thread is; called in a different one.

    If no learner's code runs yet, the main thread may be waiting for a thread that imports something.
    """
    frames = sys._current_frames()
    try:
        main = frames.get(threading.main_thread().ident or 0)
        standing = standing_at(main)
        others = () if standing.line or standing.importing else frames.values()
        return next((Standing(importing=name) for frame in others if (name := _imported(frame))), standing)
    finally:
        frames.clear()  # this function's own is among them


def standing_at(frame: FrameType | None) -> Standing:
    """Where a thread is, from its innermost frame."""
    importing, inner, own = _imported(frame), None, learner_frame(frame)
    while frame is not None and frame is not own:
        inner, frame = frame, frame.f_back
    if frame is None:
        return Standing(importing=importing)
    called = inner.f_code if inner is not None else None
    return Standing(_line(frame), call_of(frame.f_code, frame.f_lasti, called), importing)


def standing_of_error(traceback: TracebackType | None) -> Standing:
    """Where the code was that an exception came through."""
    steps = []
    while traceback is not None:
        if not is_machinery(traceback.tb_frame.f_code.co_filename):  # as what raises on a signal
            steps.append(traceback)
        traceback = traceback.tb_next
    files = [step.tb_frame.f_code.co_filename for step in steps]
    taught = [index for index, file in enumerate(files) if is_learner_code(file)]
    own = [index for index in taught if not is_taught_library(files[index])] or taught
    if not own:
        return Standing()
    step, inner = steps[own[-1]], steps[own[-1] + 1 :]
    code = step.tb_frame.f_code
    called = inner[0].tb_frame.f_code if inner else None
    return Standing(line_text(code.co_filename, step.tb_lineno), call_of(code, step.tb_lasti, called))


def _line(frame: FrameType) -> str:
    return line_text(frame.f_code.co_filename, frame.f_lineno)


def call_of(code: CodeType, instruction: int, called: CodeType | None) -> str:
    """What is being called by an instruction.

    Args:
        code, instruction: the caller's.
        called: what runs now; None where that is no Python, as in `time.sleep`.
    """
    if called is not None and "." in (name := function_text(called)):
        return name
    written = _name_at(code, instruction)
    return written or (called.co_qualname.rpartition(".")[2].strip("<>") if called is not None else "")


def _name_at(code: CodeType, instruction: int) -> str:
    """What a call at this instruction is written as: "time.sleep", "lock.acquire"; "" where it is no call of a name.

    The names that make up what is called begin where the call begins in the source.
    """
    steps = [step for step in dis.get_instructions(code) if step.offset <= instruction]
    if not steps:
        return ""
    *before, last = steps
    if not last.opname.startswith(("CALL", "BEFORE_WITH")):
        return ""
    enters = last.opname == "BEFORE_WITH"
    begin = _begin(before[-1] if enters and before else last)
    names: list[str] = []
    for step in before:
        if _begin(step) != begin or step.opname in _NO_VALUE:
            continue
        known = step.opname.startswith(_NAMES) and isinstance(step.argval, str)
        if known and not step.opname.startswith(("LOAD_ATTR", "LOAD_METHOD")):
            names = []
        names = [*names, str(step.argval)] if known else []
    name = ".".join(names)
    return f"`with {name}`" if enters and name else name


def _begin(step: dis.Instruction) -> tuple[int | None, int | None]:
    where = step.positions
    return (where.lineno, where.col_offset) if where else (None, None)


def _imported(frame: FrameType | None) -> str:
    """The module that an import statement on a thread's stack is about, the outermost."""
    names = [str(step.f_locals.get("name", "")) for step in _stack(frame) if _finds_and_loads(step)]
    return names[-1].partition(".")[0] if names else ""


def _finds_and_loads(frame: FrameType) -> bool:
    return frame.f_code.co_name == "_find_and_load" and frame.f_code.co_filename.startswith(_IMPORTER)


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
