"""What the names of log files tell: which rank wrote a file, and which files belong to the same job."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from course_utils.lessons.gpu_nodes.failures.reading.identities import NOBODY, Owner

_TORCHRUN = re.compile(
    r"^(?P<run>.*?)/?attempt_(?P<attempt>\d+)/(?P<local>\d+)/(?:stderr\.log|stdout\.log|error\.json)$"
)
"""torchrun --log-dir: RUN_SUFFIX/attempt_0/LOCAL_RANK/stderr.log"""
_SUFFIX_OF_A_RUN = re.compile(r"_[a-z0-9_]{8}$")
_RANK = re.compile(r"(?:^|[^a-zA-Z])rank[._=-]?(\d{1,6})(?!\d)", re.IGNORECASE)
_STREAM = re.compile(r"(?:^|[._-])(?:std)?(?:out|err|errors?|outputs?)(?=$|[._-])|\.(?:log|txt)$", re.IGNORECASE)
"""What tells standard output and standard error of the same job apart."""
_ARRAY = re.compile(r"^slurm-\d+_\d+\.out$")
"""Slurm's own name for the output of a task of a job array, which is a job of its own."""
_NUMBER = re.compile(r"\d+")
_DATE = re.compile(r"20\d\d[01]\d[0-3]\d")


@dataclass(frozen=True)
class EmptyFile:
    """A log with nothing in it, and the rank that should have written it, if its name tells."""

    file: str
    rank: int | None


@dataclass(frozen=True)
class LogContent:
    """What a file holds, as far as it tells which job it belongs to.

    Attributes:
        ranks: those that wrote its lines.
        first, last: the earliest and the latest time, or None without a clock.
    """

    ranks: frozenset[int] = frozenset()
    first: float | None = None
    last: float | None = None


def in_natural_order(file: str) -> list[tuple[int, str]]:
    """A key to sort names by, so that job 999 comes before job 1000."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", file)]


def attempt_of(file: str) -> int:
    """Which of torchrun's attempts wrote a file, from 0."""
    found = _TORCHRUN.match(PurePath(file).as_posix())
    return int(found["attempt"]) if found else 0


def owners_of(contents: Mapping[str, LogContent]) -> dict[str, Owner]:
    """The owner of each file. A number in a name is a rank only if the names of the other files and the marks agree.

    Args:
        contents: of each file, the ranks that its lines are marked with.
    """
    owners = dict.fromkeys(contents, NOBODY)
    for file in contents:
        if (rank := _rank_in_name(file)) is not None:
            owners[file] = Owner(rank)
    for numbers in _series(contents):
        ranks = _ranks_of_series(numbers, contents)
        owners |= {file: Owner(ranks) for file, ranks in ranks.items()}
    return owners


def _rank_in_name(file: str) -> int | None:
    path = PurePath(file)
    found = [match for name in (path.parent.name, path.name) for match in _RANK.finditer(name)]
    return int(found[-1][1]) if found else None


def _series(files: Collection[str]) -> Iterator[dict[str, int]]:
    """Yield files whose names differ in a number that counts from 0, with these numbers."""
    runs: dict[str, dict[str, int]] = defaultdict(dict)
    templates: dict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    for file in files:
        path = PurePath(file)
        if found := _TORCHRUN.match(path.as_posix()):
            runs[found["run"]][file] = int(found["local"])
        elif not _RANK.search(path.name):
            stem = _STREAM.sub("", path.name)
            for number in _NUMBER.finditer(stem):
                template = str(path.parent), stem[: number.start()], stem[number.end() :]
                templates[template][file] = int(number[0])
    yield from runs.values()
    for numbers in templates.values():
        different = set(numbers.values())
        if len(different) > 1 and different == set(range(len(different))):
            yield numbers


def _ranks_of_series(numbers: dict[str, int], contents: Mapping[str, LogContent]) -> dict[str, int]:
    """The rank of each file of a series: its number, or ahead of it by as much as the marks in the files tell."""
    marked: dict[int, set[int]] = defaultdict(set)
    for file, number in numbers.items():
        marked[number] |= contents[file].ranks
    if any(len(ranks) > 1 for ranks in marked.values()):
        return {}  # the files of nodes, or of jobs
    ahead = {rank - number for number, ranks in marked.items() for rank in ranks}
    is_torchrun = all(_TORCHRUN.match(PurePath(file).as_posix()) for file in numbers)
    if len(ahead) > 1 or (ahead and not is_torchrun and ahead != {0}):
        return {}
    if any(_ARRAY.match(PurePath(file).name) for file in numbers) and not any(
        ranks and number for number, ranks in marked.items()
    ):
        return {}
    return {file: number + next(iter(ahead), 0) for file, number in numbers.items()}


def jobs_of(contents: Mapping[str, LogContent]) -> list[list[str]]:
    """The files of each job, in the order of the names."""
    files = sorted(contents, key=in_natural_order)
    job_of = {file: {file} for file in files}
    for group in _surely_together(files):
        _join(group, job_of)
    for group in _perhaps_together(files):
        seen: set[str] = set()
        jobs: list[tuple[str, LogContent]] = []  # a file of each, and what all its files hold
        for file in group:
            if file in seen:
                continue
            seen |= job_of[file]
            content = _together(contents[member] for member in job_of[file])
            fitting = next((index for index, (_, other) in enumerate(jobs) if _fit(other, content)), None)
            if fitting is None:
                jobs.append((file, content))
            else:
                other, content_of_other = jobs[fitting]
                _join([other, file], job_of)
                jobs[fitting] = other, _together([content_of_other, content])
    order = {file: index for index, file in enumerate(files)}
    jobs_in_order = {min(job, key=order.__getitem__): job for job in job_of.values()}
    return [sorted(jobs_in_order[file], key=order.__getitem__) for file in files if file in jobs_in_order]


def _join(group: Sequence[str], job_of: dict[str, set[str]]) -> None:
    """Make one job of those of several files."""
    joined = max((job_of[file] for file in group), key=len)
    for file in group:
        if job_of[file] is not joined:
            joined |= job_of[file]
            for member in list(job_of[file]):
                job_of[member] = joined


def _together(contents: Iterable[LogContent]) -> LogContent:
    parts = list(contents)
    firsts = [part.first for part in parts if part.first is not None]
    lasts = [part.last for part in parts if part.last is not None]
    return LogContent(
        frozenset().union(*(part.ranks for part in parts)), min(firsts, default=None), max(lasts, default=None)
    )


def _surely_together(files: Sequence[str]) -> Iterator[list[str]]:
    """Yield files of the same job: the ranks of a run of torchrun, output and errors of the same name, and ranks."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for file in files:
        path = PurePath(file)
        if found := _TORCHRUN.match(path.as_posix()):
            groups["run", found["run"]].append(file)
            continue
        stem = _STREAM.sub("", path.name)
        groups["stem", str(path.parent), stem].append(file)
        for name, folder in ((path.name, path.parent), (path.parent.name, path.parent.parent)):
            if _RANK.search(name):
                groups["rank", str(folder), _STREAM.sub("", _RANK.sub("rank", name))].append(file)
                break
    yield from (group for group in groups.values() if len(group) > 1)


def _perhaps_together(files: Sequence[str]) -> Iterator[list[str]]:
    """Yield files that may be of the same job, if what is in them fits: of one job's number, or of one folder."""
    jobs: dict[str, list[str]] = defaultdict(list)
    folders: dict[str, list[str]] = defaultdict(list)
    for file in files:
        path = PurePath(file)
        if found := _TORCHRUN.match(path.as_posix()):
            jobs[_SUFFIX_OF_A_RUN.sub("", found["run"])].append(file)
            continue
        for number in set(_NUMBER.findall(path.name)):
            if len(number) >= 4 and not _DATE.fullmatch(number):
                jobs[number].append(file)
        folders[str(path.parent)].append(file)
    yield from (group for group in (*jobs.values(), *folders.values()) if len(group) > 1)


def _fit(first: LogContent, second: LogContent) -> bool:
    """Whether files can be of one job: different ranks wrote them, at the same time."""
    if not (first.ranks and second.ranks) or first.ranks & second.ranks:
        return False
    if first.first is None or first.last is None or second.first is None or second.last is None:
        return True
    return max(first.first, second.first) <= min(first.last, second.last) + _BETWEEN_RANKS


_BETWEEN_RANKS = 3600.0
"""So many seconds may lie between the last word of a rank and the first word of a different one."""
