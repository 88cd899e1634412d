"""From a log to the cause of a failed launch: rules over lines, what explains more before what follows from it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from course_utils.errors import CourseError

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Rule:
    """How a cause shows in a log.

    Attributes:
        cause: its name.
        shows: a regular expression; a line that it fits shows the cause.
        beside: a regular expression that another place of the log has to fit too; `{0}` stands for what the first group
            of `shows` found.
    """

    cause: str
    shows: str
    beside: str = ""


RULES = (
    Rule("different software", r"No module named '\w+(\.\w+)*\._\w+|Can't get attribute .* on <module '\w+(\.\w+)*\._"),
    Rule("different software", r"undefined symbol|version [`'](GLIBC|CXXABI).* not found|unsupported pickle protocol"),
    Rule("no shared files", r"No such file or directory: '(/[^']+)'", beside=r"\b(wrote|saved|written)\b.*{0}"),
    Rule("no shared files", r"couldn't chdir to .* No such file or directory"),
    Rule("out of memory", r"(CUDA|HIP|cgroup) out of memory|Out of memory: Killed|OutOfMemoryError|oom[-_]kill"),
    Rule("out of memory", r"DefaultCPUAllocator: |Cannot allocate memory|bad_alloc|: Out Of Memory|MemoryError"),
    Rule("out of memory", r"Cuda failure .*out of memory"),
    Rule("wrong GPU binding", r"Duplicate GPU detected|Multiple Ranks are using the same GPU|invalid device ordinal"),
    Rule("wrong GPU binding", r'backend="nccl" cannot be had here'),
    Rule("old driver", r"NVIDIA driver on your system is too old|driver version is insufficient"),
    Rule("unfit kernels", r"no kernel image is available|is not compatible with the current PyTorch installation"),
    Rule("broken GPU", r"\bXid\b.*: (48|63|64|74|79|92|94|95),|fallen off the bus|uncorrectable (\w+ )?(ECC )?error"),
    Rule("illegal memory access", r"illegal memory access|device-side assert triggered"),
    Rule("NCCL interface", r"no socket interface found|address .*with family \d+ is neither AF_INET"),
    Rule("InfiniBand", r"NET/IB ?: .*Got (async event|completion)"),
    Rule("mismatched collectives", r"Detected mismatch between collectives|op\.preamble\.length <= op\.nbytes"),
    Rule("address in use", r"EADDRINUSE|[Aa]ddress already in use"),
    Rule("unreachable node", r"No route to host|Network is unreachable|(Name|Host).* not known|in name resolution"),
    Rule("unreachable node", r"socket has failed to connect to any|timed out .*while trying to connect"),
    Rule("unreachable node", r"connection to the C10d store has failed"),
    Rule("wrong rank count", r"\d+/\d+ clients joined|RendezvousTimeoutError|rank < size\. \d+ vs \d+"),
    Rule("NCCL's own error", r"unhandled (cuda|system) error|nccl(UnhandledCuda|System|Internal|Remote)Error"),
    Rule("collective timeout", r"Watchdog caught collective operation timeout"),
    Rule("time limit", r"DUE TO TIME LIMIT"),
)
"""The first rule that a line fits wins: what can be a consequence of others, as a time limit can, stands last."""

ADVICE = {
    "wrong rank count": (
        "Other processes came than --nnodes × --nproc-per-node (or WORLD_SIZE) announced: too few, "
        "and the rest waited, or one with a rank too high.",
        "Start the command on every node with a --node-rank of its own from 0 on, or say the right number of nodes.",
    ),
    "address in use": (
        "Another program already listens at the port where rank 0 wants to wait for the others.",
        "Look for a run of yours that was left over (`ss -ltnp`), or choose another --master-port.",
    ),
    "mismatched collectives": (
        "The ranks are not in the same collective, or not with the same shape: one took another branch.",
        "Compare the two operations named in the log, and look for an `if` on the rank, or for a last "
        "batch that only some ranks have.",
    ),
    "out of memory": (
        "A rank asked for more memory than it may have: its allocator gave none, or the kernel killed it.",
        "Use smaller batches or fewer ranks on the node, or ask for more memory (--mem); look whether "
        "tensors of past steps are kept.",
    ),
    "different software": (
        "The nodes run different versions of Python or of a package, and one cannot read what the other "
        "sends or was built for.",
        "Start all ranks from one environment that every node sees, and print the versions at the start.",
    ),
    "no shared files": (
        "A file that one node wrote is not there on another: both have a folder of that name, each its own.",
        "Keep code, data and checkpoints on a file system that all nodes mount, such as the home or project folder.",
    ),
    "NCCL interface": (
        "NCCL found no network interface to meet the other ranks over: NCCL_SOCKET_IFNAME names none "
        "that this node has.",
        "Take the variable out, or give it a name from `ip -brief address` on every node; "
        "NCCL_DEBUG=INFO shows what was chosen.",
    ),
    "time limit": (
        "The job was not done when the time that it had asked for was up, and Slurm ended it.",
        "Ask for more --time, or write checkpoints and requeue; if the last step is long past, look for "
        "what it was waiting for.",
    ),
    "wrong GPU binding": (
        "Two ranks of a node took the same GPU, or a rank took one that it does not have.",
        "Let every rank take the GPU of its local rank: "
        "`torch.cuda.set_device(int(os.environ['LOCAL_RANK']))`, one rank for each GPU.",
    ),
    "old driver": (
        "The node's NVIDIA driver is older than the CUDA that this torch was built for, so torch sees no GPU.",
        "Take a torch built for an older CUDA (its name ends in +cu126 or the like; `nvidia-smi` shows the newest that "
        "the driver knows), or ask for a node with a newer driver.",
    ),
    "unfit kernels": (
        "This torch, or an extension, holds no kernels for this generation of GPU.",
        "Take a build for it: `python -c 'import torch; print(torch.cuda.get_arch_list())'` lists what it holds.",
    ),
    "broken GPU": (
        "The GPU itself, its memory or its place in the machine failed; the program is not at fault.",
        "Tell the centre the node and the number behind Xid, leave the node out (`--exclude=NODE`), and go on from the "
        "last checkpoint.",
    ),
    "illegal memory access": (
        "A kernel read or wrote outside of its tensors, such as with an index or a label that is too large.",
        "Run it once with CUDA_LAUNCH_BLOCKING=1, which names the call, or on the processor, which names the index.",
    ),
    "InfiniBand": (
        "A card or a cable of the InfiniBand network dropped a message; the rank at its other end may be dead, too.",
        "Look first whether that rank fell earlier. If not: `ibstat` on both nodes, and tell the centre; "
        "NCCL_IB_DISABLE=1 shows whether the rest works, slowly.",
    ),
    "NCCL's own error": (
        "NCCL stopped at an error of CUDA or of the system, which only its own lines name.",
        "Start again with NCCL_DEBUG=WARN, and read the first line of the rank that fell first.",
    ),
    "collective timeout": (
        "A collective was not done in time: a rank never came to it, was in another one, or had died.",
        "Compare `last enqueued work` of all ranks: the lowest number stayed behind. With "
        "TORCH_FR_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1, torchfrtrace names the call.",
    ),
    "unreachable node": (
        "A node cannot reach the address where rank 0 waits: a wrong name, another network, or a firewall.",
        "From that node, try `getent hosts NAME` and `ping NAME`; give --master-addr the name that the "
        "cluster's own network knows.",
    ),
    UNKNOWN: (
        "None of the known failures. Below stand the first errors by time, or the last line where there is no error.",
        "Read from there on: errors of the other ranks that come later are often its consequences.",
    ),
}
"""Name of a cause → the cause in a sentence, what to do."""

CAUSES = tuple(name for name in ADVICE if name != UNKNOWN)
TIME = re.compile(r"\b(?:[IWEF]|\d{4}-)(\d\d)-?(\d\d)[ T_](\d\d:\d\d:\d\d(?:[.,]\d+)?)")
"""The time of a line: E1122 01:12:31.798 (glog, PyTorch) or 2026-11-22T01:12:31 (Slurm)."""
ERROR = re.compile(
    r"\b\w*(Error|Exception|Interrupt)\b|\b(error|fatal): |Segmentation fault|Signal \d+ \(SIG|core dumped"
)
CONSEQUENCE = re.compile(
    r"ChildFailedError|SignalException|[Cc]onnection (closed|reset)|Broken pipe|closing signal|Signal 15|SIGTERM"
    r"|errors\.html|During handling of|error_file|Exited with exit code|wait timeout after"
)


@dataclass(frozen=True)
class Cause:
    """Why a launch failed.

    Attributes:
        name: one of `CAUSES`, or "unknown".
        lines: of the log, unchanged, the one that shows it first; for "unknown" at most three, the earliest errors.
    """

    name: str
    lines: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """The cause in a sentence."""
        return ADVICE[self.name][0]

    @property
    def next(self) -> str:
        """What to do, in a sentence."""
        return ADVICE[self.name][1]


def explain_failure(log: str) -> Cause:
    """Find the cause of a failed launch, and the earliest line that shows it.

    The cause is that of the first rule in `RULES` that fits any line. A rule fits if `rule.shows`
    is found in the line and, for a rule with a `beside`, `beside(rule, found, log)` is true.

    Lines are considered in the order of time (`in_time`), which may differ from their order in the
    log, because each rank writes when it can.

    Args:
        log: what the launch printed, with all ranks in one text.

    Returns:
        The cause, with the earliest line that its rule fits. If no rule fits, the cause is
        `UNKNOWN`, with the earliest lines that help, three at most: lines in which `ERROR` is found
        and `CONSEQUENCE` is not. If there are none, lines in which `ERROR` is found. If there are
        none either, the last line. An empty log gives no line.
    """
    lines = in_time(log.splitlines())
    # Rule by rule, not line by line: a cause counts before its consequences,
    # wherever they are in the log.
    for rule in RULES:
        for line in lines:
            found = re.search(rule.shows, line)
            if found and (not rule.beside or beside(rule, found, log)):
                return Cause(rule.cause, (line,))
    # No rule fits, so show the earliest errors, and preferably those that do not follow from others.
    errors = [line for line in lines if ERROR.search(line)]
    causes = [line for line in errors if not CONSEQUENCE.search(line)]
    return Cause(UNKNOWN, tuple((causes or errors or lines[-1:])[:3]))


def in_time(lines: Sequence[str]) -> list[str]:
    """The lines that say something, the earliest first."""
    timed, now = [], ""
    for line in lines:
        if found := TIME.search(line):
            now = " ".join(found.groups())
        timed.append((now, line))
    return [line for _, line in sorted(timed, key=lambda pair: pair[0]) if line.strip()]


def beside(rule: Rule, found: re.Match[str], log: str) -> bool:
    """Whether the log also has what the rule asks for beside the line."""
    return re.search(rule.beside.format(re.escape(found[1])), log) is not None


def read_log(file: Path) -> str:
    """The text of a log; bytes that are no text become a sign.

    Raises:
        CourseError: there is no such file, it cannot be read, or it is empty.
    """
    try:
        log = file.read_text(errors="replace")
    except OSError as error:
        raise CourseError(
            f"{file} cannot be read: {error.strerror}. Give the file that holds what the launch printed."
        ) from None
    if not log.strip():
        raise CourseError(
            f"{file} is empty. Give the file that holds what the launch printed, standard error included."
        )
    return log


def explained(cause: Cause, log: str) -> str:
    """What `course doctor --log` prints: the cause, the line that shows it with its number, and what to do next."""
    lines = log.splitlines()
    shown = [f"    line {lines.index(line) + 1}: {shortened(line.strip())}" for line in cause.lines]
    return "\n".join([f"{cause.name}: {cause.why}", *shown, f"Next: {cause.next}"])


def shortened(line: str, width: int = 240) -> str:
    """The line, or its beginning where it is long."""
    return line if len(line) <= width else line[: width - 1] + "…"
