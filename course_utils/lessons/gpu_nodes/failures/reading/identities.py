"""Which rank is which process, as all lines of a log together tell: each mark alone often tells only a part."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from course_utils.lessons.gpu_nodes.failures.reading.writers import BlockKind, WriterMark

_NCCL_RANK = re.compile(r"\brank (\d+) nranks (\d+)\b")
_SEVERAL_RANKS_A_TASK = re.compile(r"torch/distributed/run\.py:\d+\] Setting OMP_NUM_THREADS")
"""torchrun warns of it only if it starts more than one rank on its node."""
_ENTRY = re.compile(r"\s*\[\d+\]:\s*$")
_ENTRY_FIELD = re.compile(r"\s*(host|rank|exitcode) +: (\S+)(?: \(local_rank: (\d+)\)| +\(pid: (\d+)\))?")
_ENTRY_END = re.compile(r"\s*(?:-{5,}|={5,})\s*$")
_LONGEST_ENTRY = 500  # lines; it may hold a traceback
_END_OF_A_PROCESS = re.compile(r"\bfailed \(exitcode: -?\d+\) local_rank: \d+ \(pid: (\d+)\)")
_BY_THE_SYSTEM = re.compile(r"\s*(?:srun|sbatch|salloc|slurmstepd[\w.-]*|mpirun|mpiexec|prterun): ")
_IN_A_MESSAGE = re.compile(
    r"\s|nccl\w+:|Last error:|Exception raised from|frame #|terminate called|what\(\)|C\+\+ CapturedTraceback|#\d+ "
)
_IN_A_TRACEBACK = re.compile(r"\s|Traceback \(|During handling|The above exception|[A-Za-z_][\w.]*(?::|$)")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?::|$)")


@dataclass(frozen=True)
class Owner:
    """Who writes a whole file, as its name tells."""

    rank: int | None = None
    node: str = ""


NOBODY = Owner()


@dataclass
class _Known:
    """What the lines of a file tell of the processes in it."""

    ranks_of_tasks: dict[int, int] = field(default_factory=dict)
    ranks_of_locals: dict[tuple[int | None, int], int] = field(default_factory=dict)
    ranks_of_processes: dict[tuple[str, int], int] = field(default_factory=dict)
    nodes_of_ranks: dict[int, str] = field(default_factory=dict)


def identities_of(
    texts: Sequence[str], marks: Sequence[WriterMark], owner: Owner = NOBODY
) -> tuple[list[int | None], list[str]]:
    """The rank and the node of the writer of each line; None and "" where nothing tells.

    A line of the summary that torchrun prints of its failed ranks belongs to the rank that it is about.

    Args:
        texts: the lines of a file.
        marks: what each of them tells.
        owner: who writes what is not marked.
    """
    entries = dict(_entries(texts, marks))
    known = _known(texts, marks, entries)
    ranks: list[int | None] = []
    nodes: list[str] = []
    blocks: dict[int | None, tuple[int, BlockKind]] = {}
    for index, (text, mark) in enumerate(zip(texts, marks, strict=True)):
        if index in entries:
            rank, node, _ = entries[index]
        elif _BY_THE_SYSTEM.match(text, mark.end):
            rank, node = None, mark.node
        else:
            rank, node = _rank_of(mark, known), mark.node
            if mark.rank is None and mark.local_rank is None and mark.process is None:
                if found := _END_OF_A_PROCESS.search(text):
                    rank = next((of for (_, pid), of in known.ranks_of_processes.items() if pid == int(found[1])), rank)
                elif mark.task in blocks:
                    rank = _rank_of_block(text, mark, blocks, rank)
                rank = owner.rank if rank is None else rank
        if mark.rank is not None:
            blocks.pop(mark.task, None)
            if mark.block:
                blocks[mark.task] = (mark.rank, mark.block)
        if not node:
            node = owner.node if rank is None else known.nodes_of_ranks.get(rank, owner.node)
        ranks.append(rank)
        nodes.append(node)
    return ranks, nodes


def _rank_of(mark: WriterMark, known: _Known) -> int | None:
    if mark.rank is not None:
        return mark.rank
    if mark.process is not None and (mark.node, mark.process) in known.ranks_of_processes:
        return known.ranks_of_processes[mark.node, mark.process]
    if mark.local_rank is not None:
        return known.ranks_of_locals.get((mark.task, mark.local_rank))
    return known.ranks_of_tasks.get(mark.task) if mark.task is not None else None


def _rank_of_block(
    text: str, mark: WriterMark, blocks: dict[int | None, tuple[int, BlockKind]], otherwise: int | None
) -> int | None:
    """The rank of a line without a mark that may continue a message of several lines; the message may end with it."""
    rank, kind = blocks[mark.task]
    continues = _IN_A_MESSAGE if kind is BlockKind.MESSAGE else _IN_A_TRACEBACK
    if not continues.match(text, mark.end):
        del blocks[mark.task]
        return otherwise
    if kind is BlockKind.TRACEBACK and _RAISED.match(text, mark.end):
        del blocks[mark.task]
    return rank


def _entries(texts: Sequence[str], marks: Sequence[WriterMark]) -> Iterator[tuple[int, tuple[int, str, int | None]]]:
    """The lines of torchrun's summary of failed ranks: index → rank, node and process."""
    for start, text in enumerate(texts):
        if not text.endswith(":") or not _ENTRY.match(text, marks[start].end):
            continue
        found: dict[str, str] = {}
        indices = []
        for index in range(start, min(start + _LONGEST_ENTRY, len(texts))):
            if marks[index].task != marks[start].task:
                continue
            if _ENTRY_END.match(texts[index], marks[index].end):
                break
            indices.append(index)
            if len(indices) < 8 and (line := _ENTRY_FIELD.match(texts[index], marks[index].end)):
                found[line[1]] = line[4] if line[1] == "exitcode" else line[2]
        if (found.get("rank") or "").isdigit():
            process = int(found["exitcode"]) if found.get("exitcode") else None
            for index in indices:
                yield index, (int(found["rank"]), found.get("host", ""), process)


def _known(
    texts: Sequence[str], marks: Sequence[WriterMark], entries: dict[int, tuple[int, str, int | None]]
) -> _Known:
    known = _Known()
    sizes: dict[tuple[str, int], int] = {}
    for text, mark in zip(texts, marks, strict=True):
        if mark.process is None:
            continue
        process = mark.node, mark.process
        if (found := _NCCL_RANK.search(text)) and int(found[2]) > sizes.get(process, 0):
            # A process is in several groups. Its rank in the largest one is that of the launch.
            sizes[process] = int(found[2])
            known.ranks_of_processes[process] = int(found[1])
        elif mark.rank is not None and process not in sizes:
            known.ranks_of_processes[process] = mark.rank
    for rank, node, pid in entries.values():
        if pid is not None:
            known.ranks_of_processes[node, pid] = rank
    nodes = defaultdict(set)
    for rank, node, _ in entries.values():
        nodes[rank].add(node)
    for (node, _), rank in known.ranks_of_processes.items():
        nodes[rank].add(node)
    known.nodes_of_ranks = {rank: names.pop() for rank, names in nodes.items() if len(names) == 1}
    known.ranks_of_tasks = _ranks_of_tasks(texts, marks)
    known.ranks_of_locals = _ranks_of_locals(marks)
    return known


def _ranks_of_tasks(texts: Sequence[str], marks: Sequence[WriterMark]) -> dict[int, int]:
    """The rank of each task, unless the tasks are launchers with several ranks each."""
    tasks = {mark.task for mark in marks if mark.task is not None}
    if not tasks:
        return {}
    pairs = {(mark.task, mark.rank) for mark in marks if mark.task is not None and mark.rank is not None}
    if any(task != rank for task, rank in pairs):
        return {}
    if not pairs and any(mark.local_rank for mark in marks):
        return {}
    if any(
        _SEVERAL_RANKS_A_TASK.search(text) for text, mark in zip(texts, marks, strict=True) if mark.task is not None
    ):
        return {}
    return {task: task for task in tasks}


def _ranks_of_locals(marks: Sequence[WriterMark]) -> dict[tuple[int | None, int], int]:
    """(task, local rank) → rank: on one node they are the same, on several nodes other marks tell the difference."""
    locals_ = {(mark.task, mark.local_rank) for mark in marks if mark.local_rank is not None}
    differences = defaultdict(set)
    for mark in marks:
        if mark.local_rank is not None and mark.rank is not None:
            differences[mark.task].add(mark.rank - mark.local_rank)
    nodes = {task for task, _ in locals_}
    result = {}
    for task, local_rank in locals_:
        known = differences.get(task) or ({0} if len(nodes) == 1 else set())
        if len(known) == 1 and local_rank is not None:
            result[task, local_rank] = local_rank + next(iter(known))
    return result
