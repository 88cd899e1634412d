"""A class's leaderboard of the puzzles: one CSV file that the whole class writes to, so that its numbers prove nothing.

The file is at $COURSE_LEADERBOARD, which a teacher sets to a place that the whole class can write to (the folder
too), or in the course's own folder. It holds the schedules themselves: whoever reads it judges them again.
"""

import csv
import datetime
import io
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils import settings
from course_utils.errors import CourseError
from course_utils.home import course_home
from course_utils.lessons.pipeline.actions import Action, parse_schedule, write_schedule
from course_utils.lessons.pipeline.puzzle.puzzle import PUZZLES, Judgement, Puzzle, best_known, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("name", "puzzle", "idle share", "seconds", "date", "schedule")
LONGEST_NAME, MOST_ROWS, MOST_TEXT = 40, 2000, 20_000
_PATIENCE, _FORGOTTEN = 20.0, 60.0  # seconds until we give up on the lock, and until nobody can be holding it any more


@dataclass(frozen=True)
class BoardEntry:
    """The best schedule that has been handed in under a name for a puzzle, judged again now."""

    name: str
    date: str
    judgement: Judgement
    schedule: Sequence[Sequence[Action]]

    @property
    def puzzle(self) -> str:
        """The puzzle's name."""
        return self.judgement.puzzle.name

    def row(self) -> list[str]:
        """Return the entry as a row of the file."""
        texts = f"{self.judgement.idle_share:.6f}", f"{self.judgement.seconds:.6f}"
        return [self.name, self.puzzle, *texts, self.date, write_schedule(self.schedule).replace("\n", " | ")]


class Leaderboard:
    """The best schedules of a class for the shared puzzles."""

    def __init__(self, path: str | Path | None = None) -> None:
        """Without a path, the file at $COURSE_LEADERBOARD, or leaderboard.csv in the course's own folder."""
        chosen = Path(path).expanduser() if path else settings.LEADERBOARD.value()
        self.path = chosen or course_home() / "leaderboard.csv"

    def submit(self, name: str, puzzle: Puzzle | str, schedule: Sequence[Sequence[Action]]) -> str:
        """Hand in a schedule, keep it if it beats 1F1B and the last one under this name, and return what became of it.

        Raises:
            CourseError: no name, no shared puzzle, a schedule that cannot be run, or a file that cannot be written.
        """
        name = _name(name)
        puzzle = _shared(puzzle)
        judged = judge(puzzle, schedule)
        if not judged.valid:
            raise CourseError(f'The schedule for the puzzle "{puzzle.name}" {judged}.')
        text = f"{puzzle.name}: {judged.seconds:.2f} s, {judged.idle_share:.1%} idle"
        if not judged.beats_1f1b:
            return f"{text}. That does not beat 1F1B ({judged.plain.seconds:.2f} s), so it is not kept."
        today = datetime.date.today().isoformat()
        with self._locked():
            entries = self.entries()
            mine = [entry for entry in entries if (entry.name, entry.puzzle) == (name, puzzle.name)]
            if any(entry.judgement.seconds <= judged.seconds + 1e-9 for entry in mine):
                return f"{text}. You have handed in as good a one before: {mine[0].judgement.seconds:.2f} s."
            others = [entry for entry in entries if entry not in mine]
            self._write([*others, BoardEntry(name, today, judged, schedule)])
            position = 1 + sum(
                entry.puzzle == puzzle.name and entry.judgement.seconds < judged.seconds for entry in others
            )
        return f"{text}. Kept: place {position} of your class."

    def entries(self, puzzle: str | None = None) -> list[BoardEntry]:
        """Everybody's best, the fastest of each puzzle first. What cannot be read or does not hold is left out."""
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CourseError(f"The leaderboard {self.path} cannot be read: {error.strerror}.") from None
        best: dict[tuple[str, str], BoardEntry] = {}
        for line in text.splitlines()[1 : MOST_ROWS + 1]:
            entry = _read(line)
            if entry and (puzzle is None or entry.puzzle == puzzle):
                before = best.get((entry.name, entry.puzzle))
                if before is None or entry.judgement.seconds < before.judgement.seconds:
                    best[entry.name, entry.puzzle] = entry
        order = list(PUZZLES)
        return sorted(best.values(), key=lambda entry: (order.index(entry.puzzle), entry.judgement.seconds, entry.date))

    def picture(self, puzzle: str) -> "Figure":
        """1F1B and below it the best that the class has found for a puzzle."""
        from course_utils.lessons.pipeline import pictures

        entries = self.entries(_shared(puzzle).name)
        if not entries:
            raise CourseError(f'No schedule has been handed in for the puzzle "{puzzle}" yet. Use `submit`.')
        first = entries[0]
        known = best_known(first.judgement.puzzle)
        title = f"{first.name} takes {first.judgement.seconds:.1f} s, 1F1B {first.judgement.plain.seconds:.1f} s"
        title += f", the best known {known.seconds:.1f} s" if known else ""
        timings = {"1F1B": first.judgement.plain, first.name: first.judgement.timing}
        return pictures.pipelines(timings, title, f'simulated; the puzzle "{puzzle}"', in_seconds=True)

    def __str__(self) -> str:
        rows = [("puzzle", "", "seconds", "idle", "date"), *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{word}</th>' for word in ("puzzle", "who", "seconds", "idle", "date"))
        body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in self._rows())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _rows(self) -> Iterator[tuple[str, ...]]:
        entries = self.entries()
        for name, puzzle in PUZZLES.items():
            known, plain = best_known(puzzle), puzzle.one_f_one_b()
            if known:
                yield name, "(best known)", f"{known.seconds:.2f}", f"{known.idle_share:.1%}", ""
            for entry in (entry for entry in entries if entry.puzzle == name):
                yield (
                    name,
                    entry.name,
                    f"{entry.judgement.seconds:.2f}",
                    f"{entry.judgement.idle_share:.1%}",
                    entry.date,
                )
            yield name, "(1F1B)", f"{plain.seconds:.2f}", f"{plain.idle_share:.1%}", ""

    def _write(self, entries: Sequence[BoardEntry]) -> None:
        """The whole file, in one step: a reader sees the old one or the new one."""
        text = io.StringIO()
        csv.writer(text).writerows([COLUMNS, *(entry.row() for entry in entries)])
        beside = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            beside.write_text(text.getvalue(), encoding="utf-8", newline="")
            beside.chmod(0o644)
            beside.replace(self.path)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise CourseError(_cannot(self.path, error)) from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time. Making a folder is atomic on every shared file system; not all of them have locks."""
        lock = self.path.with_name(f".{self.path.name}.lock")
        end = time.monotonic() + _PATIENCE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CourseError(_cannot(self.path, error)) from None
        while True:
            try:
                lock.mkdir()
                break
            except FileExistsError:
                _remove_if_forgotten(lock)
            except OSError as error:
                raise CourseError(_cannot(self.path, error)) from None
            if time.monotonic() > end:
                raise CourseError(f"Somebody is writing the leaderboard all the time. Is {lock} left over? Remove it.")
            time.sleep(0.01 + 0.04 * secrets.randbelow(100) / 100)
        try:
            yield
        finally:
            with suppress(OSError):
                lock.rmdir()


def _remove_if_forgotten(lock: Path) -> None:
    """A lock that a killed process left behind."""
    with suppress(OSError):
        if time.time() - lock.stat().st_mtime > _FORGOTTEN:
            lock.rename(aside := lock.with_name(f"{lock.name}.{secrets.token_hex(4)}"))
            aside.rmdir()


def _read(line: str) -> BoardEntry | None:
    """The entry of a line, judged anew; None where it is none, or not better than 1F1B."""
    try:
        name, puzzle, _, _, date, text = next(csv.reader([line[:MOST_TEXT]]))
        schedule = parse_schedule(text.split("|"))
        judged = judge(PUZZLES[puzzle], schedule)
        entry = BoardEntry(_name(name), datetime.date.fromisoformat(date).isoformat(), judged, schedule)
    except (CourseError, ValueError, KeyError, StopIteration, csv.Error):
        return None
    return entry if judged.beats_1f1b else None


def _name(name: str) -> str:
    """A name that fits into a table, and that no spreadsheet takes for a formula."""
    tidy = " ".join(name.split()) if isinstance(name, str) else ""
    if not tidy or len(tidy) > LONGEST_NAME or not tidy[0].isalnum() or not tidy.isprintable():
        raise CourseError(f"A name has 1 to {LONGEST_NAME} characters and begins with a letter or a digit.")
    return tidy


def _shared(puzzle: Puzzle | str) -> Puzzle:
    name = puzzle.name if isinstance(puzzle, Puzzle) else puzzle
    if name not in PUZZLES or isinstance(puzzle, Puzzle) and puzzle != PUZZLES[name]:
        raise CourseError(f"The class shares these puzzles: {', '.join(PUZZLES)}.")
    return PUZZLES[name]


def _cannot(path: Path, error: OSError) -> str:
    return f"The leaderboard {path} cannot be written: {error.strerror}. COURSE_LEADERBOARD names its place."
