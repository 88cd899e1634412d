"""A processor and a link for every rank, emulated by waiting, because ranks that share two cores have neither.

Both take as long as they are told to, however busy the machine is. What travels is sent for real, too.
"""

from time import perf_counter, sleep

import torch
import torch.distributed as dist
from torch import nn
from torch.profiler import record_function

from course_utils.lessons.overlap.played_names import COMPUTING, ON_LINK
from course_utils.trace.recorder import recorder


def compute(seconds: float) -> None:
    """Compute for so long on a processor of this rank's own: wait."""
    with record_function(COMPUTING):
        sleep(seconds)


class Waits(torch.autograd.Function):
    """The identity, which takes its time, forward and backward."""

    @staticmethod
    def forward(context, x: torch.Tensor, forward: float, backward: float) -> torch.Tensor:
        """Wait for this many seconds."""
        context.seconds = backward
        compute(forward)
        return x.clone()  # the next layer may work in place

    @staticmethod
    def backward(context, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """The same on the way back."""
        compute(context.seconds)
        return gradient, None, None


class Wait(nn.Module):
    """A layer that computes nothing and takes this many seconds forward and backward."""

    def __init__(self, forward: float, backward: float) -> None:
        super().__init__()
        self.seconds = forward, backward

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Give back what came in, later."""
        return Waits.apply(x, *self.seconds)


class PlayedLink:
    """This rank's link: all-reduces one after the other, each as long as its bytes need at the link's rate.

    Args:
        rate: bytes a second.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._free = 0.0  # on the clock of perf_counter: when the last all-reduce has left the link

    def all_reduce(self, tensor: torch.Tensor) -> "UnderWay":
        """Begin to sum `tensor` over all ranks, in place, and return at once."""
        work = dist.all_reduce(tensor, async_op=True)
        seconds = tensor.numel() * tensor.element_size() / self.rate
        begin = max(self._free, perf_counter())
        self._free = begin + seconds
        recorder.add(ON_LINK, "phase", begin, self._free)
        return UnderWay(work, self._free)


class UnderWay:
    """An all-reduce that has begun; `done_at`, on the clock of perf_counter, it has left the link."""

    def __init__(self, work: dist.Work, done_at: float) -> None:
        self._work, self.done_at = work, done_at

    def wait(self) -> None:
        """Return when the sum has come."""
        self._work.wait()
        sleep(max(0.0, self.done_at - perf_counter()))
