"""The check of `save_async`: it returns before the disk is free, what it saves is a copy, and the old one stays."""

import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from course_utils.checks.cases import one_after_another
from course_utils.checks.exercise import Case, Exercise

PATIENCE = 2.0
"""Seconds after which a call is taken for one that waits for the disk. A right answer waits for nothing."""
FULL = "the disk is full"


class SlowDisk:
    """Writes the first half of a file, and the second half only when it is set free."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.has_waited = fails, False
        self.begun, self.returned, self.free = (threading.Event() for _ in range(3))
        self.paths: list[Path] = []

    def write(self, path: Path, array: np.ndarray) -> None:
        """Write an array; it ends when the disk is free."""
        self.paths.append(Path(path))
        with open(path, "wb") as stream:
            stream.write(b"half")
        self.begun.set()
        self.has_waited = not self.returned.wait(PATIENCE)
        self.free.wait(PATIENCE)
        if self.fails:
            raise OSError(FULL)
        with open(path, "wb") as stream:
            np.save(stream, array)


def content(file: Path) -> np.ndarray | str:
    """What is in a checkpoint, or why there is none."""
    if not file.exists():
        return "no file"
    try:
        return np.load(file)
    except (ValueError, EOFError, OSError):
        return "half a file"


def saved(function: Callable, state: np.ndarray, before: np.ndarray | None, name: str, fails: bool = False) -> dict:
    """Save with the learner's function, change the state, and see what is on the disk meanwhile and at the end."""
    disk = SlowDisk(fails)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        if before is not None:
            with file.open("wb") as stream:
                np.save(stream, before)
        own = state.copy()
        try:
            saving = function(file, own, disk.write)
            disk.returned.set()
            begun = disk.begun.wait(PATIENCE)
            meanwhile = content(file)
            own += 1
            disk.free.set()
            error = ended(saving)
        finally:
            disk.returned.set()
            disk.free.set()
        return {
            "the number of calls of write": len(disk.paths) if begun else 0,
            "the answer to 'did it wait for the disk?'": "yes" if disk.has_waited else "no",
            "the answer to 'did it write in another folder?'": "yes" if _elsewhere(disk, file) else "no",
            "the file while the new state is being written": meanwhile,
            "the error that the future raised": error,
            "the file at the end": content(file),
        }


def ended(saving: Any) -> str:
    """How the future ended: "none", or the error that it raised; a future that never ends is not waited for.

    Raises:
        AttributeError: it has no `result`.
    """
    found, wait = ["none, because it did not return"], saving.result

    def call() -> None:
        try:
            wait()
        except Exception as error:
            found[0] = "the error of `write`" if str(error) == FULL else type(error).__name__
        else:
            found[0] = "none"

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(2 * PATIENCE)
    return found[0]


def _elsewhere(disk: SlowDisk, file: Path) -> bool:
    return any(path.parent != file.parent for path in disk.paths)


def wanted(state: np.ndarray, before: np.ndarray | None, name: str, fails: bool = False) -> dict:
    """What has to come out of it."""
    old = "no file" if before is None else before
    return {
        "the number of calls of write": 1,
        "the answer to 'did it wait for the disk?'": "no",
        "the answer to 'did it write in another folder?'": "no",
        "the file while the new state is being written": old,
        "the error that the future raised": "the error of `write`" if fails else "none",
        "the file at the end": old if fails else state,
    }


def several(function: Callable, *calls: tuple) -> list[dict]:
    """The same for one call after another."""
    return one_after_another(lambda *given: saved(function, *given), calls)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def drawn(*shape: int, dtype: str = "float64") -> np.ndarray:
        return rng.standard_normal(shape).astype(dtype)

    def case(label: str, *given: object, key: str = "") -> Case:
        return Case(label, [given], [wanted(*given)], with_comm=False, harness=saved, key=key)

    yield case("a vector over an older one", drawn(9), drawn(9), "checkpoint.npy")
    yield case("the first checkpoint", drawn(9), None, "checkpoint.npy", key="first")
    yield case("three rows in float32", drawn(3, 5, dtype="float32"), drawn(3, 5), "state")
    yield case("a name with two dots", drawn(4), drawn(2), "run.18.npy")
    yield case("`write` fails halfway", drawn(9), drawn(9), "checkpoint.npy", True, key="write-fails")
    yield case("`write` fails, and there was no checkpoint", drawn(9), None, "checkpoint", True, key="write-fails")
    calls = [(drawn(3), drawn(3), "a.npy"), (drawn(5), None, "b.npy")]
    label = "two saves, one after the other"
    expected = [wanted(*given) for given in calls]
    yield Case(label, [tuple(calls)], [expected], with_comm=False, harness=several, key="after-another-call")


EXERCISE = Exercise(
    library="save_async",
    number=4,
    minutes=15,
    difficulty=2,
    turn="copy, write elsewhere, rename, and all but the copy in a thread",
    title="saved while training goes on",
    cases=_cases,
    hints=(
        "Which of these may happen after your function has returned, and which may not: the copy, the writing, the "
        "renaming? What would a machine leave on its disk if it died in between?",
        "Define a function inside, which calls `write` with a path next to `file` and then renames with "
        "`scratch.replace(file)`. Make the copy before it. `ThreadPoolExecutor(max_workers=1).submit(inner)` starts "
        "the thread and returns the future.",
    ),
    search_runs=40,
    praise=lambda outcome: "a copy, written in the background; the old checkpoint stays until the new one is complete",
)
