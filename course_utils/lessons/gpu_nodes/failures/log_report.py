"""What `course doctor --log` prints: which launch failed, why, on which ranks, and what to do next."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.failures.advice import ADVICE, EXCEPTION, UNKNOWN, Advice, advice_for
from course_utils.lessons.gpu_nodes.failures.enqueued_work import Behind, behind_of
from course_utils.lessons.gpu_nodes.failures.exit_codes import EXIT_CODE
from course_utils.lessons.gpu_nodes.failures.line_reports import reports_of, telling_lines
from course_utils.lessons.gpu_nodes.failures.log_line import Line
from course_utils.lessons.gpu_nodes.failures.own_words import ENDS_ITSELF, OWN_ERROR, last_words, words_after
from course_utils.lessons.gpu_nodes.failures.readable_log import shortened
from course_utils.lessons.gpu_nodes.failures.reading.log_names import EmptyFile
from course_utils.lessons.gpu_nodes.failures.reading.logged_bars import last_bars
from course_utils.lessons.gpu_nodes.failures.reading.logged_launches import (
    LaunchEnding,
    LoggedLaunch,
    have_known_order,
    is_farewell,
    launches_of,
)
from course_utils.lessons.gpu_nodes.failures.rules import is_error
from course_utils.lessons.gpu_nodes.failures.story import FailureReport, ReportKind, Story, explain_failure
from course_utils.lessons.gpu_nodes.failures.tracebacks import CodePosition, RaisedError, tracebacks_of
from course_utils.words import capital, count, ranks_in_words

MOST_FOLLOWERS = 3
NO_POSITION = "Look for the place in the program that raises it; the lines above this one may show the calls."
"""For an exception of the program of which the log does not show the calls."""
OTHER_RANKS = " Later reports from other ranks are consequences of it."
MOST_ENDS = 3
"""Of several files, so many last lines are shown."""
LAST_LINES = 10
"""If a log ends without a word, an error in so many lines before its end counts as a failure."""
OWN_WORDS = 3
"""So many lines of what the program wrote are shown."""
CPP_WORDS = 6
"""So many lines of an exception of C++ are shown, as its text often begins with a frame of stars."""
_GPU = re.compile(r"\bGPU \d+")
_NOT_WORTH_SAYING = {EXIT_CODE, "terminated", "aborted", "interrupted"}
"""What every failure ends with."""


@dataclass(frozen=True)
class LogReport:
    """What a log tells about the launches in it.

    Attributes:
        launch: the one that is explained: the last that failed, or the last.
        number: which of the launches it is, counted from 1.
        launches: how many there are.
        story: why it failed; None if nothing known is reported.
        raised: the exception that is its cause, if the cause is one.
        failed: whether it failed.
        telling: the lines that say most, if there is no story, and otherwise the program's own words beside the line
            that shows the cause.
        alike: how many processes raised this exception, if the log does not tell which.
        behind: the ranks that asked for the fewest collectives, if watchdogs tell.
        has_known_order: whether the log shows which launches came before this one.
    """

    launch: LoggedLaunch
    number: int
    launches: int
    story: Story | None
    raised: RaisedError | None
    failed: bool
    telling: tuple[Line, ...] = ()
    alike: int = 1
    behind: Behind | None = None
    has_known_order: bool = True

    @property
    def is_known(self) -> bool:
        """Whether the cause is known, or nothing failed."""
        return not self.failed or (self.story is not None and self.story.cause.failure != EXIT_CODE)


def log_report(lines: Sequence[Line], empty: Sequence[EmptyFile] = ()) -> LogReport:
    """Explain the last launch that failed.

    Args:
        lines: of a log, with one launch or several.
        empty: files of the log that hold nothing.

    Raises:
        CourseError: there are none.
    """
    launches = launches_of(lines, empty)
    if not launches:
        raise CourseError("There is no text in this log. Give the file that holds what the launch printed.")
    for number, launch in reversed(list(enumerate(launches, 1))):
        if launch.ending == LaunchEnding.ENDED_WELL:
            continue
        reports = reports_of(launch.lines, launch.least_size)
        last = [line for line in launch.lines[-LAST_LINES:] if is_error(line) and not is_farewell(line)]
        if not (reports or last) and launch.ending == LaunchEnding.UNKNOWN:
            continue
        story = explain_failure(reports, launch.least_size)
        telling = _own_words(launch, story) if story else tuple(telling_lines(launch.lines))
        raised, alike = _raised(launch, story)
        behind = behind_of(launch.lines) if story and story.cause.kind == ReportKind.CONSEQUENCE else None
        has_known_order = all(have_known_order(launch, other) for other in launches)
        return LogReport(launch, number, len(launches), story, raised, True, telling, alike, behind, has_known_order)
    return LogReport(launches[-1], len(launches), len(launches), None, None, False)


def _own_words(launch: LoggedLaunch, story: Story) -> tuple[Line, ...]:
    """What the program wrote besides the line that shows the cause, if that line is no launcher's and no exception."""
    cause = story.cause
    if cause.failure == OWN_ERROR:
        return tuple(words_after(launch.lines, cause.line, OWN_WORDS - 1))
    return tuple(last_words(launch.lines, cause.line, OWN_WORDS)) if cause.failure in ENDS_ITSELF else ()


def _raised(launch: LoggedLaunch, story: Story | None) -> tuple[RaisedError | None, int]:
    """The exception that a cause is, and how many processes raised it if the log does not tell which."""
    if story is None:
        return None, 1
    chains = tracebacks_of(launch.lines).chains
    raised = next(
        (raised for chain in chains for raised in chain if story.cause.line in (raised.line, raised.reason)), None
    )
    text = _without_gpu(story.cause.line)
    alike = sum(any(_without_gpu(raised.line) == text for raised in chain) for chain in chains)
    return raised, 1 if story.ranks else max(alike, 1)


def _without_gpu(line: Line) -> str:
    """The text of a line up to the number of a GPU, so that it is the same for processes on different GPUs."""
    return _GPU.split(line.text.strip(), maxsplit=1)[0]


def log_report_text(report: LogReport) -> str:
    """The report in a few lines."""
    return "\n".join(_text_lines(report))


def _text_lines(report: LogReport) -> Iterator[str]:
    if report.launches > 1 and report.failed:
        yield _which_launch(report)
    if not report.failed:
        yield from _nothing_failed(report)
    elif report.story is None:
        yield f"unknown: {UNKNOWN.why}"
        yield from (_line_text(line, report) for line in report.telling)
        yield f"Next: {UNKNOWN.next}"
        yield f"Read more: {UNKNOWN.page}"
    else:
        yield from _story_lines(report, report.story)


def _which_launch(report: LogReport) -> str:
    first, last = report.launch.lines[0], report.launch.lines[-1]
    file = f" of {first.file}" if first.file else ""
    if first.file == last.file:
        lines = f"lines {first.number} to {last.number}{file}"
    else:
        lines = f"from line {first.number}{file} on"
    if not report.has_known_order:
        return (
            f"This log has {report.launches} launches, and it does not show which of them was the last. "
            f"Here is one that failed ({lines}). To see a different one, give its files alone."
        )
    place = "the last" if report.number == report.launches else f"number {report.number}, the last that failed"
    return f"This log has {report.launches} launches. Here is {place} ({lines})."


def _nothing_failed(report: LogReport) -> Iterator[str]:
    if report.launch.ending == LaunchEnding.ENDED_WELL:
        yield "Nothing failed here: the launch came to its end, and no rank reports an error that stopped it."
    else:
        lines = _latest(report.launch)
        end = "It ends with this line" if len(lines) == 1 else "Its files end with these lines"
        yield f"No failure shows in this log. {end}:"
        yield from (_line_text(line, report) for line in lines[:MOST_ENDS])
        yield from _standing_texts(report.launch)
        yield from _silent_texts(report.launch)
        yield (
            "Next: If the program still runs but does nothing, the ranks may wait for each other. If it has ended, "
            "read what its launcher printed."
        )
        yield f"Read more: {ADVICE['collective timeout'].page}"


def _latest(launch: LoggedLaunch) -> list[Line]:
    """The latest line; the last line of each file if their clocks don't tell which of them is the latest."""
    last = list({line.file: line for line in launch.lines}.values())
    times = [line.time for line in last if line.time is not None]
    return last if len(times) < len(last) > 1 else [max(last, key=lambda line: line.time or 0.0)]


def _standing_texts(launch: LoggedLaunch) -> Iterator[str]:
    """Where the last progress bars stop, if they do before their end."""
    ranks_at: dict[str, list[int]] = {}
    for bar in last_bars(launch.lines):
        if not bar.is_full:
            ranks = ranks_at.setdefault(f"step {bar.done:.0f} of {bar.total:.0f}", [])
            ranks += [bar.rank] if bar.rank is not None else []
    for step, ranks in list(ranks_at.items())[:MOST_ENDS]:
        yield f"The last progress bar{f' of {ranks_text(sorted(ranks))}' if ranks else ''} stops at {step}."


def _silent_texts(launch: LoggedLaunch) -> Iterator[str]:
    """Which ranks wrote nothing into their files."""
    if len(launch.silent) == 1:
        (only,) = launch.silent
        yield f"{only.file} is empty: rank {only.rank} wrote nothing. Look at its node first."
    elif launch.silent:
        ranks = sorted({of.rank for of in launch.silent if of.rank is not None})
        yield f"The files of {ranks_text(ranks)} are empty. Look at their nodes first."


def _story_lines(report: LogReport, story: Story) -> Iterator[str]:
    cause = story.cause
    advice = advice_for(cause.failure)
    yield f"{cause.failure}{_on_ranks(story, report.launch.world_size)}: {advice.why}"
    if report.raised and report.alike > 1:
        yield f"{report.alike} processes say so; the log does not tell which ranks they are."
    yield _line_text(cause.line, report)
    if report.raised and cause.line.text.rstrip().endswith(":"):
        for line in report.raised.message[: CPP_WORDS if report.raised.is_cpp else 1]:
            yield f"        {shortened(line.text.strip())}"
    if report.telling and cause.failure != OWN_ERROR:
        yield "The program's last words before that:"
    yield from (_line_text(line, report) for line in report.telling)
    position = report.raised.position if report.raised else None
    if position and not position.is_of_a_package:
        yield f"    in the program: {_position_text(position)}"
    elif position and cause.failure not in ADVICE:
        yield f"    in a package: {_position_text(position)}"
    if cause.kind == ReportKind.CONSEQUENCE and (text := _waiting_text(story, report.launch.least_size)):
        yield text
    if cause.kind != ReportKind.CAUSE:
        yield from _silent_texts(report.launch)
    if report.behind:
        yield _behind_text(report.behind)
    if text := _followers_text(story):
        yield text
    yield f"Next: {_next_text(report, advice)}"
    yield f"Read more: {advice.page}"


def _next_text(report: LogReport, advice: Advice) -> str:
    if advice is not EXCEPTION:
        return advice.next
    position = report.raised.position if report.raised else None
    if position is None or position.is_of_a_package:
        return NO_POSITION
    return advice.next + (OTHER_RANKS if report.launch.least_size > 1 else "")


def _on_ranks(story: Story, world_size: int) -> str:
    """On which ranks, as far as that is known."""
    number = len(story.ranks)
    if not number:
        return ""
    if number == world_size > 1:
        return f" on all {world_size} ranks"
    rest = f" of {world_size}" if world_size > 1 else ""
    return f" on {ranks_text(story.ranks)}{rest}"


def ranks_text(ranks: Sequence[int]) -> str:
    """Ranks in words: "rank 2", "ranks 0 and 3", "ranks 0 to 7", "ranks 0, 2, 4 and 60 more"."""
    if len(ranks) > 2 and ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"ranks {ranks[0]} to {ranks[-1]}"
    if len(ranks) > 6:
        return f"ranks {', '.join(map(str, ranks[:3]))} and {len(ranks) - 3} more"
    return ranks_in_words(list(ranks))


def _line_text(line: Line, report: LogReport) -> str:
    """A line of the log, with where it is and who wrote it."""
    file = f"{line.file}, " if line.file else ""
    who = ", ".join(filter(None, [f"rank {line.rank}" if line.rank is not None else "", line.node]))
    return f"    {file}line {line.number}{f' ({who})' if who else ''}: {shortened(line.text.strip())}"


def _position_text(position: CodePosition) -> str:
    function = f", in {position.function}" if position.function not in ("", "<module>") else ""
    return f"{position.file}, line {position.number}{function}"


def _waiting_text(story: Story, least_size: int) -> str:
    """Who reports nothing, if no rank says what went wrong with itself."""
    silent = story.silent
    if not silent or len(silent) == least_size:
        return ""
    verb = "reports" if len(silent) == 1 else "report"
    owner = "its" if len(silent) == 1 else "their"
    return capital(f"{ranks_text(silent)} {verb} nothing: look at {owner} output and node first.")


def _behind_text(behind: Behind) -> str:
    subject = capital(ranks_text(behind.ranks))
    return (
        f"{subject} stayed behind: the last collective asked for there is number {behind.work}, and elsewhere "
        f"number {behind.others}."
    )


def _followers_text(story: Story) -> str:
    """What only followed from the cause."""
    by_failure: dict[str, list[FailureReport]] = {}
    for report in story.others:
        if report.kind == ReportKind.CONSEQUENCE and report.failure not in _NOT_WORTH_SAYING:
            by_failure.setdefault(report.failure, []).append(report)
    if story.cause.kind == ReportKind.CONSEQUENCE or not by_failure:
        return ""
    parts = [_follower_text(failure, reports, story.cause.time) for failure, reports in by_failure.items()]
    more = f", and {count(len(parts) - MOST_FOLLOWERS, 'other report')}" if len(parts) > MOST_FOLLOWERS else ""
    return f"What only followed: {'; '.join(parts[:MOST_FOLLOWERS])}{more}."


def _follower_text(failure: str, reports: Iterable[FailureReport], since: float) -> str:
    reports = list(reports)
    ranks = sorted({report.rank for report in reports if report.rank is not None})
    who = f" ({ranks_text(ranks)}{{}})" if ranks else "{}"
    later = later_text(min(report.time for report in reports) - since)
    return failure + who.format(f", {later}" if later and ranks else f", {later}" if later else "")


def later_text(seconds: float) -> str:
    """How much later something happened, or nothing if that is less than a second."""
    if seconds < 1:
        return ""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length or (unit == "minute" and seconds >= length):
            return f"{count(round(seconds / length), unit)} later"
    return f"{seconds:.0f} s later"
