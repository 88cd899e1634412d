"""Save while training goes on: copy the state, and let a thread write the copy."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np


def save_async(
    file: Path,
    state: np.ndarray,
    write: Callable[[Path, np.ndarray], None],
) -> "Future[None]":
    """Save a copy of the state in the background, and return before it is written.

    The caller may change `state` as soon as the function has returned. What is saved is the state
    at the moment of the call. As long as the new checkpoint is not complete, `file` holds the
    previous one, also if the process dies or `write` fails halfway. So the copy is written to a
    different file in the same folder first, which then gets the name `file`.

    Args:
        file: the checkpoint, which may exist already.
        state: an array of any shape and dtype.
        write: `write(path, array)` writes an array into a file, and may take long.

    Returns:
        A future. Its `result()` waits until the checkpoint is complete, and raises the error if
        `write` has raised one.
    """
    copy = state.copy()

    def write_and_rename() -> None:
        scratch = file.with_name(f"{file.name}.new")
        write(scratch, copy)
        scratch.replace(file)

    thread = ThreadPoolExecutor(max_workers=1)
    saving = thread.submit(write_and_rename)
    thread.shutdown(wait=False)  # the thread ends when it has written
    return saving
