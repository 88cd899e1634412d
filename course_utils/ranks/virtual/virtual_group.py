"""A process group of torch.distributed on virtual ranks: its calls become the scheduler's messages and collectives.

A collective costs what `collective_costs` says, a message what the network says; what torch computes costs nothing but
what `compute` says. Events, bytes and deadlocks are told as on real ranks.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from course_utils.ranks.virtual import torch_collectives
from course_utils.ranks.virtual.communicator import VirtualComm
from course_utils.ranks.virtual.stand_in import ANY_SOURCE
from course_utils.ranks.virtual.torch_collectives import CollectivePlan
from course_utils.ranks.virtual.virtual_requests import Request
from course_utils.ranks.virtual.virtual_time import Scheduler, Sent, VirtualRank
from course_utils.trace.torch_calls import COLLECTIVES, agreed, bytes_of, collective_call, message_call

BACKEND = "gloo"
"""What the groups say that they are: programs ask, and do for gloo what they do on processors."""


class VirtualWork(dist.Work):
    """What a group's methods return.

    Whoever asks for its future waits until it is over: DistributedDataParallel computes the right gradients, and its
    buckets travel one after the other, not behind the backward pass.
    """

    def __init__(self, request: Request, result: list[Tensor]) -> None:
        super().__init__()
        self._request, self._result = request, result
        request.work = self  # C++ code may hold it: it must not end before the request does

    def wait(self, timeout: Any = None) -> bool:
        """Return when the operation is done."""
        self._request.Wait()
        return True

    def is_completed(self) -> bool:
        """Is the operation done?"""
        return self._request.done or self._request.Test()

    def is_success(self) -> bool:
        """Is it done, without an error? Those are raised."""
        return self._request.done

    def get_future(self) -> torch.futures.Future:
        """A future that is done: waits first."""
        self.wait()
        future: torch.futures.Future[list[Tensor]] = torch.futures.Future()
        future.set_result(self._result)
        return future

    def result(self) -> list[Tensor]:
        """The tensors that hold the result."""
        return self._result

    def _source_rank(self) -> int:
        assert self._request.status is not None
        return self._request.status.source


class VirtualGroup(dist.ProcessGroup):
    """Some of the virtual ranks, as torch sees them."""

    def __init__(
        self, scheduler: Scheduler, me: VirtualRank, ranks: list[int], group_name: str, group_desc: str = ""
    ) -> None:
        super().__init__(ranks.index(me.number), len(ranks))  # type: ignore[call-arg] # the stubs know another alone
        self._scheduler, self._me, self._ranks = scheduler, me, ranks
        self._comm = VirtualComm.on(scheduler, me, ranks, f"{BACKEND} {group_name}")
        self._group_name, self._group_desc = group_name, group_desc

    def new_group(
        self, ranks: list[int], timeout: Any = None, pg_options: Any = None, group_name: str = "", group_desc: Any = ""
    ) -> "VirtualGroup | None":
        """The group of these ranks, which torch's `new_group` asks for; None on others."""
        if self._me.number not in ranks:
            return None
        return VirtualGroup(self._scheduler, self._me, list(ranks), group_name, group_desc or "")

    def compute(self, seconds: float) -> None:
        """Let virtual time pass on this rank: what a computation costs is for the caller to say."""
        self._comm.compute(seconds)

    def getBackendName(self) -> str:
        """For torch's own C++ code, which would look into a group that says it is gloo's."""
        return "virtual"

    group_name = property(lambda self: self._group_name)
    group_desc = property(lambda self: self._group_desc)

    def _get_backend(self, device: Any) -> Any:
        return self

    supports_coalescing = supports_splitting = supports_time_estimate = False
    _device_types = property(lambda self: [torch.device("cpu")])

    def shutdown(self) -> None:
        """Nothing to end."""

    abort = shutdown

    def __repr__(self) -> str:
        return f"<virtual {BACKEND} of ranks {self._ranks}>"

    # --- messages ---------------------------------------------------------------------------------------------------

    def send(self, tensors: list[Tensor], dst: int, tag: int) -> dist.Work:
        """As torch's: the message is copied, and nobody waits."""
        call = message_call("send", self._ranks[dst], sys._getframe(1))
        data = tensors[0].detach().clone()
        request = self._comm._start(call.name, data, bytes_of(tensors), "", dst, tag)
        return _work(request, call, tensors)

    def recv(self, tensors: list[Tensor], src: int, tag: int) -> dist.Work:
        """As torch's."""
        return self._receive(tensors, src, tag, message_call("recv", self._ranks[src], sys._getframe(1)))

    def recv_anysource(self, tensors: list[Tensor], tag: int) -> dist.Work:
        """As torch's."""
        return self._receive(tensors, ANY_SOURCE, tag, message_call("recv", None, sys._getframe(1)))

    def _receive(self, tensors: list[Tensor], source: int, tag: int, call: Any) -> dist.Work:
        def take(message: Sent) -> None:
            torch_collectives.write(tensors, [message.data])

        return _work(self._comm._receiving(call.name, source, tag, take, ""), call, tensors)

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """As torch's."""
        self.barrier().wait()


def _work(request: Request, call: Any, result: list[Tensor]) -> VirtualWork:
    request.text, request.by_learner = call.text, call.by_learner and request.by_learner
    return VirtualWork(request, result)


def _collective(method: str, name: str, contribution: int | None) -> Callable:
    """The method of a group that begins a collective."""
    plan: Callable[..., CollectivePlan] = getattr(torch_collectives, method)

    def collective(self: VirtualGroup, *args: Any, **kwargs: Any) -> dist.Work:
        comm, call = self._comm, collective_call(name, sys._getframe(1))
        part, cost, take, result = plan(comm.rank, comm.size, *args, **kwargs)
        size = 0 if contribution is None else bytes_of(args[contribution])
        must_be_alike = agreed(call.name, method, contribution, args, kwargs)
        request = comm.begin(call.name, must_be_alike, must_be_alike, part, size, cost, take)
        return _work(request, call, result)

    return collective


for _method, (_name, _contribution) in COLLECTIVES.items():
    setattr(VirtualGroup, _method, _collective(_method, _name, _contribution))
