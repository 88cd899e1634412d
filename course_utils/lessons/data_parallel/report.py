"""Lesson 6's part of `course.report()`: figures of the CS744 report, drawn from the learner's own training runs.

These are figures 4, 5, 6, the kind of 7 to 9, 10 and 11, and tables 1 to 3. (Figures 1 to 3 are lesson 3's.)
"""

from collections.abc import Sequence

from course_utils.lessons.data_parallel import report_sentences
from course_utils.lessons.data_parallel.kept_runs import kept_runs
from course_utils.lessons.data_parallel.training_run import TrainingRun
from course_utils.reporting.page import ReportPart, Section, section
from course_utils.words import count, ranks

TITLE = "VGG-11 on several nodes: my report"
NONE_YET = (
    "You have no training runs yet. The second notebook of lesson 6 keeps some, and lesson 7 keeps more. "
    "Or start one yourself:\n"
    '`ranks = course.start(4, link="200 Mbit/s")`, then '
    '`from course_utils.lessons.data_parallel import train_way` and `train_way(ranks, "DDP")`.'
)


def part(latest: bool) -> ReportPart:
    """The kept runs of one network, batch, link and number of cores, so that they can be compared.

    Args:
        latest: take the runs that are like the latest one; without it, those that compare the most methods.
    """
    kept = kept_runs()
    if not kept.runs:
        return ReportPart(notes=tuple(kept.notes), nothing_yet=NONE_YET)
    return part_of(kept.runs, kept.notes, latest)


def part_of(runs: Sequence[TrainingRun], notes: Sequence[str] = (), latest: bool = False) -> ReportPart:
    """The part for the runs of one setting. The others are counted and left out."""
    from course_utils.lessons.data_parallel import report_figures  # brings matplotlib

    chosen = alike(runs, latest)
    others = len(runs) - len(chosen)
    ways = report_figures.by_way(chosen)
    intro = [
        f"{count(len(chosen), 'run')} of mine: {report_figures.setting(chosen[-1])} The images are random numbers, "
        "because the time of a step does not depend on what they show. Hatched bars were published, not measured "
        "here (CS744 report, 2020, group 11).",
        f"Methods: {'; '.join(f'{method} on {ranks(each[0].world_size)}' for method, each in ways.items())}.",
    ]
    sections = [
        section("Figure 4. Training time of each task", lambda: report_figures.total_time(chosen)),
        section("Figure 5. Backward pass and communication", lambda: report_figures.backward_split(chosen)),
        section(
            "Figure 6. The stages of a step",
            lambda: report_figures.stages(chosen),
            lambda: f"{report_figures.forward_sentence(chosen)} {report_figures.slowed_sentence(chosen)}".strip(),
        ),
        *over_time(chosen),
        section("Figure 10. CPU of each rank", lambda: report_figures.mean_cpu(chosen)),
        section(
            "Figure 11. What each node sends",
            lambda: report_figures.mean_send(chosen),
            lambda: report_figures.send_sentence(chosen),
        ),
        section("Table 1. Time of an epoch by number of workers", lambda: report_figures.time_by_workers(chosen)),
        section("Table 2. CPU by number of workers", lambda: report_figures.cpu_by_workers(chosen)),
        section("Table 3. Bytes sent by number of workers", lambda: report_figures.traffic_by_workers(chosen)),
    ]
    left_out = []
    if others:
        hint = " `course.report(latest=True)` shows those like the latest one." if chosen[-1] is not runs[-1] else ""
        left_out = [f"{count(others, 'run')} with a different network, batch, link or number of cores.{hint}"]
    return ReportPart(TITLE, tuple(intro), tuple(sections), (*left_out, *notes))


def alike(runs: Sequence[TrainingRun], latest: bool) -> list[TrainingRun]:
    """The runs of the setting that has the most methods (the latest of several), or of the latest run's setting."""
    groups: dict[tuple, list[TrainingRun]] = {}
    for run in runs:
        groups.setdefault(run.setting, []).append(run)
    if latest:
        return groups[runs[-1].setting]
    position = {id(run): number for number, run in enumerate(runs)}
    return max(groups.values(), key=lambda group: (len({run.way for run in group}), position[id(group[-1])]))


def over_time(runs: Sequence[TrainingRun]) -> list[Section]:
    """Figures 7 to 9: for each of the report's methods its latest run on the most ranks, or what to run for it."""
    from course_utils.lessons.data_parallel import report_figures  # brings matplotlib

    latest = {
        method: run for method, each in report_figures.by_way(runs).items() for run in each if run.series is not None
    }
    sections = []
    for number, method in zip(
        (7, 8, 9), (report_sentences.GATHER, report_sentences.EACH, report_sentences.DDP), strict=True
    ):
        heading = f"Figure {number}. Nodes at work: {report_sentences.named(method)}"
        if method in latest:
            sections.append(section(heading, lambda method=method: report_figures.over_time(latest[method])))
        else:
            sections.append(
                Section(
                    heading,
                    None,
                    f'You have no such run yet. `train_way(ranks, "{method}")` on ranks with links makes one.',
                )
            )
    return sections
