"""Processes that outlive the one that starts them."""

import os
import subprocess
from pathlib import Path


def start_detached(
    command: list[str], environment: dict[str, str], log: Path, folder: Path | None = None
) -> subprocess.Popen:
    """Start a process in a session of its own; what it prints goes to a log of mode 0600.

    Args:
        folder: where it works; None: where this process does.
    """
    descriptor = open_log(log)
    try:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
            umask=0o077,
            cwd=folder or Path.cwd(),
        )
    finally:
        os.close(descriptor)


def open_log(log: Path) -> int:
    """The descriptor of a log that its user alone may read."""
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
