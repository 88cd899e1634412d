"""A program started with torchrun from a notebook, as one types it into a terminal."""

import os
import re
import shlex
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.machine import ranks_python
from course_utils.system import LOOPBACK

TRAIN_PROGRAM = Path(__file__).parent / "training_program" / "vgg_on_cifar10.py"
"""The program at the end of the lesson, `train.py` on its page. It can be copied anywhere."""
REPAIR = "course_utils.torchvision_repair"
_LEAVING_SECONDS = 40.0  # torchrun itself gives its processes 30
STANDALONE = {"PET_LOCAL_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": LOOPBACK}
"""For `torchrun --standalone`, which would meet at the machine's name: on a Mac that may resolve to nothing."""
QUIET = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
"""One thread for each process, and no warnings of gloo's about the machine's name."""


def run_torchrun(
    command: str,
    folder: Path | None = None,
    seconds: float = 900.0,
    shown: Callable[[Iterable[str]], Iterable[str]] = iter,
) -> str:
    """Run a command that begins with `torchrun`, print each line of its output as it comes, and return all of it.

    Each process computes with one thread, as torchrun has it with several. If the installed torchvision does not
    match torch, the program is started through `course_utils.torchvision_repair`, and a line says so. An interrupt ends
    the command and all processes that it has started.

    Args:
        command: what you would type into a terminal.
        folder: where it runs; the notebook's own folder without.
        seconds: after which the command is ended.
        shown: chooses the lines to print from those that arrive; by default all of them.

    Raises:
        CourseError: the command fails, or takes longer than `seconds`.
    """
    launcher = shlex.split(command)[0]
    if launcher != "torchrun":
        raise CourseError(f"The command has to begin with `torchrun`, not with `{launcher}`.")
    process = subprocess.Popen(
        [ranks_python(), "-m", "torch.distributed.run", *shlex.split(with_torchvision(command, folder))[1:]],
        cwd=folder,
        env={**os.environ, **STANDALONE, **QUIET},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    too_long = threading.Event()

    def end_late() -> None:
        too_long.set()
        process.terminate()

    output: list[str] = []

    def arriving() -> Iterator[str]:
        for line in process.stdout or ():
            output.append(line)
            yield line

    clock = threading.Timer(seconds, end_late)
    clock.start()
    try:
        for line in shown(arriving()):
            print(line.rstrip("\n"), flush=True)
        process.wait()
    finally:
        clock.cancel()
        end(process)
    if too_long.is_set():
        raise CourseError(f"torchrun has not ended after {seconds:.0f} s; it is ended now.")
    if process.returncode:
        raise CourseError(f"The program failed, with exit code {process.returncode}. Its last lines say why.")
    return "".join(output)


def with_torchvision(command: str, folder: Path | None = None) -> str:
    """Return a command or a script such that its program can import torchvision; if it changes, a line says so.

    Args:
        command: the program is its first word that ends with `.py`.
        folder: where the program is; the notebook's own folder without.
    """
    found = re.search(r"(?<=\s)[^\s'\"=]+\.py(?=\s|$)", command)
    program = Path(folder or ".", found[0]) if found else None
    if not found or not program or not program.is_file() or "torchvision" not in program.read_text(encoding="utf-8"):
        return command
    if torchvision_loads(ranks_python()):
        return command
    print(f"(The installed torchvision doesn't match torch, so {REPAIR} starts the program. You needn't do anything.)")
    return f"{command[: found.start()]}-m {REPAIR} {command[found.start() :]}"


def end(process: subprocess.Popen) -> None:
    """End a torchrun that is still at work. Asked to end, it ends its processes, which are in sessions of their own."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_LEAVING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@cache
def torchvision_loads(python: str) -> bool:
    """Whether a plain `import torchvision` works in this Python."""
    return subprocess.run([python, "-c", "import torchvision"], capture_output=True, check=False).returncode == 0
