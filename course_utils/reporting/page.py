"""`course.report()`: the CS744 report's figures of data-parallel training, drawn from one's own runs, as one page.

These are figures 4, 5, 6, the kind of 7 to 9, 10 and 11, and tables 1 to 3. (Figures 1 to 3 are lesson 3's.)
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.checks import panel as parts
from course_utils.errors import CourseError
from course_utils.reporting.kept import kept_runs
from course_utils.reporting.run import TrainingRun
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from course_utils.draw.style import Picture

NONE_YET = (
    'You have no training runs yet. Lesson 7 makes them: `ranks = course.start(4, link="200 Mbit/s")`,\n'
    'then `from course_utils.reporting import train_way` and `train_way(ranks, "DDP")`.'
)
_MARK = "course_utils report"
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="{mark}">
<title>{title}</title>
<style>
body {{ font-family: system-ui, sans-serif; line-height: 1.5; color: #222; background: #fff; max-width: 720px;
  margin: 2rem auto; padding: 0 1rem }}
figure {{ margin: 1.5rem 0 }}
img {{ max-width: 100%; height: auto }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


@dataclass(frozen=True)
class Section:
    """A figure of the page, or what to run for it.

    Attributes:
        heading: which of the report's figures it is.
        picture: None where the runs for it are missing.
        text: a sentence below it; what to run, where there is no picture.
    """

    heading: str
    picture: "Picture | None"
    text: str = ""


@dataclass(frozen=True)
class Report:
    """The page. A notebook shows it; `save("report.html")` writes it as one file that needs no other.

    Attributes:
        intro: what was trained, in plain lines.
        sections: in the order of the report's figures.
        notes: what is not shown, and why.
    """

    intro: tuple[str, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def html(self) -> str:
        """The page's body."""
        body = ["<h1>VGG-11 on several nodes: my report</h1>", *map(parts.paragraph, self.intro)]
        for section in self.sections:
            picture = parts.image(section.picture) if section.picture else ""
            text = parts.paragraph(section.text)
            heading = f"<figcaption><h2>{parts.escape(section.heading)}</h2></figcaption>"
            body.append(f"<figure>{heading}{picture}{text}</figure>")
        if self.notes:
            body += ["<h2>Not shown</h2>", *map(parts.paragraph, self.notes)]
        return "\n".join(body)

    @property
    def text(self) -> str:
        """The page in words: every figure by its text alternative."""
        lines = list(self.intro)
        for section in self.sections:
            told = " ".join(filter(None, (section.picture.alt_text if section.picture else "", section.text)))
            lines.append(f"{section.heading}: {told}")
        return "\n".join([*lines, *self.notes])

    def save(self, file: str | Path = "report.html") -> Path:
        """Write the page to a file; an older report there is replaced, and nothing else.

        Raises:
            CourseError: there is another file of that name, or it cannot be written.
        """
        path = Path(file).expanduser()
        try:
            if path.exists() and _MARK not in path.read_text(encoding="utf-8", errors="replace")[:500]:
                raise CourseError(f"{path} is there already and is no report. Choose another name.")
            page = _PAGE.format(mark=_MARK, title="My report", body=self.html)
            path.write_text(page, encoding="utf-8")
        except OSError as error:
            raise CourseError(f"{path} cannot be written ({error.strerror}). Choose another place.") from None
        print(f"Your report is in {path}.")
        return path

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/plain": self.text, "text/html": self.html}

    def __repr__(self) -> str:
        return self.text


def report(file: str | Path | None = None, latest: bool = False) -> Report | None:
    """Draw the CS744 report's figures 4 to 11, and its tables, from your own runs; a notebook shows them as one page.

    Runs are compared that have the same network, batch, links and cores: those with most ways to train. `train_way`
    makes them.

    Args:
        file: such as "report.html", to keep the page as a file of its own; None: it is only shown.
        latest: rather take the runs that are like your latest one.

    Returns:
        The page; None, and a line that says what to run, where there are no runs yet.

    Raises:
        CourseError: the file cannot be written, or is something else.
    """
    kept = kept_runs()
    capstone = capstone_sections()
    if not kept.runs and not capstone:
        print("\n".join([NONE_YET, *kept.notes]))
        if file is not None:
            print(f"So {file} was not written. (Of the capstone, checks in a notebook are kept.)")
        return None
    page = page_of(kept.runs, kept.notes, latest) if kept.runs else Report((NONE_YET,), (), tuple(kept.notes))
    page = dataclasses.replace(page, sections=(*page.sections, *capstone))
    if file is not None:
        page.save(file)
    return page


def page_of(runs: Sequence[TrainingRun], notes: Sequence[str] = (), latest: bool = False) -> Report:
    """The page of the runs of one setting (see `report`); those of others are counted, and left out."""
    from course_utils.reporting import figures

    chosen = alike(runs, latest)
    others = len(runs) - len(chosen)
    ways = figures.by_way(chosen)
    intro = [
        f"{count(len(chosen), 'run')} of mine: {figures.setting(chosen[-1])} The images are random numbers, as time "
        "does not depend on what they show. Hatched: published, not measured here (CS744 report, 2020, group 11).",
        f"Ways: {'; '.join(f'{way} on {ranks(each[0].world_size)}' for way, each in ways.items())}.",
    ]
    sections = [
        section("Figure 4. Training time of each task", lambda: figures.total_time(chosen)),
        section("Figure 5. Backward pass and communication", lambda: figures.backward_split(chosen)),
        section(
            "Figure 6. The stages of a step",
            lambda: figures.stages(chosen),
            lambda: f"{figures.forward_sentence(chosen)} {figures.slowed_sentence(chosen)}".strip(),
        ),
        *over_time(chosen),
        section("Figure 10. CPU of each rank", lambda: figures.mean_cpu(chosen)),
        section(
            "Figure 11. What each node sends",
            lambda: figures.mean_send(chosen),
            lambda: figures.send_sentence(chosen),
        ),
        section("Table 1. Time of an epoch by number of workers", lambda: figures.time_by_workers(chosen)),
        section("Table 2. CPU by number of workers", lambda: figures.cpu_by_workers(chosen)),
        section("Table 3. Bytes sent by number of workers", lambda: figures.traffic_by_workers(chosen)),
    ]
    left_out = []
    if others:
        hint = " `course.report(latest=True)` shows those like the latest." if chosen[-1] is not runs[-1] else ""
        left_out = [f"{count(others, 'run')} with another network, batch, link or number of cores.{hint}"]
    return Report(tuple(intro), tuple(sections), (*left_out, *notes))


def capstone_sections() -> list[Section]:
    """Budget and use of the latest capstone that was within all budgets, or else of the latest; none without any."""
    from course_utils.capstone.kept import kept

    results = kept()
    within = [result for result in results if not result.misses()]
    if not results:
        return []
    from course_utils.capstone.picture import budget_bars

    text = f"{count(len(results), 'training')} judged, {len(within)} within all budgets."
    return [Section("Capstone. Budget and use", budget_bars((within or results)[-1]), text)]


def alike(runs: Sequence[TrainingRun], latest: bool) -> list[TrainingRun]:
    """The runs of one setting: the one with most ways, of several the latest; or simply the latest run's."""
    groups: dict[tuple, list[TrainingRun]] = {}
    for run in runs:
        groups.setdefault(run.setting, []).append(run)
    if latest:
        return groups[runs[-1].setting]
    place = {id(run): number for number, run in enumerate(runs)}
    return max(groups.values(), key=lambda group: (len({run.way for run in group}), place[id(group[-1])]))


def over_time(runs: Sequence[TrainingRun]) -> list[Section]:
    """Figures 7 to 9: of each of the report's ways the latest run on most ranks; a missing one says what to run."""
    from course_utils.reporting import figures, findings

    latest = {way: run for way, each in figures.by_way(runs).items() for run in each if run.series is not None}
    sections = []
    for number, way in zip((7, 8, 9), (findings.GATHER, findings.EACH, findings.DDP), strict=True):
        heading = f"Figure {number}. Nodes at work: {findings.named(way)}"
        if way in latest:
            sections.append(section(heading, lambda way=way: figures.over_time(latest[way])))
        else:
            sections.append(Section(heading, None, f'Not run on nodes yet: `train_way(ranks, "{way}")` behind links.'))
    return sections


def section(heading: str, draw: "Callable[[], Picture]", say: Callable[[], str] = str) -> Section:
    """A section, with a sentence below its picture; where its runs are missing, the line that says so."""
    try:
        return Section(heading, draw(), say())
    except CourseError as missing:
        return Section(heading, None, str(missing))
