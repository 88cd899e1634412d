"""What kind of event a trace holds: a kernel, a copy, a message, an operator, a call to the GPU's driver, a step.

torch.profiler writes the kind into `cat`. Its words have changed over the years ("Kernel" has become "kernel"), and
other devices have words of their own. AMD's kernels and calls are written with the words of NVIDIA's.

A message is one of NCCL's kernels, or those of a library like it (`message_kernels`), or a task of a thread of gloo's
(`gloo:…`), MPI's or UCC's. What the program does to ask for one (`nccl:all_reduce`, `c10d::allreduce_`) is no message:
it is over in microseconds.

Source: Kineto, `libkineto/src/ActivityType.cpp`.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from course_utils.lessons.overlap.played_names import COMPUTING
from course_utils.lessons.profiling.message_kernels import carries_messages

Event = Mapping[str, Any]
STEP = "ProfilerStep"
"""Begins the name of the event around each profiled step: `ProfilerStep#3`."""
ON_GPU = "gpu_user_annotation"
"""The kind of event that says when the GPU was at what the program names, which may be long after the program."""
KERNELS = frozenset({"kernel", "mtia_ccp_events"})
COPIES = frozenset({"gpu_memcpy", "gpu_memset", "memcpy", "memset"})
ON_DEVICE = KERNELS | COPIES
CALLS = frozenset({"cuda_runtime", "cuda_driver", "hip_runtime", "runtime", "xpu_runtime", "mtia_runtime"})
NOT_SHOWN = frozenset({"trace", ON_GPU, "python_function", "overhead", "cuda_sync"})
"""Kinds that are left out of a merged trace: no work, in no row of their own, or not asked for."""
ON_THREADS = ("gloo:", "mpi:", "ucc:")
"""How the names of messages begin that threads of the program carry."""
ON_PLAYED_LINK = "link"
_NO_WORK = ("c10d", "_c10d_functional", "c10d_functional", "autograd", "torch", "profiler")
"""Whose operators only call others, or ask for a message: `autograd::engine::evaluate_function: …`, `c10d::…`."""


def kind_of(event: Event) -> str:
    """Return the kind that the file gives it, in small letters; "" without one."""
    kind = event.get("cat")
    return _in_small_letters(kind) if isinstance(kind, str) else ""


_in_small_letters = lru_cache(maxsize=256)(str.lower)


def args_of(event: Event) -> Mapping[str, Any]:
    """Return what else the file knows of an event."""
    args = event.get("args")
    return args if isinstance(args, (dict, Mapping)) else {}  # the first is tested a lot faster


def name_of(event: Event) -> str:
    """Return its name; "" without one."""
    return str(event.get("name", ""))


def is_kernel(event: Event) -> bool:
    """Whether a GPU, or another device, ran it."""
    return kind_of(event) in KERNELS


def is_copy(event: Event) -> bool:
    """Whether it moves or fills a GPU's memory without a kernel."""
    return kind_of(event) in COPIES


def is_on_device(event: Event) -> bool:
    """Whether it is something that a GPU did."""
    return kind_of(event) in ON_DEVICE


def is_call(event: Event) -> bool:
    """Whether the program asked the GPU's driver for something."""
    return kind_of(event) in CALLS


def is_step(event: Event) -> bool:
    """Whether it is the program's own time for a profiled step."""
    return name_of(event).startswith(STEP) and kind_of(event) not in NOT_SHOWN


def is_step_on_gpu(event: Event) -> bool:
    """Whether it is the time that a GPU worked on a profiled step."""
    return name_of(event).startswith(STEP) and kind_of(event) == ON_GPU


def is_communication(event: Event) -> bool:
    """Whether it is a collective or a message under way: a kernel that carries messages, or one of gloo's tasks."""
    if is_kernel(event):
        return carries_messages(name_of(event)) or "Collective name" in args_of(event)
    return kind_of(event) == ON_PLAYED_LINK or name_of(event).startswith(ON_THREADS)


def is_computing(event: Event, on_gpu: bool) -> bool:
    """Whether it is work of the network: a kernel, on a CPU an operator, or computing that is emulated by waiting."""
    if on_gpu:
        return is_kernel(event) and not is_communication(event)
    library, calls, _ = name_of(event).partition("::")
    is_operator = bool(calls) and library not in _NO_WORK and kind_of(event) in ("cpu_op", "operator")
    return library == "aten" or is_operator or name_of(event) == COMPUTING


def uses_gpu(events: Sequence[Event]) -> bool:
    """Whether a GPU's kernels are among them; then it is they that compute, and not the operators."""
    return any(is_kernel(event) for event in events)
