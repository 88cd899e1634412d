"""Which kernels of a GPU carry messages, and which collective each of them is, by their names.

Most are NCCL's, or those of a library with a similar name. Programs that serve language models have kernels of their
own, because an all-reduce of a few numbers takes less time without NCCL, and so have programs that send tokens to
experts. torch calls its own "symmetric memory". None of these kernels tells more of itself than its name.

A kernel that multiplies matrices and sends the result in one computes all the time, so it is not among them. Nor is one
that torch.compile has made: its name lists the operators around it, and the collective is a kernel of its own.

Sources: NCCL `src/device/generate.py`; torch `CUDASymmetricMemoryOps.cu`; DeepEP `csrc/kernels`; vLLM
`csrc/custom_all_reduce.cuh` and `csrc/quickreduce`; FlashInfer `trtllm_allreduce_fusion.cuh`; TensorRT-LLM
`moeAlltoAllKernels.cu`; AMD's MoRI `src/ops/dispatch_combine`.
"""

import re
from functools import lru_cache

_LIBRARY = re.compile(
    r"(?:^|::|\b)(?:nccl|rccl|msccl|oneccl|hccl|hcom_|ccl::|nvshmem|rocshmem|deep_ep::|mori::|mooncake|dlslime::|quickreduce::)"
)
_COLLECTIVE = re.compile(
    r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv|cross_device_reduce|symmetric_memory"
    r"|one_?shot_reduce|two_?shot_reduce|userbuffers|a2a(?:dispatch|combine)|\bep(?:dispatch|combine)",
    re.IGNORECASE,
)
_COMPUTES = re.compile(r"^triton_|deep_ep::layout|gemm|matmul|\b(?:block|warp)_?all_?reduce", re.IGNORECASE)
_OPERATIONS = {
    "allreduce": re.compile(r"all_?reduce|cross_device_reduce", re.IGNORECASE),
    "reducescatter": re.compile(r"reduce_?scatter", re.IGNORECASE),
    "allgather": re.compile(r"all_?gather", re.IGNORECASE),
    "alltoall": re.compile(r"all_?to_?all", re.IGNORECASE),
    "dispatch": re.compile(r"dispatch", re.IGNORECASE),
    "combine": re.compile(r"combine", re.IGNORECASE),
}


@lru_cache(maxsize=1 << 16)
def carries_messages(name: str) -> bool:
    """Whether a kernel with this name carries messages between ranks."""
    short = _function(name)
    return bool(_LIBRARY.search(short) or _COLLECTIVE.search(short)) and not _COMPUTES.search(short)


@lru_cache(maxsize=1 << 16)
def operation_of(name: str) -> str:
    """Return the collective in a kernel's name, "allreduce"; of a name that has none what is behind its first "_"."""
    short = _function(name)
    known = (operation for operation, pattern in _OPERATIONS.items() if pattern.search(short))
    return next(known, (short.split("_") + [""])[1].lower())


def _function(name: str) -> str:
    """A kernel's name with its namespaces, without what it returns, its parameters and its types."""
    short = name.removeprefix("void ").replace("(anonymous namespace)", "anonymous").replace("<unnamed>", "anonymous")
    return re.split(r"[<(]", short, maxsplit=1)[0]
