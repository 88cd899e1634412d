"""Who wrote a line of a log: the marks that launchers, libraries and programs put before it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise


class BlockKind(Enum):
    """A message of several lines, of which only the first is marked."""

    MESSAGE = auto()
    """Of PyTorch's C++ code, with the calls that led to it."""
    TRACEBACK = auto()
    """Of Python's `logging`, with the traceback of the exception."""


@dataclass(frozen=True, slots=True)
class WriterMark:
    """What a line tells of the process that wrote it.

    Attributes:
        rank: its number in the whole launch.
        local_rank: its number on its node.
        task: the number that `srun --label` or `mpiexec -l` puts before a line: a rank, or a node if each task is a
            launcher itself.
        node: the name of the machine.
        process: its number on the machine.
        end: where the message begins, after marks at the beginning of the line.
        block: what lines without a mark may follow that belong to this one.
    """

    rank: int | None = None
    local_rank: int | None = None
    task: int | None = None
    node: str = ""
    process: int | None = None
    end: int = 0
    block: BlockKind | None = None


NO_MARK = WriterMark()


@dataclass(frozen=True, slots=True)
class PrefixStyle:
    """Which prefixes of the lines of a file name a writer. In other files they can be anything."""

    task: bool = False
    """A number and a colon are the number of a task."""
    bracketed_task: bool = False
    """So is a number in brackets."""
    host: bool = False
    """A name and a colon are a node."""


_AT_THE_BEGINNING = re.compile(
    r"""\s*(?:
      \[(?:[\w.@-]+@)?\d+,(?P<mpirun>\d{1,6})\]<std\w+>:?[ ]?        # mpirun --tag-output
    | \[rank[ ]?(?P<rank>\d{1,6})\]:?[ ]?                             # torch's own excepthook and logger
    | \[(?:default|trainer|worker)(?P<local>\d{1,4})\]:[ ]?           # torchrun --tee
    | \((?P<actor>[\w.:-]+)[ ]pid=(?P<pid>\d+)(?:,[ ]ip=(?P<ip>[\w.:-]+))?\)[ ]?  # Ray
    )""",
    re.VERBOSE,
)
_TASK = re.compile(r" *(\d{1,6}):(?: |$)")
"""srun --label"""
_BRACKETED_TASK = re.compile(r"\[(\d{1,6})\]:? (?!\d+$)(?=\S)")
"""mpiexec -l of MPICH and Intel MPI. A shell writes the number of a job in the background in the same form."""
_HOST = re.compile(r"(?!slurmstepd)([A-Za-z][\w-]*\d[\w.-]*): (?=\S)")
"""What DeepSpeed's pdsh puts before a line."""
_NODE_AND_PROCESS = re.compile(
    r"(?:\[[^\]]{0,30}\]\s*)?(?:(?P<nccl>[A-Za-z][\w.-]*):(?P<nccl_pid>\d+):\d+ \[\d+\] "
    r"|\[(?P<mpi>[A-Za-z][\w.-]*):(?P<mpi_pid>\d+)(?::\d+)*\])"
)
"""NCCL's lines, and those of Open MPI and UCX."""
_NODE = re.compile(
    r"srun: error: ([\w.-]+): task|slurmstepd-([\w.-]+): |slurmstepd: error: \*+ (?:JOB|STEP) \S+ ON ([\w.-]+) "
    r"|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d ([\w.-]+) \w+(?:\[\d+\])?: "
)
_RANK_INSIDE = re.compile(
    r"\[(?:PG [^\]]*)?[Rr](?:ank|ANK)[ =:_]?[ ]?(\d{1,6})(?:/\d+)?\]|[<|{,] ?rank[ =:](\d{1,6})[ >|},]"
    r"|\(rank[ =](\d{1,6}), world_size|\[rank=(\d{1,6}),|(?i:\bglobal_rank) ?[:=] ?(\d{1,6})"
)
_LOCAL_RANK_INSIDE = re.compile(r"(?i:\blocal[_ ]rank) ?[:=]? ?(\d{1,4})")
_RANK_FIRST = re.compile(
    r"[^A-Za-z]{0,40}(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\W{1,4})?[Rr](?:ank|ANK)[ :=_]?(\d{1,6})\b"
    r"(?! (?:did|does|has|is|was|never|lost|timed)\b)"
)
"""What programs print: "Rank 3: loss 0.4". But "rank 3 did not answer" is what a different rank writes."""
_ABOUT_A_RANK = re.compile(r"exitcode|Sending process")
_STARTS_A_MESSAGE = re.compile(r"\[?[EWF]\d{4} |\[[EWF] ")
_LOGS_AN_ERROR = re.compile(r".{0,80}\b(?:ERROR|CRITICAL|EXCEPTION)\b")
_SURELY_AFTER_A_PREFIX = re.compile(
    r"\[(?:rank|default)\d|\[?[IWEF]\d{4} \d\d:|Traceback \(most|\[\d{10}\.\d+\]|  File \"|20\d\d-\d\d-\d\d[ T]"
)
_MANY, _MOST = 0.5, 0.6
"""Shares of the lines of a file."""
_HEAD = 200
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BEFORE_A_NODE = ("srun: ", "slurmstepd", *_MONTHS)


def prefix_style(texts: Sequence[str]) -> PrefixStyle:
    """Find out which prefixes name a writer, from all lines of a file: what is before most of them, again and again."""
    hosts = [found[1] for text in texts if (found := _HOST.match(text))]
    return PrefixStyle(
        task=_has_tasks(_TASK, texts),
        bracketed_task=_has_tasks(_BRACKETED_TASK, texts),
        host=len(hosts) > _MOST * len(texts) and len(set(hosts)) <= len(hosts) / 2,
    )


def _has_tasks(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    found = [match for text in texts if (match := pattern.match(text))]
    numbers = [int(match[1]) for match in found]
    steps = {after - before for before, after in pairwise(numbers)}
    # Numbers of lines grow. So do tasks that write a line each, but these begin at 0 and leave none out.
    if len(numbers) > 2 and min(steps) > 0 and (numbers[0] > 0 or steps != {1}):
        return False
    certain = sum(1 for match in found if _SURELY_AFTER_A_PREFIX.match(match.string, match.end()))
    return bool(found) and (len(found) >= _MANY * len(texts) or certain > 1)


def mark_of(text: str, style: PrefixStyle) -> WriterMark:
    """What a line tells of its writer."""
    rank = local_rank = task = process = None
    node, end = "", 0
    if found := (style.task and _TASK.match(text)) or (style.bracketed_task and _BRACKETED_TASK.match(text)):
        task, end = int(found[1]), found.end()
    elif style.host and (found := _HOST.match(text)):
        node, end = found[1], found.end()
    has_bracket = text.find("[", end, end + _HEAD) >= 0
    if has_bracket or text.startswith(("(", " "), end):
        while (found := _AT_THE_BEGINNING.match(text, end)) and found.end() > end:
            end = found.end()
            rank = _number(found["rank"] or found["mpirun"], rank)
            local_rank = _number(found["local"], local_rank)
            process = _number(found["pid"], process)
            node = found["ip"] or node
    if has_bracket and (found := _NODE_AND_PROCESS.match(text, end)):
        node = found["nccl"] or found["mpi"]
        process = int(found["nccl_pid"] or found["mpi_pid"])
    elif text.startswith(_BEFORE_A_NODE, end) and (found := _NODE.match(text, end)):
        node = next(filter(None, found.groups()))
    if rank is None and ("ank" in text or "ANK" in text) and not _ABOUT_A_RANK.search(text, end):
        if found := _RANK_INSIDE.search(text, end, end + _HEAD) or _RANK_FIRST.match(text, end):
            rank = int(next(filter(None, found.groups())))
        elif found := _LOCAL_RANK_INSIDE.search(text, end, end + _HEAD):
            local_rank = _number(found[1], local_rank)
    if rank is local_rank is task is process is None and not node:
        return NO_MARK
    block = None
    if rank is not None and _STARTS_A_MESSAGE.match(text, end):
        block = BlockKind.MESSAGE
    elif rank is not None and _LOGS_AN_ERROR.match(text, end):
        block = BlockKind.TRACEBACK
    return WriterMark(rank, local_rank, task, node, process, end, block)


def _number(text: str | None, otherwise: int | None) -> int | None:
    return otherwise if text is None else int(text)


def message_of(text: str) -> str:
    """A line without the marks at its beginning, as far as they surely are marks."""
    end = 0
    for pattern in (_TASK, _BRACKETED_TASK):
        if (found := pattern.match(text)) and (
            _AT_THE_BEGINNING.match(text, found.end()) or _SURELY_AFTER_A_PREFIX.match(text, found.end())
        ):
            end = found.end()
    while (found := _AT_THE_BEGINNING.match(text, end)) and found.end() > end:
        end = found.end()
    return text[end:]
