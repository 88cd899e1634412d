"""The end that is announced: a signal before the time is up, and ranks that agree to stop after the same step."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from types import FrameType

from course_utils.errors import CourseError

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
"""SIGTERM comes from scancel, `scontrol requeue`, torchrun, and `sbatch --signal=TERM@…`; many sites choose SIGUSR1."""
TRY_AGAIN = 75
"""Exit code of a training that was stopped and can go on: EX_TEMPFAIL of sysexits.h. torchrun starts it again as after
any failure; a batch script asks Slurm for a requeue when it sees this one (`slurm_script`)."""


ON_GPUS = 10
"""Steps from one agreement to the next where GPUs train: a step takes them a few milliseconds, an agreement one."""


class Interrupted(CourseError):
    """The training was asked to stop, and has written a checkpoint. Started again, it goes on from there.

    Attributes:
        steps: after which it stopped.
    """

    def __init__(self, signal_name: str, steps: int, file: Path) -> None:
        super().__init__(
            f"Stopped after step {steps}: {signal_name or 'another rank heard a signal'}. "
            f"The checkpoint is {file}; started again with the same folder, the training goes on."
        )
        self.steps = steps


class StopSignals:
    """Inside, a signal ends nothing: it is remembered, and asked for between two steps.

    Python calls a handler between two instructions of the main thread, so a rank that waits in a collective hears it
    afterwards. In another thread nothing can be caught; the process then ends as it always does.

    Attributes:
        heard: the name of the signal, such as "SIGTERM"; "" before there is one.
    """

    def __init__(self, every: int = 1) -> None:
        """`every`: how many times ranks ask before they agree; the same on all."""
        self.heard = ""
        self._every, self._asked = every, 0
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            with contextlib.suppress(TypeError):  # a handler that Python did not set cannot be put back
                signal.signal(number, handler)

    def _hear(self, number: int, _: FrameType | None) -> None:
        self.heard = signal.Signals(number).name

    def agreed(self) -> bool:
        """Whether any rank has heard a signal: the same answer on all ranks, so that all stop after the same step.

        One all-reduce (maximum) of a single number over the default group, from the CPU. Without it one rank would
        leave, and the others would miss its gradients in the next step. Where GPUs train, only every tenth call asks
        the others, and the calls between say no.
        """
        self._asked += 1
        if self._asked % self._every:
            return False
        import torch
        import torch.distributed as dist

        flag = torch.tensor([float(bool(self.heard))])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag)


def send_sigterm(after: float) -> None:
    """Let this process get a SIGTERM this many seconds after it has begun to listen for one; returns at once."""
    before = signal.getsignal(signal.SIGTERM)

    def send() -> None:
        while signal.getsignal(signal.SIGTERM) is before:  # unheard, it would end the process
            time.sleep(0.01)
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=send, daemon=True).start()
