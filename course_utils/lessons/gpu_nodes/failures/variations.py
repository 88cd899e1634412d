"""Logs that were never recorded: other names and numbers, other orders, other words, and lines that mean nothing."""

import random
import re

NOISE = (
    "/home/ada/venv/lib/python3.11/site-packages/torch/cuda/__init__.py:61: FutureWarning: pynvml is deprecated.",
    "W1122 00:59:00.100000 77 torch/distributed/run.py:874] Setting OMP_NUM_THREADS environment variable to 1",
    "epoch 3 loss 0.241 accuracy 0.93",
    "node01:77:91 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
    "Set PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation when you run out of memory often.",
    "wrote /scratch/ada/metrics.csv",
)
"""Lines that a launch prints whether it fails or not."""

OTHERS = {
    "CUDA's memory": (
        "out of memory",
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has 79.1 GiB",
    ),
    "Slurm's memory": (
        "out of memory",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.",
    ),
    "srun's memory": ("out of memory", "srun: error: gpu07: task 3: Out Of Memory"),
    "gloo's port": (
        "address in use",
        "RuntimeError: [c10d] The server socket has failed to listen on [::]:29500 "
        "(errno: 98 - Address already in use).",
    ),
    "Python's port": ("address in use", "OSError: [Errno 98] Address already in use"),
    "a name": (
        "unreachable node",
        "[W1 socket.cpp:697] [c10d] The IPv6 network addresses of (gpu77, 29500) cannot be retrieved "
        "(gai error: -2 - Name or service not known).",
    ),
    "a way that breaks off": (
        "unreachable node",
        "DistNetworkError: The client socket has failed to connect to any network address of (gpu77, 29500). "
        "The client socket has failed to connect to gpu77:29500 (errno: 104 - Connection reset by peer).",
    ),
    "a slow way": (
        "unreachable node",
        "DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (10.3.0.7, 4711).",
    ),
    "sizes": (
        "mismatched collectives",
        "RuntimeError: [/pytorch/gloo/gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 400 vs 4",
    ),
    "the course's own line": (
        "wrong GPU binding",
        'backend="nccl" cannot be had here: gpu01 has 1 GPU for 2 ranks, and NCCL wants one for each.',
    ),
    "NCCL 2.30": (
        "wrong GPU binding",
        "node01:77:91 [0] init.cc:1057 NCCL WARN Multiple Ranks are using the same GPU/Partition : rank 1 and rank 0",
    ),
    "NCCL's memory": (
        "out of memory",
        "node01:77:91 [0] enqueue.cc:1410 NCCL WARN Cuda failure 2 'out of memory'",
    ),
    "a driver": (
        "old driver",
        "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 12020).",
    ),
    "a runtime": ("old driver", "RuntimeError: CUDA driver version is insufficient for CUDA runtime version"),
    "an old GPU": (
        "unfit kernels",
        "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device",
    ),
    "a new GPU": (
        "unfit kernels",
        "NVIDIA X with CUDA capability sm_130 is not compatible with the current PyTorch installation.",
    ),
    "the kernel's log": (
        "broken GPU",
        "[77.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=7777, name=python, GPU has fallen off the bus.",
    ),
    "GPU memory": ("broken GPU", "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered"),
    "an index": (
        "illegal memory access",
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    ),
    "a label": ("illegal memory access", "torch.AcceleratorError: CUDA error: device-side assert triggered"),
    "a cable": (
        "InfiniBand",
        "gpu07:77:91 [0] net_ib.cc:1295 NCCL WARN NET/IB: Got completion from peer 10.0.0.7<4711> with status=12 "
        "opcode=129 len=0 vendor err 129",
    ),
    "no more words": (
        "NCCL's own error",
        "torch.distributed.DistBackendError: NCCL error, unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
    ),
    "the watchdog": (
        "collective timeout",
        "[rank1]:[E1122 ProcessGroupNCCL.cpp:688] [Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=133, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=60000) ran for 60012 milliseconds",
    ),
    "a GPU too many": ("wrong GPU binding", "RuntimeError: CUDA error: invalid device ordinal"),
    "NCCL 2.27": (
        "NCCL interface",
        "ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) nor AF_INET6(10)",
    ),
    "a library": (
        "different software",
        "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by libtorch_cpu.so)",
    ),
    "pickles": ("different software", "ValueError: unsupported pickle protocol: 5"),
    "a folder": (
        "no shared files",
        "slurmstepd: error: couldn't chdir to `/home/ada/run': No such file or directory: going to /tmp instead",
    ),
    "a rank too many": ("wrong rank count", "RuntimeError: [enforce fail at gloo/context.cc:23] rank < size. 2 vs 2"),
    "a node too few": ("wrong rank count", "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"),
    "a store": (
        "unreachable node",
        "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: "
        "The connection to the C10d store has failed.",
    ),
    "a job": (
        "time limit",
        "slurmstepd: error: *** JOB 77 ON gpu01 CANCELLED AT 2027-01-01T00:10:03 DUE TO TIME LIMIT ***",
    ),
}
"""Other words for the same causes: what stands for it → cause, line."""


def varied(log: str) -> str:
    """Another port, process, node, user, version and day; the same failure."""
    for pattern, new in (
        (r"\bnode0(\d)", r"gpu1\1"),
        (r"/home/ada\b", "/projects/p77/grace"),
        (r"/mnt/runs\b", "/scratch/x9"),
        (r"2\.13\.0\+cpu", "2.9.1+cu128"),
        (r"Python 3\.11\.\d+", "Python 3.13.1"),
        (r"\b29500\b", "41234"),
        (r"port: \d+", "port: 1234"),
        (r"\[rank1\]", "[rank13]"),
        (r"1/2 clients", "5/8 clients"),
        (r"\b1122 ", "0304 "),
        (r"2026-11-22", "2027-03-04"),
        (r"pid: \d+", "pid: 99"),
        (r"\bc1\b", "gpu12"),
    ):
        log = re.sub(pattern, new, log)
    return log


def interleaved(log: str, rng: random.Random) -> str:
    """The lines of two nodes, or of two ranks, mixed otherwise; each one's stay in their order."""
    owner = [(re.match(r"(?:(\d): |\[(rank\d+)\])", line) or [""])[0] for line in log.splitlines()]
    places = owner[:]
    rng.shuffle(places)
    queues = {name: [line for writer, line in zip(owner, log.splitlines()) if writer == name] for name in set(owner)}
    return "\n".join(queues[name].pop(0) for name in places)
