"""Run a tool of the build, and end all of it where it fails, takes too long, or nobody waits for it any more."""

import os
import signal
import subprocess
from pathlib import Path

from workshop.publish.sources import AuthoringError


def run(command: list[str], folder: Path, seconds: float, doing: str, environment: dict[str, str] | None = None) -> str:
    """Run a command in a session of its own, and end all of it when it takes too long or is interrupted.

    Returns:
        What it said.

    Raises:
        AuthoringError: with the last lines of what it said.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except BaseException as error:  # Ctrl-C does not reach another session by itself
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise AuthoringError(f"{doing} took longer than {seconds:.0f} s") from None
        raise
    if process.returncode:
        raise AuthoringError(f"{doing} failed:\n" + "\n".join(output.strip().splitlines()[-15:]))
    return output
