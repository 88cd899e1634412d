"""Calls of torch.distributed as a process group sees them: who has called, how many bytes, what must be alike."""

from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.distributed import c10d_logger, distributed_c10d

from course_utils.trace.events import Agreement

# A group's method: the function of torch.distributed that calls it, and the place of the argument whose bytes are this
# rank's contribution.
COLLECTIVES = {
    "allreduce": ("all_reduce", 0),
    "allreduce_coalesced": ("all_reduce_coalesced", 0),
    "broadcast": ("broadcast", 0),
    "reduce": ("reduce", 0),
    "gather": ("gather", 1),
    "scatter": ("scatter", 1),
    "allgather": ("all_gather", 1),
    "allgather_coalesced": ("all_gather_coalesced", 1),
    "all_gather_single": ("all_gather_single", 1),
    "all_gather_single_coalesced": ("all_gather_single_coalesced", 1),
    "reduce_scatter": ("reduce_scatter", 1),
    "reduce_scatter_single": ("reduce_scatter_single", 1),
    "reduce_scatter_single_coalesced": ("reduce_scatter_single_coalesced", 1),
    "alltoall": ("all_to_all", 1),
    "all_to_all_single": ("all_to_all_single", 1),
    "barrier": ("barrier", None),
}
_EQUAL_SIZES = ("allreduce", "broadcast", "reduce", "allgather", "all_gather_single")
"""Collectives for which every rank brings a tensor of the same size."""
_TORCH = str(Path(torch.__file__).parent)
_MESSAGES = ("send", "recv", "isend", "irecv")


def bytes_of(value: Any) -> int:
    """Bytes of the tensors in a list, or in lists of lists."""
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, (list, tuple)):
        return sum(map(bytes_of, value))
    return 0


class TorchCall(NamedTuple):
    """A call of torch.distributed.

    Attributes:
        name: the function that communicates, as events have it.
        text: in words, where the rank waits for it: "isend(dst=1)", "all_reduce in backward".
        by_learner: whether the learner's code has called, rather than something in torch, and so must wait for it.
    """

    name: str
    text: str
    by_learner: bool


def collective_call(name: str, frame: FrameType | None) -> TorchCall:
    """The collective `name` of a group, whose method was called from `frame`."""
    functions, caller = _callers(frame)
    context = _context_text(caller)
    return TorchCall(
        functions[0] if functions else name, f"{functions[-1] if functions else name}{context}", not context
    )


def message_call(kind: str, peer: int | None, tag: int, frame: FrameType | None) -> TorchCall:
    """A message, `kind` "send" or "recv", to or from a rank of the default group; None for any source."""
    functions, caller = _callers(frame)
    name = next((name for name in reversed(functions) if name in _MESSAGES), kind)
    context = _context_text(caller)
    where = f" in {functions[-1]}" if functions[-1:] == ["batch_isend_irecv"] else context
    who = f"dst={peer}" if kind == "send" else "any source" if peer is None else f"src={peer}"
    which = f", tag={tag}" if tag else ""
    return TorchCall(name, f"{name}({who}{which}){where}", not context)


def _callers(frame: FrameType | None) -> tuple[list[str], FrameType | None]:
    """The functions of torch.distributed that have led to the call of a group's method, the innermost first.

    And the frame around them: the learner's, or that of something in torch which communicates by itself.
    """
    names = []
    while frame is not None and frame.f_code.co_filename in (distributed_c10d.__file__, c10d_logger.__file__):
        if frame.f_code.co_filename == distributed_c10d.__file__:
            names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names, frame


def _context_text(frame: FrameType | None) -> str:
    """What the learner has called that communicates by itself: " in backward", " in DistributedDataParallel".

    Without any frame a thread of torch's has called, with no Python below it: so a GPU's backward pass does.
    """
    if frame is None:
        return " in backward"
    called = None
    while frame is not None and frame.f_code.co_filename.startswith(_TORCH):
        called, frame = frame.f_code, frame.f_back
    if called is None:
        return ""
    owner, _, name = called.co_qualname.rpartition(".")
    return f" in {'forward' if name.endswith('_call_impl') else owner if name == '__init__' else name}"


def agreement_of(name: str, method: str, contribution: int | None, args: tuple, kwargs: dict) -> Agreement:
    """What must be the same on all ranks of a collective: root, operation, size and dtype of each rank's tensor."""
    options: Any = kwargs.get("opts", args[-1] if args else None)
    operation = options.reduceOp.op.name if hasattr(options, "reduceOp") else ""
    agreement = Agreement(name, getattr(options, "rootRank", None), operation)
    if method not in _EQUAL_SIZES or contribution is None:
        return agreement
    mine = args[contribution]
    tensor = mine if isinstance(mine, torch.Tensor) else mine[0]
    return agreement._replace(amount=tensor.numel(), unit=str(tensor.dtype).removeprefix("torch."))
