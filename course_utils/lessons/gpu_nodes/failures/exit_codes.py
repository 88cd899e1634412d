"""What launchers say of a process that ended: which rank, and with which exit code or signal."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from course_utils.lessons.gpu_nodes.failures.log_line import Line
from course_utils.lessons.gpu_nodes.failures.story import ReportKind
from course_utils.lessons.gpu_nodes.failures.tracebacks import unmarked

EXIT_CODE = "exit code"
"""The failure of a process that ended itself with an error."""
INSIDE_MPI = "error inside MPI"
"""The failure of a call of MPI, if its error stack is there."""
SIGNALS = {
    1: "terminated", 2: "interrupted", 4: "wrong processor", 6: "aborted", 7: "bus error", 8: "aborted", 9: "killed",
    11: "segmentation fault", 15: "terminated",
}  # fmt: skip
"""The number of a signal → the failure that it stands for."""
_SHELLS = {126: "permission denied", 127: "command not found"}
"""Exit codes by which a shell says why it could not start a program."""
_MOST_RANKS = 4096

_SRUN = re.compile(r"srun: error: (\S+): tasks? ([\d,-]+): (?:Exited with exit code (\d+)|(\w[\w ]*))")
_TORCHRUN = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+)")
_BLOCK_RANK = re.compile(r"^\s*rank\s+: (\d+) \(local_rank: \d+\)")
_BLOCK_CODE = re.compile(r"^\s*exitcode\s+: (-?\d+)")
_MPIRUN = re.compile(r"process rank (\d+) .*exited on signal (\d+)")
_MPI_NAME = re.compile(r"Process name: \[\[\d+,\d+\],\s*(\d+)\]")
_MPI_CODE = re.compile(r"^\s*=?\s*(?:Exit code|EXIT CODE): +(\d+)|EXIT STRING: .*\(signal (\d+)\)")
_MPI_ABORT = re.compile(
    r"MPI_ABORT was invoked on rank (\d+)|Abort\(-?\d+\) (?:on node \d+ )?\(rank (\d+) in"
    r"|called MPI_Abort\(.*\) - process (\d+)"
)
_STACK = re.compile(r"\berror stack:\s*$")
_STACKED = re.compile(r"\w+\(\d+\)\.*: ?(.*)")
_OTHERS = re.compile(
    r"exits with return code = (-?\d+)|returned non-zero exit status (\d+)|Process \d+ exit with status code (\d+)"
    r"|process \d+ terminated with exit code (\d+)|died with <Signals\.\w+: (\d+)>|[Tt]ask \d+ exited with code (\d+)"
)
_SOMEBODY = re.compile(r"one or more processes exited with non-zero status|1 process returned$")
_SPAWNED = re.compile(r"process (\d+) terminated with signal (SIG\w+)")
_NAMES = {"SIGKILL": 9, "SIGSEGV": 11, "SIGABRT": 6, "SIGTERM": 15, "SIGBUS": 7, "SIGINT": 2, "SIGILL": 4}
_SLURM_WORDS = {
    "Killed": 9, "Terminated": 15, "Segmentation fault": 11, "Aborted": 6, "Bus error": 7, "Illegal instruction": 4,
}  # fmt: skip
_WORDS = (
    "exit", "1 process returned", "EXIT", "Exit code", "srun: error", "rank ", "Process name", "MPI_A", "Abort(",
    "terminated", "died with",
)  # fmt: skip
"""A line without any of these says nothing of a process that ended."""
_PROCESS_OF_RANK = re.compile(r"\bexitcode\s*: -?\d+\)?.*\(pid: (\d+)\)")
_NAMED_PROCESS = re.compile(r"\b[Pp]rocess (\d+) \(|\bpid[=:] ?'?(\d+)")
_UNDER_TORCHRUN = re.compile(r"torch/distributed/(?:run|launch|elastic)|torchrun|torch\.distributed\.elastic")


@dataclass(frozen=True)
class ExitReport:
    """A process that ended: its failure, its rank if that is known, and the line of the launcher."""

    failure: str
    rank: int | None
    line: Line

    @property
    def kind(self) -> ReportKind:
        """A process that a launcher or Slurm ended follows from another one's failure."""
        return ReportKind.CONSEQUENCE if self.failure in ("terminated", "interrupted") else ReportKind.SIGN


def failure_of_code(code: int) -> str:
    """The failure that an exit code stands for: that of a signal if it is negative or above 128."""
    signal = -code if code < 0 else code - 128
    return SIGNALS.get(signal) or _SHELLS.get(code) or EXIT_CODE


def exits_of(lines: Sequence[Line]) -> Iterator[ExitReport]:
    """Yield what launchers say of processes that ended with an error."""
    agents = any("torch" in line.text and _UNDER_TORCHRUN.search(line.text) for line in lines)
    ranks: dict[tuple[str, int | None], int] = {}
    for index, line in enumerate(lines):
        if not any(word in line.text for word in _WORDS):
            continue
        text = unmarked(line.text)
        writer = line.file, line.rank
        if found := _SRUN.search(text):
            yield from _of_srun(found, line, agents)
        elif found := _BLOCK_RANK.match(text) or _MPI_NAME.search(text):
            ranks[writer] = int(found[1])
        elif found := _BLOCK_CODE.match(text) or _MPI_CODE.search(text):
            code = int(found[1] or 0) if found.lastindex == 1 else 128 + int(found[2])
            if code:
                yield ExitReport(failure_of_code(code), ranks.pop(writer, None), line)
        elif found := _TORCHRUN.search(text):
            yield ExitReport(failure_of_code(int(found[1])), None, line)
        elif found := _MPIRUN.search(text):
            yield ExitReport(failure_of_code(-int(found[2])), int(found[1]), line)
        elif found := _MPI_ABORT.search(text):
            reason = stacked_reason(lines, index)
            rank = int(found[found.lastindex or 0])
            yield ExitReport(INSIDE_MPI if reason else "MPI's own error", rank, reason or line)
        elif found := _SPAWNED.search(text):
            yield ExitReport(failure_of_code(-_NAMES.get(found[2], 0)), int(found[1]), line)
        elif _SOMEBODY.search(text):
            yield ExitReport(EXIT_CODE, None, line)
        elif found := _OTHERS.search(text):
            code = -int(found[5]) if found[5] else int(next(group for group in found.groups() if group))
            yield ExitReport(failure_of_code(code), None, line)


def stacked_reason(lines: Sequence[Line], index: int) -> Line | None:
    """The last line of the error stack of MPI that begins with a line; it tells why. None if no stack begins there."""
    reason = None
    if _STACK.search(lines[index].text):
        for line in lines[index + 1 :]:
            found = _STACKED.match(unmarked(line.text)) if line.file == lines[index].file else None
            if not found:
                break
            reason = line if found[1] else reason
    return reason


def ranks_of_processes(lines: Sequence[Line]) -> dict[int, int]:
    """Process number → rank, as torchrun tells of processes that failed, unless two nodes have the same number."""
    ranks: dict[int, set[int]] = {}
    for line in lines:
        if line.rank is not None and "(pid: " in line.text and (found := _PROCESS_OF_RANK.search(line.text)):
            ranks.setdefault(int(found[1]), set()).add(line.rank)
    return {process: known.pop() for process, known in ranks.items() if len(known) == 1}


def ranks_that_failed(lines: Iterable[Line]) -> set[int]:
    """The ranks of which torchrun's summary tells that they ended themselves, as after an exception of Python."""
    ranks = set()
    rank: int | None = None
    for line in lines:
        if not ("local_rank: " in line.text or "exitcode" in line.text):
            continue
        text = unmarked(line.text)
        if found := _BLOCK_RANK.match(text):
            rank = int(found[1])
        elif rank is not None and (found := _BLOCK_CODE.match(text)):
            ranks |= {rank} if found[1] == "1" else set()
            rank = None
    return ranks


def named_process(text: str) -> int | None:
    """The number of the process that a line of the kernel or the driver is about, or None."""
    found = _NAMED_PROCESS.search(text)
    return int(found[1] or found[2]) if found else None


def _of_srun(found: re.Match[str], line: Line, agents: bool) -> Iterator[ExitReport]:
    """What srun says of tasks, which are ranks unless each of them is a launcher itself."""
    code = int(found[3]) if found[3] else -_SLURM_WORDS.get(found[4].strip().removesuffix(" (core dumped)"), 0)
    if code:
        for task in [None] if agents else tasks_of(found[2]):
            yield ExitReport(failure_of_code(code), task, line)


def tasks_of(text: str) -> list[int]:
    """The numbers of a list as Slurm writes it: "0-2,5" → 0, 1, 2, 5."""
    tasks: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first:
            tasks += range(int(first), min(int(last or first), int(first) + _MOST_RANKS) + 1)
    return tasks
